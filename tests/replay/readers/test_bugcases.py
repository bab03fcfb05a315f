"""Small inputs that break other readers, with the right answers; and traps that have no file of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Reasoning, Text, ToolCall
from replay.detected import describe
from replay.engine import Session
from replay.invariants import pairing
from replay.readers import read, read_bytes
from replay.testing import FixedCounter
from replay.transcript import Transcript
from replay.view import shown_messages

# Requests, uncached input, cache reads, 5-minute and 1-hour writes, output; steps; prompts; peak; notes by code.
ANSWERS: dict[str, tuple[tuple[int, ...], int, int, int, list[str]]] = {
    "01-growing-snapshots": ((1, 12, 9000, 4000, 0, 311), 1, 1, 13_012, []),
    "02-no-request-id": ((2, 4100, 0, 0, 0, 65), 2, 2, 2100, []),
    "03-usage-on-every-block": ((2, 11, 41_500, 1800, 0, 270), 2, 1, 21_806, []),
    "04-codex-fork-child": ((1, 200, 1200, 0, 0, 33), 1, 3, 1400, ["events-only"]),
    "04-codex-fork-parent": ((2, 1300, 900, 0, 0, 120), 2, 2, 1200, ["events-only"]),
    "06-one-hour-cache-write": ((1, 0, 0, 60_000, 40_000, 0), 1, 1, 100_000, []),
    "07-unicode-line-separators": ((1, 30, 0, 0, 0, 8), 1, 1, 30, []),
    "08-byte-order-mark": ((1, 20, 0, 0, 0, 4), 1, 1, 20, ["byte-order-mark"]),
    "10-unknown-record-type": ((1, 40, 0, 0, 0, 9), 1, 1, 40, ["unknown-type"]),
    "11-compact-summary-row": ((2, 22, 157_000, 900, 0, 100), 2, 2, 150_010, []),
    "12-tool-result-list": ((2, 70, 0, 0, 0, 25), 2, 1, 60, []),
    "14-pi-abandoned-branch": ((3, 1150, 0, 0, 0, 60), 2, 2, 150, []),
    "17-cut-last-record": ((1, 15, 0, 0, 0, 3), 1, 1, 15, ["cut-tail"]),
    "18-record-written-four-times": ((2, 27, 0, 0, 0, 4), 2, 2, 16, ["duplicate"]),
    "20-spaces-after-colons": ((1, 17, 900, 0, 0, 3), 1, 1, 917, [])}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_right_answers(bugcases: Path, name: str) -> None:
    """Usage as billed, calls, prompts of the person, the largest request, and nothing noted that is not so."""
    (found,) = read(bugcases / f"{name}.jsonl")
    told = describe(found)

    assert ANSWERS[name] == (tuple(told["usage"].values()), told["steps"], told["human_prompts"], told["peak_input_tokens"],
                             [n["code"] for n in told["notes"]])


def test_every_case_has_an_answer(bugcases: Path) -> None:
    """No file is left out of the table."""
    assert sorted(ANSWERS) == sorted(p.stem for p in bugcases.glob("*.jsonl"))


def one(bugcases: Path, name: str) -> Transcript:
    """The session of a case."""
    return read(bugcases / f"{name}.jsonl")[0]


def shown(found: Transcript, step: int) -> list[str]:
    """The texts of a recorded view."""
    session = Session(found, FixedCounter((10,) * len(found.messages)))
    return [s.message.text for s in shown_messages(session.log, session.recorded.views[step].window)]


def test_what_the_numbers_do_not_tell(bugcases: Path) -> None:
    """Blocks of a split response, raw separators, the recap's place, both texts of a list, the active branch."""
    split = one(bugcases, "01-growing-snapshots").messages[1]
    prompt = one(bugcases, "07-unicode-line-separators").messages[0].text
    recap = one(bugcases, "11-compact-summary-row")
    result = next(m.text for m in one(bugcases, "12-tool-result-list").messages if m.results)
    branch = one(bugcases, "14-pi-abandoned-branch")
    child = one(bugcases, "04-codex-fork-child")

    assert [Reasoning, Text, ToolCall] == [type(b) for b in split.blocks]
    assert all(part in prompt for part in ("\u2028", "\u2029", "\x85", "first", "second", "third"))
    assert (150_070, "auto", True) == (recap.compactions[0].counter_before, recap.compactions[0].trigger,
                                       recap.compactions[0].summary_readable)
    assert 2 == len(shown(recap, 1))
    assert "changelog" in shown(recap, 1)[1]
    assert all(word in result for word in ("8471", "conf/serve.toml"))
    assert (["e1", "e2", "e5", "e6"], 1) == ([m.id for m in branch.messages], len(branch.abandoned))
    assert 3 == len(shown(branch, 1))
    assert ("thread-child", "thread-parent") == (child.session_id, child.parent_session)


