"""Reinjection: what a harness puts into every view besides the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replay.blocks import Text
from replay.policy.base import Moment
from replay.transcript import Message

_CUT_NOTE = "\n[session memory cut]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMemory:
    """Goal, completed and failed work as one system message in front of the history.

    Imitates MyCodeAgent f670268: derived from the log at every step and cut to a number of characters. It
    changes with nearly every step, so no cached prefix survives behind it. The imitated harness also lists
    event ids, which other transcripts do not have; log indices stand in for them.
    """

    enabled: bool = False
    chars: int = 4_000

    def messages(self, moment: Moment) -> tuple[Message, ...]:
        """The memory message; none while it is switched off or nothing has happened."""
        if not self.enabled or moment.window.end <= moment.floor:
            return ()
        text = _render(moment, self.chars)
        return (Message(index=-1, role="system", blocks=(Text(text=text),), origin="injected", detail="session memory"),)


def _render(moment: Moment, chars: int) -> str:
    goal = _goal(moment)
    head = f"## Session Memory\nSource: log {moment.floor}..{moment.window.end - 1}\nCurrent Goal: {goal}"
    done, failed = _outcomes(moment, chars)
    parts = [head]
    parts += [f"Failed Attempts:\n{failed}"] if failed else []
    parts += [f"Completed Work:\n{done}"] if done else []
    text = "\n".join(parts)
    return text if len(text) <= chars else text[: max(0, chars - len(_CUT_NOTE))] + _CUT_NOTE


def _goal(moment: Moment) -> str:
    for index in reversed([i for i in moment.log.rounds if moment.floor <= i < moment.window.end]):
        message = moment.log.messages[index]
        if message.origin == "human":
            return message.text.strip()
    return ""


def _outcomes(moment: Moment, chars: int) -> tuple[str, str]:
    """Lines for finished and failed calls, oldest first, until the budget is full."""
    done: list[str] = []
    failed: list[str] = []
    room = chars
    for message in moment.log.messages[moment.floor:moment.window.end]:
        for result in message.results:
            line = f"- {'Failed' if result.is_error else 'Completed'} tool {result.name or 'unknown'} ({result.call_id})."
            (failed if result.is_error else done).append(line)
            room -= len(line)
        if room < 0:
            break
    return "\n".join(done), "\n".join(failed)


REINJECTIONS: Mapping[str, type] = {"session-memory": SessionMemory}
"""Names for `use = …` in a reinjection table."""
