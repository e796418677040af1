"""``om.noise.optimal``, ``for_pairs`` and ``in_range``: the best noise for whole numbers, for pairs
of them, and in a range, with a proof that there is no better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from optmech.certificate.objective import OPTIMAL_GAP
from optmech.designs.design import Design
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.arguments import whole
from optmech.exact.number import Number
from optmech.pipeline.solve import solve
from optmech.problem import DifferentialPrivacy, Problem
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior
from optmech_noise.additive.design import NoiseDesign
from optmech_noise.additive.entries import MOST_SENSITIVITY
from optmech_noise.additive.file import MOST_RELEASES
from optmech_noise.additive.loss import LossLike, NoiseLoss, tabulated
from optmech_noise.additive.real_loss import pair
from optmech_noise.additive.rounded import WIDEST, RoundedNoise
from optmech_noise.additive.shaped import ShapedNoise
from optmech_noise.additive.shaped_law import Curve, SidedLoss
from optmech_noise.curves import stated_curve
from optmech_noise.line import ROUNDABLE, rounded
from optmech_noise.releases import (
    MANY_SHIFTS,
    best_single,
    for_releases as families,
    reach_of,
    stated_promise,
)
from optmech_noise.search import truncated_end
from optmech_noise.session import CELLS_GAP, Note, require_gap, silent
from optmech_noise.shaped import ShapedSearch, certain_place

_MOST_IN_RANGE = 400
_WIDE, _FLAT = 60_000, 20_000
"""Places times sensitivity, from which on whole numbers take longer than rounded real noise; and
where noise is so wide that rounding is next to nothing."""
_NOTHING = 30
"""What noise spreads over, sensitivities over ε, where it is."""


@checked_arguments
def optimal(
    epsilon: Number | None = None,
    delta: Number = 0,
    *,
    sensitivity: int = 1,
    loss: LossLike | tuple[LossLike, LossLike] = "absolute",
    width: int | None = None,
    gap: float = OPTIMAL_GAP,
    note: Note | None = None,
    for_releases: int = 1,
    curve: Sequence[tuple[Number, Number]] | None = None,
    support: tuple[int | None, int | None] | None = None,
) -> NoiseDesign | RoundedNoise | ShapedNoise:
    """The noise of least expected loss among all that is (ε, δ)-differentially private when it is
    added to a whole number that one person changes by at most ``sensitivity``.

    The lower bound is of all noise on the integers, of any shape and support. With δ > 0 and a
    sensitivity above 1 the optimum need not fall from the centre outwards (Selvi, Liu and
    Wiesemann, Differential privacy via distributionally robust optimization, Operations Research
    2025); with δ = 0 it is the staircase (Geng and Viswanath, The optimal noise-adding mechanism
    in differential privacy, IEEE Transactions on Information Theory 2016).

    Parameters
    ----------
    sensitivity:
        Up to a thousand million. Above 1,000 it is real noise, of which the sum is rounded, and the
        gap is about 1e-3 (``RoundedNoise``).
    loss:
        "absolute", "square", "threshold" (probability of noise beyond ``width``), a table
        c(0), c(1), … that goes on with its last step, or a function of |noise|. A function is
        evaluated as far out as noise is likely and, for whether it goes on as it seems, at some
        places up to a million. What it is taken to be beyond its values is part of the result, in
        ``measured`` and in files: a parabola or, where it is none, anything between two; loss and
        lower bound are proved for that.
    gap:
        The search ends at this certified relative gap, or where wider windows no longer help.
    note:
        Called with a line of progress now and then.
    for_releases:
        So many numbers, each with noise of its own and all with the same law, keep (ε, δ) together.
        Without δ each takes an equal part of ε, and the lower bound is of all noise with the same
        law in every release: laws that differ from release to release may lose less on average.
        With δ > 0 the noise is the best of some calibrated families (``for_releases``), and the
        lower bound that of a single release.
    curve:
        Instead of ε and δ several pairs of them, all of which are to be kept, with δ > 0: a
        trade-off curve by its tangents, as ``om.noise.curve`` returns.
    support:
        (low, high): noise within this range only, None for no end. (0, None) only adds. It takes
        some δ. With it, or a curve, ``loss`` may be a pair of losses: of noise below 0, and above.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    InfeasibleError
        For ε = δ = 0, and where no noise within the range keeps the promise.
    TooLargeError
        Where the noise spreads over more places than are searched.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon="ln 2")
    >>> print(round(float(design.law.at(1) / design.law.at(0)), 6))  # e^-ε
    0.5
    >>> print(round(design.loss, 6))  # two-sided geometric noise: 2 r / (1 - r²) at r = 1/2
    1.333333
    >>> design.sample(3, seed=1).tolist()
    [8, 0, -1]
    """
    require_gap(gap)
    say = note or silent
    if curve is not None or support is not None or _is_sided(loss):
        steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
        if for_releases != 1:
            raise ProblemError(
                "does not go with a curve, a support or a loss with two sides",
                where="for_releases",
                remedy="Leave it out, and compose with om.noise.compose",
            )
        made = _shaped(stated_curve(epsilon, delta, curve), support, steps, loss, width)
        return ShapedSearch(made, gap, say).best()
    if epsilon is None:
        raise ProblemError("is missing", where="epsilon", remedy="Give ε, such as 0.5, or a curve")
    steps = whole(sensitivity, "sensitivity", 1, WIDEST)
    count = whole(for_releases, "for_releases", 1, MOST_RELEASES)
    wide = isinstance(loss, str) and loss in ROUNDABLE
    if steps > MOST_SENSITIVITY or (wide and _is_wide(epsilon, delta, steps, gap)):
        return rounded(
            epsilon, delta, sensitivity=steps, loss=loss, width=width, gap=gap, note=note,
            for_releases=count,
        )  # fmt: skip
    promise = rate, part = stated_promise(epsilon, delta)
    reach = reach_of(float(rate) / count, float(part), steps)
    measure = NoiseLoss.of(cast(LossLike, loss), width, reach)
    if count == 1:
        return best_single(measure, promise, steps, gap, say)
    if 0 < part < 1:
        return families(rate, part, count, sensitivity=steps, loss=measure, note=say).together
    each = promise if part > 0 else stated_promise(rate.times(Fraction(1, count)), part)
    one = best_single(measure, each, steps, gap, say)
    return replace(one, epsilon=rate, releases=count).require_private()


def _is_wide(epsilon: Number, delta: Number, steps: int, gap: float) -> bool:
    """Whether noise spreads over so many places that it is better rounded, at such a gap."""
    rate, part = (float(each) for each in stated_promise(epsilon, delta))
    if gap < CELLS_GAP or not part > 0:
        return False
    wide = truncated_end(rate, part, steps) * steps
    return (steps > MANY_SHIFTS and wide > _WIDE) or (steps > _NOTHING * rate and wide > _FLAT)


def _is_sided(loss: object) -> bool:
    """Whether it is a pair of losses, and not a table of two numbers."""
    pair = isinstance(loss, tuple) and len(loss) == 2
    return pair and not all(isinstance(part, Real) for part in cast("tuple[object, ...]", loss))


def _shaped(
    curve: Curve,
    support: tuple[int | None, int | None] | None,
    steps: int,
    loss: Any,
    width: int | None,
) -> ShapedNoise:
    """What is stated of noise of any shape."""
    reach = min(reach_of(float(rate), float(part), steps) for rate, part in curve)
    sides = loss if _is_sided(loss) else (loss, loss)
    measure = SidedLoss(*(NoiseLoss.of(side, width, reach) for side in sides))
    ends = _ends(support)
    return ShapedNoise(certain_place(*ends), measure, curve, steps, ends)


def _ends(support: tuple[int | None, int | None] | None) -> tuple[int | None, int | None]:
    if support is None:
        return None, None
    low, high = (
        None if end is None else whole(end, f"support[{k}]", -WIDEST, WIDEST)
        for k, end in enumerate(pair(support, "support", "Give (low, high)"))
    )
    if low is not None and high is not None and low > high:
        raise ProblemError("is empty", where="support", remedy="Give (low, high), low <= high")
    return low, high


@checked_arguments
def in_range(
    epsilon: Number,
    delta: Number = 0,
    *,
    bounds: tuple[int, int],
    prior: ArrayLike | None = None,
    sensitivity: int = 1,
    loss: LossLike = "absolute",
    width: int | None = None,
    gap: float = OPTIMAL_GAP,
) -> Design:
    """The best (ε, δ)-differentially private mechanism from a range of whole numbers to itself, of
    which one person changes a number by at most ``sensitivity``.

    Parameters
    ----------
    bounds:
        (low, high), the first and the last number; at most 400 numbers.
    prior:
        How likely the numbers are: the expected loss is the least. Without it the loss at the worst
        number is.
    sensitivity, loss, width, gap:
        As ``om.noise.optimal`` takes them.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    TooLargeError
        For more than 400 numbers.

    Examples
    --------
    >>> design = om.noise.in_range("ln 2", bounds=(0, 4))
    >>> design.matrix.shape
    (5, 5)
    """
    require_gap(gap)
    steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
    promise = stated_promise(epsilon, delta)
    ends = enumerate(pair(bounds, "bounds", "Give (low, high)"))
    low, high = (whole(end, f"bounds[{k}]", None) for k, end in ends)
    if low >= high:
        raise ProblemError("is empty", where="bounds", remedy="Give (low, high) with low < high")
    if high - low >= _MOST_IN_RANGE:
        raise TooLargeError(
            f"is a range of {high - low + 1:,} numbers",
            where="bounds",
            remedy=f"Give at most {_MOST_IN_RANGE}, or call optimal: noise for all whole numbers",
        )
    labels = list(range(low, high + 1))
    numbers = Domain(labels, [float(k) for k in labels])
    apart = np.abs(np.subtract.outer(labels, labels))
    pairs = np.argwhere((apart > 0) & (apart <= steps)).tolist()
    stated = DifferentialPrivacy(promise[0], list(map(tuple, pairs)), delta=promise[1])
    if callable(loss) and not isinstance(loss, NoiseLoss):
        # differences in the range are all that it is asked for
        costs = np.array([float(value) for value in tabulated(loss, high - low)])[apart]
    else:
        costs = NoiseLoss.of(loss, width).floats(apart.astype(np.float64))
    weights = np.ones(len(labels)) if prior is None else prior
    problem = Problem(
        Prior(numbers, weights),
        costs,
        objective="worst_loss" if prior is None else "expected_loss",
        constraints=[stated],
    )
    return solve(problem, gap=gap)
