"""The best noise against linear programs of its own: tails by geometric sums, shifts of both signs.

The least loss on places up to ``far``, beyond which noise falls by e^-ε from period to period, or
has nothing, is that of some private noise: no lower bound may be above it. Promise and loss of the
law are computed in floats from ``pmf``; several releases are convolved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import optmech as om

Cost = Callable[[int], float]


def judge(rng: np.random.Generator) -> Iterator[str]:
    kind = rng.choice(["pure", "mixed", "steep", "flat", "renyi", "pair", "several"])
    steps = int(rng.choice([1, 1, 2, 3]))
    name, cost, given = _loss(rng)
    epsilon = float(np.round(10 ** rng.uniform(-0.7, 0.9), 3))
    delta = 0.0 if kind == "pure" else float(np.round(10 ** rng.uniform(-6, -0.4), 7))
    if kind == "steep":
        epsilon, delta = float(rng.uniform(8, 60)), float(rng.choice([0, delta]))
    if kind == "flat":
        epsilon, delta = float(rng.choice([0, 0, 1e-4, 1e-3])), float(rng.uniform(0.03, 1))
    words = f"{kind}: ε = {epsilon}, δ = {delta}, Δ = {steps}, {name}"
    if kind == "renyi":
        yield from _renyi(rng, min(epsilon, 3), min(steps, 3), cost, given, words)
    elif kind == "pair":
        yield from _pair(rng, max(0.7, min(epsilon, 8)), min(steps, 2), words)
    elif kind == "several":
        yield from _several(rng, epsilon, steps, cost, given, words)
    else:
        asked = {"loss": cost} | given
        design = om.noise.optimal(epsilon, delta, sensitivity=steps, **asked)
        yield from _wrong(design, epsilon, delta, steps, cost, words)
        least = _program(epsilon, delta, steps, cost)
        if least is not None and design.lower_bound > least * (1 + 1e-6) + 1e-13:
            yield f"{words}: the bound {design.lower_bound} is above {least}"
        if least is not None and design.loss > least * (1 + 1e-3) + 1e-8 and epsilon:
            yield f"{words}: the loss {design.loss} is far above {least}"


def _loss(rng: np.random.Generator) -> tuple[str, Cost, dict[str, Any]]:
    """A loss as it is given to optmech where it is a function, in ``given`` where it is not."""
    which = int(rng.integers(8))
    width = int(rng.integers(0, 7))
    if which == 0:
        return "absolute", float, {"loss": "absolute"}
    if which == 1:
        return "square", lambda k: float(k * k), {"loss": "square"}
    if which == 2:
        return f"threshold {width}", lambda k: float(k > width), {
            "loss": "threshold", "width": width
        }  # fmt: skip
    if which == 3:
        return "root", math.sqrt, {}
    if which == 4:
        return f"capped at {width + 1}", lambda k: float(min(k, width + 1)), {}
    if which == 5:
        return "power 3/2", lambda k: float(k) ** 1.5, {}
    values = np.round(rng.uniform(0, 5, int(rng.integers(2, 7))), 2).tolist()
    values[-1] = max(values[-1], values[-2])
    values[-1] += float(rng.choice([0, 0, 0.5, 2])) if which == 6 else 0.0
    if rng.random() < 0.3:
        values[int(rng.integers(len(values) - 1))] = 0.0
    step = values[-1] - values[-2]
    last = len(values) - 1
    return (
        f"table {values}",
        lambda k: values[k] if k <= last else values[-1] + step * (k - last),
        {"loss": values},
    )


def _wrong(
    design: Any, epsilon: float, delta: float, steps: int, cost: Cost, words: str
) -> Iterator[str]:
    """A promise, a loss or figures that are not so."""
    z = _places(design)
    both = np.concatenate([z[:0:-1], z])
    rest = _beyond(design, len(z))
    if abs(both.sum() + rest - 1) > 1e-9:
        yield f"{words}: the probabilities sum to {both.sum() + rest}"
    for s in range(1, steps + 1):
        shifted = np.append(both[s:], np.zeros(s))
        excess = both - np.exp(epsilon) * shifted
        found = float(excess[: len(both) - s].clip(0).sum())
        if found > delta * (1 + 1e-9) + 1e-13:
            yield f"{words}: δ is {found} at shift {s}"
    costs = np.array([cost(k) for k in range(len(z))])
    # only where a loss is the same for good is noise ever that wide
    loss = 2 * float(z @ costs) - z[0] * costs[0] + rest * cost(len(z))
    if loss > design.loss * (1 + 1e-9):
        yield f"{words}: the loss is {loss}, and {design.loss} is stated"
    if not 0 <= design.lower_bound <= design.loss:
        yield f"{words}: the bound {design.lower_bound} of a loss {design.loss}"
    if (design.status == "optimal") != (design.gap <= 1e-6):
        yield f"{words}: {design.status} at a gap of {design.gap}"


def _places(design: Any) -> np.ndarray:
    """z(0), z(1), … until next to nothing is left."""
    law = design.law
    z = [float(v) / 2.0**law.bits if law.bits < 1000 else float(design.pmf(k))
         for k, v in enumerate(law.window)]  # fmt: skip
    if law.tails:
        r = float(law.r)
        part = np.array([float(design.pmf(law.n + 1 + c)) for c in range(len(law.tails))])
        while part.sum() > 1e-17 * (1 - r) and len(z) < 3_000_000:
            z += part.tolist()
            part = part * r
    return np.array(z)


def _beyond(design: Any, last: int) -> float:
    """What there is on both sides from place ``last`` on, a multiple of the period out."""
    law = design.law
    if not law.tails:
        return 0.0
    blocks = (last - law.n - 1) // len(law.tails)
    return 2 * float(Fraction(sum(law.tails), 1 << law.bits)) * float(law.r) ** blocks


def _program(epsilon: float, delta: float, steps: int, cost: Cost) -> float | None:
    """The least expected loss of noise on |k| <= far, symmetric, with tails of ratio e^-ε."""
    if epsilon > 12:
        return None
    far = 10 + 3 * steps + (30 if epsilon > 0.5 else 60)
    if not delta:
        far = 8 + 4 * steps
    ratio = math.exp(-epsilon) if epsilon >= 0.05 else 0.0
    if not ratio and not delta:
        return None
    size = far + 1 + (steps if ratio else 0)

    def place(k: int) -> tuple[int, float]:
        k = abs(k)
        if k < size:
            return k, 1.0
        blocks = -(-(k - size + 1) // steps)
        return (k - blocks * steps, ratio**blocks) if ratio else (0, 0.0)

    mass, costs = np.full(size, 2.0), np.array([2 * cost(k) for k in range(size)])
    mass[0], costs[0] = 1.0, costs[0] / 2
    if ratio:
        for k in range(far + 1, size):
            mass[k] = 2 / (1 - ratio)
            reach = np.arange(int(60 / epsilon) + 2)
            terms = [cost(k + steps * int(j)) * ratio**j for j in reach]
            costs[k] = 2 * math.fsum(terms)
    # without δ no place has less of the centre; rows and losses are in units of that: a solver's
    # tolerance is then relative, also of losses of 1e-9
    unit = np.array([0.0 if delta else -epsilon * math.ceil(k / steps) for k in range(size)])
    unit = np.exp(unit)
    mass, costs = mass * unit, costs * unit
    typical = 1.0 if delta else max(float(costs.sum() / mass.sum()), 1e-300)
    rows, across, values, upper = [], [], [], []
    columns = size
    for s in range(1, steps + 1):
        used = []
        for i in range(-size - steps, size):
            (a, p), (b, q) = place(i), place(i + s)
            if not p:
                continue
            row = len(upper)
            rows += [row, row]
            across += [a, b]
            values += [p, -math.exp(epsilon) * q * float(unit[b] / unit[a])]
            inside = min(abs(i), abs(i + s)) < size
            if delta and (not ratio or min(abs(i), abs(i + s)) <= far) and inside:
                rows.append(row)
                across.append(columns)
                values.append(-1.0)
                used.append(columns)
                columns += 1
            upper.append(0.0)
        if used:
            rows += [len(upper)] * len(used)
            across += used
            values += [1.0] * len(used)
            upper.append(delta)
    matrix = sp.csr_array(sp.coo_array((values, (rows, across)), shape=(len(upper), columns)))
    every = np.append(mass, np.zeros(columns - size))[None, :]
    full = np.append(costs, np.zeros(columns - size)) / typical
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        full, A_ub=matrix, b_ub=upper, A_eq=every, b_eq=[1.0], method="highs", options=options
    )
    if found.status != 0:
        return None
    x = found.x
    # a solver's tolerance is no noise: what it breaks is too much
    off = float((matrix @ x - np.array(upper)).max(initial=0.0))
    return float(found.fun) * typical if off < 1e-9 else None


def _renyi(
    rng: np.random.Generator, epsilon: float, steps: int, cost: Cost, given: Any, words: str
) -> Iterator[str]:
    order = str(rng.choice(["3/2", "2", "3", "8"]))
    alpha = float(om.noise.rdp((order, 1.0)).order)
    loss, width = given.get("loss", cost), given.get("width")
    design = om.noise.rdp((order, epsilon), sensitivity=steps, loss=loss, width=width)
    z = _places(design)
    both = np.concatenate([z[:0:-1], z])
    for s in range(1, steps + 1):
        p, q = both[: len(both) - s], both[s:]
        held = (p > 1e-200) & (q > 1e-200)
        total = float((p[held] * (p[held] / q[held]) ** (alpha - 1)).sum())
        if math.log(total) / (alpha - 1) > epsilon + 1e-9:
            yield f"{words}, order {order}: the divergence is above at {s}"
    costs = np.array([cost(k) for k in range(len(z))])
    loss = 2 * float(z @ costs) - z[0] * costs[0]
    if loss > design.loss * (1 + 1e-9) or design.lower_bound > design.loss:
        yield f"{words}, order {order}: loss {loss}, {design}"
    k = np.arange(-400, 401)
    gauss = np.exp(-(k**2) * epsilon / (alpha * steps**2))
    gauss /= gauss.sum()
    other = float(gauss @ np.array([cost(i) for i in np.abs(k).tolist()]))
    if design.lower_bound > other * (1 + 1e-9):
        yield f"{words}, order {order}: the bound is above the discrete Gaussian's {other}"


def _several(
    rng: np.random.Generator, epsilon: float, steps: int, cost: Cost, given: Any, words: str
) -> Iterator[str]:
    count = 2
    delta = float(rng.choice([0, 0, 0, 1])) if rng.random() < 0.95 else 1e-3
    design = om.noise.optimal(
        epsilon, delta, sensitivity=steps, loss=given.get("loss", cost),
        width=given.get("width"), for_releases=count,
    )  # fmt: skip
    each = epsilon / count if delta == 0 else epsilon
    if delta in (0, 1):
        yield from _wrong(design, each, delta, steps, cost, words)
    z = _places(design)[:40]
    both = np.concatenate([z[:0:-1], z])
    for shifts in itertools.combinations_with_replacement((-steps, steps), count):
        first = second = np.ones(1)
        for s in shifts if count == 2 else ():
            shifted = np.roll(np.pad(both, steps), -s)
            first = np.outer(first, np.pad(both, steps)).ravel()
            second = np.outer(second, shifted).ravel()
        if count == 2:
            # of places that were cut off the second is not known
            known = second > 0
            found = float((first - math.exp(epsilon) * second)[known].clip(0).sum())
            if found > delta * (1 + 1e-9) + 1e-12:
                yield f"{words}: {count} releases have δ {found} at {shifts}"


def _pair(rng: np.random.Generator, epsilon: float, steps: int, words: str) -> Iterator[str]:
    norm, other = (str(v) for v in rng.choice(["l1", "linf"], 2))
    values = np.round(rng.uniform(0, 4, 3), 2).tolist()
    values[-1] = max(values[-2:]) + float(rng.choice([0, 1]))
    delta = float(rng.choice([0, 1e-3, 0.05]))
    design = om.noise.for_pairs(
        epsilon, delta, norm=norm, loss_norm=other, sensitivity=steps, loss=values
    )
    words = f"{words}, {norm}, {other}, {values}, δ {delta}"
    n = int(min(design.law.n + 3 * steps, 60))
    ends = range(-n, n + 1)
    z = np.array([[float(design.pmf(x, y)) for y in ends] for x in ends])
    size = {"l1": lambda x, y: abs(x) + abs(y), "linf": lambda x, y: max(abs(x), abs(y))}
    for x, y in itertools.product(range(steps + 1), repeat=2):
        if (x or y) and size[norm](x, y) <= steps:
            near, far = z[: len(z) - x, : len(z) - y], z[x:, y:]
            found = float((near - math.exp(epsilon) * far).clip(0).sum())
            if found > delta * (1 + 1e-9) + 1e-12:
                yield f"{words}: δ is {found} at {x}, {y}"
    step = values[-1] - values[-2]

    def cost(k: int) -> float:
        return values[k] if k < 3 else values[-1] + step * (k - 2)

    loss = math.fsum(
        cost(size[other](x, y)) * z[x + n, y + n] for x, y in itertools.product(ends, repeat=2)
    )
    if loss > design.loss * (1 + 1e-9) or not 0 <= design.lower_bound <= design.loss:
        yield f"{words}: loss {loss}, {design}"
    b = math.exp(-epsilon / steps / (1 if norm == "l1" else 2))
    k = np.arange(-200, 201)
    geometric = b ** np.abs(k) * (1 - b) / (1 + b)
    grid = np.outer(geometric, geometric)
    radii = np.abs(k)[:, None] + np.abs(k) if other == "l1" else np.maximum.outer(abs(k), abs(k))
    costs = np.where(radii < 3, np.array(values)[np.minimum(radii, 2)],
                     values[-1] + step * (radii - 2))  # fmt: skip
    if design.lower_bound > float((grid * costs).sum()) * (1 + 1e-9):
        yield f"{words}: the bound is above independent geometric noise"
