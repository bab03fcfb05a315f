"""Worked examples of cuts, of what a second compaction reads, and of the order of survivors."""

from __future__ import annotations

from replay.policy.base import Cut, CutRule
from replay.policy.cuts_kept import KeepHeadAndTail, KeepPrompts, RemoveShare
from replay.policy.example_tools import keep_from, log_of, moment, of_kind, replay, session, stage
from replay.policy.examples import Example
from replay.policy.load import policy
from replay.window import Inserted, Span

_SNAP = (("u", 1), ("a", 1_000), ("t", 15_000), ("a", 1_000), ("t", 6_000))
"""Prompt, a1, t1, a2, t2 at log places 0 to 4."""


def _rule(preset: str, tail: int) -> CutRule | None:
    return policy(f"{preset}:tail_tokens={tail}").stages[0].cut


def _snap(tail: int) -> list[int | str]:
    at = moment(log_of(*_SNAP))
    return [keep_from(_rule(name, tail), at) for name in ("decode-adr18", "pi-0.58", "pi-1.6")]


def _long_turn() -> list[int | str]:
    """One prompt and sixty tool rounds of 3,000 tokens."""
    at = moment(log_of(("u", 1), *(m for _ in range(60) for m in (("a", 100), ("t", 2_900)))))
    return [keep_from(stage(name).cut, at) for name in ("mycodeagent", "pi-1.6", "decode")]


def _turn_start() -> tuple[int, int | None]:
    """Where a cut in the second turn falls and where that turn began."""
    at = moment(log_of(("u", 1), ("s", 10), ("u", 1), ("a", 10), ("t", 10), ("a", 10), ("t", 10)))
    rule = _rule("pi-1.6", 15)
    cut = of_kind(rule.cut(at) if rule is not None else None, Cut)
    return cut.keep_from, cut.turn_start


def _two_compactions(preset: str) -> list[tuple[int, ...]]:
    """Log messages that left the view unsummarised at the second compaction, over six turns of 2,000 tokens."""
    turns = [m for n in range(1, 7) for m in (("u", 10), ("a", 10, 1_000 * n), ("t", 500), ("s", 10, 9_000))]
    lane = replay(session(*turns), f"{preset}:reserve=2000,tail_tokens=600", 10_000)
    return [e.dropped for e in lane.events if e.kind == "full"][:2]


def _order() -> list[str]:
    """What stands where in the first view after a compaction by Pi."""
    turns = [m for _ in range(3) for m in (("u", 10), ("a", 10, 500), ("t", 500), ("s", 10, 9_000))]
    lane = replay(session(*turns, ("u", 10), ("s", 1, 500)), "pi-1.6:reserve=2000,tail_tokens=300", 10_000)
    window = lane.views[-1].window
    return [i.kind if isinstance(i, Inserted) else f"{i.start}–{i.stop - 1}" for i in window.items
            if isinstance(i, (Inserted, Span))]


def _no_gain() -> tuple[int, int]:
    """Summaries and those without gain where MyCodeAgent's ten kept rounds alone exceed the threshold."""
    rounds = [m for _ in range(16) for m in (("u", 3_000), ("s", 3_000, 70_000))]
    fulls = [e for e in replay(session(*rounds), "mycodeagent", 60_000).events if e.kind == "full"]
    return len(fulls), sum(e.futile for e in fulls)


def _parity(name: str, messages: int) -> int:
    """How many of so many messages a share takes away."""
    return of_kind(stage(name, -1).cut, RemoveShare).removed(messages)


def _events(kept: int) -> tuple[int, int]:
    """Kept head and cut of the OpenHands rule over one prompt and calls with a result each; heads end behind a pair."""
    rounds = [m for _ in range(10) for m in (("a", 1), ("t", 1))]
    cut = KeepHeadAndTail(head=kept, tail=5).cut(moment(log_of(("u", 1), *rounds)))
    made = of_kind(cut, Cut)
    return len(made.kept), made.keep_from


def _prompts() -> list[str]:
    """What the Codex rule keeps of prompts of 10, 30 and 10 tokens within 25."""
    cut = KeepPrompts(tokens=25, mark="~").cut(moment(log_of(("u", 10), ("s", 9), ("u", 30), ("s", 9), ("u", 10))))
    return [f"{i.start}" if isinstance(i, Span) else i.message.text for i in of_kind(cut, Cut).kept]


EXAMPLES = (
    Example(number=10, presets=("openhands-sdk",),
            says="a head of two events ends behind a pair: the cut moves forward over the result",
            expected=(3, 17), found=lambda: _events(2)),
    Example(number=12, presets=("codex",),
            says="Codex keeps the newest prompts and cuts the middle out of the one that does not fit",
            expected=["x" * 30 + "~" + "x" * 30, "4"], found=_prompts),
    Example(number=14, presets=("roo",),
            says="of 15 messages Roo removes six: half of fourteen made even", expected=6,
            found=lambda: _parity("roo", 15)),
    Example(number=14, presets=("cline-legacy",),
            says="of 15 messages Cline's half behind the first pair is six", expected=6,
            found=lambda: _parity("cline-legacy", 15)),
    Example(number=8, presets=("decode", "mycodeagent", "pi-1.6"),
            says="one turn of sixty tool rounds: the round rule refuses, Pi keeps about 20,000 tokens, old "
            "Decode finds no prompt to cut at", expected=["rounds_not_enough", 109, "no_boundary"], found=_long_turn),
    Example(number=8, presets=("pi-1.6",),
            says="a cut inside the second turn names the prompt that began it",
            expected=(5, 2), found=_turn_start),
    Example(number=9, presets=("decode-adr18", "pi-0.58", "pi-1.6"),
            says="budget 20,000: all three cut at the second call",
            expected=[3, 3, 3], found=lambda: _snap(20_000)),
    Example(number=9, presets=("decode-adr18", "pi-0.58", "pi-1.6"),
            says="budget 6,500: Decode snaps back over its budget, Pi crosses at the call itself",
            expected=[3, 3, 3], found=lambda: _snap(6_500)),
    Example(number=9, presets=("decode-adr18", "pi-0.58", "pi-1.6"),
            says="budget 6,000: the result fills it exactly; Pi 0.58 finds no place behind it and keeps all, "
            "1.6 takes the last place", expected=[3, 0, 3], found=lambda: _snap(6_000)),
    Example(number=11, presets=("pi-0.58", "pi-0.74", "pi-1.6"),
            says="the second compaction of Pi 0.58 drops the tail that the first one kept; 0.74 and 1.6 lose "
            "nothing", expected=[True, False, False],
            found=lambda: [any(_two_compactions(name)) for name in ("pi-0.58", "pi-0.74", "pi-1.6")]),
    Example(number=12, presets=("pi-1.6",),
            says="Pi's view after a compaction is summary, then tail", expected=["summary", "3–12"],
            found=_order),
    Example(number=16, presets=("mycodeagent",),
            says="MyCodeAgent summarises again at every step while ten kept rounds exceed its threshold",
            expected=(6, 0), found=_no_gain),
)
