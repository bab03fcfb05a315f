"""How small a true difference a study of a given size can find, and how large a study must be."""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

ALPHA = 0.05
POWER = 0.8


def _reach(alpha: float, power: float) -> float:
    """Standard errors that a true difference must span: 2.80 at a two-sided 5 % and a power of 80 %."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


def mde_binary(discordance: float, n: int, alpha: float = ALPHA, power: float = POWER) -> float:
    """Smallest true difference of pass rates that n pairs find, given the share of pairs whose outcomes differ."""
    return _reach(alpha, power) * sqrt(discordance / n)


def mde_continuous(spread: float, n: int, alpha: float = ALPHA, power: float = POWER) -> float:
    """Smallest true mean difference that n pairs find, given the standard deviation of the differences."""
    return _reach(alpha, power) * spread / sqrt(n)


def units_for_binary(effect: float, discordance: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Pairs that it takes to find a difference of pass rates. Raises ValueError for an effect of zero."""
    return units_for(effect, sqrt(discordance), alpha, power)


def units_for(effect: float, spread: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """Pairs that it takes to find a mean difference. Raises ValueError for an effect of zero."""
    if effect == 0:
        raise ValueError("no study is large enough to find an effect of zero")
    return ceil((_reach(alpha, power) * spread / effect) ** 2)
