"""A warm start from a neighbour's design: closer and smaller, the same optimum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from starts import started_from_memory_and_file

import optmech as om
from optmech.base.native import has_kernels
from optmech.engines.structured.engine import compiles
from optmech.engines.structured.model import build
from optmech.engines.structured.rows import make_cone
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.pipeline.search import hint

if not has_kernels():
    pytest.skip("no kernels are compiled", allow_module_level=True)

from optmech.engines.structured.columns import ColumnSet
from optmech.engines.structured.narrowing import WarmStart

E, H = om.distances.euclidean(), om.distances.hamming()


def problem(epsilon: float, loss: object = H, side: int = 9) -> om.Problem:
    cells = om.Grid(side, side)
    weights = np.random.default_rng(3).dirichlet(np.ones(len(cells)))
    return om.Problem(om.Prior(cells, weights), loss, constraints=[om.MetricPrivacy(epsilon, E)])


@pytest.fixture(scope="module")
def neighbour() -> om.Design:
    return om.solve(problem(0.8))


def test_a_neighbour_saves_columns(neighbour: om.Design) -> None:
    given = problem(0.85)
    model = build(compile_lp(Inequalities.of(given.statement)).lp)
    assert compiles(model)
    lines: list[str] = []
    cold, warm = om.solve(given), om.solve(given, start=neighbour, progress=lines.append)
    assert any("of 81 reports" in line for line in lines)
    assert warm.gap <= 1e-6
    # each bound is proved on its own, so it holds for the other's mechanism
    assert warm.lower_bound <= cold.loss <= warm.loss / (1 - 1e-6)
    assert cold.lower_bound <= warm.loss
    start = hint(neighbour)
    assert start is not None
    chosen = WarmStart(model, make_cone(model), start).useful(1)
    assert len(chosen) < 0.85 * model.blocks
    assert np.isin(np.flatnonzero(cold.matrix.sum(axis=0) > 1e-3), chosen).all()


def test_the_second_link_of_a_chain_is_that_from_its_file(
    neighbour: om.Design, tmp_path: Path
) -> None:
    """Columns left out by the first link are absent from its design and priced for the second."""
    first = om.solve(problem(0.76), start=neighbour)
    assert (first.matrix.sum(axis=0) < 1e-12).any()
    assert started_from_memory_and_file(first, tmp_path, problem(0.72)).gap <= 1e-6


@pytest.mark.parametrize("first", [[0], [3, 40]], ids=["one column", "two columns"])
def test_columns_that_are_missing_at_first_are_priced_in(
    neighbour: om.Design, first: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = problem(0.85)
    monkeypatch.setattr(WarmStart, "useful", lambda *arguments: np.array(first))
    design = om.solve(given, start=neighbour)
    assert design.gap <= 1e-6
    whole = om.solve(given)
    assert whole.lower_bound <= design.loss <= whole.loss / (1 - 1e-6)
    assert (design.mechanism.matrix.max(axis=0) > 0.01).sum() > len(first)


@pytest.mark.parametrize("lie", ["columns", "multipliers"])
def test_a_neighbour_that_lies_costs_time_only(neighbour: om.Design, lie: str) -> None:
    rng = np.random.default_rng(0)
    start = hint(neighbour)
    assert start is not None
    if lie == "columns":
        start = replace(start, matrix=np.eye(81)[rng.permutation(81)])
    else:
        start = replace(start, weight=rng.permutation(start.weight) * 50)
    given = problem(0.9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optmech.pipeline.search.hint", lambda design: start)
        design = om.solve(given, start=neighbour)
    assert design.gap <= 1e-6
    assert design.lower_bound <= om.solve(given).loss
    assert design.verified


@pytest.mark.parametrize("epsilon", [0.7, 0.8, 1.0])
def test_the_first_iterate_is_inside_and_balanced(epsilon: float) -> None:
    """Slack in every pair of the new problem, and no product far from the mean."""
    before = om.solve(problem(0.8, E, 5))
    given = problem(epsilon, E, 5)
    model = build(compile_lp(Inequalities.of(given.statement)).lp)
    cone, start = make_cone(model), hint(before)
    assert start is not None
    every = ColumnSet(model, cone, np.arange(25), 1)
    state = WarmStart(model, cone, start).state(every)
    P = state.P[:, :25]
    points = om.Grid(5, 5).points
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    slack = np.exp(epsilon * distance)[None] * P[:, None, :] - P[:, :, None]
    assert slack[:, ~np.eye(25, dtype=bool)].min() > 0
    assert np.abs(P.sum(axis=0) - 1).max() < 0.5
    products = state.rows.s * state.rows.z
    assert products.min() > 0
    assert products.max() / products.min() < 1e3
    assert np.median(products) == pytest.approx(products.min(), rel=1e-6)


def test_a_neighbour_far_away_is_left_alone(neighbour: om.Design) -> None:
    start = hint(neighbour)
    assert start is not None
    for epsilon, near in ((0.4, False), (0.7, True), (0.9, True), (1.2, False)):
        model = build(compile_lp(Inequalities.of(problem(epsilon).statement)).lp)
        assert WarmStart(model, make_cone(model), start).applies() is near


def test_other_neighbours_give_no_hint() -> None:
    cells = om.Grid(2, 3)
    given = om.Problem(
        om.Prior.uniform(cells),
        H,
        constraints=[om.MetricPrivacy(1.0, E), om.DistortionPrivacy(0.3, E)],
    )
    assert hint(om.solve(given)) is None
