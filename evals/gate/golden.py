"""The golden folder: one small text file a session, the settings and versions beside them, and who accepted what.

    gate.json              policy, settings, and the version that each tier holds for
    sessions/NAME.golden   the lines of one session
    accepted.jsonl         one line for each accepted change: old hash, new hash, reason
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from evals.gate.record import TIERS, Record, Tier, one_line
from replay.errors import ConfigError, ReadError

SCHEMA = 1
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(record: Record) -> str:
    """The golden file of a session; the recording is part of it, since ids are not always unique."""
    return golden_name(record.session, record.recording)


def golden_name(session: str, recording: str) -> str:
    """The golden file name of a session id and a recording's digest."""
    safe = _UNSAFE.sub("_", one_line(session)).lstrip(".")[:80] or "session"
    return f"{safe}.{recording}.golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A golden folder in memory."""

    settings: Mapping[str, Any]
    """What `gate.json` says."""
    records: Mapping[str, Record]
    """File name to record."""

    @property
    def hash(self) -> str:
        """First 16 hex digits of a SHA-256 over settings and records."""
        return _hash(self.settings, self.records)


def _hash(settings: Mapping[str, Any], records: Mapping[str, Record]) -> str:
    taken = hashlib.sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))
    for name in sorted(records):
        taken.update(f"\n{name} {records[name].hash}".encode())
    return taken.hexdigest()[:16]


def load(folder: Path) -> Golden | None:
    """The golden folder; None where there is none yet. Raises ReadError for one that is damaged."""
    path = folder / "gate.json"
    if not path.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise ReadError(str(folder), "not a golden folder (no gate.json in it); name a new or empty folder")
        return None
    try:
        settings = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise ReadError(str(path), f"not valid JSON: {error}; a merge conflict?") from error
    if not isinstance(settings, dict) or settings.get("schema") != SCHEMA:
        found = settings.get("schema") if isinstance(settings, dict) else type(settings).__name__
        raise ReadError(str(path), f"expected a golden folder of schema {SCHEMA}, found {found}")
    files = sorted((folder / "sessions").glob("*.golden"))
    return Golden(settings=settings, records={f.name: parse(f.read_text(encoding="utf-8"), str(f)) for f in files})


def parse(text: str, where: str) -> Record:
    """A record from its golden file. Raises ReadError with the line."""
    head: dict[str, str] = {}
    tiers: dict[Tier, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            tier = next((t for t in TIERS if line == f"[{t}]"), None)
            if tier is None:
                raise ReadError(where, f"no such section {line}; known: {', '.join(TIERS)}", number)
            current = tiers.setdefault(tier, [])
        elif line.startswith(("<<<<<<<", ">>>>>>>", "=======")):
            raise ReadError(where, "an unresolved merge conflict", number)
        elif line and current is not None:
            current.append(line)
        elif line:
            key, _, value = line.partition(" ")
            head[key] = value
    if "session" not in head or "recording" not in head:
        raise ReadError(where, "expected lines `session` and `recording` at its start", 1)
    return Record(head["session"], head["recording"], {t: tuple(lines) for t, lines in tiers.items()})


def accept(folder: Path, old: Golden | None, settings: Mapping[str, Any], records: Mapping[str, Record],
           reason: str | None) -> dict[str, Any] | None:
    """Make the folder hold these records; the entry that was written, None where nothing changed.

    Raises ConfigError when an existing golden would change and no reason is given.
    """
    before = old.records if old else {}
    changed = {name: [before[name].hash if name in before else None, records[name].hash if name in records else None]
               for name in sorted({*before, *records})
               if name not in before or name not in records or before[name].hash != records[name].hash}
    if old is not None and not changed and _json(settings) == _json(old.settings):
        return None
    if old is not None and not reason:
        raise ConfigError("--accept", "", f"{len(changed)} sessions would change: say why with --reason TEXT")
    _write_all(folder, settings, records, before)
    entry = {"old": old.hash if old else None, "new": _hash(settings, records), "reason": reason or "first golden",
             "sessions": len(records), "changed": changed if old else {}}
    lines = (folder / "accepted.jsonl").read_bytes() if (folder / "accepted.jsonl").is_file() else b""
    _write(folder / "accepted.jsonl", lines + orjson.dumps(entry) + b"\n")
    return entry


def _write_all(folder: Path, settings: Mapping[str, Any], records: Mapping[str, Record],
               before: Mapping[str, Record]) -> None:
    """The settings go last: a folder without them counts as unfinished."""
    (folder / "sessions").mkdir(parents=True, exist_ok=True)
    for name, made in records.items():
        if name not in before or before[name].hash != made.hash:
            _write(folder / "sessions" / name, made.text.encode("utf-8"))
    for name in before.keys() - records.keys():
        (folder / "sessions" / name).unlink(missing_ok=True)
    # Each side of a merge appends its own lines: git keeps both.
    _write(folder / ".gitattributes", b"accepted.jsonl merge=union\n*.golden text eol=lf\n")
    _write(folder / "gate.json", _json(settings))


def _json(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _write(path: Path, data: bytes) -> None:
    """Write beside and rename, so that a file is complete or as it was."""
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def steps_of(lines: tuple[str, ...]) -> Iterator[tuple[int | None, str]]:
    """Each line with the step that it is about; None for lines about the whole session."""
    for line in lines:
        first = line.partition(" ")[0]
        yield (int(first) if first.isdigit() else None), line


def accept_one(folder: Path, record: Record, settings: Mapping[str, Any], reason: str | None) -> bool:
    """Put one session's record into the folder; whether that changed anything. Several processes may do so at once.

    Raises ConfigError when a golden of this session would change and no reason is given.
    """
    path = folder / "sessions" / file_name(record)
    old = parse(path.read_text(encoding="utf-8"), str(path)).hash if path.is_file() else None
    if old == record.hash:
        return False
    if old is not None and not reason:
        raise ConfigError("--rewindow-accept", record.session, "would change: say why with --rewindow-reason TEXT")
    if not (folder / "gate.json").is_file():
        _write_all(folder, settings, {}, {})
    _write(path, record.text.encode("utf-8"))
    entry = {"session": record.session, "old": old, "new": record.hash, "reason": reason or "first golden"}
    with (folder / "accepted.jsonl").open("ab", buffering=0) as file:
        file.write(orjson.dumps(entry) + b"\n")
    return True
