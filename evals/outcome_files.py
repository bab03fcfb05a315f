"""Outcomes that somebody else wrote down: a results table for many sessions, or a sidecar file beside one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from evals.outcomes import Label, Value
from replay.errors import ConfigError
from replay.find import OUTCOMES

UNIT_COLUMNS = ("session", "session_id", "instance_id", "task_id", "task", "path", "file", "id", "unit")
OUTCOME_COLUMNS = ("outcome", "resolved", "passed", "solved", "success", "value", "label", "pass", "score")
SIDECAR_ENDING = OUTCOMES

_PASS = frozenset(("pass", "passed", "true", "yes", "y", "1", "1.0", "resolved", "success", "solved", "ok"))
_FAIL = frozenset(("fail", "failed", "false", "no", "n", "0", "0.0", "unresolved", "failure", "error", "unsolved"))
_UNKNOWN = frozenset(("", "unknown", "null", "none", "nan", "n/a", "na", "-", "?"))


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """Labels by the name of a session, a task or a file."""

    name: str
    labels: Mapping[str, Label] = field(default_factory=dict)

    def find(self, names: Iterable[str]) -> tuple[str, Label] | None:
        """The first of several names of a session that the table has, with its label."""
        return next(((n, self.labels[n]) for n in names if n in self.labels), None)


def load_outcomes(path: Path) -> OutcomeTable:
    """A results table: CSV with a column for the session and one for the outcome, or the same as JSON or JSON lines.

    Raises ConfigError with the file, the line and what would be right.
    """
    if not path.is_file():
        raise ConfigError(str(path), "", "no such file")
    rows = _rows(path)
    labels: dict[str, Label] = {}
    for line, row in rows:
        name, label = _row(row, f"{path}:{line}" if line else str(path), path.name)
        if name in labels and labels[name].value != label.value:
            raise ConfigError(f"{path}:{line}", name, f"has the outcomes {labels[name].value} and {label.value}; "
                                                      "a session has one outcome")
        labels[name] = label
    return OutcomeTable(path.name, labels)


def sidecars(path: str) -> list[Path]:
    """The files beside a session's that may say how it ended; the first of them counts."""
    file = Path(path)
    places = (file.with_name(file.name + SIDECAR_ENDING), file.with_name(file.name.partition(".")[0] + SIDECAR_ENDING))
    return [place for place in dict.fromkeys(places) if place.is_file()]


def sidecar_label(path: str, session: str) -> Label | None:
    """The label in `NAME.outcome.json` beside a session's file; None without one. ConfigError where it is broken."""
    found = next(iter(sidecars(path)), None)
    if found is None:
        return None
    content = _json(found)
    if isinstance(content, dict) and session in content:
        content = content[session]
    row = content if isinstance(content, dict) else {"outcome": content}
    if not any(c in row for c in OUTCOME_COLUMNS):
        return None
    return _label(row, str(found), f"sidecar: {found.name}")


def _rows(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    if path.suffix in (".json", ".jsonl", ".ndjson"):
        return [(0, r) for r in _json_rows(path)]
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    return [(n, row) for n, row in enumerate(csv.DictReader(io.StringIO(text)), 2)]


def _json_rows(path: Path) -> Sequence[Mapping[str, Any]]:
    content = _json(path)
    if isinstance(content, dict) and not any(c in content for c in UNIT_COLUMNS):
        return [{"session": k, **(v if isinstance(v, dict) else {"outcome": v})} for k, v in content.items()]
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(r, dict) for r in rows):
        raise ConfigError(str(path), "", "expected objects, one a session")
    return rows


def _json(path: Path) -> Any:
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            return orjson.loads(data)
        return [orjson.loads(line) for line in data.split(b"\n") if line.strip()]
    except orjson.JSONDecodeError as error:
        raise ConfigError(str(path), "", f"not valid JSON: {error}") from error


def _row(row: Mapping[str, Any], where: str, table: str) -> tuple[str, Label]:
    unit = next((c for c in UNIT_COLUMNS if row.get(c) not in (None, "")), None)
    if unit is None:
        raise ConfigError(where, "", f"no column that names the session; expected one of {', '.join(UNIT_COLUMNS)}")
    return str(row[unit]), _label(row, where, f"table: {table}")


def _label(row: Mapping[str, Any], where: str, source: str) -> Label:
    column = next((c for c in OUTCOME_COLUMNS if c in row), None)
    if column is None:
        raise ConfigError(where, "", f"no column with the outcome; expected one of {', '.join(OUTCOME_COLUMNS)}")
    detail = row.get("detail")
    return Label(value=_value(row[column], where, column), source=source, confidence=_confidence(row, where),
                 detail=str(detail) if detail else None)


def _value(given: Any, where: str, column: str) -> Value:
    text = "" if given is None else str(given).strip().lower()
    if text in _PASS:
        return "pass"
    if text in _FAIL:
        return "fail"
    if text in _UNKNOWN:
        return "unknown"
    if text == "partial" or 0 < _number(text) < 1:
        return "partial"
    raise ConfigError(where, column, f"expected pass, fail, partial, unknown or a number from 0 to 1, found {given!r}")


def _confidence(row: Mapping[str, Any], where: str) -> float:
    given = row.get("confidence")
    if given in (None, ""):
        return 1.0
    value = _number(str(given))
    if not 0 <= value <= 1:
        raise ConfigError(where, "confidence", f"expected a number from 0 to 1, found {given!r}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
