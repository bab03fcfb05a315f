"""From the options of a command to the comparison that they ask for, every one of them checked before work begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.caches import cache_model as check_cache_model
from evals.compare import Comparison
from evals.costing import Pricing
from evals.kept.reading import reading
from evals.kept.store import Kept, default_folder
from evals.metrics.load import named_metric
from evals.model.config import Models, for_summariser, models
from evals.model.written import Written, written
from evals.outcome_files import load_outcomes
from evals.prices import price as check_price
from evals.trial import Settings
from replay.copies import without_copies
from replay.errors import ConfigError
from replay.find import find
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.policy.summarisers import summariser as check_summariser
from replay.readers.registry import reader as check_reader
from replay.tokens import tokenizer as check_tokenizer


def comparison(paths: Sequence[str], *, policies: Sequence[str], baseline: str | None = None, jobs: int | None = None,
               outcomes: Path | None = None, backend: str = "processes", address: str | None = None,
               memory_mb: int | None = None, cache: bool = False, endpoint: Mapping[str, Any] | None = None,
               **shared: Any) -> Comparison:
    """The comparison of what lies under the paths. Raises ConfigError and ReadError for what cannot be meant."""
    chosen = tuple(policy(name) for name in policies)
    asked = summary_models(shared["summariser"], endpoint or {})
    if asked:
        shared["summariser"] = f"llm:{asked.summariser}"
    settings = checked_settings(**shared, written=written(asked) if asked else None)
    kept = Kept(default_folder()) if cache else None
    files, remarks = without_copies(find(paths), settings.reader, reading(kept, settings.tokenizer))
    return Comparison(
        files=tuple(files), policies=chosen, baseline=baseline or chosen[0].name, settings=settings, jobs=jobs,
        backend=backend, address=address, memory_mb=memory_mb,
        kept=kept, remarks=tuple(remarks), endpoint=asked,
        outcomes=load_outcomes(outcomes) if outcomes else None,
        command={"paths": list(paths), "cwd": str(Path.cwd()), "options": _plain(
            {"policies": policies, "baseline": baseline, "jobs": jobs, "outcomes": outcomes, "backend": backend,
             "address": address, "memory_mb": memory_mb, "cache": cache, **shared,
             "endpoint": _plain(endpoint or {})})})


def summary_models(summariser: str, given: Mapping[str, Any]) -> Models | None:
    """The endpoint that writes summaries; None where no model does. Raises ConfigError."""
    if not summariser.startswith("llm:"):
        return None
    return for_summariser(endpoint_models(given), summariser)


def endpoint_models(given: Mapping[str, Any]) -> Models:
    """The endpoint that options of the command line name. Raises ConfigError."""
    file = given.get("models_file")
    return models(Path(file) if file else None, {k: v for k, v in given.items() if k != "models_file"})


def checked_settings(*, window: int, output_reserve: int, tokenizer: str, prices: str | None, cache_model: str,
                     summariser: str, reader: str | None = None, metrics: Sequence[str] = (), losses: bool = False,
                     time_limit: float | None = 600.0, written: Written | None = None) -> Settings:
    """The settings that all trials share. Raises ConfigError where one names nothing."""
    if output_reserve >= window:
        raise ConfigError("--output-reserve", "", f"must be smaller than the window of {window:,} tokens")
    if written is None:
        check_summariser(summariser)
    check_tokenizer(tokenizer)
    if reader is not None:
        check_reader(reader)
    for target in metrics:
        named_metric(target)
    if cache_model != "auto":
        check_cache_model(cache_model)
    if prices:
        check_price(prices)
    return Settings(capacity=Capacity(window=window, output_reserve=output_reserve), tokenizer=tokenizer,
                    summariser=summariser, pricing=Pricing(cache=cache_model, prices=prices), reader=reader,
                    metrics=tuple(metrics), losses=losses, time_limit=time_limit, written=written)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON holds them."""
    return {name: list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
            for name, value in options.items()}
