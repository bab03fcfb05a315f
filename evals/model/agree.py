"""Next-action agreement: what a model would do at recorded steps from each policy's view, against what was done.

A different action may be as good: only differences between policies mean something, beside the references that the
same model gives with the whole history (`full`), against itself (`self`) and by chance.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from evals.actions import actions, plain_name
from evals.metrics.base import Measurement
from evals.model.asks import Ask, Reply
from evals.model.study import Answered, Item, Subject, mean, measurement
from evals.model.texts import QUOTED, data, view_text
from replay.blocks import ToolCall
from replay.engine import Lane

STRATA = (("near", 0, 5), ("mid", 6, 20), ("far", 21, 1_000_000_000))
"""Steps since the last compaction of any policy; fixed before anything is measured."""
SYSTEM = (f"You are the coding agent whose record follows. {QUOTED} Say which single tool call you would make next. "
          'Answer with JSON alone: {"tool": name, "arguments": {…}}.')
LEAST_RANGE = 0.05
"""Between chance and self-agreement; below it a normalised share says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Samples steps behind the first difference and asks for the next action from each view."""

    model: str
    steps: int = 20
    seed: int = 1
    temperature: float = 0.0
    max_tokens: int = 1_000
    suffix: str = ""
    """Behind every measurement's name, where another model does the same."""
    name: str = "agree"

    def items(self, subject: Subject) -> Iterator[Item]:
        """For each policy and sampled step its view, the whole history, and that once more."""
        tools = _tools(subject)
        for number, stratum in sampled(subject, self.steps, self.seed):
            gold = {"actions": [list(a) for a in _recorded(subject, number)], "chance": _chance(subject, number)}
            full = self._ask(subject, subject.full, number, tools, 0)
            again = self._ask(subject, subject.full, number, tools, 1)
            for policy, lane in subject.lanes.items():
                asks = {"view": self._ask(subject, lane, number, tools, 0), "full": full, "self": again}
                for role, ask in asks.items():
                    yield Item(study=self.name, policy=policy, step=subject.full.views[number].step, role=role,
                               ask=ask, gold=gold, group=stratum)

    def _ask(self, subject: Subject, lane: Lane, number: int, tools: str, replicate: int) -> Ask:
        view = view_text(subject.session.log, lane.views[number].window)
        return Ask(model=self.model, system=SYSTEM, prompt=f"{view}\n\nTools:\n{tools}\n\nThe next call as JSON:",
                   max_tokens=self.max_tokens, temperature=self.temperature, replicate=replicate,
                   purpose=f"agree{self.suffix}")

    def score(self, item: Item, reply: Reply) -> float | None:
        """Agreement with the recorded action, from 0 to 1; what is no call agrees with nothing."""
        if reply.problem is not None:
            return None
        said = _said(reply)
        return 0.0 if said is None else max(similarity(said, (t, g)) for t, g in item.gold["actions"])

    def measure(self, answered: Sequence[Answered]) -> Iterator[Measurement]:
        """Agreement, its references, the paired drop, and agreement by distance from the last compaction."""
        why = "no answered step at which a view differs from the whole history"
        roles = {r: {a.item.step: a for a in answered if a.item.role == r} for r in ("view", "full", "self")}
        view, full = roles["view"], roles["full"]
        both = [s for s in view if s in full and view[s].score is not None and full[s].score is not None]
        found = {"agreement": mean(view[s].score for s in both), "full": mean(full[s].score for s in both),
                 "self": mean(_with_itself(full[s], roles["self"].get(s)) for s in both),
                 "chance": mean(view[s].item.gold["chance"] for s in both)}
        drop = mean((full[s].score or 0.0) - (view[s].score or 0.0) for s in both)
        for name, value in {**found, "drop": drop, "normalised": _normalised(found)}.items():
            yield self._named(name, value, why)
        for stratum, _, _ in STRATA:
            yield self._named(f"drop_{stratum}", mean((full[s].score or 0.0) - (view[s].score or 0.0) for s in both
                                                      if view[s].item.group == stratum), why)
        yield self._named("steps", float(len(both)) if answered else None, why)
        yield self._named("unanswered", float(len(view) - len(both)) if answered else None, why)

    def _named(self, name: str, value: float | None, why: str) -> Measurement:
        return measurement(f"next_action_{name}{self.suffix}", value, why)


