"""Numbers of a known range: the best mechanism at all, whose noise depends on the number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from optmech.designs.design import Design
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.checked import whole
from optmech.exact.number import Exact
from optmech.noise.additive.loss import LossLike, NoiseLoss, tabulated
from optmech.pipeline.solve import solve
from optmech.problem import DifferentialPrivacy, Problem
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

_MOST = 400


def best_in_range(
    loss: LossLike,
    width: int | None,
    epsilon: Exact,
    delta: Exact,
    sensitivity: int,
    bounded: tuple[int, int],
    prior: ArrayLike | None,
    gap: float,
) -> Design:
    """The best mechanism from low, …, high to itself, adjacent numbers being at most
    ``sensitivity`` apart: of least loss at the worst number, or of least expected loss under a
    prior. Raises ProblemError for ends that are none, TooLargeError beyond 400 numbers."""
    if not isinstance(bounded, tuple) or len(bounded) != 2:
        raise ProblemError("is no pair", where="bounded", remedy="Give (low, high)")
    low = whole(bounded[0], "bounded[0]", None)
    high = whole(bounded[1], "bounded[1]", None)
    if low >= high:
        raise ProblemError("is empty", where="bounded", remedy="Give (low, high) with low < high")
    if high - low >= _MOST:
        raise TooLargeError(
            f"is a range of {high - low + 1:,} numbers",
            where="bounded",
            remedy=f"Give at most {_MOST}, or leave it out: noise for all whole numbers",
        )
    labels = list(range(low, high + 1))
    numbers = Domain(labels, [float(k) for k in labels])
    apart = np.abs(np.subtract.outer(np.arange(len(labels)), np.arange(len(labels))))
    pairs = [(int(i), int(j)) for i, j in np.argwhere((apart > 0) & (apart <= sensitivity))]
    stated = DifferentialPrivacy(epsilon, pairs, delta=delta)
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
