"""The Lagrangian bound: below every feasible value whatever the multipliers are."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from conformance.problems import KINDS, Make
from hypothesis import given, strategies as st
from optmech_audit.statements import Statement
from oracle import optimum

import optmech as om
from optmech.certificate import Multipliers, infeasibility_margin, lower_bound
from optmech.certificate.families import (
    ApproximateMultipliers,
    AttackMultipliers,
    DivergenceMultipliers,
    PairMultipliers,
)
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.statement import Family
from optmech.designs.encoding import encode_multipliers

E, H = om.distances.euclidean(), om.distances.hamming()


def random_multipliers(problem: om.Problem, rng: np.random.Generator, scale: float) -> Multipliers:
    """Multipliers of the right shapes and otherwise arbitrary: wrong signs included."""
    s = problem.statement
    n, m = s.secrets, s.observables

    def pairs(count: int = 40) -> PairMultipliers:
        return PairMultipliers(
            rng.integers(0, n, count),
            rng.integers(0, n, count),
            rng.integers(0, m, count),
            scale * rng.normal(size=count),
        )

    objective = None
    if s.objective == "worst_loss":
        objective = rng.normal(size=n)
    elif s.objective == "maximize_distortion":
        objective = rng.normal(size=(m, n))

    def of(family: Family) -> object:
        match family.kind:
            case "ratio":
                return pairs()
            case "lifted":
                return scale * rng.normal(size=(len(family.log_ratio), m))
            case "approximate":
                count = len(family.log_ratio)
                return ApproximateMultipliers(
                    scale * rng.normal(size=count), rng.normal(size=(count, m))
                )
            case "divergence":
                count = len(family.limit)
                return DivergenceMultipliers(
                    scale * rng.normal(size=count), rng.normal(size=(count, m)) * 2
                )
            case "distortion":
                return AttackMultipliers(float(scale * rng.normal()), rng.normal(size=(m, n)))
            case "leakage":
                guesses = rng.normal(size=(m, len(family.gain)))
                return AttackMultipliers(float(scale * rng.normal()), guesses)
            case "information":
                slope = rng.normal(size=(n, m)) * 2
                return DivergenceMultipliers(scale * rng.normal(size=1), slope)
            case "bias":
                return scale * rng.normal(size=(2, n))
            case "linear":
                return scale * rng.normal(size=(2, len(family)))
            case "loss":
                return scale * rng.normal(size=n if family.per_secret else 1)
            case "support" | "fixed":
                return None
        raise AssertionError(family.kind)

    families = [of(family) for family in s.families]
    for place, shared in shared_out(s, pairs()).items():
        families[place] = shared
    return Multipliers(tuple(families), objective)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_arbitrary_multipliers_never_exceed_the_optimum(make: Make) -> None:
    rng = np.random.default_rng(5)
    problem = make(np.random.default_rng(11))
    best = optimum(problem)
    assert best is not None
    sign = -1 if isinstance(problem.objective, om.MaximizeDistortion) else 1
    for scale in (1e-6, 1e-2, 1.0, 100.0):
        for _ in range(5):
            multipliers = random_multipliers(problem, rng, scale)
            bound = lower_bound(problem.statement, multipliers).value
            assert bound <= sign * best + 1e-9
            assert infeasibility_margin(problem.statement, multipliers) <= 0


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_rounding_is_covered_whatever_the_multipliers(make: Make, tmp_path: Path) -> None:
    """Against the audit's whole numbers, for multipliers of every size and sign."""
    rng = np.random.default_rng(8)
    problem = make(np.random.default_rng(11))
    design = om.solve(problem)
    design.save(tmp_path / "d.json")
    stated = Statement(json.loads((tmp_path / "d.json").read_text())["problem"], [])
    for scale in (1e-12, 1e-3, 1.0, 1e6):
        multipliers = random_multipliers(problem, rng, scale)
        plain = encode_multipliers(multipliers, problem.statement)
        margin = stated.lagrangian(plain, objective=False).value()
        assert infeasibility_margin(problem.statement, multipliers) <= margin
        bound = lower_bound(problem.statement, multipliers)
        if not np.isfinite(bound.value):
            continue
        exact = stated.lagrangian(plain).value()
        assert bound.value <= bound.proved <= exact
        assert exact - Fraction(bound.value) <= 10 * Fraction(bound.rounding + 1e-300)


def test_prices_of_one_loss_bound_cannot_differ_by_secret() -> None:
    """Only the first counts: the constant would not pay for the others."""
    p = om.Prior.uniform(om.Domain.range(2))
    statement = om.Problem(p, H, constraints=[om.LossBound(0.25)]).statement
    first = Multipliers((np.array([1.0]),))
    more = Multipliers((np.array([1.0, 1e6]),))
    assert lower_bound(statement, more).value == lower_bound(statement, first).value


def two_secrets(epsilon: float) -> om.Problem:
    domain = om.Domain.range(2)
    return om.Problem(om.Prior.uniform(domain), H, constraints=[om.DifferentialPrivacy(epsilon)])


@given(st.floats(0.01, 12))
def test_two_secrets_by_hand(epsilon: float) -> None:
    """n = 2: loss 1/(e^ε + 1); the dual solution is Z = 1/(2 (e^ε + 1)) on both pairs."""
    statement = two_secrets(epsilon).statement
    z = 0.5 / (np.exp(epsilon) + 1)
    pairs = PairMultipliers(np.array([0, 1]), np.array([1, 0]), np.array([0, 1]), np.array([z, z]))
    bound = lower_bound(statement, Multipliers((pairs,)))
    assert bound.value == pytest.approx(1 / (np.exp(epsilon) + 1), rel=1e-12)
    assert bound.value <= 1 / (np.exp(epsilon) + 1)
    assert 0 <= bound.rounding < 1e-13


def test_pairs_without_a_constraint_are_ignored() -> None:
    problem = om.Problem(
        om.Prior.uniform(om.Domain("abc")),
        H,
        constraints=[om.DifferentialPrivacy(1.0, [(0, 1)])],
    )
    pairs = PairMultipliers(np.array([0]), np.array([2]), np.array([0]), np.array([1e6]))
    assert lower_bound(problem.statement, Multipliers((pairs,))).value == pytest.approx(0)


def test_attack_multipliers_prove_that_too_much_distortion_is_infeasible() -> None:
    """The blind guess as strategy, with weight 1: d_m - d_max > 0 is the margin."""
    domain = om.Domain.range(3)
    problem = om.Problem(om.Prior.uniform(domain), E, constraints=[om.DistortionPrivacy(0.8, E)])
    guess = np.zeros((3, 3))
    guess[:, 1] = 1.0
    multipliers = Multipliers((AttackMultipliers(1.0, guess),))
    assert infeasibility_margin(problem.statement, multipliers) == pytest.approx(0.8 - 2 / 3)
