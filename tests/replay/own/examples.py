"""Context code as users might write it."""

from __future__ import annotations

from typing import Any

Native = dict[str, Any]


def same(messages: list[Native], state: Native) -> list[Native]:
    """Everything as it is."""
    return messages


def spoils_its_input(messages: list[Native], state: Native) -> list[Native]:
    """Everything as it is, but the list that it was given is ruined."""
    kept = [dict(m) for m in messages]
    for message in messages:
        message.clear()
    messages.clear()
    return kept


def newest(messages: list[Native], state: Native) -> list[Native]:
    """The newest messages, from a prompt or a response on."""
    starts = [i for i, m in enumerate(messages) if m["role"] != "tool"]
    return messages[next((i for i in starts if i >= len(messages) - 12), 0):]


def newest_forty(messages: list[Native], state: Native) -> list[Native]:
    """The newest forty messages, and the call of a result that would stand first."""
    start = max(0, len(messages) - 40)
    while messages[start]["role"] == "tool":
        start -= 1
    return messages[start:]


def blanks_old_results(messages: list[Native], state: Native) -> list[Native]:
    """Results but for the newest three are blanked."""
    results = [i for i, m in enumerate(messages) if m["role"] == "tool"]
    return [{**m, "content": "[old]"} if i in results[:-3] else m for i, m in enumerate(messages)]


def summarises(messages: list[Native], state: Native) -> list[Native]:
    """At every tenth message the older ones become a summary that counts what it has replaced."""
    if len(messages) < 10:
        return messages
    state["rounds"] = state.get("rounds", 0) + 1
    cut = next(i for i in range(6, len(messages)) if messages[i]["role"] == "user")
    return [{"role": "user", "content": f"Summary {state['rounds']} of {cut} messages."}, *messages[cut:]]


def shrinks_when_refused(messages: list[Native], state: Native) -> list[Native]:
    """Drops all but the last prompt when the request was refused."""
    return [m for m in messages if m["role"] == "user"][-1:] if state["refused"] else messages


def raises(messages: list[Native], state: Native) -> list[Native]:
    """Fails at the third step."""
    if state["step"] == 3:
        raise ValueError("no budget left")
    return messages


def gives_text(messages: list[Native], state: Native) -> Any:
    """Gives no messages."""
    return "nothing"


def gives_no_role(messages: list[Native], state: Native) -> Any:
    """Gives dictionaries that are no messages."""
    return [{"content": "x"}]


def counts(messages: list[Native], state: Native) -> list[Native]:
    """Says how often it was called in this session."""
    state["calls"] = state.get("calls", 0) + 1
    return [*messages, {"role": "user", "content": f"call {state['calls']}"}]
