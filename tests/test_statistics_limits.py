"""Designs for statistics under bounds on losses and attacks: beside all extreme columns with every
label, and forged files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_sweeps import sweep
from scipy.optimize import minimize
from test_statistics import E, H, judged, path_rays, write

import optmech as om
from optmech.base.arrays import Floats

Body = dict[str, Any]


def stated(*constraints: Any, epsilon: float = 1.0, weights: Any = (1, 2, 3, 4)) -> om.Problem:
    line = om.Domain.range(len(weights))
    return om.Problem(
        om.Prior(line, weights), E, objective=om.MinimizeVariance("cdf"),
        constraints=[om.MetricPrivacy(epsilon, E), *constraints],
    )  # fmt: skip


@cache
def mean_loss() -> om.Design:
    return om.solve(stated(om.LossBound(0.4965)), gap=1e-3)


@cache
def attacked() -> om.Design:
    return om.solve(stated(om.DistortionPrivacy(0.75, E)), gap=1e-3)


def optimum(problem: om.Problem, most: float, each: bool) -> float:
    """The least variance over weights of all extreme rays of a path, each with every label."""
    n, prior = len(problem.prior), problem.prior.weights
    rays = path_rays(n, 1.0)
    rays = np.repeat(rays / (rays @ prior)[:, None], n, axis=0)
    loss = problem.loss_matrix[:, np.tile(np.arange(n), len(rays) // n)].T
    counted = loss * rays
    survey = problem.statement.survey
    assert survey is not None
    c = survey.statistic

    def value(x: Floats) -> tuple[float, Floats]:
        inverse = np.linalg.inv((rays.T * x) @ rays)
        middle = inverse @ c.T @ c @ inverse
        return float(np.trace(c @ inverse @ c.T)), -((rays @ middle) * rays).sum(1)

    limits = counted if each else (counted @ prior)[:, None]
    found = minimize(
        value, np.full(len(rays), 1 / len(rays)), jac=True, method="SLSQP",
        bounds=[(0, None)] * len(rays),
        constraints=[
            {"type": "eq", "fun": lambda x: rays.T @ x - 1, "jac": lambda x: rays.T},
            {"type": "ineq", "fun": lambda x: most - limits.T @ x, "jac": lambda x: -limits.T},
        ],
        options={"maxiter": 500, "ftol": 1e-11},
    )  # fmt: skip
    assert found.success
    return float(found.fun - np.sum((c @ prior) ** 2))


def test_a_bound_on_the_loss_is_kept_and_its_optimum_is_in_the_bracket() -> None:
    design = mean_loss()
    free = om.solve(stated(), gap=1e-3)
    best = optimum(stated(), 0.4965, each=False)
    assert best > free.variance
    assert design.variance_bound <= best * (1 + 1e-5)
    assert design.variance >= best * (1 - 1e-5)
    assert design.gap < 2e-3
    assert (
        om.measures.expected_loss(design.mechanism, design.problem.prior, design.problem.loss)
        <= 0.4965
    )


def test_a_bound_on_every_secrets_loss() -> None:
    problem = stated(om.LossBound(0.62, worst_case=True))
    design = om.solve(problem, gap=1e-3)
    best = optimum(problem, 0.62, each=True)
    assert design.variance_bound <= best * (1 + 1e-5)
    assert design.variance >= best * (1 - 1e-5)
    assert design.gap < 5e-3
    losses = (design.mechanism.matrix * design.problem.loss_matrix).sum(axis=1)
    assert losses.max() <= 0.62


def test_a_bound_on_attacks_is_kept_and_makes_the_bound_sharper() -> None:
    """Below every mechanism with this attack error that is at hand."""
    design, free = attacked(), om.solve(stated(), gap=1e-3)
    error = om.measures.distortion(design.mechanism, design.problem.prior, E)
    assert error >= 0.75
    assert free.variance < design.variance_bound <= design.variance
    rng = np.random.default_rng(1)
    prior, least = design.problem.prior, np.inf
    for _ in range(200):
        rate, share = rng.uniform(0.2, 1.0), rng.uniform(0, 0.9)
        matrix = np.exp(-rate * np.abs(np.subtract.outer(range(4), range(4))) / 2)
        matrix = share * np.full((4, 4), 0.25) + (1 - share) * matrix / matrix.sum(axis=1)[:, None]
        m = om.Mechanism(prior.domain, prior.domain, matrix)
        if om.measures.epsilon(m, E) <= 1 and om.measures.distortion(m, prior, E) >= 0.75:
            least = min(least, float(om.estimate.variances(m, "cdf", prior).sum()))
    assert design.variance_bound <= design.variance <= least < np.inf


def test_local_privacy_and_a_support() -> None:
    letters = om.Domain(list("abcd"))
    goal, own = om.MinimizeVariance(), om.DifferentialPrivacy(1.0)
    problem = om.Problem(
        om.Prior.uniform(letters), H, objective=goal,
        constraints=[own, om.LossBound(0.59), om.Support([[1, 1, 1, 1]] * 4)],
    )  # fmt: skip
    design = om.solve(problem, gap=1e-2)
    assert design.gap < 0.02
    assert design.loss <= 0.59
    corner = om.Support([[1, 0, 0, 0]] * 4)
    one = om.Problem(
        om.Prior.uniform(letters), H, objective=goal, constraints=[own, corner, om.LossBound(0.8)]
    )
    design = om.solve(one, gap=1e-2)
    assert design.loss == pytest.approx(0.75)
    nothing = om.Problem(
        om.Prior.uniform(letters), H, objective=goal, constraints=[own, om.Support(np.eye(4))]
    )
    with pytest.raises(om.SolverError, match="allows no observable"):
        om.solve(nothing)


def test_what_cannot_be_kept_or_is_not_known_is_refused() -> None:
    with pytest.raises(om.SolverError, match="keeps all limits"):
        om.solve(stated(om.LossBound(0.3)))
    worst = om.Problem(
        om.Prior.uniform(om.Domain.range(5)), E,
        objective=om.MinimizeVariance("histogram", population="worst"),
        constraints=[om.MetricPrivacy(1.0, E), om.LossBound(0.62)],
    )  # fmt: skip
    with pytest.raises(om.ProblemError, match="worst population"):
        om.solve(worst)


def charged(factor: float) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        proof = body["multipliers"]["objective"]
        proof["charges"] = [factor * v for v in proof["charges"]]

    return change


def one_label_less(body: Body) -> None:
    pieces = body["multipliers"]["objective"]["pieces"]
    last = pieces[-1]["label"]
    pieces[:] = [p for p in pieces if p["label"] != last]


def one_guess_less(body: Body) -> None:
    pieces = body["multipliers"]["objective"]["pieces"]
    last = pieces[-1]["guess"]
    pieces[:] = [p for p in pieces if p["guess"] != last]


def without(name: str) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        for piece in body["multipliers"]["objective"]["pieces"]:
            piece.pop(name)

    return change


def empty(body: Body) -> None:
    """No column is said to be where some are."""
    for piece in body["multipliers"]["objective"]["pieces"]:
        piece["form"] = "empty"


def relabelled(body: Body) -> None:
    """All pieces are said to be of one label."""
    for piece in body["multipliers"]["objective"]["pieces"]:
        piece["label"] = 0


LOSS = [charged(0.5), charged(2.0), charged(-1.0), one_label_less, without("label"), relabelled]
GUESS = [charged(0.5), charged(2.0), one_guess_less, without("guess"), empty]


@pytest.mark.parametrize(
    ("make", "change"),
    [*((mean_loss, c) for c in LOSS), *((attacked, c) for c in GUESS)],
)
def test_forged_files_are_refused_twice(
    make: Callable[[], om.Design], change: Callable[[Body], None], tmp_path: Path
) -> None:
    design = make()
    assert judged(write(design, tmp_path / "sound.json", lambda body: None)) == (True, True)
    assert judged(write(design, tmp_path / "forged.json", change)) == (False, False)


def test_pieces_are_of_every_label_and_every_guess() -> None:
    pieces = json.loads(mean_loss().document())["multipliers"]["objective"]["pieces"]
    losses = mean_loss().problem.loss_matrix
    assert len({tuple(losses[:, p["label"]]) for p in pieces}) == 4
    guesses = json.loads(attacked().document())["multipliers"]["objective"]["pieces"]
    assert {p["guess"] for p in guesses} == set(range(4))
    assert all("label" not in p for p in guesses)
    assert not [a for a, b in itertools.pairwise(guesses) if a["guess"] == b["guess"]]


def test_prices_are_slopes_and_sweeps_solve_every_task(tmp_path: Path) -> None:
    near, far = (om.solve(stated(om.LossBound(q)), gap=1e-4) for q in (0.4962, 0.4963))
    epsilon, maximum = om.prices.of_constraints(near)
    assert np.isnan(epsilon.rate)
    assert maximum.parameter == "maximum"
    slope = (far.variance - near.variance) / 0.0001
    assert maximum.rate <= slope * 0.9 < 0
    error = om.prices.of_constraints(attacked())[1]
    assert error.parameter == "minimum"
    assert error.rate > 0
    axes = {"constraints[1].maximum": [0.4965, 0.6]}
    found = sweep(stated(om.LossBound(0.6)), axes, tmp_path, workers=1, gap=1e-2)
    assert [row["status"] for row in found.rows] == ["feasible", "feasible"]
    assert found.rows[0]["objective"] > found.rows[1]["bound"] > 0
