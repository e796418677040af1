"""The privacy and utility constraints of a design problem: frozen data, never algorithms.

Sources: PG = Shokri, Privacy Games (PETS 2015); DP19 = Kawamoto and Murakami, Local Obfuscation
Mechanisms for Hiding Probability Distributions (ESORICS 2019); CM19 = the same, Local Distribution
Obfuscation via Probability Coupling (Allerton 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base.arrays import Floats, finite_array, normalised
from optmech.base.labelled import refuse_unordered
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.checked import probability, weights
from optmech.exact.number import Exact, parse_exact
from optmech.ratios.generators import divergence_name
from optmech.spaces.distances import Distance
from optmech.spaces.losses import as_loss
from optmech.spaces.prior import Prior

Adjacency = Literal["all"] | tuple[tuple[int, int], ...] | tuple[Distance, float]


@dataclass(frozen=True, repr=False)
class MetricPrivacy(Shown):
    """p(o|s) <= exp(ε d(s,s')) p(o|s') for all s, s', o (PG 10, 15, 22; DP19 Def. 4).

    With ``delta`` > 0: Σ_o max(0, p(o|s) - exp(ε d(s,s')) p(o|s')) <= δ for all s, s'.

    ``threshold`` and ``observable_threshold`` keep only the inequalities with d(s,s') <= τ and
    d(s,o) <= τ_o (PG Appendix C). That weakens what is promised: the design then reports the ε
    that really holds.
    """

    epsilon: Exact
    distance: Distance
    threshold: float | None
    observable_threshold: float | None
    delta: Exact

    def __init__(
        self,
        epsilon: object,
        distance: Distance,
        threshold: float | None = None,
        observable_threshold: float | None = None,
        delta: object = 0.0,
    ) -> None:
        object.__setattr__(self, "epsilon", parse_exact(epsilon, where="epsilon"))
        object.__setattr__(self, "distance", _callable(distance, "distance"))
        object.__setattr__(self, "threshold", _limit(threshold, "threshold"))
        object.__setattr__(
            self, "observable_threshold", _limit(observable_threshold, "observable_threshold")
        )
        object.__setattr__(self, "delta", probability(delta))
        if self.observable_threshold is not None and self.delta > 0:
            raise ProblemError(
                "an observable threshold has no meaning together with delta > 0",
                where="observable_threshold",
                remedy="Drop one of the two",
            )


@dataclass(frozen=True, repr=False)
class DifferentialPrivacy(Shown):
    """p(o|s) <= e^ε p(o|s') for adjacent s, s', all o; with δ as above (PG 14, 23; DP19 Def. 1).

    ``adjacency`` is ``"all"``, a sequence of index pairs (each taken in both directions), or
    ``(distance, radius)`` for d(s,s') <= radius.
    """

    epsilon: Exact
    adjacency: Adjacency
    delta: Exact

    def __init__(
        self,
        epsilon: object,
        adjacency: Literal["all"] | Sequence[Sequence[int]] | tuple[Distance, float] = "all",
        delta: object = 0.0,
    ) -> None:
        object.__setattr__(self, "epsilon", parse_exact(epsilon, where="epsilon"))
        object.__setattr__(self, "adjacency", _adjacency(adjacency))
        object.__setattr__(self, "delta", probability(delta))


@dataclass(frozen=True, repr=False)
class DistortionPrivacy(Shown):
    """The error of the best attack is at least ``minimum`` (PG 13, 20, 21).

    Σ_o min_ŝ Σ_s π(s) p(o|s) d(ŝ,s) >= d_m, with π the adversary's ``prior`` (default: the
    problem's). Several constraints with different priors make the design robust against all.
    """

    minimum: Exact
    distance: Distance
    prior: Prior | None

    def __init__(self, minimum: object, distance: Distance, prior: Prior | None = None) -> None:
        object.__setattr__(self, "minimum", parse_exact(minimum, where="minimum"))
        object.__setattr__(self, "distance", _callable(distance, "distance"))
        object.__setattr__(self, "prior", prior)


@dataclass(frozen=True, eq=False, repr=False)
class DistributionPrivacy(Shown):
    """(λP)(o) <= e^ε (λ'P)(o) for every pair, in both directions, all o (DP19 Def. 8, 9).

    ``pairs`` holds (λ, λ'): distributions in the order of the secrets, normalised here.
    ``scale`` multiplies ε per pair (a Wasserstein distance, for XDistP). ``delta`` as in
    ``MetricPrivacy``.

    With another ``divergence`` than "max": D(λP ‖ λ'P) <= ε · scale for every pair, in both
    directions (CM19 Def. 11, 12), in nats where there is a logarithm. "kl" (or "reverse_kl", which
    is the same in both directions), "tv" total variation, "chi2" Σ (p - q)²/q, "hellinger"
    ½ Σ (√p - √q)²; also by their long names in ``om.divergences``. δ is then 0.
    """

    epsilon: Exact
    pairs: tuple[tuple[Floats, Floats], ...]
    delta: Exact
    divergence: str
    scale: tuple[float, ...] | None

    def __init__(
        self,
        epsilon: object,
        pairs: Sequence[tuple[ArrayLike, ArrayLike]],
        delta: object = 0.0,
        divergence: str = "max",
        scale: ArrayLike | None = None,
    ) -> None:
        object.__setattr__(self, "epsilon", parse_exact(epsilon, where="epsilon"))
        object.__setattr__(self, "delta", probability(delta))
        name = divergence_name(divergence)
        if name != "max" and self.delta > 0:
            raise ProblemError(
                f"δ belongs to the max divergence, and this is {name!r}",
                where="delta",
                remedy='Drop delta, or take divergence "max"',
            )
        object.__setattr__(self, "divergence", name)
        checked = []
        try:
            sized = [(pair, len(pair)) for pair in pairs]
        except TypeError:
            raise ProblemError(
                "is not a list of pairs", where="pairs", remedy="Give [(λ0, λ1), ...]"
            ) from None
        for k, (pair, length) in enumerate(sized):
            if length != 2:
                raise ProblemError("is not a pair of distributions", where=f"pairs[{k}]")
            checked.append(
                (_distribution(pair[0], f"pairs[{k}][0]"), _distribution(pair[1], f"pairs[{k}][1]"))
            )
        if not checked:
            raise ProblemError("there is no pair", where="pairs", remedy="Give at least one pair")
        object.__setattr__(self, "pairs", tuple(checked))
        factors = None
        if scale is not None:
            array = np.atleast_1d(finite_array(scale, where="scale"))
            if array.shape not in ((1,), (len(checked),)) or (array < 0).any():
                raise ProblemError(
                    f"needs {len(checked)} numbers >= 0, one per pair", where="scale"
                )
            factors = tuple(np.broadcast_to(array, (len(checked),)).tolist())
        object.__setattr__(self, "scale", factors)


@dataclass(frozen=True, eq=False, repr=False)
class LossBound(Shown):
    """Expected loss Σ π(s) p(o|s) c(s,o) <= q, or with ``worst_case`` Σ_o p(o|s) c(s,o) <= q for
    every s (PG 3, 4). ``loss`` is a distance or an S x O array, by default the problem's."""

    maximum: Exact
    worst_case: bool
    loss: Distance | Floats | None

    def __init__(
        self,
        maximum: object,
        worst_case: bool = False,
        loss: Distance | ArrayLike | None = None,
    ) -> None:
        object.__setattr__(self, "maximum", parse_exact(maximum, where="maximum"))
        object.__setattr__(self, "worst_case", bool(worst_case))
        object.__setattr__(self, "loss", None if loss is None else as_loss(loss, "loss"))


@dataclass(frozen=True, eq=False, repr=False)
class Support(Shown):
    """p(o|s) = 0 outside ``mask``, a boolean S x O array in the order of the labels (PG Appendix C;
    DP19 Def. 12).

    ``Support.within(distance, radius)`` allows d(s,o) <= radius instead.
    """

    mask: NDArray[np.bool_] | None
    distance: Distance | None = None
    radius: float | None = None

    def __init__(
        self,
        mask: ArrayLike | None = None,
        *,
        distance: Distance | None = None,
        radius: float | None = None,
    ) -> None:
        array = None
        if mask is not None:
            if distance is not None or radius is not None:
                raise ProblemError(
                    "a mask and a distance are given", where="support", remedy="Drop one of them"
                )
            array = _booleans(mask)
        elif distance is None or radius is None:
            raise ProblemError("give a mask, or a distance and a radius", where="support")
        object.__setattr__(self, "mask", array)
        object.__setattr__(self, "distance", distance)
        object.__setattr__(self, "radius", _limit(radius, "radius"))

    @classmethod
    def within(cls, distance: Distance, radius: float) -> Support:
        """Allow p(o|s) > 0 only where d(s,o) <= radius."""
        return cls(distance=_callable(distance, "distance"), radius=radius)


Constraint = (
    MetricPrivacy
    | DifferentialPrivacy
    | DistortionPrivacy
    | DistributionPrivacy
    | LossBound
    | Support
)


@dataclass(frozen=True, repr=False)
class MaximizeDistortion(Shown):
    """Objective: the largest error of the best attack, under a LossBound (Shokri et al., CCS
    2012). ``prior`` is the adversary's, by default the problem's."""

    distance: Distance
    prior: Prior | None = None


def _callable(value: object, where: str) -> Distance:
    if not callable(value):
        raise ProblemError(
            f"{type(value).__name__} is not a distance",
            where=where,
            remedy="Use a member of om.distances; arrays go through distances.matrix(array)",
        )
    return value


def _booleans(mask: ArrayLike) -> NDArray[np.bool_]:
    refuse_unordered(mask, where="mask")
    problem = ProblemError("is not a two-dimensional array of booleans", where="mask")
    try:
        array = np.array(mask)
    except ValueError:
        raise problem from None
    if array.ndim != 2 or not (array.dtype == bool or np.isin(array, (0, 1)).all()):
        raise problem
    array = array.astype(bool)
    array.setflags(write=False)
    return array


def _limit(value: float | None, where: str) -> float | None:
    return None if value is None else float(parse_exact(value, where=where))


def _distribution(value: ArrayLike, where: str) -> Floats:
    return normalised(weights(value, where))


def _adjacency(value: object) -> Adjacency:
    remedy = 'Give "all", a list of index pairs, or (distance, radius)'
    if isinstance(value, str):
        if value != "all":
            raise ProblemError(f"{value!r} is unknown", where="adjacency", remedy=remedy)
        return "all"
    try:
        items = list(value)  # type: ignore[call-overload]
    except TypeError:
        raise ProblemError(
            f"{type(value).__name__} is unknown", where="adjacency", remedy=remedy
        ) from None
    if len(items) == 2 and callable(items[0]):
        return (items[0], float(parse_exact(items[1], where="adjacency.radius")))
    pairs = []
    for k, item in enumerate(items):
        try:
            i, j = (int(x) for x in item)
            whole = all(float(x) == int(x) for x in item)
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole or min(i, j) < 0:
            raise ProblemError(
                f"{item!r} is not a pair of indices", where=f"adjacency[{k}]", remedy=remedy
            )
        if i == j:
            raise ProblemError(
                f"secret {i} is paired with itself, which promises nothing",
                where=f"adjacency[{k}]",
                remedy="Name two different secrets",
            )
        pairs.append((i, j))
    if not pairs:
        raise ProblemError("there is no pair", where="adjacency", remedy=remedy)
    return tuple(pairs)
