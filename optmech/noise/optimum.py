"""``om.noise.optimal``: the best noise, with a proof that there is no better."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload

from numpy.typing import ArrayLike

from optmech.certificate.objective import OPTIMAL_GAP
from optmech.errors import InfeasibleError, ProblemError
from optmech.exact.checked import probability, whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, parse_exact
from optmech.noise.additive.bound import NoiseMultipliers, ShiftMultipliers
from optmech.noise.additive.design import NoiseDesign
from optmech.noise.additive.file import LARGEST_EPSILON, MOST_RELEASES, MOST_SENSITIVITY
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import LossLike, NoiseLoss
from optmech.noise.additive.planar import PlanarNoise
from optmech.noise.additive.renyi import RenyiNoise
from optmech.noise.bounded import best_in_range
from optmech.noise.planar import best_planar
from optmech.noise.renyi import Renyi, best_renyi, least_renyi, stated_bounds
from optmech.noise.search import MOST_ROWS, Search, truncated_end
from optmech.noise.session import Note
from optmech.noise.shifts import MANY_SHIFTS, ShiftSearch

_LEAST_EPSILON = 1e-4
_LEAST_DELTA = 1e-100
_LEAST_REACH, _MOST_REACH = 64, 9_000
_MOST_PLANAR = 48
_FALLS = 30.0
"""Noise without δ falls by e^-30 at least within so many sensitivities over ε."""

if TYPE_CHECKING:
    from optmech.designs.design import Design


@overload
def optimal(
    *,
    renyi: Renyi,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    gap: float = ...,
    note: Note | None = ...,
    budget: Number | None = ...,
) -> RenyiNoise: ...


@overload
def optimal(
    *,
    zcdp: Number,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    gap: float = ...,
    note: Note | None = ...,
) -> RenyiNoise: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    gap: float = ...,
    note: Note | None = ...,
    for_releases: int = ...,
) -> NoiseDesign: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    gap: float = ...,
    note: Note | None = ...,
    bounded: tuple[int, int],
    prior: ArrayLike | None = ...,
) -> Design: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    dimensions: Literal[2],
    norm: str = ...,
    loss_norm: str | None = ...,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    gap: float = ...,
    note: Note | None = ...,
) -> PlanarNoise: ...


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
    if dimensions != 1 or norm is not None or loss_norm is not None:
        whole(dimensions, "dimensions", 2, 2)
        if renyi is not None or bounded is not None or prior is not None or for_releases != 1:
            raise ProblemError(
                "are for ε and δ of one release",
                where="dimensions",
                remedy="Leave out renyi, bounded, prior and for_releases",
            )
    elif renyi is not None or zcdp is not None:
        others = (epsilon, bounded, prior)
        if any(other is not None for other in others) or delta != 0 or for_releases != 1:
            raise ProblemError(
                "is a promise of its own",
                where="zcdp" if renyi is None else "renyi",
                remedy="Leave out epsilon, delta, bounded, prior and for_releases",
            )
        steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
        if not 0 <= gap < 1:
            raise ProblemError(f"{gap!r} is not from 0 to below 1", where="gap")
        say = note or (lambda _: None)
        if budget is not None:
            return least_renyi(renyi, zcdp, steps, loss, width, budget, gap, say)
        return best_renyi(stated_bounds(renyi, zcdp), steps, loss, width, gap, say)
    if budget is not None:
        raise ProblemError("goes with an order", where="budget", remedy="Give renyi=order as well")
    rate, part = stated_promise(epsilon, delta)
    steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
    if not 0 <= gap < 1:
        raise ProblemError(f"{gap!r} is not from 0 to below 1", where="gap")
    count = whole(for_releases, "for_releases", 1, MOST_RELEASES)
    if count > 1 and (bounded is not None or prior is not None):
        raise ProblemError(
            "goes with noise on all whole numbers",
            where="for_releases",
            remedy="Leave out bounded and prior, or for_releases",
        )
    if bounded is not None:
        return best_in_range(loss, width, rate, part, steps, bounded, prior, gap)
    if prior is not None:
        raise ProblemError(
            "goes with a range", where="prior", remedy="Give bounded=(low, high) as well"
        )
    reach = reach_of(float(rate) / count, float(part), steps)
    measure = NoiseLoss.of(loss, width, min(reach, _MOST_PLANAR) if dimensions == 2 else reach)
    if dimensions == 2:
        norm = norm or "l1"
        stated = (rate, part, steps, norm, measure, loss_norm or norm, gap)
        return best_planar(*stated, note or (lambda _: None))
    if part >= 1:
        return _anything(measure, rate, part, steps, count)
    if count > 1:
        return _several(rate, part, count, steps, measure, gap, note)
    design = NoiseDesign(Law(1, (2,)), measure, rate, part, steps)
    chosen = ShiftSearch if steps > MANY_SHIFTS else Search
    return chosen(design, gap, note or (lambda _: None)).best()


def stated_promise(epsilon: Number | None, delta: Number) -> tuple[Exact, Exact]:
    """ε and δ as they are searched for; raises ProblemError for what is none or out of range,
    InfeasibleError where both are 0."""
    if epsilon is None:
        raise ProblemError("is missing", where="epsilon", remedy="Give ε, or renyi=(order, ε)")
    rate, part = parse_exact(epsilon, where="epsilon"), probability(delta)
    if rate > LARGEST_EPSILON or 0 < rate < _LEAST_EPSILON:
        raise ProblemError(
            f"{float(rate):g} is out of range",
            where="epsilon",
            remedy=f"Give 0, or {_LEAST_EPSILON:g} to {LARGEST_EPSILON}",
        )
    if bracket(part)[1] > 0 and part < _LEAST_DELTA:
        raise ProblemError(
            f"is below {_LEAST_DELTA:g}", where="delta", remedy="Give 0, or more than that"
        )
    if not rate > 0 and not part > 0:
        raise InfeasibleError(
            "with ε = δ = 0 all shifts of the noise would be the same distribution",
            where="epsilon",
            remedy="Allow some ε or δ",
        )
    return rate, part


def _anything(loss: NoiseLoss, rate: Exact, part: Exact, steps: int, count: int) -> NoiseDesign:
    """Where all noise is private: never anything but what costs least."""
    cheapest = loss.values.index(loss.floor)
    law = Law(1, (*(0,) * cheapest, 1)) if cheapest else Law(1, (2,))
    none = NoiseMultipliers(0, (ShiftMultipliers(steps, (0,), (0, 0, 0), 0),))
    return NoiseDesign(law, loss, rate, part, steps, none, releases=count)


def reach_of(rate: float, part: float, steps: int) -> int:
    """How far out noise is likely enough for the values of a function to matter, as far as windows
    go."""
    far = math.inf if rate <= 0 else _FALLS * steps / rate
    if part > 0:
        far = min(far, truncated_end(rate, part, steps))
    return int(max(_LEAST_REACH, min(far, _MOST_REACH, MOST_ROWS / (2 * steps))))


def _several(
    rate: Exact,
    part: Exact,
    count: int,
    steps: int,
    loss: NoiseLoss,
    gap: float,
    note: Note | None,
) -> NoiseDesign:
    """Noise of which several releases keep a promise together."""
    if part > 0:
        from optmech.noise import releases

        found = releases.for_releases(rate, part, count, sensitivity=steps, loss=loss, note=note)
        return found.together
    share = Exact(rate.factor / count, rate.log_of)
    one = optimal(share, part, sensitivity=steps, loss=loss, gap=gap, note=note)
    return replace(one, epsilon=rate, releases=count).require_private()
