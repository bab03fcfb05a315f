"""SWE-agent views: recorded prompts, discarded responses, attempts, and the shared trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.readers.registry import read, read_bytes
from replay.transcript import Message, RecordedCompaction, Transcript

SYSTEM = {"role": "system", "content": "You are a programmer.", "agent": "main", "message_type": "system_prompt"}
TASK = {"role": "user", "content": "Fix it.", "agent": "main", "message_type": "observation"}


def answer(content: str, action: str = "", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "thought": "", "action": action, "agent": "main",
            "message_type": "action", **more}


def fenced(command: str, thought: str = "Look.") -> dict[str, Any]:
    return answer(f"{thought}\n```\n{command}\n```", command + "\n")


def seen(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, "agent": "main", "message_type": "observation", **more}


def step(item: dict[str, Any], observation: str = "out", **more: Any) -> dict[str, Any]:
    return {"action": item["action"], "observation": observation, "response": item["content"], "thought": "",
            "state": "{}", **more}


def session(*history: Any, steps: Any = (), **more: Any) -> Transcript:
    document = {"trajectory": list(steps), "history": [SYSTEM, TASK, *history], **more}
    (found,) = read_bytes(json.dumps(document).encode(), "run.traj")
    assert "swe-agent" == found.format
    return found


def view(found: Transcript, number: int) -> list[str]:
    """The text of each message that a step's request sent, rebuilt from the recorded compactions."""
    start = found.steps[number - 1].start
    items: list[int | Message] = []
    at, hidden = 0, dict[int, str]()
    for compaction in (c for c in found.compactions if c.position <= start):
        if compaction.kind == "micro":
            hidden |= dict.fromkeys(compaction.elided, compaction.placeholder)
        else:
            items, at = list(compaction.window), compaction.position
    items += range(at, start)
    return [hidden.get(i) or found.messages[i].text if isinstance(i, int) else i.text for i in items]


class TestDiscarded:
    """Responses that the program threw away."""

    def test_wrong_format(self) -> None:
        """Each is a step that left nothing, before the one that was kept; its text is an abandoned thread."""
        good = fenced("ls")
        complaint = [{"role": "assistant", "content": "hm", "message_type": "assistant"},
                     {"role": "user", "content": "Wrong format.\nMore words.", "message_type": "user"}]
        steps = [step(answer("hm"), query=[SYSTEM, TASK]), step(good, query=[SYSTEM, TASK, *complaint])]
        found = session(good, seen("out"), steps=steps)

        assert [(2, None, "discarded response: Wrong format."), (2, 2, None)] == [
            (s.start, s.response, s.error) for s in found.steps]
        assert ["hm"] == [t.messages[0].text for t in found.abandoned]
        assert () == found.compactions

    def test_run_that_died_in_a_retry(self) -> None:
        """A response after the last answer that has a prompt was never kept."""
        steps = [step(fenced("ls"), query=[SYSTEM, TASK]), step(answer("hm"), query=[SYSTEM, TASK])]
        found = session(fenced("ls"), seen("out"), steps=steps)

        assert ([2, None], 4) == ([s.response for s in found.steps], len(found.messages))

    def test_edited_answers_are_matched_in_order(self) -> None:
        """An answer whose text was edited takes the step in its place; none counts as discarded."""
        steps = [step(fenced("ls")), step(fenced("pwd", "Other words."))]
        found = session(fenced("ls"), seen("1"), fenced("pwd"), seen("2"), steps=steps)

        assert ([], [2, 4]) == (list(found.abandoned), [s.response for s in found.steps])


class TestRecordedPrompts:
    """Prompts that the steps recorded are the true views."""

    HISTORY = [fenced("a"), seen("out a"), fenced("b"), seen("out b"), fenced("c"), seen("out c")]

    def _blanked(self, upto: int, *places: int, words: str = "Old environment output: (1 lines omitted)") -> list[Any]:
        shown = [dict(item) for item in [SYSTEM, TASK, *self.HISTORY][:upto]]
        for place in places:
            shown[place]["content"] = words
        return shown

    @pytest.mark.parametrize("name", ["query", "messages"])
    def test_blanked_observations(self, name: str) -> None:
        """A replaced observation is a micro compaction with the very words that replaced it."""
        prompts = [self._blanked(2), self._blanked(4), self._blanked(6, 3)]
        told = prompts if name == "query" else [*prompts[1:], self._blanked(8, 3, 5)]
        steps = [step(item) | {name: shown} for item, shown in zip(self.HISTORY[::2], told, strict=True)]
        found = session(*self.HISTORY, steps=steps)
        (compaction,) = found.compactions

        assert RecordedCompaction(position=6, kind="micro", elided=(3,),
                                  placeholder="Old environment output: (1 lines omitted)") == compaction
        assert ["out a", "Old environment output: (1 lines omitted)"] == [view(found, 2)[3], view(found, 3)[3]]

    def test_cache_marks_are_no_change(self) -> None:
        """The same text in parts, with or without cache marks, is the same prompt."""
        shown = self._blanked(4)
        shown[3]["content"] = [{"type": "text", "text": "out a", "cache_control": {"type": "ephemeral"}}]
        found = session(*self.HISTORY[:4], steps=[step(self.HISTORY[0]), step(self.HISTORY[2], query=shown)])

        assert () == found.compactions

    def test_dropped_messages(self) -> None:
        """A prompt without some messages is a full compaction that keeps the others by index."""
        shown = [m for n, m in enumerate(self._blanked(6)) if n not in (2, 3)]
        found = session(*self.HISTORY, steps=[step(self.HISTORY[0]), step(self.HISTORY[2]),
                                              step(self.HISTORY[4], query=shown)])

        assert [("full", 6, (0, 1, 4, 5))] == [(c.kind, c.position, c.window) for c in found.compactions]

    def test_observation_that_comes_back(self) -> None:
        """A blanked observation that is shown again needs a window of its own."""
        steps = [step(self.HISTORY[0]), step(self.HISTORY[2], query=self._blanked(4, 3)),
                 step(self.HISTORY[4], query=self._blanked(6))]
        found = session(*self.HISTORY, steps=steps)

        assert ["micro", "full"] == [c.kind for c in found.compactions]
        assert "out a" == view(found, 3)[3]

    def test_changed_prompt(self) -> None:
        """Any other change keeps the calls and ids of the message that it changes."""
        shown = self._blanked(6)
        shown[1]["content"] = "Fix it, quickly."
        found = session(*self.HISTORY, steps=[step(self.HISTORY[0]), step(self.HISTORY[2]),
                                              step(self.HISTORY[4], query=shown)])
        changed = found.compactions[0].window[1]

        assert isinstance(changed, Message)
        assert ("Fix it, quickly.", "human", -1) == (changed.text, changed.origin, changed.index)
        assert (0, 2, 3, 4, 5) == tuple(i for i in found.compactions[0].window if isinstance(i, int))

    @pytest.mark.parametrize("prompt", [[{}], [], None, "text", [1, 2]])
    def test_no_prompt(self, prompt: Any) -> None:
        """A step without a usable prompt changes nothing."""
        found = session(*self.HISTORY[:2], steps=[step(self.HISTORY[0], query=prompt)])

        assert ((), 1) == (found.compactions, len(found.steps))


