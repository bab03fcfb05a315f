"""A policy: a name and an ordered list of stages, each saying when and what."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Literal

from replay.own.base import OwnCode
from replay.policy.base import Appendix, CutRule, InputRule, Measure, Reinjection, Replacement, ToolResultRule, Trigger
from replay.policy.layers import Layer
from replay.policy.measures import Estimated
from replay.policy.reactive import ForceStage, GiveUp
from replay.policy.replacements import SummaryMessage
from replay.policy.summarising import SplitTurn
from replay.policy.triggers import Always
from replay.window import Mark, Rendering, Window

Scope = Literal["before-step", "after-step", "turn-start", "after-turn", "before-turn"]
"""When a stage is considered: before each request; before a request that continues a turn; before the first
request of a turn, with the prompt; at the end of a turn that the model ended; before a prompt is taken in,
however the turn before it ended."""
EVERYTHING = sys.maxsize
"""Beyond the end of any log."""
Proof = Literal["wire", "code", "examples", "write-up", "baseline"]


def _part(kind: str) -> dict[str, str]:
    return {"part": kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why views of a capture differ from the preset's on purpose."""

    what: str
    """Kind of difference, as `policies verify` names it; `*` matches any."""
    reason: str
    """A sentence on why that is no error of the preset."""
    scenario: str = "*"
    """Captures that it holds for, as a file pattern."""
    requests: tuple[int, ...] = ()
    """First and last request that it holds for; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """When a change of the window is considered, and what it is.

    A stage has either a tool-result rule, or a cut with a replacement.
    """

    name: str
    scope: Scope = "before-step"
    measure: Measure = field(default_factory=Estimated, metadata=_part("measure"))
    trigger: Trigger = field(default_factory=Always, metadata=_part("trigger"))
    tool_results: ToolResultRule | None = field(default=None, metadata=_part("tool_results"))
    cut: CutRule | None = field(default=None, metadata=_part("cut"))
    replacement: Replacement = field(default_factory=SummaryMessage, metadata=_part("replacement"))
    sections: tuple[str, ...] = ()
    """Section names of the harness's summary, in order."""
    split_turn: SplitTurn | None = None
    """How a turn that is cut in two is summarised; None: like everything else."""
    appendix: Appendix | None = field(default=None, metadata=_part("appendix"))
    """What is written behind the summary from the log itself."""
    summary_input: Literal["cut", "view"] = "cut"
    """What the summariser reads: what is cut, or the whole view with the tail that stays."""
    input_limit: InputRule | None = field(default=None, metadata=_part("input_limit"))
    """How much of that it reads; None: everything."""
    summary_form: Rendering | None = field(default=None, metadata=_part("rendering"))
    """The form in which the summariser reads messages, e.g. tool results cut to a size; None: as they are."""
    summary_chars: int = 0
    """A summary with more characters is cut; 0: never."""
    keeps_cache: bool = False
    """The provider edits its cache itself, so that what stands behind a change is still served from it."""
    summarise: bool = True
    """What is cut is summarised (False: it is dropped)."""
    merge_previous: bool = True
    """An earlier summary is part of the input (False: the raw log is summarised again instead)."""
    accept: Literal["all", "not-larger"] = "all"
    """`not-larger`: a compaction that would make the window larger is not carried out and counts as a failure."""
    ineffective_below: float = 0.0
    """A compaction that gains less than this share of the window counts as a failure although it is carried out."""
    breaker: int = 0
    """After so many failures in a row the stage is not tried any more; 0: no breaker."""
    cooldown_minutes: float = 0.0
    """After a failure the stage is not tried for so long, by the times that the session records."""
    skip_if_current: bool = False
    """No check while the log is as long as at the stage's last compaction."""
    enough: float = 0.0
    """Where the stage saves at least this share of the window no later stage is tried at the same moment; 0: one is."""
    excludes_later: bool = False
    """When this stage's trigger fires no later stage is tried at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything that decides what a model sees."""

    name: str
    harness: str = ""
    version: str = ""
    summary: str = ""
    proof: Proof = "baseline"
    window: int | None = None
    """The harness's own default window in tokens; used where the user names none."""
    output_reserve: int = 0
    ingest: Rendering | None = field(default=None, metadata=_part("rendering"))
    """The form in which every message enters the window, e.g. tool results cut to a size."""
    stages: tuple[Stage, ...] = ()
    layers: tuple[Layer, ...] = ()
    reinjection: Reinjection | None = field(default=None, metadata=_part("reinjection"))
    reactive: GiveUp | ForceStage = field(default_factory=GiveUp, metadata=_part("reactive"))
    usage_survives_restart: bool = True
    """A new process of the harness still knows what the last call was billed."""
    reload: Rendering | None = field(default=None, metadata=_part("rendering"))
    """The form in which a new process of the harness loads some messages; None: as they were."""
    reload_of: Literal["since", "pending"] = "since"
    """Which ones: what came `since` the last compaction, or the results that were `pending` at that compaction."""
    own: OwnCode | None = field(default=None, metadata=_part("own"))
    """Code of one's own that decides instead of stages."""
    notes: tuple[str, ...] = ()
    """Sentences on what is imitated on purpose and what is not modelled."""
    explained: tuple[Explained, ...] = ()
    """Stated reasons for differences between this preset and captures of the harness."""

    def empty_window(self, end: int = 0) -> Window:
        """The window before anything is in it; from the start every message is shown as `ingest` says."""
        return Window((), () if self.ingest is None else (Mark(self.ingest, 0, EVERYTHING),), end)
