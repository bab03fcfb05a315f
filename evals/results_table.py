"""Anybody's results table: one row a trial, read from CSV into arms × units."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from math import isfinite, nan
from pathlib import Path
from typing import TextIO, TypeVar

import numpy as np

from evals.stats_bootstrap import Array, Counts
from replay.errors import ConfigError, ReadError, UnknownName

MOST_CELLS = 50_000_000
"""More arms × units than this are a wrongly chosen column."""
_WORDS = dict.fromkeys(("", "na", "n/a", "nan", "null", "none"), nan) | {"true": 1.0, "false": 0.0}
_SEPARATORS = (",", "\t", ";")
_LONGEST_FIELD = 2**31 - 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What the columns of a table mean."""

    arm: str
    unit: str
    outcome: str
    cost: tuple[str, ...] = ()
    """Columns whose sum is the cost of a row."""
    cluster: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table, column by column; columns that were not named are empty."""

    arm: list[str] = field(default_factory=list)
    unit: list[str] = field(default_factory=list)
    outcome: list[float] = field(default_factory=list)
    """NaN where the cell is blank."""
    cost: list[float] = field(default_factory=list)
    cluster: list[str] = field(default_factory=list)
    group: list[str] = field(default_factory=list)

    def of_group(self, name: str) -> Rows:
        """The rows of one group."""
        return self.chosen([g == name for g in self.group])

    def chosen(self, kept: Sequence[bool]) -> Rows:
        """The rows that are marked."""
        def of(column: list[T]) -> list[T]:
            return list(compress(column, kept))

        return Rows(arm=of(self.arm), unit=of(self.unit), outcome=of(self.outcome), cost=of(self.cost),
                    cluster=of(self.cluster), group=of(self.group))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsTable:
    """Outcomes and costs of arms (rows) on units (columns); NaN where there is none."""

    arms: tuple[str, ...]
    units: tuple[str, ...]
    trials: Array
    """Rows of an arm on a unit that hold an outcome."""
    passed: Array
    """Sum of the outcomes of those rows."""
    cost: Array | None
    """Mean cost of an arm's rows on a unit; None without a cost column."""
    clusters: tuple[str, ...] | None
    shares: bool
    """Whether all outcomes lie between 0 and 1."""
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Array:
        """Mean outcome of an arm on a unit; NaN without one."""
        with np.errstate(invalid="ignore"):
            return np.where(self.trials > 0, self.passed / self.trials, np.nan)


def read_rows(path: Path, columns: Columns, where: Mapping[str, str] | None = None) -> Rows:
    """The named columns of a CSV.

    `where` keeps rows whose column matches a pattern (`*` and `?` stand for anything). The separator is a comma, a tab
    or a semicolon, whichever the header holds. Raises ReadError for a file that is no table (file, line), ConfigError
    for columns that are not there and for cells that are not numbers (file, line, column).
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, _long_fields():
            rows = _read(file, path, columns, where or {})
    except OSError as error:
        raise ReadError(str(path), error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise ReadError(str(path), f"not UTF-8: {error.reason}", _broken_line(path)) from error
    if not rows.arm:
        raise ConfigError(str(path), "--where" if where else "", "no row is left" if where else "has no rows")
    return rows


@contextmanager
def _long_fields() -> Iterator[None]:
    """Tables may hold whole transcripts in a cell."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _broken_line(path: Path) -> int | None:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


def _read(file: TextIO, path: Path, columns: Columns, where: Mapping[str, str]) -> Rows:
    first = file.readline()
    if not first.strip():
        raise ReadError(str(path), "expected a table with a header in its first line", 1)
    separator = max(_SEPARATORS, key=first.count)
    header = next(csv.reader([first], delimiter=separator))
    kept = [(_place(header, name, path), re.compile(_regex(p), re.DOTALL)) for name, p in where.items()]
    taker = _Taker(path, header, columns)
    for line, row in _records(file, path, separator, len(header)):
        if all(pattern.fullmatch(row[i]) for i, pattern in kept):
            taker.take(line, row)
    return taker.rows


