"""A harness in fifty lines for trying `rewindow serve`: it runs no tool, and compacts in the simplest way there is.

Usage: toy_harness.py --offers TOOL,TOOL [--most MESSAGES] [--keep MESSAGES] PROMPT. Beyond MOST messages the older ones
become a summary and about KEEP stay. The history lies in toy-history.json: each prompt can be a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

HISTORY = Path("toy-history.json")
SYSTEM = {"role": "system", "content": "You are a toy."}


def ask(messages: list[dict[str, Any]], tools: list[str]) -> dict[str, Any]:
    """One request to the model; its message."""
    schemas = [{"type": "function", "function": {"name": name}} for name in tools]
    body = json.dumps({"model": "toy", "messages": [SYSTEM, *messages], "tools": schemas}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body)) as response:  # noqa: S310 - the address is serve's
        said: dict[str, Any] = json.load(response)["choices"][0]["message"]
    return said


def compacted(messages: list[dict[str, Any]], most: int, keep: int) -> list[dict[str, Any]]:
    """The messages, or a summary of the older ones and the rest, which begins with no result."""
    if len(messages) <= most:
        return messages
    cut = len(messages) - keep
    while messages[cut]["role"] == "tool":
        cut -= 1
    told = "\n".join(str(m["content"]) for m in messages[:cut])
    summary = ask([{"role": "user", "content": f"{told}\n\nWrite a summary of the conversation above."}], [])
    return [{"role": "user", "content": f"Summary of what was before:\n{summary['content']}"}, *messages[cut:]]


def turn(messages: list[dict[str, Any]], offers: list[str], most: int, keep: int) -> list[dict[str, Any]]:
    """Ask until the model calls no tool; no call is run, each gets a fixed text as its result."""
    while True:
        messages = compacted(messages, most, keep)
        said = ask(messages, offers)
        messages.append(said)
        if not said.get("tool_calls"):
            return messages
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": "[not run]"} for c in said["tool_calls"]]


def main() -> None:
    """Take a prompt."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--offers", default="read")
    parser.add_argument("--most", type=int, default=24)
    parser.add_argument("--keep", type=int, default=6)
    parser.add_argument("prompt")
    told = parser.parse_args()
    is_first = os.environ.get("REWINDOW_TURN") == "1" or not HISTORY.exists()
    messages = [] if is_first else json.loads(HISTORY.read_text(encoding="utf-8"))
    prompt = {"role": "user", "content": told.prompt}
    messages = turn([*messages, prompt], told.offers.split(","), told.most, told.keep)
    HISTORY.write_text(json.dumps(messages), encoding="utf-8")


if __name__ == "__main__":
    main()
