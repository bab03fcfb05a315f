"""The agent's plan over a session: todo lists that are written whole, and tasks that are created one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.actions import Action, plain_name

_WHOLE = re.compile(r"todo|plan$|^plan|tasktracker")
_LISTS = ("todos", "plan", "task_list", "todoList", "tasks", "items", "todo_list")
_TEXTS = ("content", "step", "description", "title", "subject", "task", "text", "name")
_CLOSED = frozenset(("completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped", "success",
                     "closed", "failed"))
_NUMBER = re.compile(r"#(\w+)")


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan as it stands after a message."""

    message: int
    """Log index of the call that made it so."""
    open: tuple[str, ...]
    """Items that are neither done nor given up, in order, each once."""


def plans(made: Sequence[Action]) -> list[Plan]:
    """Every state of the plan in order; empty where the session has no plan tool."""
    found: list[Plan] = []
    tasks: dict[str, tuple[str, bool]] = {}
    for action in (a for a in made if not a.failed):
        name = plain_name(action.call.name)
        if name in ("taskcreate", "taskupdate"):
            _change(tasks, name, action)
            found.append(_plan(action, ((text, is_open) for text, is_open in tasks.values())))
        elif _WHOLE.search(name):
            items = _items(action.call.mapping)
            if items is not None:
                found.append(_plan(action, map(_item, items)))
    return found


def _plan(action: Action, items: Iterator[tuple[str, bool]]) -> Plan:
    return Plan(action.message, tuple(dict.fromkeys(text for text, is_open in items if is_open and text)))


def _items(arguments: Mapping[str, Any]) -> list[Any] | None:
    return next((v for key in _LISTS if isinstance(v := arguments.get(key), list)), None)


def _item(item: Any) -> tuple[str, bool]:
    """Text of an item and whether it is open; what carries no status is open."""
    if not isinstance(item, dict):
        return (item if isinstance(item, str) else "", True)
    text = next((v for key in _TEXTS if isinstance(v := item.get(key), str) and v), "")
    return text, str(item.get("status", "")).lower() not in _CLOSED


def _change(tasks: dict[str, tuple[str, bool]], name: str, action: Action) -> None:
    given = action.call.mapping
    subject = next((v for key in ("subject", "title") if isinstance(v := given.get(key), str) and v), None)
    if name == "taskcreate":
        named = _NUMBER.search(action.text)
        tasks[named[1] if named else str(len(tasks) + 1)] = (subject or "", True)
        return
    key = str(given.get("taskId", given.get("id", "")))
    text, is_open = tasks.get(key, ("", True))
    status = given.get("status")
    tasks[key] = (subject or text, is_open if status is None else str(status).lower() not in _CLOSED)
