"""`rewindow show`: the steps of a session, one exact view, or the difference of two."""

from __future__ import annotations

import sys
from typing import Any

import click

from replay.commands.options import reader_option
from replay.commands.output import console, literal, number, print_json, table
from replay.diff import differences
from replay.engine import DEFAULT_WINDOW, Lane, Session, View
from replay.errors import ConfigError, ReadError
from replay.policy.base import Capacity
from replay.policy.load import RECORDED, policy, spec
from replay.view import Shape, lineage, plain_text, render, shown_messages


@click.command(epilog="Example: rewindow show session.jsonl --step 143 -p decode-adr18 --against recorded")
@click.argument("session")
@click.option("--step", type=click.IntRange(min=1), help="Show the exact view of this step (from 1).")
@click.option("-p", "--policy", "policy_name", default=RECORDED.name, help="Policy; default: what was recorded.")
@click.option("--against", help="A second policy: show the labelled difference.")
@click.option("--as", "shape", type=click.Choice(["text", "openai", "anthropic"]), default="text",
              help="Shape of the messages.")
@click.option("--window", type=click.IntRange(min=1), help="Context window in tokens; default: the policy's own.")
@click.option("--output-reserve", type=click.IntRange(min=0), default=0, help="Tokens kept free for the answer.")
@click.option("--tokenizer", default="o200k_base", help="Vocabulary that counts tokens.")
@click.option("--summariser", default="extractive", help="extractive, recorded, empty or length-model.")
@click.option("--index", type=click.IntRange(min=0), default=0, help="Which session of a file with several, from 0.")
@reader_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def show(session: str, step: int | None, policy_name: str, against: str | None, shape: Shape, window: int | None,
         output_reserve: int, tokenizer: str, summariser: str, index: int, reader: str | None, as_json: bool) -> int:
    """Show the steps of SESSION under a policy; with --step the exact view of one."""
    prepared = _session(session, index, tokenizer, reader)
    lanes = [_lane(prepared, name, window, output_reserve, summariser) for name in (policy_name, against) if name]
    if step is None:
        _print_json_steps(prepared, lanes[0]) if as_json else _print_steps(prepared, lanes[0])
        return 0
    answer = _answer(prepared, lanes, _checked(step, lanes[0]), shape, window)
    print_json(answer) if as_json else _print_step(answer, prepared, lanes, step)
    return 0


def _session(path: str, index: int, tokenizer_name: str, reader: str | None) -> Session:
    from replay.readers import read, read_bytes
    from replay.tokens import TokenCounter, tokenizer

    found = read_bytes(sys.stdin.buffer.read(), "<stdin>", reader) if path == "-" else read(path, reader)
    if not found:
        raise ReadError(path, "no session in it")
    if index >= len(found):
        raise ConfigError("--index", "", f"{path} holds {len(found)} sessions; the last is {len(found) - 1}")
    return Session(found[index], TokenCounter(tokenizer(tokenizer_name)))


def _lane(session: Session, name: str, window: int | None, reserve: int, summariser: str) -> Lane:
    chosen = policy(name)
    capacity = Capacity(window=window or chosen.window or session.transcript.window or DEFAULT_WINDOW,
                        output_reserve=reserve or chosen.output_reserve)
    return session.replay(chosen, capacity, summariser)


def _checked(step: int, lane: Lane) -> View:
    if step > len(lane.views):
        raise ConfigError("--step", "", f"the session has {len(lane.views)} steps; there is no step {step}")
    return lane.views[step - 1]


