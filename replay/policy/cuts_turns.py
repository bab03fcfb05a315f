"""The cut rule that weighs whole turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.estimators_json import JsonCharacters
from replay.window import Inserted, Item, Span

MARGIN = 1
"""Characters by which the brackets around a list of messages exceed the commas between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepTurns:
    """Keeps the newest whole turns that fit a budget; the first that does not fit is split where its end fits.

    The budget is a share of the window less the output reserve, rounded down, within bounds. A turn begins with a
    message of the user, the program's request to continue included; a split turn loses its beginning. Where
    everything fits nothing is kept. Imitates OpenCode; `before_prompt` is its way after a refused request: the
    last message of the user is sent again behind what it keeps of the turns before, the work since is lost; without
    a turn before it everything is summarised like elsewhere.
    """

    share: float = 0.25
    least: int = 2_000
    most: int = 15_000
    before_prompt: bool = False
    estimator: JsonCharacters = field(default_factory=lambda: JsonCharacters(rounding="floor-total"),
                                      metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse bounds that exclude each other."""
        check(self, "share", 0 <= self.share <= 1, "a fraction from 0 to 1")
        whole = self.estimator.rounding == "floor-total"
        check(self.estimator, "rounding", whole, "floor-total: turns are rounded whole")
        check(self, "most", 0 <= self.least <= self.most, "at least the lower bound")

    def words(self) -> str:
        """The rule in words."""
        tail = (f"the newest turns stay that fit {self.share:.0%} of the window without the output reserve, at least "
                f"{self.least:,} and at most {self.most:,} tokens; the one that does not fit is split")
        return f"the last prompt is sent again and of what stands before it {tail}" if self.before_prompt else tail

    def budget(self, moment: Moment) -> int:
        """Tokens that may stay."""
        return min(self.most, max(self.least, int(moment.capacity.usable * self.share)))

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Where the kept turns begin; the end where nothing stays."""
        units = _units(moment)
        starts = [place for place, unit in enumerate(units) if unit.begins]
        end = moment.window.end
        if self.before_prompt and len(starts) > 1:
            return self._without_last(moment, units, starts)
        return Cut(keep_from=self._tail(moment, units, starts, end), may_be_empty=False)

    def _without_last(self, moment: Moment, units: list[_Unit], starts: list[int]) -> Cut:
        """The last turn's prompt, and the tail of the turns before it."""
        last = units[starts[-1]]
        tail = moment.log.joints[self._tail(moment, units[:starts[-1]], starts[:-1], last.index)]
        spans = (i for i in moment.window.items if isinstance(i, Span))
        before = tuple(Span(max(s.start, tail), min(s.stop, last.index)) for s in spans
                       if s.stop > tail and s.start < last.index)
        again = last.written or Span(last.index, last.index + 1)
        return Cut(keep_from=moment.window.end, kept=(*before, again), read_until=last.index)

    def _tail(self, moment: Moment, units: list[_Unit], starts: list[int], end: int) -> int:
        """The log index at which the tail of these units begins."""
        sums = _sums(moment, units, self.estimator)
        room, stop, keep = self.budget(moment), len(units), None
        for start in reversed(starts):
            size = self._tokens(sums[stop] - sums[start])
            if size > room:
                split = (p for p in range(start + 1, stop) if self._tokens(sums[stop] - sums[p]) <= room)
                keep = next(split, keep) if room > 0 else keep
                break
            room, stop, keep = room - size, start, start
        return units[keep].index if keep else end

    def _tokens(self, chars: int) -> int:
        """Characters of messages as tokens of their list, to the nearest."""
        return (2 * (chars + MARGIN) + self.estimator.divisor) // (2 * self.estimator.divisor)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A message as the harness keeps it: a response with its results, a message of the user."""

    index: int
    """Log index at which it begins; of a written message that of what follows it."""
    items: tuple[Item, ...]
    begins: bool
    """A turn begins with it."""
    written: Inserted | None = None


def _units(moment: Moment) -> list[_Unit]:
    """What the window holds behind its summary, message by message."""
    units: list[_Unit] = []
    messages, joints, summaries = moment.log.messages, moment.log.joints, moment.window.summaries()
    behind = not summaries
    for item in moment.window.items:
        if isinstance(item, Inserted):
            if behind and item.message.role == "user":
                units.append(_Unit(moment.window.end, (item,), True, item))
            behind = behind or item in summaries
            continue
        for i in range(item.start, item.stop):
            message = messages[i]
            if units and units[-1].written is not None and units[-1].index == moment.window.end:
                units[-1] = _Unit(i, units[-1].items, True, units[-1].written)
            if message.origin == "system":
                continue
            if message.role == "tool" and units and units[-1].written is None:
                units[-1] = _Unit(units[-1].index, (*units[-1].items, Span(i, i + 1)), units[-1].begins)
            else:
                # A prompt between a call and its result begins no turn of its own here: the pair stays whole.
                units.append(_Unit(i, (Span(i, i + 1),), message.role == "user" and joints[i] == i))
    return units


def _sums(moment: Moment, units: list[_Unit], estimator: Characters) -> list[int]:
    """Characters of the units below each place; each message brings a comma."""
    sums = [0]
    for unit in units:
        sizes = (moment.log.item_size(i, moment.window.marks, estimator) + 1 for i in unit.items)
        sums.append(sums[-1] + sum(sizes))
    return sums


TURN_CUTS: Mapping[str, type] = {"turns": KeepTurns}
"""Names for `use = …` in a cut table."""
