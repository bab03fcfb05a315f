"""The validity experiments: their statistics on toy tables, and what they say of sessions."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.validity_cache import CacheCheck
from evals.validity_edits import edit_report, failure_of, judged
from evals.validity_events import units
from evals.validity_rereads import odds_ratio, reread_report
from evals.validity_stats import Counts, auc, auc_error, mantel_haenszel, pooled_auc, risk_ratio
from replay.cli import main
from replay.engine import Session
from replay.readers import read as read_file
from replay.testing import FixedCounter, Script, summary_message
from replay.tokens.bytes_count import ByteCounter


def test_the_toy_tables_give_their_odds_ratios() -> None:
    """6, 4, 2, 8 is an odds ratio of 6; the placebo's 2, 8, 3, 7 of 0.583; their ratio is 10.3."""
    real, placebo = [Counts(6, 4, 2, 8)], [Counts(2, 8, 3, 7)]

    assert pytest.approx(6.0) == mantel_haenszel(real)
    assert pytest.approx(0.583, abs=0.001) == mantel_haenszel(placebo)
    assert pytest.approx(10.3, abs=0.02) == odds_ratio(real, placebo)


def test_the_power_of_a_hundred_positives_is_known() -> None:
    """An AUC of 0.65 over 100 positives and 1,000 negatives has a standard error of 0.031."""
    assert pytest.approx(0.031, abs=0.0005) == auc_error(0.65, 100, 1_000)


def test_ties_count_half_and_one_sided_bins_are_skipped() -> None:
    """All scores equal give one half; a bin without a hit has no AUC and is counted as skipped."""
    assert 0.5 == auc([1, 1, 1], [True, False, False])
    assert 1.0 == auc([3, 1, 2], [True, False, False])
    assert auc([1, 2], [False, False]) is None
    assert (1, 1) == pooled_auc([([1, 2], [False, True]), ([1, 2], [False, False])])[1:]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_turning_scores_round_turns_the_auc_round(pairs: list[tuple[int, bool]]) -> None:
    """The AUC of negated scores is one minus the AUC."""
    scores, hits = [float(s) for s, _ in pairs], [h for _, h in pairs]
    plain, turned = auc(scores, hits), auc([-s for s in scores], hits)

    assert (plain is None) == (turned is None)
    assert plain is None or pytest.approx(1.0) == plain + (turned or 0.0)


def test_a_risk_ratio_without_events_on_one_side_has_one_bound() -> None:
    """3 of 10 against 0 of 100: no ratio, no upper bound, a lower bound above 1."""
    found = risk_ratio(Counts(3, 7, 0, 100))

    assert (None, None) == (found.value, found.high)
    assert found.low is not None and found.low > 1
    assert (None, None, None) == risk_ratio(Counts(0, 5, 0, 5))


@pytest.mark.parametrize(("said", "expected"), [
    ("String to replace not found in file.\nString: x", "not-found"),
    ("Found 3 matches of the string to replace, but replace_all is false.", "not-unique"),
    ("File has been modified since read, either by the user or by a linter.", "file-changed"),
    ("File has not been read yet. Read it first before writing to it.", "not-read"),
    ("apply_patch verification failed: Failed to find expected lines in a.py", "not-found"),
    ("The user does not want to proceed", "other"),
])
def test_failed_edits_are_told_apart(said: str, expected: str) -> None:
    """Each harness's words for a failed edit fall into one of four classes, or into the rest."""
    assert expected == failure_of(said, is_error=True)
    assert failure_of(said, is_error=False) is None


def read(script: Script, path: str, text: str) -> Script:
    """A read of a file."""
    return script.call("Read", json.dumps({"file_path": path})).result(text)


def edit(script: Script, path: str, old: str, result: str = "ok", failed: bool = False) -> Script:
    """An edit of a file."""
    arguments = {"file_path": path, "old_string": old, "new_string": "pass"}
    return script.call("Edit", json.dumps(arguments)).result(result, is_error=failed)


def session(script: Script) -> Session:
    """The script as a session, ten tokens a message."""
    return Session(script.build(), FixedCounter((10,) * 400))


LINE = "    return sum(items) / count_of_{}"


def test_an_edit_from_memory_is_unsafe_and_its_failure_is_counted() -> None:
    """After a compaction that kept nothing an edit of the lost text fails: one unsafe edit, one of them not found."""
    script = edit(read(Script().user("go"), "a.py", LINE.format("a")), "a.py", LINE.format("a"))
    script.compacted(summary_message("we work"), summary="we work")
    script = edit(script.user("on"), "a.py", LINE.format("a"), "String to replace not found in file.", failed=True)
    found = edit_report(judged(session(script)))

    assert {"exact": 1, "unsafe": 1} == found["verdicts"]
    assert (1, 1, 1, 0) == tuple(found["risk_ratios"]["not-found"][k]
                                 for k in ("unsafe", "unsafe_failed", "safe", "safe_failed"))
    assert 1.0 == found["sensitivity"] == found["precision"]


