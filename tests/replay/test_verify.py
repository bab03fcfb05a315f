"""Proof of presets: captures compared request by request, worked examples, recorded compactions, the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from replay.commands.policies import policies
from replay.log import Log
from replay.policy.captures import RUNS
from replay.policy.differences import Difference, explained, view_difference
from replay.policy.examples import examples
from replay.policy.load import policy, preset_names
from replay.policy.own_presets import own_preset
from replay.policy.policy import Explained
from replay.policy.proofs import stored_proofs
from replay.policy.recorded import faithfulness
from replay.policy.verify import Verdict, capture_folders, verify_capture, verify_captures
from replay.readers.wire_sent import Part
from replay.testing import FixedCounter, Script, summary_message
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import Transcript
from replay.window import Inserted, Span, Window

COVERED = sorted({(c["harness"], c["version"]) for c in stored_proofs()["captures"]})


def log() -> Log:
    """Prompt, call, result, answer."""
    return Log(Script().user("go").call("read").result("body").say("done").build().main, FixedCounter(()))


def seen(*parts: tuple[str, int | None, str]) -> list[Part]:
    """What was sent: kind, log index and text of each part, with the role that the log has there."""
    roles = ("user", "assistant", "tool", "assistant")
    return [Part(role=roles[i] if i is not None else "user", text=t, kind=k, index=i)  # type: ignore[arg-type]
            for k, i, t in parts]


def held(*items: Span | Inserted) -> Window:
    """A window over the log."""
    return Window(items, (), 4)


def said(text: str) -> Inserted:
    """A summary in a window."""
    return Inserted(message=summary_message(text), kind="summary")


WHOLE = (("log", 0, "go"), ("log", 1, ""), ("log", 2, "body"), ("log", 3, "done"))


@pytest.mark.parametrize(("sent", "window", "what"), [
    (WHOLE, held(Span(0, 4)), None),
    (WHOLE, held(Span(1, 4)), "missing"),
    (WHOLE[1:], held(Span(0, 4)), "added"),
    (WHOLE[:3], held(Span(0, 4)), "added"),
    (WHOLE, held(Span(0, 3)), "missing"),
    ((WHOLE[0], WHOLE[3]), held(Span(3, 4), Span(0, 1)), "order"),
    ((*WHOLE[:2], ("changed", 2, "[cleared]"), WHOLE[3]), held(Span(0, 4)), "text"),
    ((("summary", None, "S"), WHOLE[3]), held(said("S"), Span(3, 4)), None),
    ((("summary", None, "S"), WHOLE[3]), held(said("T"), Span(3, 4)), "summary"),
    ((("inserted", None, "go on"), WHOLE[3]), held(Span(3, 4)), "order"),
])
def test_differences_are_named(sent: Sequence[tuple[str, int | None, str]], window: Window, what: str | None) -> None:
    """The first place where a view differs from what was sent gives the kind of the difference."""
    found = view_difference(1, seen(*sent), window, log())

    assert what == (found.what if found else None)


@pytest.mark.parametrize(("entry", "reason"), [
    (Explained(what="*", reason="why"), "why"), (Explained(what="text", reason="why"), None),
    (Explained(what="miss*", reason="why", scenario="other"), None),
    (Explained(what="missing", reason="why", requests=(6, 9)), None),
    (Explained(what="missing", reason="why", requests=(4, 5), scenario="small*"), "why")])
def test_a_difference_is_explained_by_kind_capture_and_request(entry: Explained, reason: str | None) -> None:
    """A stated reason covers only what it names."""
    assert reason == explained(Difference(5, "missing", "words"), "small-one-turn", [entry]).reason


@pytest.mark.parametrize(("harness", "version"), COVERED)
def test_captures_are_as_the_stored_proof_says(shared: Path, harness: str, version: str) -> None:
    """Judged again, every capture of a covered harness has the stored verdict, and at least 98 % of its views agree."""
    found = list(verify_captures([shared / "wire" / f"{harness}-{version}"]))
    mine = [c for c in stored_proofs()["captures"] if (c["harness"], c["version"]) == (harness, version)]
    stored = {c["scenario"]: c for c in mine}
    kept = ("views", "equal", "explained", "wrong")

    assert {k: [v[key] for key in kept] for k, v in stored.items()} == {
        v.scenario: [v.to_json()[key] for key in kept] for v in found if v.preset}
    assert all(v.equal + v.explained >= 0.98 * v.views for v in found if v.preset)


def test_a_wrong_setting_is_found(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the preset keeps another tail the first request after the compaction is wrong, and said to be."""
    real = RUNS["pi"]
    monkeypatch.setitem(RUNS, "pi", lambda config: real(config | {"harness_config_files": {}}))
    verdict: Verdict = verify_capture(shared / "wire" / "pi-1.6.0" / "small-one-turn")

    assert 21 == verdict.wrong[0].request
    assert verdict.equal < verdict.views


