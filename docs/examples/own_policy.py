"""A context policy that speaks to Rewindow over JSON lines: old tool results are blanked, in Python.

    rewindow compare SESSIONS -p full-history -p "command:python3 docs/examples/own_policy.py"
"""

import json
import sys

KEPT = 3


def answer(value: dict) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "hello":
        answer({"protocol": 1})
    elif asked["type"] == "step":
        results = [m for m in asked["messages"] if m["role"] == "tool"]
        for message in results[:-KEPT]:
            message["content"] = "[old output]"
        answer({"messages": asked["messages"]})