def claude(*rows: dict[str, Any]) -> bytes:
    """Claude Code rows in a chain."""
    lines, parent = [], None
    for number, row in enumerate(rows):
        kind = "assistant" if row["role"] == "assistant" else "user"
        lines.append({"type": kind, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s",
                      "timestamp": row.pop("at", f"2026-01-01T00:00:{number:02}Z"), "message": {"id": f"m{number}", **row}})
        parent = f"u{number}"
    return "\n".join(map(json.dumps, lines)).encode()


def pi(*rows: dict[str, Any]) -> bytes:
    """Pi entries in a chain."""
    lines: list[dict[str, Any]] = [{"type": "session", "id": "s", "version": 3, "timestamp": "2026-01-01T00:00:00Z"}]
    for number, row in enumerate(rows):
        lines.append({"type": "message", "id": f"e{number}", "parentId": f"e{number - 1}" if number else None,
                      "timestamp": row.pop("at", f"2026-01-01T00:00:{number:02}Z"), "message": row})
    return "\n".join(map(json.dumps, lines)).encode()


def codex(*rows: dict[str, Any]) -> bytes:
    """Codex response items."""
    lines: list[dict[str, Any]] = [{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}}]
    lines += [{"timestamp": row.pop("at", f"2026-01-01T00:00:{n:02}Z"), "type": "response_item", "payload": row}
              for n, row in enumerate(rows)]
    return "\n".join(map(json.dumps, lines)).encode()


def chat(*rows: dict[str, Any]) -> bytes:
    """Chat messages, one a line."""
    return "\n".join(json.dumps({k: v for k, v in row.items() if k != "at"}) for row in rows).encode()


