"""The places of phrases in a log, looked up in the session's index of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evals.phrases import Phrase, Prepared
from evals.presence import IntArray
from evals.spans_index import UnitIndex
from replay.blocks import Reasoning

_ASCII = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A phrase and where it is asked for."""

    phrase: Phrase
    first: int
    stop: int
    """Positions `[first, stop)` of the views that it matters in."""
    source: int | None = None
    """The message that it was taken from, which has it whatever its spelling there."""
    since: int = 0
    """Log index of the first message that is searched for it: what was said before it mattered does not count."""
    until: int | None = None
    """Log index from which on no message is searched for it; None: all are."""


def search_log(index: UnitIndex, asks: Sequence[Ask]) -> dict[tuple[int, int], int]:
    """Grades by phrase and log index; each message is searched for what is asked for at its time alone."""
    owners = np.array([u.message for u in index.units], np.int64)
    # Equal phrases are searched once: files that were both read and changed are watched for twice.
    first = {ask.phrase: number for number, ask in reversed(list(enumerate(asks)))}
    alike = [first[ask.phrase] for ask in asks]
    candidates = {n: _candidates(index, owners, asks[n].phrase) for n in set(alike)}
    waiting: dict[int, list[int]] = {}
    for number, ask in enumerate(asks):
        for message in _between(candidates[alike[number]], ask.since, ask.until):
            waiting.setdefault(message, []).append(number)
    found: dict[tuple[int, int], int] = {}
    for message, numbers in waiting.items():
        prepared = Prepared(message_text(index, message))
        grades = {n: asks[n].phrase.grade(prepared, False) for n in {alike[n] for n in numbers}}
        found |= {(n, message): grade for n in numbers if (grade := grades[alike[n]])}
    return found


def message_text(index: UnitIndex, message: int) -> str:
    """What a message says; reasoning is none of it, since it may be stripped."""
    units = index.units[index.first_unit[message]:index.first_unit[message + 1]]
    return "\n".join(u.text for u in units if not isinstance(u.block, Reasoning))


def _between(messages: IntArray, since: int, until: int | None) -> list[int]:
    low = int(np.searchsorted(messages, since))
    high = len(messages) if until is None else int(np.searchsorted(messages, until))
    between: list[int] = messages[low:high].tolist()
    return between


def _candidates(index: UnitIndex, owners: IntArray, phrase: Phrase) -> IntArray:
    """Log indices of the messages that may hold a phrase, in order.

    A text with so many of a group's words has at least one of its rarest, so those alone are looked up.
    """
    units: list[IntArray] = []
    for words, need in phrase.groups:
        if need < 1 or not all(map(_ASCII.fullmatch, words)):
            return np.arange(len(index.first_unit) - 1)
        units += sorted((_holders(index, word) for word in words), key=len)[:len(words) - need + 1]
    return np.unique(owners[np.concatenate(units)]) if units else np.zeros(0, np.int64)


def _holders(index: UnitIndex, word: str) -> IntArray:
    """Units that hold a word as it is spelled, in small letters, at the start of a sentence, or in capitals."""
    spellings = dict.fromkeys((word, word.lower(), word.capitalize(), word.upper()))
    return np.concatenate([index.holders(spelling) for spelling in spellings]).astype(np.int64)
