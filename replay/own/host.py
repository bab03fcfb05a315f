"""Hosts a Python function for `command:` policies; it needs nothing but Python, so any environment can run it.

`python host.py package.module:function` answers the JSON lines of protocol version 1 (docs/own-policies.md).
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path


def main(target: str) -> None:
    """Answer until the input ends."""
    # What the function prints must not get between the answers.
    answers, sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8"), sys.stderr
    sys.path.insert(0, str(Path.cwd()))
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    state: dict[str, object] = {}
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if asked["type"] == "session":
            state = {"session": asked["session"]}
            continue
        answer = {"protocol": 1} if asked["type"] == "hello" else _step(function, asked, state)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _step(function: object, asked: dict[str, object], state: dict[str, object]) -> dict[str, object]:
    state.update({name: asked[name] for name in asked if name not in ("type", "messages")})
    try:
        return {"messages": function(asked["messages"], state)}  # type: ignore[operator] # it is what the user named
    except Exception as error:  # noqa: BLE001 - code that is not ours; it is told to the one who asked
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(sys.argv[1])
