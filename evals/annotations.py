"""What people say about steps and losses of a run: good, harmful, or a wrong metric; kept beside the run.

`annotations.jsonl` in the run folder, one line each, oldest first. What is taken back stays in the file, marked so.
"""

from __future__ import annotations

import csv
import io
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock

from evals.browse import check_run
from replay.errors import ConfigError, ReadError

MARKS = ("good", "harmful", "wrong metric")
"""What a person can say: the view served the step; what it lacked did harm; the number is wrong."""
FILE = "annotations.jsonl"
MOST_NOTE = 4_000
"""Characters of a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What one person said about one step, or one loss at it."""

    id: str
    time: float
    """When it was said, seconds since the epoch."""
    session: str
    policy: str
    step: int
    mark: str
    """One of `MARKS`."""
    note: str = ""
    loss: str | None = None
    """The text of the loss that is meant; None: the step as a whole."""
    withdrawn: bool = False


def annotate(run: Path, *, session: str, policy: str, step: int, mark: str, note: str = "",
             loss: str | None = None) -> Annotation:
    """Add an annotation to a run. Raises ConfigError for what is none, ReadError where the folder is no run."""
    if mark not in MARKS:
        raise ConfigError("annotation", "mark", f"expected one of {', '.join(MARKS)}, found {mark!r}")
    if step < 1:
        raise ConfigError("annotation", "step", f"steps are numbered from 1, found {step}")
    if len(note) > MOST_NOTE:
        raise ConfigError("annotation", "note", f"has {len(note):,} characters, at most {MOST_NOTE:,} are kept")
    made = Annotation(id=uuid.uuid4().hex[:12], time=time.time(), session=session, policy=policy, step=step, mark=mark,
                      note=note, loss=loss)
    _append(run, asdict(made))
    return made


def withdraw(run: Path, name: str) -> None:
    """Take an annotation back. Raises ConfigError where there is none of that id."""
    if name not in {a.id for a in annotations_of(run)}:
        raise ConfigError("annotation", "id", f"no annotation {name!r} in {run}")
    _append(run, {"id": name, "withdrawn": True})


def annotations_of(run: Path) -> list[Annotation]:
    """The annotations of a run that stand, oldest first. Raises ReadError for a damaged line, with its number."""
    path = check_run(run) / FILE
    found: dict[str, Annotation] = {}
    if not path.is_file():
        return []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            value = orjson.loads(line)
            if value.get("withdrawn"):
                found.pop(value["id"], None)
            else:
                found[value["id"]] = Annotation(**value)
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise ReadError(f"{path}:{number}", f"is no annotation: {error}") from error
    return list(found.values())


def as_csv(annotations: Iterable[Annotation]) -> str:
    """The annotations as a table for spreadsheets; text that would be run there as a formula is kept from it."""
    names = [f.name for f in fields(Annotation) if f.name != "withdrawn"]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_cell(getattr(a, name)) for name in names] for a in annotations)
    return out.getvalue()


def as_jsonl(annotations: Iterable[Annotation]) -> bytes:
    """The annotations as JSON lines."""
    return b"".join(orjson.dumps(asdict(a)) + b"\n" for a in annotations)


def chosen(annotations: Sequence[Annotation], marks: Sequence[str], words: str = "") -> list[Annotation]:
    """Those with one of the marks (none given: any) whose note, loss, session or policy holds the words."""
    low = words.casefold()
    return [a for a in annotations if (not marks or a.mark in marks)
            and low in " ".join((a.note, a.loss or "", a.session, a.policy)).casefold()]


def _append(run: Path, value: dict[str, Any]) -> None:
    path = check_run(run) / FILE
    with FileLock(path.with_name(f".{FILE}.lock")), path.open("ab") as file:
        # One write of one line: a reader never sees half of it.
        file.write(orjson.dumps(value) + b"\n")


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
