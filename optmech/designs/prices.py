"""What the certificate's multipliers say about the stated numbers: prices (theory: "Prices").

Every constraint has a number that its owner chose: ε, δ, d_m or q. Its price is the derivative of
the optimal objective in that number, read off the multipliers and the released matrix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.bound import pairs_of
from optmech.certificate.families import (
    Approximate,
    Bias,
    Distortion,
    Divergence,
    Gradient,
    Information,
    Leakage,
    LiftedRatio,
    Linear,
    LossLimit,
    PairMultipliers,
    Ratio,
    Trusted,
)
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.problem import (
    Constraint,
    DistributionPrivacy,
    Linear as StatedLinear,
    MetricPrivacy,
    Ratios,
)
from optmech.spaces.arguments import checked_arguments

__all__ = ["PairPrice", "Price", "of_constraints", "of_pairs"]
__dir__ = __all__.copy


Parameter = Literal[
    "epsilon", "delta", "minimum", "maximum", "upper", "lower", "equal", "log_ratio"
]
_Rate = tuple[Parameter, float]


@dataclass(frozen=True)
class Price:
    """The derivative of the optimal objective in one stated number.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> (price,) = om.prices.of_constraints(om.solve(problem))
    >>> print(price.parameter, round(price.rate, 4))
    epsilon -0.1875
    >>> print(round(price.change(share=0.01), 4))  # of 1 % more ε
    -0.0021
    """

    constraint: int
    """Index of the constraint."""
    parameter: Parameter
    value: float
    """The number that was stated."""
    rate: float
    """d objective / d parameter: loss (or distortion, where that is maximised) per unit of it;
    nan where the multipliers do not tell."""

    def change(self, share: float = 0.01) -> float:
        """The objective's change, to first order, when the number grows by ``share`` of itself."""
        return self.rate * self.value * share


@dataclass(frozen=True)
class PairPrice:
    """The derivative of the optimal objective in the log ratio r allowed to one pair of secrets.

    Examples
    --------
    >>> line = om.Domain.range(3, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(line), km, constraints=[om.MetricPrivacy("ln 2", km)])
    >>> dearest = om.prices.of_pairs(om.solve(problem), count=1)[0]
    >>> print(dearest.rate < 0)  # a looser ratio loses less
    True
    """

    secret: Hashable
    """Label of s, where the constraint is p(o|s) <= e^r p(o|s')."""
    other: Hashable
    """Label of s'."""
    observable: Hashable
    """Label of the o that contributes most."""
    indices: tuple[int, int, int]
    """Indices of (s, s', o)."""
    allowed: float
    """r."""
    rate: float
    """d objective / d r."""


@checked_arguments
def of_constraints(design: Design) -> tuple[Price, ...]:
    """One entry for every number of the constraints, in their order.

    For d_m, q and δ the optimum is convex (concave, where distortion is maximised), so that
    ``rate`` bounds it on both sides of the stated number as far as the certificate's gap allows.
    For ε it is a local rate. Where several multipliers are optimal it is one rate of several, and
    where several constraints limit a pair equally the first one is charged. A divergence other than
    "max" bounded by ε = 0 is stated as equality, whose multipliers say nothing of the first step
    away from it (for some divergences its rate is infinite): nan. Of ``Linear`` the rate is that of
    one more in all of its limits of one sort; of ``Ratios`` that of a common factor of all log
    ratios, "log_ratio", which is 1.

    Raises
    ------
    InfeasibleError
        Where the design has no mechanism.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> (price,) = om.prices.of_constraints(om.solve(problem))
    >>> print(round(price.rate, 4))  # the slope of 1 / (e^ε + 1): -3/16
    -0.1875
    """
    rates = _Rates(design)
    return tuple(
        Price(index, parameter, value, rates.of(index, parameter))
        for index, constraint in enumerate(design.problem.constraints)
        for parameter, value in _parameters(constraint)
    )


