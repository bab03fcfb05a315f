"""Our `mycodeagent` preset against what the real harness sent, request by request."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.engine import Lane, Session, View, divergence
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.readers import read
from replay.readers.common import ThreadBuilder
from replay.testing import FixedCounter
from replay.transcript import Message, RecordedCompaction, Transcript, Usage
from replay.window import Inserted

SUMMARY = "## Archived History Summary\n"
MEMORY = "## Session Memory\n"
UNLIMITED = 10_000_000
IDS = re.compile(r"(?<=evt-|act_)[0-9a-f]{1,32}")


@dataclass
class Capture:
    """One run of the harness, with its requests turned into a log with steps and recorded compactions."""

    requests: list[dict[str, Any]]
    items: dict[int, dict[str, Any]]
    window: int
    rounds: int
    refusal_limit: int
    thread: ThreadBuilder = field(default_factory=lambda: ThreadBuilder(id="main"))
    places: dict[int, int] = field(default_factory=dict)
    """Item id to log index."""
    sent: list[list[int | tuple[str, str]]] = field(default_factory=list)
    """For each step the history part of its view: log indices, and the role and text of a summary."""
    summarised: bool = False
    """A summary was asked for since the last step's request."""

    def build(self) -> Transcript:
        """The run as a transcript."""
        for request in self.requests:
            self.summarised |= request["kind"] == "summary"
            if request["kind"] == "step":
                self._step(request)
        return Transcript(format="mycodeagent", session_id="capture", path="<capture>", main=self.thread.build())

    def _step(self, request: dict[str, Any]) -> None:
        history = [i for i in request["items"] if not _is_layer(self.items[i])]
        view = [self._place(i) for i in history]
        response = request["response"]
        if response["status"] != 200:
            if not self.thread.steps or self.thread.steps[-1].error is None:
                self.thread.fail("rejected")
                self.sent.append(view)
            return
        if self.thread.steps and self.thread.steps[-1].error:
            self.thread.steps.pop()
            self.sent.pop()
        self._compacted(view)
        self.sent.append(view)
        usage = Usage(input_uncached=response["usage"]["prompt"], output=response["usage"]["completion"])
        calls = [ToolCall(id=c["id"], name=c["name"], arguments=json.dumps(c["arguments"]), is_object=False)
                 for c in response["tool_calls"]]
        self.thread.respond([Text(text=response["text"]), *calls], usage)

    def _place(self, item: int) -> int | tuple[str, str]:
        native = self.items[item]
        if native["role"] == "system":
            return native["role"], native["content"]
        if item not in self.places:
            self.places[item] = self._known_response(native) or self._appended(native)
        return self.places[item]

    def _known_response(self, native: dict[str, Any]) -> int | None:
        """A response was put into the log when it came; later requests hold it as an item."""
        last = next((m for m in reversed(self.thread.messages) if m.role == "assistant"), None)
        return last.index if last and native["role"] == "assistant" and last.text == native["content"] else None

    def _appended(self, native: dict[str, Any]) -> int:
        if native["role"] == "user":
            return self.thread.add("user", [Text(text=native["content"])], "human").index
        if native["role"] == "assistant":
            return self.thread.add("assistant", _earlier_response(native), "model").index
        names = {c.id: c.name for m in self.thread.messages for c in m.calls}
        call_id = native["tool_call_id"]
        block = ToolResult(call_id=call_id, name=names[call_id], text=native["content"])
        return self.thread.add("tool", [block], "tool").index

    def _compacted(self, view: list[int | tuple[str, str]]) -> None:
        if not self.summarised:
            return
        self.summarised = False
        role, text = next(v for v in view if isinstance(v, tuple))
        summary = Message(index=-1, role=role, blocks=(Text(text=text),), origin="summary")  # type: ignore[arg-type]
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full", trigger="auto", summary=text.removeprefix(SUMMARY),
            summary_readable=True, window=tuple(summary if isinstance(v, tuple) else v for v in view)))


def _earlier_response(native: dict[str, Any]) -> list[Text | ToolCall]:
    """A response of the process before this one, which a resumed process has loaded."""
    functions = [(call["id"], call["function"]) for call in native.get("tool_calls", [])]
    return [Text(text=native["content"]), *(ToolCall(id=i, name=f["name"], arguments=f["arguments"], is_object=False)
                                            for i, f in functions)]


def _is_layer(native: dict[str, Any]) -> bool:
    """System prompt, tool contracts and session memory stand in front of the history."""
    content = native["content"]
    return native["role"] == "system" and (not isinstance(content, str) or content.startswith(MEMORY))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    return map(json.loads, data.decode().splitlines())


def captures(folder: Path) -> list[Capture]:
    """The runs of one capture folder: one for each process that the harness was started in."""
    config = json.loads((folder / "config.json").read_text())
    items = {line["id"]: line["item"] for line in _lines(folder / "items.jsonl")}
    requests = list(_lines(folder / "requests.jsonl"))
    made, begin = [], 0
    for command in config["commands"]:
        end = command["requests_so_far"]
        made.append(Capture(requests[begin:end], items, config["window"], int(config["env"]["MIN_RETAIN_ROUNDS"]),
                            config["stub"].get("hard_limit", UNLIMITED)))
        begin = end
    return made


def settings_of(capture: Capture) -> str:
    """Our preset with the level and the rounds that the harness was told."""
    return f"mycodeagent:trigger.tokens={int(capture.window * 0.8)},cut.rounds={capture.rounds}"


def replayed(capture: Capture) -> tuple[Session, Lane]:
    """Our preset with the run's settings; what the endpoint refused is not what the harness was told."""
    session = Session(capture.build(), FixedCounter(()))
    return session, session.replay(policy(settings_of(capture)), Capacity(window=capture.refusal_limit), "recorded")


