"""Noise for pairs of whole numbers, with its proof."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact, from_above
from optmech_noise.additive.bound import BITS, Multipliers
from optmech_noise.additive.planar_law import (
    NORMS,
    Place,
    PlanarLaw,
    PlanarLoss,
    around,
    orbit,
    radius,
    representative,
    require_norm,
    shell_mean,
    shifts_within,
    wedge,
)
from optmech_noise.additive.result import ApproximatelyPrivate

MOST_FAR = 10**6


def shape_of(norm: str) -> str:
    """The norm of windows and shells for shifts in a norm, none of which changes it by more."""
    require_norm(norm, "norm")
    return "l1" if norm == "l1" else "linf"


def classes(shape: str, n: int, shift: Place) -> Iterator[tuple[Place, Place, int]]:
    """Of the places k of radius at most n: the representatives of k and k + shift, and of how many
    k, in order."""
    for place in wedge(shape, n):
        found: dict[Place, int] = {}
        for x, y in orbit(place):
            other = representative(x + shift[0], y + shift[1])
            found[other] = found.get(other, 0) + 1
        for other in sorted(found):
            yield place, other, found[other]


@record
class PlanarMultipliers(Multipliers):
    """Multipliers of several shifts for the places of radius at most ``n``, the same for all places
    of a class, in the order of ``classes``; none is above ``price`` where δ > 0."""

    n: int


@record
class PlanarNoise(ApproximatelyPrivate):
    """The result of ``om.noise.for_pairs``: noise Z on pairs of whole numbers, to be added to
    one that a person changes by at most ``sensitivity`` in the norm ``norm``.

    Everything is proved by exact arithmetic from ``law`` and ``multipliers``: that the noise is
    (ε, δ)-differentially private, a number at or above its loss E c(‖Z‖), and that no noise on
    pairs of whole numbers that is as private has a loss below ``lower_bound``.

    Examples
    --------
    >>> design = om.noise.for_pairs("ln 2", gap=1e-2)
    >>> print(float(design.pmf(0, 0)) > float(design.pmf(1, 0)) > 0)
    True
    >>> design.sample(size=2, seed=1).shape, design.drawn(2, seed=1).shape
    ((2, 2), (2, 2))
    """

    law: PlanarLaw
    measure: PlanarLoss
    epsilon: Exact
    delta: Exact
    sensitivity: int
    norm: str
    multipliers: PlanarMultipliers | None = None
    seconds: float = 0.0
    numbers = "pairs of whole numbers"
    tails = "geometric shells"

    @property
    def promise(self) -> str:
        """The promise in words."""
        name = NORMS[self.norm]
        return f"{self.pair} for pairs that change by at most {self.sensitivity} in {name}"

    @cached_property
    def exact_loss(self) -> Fraction:
        """The expected loss, exactly or rounded up a little."""
        law = self.law
        total = Fraction(0)
        for place, value in zip(law.places, law.core, strict=True):
            total += self.measure.bounds(place)[1] * len(orbit(place)) * value
        for start, mass in enumerate(law.tails, law.n + 1):
            found = self.measure.beyond(law.shape, start)
            mean = shell_mean(found, start, len(law.tails), law.r)
            total += around(law.shape) * mass * (1 - law.r) * mean
        return total / (1 << law.bits)

    def _proved(self, found: PlanarMultipliers) -> Fraction:
        """min C(k) - δ Σ λ, C(k) the mean over the images of k of
        c(k) + Σ_v y_v(k) - e^ε y_v(k - v)."""
        shape, n = shape_of(self.norm), found.n
        allowed = set(shifts_within(self.norm, self.sensitivity))
        power = exp_bounds(self.epsilon, BITS)[1]
        own: dict[Place, int] = {}
        others: dict[Place, int] = {}
        most = bracket(self.delta)[1]
        cost = 0
        for part in found.shifts:
            if part.shift not in allowed:
                raise ProblemError("there is a shift beyond the sensitivity", where="multipliers")
            made = list(classes(shape, n, part.shift))
            if len(made) != len(part.inner):
                raise ProblemError("there are too few or too many", where="multipliers")
            if most > 0 and max(part.inner) > part.price:
                raise ProblemError("there is a multiplier above its limit", where="multipliers")
            cost += part.price if most > 0 else 0
            for (one, other, count), y in zip(made, part.inner, strict=True):
                if y:
                    own[one] = own.get(one, 0) + count * y
                    others[other] = others.get(other, 0) + count * y
        unit = 1 << found.bits
        least = self.measure.least_beyond(shape, n + self.sensitivity + 1)
        for place in wedge(shape, n + self.sensitivity):
            gain = own.get(place, 0) - power * others.get(place, 0)
            at = self.measure.bounds(place)[0] + Fraction(gain) / (unit * len(orbit(place)))
            least = min(least, at)
        return least - most * cost / unit

    @cached_property
    def largest_delta(self) -> tuple[Fraction | None, Place]:
        """A number at or above the largest δ at ε over all shifts, and the shift it is at; None
        where tails alone break ε, as no δ is proved then."""
        law, power = self.law, exp_bounds(self.epsilon, BITS)[0]
        a, b = power.numerator, power.denominator
        reach = law.n + self.sensitivity
        known, bits = law.whole(reach)
        if law.tails and not self._tails_keep(power):
            return None, (1, 0)
        grid, inside = self._grid(known, reach)
        worst, at = Fraction(0), (1, 0)
        for x, y in shifts_within(self.norm, self.sensitivity):
            near, far = np.s_[: len(grid) - x, : len(grid) - y], np.s_[x:, y:]
            held = inside[near] & inside[far]
            excess = b * grid[near][held] - a * grid[far][held]
            found = Fraction(int(excess[excess > 0].sum()), b << bits)
            if found > worst:
                worst, at = found, (x, y)
        return worst, at

    def _grid(self, known: dict[Place, int], reach: int) -> tuple[Any, Any]:
        """z as whole numbers for all places of radius up to ``reach``, and which these are."""
        size = 2 * reach + 1
        grid, inside = np.zeros((size, size), dtype=object), np.zeros((size, size), dtype=bool)
        for x in range(-reach, reach + 1):
            wide = reach - abs(x) if self.law.shape == "l1" else reach
            for y in range(-wide, wide + 1):
                grid[x + reach, y + reach] = known[representative(x, y)]
                inside[x + reach, y + reach] = True
        return grid, inside

    def _tails_keep(self, power: Fraction) -> bool:
        """Whether radii beyond the window that differ by at most the sensitivity keep ε."""
        law, d = self.law, self.sensitivity
        first = range(law.n + 1, law.n + len(law.tails) + 1)
        pairs = ((law.shell(m), law.shell(m + t)) for m in first for t in range(1, d + 1))
        return all(max(pair) <= power * min(pair) for pair in pairs)

    @property
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided exactly."""
        worst = self.largest_delta[0]
        return worst is not None and worst <= bracket(self.delta)[0]

    @property
    def decided(self) -> tuple[float, str]:
        """The largest δ, and what was decided of it in words."""
        worst, at = self.largest_delta
        if worst is None:
            return 1.0, "the tails do not keep ε"
        shown = float(worst)
        return (
            shown,
            f"at ε = {self.epsilon.words} δ is {from_above(shown, 9)}, at shift {at[0]},{at[1]}",
        )

    @property
    def edge(self) -> str:
        """Where the window of the law ends, in words."""
        return f"{NORMS[self.law.shape]} norm {self.law.n}"

    def pmf(self, x: int, y: int) -> Fraction:
        """P(Z = (x, y)), exactly; raises ProblemError unless both are whole numbers, or where they
        are above a million."""
        far = whole(x, "x", -MOST_FAR, MOST_FAR), whole(y, "y", -MOST_FAR, MOST_FAR)
        if self.law.tails and radius(self.law.shape, *far) > self.law.n + 10_000:
            raise ProblemError("lies too far out in the tails", where="x")
        return self.law.at(*far)

    def sample(self, size: int | None = None, *, seed: int | None = None) -> Ints:
        """One draw of the noise, shape (2,), or ``size`` of them, shape (size, 2), with exactly the
        probabilities of ``pmf``.

        From the operating system's entropy; a seed makes draws reproducible and unfit for release.
        Raises ProblemError for a size that is none.
        """
        drawn: Ints = self._draws(size, seed)
        return drawn

    @property
    def stated(self) -> dict[str, object]:
        return super().stated | {"norm": self.norm}
