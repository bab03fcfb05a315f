"""What a session had learnt of each file by a given step, and whether it read the file again afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evals.spans_files import Act
from evals.spans_paths import same_path
from evals.spans_shell import Reading
from evals.watch import Study

FORCED_WITHIN = 2
"""Steps after a read within which an edit of the file may be why a harness demanded it."""


@dataclass(slots=True)
class KnownFile:
    """A file that was read or changed."""

    path: str
    blocks: list[int] = field(default_factory=list)
    """Blocks that show its content or a change of it, in order."""
    steps: list[int] = field(default_factory=list)
    """Positions of the steps that brought them."""
    edited: int | None = None
    """Position of the last step that changed it."""
    readings: list[Reading] = field(default_factory=list)

    def overlaps(self, reading: Reading) -> bool:
        """Whether lines that are read now had been seen or changed before; a change is taken for the whole file."""
        return self.edited is not None or any(_overlap(r.lines, reading.lines) for r in self.readings)


def _overlap(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a is None or b is None or (a[0] < b[1] and b[0] < a[1])


def known_files(own: Study, first: int, before: int) -> list[KnownFile]:
    """The files that calls in blocks `[first, before)` read or changed, in the order of their first one."""
    found: dict[str, list[KnownFile]] = {}
    for act in own.evidence.files.acts:
        if act.call < first or act.call >= before or act.failed:
            continue
        step = own.step_of(act)
        if step is not None:
            for path, block, reading in _contents(act):
                if block < before:
                    _note(_file(found, path), block, step, reading)
    return [known for files in found.values() for known in files]


def _contents(act: Act) -> Iterator[tuple[str, int, Reading | None]]:
    if act.result is not None:
        yield from ((r.path, act.result, r) for r in act.deed.readings)
    yield from ((path, act.call, None) for path in dict.fromkeys(act.deed.changes))


def _file(found: dict[str, list[KnownFile]], path: str) -> KnownFile:
    files = found.setdefault(path.rstrip("/").rpartition("/")[2], [])
    known = next((f for f in files if same_path(f.path, path)), None)
    if known is None:
        files.append(known := KnownFile(path))
    return known


def _note(known: KnownFile, block: int, step: int, reading: Reading | None) -> None:
    known.blocks.append(block)
    known.steps.append(step)
    if reading is None:
        known.edited = step
    else:
        known.readings.append(reading)


def reads_again(own: Study, known: KnownFile, step: int, within: int) -> Iterator[tuple[int, bool]]:
    """Reads of content known before a step that has not changed since, in steps `[step, step + within)`.

    Yields each read's step and whether an edit of the file followed so closely that the harness may have forced it.
    """
    before = own.evidence.start_of(step)
    for later in range(step, step + within):
        for number in own.reads_at.get(later, ()):
            read = own.reads[number]
            if not same_path(read.reading.path, known.path) or not known.overlaps(read.reading):
                continue
            if not own.evidence.files.changed_since((known.path,), before - 1, read.act.call):
                yield later, _is_forced(own, known.path, later)


def _is_forced(own: Study, path: str, step: int) -> bool:
    return any(same_path(own.plans[n].attempt.part.path, path)
               for later in range(step, step + FORCED_WITHIN + 1) for n in own.edits_at.get(later, ()))


def injected_texts(own: Study, first: int, stop: int) -> Iterable[str]:
    """Texts that the harness put into log messages `[first, stop)`."""
    return [m.text for m in own.evidence.log.messages[first:stop] if m.origin == "injected"]
