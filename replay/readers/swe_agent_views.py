"""Recorded prompts of SWE-agent steps against the growing history: what the harness changed for the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from replay.blocks import Text, ToolCall
from replay.readers.common import ThreadBuilder
from replay.readers.swe_agent_attempts import prompt_of
from replay.transcript import Message, RecordedCompaction, Role

Native = Mapping[str, Any]
_ROLES: Mapping[str, Role] = {"system": "system", "assistant": "assistant", "tool": "tool"}


class _Entry(NamedTuple):
    """One message of the window: its log index (None: not in the log) and its text as shown."""

    place: int | None
    text: str


@dataclass
class Views:
    """Follows the window that the model saw from step to step and records every change that is not growth."""

    thread: ThreadBuilder
    items: Sequence[Native]
    """History items; item i stands at log index i."""
    entries: list[_Entry] = field(default_factory=list)
    seen: int = 0
    """How much of the log the window has taken in."""

    def compare(self, steps: Sequence[Native], made: Sequence[int | None]) -> None:
        """Record a compaction wherever a prompt differs from the window that the log so far would give."""
        for start, prompt in self._prompts(steps, made):
            self._grow(start)
            shown = [content_text(item.get("content")) for item in prompt]
            if len(shown) != len(self.entries) or any(e.text != t for e, t in zip(self.entries, shown, strict=True)):
                self._change(start, prompt, shown)

    def _prompts(self, steps: Sequence[Native], made: Sequence[int | None]) -> list[tuple[int, list[dict[str, Any]]]]:
        """Length of the log and prompt of every step of the history whose prompt is recorded, in order."""
        answers = [i for i, m in enumerate(self.items) if m.get("role") == "assistant" and not m.get("is_demo")]
        starts, after = dict(zip(answers, made, strict=True)), dict(pairwise(answers))
        found: dict[int, list[dict[str, Any]]] = {}
        for start, step in starts.items():
            name, prompt = prompt_of(steps[step]) if step is not None else ("", None)
            if prompt is None:
                continue
            if name == "messages" and len(prompt) not in (0, start):
                start = after.get(start, -1)
            if start >= 0:
                found[start] = prompt if name == "messages" else without_retry(prompt)
        return sorted(found.items())

    def _grow(self, start: int) -> None:
        self.entries += [_Entry(i, content_text(self.items[i].get("content"))) for i in range(self.seen, start)]
        self.seen = max(self.seen, start)

    def _change(self, start: int, prompt: Sequence[Native], shown: Sequence[str]) -> None:
        changed = [n for n, (e, t) in enumerate(zip(self.entries, shown, strict=False)) if e.text != t]
        if len(shown) == len(self.entries) and all(self._is_fresh_result(self.entries[n]) for n in changed):
            self._micro(start, changed, shown)
        else:
            self._full(start, prompt, shown)

    def _is_fresh_result(self, entry: _Entry) -> bool:
        """Whether the entry is an observation that was shown as the log has it."""
        if entry.place is None or not self.thread.messages[entry.place].results:
            return False
        return entry.text == content_text(self.items[entry.place].get("content"))

    def _micro(self, start: int, changed: Sequence[int], shown: Sequence[str]) -> None:
        """Observations whose text was replaced, one record a replacement text."""
        groups: dict[str, list[int]] = {}
        for n in changed:
            index = self.entries[n].place
            if index is not None:
                groups.setdefault(shown[n], []).append(index)
            self.entries[n] = _Entry(index, shown[n])
        for text, indices in groups.items():
            self.thread.compactions.append(RecordedCompaction(
                position=start, kind="micro", elided=tuple(indices), placeholder=text))

    def _full(self, start: int, prompt: Sequence[Native], shown: Sequence[str]) -> None:
        """Any other change: the prompt itself is the window; what the log holds as shown is kept by index."""
        window: list[int | Message] = []
        before, known = self.entries, self._known()
        self.entries = []
        for n, (native, text) in enumerate(zip(prompt, shown, strict=True)):
            places = known.get(text)
            index = places.pop(0) if places else None
            same = before[n].place if len(before) == len(shown) else None
            window.append(self._inserted(native, text, same) if index is None else index)
            self.entries.append(_Entry(index, text))
        self.thread.compactions.append(RecordedCompaction(position=start, kind="full", window=tuple(window)))

    def _known(self) -> dict[str, list[int]]:
        known: dict[str, list[int]] = {}
        blanked = {i for c in self.thread.compactions for i in c.elided}
        for index in range(self.seen):
            if index not in blanked:
                known.setdefault(content_text(self.items[index].get("content")), []).append(index)
        return known

    def _inserted(self, native: Native, text: str, same: int | None) -> Message:
        """A message of the window that the log does not hold like this; calls and ids are those of its original."""
        role = _ROLES.get(str(native.get("role")), "user")
        original = self._original(native) if same is None else self.thread.messages[same]
        if original is None:
            return Message(index=-1, role=role, blocks=(Text(text=text),), origin="injected")
        if original.results:
            results = tuple(replace(result, text=text, images=()) for result in original.results)
            return replace(original, index=-1, blocks=results)
        calls = tuple(b for b in original.blocks if isinstance(b, ToolCall))
        return replace(original, index=-1, blocks=(Text(text=text), *calls))

    def _original(self, native: Native) -> Message | None:
        """The log message that a changed one stands for, told by the call that it makes or answers."""
        ids = native.get("tool_call_ids")
        if not isinstance(ids, list) or not ids:
            return None
        for index in range(self.seen - 1, -1, -1):
            if self.items[index].get("tool_call_ids") == ids:
                return self.thread.messages[index]
        return None


def without_retry(prompt: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A prompt without the discarded response and the complaint that a retry puts behind the history."""
    if len(prompt) > 2 and prompt[-2].get("message_type") == "assistant" and prompt[-1].get("message_type") == "user":
        return prompt[:-2]
    return prompt


def content_text(content: Any) -> str:
    """The text of a native content, a string or parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(p.get("text") or "") for p in content if isinstance(p, dict) and "text" in p)
