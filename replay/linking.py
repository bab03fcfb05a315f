"""Sessions that share records: whose bill a response is on, who went on from whom, which files say nothing new.

A resumed session's file begins with a copy of the old one's records, a backup repeats a whole file, an export is
a longer snapshot of an earlier one. Each response is billed to the session that holds most of them. Of each
response only a hash and its token counts are kept, so memory does not grow with the files themselves.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from replay.transcript import Message, Step, Thread, Transcript, Usage

_UNMISTAKABLE = 12
"""Characters from which on an id is taken to be unique without a time beside it."""
_COUNTS = 6
"""Numbers kept of each response: the parts of its bill, and 1 where it has one."""


@dataclass(frozen=True, slots=True)
class Link:
    """What one session has in common with the others of a scan."""

    copied: Usage = field(default_factory=Usage)
    """The bill of the responses that are counted in another session."""
    copied_requests: int = 0
    counted_in: int | None = None
    """Number of the session, in the order of the scan, that counts most of them."""
    is_contained: bool = False
    """Every model call of this session is in another one as well."""
    parent: str | None = None
    """Session that this one went on from, where only the shared records tell."""


@dataclass(slots=True)
class _Entry:
    session: str
    parent: str | None
    size: int
    keys: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))


@dataclass
class Scan:
    """Takes the sessions of one scan one by one, and then tells what they share."""

    _entries: list[_Entry] = field(default_factory=list)

    def add(self, transcript: Transcript) -> None:
        """Take a session: the hashes of its responses and their bills."""
        entry = _Entry(transcript.session_id, transcript.parent_session, len(transcript.messages))
        for thread in transcript.threads:
            for step in thread.steps:
                entry.keys.append(_key(transcript, thread, step, len(entry.keys)))
                entry.counts.extend(_bill(step))
        self._entries.append(entry)

    def links(self) -> list[Link]:
        """A link for each session, in the order in which they were added."""
        holders = self._holders()
        parents = self._parents(holders)
        return [self._link(number, holders, parents.get(number)) for number in range(len(self._entries))]

    def _holders(self) -> dict[int, list[int]]:
        """For each hash that several sessions hold: these sessions, the one with most calls first."""
        seen: set[int] = set()
        shared: dict[int, list[int]] = {}
        for entry in self._entries:
            own = set(entry.keys)
            shared.update((key, []) for key in seen & own)
            seen |= own
        for number in sorted(range(len(self._entries)), key=self._rank):
            for key in shared.keys() & set(self._entries[number].keys):
                shared[key].append(number)
        return shared

    def _rank(self, number: int) -> tuple[int, int, int]:
        entry = self._entries[number]
        return -len(entry.keys), -entry.size, number

    def _link(self, number: int, holders: dict[int, list[int]], parent: str | None) -> Link:
        entry = self._entries[number]
        copied = [(at, owner) for at, key in enumerate(entry.keys)
                  if (owner := holders.get(key, [number])[0]) != number]
        if not copied:
            return Link(parent=parent)
        bill = [sum(entry.counts[at * _COUNTS + part] for at, _ in copied) for part in range(_COUNTS)]
        tally = Counter(owner for _, owner in copied)
        return Link(copied=Usage(input_uncached=bill[0], cache_read=bill[1], cache_write_5m=bill[2],
                                 cache_write_1h=bill[3], output=bill[4]), copied_requests=bill[5],
                    counted_in=tally.most_common(1)[0][0], is_contained=len(copied) == len(entry.keys), parent=parent)

    def _parents(self, holders: dict[int, list[int]]) -> dict[int, str]:
        """Of two sessions with different names the longer one went on from the other, with which it shares most."""
        pairs = Counter((longer, shorter) for found in holders.values()
                        for at, longer in enumerate(found) for shorter in found[at + 1:])
        parents: dict[int, str] = {}
        for (child, parent), _ in sorted(pairs.items(), key=lambda pair: (-pair[1], self._rank(pair[0][1]))):
            younger, older = self._entries[child], self._entries[parent]
            if younger.parent is None and younger.session not in (older.session, older.parent):
                parents.setdefault(child, older.session)
        return parents


def _bill(step: Step) -> Iterator[int]:
    usage = step.usage
    if usage is None:
        return iter((0,) * _COUNTS)
    total = usage + usage.side if usage.side else usage
    return iter((total.input_uncached, total.cache_read, total.cache_write_5m, total.cache_write_1h, total.output, 1))


def _key(transcript: Transcript, thread: Thread, step: Step, number: int) -> int:
    """A hash of what a response is known by: its ids, else its time and counts; else it is like no other."""
    message = _response(thread, step)
    ids = [name for name in (message.id if message else None, step.request_id) if name]
    if any(len(name) >= _UNMISTAKABLE for name in ids):
        known: Sequence[object] = ids
    elif ids and step.time is not None:
        known = (*ids, step.time, *_bill(step))
    elif step.time is not None:
        known = (transcript.session_id, step.time, *_bill(step))
    else:
        known = (transcript.path, transcript.session_id, thread.id, number)
    digest = blake2b(repr((transcript.format, *known)).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _response(thread: Thread, step: Step) -> Message | None:
    at = step.response
    return thread.messages[at] if at is not None and at < len(thread.messages) else None
