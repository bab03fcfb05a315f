"""How faithful a preset is to recorded compactions: when it would have fired, and what it would have kept."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from replay.engine import Session, arrivals
from replay.lanes import recorded_windows
from replay.policy.advance import Setting, State, advance, start
from replay.policy.base import Moment, Refusal
from replay.policy.own_presets import own_capacity, own_preset
from replay.policy.policy import Policy
from replay.policy.summarisers import summariser
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import RecordedCompaction, Step, Transcript
from replay.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A recorded compaction beside what the preset would have done from the recorded window before it."""

    step: int
    """The step whose view it changed first."""
    fired: int | None
    """The step at which the preset fired first since the compaction before; None: not by then."""
    kept_overlap: float | None
    """Kept messages in common by all kept in either; None where the preset refused to cut."""

    @property
    def distance(self) -> int | None:
        """Steps by which the preset was early; 0: at the same step."""
        return None if self.fired is None else self.step - self.fired


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness:
    """A preset on one session with recorded compactions."""

    path: str
    preset: str
    window: int
    agreements: tuple[Agreement, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data: the median distance in steps, the mean overlap."""
        distances = [abs(a.distance) for a in self.agreements if a.distance is not None]
        overlaps = [a.kept_overlap for a in self.agreements if a.kept_overlap is not None]
        return {"path": self.path, "preset": self.preset, "window": self.window, "compactions": len(self.agreements),
                "same_step": sum(d == 0 for d in distances), "not_fired": sum(a.fired is None for a in self.agreements),
                "step_distance": statistics.median(distances) if distances else None,
                "kept_overlap": statistics.fmean(overlaps) if overlaps else None,
                "details": [asdict(a) for a in self.agreements]}


def faithfulness(transcript: Transcript) -> Faithfulness | None:
    """How the harness's own preset does on a session; None where there is no preset or no planned compaction.

    From every recorded window the preset decides anew, so that one difference does not spoil the next comparison.
    """
    chosen = own_preset(transcript)
    if chosen is None or not any(_is_planned(c) for c in transcript.compactions):
        return None
    capacity = own_capacity(transcript, chosen)
    session = Session(transcript, ByteCounter())
    setting = Setting(log=session.log, policy=chosen, capacity=capacity, figure=session.gauge.figure, billed=True,
                      summariser=summariser("recorded", transcript.compactions), refusals={})
    agreements = tuple(_agreements(transcript, session, setting))
    if not agreements:
        return None
    return Faithfulness(path=transcript.path, preset=chosen.name, window=capacity.window, agreements=agreements)


def _is_planned(compaction: RecordedCompaction) -> bool:
    return compaction.kind == "full" and compaction.trigger != "manual"


def _agreements(transcript: Transcript, session: Session, setting: Setting) -> Iterator[Agreement]:
    planned = [c for c in transcript.compactions if _is_planned(c)]
    state, before, fired = start(setting.policy), Window(), None
    recorded = recorded_windows(transcript.main, session.log)
    for arrived, (step, window, _) in zip(arrivals(transcript, session.log), recorded, strict=True):
        done = advance(state, arrived, setting)
        if fired is None and any(e.kind == "full" for e in done.events):
            fired = step.number
        state = _anchored(done.state, state, window)
        while planned and planned[0].position <= step.start:
            compaction = planned.pop(0)
            yield Agreement(step=step.number, fired=fired, kept_overlap=_overlap(compaction, before, step, setting))
            state, fired = state._replace(checkpoint=compaction.position, compactions=state.compactions + 1), None
        before = window


def _anchored(after: State, earlier: State, window: Window) -> State:
    """The state with the window that was really sent; a compaction of the preset's own is forgotten."""
    return after._replace(window=window, checkpoint=earlier.checkpoint, compactions=earlier.compactions,
                          skipped=frozenset(), told=after.told._replace(stale=False))


def _overlap(compaction: RecordedCompaction, before: Window, step: Step, setting: Setting) -> float | None:
    held = before.extended(min(compaction.position, step.start))
    moment = Moment(log=setting.log, window=held, capacity=setting.capacity, step=step.number)
    cut = _cut(setting.policy, moment)
    if cut is None:
        return None
    kept = {part for part in compaction.window if isinstance(part, int)}
    ours = {i for i in held.indices() if i >= cut}
    return len(kept & ours) / len(kept | ours) if kept | ours else 1.0


def _cut(chosen: Policy, moment: Moment) -> int | None:
    rule = next((s.cut for s in chosen.stages if s.cut is not None), None)
    cut = rule.cut(moment) if rule is not None else Refusal("no_cut")
    return None if isinstance(cut, Refusal) else cut.keep_from
