"""A replacement that puts back more than files: to-do lists, plans, skills and rules, as the log last held them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from replay.blocks import Text, ToolCall
from replay.log import Log
from replay.policy.attachments import CHARS_PER_TOKEN, RestoredFiles
from replay.policy.base import Moment, check
from replay.policy.exchanges import SummaryExchange
from replay.readers.common import json_text
from replay.transcript import Message
from replay.window import Inserted, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredContext(RestoredFiles):
    """A summary, then files, the to-do list, the plan, skills and rules; each frame that is empty leaves its part out.

    The to-do list is the newest call of a `todo_tools` tool, the plan the newest of a `plan_tools` tool. Skills are the
    results of `skill_tools`, newest first, each cut to its size, while the budget lasts. Rules are what the program
    put in front of the first prompt. Imitates Claude Code, which reads all of it from disk and from its own state; what
    of that no tool of the session shows is left out.
    """

    todo_tools: tuple[str, ...] = ("TodoWrite", "todo_write", "todowrite", "update_plan")
    todo_frame: str = ""
    """`{content}` is the call's arguments as JSON; the same in the other frames for their text."""
    plan_tools: tuple[str, ...] = ("ExitPlanMode", "exit_plan_mode")
    plan_frame: str = ""
    skill_tools: tuple[str, ...] = ("Skill", "skill", "activate_skill")
    skill_frame: str = ""
    skill_tokens: int = 5_000
    skills_budget_tokens: int = 25_000
    rules_frame: str = ""
    behind_tail: bool = False
    """What is put back stands behind the tail instead of in front of it."""

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        RestoredFiles.__post_init__(self)
        check(self, "skill_tokens", self.skill_tokens >= 0, "0 or more tokens")
        check(self, "skills_budget_tokens", self.skills_budget_tokens >= 0, "0 or more tokens")

    def words(self) -> str:
        """What stands around the summary, in words."""
        more = [name for name, frame in (("the to-do list", self.todo_frame), ("the plan", self.plan_frame),
                                         ("skills", self.skill_frame), ("rules", self.rules_frame)) if frame]
        return " and ".join([f"it stands with up to {self.files} files touched last", *more])

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """The exchange with what is put back, in front of the tail or behind it."""
        back = (*RestoredFiles._attached(self, moment), *self._more(moment))
        tail = (*tail, *back) if self.behind_tail else (*back, *tail)
        return SummaryExchange.place(self, summary, kept, tail, moment)

    def _more(self, moment: Moment) -> Iterator[Inserted]:
        known, end, floor = _found(self, moment.log), moment.window.end, moment.floor
        for frame, place in ((self.todo_frame, _newest(known.todos, floor, end)),
                             (self.plan_frame, _newest(known.plans, floor, end))):
            if frame and place is not None:
                yield _written(frame, known.texts[place])
        if self.skill_frame:
            yield from self._skills(known, floor, end)
        if self.rules_frame:
            yield from (_written(self.rules_frame, text) for text in _rules(moment))

    def _skills(self, known: _Found, floor: int, end: int) -> Iterator[Inserted]:
        """Skills that fit the budget, newest first."""
        room = self.skills_budget_tokens * CHARS_PER_TOKEN
        low, high = bisect_left(known.skills, floor), bisect_left(known.skills, end)
        for text in dict.fromkeys(known.texts[i] for i in reversed(known.skills[low:high])):
            shown = text[:self.skill_tokens * CHARS_PER_TOKEN]
            if not shown or len(shown) > room:
                return
            room -= len(shown)
            yield _written(self.skill_frame, shown)


@dataclass(slots=True)
class _Found:
    """Log indices of what can be put back, in order, and the text of each."""

    todos: list[int]
    plans: list[int]
    skills: list[int]
    texts: dict[int, str]


_KNOWN: WeakKeyDictionary[Log, dict[RestoredContext, _Found]] = WeakKeyDictionary()


def _found(rule: RestoredContext, log: Log) -> _Found:
    """What a log holds, found once."""
    known = _KNOWN.setdefault(log, {})
    if rule not in known:
        made: dict[str, ToolCall] = {}
        known[rule] = found = _Found([], [], [], {})
        places = {**dict.fromkeys(rule.todo_tools, found.todos), **dict.fromkeys(rule.plan_tools, found.plans)}
        for message in log.messages:
            for call in message.calls:
                made[call.id] = call
                if call.name in places:
                    places[call.name].append(message.index)
                    found.texts[message.index] = _arguments(call)
            for result in message.results:
                asked = made.get(result.call_id)
                if asked is not None and asked.name in rule.skill_tools and not result.is_error:
                    found.skills.append(message.index)
                    found.texts[message.index] = result.text
    return known[rule]


def _arguments(call: ToolCall) -> str:
    """A call's only argument where that is a text, else all of them as JSON."""
    values = list(call.mapping.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json_text(call.mapping)


def _newest(places: list[int], floor: int, end: int) -> int | None:
    position = bisect_left(places, end) - 1
    return places[position] if position >= 0 and places[position] >= floor else None


def _rules(moment: Moment) -> Iterator[str]:
    """Texts that the program put in front of the first prompt."""
    first = next((i for i in moment.log.rounds if i >= moment.floor), moment.window.end)
    for message in moment.log.messages[moment.floor:min(first, moment.window.end)]:
        if message.origin == "injected" and message.text:
            yield message.text


def _written(frame: str, content: str) -> Inserted:
    text = frame.replace("{content}", content)
    message = Message(index=-1, role="user", blocks=(Text(text=text),), origin="injected")
    return Inserted(message=message, kind="injected", label="restored")


RESTORED: Mapping[str, type] = {"restored-context": RestoredContext}
"""Names for `use = …` in a replacement table."""
