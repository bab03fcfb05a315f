"""Worked examples of edge cases: an empty tail, placeholders that are longer, information that stands twice, images."""

from __future__ import annotations

from replay.blocks import Image, Text
from replay.policy.base import Refusal
from replay.policy.compact import Compacted, compact, elide
from replay.policy.example_tools import keep_from, log_of, moment, of_kind, stage
from replay.policy.examples import Example
from replay.policy.measures import Reported
from replay.policy.summarisers import summariser
from replay.transcript import Message


def _small_results(preset: str, number: int) -> int | str:
    """Characters that a stage gains where it blanks 30 results of eight characters, or why it blanks none."""
    moves = [m for _ in range(50) for m in (("a", 1_000), ("t", 2))]
    at = moment(log_of(("u", 1), *moves))
    done = elide(stage(preset, number), at)
    if isinstance(done, Refusal):
        return done.reason
    blanked = [at.log.messages[i].text for i in done.elided]
    marks = done.window.marks
    shown = [at.log.rendered(marks[0].rendering)[i].text for i in done.elided]
    return sum(map(len, blanked)) - sum(map(len, shown))


def _overlap(preset: str) -> int:
    """Log messages that stand in the view and that its summary speaks for too, after a compaction of 40 rounds."""
    at = moment(log_of(("u", 1), *(m for _ in range(40) for m in (("a", 1_000), ("t", 1_000)))))
    done = of_kind(compact(stage(preset), at, summariser("length-model"), 1), Compacted)
    seen = set(done.window.indices())
    covered = {i for s in done.window.summaries() for span in s.covers for i in range(span.start, span.stop)}
    return len(seen & covered)


def _image(preset: str) -> int:
    """Tokens of a user's image by a preset's estimate."""
    picture = Image(mime="image/png", size_bytes=100_000, sha256="0" * 64)
    message = Message(index=0, role="user", blocks=(Text(text=""), picture), origin="human")
    return of_kind(stage(preset).measure, Reported).estimator.weights([message])[0]


def _empty_tail() -> int | str:
    """Where Decode cuts four messages if the last one alone exceeds the tail."""
    return keep_from(stage("decode-adr18").cut, moment(log_of(("u", 1), ("a", 10), ("t", 10), ("u", 25_000))))


EXAMPLES = (
    Example(number=17, presets=("decode-adr18",),
            says="Decode blanks results of eight characters although its placeholder has 39: 30 of them "
            "make the view 930 characters longer", expected=-930, found=lambda: _small_results("decode-adr18", 1)),
    Example(number=17, presets=("gemini-cli",),
            says="Gemini never makes a result longer: there is nothing to mask", expected="nothing_to_elide",
            found=lambda: _small_results("gemini-cli", 2)),
    Example(number=18, presets=("decode-adr18", "langchain-summarization", "pi-1.6"),
            says="Decode's summary speaks for the tail that it keeps too; Pi's and LangChain's do not",
            expected=[20, 0, 0], found=lambda: [_overlap(n) for n in ("decode-adr18", "pi-1.6",
                                                                      "langchain-summarization")]),
    Example(number=19, presets=("decode-adr18",),
            says="the last message alone is too long for Decode's tail: only the summary stays", expected=4,
            found=_empty_tail),
    Example(number=20, presets=("pi-0.58", "pi-1.6"),
            says="an image of the user costs nothing by Pi 0.58 and 1,200 tokens by Pi 1.6",
            expected=[0, 1_200], found=lambda: [_image(n) for n in ("pi-0.58", "pi-1.6")]),
)
