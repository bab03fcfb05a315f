"""Reader of Rewindow's own format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay.readers import rewindow_records as decoded
from replay.readers.common import not_an_object
from replay.readers.odd_types import OddTypes
from replay.readers.rewindow_threads import ThreadDraft
from replay.readers.source import Source
from replay.transcript import NOTHING, ReadNote, Thread, Transcript

VERSION = 1


class Rewindow:
    """Reads sessions that `rewindow convert --to rewindow` wrote, schema version 1.

    Of a damaged file the records that are left are read: messages are counted anew, and steps and compactions
    point to what is left of the messages that they named.
    """

    name = "rewindow"

    def sniff(self, source: Source) -> int:
        """100 for a session header, 60 for records of a file that lost it."""
        objects = source.objects()
        if any(value.get("type") == "rewindow" and "version" in value for value in objects):
            return 100
        return 60 if any(value.get("type") == "message" and {"blocks", "origin", "index"} <= value.keys()
                         for value in objects) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """Every session of the file."""
        notes: list[ReadNote] = []
        odd = OddTypes()
        sessions: dict[int, _Draft] = {}
        for line, byte, value in source.records:
            if not isinstance(value, dict):
                notes.append(not_an_object(line, byte, value))
                continue
            number = value.get("session", 0)
            draft = sessions.setdefault(number if type(number) is int else 0, _Draft())
            kind = value.get("type")
            if not isinstance(kind, str) or kind not in _RULES:
                odd.add(kind, line, byte)
            elif problem := _RULES[kind](draft, value):
                notes.append(ReadNote(code="bad-record", text=f"a {kind} record {problem}", line=line, byte=byte))
        drafts = [sessions[number] for number in sorted(sessions)] or [_Draft()]
        found = [draft.built(source.path, len(sessions) > 1) for draft in drafts]
        return (found[0].with_notes(*notes, *odd.notes()), *found[1:])


@dataclass
class _Draft:
    """One session while its records are read."""

    header: Mapping[str, Any] | None = None
    notes: list[ReadNote] = field(default_factory=list)
    threads: dict[int, ThreadDraft] = field(default_factory=dict)
    own: list[ReadNote] = field(default_factory=list)
    """Notes on this file, behind those on the file that it was made from."""

    def thread(self, value: Mapping[str, Any]) -> ThreadDraft:
        """The thread that a record belongs to."""
        number = value.get("thread", 0)
        return self.threads.setdefault(number if type(number) is int else 0, ThreadDraft())

    def built(self, path: str, is_one_of_several: bool) -> Transcript:
        """The finished session."""
        threads = [(n, self.threads[n], self.threads[n].built(n, self.own)) for n in sorted(self.threads)]
        main = next((thread for number, _, thread in threads if number == 0), Thread(id="main"))
        below = [(draft.kind, thread) for number, draft, thread in threads if number]
        if self.header is None:
            what = "the header of a session is missing" if is_one_of_several else "the header is missing"
            self.own.append(ReadNote(code="no-header", text=f"{what}; named after the file"))
        fields: dict[str, Any] = {"format": "rewindow", "session_id": Path(path).name.partition(".")[0]}
        if self.header is not None:
            fields |= self.header
        fields.setdefault("extra", NOTHING)
        fields.setdefault("message_count", len(main.messages))
        return Transcript(path=path, main=main, notes=(*self.notes, *self.own), **fields,
                          subagents=tuple(t for kind, t in below if kind != "abandoned"),
                          abandoned=tuple(t for kind, t in below if kind == "abandoned"))


def _header(draft: _Draft, value: Mapping[str, Any]) -> str | None:
    version = value.get("version")
    if version != VERSION:
        draft.own.append(ReadNote(code="unknown-version", text=(
            f"schema version {version!r}; version {VERSION} is known, newer fields may be missing")))
    if draft.header is not None:
        return "repeats the header; kept out"
    draft.header = decoded.header(value)
    return None


def _thread(draft: _Draft, value: Mapping[str, Any]) -> str | None:
    thread = draft.thread(value)
    thread.id, thread.parent_call = decoded.text(value.get("id")), decoded.text(value.get("parent_call"))
    thread.kind = "abandoned" if value.get("kind") == "abandoned" else "subagent"
    return None


def _message(draft: _Draft, value: Mapping[str, Any]) -> str | None:
    message = decoded.message(value)
    if message is None or message.index < 0:
        return "without a role, an origin, blocks or an index that can be read; kept out"
    if message.index in draft.thread(value).messages:
        return f"repeats index {message.index}; kept out"
    draft.thread(value).messages[message.index] = message
    lost = len(value["blocks"]) - len(message.blocks)
    return f"holds {lost} blocks that cannot be read; left out" if lost else None


def _step(draft: _Draft, value: Mapping[str, Any]) -> str | None:
    step = decoded.step(value)
    if step is None:
        return "without a start or a number that can be read; kept out"
    draft.thread(value).steps.append(step)
    return None


def _compaction(draft: _Draft, value: Mapping[str, Any]) -> str | None:
    compaction = decoded.compaction(value)
    if compaction is None:
        return "without a kind or a position that can be read; kept out"
    draft.thread(value).compactions.append(compaction)
    listed = value.get("window")
    lost = len(listed) - len(compaction.window) if isinstance(listed, list) else 0
    return f"names {lost} parts of the window that cannot be read; left out" if lost else None


def _note(draft: _Draft, value: Mapping[str, Any]) -> str | None:
    note = decoded.note(value)
    if note is None:
        return "without a code and a text; kept out"
    draft.notes.append(note)
    return None


_RULES = {"rewindow": _header, "thread": _thread, "message": _message, "step": _step, "compaction": _compaction,
          "note": _note}