def _records(file: TextIO, path: Path, separator: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """Data rows with the line on which each begins; a field may hold line breaks. Blank lines are passed over."""
    reader = csv.reader(file, delimiter=separator, strict=True)
    line = 2
    try:
        for row in reader:
            if len(row) == width:
                yield line, row
            elif "".join(row).strip():
                raise ReadError(str(path), f"expected {width} fields as in the header, found {len(row)}", line)
            line = reader.line_num + 2
    except csv.Error as error:
        raise ReadError(str(path), f"not valid CSV: {error}", line) from error


def _place(header: Sequence[str], name: str, path: Path) -> int:
    if header.count(name) > 1:
        raise ConfigError(str(path), name, "more than one column has this name")
    if name not in header:
        raise UnknownName("column", name, header, str(path))
    return header.index(name)


def _regex(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern)


class _Taker:
    """Takes the named cells of each row."""

    def __init__(self, path: Path, header: Sequence[str], columns: Columns) -> None:
        self.rows = Rows()
        self._path, self._header = path, header
        self._seen: dict[str, str] = {}
        rows = self.rows
        names = ((columns.arm, rows.arm), (columns.unit, rows.unit), (columns.cluster, rows.cluster),
                 (columns.group, rows.group))
        self._names = [(_place(header, n, path), column) for n, column in names if n is not None]
        self._outcome = _place(header, columns.outcome, path)
        self._costs = [_place(header, n, path) for n in columns.cost]

    def take(self, line: int, row: Sequence[str]) -> None:
        """Keep a row's cells. Raises ConfigError for an empty name and for what is no number."""
        for place, column in self._names:
            name = row[place].strip()
            if not name:
                raise self._error(line, place, "empty, but every row needs one")
            column.append(self._seen.setdefault(name, name))
        self.rows.outcome.append(self._number(line, row, self._outcome))
        if self._costs:
            self.rows.cost.append(sum(self._number(line, row, place) for place in self._costs))

    def _number(self, line: int, row: Sequence[str], place: int) -> float:
        """A cell as a number: blanks are NaN, true and false are 1 and 0."""
        cell = row[place]
        try:
            value = float(cell)
        except ValueError:
            value = nan
        if isfinite(value) and "_" not in cell:
            return value
        word = _WORDS.get(cell.strip().lower())
        if word is None:
            raise self._error(line, place, f"{cell[:40]!r} is not a finite number")
        return word

    def _error(self, line: int, place: int, reason: str) -> ConfigError:
        return ConfigError(f"{self._path}:{line}", self._header[place], reason)


def arrange(rows: Rows, only: Sequence[str] = ()) -> ResultsTable:
    """Rows as arms (in the order of their first row) × units (sorted). `only` leaves the other arms out.

    Several rows of an arm on a unit are its trials. Raises ConfigError for an arm without rows or without outcomes,
    for a unit in two clusters, and where the columns cannot be what they are said to be.
    """
    arms = _arms(rows, only)
    rows = rows.chosen([a in arms for a in rows.arm]) if only else rows
    units = {u: i for i, u in enumerate(sorted(set(rows.unit)))}
    shape = (len(arms), len(units))
    if shape[0] * shape[1] > MOST_CELLS:
        raise ConfigError("--arm", "", f"{shape[0]:,} arms × {shape[1]:,} units: are these the right columns?")
    place = _codes(rows.arm, arms) * shape[1] + _codes(rows.unit, units)
    outcome = np.array(rows.outcome)
    trials, passed = _cells(place, outcome, shape)
    shares = bool(np.all((outcome >= 0) & (outcome <= 1) | np.isnan(outcome)))
    return ResultsTable(arms=tuple(arms), units=tuple(units), trials=trials, passed=passed, shares=shares,
                        cost=_mean_cells(place, np.array(rows.cost), shape) if rows.cost else None,
                        clusters=_clusters(rows) if rows.cluster else None,
                        notes=tuple(_notes(outcome, place, trials, shares)))


def _codes(names: Sequence[str], codes: Mapping[str, int]) -> Counts:
    return np.fromiter(map(codes.__getitem__, names), dtype=np.int64, count=len(names))


def _arms(rows: Rows, only: Sequence[str]) -> dict[str, int]:
    """The arms that are compared, each with its place."""
    known = dict.fromkeys(rows.arm)
    for name in only:
        if name not in known:
            raise UnknownName("arm", name, known, "--only")
    chosen = {a: i for i, a in enumerate(a for a in known if not only or a in only)}
    with_outcome = {a for a, o in zip(rows.arm, rows.outcome, strict=True) if o == o}
    for name in chosen.keys() - with_outcome:
        raise ConfigError("--outcome", "", f"arm {name!r} has no row with an outcome")
    return chosen


def _cells(place: Counts, values: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """How many known values each cell holds, and their sum."""
    known, size = ~np.isnan(values), shape[0] * shape[1]
    counts: Array = np.bincount(place[known], minlength=size).astype(float)
    sums: Array = np.bincount(place[known], weights=values[known], minlength=size).astype(float)
    return counts.reshape(shape), sums.reshape(shape)


def _mean_cells(place: Counts, values: Array, shape: tuple[int, int]) -> Array:
    counts, sums = _cells(place, values, shape)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, np.nan)


def _clusters(rows: Rows) -> tuple[str, ...]:
    """The cluster of each unit, units sorted."""
    found: dict[str, str] = {}
    for unit, cluster in zip(rows.unit, rows.cluster, strict=True):
        if found.setdefault(unit, cluster) != cluster:
            raise ConfigError("--cluster", "", f"unit {unit!r} is in more than one cluster")
    return tuple(found[unit] for unit in sorted(found))


def _notes(outcome: Array, place: Counts, trials: Array, shares: bool) -> list[str]:
    notes = []
    blank, repeated = int(np.isnan(outcome).sum()), len(place) - len(np.unique(place))
    if blank:
        notes.append(f"{blank:,} rows have no outcome: they count as missing, so as failures")
    if repeated:
        notes.append(f"{repeated:,} rows repeat an arm and a unit: they are averaged as trials of the same unit; if "
                     "they belong to different experiments, tell them apart with --where or --group")
    if not shares:
        notes.append("outcomes lie outside 0–1: the rate is their mean, and a missing unit counts as 0")
    if (trials == 0).mean(axis=1).max(initial=0.0) > 0.1:
        notes.append("an arm lacks more than a tenth of the units, all of which count as failures; --where or --only "
                     "leaves arms out that were never run on all units")
    return notes
