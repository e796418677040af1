"""The structured method on some columns with the others priced, against HiGHS on the whole."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from oracle import optimum
from scipy.optimize import linprog

import optmech as om
from optmech.domain import Floats, Ints
from optmech.engines.structured.backend import SMALL
from optmech.engines.structured.model import Model, build
from optmech.engines.structured.pairs import make_cone
from optmech.lp.compile import compile_lp
from optmech.profiles import Profile

if importlib.util.find_spec("numba") is None:
    pytest.skip("pricing is compiled, and numba is not installed", allow_module_level=True)

from optmech.engines.structured import columns
from optmech.engines.structured.compiled import Pricing

E, H = om.distances.euclidean(), om.distances.hamming()
COLUMNS = Profile(engine="structured", method="columns", gap=1e-6)


def problem(side: int, seed: int, loss: object = H, epsilon: float = 0.7) -> om.Problem:
    cells = om.Grid(side, side, (1.0, 1.0))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(cells)))
    return om.Problem(om.Prior(cells, weights), loss, constraints=[om.MetricPrivacy(epsilon, E)])


@pytest.mark.parametrize("loss", [E, H], ids=["euclidean", "hamming"])
@pytest.mark.parametrize("seed", range(3))
def test_the_whole_program_is_solved(loss: object, seed: int) -> None:
    given = problem(4, seed, loss)
    design = om.solve(given, COLUMNS)
    assert design.status == "optimal"
    assert design.loss == pytest.approx(optimum(given), rel=2e-6)


@pytest.mark.parametrize("first", [[0], [3, 12]], ids=["one column", "two columns"])
def test_poor_first_columns_are_made_good(
    first: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start without the columns that are needed has to price them in."""
    given = problem(4, 0, E, 1.5)

    def poor(model: Model, threads: int) -> Ints:
        return np.array(first)

    monkeypatch.setattr(columns, "useful", poor)
    design = om.solve(given, COLUMNS)
    assert design.gap <= 1e-6
    assert design.loss == pytest.approx(optimum(given), rel=2e-6)
    assert (design.mechanism.matrix.max(axis=0) > 0.01).sum() > len(first)


def test_columns_chosen_on_a_grid_are_few_and_carry_the_optimum() -> None:
    """Compiled blocks too: 100 secrets and observables are above what stays in NumPy."""
    given = problem(10, 0, H, 0.5)
    model = build(compile_lp(given.statement).lp)
    assert model.blocks * model.variables > SMALL
    chosen = columns.useful(model, 1)
    design = om.solve(given, "structured", gap=1e-4)
    used = design.mechanism.matrix.mean(axis=0)
    assert len(chosen) < 50
    assert used[chosen].sum() > 0.8
    large = om.solve(given, COLUMNS, gap=1e-3)
    assert large.gap <= 1e-3
    assert large.lower_bound <= design.loss
    assert large.loss >= design.lower_bound


@pytest.mark.parametrize("seed", range(6))
def test_prices_are_those_of_a_linear_program(seed: int) -> None:
    """min c·v over the short pairs and v <= 1: its value is what the costs left add up to."""
    model = build(compile_lp(problem(4, seed).statement).lp)
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


def test_other_programs_are_solved_on_all_columns() -> None:
    """Rows beyond pairs, ties, and supports are outside the method: the profile solves them."""
    cells = om.Grid(3, 3, (1.0, 1.0))
    weights = np.random.default_rng(5).dirichlet(np.ones(9))
    given = om.Problem(
        om.Prior(cells, weights),
        H,
        constraints=[om.MetricPrivacy(1.0, E), om.DistortionPrivacy(0.5, E)],
    )
    design = om.solve(given, COLUMNS, gap=1e-6)
    assert design.gap <= 1e-6
    assert design.loss == pytest.approx(optimum(given), rel=2e-6)
