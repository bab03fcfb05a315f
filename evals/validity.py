"""The validity experiments over files: how far the offline numbers deserve trust on somebody's own sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from evals.execute import each_file
from evals.validity_cache import CacheCheck
from evals.validity_edits import JudgedEdit, edit_report, judged
from evals.validity_events import Unit, units
from evals.validity_rereads import reread_report
from replay.engine import Session
from replay.errors import NotASession, ReadError
from replay.find import Found, read_found
from replay.tokens import TokenCounter, tokenizer

EXPERIMENTS = ("V0", "V1", "V2")


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """What one file contributes."""

    path: str
    sessions: int = 0
    unreadable: str | None = None
    cache: CacheCheck = field(default_factory=CacheCheck)
    units: tuple[Unit, ...] = ()
    edits: tuple[JudgedEdit, ...] = ()


def gather(files: Sequence[Found], experiments: Sequence[str], tokenizer_name: str,
           jobs: int | None = None) -> Iterator[FileEvidence]:
    """What each file contributes, in their order. `jobs` None: all cores when the input is worth it."""
    return each_file(partial(gather_file, experiments=experiments, tokenizer_name=tokenizer_name), files, jobs)


def gather_file(found: Found, experiments: Sequence[str], tokenizer_name: str) -> FileEvidence:
    """The evidence in the sessions of a file; a file that cannot be read gives the reason."""
    try:
        transcripts = read_found(found)
    except ReadError as error:
        beside_the_point = isinstance(error, NotASession) and not found.named
        return FileEvidence(str(found.path), unreadable=None if beside_the_point else error.reason)
    words = tokenizer(tokenizer_name)
    cache, all_units, edits = CacheCheck(), list[Unit](), list[JudgedEdit]()
    for transcript in transcripts:
        session = Session(transcript, TokenCounter(words))
        if "V0" in experiments:
            cache.add(session)
        all_units += units(session) if "V1" in experiments else ()
        edits += judged(session) if "V2" in experiments else ()
    words.forget()
    return FileEvidence(str(found.path), len(transcripts), None, cache, tuple(all_units), tuple(edits))


def validity_report(found: Sequence[FileEvidence], experiments: Sequence[str]) -> dict[str, Any]:
    """The chosen experiments on everything that was gathered."""
    cache = CacheCheck()
    for one in found:
        cache.merge(one.cache)
    made: dict[str, Any] = {"sessions": sum(f.sessions for f in found),
                            "unreadable": [{"path": f.path, "reason": f.unreadable} for f in found if f.unreadable]}
    if "V0" in experiments:
        made["V0"] = cache.to_json()
    if "V1" in experiments:
        made["V1"] = reread_report([u for f in found for u in f.units])
    if "V2" in experiments:
        made["V2"] = edit_report(e for f in found for e in f.edits)
    return made
