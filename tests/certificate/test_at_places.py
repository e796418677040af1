"""What is said of the places of a mechanism on a mesh is decided on exact numbers, by the check and
by the audit alike: against fractions, where equality is as common as a unit more or less."""

from __future__ import annotations

import itertools
import math
import random
from contextlib import suppress
from fractions import Fraction
from operator import mul
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from optmech_audit import inequalities, mechanisms, numbers, regions

from optmech.certificate.families import Bias, Distortion, Leakage, LiftedRatio, LossLimit, Ratio
from optmech.certificate.values import at_places
from optmech.exact.number import parse_exact as number
from optmech.exact.numerators import Numerators

BITS = 6
CONTROL, REPORTS, PLACES = 5, 3, 4
RATES = {"0": 1, "ln 2": 2, "ln 3/2": Fraction(3, 2), "ln 65/64": Fraction(65, 64)}
"""e^ε, where that is rational."""


def drawn(rng: random.Random) -> tuple[Any, Numerators, list[list[Fraction]]]:
    """Weights of control points at places, some of which coincide, released rows, and the
    probabilities at the places."""
    rows = []
    for _ in range(CONTROL):
        cuts = sorted(rng.randrange((1 << BITS) + 1) for _ in range(REPORTS - 1))
        ends = [0, *cuts, 1 << BITS]
        rows.append(tuple(b - a for a, b in itertools.pairwise(ends)))
    weights: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for _ in range(PLACES):
        if weights and rng.random() < 0.4:
            control, own = rng.choice(weights)
            # the same place, its weights over another sum
            times = rng.choice((1, 3))
            weights.append((control, tuple(times * w for w in own)))
        else:
            control = tuple(rng.sample(range(CONTROL), 3))
            weights.append((control, tuple(rng.randrange(1, 8) for _ in control)))
    at = [
        [
            sum((Fraction(w * rows[k][o], sum(own) << BITS) for k, w in zip(c, own, strict=True)),
                Fraction(0))
            for o in range(REPORTS)
        ]
        for c, own in weights
    ]  # fmt: skip
    return SimpleNamespace(weights=tuple(weights)), Numerators(BITS, tuple(rows)), at


def audited(part: Any, spread: Any, released: Numerators) -> bool:
    """The verdict of the audit, on numbers enclosed as it encloses them."""
    region = SimpleNamespace(
        located=[(list(control), list(own)) for control, own in spread.weights],
        stated=SimpleNamespace(parts=[(0, part)]),
    )
    mechanism = mechanisms.Mechanism(released.bits, [list(row) for row in released.rows])
    there = regions.Everywhere.there(region, mechanism)  # type: ignore[arg-type]
    with suppress(numbers.Fault):
        part.check(there)
        return True
    return False


def checked(family: Any, spread: Any, released: Numerators) -> bool:
    prior = family.weighted[:, 0] / family.loss[:, 0] if isinstance(family, LossLimit) else None
    stated = SimpleNamespace(
        prior=prior,
        once=lambda _, compute: compute(),
        secrets=PLACES,
        loss=np.ones((PLACES, REPORTS)),
        allowed=np.ones((PLACES, REPORTS), bool),
    )
    return bool(family.decide(stated, *at_places(spread, released)).passed)


