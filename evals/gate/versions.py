"""What each tier of a golden holds for: a new tokenizer or price table invalidates its own tier and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import evals
from evals.gate.record import Tier
from evals.spans import EXTRACTOR
from evals.trial import Settings
from replay.canonical import CHAIN_START

TIER_NEEDS: Mapping[Tier, tuple[str, ...]] = {
    "views": ("form",),
    "counts": ("tokenizer",),
    "costs": ("tokenizer", "prices", "cache"),
    "tolerance": (),
}
"""Tier to the versions that it depends on; the metrics of the tier with tolerances each have their own."""
_WORDS = {"form": "canonical form", "tokenizer": "tokenizer", "prices": "price table", "cache": "cache model",
          "extractor": "extractor"}


def versions(settings: Settings) -> dict[str, str]:
    """The version of everything that a golden's numbers depend on."""
    model = settings.pricing.prices or "each session's model"
    table = hashlib.sha256(Path(evals.__file__).with_name("cache_models.toml").read_bytes()).hexdigest()[:8]
    return {"form": CHAIN_START.hex()[:12], "tokenizer": f"{settings.tokenizer}, splintr-rs {_version('splintr-rs')}",
            "prices": f"{model}, genai-prices {_version('genai-prices')}",
            "cache": f"{settings.pricing.cache}, table {table}", "extractor": EXTRACTOR}


def rewindow_version() -> str:
    """The version of Rewindow that measures."""
    return _version("rewindow")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def changed(golden: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Each version that is not the golden's, in words."""
    return {name: f"the {_WORDS[name]} was {golden.get(name)}, is {now[name]}" for name in now
            if golden.get(name) != now[name]}
