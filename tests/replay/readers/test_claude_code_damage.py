"""Damaged and odd Claude Code files: nothing raises, nothing else is lost, each fault has one clear note."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from replay.readers import read_bytes
from replay.readers.claude_code import ClaudeCode
from replay.readers.source import parse_source
from replay.transcript import Transcript

Row = dict[str, Any]


def row(kind: str, uuid: str, parent: str | None, message: Any, **more: Any) -> Row:
    """A record that holds a message."""
    return {"parentUuid": parent, "isSidechain": False, "sessionId": "s", "version": "2.1.9", "uuid": uuid,
            "timestamp": "2026-01-01T00:00:00Z", "type": kind, "message": message, **more}


def rows() -> list[Row]:
    """A session of a prompt, a call, its result and an answer."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    return [
        row("user", "u", None, {"role": "user", "content": "go"}),
        row("assistant", "a", "u", {"id": "m1", "model": "x", "usage": usage, "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}]}),
        row("user", "r", "a", {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "x"}]}]}),
        row("assistant", "b", "r", {"id": "m2", "model": "x", "usage": usage, "content": "ok"}),
    ]


def raw(*found: Any) -> bytes:
    """The bytes of a file of these records."""
    return b"\n".join(json.dumps(f, ensure_ascii=False).encode() for f in found)


def parsed(data: bytes) -> Transcript:
    """The session of a file's bytes."""
    (t,) = read_bytes(data, format="claude-code")
    return t


def codes(t: Transcript) -> list[tuple[str, int | None]]:
    """Code and line of each note."""
    return [(n.code, n.line) for n in t.notes]


class TestRecords:
    """Records that are not what they should be."""

    @pytest.mark.parametrize("value", ["text", 42, [1], None, True])
    def test_value_that_is_no_object(self, value: object) -> None:
        """A JSON value that is no object is noted with its line and costs nothing else."""
        t = parsed(raw(value, *rows()))
        assert ([("not-an-object", 1)], 4) == (codes(t), t.message_count)

    @pytest.mark.parametrize(("odd", "name"), [
        ({"type": "zz-latch"}, "zz-latch"), ({"silly": 1}, "(no type)"), ({"type": 7}, "(no type)"),
        ({"type": "system", "subtype": "zz"}, "system/zz"),
        ({"type": "progress", "data": {"type": "zz"}}, "progress/zz"),
        ({"type": "attachment", "attachment": {"type": "zz"}}, "attachment/zz"),
    ])
    def test_unknown_types_have_one_note_each(self, odd: Row, name: str) -> None:
        """An unknown type is named once, with its count and first line."""
        t = parsed(raw(odd, *rows(), odd, odd))
        assert [("unknown-type", 1)] == codes(t)
        assert name in t.notes[0].text
        assert "x 3" in t.notes[0].text
        assert 4 == t.message_count

    def test_known_side_records_have_no_note(self) -> None:
        """Titles, undo data, modes and progress are known and silent."""
        kinds = ["summary", "file-history-snapshot", "file-history-delta", "ai-title", "custom-title", "agent-name",
                 "last-prompt", "mode", "permission-mode", "pr-link", "bridge-session"]
        side = [{"type": kind, "sessionId": "s"} for kind in kinds]
        systems = [{"type": "system", "subtype": sub, "sessionId": "s"} for sub in (
            "local_command", "api_error", "turn_duration", "stop_hook_summary", "informational", "away_summary")]
        progress = [{"type": "progress", "data": {"type": sub}, "sessionId": "s"} for sub in (
            "agent_progress", "bash_progress", "hook_progress", "mcp_progress", "waiting_for_task", "query_update")]
        t = parsed(raw(*side, *systems, *progress, *rows()))
        assert ([], 4) == (codes(t), t.message_count)

    @pytest.mark.parametrize("message", ["error", None, 7, []])
    @pytest.mark.parametrize("kind", ["user", "assistant"])
    def test_message_that_is_no_object(self, kind: str, message: object) -> None:
        """A record whose message is no object is noted and kept out."""
        t = parsed(raw(*rows(), row(kind, "z", "b", message)))
        assert ([("bad-message", 5)], 4, 2) == (codes(t), t.message_count, len(t.steps))

    @pytest.mark.parametrize("message", [{"role": "user"}, {"content": None}, {"content": 7}, {"content": {"a": 1}}])
    def test_missing_content(self, message: Row) -> None:
        """A message without usable content is an empty message with a note."""
        t = parsed(raw(*rows(), row("user", "z", "b", message)))
        assert ([("no-content", 5)], 5, ()) == (codes(t), t.message_count, t.messages[-1].blocks)

    @pytest.mark.parametrize("part", ["words", 7, {"type": "text"}, {"type": "text", "text": 1},
                                      {"type": "tool_use", "name": "T", "input": {}}, {"type": "tool_result"}])
    def test_malformed_block(self, part: object) -> None:
        """A block that lacks what it needs is noted; the rest of its message stays."""
        t = parsed(raw(*rows(), row("user", "z", "b", {"content": [part, {"type": "text", "text": "rest"}]})))
        assert [("bad-block", 5)] == codes(t)
        assert t.messages[-1].text.endswith("rest")

    def test_result_without_its_call(self) -> None:
        """Results whose call is not in the file are kept, with one note that counts them."""
        parts = [{"type": "tool_result", "tool_use_id": f"gone{n}", "content": "y"} for n in range(2)]
        lost = [row("user", f"x{n}", "b", {"content": [part]}) for n, part in enumerate(parts)]
        t = parsed(raw(*rows(), *lost))
        assert ([("orphan-result", 5)], ["x", "y", "y"]) == (codes(t), [r.text for m in t.messages for r in m.results])
        assert "x 2" in t.notes[0].text

    @pytest.mark.parametrize(("field", "value"), [
        ("timestamp", 7), ("timestamp", "yesterday"), ("uuid", 5), ("parentUuid", {}), ("sessionId", None), ("cwd", []),
        ("version", 2), ("requestId", {}), ("isSidechain", "no"), ("isMeta", "yes"), ("toolUseResult", "Error"),
        ("attachment", 3), ("origin", "person"), ("origin", {"kind": 3}),
    ])
    def test_field_of_a_wrong_type(self, field: str, value: object) -> None:
        """A field of a wrong type costs at most itself."""
        found = rows()
        found[0][field] = found[3][field] = value
        assert (4, 2) == ((t := parsed(raw(*found))).message_count, len(t.steps))

    @pytest.mark.parametrize("usage", [
        None, [], "many", {}, {"output_tokens": "5"}, {"output_tokens": -1, "input_tokens": 0}])
    def test_usage_of_a_wrong_shape(self, usage: object) -> None:
        """Usage that says nothing is no usage."""
        found = rows()
        found[3]["message"]["usage"] = usage
        assert None is parsed(raw(*found)).steps[1].usage


