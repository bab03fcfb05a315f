"""Parts of Claude Code's, the providers', Letta's, Aider's and SWE-agent's policies."""

from __future__ import annotations

import random
from typing import Any

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.engine import Lane, Session
from replay.errors import ConfigError
from replay.fingerprint import Chain
from replay.log import Log
from replay.policy.base import Capacity, Cut, Moment, Refusal, Remarked
from replay.policy.cleared_uses import ClearToolUses, NoInputs, ToolUses
from replay.policy.cuts_growing import EvictShare, FoldMessages, HalfOfLevel, KeepAtLeast
from replay.policy.example_tools import log_of, moment
from replay.policy.explain import explain
from replay.policy.levels import Buffer, ClampedShare, Counted
from replay.policy.load import policy, policy_from
from replay.policy.newest_per_file import NewestPerFile, OutdatedFile, header
from replay.policy.restored import RestoredContext
from replay.policy.summarising import plain
from replay.readers.common import ThreadBuilder
from replay.testing import FixedCounter, Script, summary_message
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import Message
from replay.view import shown_messages
from replay.window import Inserted, Mark, Span, Window, pieces, rendering_at

WINDOW_TEXT = "[File: /a.py (3 lines total)]\n(1 more line above)\n2:two\n3:three\n(end)"


def files(*reads: tuple[str, str], tool: str = "Read") -> Log:
    """A log of reads (path, text): prompt at 0, calls at odd places, results at even ones."""
    builder = ThreadBuilder(id="main")
    builder.add("user", [Text(text="go")], "human")
    for number, (path, text) in enumerate(reads):
        builder.respond([ToolCall(id=f"c{number}", name=tool, arguments=f'{{"path": "{path}"}}')], None)
        builder.add("tool", [ToolResult(call_id=f"c{number}", name=tool, text=text)], "tool")
    return Log(builder.build(), ByteCounter())


def at(log: Log, window: Window, size: int = 1_000) -> Moment:
    """A moment with this window."""
    return Moment(log=log, window=window, capacity=Capacity(window=size))


@pytest.mark.parametrize(("reserve", "share", "level"), [
    (20_000, None, 67_000), (8_000, None, 79_000), (64_000, None, 67_000), (20_000, 0.5, 40_000), (20_000, 0.9, 67_000)])
def test_buffer_leaves_room_below_the_window_without_the_answer(reserve: int, share: float | None, level: int) -> None:
    """Of the answer's room at most 20,000 tokens count; a share can only lower the level."""
    assert level == Buffer(share=share).level(Capacity(window=100_000, output_reserve=reserve))


def test_clamped_share_fires_above_its_level() -> None:
    """At the level itself nothing happens, and without a figure neither."""
    trigger = ClampedShare(divisor=10, least=100, most=200)
    decisions = [trigger.decide("s", tokens, moment(log_of(("u", 1)), window=1_500)) for tokens in (None, 150, 151)]

    assert [("usage_unknown", False), ("below_threshold", False), ("threshold_exceeded", True)] == [
        (d.reason, d.fires) for d in decisions]


def test_counted_measures_the_window_or_what_came_in() -> None:
    """Blanked results count as they are shown, or as the client sent them."""
    log = files(("f", "x" * 400), ("g", "y" * 400))
    chosen = policy("closed-window").stages[0].tool_results
    assert chosen is not None
    marked = at(log, Window((Span(0, 5),), (Mark(chosen.rendering, 0, 5),), 5))  # type: ignore[attr-defined]

    assert Counted(of="received").tokens(marked) - Counted().tokens(marked) > 150


@pytest.mark.parametrize(("size", "expected"), [(2_000, 3), (1_000, 5), (100, 11)])
def test_evicted_share_grows_until_the_rest_fits(size: int, expected: int) -> None:
    """Four tenths of the messages go where the rest is small enough, more where it is not, all where it never is."""
    calls = [m for _ in range(5) for m in (("a", 0), ("t", 200))]

    assert expected == _place(EvictShare(), moment(log_of(("u", 1), *calls), window=size))


