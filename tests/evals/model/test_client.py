"""The client against an endpoint that misbehaves: nothing crashes, nothing is paid twice, nothing is lost."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evals.model.asks import Ask
from evals.model.client import Client
from evals.model.config import Models
from evals.model.config import models as load_models
from replay.errors import ConfigError

COST = (100 * 1.0 + 20 * 2.0) / 1_000_000
"""Dollars of one answer at the endpoint's usage and the fixture's prices."""


def _ask(number: int = 0, **more: Any) -> Ask:
    return Ask(model="tiny", prompt=f"question {number}" + " " * 300, max_tokens=50, **more)


def _texts(folder: Path) -> str:
    return "".join(p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_answer_is_billed_and_kept(api: Any, models: Models, endpoint: Any) -> None:
    """Both interfaces give the text and the exact bill; a second client asks nothing and gives the same."""
    models = replace(models, api=api)
    first, second = Client(models), Client(models)

    assert "All right." == first.ask(_ask()).text
    assert COST == pytest.approx(first.bill.usd)
    assert first.ask(_ask()) == second.ask(_ask())
    assert 1 == len(endpoint.requests)
    assert 0 == second.bill.requests


@pytest.mark.parametrize("trouble", [
    {"status": 429, "headers": {"retry-after": "0.01"}}, {"status": 500}, {"status": 503}, {"raw": "{\"choices\": [{"},
    {"raw": "<html>busy</html>"}, {"raw": "null"}, {"raw": "{\"choices\": []}"}, {"raw": "{\"choices\": null}"},
    {"text": "half an answer", "cut": True}], ids=lambda t: str(t)[:40])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_passing_trouble_is_overcome(trouble: Any, api: Any, models: Models, endpoint: Any) -> None:
    """After refusals, server errors, broken bodies and cut connections the answer comes, and is billed once."""
    endpoint.script = [trouble, trouble]
    client = Client(replace(models, api=api))

    assert "All right." == client.ask(_ask()).text
    assert 3 == client.bill.requests == len(endpoint.requests)
    assert COST == pytest.approx(client.bill.usd)


@pytest.mark.parametrize("trouble", [{"status": 429}, {"status": 500}, {"raw": "nonsense"}], ids=str)
def test_lasting_trouble_is_a_reply_with_its_reason_and_is_not_kept(trouble: Any, models: Models, endpoint: Any) -> None:
    """When every attempt fails the reply says why, costs nothing, and the next run asks anew."""
    endpoint.default = lambda _: trouble
    client = Client(replace(models, retries=1))
    reply = client.ask(_ask())

    assert reply.problem in ("unavailable", "bad-answer")
    assert (2, 0.0) == (client.bill.requests, client.bill.usd)
    endpoint.default = lambda _: "There now."
    assert "There now." == Client(models).ask(_ask()).text


def test_a_cut_stream_is_asked_again(models: Models, endpoint: Any) -> None:
    """A stream without its end is no answer, however much of it came."""
    endpoint.script = [{"text": "half an answer", "cut": True}]
    client = Client(replace(models, stream=True))

    assert "All right." == client.ask(_ask()).text
    assert 2 == len(endpoint.requests)
    assert COST == pytest.approx(client.bill.usd)


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_refusal_is_a_result(api: Any, models: Models, endpoint: Any) -> None:
    """A refusal is billed, kept and not asked again."""
    endpoint.default = lambda _: {"refusal": "I would rather not."}
    models = replace(models, api=api)

    assert "refusal" == Client(models).ask(_ask()).problem == Client(models).ask(_ask()).problem
    assert 1 == len(endpoint.requests)


def test_empty_content_is_tried_once_more_and_every_attempt_is_billed(models: Models, endpoint: Any) -> None:
    """The provider bills empty answers too, so the bill has both."""
    endpoint.default = lambda _: {"text": None}
    client = Client(models)

    assert "empty" == client.ask(_ask()).problem
    assert 2 == client.bill.requests
    assert 2 * COST == pytest.approx(client.bill.usd)


@pytest.mark.parametrize(("finish", "problem"), [("tool_calls", None), ("whatever", None), (None, None), ("length", "cut-short"),
                                                 ("content_filter", "refusal")])
def test_finish_reasons_count_only_where_they_say_more_than_the_text(finish: Any, problem: Any, models: Models,
                                                                     endpoint: Any) -> None:
    """A wrong finish reason does not lose an answer; a cut or filtered one is told."""
    endpoint.default = lambda _: {"text": "An answer.", "finish": finish}

    assert problem == Client(models).ask(_ask()).problem


def test_a_missing_usage_is_estimated_and_says_so(models: Models, endpoint: Any) -> None:
    """An endpoint without usage is billed by estimate, never with zero."""
    endpoint.default = lambda _: {"text": "An answer.", "usage": None}
    client = Client(models)
    client.ask(_ask())

    assert client.bill.to_json()["lines"][0]["estimated"]
    assert (client.bill.usd or 0) > 0


def test_a_slow_answer_is_given_up_and_asked_again(models: Models, endpoint: Any) -> None:
    """The timeout holds for each attempt."""
    endpoint.script = [{"text": "late", "delay": 0.5}]

    assert "All right." == Client(replace(models, timeout=0.15)).ask(_ask()).text


@pytest.mark.parametrize("said", [{"status": 400, "code": "context_length_exceeded"}, {"status": 413},
                                  {"status": 400, "message": "This model's maximum context length is 8 tokens"}], ids=str)
def test_a_request_that_is_too_long_says_so(said: Any, models: Models, endpoint: Any) -> None:
    """The three usual ways to say it give one problem, without a second attempt."""
    endpoint.default = lambda _: said

    assert "context-length" == Client(models).ask(_ask()).problem
    assert 1 == len(endpoint.requests)


def test_a_wrong_key_stops_everything_and_is_in_no_message(models: Models, endpoint: Any) -> None:
    """The error is one line without the key, also where the endpoint repeats it."""
    endpoint.default = lambda _: {"status": 401, "message": "bad key test-key-5f2c9d81e7 given"}

    with pytest.raises(ConfigError) as caught:
        Client(models).ask_all([_ask(n) for n in range(20)])
    assert "test-key" not in str(caught.value)
    assert "OPENAI_API_KEY" in str(caught.value)
    assert len(endpoint.requests) <= models.concurrency


def test_the_key_is_in_no_file(models: Models, endpoint: Any) -> None:
    """What the cache keeps holds no key, though every request carried it."""
    Client(models).ask(_ask())

    assert "Bearer test-key-5f2c9d81e7" == endpoint.headers[0]["Authorization"]
    assert "All right." in _texts(models.cache)
    assert "test-key" not in _texts(models.cache)


def test_equal_questions_are_asked_once(models: Models, endpoint: Any) -> None:
    """Forty questions of which four differ are four requests, with the answers in their places."""
    endpoint.default = lambda body: body["messages"][-1]["content"]
    replies = Client(models).ask_all([_ask(n % 4) for n in range(40)])

    assert 4 == len(endpoint.requests)
    assert [f"question {n % 4}" for n in range(40)] == [r.text.strip() for r in replies]


def test_as_many_at_a_time_as_chosen(models: Models, endpoint: Any) -> None:
    """Requests overlap up to the chosen number, and not beyond it."""
    endpoint.default = lambda _: {"text": "slow", "delay": 0.05}
    Client(replace(models, concurrency=6)).ask_all([_ask(n) for n in range(24)])

    assert 6 == endpoint.most_at_once


def test_the_ceiling_is_never_passed(models: Models, endpoint: Any) -> None:
    """The budget stops new requests before it could be passed; what was answered stays and is free in the next run."""
    most = Client(models).bill.tariff.most(_ask()) or 0
    client = Client(replace(models, budget_usd=4 * COST + most))
    replies = client.ask_all([_ask(n) for n in range(30)])
    answered = [r for r in replies if r.problem is None]

    assert "budget" == client.stopped
    assert 4 <= len(answered) == len(endpoint.requests) < 30
    assert (client.bill.usd or 0) <= 4 * COST + most
    assert {"budget"} == {r.problem for r in replies} - {None}
    assert len(answered) == Client(models).estimate([_ask(n) for n in range(30)]).cached


def test_a_budget_that_cannot_be_enough_is_refused_before_anything_is_sent(models: Models, endpoint: Any) -> None:
    """The estimate comes first."""
    with pytest.raises(ConfigError, match="--budget-usd"):
        Client(replace(models, budget_usd=1e-9)).estimate([_ask(n) for n in range(3)])
    assert [] == endpoint.requests


def test_a_budget_needs_a_price(models: Models, endpoint: Any) -> None:
    """Without a known price a ceiling cannot be kept, and that is said."""
    with pytest.raises(ConfigError, match="price_input"):
        Client(replace(models, price_input=None, budget_usd=1.0)).ask(_ask())
    assert [] == endpoint.requests


def test_offline_answers_from_the_cache_alone(models: Models, endpoint: Any) -> None:
    """Known questions are answered, others are told apart as not asked."""
    Client(models).ask(_ask(1))
    replies = Client(replace(models, offline=True)).ask_all([_ask(1), _ask(2)])

    assert [None, "offline"] == [r.problem for r in replies]
    assert 1 == len(endpoint.requests)


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Ctrl-C arrives also where a shell started the tests in the background, with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_ctrl_c_keeps_what_is_done(models: Models, endpoint: Any) -> None:
    """What was answered or under way is kept, the rest is told, and the next run asks only for the rest."""
    seen = threading.Event()

    def answer(_: Any) -> dict[str, Any]:
        if len(endpoint.requests) == 8 and not seen.is_set():
            seen.set()
            _thread.interrupt_main()
        return {"text": "An answer.", "delay": 0.02}

    endpoint.default = answer
    client = Client(models)
    asks = [_ask(n) for n in range(40)]
    replies = client.ask_all(asks)
    answered = sum(r.problem is None for r in replies)

    assert "interrupted" == client.stopped
    assert 8 <= answered == len(endpoint.requests) < 40
    Client(models).ask_all(asks)
    assert 40 == len(endpoint.requests)


def test_a_damaged_cache_entry_is_asked_anew(models: Models, endpoint: Any) -> None:
    """A file that was cut off by a full disk is no answer."""
    Client(models).ask(_ask())
    next(models.cache.rglob("*.json")).write_text('{"request": {', encoding="utf-8")

    assert "All right." == Client(models).ask(_ask()).text
    assert 2 == len(endpoint.requests)


@pytest.mark.parametrize(("line", "said"), [
    ('api_key = "abc"', "environment"), ('base_url = "ollama"', "base_url"), ("concurrency = 0", "concurrency"),
    ('concurrency = "4"', "concurrency"), ("modle = 1", "modle"), ('api = "soap"', "api")])
def test_a_wrong_setting_is_one_clear_line(line: str, said: str, tmp_path: Path) -> None:
    """A file of models says where and what is wrong."""
    file = tmp_path / "models.toml"
    file.write_text(f"[model]\n{line}\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=said):
        load_models(file, {})
