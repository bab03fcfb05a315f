"""What shapes a window besides stages: layers, caps on what comes in, images, what summarisers read, cooldowns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Text, ToolResult
from replay.engine import Lane, Session
from replay.errors import ConfigError
from replay.log import Log
from replay.policy.base import Capacity, Refusal, Summary, SummaryRequest
from replay.policy.example_tools import moment
from replay.policy.explain import explain
from replay.policy.layers import Layer
from replay.policy.load import policy, policy_from, spec
from replay.policy.renderings_caps import Capped, CappedDiagnostics, EachOf, KeepImages, NoImages
from replay.readers.common import ThreadBuilder
from replay.testing import FixedCounter, Script
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import Message
from replay.view import plain_text, shown_messages

PICTURE = Image(mime="image/png", size_bytes=9, sha256="0" * 64)
LINES = "".join(f"line {n}\n" for n in range(1, 11))


def result(text: str, name: str = "Bash", images: tuple[Image, ...] = ()) -> Message:
    """A message with one tool result."""
    return Message(index=0, role="tool", origin="tool",
                   blocks=(ToolResult(call_id="c1", name=name, text=text, images=images),))


def shown(form: Any, text: str, name: str = "Bash") -> str:
    """A result's text in a form."""
    return str(form.render(result(text, name)).results[0].text)


@pytest.mark.parametrize(("caps", "expected"), [
    ({}, "a\nb\nc"), ({"lines": 2}, "a\nb\n[cut]"), ({"bytes": 3}, "a\nb[cut]"), ({"lines": 2, "keeps": "tail"}, "[cut]b\nc"),
    ({"bytes": 1, "keeps": "tail"}, "[cut]c"), ({"window_share": 0.001}, "a\nb\n[cut]"), ({"lines": 3, "bytes": 5}, "a\nb\nc")])
def test_layer_text_is_capped(caps: dict[str, Any], expected: str) -> None:
    """Lines, bytes and a share of the window cut a text at the end that is not kept."""
    layer = Layer(name="memory", text="a\nb\nc", mark="[cut]", **caps)

    assert expected == layer.inserted(Capacity(window=1_000)).message.text


def test_layer_of_a_size_is_capped_by_the_window() -> None:
    """A catalogue of a stated size takes no more than its share."""
    layer = Layer(name="skills", tokens=5_000, window_share=0.01)

    assert [1_000, 5_000] == [layer.inserted(Capacity(window=w)).tokens for w in (100_000, 1_000_000)]


def test_capped_bytes_part_no_character() -> None:
    """A cut within a character leaves the character out."""
    assert "a" == Layer(name="m", text="aé", bytes=2).inserted(Capacity(window=1)).message.text


