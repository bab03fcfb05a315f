"""Compactions that Codex recorded: the new window, in terms of the log wherever it holds the same content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Opaque, Reasoning, Text
from replay.readers.codex_log import RolloutLog
from replay.readers.codex_records import SUMMARIES, Item, type_of
from replay.readers.common import ThreadBuilder, leftover, whole
from replay.transcript import Message, RecordedCompaction

Key = tuple[str, tuple[Block, ...]]
_FRAMES = ("Another language model started to solve this problem",
           "You were originally given instructions from a user over one or more turns")
"""How the user message that carries a summary begins."""


def record(log: RolloutLog, item: Item) -> None:
    """Record a `compacted` item: its replacement history becomes the window."""
    log.close()
    text = item.payload.get("message")
    summary = text if isinstance(text, str) else ""
    label = f"{log.thread.id}/compaction-{len(log.thread.compactions) + 1}"
    before = log.tokens.context
    if log.take_request(summary, label):
        before = log.tokens.context_before
    history = item.payload.get("replacement_history")
    if isinstance(history, list):
        window = _window(log, history, summary, item)
    else:
        window = _rebuilt(log.thread.messages, summary, item)
    summary = summary or _carried(window)
    _append(log, window, summary, before, item, leftover(item.payload, "message", "replacement_history"))


def untaken(log: RolloutLog) -> None:
    """A server-side summary that no `compacted` record followed: it alone is the new window."""
    if log.encrypted is None:
        return
    log.close()
    head = Message(index=-1, role="assistant", blocks=(log.encrypted,), origin="summary")
    log.encrypted = None
    log.thread.compactions.append(RecordedCompaction(
        position=len(log.thread.messages), kind="full", window=(head,), counter_before=log.tokens.context))


def _append(log: RolloutLog, window: tuple[int | Message, ...], summary: str, before: int | None, item: Item,
            extra: Mapping[str, Any]) -> None:
    log.encrypted = None
    log.thread.compactions.append(RecordedCompaction(
        position=len(log.thread.messages), kind="full", window=window, counter_before=before,
        summary=summary or None, summary_readable=bool(summary), line=item.line, extra=extra))


def _window(log: RolloutLog, history: Sequence[Any], summary: str, item: Item) -> tuple[int | Message, ...]:
    """The history's messages: a log index where the log holds the same, else the message itself.

    Matched from the end, so that of several equal log messages the latest ones are taken. A response that was
    kept without its reasoning is a message of its own; its extra `log_index` says where it came from.
    """
    same: dict[Key, list[int]] = {}
    spoken: dict[Key, int] = {}
    for message in log.thread.messages:
        same.setdefault((message.role, _content(message)), []).append(message.index)
        spoken[message.role, _spoken(message)] = message.index
    window: list[int | Message] = []
    for message in reversed(_messages(log, history, item)):
        found = same.get((message.role, _content(message)))
        source = spoken.get((message.role, message.blocks)) if message.role == "assistant" else None
        window.append(found.pop() if found else _inserted(message, summary, source))
    return tuple(reversed(window))


def _content(message: Message) -> tuple[Block, ...]:
    """The blocks that hold anything: a reasoning item can be recorded without its text."""
    return tuple(b for b in message.blocks if not isinstance(b, Reasoning) or b.text or b.opaque_bytes)


def _spoken(message: Message) -> tuple[Block, ...]:
    return tuple(b for b in message.blocks if not isinstance(b, Reasoning))


def _messages(log: RolloutLog, history: Sequence[Any], item: Item) -> list[Message]:
    """The history read like the items of a rollout of its own."""
    reader = RolloutLog(ThreadBuilder(id=log.thread.id), log.prompts, own=False, started=True, names=log.names)
    for native in history:
        if not isinstance(native, dict):
            continue
        kind = type_of(native) or "message"
        part = Item("response_item", kind, native, item.line, item.stamp)
        if kind in SUMMARIES:
            reader.close()
            size = len(str(native.get("encrypted_content") or ""))
            reader.thread.add("assistant", [Opaque(label="compaction", size_bytes=size)], "summary", line=item.line)
        else:
            reader.item(part)
    reader.close()
    return reader.thread.messages


def _inserted(message: Message, summary: str, source: int | None) -> Message:
    if message.origin == "summary" or (message.role == "user" and _carries(message.text, summary)):
        return replace(message, index=-1, origin="summary", detail=None)
    extra = message.extra if source is None else MappingProxyType({**message.extra, "log_index": source})
    return replace(message, index=-1, extra=extra)


def _carries(text: str, summary: str) -> bool:
    return (bool(summary) and text.endswith(summary)) or text.startswith(_FRAMES)


def _carried(window: Sequence[int | Message]) -> str:
    """The readable summary in a window whose `compacted` record has none of its own."""
    texts = (part.text for part in window if isinstance(part, Message) and part.origin == "summary")
    return next((text for text in texts if text), "")


def _rebuilt(messages: Sequence[Message], summary: str, item: Item) -> tuple[int | Message, ...]:
    """The window of versions that stored no history: initial context, the person's messages, the summary."""
    first = next((m.index for m in messages if m.origin in ("human", "nudge", "model")), len(messages))
    kept = [m.index for m in messages if m.index < first or m.origin == "human"]
    if not summary:
        return tuple(kept)
    return (*kept, Message(index=-1, role="user", blocks=(Text(text=summary),), origin="summary", line=item.line))


def rolled_back(log: RolloutLog, item: Item) -> None:
    """Move the turns that a rollback dropped out of the log, together with their steps."""
    log.close()
    log.settle()
    turns = whole(item.payload.get("num_turns"))
    prompts = [m.index for m in log.thread.messages if m.origin in ("human", "nudge")]
    if turns and prompts:
        _cut(log, _context_start(log.thread.messages, prompts[-min(turns, len(prompts))]), item)


def _context_start(messages: Sequence[Message], prompt: int) -> int:
    """Where a turn starts: context that was injected just before its prompt belongs to it."""
    first = next((m.index for m in messages if m.origin == "model"), prompt)
    start = prompt
    while start > first and messages[start - 1].origin == "injected":
        start -= 1
    return start


def _cut(log: RolloutLog, cut: int, item: Item) -> None:
    thread = log.thread
    line = thread.messages[cut].line or 0
    log.unanswered = {name: at for name, at in log.unanswered.items() if at < line}
    branch = ThreadBuilder(id=f"{thread.id}/rolled-back-{item.line}")
    branch.messages = [replace(m, index=m.index - cut) for m in thread.messages[cut:]]
    kept = [s for s in thread.steps if s.start < cut]
    branch.steps = [replace(s, number=n, start=s.start - cut, response=None if s.response is None else s.response - cut)
                    for n, s in enumerate(thread.steps[len(kept):], 1)]
    del thread.messages[cut:], log.counts[cut:]
    thread.steps[:] = kept
    thread.compactions[:] = [c for c in thread.compactions if c.position <= cut]
    log.side.append(branch.build())
