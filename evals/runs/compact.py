"""Measurements of many trials in little memory: names, levels and reasons once, and the numbers as numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

from evals.metrics.base import Level, Measurement
from evals.trial import FileResult, SessionRow, TrialRow

_EXACT = 2 ** 53
"""Whole numbers below this are themselves as floats."""


@dataclass(frozen=True)
class Shape:
    """What the measurements of many trials have in common."""

    names: tuple[str, ...]
    level: tuple[Level, ...]
    reason: tuple[str | None, ...]
    whole: tuple[bool, ...]
    """Which values are whole numbers."""

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The position of each name."""
        return {name: n for n, name in enumerate(self.names)}

    @cached_property
    def levels(self) -> Mapping[str, Level]:
        """The level of each name."""
        return dict(zip(self.names, self.level, strict=True))

    @cached_property
    def missing(self) -> Mapping[str, str | None]:
        """Why each missing value is missing."""
        return {name: why for name, why in zip(self.names, self.reason, strict=True) if why is not None}


class Values(Mapping[str, "float | None"]):
    """Values by name."""

    __slots__ = ("_numbers", "_shape")

    def __init__(self, shape: Shape, numbers: array[float]) -> None:
        self._shape, self._numbers = shape, numbers

    def __getitem__(self, name: str) -> float | None:
        return self.at(self._shape.place[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._shape.names)

    def __len__(self) -> int:
        return len(self._numbers)

    def at(self, place: int) -> float | None:
        """The value at a position."""
        if self._shape.reason[place] is not None:
            return None
        number = self._numbers[place]
        return int(number) if self._shape.whole[place] else number


class Compact(Sequence[Measurement]):
    """A trial's measurements; each is made when it is looked at."""

    __slots__ = ("shape", "values")

    def __init__(self, shape: Shape, values: Values) -> None:
        self.shape, self.values = shape, values

    @overload
    def __getitem__(self, place: int) -> Measurement: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Measurement]: ...
    def __getitem__(self, place: int | slice) -> Measurement | Sequence[Measurement]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        return Measurement(name=self.shape.names[place], value=self.values.at(place), level=self.shape.level[place],
                           reason=self.shape.reason[place])

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((self.shape.names, tuple(self.values.values())))


@dataclass
class Compactor:
    """Makes results small; what they have in common is held once."""

    shapes: dict[Shape, Shape] = field(default_factory=dict)

    def result(self, result: FileResult) -> FileResult:
        """The same result in less memory."""
        return replace(result, sessions=tuple(map(self._session, result.sessions)))

    def _session(self, row: SessionRow) -> SessionRow:
        recorded = self._trial(row.recorded) if row.recorded else None
        return replace(row, recorded=recorded, trials=tuple(map(self._trial, row.trials)))

    def _trial(self, row: TrialRow) -> TrialRow:
        found = row.measurements
        if not all(map(_fits, found)):
            return row
        shape = Shape(names=tuple(m.name for m in found), level=tuple(m.level for m in found),
                      reason=tuple(None if m.value is not None else m.reason for m in found),
                      whole=tuple(isinstance(m.value, int) for m in found))
        shape = self.shapes.setdefault(shape, shape)
        return replace(row, measurements=Compact(shape, Values(shape, array("d", [m.value or 0.0 for m in found]))))


def _fits(measurement: Measurement) -> bool:
    """Whether nothing of a measurement is lost: it is a number as a float holds it, or missing with a reason."""
    value = measurement.value
    if value is None:
        return measurement.reason is not None
    return measurement.reason is None and (isinstance(value, float) or (type(value) is int and abs(value) < _EXACT))
