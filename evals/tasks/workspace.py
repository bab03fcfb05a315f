"""A folder of a trial's own in which commands run under limits, enclosed where the system allows it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from evals.tasks.watch import Ended, Watch
from replay.errors import ConfigError

STORED, WORKING = ".py.txt", ".py"
"""Python sources under `datasets` carry a second suffix; a copy drops it."""
_SCRIPT = Path(__file__).with_name("enclose.py")
_TOOLBOX = Path(__file__).with_name("toolbox.py")
_PREFIX = "rewindow-trial-"
STALE_SECONDS = 120.0
"""A folder younger than this may belong to a process that is about to hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a command may take."""

    seconds: float = 60.0
    output_bytes: int = 200_000
    """Beyond so much output the command is ended."""
    processes: int = 64
    file_mb: int = 64
    """Size that one file may reach."""
    disk_mb: int = 256
    """Size that the whole workspace may reach; looked at twice a second."""
    memory_mb: int = 2048
    """Of each process."""
    scratch_mb: int = 64
    """Of /tmp, which begins empty for every command."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended."""

    code: int
    """Exit code; 137 where it was ended."""
    output: str
    """What it wrote, both streams as they came, cut at the limit."""
    ended: Ended | None = None
    """The limit that ended it: `time`, `output` or `disk`."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder of ours that a command may read."""

    source: Path
    target: str
    """Where it stands in the enclosure."""


class Workspace:
    """A trial's folder. Made by `workspace`, which also removes it."""

    def __init__(self, base: Path, limits: Limits, *, enclosed: bool, name: str = "") -> None:
        self.base, self.limits, self.enclosed = base, limits, enclosed
        self._name = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
        self.folder = base / "workspace"
        self.uid = (1 << 30) + secrets.randbelow(1 << 29) if enclosed and os.geteuid() == 0 else None
        for name in ("workspace", "root"):
            (base / name).mkdir()
        self._give(self.folder)

    @property
    def shown(self) -> str:
        """The workspace as commands see it."""
        return f"/workspace/{self._name}".rstrip("/") if self.enclosed else str(self.folder)

    def fill(self, source: Path) -> None:
        """Copy a folder's files in."""
        copy_sources(source, self.folder)
        self.own()

    def own(self) -> None:
        """Give everything in the workspace to the user that its commands run under."""
        self._give(self.folder)

    def _give(self, folder: Path) -> None:
        if self.uid is None:
            return
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def run(self, argv: Sequence[str], *, binds: Sequence[Bind] = (), given: bytes = b"",
            environment: Mapping[str, str] | None = None, seconds: float | None = None) -> Done:
        """Run a command in the workspace. It reads `given`; the caller's environment is not passed on."""
        plan = self.base / f"plan-{secrets.token_hex(4)}.json"
        plan.write_text(json.dumps(self._plan(argv, binds, environment or {})))
        with tempfile.TemporaryFile(dir=self.base) as standard_input:
            standard_input.write(given)
            standard_input.seek(0)
            process = subprocess.Popen(  # noqa: S603 - our own script
                [sys.executable, "-I", "-S", str(_SCRIPT), str(plan)], stdin=standard_input, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True, env={"PATH": os.defpath})
            watch = Watch(process, self.folder, seconds or self.limits.seconds, self.limits.output_bytes,
                          self.limits.disk_mb << 20, enclosed=self.enclosed)
            code, output, ended = watch.result()
        plan.unlink()
        return Done(code, output.decode("utf-8", "replace"), ended)

    def tool(self, name: str, arguments: Mapping[str, object]) -> Done:
        """Run a file tool, under the same rules as any command: links that lead out of the workspace lead nowhere."""
        source = _TOOLBOX.read_text(encoding="utf-8")
        return self.run([self._python, "-I", "-S", "-c", source, name], given=json.dumps(arguments).encode())

    @property
    def _python(self) -> str:
        return "/run/bin/python3" if self.enclosed else sys.executable

    def _plan(self, argv: Sequence[str], binds: Sequence[Bind], environment: Mapping[str, str]) -> dict[str, object]:
        limits = self.limits
        path = ("/run/bin", "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
        mounted = [(str(self.folder), self.shown, True), *((str(b.source), b.target, False) for b in binds)]
        return {"enclosed": self.enclosed, "argv": list(argv), "folder": self.shown, "uid": self.uid,
                "scratch": str(self.base / "root"), "binds": mounted + _python_binds(),
                "python": os.path.realpath(sys.executable), "scratch_mb": limits.scratch_mb,
                "file_mb": limits.file_mb, "memory_mb": limits.memory_mb, "cpu_seconds": int(limits.seconds) * 4 + 10,
                "processes": limits.processes if self.uid is not None else limits.processes + _own_processes(),
                "environment": {"PATH": ":".join(path), "HOME": self.shown, "LANG": "C.UTF-8", "TERM": "dumb",
                                "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1",  # noqa: S108 - the enclosure's own
                                **{b.source.name.upper(): b.target if self.enclosed else str(b.source) for b in binds},
                                **environment}}


def _python_binds() -> list[tuple[str, str, bool]]:
    """The interpreter's own folders, where they are not among the system's."""
    return [] if sys.base_prefix.startswith("/usr") else [(sys.base_prefix, sys.base_prefix, False)]


def _own_processes() -> int:
    """Processes of this user: on older systems a limit counts them all."""
    mine, count = os.getuid(), 0
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            count += path.stat().st_uid == mine
    return count


@contextmanager
def workspace(limits: Limits | None = None, *, enclosed: bool = True, name: str = "") -> Iterator[Workspace]:
    """A workspace that is gone when the block ends. `name`: what commands see its folder called.

    Raises ConfigError where it shall be enclosed and cannot be.
    """
    if enclosed and not can_enclose():
        raise ConfigError("workspace", "", "this system allows no enclosure for commands (Linux namespaces); "
                          "--unconfined runs them with your own rights over your files and your network")
    remove_stale()
    base = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with _held(base):
            yield Workspace(base, limits or Limits(), enclosed=enclosed, name=name)
    finally:
        remove(base)


@contextmanager
def _held(base: Path) -> Iterator[None]:
    """Hold a folder: the lock is the system's, so it ends with the process that holds it, however that ends."""
    with FileLock(base / "lock", timeout=0):
        yield


def remove_stale(older_than: float = STALE_SECONDS) -> None:
    """Remove what killed processes of this user left: folders that nobody holds any more."""
    for base in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, Timeout):
            found = base.lstat()
            mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if mine and time.time() - found.st_mtime > older_than:
                with _held(base):
                    pass
                remove(base)


