"""Offline summarisers: what they keep, and that they say what they are."""

from __future__ import annotations

import pytest

from replay.engine import Lane, Session
from replay.errors import UnknownName
from replay.log import Log
from replay.policy.base import Capacity, Summary, SummaryRequest
from replay.policy.load import policy
from replay.policy.summarisers import DEFAULT_SECTIONS, Empty, Extractive, LengthModel, Recorded, summariser
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import RecordedCompaction
from replay.window import Inserted, Span

FIRST = "Fix parse_date in src/dates.py. Never edit tests/."


def worked() -> Script:
    """A session with a goal, a rule, a decision, a plan, files, commands and an error."""
    script = Script().user(FIRST)
    script.call("Read", '{"file_path":"src/dates.py"}', text="Now I will look at the parser.").result("def parse_date…")
    script.call("Bash", '{"command":"pytest -q\\nls"}', text="I decided to run the tests because they are quick.")
    script.result("ValueError: day is out of range\nat line 3", is_error=True)
    return script.say("Remaining: the leap years.").user("Go on, and only touch src/.").say("Done.")


def log_of(script: Script) -> Log:
    """The log of a script, one token a character."""
    return Log(script.build().main, FixedCounter(()))


def asked(log: Log, *spans: Span, previous: str | None = None, sections: tuple[str, ...] = ()) -> SummaryRequest:
    """A request over these ranges (default: the whole log) with an earlier summary."""
    earlier = (Inserted(message=summary_message(previous), kind="summary"),) if previous is not None else ()
    return SummaryRequest(log=log, spans=spans or (Span(0, len(log)),), previous=earlier, end=len(log),
                          sections=sections)


def text_of(summary: Summary | None) -> str:
    """The text of a summary that there is."""
    assert summary is not None
    return summary.text


def section(text: str, name: str) -> list[str]:
    """The lines of one section."""
    return text.split(f"## {name}\n")[1].split("\n\n")[0].splitlines()


# Extractive.

def test_sections_hold_what_the_log_says() -> None:
    """Goals, rules, commands, decisions, plans, files and errors are taken word for word from the log."""
    text = text_of(Extractive().summarise(asked(log_of(worked()))))

    assert [f"- {FIRST}", "- Go on, and only touch src/."] == section(text, "Goal")
    assert ["- Never edit tests/.", "- Go on, and only touch src/."] == section(text, "Constraints")
    assert ["- Bash: pytest -q"] == section(text, "Progress")
    assert ["- I decided to run the tests because they are quick."] == section(text, "Key Decisions")
    assert ["- Now I will look at the parser.", "- Remaining: the leap years."] == section(text, "Next Steps")
    assert ["- Read src/dates.py"] == section(text, "Files")
    assert ["- ValueError: day is out of range"] == section(text, "Errors")
    assert list(DEFAULT_SECTIONS) == [line[3:] for line in text.splitlines() if line.startswith("## ")]


def test_same_request_gives_the_same_text() -> None:
    """No clock and no chance: two logs of the same session are summed up alike, in any order of asking."""
    one, two = log_of(worked()), log_of(worked())
    Extractive().summarise(asked(two, Span(0, 2)))

    assert Extractive().summarise(asked(one)) == Extractive().summarise(asked(two))
    assert Extractive().summarise(asked(one)) == Extractive().summarise(asked(one))


def test_only_what_is_asked_for_is_read() -> None:
    """Lines from outside of the ranges do not come in."""
    text = text_of(Extractive().summarise(asked(log_of(worked()), Span(0, 2))))

    assert [f"- {FIRST}"] == section(text, "Goal")
    assert ["- none"] == section(text, "Errors")


