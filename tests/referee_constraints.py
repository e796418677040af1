"""Random constraints at places, each kept or broken by the referee's own fractions, and written
once more for its own linear program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any

import cvxpy as cp
import numpy as np

import optmech as om

Rows = list[list[Fraction]]
Rules = Callable[[Any], list[Any]]


@dataclass(frozen=True)
class Drawn:
    """A constraint; by how much exact rows at the places break it; rules for an expression of
    cvxpy with a row for every place."""

    stated: om.Constraint
    over: Callable[[Rows], Fraction]
    rules: Rules


def _number(rng: np.random.Generator, *texts: str) -> Fraction:
    return Fraction(str(rng.choice(texts)))


def _share(rng: np.random.Generator, n: int) -> list[Fraction]:
    """A distribution in sixteenths, at times in one place."""
    return [Fraction(int(v), 16) for v in rng.multinomial(16, rng.dirichlet(np.full(n, 0.5)))]


def _apart(one: list[Fraction], other: list[Fraction], factor: Fraction) -> Fraction:
    return sum((max(Fraction(0), a - factor * b) for a, b in zip(one, other, strict=True)),
               Fraction(0))  # fmt: skip


def _mixed(weights: list[Fraction], rows: Rows) -> list[Fraction]:
    return [sum((w * v for w, v in zip(weights, column, strict=True)), Fraction(0))
            for column in zip(*rows, strict=True)]  # fmt: skip


def _floats(values: Any) -> np.ndarray:
    return np.array(values, dtype=float)


def _differential(rng: np.random.Generator, n: int, _: int) -> Drawn:
    """Ratios, or (ε, δ), of all pairs or of some."""
    factor, delta = _number(rng, "1", "11/10", "3/2", "3", "1000"), Fraction(0)
    if rng.random() < 0.5:
        delta = _number(rng, "1/1000000", "1/100", "1/5", "9/10")
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.5]
    every = not pairs or rng.random() < 0.5
    if every:
        pairs = [(i, j) for i in range(n) for j in range(i)]
    both = [*pairs, *((j, i) for i, j in pairs)]
    stated = om.DifferentialPrivacy(
        f"ln {factor}", "all" if every else pairs, delta=str(delta) if delta else 0
    )

    def over(rows: Rows) -> Fraction:
        return max((_apart(rows[i], rows[j], factor) - delta for i, j in both), default=Fraction(0))

    def rules(at: Any) -> list[Any]:
        if not delta:
            return [at[i] <= float(factor) * at[j] for i, j in both]
        return [cp.sum(cp.pos(at[i] - float(factor) * at[j])) <= float(delta) for i, j in both]

    return Drawn(stated, over, rules)


def _meant(limit: Fraction, *extremes: Fraction) -> Fraction:
    """The limit, or what it falls short of by rounding only (docs/theory/lagrangian.md, What the
    numbers mean)."""
    near = abs(limit) / 10**12
    return next((value for value in extremes if limit < value <= limit + near), limit)


def _populations(rng: np.random.Generator, n: int, _: int) -> Drawn:
    factor = _number(rng, "101/100", "3/2", "4")
    delta = _number(rng, "0", "1/50")
    one, other = _share(rng, n), _share(rng, n)
    stated = om.DistributionPrivacy(
        f"ln {factor}", [(_floats(one), _floats(other))], delta=str(delta)
    )
    both = ((one, other), (other, one))

    def over(rows: Rows) -> Fraction:
        return max(_apart(_mixed(a, rows), _mixed(b, rows), factor) - delta for a, b in both)

    def rules(at: Any) -> list[Any]:
        return [
            cp.sum(cp.pos(_floats(a) @ at - float(factor) * (_floats(b) @ at))) <= float(delta)
            for a, b in both
        ]

    return Drawn(stated, over, rules)


def _bias(rng: np.random.Generator, n: int, m: int) -> Drawn:
    most = _number(rng, "1/4", "1", "3/2", "3")
    values, reported = rng.integers(0, 4, n).tolist(), rng.integers(0, 4, m).tolist()

    def over(rows: Rows) -> Fraction:
        means = (sum(v * r for v, r in zip(row, reported, strict=True)) for row in rows)
        return max(abs(mean - v) for mean, v in zip(means, values, strict=True)) - most

    return Drawn(
        om.constraints.Bias(str(most), values, reported),
        over,
        lambda at: [cp.abs(at @ _floats(reported) - _floats(values)) <= float(most)],
    )


def _loss(rng: np.random.Generator, prior: np.ndarray, n: int, m: int) -> Drawn:
    """Another loss in quarters; of the prior or of every place."""
    cost, worst = rng.integers(0, 9, (n, m)) / 4, bool(rng.random() < 0.5)
    most = _number(rng, "1/4", "1", "5/4", "2")
    weights = [Fraction(v) for v in prior.tolist()]
    easiest = [min(map(Fraction, costs)) for costs in cost.tolist()]
    lowest = max(easiest) if worst else sum(map(mul, weights, easiest))
    allowed = _meant(most, lowest)

    def over(rows: Rows) -> Fraction:
        each = [
            sum((Fraction(c) * v for c, v in zip(costs, row, strict=True)), Fraction(0))
            for costs, row in zip(cost.tolist(), rows, strict=True)
        ]
        if worst:
            return max(each) - allowed
        return sum((w * v for w, v in zip(weights, each, strict=True)), Fraction(0)) - allowed

    def rules(at: Any) -> list[Any]:
        each = cp.sum(cp.multiply(cost, at), axis=1)
        return [(each if worst else prior @ each) <= float(most)]

    return Drawn(om.LossBound(str(most), cost, worst_case=worst), over, rules)


def _gains(rng: np.random.Generator, prior: np.ndarray, n: int, _: int) -> Drawn:
    guesses = int(rng.integers(1, 4))
    gain = rng.integers(-2, 5, (guesses, n)) / 4
    most = _number(rng, "0", "1/4", "1/2", "3/4", "1")
    weights = [Fraction(v) for v in prior.tolist()]
    weighted = [list(map(mul, weights, map(Fraction, guess))) for guess in gain.tolist()]
    blind, known = max(map(sum, weighted)), sum(map(max, zip(*weighted, strict=True)))
    allowed = _meant(most, blind, known)

    def over(rows: Rows) -> Fraction:
        return (
            sum(
                (
                    max(sum(map(mul, guess, column)) for guess in weighted)
                    for column in zip(*rows, strict=True)
                ),
                Fraction(0),
            )
            - allowed
        )

    return Drawn(
        om.constraints.GainLeakage(str(most), gain),
        over,
        lambda at: [cp.sum(cp.max((gain * prior) @ at, axis=0)) <= float(most)],
    )


def _spread(rng: np.random.Generator, _: int, __: int) -> Drawn:
    """Maximal leakage or additive capacity."""
    if rng.random() < 0.5:
        most = _number(rng, "21/20", "3/2", "2")
        return Drawn(
            om.constraints.MaximalLeakage(f"ln {most}"),
            lambda rows: sum(map(max, zip(*rows, strict=True))) - most,
            lambda at: [cp.sum(cp.max(at, axis=0)) <= float(most)],
        )
    most = _number(rng, "1/20", "1/2", "9/10")
    return Drawn(
        om.constraints.AdditiveCapacity(str(most)),
        lambda rows: 1 - sum(map(min, zip(*rows, strict=True))) - most,
        lambda at: [1 - cp.sum(cp.min(at, axis=0)) <= float(most)],
    )


def _support(rng: np.random.Generator, n: int, m: int) -> Drawn:
    mask = rng.random((n, m)) < 0.7
    mask[:, rng.integers(m)] = True

    def over(rows: Rows) -> Fraction:
        return max((rows[i][o] for i, o in np.argwhere(~mask).tolist()), default=Fraction(0))

    return Drawn(
        om.Support(mask.astype(int)),
        over,
        # what is never reported from one place is reported from none, however far away
        lambda at: [at[:, ~mask.all(axis=0)] == 0] if not mask.all() else [],
    )


def _sums(rng: np.random.Generator, n: int, m: int) -> Drawn:
    """Linear inequalities of their own: of all, of every report, of every place."""
    per = str(rng.choice(["all", "report", "secret"]))
    shape = {"all": (2, n, m), "report": (2, n), "secret": (2, m)}[per]
    weights = rng.integers(-2, 4, shape) / 4
    upper, lower = _number(rng, "1/4", "1", "3/2"), _number(rng, "-2", "-1/2", "0", "1/10")

    def over(rows: Rows) -> Fraction:
        found = []
        for own in weights.tolist():
            if per == "all":
                sums = [sum((Fraction(w) * v for ws, row in zip(own, rows, strict=True)
                             for w, v in zip(ws, row, strict=True)), Fraction(0))]  # fmt: skip
            elif per == "report":
                sums = _mixed([Fraction(w) for w in own], rows)
            else:
                exact = list(map(Fraction, own))
                sums = [sum(map(mul, exact, row), Fraction(0)) for row in rows]
            found += [side for v in sums for side in (v - upper, lower - v)]
        return max(found)

    def rules(at: Any) -> list[Any]:
        if per == "all":
            sums = [cp.sum(cp.multiply(own, at)) for own in weights]
        else:
            sums = [own @ at if per == "report" else at @ own for own in weights]
        return [rule for v in sums for rule in (v <= float(upper), v >= float(lower))]

    return Drawn(om.Linear(weights, upper=str(upper), lower=str(lower), per=per), over, rules)


def draw(rng: np.random.Generator, prior: np.ndarray, n: int, m: int) -> Iterator[Drawn]:
    """None, or up to three of them."""
    kinds: list[Callable[[], Drawn]] = [
        lambda: _differential(rng, n, m), lambda: _populations(rng, n, m),
        lambda: _bias(rng, n, m), lambda: _loss(rng, prior, n, m),
        lambda: _gains(rng, prior, n, m), lambda: _spread(rng, n, m), lambda: _support(rng, n, m),
        lambda: _sums(rng, n, m),
    ]  # fmt: skip
    for k in rng.permutation(len(kinds))[: int(rng.choice([0, 1, 1, 2, 3]))]:
        yield kinds[k]()


def least(
    prior: np.ndarray, cost: np.ndarray, limit: np.ndarray, beside: list[Drawn], far: float
) -> float:
    """The least loss at the places, inf where there is none."""
    at = cp.Variable(cost.shape, nonneg=True)
    rules = [cp.sum(at, axis=1) == 1, *(rule for drawn in beside for rule in drawn.rules(at))]
    for i, j in zip(*np.nonzero((limit < far) & ~np.eye(len(limit), dtype=bool)), strict=True):
        one, other = np.exp([-limit[i, j], 0.0])
        rules.append(one * at[i] <= other * at[j])
    return _solved(cp.sum(cp.multiply(prior[:, None] * cost, at)), rules)


def room(cost: np.ndarray, beside: list[Drawn]) -> float:
    """By how much a mechanism that reports alike everywhere can keep all of them to spare;
    negative where it breaks some by as much at least."""
    row, spare = cp.Variable((1, cost.shape[1]), nonneg=True), cp.Variable()
    at = np.ones((len(cost), 1)) @ row
    rules = [cp.sum(row) == 1, spare <= 1]
    for rule in (rule for drawn in beside for rule in drawn.rules(at)):
        equal = isinstance(rule, cp.constraints.Equality | cp.constraints.Zero)
        rules.append(rule if equal else rule.expr + spare <= 0)
    return -_solved(-spare, rules)


def _solved(goal: Any, rules: list[Any]) -> float:
    program = cp.Problem(cp.Minimize(goal), rules)
    # bounds of expressions, infinite times zero
    with np.errstate(invalid="ignore"):
        found = program.solve(solver="HIGHS")
    return float("inf") if found is None else float(found)
