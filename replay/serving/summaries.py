"""The answer to a request for a summary: the session's own, or one put together from its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from replay.log import Log
from replay.policy.base import SummaryRequest
from replay.policy.summarisers import summariser
from replay.readers.wire_items import Piece
from replay.transcript import Transcript
from replay.window import Span

Rule = Literal["recorded", "extractive"]
_TAGS = re.compile(r"</(state_snapshot|summary)>")
"""Elements that a harness reads the summary from; an instruction that shows one gets its answer in it."""
_HEAD = 40


@dataclass
class Summaries:
    """Writes summaries and knows them again."""

    transcript: Transcript
    log: Log
    rule: Rule
    _heads: list[str] = field(default_factory=list)

    def text(self, step: int, end: int, pieces: Sequence[Piece]) -> tuple[str, str]:
        """The summary of the first `end` messages and who wrote it: `recorded` falls back to `extractive`."""
        writer = summariser(self.rule, self.transcript.compactions)
        request = SummaryRequest(log=self.log, spans=(Span(0, max(end, 1)),), step=step, end=end)
        made = writer.summarise(request)
        text, by = (made.text, made.by) if made is not None else ("", self.rule)
        self._heads.append(text[:_HEAD])
        tag = _tag(pieces)
        return (f"<{tag}>\n{text}\n</{tag}>" if tag else text), by

    def stand_in(self, text: str) -> bool:
        """Whether a message holds a summary that was served."""
        return any(head in text for head in self._heads if head)


def _tag(pieces: Sequence[Piece]) -> str | None:
    """The element that the instruction asks for, in the last message or the system message in front."""
    texts = (p.text[-4_000:] for p in (*pieces[-1:], *(p for p in pieces[:1] if p.role == "system")))
    found = next((m for m in map(_TAGS.search, texts) if m), None)
    return found[1] if found else None
