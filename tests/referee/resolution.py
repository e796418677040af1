"""Designs with ``resolution=``: privacy and loss in fractions, and the bound against a linear
program over the secrets."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

import optmech as om

FAR = 40.0
"""Log ratios from which on the program does without: they move it by e^-40 of a loss at most."""


def places(rng: np.random.Generator, n: int) -> np.ndarray:
    """Points of a square: anywhere, on a grid, on a line, in parts, or some at the same place."""
    kind = rng.integers(5)
    if kind == 1:
        return rng.integers(0, 4, (n, 2)).astype(float)
    if kind == 2:
        return np.column_stack([np.linspace(0, 3, n), np.full(n, rng.choice([0.0, 1.5]))])
    if kind == 3:
        parts = int(rng.integers(2, 5))
        middles = rng.uniform(0, 4, (parts, 2))
        return np.clip(middles[np.arange(n) % parts] + 0.02 * rng.normal(size=(n, 2)), 0, 4)
    out = rng.uniform(0, 4, (n, 2))
    if kind == 4:
        out[rng.random(n) < 0.5] = out[0]
    return out


def weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """A prior: any, with zeros, in one place, or of many sizes."""
    kind = rng.integers(5)
    out = rng.dirichlet(np.ones(n))
    if kind == 1:
        out = out * (rng.random(n) < 0.6)
    elif kind == 2:
        out = np.eye(n)[rng.integers(n)]
    elif kind == 3:
        out = 10.0 ** rng.uniform(-9, 0, n)
    elif kind == 4:
        out = np.ones(n)
    return out / out.sum() if out.sum() > 0 else np.eye(n)[0]


def losses(rng: np.random.Generator, at: np.ndarray, reports: int) -> np.ndarray:
    """Distances to some points, any numbers, or columns that are equal, zero, or always best."""
    kind = rng.integers(6)
    marks = rng.uniform(0, 4, (reports, 2))
    out = np.hypot(*(at[:, None] - marks).transpose(2, 0, 1))
    if kind == 1:
        out = rng.uniform(0, 1, out.shape)
    elif kind == 2:
        out = np.repeat(out[:, :1], reports, axis=1)
    elif kind == 3:
        out = out[:, :1] + np.arange(reports)
    elif kind == 4:
        out = out * (rng.random(reports) < 0.5)
    elif kind == 5:
        out = np.where(rng.random(out.shape) < 0.4, 0.0, out)
    return np.asarray(out)


def optimum(prior: np.ndarray, cost: np.ndarray, limit: np.ndarray) -> float:
    """The least loss of the secrets' own program."""
    n, m = cost.shape
    rows = []
    for i in range(n):
        for j in range(n):
            if i != j and limit[i, j] < FAR:
                for o in range(m):
                    row = np.zeros((n, m))
                    row[i, o], row[j, o] = np.exp(-limit[i, j] / 2), -np.exp(limit[i, j] / 2)
                    rows.append(row.ravel() / np.abs(row).max())
    found = linprog(
        (prior[:, None] * cost).ravel(),
        np.array(rows) if rows else None,
        np.zeros(len(rows)) if rows else None,
        np.kron(np.eye(n), np.ones(m)),
        np.ones(n),
    )
    return float(found.fun)


def figures(exact: om.Design, prior: np.ndarray, cost: np.ndarray) -> Iterator[str]:
    """Rows and loss in fractions, and bounds in their order."""
    rows = exact.exact.rows
    unit = 1 << exact.exact.bits
    if any(sum(row) != unit or min(row) < 0 for row in rows):
        yield "a row is no distribution"
    loss = sum(
        Fraction(p) * Fraction(c) * Fraction(v, unit)
        for p, costs, row in zip(prior.tolist(), cost.tolist(), rows, strict=True)
        for c, v in zip(costs, row, strict=True)
    )
    if not loss <= Fraction(exact.loss) <= loss * (1 + Fraction(1, 2**51)) + Fraction(1, 2**1074):
        yield f"the loss is {float(loss)!r} and not {exact.loss!r}"
    if not 0 <= exact.lower_bound <= exact.loss:
        yield f"the lower bound {exact.lower_bound} is above the loss {exact.loss}"
    for note in (*exact.notes, exact.reason):
        if "failed" in note or "Error" in note:
            yield note


def private(rows: tuple[tuple[int, ...], ...], limit: np.ndarray) -> Iterator[str]:
    """Every ratio, with exponentials of 40 digits: limits are rounded distances."""
    with mp.workdps(40):
        for i, row in enumerate(rows):
            for j, other in enumerate(rows):
                most = mp.exp(mp.mpf(float(limit[i, j]))) * (1 + mp.mpf(2) ** -48)
                for o, (one, two) in enumerate(zip(row, other, strict=True)):
                    if one > most * two:
                        yield f"p({o}|{i}) is {one}, and p({o}|{j}) {two} x e^{limit[i, j]}"


def judge(rng: np.random.Generator) -> Iterator[str]:
    n, m = int(rng.integers(1, 11)), int(rng.integers(1, 5))
    at = places(rng, n)
    prior, cost = weights(rng, n), losses(rng, at, m)
    epsilon = float(rng.choice([1e-12, 1e-7, 0.1, 1.0, 3.0, 100.0]))
    domain = om.Domain(range(n), at)
    stated = om.Problem(
        om.Prior(domain, prior),
        cost,
        om.Domain(range(m)),
        constraints=[om.MetricPrivacy(epsilon, om.distances.euclidean())],
    )
    prior = stated.prior.weights
    design = om.solve(stated, resolution=int(rng.integers(1, n + 1)), time_limit=10)
    limit = epsilon * np.hypot(*(at[:, None] - at).transpose(2, 0, 1))
    if not (isinstance(design, om.Design) and design.verified and design.exact is not None):
        yield f"{design!r} is not verified"
        return
    yield from figures(design, prior, cost)
    yield from private(design.exact.rows, limit)
    least, scale = optimum(prior, cost, limit), 1e-7 * max(float(cost.max()), 1e-300)
    if not design.lower_bound <= least + scale:
        yield f"the lower bound is {design.lower_bound}, and a program has {least}"
    if not design.loss >= least - scale:
        yield f"the loss is {design.loss}, and a program has {least}"
