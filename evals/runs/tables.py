"""The step and event tables of a run: encoded file by file, put together at the end."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from evals.trial import EVENT_COLUMNS, STEP_COLUMNS, SessionRow

COLUMNS: Mapping[str, Sequence[str]] = {"steps": STEP_COLUMNS, "events": EVENT_COLUMNS}
_TEXT = {"how", "status", "mode", "checkpoint", "reason", "fingerprint", "kind", "stage", "summariser", "summary",
         "policy"}
_FLAGS = {"reactive", "futile"}
_LISTS = {"dropped", "summarised", "elided"}
_BATCH_ROWS = 50_000
_TRIALS = 5_000


def encode(rows: Sequence[SessionRow], name: str) -> bytes:
    """The rows of a table for the sessions of one file, as Parquet; a session stands as its place among them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = COLUMNS[name]
    schema = pa.schema([("session", pa.int32()), ("policy", pa.string()), *((c, _type(c)) for c in columns)])
    made = list(_rows(rows, name))
    values: Sequence[Sequence[Any]] = list(zip(*made, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(v), type=field.type) for v, field in zip(values, schema, strict=True)]
    out = io.BytesIO()
    # Fast to write: what stays is compressed anew when the parts are put together.
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), out, compression="snappy")
    return out.getvalue()


def _rows(rows: Sequence[SessionRow], name: str) -> Iterator[tuple[Any, ...]]:
    for place, row in enumerate(rows):
        for trial in (*((row.recorded,) if row.recorded else ()), *row.trials):
            for values in getattr(trial, name):
                yield (place, trial.policy, *values)


def merge(parts: Iterable[tuple[bytes, Sequence[str]]], name: str, path: Path) -> None:
    """Write a table to `path` from its parts in order, each with the names of its sessions. Memory stays bounded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("session", pa.string()), ("policy", pa.string()), *((c, _type(c)) for c in COLUMNS[name])])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        waiting: list[Any] = []
        for data, sessions in parts:
            part = pq.read_table(io.BytesIO(data))
            named = pa.array(sessions, type=pa.string()).take(part["session"].combine_chunks())
            waiting.append(part.set_column(0, "session", named))
            if sum(len(t) for t in waiting) >= _BATCH_ROWS:
                writer.write_table(pa.concat_tables(waiting).cast(schema))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting).cast(schema))


def write_trials(rows: Sequence[SessionRow], path: Path, swept: Mapping[str, Mapping[str, Any]]) -> None:
    """One row a trial with every measurement, the recorded lane among them; a missing one is null.

    What is swept stands in columns `set.NAME`: the settings of each policy, by its name. Memory stays bounded: the
    columns are found in a first pass and written in a second.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([])
    for table in _trial_tables(rows, swept):
        schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
    with pq.ParquetWriter(path, schema) as writer:
        for table in _trial_tables(rows, swept):
            missing = [f for f in schema if f.name not in table.column_names]
            for field in missing:
                table = table.append_column(field, pa.nulls(len(table), field.type))
            writer.write_table(table.select(schema.names).cast(schema))


def _trial_tables(rows: Sequence[SessionRow], swept: Mapping[str, Mapping[str, Any]]) -> Iterator[Any]:
    """The trials, some thousands at a time."""
    import pyarrow as pa

    records = (dict((*_trial_record(row, trial), *((f"set.{n}", v) for n, v in swept.get(trial.policy, {}).items())))
               for row in rows for trial in (*((row.recorded,) if row.recorded else ()), *row.trials))
    while some := list(islice(records, _TRIALS)):
        names = dict.fromkeys(name for record in some for name in record)
        yield pa.table({name: [record.get(name) for record in some] for name in names})


def _trial_record(row: SessionRow, trial: Any) -> Iterator[tuple[str, Any]]:
    yield from (("session", row.session), ("policy", trial.policy), ("lane", trial.kind), ("ok", trial.ok),
                ("error", trial.error), ("path", row.path), ("position", row.position), ("format", row.format),
                ("model", row.model), ("harness_version", row.harness_version), ("steps", row.steps),
                ("ended", trial.ended))
    yield from ((m.name, m.value if m.value is None else float(m.value)) for m in trial.measurements)


def _type(name: str) -> Any:
    import pyarrow as pa

    if name in _LISTS:
        return pa.list_(pa.int32())
    if name in _FLAGS:
        return pa.bool_()
    return pa.string() if name in _TEXT else pa.int64()
