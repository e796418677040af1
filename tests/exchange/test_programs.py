"""Exported programs, read back by three solvers, have the optimum that is certified."""

from __future__ import annotations

from pathlib import Path

import highspy
import pytest

import optmech as om
from optmech.exchange.linear_program import write_program

KM = om.distances.euclidean()
GRID = om.Grid(2, 3, cell=(1.0, 0.8), unit="km")
PRIOR = om.Prior.from_counts(GRID, [4, 1, 2, 3, 9, 5])
PROBLEMS = {
    "metric": om.Problem(PRIOR, KM, constraints=[om.MetricPrivacy(0.9, KM)]),
    "kept": om.Problem(
        PRIOR,
        KM,
        constraints=[
            om.MetricPrivacy(0.9, KM),
            om.constraints.FixedRows({(0, 0): ["1/2", "1/8", "1/8", "1/8", "1/16", "1/16"]}),
        ],
    ),
    "joint": om.Problem(
        PRIOR,
        om.distances.hamming(),
        constraints=[om.MetricPrivacy(1.5, KM), om.DistortionPrivacy(0.4, KM)],
    ),
    "approximate": om.Problem(
        PRIOR, KM, constraints=[om.DifferentialPrivacy(0.7, delta=0.05)]
    ),
    "worst": om.Problem(
        PRIOR, KM, objective="worst_loss", constraints=[om.MetricPrivacy(0.9, KM)]
    ),
}  # fmt: skip


def by_highs(path: Path) -> float:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path))
    solver.run()
    return float(solver.getInfo().objective_function_value)


def by_glpk(path: Path) -> float:
    glpk = pytest.importorskip("swiglpk")
    glpk.glp_term_out(glpk.GLP_OFF)
    program = glpk.glp_create_prob()
    if path.suffix == ".mps":
        glpk.glp_read_mps(program, glpk.GLP_MPS_FILE, None, str(path))
    else:
        glpk.glp_read_lp(program, None, str(path))
    glpk.glp_simplex(program, None)
    value = float(glpk.glp_get_obj_val(program))
    glpk.glp_delete_prob(program)
    return value


def by_scip(path: Path) -> float:
    model = pytest.importorskip("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    return float(model.getObjVal())


@pytest.mark.parametrize("form", ["mps", "lp"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_reader_finds_the_certified_optimum(name: str, form: str, tmp_path: Path) -> None:
    design = om.solve(PROBLEMS[name], gap=1e-8)
    path = tmp_path / f"program.{form}"
    write_program(PROBLEMS[name], form, path)
    for reader in (by_highs, by_glpk, by_scip):
        assert reader(path) == pytest.approx(design.objective, rel=2e-6, abs=1e-7), reader.__name__
