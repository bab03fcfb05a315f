"""Looking into a stored run: sessions again, their lanes, curves, marks and the HTML report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evals import browse, html, series
from evals.board import board, levels, pair_rows, shown, signed
from evals.compare import Comparison, compare
from evals.store import load_summary
from evals.trial import Settings
from replay.errors import ConfigError, ReadError, UnknownName
from replay.find import Found
from replay.policy.base import Capacity
from replay.policy.load import policy

POLICIES = ("full-history", "decode-adr18:trigger.at=0.4,tail_tokens=200")
EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def _write(path: Path, turns: int) -> Path:
    lines: list[dict[str, Any]] = [{"role": "system", "content": EVIL}]
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "m{n}.py"}}'}}
        lines += [{"role": "user", "content": f"Task {n}. {EVIL}"},
                  {"role": "assistant", "content": "", "tool_calls": [call]},
                  {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n}\n" * 60},
                  {"role": "assistant", "content": f"Done {n}."}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _run(files: list[Path], out: Path) -> Path:
    settings = Settings(capacity=Capacity(window=1_500), tokenizer="o200k_base", summariser="extractive")
    compare(Comparison(files=tuple(Found(f, True) for f in files), policies=tuple(map(policy, POLICIES)),
                       baseline="full-history", settings=settings, jobs=1), out)
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four sessions; one is named like markup."""
    folder = tmp_path_factory.mktemp("browse")
    files = [_write(folder / name, turns) for name, turns in (("a.jsonl", 6), ("b.jsonl", 5), ("c.jsonl", 4),
                                                              ("<img src=x>.jsonl", 3))]
    return _run(files, folder / "run")


def test_every_view_is_the_one_that_was_measured(run: Path) -> None:
    """Reading and replaying again gives the stored fingerprint and size of every step of every lane."""
    opened = browse.open_session(run, "a")
    for row in series.session_steps(run, "a").to_dict("records"):
        view = opened.view(row["policy"], row["step"])
        assert (row["fingerprint"], row["tokens"]) == (view.fingerprint[:16], view.figure.tokens)


def test_a_few_sessions_stay_in_memory(run: Path) -> None:
    """The same session is not read twice; the one looked at longest ago is let go."""
    first = browse.open_session(run, "a")
    assert first is browse.open_session(run, "a")
    for name in ("b", "c", "<img src=x>"):
        browse.open_session(run, name)

    assert first is not browse.open_session(run, "a")


def test_wrong_names_are_said(run: Path) -> None:
    """A session, policy or step that the run does not hold is an error of one line."""
    opened = browse.open_session(run, "a")
    with pytest.raises(ReadError, match="no session 'zz' in this run"):
        browse.open_session(run, "zz")
    with pytest.raises(UnknownName, match="full-history"):
        opened.lane("full-histori")
    with pytest.raises(ConfigError, match="12 steps; there is no step 13"):
        opened.view("full-history", 13)


@pytest.mark.parametrize(("damage", "words"), [("gone", "file is gone"), ("empty", "sessions now|known|no JSON|empty")])
def test_a_lost_session_file_is_one_line(tmp_path: Path, damage: str, words: str) -> None:
    """The stored numbers stay usable; opening says what is wrong with the file."""
    file = _write(tmp_path / "s.jsonl", 2)
    run = _run([file], tmp_path / "run")
    if damage == "gone":
        file.unlink()
    else:
        file.write_text("")

    with pytest.raises(ReadError, match=words):
        browse.open_session(run, "s")
    assert len(series.session_steps(run, "s")) == 3 * 4


