"""``om.noise.optimal``: the best noise, with a proof that there is no better."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from optmech.certificate.objective import OPTIMAL_GAP
from optmech.designs.design import Design
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.arguments import whole
from optmech.exact.number import Number
from optmech.noise.additive.design import NoiseDesign
from optmech.noise.additive.file import MOST_RELEASES, MOST_SENSITIVITY
from optmech.noise.additive.law import certain
from optmech.noise.additive.loss import LossLike, NoiseLoss, tabulated
from optmech.noise.additive.planar import PlanarNoise
from optmech.noise.additive.renyi import RenyiNoise
from optmech.noise.planar import best_planar
from optmech.noise.releases import best_single, for_releases as families, reach_of, stated_promise
from optmech.noise.renyi import Renyi, best_divergence, stated_divergences
from optmech.noise.session import Note, Promise, require_alone, require_gap, silent
from optmech.pipeline.solve import solve
from optmech.problem import DifferentialPrivacy, Problem
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

_MOST_PLANAR = 48
_MOST_IN_RANGE = 400


class _Common(TypedDict, total=False):
    """What goes with every promise."""

    sensitivity: int
    loss: LossLike
    width: int | None
    gap: float
    note: Note | None


@overload
def optimal(
    *,
    renyi: Renyi | None = ...,
    zcdp: Number | None = ...,
    budget: Number | None = ...,
    **common: Unpack[_Common],
) -> RenyiNoise: ...


@overload
def optimal(
    epsilon: Number, delta: Number = ..., *, for_releases: int = ..., **common: Unpack[_Common]
) -> NoiseDesign: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    bounded: tuple[int, int],
    prior: ArrayLike | None = ...,
    **common: Unpack[_Common],
) -> Design: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    dimensions: Literal[2],
    norm: str = ...,
    loss_norm: str | None = ...,
    **common: Unpack[_Common],
) -> PlanarNoise: ...


@checked_arguments
def optimal(
    epsilon: Number | None = None,
    delta: Number = 0,
    *,
    sensitivity: int = 1,
    loss: LossLike = "absolute",
    width: int | None = None,
    gap: float = OPTIMAL_GAP,
    note: Note | None = None,
    bounded: tuple[int, int] | None = None,
    prior: ArrayLike | None = None,
    for_releases: int = 1,
    renyi: Renyi | None = None,
    zcdp: Number | None = None,
    budget: Number | None = None,
    dimensions: int = 1,
    norm: str | None = None,
    loss_norm: str | None = None,
) -> NoiseDesign | RenyiNoise | PlanarNoise | Design:
    """The noise of least expected loss among all that is (ε, δ)-differentially private when it is
    added to a whole number that one person changes by at most ``sensitivity``.

    The lower bound is of all noise on the integers, of any shape and support. With δ > 0 and a
    sensitivity above 1 the optimum need not fall from the centre outwards (Selvi, Liu and
    Wiesemann, Differential privacy via distributionally robust optimization, Operations Research
    2025); with δ = 0 it is the staircase (Geng and Viswanath, The optimal noise-adding mechanism
    in differential privacy, IEEE Transactions on Information Theory 2016).

    Parameters
    ----------
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
    bounded:
        The ends of a range that the number is known to lie in. The result is then a ``Design``: the
        best mechanism at all from the range to itself, of least loss at the worst number, or of
        least expected loss under ``prior``.
    for_releases:
        So many numbers, each with noise of its own and all with the same law, keep (ε, δ) together.
        Without δ each takes an equal part of ε, and the lower bound is of all noise with the same
        law in every release: laws that differ from release to release may lose less on average.
        With δ > 0 the noise is the best of some calibrated families (``for_releases``), and the
        lower bound that of a single release.
    renyi:
        (order, ε) instead of ε and δ, or a list of such pairs: the Rényi divergence of this order
        between the noise and every shift of it up to the sensitivity is at most ε. Order 1 is the
        Kullback-Leibler divergence. The result is a ``RenyiNoise``.
    zcdp:
        ρ instead of ε and δ: the divergence of every order α > 1 is at most ρα (Bun and Steinke,
        Concentrated differential privacy, TCC 2016). The result is a ``RenyiNoise``.
    budget:
        With ``renyi=order``: the loss is at most this, and the divergence of the order is the
        least, nearly. ``least_divergence`` of the result is proved of all noise that costs no more.
    dimensions:
        2 for pairs of whole numbers that one person changes by at most ``sensitivity`` in the norm
        ``norm``: "l1" (the default), "l2" or "linf". The loss is one of the noise's norm
        ``loss_norm``, by default the same. The result is a ``PlanarNoise``.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    InfeasibleError
        For ε = δ = 0: no such noise exists.
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
    say = note or silent
    several = None if for_releases == 1 else for_releases
    divergences = {"renyi": renyi, "zcdp": zcdp, "budget": budget}
    ranged = {"bounded": bounded, "prior": prior}
    planar = dimensions != 1 or norm is not None or loss_norm is not None
    if planar:
        whole(dimensions, "dimensions", 2, 2)
        message = "are for ε and δ of one release"
        require_alone("dimensions", message, **divergences, **ranged, for_releases=several)
    steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
    require_gap(gap)
    if any(given is not None for given in divergences.values()):
        asked = stated_divergences(
            **divergences, epsilon=epsilon, delta=delta, **ranged, for_releases=several
        )
        measure = NoiseLoss.of(loss, width, asked.reach(steps))
        stated = RenyiNoise(certain(), measure, asked.bounds, steps, rho=asked.rho)
        return best_divergence(stated, asked.cost, gap, say)
    promise = stated_promise(epsilon, delta)
    count = whole(for_releases, "for_releases", 1, MOST_RELEASES)
    if count > 1:
        require_alone("for_releases", "goes with noise on all whole numbers", **ranged)
    if bounded is not None:
        return _in_range(loss, width, promise, steps, bounded, prior, gap)
    if prior is not None:
        remedy = "Give bounded=(low, high) as well"
        raise ProblemError("goes with a range", where="prior", remedy=remedy)
    reach = reach_of(float(promise[0]) / count, float(promise[1]), steps)
    measure = NoiseLoss.of(loss, width, min(reach, _MOST_PLANAR) if planar else reach)
    if planar:
        norm = norm or "l1"
        return best_planar(measure, promise, steps, (norm, loss_norm or norm), gap, say)
    if count > 1:
        return _several(promise, count, steps, measure, gap, say)
    return best_single(measure, promise, steps, gap, say)


