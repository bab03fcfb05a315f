"""Looking into a stored run: its sessions read and replayed again on demand, down to the messages of one step."""

from __future__ import annotations

import tomllib
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from evals.costing import Pricing
from evals.metrics.base import Trial
from evals.side_by_side import SideBySide, aligned
from evals.spans_calls import Deed, deed_of
from evals.store import load_summary
from evals.watch import watched
from replay.engine import Lane, Session, View, divergence
from replay.errors import ConfigError, ReadError, UnknownName
from replay.fingerprint import mark_at
from replay.log import Log
from replay.policy.base import Capacity
from replay.policy.load import RECORDED, policy_from
from replay.policy.policy import Policy
from replay.readers import read
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Message
from replay.view import Shown
from replay.window import Inserted, Window

SESSIONS_KEPT = 3
"""Sessions that stay in memory; the one looked at longest ago goes first."""
STEPS_KEPT = 25_000
"""Steps of all those sessions together, but for the one looked at."""
LANES_KEPT = 8
"""Lanes of a session that stay in memory."""
CALL_WITHIN = 60
"""Messages before a result in which its call is looked for."""
SUMMARIES_KEPT = 2
"""Summaries of runs that stay in memory."""
ALIGNED_KEPT = 4
"""Pairs of views beside each other that stay in memory."""
OWN_PRICES = "recorded model"
"""What a summary says where each session was priced by its own model."""
RUN_FILES = ("summary.json", "trials.parquet", "steps.parquet", "events.parquet", "run.toml")


def check_run(folder: Path) -> Path:
    """The folder, if it is a run. Raises ReadError that says what is missing."""
    if not folder.is_dir():
        raise ReadError(str(folder), "no such folder; expected a run that `rewindow compare --out` stored")
    absent = [name for name in RUN_FILES if not (folder / name).is_file()]
    if absent:
        raise ReadError(str(folder), f"not a run folder ({', '.join(absent)} missing)")
    return folder


def find_runs(folder: Path) -> list[Path]:
    """The runs directly in a folder, the newest first; none where the folder is absent."""
    inside = folder.iterdir() if folder.is_dir() else iter(())
    found = [p for p in inside if p.is_dir() and all((p / name).is_file() for name in RUN_FILES)]
    return sorted(found, key=lambda p: (p / "summary.json").stat().st_mtime, reverse=True)


