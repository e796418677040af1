"""The exact check: decisions at the limit, and mutations against an independent verdict."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conformance.problems import KINDS, Make, blind, points, prior
from optmech_audit.mechanisms import Mechanism
from optmech_audit.numbers import Fault
from optmech_audit.statements import Statement

import optmech as om
from optmech.certificate import check_exact
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators

E, H = om.distances.euclidean(), om.distances.hamming()
TWO = om.Domain.range(2)


def passes(problem: om.Problem, bits: int, rows: list[list[int]]) -> bool:
    exact = Numerators(bits, tuple(map(tuple, rows)))
    return all(check.passed for check in check_exact(problem.statement, exact))


def two(*constraints: object, **options: object) -> om.Problem:
    return om.Problem(om.Prior.uniform(TWO), H, constraints=constraints, **options)


class TestAtTheLimit:
    def test_ratios_that_are_exactly_three(self) -> None:
        problem = two(om.DifferentialPrivacy("ln 3"))
        assert passes(problem, 2, [[3, 1], [1, 3]])
        quarter = 2**98
        assert passes(problem, 100, [[3 * quarter, quarter], [quarter, 3 * quarter]])
        assert not passes(problem, 100, [[3 * quarter + 1, quarter - 1], [quarter, 3 * quarter]])
        # the float nearest to ln 3 is below it: 3 is too much
        assert float(om.DifferentialPrivacy("ln 3").epsilon) == 1.0986122886681098
        assert not passes(two(om.DifferentialPrivacy(1.0986122886681096)), 2, [[3, 1], [1, 3]])

    def test_powers_along_a_metric(self) -> None:
        line = om.Domain.range(3)
        problem = om.Problem(
            om.Prior.uniform(line), E, constraints=[om.MetricPrivacy("1/2 ln 4", E)]
        )
        rows = [[4, 2, 1, 9], [2, 4, 2, 8], [1, 2, 4, 9]]
        free = om.Problem(
            problem.prior, np.ones((3, 4)), om.Domain("abcd"), constraints=problem.constraints
        )
        assert passes(free, 4, rows)
        rows[2] = [1, 4, 4, 7]
        assert passes(free, 4, rows)
        rows[2] = [1, 1, 5, 9]
        assert not passes(free, 4, rows)

    def test_distance_zero_means_equal_rows(self) -> None:
        same = om.Domain(range(2), np.zeros((2, 2)))
        problem = om.Problem(om.Prior.uniform(same), H, constraints=[om.MetricPrivacy(1.0, E)])
        big = 2**200
        assert passes(problem, 201, [[big, big], [big, big]])
        assert not passes(problem, 201, [[big + 1, big - 1], [big, big]])

    def test_delta_that_is_exactly_spent(self) -> None:
        # δ at ε = ln 2 is 13/16 - 2·3/16 = 7/16
        rows = [[13, 3], [3, 13]]
        assert passes(two(om.DifferentialPrivacy("ln 2", delta="7/16")), 4, rows)
        less = Fraction(7, 16) - Fraction(1, 2**60)
        assert not passes(two(om.DifferentialPrivacy("ln 2", delta=less)), 4, rows)

    def test_distortion_loss_and_support_that_are_exactly_met(self) -> None:
        rows = [[13, 3], [3, 13]]
        hair = Fraction(1, 2**80)
        assert passes(two(om.DistortionPrivacy("3/16", H)), 4, rows)
        assert not passes(two(om.DistortionPrivacy(Fraction(3, 16) + hair, H)), 4, rows)
        assert passes(two(om.LossBound("3/16")), 4, rows)
        assert not passes(two(om.LossBound(Fraction(3, 16) - hair)), 4, rows)
        assert passes(two(om.LossBound("3/16", worst_case=True)), 4, rows)
        assert passes(two(om.Support([[1, 0], [1, 1]])), 1, [[2, 0], [1, 1]])
        assert not passes(two(om.Support([[1, 0], [1, 1]])), 1, [[1, 1], [1, 1]])

    def test_distributions_that_are_exactly_at_the_limit(self) -> None:
        """(λP)(o) = 3/4·13/16 + 1/4·3/16 = 42/64, (λ'P)(o) = 22/64."""
        rows = [[13, 3], [3, 13]]
        pair = ([0.75, 0.25], [0.25, 0.75])
        assert passes(two(om.DistributionPrivacy("ln 21/11", [pair])), 4, rows)
        assert not passes(two(om.DistributionPrivacy("ln 20999/11000", [pair])), 4, rows)
        assert passes(two(om.DistributionPrivacy("ln 20/11", [pair], delta="1/32")), 4, rows)
        assert not passes(two(om.DistributionPrivacy("ln 20/11", [pair], delta="1/33")), 4, rows)

    def test_zero_against_a_huge_ratio(self) -> None:
        problem = two(om.DifferentialPrivacy(1e300))
        assert not passes(problem, 1, [[2, 0], [1, 1]])
        assert passes(problem, 1000, [[1, 2**1000 - 1], [2**1000 - 1, 1]])

    def test_overflowing_exponents_stay_constraints(self) -> None:
        far = om.Domain(range(2), [[0.0, 0.0], [1e308, 0.0]])
        problem = om.Problem(om.Prior.uniform(far), H, constraints=[om.MetricPrivacy(1e308, E)])
        assert not passes(problem, 1, [[2, 0], [1, 1]])
        assert passes(problem, 1, [[1, 1], [1, 1]])


def test_limits_that_miss_the_extreme_by_rounding_mean_it() -> None:
    rng = np.random.default_rng(5)
    p = prior(rng, points(rng, 5))
    top = blind(p)
    values = (E(p.domain, p.domain) * p.weights).sum(axis=1)
    constant = [[16 if o == int(values.argmin()) else 0 for o in range(5)]] * 5
    for factor, fits in ((1.0, True), (1 + 3e-16, True), (1 + 4e-13, True), (1 + 1e-11, False)):
        problem = om.Problem(p, E, constraints=[om.DistortionPrivacy(top * factor, E)])
        assert passes(problem, 4, constant) is fits


# ------------------------------------------------------------------ mutations
@cache
def exp(epsilon: Exact, d: float) -> Decimal:
    r = Decimal(epsilon.factor.numerator) / Decimal(epsilon.factor.denominator) * Decimal(d)
    if epsilon.log_of is not None:
        r *= (Decimal(epsilon.log_of.numerator) / Decimal(epsilon.log_of.denominator)).ln()
    return r.exp()


def really_holds(problem: om.Problem, bits: int, rows: list[list[int]]) -> bool:
    """Every inequality in the words of the papers, in decimals of 80 digits."""
    n, unit = len(rows), Decimal(2) ** bits
    p = [[Decimal(v) / unit for v in row] for row in rows]
    weights = [Decimal(w) for w in problem.prior.weights.tolist()]
    slack = Decimal(10) ** -60

    for c in problem.constraints:
        if isinstance(c, om.MetricPrivacy | om.DifferentialPrivacy):
            d = np.ones((n, n))
            if isinstance(c, om.MetricPrivacy):
                d = c.distance(problem.secrets, problem.secrets)
            for i in range(n):
                for j in range(n):
                    if i == j:
                        continue
                    f = exp(c.epsilon, float(d[i, j]))
                    over = [max(Decimal(0), a - f * b) for a, b in zip(p[i], p[j], strict=True)]
                    if sum(over) > Decimal(float(c.delta)) + slack:
                        return False
        elif isinstance(c, om.DistortionPrivacy):
            d = c.distance(problem.secrets, problem.secrets)
            costs = [[weights[s] * Decimal(float(d[t, s])) for s in range(n)] for t in range(n)]
            total = Decimal(0)
            for column in zip(*p, strict=True):
                total += min(sum(map(operator.mul, row, column)) for row in costs)
            if total < Decimal(float(c.minimum)) - slack:
                return False
    return True


def small(kind: str, seed: int) -> om.Problem:
    rng = np.random.default_rng(seed)
    p = prior(rng, points(rng, 4))
    return om.Problem(
        p,
        E,
        constraints={
            "metric": [om.MetricPrivacy(1.3, E)],
            "ln": [om.DifferentialPrivacy("ln 3")],
            "delta": [om.DifferentialPrivacy(0.5, delta=0.125)],
            "joint": [om.MetricPrivacy(2.0, E), om.DistortionPrivacy(0.6 * blind(p), E)],
        }[kind],
    )


@pytest.mark.parametrize("kind", ["metric", "ln", "delta", "joint"])
def test_mutations_that_break_a_constraint_are_rejected(kind: str, tmp_path: Path) -> None:
    """One numerator is raised and another of its row lowered by as much, by amounts of every
    size; the exact check, the audit and 80 digits agree on all of them. 300 broken each."""
    problem = small(kind, 3)
    design = om.solve(problem)
    path = tmp_path / "design.json"
    design.save(path)
    stated = Statement(json.loads(path.read_text())["problem"], [])
    bits = design.exact.bits
    rng = np.random.default_rng(1)
    broken = kept = 0
    while broken < 300:
        rows = [list(row) for row in design.exact.rows]
        s, (up, down) = int(rng.integers(4)), rng.choice(4, 2, replace=False)
        # near the margin of 2e-14 as often as far above it
        amount = int(2.0 ** (bits - rng.uniform(2, 62)))
        if rows[s][down] < amount:
            continue
        rows[s][up] += amount
        rows[s][down] -= amount
        with localcontext(prec=80):
            expected = really_holds(problem, bits, rows)
        assert passes(problem, bits, rows) is expected
        changed = Mechanism(bits, rows)
        if expected:
            stated.check(changed)
            kept += 1
        else:
            with pytest.raises(Fault):
                stated.check(changed)
            broken += 1
    assert kept > 18


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_one_numerator_alone_is_never_accepted(make: Make) -> None:
    design = om.solve(make(np.random.default_rng(2)))
    if design.exact is None:
        return
    rng = np.random.default_rng(0)
    change: Callable[[int], int]
    for change in (lambda v: v + 1, lambda v: v - 1, lambda v: v ^ 2**40, lambda v: -v - 1):
        rows = [list(row) for row in design.exact.rows]
        s, o = int(rng.integers(len(rows))), int(rng.integers(len(rows[0])))
        rows[s][o] = change(rows[s][o])
        with pytest.raises(om.ProblemError):
            Numerators(design.exact.bits, tuple(map(tuple, rows)))
