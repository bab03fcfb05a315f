"""OpenHands streams: shapes, responses and their calls, texts for the model, robustness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Opaque, Text
from replay.find import find
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Transcript, Usage


def prompt(own: Any, content: str = "go", source: Any = "user", **more: Any) -> dict[str, Any]:
    return {"id": own, "timestamp": "2025-01-27T22:44:56.9", "source": source, "message": content, "action": "message",
            "args": {"content": content, "image_urls": None, "wait_for_response": False, **more}}


def response(name: str, *calls: str, content: str = "Look.", usage: Any = None) -> dict[str, Any]:
    made = [{"id": c, "type": "function", "function": {"name": "execute_bash", "arguments": '{"command":"ls"}'}}
            for c in calls]
    return {"id": name, "model": "m", "usage": usage,
            "choices": [{"message": {"role": "assistant", "content": content, "tool_calls": made}}]}


def act(own: Any, call: str, raw: Any, **more: Any) -> dict[str, Any]:
    metadata = {"function_name": "execute_bash", "tool_call_id": call, "model_response": raw}
    return {"id": own, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."},
            "tool_call_metadata": metadata, **more}


def seen(own: Any, cause: Any, content: Any = "out", kind: str = "run", **more: Any) -> dict[str, Any]:
    return {"id": own, "source": "agent", "cause": cause, "observation": kind, "content": content,
            "extras": {"command": "ls", "metadata": {"exit_code": 0}}, **more}


def system(own: int = 0) -> dict[str, Any]:
    return {"id": own, "source": "agent", "action": "system",
            "args": {"content": "You are OpenHands.", "tools": [{"type": "function"}], "openhands_version": "0.46.0"}}


def state(own: int, name: str) -> dict[str, Any]:
    return {"id": own, "source": "environment", "observation": "agent_state_changed", "content": "",
            "extras": {"agent_state": name}}


def session(*events: Any) -> Transcript:
    (found,) = read_bytes(json.dumps(list(events)).encode(), "trajectory.json")
    assert "openhands" == found.format
    return found


def instance(*events: Any, **more: Any) -> dict[str, Any]:
    return {"instance_id": "a__b-1", "history": list(events), **more}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


def told(found: Transcript) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in found.messages]


class TestShapes:
    """Where the events stand."""

    EVENTS = (prompt(0), act(1, "c", response("r", "c")), seen(2, 1))

    @pytest.mark.parametrize("data", [
        json.dumps(EVENTS).encode(), json.dumps(EVENTS, indent=2).encode(), json.dumps({"trajectory": EVENTS}).encode(),
        lines(*EVENTS), json.dumps([[EVENTS[0], None], [EVENTS[1], EVENTS[2]]]).encode(),
        b"\xef\xbb\xbf" + lines(*EVENTS)])
    def test_one_session(self, data: bytes) -> None:
        """An array, the UI's download, a line an event and pairs are one session each."""
        (found,) = read_bytes(data, "trajectory.json")

        assert ("openhands", "trajectory", 3) == (found.format, found.session_id, len(found.messages))
        assert ["c"] == [r.call_id for r in found.messages[2].results]

    def test_instances(self) -> None:
        """Each line of output.jsonl is a session of its own, named by its instance."""
        other = instance(prompt(0)) | {"instance_id": "c__d-2"}
        found = read_bytes(lines(instance(*self.EVENTS), other), "output.jsonl")

        assert [("a__b-1", 3), ("c__d-2", 1)] == [(t.session_id, len(t.messages)) for t in found]

    def test_array_of_instances(self) -> None:
        """An evaluation's output may be one array."""
        data = json.dumps([instance(*self.EVENTS), instance(prompt(0)) | {"instance_id": "c__d-2"}]).encode()

        assert [("openhands", 3), ("openhands", 1)] == [(t.format, len(t.messages)) for t in read_bytes(data)]

    @pytest.mark.parametrize(("head", "name"), [
        ({"issue": {"owner": "o", "repo": "r", "number": 5}}, "o/r#5"), ({"instance_id": 7}, "7"),
        ({"issue": None}, "output#1")])
    def test_names(self, head: dict[str, Any], name: str) -> None:
        """An instance is named by its id, its issue, or its place in the file."""
        (found,) = read_bytes(lines({"history": [prompt(0)], **head}), "output.jsonl")

        assert name == found.session_id

    def test_event_files(self, tmp_path: Path) -> None:
        """Single event files of a folder are one session, whichever of them is given, in the order of numbers."""
        folder = tmp_path / "sid" / "events"
        folder.mkdir(parents=True)
        for event in (*self.EVENTS, *(prompt(n, str(n)) for n in range(3, 12))):
            (folder / f"{event['id']}.json").write_text(json.dumps(event))
        for given in ("0.json", "2.json", "10.json"):
            (found,) = read(folder / given)
            assert ("openhands", "sid", 12) == (found.format, found.session_id, len(found.messages))
            assert "11" == found.messages[-1].text

    def test_event_folder_is_one_session(self, tmp_path: Path) -> None:
        """A search of the folder finds one file for the session, without the pages that repeat the events."""
        folder, cache = tmp_path / "sid" / "events", tmp_path / "sid" / "event_cache"
        folder.mkdir(parents=True)
        cache.mkdir()
        for event in self.EVENTS:
            (folder / f"{event['id']}.json").write_text(json.dumps(event))
        (cache / "0-25.json").write_text(json.dumps(self.EVENTS))

        assert [folder / "0.json"] == [f.path for f in find([str(tmp_path)])]
        assert [folder / "1.json"] == [f.path for f in find([str(folder / "1.json")])]

    @pytest.mark.parametrize("broken", [b"{", b"[]", b'{"no": "event"}', b""])
    def test_broken_event_file(self, tmp_path: Path, broken: bytes) -> None:
        """A broken event file is a note and costs no other event."""
        folder = tmp_path / "events"
        folder.mkdir()
        for event in self.EVENTS:
            (folder / f"{event['id']}.json").write_text(json.dumps(event))
        (folder / "3.json").write_bytes(broken)
        (found,) = read(folder / "0.json")

        assert 3 == len(found.messages)
        assert "3.json" in found.notes[0].text

    @pytest.mark.parametrize(("value", "expected"), [
        ([prompt(0)], "openhands"), (instance(), "openhands"), ({"history": [], "issue": {}}, "openhands"),
        ([{"action": "x", "role": "user", "content": "y"}], "openai-chat"), ({"trajectory": [{"x": 1}]}, None)])
    def test_detection(self, value: Any, expected: str | None) -> None:
        """The shape of the events tells the format."""
        assert expected == detect(parse_source(json.dumps(value).encode(), "x"))


