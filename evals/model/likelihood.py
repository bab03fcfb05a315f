"""Teacher-forced likelihood shift: how much less likely a recorded action is behind a policy's view.

By the model's own log-probabilities of a prompt; needs an endpoint that echoes it with them, such as vLLM's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evals.metrics.base import Measurement
from evals.model.agree import sampled
from evals.model.asks import Ask, Reply
from evals.model.study import Answered, Item, Subject, mean, measurement
from evals.model.texts import message_text, view_text
from replay.engine import Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Asks for the log-probability of recorded actions behind each view; nothing is sampled."""

    model: str
    steps: int = 20
    seed: int = 1
    name: str = "likelihood"

    def items(self, subject: Subject) -> Iterator[Item]:
        """The steps of `agree`, each behind the policy's view and behind the whole history."""
        for number, stratum in sampled(subject, self.steps, self.seed):
            for policy, lane in subject.lanes.items():
                for role, shown in (("view", lane), ("full", subject.full)):
                    prefix, action = _parts(subject, shown, number)
                    ask = Ask(model=self.model, prompt=prefix + action, max_tokens=1, echo=True, purpose="likelihood")
                    yield Item(study=self.name, policy=policy, step=subject.full.views[number].step, role=role,
                               ask=ask, group=stratum, gold={"from": len(prefix), "to": len(prefix) + len(action)})

    def score(self, item: Item, reply: Reply) -> float | None:
        """Nats a token of the action, from its first token to its last; what was generated behind it is left out."""
        if reply.problem is not None:
            return None
        return mean(p for at, p in reply.logprobs if item.gold["from"] <= at < item.gold["to"])

    def measure(self, answered: Sequence[Answered]) -> Iterator[Measurement]:
        """The mean shift: with the whole history less with the view; above 0 the action became less likely."""
        found = {role: {a.item.step: a for a in answered if a.item.role == role} for role in ("view", "full")}
        shifts = [full.score - view.score for step, view in found["view"].items()
                  if (full := found["full"].get(step)) and full.score is not None and view.score is not None]
        problems = {a.reply.detail for a in answered if a.reply.problem}
        why = next(iter(sorted(problems)), "no step at which a view differs from the whole history")
        yield measurement("likelihood_shift", mean(shifts), why)
        yield measurement("likelihood_steps", float(len(shifts)) if shifts else None, why)


def _parts(subject: Subject, lane: Lane, number: int) -> tuple[str, str]:
    """What stands before the recorded action, and the action."""
    log = subject.session.log
    response = log.steps[number].response
    action = message_text(log.messages[response]) if response is not None else ""
    return f"{view_text(log, lane.views[number].window)}\n\nThe next message:\n", action
