"""``carry_over``: both bounds from their proofs, evaluated in long arithmetic here, and against a
linear program over columns."""

from __future__ import annotations

from collections.abc import Iterator

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

import optmech as om

_DIGITS = 60
_OFF = 1e-7
"""Of the program, whose solver works to 1e-10."""


def ratios(rng: np.random.Generator, n: int) -> np.ndarray:
    """Log ratios: distances, or any numbers, some of them 0 or inf, one way or both."""
    if rng.random() < 0.5:
        at = rng.integers(0, 4, (n, 2)) if rng.random() < 0.5 else rng.uniform(0, 3, (n, 2))
        away = np.hypot(*(at[:, None] - at).transpose(2, 0, 1))
        return np.asarray(away * rng.choice([1e-12, 0.3, 1.0, 50.0]))
    out = rng.uniform(0, 4, (n, n))
    out[rng.random((n, n)) < rng.choice([0, 0.3])] = 0.0
    out[rng.random((n, n)) < rng.choice([0, 0.3])] = np.inf
    np.fill_diagonal(out, 0.0)
    return out


def masses(rng: np.random.Generator, n: int) -> np.ndarray:
    """Weights with zeros, in one place, of many sizes, or none of these."""
    kind = rng.integers(4)
    out = rng.dirichlet(np.full(n, 0.7))
    if kind == 1:
        out[rng.random(n) < 0.5] = 0.0
    elif kind == 2:
        out = np.eye(n)[rng.integers(n)]
    elif kind == 3:
        out = 10.0 ** rng.uniform(-12, 0, n)
    return out if out.sum() > 0 else np.eye(n)[0]


def closed(ratio: np.ndarray) -> np.ndarray:
    """Shortest paths, with rows equal where no entry of one is larger."""
    out = np.where(ratio.T == 0, 0.0, ratio)
    np.fill_diagonal(out, 0.0)
    for k in range(len(out)):
        out = np.minimum(out, out[:, [k]] + out[[k]])
    return out


def program(ratio: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """The largest ln (a·v / b·v) over columns 0 <= v <= 1 that keep the ratios; inf where there is
    no largest."""
    n = len(a)
    rows = []
    for i in range(n):
        for j in range(n):
            if i != j and np.isfinite(ratio[i, j]):
                row = np.zeros(n)
                row[i], row[j] = np.exp(-ratio[i, j]), -1.0
                rows.append(row)
    found = linprog(
        -a / a.sum(),
        np.array(rows) if rows else None,
        np.zeros(len(rows)) if rows else None,
        (b / b.sum())[None],
        [1.0],
    )
    return np.inf if found.status == 3 else float(np.log(-found.fun))


def judge(rng: np.random.Generator) -> Iterator[str]:
    n = int(rng.integers(1, 7))
    given, a, b = ratios(rng, n), masses(rng, n), masses(rng, n)
    if rng.random() < 0.1:
        b = a.copy()
    found = om.guarantees.carry_over(given, a, b)
    where = f"r = {given.tolist()}, a = {a.tolist()}, b = {b.tolist()}"
    if not 0 <= found.lower <= found.upper:
        yield f"bounds {found.lower} and {found.upper} are in no order: {where}"
    exact = closed(given)
    with mp.workdps(_DIGITS):
        yield from (f"{fault}: {where}" for fault in _proofs(found, exact, a, b))
    if exact[np.isfinite(exact)].max() <= 12 and min(a[a > 0].min(), b[b > 0].min()) > 1e-7:
        most = max(program(exact, a, b), 0.0)
        if not found.lower - _OFF <= most <= found.upper + _OFF:
            yield f"{found.lower} to {found.upper}, and a program says {most}: {where}"
        if found.upper - found.lower > 1e-6:
            yield f"{found.lower} to {found.upper} is wide, and a program says {most}: {where}"


def _proofs(
    found: om.guarantees.CarryOver, exact: np.ndarray, a: np.ndarray, b: np.ndarray
) -> Iterator[str]:
    """What the potentials and the plan prove, without trust in any of their roundings."""
    one, two = ([mp.mpf(float(m)) for m in side] for side in (a, b))
    first, second = [m / mp.fsum(one) for m in one], [m / mp.fsum(two) for m in two]
    p = found.potentials
    # columns of the cone, from the potentials where b has mass
    ends = [j for j in range(len(b)) if b[j] > 0 and np.isfinite(p[j])]
    v = [
        min(
            (
                mp.exp(mp.mpf(float(exact[i, j])) + mp.mpf(float(p[j])))
                for j in ends
                if np.isfinite(exact[i, j])
            ),
            default=mp.inf,
        )
        for i in range(len(a))
    ]
    above = mp.fsum(m * x for m, x in zip(first, v, strict=True) if m > 0)
    below = mp.fsum(m * x for m, x in zip(second, v, strict=True) if m > 0)
    proved = mp.inf if above == mp.inf else mp.log(above / below)
    if found.lower > 0 and proved < mp.mpf(found.lower) - mp.mpf(10) ** -12:
        yield f"potentials prove {proved} and not {found.lower}"
    if not np.isfinite(found.upper):
        return
    shares = [[mp.mpf(float(x)) for x in row] for row in found.shares]
    most = mp.mpf(0)
    sums = [mp.fsum(row) for row in shares]
    for k, j in enumerate(found.targets.tolist()):
        arrived = mp.fsum(
            first[i] * shares[s][k] / sums[s] * mp.exp(mp.mpf(float(exact[i, j])))
            for s, i in enumerate(found.sources.tolist())
            if shares[s][k] > 0
        )
        most = max(most, arrived / second[j])
    if mp.log(most) > mp.mpf(found.upper) + mp.mpf(10) ** -12:
        yield f"the plan proves {mp.log(most)} and not {found.upper}"