class TestResponses:
    """Model responses and their calls."""

    def test_calls_of_one_response(self) -> None:
        """The actions of one response are one message with all its calls, its usage once."""
        raw = response("r", "a", "b", usage={"prompt_tokens": 10, "completion_tokens": 2})
        found = session(prompt(0), act(1, "a", raw), seen(2, 1, "1"), act(3, "b", raw), seen(4, 3, "2"))

        results = [r for m in found.messages for r in m.results]

        assert [("a", "1"), ("b", "2")] == [(r.call_id, r.text.split("\n")[0]) for r in results]
        assert ["user", "assistant", "tool", "tool"] == [m.role for m in found.messages]
        assert (1, Usage(input_uncached=10, output=2)) == (len(found.steps), found.usage)

    def test_confirmed_action(self) -> None:
        """An action that is written again after its confirmation is the same call."""
        raw = response("r", "a")
        found = session(prompt(0), act(1, "a", raw), act(2, "a", raw), seen(3, 2, "ok"))

        assert (1, ["a"]) == (len(found.steps), [r.call_id for m in found.messages for r in m.results])

    def test_action_without_a_response(self) -> None:
        """Where no response was recorded the call is made from the action, its thought the text before."""
        bare = {"action": "run_ipython", "code": "1+1", "thought": "Try.", "kernel_init_code": "x", "is_confirmed": "y"}
        found = session(prompt(0), bare, {"observation": "run_ipython", "code": "1+1", "content": "2"})
        (made,) = found.messages[1].calls

        assert (Text(text="Try."), "run_ipython", {"code": "1+1"}) == (
            found.messages[1].blocks[0], made.name, made.parsed)
        assert [(made.id, "2")] == [(r.call_id, r.text) for r in found.messages[2].results]

    @pytest.mark.parametrize("raw", [None, {}, {"id": "r"}, {"choices": []}, {"choices": [None]}, "text", {"id": 7}])
    def test_response_that_cannot_be_read(self, raw: Any) -> None:
        """A response without a message still gives the call that the metadata names."""
        found = session(prompt(0), act(1, "a", raw), seen(2, 1))

        assert [("a", "execute_bash")] == [(c.id, c.name) for c in found.main.tool_calls()]
        assert ["a"] == [r.call_id for m in found.messages for r in m.results]

    def test_reused_call_ids(self) -> None:
        """Call ids that come back are made unique, and results follow them by cause."""
        found = session(prompt(0), act(1, "a", response("r1", "a")), seen(2, 1, "1"), act(3, "a", response("r2", "a")),
                        seen(4, 3, "2"))

        assert ["a", "a#2"] == [r.call_id for m in found.messages for r in m.results]
        assert ["reused-call-id"] == codes(found)

    @pytest.mark.parametrize("cause", [1, None, -1])
    def test_pairing(self, cause: Any) -> None:
        """A result finds its call by cause, by the call's id, or by order."""
        event = seen(2, cause)
        if cause is None:
            event["tool_call_metadata"] = {"tool_call_id": "a"}

        assert ["a"] == [r.call_id for m in session(prompt(0), act(1, "a", response("r", "a")), event).messages
                         for r in m.results]

    def test_prompt_before_the_result(self) -> None:
        """A prompt that came while a call was open stands behind its result."""
        found = session(prompt(0), act(1, "a", response("r", "a")), prompt(2, "wait"), seen(3, 1))

        assert ["user", "assistant", "tool", "user"] == [m.role for m in found.messages]

    def test_call_without_a_result(self) -> None:
        """A call that is never answered does not hold the prompts behind it back."""
        found = session(prompt(0), act(1, "a", response("r", "a")), prompt(2, "next"), prompt(3, "more", "agent"))

        assert ["user", "assistant", "user", "assistant"] == [m.role for m in found.messages]

    def test_text_answers(self) -> None:
        """A message of the agent is a response; a person's next one is a prompt."""
        found = session(prompt(0), prompt(1, "Which one?", "agent", wait_for_response=True), prompt(2, "This."))

        assert [("user", "human"), ("assistant", "model"), ("user", "human")] == [
            (m.role, m.origin) for m in found.messages]
        assert (1, 3) == (len(found.steps), found.message_count)

    def test_messages_without_a_source(self) -> None:
        """The oldest messages do not say who wrote them: only the agent waits for a reply."""
        first, asked, reply = (prompt(n, str(n), None) for n in range(3))
        asked["args"]["wait_for_response"] = True
        found = session(first, asked, reply)

        assert ["user", "assistant", "user"] == [m.role for m in found.messages]


