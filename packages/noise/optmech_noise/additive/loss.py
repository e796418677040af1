"""Losses of noise on the integers: even functions, known on all of ℤ.

A loss is given by its values c(0), …, c(m) and goes on as c(m) + a (k - m) + b (k - m)² from there,
a, b >= 0. So tails of infinitely many terms have sums in closed form, and a bound on all noise can
be proved beyond any window. Of a function no more can be known than its values at finitely many
places: beyond m it is taken to lie between two such continuations, which are part of every result,
and is looked at up to a million places out for whether it does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Any, TypeVar

import numpy as np

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole

N = TypeVar("N", Fraction, float)

MOST_VALUES = 10_000
"""Values of a table."""
LARGEST = 2**60
"""Values are below this."""
NAMES = ("absolute", "square", "threshold")
NAMED = {"absolute": "expected |noise|", "square": "expected noise²"}
FARTHEST = 2**20
"""Where a function is looked at last."""
_SLACK = Fraction(1, 10**9)
"""By how much continuations of a function are wider than its last steps, relatively."""
_ROUNDING = Fraction(1, 10**13)


def least_whole(holds: Callable[[int], bool], high: int) -> int:
    """The least whole number from which on a claim holds, sought from up to ``high`` on."""
    low = -1
    while not holds(high):
        low, high = high, 2 * high
    return bisect_left(range(high), True, low + 1, key=holds)


def require_width(loss: object, width: object) -> None:
    """Raises ProblemError where a width is given without the loss "threshold", or missing there."""
    if (isinstance(loss, str) and loss == "threshold") != (width is not None):
        raise ProblemError(
            "goes with the loss 'threshold', and is needed there",
            where="width",
            remedy="Give the largest noise that costs nothing, with loss='threshold'",
        )


@record
class NoiseLoss(Shown):
    """An even loss of noise k on the integers.

    ``values`` are c(0), …, c(m), all >= 0; for k > m the loss is
    c(m) + ``slope`` (k - m) + ``curvature`` (k - m)². ``name`` is what it was called. Of a function
    these are what it costs at most beyond m; at least it costs the same with the two numbers
    ``least``, where they are not None.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon=1, loss=[0, 1, 1])
    >>> print(design.measure.words)
    expected loss of a table that goes on with its last step
    >>> steps = om.noise.NoiseLoss.of([0, 1, 1])
    >>> steps.floats(np.array([0.0, 1.0, 9.0])).tolist()
    [0.0, 1.0, 1.0]
    >>> [int(number) for number in om.noise.NoiseLoss.of("square").polynomial(3)]  # 9 + 6 j + j²
    [9, 6, 1]
    """

    name: str
    values: tuple[Fraction, ...]
    slope: Fraction
    curvature: Fraction
    least: tuple[Fraction, Fraction] | None = None

    @classmethod
    def of(cls, loss: LossLike, width: int | None = None, reach: int = 64) -> NoiseLoss:
        """A loss from its name, a table or a function.

        "absolute" is |k|, "square" k², "threshold" 1 where |k| > ``width`` and 0 elsewhere. A table
        has c(0), c(1), …, and goes on with its last step. A function is one of |k|, on all whole
        numbers: its values up to ``reach`` are taken, and more where it does not go on from there
        as a parabola, or between two; ``words`` say how it was taken to go on. Raises ProblemError
        for anything else, for values that are negative or not finite, for what falls at its end,
        and for a function that grows faster than a parabola or does not go on as it seemed.
        """
        require_width(loss, width)
        if isinstance(loss, NoiseLoss):
            return loss
        if isinstance(loss, str):
            return cls._named(loss, width)
        if callable(loss):
            return cls._function(loss, whole(reach, "reach", 2, MOST_VALUES - 1))
        table = finite_array(loss, where="loss", ndim=1)
        if not 2 <= len(table) <= MOST_VALUES:
            raise ProblemError(
                f"has {len(table)} values",
                where="loss",
                remedy=f"Give 2 to {MOST_VALUES:,} values: c(0), c(1), …",
            )
        values = tuple(map(Fraction, table.tolist()))
        require_losses(values)
        require_rising(values[-2], values[-1])
        return cls("table", values, values[-1] - values[-2], Fraction(0))

    @classmethod
    def _named(cls, name: str, width: int | None) -> NoiseLoss:
        zero, one = Fraction(0), Fraction(1)
        if name in NAMED:
            slope = Fraction(name == "absolute")
            return cls(name, (zero,), slope, one - slope)
        if name == "threshold":
            zeros = whole(width, "width", 0, MOST_VALUES - 2) + 1
            return cls(name, (zero,) * zeros + (one,), zero, zero)
        raise ProblemError(
            f"{name[:60]!r} is no loss of noise",
            where="loss",
            remedy=f"Give one of {', '.join(NAMES)}, a table or a function",
        )

    @classmethod
    def _function(cls, function: Callable[[int], float], reach: int) -> NoiseLoss:
        """A function by as few values as it takes, and what it is taken to be beyond them."""
        at = cache(partial(_valued, function))
        while True:
            values = tuple(at(k) for k in range(reach + 1))
            require_losses(values)
            far = {k: at(k) for k in _farther(reach)}
            try:
                return cls._continued(values, far)
            except ProblemError:
                if reach == MOST_VALUES - 1:
                    raise
            reach = min(2 * reach, MOST_VALUES - 1)

    @classmethod
    def _continued(cls, values: tuple[Fraction, ...], far: dict[int, Fraction]) -> NoiseLoss:
        """A function from its values and some far out, all of which lie between the continuations;
        raises ProblemError where there are none."""
        x, y, z = values[-3:]
        bend = (z - 2 * y + x) / 2
        bend = bend if bend > _ROUNDING * z else Fraction(0)
        step = z - y + bend
        slope, curvature = Fraction(float(step)), Fraction(float(bend))
        if slope >= 0:
            same = cls("function", values, slope, curvature)
            if all(same(k) == value for k, value in far.items()):
                return same._shortened()
        high = cls("function", values, *_floats_of(step, bend, 1 + _SLACK))
        lowest = min(far, key=lambda k: far[k])
        steepest = max(far, key=lambda k: far[k] / high(k) if high(k) else far[k])
        if z < y or far[lowest] < z or far[steepest] > high(steepest):
            k = steepest if z <= far[lowest] and z >= y else lowest
            raise ProblemError(
                f"is {float(far[k]):g} at {k:,}, which does not go on from its values up to "
                f"{len(values) - 1:,}: these end with {float(y):g}, {float(z):g}",
                where="loss",
                remedy="Give a function that far out does not fall, nor grow faster than a "
                "parabola (such as min(f(k), f(1000))), or a table c(0), c(1), …",
            )
        for flat in (bend, Fraction(0)):
            least = _floats_of(step, flat, 1 - _SLACK)
            low = cls("function", values, *least)
            if all(low(k) <= value for k, value in far.items()):
                return replace(high, least=least)
        return replace(high, least=(Fraction(0), Fraction(0)))

    def _shortened(self) -> NoiseLoss:
        """This loss without values that its polynomial has too."""
        m, slope = self.last, self.slope
        while m > 0:
            before = slope - 2 * self.curvature
            if before < 0 or self.values[m] != self.values[m - 1] + before + self.curvature:
                break
            m, slope = m - 1, before
        if Fraction(float(slope)) != slope:
            return self
        return replace(self, values=self.values[: m + 1], slope=slope)

    @cached_property
    def minorant(self) -> NoiseLoss:
        """The least that this loss may be, of which lower bounds are."""
        return self if self.least is None else NoiseLoss(self.name, self.values, *self.least)

    def __call__(self, k: int) -> Fraction:
        """c(k), exactly."""
        k = abs(whole(k, "k", None))
        beyond = k - self.last
        if beyond <= 0:
            return self.values[k]
        return self.end + self.slope * beyond + self.curvature * beyond**2

    @property
    def last(self) -> int:
        """m: from here on the loss is a polynomial that does not fall."""
        return len(self.values) - 1

    @cached_property
    def _floats(self) -> Floats:
        return np.array([float(value) for value in self.values])

    def floats(self, places: Floats) -> Floats:
        """c of whole numbers >= 0, nearly; for searches."""
        beyond = np.maximum(places - self.last, 0)
        start = self._floats[np.minimum(places, self.last).astype(int)]
        return np.asarray(start + float(self.slope) * beyond + float(self.curvature) * beyond**2)

    def polynomial(self, start: int) -> tuple[Fraction, Fraction, Fraction]:
        """(α, β, γ) with c(start + j) = α + β j + γ j² for j >= 0; start >= m."""
        at = start - self.last
        slope = self.slope + 2 * self.curvature * at
        return self(start), slope, self.curvature

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.name == "threshold":
            return f"probability of noise beyond ±{self.last - 1}"
        return NAMED.get(self.name, f"expected loss of {self.described}")

    @property
    def described(self) -> str:
        """A table or function, and how it goes on, in words."""
        if self.name == "table":
            return "a table that goes on with its last step"
        head = f"a function of |noise| taken to go on from {self.last:,} "
        if self.least is None:
            return head + f"as {self._polynomial}"
        return head + f"between {self.minorant._polynomial} and {self._polynomial}"

    @property
    def _polynomial(self) -> str:
        parts = [f"{float(self.end):.9g}"]
        parts += [f"{float(self.slope):.9g} j"] if self.slope else []
        parts += [f"{float(self.curvature):.9g} j²"] if self.curvature else []
        return " + ".join(parts[bool(not self.end and len(parts) > 1) :])

    @property
    def is_bounded(self) -> bool:
        """Whether noise far out costs no more than a constant."""
        return not self.slope and not self.curvature

    @cached_property
    def is_less_far_out(self) -> bool:
        """Whether noise far out costs a constant, and less than noise somewhere near."""
        return self.is_bounded and self.end < max(self.values)

    @property
    def end(self) -> Fraction:
        """What the last place of the table costs."""
        return self.values[-1]

    @cached_property
    def floor(self) -> Fraction:
        """What the cheapest place costs."""
        return min(self.values)

    @property
    def cheapest(self) -> int:
        """The place nearest to 0 that costs least."""
        return self.values.index(self.floor)


def mean_beyond(powers: Sequence[N], period: int, ratio: N) -> N:
    """The mean of α + βj + γj² + δj³ over j = 0, p, 2p, …, of which each is ``ratio`` times as
    likely as the one before."""
    r, rest = ratio, 1 - ratio
    means = 1, r / rest, r * (1 + r) / rest**2, r * (1 + r * (4 + r)) / rest**3
    return sum((a * period**d * means[d] for d, a in enumerate(powers)), 0 * r)


LossLike = str | Callable[[int], float] | Sequence[float] | NoiseLoss


def tabulated(loss: Callable[[int], float], reach: int) -> list[Fraction]:
    """c(0), …, c(reach) of a function; raises ProblemError for values that are no losses."""
    values = [_valued(loss, k) for k in range(reach + 1)]
    require_losses(values)
    return values


def require_rising(before: Fraction, last: Fraction) -> None:
    """Raise ProblemError for the last two values of a loss that falls at its end."""
    if last < before:
        raise ProblemError(
            "falls at its end, and so would become negative",
            where="loss",
            remedy="End it with a step of 0 or upwards, with which it goes on",
        )


def require_losses(values: Sequence[Fraction]) -> None:
    """Raise ProblemError for values that are negative or enormous."""
    if min(values) < 0 or max(values) >= LARGEST:
        raise ProblemError("has values below 0 or above 2^60", where="loss")


def _valued(loss: Callable[[int], float], k: int) -> Fraction:
    where = f"loss({k})"
    remedy = "Give a function of all whole numbers from 0 on, or a table c(0), c(1), …"
    value = called(loss, k, where, remedy)
    if value < 0:
        raise ProblemError(f"is {value}", where=where, remedy="Give losses >= 0")
    return Fraction(value)


def called(function: Callable[[Any], float], at: float, where: str, remedy: str) -> float:
    """A function at a place; raises ProblemError where it fails, or what it returns is no finite
    number."""
    try:
        given = function(at)
    except Exception as error:
        message = f"raises {type(error).__name__}: {str(error)[:60]}"
        raise ProblemError(message, where=where, remedy=remedy) from error
    return float(finite_array(given, where=where, ndim=0))


def _farther(last: int) -> list[int]:
    """Places beyond ``last`` where a function is looked at: all that are near, few of those far."""
    places = set(range(last + 1, last + 65))
    size = float(last + 64)
    while size < FARTHEST:
        size *= 1.125
        places |= {int(size), int(size) + 1}
    return sorted(places)


def _floats_of(step: Fraction, bend: Fraction, share: Fraction) -> tuple[Fraction, Fraction]:
    """Slope and curvature times a share, which floats hold."""
    return Fraction(float(max(Fraction(0), step) * share)), Fraction(float(bend * share))
