"""How the scripted agent quotes a file: it turns `swap` and `append` into edits with exact old text."""

from __future__ import annotations

from dataclasses import replace

from evals.samples.scenario import Action
from evals.samples.workspace import Workspace


def concrete(action: Action, workspace: Workspace) -> Action:
    """The action with `swap` and `append` turned into an edit; others as they are."""
    if action.kind == "swap":
        return _swap(action, workspace)
    if action.kind == "append":
        return _append(action, workspace)
    return action


def _swap(action: Action, workspace: Workspace) -> Action:
    """Quote the lines that hold `has` and replace `old` by `new` in them."""
    lines = [line for line in workspace.text(action.target).splitlines() if str(action.get("has")) in line]
    if len(lines) != 1:
        raise ValueError(f"{action.target}: {len(lines)} lines hold {action.get('has')!r}, expected one")
    new = lines[0].replace(str(action.get("old")), str(action.get("new")))
    return replace(action, kind="edit", more={"old": lines[0], "new": new})


def _append(action: Action, workspace: Workspace) -> Action:
    """Quote as many of the last lines as it takes to be unique and put text behind them."""
    text = workspace.text(action.target)
    lines = text.rstrip("\n").split("\n")
    height = next(n for n in range(2, len(lines) + 1) if text.count("\n".join(lines[-n:])) == 1)
    old = "\n".join(lines[-height:])
    return replace(action, kind="edit", more={"old": old, "new": old + "\n" + str(action.get("text"))})
