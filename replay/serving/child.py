"""Runs a harness against the endpoint: one process, or one for each recorded prompt."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from replay.errors import ConfigError
from replay.serving.endpoint import Endpoint

PROMPT = "{prompt}"
"""An argument of the command that stands for a recorded prompt."""
NO_KEY = "rewindow-needs-no-key"


def environment(address: str) -> dict[str, str]:
    """What a harness is told: where the endpoint is, under the names that SDKs look for, and a key that is none."""
    return {"REWINDOW_URL": address, "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_BASE": f"{address}/v1",
            "ANTHROPIC_BASE_URL": address, "OPENAI_API_KEY": NO_KEY, "ANTHROPIC_API_KEY": NO_KEY}


def run(command: Sequence[str], prompts: Sequence[str], endpoint: Endpoint, address: str) -> int:
    """Run the command, once for each prompt where it asks for prompts; the first exit code that is not 0.

    A prompt is handed over as one argument and as REWINDOW_PROMPT, never through a shell. One that begins with a
    dash gets a space in front, so that no harness takes it for an option. Raises ConfigError without the program.
    """
    if shutil.which(command[0]) is None:
        raise ConfigError("serve", command[0], "no such program; what stands behind -- is the command of the harness")
    failed = 0
    for turn, (words, told) in enumerate(_runs(command, prompts), 1):
        code = subprocess.run(words, check=False, env=os.environ | environment(address)  # noqa: S603 - the user's own
                              | {"REWINDOW_TURN": str(turn)} | told).returncode
        endpoint.new_process(command, code)
        failed = failed or code
        if endpoint.tally.stopped is not None:
            break
    return failed


def _runs(command: Sequence[str], prompts: Sequence[str]) -> Iterator[tuple[list[str], dict[str, str]]]:
    if PROMPT not in command:
        yield list(command), {}
        return
    for prompt in prompts:
        said = f" {prompt}" if prompt.startswith("-") else prompt
        yield [said if word == PROMPT else word for word in command], {"REWINDOW_PROMPT": said}
