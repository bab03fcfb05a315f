"""One file a page; each is a script that Streamlit runs."""
