"""The real Qwen Code, unmodified, against `rewindow serve`: a second harness, with a compactor of another kind.

Its summary request shares the prompt cache, so it offers tools, and after a compaction it puts back the files that it
read last. Its home and workspace are temporary; the only tool it is made to run reads files there.
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
VERSION = "0.24.4"
WINDOW = 72_000
READS = 24
SETTINGS = {"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": False}, "ide": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
            "model": {"name": "recorded", "generationConfig": {"contextWindowSize": WINDOW, "timeout": 30_000, "maxRetries": 0}}}


def read(work: Path, number: int) -> list[dict[str, Any]]:
    """A file of the workspace, and the call that reads it with its result."""
    name, call_id = f"f{number:03}.txt", f"call_{number:04}"
    text = "".join(f"{name} line {row:04}: value {row * 7919 % 100_000:06}\n" for row in range(260))
    (work / name).write_text(text)
    function = {"name": "read_file", "arguments": json.dumps({"file_path": str(work / name)})}
    return [{"role": "assistant", "content": f"Looking at {name}.",
             "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call_id, "content": text}]


def test_qwen_code_sends_what_its_preset_says(install: Callable[[str, str], Any], tmp_path: Path) -> None:
    """One turn of 24 reads with at least two compactions: every request equals the preset's view."""
    qwen, work, home = install("@qwen-code/qwen-code", VERSION), tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (home / ".qwen").mkdir(parents=True)
    (home / ".qwen" / "settings.json").write_text(json.dumps(SETTINGS))
    reads = [message for number in range(READS) for message in read(work, number)]
    (tmp_path / "session.json").write_text(json.dumps({"messages": [
        {"role": "user", "content": "Please look at the files."}, *reads, {"role": "assistant", "content": "All is read."}]}))
    done = subprocess.run(
        [sys.executable, "-m", "replay.cli", "serve", "../session.json", "--record", "../lane", "--usage", "bytes/4", "-p",
         "qwen-code-0.24", "--window", str(WINDOW), "--tools", "read_file", "--", qwen.node, str(qwen.folder / "cli.js"),
         "-y", "--auth-type", "openai", "-p", "{prompt}"],
        cwd=work, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(home), "OPENAI_MODEL": "recorded",
                          "QWEN_TELEMETRY_ENABLED": "false"})
    kinds = json.loads((tmp_path / "lane" / "config.json").read_text())["kinds"]
    judged = verify_capture(tmp_path / "lane")

    assert 0 == done.returncode, done.stderr
    assert (READS + 1, True) == (kinds.count("."), kinds.count("S") >= 2)
    assert judged.equal + judged.explained == judged.views == READS + 1, judged.wrong
