"""For those who read numbers with noise: intervals with proved coverage, and likelihoods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optmech.additive.law import Law
from optmech.errors import ProblemError
from optmech.exact.checked import probability, whole
from optmech.exact.number import Number, log_of_fraction

FARTHEST = 10_000
"""Periods into a tail beyond which no number is looked at exactly."""
_MOST_BITS = 4_000_000
"""Of powers of ratios that are close to one and have few bits."""


def reach(law: Law, level: Fraction) -> int:
    """The least k with P(|Z| <= k) >= ``level``, decided exactly; ``level`` < 1 where there are
    tails."""

    def covers(k: int) -> bool:
        return 1 - 2 * law.upper_tail(k + 1) >= level

    if law.tails and _periods(law, level) > max(FARTHEST, _MOST_BITS / law.ratio_bits):
        raise ProblemError(
            "no interval holds that much", where="level", remedy="Give less, below 1"
        )
    low, high = -1, max(1, law.n)
    while not covers(high):
        low, high = high, 2 * high + 8 * len(law.tails)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    return high


def _periods(law: Law, level: Fraction) -> float:
    """About how many periods of the tails hold all but 1 - ``level``."""
    if level >= 1:
        return math.inf
    missing = log_of_fraction(1 / (1 - level))
    return missing / log_of_fraction(1 / law.r)


def stated_level(level: Number) -> Fraction:
    """A confidence from 0 to 1, exactly."""
    number = probability(level, "level")
    return number.factor if number.log_of is None else Fraction(float(number))


def numbers(released: int | Sequence[int]) -> list[int]:
    """One or more released numbers; raises ProblemError where they are none."""
    values = [released] if isinstance(released, int | np.integer) else list(released)
    if not values:
        raise ProblemError("is empty", where="released", remedy="Give at least one number")
    return [whole(value, "released", None) for value in values]


def interval(
    law: Law,
    released: int | Sequence[int],
    level: Number,
    low: int | None,
    high: int | None,
) -> tuple[int, int]:
    """Ends of an interval that holds the true number with probability ``level`` at least.

    Of m releases of the same number each gets a level of 1 - (1 - level)/m, and what all their
    intervals share is returned (Bonferroni): where they share nothing, the most likely number.
    """
    values = numbers(released)
    share = 1 - (1 - stated_level(level)) / len(values)
    wide = reach(law, share)
    first, last = max(values) - wide, min(values) + wide
    first = first if low is None else max(first, low)
    last = last if high is None else min(last, high)
    if first > last:
        only = most_likely(law, values, low, high)
        return only, only
    return first, last


def most_likely(law: Law, released: int | Sequence[int], low: int | None, high: int | None) -> int:
    """The number from ``low`` to ``high`` under which what was released is most likely; the one
    nearest to the median of what was released where several are. Decided exactly.

    Raises ProblemError where nothing in the range could have led to it, or the range is empty.
    """
    values = numbers(released)
    first, last = min(values), max(values)
    # beyond all released numbers by more than the window and a period nothing gets likelier
    margin = law.n + 2 * len(law.tails) + 1
    start, end = first - margin, last + margin
    # a range that lies out there: some number of the period that is next is likeliest
    period = len(law.tails)
    end = end if low is None else max(end, low + period)
    start = start if high is None else min(start, high - period)
    start = start if low is None else max(start, low)
    end = end if high is None else min(end, high)
    if (low is not None and high is not None and low > high) or end - start > 10**6:
        raise ProblemError("the range is empty or too wide", where="low")
    middle = sorted(values)[len(values) // 2]

    def likelihood(x: int) -> Fraction:
        product = Fraction(1)
        for value in values:
            product *= law.at(value - x)
        return product

    best = max(range(start, end + 1), key=lambda x: (likelihood(x), -abs(x - middle), -x))
    if likelihood(best) == 0:
        raise ProblemError(
            "no number in the range could have been released so",
            where="released",
            remedy="Give numbers that this noise can lead to, or a wider range",
        )
    return best
