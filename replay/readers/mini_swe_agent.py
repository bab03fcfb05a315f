"""Reader for mini-swe-agent trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay.readers.common import ThreadBuilder, leftover, not_an_object
from replay.readers.mini_swe_agent_log import MiniLog
from replay.readers.native import mapping, objects, string
from replay.readers.source import Source
from replay.transcript import Outcome, ReadNote, Transcript

_EXTRA = frozenset({"actions", "response", "returncode", "exit_status", "interrupt_type", "raw_output"})
"""Names under `extra` that no other chat log uses together with messages."""
_PARTIAL = frozenset({"LimitsExceeded", "TimeExceeded"})


class MiniSweAgent:
    """Reads `.traj.json` files of mini-swe-agent 1 and 2, and bare arrays of its messages.

    Version 1 and the text models of version 2 write commands into the answer: they become calls where the parsed
    action was recorded (`extra.actions`), else the answer stays text and the observation is a result without a
    call. Responses in the shape of OpenAI's Responses interface are read too. A response that was thrown away for
    its format is a step without a message, its text an abandoned thread. Usage comes from the raw response.
    `message_count` counts the messages of the file.
    """

    name = "mini-swe-agent"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        document = source.document
        if isinstance(document, list):
            return _array_score(document)
        return _score(document) if isinstance(document, dict) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of the source: one a document."""
        if isinstance(source.document, list):
            return (_transcript({"messages": source.document}, source.path, 1),)
        documents = [r.value for r in source.records if isinstance(r.value, dict)]
        notes = [not_an_object(r.line, r.byte, r.value) for r in source.records if not isinstance(r.value, dict)]
        read = [_transcript(d, source.path, number) for number, d in enumerate(documents, 1)]
        read = read or [_transcript({}, source.path, 1)]
        return (read[0].with_notes(*notes), *read[1:])


def _score(document: Mapping[str, Any]) -> int:
    if str(document.get("trajectory_format") or "").startswith("mini-swe-agent"):
        return 98
    info, messages = document.get("info"), document.get("messages")
    if not isinstance(messages, list):
        return 0
    if isinstance(info, dict) and ("mini_version" in info or {"exit_status", "model_stats"} <= info.keys()):
        return 90
    return _array_score(messages)


def _array_score(messages: list[Any]) -> int:
    rows = objects(messages[:50])
    if any(_EXTRA & mapping(m.get("extra")).keys() for m in rows):
        return 85
    return 70 if any(_is_marked(m) for m in rows) else 0


def _is_marked(message: Mapping[str, Any]) -> bool:
    """Texts of the agent's own templates: its block for commands, or how it reports what a command gave."""
    content = message.get("content")
    if not isinstance(content, str):
        return False
    if message.get("role") == "assistant":
        return "```mswea_bash_command" in content
    return message.get("role") == "user" and content.startswith("<returncode>")


def _transcript(document: Mapping[str, Any], path: str, number: int) -> Transcript:
    name = _name(document, path, number)
    notes: list[ReadNote] = []
    log = MiniLog(ThreadBuilder(id=name), notes)
    messages = document.get("messages")
    if isinstance(messages, list):
        log.read(messages)
    elif document:
        notes.append(ReadNote(code="no-messages", text="no list of messages in the trajectory"))
    info = mapping(document.get("info"))
    model = mapping(mapping(info.get("config")).get("model"))
    return Transcript(
        format="mini-swe-agent", session_id=name, path=path, main=log.thread.build(), abandoned=tuple(log.discarded),
        notes=tuple(notes), model=log.model or string(model.get("model_name")), cwd=_cwd(info),
        harness_version=string(info.get("mini_version")), outcome=_outcome(info, document, log),
        message_count=log.count, extra=leftover(document, "messages"))




def _name(document: Mapping[str, Any], path: str, number: int) -> str:
    known = string(document.get("instance_id")) or string(mapping(document.get("info")).get("instance_id"))
    stem = Path(path).name.removesuffix(".gz").removesuffix(".zst").removesuffix(".json").removesuffix(".traj")
    return known or (stem if number == 1 else f"{stem}#{number}")


def _cwd(info: Mapping[str, Any]) -> str | None:
    return string(mapping(mapping(info.get("config")).get("environment")).get("cwd"))


def _outcome(info: Mapping[str, Any], document: Mapping[str, Any], log: MiniLog) -> Outcome | None:
    """How the run ended; a graded result where somebody stored one, else the exit status."""
    for place in (info, document):
        if isinstance(graded := place.get("resolved"), bool):
            return Outcome(value="pass" if graded else "fail", source="resolved")
    status = string(info.get("exit_status"))
    source = "info.exit_status" if status else "extra.exit_status"
    status = status or log.exit_status
    if status is None:
        return None
    if status == "Submitted":
        return Outcome(value="unknown", source=source, detail=status)
    return Outcome(value="partial" if status in _PARTIAL else "fail", source=source, detail=status)
