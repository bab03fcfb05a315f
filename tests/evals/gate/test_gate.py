"""The gate as a person meets it: golden folder, failures with their step, reports, cohorts."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from evals.bundled import sample_paths
from evals.commands.cohort import cohort
from evals.commands.gate import gate
from replay.errors import ConfigError, ReadError

HERE = Path(__file__).parent
LONG = next(p for p in sample_paths() if "long-refactoring" in p)
SMALL = [p for p in sample_paths() if "parcels" in p]
LONG_ID = "48bb9423-8c4c-429f-841f-f2718f58f6a2"


@pytest.fixture(autouse=True)
def _own_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def run(*words: object, code: int = 0) -> Any:
    """The answer of `rewindow gate … --json`."""
    done = CliRunner().invoke(gate, [*map(str, words), "--json"], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    assert code == done.return_value, done.output
    return orjson.loads(done.stdout)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Golden views of the bundled sessions under a compactor that works."""
    folder = tmp_path_factory.mktemp("gate") / "golden"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        run(*sample_paths(), "-p", "own_compactors:good", "--golden", folder, "--window", 64_000, "--accept")
    return folder


def first_failure(golden: Path, policy: str) -> dict[str, Any]:
    """What the gate says first about the long bundled session."""
    found = run(*sample_paths(), "-p", f"own_compactors:{policy}", "--golden", golden, code=1)
    return next(f for f in found["failures"] if f["session"] == LONG_ID)


def test_a_dropped_task_is_caught(golden: Path) -> None:
    """The step, the first user message as the one that is missing, and a command that shows it again."""
    failure = first_failure(golden, "drops_the_task")

    assert 32 == failure["step"]
    assert "the view differs: 1 missing; 122 more steps differ" == failure["what"]
    assert ("missing", 0, "user") == tuple(failure["differences"][0][k] for k in ("label", "message", "role"))
    assert failure["command"].startswith(f"rewindow gate {LONG} --session {LONG_ID} -p own_compactors:drops_the_task")


def test_a_split_pair_is_caught(golden: Path) -> None:
    """The step and the result that stands without its call."""
    failure = first_failure(golden, "splits_a_pair")

    assert 32 == failure["step"]
    assert failure["what"].startswith("a call and its result are parted: orphan-result toolu_")


def test_a_threshold_off_by_one_is_caught(golden: Path) -> None:
    """At the first decision, with both thresholds, although no view changes there."""
    failure = first_failure(golden, "off_by_one")

    assert (1, "counts") == (failure["step"], failure["tier"])
    assert ["1 threshold 24000 below_threshold"] == failure["golden"]
    assert ["1 threshold 23999 below_threshold"] == failure["found"]


def test_a_forgotten_summary_is_caught(golden: Path) -> None:
    """At the second compaction: the summary changed, and what only the first one spoke for is dropped."""
    failure = first_failure(golden, "forgets")

    assert 88 == failure["step"]
    assert "the view differs: 1 changed; 66 more steps differ" == failure["what"]
    assert any("dropped 1-42" in line for line in failure["found"])


def test_the_step_stands_in_the_text(golden: Path) -> None:
    """What a person reads names session and step, and the printed command fails in the same place."""
    done = CliRunner().invoke(gate, [LONG, "-p", "own_compactors:forgets", "--golden", str(golden),
                                     "--session", LONG_ID], standalone_mode=False)

    assert 1 == done.return_value
    assert f"{LONG_ID}, step 88: the view differs" in done.stdout


def test_unchanged_views_pass_with_equal_reports(golden: Path, tmp_path: Path) -> None:
    """20 times out of 20, in whatever order and on however many cores, every report is byte for byte the same."""
    seen = set()
    for round_ in range(20):
        jobs = 2 if round_ % 4 == 3 else 1
        paths = sample_paths()
        random.Random(round_).shuffle(paths)
        reports = [tmp_path / name for name in ("junit.xml", "summary.md")]
        done = CliRunner().invoke(gate, [*paths, "-p", "own_compactors:good", "--golden", str(golden), "--jobs", str(jobs),
                                         "--junit", str(reports[0]), "--markdown", str(reports[1]), "--json"],
                                  standalone_mode=False)
        assert 0 == done.return_value, done.output
        seen.add((done.stdout, *(r.read_text() for r in reports)))

    assert 1 == len(seen)


def test_a_policy_that_fails_is_a_failure(golden: Path) -> None:
    """The session, and what the policy raised; nothing passes by not running."""
    found = run(LONG, "--session", LONG_ID, "-p", "own_compactors:failing", "--golden", golden, code=1)

    assert "the policy failed: IndexError: message 330 is in no log" == found["failures"][0]["what"]
    assert {"failed"} == set(found["tiers"].values())


