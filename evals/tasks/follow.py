"""Replay by rejection: as long as a new run chooses the recorded actions, its history is the recorded one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evals.tasks.rules import call_key
from replay.blocks import Block, Text, ToolCall
from replay.engine import Session
from replay.live import LiveSession
from replay.transcript import Message, Step, Transcript


@dataclass
class Follower:
    """Compares each answer of a run with the recorded one, and keeps the run's log equal to it while they agree.

    An action agrees when it makes the same calls with the same arguments, in the same order; words beside them are the
    recording's as long as the run follows. Results must agree to the letter.
    """

    transcript: Transcript
    first: int
    """The first step that runs again."""
    followed: int = 0
    """Steps whose action was the recorded one, in a row from the first on."""
    same_words: int = 0
    """Those of them whose words were the recorded ones too."""
    diverged_at: int | None = None
    what: str | None = None
    """`action`, `result` or `past-the-end` (the recording ends there)."""

    @property
    def follows(self) -> bool:
        """Whether the run is still what was recorded."""
        return self.diverged_at is None

    def blocks(self, number: int, made: Sequence[Block]) -> list[Block]:
        """The blocks to write down for a step: the recorded ones where the action is the recorded one."""
        recorded = self._response(number)
        if not self.follows:
            return list(made)
        if recorded is None:
            self._leave(number, "past-the-end" if number > len(self.transcript.steps) else "action")
            return list(made)
        if [call_key(b) for b in made if isinstance(b, ToolCall)] != [call_key(c) for c in recorded.calls]:
            self._leave(number, "action")
            return list(made)
        self.followed += 1
        self.same_words += _words(made) == _words(recorded.blocks)
        return list(recorded.blocks)

    def rest(self, step: Step, live: LiveSession) -> bool:
        """Behind a step's results: take over what else the recording holds before its next request; whether it does.

        Where a result differs, the run follows no longer.
        """
        if not self.follows:
            return False
        after = self._between(step.number)
        made = live.thread.messages[step.start + 1:]
        if _results(made) != _results(after):
            self._leave(step.number, "result")
            return False
        del live.thread.messages[step.start + 1:]
        live.thread.messages += after
        return any(m.role != "tool" for m in after)

    def _response(self, number: int) -> Message | None:
        steps = self.transcript.steps
        index = steps[number - 1].response if number <= len(steps) else None
        return None if index is None else self.transcript.messages[index]

    def _between(self, number: int) -> list[Message]:
        """The recorded messages behind a step's answer and before the next request."""
        steps, messages = self.transcript.steps, self.transcript.messages
        stop = steps[number].start if number < len(steps) else len(messages)
        return list(messages[steps[number - 1].start + 1:stop])

    def _leave(self, number: int, what: str) -> None:
        if self.diverged_at is None:
            self.diverged_at, self.what = number, what


def _words(blocks: Sequence[Block]) -> str:
    return "\n".join(b.text for b in blocks if isinstance(b, Text)).strip()


def _results(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(r.call_id, r.text) for m in messages for r in m.results]


def prefill(live: LiveSession, transcript: Transcript, first: int) -> int | None:
    """Let the policy decide the recorded steps before `first`, as if it had been there; the log is the recording's.

    Gives the first step whose view was not the recorded one; None where all were. What the provider reported is told to
    the policy as long as its views are the recorded ones. Ends early where the policy finds no way out of a request
    (`live.ended`).
    """
    differs: int | None = None
    recorded = Session(transcript, live.counter).recorded.views
    for step, view in zip(transcript.steps[:first - 1], recorded, strict=False):
        live.thread.messages += transcript.messages[len(live.thread.messages):step.start]
        if live.request() is None:
            return differs or step.number
        if differs is None and not live.shows(view.window):
            differs = step.number
        _as_recorded(live, transcript, step, differs is None)
    live.thread.messages += transcript.messages[len(live.thread.messages):transcript.steps[first - 1].start]
    return differs


def _as_recorded(live: LiveSession, transcript: Transcript, step: Step, told: bool) -> None:
    if step.response is None:
        live.failed(step.error or "no answer", time=step.time)
        return
    message = transcript.messages[step.response]
    live.answered(message.blocks, step.usage if told else None, time=step.time, model=step.model)
    live.thread.messages[-1] = message
    live.thread.steps[-1] = replace(live.thread.steps[-1], usage=step.usage, request_id=step.request_id)
