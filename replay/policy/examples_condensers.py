"""Worked examples of OpenHands' condensers, SWE-agent's strides and OpenCode's checkpoint."""

from __future__ import annotations

from replay.log import Log
from replay.policy.base import Cut, Refusal, Remarked
from replay.policy.example_tools import keep_from, log_of, moment, replay, session, stage
from replay.policy.examples import Example
from replay.policy.observations import KeepNewestObservations
from replay.tokens.bytes_count import ByteCounter
from replay.view import shown_messages
from replay.window import Inserted

_SMALL = "tokens=2000,second.reserve=1000,input_limit.reserve=0"
"""Settings for a window of 10,000 tokens."""


def _strides(observations: int) -> list[int]:
    """Numbers of the observations that SWE-agent elides with n = 5 and polling = 3."""
    return list(KeepNewestObservations(n=5, polling=3).elided(observations))


def _changes(polling: int) -> int:
    """How often the front of the view changes over 30 steps with the newest five observations."""
    moves = [m for _ in range(30) for m in (("a", 1), ("t", 50))]
    lane = replay(session(("u", 1), *moves), f"swe-agent-last-n:polling={polling}", 100_000)
    return sum(e.kind == "micro" for e in lane.events)


def _masked() -> list[int]:
    """Log places of the results that OpenHands masks in a prompt and four calls."""
    at = moment(log_of(("u", 1), *(m for _ in range(4) for m in (("a", 1), ("t", 50)))))
    rule = stage("openhands-masking").tool_results
    marks = rule.marks(at) if rule is not None else Refusal("none")
    stop = 0 if isinstance(marks, (Refusal, Remarked)) else marks[0].stop
    return [i for i in range(stop) if at.log.messages[i].role == "tool"]


def _condensed(preset: str, number: int, rounds: int) -> tuple[int, int | str]:
    """Kept messages in front, and where the tail begins, after a prompt and so many calls with results."""
    at = moment(log_of(("u", 1), *(m for _ in range(rounds) for m in (("a", 1), ("t", 1)))))
    rule = stage(preset, number).cut
    cut = rule.cut(at) if rule is not None else Refusal("none")
    return (len(cut.kept), cut.keep_from) if isinstance(cut, Cut) else (0, cut.reason)


def _fires(preset: str, number: int, rounds: int) -> bool:
    """Whether a stage fires at a prompt and so many calls with results."""
    at = moment(log_of(("u", 1), *(m for _ in range(rounds) for m in (("a", 1), ("t", 1)))))
    return stage(preset, number).trigger.decide("", None, at).fires


def _checkpoint() -> tuple[list[str], bool]:
    """Roles of OpenCode's view after a compaction, and whether the kept result stands in it as text."""
    moves = [m for _ in range(30) for m in (("a", 1), ("t", 400))]
    made = session(("u", 10), *moves)
    lane = replay(made, f"opencode-core:{_SMALL}", 10_000)
    at = next(v for v in lane.views if any(isinstance(i, Inserted) for i in v.window.items))
    shown = [s.message for s in shown_messages(Log(made.main, ByteCounter()), at.window)]
    return [m.role for m in shown], "[Tool result]: xxxx" in shown[0].text


EXAMPLES = (
    Example(number=15, presets=("swe-agent-last-n",),
            says="of eight observations SWE-agent elides none with n = 5 and polling = 3, of nine the "
            "numbers 1 to 3", expected=[[], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5, 6]],
            found=lambda: [_strides(k) for k in (8, 9, 10, 11, 12)]),
    Example(number=15, presets=("swe-agent-last-n",),
            says="over 30 steps with polling 3 the front of the view changes a third as often",
            expected=(24, 8), found=lambda: (_changes(1), _changes(3))),
    Example(number=10, presets=("openhands-masking",),
            says="OpenHands' window of five events holds two calls and three results: the first result of "
            "four is masked", expected=[2], found=lambda: _masked()[:1] + _masked()[2:]),
    Example(number=10, presets=("openhands-amortized",),
            says="OpenHands' amortized forgetting keeps 50 of 101 events, and behind a result that would "
            "stand alone", expected=(0, 51), found=lambda: _condensed("openhands-amortized", 0, 50)),
    Example(number=10, presets=("openhands-recent",),
            says="OpenHands' recent events: of 101 the first and the newest 99, behind a result that would stand alone",
            expected=[(0, "everything_fits"), (1, 3)],
            found=lambda: [_condensed("openhands-recent", 0, n) for n in (49, 50)]),
    Example(number=2, presets=("openhands-amortized",),
            says="OpenHands forgets beyond 100 events, not at 99 or 100", expected=[False, True],
            found=lambda: [_fires("openhands-amortized", 0, n) for n in (49, 50)]),
    Example(number=10, presets=("openhands-pipeline",),
            says="OpenHands' server keeps the first four events and the newest 55, both borders moved "
            "forward", expected=(5, 67), found=lambda: _condensed("openhands-pipeline", 1, 60)),
    Example(number=10, presets=("openhands-pipeline",),
            says="OpenHands' conversation window keeps the prompt and half of 60 other events",
            expected=(1, 31), found=lambda: _condensed("openhands-pipeline", 2, 30)),
    Example(number=12, presets=("opencode-core",),
            says="OpenCode's core path leaves one message of the user, with the newest messages as text",
            expected=(["user"], True), found=_checkpoint),
    Example(number=9, presets=("opencode-core",),
            says="OpenCode's core path keeps whole messages of 8,000 tokens: a response goes with its result",
            expected=[3, 5], found=lambda: [keep_from(stage("opencode-core").cut, moment(log_of(
                ("u", 1), ("a", 8_000), ("t", 400), ("a", size), ("t", 400)))) for size in (1_000, 9_000)]),
)
