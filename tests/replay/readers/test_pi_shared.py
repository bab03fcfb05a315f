"""Pi on real public sessions, on inputs that break readers, and against captured requests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.readers.pi import Pi
from replay.readers.source import open_source
from replay.transcript import Message, Step, Thread, Transcript, Usage

ROWS = [("v1-two-compactions", 990, 454, 2), ("v3-bad-escapes", 144, 78, 0), ("v3-branching-fixture", 4, 0, 0),
        ("v3-compaction-fixture", 4, 0, 1), ("v3-tools-fixture", 4, 1, 0)]
"""As in the table, but for two rows: there 143, because the line with bad escapes was left out, and 6, because
the abandoned branch was counted too."""
RUNS = [
    "pi-0.58.3/small-one-turn", "pi-0.58.3/small-six-turns", "pi-0.74.2/small-one-turn", "pi-0.74.2/small-six-turns",
    "pi-1.6.0/defaults-60k", "pi-1.6.0/small-one-turn", "pi-1.6.0/small-six-turns", "pi-0.58.3/overflow-once",
    "pi-1.6.0/overflow-once", "pi-1.6.0/overflow-twice"]
"""Not pi-0.74.2/overflow-once: that harness did not store what it said after the overflow."""


def session(path: Path) -> Transcript:
    """The one session of a file."""
    (transcript,) = Pi().read(open_source(path))
    return transcript


@pytest.mark.parametrize(("name", "messages", "calls", "compactions"), ROWS)
def test_counts_of_real_sessions(transcripts: Path, name: str, messages: int, calls: int, compactions: int) -> None:
    """Messages of the active path, calls of the whole file, and compactions."""
    t = session(transcripts / "pi" / f"{name}.jsonl")

    assert (messages, calls, compactions) == (
        t.message_count, sum(1 for thread in t.threads for _ in thread.tool_calls()), len(t.compactions))
    assert [] == [n.code for n in t.notes if n.code not in ("call-without-result",)]


def test_version_1_is_read_with_its_compactions(transcripts: Path) -> None:
    """The kept entries are found by their index; cut-off responses are failed steps."""
    t = session(transcripts / "pi" / "v1-two-compactions.jsonl")
    first, second = t.compactions

    assert ([175004, 185014], [True, True]) == (
        [c.counter_before for c in t.compactions], [c.summary_readable for c in t.compactions])
    assert 294 == t.messages[first.window[1]].line if isinstance(first.window[1], int) else None
    assert 552 == t.messages[second.window[1]].line if isinstance(second.window[1], int) else None
    assert (484, 19) == (len(t.steps), sum(s.response is None for s in t.steps))


def test_the_line_with_bad_escapes_is_not_lost(transcripts: Path) -> None:
    """The repaired line keeps the chain whole."""
    t = session(transcripts / "pi" / "v3-bad-escapes.jsonl")

    assert [44] == [m.line for m in t.messages if m.line == 44]
    assert () == t.notes
    assert 6 == sum(m.origin == "human" for m in t.messages)


def test_an_abandoned_branch_is_billed_but_not_shown(bugcases: Path) -> None:
    """The label at the end is no leaf: the active path is e1, e2, e5, e6; all three answers are billed."""
    t = session(bugcases / "14-pi-abandoned-branch.jsonl")
    last = t.steps[-1]

    assert ["e1", "e2", "e5", "e6"] == [m.id for m in t.messages]
    assert ["e1", "e2", "e5"] == [m.id for m in t.messages[:last.start]]
    assert Usage(input_uncached=1150, output=60) == t.usage
    assert Usage(input_uncached=250, output=40) == t.main.usage
    assert 150 == (last.usage.input_total if last.usage else None)
    assert [["e3", "e4"]] == [[m.id for m in thread.messages] for thread in t.abandoned]


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
    """Texts, calls and results of messages in order; the system prompt aside, whose text a capture replaces."""
    found: list[Any] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text) and message.role != "system":
                found.append((message.role, block.text))
            elif isinstance(block, ToolCall):
                found.append((block.id, block.name, block.parsed))
            elif isinstance(block, ToolResult):
                found.append((block.call_id, block.text))
    return found


def sent(items: list[dict[str, Any]]) -> list[Any]:
    """The same of a captured request."""
    found: list[Any] = []
    for item in items:
        content = item.get("content")
        if item["role"] == "tool":
            found.append((item["tool_call_id"], content))
            continue
        if item["role"] != "system":
            texts = [content] if isinstance(content, str) else [part["text"] for part in content or ()]
            found += [(item["role"], text) for text in texts if text]
        found += [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
                  for call in item.get("tool_calls") or ()]
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
    """Each step's view, rebuilt from the session file, is what Pi sent; so are its tokens.

    A rejected request stands aside: the compaction that answers it takes effect at the same length of the log.
    """
    folder = shared / "wire" / run
    requests, views = captured(folder)
    t = session(next(folder.glob("session.jsonl*")))
    pairs = [(wanted, parts(view(t.main, step))) for wanted, step in zip(views, t.steps, strict=True) if not step.error]
    billed = [(r["response"]["usage"]["prompt"], r["response"]["usage"]["completion"]) for r in requests
              if r["response"]["status"] == 200]

    assert [wanted for wanted, _ in pairs] == [shown for _, shown in pairs]
    assert billed == [(s.usage.input_total, s.usage.output) for s in t.steps if s.usage]
