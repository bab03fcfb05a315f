"""The tree of `parentUuid`s of a Claude Code file: its order, its active branch, what was rewound.

Parallel tool calls make a comb: the result of a call hangs on the call, and so does the next call. Two
children are therefore no sign of a rewind. A rewind is two prompts of the person under one parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from replay.readers.claude_code_lines import TALK, Line, is_boundary, is_summary
from replay.readers.claude_code_speakers import is_prompt

_ROOT = -1


@dataclass(frozen=True)
class Branches:
    """The lines of a file, sorted by branch."""

    active: list[Line]
    abandoned: list[list[Line]] = field(default_factory=list)
    """One list a branch that was rewound; the first line is its prompt."""
    detached: list[Line] = field(default_factory=list)
    """Lines whose parent is not in the file."""


def branches_of(lines: Sequence[Line], leaf: str | None = None) -> Branches:
    """Sort the main lines of a file into the active branch and those that were rewound.

    The active branch ends at the line with the uuid `leaf`, or else at the last message. A line without a
    parent in the file goes on where the line before it stood.
    """
    links = _links(lines)
    dead = _rewound(lines, links.parents, _leaf(lines, leaf))
    branch = _branch_of(links.parents, dead)
    active: list[Line] = []
    abandoned: dict[int, list[Line]] = {i: [] for i in sorted(dead)}
    for i in _order(links.parents):
        target = active if branch[i] == _ROOT else abandoned[branch[i]]
        if i in links.clears:
            target.append(lines[i]._replace(kind="clear"))
        target.append(lines[i])
    return Branches(active, list(abandoned.values()), [lines[i] for i in links.detached])


def in_order(lines: Sequence[Line]) -> list[Line]:
    """The lines in file order, but none before its parent."""
    index = _index(lines)
    parents = [index.get(line.parent, i - 1) if line.parent else i - 1 for i, line in enumerate(lines)]
    return [lines[i] for i in _order(parents)]


@dataclass
class _Links:
    parents: list[int] = field(default_factory=list)
    """Index of each line's parent; -1 for a root."""
    clears: set[int] = field(default_factory=set)
    detached: list[int] = field(default_factory=list)


def _index(lines: Sequence[Line]) -> dict[str, int]:
    index: dict[str, int] = {}
    for i, line in enumerate(lines):
        if line.uuid and line.kind != "copy":
            index.setdefault(line.uuid, i)
        elif line.kind == "copy" and isinstance(own := line.value.get("uuid"), str):
            index.setdefault(own, i)
    return index


def _links(lines: Sequence[Line]) -> _Links:
    index, links = _index(lines), _Links()
    chained = talked = False
    for i, line in enumerate(lines):
        parent = index.get(line.parent) if line.parent else None
        if parent is None or parent == i:
            parent = i - 1
            if line.parent and not is_boundary(line):
                links.detached.append(i)
            elif talked and chained and _is_cleared(lines, i):
                links.clears.add(i)
            elif talked and chained and "parentUuid" in line.value and is_prompt(line):
                parent = _ROOT
            elif is_boundary(line):
                parent = index.get(str(line.value.get("logicalParentUuid")), parent)
        else:
            chained = True
        talked = talked or line.kind in TALK
        links.parents.append(parent)
    return links


def _is_cleared(lines: Sequence[Line], i: int) -> bool:
    """Whether a root in the middle of a file says that the talk began anew with an empty context."""
    line = lines[i]
    if "parentUuid" not in line.value or is_boundary(line) or is_summary(line):
        return False
    source = line.value.get("data") if line.kind == "progress" else line.value.get("attachment")
    hook = str(source.get("hookName")) if isinstance(source, dict) else ""
    if hook.endswith(":clear"):
        return True
    before = next((s for at in range(i - 1, -1, -1) if (s := lines[at].value.get("sessionId"))), None)
    changed = before is not None and line.value.get("sessionId") not in (None, before)
    return changed and (line.kind == "user" or hook.endswith(":startup"))


def _leaf(lines: Sequence[Line], leaf: str | None) -> int:
    if leaf is not None and (at := _index(lines).get(leaf)) is not None:
        return at
    return next((i for i in range(len(lines) - 1, -1, -1) if lines[i].kind in TALK), len(lines) - 1)


def _path(parents: Sequence[int], leaf: int) -> set[int]:
    path: set[int] = set()
    while leaf >= 0 and leaf not in path:
        path.add(leaf)
        leaf = parents[leaf]
    return path


def _rewound(lines: Sequence[Line], parents: Sequence[int], leaf: int) -> set[int]:
    """The prompts that were taken back: all but one under the same parent."""
    prompts: dict[int, list[int]] = {}
    for i, line in enumerate(lines):
        if line.kind == "user" and is_prompt(line):
            prompts.setdefault(_anchor(lines, parents, i), []).append(i)
    rivals = [group for group in prompts.values() if len(group) > 1]
    path = _path(parents, leaf) if rivals else set()
    dead: set[int] = set()
    for group in rivals:
        alive = next((i for i in reversed(group) if i in path), group[-1])
        dead.update(i for i in group if i != alive)
    return dead


def _anchor(lines: Sequence[Line], parents: Sequence[int], i: int) -> int:
    """The nearest message above a line: what stands between is the program's bookkeeping."""
    seen = {i}
    at = parents[i]
    while at >= 0 and at not in seen and lines[at].kind not in TALK and not is_boundary(lines[at]):
        seen.add(at)
        at = parents[at]
    return at


def _branch_of(parents: Sequence[int], dead: set[int]) -> list[int]:
    """For each line the rewound prompt that it descends from; -1 on the active branch."""
    if not dead:
        return [_ROOT] * len(parents)
    branch = [-2] * len(parents)
    for start in range(len(parents)):
        walked: list[int] = []
        at = start
        while at >= 0 and branch[at] == -2 and at not in dead:
            branch[at] = _ROOT
            walked.append(at)
            at = parents[at]
        found = at if at in dead else branch[at] if at >= 0 else _ROOT
        for i in walked:
            branch[i] = found
        if start in dead:
            branch[start] = start
    return branch


def _order(parents: Sequence[int]) -> list[int]:
    """Indices in file order, except that a line whose parent comes later follows its parent."""
    if all(parent < i for i, parent in enumerate(parents)):
        return list(range(len(parents)))
    waiting: dict[int, list[int]] = {}
    done: list[int] = []
    for i, parent in enumerate(parents):
        if parent > i:
            waiting.setdefault(parent, []).append(i)
        else:
            ready = [i]
            while ready:
                done.append(ready.pop())
                ready.extend(reversed(waiting.pop(done[-1], [])))
    return done
