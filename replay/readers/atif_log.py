"""The steps of one ATIF trajectory as a thread's log and steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.blocks import Block, Image, Text, ToolCall, ToolResult
from replay.readers.atif_content import call_of, content_blocks, reasoning_blocks, usage_of
from replay.readers.call_ids import CallIds
from replay.readers.common import ThreadBuilder, seconds, whole
from replay.readers.native import mapping, objects, rest, string
from replay.readers.odd_types import OddTypes
from replay.transcript import Message, ReadNote, RecordedCompaction

_MODELLED = frozenset({
    "step_id", "timestamp", "source", "message", "reasoning_content", "tool_calls", "observation", "metrics",
    "model_name"})
_MARK = frozenset({"message", "source", "timestamp"})
_RESULT = frozenset({"source_call_id", "content"})
_FULL = frozenset({"compaction", "compact", "summarization", "summary"})
_FIRST_PROMPT_STAYS = ("terminus",)
"""Agents whose first prompt is their system prompt and stays after a compaction."""


@dataclass
class StepLog:
    """Builds the log of one trajectory, step by step."""

    thread: ThreadBuilder
    agent: Mapping[str, Any]
    notes: list[ReadNote]
    ids: CallIds = field(default_factory=CallIds)
    odd: OddTypes = field(default_factory=lambda: OddTypes("step source", fate="kept as text beside the person's"))
    count: int = 0
    """Steps."""
    model: str | None = None
    references: dict[str, str | None] = field(default_factory=dict)
    """Call that started a sub-agent, by the trajectory's id; None where the program started it."""
    elsewhere: int = 0
    """Sub-agent trajectories in other files."""
    aggregated: int = 0
    """Steps whose metrics sum several model calls."""
    boundary: Mapping[str, Any] | None = None
    """A step that marked a compaction whose summary would come next."""

    def read(self, steps: Any) -> None:
        """Take in all steps, in order."""
        rows = steps if isinstance(steps, list) else []
        self.model = string(self.agent.get("model_name"))
        for step in rows:
            if isinstance(step, dict):
                self.count += 1
                self._step(step)
        self._close(None)
        self._remark(len(rows) - self.count)

    def _remark(self, bad: int) -> None:
        if bad:
            self.notes.append(ReadNote(code="not-an-object", text=f"{bad} steps are not JSON objects; kept out"))
        if self.aggregated:
            self.notes.append(ReadNote(code="aggregated-usage", text=(
                f"{self.aggregated} steps sum the usage of several model calls; each counts as one request")))
        if self.elsewhere:
            self.notes.append(ReadNote(code="subagent-elsewhere", text=(
                f"{self.elsewhere} sub-agent trajectories are in files of their own; their usage is not counted")))
        if self.ids.renamed:
            self.notes.append(ReadNote(code="reused-call-id",
                                       text=f"{len(self.ids.renamed)} call ids come back; they were made unique"))
        self.notes.extend(self.odd.notes())

    def _step(self, step: dict[str, Any]) -> None:
        source = step.get("source")
        if self.boundary is not None:
            self._close(step)
            if source == "user" and not step.get("is_copied_context"):
                return
        if source == "agent":
            self._agent(step)
        elif source == "system":
            self._system(step)
        elif source == "user":
            self.thread.add("user", content_blocks(step.get("message")), "human", **_place(step))
            self._observation(step, [])
        else:
            self.odd.add(source, 1, 0)
            self.thread.add("user", content_blocks(step.get("message")), "injected", detail=str(source), **_place(step))

    def _system(self, step: dict[str, Any]) -> None:
        """A system prompt, a compaction's mark, or something that the program did."""
        observation = mapping(step.get("observation"))
        if _compaction_of(step) is not None:
            self._refer(objects(observation.get("results")), [])
            self.boundary = step
        elif not self.thread.messages:
            self.thread.add("system", content_blocks(step.get("message")), "system", **_place(step))
        elif observation:
            self._observation(step, [])
        else:
            self.thread.add("system", content_blocks(step.get("message")), "injected", detail="system_step",
                            **_place(step))

    def _close(self, following: Mapping[str, Any] | None) -> None:
        """Record the compaction that a step marked; a prompt right after it carries the summary."""
        marked, self.boundary = self.boundary, None
        if marked is None:
            return
        mark = _compaction_of(marked) or {}
        is_summary = following is not None and following.get("source") == "user" and not following.get(
            "is_copied_context")
        blocks = content_blocks(following.get("message")) if following is not None and is_summary else []
        text = "\n".join(b.text for b in blocks if isinstance(b, Text))
        told = [Message(index=-1, role="user", blocks=tuple(blocks), origin="summary", id=_id(following))]
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full", window=(*self._kept(), *(told if is_summary else [])),
            trigger=string(mark.get("trigger")), counter_before=_count(mark, "preTokens", "tokens_before"),
            counter_after=_count(mark, "postTokens", "tokens_after"), summary=text or None,
            summary_readable=bool(text), extra=rest(marked, _MARK)))

    def _kept(self) -> list[int]:
        """The prompts at the start of the log that stay: the system prompt, for some agents the first prompt."""
        kept = []
        for message in self.thread.messages:
            if message.origin != "system":
                break
            kept.append(message.index)
        name = str(self.agent.get("name") or "")
        if not kept and name.startswith(_FIRST_PROMPT_STAYS) and self.thread.messages:
            return [0]
        return kept

    def _agent(self, step: dict[str, Any]) -> None:
        model = string(step.get("model_name")) or string(self.agent.get("model_name"))
        self.model = model or self.model
        calls = self._calls(step)
        blocks = [*reasoning_blocks(step), *content_blocks(step.get("message")), *calls]
        made = step.get("llm_call_count")
        if step.get("is_copied_context"):
            self.thread.add("assistant", blocks, "model", detail="copied_context", **_place(step))
        elif made == 0 and isinstance(made, int):
            self.thread.add("assistant", blocks, "injected", detail="no_model_call", **_place(step))
        else:
            self.aggregated += isinstance(made, int) and made > 1
            self.thread.respond(blocks, usage_of(step.get("metrics")), model=model, **_place(step))
        self._observation(step, calls)

    def _calls(self, step: Mapping[str, Any]) -> list[ToolCall]:
        return [call_of(native, self.ids.call(string(native.get("tool_call_id")) or f"step-{self.count}-{place}"))
                for place, native in enumerate(objects(step.get("tool_calls")), 1)]

    def _observation(self, step: Mapping[str, Any], calls: list[ToolCall]) -> None:
        """The results of a step: one tool message; results of no call are what the environment showed."""
        if not (results := objects(mapping(step.get("observation")).get("results"))):
            return
        self._refer(results, calls)
        shown = [r for r in results if r.get("content") is not None or r.get("source_call_id")]
        if not shown:
            return
        owners = self._owners(shown, calls)
        names = {c.id: c.name for c in calls}
        blocks = [_result(native, own, names.get(own)) for native, own in zip(shown, owners, strict=True)]
        more: dict[str, Any] = {"id": _id(step), "time": seconds(step.get("timestamp"))}
        if kept := [dict(e) for r in shown if (e := rest(r, _RESULT))]:
            more["extra"] = {"results": kept}
        if step.get("source") == "agent":
            self.thread.add("tool", blocks, "tool", **more)
        else:
            texts: list[Block] = [Text(text=b.text) for b in blocks]
            self.thread.add("user", texts, "injected", detail="observation", **more)

    def _owners(self, results: list[dict[str, Any]], calls: list[ToolCall]) -> list[str]:
        """The log id of the call that each result answers.

        Results that name none answer the calls left over, the last result the last call: an agent that sends
        several commands at once sees one screen after the last of them.
        """
        named = [string(r.get("source_call_id")) for r in results]
        if None not in named:
            return [self.ids.result(n) for n in named if n]
        taken = {self.ids.result(n) for n in named if n}
        spare = [c.id for c in calls if c.id not in taken]
        unnamed = sum(n is None for n in named)
        spare = spare[len(spare) - unnamed:] if len(spare) >= unnamed else spare
        following = iter(spare)
        return [self.ids.result(n) if n else next(following, "") for n in named]

    def _refer(self, results: list[dict[str, Any]], calls: list[ToolCall]) -> None:
        """Take down the sub-agents that the results name."""
        for native in results:
            if "subagent_trajectory_ref" in native:
                listed = objects(native["subagent_trajectory_ref"])
                own = self.ids.result(str(native.get("source_call_id") or ""))
                for reference in listed:
                    self._reference(reference, own if any(c.id == own for c in calls) else None)

    def _reference(self, reference: Mapping[str, Any], call: str | None) -> None:
        names = [n for key in ("trajectory_id", "session_id") if (n := string(reference.get(key)))]
        for name in names[:1]:
            self.references.setdefault(name, call)
        self.elsewhere += "trajectory_id" not in reference or bool(reference.get("trajectory_path"))