def test_a_relative_path_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run made with relative paths is opened from another folder through its recipe."""
    (tmp_path / "work" / "in").mkdir(parents=True)
    _write(tmp_path / "work" / "in" / "s.jsonl", 2)
    monkeypatch.chdir(tmp_path / "work")
    run = _run([Path("in/s.jsonl")], tmp_path / "run")
    monkeypatch.chdir(tmp_path)

    assert 4 == len(browse.open_session(run, "s").lane("recorded").views)


def test_runs_are_found_and_checked(run: Path, tmp_path: Path) -> None:
    """Only whole run folders count; a check names what is missing."""
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "summary.json").write_text("{}")

    assert [run] == browse.find_runs(run.parent)
    assert [] == browse.find_runs(tmp_path / "nowhere")
    with pytest.raises(ReadError, match=r"trials\.parquet"):
        browse.check_run(tmp_path / "half")


def test_thinning_keeps_extremes_and_ends() -> None:
    """A long curve keeps its first and last step, its peak and its deepest point."""
    tokens = [100 + n % 7 for n in range(10_000)]
    tokens[6_543], tokens[7_001] = 99_999, 1
    steps = pd.DataFrame({"policy": "p", "step": range(1, 10_001), "tokens": tokens, "how": "counted", "status": "sent",
                          "estimated_tokens": None, "threshold": None})
    thin = series.curve(steps, ["p"], 200)

    assert len(thin) <= 204
    assert {1, 6_544, 7_002, 10_000} <= set(thin["step"])
    assert list(thin["step"]) == sorted(thin["step"])


def test_marks_tell_planned_recorded_and_ends(run: Path) -> None:
    """Each mark stands at its view's tokens; of too many of one kind an even choice is drawn and all are counted."""
    steps, events = series.session_steps(run, "a"), series.session_events(run, "a")
    found = series.marks(steps, events, POLICIES)

    assert {"planned compaction", "run ends: request stays refused"} == set(found["mark"])
    assert found["tokens"].notna().all()
    many = pd.concat([events[events["kind"] == "full"].head(1)] * 200, ignore_index=True)
    assert series.MOST_MARKS >= len(series.marks(steps, many, POLICIES))
    assert {200} == set(series.marks(steps, many, POLICIES)["of"])


def test_changes_are_events_and_turning_points(run: Path) -> None:
    """The steps to jump to: where either lane acts or the views part or meet."""
    steps = series.session_steps(run, "a")
    first = series.first_difference(steps, POLICIES[1], "full-history")

    assert first in series.changes(steps, POLICIES[1], "full-history")
    assert series.first_difference(steps, "recorded", "full-history") is None
    assert browse.open_session(run, "a").divergence(POLICIES[1]) == first


def test_board_gives_words_intervals_and_levels(run: Path) -> None:
    """Every policy has every headline in words; shares of sessions are per cent; each number has a level."""
    rows = board(load_summary(run))

    assert list(POLICIES) == [r.policy for r in rows]
    assert {c.level for r in rows for c in r.cells} <= {"L0", "L1"}
    assert all(c.value != "" for r in rows for c in r.cells)
    assert ("75%", "+25%", "-1", "–") == (shown("run_ended", 0.75), signed("run_ended", 0.25),
                                          signed("peak_view_tokens", -1.0), shown("peak_view_tokens", None))
    assert "L0" == levels(load_summary(run))["compactions"]
    assert [POLICIES[1]] == [p.policy for p in pair_rows(load_summary(run), "mean_view_tokens")]


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the run."""
    path = tmp_path_factory.mktemp("report") / "deep" / "report.html"
    html.write_html(load_summary(run), path, run)
    return path.read_text(encoding="utf-8")


def test_the_report_opens_offline(report: str) -> None:
    """No script, no handler, no inline style, nothing fetched, and a policy that forbids all of it."""
    seen = _Seen()
    seen.feed(report)
    attributes = {name for _, found in seen.tags for name in found}

    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & {tag for tag, _ in seen.tags}
    assert not {n for n in attributes if n.startswith("on")} | ({"src", "href", "style", "srcset"} & attributes)
    assert "url(" not in report
    assert "@import" not in report
    [policy] = [a["content"] for t, a in seen.tags if t == "meta" and "http-equiv" in a]
    style = re.search("<style>(.*)</style>", report, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" == policy


def test_the_report_shows_the_run(report: str) -> None:
    """Leaderboard, differences, advice, warnings, sessions and curves are in it, names of sessions as text."""
    for text in ("Leaderboard", "Against full-history", "Warnings", "95 % interval", "Sessions", "usable window 1,500",
                 "&lt;img src=x&gt;", "prefers-color-scheme: dark"):
        assert text in report
    assert 4 + 1 <= report.count('class="chart"')
    assert report.count("<polyline") >= 4 * 3


def test_without_a_stored_run_the_report_says_how_to_get_curves(run: Path) -> None:
    """A summary alone gives tables, and a sentence instead of curves."""
    summary = {**load_summary(run), "run": None}

    assert "Curves need a stored run" in html.page(summary)