def ratio(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    rate = rng.choice(sorted(RATES))
    pairs = {(i, j) for i in range(PLACES) for j in range(PLACES) if i != j and rng.random() < 0.3}
    apart = np.full((PLACES, PLACES), math.inf)
    for pair in pairs:
        apart[pair] = 1.0
    theirs = [{j: Fraction(1) for j in range(PLACES) if (i, j) in pairs} for i in range(PLACES)]
    kept = all(x <= RATES[rate] * y for i, j in pairs for x, y in zip(at[i], at[j], strict=True))
    own = inequalities.Ratios(numbers.Real.read(written(rate)), theirs)
    return Ratio(0, number(rate, where=""), apart), own, kept


def lifted(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    rate = rng.choice(sorted(RATES))
    sides = [[rng.randrange(3) for _ in range(PLACES)] for _ in range(2)]
    for side in sides:
        side[rng.randrange(PLACES)] += 1
    laws = [[Fraction(w, sum(side)) for w in side] for side in sides]
    pushed = [
        [sum(w * row[o] for w, row in zip(law, at, strict=True)) for o in range(REPORTS)]
        for law in laws
    ]
    kept = all(x <= RATES[rate] * y for x, y in zip(*pushed, strict=True))
    pair = mechanisms.Pair(*({s: w for s, w in enumerate(law) if w} for law in laws))
    left, right = (np.array([side], dtype=float) for side in sides)
    exact = number(rate, where="")
    given = LiftedRatio(0, left, right, np.array([float(exact)]), exact, np.ones(1))
    return given, inequalities.Lifted(numbers.Real.read(written(rate)), [pair]), kept


def bias(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    reported = [rng.randrange(-2, 3) for _ in range(REPORTS)]
    means = [sum(v * p for v, p in zip(reported, row, strict=True)) for row in at]
    meant = [Fraction(round(mean * 4), 4) for mean in means]
    off = max(abs(mean - v) for mean, v in zip(means, meant, strict=True))
    # floats that are 0 as good as, exactly, or at either side
    most = rng.choice([2.0**-1000, 0.0625, 0.125, math.nextafter(float(off), 0), float(off) or 1.0])
    family = Bias(
        0,
        np.array(reported, float),
        np.array([*map(float, meant)]),
        number(most, where=""),
    )
    limit = numbers.Interval(Fraction(most), Fraction(most))
    return (
        family,
        inequalities.Bias(limit, [*map(Fraction, reported)], meant),
        off <= Fraction(most),
    )


def worst_loss(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    loss = [[rng.randrange(1, 6) for _ in range(REPORTS)] for _ in range(PLACES)]
    worst = max(
        sum(c * p for c, p in zip(cost, row, strict=True))
        for cost, row in zip(loss, at, strict=True)
    )
    least = max(map(min, loss))
    # just below what every mechanism loses means that
    most = rng.choice(
        [float(worst), math.nextafter(float(worst), 0) if worst > least else 6.0, 3.5]
    )
    array = np.array(loss, dtype=float)
    family = LossLimit(0, array, number(most, where=""), True, array)
    limit = numbers.Interval(Fraction(most), Fraction(most))
    theirs = inequalities.LossLimit(limit, None, [[*map(Fraction, row)] for row in loss])
    return family, theirs, worst <= Fraction(most)


def near(rng: random.Random, value: Fraction, *extremes: Fraction) -> tuple[str, Fraction]:
    """A limit at the value, or a unit of far smaller size beside it, and what it means: an extreme
    that it falls short of by rounding."""
    stated = value + rng.choice([0, 1, -1, -1, -1]) * Fraction(1, 1 << 200)
    stated = max(stated, Fraction(1, 1 << 200))
    meant = next((e for e in extremes if stated < e <= stated * (1 + Fraction(1, 10**12))), stated)
    return str(stated), meant


def mean_loss(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    loss = [[rng.choice([1, 2, 2, 5]) for _ in range(REPORTS)] for _ in range(PLACES)]
    if rng.random() < 0.3:
        loss = [[3] * REPORTS] * PLACES
    weights = [Fraction(rng.randrange(1, 9), 8) for _ in range(PLACES)]
    each = [sum(map(mul, cost, row)) for cost, row in zip(loss, at, strict=True)]
    value, least = sum(map(mul, weights, each)), sum(map(mul, weights, map(min, loss)))
    stated, meant = near(rng, Fraction(value), Fraction(least))
    array, mass = np.array(loss, dtype=float), np.array([*map(float, weights)])
    family = LossLimit(0, array * mass[:, None], number(stated, where=""), False, array)
    limit = numbers.Interval(meant, meant)
    theirs = inequalities.LossLimit(limit, weights, [[*map(Fraction, row)] for row in loss])
    return family, theirs, value <= meant


def leakage(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    gain = [[rng.randrange(-4, 9) for _ in range(PLACES)] for _ in range(3)]
    if rng.random() < 0.2:
        gain[1] = gain[0]
    weights = [Fraction(rng.randrange(1, 9), 8) for _ in range(PLACES)]
    w = [[g * v for g, v in zip(row, weights, strict=True)] for row in gain]
    columns = list(zip(*at, strict=True))
    value = sum(max(sum(map(mul, row, column)) for row in w) for column in columns)
    blind, known = max(map(sum, w)), sum(map(max, zip(*w, strict=True)))
    if value <= 0:
        gain, w = [[1] * PLACES] * 2, [weights] * 2
        value = blind = known = sum(weights)
    stated, meant = near(rng, Fraction(value), Fraction(blind), Fraction(known))
    table, mass = np.array(gain, dtype=float), np.array([*map(float, weights)])
    family = Leakage(0, table * mass, number(stated, where=""), False, table, mass)
    return (
        family,
        inequalities.leakage(numbers.Real.read(number(stated, where="").text), w),
        (value <= meant),
    )


def distortion(rng: random.Random, at: list[list[Fraction]]) -> tuple[Any, Any, bool]:
    d = [[rng.randrange(9) for _ in range(PLACES)] for _ in range(4)]
    if rng.random() < 0.2:
        d[1] = d[0]
    weights = [Fraction(rng.randrange(1, 9), 8) for _ in range(PLACES)]
    w = [[g * v for g, v in zip(row, weights, strict=True)] for row in d]
    columns = list(zip(*at, strict=True))
    value = Fraction(sum(min(sum(map(mul, row, column)) for row in w) for column in columns))
    most = Fraction(min(map(sum, w)))
    stated = value + rng.choice([0, 1, 1, 1, -1]) * Fraction(1, 1 << 200)
    meant = most if most < stated <= most * (1 + Fraction(1, 10**12)) else stated
    table, mass = np.array(d, dtype=float), np.array([*map(float, weights)])
    family = Distortion(0, table * mass, number(str(stated), where=""), table, mass)
    return family, inequalities.Distortion(numbers.Interval(meant, meant), w), value >= meant


def written(rate: str) -> Any:
    return 0.0 if rate == "0" else rate


@pytest.mark.parametrize("made", [ratio, lifted, bias, worst_loss, mean_loss, leakage, distortion])
def test_it_is_decided_exactly(made: Any) -> None:
    found = {True: 0, False: 0}
    for seed in range(160):
        rng = random.Random(seed)
        spread, released, at = drawn(rng)
        family, theirs, kept = made(rng, at)
        assert checked(family, spread, released) is kept, seed
        assert audited(theirs, spread, released) is kept, seed
        found[kept] += 1
    assert min(found.values()) > 8
