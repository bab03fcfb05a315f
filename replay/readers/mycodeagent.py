"""Reader for MyCodeAgent: transcripts, traces and archived demos."""

from __future__ import annotations

from typing import Any

from replay.readers.mycodeagent_demo import read_demo
from replay.readers.mycodeagent_trace import read_traces
from replay.readers.mycodeagent_transcript import read_transcripts
from replay.readers.source import Source
from replay.transcript import Transcript


class MyCodeAgent:
    """Reads chendongqi/MyCodeAgent (as of commit f670268), told by content.

    Transcript lines {event_id, event_type, run_id, payload}: a session each, also where one file holds several;
    `message_count` counts message events, checkpoints with a summary are full compactions, the last terminal
    event is the outcome. No usage is stored there.
    Trace lines {ts, event, payload} and demo documents {demo, trace}: usage per model output; `message_count`
    counts written messages, or the user's inputs and model outputs where the trace has no written messages.
    """

    name = "mycodeagent"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        if _is_demo(source.document):
            return 90
        rows = _rows(source)
        if any("event_id" in row and "event_type" in row for row in rows):
            return 95
        return 85 if any(_is_trace(row) for row in rows) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """Every session of the source."""
        if _is_demo(source.document):
            return (read_demo(source),)
        rows = _rows(source)
        if any(map(_is_trace, rows)) and not any("event_type" in row for row in rows):
            return read_traces(source)
        return read_transcripts(source)


def _rows(source: Source) -> list[dict[str, Any]]:
    if isinstance(source.document, list):
        return [row for row in source.document[:50] if isinstance(row, dict)]
    return source.objects()


def _is_demo(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("trace"), list):
        return False
    return all(isinstance(event, dict) and "event" in event for event in document["trace"][:5])


def _is_trace(row: dict[str, Any]) -> bool:
    return isinstance(row.get("event"), str) and "payload" in row and ("ts" in row or "step" in row)
