"""Lengths under which every ball holds the mass that it is asked to hold."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.minplus import shortest_paths


def elastic_lengths(apart: Floats, mass: Floats, unit: float, exponent: float) -> Floats:
    """Shortest paths over steps from x to y of length r with unit · r^exponent = the mass of all
    points that are closer to x than y is, x included; in either direction. Shape (n, n).

    For every x and r, the ball of radius r around x holds at least min(unit · r^exponent, all
    mass): of the points in the order of their distance from x, the first that is not in the ball
    has more than that before it.
    """
    step = np.empty_like(apart)
    for x, own in enumerate(apart):
        order = np.argsort(own, kind="stable")
        held = np.cumsum(mass[order])
        # points that are equally far come in together
        first = np.searchsorted(own[order], own[order], side="left")
        before = np.where(first > 0, held[np.maximum(first, 1) - 1], mass[x])
        step[x, order] = (np.maximum(before, mass[x]) / unit) ** (1 / exponent)
    step = np.minimum(step, step.T)
    np.fill_diagonal(step, 0.0)
    out = shortest_paths(step)
    np.fill_diagonal(out, 0.0)
    return out
