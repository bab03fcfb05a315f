"""Compactions and prunings of OpenCode, and real sessions against what was sent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import ToolResult
from replay.detected import describe
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import open_source
from replay.transcript import Message, RecordedCompaction, Transcript

NOW = 1_796_000_000_000
SESSION = {"id": "ses_1", "slug": "a", "projectID": "p1", "directory": "/p", "title": "t", "version": "1.18.33",
           "time": {"created": NOW, "updated": NOW}}


def tokens(given: int = 10, output: int = 5, reasoning: int = 0, read: int = 0, write: int = 0) -> dict[str, Any]:
    """Token counts as OpenCode writes them."""
    return {"input": given, "output": output, "reasoning": reasoning, "cache": {"read": read, "write": write}}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": words, **more}


def tool(call: str, output: str = "ok", status: str = "completed", **state: Any) -> dict[str, Any]:
    """A tool part."""
    told = {"status": status, "input": {"x": 1}, "time": {"start": NOW, "end": NOW + 1}, **state}
    if status == "completed":
        told.setdefault("output", output)
    return {"type": "tool", "tool": "bash", "callID": call, "state": told}


def user(name: str, *parts: dict[str, Any], at: int = 0, **info: Any) -> dict[str, Any]:
    """A user message."""
    return {"info": {"id": name, "sessionID": "ses_1", "role": "user", "time": {"created": NOW + at}, **info},
            "parts": list(parts)}


def reply(name: str, *parts: dict[str, Any], at: int = 0, **info: Any) -> dict[str, Any]:
    """A response."""
    told = {"id": name, "sessionID": "ses_1", "role": "assistant", "modelID": "m", "finish": "stop",
            "time": {"created": NOW + at, "completed": NOW + at + 1}, "tokens": tokens(), **info}
    return {"info": told, "parts": [{"type": "step-start"}, *parts, {"type": "step-finish", "tokens": told["tokens"]}]}


def marker(name: str, at: int = 0, **more: Any) -> dict[str, Any]:
    """A request for a compaction."""
    return user(name, {"type": "compaction", "auto": True, **more}, at=at)


def summary(name: str, parent: str, at: int = 0, **info: Any) -> dict[str, Any]:
    """A summary that answers it."""
    return reply(name, text("S"), at=at, summary=True, parentID=parent, **info)


def document(*messages: Any, **info: Any) -> bytes:
    """An export document."""
    return json.dumps({"info": {**SESSION, **info}, "messages": list(messages)}, indent=1).encode()


def session(*messages: Any, **info: Any) -> Transcript:
    """The one session of an export."""
    (found,) = read_bytes(document(*messages, **info))
    return found


def codes(found: Transcript) -> list[str]:
    """Codes of the notes."""
    return [note.code for note in found.notes]


def said(found: Transcript) -> list[tuple[str, str, str]]:
    """Role, origin and text of every log message."""
    return [(m.role, m.origin, m.text) for m in found.messages]


def view(found: Transcript, step: int) -> list[Message]:
    """The window of a step, rebuilt by the rule that recorded compactions follow."""
    start = found.steps[step - 1].start
    full = [c for c in found.compactions if c.kind == "full" and c.position <= start]
    parts = [*full[-1].window, *range(full[-1].position, start)] if full else list(range(start))
    return [found.messages[p] if isinstance(p, int) else p for p in parts]


def requests(folder: Path) -> list[tuple[str, list[str]]]:
    """Kind and texts of the requests of a run, without the system prompt."""
    table = folder / "items.jsonl"
    packed = folder / "items.jsonl.gz"
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else table.read_bytes()
    items = {row["id"]: row["item"] for row in map(json.loads, raw.splitlines())}
    lines = (folder / "requests.jsonl").read_bytes().splitlines()
    return [(row["kind"], [items[i]["content"] or "" for i in row["items"] if items[i]["role"] != "system"])
            for row in map(json.loads, lines)]


TALK = (user("msg_1", text("go")), reply("msg_2", text("I look"), tool("c1", "one"), tool("c2", "two"), at=2),
        reply("msg_3", text("done"), at=4))


class TestCompactions:
    """Summaries with and without a kept tail, prunings."""

    def test_the_window_is_the_question_the_summary_and_the_tail(self) -> None:
        """After a compaction the model sees the fixed question, the summary, the tail and the nudge."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1"), at=1), reply("msg_3", tool("c2"), at=2),
                        marker("msg_4", at=3, overflow=False, tail_start_id="msg_3"), summary("msg_5", "msg_4", at=4),
                        user("msg_6", text("Continue", synthetic=True), at=5), reply("msg_7", text("ok"), at=6))
        (compaction,) = found.compactions

        assert ["What did we do so far?", "S", "", "ok", "Continue"] == [m.text for m in view(found, 3)]
        assert ("full", 5, "auto", "S", True) == (compaction.kind, compaction.position, compaction.trigger,
                                                 compaction.summary, compaction.summary_readable)
        assert ["injected", "summary"] == [p.origin for p in compaction.window if isinstance(p, Message)]
        assert 7 == found.message_count

    def test_the_request_for_the_summary_is_billed_aside(self) -> None:
        """The summary is no step of the thread, but what it cost is counted."""
        found = session(*TALK, marker("msg_4"), summary("msg_5", "msg_4", tokens=tokens(100, 7)))

        assert (2, 120) == (len(found.steps), found.usage.input_total)
        assert ["ses_1/summary-msg_5"] == [t.id for t in found.abandoned]

    @pytest.mark.parametrize(("given", "trigger"), [(True, "auto"), (False, "manual"), (None, None)])
    def test_who_asked(self, given: Any, trigger: str | None) -> None:
        """The marker says whether the program or the person asked."""
        asked = user("msg_4", {"type": "compaction", **({} if given is None else {"auto": given})})

        assert [trigger] == [c.trigger for c in session(*TALK, asked, summary("msg_5", "msg_4")).compactions]

    def test_without_a_tail_only_the_summary_is_kept(self) -> None:
        """A marker that names no tail keeps nothing of the log."""
        (compaction,) = session(*TALK, marker("msg_4"), summary("msg_5", "msg_4")).compactions

        assert 2 == len(compaction.window)

    def test_a_tail_that_is_not_there(self) -> None:
        """A tail that cannot be found is noted, and only the summary is kept."""
        found = session(*TALK, marker("msg_4", tail_start_id="msg_0"), summary("msg_5", "msg_4"))

        assert (2, ["missing-kept-entry"]) == (len(found.compactions[0].window), codes(found))

    def test_an_earlier_nudge_is_part_of_a_later_tail(self) -> None:
        """A tail may begin before an earlier compaction; that one's summary is not in it."""
        found = session(*TALK, marker("msg_4"), summary("msg_5", "msg_4"), user("msg_6", text("C", synthetic=True)),
                        reply("msg_7", text("x")), marker("msg_8", tail_start_id="msg_3"), summary("msg_9", "msg_8"))

        assert (4, 5, 6) == found.compactions[1].window[2:]

    @pytest.mark.parametrize("info", [{"error": {"name": "APIError"}}, {"finish": None, "error": {"name": "X"}}])
    def test_a_summary_that_failed_changes_nothing(self, info: dict[str, Any]) -> None:
        """Without a finished summary the question stands in the log like any other text."""
        found = session(*TALK, marker("msg_4"), summary("msg_5", "msg_4", **info))

        assert ((), ["compaction-unfinished"]) == (found.compactions, codes(found))
        assert ("injected", "What did we do so far?") == (found.messages[-1].origin, found.messages[-1].text)

    def test_a_summary_without_a_question(self) -> None:
        """Old versions wrote only the summary; the window then begins with it."""
        found = session(*TALK, reply("msg_4", text("S"), summary=True, finish=None))

        assert ["S"] == [p.text for p in found.compactions[0].window if isinstance(p, Message)]

    def test_the_prompt_that_overflowed_is_written_again(self) -> None:
        """After a forced compaction the interrupted prompt is repeated by the program, not by the person."""
        found = session(user("msg_1", text("big")), marker("msg_2", overflow=True), summary("msg_3", "msg_2"),
                        user("msg_4", text("big")), reply("msg_5", text("ok")), user("msg_6", text("big")))

        assert ["human", "nudge", "human"] == [m.origin for m in found.messages if m.role == "user"]

    def test_user_summaries_are_not_compactions(self) -> None:
        """The summary object on user messages is for the screen."""
        found = session(user("msg_1", text("go"), summary={"title": "t", "diffs": []}), *TALK[1:])

        assert ((), {"title": "t", "diffs": []}) == (found.compactions, found.messages[0].extra["summary"])

    def test_pruned_results_are_one_event_a_pass(self) -> None:
        """Results that were pruned between two prompts are blanked from the next prompt on; the log keeps them."""
        old = {"start": NOW, "end": NOW, "compacted": NOW + 5}
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", "one", time=old), at=1),
                        reply("msg_3", tool("c2", "two", time={**old, "compacted": NOW + 6}), at=2),
                        reply("msg_4", tool("c3", "three"), at=3), user("msg_5", text("more"), at=9),
                        reply("msg_6", text("ok"), at=10))

        assert [RecordedCompaction(position=7, kind="micro", elided=(2, 4), trigger="auto")] == list(found.compactions)
        assert "one" == found.messages[2].text
        assert "[Old tool result content cleared]" == found.compactions[0].placeholder

    @pytest.mark.parametrize("moment", [0, None, True, "x"])
    def test_not_pruned(self, moment: Any) -> None:
        """A missing or unreadable time of pruning means that nothing was pruned."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", time={"compacted": moment})))

        assert () == found.compactions


class TestReal:
    """Real sessions."""

    def test_the_count_table(self, transcripts: Path) -> None:
        """The public export has 26 messages and 25 tool calls, and its steps add up to its own totals."""
        (found,) = read(transcripts / "opencode" / "export-claude.json")
        told = describe(found)
        own = found.extra["tokens"]

        assert (26, 25, 0) == (told["messages"], told["tool_calls"], len(told["compactions"]))
        assert (own["input"], own["output"], own["cache"]["read"], own["cache"]["write"]) == (
            told["usage"]["input_uncached"], told["usage"]["output"], told["usage"]["cache_read"],
            told["usage"]["cache_write_5m"])

    @pytest.mark.parametrize(("run", "count"), [("small-one-turn", 6), ("small-six-turns", 5), ("mid-60k", 3),
                                                ("prune", 1)])
    def test_recorded_views_are_what_was_sent(self, shared: Path, run: str, count: int) -> None:
        """Every step's recorded view has the texts, in order, that the harness really sent."""
        folder = shared / "wire" / "opencode-1.18.33" / run
        (found,) = read(folder / "session.tables.jsonl.gz")
        sent = [texts for kind, texts in requests(folder) if kind == "step"]

        assert count == sum(c.kind == "full" for c in found.compactions)
        assert sent == [[m.text for m in view(found, step.number)] for step in found.steps]

    def test_the_database_and_its_rows_agree(self, shared: Path) -> None:
        """The database of a run gives the same session as the rows of its tables."""
        folder = shared / "wire" / "opencode-1.18.33" / "small-one-turn"
        (one,), (two,) = read(folder / "session.db.gz"), read(folder / "session.tables.jsonl.gz")

        assert (one.usage, said(one)) == (two.usage, said(two))
        assert "opencode" == detect(open_source(folder / "session.db.gz"))

    def test_results_are_all_answers_to_calls(self, shared: Path) -> None:
        """Every result of the runs answers a call before it."""
        for path in sorted((shared / "wire" / "opencode-1.18.33").glob("*/session.tables.jsonl.gz")):
            (found,) = read(path)
            calls = {c.id for c in found.main.tool_calls()}

            assert all(b.call_id in calls for m in found.messages for b in m.blocks if isinstance(b, ToolResult))
