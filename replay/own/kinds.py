"""The kinds of own code by name, and as the command line names them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from replay.own import host
from replay.own.base import OwnCode
from replay.own.child import ChildProcess
from replay.own.frameworks import FRAMEWORKS
from replay.own.function import PythonFunction

OWN_CODE: Mapping[str, type] = {"python": PythonFunction, "command": ChildProcess, **FRAMEWORKS}
_OTHER_PYTHON = "python@"


def own_code(name: str) -> OwnCode | None:
    """Own code by its name; None for a name of anything else.

    `command:WORDS…` is a program, `python@INTERPRETER:package.module:function` a function in another environment,
    `python:`, `langchain:`, `pydantic-ai:` and `context-engine:` stand before `package.module:attribute`.
    """
    kind, _, rest = name.partition(":")
    if kind == "command":
        return ChildProcess(command=rest)
    if kind.startswith(_OTHER_PYTHON) and rest:
        words = (kind.removeprefix(_OTHER_PYTHON), str(Path(host.__file__)), rest)
        return ChildProcess(command=shlex.join(words))
    if kind not in OWN_CODE or ":" not in rest:
        return None
    made: OwnCode = OWN_CODE[kind](target=rest)
    return made
