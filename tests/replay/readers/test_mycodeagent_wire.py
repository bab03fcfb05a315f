"""MyCodeAgent's real files: counts of the study set, and recorded views against what the harness sent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.readers.mycodeagent import MyCodeAgent
from replay.readers.registry import read
from replay.readers.source import open_source, parse_source
from replay.transcript import Message, Step, Transcript

HEADING = "## Archived History Summary"


class TestRealFiles:
    """Files of the study set."""

    def test_counts(self, transcripts: Path) -> None:
        """The converted transcript has the counts that its table gives, and its checkpoint keeps six messages."""
        (found,) = read(transcripts / "mycodeagent/transcript-converted.jsonl", "mycodeagent")

        assert (118, 60, 1) == (found.message_count, len(list(found.main.tool_calls())), len(found.compactions))
        assert list(range(75, 81)) == list(found.compactions[0].window[1:])
        assert () == found.notes

    def test_sniffed_from_content(self, transcripts: Path) -> None:
        """The format is told by the event fields."""
        assert 95 == MyCodeAgent().sniff(open_source(transcripts / "mycodeagent/transcript-converted.jsonl"))
        assert 0 == MyCodeAgent().sniff(parse_source(b'{"role": "user", "content": "a"}\n', "x"))

    @pytest.mark.parametrize(("scenario", "steps"), [("one-turn-hard-limit", 17), ("overflow-once", 36),
                                                     ("ten-turns-retain2", 60), ("twelve-turns-retain4", 60)])
    def test_recorded_views_equal_what_was_sent(self, shared: Path, scenario: str, steps: int) -> None:
        """The view of every step equals the request that the harness really sent, system layers aside."""
        folder = shared / "wire/mycodeagent-f670268" / scenario
        (path,) = folder.glob("session*")
        (found,) = read(path, "mycodeagent")
        answered = [step for step in found.steps if step.response is not None]

        assert steps == len(answered)
        assert _sent(folder) == [[_plain(m) for m in _view(found, step)] for step in answered]
        assert () == found.notes

    def test_every_capture_reads_without_notes(self, shared: Path) -> None:
        """No session of the real harness holds an event that is not known."""
        for path in (shared / "wire/mycodeagent-f670268").glob("*/session*"):
            assert [()] == [t.notes for t in read(path, "mycodeagent")]


def _view(found: Transcript, step: Step) -> list[Message]:
    kept: tuple[int | Message, ...] = ()
    start = 0
    for made in found.compactions:
        if made.position <= step.start:
            kept, start = made.window, made.position
    return [found.messages[k] if isinstance(k, int) else k for k in kept] + list(found.messages[start:step.start])


def _plain(message: Message) -> tuple[Any, ...]:
    calls = [(c.id, c.name, c.arguments) for c in message.calls]
    answers = message.results[0].call_id if message.results else None
    return message.role, message.text, calls, answers


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"{name}.jsonl*")
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def _sent(folder: Path) -> list[list[tuple[Any, ...]]]:
    items = {row["id"]: row["item"] for row in _rows(folder, "items")}
    requests = [r for r in _rows(folder, "requests") if r["kind"] == "step" and r["response"]["status"] == 200]
    return [[_sent_message(m) for m in map(items.__getitem__, request["items"])
             if m["role"] != "system" or str(m["content"]).startswith(HEADING)] for request in requests]


def _sent_message(item: dict[str, Any]) -> tuple[Any, ...]:
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in item.get("tool_calls", ())]
    return item["role"], item["content"], calls, item.get("tool_call_id")