def test_accepting_a_change_needs_a_reason(tmp_path: Path) -> None:
    """Old hash, new hash and reason are kept, one line for each accepted change; only what changed is written."""
    folder = tmp_path / "golden"
    first = run(*SMALL, "-p", "own_compactors:good", "--golden", folder, "--accept")["accepted"]
    change = (*SMALL, "-p", "own_compactors:drops_the_task", "--golden", folder, "--accept")
    with pytest.raises(ConfigError, match="say why with --reason"):
        run(*change)
    second = run(*change, "--reason", "the summary names the task")["accepted"]
    lines = [orjson.loads(line) for line in (folder / "accepted.jsonl").read_bytes().splitlines()]

    assert [(None, first["new"], "first golden"), (first["new"], second["new"], "the summary names the task")] == [
        (entry["old"], entry["new"], entry["reason"]) for entry in lines]
    assert 1 == len(second["changed"])
    assert run(*SMALL, "-p", "own_compactors:drops_the_task", "--golden", folder)["passed"]


def test_accepting_what_is_the_same_changes_nothing(golden: Path) -> None:
    """No file is touched and no reason is asked for."""
    before = {p: p.stat().st_mtime_ns for p in golden.rglob("*") if p.is_file()}
    run(*sample_paths(), "-p", "own_compactors:good", "--golden", golden, "--accept")

    assert before == {p: p.stat().st_mtime_ns for p in golden.rglob("*") if p.is_file()}


def test_golden_files_hold_no_text_of_a_session(golden: Path) -> None:
    """Hashes, places and numbers only: a golden folder can be shown where the sessions cannot."""
    text = "".join(p.read_text() for p in golden.rglob("*.golden"))

    assert "ledger" not in text
    assert "rainlog" not in text


def test_a_golden_file_is_small(golden: Path) -> None:
    """The bundled sessions' 500 steps take less than 70 bytes each."""
    assert sum(p.stat().st_size for p in golden.rglob("*.golden")) < 70 * 500


def test_another_tokenizer_invalidates_its_own_tiers(golden: Path) -> None:
    """Counts, the bill and metrics of tokens are not checked; the other metrics are."""
    found = run(*sample_paths(), "-p", "own_compactors:good", "--golden", golden, "--tokenizer", "cl100k_base",
                "--tier", "counts", "--tier", "costs", "--tier", "tolerance")
    verdicts = {b["metric"]: b["verdict"] for b in found["tolerance"]}

    assert found["tiers"]["counts"].startswith("not checked: the tokenizer was o200k_base, ")
    assert found["tiers"]["costs"].startswith("not checked")
    assert "not checked" == verdicts["peak_view_tokens"]
    assert "non-inferior" == verdicts["evidence_retention"]
    assert any("--accept renews it" in w for w in found["warnings"])


def test_another_price_table_invalidates_the_bill_only(golden: Path) -> None:
    """Views, counts and metrics are checked as before; with --strict the gate insists on the bill too."""
    words = (*SMALL, "-p", "own_compactors:good", "--golden", golden, "--prices", "gpt-4o", "--tier", "views", "--tier",
             "counts", "--tier", "costs", *(w for i in ids(SMALL) for w in ("--session", i)))
    found = run(*words)

    assert ("passed", "passed") == (found["tiers"]["views"], found["tiers"]["counts"])
    assert found["tiers"]["costs"].startswith("not checked: the price table was each session's model, ")
    assert not run(*words, "--strict", code=1)["failures"]


def ids(paths: list[str]) -> list[str]:
    """Session ids of files."""
    from replay.readers import read

    return [t.session_id for p in paths for t in read(p)]


def test_tolerances_bound_what_may_get_worse(golden: Path) -> None:
    """Forgetting the first summary loses instructions; a wide margin lets that pass, the usual one does not."""
    words = (*sample_paths(), "-p", "own_compactors:forgets", "--golden", golden, "--tier", "tolerance")
    strict = {b["metric"]: b["verdict"] for b in run(*words, code=1)["tolerance"]}
    wide = {b["metric"]: b for b in run(*words, "--margin", "instruction_permanent_losses=5", "--margin",
                                        "repair-adjusted cost=50%", code=1)["tolerance"]}

    assert ("undecided", "undecided") == (strict["instruction_permanent_losses"], strict["repair_adjusted_cost"])
    assert ("non-inferior", 5) == tuple(wide["instruction_permanent_losses"][k] for k in ("verdict", "limit"))
    assert ("non-inferior", 1.5) == tuple(wide["repair_adjusted_cost"][k] for k in ("verdict", "limit"))


