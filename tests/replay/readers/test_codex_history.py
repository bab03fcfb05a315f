"""Codex rollouts whose history was changed: forks, compactions, rollbacks; and exec streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from replay.blocks import Text
from replay.readers.codex import Codex
from replay.readers.registry import read_bytes
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript, Usage

Records = list[dict[str, Any]]


def record(kind: str, payload: Any, at: float = 1.0) -> dict[str, Any]:
    """One line of a rollout, that many seconds into the test's minute."""
    return {"timestamp": f"2026-01-01T00:00:{at:06.3f}Z", "type": kind, "payload": payload}


def meta(name: str = "s-1", at: float = 0.0, **more: Any) -> dict[str, Any]:
    """A session header."""
    return record("session_meta", {"id": name, **more}, at)


def item(kind: str, at: float = 1.0, **payload: Any) -> dict[str, Any]:
    """A response item."""
    return record("response_item", {"type": kind, **payload}, at)


def event(kind: str, at: float = 1.0, **payload: Any) -> dict[str, Any]:
    """A UI event."""
    return record("event_msg", {"type": kind, **payload}, at)


def said(text: str, role: str = "assistant", at: float = 1.0, **more: Any) -> dict[str, Any]:
    """A message item."""
    part = "output_text" if role == "assistant" else "input_text"
    return item("message", at, role=role, content=[{"type": part, "text": text}], **more)


def prompt(text: str, at: float = 1.0) -> Records:
    """What a person typed: the message, and the event that tells so."""
    return [said(text, "user", at), event("user_message", at, message=text)]


