"""Proof of a preset: its replay of a capture beside what the harness really sent, request by request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replay.engine import Lane, Session, View
from replay.policy.captured import Captured
from replay.policy.captures import run_of
from replay.policy.differences import Difference, explained, view_difference
from replay.policy.load import policy
from replay.policy.policy import Policy
from replay.readers.wire import capture_folder, read_capture
from replay.readers.wire_sent import Sent
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import Transcript
from replay.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a preset did on one capture."""

    path: str
    harness: str
    version: str
    scenario: str
    preset: str
    """Empty where no preset covers the run."""
    views: int = 0
    """Step requests of the capture, refused attempts included."""
    equal: int = 0
    differences: tuple[Difference, ...] = ()
    """The first difference of each request that differs."""

    @property
    def explained(self) -> int:
        """Requests whose difference has a stated reason."""
        return sum(d.reason is not None for d in self.differences)

    @property
    def wrong(self) -> tuple[Difference, ...]:
        """Differences without a reason."""
        return tuple(d for d in self.differences if d.reason is None)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        first = next(iter(self.wrong), None)
        reasons = sorted({d.reason for d in self.differences if d.reason})
        return {"path": self.path, "harness": self.harness, "version": self.version, "scenario": self.scenario,
                "preset": self.preset, "views": self.views, "equal": self.equal, "explained": self.explained,
                "wrong": len(self.wrong), "reasons": reasons,
                "first_wrong": {"request": first.request, "what": f"{first.what}: {first.words}"} if first else None}


def capture_folders(path: Path) -> list[Path]:
    """The captures at or below a path, in order."""
    if path.is_file():
        found = capture_folder(path)
        return [found] if found is not None else []
    folders = {p.parent for p in path.rglob("requests.jsonl")}
    return sorted(f for f in folders if capture_folder(f) is not None)


def verify_captures(paths: Iterable[Path]) -> Iterator[Verdict]:
    """A verdict on every capture at or below the paths."""
    for path in paths:
        yield from (verify_capture(folder) for folder in capture_folders(path))


def verify_capture(folder: Path) -> Verdict:
    """Replay a capture under the preset of its harness and compare."""
    transcript = read_capture(folder)
    extra = transcript.extra
    run = run_of(extra["harness"], {**extra["config"], "sent": extra["requests"]})
    verdict = Verdict(path=str(folder), harness=extra["harness"], version=transcript.harness_version or "",
                      scenario=extra["scenario"], preset=run.preset if run else "",
                      views=sum(s.kind == "step" for s in extra["requests"]))
    if run is None:
        return verdict
    chosen = policy(run.policy_name)
    writer = Captured(tuple(s for s in extra["requests"] if s.kind == "summary"), served=bool(extra["served"]))
    # The recorded usage is the harness's own, so the preset's lane is measured as what was really billed.
    session = Session(replace(transcript, format=chosen.harness), ByteCounter())
    lane = session.replay(chosen, run.capacity, writer, refusals=extra["refusals"])
    return _judged(verdict, transcript, session, lane, writer)


def _judged(verdict: Verdict, transcript: Transcript, session: Session, lane: Lane, writer: Captured) -> Verdict:
    steps = [s for s in transcript.extra["requests"] if s.kind == "step"]
    refused: dict[int, int] = {}
    found: list[Difference] = []
    calls = _Calls(session, writer)
    for sent in steps:
        view = lane.views[sent.step - 1]
        window = _attempt(view, sent, refused.get(sent.step, 0), lane.policy)
        refused[sent.step] = refused.get(sent.step, 0) + (not sent.accepted)
        difference = view_difference(sent.number, sent.parts, window, session.log) or calls.difference(sent)
        if difference is not None:
            found.append(explained(difference, verdict.scenario, lane.policy.explained))
    return replace(verdict, equal=len(steps) - len(found), differences=tuple(found))


def _attempt(view: View, sent: Sent, earlier: int, chosen: Policy) -> Window:
    """What our lane showed in the attempt that a request was: each refused one, or the one that went through."""
    if sent.accepted or not view.refused:
        return view.window
    return view.refused[min(earlier // (1 + chosen.reactive.identical_retries), len(view.refused) - 1)]


class _Calls:
    """Compares when a summary was asked for and what it was to speak of, at the first request of each step."""

    def __init__(self, session: Session, writer: Captured) -> None:
        self._asked: dict[int, list[frozenset[int]]] = {}
        for request in writer.asked:
            self._asked.setdefault(request.step, []).append(writer.named(request))
        self._captured: dict[int, list[frozenset[int]]] = {}
        self._findable: dict[int, frozenset[int]] = {}
        for sent in writer.requests:
            if sent.accepted:
                self._captured.setdefault(sent.step, []).append(sent.named)
            if sent.accepted and sent.findable is not None:
                self._findable[sent.step] = sent.findable

    def difference(self, sent: Sent) -> Difference | None:
        """The difference of the summary requests before an accepted request."""
        if not sent.accepted:
            return None
        theirs, ours = self._captured.get(sent.step, []), self._asked.get(sent.step, [])
        if sent.step in self._findable:
            ours = [numbers & self._findable[sent.step] for numbers in ours]
        if not theirs and not ours:
            return None
        if not ours or not theirs:
            words = "a summary was asked for" if theirs else "no summary was asked for"
            return Difference(sent.number, "not-fired" if theirs else "fired", f"{words} before this request")
        if set(theirs) == set(ours):
            return None
        return Difference(sent.number, "summary-input",
                          f"sent scripted steps {_named(theirs)}, ours {_named(ours)}")


def _named(inputs: Sequence[frozenset[int]]) -> str:
    return " and ".join(_ranges(sorted(numbers)) for numbers in inputs)


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers as ranges: `1–4, 7`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{a}–{b}" if a < b else str(a) for a, b in spans) or "none"


def totals(verdicts: Iterable[Verdict]) -> Mapping[str, int]:
    """Sums over verdicts that have a preset."""
    covered = [v for v in verdicts if v.preset]
    return {"captures": len(covered), "views": sum(v.views for v in covered), "equal": sum(v.equal for v in covered),
            "explained": sum(v.explained for v in covered), "wrong": sum(len(v.wrong) for v in covered)}
