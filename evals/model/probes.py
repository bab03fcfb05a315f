"""Probes: questions about what a policy dropped, asked with its view, with the whole history and with none.

A question is a line of a dropped message with one exact token left out; whether an answer has that token is seen
without a judge. Questions never quote the token, and what an answer guesses without any history is the floor.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evals.metrics.base import Measurement, Trial
from evals.metrics.retention import losses
from evals.model.asks import Ask, Reply
from evals.model.study import Answered, Item, Subject, mean, measurement
from evals.model.texts import QUOTED, view_text
from evals.trial import Settings
from replay.engine import Lane, View
from replay.transcript import Message
from replay.view import lineage, plain_text

FAMILIES = ("recall", "artifact", "continuation", "decision", "lost need")
GAP = "▢▢▢"
LONGEST = 300
MOST_LINES = 200
"""Lines of a message that are looked at."""
LEAST_RANGE = 0.2
"""Between the floor and the whole history; below it a normalised share says nothing."""
SYSTEM = (f"You answer one question about a coding agent's record. {QUOTED} Answer with the missing text alone, to the "
          "letter. If the record does not say it, answer: not in context")
_TOKEN = re.compile(r"[\w.-]*/[\w./-]*\w|\b\w+\.(?:py|js|ts|go|rs|java|c|h|md|toml|json|yaml|yml|txt|cfg|sh)\b"
                    r"|\b[A-Z]\w+(?:Error|Exception|Warning)\b|\b\d{3,}\b|\b[a-z]+_[a-z_]+\w\b")
_NEXT = re.compile(r"\b(?:next|will|going to|remain|todo|then|now)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Probe:
    """A question with the token that answers it."""

    family: str
    question: str
    gold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Asks probes at the steps right behind compactions."""

    model: str
    settings: Settings
    probes: int = 8
    """At each place."""
    places: int = 3
    """Compactions of a session that are asked about under each policy, evenly chosen."""
    replicates: int = 1
    seed: int = 1
    temperature: float = 0.0
    max_tokens: int = 200
    name: str = "probe"

    def items(self, subject: Subject) -> Iterator[Item]:
        """One question at a time: of the view, of the whole history, of none."""
        clear = _clear(subject.session.log.messages)
        for policy, lane in subject.lanes.items():
            lost = self._lost(subject, lane)
            for number in _places(subject, lane, self.places):
                for n, probe in enumerate(self._chosen(subject, lane.views[number], lost, clear)):
                    yield from self._asked(subject, policy, number, n, probe)

    def _asked(self, subject: Subject, policy: str, number: int, n: int, probe: Probe) -> Iterator[Item]:
        log = subject.session.log
        shown = {"view": view_text(log, subject.lanes[policy].views[number].window),
                 "full": view_text(log, subject.full.views[number].window), "none": "(no record)"}
        for role, text in shown.items():
            for replicate in range(self.replicates):
                ask = Ask(model=self.model, system=SYSTEM, prompt=f"{text}\n\n{probe.question}", purpose="probe",
                          max_tokens=self.max_tokens, temperature=self.temperature, replicate=replicate)
                yield Item(study=self.name, policy=policy, step=subject.full.views[number].step, role=role, ask=ask,
                           gold=probe.gold, group=probe.family, number=n * self.replicates + replicate)

    def _lost(self, subject: Subject, lane: Lane) -> list[tuple[int, int, str]]:
        """Needs that the lane lost: step, message and text, heaviest first."""
        trial = Trial(session=subject.session, lane=lane, capacity=self.settings.capacity,
                      pricing=self.settings.pricing)
        return [(loss.step, loss.source, loss.text) for loss in losses(trial, 200) if len(loss.text) > 2]

    def _chosen(self, subject: Subject, view: View, lost: Sequence[tuple[int, int, str]],
                clear: frozenset[str]) -> list[Probe]:
        """Probes of all families in turn, from what the view neither shows nor has left over."""
        log, gone = subject.session.log, lineage(view, subject.session.log)
        dropped = [*gone["summarised"], *gone["dropped"], *gone["elided"]]
        found: dict[str, list[Probe]] = {family: [] for family in FAMILIES}
        draw = random.Random(f"{self.seed} {view.step}")  # noqa: S311 - a choice of questions, nothing secret
        for index in draw.sample(dropped, min(len(dropped), 400)):
            for probe in of_message(log.messages[index], draw):
                if probe.question in clear:
                    found[probe.family].append(probe)
        found["lost need"] = [p for step, source, text in lost if step >= view.step and source in set(dropped)
                              for p in _of_need(log.messages[source], text)]
        return _in_turn(found, self.probes)

    def score(self, item: Item, reply: Reply) -> float | None:
        """1 where the answer has the token, else 0; a refusal or an empty answer says nothing and counts 0."""
        if reply.problem not in (None, "refusal", "empty", "cut-short"):
            return None
        return float(holds(reply.text, item.gold))

    def measure(self, answered: Sequence[Answered]) -> Iterator[Measurement]:
        """Recall, that of the whole history and of none, the loss, its normalised form, and recall by family."""
        why = "no compaction dropped anything that can be asked about"
        found = {role: {(a.item.step, a.item.number): a for a in answered if a.item.role == role}
                 for role in ("view", "full", "none")}
        same = [k for k in found["view"] if all(k in f and f[k].score is not None for f in found.values())]
        view, full, none = (mean(found[r][k].score for k in same) for r in ("view", "full", "none"))
        yield measurement("probe_recall", view, why)
        yield measurement("probe_recall_full", full, why)
        yield measurement("probe_recall_none", none, why)
        yield measurement("probe_loss", None if full is None or view is None else full - view, why)
        yield measurement("probe_recall_normalised", _normalised(view, full, none),
                          "the whole history is hardly better than none" if same else why)
        for family in FAMILIES:
            of_family = mean(found["view"][k].score for k in same if found["view"][k].item.group == family)
            yield measurement(f"probe_recall_{family.replace(' ', '_')}", of_family, "no such question")
        yield measurement("probe_questions", float(len(same)) if same else None, why)


