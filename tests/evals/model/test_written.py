"""`compare --summariser llm:MODEL`: summaries of an endpoint in the harness's sections, kept, counted and paid once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def call(sessions: Path, models_file: Path, *more: str | Path) -> list[str | Path]:
    return ["compare", sessions, "-p", "full-history", "-p", "codex", "--window", "8000", "--summariser",
            "llm:tiny", "--models", models_file, "--json", *more]


def test_summaries_are_written_once_and_kept_in_the_run(sessions: Path, models_file: Path, endpoint: Any,
                                                        tmp_path: Path, run: Any) -> None:
    """The run holds each summary with its request; a second run makes no request and gives the same trials."""
    code, first, _ = run(*call(sessions, models_file, "--out", tmp_path / "a"))
    asked = len(endpoint.requests)
    _, second, _ = run(*call(sessions, models_file, "--out", tmp_path / "b"))
    kept = [json.loads(line) for line in (tmp_path / "a" / "summaries.jsonl").read_text().splitlines()]

    assert 0 == code
    assert asked == len(endpoint.requests) == len(kept) >= 4
    assert {"All right."} == {k["text"] for k in kept}
    assert asked == len({k["request"] for k in kept})
    assert asked * 140e-6 == pytest.approx(first["model"]["bill"]["usd"])
    assert (0, asked) == (second["model"]["bill"]["requests"], len(endpoint.requests))
    assert first["trials"] == second["trials"]
    assert all(t["ok"] for t in first["trials"])
    assert "llm:tiny" == first["summariser"]


def test_the_sections_are_those_of_the_imitated_harness(sessions: Path, models_file: Path, endpoint: Any,
                                                        run: Any) -> None:
    """Each preset asks for its own sections; a later summary is given the earlier one."""
    run(*call(sessions, models_file, "-p", "claude-code", "-p", "mycodeagent"))
    prompts = [r["messages"][-1]["content"] for r in endpoint.requests]

    assert any("## Critical data" in p for p in prompts)
    assert any("## All user messages" in p for p in prompts)
    assert any("[earlier summary]" in p and "All right." in p for p in prompts)


def test_what_the_model_does_not_write_is_a_failed_trial_with_its_reason(sessions: Path, models_file: Path, endpoint: Any,
                                                                          run: Any) -> None:
    """A refusal fails the trials that needed the summary, not the run."""
    endpoint.default = lambda _: {"refusal": "I would rather not."}
    code, summary, _ = run(*call(sessions, models_file))
    failed = [t for t in summary["trials"] if not t["ok"]]

    assert 0 == code
    assert {"codex"} == {t["policy"] for t in failed}
    assert all("refusal" in t["error"] for t in failed)
    assert any("I would rather not." in w for w in summary["warnings"])


def test_too_long_inputs_are_made_shorter(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """When the endpoint says that an input is too long, a shorter one is sent."""
    endpoint.default = lambda body: ({"status": 400, "code": "context_length_exceeded"}
                                     if len(body["messages"][-1]["content"]) > 9_000 else "Short.")
    _, summary, _ = run(*call(sessions, models_file))

    assert all(t["ok"] for t in summary["trials"])
    assert any("characters left out" in r["messages"][-1]["content"] for r in endpoint.requests)


def test_offline_asks_nothing(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """Without kept answers --offline gives failed trials and no request."""
    _, summary, _ = run(*call(sessions, models_file, "--offline"))

    assert [] == endpoint.requests
    assert {"codex"} == {t["policy"] for t in summary["trials"] if not t["ok"]}


def test_a_budget_that_cannot_be_enough_sends_nothing(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """The estimate comes first, and its refusal is one line."""
    code, _, said = run(*call(sessions, models_file, "--budget-usd", "0.000001"))

    assert (2, []) == (code, endpoint.requests)
    assert "--budget-usd" in said


def test_redact_replaces_secrets_before_they_are_sent(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """A key in the session reaches neither the endpoint nor the kept answers."""
    secret = "sk-ant-abcdefghijklmnop1234567890"
    file = sessions / "s0.jsonl"
    file.write_text(file.read_text().replace("Please look at file 0.", f"My key is {secret}."), encoding="utf-8")
    run(*call(sessions, models_file, "--redact"))

    assert endpoint.requests
    assert secret not in json.dumps(endpoint.requests)
    assert not any(secret in p.read_text() for p in (models_file.parent / "answers").rglob("*.json"))
