"""MyCodeAgent's archived demos: documents {demo, purpose, summary, trace} without times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.readers.common import leftover, not_an_object
from replay.readers.mycodeagent_history import mapping, plain
from replay.readers.mycodeagent_trace import TraceReader, summary_of
from replay.readers.source import Record, Source
from replay.transcript import Message, ReadNote, Text, Transcript


def read_demo(source: Source) -> Transcript:
    """An archived demo: its trace, with the model view it shows as the window after its compaction."""
    document = source.document
    summary, events = mapping(document.get("summary")), document.get("trace")
    name = plain(summary.get("session_id")) or plain(document.get("demo")) or Path(source.path).stem
    notes = [not_an_object(1, 0, event) for event in events if not isinstance(event, dict)]
    records = [Record(1, 0, event) for event in events if isinstance(event, dict)]
    read = TraceReader(name, place=False).read(records, source.path)
    read = replace(read, extra=MappingProxyType({**read.extra, **leftover(document, "trace")}))
    view = document.get("model_view")
    return (_with_view(read, view) if isinstance(view, list) else read).with_notes(*notes)


def _with_view(read: Transcript, view: list[Any]) -> Transcript:
    """The demo's last compaction, with the view that the document shows for it."""
    if not read.compactions:
        text = "the document shows a model view, but its trace holds no compaction that it could come from; left out"
        return read.with_notes(ReadNote(code="missing-compaction", text=text)) if view else read
    shown = [mapping(message) for message in view]
    system = [plain(m.get("content")) for m in shown if m.get("role") == "system" and not summary_of(m)]
    last = read.compactions[-1]
    if not last.summary_readable:
        last = replace(last, window=tuple(_seen(m) for m in shown if plain(m.get("content")) not in system),
                       summary=next(filter(None, map(summary_of, shown)), None), summary_readable=True)
    main = replace(read.main, compactions=(*read.compactions[:-1], last))
    return replace(read, main=main, system_prompt=read.system_prompt or "\n\n".join(system) or None)


def _seen(message: Mapping[str, Any]) -> Message:
    role = message.get("role")
    blocks = (Text(text=plain(message.get("content"))),)
    if role == "system":
        return Message(index=-1, role="system", blocks=blocks, origin="summary")
    if role == "assistant":
        return Message(index=-1, role="assistant", blocks=blocks, origin="model")
    return Message(index=-1, role="user", blocks=blocks, origin="human")
