"""What the distribution holds and what it must not."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as hatchling builds it."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=ROOT, check=True,
                   capture_output=True)
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_top_level_names(wheel: zipfile.ZipFile) -> None:
    """The wheel owns replay, evals and dashboard, never a package called datasets."""
    names = {name.split("/")[0] for name in wheel.namelist()}

    assert {"replay", "evals", "dashboard"} == {n for n in names if not n.endswith((".dist-info", ".data"))}


def test_presets_and_samples_are_inside(wheel: zipfile.ZipFile) -> None:
    """An installed copy has its presets, the bundled sessions and the bundled tasks."""
    names = wheel.namelist()

    assert any(n.startswith("replay/policy/presets/") and n.endswith("decode.toml") for n in names)
    assert any("/share/rewindow/samples/claude-code/" in n for n in names)
    assert any("/share/rewindow/tasks/csv-report/tests/" in n for n in names)


def test_datasets_hold_no_python() -> None:
    """A folder called datasets with Python in it would hide another library's package."""
    assert [] == [str(p) for p in (ROOT / "datasets").rglob("*.py")]


def test_every_import_is_declared() -> None:
    """What the packages import is declared as a dependency or as one of an extra."""
    import ast

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [d for name, extra in project["optional-dependencies"].items() if name != "dev" for d in extra]
    declared = {d.split(">")[0].split("[")[0].strip().lower().replace("-", "_")
                for d in (*project["dependencies"], *extras)}
    declared |= {module for package, module in (("splintr_rs", "splintr"), ("pydantic_ai_slim", "pydantic_ai"))
                 if package in declared}
    found = set()
    for package in ("replay", "evals", "dashboard"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
    third_party = found - set(sys.stdlib_module_names) - {"replay", "evals", "dashboard"}

    assert set() == third_party - declared


def test_no_registry_host_and_no_machine_path_is_committed() -> None:
    """Committed files name no package registry's host and no folder of a developer's machine."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    # Put together here so that this file does not hold what it looks for.
    forbidden = ["/".join(("", "work", "main")), "".join(("pypi", ".org")), "".join(("registry.", "npmjs"))]
    wrong = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
        wrong += [(name, word) for word in forbidden if word in text]

    assert [] == wrong
