"""The architecture as tests: who may import whom, and what stays out of the way until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {"replay": {"replay"}, "evals": {"replay", "evals"}, "dashboard": {"replay", "evals", "dashboard"}}
HEAVY = ("opik", "litellm", "streamlit", "pandas", "scipy", "pyarrow", "openai", "altair", "genai_prices",
         "starlette", "uvicorn")
OWNERS = {"opik": {"evals/sinks"}, "streamlit": {"dashboard"}}


def _modules(package: str) -> Iterator[Path]:
    return (p for p in (ROOT / package).rglob("*.py") if "__pycache__" not in p.parts)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("package", ALLOWED)
def test_dependencies_point_one_way(package: str) -> None:
    """replay knows nothing of evals, evals nothing of dashboard."""
    ours = {"replay", "evals", "dashboard"}
    wrong = [(str(path.relative_to(ROOT)), name) for path in _modules(package) for name in _imports(path)
             if name.split(".")[0] in ours - ALLOWED[package]]
    # The command table names modules as text; an import would be a dependency.
    assert [] == wrong


@pytest.mark.parametrize("library", OWNERS)
def test_a_heavy_library_has_one_owner(library: str) -> None:
    """opik and streamlit are imported in one place each."""
    wrong = [str(path.relative_to(ROOT)) for package in ALLOWED for path in _modules(package)
             for name in _imports(path) if name.split(".")[0] == library
             and not any(str(path.relative_to(ROOT)).startswith(owner) for owner in OWNERS[library])]

    assert [] == wrong


def test_help_imports_nothing_heavy() -> None:
    """`rewindow --help` loads no library that takes long."""
    code = ("import sys\nfrom replay.cli import main\n"
            "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
            f"print([m for m in {HEAVY!r} + ('rich', 'splintr', 'numpy') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert "[]" == done.stdout.strip().splitlines()[-1]


def test_modules_and_functions_stay_small() -> None:
    """No module is longer than 400 lines and nine in ten functions are under 30."""
    lengths, long_modules = [], []
    for package in ALLOWED:
        for path in _modules(package):
            text = path.read_text(encoding="utf-8")
            if text.count("\n") > 400:
                long_modules.append(str(path.relative_to(ROOT)))
            lengths += [(node.end_lineno or node.lineno) - node.lineno + 1 for node in ast.walk(ast.parse(text))
                        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

    assert [] == long_modules
    assert sum(length < 30 for length in lengths) / len(lengths) >= 0.9


def test_every_test_states_its_behaviour() -> None:
    """Each test has a docstring."""
    silent = [f"{path.name}: {node.name}" for path in (ROOT / "tests").rglob("test_*.py")
              for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
              if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)]

    assert [] == silent
