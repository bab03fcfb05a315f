"""The dashboard's router: looks, pages, and errors as one line."""

from __future__ import annotations

import streamlit as st

from dashboard import state, widgets
from replay.errors import RewindowError

# File in `views/` and title of every page; the first one opens by itself.
PAGES = (("compare", "Compare"), ("step", "Step"))


def main() -> None:
    """Show the page that the address names."""
    st.set_page_config(page_title="Rewindow", layout="wide")
    widgets.style()
    pages = [st.Page(f"views/{name}.py", title=title, url_path=name, default=not position)
             for position, (name, title) in enumerate(PAGES)]
    chosen = st.navigation(pages, position="top")
    state.enter(chosen.title)
    try:
        chosen.run()
    except RewindowError as error:
        widgets.callout("problem", "This cannot be shown", str(error))


if __name__ == "__main__":
    main()
