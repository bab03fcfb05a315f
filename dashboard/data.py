"""Everything the pages show, from `evals`, kept as long as the run on disk stays the same."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from dashboard.launch import RUNS_VARIABLE
from evals import board, browse, compaction_cards, opening, regressions, selection, series
from evals.metrics.retention import losses
from evals.selection import Selection
from evals.sweep import surface
from replay.find import find
from replay.importing import import_files


def runs() -> dict[str, Path]:
    """The runs to choose from, by a name that tells them apart."""
    given = os.environ.get(RUNS_VARIABLE)
    folders = [Path(p) for p in json.loads(given)] if given else browse.find_runs(Path("runs"))
    names = [folder.name for folder in folders]
    return {f.name if names.count(f.name) == 1 else str(f): f for f in folders}


def add_run(folder: Path) -> None:
    """Let a run that was made here be chosen, where the runs to choose from were named."""
    given = os.environ.get(RUNS_VARIABLE)
    if given and str(folder) not in json.loads(given):
        os.environ[RUNS_VARIABLE] = json.dumps([str(folder), *json.loads(given)])


@st.cache_data(max_entries=8, ttl=60, show_spinner="Reading the sessions …")
def import_report(place: str) -> dict[str, Any]:
    """What the files of a place are. Raises ReadError for what does not exist."""
    found = find([place])
    made = import_files(found)
    return {"sessions": made.sessions, "skipped": made.skipped, "unreadable": made.unreadable, "files": len(found)}


class StoredRun(NamedTuple):
    """A run folder and when it was written: a key under which a run that was made again is read again."""

    folder: Path
    written: float


def stored(folder: Path) -> StoredRun:
    """The run in a folder. Raises ReadError where there is none."""
    return StoredRun(folder, (browse.check_run(folder) / "summary.json").stat().st_mtime)


@st.cache_data(max_entries=8, show_spinner="Reading the run …")
def overview(run: StoredRun) -> dict[str, Any]:
    """What the compare page needs of a run's summary, without its trials."""
    summary = browse.light_summary_of(run.folder)
    return {
        "facts": board.facts(summary), "board": board.board(summary), "advice": board.advice(summary),
        "live": "live" in summary, "warnings": summary["warnings"], "rows": summary["leaderboard"],
        "by": selection.facts(summary),
        "policies": [p["name"] for p in summary["policies"]], "baseline": summary["baseline"],
        "usable": summary["window"] - summary["output_reserve"],
        "sessions": {s["session"]: {k: s[k] for k in ("format", "steps", "messages", "model", "path", "notes")}
                     for s in sorted(summary["sessions"], key=lambda s: -s["steps"])},
    }


@st.cache_data(max_entries=32, show_spinner=False)
def pairs(run: StoredRun, metric: str) -> list[board.PairRow]:
    """The paired differences of one metric."""
    return board.pair_rows(browse.light_summary_of(run.folder), metric)


def part(run: StoredRun, asked: Selection, seconds: float) -> dict[str, Any] | None:
    """What the compare page needs of a part of the sessions; None while it is worked out beside the page."""
    found: dict[str, Any] | None = opening.result(("part", run, asked), partial(_part, run, asked), seconds)
    return found


def _part(run: StoredRun, asked: Selection) -> dict[str, Any]:
    summary = browse.light_summary_of(run.folder)
    sessions = selection.chosen(selection.facts(summary), asked)
    made = {**summary, **selection.compared(run.folder, summary, sessions)}
    pairs_of = {metric: board.pair_rows(made, metric) for metric in {r["metric"] for r in made["pairs"]}}
    return {"board": board.board(made), "advice": board.advice(made), "rows": made["leaderboard"], "pairs": pairs_of,
            "count": len(sessions)}


def sweep(run: StoredRun, seconds: float) -> tuple[surface.Surface | None] | None:
    """The sweep of a run, in a tuple that is there once it is worked out beside the page."""
    found: tuple[surface.Surface | None] | None = opening.result(("sweep", run), partial(_sweep, run), seconds)
    return found


def _sweep(run: StoredRun) -> tuple[surface.Surface | None]:
    return (surface.surface(run.folder, browse.light_summary_of(run.folder)),)


def runs_beside(run: StoredRun) -> dict[str, Path]:
    """Other runs to choose from: those offered, and those in the same folder as this one."""
    here = run.folder.resolve()
    found = {name: folder for name, folder in runs().items() if folder.resolve() != here}
    known = {here, *(f.resolve() for f in found.values())}
    return found | {str(f): f for f in browse.find_runs(run.folder.parent) if f.resolve() not in known}


def name_of(run: StoredRun) -> str:
    """What the address calls a run; one that is not among those offered is called by its folder."""
    here = run.folder.resolve()
    return next((name for name, folder in runs().items() if folder.resolve() == here), str(run.folder))