def of_message(message: Message, draw: random.Random) -> Iterator[Probe]:
    """At most one probe of each line that has exactly one exact token, in a line with words around it."""
    lines = [line.strip() for line in plain_text(message).splitlines()[:MOST_LINES]]
    for line in draw.sample(lines, min(len(lines), 20)):
        yield from _of_line(message, line)


def _of_line(message: Message, line: str) -> Iterator[Probe]:
    tokens = set(_TOKEN.findall(line)) if 20 <= len(line) <= LONGEST else set()
    if len(tokens) == 1:
        yield _probe(_family(message, line), line, tokens.pop())


def _clear(messages: Sequence[Message]) -> frozenset[str]:
    """The questions that only one token of the session answers."""
    golds: dict[str, set[str]] = {}
    for message in messages:
        for line in plain_text(message).splitlines()[:MOST_LINES]:
            for probe in _of_line(message, line.strip()):
                golds.setdefault(probe.question, set()).add(probe.gold)
    return frozenset(question for question, found in golds.items() if len(found) == 1)


def _family(message: Message, line: str) -> str:
    if line.startswith("→ ") or ("/" in line and message.role == "tool"):
        return "artifact"
    if message.role == "assistant":
        return "continuation" if _NEXT.search(line) else "decision"
    return "recall"


def _probe(family: str, line: str, gold: str) -> Probe:
    return Probe(family, f"This line stands in the record with one part left out:\n{line.replace(gold, GAP)}\n"
                         f"What stands in the place of {GAP}?", gold)


def _of_need(message: Message, text: str) -> Iterator[Probe]:
    for line in plain_text(message).splitlines():
        if text in line and len(text) < len(line.strip()) <= LONGEST:
            yield _probe("lost need", line.strip(), text)
            return


def _in_turn(found: Mapping[str, Sequence[Probe]], count: int) -> list[Probe]:
    """One of each family after the other; no question twice."""
    queues = {family: list(dict.fromkeys(probes)) for family, probes in found.items()}
    chosen: list[Probe] = []
    while len(chosen) < count and any(queues.values()):
        chosen += [queue.pop(0) for queue in queues.values() if queue]
    return chosen[:count]


def holds(answer: str, gold: str) -> bool:
    """Whether an answer has the token between boundaries, to the letter but for case and spaces."""
    flat, wanted = (" ".join(t.lower().split()) for t in (answer, gold))
    return re.search(rf"(?<![\w/.-]){re.escape(wanted)}(?![\w/-]|\.\w)", flat) is not None


def _normalised(view: float | None, full: float | None, none: float | None) -> float | None:
    if view is None or full is None or none is None or full - none < LEAST_RANGE:
        return None
    return (view - none) / (full - none)


def _places(subject: Subject, lane: Lane, most: int) -> list[int]:
    """Positions of views right behind full compactions, or, where there are none, of the last that differs."""
    found = [n for n, v in enumerate(lane.views) if any(e.kind == "full" for e in v.events)]
    if not found:
        differ = [n for n, (a, b) in enumerate(zip(lane.views, subject.full.views, strict=True))
                  if a.fingerprint != b.fingerprint]
        found = differ[-1:]
    if len(found) <= most:
        return found
    return [found[round(i * (len(found) - 1) / max(1, most - 1))] for i in range(most)]
