"""Messages of a session by what they say, the tool that they call and the files that they name."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evals.spans_calls import deed_of
from replay.errors import ConfigError
from replay.log import Log
from replay.transcript import Message
from replay.view import plain_text

MOST_HITS = 200
AROUND = 60
"""Characters of context on each side of a hit."""
MOST_SECONDS = 0.5
"""A search that takes longer says how far it came."""
MOST_CHARS = 1_000_000
"""Characters of a message that are searched."""

Finder = Callable[[str], tuple[int, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for; empty fields ask nothing."""

    text: str = ""
    is_pattern: bool = False
    """The text is a regular expression; else it stands for itself. Case never matters."""
    tool: str = ""
    """Name of a tool that the message calls, or whose result it is."""
    path: str = ""
    """Part of a path that the message's calls name, or whose result it is."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return not (self.text or self.tool or self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One message that answers a query."""

    index: int
    step: int | None
    """The first step that could see it; None: no step followed."""
    role: str
    tools: tuple[str, ...]
    before: str
    match: str
    after: str
    """The text around the first place that matches; the beginning of the message where no text was asked for."""


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search found."""

    hits: tuple[Hit, ...]
    searched: int
    """Messages that were looked at: fewer than the log's where there were too many hits or the time was up."""


def tools_of(log: Log) -> list[str]:
    """The names of all tools that a session called, the most called first."""
    counts: dict[str, int] = {}
    for message in log.messages:
        for call in message.calls:
            counts[call.name] = counts.get(call.name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))


def search(log: Log, query: Query) -> Hits:
    """The messages that answer every field of a query, in order. Raises ConfigError for a broken pattern."""
    find, calls = _finder(query), _calls(log) if query.tool or query.path else {}
    starts = [s.start for s in log.steps]
    hits: list[Hit] = []
    stop_at = time.monotonic() + MOST_SECONDS
    for message in log.messages:
        if len(hits) >= MOST_HITS or (message.index % 64 == 0 and time.monotonic() > stop_at):
            return Hits(tuple(hits), message.index)
        about = calls.get(message.index, ())
        if calls or query.tool or query.path:
            about = tuple(c for c in about if _fits(c, query))
            if not about:
                continue
        hit = _hit(message, find, tuple(dict.fromkeys(name for name, _ in about)), starts)
        if hit is not None:
            hits.append(hit)
    return Hits(tuple(hits), len(log))


def _finder(query: Query) -> Finder:
    try:
        pattern = re.compile(query.text if query.is_pattern else re.escape(query.text), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise ConfigError("search", query.text, f"not a regular expression: {error}") from error

    def find(text: str) -> tuple[int, int] | None:
        found = pattern.search(text)
        return None if found is None else found.span()

    return find


def _calls(log: Log) -> dict[int, tuple[tuple[str, tuple[str, ...]], ...]]:
    """For each message the tools and paths of its calls, or of those whose results it holds."""
    by_id: dict[str, tuple[str, tuple[str, ...]]] = {}
    found: dict[int, tuple[tuple[str, tuple[str, ...]], ...]] = {}
    for message in log.messages:
        made = [(c.id, (c.name, deed_of(c).paths)) for c in message.calls]
        by_id.update(made)
        about = (*(fact for _, fact in made), *(by_id[r.call_id] for r in message.results if r.call_id in by_id))
        if about:
            found[message.index] = about
    return found


def _fits(call: tuple[str, tuple[str, ...]], query: Query) -> bool:
    name, paths = call
    return (not query.tool or name == query.tool) and (
        not query.path or any(query.path.lower() in p.lower() for p in paths))


def _hit(message: Message, find: Finder, tools: tuple[str, ...], starts: Sequence[int]) -> Hit | None:
    text = plain_text(message)[:MOST_CHARS]
    place = find(text)
    if place is None:
        return None
    start, stop = place[0], min(place[1], place[0] + 4 * AROUND)
    step = bisect_right(starts, message.index) + 1
    return Hit(index=message.index, role=message.role, tools=tools, step=step if step <= len(starts) else None,
               before=("…" if start > AROUND else "") + text[max(0, start - AROUND):start], match=text[start:stop],
               after=text[stop:stop + 2 * AROUND] + ("…" if len(text) > stop + 2 * AROUND else ""))


def words(hits: Hits, log: Log) -> Iterator[str]:
    """How many were found, and what was not looked at."""
    yield f"{len(hits.hits):,} message{'' if len(hits.hits) == 1 else 's'}"
    if hits.searched < len(log):
        yield f"only the first {hits.searched:,} of {len(log):,} messages were searched: ask for something rarer"
