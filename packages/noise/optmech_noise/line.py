"""``om.noise.real``: the best noise on the real line, with a bound of all noise there is."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Literal, cast

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.bisection import bisected
from optmech.base.shown import names_of_fields
from optmech.certificate.objective import relative_gap
from optmech.errors import ProblemError, SolverError, TooLargeError
from optmech.exact.arguments import whole
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact, Number
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.bound import BITS, nothing
from optmech_noise.additive.cells import MOST_CELLS
from optmech_noise.additive.design import RealNoise, staircase_bound, staircase_loss
from optmech_noise.additive.file import MOST_RELEASES
from optmech_noise.additive.law import Law, certain
from optmech_noise.additive.real_loss import RealLoss, Spread, is_function, rational
from optmech_noise.additive.rounded import RoundedNoise
from optmech_noise.additive.shaped import ShapedRealNoise
from optmech_noise.additive.shaped_law import Curve
from optmech_noise.curves import stated_curve
from optmech_noise.proposals import excess, mirrored
from optmech_noise.releases import ROUGH, ShiftSearch, for_releases as families, stated_promise
from optmech_noise.search import truncated_end
from optmech_noise.session import CELLS_GAP, Note, refined, require_gap, silent
from optmech_noise.shaped import ShapedSearch, certain_place

_MOST_SMALL = 32
"""Up to so many cells all shifts are searched where the gap asks for it."""
_LITTLE = 6000
"""Places times cells."""
_MUCH = 20_000
_NEXT_TO_NOTHING = 1e-5
"""Below such a δ the staircase is nearly the best noise where δ is above 0, too."""
_HELPED = 0.9
_SHARP = Fraction(1, 5 * 10**9)
"""What the step of a staircase may cost for lying between cells, relatively."""
_FALLS = 24.0
"""Noise without δ falls by e^-24 at least within so many sensitivities over ε."""
_STEEP = 4.0
ROUNDABLE = ("absolute", "square")
"""Losses that are asked for rounded wherever that is quicker."""
_STEPS = 32
"""Cells for thresholds at large sensitivities: the gap falls slowly with their number."""
_NARROW = 160
"""Bits of a staircase's ratio, beyond those that a small one takes."""
_SLACK = Fraction(1, 1 << 120)
"""By how much that is larger than it need be, relatively: enclosures of e^ε differ."""


@checked_arguments
def real(
    epsilon: Number | None = None,
    delta: Number = 0,
    *,
    loss: object = "absolute",
    sensitivity: Number = 1,
    cells: int | Literal["auto"] = 16,
    width: Number | None = None,
    gap: float = CELLS_GAP,
    note: Note | None = None,
    for_releases: int = 1,
    curve: Sequence[tuple[Number, Number]] | None = None,
) -> RealNoise | ShapedRealNoise:
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
        with its last slope. A function of |noise| is to be convex. It is asked at as many points as
        it takes; what may lie between them is charged to loss and bound (``RealLoss.convex``). With
        δ > 0 it may grow as it likes, and else no faster than a parabola.
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
    curve:
        Instead of ε and δ several pairs of them, all of which are to be kept, with δ > 0: a
        trade-off curve by its tangents, as ``om.noise.curve`` returns.

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
    require_gap(gap)
    count = whole(for_releases, "for_releases", 1, MOST_RELEASES)
    say = note or silent
    if curve is not None:
        pairs = stated_curve(epsilon, delta, curve)
        return _on_a_curve(pairs, loss, width, span, cells, gap, say)
    if epsilon is None:
        raise ProblemError("is missing", where="epsilon", remedy="Give ε, such as 0.5, or a curve")
    rate, part = stated_promise(epsilon, delta)
    measure = RealLoss.of(loss, width, _spread(float(rate) / count, float(part), span, count))
    if count > 1:
        rate_of_one = rate if part > 0 else rate.times(Fraction(1, count))
        one = real(
            rate_of_one, part, loss=measure, sensitivity=span, cells=cells, gap=gap, note=note
        )
        return _several(cast(RealNoise, one), rate, count, say)
    deep, best = True, None

    def searched(count: int) -> RealNoise:
        nonlocal deep, best
        stated = RealNoise(certain(), measure, rate, part, span, cells=count)
        search = LineSearch(stated, gap, say)
        search.deep = deep
        found, deep = search.best(), search.deep
        if found.gap > gap and part > ROUGH and best is None and cells == "auto":
            best = search.on_few_cells()
        if best is not None and best.exact_loss < found.exact_loss:
            # all shifts are looked at on few cells only, and the bound is better on many
            found = replace(found, law=best.law, cells=best.cells, grid=found.bounding)
        best = found
        return found

    found = refined(searched, cells, gap, say)
    if is_function(loss):
        # beyond its points it is not known to be as dear as stated
        end = measure.corners[-1][0]
        if found.law.tails or (found.law.n + Fraction(1, 2)) * found.step > end:
            RealLoss.of(loss, None, Spread(float(end), float(span)))
    return found


