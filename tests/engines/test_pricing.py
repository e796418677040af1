"""Pricing of blocks left out, against linear programs of HiGHS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import optmech as om
from optmech.base.arrays import Floats
from optmech.base.native import has_kernels
from optmech.engines.structured.model import build
from optmech.engines.structured.rows import make_cone
from optmech.lp.inequalities import Inequalities, compile_lp

if not has_kernels():
    pytest.skip("no kernels are compiled", allow_module_level=True)

from optmech.engines.structured.columns import Outside


def problem(side: int, seed: int) -> om.Problem:
    cells = om.Grid(side, side, (1.0, 1.0))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(cells)))
    metric = om.MetricPrivacy(0.7, om.distances.euclidean())
    return om.Problem(om.Prior(cells, weights), om.distances.hamming(), constraints=[metric])


@pytest.mark.parametrize("seed", range(6))
def test_prices_are_those_of_a_linear_program(seed: int) -> None:
    """min c·v over all pairs and Σ v = 1: what multipliers leave is nowhere below it by more than
    a tenth, and nowhere negative where it is not."""
    model = build(compile_lp(Inequalities.of(problem(4, seed).statement)).lp)
    cone = make_cone(model)
    rng = np.random.default_rng(seed)
    cost = np.zeros((16, 17))
    cost[:, :16] = rng.normal(size=(16, 16)) + np.linspace(-0.5, 1.5, 16)[:, None]
    outside = Outside.fresh(replace(model, cost=cost), cone, 2)
    prices = np.zeros(16)
    for _ in range(3):
        left = outside.priced(prices, 1e-10)
        rows = outside.rows
        assert rows.z.min() >= 0
        charged = cost[:, :16].copy()
        np.add.at(charged, (rows.block, rows.i), rows.z)
        np.subtract.at(charged, (rows.block, rows.j), rows.e * rows.z)
        assert left == pytest.approx(charged - prices, abs=1e-9)
        values = np.array([_value(model.ratio, own[:16] - prices) for own in cost])
        assert (values > 0.1).any()
        assert (values < -0.1).any()
        least = left.min(axis=1)
        assert (least <= values + 1e-9).all()
        useless = values > 1e-9
        assert (least[useless] >= -1e-10).all()
        assert (least[~useless] >= 1.11 * values[~useless] - 1e-9).all()
        prices = prices + 0.02 * rng.normal(size=16)


def test_prices_that_hardly_move_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What proved that blocks are of no use proves it for nearby prices as well."""
    model = build(compile_lp(Inequalities.of(problem(4, 0).statement)).lp)
    cost = model.cost + 1.0
    outside = Outside.fresh(replace(model, cost=cost), make_cone(model), 1)
    assert outside.priced(np.zeros(16), 1e-10).min() > 0.3
    monkeypatch.setattr(Outside, "_solve", None)
    assert outside.priced(np.full(16, 0.2), 1e-10).min() > 0.1


def _value(ratio: Floats, cost: Floats) -> float:
    i, j = np.nonzero(np.isfinite(ratio))
    rows = np.zeros((len(i), len(cost)))
    index = np.arange(len(rows))
    rows[index, i] += 1.0
    rows[index, j] -= np.exp(ratio[i, j])
    one = np.ones((1, len(cost)))
    return float(linprog(cost, rows, np.zeros(len(i)), one, [1.0], method="highs").fun)
