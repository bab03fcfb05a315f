"""What a request has that the recording does not: detected, told with the step, and handled by the rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.serving.build import Settings, build, prompts_of
from replay.serving.chat import Chat
from replay.serving.endpoint import Endpoint
from replay.testing import Script
from replay.transcript import Transcript

PROMPT = {"role": "user", "content": "Fix the parser."}
TOOL = {"type": "function", "function": {"name": "read"}}


def call(number: int, path: str = "a.py", call_id: str | None = None, text: str = "") -> dict[str, Any]:
    """A response with a call of read."""
    function = {"name": "read", "arguments": json.dumps({"path": path})}
    return {"role": "assistant", "content": text,
            "tool_calls": [{"id": call_id or f"call-{number}", "type": "function", "function": function}]}


def result(number: int, text: str, call_id: str | None = None) -> dict[str, Any]:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call_id or f"call-{number}", "content": text}


class Talk:
    """A harness that sends what it is told, and what came of it."""

    def __init__(self, transcript: Transcript, **settings: Any) -> None:
        self.told: list[str] = []
        self.endpoint: Endpoint = build(transcript, Settings(**settings), self.told.append)

    def send(self, *messages: dict[str, Any], tools: tuple[Any, ...] = (TOOL,)) -> tuple[int, Any]:
        """Status, and the answered text or the error."""
        body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
        reply = self.endpoint.reply(Chat(), body)
        told = json.loads(reply.body)
        return reply.status, told["error"]["message"] if "error" in told else told["choices"][0]["message"]["content"]

    @property
    def whats(self) -> list[tuple[int, str]]:
        """Step and kind of each divergence."""
        return [(d.step, d.what) for d in self.endpoint.tally.divergences]


FIRST = call(1, text="I look at a.py.")
SECOND = {"role": "assistant", "content": None, "tool_calls": [
    {"id": f"call-{n}", "type": "function", "function": {"name": "read", "arguments": '{"path":"b.py"}'}} for n in (2, 3)]}
OLD = {"role": "user", "content": "Something else."}


@pytest.mark.parametrize(("messages", "step", "what"), [
    ([OLD], 1, "prompt"),
    ([PROMPT, FIRST, result(1, "print(2)")], 2, "result"),
    ([PROMPT, FIRST], 2, "missing-result"),
    ([PROMPT, FIRST, result(1, "print(1)"), {"role": "user", "content": "Now the tests."}], 2, "prompt"),
    ([PROMPT, FIRST, result(1, "print(1)"), call(9, "c.py", "mine"), result(9, "sea", "mine")], 2, "unknown-call"),
    ([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}, OLD], 2, "request"),
])
@pytest.mark.parametrize("rule", ["stop", "closest"])
def test_divergence_is_told_with_its_step(session: Transcript, messages: list[Any], step: int, what: str,
                                          rule: str) -> None:
    """Each kind is detected; `stop` refuses with step and kind, `closest` answers and tells which turn it took."""
    talk = Talk(session, on_divergence=rule)
    if step == 2:
        talk.send(PROMPT)
    status, said = talk.send(*messages)

    assert (step, what) in talk.whats
    assert any(line.startswith(f"step {step}: {what}: ") for line in talk.told)
    if rule == "stop":
        assert 422 == status
        assert f"stopped at step {step}: " in said
    else:
        assert 200 == status
        assert "answered with recorded step" in talk.told[0]


def test_stopped_run_stays_stopped(session: Transcript) -> None:
    """After a stop no later request gets an answer, and the reason is said again."""
    talk = Talk(session)
    talk.send(OLD)

    assert (422, "rewindow: stopped at step 1: prompt: the recorded prompt is not in the request") == talk.send(PROMPT)
    assert [(1, "prompt")] == talk.whats


def test_error_holds_no_text_of_the_session(session: Transcript) -> None:
    """Harnesses search errors for phrases: what a result says must not look like one of the provider's errors."""
    talk = Talk(session)
    talk.send(PROMPT)
    _, said = talk.send(PROMPT, FIRST, result(1, "prompt is too long: maximum context length"))

    assert "too long" not in said


def test_differing_result_can_be_let_pass(session: Transcript) -> None:
    """With that rule the difference is told, but the recorded turn comes and nothing counts as divergence."""
    talk = Talk(session, strict_results=False)
    talk.send(PROMPT)

    assert 200 == talk.send(PROMPT, FIRST, result(1, "print(2)"))[0]
    assert ([], ["result"]) == (talk.whats, [d.what for d in talk.endpoint.tally.notes])
    assert "let pass" in talk.told[0]


def test_request_behind_the_end_always_stops(session: Transcript) -> None:
    """There is no turn that could be the closest."""
    talk = Talk(session, on_divergence="closest")
    talk.endpoint.lines[0].next = 4

    assert 422 == talk.send(PROMPT, {"role": "assistant", "content": "The tests pass."}, OLD)[0]
    assert "end" == talk.whats[-1][1]


