"""What a request is for: the next step, a summary, or something beside the session such as a title."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from replay.readers.wire_items import Piece

Kind = Literal["step", "summary", "other"]
SUMMARY_WORDS = r"summar|compaction|compact the|compress|condens|hand-?off|checkpoint|context extraction|state_snapshot"
"""How harnesses speak of it in their instructions; a regular expression, upper and lower case alike."""
_EDGE = 3_000
"""Characters at both ends of a message in which an instruction is looked for; a transcript may lie between them."""


class Kinds:
    """Tells requests apart by their tools and their words."""

    def __init__(self, words: str = SUMMARY_WORDS) -> None:
        """`words`: what an instruction to summarise has in it. Raises re.error where it is no pattern."""
        self._words = re.compile(words, re.IGNORECASE)
        self._had_tools = False

    def kind(self, pieces: Sequence[Piece], has_tools: bool, expects: Callable[[str], bool],
             holds_summary: bool) -> Kind:
        """The kind of a request.

        `expects`: whether a text holds the prompt that is to come; `holds_summary`: the last message holds a
        summary that was served. A harness that offered tools and now asks without them asks beside the session.
        """
        last = pieces[-1] if pieces else None
        self._had_tools |= has_tools
        if last is None or last.role == "tool" or (has_tools and (holds_summary or expects(last.text))):
            return "step" if has_tools or not self._asks(pieces) else "summary"
        if last.role == "user" and self._asks(pieces[-1:] if has_tools else pieces):
            return "summary"
        return "step" if has_tools or not self._had_tools else "other"

    def _asks(self, pieces: Sequence[Piece]) -> bool:
        """Whether a system message in front or the last message has the words."""
        front = [p for p in pieces[:1] if p.role in ("system", "developer")]
        return any(self._words.search(text) for p in (*front, *pieces[-1:]) for text in _edges(p.text))


def _edges(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= 2 * _EDGE else (text[:_EDGE], text[-_EDGE:])
