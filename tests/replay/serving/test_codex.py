"""The real Codex, unmodified, against `rewindow serve`: OpenAI's Responses protocol, streamed.

Its home and workspace are temporary; the only command that it is made to run prints files there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replay.policy.verify import verify_capture

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[3]
VERSION = "0.171.0"
TURNS, READS = 2, 9
SETTINGS = """model = "recorded"
model_provider = "rewindow"
model_context_window = 60000
model_auto_compact_token_limit = 20000
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.rewindow]
name = "rewindow"
base_url = "URL"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"""


class Bench:
    """A session of commands that print files, the files, a home for Codex, and a script that starts it on a prompt."""

    def __init__(self, folder: Path, codex: Any) -> None:
        self.folder = folder
        (folder / "work").mkdir()
        (folder / "home").mkdir()
        messages: list[dict[str, Any]] = []
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f"Turn {turn + 1}: please look at the next files."})
            for number in range(turn * READS, (turn + 1) * READS):
                messages += self._print(number)
            messages.append({"role": "assistant", "content": f"Turn {turn + 1} is done."})
        (folder / "session.json").write_text(json.dumps({"messages": messages}))
        (folder / "settings").write_text(SETTINGS)
        (folder / "start.sh").write_text(
            f'sed "s#URL#$OPENAI_BASE_URL#" {folder}/settings > $CODEX_HOME/config.toml\n'
            f'[ "$REWINDOW_TURN" = 1 ] && again= || again="resume --last"\n'
            f'exec {codex.node} {codex.folder}/bin/codex.js exec --skip-git-repo-check $again "$1" < /dev/null\n')

    def _print(self, number: int) -> list[dict[str, Any]]:
        name, call_id = f"f{number:03}.txt", f"call_{number:04}"
        text = "".join(f"{name} line {row:04}: value {row * 7919 % 100_000:06}\n" for row in range(150))
        (self.folder / "work" / name).write_text(text)
        function = {"name": "exec_command", "arguments": json.dumps({"cmd": f"cat {name}"})}
        return [{"role": "assistant", "content": f"Looking at {name}.",
                 "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": call_id, "content": text}]

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run Codex once for each prompt. It wraps each output with the time that it took, so results may differ."""
        home = self.folder / "home"
        command = [sys.executable, "-m", "replay.cli", "serve", "../session.json", "--record", "../lane", "--usage",
                   "bytes/4", "-p", f"codex:at={20_000 / 60_000}", "--window", "60000", "--any-result", *options, "--",
                   "sh", str(self.folder / "start.sh"), "{prompt}"]
        return subprocess.run(command, cwd=self.folder / "work", capture_output=True, text=True, timeout=300, check=False,
                              env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(home), "CODEX_HOME": str(home)})

    @property
    def kinds(self) -> str:
        """What each request was for."""
        found: str = json.loads((self.folder / "lane" / "config.json").read_text())["kinds"]
        return found


@pytest.fixture
def bench(install: Callable[[str, str], Any], tmp_path: Path) -> Bench:
    """A place for a run."""
    return Bench(tmp_path, install("@openai/codex", VERSION))


def test_codex_sends_what_its_preset_says(bench: Bench) -> None:
    """Two turns in two processes, a compaction in each: every request equals the preset's view."""
    done = bench.run()
    judged = verify_capture(bench.folder / "lane")

    assert 0 == done.returncode, done.stderr
    assert (TURNS * (READS + 1), 2) == (bench.kinds.count("."), bench.kinds.count("S"))
    assert judged.equal + judged.explained == judged.views == TURNS * (READS + 1), judged.wrong


def test_codex_gives_up_a_turn_that_is_too_long(bench: Bench) -> None:
    """It knows the error inside a stream and ends the turn; the next prompt then comes early, and that stops the run."""
    done = bench.run("--refuse", "5")

    assert 1 == done.returncode
    assert "....XX" == bench.kinds
    assert "context window" in done.stderr
    assert "step 5: prompt: a prompt is in the request that was recorded at a later step" in done.stderr
