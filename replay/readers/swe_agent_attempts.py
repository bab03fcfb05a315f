"""The attempts in a SWE-agent file, and which step of a trajectory made which message of the history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.readers.native import mapping, objects


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the agent: its history and its trajectory."""

    native: Mapping[str, Any]
    number: int = 0

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The trajectory's steps."""
        return objects(self.native.get("trajectory"))

    @property
    def history(self) -> list[Any]:
        """The history's items; rebuilt from the trajectory where a publisher left them out."""
        history = self.native.get("history")
        return history if isinstance(history, list) else rebuilt(self.steps)


def attempts_of(document: Mapping[str, Any]) -> tuple[Attempt, list[Attempt]]:
    """The attempt that counts and the others.

    The file itself holds the chosen attempt; while the loop still ran it holds none, then the last one counts.
    """
    listed = [Attempt(native, number) for number, native in enumerate(objects(document.get("attempts")))]
    if not listed:
        return Attempt(document), []
    chosen = _chosen(document, len(listed))
    main = Attempt(document, chosen) if "history" in document or "trajectory" in document else listed[chosen]
    return main, [a for a in listed if a.number != chosen]


def _chosen(document: Mapping[str, Any], count: int) -> int:
    best = mapping(document.get("info")).get("best_attempt_idx")
    return best if isinstance(best, int) and 0 <= best < count else count - 1


def rebuilt(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A history from the trajectory alone: the first step's prompt, then each response and observation."""
    first = prompt_of(steps[0])[1] if steps else None
    history: list[dict[str, Any]] = list(first) if first else []
    for step in steps:
        history.append({"role": "assistant", "content": step.get("response") or "", "thought": step.get("thought"),
                        "action": step.get("action"), "message_type": "action"})
        history.append({"role": "user", "content": step.get("observation") or "", "message_type": "observation"})
    return history


def prompt_of(step: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]] | None]:
    """The prompt that a step recorded and under which name.

    `query` is what the step itself sent; `messages` is the history as it was shown after the step, thus what
    the next step sent.
    """
    for name in ("query", "messages"):
        listed = step.get(name)
        if isinstance(listed, list) and any(isinstance(item, dict) and "role" in item for item in listed):
            return name, objects(listed)
    return "", None


def aligned(answers: Sequence[str], steps: Sequence[Mapping[str, Any]]) -> tuple[list[int | None], list[list[int]]]:
    """For each answer of the history the step that gave it, and the steps before it that left no answer.

    The second list has one entry more: the steps after the last answer.
    """
    places: dict[str, list[int]] = {}
    for index, step in enumerate(steps):
        places.setdefault(str(step.get("response") or ""), []).append(index)
    made: list[int | None] = [None] * len(answers)
    left: list[list[int]] = [[] for _ in range(len(answers) + 1)]
    at, pending = 0, []
    for number, answer in enumerate(answers):
        known = places.get(answer, [])
        place = bisect_left(known, at)
        if place == len(known):
            pending.append(number)
            continue
        left[number] = _share_out(range(at, known[place]), pending, made)
        made[number], at, pending = known[place], known[place] + 1, []
    left[-1] = _share_out(range(at, len(steps)), pending, made)
    return made, left


def _share_out(steps: range, pending: Sequence[int], made: list[int | None]) -> list[int]:
    """Give skipped steps to the answers whose text matched none, in order; the rest left no answer."""
    for number, step in zip(pending, steps, strict=False):
        made[number] = step
    return list(steps[len(pending):])
