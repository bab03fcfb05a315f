"""Watch a command until it ends by itself or a limit ends it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

Ended = Literal["time", "output", "disk"]
LOOK_SECONDS = 0.5
"""How often the size of the workspace is looked at."""
AFTER_SECONDS = 5.0
"""How long what was ended may take to be gone."""


class Watch:
    """A running command, its output so far, and its limits."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, seconds: float, output_bytes: int,
                 disk_bytes: int, *, enclosed: bool) -> None:
        self.process, self.folder, self.enclosed = process, folder, enclosed
        self.deadline = time.monotonic() + seconds
        self.output_bytes, self.disk_bytes = output_bytes, disk_bytes
        self.output = bytearray()

    def result(self) -> tuple[int, bytes, Ended | None]:
        """Exit code, output and the limit that was reached; whatever happens, nothing of the command is left."""
        pipe = self.process.stdout
        assert pipe is not None  # noqa: S101 - opened by the caller
        with pipe:
            try:
                ended = self._watched(pipe.fileno())
            finally:
                self.end()
                _drain(pipe.fileno())
        code = self.process.wait(AFTER_SECONDS)
        if ended is None and size_of(self.folder, self.disk_bytes) > self.disk_bytes:
            ended = "disk"
        return (137 if ended else code), bytes(self.output[:self.output_bytes]), ended

    def _watched(self, pipe: int) -> Ended | None:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            next_look = time.monotonic() + LOOK_SECONDS
            while (now := time.monotonic()) < self.deadline:
                if now >= next_look:
                    if size_of(self.folder, self.disk_bytes) > self.disk_bytes:
                        return "disk"
                    next_look = now + LOOK_SECONDS
                if not selector.select(min(LOOK_SECONDS, self.deadline - now)):
                    continue
                if not (data := os.read(pipe, 65536)):
                    return self._quiet()
                self.output += data
                if len(self.output) > self.output_bytes:
                    return "output"
        return "time"

    def _quiet(self) -> Ended | None:
        """The output was closed; the command may still go on."""
        while (now := time.monotonic()) < self.deadline:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(min(LOOK_SECONDS, self.deadline - now))
                return None
            if size_of(self.folder, self.disk_bytes) > self.disk_bytes:
                return "disk"
        return "time"

    def end(self) -> None:
        """End the command with everything in its enclosure, or at least its group."""
        if self.enclosed:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(AFTER_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _drain(pipe: int) -> None:
    """Wait until nobody holds the other end: then every process that could write to it is gone."""
    deadline = time.monotonic() + AFTER_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (now := time.monotonic()) < deadline and selector.select(deadline - now):
            if not os.read(pipe, 65536):
                return


def size_of(folder: Path, enough: int) -> int:
    """Bytes on disk below a folder, links not followed; counting stops beyond `enough`."""
    total, waiting = 0, [folder]
    while waiting and total <= enough:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
    return total
