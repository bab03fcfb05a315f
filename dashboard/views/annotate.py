"""The annotate page: say of a step or a loss that it was good, harmful, or that a metric is wrong; find, export."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from dashboard import data, widgets
from dashboard.data import StoredRun
from evals.annotations import MARKS, MOST_NOTE, Annotation, annotate, annotations_of, as_csv, as_jsonl, chosen, withdraw
from evals.markup import escaped
from replay.commands.output import literal
from replay.policy.load import RECORDED

_LEAD = ("Stored beside the run in annotations.jsonl. Judges are calibrated against these marks; nothing is sent "
         "anywhere.")
_WHOLE_STEP = "the step as a whole"
MOST_ROWS = 100
"""Annotations that are listed at once."""


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Annotate", anchor=False)
    columns = st.columns([3, 5, 4, 2])
    with columns[0]:
        run = widgets.choose_run()
    found = data.overview(run)
    with columns[1]:
        session = widgets.choose_session(found["sessions"])
    lanes = [RECORDED.name, *found["policies"]]
    with columns[2]:
        policy = widgets.one("Policy", "policy", lanes, lanes[1] if len(lanes) > 1 else lanes[0])
    steps = int(found["sessions"][session]["steps"])
    if not steps:
        widgets.callout("note", "No model call", "This session has no step to annotate. Choose another.")
    else:
        with columns[3]:
            step = widgets.number("Step", "step", 1, steps, 1)
        _form(run, session, policy, step)
    _listed(run)


def _form(run: StoredRun, session: str, policy: str, step: int) -> None:
    lost: list[str] = []
    if widgets.tick("List what was lost at this step", "losses", "Replays the session under this policy."):
        ready = widgets.until(lambda seconds: data.opened(run, session, (policy,), seconds), "Replaying the session …")
        lost = data.losses_at(run, session, policy, step) if ready else []
    with st.form("annotation", clear_on_submit=True):
        left, right = st.columns(2)
        with left:
            mark = st.radio("Mark", MARKS, horizontal=True, key="mark_given")
        with right:
            loss = st.selectbox("Of", [_WHOLE_STEP, *lost], key="loss_given", format_func=literal)
        note = st.text_area("Note", key="note_given", max_chars=MOST_NOTE, height=80)
        if st.form_submit_button("Keep it", type="primary"):
            annotate(run.folder, session=session, policy=policy, step=step, mark=mark, note=note.strip(),
                     loss=None if loss == _WHOLE_STEP else loss)
            st.toast("Kept beside the run.")
    st.button("Open this step", on_click=widgets.go, args=("step",),
              kwargs={"session": session, "step": str(step), "a": policy, "b": RECORDED.name})


def _listed(run: StoredRun) -> None:
    known = annotations_of(run.folder)
    widgets.heading(f"{len(known):,} annotations of this run", _LEAD)
    if not known:
        widgets.callout("note", "None yet", "Choose session, policy and step above, say what you think, and keep it.")
        return
    left, right = st.columns([2, 3])
    with left:
        marks = widgets.many("Marks", "mark", MARKS, ())
    with right:
        words = widgets.text("Words in note, loss, session or policy", "words", "e.g. threshold")
    shown = chosen(known, marks, words)
    widgets.put(widgets.table([*map(escaped, ("when", "session", "policy", "step", "mark", "of", "note"))],
                              [[*map(escaped, _row(a))] for a in shown[-MOST_ROWS:][::-1]]))
    if len(shown) > MOST_ROWS:
        widgets.bullets([f"The newest {MOST_ROWS} of {len(shown):,}; the export holds all."])
    _actions(run, shown)


def _actions(run: StoredRun, shown: Sequence[Annotation]) -> None:
    columns = st.columns([2, 2, 5])
    columns[0].download_button("Export JSON lines", as_jsonl(shown), "annotations.jsonl", "application/jsonl")
    columns[1].download_button("Export CSV", as_csv(shown), "annotations.csv", "text/csv")
    names = {f"{a.mark} · step {a.step:,} · {a.session} · {a.id}": a.id for a in shown[-MOST_ROWS:][::-1]}
    with columns[2]:
        widgets.picks("Take one back", "withdrawn", list(names), lambda name: withdraw(run.folder, names[name]))


def _row(said: Annotation) -> tuple[str, ...]:
    when = datetime.fromtimestamp(said.time, UTC).strftime("%Y-%m-%d %H:%M")
    return (when, said.session, said.policy, f"{said.step:,}", said.mark, said.loss or _WHOLE_STEP, said.note)


if __name__ == "__main__":
    page()