def sampled(subject: Subject, count: int, seed: int) -> list[tuple[int, str]]:
    """Positions of at most `count` steps with a call at or behind the first difference, with their strata.

    Every stratum gives its share, so that few steps right behind a compaction are not lost among the others.
    """
    starts = [s for p in subject.lanes if (s := subject.differs_from(p)) is not None]
    if not starts:
        return []
    compacted = sorted({e.step for lane in subject.lanes.values() for e in lane.events if e.kind == "full"})
    strata: dict[str, list[int]] = {name: [] for name, _, _ in STRATA}
    for number, view in enumerate(subject.full.views):
        if view.step >= min(starts) and _recorded(subject, number):
            at = bisect_right(compacted, view.step)
            distance = view.step - compacted[at - 1] if at else view.step - min(starts)
            strata[next(n for n, low, high in STRATA if low <= distance <= high)].append(number)
    draw = random.Random(seed)  # noqa: S311 - a sample of steps, nothing secret
    queues = {name: draw.sample(found, len(found)) for name, found in strata.items()}
    chosen: list[tuple[int, str]] = []
    while len(chosen) < count and any(queues.values()):
        chosen += [(queue.pop(), name) for name, queue in queues.items() if queue]
    return sorted(chosen[:count])


def similarity(a: Sequence[Any], b: Sequence[Any]) -> float:
    """Of two calls (tool, arguments): the mean of same tool, same target, and words of the arguments in common."""
    same_tool = plain_name(a[0]) == plain_name(b[0])
    return (same_tool + (same_tool and target(a[1]) == target(b[1])) + _jaccard(a[1], b[1])) / 3


def target(arguments: Mapping[str, Any]) -> str:
    """What a call is about: its file, the first word of its command, else its first text."""
    for key in ("file_path", "path", "filename", "absolute_path", "target_file", "file"):
        if isinstance(value := arguments.get(key), str):
            return value.removeprefix("./")
    for key in ("command", "cmd", "script"):
        value = arguments.get(key)
        words = value if isinstance(value, list) else str(value or "").split()
        if words:
            return str(words[0])
    return next((v for v in arguments.values() if isinstance(v, str)), "")


def _jaccard(a: Any, b: Any) -> float:
    mine, theirs = _words(a), _words(b)
    return len(mine & theirs) / len(mine | theirs) if mine or theirs else 1.0


def _words(arguments: Any) -> set[str]:
    values = arguments.values() if isinstance(arguments, Mapping) else [arguments]
    return {w for v in values for w in re.findall(r"[\w./-]+", v if isinstance(v, str) else orjson.dumps(v).decode())}


def _said(reply: Reply) -> tuple[str, dict[str, Any]] | None:
    found = data(reply.text)
    if not isinstance(found, dict) or not isinstance(found.get("tool"), str):
        return None
    given = found.get("arguments")
    return found["tool"], given if isinstance(given, dict) else {}


def _with_itself(a: Answered, b: Answered | None) -> float | None:
    """How alike two samples of the same question are."""
    if b is None or b.reply.problem is not None:
        return None
    one, two = _said(a.reply), _said(b.reply)
    return similarity(one, two) if one and two else float(one == two)


def _normalised(found: Mapping[str, float | None]) -> float | None:
    own, chance, mine = found["self"], found["chance"], found["agreement"]
    if own is None or chance is None or mine is None or own - chance < LEAST_RANGE:
        return None
    return (mine - chance) / (own - chance)


def _recorded(subject: Subject, number: int) -> list[tuple[str, dict[str, Any]]]:
    step = subject.session.log.steps[number]
    if step.response is None:
        return []
    return [_plain(c) for c in subject.session.log.messages[step.response].calls]


def _plain(call: ToolCall) -> tuple[str, dict[str, Any]]:
    return call.name, dict(call.mapping)


def _chance(subject: Subject, number: int) -> float | None:
    """How alike the recorded action is to the session's other actions, on average."""
    own = _recorded(subject, number)
    others = [_plain(a.call) for a in actions(subject.session.log)
              if a.message != subject.session.log.steps[number].response]
    return mean(max(similarity(o, mine) for mine in own) for o in _thinned(others))


def _thinned(found: Sequence[Any], most: int = 200) -> Iterable[Any]:
    """Evenly chosen, so that long sessions stay quick."""
    return found[::max(1, len(found) // most)]


def _tools(subject: Subject) -> str:
    """The tools that the session used, each with the names of its arguments."""
    known: dict[str, dict[str, None]] = {}
    for action in actions(subject.session.log):
        known.setdefault(action.call.name, {}).update(dict.fromkeys(action.call.mapping))
    return "\n".join(f"- {name}({', '.join(sorted(keys))})" for name, keys in sorted(known.items()))
