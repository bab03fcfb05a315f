"""The Streamlit dashboard: look at stored runs on 127.0.0.1."""