def _compaction_of(step: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a step says of a compaction that it marks; None where it marks none."""
    extra = mapping(step.get("extra"))
    managed = mapping(extra.get("context_management"))
    if str(managed.get("type")) in _FULL or managed.get("boundary") == "replace":
        return managed
    for name in ("compactMetadata", "compact_metadata", "compaction"):
        if isinstance(extra.get(name), dict):
            return mapping(extra[name])
    return extra if extra.get("subtype") == "compact_boundary" else None


def _result(native: Mapping[str, Any], call_id: str, name: str | None) -> ToolResult:
    content = native.get("content")
    if isinstance(content, str) and "extra" not in native:
        return ToolResult(call_id=call_id, text=content, name=name)
    blocks, extra = content_blocks(content), mapping(native.get("extra"))
    return ToolResult(call_id=call_id, text="\n".join(b.text for b in blocks if isinstance(b, Text)), name=name,
                      images=tuple(b for b in blocks if isinstance(b, Image)),
                      is_error=extra.get("is_error") is True or extra.get("success") is False)


def _place(step: Mapping[str, Any]) -> dict[str, Any]:
    """Id, time and what is not modelled, as every message of a step carries them."""
    extra, metrics = rest(step, _MODELLED), step.get("metrics")
    if isinstance(metrics, dict) and metrics.get("cost_usd") is not None:
        extra = {**extra, "cost_usd": metrics["cost_usd"]}
    return {"id": _id(step), "time": seconds(step.get("timestamp")), "extra": extra}


def _id(step: Mapping[str, Any] | None) -> str | None:
    own = None if step is None else step.get("step_id")
    return None if own is None else str(own)


def _count(mark: Mapping[str, Any], *names: str) -> int | None:
    return next((count for name in names if (count := whole(mark.get(name)))), None)


