"""Rényi divergences between noise and its shifts: decided exactly, and a bound of all noise.

R_s = Σ_i z(i)^α z(i + s)^{1-α} is e^{(α-1) D_α} of the noise and its shift by s. Every term is at
least α x^{α-1} z(i) - (α - 1) x^α z(i + s) for any x >= 0, so that ratios x_s(i) and prices λ_s
give the lower bound inf_k C(k) with, for symmetric laws,
C(k) = c(k) + Σ_s λ_s [(g_s(k) + g_s(-k))/2 - e^{(α-1)ε}],
g_s(k) = α x_s(k)^{α-1} - (α - 1) x_s(k - s)^α (docs/theory.md).
"""

from __future__ import annotations

import re
from fractions import Fraction

import flint
from attrs import frozen

from optmech.errors import ProblemError
from optmech.exact.exponentials import exp_bounds
from optmech.exact.number import Exact
from optmech.noise.additive.bound import ShiftWindow, require_windows
from optmech.noise.additive.law import Law, Places
from optmech.noise.additive.loss import NoiseLoss

BITS = 192
"""Of roots and powers of e."""
MOST_ORDER = 64
_ORDER = re.compile(r"[0-9]{1,3}(/[1-9][0-9]{0,2}|\.[0-9]{1,3})?", re.ASCII)


def order_of(value: object) -> Fraction:
    """An order above 1, of numbers up to 64; raises ProblemError for anything else."""
    remedy = "Give an order above 1, such as 2 or 3/2, of numbers up to 64"
    exact: Fraction | None = None
    if isinstance(value, str) and _ORDER.fullmatch(value):
        exact = Fraction(value) if not value.endswith("/0") else None
    elif isinstance(value, int | Fraction) and not isinstance(value, bool):
        exact = Fraction(value)
    elif isinstance(value, float) and 1 < value <= MOST_ORDER:
        near = Fraction(value).limit_denominator(MOST_ORDER)
        exact = near if float(near) == value else None
    if exact is None or exact <= 1 or max(exact.numerator, exact.denominator) > MOST_ORDER:
        raise ProblemError(f"{str(value)[:40]} is no order", where="order", remedy=remedy)
    return exact


def limit_bounds(order: Fraction, epsilon: Exact) -> tuple[Fraction, Fraction]:
    """Bounds of e^{(α - 1)ε}."""
    return exp_bounds(Exact(epsilon.factor * (order - 1), epsilon.log_of), BITS)


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
        return sum(power_up(p, q, order - 1) * p for p, q in pairs if p)

    if any(p and not q for p, q in (*near, *far)):
        return None
    return (terms(near) + terms(far) / (1 - law.r)) / (1 << (bits + BITS))


@frozen(eq=False)
class ShiftTangents(ShiftWindow):
    """Of one shift s: ``inner[i + n]`` = x_s(i) for |i| <= n, ``tail`` = (x_s beyond n, x_s below
    -n), whole numbers over 2^bits, and ``price`` = λ_s, over 2^price_bits; all >= 0."""

    tail: tuple[int, int]
    price: int


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
        require_windows(self.shifts, (self.bits, self.price_bits), numbers, "tangents")

    @property
    def n(self) -> int:
        """Where the window ends."""
        return len(self.shifts[0].inner) // 2


def power_bound(
    loss: NoiseLoss, order: Fraction, epsilon: Exact, sensitivity: int, tangents: Tangents
) -> Fraction:
    """What tangents prove of all noise; raises ProblemError for a shift beyond the sensitivity."""
    if max(part.shift for part in tangents.shifts) > sensitivity:
        raise ProblemError("there is a shift beyond the sensitivity", where="tangents")
    n = tangents.n
    widest = max(part.shift for part in tangents.shifts)
    last = max(n + widest, loss.last) + 1
    most = limit_bounds(order, epsilon)[1]
    unit = 1 << tangents.bits
    # sums over both sides of every place, in units of 2^-(192 + price_bits)
    sides = [0] * (last + 1)
    cost = Fraction(0)
    for part in tangents.shifts:
        gain, harm = _values(part, order, unit)
        s = part.shift

        def at(found: list[int], i: int) -> int:
            return found[0] if i < -n else found[-1] if i > n else found[i + n + 1]

        cost += part.price * most
        for k in range(last + 1):
            both = order.numerator * (at(gain, k) + at(gain, -k))
            both -= (order.numerator - order.denominator) * (at(harm, k - s) + at(harm, -k - s))
            sides[k] += part.price * both
    scale = 2 * order.denominator << (BITS + tangents.price_bits)
    # beyond the last place all is constant but the loss, which does not fall
    return min(loss(k) + Fraction(sides[k], scale) for k in range(last + 1)) - cost / (
        1 << tangents.price_bits
    )


def _values(part: ShiftTangents, order: Fraction, unit: int) -> tuple[list[int], list[int]]:
    """At most x^{α-1} and at least x^α, times 2^192: below the window, in it, beyond it."""
    places = [part.tail[1], *part.inner, part.tail[0]]
    known: dict[int, tuple[int, int]] = {}
    for x in places:
        if x not in known:
            known[x] = power_down(x, unit, order - 1), power_up(x, unit, order)
    return [known[x][0] for x in places], [known[x][1] for x in places]
