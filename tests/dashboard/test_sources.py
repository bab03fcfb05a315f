"""How the dashboard's code is kept: short pages, one cache, no markup from data, no names that hide others."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "dashboard"
SOURCES = sorted(FOLDER.rglob("*.py"))


def _calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_pages_are_short() -> None:
    """No page is longer than 200 lines and the router stays near 40."""
    lengths = {p.name: len(p.read_text(encoding="utf-8").splitlines()) for p in (FOLDER / "views").glob("*.py")}

    assert {} == {name: n for name, n in lengths.items() if n > 200}
    assert 45 >= len((FOLDER / "app.py").read_text(encoding="utf-8").splitlines())


def test_no_file_hides_a_module() -> None:
    """Streamlit puts the folder first on the path, so no name in it may be that of a package or a stdlib module."""
    packages = {"replay", "evals", "dashboard", "datasets", "tests", "streamlit", "pandas", "numpy", "altair", "click"}

    assert set() == {p.stem for p in FOLDER.iterdir()} & (packages | set(sys.stdlib_module_names))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_no_call_renders_data_as_markdown(path: Path) -> None:
    """Nothing is written with a call that reads Markdown or lets HTML through unescaped."""
    forbidden = {f"st.{name}" for name in ("markdown", "write", "caption", "header", "subheader", "table", "info",
                                           "error", "warning", "success", "latex", "json", "metric", "badge")}

    assert set() == _calls(path) & forbidden
    assert "unsafe_allow" not in path.read_text(encoding="utf-8")


def test_html_reaches_a_page_in_one_place() -> None:
    """Only the shared pieces call `st.html`, and they refuse plain text."""
    assert ["widgets.py"] == [p.name for p in SOURCES if "st.html" in _calls(p)]


def test_only_the_data_module_caches() -> None:
    """One file decides what is kept."""
    assert ["data.py"] == [p.name for p in SOURCES if "st.cache_" in p.read_text(encoding="utf-8")]


def test_charts_know_no_streamlit_and_pages_no_files() -> None:
    """Charts are made from tables alone, and nothing here opens a transcript or a table itself."""
    made = [p for p in SOURCES if p.name.startswith("charts")]
    assert 3 <= len(made)
    assert [] == [p.name for p in made if "streamlit" in p.read_text(encoding="utf-8").replace("Streamlit", "")]
    readers = {"open", "orjson.loads", "json.loads", "pd.read_parquet", "load_table", "load_summary", "read"}
    assert {"data.py": {"json.loads"}} == {p.name: found for p in SOURCES if (found := _calls(p) & readers)}
