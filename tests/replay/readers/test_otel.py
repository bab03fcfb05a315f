"""Traces of model calls folded into sessions: what each prompt adds, what was compacted, agents, tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.readers.registry import read_bytes
from replay.transcript import Message, Transcript, Usage

STUB = "The story so far is that we looked at a file and fixed the bug in it."


def attribute(key: str, value: Any) -> dict[str, Any]:
    """An attribute with its typed value."""
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(number: int, parent: str = "", error: str = "", events: list[Any] | None = None,
         **attributes: Any) -> dict[str, Any]:
    """A span; `__` in a name stands for a dot."""
    return {"traceId": "t1", "spanId": f"s{number}", "parentSpanId": parent, "name": f"span {number}",
            "startTimeUnixNano": str((1_796_000_000 + number) * 10**9), "endTimeUnixNano": str(
                (1_796_000_000 + number) * 10**9 + 5), "events": events or [],
            "status": {"code": 2, "message": error} if error else {},
            "attributes": [attribute(k.replace("__", "."), v) for k, v in attributes.items()]}


def chat(number: int, sent: Any, got: Any = None, **more: Any) -> dict[str, Any]:
    """A model call with ten tokens in and two out."""
    told = {"gen_ai__operation__name": "chat", "gen_ai__conversation__id": "c1", "gen_ai__request__model": "m",
            "gen_ai__usage__input_tokens": 10, "gen_ai__usage__output_tokens": 2}
    if sent is not None:
        told["gen_ai__input__messages"] = sent
    if got is not None:
        told["gen_ai__output__messages"] = [got]
    return span(number, **{**told, **more})


def say(role: str, *parts: Any) -> dict[str, Any]:
    """A message of GenAI parts; strings are texts."""
    return {"role": role, "parts": [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]}


def ask(name: str) -> dict[str, Any]:
    """A call part."""
    return {"type": "tool_call", "id": name, "name": "ls", "arguments": {"a": 1}}


def answer(name: str, text: str = "ok") -> dict[str, Any]:
    """The message with a call's result."""
    return say("tool", {"type": "tool_call_response", "id": name, "response": text})


def envelope(*spans: Any, resource: list[Any] | None = None) -> dict[str, Any]:
    """An OTLP envelope."""
    return {"resourceSpans": [{"resource": {"attributes": resource or []}, "scopeSpans": [{"spans": list(spans)}]}]}


def session(*spans: Any) -> Transcript:
    """The one session of some spans."""
    (found,) = read_bytes(json.dumps(envelope(*spans), indent=1).encode())
    return found


def said(found: Transcript) -> list[tuple[str, str, str]]:
    """Role, origin and text of every log message."""
    return [(m.role, m.origin, m.text) for m in found.messages]


def shown(found: Transcript, at: int = 0) -> list[int | str]:
    """A window: log indices, and the texts of what is in no log."""
    return [p.text if isinstance(p, Message) else p for p in found.compactions[at].window]


SYSTEM, GO = say("system", "be good"), say("user", "go")
LOOK, DONE = say("assistant", "look", ask("k1")), say("assistant", "done")
TALK = (chat(1, [SYSTEM, GO], LOOK), chat(2, [SYSTEM, GO, LOOK, answer("k1")], DONE))


