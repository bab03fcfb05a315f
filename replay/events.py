"""Events: every change of a window, every refusal, with the reason and the numbers that decided."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from replay.policy.base import Decision
from replay.window import Inserted

EventKind = Literal["full", "micro", "clear", "skipped", "refused", "retried", "end"]


SENTENCES: Mapping[str, str] = MappingProxyType({
    "rounds_not_enough": "A round begins at each prompt: however many steps and tokens they hold, these are too few "
                         "rounds to cut.",
    "no_boundary": "There is no place in the window at which this policy may cut.",
    "everything_fits": "The messages are smaller than the tail that is to be kept, so nothing can go.",
    "retry_exhausted": "Every compaction that the policy allows was made and the request was still refused.",
    "no_reactive_rule": "The policy knows no way out of a refused request.",
    "nothing_compacted": "A compaction was tried and could not take anything away.",
    "kept_tail_lost": "The policy counts from behind its last compaction, so what that one kept is neither kept nor "
                      "summarised now.",
    "earlier_summary_lost": "The earlier summary is not part of the new one: what it spoke for is lost.",
    "nothing_summarised": "Nothing of what was cut fits the limit of the summary call: no model is asked, and a fixed "
                          "sentence stands for all of it.",
    "stale_usage": "The usage that decided was reported for the window before its last change, so it is too high.",
    "summary_unavailable": "No summary could be had, so nothing was changed.",
    "summary_inflated": "The summary would have been larger than what it stands for, so nothing was changed.",
    "summary_input_too_large": "The call for a summary does not fit the window itself, so nothing was changed.",
    "breaker_open": "The policy failed several times in a row at this, so it does not try again in this session.",
    "cooling_down": "The policy failed at this a short while ago, so it waits before it tries again.",
    "not_loaded": "A new process of the harness did not load these messages.",
})
"""Reasons that a person may not understand by themselves, in a sentence."""


class Event(NamedTuple):
    """Something that happened to a lane's window before a step's request was answered."""

    kind: EventKind
    """`full` compaction, `micro` (tool results blanked), `clear`, `skipped` (a due change was not made),
    `refused` (the request did not fit), `retried` (accepted after a reactive change), `end` (the run is over)."""
    step: int
    stage: str
    reason: str
    reactive: bool = False
    """It answered a refused request; planned otherwise."""
    estimated_tokens: int | None = None
    """What the stage's measure said."""
    threshold: int | None = None
    tokens_before: int | None = None
    """Counted tokens of the window before (refused: tokens of the refused request)."""
    tokens_after: int | None = None
    dropped: tuple[int, ...] = ()
    """Log indices that left the view and are in no summary."""
    summarised: tuple[int, ...] = ()
    """Log indices that left the view and were in the summary's input."""
    elided: tuple[int, ...] = ()
    """Log indices whose results were blanked."""
    added: Inserted | None = None
    """The summary."""
    summariser: str | None = None
    summary_input_tokens: int | None = None
    """Counted tokens that the summariser read."""
    checkpoint: str | None = None
    futile: bool = False
    """A change that did not make the window smaller."""
    faults: tuple[str, ...] = ()
    """Mistakes of the imitated harness that showed here, as `SENTENCES` names them."""
    keeps_cache: bool = False
    """The provider made the change in its own cache, which stays warm behind it."""
    attempts: int = 1
    """Times the refused request was sent."""

    @classmethod
    def skipped(cls, step: int, decision: Decision, reason: str, reactive: bool) -> Event:
        """A due change that a part refused to make."""
        return cls(kind="skipped", step=step, stage=decision.stage, reason=reason, reactive=reactive,
                   estimated_tokens=decision.estimated_tokens, threshold=decision.threshold)

    @property
    def sentence(self) -> str:
        """What a person should know of it besides the numbers; empty where the numbers say all."""
        if self.kind in ("skipped", "end", "clear"):
            return SENTENCES.get(self.reason, "")
        lost = self.kind == "full" and self.added is not None and self.dropped
        said = [f"{len(self.dropped)} messages left the view and are in no summary."] if lost else []
        said += [SENTENCES[fault] for fault in self.faults]
        if self.kind == "full" and self.futile:
            said.append("The window did not become smaller: the summary was paid for without a gain.")
        return " ".join(said)

    @property
    def gain(self) -> int | None:
        """Counted tokens that the change saved; None where none were measured."""
        if self.tokens_before is None or self.tokens_after is None:
            return None
        return self.tokens_before - self.tokens_after

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the summary's text."""
        keys = ("kind", "step", "stage", "reason", "reactive", "estimated_tokens", "threshold", "tokens_before",
                "tokens_after", "summariser", "summary_input_tokens", "checkpoint", "futile", "keeps_cache", "attempts",
                "gain", "sentence")
        lists = {"dropped": list(self.dropped), "summarised": list(self.summarised), "elided": list(self.elided),
                 "faults": list(self.faults)}
        return {key: getattr(self, key) for key in keys} | lists
