"""The real Pi coding agent, unmodified, against `rewindow serve`: what it sends is what our preset of it says.

Its home and workspace are temporary; the only tool it is made to run reads files there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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
QUIET = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
PRESET = "pi-1.6:reserve=2000,tail_tokens=3000"


@pytest.fixture(scope="module")
def pi(install: Callable[[str, str], Any]) -> Any:
    """Pi, installed once for this user."""
    return install(PACKAGE, VERSION)


class Bench:
    """A session that reads files, the files, a home for Pi, and a script that starts it on a prompt."""

    def __init__(self, folder: Path, pi: Any, turns: int, reads: int) -> None:
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
                         f'[ "$REWINDOW_TURN" = 1 ] && again= || again=-c\nexec {self.pi.node} {self.pi.folder}/dist/cli.js --offline '
                         '-p --provider rewindow --model recorded $again "$1"\n')
        command = [sys.executable, "-m", "replay.cli", "serve", "../session.json", "--record", "../lane", "--usage",
                   "bytes/4", "-p", PRESET, "--window", "16000", "--json", *options, "--", "sh", str(start), "{prompt}"]
        done = subprocess.run(command, cwd=self.folder / "work", capture_output=True, text=True, timeout=300, check=False,
                              env=os.environ | QUIET | {"PYTHONPATH": str(ROOT), "HOME": str(self.folder / "home")})
        assert 0 == done.returncode, done.stderr
        # What the harness itself prints stands before the report.
        report: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n"):])
        return report


def test_pi_sends_what_its_preset_says(pi: Any, tmp_path: Path) -> None:
    """Four turns in four processes with two compactions: every request equals the preset's view."""
    told = Bench(tmp_path, pi, turns=4, reads=9).run()
    judged = verify_capture(tmp_path / "lane")
    recorded = Session(read_capture(tmp_path / "lane"), FixedCounter(())).recorded

    assert (40, []) == (told["steps_served"], told["divergences"])
    assert 2 <= sum(e.kind == "full" for e in recorded.events)
    assert (PRESET, 40) == (judged.preset, judged.views)
    assert judged.equal + judged.explained == judged.views, judged.wrong


@pytest.mark.parametrize("api", ["openai-completions", "openai-responses", "anthropic-messages"])
def test_pi_recovers_from_a_refusal_in_every_protocol(pi: Any, tmp_path: Path, api: str) -> None:
    """Pi knows the context-length error of each protocol, compacts, and goes on in the same run."""
    told = Bench(tmp_path, pi, turns=1, reads=9).run("--refuse", "8", api=api)
    judged = verify_capture(tmp_path / "lane")

    assert {"step": 10, "refused": 1} == {k: told["by_kind"][k] for k in ("step", "refused")}
    assert {8: 1} == read_capture(tmp_path / "lane").extra["refusals"]
    assert 1 <= told["by_kind"]["summary"]
    assert judged.equal + judged.explained == judged.views == 11, judged.wrong