class TestBytes:
    """Faults below the records, which must not cost a message here."""

    def test_cut_last_record(self) -> None:
        """A cut last line is noted with its byte offset; the records before it are whole."""
        data = raw(*rows())
        t = parsed(data + b'\n{"parentUuid":"b","type":"us')
        assert [("cut-tail", 5, len(data) + 1)] == [(n.code, n.line, n.byte) for n in t.notes]
        assert 4 == t.message_count

    def test_bad_line_in_the_middle(self) -> None:
        """A broken line in the middle costs only itself; the chain goes on."""
        first, *rest = rows()
        t = parsed(raw(first) + b'\n{"broken": \n' + raw(*rest))
        assert ([("bad-json", 2)], 4, ()) == (codes(t), t.message_count, t.abandoned)

    @pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
    def test_other_line_ends_inside_a_string(self, mark: str) -> None:
        """Only a line feed ends a record."""
        found = rows()
        found[0]["message"]["content"] = f"first{mark}second"
        data = raw(*found).replace(json.dumps(mark).strip('"').encode(), mark.encode())
        assert f"first{mark}second" == parsed(data).messages[0].text

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_byte_order_mark(self, encoding: str) -> None:
        """A byte-order mark does not cost the first prompt."""
        t = parsed(raw(*rows()).decode().encode(encoding))
        assert ("go", ["byte-order-mark"]) == (t.messages[0].text, [n.code for n in t.notes])

    def test_spaces_and_line_ends(self) -> None:
        """Spaces after colons, CRLF and blank lines change nothing."""
        data = b"\r\n\r\n".join(json.dumps(r, indent=None, separators=(" , ", " : ")).encode() for r in rows())
        t = parsed(data + b"\r\n")
        assert (4, 2, 10, []) == (t.message_count, len(t.steps), t.usage.output, codes(t))

    def test_two_records_on_one_line(self) -> None:
        """Records glued on one line are both read."""
        a, b, c, d = rows()
        t = parsed(raw(a) + b"\n" + raw(b) + raw(c) + b"\n" + raw(d))
        assert ([("glued-values", 2)], 4) == (codes(t), t.message_count)


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_is_survived(seed: int) -> None:
    """Whatever field is lost or replaced, the reader gives a session whose parts agree with each other."""
    rng = random.Random(seed)
    junk: list[Any] = [None, 0, "", "x", [], {}, [1], {"type": []}, True, 1e9]

    def damaged(value: Any) -> Any:
        if rng.random() < 0.04:
            return rng.choice(junk)
        if isinstance(value, dict):
            return {k: damaged(v) for k, v in value.items() if rng.random() > 0.03}
        return [damaged(v) for v in value] if isinstance(value, list) else value

    found = [damaged(r) for _ in range(6) for r in rows()]
    rng.shuffle(found)
    for t in ClaudeCode().read(parse_source(raw(*found), "-")):
        for thread in t.threads:
            assert list(range(len(thread.messages))) == [m.index for m in thread.messages]
            assert all(s.response in (None, s.start) for s in thread.steps)
            called = {call.id: m.index for m in reversed(thread.messages) for call in m.calls}
            assert all(called.get(r.call_id, -1) < m.index for m in thread.messages for r in m.results)
