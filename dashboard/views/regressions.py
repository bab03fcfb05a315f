"""The regressions page: a run against another of the same sessions, what changed, where it begins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard import data, widgets
from dashboard.data import StoredRun
from evals.leaderboard import TITLED
from evals.markup import escaped, joined, tag
from evals.regressions import METRIC_COLUMNS, Change, Regression, SessionChange, moved_words
from replay.policy.load import RECORDED

MOST_ROWS = 30
TITLES = {h.metric: h.title for h in TITLED}
_CHANGES = ("Means over the sessions that both runs measured, and the paired change from the first run to the second "
            "with its 95 % interval over repositories (from six of them on). Worse and better count sessions. A "
            "verdict needs a p below 0.05 after Holm's correction over all measurements of this table.")
_SESSIONS = ("The first step that differs, by the stored fingerprint of the view, the request's fate, the counted "
             "numbers and the bill. A button opens that step in the step browser, of either run.")


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Regressions", anchor=False)
    columns = st.columns([3, 3, 4])
    with columns[0]:
        first = widgets.choose_run()
    second = _second(first, columns[1:])
    if second is None:
        widgets.callout("note", "Nothing to compare with", "Make a second run of the same sessions with the same "
                        "settings: `rewindow compare PATH -p POLICY --out runs/after`. Then choose it here, or give "
                        "its folder.")
        return
    pair = _policies(first, second)
    if pair is None or not widgets.until(lambda s: data.regression(first, second, *pair, s) is not None,
                                         "Comparing the two runs …"):
        return
    found = data.regression(first, second, *pair, 0.1)
    if found is not None:
        _show(found, first, second, pair)


def _second(first: StoredRun, columns: Sequence[Any]) -> StoredRun | None:
    """The run compared with: one beside the first, or a folder that is given; the address holds either."""
    beside = data.runs_beside(first)
    left, right = columns
    with right:
        folder = widgets.text("Or the folder of the second run", "folder", "runs/after")
    if folder:
        return data.stored(Path(folder))
    if not beside:
        return None
    with left:
        return data.stored(beside[widgets.one("Second run", "with", list(beside), next(iter(beside)))])


def _policies(first: StoredRun, second: StoredRun) -> tuple[str, str] | None:
    """The policy looked at in either run; by default one that both have, those that changed first."""
    data.check_alike(first, second)
    ours, theirs = data.overview(first)["policies"], data.overview(second)["policies"]
    common = [p for p in ours if p in theirs]
    left, right = st.columns(2)
    with left:
        a = widgets.one("Policy in the first run", "ours", ours, (common or ours)[0])
    with right:
        b = widgets.one("Policy in the second run", "theirs", theirs, a if a in theirs else theirs[0])
    return a, b


def _show(found: Regression, first: StoredRun, second: StoredRun, pair: tuple[str, str]) -> None:
    _verdict(found)
    if found.settings:
        with st.expander(f"Differences of the two policies' settings: {len(found.settings):,}", expanded=True):
            widgets.bullets(found.settings)
    widgets.heading("What changed, and by how much", _CHANGES)
    widgets.put(widgets.table([joined(c) for c in METRIC_COLUMNS], [[joined(c.title), *map(escaped, c.words)]
                                                                    for c in found.changes]))
    if found.sessions:
        _sessions(found, first, second, pair)


def _verdict(found: Regression) -> None:
    differing = len(found.sessions)
    if not differing:
        widgets.callout("advice", "Nothing changed", f"All {found.unchanged:,} sessions are the same at every step, "
                        "and in every measurement.")
        return
    worse, better = ([c.title for c in found.changes if c.verdict == v] for v in ("worse", "better"))
    said = [f"{word}: {', '.join(names)}" for word, names in (("worse", worse), ("better", better)) if names]
    title = f"{differing:,} of {differing + found.unchanged:,} sessions differ"
    widgets.callout("problem" if worse else "note", title, "; ".join(said) + "." if said else
                    "No measurement is shown to be worse or better.")


def _sessions(found: Regression, first: StoredRun, second: StoredRun, pair: tuple[str, str]) -> None:
    widgets.heading("On which sessions, and from which step", _SESSIONS)
    measured = [c.metric for c in found.changes]
    metric = widgets.one("Measurement", "metric", measured, _default(found.changes), lambda m: TITLES[m])
    rows = found.worst(metric)
    columns = [joined(c) for c in ("session", "first differing step", "steps that differ", "what differs there",
                                   "first run", "second run", "change")]
    widgets.put(widgets.table(columns, [[escaped(s.session), *map(escaped, _cells(s, metric))]
                                        for s in rows[:MOST_ROWS]]))
    if len(rows) > MOST_ROWS:
        widgets.put(tag("p", f"The {MOST_ROWS} that moved furthest the wrong way, of {len(rows):,}.", class_="rw-lead"))
    names = {s.session: s for s in rows[:MOST_ROWS] if s.step is not None}
    for word, run, policy in (("first", first, pair[0]), ("second", second, pair[1])):
        widgets.picks(f"Open the first differing step in the {word} run", f"open_{word}", list(names),
                      partial(_open, names, run, policy), lambda s: f"{s} · step {names[s].step}")


def _default(changes: Sequence[Change]) -> str:
    """The measurement that got worse, else one that moved."""
    order = sorted(changes, key=lambda c: (c.verdict != "worse", not c.difference))
    return order[0].metric


def _cells(session: SessionChange, metric: str) -> tuple[str, ...]:
    step = "–" if session.step is None else f"{session.step:,}"
    return step, f"{session.steps:,}", session.what, *moved_words(session, metric)


def _open(names: dict[str, SessionChange], run: StoredRun, policy: str, session: str) -> None:
    """The step browser on that step: the policy beside the record, in one of the runs."""
    widgets.go("step", run=data.name_of(run), session=session, step=str(names[session].step), a=policy, b=RECORDED.name)


if __name__ == "__main__":
    page()
