"""A clock that only moves when something is said, run or waited for; the same every time."""

from __future__ import annotations

from collections.abc import Mapping

from evals.samples.ids import Ids

TOKENS_PER_SECOND = 58.0
RUN_SECONDS: Mapping[str, float] = {"bash": 0.9, "delegate": 0.2}
"""Kind of action to how long it takes at most; others take a tenth of a second."""


class Clock:
    """Seconds since the epoch, moved by what happens."""

    def __init__(self, start: float, ids: Ids) -> None:
        """Start at a time; `ids` gives the jitter."""
        self.now = start
        self._ids = ids

    def wait(self, seconds: float) -> None:
        """Nothing happens for a while."""
        self.now = round(self.now + seconds, 3)

    def think(self, text: str) -> None:
        """A person reads the answer and types a prompt."""
        self.wait(18 + len(text) / 6 + 30 * self._ids.fraction("think"))

    def generate(self, tokens: int) -> None:
        """The model writes."""
        self.wait(1.4 + tokens / TOKENS_PER_SECOND + 1.2 * self._ids.fraction("generate"))

    def run(self, kind: str) -> None:
        """A tool runs."""
        self.wait(0.02 + RUN_SECONDS.get(kind, 0.1) * self._ids.fraction("run"))
