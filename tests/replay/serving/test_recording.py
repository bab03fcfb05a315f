"""What a harness sent is a capture: read, verified, compared and gated like any other session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.commands.gate import gate
from replay.engine import Session
from replay.errors import ConfigError
from replay.policy.verify import verify_capture
from replay.readers.wire import read_capture
from replay.serving.anthropic import Anthropic
from replay.serving.build import Settings, build
from replay.serving.chat import Chat
from replay.serving.endpoint import Endpoint
from replay.serving.responses import Responses
from replay.testing import FixedCounter, Script
from replay.transcript import Transcript
from replay.view import shown_messages

TOOLS = [{"type": "function", "function": {"name": "read"}}]


def long_session() -> Transcript:
    """One prompt, eight reads with results of 400 characters each, and an answer; texts that repeat."""
    script = Script(session_id="long").user("Read on.")
    for number in range(8):
        script.call("read", json.dumps({"path": f"f{number}"}), text=f"Reading number {number}.").result(f"{number}" * 400)
    return script.say("Done.").user("Read on.").say("Done.").build()


class Harness:
    """A small harness in this process: beyond `most` messages it compacts to the last `kept` rounds."""

    def __init__(self, endpoint: Endpoint, most: int, kept: int = 1) -> None:
        self.endpoint, self.most, self.kept = endpoint, most, kept
        self.messages: list[dict[str, Any]] = []

    def turn(self, transcript: Transcript, prompt: str) -> None:
        """Send a prompt and follow the answers until there is no call in them; results are the recorded ones."""
        results = {r.call_id: r.text for m in transcript.messages for r in m.results}
        self.messages.append({"role": "user", "content": prompt})
        while True:
            self._compact()
            said = self._ask(self.messages, TOOLS)
            self.messages.append(said)
            if not said.get("tool_calls"):
                return
            self.messages += [{"role": "tool", "tool_call_id": c["id"], "content": results[c["id"]]}
                              for c in said["tool_calls"]]

    def _compact(self) -> None:
        if len(self.messages) <= self.most:
            return
        cut = len(self.messages) - 2 * self.kept
        told = "\n".join(str(m["content"]) for m in self.messages[:cut])
        wish = {"role": "user", "content": f"{told}\n\nWrite a summary of the conversation above."}
        summary = self._ask([wish], [])["content"]
        self.messages = [{"role": "user", "content": f"Before:\n{summary}"}, *self.messages[cut:]]

    def _ask(self, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        system = {"role": "system", "content": "You code."}
        body = json.dumps({"model": "m", "messages": [system, *messages], "tools": tools}).encode()
        reply = self.endpoint.reply(Chat(), body)
        assert 200 == reply.status, reply.body
        message = json.loads(reply.body)["choices"][0]["message"]
        return {k: v for k, v in message.items() if k in ("role", "content", "tool_calls")}


def run(folder: Path, most: int = 8, kept: int = 1, **settings: Any) -> Endpoint:
    """Both prompts of the long session through the small harness, recorded in a folder."""
    transcript = long_session()
    endpoint = build(transcript, Settings(record=folder, summaries="extractive", **settings))
    harness = Harness(endpoint, most, kept)
    for _ in range(2):
        harness.turn(transcript, "Read on.")
    return endpoint


def test_recorded_lane_is_what_was_sent(tmp_path: Path) -> None:
    """Read back, each view holds role and text of every message that the harness sent, and repeated words are two."""
    run(tmp_path / "lane")
    found = read_capture(tmp_path / "lane")
    session = Session(found, FixedCounter(()))
    steps = [s for s in found.extra["requests"] if s.kind == "step"]
    ours = [[(s.message.role, s.message.text) for s in shown_messages(session.log, v.window)]
            for v in session.recorded.views]

    assert [[(p.role, p.text) for p in s.history] for s in steps] == ours
    assert ("long", 10, 2) == (found.session_id, len(found.steps), len(found.compactions))
    assert ["Read on.", "Read on."] == [m.text for m in found.messages if m.origin == "human"]
    assert 20 == len(found.messages)


def test_steps_of_a_summary_request_are_found_by_their_words(tmp_path: Path) -> None:
    """A recorded session has no scripted numbers; the beginnings of its texts tell what was summarised."""
    run(tmp_path / "lane")
    summaries = [s for s in read_capture(tmp_path / "lane").extra["requests"] if s.kind == "summary"]

    assert [(1, 2, 3), (4, 5, 6)] == [tuple(sorted(s.named)) for s in summaries][:2]


def test_preset_that_the_recording_names_is_judged(tmp_path: Path) -> None:
    """The small harness does what this policy says: every request is equal; one with another tail differs."""
    policy = tmp_path / "small.toml"
    policy.write_text('''name = "small"
[[stages]]
name = "full"
trigger = { use = "message-count", more_than = 8 }
cut = { use = "messages", messages = 2 }
replacement = { use = "summary-message", role = "user", frame = "Before:\\n" }
''')
    for name, kept in (("right", 1), ("wrong", 2)):
        run(tmp_path / name, kept=kept, policy=str(policy))
    right, wrong = (verify_capture(tmp_path / name) for name in ("right", "wrong"))

    assert (str(policy), 10, ()) == (right.preset, right.equal, right.differences)
    assert 0 < len(wrong.wrong) < 10


def test_two_runs_are_gated_against_each_other(tmp_path: Path) -> None:
    """The same harness passes; one that keeps another tail fails with the exact step and the labelled difference."""
    for name, kept in (("before", 1), ("same", 1), ("after", 2)):
        run(tmp_path / name, kept=kept)
    golden = ["-p", "recorded", "--golden", str(tmp_path / "golden")]
    made, same, other = (CliRunner().invoke(gate, [str(tmp_path / name), *golden, *more], standalone_mode=False)
                         for name, more in (("before", ["--accept"]), ("same", []), ("after", [])))

    assert (0, 0, 1) == (made.return_value, same.return_value, other.return_value), same.output
    assert "long, step 5: the view differs: 2 added" in other.output


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    """Nothing in a recording depends on the clock or on chance."""
    for name in "ab":
        run(tmp_path / name)

    for file in ("requests.jsonl", "items.jsonl", "config.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_existing_recording_is_not_written_over(tmp_path: Path) -> None:
    """The second run names the folder and what to do."""
    run(tmp_path / "lane")

    with pytest.raises(ConfigError, match="name another folder"):
        run(tmp_path / "lane")


def test_refused_and_stopped_requests_are_views_too(tmp_path: Path) -> None:
    """A refusal counts at its step; what led to a stop is the last step, with its reason."""
    transcript = long_session()
    endpoint = build(transcript, Settings(record=tmp_path / "lane", refuse={1: 1}))
    for words in ("Read on.", "Read on.", "Something else."):
        endpoint.reply(Chat(), json.dumps({"messages": [{"role": "user", "content": words}], "tools": TOOLS}).encode())
    found = read_capture(tmp_path / "lane")

    assert {1: 1, 2: 1} == found.extra["refusals"]
    assert found.steps[-1].error is not None
    assert found.steps[-1].error.startswith("rejected: rewindow: stopped at step 2: request")


ASKED: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (Responses(), {"input": "Read on.", "tools": TOOLS}, {"input": [
        {"role": "user", "content": "Read on."}, {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Reading number 0."}]},
        {"type": "function_call", "call_id": "call-1", "name": "read", "arguments": '{"path": "f0"}'},
        {"type": "function_call_output", "call_id": "call-1", "output": "0" * 400}], "tools": TOOLS}),
    (Anthropic(), {"messages": [{"role": "user", "content": "Read on."}], "tools": TOOLS, "system": "You code."},
     {"messages": [{"role": "user", "content": "Read on."}, {"role": "assistant", "content": [
         {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Reading number 0."},
         {"type": "tool_use", "id": "call-1", "name": "read", "input": {"path": "f0"}}]},
         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call-1", "content": "0" * 400}]}],
      "tools": TOOLS, "system": "You code."}),
]


@pytest.mark.parametrize(("protocol", "first", "second"), ASKED, ids=["responses", "anthropic"])
def test_other_protocols_are_recorded_alike(tmp_path: Path, protocol: Any, first: Any, second: Any) -> None:
    """Items of Responses and blocks of Anthropic's messages become the same log."""
    endpoint = build(long_session(), Settings(record=tmp_path / "lane"))
    replies = [endpoint.reply(protocol, json.dumps(body).encode()) for body in (first, second)]
    found = read_capture(tmp_path / "lane")

    assert [200, 200] == [r.status for r in replies], replies
    assert ["user", "assistant", "tool", "assistant"] == [m.role for m in found.messages]
    assert ("read", {"path": "f0"}, "0" * 400) == (
        found.messages[1].calls[0].name, found.messages[1].calls[0].mapping, found.messages[2].results[0].text)


def test_recording_can_be_read_while_it_grows(serve: Callable[..., Any], tmp_path: Path) -> None:
    """After each request the folder is complete, so a run that is broken off is a session."""
    running = serve(long_session(), record=tmp_path / "lane")
    running.endpoint.reply(Chat(), json.dumps({"messages": [{"role": "user", "content": "Read on."}]}).encode())

    assert 1 == len(read_capture(tmp_path / "lane").steps)
