"""Results tables: reading, missing units, trials, clusters, and a published table reproduced."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evals.results_table import Columns, arrange, read_rows
from evals.stats_binary import zero_event_upper
from evals.stats_power import mde_binary
from evals.stats_study import report, study
from replay.errors import ConfigError, ReadError, UnknownName

COLUMNS = Columns(arm="arm", unit="unit", outcome="ok")
PRICED = Columns(arm="arm", unit="unit", outcome="ok", cost=("cost", "summary"))


def _write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _report(path: Path, columns: Columns = COLUMNS, baseline: str = "raw", **options: Any) -> dict[str, Any]:
    return report(study(arrange(read_rows(path, columns)), baseline, **options))


def _arm(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(a for a in found["arms"] if a["arm"] == name)


def _outcomes(folder: Path, **arms: str) -> Path:
    """A table from one string of outcomes an arm; a dot is a unit without a row."""
    rows = [f"{arm},u{i:03},{o}" for arm, outcomes in arms.items() for i, o in enumerate(outcomes) if o != "."]
    return _write(folder, "\n".join(["arm,unit,ok", *rows, ""]))


def test_missing_units_are_failures(tmp_path: Path) -> None:
    """Three of four solved and one never run is 3/4, not 3/3, and the difference counts it too."""
    found = _report(_outcomes(tmp_path, raw="1111", new="11.1"))

    assert 4 == found["units"]
    assert (3, 1, 0.75, -0.25) == tuple(_arm(found, "new")[k] for k in ("n", "missing", "rate", "difference"))
    assert (0, 1) == (_arm(found, "new")["gained"], _arm(found, "new")["lost"])


def test_units_set_the_denominator(tmp_path: Path) -> None:
    """Units that no arm has a row for fail under all of them."""
    found = _report(_outcomes(tmp_path, raw="1100", new="1110"), units=8)

    assert (8, 0.25, 0.375, 0.125) == (found["units"], _arm(found, "raw")["rate"], _arm(found, "new")["rate"],
                                       _arm(found, "new")["difference"])
    assert 4 == _arm(found, "new")["missing"]


@pytest.mark.parametrize("units", [3, 20_000_000])
def test_a_denominator_must_fit(tmp_path: Path, units: int) -> None:
    """Fewer units than the table holds is a mistake, and so is an absurd number."""
    with pytest.raises(ConfigError, match="--units: must lie between the 4 units"):
        _report(_outcomes(tmp_path, raw="1111", new="1111"), units=units)


def test_the_baseline_comes_first_and_equals_itself(tmp_path: Path) -> None:
    """Its difference is zero, its p one, whatever the order of the rows."""
    found = _report(_outcomes(tmp_path, new="1010" * 5, raw="1100" * 5))

    assert ["raw", "new"] == [a["arm"] for a in found["arms"]]
    first = found["arms"][0]
    assert (0, 0, 0, 1, 1) == tuple(first[k] for k in ("difference", "low", "high", "p", "mcnemar_p"))


def test_no_discordant_unit_is_not_perfect_power(tmp_path: Path) -> None:
    """Equal outcomes on 20 units: p is 1, and the detectable effect is that of what went unseen."""
    found = _arm(_report(_outcomes(tmp_path, raw="10" * 10, new="10" * 10)), "new")

    assert (1.0, 1.0) == (found["p"], found["mcnemar_p"])
    assert mde_binary(zero_event_upper(20), 20) == pytest.approx(found["mde"])


def test_worked_example_of_discordant_units(tmp_path: Path) -> None:
    """9 units lost against 2 gained: the exact p is .0654 and stays so when it is the only comparison."""
    found = _arm(_report(_outcomes(tmp_path, raw="1" * 9 + "00" + "1" * 40, new="0" * 9 + "11" + "1" * 40)), "new")

    assert (2, 9) == (found["gained"], found["lost"])
    assert 0.0654 == pytest.approx(found["mcnemar_p"], abs=5e-5)
    assert found["mcnemar_p"] == found["p_adjusted"]


def test_costs_are_added_up_and_paired(tmp_path: Path) -> None:
    """Cost columns are summed row by row; a unit without a cost is in no mean and no difference."""
    path = _write(tmp_path, "arm,unit,ok,cost,summary\nraw,a,1,2,0\nraw,b,0,4,0\nraw,c,1,6,0\n"
                            "new,a,1,1,0.5\nnew,b,1,2,0.5\nnew,c,0,,0.5\n")
    found = _arm(_report(path, PRICED), "new")

    assert 2.0 == found["mean_cost"]
    assert (-1.0, 2) == (found["cost_difference"], found["cost_n"])
    assert 4 / 6 == pytest.approx(found["cost_ratio"])
    assert 2.0 == found["cost_per_solved"]


def test_repeated_rows_are_trials(tmp_path: Path) -> None:
    """Several rows of a unit are averaged, noted, and tested by permuting labels within units instead of McNemar."""
    rows = [f"{arm},u{i},{int(t < solved)}" for arm, solved in (("raw", 1), ("new", 3)) for i in range(20)
            for t in range(4)]
    found = _report(_write(tmp_path, "\n".join(["arm,unit,ok", *rows])))
    new = _arm(found, "new")

    assert (0.75, 0.5, 80) == (new["rate"], new["difference"], new["trials"])
    assert None is new["mcnemar_p"]
    assert new["permutation_p"] < 0.001
    assert "120 rows repeat" in found["notes"][0]


def test_clusters_widen_the_interval(tmp_path: Path) -> None:
    """Units of one repository are resampled together, and McNemar is not claimed for them."""
    random = np.random.default_rng(1)
    better = random.random(20) < 0.6
    rows = [f"{arm},u{r}-{i},{int(better[r]) if arm == 'new' else int(i % 2)},r{r}" for arm in ("raw", "new")
            for r in range(20) for i in range(10)]
    path = _write(tmp_path, "\n".join(["arm,unit,ok,repo", *rows]))
    alone = _report(path)
    whole = _report(path, Columns(arm="arm", unit="unit", outcome="ok", cluster="repo"))
    a, b = _arm(alone, "new"), _arm(whole, "new")

    assert (200, 20) == (alone["clusters"], whole["clusters"])
    assert b["high"] - b["low"] > 1.5 * (a["high"] - a["low"])
    assert None is b["mcnemar_p"]


def test_a_unit_has_one_cluster(tmp_path: Path) -> None:
    """A unit in two repositories is a mistake in the table."""
    path = _write(tmp_path, "arm,unit,ok,repo\nraw,a,1,x\nnew,a,1,y\n")

    with pytest.raises(ConfigError, match="unit 'a' is in more than one cluster"):
        arrange(read_rows(path, Columns(arm="arm", unit="unit", outcome="ok", cluster="repo")))


def test_few_units_use_exact_flips_and_say_their_level(tmp_path: Path) -> None:
    """Four units: the interval covers 87.5 %, no margin is claimed, and nothing is null that is known."""
    found = _report(_outcomes(tmp_path, raw="0000", new="1110"))
    new = _arm(found, "new")

    assert ("sign-flip", 0.875, None) == (found["interval"], new["coverage"], new["non_inferior"])
    assert (0.0, 1.0) == (new["low"], new["high"])


def test_one_unit_has_no_interval(tmp_path: Path) -> None:
    """One unit: no interval, no rank, p of 1."""
    new = _arm(_report(_outcomes(tmp_path, raw="0", new="1")), "new")

    assert (None, None, None, None, 1.0) == tuple(new[k] for k in ("low", "high", "rank_low", "mde", "p"))


def test_bca_on_request(tmp_path: Path) -> None:
    """The corrected interval is another one, and is named."""
    random = np.random.default_rng(2)
    rows = [f"{arm},u{i},1,{c},0" for arm, size in (("raw", 1.0), ("new", 0.5))
            for i, c in enumerate(random.lognormal(sigma=1.5, size=60) * size)]
    path = _write(tmp_path, "\n".join(["arm,unit,ok,cost,summary", *rows]))
    plain, corrected = _report(path, PRICED), _report(path, PRICED, corrected=True)

    assert ("percentile", "bca") == (plain["interval"], corrected["interval"])
    assert _arm(plain, "new")["cost_low"] != _arm(corrected, "new")["cost_low"]


def test_order_of_rows_changes_nothing(tmp_path: Path) -> None:
    """Shuffled rows give the same statistics of every arm."""
    path = _outcomes(tmp_path, raw="1101001011" * 4, new="1111001.11" * 4, old="0101001010" * 4)
    before = _report(path)
    header, *rows = path.read_text().splitlines()
    np.random.default_rng(3).shuffle(rows)
    after = _report(_write(tmp_path, "\n".join([header, *rows])))

    assert {a["arm"]: a for a in before["arms"]} == {a["arm"]: a for a in after["arms"]}


@pytest.mark.parametrize(("text", "message"), [
    ("arm,unit,ok\nraw,a,1\nraw,b,maybe\n", r"table\.csv:3: ok: 'maybe' is not a finite number"),
    ('arm,unit,ok\nraw,"a\nb",1\n\nraw,c,1e999\n', r"table\.csv:5: ok: '1e999' is not a finite number"),
    ("arm,unit,ok\nraw,a,1_0\n", r"table\.csv:2: ok: '1_0' is not a finite number"),
    ("arm,unit,ok\nraw,,1\n", r"table\.csv:2: unit: empty, but every row needs one"),
    ("arm,task,ok\nraw,a,1\n", r"table\.csv: no column called 'unit'; known: arm, ok, task"),
    ("arm,unit,ok,ok\nraw,a,1,1\n", r"table\.csv: ok: more than one column has this name"),
    ("arm,unit,ok\n", r"table\.csv: has no rows"),
    ("arm,unit,ok\nraw,a,1\nnew,a,\n", "arm 'new' has no row with an outcome"),
])
def test_one_clear_line_for_wrong_tables(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong, and where: file, line, column."""
    with pytest.raises(ConfigError, match=message):
        _report(_write(tmp_path, text))


