"""Distribution privacy: reports hardly tell distributions of the secret apart, also as the beliefs
about secrets behind an answer (Pufferfish privacy); and information in reports: Rényi divergences
between two secrets, and what is told on average."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from optmech.analysis import measures
from optmech.base.arrays import Floats, finite_array, normalised
from optmech.base.read_only import Converted, checked, converted, record
from optmech.certificate.families import Approximate, Divergence, Information, LiftedRatio
from optmech.certificate.families.ratio import rounded_product
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import weights
from optmech.exact.number import Exact, Number, parse_exact
from optmech.exact.ratios.generators import (
    LARGEST_RATE,
    MOST,
    divergence_name,
    generator,
    limit_of,
    name_of,
    order_of,
)
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, ZERO, Field, Plain
from optmech.problem.gains import ball
from optmech.problem.promised import DIVERGENCE, INFORMATION, Measure, Promised
from optmech.problem.ratios import delta_words
from optmech.problem.space import Place, Space
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.tables import distance_words

Pairs = Sequence[tuple[Prior | ArrayLike, Prior | ArrayLike]]
LawPairs = tuple[tuple[Floats, Floats], ...]

_MOST_CORNERS = 10_000
LEAST_LIMIT = 1e-30
"""Divergences below this are the squares of differences below float64's."""

_WORDS = {
    "max": "ε =",
    "kl": "KL divergence at most",
    "reverse_kl": "reverse KL divergence at most",
    "tv": "total variation at most",
    "chi2": "χ² divergence at most",
    "hellinger": "squared Hellinger distance at most",
}


Scale = tuple[float, ...] | Literal["W_inf", "W_1"]


def as_mixtures(value: Sequence[Prior | ArrayLike]) -> tuple[Floats, ...]:
    """Distributions over the secrets, normalised."""
    if isinstance(value, Prior) or not isinstance(value, Iterable):
        raise ProblemError("is no list of distributions", remedy="Give a list, [home], also of one")
    rows: list[Any] = [getattr(row, "weights", row) for row in value]
    out = tuple(normalised(weights(row, f"[{k}]")) for k, row in enumerate(rows))
    if not out:
        raise ProblemError("is empty", remedy="Give some distributions")
    return out


Mixtures = Converted[Sequence[Prior | ArrayLike] | None, tuple[Floats, ...] | None]


def domains_in(*given: Any) -> list[Domain]:
    """Those of the priors in lists of distributions, and of pairs of these."""
    found: list[Domain] = []
    for value in given:
        if isinstance(value, Prior):
            found.append(value.domain)
        elif isinstance(value, list | tuple):
            found += domains_in(*value)
    return found


def require_same(domains: Iterable[Domain], space: Space, where: str) -> None:
    """Raise ProblemError where a prior is one over other secrets, or in another order."""
    for domain in domains:
        if domain.labels != space.secrets.labels:
            raise ProblemError(
                "a prior is not one over the secrets of the problem, in their order",
                where=where,
                remedy=f"Make it with om.Prior over the same {len(space.secrets)} labels",
            )


def as_pairs(value: Pairs) -> LawPairs:
    """Pairs of weights, normalised."""
    try:
        sized = [(pair, len(pair)) for pair in value]
    except TypeError:
        raise ProblemError("is not a list of pairs", remedy="Give [(λ0, λ1), ...]") from None
    found = []
    for k, (pair, length) in enumerate(sized):
        if length != 2:
            raise ProblemError(
                "is not a pair of distributions",
                where=f"[{k}]",
                remedy="Give a list of pairs, [(home, out)], also of one",
            )
        sides: list[Any] = [getattr(side, "weights", side) for side in pair]
        first, second = (normalised(weights(sides[i], f"[{k}][{i}]")) for i in (0, 1))
        found.append((first, second))
    if not found:
        raise ProblemError("there is no pair", remedy="Give at least one pair")
    return tuple(found)


def in_balls(pairs: LawPairs, radius: Exact | None) -> LawPairs:
    """Without a radius the pairs; else those of corners of the balls in total variation around both
    sides of every pair. What is convex in two distributions is largest at these."""
    if radius is None:
        return pairs
    near = [[np.array(ball(side, radius), dtype=np.float64) for side in pair] for pair in pairs]
    if (count := sum(len(a) * len(b) for a, b in near)) > _MOST_CORNERS:
        raise ProblemError(
            f"{count:,} pairs of corners of the balls are more than {_MOST_CORNERS:,}",
            where="radius",
            remedy="Give a smaller radius, or fewer secrets or pairs",
        )
    return tuple(both for sides in near for both in product(*sides))