@checked_arguments
def of_pairs(design: Design, count: int = 10) -> tuple[PairPrice, ...]:
    """The ``count`` pairs of secrets that the certificate charges most, dearest first.

    Pairs of metric and differential privacy with δ = 0 and without an observable threshold. A
    pair that others imply has price 0 in a certificate that charges those others.

    Raises
    ------
    InfeasibleError
        Where the design has no mechanism.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> pairs = om.prices.of_pairs(om.solve(problem))
    >>> [(p.secret, p.other, p.observable) for p in pairs]
    [('yes', 'no', 'yes'), ('no', 'yes', 'no')]
    """
    rates = _Rates(design)
    found = rates.pairs
    if found is None or not len(found.value):
        return ()
    size = len(design.problem.secrets)
    key = found.i * size + found.j
    total = np.bincount(key, found.value, size * size)
    ranked = np.argsort(-total, kind="stable")[: max(count, 0)]
    problem, out = design.problem, []
    secrets, observables = problem.secrets.labels, problem.observables.labels
    for place in ranked[total[ranked] > 0].tolist():
        i, j = divmod(place, size)
        o = int(found.o[np.where(key == place, found.value, -np.inf).argmax()])
        allowed = float(problem.statement.log_ratio[i, j])
        labels = (secrets[i], secrets[j], observables[o])
        out.append(PairPrice(*labels, (i, j, o), allowed, float(-rates.sign * total[place])))
    return tuple(out)


def _parameters(constraint: Constraint) -> list[tuple[Parameter, float]]:
    found = ((name, getattr(constraint, name, None)) for name in get_args(Parameter))
    if isinstance(constraint, Ratios):
        return [("log_ratio", 1.0)]
    return [
        (n, float(one))
        for n, v in found
        if v is not None and (n, v) != ("delta", 0)
        for one in (v if isinstance(v, tuple) else (v,))[:1]
    ]


def _equality(constraint: Constraint) -> bool:
    """Whether distributions are equal because of ε = 0, and might differ by any other ε."""
    if getattr(constraint, "divergence", "max") == "max":
        return False
    scale = getattr(constraint, "scale", None)
    moves = scale is None or any(scale)
    return moves and getattr(constraint, "epsilon", 1.0) == 0