def test_a_read_before_the_edit_is_what_made_it_safe() -> None:
    """Lost in a compaction and read again right before the edit: a safe edit that is safe only because of the read."""
    script = read(Script().user("go"), "a.py", LINE.format("a")).compacted(summary_message("we work"), summary="we work")
    script = edit(read(script.user("on"), "a.py", LINE.format("a")), "a.py", LINE.format("a"))
    found = edit_report(judged(session(script)))

    assert (1, 1, 1) == (found["safe_edits"], found["safe_after_reread"], found["made_safe_by_reread"])


def test_what_a_compaction_lost_and_the_agent_read_again_is_found() -> None:
    """Two files known, both lost, one read again: two units, one of them read again; no verdict from one event."""
    script = read(read(Script().user("go"), "a.py", LINE.format("a")), "b.py", LINE.format("b"))
    script.compacted(summary_message("we work"), summary="we work")
    made = units(session(read(script.user("on"), "a.py", LINE.format("a"))))

    assert [(True, True), (True, False)] == [(u.lost, u.again[0]) for u in made]
    report = reread_report(made)
    assert (1, 2, 2) == (report["events"], report["units"], report["lost"])
    assert report["passes"] is None and "1 compactions" in report["stopped"]


def test_a_file_that_changed_since_is_not_read_again() -> None:
    """A read after an edit brings new content: it says nothing about what was lost."""
    script = read(Script().user("go"), "a.py", LINE.format("a")).compacted(summary_message("we"), summary="we")
    script = read(edit(script.user("on"), "a.py", LINE.format("a")), "a.py", "    pass")

    assert [False] == [u.again[0] for u in units(session(script))]


def test_too_few_compactions_are_said_to_be_too_few(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three recorded compactions are read, judged and called too few, with every count in the document."""
    path = shared / "transcripts" / "claude-code" / "three-compactions.jsonl"

    with pytest.raises(SystemExit, match="0"):
        main(["validate", str(path), "--json", "--jobs", "1"])
    found = json.loads(capsys.readouterr().out)
    assert 3 == found["V1"]["events"]
    assert "3 compactions; a verdict needs about 60" == found["V1"]["stopped"]
    assert abs(found["V0"]["bias"]) < 0.03 and found["V0"]["warm_within_2_percent"] >= 0.85


def usages(path: Path) -> list[tuple[int, int, int]]:
    """Input, cache reads and cache writes of every response as a Pi file has them."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            used = (json.loads(line).get("message") or {}).get("usage")
            found += [(used["input"], used["cacheRead"], used["cacheWrite"])] if used else []
    return found


@pytest.mark.parametrize(("name", "expected"), [("v1-two-compactions", 449), ("v3-bad-escapes", 1)])
def test_reads_follow_from_reads_and_writes_as_often_as_the_file_says(shared: Path, name: str, expected: int) -> None:
    """Of successive answered requests so many read exactly what the one before had read and written."""
    path = shared / "transcripts" / "pi" / f"{name}.jsonl"
    rows = usages(path)
    check = CacheCheck()
    check.add(Session(read_file(path)[0], ByteCounter()))

    assert expected == sum(p.identity for p in check.pairs)
    assert expected == sum(b[1] == a[1] + a[2] for a, b in pairwise(rows) if any(a) and any(b))


def test_the_cache_model_explains_the_real_sessions(transcripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over all real sessions the bias is under 3 % of the input, and 85 % of warm pairs are within 2 %."""
    with pytest.raises(SystemExit, match="0"):
        main(["validate", str(transcripts), "--only", "V0", "--json", "--jobs", "1"])
    found = json.loads(capsys.readouterr().out)["V0"]

    assert abs(found["bias"]) < 0.03
    assert found["warm_within_2_percent"] >= 0.85
    assert 0 < found["unexplained_token_share"] < 0.05
    assert found["passes"]


def test_one_experiment_can_be_run_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--only V2` prints the edits alone."""
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(json.dumps({"role": role, "content": "hello"}) for role in ("user", "assistant")) + "\n")

    with pytest.raises(SystemExit, match="0"):
        main(["validate", str(path), "--only", "V2"])
    said = capsys.readouterr().out
    assert "V2: 0 recorded edits" in said and "V1" not in said
    assert "No verdict" in said
