"""What is said of the places of a mechanism on a mesh is decided on exact numbers, by the check and
by the audit alike: against fractions, where equality is as common as a unit more or less."""

from __future__ import annotations

import itertools
import math
import random
from contextlib import suppress
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from optmech.audit import inequalities, mechanisms, numbers, regions
from optmech.certificate.families import Bias, LiftedRatio, LossLimit, Ratio
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
        rows=mechanisms.Mechanism(released.bits, [list(row) for row in released.rows]),
        beside=[(0, part)],
        lines=[],
    )
    with suppress(numbers.Fault):
        regions.Everywhere.check_beside(region)  # type: ignore[arg-type]
        return True
    return False


def checked(family: Any, spread: Any, released: Numerators) -> bool:
    stated = SimpleNamespace(
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
    theirs = [
        [Fraction(1) if (i, j) in pairs else None for j in range(PLACES)] for i in range(PLACES)
    ]
    kept = all(x <= RATES[rate] * y for i, j in pairs for x, y in zip(at[i], at[j], strict=True))
    own = inequalities.Ratios(numbers.Real.read(written(rate)), theirs, None, None)
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


def written(rate: str) -> Any:
    return 0.0 if rate == "0" else rate


@pytest.mark.parametrize("made", [ratio, lifted, bias, worst_loss])
def test_it_is_decided_exactly(made: Any) -> None:
    found = {True: 0, False: 0}
    for seed in range(400):
        rng = random.Random(seed)
        spread, released, at = drawn(rng)
        family, theirs, kept = made(rng, at)
        assert checked(family, spread, released) is kept, seed
        assert audited(theirs, spread, released) is kept, seed
        found[kept] += 1
    assert min(found.values()) > 20
