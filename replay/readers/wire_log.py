"""Requests of a capture, in order, into a log with steps, recorded compactions and what each request showed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from replay.blocks import Block, Text, ToolResult
from replay.readers.common import ThreadBuilder, whole
from replay.readers.native import mapping, string
from replay.readers.wire_items import ItemTable, Piece, is_left_out, response_blocks
from replay.readers.wire_kept import unshown
from replay.readers.wire_parts import (
    failure,
    is_repeated,
    log_part,
    marks,
    new_part,
    recorded_part,
    sent_request,
    side_thread,
    signature,
)
from replay.readers.wire_sent import Part, Sent
from replay.transcript import Origin, RecordedCompaction, Thread, Usage

_CONTEXT = ("<session_context>", "This is the Qwen Code. We are setting up the context for our chat.",
            "<system-reminder>\nThe following skills", "<system-reminder>\nThis is the Qwen Code.",
            "<system-reminder>\nThe following tools")
"""How the messages begin with which Gemini CLI and Qwen Code tell a session's surroundings, new in every process."""
_REMINDER = "<system-reminder>\nThe current date is"
_CONTEXT_ANSWER = "Got it. Thanks for the context!"
_HEAD = 40
"""Characters of a summary by which a message that holds it is known."""


@dataclass
class Capture:
    """One run, read request by request."""

    items: ItemTable
    prompts: tuple[str, ...]
    """What the person typed, in order."""
    processes: frozenset[int]
    """Numbers of the requests with which a new process of the harness begins."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Id of a call to its result, from the harness's own file, for results that no request shows."""
    thread: ThreadBuilder = field(default_factory=lambda: ThreadBuilder(id="main"))
    side: list[Thread] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)
    served: bool = False
    """The endpoint answered from a recorded session, whose responses bear no scripted numbers."""
    _known: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Role and text of a log message to its index; the same words may be said again."""
    _at: int = -1
    """Index of the last log message that was found in the request that is read."""
    _results: dict[str, int] = field(default_factory=dict)
    _made: dict[str, int] = field(default_factory=dict)
    """Id of a call to the index of its response."""
    _unseen: dict[str, int] = field(default_factory=dict)
    """Text of a response that no request has shown yet to its index: the harness may have given its calls other ids."""
    _inserted: dict[tuple[str, str], str] = field(default_factory=dict)
    _summaries: list[str] = field(default_factory=list)
    _asked: int = 0
    """Summaries asked for since the last step's request."""
    _shown: tuple[Part, ...] = ()
    """History of the last view, with the response and results since."""
    _refused: list[Sent] = field(default_factory=list)
    _refusal: str = ""
    """Why the last refused request was refused."""
    _seen: int = 0
    """Length of the log at the last view."""
    _before: int = 0
    """Length of the log before the request that is read."""
    _fresh_process: bool = False
    _lost: bool = False
    """The request that is read was compacted: a summary was asked for, or messages of the last view are not in it."""

    def take(self, request: Mapping[str, Any]) -> None:
        """Read the next request."""
        self._fresh_process |= whole(request.get("index")) in self.processes
        found = self.items.pieces(i for i in request.get("items") or () if isinstance(i, int))
        if request.get("kind") == "step":
            self._step(request, found)
        else:
            self._aside(request, found)

    def finish(self) -> None:
        """A refusal that nothing followed ends the run."""
        self._give_up()

    def _step(self, request: Mapping[str, Any], found: Sequence[Piece]) -> None:
        response = mapping(request.get("response"))
        if self._refused and self._has_new_prompt(found):
            self._give_up()
        if self._fresh_process and self.thread.steps:
            self.resumed.append(len(self.thread.steps) + 1)
        self._lost = bool(self._asked) or (not self._fresh_process and self._misses(found))
        self._before = len(self.thread.messages)
        self._log_unshown(found)
        parts = self._place(found)
        sent = sent_request(request, found, len(self.thread.steps) + 1, parts, response)
        self.sent.append(sent)
        if not sent.accepted:
            self._refused.append(sent)
            self._refusal = failure(response)
        self._record_change(sent.history)
        if sent.accepted:
            self._respond(request, response)
        self._asked, self._fresh_process = 0, False

    def _log_unshown(self, found: Sequence[Piece]) -> None:
        """Results of the last response that were compacted away before a request showed them."""
        last = self.thread.messages[-1:]
        calls = (c.id for m in last if m.role == "assistant" for c in m.calls)
        for piece in unshown(calls, self.kept, frozenset(i for p in found for i in p.answers)):
            self._log(piece, "tool")

    def _respond(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        used = mapping(response.get("usage"))
        usage = Usage(input_uncached=whole(used.get("prompt")), output=whole(used.get("completion")))
        blocks = response_blocks(response)
        step = self.thread.respond(blocks, usage, model=string(mapping(request.get("params")).get("model")),
                                   request_id=str(request.get("index")))
        self._refused.clear()
        message = self.thread.messages[step.start]
        self._made.update((call.id, step.start) for call in message.calls)
        self._unseen[message.text] = step.start

    def _give_up(self) -> None:
        if self._refused:
            self.thread.fail(self._refusal, request_id=str(self._refused[-1].number))
            self._refused.clear()

    def _has_new_prompt(self, found: Sequence[Piece]) -> bool:
        texts = [p.text for p in found if p.role == "user"]
        known = {m.text for m in self.thread.messages if m.origin == "human"}
        return any(prompt in text and text not in known for prompt in self.prompts for text in texts)

    def _aside(self, request: Mapping[str, Any], found: Sequence[Piece]) -> None:
        """A summary request: its messages go into a thread of their own, results that only it shows into the log."""
        response = mapping(request.get("response"))
        for piece in found:
            if piece.role == "tool" and any(i in self._made and i not in self._results for i in piece.answers):
                self._log(piece, "tool")
        kind: Literal["summary", "other"] = "summary" if request.get("kind") == "summary" else "other"
        sent = replace(sent_request(request, found, len(self.thread.steps) + 1, (), response), kind=kind)
        if self.served:
            sent = self._found_again(sent, found)
        self.sent.append(sent)
        self.side.append(side_thread(sent, found, response))
        if kind == "summary" and sent.accepted:
            self._asked += 1
            self._summaries.append(sent.answer)

    def _found_again(self, sent: Sent, found: Sequence[Piece]) -> Sent:
        """The request with the steps whose words stand in it, of those in the last view or behind it."""
        seen = {p.index for p in self._shown}
        steps = [s for s in self.thread.steps if s.response in seen or (s.response or 0) >= self._seen]
        known = marks(steps, self.thread.messages)
        text = "\n".join(p.text for p in found)
        return replace(sent, named=frozenset(n for mark, n in known.items() if mark in text),
                       findable=frozenset(known.values()))

    def _place(self, found: Sequence[Piece]) -> tuple[Part, ...]:
        parts: list[Part] = []
        self._at = -1
        for position, piece in enumerate(self._parted(found)):
            first = all(p.kind == "layer" for p in parts)
            is_layer = first and self._is_layer(piece, position)
            parts.append(new_part(piece, "layer") if is_layer else self._reminder(piece, parts) or self._part(piece))
            self._at = max(self._at, -1 if parts[-1].index is None else parts[-1].index)
            if len(parts) > 1 and is_repeated(*parts[-2:]):
                parts[-2:] = [replace(parts[-1], kind="changed", text=f"{parts[-2].text}\n{parts[-1].text}")]
        return tuple(parts)

    def _parted(self, found: Sequence[Piece]) -> Iterator[Piece]:
        """The pieces; a response that was joined with what the program wrote in the model's name is two."""
        written = [text for role, text in self._inserted if role == "assistant"]
        for piece in found:
            before = next((t for t in written if piece.role == "assistant" and piece.text != t
                           and piece.text.startswith(t)), None)
            if before is None or not isinstance(piece.blocks[0], Text):
                yield piece
                continue
            rest = piece.blocks[0].text[len(before):]
            yield replace(piece, blocks=(Text(text=before),))
            yield replace(piece, blocks=(*((Text(text=rest),) if rest else ()), *piece.blocks[1:]))

    def _reminder(self, piece: Piece, parts: Sequence[Part]) -> Part | None:
        """A reminder that Qwen Code repeats word for word in front of each prompt; every one is a message."""
        key = (piece.role, piece.text)
        if key not in self._known or not piece.text.startswith(_REMINDER):
            return None
        gone = self._known[key][-1] not in {p.index for p in self._shown}
        last = max((p.index for p in parts if p.index is not None), default=-1)
        same = [m.index for m in self.thread.messages if m.text == piece.text and m.index > last]
        if same and not gone:
            return new_part(piece, "log", same[0])
        return new_part(piece, "log", self._log(piece, "injected"))

    def _is_layer(self, piece: Piece, position: int) -> bool:
        """A system message in front that carries no summary; of developer messages the very first; a session's context.

        Gemini CLI and Qwen Code write the context anew in every process and after compactions: it is no history.
        """
        if piece.role == "developer":
            return position == 0 and (self.served or is_left_out(self.items.native(piece.item)))
        if piece.text.startswith(_CONTEXT) or (piece.role == "assistant" and piece.text == _CONTEXT_ANSWER):
            return True
        return piece.role == "system" and not self._holds_summary(piece.text)

    def _misses(self, found: Sequence[Piece]) -> bool:
        """Whether a message of the last view is not among these pieces, in whatever form."""
        texts = {(p.role, p.text) for p in found}
        ids = {i for p in found for i in (*p.answers, *(c.id for c in p.calls))}
        return any(p.kind == "log" and (p.role, p.text) not in texts and not self._ids(p.index) & ids
                   for p in self._shown)

    def _ids(self, index: int | None) -> set[str]:
        message = self.thread.messages[index or 0]
        return {*(c.id for c in message.calls), *(r.call_id for r in message.results)}

    def _holds_summary(self, text: str) -> bool:
        return any(s[:_HEAD] in text for s in self._summaries if s)

    def _part(self, piece: Piece) -> Part:
        if piece.role == "tool":
            return self._result_part(piece)
        if piece.role == "assistant":
            index = self._response(piece)
            if index is not None:
                return self._as_shown(piece, index)
        key = (piece.role, piece.text)
        index = self._said(key)
        if index is not None:
            return new_part(piece, "log", index)
        if key in self._inserted:
            return new_part(piece, "summary" if self._inserted[key] == "summary" else "inserted")
        return self._unknown(piece, key)

    def _said(self, key: tuple[str, str]) -> int | None:
        """The log index of words: the next time they were said; None where they are said for the first time.

        Words behind the last response are new, even if they were said before.
        """
        said = self._known.get(key, [])
        later = next((i for i in said if i > self._at), None)
        if later is not None or not said:
            return later
        return None if self._is_new() and key[0] == "user" else said[0]

    def _is_new(self) -> bool:
        """Whether what follows in the request stands behind the last response of the log."""
        return bool(self.thread.steps) and self._at >= (self.thread.steps[-1].response or len(self.thread.messages))

    def _unknown(self, piece: Piece, key: tuple[str, str]) -> Part:
        if self._holds_summary(piece.text):
            self._inserted[key] = "summary"
            return new_part(piece, "summary")
        prompt = next((p for p in self.prompts if p in piece.text), None)
        known = self._prompt_index(prompt)
        if known is not None and not (self._is_new() and (piece.role, piece.text) in self._known):
            return new_part(piece, "changed", known)
        if prompt is None and self.thread.steps and self._lost:
            self._inserted[key] = "inserted"
            return new_part(piece, "inserted")
        origin: Origin = "human" if prompt else "injected"
        return new_part(piece, "log", self._log(piece, origin))

    def _prompt_index(self, prompt: str | None) -> int | None:
        if prompt is None:
            return None
        return next((m.index for m in self.thread.messages if m.origin == "human" and prompt in m.text), None)

    def _response(self, piece: Piece) -> int | None:
        """The log index of a response that a request shows."""
        known = next((self._made[c.id] for c in piece.calls if c.id in self._made), None)
        if known is None and not piece.calls:
            known = next((i for i in self._known.get(("assistant", piece.text), ()) if i > self._at), None)
        if known is None and piece.text in self._unseen:
            known = self._unseen[piece.text]
        return known

    def _as_shown(self, piece: Piece, index: int) -> Part:
        """A response stands in the log as the harness sends it back: with its own ids and order of blocks."""
        message = self.thread.messages[index]
        if self._unseen.get(message.text) == index:
            del self._unseen[message.text]
            self.thread.messages[index] = replace(message, blocks=piece.blocks)
            self._made.update((call.id, index) for call in piece.calls)
            self._known.setdefault(("assistant", piece.text), []).append(index)
            return new_part(piece, "log", index)
        same = (piece.text, [c.arguments for c in piece.calls]) == (message.text, [c.arguments for c in message.calls])
        return new_part(piece, "log" if same else "changed", index)

    def _result_part(self, piece: Piece) -> Part:
        index = next((self._results[i] for i in piece.answers if i in self._results), None)
        if index is None:
            return new_part(piece, "log", self._log(piece, "tool"))
        return new_part(piece, "log" if self.thread.messages[index].text == piece.text else "changed", index)

    def _log(self, piece: Piece, origin: Origin) -> int:
        blocks = tuple(self._named(b) for b in piece.blocks)
        message = self.thread.add(piece.role, blocks, origin)
        self._results.update((i, message.index) for i in piece.answers)
        if piece.role != "tool":
            self._known.setdefault((piece.role, piece.text), []).append(message.index)
        return message.index

    def _named(self, block: Block) -> Block:
        """A result with the name of the tool whose call it answers."""
        if not isinstance(block, ToolResult) or block.name or block.call_id not in self._made:
            return block
        calls = self.thread.messages[self._made[block.call_id]].calls
        return replace(block, name=next((c.name for c in calls if c.id == block.call_id), None))

    def _record_change(self, history: tuple[Part, ...]) -> None:
        """Note a compaction where the view is not the last one with what came since."""
        log = self.thread.messages
        grown = (*self._shown, *(log_part(m) for m in log[self._seen:]))
        if self._fresh_process and not self._asked:
            grown = self._forgotten(grown, history)
        if signature(grown) != signature(history):
            texts = self._summaries[len(self._summaries) - self._asked:]
            self.thread.compactions.append(RecordedCompaction(
                position=len(log), kind="full", trigger="auto", summary="\n\n".join(texts) or None,
                summary_readable=bool(texts), window=tuple(recorded_part(p, log) for p in history)))
        self._shown, self._seen = history, len(log)

    def _forgotten(self, grown: tuple[Part, ...], history: tuple[Part, ...]) -> tuple[Part, ...]:
        """A new process may load less than the one before it knew: those messages are gone without a compaction."""
        visible = {p.index for p in history}
        gone = tuple(p.index for p in grown if p.kind == "log" and p.index is not None and p.index not in visible)
        if not gone:
            return grown
        self.thread.compactions.append(RecordedCompaction(
            position=self._before, kind="clear", trigger="not loaded", elided=gone))
        return tuple(p for p in grown if p.index not in gone)