def test_other_sessions_are_said(golden: Path) -> None:
    """Sessions that only one side has are failures: like is compared with like."""
    found = run(*SMALL, "-p", "own_compactors:good", "--golden", golden, code=1)

    assert {"in the golden folder but not in the input"} == {f["what"] for f in found["failures"]}
    assert 10 - len(SMALL) == len(found["failures"])


def test_a_changed_recording_is_said(tmp_path: Path) -> None:
    """A session whose file was cut is not compared step by step with what it was."""
    path = tmp_path / "session.jsonl"
    lines = Path(LONG).read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines), encoding="utf-8")
    run(path, "-p", "own_compactors:good", "--golden", tmp_path / "golden", "--accept")
    path.write_text("".join(lines[:-20]), encoding="utf-8")
    found = run(path, "-p", "own_compactors:good", "--golden", tmp_path / "golden", code=1)

    assert ["the recording is not the one of the golden"] == [f["what"] for f in found["failures"]]


def test_another_window_is_refused(golden: Path) -> None:
    """Views for two windows do not compare; the line says both."""
    with pytest.raises(ConfigError, match="holds views for 64000, asked for 32000"):
        run(*SMALL, "-p", "own_compactors:good", "--golden", golden, "--window", 32_000)


@pytest.mark.parametrize(("words", "line"), [
    (("-p", "full-history"), "--golden FOLDER"),
    (("-p", "full-history", "--golden", "nowhere"), "make one with --accept"),
    (("--candidate", "full-history"), "go together"),
    (("-p", "full-history", "--golden", "nowhere", "--accept", "--margin", "speed=2"), "no metric called 'speed'"),
    (("-p", "full-history", "--golden", "nowhere", "--accept", "--margin", "edit_safety=much"), "METRIC=NUMBER"),
    (("-p", "full-history", "--golden", "nowhere", "--accept", "--margin", "edit_safety=-1"), "not negative"),
])
def test_wrong_calls_say_what_would_be_right(words: tuple[str, ...], line: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the option, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=line):
        run(*SMALL, *words)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "content", "line"), [
    ("gate.json", "{", "not valid JSON"),
    ("gate.json", '{"schema": 99}', "expected a golden folder of schema 1, found 99"),
    ("sessions/x.golden", "session x\nrecording y\n<<<<<<< ours\n", "unresolved merge conflict"),
    ("sessions/x.golden", "session x\nrecording y\n\n[prices]\n", "no such section"),
    ("sessions/x.golden", "", "at its start"),
])
def test_a_damaged_golden_folder_is_named(tmp_path: Path, name: str, content: str, line: str) -> None:
    """File, line, and what is wrong with it."""
    folder = tmp_path / "golden"
    run(SMALL[0], "-p", "full-history", "--golden", folder, "--accept")
    (folder / name).write_text(content)
    with pytest.raises(ReadError, match=line):
        run(SMALL[0], "-p", "full-history", "--golden", folder)


def test_the_reports_of_a_failure(golden: Path, tmp_path: Path) -> None:
    """JUnit counts the failures and holds their text; Markdown names session, step and what differs."""
    junit, markdown = tmp_path / "junit.xml", tmp_path / "summary.md"
    found = run(*sample_paths(), "-p", "own_compactors:splits_a_pair", "--golden", golden, "--junit", junit,
                "--markdown", markdown, code=1)
    suite = ET.parse(junit).getroot()[0]
    failed = [case for case in suite if case.find("failure") is not None]

    assert len(failed) == int(suite.attrib["failures"])
    assert len(failed) >= len(found["failures"])
    assert f"{LONG_ID}, step 32" == failed[0].attrib["name"]
    assert f"| {LONG_ID} | 32 | views | a call and its result are parted" in markdown.read_text()


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """An id and messages full of markup, paths and control characters break no report and leave no folder."""
    session = tmp_path / "s.json"
    bad = "../../x]]> <b>|\u202e\ufffe @you `c` [a](b)\x1b[2J"
    turn = [{"role": "user", "content": bad + " do"}, {"role": "assistant", "content": bad + " done"}]
    session.write_text(orjson.dumps({"id": bad, "messages": turn * 3}).decode())
    words = (session, "--golden", tmp_path / "golden", "-p")
    run(*words, "full-history", "--accept")
    junit, markdown = tmp_path / "j.xml", tmp_path / "m.md"
    found = run(*words, "empty", "--junit", junit, "--markdown", markdown, code=1)
    shown = markdown.read_text()

    assert found["failures"]
    assert int(ET.parse(junit).getroot()[0].attrib["failures"]) >= len(found["failures"])
    assert not any(c in shown + junit.read_text() for c in "\u202e\x1b")
    assert not any("<b>" in line for line in shown.splitlines() if not line.startswith("    "))
    assert {"golden", "j.xml", "m.md", "s.json"} == {p.name for p in tmp_path.iterdir()}


