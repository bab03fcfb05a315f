"""Work that goes on although workers end: what is left is done again, and what ends a worker twice is a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from evals.runs.engine import Engine, WorkerEnded, each
from evals.runs.trying import READING, Place, Trying
from replay.errors import RewindowError

R = TypeVar("R")
PATIENCE = 3
"""So often workers may end in a row with nothing done and no mark of what they were at."""
ENDED = "the process that replayed it ended (a native crash, or the system took its memory away)"


class Item(Protocol):
    """A numbered piece of work, with the trials that must not be tried again."""

    @property
    def number(self) -> int:
        """Its number."""


I = TypeVar("I", bound=Item)  # noqa: E741 - the type variable of an item


@dataclass
class Recovery(Generic[I, R]):
    """Carries out items on an engine, each once, whatever becomes of the workers."""

    work: Callable[[I], R]
    engine: Engine
    trying: Trying
    without: Callable[[I, Place], I]
    """The item without one of its trials."""
    unreadable: Callable[[I], R]
    """The result of an item whose reading ends the process."""
    done: set[int] = field(default_factory=set)

    def results(self, items: Sequence[I]) -> Iterator[tuple[int, R]]:
        """Number and result of each item, as they are done."""
        work, fruitless = _Numbered(self.work), 0
        while todo := [item for item in items if item.number not in self.done]:
            try:
                for number, result in each(work, todo, self.engine):
                    self.done.add(number)
                    fruitless = 0
                    yield number, result
            except WorkerEnded:
                left = self.trying.left()
                fruitless += not left
                if fruitless >= PATIENCE:
                    raise RewindowError("the workers end again and again, and none says at what; is their memory "
                                        "enough? Nothing that is done is lost") from None
                for item in (i for i in todo if i.number in left and i.number not in self.done):
                    self.done.add(item.number)
                    yield item.number, self._alone(item)

    def _alone(self, item: I) -> R:
        """An item in a process of its own; a trial that ends it is left out the next time."""
        alone = replace(self.engine, backend="processes", jobs=2, address=None)
        while True:
            try:
                return next(iter(each(self.work, [item], alone)))
            except WorkerEnded:
                place = self.trying.left().get(item.number, Place(READING, ""))
                if place.position == READING:
                    return self.unreadable(item)
                item = self.without(item, place)


@dataclass(frozen=True, slots=True)
class _Numbered(Generic[I, R]):
    work: Callable[[I], R]

    def __call__(self, item: I) -> tuple[int, R]:
        return item.number, self.work(item)