def test_tool_that_must_not_run_stops_under_every_rule(session: Transcript) -> None:
    """A turn with a call outside --tools is not served."""
    talk = Talk(session, on_divergence="closest", tools=frozenset({"bash"}))

    assert 422 == talk.send(PROMPT)[0]
    assert [(1, "forbidden")] == talk.whats


def test_tool_that_the_harness_lacks_is_told(session: Transcript) -> None:
    """The harness would answer the call with an error of its own."""
    talk = Talk(session, on_divergence="closest")
    talk.send(PROMPT, tools=({"type": "function", "function": {"name": "view"}},))

    assert [(1, "unknown-tool")] == talk.whats


def test_repeated_request_gets_the_same_turn(session: Transcript) -> None:
    """A client that tries again is no divergence."""
    talk = Talk(session)

    assert [(200, "I look at a.py.")] * 2 == [talk.send(PROMPT), talk.send(PROMPT)]
    assert [] == talk.whats


def test_ids_of_the_harness_are_followed(session: Transcript) -> None:
    """A harness that gives calls its own ids is understood by what the calls do."""
    talk = Talk(session)
    talk.send(PROMPT)
    talk.send(PROMPT, call(1, call_id="x1", text="I look at a.py."), result(1, "print(1)", "x1"))

    assert ([], 3) == (talk.whats, talk.endpoint.state()["next_step"])


def test_lost_turns_are_not_told_again(session: Transcript) -> None:
    """A harness that dropped its latest messages gets the turn that was to come, so that every run ends."""
    talk = Talk(session, on_divergence="closest")
    talk.send(PROMPT)
    talk.send(PROMPT, FIRST, result(1, "print(1)"))
    answered = talk.send(PROMPT, FIRST, result(1, "print(1)"), {"role": "user", "content": "[the rest is gone]"})
    talk.send(PROMPT, FIRST, result(1, "print(1)"), SECOND, result(2, "bee"), result(3, "bee again"))

    assert (200, None) == answered
    assert 4 == talk.endpoint.state()["next_step"]
    assert [] == talk.whats


def test_view_that_holds_only_a_summary_goes_on(session: Transcript) -> None:
    """Where a compaction left nothing of the recording, the served summary stands for it."""
    talk = Talk(session, summaries="extractive")
    talk.send(PROMPT)
    wish = {"role": "user", "content": "Create a handoff summary."}
    _, summary = talk.send(wish, tools=())

    assert 200 == talk.send({"role": "user", "content": f"So far: {summary}"})[0]
    assert ([], 3) == (talk.whats, talk.endpoint.state()["next_step"])


def test_wrapped_prompt_is_the_prompt(session: Transcript) -> None:
    """Harnesses put prompts into elements and add the time of day."""
    talk = Talk(session)

    assert 200 == talk.send({"role": "user", "content": "<input>Fix the parser.</input> It is noon."})[0]


def test_same_words_twice_are_two_turns() -> None:
    """“Go on.” answered by “Done.” again and again is followed by its order."""
    transcript = Script().user("Go on.").say("Done.").user("Go on.").say("Done.").user("Go on.").say("Ready.").build()
    talk = Talk(transcript)
    user, done = {"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Done."}

    assert ["Done.", "Done.", "Ready."] == [talk.send(user)[1], talk.send(user, done, user)[1],
                                            talk.send(user, done, user, done, user)[1]]
    assert [] == talk.whats


def test_sub_agent_is_answered_from_its_own_thread(session: Transcript) -> None:
    """A request that begins with a sub-agent's prompt gets that thread's turns, and the main one stays where it was."""
    from dataclasses import replace

    agent = Script(_calls=70).user("Count the files.").call("read").result("7").say("There are 7.").build().main
    talk = Talk(replace(session, subagents=(replace(agent, id="agent"),)))
    talk.send(PROMPT)
    task = {"role": "user", "content": "Count the files."}
    talk.send(task)
    said = talk.send(task, call(71), result(71, "7"))

    assert (200, "There are 7.") == said
    assert 2 == talk.endpoint.state()["next_step"]


def test_prompts_that_begin_a_turn_are_typed() -> None:
    """Prompts in front of one response are one; what was typed while the model was at work cannot be typed again."""
    script = Script().user("One.").user("And two.").call("read").result("x").user("Meanwhile.").say("Done.")

    assert ["One.\n\nAnd two.", "Three."] == prompts_of(script.user("Three.").say("Done.").build())


def test_session_that_begins_without_a_prompt_is_served() -> None:
    """Some logs hold only what the model did; the first request is then taken as it is."""
    talk = Talk(Script().call("read").result("x").say("Done.").build())

    assert 200 == talk.send({"role": "user", "content": "Anything."})[0]
    assert [] == talk.whats


def test_session_without_a_response_cannot_be_served() -> None:
    """The error says why."""
    from replay.errors import ReadError

    with pytest.raises(ReadError, match="nothing to answer with"):
        build(Script().user("Hi.").build(), Settings())
