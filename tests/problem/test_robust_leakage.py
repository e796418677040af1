"""Leakage for every prior in a ball: corners against linear programs, and sampled adversaries."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from scipy.optimize import linprog

import optmech as om
from optmech.problem.gains import corners
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()


def farthest(weights: np.ndarray, radius: float, apart: np.ndarray, gain: np.ndarray) -> float:
    """The largest Σ gain π' over the ball, by a transport program."""
    n = len(weights)
    result = linprog(
        -np.tile(gain, n),
        A_ub=apart.reshape(1, -1),
        b_ub=[radius],
        A_eq=np.repeat(np.eye(n), n, axis=1),
        b_eq=weights,
    )
    assert result.status == 0
    return float(-result.fun)


@pytest.mark.parametrize("seed", range(6))
def test_corners_attain_every_linear_function(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    weights = rng.dirichlet(np.ones(n))
    if seed == 1:
        weights[0] = 0.0
    xy = rng.uniform(0, 1, (n, 2))
    apart = np.linalg.norm(xy[:, None] - xy, axis=2) if seed % 2 else 1 - np.eye(n)
    radius = float(rng.choice([0.02, 0.2, 0.6]))
    found = corners(
        tuple(map(Fraction, weights)),
        Fraction(radius),
        [tuple(map(Fraction, row)) for row in apart.tolist()],
    )
    points = np.array([[float(v) for v in corner] for corner in found])
    assert points.sum(axis=1) == pytest.approx(weights.sum())
    for gain in rng.normal(size=(8, n)):
        most = farthest(weights, radius, apart, gain)
        assert (points @ gain).max() == pytest.approx(most, abs=1e-9)


def test_two_places() -> None:
    half = Fraction(1, 2)
    apart = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]
    found = corners((half, half), Fraction(1, 4), apart)
    assert set(found) == {(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))}
    assert (Fraction(1), Fraction(0)) in corners((half, half), Fraction(2), apart)


def test_randomised_response_for_every_prior_in_the_ball() -> None:
    """n = 2, error q: with the prior (1/2 + r, 1/2 - r) whoever repeats the report is right in
    1 - q of all cases, and nobody needs to be right less than in 1/2 + r."""
    prior = om.Prior.uniform(om.Domain("ab"))
    design = om.solve(
        om.Problem(prior, H, constraints=[om.constraints.GainLeakage(0.75, radius="1/8")])
    )
    assert design.loss == pytest.approx(0.25, abs=1e-9)
    none = om.solve(
        om.Problem(prior, H, constraints=[om.constraints.GainLeakage(0.75, radius="3/8")])
    )
    assert none.status == "infeasible"


@pytest.mark.parametrize("within", [None, E])
def test_no_prior_of_the_ball_gains_more(within: object) -> None:
    rng = np.random.default_rng(3)
    prior = om.Prior(om.Domain.range(4), [4, 3, 2, 3])
    gain = rng.uniform(0, 1, (3, 4))
    blind = (gain * prior.weights).sum(axis=1).max()
    most, radius = float(blind) + 0.12, 0.1
    stated = om.constraints.GainLeakage(most, gain, radius=radius, within=within)
    design = om.solve(om.Problem(prior, E, constraints=[stated]))
    alone = om.solve(om.Problem(prior, E, constraints=[om.constraints.GainLeakage(most, gain)]))
    assert design.status == "optimal"
    assert design.loss > alone.loss + 1e-3
    apart = E(prior.domain, prior.domain) if within is E else 1 - np.eye(4)
    p, largest = design.mechanism.matrix, 0.0
    for _ in range(300):
        plan = prior.weights[:, None] * (np.eye(4) + rng.dirichlet(np.full(4, 0.2), 4))
        step = plan / plan.sum(axis=1, keepdims=True) * prior.weights[:, None]
        cost = float((step * apart).sum())
        share = min(1.0, radius / cost) if cost else 1.0
        near = (1 - share) * prior.weights + share * step.sum(axis=0)
        largest = max(largest, float(((gain * near) @ p).max(axis=0).sum()))
    assert largest <= most * (1 + 1e-12)
    kept = stated.measured(design.mechanism, design.problem.space)
    assert kept.measured == pytest.approx(most)


def test_a_file_that_promises_a_larger_ball_is_refused(tmp_path: Path) -> None:
    prior = om.Prior(om.Domain.range(3), [2, 3, 2])
    stated = om.constraints.GainLeakage(0.7, radius=0.1)
    design = om.solve(om.Problem(prior, E, constraints=[stated]))
    path = tmp_path / "d.json"
    for radius, accepted in ((0.1, True), (0.15, False)):
        body = json.loads(design.document())
        del body["digest"]
        body["problem"]["constraints"][0]["radius"] = radius
        path.write_bytes(seal(json.dumps(body).encode()))
        assert om.check(path).passed is accepted
        if accepted:
            audit.audit(str(path))
        else:
            with pytest.raises(audit.Fault):
                audit.audit(str(path))


def test_what_cannot_be_meant() -> None:
    prior = om.Prior.uniform(om.Domain.range(12))
    with pytest.raises(om.ProblemError, match="within: needs a radius"):
        om.constraints.GainLeakage(1, within=E)
    with pytest.raises(om.ProblemError, match=r"gain: has entries below 0"):
        om.Problem(prior, H, constraints=[om.constraints.GainLeakage(1, -np.eye(12), radius=0.01)])
    with pytest.raises(om.ProblemError, match=r"radius: more than 1,000 priors"):
        om.Problem(prior, H, constraints=[om.constraints.GainLeakage(1, radius=0.5)])
