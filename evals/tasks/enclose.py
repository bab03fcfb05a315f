"""Run one command in an enclosure of Linux namespaces. A script, started with a plan's file, never imported.

The command sees a root of its own: the system's programs read-only, empty `/tmp` and `/dev/shm` of bounded size, the
workspace, and nothing else of the disk; no network but a dead loopback; only its own processes, of which there may be
so many; a file may grow so far, a process use so much memory and processor time. When the command ends, or this script
is killed, the kernel ends every process in the enclosure. Started by root, the command runs under a user id that
owns nothing else; started by a user, in a user namespace of that user.

A plan that is not `enclosed` gets the limits alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("ld.so.cache", "ld.so.conf", "alternatives", "localtime", "passwd", "group", "nsswitch.conf")
DEVICES = ("null", "zero", "full", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    given = [a.encode() if isinstance(a, str) else a for a in arguments]
    if getattr(_libc, name)(*given) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}", str(arguments[:2]))


def _prctl(option: int, value: int) -> None:
    """Linux's switches for a process; elsewhere there are none."""
    if sys.platform.startswith("linux"):
        _libc.prctl(option, value, 0, 0, 0)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    _call("mount", source, target, kind, ctypes.c_ulong(flags), data)


def _bind(source: str, target: Path, writable: bool = False) -> None:
    """The same file or folder at another place; what its own mount forbids stays forbidden."""
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(source, str(target), None, MS_BIND | MS_REC)
    if not writable:
        _mount("none", str(target), None, MS_BIND | MS_REMOUNT | MS_RDONLY | _locked(target))


def _locked(target: Path) -> int:
    """The flags that a user namespace must keep."""
    return os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | 8 | 1024 | 2048 | (1 << 21))


def _new_root(plan: dict[str, Any]) -> None:
    """A root that holds nothing but what the command may see; the old one is taken away."""
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    root = Path(plan["scratch"])
    _mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m")
    for path in SYSTEM:
        if Path(path).is_symlink():
            (root / path[1:]).symlink_to(Path(path).readlink())
        elif Path(path).is_dir():
            _bind(path, root / path[1:])
    for name in ETC:
        if Path("/etc", name).exists():
            _bind(f"/etc/{name}", root / "etc" / name)
    for source, target, writable in plan["binds"]:
        _bind(source, root / target[1:], writable)
    _small_folders(root, plan)
    _enter(root)


def _small_folders(root: Path, plan: dict[str, Any]) -> None:
    for name in ("dev", "proc", "dev/shm", "tmp", "var/tmp", "run/bin", "old"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in DEVICES:
        _bind(f"/dev/{name}", root / "dev" / name, True)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (root / "dev" / name).symlink_to(target)
    (root / "run/bin/python3").symlink_to(plan["python"])
    for name in ("tmp", "dev/shm", "var/tmp"):
        size = f"mode=1777,size={plan['scratch_mb']}m"
        _mount("tmpfs", str(root / name), "tmpfs", MS_NOSUID | MS_NODEV, size)
    with suppress(OSError):  # inside some containers no new /proc may be mounted: the folder then stays empty
        _mount("proc", str(root / "proc"), "proc", MS_NOSUID | MS_NODEV | 8)


def _enter(root: Path) -> None:
    os.chdir(root)
    if _libc.pivot_root(b".", b"old") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    os.chdir("/")
    _call("umount2", "/old", MNT_DETACH)
    Path("/old").rmdir()
    _mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def _limits(plan: dict[str, Any]) -> None:
    megabyte = 1 << 20
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, plan["file_mb"] * megabyte),
                       (resource.RLIMIT_CPU, plan["cpu_seconds"]), (resource.RLIMIT_AS, plan["memory_mb"] * megabyte),
                       (resource.RLIMIT_NOFILE, 256), (resource.RLIMIT_NPROC, plan["processes"])):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(*(() if plan["enclosed"] else (OSError, ValueError))):  # some systems lack one or the other
            resource.setrlimit(kind, (most, most))


def _command(plan: dict[str, Any]) -> None:
    """Become the command: limited, without rights, in the workspace."""
    os.chdir(plan["folder"])
    if plan["enclosed"]:
        os.setsid()
    _limits(plan)
    if plan["uid"] is not None:
        os.setgroups([])
        os.setresgid(plan["uid"], plan["uid"], plan["uid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    os.execvpe(plan["argv"][0], plan["argv"], plan["environment"])  # noqa: S606 - the very purpose


def _reap(child: int) -> int:
    """Wait for the command as the enclosure's first process, which inherits every orphan."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _first_process(plan: dict[str, Any]) -> int:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _new_root(plan)
    child = os.fork()
    if child == 0:
        _command(plan)
    return _shell_code(_reap(child))


def _shell_code(code: int) -> int:
    return 128 - code if code < 0 else code


def _own_namespaces(uid: int | None) -> None:
    shared = NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET
    if uid is not None:
        _call("unshare", shared)
        return
    me, mine = os.getuid(), os.getgid()
    _call("unshare", shared | NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{me} {me} 1")
    Path("/proc/self/gid_map").write_text(f"{mine} {mine} 1")


def main() -> int:
    """Exit code of the command; 125 with a line on stderr where the enclosure could not be made."""
    plan = json.loads(Path(sys.argv[1]).read_bytes())
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        if not plan["enclosed"]:
            _command(plan)
        _own_namespaces(plan["uid"])
        first = os.fork()
        if first == 0:
            os._exit(_guarded(plan))
        # Told to end, it ends the enclosure and waits: the first process is gone only when all others are.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        return _shell_code(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
    except OSError as error:
        return _failed(error)


def _guarded(plan: dict[str, Any]) -> int:
    try:
        return _first_process(plan)
    except OSError as error:
        return _failed(error)


def _failed(error: OSError) -> int:
    os.write(2, f"enclosure: {error}\n".encode())
    return 125


if __name__ == "__main__":
    sys.exit(main())