def remove(folder: Path) -> None:
    """Delete a folder, also where folders in it were locked."""
    def unlock(_: object, path: str, __: object) -> None:
        with suppress(OSError):
            Path(path).parent.chmod(stat.S_IRWXU)
            Path(path).chmod(stat.S_IRWXU)
            shutil.rmtree(path) if Path(path).is_dir() and not Path(path).is_symlink() else Path(path).unlink()

    shutil.rmtree(folder, onerror=unlock)


def copy_sources(source: Path, target: Path) -> None:
    """Copy a task's folder; stored Python sources get their working name."""
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            continue
        if place.name.endswith(STORED):
            place = place.with_name(place.name.removesuffix(STORED) + WORKING)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


@cache
def can_enclose() -> bool:
    """Whether commands can be enclosed here; found out by trying."""
    if not sys.platform.startswith("linux"):
        return False
    base = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        tried = Workspace(base, Limits(seconds=20), enclosed=True).run(["/bin/sh", "-c", "echo enclosed"])
        return (tried.code, tried.output.strip()) == (0, "enclosed")
    finally:
        remove(base)


def containment(enclosed: bool) -> str:
    """What keeps commands from the rest of the machine, in words."""
    if not enclosed:
        return ("not enclosed: commands run with your own rights over your files and your network; only time, output, "
                "file size and the workspace's size are limited")
    who = "a user id of their own" if os.geteuid() == 0 else "a user namespace"
    return (f"enclosed by Linux namespaces under {who}: no network, the system read-only, nothing else of the disk "
            "visible; processes, memory, file size, time and output limited")
