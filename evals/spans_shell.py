"""Shell commands: the files that they name and read, and what of them counts as asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evals.spans import Want

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?(?:\n\s*\2\s*(?=\n|$)|$)", re.DOTALL)
_MESSAGE = re.compile(r"(?<=\s)(?:-m|-am|--message|--body|--title)[ =](\"(?:[^\"\\]|\\.)*\"|'[^']*')")
_PROGRAM = re.compile(
    r"(?:^|(?<=[;&|(\n]))(?:\s*[A-Z_]+=\S*)*\s*(?:sudo\s+|xargs\s+)?"
    r"(?:(?:git|npm|pnpm|yarn|bun|go|cargo|docker|pip|uv|gh|kubectl)(?:\s+-\S+)*(?:\s+[a-z][\w-]*){1,2}|[a-z][\w-]*)(?=\s|$)")
_OPTION = re.compile(r"(?<=\s)--?[A-Za-z][\w-]*")
_SEGMENT = re.compile(r"&&|\|\||[;|\n]")
_PRINTED = re.compile(r"^sed\s+-n\s+['\"]?(\d+)(?:,(\d+|\$))?p['\"]?\s+(\S+)$")
_HEAD = re.compile(r"^head\s+(?:-n\s*|-)(\d+)\s+(\S+)$")
_WHOLE = re.compile(r"^(?:cat|bat|nl(?:\s+-ba)?|less|more)\s+(?:-[A-Za-z]+\s+)?([^\s<>-]\S*)$")
_FOLDER = re.compile(r"^cd\s+\S+$")
_CHANGES = re.compile(
    r"(?:^|[;&|]\s*)(?:sudo\s+)?(?:sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|git\s+(?:checkout|switch|stash|reset|pull|merge|rebase|"
    r"apply|restore|revert|cherry-pick|clean|am)|patch|mv|cp|rm|gofmt\s+-w|gofmt\s+-l\s+-w|goimports\s+-w|cargo\s+fmt|black|"
    r"prettier|ruff\s+(?:format|check\s+.*--fix)|eslint\s+.*--fix|tee|npm\s+(?:i|install|ci)|go\s+(?:mod|get|generate|fmt))\b"
    r"|(?<![0-9&<>-])>{1,2}\s*(?!/dev/|&)[\w./~\"']")
END = 1 << 30


@dataclass(frozen=True, slots=True)
class Reading:
    """A file, or a part of one, that is read."""

    path: str
    lines: tuple[int, int] | None = None
    """Lines `[first, stop)`; None: the whole file."""

    def covers(self, other: Reading) -> bool:
        """Whether every line of the other is among its own."""
        if self.lines is None:
            return True
        return other.lines is not None and self.lines[0] <= other.lines[0] and other.lines[1] <= self.lines[1]


def command_words(command: str) -> str:
    """The command without what it creates (here-documents, commit messages), names of programs and options."""
    created = _MESSAGE.sub(" ", _HEREDOC.sub(" ", command)) if "<<" in command or " -" in command else command
    return _OPTION.sub(" ", _PROGRAM.sub(" ", created))


def paths_of(wants: Iterable[Want]) -> Iterator[str]:
    """Files and folders among what a command asks for."""
    spans = (span for want in wants for span in (want.parts or (want.whole,)))
    return iter(dict.fromkeys(s.text for s in spans if s.kind == "path" and "://" not in s.text))


def command_reads(command: str) -> Iterator[Reading]:
    """Files that a command prints as they are: `cat f`, `sed -n 1,80p f`, `head -n 20 f`, also behind `cd … &&`."""
    if len(command) > 500 or ">" in command:
        return
    for segment in _SEGMENT.split(command):
        found = _reading(segment.strip())
        if found is not None:
            yield found


def may_change_files(command: str) -> bool:
    """Whether a command looks as if it changes files."""
    return _CHANGES.search(command) is not None


def _reading(segment: str) -> Reading | None:
    if _FOLDER.match(segment):
        return None
    if found := _PRINTED.match(segment):
        first = int(found.group(1))
        stop = found.group(2)
        return Reading(_bare(found.group(3)), (first, END if stop == "$" else int(stop or first) + 1))
    if found := _HEAD.match(segment):
        return Reading(_bare(found.group(2)), (1, int(found.group(1)) + 1))
    if found := _WHOLE.match(segment):
        return Reading(_bare(found.group(1)))
    return None


def _bare(path: str) -> str:
    return path.strip("\"'")
