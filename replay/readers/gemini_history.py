"""Gemini's saved histories (checkpoints) and its log of prompts: contents without times or token counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.readers import gemini_parts as native
from replay.readers.common import ThreadBuilder, leftover, not_an_object, seconds
from replay.readers.gemini_log import GeminiLog
from replay.readers.source import Source
from replay.transcript import ReadNote, Transcript

_ROLES = ("user", "model")


def is_content(value: Any) -> bool:
    """Whether a value is a content: a role and parts."""
    return isinstance(value, dict) and value.get("role") in _ROLES and isinstance(value.get("parts"), list)


def is_checkpoint(value: Any) -> bool:
    """Whether a document is a saved history, of a conversation or of the moment before a tool ran."""
    return isinstance(value, dict) and bool(_contents(value)) and "sessionId" not in value


def _contents(document: Mapping[str, Any]) -> Sequence[Any]:
    for key in ("clientHistory", "history"):
        listed = document.get(key)
        if isinstance(listed, list) and any(map(is_content, listed[:20])):
            return listed
    return ()


def _is_prompt(value: Any) -> bool:
    return isinstance(value, dict) and "sessionId" in value and "messageId" in value and isinstance(
        value.get("message"), str)


def sniff(document: Any) -> int:
    """90 for histories, 85 for logs of prompts."""
    if is_checkpoint(document) or (isinstance(document, list) and any(map(is_content, document[:20]))):
        return 90
    return 85 if isinstance(document, list) and any(map(_is_prompt, document[:20])) else 0


def read(source: Source) -> tuple[Transcript, ...]:
    """The session of a history, or one session for each id in a log of prompts."""
    document = source.document
    if isinstance(document, list) and not any(map(is_content, document)):
        return _prompts(source, document)
    contents = document if isinstance(document, list) else _contents(document)
    return (_history(source, contents, {} if isinstance(document, list) else document),)


def _history(source: Source, contents: Sequence[Any], document: Mapping[str, Any]) -> Transcript:
    name = Path(source.path).name.removesuffix(".gz").removesuffix(".json") or "-"
    log = GeminiLog(ThreadBuilder(id=name))
    count = 0
    for value in contents:
        if not is_content(value):
            log.notes.append(not_an_object(1, 0, value) if not isinstance(value, dict) else ReadNote(
                code="bad-message", text="a content without role and parts; kept out"))
            continue
        count += 1
        if value["role"] == "user":
            log.user(value["parts"])
        else:
            log.respond([log.called(part["functionCall"]) if "functionCall" in part else native.block(part)
                         for part in native.parts_of(value["parts"])])
    return Transcript(format="gemini-cli", session_id=name, path=source.path, main=log.thread.build(),
                      notes=tuple(log.notes), message_count=count,
                      extra=leftover(document, "history", "clientHistory"))


def _prompts(source: Source, rows: Sequence[Any]) -> tuple[Transcript, ...]:
    threads: dict[str, dict[Any, Mapping[str, Any]]] = {}
    notes: list[ReadNote] = []
    for number, row in enumerate(rows, 1):
        if not _is_prompt(row):
            notes.append(ReadNote(code="bad-message", text=f"entry {number} is no prompt; kept out"))
            continue
        seen = threads.setdefault(str(row["sessionId"]), {})
        if str(row["messageId"]) in seen:
            notes.append(ReadNote(code="duplicate", text=f"entry {number} repeats a message id; kept out"))
        seen.setdefault(str(row["messageId"]), row)
    found = [_typed(source, name, list(seen.values())) for name, seen in threads.items()]
    return (found[0].with_notes(*notes), *found[1:]) if found else ()


def _typed(source: Source, name: str, rows: Sequence[Mapping[str, Any]]) -> Transcript:
    log = GeminiLog(ThreadBuilder(id=name))
    for row in rows:
        log.user(row["message"], "human", time=seconds(row.get("timestamp")), id=str(row["messageId"]))
    return Transcript(format="gemini-cli", session_id=name, path=source.path, main=log.thread.build(),
                      message_count=len(rows), extra=MappingProxyType({"holds": "prompts only"}))