def test_evicted_share_counts_the_summary_as_a_message() -> None:
    """With a summary in front the shares are of one message more."""
    log = log_of(("u", 1), *[m for _ in range(5) for m in (("a", 0), ("t", 10))])
    held = Window((Inserted(message=summary_message("S"), kind="summary"), Span(1, 11)), (), 11)

    assert 3 == _place(EvictShare(), at(log, held, 10_000))


def test_half_of_the_level_ends_behind_a_response_with_its_results() -> None:
    """A tail never begins between a call and its result, nor behind a prompt."""
    log = log_of(*[m for _ in range(3) for m in (("u", 50), ("a", 50), ("t", 50))], ("u", 50), ("s", 50))
    rule = HalfOfLevel(level=ClampedShare(divisor=1, least=400, most=400), least=2)

    assert 6 == _place(rule, moment(log))


def test_half_of_the_level_folds_everything_where_little_would_go() -> None:
    """Where no more than `least` messages would go, nothing stays."""
    log = log_of(("u", 50), ("s", 50), ("u", 50), ("s", 50))

    assert 4 == _place(HalfOfLevel(level=ClampedShare(divisor=1, least=300, most=300), least=4), moment(log))


def test_fold_of_messages_leaves_a_lone_summary_alone() -> None:
    """With nothing but a summary in the window there is nothing to fold."""
    log = log_of(("u", 1), ("s", 1))
    summary = Inserted(message=summary_message("S"), kind="summary", covers=(Span(0, 2),))

    assert "no_messages_to_compact" == _place(FoldMessages(), at(log, Window((summary,), (), 2)))
    assert 2 == _place(FoldMessages(), moment(log))


@pytest.mark.parametrize(("rule", "expected"), [
    (KeepAtLeast(tokens=100, texts=1, most=1_000), 9), (KeepAtLeast(tokens=100, texts=4, most=1_000), 3),
    (KeepAtLeast(tokens=250, texts=0, most=1_000), 6), (KeepAtLeast(tokens=100, texts=4, most=150), 8),
    (KeepAtLeast(tokens=900, texts=1, most=1_000), "everything_fits")])
def test_at_least_keeps_tokens_and_texts_up_to_a_bound(rule: KeepAtLeast, expected: int | str) -> None:
    """Both minima must be met; the upper bound wins over them."""
    calls = [m for _ in range(5) for m in (("a", 10), ("t", 90))]

    assert expected == _place(rule, moment(log_of(("u", 10), *calls)))


def test_inputs_of_cleared_uses_go_with_their_results() -> None:
    """The calls whose results are cleared show no input; the newest stay, and excluded tools."""
    log = files(("f", "x" * 400), ("g", "y" * 400), ("h", "z" * 400))
    found = ClearToolUses(keep=1, inputs=NoInputs()).marks(moment(log))
    assert isinstance(found, tuple)
    window = Window((Span(0, 7),), found, 7)
    shown = [s.message for s in shown_messages(log, window)]

    assert ["{}", "{}", '{"path": "h"}'] == [c.arguments for m in shown for c in m.calls]
    assert [False, False, True] == [r.text.startswith("z") for m in shown for r in m.results]
    assert log.messages[1] is NoInputs(except_tools=("Read",)).render(log.messages[1])


def test_uses_are_cleared_once() -> None:
    """Where everything but the newest is cleared already, nothing is to do."""
    log = files(("f", "x" * 400), ("g", "y" * 400))
    rule = ClearToolUses(keep=1)
    found = rule.marks(moment(log))
    assert isinstance(found, tuple)

    assert Refusal("nothing_to_elide") == rule.marks(at(log, Window((Span(0, 5),), found, 5)))
    assert Refusal("nothing_to_elide") == ClearToolUses(keep=2).marks(moment(log))


def test_trigger_by_tool_uses_counts_results() -> None:
    """More uses than stated fire."""
    now = moment(files(("f", "x"), ("g", "y")))

    assert [True, False] == [ToolUses(more_than=n).decide("s", None, now).fires for n in (1, 2)]


