"""A policy in words and numbers, made from its spec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replay.policy.appendices import FileLists
from replay.policy.cuts import KeepMessages, KeepRounds, KeepTokens
from replay.policy.cuts_forward import KeepTokensForward
from replay.policy.measures import Estimated, Larger, Reported
from replay.policy.policy import Policy, Stage
from replay.policy.tool_results import ElideBeforeTail, KeepNewestResults
from replay.policy.triggers import Always, MessageCount, Threshold

_SCOPES = {"before-step": "before each step", "after-step": "before each step that continues a turn",
           "turn-start": "before the first step of each turn", "after-turn": "after each turn",
           "before-turn": "before each prompt is taken in"}


def explain(policy: Policy) -> Iterator[str]:
    """Lines that say what the policy does."""
    yield f"{policy.name}: {policy.summary}"
    if policy.harness:
        yield f"imitates {policy.harness} {policy.version} (proof: {policy.proof})"
    yield from _around(policy)
    for number, stage in enumerate(policy.stages, 1):
        yield f"{number}. {stage.name}: {_when(stage)}, {_what(stage)}{''.join(_limits(stage))}."
    if not policy.stages and policy.ingest is None:
        yield "No stage: the window only grows."
    yield _reactive(policy)
    for note in policy.notes:
        yield f"note: {note}"
    for entry in policy.explained:
        yield f"differs from captures ({entry.scenario}): {entry.reason}"


def _around(policy: Policy) -> Iterator[str]:
    """What shapes the window besides the stages."""
    if policy.ingest is not None:
        form = own_words(policy.ingest) or f"in the form of {type(policy.ingest).__name__}"
        yield f"every message enters the window {form}"
    if policy.layers:
        yield f"in front of every view stand {', '.join(layer.words() for layer in policy.layers)}"
    if policy.reinjection is not None:
        yield f"every view holds besides {own_words(policy.reinjection) or type(policy.reinjection).__name__}"
    if policy.output_reserve:
        yield f"kept free for the answer: {policy.output_reserve:,} tokens"
    if policy.window:
        yield f"own default window: {policy.window:,} tokens"
    if policy.reload is not None:
        which = {"since": "what came since", "pending": "the results that were pending at"}[policy.reload_of]
        yield f"a new process loads {which} the last compaction {own_words(policy.reload) or 'in another form'}"


def _when(stage: Stage) -> str:
    return f"{_SCOPES[stage.scope]}, {_trigger(stage.trigger, _measure(stage.measure))}"


def _measure(measure: Any) -> str:
    if isinstance(measure, Reported):
        fields = " and ".join(measure.fields)
        span = "of all calls of the run together" if measure.sum_over == "run" else "of the last call"
        since = " plus an estimate of what came since" if measure.trailing else ""
        return f"the reported {fields} tokens {span}{since}"
    if isinstance(measure, Larger):
        return f"the larger of {_measure(measure.estimate)} and {_measure(measure.report)}"
    if isinstance(measure, Estimated):
        pending = " (the pending prompt counted once more)" if measure.pending else ""
        return f"characters divided by {measure.estimator.divisor}{pending}"
    return own_words(measure) or f"{type(measure).__name__}"


def _trigger(trigger: Any, measured: str) -> str:
    if isinstance(trigger, Threshold):
        level = f"{trigger.tokens:,} tokens" if trigger.tokens is not None else _share(trigger.at)
        level += " without the output reserve" if trigger.base == "usable" else ""
        reserve = f" less {trigger.reserve:,}" if trigger.reserve else ""
        verb = "reach" if trigger.comparison == ">=" else "exceed"
        least = f", with at least {trigger.minimum_messages} messages" if trigger.minimum_messages else ""
        return f"when {measured} {verb} {level}{reserve}{least}"
    if isinstance(trigger, MessageCount):
        return f"when the window holds more than {trigger.more_than} messages"
    words = own_words(trigger)
    if words:
        return words.replace("the measure reaches", f"{measured} reach").replace("the measure exceeds",
                                                                                 f"{measured} exceed")
    return "always" if isinstance(trigger, Always) else f"as {type(trigger).__name__} decides"


def own_words(part: Any) -> str | None:
    """What a part says of itself: it may have a method `words` that gives the middle of a sentence."""
    words = getattr(part, "words", None)
    return str(words()) if callable(words) else None


def _share(at: float | None) -> str:
    return "the window" if at is None else f"{at:.0%} of the window"


def _what(stage: Stage) -> str:
    rule = stage.tool_results
    if isinstance(rule, ElideBeforeTail):
        return f"every tool result before the newest {rule.cut.tail_tokens:,} tokens becomes “{rule.placeholder.text}”"
    if isinstance(rule, KeepNewestResults):
        return f"every tool result but the newest {rule.keep} becomes “{rule.placeholder.text}”"
    if rule is not None:
        return own_words(rule) or f"tool results are changed by {type(rule).__name__}"
    if not stage.summarise:
        return f"{_cut(stage.cut)}; the rest is dropped"
    source = "the whole view" if stage.summary_input == "view" else "what is cut"
    merged = "" if stage.merge_previous else ", from the raw log each time"
    split = ", the beginning of a turn that is cut apart from it" if stage.split_turn else ""
    behind = ", with lists of the files that were read and changed" if isinstance(stage.appendix, FileLists) else ""
    behind += f"; the summariser reads them {own_words(stage.summary_form)}" if stage.summary_form is not None else ""
    behind += f"; {stage.input_limit.words()}" if stage.input_limit is not None else ""
    place = own_words(stage.replacement)
    return f"{_cut(stage.cut)}; {source} is summarised{merged}{split}{behind}{f'; {place}' if place else ''}"


def _limits(stage: Stage) -> Iterator[str]:
    """What keeps a stage from being carried out, or from costing more than it should."""
    if stage.accept == "not-larger":
        yield "; what would make the window larger is not carried out"
    if stage.summary_chars:
        yield f"; a summary is cut to {stage.summary_chars:,} characters"
    if stage.ineffective_below:
        yield f"; a gain of less than {stage.ineffective_below:.0%} counts as a failure"
    if stage.breaker:
        yield f"; after {stage.breaker} failures in a row it is not tried any more"
    if stage.cooldown_minutes:
        yield f"; after a failure it is not tried for {stage.cooldown_minutes:g} minutes"
    if stage.enough:
        yield f"; where that saves {stage.enough:.0%} of the window nothing else is done at that moment"
    if stage.keeps_cache:
        yield "; the provider's cache stays warm"


def _cut(cut: Any) -> str:
    if isinstance(cut, KeepRounds):
        return f"the newest {cut.rounds} rounds stay"
    if isinstance(cut, KeepTokens):
        place = "a prompt" if cut.boundary == "turn" else "a response or a prompt"
        tail = f"{cut.tail_tokens:,}" if cut.share is None else f"{cut.share:.0%} of the window in"
        return f"about {tail} recent tokens stay, cut back to {place}"
    if isinstance(cut, KeepTokensForward):
        second = "" if cut.base == "tail" else ", counted from behind the last compaction"
        return f"about {cut.tail_tokens:,} recent tokens stay, cut forward to a message that is no tool result{second}"
    if isinstance(cut, KeepMessages):
        return f"the newest {cut.messages} messages stay"
    return own_words(cut) or "nothing stays but the summary"


def _reactive(policy: Policy) -> str:
    rule = policy.reactive
    if not rule.attempts:
        return "A request that does not fit ends the run."
    again = f" after {rule.identical_retries} unchanged retries" if rule.identical_retries else ""
    return (f"A request that does not fit is compacted at once{again}, at most {rule.attempts} × per {rule.scope}; "
            "then the run ends.")
