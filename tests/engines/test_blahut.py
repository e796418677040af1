"""Mutual information alone, by Blahut's form: against his iteration and other engines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech.engines.blahut import BlahutEngine
from optmech.lp.inequalities import Inequalities, compile_lp

E, H = om.distances.euclidean(), om.distances.hamming()


def bounds(prior: np.ndarray, loss: np.ndarray, slope: float) -> tuple[float, float, float]:
    """Blahut's own iteration: loss, rate, and his lower bound of rate + slope · loss."""
    kernel = np.exp(-slope * loss)
    output = np.full(loss.shape[1], 1 / loss.shape[1])
    for _ in range(20_000):
        norm = kernel @ output
        ratio = (prior / norm) @ kernel
        if ratio.max() < 1 + 1e-9:
            break
        output = output * ratio
    norm = kernel @ output
    p = kernel * output / norm[:, None]
    common = prior @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 1e-200, p * np.log(p / common), 0.0)
    rate = float(prior @ terms.sum(axis=1))
    bound = -float(prior @ np.log(norm)) - math.log(((prior / norm) @ kernel).max())
    return float(prior @ (p * loss).sum(axis=1)), rate, bound


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_blahut_encloses_what_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = (int(v) for v in rng.integers(2, 9, 2))
    loss = rng.random((n, m)) * 3
    prior = om.Prior(om.Domain.range(n), rng.dirichlet(np.ones(n)) + 1e-3)
    slope = float(rng.uniform(0.5, 6))
    mean, rate, bound = bounds(prior.weights, loss, slope)
    if rate < 1e-3:
        return
    design = om.solve(
        om.Problem(
            prior, loss, om.Domain.range(m), constraints=[om.constraints.MutualInformation(rate)]
        )
    )
    assert design.gap <= 1e-6 or design.loss < 1e-9
    assert design.lower_bound <= mean * (1 + 1e-9)
    assert rate + slope * design.loss >= bound - 1e-9
    assert design.loss == pytest.approx(mean, rel=1e-5, abs=1e-7)


def test_a_hundred_places() -> None:
    rng = np.random.default_rng(5)
    prior = om.Prior(om.Grid(10, 10), rng.dirichlet(np.full(100, 0.5)) + 1e-6)
    design = om.solve(om.Problem(prior, E, constraints=[om.constraints.MutualInformation(0.7)]))
    assert design.engine.startswith("blahut")
    assert design.status == "optimal"
    assert om.leakage.shannon_leakage(design.mechanism, prior).upper <= 0.7
    (price,) = om.prices.of_constraints(design)
    slope = -1 / price.rate
    mean, rate, bound = bounds(prior.weights, E(prior.domain, prior.domain), slope)
    assert rate == pytest.approx(0.7, rel=1e-2)
    # Blahut's bound at this slope, and his mechanism's loss corrected by the rate it misses
    assert design.loss == pytest.approx((bound - 0.7) / slope, rel=1e-5)
    assert design.loss == pytest.approx(mean + (rate - 0.7) / slope, rel=1e-4)


@pytest.mark.parametrize("rate", [0.001, 0.3])
def test_cones_find_the_same(rate: float) -> None:
    prior = om.Prior(om.Grid(2, 3, cell=(1.0, 0.6)), [5, 1, 2, 3, 0, 4])
    problem = om.Problem(prior, E, constraints=[om.constraints.MutualInformation(rate)])
    own, conic = (om.solve(problem, profile) for profile in ("auto", "conic"))
    assert own.engine.startswith("blahut")
    assert own.loss == pytest.approx(conic.loss, rel=1e-5)
    assert own.lower_bound <= conic.loss
    assert conic.lower_bound <= own.loss


def test_forbidden_moves_are_not_made() -> None:
    prior = om.Prior(om.Domain.range(5), [3, 1, 2, 2, 1])
    near = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) <= 2
    stated = [om.constraints.MutualInformation(0.5), om.Support(near)]
    design = om.solve(om.Problem(prior, E, constraints=stated))
    assert design.engine.startswith("blahut")
    assert design.status == "optimal"
    assert not design.mechanism.matrix[~near].any()
    conic = om.solve(om.Problem(prior, E, constraints=stated), "conic")
    assert design.loss == pytest.approx(conic.loss, rel=1e-5)


def test_a_prior_of_the_adversary() -> None:
    """Secrets that she rules out are reported as they are; others by her prior."""
    prior = om.Prior.uniform(om.Domain.range(4))
    hers = om.Prior(prior.domain, [1, 1, 1, 0])
    design = om.solve(
        om.Problem(prior, H, constraints=[om.constraints.MutualInformation(0.3, prior=hers)])
    )
    assert design.status == "optimal"
    assert design.mechanism.matrix[3, 3] == pytest.approx(1, abs=1e-6)


def test_it_refuses_what_it_cannot_do() -> None:
    prior = om.Prior.uniform(om.Domain.range(3))

    def refusal(*constraints: object, objective: object = "expected_loss") -> str:
        problem = om.Problem(prior, E, constraints=constraints, objective=objective)
        return BlahutEngine().refusal(compile_lp(Inequalities.of(problem.statement)).lp)

    told = om.constraints.MutualInformation(0.2)
    assert refusal(told) == ""
    assert "no limit" in refusal(om.MetricPrivacy(1, E))
    for more in (om.MetricPrivacy(1, E), om.LossBound(1), om.constraints.GainLeakage(0.9), told):
        assert refusal(told, more)
    assert refusal(told, objective="worst_loss")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("maximum", ["ln 4", 1e-12, 5])
def test_limits_that_no_price_has(maximum: object) -> None:
    """All that there is to tell, or next to nothing: prices stop where their powers are floats."""
    prior = om.Prior.uniform(om.Domain.range(4))
    design = om.solve(om.Problem(prior, H, constraints=[om.constraints.MutualInformation(maximum)]))
    assert design.matrix is not None
    assert design.loss <= (0.75 if maximum == 1e-12 else 1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_supports_that_tell_more_than_is_allowed() -> None:
    prior = om.Prior.uniform(om.Domain.range(3))
    told = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    stated = [om.constraints.MutualInformation(0.1), om.Support(told)]
    assert om.solve(om.Problem(prior, H, constraints=stated)).status == "infeasible"
