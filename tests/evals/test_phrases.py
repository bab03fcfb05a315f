"""Searching texts for phrases: boundaries, sense, files."""

from __future__ import annotations

import pytest

from evals.phrase_kinds import FilePath, Rule, Task, named
from evals.phrases import Prepared, content_words, enough, holds, searchable
from replay.blocks import Reasoning, Text, ToolCall
from replay.transcript import Message

NEVER = Rule("Never edit tests/.")
ONLY = Rule("Use only the standard library here.", frozenset(("only", "solely")))


@pytest.mark.parametrize(("text", "found"), [
    ("it costs $800 at most", True), ("it costs $800.", True), ("($800)", True), ("it costs $8000", False),
    ("it costs $800.50", False), ("it costs $800,000", False), ("x$800", False), ("1$800", False)])
def test_values_end_where_they_end(text: str, found: bool) -> None:
    """A value is found between boundaries alone, so `$800` is not held by `$8000`."""
    assert found is holds(text, "$800")


@pytest.mark.parametrize(("text", "phrase", "found"), [
    ("port 5432 is open", "5432", True), ("port 15432", "5432", False), ("v1.2.3", "1.2", False), ("v1.2 only", "v1.2", True),
    ("the dates.py file", "dates", True), ("candidates", "dates", False), ("never edit tests/ again", "edit tests/", True),
    ("anything", "", False), ("8008", "800", False), ("800 and 8000", "800", True), ("8000 and 800", "800", True)])
def test_boundaries_of_words_and_numbers(text: str, phrase: str, found: bool) -> None:
    """Words and numbers are not found inside longer ones, and a later occurrence is still found."""
    assert found is holds(text, phrase)


def test_content_words() -> None:
    """Common words, negations and single letters say nothing; numbers do."""
    assert {"edit", "tests"} == content_words("Never edit the tests/ of a b.")
    assert {"keep", "lines", "7"} == content_words("Keep to 7 lines")


@pytest.mark.parametrize(("words", "needed"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5), (10, 8)])
def test_four_fifths_rounded_up(words: int, needed: int) -> None:
    """Of five content words four are enough, of four all."""
    assert needed == enough(words)


@pytest.mark.parametrize(("text", "grade"), [
    ("The person said: never edit tests/.", 2), ("- NEVER  edit\ntests/", 2), ("Do not edit anything in tests.", 1),
    ("You may edit tests.", 0), ("Edit tests. Never mind the rest.", 0), ("never edit contests/", 0), ("", 0)])
def test_a_prohibition(text: str, grade: int) -> None:
    """To the letter 2; its words and any negation in one sentence 1; its words alone, or the negation elsewhere, 0."""
    assert grade == NEVER.grade(Prepared(text), False)


@pytest.mark.parametrize(("text", "grade"), [
    ("use only the standard library here", 2), ("Here the standard library is the only thing to use.", 1),
    ("Use the standard library here.", 0), ("Do not use only the standard library here.", 0)])
def test_a_rule_with_a_mark(text: str, grade: int) -> None:
    """A rule without negation needs its polarity word, and no negation beside it."""
    assert grade == ONLY.grade(Prepared(text), False)


def test_a_task_counts_loosely_in_summaries_alone() -> None:
    """Most words of an item in one sentence count in a summary and not in the log."""
    task = Task("Write the importer for Borea statements")
    text = Prepared("Still open: importer for statements of Borea, write it.")

    assert (1, 0) == (task.grade(text, True), task.grade(text, False))
    assert 2 == task.grade(Prepared("next: write the importer for Borea statements"), False)
    assert 0 == task.grade(Prepared("Write the importer.\nBorea sends statements."), True)


@pytest.mark.parametrize(("text", "bare", "found"), [
    ("see /repo/src/dates.py for it", False, True), ("src/dates.py:12: error", False, True), ("./src/dates.py", False, True),
    ("in dates.py", False, False), ("in dates.py.", True, True), ("updates.py", True, False), ("other/dates.py", True, False),
    ("dates.pyc", True, False), ("dates.py.orig", True, False), ("src/dates.py/x", False, False), ("xsrc/dates.py", False, False),
    ("\"src/dates.py\"", False, True), ("/else/src/dates.py", False, False), ("/home/a/repo/src/dates.py", False, True)])
def test_paths_match_between_components(text: str, bare: bool, found: bool) -> None:
    """An end of the path with its folder names the file; the bare name does where nothing else is called so."""
    assert found is named(text, "/repo/src/dates.py" if "home" not in text else "/home/a/repo/src/dates.py", bare)


def test_a_path_may_be_longer_in_the_text() -> None:
    """A path known relative to nothing is named by an absolute one that ends in it."""
    assert named("opened /anywhere/src/dates.py", "src/dates.py", False)


def test_a_renamed_file_has_two_names() -> None:
    """Either name of a renamed file names it."""
    file = FilePath(("/r/old.py", "/r/new.py"), unique=True)

    assert [2, 2, 0] == [file.grade(Prepared(t), False) for t in ("old.py", "see new.py", "third.py")]


def test_reasoning_is_not_searched() -> None:
    """Arguments of calls are text with their line breaks; reasoning may be stripped and is none."""
    call = ToolCall(id="1", name="Write", arguments='{"text":"say \\"hi\\"\\nbye"}')
    message = Message(index=0, role="assistant", origin="model", blocks=(Reasoning(text="secret"), Text(text="a"), call))

    assert 'a\n{"text":"say "hi"\nbye"}' == searchable(message)