def _several(
    promise: Promise, count: int, steps: int, loss: NoiseLoss, gap: float, note: Note
) -> NoiseDesign:
    """Noise of which several releases keep a promise together."""
    rate, part = promise
    if 0 < part < 1:
        found = families(rate, part, count, sensitivity=steps, loss=loss, note=note)
        return found.together
    each = promise if part > 0 else stated_promise(rate.times(Fraction(1, count)), part)
    one = best_single(loss, each, steps, gap, note)
    return replace(one, epsilon=rate, releases=count).require_private()


def _in_range(
    loss: LossLike,
    width: int | None,
    promise: Promise,
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
    low, high = (whole(end, f"bounded[{k}]", None) for k, end in enumerate(bounded))
    if low >= high:
        raise ProblemError("is empty", where="bounded", remedy="Give (low, high) with low < high")
    if high - low >= _MOST_IN_RANGE:
        raise TooLargeError(
            f"is a range of {high - low + 1:,} numbers",
            where="bounded",
            remedy=f"Give at most {_MOST_IN_RANGE}, or leave it out: noise for all whole numbers",
        )
    labels = list(range(low, high + 1))
    numbers = Domain(labels, [float(k) for k in labels])
    apart = np.abs(np.subtract.outer(labels, labels))
    pairs = np.argwhere((apart > 0) & (apart <= sensitivity)).tolist()
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
