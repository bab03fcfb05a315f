"""Traces and threads of Opik as session files: from the server or from exported files; pulled again nothing changes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import orjson

from evals.sinks.opik_ids import digest
from evals.sinks.opik_spans import LINES
from replay.errors import ConfigError
from replay.readers.common import seconds
from replay.writers.json_lines import json_bytes, output

Native = dict[str, Any]
_UNSAFE = re.compile(r"[^\w.-]+")
_AGO = re.compile(r"(\d+)([dhm])")
_AGO_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which sessions are pulled."""

    filter: str | None = None
    """In Opik's query language; only a server can answer it."""
    since: datetime | None = None
    limit: int | None = None
    """Most sessions, the newest first."""
    ids: tuple[str, ...] = ()
    """Of traces or threads; empty: all."""
    replays: bool = False
    """Lanes too that Rewindow itself pushed."""


class Store(Protocol):
    """Something that holds traces."""

    def traces(self, wanted: Wanted) -> Iterator[Native]:
        """The traces that are wanted, the newest first."""

    def thread(self, name: str) -> list[Native]:
        """All traces of a thread."""

    def spans(self, trace: Native) -> list[Native]:
        """All spans of a trace."""


@dataclass
class Pulled:
    """What came of a pull."""

    files: list[tuple[str, Path, str]] = field(default_factory=list)
    """Session, file, and whether it is `new`, `updated` or `unchanged`."""
    replays: int = 0
    """Traces that were left out because they are replays that Rewindow pushed."""
    damaged: list[str] = field(default_factory=list)
    """Recordings of which not all parts are there."""


def pull(store: Store, wanted: Wanted, folder: Path, done: Callable[[str], None] = lambda _: None) -> Pulled:
    """Write each session that is wanted into a file of its own; one that is there as it should be stays untouched."""
    pulled = Pulled()
    seen: set[str] = set()
    for trace in store.traces(wanted):
        if _is_replay(trace) and not wanted.replays:
            pulled.replays += 1
            continue
        thread = trace.get("thread_id")
        name = str(thread or trace.get("id"))
        if name in seen:
            continue
        if wanted.limit is not None and len(seen) >= wanted.limit:
            break
        seen.add(name)
        _pull_session(store, name, store.thread(name) if thread else [trace], folder, pulled)
        done(name)
    return pulled


def _pull_session(store: Store, name: str, traces: Sequence[Native], folder: Path, pulled: Pulled) -> None:
    path = folder / f"{_file_name(name)}.jsonl"
    whole = _recording_of(traces)
    if whole is not None:
        if path.is_file() and _sha(path.read_bytes()) == whole["sha256"]:
            pulled.files.append((name, path, "unchanged"))
            return
        data = _recording(store.spans(traces[0]))
        if _sha(data) == whole["sha256"]:
            pulled.files.append((name, path, _write(path, data)))
            return
        pulled.damaged.append(name)
    data = b"".join(json_bytes(row) + b"\n" for row in _rows(store, traces, path))
    pulled.files.append((name, path, _write(path, data)))


def _rows(store: Store, traces: Sequence[Native], path: Path) -> Iterator[Native]:
    """The traces in the order of their times, each with its spans; what the file holds already is not fetched again."""
    held, inside = _held(path)
    for trace in sorted(traces, key=_order):
        own = str(trace.get("id"))
        spans = inside.get(own, []) if held.get(own) == json_bytes(trace) else store.spans(trace)
        yield trace
        yield from sorted((s for s in spans if LINES not in (s.get("input") or {})), key=_order)


def _held(path: Path) -> tuple[Mapping[str, bytes], Mapping[str, list[Native]]]:
    """The traces of a file that was pulled before, and their spans."""
    traces: dict[str, bytes] = {}
    spans: dict[str, list[Native]] = {}
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            return {}, {}
        if not isinstance(row, dict):
            continue
        if "trace_id" in row:
            spans.setdefault(str(row["trace_id"]), []).append(row)
        else:
            traces[str(row.get("id"))] = line
    return traces, spans


def _order(row: Native) -> tuple[float, str]:
    return seconds(row.get("start_time")) or 0.0, str(row.get("id"))


def _write(path: Path, data: bytes) -> str:
    status = "updated" if path.is_file() else "new"
    if status == "updated" and path.read_bytes() == data:
        return "unchanged"
    with output(path) as file:
        file.write(data)
    return status


def _ours(row: Native) -> Mapping[str, Any]:
    """What Rewindow wrote about itself into a trace's or a span's metadata."""
    metadata = row.get("metadata")
    own = metadata.get("rewindow") if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def _is_replay(trace: Native) -> bool:
    own = _ours(trace)
    return bool(own) and not isinstance(own.get("recording"), dict)


def _recording_of(traces: Sequence[Native]) -> Mapping[str, Any] | None:
    """How to know the recording that Rewindow pushed with a trace; None for other traces."""
    own = _ours(traces[0]).get("recording") if len(traces) == 1 else None
    return own if isinstance(own, dict) and isinstance(own.get("sha256"), str) else None


def _recording(spans: Iterable[Native]) -> bytes:
    parts = {_ours(s).get("part"): s["input"].get(LINES) for s in spans if isinstance(s.get("input"), dict)}
    texts = [parts[n] for n in sorted(n for n in parts if isinstance(n, int)) if isinstance(parts[n], str)]
    return "".join(texts).encode("utf-8", "replace")


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _file_name(session: str) -> str:
    """A session's name as that of a file; a name that had to be changed gets a mark of its own."""
    safe = _UNSAFE.sub("_", session).strip(".")[:120]
    return safe if safe == session else f"{safe}-{digest(session)[:8]}"


def moment_of(text: str, now: datetime | None = None) -> datetime:
    """A date, a time, or how long ago (`7d`, `12h`, `30m`). Raises ConfigError."""
    if ago := _AGO.fullmatch(text):
        return (now or datetime.now(UTC)) - timedelta(**{_AGO_UNITS[ago[2]]: int(ago[1])})
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError("--since", "", f"expected a date, a time or something like 7d, found {text!r}") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
