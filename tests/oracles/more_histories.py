"""Histories that hypothesis thought of, and those of real sessions, in the form of tests/oracles/histories.py.

`python tests/oracles/more_histories.py think` thinks of new ones and stores them in thought.txt; `… thought` prints
them and `… sessions` those of the sessions in ../shared/transcripts, for the oracles to read.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from histories import settings

STORED = Path(__file__).parent / "thought.txt"
"""A history a line, a message a word: who speaks, what the text is made of, its length, and `+` the number of calls."""
SESSIONS = Path(__file__).parents[3] / "shared" / "transcripts"
EXAMPLES = 300
LONGEST = 250
"""Messages of a session that are used."""
LETTERS = {"x": "x", "e": "é", "g": "😀"}
"""What a text is made of: one byte, two bytes, two units of JavaScript."""


def thought_of() -> list[dict[str, Any]]:
    """The stored histories."""
    lines = [line for line in STORED.read_text().splitlines() if not line.startswith("#")]
    return [{"seed": n, "messages": _of_words(line), "settings": settings(random.Random(n))} for n, line in enumerate(lines)]


def _of_words(line: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for word in line.split():
        size, _, calls = word[2:].partition("+")
        text = LETTERS[word[1]] * int(size)
        if word[0] == "u":
            messages.append({"role": "user", "text": text})
        elif word[0] == "t":
            messages.append({"role": "tool", "text": text, "call": open_calls.pop(0)})
        else:
            open_calls = [f"c{len(messages)}-{n}" for n in range(int(calls or 0))]
            messages.append({"role": "assistant", "text": text, "calls": list(open_calls)})
    return messages


def of_sessions(folder: Path) -> Iterator[dict[str, Any]]:
    """The main thread of each session that has at least one response, as far as `LONGEST` messages."""
    from replay.errors import RewindowError
    from replay.find import find, read_found

    number = 0
    for file in find([str(folder)]):
        try:
            read = read_found(file)
        except RewindowError:
            continue
        for transcript in read:
            messages = list(_messages(transcript.main.messages[:LONGEST]))
            if any(m["role"] == "assistant" for m in messages):
                yield {"seed": number, "messages": messages, "settings": settings(random.Random(number))}
                number += 1


def _messages(messages: Any) -> Iterator[dict[str, Any]]:
    """Prompts, responses and results; a result whose call is not there, or that comes too late, is left out."""
    pending: list[str] = []
    for message in messages:
        if message.role == "assistant":
            pending = [f"m{message.index}-{n}" for n in range(len(message.calls))]
            names = dict(zip((c.id for c in message.calls), pending, strict=True))
            yield {"role": "assistant", "text": message.text, "calls": list(pending)}
        elif message.results:
            for result in message.results:
                if names.get(result.call_id) in pending:
                    pending.remove(names[result.call_id])
                    yield {"role": "tool", "text": result.text, "call": names[result.call_id]}
        elif message.role == "user" and not pending:
            yield {"role": "user", "text": message.text}


def _think() -> list[str]:
    from hypothesis import HealthCheck, Phase, given
    from hypothesis import settings as config
    from hypothesis import strategies as st

    text = st.builds("{}{}".format, st.sampled_from("xxxeg"), st.integers(0, 12) | st.integers(0, 400) | st.integers(0, 4_000))
    rounds = st.tuples(text, st.lists(text, max_size=3))
    turns = st.tuples(st.lists(text, min_size=1, max_size=2), st.lists(rounds, max_size=6), st.none() | text)
    found: list[str] = []

    @config(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck))
    @given(st.lists(turns, min_size=1, max_size=4), text)
    def collect(made: Any, last: str) -> None:
        found.append(" ".join([*(word for turn in made for word in _words(*turn)), f"u{last}"]))

    collect()
    return found


def _words(prompts: list[str], rounds: Any, answer: str | None) -> Iterator[str]:
    yield from (f"u{text}" for text in prompts)
    for said, results in rounds:
        yield f"a{said}+{len(results)}"
        yield from (f"t{text}" for text in results)
    if answer is not None:
        yield f"a{answer}"


if __name__ == "__main__":
    if sys.argv[1] == "think":
        STORED.write_text("\n".join(["# Histories that hypothesis thought of; see more_histories.py", *_think(), ""]))
    else:
        made = thought_of() if sys.argv[1] == "thought" else list(of_sessions(SESSIONS))
        sys.stdout.write(json.dumps(made))
