"""``om.noise.real``: the best noise on the real line, with a bound of all noise there is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal, TypeVar, overload

from optmech.errors import ProblemError, TooLargeError
from optmech.exact.checked import whole
from optmech.exact.exponentials import exp_bounds
from optmech.exact.number import Exact, Number
from optmech.noise.additive.bound import NoiseMultipliers, ShiftMultipliers
from optmech.noise.additive.cells import MOST_CELLS, RealLoss, rational
from optmech.noise.additive.certified import LatticeNoise
from optmech.noise.additive.file import MOST_RELEASES, MOST_SENSITIVITY
from optmech.noise.additive.law import Law
from optmech.noise.additive.line import RealNoise, staircase_bound, staircase_loss
from optmech.noise.additive.privacy import BITS
from optmech.noise.additive.renyi import RealRenyiNoise
from optmech.noise.optimum import stated_promise
from optmech.noise.releases import for_releases as families
from optmech.noise.renyi import (
    DivergenceSearch,
    Renyi,
    least,
    stated_bounds,
    stated_order,
)
from optmech.noise.session import Note
from optmech.noise.shifts import ShiftSearch
from optmech.spaces.arguments import checked_arguments

D = TypeVar("D", bound=LatticeNoise)

_SMALL = 16
"""Up to twice as many cells all shifts are searched where the gap asks for it."""
_LITTLE = 6000
"""Places times cells."""
_MUCH = 20_000
_ROUGH = 1e-3
"""Above such a δ the best noise need not nearly fall."""
_HELPED = 0.9
_MOST_AUTO = 512
_SHARP = Fraction(1, 5 * 10**9)
"""What the step of a staircase may cost for lying between cells, relatively."""
_NARROW = 160
"""Bits of a staircase's ratio, beyond those that a small one takes."""
_SLACK = Fraction(1, 1 << 120)
"""By how much that is larger than it need be, relatively: enclosures of e^ε differ."""


@overload
def real(
    epsilon: Number,
    delta: Number = 0,
    *,
    loss: object = ...,
    sensitivity: Number = ...,
    cells: int | Literal["auto"] = ...,
    width: Number | None = ...,
    gap: float = ...,
    note: Note | None = ...,
    for_releases: int = ...,
) -> RealNoise: ...


@overload
def real(
    *,
    renyi: Renyi | None = ...,
    zcdp: Number | None = ...,
    budget: Number | None = ...,
    loss: object = ...,
    sensitivity: Number = ...,
    cells: int | Literal["auto"] = ...,
    width: Number | None = ...,
    gap: float = ...,
    note: Note | None = ...,
) -> RealRenyiNoise: ...