def _around(radius: Exact | None) -> str:
    """Whom the ball adds, in words."""
    return "" if radius is None else f", and all within {radius.words} of them (total variation)"


def as_divergence(value: str) -> str:
    """The short name of a divergence."""
    return divergence_name(value, where="", orders=True)


def _words(divergence: str) -> str:
    order = order_of(divergence)
    return _WORDS[divergence] if order is None else f"Rényi divergence of order {order} at most"


def as_scale(value: ArrayLike | Distance | str) -> Scale:
    """Finite numbers >= 0, one or one per pair; or the name of a Wasserstein distance."""
    if value in ("W_inf", "W_1") if isinstance(value, str) else False:
        return value  # type: ignore[return-value]
    given: Any = value
    array = np.atleast_1d(finite_array(given, where=""))
    if array.ndim > 1 or not array.size or (array < 0).any():
        raise ProblemError("is not a list of numbers >= 0", remedy="Give one, or one per pair")
    return tuple(array.tolist())


def _build(spec: Any, place: Place) -> list[Any]:
    """Distributions, or pairs of them."""
    found: list[Any] = []
    for k, given in enumerate(spec):
        with inside(f"[{k}]"):
            several = isinstance(given, list | tuple)
            found.append(_build(given, place) if several else given.distribution(place))
    return found


FIELDS[as_pairs] = Field("pairs", build=_build)
FIELDS[as_divergence] = Field("divergence")
FIELDS[as_scale] = Field("scale")
FIELDS[as_mixtures] = Field("mixtures", build=_build)


