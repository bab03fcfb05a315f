"""A recorded session, an endpoint that answers from it, and real harnesses from the npm index."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from replay.serving.app import served
from replay.serving.build import Settings, build
from replay.serving.endpoint import Endpoint
from replay.testing import Script, summary_message
from replay.transcript import Transcript, Usage

NODE_NEEDED = (22, 19)
NODE_PACKAGE = "22.23.5"
INSTALL_SECONDS = 180
ARGUMENTS = '{"path":"a.py"}'


def recorded() -> Transcript:
    """Two turns: a call, a pair of calls, two answers; the recorded harness compacted before the last step."""
    script = Script(session_id="recorded-session").user("Fix the parser.")
    script.call("read", ARGUMENTS, text="I look at a.py.", usage=Usage(input_uncached=100, cache_read=900, output=20))
    script.result("print(1)").call("read", '{"path":"b.py"}', count=2).result("bee", 0).result("bee again", 1)
    script.say("The parser is fixed.").user("Now the tests.").compacted(summary_message("Parser fixed."), 7,
                                                                        summary="Parser fixed.")
    return script.say("The tests pass.").build()


@dataclass
class Running:
    """An endpoint on a port."""

    url: str
    endpoint: Endpoint
    told: list[str] = field(default_factory=list)


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Starts endpoints: `serve(limit=100)`, `serve(another_transcript)`."""
    with contextlib.ExitStack() as stack:
        def start(transcript: Transcript | None = None, **settings: Any) -> Running:
            told: list[str] = []
            endpoint = build(transcript or recorded(), Settings(**settings), told.append)
            return Running(stack.enter_context(served(endpoint)), endpoint, told)
        yield start


@pytest.fixture
def session() -> Transcript:
    """The recorded session."""
    return recorded()


@dataclass(frozen=True)
class Harness:
    """A Node that is new enough, and the folder of a harness's package."""

    node: str
    folder: Path


@pytest.fixture(scope="session")
def install() -> Callable[[str, str], Harness]:
    """Installs `install(package, version)` once for this user, and with it a Node where the machine's is too old.

    The test is skipped where Node or the package index is missing.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node and npm are not installed")
    base = Path(os.environ.get("REWINDOW_HARNESSES", Path.home() / ".cache" / "rewindow-harnesses"))

    def fetch(package: str, version: str) -> Harness:
        base.mkdir(parents=True, exist_ok=True)
        with (base / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            home = _installed(npm, base, package, version)
            node = "node" if _is_new_enough("node") else _packaged_node(npm, base)
        return Harness(node, home / "node_modules" / package)
    return fetch


def _installed(npm: str, base: Path, package: str, version: str) -> Path:
    folder = base / f"{package.rpartition('/')[2]}-{version}"
    if folder.is_dir():
        return folder
    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries", "1", "--fetch-timeout", "60000",
               f"{package}@{version}"]
    try:
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {package} {version} in {INSTALL_SECONDS} s")
    if done.returncode:
        pytest.skip(f"npm cannot install {package} {version}: {done.stderr.strip()[-200:] or 'no reason given'}")
    scratch.rename(folder)
    return folder


def _packaged_node(npm: str, base: Path) -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        pytest.skip(f"the harness needs Node {NODE_NEEDED[0]}.{NODE_NEEDED[1]}")
    name = f"node-linux-{machine}"
    found = str(_installed(npm, base, name, NODE_PACKAGE) / "node_modules" / name / "bin" / "node")
    if not _is_new_enough(found):
        pytest.skip(f"Node {NODE_PACKAGE} does not run here")
    return found


def _is_new_enough(node: str) -> bool:
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return found is not None and tuple(map(int, found.groups())) >= NODE_NEEDED
