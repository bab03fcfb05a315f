"""A summariser that answers what the recorded run's own summariser answered, and keeps what it was asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from replay.log import Log
from replay.policy.base import Summary, SummaryRequest
from replay.readers.wire_sent import Sent
from replay.window import Span

_SCRIPTED = re.compile(r"^Step (\d+): ")
_KNOWN: WeakKeyDictionary[Log, list[tuple[int, int]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Captured:
    """Finds the captured answer for a step by the scripted steps that both summary requests hold.

    Where several answers fit equally well the last one counts: a harness may let its summary be improved.
    """

    requests: tuple[Sent, ...]
    """The capture's summary requests."""
    served: bool = False
    """Its model was a recorded session, whose steps bear no scripted numbers."""
    asked: list[SummaryRequest] = field(default_factory=list)
    """Every request that this summariser got, in order."""
    name: str = "captured"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """The captured answer; where the harness asked for none at this step a text that says so."""
        self.asked.append(request)
        named = self.named(request)
        answers = [s for s in self.requests if s.accepted and s.step == request.step]
        if not answers:
            return Summary(text="[no summary was captured at this step]", by=self.name)
        return Summary(text=max(reversed(answers), key=lambda s: _likeness(s.named, named)).answer, by=self.name)


    def named(self, request: SummaryRequest) -> frozenset[int]:
        """The steps whose responses a summary request holds, by the numbers that the capture names them by."""
        return (answered if self.served else scripted)(request.log, request.spans)


def answered(log: Log, spans: Sequence[Span]) -> frozenset[int]:
    """Numbers of the steps whose responses lie in these log ranges."""
    return frozenset(s.number for s in log.steps if s.response is not None
                     and any(span.start <= s.response < span.stop for span in spans))


def scripted(log: Log, spans: Sequence[Span]) -> frozenset[int]:
    """Numbers of the scripted steps whose responses lie in these log ranges."""
    if log not in _KNOWN:
        pairs = ((m.index, _SCRIPTED.match(m.text)) for m in log.messages if m.role == "assistant")
        _KNOWN[log] = [(index, int(found[1])) for index, found in pairs if found]
    return frozenset(number for index, number in _KNOWN[log] if any(s.start <= index < s.stop for s in spans))


def _likeness(mine: frozenset[int], theirs: frozenset[int]) -> float:
    either = mine | theirs
    return len(mine & theirs) / len(either) if either else 1.0
