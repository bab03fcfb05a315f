"""How a session came to know a span: which call brought it in, whether it would bring it again, at what cost."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

from evals.needs import Evidence
from evals.spans_files import Act
from evals.spans_index import block_text
from replay.transcript import Message

HANDLES = 8
"""Newest calls that are tried as handles to a span."""


class Acquisitions:
    """Answers for a session; every answer is worked out once and kept."""

    def __init__(self, made: Evidence) -> None:
        """Nothing is computed yet."""
        self._made = made
        self._by_span: dict[int, list[Act]] = {}
        self._handles: dict[int, tuple[int, ...]] = {}

    def newest(self, need: int) -> Act | None:
        """The newest call before an action whose result holds what the action needs; None where no call's does."""
        acts = self._before(need)
        return acts[-1] if acts else None

    def handles(self, need: int) -> tuple[int, ...]:
        """Blocks of calls that brought what an action needs and still would: nothing that they name was changed since.

        A call that names no file or folder would bring it again only if no file was changed at all.
        """
        known = self._handles.get(need)
        if known is None:
            before = self._made.start_of(self._made.needs.rows[need].step)
            known = self._handles[need] = tuple(
                act.call for act in reversed(self._before(need)[-HANDLES:])
                if act.result is not None and not self._made.files.changed_since(act.deed.paths, act.result, before))
        return known

    def _before(self, need: int) -> list[Act]:
        needs = self._made.needs
        acts = self._of_span(needs.span[need])
        start = self._made.start_of(needs.rows[need].step)
        return acts[:bisect_left(acts, start, key=_result)]

    def _of_span(self, span: int) -> list[Act]:
        """The calls whose results hold a span, in order of their results."""
        known = self._by_span.get(span)
        if known is None:
            by_result = self._made.files.by_result
            known = self._by_span[span] = [by_result[u] for u in self._made.places[span] if u in by_result]
        return known

    @cached_property
    def _by_key(self) -> dict[str, list[Act]]:
        acts: dict[str, list[Act]] = {}
        for act in sorted((a for a in self._made.files.acts if a.result is not None), key=_result):
            acts.setdefault(act.deed.key, []).append(act)
        return acts

    def cost(self, act: Act, before: int) -> tuple[float, float]:
        """Counted tokens of the call and of the result if a call were made again: those of its newest repetition."""
        same = self._by_key[act.deed.key]
        latest = same[max(0, bisect_left(same, before, key=_result) - 1)]
        return self.tokens(latest.call), self.tokens(_result(latest))

    def tokens(self, unit: int) -> float:
        """Counted tokens of a block: its message's, shared out by length where there are several blocks."""
        index, log = self._made.index, self._made.log
        message = log.messages[index.units[unit].message]
        sums = log.sums(log.tokens)
        return (sums[message.index + 1] - sums[message.index]) * _share(message, index.units[unit].block)


def _result(act: Act) -> int:
    return -1 if act.result is None else act.result


def _share(message: Message, block: object) -> float:
    if len(message.blocks) == 1:
        return 1.0
    lengths = [len(block_text(b)) + 1 for b in message.blocks]
    return sum(n for n, b in zip(lengths, message.blocks, strict=True) if b is block) / sum(lengths)
