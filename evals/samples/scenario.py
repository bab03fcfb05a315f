"""Scenarios: the scripts of the scripted agent, read from TOML.

A scenario is a list of moves. A move is one of

    user, pause, inject          the person and the program: a prompt, minutes of silence, injected text
    say, think, answer           the words of a response; `answer` ends the turn
    do = [ACTION, …]             the calls of a response, side by side; a single action may stand in the move
    compact, micro, clear        what the person or the harness does to the window
    mark, rewind                 remember a place; go back to it and go on from there
    each / use                   other moves, once for each item, or those of a routine

and an action is one of read, write, edit, swap, append, bash, grep, list, todo, delegate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

Move = Mapping[str, Any]
ACTIONS = ("read", "write", "edit", "swap", "append", "bash", "grep", "list", "todo", "delegate")
CONTROLS = ("user", "pause", "inject", "compact", "micro", "clear", "mark", "rewind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that the agent does with the working copy."""

    kind: str
    target: str
    """A path, a command, a pattern, or the title of a delegated task."""
    more: Mapping[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """A further setting of the action."""
        return self.more.get(key, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A script and the circumstances in which it runs."""

    name: str
    format: str
    repository: str
    model: str
    started: float
    moves: tuple[Move, ...]
    about: str = ""
    routines: Mapping[str, Sequence[Move]] = field(default_factory=dict)
    plan: tuple[str, ...] = ()
    """The items of the todo list; a move `todo = 2` says that two of them are done."""
    overhead: int = 12_000
    """Tokens of system prompt and tool schemas, which no entry holds."""
    factor: float = 1.0
    """Billed tokens for one counted token."""
    window: int = 200_000
    compact_at: int = 0
    """Billed tokens at which the harness compacts by itself; 0: never."""
    keep_tokens: int = 20_000
    """Tokens of the newest messages, by characters, that a harness keeps which keeps a tail."""
    cache: str = "none"
    """`5m`, `1h` (written at a price, kept that long) or `implicit` (free, in steps of 128)."""
    cut_bytes: int = 0
    """Bytes that are missing at the end of the file, because the writer died."""
    version: str = ""


def load(path: Path) -> Scenario:
    """Read a scenario file."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    started = datetime.fromisoformat(str(data.pop("started"))).timestamp()
    return Scenario(name=path.stem, started=started, moves=tuple(data.pop("moves")),
                    plan=tuple(data.pop("plan", ())), **data)


def action_of(table: Mapping[str, Any]) -> Action | None:
    """The action that a table of a scenario names; None where it names none. Raises ValueError for several."""
    kinds = [kind for kind in ACTIONS if kind in table]
    if not kinds:
        return None
    if len(kinds) > 1:
        raise ValueError(f"one action a table, found {', '.join(kinds)}")
    more = {key: value for key, value in table.items() if key not in (kinds[0], "say", "think")}
    return Action(kind=kinds[0], target=str(table[kinds[0]]), more=more)


def actions_of(move: Move) -> list[Action]:
    """The actions of a move in order."""
    single = action_of(move)
    tables = ([] if single is None else [move]) + list(move.get("do", ()))
    return [action for action in map(action_of, tables) if action is not None]


def expand(moves: Sequence[Move], routines: Mapping[str, Sequence[Move]]) -> Iterator[Move]:
    """The moves with `each` and `use` written out; `<<key>>` in any string becomes the item's value."""
    for move in moves:
        if "each" in move:
            for item in move["each"]:
                values = item if isinstance(item, Mapping) else {"item": item}
                yield from expand([fill(inner, values) for inner in move["moves"]], routines)
        elif "use" in move:
            inner = [fill(step, move.get("with", {})) for step in routines[move["use"]]]
            yield from expand(inner, routines)
        else:
            yield move


def fill(value: Any, values: Mapping[str, Any]) -> Any:
    """A copy of a move with the placeholders filled in; a string that is one placeholder takes any value."""
    if isinstance(value, str):
        for key, text in values.items():
            if value == f"<<{key}>>":
                return text
            value = value.replace(f"<<{key}>>", str(text))
        return value
    if isinstance(value, Mapping):
        return {key: fill(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, values) for inner in value]
    return value
