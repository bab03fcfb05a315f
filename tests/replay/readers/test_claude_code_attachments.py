"""What the program added to a user turn of a Claude Code session: attachments, and text that waited in the queue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.blocks import Opaque
from replay.readers.claude_code import ClaudeCode
from replay.readers.source import parse_source
from replay.transcript import Transcript

Row = dict[str, Any]


def row(kind: str, uuid: str, parent: str | None, **more: Any) -> Row:
    """A record of the chain."""
    return {"parentUuid": parent, "isSidechain": False, "cwd": "/w", "sessionId": "s", "version": "2.1.9",
            "uuid": uuid, "timestamp": f"2026-01-01T00:00:{len(uuid):02d}.000Z", "type": kind, **more}


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> Row:
    """A user line."""
    return row("user", uuid, parent, message={"role": "user", "content": content}, **more)


def said(uuid: str, parent: str | None, response: str, *parts: Row, output: int = 5, **more: Any) -> Row:
    """A line of a response."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7,
             "output_tokens": output}
    message = {"id": response, "role": "assistant", "model": "claude-x", "content": list(parts), "usage": usage}
    return row("assistant", uuid, parent, message=message, requestId=f"req-{response}", **more)


def text(words: str) -> Row:
    """A text block."""
    return {"type": "text", "text": words}


def call(name: str, **arguments: Any) -> Row:
    """A call block whose id is `name`."""
    return {"type": "tool_use", "id": name, "name": "Bash", "input": arguments}


def result(uuid: str, parent: str | None, name: str, content: Any = "done", **more: Any) -> Row:
    """A user line with the result of a call."""
    part = {"type": "tool_result", "tool_use_id": name, "content": content, **more}
    return user(uuid, parent, [part])


def attached(uuid: str, parent: str | None, kind: str, **fields: Any) -> Row:
    """An attachment line."""
    return row("attachment", uuid, parent, attachment={"type": kind, **fields})


def read(*rows: Any) -> Transcript:
    """The session of these records."""
    data = b"\n".join(json.dumps(r).encode() for r in rows)
    (transcript,) = ClaudeCode().read(parse_source(data, "case.jsonl"))
    return transcript


def shape(transcript: Transcript) -> list[str]:
    """Origin (and kind) of each message of the main log."""
    return [m.origin + (f":{m.detail}" if m.detail else "") for m in transcript.messages]


class TestAttachments:
    """What the program attached to a user turn."""

    def test_results_come_before_what_is_attached(self) -> None:
        """An attachment written before the result of the same turn follows it in the log."""
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")),
                 attached("x", "a", "date_change", newDate="1 May"), result("r", "a", "c1"),
                 said("z", "x", "n", text("end")))
        assert ["human", "model", "tool", "injected:date_change", "model"] == shape(t)
        assert 4 == t.message_count

    @pytest.mark.parametrize(("kind", "fields", "expected"), [
        ("edited_text_file", {"filename": "a.py", "snippet": "1 x"}, "a.py\n1 x"),
        ("hook_success", {"content": "context", "stdout": "context"}, "context"),
        ("hook_additional_context", {"content": ["one", "two"]}, "one\ntwo"),
        ("file", {"filename": "a", "content": {"type": "text", "file": {"content": "body"}}}, "a\nbody"),
        ("task_reminder", {"content": [{"id": "1", "status": "pending", "subject": "Write"}]}, "#1 [pending] Write"),
        ("diagnostics", {"files": [{"uri": "a.go", "diagnostics": [
            {"message": "unused", "severity": "Error", "range": {"start": {"line": 3, "character": 1}}}]}]},
         "a.go\n3:1 Error unused"),
        ("deferred_tools_delta", {"addedLines": ["A", "B"], "removedNames": []}, "A\nB"),
        ("zz_new", {"content": "news"}, "news"),
    ])
    def test_text_that_was_sent(self, kind: str, fields: Row, expected: str) -> None:
        """The text of an attachment is what its recorded fields hold."""
        t = read(user("u", None, "go"), attached("x", "u", kind, **fields), said("a", "x", "m", text("ok")))
        assert (f"injected:{kind}", expected) == (shape(t)[1], t.messages[1].text)

    @pytest.mark.parametrize(("kind", "fields"), [
        ("hook_success", {"content": "", "stdout": "{}"}), ("hook_system_message", {"content": "for you"}),
        ("command_permissions", {"allowedTools": []}), ("hook_non_blocking_error", {"stderr": "x"}),
        ("deferred_tools_delta", {"addedLines": []}), ("zz_new", {"shown": 1}),
    ])
    def test_what_only_the_person_saw_is_not_in_the_log(self, kind: str, fields: Row) -> None:
        """Attachments for the screen alone, and empty ones, are no messages."""
        t = read(user("u", None, "go"), attached("x", "u", kind, **fields), said("a", "x", "m", text("ok")))
        assert ["human", "model"] == shape(t)

    def test_reminder_without_recorded_text_is_opaque(self) -> None:
        """A reminder that the program worded itself marks its place with an opaque block."""
        t = read(user("u", None, "go"), attached("x", "u", "task_reminder", content=[], itemCount=0))
        assert (Opaque(label="task_reminder", size_bytes=0),) == t.messages[1].blocks

    def test_queued_prompt_is_the_person_s(self) -> None:
        """A prompt typed while the model worked is human; a background notice is injected."""
        t = read(user("u", None, "go"), attached("x", "u", "queued_command", prompt="also this", commandMode="prompt"),
                 attached("y", "x", "queued_command", prompt="<task-notification>\ndone"))
        assert ["human", "human:queued_command", "injected:task_notification"] == shape(t)