class TestTexts:
    """What the model was shown."""

    @pytest.mark.parametrize(("event", "shown"), [
        (seen(2, 1, "x", extras={"metadata": {"exit_code": 3, "working_dir": "/w", "py_interpreter_path": "/p",
                                              "prefix": "<", "suffix": ">"}}),
         "<x>\n[Current working directory: /w]\n[Python interpreter: /p]\n[Command finished with exit code 3]"),
        (seen(2, 1, "x", extras={"metadata": {"exit_code": -1}}), "x"),
        (seen(2, 1, "x", extras=None, exit_code=0), "x"), (seen(2, 1, None), "\n[Command finished with exit code 0]"),
        (seen(2, 1, "x", "error"), "x\n[Error occurred in processing last action]"),
        (seen(2, 1, "x", "user_rejected"), "OBSERVATION:\nx\n[Last action has been rejected by the user]"),
        (seen(2, 1, "x", "edit", extras={"path": "/a", "prev_exist": False, "impl_source": "llm_based_edit"}),
         "[New file /a is created with the provided content.]\n"),
        (seen(2, 1, "x", "edit", extras={"prev_exist": False, "impl_source": "oh_aci"}), "x"),
        (seen(2, 1, "x", "edit", extras={"prev_exist": False}), "x"),
        (seen(2, 1, {"a": 1}, "mcp"), '{"a":1}')])
    def test_results(self, event: dict[str, Any], shown: str) -> None:
        """An observation as the program words it for the model."""
        assert shown == session(prompt(0), act(1, "a", response("r", "a")), event).messages[2].text

    @pytest.mark.parametrize(("event", "failed"), [
        (seen(2, 1), False), (seen(2, 1, extras={"metadata": {"exit_code": 1}}), True),
        (seen(2, 1, extras={"metadata": {"exit_code": -1}}), False), (seen(2, 1, kind="error"), True),
        (seen(2, 1, kind="browse", extras={"error": True}), True), (seen(2, 1, kind="user_rejected"), True)])
    def test_failures(self, event: dict[str, Any], failed: bool) -> None:
        """Errors, refusals and other exit codes than 0 are error results."""
        (result,) = session(prompt(0), act(1, "a", response("r", "a")), event).messages[2].results

        assert failed is result.is_error

    def test_recall(self) -> None:
        """Recalled facts and knowledge are injected, each piece of knowledge once."""
        known = {"name": "github", "trigger": "github", "content": "Use the API."}
        recall = {"id": 2, "source": "environment", "cause": 1, "observation": "recall", "content": "Added",
                  "extras": {"recall_type": "workspace_context", "repo_name": "r", "repo_directory": "/r",
                             "repo_instructions": "Be brief.", "date": "2025-07-11", "runtime_hosts": {"http://h": 1},
                             "microagent_knowledge": [known]}}
        again = recall | {"id": 3, "extras": {"recall_type": "knowledge", "microagent_knowledge": [known]}}
        found = session(prompt(0), {"id": 1, "action": "recall", "source": "user", "args": {}}, recall, again)

        assert [("user", "injected", "recall")] == [(m.role, m.origin, m.detail) for m in found.messages[1:]]
        assert all(words in found.messages[1].text for words in (
            "<REPOSITORY_INFO>", "Be brief.", "http://h (port 1)", "2025-07-11", "Use the API."))

    def test_commands_of_the_person(self) -> None:
        """A command that the person ran is no call, its output no result."""
        typed = {"id": 1, "source": "user", "action": "run", "args": {"command": "ls"}}
        found = session(prompt(0), typed, seen(2, 1, "out"))

        assert [("user", "User executed the command:\nls"), (
            "user", "\nObserved result of command executed by user:\nout\n[Command finished with exit code 0]")] == (
            told(found)[1:])
        assert ([], 0) == (list(found.main.tool_calls()), len(found.steps))

    def test_system_prompt(self) -> None:
        """The system prompt is pinned; tools and version are kept."""
        found = session(system(), prompt(1))

        assert ("system", "system", "0.46.0", 2) == (
            found.messages[0].role, found.messages[0].origin, found.harness_version, found.message_count)
        assert [{"type": "function"}] == found.extra["tools"]

    def test_images(self) -> None:
        """Image data are kept by size and hash, links only as links."""
        event = prompt(0)
        event["args"]["image_urls"] = ["data:image/png;base64,AA==", "https://h/i.png", "", None]
        blocks = session(event).messages[0].blocks

        assert [1] == [b.size_bytes for b in blocks if b.kind == "image"]
        assert [Opaque(label="image link", size_bytes=15)] == [b for b in blocks if isinstance(b, Opaque)]

    def test_hidden_and_side_events(self) -> None:
        """State changes, empty observations and hidden events are not for the model and not odd."""
        hidden = seen(3, None, "secret") | {"extras": {"hidden": True}}
        null = {"id": 4, "source": "environment", "observation": "null", "content": "", "extras": {}}
        changed = {"id": 2, "action": "change_agent_state", "args": {}}
        found = session(prompt(0), state(1, "running"), changed, hidden, null)

        assert (1, []) == (len(found.messages), codes(found))


