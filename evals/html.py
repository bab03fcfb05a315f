"""A run as one HTML file that opens offline: no script, nothing from elsewhere, every text escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evals import series
from evals.board import (
    LANES,
    LEVELS,
    PAIR_COLUMNS,
    SIGNS_EXPLAINED,
    Cell,
    advice,
    board,
    explained,
    facts,
    pair_rows,
    shown,
)
from evals.leaderboard import TITLED
from evals.loss_tables import WORST_COLUMNS, worst_rows
from evals.markup import Html, escaped, joined, tag
from evals.palette import colour_of, dash_of
from evals.report import write_atomically
from evals.strata_tables import STRATA_COLUMNS, STRATA_SAID, STRATA_TITLE, strata_line, strata_rows
from evals.svg import Bar, Line, bars, lines
from replay.policy.load import RECORDED

CURVE_SESSIONS = 6
"""Largest sessions whose token curves are drawn."""
CURVE_POINTS = 600
TITLES = {h.metric: h.title for h in TITLED}
_STYLE = Path(__file__).with_name("report.css")


def write_html(summary: Mapping[str, Any], path: Path, run: Path | None = None) -> None:
    """Write a run's report: leaderboard, differences, recommendation, warnings, sessions.

    With a run folder (given, or named by the summary and still there) the largest sessions' token curves too.
    """
    stored = run or (Path(summary["run"]) if summary.get("run") else None)
    folder = stored if stored is not None and (stored / "steps.parquet").is_file() else None
    write_atomically(path, page(summary, folder))


def page(summary: Mapping[str, Any], run: Path | None = None) -> str:
    """The whole document."""
    style = _STYLE.read_text(encoding="utf-8")
    head = tag("head", tag("meta", charset="utf-8"),
               tag("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
               tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
               tag("title", "Rewindow: policies compared"), tag("style", Html(style)))
    body = tag("body", tag("main", tag("h1", "Policies compared"), _facts(summary), *_advice(summary),
                           *_leaderboard(summary), *_losses(summary),
                           *_pairs(summary), *_strata(summary), *_curves(summary, run), *_sessions(summary)))
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


def _policy(style: str) -> str:
    """Nothing may be loaded or run; the one style block is named by its hash."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _facts(summary: Mapping[str, Any]) -> Html:
    return tag("p", *(tag("span", tag("b", value), f" {name}", class_="chip") for name, value in facts(summary)))


def _advice(summary: Mapping[str, Any]) -> Iterator[Html]:
    policy, title, why = advice(summary)
    yield tag("section", tag("b", title), tag("p", why), class_="advice" if policy else "note")
    if summary["warnings"]:
        said = tag("ul", *(tag("li", w) for w in summary["warnings"]))
        yield tag("section", tag("b", "Warnings"), said, class_="note")


def _leaderboard(summary: Mapping[str, Any]) -> Iterator[Html]:
    rows = board(summary)
    names = [r.policy for r in rows]
    columns = ["policy", *(joined(TITLES[c.metric], " ", _badge(c.level)) for c in rows[0].cells)]
    body = [[joined(_name(r.policy, names), *([tag("div", "Pareto", class_="small")] if r.pareto else [])),
             *map(_cell, r.cells)] for r in rows]
    yield tag("h2", "Leaderboard")
    yield tag("p", explained("live" in summary), class_="lead")
    yield _table(columns, body)
    used = sorted({c.level for r in rows for c in r.cells})
    yield tag("p", *(joined(_badge(n), f" {LEVELS[n]}. ") for n in used), SIGNS_EXPLAINED, class_="lead")
    yield from _mean_views(summary, names)


def _losses(summary: Mapping[str, Any]) -> Iterator[Html]:
    worst = worst_rows(summary, per_policy=10)
    if worst:
        yield tag("h2", "Worst losses")
        said = "What an action took from earlier messages that the policy's view no longer held, heaviest first."
        yield tag("p", said, class_="lead")
        yield _table(WORST_COLUMNS, worst)


def _mean_views(summary: Mapping[str, Any], names: Sequence[str]) -> Iterator[Html]:
    metric = "mean_view_tokens"
    found = [r for r in summary["leaderboard"] if r["metric"] == metric and r["value"] is not None]
    if found:
        yield tag("p", "Mean view in tokens, with its 95 % interval where sessions allow one:", class_="lead")
        yield bars([_bar(r, names) for r in found], TITLES[metric])


def _bar(row: Mapping[str, Any], names: Sequence[str]) -> Bar:
    value = row["value"]
    low, high = (value if row[end] is None else row[end] for end in ("low", "high"))
    return Bar(name=row["policy"], colour=colour_of(row["policy"], names), value=value, low=low, high=high,
               words=shown(row["metric"], value))


def _cell(cell: Cell) -> Html:
    sign = " ★" if cell.leads else " ≈" if cell.not_worse else ""
    small = [cell.interval, f"{cell.rank}{sign}" if cell.rank else None]
    return joined(tag("div", cell.value, class_="leads" if cell.leads else None),
                  *(tag("div", text, class_="small") for text in small if text))


