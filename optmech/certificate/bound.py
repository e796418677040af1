"""Lower bounds from multipliers (theory: "The Lagrangian bound").

For multipliers >= 0 of all inequalities, every feasible P has

    objective(P) >= constant + Σ_s min_o L[s,o],

where L[s,o] collects the cost of P[s,o] and the multipliers' terms, and the minimum runs over
allowed observables, because P's rows are distributions. Nothing about the multipliers is
trusted: signs are clipped, tests clipped to [0, 1], attacks normalised here. What is subtracted
for rounding is an a-priori bound: (number of roundings) x 2^-53 x (sum of absolute values).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optmech.certificate.multipliers import Multipliers, PairMultipliers
from optmech.domain import Floats
from optmech.statement import Statement

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Bound:
    """A lower bound on the minimised objective (minus the distortion, where that is maximised)."""

    value: float
    """Safe: rounding has been subtracted."""
    rounding: float
    """What was subtracted for rounding."""


class _Lagrangian:
    """L[s,o], the constant, and the same with absolute values, for the rounding bound."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.terms = np.zeros(shape)
        self.magnitude = np.zeros(shape)
        self.roundings = np.full(shape, 4.0)
        self.constant = 0.0
        self.constant_magnitude = 0.0

    def add(self, part: Floats, magnitude: Floats, roundings: Floats | float) -> None:
        self.terms += part
        self.magnitude += magnitude
        self.roundings += roundings

    def add_constant(self, part: float, magnitude: float) -> None:
        self.constant += part
        self.constant_magnitude += magnitude

    def minimum(self, allowed: np.ndarray) -> Bound:
        # the error of every entry is bounded before the row minima are taken
        error = _UNIT * self.roundings * self.magnitude
        low = np.where(allowed, self.terms - error, np.inf).min(axis=1)
        count = len(low) + 64
        value = float(low.sum()) + self.constant
        rounding = count * _UNIT * (float(np.abs(low).sum()) + self.constant_magnitude)
        return Bound(value - 2 * rounding, 2 * rounding + float(error.max(axis=1).sum()))


def lower_bound(statement: Statement, multipliers: Multipliers) -> Bound:
    """A number that no feasible mechanism's objective can go below, whatever the multipliers."""
    lagrangian = _Lagrangian(statement.loss.shape)
    _add_objective(lagrangian, statement, multipliers)
    _add_constraints(lagrangian, statement, multipliers)
    return lagrangian.minimum(statement.allowed)


def infeasibility_margin(statement: Statement, multipliers: Multipliers) -> float:
    """Positive only if no feasible mechanism exists (a Farkas certificate): the same evaluation
    without an objective bounds zero from below."""
    lagrangian = _Lagrangian(statement.loss.shape)
    _add_constraints(lagrangian, statement, multipliers)
    return lagrangian.minimum(statement.allowed).value


def _add_objective(lagrangian: _Lagrangian, statement: Statement, multipliers: Multipliers) -> None:
    if statement.objective == "expected_loss":
        part = statement.prior[:, None] * statement.loss
        lagrangian.add(part, part, 1.0)
    elif statement.objective == "worst_loss":
        weights = _distribution(multipliers.objective, statement.secrets)
        part = weights[:, None] * statement.loss
        lagrangian.add(part, part, statement.secrets + 4.0)
    else:
        assert statement.target is not None
        attack = _strategy(multipliers.objective, statement)
        part = (attack @ statement.target).T
        lagrangian.add(-part, part, 2.0 * statement.secrets + 8)


