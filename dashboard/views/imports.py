"""The import page: drop files or name a folder, see what can be read, and compare policies on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard import data, uploads, widgets
from evals.child_run import ChildRun, start
from evals.markup import escaped
from replay.import_report import FATES, grouped
from replay.policy.load import preset_names

MOST_ROWS = 200
"""Sessions that are listed."""
_USUAL = ("full-history", "decode-adr18", "observation-masking")
_NAME = re.compile(r"[\w][\w.-]{0,80}")
_JOB, _DROPPED = "job", "dropped"
_COLUMNS = ("file", "format", "messages", "steps", "calls", "compactions", "notes")


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Import", anchor=False)
    widgets.heading("Sessions of yours", "Everything stays on this machine. Dropped files are copied into a private "
                    "folder and read from there.")
    left, right = st.columns(2)
    with left:
        folder = widgets.text("Folder, file or pattern on this machine", "place", "~/.claude/projects")
    with right:
        dropped = st.file_uploader("Or drop session files here", accept_multiple_files=True, key="dropped_files")
    place = folder.strip() or _dropped(dropped)
    if not place:
        widgets.callout("note", "Nothing chosen yet", "Name a folder such as `~/.claude/projects` or "
                        "`~/.codex/sessions`, or drop `.jsonl` and `.json` files of sessions.")
    else:
        report = data.import_report(place)
        _report(report)
        if report["sessions"]:
            _compare(place, report)
    _job()


def _dropped(files: list[Any] | None) -> str:
    """The folder of the dropped files; the same files are kept once."""
    if not files:
        return ""
    key = tuple((f.file_id, f.name) for f in files)
    known = st.session_state.get(_DROPPED)
    if known is None or known[0] != key:
        known = st.session_state[_DROPPED] = key, uploads.keep(files)
    return str(known[1])


def _report(report: dict[str, Any]) -> None:
    sessions = report["sessions"]
    widgets.heading(f"{len(sessions):,} sessions in {report['files']:,} files", "Formats are told from the content. A "
                    "note says what was repaired, left out or unknown, with its line.")
    if sessions:
        widgets.put(widgets.table([*map(escaped, _COLUMNS)], [[*map(escaped, _row(s))] for s in sessions[:MOST_ROWS]]))
    lines = [f"{Path(s['path']).name}: {FATES[fate]}: {group}" for s in sessions for fate, groups in grouped(s["notes"])
             for group in groups]
    lines += [f"{e['path']}: no session: {e['reason']}" for e in report["skipped"]]
    if lines:
        with st.expander(f"Notes ({len(lines):,})", expanded=len(lines) <= 8):
            widgets.bullets(lines[:MOST_ROWS])
    for entry in report["unreadable"]:
        widgets.callout("problem", "Not read", f"{entry['path']}: {entry['reason']}")


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{session[name]:,}" for name in ("messages", "steps", "tool_calls"))
    return (Path(session["path"]).name, session["format"], *counts,
            f"{len(session['compactions']):,}", f"{len(session['notes']):,}")


def _compare(place: str, report: dict[str, Any]) -> None:
    widgets.heading("Compare policies on these sessions", "The run is the one that the command line would make.")
    with st.form("comparison"):
        policies = st.multiselect("Policies", ["full-history", *(n for n in preset_names() if n != "full-history")],
                                  default=list(_USUAL), key="job_policies")
        left, right = st.columns(2)
        window = left.number_input("Window, tokens", 1_000, 2_000_000, 128_000, step=1_000, key="job_window")
        name = right.text_input("Name of the run", "from-dashboard", key="job_name")
        if st.form_submit_button("Compare", type="primary", disabled=_is_working()):
            _start(place, policies, int(window), name.strip(), report["files"])


def _start(place: str, policies: list[str], window: int, name: str, files: int) -> None:
    target = Path("runs") / name
    if not policies:
        widgets.callout("problem", "No policy", "Choose at least one policy.")
    elif not _NAME.fullmatch(name):
        widgets.callout("problem", "No such name", "A run's name has letters, digits, dots, dashes and underscores.")
    elif target.exists():
        widgets.callout("problem", "The run is there already", f"Choose another name than {name}.")
    else:
        st.session_state[_JOB] = start([place], policies, window, target.absolute(), files)


def _is_working() -> bool:
    job: ChildRun | None = st.session_state.get(_JOB)
    return job is not None and job.state == "working"


@st.fragment(run_every=0.5)
def _following() -> None:
    job: ChildRun = st.session_state[_JOB]
    if job.state != "working":
        st.rerun()
    st.progress(job.files_done / max(1, job.files), f"{job.files_done:,} of {job.files:,} files")
    st.button("Cancel", on_click=job.cancel, disabled=job.cancelled)


def _job() -> None:
    """The comparison that is under way, or how it ended."""
    job: ChildRun | None = st.session_state.get(_JOB)
    if job is None:
        return
    if job.state == "working":
        _following()
    elif job.state == "done":
        data.add_run(job.target)
        widgets.callout("advice", "The run is stored", str(job.target))
        st.button("Open it", type="primary", on_click=widgets.go, args=("compare",), kwargs={"run": job.target.name})
    else:
        title = "Cancelled; finished files are kept" if job.state == "stopped" else "The comparison failed"
        widgets.callout("note" if job.state == "stopped" else "problem", title, job.words)


if __name__ == "__main__":
    page()