class TestQueue:
    """Files whose queue was not written as attachments."""

    def queue(self, operation: str, stamp: str = "2026-01-01T00:00:01.500Z", **more: Any) -> Row:
        """A move of the queue."""
        return {"type": "queue-operation", "operation": operation, "timestamp": stamp, "sessionId": "s", **more}

    def test_removed_text_was_sent_with_the_next_request(self) -> None:
        """Text that left the queue during a turn follows the tool results and is seen by the next step."""
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")), self.queue("enqueue", content="and docs"),
                 self.queue("remove"), result("r", "a", "c1"), said("zz", "r", "n", text("ok")))
        assert ["human", "model", "tool", "human:queued_command", "model"] == shape(t)

    def test_text_that_was_sent_after_a_response_waits(self) -> None:
        """A move that was written before an earlier response does not reach that response."""
        t = read(user("u", None, "go"), self.queue("enqueue", content="later"),
                 self.queue("remove", "2026-01-01T00:00:05.000Z"), said("aa", "u", "m", call("c1")),
                 result("r", "aa", "c1"), said("zzzzzzz", "r", "n", text("ok")))
        assert ["human", "model", "tool", "human:queued_command", "model"] == shape(t)

    @pytest.mark.parametrize("operation", ["dequeue", "popAll"])
    def test_text_that_was_not_sent_in_the_turn_is_no_message(self, operation: str) -> None:
        """Text that became a prompt of its own, or was taken back, is not added."""
        t = read(user("u", None, "go"), self.queue("enqueue", content="x"), self.queue(operation), self.queue("remove"))
        assert ["human"] == shape(t)

    def test_text_that_is_attached_is_not_taken_twice(self) -> None:
        """Where the file holds the queued prompt as an attachment, the queue adds nothing."""
        t = read(user("u", None, "go"), self.queue("enqueue", content="x"), self.queue("remove"),
                 attached("q", "u", "queued_command", prompt="x"))
        assert ["human", "human:queued_command"] == shape(t)

    def test_text_that_came_as_a_user_line_leaves_the_queue(self) -> None:
        """A queued notice that became a user line without a move is not sent again by the next one."""
        t = read(user("u", None, "go"), self.queue("enqueue", content="first"), user("v", "u", "first"),
                 self.queue("enqueue", content="second"), self.queue("remove"))
        assert ["go", "first", "second"] == [m.text for m in t.messages]
