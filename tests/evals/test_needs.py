"""Spans, where texts hold them, and what actions need: extraction, boundaries, weights, sources, distances."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.metrics.base import Trial
from evals.metrics.distance import EvidenceDistance, distances, weighted_quantile
from evals.needs import Need, capped, evidence, use_needs, weight
from evals.spans import TextSpan, error_signature, is_masked, lines_of, wants_of
from evals.spans_calls import deed_of, text_of
from evals.spans_match import holds
from evals.spans_paths import same_path
from evals.spans_shell import command_reads, may_change_files
from replay.blocks import ToolCall
from replay.engine import Session
from replay.policy.base import Capacity
from replay.testing import FixedCounter, Script


def call(name: str, **arguments: object) -> ToolCall:
    """A call with these arguments."""
    return ToolCall(id="x", name=name, arguments=json.dumps(arguments))


def wanted(text: str) -> list[tuple[str, str]]:
    """Kinds and texts of what a text asks for."""
    return [(w.whole.kind, w.whole.text) for w in wants_of(text)]


def session(script: Script, sizes: tuple[int, ...] = (10,) * 64) -> Session:
    """A session of a script, counted by a table."""
    return Session(script.build(), FixedCounter(sizes))


@pytest.mark.parametrize(("text", "expected"), [
    ("src/dates.py", [("path", "src/dates.py")]),
    ("tests/", [("path", "tests/")]),
    ("look at dates.py.", [("identifier", "look"), ("path", "dates.py")]),
    ("https://example.org/a?b=1", [("path", "https://example.org/a?b=1")]),
    ("parse_date of x", [("identifier", "parse_date")]),
    ("port 8080 and 22", [("identifier", "port"), ("number", "8080")]),
    ("commit a3f9c2e", [("identifier", "commit"), ("identifier", "a3f9c2e")]),
    ("version 12.3.4", [("identifier", "version"), ("number", "12.3.4")]),
    ('find "unconverted data remains"', [("identifier", "find"), ("quoted", "unconverted data remains")]),
    ("'parse_date'", [("identifier", "parse_date")]),
    ("'alpha|beta'", [("identifier", "alpha"), ("identifier", "beta")]),
    ("sed 120,180p", [("number", "120")]),
])
def test_what_a_text_asks_for(text: str, expected: list[tuple[str, str]]) -> None:
    """Paths, URLs, names of four characters, numbers of three digits, hashes, phrases; short words are nothing."""
    assert expected == wanted(text)


def test_error_signature_keeps_what_does_not_vary() -> None:
    """The name of an error and its message up to the first number, quote or path."""
    assert "ValueError: unconverted data remains" == error_signature("ValueError: unconverted data remains: 17")
    assert "KeyError" == error_signature("KeyError: 'name'")
    assert [("error", "ValueError: unconverted data remains")] == wanted("ValueError: unconverted data remains: 17")


def test_lines_are_stripped_and_long_enough() -> None:
    """Of an old text the stripped lines of 12 characters or more count, rules and brackets not."""
    assert [TextSpan("line", "return parse(value)")] == lines_of("    return parse(value)\n}\n---------------\nx = 1")


@pytest.mark.parametrize(("kind", "span", "text", "expected"), [
    ("number", "800", "it costs $800 today", True),
    ("number", "800", "it costs $8000", False),
    ("number", "800", "it costs 1,800 today", False),
    ("number", "800", "0.800 of it", False),
    ("number", "800", "800.5 of it", False),
    ("number", "800", "about 800.", True),
    ("number", "800", "800,000", False),
    ("number", "8000", "8000, or more", True),
    ("identifier", "parse", "parse_date", False),
    ("identifier", "parse", "a.parse(x)", True),
    ("identifier", "Parse", "parse", False),
    ("quoted", "data remains", "unconverted data remains: x", True),
    ("quoted", "data remain", "unconverted data remains: x", False),
    ("line", "return parse(value)", "def f():\n    return parse(value)\n", True),
    ("line", "return parse(value)", "   12→    return parse(value)\n", True),
    ("line", "return parse(value)", "src/a.py:12:    return parse(value)", True),
    ("line", "return parse(value)", "-    return parse(value)", True),
    ("line", "return parse(value)", "return parse(value) + 1", False),
    ("line", "return parse(value)", "never return parse(value)", False),
    ("path", "src/dates.py", "see /repo/src/dates.py:12", True),
    ("path", "/repo/src/dates.py", "see src/dates.py", True),
    ("path", "/repo/src/dates.py", "see lib/dates.py", False),
    ("path", "src/dates.py", "see src/dates.pyc", False),
    ("path", "src/dates.py", "see src/update_dates.py", False),
    ("path", "src/dates.py", "see dates.py", True),
    ("path", "dates.py", "see lib/dates.py", True),
    ("path", "tests/", "Never edit tests/.", True),
    ("path", "tests/", "run the tests now", False),
    ("path", "/repo/src", "/repo/src/dates.py", True),
    ("path", "https://a.b/c", "https://a.b/cd", False),
])
def test_spans_are_found_at_boundaries(kind: str, span: str, text: str, expected: bool) -> None:
    """A span is held where it stands by itself: `$800` is not held by `$8000`, nor a path by a longer name."""
    assert expected is holds(TextSpan(kind, span), text)  # type: ignore[arg-type]


def test_a_bare_name_stands_for_a_path_while_it_is_unique() -> None:
    """Once a second file of the same name was seen, the bare name names neither."""
    made = session(Script().user("see src/dates.py").say("dates.py it is").user("also lib/dates.py").say("dates.py?"))
    found = evidence(made).index.locate(TextSpan("path", "src/dates.py"))

    assert [0, 1] == found


def test_same_path_by_its_end() -> None:
    """A relative path and an absolute one are one file where one ends with the other."""
    assert same_path("src/a.py", "/repo/src/a.py")
    assert same_path("./src/a.py", "src/a.py")
    assert not same_path("src/a.py", "src/b/a.py")


@pytest.mark.parametrize(("name", "arguments", "verb", "asked"), [
    ("Read", {"file_path": "src/a.py", "offset": 350, "limit": 100}, "read", ()),
    ("Edit", {"file_path": "src/a.py", "old_string": "old text", "new_string": "brand new"}, "edit", ()),
    ("Write", {"file_path": "src/a.py", "content": "a whole body"}, "write", ()),
    ("Grep", {"pattern": "strptime", "path": "tests/"}, "search", ("strptime",)),
    ("str_replace_editor", {"command": "view", "path": "/a.py", "view_range": [3, 9]}, "read", ()),
    ("str_replace_editor", {"command": "create", "path": "/a.py", "file_text": "body"}, "write", ()),
    ("Task", {"prompt": "look at parse_date", "description": "look"}, "other", ()),
])
def test_what_a_call_did(name: str, arguments: dict[str, object], verb: str, asked: tuple[str, ...]) -> None:
    """Calls are told by their arguments; what they create and their prose is not asked for."""
    made = deed_of(call(name, **arguments))

    assert (verb, asked) == (made.verb, tuple(w.whole.text for w in made.asked))


def test_a_command_asks_for_its_arguments() -> None:
    """Programs, options, here-documents and commit messages are no evidence; paths and names are."""
    command = "git commit -m 'Fix parse_date' && rg --hidden strptime src/a.py <<'EOF'\nnew_name\nEOF"
    made = deed_of(call("Bash", command=command))

    assert [("identifier", "strptime"), ("path", "src/a.py")] == [w.whole for w in made.asked]
    assert ("src/a.py",) == made.paths


def test_a_patch_replaces_hunk_by_hunk() -> None:
    """Context and minus lines of a hunk are its old text; added files are written."""
    patch = ("*** Begin Patch\n*** Update File: src/a.py\n@@ def f\n keep\n-old line\n+new line\n@@\n-second\n+2nd\n"
             "*** Add File: src/b.py\n+body\n*** End Patch")
    made = deed_of(call("exec_command", cmd=["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF"]))

    assert [("keep\nold line", "keep\nnew line"), ("second", "2nd")] == [(e.old, e.new) for e in made.edits]
    assert (("src/b.py", "body"),) == made.writes
    assert ("src/a.py", "src/b.py") == made.paths


@pytest.mark.parametrize(("command", "expected"), [
    ("cat src/a.py", [("src/a.py", None)]),
    ("cd /repo && sed -n '120,180p' src/a.py", [("src/a.py", (120, 181))]),
    ("head -n 20 a.py", [("a.py", (1, 21))]),
    ("nl -ba src/a.py | sed -n '3,9p'", [("src/a.py", None)]),
    ("cat a.py > b.py", []),
    ("pytest -q", []),
])
def test_files_that_a_command_prints(command: str, expected: list[tuple[str, tuple[int, int] | None]]) -> None:
    """Files printed as they are count as read, with the lines."""
    assert expected == [(r.path, r.lines) for r in command_reads(command)]


@pytest.mark.parametrize(("command", "expected"), [
    ("sed -i s/a/b/ f.py", True), ("git checkout main", True), ("echo x > out.txt", True),
    ("ls 2>&1 >/dev/null", False),
    ("rm -rf build", True), ("git status", False), ("pytest -q 2>&1 | tail", False), ("cat a->b", False)])
def test_commands_that_may_change_files(command: str, expected: bool) -> None:
    """Redirections, in-place edits and checkouts change files; looking does not."""
    assert expected is may_change_files(command)


def test_masked_data_weighs_nothing() -> None:
    """A placeholder stands for different things, so it proves nothing; a name that contains the word does."""
    masked = [TextSpan("identifier", "REDACTED"), TextSpan("identifier", "API_KEY_REDACTED"),
              TextSpan("identifier", "XXXXX"), TextSpan("line", "token = [REDACTED]"),
              TextSpan("path", "/home/REDACTED"), TextSpan("path", "/home/me/.REDACTED.jsonl")]
    meant = [TextSpan("identifier", "createRedactedBlob"), TextSpan("path", "/home/REDACTED/src/a.py")]

    assert [True] * 6 + [False] * 2 == [is_masked(s) for s in (*masked, *meant)]


def test_weight_falls_with_frequency() -> None:
    """ln((t+1)/(df+0.5)) − ln 4, never below 0: a span in a quarter of the blocks weighs nothing."""
    assert pytest.approx(math.log(101 / 1.5) - math.log(4)) == weight(1, 100)
    assert 0 == weight(25, 100)
    assert 0 == weight(1, 3)


def test_one_giant_action_is_capped() -> None:
    """An action weighs at most ten times the median one; its parts shrink alike."""
    found = capped([(0, 1.0), (1, 1.0), (2, 30.0), (2, 10.0)])

    assert [1.0, 1.0, 7.5, 2.5] == found


def long_script() -> Script:
    """Enough blocks for weights above 0, then an edit that needs what came before."""
    script = Script().user("Please use marker_user here.")
    script.call("Read", '{"file_path":"src/a.py"}').result("marker_tool = compute_value(1)\nother text")
    script.say("I remember marker_self well.")
    for n in range(20):
        script.user(f"filler{n} text{n}")
    return script


def test_needs_of_an_action() -> None:
    """What occurred earlier is needed, with its source; what the action creates or nobody said before is not."""
    script = long_script()
    script.call("Grep", '{"pattern":"marker_user|marker_tool|marker_self|never_said","path":"src"}').result("ok")
    made = evidence(session(script))
    found = {n.span.text: (made.needs.origins[i], n.tool) for i, n in enumerate(made.needs.rows)}

    assert {"marker_user": ("user", "Grep"), "marker_tool": ("tool", "Grep"), "marker_self": ("assistant", "Grep"),
            "src": ("assistant", "Grep")} == found


def test_created_text_is_not_needed() -> None:
    """New text of an edit and the body of a written file are left out, old lines count."""
    script = long_script()
    edit = {"file_path": "src/a.py", "old_string": "marker_tool = compute_value(1)", "new_string": "marker_self = 2"}
    script.call("Edit", json.dumps(edit)).result("ok")
    script.call("Write", json.dumps({"file_path": "src/b.py", "content": "marker_user"})).result("ok")

    assert ["src/a.py", "marker_tool = compute_value(1)"] == [n.span.text for n in evidence(session(script)).needs.rows]


def test_a_quoted_phrase_falls_back_to_its_words() -> None:
    """A quoted phrase counts as a whole; where it stands nowhere, what it is made of counts."""
    script = long_script()
    script.call("Bash", json.dumps({"command": 'rg "other text" src'})).result("ok")
    script.call("Bash", json.dumps({"command": 'rg "def marker_tool" src'})).result("ok")
    found = [n.span for n in evidence(session(script)).needs.rows if n.span.kind != "path"]

    assert [TextSpan("quoted", "other text"), TextSpan("identifier", "marker_tool")] == found


def test_the_future_is_never_needed() -> None:
    """A span that occurs only after an action is no need of it, and later messages change no earlier need."""
    script = long_script()
    script.call("Grep", '{"pattern":"marker_tool|seen_later"}').result("nothing")
    before = evidence(session(script)).needs.rows
    script.user("seen_later marker_tool").call("Grep", '{"pattern":"marker_user"}').result("seen_later marker_tool")
    after = evidence(session(script)).needs.rows

    assert ["marker_tool"] == [n.span.text for n in before]
    assert [n.span for n in before] == [n.span for n in after if n.step <= before[0].step]
    assert before[0].weight == pytest.approx(after[0].weight)


def test_given_needs_replace_the_extracted_ones() -> None:
    """A study may fix needs and weights; one that stood nowhere before its action is left out."""
    made = session(long_script().call("Bash", '{"command":"true"}').result("ok"))
    step = len(made.log.steps) - 1
    rows = [Need(step=step, span=TextSpan("identifier", name), weight=2.0) for name in ("marker_tool", "never_said")]
    found = use_needs(made, rows)

    assert [("marker_tool", 2.0)] == [(n.span.text, n.weight) for n in found.needs.rows]
    assert found is evidence(made)


def test_results_in_a_json_envelope_are_unwrapped() -> None:
    """Escaped line ends in a JSON result do not hide the lines inside it."""
    script = Script().user("go").call("Read", '{"file_path":"a.py"}')
    script.result(json.dumps({"status": "ok", "text": "     1→first line here\n     2→second line here"}))

    assert [2] == evidence(session(script)).index.locate(TextSpan("line", "second line here"))


def test_weighted_quantiles() -> None:
    """Distances 100, 200, 400 with weights 1, 1, 2: the median is 200, the 0.9-quantile 400."""
    assert 200 == weighted_quantile([100, 200, 400], [1, 1, 2], 0.5)
    assert 400 == weighted_quantile([100, 200, 400], [1, 1, 2], 0.9)


def test_distances_are_measured() -> None:
    """Half-life and safe tails are measurements of the session; without needs they are missing with a reason."""
    script = long_script()
    script.call("Grep", '{"pattern":"marker_tool"}').result("ok")
    made = session(script, (1, 2, 300, *(10,) * 60))
    trial = Trial(session=made, lane=made.recorded, capacity=Capacity(window=9))
    found = {m.name: m for m in EvidenceDistance().measure(trial)}

    assert 210 == found["evidence_half_life_tokens"].value == found["safe_tail_99_tokens"].value
    assert 1 == distances(evidence(made)).steps[0] == found["evidence_half_life_steps"].value
    empty = session(Script().user("hi").say("hello"))
    trial = Trial(session=empty, lane=empty.recorded, capacity=Capacity(window=9))
    assert {None} == {m.value for m in EvidenceDistance().measure(trial)}
    assert all(m.reason for m in EvidenceDistance().measure(trial))


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_searched(text: str) -> None:
    """Whatever an argument holds, its spans are found in the text that they were taken from, or are cut forms of it."""
    for want in wants_of(text):
        for span in (want.whole, *want.parts):
            assert span.text.split(": ")[0] in text
            assert holds(span, text) in (True, False)


KEYS = ("file_path", "path", "command", "cmd", "old_string", "new_string", "edits", "content", "pattern", "offset", "limit",
        "view_range", "todos", "input")
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9999) | st.text(max_size=20),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
                    max_leaves=6)


@given(st.sampled_from(("Read", "Edit", "Bash", "apply_patch", "x")), st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5))
@settings(max_examples=200, deadline=None)
def test_arguments_of_any_shape_make_a_deed(name: str, arguments: dict[str, object]) -> None:
    """Nothing that a harness may have recorded as arguments stops the measurement."""
    script = Script().user("start with src/a.py")
    for _ in range(3):
        script.call(name, json.dumps(arguments)).result(json.dumps(arguments))
    found = evidence(session(script))

    assert 3 == len(found.files.acts)
    assert len(found.needs) == len(found.needs.weights)


def test_deeply_nested_arguments_are_flattened() -> None:
    """Nesting is no limit."""
    nested: object = "bottom_word"
    for _ in range(1000):
        nested = [nested]

    assert "bottom_word" == text_of(nested)