def test_sections_of_the_harness() -> None:
    """A harness's own section names are used, in its order."""
    names = policy("mycodeagent").stages[0].sections
    text = text_of(Extractive().summarise(asked(log_of(worked()), sections=names)))

    assert list(names) == [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert [f"- {FIRST}", "- Go on, and only touch src/."] == section(text, "Objectives & Status")


def long_session() -> Script:
    """Five hundred rounds with prompts, commands and files of their own."""
    script = Script().user(FIRST)
    for number in range(500):
        script.call("Bash", f'{{"command":"make target{number}"}}').result("ok").say("done")
        script.user(f"Please never forget rule {number}: " + "word " * 40)
    return script


@pytest.mark.parametrize("tokens", [50, 500, 2_000])
def test_text_stays_within_its_budget(tokens: int) -> None:
    """At four characters a token the text never exceeds its budget, and a large log fills most of it."""
    text = text_of(Extractive(budget_tokens=tokens).summarise(asked(log_of(long_session()))))

    assert len(text) <= 4 * tokens
    assert tokens < 500 or len(text) > 4 * tokens * 0.3


def test_first_prompt_stays_and_old_lines_go_first() -> None:
    """Of five hundred prompts the very first and the newest stay."""
    goals = section(text_of(Extractive().summarise(asked(log_of(long_session())))), "Goal")

    assert f"- {FIRST}" == goals[0]
    assert goals[-1].startswith("- Please never forget rule 499")
    assert len(goals) < 20


def test_earlier_summary_is_carried_on() -> None:
    """Sections of the earlier summary come into the new one, behind its frame, before what is new."""
    log = log_of(worked())
    earlier = text_of(Extractive().summarise(asked(log, Span(0, 4))))
    text = text_of(Extractive().summarise(asked(log, Span(4, 8), previous=f"Summary of before: {earlier}")))

    assert [f"- {FIRST}", "- Go on, and only touch src/."] == section(text, "Goal")
    assert ["- Read src/dates.py"] == section(text, "Files")
    assert "- none" not in section(text, "Errors")


def test_first_prompt_survives_many_compactions() -> None:
    """Carried through ten summaries with new prompts each, the first prompt is still the first goal."""
    log = log_of(long_session())
    text = text_of(Extractive().summarise(asked(log, Span(0, 200))))
    for start in range(200, 2_000, 200):
        text = text_of(Extractive().summarise(asked(log, Span(start, start + 200), previous=text)))

    assert f"- {FIRST}" == section(text, "Goal")[0]


def test_nothing_to_summarise() -> None:
    """Without a range and an earlier summary there is no summary."""
    request = SummaryRequest(log=log_of(worked()), spans=())

    assert None is Extractive().summarise(request)


# The others.

def test_recorded_takes_the_latest_that_had_happened() -> None:
    """The session's own summary stands in from the moment at which the harness made it."""
    log = log_of(worked())
    made = [RecordedCompaction(position=p, kind="full", summary=t) for p, t in ((3, "first"), (6, "second"))]
    recorded = Recorded(compactions=tuple(made))
    by_end = {end: recorded.summarise(SummaryRequest(log=log, spans=(Span(0, 2),), end=end)) for end in (2, 3, 5, 6)}

    assert {2: "extractive", 3: "recorded", 5: "recorded", 6: "recorded"} == {e: s.by for e, s in by_end.items() if s}
    assert ["first", "first", "second"] == [text_of(by_end[end]) for end in (3, 5, 6)]


def test_recorded_passes_over_what_cannot_be_read() -> None:
    """A sealed summary is not taken for an empty one: the fallback writes it and gives its own name."""
    sealed = Recorded(compactions=(RecordedCompaction(position=0, kind="full", summary=None),))
    summary = sealed.summarise(asked(log_of(worked())))
    assert summary is not None

    assert "extractive" == summary.by


def test_empty_says_nothing() -> None:
    """The lower bound of what a summary keeps."""
    assert Summary(text="", by="empty") == Empty().summarise(asked(log_of(worked())))


def test_length_model_has_a_size_alone() -> None:
    """A twentieth of what is summarised, the earlier summary included, and never more than its cap."""
    log = log_of(Script().user("x" * 1_000).say("y" * 600))
    sized = [LengthModel(cap=cap).summarise(asked(log, previous=previous)) for cap, previous in
             ((4_000, None), (4_000, "z" * 400), (70, None))]

    assert [80, 100, 70] == [s.tokens for s in sized if s]
    assert "[summary of about 80 tokens; its text is not modelled]" == text_of(sized[0])


def lane_with(name: str) -> Lane:
    """A lane with one compaction whose summary this summariser writes."""
    script = Script().user("x" * 2_000).say("y" * 2_000).user("next").say("ok")
    session = Session(script.build(), FixedCounter(()))
    return session.replay(policy("mycodeagent:cut.rounds=1,trigger.tokens=500"), Capacity(window=10**6), name)


@pytest.mark.parametrize("name", ["extractive", "empty", "length-model", "recorded"])
def test_events_name_the_summariser(name: str) -> None:
    """Every compaction says whose text its summary is; without a recorded one that is the fallback."""
    event = next(e for e in lane_with(name).events if e.kind == "full")

    assert ("extractive" if name == "recorded" else name) == event.summariser
    assert event.added is not None
    assert event.summariser == event.added.label


def test_modelled_size_counts_in_the_view() -> None:
    """The view's size holds the stated size of a modelled summary, not that of its text."""
    lane = lane_with("length-model")

    assert 200 + len("next") == lane.views[-1].counted


def test_names() -> None:
    """A summariser is found by its name; others are refused with what is near."""
    assert ["extractive", "recorded", "empty", "length-model"] == [
        summariser(n).name for n in ("extractive", "recorded", "empty", "length-model")]
    with pytest.raises(UnknownName, match="did you mean extractive"):
        summariser("extractiv")
