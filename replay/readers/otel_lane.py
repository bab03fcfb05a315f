"""One conversation as its model calls saw it: prompts that repeat and extend each other, folded into one log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from replay.blocks import Block, Opaque, Text, ToolCall, ToolResult
from replay.readers.common import ThreadBuilder
from replay.readers.openai_chat_blocks import Pairing
from replay.readers.otel_messages import UNNAMED, Turn
from replay.readers.otel_spans import Span
from replay.transcript import Message, Origin, RecordedCompaction, Step, Thread, Usage

_WRAPPERS = ("<system-reminder", "<environment_context", "<user_instructions", "<session_context", "<permissions")
_UNSEEN = Turn("assistant", (Opaque(label="response not recorded", size_bytes=0),), ("unseen",), "")
_TELLING = 40
"""Characters of an answer that are enough to know it again inside a summary."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One message of the window."""

    turn: Turn
    index: int | None
    """Log index; None for what is in no log."""
    shown: Message | None = None
    """What stands there where the log's message does not stand verbatim."""


@dataclass
class Lane:
    """A conversation; its prompts come one after another."""

    thread: ThreadBuilder
    agent: str = ""
    """The agent's span; empty for the session's own agent."""
    system: str | None = None
    window: list[Placed] = field(default_factory=list)
    side: list[Thread] = field(default_factory=list)
    """Answers that the conversation did not go on from, and calls that wrote summaries."""
    instructions_changed: int = 0
    """How often a system message in front of unchanged talk had another text than before."""
    begun: int = 0
    """Length of the log before the last call's prompt added to it."""
    unanswered: Span | None = None
    """The last call, while its answer is not known."""
    pairing: Pairing = field(default_factory=Pairing)
    places: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    """Log indices by the key of a turn."""
    turns: list[Turn] = field(default_factory=list)
    """The turn of every log message."""

    def overlap(self, prompt: Iterable[Turn]) -> int:
        """How many messages of a prompt the log holds, instructions aside."""
        return sum(turn.key in self.places for turn in prompt if turn.role not in ("system", "developer"))

    def extends(self, prompt: Sequence[Turn]) -> bool:
        """Whether a prompt begins with the whole window; texts of results and of instructions may differ."""
        return len(prompt) >= len(self.window) and all(map(_same, prompt, self.window))

    def repeats(self, prompt: Sequence[Turn]) -> bool:
        """Whether a prompt is the last one again, as if its answer had not come."""
        last = self.thread.steps[-1] if self.thread.steps else None
        if last is None or last.response is None or self.window[-1].index != last.response:
            return False
        held = self.window[:-1]
        return len(prompt) >= len(held) > 0 and all(map(_same, prompt, held)) and (
            len(prompt) == len(held) or prompt[len(held)].role == "user")

    def call(self, span: Span, prompt: Sequence[Turn], usage: Usage | None, line: int | None) -> None:
        """Take in a model call with its prompt."""
        self._late_answer(prompt)
        begun = len(self.thread.messages)
        if self.extends(prompt):
            self._texts(prompt, line)
        elif self.repeats(prompt):
            self._take_back("unused")
        elif self.thread.messages or self.window:
            self._compacted(prompt, line)
            prompt = ()
        for turn in prompt[len(self.window):]:
            self._append(turn, line)
        self.begun = min(begun, len(self.thread.messages))
        self._answered(span, usage)

    def _late_answer(self, prompt: Sequence[Turn]) -> None:
        """An answer that was not recorded shows up in the next prompt; else all that is known is that it came."""
        span, self.unanswered = self.unanswered, None
        if span is None:
            return
        at = len(self.window)
        if self.extends(prompt):
            answer = prompt[at] if len(prompt) > at and prompt[at].role == "assistant" else None
        else:
            known = max((n for n, turn in enumerate(prompt) if turn.key in self.places), default=-1)
            answer = next((t for t in prompt[known + 1:] if t.role == "assistant"), _UNSEEN)
        if answer is not None:
            step = self.thread.steps.pop()
            self._respond(span, answer, step.usage)

    def _answered(self, span: Span, usage: Usage | None) -> None:
        said = [turn for turn in span.answer or () if turn.role == "assistant"]
        if not said:
            self._unseen(span, usage)
            return
        whole = said[0] if len(said) == 1 else replace(
            said[0], blocks=tuple(b for turn in said for b in turn.blocks), words="\n".join(t.words for t in said))
        self._respond(span, whole, usage)

    def _unseen(self, span: Span, usage: Usage | None) -> None:
        """A call whose answer was not recorded, or that failed."""
        self.unanswered = span if span.error is None else None
        counted = usage if usage is not None and usage.total else None
        self.thread.steps.append(Step(
            number=len(self.thread.steps) + 1, start=len(self.thread.messages), response=None, usage=counted,
            model=span.model, time=span.end, request_id=span.request_id, error=span.error))

    def without_prompt(self, span: Span, usage: Usage | None) -> None:
        """A call of which at most the answer was recorded: what was sent is taken to be what is known."""
        self._answered(span, usage)
        self.unanswered = None

    def _respond(self, span: Span, turn: Turn, usage: Usage | None) -> None:
        self.pairing.respond()
        self.thread.respond(list(self._own(turn.blocks)), usage, model=span.model, time=span.end or span.start,
                            request_id=span.request_id, error=span.error, line=span.line, id=span.id or None)
        self._placed(turn)

    def _append(self, turn: Turn, line: int | None) -> None:
        if turn.role == "assistant":
            self.pairing.respond()
        self.thread.add(turn.role, list(self._own(turn.blocks)), origin_of(turn), line=line)
        self._placed(turn)

    def _placed(self, turn: Turn) -> None:
        index = len(self.turns)
        self.turns.append(turn)
        self.places.setdefault(turn.key, []).append(index)
        self.window.append(Placed(turn, index))

    def _own(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks with ids that are unique in the log."""
        for block in blocks:
            if isinstance(block, ToolCall):
                native = "" if block.id.startswith(UNNAMED) else block.id
                yield replace(block, id=self.pairing.call(native, block.name))
            elif isinstance(block, ToolResult):
                yield replace(block, call_id=self.pairing.result(block.call_id, block.name))
            else:
                yield block

    def _take_back(self, what: str) -> None:
        """Leave the last call's answer, and what its prompt had added if it wrote a summary."""
        at = self.begun if what == "summary" else len(self.thread.messages) - 1
        steps = [s for s in self.thread.steps if s.start >= at]
        moved = tuple(replace(m, index=m.index - at) for m in self.thread.messages[at:])
        self.side.append(Thread(
            id=f"{self.thread.id}/{what}-{len(self.side) + 1}", messages=moved,
            steps=tuple(_moved(step, number, at) for number, step in enumerate(steps, 1))))
        del self.thread.steps[len(self.thread.steps) - len(steps):]
        del self.thread.messages[at:]
        for index, turn in enumerate(self.turns[at:], at):
            self.places[turn.key].remove(index)
            if not self.places[turn.key]:
                del self.places[turn.key]
        del self.turns[at:]
        self.window = [item for item in self.window if item.index is None or item.index < at]

    def _texts(self, prompt: Sequence[Turn], line: int | None) -> None:
        """Results whose texts are others than before were blanked."""
        blanked: dict[str, list[int]] = {}
        for place, (turn, item) in enumerate(zip(prompt, self.window, strict=False)):
            self.instructions_changed += turn.key != item.turn.key
            if turn.key[0] == "tool" and turn.words != item.turn.words:
                self.window[place] = replace(item, turn=turn)
                if item.index is not None:
                    blanked.setdefault(turn.words, []).append(item.index)
        for text, indices in blanked.items():
            self.thread.compactions.append(RecordedCompaction(
                position=len(self.thread.messages), kind="micro", elided=tuple(indices), placeholder=text, line=line))

    def _compacted(self, prompt: Sequence[Turn], line: int | None) -> None:
        """A prompt that does not go on from the one before: the harness changed the window."""
        if self._wrote_summary(prompt):
            self._take_back("summary")
        placed = list(self._map(prompt))
        new = self._news(placed)
        kept = placed[:len(placed) - new]
        summary = _summary(kept)
        if summary is not None:
            message = kept[summary].shown
            assert message is not None  # noqa: S101 - only inserted messages are summaries
            kept[summary] = replace(kept[summary], shown=replace(message, origin="summary"))
        text = kept[summary].turn.words if summary is not None else None
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full", window=tuple(_part(item) for item in kept),
            summary=text or None, summary_readable=bool(text), line=line))
        self.window = kept
        for item in placed[len(placed) - new:]:
            self._append(item.turn, line)

    def _wrote_summary(self, prompt: Sequence[Turn]) -> bool:
        """Whether the last answer stands inside a message that is new now."""
        last = self.thread.steps[-1] if self.thread.steps else None
        if last is None or last.response is None or last.response != len(self.thread.messages) - 1:
            return False
        said = self.turns[last.response].words
        return len(said) >= _TELLING and any(
            said in turn.words for turn in prompt if turn.key not in self.places)

    def _map(self, prompt: Sequence[Turn]) -> Iterator[Placed]:
        """Each message of a prompt as the log's message that it is, or as one of its own."""
        used: set[int] = set()
        inserted = {item.turn.key: item for item in self.window if item.index is None}
        last = -1
        for turn in prompt:
            free = [i for i in self.places.get(turn.key, ()) if i not in used]
            index = next((i for i in free if i > last), free[-1] if free else None)
            if index is None:
                yield inserted.get(turn.key) or Placed(turn, None, self._message(turn))
                continue
            used.add(index)
            last = index
            is_same = turn.key[0] != "tool" or turn.words == self.turns[index].words
            yield Placed(turn, index, None if is_same else self._message(turn))

    def _message(self, turn: Turn) -> Message:
        return Message(index=-1, role=turn.role, blocks=turn.blocks,
                       origin="tool" if turn.role == "tool" else "system" if turn.role in (
                           "system", "developer") else "injected")

    def _news(self, placed: Sequence[Placed]) -> int:
        """How many messages at the end are new talk and not part of the changed window.

        With the log's last message kept, all after it; else a last prompt that does not stand first among the new.
        """
        after = 0
        for item in reversed(placed):
            if item.index is not None:
                break
            after += 1
        held = [item.index for item in placed if item.index is not None]
        if held and held[-1] == len(self.thread.messages) - 1:
            return after
        texts = [item for item in placed if item.index is None and item.turn.role not in ("system", "developer")]
        return int(after > 0 and len(texts) > 1 and placed[-1].turn.role == "user")

    def finish(self, results: dict[str, str]) -> None:
        """Add the results of the last calls, of which only the tools' own spans tell."""
        answered = {r.call_id for m in self.thread.messages for r in m.results}
        last = self.thread.messages[-1] if self.thread.messages else None
        for call in last.calls if last is not None else ():
            if call.id not in answered and call.id in results:
                block = ToolResult(call_id=call.id, text=results[call.id], name=call.name)
                self.thread.add("tool", [block], "tool", detail="tool span")


