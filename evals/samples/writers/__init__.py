"""Writers: a recording as the bytes of a harness's own session file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evals.samples.ids import Ids
from evals.samples.recording import Recording
from evals.samples.writers import claude_code, codex, decode, mycodeagent, openai_chat, pi

WRITERS: Mapping[str, Callable[[Recording, Ids], bytes]] = {
    "claude-code": claude_code.write, "codex": codex.write, "pi": pi.write, "mycodeagent": mycodeagent.write,
    "decode": decode.write, "openai-chat": openai_chat.write,
}
"""Format name to its writer."""

SUFFIXES: Mapping[str, str] = {"openai-chat": ".json"}
"""Formats whose files are not JSON lines."""

__all__ = ["SUFFIXES", "WRITERS"]
