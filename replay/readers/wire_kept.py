"""Results of a capture that no request shows, from the messages that the harness itself kept beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from replay.readers.common import json_text
from replay.readers.native import mapping, objects
from replay.readers.source import open_source
from replay.readers.wire_items import Piece, result_piece


def kept_files(folder: Path) -> tuple[Path, ...]:
    """The files with messages that Cline's SDK wrote beside a capture, packed or not."""
    return tuple(sorted(p for p in folder.glob("session*.messages.json*") if p.is_file()))


def kept_results(folder: Path) -> Mapping[str, str]:
    """Id of a call to its result, as Cline's SDK would send it; empty for other harnesses."""
    documents = (mapping(open_source(path).document) for path in kept_files(folder))
    blocks = (b for d in documents for m in objects(d.get("messages")) for b in _blocks(m))
    return {b["tool_use_id"]: json_text(b.get("content")) for b in blocks if isinstance(b.get("tool_use_id"), str)}


def _blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    return iter(objects(content)) if isinstance(content, list) else iter(())


def unshown(calls: Iterable[str], found: Mapping[str, str], shown: frozenset[str]) -> Iterator[Piece]:
    """The kept results of these calls that are not among the shown ones: they were compacted away at once."""
    yield from (result_piece(call, found[call]) for call in calls if call in found and call not in shown)
