"""Noise of every other kind against programs and sums of its own: one-sided, within a range, for
two-sided losses and curves, on the real line, rounded, in the plane and in space, composed, for
several releases, for zero-concentrated privacy; and closed forms.

No lower bound may be above the loss of noise that is private by its own means, and no loss below
what a program of its own finds on the same places. ``seen`` has how many of each kind there were.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq, linprog
from scipy.stats import norm

import optmech as om

Rng = np.random.Generator
Floats = np.ndarray
Pairs = Sequence[tuple[float, float]]
seen: Counter[str] = Counter()
_ROOM = 1e-7
_LOSSES = ("absolute", "square")


def judge(rng: Rng) -> Iterator[str]:
    name = str(rng.choice(list(KINDS)))
    seen[name] += 1
    for found in KINDS[name](rng):
        yield f"{name}: {found}"


# ---------------------------------------------------------------- programs and sums
def least(curve: Pairs, places: Floats, steps: int, costs: Floats) -> float:
    """The least loss of noise on places in a row that keeps every pair at every shift."""
    n = len(places)
    shifts = [s for s in range(-steps, steps + 1) if s]
    columns, row = n, 0
    rows: list[Floats] = []
    across: list[Floats] = []
    values: list[Floats] = []
    upper: list[float] = []
    at = np.arange(n)
    for rate, part in curve:
        for s in shifts:
            inside = (at + s >= 0) & (at + s < n)
            rows += [row + at, row + at[inside], row + at, np.full(n, row + n)]
            across += [at, at[inside] + s, columns + at, columns + at]
            power = np.full(int(inside.sum()), -math.exp(rate))
            values += [np.ones(n), power, -np.ones(n), np.ones(n)]
            upper += [0.0] * n + [part]
            row, columns = row + n + 1, columns + n
    matrix = sp.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(across))),
        shape=(row, columns),
    )
    full = np.append(costs, np.zeros(columns - n))
    mass = np.append(np.ones(n), np.zeros(columns - n))[None]
    fine = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(full, matrix, upper, mass, [1.0], method="highs", options=fine)
    return float(found.fun) if found.status == 0 else math.inf


def spent(masses: Floats, rate: float, steps: int) -> float:
    """The largest Σ max(0, z(k) - e^ε z(k + s)), |s| <= steps."""
    pad = np.pad(masses, steps)
    moved = [np.roll(pad, s) for s in range(-steps, steps + 1) if s]
    return max(float(np.maximum(pad - math.exp(rate) * m, 0).sum()) for m in moved)


def promise(rng: Rng) -> tuple[float, float]:
    return float(np.round(10 ** rng.uniform(-0.5, 0.6), 3)), float(
        np.round(10 ** rng.uniform(-3.5, -0.5), 6)
    )


def pairs_of(rng: Rng) -> list[tuple[float, float]]:
    """Two to four pairs, of which none is implied by the one before."""
    count = int(rng.integers(2, 5))
    rates = np.round(np.sort(rng.uniform(0, 2.5, count)), 3)
    rates[0] = rng.choice([0.0, rates[0]])
    parts = np.sort(10 ** rng.uniform(-3, -0.5, count))[::-1]
    return [(float(a), float(round(b, 7))) for a, b in zip(rates, parts, strict=True)]


def bracketed(design: Any, value: float, inside: bool, words: str) -> Iterator[str]:
    """The optimum of a program on some places is not below the bound, nor above the loss where all
    the places of the design are among them."""
    if design.lower_bound > value * (1 + _ROOM) + 1e-12:
        yield f"{words}: the bound {design.lower_bound} is above {value}"
    if inside and value > design.loss * (1 + _ROOM) + 1e-12:
        yield f"{words}: the loss {design.loss} is below {value}"


# ---------------------------------------------------------------- whole numbers
def _sided(rng: Rng) -> tuple[Any, Callable[[Floats], Floats]]:
    """A loss, maybe with two sides."""
    which = int(rng.integers(4))
    if which < 2:
        return _LOSSES[which], lambda k: np.abs(k) ** (which + 1.0)
    rise = float(rng.choice([0.5, 3]))
    if which == 2:
        return ("absolute", [0, rise]), lambda k: np.where(k >= 0, rise * k, -k)
    return ([0, rise], "square"), lambda k: np.where(k >= 0, k * k, -rise * k)


def _ranged(rng: Rng) -> Iterator[str]:
    """Only upwards, only downwards, within a range, or for a loss with two sides."""
    (epsilon, delta), steps = promise(rng), int(rng.choice([1, 1, 2, 3]))
    ends = [(0, None), (None, 0), (0, 40), (-3, 20), (None, None), (-9, 9), (5, None), (None, -4)]
    ends += [(4, 30), (-12, -3), (-3, 10**6), (-(10**9), 10**9), (-(10**6), None), (None, 10**6)]
    low, high = ends[int(rng.integers(len(ends)))]
    loss, cost = _sided(rng)
    words = f"({epsilon}, {delta}), Δ = {steps}, {low} to {high}, {loss}"
    try:
        design = om.noise.optimal(
            epsilon, delta, sensitivity=steps, support=(low, high), loss=loss, gap=1e-3
        )
    except om.errors.InfeasibleError:
        design = None
    wide = 60 if design is None else max(abs(design.law.low), abs(design.law.high))
    first = -wide if low is None else max(low, -wide)
    last = wide if high is None else min(high, wide)
    places = np.arange(first, last + 1.0)
    value = least([(epsilon, delta)], places, steps, cost(places))
    if design is None:
        if value < math.inf:
            yield f"{words}: noise of loss {value} is said not to exist"
        return
    yield from bracketed(design, value, True, words)
    yield from _masses(design, [(epsilon, delta)], steps, cost, words)


def _masses(
    design: Any, curve: Pairs, steps: int, cost: Callable[[Floats], Floats], words: str
) -> Iterator[str]:
    law = design.law
    masses = np.array([m / 2.0**law.bits for m in law.masses])
    for rate, part in curve:
        if (found := spent(masses, rate, steps)) > part * (1 + 1e-9) + 1e-13:
            yield f"{words}: δ({rate}) is {found}"
    value = float(masses @ cost(np.arange(law.low, law.high + 1.0)))
    if abs(value - design.loss) > 1e-9 * value + 1e-13:
        yield f"{words}: the loss is {value}, not {design.loss}"


def _curve(rng: Rng) -> Iterator[str]:
    curve, steps = pairs_of(rng), int(rng.choice([1, 1, 2, 3]))
    degree = int(rng.integers(1, 3))
    words = f"{curve}, Δ = {steps}, degree {degree}"
    design = om.noise.optimal(curve=curve, sensitivity=steps, loss=_LOSSES[degree - 1], gap=1e-3)
    places = np.arange(-design.law.n, design.law.n + 1.0)
    value = least(curve, places, steps, np.abs(places) ** degree)
    yield from bracketed(design, value, True, words)
    yield from _masses(design, curve, steps, lambda k: np.abs(k) ** degree, words)


# ---------------------------------------------------------------- the real line
def _on_cells(count: int, cells: int, degree: int) -> Floats:
    """E|z|^degree in each cell of width 1/cells, -count to count."""
    k = np.abs(np.arange(-count, count + 1.0))
    low, high = np.where(k > 0, k - 0.5, 0) / cells, (k + 0.5) / cells
    return (high ** (degree + 1) - low ** (degree + 1)) / (degree + 1) / (high - low)


def _real(rng: Rng) -> Iterator[str]:
    """A density on cells: privacy at real shifts, the loss; the bound against programs."""
    cells, degree = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    size = float(rng.choice([1, 2.5]))
    several = bool(rng.integers(2))
    curve = pairs_of(rng) if several else [promise(rng)]
    words = f"{curve}, {cells} cells of {size}, degree {degree}"
    asked: dict[str, Any] = {"loss": _LOSSES[degree - 1], "sensitivity": size, "cells": cells}
    stated = {"curve": curve} if several else dict(zip(("epsilon", "delta"), curve[0], strict=True))
    design = om.noise.real(**stated, **asked)
    own = design.cells if design.cells <= 24 else cells
    far = math.ceil((design.law.n + 1) * own / design.cells)
    value = size**degree * least(
        curve, np.arange(-far, far + 1.0), own, _on_cells(far, own, degree)
    )
    yield from bracketed(design, value, own == design.cells and not design.law.tails, words)
    if design.law.tails:
        return
    masses = np.array([float(design.law.at(k)) for k in range(-design.law.n, design.law.n + 1)])
    loss = float(masses @ _on_cells(design.law.n, design.cells, degree)) * size**degree
    if abs(loss - design.loss) > 1e-9 * loss:
        yield f"{words}: the loss is {loss}, not {design.loss}"
    for rate, part in curve:
        shift = float(rng.uniform(0, design.cells))
        found = _moved(masses, rate, shift)
        if found > part * (1 + 1e-9) + 1e-13:
            yield f"{words}: δ({rate}) is {found} at {shift} cells"


def _moved(masses: Floats, rate: float, shift: float) -> float:
    """∫ max(0, f(x) - e^ε f(x + shift)) of a density on cells of width one."""
    edges = np.arange(len(masses) + 1.0)
    cuts = np.unique(np.concatenate([edges, edges - shift]))
    middle, wide = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)

    def at(x: Floats) -> Floats:
        inside = (x > 0) & (x < len(masses))
        return np.where(inside, masses[np.clip(x.astype(int), 0, len(masses) - 1)], 0)

    return float(wide @ np.maximum(at(middle) - math.exp(rate) * at(middle + shift), 0))


def _rounded(rng: Rng) -> Iterator[str]:
    """Sensitivities above 1,000: the law of rounded noise, place by place."""
    epsilon, delta = promise(rng)
    epsilon, delta = max(epsilon, 0.5), max(delta, 1e-3)
    steps, degree = int(rng.integers(1001, 4000)), int(rng.integers(1, 3))
    words = f"({epsilon}, {delta}), Δ = {steps}, degree {degree}"
    design = om.noise.optimal(epsilon, delta, sensitivity=steps, loss=_LOSSES[degree - 1], gap=0.05)
    if design.law.tails:
        return
    # mass of each whole number, from the cells that its interval meets
    masses = np.array([float(design.law.at(k)) for k in range(-design.law.n, design.law.n + 1)])
    step = steps / design.cells
    below = np.concatenate([[0], np.cumsum(masses)])
    edges = (np.arange(len(masses) + 1) - design.law.n - 0.5) * step
    far = math.ceil(edges[-1]) + 1
    whole = np.diff(np.interp(np.arange(-far - 0.5, far + 1), edges, below))
    k = np.arange(-far, far + 1.0)
    loss = float(whole @ np.abs(k) ** degree)
    if loss > design.loss * (1 + 1e-9):
        yield f"{words}: the loss is {loss}, above {design.loss}"
    for shift in (1, steps, int(rng.integers(1, steps + 1))):
        pad = np.pad(whole, shift)
        found = float(np.maximum(pad - math.exp(epsilon) * np.roll(pad, -shift), 0).sum())
        if found > delta * (1 + 1e-9) + 1e-12:
            yield f"{words}: δ is {found} at {shift}"
    # the best on a coarser lattice is private, and so has no less than the bound
    own, end = 3, math.ceil(3 * (edges[-1] / steps + 1))
    value = least([(epsilon, delta)], np.arange(-end, end + 1.0), own, _on_cells(end, own, degree))
    if design.lower_bound > value * steps**degree * (1 + 1e-3):
        yield f"{words}: the bound {design.lower_bound} is above {value * steps**degree}"


# ---------------------------------------------------------------- the plane and space
def _lens(d: int, one: float, other: float, apart: float) -> float:
    """What two balls have in common, over the unit ball."""
    if one <= 0 or other <= 0 or one + other <= apart:
        return 0.0
    if abs(one - other) >= apart:
        return float(min(one, other) ** d)
    a = (apart**2 + one**2 - other**2) / (2 * apart)
    total = 0.0
    for r, h in ((one, one - a), (other, other - apart + a)):
        if d == 3:
            total += h * h * (3 * r - h) / 4
        else:
            q = max(-1.0, min(1.0, (r - h) / r))
            total += r * r * (math.acos(q) - q * math.sqrt(1 - q * q)) / math.pi
    return total


def _radial_spent(d: int, weights: Floats, radii: Floats, rate: float, apart: float) -> float:
    """∫ max(0, f(x) - e^ε f(x - v)) of a mixture of balls: level by level."""
    heights = np.cumsum((weights / radii**d)[::-1])[::-1]
    power = math.exp(rate)
    levels = np.unique(np.concatenate([[0], heights, power * heights]))
    total = 0.0
    for low, high in itertools.pairwise(levels):
        middle = (low + high) / 2
        own = radii[heights > middle].max(initial=0.0)
        far = radii[power * heights > middle].max(initial=0.0)
        total += (high - low) * _lens(d, float(own), float(far), apart)
    return 1 - total


def _points(rng: Rng) -> Iterator[str]:
    """A mixture of balls of our own is private: no bound is above what it loses."""
    d, degree = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    count = int(rng.integers(3, 9))
    radii = np.sort(rng.uniform(0.2, 1, count)) * rng.uniform(1.5, 4)
    scale = rng.uniform(0.3, 1.5)
    heights = np.exp(-radii / scale)
    weights = -np.diff(np.append(heights, 0)) * radii**d
    weights /= weights.sum()
    epsilon = float(np.round(rng.uniform(0.5, 4), 3))
    delta = _radial_spent(d, weights, radii, epsilon, 1.0)
    if not 0.01 < delta < 0.7:
        return
    delta *= 1 + 1e-9
    loss = float(weights @ radii**degree) * d / (d + degree)
    words = f"({epsilon}, {delta:.6g}) in {d} dimensions, degree {degree}"
    noise = om.noise.radial(epsilon, delta, d, cells=2, loss=_LOSSES[degree - 1], gap=0.5)
    if noise.lower_bound > loss * (1 + 1e-9):
        yield f"{words}: the bound {noise.lower_bound} is above {loss}"
    law = np.array([b / 2.0**noise.law.bits for b in noise.law.balls])
    ends = np.arange(1, len(law) + 1) * float(noise.step)
    found = float(law @ ends**degree) * d / (d + degree)
    if abs(found - noise.loss) > 1e-9 * found:
        yield f"{words}: the loss is {found}, not {noise.loss}"
    for apart in (1.0, float(rng.uniform(0.1, 1))):
        if (part := _radial_spent(d, law, ends, epsilon, apart)) > delta * (1 + 1e-9) + 1e-12:
            yield f"{words}: δ is {part} at {apart}"


# ---------------------------------------------------------------- several
def _law(rng: Rng, steps: int) -> Floats:
    """An even law that falls, or goes up and down."""
    n = int(rng.integers(2, 7)) + steps
    half = np.exp(-np.arange(n + 1) / rng.uniform(0.7, 4))
    if rng.uniform() < 0.4:
        half *= rng.uniform(0.5, 1.5, n + 1)
    both = np.concatenate([half[:0:-1], half])
    return both / both.sum()


def _product(laws: Sequence[Floats], shifts: Sequence[int], rate: float) -> float:
    """Σ max(0, Π z_j(k_j) - e^ε Π z_j(k_j + s_j)), all outcomes listed."""
    first = second = np.ones(1)
    for z, s in zip(laws, shifts, strict=True):
        pad = np.pad(z, abs(s))
        first = np.outer(first, pad).ravel()
        second = np.outer(second, np.roll(pad, -s)).ravel()
    return float(np.maximum(first - math.exp(rate) * second, 0).sum())


def _worst(laws: Sequence[Floats], steps: Sequence[int], rate: float) -> float:
    ways = [[s for s in range(-most, most + 1) if s] for most in steps]
    # one sign may be chosen, as laws are even
    ways[0] = [s for s in ways[0] if s > 0]
    return max(_product(laws, shifts, rate) for shifts in itertools.product(*ways))


def _composed(rng: Rng) -> Iterator[str]:
    """Different noise, together: between the two ends lies what all outcomes say."""
    count, laws, steps, noises = int(rng.integers(2, 4)), [], [], []
    for _ in range(count):
        epsilon, delta = float(rng.uniform(1, 3)), float(10 ** rng.uniform(-2, -0.7))
        steps.append(int(rng.choice([1, 1, 2])) if count < 3 else 1)
        noises.append(om.noise.optimal(epsilon, delta, sensitivity=steps[-1], gap=1e-3))
        law = noises[-1].law
        laws.append(np.array([float(law.at(k)) for k in range(-law.n, law.n + 1)]))
        if law.tails or len(laws[-1]) > 41:
            return
    rate = float(rng.uniform(0, 4))
    found = om.noise.compose(noises).delta(rate)
    true = _worst(laws, steps, rate)
    if found.upper < true - 1e-12 or found.lower > true * (1 + 1e-9) + 1e-12:
        yield f"{count} releases at {rate}: {true} is not in {found}"


def _bound_of_several(rng: Rng) -> Iterator[str]:
    """A law of our own keeps what all its releases reveal: no bound for that is above its loss."""
    from optmech_noise.additive.loss import NoiseLoss
    from optmech_noise.releases import bound_of_each

    from optmech.exact.arguments import probability
    from optmech.exact.number import parse_exact

    count, steps = int(rng.choice([2, 2, 3])), int(rng.choice([1, 1, 2]))
    z = _law(rng, steps)
    if len(z) ** count > 60_000:
        return
    rate = float(np.round(rng.uniform(0.2, 3), 3))
    delta = _worst([z] * count, [steps] * count, rate) * (1 + 1e-9)
    if not 1e-6 < delta < 0.9:
        return
    degree = int(rng.integers(1, 3))
    k = np.abs(np.arange(len(z)) - len(z) // 2)
    loss = float(z @ k**degree)
    measure = NoiseLoss.of(_LOSSES[degree - 1])
    promised = parse_exact(rate, where="epsilon"), probability(delta)
    found = bound_of_each(*promised, count, steps, measure)
    if found > loss * (1 + 1e-9):
        yield f"{count} at ({rate}, {delta}), Δ = {steps}, degree {degree}: {found} above {loss}"


def _concentrated(rng: Rng) -> Iterator[str]:
    """The discrete Gaussian of variance Δ²/2ρ keeps ρ (Canonne, Kamath and Steinke)."""
    rho, steps = float(np.round(10 ** rng.uniform(-0.3, 0.5), 4)), 1
    degree = int(rng.integers(1, 3))
    design = om.noise.zcdp(rho, sensitivity=steps, loss=_LOSSES[degree - 1])
    variance = steps**2 / (2 * rho)
    k = np.arange(-int(14 * variance**0.5) - 3, int(14 * variance**0.5) + 4)
    law = np.exp(-(k**2) / (2 * variance))
    loss = float(law @ np.abs(k) ** degree / law.sum())
    words = f"ρ = {rho}, Δ = {steps}, degree {degree}"
    if design.lower_bound > loss * (1 + 1e-9):
        yield f"{words}: the bound {design.lower_bound} is above {loss}"
    far = design.law.n + 8 * max(1, len(design.law.tails))
    z = np.array([float(design.law.at(j)) for j in range(-far, far + 1)])
    for alpha in (1.5, 2.0, 4.0, 16.0):
        for s in range(1, steps + 1):
            p, q = z[:-s], z[s:]
            held = (p > 1e-250) & (q > 1e-250)
            total = float((p[held] * np.exp((alpha - 1) * np.log(p[held] / q[held]))).sum())
            if math.log(total) / (alpha - 1) > rho * alpha * (1 + 1e-7) + 1e-9:
                yield f"{words}: order {alpha} is above at {s}"


# ---------------------------------------------------------------- closed forms
def _closed(rng: Rng) -> Iterator[str]:
    """Optima in closed form: the truncated geometric law where δ is what its last place has, the
    staircase, rounded analytic Gaussian noise."""
    which = int(rng.integers(3))
    epsilon = float(np.round(10 ** rng.uniform(-0.8, 0.6), 3))
    if which == 0:
        n = int(rng.integers(1, 12))
        z = np.exp(-epsilon * np.arange(n + 1))
        z /= 2 * z.sum() - z[0]
        degree = int(rng.integers(1, 3))
        value = 2 * float(z @ np.arange(n + 1) ** degree)
        design = om.noise.optimal(epsilon, float(z[-1]), loss=_LOSSES[degree - 1])
        if abs(design.loss - value) > 1e-6 * value or design.lower_bound > value * (1 + 1e-9):
            yield f"truncated at {n}, ε = {epsilon}: {design.loss} for {value}"
    elif which == 1:
        # Geng and Viswanath: E|Z| = e^{ε/2}/(e^ε - 1) on the line, at γ = 1/(1 + e^{ε/2})
        value = math.exp(epsilon / 2) / math.expm1(epsilon)
        found = om.noise.real(epsilon)
        if not found.lower_bound <= value * (1 + 1e-12) <= found.loss * (1 + 2e-9):
            yield f"staircase at {epsilon}: [{found.lower_bound}, {found.loss}] for {value}"
    else:
        delta, numbers = float(10 ** rng.uniform(-7, -2)), int(rng.integers(2, 6))

        def over(sigma: float) -> float:
            a, b = 1 / (2 * sigma), epsilon * sigma
            return float(norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b)) - delta

        sigma = brentq(over, 1e-2, 1e4, xtol=1e-12)
        found = om.noise.together(epsilon, delta, l2=1, numbers=numbers, loss="square")
        k = np.arange(-int(16 * sigma) - 2, int(16 * sigma) + 3)
        law = norm.cdf((k + 0.5) / sigma) - norm.cdf((k - 0.5) / sigma)
        value = float(law @ k**2)
        if not value * (1 - 1e-6) <= found.loss <= value * (1 + 1e-6):
            yield f"Gaussian at ({epsilon}, {delta}): {found.loss} for {value}"


KINDS: dict[str, Callable[[Rng], Iterator[str]]] = {
    "range": _ranged,
    "curve": _curve,
    "real": _real,
    "rounded": _rounded,
    "points": _points,
    "composed": _composed,
    "bound of several": _bound_of_several,
    "zcdp": _concentrated,
    "closed forms": _closed,
}
