"""`rewindow agree`: next actions from each view, with the references of the same model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evals.model.agree import similarity
from evals.store import load_summary, load_table


def call(sessions: Path, models_file: Path, *more: str | Path) -> list[str | Path]:
    return ["agree", sessions, "-p", "full-history", "-p", "codex", "--window", "8000", "--models", models_file,
            "--steps", "6", "--json", *more]


def remembers(body: dict[str, Any]) -> str:
    """Reads the file that was asked for last where the view shows how all the others went; else a wrong one."""
    seen = re.findall(r"Please look at file (\d+)", body["messages"][-1]["content"])
    stem = re.search(r"src/(s\d)_", body["messages"][-1]["content"])
    fine = len(re.findall(r"File \d+ is fine", body["messages"][-1]["content"]))
    path = f"src/{stem[1] if stem else 's0'}_{seen[-1] if fine >= int(seen[-1]) else 99}.py"
    return f"I would call\n```json\n{json.dumps({'tool': 'read', 'arguments': {'path': path}})}\n```"


def measured(summary: dict[str, Any], policy: str, name: str) -> list[float | None]:
    return [t["metrics"][name] for t in summary["trials"] if t["policy"] == policy]


def test_a_view_that_lost_what_is_needed_agrees_less(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """The whole history has no drop, the compacted view has one; the model agrees with itself."""
    endpoint.default = remembers
    code, summary, _ = run(*call(sessions, models_file))

    assert 0 == code
    assert [0.0, 0.0] == measured(summary, "full-history", "next_action_drop")
    assert all(value > 0.1 for value in measured(summary, "codex", "next_action_drop"))
    assert [1.0, 1.0] == measured(summary, "codex", "next_action_self")
    assert [6, 6] == measured(summary, "codex", "next_action_steps")
    assert all(t["level"]["next_action_drop"] == "L2" for t in summary["trials"])
    assert "next_action_drop" in {r["metric"] for r in summary["leaderboard"]}


def test_what_was_asked_is_kept_and_a_second_run_asks_nothing(sessions: Path, models_file: Path, endpoint: Any,
                                                              run: Any, tmp_path: Path) -> None:
    """The run holds the answers with their requests and the numbers as columns; equal views were asked once."""
    endpoint.default = remembers
    _, first, _ = run(*call(sessions, models_file, "--out", tmp_path / "a"))
    asked = len(endpoint.requests)
    _, second, _ = run(*call(sessions, models_file, "--out", tmp_path / "b"))
    kept = [json.loads(line) for line in (tmp_path / "a" / "answers.jsonl").read_text().splitlines()]

    assert asked == len(endpoint.requests) == len({k["request"] for k in kept})
    assert 2 * 2 * 6 * 3 == len(kept)
    assert asked * 140e-6 == pytest.approx(first["studies"]["bill"]["usd"])
    assert 0 == second["studies"]["bill"]["requests"]
    assert first["trials"] == second["trials"] == load_summary(tmp_path / "a")["trials"]
    assert "next_action_agreement" in load_table(tmp_path / "a", "trials").columns


@pytest.mark.parametrize("trouble", [{"refusal": "No."}, {"text": ""}, {"text": "x", "finish": "length"},
                                     {"status": 400, "code": "context_length_exceeded"}], ids=str)
def test_questions_without_an_answer_are_missing_with_their_reason(trouble: Any, sessions: Path, models_file: Path,
                                                                   endpoint: Any, run: Any) -> None:
    """Nothing crashes, the number is null with a reason, and the summary says how many have none."""
    endpoint.default = lambda _: trouble
    code, summary, _ = run(*call(sessions, models_file))

    assert 0 == code
    assert [None, None] == measured(summary, "codex", "next_action_drop")
    assert [6.0, 6.0] == measured(summary, "codex", "next_action_unanswered")
    assert any("questions have no answer" in w for w in summary["warnings"])


def test_an_answer_that_is_no_call_agrees_with_nothing(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """Prose and broken JSON are the model's failure: zero, not missing."""
    endpoint.script = ["I am not sure.", '{"tool": "read", "arguments": {'] * 200
    _, summary, _ = run(*call(sessions, models_file))

    assert [0.0, 0.0] == measured(summary, "codex", "next_action_agreement")


def test_another_model_is_asked_about_the_same_steps(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """A swapped model has its own numbers and its own lines on the bill."""
    endpoint.default = lambda body: remembers(body) if body["model"] == "big" else "no idea"
    _, summary, _ = run(*call(sessions, models_file, "--swap", "big"))

    assert [0.0, 0.0] == measured(summary, "full-history", "next_action_agreement")
    assert all(v == 1.0 for v in measured(summary, "full-history", "next_action_agreement@big"))
    assert {"tiny", "big"} == {line["model"] for line in summary["studies"]["bill"]["lines"]}


def test_similarity_is_of_tool_target_and_arguments() -> None:
    """Hand-computed: same tool and target, two of three words; and nothing in common."""
    one, two = ("Read", {"path": "a.py", "limit": "5 lines"}), ("read", {"path": "a.py", "limit": "5"})

    assert (1 + 1 + 2 / 3) / 3 == pytest.approx(similarity(one, two))
    assert 0 == similarity(("bash", {"command": "ls"}), ("read", {"path": "a"}))


def test_the_likelihood_of_recorded_actions_shifts(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """-1 nat a token behind the whole history and -3 behind a summary is a shift of 2; without log-probabilities a reason."""
    endpoint.default = lambda body: ({"logprob": -3.0 if "summary" in body["prompt"].lower() else -1.0}
                                     if "prompt" in body else "no idea")
    _, summary, _ = run(*call(sessions, models_file, "--likelihood"))
    endpoint.default = lambda body: {"logprobs": False} if "prompt" in body else "no idea"
    _, without, _ = run(*call(sessions, models_file, "--likelihood", "--model", "other"))

    assert [0.0, 0.0] == measured(summary, "full-history", "likelihood_shift")
    assert all(0 < value <= 2 for value in measured(summary, "codex", "likelihood_shift"))
    assert [None, None] == measured(without, "codex", "likelihood_shift")