@pytest.mark.parametrize(("raw", "message"), [
    (b"", "expected a table with a header"),
    (b"arm,unit,ok\nraw,a,1\n\nraw,b,1,2,3\n", r"table\.csv:4: expected 3 fields as in the header, found 5"),
    (b"arm,unit,ok\nraw,a\n", r"table\.csv:2: expected 3 fields as in the header, found 2"),
    (b'arm,unit,ok\nraw,a,1\nraw,"b,1\n', r"table\.csv:3: not valid CSV: unexpected end of data"),
    (b"arm,unit,ok\nraw,a,1\nraw\xff,b,1\n", r"table\.csv:3: not UTF-8"),
    (b"arm,un\xffit,ok\nraw,a,1\n", r"table\.csv:1: not UTF-8"),
])
def test_files_that_are_no_tables(tmp_path: Path, raw: bytes, message: str) -> None:
    """Such a file cannot be read at all."""
    path = tmp_path / "table.csv"
    path.write_bytes(raw)

    with pytest.raises(ReadError, match=message):
        read_rows(path, COLUMNS)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Neither a missing file nor a folder is a table."""
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(ReadError):
            read_rows(path, COLUMNS)


def test_unknown_arms(tmp_path: Path) -> None:
    """A baseline or arm that is not there is named with the near ones."""
    path = _outcomes(tmp_path, raw="11", new="11")
    with pytest.raises(UnknownName, match="no arm called 'rav'; did you mean raw"):
        _report(path, baseline="rav")
    with pytest.raises(UnknownName, match="no arm called 'old'"):
        arrange(read_rows(path, COLUMNS), ["raw", "old"])


def test_cells_of_every_kind(tmp_path: Path) -> None:
    """Semicolons, a byte-order mark, CRLF, spaces, truth values, scores and blanks are all read."""
    path = tmp_path / "table.csv"
    path.write_bytes("\ufeffarm;unit;ok\r\nraw;a;True\r\nraw; b ;0.5\r\nraw;c;NA\r\nraw;d;\r\n".encode())
    found = arrange(read_rows(path, COLUMNS))

    assert (("raw",), ("a", "b", "c", "d")) == (found.arms, found.units)
    assert [1.0, 0.5] == found.outcome[0, :2].tolist()
    assert 2 == np.isnan(found.outcome).sum()
    assert "2 rows have no outcome" in found.notes[0]


def test_names_like_missing_values_are_names(tmp_path: Path) -> None:
    """An arm called NA and a unit called null are no blanks."""
    found = arrange(read_rows(_write(tmp_path, "arm,unit,ok\nNA,null,1\nNone,null,0\n"), COLUMNS))

    assert (("NA", "None"), ("null",)) == (found.arms, found.units)


def test_filters_and_selection(tmp_path: Path) -> None:
    """Patterns keep rows, a selection keeps arms, and a filter that keeps nothing is an error."""
    path = _write(tmp_path, "arm,unit,ok,model\nraw,a,1,big-1\nnew,a,0,big-2\nold,a,0,small\n")

    assert ("raw", "new") == arrange(read_rows(path, COLUMNS, {"model": "big-?"})).arms
    assert ("raw", "old") == arrange(read_rows(path, COLUMNS), ["old", "raw"]).arms
    with pytest.raises(ConfigError, match="no row is left"):
        read_rows(path, COLUMNS, {"model": "big"})


def test_scores_outside_zero_and_one_are_said(tmp_path: Path) -> None:
    """A score is averaged; the table is no table of shares."""
    found = _report(_write(tmp_path, "arm,unit,ok\nraw,a,10\nraw,b,20\nnew,a,12\nnew,b,24\n"))

    assert not found["shares"]
    assert 3.0 == _arm(found, "new")["difference"]
    assert any("outside 0–1" in n for n in found["notes"])


PUBLISHED = {
    # experiments: (masking, summary), each as difference in points, low, high, and the mean costs raw, masking, summary
    "gemini_2.5_flash-agent*": ((2.8, -0.8, 6.4), (3.2, -0.4, 7.0), (0.415, 0.177, 0.241)),
    "gemini_2.5_flash_thinking*": ((-4.0, -7.8, -0.2), (-9.0, -13.0, -5.2), (0.556, 0.242, 0.240)),
    "local-Qwen3-Coder*500": ((1.4, -1.6, 4.4), (0.4, -3.0, 3.8), (1.286, 0.610, 0.636)),
    "local-qwen3-32b*": ((-2.0, -5.0, 1.0), (-1.0, -4.6, 2.6), (1.117, 0.554, 0.500)),
    "local-Qwen3-32B*": ((1.6, -2.0, 5.2), (1.8, -1.8, 5.4), (0.513, 0.462, 0.511)),
}
"""The table of "The Complexity Trap" (arXiv 2508.21433), solve rates against the raw agent on 500 instances."""


def test_a_published_table_is_reproduced(shared: Path) -> None:
    """Ten differences exactly, their intervals within 0.3 points, mean costs with the summariser's, in under 5 s."""
    path = shared / "studies" / "complexity-trap" / "experiment_instance_costs_sweagent.csv"
    columns = Columns(arm="strategy", unit="instance_id", outcome="outcome", cost=("cost", "summary_cost"))
    arms = ("Observation Masking", "LLM-Summary")
    started = time.process_time()
    for pattern, (*differences, costs) in PUBLISHED.items():
        rows = read_rows(path, columns, {"experiment": pattern})
        found = report(study(arrange(rows), "Raw Agent", units=500))
        for name, (difference, low, high) in zip(arms, differences, strict=True):
            arm = _arm(found, name)
            assert difference == pytest.approx(arm["difference"] * 100, abs=1e-9), (pattern, name)
            assert (low, high) == pytest.approx((arm["low"] * 100, arm["high"] * 100), abs=0.3), (pattern, name)
            assert arm["p"] <= 1
        means = [_arm(found, name)["mean_cost"] for name in ("Raw Agent", *arms)]
        assert costs == pytest.approx(means, abs=1e-3), pattern
    assert time.process_time() - started < 5


