"""Token usage of an OpenHands session: raw per response, listed per call, or as running totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from replay.readers.common import whole
from replay.readers.native import mapping, objects, string
from replay.readers.openai_chat_usage import usage_of
from replay.transcript import Step, Thread, Usage

_NONE = Usage()


@dataclass
class Ledger:
    """Gives each response its usage once and keeps what else was billed: editors, condensers, routers."""

    listed: dict[str, tuple[Usage, str | None]] = field(default_factory=dict)
    """Usage by response id from `token_usages` lists, in order of first sight."""
    claimed: set[str] = field(default_factory=set)
    totals: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Latest running total by the model that it is for, as it stood."""
    beside: Usage = _NONE
    """Billed to others since the latest response, thus in its running total too."""
    side: list[Step] = field(default_factory=list)

    def collect(self, metrics: Any) -> None:
        """Take in the calls that a metrics object lists."""
        for row in objects(mapping(metrics).get("token_usages")):
            name = row.get("response_id")
            if isinstance(name, str) and name and name not in self.listed:
                self.listed[name] = (_tokens(row), string(row.get("model")))

    def response(self, event: Mapping[str, Any], response: Mapping[str, Any]) -> Usage | None:
        """The usage of the response that an event stands for."""
        metrics = event.get("llm_metrics")
        self.collect(metrics)
        name = string(response.get("id")) or self._newest(metrics)
        if name:
            self.claimed.add(name)
        usage = usage_of(response.get("usage")) or (self.listed[name][0] if name in self.listed else None)
        grown = self._growth(metrics, usage is None)
        beside, self.beside = self.beside, _NONE
        return usage if usage is not None or grown is None else minus(grown, beside)

    def other(self, event: Mapping[str, Any]) -> None:
        """An event that is no response: what its running total grew by was billed to another request."""
        metrics = event.get("llm_metrics")
        before = len(self.listed)
        self.collect(metrics)
        fresh = list(self.listed.values())[before:]
        grown = self._growth(metrics, not fresh)
        if fresh:
            self.beside += sum((usage for usage, _ in fresh), _NONE)
        elif grown is not None and grown.total:
            self.beside += grown
            self._bill(grown, None, None)

    def settle(self, steps: list[Step]) -> list[Step]:
        """The steps with the listed calls that nobody claimed: theirs where the counts agree, else billed beside."""
        open_steps = [n for n, step in enumerate(steps) if step.usage is None and step.error is None]
        spare = [name for name in self.listed if name not in self.claimed]
        if spare and len(spare) == len(open_steps):
            settled = list(steps)
            for n, name in zip(open_steps, spare, strict=True):
                settled[n] = replace(settled[n], usage=self.listed[name][0], request_id=name)
            return settled
        for name in spare:
            self._bill(self.listed[name][0], self.listed[name][1], name)
        return steps

    def thread(self, session: str) -> Thread | None:
        """The requests that are no part of the conversation."""
        return Thread(id=f"{session}/other-requests", steps=tuple(self.side)) if self.side else None

    def _bill(self, usage: Usage, model: str | None, name: str | None) -> None:
        if usage.total:
            self.side.append(Step(number=len(self.side) + 1, start=0, response=None, usage=usage, model=model,
                                  request_id=name))

    def _growth(self, metrics: Any, is_needed: bool) -> Usage | None:
        """What the running total grew by; a total that shrank began anew."""
        total = mapping(metrics).get("accumulated_token_usage")
        if not isinstance(total, dict):
            return None
        model = str(total.get("model"))
        before, self.totals[model] = self.totals.get(model), total
        if not is_needed:
            return None
        now, then = _tokens(total), _tokens(before) if before else _NONE
        return minus(now, then) if now.total >= then.total else now

    def _newest(self, metrics: Any) -> str:
        """The call that a response without an id must be: the latest listed one that nobody claimed."""
        rows = objects(mapping(metrics).get("token_usages"))
        name = string(rows[-1].get("response_id")) if rows else None
        return "" if name is None or name in self.claimed else name


def _tokens(row: Mapping[str, Any]) -> Usage:
    """A row of OpenHands' own metrics; its prompt count includes the cache."""
    prompt = whole(row.get("prompt_tokens"))
    read = min(whole(row.get("cache_read_tokens")), prompt)
    write = min(whole(row.get("cache_write_tokens")), prompt - read)
    return Usage(input_uncached=prompt - read - write, cache_read=read, cache_write_5m=write,
                 output=whole(row.get("completion_tokens")))


def minus(total: Usage, part: Usage) -> Usage:
    """What is left of a total without a part; never below zero."""
    return Usage(input_uncached=max(total.input_uncached - part.input_uncached, 0),
                 cache_read=max(total.cache_read - part.cache_read, 0),
                 cache_write_5m=max(total.cache_write_5m - part.cache_write_5m, 0),
                 output=max(total.output - part.output, 0))