class _Rates:
    """Derivatives of the minimised objective, by constraint and parameter."""

    def __init__(self, design: Design) -> None:
        self.matrix = design.mechanism.matrix
        assert design.exact is not None
        self.rows = design.exact.matrix
        self.statement = design.problem.statement
        self.constraints = design.problem.constraints
        multipliers = design.certificate.multipliers
        self.sign = self.statement.sign
        self.scale = 1.0
        if self.statement.objective == "worst_loss" and multipliers.objective is not None:
            # losses enter with weights that need not sum to 1, which the bound divides by
            self.scale = float(np.maximum(multipliers.objective, 0.0).sum()) or 1.0
        self.found: dict[tuple[int, Parameter], float] = defaultdict(float)
        self.unknown = {
            (index, "epsilon") for index, stated in enumerate(self.constraints) if _equality(stated)
        }
        self.pairs: PairMultipliers | None = None
        """Multipliers times e^r p(o|j): the derivative in r."""
        if (proof := multipliers.variance) is not None:
            # its multipliers are of products of ratios: what these tell is of their square
            for k in range(len(self.constraints)):
                self.unknown |= {(k, "epsilon"), (k, "log_ratio")}
            left = proof.charges
            for family in self.statement.families if len(left) else ():
                if isinstance(family, LossLimit | Distortion):
                    count = len(self.matrix) if getattr(family, "per_secret", False) else 1
                    spent, left = float(np.maximum(left[:count], 0.0).sum()), left[count:]
                    key: Parameter = "maximum" if isinstance(family, LossLimit) else "minimum"
                    self.found[family.index, key] += -spent if key == "maximum" else spent
        rates = list(self._ratios(pairs_of(self.statement, multipliers)))
        for family, given in multipliers.of(self.statement):
            if given is not None:
                stated = self.constraints[family.index]
                rates += ((family.index, rate) for rate in self._charges(family, given, stated))
        for index, (parameter, rate) in rates:
            self.found[index, parameter] += rate / self.scale

    def of(self, index: int, parameter: Parameter) -> float:
        if (index, parameter) in self.unknown:
            return float("nan")
        return self.sign * self.found[index, parameter]

    def _charges(self, family: Trusted, given: Any, stated: Constraint) -> Iterator[_Rate]:
        """What the multipliers of one family say of its numbers."""
        if isinstance(family, Ratio):
            if family.window is not None:
                inside = given.take(family.window[given.i, given.o])
                pairs = self._charged(inside, family.log_ratio)
                yield _rate_of(stated), -_spent(pairs, family, stated)
            return
        if isinstance(family, Gradient):
            near = self.rows[family.mesh.control]
            yield "epsilon", -float(np.einsum("ton,tno->", given.sizes(family.mesh), near))
            return
        weight = np.maximum(getattr(given, "weight", given), 0.0)
        spent = float(weight.sum())
        match family:
            case LiftedRatio() if isinstance(stated, Ratios):
                kept = weight if family.window is None else np.where(family.window, weight, 0.0)
                yield "log_ratio", -self._sums(family, kept) * float(family.epsilon)
            case Linear():
                above, below = weight.sum(axis=1).tolist()
                if isinstance(stated, StatedLinear) and stated.equal is not None:
                    yield "equal", below - above
                else:
                    yield from (("upper", -above), ("lower", below))
            case LiftedRatio():
                # else pairs of scale 0, whatever ε is
                if getattr(stated, "divergence", "max") == "max":
                    yield "epsilon", -self._sums(family, weight)
            case Approximate():
                if isinstance(stated, DistributionPrivacy) and stated.divergence == "tv":
                    # δ = ε · scale
                    yield "epsilon", -spent * family.delta / stated.epsilon
                    return
                each = weight[:, None] * np.clip(given.test, 0.0, 1.0)
                yield "epsilon", -self._sums(family, each)
                yield "delta", -spent
            case Divergence():
                yield "epsilon", -float(weight @ family.growth)
            case Distortion():
                yield "minimum", spent
            case Leakage() if family.natural:
                yield "maximum", -spent * float(np.exp(min(float(family.maximum), 700.0)))
            case Leakage() | LossLimit() | Information() | Bias():
                yield "maximum", -spent
            case _:
                raise ProblemError(f"{family.kind!r} has no price", where="prices")

    def _ratios(self, given: PairMultipliers | None) -> Iterator[tuple[int, _Rate]]:
        """Pairs that several constraints limit are charged to the one that limits them most."""
        plain = [part for part in self.statement.of_kind(Ratio) if part.window is None]
        if not plain or given is None:
            return
        pairs = self._charged(given, self.statement.log_ratio)
        self.pairs = replace(pairs, value=pairs.value / self.scale)
        binding = np.argmin([part.log_ratio[pairs.i, pairs.j] for part in plain], axis=0)
        for k, part in enumerate(plain):
            own = pairs.take(binding == k)
            stated = self.constraints[part.index]
            yield part.index, (_rate_of(stated), -_spent(own, part, stated))

    def _charged(self, pairs: PairMultipliers, log_ratio: Floats) -> PairMultipliers:
        """z e^r p(o|j) in place of z, through logarithms as e^r alone may overflow."""
        allowed, right = log_ratio[pairs.i, pairs.j], self.matrix[pairs.j, pairs.o]
        used = np.isfinite(allowed) & (pairs.value > 0) & (right > 0)
        kept = pairs.take(used)
        power = allowed[used] + np.log(right[used]) + np.log(kept.value)
        return replace(kept, value=np.exp(power))

    def _sums(self, part: LiftedRatio | Approximate, weight: Floats) -> float:
        """Σ_k scale_k e^{r_k} Σ_o weight_ko (right_k P)[o]."""
        seen = part.right @ self.matrix
        inner = (weight * seen).sum(axis=1)
        used = np.isfinite(part.log_ratio) & (inner > 0)
        power = np.exp(part.log_ratio[used] + np.log(inner[used]))
        return float(part.scale[used] @ power)


def _rate_of(stated: Constraint) -> Parameter:
    return "log_ratio" if isinstance(stated, Ratios) else "epsilon"


def _spent(pairs: PairMultipliers, part: Ratio, stated: Constraint) -> float:
    growth = part.table[pairs.i, pairs.j]
    if isinstance(stated, Ratios):
        growth = part.log_ratio[pairs.i, pairs.j]
    if isinstance(stated, MetricPrivacy) and stated.everywhere is not None:
        # the derivative of ln(1 + εℓ), which is what stands there
        growth = -np.expm1(-growth) / float(stated.epsilon)
    return float(pairs.value @ growth)
