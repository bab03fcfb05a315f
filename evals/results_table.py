"""Anybody's results table: one row a trial, read from CSV into arms × units."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evals.stats_bootstrap import Array
from replay.errors import ConfigError, ReadError, UnknownName

MOST_CELLS = 50_000_000
"""More arms × units than this are a wrongly chosen column."""
_BLANK = {"", "na", "n/a", "nan", "null", "none"}
_TRUTH = {"true": 1.0, "false": 0.0}
_SEPARATORS = (",", "\t", ";")


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

    @property
    def names(self) -> list[str]:
        """Every named column once."""
        named = (self.arm, self.unit, self.outcome, *self.cost, self.cluster, self.group)
        return list(dict.fromkeys(n for n in named if n is not None))


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


def read_rows(path: Path, columns: Columns, where: Mapping[str, str] | None = None) -> Any:
    """The rows of a CSV as a DataFrame with columns arm, unit, outcome, cost, cluster, group, as far as they are named.

    `where` keeps rows whose column matches a pattern (`*` and `?` stand for anything). The separator is a comma, a tab
    or a semicolon, whichever the header holds. Raises ReadError for a file that is no table, ConfigError for columns
    that are not there and for cells that are not numbers (file, line, column).
    """
    kept = where or {}
    raw = _raw(path, [*columns.names, *(c for c in kept if c not in columns.names)])
    for column, pattern in kept.items():
        raw = raw[raw[column].str.fullmatch(_regex(pattern))]
    if not len(raw):
        raise ConfigError(str(path), "--where" if kept else "", "no row is left" if kept else "has no rows")
    made: dict[str, Any] = {"arm": _named(raw, columns.arm, path), "unit": _named(raw, columns.unit, path),
                            "outcome": _numbers(raw[columns.outcome], path)}
    if columns.cost:
        made["cost"] = sum(_numbers(raw[c], path) for c in columns.cost)
    made |= {word: _named(raw, name, path) for word, name in (("cluster", columns.cluster), ("group", columns.group))
             if name is not None}
    import pandas as pd

    return pd.DataFrame(made)


def _regex(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern)


def _raw(path: Path, names: Sequence[str]) -> Any:
    """The named columns as text. All columns are parsed: only so does a row with too many fields come to light."""
    import pandas as pd

    separator = _check_header(path, names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            raw = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, index_col=False,
                              encoding="utf-8-sig")
    except pd.errors.ParserWarning as error:
        raise ReadError(str(path), "rows hold more fields than the header names") from error
    except pd.errors.ParserError as error:
        line = re.search(r"in line (\d+)", str(error))
        raise ReadError(str(path), str(error).strip().removeprefix("Error tokenizing data. C error: "),
                        int(line[1]) if line else None) from error
    except UnicodeDecodeError as error:
        raise ReadError(str(path), f"not UTF-8: {error.reason} at byte {error.start:,}") from error
    return raw[list(names)].fillna("")


def _check_header(path: Path, names: Sequence[str]) -> str:
    """The separator of a table whose header holds all names once."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
    except OSError as error:
        raise ReadError(str(path), error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise ReadError(str(path), f"not UTF-8: {error.reason} at byte {error.start:,}") from error
    if not first.strip():
        raise ReadError(str(path), "expected a table with a header in its first line", 1)
    separator = max(_SEPARATORS, key=first.count)
    header = next(csv.reader([first], delimiter=separator))
    for name in names:
        if header.count(name) != 1:
            raise _column_error(path, name, header)
    return separator


def _column_error(path: Path, name: str, header: Sequence[str]) -> ConfigError:
    if name in header:
        return ConfigError(str(path), name, "more than one column has this name")
    return UnknownName("column", name, header, str(path))


def _named(raw: Any, name: str, path: Path) -> Any:
    """A column of names, none of them empty."""
    found = raw[name].str.strip()
    empty = found.index[found == ""]
    if len(empty):
        raise ConfigError(f"{path}:{_line(path, int(empty[0]))}", name, "empty, but every row needs one")
    return found


def _numbers(cells: Any, path: Path) -> Any:
    """A column as numbers: blanks are NaN, true and false are 1 and 0. Raises ConfigError for anything else."""
    import pandas as pd

    found = pd.to_numeric(cells, errors="coerce").astype("float64")
    odd = cells[~np.isfinite(found.to_numpy())]
    words = odd.str.strip().str.lower()
    wrong = words.index[~words.isin(_BLANK | _TRUTH.keys())]
    if len(wrong):
        raise ConfigError(f"{path}:{_line(path, int(wrong[0]))}", str(cells.name),
                          f"{str(cells[wrong[0]])[:40]!r} is not a finite number")
    found[words.index] = words.map(_TRUTH).astype("float64")
    return found


def _line(path: Path, row: int) -> int:
    """The line on which a data row (from 0) begins; fields may hold line breaks."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = max(_SEPARATORS, key=file.readline().count)
        reader, before = csv.reader(file, delimiter=separator), 0
        for record in reader:
            row -= bool(record)
            if row < 0:
                break
            before = reader.line_num
    return before + 2


def arrange(rows: Any, only: Sequence[str] = ()) -> ResultsTable:
    """Rows as arms (in the order of their first row) × units (sorted). `only` leaves the other arms out.

    Several rows of an arm on a unit are its trials. Raises ConfigError for an arm without rows or without outcomes,
    for a unit in two clusters, and where the columns cannot be what they are said to be.
    """
    import pandas as pd

    arms = _arms(rows, only)
    rows = rows[rows["arm"].isin(arms)]
    arm = pd.Categorical(rows["arm"], categories=arms).codes.astype(np.int64)
    unit_codes, units = pd.factorize(rows["unit"], sort=True)
    shape = (len(arms), len(units))
    if shape[0] * shape[1] > MOST_CELLS:
        raise ConfigError("--arm", "", f"{shape[0]:,} arms × {shape[1]:,} units: are these the right columns?")
    place = arm * shape[1] + unit_codes
    trials, passed = _cells(place, rows["outcome"], shape)
    cost = _mean_cells(place, rows["cost"], shape) if "cost" in rows else None
    return ResultsTable(arms=tuple(arms), units=tuple(map(str, units)), trials=trials, passed=passed, cost=cost,
                        shares=bool(rows["outcome"].dropna().between(0, 1).all()),
                        clusters=_clusters(rows, unit_codes) if "cluster" in rows else None,
                        notes=tuple(_notes(rows, place, trials)))


def _arms(rows: Any, only: Sequence[str]) -> list[str]:
    known = [str(a) for a in rows["arm"].unique()]
    for name in only:
        if name not in known:
            raise UnknownName("arm", name, known, "--only")
    chosen = [a for a in known if not only or a in only]
    with_outcome = set(rows["arm"][rows["outcome"].notna()].unique())
    for name in chosen:
        if name not in with_outcome:
            raise ConfigError("--outcome", "", f"arm {name!r} has no row with an outcome")
    return chosen


def _cells(place: Any, values: Any, shape: tuple[int, int]) -> tuple[Array, Array]:
    """How many known values each cell holds, and their sum."""
    known = values.notna().to_numpy()
    size = shape[0] * shape[1]
    counts: Array = np.bincount(place[known], minlength=size).astype(float).reshape(shape)
    sums: Array = np.bincount(place[known], weights=values.to_numpy()[known], minlength=size).astype(float)
    return counts, sums.reshape(shape)


def _mean_cells(place: Any, values: Any, shape: tuple[int, int]) -> Array:
    counts, sums = _cells(place, values, shape)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, np.nan)


def _clusters(rows: Any, unit_codes: Any) -> tuple[str, ...]:
    """The cluster of each unit, units sorted."""
    pairs = rows[["unit", "cluster"]].assign(code=unit_codes).drop_duplicates().sort_values("code", kind="stable")
    twice = pairs["unit"][pairs["code"].duplicated()]
    if len(twice):
        raise ConfigError("--cluster", "", f"unit {twice.iloc[0]!r} is in more than one cluster")
    return tuple(map(str, pairs["cluster"]))


def _notes(rows: Any, place: Any, trials: Array) -> list[str]:
    notes = []
    blank = int(rows["outcome"].isna().sum())
    if blank:
        notes.append(f"{blank:,} rows have no outcome: they count as missing, so as failures")
    repeated = len(place) - len(np.unique(place))
    if repeated:
        notes.append(f"{repeated:,} rows repeat an arm and a unit: they are averaged as trials of the same unit; if "
                     "they belong to different experiments, tell them apart with --where or --group")
    if not rows["outcome"].dropna().between(0, 1).all():
        notes.append("outcomes lie outside 0–1: the rate is their mean, and a missing unit counts as 0")
    if (trials == 0).mean(axis=1).max(initial=0.0) > 0.1:
        notes.append("an arm lacks more than a tenth of the units, all of which count as failures; --where or --only "
                     "leaves arms out that were never run on all units")
    return notes
