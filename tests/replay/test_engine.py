"""Rules that hold for every history under every policy, checked on random ones against a second reckoning."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.blocks import Block, Image, Opaque, Reasoning, ToolCall, ToolResult
from replay.engine import Lane, Session, View, divergence
from replay.invariants import pairing
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Message, RecordedCompaction, Transcript
from replay.view import lineage, shown_messages
from replay.window import Inserted, Item, Span

Move = tuple[str, int, list[str]]
COUNTER = FixedCounter(())
NARROW = Capacity(window=150)
"""One token a character of text and results."""


def session_of(transcript: Transcript) -> Session:
    """The session counted by characters."""
    return Session(transcript, COUNTER)


def rendered(session: Session, view: View) -> list[Message]:
    """The messages of a view."""
    return [s.message for s in shown_messages(session.log, view.window)]


def recorded_micro(script: Script, *elided: int, placeholder: str = "[gone]") -> Script:
    """A recorded blanking of results at this place."""
    script.thread.compactions.append(RecordedCompaction(position=len(script.thread.messages), kind="micro",
                                                        elided=elided, placeholder=placeholder))
    return script


WORDS = st.text(alphabet="ab \n", min_size=1, max_size=24)
LOG_KINDS = ["round"] * 6 + ["user"] * 4 + ["say"] * 2 + ["nudge", "system", "fail", "unanswered"]
MARKER_KINDS = ["compact", "compact", "micro", "micro", "clear"]


def moves_of(kinds: list[str]) -> st.SearchStrategy[list[Move]]:
    """Histories of random moves: what happens, a number, and texts."""
    move = st.tuples(st.sampled_from(kinds), st.integers(0, 6), st.lists(WORDS, min_size=1, max_size=3))
    return st.lists(move, min_size=3, max_size=24)


HISTORIES = moves_of(LOG_KINDS * 2 + MARKER_KINDS)
PLAIN = moves_of(LOG_KINDS)


def played(moves: list[Move]) -> Script:
    """A script from random moves, with a first prompt and a last answer."""
    script = Script().user("start")
    for move in moves:
        _play(script, *move)
    return script.say("end")


def _play(script: Script, kind: str, number: int, words: list[str]) -> None:
    length = len(script.thread.messages)
    if kind in ("user", "nudge"):
        script.user(words[0], nudge=kind == "nudge")
    elif kind in ("say", "system"):
        getattr(script, kind)(words[0])
    elif kind == "fail":
        script.thread.fail(words[0])
    elif kind == "round":
        script.call("Read", text="t", count=len(words))
        for position, text in enumerate(words):
            script.result(text, call=position)
    elif kind == "unanswered":
        script.call("Bash", text=words[0])
    elif kind == "clear":
        script.compacted(kind="clear")
    elif kind == "micro":
        recorded_micro(script, *range(number, length), placeholder="[1]" if number % 2 else "[number two]")
    else:
        script.compacted(summary_message("S" * number), *range(_cut(script, number), length), summary="S")


def _cut(script: Script, number: int) -> int:
    """A place some messages back where no call is parted from its result."""
    place = max(0, len(script.thread.messages) - number)
    while place and script.thread.messages[place:] and script.thread.messages[place].role == "tool":
        place -= 1
    return place


ESTIMATOR = {"rounding": "floor-each", "unit": "request", "divisor": 2}
EXACT = {"rounding": "floor-total", "divisor": 1}
CUTS = st.one_of(
    st.builds(lambda n: {"use": "rounds", "rounds": n}, st.integers(0, 3)),
    st.builds(lambda n: {"use": "messages", "messages": n}, st.integers(0, 5)),
    st.just({"use": "nothing"}),
    st.builds(lambda n, b, e: {"use": "tokens", "tail_tokens": n, "boundary": b, "estimator": e}, st.integers(0, 60),
              st.sampled_from(["turn", "response-or-prompt"]), st.sampled_from([{}, ESTIMATOR])))
RULES = st.one_of(
    st.builds(lambda n, t: {"use": "keep-newest", "keep": n, "placeholder": {"text": "[-]", "tools": t}},
              st.integers(0, 3), st.sampled_from([[], ["Read"]])),
    st.builds(lambda n: {"use": "elide-before-tail", "cut": {"tail_tokens": n}, "placeholder": {"text": "[elided]"}},
              st.integers(0, 20)))
TRIGGERS = st.one_of(
    st.just({"use": "always"}), st.builds(lambda n: {"use": "message-count", "more_than": n}, st.integers(0, 8)),
    st.builds(lambda n, m: {"use": "threshold", "tokens": n, "minimum_messages": m}, st.integers(1, 200),
              st.integers(0, 4)))
MEASURES = st.sampled_from([
    {"use": "estimate", "estimator": EXACT}, {"use": "estimate", "pending": True, "estimator": EXACT},
    {"use": "report", "trailing": True}, {"use": "report", "after_change": "estimate", "estimator": ESTIMATOR},
    {"use": "report", "fields": ["input", "output"], "sum_over": "run", "after_change": "unknown"}, {"use": "larger"}])


@st.composite
def stages(draw: Any, number: int) -> dict[str, Any]:
    """A stage of random parts."""
    rule = {"cut": draw(CUTS)} if draw(st.booleans()) else {"tool_results": draw(RULES)}
    return {"name": f"stage{number}", "scope": draw(st.sampled_from(["before-step", "after-turn"])), **rule,
            "measure": draw(MEASURES), "trigger": draw(TRIGGERS), "merge_previous": draw(st.booleans()),
            "summary_input": draw(st.sampled_from(["cut", "view"])), "skip_if_current": draw(st.booleans()),
            "excludes_later": draw(st.booleans()),
            "replacement": {"role": draw(st.sampled_from(["user", "system", "assistant"])), "frame": "F ",
                            "position": draw(st.sampled_from(["head", "last"]))}}


@st.composite
def policies(draw: Any) -> Policy:
    """A policy of one to three random stages."""
    made = [draw(stages(n)) for n in range(draw(st.integers(1, 3)))]
    table: dict[str, Any] = {"name": "random", "stages": made}
    if draw(st.booleans()):
        table["layers"] = [{"name": "prompt", "text": "You are."}, {"name": "tools", "tokens": 7}]
    if draw(st.booleans()):
        table["reinjection"] = {"use": "session-memory", "enabled": True, "chars": 60}
    if any("cut" in stage for stage in made) and draw(st.booleans()):
        scope = draw(st.sampled_from(["step", "run", "session"]))
        table["reactive"] = {"use": "force-stage", "attempts": 2, "scope": scope}
    return policy_from(table)


def lane_of(moves: list[Move], chosen: Policy, summariser: str = "empty") -> tuple[Session, Lane]:
    """The lane of a policy over a history in a window that some views exceed."""
    session = session_of(played(moves).build())
    return session, session.replay(chosen, NARROW, summariser)


def ids_of(session: Session) -> dict[str, int]:
    """The order of the first appearance of call ids in a log."""
    order: dict[str, int] = {}
    for message in session.log.messages:
        for block in message.blocks:
            if isinstance(block, (ToolCall, ToolResult)):
                order.setdefault(block.id if isinstance(block, ToolCall) else block.call_id, len(order))
    return order


def plain_block(block: Block, order: dict[str, int]) -> list[Any]:
    """A block as canonical data, written down a second time."""
    if isinstance(block, ToolCall):
        return ["call", order[block.id], block.name, orjson.dumps(block.parsed, option=orjson.OPT_SORT_KEYS).decode()]
    if isinstance(block, ToolResult):
        return ["result", order[block.call_id], block.text, [i.sha256 for i in block.images]]
    if isinstance(block, Image):
        return ["image", block.mime, block.sha256]
    if isinstance(block, Opaque):
        return ["opaque", block.label, block.size_bytes]
    return ["reasoning" if isinstance(block, Reasoning) else "text", block.text]


def chain_of(messages: list[Message], order: dict[str, int]) -> list[bytes]:
    """Every value of the prefix chain over messages, from the empty prefix on."""
    chain = [hashlib.sha256(b"rewindow view chain 1").digest()]
    for message in messages:
        data = orjson.dumps([message.role, [plain_block(b, order) for b in message.blocks]])
        chain.append(hashlib.sha256(chain[-1] + hashlib.sha256(data).digest()).digest())
    return chain


def size_of(item: Item | None, message: Message) -> int:
    """Counted tokens of a rendered message; a layer may state its own size."""
    modelled = item.tokens if isinstance(item, Inserted) else None
    return len(message.text) if modelled is None else modelled


def sized(session: Session, view: View) -> list[tuple[Message, int]]:
    """The messages of a view with their sizes, one by one."""
    items: list[Item | None] = []
    for item in view.window.items:
        items += [item] if isinstance(item, Inserted) else [None] * (item.stop - item.start)
    return [(m, size_of(i, m)) for i, m in zip(items, rendered(session, view), strict=True)]


RUNS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RUNS
@given(HISTORIES, policies())
def test_views_pair_calls_and_results(moves: list[Move], chosen: Policy) -> None:
    """No policy breaks a pair of call and result that the file itself does not break."""
    session, lane = lane_of(moves, chosen)
    own = {(v.fault, v.call_id) for v in pairing(session.log.messages)}
    found = {(v.fault, v.call_id) for view in lane.views for v in pairing(rendered(session, view))}

    assert set() == found - own


@RUNS
@given(HISTORIES, policies(), st.sampled_from(["extractive", "empty", "recorded", "length-model"]))
def test_same_input_gives_the_same_lane(moves: list[Move], chosen: Policy, summariser: str) -> None:
    """Replaying twice gives the same views, events and end."""
    assert lane_of(moves, chosen, summariser)[1] == lane_of(moves, chosen, summariser)[1]


@RUNS
@given(HISTORIES, policies())
def test_fingerprints_are_those_of_the_rendered_messages(moves: list[Move], chosen: Policy) -> None:
    """Fingerprints from what changed equal those of the whole view, layers left out."""
    session, lane = lane_of(moves, chosen)
    layers, order = len(chosen.layers), ids_of(session)

    for made in (lane, session.recorded):
        skipped = layers if made is lane else 0
        for view in made.views:
            assert chain_of(rendered(session, view)[skipped:], order)[-1] == view.print.fingerprint


@RUNS
@given(HISTORIES, policies())
def test_sizes_are_sums_over_the_rendered_messages(moves: list[Move], chosen: Policy) -> None:
    """The size of a view, and its sizes by class, are those of its messages one by one."""
    session, lane = lane_of(moves, chosen)

    for view in (*lane.views, *session.recorded.views):
        assert sum(size for _, size in sized(session, view)) == view.counted
        assert view.counted == sum(session.log.by_class(view.window).values())
        assert len(sized(session, view)) == view.print.messages


@RUNS
@given(HISTORIES, policies())
def test_common_prefix_is_the_real_one(moves: list[Move], chosen: Policy) -> None:
    """Messages and tokens shared with the view before, found from what changed, equal a comparison of both views."""
    session, lane = lane_of(moves, chosen)
    order, before = ids_of(session), None

    for view in lane.views:
        messages = sized(session, view)
        chain = chain_of([m for m, _ in messages], order)
        same = -1 if before is None else sum(a == b for a, b in zip(before, chain, strict=False)) - 1
        assert max(0, same) == view.print.common_messages
        assert sum(size for _, size in messages[:max(0, same)]) == view.print.common_tokens
        before = chain


@RUNS
@given(HISTORIES, HISTORIES, policies())
def test_later_messages_change_no_earlier_view(moves: list[Move], more: list[Move],
                                               chosen: Policy) -> None:
    """What is appended to a history leaves every earlier fingerprint and figure as it was."""
    script = played(moves)
    short = session_of(script.build())
    for move in more:
        _play(script, *move)
    long = session_of(script.say("later").build())
    first, second = (s.replay(chosen, NARROW).views for s in (short, long))

    assert [(v.fingerprint, v.figure.tokens, v.status) for v in first] == [
        (v.fingerprint, v.figure.tokens, v.status) for v in second[:len(first)]]


def renamed(transcript: Transcript) -> Transcript:
    """The same session with other call ids of the same length."""
    return replace(transcript, main=replace(transcript.main, messages=tuple(
        replace(m, blocks=tuple(_renamed(b) for b in m.blocks)) for m in transcript.messages)))


def _renamed(block: Block) -> Block:
    if isinstance(block, ToolCall):
        return replace(block, id=block.id[::-1])
    return replace(block, call_id=block.call_id[::-1]) if isinstance(block, ToolResult) else block


@RUNS
@given(HISTORIES, st.sampled_from(["full-history", "mycodeagent", "decode", "decode-adr18"]))
def test_names_of_ids_do_not_matter(moves: list[Move], name: str) -> None:
    """Renaming every call id changes no fingerprint."""
    plain = played(moves).build()
    first, second = (session_of(t).replay(policy(name), Capacity(window=60)) for t in (plain, renamed(plain)))

    assert [v.fingerprint for v in first.views] == [v.fingerprint for v in second.views]


@RUNS
@given(PLAIN)
def test_full_history_leaves_what_fits_untouched(moves: list[Move]) -> None:
    """A session that was never compacted and fits is shown as it was sent, at every step."""
    session = session_of(played(moves).build())
    lane = session.replay(policy("full-history"), Capacity(window=10**6))

    assert () == lane.events
    assert None is divergence(lane, session.recorded)
    assert [(Span(0, s.start),) for s in session.log.steps] == [v.window.items for v in lane.views]
    assert {()} == {v.window.marks for v in lane.views}


@RUNS
@given(HISTORIES, policies())
def test_every_log_message_has_one_fate(moves: list[Move], chosen: Policy) -> None:
    """Kept, blanked, summarised and dropped messages are together the log so far, each once."""
    session, lane = lane_of(moves, chosen)

    for view in lane.views:
        fate = lineage(view, session.log)
        assert list(range(view.window.end)) == sorted(
            [*fate["kept"], *fate["elided"], *fate["summarised"], *fate["dropped"]])
        assert len(rendered(session, view)) == len(fate["kept"]) + len(fate["elided"]) + len(fate["injected"])


@RUNS
@given(HISTORIES, policies())
def test_system_messages_stay(moves: list[Move], chosen: Policy) -> None:
    """No policy drops a system message of the log, unless a person wiped everything."""
    session, lane = lane_of(moves, chosen)
    wiped = max((c.position for c in session.transcript.compactions if c.kind == "clear"), default=0)

    for view in lane.views:
        pinned = {i for i in session.log.pinned if wiped <= i < view.window.end}
        assert pinned <= set(view.window.indices())
