"""Parts of Cline's SDK: how it measures, where it cuts, what it writes behind summaries and in the place of work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.log import Log
from replay.policy.base import Capacity, Cut, Moment, Refusal
from replay.policy.cline import ActivityNotices, FilesSection, KeepPromptsAndWork, KeepWithinTarget, work_of
from replay.policy.cline_size import SentThenStored, StoredJson
from replay.policy.estimators import Characters
from replay.policy.example_tools import log_of, moment
from replay.testing import FixedCounter, Script, summary_message
from replay.window import Inserted, Span, Window

PLAIN = Characters(divisor=4)
ROUNDS = [("u", 10), *[m for _ in range(5) for m in (("a", 10), ("t", 90))]]
"""A prompt and five calls with a result each: log places 0 to 10."""


def cut(rule: Any, at: Moment) -> int | str:
    """Where a rule cuts, or why it does not."""
    found = rule.cut(at)
    return found.reason if isinstance(found, Refusal) else found.keep_from


@pytest.mark.parametrize(("tail", "expected"), [(90, 9), (100, 9), (101, 7), (201, 5), (2_000, "everything_fits")])
def test_tail_begins_with_the_response_that_fills_the_budget(tail: int, expected: int | str) -> None:
    """The message that fills the budget stays, and so does the response that it answers."""
    assert expected == cut(KeepWithinTarget(tail_tokens=tail, estimator=PLAIN), moment(log_of(*ROUNDS), 100_000))


def test_target_limits_the_tail() -> None:
    """In a small window the share of it decides, less what system prompt and tools take."""
    rule = KeepWithinTarget(tail_tokens=20_000, share=0.5, reserve=50, estimator=PLAIN)

    assert 7 == cut(rule, moment(log_of(*ROUNDS), 500))


def test_what_follows_on_the_last_prompt_stays_with_it() -> None:
    """However small the budget, the cut does not pass the last typed prompt; the first prompt may go."""
    rule = KeepWithinTarget(tail_tokens=90, estimator=PLAIN)

    assert 11 == cut(rule, moment(log_of(*ROUNDS, *ROUNDS), 100_000))


def worked() -> Log:
    """A prompt, a read, a change, a command, a second prompt and a read."""
    script = Script().user("one")
    for name, arguments in (("read_files", {"files": [{"path": "b.py"}, "a.py"]}), ("editor", {"path": "c.py"}),
                            ("run_commands", {"commands": ["make", "make"]}), ("ask", {"path": "no.py"})):
        script.call(name, json.dumps(arguments)).result("body")
    script.user("two").call("apply_patch", json.dumps({"path": "d.py"})).result("ok")
    return Log(script.build().main, FixedCounter(()))


def test_prompts_stay_with_notices_of_the_work_that_went() -> None:
    """Behind each prompt stands what was done after it; the newest work that fits stays as it is."""
    log = worked()
    rule = KeepPromptsAndWork(share=0.5, estimator=PLAIN)
    at = Moment(log=log, window=Window((Span(0, 12),), (), 12), capacity=Capacity(window=22))
    found = rule.cut(at)
    assert isinstance(found, Cut)
    items = ActivityNotices(opening="Done:").place(None, found.kept, (), at)
    texts = [i.message.text if isinstance(i, Inserted) else i for i in items]

    assert (Span(0, 1), Span(9, 10)) == (texts[0], texts[2])
    assert ("<SYSTEM_NOTICE>\nDone:\nFiles read:\nb.py\na.py\n\nFiles edited:\nc.py\n\nCommands ran:\nmake"
            "</SYSTEM_NOTICE>") == texts[1]
    assert "Files edited:\nd.py" in str(texts[3])


def test_a_later_compaction_restores_the_first_one() -> None:
    """What the first compaction left comes back, all work since then is gone."""
    log = worked()
    notice = Inserted(message=summary_message("notice"), kind="notice")
    window = Window((Span(0, 1), notice, Span(3, 12)), (), 12)
    at = Moment(log=log, window=window, capacity=Capacity(window=22), checkpoint=7, compactions=1)
    found = KeepPromptsAndWork(share=0.5, estimator=PLAIN).cut(at)

    assert Cut(keep_from=12, kept=(Span(0, 1), notice, Span(3, 7))) == found


def test_files_are_those_of_the_covered_calls() -> None:
    """The section names files in order of the alphabet, and says so where there are none."""
    log = worked()

    assert "Read:\n- a.py\n- b.py\nModified:\n- c.py" in FilesSection().text(log, (Span(0, 9),))
    assert "Read:\n- none\nModified:\n- d.py" in FilesSection().text(log, (Span(9, 12),))
    assert ("make",) == work_of(log, (Span(0, 12),)).commands


@pytest.mark.parametrize(("text", "restores", "expected"), [
    ("plain", True, 67 + 56 + 6 + 4 + 7), ("[1]", True, 67 + 56 + 6 + 4 + 3),
    ("a\n\n...[truncated 100 chars]...\n\nb", True, 67 + 56 + 6 + 4 + 104 + 4),
    ("a\n\n...[truncated 100 chars]...\n\nb", False, 67 + 56 + 6 + 4 + 39)])
def test_result_counts_as_it_is_stored(text: str, restores: bool, expected: int) -> None:
    """Keys and brackets count; JSON stands as such; of a truncated result the whole counts, as its mark tells."""
    script = Script().user("go").call("read").result(text)
    result = script.build().messages[2].results[0]
    log = Log(script.build().main, FixedCounter(()))
    ruler = StoredJson(divisor=1, restores=restores)
    named = len(json.dumps(result.call_id)) + len(json.dumps(result.name or ""))

    assert expected - 10 + named == ruler.weights([log.messages[2]])[0]


def test_results_count_in_full_once_a_compaction_took_place() -> None:
    """Before it they count as they were truncated for the request."""
    log = Log(Script().user("go").call("read").result("a\n\n...[truncated 9000 chars]...\n\nb").build().main,
              FixedCounter(()))
    at = Moment(log=log, window=Window((Span(0, 3),), (), 3), capacity=Capacity(window=100))
    later = Moment(log=log, window=at.window, capacity=at.capacity, compactions=1)

    assert 2_900 < SentThenStored().tokens(later) - SentThenStored().tokens(at) < 3_000
