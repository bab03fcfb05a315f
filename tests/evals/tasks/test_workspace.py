"""Workspaces: what a command does inside stays inside, ends in time, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.tasks.workspace import Limits, Workspace, can_enclose, containment, remove_stale, workspace

SMALL = Limits(seconds=10, output_bytes=10_000, processes=24, file_mb=2, disk_mb=4, memory_mb=512, scratch_mb=2)

pytestmark = pytest.mark.skipif(not can_enclose(), reason="this system allows no namespaces")


@pytest.fixture
def room() -> Iterator[Workspace]:
    """A small enclosed workspace."""
    with workspace(SMALL) as made:
        yield made


def _sh(room: Workspace, script: str, seconds: float | None = None) -> tuple[int, str, str | None]:
    done = room.run(["/bin/sh", "-c", script], seconds=seconds)
    return done.code, done.output, done.ended


def test_a_command_works_on_the_workspace(room: Workspace) -> None:
    """A command reads and writes files there, with a Python of the same version, and its exit code comes back."""
    (room.folder / "a.txt").write_text("3\n")
    code, output, ended = _sh(room, "python3 -c 'print(int(open(\"a.txt\").read()) + 4)' > b.txt; cat b.txt; exit 5")

    assert (5, "7\n", None) == (code, output, ended)
    assert "7\n" == (room.folder / "b.txt").read_text()


def test_a_fork_bomb_is_contained(room: Workspace) -> None:
    """A program that forks without end gets an error at the limit, and all of its processes are gone afterwards."""
    bomb = ("import os, time\nn = 0\nwhile True:\n    try:\n        n += os.fork() > 0\n"
            "    except OSError:\n        print('refused', flush=True)\n        time.sleep(60)\n")
    (room.folder / "bomb.py").write_text(bomb)
    code, output, ended = _sh(room, "exec python3 bomb.py", 2)

    assert (137, "time") == (code, ended)
    assert "refused" in output
    assert [] == _processes(room)


def _processes(room: Workspace) -> list[str]:
    """Processes that run under the workspace's user, or (for a user) below its folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().decode(errors="replace")
            if path.stat().st_uid == room.uid or str(room.base) in command:
                found.append(command)
        except OSError:
            continue
    return found


def test_endless_output_is_cut(room: Workspace) -> None:
    """A command that never stops writing is ended at once, and so much as the limit is kept."""
    started = time.monotonic()
    code, output, ended = _sh(room, "yes")

    assert (137, "output", 10_000) == (code, ended, len(output))
    assert 5 > time.monotonic() - started


def test_a_file_of_ten_gigabytes_is_refused(room: Workspace) -> None:
    """A file stops at the size that one may reach, wherever it is written."""
    code, _, _ = _sh(room, "head -c 10737418240 /dev/zero > big; head -c 10737418240 /dev/zero > /tmp/big")

    assert code != 0
    assert 2 << 20 >= (room.folder / "big").stat().st_size


def test_many_files_are_stopped_at_the_limit_of_the_disk(room: Workspace) -> None:
    """A command that fills the workspace with small files is ended when the whole is too large."""
    code, _, ended = _sh(room, "i=0; while true; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.05; done")

    assert (137, "disk") == (code, ended)


def test_deleting_everything_deletes_the_workspace_alone(tmp_path: Path) -> None:
    """`rm -rf` of the parent, of home and of the system reaches nothing but the workspace's own files."""
    (tmp_path / "mine.txt").write_text("still here")
    with workspace(SMALL, name="inner") as room:
        beside = room.base / "beside.txt"
        beside.write_text("still here")
        (room.folder / "a.txt").write_text("mine to delete")
        code, _, ended = _sh(room, f"rm -rf /workspace {tmp_path} ~ /etc /lib /usr/bin/env 2>/dev/null; ls /usr/bin/env")

        assert (0, None) == (code, ended)
        assert ["still here"] * 2 == [beside.read_text(), (tmp_path / "mine.txt").read_text()]
        assert [] == list(room.folder.iterdir())


def test_nothing_else_is_visible_or_reachable(room: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the caller, no file of the caller, and no network is there."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-caller")
    script = ("import os, socket\nprint('key-of-the-caller' in str(os.environ))\n"
              f"print(os.path.exists({str(room.base)!r}), os.path.exists({str(Path(__file__))!r}))\n"
              "try:\n    socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as e:\n    print('unreachable' in str(e))\n")
    done = room.run(["python3", "-c", script])

    assert "False\nFalse False\nTrue\n" == done.output


