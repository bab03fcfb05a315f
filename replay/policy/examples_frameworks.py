"""Worked examples of the Python frameworks' rules, and of what a protected end and a minimum gain do."""

from __future__ import annotations

from dataclasses import replace

from replay.policy.base import Refusal
from replay.policy.cuts_kept import KeepHeadAndTail
from replay.policy.estimators import Characters
from replay.policy.example_tools import estimate, keep_from, log_of, moment, of_kind
from replay.policy.examples import Example
from replay.policy.langchain import KeepSuffix, Scaled
from replay.policy.load import policy
from replay.policy.tool_rules import ProtectNewestTokens


def _estimate() -> int:
    ruler = of_kind(policy("langchain-summarization").stages[0].measure, Scaled).estimator
    return estimate(ruler, (5, 5, 5))


def _adjacent() -> list[int | str]:
    """Prompt, call, two results, answer, prompt, of which four messages stay: LangChain's cut and OpenHands'."""
    at = moment(log_of(("u", 1), ("a", 1), ("t", 1), ("t", 1), ("s", 1), ("u", 1)))
    return [keep_from(KeepSuffix(messages=4), at), keep_from(KeepHeadAndTail(head=0, tail=4), at)]


def _at_least_one() -> int | str:
    """Where LangChain cuts if not even the last message fits."""
    return keep_from(KeepSuffix(tokens=10), moment(log_of(("u", 100), ("s", 100), ("u", 100))))


def _protected(preset: str, *results: int) -> str:
    """What a preset's rule says of results of these sizes, newest first."""
    rules = [s.tool_results for s in policy(preset).stages if isinstance(s.tool_results, ProtectNewestTokens)]
    rule = replace(rules[-1], turns=0, spares_newest=False, estimator=Characters(counts=("result",)))
    calls = [m for size in reversed(results) for m in (("a", 1), ("t", size))]
    found = rule.marks(moment(log_of(("u", 1), *calls)))
    return found.reason if isinstance(found, Refusal) else f"below {found[0].stop}"


EXAMPLES = (
    Example(number=1, presets=("langchain-summarization",),
            says="three messages of 5 characters by LangChain: 3 × (the ceiling of 9 / 4, and 3)",
            expected=18, found=_estimate),
    Example(number=10, presets=("langchain-summarization", "openhands-sdk"),
            says="four messages to keep, the first a result: LangChain moves back to the call, OpenHands on",
            expected=[1, 4], found=_adjacent),
    Example(number=13, presets=("gemini-cli", "opencode"),
            says="results of 30,000, 15,000 and 10,000: OpenCode clears the one that crosses its line too, "
            "Gemini gains too little", expected=("below 5", "gain_too_small"),
            found=lambda: (_protected("opencode", 30_000, 15_000, 10_000),
                           _protected("gemini-cli", 30_000, 15_000, 10_000))),
    Example(number=13, presets=("gemini-cli", "opencode"),
            says="a gain that is exactly the minimum is not enough for OpenCode and is for Gemini",
            expected=("gain_too_small", "below 3"),
            found=lambda: (_protected("opencode", 40_000, 20_000), _protected("gemini-cli", 50_000, 30_000))),
    Example(number=16, presets=("langchain-summarization",),
            says="LangChain keeps at least one message", expected=2, found=_at_least_one),
)
