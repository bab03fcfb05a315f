"""Judges of summaries: are its claims true, does it hold what came next, which of two serves better?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from evals.metrics.base import Measurement
from evals.model.asks import Ask, Reply
from evals.model.study import Answered, Item, Subject, mean, measurement
from evals.model.texts import QUOTED, data, fenced, indices_text, message_text, rows, span_text
from replay.window import Inserted

SYSTEM = f"You judge the working memory of a coding agent. {QUOTED} Answer with JSON alone."
FAITHFUL = ("Split the summary into atomic claims. For each say whether the record states it. "
            'Answer {"claims": [{"claim": text, "supported": true or false}]}.')
GROUNDED = ("These are the actions that the agent took next. List what each needed to know from before (files, "
            "commands, values, decisions) and say of each whether the summary supports, contradicts or misses it. "
            'Answer {"needs": [{"need": text, "verdict": "supported" or "contradicted" or "missing"}]}.')
BETTER = ("Which of the two summaries would serve an agent better that takes these next actions? "
          'Answer {"better": "A" or "B" or "tie"}.')
Verdict = Literal["win", "loss", "tie"]


@dataclass(frozen=True, slots=True)
class Case:
    """A summary with what it stands for and what came after it."""

    number: int
    step: int
    summary: Inserted
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """Asks a judge about the summaries that policies show right behind their compactions."""

    model: str
    places: int = 3
    """Summaries of a session that are judged under each policy, evenly chosen."""
    ahead: int = 3
    """Recorded steps behind a summary against which it is held."""
    temperature: float = 0.0
    max_tokens: int = 3_000
    name: str = "judge"

    def items(self, subject: Subject) -> Iterator[Item]:
        """For each summary its claims and its grounding; for each pair of policies both orders."""
        cases = {policy: _cases(subject, policy, self.places) for policy in subject.lanes}
        for policy, found in cases.items():
            for case in found:
                yield self._item(policy, case, "faithful", self._faithful(subject, case))
                if (ahead := _ahead(subject, case, self.ahead)) is not None:
                    yield self._item(policy, case, "grounded", self._ask(
                        f"Summary:\n{fenced([case.text])}\n\nNext actions:\n{ahead}\n\n{GROUNDED}"))
        for one, other in combinations(cases, 2):
            for a, b in zip(cases[one], cases[other], strict=False):
                yield from self._pair(subject, (one, a), (other, b))

    def _faithful(self, subject: Subject, case: Case) -> Ask:
        record = span_text(subject.session.log, case.summary.covers)
        return self._ask(f"Record:\n{record}\n\nSummary:\n{fenced([case.text])}\n\n{FAITHFUL}")

    def _pair(self, subject: Subject, one: tuple[str, Case], other: tuple[str, Case]) -> Iterator[Item]:
        """Both orders, without a policy's name; the actions are those behind the later summary."""
        later = max(one[1], other[1], key=lambda case: case.step)
        ahead = _ahead(subject, later, self.ahead)
        if ahead is None:
            return
        for first, second, role in ((one, other, "first"), (other, one, "second")):
            ask = self._ask(f"Summary A:\n{fenced([first[1].text])}\n\nSummary B:\n{fenced([second[1].text])}\n\n"
                            f"Next actions:\n{ahead}\n\n{BETTER}")
            for mine, against in ((one, other), (other, one)):
                seat = "A" if mine[0] == first[0] else "B"
                gold = {"seat": seat, "longer": len(mine[1].text) - len(against[1].text)}
                yield Item(study=self.name, policy=mine[0], step=later.step, role=role, ask=ask, group=against[0],
                           number=mine[1].number, gold=gold)

    def _item(self, policy: str, case: Case, role: str, ask: Ask) -> Item:
        return Item(study=self.name, policy=policy, step=case.step, role=role, ask=ask, number=case.number)

    def _ask(self, prompt: str) -> Ask:
        return Ask(model=self.model, system=SYSTEM, prompt=prompt, max_tokens=self.max_tokens,
                   temperature=self.temperature, purpose="judge")

    def score(self, item: Item, reply: Reply) -> float | None:
        """The share of claims or needs that are supported; of a pair 1 for this policy's, 0 for the other's, else ½."""
        if reply.problem is not None:
            return None
        if item.role in ("first", "second"):
            return _preferred(reply, item.gold["seat"])
        key, verdict = ("claims", "supported") if item.role == "faithful" else ("needs", "verdict")
        found = [row.get(verdict) for row in rows(reply.text, key) if verdict in row]
        return mean(float(v is True or v == "supported") for v in found)

    def measure(self, answered: Sequence[Answered]) -> Iterator[Measurement]:
        """Faithfulness, grounding, contradictions, the number of claims, and the pairwise share with its flips."""
        why = "no summary with an answer that can be read"
        of = {role: [a for a in answered if a.item.role == role and a.score is not None]
              for role in ("faithful", "grounded")}
        yield measurement("summary_faithfulness", mean(a.score for a in of["faithful"]), why)
        yield measurement("summary_claims", mean(float(len(rows(a.reply.text, "claims"))) for a in of["faithful"]), why)
        yield measurement("summary_grounding", mean(a.score for a in of["grounded"]), why)
        yield measurement("summary_contradictions", mean(_contradicted(a) for a in of["grounded"]), why)
        verdicts = pairs(answered)
        wins = mean({"win": 1.0, "loss": 0.0, "tie": 0.5}[v] for v, _ in verdicts)
        yield measurement("summary_preferred", wins, why)
        yield measurement("judge_flips", mean(float(flipped) for _, flipped in verdicts), why)


def pairs(answered: Sequence[Answered]) -> list[tuple[Verdict, bool]]:
    """The verdict on each pair, and whether the order decided: such a pair is a tie."""
    orders: dict[tuple[str, int, int], dict[str, float]] = {}
    for a in answered:
        if a.item.role in ("first", "second") and a.score is not None:
            orders.setdefault((a.item.group, a.item.step, a.item.number), {})[a.item.role] = a.score
    both = [(o["first"], o["second"]) for o in orders.values() if len(o) == 2]
    return [("win" if x == y == 1 else "loss" if x == y == 0 else "tie", {x, y} == {0.0, 1.0}) for x, y in both]


def _preferred(reply: Reply, seat: str) -> float | None:
    found = data(reply.text)
    better = found.get("better") if isinstance(found, dict) else None
    if better == "tie":
        return 0.5
    return float(better == seat) if better in ("A", "B") else None


def _contradicted(answered: Answered) -> float | None:
    found = rows(answered.reply.text, "needs")
    return mean(float(row.get("verdict") == "contradicted") for row in found)


def _cases(subject: Subject, policy: str, most: int) -> list[Case]:
    """The summaries right behind compactions, evenly chosen."""
    found = []
    for number, view in enumerate(subject.lanes[policy].views):
        summaries = view.window.summaries()
        if summaries and any(e.kind == "full" for e in view.events):
            newest = summaries[-1]
            found.append(Case(number, view.step, newest, message_text(newest.message)))
    if len(found) <= most:
        return found
    return [found[round(i * (len(found) - 1) / max(1, most - 1))] for i in range(most)]


def _ahead(subject: Subject, case: Case, count: int) -> str | None:
    """The recorded actions from a step on; None where the harness compacted there, so that they were taken under a
    summary themselves, or where there are none."""
    views = subject.session.recorded.views[case.number:case.number + count]
    if any(v.window.summaries() for v in views):
        return None
    steps = subject.session.log.steps[case.number:case.number + count]
    found = [s.response for s in steps if s.response is not None]
    return indices_text(subject.session.log, found) if found else None
