"""Sessions under way: what a policy makes of a growing log is what a replay of the written log makes of it."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.engine import Session
from replay.live import LiveSession
from replay.policy.base import Capacity
from replay.policy.load import policy, preset_names
from replay.policy.summarisers import summariser
from replay.readers import read
from replay.tokens import DEFAULT_TOKENIZER, TokenCounter, tokenizer
from replay.transcript import Transcript, Usage
from replay.view import render
from replay.writers.json_lines import write_lines
from replay.writers.rewindow import records

COUNTER = TokenCounter(tokenizer(DEFAULT_TOKENIZER))
OVERHEAD = 300
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def _live(name: str, window: int) -> LiveSession:
    return LiveSession(policy=policy(name), capacity=Capacity(window=window), summariser=summariser("extractive"),
                       counter=COUNTER, overhead_tokens=OVERHEAD)


def _text(chance: random.Random, words: int) -> str:
    return "\n".join(" ".join(chance.choices(WORDS, k=10)) for _ in range(words // 10))


def _played(live: LiveSession, steps: int, refuse: frozenset[int] = frozenset()) -> list[list[dict]]:
    """Let an agent read and run things; gives what was sent at each step, as the endpoint saw it."""
    chance, sent = random.Random(7), []
    live.thread.add("system", [Text(text="You are an agent.")], "system", time=0.0)
    live.thread.add("user", [Text(text="Fix it. Never touch the tests.")], "human", time=1.0)
    for step in range(1, steps + 1):
        request = live.request()
        if request is not None and step in refuse:
            live.refused()
            request = live.request()
        if request is None:
            break
        sent.append(request.messages)
        usage = Usage(input_uncached=live._sent()[0].counted + OVERHEAD, output=50)
        call = ToolCall(id=f"c{step}", name=("read", "bash")[step % 2], arguments=f'{{"path": "src/f{step % 5}.py"}}')
        live.answered([Text(text=f"Step {step}."), call], usage, time=float(2 * step))
        result = ToolResult(call_id=call.id, name=call.name, text=_text(chance, chance.choice((40, 200, 900))))
        live.thread.add("tool", [result], "tool", time=2.0 * step + 1)
        if step % 12 == 0:
            live.thread.add("user", [Text(text=f"Go on with part {step}.")], "human", time=2.0 * step + 1.5)
    return sent


def _written(live: LiveSession, path: Path) -> Transcript:
    made = Transcript(format="rewindow", session_id="s", path="", main=live.thread.build())
    with path.open("wb") as file:
        write_lines(records(made), file)
    return read(path)[0]


@pytest.mark.parametrize("name", [n for n in preset_names() if n != "codex-remote"])
def test_the_written_log_reads_back_to_what_was_sent(name: str, tmp_path: Path) -> None:
    """Under every preset the recorded lane of the written transcript shows each request message by message."""
    live = _live(name, 9_000)
    sent = _played(live, 40)
    session = Session(_written(live, tmp_path / "s.jsonl"), COUNTER)
    shown = [render(session.log, view.window, "openai") for view in session.recorded.views]

    assert len(sent) >= 4
    assert sent == shown[:len(sent)]


@pytest.mark.parametrize("name", ["decode-adr18:scope=before-step", "mycodeagent", "observation-masking", "pi-1.6", "recent-n"])
def test_a_replay_under_the_same_policy_gives_the_same_views(name: str, tmp_path: Path) -> None:
    """What was decided live, request by request, is what the replay of the whole log decides."""
    live = _live(name, 9_000)
    sent = _played(live, 40)
    session = Session(_written(live, tmp_path / "s.jsonl"), COUNTER)
    lane = session.replay(policy(name), Capacity(window=9_000))

    assert sent == [render(session.log, v.window, "openai") for v in lane.views][:len(sent)]
    assert [(e.kind, e.reason) for e in live.events] == [(e.kind, e.reason) for e in lane.events]


def test_a_refusal_by_the_endpoint_sets_off_the_reactive_rule() -> None:
    """Where the endpoint refuses a request although there seemed to be room, the policy compacts and the run goes on."""
    live = _live("pi-1.6:tail_tokens=2000", 60_000)
    sent = _played(live, 36, refuse=frozenset({30}))

    assert 36 == len(sent)
    assert ["refused", "full", "retried"] == [e.kind for e in live.events if e.step == 30]
    assert len(sent[29]) < len(sent[28])


def test_an_unchanged_retry_is_imitated() -> None:
    """MyCodeAgent sends a refused request twice again before it changes anything."""
    live = _live("mycodeagent", 200_000)
    _played(live, 5)
    first = live.request()
    live.refused()
    second = live.request()
    for _ in range(2):
        live.refused()

    assert first == second
    assert live.request() is None


def test_a_run_ends_where_nothing_fits_any_more() -> None:
    """Full history has no way out: the request beyond the window is not made, and the log says why."""
    live = _live("full-history", 9_000)
    sent = _played(live, 60)
    last = live.thread.steps[-1]

    assert live.ended
    assert len(sent) + 1 == last.number
    assert (None, "no_reactive_rule") == (last.response, last.error)


def test_a_request_must_be_open_to_be_answered() -> None:
    """An answer without a request is a mistake of the caller, said at once."""
    with pytest.raises(ValueError, match="no request is open"):
        _live("full-history", 1000).answered([], None)


def test_writing_twice_gives_the_same_bytes() -> None:
    """The same run gives the same log."""
    made = []
    for _ in range(2):
        live, out = _live("decode-adr18:scope=before-step", 9_000), io.BytesIO()
        _played(live, 30)
        write_lines(records(Transcript(format="rewindow", session_id="s", path="", main=live.thread.build())), out)
        made.append(out.getvalue())

    assert made[0] == made[1]
