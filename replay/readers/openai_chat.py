"""Reader for OpenAI-style chat logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay.readers.common import ThreadBuilder, leftover
from replay.readers.odd_types import OddTypes
from replay.readers.openai_chat_log import REQUESTS, RESPONSES, Log, exchange_of, request_of
from replay.readers.openai_chat_talk import Talk, TalkThread, is_item, unused_thread
from replay.readers.source import Source
from replay.transcript import ReadNote, Transcript

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_FOREIGN = frozenset({"uuid", "parentUuid", "sessionId", "event_type", "delta", "loglines", "trajectory_format",
                      "schema_version", "projectHash", "trajectory", "history", "parts"})
"""Keys of formats that also hold roles or message lists."""


class OpenAIChat:
    """Reads logs in the shape of OpenAI's Chat Completions and Responses interfaces, no version.

    One message a line; one `messages` list a line (a line that begins with an earlier line's messages continues that
    session, any other starts its own); one document; logged responses with usage; Responses items. All assistant
    messages count as steps. Nothing in these logs marks a compaction: a summary stays an ordinary message.
    `message_count` counts chat messages, and the items of one response as one.
    """

    name = "openai-chat"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        document = source.document
        rows = [r for r in document[:50] if isinstance(r, dict)] if isinstance(document, list) else source.objects()
        if any(_FOREIGN & row.keys() for row in rows):
            return 0
        return max(map(_score, rows), default=0)

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """Every session of the source."""
        notes: list[ReadNote] = []
        log = Log(notes, OddTypes())
        for record in source.records:
            log.add(record, source.is_document)
        names = _names(log.talks, Path(source.path).stem)
        read = [_transcript(talk, name, source.path) for talk, name in zip(log.talks, names, strict=True)]
        read = read or [_transcript(Talk(id=None), Path(source.path).stem, source.path)]
        return (read[0].with_notes(*notes, *log.odd.notes()), *read[1:])


def _score(row: Mapping[str, Any]) -> int:
    if "type" in row and _is_response_item(row):
        return 30
    if _has_role(row) and "type" not in row and ({"content", "tool_calls"} & row.keys()):
        return 50
    found = exchange_of(row)
    natives = [*found.sent, *found.got] if found else []
    if found and not natives:
        return 10  # an empty list of messages is an empty session, unless another reader knows better
    return 60 if any(isinstance(n, dict) and _is_message(n) for n in natives) else 0


def _is_response_item(row: Mapping[str, Any]) -> bool:
    """Whether a line can only be an item of the Responses interface."""
    if is_item(row) and ("call_id" in row or "encrypted_content" in row or isinstance(row.get("summary"), list)):
        return True
    content = row.get("content")
    parts = content if row.get("type") == "message" and isinstance(content, list) else []
    return any(isinstance(p, dict) and p.get("type") in ("input_text", "output_text") for p in parts)


def _has_role(native: Mapping[str, Any]) -> bool:
    role = native.get("role")
    return isinstance(role, str) and role in _ROLES


def _is_message(native: Mapping[str, Any]) -> bool:
    return is_item(native) or (_has_role(native) and not native.keys() & {"info", "parts"})


def _names(talks: list[Talk], stem: str) -> list[str]:
    """A name for each talk: its own id, else the file's; numbered where that is not enough."""
    names: dict[str, None] = {}
    for number, talk in enumerate(talks, 1):
        name = talk.id or (stem if len(talks) == 1 else f"{stem}#{number}")
        names[name if name not in names else f"{name}#{number}"] = None
    return list(names)


def _transcript(talk: Talk, name: str, path: str) -> Transcript:
    odd = OddTypes("role", fate="kept as text beside the person's")
    reader = TalkThread(odd, ThreadBuilder(id=name))
    main = reader.build(talk)
    unused = tuple(unused_thread(talk, number, odd) for number in range(len(talk.unused)))
    notes = odd.notes()
    if renamed := reader.pairing.ids.renamed:
        notes.append(ReadNote(code="reused-call-id", text=f"{len(renamed)} call ids come back; they were made unique"))
    model = next((step.model for step in reversed(main.steps) if step.model), None)
    head, request = talk.head, request_of(talk.head)
    return Transcript(
        format="openai-chat", session_id=name, path=path, main=main, abandoned=unused, notes=tuple(notes),
        model=model or _text(head.get("model")), system_prompt=_text(request.get("instructions")),
        message_count=reader.count, extra=_extra(head, request))


def _extra(head: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the first object holds beside messages: tools, parameters, labels."""
    rest = leftover(head, "messages", "input", "choices", "output", *REQUESTS, *RESPONSES)
    return rest if request is head else {**rest, **leftover(request, "messages", "input")}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
