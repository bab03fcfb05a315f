"""The readers by name, format detection from content, and `read`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from replay.errors import ReadError, UnknownName
from replay.readers.source import Source, open_source, parse_source
from replay.transcript import Transcript


class Reader(Protocol):
    """Reads one native format."""

    name: str

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format: 0 not at all, 100 beyond doubt."""

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """Every session of the source. Odd things become notes; only a file of no use raises ReadError."""


READERS: Mapping[str, str] = {
    "claude-code": "replay.readers.claude_code:ClaudeCode",
    "codex": "replay.readers.codex:Codex",
    "pi": "replay.readers.pi:Pi",
    "mycodeagent": "replay.readers.mycodeagent:MyCodeAgent",
    "decode": "replay.readers.decode:Decode",
    "openai-chat": "replay.readers.openai_chat:OpenAIChat",
    "opencode": "replay.readers.opencode:OpenCode",
    "swe-agent": "replay.readers.swe_agent:SweAgent",
    "mini-swe-agent": "replay.readers.mini_swe_agent:MiniSweAgent",
    "openhands": "replay.readers.openhands:OpenHands",
    "atif": "replay.readers.atif:Atif",
    "gemini-cli": "replay.readers.gemini:GeminiCli",
}
"""Format name to `module:Class`."""


@cache
def reader(name: str) -> Reader:
    """The reader of a format, or of `package.module:Class`. Raises UnknownName."""
    target = READERS.get(name, name)
    if ":" not in target:
        raise UnknownName("format", name, READERS)
    module, _, attribute = target.partition(":")
    try:
        return cast("Reader", getattr(importlib.import_module(module), attribute)())
    except (ImportError, AttributeError) as error:
        raise UnknownName("reader", name, READERS) from error


def detect(source: Source) -> str | None:
    """The format's name, from content alone; None where no reader is sure."""
    scores = {name: reader(name).sniff(source) for name in READERS}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0 else None


def read(path: str | Path, format: str | None = None) -> tuple[Transcript, ...]:
    """Every session of a file. Raises ReadError when the file cannot be opened or its format told."""
    return _read(open_source(Path(path)), format)


def read_bytes(data: bytes, name: str = "-", format: str | None = None) -> tuple[Transcript, ...]:
    """The same from bytes, e.g. of standard input."""
    return _read(parse_source(data, name), format)


def _read(source: Source, format: str | None) -> tuple[Transcript, ...]:
    name = format or detect(source)
    if name is None:
        raise ReadError(source.path, _unknown(source))
    return tuple(t.with_notes(*source.notes) for t in reader(name).read(source))


def _unknown(source: Source) -> str:
    if not source.records:
        return "no JSON in it; expected a session transcript"
    keys = sorted({key for value in source.objects() for key in value})
    shown = ", ".join(keys[:12]) or type(source.records[0].value).__name__
    return f"no known transcript format; keys seen: {shown}"