@checked_arguments
def real(
    epsilon: Number | None = None,
    delta: Number = 0,
    *,
    loss: object = "absolute",
    sensitivity: Number = 1,
    cells: int | Literal["auto"] = 16,
    width: Number | None = None,
    gap: float = 1e-3,
    note: Note | None = None,
    for_releases: int = 1,
    renyi: Renyi | None = None,
    zcdp: Number | None = None,
    budget: Number | None = None,
) -> RealNoise | RealRenyiNoise:
    """The noise of least expected loss for a real number that one person changes by at most
    ``sensitivity``, nearly: (ε, δ)-differentially private at every real shift, with a bound of all
    noise on the real line.

    The density is constant on cells of width ``sensitivity / cells``. The lower bound is of every
    real noise, whatever its law: rounding to the lattice of the cells commutes with shifts by its
    steps. Without δ the optimum for "absolute" and "square" is a staircase (Geng and Viswanath, The
    optimal noise-adding mechanism in differential privacy, IEEE Transactions on Information Theory
    2016), which bound and density meet to 1e-9.

    Parameters
    ----------
    loss:
        "absolute", "square", "threshold" (the probability of noise beyond ±``width``), or corners
        [(0, c), (x, c), …]: a loss of the noise's size that is straight between them and goes on
        with its last slope.
    cells:
        Cells of one sensitivity. The gap falls with their square (with their number, for
        thresholds), and time grows. "auto" doubles them from 16 until the gap is met, up to 512.
        Staircases without δ take the number, from this on, at which their step lies between two
        cells.
    gap:
        The certified relative gap at which the search ends.
    note:
        Called with a line of progress now and then.
    for_releases:
        So many numbers, each with noise of its own and all with the same law, keep (ε, δ) together.
        Without δ each takes an equal part of ε, and the bound is of all noise with the same law in
        every release. With δ > 0 the noise is the best of some calibrated families
        (``om.noise.for_releases``), and the bound that of a single release.
    renyi, zcdp, budget:
        Instead of ε and δ, as for ``om.noise.optimal``: (order, ε) or a list of such pairs, ρ, or
        an order and the most that noise may cost. The result is a ``RealRenyiNoise``.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    InfeasibleError
        For ε = δ = 0: no such noise exists.
    TooLargeError
        Where the noise spreads over more cells than are searched.

    Examples
    --------
    >>> noise = om.noise.real(1, "1e-5", sensitivity=2.5)
    >>> print(f"{noise.lower_bound:.5f} {noise.loss:.5f}")
    2.39827 2.39950
    >>> staircase = om.noise.real("ln 3")
    >>> print(staircase.status, round(staircase.loss, 6))  # √3/2
    optimal 0.866025
    """
    span = rational(sensitivity, "sensitivity")
    measure = RealLoss.of(loss, width)
    if not 0 <= gap < 1:
        raise ProblemError(f"{gap!r} is not from 0 to below 1", where="gap")
    count = whole(for_releases, "for_releases", 1, MOST_RELEASES)
    say = note or (lambda _: None)
    if renyi is not None or zcdp is not None or budget is not None:
        if epsilon is not None or delta != 0 or count != 1:
            raise ProblemError(
                "is a promise of its own",
                where="budget" if renyi is zcdp else "zcdp" if renyi is None else "renyi",
                remedy="Leave out epsilon, delta and for_releases",
            )
        return _of_divergence(renyi, zcdp, budget, measure, span, cells, gap, say)
    rate, part = stated_promise(epsilon, delta)
    if count > 1:
        rate_of_one = rate if part > 0 else Exact(rate.factor / count, rate.log_of)
        one = real(
            rate_of_one, part, loss=measure, sensitivity=span, cells=cells, gap=gap, note=note
        )
        return _several(one, rate, count, say)
    deep = True

    def searched(count: int) -> RealNoise:
        nonlocal deep
        stated = RealNoise(Law(1, (2,)), measure, rate, part, span, cells=count)
        search = LineSearch(stated, gap, say, deep)
        found, deep = search.best(), search.deep
        return found

    return _refined(searched, cells, gap, say)


def _refined(
    searched: Callable[[int], D], cells: int | Literal["auto"], gap: float, say: Note
) -> D:
    """Noise on so many cells, or on the fewest of 16, 32, … that have the gap."""
    first = _SMALL if cells == "auto" else whole(cells, "cells", 1, MOST_SENSITIVITY)
    last = _MOST_AUTO if cells == "auto" else first
    best: D | None = None
    while True:
        try:
            found = searched(first)
        except TooLargeError:
            if best is None:
                raise
            return best
        best = found if best is None or found.gap < best.gap else best
        say(f"{found.steps} cells: gap {found.gap:.2g}")
        if best.gap <= gap or 2 * first > last:
            return best
        first *= 2


def _of_divergence(
    renyi: Renyi | None,
    zcdp: Number | None,
    budget: Number | None,
    measure: RealLoss,
    span: Fraction,
    cells: int | Literal["auto"],
    gap: float,
    say: Note,
) -> RealRenyiNoise:
    """Noise with bounds on its divergences, or of the least one."""
    cost = None if budget is None else rational(budget, "budget")
    bounds, rho = stated_bounds(renyi, zcdp) if cost is None else (stated_order(renyi, zcdp), None)

    def searched(count: int) -> RealRenyiNoise:
        stated = RealRenyiNoise(Law(1, (2,)), measure, bounds, span, rho=rho, cells=count)
        if cost is not None:
            return least(stated, cost, gap, say)
        return DivergenceSearch(stated, gap, say).best()

    return _refined(searched, cells, gap, say)


