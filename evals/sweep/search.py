"""A search through a space of settings with Optuna (an optional extra), on the choosing half of the sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from evals.sweep.choice import Objective
from evals.sweep.grid import Parameter, Setting
from evals.sweep.where import Constraint
from replay.errors import ConfigError

SEED = 0
_PATIENCE = 50
"""So often in a row a suggestion may be forbidden or known before the search ends."""


def search(parameters: Sequence[Parameter], constraints: Sequence[Constraint], objective: Objective, trials: int,
           value: Callable[[Setting], float | None]) -> list[Setting]:
    """The distinct settings that a search with a fixed seed tried, at most `trials`, in the order in which it did.

    `value` gives a setting's objective; None where it could not be measured or a session does not get through.
    """
    if find_spec("optuna") is None:
        raise ConfigError("--trials", str(trials), "needs the package optuna: pip install 'rewindow[search]'")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="minimize" if objective.better == "low" else "maximize",
                                sampler=optuna.samplers.TPESampler(seed=SEED))
    tried: dict[str, Setting] = {}
    idle = 0
    while len(tried) < trials and idle < _PATIENCE:
        asked = study.ask()
        setting = {p.name: _suggested(asked, p) for p in parameters}
        if repr(setting) in tried or not all(c.holds(setting) for c in constraints):
            study.tell(asked, state=optuna.trial.TrialState.PRUNED)
            idle += 1
            continue
        idle, tried[repr(setting)] = 0, setting
        found = value(setting)
        if found is None:
            study.tell(asked, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(asked, found)
    return list(tried.values())


def _suggested(asked: Any, parameter: Parameter) -> Any:
    """A value of the parameter. Numbers keep their order, so that the search knows which are near."""
    values = parameter.values
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        ordered = sorted(values)
        return ordered[asked.suggest_int(parameter.name, 0, len(ordered) - 1)]
    return values[asked.suggest_categorical(parameter.name, list(range(len(values))))]
