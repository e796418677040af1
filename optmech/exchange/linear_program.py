"""Writes the linear program of a problem with names that every format accepts."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from optmech.base import memory
from optmech.base.highs import highs_model, quiet_highs
from optmech.base.storage import write_atomically
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP, HeldColumns
from optmech.lp.flatten import FlatLP, flatten
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.problem import Problem
from optmech.reductions import ImpliedPairs

_BYTES_PER_NONZERO = 250


def write_program(problem: Problem, form: str, path: str | Path) -> dict[str, int]:
    """Write the program as "mps" or "lp", atomically; returns rows, columns and nonzeros.

    Pairs implied by others are left out. The row of a pair is scaled as for the solvers:
    e^{-r/2} p(o|s) <= e^{r/2} p(o|s'); HiGHS drops coefficients below 1e-12 (r above 55), which
    bind nothing. Labels never become names, which keeps names legal.
    """
    (reduced,) = ImpliedPairs().apply(compile_lp(Inequalities.of(problem.statement)).lp)
    memory.require(
        float(_BYTES_PER_NONZERO) * reduced.lp.nonzeros,
        what=f"the linear program ({reduced.lp.nonzeros:,} nonzeros)",
        where="export",
        remedy="Use a coarser domain",
    )
    # rows that are held are variables with one value here, so that every column means what it says
    flat = flatten(replace(reduced.lp, held=None))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"program.{form}"
        _write(flat, reduced.lp.held, file)
        write_atomically(path, file.read_bytes())
    rows, columns = flat.matrix.shape
    return {"rows": rows, "columns": columns, "nonzeros": int(flat.matrix.nnz)}


def _write(flat: FlatLP, held: HeldColumns | None, file: Path) -> None:
    import highspy

    model = highs_model(flat.cost, flat.matrix, flat.lower, flat.upper, flat.upper_x)
    if held is not None:
        least, most = np.array(model.col_lower_), np.array(model.col_upper_)
        blocks = np.arange(flat.lp.blocks)[:, None]
        columns = (blocks * flat.lp.block_size + held.secrets).ravel()
        least[columns] = most[columns] = held.values.T.ravel()
        model.col_lower_, model.col_upper_ = least, most
    model.col_names_ = column_names(flat.lp)
    model.row_names_ = [f"r_{k}" for k in range(flat.matrix.shape[0])]
    solver = quiet_highs()
    solver.setOptionValue("small_matrix_value", 1e-12)
    solver.passModel(model)
    if solver.writeModel(str(file)) == highspy.HighsStatus.kError or not file.exists():
        raise ProblemError(
            "the program could not be written", where="export", remedy="Try --format mps"
        )


def column_names(lp: BlockLP) -> list[str]:
    """p_S_O for probabilities, a_K_O for auxiliary variables of observable O, y_K for shared."""
    names = [
        f"p_{k}_{block}" if k < lp.secrets else f"a_{k - lp.secrets}_{block}"
        for block in range(lp.blocks)
        for k in range(lp.block_size)
    ]
    return names + [f"y_{k}" for k in range(lp.shared)]
