"""Sessions of Gemini CLI and of Qwen Code, in each of the files that they write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay.errors import ReadError
from replay.readers import gemini_history as history
from replay.readers import gemini_qwen as qwen
from replay.readers import gemini_stream as stream
from replay.readers.common import leftover
from replay.readers.gemini_records import Recording, is_metadata, recordings
from replay.readers.gemini_session import SessionReader, notes_of, reader_of
from replay.readers.source import Source, open_source
from replay.transcript import Outcome, ReadNote, Thread, Transcript


class GeminiCli:
    """Reads Gemini CLI (0.1 to 0.61) and its fork Qwen Code (0.15 to 0.24).

    Session documents and JSON lines of `chats/`, with the sub-agents in the folder beside them; `stream-json`
    output; checkpoints and `logs.json`. `message_count` counts the messages of a recording that were not taken
    back, notices for the person included; of a stream its message lines, pieces of one text each for itself.
    In recordings a compression is known by its `<state_snapshot>`; what it cost is not in them.
    """

    name = "gemini-cli"

    def sniff(self, source: Source) -> int:
        """99 for Qwen's lines, 95 for recordings and streams, 90 for pieces of them and histories, 85 for prompts."""
        if isinstance(source.document, list) or history.is_checkpoint(source.document):
            return history.sniff(source.document)
        return max((_score(value) for value in source.objects()), default=0)

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of the source."""
        if isinstance(source.document, list) or history.is_checkpoint(source.document):
            return history.read(source)
        objects = source.objects()
        if any(qwen.is_record(value) for value in objects):
            return qwen.read(source)
        if any(map(stream.is_event, objects)) and not any(map(is_metadata, objects)):
            return stream.read(source)
        return tuple(_transcript(recording, source) for recording in recordings(source))


def _score(value: Mapping[str, Any]) -> int:
    if qwen.is_record(value):
        return 99
    if is_metadata(value) or stream.is_start(value):
        return 95
    if stream.is_event(value) or isinstance(value.get("$set"), dict) or isinstance(value.get("$rewindTo"), str):
        return 90
    return 88 if value.get("type") == "gemini" and "content" in value else 0


def _transcript(recording: Recording, source: Source) -> Transcript:
    meta = recording.meta
    native = meta.get("sessionId")
    name = native if isinstance(native, str) and native else Path(source.path).stem
    is_agent = meta.get("kind") == "subagent"
    main = reader_of(recording, name, is_agent=is_agent)
    thread = main.read()
    below = [] if is_agent else list(_agents(name, main, source))
    readers = [main, *(reader for reader, _ in below)]
    return Transcript(
        format="gemini-cli", session_id=name, path=source.path, main=thread,
        subagents=tuple(agent for _, agent in below), abandoned=tuple(t for r in readers for t in r.log.side),
        notes=tuple(note for r in readers for note in notes_of(r)), model=main.log.model,
        parent_session=source.folder.name if is_agent and source.folder is not None else None,
        cwd=None, outcome=_outcome(main), message_count=len(main.names),
        extra=leftover(meta, "sessionId", "lastUpdated"))


def _agents(name: str, main: SessionReader, source: Source) -> list[tuple[SessionReader, Thread]]:
    """The sub-agents whose recordings lie in the folder that bears the session's name."""
    folder = source.folder / name if source.folder is not None and Path(name).name == name else None
    found: list[tuple[SessionReader, Thread]] = []
    for path in sorted(folder.glob("*.json*")) if folder is not None and folder.is_dir() else ():
        try:
            inner = open_source(path)
        except ReadError as error:
            main.recording.notes.append(ReadNote(code="unreadable-file", text=str(error)))
            continue
        for recording in recordings(inner):
            agent = str(recording.meta.get("sessionId") or path.stem)
            reader = reader_of(recording, agent, main.agents.get(agent), is_agent=True)
            recording.notes.extend(inner.notes)
            found.append((reader, reader.read()))
    return found


def _outcome(reader: SessionReader) -> Outcome | None:
    if reader.last != "error":
        return None
    return Outcome(value="fail", source="error", detail=reader.errors[-1])