class TestFolding:
    """Prompts that repeat and extend each other."""

    def test_the_log_is_what_each_prompt_adds(self) -> None:
        """Each message is in the log once; each call is a step before its answer."""
        found = session(*TALK)

        assert [("system", "system", "be good"), ("user", "human", "go"), ("assistant", "model", "look"),
                ("tool", "tool", "ok"), ("assistant", "model", "done")] == said(found)
        assert [(2, 2), (4, 4)] == [(s.start, s.response) for s in found.steps]
        assert ("c1", "m", 5, 20) == (found.session_id, found.model, found.message_count, found.usage.input_total)

    def test_spans_are_ordered_by_their_start(self) -> None:
        """The order in the file does not matter."""
        assert said(session(*TALK)) == said(session(*reversed(TALK)))

    def test_an_answer_that_was_not_recorded_is_in_the_next_prompt(self) -> None:
        """Without output the next prompt tells what was answered."""
        found = session(chat(1, [SYSTEM, GO]), chat(2, [SYSTEM, GO, LOOK, answer("k1")]))

        assert (["be good", "go", "look", "ok"], [2, None]) == ([m.text for m in found.messages],
                                                               [s.response for s in found.steps])

    def test_a_compacted_prompt(self) -> None:
        """A prompt that does not go on from the one before is a compaction; its window is mapped by content."""
        found = session(*TALK, chat(3, [SYSTEM, say("user", STUB), LOOK, answer("k1"), DONE, say("user", "next")],
                                    say("assistant", "ok")))

        assert [0, STUB, 2, 3, 4] == shown(found)
        assert (5, STUB, True) == (found.compactions[0].position, found.compactions[0].summary,
                                   found.compactions[0].summary_readable)
        assert ["next", "ok"] == [m.text for m in found.messages[5:]]
        assert ["summary"] == [p.origin for p in found.compactions[0].window if isinstance(p, Message)]

    def test_a_compaction_that_keeps_nothing(self) -> None:
        """Only a summary and a new prompt: the prompt is talk, the summary is not."""
        found = session(*TALK, chat(3, [SYSTEM, say("user", STUB), say("user", "next")], say("assistant", "ok")))

        assert ([0, STUB], ["next", "ok"]) == (shown(found), [m.text for m in found.messages[5:]])

    def test_a_call_that_wrote_the_summary_with_instructions_of_its_own(self) -> None:
        """A call beside the talk is no step of it, but billed."""
        found = session(*TALK, chat(3, [say("system", "summarise"), say("user", "text")], say("assistant", STUB)),
                        chat(4, [SYSTEM, say("user", f"<summary>{STUB}</summary>"), DONE], say("assistant", "ok")))

        assert (3, 40, [1]) == (len(found.steps), found.usage.input_total, [len(t.steps) for t in found.abandoned])

    def test_a_call_that_wrote_the_summary_within_the_talk(self) -> None:
        """A request for a summary behind the talk is taken out of the log when its answer becomes the summary."""
        before = [SYSTEM, GO, LOOK, answer("k1"), DONE]
        found = session(*TALK, chat(3, [*before, say("user", "summarise")], say("assistant", STUB)),
                        chat(4, [SYSTEM, say("user", f"<summary>{STUB}</summary>")], say("assistant", "ok")))

        assert ["be good", "go", "look", "ok", "done", "ok"] == [m.text for m in found.messages]
        assert [["summarise", STUB]] == [[m.text for m in t.messages] for t in found.abandoned]
        assert ([0, f"<summary>{STUB}</summary>"], 5) == (shown(found), found.compactions[0].position)

    def test_blanked_results(self) -> None:
        """A result with another text than before was blanked; the log keeps the first."""
        found = session(*TALK, chat(3, [SYSTEM, GO, LOOK, answer("k1", "[cleared]"), DONE, say("user", "next")]))

        assert [("micro", (3,), "[cleared]", 5)] == [(c.kind, c.elided, c.placeholder, c.position)
                                                    for c in found.compactions]
        assert "ok" == found.messages[3].text

    def test_a_compaction_after_an_answer_that_was_not_recorded(self) -> None:
        """If the answer is nowhere to be seen, the log says that there was one."""
        found = session(chat(1, [SYSTEM, GO]), chat(2, [SYSTEM, say("user", STUB)], say("assistant", "ok")))

        assert (2, [2, 3]) == (found.steps[0].response, [s.start for s in found.steps])
        assert 3 == found.compactions[0].position

    def test_a_prompt_that_is_sent_again(self) -> None:
        """The same prompt again leaves the first answer, which was billed."""
        found = session(chat(1, [SYSTEM, GO], say("assistant", "bad")), chat(2, [SYSTEM, GO], DONE))

        assert (["be good", "go", "done"], [["bad"]]) == (
            [m.text for m in found.messages], [[m.text for m in t.messages] for t in found.abandoned])
        assert (1, 20) == (len(found.steps), found.usage.input_total)

    def test_instructions_that_are_written_anew(self) -> None:
        """A system message with a new text in front of the same talk is a note, not a compaction."""
        found = session(TALK[0], chat(2, [say("system", "be good. 12:01"), GO, LOOK, answer("k1")], DONE))

        assert ((), ["instructions-changed"]) == (found.compactions, [n.code for n in found.notes])

    def test_earlier_talk_in_the_first_prompt(self) -> None:
        """Answers that were given before the trace began are in the log without steps."""
        found = session(chat(1, [SYSTEM, GO, DONE, say("user", "more")], say("assistant", "ok")))

        assert (5, [4]) == (len(found.messages), [s.start for s in found.steps])

    def test_call_ids_that_come_back(self) -> None:
        """A call id that is used again is another call."""
        talk = [GO, LOOK, answer("k1"), DONE, say("user", "again")]
        found = session(chat(1, talk, LOOK), chat(2, [*talk, LOOK, answer("k1", "two")], DONE))

        assert ["k1", "k1#2"] == [c.id for c in found.main.tool_calls()]
        assert ["k1", "k1#2"] == [r.call_id for m in found.messages for r in m.results]

    def test_an_error(self) -> None:
        """A call that failed is a step without an answer; the same prompt again is not a compaction."""
        found = session(chat(1, [SYSTEM, GO], error="overloaded"), chat(2, [SYSTEM, GO], DONE))

        assert [("overloaded", None), (None, 2)] == [(s.error, s.response) for s in found.steps]
        assert () == found.compactions

    def test_several_conversations_and_traces(self) -> None:
        """Traces of one conversation are one session; spans without a conversation are one a trace."""
        turns = [{**TALK[0], "traceId": "a"}, {**TALK[1], "traceId": "b"}]
        bare = [{**span(n, gen_ai__operation__name="chat"), "traceId": name} for n, name in ((8, "x"), (9, "y"))]
        found = read_bytes(json.dumps(envelope(*turns, *bare)).encode())

        assert [("c1", 2), ("x", 1), ("y", 1)] == [(t.session_id, len(t.steps)) for t in found]

    def test_injected_text(self) -> None:
        """Text with a program's wrapper is not what a person typed."""
        found = session(chat(1, [say("user", "<system-reminder>\nx"), GO], DONE))

        assert ["injected", "human", "model"] == [m.origin for m in found.messages]

    def test_instructions_apart(self) -> None:
        """Instructions beside the messages are the system prompt."""
        found = session(chat(1, [GO], DONE, gen_ai__system_instructions=[{"type": "text", "content": "be good"}]))

        assert ("be good", 2) == (found.system_prompt, len(found.messages))


