"""Programs for cvxpy: the reference engine, and the way to every other solver that it knows; and
divergence constraints as cones."""

from __future__ import annotations

import warnings
from dataclasses import replace
from operator import eq, le
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Ints
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.cutting_planes import (
    TangentEngine,
    first_slopes,
    nearest_pairs,
    refine,
    separate,
)
from optmech.engines.highs import require_memory
from optmech.errors import ProblemError
from optmech.exact.ratios.generators import order_of
from optmech.lp.blocks import BlockLP, Perspective, Point
from optmech.lp.flatten import flatten

_SHARE = 1e-5
"""Clarabel's own tolerance, as a share of the gap that is to be certified."""
_TIGHTEST = 1e-12
_ALL_PAIR_ROWS = 8_000
_NEIGHBOURS = 12
_ROUNDS = 8


class CvxpyEngine:
    """The flattened program as one vectorised cvxpy problem, by default with HiGHS;
    ``options.solver`` names another solver."""

    name = "cvxpy"

    def refusal(self, lp: BlockLP) -> str:
        return ""

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        import cvxpy as cp

        require_memory(lp)
        flat = flatten(replace(lp, perspectives=()))
        solver = options.solver or ("CLARABEL" if lp.perspectives else "HIGHS")
        if solver not in cp.installed_solvers():
            raise ProblemError(
                f"cvxpy has no solver {solver!r} here",
                where="profile.solver",
                remedy=f"Installed are {', '.join(cp.installed_solvers())}",
            )
        free = np.flatnonzero(flat.upper_x > 0)
        matrix = sp.csr_array(flat.matrix.tocsc()[:, free])
        equal = flat.lower == flat.upper
        scale = flat.cost_scale
        x = cp.Variable(len(free), nonneg=True)
        # probabilities of order one, without which interior points of cones make no progress
        units = float(lp.blocks) if lp.perspectives else 1.0
        linear = [
            (rows, relation(matrix[rows] @ x, units * flat.upper[rows]))
            for rows, relation in ((equal, eq), (~equal, le))
            if rows.any()
        ]
        column = np.full(len(flat.cost), -1)
        column[free] = np.arange(len(free))
        convex = [row for part in lp.perspectives for row in cones(lp, part, x, column)]
        objective = cp.Minimize((scale * flat.cost[free]) @ x)
        problem = cp.Problem(objective, [*(rows for _, rows in linear), *convex])
        monitor.report(f"cvxpy with {solver}: {matrix.shape[0]:,} rows")
        try:
            with warnings.catch_warnings():
                # whether a solution is accurate is for the certificate to say
                warnings.simplefilter("ignore")
                problem.solve(solver=solver, **self._settings(solver, options, monitor))
        except (cp.SolverError, ValueError) as error:
            # cvxpy raises ValueError where a solver ends with a status it does not know
            return EngineResult(Outcome.FAILED, f"cvxpy {solver}: {error}")
        except BaseException as error:
            # unknown names and types of parameters end in whatever a solver has for them, down to
            # a panic of Rust code, which is no Exception
            foreign = isinstance(error, Exception) or type(error).__name__ == "PanicException"
            if not options.parameters or not foreign:
                raise
            raise ProblemError(
                f"{solver} does not take these parameters: {' '.join(str(error).split())[:200]}",
                where="profile.parameters",
                remedy="See the solver's list of settings",
            ) from error
        message = f"cvxpy {solver}: {problem.status}"
        if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            return EngineResult(Outcome.INFEASIBLE, message)
        if x.value is None:
            return EngineResult(Outcome.FAILED, message)
        values = np.zeros(len(flat.cost))
        values[free] = x.value / units
        dual = np.zeros(len(equal))
        for rows, constraint in linear:
            # cvxpy's multipliers have the opposite sign of HiGHS's row duals
            dual[rows] = -np.asarray(constraint.dual_value).ravel() / scale
        monitor.propose(flat.point(values, dual))
        solved = problem.status == cp.OPTIMAL
        return EngineResult(Outcome.SOLVED if solved else Outcome.STOPPED, message)

    def _settings(self, solver: str, options: Options, monitor: Monitor) -> dict[str, object]:
        left, own = monitor.remaining(), options.parameters
        limit = {"time_limit": max(left, 0.01)} if np.isfinite(left) else {}
        if solver == "CLARABEL":
            names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
            return {**dict.fromkeys(names, options.tolerance), **limit, **own}
        if solver != "HIGHS":
            return dict(own)
        both = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
        tolerances = dict.fromkeys(both, options.tolerance)
        return {"highs_options": {**tolerances, "small_matrix_value": 1e-12, **own, **limit}}