def test_two_revisions_are_compared_without_a_golden_folder() -> None:
    """Only what differs is reported, with the labelled difference and one command that shows it again."""
    words = (*sample_paths(), "--window", 64_000, "--candidate")
    found = run(*words, "own_compactors:drops_the_task", "--baseline", "own_compactors:good", code=1)

    assert 3 == len({f["session"] for f in found["failures"]})
    assert 32 == found["failures"][0]["step"]
    assert "--baseline own_compactors:good --window 64000" in found["failures"][0]["command"]
    assert run(*words, "own_compactors:good", "--baseline", "own_compactors:good")["passed"]


def freeze(out: Path, *words: str) -> Any:
    """The answer of `rewindow cohort … --json`."""
    done = CliRunner().invoke(cohort, [*words, "--out", str(out), "--json"], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return orjson.loads(done.stdout)


def test_a_cohort_is_what_the_rules_leave(tmp_path: Path) -> None:
    """Every include rule holds and no exclude rule does; tags mark; the hash does not depend on the order."""
    paths = sample_paths()
    rules = ("--include", "steps>=20", "--exclude", "format=codex", "--tag", "long:steps>=80")
    made = freeze(tmp_path / "a.json", *paths, *rules)
    again = freeze(tmp_path / "b.json", *reversed(paths), *rules)

    assert all(s["steps"] >= 20 and s["format"] != "codex" for s in made["sessions"])
    assert [LONG_ID] == [s["session"] for s in made["sessions"] if "long" in s["tags"]]
    assert made["hash"] == again["hash"]


def test_a_gate_over_a_cohort(tmp_path: Path) -> None:
    """The cohort's sessions are gated, those with a tag alone too; another cohort is refused."""
    freeze(tmp_path / "a.json", *sample_paths(), "--include", "format=claude-code", "--tag", "long:steps>=80")
    freeze(tmp_path / "b.json", *sample_paths(), "--include", "format=pi")
    words = ("-p", "full-history", "--golden", tmp_path / "golden")

    assert 3 == run("--cohort", tmp_path / "a.json", *words, "--accept")["sessions"]
    assert 3 == run("--cohort", tmp_path / "a.json", *words)["sessions"]
    assert 1 == run("--cohort", tmp_path / "a.json", "--tag", "long", *words)["sessions"]
    with pytest.raises(ConfigError, match="like would not be compared with like"):
        run("--cohort", tmp_path / "b.json", *words)


def test_a_cohort_notices_what_changed(tmp_path: Path) -> None:
    """A recording that is not what was frozen is a failure, a list that was edited by hand is refused."""
    session, frozen = tmp_path / "s.jsonl", tmp_path / "c.json"
    lines = Path(LONG).read_text(encoding="utf-8").splitlines(keepends=True)
    session.write_text("".join(lines), encoding="utf-8")
    freeze(frozen, str(session))
    words = ("--cohort", frozen, "-p", "full-history", "--golden", tmp_path / "golden")
    run(*words, "--accept")
    session.write_text("".join(lines[:-20]), encoding="utf-8")
    (tmp_path / "other.json").write_text(frozen.read_text().replace('"tags": []', '"tags": ["x"]'))

    failures = run(*words, code=1)["failures"]
    assert {"the cohort's recording is gone or has changed since it was frozen"} == {f["what"] for f in failures}
    with pytest.raises(ReadError, match="was edited after it was frozen"):
        run("--cohort", tmp_path / "other.json", *words[2:])


@pytest.mark.parametrize(("rule", "line"), [
    ("speed=3", "keys: session, format"), ("steps~2", "steps is a number"), ("format>2", "format is a text"),
    ("steps>=9999999", "no session is left"),
])
def test_a_wrong_rule_is_refused(rule: str, line: str, tmp_path: Path) -> None:
    """What the rule may ask about, or that it leaves nothing."""
    with pytest.raises(ConfigError, match=line):
        freeze(tmp_path / "c.json", *SMALL, "--include", rule)
