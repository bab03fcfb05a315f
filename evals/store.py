"""Stored runs, read. A run is complete or absent; `evals.runs` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from replay.errors import ReadError

SCHEMA_VERSION = 1

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
