"""`rewindow judge`: claims, grounding, pairs in both orders, and the judge against people's labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.model.calibration import calibrate, corrected


def call(sessions: Path, models_file: Path, *more: str | Path) -> list[str | Path]:
    return ["judge", sessions, "-p", "codex", "-p", "claude-code", "--window", "8000", "--models", models_file,
            "--places", "1", "--json", *more]


def judge(better: str) -> Any:
    """A judge who finds two of four claims true, one need of two contradicted, and always the same seat better."""
    def answer(body: dict[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        if "atomic claims" in asked:
            return json.dumps({"claims": [{"claim": str(n), "supported": n < 2} for n in range(4)]})
        if "List what each needed" in asked:
            return json.dumps({"needs": [{"need": "a", "verdict": "supported"}, {"need": "b", "verdict": "contradicted"}]})
        return json.dumps({"better": better})

    return answer


def measured(summary: dict[str, Any], name: str) -> set[float | None]:
    return {t["metrics"][name] for t in summary["trials"]}


def test_shares_are_of_the_judges_claims_and_needs(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """Two of four claims, one of two needs; the judge that always likes seat A flips with the order: all ties."""
    endpoint.default = judge("A")
    code, summary, _ = run(*call(sessions, models_file))

    assert 0 == code
    assert {0.5} == measured(summary, "summary_faithfulness")
    assert {4.0} == measured(summary, "summary_claims")
    assert {0.5} == measured(summary, "summary_grounding") == measured(summary, "summary_contradictions")
    assert {0.5} == measured(summary, "summary_preferred")
    assert {1.0} == measured(summary, "judge_flips")


def test_names_of_policies_reach_no_judge(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """The judge is blind; each pair is asked in both orders."""
    endpoint.default = judge("tie")
    run(*call(sessions, models_file))
    pairs = [r["messages"][-1]["content"] for r in endpoint.requests if "Summary B" in r["messages"][-1]["content"]]

    assert 2 * 2 == len(pairs)
    assert not [p for p in pairs if "claude-code" in p or "codex" in p]


@pytest.mark.parametrize("trouble", ["no JSON", {"refusal": "No."}, '{"claims": [{"supp', '{"claims": 3, "better": 7}'])
def test_answers_that_cannot_be_read_are_missing(trouble: Any, sessions: Path, models_file: Path, endpoint: Any,
                                                 run: Any) -> None:
    """Null with a reason, never zero."""
    endpoint.default = lambda _: trouble
    code, summary, _ = run(*call(sessions, models_file))

    assert 0 == code
    assert {None} == measured(summary, "summary_faithfulness") == measured(summary, "summary_preferred")
    assert all(t["missing"]["summary_faithfulness"] for t in summary["trials"])


def test_labels_of_people_correct_the_judge(sessions: Path, models_file: Path, endpoint: Any, run: Any,
                                            tmp_path: Path) -> None:
    """Labels are matched by the fingerprint of the request; a wrong line is one clear error."""
    endpoint.default = judge("A")
    run(*call(sessions, models_file, "--out", tmp_path / "a"))
    rows = [json.loads(line) for line in (tmp_path / "a" / "answers.jsonl").read_text().splitlines()]
    faithful = [r["request"] for r in rows if r["role"] == "faithful"]
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps({"request": r, "label": True}) + "\n" for r in faithful), encoding="utf-8")
    _, summary, _ = run(*call(sessions, models_file, "--labels", file))
    file.write_text('{"request": 3}\n', encoding="utf-8")
    code, _, said = run(*call(sessions, models_file, "--labels", file))

    found = summary["studies"]["calibration"]["faithful"]
    assert (len(set(faithful)), 1.0, None) == (found["n"], found["sensitivity"], found["corrected"])
    assert 2 == code
    assert "labels.jsonl:1" in said


def test_rates_are_corrected_by_what_people_say() -> None:
    """Observed .7 with sensitivity .9 and specificity .8 is .714; a judge who hardly tells them apart gives none."""
    assert 0.714 == pytest.approx(corrected(0.7, 0.9, 0.8)[0], abs=0.001)
    assert corrected(0.7, 0.6, 0.6)[0] is None


def test_agreement_with_people_is_beyond_chance() -> None:
    """Hand-computed: 4 of 5 alike, by chance .52."""
    judged = {"a": True, "b": True, "c": True, "d": False, "e": False}
    found = calibrate(judged, {**judged, "c": False})

    assert (0.8 - 0.48) / 0.52 == pytest.approx(found.kappa)
    assert (1.0, 2 / 3) == (found.sensitivity, pytest.approx(found.specificity))


def test_summaries_that_are_judged_are_on_the_bill(sessions: Path, models_file: Path, endpoint: Any, run: Any) -> None:
    """The model that writes and the model that judges are billed apart, together for every request."""
    endpoint.default = judge("tie")
    _, summary, _ = run(*call(sessions, models_file, "--summariser", "llm:writer"))
    bills = [summary["studies"][name]["requests"] for name in ("bill", "summaries_bill")]

    assert len(endpoint.requests) == sum(bills)
    assert all(bills)
    assert {"writer", "tiny"} == {r["model"] for r in endpoint.requests}
