"""Pricing of blocks left out, against linear programs of HiGHS."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from scipy.optimize import linprog

import optmech as om
from optmech.base.arrays import Floats
from optmech.engines.structured.model import build
from optmech.engines.structured.pairs import make_cone
from optmech.lp.compile import compile_lp
from optmech.lp.inequalities import Inequalities

if importlib.util.find_spec("numba") is None:
    pytest.skip("pricing is compiled, and numba is not installed", allow_module_level=True)

from optmech.engines.structured.compiled import Pricing


def problem(side: int, seed: int) -> om.Problem:
    cells = om.Grid(side, side, (1.0, 1.0))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(cells)))
    metric = om.MetricPrivacy(0.7, om.distances.euclidean())
    return om.Problem(om.Prior(cells, weights), om.distances.hamming(), constraints=[metric])


@pytest.mark.parametrize("seed", range(6))
def test_prices_are_those_of_a_linear_program(seed: int) -> None:
    """min c·v over the short pairs and v <= 1: its value is what the costs left add up to."""
    model = build(compile_lp(Inequalities.of(problem(4, seed).statement)).lp)
    cone = make_cone(model)
    rng = np.random.default_rng(seed)
    cost = np.zeros((3, 17))
    cost[:, :16] = rng.normal(size=(3, 16)) + np.array([[-0.3], [0.3], [1.0]])
    pricing = Pricing(model, cone, 2)
    left, multipliers = pricing.multipliers(cost, 1e-11)
    assert multipliers.min() >= 0
    for own, rest, z in zip(cost, left, multipliers, strict=True):
        assert rest == pytest.approx(own[:16] - _transposed(pricing, z), abs=1e-9)
        assert np.minimum(rest, 0.0).sum() == pytest.approx(_value(pricing, own[:16]), abs=1e-7)


def _transposed(pricing: Pricing, z: Floats) -> Floats:
    """Gᵀz for rows e v_j - v_i."""
    out = np.zeros(16)
    for i, j, e, value in zip(pricing.i, pricing.j, pricing.e, z, strict=True):
        out[j] += e * value
        out[i] -= value
    return out


def _value(pricing: Pricing, cost: Floats) -> float:
    rows = np.zeros((len(pricing.i), len(cost)))
    index = np.arange(len(rows))
    rows[index, pricing.i] += 1.0
    rows[index, pricing.j] -= pricing.e
    return float(linprog(cost, rows, np.zeros(len(rows)), bounds=(0, 1), method="highs").fun)
