"""A comparison in a process of its own, as the command line makes it: started, followed, and stopped without loss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evals.runs.unfinished import Unfinished, place_of

State = Literal["working", "done", "stopped", "failed"]
_SAID = 2_000
"""Characters of the last words that are kept."""


@dataclass
class ChildRun:
    """`rewindow compare … --out TARGET`, under way or over."""

    target: Path
    files: int
    """Files that are to be replayed."""
    process: subprocess.Popen[bytes]
    said: Path
    """What it wrote on its standard error."""
    cancelled: bool = False

    @property
    def state(self) -> State:
        """How it stands."""
        code = self.process.poll()
        if code is None:
            return "working"
        if code == 0:
            return "done"
        return "stopped" if self.cancelled else "failed"

    @property
    def files_done(self) -> int:
        """Files whose results are kept."""
        return self.files if self.state == "done" else min(self.files, Unfinished(place_of(self.target)).count)

    @property
    def words(self) -> str:
        """What it said last: why it failed, or how to go on."""
        lines = self.said.read_bytes().decode("utf-8", "replace").replace("\r", "\n").splitlines()
        return next((line for line in reversed(lines) if "rewindow:" in line), " ".join(lines))[-_SAID:]

    def cancel(self) -> None:
        """Stop it as Ctrl-C does: finished files are kept, and the same command goes on with them."""
        self.cancelled = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)


def start(paths: Sequence[str], policies: Sequence[str], window: int, target: Path, files: int) -> ChildRun:
    """Start a comparison; the run appears at the target when it is whole."""
    words = [word for policy in policies for word in ("-p", policy)]
    handle, said = tempfile.mkstemp(prefix="rewindow-compare-", suffix=".log")
    # A session of its own: what stops the dashboard does not stop it half-way, and Ctrl-C is not ignored there.
    code = ("import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from replay.cli import main; main(sys.argv[1:])")
    command = [sys.executable, "-c", code, "compare", *paths, *words, "--window", str(window), "--out", str(target)]
    target.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,  # noqa: S603 - our own
                                   stderr=log, start_new_session=True)
    return ChildRun(target, files, process, Path(said))
