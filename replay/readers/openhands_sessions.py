"""Where the events of an OpenHands session stand: arrays, downloads, single event files, evaluation outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from replay.readers.common import not_an_object
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import ReadNote

_FOLDER = "events"
_CACHE = "event_cache"


class Event(NamedTuple):
    """One event with its place."""

    native: dict[str, Any]
    line: int | None
    byte: int


@dataclass
class Found:
    """The events of one session, and what the file says about it beside them."""

    name: str
    events: list[Event] = field(default_factory=list)
    head: Mapping[str, Any] = field(default_factory=dict)
    """The evaluation's record of the instance; empty for a plain event stream."""
    notes: list[ReadNote] = field(default_factory=list)


def is_event(value: Any) -> bool:
    """Whether this is an event of the stream."""
    if not isinstance(value, dict) or "role" in value:
        return False
    return isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)


def is_pair(value: Any) -> bool:
    """Whether this is an [action, observation] pair of the oldest histories."""
    return isinstance(value, list) and 1 <= len(value) <= 2 and all(is_event(v) or v is None for v in value)


def is_instance(value: Mapping[str, Any]) -> bool:
    """Whether this is one line of an evaluation's or of the issue resolver's output."""
    history = value.get("history")
    return isinstance(history, list) and ("instance_id" in value or "issue" in value)


def found_sessions(source: Source) -> list[Found]:
    """Every session of the source; an instance is one, all loose events together are one."""
    stem = _stem(source.path)
    if event_files := _siblings(source):
        return [_from_files(source, event_files)]
    loose, odd = Found(stem), OddTypes("record")
    instances: list[Found] = []
    for record, value in _values(source):
        listed = _listed(value)
        if listed is not None:
            _take(loose, listed, None if source.is_document else record.line, record, odd)
        elif isinstance(value, dict) and is_instance(value):
            instances.append(_instance(value, record, odd, f"{stem}#{len(instances) + 1}"))
        else:
            _take(loose, [value], record.line, record, odd)
    sessions = [*([loose] if loose.events or not instances else []), *instances]
    if sessions[0] is not loose:
        sessions[0].notes.extend(loose.notes)
    sessions[0].notes.extend(odd.notes())
    return sessions


def _values(source: Source) -> Iterator[tuple[Record, Any]]:
    """The values of the source; an array of instances is taken apart."""
    for record in source.records:
        value = record.value
        several = isinstance(value, list) and any(isinstance(v, dict) and is_instance(v) for v in value)
        yield from ((record, v) for v in (value if several else [value]))


def _listed(value: Any) -> list[Any] | None:
    """The events of an array, or of the UI's download."""
    if isinstance(value, dict) and "history" not in value:
        value = value.get("trajectory")
    return value if isinstance(value, list) else None


def _stem(path: str) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")


def _take(found: Found, values: list[Any], line: int | None, record: Record, odd: OddTypes) -> None:
    """Add events; pairs are taken apart, other things noted."""
    for value in values:
        for native in value if is_pair(value) else [value]:
            if is_event(native):
                found.events.append(Event(native, line, record.byte))
            elif isinstance(native, dict):
                odd.add(native.get("type") or ", ".join(list(native)[:5]) or "(empty)", record.line, record.byte)
            elif native is not None:
                found.notes.append(not_an_object(record.line, record.byte, native))


def _instance(value: Mapping[str, Any], record: Record, odd: OddTypes, fallback: str) -> Found:
    found = Found(_instance_name(value) or fallback, head=value)
    _take(found, value["history"], record.line, record, odd)
    return found


def _instance_name(value: Mapping[str, Any]) -> str | None:
    name, issue = value.get("instance_id"), value.get("issue")
    if isinstance(name, (str, int)):
        return str(name)
    if isinstance(issue, dict) and issue.get("number") is not None:
        return f"{issue.get('owner')}/{issue.get('repo')}#{issue['number']}"
    return None


def _siblings(source: Source) -> list[Path]:
    """All event files of the folder, in order, where the source is one of them."""
    path = Path(source.path)
    if source.folder is None or path.parent.name != _FOLDER or not path.stem.isdigit():
        return []
    if not all(is_event(record.value) for record in source.records):
        return []
    return event_files(path.parent)


def event_files(folder: Path) -> list[Path]:
    """The files `<n>.json` of a folder of single events, in the order of their numbers."""
    numbered = [p for p in folder.glob("*.json") if p.stem.isdigit()]
    return sorted(numbered, key=lambda p: int(p.stem))


def companion_events(path: Path) -> tuple[Path, ...]:
    """The files that belong to the same session as an `events/<n>.json`: for the first of them all others.

    The pages beside the folder hold the same events once more.
    """
    folder = path.parent
    if folder.name != _FOLDER or not path.stem.isdigit():
        return ()
    # Listing the folder for each of its files would be quadratic; streams count from 0.
    if path.stem != "0" and (folder / "0.json").exists():
        return ()
    files = event_files(folder)
    if files[:1] != [path]:
        return ()
    return (*files[1:], *sorted((folder.parent / _CACHE).glob("*.json")))


def _from_files(source: Source, files: list[Path]) -> Found:
    own = Path(source.path)
    found = Found(own.parent.parent.name or own.stem)
    given = [r.value for r in source.records]
    for file in files:
        values = given if file == own else list(_load(file, found.notes))
        for native in values:
            if is_event(native):
                found.events.append(Event(native, None, 0))
            else:
                found.notes.append(ReadNote(code="not-an-event", text=f"{file.name} holds no event; kept out"))
    return found


def _load(file: Path, notes: list[ReadNote]) -> Iterator[Any]:
    try:
        yield orjson.loads(file.read_bytes())
    except OSError as error:
        notes.append(ReadNote(code="unreadable-event", text=f"{file.name}: {error.strerror or error}"))
    except orjson.JSONDecodeError as error:
        notes.append(ReadNote(code="bad-json", text=f"{file.name} is not valid JSON: {error}"))
