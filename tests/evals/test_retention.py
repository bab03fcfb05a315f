"""Needed-evidence retention: the golden fixture, fates, places of losses, and laws that hold for any session."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.metrics.base import Trial
from evals.metrics.distance import distances
from evals.metrics.edit_safety import EditSafety
from evals.metrics.rereads import IrrecoverableShare, WouldBeRereads
from evals.metrics.retention import SHARES, Retention, losses, losses_by_step
from evals.needs import Evidence, Need, evidence, use_needs
from evals.spans import TextSpan
from evals.spans_index import block_text
from evals.spans_match import holds, is_path
from evals.trial import STEP_COLUMNS, Settings, run_session
from evals.visibility import Sight
from evals.watch import FATES, study, watched
from replay.blocks import ToolCall, ToolResult
from replay.engine import Lane, Session
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.readers import read
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Transcript
from replay.view import shown_messages

SIZES = (200, 50, 3000, 50, 2000, 60, 1500, 80, 40, 30)
STUB = "[stub]"
LINE = 'return dt.strptime(s, "%Y-%m-%d")'
ROOMY = Capacity(window=10_000_000)
PATH = TextSpan("path", "src/dates.py")
NEEDS = (Need(step=0, span=PATH, weight=0.5, tool="Read"),
         Need(step=2, span=TextSpan("identifier", "strptime"), weight=1.0),
         Need(step=2, span=TextSpan("path", "tests/"), weight=0.5), Need(step=3, span=PATH, weight=0.5),
         Need(step=3, span=TextSpan("line", LINE), weight=2.0, tool="Edit"))


def golden() -> Session:
    """Four tool rounds and a final answer with fixed sizes, needs and weights."""
    script = Script().user("Fix parse_date in src/dates.py. Never edit tests/.")
    script.call("Read", '{"file_path":"src/dates.py"}').result(f"def parse_date(s):\n    {LINE}\n")
    script.call("Bash", '{"command":"pytest -q"}').result("ValueError: unconverted data remains")
    script.call("Grep", '{"pattern":"strptime","path":"tests/"}').result("no matches")
    edit = {"file_path": "src/dates.py", "old_string": LINE, "new_string": "return parse(s)"}
    script.call("Edit", json.dumps(edit)).result("edited").say("Fixed.")
    made = Session(script.build(), FixedCounter(SIZES, {STUB: 10}))
    use_needs(made, NEEDS)
    return made


def full() -> Policy:
    """Every message, always."""
    return policy_from({"name": "full"})


def mask(keep: int = 1) -> Policy:
    """Every tool result but the newest becomes a stub."""
    rule = {"use": "keep-newest", "keep": keep, "placeholder": {"text": STUB}}
    return policy_from({"name": f"mask-{keep}", "stages": [{"name": "mask", "tool_results": rule}]})


def tail(tokens: int) -> Policy:
    """The newest messages of this many tokens, of four characters each."""
    cut = {"use": "tokens", "tail_tokens": tokens}
    return policy_from({"name": f"tail-{tokens}", "stages": [{"name": "tail", "cut": cut}]})


def trial(session: Session, policy: Policy, summariser: str = "empty", capacity: Capacity = ROOMY) -> Trial:
    """A policy's trial of a session."""
    return Trial(session=session, lane=session.replay(policy, capacity, summariser), capacity=capacity)


def values(made: Trial, *metrics: object) -> dict[str, float | None]:
    """Measurements by name (default: of retention)."""
    return {m.name: m.value for metric in metrics or (Retention(),) for m in metric.measure(made)}  # type: ignore[attr-defined]


def test_golden_retention() -> None:
    """Of 4.5 of needed weight masking keeps 1.5, of five needs three; the two others can be read again."""
    found = values(trial(golden(), mask()))

    assert pytest.approx(1.5 / 4.5) == found["evidence_retention"] == found["evidence_verbatim"]
    assert pytest.approx(0.6) == found["evidence_retention_unweighted"]
    assert pytest.approx((1 + 0.5 / 1.5 + 0.5 / 2.5) / 3) == found["evidence_retention_macro"]
    assert pytest.approx(3 / 4.5) == found["evidence_recoverable"]
    assert 0 == found["evidence_lost"] == found["evidence_summary"]
    assert (5, 0) == (found["evidence_needs"], found["evidence_censored_share"])
    assert (1, 0) == (found["evidence_retention_user"], found["evidence_retention_tool"])
    assert (1, 0, 0) == tuple(found[f"evidence_retention_{k}"] for k in ("path", "identifier", "line"))