class OpenSession:
    """A session of a stored run, read and counted again; lanes are replayed when they are asked for."""

    def __init__(self, session: Session, policies: Mapping[str, Policy], capacity: Capacity, summariser: str,
                 pricing: Pricing | None = None) -> None:
        """Prepare a session under the settings of its run."""
        self.session = session
        self.policies = policies
        self.capacity = capacity
        self._summariser = summariser
        self._pricing = pricing or Pricing()
        self._trials: OrderedDict[str, Trial] = OrderedDict()
        self._followed: set[str] = set()
        self._aligned: OrderedDict[tuple[int, str, str], SideBySide] = OrderedDict()
        self._lock, self._work = RLock(), RLock()

    @property
    def log(self) -> Log:
        """The session's log."""
        return self.session.log

    def lane(self, policy: str) -> Lane:
        """The lane of a policy of the run, or the recorded one. Raises UnknownName."""
        return self.trial(policy).lane

    def trial(self, policy: str) -> Trial:
        """The same lane with what metrics ask about it. Raises UnknownName."""
        if policy not in self.policies:
            raise UnknownName("policy of this run", policy, self.policies)
        found = self._kept(policy)
        if found is not None:
            return found
        # Two locks: one lane is replayed at a time, and meanwhile those that are there can be looked at.
        with self._work:
            return self._kept(policy) or self._keep(policy, Trial(
                session=self.session, capacity=self.capacity, pricing=self._pricing,
                lane=self.session.replay(self.policies[policy], self.capacity, self._summariser)))

    def _kept(self, policy: str) -> Trial | None:
        with self._lock:
            if policy in self._trials:
                self._trials.move_to_end(policy)
            return self._trials.get(policy)

    def _keep(self, policy: str, trial: Trial) -> Trial:
        with self._lock:
            self._trials[policy] = trial
            while len(self._trials) > LANES_KEPT:
                self._followed.discard(self._trials.popitem(last=False)[0])
            return trial

    def followed(self, policy: str) -> Trial:
        """A lane whose needed evidence was followed from view to view (`evals.watch`), which is kept with it."""
        trial = self.trial(policy)
        with self._work:
            watched(trial)
            with self._lock:
                self._followed.add(policy)
        return trial

    def has(self, policy: str, followed: bool = False) -> bool:
        """Whether a lane is there without any work."""
        with self._lock:
            return policy in self._trials and (not followed or policy in self._followed)

    def view(self, policy: str, step: int) -> View:
        """What a policy shows at a step (from 1). Raises ConfigError where there is no such step."""
        views = self.lane(policy).views
        if not 1 <= step <= len(views):
            raise ConfigError("step", "", f"the session has {len(views)} steps; there is no step {step}")
        return views[step - 1]

    def divergence(self, policy: str) -> int | None:
        """The first step at which a policy's view differs from the recorded one; None: it never does."""
        return divergence(self.lane(policy), self.session.recorded)

    def call_of(self, call_id: str, before: int) -> Deed | None:
        """What the call did whose result stands at a log index, looked for in the messages shortly before it."""
        if before < 0:
            return None
        nearby = self.log.messages[max(0, before - CALL_WITHIN):before]
        calls = (c for message in reversed(nearby) for c in message.calls if c.id == call_id)
        return next((deed_of(c) for c in calls), None)

    def response(self, step: int) -> Message | None:
        """What the recorded agent answered at a step; None where nothing usable came."""
        place = self.session.transcript.steps[step - 1].response
        return None if place is None else self.log.messages[place]

    def tokens(self, window: Window, shown: Shown) -> int:
        """Counted tokens of one message of a view."""
        ruler = self.log.tokens
        if shown.index is None:
            items = (i for i in window.items if isinstance(i, Inserted) and i.message is shown.message)
            return sum(self.log.inserted_size(i, ruler) for i in list(items)[:1])
        mark = mark_at(window.marks, shown.index)
        sums = self.log.sums(ruler, mark.rendering if mark else None)
        return sums[shown.index + 1] - sums[shown.index]

    def side_by_side(self, step: int, ours: str, theirs: str) -> SideBySide:
        """Both exact views of a step, aligned; the latest answers are remembered."""
        key = (step, ours, theirs)
        with self._lock:
            found = self._aligned.get(key)
        if found is None:
            found = aligned(self.log, self.view(ours, step).window, self.view(theirs, step).window)
        with self._lock:
            self._aligned[key] = found
            while len(self._aligned) > ALIGNED_KEPT:
                self._aligned.popitem(last=False)
        return found


_Key = tuple[str, str, float, float]
_OPEN: OrderedDict[_Key, OpenSession] = OrderedDict()
_SUMMARIES: OrderedDict[tuple[str, float], Mapping[str, Any]] = OrderedDict()
_LIGHT: OrderedDict[tuple[str, float], Mapping[str, Any]] = OrderedDict()
_LOCK = RLock()
_READING = RLock()


def summary_of(run: Path) -> Mapping[str, Any]:
    """The summary of a run; the latest two stay in memory, so it must not be changed. Raises ReadError."""
    key = (str(run), _modified(run / "summary.json"))
    with _LOCK:
        if key not in _SUMMARIES:
            _SUMMARIES[key] = load_summary(run)
        while len(_SUMMARIES) > SUMMARIES_KEPT:
            _SUMMARIES.popitem(last=False)
        return _SUMMARIES[key]