def check_alike(first: StoredRun, second: StoredRun) -> None:
    """Raises ConfigError where two runs are not of the same sessions under the same settings."""
    regressions.check_alike(first.folder, second.folder)


def regression(first: StoredRun, second: StoredRun, ours: str, theirs: str,
               seconds: float) -> regressions.Regression | None:
    """What changed from one run to another; None while it is worked out beside the page."""
    work = partial(regressions.regression, first.folder, second.folder, ours, theirs)
    found: regressions.Regression | None = opening.result(("regression", first, second, ours, theirs), work, seconds)
    return found


@st.cache_data(max_entries=16, show_spinner="Reading the session's steps …")
def steps(run: StoredRun, session: str, policies: tuple[str, ...]) -> Any:
    """The steps of a session under some lanes."""
    return series.session_steps(run.folder, session, policies)


@st.cache_data(max_entries=32, show_spinner=False)
def curve(run: StoredRun, session: str, policies: tuple[str, ...], most: int = series.MOST_POINTS) -> Any:
    """Tokens a step of the policies, thinned for drawing."""
    return series.curve(steps(run, session, policies), policies, most)


@st.cache_data(max_entries=16, show_spinner=False)
def class_curve(run: StoredRun, session: str, policies: tuple[str, ...]) -> Any:
    """What the views of the policies are made of, thinned for drawing."""
    return series.class_curve(steps(run, session, policies), policies)


@st.cache_data(max_entries=16, show_spinner=False)
def cost_curve(run: StoredRun, session: str, policies: tuple[str, ...]) -> Any:
    """What the steps of the policies cost, thinned for drawing."""
    return series.cost_curve(steps(run, session, policies), policies)


@st.cache_data(max_entries=16, show_spinner=False)
def lost_needs(run: StoredRun, session: str, policies: tuple[str, ...]) -> Any:
    """Steps whose action used what the view no longer held."""
    return series.lost_needs(steps(run, session, policies), policies)


@st.cache_data(max_entries=16, show_spinner=False)
def marks(run: StoredRun, session: str, policies: tuple[str, ...]) -> Any:
    """Compactions and run ends of the policies."""
    events = series.session_events(run.folder, session, policies)
    return series.marks(steps(run, session, policies), events, policies)


@st.cache_data(max_entries=32, show_spinner=False)
def lane_words(run: StoredRun, session: str) -> Mapping[str, tuple[str, ...]]:
    """A session's numbers under each policy, in words."""
    return series.lane_words(run.folder, session)


@st.cache_data(max_entries=32, show_spinner=False)
def failures(run: StoredRun, session: str) -> Mapping[str, str]:
    """The policies whose trial of the session failed, with the reason."""
    return series.failures(run.folder, session)


@st.cache_data(max_entries=32, show_spinner=False)
def changes(run: StoredRun, session: str, ours: str, theirs: str) -> list[int]:
    """Steps where something changes between or in two lanes."""
    return series.changes(steps(run, session, pair_of(ours, theirs)), ours, theirs)


@st.cache_data(max_entries=32, show_spinner=False)
def first_difference(run: StoredRun, session: str, ours: str, theirs: str) -> int | None:
    """The first step whose views differ under two policies."""
    return series.first_difference(steps(run, session, pair_of(ours, theirs)), ours, theirs)


def pair_of(ours: str, theirs: str) -> tuple[str, ...]:
    """Two policies, or one that stands on both sides."""
    return tuple(dict.fromkeys((ours, theirs)))


@st.cache_data(max_entries=64, show_spinner=False)
def fingerprints(run: StoredRun, session: str, step: int, policies: tuple[str, ...]) -> dict[str, str]:
    """The stored fingerprint of each policy's view of a step."""
    table = steps(run, session, policies)
    rows = table[table["step"] == step]
    return dict(zip(rows["policy"], rows["fingerprint"], strict=True))


def opened(run: StoredRun, session: str, policies: tuple[str, ...], seconds: float) -> bool:
    """Whether a session and the lanes of these policies are in memory; it is seen to beside the page."""
    return opening.opened(run.folder, session, policies, seconds)


def open_session(run: StoredRun, session: str) -> browse.OpenSession:
    """The session read again from its file; `evals.browse` keeps the latest few."""
    return browse.open_session(run.folder, session)


@st.cache_resource(max_entries=16, show_spinner=False)
def compactions(run: StoredRun, session: str, policy: str) -> list[compaction_cards.Card]:
    """Every change of a lane's window."""
    return compaction_cards.cards(open_session(run, session), policy)


def losses_at(run: StoredRun, session: str, policy: str, step: int) -> list[str]:
    """The texts of what a lane had lost when a step needed it, heaviest first."""
    return [loss.text for loss in losses(open_session(run, session).followed(policy)) if loss.step == step]


@st.cache_data(max_entries=32, show_spinner=False)
def change_counts(run: StoredRun, session: str) -> Mapping[str, int]:
    """How often each lane of a session changes its window."""
    return series.change_counts(run.folder, session)
