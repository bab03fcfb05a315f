"""What a comparison declares before it looks: primary metric, margin, exclusions, families; and the plan's hash."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

import orjson

from replay.config import build
from replay.errors import ConfigError, ReadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A pre-registration. Everything that is not declared headline is exploratory."""

    primary: str
    """The metric that decides."""
    better: Literal["low", "high"]
    margin: float
    """How much worse still counts as no worse: a difference, or a factor where `scale` is `ratio`."""
    scale: Literal["difference", "ratio"] = "difference"
    headline: tuple[str, ...] = ()
    """Metrics of the family that the primary one is tested in."""
    exclusions: tuple[str, ...] = ()
    """Rules, in words, for sessions that are left out."""

    def __post_init__(self) -> None:
        """Raises ConfigError for a margin that cannot be one."""
        if self.margin < (1.0 if self.scale == "ratio" else 0.0):
            raise ConfigError("plan", "margin", "a difference is at least 0, a ratio at least 1")

    def family(self, metric: str) -> str:
        """`headline` or `exploratory`."""
        return "headline" if metric == self.primary or metric in self.headline else "exploratory"


def plan_hash(plan: Plan) -> str:
    """SHA-256 of the plan's values; the order of headline metrics and exclusions does not matter."""
    plain = asdict(plan) | {"headline": sorted(set(plan.headline)), "exclusions": sorted(set(plan.exclusions))}
    return sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()


def load_plan(path: Path) -> Plan:
    """Read a plan from TOML. Raises ReadError without the file, ConfigError for what cannot be meant."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(str(path), error.strerror or "cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not valid TOML: {error}") from error
    plan: Plan = build(Plan, table, str(path))
    return plan
