"""Carry out a run: what is kept already is taken as it is, the rest is done, and the tables are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evals.execute import parts
from evals.runs.compact import Compactor
from evals.runs.engine import Engine
from evals.runs.part import Task, Work
from evals.runs.summary_text import pieces
from evals.runs.tables import COLUMNS, merge, write_trials
from evals.runs.unfinished import Unfinished
from evals.trial import FileResult, SessionRow
from replay.find import Found

Done = Callable[[FileResult], None]


@dataclass
class Collected:
    """The results of a run's files in their order; sessions of the same id are told apart by a number."""

    rows: list[SessionRow] = field(default_factory=list)
    unreadable: list[FileResult] = field(default_factory=list)
    names: dict[int, list[str]] = field(default_factory=dict)
    """Names of the sessions of each file, by its number."""

    def add(self, number: int, result: FileResult, taken: dict[str, int]) -> None:
        """Take in the next file's result."""
        if result.unreadable is not None:
            self.unreadable.append(result)
        named = [_distinct(row, taken) for row in result.sessions]
        self.names[number] = [row.session for row in named]
        self.rows += named


def _distinct(row: SessionRow, taken: dict[str, int]) -> SessionRow:
    count = taken[row.session] = taken.get(row.session, 0) + 1
    return row if count == 1 else replace(row, session=f"{row.session}~{count}")


def collect(files: Sequence[Found], work: Work, engine: Engine, done: Done,
            kept: Unfinished | None = None) -> Collected:
    """The results of all files in their order. `kept` holds what is done before this call, and what this call does."""
    results: dict[int, FileResult] = {}
    small = Compactor()
    if kept is not None:
        results = {n: small.result(found) for n in range(len(files)) if (found := kept.kept(n)) is not None}
    for found in results.values():
        done(found)
    tasks = [Task(number, found) for number, found in enumerate(files) if number not in results]
    for number, part in parts(tasks, work, engine, kept.trying if kept else None):
        if kept is not None:
            kept.keep(number, part)
        results[number] = small.result(part.result)
        done(part.result)
    collected, taken = Collected(), dict[str, int]()
    for number in sorted(results):
        collected.add(number, results[number], taken)
    return collected


def finish(kept: Unfinished, collected: Collected, summary: Mapping[str, Any], recipe: str,
           swept: Mapping[str, Mapping[str, Any]]) -> None:
    """Put the run together from its parts; `swept`: settings of policies by name, columns of the trials."""
    for name in COLUMNS:
        merge(_parts(kept, collected, name), name, kept.run / f"{name}.parquet")
    write_trials(collected.rows, kept.run / "trials.parquet", swept)
    with (kept.run / "summary.json").open("wb") as file:
        file.writelines(pieces(summary))
    (kept.run / "run.toml").write_text(recipe, encoding="utf-8")


def _parts(kept: Unfinished, collected: Collected, name: str) -> Iterator[tuple[bytes, Sequence[str]]]:
    for number, names in collected.names.items():
        if (data := kept.table(number, name)) is not None:
            yield data, names
