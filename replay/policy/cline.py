"""Cuts of Cline's SDK, the file lists behind its summaries and the notices in the place of work that it removes."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay.blocks import Text, ToolCall
from replay.log import Log
from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.cline_size import StoredJson
from replay.policy.estimators import Characters
from replay.policy.tails import filling, fitting
from replay.transcript import Message
from replay.window import Inserted, Item, Span, spans_before

ESTIMATOR = {"part": "estimator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWithinTarget:
    """Keeps recent tokens, no more than a share of the window leaves, from a response or a prompt on.

    Imitates Cline's SDK (agentic): the walk from the end stops with the message that fills the budget and moves back
    to the response before it; a prompt that was typed since the first one is never parted from what follows on it.
    """

    tail_tokens: int = 20_000
    share: float = 0.63
    """Share of the window that the compacted request may fill."""
    reserve: int = 0
    """Tokens of it that system prompt and tools take."""
    estimator: Characters = field(default_factory=StoredJson, metadata=ESTIMATOR)

    def __post_init__(self) -> None:
        """Refuse negative numbers and shares outside of the window."""
        _check_target(self)
        check(self, "tail_tokens", self.tail_tokens >= 0, "0 or more tokens")

    def words(self) -> str:
        """The rule in words."""
        return (f"about {self.tail_tokens:,} recent tokens stay, at most {self.share:.0%} of the window less "
                f"{self.reserve:,}, cut back to a response, or to the last prompt where that is earlier")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Where the tail begins, or why everything stays."""
        room = min(self.tail_tokens, math.floor(moment.capacity.window * self.share) - self.reserve)
        place = filling(moment, self.estimator, room)
        first = _first(moment)
        if place is None or first is None:
            return Refusal("everything_fits")
        prompt = _last_prompt(moment)
        if prompt is not None and prompt > first:
            place = min(place, prompt)
        while place > first and moment.log.messages[place].role == "tool":
            place -= 1
        return Cut(keep_from=place) if place > first else Refusal("everything_fits")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPromptsAndWork:
    """Keeps every prompt, and of the calls and results the newest that fit a share of the window.

    Imitates Cline's SDK (basic). `once`: a later compaction restores what the first one left, so that all the work
    since then is gone, as the captures show. `of_view`: the share is one of the refused request instead.
    """

    share: float = 0.63
    """Share of the window, or of the refused request, that the compacted request may fill."""
    reserve: int = 0
    """Tokens of it that system prompt and tools take."""
    once: bool = True
    of_view: bool = False
    estimator: Characters = field(default_factory=StoredJson, metadata=ESTIMATOR)

    def __post_init__(self) -> None:
        """Refuse negative numbers and shares outside of the window."""
        _check_target(self)

    def words(self) -> str:
        """The rule in words."""
        whole = "the refused request" if self.of_view else "the window"
        again = "; a later compaction restores what the first one left" if self.once else ""
        return f"the prompts stay, and of the work the newest that fits {self.share:.0%} of {whole}{again}"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The prompts that stay and where the newest work begins."""
        if self.once and moment.checkpoint is not None:
            kept = tuple(_loose(moment.log, _before(moment, moment.checkpoint)))
            return Cut(keep_from=moment.window.end, kept=kept)
        prompts = [i for i in moment.log.prompts if moment.floor <= i < moment.window.end]
        weights = self.estimator.weights([moment.log.messages[i] for i in prompts])
        place = fitting(moment, self.estimator, self._room(moment) - sum(weights))
        if place is None:
            return Refusal("everything_fits")
        while place < moment.window.end and moment.log.messages[place].role == "tool":
            place += 1
        place = moment.log.joints[place]
        held = spans_before(moment.window.items, place)
        return Cut(keep_from=place, kept=tuple(Span(i, i + 1) for i in prompts if _in(held, i)))

    def _room(self, moment: Moment) -> int:
        whole = moment.capacity.window
        if self.of_view:
            whole = self.estimator.tokens(moment.log, moment.window) + self.reserve
        return max(0, math.floor(whole * self.share) - self.reserve)


def _check_target(part: KeepWithinTarget | KeepPromptsAndWork) -> None:
    check(part, "share", 0 < part.share <= 1, "a fraction above 0, at most 1")
    check(part, "reserve", part.reserve >= 0, "0 or more tokens")


def _first(moment: Moment) -> int | None:
    """The first message of the window that is no system message."""
    return next((i for i in moment.window.indices() if moment.log.messages[i].origin != "system"), None)


def _last_prompt(moment: Moment) -> int | None:
    prompts = moment.log.prompts
    at = bisect_left(prompts, moment.window.end)
    return prompts[at - 1] if at and _in(moment.window.items, prompts[at - 1]) else None


def _in(items: Sequence[Item], index: int) -> bool:
    return any(isinstance(i, Span) and i.start <= index < i.stop for i in items)


def _before(moment: Moment, stop: int) -> Iterator[Item]:
    """The items of the window up to a log index, inserted ones included."""
    for item in moment.window.items:
        if not isinstance(item, Span):
            yield item
        elif item.start < stop:
            yield Span(item.start, min(item.stop, stop))


def _loose(log: Log, items: Iterator[Item]) -> Iterator[Item]:
    """The items without system messages, which stay by themselves."""
    for item in items:
        if not isinstance(item, Span):
            yield item
            continue
        start = item.start
        for index in log.pinned[bisect_left(log.pinned, item.start):bisect_left(log.pinned, item.stop)]:
            if start < index:
                yield Span(start, index)
            start = index + 1
        if start < item.stop:
            yield Span(start, item.stop)


@dataclass(frozen=True, slots=True)
class Work:
    """What calls touched, each list without repetition in order of first appearance."""

    read: tuple[str, ...]
    changed: tuple[str, ...]
    commands: tuple[str, ...]


def work_of(log: Log, spans: Sequence[Span]) -> Work:
    """What the calls in these log ranges read, changed and ran, by Cline's tools."""
    found: dict[str, dict[str, None]] = {"read_files": {}, "editor": {}, "run_commands": {}}
    for span in spans:
        for call in (c for m in log.messages[span.start:span.stop] for c in m.calls):
            name = "editor" if call.name == "apply_patch" else call.name
            if name in found:
                found[name].update(dict.fromkeys(_named(call)))
    return Work(*(tuple(names) for names in found.values()))