def _on_a_curve(
    pairs: Curve, loss: object, width: Number | None, span: Fraction,
    cells: int | Literal["auto"], gap: float, note: Note,
) -> ShapedRealNoise:  # fmt: skip
    """Even noise on cells that keeps every pair of a curve."""
    spreads = [_spread(float(rate), float(part), span, 1) for rate, part in pairs]
    measure = RealLoss.of(loss, width, max(spreads, key=lambda each: each.reach))

    def searched(count: int) -> ShapedRealNoise:
        made = ShapedRealNoise(certain_place(0, 0), measure, pairs, span, count)
        return ShapedSearch(made, gap, note).best()

    return refined(searched, cells, gap, note)


def rounded(
    epsilon: Number,
    delta: Number,
    *,
    sensitivity: int,
    loss: object,
    width: int | None,
    gap: float,
    note: Note | None,
    for_releases: int = 1,
) -> RoundedNoise:
    """Noise for a whole number that one person changes by much: real noise, whose sum is rounded.
    Raises what ``real`` raises, and ProblemError for a loss of which it is not known what rounding
    does."""
    if not isinstance(loss, str):
        raise ProblemError(
            "is known at single numbers",
            where="loss",
            remedy='Give "absolute", "square" or "threshold" at such a sensitivity, or call real',
        )
    end = None if width is None else whole(width, "width", 0) + Fraction(1, 2)
    found = real(
        epsilon, delta, loss=RealLoss.of(loss, end), sensitivity=sensitivity,
        cells="auto" if end is None else _STEPS, gap=max(gap, CELLS_GAP), note=note,
        for_releases=for_releases,
    )  # fmt: skip
    fields = {name: getattr(found, name) for name in names_of_fields(found)}
    return RoundedNoise(**fields).require_private()


def _spread(rate: float, part: float, span: Fraction, count: int) -> Spread:
    """Where (ε, δ)-private noise is likely."""
    size = float(span)
    scale = size / max(min(rate, _STEEP), part)
    reach = _FALLS * size / rate if rate > 0 else math.inf
    if part > 0:
        reach = min(reach, 1.1 * truncated_end(rate, part, 1) * size)
    return Spread(reach + 2 * size, scale, ends=part > 0 and count == 1)


def _several(one: RealNoise, rate: Exact, count: int, note: Note) -> RealNoise:
    """Noise of which several releases keep a promise together, from the best of a single one."""
    if not one.delta > 0:
        return replace(one, epsilon=rate, releases=count).require_private()
    one = replace(one, cells=one.bounding, grid=0)
    found = families(rate, one.delta, count, sensitivity=one.cells, loss=one.majorant, note=note)
    law, exponent = found.together.law, found.together.exponent
    seconds = one.seconds + found.together.seconds
    made = replace(one, law=law, releases=count, exponent=exponent, seconds=seconds)
    return made.require_private()


