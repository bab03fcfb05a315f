"""Reader for ATIF trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from replay.readers.atif_log import StepLog
from replay.readers.common import ThreadBuilder, leftover, not_an_object
from replay.readers.native import mapping, objects, string
from replay.readers.source import Source
from replay.transcript import Outcome, ReadNote, Thread, Transcript

_CONTINUED = "-cont-"


class Atif:
    """Reads the Agent Trajectory Interchange Format, 1.0 to 1.8 (Harbor and everybody who exports it).

    A step of an agent is a response with its usage and one message for its results. Steps that were copied from an
    earlier file are in the log, but are no requests of this one. A system step that marks a compaction is a recorded
    compaction, with the prompt after it as the summary. Embedded sub-agent trajectories are sub-agents. A file that
    is continued elsewhere is read by itself, with a note. `message_count` counts steps. The outcome is that of the
    trial's `result.json`, where it stands beside the file.
    """

    name = "atif"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        document = source.document
        return max(map(_score, objects(document[:5]) if isinstance(document, list) else source.objects()), default=0)

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of the source: one a trajectory."""
        values = [v for r in source.records for v in (r.value if isinstance(r.value, list) else [r.value])]
        documents = [v for v in values if isinstance(v, dict)]
        notes = [not_an_object(r.line, r.byte, r.value) for r in source.records
                 if not isinstance(r.value, (dict, list))]
        read = [_transcript(d, source, number) for number, d in enumerate(documents, 1)]
        read = read or [_transcript({}, source, 1)]
        return (read[0].with_notes(*notes), *read[1:])


def _score(value: Mapping[str, Any]) -> int:
    if str(value.get("schema_version") or "").startswith("ATIF"):
        return 98
    steps = value.get("steps")
    rows = objects(steps[:5]) if isinstance(steps, list) else []
    return 60 if any("step_id" in s and s.get("source") in ("user", "agent", "system") for s in rows) else 0


def _transcript(document: Mapping[str, Any], source: Source, number: int) -> Transcript:
    notes: list[ReadNote] = []
    name = _name(document, source.path, number)
    log = _read(document, name, notes)
    subagents = _subagents(document, name, log, notes)
    agent, following = mapping(document.get("agent")), string(document.get("continued_trajectory_ref"))
    if following:
        notes.append(ReadNote(code="continued-elsewhere", text=f"the run goes on in {following}"))
    return Transcript(
        format="atif", session_id=name, path=source.path, main=log.thread.build(), subagents=tuple(subagents),
        notes=tuple(notes), parent_session=_continues(document), harness_version=string(agent.get("version")),
        model=log.model, outcome=_outcome(source), message_count=log.count,
        extra=leftover(document, "steps", "subagent_trajectories", "session_id"))


def _read(document: Mapping[str, Any], name: str, notes: list[ReadNote], call: str | None = None) -> StepLog:
    log = StepLog(ThreadBuilder(id=name, parent_call=call), mapping(document.get("agent")), notes)
    log.read(document.get("steps"))
    if document and not isinstance(document.get("steps"), list):
        notes.append(ReadNote(code="no-steps", text=f"no list of steps in trajectory {name}"))
    return log


def _subagents(document: Mapping[str, Any], parent: str, log: StepLog, notes: list[ReadNote]) -> list[Thread]:
    """The embedded trajectories, theirs below them."""
    found: list[Thread] = []
    listed = document.get("subagent_trajectories")
    for number, native in enumerate(listed if isinstance(listed, list) else [], 1):
        if not isinstance(native, dict):
            notes.append(ReadNote(code="not-an-object", text=f"sub-agent trajectory {number} is no JSON object"))
            continue
        own = string(native.get("trajectory_id")) or string(native.get("session_id"))
        name = f"{parent}/{own or number}"
        below = _read(native, name, notes, log.references.get(own or ""))
        found.extend([below.thread.build(), *_subagents(native, name, below, notes)])
    return found


def _name(document: Mapping[str, Any], path: str, number: int) -> str:
    known = string(document.get("session_id")) or string(document.get("trajectory_id"))
    stem = Path(path).name.removesuffix(".gz").removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")
    return known or (stem if number == 1 else f"{stem}#{number}")


def _continues(document: Mapping[str, Any]) -> str | None:
    """The session that this one goes on from; a continuation carries its name with a number."""
    name = string(document.get("session_id")) or ""
    base, mark, number = name.rpartition(_CONTINUED)
    if not mark or not number.isdigit():
        return None
    return base if int(number) <= 1 else f"{base}{_CONTINUED}{int(number) - 1}"


def _outcome(source: Source) -> Outcome | None:
    """The reward in the trial's result, which stands beside the agent's folder."""
    if source.folder is None:
        return None
    for place in (source.folder, source.folder.parent) if source.folder.name == "agent" else (source.folder,):
        result = _load(place / "result.json")
        verified = mapping(mapping(result.get("verifier_result")).get("rewards"))
        reward = verified.get("reward")
        if isinstance(reward, (int, float)) and not isinstance(reward, bool):
            return Outcome(value="pass" if reward >= 1 else "fail" if reward <= 0 else "partial",
                           source="result.json verifier_result", detail=f"reward {reward}")
        if failed := string(mapping(result.get("exception_info")).get("exception_type")):
            return Outcome(value="fail", source="result.json exception_info", detail=failed)
    return None


def _load(path: Path) -> Mapping[str, Any]:
    try:
        return mapping(orjson.loads(path.read_bytes()))
    except (OSError, orjson.JSONDecodeError):
        return {}


