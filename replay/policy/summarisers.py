"""Offline summarisers: deterministic text from the log, or a stated stand-in for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from replay.errors import UnknownName
from replay.policy.base import Summariser, Summary, SummaryRequest
from replay.policy.facts import Fact, Topic, fact_book
from replay.transcript import RecordedCompaction

DEFAULT_SECTIONS = ("Goal", "Constraints", "Progress", "Key Decisions", "Next Steps", "Files", "Errors")
CHARS_PER_TOKEN = 4

_TOPICS_BY_WORD: tuple[tuple[str, tuple[Topic, ...]], ...] = (
    ("goal|objective|request|intent|current focus", ("goal",)),
    ("constraint|preference|instruction|rule", ("constraint",)),
    ("progress|milestone|complet|done|action|work", ("done",)),
    ("decision|insight|discover|technical", ("decision",)),
    ("next|pending|plan|task", ("next",)),
    ("file|artifact|code", ("file",)),
    ("critical|context|error|problem|issue", ("error",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """A summary that says nothing: the lower bound of what any summariser keeps."""

    name: str = "empty"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """An empty text."""
        return Summary(text="", by=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthModel:
    """Only the size of a summary: `ratio` of what is summarised, at most `cap` tokens. Its text holds nothing."""

    ratio: float = 0.05
    """Tokens of summary per counted token summarised, an earlier summary included."""
    cap: int = 4_000
    name: str = "length-model"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """A stated size with a text that says that it is one."""
        sums = request.log.sums(request.log.tokens)
        source = sum(sums[s.stop] - sums[s.start] for s in request.spans)
        source += sum(request.log.inserted_size(p, request.log.tokens) for p in request.previous)
        tokens = min(self.cap, round(self.ratio * source))
        text = f"[summary of about {tokens} tokens; its text is not modelled]"
        return Summary(text=text, by=self.name, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extractive:
    """Sections filled with lines of the log, newest first within a budget: no model, the same text every time."""

    budget_tokens: int = 2_000
    """Upper bound of the text at four characters a token."""
    name: str = "extractive"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """The sections that the harness's own summary has; None where nothing is summarised."""
        if not request.spans and not request.previous:
            return None
        book, asked = fact_book(request.log), (request.spans, request.previous, request.sections, self)
        if book.latest is None or book.latest[0] != asked:
            book.latest = (asked, self._text(request))
        return Summary(text=book.latest[1], by=self.name)

    def _text(self, request: SummaryRequest) -> str:
        sections = request.sections or DEFAULT_SECTIONS
        budget = self.budget_tokens * CHARS_PER_TOKEN
        # What stands in front of the first heading is the frame that the harness puts around a summary.
        earlier = (p.message.text for p in request.previous)
        carried = [line for text in earlier for line in text[max(0, text.find("## ")):].splitlines()]
        parts = (_section(name, request, carried, budget // len(sections)) for name in sections)
        return "\n\n".join(parts)[:budget]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The session's own summary: of the latest recorded compaction that had happened by then.

    Before the first recorded one there is none; then the fallback writes it, and the event says so.
    """

    compactions: tuple[RecordedCompaction, ...] = ()
    fallback: Extractive = Extractive()
    name: str = "recorded"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """The recorded text, or the fallback's under its own name."""
        known = [c.summary for c in self.compactions if c.summary and c.position <= request.end]
        if known:
            return Summary(text=known[-1], by=self.name)
        return self.fallback.summarise(request)


SUMMARISERS: Mapping[str, type] = {"extractive": Extractive, "recorded": Recorded, "empty": Empty,
                                   "length-model": LengthModel}
"""Names for `--summariser`."""


def summariser(name: str, compactions: Sequence[RecordedCompaction] = ()) -> Summariser:
    """A summariser by name for a session with these recorded compactions. Raises UnknownName."""
    if name not in SUMMARISERS:
        raise UnknownName("summariser", name, SUMMARISERS, "--summariser")
    if name == "recorded":
        return Recorded(compactions=tuple(compactions))
    made: Summariser = SUMMARISERS[name]()
    return made


@cache
def _topics(section: str) -> tuple[Topic, ...]:
    for words, topics in _TOPICS_BY_WORD:
        if re.search(words, section, re.IGNORECASE):
            return topics
    return ("decision",)


def _section(name: str, request: SummaryRequest, carried: Sequence[str], budget: int) -> str:
    """A heading and as many lines as fit, the oldest lost first; but of goals the very first stays."""
    topics = _topics(name)
    found = (f"- {fact.text}" for topic in topics for fact in _facts(request, topic))
    lines = list(dict.fromkeys([*_carried_lines(name, carried), *found]))
    pinned = lines[:1] if "goal" in topics else []
    room = budget - len(f"## {name}\n\n") - sum(len(line) + 1 for line in pinned)
    kept = [*pinned, *_newest(lines[len(pinned):], room)]
    return "\n".join([f"## {name}", *(kept or ["- none"])])


def _newest(lines: Sequence[str], room: int) -> list[str]:
    """The last lines that fit a number of characters, in order."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _facts(request: SummaryRequest, topic: Topic) -> list[Fact]:
    book = fact_book(request.log)
    facts = [f for span in request.spans for f in book.between(topic, span.start, span.stop)]
    if topic == "goal" and request.spans:
        first = book.first_goal(request.spans[0].start, request.spans[-1].stop)
        facts = ([first] if first else []) + [f for f in facts if f != first]
    return facts


def _carried_lines(section: str, carried: Sequence[str]) -> list[str]:
    """Lines of an earlier summary's section of the same name."""
    found, inside = [], False
    for line in carried:
        if line.startswith("#"):
            inside = line.lstrip("# ").strip() == section
        elif inside and line.startswith("- ") and line != "- none":
            found.append(line)
    return found
