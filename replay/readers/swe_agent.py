"""Reader for SWE-agent trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from replay.readers.common import leftover, not_an_object
from replay.readers.native import mapping, string
from replay.readers.source import Source
from replay.readers.swe_agent_attempts import attempts_of
from replay.readers.swe_agent_history import kept_out, read_attempt
from replay.transcript import Outcome, Thread, Transcript

_MARKS = frozenset({"message_type", "agent", "is_demo"})


class SweAgent:
    """Reads `.traj` files of SWE-agent 0.x and 1.x, also those of its retry loop with several attempts.

    The history is the log; demonstrations in it are injected. Actions written as text become calls and their
    observations results. Where a step's prompt is recorded and differs from the history, the difference is a
    recorded compaction: `micro` where only observations were replaced, `full` for anything else. Responses that
    were thrown away (wrong format, blocked) are steps without a message, their text an abandoned thread; so are
    attempts that were not chosen. Usage is known as totals only and stays in `extra`.
    `message_count` counts the history items of the main agent.
    """

    name = "swe-agent"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        return _score(source.document) if isinstance(source.document, dict) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of the source: one a document."""
        documents = [r.value for r in source.records if isinstance(r.value, dict)]
        notes = [not_an_object(r.line, r.byte, r.value) for r in source.records if not isinstance(r.value, dict)]
        read = [_transcript(d, source.path, number) for number, d in enumerate(documents, 1)]
        read = read or [_transcript({}, source.path, 1)]
        return (read[0].with_notes(*notes), *read[1:])


def _score(document: Mapping[str, Any]) -> int:
    attempts = document.get("attempts")
    if isinstance(attempts, list) and any(isinstance(a, dict) and "trajectory" in a for a in attempts):
        return 90
    history, steps = document.get("history"), document.get("trajectory")
    if isinstance(history, list) and isinstance(steps, list):
        return 95
    if isinstance(history, list) and any(_is_item(item) for item in history[:5]):
        return 85
    return 80 if isinstance(steps, list) and any(_is_step(step) for step in steps[:5]) else 0


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and "role" in item and bool(_MARKS & item.keys())


def _is_step(step: Any) -> bool:
    return isinstance(step, dict) and {"action", "observation"} <= step.keys() and bool(
        {"response", "thought"} & step.keys())


def _transcript(document: Mapping[str, Any], path: str, number: int) -> Transcript:
    main, others = attempts_of(document)
    config = _config(main.native.get("replay_config"))
    notes = kept_out(document.get("attempts"), "attempts")
    name = _name(document, config, path, number)
    read = read_attempt(main, name, notes)
    abandoned: list[Thread] = list(read.discarded)
    for other in others:
        left = read_attempt(other, f"{name}/attempt-{other.number}", notes)
        abandoned.extend([left.main, *left.subagents, *left.discarded])
    info = mapping(main.native.get("info"))
    return Transcript(
        format="swe-agent", session_id=name, path=path, main=read.main, subagents=tuple(read.subagents),
        abandoned=tuple(abandoned), notes=tuple(notes), model=_model(config), outcome=_outcome(info, document),
        harness_version=string(info.get("swe_agent_version")), message_count=read.count,
        extra=leftover(document, "trajectory", "history", "attempts"))


def _config(value: Any) -> Mapping[str, Any]:
    """The run's configuration, stored as an object or as JSON text."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return mapping(value)




def _name(document: Mapping[str, Any], config: Mapping[str, Any], path: str, number: int) -> str:
    """The instance's id, from the configuration or the environment, else the file's name."""
    environment = string(document.get("environment")) or ""
    known = (string(document.get("instance_id")) or string(mapping(config.get("problem_statement")).get("id"))
             or (environment if "__" in environment else None))
    stem = Path(path).name.removesuffix(".gz").removesuffix(".zst").removesuffix(".traj")
    return known or (stem if number == 1 else f"{stem}#{number}")


def _model(config: Mapping[str, Any]) -> str | None:
    agent = mapping(config.get("agent"))
    return string(mapping(agent.get("model")).get("name")) or string(agent.get("model_name"))


def _outcome(info: Mapping[str, Any], document: Mapping[str, Any]) -> Outcome | None:
    """How the run ended; a graded result where somebody stored one, else the exit status."""
    for place in (info, document):
        if isinstance(graded := place.get("resolved"), bool):
            return Outcome(value="pass" if graded else "fail", source="resolved")
    if "exit_status" not in info:
        return None
    status = info["exit_status"]
    if not isinstance(status, str) or not status:
        return Outcome(value="unknown", source="info.exit_status", detail=None if status is None else str(status))
    if not status.startswith("submitted"):
        return Outcome(value="fail", source="info.exit_status", detail=status)
    return Outcome(value="partial" if "(" in status else "unknown", source="info.exit_status", detail=status)

