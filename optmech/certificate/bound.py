"""Lower bounds from multipliers (theory: "The Lagrangian bound").

For multipliers >= 0 of all inequalities, every feasible P has

    objective(P) >= constant + Σ_s min_o L[s,o],

where L[s,o] collects the cost of P[s,o] and the multipliers' terms, and the minimum runs over
allowed observables, because P's rows are distributions. Nothing about the multipliers is
trusted: signs are clipped, tests clipped to [0, 1], attacks normalised here. Powers e^{εd} enter
as floats proved to be above them; from there on everything is sums of products of floats, whose
rounding has the a-priori bound (number of roundings) x 2^-53 x (sum of absolute values).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.certificate.factors import Factors
from optmech.certificate.known import require_known
from optmech.certificate.multipliers import DivergenceMultipliers, Multipliers, PairMultipliers
from optmech.exact.exponentials import bracket
from optmech.ratios.enclosures import intercepts_below
from optmech.ratios.generators import generator
from optmech.statement.statement import Divergence, Statement

_UNIT = 2.0**-53
_LARGEST = 2.0**100
"""Multipliers are cut to this: any numbers >= 0 are valid."""
_TINY = 2.0**-900
"""Per entry, for what underflow may have lost: roundings of 2^-1075, times such a multiplier."""
_MARGINS = 3
"""A bound is reported with three times its rounding error taken off, and checked with once: so
that a machine which adds in another order proves what this one reports."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on the minimised objective (minus the distortion, where that is maximised)."""

    value: float
    """What is reported."""
    rounding: float
    """Upper bound of what rounding can have added before it was taken off."""
    proved: float = -math.inf
    """What this machine's arithmetic proves: at least ``value``."""


class _Lagrangian:
    """L[s,o], the constant, and the same with absolute values, for the rounding bound."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.terms = np.zeros(shape)
        self.magnitude = np.zeros(shape)
        self.roundings = np.full(shape, 8.0)
        self.constant = Fraction(0)
        self.weight = Fraction(1)
        """What the objective was multiplied with."""

    def add(self, part: Floats, magnitude: Floats, roundings: Floats | float) -> None:
        """``roundings`` bounds how many any single product of ``part`` went through."""
        self.terms += part
        self.magnitude += magnitude
        self.roundings += roundings + 2.0

    def minimum(self, allowed: np.ndarray) -> Bound:
        with np.errstate(over="ignore", invalid="ignore"):
            # 1.01: the magnitudes themselves, and the terms of higher order
            error = 1.01 * _UNIT * self.roundings * self.magnitude + _TINY
            proved, value = (
                self._value(np.where(allowed, self.terms - k * error, np.inf).min(axis=1))
                for k in (1, _MARGINS)
            )
            rounding = float(np.where(allowed, error, 0.0).max(axis=1).sum())
        return Bound(value, rounding, proved)

    def _value(self, low: Floats) -> float:
        if not np.isfinite(low).all():
            return -math.inf
        total = Fraction(math.nextafter(math.fsum(low.tolist()), -math.inf)) + self.constant
        return values.rounded_down(total / self.weight)


def lower_bound(statement: Statement, multipliers: Multipliers) -> Bound:
    """A number that no feasible mechanism's objective can go below, whatever the multipliers."""
    require_known(statement)
    lagrangian = _Lagrangian(statement.loss.shape)
    if not _add_objective(lagrangian, statement, multipliers):
        return Bound(-math.inf, 0.0)
    _add_constraints(lagrangian, statement, multipliers)
    return lagrangian.minimum(statement.allowed)


def infeasibility_margin(statement: Statement, multipliers: Multipliers) -> float:
    """Positive only if no feasible mechanism exists (a Farkas certificate): the same evaluation
    without an objective bounds zero from below."""
    require_known(statement)
    lagrangian = _Lagrangian(statement.loss.shape)
    _add_constraints(lagrangian, statement, multipliers)
    return lagrangian.minimum(statement.allowed).value


def _add_objective(lagrangian: _Lagrangian, statement: Statement, multipliers: Multipliers) -> bool:
    if statement.objective == "expected_loss":
        part = statement.prior[:, None] * statement.loss
        lagrangian.add(part, part, 1.0)
    elif statement.objective == "worst_loss":
        weights = np.full(statement.secrets, 1.0 / statement.secrets)
        if multipliers.objective is not None:
            weights = _positive(multipliers.objective)
        # Σ ω · max_s ℓ_s >= Σ_s ω_s ℓ_s, whatever the weights sum to
        lagrangian.weight = sum(map(Fraction, weights.tolist()), Fraction())
        if not lagrangian.weight > 0:
            return False
        part = weights[:, None] * statement.loss
        lagrangian.add(part, part, 1.0)
    else:
        assert statement.target is not None
        attack = multipliers.objective
        if attack is None:
            attack = np.ones((statement.observables, statement.secrets))
        part = (_attack(attack) @ statement.target).T
        lagrangian.add(-part, part, statement.secrets + 4.0)
    return True


