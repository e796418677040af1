"""What privacy noise gives, decided exactly: Σ_i max(0, z(i) - e^ε z(i + s)) <= δ for every shift.

Beyond the window every term is a geometric sequence from one period of the tails to the next, so
that the infinite sum is a finite one (docs/theory/integer-noise.md).

A lower bound of the loss of all noise on the integers, from any multipliers: for y_s(i) >= 0,
bounded by λ_s where δ > 0, every law z with z(i) = z(-i) that is (ε, δ)-private has E c(Z) >=
min_k C(k) - 2 δ Σ λ_s with C(k) = c(k) + Σ_s y_s(k) + y_s(-k) - e^ε (y_s(k - s) + y_s(-k - s)),
and laws that are not symmetric do no better than their mean with their mirror image
(docs/theory/integer-noise.md). Beyond n the multipliers are polynomials of degree two at most, so
that C is one too, whose least value is found in closed form: the bound is of the infinite problem.

Rényi divergences between noise and its shifts, decided exactly, and a bound of all noise:
R_s = Σ_i z(i)^α z(i + s)^{1-α} is e^{(α-1) D_α} of the noise and its shift by s. Every term is at
least α x^{α-1} z(i) - (α - 1) x^α z(i + s) for any x >= 0, so that ratios x_s(i) and prices λ_s
give the lower bound inf_k C(k) with, for symmetric laws,
C(k) = c(k) + Σ_s λ_s [(g_s(k) + g_s(-k))/2 - T], T = e^{(α-1)ε},
g_s(k) = α x_s(k)^{α-1} - (α - 1) x_s(k - s)^α. Of order one R_s is the Kullback-Leibler divergence
Σ_i z(i) ln(z(i)/z(i + s)), T = ε and g_s(k) = 1 + ln x_s(k) - x_s(k - s). Several orders add up
(docs/theory/integer-noise.md).
"""

import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import flint

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, ends_of, exp_bounds
from optmech.exact.number import Exact, shortened
from optmech_noise.additive.law import Law
from optmech_noise.additive.loss import NoiseLoss

BITS = 192
"""Of roots and powers of e."""


def hockey_stick(law: Law, shift: int, power: Fraction) -> Fraction:
    """Σ_i max(0, z(i) - ``power`` z(i + shift)) over all whole numbers i, exactly; shift >= 1.

    As z is symmetric it is the same for -shift.
    """
    near, far, bits = law.pairs(shift)
    a, b = power.numerator, power.denominator
    inner, outer = (sum(d for p, q in part if (d := b * p - a * q) > 0) for part in (near, far))
    return (inner + outer / (1 - law.r)) / (b << bits)


def largest_delta(law: Law, epsilon: Exact, sensitivity: int) -> tuple[Fraction, int]:
    """A number at or above δ(ε), the largest of the sums over all shifts up to ``sensitivity``, and
    a shift of it. It is above only by what e^ε is known to (2^-192, relatively)."""
    power = exp_bounds(epsilon, BITS)[0]
    # noise that falls from the centre loses most at the largest shift
    first = sensitivity if power >= 1 and law.falls else 1
    found = ((hockey_stick(law, shift, power), shift) for shift in range(first, sensitivity + 1))
    return max(found, key=lambda pair: (pair[0], -pair[1]))


@record
class ShiftWindow:
    """Numbers x_s(i) of one shift s, all >= 0: ``inner`` of places in order, beyond these as
    ``tail`` says, and ``price``, which is λ_s. ``bound`` says which of several orders they are
    for."""

    shift: Any
    inner: tuple[int, ...]
    tail: tuple[int, ...]
    price: int
    bound: int = 0


