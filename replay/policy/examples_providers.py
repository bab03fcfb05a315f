"""Worked examples of Claude Code, the providers' own edits, Letta, Aider and SWE-agent's closed windows."""

from __future__ import annotations

from replay.blocks import Text, ToolCall, ToolResult
from replay.log import Log
from replay.policy.base import Capacity, Remarked
from replay.policy.cleared_uses import ClearToolUses
from replay.policy.cuts_growing import KeepAtLeast
from replay.policy.example_tools import decision, keep_from, log_of, moment, of_kind, replay, session, stage
from replay.policy.examples import Example
from replay.policy.levels import Buffer, ClampedShare
from replay.policy.newest_per_file import NewestPerFile
from replay.readers.common import ThreadBuilder
from replay.tokens.bytes_count import ByteCounter
from replay.window import Inserted, Mark

_LONG_TURN = (("u", 10), *(m for _ in range(60) for m in (("a", 100), ("t", 2_900))))
"""One prompt and sixty calls with 3,000 tokens each."""


def _claude_levels() -> list[int]:
    """Levels of 200,000 tokens with 20,000 and with 64,000 for the answer."""
    trigger = of_kind(stage("claude-code").trigger, Buffer)
    return [trigger.level(Capacity(window=200_000, output_reserve=reserve)) for reserve in (20_000, 64_000)]


def _notes() -> int | str:
    """Where the session-memory variant cuts one long turn: its calls carry text."""
    rule = of_kind(stage("claude-code-session-memory").cut, KeepAtLeast)
    return keep_from(rule, moment(log_of(*_LONG_TURN)))


def _cleared(clear_at_least: int) -> str:
    """What the API clears of five results of 1,000 tokens."""
    calls = [m for _ in range(5) for m in (("a", 1), ("t", 1_000))]
    found = ClearToolUses(clear_at_least=clear_at_least).marks(moment(log_of(("u", 1), *calls)))
    return f"below {found[0].stop}" if isinstance(found, tuple) and isinstance(found[0], Mark) else found.reason


def _received() -> list[bool]:
    """Whether the API's edit is due at 99,996 tokens, at 100,000, and above."""
    clear = stage("anthropic-clear-tool-uses")
    return [decision(clear, moment(log_of(("u", size)))).fires for size in (99_996, 100_000, 100_001)]


def _aider_levels() -> list[int]:
    trigger = of_kind(stage("aider").trigger, ClampedShare)
    return [trigger.level(window) for window in (8_000, 64_000, 200_000)]


def _aider_cut(last: int) -> int | str:
    """Where Aider cuts five turns of a prompt and an answer of 300 tokens, the last answer of another size.

    Half of its level for a small window is 512.
    """
    turns = [m for _ in range(4) for m in (("u", 10), ("s", 300))]
    return keep_from(stage("aider").cut, moment(log_of(*turns, ("u", 10), ("s", last)), window=16_000))


def _letta(window: int) -> int | str:
    """Where Letta cuts one long turn."""
    return keep_from(stage("letta").cut, moment(log_of(*_LONG_TURN), window=window))


def _after_aider() -> list[str]:
    """Roles and kinds of Aider's view behind a fold of everything."""
    told = session(*(m for _ in range(2) for m in (("u", 600), ("s", 600))), ("u", 10), ("s", 1))
    window = replay(told, "aider", 16_000).views[-1].window
    return [f"{i.message.role} {i.kind}" for i in window.items if isinstance(i, Inserted)]


def _closed() -> list[int]:
    """Which of four windows close: a, b, a, a at log places 2, 4, 6, 8."""
    builder = ThreadBuilder(id="main")
    builder.add("user", [Text(text="go")], "human")
    for number, path in enumerate("abaa"):
        builder.respond([ToolCall(id=f"c{number}", name="open", arguments="{}")], None)
        text = f"[File: /{path} (2 lines total)]\n1:one\n2:two\n"
        builder.add("tool", [ToolResult(call_id=f"c{number}", name="open", text=text)], "tool")
    rule = of_kind(stage("closed-window").tool_results, NewestPerFile)
    found = rule.marks(moment(Log(builder.build(), ByteCounter())))
    return list(of_kind(found, Remarked).elided)


EXAMPLES = (
    Example(number=2, presets=("claude-code",),
            says="Claude Code compacts at 167,000 of 200,000 tokens, however long an answer may be",
            expected=[167_000, 167_000], found=_claude_levels),
    Example(number=2, presets=("anthropic-clear-tool-uses",),
            says="clearing of tool uses is due above 100,000 tokens, not at them",
            expected=[False, False, True], found=_received),
    Example(number=2, presets=("aider",),
            says="Aider's level is a sixteenth of the window between 1,024 and 8,192 tokens",
            expected=[1_024, 4_000, 8_192], found=_aider_levels),
    Example(number=8, presets=("claude-code-session-memory", "letta"),
            says="one long turn of 180,000 tokens: Claude Code's session memory keeps five calls with text, "
            "Letta cuts at four tenths of the messages, since what stays is below seven tenths of the window",
            expected=(111, 47), found=lambda: (_notes(), _letta(160_000))),
    Example(number=9, presets=("aider",),
            says="Aider keeps what is below half of its level behind a response; an answer that fills it "
            "goes",
            expected=[8, 10], found=lambda: [_aider_cut(300), _aider_cut(512)]),
    Example(number=12, presets=("aider",),
            says="where nothing is left behind the summary Aider writes an answer",
            expected=["user summary", "assistant injected"], found=_after_aider),
    Example(number=13, presets=("anthropic-clear-tool-uses",),
            says="the API keeps three tool uses; a gain below its minimum clears nothing",
            expected=["below 6", "gain_too_small"], found=lambda: [_cleared(1_900), _cleared(2_000)]),
    Example(number=15, presets=("closed-window",),
            says="of the windows on a file SWE-agent's closed_window keeps the newest",
            expected=[2, 6], found=_closed),
)
