"""Errors for every prior in a ball: sampled adversaries, closed forms, altered files."""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from optmech_audit import constraints

import optmech as om
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()


def error(p: np.ndarray, prior: np.ndarray, apart: np.ndarray) -> float:
    """Σ_o min_t Σ_s π(s) d(t,s) p(o|s)."""
    return float(sum(min((row * prior) @ column for row in apart) for column in p.T))


def test_two_places_answer_at_random_more_often() -> None:
    """Error q of randomised response under the prior (1/2 + r, 1/2 − r) is q as long as the report
    decides; whoever moves r of the mass cannot change that, and 1/2 − r is the most there is."""
    prior = om.Prior.uniform(om.Domain("ab"))
    design = om.solve(
        om.Problem(prior, H, constraints=[om.DistortionPrivacy("1/4", H, radius="1/8")])
    )
    assert design.status == "optimal"
    p = design.mechanism.matrix
    for r in (-1 / 8, 0.0, 1 / 8):
        assert error(p, np.array([0.5 + r, 0.5 - r]), 1 - np.eye(2)) >= 0.25 - 1e-12
    none = om.solve(
        om.Problem(prior, H, constraints=[om.DistortionPrivacy("0.4", H, radius="1/8")])
    )
    assert none.status == "infeasible"
    assert "0.375" in none.reason


@pytest.mark.parametrize("within", [None, E], ids=["variation", "transport"])
def test_no_prior_of_the_ball_errs_less(within: object, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    prior = om.Prior(om.Domain.range(4), [4, 3, 2, 3])
    apart = E(prior.domain, prior.domain)
    least, radius = 0.45, 0.15
    stated = om.DistortionPrivacy(least, E, radius=radius, within=within)
    limit = om.LossBound("9/10")
    design = om.solve(om.Problem(prior, H, constraints=[stated, limit]))
    alone = om.solve(om.Problem(prior, H, constraints=[om.DistortionPrivacy(least, E), limit]))
    assert design.status == "optimal"
    assert design.loss > alone.loss + 1e-3
    moves = apart if within is E else 1 - np.eye(4)
    p, smallest = design.mechanism.matrix, np.inf
    for _ in range(400):
        plan = prior.weights[:, None] * (np.eye(4) + rng.dirichlet(np.full(4, 0.2), 4))
        step = plan / plan.sum(axis=1, keepdims=True) * prior.weights[:, None]
        cost = float((step * moves).sum())
        share = min(1.0, radius / cost) if cost else 1.0
        near = (1 - share) * prior.weights + share * step.sum(axis=0)
        smallest = min(smallest, error(p, near, apart))
    assert smallest >= least * (1 - 1e-12)
    kept = stated.measured(design.mechanism, design.problem.space)
    assert kept.measured == pytest.approx(least)
    assert kept.measured <= smallest * (1 + 1e-12)
    assert "any prior within" in stated.promise(design.problem.space)
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    audit.audit(str(tmp_path / "d.json"))


def test_a_file_that_promises_a_larger_ball_is_refused(tmp_path: Path) -> None:
    prior = om.Prior(om.Domain.range(3), [2, 3, 2])
    stated = om.DistortionPrivacy(0.4, E, radius=0.1)
    design = om.solve(om.Problem(prior, H, constraints=[stated]))
    path = tmp_path / "d.json"
    for radius, accepted in ((0.1, True), (0.12, False), (-0.1, False), (None, False)):
        body = json.loads(design.document())
        del body["digest"]
        body["problem"]["constraints"][0]["radius"] = radius
        path.write_bytes(seal(json.dumps(body).encode()))
        if accepted:
            assert om.check(path).passed
            audit.audit(str(path))
            continue
        with pytest.raises(audit.Fault):
            audit.audit(str(path))
        with contextlib.suppress(om.OptmechError):
            assert not om.check(path).passed


def test_files_without_a_radius_are_written_as_before() -> None:
    prior = om.Prior(om.Domain.range(3), [2, 3, 2])
    stated = om.DistortionPrivacy(0.4, E)
    space = om.Problem(prior, E, constraints=[stated]).space
    assert set(stated.plain(space)) == {"minimum", "distance", "prior"}
    assert om.DistortionPrivacy.load(stated.plain(space), space).radius is None


def test_problem_files_and_what_cannot_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    head = 'format = 1\nloss = "hamming"\nprior = "uniform"\n[secrets]\nkind = "line"\ncount = 3\n'
    body = '[[constraints]]\nkind = "distortion_privacy"\nminimum = 0.3\ndistance = "euclidean"\n'
    path.write_text(head + body + 'radius = "1/10"\nwithin = "euclidean"\n')
    (stated,) = om.load_problem(path).constraints
    assert isinstance(stated, om.DistortionPrivacy)
    assert stated.radius == pytest.approx(0.1)
    path.write_text(head + body + 'within = "euclidean"\n')
    with pytest.raises(om.ProblemError, match=r"constraints\[0\].*needs a radius"):
        om.load_problem(path)
    with pytest.raises(om.ProblemError, match="within: needs a radius"):
        om.DistortionPrivacy(1, E, within=E)
    many = om.Prior.uniform(om.Domain.range(12))
    with pytest.raises(om.ProblemError, match=r"radius: more than 1,000 priors"):
        om.Problem(many, H, constraints=[om.DistortionPrivacy(1, E, radius=0.5)])


def test_balls_among_many_places(request: pytest.FixtureRequest) -> None:
    """More places than there may be calls within calls: few of them have any mass, or the ball has
    nobody but its middle, or too many corners."""
    n = 400
    allowed = sys.getrecursionlimit()
    request.addfinalizer(lambda: sys.setrecursionlimit(allowed))
    # of those that are left there may be a few hundred
    sys.setrecursionlimit(len(inspect.stack(0)) + 350)
    domain = om.Domain(range(n))
    weights = np.zeros(n)
    weights[[3, 300]] = 0.25, 0.75
    few = om.Prior(domain, weights)
    table = np.zeros((n, n))
    table[:, 0] = 1.0
    d = om.distances.matrix(table)
    stated = om.DistortionPrivacy(0.1, d, few, radius=0)
    space = om.Problem(few, np.zeros((n, 1)), om.Domain("a")).space
    (found,) = stated.priors(space)
    assert np.array_equal(found, weights)
    uniform = om.Problem(om.Prior.uniform(domain), np.zeros((n, 1)), om.Domain("a")).space
    (found,) = om.DistortionPrivacy(0.1, d, radius=0).priors(uniform)
    assert np.array_equal(found, uniform.prior.weights)
    with pytest.raises(om.ProblemError, match="corners of the ball"):
        om.DistortionPrivacy(0.1, d, radius=1e-9).priors(uniform)
    exactly = [Fraction(w) for w in weights.tolist()]
    rows = [[Fraction(s != t) for t in range(n)] for s in (3, 300)]
    apart = {3: rows[0], 300: rows[1]}
    assert constraints.corners(exactly, Fraction(0), apart) == {tuple(exactly)}  # type: ignore[arg-type]
    assert constraints.to_one(exactly, Fraction(0)) == {tuple(exactly)}
