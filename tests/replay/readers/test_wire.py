"""Captures as sessions: log, steps, refusals, compactions and what each request showed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.engine import Session
from replay.errors import ReadError
from replay.find import find
from replay.readers import read, read_bytes
from replay.readers.wire import read_capture
from replay.readers.wire_sent import Sent
from replay.testing import FixedCounter
from replay.transcript import Transcript
from replay.view import shown_messages

PROMPT = "Turn 1: look at the files."
SUMMARY = "STUB SUMMARY NUMBER 1. Facts kept by the stub for this summary, and more of them."


def user(text: str) -> dict[str, Any]:
    """A user message of the chat protocol."""
    return {"role": "user", "content": text}


def called(number: int) -> dict[str, Any]:
    """A response with one call as the harness sends it back."""
    function = {"name": "read", "arguments": f'{{"path":"f{number}"}}'}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": f"Step {number}: reading.", "tool_calls": [call]}


def result(number: int, text: str = "content") -> dict[str, Any]:
    """The result of a response's call."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def answer(number: int) -> dict[str, Any]:
    """What the endpoint answered at a scripted step."""
    return {"status": 200, "error": None, "text": f"Step {number}: reading.",
            "usage": {"prompt": 100 * number, "completion": 5},
            "tool_calls": [{"id": f"call_{number}", "name": "read", "arguments": {"path": f"f{number}"}}]}


REFUSAL = {"status": 400, "error": "context length", "text": None, "tool_calls": None, "usage": None}
SYSTEM = {"role": "system", "content": {"replaced": "system prompt", "chars": 20, "sha256": "ab" * 32}}


Asked = tuple[str, list[dict[str, Any]], dict[str, Any]]


