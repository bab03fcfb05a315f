"""`rewindow probe`: questions about what was dropped, answered from the view, the whole history, and nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evals.model.probes import GAP, holds


def call(sessions: Path, models_file: Path, *more: str | Path) -> list[str | Path]:
    return ["probe", sessions, "-p", "full-history", "-p", "codex", "--window", "8000", "--models", models_file,
            "--probes", "5", "--json", *more]


def looks_it_up(body: dict[str, Any]) -> str:
    """Finds the line in the record that it is given, and answers with what stands in the gap."""
    text = body["messages"][-1]["content"]
    line = re.search(rf"left out:\n(.*{GAP}.*)\n", text)
    pattern = ".+".join(re.escape(part) for part in line[1].split(GAP)) if line else "$^"
    record = text[:text.rindex("This line stands")]
    found = re.search(pattern.replace(".+", "([^\\s\"]+)", 1), record) if line else None
    return found[1].strip(".") if found else "not in context"


def measured(summary: dict[str, Any], policy: str, name: str) -> list[float | None]:
    return [t["metrics"][name] for t in summary["trials"] if t["policy"] == policy]


def test_recall_is_of_what_the_view_still_shows(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """A model that can look things up knows all with the whole history, less with the view, nothing without."""
    endpoint.default = looks_it_up
    code, summary, _ = run(*call(sessions, models_file))

    assert 0 == code
    assert [1.0, 1.0] == measured(summary, "codex", "probe_recall_full")
    assert [0.0, 0.0] == measured(summary, "codex", "probe_recall_none")
    assert all(v < 0.5 for v in measured(summary, "codex", "probe_recall"))
    assert [None, None] == measured(summary, "full-history", "probe_recall")
    assert {"L2"} == {t["level"]["probe_recall"] for t in summary["trials"]}


def test_questions_quote_dropped_lines_without_their_answer(sessions: Path, models_file: Path, endpoint: Any, run: Any,
                                                            tmp_path: Path) -> None:
    """The question asked without a record never holds its answer; a second run asks nothing."""
    run(*call(sessions, models_file, "--out", tmp_path / "a"))
    asked = len(endpoint.requests)
    _, second, _ = run(*call(sessions, models_file))
    kept = [json.loads(line) for line in (tmp_path / "a" / "answers.jsonl").read_text().splitlines()]
    alone = [r["messages"][-1]["content"] for r in endpoint.requests if "(no record)" in r["messages"][-1]["content"]]

    assert asked == len(endpoint.requests)
    assert 0 == second["studies"]["bill"]["requests"]
    assert {"view", "full", "none"} == {k["role"] for k in kept}
    assert {"decision", "continuation"} <= {k["group"] for k in kept}
    golds = {k["gold"] for k in kept}
    assert golds
    assert not [a for a in alone if GAP not in a]


@pytest.mark.parametrize("trouble", [{"refusal": "No."}, {"text": ""}, {"status": 400, "code": "context_length_exceeded"}],
                         ids=str)
def test_nothing_crashes_without_answers(trouble: Any, sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """Refusals and empty answers know nothing; requests that are too long are missing."""
    endpoint.default = lambda _: trouble
    code, summary, _ = run(*call(sessions, models_file))

    assert 0 == code
    assert {None if "status" in trouble else 0.0} == set(measured(summary, "codex", "probe_recall"))


@pytest.mark.parametrize(("answer", "gold", "expected"), [
    ("It is src/a.py.", "src/a.py", True), ("src/a.pyc", "src/a.py", False), ("7201", "720", False),
    ("ValueError", "valueerror", True), ("not in context", "x_y", False)])
def test_an_answer_holds_its_token_between_boundaries(answer: str, gold: str, expected: bool) -> None:
    """Part of a longer token is no answer."""
    assert expected == holds(answer, gold)
