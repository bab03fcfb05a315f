"""Sessions of the OpenAI Codex CLI: rollout files of every version, and `codex exec --json` streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from replay.blocks import Reasoning, Text
from replay.readers import codex_compaction, codex_exec, codex_fork
from replay.readers.codex_log import RolloutLog
from replay.readers.codex_prompts import prompts
from replay.readers.codex_records import ENVELOPES, RESPONSE_ITEMS, Item, Rollout, is_bare_header, rollout, type_of
from replay.readers.common import ThreadBuilder, leftover, whole
from replay.readers.source import Source
from replay.transcript import NOTHING, Outcome, ReadNote, Transcript

_SAMPLE = 50


class Codex:
    """Reads sessions of OpenAI Codex CLI (Rust versions up to 0.171, and the bare files before them).

    A rollout holds one session. Forks keep their parent's messages in the log, but not its requests;
    requests that wrote a summary and turns that were rolled back are under `abandoned`.
    """

    name = "codex"

    def sniff(self, source: Source) -> int:
        """95 for records in Codex's envelope, 90 for an exec stream, less for bare response items."""
        document = source.document
        if isinstance(document, dict) and "session" in document and isinstance(document.get("items"), list):
            return 70
        objects = source.objects(_SAMPLE)
        if any(type_of(o) in ENVELOPES and isinstance(o.get("payload"), dict) for o in objects):
            return 95
        if codex_exec.is_stream(objects):
            return 90
        return _sniff_bare(objects)

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The one session of a file."""
        if codex_exec.is_stream(source.objects(_SAMPLE)):
            return (codex_exec.transcript(source),)
        return (_transcript(source, rollout(source)),)


def _sniff_bare(objects: list[dict[str, Any]]) -> int:
    if any("payload" in o or "message" in o for o in objects):
        return 0
    items = sum(1 for o in objects if type_of(o) in RESPONSE_ITEMS and _is_response_item(o))
    if objects and objects[0].get("type") is None and is_bare_header(objects[0]) and "messages" not in objects[0]:
        return 80 if items or len(objects) == 1 else 40
    return 60 if items and items * 2 >= len(objects) else 0


def _is_response_item(native: Mapping[str, Any]) -> bool:
    content = native.get("content")
    parts = content if isinstance(content, list) else []
    return native.get("type") != "message" or any(
        isinstance(p, dict) and p.get("type") in ("input_text", "output_text", "input_image") for p in parts)


def _transcript(source: Source, found: Rollout) -> Transcript:
    has_messages = any(item.kind == "response_item" for item in found.items)
    items = found.items if has_messages else sorted((*found.items, *found.copies), key=lambda item: item.line)
    headers = codex_fork.metas(items)
    header = headers[0] if headers else NOTHING
    name = header.get("id")
    session = name if isinstance(name, str) and name else Path(source.path).stem
    log = RolloutLog(ThreadBuilder(id=session), prompts(found.copies), _events_by_call(found.copies))
    _replay(log, items, has_messages)
    notes = [*found.notes, *_header_notes(headers, bool(items)), *log.notes, *_unanswered(log)]
    thread = log.thread.build()
    extra = dict(leftover(header, "id", "cwd", "cli_version", "base_instructions", "instructions"))
    if found.unknown:
        extra["unknown_records"] = tuple(found.unknown)
    return Transcript(
        format="codex", session_id=session, path=source.path, main=thread, abandoned=tuple(log.side),
        notes=tuple(sorted(notes, key=lambda n: n.line or 0)), parent_session=codex_fork.parent_of(headers),
        harness_version=_plain(header.get("cli_version")), model=log.model, window=log.tokens.window or log.window,
        cwd=_plain(header.get("cwd")), system_prompt=_instructions(header), outcome=log.outcome,
        message_count=sum(log.counts), extra=extra or NOTHING)


def _plain(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _instructions(header: Mapping[str, Any]) -> str | None:
    base = header.get("base_instructions")
    text = base.get("text") if isinstance(base, dict) else base
    return _plain(text) or _plain(header.get("instructions"))


def _header_notes(headers: list[Mapping[str, Any]], has_items: bool) -> list[ReadNote]:
    if not headers and has_items:
        return [ReadNote(code="no-header", text="no session_meta (a later chunk, or a cut file); "
                                                "the session is named after the file")]
    base = headers[0].get("history_base") if headers else None
    if isinstance(base, dict) and base.get("thread_id"):
        return [ReadNote(code="history-elsewhere", line=1,
                         text=f"the first part of the history is only in the file of session {base['thread_id']}")]
    return []


def _unanswered(log: RolloutLog) -> list[ReadNote]:
    return [ReadNote(code="call-without-result", line=line,
                     text=f"no result of {log.names[name]} ({name}) was recorded")
            for name, line in log.unanswered.items()]


def _events_by_call(items: list[Item]) -> dict[str, dict[str, Any]]:
    """The UI's records of finished tool calls."""
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        payload = item.payload
        if item.type == "item_completed" and isinstance(payload.get("item"), dict):
            payload = payload["item"]
            name = payload.get("id") if payload.get("type") != "UserMessage" else None
        else:
            name = payload.get("call_id") if item.type.endswith(("_end", "_response")) else None
        if isinstance(name, str):
            found[name] = payload
    return found


