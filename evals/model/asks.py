"""What is asked of a model and what came back, as plain data that a cache can keep."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

Api = Literal["chat", "responses", "completions"]
BYTES_PER_TOKEN = 3
"""Low on purpose: ordinary text has about four, so an estimate made with it is an upper bound for a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. Equal asks are one request: they share a fingerprint, a cache entry and a bill."""

    model: str
    prompt: str = ""
    system: str = ""
    messages: str = ""
    """JSON of a whole conversation in the chat interface's shape, in the place of `system` and `prompt`."""
    tools: str = ""
    """JSON of the tools that a conversation offers."""
    max_tokens: int = 1_000
    temperature: float = 0.0
    replicate: int = 0
    """Which sample of the same question; sent as the seed."""
    purpose: str = field(default="", compare=False)
    """What it is asked for, such as `summary`; for the bill alone."""
    echo: bool = False
    """Ask for the log-probabilities of the prompt instead of an answer (the completions interface)."""

    def body(self) -> dict[str, Any]:
        """Everything that decides the answer, as plain data."""
        found = asdict(self)
        unused = [name for name in ("messages", "tools") if not found[name]]
        return {name: value for name, value in found.items() if name not in ("purpose", *unused)}

    @property
    def input_tokens(self) -> int:
        """Upper estimate of the input, from its bytes."""
        return math.ceil(self._bytes / BYTES_PER_TOKEN) + 16

    @property
    def _bytes(self) -> int:
        return sum(len(t.encode("utf-8", "replace")) for t in (self.system, self.prompt, self.messages, self.tools))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a provider said that an answer took; estimated where it said nothing."""

    input: int = 0
    cached: int = 0
    """Part of the input that was read from the provider's prompt cache."""
    output: int = 0
    estimated: bool = False

    def __add__(self, other: Spent) -> Spent:
        return Spent(input=self.input + other.input, cached=self.cached + other.cached,
                     output=self.output + other.output, estimated=self.estimated or other.estimated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, or why there is none."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Tools that it calls: id, name and arguments as JSON text."""
    finish: str = ""
    """The finish reason as the endpoint gave it."""
    spent: Spent = Spent()
    """Of all attempts that the endpoint answered."""
    problem: str | None = None
    """Kebab-case: `refusal`, `empty`, `cut-short`, `context-length`, `bad-answer`, `unavailable`, `rejected`,
    `offline`, `budget`, `interrupted`; None: the answer can be used."""
    detail: str = ""
    logprobs: tuple[tuple[int, float | None], ...] = ()
    """Of an echoed prompt: offset of each token in characters, and its log-probability in nats."""
    cached: bool = field(default=False, compare=False)

    @property
    def lasts(self) -> bool:
        """Whether the same request would end the same way, so that the reply is worth keeping."""
        return self.problem in (None, "refusal", "empty", "cut-short", "context-length", "rejected")


def fingerprint(ask: Ask, url: str, api: Api) -> str:
    """Hex digest of the full request, the endpoint included; never of a key."""
    plain = {"url": url, "api": api, "request": ask.body()}
    return hashlib.sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()
