"""Which sentences are standing constraints, and how long they hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evals.constraints import Constraint, constraints, rule_in
from replay.blocks import Text
from replay.log import Log
from replay.testing import FixedCounter, Script
from replay.transcript import Message, RecordedCompaction, Transcript


def found(transcript: Transcript) -> tuple[Constraint, ...]:
    """The constraints of a transcript."""
    return constraints(transcript, Log(transcript.main, FixedCounter(())))


def said(*prompts: str) -> tuple[Constraint, ...]:
    """The constraints of a session with these prompts, each answered."""
    script = Script()
    for prompt in prompts:
        script.user(prompt).say("ok")
    return found(script.build())


@pytest.mark.parametrize(("sentence", "form"), [
    ("Never edit tests/.", "never"), ("Please do not commit yet.", "do not"), ("- **DO NOT** remove features", "do not"),
    ("implement but don't commit", "do not"), ("You must not touch the schema.", "must not"),
    ("docs/format.md must not be edited.", "must not"), ("You should not modify existing tests.", "must not"),
    ("Network access is forbidden in tests.", "forbidden"), ("Avoid global state.", "avoid"),
    ("No new dependencies.", "no"), ("Refactor it without changing the API.", "without"),
    ("All tests must pass.", "must"), ("Always run the linter first.", "always"), ("Only change src/a.py.", "only"),
    ("Report findings only.", "only"), ("You can only use the shell.", "only"), ("I prefer small commits over big ones.", "prefer"),
    ("Prefer composition.", None), ("Make sure the totals stay the same.", "ensure"),
    ("Use pathlib instead of os.path.", "rather than"), ("Leave the parser alone.", "keep"),
    ("Keep every importer under 70 lines.", "keep"), ("A match is at most 4 days apart.", "limit"),
    ("From now on answer in German.", "from now on")])
def test_forms(sentence: str, form: str | None) -> None:
    """Directive sentences are told by their form; one with a single content word beside its mark says too little."""
    stated = rule_in(sentence)
    assert form == (stated[1] if stated else None)


@pytest.mark.parametrize("sentence", [
    "I don't know why it fails.", "It never fires on commit.", "This means hooks can never be removed.",
    "There is also no way out of the edge case.", "Should we always fill it in?", "Can we not commit the docs?",
    "it only happens on main", "Pack readers are never closed.", "but never rejects the request",
    "so it must be a bug in the test", "Do you think it must be changed?", "we need to test edge cases to ensure the fix is right",
    "The current behaviour may not match the intent.", "I don't use it", "never mind", "    return nil // must not be called",
    "2026-02-15T15:23:57 WARN must not be nil", '"description": "must not be empty",', "│ you must not │",
    "error: must not be empty;", "keep going", ""])
def test_what_only_looks_like_one(sentence: str) -> None:
    """Questions, descriptions, code and logs state no constraint, whatever modal words they have."""
    assert None is rule_in(sentence)


def test_where_they_come_from() -> None:
    """Constraints have the log index of the prompt, in order; what the agent or a tool says binds nobody."""
    script = Script().user("Fix it.\nNever edit tests/. Thanks.").call("Read").result("Never delete anything here.")
    script.say("I will never edit tests.").user("Only change src/dates.py.")
    made = found(script.build())

    assert [(0, "never", "human"), (4, "only", "human")] == [(c.message, c.form, c.source) for c in made]
    assert "Never edit tests/." == made[0].rule.text


def test_pasted_blocks_are_left_out() -> None:
    """Fenced code and tagged blocks of a person's message are quotations."""
    assert () == said("See:\n```\nYou must never do this at home.\n```\n<log>You must not fail here.</log>\nThanks for it.")


def test_the_same_constraint_counts_once() -> None:
    """Said again in the same words it is the same constraint."""
    assert 1 == len(said("Never edit tests/.", "never edit tests/", "Remember: never edit tests/!"))


@pytest.mark.parametrize("later", [
    "You may edit tests/ now.", "It's fine to edit the tests.", "Always edit tests/ first.", "No longer required: edit tests."])
def test_taken_back(later: str) -> None:
    """A permission or an opposite rule on the same words ends a constraint where it is said."""
    assert 2 == said("Never edit tests/.", later)[0].until


@pytest.mark.parametrize("later", [
    "You may edit src/ now.", "Can you edit tests/ now?", "Never edit docs/.", "Edit tests/ is what you did."])
def test_not_taken_back(later: str) -> None:
    """Other words, questions and mere mentions leave it standing."""
    assert None is said("Never edit tests/.", later)[0].until


def test_one_message_does_not_contradict_itself() -> None:
    """What the same message says besides qualifies a rule; it does not end it."""
    assert [None] == [c.until for c in said("Never edit tests/. You may edit tests/ of your own, of course.")]


def test_a_new_number_replaces_the_old_one() -> None:
    """The same limit with another number supersedes the first."""
    made = said("Keep every line under 80 characters.", "Keep every line under 100 characters.")

    assert [2, None] == [c.until for c in made]


def _with_rule_file(transcript: Transcript, window: tuple[Message, ...] = ()) -> Transcript:
    rules = Message(index=0, role="user", origin="injected", detail="agents_md",
                    blocks=(Text(text="# AGENTS.md instructions for /repo\nAlways run `make check` before you commit."),))
    messages = (rules, *(replace(m, index=m.index + 1) for m in transcript.messages))
    made = (RecordedCompaction(position=2, kind="full", window=window or (0,)),)
    return replace(transcript, main=replace(transcript.main, messages=messages, compactions=made, steps=()))


def test_rule_files() -> None:
    """A rule file that the harness injects binds; injected text of other kinds does not."""
    made = found(_with_rule_file(Script().user("hi there").say("ok").build()))

    assert [("rule file", "always", False)] == [(c.source, c.form, c.pinned) for c in made]


def test_a_rule_file_that_is_given_again_is_pinned() -> None:
    """What the recorded harness put into its window again after a compaction is in every request."""
    transcript = _with_rule_file(Script().user("hi there").say("ok").build())
    again = replace(transcript.messages[0], index=-1)

    assert [True] == [c.pinned for c in found(_with_rule_file(Script().user("hi there").say("ok").build(), (again,)))]
