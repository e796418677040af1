"""The certified interval against the optimum of GLPK's simplex in rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import oracle
import pytest

import optmech as om

glpk = pytest.importorskip("swiglpk", reason="swiglpk (exact simplex, tests only) is not installed")
E, H, MANHATTAN = om.distances.euclidean(), om.distances.hamming(), om.distances.manhattan()


def solve_exactly(model: oracle._Model) -> float | None:
    """The oracle's program in rationals.

    GLPK replaces floats by the simplest rational within 10^-9: coefficients must be such.
    """
    glpk.glp_term_out(glpk.GLP_OFF)
    program = glpk.glp_create_prob()
    glpk.glp_add_cols(program, len(model.cost))
    for j, (cost, upper) in enumerate(zip(model.cost, model.upper, strict=True)):
        kind = glpk.GLP_LO if upper is None else glpk.GLP_FX
        glpk.glp_set_col_bnds(program, j + 1, kind, 0.0, 0.0)
        glpk.glp_set_obj_coef(program, j + 1, float(cost))
    sums = [dict.fromkeys(range(s * model.m, (s + 1) * model.m), 1.0) for s in range(model.n)]
    rows = [(row, glpk.GLP_UP, rhs) for row, rhs in zip(model.rows, model.rhs, strict=True)]
    rows += [(row, glpk.GLP_FX, 1.0) for row in sums]
    glpk.glp_add_rows(program, len(rows))
    for k, (row, kind, rhs) in enumerate(rows):
        used = {j: float(v) for j, v in row.items() if v != 0}
        places, values = glpk.intArray(len(used) + 1), glpk.doubleArray(len(used) + 1)
        for place, (j, value) in enumerate(used.items(), 1):
            places[place], values[place] = j + 1, value
        glpk.glp_set_mat_row(program, k + 1, len(used), places, values)
        glpk.glp_set_row_bnds(program, k + 1, kind, float(rhs), float(rhs))
    assert glpk.glp_exact(program, None) == 0
    status, value = glpk.glp_get_status(program), glpk.glp_get_obj_val(program)
    glpk.glp_delete_prob(program)
    if status == glpk.GLP_NOFEAS:
        return None
    assert status == glpk.GLP_OPT
    return float(value)


@pytest.fixture(autouse=True)
def exact_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    def exp(x: float) -> float:
        """e^{ln 3 · 2} is 9 and not a float beside it; all powers here are multiples of 1/16."""
        nearest = round(math.exp(x) * 16) / 16
        return nearest if abs(math.exp(x) - nearest) < 1e-12 * nearest else math.exp(x)

    monkeypatch.setattr(oracle._Model, "solve", solve_exactly)
    monkeypatch.setattr(oracle, "math", SimpleNamespace(exp=exp, sqrt=math.sqrt))


def inside(problem: om.Problem, slack: float) -> None:
    best = oracle.optimum(problem)
    design = om.solve(problem)
    if best is None:
        assert design.status == "infeasible"
        return
    low, high = sorted((design.objective, design.bound))
    assert low * (1 - slack) <= best <= high * (1 + slack)
    assert high - low <= 1e-6 * high


def rational(kind: str, seed: int) -> om.Problem:
    """Numbers with few binary digits and whole powers of e: the oracle's floats are exact."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    p = om.Prior(om.Domain.range(n), [2.0**-k for k in range(1, n)] + [2.0 ** (1 - n)])
    loss = rng.integers(0, 16, (n, n)) / 4.0
    metric, dp = om.MetricPrivacy("ln 2", MANHATTAN), om.DifferentialPrivacy("ln 3")
    pair = (np.eye(n)[0], np.eye(n)[-1] / 2 + np.eye(n)[0] / 2)
    constraints = {
        "metric": [metric],
        "pairs": [dp],
        "delta": [om.DifferentialPrivacy("ln 3", delta=0.125)],
        "distribution": [om.DistributionPrivacy("ln 5/4", [pair])],
        "distortion": [om.DistortionPrivacy(0.125, MANHATTAN), metric],
        "worst": [metric],
        "bounded": [metric, om.LossBound(0.75, loss=MANHATTAN)],
        "most": [dp, om.LossBound(3.0)],
        "support": [om.Support(np.tri(n, n, 1)), om.DifferentialPrivacy("ln 3", delta=0.25)],
        "window": [om.MetricPrivacy("ln 2", MANHATTAN, observable_threshold=1.0)],
        "threshold": [om.MetricPrivacy("ln 2", MANHATTAN, threshold=1.0)],
        "everything": [
            metric,
            om.DifferentialPrivacy("ln 3/2", [(0, n - 1)], delta=0.0625),
            om.DistortionPrivacy(0.125, MANHATTAN),
            om.DistributionPrivacy("ln 5/4", [pair], scale=[2]),
            om.LossBound(2.5, worst_case=True, loss=MANHATTAN),
        ],
    }[kind]
    objective: object = "worst_loss" if kind == "worst" else "expected_loss"
    if kind == "most":
        objective = om.MaximizeDistortion(MANHATTAN)
    return om.Problem(p, loss, objective=objective, constraints=constraints)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "kind",
    [
        "metric",
        "pairs",
        "delta",
        "distribution",
        "distortion",
        "worst",
        "bounded",
        "most",
        "support",
        "window",
        "threshold",
        "everything",
    ],
)
def test_rational_problems(kind: str, seed: int) -> None:
    # 2^-50: the optimum is reported as a float, the interval is not widened otherwise
    inside(rational(kind, seed), 2.0**-50)


def test_randomised_response_encloses_its_closed_form() -> None:
    """(n-1)/(e^ε + n - 1) = 3/6 for ε = ln 3 and n = 4: rational, hence decidable."""
    design = om.solve(
        om.Problem(
            om.Prior.uniform(om.Domain.range(4)), H, constraints=[om.DifferentialPrivacy("ln 3")]
        )
    )
    assert Fraction(design.lower_bound) <= Fraction(1, 2) <= Fraction(design.loss)
