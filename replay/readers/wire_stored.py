"""What a harness stored of a compaction while results of tools were still pending: read from its own session file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replay.readers.native import mapping, objects
from replay.readers.source import open_source
from replay.transcript import Thread

_KIND = "chat_compression"


def stored_results(folder: Path, thread: Thread) -> tuple[int, ...]:
    """Log indices of the results that stand at the end of a stored compaction.

    Qwen Code writes the compacted history to its session file while the next request is being built: whether the
    result that is about to be sent is in it already is a matter of timing, which the file tells.
    """
    ids = {found for path in _session_files(folder) for found in _pending_ids(path)}
    return tuple(m.index for m in thread.messages if any(r.call_id in ids for r in m.results))


def _session_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("session*") if p.name.endswith((".jsonl", ".jsonl.gz")))


def _pending_ids(path: Path) -> Iterator[str]:
    """Ids of the results in the last message of each compacted history of a session file."""
    for record in open_source(path).records:
        row = mapping(record.value)
        if row.get("subtype") == _KIND:
            history = objects(mapping(row.get("systemPayload")).get("compressedHistory"))
            yield from _result_ids(mapping(history[-1]) if history else {})


def _result_ids(content: Any) -> Iterator[str]:
    for part in objects(content.get("parts")):
        found = mapping(part.get("functionResponse")).get("id")
        if isinstance(found, str):
            yield found
