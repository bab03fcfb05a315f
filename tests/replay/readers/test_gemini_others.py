"""Gemini CLI's stream output, checkpoints and prompt logs; Qwen Code; real sessions against what was sent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import ToolCall, ToolResult
from replay.detected import describe
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript, Usage

INIT = {"type": "init", "timestamp": "2026-01-01T00:00:00Z", "session_id": "run-1", "model": "g"}
STATS = {"total_tokens": 12, "input_tokens": 10, "output_tokens": 2}


def event(kind: str, **more: Any) -> dict[str, Any]:
    """An event of the stream output."""
    return {"type": kind, "timestamp": "2026-01-01T00:00:01Z", **more}


def use(name: str) -> dict[str, Any]:
    """A tool call of the stream output."""
    return event("tool_use", tool_name="ls", tool_id=name, parameters={"a": 1})


def result(name: str, **more: Any) -> dict[str, Any]:
    """A tool result of the stream output."""
    return event("tool_result", tool_id=name, **{"status": "success", "output": "ok", **more})


def piece(text: str) -> dict[str, Any]:
    """A piece of what the model says."""
    return event("message", role="assistant", content=text, delta=True)


PROMPT = event("message", role="user", content="go")


def lines(*rows: Any) -> bytes:
    """Rows as JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def run(*rows: Any) -> Transcript:
    """The one run of a stream."""
    (found,) = read_bytes(lines(INIT, *rows))
    return found


def said(found: Transcript) -> list[tuple[str, str, str]]:
    """Role, origin and text of every log message."""
    return [(m.role, m.origin, m.text) for m in found.messages]


def codes(found: Transcript) -> list[str]:
    """Codes of the notes."""
    return [note.code for note in found.notes]


class TestStream:
    """`--output-format stream-json`."""

    def test_pieces_are_joined(self) -> None:
        """Pieces of text and the calls after them are one response, up to the first result."""
        found = run(PROMPT, piece("I "), piece("look"), use("c1"), use("c2"), result("c1"), result("c2"), piece("done"),
                    event("result", status="success", stats=STATS))

        assert [("user", "human", "go"), ("assistant", "model", "I look"), ("tool", "tool", "ok"),
                ("tool", "tool", "ok"), ("assistant", "model", "done")] == said(found)
        assert (["c1", "c2"], [1, 4]) == ([c.id for c in found.messages[1].calls], [s.start for s in found.steps])

    def test_run_totals_are_kept_aside(self) -> None:
        """Tokens are known of the whole run only; they are in the extra facts, not in the steps."""
        found = run(PROMPT, piece("x"), event("result", status="success", stats=STATS))

        assert (STATS, Usage(), "g") == (found.extra["stats"], found.usage, found.model)

    @pytest.mark.parametrize(("more", "text", "is_error"), [
        ({"output": None}, "", False), ({"status": "error", "output": None, "error": {"message": "no"}}, "no", True),
        ({"output": {"a": 1}}, '{"a":1}', False), ({"status": "error", "output": "shown"}, "shown", True)])
    def test_shapes_of_a_result(self, more: dict[str, Any], text: str, is_error: bool) -> None:
        """A result may have no output, or only an error."""
        found = run(PROMPT, use("c1"), result("c1", **more))

        assert (text, is_error) == (found.messages[2].text, found.messages[2].results[0].is_error)

    def test_a_foreign_first_line(self) -> None:
        """A message that no Gemini CLI wrote is noted and kept out of the log."""
        (found,) = read_bytes(lines({"type": "message", "role": "user", "content": "outer"}, INIT, PROMPT))

        assert (["foreign-line"], ["go"]) == (codes(found), [m.text for m in found.messages])

    def test_two_runs_in_one_file(self) -> None:
        """Another session id begins another run; a foreign line before it belongs to that run."""
        one, two = read_bytes(lines(INIT, PROMPT, piece("x"), {"type": "message", "role": "user", "content": "outer"},
                                    {**INIT, "session_id": "run-2"}, PROMPT))

        assert [("run-1", []), ("run-2", ["foreign-line"])] == [(t.session_id, codes(t)) for t in (one, two)]

    @pytest.mark.parametrize(("end", "value"), [
        ({"status": "success"}, "unknown"), ({"status": "error", "error": {"message": "quota"}}, "fail")])
    def test_how_a_run_ended(self, end: dict[str, Any], value: str) -> None:
        """The result event tells how the run ended; without one nothing is known."""
        found = run(PROMPT, piece("x"), event("result", **end))

        assert (value, None) == (found.outcome.value if found.outcome else "", run(PROMPT).outcome)

    def test_a_call_that_was_cut_off(self) -> None:
        """A stream that ends in a call keeps the call."""
        assert ["c1"] == [c.id for c in run(PROMPT, use("c1")).main.tool_calls()]

    def test_odd_events(self) -> None:
        """Unknown events are named; rows that are no objects are noted; errors are kept."""
        found = run(PROMPT, event("zz"), 7, event("error", severity="warning", message="loop"))

        assert {"unknown-type", "not-an-object"} == set(codes(found))
        assert "loop" == found.extra["errors"]["0"]["message"]


