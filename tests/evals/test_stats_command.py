"""`rewindow stats` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.cli import main

ARM_KEYS = {"arm", "n", "missing", "rate", "mean_cost", "difference", "low", "high", "p", "cost_difference", "cost_low",
            "cost_high", "mcnemar_p", "mde"}
CALL = ("--arm", "arm", "--unit", "unit", "--outcome", "ok")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three arms on twenty units of two models, one unit missing for one arm."""
    rows = [f"{arm},u{i},{int((i * step) % 5 < 3)},{1 + i % step},{0.5},m{i % 2}"
            for arm, step in (("raw", 3), ("mask", 2), ("sum", 4)) for i in range(20) if (arm, i) != ("sum", 7)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["arm,unit,ok,cost,extra,model", *rows, ""]))
    return path


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["stats", *words])
    said = capsys.readouterr()
    code = end.value.code
    return (code if isinstance(code, int) else 0), said.out, said.err


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, _ = _run(capsys, *words, "--json")
    assert 0 == code
    return json.loads(out)


def test_promised_keys(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the keys of the contract, rates and differences as fractions, the baseline among the arms."""
    found = _json(capsys, str(table), *CALL, "--baseline", "raw", "--cost", "cost+extra")

    assert {"baseline", "units", "arms"} <= found.keys()
    assert ["raw", "mask", "sum"] == [a["arm"] for a in found["arms"]]
    assert all(ARM_KEYS <= a.keys() for a in found["arms"])
    assert all(-1 <= a["difference"] <= 1 and 0 <= a["p"] <= 1 for a in found["arms"])
    assert (20, 19, 1) == (found["units"], found["arms"][2]["n"], found["arms"][2]["missing"])


def test_costs_are_null_without_a_cost_column(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was not asked for is missing, not zero."""
    arm = _json(capsys, str(table), *CALL, "--baseline", "raw")["arms"][1]

    assert [None] * 4 == [arm[k] for k in ("mean_cost", "cost_difference", "cost_low", "cost_high")]


def test_units_where_only_and_margin(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Filters, selection, denominator and margin reach the numbers."""
    found = _json(capsys, str(table), *CALL, "--baseline", "raw", "--where", "model=m1", "--only", "mask", "--units",
                  "40", "--margin", "1")

    assert (40, 1, ["raw", "mask"]) == (found["units"], found["margin"], [a["arm"] for a in found["arms"]])
    assert 10 == found["arms"][1]["n"]
    assert found["arms"][1]["non_inferior"]


def test_groups(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One study for each value of a column, in the order of the rows."""
    found = _json(capsys, str(table), *CALL, "--baseline", "raw", "--group", "model")

    assert [("m0", 10), ("m1", 10)] == [(g["group"], g["units"]) for g in found["groups"]]


def test_the_same_call_gives_the_same_numbers(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Resampling has a fixed seed."""
    words = (str(table), *CALL, "--baseline", "raw", "--cost", "cost")

    assert _json(capsys, *words) == _json(capsys, *words)


def test_printed_words(table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables, and sentences that say what they mean; no difference without what could have been found."""
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = _run(capsys, str(table), *CALL, "--baseline", "raw", "--cost", "cost+extra")

    assert 0 == code
    assert "20 units, against raw; differences in percentage points" in out
    assert out.count("No difference is shown") == out.count("four times in five, smaller ones less often")
    assert "1 of them without a row, which counts as a failure" in out
    assert "Its whole bill is ×" in out


def test_printed_for_one_unit_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit allows nothing; scores are not printed as per cent."""
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "table.csv"
    path.write_text("arm,unit,ok\nraw,a,10\nnew,a,12\n")
    out = _run(capsys, str(path), *CALL, "--baseline", "raw")[1]

    assert "One unit or cluster cannot show a difference." in out
    assert "a single one allows none" in out
    assert "%" not in out.split("Paired over")[0].replace("95 %", "")


@pytest.mark.parametrize(("words", "code", "message"), [
    (("--baseline", "rwa"), 2, "no arm called 'rwa'; did you mean raw?"),
    (("--baseline", "raw", "--cost", "price"), 2, "no column called 'price'"),
    (("--baseline", "raw", "--cost", "cost+"), 2, "--cost: expected COL or COL+COL, found 'cost+'"),
    (("--baseline", "raw", "--cost", "model"), 2, "table.csv:2: model: 'm0' is not a finite number"),
    (("--baseline", "raw", "--where", "model"), 2, "--where: expected COL=VALUE: 'model'"),
    (("--baseline", "raw", "--where", "model=x"), 2, "--where: no row is left"),
    (("--baseline", "raw", "--where", "model=m0", "--where", "model=m1"), 2, "this column is filtered twice"),
    (("--baseline", "raw", "--only", "all"), 2, "no arm called 'all'"),
    (("--baseline", "raw", "--units", "19"), 2, "--units: must lie between the 20 units"),
])
def test_errors_are_one_line(table: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int,
                             message: str) -> None:
    """Wrong calls end with 2 and one line that says what and where."""
    ended, out, err = _run(capsys, str(table), *CALL, *words)

    assert (code, "") == (ended, out)
    assert 1 == len(err.strip().splitlines())
    assert message in err


def test_an_unreadable_file_ends_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there cannot be read at all."""
    assert 3 == _run(capsys, str(tmp_path / "none.csv"), *CALL, "--baseline", "raw")[0]


def test_a_group_without_the_baseline_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error says which group lacks the arm."""
    path = tmp_path / "table.csv"
    path.write_text("arm,unit,ok,g\nraw,a,1,x\nnew,a,1,x\nnew,a,1,y\n")
    code, _, err = _run(capsys, str(path), *CALL, "--baseline", "raw", "--group", "g")

    assert 2 == code
    assert "group 'y': no arm called 'raw'" in err
