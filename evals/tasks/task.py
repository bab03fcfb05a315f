"""Tasks: a folder with an instruction, an environment, a hidden verifier and a solution that proves it solvable."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.bundled import task_folder
from replay.errors import ConfigError, ReadError, UnknownName

_PARTS = ("instruction.md", "environment", "tests/test.sh", "solution/solve.sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task."""

    name: str
    folder: Path
    title: str
    instruction: str
    steps: int
    """Model calls that the agent may make."""
    verifier_seconds: float
    reads: tuple[str, ...] = ()
    """Files of the environment, as patterns, that cannot be left unread; of long tasks they fill a window of 32k."""
    tags: tuple[str, ...] = ()


def bundled_tasks() -> list[Task]:
    """The tasks that come with Rewindow, by name."""
    return [load_task(path) for path in sorted(task_folder().iterdir()) if (path / "task.toml").is_file()]


def find_tasks(names: Iterable[str]) -> list[Task]:
    """Tasks by bundled name or by folder, each once; without names all bundled ones. Raises ReadError, UnknownName."""
    found: dict[str, Task] = {}
    for name in names:
        task = load_task(Path(name) if Path(name, "task.toml").is_file() else _bundled(name))
        if task.name in found and found[task.name].folder != task.folder:
            raise ConfigError("tasks", task.name, "two tasks have this name")
        found[task.name] = task
    return list(found.values()) or bundled_tasks()


def _bundled(name: str) -> Path:
    folder = task_folder() / name
    if Path(name).name != name or not (folder / "task.toml").is_file():
        raise UnknownName("task", name, [p.name for p in task_folder().iterdir() if p.is_dir()])
    return folder


def load_task(folder: Path) -> Task:
    """Read a task's folder. Raises ReadError for a missing part, ConfigError for a wrong setting."""
    missing = [part for part in _PARTS if not (folder / part).exists()]
    if missing:
        raise ReadError(str(folder), f"a task needs {', '.join(missing)}")
    path = folder / "task.toml"
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not valid TOML: {error}") from error
    metadata = _table(told, "metadata", path)
    return Task(name=folder.resolve().name, folder=folder, title=str(metadata.get("title", folder.name)),
                instruction=(folder / "instruction.md").read_text(encoding="utf-8").strip(),
                steps=int(_positive(told, "agent", "max_steps", 40, path)),
                verifier_seconds=float(_positive(told, "verifier", "timeout_sec", 60.0, path)),
                reads=tuple(metadata.get("reads", ())), tags=tuple(metadata.get("tags", ())))


def _table(told: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    found = told.get(name, {})
    if not isinstance(found, dict):
        raise ConfigError(str(path), name, "expected a section")
    return found


def _positive(told: Mapping[str, Any], section: str, key: str, default: float, path: Path) -> float:
    value = _table(told, section, path).get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise ConfigError(str(path), f"{section}.{key}", f"expected a number above zero, found {value!r}")
    return value
