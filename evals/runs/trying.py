"""Which trial each worker is at, on disk, so that the trial that ended a worker can be told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

READING = -1
"""Position of a file that is being read; its sessions are not known yet."""


@dataclass(frozen=True, slots=True)
class Place:
    """A trial within a file: the position of its session and the name of its policy."""

    position: int
    policy: str


@dataclass(frozen=True, slots=True)
class Trying:
    """Marks of the work at hand in a folder: a file `NUMBER` for each item that is being worked on."""

    folder: Path

    @contextmanager
    def item(self, number: int) -> Iterator[None]:
        """An item is at hand within the block. What ends the process leaves the mark."""
        self.at(number, Place(READING, ""))
        yield
        (self.folder / str(number)).unlink(missing_ok=True)

    def at(self, number: int, place: Place) -> None:
        """The item's work has come to a trial."""
        # A worker on another machine may not see the folder; what ends it is then not known.
        with suppress(FileNotFoundError):
            (self.folder / str(number)).write_bytes(orjson.dumps(place))

    def left(self) -> dict[int, Place]:
        """Items whose work neither ended nor failed, with the trial that each had come to; their marks are removed."""
        found = {}
        for mark in sorted(self.folder.iterdir()):
            data = mark.read_bytes()
            found[int(mark.name)] = Place(**orjson.loads(data)) if data else Place(READING, "")
            mark.unlink()
        return found
