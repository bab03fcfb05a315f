"""Facts to plant in a session: five kinds, each a sentence of a person with what must survive of it.

A fact with a value may replace an earlier one: then only the current value counts, and a view that shows the former
alone has lost it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from evals.phrase_kinds import Rule
from evals.phrases import WORD, Prepared, content_words, enough, flat, holds, spelled

Kind = Literal["rule", "budget", "project fact", "task state", "preference"]
KINDS: tuple[Kind, ...] = ("rule", "budget", "project fact", "task state", "preference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One planted fact."""

    kind: Kind
    text: str
    """The sentence that holds now."""
    value: str | None = None
    """The exact value that must survive; None for rules and preferences, whose words must."""
    former_text: str | None = None
    """The sentence that it replaced."""
    former_value: str | None = None
    marks: frozenset[str] = frozenset()
    """Words of which one says the polarity of a preference; a rule's is its negation."""


@dataclass(frozen=True)
class Statement:
    """A fact's sentence as a phrase: to the letter, or its value with its words in one sentence."""

    text: str
    value: str

    @cached_property
    def words(self) -> frozenset[str]:
        """Content words without those of the value."""
        return content_words(self.text) - content_words(self.value)

    @cached_property
    def flat(self) -> str:
        """The sentence on one line, without its full stop."""
        return flat(self.text).rstrip(" .")

    @cached_property
    def keys(self) -> frozenset[str]:
        """The words that are indexed."""
        return frozenset(w for w in self.words if WORD.fullmatch(w))

    @property
    def indexed(self) -> frozenset[str]:
        """The same words."""
        return self.keys

    @property
    def groups(self) -> list[tuple[list[str], int]]:
        """The words, of which enough are needed."""
        return [(spelled(sorted(self.words), self.text), enough(len(self.words)))]

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether enough of the words are there."""
        return len(self.keys & words) >= enough(len(self.words)) - len(self.words) + len(self.keys)

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """2 to the letter; 1 where one sentence has the value, between boundaries, and most of the words."""
        if holds(prepared.flat, self.flat):
            return 2
        return int(any(holds(flat(s), flat(self.value)) and self._said(s) for s in prepared.sentences))

    def _said(self, sentence: str) -> bool:
        return len(self.words & content_words(sentence)) >= enough(len(self.words))


@dataclass(frozen=True)
class Value:
    """A value alone, wherever it stands."""

    value: str

    @cached_property
    def keys(self) -> frozenset[str]:
        """Its longest indexed word; none for a short one."""
        return frozenset(sorted(WORD.findall(self.value.lower()), key=len)[-1:])

    @property
    def indexed(self) -> frozenset[str]:
        """The same word."""
        return self.keys

    @property
    def groups(self) -> list[tuple[list[str], int]]:
        """All words of the value."""
        words = re.findall(r"\w+", self.value)
        return [(words, len(words))]

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether that word is there."""
        return self.keys <= words

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """2 where it stands between boundaries."""
        return 2 if holds(prepared.flat, flat(self.value)) else 0


def statement(fact: Fact) -> Statement | Rule:
    """The phrase of what holds now."""
    return Statement(fact.text, fact.value) if fact.value else Rule(fact.text, fact.marks)


def former(fact: Fact) -> Statement | None:
    """The phrase of what it replaced; None where it replaced nothing."""
    return Statement(fact.former_text, fact.former_value) if fact.former_text and fact.former_value else None


def facts(count: int, seed: int) -> list[Fact]:
    """`count` facts of each kind, the same for the same seed; at most as many as there are sentences of a kind (8)."""
    draw = random.Random(seed)  # noqa: S311 - a choice of sentences, nothing secret
    made = [_of_kind(kind, draw) for kind in KINDS]
    return [fact for group in made for fact in group[:count]]


MOST_OF_A_KIND = 8


def _of_kind(kind: Kind, draw: random.Random) -> list[Fact]:
    if kind == "rule":
        return [Fact(kind=kind, text=t) for t in _shuffled(_RULES, draw)]
    if kind == "preference":
        marks = frozenset(("prefer", "preferred", "preference", "rather", "instead", "preferably"))
        return [Fact(kind=kind, text=t, marks=marks) for t in _shuffled(_PREFERENCES, draw)]
    sentences = {"budget": _BUDGETS, "project fact": _PROJECT_FACTS, "task state": _TASK_STATES}[kind]
    return [_valued(kind, sentence, draw) for sentence in _shuffled(sentences, draw)]


def _shuffled(sentences: Sequence[str], draw: random.Random) -> list[str]:
    return draw.sample(sentences, len(sentences))


def _valued(kind: Kind, sentence: str, draw: random.Random) -> Fact:
    """A former value that begins with the current one: a search for bare substrings would take one for the other."""
    number = draw.randrange(120, 980)
    now, before = (sentence.format(n) for n in (number, number * 10 + draw.randrange(1, 10)))
    value, old = (next(w for w in s.split() if any(c.isdigit() for c in w)).strip(".,;") for s in (now, before))
    return Fact(kind=kind, text=now, value=value, former_text=before, former_value=old)


_RULES = (
    "Never write into the folder vendor/orchid, other teams own it.",
    "Do not rename the exported function settle_invoice, partners call it by that name.",
    "Never log the customer's passport number, not even in debug builds.",
    "Do not add a retry around the ferry gateway, it charges for every call.",
    "Never delete rows of the ledger_archive table.",
    "Do not raise the minimum interpreter version of the agent plugin.",
    "Never open a network connection from the parser tests.",
    "Do not touch the migration scripts under db/frozen.",
)
_BUDGETS = (
    "The whole harbour migration may cost ${} and no cent more.",
    "The nightly walnut import may take {} seconds.",
    "The marmot service may hold {}MB of memory.",
    "The landing page of the gazette may weigh {}kB.",
    "Each lantern worker may keep {} connections open.",
    "The quarterly falcon audit may read {} documents.",
    "The pebble cache may grow to {} entries.",
    "The tulip batch may spend ${} on model calls.",
)
_PROJECT_FACTS = (
    "The staging broker of the heron cluster listens on port {}.",
    "Customer identifiers of the sparrow tenant begin at {}.",
    "The contract number of the meadow supplier is MS-{}.",
    "Build agents of the copper pool carry the tag cu{}.",
    "The schema version of the willow store is {}.",
    "The emergency line of the quarry office has the extension {}.",
    "The retired billing host of the amber region was vm-{}.",
    "The checksum file of the cedar release has {} lines.",
)
_TASK_STATES = (
    "The export of the basalt archive is finished up to batch {}.",
    "The review of the thistle module has reached line {}.",
    "The backfill of the juniper index stopped at record {}.",
    "The translation of the otter manual is done through page {}.",
    "The clean-up of the granite queue still has {} jobs open.",
    "The port of the saffron tests stands at {} of them green.",
    "The upload of the fjord images broke off at file {}.",
    "The re-scan of the maple share is through to folder {}.",
)
_PREFERENCES = (
    "I prefer table-driven tests over one function for each case.",
    "I prefer early returns over nested conditions in the handlers.",
    "I prefer British spelling in every message that a customer sees.",
    "I prefer small commits with an imperative subject line.",
    "I prefer plain functions over builder classes in the report code.",
    "I prefer metric units in the printed weather tables.",
    "I prefer explicit imports over wildcard imports in the plugins.",
    "I prefer dates written with the year first in file names.",
)