def _same(turn: Turn, item: Placed) -> bool:
    """Whether a message stands where it stood; instructions are often written anew for each call."""
    return turn.key == item.turn.key or (turn.role == item.turn.role and turn.role in ("system", "developer"))


def _moved(step: Step, number: int, at: int) -> Step:
    return replace(step, number=number, start=step.start - at,
                   response=None if step.response is None else step.response - at)


def _part(item: Placed) -> int | Message:
    if item.shown is not None:
        return item.shown
    return item.index if item.index is not None else Message(
        index=-1, role=item.turn.role, blocks=item.turn.blocks, origin="injected")


def _summary(placed: Sequence[Placed]) -> int | None:
    """The first text among what is in no log."""
    for position, item in enumerate(placed):
        if item.index is None and item.turn.role not in ("system", "developer", "tool") and item.turn.words and (
                item.shown is not None and item.shown.origin == "injected"):
            return position
    return None


def origin_of(turn: Turn) -> Origin:
    """Who wrote a message of a prompt."""
    if turn.role in ("system", "developer"):
        return "system"
    if turn.role == "assistant":
        return "model"
    if turn.role == "tool":
        return "tool"
    first = next((b.text for b in turn.blocks if isinstance(b, Text)), "")
    return "injected" if first.lstrip().startswith(_WRAPPERS) else "human"
