"""The files of a recorded session at one of its steps, as far as its own reads, writes and edits tell them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evals.actions import actions
from evals.artifacts import absolute
from evals.spans_calls import Deed, deed_of
from replay.transcript import Transcript

How = Literal["base", "written", "read", "read-later", "partly-read", "lost", "outside"]
"""What the restored text comes from: the folder that was given; a write of the session; a whole read before the step,
or after it with no change between; only parts were read; an edit did not fit what is known; the file lies outside of
the session's folder. The last three are not restored."""
RESTORED: tuple[How, ...] = ("base", "written", "read", "read-later")
_NUMBER = re.compile(r"^[ \t]*\d+(?:→|\t)", re.MULTILINE)
_ASIDE = re.compile(r"\n*<system-reminder>.*?</system-reminder>\n*", re.DOTALL)
_CUT = re.compile(r"characters left out|\[truncated|\btruncated\b|lines (?:omitted|truncated)", re.IGNORECASE)


@dataclass
class Restored:
    """The files of a session at one moment."""

    texts: dict[str, str] = field(default_factory=dict)
    """Path below the session's folder to the text."""
    how: dict[str, How] = field(default_factory=dict)
    """Every file that the session names, and where its text comes from."""

    @property
    def coverage(self) -> float | None:
        """Share of the files that the session touches whose text is known; None where it touches none."""
        return sum(h in RESTORED for h in self.how.values()) / len(self.how) if self.how else None

    def to_json(self) -> dict[str, object]:
        """What a report tells."""
        missing = {p: h for p, h in sorted(self.how.items()) if h not in RESTORED}
        return {"files": len(self.how), "coverage": self.coverage, "how": dict(Counter(self.how.values())),
                "not_restored": missing}


def restore(transcript: Transcript, before: int, base: Path | None = None) -> Restored:
    """The files as they were when the log had `before` messages. `base`: a copy of the folder at the session's start.

    Commands are not carried out again: what they changed is not known.
    """
    found, changed = Restored(), set[str]()
    for index, deed, text, failed in _deeds(transcript):
        if failed:
            continue
        if index < before:
            _then(found, deed, text, transcript.cwd, base)
        else:
            _later(found, deed, text, transcript.cwd, base, changed)
    return found


def _deeds(transcript: Transcript) -> Iterator[tuple[int, Deed, str, bool]]:
    for action in actions(transcript.main):
        if action.result is not None:
            yield action.result, deed_of(action.call), action.text, action.failed


def _then(found: Restored, deed: Deed, text: str, cwd: str | None, base: Path | None) -> None:
    """What a call before the moment tells."""
    for reading in deed.readings[:1]:
        _read(found, reading.path, plain(text) if _whole(deed, text) else None, cwd, base, "read")
    for path, content in deed.writes:
        if (place := _place(found, path, cwd, base)) is not None:
            found.texts[place], found.how[place] = content, "written"
    for edit in deed.edits:
        place = _place(found, edit.path, cwd, base)
        if place is None:
            continue
        if place in found.texts and edit.old and edit.old in found.texts[place]:
            found.texts[place] = edit.applied(found.texts[place])
        else:
            found.texts.pop(place, None)
            found.how[place] = "lost"


def _later(found: Restored, deed: Deed, text: str, cwd: str | None, base: Path | None, changed: set[str]) -> None:
    """What a call behind the moment tells: a file that nothing has changed since was then what it is read as now."""
    for reading in deed.readings[:1]:
        place = _place(found, reading.path, cwd, base)
        if place is not None and place not in found.texts and place not in changed:
            _read(found, reading.path, plain(text) if _whole(deed, text) else None, cwd, base, "read-later")
    for path in deed.changes:
        place = _place(found, path, cwd, base)
        if place is not None:
            changed.add(place)
            is_new = any(place == _place(found, p, cwd, base) for p, _ in deed.writes) and place not in found.texts
            if is_new and found.how[place] == "partly-read":
                del found.how[place]  # the session makes it later: before, there was none


def _whole(deed: Deed, text: str) -> bool:
    """Whether a result shows a file from its first line to its last."""
    alone = len(deed.readings) == 1 and (deed.command is None or bool(re.fullmatch(r"\s*cat\s+\S+\s*", deed.command)))
    return alone and deed.readings[0].lines is None and not _CUT.search(text)


def _read(found: Restored, path: str, text: str | None, cwd: str | None, base: Path | None, how: How) -> None:
    place = _place(found, path, cwd, base)
    if place is None or (text is None and place in found.texts):
        return
    if text is None:
        found.how[place] = "partly-read"
    elif found.texts.get(place) is None or found.texts[place].rstrip("\n") != text.rstrip("\n"):
        found.texts[place], found.how[place] = text, how


def _place(found: Restored, path: str, cwd: str | None, base: Path | None) -> str | None:
    """The path below the session's folder, known from now on; None for a file outside of it."""
    place = below(path, cwd)
    if place is None:
        found.how[path] = "outside"
        return None
    if place not in found.how:
        found.how[place] = "partly-read"
        source = base / place if base is not None else None
        if source is not None and source.is_file():
            found.texts[place], found.how[place] = source.read_bytes().decode("utf-8", "replace"), "base"
    return place


def below(path: str, cwd: str | None) -> str | None:
    """A path relative to the session's folder; None where it lies outside of it, or the folder is not known."""
    whole = absolute(path, cwd)
    if not whole.startswith(("/", "~")):
        return None if whole.startswith("..") else whole
    home = posixpath.normpath(cwd) if cwd else None
    if home is None or not whole.startswith(home.rstrip("/") + "/"):
        return None
    return whole.removeprefix(home.rstrip("/") + "/")


def plain(text: str) -> str:
    """A file's text from a result: without numbers in front of lines, without what the harness put beside it."""
    text = _ASIDE.sub("\n", text)
    lines = text.count("\n") + 1
    return _NUMBER.sub("", text) if 2 * len(_NUMBER.findall(text)) >= lines else text


def write_out(found: Restored, folder: Path) -> None:
    """Write the restored files into a folder; a path that leads elsewhere is left out."""
    for place, text in _writable(found.texts):
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="replace")


def _writable(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    folders = {posixpath.dirname(p) for p in texts} | {""}
    every = {parent for f in folders for parent in _parents(f)}
    for place, text in texts.items():
        if place not in every and not place.startswith(("/", "..")) and "\0" not in place:
            yield place, text


def _parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
