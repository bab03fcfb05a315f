"""What docs/own-policies.md shows works as it stands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from replay.policy.base import Capacity
from replay.policy.load import policy
from tests.replay.own.test_functions import session, talk

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "own-policies.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines() if line]


@pytest.mark.parametrize(("line", "code"), list(zip(COMMANDS, (0, 1), strict=True)))
def test_commands(line: str, code: int, tmp_path: Path) -> None:
    """The comparison ends well; the gate finds that blanking results is not full history."""
    for folder in ("datasets", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    done = subprocess.run([sys.executable, "-m", "replay.cli", *shlex.split(line)[1:]], cwd=tmp_path, capture_output=True,
                          text=True, timeout=300, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)

    assert code == done.returncode, done.stderr
    assert done.stdout.strip()


def test_the_function_and_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function runs under its own name and from the policy file."""
    (tmp_path / "mine.py").write_text(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0], encoding="utf-8")
    (tmp_path / "policy.toml").write_text(re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = session(talk(20)).replay(policy("mine:newest"), Capacity(window=3_000))

    assert found.ended is None
    assert "full" in {e.kind for e in found.events}
    assert "newest-thirty" == policy(str(tmp_path / "policy.toml")).name