def test_window_of_a_file_is_closed_line_by_line() -> None:
    """What stands around the numbered lines stays; texts without the header, or without numbered lines, do too."""
    message = Message(index=0, role="tool", origin="tool", blocks=(ToolResult(call_id="c", name="open", text=WINDOW_TEXT),))
    closed = OutdatedFile().render(message).results[0].text
    other = Message(index=0, role="tool", origin="tool", blocks=(ToolResult(call_id="c", name="open", text="1:one"),))

    assert "/a.py" == header(WINDOW_TEXT)
    assert "[File: /a.py (3 lines total)]\n(1 more line above)\nOutdated window with 2 lines omitted...\n(end)" == closed
    assert other is OutdatedFile().render(other)


def test_newest_read_of_a_file_stays_step_by_step() -> None:
    """Each time a file is read again the read before it is changed, and no other message is."""
    log = files(("f", "1"), ("g", "2"), ("f", "3"), ("h", "4"), ("g", "5"), ("f", "6"))
    rule = NewestPerFile(rendering=OutdatedFile(read_tools=("Read",)))
    window, seen = Window(), []
    for end in range(3, 14, 2):
        window = window.extended(end)
        found = rule.marks(at(log, window))
        if isinstance(found, Remarked):
            window = Window(window.items, found.marks, window.end)
            seen.append(found.elided)
    hidden = [s.index for s in shown_messages(log, window) if s.form == "elided"]

    assert [(2,), (4,), (6,)] == seen
    assert [2, 4, 6] == hidden
    assert 1 == len(window.marks), "neighbours without a newest read between them are one mark"


def test_newest_reads_between_marks_stay() -> None:
    """A read that is still the newest of its file splits the marks around it."""
    log = files(("f", "1"), ("g", "2"), ("f", "3"), ("f", "4"))
    found = NewestPerFile(rendering=OutdatedFile(read_tools=("Read",))).marks(moment(log))
    assert isinstance(found, Remarked)

    assert [(2, 3), (6, 7)] == [(m.start, m.stop) for m in found.marks]


def test_partial_reads_may_be_left_alone() -> None:
    """With `whole`, reads of a part neither count nor change."""
    builder = ThreadBuilder(id="main")
    for number, arguments in enumerate(('{"path": "f", "offset": 5}', '{"path": "f"}', '{"path": "f"}')):
        builder.respond([ToolCall(id=f"c{number}", name="Read", arguments=arguments)], None)
        builder.add("tool", [ToolResult(call_id=f"c{number}", name="Read", text="x")], "tool")
    log = Log(builder.build(), ByteCounter())
    found = [NewestPerFile(whole=whole, rendering=OutdatedFile(read_tools=("Read",))).marks(moment(log))
             for whole in (False, True)]

    assert [(1, 3), (3,)] == [f.elided for f in found if isinstance(f, Remarked)]


def test_a_result_of_two_files_closes_when_both_were_shown_again() -> None:
    """A message that holds two files is changed only after the second one came again."""
    builder = ThreadBuilder(id="main")
    for number, paths in enumerate((("f", "g"), ("f",), ("g",))):
        calls = [ToolCall(id=f"{number}{p}", name="Read", arguments=f'{{"path": "{p}"}}') for p in paths]
        builder.respond([*calls], None)
        builder.add("tool", [ToolResult(call_id=c.id, name="Read", text="x") for c in calls], "tool")
    log = Log(builder.build(), ByteCounter())
    rule = NewestPerFile(rendering=OutdatedFile(read_tools=("Read",)))

    assert isinstance(rule.marks(at(log, Window((Span(0, 4),), (), 4))), Refusal)
    assert Remarked((Mark(rule.rendering, 1, 2),), (1,)) == rule.marks(moment(log))


def test_many_marks_show_what_each_of_them_says() -> None:
    """Pieces of many marks are those that asking every mark for every message gives, overlaps included."""
    a, b = OutdatedFile(text="a"), OutdatedFile(text="b")
    marks = (Mark(a, 0, 50), *(Mark(b, n, n + 2) for n in range(1, 40, 5)), Mark(b, 45, 45))
    found = {i: r for start, stop, r in pieces(marks, 3, 60) for i in range(start, stop)}

    assert {i: rendering_at(tuple(m for m in marks if m.start <= i < m.stop), i) for i in range(3, 60)} == found
    assert all(rendering_at(marks, i) == found[i] for i in range(3, 60))