class TestRobustness:
    """Missing and odd fields."""

    @pytest.mark.parametrize("odd", [
        {"id": [1], "action": "run", "args": None, "source": "agent"}, {"id": {}, "observation": "run", "cause": [1]},
        {"action": "message"}, {"action": "system", "args": {"content": None}}, {"observation": "recall", "extras": 7},
        {"action": "run", "source": "user", "args": []}, {"action": "message", "args": {"content": {"a": 1}}}])
    def test_odd_events(self, odd: dict[str, Any]) -> None:
        """An event with fields of a wrong type never costs another."""
        found = session(prompt(0), odd, act(1, "a", response("r", "a")), seen(2, 1))

        assert "a" in [r.call_id for m in found.messages for r in m.results]

    def test_unknown_types(self) -> None:
        """Unknown events are noted once a type."""
        odd: list[Any] = [{"id": n, "action": "dance", "source": "agent", "args": {}} for n in (1, 2)]
        found = session(prompt(0), *odd, {"id": 3, "kind": "new"}, 7)

        assert ["not-an-object", "unknown-type", "unknown-type"] == codes(found)
        assert any("'action dance' x 2" in n.text for n in found.notes)

    def test_repeated_events(self) -> None:
        """An event that is written twice is read once; another one under its id is kept."""
        found = session(prompt(0), prompt(0), prompt(0, "other"))

        assert (["go", "other"], ["duplicate"]) == ([m.text for m in found.messages], codes(found))

    def test_cut_tail(self) -> None:
        """A cut last line of events costs only itself."""
        (found,) = read_bytes(lines(prompt(0), prompt(1)) + b'{"id": 2, "act', "x.jsonl", format="openhands")

        assert (2, ["cut-tail"]) == (len(found.messages), codes(found))
