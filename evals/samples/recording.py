"""What the scripted agent leaves behind: entries, folds and rewinds, in order, before any harness's format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from evals.samples.scenario import Action, Scenario
from replay.transcript import Usage

Kind = Literal["prompt", "injected", "response", "result", "summary"]
NO_ACTION = Action(kind="", target="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a tool gave back, before a harness puts it into words."""

    text: str
    failed: bool = False
    code: int | None = None
    """Exit code of a command."""
    first_line: int = 1
    """Number of the first line of `text`, where it is a part of a file."""
    total_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call in a harness's own words."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str
    """A string where the harness gives free text to the tool."""

    @property
    def text(self) -> str:
        """The arguments as one string, the way they are counted."""
        return self.arguments if isinstance(self.arguments, str) else orjson.dumps(dict(self.arguments)).decode()


NO_OUTCOME = Outcome(text="")
NO_USAGE = Usage()
NO_CALL = Call(id="", name="", arguments={})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One message of the session; two entries are never equal, so that a window can name them."""

    kind: Kind
    time: float
    """Seconds since the epoch at which it was complete."""
    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    call: Call = NO_CALL
    """Of a result: the call that it answers."""
    action: Action = NO_ACTION
    outcome: Outcome = NO_OUTCOME
    role: str = "user"
    """Of an injected entry: the role it was sent under."""
    detail: str = ""
    """Of an injected entry: what it is."""
    tokens: int = 0
    """Counted with the vocabulary, before the factor of the model."""
    usage: Usage = NO_USAGE
    final: bool = False
    """Of a response: it ends the turn."""
    started: float = 0.0
    """Of a response: when the request was sent."""
    side: Recording | None = None
    """Of a result: the sub-agent's session that produced it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """A compaction that the harness made."""

    kind: Literal["full", "micro", "clear"]
    time: float
    trigger: str
    before: int
    """Tokens of the window before, as billed."""
    after: int
    window: tuple[Entry, ...] = ()
    """The window right after it, the summary included."""
    summary: Entry = Entry(kind="summary", time=0.0)
    blanked: tuple[Entry, ...] = ()
    """kind micro: results whose text was cleared."""
    saved: int = 0
    read_files: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewind:
    """The person went back: what follows hangs on an earlier entry."""

    to: Entry


Event = Entry | Fold | Rewind


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A finished session."""

    scenario: Scenario
    cwd: str
    started: float
    prompt: str = ""
    """Of a sub-agent: the task it was given."""
    events: list[Event] = field(default_factory=list)

    def entries(self) -> Iterator[Entry]:
        """The entries in order, abandoned ones included."""
        return (event for event in self.events if isinstance(event, Entry))

    @property
    def steps(self) -> int:
        """Responses of the model on the branch that is not abandoned."""
        return sum(entry.kind == "response" for entry in self.active())

    def active(self) -> list[Entry]:
        """The entries of the branch that the session ended on."""
        path: list[Entry] = []
        for event in self.events:
            if isinstance(event, Rewind):
                del path[path.index(event.to) + 1:]
            elif isinstance(event, Entry):
                path.append(event)
        return path

    @property
    def compactions(self) -> int:
        """Full compactions, micro-compactions and clears."""
        return sum(isinstance(event, Fold) for event in self.events)