def light_summary_of(run: Path) -> Mapping[str, Any]:
    """The same without the measurements of each trial, which make up nearly all of a large run's summary."""
    key = (str(run), _modified(run / "summary.json"))
    with _LOCK:
        if key not in _LIGHT:
            _LIGHT[key] = load_summary(run, trials=False)
        while len(_LIGHT) > SUMMARIES_KEPT:
            _LIGHT.popitem(last=False)
        return _LIGHT[key]


def open_session(run: Path, session: str) -> OpenSession:
    """A session of a run, read again from its file. Raises ReadError where the file is gone or was cut.

    The latest `SESSIONS_KEPT` stay in memory; a file or run that changed since is read again.
    """
    summary = light_summary_of(run)
    entry = next((s for s in summary["sessions"] if s["session"] == session), None)
    if entry is None:
        raise ReadError(str(run), f"no session {session!r} in this run")
    path = session_file(run, entry["path"])
    key = (str(run), session, _modified(run / "summary.json"), _modified(path))
    found = _looked_up(key)
    if found is not None:
        return found
    with _READING:
        return _looked_up(key) or _remembered(key, _opened(summary, path, entry["position"]), summary["tokenizer"])


def kept_session(run: Path, session: str) -> OpenSession | None:
    """A session that is in memory, as its run and its file are now; None where it would have to be read."""
    entry = next((s for s in light_summary_of(run)["sessions"] if s["session"] == session), None)
    if entry is None:
        return None
    path = session_file(run, entry["path"])
    return _looked_up((str(run), session, _modified(run / "summary.json"), _modified(path)))


def _looked_up(key: _Key) -> OpenSession | None:
    with _LOCK:
        if key in _OPEN:
            _OPEN.move_to_end(key)
        return _OPEN.get(key)


def _remembered(key: _Key, opened: OpenSession, words: str) -> OpenSession:
    with _LOCK:
        _OPEN[key] = opened
        while len(_OPEN) > 1 and (len(_OPEN) > SESSIONS_KEPT
                                  or sum(len(o.log.steps) for o in _OPEN.values()) > STEPS_KEPT):
            _OPEN.popitem(last=False)
            tokenizer(words).forget()
        return opened


def _opened(summary: Mapping[str, Any], path: Path, position: int) -> OpenSession:
    transcripts = read(path)
    if position >= len(transcripts):
        raise ReadError(str(path), f"holds {len(transcripts)} sessions now; the run compared number {position + 1}")
    policies = {p["name"]: policy_from(p["spec"], p["name"]) for p in summary["policies"]}
    capacity = Capacity(window=summary["window"], output_reserve=summary["output_reserve"])
    session = Session(transcripts[position], TokenCounter(tokenizer(summary["tokenizer"])))
    known = {RECORDED.name: RECORDED} | policies
    return OpenSession(session, known, capacity, summary["summariser"], pricing_of(summary))


def pricing_of(summary: Mapping[str, Any]) -> Pricing:
    """What a run assumed about caches and prices; a run from before they were stored assumed nothing special."""
    prices = summary.get("prices")
    return Pricing(cache=summary.get("cache_model") or "auto", prices=None if prices == OWN_PRICES else prices)


def session_file(run: Path, path: str) -> Path:
    """Where a session's file is now: as the run names it, or under the absolute path of its recipe.

    Raises ReadError where it is gone.
    """
    if path == "<stdin>":
        raise ReadError(path, "this session came from standard input; it cannot be read again")
    named = Path(path)
    known = [named, *(f for f in _recipe_files(run) if f.parts[-len(named.parts):] == named.parts)]
    found = next((p for p in known if p.is_file()), None)
    if found is None:
        raise ReadError(path, "the session's file is gone; its stored numbers can still be shown, its messages cannot")
    return found


def _recipe_files(run: Path) -> list[Path]:
    recipe = tomllib.loads((run / "run.toml").read_text(encoding="utf-8"))
    return [Path(name) for name in recipe.get("files", [])]


def _modified(path: Path) -> float:
    return path.stat().st_mtime if path.is_file() else 0.0
