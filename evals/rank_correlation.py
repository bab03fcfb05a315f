"""Rank correlation without a library: mid-ranks for ties."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean


def mid_ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for place in order[start:stop]:
            ranks[place] = (start + stop + 1) / 2
        start = stop
    return ranks


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation of two lists of equal length; None where one of them is constant or empty."""
    if len(x) < 2:
        return None
    a, b = mid_ranks(x), mid_ranks(y)
    mean = fmean(a)
    square_a, square_b = sum((v - mean) ** 2 for v in a), sum((v - mean) ** 2 for v in b)
    if not square_a or not square_b:
        return None
    return sum((v - mean) * (w - mean) for v, w in zip(a, b, strict=True)) / sqrt(square_a * square_b)
