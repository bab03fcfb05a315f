"""The cut rule that keeps the task and half of everything else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from replay.policy.base import Cut, Moment, Refusal
from replay.policy.cuts_kept import EVENTS
from replay.window import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepTaskAndHalf:
    """Keeps the first prompt and the newer half of the other events; results at the front of that half go.

    Imitates OpenHands' conversation window. Where no message of the person is left nothing is forgotten.
    """

    def words(self) -> str:
        """The rule in words."""
        return "the first prompt and the newer half of the other events stay"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The kept prompt and where the newer half begins."""
        spans = [i for i in moment.window.items if isinstance(i, Span)]
        task = next((i for i in moment.log.prompts if any(s.start <= i < s.stop for s in spans)), None)
        if task is None:
            return Refusal("no_prompt")
        half = max(1, (self._events(moment) - 1) // 2)
        begin = self._begin(moment, spans, half)
        while begin < moment.window.end and moment.log.messages[begin].role == "tool":
            begin += 1
        begin = moment.log.joints[begin]
        return Cut(keep_from=begin, kept=(Span(task, task + 1),) if task < begin else ())

    def _events(self, moment: Moment) -> int:
        return moment.log.size(moment.window, EVENTS)

    def _begin(self, moment: Moment, spans: list[Span], events: int) -> int:
        """Log index where the newest events begin."""
        sums = moment.log.sums(EVENTS)
        for span in reversed(spans):
            size = sums[span.stop] - sums[span.start]
            if size >= events:
                return bisect_left(sums, sums[span.stop] - events + 1, span.start, span.stop) - 1
            events -= size
        return spans[0].start


ESSENTIAL_CUTS: Mapping[str, type] = {"task-and-half": KeepTaskAndHalf}
"""Names for `use = …` in a cut table."""
