"""``releases``: noise of any shape against linear programs on windows, compositions against all
sequences of outcomes, rounded noise against its integral.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import optmech as om

_CLOSE = 1e-6


def least(
    curve: list[tuple[float, float]], low: int, high: int, steps: int, cost: list[float]
) -> float:
    """The least loss of noise on [low, high] that keeps every pair; infinite without any."""
    n = high - low + 1
    blocks: list[Any] = []
    right: list[float] = []
    shifts = [s for s in range(-steps, steps + 1) if s]
    count = len(curve) * len(shifts)
    for k, ((rate, part), s) in enumerate(itertools.product(curve, shifts)):
        there = sp.diags_array([1.0] * max(0, n - abs(s)), offsets=s, shape=(n, n))
        slack: list[Any] = [sp.csr_array((n, n)) for _ in range(count)]
        slack[k] = -sp.eye_array(n)
        total: list[Any] = [sp.csr_array((1, n)) for _ in range(count)]
        total[k] = sp.csr_array(np.ones((1, n)))
        blocks += [
            [sp.eye_array(n) - math.exp(rate) * there, *slack],
            [sp.csr_array((1, n)), *total],
        ]
        right += [*[0.0] * n, part]
    mass = np.append(np.ones(n), np.zeros(count * n))[None]
    costs = np.append(cost, np.zeros(count * n))
    rows = sp.block_array(blocks).tocsr()
    found = linprog(costs, A_ub=rows, b_ub=right, A_eq=mass, b_eq=[1.0], method="highs")
    return float(found.fun) if found.status == 0 else math.inf


def judge(rng: np.random.Generator) -> Iterator[str]:
    """What is false in one instance."""
    kind = rng.choice(["shape", "shape", "composed"])
    yield from _shape(rng) if kind == "shape" else _composed(rng)


def _shape(rng: np.random.Generator) -> Iterator[str]:
    steps = int(rng.integers(1, 4))
    rates = np.unique(rng.choice([0.0, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0], size=int(rng.integers(1, 4))))
    parts = np.sort(rng.choice([0.3, 0.2, 0.1, 0.05, 0.02, 0.01], size=len(rates), replace=False))
    curve = [(float(a), float(b)) for a, b in zip(rates, parts[::-1], strict=True)]
    slopes = [float(v) for v in rng.choice([0.5, 1.0, 3.0], size=2)]
    square = rng.random() < 0.3
    support = [(None, None), (0, None), (None, 1), (-3, 30), (0, 2)][int(rng.integers(5))]
    loss = "square" if square else ([0, slopes[0]], [0, slopes[1]])
    # without ε noise spreads over 1/δ places
    end = steps * max(22, int(1.5 / parts[-1]) if rates[0] == 0 else 0)
    low = -end if support[0] is None else support[0]
    high = end if support[1] is None else support[1]
    cost = [float(k * k) if square else slopes[k > 0] * abs(k) for k in range(low, high + 1)]
    wanted = least(curve, low, high, steps, cost)
    try:
        noise = om.noise.optimal(curve=curve, support=support, sensitivity=steps, loss=loss)
    except om.InfeasibleError:
        if wanted < math.inf:
            yield f"{curve} within {support}: infeasible, and {wanted} is reached"
        return
    said = f"{curve}, Δ {steps}, {loss}, within {support}: [{noise.lower_bound}, {noise.loss}]"
    if not noise.lower_bound <= wanted * (1 + _CLOSE) + 1e-9:
        yield f"{said}: the bound is above {wanted}"
    if not noise.loss >= wanted * (1 - _CLOSE) - 1e-9:
        yield f"{said}: below {wanted}"
    if noise.gap > 0.01:
        yield f"{said}: a gap of {noise.gap}"


def _composed(rng: np.random.Generator) -> Iterator[str]:
    """Two or three small laws: δ of all sequences of outcomes, for every choice of shifts."""
    noises = []
    for _ in range(int(rng.integers(2, 4))):
        part = float(rng.choice([0.3, 0.2, 0.1]))
        rate = float(rng.choice([0.5, 1.0]))
        support = (0, None) if rng.random() < 0.5 else (None, None)
        noises.append(om.noise.optimal(rate, part, support=support))
    rate = float(rng.choice([0.0, 0.5, 1.0, 2.0]))
    worst = 0.0
    for shifts in itertools.product((-1, 1), repeat=len(noises)):
        p, q = np.ones(1), np.ones(1)
        for noise, s in zip(noises, shifts, strict=True):
            law = noise.law
            places = range(law.low - 2, law.high + 3)
            here = np.array([float(law.at(k)) for k in places])
            there = np.array([float(law.at(k + s)) for k in places])
            p, q = np.outer(p, here).ravel(), np.outer(q, there).ravel()
        worst = max(worst, float(np.maximum(p - math.exp(rate) * q, 0).sum()))
    found = om.noise.compose(noises).delta(rate)
    if found.upper < worst - 1e-9:
        yield f"δ({rate}) is {worst}, and said to be at most {found.upper}"
    if found.lower > worst + 1e-9:
        yield f"δ({rate}) is {worst}, and said to be at least {found.lower}"
    if found.upper > worst * 1.25 + 1e-3:
        yield f"δ({rate}) is {worst}, and said to be at most {found.upper}, which is far"