Row = dict[str, Any]
MAKERS: dict[str, tuple[Callable[..., bytes], Callable[[str], Row], Callable[..., Row], Callable[[str, str], Row]]] = {
    "claude-code": (claude, lambda text: {"role": "user", "content": text},
                    lambda call: {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "n", "input": {}}]},
                    lambda call, text: {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": call, "content": text}]}),
    "pi": (pi, lambda text: {"role": "user", "content": text},
           lambda call: {"role": "assistant", "content": [{"type": "toolCall", "id": call, "name": "n", "arguments": {}}]},
           lambda call, text: {"role": "toolResult", "toolCallId": call, "toolName": "n", "content": [
               {"type": "text", "text": text}]}),
    "codex": (codex, lambda text: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
              lambda call: {"type": "function_call", "name": "n", "arguments": "{}", "call_id": call},
              lambda call, text: {"type": "function_call_output", "call_id": call, "output": text}),
    "openai-chat": (chat, lambda text: {"role": "user", "content": text},
                    lambda call: {"role": "assistant", "content": None, "tool_calls": [
                        {"id": call, "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
                    lambda call, text: {"role": "tool", "tool_call_id": call, "content": text})}


def session(format: str, *moves: tuple[str, ...], at: str | None = None) -> Transcript:
    """A session of moves: `say text`, `call id`, `result id text`."""
    make, say, call, result = MAKERS[format]
    rows = [{"say": say, "call": call, "result": result}[verb](*words) for verb, *words in moves]
    for number, row in enumerate(rows if at else ()):
        row["at"] = f"2026-01-01T00:{59 - number:02}:00Z"
    (found,) = read_bytes(make(*rows), "s.jsonl", format)
    return found


@pytest.mark.parametrize("format", MAKERS)
def test_a_call_whose_result_never_comes(format: str) -> None:
    """The call stays, nothing is invented for it, and what follows is read."""
    found = session(format, ("say", "go"), ("call", "c1"), ("say", "and then?"), ("call", "c2"), ("result", "c2", "out"))

    assert ["c1", "c2"] == [c.id for m in found.messages for c in m.calls]
    assert ["c2"] == [r.call_id for m in found.messages for r in m.results]


@pytest.mark.parametrize("format", MAKERS)
def test_the_same_id_used_again(format: str) -> None:
    """Two calls of one native id keep their own results."""
    found = session(format, ("say", "go"), ("call", "c1"), ("result", "c1", "one"), ("say", "again"), ("call", "c1"),
                    ("result", "c1", "two"))
    calls = [c.id for m in found.messages for c in m.calls]

    assert (2, 2) == (len(calls), len(set(calls)))
    assert list(zip(calls, ["one", "two"], strict=True)) == [(r.call_id, r.text) for m in found.messages for r in m.results]
    assert [] == pairing(found.messages)


@pytest.mark.parametrize("format", MAKERS)
def test_times_that_go_backwards(format: str) -> None:
    """The order of the file is the order of the log."""
    moves = [("say", "one"), ("call", "c1"), ("result", "c1", "out"), ("say", "two"), ("call", "c2"), ("result", "c2", "end")]
    forwards, backwards = session(format, *moves), session(format, *moves, at="backwards")

    assert [m.text for m in forwards.messages] == [m.text for m in backwards.messages]
    assert [] == pairing(backwards.messages)


@pytest.mark.parametrize("format", MAKERS)
def test_results_in_another_order_than_their_calls(format: str) -> None:
    """Each result goes to the call that it names, not to the oldest that waits."""
    found = session(format, ("say", "go"), ("call", "c1"), ("call", "c2"), ("result", "c2", "two"), ("result", "c1", "one"))

    assert {("c1", "one"), ("c2", "two")} == {(r.call_id, r.text) for m in found.messages for r in m.results}


@pytest.mark.parametrize("format", ["claude-code", "codex", "openai-chat"])
def test_a_result_that_comes_before_its_call(format: str) -> None:
    """It is kept, with the id of its call."""
    found = session(format, ("say", "go"), ("result", "c1", "early"), ("call", "c1"), ("say", "next"))

    assert ["early"] == [r.text for m in found.messages for r in m.results]
    assert 1 == sum(len(m.calls) for m in found.messages)


@pytest.mark.parametrize("format", MAKERS)
def test_empty_content_is_a_message(format: str) -> None:
    """An empty prompt and an empty result are there; they only hold nothing."""
    found = session(format, ("say", ""), ("call", "c1"), ("result", "c1", ""), ("say", "next"))

    assert [""] == [r.text for m in found.messages for r in m.results]
    assert ["", "next"] == [m.text for m in found.messages if m.origin == "human"]


def test_two_roots_in_a_pi_file() -> None:
    """Of two beginnings the one with the last entry is active, the other was billed."""
    def entry(name: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        usage = {"usage": {"input": 100, "output": 5, "cacheRead": 0, "cacheWrite": 0}} if role == "assistant" else {}
        return {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z",
                "message": {"role": role, "content": [{"type": "text", "text": text}], **usage}}
    rows = [{"type": "session", "id": "s", "version": 3}, entry("a1", None, "user", "one"), entry("a2", "a1", "assistant", "1"),
            entry("b1", None, "user", "two"), entry("b2", "b1", "assistant", "2")]
    (found,) = read_bytes("\n".join(map(json.dumps, rows)).encode())

    assert ["two", "2"] == [m.text for m in found.messages]
    assert (200, 2) == (found.usage.input_uncached, describe(found)["usage"]["requests"])
