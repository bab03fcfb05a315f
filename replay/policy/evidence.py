"""What is known of how faithful each preset is: captures, the harness's own code, worked examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from replay.policy.examples import Example, examples
from replay.policy.load import policy, preset_names
from replay.policy.policy import Policy
from replay.policy.proofs import stored_proofs


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What stands behind one preset."""

    preset: Policy
    captures: int = 0
    requests: int = 0
    """Requests of those captures."""
    agreeing: int = 0
    """Requests that the preset's views equal, or whose difference has a stated reason."""
    histories: int = 0
    """Histories that the harness's own code was run on."""
    equal: int = 0
    """Histories with the same outcome."""
    examples: int = 0

    def words(self) -> str:
        """How the preset was proved, with numbers: wire, code, examples, or write-up only."""
        if self.preset.proof == "baseline":
            return "baseline: imitates nothing"
        captures = "capture" if self.captures == 1 else "captures"
        wire = f"wire: {self.agreeing:,} of {self.requests:,} requests in {self.captures} {captures}"
        code = f"code: {self.equal:,} of {self.histories:,} histories"
        parts = [wire * bool(self.captures), code * bool(self.histories),
                 f"examples: {self.examples}" * bool(self.examples)]
        only = "write-up only" * (self.preset.proof == "write-up")
        return "; ".join(filter(None, (only, *parts)))

    def imitated(self) -> str:
        """What the preset imitates, and how that was proved."""
        if not self.preset.harness:
            return self.words()
        return f"imitates {self.preset.harness} {self.preset.version} – {self.words()}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"captures": self.captures, "requests": self.requests, "agreeing": self.agreeing,
                "histories": self.histories, "equal": self.equal, "examples": self.examples}


def evidence() -> tuple[Evidence, ...]:
    """The evidence for every preset, by name."""
    stored, worked = stored_proofs(), examples()
    return tuple(_of(name, stored, worked) for name in preset_names())


def _of(name: str, stored: dict[str, Any], worked: Sequence[Example]) -> Evidence:
    captures = [c for c in stored["captures"] if c["preset"] == name]
    oracles = [o for o in stored["oracles"] if o["preset"] == name]
    return Evidence(preset=policy(name), captures=len(captures), requests=sum(c["views"] for c in captures),
                    agreeing=sum(c["equal"] + c["explained"] for c in captures),
                    histories=sum(o["histories"] for o in oracles), equal=sum(o["equal"] for o in oracles),
                    examples=sum(name in e.presets for e in worked))


def table_of_proofs() -> Iterator[str]:
    """A Markdown table of all presets: what each imitates, and how it was proved."""
    yield "| preset | imitates | proof |"
    yield "|---|---|---|"
    for found in evidence():
        imitated = f"{found.preset.harness} {found.preset.version}".strip() or "–"
        yield f"| `{found.preset.name}` | {imitated} | {found.words()} |"
