"""``om.noise.histogram``, ``clipped_sum``, ``mean`` and ``together``: from what one person may
change to the best noise for it, and what is gained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, cast

from optmech.errors import ProblemError
from optmech.exact.arguments import one_of, whole
from optmech.exact.number import Number
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.design import NoiseDesign, RealNoise
from optmech_noise.additive.file import MOST_RELEASES
from optmech_noise.additive.real_loss import rational, signed
from optmech_noise.additive.rounded import WIDEST
from optmech_noise.gaussian import least_gaussian
from optmech_noise.line import real
from optmech_noise.optimum import optimal
from optmech_noise.released import Loss, Release, released
from optmech_noise.releases import bound_of_each, positive_promise
from optmech_noise.session import CELLS_GAP, Note, Promise

Change = Literal["add or remove", "replace"]
_WAYS: dict[str, str] = {
    "add or remove": "one person more or less in the data",
    "replace": "one person's data replaced by other data",
}


@checked_arguments
def histogram(
    epsilon: Number,
    delta: Number = 0,
    *,
    per_person: int = 1,
    per_bin: int = 1,
    bins: int | None = None,
    change: Change = "add or remove",
    loss: Loss = "absolute",
    gap: float = CELLS_GAP,
    note: Note | None = None,
) -> Release:
    """Noise for the counts of a histogram, to each of which noise of its own is added.

    Parameters
    ----------
    per_person:
        In how many bins one person is at most.
    per_bin:
        How often one person is in a bin at most.
    bins:
        How many bins there are; a person is in no more of them. By default any number: noise is
        added to empty bins too.
    change:
        "add or remove": neighbouring data have one person more or less. "replace": one person's
        data are other data, which changes up to twice as many bins.
    loss:
        "absolute" or "square", of every count.
    gap, note:
        As ``om.noise.optimal`` takes them.

    Raises
    ------
    ProblemError
        For arguments that are not as said.

    Examples
    --------
    >>> visits = om.noise.histogram(1, per_person=3)
    >>> print(visits.assumes)
    One person more or less in the data changes 3 counts by at most 1 each.
    >>> noisy = visits.release([10, 0, 4, 7])
    """
    ways = whole(per_person, "per_person", 1, MOST_RELEASES) * (1 + _is_replaced(change))
    if bins is not None:
        ways = min(ways, whole(bins, "bins", 1))
    most = whole(per_bin, "per_bin", 1, WIDEST)
    noise = optimal(
        epsilon, delta, sensitivity=most, loss=loss, gap=gap, note=note, for_releases=ways
    )
    floor = _floor(noise, ways)
    each = " each" * (ways > 1)
    assumes = _sentence(change, f"changes {ways} count{'s' * (ways > 1)} by at most {most:,}{each}")
    return released(noise, assumes, epsilon, delta, ways, most, loss, floor=floor)


def _floor(noise: Any, count: int) -> float | None:
    """A bound for several releases, where it is above that of the noise itself."""
    if count == 1 or not isinstance(noise, NoiseDesign):
        return None
    least = bound_of_each(noise.epsilon, noise.delta, count, noise.steps, noise.measure)
    return least if least > noise.lower_bound else None


@checked_arguments
def clipped_sum(
    low: Number,
    high: Number,
    epsilon: Number,
    delta: Number = 0,
    *,
    per_person: int = 1,
    change: Change = "add or remove",
    loss: Loss = "absolute",
    gap: float = CELLS_GAP,
    note: Note | None = None,
) -> Release:
    """Noise for a sum of numbers of which each is first brought to the range from ``low`` to
    ``high``. Where both are whole numbers the sum is to be one.

    Parameters
    ----------
    per_person:
        How many of the numbers are one person's at most.
    change:
        "add or remove": neighbouring data have one person more or less, which changes the sum by
        the larger of |low| and |high|. "replace": one person's numbers are others, which changes it
        by high - low.
    loss, gap, note:
        As ``om.noise.histogram`` takes them.

    Raises
    ------
    ProblemError
        For arguments that are not as said.

    Examples
    --------
    >>> salaries = om.noise.clipped_sum(0, 200_000, 1, 1e-6)
    >>> print(salaries.assumes)
    One person more or less in the data changes the sum by at most 200,000.
    >>> print(salaries.gap < 1e-3, type(salaries.release(81_234_567)).__name__)
    True int
    """
    ends = _range(low, high)
    count = whole(per_person, "per_person", 1, MOST_RELEASES)
    most = count * (ends[1] - ends[0] if _is_replaced(change) else max(map(abs, ends)))
    assumes = _sentence(change, f"changes the sum by at most {_shown(most)}")
    noise: Any
    if all(end.denominator == 1 for end in ends) and most <= WIDEST:
        noise = optimal(epsilon, delta, sensitivity=int(most), loss=loss, gap=gap, note=note)
    else:
        noise = real(epsilon, delta, sensitivity=most, loss=loss, cells="auto", gap=gap, note=note)
    return released(noise, assumes, epsilon, delta, 1, most, loss)


@checked_arguments
def mean(
    low: Number,
    high: Number,
    epsilon: Number,
    delta: Number = 0,
    *,
    people: int,
    loss: Loss = "absolute",
    gap: float = CELLS_GAP,
    note: Note | None = None,
) -> Release:
    """Noise for the mean of one number of each of ``people`` persons, brought to the range from
    ``low`` to ``high``. How many there are is public: neighbouring data have other numbers of one
    person. Where it is not, release a ``clipped_sum`` and a count. Raises ProblemError for
    arguments that are not as said.

    Examples
    --------
    >>> age = om.noise.mean(0, 100, 1, 1e-6, people=5000)
    >>> print(age.assumes)
    One person's data replaced by other data changes the mean by at most 0.02.
    >>> 41.2 < age.release(41.7) < 42.2
    True
    """
    ends = _range(low, high)
    most = (ends[1] - ends[0]) / whole(people, "people", 1, WIDEST)
    noise = real(epsilon, delta, sensitivity=most, loss=loss, cells="auto", gap=gap, note=note)
    assumes = _sentence("replace", f"changes the mean by at most {_shown(most)}")
    return released(noise, assumes, epsilon, delta, 1, most, loss)


@checked_arguments
def together(
    epsilon: Number,
    delta: Number = 0,
    *,
    bounds: Sequence[Number] | None = None,
    l1: int | None = None,
    l2: Number | None = None,
    linf: int | None = None,
    numbers: int | None = None,
    loss: Loss = "absolute",
    gap: float = CELLS_GAP,
    note: Note | None = None,
) -> Release:
    """Noise for several numbers of which one person may change all, together (ε, δ)-private.

    Parameters
    ----------
    bounds:
        By how much one person changes each, at most. All get noise of the same law in units of
        their bounds.
    l1, l2, linf:
        Instead of that, a bound on the sum of the changes, on the root of the sum of their squares,
        or on the largest; of ``numbers`` whole numbers. In l1 noise is two-sided geometric, which
        is ε-private, or that of l2 where it loses less. In l2 it is Gaussian, rounded. The lower
        bound is of what one number by itself has to keep.
    loss, gap, note:
        As ``om.noise.histogram`` takes them.

    Raises
    ------
    ProblemError
        For arguments that are not as said, and l2 without δ.

    Examples
    --------
    >>> three = om.noise.together(1, bounds=[1, 20, 0.5])
    >>> [float(noise.sensitivity) for noise in three.noise]
    [1.0, 20.0, 0.5]
    >>> vector = om.noise.together(1, 1e-6, l2=3, numbers=8)
    >>> print(vector.assumes)
    One person more or less in the data changes 8 numbers by at most 3 in l2, all together.
    >>> len(vector.release([0] * 8))
    8
    """
    given = {"bounds": bounds, "l1": l1, "l2": l2, "linf": linf}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        raise ProblemError(
            f"has {len(names)} of bounds, l1, l2 and linf",
            where="together",
            remedy="Give one of them",
        )
    if bounds is not None:
        return _apart(bounds, epsilon, delta, loss, gap, note)
    count = whole(numbers, "numbers", 1, MOST_RELEASES)
    if linf is not None:
        return _apart([whole(linf, "linf", 1, WIDEST)] * count, epsilon, delta, loss, gap, note)
    if l1 is not None:
        return _in_l1(whole(l1, "l1", 1, 1000), count, positive_promise(epsilon, delta), loss)
    most = rational(cast(Number, l2), "l2")
    return _in_l2(most, count, positive_promise(epsilon, delta), loss, "l2")


def _apart(
    bounds: Sequence[Number], epsilon: Number, delta: Number, loss: Loss, gap: float,
    note: Note | None,
) -> Release:  # fmt: skip
    """Numbers that each change by a bound of their own."""
    most = [rational(bound, f"bounds[{k}]") for k, bound in enumerate(bounds)]
    if not most:
        raise ProblemError("is empty", where="bounds", remedy="Give at least one number")
    count = len(most)
    same = len(set(most)) == 1 and most[0].denominator == 1 and most[0] <= WIDEST
    asked: dict[str, Any] = {"loss": loss, "gap": gap, "note": note, "for_releases": count}
    noise: Any
    if same:
        noise = (optimal(epsilon, delta, sensitivity=int(most[0]), **asked),)
    else:
        one = cast(RealNoise, real(epsilon, delta, **asked))
        noise = tuple(replace(one, sensitivity=bound).require_private() for bound in most)
    words = ", ".join(map(_shown, dict.fromkeys(most)))
    verb = f"changes {count} numbers by at most {words}{' each' if same else ', in order'}"
    return released(noise, _sentence("add or remove", verb), epsilon, delta, count, most[0], loss)


def _in_l1(most: int, count: int, promise: Promise, loss: Loss) -> Release:
    """Two-sided geometric noise, which falls by ε/most at every step, whatever the steps are of; or
    noise for l2, as changes are no larger in that."""
    rate, part = promise
    step = optimal(rate.times(Fraction(1, most)), loss=loss)
    one = optimal(rate, part, sensitivity=most, loss=loss).lower_bound
    assumes = _sentence("add or remove", _several(count, most, "l1"))
    made = released(step, assumes, rate, part, count, most, loss, floor=min(one, step.loss))
    if not part > 0:
        return made
    other = _in_l2(Fraction(most), count, promise, loss, "l1")
    return other if other.loss < made.loss else made


def _in_l2(most: Fraction, count: int, promise: Promise, loss: Loss, norm: str) -> Release:
    """Gaussian noise, rounded: as private as it is in one direction."""
    rate, part = promise
    if not part > 0:
        raise ProblemError("is 0", where="delta", remedy="Allow some δ, or give l1 or linf")
    made = least_gaussian(rate, part, most, count)
    steps = max(1, math.floor(most))
    spent = made.delta(rate, most, count)
    stated = optimal(rate, part, sensitivity=steps, loss=loss)
    if not isinstance(stated, NoiseDesign):
        raise ProblemError("is above 1,000", where=norm, remedy="Count in coarser units")
    noise = replace(stated, law=made.law).require_private()
    assumes = _sentence("add or remove", _several(count, most, norm))
    return released(
        noise, assumes, rate, part, count, most, loss, spent=spent, floor=stated.lower_bound
    )


def _several(count: int, most: Fraction | int, norm: str) -> str:
    return f"changes {count} numbers by at most {_shown(Fraction(most))} in {norm}, all together"


def _is_replaced(change: str) -> bool:
    one_of(change, _WAYS, "change")
    return change == "replace"


def _range(low: Number, high: Number) -> tuple[Fraction, Fraction]:
    ends = signed(low, "low"), signed(high, "high")
    if ends[0] >= ends[1]:
        raise ProblemError("is not above low", where="high", remedy="Give low < high")
    return ends


def _shown(value: Fraction) -> str:
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.9g}"


def _sentence(change: str, does: str) -> str:
    words = f"{_WAYS[change]} {does}."
    return words[0].upper() + words[1:]
