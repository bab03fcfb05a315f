"""The documentation is tested: every command in the README runs, every command and preset is named there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replay.cli import COMMANDS
from replay.policy.evidence import table_of_proofs

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
_INTERACTIVE = ("dashboard", "opik")
"""Opens a browser; needs a server (tests/evals/sinks runs those lines against one of its own)."""


def _shell_blocks(text: str) -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [[line.split("#")[0].strip() for line in block.splitlines() if line.strip()] for block in blocks]


def _rewindow_blocks() -> list[list[str]]:
    """The commands of each block, which belong together: a later one may use what an earlier one wrote."""
    blocks = [[line for line in block if line.startswith("rewindow ") and line.split()[1] not in _INTERACTIVE]
              for block in _shell_blocks(README)]
    return [block for block in blocks if block]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout's worth of files and a home folder with sessions of Claude Code and Codex."""
    base = tmp_path_factory.mktemp("reader")
    for folder in ("datasets", "docs"):
        (base / folder).symlink_to(ROOT / folder)
    samples = ROOT / "datasets" / "samples"
    shutil.copytree(samples / "claude-code", base / ".claude" / "projects" / "-home-dev-repo")
    rows = [f"{arm},{task},{int((task + len(arm)) % 3 > 0)},{task / 10}" for arm in ("raw", "masked") for task in range(20)]
    (base / "results.csv").write_text("\n".join(["policy,task,solved,usd", *rows]), encoding="utf-8")
    shutil.copytree(samples / "codex", base / ".codex" / "sessions" / "2026" / "01" / "02")
    return base


@pytest.mark.parametrize("block", _rewindow_blocks(), ids=lambda block: " ".join(block[0].split()[:3]))
def test_readme_commands_run(block: list[str], home: Path) -> None:
    """The commands of each block of the README end well, one after the other."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(home)}
    for line in block:
        words = [w.replace("~", str(home)) if w.startswith("~") else w for w in shlex.split(line)]
        done = subprocess.run([sys.executable, "-m", "replay.cli", *words[1:]], cwd=home, capture_output=True, text=True,
                              env=environment, check=False)

        assert 0 == done.returncode, f"{line}: {done.stderr}"
        assert done.stdout.strip()


def test_every_command_is_in_the_readme() -> None:
    """A command that the README does not mention does not exist for a user."""
    assert [] == [name for name in COMMANDS if f"rewindow {name}" not in README and name != "demo"]


def test_every_preset_is_in_the_readme() -> None:
    """The README's table is what `policies verify --markdown` prints from the stored proof."""
    assert "\n".join(table_of_proofs()) in README, "put the output of `rewindow policies verify --markdown` there"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    """`--help` of each command says what it does and shows an example."""
    done = subprocess.run([sys.executable, "-m", "replay.cli", name, "--help"], capture_output=True, text=True,
                          check=False, cwd=ROOT)

    assert 0 == done.returncode, done.stderr
    assert f"rewindow {name}" in done.stdout


def test_changelog_names_this_version() -> None:
    """The changelog has an entry for the version in pyproject.toml."""
    import tomllib

    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
