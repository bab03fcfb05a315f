"""Large runs are held and written in little memory, and nothing of them changes by that."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evals.metrics.base import Measurement
from evals.runs.compact import Compactor
from evals.runs.summary_text import pieces
from evals.trial import FileResult, SessionRow, TrialRow

_NUMBERS = st.floats(allow_nan=False) | st.integers(-2 ** 60, 2 ** 60)
_MEASURED = st.builds(Measurement, name=st.text(), value=_NUMBERS, level=st.sampled_from(["L0", "L1"]))
_MISSING = st.builds(Measurement, name=st.text(), value=st.none(), reason=st.none() | st.text())
_ANY = st.lists(_MEASURED | _MISSING, unique_by=lambda m: m.name)


def _session(*trials: TrialRow) -> SessionRow:
    return SessionRow(session="s", path="p", format="pi", position=0, harness_version=None, model=None, steps=1,
                      messages=1, notes=(), recorded_compactions=0, calibration_factor=1.0, calibration_overhead=None,
                      calibration_error=None, recorded=trials[0], trials=trials[1:])


def _compact(*measured: Any) -> tuple[TrialRow, ...]:
    rows = (TrialRow(policy=str(n), ok=True, measurements=tuple(found)) for n, found in enumerate(measured))
    row = Compactor().result(FileResult("p", sessions=(_session(*rows),))).sessions[0]
    return (row.recorded, *row.trials) if row.recorded else row.trials


@given(_ANY, _ANY)
def test_every_measurement_is_as_it_was(first: list[Measurement], second: list[Measurement]) -> None:
    """Names, values, whole numbers as whole ones, levels and reasons come back as they were."""
    held = _compact(first, second)

    assert [first, second] == [list(row.measurements) for row in held]
    assert [[type(m.value) for m in found] for found in (first, second)] == [
        [type(m.value) for m in row.measurements] for row in held]


def test_what_trials_share_is_held_once() -> None:
    """Trials of one metric differ in their numbers only."""
    one = Measurement(name="tokens", value=1.5)
    first, second = _compact([one], [replace(one, value=2.5)])

    assert first.measurements.shape is second.measurements.shape  # type: ignore[attr-defined]
    assert [1.5, 2.5] == [first.value("tokens"), second.value("tokens")]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(-9, 9) | st.lists(st.text()))), st.booleans())
def test_a_summary_in_pieces_is_the_summary(trials: list[dict[str, Any]], is_named_inside: bool) -> None:
    """Its text is that of the whole, also where something inside looks like the list of trials."""
    summary = {"run": "r", "inner": {"trials": []} if is_named_inside else 1, "trials": trials, "warnings": ['"trials": []']}
    text = b"".join(pieces(summary)).decode()

    assert summary == json.loads(text)