def tokens(last: int, total: int, at: float = 1.0) -> dict[str, Any]:
    """A token count: so many tokens sent, one answered a request."""
    return event("token_count", at, info={
        "last_token_usage": {"input_tokens": last, "output_tokens": 1, "total_tokens": last + 1},
        "total_token_usage": {"input_tokens": total, "output_tokens": total // 10, "total_tokens": total * 11 // 10}})


def estimate(context: int, total: int) -> dict[str, Any]:
    """The count that follows a compaction: the harness's estimate of the new window, the total unchanged."""
    counted = tokens(0, total)
    counted["payload"]["info"]["last_token_usage"] = {"input_tokens": 0, "output_tokens": 0, "total_tokens": context}
    return counted


def compacted(message: str, *history: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A compaction; without history one of an old version."""
    items = [h["payload"] for h in history if h]
    return record("compacted", {"message": message, **({"replacement_history": items} if history else {}), **more})


def flat(parts: tuple[Any, ...]) -> Iterator[Any]:
    """Records, and lists of records, one after another."""
    for part in parts:
        yield from part if isinstance(part, list) else [part]


def session(*parts: Any) -> Transcript:
    """The session that a file of these records holds."""
    data = b"".join(json.dumps(part).encode() + b"\n" for part in flat(parts))
    (transcript,) = read_bytes(data, name="stream.jsonl", format="codex")
    return transcript


def turn(text: str, last: int, total: int, at: float, pause: float = 0.0) -> Records:
    """A prompt, its answer and their token count; `pause` seconds before the answer."""
    return [*prompt(text, at), said(f"re {text}", at=at + pause), tokens(last, total, at + pause)]


def shown(t: Transcript) -> list[int | str]:
    """The window of the only compaction: log indices, and the texts of the messages put in."""
    (compaction,) = t.compactions
    return [part if isinstance(part, int) else part.text for part in compaction.window]


class TestForks:
    def test_the_parents_requests_are_not_counted_again(self) -> None:
        """The copy is history: in the log, but neither a step nor billed."""
        t = session(meta("child", forked_from_id="parent"), meta("parent"), turn("one", 10, 10, 0.0),
                    turn("two", 20, 30, 20.0, 2.0))

        assert ("child", "parent") == (t.session_id, t.parent_session)
        assert ["one", "re one", "two", "re two"] == [m.text for m in t.messages]
        assert [(1, 3, 21)] == [(s.number, s.start, s.usage.total if s.usage else 0) for s in t.steps]
        assert (1, 4) == (len([s for s in t.steps if s.usage]), t.message_count)

    @pytest.mark.parametrize("times", [[0.0, 0.0, 0.0], [0.0, 0.1, 0.3], [0.0, 0.2, 0.4]])
    def test_a_slow_copy_is_still_a_copy(self, times: list[float]) -> None:
        """Records that follow each other closely are one copy, however long it takes in all."""
        copied = [turn(f"old {i}", 10, 10 * (i + 1), at) for i, at in enumerate(times)]
        t = session(meta("child", forked_from_id="parent"), meta("parent"), *copied, turn("new", 40, 70, 9.0, 1.0))

        assert [41] == [s.usage.total if s.usage else 0 for s in t.steps]

    def test_a_copy_that_keeps_its_first_times_is_a_copy(self) -> None:
        """Records older than the fork itself were not made by it."""
        t = session(meta("child", at=30.0, forked_from_id="parent"), meta("parent", at=30.0), turn("a", 10, 10, 1.0),
                    turn("b", 10, 20, 9.0), turn("new", 40, 60, 40.0))

        assert [41] == [s.usage.total if s.usage else 0 for s in t.steps]

    def test_a_fork_of_a_fork_names_its_own_parent(self) -> None:
        """Of three headers the first is the file's own, and it says who the parent is."""
        t = session(meta("c", forked_from_id="b"), meta("b", forked_from_id="a"), meta("a"), turn("one", 10, 10, 0.0),
                    turn("new", 5, 15, 30.0))

        assert ("c", "b", 1) == (t.session_id, t.parent_session, len(t.steps))

    def test_a_fork_without_a_word_about_it_is_told_by_its_second_header(self) -> None:
        """An older fork writes no parent id; the copied header gives it."""
        t = session(meta("c"), meta("a"), turn("one", 10, 10, 0.0), turn("new", 5, 15, 30.0))

        assert ("a", 1) == (t.parent_session, len(t.steps))

    def test_timed_turn_ids_tell_the_first_turn_of_its_own(self) -> None:
        """Where ids carry their time, a fork is told apart even when its own turn follows at once."""
        own, old, new = (f"0190{n}000-0000-7000-8000-000000000000" for n in (5, 1, 9))
        t = session(meta(own, forked_from_id="p"), meta("p"), event("task_started", 0.0, turn_id=old),
                    turn("one", 10, 10, 0.0), event("task_started", 0.0, turn_id=new), turn("new", 5, 15, 0.0))

        assert [6] == [s.usage.total if s.usage else 0 for s in t.steps]

    def test_a_fork_that_never_ran_has_no_steps(self) -> None:
        """Only the copy is in the file."""
        t = session(meta("c", forked_from_id="p"), meta("p"), turn("one", 10, 10, 0.0))

        assert ((), Usage(), 2) == (t.steps, t.usage, len(t.messages))

    def test_a_fork_by_reference_says_where_the_rest_is(self) -> None:
        """A fork that only refers to its parent's records is noted."""
        t = session(meta("c", history_base={"thread_id": "p", "end_ordinal_exclusive": 7}), turn("one", 10, 10, 0.0))

        assert ["history-elsewhere"] == [n.code for n in t.notes]


class TestCompactions:
    def test_the_replacement_history_becomes_the_window(self) -> None:
        """What the log holds is an index, the rest a message; a summary's request is no step."""
        summary = "FRAME\nsummary"
        t = session(meta(), said("ctx", "developer"), prompt("one"), said("1"), tokens(10, 10), said("summary"),
                    tokens(12, 22), compacted(summary, said("one", "user"), said("ctx", "developer"),
                                              said("new ctx", "user"), said(summary, "user")),
                    estimate(5, 22), prompt("two", 2), said("2", at=2), tokens(6, 28, 2))
        (c,) = t.compactions

        assert [1, 0, "new ctx", summary] == shown(t)
        assert ["injected", "summary"] == [p.origin for p in c.window if isinstance(p, Message)]
        assert (3, 11, 5, True) == (c.position, c.counter_before, c.counter_after, c.summary_readable)
        assert summary == c.summary
        assert ["ctx", "one", "1", "two", "2"] == [m.text for m in t.messages]
        assert [11, 7] == [s.usage.total if s.usage else 0 for s in t.steps]
        assert [13] == [s.usage.total for thread in t.abandoned for s in thread.steps if s.usage]

    def test_of_equal_prompts_the_latest_are_kept(self) -> None:
        """A history that holds one of two equal prompts means the later one."""
        t = session(meta(), prompt("again"), said("1"), prompt("again", 2), said("2", at=2),
                    compacted("", said("again", "user")))

        assert [2] == shown(t)

    def test_a_remote_compaction_is_not_readable(self) -> None:
        """An empty message and an encrypted item: the summary is there, its text is not."""
        t = session(meta(), prompt("one"), said("1"),
                    compacted("", said("one", "user"), item("compaction", encrypted_content="secret")))
        (c,) = t.compactions

        assert (False, None) == (c.summary_readable, c.summary)
        assert [0, ""] == shown(t)
        assert ["summary"] == [p.origin for p in c.window if isinstance(p, Message)]

    def test_a_response_kept_without_its_reasoning_is_put_in(self) -> None:
        """It is not what the log holds; its extra says which log message it came from."""
        t = session(meta(), prompt("one"), item("reasoning", summary=[], encrypted_content="xyz"), said("1"),
                    compacted("", said("one", "user"), said("1")))
        kept = t.compactions[0].window[1]

        assert ("model", 1) == ((kept.origin, kept.extra["log_index"]) if isinstance(kept, Message) else None)

    def test_reasoning_of_which_nothing_was_stored_makes_no_difference(self) -> None:
        """A reasoning item without text and cipher leaves the response as it was."""
        t = session(meta(), prompt("one"), item("reasoning", summary=[]), said("1"), compacted("", said("1")))

        assert [1] == shown(t)

    def test_old_compactions_are_rebuilt(self) -> None:
        """Without a history the window is the initial context, the person's messages and the summary."""
        t = session(meta(), said("ctx", "developer"), said("<environment_context>", "user"), prompt("one"), said("1"),
                    said("<turn_aborted>", "user"), prompt("two", 2), said("2", at=2), compacted("the summary"))

        assert [0, 1, 2, 5, "the summary"] == shown(t)
        assert (True, "user") == (t.compactions[0].summary_readable, _last(t).role)

    def test_a_rollback_over_a_compaction_takes_it_along(self) -> None:
        """A compaction that happened in a turn that was rolled back is no longer in force."""
        t = session(meta(), prompt("one"), said("1"), prompt("two", 2), said("2", at=2), compacted("s"),
                    event("thread_rolled_back", num_turns=1))

        assert () == t.compactions
        assert ["one", "1"] == [m.text for m in t.messages]


def _last(t: Transcript) -> Message:
    part = t.compactions[0].window[-1]
    assert isinstance(part, Message)
    return part


class TestRollback:
    def test_rolled_back_turns_are_abandoned_but_billed(self) -> None:
        """The turns leave the log with their context; their steps and usage stay in a branch."""
        t = session(meta(), prompt("one"), said("1"), tokens(10, 10),
                    said("<environment_context>", "user"), prompt("two", 2), said("2", at=2),
                    tokens(20, 30), event("thread_rolled_back", num_turns=1),
                    prompt("three", 3), said("3", at=3))
        (branch,) = t.abandoned

        assert ["one", "1", "three", "3"] == [m.text for m in t.messages]
        assert ["<environment_context>", "two", "2"] == [m.text for m in branch.messages]
        assert [(1, 2, 2)] == [(s.number, s.start, s.response) for s in branch.steps]
        assert [1, 2] == [s.number for s in t.steps]
        assert 32 == t.usage.total
        assert 4 == t.message_count

    @pytest.mark.parametrize(("turns", "left"), [(2, ["context"]), (9, ["context"]), (0, None)])
    def test_the_initial_context_survives_every_rollback(self, turns: int, left: list[str] | None) -> None:
        """Rolling back all turns, or more than there were, leaves what stood before the first prompt."""
        before = [said("context", "developer"), *prompt("one"), said("1"), *prompt("two", 2), said("2", at=2)]
        t = session(meta(), before, event("thread_rolled_back", num_turns=turns))

        assert (left or ["context", "one", "1", "two", "2"]) == [m.text for m in t.messages]


class TestExecStreams:
    def test_items_of_a_stream_become_a_thread(self) -> None:
        """Commands and messages are responses; what a turn added to the total goes to its last one."""
        command = {"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "a\n",
                   "exit_code": 1, "status": "failed"}
        t = session({"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"},
                    {"type": "item.started", "item": command}, {"type": "item.completed", "item": command},
                    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "done"}},
                    {"type": "turn.completed", "usage": {"input_tokens": 50, "cached_input_tokens": 20,
                                                         "output_tokens": 4}})

        assert ("t-1", 1, ["usage-per-turn"]) == (t.session_id, t.message_count, [n.code for n in t.notes])
        assert ["assistant", "tool", "assistant"] == [m.role for m in t.messages]
        assert [True] == [r.is_error for m in t.messages for r in m.results]
        assert Usage(input_uncached=30, cache_read=20, output=4) == t.usage
        assert "done" == (t.outcome.detail if t.outcome else None)

    def test_later_turns_count_what_they_added(self) -> None:
        """The usage of a turn is the thread's running total."""
        def answer(sent: int) -> Records:
            return [{"type": "item.completed", "item": {"type": "agent_message", "text": "x"}},
                    {"type": "turn.completed", "usage": {"input_tokens": sent, "output_tokens": 1}}]

        t = session({"type": "thread.started", "thread_id": "t"}, *answer(10), *answer(30))

        assert [10, 20] == [s.usage.input_total for s in t.steps if s.usage]

    def test_a_failed_turn_is_a_failed_step(self) -> None:
        """The error stands on a step that left nothing; unknown events are named."""
        t = session({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}, {"type": "zz.event"},
                    {"type": "turn.failed", "error": {"message": "no quota"}})

        assert [(None, "no quota")] == [(s.response, s.error) for s in t.steps]
        assert (["unknown-type"], "fail") == ([n.code for n in t.notes], t.outcome.value if t.outcome else None)

    def test_a_stream_is_recognised(self) -> None:
        """Its first lines are enough."""
        line = json.dumps({"type": "thread.started", "thread_id": "t"}).encode()

        assert 90 == Codex().sniff(parse_source(line, "x"))


def test_the_windows_texts_are_what_the_model_was_sent() -> None:
    """A summary that a compaction put in stands in the window word for word."""
    t = session(meta(), prompt("one"), said("1"), compacted("all of it"))

    assert (Text(text="all of it"),) == _last(t).blocks
