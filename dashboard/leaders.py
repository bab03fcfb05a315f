"""The leaderboard as a table: each value with its interval, its rank and its level."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard import widgets
from evals.board import LEVELS, SIGNS_EXPLAINED, BoardRow, Cell
from evals.leaderboard import TITLED
from evals.markup import Html, joined, tag
from evals.palette import colour_of

SHOWN = ("Headline measurements", "All measurements")
TITLES = {h.metric: h.title for h in TITLED}
_HEADLINE = {h.metric for h in TITLED if h.family == "headline"}


def board(rows: Sequence[BoardRow], policies: Sequence[str], all_of: bool) -> list[Html]:
    """The table, and what its levels and signs mean."""
    kept = [r.cells if all_of else [c for c in r.cells if c.metric in _HEADLINE] for r in rows]
    columns = [joined("policy"), *(tag("span", TITLES[c.metric], " ", widgets.badge(c.level)) for c in kept[0])]
    body = [[_policy(row, policies), *map(_cell, cells)] for row, cells in zip(rows, kept, strict=True)]
    used = sorted({c.level for cells in kept for c in cells})
    levels = (joined(widgets.badge(n), f" {LEVELS[n]}. ") for n in used)
    return [widgets.table(columns, body), tag("p", *levels, SIGNS_EXPLAINED, class_="rw-lead")]


def _policy(row: BoardRow, policies: Sequence[str]) -> Html:
    note = [tag("div", "Pareto", class_="rw-small")] if row.pareto else []
    return joined(widgets.policy_name(row.policy, colour_of(row.policy, policies)), *note)


def _cell(cell: Cell) -> Html:
    lines = [tag("div", cell.interval, class_="rw-small")] if cell.interval else []
    sign = " ★" if cell.leads else " ≈" if cell.not_worse else ""
    rank = [tag("div", cell.rank + sign, class_="rw-small")] if cell.rank else []
    value = tag("div", cell.value, class_="rw-value rw-leads" if cell.leads else "rw-value")
    return tag("div", value, *lines, *rank, title=f"{TITLES[cell.metric]}: n = {cell.sessions} sessions")
