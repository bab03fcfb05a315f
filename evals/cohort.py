"""Cohorts: a frozen, hashed list of sessions with the rules that chose them, so that like is compared with like."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

import orjson

from evals.gate.golden import golden_name
from evals.gate.record import recording_digest
from replay.engine import Session
from replay.errors import ConfigError, NotASession, ReadError
from replay.find import Found, read_found
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Transcript

SCHEMA = 1
KEYS = ("session", "format", "model", "repository", "path", "steps", "messages", "compactions")
"""What a rule may ask about. `repository` is the name of the folder that the session worked in."""
_RULE = re.compile(r"\s*([a-z]+)\s*(>=|<=|!=|=|~|>|<)\s*(.+?)\s*")
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, "<": lambda a, b: a < b,
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b}


@dataclass(frozen=True, slots=True)
class Rule:
    """`key operator value`: `format=pi`, `steps>=20`, `path~*/nightly/*`; `~` takes a pattern."""

    key: str
    operator: str
    value: str

    def holds(self, facts: Mapping[str, Any]) -> bool:
        """Whether it holds for a session; what is not known equals nothing."""
        found = facts[self.key]
        if isinstance(found, int):
            return _COMPARE[self.operator](found, int(self.value))
        text = "" if found is None else str(found)
        if self.operator == "~":
            return fnmatchcase(text, self.value)
        return (text == self.value) is (self.operator == "=")

    def __str__(self) -> str:
        return f"{self.key}{self.operator}{self.value}"


def rule(text: str, option: str) -> Rule:
    """A rule from text. Raises ConfigError."""
    match = _RULE.fullmatch(text)
    if match is None or match[1] not in KEYS:
        raise ConfigError(option, text, f"expected KEY=VALUE, KEY>=NUMBER or KEY~PATTERN; keys: {', '.join(KEYS)}")
    key, operator, value = match.groups()
    is_number = key in KEYS[5:]
    if is_number and (operator == "~" or not value.isdigit()):
        raise ConfigError(option, text, f"{key} is a number: expected such as {key}>=20")
    if not is_number and operator not in ("=", "!=", "~"):
        raise ConfigError(option, text, f"{key} is a text: expected {key}=VALUE, {key}!=VALUE or {key}~PATTERN")
    return Rule(key, operator, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A frozen list of sessions."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tags: Mapping[str, str]
    """Tag to the rule that gives it."""
    sessions: tuple[Mapping[str, Any], ...]
    """Each with `session`, `recording`, `path` (relative to the cohort's file), its facts and `tags`."""

    @property
    def hash(self) -> str:
        """First 16 hex digits of a SHA-256 over rules and sessions; where the files lie does not count."""
        named = [{k: v for k, v in s.items() if k != "path"} for s in self.sessions]
        value = [list(self.include), list(self.exclude), dict(self.tags), named]
        return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    def tagged(self, tags: Sequence[str]) -> Cohort:
        """Only the sessions that have all tags. Raises ConfigError for a tag that no session has."""
        for tag in tags:
            if not any(tag in s["tags"] for s in self.sessions):
                raise ConfigError("--tag", tag, f"no session has it; tags: {', '.join(sorted(self.tags)) or 'none'}")
        chosen = tuple(s for s in self.sessions if set(tags) <= set(s["tags"]))
        return Cohort(include=self.include, exclude=self.exclude, tags=self.tags, sessions=chosen)

    @property
    def names(self) -> frozenset[str]:
        """The golden file names of its sessions."""
        return frozenset(golden_name(s["session"], s["recording"]) for s in self.sessions)

    def files(self, folder: Path) -> tuple[Found, ...]:
        """The files of its sessions, each once; those that are gone are left for the gate to name."""
        paths = dict.fromkeys(Path(os.path.normpath(folder / s["path"])) for s in self.sessions)
        return tuple(Found(p, True) for p in paths if p.is_file())

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the hash."""
        return {"schema": SCHEMA, "hash": self.hash, "include": list(self.include), "exclude": list(self.exclude),
                "tags": dict(self.tags), "sessions": [dict(s) for s in self.sessions]}


def freeze(files: Sequence[Found], include: Sequence[str], exclude: Sequence[str], tags: Mapping[str, str],
           beside: Path, reader: str | None = None) -> Cohort:
    """The cohort of the sessions for which every include rule holds and no exclude rule does. Raises ConfigError."""
    wanted = [rule(text, "--include") for text in include]
    unwanted = [rule(text, "--exclude") for text in exclude]
    marks = {tag: rule(text, "--tag") for tag, text in tags.items()}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path, transcript in _transcripts(files, reader):
        facts = _facts(path, transcript)
        if all(r.holds(facts) for r in wanted) and not any(r.holds(facts) for r in unwanted):
            row = _row(transcript, facts, [tag for tag, r in sorted(marks.items()) if r.holds(facts)], path, beside)
            found.setdefault((row["session"], row["recording"]), row)
    if not found:
        raise ConfigError("cohort", "", "no session is left by these rules")
    return Cohort(include=tuple(map(str, wanted)), exclude=tuple(map(str, unwanted)),
                  tags={tag: str(r) for tag, r in sorted(marks.items())},
                  sessions=tuple(found[key] for key in sorted(found)))


def _transcripts(files: Sequence[Found], reader: str | None) -> Iterator[tuple[Path, Transcript]]:
    for found in files:
        try:
            transcripts = read_found(found, reader)
        except NotASession:
            if found.named:
                raise
            continue
        yield from ((found.path, t) for t in transcripts)


def _facts(path: Path, transcript: Transcript) -> dict[str, Any]:
    repository = PurePath(transcript.cwd.replace("\\", "/")).name if transcript.cwd else None
    return {"session": transcript.session_id, "format": transcript.format, "model": transcript.model,
            "repository": repository, "path": path.as_posix(), "steps": len(transcript.steps),
            "messages": transcript.message_count,
            "compactions": sum(c.kind != "micro" for c in transcript.compactions)}


def _row(transcript: Transcript, facts: Mapping[str, Any], tags: list[str], path: Path,
         beside: Path) -> dict[str, Any]:
    recording = recording_digest(Session(transcript, TokenCounter(tokenizer("o200k_base"))))
    relative = Path(os.path.relpath(path.absolute(), beside.absolute())).as_posix()
    return {**facts, "path": relative, "recording": recording, "tags": tags}


def load_cohort(path: Path) -> Cohort:
    """The cohort of a file. Raises ReadError where it is none, or was changed since it was frozen."""
    try:
        value = orjson.loads(path.read_bytes())
        made = Cohort(include=tuple(value["include"]), exclude=tuple(value["exclude"]), tags=dict(value["tags"]),
                      sessions=tuple(dict(s) for s in value["sessions"]))
        stated, names = value["hash"], made.names
    except FileNotFoundError as error:
        raise ReadError(str(path), "no such cohort file; `rewindow cohort` writes one") from error
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ReadError(str(path), f"not a cohort file: {type(error).__name__}: {error}") from error
    if stated != made.hash or not names:
        raise ReadError(str(path), f"was edited after it was frozen (hash {stated}, its content has {made.hash}); "
                                   "freeze it anew with `rewindow cohort`")
    return made