def test_golden_full_history() -> None:
    """The full history keeps everything."""
    made = trial(golden(), full())
    found = values(made, Retention(), EditSafety(), WouldBeRereads())

    assert 1 == found["evidence_retention"] == found["evidence_retention_macro"] == found["edit_safety"]
    assert 0 == found["would_be_rereads"]
    assert [] == losses(made)


def test_golden_distances() -> None:
    """From the end of the source to the action: 3,610 tokens for the line, 2,050 for the name."""
    found = distances(evidence(golden())).tokens

    assert (3610, 2050) == (found[4], found[1])


def test_golden_losses_have_a_place() -> None:
    """Each loss names step, action, source, tool and fate, heaviest first; steps count them."""
    made = trial(golden(), mask())
    found = losses(made)

    assert [(4, 7, 2, LINE, "line", "recoverable", "Edit"), (3, 5, 2, "strptime", "identifier", "recoverable", "")] == [
        (x.step, x.index, x.source, x.text, x.kind, x.fate, x.tool) for x in found]
    assert [(0, 0), (0, 0), (1, 0), (1, 1), (0, 0)] == losses_by_step(made)
    assert None is values(trial(golden(), full()), IrrecoverableShare())["irrecoverable_share"]
    assert 0 == values(made, IrrecoverableShare())["irrecoverable_share"]


@pytest.mark.parametrize(("asked", "expected"), [(True, [(0, 0), (0, 0), (0, 0), (1, 1), (0, 0)]), (False, [(None, None)] * 5)])
def test_steps_of_a_stored_trial_count_losses(asked: bool, expected: list[tuple[int | None, int | None]]) -> None:
    """Each step says how many needs it lost and how many edits were unsafe; without `losses` nothing is claimed."""
    chosen = Settings(capacity=ROOMY, tokenizer="none", summariser="empty", losses=asked)
    row = run_session(golden().transcript, 0, [mask()], chosen, FixedCounter(SIZES, {STUB: 10})).trials[0]
    places = [STEP_COLUMNS.index(name) for name in ("needs_lost", "edits_unsafe")]

    assert expected == [tuple(step[place] for place in places) for step in row.steps]
    assert asked is (row.value("evidence_needs") == 1)


def test_own_extraction_on_the_golden_session() -> None:
    """Without given weights only the line, in one of seven blocks, says more than nothing: ln(8 / 1.5) − ln 4."""
    made = Session(golden().transcript, FixedCounter(SIZES))

    assert [(3, LINE, pytest.approx(0.2877, abs=1e-4))] == [
        (n.step, n.span.text, n.weight) for n in evidence(made).needs.rows]
    assert 0 == values(trial(made, mask()))["evidence_retention"]


def with_filler(*moves: tuple[str, str], filler: int = 24) -> Script:
    """A session whose blocks are numerous enough for weights; moves are a tool's arguments and its result."""
    script = Script().user("start with rule_zeta")
    for name, arguments, result in [(*m, "done") if len(m) == 2 else m for m in moves]:  # type: ignore[misc]
        script.call(name, arguments).result(result)
    for n in range(filler):
        script.call("Bash", json.dumps({"command": f"step{n}"})).result(f"filler{n}")
    return script


READ = ("Read", '{"file_path":"src/a.py"}', "value_alpha = 1")
ASK = ("Grep", '{"pattern":"value_alpha"}')


def fates_of(script: Script, policy: Policy, summariser: str = "empty") -> dict[str, str]:
    """Fate of each needed span of the last action."""
    made = trial(Session(script.build(), FixedCounter((10,) * 400)), policy, summariser)
    needs, found = study(made.session).evidence.needs, watched(made).fates
    last = max(n.step for n in needs.rows)
    return {n.span.text: FATES[found[i]] for i, n in enumerate(needs.rows) if n.step == last}


