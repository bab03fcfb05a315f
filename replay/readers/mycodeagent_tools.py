"""Tool calls and results of a trace that holds no messages, put back into the order the model saw them in.

Tool events come in the order in which tools ran and ended. The history holds the calls in one assistant message
and the results in the order of the calls. A result event does not say which call it answers, so it is matched
by the parameters it repeats, then by the tool's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from replay.blocks import ToolCall
from replay.readers.mycodeagent_history import MASKED, History, mapping, plain


class _Result(NamedTuple):
    tool: str
    value: Any
    call_id: str
    more: dict[str, Any]


@dataclass
class ToolBatch:
    """The tool events since the last message."""

    history: History
    from_lifecycle: bool = False
    """Calls and results stand in life-cycle events only."""
    _calls: list[dict[str, Any]] = field(default_factory=list)
    _results: list[_Result] = field(default_factory=list)
    _place: dict[str, Any] = field(default_factory=dict)
    _made: int = 0

    def call(self, tool: Any, arguments: Any, native: str, more: dict[str, Any]) -> None:
        """A call started; it is new unless the latest assistant message made it."""
        if self._is_open(plain(tool), native):
            return
        if native in ("", MASKED):
            self._made += 1
            native = f"call-{self._made}"
        self._place = self._place or more
        self._calls.append({"id": native, "name": tool, "arguments": arguments})

    def result(self, tool: Any, value: Any, more: dict[str, Any], call_id: str = "") -> None:
        """A call ended."""
        self._results.append(_Result(plain(tool), value, call_id, more))

    def lifecycle(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        """The same from a life-cycle event, where the trace has no others."""
        native, tool = plain(payload.get("tool_call_id")), payload.get("tool_name")
        if not self.from_lifecycle or not native or self.history.ids.known(native):
            return
        if native not in {call["id"] for call in self._calls}:
            self.call(tool, payload.get("args"), native, more)
        if payload.get("status") in ("completed", "failed"):
            self.result(tool, payload.get("result", payload.get("result_text")), more, native)

    def flush(self, run: str) -> None:
        """Append the calls as an assistant message and the results after it, in the order of the calls."""
        if self._calls:
            self.history.add("assistant", "", {"tool_calls": self._calls}, run, **self._place)
        if self._results:
            for call in list(self.history.open_calls.values()):
                if (found := self._take(call)) is not None:
                    self._append(self.history.ids.renamed.get(call.id, call.id), found, run)
            for left in self._results:
                self._append("", left, run)
        self._calls, self._results, self._place = [], [], {}

    def _is_open(self, tool: str, native: str) -> bool:
        opened = self.history.open_calls
        if native in ("", MASKED):
            return any(call.name == tool for call in opened.values())
        return self.history.ids.result(native) in opened

    def _take(self, call: ToolCall) -> _Result | None:
        native = self.history.ids.renamed.get(call.id, call.id)
        ranked = [(_closeness(call, native, result), -number) for number, result in enumerate(self._results)]
        best = max(ranked, default=(0, 0))
        return self._results.pop(-best[1]) if best[0] else None

    def _append(self, native: str, result: _Result, run: str) -> None:
        failed = mapping(result.value).get("status") == "error"
        metadata = {"tool_call_id": native, "tool_name": result.tool}
        self.history.add("tool", result.value, metadata, run, failed, **result.more)


def _closeness(call: ToolCall, native: str, result: _Result) -> int:
    """How surely a result answers a call: 3 by id, 2 by tool and parameters, 1 by tool, 0 not at all."""
    if result.call_id:
        return 3 * (result.call_id == native)
    if result.tool != call.name:
        return 0
    given = mapping(mapping(result.value).get("context")).get("params_input")
    return 2 if given is not None and given == call.parsed else 1
