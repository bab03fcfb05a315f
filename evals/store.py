"""Run folders: the only reader and writer of their Parquet files. A run is complete or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from evals.trial import EVENT_COLUMNS, STEP_COLUMNS, SessionRow, TrialRow
from replay.errors import ReadError, RewindowError

SCHEMA_VERSION = 1
_TEXT = {"how", "status", "mode", "checkpoint", "reason", "fingerprint", "kind", "stage", "summariser", "summary",
         "session", "policy"}
_FLAGS = {"reactive", "futile"}
_LISTS = {"dropped", "summarised", "elided"}
_BATCH_ROWS = 50_000


class RunExists(RewindowError):
    """The run folder is there already."""


@dataclass
class RunWriter:
    """Takes sessions one by one and writes their rows in batches, so memory does not grow with the run."""

    folder: Path

    def __post_init__(self) -> None:
        """Open the three tables."""
        self._steps = _Table(self.folder / "steps.parquet", ("session", "policy", *STEP_COLUMNS))
        self._events = _Table(self.folder / "events.parquet", ("session", "policy", *EVENT_COLUMNS))
        self._trials: list[dict[str, Any]] = []

    def add(self, row: SessionRow) -> None:
        """Store a session's trials, the recorded lane among them."""
        for trial in (*((row.recorded,) if row.recorded else ()), *row.trials):
            self._steps.add((row.session, trial.policy, *step) for step in trial.steps)
            self._events.add((row.session, trial.policy, *event) for event in trial.events)
            self._trials.append(_trial_record(row, trial))

    def close(self, summary: dict[str, Any], recipe: str) -> None:
        """Write what is left, the summary and the recipe."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._steps.close()
        self._events.close()
        names = list(dict.fromkeys(k for t in self._trials for k in t))
        columns = {n: pa.array([t.get(n) for t in self._trials]) for n in names}
        pq.write_table(pa.table(columns), self.folder / "trials.parquet")
        (self.folder / "summary.json").write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2))
        (self.folder / "run.toml").write_text(recipe, encoding="utf-8")


class _Table:
    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._columns = columns
        self._schema = pa.schema([(name, _type(name)) for name in columns])
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []

    def add(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= _BATCH_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        columns = list(zip(*self._rows, strict=True)) or [()] * len(self._columns)
        arrays = [pa.array(list(c), type=f.type) for c, f in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


def _type(name: str) -> Any:
    import pyarrow as pa

    if name in _LISTS:
        return pa.list_(pa.int32())
    if name in _FLAGS:
        return pa.bool_()
    return pa.string() if name in _TEXT else pa.int64()


def _trial_record(row: SessionRow, trial: TrialRow) -> dict[str, Any]:
    base = {"session": row.session, "policy": trial.policy, "lane": trial.kind, "ok": trial.ok, "error": trial.error,
            "path": row.path, "position": row.position, "format": row.format, "model": row.model,
            "harness_version": row.harness_version, "steps": row.steps, "ended": trial.ended}
    return base | {m.name: m.value if m.value is None else float(m.value) for m in trial.measurements}


@contextmanager
def new_run(target: Path) -> Iterator[RunWriter]:
    """A writer for a run folder that appears at `target` only when the block ends well. Raises RunExists."""
    if target.exists():
        raise RunExists(f"{target}: there already; choose another --out or delete it")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield RunWriter(scratch)
        # mkdtemp makes folders that only the owner may enter; a run is as open as its parent lets it be.
        scratch.chmod(0o777 & ~_umask())
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def load_summary(run: Path, trials: bool = True) -> dict[str, Any]:
    """The summary of a stored run, also without its list of trials. Raises ReadError where the folder is not one."""
    path = run / "summary.json"
    if not path.is_file():
        raise ReadError(str(run), "not a run folder (no summary.json in it)")
    raw = path.read_bytes()
    try:
        summary: dict[str, Any] = orjson.loads(raw if trials else _without_trials(raw))
    except orjson.JSONDecodeError as error:
        raise ReadError(str(path), f"not valid JSON: {error}") from error
    return summary


_TRIALS, _END = b'\n  "trials": [', b"\n  ]"


def _without_trials(raw: bytes) -> bytes:
    """A summary with an empty list of trials, cut out unread: a list of the top level ends at its own indentation."""
    start = raw.find(_TRIALS)
    end = raw.find(_END, start + len(_TRIALS))
    is_empty = raw[start + len(_TRIALS):start + len(_TRIALS) + 1] == b"]"
    return raw if start < 0 or end < 0 or is_empty else raw[:start + len(_TRIALS)] + raw[end:]


def load_table(run: Path, name: str, columns: Sequence[str] | None = None, **equal: str | Sequence[str]) -> Any:
    """A table of a run (`trials`, `steps` or `events`) as a pandas DataFrame.

    With rows where columns equal a value, or one of several; columns that an older run lacks are left out.
    """
    import pyarrow.parquet as pq

    path = run / f"{name}.parquet"
    if not path.is_file():
        raise ReadError(str(path), "missing from the run folder")
    filters = [(column, "in", [value] if isinstance(value, str) else list(value)) for column, value in equal.items()]
    known = None if columns is None else [c for c in columns if c in pq.read_schema(path).names]
    return pq.read_table(path, columns=known, filters=filters or None).to_pandas()
