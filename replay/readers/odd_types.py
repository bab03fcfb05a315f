"""Counting the record types that a reader does not know: one note a type, not one a line."""

from __future__ import annotations

from dataclasses import dataclass, field

from replay.transcript import ReadNote


@dataclass
class OddTypes:
    """The unknown types of a file, each with how often and where it was first seen."""

    what: str = "record type"
    """What the names are names of, for the note's words."""
    fate: str = "kept out of the log"
    """What became of the records, for the note's words."""
    _seen: dict[str, list[int]] = field(default_factory=dict)

    def add(self, name: object, line: int, byte: int) -> None:
        """Count one record of an unknown type."""
        self._seen.setdefault(str(name), [0, line, byte])[0] += 1

    def notes(self) -> list[ReadNote]:
        """One note a type, in the order of first sight."""
        return [ReadNote(code="unknown-type", text=f"unknown {self.what} {name!r} x {count}; {self.fate}",
                         line=line, byte=byte)
                for name, (count, line, byte) in self._seen.items()]