def _add_constraints(
    lagrangian: _Lagrangian, statement: Statement, multipliers: Multipliers
) -> None:
    factors = Factors.of(statement)
    if multipliers.ratio is not None:
        _add_pairs(lagrangian, factors.ratio, multipliers.ratio)
    for window, factor, pairs in zip(
        statement.windowed, factors.windowed, multipliers.windowed, strict=False
    ):
        inside = window.window[pairs.i, pairs.o]
        kept = PairMultipliers(
            pairs.i[inside], pairs.j[inside], pairs.o[inside], pairs.value[inside]
        )
        _add_pairs(lagrangian, factor, kept)
    for lifted, factor, weight in zip(
        statement.lifted, factors.lifted, multipliers.lifted, strict=False
    ):
        _add_sums(lagrangian, lifted, factor, _positive(weight))
    for approximate, factor, tests in zip(
        statement.approximate, factors.approximate, multipliers.approximate, strict=False
    ):
        weight = np.where(np.isfinite(factor), _positive(tests.weight), 0.0)
        _add_sums(lagrangian, approximate, factor, weight[:, None] * np.clip(tests.test, 0.0, 1.0))
        # δ times the sum of the left distribution, which is 1 up to rounding
        sums = np.asarray(approximate.left.sum(axis=1)).reshape(-1)
        total = math.fsum((weight * sums).tolist()) * (1 + (2 * statement.secrets + 8) * _UNIT)
        lagrangian.constant -= Fraction(total) * bracket(approximate.delta)[1]
    for divergence, limits, tangents in zip(
        statement.divergences, factors.divergences, multipliers.divergences, strict=False
    ):
        _add_tangents(lagrangian, divergence, limits, tangents)
    for distortion, least, attack in zip(
        statement.distortion, factors.minima, multipliers.distortion, strict=False
    ):
        price = min(max(float(attack.weight), 0.0), _LARGEST)
        part = price * (_attack(attack.strategy) @ distortion.weighted).T
        lagrangian.add(-part, part, statement.secrets + 5.0)
        lagrangian.constant += Fraction(price) * least[0]
    for limit, most, weights in zip(
        statement.loss_limits, factors.maxima, multipliers.loss_limits, strict=False
    ):
        given = _positive(np.atleast_1d(weights))
        value = np.broadcast_to(given if limit.per_secret else given[:1], (statement.secrets,))
        part = value[:, None] * limit.weighted
        lagrangian.add(part, part, 2.0)
        spent = value if limit.per_secret else value[:1]
        total = math.nextafter(math.fsum(spent.tolist()), math.inf) if spent.any() else 0.0
        lagrangian.constant -= Fraction(total) * most[1]


def _add_pairs(lagrangian: _Lagrangian, factor: Floats, pairs: PairMultipliers) -> None:
    """z (P[i,o] - f P[j,o]) <= 0 for any f >= e^{r_ij}."""
    value = _positive(pairs.value)
    ratio = factor[pairs.i, pairs.j]
    used = np.isfinite(ratio) & (value > 0)
    i, j, o = pairs.i, pairs.j, pairs.o
    if not used.all():
        i, j, o, value, ratio = i[used], j[used], o[used], value[used], ratio[used]
    with np.errstate(over="ignore"):
        back = value * ratio
    secrets, observables = lagrangian.terms.shape
    size, first = secrets * observables, np.asarray(o, dtype=np.int64) * secrets
    left, right = first + i, first + j
    # one observable after the other, as large multipliers come: neighbours in memory
    plus, minus = (
        np.asarray(np.bincount(place, weight, size), dtype=np.float64)
        for place, weight in ((left, value), (right, back))
    )
    count = np.bincount(left, minlength=size) + np.bincount(right, minlength=size)
    with np.errstate(invalid="ignore"):
        parts = (plus - minus, plus + minus, count.astype(np.float64) + 2.0)
    lagrangian.add(*(part.reshape(observables, secrets).T for part in parts))


def _add_sums(lagrangian: _Lagrangian, part: object, factor: Floats, value: Floats) -> None:
    """Σ_k v_ko ((left_k P)[o] - f_k (right_k P)[o]) for any f_k >= the exact factor."""
    value = np.where(np.isfinite(factor)[:, None], value, 0.0)
    back = np.where(np.isfinite(factor), factor, 0.0)[:, None] * value
    plus, minus = part.left.T @ value, part.right.T @ back  # type: ignore[attr-defined]
    lagrangian.add(plus - minus, plus + minus, len(value) + 4.0)


def _add_tangents(
    lagrangian: _Lagrangian,
    part: Divergence,
    limits: tuple[tuple[Fraction, Fraction], ...],
    given: DivergenceMultipliers,
) -> None:
    """y (Σ_o α_o (aP)_o + β_o (bP)_o - limit) <= 0 for any floats β <= -f*(α)."""
    chosen = generator(part.kind)
    weight = _positive(given.weight)
    slope = chosen.cut(given.slope)
    alpha = weight[:, None] * slope
    beta = weight[:, None] * intercepts_below(chosen, slope)
    # the sums of a and b are not exactly one: as if every term had that many roundings more
    rows = [row.tolist() for side in (part.left, part.right) for row in side]
    off = max(abs(sum(map(Fraction, row), Fraction(-1))) for row in rows)
    count = len(weight) + 8.0 + 2.0 * math.ceil(off * 2**53)
    lagrangian.add(
        part.left.T @ alpha + part.right.T @ beta,
        part.left.T @ np.abs(alpha) + part.right.T @ np.abs(beta),
        count,
    )
    for price, (_, high) in zip(weight.tolist(), limits, strict=True):
        lagrangian.constant -= Fraction(price) * high


def _positive(value: Floats) -> Floats:
    return np.clip(value, 0.0, _LARGEST)


def _attack(strategy: Floats) -> Floats:
    """Rows (guesses for an observable) scaled to sums of at least one, by a hair.

    min_t x_t <= Σ_t α_t x_t for x >= 0 needs Σ_t α_t >= 1, and no more.
    """
    positive = np.maximum(strategy, 0.0)
    count = strategy.shape[1]
    totals = positive.sum(axis=1, keepdims=True)
    usable = np.isfinite(totals) & (totals > 2.0**-900)
    normal = np.where(usable, positive / np.where(usable, totals, 1.0), 1.0 / count)
    return np.asarray(normal * (1 + 4 * (count + 8) * _UNIT))
