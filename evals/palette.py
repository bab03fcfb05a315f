"""The colours and dashes of policies, the same on every page; with each colour goes a dash, so none says it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replay.log import CLASSES
from replay.policy.load import RECORDED

COLOURS = ("#2B87C8", "#D55E00", "#009E73", "#CC79A7", "#C98A00", "#4FA8DC", "#8C6D31")
"""Of policies, in order: told apart by colour-blind people, readable on white and on black."""
RECORDED_COLOUR = "#7F7F7F"
WARNING_COLOUR = "#D55E00"
"""Of the window and of what goes beyond it."""
LOST_COLOUR = "#D55E00"
INK_COLOUR = "#808080"
"""Of lines and marks that belong to no policy: readable on white and on black."""
CLASS_COLOURS: Mapping[str, str] = dict(zip(CLASSES, ("#7F7F7F", "#56B4E9", "#0072B2", "#E69F00", "#009E73", "#CC79A7"),
                                            strict=True))
"""Of what a view is made of."""
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 2), (2, 2), (10, 3, 2, 3))


def colour_of(policy: str, policies: Sequence[str]) -> str:
    """The colour of a policy among those of its run; what was recorded is always grey."""
    return RECORDED_COLOUR if policy == RECORDED.name else COLOURS[_place(policy, policies) % len(COLOURS)]


def dash_of(policy: str, policies: Sequence[str]) -> tuple[int, ...]:
    """The dash of a policy's line; one more than the colours repeat, so that a pair is not met again soon."""
    if policy == RECORDED.name:
        return DASHES[0]
    place = _place(policy, policies)
    return DASHES[(place % len(COLOURS) + place // len(COLOURS)) % len(DASHES)]


def _place(policy: str, policies: Sequence[str]) -> int:
    return [p for p in policies if p != RECORDED.name].index(policy)
