"""Settings of captured runs of Codex, OpenCode, Gemini CLI, Qwen Code and Cline."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from replay.policy.base import Capacity
from replay.policy.capture_run import Run
from replay.readers.common import whole
from replay.readers.native import mapping, objects

_LIMIT = re.compile(r"^model_auto_compact_token_limit\s*=\s*(\d+)", re.MULTILINE)


def codex(config: Mapping[str, Any]) -> Run:
    """Codex: the limit of its settings file, and where the person asked for a compaction."""
    window = whole(config.get("window"))
    found = _LIMIT.search(str(mapping(config.get("harness_config_files")).get(".codex/config.toml")))
    level = int(found[1]) if found else window * 9 // 10
    return Run(preset="codex", capacity=Capacity(window=window),
               settings={"at": level / window, "trigger.before_prompts": _asked(config)})


def _asked(config: Mapping[str, Any]) -> list[int]:
    """Numbers of the prompts in front of which `/compact` was typed."""
    typed = [a for command in objects(config.get("commands")) for a in command.get("argv") or ()]
    prompts = [p for p in config.get("prompts") or () if isinstance(p, str)]
    said = [a for a in typed if a == "/compact" or a in prompts]
    return [1 + sum(b != "/compact" for b in said[:i]) for i, a in enumerate(said) if a == "/compact"]


def opencode(config: Mapping[str, Any]) -> Run:
    """OpenCode: the output limit of its model, and whether it prunes."""
    settings = mapping(mapping(config.get("harness_config_files")).get(".config/opencode/opencode.json"))
    providers = mapping(settings.get("provider")).values()
    limits = [mapping(mapping(m).get("limit")) for p in providers for m in mapping(mapping(p).get("models")).values()]
    output = min(whole(limits[0].get("output")) if limits else 0, 32_000)
    name = "opencode" if mapping(settings.get("compaction")).get("prune") else "opencode-no-prune"
    return Run(preset=name, capacity=Capacity(window=whole(config.get("window")), output_reserve=output))


def gemini(config: Mapping[str, Any]) -> Run:
    """Gemini CLI: the threshold of its settings file."""
    settings = mapping(mapping(config.get("harness_config_files")).get(".gemini/settings.json"))
    at = mapping(settings.get("model")).get("compressionThreshold")
    return Run(preset="gemini-cli", capacity=Capacity(window=whole(config.get("window"))),
               settings={"at": at} if isinstance(at, float) else {})


def qwen(config: Mapping[str, Any]) -> Run:
    """Qwen Code: versions by their compaction code; the window is all that runs set."""
    version = str(config.get("version") or "").rpartition(".")[0]
    return Run(preset=f"qwen-code-{version}", capacity=Capacity(window=whole(config.get("window"))))


def cline(config: Mapping[str, Any]) -> Run:
    """Cline: the strategy is named on its command line; its window limits the input of summaries too."""
    arguments = [a for command in objects(config.get("commands")) for a in command.get("argv") or ()]
    window = whole(config.get("window"))
    if ("--compaction", "basic") in pairwise(arguments):
        return Run(preset="cline-basic", capacity=Capacity(window=window))
    return Run(preset="cline-agentic", capacity=Capacity(window=window), settings={"input_limit.tokens": window})


MORE_RUNS: Mapping[str, Callable[[Mapping[str, Any]], Run | None]] = {
    "codex": codex, "opencode": opencode, "gemini": gemini, "qwen": qwen, "cline": cline}
"""A capture's harness to what replays it."""