def test_published_p_values_and_costs(shared: Path) -> None:
    """The p values agree to two digits, the cost differences to the third digit where no instance is missing."""
    path = shared / "studies" / "complexity-trap" / "experiment_instance_costs_sweagent.csv"
    columns = Columns(arm="strategy", unit="instance_id", outcome="outcome", cost=("cost", "summary_cost"))
    found = report(study(arrange(read_rows(path, columns, {"experiment": "local-Qwen3-Coder*500"})), "Raw Agent"))
    masking, summary = _arm(found, "Observation Masking"), _arm(found, "LLM-Summary")

    assert pytest.approx((0.386, 0.874), abs=0.02) == (masking["p"], summary["p"])
    assert pytest.approx((-0.676, -0.649), abs=2e-3) == (masking["cost_difference"], summary["cost_difference"])
    assert pytest.approx((-0.932, -0.452), abs=0.02) == (masking["cost_low"], masking["cost_high"])


def test_a_published_p_above_one_is_capped(shared: Path) -> None:
    """The second file of the study goes through as well; no p of any arm exceeds 1."""
    path = shared / "studies" / "complexity-trap" / "experiment_instance_costs_openhands.csv"
    columns = Columns(arm="experiment", unit="instance_id", outcome="outcome", cost=("cost", "summary_cost"))
    found = report(study(arrange(read_rows(path, columns)),
                         "gemini-2.5-flash_maxiter_250_N_v0.43.0-no-hint-raw_agent-run_1"))

    assert 500 == found["units"]
    assert all(0 < a[k] <= 1 for a in found["arms"] for k in ("p", "mcnemar_p", "p_adjusted", "cost_p"))


def test_very_many_rows(tmp_path: Path) -> None:
    """Two hundred thousand rows go through in one piece."""
    random, n = np.random.default_rng(4), 20_000
    lines = [f"a{k},{i},{o}" for k in range(10) for i, o in enumerate(random.integers(0, 2, n))]
    found = _report(_write(tmp_path, "\n".join(["arm,unit,ok", *lines])), baseline="a0")

    assert n == found["units"]
    assert all(a["low"] <= a["difference"] <= a["high"] for a in found["arms"])
