"""Noise for points of the plane or of space, the same in every direction, with its proof.

The law is a mixture of even distributions on balls around 0: its density falls outwards. Then what
is revealed grows with the length of a shift, as two balls have the less in common the farther apart
they are: the largest shift decides the promise (docs/theory/releases.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.exponentials import bracket, ends_of, exp_bounds
from optmech.exact.number import Exact, Number, parse_exact
from optmech.exact.ratios.hockey_stick import Pair, logarithm
from optmech.exact.sampler import Bytes
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.bound import BITS
from optmech_noise.additive.caps import Caps, caps_bound
from optmech_noise.additive.cells import MOST_DRAWN, evaluated, rounded_sum
from optmech_noise.additive.law import Ended
from optmech_noise.additive.real_loss import signed
from optmech_noise.additive.result import ApproximatelyPrivate, Divided
from optmech_noise.additive.spheres import PRECISION, common

DEGREES = {"absolute": 1, "square": 2}
MOST_BALLS = 4000
_FINE = 192
_LEAST_MEET = 1e-14
_PAIR_ERROR = 1e-11
"""What floats may change probabilities by, all together."""


@record
class RadialLaw(Ended):
    """An even distribution on a ball around 0 of radius k = 1, 2, …, with probability
    ``balls[k - 1]`` / 2^bits. Raises ProblemError where these are no probabilities of sum one.

    Examples
    --------
    >>> law = om.noise.RadialLaw(1, (1, 1))
    >>> print(law.n, law.count, law.mean(2, 2), law.mean(3, 1))  # E‖Z‖² in the plane, E‖Z‖ in space
    2 2 5/4 9/8
    >>> print(f"{law.density(2, 0.5):.4f} {law.density(2, 1.5):.4f}")  # over that of a unit disc
    0.6250 0.1250
    >>> print([height / 2**193 for height in law.heights(2)])  # the same, in whole numbers
    [0.625, 0.125]
    """

    bits: int
    balls: tuple[int, ...]

    @property
    def shares(self) -> Sequence[int]:
        return self.balls

    @property
    def n(self) -> int:
        """How far from 0 it reaches."""
        return len(self.balls)

    def mean(self, dimension: int, degree: int) -> Fraction:
        """E‖Z‖^degree."""
        total = sum(w * k**degree for k, w in enumerate(self.balls, 1))
        return Fraction(dimension * total, (dimension + degree) << self.bits)

    def density(self, dimension: int, radius: float) -> float:
        """The density at this distance of 0, in units of that of the unit ball, nearly."""
        inner = math.floor(radius)
        return float(
            sum(
                Fraction(w, k**dimension << self.bits)
                for k, w in enumerate(self.balls, 1)
                if k > inner
            )
        )

    def heights(self, dimension: int) -> list[int]:
        """The density on the rings from the middle on, over that of the unit ball and 2^(bits +
        192), rounded down."""
        found, total = [], 0
        for k in range(self.n, 0, -1):
            total += (self.balls[k - 1] << _FINE) // k**dimension
            found.append(total)
        return found[::-1]

    def excess(self, dimension: int, apart: int, power: Fraction) -> Fraction:
        """At least ∫ max(0, f(x) - ``power`` f(x - v)) for a shift v of ``apart`` rings.

        Examples
        --------
        >>> from fractions import Fraction
        >>> law = om.noise.RadialLaw(1, (1, 1))
        >>> print(float(law.excess(2, 4, Fraction(1))))  # two discs that touch
        1.0
        """
        heights = self.heights(dimension)
        a, b = power.numerator, power.denominator
        # what is above a level is a ball, of f and of its shift
        levels = sorted({0, *(b * h for h in heights), *(a * h for h in heights)})
        own = far = self.n
        with flint.ctx.workprec(PRECISION):
            shared = flint.arb(0)
            for low, high in itertools.pairwise(levels):
                while own and b * heights[own - 1] <= low:
                    own -= 1
                while far and a * heights[far - 1] <= low:
                    far -= 1
                shared += (high - low) * common(dimension, own, far, apart)
            part = ends_of(shared)[0] / (b << (self.bits + _FINE))
        return max(Fraction(0), 1 - part)

    def begun(self, count: int, seed: int | None) -> tuple[list[int], Bytes]:
        """The balls of ``count`` draws, and the bytes for what remains of them.

        Examples
        --------
        >>> om.noise.RadialLaw(1, (1, 1)).begun(3, seed=1)[0]
        [2, 2, 2]
        """
        inner, source = self._begun(count, seed)
        return [k + 1 for k in inner.tolist()], source


def radial_pair(law: RadialLaw, dimension: int, apart: int) -> Pair:
    """The pair of laws that is told apart at a shift of ``apart`` rings, which dominates all
    shorter ones: rings that meet, by what their densities are to each other."""
    heights, n = law.heights(dimension), law.n
    with flint.ctx.workprec(PRECISION):
        near = {
            (i, j): common(dimension, i, j, apart)
            for i in range(n + 1)
            for j in range(max(0, i - apart - 1), min(n, i + apart + 1) + 1)
        }
        losses, chances, lost = [], [], 0.0
        unit = float(1 << (law.bits + _FINE))
        for i in range(n):
            if not heights[i]:
                break
            left, height = float((i + 1) ** dimension - i**dimension), heights[i] / unit
            for j in range(max(0, i - apart), min(n - 1, i + apart) + 1):
                both = near[i + 1, j + 1] - near[i, j + 1] - near[i + 1, j] + near[i, j]
                meet = float(both.mid())
                if meet > _LEAST_MEET * left and heights[j]:
                    losses.append(logarithm(heights[i], heights[j]))
                    chances.append(height * meet)
                    left -= meet
            lost += height * max(0.0, left)
    return Pair(np.array(losses), np.array(chances), lost, _PAIR_ERROR)


class _Point:
    """An even point of a ball, coordinate by coordinate bit by bit: points of the cube around it,
    until one is surely inside."""

    def __init__(self, dimension: int, radius: int, source: Bytes) -> None:
        self.radius, self.source = radius, source
        self.dimension = dimension
        while not self._inside():
            pass

    def _inside(self) -> bool:
        """Whether a new point of the cube is in the ball, decided by as many bits as it takes."""
        self.known, self.bits = [0] * self.dimension, 0
        while True:
            self._more()
            # corners of a cube of side two, in units of 2^(1 - bits)
            half = 1 << (self.bits - 1)
            near = sum(max(k - half, half - k - 1, 0) ** 2 for k in self.known)
            far = sum(max(abs(k - half), abs(k + 1 - half)) ** 2 for k in self.known)
            if far <= half * half:
                return True
            if near >= half * half:
                return False

    def _more(self) -> None:
        for k in range(self.dimension):
            self.known[k] = self.known[k] << 32 | int.from_bytes(self.source(4), "big")
        self.bits += 32

    def within(self, bits: int) -> list[tuple[Fraction, Fraction]]:
        """Between which numbers its coordinates lie, in steps of the law."""
        while self.bits < bits:
            self._more()
        unit = Fraction(2 * self.radius, 1 << self.bits)
        return [(k * unit - self.radius, (k + 1) * unit - self.radius) for k in self.known]


@kind("Give what om.noise.radial returns", {"str": LOAD}, "noise for points")
@record
class RadialNoise(ApproximatelyPrivate, Divided):
    """The result of ``om.noise.radial``: noise Z for points of the plane or of space, to be added
    to one that a person moves by at most ``sensitivity`` in the Euclidean norm.

    Proved from ``law`` and ``multipliers``: that the noise is (ε, δ)-differentially private for
    every shift up to the sensitivity, its loss, and that no noise on the plane (or in space) that
    is as private, whatever its law, loses less than ``lower_bound``.

    Examples
    --------
    >>> noise = om.noise.radial(3, "1/1000", cells=4, gap=0.1)
    >>> print(noise.is_private, noise.gap < 0.1, float(noise.at(3)) <= 1e-3)
    True True True
    >>> noise.sample(seed=1).shape, noise.sample(4, seed=1).shape, noise.drawn(2, seed=1).shape
    ((2,), (4, 2), (2, 2))
    >>> noise.release((1.5, -2), seed=1) == noise.release((1.5, -2), seed=1)
    True
    >>> print(noise.density(0.1) > noise.density(2.0) >= 0)
    True
    """

    law: RadialLaw
    measure: str
    epsilon: Exact
    delta: Exact
    sensitivity: Fraction
    dimension: int
    cells: int
    multipliers: Caps | None = None
    seconds: float = 0.0

    @property
    def numbers(self) -> str:  # type: ignore[override]
        """What the noise is added to."""
        return "points of the plane" if self.dimension == 2 else "points of space"

    @property
    def degree(self) -> int:
        """The power of ‖noise‖₂ that costs."""
        return DEGREES[self.measure]

    @property
    def measured(self) -> str:
        return f"expected ‖noise‖₂{'²' if self.degree == 2 else ''}"

    @property
    def compared(self) -> str:
        return f"all noise for {self.numbers} that is as private"

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"{self.pair} for {self.numbers} that move by at most {float(self.sensitivity):.9g}"

    @cached_property
    def exact_loss(self) -> Fraction:
        """E‖Z‖ or E‖Z‖², exactly."""
        return self.step**self.degree * self.law.mean(self.dimension, self.degree)

    def _proved(self, found: Caps) -> Fraction:
        power, part = exp_bounds(self.epsilon, BITS)[1], bracket(self.delta)[1]
        least = caps_bound(self.dimension, self.degree, power, part, found)
        return (self.sensitivity / found.nodes) ** self.degree * least

    def at(self, epsilon: Number) -> Fraction:
        """A number at or above δ(ε) of one release; raises ProblemError for an ε that is none."""
        return self._spent(parse_exact(epsilon, where="epsilon"))

    def _spent(self, rate: Exact) -> Fraction:
        return self.law.excess(self.dimension, self.cells, exp_bounds(rate, BITS)[0])

    @cached_property
    def spent(self) -> Fraction:
        """A number at or above δ at the ε that is promised."""
        return self._spent(self.epsilon)

    @property
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided by enclosures."""
        return self.spent <= bracket(self.delta)[0]

    @property
    def decided(self) -> tuple[float, str]:
        """The largest δ, and what was decided of it in words."""
        shown = float(self.spent)
        return shown, f"at ε = {self.epsilon.words} δ is {shown:.9g}"

    @property
    def shown(self) -> str:
        """The law in words."""
        return f"density constant on {self.law.n} rings of {float(self.step):.6g}, none beyond"

    @property
    def edge(self) -> str:
        """Where the law ends, in words."""
        return f"{float(self.law.n * self.step):.6g} from 0"

    @property
    def within(self) -> str:
        return f"of {self.law.n} balls"

    def density(self, radius: Any) -> Any:
        """The density at a distance of 0, or at an array of them, nearly; raises ProblemError for
        what is not finite."""
        unit = float(self.step) ** self.dimension * (math.pi if self.dimension == 2 else 4.18879020)

        def at(place: float) -> float:
            return self.law.density(self.dimension, abs(place) / float(self.step)) / unit

        return evaluated(at, radius, "radius")

    def drawn(self, count: int, seed: int | None) -> Floats:
        return np.asarray(self.sample(count, seed=seed))

    def sample(self, size: int | None = None, *, seed: int | None = None) -> Floats:
        """One draw of the noise, shape (dimension,), or ``size`` of them, shape (size, dimension):
        every coordinate of an exact draw, rounded to the nearest multiple of 2^-40 of a ring's
        width. To release a point use ``release``, which rounds the sum. From the operating system's
        entropy; a seed makes draws reproducible and unfit for release. Raises ProblemError for a
        size that is none."""
        none = [Fraction(0)] * self.dimension
        found = self._each(
            size, seed, lambda point: rounded_sum(none, point.within, Fraction(1), 40)
        )
        made = np.array(found, dtype=np.float64).reshape(-1, self.dimension) * float(self.step)
        return made[0] if size is None else made

    def release(
        self, value: Any, size: int | None = None, *, bits: int = 30, seed: int | None = None
    ) -> Any:
        """A point plus noise, every coordinate rounded to the nearest multiple of 2^-``bits``, as a
        tuple of floats, or a list of ``size`` of them: as many bits of the noise are drawn as
        decide the rounding, so that this is the exact sum, rounded. Raises ProblemError for what is
        no point, a size or bits that are none."""
        fine = whole(bits, "bits", 0, 1000)
        if isinstance(value, str) or len(list(value)) != self.dimension:
            raise ProblemError(
                f"is no point of {self.dimension} numbers", where="value", remedy="Give (x, y)"
            )
        true = [signed(v, "value") for v in value]
        found = self._each(
            size, seed, lambda point: rounded_sum(true, point.within, self.step, fine)
        )
        made = [tuple(map(float, each)) for each in found]
        return made[0] if size is None else made

    def _each(
        self, size: int | None, seed: int | None, made: Callable[[_Point], list[Fraction]]
    ) -> list[list[Fraction]]:
        count = 1 if size is None else whole(size, "size", 0, MOST_DRAWN)
        balls, source = self.law.begun(count, seed)
        return [made(_Point(self.dimension, k, source)) for k in balls]

    @property
    def stated(self) -> dict[str, object]:
        own = {"sensitivity": float(self.sensitivity), "dimension": self.dimension}
        return super().stated | own