@record
class Multipliers:
    """Multipliers of the inequalities of several shifts: whole numbers over 2^bits.

    Raises ProblemError for numbers below 0 and shifts twice.
    """

    where: ClassVar[str] = "multipliers"
    bits: int
    shifts: tuple[ShiftWindow, ...]

    def __post_init__(self) -> None:
        names = {(part.shift, part.bound) for part in self.shifts}
        sizes = [size for size in vars(self).values() if isinstance(size, int)]
        if min(sizes) < 0 or not names or len(names) != len(self.shifts):
            raise ProblemError("windows or shifts are not as they must be", where=self.where)
        if any(min((*part.inner, *part.tail, part.price)) < 0 for part in self.shifts):
            raise ProblemError("there is a negative number", where=self.where)


@record
class NoiseMultipliers(Multipliers):
    """Multipliers on one window: ``inner[i + n]`` is that of i for |i| <= n, and with ``tail`` =
    (a, b, d) those of n + j for j > 0 are a + b j + d j², and 0 below -n; none is above ``price``
    where δ > 0.

    Raises ProblemError also for windows of different lengths, and shifts below 1.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {len(part.inner) for part in self.shifts}
        if len(sizes) != 1 or min(sizes) % 2 != 1 or min(part.shift for part in self.shifts) < 1:
            raise ProblemError("windows or shifts are not as they must be", where=self.where)

    @property
    def n(self) -> int:
        """Where the window ends."""
        return len(self.shifts[0].inner) // 2


def nothing(shift: int) -> NoiseMultipliers:
    """Multipliers that are all 0: what they prove is what the cheapest place costs."""
    return NoiseMultipliers(0, (ShiftWindow(shift, (0,), (0, 0, 0), 0),))


def proved_bound(
    loss: NoiseLoss, epsilon: Exact, delta: Exact, sensitivity: int, found: NoiseMultipliers
) -> Fraction:
    """The bound of all noise that is (ε, δ)-private at a sensitivity, for a loss, or for anything
    that costs at least as much; raises ProblemError where the multipliers prove none."""
    parts = found.shifts
    widest = max(part.shift for part in parts)
    if widest > sensitivity:
        raise ProblemError("there is a shift beyond the sensitivity", where="multipliers")
    cost = Fraction(0)
    # exactly: the float of a tiny δ is 0
    most = bracket(delta)[1]
    if most > 0:
        # what is not constant beyond the window has no limit there
        if any(p.tail[1:] != (0, 0) or max(*p.inner, p.tail[0]) > p.price for p in parts):
            raise ProblemError("there is a multiplier above its limit", where="multipliers")
        cost = 2 * most * sum(part.price for part in parts)
    steep = loss.slope > 0 or loss.curvature > 0
    if any((p.tail[1] and not steep) or (p.tail[2] and not loss.curvature) for p in parts):
        # what is summed must be summable wherever the loss is
        raise ProblemError("multipliers grow faster than the loss", where="multipliers")
    power = exp_bounds(epsilon, BITS)[1]
    last = max(found.n + widest, loss.last)
    inside = min(_inside(loss, found, power, last))
    return min(inside, _beyond(loss, found, power, last)) - cost / (1 << found.bits)


def _inside(
    loss: NoiseLoss, found: NoiseMultipliers, power: Fraction, last: int
) -> Sequence[Fraction]:
    """C(0), …, C(K), K = max(n + the largest shift, the end of the loss's table)."""
    n = found.n
    own, others = [0] * (last + 1), [0] * (last + 1)
    for part in found.shifts:
        a, b, d = part.tail
        outer = [a + b * j + d * j * j for j in range(1, last - n + 1)]
        y = [*[0] * (last + part.shift - n), *part.inner, *outer]
        for k, gain, harm in from_both_sides(y, y, part.shift, last):
            own[k] += gain
            others[k] += harm
    a, b = power.numerator, power.denominator
    return [
        loss(k) + Fraction(own[k] * b - a * others[k], b << found.bits) for k in range(last + 1)
    ]


def from_both_sides(
    gain: Sequence[int], harm: Sequence[int], shift: int, last: int
) -> Iterator[tuple[int, int, int]]:
    """k, gain(k) + gain(-k), and harm(k - s) + harm(-k - s) for k = 0, …, ``last``, of numbers at
    -``last`` - s, …, ``last``."""
    for k in range(last + 1):
        near, far = last + k, last - k
        yield k, gain[near + shift] + gain[far + shift], harm[near] + harm[far]


def _beyond(loss: NoiseLoss, found: NoiseMultipliers, power: Fraction, last: int) -> Fraction:
    """The least C(k) for k > K: there it is α + β j + γ j², j = k - K."""
    alpha, beta, gamma = loss.polynomial(last)
    for part in found.shifts:
        a, b, d = (Fraction(value, 1 << found.bits) for value in part.tail)
        beyond = last - found.n
        for factor, at in ((Fraction(1), beyond), (-power, beyond - part.shift)):
            alpha += factor * (a + b * at + d * at * at)
            beta += factor * (b + 2 * d * at)
            gamma += factor * d
    # the least of α + β j + γ j² for j >= 1, or less
    if gamma < 0 or (gamma == 0 and beta < 0):
        raise ProblemError("the multipliers prove nothing far out", where="multipliers")
    if beta + 2 * gamma >= 0:
        return alpha + beta + gamma
    return alpha - beta * beta / (4 * gamma)


MOST_ORDER = 64
MOST_ORDERS = 32
"""Of one promise."""
_ORDER = re.compile(r"[0-9]{1,3}(/[1-9][0-9]{0,2}|\.[0-9]{1,3})?", re.ASCII)


Bounds = tuple[tuple[Fraction, Exact], ...]
"""Orders, and what divergences of these are at most."""


def order_of(value: object) -> Fraction:
    """An order from 1 on, of numbers up to 64; raises ProblemError for anything else."""
    remedy = (
        "Give 1, for the Kullback-Leibler divergence, or more, such as 3/2, of numbers up to 64"
    )
    exact: Fraction | None = None
    if isinstance(value, str) and _ORDER.fullmatch(value):
        exact = Fraction(value) if not value.endswith("/0") else None
    elif isinstance(value, int | Fraction) and not isinstance(value, bool):
        exact = Fraction(value)
    elif isinstance(value, float) and 1 <= value <= MOST_ORDER:
        near = Fraction(value).limit_denominator(MOST_ORDER)
        exact = near if float(near) == value else None
    if exact is None or exact < 1 or max(exact.numerator, exact.denominator) > MOST_ORDER:
        raise ProblemError(f"{shortened(value)} is no order", where="order", remedy=remedy)
    return exact


def require_bounds(bounds: Bounds, where: str = "renyi") -> None:
    """Raise ProblemError for no orders, too many, orders that do not grow, or ε that is 0."""
    if not 1 <= len(bounds) <= MOST_ORDERS:
        raise ProblemError(
            f"has {len(bounds)} orders", where=where, remedy=f"Give 1 to {MOST_ORDERS}"
        )
    orders = [order for order, _ in bounds]
    if any(a >= b for a, b in pairwise(orders)):
        raise ProblemError("has orders that do not grow", where=where)
    if not all(rate > 0 for _, rate in bounds):
        raise ProblemError("has an ε of 0", where=where)


def at_every_order(rho: Exact, orders: Sequence[Fraction]) -> Bounds:
    """What zero-concentrated privacy allows at these orders: ρα."""
    return tuple((order, rho.times(order)) for order in orders)


def limit_bounds(order: Fraction, epsilon: Exact) -> tuple[Fraction, Fraction]:
    """Bounds of T: e^{(α - 1)ε}, or ε of order one."""
    if order == 1:
        return bracket(epsilon)
    return exp_bounds(epsilon.times(order - 1), BITS)


def log_bounds(top: int, bottom: int) -> tuple[int, int]:
    """Bounds of ln(top/bottom) times 2^192, of numbers > 0."""
    with flint.ctx.workprec(BITS + 64):
        ball = flint.arb(flint.fmpq(top, bottom)).log() * flint.arb(1 << BITS)
        low, high = map(math.floor, ends_of(ball))
    return low, high + 1


def power_bounds(top: int, bottom: int, exponent: Fraction) -> tuple[int, int]:
    """Bounds of (top/bottom)^exponent times 2^192, for an exponent > 0 of small numbers."""
    a, b = exponent.numerator, exponent.denominator
    inner, rest = divmod(top**a << (BITS * b), bottom**a)
    if b == 1:
        return inner, inner + (rest > 0)
    root = int(flint.fmpz(inner).root(b))
    return root, root + 1


def power_sum(law: Law, shift: int, order: Fraction) -> Fraction | float:
    """At least R_s, within about 2^-190; or infinity."""
    near, far, bits = law.pairs(shift)

    def above(p: int, q: int) -> int:
        return (log_bounds(p, q) if order == 1 else power_bounds(p, q, order - 1))[1]

    if any(p and not q for p, q in (*near, *far)):
        return math.inf
    inner, outer = (sum(above(p, q) * p for p, q in part if p) for part in (near, far))
    return (inner + outer / (1 - law.r)) / (1 << (bits + BITS))


@record
class Tangents(NoiseMultipliers):
    """Ratios of several shifts and orders for i in [-n, n], over 2^bits; with ``tail`` = (x_s
    beyond n, x_s below -n); prices are over 2^price_bits."""

    where = "tangents"
    price_bits: int

    @property
    def price(self) -> Fraction:
        """Σ λ."""
        return Fraction(sum(part.price for part in self.shifts), 1 << self.price_bits)


def least_total(
    loss: NoiseLoss, orders: Sequence[Fraction], sensitivity: int, tangents: Tangents
) -> Fraction:
    """A lower bound of E c(Z) + Σ_s λ_s R_s(Z) of all noise, whatever its divergences are; raises
    ProblemError for a shift beyond the sensitivity, or a bound that there is none of."""
    widest = max(part.shift for part in tangents.shifts)
    known = all(part.bound < len(orders) for part in tangents.shifts)
    if widest > sensitivity or not known:
        raise ProblemError("there is a shift beyond the sensitivity", where="tangents")
    n = tangents.n
    last = max(n + widest, loss.last) + 1
    unit = 1 << tangents.bits
    # sums over both sides of every place, in units of 2^-(192 + price_bits)
    scale = math.lcm(*(order.denominator for order in orders))
    sides = [0] * (last + 1)
    for part in tangents.shifts:
        gain, harm = (
            [*[low] * (last + part.shift - n), *inner, *[high] * (last - n)]
            for low, *inner, high in _values(part, orders[part.bound], unit, scale)
        )
        for k, own, other in from_both_sides(gain, harm, part.shift, last):
            sides[k] += part.price * (own - other)
    whole = 2 * scale << (BITS + tangents.price_bits)
    # beyond the last place all is constant but the loss, which does not fall
    return min(loss(k) + Fraction(side, whole) for k, side in enumerate(sides))


def _values(
    part: ShiftWindow, order: Fraction, unit: int, scale: int
) -> tuple[list[int], list[int]]:
    """At most α x^{α-1} and at least (α - 1) x^α, or 1 + ln x and x of order one, times
    ``scale`` 2^192: below the window, in it, beyond it."""
    places = [part.tail[1], *part.inner, part.tail[0]]
    known: dict[int, tuple[int, int]] = {}
    for x in set(places):
        if order > 1:
            gain = int(scale * order) * power_bounds(x, unit, order - 1)[0]
            known[x] = gain, int(scale * (order - 1)) * power_bounds(x, unit, order)[1]
        elif x:
            gain = (1 << BITS) + log_bounds(x, unit)[0]
            known[x] = scale * gain, scale * -(-(x << BITS) // unit)
        else:
            raise ProblemError("there is a logarithm of 0", where="tangents")
    return [known[x][0] for x in places], [known[x][1] for x in places]
