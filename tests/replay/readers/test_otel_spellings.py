"""OTLP traces of model calls: GenAI, OpenInference and older names; damage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.blocks import Image, Reasoning
from replay.readers.registry import detect, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Transcript


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


SYSTEM, GO = say("system", "be good"), say("user", "go")
LOOK, DONE = say("assistant", "look", ask("k1")), say("assistant", "done")
TALK = (chat(1, [SYSTEM, GO], LOOK), chat(2, [SYSTEM, GO, LOOK, answer("k1")], DONE))


class TestSpellings:
    """Other names for the same."""

    def test_openinference(self) -> None:
        """Messages spelt out in numbered attributes."""
        sent, got = "llm__input_messages__{}__message__", "llm__output_messages__0__message__"
        told: dict[str, Any] = {
            sent.format(0) + "role": "system", sent.format(0) + "content": "be good", sent.format(1) + "role": "user",
            sent.format(1) + "contents__0__message_content__type": "text",
            sent.format(1) + "contents__0__message_content__text": "go", got + "role": "assistant",
            got + "content": "look", got + "tool_calls__0__tool_call__id": "k1",
            got + "tool_calls__0__tool_call__function__name": "ls",
            got + "tool_calls__0__tool_call__function__arguments": '{"a": 1}'}
        found = session(span(1, openinference__span__kind="LLM", session__id="c1", llm__model_name="m",
                             llm__token_count__prompt=10, llm__token_count__completion=2,
                             llm__token_count__prompt_details__cache_read=4, **told))

        assert [("system", "system", "be good"), ("user", "human", "go"), ("assistant", "model", "look")] == said(found)
        assert ["ls"] == [c.name for c in found.main.tool_calls()]
        assert ("c1", 4) == (found.session_id, found.usage.cache_read)

    def test_openllmetry(self) -> None:
        """Numbered prompts and completions."""
        found = session(span(1, llm__request__type="chat", gen_ai__prompt__0__role="user",
                             gen_ai__prompt__0__content="go", gen_ai__completion__0__role="assistant",
                             gen_ai__completion__0__content="done"))

        assert ["go", "done"] == [m.text for m in found.messages]

    def test_the_ai_sdk(self) -> None:
        """Only the inner spans of the SDK are calls; text and calls of the answer stand apart."""
        prompt = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
        found = session(
            span(1, operation__name="ai.streamText", ai__prompt=json.dumps({"messages": prompt})),
            span(2, parent="s1", operation__name="ai.streamText.doStream", ai__prompt__messages=prompt,
                 ai__response__text="look", ai__usage__promptTokens=10,
                 ai__response__toolCalls=[{"toolCallId": "k1", "toolName": "ls", "args": "{}"}]),
            span(3, parent="s1", operation__name="ai.streamText.doStream", ai__prompt__messages=[
                *prompt, {"role": "assistant", "content": [{"type": "text", "text": "look"}, {
                    "type": "tool-call", "toolCallId": "k1", "toolName": "ls", "args": {}}]},
                {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "k1", "toolName": "ls",
                                              "output": {"type": "text", "value": "a b"}}]}],
                 ai__response__text="done"))

        assert ["go", "look", "a b", "done"] == [m.text for m in found.messages]
        assert (2, ()) == (len(found.steps), found.compactions)

    def test_events(self) -> None:
        """Content in the span's events, one a message."""
        def event(name: str, **told: Any) -> dict[str, Any]:
            return {"name": name, "attributes": [attribute(k, v) for k, v in told.items()]}

        found = session(span(1, gen_ai__operation__name="chat", events=[
            event("gen_ai.system.message", content="be good"), event("gen_ai.user.message", content="go"),
            event("gen_ai.choice", message={"content": "look", "tool_calls": [
                {"id": "k1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]})]),
            span(2, gen_ai__operation__name="chat", events=[
                event("gen_ai.system.message", content="be good"), event("gen_ai.user.message", content="go"),
                event("gen_ai.assistant.message", content="look", tool_calls=[
                    {"id": "k1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]),
                event("gen_ai.tool.message", content="a b", id="k1"),
                event("gen_ai.choice", message={"content": "done"})]))

        assert ["be good", "go", "look", "a b", "done"] == [m.text for m in found.messages]

    @pytest.mark.parametrize("names", [("gen_ai.content.prompt", "gen_ai.content.completion"),
                                       ("gen_ai.client.inference.operation.details",)])
    def test_events_with_everything(self, names: tuple[str, ...]) -> None:
        """Content in one or two events of the span."""
        told = {"gen_ai.prompt": [{"role": "user", "content": "go"}], "gen_ai.completion": [
            {"role": "assistant", "content": "done"}], "gen_ai.input.messages": [GO], "gen_ai.output.messages": [DONE]}
        events = [{"name": name, "attributes": [attribute(k, v) for k, v in told.items()]} for name in names]
        found = session(span(1, gen_ai__operation__name="chat", events=events))

        assert ["go", "done"] == [m.text for m in found.messages]

    def test_typed_lists_instead_of_text(self) -> None:
        """Messages as nested typed values."""
        def typed(value: Any) -> dict[str, Any]:
            if isinstance(value, dict):
                return {"kvlistValue": {"values": [{"key": k, "value": typed(v)} for k, v in value.items()]}}
            return {"arrayValue": {"values": [typed(v) for v in value]}} if isinstance(value, list) else {
                "stringValue": value}

        native = span(1, gen_ai__operation__name="chat")
        native["attributes"].append({"key": "gen_ai.input.messages", "value": typed([GO, DONE])})

        assert ["go", "done"] == [m.text for m in session(native).messages]

    @pytest.mark.parametrize(("message", "text"), [
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, "x"), ({"type": "human", "content": "x"}, "x"),
        ({"role": "user", "parts": [{"text": "x"}]}, "x"),
        ({"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "x"}}, "x"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k", "content": "x"}]}, "x"),
        ({"role": "tool", "tool_call_id": "k", "content": "x"}, "x"),
        ({"role": "user", "parts": [{"functionResponse": {"id": "k", "name": "ls", "response": "x"}}]}, "x")])
    def test_messages_of_other_vendors(self, message: dict[str, Any], text: str) -> None:
        """Messages of Anthropic, OpenAI, Gemini and LangChain inside a prompt."""
        assert text == session(chat(1, [message], DONE)).messages[0].text

    def test_pictures_and_reasoning(self) -> None:
        """A picture is kept by its hash; reasoning of an answer is reasoning."""
        picture = {"type": "blob", "mime_type": "image/png", "data": "aGVsbG8="}
        found = session(chat(1, [say("user", picture)], say("assistant", {"type": "reasoning", "content": "hm"}, "x")))

        assert ([Image], Reasoning(text="hm")) == ([type(b) for b in found.messages[0].blocks],
                                                   found.messages[1].blocks[0])


class TestDamage:
    """What is broken or foreign."""

    @pytest.mark.parametrize("again", [1, 2, 3])
    def test_a_span_that_is_written_again(self, again: int) -> None:
        """The same span again is read once; each repeat is noted."""
        found = session(*TALK, *[TALK[0]] * again)

        assert (["duplicate"] * again, 2) == ([n.code for n in found.notes], len(found.steps))

    @pytest.mark.parametrize("value", ['[{"role": "user", "par', "plain text", "", "7", "{}", "[]", "[[]]", '["x"]'])
    def test_content_that_cannot_be_read(self, value: str) -> None:
        """Content that was cut or is of another kind never costs the call."""
        assert 1 == len(session(chat(1, value)).steps)

    def test_content_that_was_cut(self) -> None:
        """Messages whose JSON was cut are a note; the next prompt goes on."""
        cut = json.dumps([GO, LOOK])[:-9]
        found = session(chat(1, [GO], LOOK), chat(2, cut), chat(3, [GO, LOOK, answer("k1")], DONE))

        assert (["cut-content"], 4, 3) == ([n.code for n in found.notes], len(found.messages), len(found.steps))
        assert () == found.compactions

    def test_an_answer_without_its_prompt(self) -> None:
        """A call whose prompt cannot be read still gives its answer; the next prompt goes on from it."""
        found = session(chat(1, [GO], LOOK), chat(2, "[{cut", DONE),
                        chat(3, [GO, LOOK, DONE, say("user", "more")], DONE))

        assert ["go", "look", "done", "more", "done"] == [m.text for m in found.messages]

    @pytest.mark.parametrize("native", [7, None, {}, {"attributes": 3}, {"attributes": [3, {"key": 4}]},
                                        {"events": [3]}, {"status": 3}, {"startTimeUnixNano": "soon"}])
    def test_spans_of_a_wrong_shape(self, native: Any) -> None:
        """A span of a wrong shape costs only itself."""
        found = read_bytes(json.dumps(envelope(*TALK, native)).encode())

        assert 2 == len(found[0].steps)

    @pytest.mark.parametrize("document", [{"resourceSpans": 3}, {"resourceSpans": [3]}, {"resourceSpans": []},
                                          {"resourceSpans": [{"scopeSpans": [{"spans": None}]}]}])
    def test_empty_envelopes(self, document: Any) -> None:
        """An envelope without spans gives no session."""
        assert () == read_bytes(json.dumps(document).encode(), format="otel")

    def test_one_envelope_a_line(self) -> None:
        """Batches, one a line, are one session; a cut last line is noted."""
        data = b"\n".join(json.dumps(envelope(s)).encode() for s in TALK) + b'\n{"resourceSpans": [{'
        (found,) = read_bytes(data)

        assert (2, ["cut-tail"]) == (len(found.steps), [n.code for n in found.notes])

    def test_detection(self) -> None:
        """Envelopes are told by their key, also after a foreign line."""
        assert "otel" == detect(parse_source(b'{"x": 1}\n' + json.dumps(envelope()).encode(), "x"))
