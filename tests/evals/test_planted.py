"""Planted facts: where they go, what counts as kept, and how they fare over compactions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.phrase_kinds import Rule
from evals.phrases import Prepared
from evals.planted import Followed, Plan, Planted, PolicyResult, plant, run_planted
from evals.planted_facts import KINDS, MOST_OF_A_KIND, Fact, Statement, facts, former, statement
from evals.planting import Place, longer, place, planted
from replay.cli import main
from replay.engine import Session
from replay.errors import ConfigError
from replay.invariants import PairingChecker
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.testing import FixedCounter, Script
from replay.transcript import Transcript

ROOMY = Capacity(window=1_000_000)
COUNTER = FixedCounter(())
NOTHING_KEPT = {"name": "nothing", "stages": [{"name": "full", "cut": "nothing"}]}


def talk(prompts: int = 6, calls: int = 3) -> Transcript:
    """Prompts with some calls each."""
    script = Script()
    for n in range(prompts):
        script.user(f"Please do task number {n} with care.")
        for _ in range(calls):
            script.call("Read", f'{{"path":"f{n}"}}').result("line " * 20)
        script.say("Done.")
    return script.build()


@pytest.mark.parametrize(("text", "grade"), [
    ("The harbour migration may cost $800 in total.", 2), ("Budget: the harbour migration costs $800 in total.", 0),
    ("In total the harbour migration may cost $800.", 1), ("the harbour migration may cost $8000 in total", 0),
    ("The harbour migration may cost $800.50 in total", 0), ("It may cost $800. The harbour migration comes later.", 0)])
def test_a_value_needs_its_words_in_one_sentence(text: str, grade: int) -> None:
    """The value between boundaries, with four fifths of its words beside it; `$800` is not held by `$8000`."""
    assert grade == Statement("The harbour migration may cost $800 in total.", "$800").grade(Prepared(text), True)


def test_facts_of_five_kinds() -> None:
    """As many of each kind as asked for, the same for the same seed, and others for another."""
    made = facts(3, 1)

    assert dict.fromkeys(KINDS, 3) == {kind: sum(f.kind == kind for f in made) for kind in KINDS}
    assert made == facts(3, 1)
    assert made != facts(3, 2)


def test_a_former_value_begins_with_the_current_one() -> None:
    """A search for substrings would find the current value in the former sentence; ours does not."""
    for fact in (f for f in facts(MOST_OF_A_KIND, 3) if f.value):
        old = former(fact)

        assert fact.value and fact.former_value and fact.former_text and old
        assert fact.former_value.startswith(fact.value.rstrip("sMBk"))
        assert 0 == statement(fact).grade(Prepared(fact.former_text), True)
        assert 2 == old.grade(Prepared(fact.former_text), True)
        assert 0 == old.grade(Prepared(fact.text), True)


def test_rules_and_preferences_are_told_by_their_words() -> None:
    """They have no value; their sentence or its sense counts, and the contrary does not."""
    for fact in (f for f in facts(MOST_OF_A_KIND, 1) if not f.value):
        found = statement(fact)

        assert isinstance(found, Rule)
        assert 2 == found.grade(Prepared(f"Kept: {fact.text}"), True)
        assert 0 == found.grade(Prepared("Nothing of it."), True)


def test_sentences_join_a_prompt_that_is_near() -> None:
    """A prompt near the depth takes a sentence up; elsewhere it becomes a prompt of its own before a request."""
    thread = talk().main
    single = Script().user("go")
    for _ in range(20):
        single.call("Read").result("x")
    alone = single.say("done").build().main

    assert Place(0, own=False) == place(thread, 0)
    assert place(thread, 0.35).own is False
    assert Place(21, own=True) == place(alone, 0.52)
    assert 21 in {s.start for s in alone.steps}


def test_planting_moves_everything_along() -> None:
    """Messages, steps and compactions keep their meaning, calls their results, and the original is untouched."""
    transcript = talk(2)
    before = [m.text for m in transcript.messages]
    changed, stands = planted(transcript, {Place(3, own=True): ["one"], Place(0, own=False): ["two"], Place(8, own=False): ["x"]})
    checker = PairingChecker()
    for message in changed.messages:
        checker.take(message, tuple(c.id for c in message.calls), tuple(r.call_id for r in message.results))

    assert "one" == changed.messages[stands[Place(3, own=True)]].text
    assert changed.messages[0].text.endswith("\ntwo")
    assert list(range(len(changed.messages))) == [m.index for m in changed.messages]
    assert [m.text for m in transcript.messages] == before
    assert [] == checker.current()
    for step in changed.steps:
        assert step.response is None or "assistant" == changed.messages[step.response].role
        assert step.start == step.response


def test_a_longer_session_repeats_its_end() -> None:
    """The end comes again with call ids of its own and without usage; nothing that was planted is repeated."""
    transcript = talk(3)
    long = longer(transcript, 16, 2)
    ids = [c.id for m in long.messages for c in m.calls]

    assert len(transcript.messages) + 2 * (len(transcript.messages) - 17) == len(long.messages)
    assert len(ids) == len(set(ids))
    assert list(range(1, len(long.steps) + 1)) == [s.number for s in long.steps]
    assert list(range(len(long.messages))) == [m.index for m in long.messages]
    assert 3 == sum(m.origin == "human" for m in long.messages)


def test_everything_is_lost_where_nothing_is_kept() -> None:
    """A policy that keeps nothing and summarises nothing loses every kind in the first round."""
    result = run_planted(talk(), [policy_from(NOTHING_KEPT)], ROOMY, COUNTER, Plan(summariser="empty", rounds=3))[0]

    assert dict.fromkeys(KINDS, 1) == result.collapse()
    assert {0} == {s.kept for s in result.survival()}
    assert {1} == {f.first_lost for f in result.followed}
    assert {"lost"} == {status for f in result.followed for status in f.after}


def test_nothing_is_lost_without_a_cut() -> None:
    """Without compactions there are no rounds and no collapse."""
    result = run_planted(talk(), [policy("full-history")], ROOMY, COUNTER, Plan())[0]

    assert 0 == result.compactions
    assert [] == result.survival()
    assert dict.fromkeys(KINDS) == result.collapse()


def test_the_last_fact_is_followed_through_all_rounds() -> None:
    """The end of the session is repeated until even the deepest fact has been through the rounds asked for."""
    made = policy("decode-adr18:tail_tokens=300")
    result = run_planted(talk(8), [made], Capacity(window=4_000), COUNTER, Plan(depths=(0.5,), rounds=4))[0]

    assert {4} == {len(f.after) for f in result.followed}
    assert result.repeats > 0
    assert [1, 2, 3, 4] == [s.round for s in result.survival() if s.kind == "rule"]


def test_superseded_values_are_not_kept() -> None:
    """A view that holds the former sentence alone has lost the fact, and says so."""
    fact = Fact(kind="budget", text="The walnut import may take 80 seconds.", value="80",
                former_text="The walnut import may take 803 seconds.", former_value="803")
    script = Script().user(fact.former_text or "").say("ok").user("Go on.")
    script.call("Read").result("x").say("ok").user("More now.").say("ok").user("And more.").say("ok")
    transcript, _ = planted(script.build(), {Place(5, own=False): [fact.text]})
    lane = Session(transcript, COUNTER).replay(policy("full-history"), ROOMY)

    assert fact.text in transcript.messages[5].text
    assert lane.views
    followed = Followed(Planted(fact, 0.5, 5, False), ("superseded", "lost"), (3, 4))
    result = PolicyResult("p", 2, 0, (followed,))
    assert 1 == followed.first_lost
    assert [(1, 0, 1), (2, 0, 1)] == [(s.round, s.kept, s.followed) for s in result.survival()]
    assert 1 == result.collapse()["budget"]


def test_a_summariser_that_keeps_the_old_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts whose former sentence is all that a summary has are `superseded`, those with a bare value `value alone`."""
    from replay.policy import summarisers
    from replay.policy.base import Summary, SummaryRequest

    plan = Plan(depths=(0.5,), rounds=1)
    _, found = plant(talk(), plan)
    budget, project, task = (next(p.fact for p in found if p.fact.kind == k) for k in ("budget", "project fact", "task state"))

    class Old:
        """Keeps a former sentence, a bare value and a current sentence."""

        name = "old"

        def summarise(self, request: SummaryRequest) -> Summary:
            """The three."""
            return Summary(text=f"{budget.former_text}\n{project.value}\n{task.text}", by=self.name)

    monkeypatch.setitem(summarisers.SUMMARISERS, "old", Old)  # type: ignore[arg-type]
    plan = Plan(depths=(0.5,), rounds=1, summariser="old")
    result = run_planted(talk(), [policy_from(NOTHING_KEPT)], ROOMY, COUNTER, plan)[0]
    after = {f.planted.fact.kind: f.after[0] for f in result.followed}

    assert {"rule": "lost", "budget": "superseded", "project fact": "value alone", "task state": "kept",
            "preference": "lost"} == after


