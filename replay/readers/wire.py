"""Reader for captures: what a real harness sent to a scripted model or to `rewindow serve`, request by request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.errors import ReadError
from replay.readers.common import whole
from replay.readers.native import mapping, objects, string
from replay.readers.source import Record, Source, open_source
from replay.readers.wire_items import ItemTable
from replay.readers.wire_kept import kept_files, kept_results
from replay.readers.wire_log import Capture
from replay.readers.wire_stored import stored_results
from replay.transcript import ReadNote, Transcript

PARTS = ("config.json", "requests.jsonl", "items.jsonl", "compactions.json")
"""The files of a capture; `items.jsonl` may be packed. What the harness itself wrote lies beside them as `session*`."""


class Wire:
    """Reads captures of wire format 1: a folder with config.json, requests.jsonl and items.jsonl or items.jsonl.gz.

    One session a folder, read from its requests.jsonl or config.json. The log holds the messages in the order in
    which requests first showed them, a response as the harness sent it back; a result that no request shows is taken
    from the messages that Cline keeps itself. Summary requests are threads of
    `abandoned`, so that their tokens are counted. A refused request whose step went through later is no step of
    its own. A change of the view is a recorded compaction of kind full, with the exact view; messages that a new
    process of the harness did not load are one of kind clear that lists them.
    Where `rewindow serve` was the model the session bears the id of the one that was served.
    `extra`: `harness`, `scenario`, `config`, `requests` (every request as a `Sent`), `resumed` (steps with which a
    new process begins), `refusals` (step to how often it was refused), `served` (what was served; empty: a script),
    `stored` (log indices of results that were pending at a compaction and are in what the harness stored of it all
    the same).
    """

    name = "wire"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        if isinstance(source.document, dict) and {"harness", "scenario", "kinds", "window"} <= source.document.keys():
            return 90
        return 95 if any({"kind", "items", "response", "request_bytes"} <= row.keys()
                         for row in source.objects(5)) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The session of the folder that the source lies in."""
        if source.folder is None:
            raise ReadError(source.path, "a capture is a folder: its messages lie in items.jsonl beside the requests")
        return (read_capture(source.folder),)


def capture_folder(path: Path) -> Path | None:
    """The capture that a path is or lies in; None where there is none."""
    folder = path if path.is_dir() else path.parent
    return folder if (folder / "requests.jsonl").is_file() and (folder / "config.json").is_file() else None


def capture_files(path: Path) -> tuple[Path, ...]:
    """The other files that are read with a capture's requests."""
    if path.name != "requests.jsonl" or capture_folder(path) is None:
        return ()
    named = (path.with_name(name + packed) for name in PARTS for packed in ("", ".gz"))
    return (*(p for p in named if p != path and p.is_file()), *kept_files(path.parent))


def read_capture(folder: Path) -> Transcript:
    """The run that a folder holds. Raises ReadError where a part of it is missing."""
    config = mapping(open_source(folder / "config.json").document)
    requests, notes = _records(folder, "requests.jsonl")
    items, more = _records(folder, "items.jsonl")
    prompts = tuple(p for p in config.get("prompts") or () if isinstance(p, str))
    capture = Capture(items=ItemTable(_items(items)), prompts=prompts, processes=_processes(config),
                      kept=kept_results(folder), served=isinstance(config.get("served"), dict))
    for record in requests:
        if isinstance(record.value, dict):
            capture.take(record.value)
    capture.finish()
    return _transcript(folder, config, capture).with_notes(*notes, *more)


def _records(folder: Path, name: str) -> tuple[tuple[Record, ...], tuple[ReadNote, ...]]:
    path = folder / name
    if not path.is_file():
        path = path.with_name(name + ".gz")
    source = open_source(path)
    return source.records, source.notes


def _items(records: Iterable[Record]) -> Mapping[int, Any]:
    rows = (r.value for r in records if isinstance(r.value, dict))
    return {row["id"]: row.get("item") for row in rows if isinstance(row.get("id"), int)}


def _processes(config: Mapping[str, Any]) -> frozenset[int]:
    """Numbers of the requests with which a process other than the first begins."""
    ends = [whole(command.get("requests_so_far")) for command in objects(config.get("commands"))]
    return frozenset(end + 1 for end in ends[:-1])


def _transcript(folder: Path, config: Mapping[str, Any], capture: Capture) -> Transcript:
    thread = capture.thread.build()
    harness = string(config.get("harness")) or folder.parent.name.rpartition("-")[0]
    scenario = string(config.get("scenario")) or folder.name
    served = mapping(config.get("served"))
    extra = {"harness": harness, "scenario": scenario, "config": config, "requests": tuple(capture.sent),
             "resumed": tuple(capture.resumed), "refusals": _refusals(capture), "served": served,
             "stored": stored_results(folder, thread)}
    version = string(config.get("version"))
    return Transcript(
        format=Wire.name,
        session_id=string(served.get("session_id")) or f"{harness}-{version}/{scenario}",
        path=str(folder), main=thread,
        abandoned=tuple(capture.side), harness_version=version, window=whole(config.get("window")) or None,
        model=next((s.model for s in thread.steps if s.model), None), message_count=len(thread.messages),
        extra=MappingProxyType(extra))


def _refusals(capture: Capture) -> Mapping[int, int]:
    counts: dict[int, int] = {}
    for sent in capture.sent:
        if sent.kind == "step" and not sent.accepted:
            counts[sent.step] = counts.get(sent.step, 0) + 1
    return counts
