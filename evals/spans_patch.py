"""Patches in the `*** Begin Patch` form: which files they change, what text they replace and what they create."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+?)\s*$")
_BEGIN = "*** Begin Patch"


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replacement of text in a file."""

    path: str
    old: str
    new: str
    every: bool = False
    """All places, not the one."""

    def applied(self, text: str) -> str:
        """The text after the replacement; unchanged where it does not hold the old text."""
        if not self.old:
            return text
        return text.replace(self.old, self.new) if self.every else text.replace(self.old, self.new, 1)


def has_patch(text: str) -> bool:
    """Whether a text holds such a patch."""
    return _BEGIN in text


def patch_parts(text: str) -> tuple[list[Replacement], list[tuple[str, str]]]:
    """The replacements of a patch, one a hunk, and the files that it adds with their content."""
    edits: list[Replacement] = []
    writes: list[tuple[str, str]] = []
    for action, path, body in _sections(text[text.index(_BEGIN):]):
        if action == "Update":
            edits.extend(_hunks(path, body))
        elif action == "Add":
            writes.append((path, "\n".join(line[1:] for line in body if line.startswith("+"))))
    return edits, writes


def _sections(text: str) -> Iterator[tuple[str, str, list[str]]]:
    action, path, body = "", "", list[str]()
    for line in text.split("\n"):
        head = _HEAD.match(line)
        if head is None and not line.startswith("*** End"):
            body.append(line)
            continue
        if action:
            yield action, path, body
        action, path, body = (head.group(1), head.group(2), []) if head else ("", "", [])
    if action:
        yield action, path, body


def _hunks(path: str, body: list[str]) -> Iterator[Replacement]:
    old: list[str] = []
    new: list[str] = []
    for line in [*body, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield Replacement(path, "\n".join(old), "\n".join(new))
            old, new = [], []
        elif not line.startswith("***"):
            mark, rest = line[:1], line[1:]
            if mark != "+":
                old.append(rest)
            if mark != "-":
                new.append(rest)