@constraint("distribution_privacy")
@record
class DistributionPrivacy(Constraint):
    """(λP)(o) <= e^ε (λ'P)(o) for every pair, in both directions, all o (Kawamoto and Murakami,
    ESORICS 2019, Def. 8, 9).

    ``pairs`` holds (λ, λ'): each a ``Prior``, or weights in the order of the secrets, which are
    normalised here. In their place, ``among`` is a set of distributions, of which all are paired.
    ``scale`` multiplies ε per pair: numbers, or "W_inf" or "W_1" for the Wasserstein distances of
    the pairs in a ``distance`` (XDistP); a distance alone as ``scale`` means "W_inf". ``delta`` as
    in ``MetricPrivacy``. With a ``radius`` it is promised of **every** two distributions within
    that total variation of a pair: it is stated for ``corners``, those of both balls, as floats.

    With another ``divergence`` than "max": D(λP ‖ λ'P) <= ε · scale for every pair, in both
    directions (Kawamoto and Murakami, Allerton 2019, Def. 11, 12), in nats where there is a
    logarithm. "kl" (or "reverse_kl", which is the same in both directions), "tv" total variation,
    "chi2" Σ (p - q)²/q, "hellinger" ½ Σ (√p - √q)²; also by their long names in ``om.divergences``;
    "renyi:3/2" the Rényi divergence of an order other than 1, in nats. δ is then 0.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DistributionPrivacy("ln 2", pairs=[([0.75, 0.25], [0.25, 0.75])])
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> print(round(om.solve(problem).loss, 6))  # x with 3/4 - x/2 = 2 (1/4 + x/2)
    0.166667
    >>> home, out = om.Prior(coin, [0.75, 0.25]), om.Prior(coin, [0.25, 0.75])
    >>> per = om.DistributionPrivacy(
    ...     "ln 2", among=[home, out], scale="W_1", distance=om.distances.hamming()
    ... )
    >>> per.resolved(problem.space).scales  # half of the mass is moved
    (0.5,)
    """

    _domains: ClassVar[Sequence[Domain]] = ()
    """Those of the priors that were given."""
    corners: ClassVar[LawPairs] = ()
    """The pairs that inequalities are stated for: ``pairs``, or corners of balls around them."""
    later = ("among", "distance", "radius")
    epsilon: Converted[Number, Exact] = converted(fields.number)
    pairs: Converted[Pairs | None, LawPairs] = converted(  # type: ignore[assignment]
        as_pairs, default=None
    )
    delta: Converted[Number, Exact] = converted(fields.delta, default=ZERO)
    divergence: str = checked(as_divergence, default="max")
    scale: Converted[ArrayLike | Distance | str | None, Scale | None] = converted(
        as_scale, default=None
    )
    _: KW_ONLY
    among: Mixtures = converted(as_mixtures, default=None)
    distance: fields.AnyDistance = converted(fields.distance, default=None)
    radius: Converted[Number | None, Exact | None] = converted(fields.number, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_domains", domains_in(self.pairs, self.among))
        scale: Any = self.scale
        if callable(scale):
            object.__setattr__(self, "distance", scale)
            object.__setattr__(self, "scale", "W_inf")
        super().__post_init__()
        if (self.pairs is None) == (self.among is None):
            raise ProblemError(
                "needs pairs, or distributions among which all are paired",
                where="pairs",
                remedy="Give one of pairs and among",
            )
        if self.among is not None:
            object.__setattr__(self, "pairs", tuple(combinations(self.among, 2)))
            object.__setattr__(self, "among", None)
            if not self.pairs:
                raise ProblemError(
                    "one distribution has no pair", where="among", remedy="Give two or more"
                )
        named = isinstance(self.scale, str)
        if self.radius is not None and self.scale is not None:
            raise ProblemError("has no meaning with a scale", where="radius", remedy="Drop one")
        object.__setattr__(self, "corners", in_balls(self.pairs, self.radius))
        if named != (self.distance is not None):
            raise ProblemError(
                "scale = W_inf or W_1 goes with a distance",
                where="distance" if named else "scale",
                remedy="Give both, or numbers for scale",
            )
        if self.divergence != "max" and self.delta > 0:
            raise ProblemError(
                f"δ belongs to the max divergence, and this is {self.divergence!r}",
                where="delta",
                remedy='Drop delta, or take divergence "max"',
            )
        if self.scale is None or isinstance(self.scale, str):
            return
        count = len(self.pairs)
        if len(self.scale) not in (1, count):
            raise ProblemError(f"needs {count} numbers >= 0, one per pair", where="scale")
        object.__setattr__(self, "scale", self.scale * (count // len(self.scale)))

    @property
    def scales(self) -> tuple[float, ...]:
        """The factor of ε for every pair, where they are numbers."""
        if isinstance(self.scale, str):
            raise ProblemError(
                "is measured between the secrets of a problem",
                where="scale",
                remedy="Use resolved(problem.space)",
            )
        return self.scale or (1.0,) * len(self.corners)

    def resolved(self, space: Space) -> Self:
        """The constraint with the Wasserstein distances of its pairs as numbers."""
        if not isinstance(self.scale, str) or self.distance is None:
            return self
        from optmech.transport import wasserstein

        require_same(self._domains, space, "pairs")
        apart, order = space.apart(self.distance), math.inf if self.scale == "W_inf" else 1
        with inside("pairs"):
            scale = [wasserstein(a, b, apart, order).value for a, b in self.pairs]
        return replace(self, scale=scale, distance=None)

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values, with distances of the pairs as numbers."""
        found = self.resolved(space)
        return super(DistributionPrivacy, found).plain(space)

    def families(
        self, index: int, space: Space
    ) -> Iterator[LiftedRatio | Approximate | Divergence]:
        if isinstance(self.scale, str):
            yield from self.resolved(space).families(index, space)
            return
        require_same(self._domains, space, "pairs")
        count = len(space.secrets)
        for k, pair in enumerate(self.pairs):
            for side, given in enumerate(pair):
                if given.shape != (count,):
                    raise ProblemError(
                        f"{given.size} entries for {count} secrets",
                        where=f"pairs[{k}][{side}]",
                        remedy="Give one for every secret",
                    )
        first, second = (np.array([pair[side] for pair in self.corners]) for side in (0, 1))
        factors = np.array(self.scales)
        if self.divergence != "max":
            yield from self._divergences(index, first, second, factors)
            return
        left, right = _both_ways(first, second)
        factors = np.tile(factors, 2)
        ratios = rounded_product(self.epsilon, factors)
        if not self.delta > 0:
            yield LiftedRatio(index, left, right, ratios, self.epsilon, factors)
            return
        sides = sp.csr_array(left), sp.csr_array(right)
        yield Approximate(index, *sides, ratios, self.delta, self.epsilon, factors)

    def _divergences(
        self, index: int, first: Floats, second: Floats, factors: Floats
    ) -> Iterator[LiftedRatio | Approximate | Divergence]:
        """Distributions at divergence 0 are equal: a ratio of 1. Total variation is the hockey
        stick at e^0, with ε · scale for δ."""
        epsilon = self.epsilon
        equal = (factors == 0) | (epsilon.factor == 0) | (epsilon.log_of == 1)
        limits, order = rounded_product(epsilon, factors), order_of(self.divergence)
        if order is not None:
            if (limits > LARGEST_RATE).any():
                raise ProblemError(
                    f"ε · scale is {limits.max():g}, and at most {LARGEST_RATE:g} nats of a Rényi "
                    "divergence are possible",
                    where="epsilon",
                    remedy='Give less, or take divergence "max"',
                )
            rates = [epsilon.times(factor) for factor in factors.tolist()]
            limits = np.array([float(limit_of(order, rate)[0]) for rate in rates])
        if (~equal & (limits < LEAST_LIMIT)).any():
            raise ProblemError(
                f"ε · scale is {limits[~equal].min():g}, too small to be told from 0",
                where="epsilon",
                remedy=f"Give 0, or at least {LEAST_LIMIT:g}",
            )
        if equal.any():
            yield equal_laws(index, first[equal], second[equal])
        apart = np.flatnonzero(~equal)
        if self.divergence == "tv":
            for k in apart.tolist():
                one = np.ones(1)
                sides = sp.csr_array(first[[k]]), sp.csr_array(second[[k]])
                limit = epsilon.times(factors[k])
                yield Approximate(index, *sides, 0 * one, limit, ZERO, one)
        elif len(apart):
            yield Divergence(
                index,
                self.divergence,
                *_both_ways(first[apart], second[apart]),
                np.tile(limits[apart], 2),
                epsilon,
                np.tile(factors[apart], 2),
            )

    def promise(self, space: Space) -> str:
        count = len(self.pairs)
        counted = "one pair" if count == 1 else f"{count} pairs"
        scaled = "" if self.scale is None else ", scaled"
        if isinstance(self.scale, str):
            scaled = f" per unit of their distance {self.scale} ({distance_words(self.distance)})"
        return (
            f"{_words(self.divergence)} {self.epsilon.words} for {counted} of distributions{scaled}"
            f"{_around(self.radius)}{delta_words(self.delta)}"
        )

    def promised(self, space: Space) -> Promised:
        # two reports about one secret may tell what neither of them tells
        return Promised("distributions", "unknown", pairs="listed")

    def measured(self, m: Mechanism, space: Space) -> Kept:
        # stating a problem must not load every divergence
        from optmech.analysis.divergences.privacy import epsilon_of_distributions

        if isinstance(self.scale, str):
            return self.resolved(space).measured(m, space)
        if self.divergence != "max":
            spent = epsilon_of_distributions(m, self.corners, self.divergence, scale=self.scale)
            return Kept("divergence", float(self.epsilon), spent)
        scaled = list(zip(self.corners, self.scales, strict=True))
        if self.delta > 0:
            spent = max(
                measures.distribution_delta(m, a, b, float(self.epsilon) * factor)
                for (a, b), factor in scaled
            )
            return Kept("delta", float(self.delta), spent)
        spent = max(
            float(measures.per_unit(measures.distribution_epsilon(m, a, b), factor))
            for (a, b), factor in scaled
        )
        return Kept("epsilon", float(self.epsilon), spent)

    def idle(self, space: Space) -> Remarks:
        if isinstance(self.scale, str):
            return self.resolved(space).idle(space)
        if self.delta >= 1:
            return [("", "δ is 1")]
        equal = [k for k, (a, b) in enumerate(self.corners) if np.array_equal(a, b)]
        if len(equal) == len(self.corners):
            return [("", "both distributions of every pair are the same")]
        if self.divergence in ("tv", "hellinger") and self.epsilon * min(self.scales) >= 1:
            return [("", "this divergence never exceeds 1")]
        listed = equal if self.radius is None else []
        return [(f".pairs[{k}]", "both distributions are the same") for k in listed]


def equal_laws(index: int, first: Floats, second: Floats) -> LiftedRatio:
    """That nothing tells distributions apart, (k, S) each: a ratio of 1, both ways."""
    one = np.ones(2 * len(first))
    return LiftedRatio(index, *_both_ways(first, second), 0 * one, ZERO, one)


def _both_ways(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    return np.vstack([first, second]), np.vstack([second, first])


@constraint("pufferfish")
@record
class Pufferfish(Constraint):
    """P(o | s_i, θ) <= e^ε P(o | s_j, θ) for every pair of secrets and every belief θ, in both
    directions, all o (Kifer and Machanavajjhala, *Pufferfish*, ACM TODS 2014, Definition 3.4).

    The secrets of the mechanism are the answers that it sees; ``pairs`` are the conditional laws of
    the answer, given s_i and given s_j, in the order of the answers (``om.beliefs`` makes them from
    tables, Markov chains and independent records). With ``delta`` > 0 the total excess over all o
    is at most δ; ``radius`` as in ``DistributionPrivacy``.

    Examples
    --------
    >>> beliefs = om.beliefs.tables([[0.75, 0.25], [0.25, 0.75]])
    >>> promise = om.constraints.Pufferfish("ln 2", beliefs.pairs)
    >>> design = om.solve(om.Problem(beliefs.prior, om.distances.hamming(), constraints=[promise]))
    >>> print(round(design.loss, 6))
    0.166667
    """

    epsilon: Converted[Number, Exact] = converted(fields.number)
    pairs: Converted[Pairs, LawPairs] = converted(as_pairs)
    delta: Converted[Number, Exact] = converted(fields.delta, default=fields.ZERO)
    radius: Converted[Number | None, Exact | None] = converted(fields.number, default=None)
    later = ("radius",)
    _domains: ClassVar[Sequence[Domain]] = ()
    _laws: ClassVar[DistributionPrivacy]
    """The promise about the laws of the answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_domains", domains_in(self.pairs))
        super().__post_init__()
        laws = DistributionPrivacy(self.epsilon, self.pairs, self.delta, radius=self.radius)
        object.__setattr__(self, "_laws", laws)

    @property
    def corners(self) -> LawPairs:
        """The pairs that inequalities are stated for."""
        return self._laws.corners

    def families(self, index: int, space: Space) -> Iterator[LiftedRatio | Approximate]:
        require_same(self._domains, space, "pairs")
        yield from self._laws.families(index, space)  # type: ignore[misc]

    def promise(self, space: Space) -> str:
        counted = "one pair" if len(self.pairs) == 1 else f"{len(self.pairs)} pairs"
        return (
            f"ε = {self.epsilon.words} for {counted} of secrets behind the answer"
            f"{_around(self.radius)}{delta_words(self.delta)}"
        )

    def promised(self, space: Space) -> Promised:
        return Promised("answers", "unknown", pairs="listed")

    def measured(self, m: Mechanism, space: Space) -> Kept:
        return self._laws.measured(m, space)

    def idle(self, space: Space) -> Remarks:
        return self._laws.idle(space)


def as_order(value: Number) -> Exact:
    """A fraction of whole numbers from 1 to 64."""
    order = parse_exact(value, where="", positive=True)
    if order.log_of is not None or (order.factor != 1 and order_of(name_of(order.factor)) is None):
        raise ProblemError(
            f"{value!r} is no fraction of whole numbers up to {MOST}",
            remedy='Give a number such as 2 or 1.5, or "21/10"; for ever larger ones '
            "DifferentialPrivacy is the limit",
        )
    return order


FIELDS[as_order] = FIELDS[fields.number]


@constraint("renyi_privacy")
@record
class RenyiPrivacy(Constraint):
    """D_α(p(·|s) ‖ p(·|s')) = ln(Σ_o p(o|s)^α p(o|s')^(1-α)) / (α - 1) <= ε d(s,s') for all s, s',
    in nats (Mironov, *Rényi Differential Privacy*, CSF 2017, Definition 4).

    ``order`` α is 1, where the divergence is that of Kullback and Leibler, or a fraction of whole
    numbers up to 64; ``distance`` is 1 by default, and the smaller of d(s,s') and d(s',s) counts
    where they differ. ε d is at most 10. For pairs of distributions in the place of secrets see
    ``DistributionPrivacy`` with ``divergence="renyi:α"``.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.constraints.RenyiPrivacy(order=2, epsilon=1)
    >>> design = om.solve(
    ...     om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    ... )
    >>> row, other = design.mechanism.matrix
    >>> print(round(om.divergences.renyi(row, other, 2), 4))
    1.0
    """

    order: Converted[Number, Exact] = converted(as_order)
    epsilon: Converted[Number, Exact] = converted(fields.number)
    distance: fields.AnyDistance = converted(fields.distance, default=None)

    @property
    def divergence(self) -> str:
        """Its name among the divergences."""
        order: Fraction = self.order.factor
        return "kl" if order == 1 else name_of(order)

    def _of_points(self, space: Space) -> DistributionPrivacy | None:
        """The promise as one about distributions that are points; None for one secret."""
        count = len(space.secrets)
        unit = np.eye(count)
        i, j = np.triu_indices(count, 1)
        if not len(i):
            return None
        apart = None if self.distance is None else space.apart(self.distance)
        # what is stated holds both ways
        scale = None if apart is None else np.minimum(apart, apart.T)[i, j]
        pairs = list(zip(unit[i], unit[j], strict=True))
        return DistributionPrivacy(self.epsilon, pairs, divergence=self.divergence, scale=scale)

    def families(
        self, index: int, space: Space
    ) -> Iterator[LiftedRatio | Approximate | Divergence]:
        points = self._of_points(space)
        if points is not None:
            yield from points.families(index, space)

    def promise(self, space: Space) -> str:
        per = "" if self.distance is None else f" per {space.per(self.distance)}"
        return f"Rényi divergence of order {self.order.words} at most {self.epsilon.words}{per}"

    def promised(self, space: Space) -> Promised:
        measure = None if self.distance is None else Measure.of(self.distance, space)
        scope = "secrets" if measure is None else measure.scope(space.secrets)
        return Promised(scope, "adds", (DIVERGENCE,), measure=measure)

    def measured(self, m: Mechanism, space: Space) -> Kept:
        points = self._of_points(space)
        if points is None:
            return Kept("divergence", float(self.epsilon), 0.0)
        return points.measured(m, space)

    def idle(self, space: Space) -> Remarks:
        return [] if len(space.secrets) > 1 else [("", "there is one secret only")]


@constraint("mutual_information")
@record
class MutualInformation(Constraint):
    """I(S; O) = Σ_s π(s) Σ_o p(o|s) ln(p(o|s) / p(o)) <= ``maximum``, in nats (Oya, Troncoso and
    Pérez-González, *Back to the Drawing Board*, CCS 2017, section 4.2; the least loss is the
    distortion-rate function of Shannon, Blahut and Arimoto).

    ``prior`` is the one that π is, by default the problem's. It is an average: a secret that is
    seldom may be given away, so that it is best stated together with a promise for all.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin), om.distances.hamming(),
    ...     constraints=[om.constraints.MutualInformation(0.1)]
    ... )
    >>> design = om.solve(problem)
    >>> x = design.loss
    >>> print(round(np.log(2) + x * np.log(x) + (1 - x) * np.log(1 - x), 4))  # Shannon: nats
    0.1
    """

    maximum: Converted[Number, Exact] = converted(fields.number)
    prior: Prior | None = checked(fields.adversary, default=None)

    def families(self, index: int, space: Space) -> Iterator[Information | LiftedRatio]:
        weights = space.adversary(self.prior).weights
        if not (self.maximum.factor == 0 or self.maximum.log_of == 1):
            if self.maximum < LEAST_LIMIT:
                raise ProblemError(
                    f"is {float(self.maximum):g}, too small to be told from 0",
                    where="maximum",
                    remedy=f"Give 0, or at least {LEAST_LIMIT:g}",
                )
            yield Information(index, weights, self.maximum)
            return
        # nothing is told: all rows that count are one
        used = np.eye(len(weights))[weights > 0]
        if len(used) > 1:
            yield equal_laws(index, np.repeat(used[:1], len(used) - 1, axis=0), used[1:])

    def promise(self, space: Space) -> str:
        of = "" if self.prior is None else ", of another prior"
        return f"mutual information at most {self.maximum.words} nats{of}"

    def promised(self, space: Space) -> Promised:
        return Promised("average", "adds", (INFORMATION,))

    def measured(self, m: Mechanism, space: Space) -> Kept:
        weights = space.adversary(self.prior).weights
        # no difference of entropies, in which small informations drown
        terms = generator("kl").terms(m.matrix, weights @ m.matrix)
        spent = float(weights @ np.where(weights[:, None] > 0, terms, 0.0).sum(axis=1))
        return Kept("information", float(self.maximum), spent)

    def idle(self, space: Space) -> Remarks:
        entropy = space.adversary(self.prior).entropy * math.log(2)
        if self.maximum < entropy:
            return []
        return [("", f"the entropy of the prior is {entropy:.6g} nats")]