def _add_constraints(
    lagrangian: _Lagrangian, statement: Statement, multipliers: Multipliers
) -> None:
    if multipliers.ratio is not None:
        _add_pairs(lagrangian, statement.log_ratio, multipliers.ratio)
    for window, pairs in zip(statement.windowed, multipliers.windowed, strict=False):
        inside = window.window[pairs.i, pairs.o]
        kept = PairMultipliers(
            pairs.i[inside], pairs.j[inside], pairs.o[inside], pairs.value[inside]
        )
        _add_pairs(lagrangian, window.log_ratio, kept)
    for lifted, weight in zip(statement.lifted, multipliers.lifted, strict=False):
        value = np.maximum(weight, 0.0)
        ratio = np.exp(lifted.log_ratio)[:, None]
        plus, minus = lifted.left.T @ value, lifted.right.T @ (ratio * value)
        lagrangian.add(plus - minus, plus + minus, 4.0 * len(value) + 16)
    for approximate, tests in zip(statement.approximate, multipliers.approximate, strict=False):
        weight = np.maximum(tests.weight, 0.0)
        value = weight[:, None] * np.clip(tests.test, 0.0, 1.0)
        ratio = np.exp(approximate.log_ratio)[:, None]
        plus, minus = approximate.left.T @ value, approximate.right.T @ (ratio * value)
        lagrangian.add(plus - minus, plus + minus, 4.0 * len(value) + 16)
        total = float(weight.sum())
        lagrangian.add_constant(-total * approximate.delta, total * (len(weight) + 2))
    for distortion, attack in zip(statement.distortion, multipliers.distortion, strict=False):
        weight_ = max(float(attack.weight), 0.0)
        part = weight_ * (_normalised(attack.strategy) @ distortion.weighted).T
        lagrangian.add(-part, part, 2.0 * statement.secrets + 8)
        lagrangian.add_constant(weight_ * distortion.minimum, 4 * weight_ * distortion.minimum)
    for limit, weights in zip(statement.loss_limits, multipliers.loss_limits, strict=False):
        value = np.broadcast_to(np.maximum(weights, 0.0), (statement.secrets,))
        part = value[:, None] * limit.weighted
        lagrangian.add(part, part, 2.0)
        total = float(value.sum()) if limit.per_secret else float(value[0])
        lagrangian.add_constant(
            -total * limit.maximum, total * limit.maximum * (statement.secrets + 2)
        )


def _add_pairs(lagrangian: _Lagrangian, log_ratio: Floats, pairs: PairMultipliers) -> None:
    value = np.maximum(pairs.value, 0.0)
    ratio = log_ratio[pairs.i, pairs.j]
    used = np.isfinite(ratio) & (value > 0)
    i, j, o = pairs.i[used], pairs.j[used], pairs.o[used]
    value, ratio = value[used], ratio[used]
    with np.errstate(over="ignore"):
        back = value * np.exp(ratio)
    shape = lagrangian.terms.shape
    left, right = np.ravel_multi_index((i, o), shape), np.ravel_multi_index((j, o), shape)
    size = shape[0] * shape[1]
    plus = np.asarray(np.bincount(left, value, size), dtype=np.float64).reshape(shape)
    minus = np.asarray(np.bincount(right, back, size), dtype=np.float64).reshape(shape)
    count = np.bincount(left, minlength=size) + np.bincount(right, minlength=size)
    # 8: the product ε·d (relative to ratio), exp, the product, and the sums of both sides
    spread = 1.0 + (float(ratio.max()) if len(ratio) else 0.0)
    lagrangian.add(
        plus - minus,
        plus + minus,
        np.asarray(count, dtype=np.float64).reshape(shape) + 8.0 * spread,
    )


def _distribution(weights: Floats | None, count: int) -> Floats:
    if weights is None:
        return np.full(count, 1.0 / count)
    positive = np.maximum(weights, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(count, 1.0 / count)


def _strategy(attack: Floats | None, statement: Statement) -> Floats:
    shape = (statement.observables, statement.secrets)
    return _normalised(np.ones(shape) if attack is None else attack)


def _normalised(attack: Floats) -> Floats:
    positive = np.maximum(attack, 0.0)
    totals = positive.sum(axis=1, keepdims=True)
    return np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), 1.0 / attack.shape[1])