def test_a_masked_result_is_recoverable_by_its_call() -> None:
    """The visible call with its target is a handle to what its result held."""
    script = with_filler(READ).call(*ASK).result("x")

    assert {"value_alpha": "recoverable"} == fates_of(script, mask())


def test_a_changed_file_is_no_longer_recoverable() -> None:
    """Once the file was edited the old call would bring something else."""
    edit = ("Edit", '{"file_path":"src/a.py","old_string":"value_beta","new_string":"x"}', "ok")
    script = with_filler(READ, edit).call(*ASK).result("x")
    other = ("Edit", '{"file_path":"src/b.py","old_string":"value_beta","new_string":"x"}', "ok")

    assert {"value_alpha": "lost"} == fates_of(script, mask())
    assert {"value_alpha": "recoverable"} == fates_of(with_filler(READ, other).call(*ASK).result("x"), mask())


def test_a_failed_edit_changes_nothing() -> None:
    """After an edit that was refused the file is what it was."""
    script = with_filler(READ)
    edit = '{"file_path":"src/a.py","old_string":"value_beta","new_string":"x"}'
    script.call("Edit", edit).result("no", is_error=True)

    assert {"value_alpha": "recoverable"} == fates_of(script.call(*ASK).result("x"), mask())


def test_a_command_without_a_path_is_a_handle_until_any_file_changes() -> None:
    """What a test run said is brought back by running it again, but only over the same files."""
    run = ("Bash", '{"command":"pytest -q"}', "value_alpha failed")
    write = ("Write", '{"file_path":"src/c.py","content":"x"}', "ok")

    assert {"value_alpha": "recoverable"} == fates_of(with_filler(run).call(*ASK).result("x"), mask())
    assert {"value_alpha": "lost"} == fates_of(with_filler(run, write).call(*ASK).result("x"), mask())


def test_what_left_with_its_call_is_lost() -> None:
    """With neither result nor call in view nothing tells where it was."""
    assert {"value_alpha": "lost"} == fates_of(with_filler(READ).call(*ASK).result("x"), tail(20))


def test_a_summary_keeps_what_it_says() -> None:
    """A span in a summary is kept, as `summary`, and no better than that."""
    call = ("Read", '{"file_path":"src/unique_name.py"}')
    script = with_filler((*call, "x")).call(*call).result("x")

    assert {"src/unique_name.py": "summary"} == fates_of(script, tail(20), "extractive")
    assert {"src/unique_name.py": "lost"} == fates_of(script, tail(20), "empty")


def test_needs_that_the_recorded_view_did_not_hold_are_censored() -> None:
    """After a recorded compaction the agent cannot have used what was gone: no policy is charged with it."""
    script = with_filler(READ)
    length = len(script.thread.messages)
    script.compacted(summary_message("nothing of note"), length - 1)
    script.call(*ASK).result("x")
    made = Session(script.build(), FixedCounter((10,) * 400))
    found = values(trial(made, mask()))

    assert 1 == found["evidence_censored_share"]
    assert None is found["evidence_retention"]
    assert [] == losses(trial(made, mask()))


def test_a_name_in_a_longer_name_is_lost() -> None:
    """`value_alpha` is not held by a view that says `value_alphabet`."""
    script = with_filler(READ).user("value_alphabet").call(*ASK).result("x")

    assert {"value_alpha": "recoverable"} == fates_of(script, mask())
    assert {"value_alpha": "verbatim"} == fates_of(with_filler(READ).user("value_alpha").call(*ASK).result("x"), mask())


WORDS = ("alpha_one", "beta_two", "gamma_three", "delta_four", "epsilon", "zeta_six", "src/a.py", "lib/b.py", "a.py",
         "4711", "return compute(alpha_one)", "x = 1")


@st.composite
def sessions(draw: st.DrawFn) -> Transcript:
    """A random session of prompts, calls, edits and results over few words."""
    script = Script().user(draw(st.sampled_from(WORDS)))
    for _ in range(draw(st.integers(6, 30))):
        said = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
        kind = draw(st.sampled_from(("user", "say", "Read", "Grep", "Bash", "Edit", "Edit", "Two")))
        move(script, kind, said, draw(st.sampled_from(WORDS)))
    return script.build()


