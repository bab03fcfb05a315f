"""The message renderer and the charts, without a page."""

from __future__ import annotations

import pandas as pd
import pytest

from dashboard import charts, widgets
from dashboard.alignment import Fold, folded
from dashboard.messages import HEAD_CHARS, MOST_CHARS, text_box
from evals.board import PairRow
from evals.series import MARKS
from evals.side_by_side import Row

SAME, ADDED = Row(None, None, None), Row("added", None, None)


def test_long_runs_of_equal_messages_are_folded() -> None:
    """Three equal messages in a row become one line, two stay as they are."""
    rows = folded([SAME, SAME, ADDED, SAME, SAME, SAME])

    assert [Row, Row, Row, Fold] == [type(r) for r in rows]


def test_a_text_of_five_megabytes_is_cut_and_counted() -> None:
    """One endless line does not reach the page whole; what is left out is said."""
    made = text_box("x" * 5_000_000)

    assert MOST_CHARS + 2_000 > len(made)
    assert f"{5_000_000 - HEAD_CHARS:,} more characters" in made
    assert f"{5_000_000 - MOST_CHARS:,} more characters: see the raw JSON" in made


def test_short_texts_stand_whole() -> None:
    """A text that is only a little longer than the fold is not folded."""
    assert "<details" not in text_box("y" * (HEAD_CHARS + 100))
    assert "(no text)" in text_box("")


def test_plain_text_is_refused_as_markup() -> None:
    """Only what the markup module made can be put on a page."""
    with pytest.raises(TypeError, match="only markup"):
        widgets.put("<b>no</b>")  # type: ignore[arg-type]


def test_a_chart_of_many_points_keeps_its_layers() -> None:
    """Window, overflow band, lines, thresholds, marks and the clickable points are there."""
    curve = pd.DataFrame({"policy": "a", "step": range(1, 4_001), "tokens": range(4_000), "how": "counted",
                          "status": "sent", "estimated_tokens": 1.0, "threshold": 900.0, "sent": True})
    marks = pd.DataFrame({"policy": ["a"], "step": [4], "tokens": [3], "mark": [MARKS[0]], "reason": ["r"],
                          "estimated_tokens": [1.0], "threshold": [2.0], "tokens_before": [9.0], "tokens_after": [1.0]})
    made = charts.token_curve(curve, marks, ["a"], ["a"], 1_000).to_dict()

    assert 9 == len(made["layer"])
    assert "pick" in str(made["params"])


def test_a_forest_sorts_as_the_run_does() -> None:
    """Policies stand in the order of the run, with a line at no difference."""
    pairs = [PairRow(policy=p, metric="m", difference=1.0, low=0.5, high=2.0, words=("+1", "+0.5 to +2", "", "", ""))
             for p in ("b", "a")]
    made = charts.forest(pairs, "difference", ["base", "b", "a"]).to_dict()

    assert ["b", "a"] == made["layer"][1]["encoding"]["y"]["sort"]
    assert 3 == len(made["layer"])