def _several(one: RealNoise, rate: Exact, count: int, note: Note) -> RealNoise:
    """Noise of which several releases keep a promise together, from the best of a single one."""
    if not one.delta > 0:
        return replace(one, epsilon=rate, releases=count).require_private()
    found = families(rate, one.delta, count, sensitivity=one.cells, loss=one.majorant, note=note)
    law, exponent = found.together.law, found.together.exponent
    seconds = one.seconds + found.together.seconds
    made = replace(one, law=law, releases=count, exponent=exponent, seconds=seconds)
    return made.require_private()


class LineSearch(ShiftSearch[RealNoise]):
    """Noise that falls from the centre, for which one shift is enough, and bounds from few shifts;
    all of them where that is not enough and ``deep``, which then says whether they helped."""

    def __init__(self, stated: RealNoise, gap: float, note: Note, deep: bool) -> None:
        super().__init__(stated, gap, note)
        self.deep = deep

    def best(self) -> RealNoise:
        stated = self.stated
        degree = {"absolute": 1, "square": 2}.get(stated.measure.name)
        if not self.delta > 0 and degree is not None:
            self._staircase(degree)
            return self._joined()
        if self.delta >= 1:
            self._nothing()
            return self._joined()
        return super().best()

    def _is_enough(self) -> bool:
        """Whether there is a law and nothing more is searched; where that is little work, all
        shifts are looked at."""
        if self.law is None:
            return False
        most = _MUCH if self.delta > _ROUGH else _LITTLE
        if not self.deep or self._end() * self.sensitivity > most:
            return not self.deep or self._gap() <= self.gap or self.sensitivity > 2 * _SMALL
        wanted, self.gap, before = self.gap, 0.0, self._gap()
        with self._stopping():
            self._window(self._first_window())
        self.gap, self.deep = wanted, self._gap() < _HELPED * before
        return True

    def _nothing(self) -> None:
        """Where all noise is private: even on the cheapest cell."""
        values = self.stated.majorant.values
        cheapest = values.index(min(values))
        self._take(Law(1, (*(0,) * cheapest, 1)) if cheapest else Law(1, (2,)))
        none = ShiftMultipliers(self.sensitivity, (0,), (0, 0, 0), 0)
        self._keep(NoiseMultipliers(0, (none,)))

    def _staircase(self, degree: int) -> None:
        """The staircase, on cells between two of which its step lies nearly."""
        low, high = exp_bounds(self.stated.each, BITS)
        best, width = staircase_bound(high, degree)
        step = 1 - width
        for cells in range(self.sensitivity, MOST_CELLS + 1):
            inner = max(1, round(cells * step - Fraction(1, 2)))
            near = Fraction(2 * inner + 1, 2 * cells)
            if abs(near - step) < step / 1000:
                dearer = staircase_loss(high, degree, near) / best - 1
                if dearer <= _SHARP:
                    break
        self.stated = self._with(cells=cells)
        self._take(_stairs(inner, cells, (1 + _SLACK) / low))
        self._keep(None)


def _stairs(inner: int, cells: int, ratio: Fraction) -> Law:
    """Even on |k| <= inner, and then from ``cells`` to ``cells`` by a ratio of at least this."""
    bits = _NARROW + max(0, int(-3 * math.log2(ratio)))
    fall = math.ceil(ratio * (1 << bits))
    r = Fraction(fall, 1 << bits)
    wide = 2 * bits
    level = math.floor((1 << wide) * (1 - r) / ((2 * inner + 1) * (1 - r) + 2 * cells * r))
    tail = math.ceil(level * r / (1 - r))
    while (rest := (1 << wide) - (2 * inner + 1) * level - 2 * cells * tail) < 0:
        level -= 1
        tail = math.ceil(level * r / (1 - r))
    return Law(wide, (level + rest, *(level,) * inner), (tail,) * cells, fall, bits)