def _answer(session: Session, lanes: list[Lane], view: View, shape: Shape, window: int | None) -> dict[str, Any]:
    lane, log = lanes[0], session.log
    overhead = session.calibration.overhead
    size = window or lane.policy.window or session.transcript.window or DEFAULT_WINDOW
    answer: dict[str, Any] = {
        "session_id": session.transcript.session_id, "step": view.step, "steps": len(lane.views),
        "policy": spec(lane.policy), "lane": lane.kind, "status": view.status,
        "tokens": {"view": view.figure.tokens, "how": view.figure.how, "counted": view.counted,
                   "overhead": None if overhead is None else round(overhead), "window": size,
                   "by_class": log.by_class(view.window)},
        "fingerprint": view.fingerprint, "projection_mode": view.mode, "checkpoint_id": view.checkpoint,
        "decision": _decision(view), "messages": render(log, view.window, shape), "lineage": lineage(view, log),
        "events": [e.to_json() for e in view.events],
    }
    if len(lanes) > 1:
        found = differences(log, view.window, lanes[1].views[view.step - 1].window)
        answer["against"] = {"policy": lanes[1].policy.name, "same": not found,
                             "differences": [d.to_json() for d in found]}
    return answer


def _decision(view: View) -> dict[str, Any] | None:
    made = view.decision
    return None if made is None else {"stage": made.stage, "reason": made.reason, "threshold": made.threshold,
                                      "estimated_tokens": made.estimated_tokens}


def _print_json_steps(session: Session, lane: Lane) -> None:
    print_json({"session_id": session.transcript.session_id, "steps": len(lane.views), "policy": spec(lane.policy),
                "lane": lane.kind, "views": [_step_json(v) for v in lane.views]})


def _step_json(view: View) -> dict[str, Any]:
    return {"step": view.step, "tokens": view.figure.tokens, "how": view.figure.how, "messages": view.print.messages,
            "status": view.status, "projection_mode": view.mode, "fingerprint": view.fingerprint,
            "events": [e.to_json() for e in view.events]}


def _print_steps(session: Session, lane: Lane) -> None:
    screen = console()
    rows = [(str(v.step), v.status, number(v.print.messages), number(v.figure.tokens), v.figure.how, v.mode,
             "; ".join(f"{e.kind}: {e.reason}" for e in v.events)) for v in lane.views]
    screen.print(table(("step", "status", "messages", "tokens", "figure", "projection", "events"), rows,
                       f"{session.transcript.session_id} under {lane.policy.name} ({lane.kind})", left=2))
    calibration = session.calibration
    if calibration.error is not None:
        screen.print(f"Counted against billed tokens: factor {calibration.factor:.2f}, overhead "
                     f"{number(calibration.overhead)}, median error {calibration.error:.1%}, judged on the even steps.")
    if lane.ended:
        screen.print(f"The run ends at step {lane.ended}: its request does not fit and stays refused.")


def _print_step(answer: dict[str, Any], session: Session, lanes: list[Lane], step: int) -> None:
    screen = console()
    tokens, view = answer["tokens"], lanes[0].views[step - 1]
    screen.print(literal(f"step {step} of {answer['steps']} under {lanes[0].policy.name} ({answer['lane']}), "
                         f"{answer['status']}: {number(tokens['view'])} tokens ({tokens['how']}) of a window of "
                         f"{number(tokens['window'])}, {answer['projection_mode']}"))
    for event in view.events:
        screen.print(literal(f"  {event.kind}: {event.reason}, {number(event.estimated_tokens)} against "
                             f"{number(event.threshold)}, gain {number(event.gain)}"))
        if event.sentence:
            screen.print(literal(f"    {event.sentence}"))
    if "against" in answer:
        _print_differences(answer["against"])
        return
    for shown in shown_messages(session.log, view.window):
        place = "–" if shown.index is None else str(shown.index)
        screen.print(literal(f"── {place} {shown.message.role} ({shown.form})"), style="bold")
        screen.print(literal(plain_text(shown.message)))


def _print_differences(against: dict[str, Any]) -> None:
    screen = console()
    if against["same"]:
        screen.print(f"The same view as under {against['policy']}.")
    for entry in against["differences"]:
        place = "–" if entry["message"] is None else entry["message"]
        screen.print(literal(f"{entry['label']:>9}  {place} {entry['role']}: {_short(entry)}"))


def _short(entry: dict[str, Any]) -> str:
    text = " ".join((entry["text"] if entry["text"] is not None else entry["against"] or "").split())
    return text if len(text) <= 100 else text[:99] + "…"
