"""Small random histories from a seed, and the settings that a rule is tried with; nothing but the standard library.

The oracles run it in environments of their own, the tests beside Rewindow: the same seed is the same history.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from typing import Any

SEEDS = 5_000


def history(seed: int) -> dict[str, Any]:
    """`messages` (role, text, calls or answered call) and `settings` of both rules."""
    dice = random.Random(seed)
    messages: list[dict[str, Any]] = []
    for _ in range(dice.choice((1, 1, 2, 3))):
        messages.append({"role": "user", "text": text(dice, 400)})
        for _ in range(dice.randint(0, 4)):
            calls = [f"c{len(messages)}-{n}" for n in range(dice.choice((1, 1, 1, 2, 3)))]
            messages.append({"role": "assistant", "text": text(dice, 120), "calls": calls})
            messages += [{"role": "tool", "text": text(dice, 900), "call": call} for call in calls]
        messages.append({"role": "assistant", "text": text(dice, 200), "calls": []})
    messages.append({"role": "user", "text": text(dice, 100)})
    return {"seed": seed, "messages": messages, "settings": settings(dice)}


def settings(dice: random.Random) -> dict[str, Any]:
    """What the rules are tried with on one history."""
    return {"trigger": dice.choice((["messages", dice.randint(2, 12)], ["tokens", dice.randint(50, 900)])),
            "keep": dice.choice((["messages", dice.randint(1, 9)], ["tokens", dice.randint(1, 500)])),
            "trim": dice.choice((60, 150, 400, 4_000)), "tail": dice.choice((1, 20, 100, 250, 400)),
            "every": dice.randint(2, 5)}


def text(dice: random.Random, most: int) -> str:
    """Up to so many letters, in one line or in several."""
    size = dice.choice((0, most // 10, most // 3, most // 2, most)) + dice.randint(0, 9)
    return "\n".join("x" * n for n in (size // 2, size - size // 2)) if dice.random() < 0.3 else "x" * size


def requests(messages: list[dict[str, Any]]) -> list[int]:
    """How many messages are there when each request is made: before each response, and at the end."""
    return [*(i for i, m in enumerate(messages) if m["role"] == "assistant"), len(messages)]


def digest(outcome: Any) -> str:
    """Eight hex digits of an outcome."""
    return hashlib.sha256(json.dumps(outcome, separators=(",", ":")).encode()).hexdigest()[:8]


def stored(name: str, version: str, digests: list[str], source: str = "histories") -> str:
    """The golden data of an oracle: ten digests a line, in the order of the histories."""
    lines = [" ".join(digests[i:i + 10]) for i in range(0, len(digests), 10)]
    return "\n".join([f"# {name} {version}: outcome of each of the {source}, in order", *lines, ""])


if __name__ == "__main__":
    sys.stdout.write(json.dumps([history(seed) for seed in range(int(sys.argv[1]))]))