@pytest.mark.parametrize("ingest", [False, True])
def test_sizes_and_fingerprints_under_many_marks(ingest: bool) -> None:
    """A lane with many marks has at each step the size and the digest that its messages give one by one."""
    paths = [f"f{random.Random(n).randrange(12)}" for n in range(60)]
    log = files(*((p, p * (n + 3)) for n, p in enumerate(paths)))
    rule = NewestPerFile(rendering=OutdatedFile(read_tools=("Read",)))
    chain, window = Chain(log), Window((), (Mark(OutdatedFile(text="!", read_tools=("f",)), 0, 2**40),) if ingest else ())
    most = 0
    for end in range(3, len(log) + 1, 2):
        window = window.extended(end)
        found = rule.marks(at(log, window))
        window = Window(window.items, found.marks, end) if isinstance(found, Remarked) else window
        shown, most = [s.message for s in shown_messages(log, window)], max(most, len(window.marks))

        assert sum(ByteCounter().tokens(shown)) == log.size(window)
        assert Chain(log).follow(window).fingerprint == chain.follow(window).fingerprint
    assert most >= 5


def restored(**settings: Any) -> list[str]:
    """What stands behind the summary after a session with lists, a plan, a skill and a rule in front."""
    builder = ThreadBuilder(id="main")
    builder.add("user", [Text(text="RULES: always test")], "injected")
    builder.add("user", [Text(text="go")], "human")
    calls = (("TodoWrite", '{"todos": ["old"]}', "ok"), ("Skill", '{"skill": "s"}', "skill text"),
             ("ExitPlanMode", '{"plan": "first a, then b"}', "ok"), ("TodoWrite", '{"todos": ["new"]}', "ok"))
    for number, (name, arguments, result) in enumerate(calls):
        builder.respond([ToolCall(id=f"c{number}", name=name, arguments=arguments)], None)
        builder.add("tool", [ToolResult(call_id=f"c{number}", name=name, text=result)], "tool")
    log = Log(builder.build(), ByteCounter())
    made = RestoredContext(**settings).place(None, (), (Span(9, 10),), moment(log))
    return [i.message.text if isinstance(i, Inserted) else "tail" for i in made]


def test_context_is_put_back_in_order() -> None:
    """The newest list, the plan, skills and rules follow on the summary; frames that are empty leave theirs out."""
    frames = {"todo_frame": "T {content}", "plan_frame": "P {content}", "skill_frame": "S {content}",
              "rules_frame": "R {content}"}

    assert ['T {"todos":["new"]}', "P first a, then b", "S skill text", "R RULES: always test", "tail"] == restored(**frames)
    assert ["tail", "P first a, then b"] == restored(plan_frame="P {content}", behind_tail=True)
    assert ["tail"] == restored()


@pytest.mark.parametrize(("settings", "shown"), [
    ({"skill_tokens": 1}, ["skil", "tail"]), ({"skills_budget_tokens": 0}, ["tail"]),
    ({"skill_tokens": 1, "skills_budget_tokens": 1}, ["skil", "tail"])])
def test_skills_are_cut_and_keep_to_their_budget(settings: dict[str, int], shown: list[str]) -> None:
    """Each is cut to its size, and what does not fit the rest of the budget is left out."""
    assert shown == restored(skill_frame="{content}", **settings)


def test_long_summaries_are_clipped() -> None:
    """Letta cuts a summary to a number of characters; what later compactions read is cut too."""
    stage = {"name": "s", "cut": {"use": "messages", "messages": 1}, "summary_chars": 40}
    session = Session(Script().user("a" * 400).say("b" * 400).user("c").say("d").build(), FixedCounter([100, 100, 1]))
    lane = session.replay(policy_from({"name": "clip", "stages": [stage]}), Capacity(window=1_000))
    (summary,) = lane.views[-1].window.summaries()

    assert plain(summary).endswith("... [summary truncated to fit]")
    assert 40 + len("... [summary truncated to fit]") == len(plain(summary))


