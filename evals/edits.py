"""Whether a recorded edit could have been typed from what a view shows (edit safety)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal

from evals.needs import Evidence
from evals.spans import lines_of
from evals.spans_files import EditAttempt, Source, normal
from evals.spans_patch import Replacement
from evals.spans_paths import same_path
from evals.visibility import Sight

Verdict = Literal["exact", "lines", "unsafe", "unseen"]
"""`exact`: the old text is in one visible text of the file, as it is after all visible later edits; `lines`: each of
its long lines is visible somewhere; `unsafe`: neither; `unseen`: it stands nowhere in the log before the edit."""


@dataclass(slots=True)
class EditPlan:
    """An edit attempt with everything that does not depend on a lane."""

    attempt: EditAttempt
    lines: tuple[int, ...]
    """Numbers of the spans of its long lines."""
    before: int
    """First block that its action had not seen."""
    seen: bool
    """Whether the whole log before it would have been enough."""
    _tried: dict[tuple[int, tuple[int, ...]], bool] = field(default_factory=dict)

    def verdict(self, made: Evidence, sight: Sight) -> Verdict:
        """How safe the edit is under the current view."""
        if not self.seen:
            return "unseen"
        if any(self._exact(made, source, sight) for source in self.attempt.sources):
            return "exact"
        held = bool(self.lines) and all(sight.holds(n, self.before) != "gone" for n in self.lines)
        return "lines" if held else "unsafe"

    def _exact(self, made: Evidence, source: Source, sight: Sight) -> bool:
        if not sight.shows(source.unit):
            return False
        visible = tuple(u for u in source.later if sight.shows(u))
        if len(visible) == len(source.later):
            return source.holds
        key = (source.unit, visible)
        if key not in self._tried:
            self._tried[key] = normal(self.attempt.part.old) in _after(made, source, visible, self.attempt.part.path)
        return self._tried[key]


def plans(made: Evidence) -> list[EditPlan]:
    """The edits of a session, ready to be judged."""
    return [_plan(made, attempt) for attempt in made.files.edits]


def _plan(made: Evidence, attempt: EditAttempt) -> EditPlan:
    lines = tuple(made.numbers[line] for line in dict.fromkeys(lines_of(attempt.part.old)))
    before = made.index.first_unit[made.index.units[attempt.act.call].message]
    known = bool(lines) and all(bisect_left(made.places[n], before) for n in lines)
    return EditPlan(attempt, lines, before, known or any(s.holds for s in attempt.sources))


def _after(made: Evidence, source: Source, edits: tuple[int, ...], path: str) -> str:
    """A text of a file after those of its later edits that are visible."""
    text = source.text
    for unit in dict.fromkeys(edits):
        for part in made.files.by_call[unit].deed.edits:
            if same_path(part.path, path):
                text = Replacement(path, normal(part.old), normal(part.new), part.every).applied(text)
    return text