def _replay(log: RolloutLog, items: list[Item], has_messages: bool) -> None:
    copied = codex_fork.copied(items)
    log.own = copied == 0
    for index, item in enumerate(items):
        if index == copied:
            log.close()
            log.own = True
        if item.kind == "response_item":
            _response_item(log, item)
        elif item.kind == "event_msg":
            _event(log, item, has_messages)
        elif handler := _RECORDS.get(item.kind):
            handler(log, item)
    log.close()
    _flush_failure(log, items[-1] if items else None)
    log.settle()
    if not has_messages and log.thread.messages:
        log.notes.append(ReadNote(code="events-only", text="the file holds no response items; "
                                                           "the log was read from the UI's events"))


def _response_item(log: RolloutLog, item: Item) -> None:
    if log.encrypted is not None and item.type in ("message", "reasoning") and not log.open.blocks:
        codex_compaction.untaken(log)
    log.item(item)


def _event(log: RolloutLog, item: Item, has_messages: bool) -> None:
    handler = _EVENTS.get(item.type)
    if handler is not None:
        handler(log, item)
    elif not has_messages:
        _only_event(log, item)


def _only_event(log: RolloutLog, item: Item) -> None:
    """Events stand for messages where a file has nothing else."""
    text = item.payload.get("message", item.payload.get("text"))
    if not isinstance(text, str):
        return
    if item.type == "user_message":
        log.prompt(text, item)
    elif item.type == "agent_message":
        log.say([Text(text=text)], item, messages=1)
    elif item.type == "agent_reasoning":
        log.say([Reasoning(text=text)], item)


def _turn_context(log: RolloutLog, item: Item) -> None:
    log.model = _plain(item.payload.get("model")) or log.model


def _token_count(log: RolloutLog, item: Item) -> None:
    info = item.payload.get("info")
    usage = log.tokens.observe(info)
    if usage is None:
        log.after_compaction(info)
    log.measured(usage, item)


def _usage_record(log: RolloutLog, item: Item) -> None:
    payload = item.payload
    response = _plain(payload.get("response_id"))
    log.measured(log.tokens.record(payload.get("usage"), response), item, response)


def _turn_started(log: RolloutLog, item: Item) -> None:
    log.close()
    _flush_failure(log, item)
    log.window = whole(item.payload.get("model_context_window")) or log.window


def _turn_completed(log: RolloutLog, item: Item) -> None:
    log.close()
    reason = _message(item.payload.get("error"))
    log.failure = reason or log.failure
    failure = log.failure
    _flush_failure(log, item)
    if log.own:
        detail = failure or _plain(item.payload.get("last_agent_message"))
        log.outcome = Outcome(value="fail" if failure else "unknown", source="task_complete", detail=detail)


def _turn_aborted(log: RolloutLog, item: Item) -> None:
    log.close()
    reason = _plain(item.payload.get("reason")) or "aborted"
    _flush_failure(log, item)
    log.interrupted(reason)
    if log.own:
        log.outcome = Outcome(value="partial", source="turn_aborted", detail=reason)


def _error(log: RolloutLog, item: Item) -> None:
    log.failure = _message(item.payload) or "error"


def _flush_failure(log: RolloutLog, item: Item | None) -> None:
    if log.failure is not None and item is not None:
        log.failed(log.failure, item.time)
    log.failure = None


def _message(value: Any) -> str | None:
    return _plain(value.get("message")) if isinstance(value, dict) else _plain(value)


def _other_agent(log: RolloutLog, item: Item) -> None:
    log.injected(item, "agent_message")


_RECORDS: Mapping[str, Callable[[RolloutLog, Item], None]] = {
    "turn_context": _turn_context, "compacted": codex_compaction.record, "token_usage_record": _usage_record,
    "inter_agent_communication": _other_agent,
}
_EVENTS: Mapping[str, Callable[[RolloutLog, Item], None]] = {
    "token_count": _token_count, "task_started": _turn_started, "turn_started": _turn_started,
    "task_complete": _turn_completed, "turn_complete": _turn_completed, "turn_aborted": _turn_aborted,
    "error": _error, "thread_rolled_back": codex_compaction.rolled_back,
}
