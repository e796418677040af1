"""Losses of noise on the real line, and what they are on a lattice and within its cells.

A loss is known exactly, or it is convex and known at some points: between two of these it is below
the chord, and above the neighbouring chords, drawn on. Noise is charged the former, and bounds the
latter (docs/theory/real-noise.md).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.number import Exact, Number, parse_exact, parse_signed
from optmech_noise.additive.loss import (
    LARGEST,
    NAMED,
    NAMES,
    NoiseLoss,
    called,
    require_rising,
    require_width,
)

MOST_CORNERS = 1000
FEWEST_POINTS = 4
"""Of a convex loss: chords are drawn on from both sides."""
MOST_PLACES = 10_000
"""Of a lattice, up to where a loss is a polynomial."""
ROUNDED = 200
"""What a convex loss is on a lattice is rounded to 2^-200, outwards."""
_MOST_ASKED = 450
_CLOSE = 1e-5
"""What lies between both sides of a function, of what noise is expected to cost."""
_ROUNDING = Fraction(1, 10**12)
_SLACK = Fraction(1, 10**9)
_FARTHEST = 4096
"""So many times as far out as its points a function is looked at."""

Corners = tuple[tuple[Fraction, Fraction], ...]
Function = Callable[[float], float]


PARTS: dict[str, tuple[str, ...]] = {
    "absolute": (),
    "square": (),
    "threshold": ("width",),
    "corners": ("corners",),
    "convex": ("corners", "most"),
}
"""What goes with a loss of this name."""


def _as_most(given: tuple[Number, Number] | None) -> tuple[Fraction, Fraction] | None:
    if given is None:
        return None
    slope, bend = pair(given, "most", "Give (slope, bend)")
    return rational(slope, "most", positive=False), rational(bend, "most", positive=False)


@record
class RealLoss(Shown):
    """An even loss of real noise x: |x| ("absolute"), x² ("square"), 1 where |x| > ``width`` and 0
    elsewhere ("threshold"), or straight from corner to corner of (|x|, loss), the first at 0, and
    on with the last slope ("corners").

    A "convex" loss is known at its corners only, and beyond the last is at most c + a j + b j² at j
    from there, with ``most`` = (a, b).

    Examples
    --------
    >>> loss = om.noise.RealLoss.of([(0, 0), (1, 0), (2, 3)])
    >>> print(loss(-1), loss(4))
    0 9
    >>> cells = loss.on(loss.corners[1][0] / 2)  # on a lattice of step 1/2
    >>> [float(cells.below(k)) for k in range(5)]  # at 0, 1/2, 1, 3/2, 2
    [0.0, 0.0, 0.0, 1.5, 3.0]
    >>> cubes = om.noise.RealLoss.convex([(0, 0), (1, 1), (2, 8), (3, 27)])
    >>> print(cubes("3/2"))  # at most: the chord
    9/2
    """

    name: str
    width: Fraction
    corners: Corners
    most: tuple[Fraction, Fraction] | None

    def __init__(
        self,
        name: str,
        width: Number = Fraction(0),
        corners: object = (),
        most: tuple[Number, Number] | None = None,
    ) -> None:
        vars(self).update(
            name=name,
            width=rational(width, "width", positive=False),
            corners=() if isinstance(corners, tuple) and not corners else _corners(corners),
            most=_as_most(most),
        )
        if not isinstance(self.name, str) or self.name not in PARTS:
            raise ProblemError(f"{str(self.name)[:60]!r} is no loss of noise", where="loss",
                               remedy=_REMEDY)  # fmt: skip
        own = PARTS[self.name]
        parts = {"width": self.width, "corners": self.corners, "most": self.most}
        if other := next((part for part in parts if parts[part] and part not in own), None):
            raise ProblemError(f"does not go with {self.name!r}", where=other, remedy=_REMEDY)
        if self.name == "corners":
            require_corners(self.corners)
        if self.name == "convex":
            if self.most is None:
                raise ProblemError("is missing", where="most", remedy="Call RealLoss.convex")
            require_convex(self.corners, self.most)

    @classmethod
    def of(
        cls, loss: object, width: Number | None = None, spread: Spread | None = None
    ) -> RealLoss:
        """A loss from its name, from its corners, or from a convex function of |x|, of which
        ``spread`` says where it matters; raises ProblemError for anything else."""
        require_width(loss, width)
        if isinstance(loss, RealLoss):
            return loss
        if is_function(loss):
            return _asked(loss, spread or Spread())
        if not isinstance(loss, str):
            return cls("corners", corners=loss)
        if loss not in NAMES:
            raise ProblemError(f"{loss[:60]!r} is no loss of noise", where="loss", remedy=_REMEDY)
        return cls(loss, 0 if width is None else width)

    @classmethod
    def convex(cls, points: object, most: tuple[Number, Number] | None = None) -> RealLoss:
        """A convex loss that is known at the points [(0, c), (x, c), …] of |x|, four at least.

        Noise is charged the chords between the points, and lower bounds what every convex loss with
        these values costs at least. Beyond the last it goes on straight, or is at most c + a j +
        b j² at j from there, with ``most`` = (a, b). Raises ProblemError for points that are not in
        order or not of a convex function.
        """
        if most is None:
            most = _slopes(_corners(points))[-1], Fraction(0)
        return cls("convex", corners=points, most=most)

    def __call__(self, x: Fraction | int | str) -> Fraction:
        """c(x), exactly; of a convex loss the most that it may be. Raises ProblemError for what is
        no finite number."""
        x = abs(signed(x, "x"))
        if self.name == "absolute":
            return x
        if self.name == "square":
            return x * x
        if self.name == "threshold":
            return Fraction(x > self.width)
        return self._most(x)

    @property
    def degree(self) -> int | None:
        """1 for |x|, 2 for x², for which more is known in closed form."""
        return {"absolute": 1, "square": 2}.get(self.name)

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.name == "threshold":
            return f"probability of noise beyond ±{float(self.width):g}"
        if self.most is not None:
            end, value = (float(part) for part in self.corners[-1])
            slope, bend = (float(part) for part in self.most)
            beyond = f"{value:.6g} + {slope:.6g} j" + (f" + {bend:.6g} j²" if bend else "")
            return (
                f"expected loss of a convex function of |noise| known at {len(self.corners)} "
                f"points, at {end:.6g} + j at most {beyond}"
            )
        return NAMED.get(self.name, f"expected loss straight between {len(self.corners)} corners")

    @cached_property
    def _most(self) -> Straight:
        """The loss, or the most that it may be."""
        slope, bend = self.most or (_slopes(self.corners)[-1], Fraction(0))
        return Straight(self.corners, slope, bend)

    @cached_property
    def _least(self) -> Straight:
        """The loss, or the least that it may be."""
        return self._most if self.most is None else beneath(self.corners)

    def on(self, step: Fraction) -> Cells:
        """What the loss is on a lattice of this step, above 0; raises TooLargeError where it is too
        long."""
        step = rational(step, "step")
        zero, one, quarter = Fraction(0), Fraction(1), Fraction(1, 4)
        if self.name == "absolute":
            above = NoiseLoss("table", (quarter, one), one, zero)
            return Cells(NoiseLoss.of("absolute"), above, step, zero)
        if self.name == "square":
            above = NoiseLoss("function", (quarter / 3,), zero, one)
            return Cells(NoiseLoss.of("square"), above, step * step, quarter)
        end = self.width if self.name == "threshold" else self.corners[-1][0]
        last = math.ceil(end / step) + 1
        if last >= MOST_PLACES:
            raise TooLargeError(
                f"the loss has {last:,} steps of the lattice", where="loss",
                remedy="Give fewer cells, or a loss that ends nearer to 0",
            )  # fmt: skip
        if self.name == "threshold":
            # how much of a cell lies beyond the width
            part = Fraction(1, 2) - end / step
            inner = max(zero, 2 * part)
            means = [inner, *(min(one, max(zero, k + part)) for k in range(1, last + 1))]
            below = NoiseLoss("table", (zero,) * last + (one,), zero, zero)
            return Cells(below, NoiseLoss("table", tuple(means), zero, zero), one, zero)
        return _straight(self, step, last)


@record
class Cells(Shown):
    """A loss on a lattice, in units of ``unit``: what its points cost at least when all rounded
    noise is charged ``charge`` more than it costs, and the means over cells."""

    below: NoiseLoss
    above: NoiseLoss
    unit: Fraction
    charge: Fraction


@lru_cache(maxsize=16)
def _straight(loss: RealLoss, step: Fraction, last: int) -> Cells:
    """A loss on a lattice that is straight between corners: of every point and its neighbours the
    largest excess of a chord is taken off, and bounds are charged what makes up for values below
    0."""
    least, most = loss._least, loss._most
    zero = Fraction(0)
    excess = [zero, *(least.excess(k * step, (k + 1) * step) for k in range(last)), zero]
    lows = [least(k * step) - max(both) for k, both in enumerate(pairwise(excess))]
    charge = max(zero, -min(lows))
    means = [most.mean(k, step) for k in range(last + 1)]
    lows = [value + charge for value in lows]
    if loss.most is not None:
        lows = [_to(value, math.floor) for value in lows]
        means = [_to(value, math.ceil) for value in means]
    slope = most.slope + 2 * most.bend * (last * step - most.places[-1])
    return Cells(
        NoiseLoss("table", tuple(lows), least.slope * step, zero),
        NoiseLoss("function", tuple(means), slope * step, most.bend * step * step),
        Fraction(1),
        charge,
    )


class Straight:
    """A function of x >= 0 that is straight from corner to corner, and goes on as y + slope j +
    bend j² at j from the last."""

    def __init__(self, corners: Corners, slope: Fraction, bend: Fraction = Fraction(0)) -> None:
        self.places, self.values = [x for x, _ in corners], [y for _, y in corners]
        self.slope, self.bend = slope, bend
        self.slopes = [*_slopes(corners), slope]
        areas = ((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(corners))
        self.areas = list(accumulate(areas, initial=Fraction(0)))

    def _piece(self, x: Fraction) -> tuple[int, Fraction, Fraction]:
        """The piece that holds x, how far along it x is, and how it bends."""
        k = bisect_right(self.places, x) - 1
        last = k == len(self.places) - 1
        return k, x - self.places[k], self.bend if last else Fraction(0)

    def __call__(self, x: Fraction) -> Fraction:
        k, j, bend = self._piece(x)
        return self.values[k] + j * (self.slopes[k] + bend * j)

    def _integral(self, x: Fraction) -> Fraction:
        """From 0 to x."""
        k, j, bend = self._piece(x)
        return self.areas[k] + j * (self.values[k] + j * (self.slopes[k] / 2 + bend * j / 3))

    def mean(self, k: int, step: Fraction) -> Fraction:
        """Over the cell k of the even function."""
        if k == 0:
            return 2 * self._integral(step / 2) / step
        half = Fraction(1, 2)
        return (self._integral((k + half) * step) - self._integral((k - half) * step)) / step

    def excess(self, low: Fraction, high: Fraction) -> Fraction:
        """By how much a chord is above the function, at most: where it has a corner, or nowhere."""
        start, end = self(low), self(high)
        inner = range(bisect_right(self.places, low), bisect_left(self.places, high))
        slope = (end - start) / (high - low)
        above = (start + slope * (self.places[i] - low) - self.values[i] for i in inner)
        # at the ends of the chord it is 0: a function that is above it elsewhere gains nothing
        return max(Fraction(0), max(above, default=Fraction(0)))


def beneath(corners: Corners) -> Straight:
    """What every convex function with these values costs at least: of the neighbouring chords,
    drawn on, the higher one. Beyond the last point but one it is that before."""
    slopes = _slopes(corners)
    (x, y), *_ = corners[1:]
    found = [(Fraction(0), y - slopes[1] * x), (x, y)]
    for k in range(1, len(slopes) - 1):
        (a, low), (b, high) = corners[k : k + 2]
        before, after = slopes[k - 1], slopes[k + 1]
        if before != after:
            x = (high - after * b - low + before * a) / (before - after)
            if a < x < b:
                found.append((x, low + before * (x - a)))
        found.append((b, high))
    return Straight(tuple(found), slopes[-2])


def _slopes(corners: Corners) -> list[Fraction]:
    return [(d - b) / (c - a) for (a, b), (c, d) in pairwise(corners)]


def require_corners(made: Corners) -> None:
    """Raise ProblemError for corners that are too few, not in order, or end falling."""
    if not 2 <= len(made) <= MOST_CORNERS:
        raise ProblemError(
            f"has {len(made)} corners", where="loss", remedy=f"Give 2 to {MOST_CORNERS:,}"
        )
    if made[0][0] != 0 or any(a[0] >= b[0] for a, b in pairwise(made)):
        raise ProblemError(
            "has corners that are not in order from 0",
            where="loss",
            remedy="Give (0, c) first, and then places that grow",
        )
    require_rising(made[-2][1], made[-1][1])


def require_convex(made: Corners, most: tuple[Fraction, Fraction] | None) -> None:
    """Raise ProblemError for corners that are not points of a convex function, few, or go on less
    steeply than they end."""
    require_corners(made)
    if len(made) < FEWEST_POINTS:
        raise ProblemError(
            f"has {len(made)} points", where="loss", remedy=f"Give {FEWEST_POINTS} at least"
        )
    slopes = _slopes(made)
    bent = next((k for k, (a, b) in enumerate(pairwise(slopes)) if a > b), None)
    if bent is not None:
        raise ProblemError(
            f"bends down at {float(made[bent + 1][0]):g}, which no convex loss does",
            where="loss",
            remedy="Give a convex loss, or corners [(0, c), (x, c), …] to go straight between",
        )
    # steeper than the chord that bounds draw on, so that both sides are in order
    if slopes[-2] < 0 or (most is not None and (most[0] < slopes[-1] or most[1] < 0)):
        raise ProblemError("goes on less steeply than it ends", where="loss")


@record
class Spread(Shown):
    """Where noise is likely: up to about ``reach``, and e times less from one ``scale`` to the
    next. ``ends`` says that it may be nowhere beyond."""

    reach: float = 64.0
    scale: float = 4.0
    ends: bool = False


def _asked(function: Function, spread: Spread) -> RealLoss:
    """A convex function at as many points as it takes, and what it is taken to be beyond."""
    unit = Fraction(2) ** (math.frexp(spread.reach)[1] - 4)
    count = max(8, math.ceil(Fraction(spread.reach) / unit))
    known = {k * unit: valued(function, k * unit) for k in range(count + 1)}
    rate = 1 / spread.scale

    def judged(a: Fraction, b: Fraction) -> tuple[float, Fraction, Fraction, float]:
        middle = (a + b) / 2
        known[middle] = valued(function, middle)
        rise = float((known[a] + known[b]) / 2 - known[middle])
        wide, likely = float(b - a), math.exp(-rate * float(a))
        return -abs(rise) * wide * likely, a, b, float(known[a]) * wide * likely

    parts = [judged(a, b) for a, b in pairwise(sorted(known))]
    heapq.heapify(parts)
    while len(parts) < _MOST_ASKED:
        rises, *_, weights = zip(*parts, strict=True)
        if -sum(rises) <= _CLOSE * sum(weights):
            break
        _, a, b, _ = heapq.heappop(parts)
        for ends in ((a, (a + b) / 2), ((a + b) / 2, b)):
            heapq.heappush(parts, judged(*ends))
    points = _hull(sorted(known.items()))
    made = RealLoss.convex(points)
    return RealLoss("convex", corners=points, most=_beyond(function, made, unit, spread.ends))


def _hull(points: Sequence[tuple[Fraction, Fraction]]) -> Corners:
    """Without points above the chord of others by no more than rounding."""
    kept: list[tuple[Fraction, Fraction]] = []
    for x, y in points:
        while len(kept) > 1:
            (a, low), (b, value) = kept[-2:]
            chord = low + (y - low) * (b - a) / (x - a)
            if value <= chord or value - chord > _ROUNDING * max(low, value, y):
                break
            kept.pop()
        kept.append((x, y))
    return tuple(kept)


def _beyond(
    function: Function, made: RealLoss, unit: Fraction, ends: bool
) -> tuple[Fraction, Fraction]:
    """The polynomial above which a function does not go beyond its points, as far as it is looked
    at; the last slope where there is none, and no noise beyond."""
    end, last = made.corners[-1]
    first, second = (valued(function, end - k * unit) for k in (2, 1))
    bend = max(Fraction(0), (last - 2 * second + first) / (2 * unit * unit))
    slope = (last - second) / unit + bend * unit
    straight = made.most or (slope, bend)
    slack = 1 + _SLACK
    most = (
        Fraction(float(max(slope, straight[0]) * slack)),
        Fraction(float(bend * slack)) if bend * unit * unit > _ROUNDING * last else Fraction(0),
    )
    above = Straight(made.corners, *most)
    far = unit
    while far <= _FARTHEST * end:
        try:
            fits = valued(function, end + far) <= above(end + far) * (1 + _ROUNDING)
        except ProblemError:
            fits = False
        if not fits and ends:
            return straight
        if not fits:
            raise ProblemError(
                f"grows faster than a parabola beyond {float(end):g}",
                where="loss",
                remedy="Allow a δ > 0, with which noise ends, or give a function that grows less",
            )
        far = Fraction(float(far * 9 / 8))
    return most


def is_function(loss: object) -> TypeGuard[Function]:
    """Whether this is a function of |x|, and no loss yet."""
    return callable(loss) and not isinstance(loss, RealLoss)


def valued(function: Function, x: Fraction) -> Fraction:
    """A function at a place; raises ProblemError for what is no loss."""
    where = f"loss({float(x):g})"
    value = called(function, float(x), where, "Give a convex function of all numbers from 0 on")
    if not 0 <= value < LARGEST:
        raise ProblemError(f"is {value:g}", where=where, remedy="Give losses from 0 to 2^60")
    return Fraction(value)


def rational(value: Number, where: str, *, positive: bool = True) -> Fraction:
    """A number >= 0 as a fraction; raises ProblemError for one below, for 0 where it must be
    positive, and for logarithms, which are none."""
    number = _fraction(parse_exact(value, where=where, positive=positive), where)
    if not number < LARGEST:
        raise ProblemError("is above 2^60", where=where, remedy="Count in larger units")
    return number


def pair(given: object, where: str, remedy: str = "Give two numbers") -> tuple[Any, Any]:
    """Two of them; raises ProblemError for anything else."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ProblemError("is no pair", where=where, remedy=remedy)
    return given[0], given[1]


def signed(value: object, where: str) -> Fraction:
    """A finite number of any sign, exactly; raises ProblemError for anything else."""
    try:
        return _fraction(parse_signed(value, where=where), where)
    except ArithmeticError as error:  # a Decimal that is no number
        raise ProblemError(f"{value!r} is not finite", where=where) from error


def _fraction(number: Exact, where: str) -> Fraction:
    if number.log_of is not None:
        raise ProblemError("is no fraction", where=where, remedy="Give a number such as 5/2")
    return number.factor


_REMEDY = (
    f"Give one of {', '.join(NAMES)}, corners [(0, c), (x, c), …], or a convex function of |noise|"
)


def _corners(given: object) -> Corners:
    try:
        pairs = [(x, y) for x, y in given]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise ProblemError("is no loss of real noise", where="loss", remedy=_REMEDY) from error
    made = tuple(
        (rational(x, f"loss[{k}]", positive=False), rational(y, f"loss[{k}]", positive=False))
        for k, (x, y) in enumerate(pairs)
    )
    require_corners(made)
    return made


def _to(value: Fraction, side: Callable[[Fraction], int]) -> Fraction:
    """Rounded to a side."""
    return Fraction(side(value * (1 << ROUNDED)), 1 << ROUNDED)
