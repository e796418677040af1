"""``om.noise.compose``: what numbers reveal together that are released with different noise.

Privacy losses add up. On a lattice each is spread upwards so that both laws keep their masses, for
an upper end of δ, and rounded down for a lower end; sums are products of polynomials in whole
numbers (docs/theory/releases.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property, reduce
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.arguments import probability
from optmech.exact.number import Exact, Interval, Number, parse_exact, rounded_up
from optmech_noise.additive.composition import least_rate
from optmech_noise.additive.law import Places
from optmech_noise.additive.pairs import (
    BITS,
    MOST_NODES,
    Losses,
    delta_at,
    masses,
    of_pairs,
    places,
)
from optmech_noise.additive.result import LatticeNoise
from optmech_noise.released import Release

MOST_NOISES = 10_000
LARGEST = 1_000
"""Of an ε that is asked about."""
_FINEST, _COARSEST = 14, 2
_SPARE = 1 << 50
"""What ends of sums may hold that are cut off, over 2^160."""
_ROUNDING = 1e-9
Laws = list[tuple[list[Places], int]]


@record
class Composition(Shown):
    """The result of ``om.noise.compose``: what all releases reveal together.

    Every number has noise of its own, and a person may change each of them by up to the sensitivity
    of its noise, in any direction, depending on what was released before.

    Examples
    --------
    >>> one, other = om.noise.optimal("ln 2"), om.noise.optimal(1, "1/1000", sensitivity=2)
    >>> both = om.noise.compose([one, other, other])
    >>> found = both.delta(2)
    >>> print(0 < found.lower <= found.upper < 1, both.epsilon(0.01).upper < 2.7)
    True True
    """

    noises: tuple[LatticeNoise, ...]
    counts: tuple[int, ...]

    def delta(self, epsilon: Number) -> Interval:
        """Bounds on δ(ε) of all releases together, proved; raises ProblemError unless ε is a number
        from 0 to a thousand."""
        rate = parse_exact(epsilon, where="epsilon")
        if rate > LARGEST:
            raise ProblemError(f"is above {LARGEST:,}", where="epsilon", remedy="Ask for less")
        most = self._most(rate)
        return Interval(max(0.0, min(self._least(float(rate)), most)), min(1.0, most))

    def epsilon(self, delta: Number) -> Interval:
        """Bounds on the least ε >= 0 with δ(ε) <= ``delta``, infinite above where none is found up
        to a thousand. Raises ProblemError unless δ is from 0 to 1."""
        limit = float(probability(delta))
        most = LARGEST / 2
        # each end by itself: the other takes as long
        upper = least_rate(
            lambda rate: min(1.0, self._most(parse_exact(rate, where="epsilon"))) <= limit,
            most=most,
        )[1]
        return Interval(least_rate(lambda rate: self._least(rate) <= limit, most=most)[0], upper)

    def _most(self, rate: Exact) -> float:
        """At least δ(ε)."""
        exponent, upper, _ = self._sums
        return rounded_up(delta_at(upper, rate, exponent))

    def _least(self, rate: float) -> float:
        """At most the chance of an infinite loss and E max(0, 1 - e^{ε - S}), whichever pair is
        told apart."""
        found = 0.0
        for lost, at, chances in self._lower:
            above = at > rate
            found = max(found, lost - float(chances[above] @ np.expm1(rate - at[above])))
        return found * (1 - _ROUNDING)

    @cached_property
    def _lower(self) -> list[tuple[float, Floats, Floats]]:
        """Of every lower end: the chance of an infinite loss, losses and their chances."""
        exponent, _, lower = self._sums
        return [
            (
                part.lost / (1 << BITS),
                np.ldexp(np.arange(part.first, part.first + len(part.masses)), -exponent),
                np.array([mass / (1 << BITS) for mass in part.masses]),
            )
            for part in lower
        ]

    @cached_property
    def _sums(self) -> tuple[int, Losses, list[Losses]]:
        """The exponent of the finest lattice that is short enough, and the sums on it."""
        every = [_laws(noise) for noise in self.noises]
        ways = range(max(map(len, every)))
        for exponent in range(_FINEST, _COARSEST - 1, -1):
            try:
                upper = self._added(of_pairs(laws, exponent) for laws in every)
                lower = [
                    self._added(_floored(laws[-1 - k], exponent) for laws in every)
                    for k in ways
                    if k < _FEW and all(len(laws) > k for laws in every)
                ]
            except TooLargeError:
                continue
            return exponent, upper, lower
        raise TooLargeError(
            "losses of so many releases spread over too many places",
            where="noises",
            remedy="Compose fewer of them",
        )

    def _added(self, ones: Iterable[Losses]) -> Losses:
        every = (one.times(n, _SPARE) for one, n in zip(ones, self.counts, strict=True))
        return reduce(lambda total, own: total.plus(own, _SPARE), every)


_FEW = 2
"""Shifts that are composed for a lower end: the largest, and of noise with two sides both ways."""


_GIVE = "Give what om.noise.optimal, real or histogram return"


def compose(noises: Iterable[Any]) -> Composition:
    """What numbers reveal together of which each is released with its own noise: with what
    ``om.noise.optimal``, ``real``, ``rdp`` and others return, or ``histogram`` and others, of which
    all numbers count that one person changes. Raises ProblemError for other things.

    Examples
    --------
    >>> counts = om.noise.histogram(1, per_person=2)
    >>> print(round(om.noise.compose([counts]).epsilon(0.0001).upper, 2))
    1.0
    """
    if not isinstance(noises, Iterable) or isinstance(noises, str):
        raise ProblemError("is no list of noise", where="noises", remedy=_GIVE)
    found: Counter[LatticeNoise] = Counter()
    for k, noise in enumerate(noises):
        if isinstance(noise, Release):
            share = noise.numbers if len(noise.noise) == 1 else 1
            for part in noise.noise:
                found[part] += share
        elif isinstance(noise, LatticeNoise):
            found[noise] += getattr(noise, "releases", 1)
        else:
            raise ProblemError("is no noise of numbers", where=f"noises[{k}]", remedy=_GIVE)
    total = sum(found.values())
    if not 0 < total <= MOST_NOISES:
        raise ProblemError(
            f"has {total:,} releases", where="noises", remedy=f"Give 1 to {MOST_NOISES:,}"
        )
    return Composition(tuple(found), tuple(found.values()))


def _laws(noise: LatticeNoise) -> Laws:
    """The pairs of laws that are told apart, the largest shift last."""
    law: Any = noise.law
    return [masses(law, shift) for shift in law.shifts(noise.steps)]


def _floored(pair: tuple[list[Places], int], exponent: int) -> Losses:
    """Losses of one pair, rounded down, and probabilities too."""
    atoms, unit = pair
    found: Counter[int] = Counter()
    lost = 0
    for p, q in atoms:
        if not q:
            lost += p
        elif p:
            # what a logarithm in floats is off by is far below that
            found[places(p, q, exponent) - 1] += p
    if not found:
        return Losses(0, [0], (lost << BITS) // unit, upper=False)
    first = min(found)
    if max(found) - first > 4 * MOST_NODES:
        raise TooLargeError("losses spread over too many places", where="lattice")
    listed = [(found[k] << BITS) // unit for k in range(first, max(found) + 1)]
    return Losses(first, listed, (lost << BITS) // unit, upper=False)
