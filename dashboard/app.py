"""The dashboard's router: looks, pages, and errors as one line."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard import state, widgets
from replay.errors import RewindowError

VIEWS = Path(__file__).parent / "views"
PAGES = (("compare", "Compare"), ("session", "Session"), ("step", "Step"), ("compactions", "Compactions"),
         ("sweep", "Sweep"), ("regressions", "Regressions"), ("imports", "Import"), ("annotate", "Annotate"))
"""File in `views/` and title of every page in the order of the navigation; the first one opens by itself."""


def main() -> None:
    """Show the page that the address names."""
    st.set_page_config(page_title="Rewindow", layout="wide")
    widgets.style()
    pages = [st.Page(path, title=title, url_path=path.stem, default=path.stem == PAGES[0][0])
             for path, title in ((VIEWS / f"{name}.py", title) for name, title in PAGES) if path.is_file()]
    chosen = st.navigation(pages, position="top")
    state.enter(chosen.title)
    try:
        chosen.run()
    except RewindowError as error:
        widgets.callout("problem", "This cannot be shown", str(error))


if __name__ == "__main__":
    main()
