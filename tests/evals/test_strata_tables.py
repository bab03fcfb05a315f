"""What the reports say about differences between short and long sessions, or sessions of different harnesses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.strata_tables import STRATA_TITLE, strata_line, strata_rows
from replay.cli import main


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The bundled sessions under three policies."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["demo", "--out", str(folder / "run")])
    found: dict[str, object] = json.loads((folder / "run" / "summary.json").read_text())
    return found


def effect(pooled: float, weighted: float, turned: bool) -> dict[str, object]:
    """A policy's effect in two strata."""
    strata = [{"name": "short", "sessions": 90, "n": 50, "effect": 0.05},
              {"name": "long", "sessions": 10, "n": 50, "effect": 0.05}]
    return {"policy": "tail", "baseline": "full-history", "metric": "evidence_retention", "by": "length in steps",
            "pooled": pooled, "session_weighted": weighted, "equal_weighted": weighted, "low": 0.01, "high": 0.09,
            "reversed": turned, "strata": strata}


def test_a_reversal_is_named() -> None:
    """Pooled −19 points and +5 in every stratum: the sign turns, and the sentence counts it."""
    document = {"strata": [effect(-0.19, 0.05, turned=True), effect(0.05, 0.05, turned=False)]}
    found = strata_rows(document, only_reversed=True)

    assert [("tail", "-19.0%", "5.0%", "1.0% … 9.0%", "turns")] == [(r[0], r[3], r[4], r[5], r[8]) for r in found]
    assert "short: 5.0% (n 50); long: 5.0% (n 50)" == found[0][7]
    assert "By length in steps: 1 of 2 effects keep their sign" in (strata_line(document) or "")


def test_what_moves_nowhere_has_no_row() -> None:
    """An effect of zero in every stratum is left out, and without effects nothing is claimed."""
    still = effect(0.0, 0.0, turned=False) | {"strata": [{"name": "all", "sessions": 3, "n": 3, "effect": 0.0}]}

    assert [] == strata_rows({"strata": [still]})
    assert None is strata_line({"strata": [still]})


def test_every_report_has_the_strata(summary: dict[str, object], tmp_path: Path,
                                     capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Markdown and HTML have a table by harness, the terminal says how many effects keep their sign."""
    monkeypatch.setenv("COLUMNS", "300")
    run = str(summary["run"])
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["report", run, "--markdown", str(tmp_path / "r.md"), "--html", str(tmp_path / "r.html")])
    said = capsys.readouterr().out

    assert "harness" in {row[2] for row in strata_rows(summary)}
    assert all(STRATA_TITLE in (tmp_path / name).read_text() for name in ("r.md", "r.html"))
    assert "effects keep their sign" in said