def move(script: Script, kind: str, said: str, word: str) -> None:
    """One more move."""
    arguments = {"Read": {"file_path": "src/a.py"}, "Grep": {"pattern": said}, "Bash": {"command": f"run {said}"},
                 "Edit": {"file_path": "src/a.py", "old_string": said or word, "new_string": word}}
    if kind in ("user", "say"):
        getattr(script, kind)(said or word)
    elif kind == "Two":
        script.call("Read", '{"file_path":"lib/b.py"}', count=2).result(said, call=0).result(word, call=1)
    else:
        script.call(kind, json.dumps(arguments[kind])).result(f"{said}\n{word}", is_error=word == "4711")


def make(transcript: Transcript) -> Session:
    """A session with weights however short it is."""
    made = Session(transcript, FixedCounter(tuple(range(7, 407))))
    found = Evidence(made.log)
    asked = [replace(n, weight=1.0) for n in all_needs(found)]
    use_needs(made, asked)
    return made


def all_needs(found: Evidence) -> list[Need]:
    """Every span that an action wants, weighed alike."""
    from evals.needs import wants_of_deed

    steps = {s.response: n for n, s in enumerate(found.log.steps)}
    return [Need(step=steps[found.index.units[a.call].message], span=span, weight=1.0) for a in found.files.acts
            for want in wants_of_deed(a.deed) for span in (want.parts or (want.whole,))]


POLICIES: tuple[Policy, ...] = (full(), mask(0), mask(1), mask(3), tail(10), tail(40), policy_from({
    "name": "both", "stages": [
        {"name": "cut", "trigger": {"use": "message-count", "more_than": 9},
         "cut": {"use": "tokens", "tail_tokens": 30}},
        {"name": "mask", "tool_results": {"use": "keep-newest", "keep": 2}}]}))


@given(sessions(), st.sampled_from(POLICIES), st.sampled_from(("empty", "extractive")))
@settings(max_examples=150, deadline=None)
def test_what_is_followed_equals_what_is_rendered(transcript: Transcript, policy: Policy, summariser: str) -> None:
    """Following changes from view to view finds exactly what a search of each whole view finds."""
    made = trial(make(transcript), policy, summariser)
    needs, found = study(made.session).evidence.needs, watched(made).fates

    for i, need in enumerate(needs.rows):
        if is_path(need.span):
            continue  # of bare names only the log knows whether they are unique
        texts = shown_texts(made.lane, made.session, need.step)
        kept = "verbatim" if any(holds(need.span, t) for t in texts[0]) else "summary" if any(
            holds(need.span, t) for t in texts[1]) else "gone"
        fate = FATES[found[i]]
        assert kept == (fate if fate in ("verbatim", "summary") else "gone")


def shown_texts(lane: Lane, session: Session, step: int) -> tuple[list[str], list[str]]:
    """Texts of a view: of log messages, and of inserted ones."""
    shown = list(shown_messages(session.log, lane.views[step].window))
    return ([block_text(b) for s in shown if s.index is not None for b in s.message.blocks],
            ["\n".join(map(block_text, s.message.blocks)) for s in shown if s.index is None])


@given(sessions(), st.sampled_from(POLICIES))
@settings(max_examples=60, deadline=None)
def test_visible_blocks_are_told(transcript: Transcript, policy: Policy) -> None:
    """A block is shown exactly where the rendered view has it as it stands."""
    session = make(transcript)
    lane, sight = session.replay(policy, ROOMY, "empty"), Sight(evidence(session))
    for view in lane.views:
        sight.follow(view.window)
        shown = {id(b) for s in shown_messages(session.log, view.window) for b in s.message.blocks}

        assert [id(u.block) in shown for u in evidence(session).index.units] == [
            sight.shows(n) for n in range(len(evidence(session).index))]


