"""How a session ended, as far as something else than the agent says so: labels with source and confidence (D1).

In this order the first that tells anything counts: an external verifier (results table, sidecar file, a grade in the
file itself), the last full test run, the last check of a pushed commit, a person's words, and how the run broke off.
What the agent claims never counts. No label is `unknown`, which is neither a pass nor a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from evals.actions import Action, actions
from evals.suite_runs import SuiteRun, suite_runs
from replay.transcript import Message, Transcript

Value = Literal["pass", "fail", "partial", "unknown"]

_ACCEPTED = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|great|perfect|nice|awesome|excellent|cool)[,.! ]+)*(?:lgtm|looks good|it works|"
    r"that works|works (?:now|great|well|perfectly)|ship it|approved|perfect|(?:great|good|nice) (?:job|work)|all good|"
    r"well done)\b",
    re.IGNORECASE)
_REFUSED = re.compile(
    r"\b(?:still (?:broken|failing|fails|crash\w*|not working|doesn['’]?t work)|"
    r"(?:doesn['’]?t|does not|didn['’]?t) work|not (?:fixed|working)|you broke|this is wrong|"
    r"revert (?:this|that|it|everything))\b", re.IGNORECASE)
_CHECKS = re.compile(r"\bgh (?:pr checks|run (?:watch|view|list))\b")
_CHECK_FAILED = re.compile(r"(?:^|\s)(?:fail(?:ed|ure)?|X|✗|timed_out|cancelled)(?=\s)", re.MULTILINE)
_CHECK_OPEN = re.compile(r"(?:^|\s)(?:pending|queued|in_progress|\*)(?=\s)", re.MULTILINE)
_CHECK_PASSED = re.compile(r"(?:^|\s)(?:pass(?:ed)?|success|✓)(?=\s)", re.MULTILINE)
_ACCEPTANCE_WORDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """An outcome with where it comes from."""

    value: Value
    source: str
    message: int | None = None
    """Log index of the evidence."""
    confidence: float = 1.0
    """From 0 to 1, set by the kind of evidence; 1 for an external verifier."""
    detail: str | None = None

    @property
    def passed(self) -> float | None:
        """1 for a pass, 0 for a failure or a partial success, None where nothing is known."""
        return None if self.value == "unknown" else float(self.value == "pass")


UNKNOWN = Label(value="unknown", source="none", confidence=0.0, detail="nothing but the agent tells how it ended")


def transcript_label(transcript: Transcript, made: Sequence[Action] | None = None) -> Label:
    """The label that a transcript holds itself; `UNKNOWN` where it holds none. `made`: its calls, where known."""
    calls = actions(transcript.main) if made is None else made
    finders: Sequence[Callable[[], Label | None]] = (
        lambda: _graded(transcript), lambda: _tested(calls), lambda: _checked(calls),
        lambda: _spoken(transcript.messages), lambda: _ended(transcript))
    return next((label for find in finders if (label := find()) is not None), UNKNOWN)


def _graded(transcript: Transcript) -> Label | None:
    """A verifier's grade that the harness wrote into the file."""
    found = transcript.outcome
    if found is None or not found.source.endswith("resolved") or found.value == "unknown":
        return None
    return Label(value=found.value, source=f"graded: {found.source}", detail=found.detail)


def _tested(made: Sequence[Action]) -> Label | None:
    """The last full run of the tests; where there was none, the last run of some."""
    runs = [r for r in suite_runs(made) if r.value != "unknown"]
    full = [r for r in runs if r.full]
    if not runs:
        return None
    run = (full or runs)[-1]
    changed = any(t.kind != "read" for a in made if a.message > run.action.message and not a.failed for t in a.touches)
    return Label(value=_value(run), source="last full test run" if run.full else "last run of selected tests",
                 message=run.message, confidence=_confidence(run, changed), detail=_words(run, changed))


def _value(run: SuiteRun) -> Value:
    """Chosen tests that pass prove only themselves."""
    value: Value = run.value  # type: ignore[assignment]
    return value if run.full or value == "fail" else "unknown"


def _confidence(run: SuiteRun, changed: bool) -> float:
    """0.9 for counted results of everything; less for chosen tests, cut output, exit codes, later changes."""
    base = 0.9 if run.counts else 0.6
    for holds, factor in ((not run.full, 0.5), (run.filtered, 0.6), (changed, 0.7)):
        base *= factor if holds else 1.0
    return round(base, 2)


def _words(run: SuiteRun, changed: bool) -> str:
    told = (f"{run.counts.runner}: {run.counts.passed} passed, {run.counts.failed} failed" if run.counts
            else f"exit code {run.exit_code}")
    more = [w for holds, w in ((run.filtered, "of filtered output"), (changed, "files were changed after it")) if holds]
    return "; ".join([told, *more])


def _checked(made: Sequence[Action]) -> Label | None:
    """The last look at the checks of a pushed commit, where they were done."""
    for action in reversed(made):
        if action.command and _CHECKS.search(action.command) and action.text and not _CHECK_OPEN.search(action.text):
            bad, good = _CHECK_FAILED.search(action.text), _CHECK_PASSED.search(action.text)
            if bad or good:
                return Label(value="fail" if bad else "pass", source="checks of the commit", message=action.result,
                             confidence=0.7, detail=action.command[:120])
    return None


def _spoken(messages: Sequence[Message]) -> Label | None:
    """The last words of a person, where they plainly accept or refuse."""
    last = next((m for m in reversed(messages) if m.origin == "human" and m.role == "user"), None)
    if last is None or last.index == 0 or len(last.text.split()) > _ACCEPTANCE_WORDS:
        return None
    bad, good = _REFUSED.search(last.text), _ACCEPTED.search(last.text.strip())
    if not bad and not good:
        return None
    return Label(value="fail" if bad else "pass", source="a person's words", message=last.index, confidence=0.4,
                 detail=last.text.strip()[:120])


def _ended(transcript: Transcript) -> Label | None:
    """A run that broke off without handing anything in failed; what was handed in may be right or wrong."""
    found = transcript.outcome
    if found is None:
        return None
    broke = found.value == "fail" and found.source != "success"
    return Label(value="fail" if broke else "unknown", source=f"ending: {found.source}",
                 confidence=0.5 if broke else 0.0, detail=found.detail)