class TestHistories:
    """Checkpoints and prompt logs."""

    CONTENTS = ({"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context"}]},
                {"role": "model", "parts": [{"text": "Got it. Thanks for the context!"}]},
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a b"}}}]},
                {"role": "model", "parts": [{"text": "done"}]})

    @pytest.mark.parametrize("document", [
        list(CONTENTS), {"history": list(CONTENTS), "authType": "x"},
        {"history": [{"type": "user", "text": "go"}], "clientHistory": list(CONTENTS), "commitHash": "c",
         "toolCall": {"name": "write_file", "args": {}}}], ids=["bare", "tagged", "before-a-tool"])
    def test_saved_histories(self, document: Any) -> None:
        """All three kinds of saved history give the same log; the program's own assent is no model call."""
        (found,) = read_bytes(json.dumps(document).encode(), name="checkpoint-a.json")

        assert ["injected", "injected", "human", "model", "tool", "model"] == [m.origin for m in found.messages]
        assert ("checkpoint-a", 2, 6, "gemini-cli") == (found.session_id, len(found.steps), found.message_count,
                                                        found.format)
        assert found.messages[3].calls[0].id == found.messages[4].results[0].call_id

    @pytest.mark.parametrize("odd", [None, 7, {"role": "user"}, {"role": "judge", "parts": []}])
    def test_a_content_of_a_wrong_shape(self, odd: Any) -> None:
        """A content that is none costs only itself."""
        (found,) = read_bytes(json.dumps([*self.CONTENTS, odd]).encode())

        assert (6, 1) == (found.message_count, len(found.notes))

    def test_prompts_only(self) -> None:
        """A log of prompts gives one session for each id, with what the person typed and nothing else."""
        rows = [{"sessionId": name, "messageId": n, "type": "user", "message": f"{name}{n}",
                 "timestamp": "2026-01-01T00:00:00Z"} for name, n in (("a", 0), ("b", 0), ("a", 1), ("a", 1))]
        one, two = read_bytes(json.dumps([*rows, {"x": 1}]).encode())

        assert [["a0", "a1"], ["b0"]] == [[m.text for m in t.messages] for t in (one, two)]
        assert ["a", "b"] == [one.session_id, two.session_id]
        assert (["duplicate", "bad-message"], 0) == (codes(one), len(one.steps))

    def test_chat_messages_are_not_taken(self) -> None:
        """An array of chat messages is not a saved history."""
        assert "gemini-cli" != detect(parse_source(b'[{"role": "user", "content": "x"}]', "x"))