def capture(folder: Path, *requests: Asked, ends: tuple[int, ...] = ()) -> Path:
    """A capture folder of requests (kind, items, response); `ends`: requests so far at the end of each process."""
    table: list[dict[str, Any]] = []
    rows = []
    for index, (kind, items, response) in enumerate(requests, 1):
        for item in items:
            if item not in table:
                table.append(item)
        rows.append({"index": index, "kind": kind, "endpoint": "/v1/chat/completions", "request_bytes": 400,
                     "items": [table.index(i) for i in items], "params": {"model": "m"}, "response": response})
    config = {"harness": "pi", "version": "1.6.0", "scenario": "made", "window": 1_000, "kinds": "",
              "prompts": [PROMPT], "commands": [{"requests_so_far": n} for n in (*ends, len(rows))]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "requests.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "items.jsonl").write_text("".join(json.dumps({"id": i, "item": v}) + "\n" for i, v in enumerate(table)))
    return folder


def sent(transcript: Transcript, number: int) -> Sent:
    """A request of a capture."""
    found: Sent = transcript.extra["requests"][number - 1]
    return found


def test_log_holds_each_message_once_in_order(tmp_path: Path) -> None:
    """Prompt, responses and results stand in the log as they first appear, system prompts in front do not."""
    start = [SYSTEM, user(PROMPT)]
    later = [*start, called(1), result(1)]
    found = read_capture(capture(tmp_path, ("step", start, answer(1)), ("step", later, answer(2))))

    assert ["human", "model", "tool", "model"] == [m.origin for m in found.messages]
    assert [(1, 1, 100), (3, 3, 200)] == [(s.start, s.response, s.usage.input_total) for s in found.steps if s.usage]
    assert [("layer", None), ("log", 0), ("log", 1), ("log", 2)] == [(p.kind, p.index) for p in sent(found, 2).parts]
    assert "read" == found.messages[2].results[0].name


def test_refused_request_that_goes_through_later_is_no_step(tmp_path: Path) -> None:
    """A refusal is counted at the step that succeeded in the end."""
    start = [user(PROMPT)]
    found = read_capture(capture(tmp_path, ("step", start, REFUSAL), ("step", start, answer(1))))

    assert 1 == len(found.steps)
    assert {1: 1} == found.extra["refusals"]
    assert [(1, False), (1, True)] == [(s.step, s.accepted) for s in found.extra["requests"]]


def test_refusal_that_nothing_follows_ends_the_run(tmp_path: Path) -> None:
    """The last refused request is a step without a response."""
    found = read_capture(capture(tmp_path, ("step", [user(PROMPT)], answer(1)),
                                 ("step", [user(PROMPT), called(1), result(1)], REFUSAL)))

    assert [None, "rejected: context length"] == [s.error for s in found.steps]


def test_summary_request_is_a_thread_aside_and_the_view_a_compaction(tmp_path: Path) -> None:
    """What the summariser cost is counted; the new view is recorded as it stood."""
    start = [user(PROMPT)]
    wrapped = user(f"Before: {SUMMARY}")
    found = read_capture(capture(
        tmp_path, ("step", start, answer(1)),
        ("summary", [user("Summarise. Step 1: reading.")], answer(1) | {"text": SUMMARY, "tool_calls": []}),
        ("step", [wrapped, called(1), result(1)], answer(2))))

    assert ["summary-2"] == [t.id for t in found.abandoned]
    assert frozenset({1}) == sent(found, 2).named
    (compaction,) = found.compactions
    assert (3, SUMMARY) == (compaction.position, compaction.summary)
    assert ["Before: " + SUMMARY, 1, 2] == [p if isinstance(p, int) else p.text for p in compaction.window]


def test_other_text_of_a_known_result_is_a_changed_message(tmp_path: Path) -> None:
    """A result that is sent in another form is tied to its log message by the call's id."""
    start = [user(PROMPT)]
    found = read_capture(capture(
        tmp_path, ("step", start, answer(1)), ("step", [*start, called(1), result(1)], answer(2)),
        ("step", [*start, called(1), result(1, "[cleared]"), called(2), result(2)], answer(3))))

    assert ("changed", 2, "[cleared]") == [(p.kind, p.index, p.text) for p in sent(found, 3).parts][2]
    assert "content" == found.messages[2].text


def test_messages_that_a_new_process_did_not_load_are_gone(tmp_path: Path) -> None:
    """They leave the view of the recorded lane without a compaction."""
    start = [user(PROMPT)]
    found = read_capture(capture(
        tmp_path, ("step", start, answer(1)), ("step", [*start, called(1), result(1)], answer(2)),
        ("step", [*start, called(1), result(1), user("and now?")], answer(3)), ends=(2,)))
    lane = Session(found, FixedCounter(())).recorded

    assert (3,) == found.extra["resumed"]
    assert [("clear", (3,))] == [(c.kind, c.elided) for c in found.compactions]
    assert [0, 1, 2, 4] == list(lane.views[-1].window.indices())


def test_results_that_a_stored_compaction_holds_are_named(tmp_path: Path) -> None:
    """The harness's own file tells which pending result it stored with a compaction; others are not named."""
    later = [user(PROMPT), called(1), result(1)]
    folder = capture(tmp_path, ("step", [user(PROMPT)], answer(1)), ("step", later, answer(2)),
                     ("step", [*later, called(2), result(2)], answer(3)))
    kept = {"parts": [{"functionResponse": {"id": "call_2"}}]}
    rows = [{"subtype": "chat_compression", "systemPayload": {"compressedHistory": [{"parts": [{"text": "sum"}]}, kept]}},
            {"subtype": "ui_telemetry"}, {"subtype": "chat_compression", "systemPayload": None}]
    (folder / "session.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))

    assert (4,) == read_capture(folder).extra["stored"]


def test_folder_requests_and_config_are_the_same_session(tmp_path: Path) -> None:
    """Each way of naming a capture gives its one session; the other files belong to it."""
    folder = capture(tmp_path, ("step", [user(PROMPT)], answer(1)))
    ids = [read(folder / name)[0].session_id for name in ("requests.jsonl", "config.json")]

    assert ["pi-1.6.0/made"] * 2 == ids
    assert ["requests.jsonl"] == [f.path.name for f in find([str(folder)])]


def test_requests_without_their_folder_are_refused(tmp_path: Path) -> None:
    """Piped requests have no item table."""
    data = (capture(tmp_path, ("step", [user(PROMPT)], answer(1))) / "requests.jsonl").read_bytes()

    with pytest.raises(ReadError, match=r"items\.jsonl"):
        read_bytes(data)


def test_damaged_lines_cost_no_other_line(tmp_path: Path) -> None:
    """A cut request and an item of a wrong type are noted or skipped."""
    folder = capture(tmp_path, ("step", [user(PROMPT)], answer(1)))
    with (folder / "requests.jsonl").open("a") as file:
        file.write('[1]\n{"index": 2, "kind": "step", "items": [0, "x", 99], "response": 7}\n{"index": 3, "ki')
    with (folder / "items.jsonl").open("a") as file:
        file.write('{"id": "x"}\n"text"\n')
    found = read_capture(folder)

    assert 2 == len(found.steps)
    assert ["cut-tail"] == [n.code for n in found.notes]


def test_result_that_no_request_shows_is_taken_from_the_harness(tmp_path: Path) -> None:
    """What was compacted away before it was sent stands in the log, as the harness itself kept it."""
    second = [user(PROMPT), called(1), result(1)]
    folder = capture(tmp_path, ("step", [user(PROMPT)], answer(1)), ("step", second, answer(2)),
                     ("step", [user(PROMPT), user("work is gone")], answer(3)))
    kept = {"type": "tool_result", "tool_use_id": "call_2", "content": [{"query": "f2", "result": "body"}]}
    (folder / "session.3.messages.json").write_text(json.dumps({"messages": [{"role": "user", "content": [kept]}]}))
    found = read_capture(folder)

    assert ["", '[{"query":"f2","result":"body"}]'] == [found.messages[3].text[21:], found.messages[4].text]
    assert "call_2" == found.messages[4].results[0].call_id
    assert [0] == [p.index for p in sent(found, 3).parts if p.kind == "log"]


def test_every_capture_is_told_exactly(shared: Path) -> None:
    """The recorded lane of each real capture shows, message by message, what was sent."""
    for folder in sorted((shared / "wire").glob("*/*/")):
        found = read_capture(folder)
        session = Session(found, FixedCounter(()))
        accepted = {s.step: s for s in found.extra["requests"] if s.kind == "step" and s.accepted}
        for view in session.recorded.views:
            if view.step in accepted:
                theirs = [(p.role, p.text) for p in accepted[view.step].history]
                ours = [(s.message.role, s.message.text) for s in shown_messages(session.log, view.window)]
                assert theirs == ours, folder
