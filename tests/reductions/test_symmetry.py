"""Programs folded along their symmetries: how many blocks stay is counted by hand, and points and
multipliers of the small program are as good in the whole one."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

import optmech as om
from optmech.lp.blocks import BlockLP
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.reductions import Reduced
from optmech.reductions.symmetry import Symmetry

E, H, M = om.distances.euclidean(), om.distances.hamming(), om.distances.manhattan()


def problem(
    domain: om.Domain,
    weights: np.ndarray | None = None,
    loss: om.distances.Distance = E,
    metric: om.distances.Distance = E,
    epsilon: float = 0.7,
) -> om.Problem:
    prior = om.Prior.uniform(domain) if weights is None else om.Prior(domain, weights)
    return om.Problem(prior, loss, constraints=[om.MetricPrivacy(epsilon, metric)])


def program(given: om.Problem) -> BlockLP:
    return compile_lp(Inequalities.of(given.statement)).lp


def folded(given: om.Problem) -> Reduced:
    (reduced,) = Symmetry().apply(program(given))
    return reduced


def circle(count: int) -> om.Domain:
    angle = 2 * np.pi * np.arange(count) / count
    return om.Domain(range(count), np.column_stack([np.cos(angle), np.sin(angle)]))


def halves(count: int) -> int:
    return -(-count // 2)


@pytest.mark.parametrize("side", [5, 6, 9])
def test_squares_keep_an_eighth(side: int) -> None:
    half = halves(side)
    for loss, metric in ((E, E), (H, E), (M, M)):
        kept = folded(problem(om.Grid(side, side, (0.3, 0.3)), loss=loss, metric=metric)).lp
        assert kept.blocks == half * (half + 1) // 2
        assert kept.links[0].matrix.shape[0] == half * (half + 1) // 2


def test_rectangles_and_stretched_cells_keep_a_quarter() -> None:
    assert folded(problem(om.Grid(5, 8, (1.0, 1.0)))).lp.blocks == 3 * 4
    assert folded(problem(om.Grid(6, 6, (1.0, 0.5)))).lp.blocks == 3 * 3


def test_lines_keep_half_and_circles_one() -> None:
    assert folded(problem(om.Domain.range(25))).lp.blocks == 13
    assert folded(problem(circle(30))).lp.blocks == 1
    assert folded(problem(circle(30), loss=H)).lp.links[0].matrix.shape[0] == 1


def test_what_breaks_a_symmetry_counts() -> None:
    grid = om.Grid(6, 6, (1.0, 1.0))
    rng = np.random.default_rng(1)
    rough = rng.uniform(1, 2, (6, 6))
    mirrored, turned = rough + rough[:, ::-1], rough + rough[::-1, ::-1]
    every = sum(np.rot90(part, k) for part in (rough, rough.T) for k in range(4))
    blocks = [folded(problem(grid, w.ravel() / w.sum())).lp.blocks for w in (mirrored, turned)]
    assert blocks == [18, 18]
    assert folded(problem(grid, every.ravel() / every.sum())).lp.blocks == 6
    assert folded(problem(grid, rough.ravel() / rough.sum())).lp.blocks == 36


def test_what_has_more_than_pairs_or_one_distance_stays() -> None:
    grid = om.Grid(5, 5, (1.0, 1.0))
    blind = om.Problem(
        om.Prior.uniform(grid),
        E,
        constraints=[om.MetricPrivacy(1, E), om.DistortionPrivacy(0.5, E)],
    )
    assert folded(blind).lp.blocks == 25
    assert folded(problem(grid, metric=H)).lp.blocks == 25
    assert folded(problem(om.Grid(3, 3, (1.0, 1.0)))).lp.blocks == 9  # few pairs
    same = om.Domain(range(24), np.repeat(np.arange(12.0), 2)[:, None])
    assert folded(problem(same)).lp.blocks == 24  # nobody can tell the twins apart


@pytest.mark.parametrize("seed", range(4))
def test_optima_and_the_way_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = (5, 5) if seed % 2 else (4, 6)
    rough = rng.uniform(0, 1, (rows, columns)) ** 3
    weights = rough + rough[:, ::-1] + (rough + rough[:, ::-1])[::-1]
    metric, loss = [(E, E), (M, H), (E, H), (M, E)][seed % 4]
    given = problem(
        om.Grid(rows, columns, (1.0, 1.0)), weights.ravel() / weights.sum(), loss, metric, 0.6
    )
    lp = program(given)
    (reduced,) = Symmetry().apply(lp)
    assert reduced.lp.blocks <= 12 < lp.blocks
    best = oracle.optimum(given)
    design = om.solve(given, om.Profile(engine="structured", gap=1e-8))
    assert design.gap <= 1e-8
    assert design.loss == pytest.approx(best, rel=2e-8)
    assert design.lower_bound == pytest.approx(best, rel=2e-8)
