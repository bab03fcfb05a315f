"""A working copy of a sample repository, and the real tools that act on it.

The copy lives in a temporary folder. Commands run under bash with nothing but `PATH` and `LC_ALL=C` in
their environment, and every path of the copy is shown as if it stood under `/home/dev`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from evals.samples.recording import Outcome
from evals.samples.scenario import Action

STORED_SUFFIX, WORKING_SUFFIX = ".py.txt", ".py"
"""Python sources are stored under another suffix, so that the data folder holds no Python."""
HOME = "/home/dev"
TIMEOUT_SECONDS = 120


class Workspace:
    """One working copy; use it in a `with` statement."""

    def __init__(self, repository: Path) -> None:
        """Copy a sample repository to a temporary folder. Raises FileNotFoundError where there is none."""
        self.cwd = f"{HOME}/{repository.name}"
        self._temporary = tempfile.TemporaryDirectory(prefix="samples-")
        base = Path(self._temporary.name).resolve()
        self.root = base / "copy" / repository.name
        shutil.copytree(repository, self.root)
        for stored in sorted(self.root.rglob(f"*{STORED_SUFFIX}")):
            stored.rename(stored.with_name(stored.name.removesuffix(STORED_SUFFIX) + WORKING_SUFFIX))
        self._environment = {"PATH": f"{_shims(base)}:/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._temporary.cleanup()

    def perform(self, action: Action) -> Outcome:
        """Do an action for real. Raises KeyError for a kind of action that is no tool."""
        return {"read": self._read, "write": self._write, "edit": self._edit, "bash": self._bash,
                "grep": self._grep, "list": self._list}[action.kind](action)

    def text(self, path: str) -> str:
        """The text of a file of the copy."""
        return self._place(path).read_text(encoding="utf-8")

    def files(self, pattern: str) -> list[str]:
        """Paths of the copy that fit a glob pattern, sorted."""
        found = (path.relative_to(self.root).as_posix() for path in self.root.glob(pattern) if path.is_file())
        return sorted(found)

    def _place(self, path: str) -> Path:
        return self.root / path.removeprefix(self.cwd + "/")

    def _read(self, action: Action) -> Outcome:
        place = self._place(action.target)
        if not place.is_file():
            return Outcome(text=f"no such file: {action.target}", failed=True)
        lines = place.read_text(encoding="utf-8").splitlines()
        first = int(action.get("start", 1))
        chosen = lines[first - 1:first - 1 + int(action.get("lines", 2000))]
        return Outcome(text="\n".join(chosen), first_line=first, total_lines=len(lines))

    def _write(self, action: Action) -> Outcome:
        place, text = self._place(action.target), str(action.get("text"))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return Outcome(text=text, total_lines=text.count("\n"))

    def _edit(self, action: Action) -> Outcome:
        old, new = str(action.get("old")), str(action.get("new"))
        before = self.text(action.target)
        count = before.count(old)
        if count != 1:
            reason = "the old text does not occur" if not count else f"the old text occurs {count} times"
            return Outcome(text=f"{reason} in {action.target}", failed=True)
        after = before.replace(old, new)
        self._place(action.target).write_text(after, encoding="utf-8")
        return _around(after, before[:before.index(old)].count("\n"), new.count("\n"))

    def _bash(self, action: Action) -> Outcome:
        command = action.target.replace(self.cwd, str(self.root))
        done = subprocess.run(["/bin/bash", "-c", command], cwd=self.root, env=self._environment, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=TIMEOUT_SECONDS)
        text = done.stdout.decode("utf-8", "replace").replace(str(self.root), self.cwd)
        return Outcome(text=text.rstrip("\n"), code=done.returncode, failed=done.returncode != 0)

    def _grep(self, action: Action) -> Outcome:
        wanted = re.compile(action.target)
        found = [f"{path}:{number}:{line}" for path in self.files(str(action.get("in", "**/*")))
                 for number, line in enumerate(self.text(path).splitlines(), 1) if wanted.search(line)]
        return Outcome(text="\n".join(found) or "nothing found", total_lines=len(found))

    def _list(self, action: Action) -> Outcome:
        found = self.files(action.target)
        return Outcome(text="\n".join(found) or "nothing found", total_lines=len(found))


def _around(text: str, line: int, height: int, margin: int = 3) -> Outcome:
    """The lines around an edit that starts at a line counted from 0."""
    lines = text.splitlines()
    first = max(0, line - margin)
    return Outcome(text="\n".join(lines[first:line + height + margin + 1]), first_line=first + 1,
                   total_lines=len(lines))


def _shims(base: Path) -> Path:
    """A folder whose `python` is the interpreter that runs this, with no site packages and no caches."""
    folder = base / "bin"
    folder.mkdir()
    for name in ("python", "python3"):
        shim = folder / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -E -s -S -B "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
    return folder
