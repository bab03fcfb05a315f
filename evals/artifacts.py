"""The files of a session: what was read and changed under which names, generated ones left out."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from evals.actions import Action, Touch

GENERATED = frozenset((
    "node_modules", ".git", "dist", "build", "target", "out", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".next", ".nuxt", ".cache", "coverage", ".gradle", "htmlcov", ".eggs",
    ".terraform", "obj"))
"""Folders whose files tools make; losing their names loses nothing."""
SCRATCH = ("/tmp/", "/private/tmp/", "/var/folders/", "/private/var/folders/")  # noqa: S108 - names, no file is opened
"""Where throw-away files lie."""


@dataclass(slots=True)
class Artifact:
    """One file with every name that it had."""

    paths: list[str]
    """Absolute where the session's folder is known, in the order in which they were used."""
    read: int | None = None
    """Log index of the first message that read it."""
    modified: int | None = None
    """Log index of the first message that changed, created, renamed or deleted it."""
    known: list[Action] = field(default_factory=list)
    """Calls that leave the agent knowing its content: reads, edits and writes that succeeded."""


def artifacts(made: Sequence[Action], cwd: str | None) -> dict[str, Artifact]:
    """The files that calls touched with success, by each of their names; two names of one file share an Artifact."""
    found: dict[str, Artifact] = {}
    for action in (a for a in made if not a.failed):
        for touch in action.touches:
            path = absolute(touch.path, cwd)
            if not is_generated(path, cwd):
                _note(found.setdefault(path, Artifact([path])), touch, action)
                if touch.new_path:
                    _rename(found, path, absolute(touch.new_path, cwd), action)
    return found


def _note(artifact: Artifact, touch: Touch, action: Action) -> None:
    if touch.kind == "read":
        artifact.read = action.message if artifact.read is None else artifact.read
    elif artifact.modified is None:
        artifact.modified = action.message
    if touch.kind in ("read", "edit", "write"):
        artifact.known.append(action)


def _rename(found: dict[str, Artifact], old: str, new: str, action: Action) -> None:
    artifact = found[old]
    artifact.paths.append(new)
    found[new] = artifact
    if artifact.modified is None:
        artifact.modified = action.message


def absolute(path: str, cwd: str | None) -> str:
    """A path from the root, as far as the session's folder is known; case and links are left as they are."""
    if path.startswith(("/", "~")) or path[1:3] == ":/" or not cwd:
        return posixpath.normpath(path)
    folder = cwd.replace("\\", "/")
    return posixpath.normpath(f"{folder}/{path}")


def is_generated(path: str, cwd: str | None) -> bool:
    """Whether a folder between the session's folder and the file is one that tools fill."""
    home = cwd.rstrip("/") + "/" if cwd else ""
    inside = path.removeprefix(home)
    return not GENERATED.isdisjoint(inside.split("/")[:-1]) or inside.startswith(SCRATCH)


def distinct(found: dict[str, Artifact]) -> list[Artifact]:
    """Each file once, in the order of first use."""
    return list({id(a): a for a in found.values()}.values())


def bare_names(files: Sequence[Artifact]) -> frozenset[str]:
    """File names that only one of the files has."""
    counts = Counter(name for a in files for name in {p.rpartition("/")[2] for p in a.paths})
    return frozenset(name for name, count in counts.items() if count == 1)
