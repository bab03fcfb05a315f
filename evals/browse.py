"""Looking into a stored run: its sessions read and replayed again on demand, down to the messages of one step."""

from __future__ import annotations

import tomllib
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from evals.side_by_side import SideBySide, aligned
from evals.store import load_summary
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
LANES_KEPT = 8
"""Lanes of a session that stay in memory."""
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

    def __init__(self, session: Session, policies: Mapping[str, Policy], capacity: Capacity, summariser: str) -> None:
        """Prepare a session under the settings of its run."""
        self.session = session
        self.policies = policies
        self.capacity = capacity
        self._summariser = summariser
        self._lanes: OrderedDict[str, Lane] = OrderedDict()
        self._aligned: tuple[tuple[int, str, str], SideBySide] | None = None
        self._lock = RLock()

    @property
    def log(self) -> Log:
        """The session's log."""
        return self.session.log

    def lane(self, policy: str) -> Lane:
        """The lane of a policy of the run, or the recorded one. Raises UnknownName."""
        if policy not in self.policies:
            raise UnknownName("policy of this run", policy, self.policies)
        with self._lock:
            if policy not in self._lanes:
                self._lanes[policy] = self.session.replay(self.policies[policy], self.capacity, self._summariser)
            self._lanes.move_to_end(policy)
            while len(self._lanes) > LANES_KEPT:
                self._lanes.popitem(last=False)
            return self._lanes[policy]

    def view(self, policy: str, step: int) -> View:
        """What a policy shows at a step (from 1). Raises ConfigError where there is no such step."""
        views = self.lane(policy).views
        if not 1 <= step <= len(views):
            raise ConfigError("step", "", f"the session has {len(views)} steps; there is no step {step}")
        return views[step - 1]

    def divergence(self, policy: str) -> int | None:
        """The first step at which a policy's view differs from the recorded one; None: it never does."""
        return divergence(self.lane(policy), self.session.recorded)

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
        """Both exact views of a step, aligned; the latest answer is remembered."""
        key = (step, ours, theirs)
        with self._lock:
            if self._aligned is None or self._aligned[0] != key:
                windows = self.view(ours, step).window, self.view(theirs, step).window
                self._aligned = (key, aligned(self.log, *windows))
            return self._aligned[1]


_OPEN: OrderedDict[tuple[str, str, float, float], OpenSession] = OrderedDict()
_SUMMARIES: OrderedDict[tuple[str, float], Mapping[str, Any]] = OrderedDict()
_LOCK = RLock()


def summary_of(run: Path) -> Mapping[str, Any]:
    """The summary of a run; the latest two stay in memory, so it must not be changed. Raises ReadError."""
    key = (str(run), _modified(run / "summary.json"))
    with _LOCK:
        if key not in _SUMMARIES:
            _SUMMARIES[key] = load_summary(run)
        while len(_SUMMARIES) > 2:
            _SUMMARIES.popitem(last=False)
        return _SUMMARIES[key]


def open_session(run: Path, session: str) -> OpenSession:
    """A session of a run, read again from its file. Raises ReadError where the file is gone or was cut.

    The latest `SESSIONS_KEPT` stay in memory; a file or run that changed since is read again.
    """
    summary = summary_of(run)
    entry = next((s for s in summary["sessions"] if s["session"] == session), None)
    if entry is None:
        raise ReadError(str(run), f"no session {session!r} in this run")
    path = session_file(run, entry["path"])
    key = (str(run), session, _modified(run / "summary.json"), _modified(path))
    with _LOCK:
        if key not in _OPEN:
            while len(_OPEN) >= SESSIONS_KEPT:
                _OPEN.popitem(last=False)
                tokenizer(summary["tokenizer"]).forget()
            _OPEN[key] = _opened(summary, path, entry["position"])
        _OPEN.move_to_end(key)
        return _OPEN[key]


def _opened(summary: Mapping[str, Any], path: Path, position: int) -> OpenSession:
    transcripts = read(path)
    if position >= len(transcripts):
        raise ReadError(str(path), f"holds {len(transcripts)} sessions now; the run compared number {position + 1}")
    policies = {p["name"]: policy_from(p["spec"], p["name"]) for p in summary["policies"]}
    capacity = Capacity(window=summary["window"], output_reserve=summary["output_reserve"])
    session = Session(transcripts[position], TokenCounter(tokenizer(summary["tokenizer"])))
    return OpenSession(session, {RECORDED.name: RECORDED} | policies, capacity, summary["summariser"])


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
