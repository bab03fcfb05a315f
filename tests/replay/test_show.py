"""`rewindow show` through the command line: steps, exact views, labelled differences, errors, hostile text."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Text, ToolResult
from replay.cli import main
from replay.policy.base import Moment
from replay.transcript import Message
from replay.window import Inserted, Item, Span

LONG = "line one\nline two\n" + "x" * 300
CALL = {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": '{"path": "a.py"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a coder."}, {"role": "user", "content": "Fix a.py"},
    {"role": "assistant", "content": "Reading.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": LONG}, {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "And b.py"}, {"role": "assistant", "content": "Done too."}]


@dataclass(frozen=True, kw_only=True)
class Head:
    """A rendering of a user's own: of every result the first characters and a mark."""

    chars: int = 20

    def render(self, message: Message) -> Message:
        """The message with its results cut; the same object where none is longer."""
        if not any(len(r.text) > self.chars for r in message.results):
            return message
        return replace(message, blocks=tuple(replace(b, text=b.text[:self.chars] + "[…]") if isinstance(b, ToolResult)
                                             else b for b in message.blocks))


@dataclass(frozen=True, kw_only=True)
class LastFirst:
    """A replacement of a user's own: the last kept message comes first."""

    def message(self, summary: str) -> Message:
        """A plain summary."""
        return Message(index=-1, role="user", blocks=(Text(text=summary),), origin="summary")

    def place(self, summary: Inserted, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """The last message, the others, then the summary."""
        spans = [item for item in (*kept, *tail) if isinstance(item, Span)]
        singles = [Span(i, i + 1) for span in spans for i in range(span.start, span.stop)]
        return (singles[-1], *singles[:-1], summary)


POLICIES = {
    "mask": 'tool_results = {use = "keep-newest", keep = 0, placeholder = {text = "[gone]"}}',
    "head": 'tool_results = {use = "keep-newest", keep = 0, placeholder = {use = "own_parts:Head"}}',
    "fold": 'cut = {use = "messages", messages = 2}\nreplacement = {use = "summary-message", frame = "So far: "}',
    "shuffle": 'cut = {use = "messages", messages = 3}\nreplacement = {use = "own_parts:LastFirst"}'
               '\ntrigger = {use = "message-count", more_than = 5}',
}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal wide enough that no line is folded."""
    monkeypatch.setenv("COLUMNS", "240")


@pytest.fixture
def session(tmp_path: Path) -> str:
    """A session of seven messages and three steps."""
    return written(tmp_path, MESSAGES)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Policy files by name, with the parts of this module's own on the import path."""
    (tmp_path / "own_parts.py").write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name, stage in POLICIES.items():
        (tmp_path / f"{name}.toml").write_text(f'[[stages]]\nname = "only"\n{stage}\n', encoding="utf-8")
    return {name: str(tmp_path / f"{name}.toml") for name in POLICIES}


def written(folder: Path, messages: list[dict[str, Any]], name: str = "session.json") -> str:
    """A file in OpenAI's chat shape."""
    path = folder / name
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return str(path)


def run(*arguments: str) -> int:
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as caught:
        main(["show", *arguments])
    code = caught.value.code
    assert isinstance(code, int)
    return code


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON document of a call that succeeds."""
    assert 0 == run(*arguments, "--json")
    captured = capsys.readouterr()
    assert "" == captured.err
    return json.loads(captured.out)


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and the last line of the message of a call that fails; nothing is on stdout."""
    code = run(*arguments)
    captured = capsys.readouterr()
    assert "" == captured.out
    assert "Traceback" not in captured.err
    return code, captured.err.strip().splitlines()[-1]


# Steps.

def test_steps_as_a_table(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a step every step is a row with its messages, tokens and projection."""
    assert 0 == run(session)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]

    assert [["1", "sent", "2"], ["2", "sent", "4"], ["3", "sent", "6"]] == [row[:3] for row in rows]
    assert {"full_history"} == {row[-1] for row in rows}


def test_steps_as_json(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the steps are one document."""
    document = shown(capsys, session)

    assert ("recorded", 3, [1, 2, 3]) == (document["lane"], document["steps"], [v["step"] for v in document["views"]])
    assert [2, 4, 6] == [v["messages"] for v in document["views"]]


def test_end_of_a_run_is_told(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A window that the second request exceeds ends the run there, and the table says so."""
    assert 0 == run(session, "-p", "full-history", "--window", "30")
    out = capsys.readouterr().out

    assert "The run ends at step 2" in out
    assert "refused: prompt_too_long; end: no_reactive_rule" in out


# One view.

def test_keys_of_a_step(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The document of a step has every promised key."""
    document = shown(capsys, session, "--step", "3")

    assert {"session_id", "step", "steps", "policy", "lane", "tokens", "fingerprint", "projection_mode", "messages",
            "lineage", "events"} <= set(document)
    assert {"view", "overhead", "window", "by_class"} <= set(document["tokens"])
    assert {"kept", "elided", "summarised", "dropped", "injected"} == set(document["lineage"])
    assert (3, 3, "recorded", "full_history") == (
        document["step"], document["steps"], document["lane"], document["projection_mode"])
    assert list(range(6)) == document["lineage"]["kept"]
    assert 64 == len(document["fingerprint"])


def test_tokens_by_class_add_up(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The classes together are the counted tokens of the view."""
    tokens = shown(capsys, session, "--step", "3")["tokens"]

    assert {"system", "user", "assistant", "tool", "summary", "injected"} == set(tokens["by_class"])
    assert tokens["counted"] == sum(tokens["by_class"].values())
    assert all(tokens["by_class"][name] > 0 for name in ("system", "user", "assistant", "tool"))


def test_view_in_openai_shape_is_what_was_sent(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A chat file's view in OpenAI's shape is its own messages."""
    assert MESSAGES[:6] == shown(capsys, session, "--step", "3", "--as", "openai")["messages"]


def test_view_in_anthropic_shape(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls and results are blocks, a result comes from the user, neighbours of one role are one message."""
    messages = shown(capsys, session, "--step", "3", "--as", "anthropic")["messages"]

    assert ["system", "user", "assistant", "user", "assistant", "user"] == [m["role"] for m in messages]
    assert {"type": "tool_use", "id": "call_1", "name": "Read", "input": {"path": "a.py"}} == messages[2]["content"][1]
    assert {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": LONG}],
            "is_error": False} == messages[3]["content"][0]


def test_view_as_text(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As text each message has its log index, role, form and class; calls are written out."""
    messages = shown(capsys, session, "--step", "2")["messages"]

    assert [(0, "system"), (1, "user"), (2, "assistant"), (3, "tool")] == [(m["index"], m["role"]) for m in messages]
    assert 'Reading.\n→ Read({"path": "a.py"})' == messages[2]["text"]
    assert {"verbatim"} == {m["form"] for m in messages}


def test_view_on_the_terminal(session: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """The exact view is printed message by message, with the events that led to it."""
    assert 0 == run(session, "--step", "2", "-p", files["mask"])
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].startswith("step 2 of 3 under mask (alternative), sent: ")
    assert lines[1].startswith("  micro: always, ")
    assert "── 3 tool (elided)" in lines
    assert "[gone]" in lines


def test_lineage_of_a_fold(session: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """What left the view is summarised, the system message stays, the summary's place in the view is given."""
    document = shown(capsys, session, "--step", "3", "-p", files["fold"], "--as", "openai")

    fates = {"kept": [0, 4, 5], "elided": [], "summarised": [1, 2, 3], "dropped": [], "injected": [1]}

    assert fates == document["lineage"]
    assert document["messages"][1]["content"].startswith("So far: ## Goal\n- Fix a.py")
    assert ("compact_checkpoint", "alternative") == (document["projection_mode"], document["lane"])
    assert {"kind", "reason", "estimated_tokens", "threshold"} <= set(document["events"][0])


def test_policy_is_told_as_a_spec(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The document names the policy with what was overridden."""
    made = shown(capsys, session, "--step", "1", "-p", "decode:tail_tokens=8000")["policy"]

    assert "decode:tail_tokens=8000" == made["name"]
    assert 8_000 == made["stages"][0]["cut"]["tail_tokens"]


# Differences.

def labelled(capsys: pytest.CaptureFixture[str], session: str, policy: str, against: str) -> list[tuple[str, Any]]:
    """Labels and log indices of the differences at the last step."""
    found = shown(capsys, session, "--step", "3", "-p", policy, "--against", against)["against"]
    assert found["same"] == (not found["differences"])
    return [(d["label"], d["message"]) for d in found["differences"]]


def test_same_view_has_no_difference(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The full history of a session that was never compacted is what was recorded."""
    assert [] == labelled(capsys, session, "full-history", "recorded")
    assert 0 == run(session, "--step", "3", "-p", "full-history", "--against", "recorded")
    assert "The same view as under recorded." in capsys.readouterr().out


@pytest.mark.parametrize(("policy", "against", "expected"), [
    ("fold", "full-history", [("missing", 1), ("missing", 2), ("missing", 3), ("added", None)]),
    ("full-history", "fold", [("added", 1), ("added", 2), ("added", 3), ("missing", None)]),
    ("mask", "full-history", [("changed", 3)]),
    ("head", "full-history", [("truncated", 3)]),
    ("shuffle", "fold", [("moved", 5), ("changed", None)]),
])
def test_every_label(session: str, files: dict[str, str], capsys: pytest.CaptureFixture[str], policy: str, against: str,
                     expected: list[tuple[str, Any]]) -> None:
    """Missing, added, changed, truncated and moved are told apart, seen from the first policy."""
    if policy == "shuffle":
        against = files["fold"] + ":messages=3,more_than=5"
        with Path(files["fold"]).open("a", encoding="utf-8") as file:
            file.write('trigger = {use = "message-count", more_than = 1}\n')

    assert expected == labelled(capsys, session, files.get(policy, policy), files.get(against, against))


def test_difference_holds_both_texts(session: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A changed message is given as both views have it."""
    found = shown(capsys, session, "--step", "2", "-p", files["mask"], "--against", "full-history")["against"]

    expected = {"label": "changed", "message": 3, "role": "tool", "text": "[gone]", "against": LONG}

    assert [expected] == found["differences"]
    assert "full-history" == found["policy"]


def test_differences_on_the_terminal(session: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each difference is a line with its label and place."""
    assert 0 == run(session, "--step", "3", "-p", files["fold"], "--against", "full-history")
    out = capsys.readouterr().out

    assert "  missing  1 user: Fix a.py" in out
    assert "    added  – user: So far: ## Goal" in out


# Errors.

def test_step_out_of_range(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A step behind the last one is a wrong call that names how many there are."""
    told = "rewindow: --step: the session has 3 steps; there is no step 4"

    assert (2, told) == failed(capsys, session, "--step", "4")
    assert 2 == failed(capsys, session, "--step", "0")[0]


def test_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that does not exist, or is of no known format, is unreadable input."""
    (tmp_path / "notes.json").write_text('{"shopping": ["milk"]}')

    assert 3 == failed(capsys, str(tmp_path / "absent.jsonl"))[0]
    code, line = failed(capsys, str(tmp_path / "notes.json"))
    assert 3 == code
    assert "no known transcript format" in line


@pytest.mark.parametrize(("arguments", "words"), [
    (("-p", "decod"), "did you mean decode"), (("--against", "decod", "--step", "1"), "did you mean decode"),
    (("-p", "decode:tail_tokns=1"), "did you mean tail_tokens"),
    (("--tokenizer", "o200k"), "no tokenizer called 'o200k'"),
    (("-p", "decode", "--summariser", "emty"), "did you mean empty"), (("--index", "1"), "holds 1 sessions"),
    (("--as", "xml"), "xml"), (("--window", "0"), "0")])
def test_wrong_calls(session: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    """A name that does not exist, and a value that cannot be meant, exit 2 with one line."""
    code, line = failed(capsys, session, *arguments)

    assert 2 == code
    assert words in line


# Hostile text.

HOSTILE = "red \x1b[31mtext\x1b[0m, bell \x07, turned \u202etxt\u202c, \u2066isolated\u2069, [bold]markup[/bold]"
ESCAPED = "red \\x1b[31mtext\\x1b[0m, bell \\x07, turned \\u202etxt\\u202c, \\u2066isolated\\u2069, [bold]markup[/bold]"


def test_control_characters_never_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, direction marks and markup in a transcript are printed as text."""
    path = written(tmp_path, [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": "ok"}])
    assert 0 == run(path, "--step", "1")
    out = capsys.readouterr().out

    assert ESCAPED in out
    assert not set("\x1b\x07\u202e\u202c\u2066\u2069") & set(out)


def test_differences_are_made_harmless_too(tmp_path: Path, files: dict[str, str],
                                           capsys: pytest.CaptureFixture[str]) -> None:
    """A hostile message that one view lacks is printed as text."""
    path = written(tmp_path, [{"role": "user", "content": HOSTILE}, *MESSAGES[2:]])
    assert 0 == run(path, "--step", "3", "-p", files["fold"], "--against", "full-history")
    out = capsys.readouterr().out

    assert "red \\x1b[31mtext" in out
    assert not set("\x1b\x07\u202e\u202c\u2066\u2069") & set(out)


def test_json_keeps_hostile_text_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON escapes what must be escaped and loses nothing, half a surrogate pair included."""
    path = written(tmp_path, [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": "ok"}])

    assert HOSTILE == shown(capsys, path, "--step", "1", "--as", "openai")["messages"][0]["content"]