def _pairs(summary: Mapping[str, Any]) -> Iterator[Html]:
    rows = [[p.policy, TITLES[h.metric], *p.words] for h in TITLED for p in pair_rows(summary, h.metric)]
    yield tag("h2", f"Against {summary['baseline']}")
    if not rows:
        yield tag("p", "There is no other policy to pair, or no session that both could be measured on.", class_="lead")
        return
    yield tag("p", "Mean paired differences per session. An interval that holds 0 shows no difference.", class_="lead")
    yield _table(["policy", "measurement", *PAIR_COLUMNS], rows)


def _strata(summary: Mapping[str, Any]) -> Iterator[Html]:
    rows = strata_rows(summary)
    if rows:
        yield tag("h2", STRATA_TITLE)
        yield tag("p", f"{STRATA_SAID} {strata_line(summary) or ''}", class_="lead")
        yield tag("details", tag("summary", f"{len(rows):,} differences by stratum"), _table(STRATA_COLUMNS, rows))


def _curves(summary: Mapping[str, Any], run: Path | None) -> Iterator[Html]:
    yield tag("h2", "Tokens of each step's view")
    if run is None:
        yield tag("p", "Curves need a stored run: compare with --out, then report on that folder.", class_="lead")
        return
    yield tag("p", f"The {CURVE_SESSIONS} sessions with the most steps. Thin pale lines are views behind a run's end, "
              "which would never have been sent.", class_="lead")
    names = [p["name"] for p in summary["policies"]]
    yield _legend([RECORDED.name, *names])
    largest = sorted((s for s in summary["sessions"] if s["steps"]), key=lambda s: -int(s["steps"]))[:CURVE_SESSIONS]
    for session in largest:
        yield tag("h3", f"{session['session']} · {session['format']} · {session['steps']:,} steps")
        yield _curve(run, session["session"], names, summary["window"] - summary["output_reserve"])


def _curve(run: Path, session: str, names: Sequence[str], usable: int) -> Html:
    lanes = [RECORDED.name, *names]
    table = series.curve(series.session_steps(run, session), lanes, CURVE_POINTS)
    groups = [(p, table[table["policy"] == p]) for p in lanes]
    return lines([Line(name=p, colour=colour_of(p, names), dash=dash_of(p, names), x=g["step"].tolist(),
                       y=g["tokens"].tolist(), faint=(~g["sent"]).tolist()) for p, g in groups if len(g)],
                 usable, "step (one model call)", "view, tokens")


def _legend(lanes: Sequence[str]) -> Html:
    entries = []
    for lane in lanes:
        dash = dash_of(lane, lanes)
        stroke = tag("line", x1=0, x2=30, y1=6, y2=6, stroke=colour_of(lane, lanes), stroke_width=3,
                     stroke_dasharray=" ".join(map(str, dash)) if dash[1] else None)
        entries.append(tag("span", tag("svg", stroke, viewBox="0 0 30 12", class_="key"), lane, class_="chip"))
    return tag("p", *entries)


def _sessions(summary: Mapping[str, Any]) -> Iterator[Html]:
    names = [p["name"] for p in summary["policies"]]
    trials = {(t["session"], t["policy"]): t for t in summary["trials"]}
    rows = [[s["session"], s["format"], f"{s['steps']:,}", _recorded(s),
             *(_trial(trials.get((s["session"], n))) for n in names)] for s in summary["sessions"]]
    yield tag("h2", "Sessions")
    yield tag("p", "Mean view in tokens of each session, L0; below it where the run ends in a refused request, and the "
              "share of steps before the first view that differs from the record.", class_="lead")
    yield _table(["session", "format", "steps", "recorded", *names], rows)
    yield tag("p", *(joined(tag("b", lane), f": {meaning}. ") for lane, meaning in LANES.items()), class_="lead")


def _recorded(session: Mapping[str, Any]) -> str:
    return shown("mean_view_tokens", session["recorded"]["mean_view_tokens"])


def _trial(trial: Mapping[str, Any] | None) -> Html:
    if trial is None:
        return escaped("–")
    if not trial["ok"]:
        return joined("failed", tag("div", str(trial["error"]), class_="small wrap"))
    ended, share = trial["ended"], trial["identified_share"]
    small = [f"ends at step {ended:,}"] if ended else []
    small += [f"{shown('identified_share', share)} identified"] if share is not None else []
    return joined(shown("mean_view_tokens", trial["metrics"].get("mean_view_tokens")),
                  *(tag("div", text, class_="small") for text in small))


def _badge(level: str) -> Html:
    return tag("span", level, class_="badge", title=LEVELS.get(level, ""))


def _name(policy: str, names: Sequence[str]) -> Html:
    swatch = tag("svg", tag("rect", width=10, height=10, fill=colour_of(policy, names)), viewBox="0 0 10 10",
                 class_="swatch")
    return tag("span", swatch, policy)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    head = tag("tr", *(tag("th", c, scope="col") for c in columns))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", c) for c in row[1:])) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")
