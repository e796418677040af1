"""Starting from a neighbour's design: a hint that helps and cannot mislead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.problems import KINDS, Make
from starts import started_from_memory_and_file

import optmech as om
from optmech.certificate import Multipliers
from optmech.certificate.families import PairMultipliers
from optmech.errors import ProblemError
from optmech.pipeline.search import offer
from optmech.pipeline.session import Session

E, H = om.distances.euclidean(), om.distances.hamming()


def problem(epsilon: float, grid: om.Grid | None = None, **more: object) -> om.Problem:
    grid = om.Grid(3, 4) if grid is None else grid
    weights = np.random.default_rng(5).dirichlet(np.ones(len(grid)))
    constraints = [om.MetricPrivacy(epsilon, E), *more.pop("constraints", [])]
    loss = more.pop("loss", E)
    return om.Problem(om.Prior(grid, weights), loss, constraints=constraints, **more)


NEIGHBOURS = {
    "stricter": problem(0.5),
    "other loss": problem(0.8, loss=H),
    "other objective": problem(0.8, objective="worst_loss"),
    "more constraints": problem(0.8, constraints=[om.DistortionPrivacy(0.3, E)]),
    "limited loss": problem(0.8, constraints=[om.LossBound(2.5, loss=E)]),
    "windowed": problem(0.8, constraints=[om.MetricPrivacy(0.7, E, observable_threshold=1.5)]),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_the_optimum_does_not_depend_on_the_start(name: str) -> None:
    wanted = problem(0.8, constraints=[om.DistortionPrivacy(0.5, E)])
    cold = om.solve(wanted)
    warm = om.solve(wanted, start=om.solve(NEIGHBOURS[name]))
    assert warm.status == "optimal"
    assert warm.verified
    assert warm.loss == pytest.approx(cold.loss, rel=3e-6)


def test_the_same_problem_needs_no_search() -> None:
    first = om.solve(problem(0.8))
    again = om.solve(problem(0.8), start=first)
    assert again.engine == "start"
    assert again.loss <= first.loss * (1 + 1e-12)
    assert again.lower_bound == first.lower_bound


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_family_of_multipliers_is_taken_over(make: Make) -> None:
    """One's own design closes the gap with nothing but the multipliers that came with it."""
    wanted = make(np.random.default_rng(3))
    first = om.solve(wanted, gap=1e-5)
    again = om.solve(wanted, gap=2e-5, start=first)
    assert again.engine in ("start", "closed form")
    assert again.lower_bound >= first.lower_bound


def test_a_design_over_a_divergence_starts_from_its_neighbour() -> None:
    """The optimum is convex in the limit, so the neighbour's multipliers bound it by a line."""
    prior = om.Prior(om.Domain.range(4), [1, 2, 3, 4])
    pair = ([0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4])

    def limited(epsilon: float) -> om.Problem:
        private = om.DistributionPrivacy(epsilon, [pair], divergence="kl")
        return om.Problem(prior, H, constraints=[private])

    first, wanted = om.solve(limited(0.05)), limited(0.051)
    session = Session(statement=wanted.statement, gap_asked=1e-6)
    cold = session.bound.value
    offer(session, first)
    assert cold == 0.0
    assert session.bound.value == pytest.approx(om.solve(wanted).loss, rel=1e-3)


def test_a_start_with_a_saved_file_is_the_same(tmp_path: Path) -> None:
    started_from_memory_and_file(om.solve(problem(0.6)), tmp_path, problem(0.7))


def test_an_infeasible_start_is_no_hindrance() -> None:
    nothing = om.solve(problem(0.8, constraints=[om.DistortionPrivacy(50.0, E)]))
    assert nothing.status == "infeasible"
    assert om.solve(problem(0.8), start=nothing).status == "optimal"


def test_a_start_that_lies_is_not_believed() -> None:
    honest = om.solve(problem(0.8))
    liar = replace(
        honest,
        certificate=replace(
            honest.certificate,
            multipliers=Multipliers(
                (PairMultipliers(*(np.array([k]) for k in (0, 1, 2)), np.array([1e9])),)
            ),
        ),
        problem=problem(8.0),
    )
    design = om.solve(problem(0.8), start=liar)
    assert design.loss == pytest.approx(honest.loss, rel=3e-6)
    assert design.lower_bound <= honest.loss


def test_what_does_not_fit_is_refused() -> None:
    other = om.solve(problem(0.8, om.Grid(2, 2)))
    with pytest.raises(ProblemError, match="start: a design of 4 secrets and 4 observables"):
        om.solve(problem(0.8), start=other)
    with pytest.raises(ProblemError, match="start: ndarray is not a Design"):
        om.solve(problem(0.8), start=np.eye(12))
