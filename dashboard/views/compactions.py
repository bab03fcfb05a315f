"""The compactions page: every change of a lane's window, what it kept, lost and cost, and two summaries compared."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import compaction, data, widgets
from dashboard.data import StoredRun
from evals.compaction_cards import COLUMNS, Card, summaries, words
from evals.markup import escaped
from replay.policy.load import RECORDED

MOST_ROWS = 50
"""Changes that are listed at once."""
_TABLE = ("Sizes are counted tokens (L0), what pays back rests on the run's cache model (L1): the steps after which a "
          "smaller view has saved what the broken prefix and the summary call cost. Used later: pieces of what went "
          "away that the agent used before the next change, and how many of them the view still held.")


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Compactions", anchor=False)
    columns = st.columns([3, 5, 5])
    with columns[0]:
        run = widgets.choose_run()
    found = data.overview(run)
    lanes = [RECORDED.name, *found["policies"]]
    with columns[1]:
        session = widgets.choose_session(found["sessions"])
    if not found["sessions"][session]["steps"]:
        widgets.callout("note", "No model call", "This session has no step, so nothing was compacted. Choose another.")
        return
    failed = data.failures(run, session)
    counts = data.change_counts(run, session)
    usable = [lane for lane in lanes if lane not in failed]
    default = max(usable, key=lambda lane: counts.get(lane, 0))
    with columns[2]:
        policy = widgets.one("Policy", "policy", usable, default, lambda p: f"{p} · {counts.get(p, 0):,} changes")
    if not counts.get(policy):
        widgets.callout("note", "Nothing was compacted", f"{policy} changes no window of this session. Choose a policy "
                        "with changes, or compare again with a smaller `--window`.")
        return
    if widgets.until(lambda seconds: data.opened(run, session, (policy,), seconds), "Replaying the session …"):
        _changes(run, session, policy, data.compactions(run, session, policy))


def _changes(run: StoredRun, session: str, policy: str, made: Sequence[Card]) -> None:
    widgets.heading(f"{len(made):,} changes of the window", _TABLE)
    first = 1
    if len(made) > MOST_ROWS:
        first = widgets.number(f"First of {MOST_ROWS} rows (of {len(made):,})", "at", 1, len(made), 1)
    rows = [[*map(escaped, words(first + n, card))] for n, card in enumerate(made[first - 1:first - 1 + MOST_ROWS])]
    widgets.put(widgets.table([*map(escaped, COLUMNS)], rows))
    numbers = [str(n) for n in range(1, len(made) + 1)]
    with_text = summaries(made)
    left, right = st.columns(2)
    before = str(with_text[0]) if with_text else "1"
    after = str(with_text[1]) if len(with_text) > 1 else before
    opened = data.open_session(run, session)
    for column, key, default in ((left, "c1", before), (right, "c2", after)):
        with column:
            chosen = widgets.one("Left event" if key == "c1" else "Right event", key, numbers, default,
                                 lambda n: f"#{n} at step {made[int(n) - 1].event.step:,}")
            compaction.show(opened, policy, int(chosen), made[int(chosen) - 1], key)
    pair = [made[int(st.session_state[f"choose_{key}"]) - 1].summary for key in ("c1", "c2")]
    compaction.compared(pair[0], pair[1])


if __name__ == "__main__":
    page()
