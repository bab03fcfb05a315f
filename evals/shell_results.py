"""What results of commands say about how they ended: exit codes in the words of each harness, and the error's line."""

from __future__ import annotations

import re

_HEAD_CHARS, _TAIL_CHARS = 400, 240
_HEAD = re.compile(
    r"^\s*Exit code:?\s+(-?\d+)|\bProcess exited with code (-?\d+)|<returncode>(-?\d+)</returncode>|"
    r"^\s*\{.*?\"exit_code\":\s*(-?\d+)", re.DOTALL)
_TAIL = re.compile(
    r"Command exited with code (-?\d+)\s*$|(?:completed|finished) with exit code (-?\d+)|"
    r"\nExit Code: (-?\d+)\n(?:Error|Signal)|\"exit_code\":\s*(-?\d+)|\nexit status (-?\d+)\s*$")
_TELLING = re.compile(
    r"\b(?:\w*(?:Error|Exception)\b|error\b|fatal\b|panic\b|FAIL(?:ED)?\b|failed\b|not found\b|No such file|cannot\b|"
    r"undefined\b|denied\b|refused\b|invalid\b|missing\b|unknown\b|does not\b|timed out)", re.IGNORECASE)
_FRAME = re.compile(r"^(?:Exit code:? -?\d+|Chunk ID:.*|Wall time:.*|Process exited.*|Original token count:.*|Output:|"
                    r"Command:.*|Error:|<\/?[\w_]+>|Traceback \(most.*|\[.*exit code.*)\s*$")
_LONGEST_SIGNATURE = 200


def exit_code(text: str) -> int | None:
    """The exit code that a result states; None where it states none."""
    head, tail = text[:_HEAD_CHARS], text[-_TAIL_CHARS:]
    # Every wording has one of these; the patterns are slower to say no.
    if "xit" not in head and "xit" not in tail and "returncode" not in head:
        return None
    found = _HEAD.search(head) or _TAIL.search(tail)
    return next((int(g) for g in found.groups() if g is not None), None) if found else None


def failed(text: str, is_error: bool) -> bool:
    """Whether a result tells of a failure: it is marked as one, or its exit code is not 0."""
    return is_error or bool(exit_code(text))


def signature(text: str) -> str:
    """The line of a failed result that names the failure best: the last telling one, else the first; empty for none."""
    lines = [line.strip() for line in text[:20_000].splitlines() if line.strip() and not _FRAME.match(line.strip())]
    telling = [line for line in lines if _TELLING.search(line)]
    chosen = telling[-1] if telling else lines[0] if lines else ""
    return chosen[:_LONGEST_SIGNATURE]


_PREFIX = re.compile(r"^(?:cd\s+(?:'[^']*'|\"[^\"]*\"|\S+)\s*(?:&&|;)\s*|export\s+\S+\s*(?:&&|;)\s*|timeout\s+\S+\s+|"
                     r"sudo\s+|env\s+|[A-Z_][A-Z0-9_]*=\S*\s+|source\s+\S+\s*(?:&&|;)\s*)")
_TAILS = re.compile(r"\s*(?:2>&1|2>\s*/dev/null|\|\s*(?:tail|head)\b[^|;&]*|;\s*echo\s+.*)\s*$")


def normalised(command: str) -> str:
    """A command without what changes from one try to the next: folder, environment, time limit, cut of its output."""
    text = " ".join(command.split())
    while True:
        shorter = _TAILS.sub("", _PREFIX.sub("", text))
        if shorter == text:
            return text
        text = shorter
