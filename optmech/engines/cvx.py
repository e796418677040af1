"""The flattened program as one vectorised cvxpy problem: the reference engine, and the way to
every other solver that cvxpy knows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.highs import require_memory
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP
from optmech.lp.flatten import flatten


class CvxpyEngine:
    """cvxpy, by default with HiGHS; ``options.solver`` names another solver."""

    name = "cvxpy"

    def refusal(self, lp: BlockLP) -> str:
        return ""

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        import cvxpy as cp

        require_memory(lp)
        flat = flatten(lp)
        solver = options.solver or "HIGHS"
        if solver not in cp.installed_solvers():
            raise ProblemError(
                f"cvxpy has no solver {solver!r} here",
                where="profile.solver",
                remedy=f"Installed are {', '.join(cp.installed_solvers())}",
            )
        free = np.flatnonzero(flat.upper_x > 0)
        matrix = sp.csr_array(flat.matrix.tocsc()[:, free])
        equal = flat.lower == flat.upper
        top = float(np.abs(flat.cost).max(initial=0.0))
        scale = 1.0 / top if top > 0 else 1.0
        x = cp.Variable(len(free), nonneg=True)
        constraints = {}
        if equal.any():
            constraints["equal"] = matrix[equal] @ x == flat.upper[equal]
        if not equal.all():
            constraints["at most"] = matrix[~equal] @ x <= flat.upper[~equal]
        problem = cp.Problem(cp.Minimize((scale * flat.cost[free]) @ x), list(constraints.values()))
        monitor.report(f"cvxpy with {solver}: {matrix.shape[0]:,} rows")
        try:
            problem.solve(solver=solver, **self._settings(solver, options, monitor))
        except (cp.SolverError, ValueError) as error:
            # cvxpy raises ValueError where a solver ends with a status it does not know
            return EngineResult(Outcome.FAILED, f"cvxpy {solver}: {error}")
        message = f"cvxpy {solver}: {problem.status}"
        if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            return EngineResult(Outcome.INFEASIBLE, message)
        if x.value is None:
            return EngineResult(Outcome.FAILED, message)
        values = np.zeros(len(flat.cost))
        values[free] = x.value
        dual = np.zeros(len(equal))
        for name, rows in (("equal", equal), ("at most", ~equal)):
            if name in constraints:
                # cvxpy's multipliers have the opposite sign of HiGHS's row duals
                dual[rows] = -np.asarray(constraints[name].dual_value).ravel() / scale
        monitor.propose(flat.point(values, dual))
        solved = problem.status == cp.OPTIMAL
        return EngineResult(Outcome.SOLVED if solved else Outcome.STOPPED, message)

    def _settings(self, solver: str, options: Options, monitor: Monitor) -> dict[str, object]:
        if solver != "HIGHS":
            return dict(options.parameters)
        highs: dict[str, object] = {
            "primal_feasibility_tolerance": options.tolerance,
            "dual_feasibility_tolerance": options.tolerance,
            "small_matrix_value": 1e-12,
            **options.parameters,
        }
        if np.isfinite(monitor.remaining()):
            highs["time_limit"] = monitor.remaining()
        return {"highs_options": highs}