def test_what_stays_behind_a_command_ends_with_it(room: Workspace) -> None:
    """A process that leaves its session does not outlive the command that started it."""
    code, output, _ = _sh(room, "setsid sleep 100 & (setsid sleep 100 > /dev/null 2>&1 &) ; echo started", 5)

    assert (0, "started\n") == (code, output)
    assert [] == _processes(room)


def test_a_workspace_is_removed_with_locked_folders_and_links(tmp_path: Path) -> None:
    """When the block ends everything is gone, also what was locked, and nothing that a link pointed to."""
    (tmp_path / "kept.txt").write_text("kept")
    with workspace(SMALL) as room:
        _sh(room, f"mkdir -p a/b; touch a/b/c; ln -s {tmp_path} link; chmod 000 a/b a")
        base = room.base

    assert not base.exists()
    assert "kept" == (tmp_path / "kept.txt").read_text()


def test_a_killed_caller_leaves_no_process(tmp_path: Path) -> None:
    """When the process that runs a command is killed the command's enclosure ends too."""
    code = ("from evals.tasks.workspace import *\n"
            "with workspace() as room:\n    print(room.base, flush=True)\n    room.run(['sleep', '98.7'])\n")
    caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert caller.stdout is not None
    caller.stdout.readline()
    time.sleep(1)
    caller.kill()
    caller.wait()
    caller.stdout.close()
    until = time.monotonic() + 5
    while time.monotonic() < until and (left := _sleepers()):
        time.sleep(0.1)

    assert [] == left


def test_what_a_killed_caller_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a process that was killed goes when the next one begins; one that is held stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from evals.tasks.workspace import *\nimport time\nwith workspace():\n    print('in', flush=True)\n    time.sleep(60)\n"
    caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert caller.stdout is not None
    caller.stdout.readline()
    with workspace(SMALL) as held:
        remove_stale(0)
        assert 2 == len(list(tmp_path.glob("rewindow-trial-*")))
        caller.kill()
        caller.wait()
        caller.stdout.close()
        remove_stale(0)

        assert [held.base] == list(tmp_path.glob("rewindow-trial-*"))


def _sleepers() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [str(path)] if path.read_bytes() == b"sleep\x0098.7\x00" else []
        except OSError:
            continue
    return found


def test_file_tools_do_not_follow_links_out(room: Workspace, tmp_path: Path) -> None:
    """A link out of the workspace shows nothing, and paths above it are refused with the reason."""
    (tmp_path / "secret.txt").write_text("secret")
    _sh(room, f"ln -s {tmp_path}/secret.txt s; ln -s /etc/passwd p")
    read = [room.tool("read", {"path": path}) for path in ("s", "p", "../x", "/etc/passwd")]

    assert [1] * 4 == [done.code for done in read]
    assert all("outside the workspace" in done.output for done in read)


def test_file_tools_read_write_edit_search_and_list(room: Workspace) -> None:
    """The five file tools do their work and name what is wrong with a call."""
    wrote = room.tool("write", {"path": "a/b.txt", "content": "one\ntwo\ntwo\n"})
    assert (0, "wrote a/b.txt: 3 lines") == (wrote.code, wrote.output)
    assert "two\n" == room.tool("read", {"path": "a/b.txt", "offset": 2, "limit": 1}).output
    assert "the old text occurs 2 times" in room.tool("edit", {"path": "a/b.txt", "old": "two", "new": "2"}).output
    assert 0 == room.tool("edit", {"path": "a/b.txt", "old": "one", "new": "1"}).code
    assert "a/b.txt:1: 1" == room.tool("grep", {"pattern": "^1$"}).output
    assert "b.txt  10 bytes" == room.tool("list", {"path": "a"}).output
    assert (1, "nowhere.txt: no such file or directory") == ((d := room.tool("read", {"path": "nowhere.txt"})).code, d.output)
    assert "unexpected keyword" in room.tool("read", {"file": "a"}).output


def test_containment_is_said_plainly() -> None:
    """The words for a run that is not enclosed do not promise what it does not keep."""
    assert "no network" in containment(True)
    assert "your own rights" in containment(False)