def record(name: str, above: str | None, kind: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A record of Qwen Code."""
    said_by = "model" if kind == "assistant" else "user"
    row = {"uuid": name, "parentUuid": above, "sessionId": "q-1", "timestamp": "2026-01-01T00:00:00Z", "type": kind,
           "cwd": "/p", "version": "0.24.4", **more}
    return {**row, "message": {"role": said_by, "parts": list(parts)}} if parts else row


def answered(name: str, output: str) -> dict[str, Any]:
    """A function response part."""
    return {"functionResponse": {"id": name, "name": "ls", "response": {"output": output}}}


def billed(prompt: int) -> dict[str, Any]:
    """What the program reports of a response."""
    return {"subtype": "ui_telemetry", "systemPayload": {"uiEvent": {
        "event.name": "qwen-code.api_response", "input_token_count": prompt, "output_token_count": 1}}}


ASK = {"functionCall": {"id": "c1", "name": "ls", "args": {}}}
USED = {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2,
                          "totalTokenCount": 13, "cachedContentTokenCount": 4}, "model": "q", "contextWindowSize": 100}
QWEN = (record("1", None, "user", {"text": "go"}), record("2", "1", "system", **billed(10)),
        record("3", "2", "assistant", {"text": "hm", "thought": True}, ASK, **USED),
        record("4", "3", "tool_result", answered("c1", "out"), toolCallResult={"callId": "c1", "status": "error"}))


def qwen(*rows: Any) -> Transcript:
    """The one session of Qwen Code's records."""
    (found,) = read_bytes(lines(*rows))
    return found


class TestQwen:
    """Qwen Code, a fork with records of its own."""

    def test_records_are_read(self) -> None:
        """Prompt, response and result come in order; thoughts may be counted in the output already."""
        found = qwen(*QWEN)

        assert ["human", "model", "tool"] == [m.origin for m in found.messages]
        assert Usage(input_uncached=6, cache_read=4, output=3, reasoning=2) == found.usage
        assert ("gemini-cli", "q-1", "0.24.4", "q", 100, "/p", "qwen-code", 3) == (
            found.format, found.session_id, found.harness_version, found.model, found.window, found.cwd,
            found.extra["harness"], found.message_count)
        assert found.messages[2].results[0].is_error

    def compressed(self, *contents: dict[str, Any], **info: Any) -> dict[str, Any]:
        """A compression record."""
        return record("6", "5", "system", subtype="chat_compression", systemPayload={
            "info": {"originalTokenCount": 90, "newTokenCount": 20, **info}, "compressedHistory": list(contents)})

    def test_a_compression(self) -> None:
        """The first new text is the summary; what was said since the last response is still open."""
        found = qwen(*QWEN, record("5", "4", "system", **billed(50)), self.compressed(
            {"role": "user", "parts": [{"text": "the story so far"}]},
            {"role": "model", "parts": [{"text": "Got it. Thanks for the additional context!"}]},
            {"role": "user", "parts": [{"text": "a file"}]}, {"role": "model", "parts": [ASK]},
            triggerReason="token_limit"), record("7", "6", "assistant", {"text": "ok"}, **USED))
        (compaction,) = found.compactions

        assert ["summary", "injected", "injected", 1, 2] == [p.origin if isinstance(p, Message) else p
                                                            for p in compaction.window]
        assert (90, 20, "auto", 3) == (compaction.counter_before, compaction.counter_after, compaction.trigger,
                                       compaction.position)
        assert 70 == found.usage.input_total

    def test_a_result_whose_call_is_gone_is_gone_too(self) -> None:
        """After a compression of everything an open result would answer nothing."""
        found = qwen(*QWEN, record("5", "4", "system"), self.compressed(
            {"role": "user", "parts": [{"text": "S"}]}), record("7", "6", "assistant", {"text": "ok"}))

        assert 1 == len(found.compactions[0].window)

    def test_a_history_that_had_grown_before_it_was_written(self) -> None:
        """Turns that come later in the file were not in the window yet."""
        later = {"functionCall": {"id": "c2", "name": "ls", "args": {}}}
        found = qwen(*QWEN, record("5", "4", "system"), self.compressed(
            {"role": "user", "parts": [{"text": "S"}]}, {"role": "model", "parts": [ASK]},
            {"role": "user", "parts": [answered("c1", "out")]}, {"role": "model", "parts": [later]}),
            record("7", "6", "assistant", later))

        assert [1, 2] == list(found.compactions[0].window[1:])

    def test_a_branch_that_was_left(self) -> None:
        """The path to the last record is the session; what was left is abandoned, but billed."""
        found = qwen(*QWEN, record("8", "1", "assistant", {"text": "other"}, **USED))

        assert (["go", "other"], 1, 20) == ([m.text for m in found.messages], len(found.abandoned),
                                            found.usage.input_total)

    def test_sidechains_are_sub_agents(self) -> None:
        """Records of a sub-agent are a thread of their own."""
        found = qwen(*QWEN, record("a", "4", "user", {"text": "find"}, isSidechain=True, agentId="explore-1"),
                     record("b", "a", "assistant", {"text": "found"}, isSidechain=True, agentId="explore-1"))

        assert [("explore-1", ["nudge", "model"])] == [(t.id, [m.origin for m in t.messages]) for t in found.subagents]
        assert 3 == found.message_count

    @pytest.mark.parametrize("subtype", ["notification", "cron"])
    def test_the_program_in_a_persons_place(self, subtype: str) -> None:
        """A notice that starts a turn is a nudge."""
        found = qwen(*QWEN, record("5", "4", "user", {"text": "task done"}, subtype=subtype))

        assert ("nudge", subtype) == (found.messages[-1].origin, found.messages[-1].detail)

    @pytest.mark.parametrize("row", [
        record("5", "zz", "user", {"text": "x"}), record("4", "3", "tool_result", answered("c1", "out")),
        record("5", "4", "latch"), 7,
        record("5", "4", "system", subtype="chat_compression", systemPayload={"info": 3})])
    def test_damage_is_noted(self, row: Any) -> None:
        """A missing parent, a repeat, an unknown type, no object, an empty compression: one note, nothing lost."""
        found = qwen(*QWEN, row)

        assert (1, ["go"]) == (len(found.notes), [m.text for m in found.messages if m.origin == "human"][:1])

    def test_two_starts(self) -> None:
        """A second record without a parent begins the path that counts; the first is abandoned."""
        found = qwen(*QWEN, record("9", None, "user", {"text": "anew"}))

        assert (["anew"], 1) == ([m.text for m in found.messages], len(found.abandoned))


class TestReal:
    """Real sessions."""

    @pytest.mark.parametrize(("name", "messages", "calls"), [
        ("session-legacy-mid.json", 8, 4), ("session-legacy-small.json", 13, 9),
        ("stream-json-headless.jsonl", 11, 68)])
    def test_the_count_table(self, transcripts: Path, name: str, messages: int, calls: int) -> None:
        """Messages and tool calls of the public files are those of the table; no compaction is seen."""
        told = [describe(t) for t in read(transcripts / "gemini-cli" / name)]

        assert (messages, calls) == (sum(t["messages"] for t in told), sum(t["tool_calls"] for t in told))
        assert [] == [c for t in told for c in t["compactions"]]

    def test_the_public_stream_holds_two_runs(self, transcripts: Path) -> None:
        """The stream capture holds two runs, each with a foreign line before it."""
        found = read(transcripts / "gemini-cli" / "stream-json-headless.jsonl")

        assert [(41, [1]), (28, [92])] == [(len(t.steps), [n.line for n in t.notes]) for t in found]

    @pytest.mark.parametrize(("run", "count"), [("mid-three-turns", 4), ("small-one-turn", 0), ("small-six-turns", 5)])
    def test_recorded_views_are_what_was_sent(self, shared: Path, run: str, count: int) -> None:
        """Every step's recorded view is what Gemini CLI sent, save for copies of results and the changing context."""
        folder = shared / "wire" / "gemini-0.61.0" / run
        (found,) = read(next(folder.glob("session*.jsonl.gz")))

        assert count == len(found.compactions)
        assert sent(folder) == [seen(found, step.start) for step in found.steps]

    @pytest.mark.parametrize("run", ["qwen-0.15.10", "qwen-0.24.4"])
    def test_sessions_of_the_fork(self, shared: Path, run: str) -> None:
        """Qwen's sessions have a step a response, and every request that it reported is billed."""
        for path in sorted((shared / "wire" / run).glob("*/session*.jsonl.gz")):
            (found,) = read(path)
            rows = [json.loads(row) for row in gzip.decompress(path.read_bytes()).splitlines()]
            reported = [r["systemPayload"]["uiEvent"] for r in rows if r.get("subtype") == "ui_telemetry"]
            spent = sum(e["input_token_count"] for e in reported if e["event.name"] == "qwen-code.api_response")

            assert sum(r["type"] == "assistant" for r in rows) == len(found.steps)
            assert (spent, "gemini-cli") == (found.usage.input_total, found.format)


def seen(found: Transcript, start: int) -> list[tuple[str, str]]:
    """The recorded view at a point of the log, in pieces."""
    full = [c for c in found.compactions if c.position <= start]
    parts = [*full[-1].window, *range(full[-1].position, start)] if full else list(range(start))
    return [p for part in parts for p in pieces(found.messages[part] if isinstance(part, int) else part)]


def pieces(message: Message) -> list[tuple[str, str]]:
    """Texts, calls by their ids, results by their texts; of a context only its beginning."""
    kinds = [("call", b.id.split("__")[-1]) if isinstance(b, ToolCall) else
             ("result" if isinstance(b, ToolResult) else "text", b.text if hasattr(b, "text") else "")
             for b in message.blocks]
    return [(kind, text[:17] if text.startswith("<session_context") else text) for kind, text in kinds]


def sent(folder: Path) -> list[list[tuple[str, str]]]:
    """The views of a run's steps in the same pieces, without second copies of results."""
    table = folder / "items.jsonl"
    raw = table.read_bytes() if table.exists() else gzip.decompress((folder / "items.jsonl.gz").read_bytes())
    items = {row["id"]: row["item"] for row in map(json.loads, raw.splitlines())}
    views = []
    for row in map(json.loads, (folder / "requests.jsonl").read_bytes().splitlines()):
        if row["kind"] == "step":
            parts = [part for i in row["items"] for part in items[i]["parts"]]
            views.append([told for n, part in enumerate(parts) if part not in parts[:n] for told in native(part)])
    return views


def native(part: dict[str, Any]) -> list[tuple[str, str]]:
    """A part as it was sent, in the same pieces."""
    if "functionCall" in part:
        return [("call", part["functionCall"]["id"])]
    if "functionResponse" in part:
        return [("result", next(iter(part["functionResponse"]["response"].values())))]
    text = part["text"]
    return [("text", text[:17] if text.startswith("<session_context") else text)]