class TestTree:
    """Agents, tools and calls inside calls."""

    def test_a_deeper_agent_is_a_sub_agent(self) -> None:
        """Calls under a second agent are a thread of their own, with the tool call that started it."""
        found = session(
            span(1, gen_ai__operation__name="invoke_agent"), chat(2, [GO], LOOK, parent="s1"),
            span(3, parent="s1", gen_ai__operation__name="execute_tool", gen_ai__tool__call__id="k1"),
            span(4, parent="s3", gen_ai__operation__name="invoke_agent"),
            chat(5, [say("user", "find")], say("assistant", "found"), parent="s4"),
            chat(6, [GO, LOOK, answer("k1", "found")], DONE, parent="s1"))

        assert [("s4", "k1", ["find", "found"])] == [(t.id, t.parent_call, [m.text for m in t.messages])
                                                    for t in found.subagents]
        assert (4, 30) == (len(found.messages), found.usage.input_total)

    def test_a_result_that_only_the_tool_tells(self) -> None:
        """The results of the last calls are taken from the tools' spans."""
        found = session(chat(1, [GO], LOOK), span(2, gen_ai__operation__name="execute_tool",
                                                  gen_ai__tool__call__id="k1", gen_ai__tool__call__result="late"))

        assert ("tool", "tool", "late") == said(found)[-1]

    def test_calls_inside_calls_are_counted_once(self) -> None:
        """Two libraries that watch the same call give one step."""
        found = session(chat(1, [GO], DONE), chat(2, [GO], DONE, parent="s1"))

        assert (1, 10, ["nested-calls"]) == (len(found.steps), found.usage.input_total, [n.code for n in found.notes])

    def test_spans_without_content(self) -> None:
        """Calls of which nothing was recorded but tokens are steps; the session has no messages."""
        found = session(chat(1, None), chat(2, None))

        assert (0, 2, 20) == (found.message_count, len(found.steps), found.usage.input_total)

    def test_spans_without_calls(self) -> None:
        """A trace without any call is a valid empty session."""
        found = session(span(1, test_attribute="x"))

        assert (0, 0, {"other": 1}) == (found.message_count, len(found.steps), found.extra["spans"])

    def test_parents_in_a_ring(self) -> None:
        """Spans that are each other's parents are read like any others."""
        assert 2 == len(session(chat(1, [GO], DONE, parent="s2"), chat(2, [GO, DONE, GO], parent="s1")).steps)


class TestUsage:
    """Tokens, with and without the cache in the input."""

    @pytest.mark.parametrize(("given", "read", "total", "inclusive", "uncached"), [
        (100, 60, None, True, 40), (10, 60, None, False, 10), (100, 60, 102, True, 40), (100, 60, 162, False, 100),
        (100, 0, None, None, 100)])
    def test_whether_the_input_includes_the_cache(self, given: int, read: int, total: int | None,
                                                  inclusive: bool | None, uncached: int) -> None:
        """Sizes and totals tell whether input counts include the cache; else the convention does."""
        more = {"gen_ai__usage__total_tokens": total} if total else {}
        found = session(chat(1, [GO], DONE, gen_ai__usage__input_tokens=given,
                             gen_ai__usage__cache_read__input_tokens=read, **more))

        assert (inclusive, Usage(input_uncached=uncached, cache_read=read, output=2)) == (
            found.extra["input_includes_cached"], found.usage)

    def test_reasoning_and_cache_writes(self) -> None:
        """Reasoning is part of the output, cache writes are counted for five minutes."""
        found = session(chat(1, [GO], DONE, gen_ai__usage__cache_creation__input_tokens=4,
                             gen_ai__usage__reasoning__output_tokens=1))

        assert Usage(input_uncached=6, cache_write_5m=4, output=2, reasoning=1) == found.usage