class LineSearch(ShiftSearch[RealNoise]):
    """Noise that falls from the centre, for which one shift is enough, and bounds from few shifts;
    all of them where that is not enough and ``deep``, which then says whether they helped."""

    deep = True

    def best(self) -> RealNoise:
        degree = self.stated.measure.degree
        if not self.delta > 0 and degree is not None:
            self._staircase(degree)
            return self._joined()
        if self.delta >= 1:
            # all noise is private: even on the cheapest cell
            self._take(certain(self.stated.majorant.cheapest))
            self._keep(nothing(self.sensitivity))
            return self._joined()
        known = self._known(degree) if degree is not None and self.epsilon > 0 else math.inf
        if known < math.inf:
            for found in self._bounds():
                if found.lower_bound > 0 and relative_gap(known, found.lower_bound) <= self.gap:
                    return self._mixed(found)
        found = super().best()
        if found.gap > self.gap:
            others = [divided(found), *([self._mixed(found)] if known < found.loss else [])]
            for other in others:
                if other.exact_loss < found.exact_loss and other.is_private:
                    found = other
        return replace(found, seconds=time.perf_counter() - self.started).require_private()

    def _bounds(self) -> Iterator[RealNoise]:
        """That in closed form, and where δ is next to nothing one from few shifts."""
        yield self.stated
        if self.delta < _NEXT_TO_NOTHING and self.epsilon > 0:
            with suppress(SolverError, TooLargeError):
                self._few()
            if self.proof is not None:
                yield self.proof

    def _known(self, degree: int) -> float:
        """What the staircase costs that is mixed with next to nothing, with probability δ."""
        low, _ = staircase_bound(exp_bounds(self.stated.each, BITS)[1], degree)
        return float((1 - bracket(self.delta)[0]) * low * self.stated.sensitivity**degree)

    def _mixed(self, found: RealNoise) -> RealNoise:
        """The best noise without δ with probability 1 - δ and else hardly any, with the bound of
        what was found."""
        stated = replace(found, delta=Exact(Fraction(0)), grid=0, multipliers=None)
        search = LineSearch(stated, self.gap, self.note)
        search.deep = False
        pure = search.best()
        law = mixed(pure.law, bracket(self.delta)[0])
        return replace(found, law=law, cells=pure.cells, grid=found.bounding)

    def _is_enough(self) -> bool:
        """Whether there is a law and nothing more is searched; where that is little work, all
        shifts are looked at."""
        if self.law is None:
            return False
        most = _MUCH if self.delta > ROUGH else _LITTLE
        if not self.deep or self._end() * self.sensitivity > most:
            return not self.deep or self._gap() <= self.gap or self.sensitivity > _MOST_SMALL
        wanted, self.gap, before = self.gap, 0.0, self._gap()
        with self._stopping():
            self._window(self._first_window())
        self.gap, self.deep = wanted, self._gap() < _HELPED * before
        return True

    def on_few_cells(self) -> RealNoise | None:
        """The best noise of all shifts on so few cells, where its steps fall between two cells
        nearly: there noise that falls loses the least. None where a search fails."""
        losses: dict[int, Fraction] = {}
        for cells in range(_MOST_SMALL // 2, 3 * _MOST_SMALL // 4 + 1):
            search = LineSearch(self._with(cells=cells), self.gap, self.note)
            with self._stopping():
                search._falling()
            if search.law is not None:
                losses[cells] = search.law.exact_loss
        with self._stopping():
            if losses:
                few = min(losses, key=losses.__getitem__)
                return LineSearch(self._with(cells=few), self.gap, self.note).best()
        return None

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
    level = math.floor((1 << wide) * (1 - r) / ((2 * inner + 1) * (1 - r) + 2 * cells * r)) + 1
    rest = -1
    while rest < 0:
        level -= 1
        tail = math.ceil(level * r / (1 - r))
        rest = (1 << wide) - (2 * inner + 1) * level - 2 * cells * tail
    return Law(wide, (level + rest, *(level,) * inner), (tail,) * cells, fall, bits)


_BITS = 80
_MOST_PARTS = 15
_MOST_TERMS = 1_500_000
"""Places times shifts that are decided."""
_HALVINGS = 30
_ROUNDING = 1e-12


def mixed(law: Law, delta: Fraction) -> Law:
    """The law with probability 1 - ``delta``, or a little more, and else the middle cell."""
    part = math.floor(delta * (1 << _BITS))
    rest = (1 << _BITS) - part
    window = [value * rest for value in law.window]
    window[0] += part << law.bits
    tails = tuple(value * rest for value in law.tails)
    return Law(law.bits + _BITS, tuple(window), tails, law.ratio, law.ratio_bits)


def divided(design: RealNoise) -> RealNoise:
    """The noise of a design on an odd number of cells for every one, with as much as δ allows of
    what the middle one has in the middle one of these; the design where it has tails or too many
    cells."""
    law, cells = design.law, design.cells
    parts = math.isqrt(_MOST_TERMS // (cells * (law.n + cells)))
    parts = min(_MOST_PARTS, parts - 1 + parts % 2)
    if law.tails or parts < 3:
        return design
    share = _gathered(law.floats[: law.n + 1], design)
    # as whole numbers over a power of two; the middle takes what rounding leaves
    unit = (1 << _BITS) // parts
    inner = math.floor(Fraction(1 - share) * law.window[0])
    window = [inner * unit] * (parts // 2 + 1)
    window += [value * unit for value in law.window[1:] for _ in range(parts)]
    bits = law.bits + _BITS
    window[0] += (1 << bits) - (2 * sum(window) - window[0])
    return replace(design, law=Law(bits, tuple(window)), cells=cells * parts, grid=cells)


def _gathered(places: Floats, design: RealNoise) -> float:
    """The share of the middle's probability that may be at 0 itself: no shift covers it."""
    power, limit = math.exp(float(design.epsilon)), float(bracket(design.delta)[0])
    both = np.pad(mirrored(places), design.cells)
    centre = len(both) // 2

    def long(share: float) -> bool:
        own = both.copy()
        own[centre] *= 1 - share
        most = max(excess(own, power, s) for s in range(1, design.cells + 1))
        return not share * both[centre] + most <= limit * (1 - _ROUNDING)

    return bisected(long, 0.0, 1.0, _HALVINGS)[0] * (1 - _ROUNDING)
