"""Files of a folder that say nothing new, since another file holds all of their model calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from replay.errors import ReadError
from replay.find import STANDARD_INPUT, Found, read_found
from replay.linking import Link, Scan
from replay.readers.archives import head_of
from replay.transcript import Transcript

_HEAD_BYTES = 1 << 16
_IDS = re.compile(rb'"(?:uuid|id|sessionId|session_id|forked_from_id)"\s*:\s*"([^"\\]{12,100})"')


def without_copies(files: Sequence[Found], reader: str | None = None,
                   read: Callable[[Found, str | None], tuple[Transcript, ...]] = read_found,
                   ) -> tuple[list[Found], list[str]]:
    """The files without those that only repeat others, and in words what was left out or is in two files.

    A file that the user named stays. Only files whose first records name a common id are compared, so that a
    folder without copies is not read twice. `read` reads them.
    """
    gone: set[Path] = set()
    words: list[str] = []
    for group in _kin(files):
        owners, links = _read(group, lambda found: read(found, reader))
        for number, link in enumerate(links):
            if link.counted_in is None or owners[number].path == owners[link.counted_in].path:
                continue
            path, other = owners[number].path, owners[link.counted_in].path
            leave_out = not owners[number].named and all(
                links[n].is_contained for n, owner in enumerate(owners) if owner.path == path)
            if leave_out:
                gone.add(path)
            words.append(f"{path}: {'left out: all' if leave_out else 'some'} of its model calls are also in {other}")
    return [found for found in files if found.path not in gone], list(dict.fromkeys(words))


def _read(group: Sequence[Found], read: Callable[[Found], tuple[Transcript, ...]]) -> tuple[list[Found], list[Link]]:
    """The file of each session of a group, and what the sessions share."""
    scan, owners = Scan(), []
    for found in group:
        try:
            transcripts = read(found)
        except ReadError:
            continue
        for transcript in transcripts:
            scan.add(transcript)
            owners.append(found)
    return owners, scan.links()


def _kin(files: Sequence[Found]) -> Iterator[list[Found]]:
    """Groups of two files or more that are linked by common ids in their first records."""
    root = list(range(len(files)))

    def top(number: int) -> int:
        while root[number] != number:
            root[number] = number = root[root[number]]
        return number

    first: dict[bytes, int] = {}
    for number, found in enumerate(files):
        for name in set(_IDS.findall(_head(found.path))) if found.path != STANDARD_INPUT else ():
            root[top(number)] = top(first.setdefault(name, number))
    groups: dict[int, list[Found]] = {}
    for number, found in enumerate(files):
        groups.setdefault(top(number), []).append(found)
    return (group for group in groups.values() if len(group) > 1)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return head_of(file.read(_HEAD_BYTES), _HEAD_BYTES)
    except OSError:
        return b""