class TestAttempts:
    """Files of the retry loop."""

    def _attempt(self, words: str) -> dict[str, Any]:
        return {"trajectory": [], "history": [SYSTEM, TASK, fenced("ls", words), seen(words)], "info": {}}

    def test_chosen_attempt(self) -> None:
        """The chosen attempt is the session, the others are abandoned."""
        document = {"attempts": [self._attempt("one"), self._attempt("two")], **self._attempt("one"),
                    "info": {"best_attempt_idx": 0, "exit_status": "submitted"}}
        (found,) = read_bytes(json.dumps(document).encode(), "x.traj")

        assert ("one", ["two"]) == (found.messages[3].text, [t.messages[3].text for t in found.abandoned])
        assert ["x/attempt-1"] == [t.id for t in found.abandoned]

    @pytest.mark.parametrize(("name", "value", "told"), [
        ("trajectory", [[{"type": "text"}], {}], "1 trajectory steps are not JSON objects"),
        ("trajectory", {"0": {}}, "the trajectory steps are not in a list"),
        ("attempts", ["cut"], "1 attempts are not JSON objects")])
    def test_lists_that_are_damaged(self, name: str, value: Any, told: str) -> None:
        """What stands in a list of steps or attempts and is none of them is told by a note."""
        (found,) = read_bytes(json.dumps(self._attempt("one") | {name: value}).encode(), "x.traj")

        assert [("not-an-object", f"{told}; kept out")] == [(n.code, n.text) for n in found.notes]

    def test_loop_that_still_runs(self) -> None:
        """Without a choice the last attempt counts."""
        document = {"attempts": [self._attempt("one"), self._attempt("two")]}
        (found,) = read_bytes(json.dumps(document).encode(), "x.traj")

        assert ("swe-agent", "two", 1) == (found.format, found.messages[3].text, len(found.abandoned))

    def test_other_agents(self) -> None:
        """Items of another agent are a sub-agent's thread."""
        found = session(fenced("ls"), seen("out"), fenced("x") | {"agent": "helper"}, seen("y") | {"agent": "helper"})

        assert (4, 4) == (len(found.messages), found.message_count)
        assert [("helper", 2)] == [(t.id.rsplit("/")[-1], len(t.messages)) for t in found.subagents]


class TestSharedFiles:
    """Real trajectories."""

    @pytest.mark.parametrize(("name", "messages", "steps", "calls"), [
        ("function-calling-simple.traj", 12, 5, 5), ("humanevalfix-0x-format.traj", 11, 5, 5),
        ("marshmallow-function-calling.traj", 28, 13, 13), ("requests-v1.traj", 32, 15, 15)])
    def test_counts(self, transcripts: Path, name: str, messages: int, steps: int, calls: int) -> None:
        """Messages, steps and calls; the first file holds five calls and no trajectory."""
        (found,) = read(transcripts / "swe-agent" / name)

        assert ("swe-agent", messages, steps, calls) == (
            found.format, found.message_count, len(found.steps), len(list(found.main.tool_calls())))

    @pytest.mark.parametrize("name", ["marshmallow-function-calling.traj", "requests-v1.traj"])
    def test_views_are_the_recorded_ones(self, transcripts: Path, name: str) -> None:
        """The rebuilt views equal the recorded prompts, message by message."""
        path = transcripts / "swe-agent" / name
        (found,) = read(path)
        recorded = [s["messages"] for s in json.loads(path.read_text())["trajectory"]]

        for number, prompt in enumerate(recorded[:-1], 2):
            shown = view(found, number)
            assert len(prompt) == len(shown)
            assert [m["content"] for m in prompt if m["role"] != "assistant"] == [
                text for text, m in zip(shown, prompt, strict=True) if m["role"] != "assistant"]

    def test_every_call_is_answered(self, transcripts: Path) -> None:
        """Text actions and their observations pair, but for a last submission."""
        for path in sorted((transcripts / "swe-agent").glob("*.traj")):
            (found,) = read(path)
            answered = {r.call_id for m in found.messages for r in m.results}
            assert {c.id for c in found.main.tool_calls()} - answered <= {found.messages[-1].calls[0].id} if (
                found.messages[-1].calls) else True