@pytest.mark.parametrize("made", [
    lambda: Plan(depths=()), lambda: Plan(depths=(1.5,)), lambda: Plan(summariser="recorded"),
    lambda: run_planted(talk(), [policy("recorded")], ROOMY, COUNTER, Plan())])
def test_what_cannot_be_meant(made: object) -> None:
    """Depths outside the session, recorded summaries and the recorded lane are refused."""
    with pytest.raises(ConfigError):
        made()  # type: ignore[operator]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`rewindow planted` prints a table for each policy, or one JSON document with every fact's fate."""
    lines = []
    for n in range(6):
        lines += [{"role": "user", "content": f"Please do task number {n} with care."},
                  {"role": "assistant", "content": "word " * 200}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    command = ["planted", str(tmp_path / "s.jsonl"), "-p", "decode-adr18:tail_tokens=300", "--window", "1500", "--depth", "0.3"]
    outputs = []
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as stopped:
            main([*command, *more])
        assert 0 == int(stopped.value.code or 0)
        outputs.append(capsys.readouterr().out)
    found = json.loads(outputs[1])["policies"][0]

    assert "decode-adr18" in outputs[0]
    assert "project fact" in outputs[0]
    assert set(KINDS) == found["collapse"].keys() == {f["kind"] for f in found["facts"]}
    assert {"kind", "text", "value", "former_value", "depth", "message", "placed", "after", "steps",
            "first_lost_round"} == found["facts"][0].keys()
    assert 5 == len(found["facts"])


def test_a_real_session(transcripts: Path) -> None:
    """On a real session the full history keeps what a policy that keeps nothing loses."""
    from replay.readers import read

    transcript = read(transcripts / "pi" / "v1-two-compactions.jsonl")[0]
    counter = FixedCounter([1 + len(m.text) // 4 for m in transcript.messages])
    whole, none = run_planted(transcript, [policy("mycodeagent:rounds=3"), policy_from(NOTHING_KEPT)],
                              Capacity(window=60_000), counter, Plan(rounds=2, summariser="empty"))

    assert whole.compactions > 0
    assert dict.fromkeys(KINDS, 1) == none.collapse()
