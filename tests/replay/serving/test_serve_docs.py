"""Every command of docs/serve.md runs, in the order in which a reader meets them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
DIFFERENCE = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)[0]


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """The words of each command."""
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_every_command_runs(commands: list[list[str]], tmp_path: Path) -> None:
    """Two recordings of one session; the gate over the second ends with 1 and says what the page says."""
    for name in ("datasets", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)

    assert 7 == len(commands)
    for number, words in enumerate(commands, 1):
        done = subprocess.run([sys.executable, "-m", "replay.cli", *words[1:]], cwd=tmp_path, capture_output=True, text=True,
                              check=False, env=os.environ | {"PYTHONPATH": str(ROOT)})

        assert done.returncode == (1 if number == 7 else 0), (words, done.stdout, done.stderr)
    assert DIFFERENCE in done.stdout


def test_the_page_names_every_option_and_kind() -> None:
    """What the command can be told, and every kind of divergence, is on the page."""
    from typing import get_args

    from replay.commands.serve import serve
    from replay.serving.script import What

    unusual = {"--port", "--index", "--reader", "--json", "--window"}
    options = {o for p in serve.params for o in p.opts if o.startswith("--")} - unusual - {"--policy"}

    assert [] == [o for o in sorted(options) if o not in PAGE]
    assert [] == [kind for kind in get_args(What) if f"| `{kind}` |" not in PAGE]