def shown(view: View) -> list[int | tuple[str, str]]:
    """The messages of a view: log indices, and the role and text of a summary."""
    return [part for item in view.window.items
            for part in ([(item.message.role, item.message.text)] if isinstance(item, Inserted)
                         else range(item.start, item.stop))]


def folder_of(shared: Path, scenario: str) -> Path:
    """The capture of a scenario; skipped where it is absent."""
    folder = shared / "wire" / "mycodeagent-f670268" / scenario
    if not folder.is_dir():
        pytest.skip(f"no capture of {scenario}")
    return folder


@pytest.mark.parametrize(("scenario", "equal", "compactions"), [
    ("ten-turns-retain2", 60, 42), ("twelve-turns-retain4", 60, 40), ("overflow-once", 36, 0),
    ("resume-across-processes", 16, 0), ("one-turn-hard-limit", 18, 0)])
def test_every_view_equals_what_was_sent(shared: Path, scenario: str, equal: int, compactions: int) -> None:
    """Each request's messages, with the summary's text, role and place, are those of our view."""
    found = fired = 0
    for capture in captures(folder_of(shared, scenario)):
        _, lane = replayed(capture)
        found += sum(shown(view) == sent for view, sent in zip(lane.views, capture.sent, strict=True))
        fired += sum(e.kind == "full" for e in lane.events)

    assert equal == found
    assert compactions == fired


@pytest.mark.parametrize(("scenario", "processes"), [
    ("ten-turns-retain2", 1), ("twelve-turns-retain4", 1), ("overflow-once", 1), ("resume-across-processes", 4)])
def test_projected_lane_never_diverges_from_the_recorded_one(shared: Path, scenario: str, processes: int) -> None:
    """The same harness's preset gives the same fingerprints as the recorded requests, summaries included."""
    lanes = [replayed(capture) for capture in captures(folder_of(shared, scenario))]

    assert ["re-projected"] * processes == [lane.kind for _, lane in lanes]
    assert [None] * processes == [divergence(lane, session.recorded) for session, lane in lanes]


@pytest.mark.parametrize("scenario", ["ten-turns-retain2", "twelve-turns-retain4"])
def test_compactions_fire_at_the_steps_where_the_harness_asked_for_a_summary(shared: Path, scenario: str) -> None:
    """Every summary request of the run is a compaction at the same step, and most of them gain nothing."""
    session, lane = replayed(captures(folder_of(shared, scenario))[0])
    fired = [e for e in lane.events if e.kind == "full"]

    assert [e.step for e in session.recorded.events] == [e.step for e in fired]
    assert 8 == sum(not e.futile and bool(e.summarised) for e in fired)
    assert 0 == sum(e.kind == "refused" for e in lane.events)


def memories(capture: Capture) -> list[str]:
    """The session memory of each step's request, ids left out."""
    found = []
    for request in capture.requests:
        if request["kind"] == "step" and request["response"]["status"] == 200:
            contents = (capture.items[item]["content"] for item in request["items"])
            found += [c for c in contents if isinstance(c, str) and c.startswith(MEMORY)]
    return [IDS.sub("id", text) for text in found]


@pytest.mark.parametrize(("scenario", "equal"), [("ten-turns-retain2", 60), ("twelve-turns-retain4", 60),
                                                 ("overflow-once", 36)])
def test_session_memory_is_what_was_sent(shared: Path, scenario: str, equal: int) -> None:
    """Switched on, the memory message stands before the history with the same text but for its ids."""
    capture = captures(folder_of(shared, scenario))[0]
    session = Session(capture.build(), FixedCounter(()))
    chosen = policy(f"{settings_of(capture)},reinjection.enabled=true")
    lane = session.replay(chosen, Capacity(window=UNLIMITED), "recorded")
    heads = [item for view in lane.views for item in view.window.items[:1] if isinstance(item, Inserted)]
    ours = [IDS.sub("id", item.message.text) for item in heads]

    assert equal == sum(text == sent for text, sent in zip(ours, memories(capture), strict=True))
    assert {("system", "injected")} == {(item.message.role, item.kind) for item in heads}


def test_one_rejection_is_cured_by_the_plain_retry(shared: Path) -> None:
    """A request that fits by every count and was rejected once brings no compaction."""
    _, lane = replayed(captures(folder_of(shared, "overflow-once"))[0])

    assert () == lane.events
    assert None is lane.ended


def test_one_long_turn_is_sent_three_times_and_ends(shared: Path) -> None:
    """Planned and reactive compaction both refuse a single round: three identical attempts, then the run is over."""
    _, lane = replayed(captures(folder_of(shared, "one-turn-hard-limit"))[0])

    assert 18 == lane.ended == len(lane.views)
    assert [("skipped", "rounds_not_enough", False), ("refused", "prompt_too_long", True),
            ("skipped", "rounds_not_enough", True), ("end", "nothing_compacted", True)] == [
                (e.kind, e.reason, e.reactive) for e in lane.events]
    assert [3] == [e.attempts for e in lane.events if e.kind == "refused"]


def test_session_file_holds_the_log_that_was_sent(shared: Path) -> None:
    """The harness's own transcript, read by our reader, has the messages that its requests carried."""
    folder = folder_of(shared, "ten-turns-retain2")
    sent = captures(folder)[0].build()
    stored = read(folder / "session.transcript.1.jsonl.gz")[0]

    assert [(m.role, m.text) for m in sent.messages] == [(m.role, m.text) for m in stored.messages]
    assert [(c.position, c.window[1:], c.summary) for c in sent.compactions] == [
        (c.position, c.window[1:], c.summary) for c in stored.compactions]
