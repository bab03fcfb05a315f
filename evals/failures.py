"""Failed calls and the later calls that try the same thing again: what a lane should still show when they do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from evals.actions import Action
from evals.phrases import WORD, Prepared, content_words, enough, flat, holds
from evals.shell_results import normalised, signature

_FAILING = frozenset(("fail", "failed", "fails", "failing", "failure", "error", "errors", "broken", "wrong", "rejected",
                      "refused", "denied", "exception"))
_SHORTEST_SIGNATURE = 8
_WORDS = re.compile(r"\w+")
_NO_WORD = "-"
"""Key of failures without an indexed word: no text has it, and only their own result shows them."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A call whose last earlier try had failed."""

    action: Action
    before: Action
    """The earlier try."""

    @property
    def failed_again(self) -> bool:
        """It failed once more."""
        return self.action.failed


@dataclass(frozen=True)
class Failure:
    """A failure as a phrase: its error line anywhere, or in a summary one sentence that says that this call failed."""

    target: str
    """The command or file, as it was tried."""
    line: str
    """The error line; empty where the result has none that tells anything."""

    @cached_property
    def words(self) -> frozenset[str]:
        """What names the call."""
        return content_words(self.target)

    @cached_property
    def _line_words(self) -> frozenset[str]:
        return frozenset(WORD.findall(self.line.lower()))

    @cached_property
    def _target_words(self) -> list[str]:
        return sorted((w for w in self.words if WORD.fullmatch(w)), key=lambda w: (-len(w), w))

    @cached_property
    def _need(self) -> int:
        """Of the indexed words of the target how many a sentence about it has."""
        return max(1, enough(len(self.words)) - len(self.words) + len(self._target_words))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The longest word of the error line and enough of the longest ones of the target."""
        spare = len(self._target_words) - self._need + 1
        return frozenset([*sorted(self._line_words, key=len)[-1:], *self._target_words[:spare], _NO_WORD])

    @cached_property
    def indexed(self) -> frozenset[str]:
        """The words of both."""
        return self._line_words.union(self._target_words)

    @property
    def groups(self) -> list[tuple[list[str], int]]:
        """In a log the error line alone tells: all its words."""
        words = list(dict.fromkeys(_WORDS.findall(self.line)))
        return [(words, len(words))] if words else []

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether the error line's words or enough of the target's are there."""
        if self._line_words and words >= self._line_words:
            return True
        return summary and len(words.intersection(self._target_words)) >= self._need

    @cached_property
    def flat(self) -> str:
        """The error line on one line."""
        return flat(self.line)

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """2 with the error line, 1 in a summary that says that this call failed."""
        if len(self.flat) >= _SHORTEST_SIGNATURE and holds(prepared.flat, self.flat):
            return 2
        if not summary or not self.words:
            return 0
        need = enough(len(self.words))
        sentences = prepared.words_of_sentences(self.keys)
        return int(any(len(self.words & s) >= need and not _FAILING.isdisjoint(s) for s in sentences))


def retries(made: Sequence[Action]) -> list[Retry]:
    """Calls that try again what failed the last time it was tried, in order."""
    last: dict[tuple[str, str], Action] = {}
    found: list[Retry] = []
    for action in made:
        key = attempt(action)
        if key is None:
            continue
        before = last.get(key)
        # Calls of one response cannot know of each other's results.
        if before is not None and before.failed and before.result is not None and before.result < action.message:
            found.append(Retry(action, before))
        last[key] = action
    return found


def attempt(action: Action) -> tuple[str, str] | None:
    """What a call tries: a command, or one kind of access to a file; None for everything else."""
    if action.command is not None:
        command = normalised(action.command)
        return ("command", command) if command else None
    if len(action.touches) == 1:
        return action.touches[0].kind, action.touches[0].path
    return None


def failure(retry: Retry) -> Failure:
    """The phrase of what failed before a retry."""
    key = attempt(retry.before)
    return Failure(target=key[1] if key else "", line=signature(retry.before.text))
