"""The real Pi coding agent, unmodified, against `rewindow serve`: what it sends is what our preset of it says.

Pi comes from the npm index into a folder of its own under the user's cache, and with it a Node that is new enough
where the machine's is not. Its home and workspace are temporary; the only tool it is made to run reads files there.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replay.engine import Session
from replay.policy.verify import verify_capture
from replay.readers.wire import read_capture
from replay.testing import FixedCounter

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "@earendil-works/pi-coding-agent"
VERSION = "1.6.0"
NODE_NEEDED = (22, 19)
NODE_PACKAGE = "22.23.5"
INSTALL_SECONDS = 240
QUIET = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
PRESET = "pi-1.6:reserve=2000,tail_tokens=3000"


@dataclass(frozen=True)
class Pi:
    """Where Node and Pi's command line are."""

    node: str
    cli: str


@pytest.fixture(scope="module")
def pi() -> Pi:
    """Pi, installed once for this user; the test is skipped where Node or the package index is missing."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node and npm are not installed")
    base = Path(os.environ.get("REWINDOW_HARNESSES", Path.home() / ".cache" / "rewindow-harnesses"))
    folder = base / f"pi-{VERSION}"
    base.mkdir(parents=True, exist_ok=True)
    with (base / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(npm, folder)
    return Pi(_node(folder), str(folder / "node_modules" / PACKAGE / "dist" / "cli.js"))


def _install(npm: str, folder: Path) -> None:
    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    wanted = [f"{PACKAGE}@{VERSION}", *([] if _is_new_enough("node") else [_node_package()])]
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries", "1", *wanted]
    try:
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install Pi {VERSION} in {INSTALL_SECONDS} s")
    if done.returncode:
        pytest.skip(f"npm cannot install Pi {VERSION}: {done.stderr.strip()[-200:] or 'no reason given'}")
    scratch.rename(folder)


def _node_package() -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        pytest.skip(f"Pi {VERSION} needs Node {NODE_NEEDED[0]}.{NODE_NEEDED[1]}")
    return f"node-linux-{machine}@{NODE_PACKAGE}"


def _node(folder: Path) -> str:
    if _is_new_enough("node"):
        return "node"
    found = next(iter(folder.glob("node_modules/node-linux-*/bin/node")), None)
    if found is None or not _is_new_enough(str(found)):
        pytest.skip(f"Pi {VERSION} needs Node {NODE_NEEDED[0]}.{NODE_NEEDED[1]}; remove {folder} to install it anew")
    return str(found)


def _is_new_enough(node: str) -> bool:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return found is not None and tuple(map(int, found.groups())) >= NODE_NEEDED


class Bench:
    """A session that reads files, the files, a home for Pi, and a script that starts it on a prompt."""

    def __init__(self, folder: Path, pi: Pi, turns: int, reads: int) -> None:
        self.folder, self.pi = folder, pi
        (folder / "work").mkdir()
        (folder / "home" / ".pi" / "agent").mkdir(parents=True)
        messages: list[dict[str, Any]] = []
        for turn in range(turns):
            messages.append({"role": "user", "content": f"Turn {turn + 1}: please look at the next files."})
            for number in range(turn * reads, (turn + 1) * reads):
                messages += self._read(f"f{number:03}.txt", number)
            messages.append({"role": "assistant", "content": f"Turn {turn + 1} is done."})
        (folder / "session.json").write_text(json.dumps({"messages": messages}))

    def _read(self, name: str, number: int) -> Iterator[dict[str, Any]]:
        rows = (3000, 800, 5000, 2000)[number % 4] // 30
        text = "".join(f"{name} line {row:04}: value {row * 7919 % 100_000}\n" for row in range(rows))
        (self.folder / "work" / name).write_text(text)
        function = {"name": "read", "arguments": json.dumps({"path": name})}
        yield {"role": "assistant", "content": f"Looking at {name}.",
               "tool_calls": [{"id": f"call_{number:04}", "type": "function", "function": function}]}
        yield {"role": "tool", "tool_call_id": f"call_{number:04}", "content": text}

    def run(self, *options: str, api: str = "openai-completions") -> dict[str, Any]:
        """Run Pi once for each prompt; what the command says at its end."""
        agent = self.folder / "home" / ".pi" / "agent"
        compaction = {"enabled": True, "reserveTokens": 2000, "keepRecentTokens": 3000}
        (agent / "settings.json").write_text(json.dumps({"compaction": compaction, "enableInstallTelemetry": False}))
        model = {"id": "recorded", "name": "recorded", "reasoning": False, "input": ["text"], "contextWindow": 16_000,
                 "maxTokens": 1000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
        url = "$REWINDOW_URL" if api == "anthropic-messages" else "$OPENAI_BASE_URL"
        models = {"providers": {"rewindow": {"baseUrl": "URL", "api": api, "apiKey": "none", "models": [model]}}}
        start = self.folder / "start.sh"
        start.write_text(f"cat > $HOME/.pi/agent/models.json <<END\n{json.dumps(models).replace('URL', url)}\nEND\n"
                         f'[ "$REWINDOW_TURN" = 1 ] && again= || again=-c\nexec {self.pi.node} {self.pi.cli} --offline '
                         '-p --provider rewindow --model recorded $again "$1"\n')
        command = [sys.executable, "-m", "replay.cli", "serve", "../session.json", "--record", "../lane", "--usage",
                   "bytes/4", "-p", PRESET, "--window", "16000", "--json", *options, "--", "sh", str(start), "{prompt}"]
        done = subprocess.run(command, cwd=self.folder / "work", capture_output=True, text=True, timeout=300, check=False,
                              env=os.environ | QUIET | {"PYTHONPATH": str(ROOT), "HOME": str(self.folder / "home")})
        assert 0 == done.returncode, done.stderr
        # What the harness itself prints stands before the report.
        report: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n"):])
        return report


def test_pi_sends_what_its_preset_says(pi: Pi, tmp_path: Path) -> None:
    """Four turns in four processes with two compactions: every request equals the preset's view."""
    told = Bench(tmp_path, pi, turns=4, reads=9).run()
    judged = verify_capture(tmp_path / "lane")
    recorded = Session(read_capture(tmp_path / "lane"), FixedCounter(())).recorded

    assert (40, []) == (told["steps_served"], told["divergences"])
    assert 2 <= sum(e.kind == "full" for e in recorded.events)
    assert (PRESET, 40) == (judged.preset, judged.views)
    assert judged.equal + judged.explained == judged.views, judged.wrong


@pytest.mark.parametrize("api", ["openai-completions", "openai-responses", "anthropic-messages"])
def test_pi_recovers_from_a_refusal_in_every_protocol(pi: Pi, tmp_path: Path, api: str) -> None:
    """Pi knows the context-length error of each protocol, compacts, and goes on in the same run."""
    told = Bench(tmp_path, pi, turns=1, reads=9).run("--refuse", "8", api=api)
    judged = verify_capture(tmp_path / "lane")

    assert {"step": 10, "refused": 1} == {k: told["by_kind"][k] for k in ("step", "refused")}
    assert {8: 1} == read_capture(tmp_path / "lane").extra["refusals"]
    assert 1 <= told["by_kind"]["summary"]
    assert judged.equal + judged.explained == judged.views == 11, judged.wrong