def cones(lp: BlockLP, part: Perspective, x: Any, column: Ints) -> list[Any]:
    """unit · w >= q f(p/q) as exponential or second-order cones, for every row and block.

    ``column`` maps variables of the flattened program to entries of the cvxpy variable ``x``.
    """
    import cvxpy as cp

    start = np.arange(lp.blocks) * lp.block_size
    out: list[Any] = []
    for p_at, q_at, w_at, unit in zip(part.p, part.q, part.w, part.unit.tolist(), strict=True):
        p, q, w = (x[column[start + at]] for at in (p_at, q_at, w_at))
        if part.kind in ("kl", "reverse_kl"):
            if part.kind == "reverse_kl":
                p, q = q, p
            # s >= p ln(p/q) is p exp(-s/p) <= q
            s = cp.Variable(lp.blocks)
            out += [cp.ExpCone(-s, p, q), s - p + q <= unit * w]
        elif (order := order_of(part.kind)) is not None:
            a, s = float(order), cp.Variable(lp.blocks)
            # s >= p^a q^(1-a), or below it where that is concave
            cone = cp.PowCone3D(s, q, p, 1 / a) if a > 1 else cp.PowCone3D(p, q, s, a)
            out += [cone, np.sign(a - 1) * (s - q - a * (p - q)) <= unit * w]
        elif part.kind == "chi2":
            sides = cp.vstack([2 * (p - q) / np.sqrt(unit), w - q])
            out.append(cp.SOC(w + q, sides, axis=0))
        else:
            # (√p - √q)² / 2 = (p - q)² / 2(p + q + 2u) with u = √(pq): no difference of large terms
            u, top = cp.Variable(lp.blocks), p + q
            wide = 2 * top + 4 * u
            out.append(cp.SOC(top, cp.vstack([2 * u, p - q]), axis=0))
            out.append(cp.SOC(w + wide, cp.vstack([2 * (p - q) / np.sqrt(unit), w - wide]), axis=0))
    return out


class ConicEngine:
    """Divergence constraints as cones first, then by tangents where that did not suffice.

    An interior-point method on exponential and second-order cones (Clarabel, through cvxpy) solves
    programs of moderate size at once and to many digits, unless limits are tiny. Its point is
    offered, and the planes at its likelihood ratios and slopes are the first ones of ``tangents``.
    """

    name = "conic"

    def refusal(self, lp: BlockLP) -> str:
        return TangentEngine().refusal(lp)

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        watched = _Watched(monitor)
        tolerance = min(options.tolerance, max(_TIGHTEST, _SHARE * options.gap))
        conic = replace(options, solver="CLARABEL", parameters={}, tolerance=tolerance)
        result = _in_rounds(lp, conic, watched)
        if watched.gap <= options.gap or monitor.should_stop():
            return result
        slopes = first_slopes(lp)
        if watched.point is not None:
            refine(lp, slopes, watched.point)
        monitor.report(f"{result.message}; on with tangents")
        after = TangentEngine().improve(lp, options, monitor, slopes)
        if after.outcome is Outcome.FAILED and result.outcome is Outcome.INFEASIBLE:
            return result
        return after


def _in_rounds(lp: BlockLP, options: Options, watched: _Watched) -> EngineResult:
    """With all pairs where they are few, else with those of near secrets and then with what each
    point misses: few others bind, and rows are what an interior-point method pays for."""
    allowed = lp.cone.within(lp.blocks)
    active = allowed
    if lp.cone_rows > _ALL_PAIR_ROWS:
        active = allowed & nearest_pairs(lp.cone, _NEIGHBOURS)[:, None]
    for k in range(_ROUNDS):
        here = lp if active is allowed else lp.with_cone(replace(lp.cone, active=active))
        result = CvxpyEngine().run(here, options, watched)
        watched.report(f"conic round {k + 1}: {here.cone_rows:,} pair rows, gap {watched.gap:.2g}")
        if watched.gap <= options.gap or watched.should_stop() or watched.point is None:
            break
        missed = separate(lp.cone, watched.point.z[: lp.secrets]) & allowed & ~active
        if not missed.any():
            break
        active = active | missed
    return result


class _Watched:
    """A monitor that passes everything on, and keeps the point."""

    def __init__(self, monitor: Monitor) -> None:
        self._propose, self.should_stop = monitor.propose, monitor.should_stop
        self.remaining, self.report = monitor.remaining, monitor.report
        self.point: Point | None = None
        self.gap = np.inf

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        self.point, self.gap = point, self._propose(point, primal=primal, dual=dual)
        return self.gap