def lane_of(name: str, rest_hours: float = 0.0, window: int = 40_000) -> Lane:
    """A lane of ten calls of 1,000 tokens with a rest in front of the last one's result."""
    script = Script().user("go")
    for number in range(10):
        script.call("Bash").clock += rest_hours * 3_600 if number == 9 else 0
        script.result("x" * 4_000)
    told = script.say("done").build()
    return Session(told, ByteCounter()).replay(policy(name), Capacity(window=window, output_reserve=4_000), refusals={})


def test_claude_code_blanks_old_results_after_a_rest() -> None:
    """All results but the newest five are blanked after an hour, none before; other tools' results stay."""
    assert [(2, 4, 6, 8, 10)] == [e.elided for e in lane_of("claude-code-micro", 1.0).events]
    assert () == lane_of("claude-code-micro", 0.9).events
    assert () == lane_of("claude-code", 1.0).events


def test_session_memory_keeps_a_tail_where_full_compaction_keeps_none() -> None:
    """With the notes some calls stay verbatim behind the summary."""
    settings = "tokens=2000,texts=1,most=4000"
    notes = lane_of(f"claude-code-session-memory:cut.{settings.replace(',', ',cut.')}", window=20_000)
    full = lane_of("claude-code", window=20_000)

    assert ["notes"] == [e.stage for e in notes.events if e.kind == "full"][:1]
    assert any(isinstance(i, Span) for i in notes.views[-1].window.items)
    assert ["full"] == [e.stage for e in full.events if e.kind == "full"][:1]


@pytest.mark.parametrize(("name", "role"), [("anthropic-compact:trigger.tokens=3000", "assistant"),
                                            ("openai-compact:trigger.at=0.05", "assistant")])
def test_providers_compact_everything_into_an_item_of_the_model(name: str, role: str) -> None:
    """Behind the level the view holds the item and what came after it."""
    lane = lane_of(name)
    first = next(v for v in lane.views if any(e.kind == "full" for e in v.events))

    assert [("summary", role)] == [(i.kind, i.message.role) for i in first.window.items if isinstance(i, Inserted)]
    assert 1 == len(first.window.items)


@pytest.mark.parametrize(("make", "key"), [
    (lambda: Buffer(tokens=-1), "tokens"), (lambda: ClampedShare(least=5, most=4), "most"), (lambda: EvictShare(share=1), "share"),
    (lambda: KeepAtLeast(tokens=5, most=4), "most"), (lambda: ClearToolUses(keep=-1), "keep"),
    (lambda: ToolUses(more_than=-1), "more_than"), (lambda: RestoredContext(skill_tokens=-1), "skill_tokens")])
def test_settings_that_cannot_be_meant_are_refused(make: Any, key: str) -> None:
    """The message names the setting."""
    with pytest.raises(ConfigError, match=key):
        make()


@pytest.mark.parametrize(("name", "words"), [
    ("claude-code", "reported input and output tokens of the last call plus an estimate of what came since reach 13,000"),
    ("claude-code", "after 3 failures in a row"), ("claude-code-session-memory", "5 messages with text"),
    ("claude-code-micro:keeps_cache=true", "the provider's cache stays warm"),
    ("anthropic-clear-tool-uses:tool_results.inputs=no-inputs", "becomes “[cleared to save context]” and its call's input goes"),
    ("closed-window", "of several views of a file all but the newest"), ("letta", "a summary is cut to 50,000 characters"),
    ("aider", "the window divided by 16, at least 1,024 and at most 8,192 tokens")])
def test_presets_say_what_they_do(name: str, words: str) -> None:
    """The explanation in words names the rule and its numbers."""
    assert words in " ".join(explain(policy(name)))


def _place(rule: Any, now: Moment) -> int | str:
    found = rule.cut(now)
    return found.keep_from if isinstance(found, Cut) else str(found.reason)
