"""Standing constraints of a session: what people and rule files told the agent to keep to, until they took it back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evals.constraint_patterns import HINT, NOT_PROSE, PERMISSION, form_of, plain
from evals.phrase_kinds import Rule
from evals.phrases import content_words, enough, flat, tokens
from replay.blocks import Text
from replay.log import Log
from replay.transcript import Message, Transcript

FEWEST_WORDS, MOST_WORDS = 3, 60
RULE_FILE_DETAILS = frozenset(("agents_md", "nested_memory", "claude_md", "user_instructions", "memory", "rules"))
"""Details of injected messages that carry a project's rule file."""

_RULE_FILE = re.compile(r"(?:^|\n)\s*(?:#+ (?:Context from )?|<|Contents of |Instructions from: ?)(?:\S*/)?"
                        r"(?:AGENTS|CLAUDE|GEMINI|CONVENTIONS)\.md\b|(?:^|\n)# claudeMd\b")
_OF_SELF = re.compile(r"(?:i|i['’](?:m|ve|d|ll))\s+(?!want|need|would|expect|insist)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`*-]|\w)|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<(\w[\w-]*)>.*?</\1>", re.DOTALL)
_LETTER = re.compile(r"[A-Za-z ]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx)\.$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint: its words, where it was said, and where it stopped to hold."""

    rule: Rule
    form: str
    """What makes it one, e.g. `never` or `only`."""
    message: int
    """Log index."""
    source: str
    """`human` or `rule file`."""
    until: int | None = None
    """Log index of the message that took it back or replaced it; None: it holds to the end."""
    pinned: bool = False
    """The harness puts it into every request: a system message, or a rule file given again after a compaction."""


def constraints(transcript: Transcript, log: Log) -> tuple[Constraint, ...]:
    """The constraints of a session in the order in which they were said, each once."""
    given_again = _given_again(transcript)
    found: list[Constraint] = []
    for message in log.messages:
        source = source_of(message)
        if source is None:
            continue
        for sentence in sentences(message):
            found = _after(found, sentence, message, source)
    return tuple(replace(c, pinned=_pinned(log.messages[c.message], given_again)) for c in found)


def source_of(message: Message) -> str | None:
    """`human`, `rule file`, or None for a message whose words bind nobody."""
    if message.origin == "human" and message.role == "user":
        return "human"
    if message.origin not in ("injected", "system"):
        return None
    return "rule file" if message.detail in RULE_FILE_DETAILS or _RULE_FILE.search(message.text[:300]) else None


def sentences(message: Message) -> Iterator[str]:
    """The sentences and lines of a message, without fenced code."""
    for block in message.blocks:
        if isinstance(block, Text):
            text = block.text if message.origin != "human" else _FENCED.sub("\n", block.text)
            yield from filter(None, _SENTENCE.split(text) if "```" not in text else _outside_fences(text))


def _outside_fences(text: str) -> list[str]:
    return _SENTENCE.split(re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL))


def _is_prose(sentence: str) -> bool:
    """Whether a sentence is not pasted code, a log or a drawing."""
    if NOT_PROSE.search(sentence):
        return False
    return 10 * len(_LETTER.findall(sentence)) >= 7 * len(sentence)


def rule_in(sentence: str) -> tuple[Rule, str] | None:
    """The rule that a sentence states with the name of its form; None where it states none."""
    if not HINT.search(sentence) or not _is_prose(sentence):
        return None
    text = plain(sentence)
    if text.endswith("?") or not FEWEST_WORDS <= len(text.split()) <= MOST_WORDS:
        return None
    form = form_of(text)
    if form is None or _speaks_of_self(text, form.name):
        return None
    rule = Rule(text, form.marks)
    return (rule, form.name) if len(content_words(text) - rule.marks) >= (2 if rule.marks else 1) else None


def _speaks_of_self(text: str, form: str) -> bool:
    """`I don't use it` tells what somebody does, not what is to be done; `I'd prefer` does."""
    return form != "prefer" and bool(_OF_SELF.match(text))


def _after(found: list[Constraint], sentence: str, message: Message, source: str) -> list[Constraint]:
    """The constraints once a sentence was said: those that it lifts or replaces end, a new one is added."""
    stated = rule_in(sentence)
    if stated is None:
        return _lifted(found, sentence, message) if source == "human" else found
    rule, form = stated
    if any(c.until is None and same(c.rule, rule) for c in found):
        return found
    ended = [_ended(c, message) if replaces(rule, c.rule) else c for c in found]
    return [*ended, Constraint(rule, form, message.index, source)]


def _ended(constraint: Constraint, message: Message) -> Constraint:
    """A constraint that a later message ends; what the same message says besides only qualifies it."""
    ends = constraint.until is None and constraint.message < message.index
    return replace(constraint, until=message.index) if ends else constraint


def _lifted(found: list[Constraint], sentence: str, message: Message) -> list[Constraint]:
    if not found or not PERMISSION.search(sentence) or sentence.rstrip().endswith("?"):
        return found
    words = frozenset(tokens(sentence))
    return [_ended(c, message) if lifts(words, c.rule) else c for c in found]


def lifts(words: frozenset[str], rule: Rule) -> bool:
    """Whether the words of a permission name what a rule is about."""
    return len(rule.words & words) >= enough(len(rule.words))


def same(one: Rule, other: Rule) -> bool:
    """Whether two rules say the same in the same words."""
    return one.flat == other.flat or (one.words == other.words and one.negated == other.negated)


def replaces(new: Rule, old: Rule) -> bool:
    """Whether a rule contradicts an earlier one: the same words turned round, or with other numbers."""
    if new.negated != old.negated:
        # A long sentence has the words of many rules; it contradicts only one that it is about.
        return _covers(new.words, old.words) and len(new.words) <= 2 * len(old.words) + 1
    numbers = _numbers(new), _numbers(old)
    if numbers[0] == numbers[1] or not all(numbers):
        return False
    ours, theirs = new.words - numbers[0], old.words - numbers[1]
    return _covers(ours, theirs) and _covers(theirs, ours)


def _numbers(rule: Rule) -> frozenset[str]:
    return frozenset(w for w in rule.words if _NUMBER.fullmatch(w))


def _covers(words: frozenset[str], needed: frozenset[str]) -> bool:
    return bool(needed) and len(words & needed) >= enough(len(needed))


def _given_again(transcript: Transcript) -> frozenset[str]:
    """Rule files that the recorded harness put into its window again after a compaction, on one line each."""
    return frozenset(flat(part.text) for c in transcript.compactions for part in c.window
                     if not isinstance(part, int) and source_of(part) == "rule file")


def _pinned(message: Message, given_again: frozenset[str]) -> bool:
    return message.origin == "system" or (message.origin == "injected" and flat(message.text) in given_again)


__all__ = ["Constraint", "constraints", "lifts", "replaces", "rule_in", "same", "sentences", "source_of"]
