"""Priors near a prior: the corners of a ball of the Wasserstein distance W_1, exactly.

A convex function of the prior, such as a posterior vulnerability, is largest at one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from optmech.errors import ProblemError

MOST = 1000
"""Corners that a constraint may have."""
_SEARCHED = 50 * MOST

Masses = tuple[Fraction, ...]


def corners(weights: Masses, radius: Fraction, apart: Sequence[Masses]) -> list[Masses]:
    """Distributions whose convex hull are all that mass can be moved to at a cost of at most
    ``radius``, ``apart[s][t]`` being that of a unit from s to t (0 for s = t).

    The plans of such moves are a polytope whose corners move the mass of every s to one place, but
    for one s, which is split between two when that spends all of the radius. Raises ProblemError
    where there are too many.
    """
    found: dict[Masses, None] = {}
    for count, masses in enumerate(_plans(weights, radius, apart)):
        if masses is not None:
            found[masses] = None
        if len(found) > MOST or count > _SEARCHED:
            raise ProblemError(
                f"more than {MOST:,} priors are corners of the ball",
                where="radius",
                remedy="Give a smaller radius or fewer secrets: a radius that can empty no place "
                "has n (n - 1) corners for n secrets",
            )
    return list(found)


def _plans(weights: Masses, radius: Fraction, apart: Sequence[Masses]) -> Iterator[Masses | None]:
    """The corners, some of them several times, and None for a dead end."""
    places = range(len(weights))

    def moved(s: int, left: Fraction, masses: list[Fraction], split: int | None) -> Iterator[
        Masses | None
    ]:  # fmt: skip
        if s == len(weights):
            yield from _ends(weights, left, apart, masses, split)
            return
        if not weights[s]:
            yield from moved(s + 1, left, masses, split)
            return
        for t in places:
            cost = weights[s] * apart[s][t]
            if cost <= left:
                masses[t] += weights[s]
                yield from moved(s + 1, left - cost, masses, split)
                masses[t] -= weights[s]
        if split is None:
            yield from moved(s + 1, left, masses, s)

    yield from moved(0, radius, [Fraction()] * len(weights), None)


def _ends(
    weights: Masses, left: Fraction, apart: Sequence[Masses], masses: list[Fraction],
    split: int | None,
) -> Iterator[Masses | None]:  # fmt: skip
    """All mass placed but that of ``split``, which spends what is left."""
    if split is None:
        yield tuple(masses)
        return
    mass, cost = weights[split], apart[split]
    reach = left / mass
    near = [t for t, d in enumerate(cost) if d < reach]
    far = [t for t, d in enumerate(cost) if d > reach]
    yield None
    for a in near:
        for b in far:
            share = (left - mass * cost[a]) / (cost[b] - cost[a])
            out = list(masses)
            out[a] += mass - share
            out[b] += share
            yield tuple(out)
