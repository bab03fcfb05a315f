"""What differs between a session's record and its golden: the first step of each tier, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evals.gate.entries import Entry, EntryDifference, compared, parsed
from evals.gate.golden import steps_of
from evals.gate.record import TIERS, Record, Tier
from replay.log import Log

_VIEW = re.compile(r"(\d+) ([0-9a-f]{12})( refused| unreached)?(?: =(\d+))?(?: \+(.*))?")
_SHOWN_DIFFERENCES = 12
_MEANING = {"views": "what the model sees", "counts": "counted tokens and decisions", "costs": "the bill"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that is not as the golden says."""

    session: str
    path: str
    tier: str
    what: str
    """One sentence."""
    step: int | None = None
    """The first step that differs; None where the difference is of the whole session."""
    golden: tuple[str, ...] = ()
    """The golden's lines about this step."""
    found: tuple[str, ...] = ()
    differences: tuple[EntryDifference, ...] = ()
    """The labelled difference of the two views."""
    command: str = ""
    """Shows the failure again."""

    @property
    def place(self) -> str:
        """Session and step."""
        return self.session if self.step is None else f"{self.session}, step {self.step}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"session": self.session, "path": self.path, "step": self.step, "tier": self.tier, "what": self.what,
                "golden": list(self.golden), "found": list(self.found),
                "differences": [d.to_json() for d in self.differences], "command": self.command}

    def lines(self) -> list[str]:
        """The failure as lines of text."""
        said = [f"{self.place}: {self.what}"]
        said += [f"  before  {line}" for line in self.golden] + [f"  now     {line}" for line in self.found]
        said += [f"  {d}" for d in self.differences[:_SHOWN_DIFFERENCES]]
        more = len(self.differences) - _SHOWN_DIFFERENCES
        said += [f"  … and {more} more differences of the two views"] if more > 0 else []
        return said + ([f"  again:  {self.command}"] if self.command else [])


def check(log: Log, ours: Record, golden: Record, path: str, tiers: Sequence[Tier]) -> list[Failure]:
    """The first difference of each exact tier that both hold."""
    found = []
    for tier in TIERS:
        if tier == "tolerance" or tier not in tiers or tier not in golden.tiers:
            continue
        failure = _check(log, ours, golden, path, tier)
        found += [failure] if failure else []
    return found


def _check(log: Log, ours: Record, golden: Record, path: str, tier: Tier) -> Failure | None:
    mine, theirs = _by_step(ours.tiers[tier]), _by_step(golden.tiers[tier])
    wrong = [step for step in sorted({*mine, *theirs}, key=lambda s: (s is None, s or 0))
             if _keys(mine.get(step, ())) != _keys(theirs.get(step, ()))]
    if not wrong:
        return None
    step = wrong[0]
    a, b = mine.get(step, ()), theirs.get(step, ())
    differences = tuple(_differences(log, ours, golden, step)) if tier == "views" and step is not None else ()
    extra = len([s for s in wrong[1:] if s is not None])
    what = _sentence(tier, a, b, differences) + (f"; {extra} more steps differ" if extra else "")
    return Failure(session=ours.session, path=path, tier=tier, step=step, what=what, differences=differences,
                   golden=_only(b, a), found=_only(a, b))


def _by_step(lines: tuple[str, ...]) -> dict[int | None, tuple[str, ...]]:
    found: dict[int | None, list[str]] = {}
    for step, line in steps_of(lines):
        found.setdefault(step, []).append(line)
    return {step: tuple(of_step) for step, of_step in found.items()}


def _keys(lines: Sequence[str]) -> list[str]:
    """What counts of each line: of a view its fingerprint and status, not by which change it came about."""
    return [" ".join(m.group(1, 2)) + (m[3] or "") if (m := _VIEW.fullmatch(line)) else line for line in lines]


def _only(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(_keys(others))
    return tuple(line for line, key in zip(lines, _keys(lines), strict=True) if key not in known)


def _sentence(tier: Tier, ours: Sequence[str], golden: Sequence[str],
              differences: Sequence[EntryDifference]) -> str:
    broken = [line.split(" ")[2:] for line in _only(ours, golden) if " pairing " in line]
    if broken:
        return f"a call and its result are parted: {', '.join(' '.join(words) for words in broken[:3])}"
    if tier != "views":
        return f"{_MEANING[tier]} differ" if tier == "counts" else f"{_MEANING[tier]} differs"
    if differences:
        counts = [f"{sum(d.label == label for d in differences)} {label}" for label in dict.fromkeys(
            d.label for d in differences)]
        return f"the view differs: {', '.join(counts)}"
    if _view_lines(ours) != _view_lines(golden):
        return "the view differs"
    events = any(" event " in line for line in (*_only(ours, golden), *_only(golden, ours)))
    return "the events differ" if events else "the recording was parsed differently"


def _view_lines(lines: Sequence[str]) -> list[str]:
    return [key for line, key in zip(lines, _keys(lines), strict=True) if _VIEW.fullmatch(line)]


def _differences(log: Log, ours: Record, golden: Record, step: int) -> Iterator[EntryDifference]:
    yield from compared(log, view_at(ours, step), view_at(golden, step))


def view_at(record: Record, step: int) -> list[Entry]:
    """The entries of a step's view, put together from the changes up to it."""
    view: list[Entry] = []
    for line in record.tiers.get("views", ()):
        match = _VIEW.fullmatch(line)
        if match is None:
            continue
        if match[4]:
            del view[int(match[4]):]
        view += parsed(match[5] or "")
        if int(match[1]) == step:
            return view
    return []
