"""Every set of secret positions up to a size, and the one that is worst protected."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.arguments import positive, whole
from optmech.spaces.arguments import checked_arguments
from optmech_traces.gaussian.balls import (
    BallMatrix,
    Enclosure,
    at_first_precision,
    of_floats,
    part,
)
from optmech_traces.gaussian.loss import TraceLoss, renyi_order, worst
from optmech_traces.gaussian.prior import (
    GaussianPrior,
    assembled,
    axis_groups,
    noise_matrix,
    secret_steps,
)

MOST = 20_000
"""Sets that are looked at before the question is refused as too large."""


@record
class WorstSubset(Shown):
    """The set with the largest loss among all that were asked about.

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0, 1, 2], om.traces.rbf(1.0))
    >>> worst = om.traces.worst_subset(trace, 1.0, size=1, radius=1, order=2)
    >>> worst.secrets, worst.count  # the middle has two neighbours
    ((1,), 3)
    """

    secrets: tuple[int, ...]
    loss: TraceLoss
    """The loss of that set."""
    upper: float
    """No set loses more."""
    by_size: tuple[tuple[int, TraceLoss], ...]
    """The worst loss found of every size."""
    count: int
    """How many sets there were."""


@checked_arguments
def worst_subset(
    trace: GaussianPrior,
    noise_covariance: ArrayLike,
    size: int,
    radius: float,
    order: float,
    *,
    ball: bool = False,
    among: Iterable[int] | None = None,
) -> WorstSubset:
    """The worst loss over all sets of 1 to ``size`` secret positions.

    True privacy of a position asks for every set that it is in (Meehan and Chaudhuri 2019, section
    2). Every set is enclosed rigorously: with V the covariance of the positions given the release,
    M = V_ss⁻¹ − Σ_ss⁻¹ needs matrices of the size of the set only (docs/theory/trace-privacy.md).

    Parameters
    ----------
    among:
        Times that may be secret; default: all.

    Raises
    ------
    TooLargeError
        Beyond 20,000 sets.

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0, 1, 2], om.traces.rbf(1.0))
    >>> worst = om.traces.worst_subset(trace, 1.0, size=2, radius=1, order=2)
    >>> [size for size, loss in worst.by_size], worst.count
    ([1, 2], 6)
    """
    pool = secret_steps(trace, range(len(trace)) if among is None else among, where="among")
    r, power = positive(radius, "radius"), renyi_order(order)
    most = whole(size, "size", 1, len(pool))
    count = sum(math.comb(len(pool), k) for k in range(1, most + 1))
    if count > MOST:
        raise TooLargeError(
            f"there are {count:,} sets of up to {most} of {len(pool)} positions, beyond {MOST:,}",
            where="size",
            remedy="Use a smaller size, or name fewer positions in among",
        )
    informed = _informed(trace, noise_matrix(trace, noise_covariance))
    champions: list[tuple[int, TraceLoss]] = []
    upper = 0.0
    for k in range(1, most + 1):
        losses = [
            worst(trace, informed(np.array(chosen)), chosen, r, power, ball)
            for chosen in combinations(sorted(pool.tolist()), k)
        ]
        champions.append((k, max(losses, key=lambda loss: loss.lower)))
        upper = max(upper, *(loss.upper for loss in losses))
    top = max((loss for _, loss in champions), key=lambda loss: loss.lower)
    return WorstSubset(top.secrets, top, upper, tuple(champions), count)


def _informed(trace: GaussianPrior, noise: Floats) -> Callable[[Ints], Enclosure]:
    """M of any set of secrets, from prior and posterior covariances on every group of axes at a
    precision that suffices. It raises ProblemError where M has no bound."""
    groups = axis_groups(trace, noise)
    pairs: list[tuple[BallMatrix, BallMatrix]] = []

    def differences(steps: Ints) -> Iterator[BallMatrix]:
        for group, (prior, left) in zip(groups, pairs, strict=True):
            own = np.searchsorted(group.coordinates, group.of_steps(steps)).tolist()
            yield part(left, own, own).inv() - part(prior, own, own).inv()

    def informed(steps: Ints) -> Enclosure:
        def attempt() -> Enclosure | None:
            over_time, made = trace.balls(), []
            for group in groups:
                own = group.coordinates
                prior = group.covariance(over_time)
                released = prior + of_floats(noise[np.ix_(own, own)])
                made.append((prior, prior - prior * released.solve(prior)))
            pairs[:] = made
            return assembled(groups, differences(steps), len(steps))

        found = None
        if pairs:
            with contextlib.suppress(ZeroDivisionError):
                found = assembled(groups, differences(steps), len(steps))
        found = found or at_first_precision(attempt)
        if found is None:
            raise ProblemError(
                f"the loss of the positions {steps.tolist()} has no bound",
                where="noise_covariance",
                remedy="Use noise everywhere, and a kernel that is not singular",
            )
        return found

    return informed
