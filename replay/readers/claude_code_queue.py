"""Prompts and notices that waited while Claude Code was busy.

Newer files hold what was sent of them as `queued_command` attachments. Older ones hold only the moves of
the queue: `enqueue` with the text, `remove` when it went out with the next request, `dequeue` when it
became a prompt of its own (a user line follows), `popAll` when the person took it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from replay.readers.claude_code_lines import Line


@dataclass
class Queue:
    """Follows the queue of one thread and tells what was sent during a turn."""

    attached: list[Any] = field(default_factory=list)
    """Prompts that the file holds as attachments, so that they are not taken twice."""
    _waiting: list[Any] = field(default_factory=list)

    @classmethod
    def over(cls, lines: Iterable[Line]) -> Queue:
        """A queue that knows which prompts the lines hold as attachments."""
        found = (line.value.get("attachment") for line in lines if line.kind == "attachment")
        return cls([a.get("prompt") for a in found if isinstance(a, dict) and a.get("type") == "queued_command"])

    def move(self, line: Line) -> Any:
        """Apply a `queue-operation`; what it sent to the model, or None."""
        operation, content = line.value.get("operation"), line.value.get("content")
        if operation == "enqueue" and content:
            self._waiting.append(content)
        elif operation == "popAll":
            self._waiting.clear()
        elif operation in ("dequeue", "remove") and self._waiting:
            sent = self._waiting.pop(0)
            return sent if operation == "remove" and sent not in self.attached else None
        return None

    def prompted(self, content: Any) -> None:
        """A user line says this: it does not wait any more."""
        if self._waiting and content in self._waiting:
            self._waiting.remove(content)