def test_layer_text_may_lie_in_a_file(tmp_path: Path) -> None:
    """A policy file names a text beside it; a missing one is named with its place."""
    (tmp_path / "AGENTS.md").write_text("Always test.", encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text('layers = [{ name = "memory", file = "AGENTS.md", lines = 200 }]', encoding="utf-8")
    found = policy(str(path))

    assert ("Always test.", 200) == (found.layers[0].text, found.layers[0].lines)
    path.write_text('layers = [{ name = "memory", file = "GONE.md" }]', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"layers\[0\]\.file"):
        policy(str(path))


@pytest.mark.parametrize(("settings", "expected"), [
    ({"lines": 3}, "line 1\nline 2\nline 3\n[7 lines, 50 bytes of c1]"),
    ({"lines": 3, "keeps": "tail"}, "[7 lines, 49 bytes of c1]\nline 8\nline 9\nline 10\n"),
    ({"lines": 3, "keeps": "both"}, "line 1\nline 2\n[7 lines, 49 bytes of c1]\nline 10\n"),
    ({"bytes": 15}, "line 1\nline 2\n[8 lines, 57 bytes of c1]"),
    ({"bytes": 4}, "line\n[9 lines, 67 bytes of c1]"),
    ({"bytes": 30, "keeps": "both"}, "line 1\nline 2\n[6 lines, 42 bytes of c1]\nline 9\nline 10\n"),
    ({"lines": 10}, LINES), ({"bytes": 71}, LINES), ({}, LINES)])
def test_results_are_capped_by_lines_and_bytes(settings: dict[str, Any], expected: str) -> None:
    """Whole lines stay at the stated end; the mark says what is missing and names the call."""
    assert expected == shown(Capped(mark="[{lines} lines, {bytes} bytes of {id}]", **settings), LINES)


def test_caps_hold_for_the_named_tools_alone() -> None:
    """Other tools' results are the same objects as before."""
    other, form = result(LINES, "Read"), Capped(lines=1, tools=("Bash",))

    assert other is form.render(other)
    assert LINES == shown(Capped(lines=1, except_tools=("Bash",)), LINES)


def test_diagnostics_are_capped() -> None:
    """The first ones stay in their place, a line says how many more there were, other lines are untouched."""
    text = "edited\nerror: a\nnote\nerror: b\nerror: c\nend"
    form = CappedDiagnostics(most=1)

    assert "edited\nerror: a\nnote\n… 2 more\nend" == shown(form, text, "Edit")
    assert text == shown(form, text, "Bash")
    assert text == shown(CappedDiagnostics(most=3), text, "Edit")


def test_images_are_shown_as_text() -> None:
    """Images in prompts and in results become a text each; messages without stay the same objects."""
    prompt = Message(index=0, role="user", origin="human", blocks=(Text(text="look"), PICTURE))
    plain = result("x")

    assert "look\n[image]" == plain_text(NoImages().render(prompt))
    assert "seen\n[image]\n[image]" == NoImages().render(result("seen", images=(PICTURE, PICTURE))).results[0].text
    assert plain is NoImages().render(plain)


def test_only_the_newest_images_stay() -> None:
    """A mark up to the oldest image that stays, none where there are no more than that."""
    builder = ThreadBuilder(id="main")
    for _ in range(3):
        builder.add("user", [Text(text="look"), PICTURE], "human")
    now = moment(Log(builder.build(), ByteCounter()))
    found = KeepImages(keep=2).marks(now)

    assert isinstance(found, tuple)
    assert 1 == found[0].stop
    assert Refusal("nothing_to_elide") == KeepImages(keep=3).marks(now)


def test_several_forms_stand_on_each_other() -> None:
    """Forms are listed in a file, come out of its spec again and apply one after the other."""
    forms = [{"use": "capped", "lines": 2, "mark": "[more]"}, {"use": "no-images"}]
    table = {"name": "p", "ingest": {"use": "each-of", "forms": forms}}
    made = policy_from(table)

    assert table == spec(made)
    assert made.ingest is not None
    assert "1\n2\n[more]\n[image]" == made.ingest.render(result("1\n2\n3\n", images=(PICTURE,))).results[0].text
    assert EachOf().render(result("x")) == result("x")
    with pytest.raises(ConfigError, match=r"ingest\.forms"):
        policy_from({"name": "p", "ingest": {"use": "each-of", "forms": "capped"}})


def test_caps_shape_every_view() -> None:
    """What comes in is cut before any stage sees it."""
    session = Session(Script().user("go").call("Bash").result("z" * 4_000).say("done").build(), ByteCounter())
    ingest = {"use": "capped", "bytes": 400, "mark": ""}
    lane = session.replay(policy_from({"name": "p", "ingest": ingest}), Capacity(window=10_000))
    sizes = [len(s.message.results[0].text) for s in shown_messages(session.log, lane.views[-1].window) if s.index == 2]

    assert [400] == sizes


STAGE: dict[str, Any] = {"name": "s", "cut": {"use": "messages", "messages": 1}}


def compacted(**settings: Any) -> Lane:
    """A lane that compacts before its last step, over a result of 1,000 tokens."""
    script = Script().user("go").call("Bash").result("x" * 4_000).say("so").user("and?").say("done")
    stage = {**STAGE, "trigger": {"use": "message-count", "more_than": 4}, **settings}
    return Session(script.build(), ByteCounter()).replay(policy_from({"name": "p", "stages": [stage]}),
                                                         Capacity(window=10_000))


def test_summariser_reads_results_in_the_stated_form() -> None:
    """Its bill counts the shortened results, the window is not touched."""
    form = {"use": "head-and-tail", "chars": 400, "tail_share": 0.0, "mark": ""}
    whole, short = (compacted(**s).events[0] for s in ({}, {"summary_form": form}))

    assert 900 == (whole.summary_input_tokens or 0) - (short.summary_input_tokens or 0)
    assert whole.tokens_before == short.tokens_before


class Failing:
    """A summariser that has nothing to say."""

    name = "failing"
    asked: list[int]

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.asked = []

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """None, and what was asked is kept."""
        self.asked.append(request.step)
        return None


def failing(**settings: Any) -> tuple[Lane, list[int]]:
    """A lane whose summaries all fail, and the steps at which one was asked for; an hour passes before the last."""
    script, writer = Script().user("a" * 400).say("b"), Failing()
    for text in ("c", "d", "e"):
        script.user(text).say(text)
    script.clock += 3_600
    told = script.user("f").say("g").build()
    stage = {**STAGE, "trigger": {"use": "message-count", "more_than": 2}, **settings}
    lane = Session(told, FixedCounter([100] * 10)).replay(policy_from({"name": "p", "stages": [stage]}),
                                                          Capacity(window=10_000), writer)
    return lane, writer.asked


@pytest.mark.parametrize(("settings", "asked", "said"), [
    ({}, [2, 3, 4, 5], ["summary_unavailable"]),
    ({"cooldown_minutes": 10.0}, [2, 5], ["summary_unavailable", "cooling_down", "summary_unavailable"]),
    ({"breaker": 2}, [2, 3], ["summary_unavailable", "breaker_open"])])
def test_stage_rests_after_failures(settings: dict[str, Any], asked: list[int], said: list[str]) -> None:
    """Within the cooldown, and once the breaker is open, no summary is asked for; an event says why, once."""
    lane, steps = failing(**settings)

    assert asked == steps
    assert said == [e.reason for e in lane.events]
    assert all(e.sentence for e in lane.events)


def test_everything_that_shapes_a_window_is_said() -> None:
    """The explanation names layers with caps, forms, reserve, reinjection and what the summariser reads."""
    table = {"name": "p", "output_reserve": 8_000, "reinjection": {"use": "session-memory", "enabled": True},
             "layers": [{"name": "memory", "text": "t", "lines": 200, "bytes": 25_000},
                        {"name": "skills", "tokens": 900, "window_share": 0.01}],
             "ingest": {"use": "each-of", "forms": [{"use": "capped", "lines": 2_000, "tools": ["Bash"]},
                                                    {"use": "diagnostics"}, {"use": "no-images"}]},
             "stages": [{**STAGE, "cooldown_minutes": 10.0, "summary_form": {"use": "head-and-tail", "chars": 500}},
                        {"name": "pictures", "tool_results": {"use": "newest-images", "keep": 2}}]}
    said = " ".join(explain(policy_from(table)))

    for words in ("memory (its text, at most 200 lines and 25,000 bytes)", "skills (900 tokens, at most 1% of the window)",
                  "tool results of Bash of more than 2,000 lines as their beginning", "at most 10 diagnostics",
                  "“[image]” in the place of images", "kept free for the answer: 8,000 tokens",
                  "every view holds besides a session memory", "after a failure it is not tried for 10 minutes",
                  "the summariser reads them with tool results of more than 500", "images but the newest 2"):
        assert words in said


@pytest.mark.parametrize(("make", "key"), [
    (lambda: Layer(name="l", lines=-1), "lines"), (lambda: Layer(name="l", window_share=2), "window_share"),
    (lambda: Capped(bytes=-1), "bytes"), (lambda: CappedDiagnostics(most=-1), "most"), (lambda: KeepImages(keep=-1), "keep")])
def test_settings_out_of_bounds_are_refused(make: Any, key: str) -> None:
    """The message names the setting."""
    with pytest.raises(ConfigError, match=key):
        make()
