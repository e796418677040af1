"""A lower bound of the loss of all noise on the integers, from any multipliers.

For y_s(i) >= 0, bounded by λ_s where δ > 0, every law z with z(i) = z(-i) that is (ε, δ)-private
has E c(Z) >= min_k C(k) - 2 δ Σ λ_s with
C(k) = c(k) + Σ_s y_s(k) + y_s(-k) - e^ε (y_s(k - s) + y_s(-k - s)),
and laws that are not symmetric do no better than their mean with their mirror image
(docs/theory.md). Beyond n the multipliers are polynomials of degree two at most, so that C is one
too, whose least value is found in closed form: the bound is of the infinite problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from attrs import frozen

from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact
from optmech.noise.additive.loss import NoiseLoss
from optmech.noise.additive.privacy import BITS

Tail = tuple[int, int, int]


@frozen(eq=False)
class ShiftWindow:
    """Numbers for the places from -n to n of one shift."""

    shift: int
    inner: tuple[int, ...]


@frozen(eq=False)
class ShiftMultipliers(ShiftWindow):
    """Of one shift s: ``inner[i + n]`` = y_s(i) for |i| <= n; y_s(n + j) = a + b j + d j² for j > 0
    with ``tail`` = (a, b, d); y_s(i) = 0 for i < -n. All are whole numbers over 2^bits."""

    tail: Tail
    limit: int
    """λ_s: no multiplier is above it where δ > 0."""


def require_windows(
    shifts: Sequence[ShiftWindow],
    bits: Sequence[int],
    numbers: Sequence[Sequence[int]],
    where: str,
    kinds: Sequence[int] | None = None,
) -> None:
    """Raise ProblemError for numbers below 0, windows of different lengths and shifts twice, of
    the same of several ``kinds``."""
    sizes = {len(part.inner) for part in shifts}
    names = [part.shift for part in shifts]
    twice = len(set(zip(names, kinds or [0] * len(names), strict=True))) != len(names)
    if min(bits) < 0 or len(sizes) != 1 or twice or min(names) < 1:
        raise ProblemError("windows or shifts are not as they must be", where=where)
    if min(sizes) % 2 != 1 or min(map(min, numbers)) < 0:
        raise ProblemError("there is a negative number", where=where)


@frozen(eq=False)
class NoiseMultipliers:
    """Multipliers of the inequalities of every shift, on one window [-n, n].

    Raises ProblemError for numbers below 0, windows of different lengths, shifts twice, and tails
    that are not constant where there is a limit.
    """

    bits: int
    shifts: tuple[ShiftMultipliers, ...]

    def __attrs_post_init__(self) -> None:
        numbers = [(*part.inner, *part.tail, part.limit) for part in self.shifts]
        require_windows(self.shifts, (self.bits,), numbers, "multipliers")

    @property
    def n(self) -> int:
        """Where the window ends."""
        return len(self.shifts[0].inner) // 2

    def are_limited(self) -> bool:
        """Whether no multiplier is above the limit of its shift."""
        return all(
            max(*part.inner, part.tail[0]) <= part.limit and part.tail[1:] == (0, 0)
            for part in self.shifts
        )


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
        if not found.are_limited():
            raise ProblemError("there is a multiplier above its limit", where="multipliers")
        cost = 2 * most * sum(part.limit for part in parts)
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
        s, outer = part.shift, [a + b * j + d * j * j for j in range(1, last - n + 1)]
        # y_s(0), …, y_s(last), y_s(-n), …, y_s(-1), so that indices below 0 are themselves
        y = [*part.inner[n:], *outer, *part.inner[:n]]
        for k in range(last + 1):
            own[k] += y[k] + (y[-k] if k <= n else 0)
            others[k] += y[k - s] if k - s >= -n else 0
            others[k] += y[-k - s] if k + s <= n else 0
    a, b = power.numerator, power.denominator
    return [
        loss(k) + Fraction(own[k] * b - a * others[k], b << found.bits) for k in range(last + 1)
    ]


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
    return least(alpha, beta, gamma)


def least(alpha: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    """A number <= α + β j + γ j² for every j >= 1; raises ProblemError where there is none."""
    if gamma < 0 or (gamma == 0 and beta < 0):
        raise ProblemError("the multipliers prove nothing far out", where="multipliers")
    if beta + 2 * gamma >= 0:
        return alpha + beta + gamma
    return alpha - beta * beta / (4 * gamma)
