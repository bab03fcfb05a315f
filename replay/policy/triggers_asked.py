"""A trigger without a measure: the person asked, or nobody but the reactive rule does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from replay.policy.base import Decision, Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Fires where the person asked for a compaction; a stage that only a refused request forces names no prompt."""

    before_prompts: tuple[int, ...] = ()
    """Numbers of the person's prompts, from 1, in front of which a compaction was asked for."""

    def words(self) -> str:
        """The rule in words."""
        if not self.before_prompts:
            return "only when it is asked for"
        return f"where the person asked for it, before prompt {', '.join(map(str, self.before_prompts))}"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the next prompt is one of those."""
        fires = 1 + bisect_left(moment.log.prompts, moment.window.end) in self.before_prompts
        return Decision(stage=stage, fires=fires, reason="asked" if fires else "not_asked", estimated_tokens=measured)


ASKED_TRIGGERS: Mapping[str, type] = {"asked": Asked}
"""Names for `use = …` in a trigger table."""
