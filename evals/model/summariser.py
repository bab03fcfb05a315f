"""`llm:<model>`: the summary that a model writes, in the sections of the imitated harness."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from evals.model.asks import BYTES_PER_TOKEN, Ask, Reply
from evals.model.client import Client
from evals.model.config import need
from evals.model.templates import SYSTEM, instruction
from evals.model.texts import fenced, message_text
from evals.prices import NoPrice, price
from replay.errors import SummaryMissing
from replay.log import Log
from replay.policy.base import Summary, SummaryRequest
from replay.policy.summarising import plain
from replay.transcript import Message

MAX_TOKENS = 4_000
RESULT_HEAD = 400
"""Characters that stay of each end of a tool result when results are shortened."""
TRIES_SHORTER = 3
"""How often a request is halved after the endpoint said that it is too long."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The input of a summariser, and what was done to make it fit."""

    text: str
    shortened: int = 0
    """Tool results of which the middle was left out."""
    dropped: int = 0
    """Oldest messages that were left out."""


@dataclass(frozen=True, kw_only=True)
class ModelSummariser:
    """Writes summaries with a model; what it wrote is kept in `made`, each with its request's fingerprint."""

    client: Client
    session: str = ""
    replicate: int = 0
    max_tokens: int = MAX_TOKENS
    made: list[dict[str, Any]] = field(default_factory=list)

    @property
    def model(self) -> str:
        """The model's name."""
        return need(self.client.models, "summariser", "--summariser llm:MODEL")

    @property
    def name(self) -> str:
        """The summariser's name in results."""
        return f"llm:{self.model}"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """The model's summary; None where nothing is summarised. Raises SummaryMissing where the model wrote none."""
        if not request.spans and not request.previous:
            return None
        limit, problem = self._limit(), "context-length"
        for _ in range(1 + TRIES_SHORTER):
            fitted = self._fit(request, limit)
            ask = self._ask(request, fitted)
            reply = self.client.ask(ask)
            problem = f"{reply.problem}: {reply.detail}"
            if reply.problem != "context-length" or self.client.models.too_long == "fail":
                break
            limit = min(limit, ask.input_tokens) // 2
        if reply.problem not in (None, "cut-short"):
            raise SummaryMissing(request.step, f"{self.name}: {problem}")
        self.made.append(self._entry(request, ask, reply, fitted))
        return Summary(text=reply.text.strip(), by=self.name)

    def first_ask(self, request: SummaryRequest) -> Ask:
        """What is asked for a summary before anything went wrong."""
        return self._ask(request, self._fit(request, self._limit()))

    def _ask(self, request: SummaryRequest, fitted: Fitted) -> Ask:
        told = instruction(request.sections, self.max_tokens, bool(request.previous))
        return Ask(model=self.model, system=SYSTEM, prompt=f"{fitted.text}\n\n{told}", max_tokens=self.max_tokens,
                   temperature=self.client.models.temperature, replicate=self.replicate, purpose="summary")

    def _limit(self) -> int:
        """Input tokens that the endpoint takes, as far as is known."""
        known = self.client.models.context
        if known is None:
            try:
                known = price(self.model).context_window
            except NoPrice:
                known = None
        return (known or 1_000_000_000) - self.max_tokens

    def _fit(self, request: SummaryRequest, limit: int) -> Fitted:
        """The earlier summaries and the spans, made shorter as the settings say where they do not fit."""
        room = max(1, limit * BYTES_PER_TOKEN - 6_000)
        front = [f"[earlier summary]\n{plain(p)}" for p in request.previous]
        messages = [_text(request.log, i) for s in request.spans for i in range(s.start, s.stop)]
        fitted, shortened = messages, 0
        if self.client.models.too_long == "shorten" and _bytes([*front, *messages]) > room:
            pairs = [_short(request.log, i) for s in request.spans for i in range(s.start, s.stop)]
            fitted, shortened = [text for text, _ in pairs], sum(cut for _, cut in pairs)
        dropped = 0 if self.client.models.too_long == "fail" else _too_many(fitted, room - _bytes(front))
        note = [f"[{dropped} older messages did not fit and are left out]"] if dropped else []
        return Fitted(fenced([*front, *note, *fitted[dropped:]]), shortened, dropped)

    def _entry(self, request: SummaryRequest, ask: Ask, reply: Reply, fitted: Fitted) -> dict[str, Any]:
        return {"session": self.session, "step": request.step, "summariser": self.name, "replicate": self.replicate,
                "request": self.client.fingerprint(ask), "sections": list(request.sections),
                "spans": [list(s) for s in request.spans], "previous": len(request.previous),
                "results_shortened": fitted.shortened, "messages_left_out": fitted.dropped, "finish": reply.finish,
                "problem": reply.problem, "input_tokens": reply.spent.input, "output_tokens": reply.spent.output,
                "text": reply.text.strip()}


def _text(log: Log, index: int) -> str:
    return message_text(log.messages[index], index)


def _short(log: Log, index: int) -> tuple[str, int]:
    """A message with the middle of its long tool results left out, and how many of them were cut."""
    message = log.messages[index]
    cut = [r for r in message.results if len(r.text) > 2 * RESULT_HEAD]
    if not cut:
        return _text(log, index), 0
    return message_text(_cut_results(message), index), len(cut)


def _cut_results(message: Message) -> Message:
    def shorter(text: str) -> str:
        left_out = len(text) - 2 * RESULT_HEAD
        return f"{text[:RESULT_HEAD]}\n[{left_out:,} characters left out]\n{text[-RESULT_HEAD:]}"

    return replace(message, blocks=tuple(
        replace(b, text=shorter(b.text)) if b.kind == "tool_result" and len(b.text) > 2 * RESULT_HEAD else b
        for b in message.blocks))


def _bytes(texts: list[str]) -> int:
    return sum(len(t.encode("utf-8", "replace")) + 2 for t in texts)


def _too_many(texts: list[str], room: int) -> int:
    """How many of the oldest texts must go so that the rest fits; the newest always stays."""
    over = _bytes(texts) - room
    if over <= 0:
        return 0
    sums = accumulate(len(t.encode("utf-8", "replace")) + 2 for t in texts)
    needed = next((n for n, total in enumerate(sums, 1) if total >= over), len(texts))
    return min(needed, len(texts) - 1)
