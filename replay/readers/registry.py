"""The readers by name, format detection from content, and `read`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, cast

from replay.errors import ConfigError, NotASession, ReadError, UnknownName
from replay.readers.json_text import MAX_DEPTH, flattened
from replay.readers.source import Source, open_source, parse_source
from replay.transcript import ReadNote, Transcript

GROUP = "rewindow.readers"
"""Entry-point group in which other distributions name their readers."""


class Reader(Protocol):
    """Reads one native format."""

    name: str

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format: 0 not at all, 100 beyond doubt."""

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """Every session of the source. Odd things become notes; only a file of no use raises ReadError."""


class Claims(Protocol):
    """What a reader of a format that spreads a session over several files can do besides."""

    def claims(self, path: Path) -> tuple[Path, ...]:
        """The files that are read as a part of this one's session; asked of every file of a folder, so be quick."""


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
    "wire": "replay.readers.wire:Wire",
    "rewindow": "replay.readers.rewindow:Rewindow",
    "otel": "replay.readers.otel:Spans",
}
"""Format name to `module:Class`."""




@cache
def own_readers() -> Mapping[str, EntryPoint]:
    """The readers that other distributions bring, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


@cache
def reader(name: str) -> Reader:
    """The reader of a format, or of `package.module:Class`. Raises UnknownName or ConfigError."""
    own = own_readers()
    target = own[name].value if name in own else READERS.get(name, name)
    if ":" not in target:
        raise UnknownName("reader", name, [*READERS, *own])
    module, _, attribute = target.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise ConfigError(f"reader {name}", "", f"cannot import or make {target}: {error}") from error
    if not (callable(getattr(made, "read", None)) and callable(getattr(made, "sniff", None))):
        raise ConfigError(f"reader {name}", "", f"{target} is no reader: it needs the methods sniff and read")
    return cast("Reader", made)


def detect(source: Source) -> str | None:
    """The format's name, from content alone; None where no reader is sure. An own reader wins a tie."""
    scores = {name: reader(name).sniff(source) for name in (*own_readers(), *READERS)}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0 else None


def claimed(path: Path) -> tuple[Path, ...]:
    """The files that own readers read as a part of this one's session."""
    found = (getattr(reader(name), "claims", None) for name in own_readers())
    return tuple(file for claims in found if claims for file in claims(path))


def read(path: str | Path, format: str | None = None) -> tuple[Transcript, ...]:
    """Every session of a file; `format` is a format's name or a reader's `package.module:Class`.

    Raises ReadError when the file cannot be opened, NotASession when no reader knows what it holds.
    """
    return read_source(open_source(Path(path)), format)[1]


def read_bytes(data: bytes, name: str = "-", format: str | None = None) -> tuple[Transcript, ...]:
    """The same from bytes, e.g. of standard input."""
    return read_source(parse_source(data, name), format)[1]


def read_source(source: Source, format: str | None = None) -> tuple[str, tuple[Transcript, ...]]:
    """The name of the reader that was used, and every session of a source."""
    name = format or detect(source)
    if name is None:
        raise _unknown(source)
    found, notes = _without_overflow(reader(name).read, source)
    return name, tuple(t.with_notes(*notes) for t in found)


def _without_overflow(read_one: Callable[[Source], tuple[Transcript, ...]],
                      source: Source) -> tuple[tuple[Transcript, ...], tuple[ReadNote, ...]]:
    """The sessions of a source, whose values may be nested so deeply that no reader can follow."""
    try:
        return read_one(source), source.notes
    except RecursionError:
        deep = [r for r in source.records if isinstance(r.value, (dict, list)) and flattened(r.value)]
        notes = tuple(ReadNote(code="too-deep", line=r.line, byte=r.byte,
                               text=f"what is nested deeper than {MAX_DEPTH} levels was kept as text") for r in deep)
        shallow = replace(source, notes=(*source.notes, *notes))
        return read_one(shallow), shallow.notes


def _unknown(source: Source) -> ReadError:
    if not source.records:
        return ReadError(source.path, "no JSON that can be read") if source.notes else NotASession(
            source.path, "empty file")
    keys = sorted({key for value in source.objects() for key in value})
    shown = ", ".join(keys[:12]) or type(source.records[0].value).__name__
    return NotASession(source.path, f"no known transcript format; keys seen: {shown}")
