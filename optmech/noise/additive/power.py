"""Rényi divergences between noise and its shifts: decided exactly, and a bound of all noise.

R_s = Σ_i z(i)^α z(i + s)^{1-α} is e^{(α-1) D_α} of the noise and its shift by s. Every term is at
least α x^{α-1} z(i) - (α - 1) x^α z(i + s) for any x >= 0, so that ratios x_s(i) and prices λ_s
give the lower bound inf_k C(k) with, for symmetric laws,
C(k) = c(k) + Σ_s λ_s [(g_s(k) + g_s(-k))/2 - T], T = e^{(α-1)ε},
g_s(k) = α x_s(k)^{α-1} - (α - 1) x_s(k - s)^α. Of order one R_s is the Kullback-Leibler divergence
Σ_i z(i) ln(z(i)/z(i + s)), T = ε and g_s(k) = 1 + ln x_s(k) - x_s(k - s). Several orders add up
(docs/theory.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import flint
from attrs import frozen

from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact
from optmech.noise.additive.bound import ShiftWindow, require_windows
from optmech.noise.additive.law import Law, Places
from optmech.noise.additive.loss import NoiseLoss

BITS = 192
"""Of roots and powers of e."""
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
        raise ProblemError(f"{str(value)[:40]} is no order", where="order", remedy=remedy)
    return exact


def require_bounds(bounds: Bounds) -> None:
    """Raise ProblemError for no orders, too many, orders that do not grow, or ε that is 0."""
    if not 1 <= len(bounds) <= MOST_ORDERS:
        raise ProblemError(
            f"has {len(bounds)} orders", where="renyi", remedy=f"Give 1 to {MOST_ORDERS}"
        )
    orders = [order for order, _ in bounds]
    if any(a >= b for a, b in pairwise(orders)):
        raise ProblemError("has orders that do not grow", where="renyi")
    if not all(rate > 0 for _, rate in bounds):
        raise ProblemError("has an ε of 0", where="renyi")


def at_every_order(rho: Exact, orders: Sequence[Fraction]) -> Bounds:
    """What zero-concentrated privacy allows at these orders: ρα."""
    return tuple((order, Exact(rho.factor * order, rho.log_of)) for order in orders)


def limit_bounds(order: Fraction, epsilon: Exact) -> tuple[Fraction, Fraction]:
    """Bounds of T: e^{(α - 1)ε}, or ε of order one."""
    if order == 1:
        return bracket(epsilon)
    return exp_bounds(Exact(epsilon.factor * (order - 1), epsilon.log_of), BITS)


def log_bounds(top: int, bottom: int) -> tuple[int, int]:
    """Bounds of ln(top/bottom) times 2^192, of numbers > 0."""
    with flint.ctx.workprec(BITS + 64):
        ball = flint.arb(flint.fmpq(top, bottom)).log() * flint.arb(1 << BITS)
        ends = (tuple(map(int, end.man_exp())) for end in (ball.lower(), ball.upper()))
        low, high = (man << exp if exp >= 0 else man >> -exp for man, exp in ends)
    return low, high + 1


def factor_up(top: int, bottom: int, order: Fraction) -> int:
    """At least (top/bottom)^{α - 1}, or its logarithm of order one, times 2^192."""
    return log_bounds(top, bottom)[1] if order == 1 else power_up(top, bottom, order - 1)


def power_up(top: int, bottom: int, exponent: Fraction) -> int:
    """At least (top/bottom)^exponent times 2^192, for an exponent > 0 of small numbers."""
    a, b = exponent.numerator, exponent.denominator
    inner = -(-(top**a << (BITS * b)) // bottom**a)
    if b == 1:
        return int(inner)
    return int(flint.fmpz(inner).root(b)) + 1


def power_down(top: int, bottom: int, exponent: Fraction) -> int:
    """At most (top/bottom)^exponent times 2^192."""
    a, b = exponent.numerator, exponent.denominator
    inner = (top**a << (BITS * b)) // bottom**a
    return int(inner) if b == 1 else int(flint.fmpz(inner).root(b))


def power_sum(law: Law, shift: int, order: Fraction) -> Fraction | None:
    """At least R_s, within about 2^-190; None where it is infinite."""
    near, far, bits = law.pairs(shift)

    def terms(pairs: list[Places]) -> int:
        return sum(factor_up(p, q, order) * p for p, q in pairs if p)

    if any(p and not q for p, q in (*near, *far)):
        return None
    return (terms(near) + terms(far) / (1 - law.r)) / (1 << (bits + BITS))


@frozen(eq=False)
class ShiftTangents(ShiftWindow):
    """Of one shift s: ``inner[i + n]`` = x_s(i) for |i| <= n, ``tail`` = (x_s beyond n, x_s below
    -n), whole numbers over 2^bits, and ``price`` = λ_s, over 2^price_bits; all >= 0. ``bound``
    says which of several orders they are for."""

    tail: tuple[int, int]
    price: int
    bound: int = 0


@frozen(eq=False)
class Tangents:
    """Tangents of several shifts, for i in [-n, n].

    Raises ProblemError for numbers below 0, windows of different lengths and shifts twice.
    """

    bits: int
    price_bits: int
    shifts: tuple[ShiftTangents, ...]

    def __attrs_post_init__(self) -> None:
        numbers = [(*part.inner, *part.tail, part.price) for part in self.shifts]
        bits = self.bits, self.price_bits
        require_windows(
            self.shifts, bits, numbers, "tangents", [part.bound for part in self.shifts]
        )

    @property
    def n(self) -> int:
        """Where the window ends."""
        return len(self.shifts[0].inner) // 2


def power_bound(loss: NoiseLoss, bounds: Bounds, sensitivity: int, tangents: Tangents) -> Fraction:
    """What tangents prove of all noise; raises ProblemError for a shift beyond the sensitivity."""
    limits = [limit_bounds(order, epsilon)[1] for order, epsilon in bounds]
    cost = sum(part.price * limits[part.bound] for part in tangents.shifts)
    least = least_total(loss, [order for order, _ in bounds], sensitivity, tangents)
    return least - Fraction(cost) / (1 << tangents.price_bits)


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
        gain, harm = _values(part, orders[part.bound], unit, scale)
        s = part.shift

        def at(found: list[int], i: int) -> int:
            return found[0] if i < -n else found[-1] if i > n else found[i + n + 1]

        for k in range(last + 1):
            both = at(gain, k) + at(gain, -k) - at(harm, k - s) - at(harm, -k - s)
            sides[k] += part.price * both
    whole = 2 * scale << (BITS + tangents.price_bits)
    # beyond the last place all is constant but the loss, which does not fall
    return min(loss(k) + Fraction(sides[k], whole) for k in range(last + 1))


def _values(
    part: ShiftTangents, order: Fraction, unit: int, scale: int
) -> tuple[list[int], list[int]]:
    """At most α x^{α-1} and at least (α - 1) x^α, or 1 + ln x and x of order one, times
    ``scale`` 2^192: below the window, in it, beyond it."""
    places = [part.tail[1], *part.inner, part.tail[0]]
    known: dict[int, tuple[int, int]] = {}
    for x in places:
        if x in known:
            continue
        if order == 1:
            if not x:
                raise ProblemError("there is a logarithm of 0", where="tangents")
            gain = (1 << BITS) + log_bounds(x, unit)[0]
            known[x] = scale * gain, scale * -(-(x << BITS) // unit)
        else:
            gain = int(scale * order) * power_down(x, unit, order - 1)
            known[x] = gain, int(scale * (order - 1)) * power_up(x, unit, order)
    return [known[x][0] for x in places], [known[x][1] for x in places]