@given(sessions())
@settings(max_examples=60, deadline=None)
def test_the_full_history_keeps_all(transcript: Transcript) -> None:
    """Whatever the session, the full history loses no evidence and leaves no edit unsafe."""
    found = values(trial(make(transcript), full()), Retention(), EditSafety(), WouldBeRereads())

    assert {1.0, None} >= {found["evidence_retention"], found["edit_safety"]}
    assert 0 == found["would_be_rereads"] == found["irrecoverable_losses"] == found["edits_unsafe"]


@given(sessions(), st.sampled_from((((mask(0), mask(1), mask(3), full())), (tail(5), tail(20), tail(80), full()))))
@settings(max_examples=80, deadline=None)
def test_a_larger_tail_never_keeps_less(transcript: Transcript, nested: Sequence[Policy]) -> None:
    """Of nested policies the one that keeps more holds no less evidence and no fewer edits safe."""
    session = make(transcript)
    found = [values(trial(session, p), Retention(), EditSafety()) for p in nested]

    for name in ("evidence_retention", "edit_safety"):
        kept = [f[name] for f in found if f[name] is not None]
        assert sorted(kept) == kept  # type: ignore[type-var]


@given(sessions())
@settings(max_examples=40, deadline=None)
def test_other_ids_change_nothing(transcript: Transcript) -> None:
    """Calls may be named anything as long as results follow."""
    def renamed(block: object) -> object:
        if isinstance(block, ToolCall):
            return replace(block, id=f"other {block.id} name")
        return replace(block, call_id=f"other {block.call_id} name") if isinstance(block, ToolResult) else block

    messages = tuple(replace(m, blocks=tuple(map(renamed, m.blocks))) for m in transcript.messages)  # type: ignore[arg-type]
    other = replace(transcript, main=replace(transcript.main, messages=messages))
    metrics = (Retention(), EditSafety(), WouldBeRereads())

    assert values(trial(make(transcript), mask()), *metrics) == values(trial(make(other), mask()), *metrics)


@given(sessions(), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_what_comes_later_changes_no_earlier_fate(transcript: Transcript, more: int) -> None:
    """Appended messages leave fates and verdicts of earlier steps as they were."""
    script = Script()
    script.thread.messages.extend(transcript.messages)
    script.thread.steps.extend(transcript.steps)
    script._calls = 10_000
    for n in range(more):
        script.call("Read", '{"file_path":"src/a.py"}').result(WORDS[n])
    before, after = (trial(make(t), mask()) for t in (transcript, script.build()))
    early, late = watched(before), watched(after)

    assert list(early.fates) == list(late.fates)[:len(early.fates)]
    assert early.verdicts == late.verdicts[:len(early.verdicts)]


def test_known_losses_are_found_and_no_others() -> None:
    """In a session with planted losses exactly those are reported, and shuffled steps report others."""
    draw = random.Random(3)
    script = Script().user("start")
    for n in range(30):
        script.call("Read", json.dumps({"file_path": f"f{n}.py"})).result(f"secret_{n}_word = {n}")
    planted = draw.sample(range(20), 5)
    for n in planted:
        script.call("Grep", json.dumps({"pattern": f"secret_{n}_word"})).result("x")
    made = trial(Session(script.build(), FixedCounter((10,) * 400)), mask(3))

    assert {f"secret_{n}_word" for n in planted} == {loss.text for loss in losses(made)}
    assert all(loss.source == 2 + 2 * int(loss.text.split("_")[1]) for loss in losses(made))


def test_a_real_session(transcripts: Path) -> None:
    """A long session: 124 edits, a tail of 20,000 tokens keeps nine tenths of the evidence and four fifths of the edits."""
    session = Session(read(transcripts / "pi" / "v1-two-compactions.jsonl")[0], FixedCounter(()))
    found = values(trial(session, tail(20_000)), Retention(), EditSafety())

    assert 124 == found["edits_assessable"]
    assert pytest.approx(0.91, abs=0.03) == found["evidence_retention"]
    assert pytest.approx(0.83, abs=0.03) == found["edit_safety"]
    assert 0.02 > (found["evidence_censored_share"] or 0)


def test_shares_add_up() -> None:
    """Verbatim, summary, recoverable and lost make one."""
    found = values(trial(golden(), mask()))

    assert pytest.approx(1) == sum(found[name] or 0 for name in SHARES[3:])
