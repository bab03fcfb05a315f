"""Cut rules that look for a place at or behind the point where the tail's budget is used up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.tails import filling


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepTokensForward:
    """Keeps about a number of tokens and cuts at the first message of the tail that is no tool result.

    Imitates Pi: the walk from the end stops at the message that fills the budget, that message included, and the
    cut moves forward from there, so the tail may be smaller than the budget. `no_point` says what happens where
    only results follow: `first` (0.58, 0.74) keeps everything, `last` (1.6) moves back to the last valid place.
    `base` says where a second compaction begins: `tail` with what the first one kept, `marker` (0.58) behind it,
    so that the first tail is neither kept nor summarised.
    """

    tail_tokens: int = 20_000
    base: Literal["tail", "marker"] = "tail"
    no_point: Literal["first", "last"] = "last"
    summarises_nothing: bool = False
    """A summary is asked for and put in front even where nothing goes (0.58, 0.74)."""
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "tail_tokens", self.tail_tokens >= 0, "0 or more tokens")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The place at or behind the filled budget, with the turn that it parts."""
        start = moment.checkpoint or 0 if self.base == "marker" else 0
        visible = [i for i in moment.window.indices() if i >= start and moment.log.messages[i].origin != "system"]
        if not visible:
            return Refusal("no_messages_to_compact")
        points = [i for i in visible if moment.log.messages[i].role != "tool"]
        keep_from = self._place(moment, start, points) if points else visible[0]
        if keep_from == visible[0] and not self.summarises_nothing:
            return Refusal("everything_fits")
        return Cut(keep_from=keep_from, start=start, may_be_empty=self.summarises_nothing,
                   turn_start=_turn_start(moment, keep_from, visible))

    def _place(self, moment: Moment, start: int, points: list[int]) -> int:
        filled = filling(moment, self.estimator, self.tail_tokens, start)
        if filled is None:
            return points[0]
        behind = next((p for p in points if p >= filled), None)
        return behind if behind is not None else points[0 if self.no_point == "first" else -1]


def _turn_start(moment: Moment, keep_from: int, visible: list[int]) -> int | None:
    """Where the turn that a cut parts began; None where the cut starts a turn or its prompt is gone already."""
    if moment.log.messages[keep_from].role == "user":
        return None
    return next((i for i in reversed(visible) if i < keep_from and moment.log.messages[i].role == "user"), None)


FORWARD_CUTS: Mapping[str, type] = {"tokens-forward": KeepTokensForward}
"""Names for `use = …` in a cut table."""