def _named(call: ToolCall) -> Iterator[str]:
    """Paths or commands that a call names."""
    listed: list[Any] = [call.mapping.get("path")]
    for key in ("files", "file_paths", "commands"):
        several = call.mapping.get(key)
        listed += several if isinstance(several, list) else []
    for entry in listed:
        name = entry.get("path") if isinstance(entry, Mapping) else entry
        if isinstance(name, str) and name.strip():
            yield name.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSection:
    """A section with the files that the newly cut part read and changed, by name; not cumulative.

    Imitates Cline's SDK, as its captures show it.
    """

    cumulative: bool = False

    def text(self, log: Log, covers: tuple[Span, ...]) -> str:
        """The section; `- none` stands for an empty list."""
        work = work_of(log, covers)
        lists = ("\n".join(f"- {path}" for path in sorted(paths)) or "- none" for paths in (work.read, work.changed))
        return "\n\n## Files\nRead:\n{}\nModified:\n{}".format(*lists)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityNotices:
    """Behind each prompt a notice of what was done after it and is gone. Imitates Cline's SDK (basic)."""

    opening: str = "Earlier context was compacted. Summary of your actions after the request above:"

    def words(self) -> str:
        """What stands in the place of the work, in words."""
        return "behind each prompt stands a notice of the files and commands of the work that went"

    def message(self, summary: str) -> Message:
        """The notice as a message that is in no log."""
        text = f"<SYSTEM_NOTICE>\n{self.opening}\n{summary}</SYSTEM_NOTICE>"
        return Message(index=-1, role="user", blocks=(Text(text=text),), origin="injected")

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """Prompts with their notices, then the tail; what holds notices already stays as it is."""
        if not kept or any(isinstance(item, Inserted) for item in kept):
            return (*kept, *tail)
        stop = next((i.start for i in tail if isinstance(i, Span)), moment.window.end)
        held = spans_before(moment.window.items, stop)
        ends = [i.start for i in kept[1:] if isinstance(i, Span)] + [stop]
        return (*(i for item, end in zip(kept, ends, strict=True) for i in self._noted(item, end, held, moment)), *tail)

    def _noted(self, item: Item, end: int, held: Sequence[Item], moment: Moment) -> Iterator[Item]:
        yield item
        if not isinstance(item, Span) or moment.log.messages[item.start].origin == "system":
            return
        gone = [Span(max(s.start, item.stop), min(s.stop, end)) for s in held
                if isinstance(s, Span) and s.start < end and s.stop > item.stop]
        work = work_of(moment.log, gone)
        listed = (("Files read", work.read), ("Files edited", work.changed), ("Commands ran", work.commands))
        text = "\n\n".join("\n".join((f"{title}:", *names)) for title, names in listed if names)
        if text:
            yield Inserted(message=self.message(text), kind="notice", label="activity")


CLINE_CUTS: Mapping[str, type] = {"within-target": KeepWithinTarget, "prompts-and-work": KeepPromptsAndWork}
"""Names for `use = …` in a cut table."""
CLINE_APPENDICES: Mapping[str, type] = {"files-section": FilesSection}
"""Names for `use = …` in an appendix table."""
CLINE_REPLACEMENTS: Mapping[str, type] = {"activity-notices": ActivityNotices}
"""Names for `use = …` in a replacement table."""
