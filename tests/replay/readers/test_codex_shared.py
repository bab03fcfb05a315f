"""Codex on real public sessions, on inputs that break readers, and against captured requests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.readers.codex import Codex
from replay.readers.source import open_source
from replay.transcript import Message, Step, Thread, Transcript, Usage

ROWS = [
    ("encrypted-compaction", 214, 424, 1), ("input-image-dynamic-tool", 53, 135, 0), ("mcp-short", 11, 66, 0),
    ("resumed-four-metas", 48, 73, 0), ("sample-fixture", 4, 2, 0), ("small-exec", 4, 4, 0),
    ("two-compactions-two-metas", 199, 551, 2)]
COMPACTED = {"001": 1, "003": 1}
"""Files of the corpus with a compaction; the other ten have none."""
RUNS = ["defaults-60k", "one-process-hard-limit", "one-process-manual-compact", "one-process-overflow-once",
        "overflow-once", "small-one-turn", "small-six-turns"]


def session(path: Path) -> Transcript:
    """The one session of a file."""
    (transcript,) = Codex().read(open_source(path))
    return transcript


@pytest.mark.parametrize(("name", "messages", "calls", "compactions"), ROWS)
def test_counts_of_real_sessions(transcripts: Path, name: str, messages: int, calls: int, compactions: int) -> None:
    """Messages, tool calls and compactions are those of the table; nothing odd is found."""
    t = session(transcripts / "codex" / f"{name}.jsonl")

    assert (messages, calls, compactions) == (
        t.message_count, sum(1 for thread in t.threads for _ in thread.tool_calls()), len(t.compactions))
    assert () == t.notes


@pytest.mark.parametrize("name", [row[0] for row in ROWS if row[0] != "sample-fixture"])
def test_every_response_of_a_real_session_has_its_usage(transcripts: Path, name: str) -> None:
    """No response is split or merged: each has exactly one new token count, and no count is left over."""
    t = session(transcripts / "codex" / f"{name}.jsonl")

    assert [] == [s.number for s in t.steps if s.usage is None or s.response is None]


def test_a_forked_sub_agent_counts_its_own_requests_only(transcripts: Path) -> None:
    """The session starts with 1,016 lines of its parent; the first own request is the first step."""
    t = session(transcripts / "codex" / "two-compactions-two-metas.jsonl")
    first = t.steps[0]

    assert ("019d7e48-96e2-77a0-b4ce-607c7aba4b96", "019d7d08-46c9-7f73-affe-4e6ca9852d56") == (
        t.session_id, t.parent_session)
    assert 22896 == (first.usage.input_total if first.usage else None)
    assert "Review commit b074cde" == t.messages[first.start - 1].text[:21]


def test_an_encrypted_compaction_keeps_its_prompts(transcripts: Path) -> None:
    """The window holds the person's prompts, fresh context and an opaque summary; counters are the harness's."""
    t = session(transcripts / "codex" / "encrypted-compaction.jsonl")
    (c,) = t.compactions

    assert (233055, 14163, False) == (c.counter_before, c.counter_after, c.summary_readable)
    assert ["human", "injected", "injected", "human", "summary"] == [
        (t.messages[p] if isinstance(p, int) else p).origin for p in c.window]


@pytest.mark.parametrize("name", [f"{n:03}" for n in range(1, 13)])
def test_the_corpus_reads_without_a_note(shared: Path, name: str) -> None:
    """No record of a real session is unknown, every response has usage, and the compactions are those of the table."""
    t = session(shared / "corpus" / "codex" / f"{name}.jsonl.gz")

    assert (COMPACTED.get(name, 0), ()) == (len(t.compactions), t.notes)
    assert all(s.usage and s.response is not None for s in t.steps)


def test_a_fork_and_its_parent_are_billed_once(bugcases: Path) -> None:
    """The parent made two requests, the child one; together they cost 3,753 tokens."""
    parent, child = (session(bugcases / f"04-codex-fork-{name}.jsonl") for name in ("parent", "child"))

    assert Usage(input_uncached=1300, cache_read=900, output=120) == parent.usage
    assert Usage(input_uncached=200, cache_read=1200, output=33) == child.usage
    assert (2, 1, 3753) == (len(parent.steps), len(child.steps), parent.usage.total + child.usage.total)
    assert ("thread-parent", None) == (parent.session_id, parent.parent_session)
    assert ("thread-child", "thread-parent") == (child.session_id, child.parent_session)


def view(thread: Thread, step: Step) -> list[Message]:
    """What the harness sent for a step, from the log and the recorded compactions."""
    window: list[int | Message] = []
    position = 0
    for compaction in thread.compactions:
        if compaction.position <= step.start:
            window, position = list(compaction.window), compaction.position
    shown = [thread.messages[part] if isinstance(part, int) else part for part in window]
    return shown + list(thread.messages[position:step.start])


def parts(messages: list[Message]) -> list[Any]:
    """Texts, calls and results of messages in order; developer messages aside, whose texts a capture replaces."""
    found: list[Any] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text) and message.role != "developer":
                found.append((message.role, block.text))
            elif isinstance(block, ToolCall):
                found.append((block.id, block.name, block.arguments))
            elif isinstance(block, ToolResult):
                found.append((block.call_id, block.text))
    return found


def sent(items: list[dict[str, Any]]) -> list[Any]:
    """The same of a captured request."""
    found: list[Any] = []
    for item in items:
        if item.get("type") == "function_call":
            found.append((item["call_id"], item["name"], item["arguments"]))
        elif item.get("type") == "function_call_output":
            found.append((item["call_id"], item["output"]))
        elif item["role"] != "developer":
            found += [(item["role"], part["text"]) for part in item["content"]]
    return found


def captured(folder: Path) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The step requests of a capture, and what each sent."""
    packed = folder / "items.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / "items.jsonl").read_bytes()
    items = {row["id"]: row["item"] for row in map(json.loads, text.splitlines())}
    requests = [json.loads(line) for line in (folder / "requests.jsonl").read_bytes().splitlines()]
    steps = [request for request in requests if request["kind"] == "step"]
    return steps, [sent([items[i] for i in request["items"]]) for request in steps]


@pytest.mark.parametrize("run", RUNS)
def test_recorded_views_equal_the_captured_requests(shared: Path, run: str) -> None:
    """Each step's view, rebuilt from the session file, is what the harness sent; so are its tokens."""
    folder = shared / "wire" / "codex-0.171.0" / run
    requests, views = captured(folder)
    t = session(folder / "session.jsonl.gz")
    billed = [(r["response"]["usage"]["prompt"], r["response"]["usage"]["completion"]) for r in requests
              if r["response"]["status"] == 200]

    assert views == [parts(view(t.main, step)) for step in t.steps]
    assert billed == [(s.usage.input_total, s.usage.output) for s in t.steps if s.usage]