def test_unknown_harness_has_no_preset(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture without a preset is listed with its number of requests."""
    monkeypatch.delitem(RUNS, "pi")
    verdict = verify_capture(capture_folders(shared / "wire" / "pi-1.6.0")[0])

    assert ("", 61, 0) == (verdict.preset, verdict.views, verdict.equal)


@pytest.mark.parametrize("example", examples(), ids=lambda e: f"{e.number} {e.says[:40]}")
def test_worked_examples(example: object) -> None:
    """Each worked example gives its stated answer."""
    assert None is example.failure()  # type: ignore[attr-defined]


def test_every_imitating_preset_has_a_stated_proof() -> None:
    """A preset that claims captures as its proof has some, all without a wrong view."""
    claimed = {name for name in preset_names() if policy(name).proof == "wire"}
    proved = {c["preset"] for c in stored_proofs()["captures"]}
    wrong = {c["path"] for c in stored_proofs()["captures"] if c["wrong"] and c["preset"] in claimed}

    assert set() == claimed - proved
    assert set() == wrong


def recorded(version: str, tail: int) -> Transcript:
    """A Pi session with two turns, whose recorded compaction kept messages from `tail` on."""
    script = Script(format="pi")
    for _ in range(2):
        script.user("u" * 400).call("read").result("r" * 40_000).say("s" * 400)
    script.compacted(summary_message("S"), *range(tail, 8), summary="S").user("next").say("done")
    made = script.build()
    object.__setattr__(made, "harness_version", version)
    return made


def test_recorded_compaction_is_compared_with_the_presets_cut() -> None:
    """What our preset would have kept from the same window, as a share of what either kept."""
    found = faithfulness(recorded("1.6.0", 4))

    assert found is not None
    assert "pi-1.6" == found.preset
    (agreement,) = found.agreements
    assert (5, None, 0.8) == (agreement.step, agreement.fired, agreement.kept_overlap)


@pytest.mark.parametrize(("version", "name"), [("0.58.1", "pi-0.58"), ("0.70.0", "pi-0.58"), ("0.74.9", "pi-0.74"),
                                               ("2.0", "pi-1.6"), ("0.3", "pi-0.58"), (None, "pi-1.6")])
def test_preset_by_version(version: str | None, name: str) -> None:
    """The newest preset that is no newer than the session."""
    made = Script(format="pi").user("go").say("done").build()
    object.__setattr__(made, "harness_version", version)
    chosen = own_preset(made)

    assert name == (chosen.name if chosen else None)


def test_command_prints_stored_verdicts_and_runs_the_examples() -> None:
    """Without a path: the captures of the package, every worked example, no sessions."""
    done = CliRunner().invoke(policies, ["verify", "--json"])
    told = json.loads(done.stdout)

    assert 0 == done.exit_code, done.output
    assert stored_proofs()["captures"] == told["captures"]
    assert (0, len(examples())) == (told["examples"]["failed"], told["examples"]["passed"])
    assert [] == told["recorded"]


def test_command_judges_captures_and_sessions(shared: Path) -> None:
    """A folder of captures and a session with a recorded compaction each have their table."""
    session = shared / "transcripts" / "mycodeagent"
    capture = shared / "wire" / "pi-1.6.0" / "overflow-twice"
    told = json.loads(CliRunner().invoke(policies, ["verify", str(capture), str(session), "--json"]).stdout)
    verdicts = [(c["scenario"], c["views"], c["equal"], c["wrong"]) for c in told["captures"]]

    assert [("overflow-twice", 16, 16, 0)] == verdicts
    assert {"mycodeagent"} == {r["preset"] for r in told["recorded"]}
    assert {"path", "preset", "compactions", "step_distance", "kept_overlap"} <= told["recorded"][0].keys()


def test_bytes_divided_by_four() -> None:
    """The counter of scripted endpoints rounds up and counts UTF-8 bytes."""
    messages = Script().user("abcde").user("ü").build().messages

    assert [2, 1] == ByteCounter().tokens(messages)
