"""Many sessions, policies and sampled steps: requests at the chosen concurrency, an exact bill, nothing asked twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

POLICIES = ("full-history", "codex", "claude-code", "mycodeagent")


def call(folder: Path, models_file: Path, steps: int) -> list[str | Path]:
    policies = [word for p in POLICIES for word in ("-p", p)]
    return ["agree", folder, *policies, "--window", "16000", "--models", models_file, "--steps", str(steps),
            "--concurrency", "8", "--json"]


@pytest.mark.parametrize(("count", "steps"), [(3, 4), pytest.param(50, 20, marks=pytest.mark.nightly)])
def test_concurrency_bill_and_second_run(count: int, steps: int, many: Any, models_file: Path, endpoint: Any,
                                         run: Any) -> None:
    """Eight requests at a time and no more; the bill is what the endpoint charged; the second run makes no request."""
    folder = many(count)
    endpoint.default = lambda _: {"text": '{"tool": "read", "arguments": {}}', "delay": 0.02}
    code, first, _ = run(*call(folder, models_file, steps))
    asked = len(endpoint.requests)
    _, second, _ = run(*call(folder, models_file, steps))

    assert 0 == code
    assert count * 4 == len(first["trials"])
    assert {steps} == {t["metrics"]["next_action_steps"] for t in first["trials"]}
    assert 8 == endpoint.most_at_once
    assert asked * 140e-6 == pytest.approx(first["studies"]["bill"]["usd"])
    assert asked == first["studies"]["bill"]["requests"] == len(endpoint.requests)
    assert 0 == second["studies"]["bill"]["requests"]
    assert first["trials"] == second["trials"]
