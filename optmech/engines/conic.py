"""Programs as ones of cones: the reference engine, with the way to every solver that cvxpy knows,
and divergence constraints, with Clarabel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.base.conic import Cone, ConeProgram, solve
from optmech.base.machine import needed
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
    """The flattened program as one of cones, by default with cvxpy's HiGHS; ``options.solver``
    names another solver of cvxpy, or Clarabel, which takes it without cvxpy."""

    name = "cvxpy"

    def refusal(self, lp: BlockLP) -> str:
        return ""

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        require_memory(lp)
        flat = flatten(replace(lp, perspectives=()))
        solver = options.solver or ("CLARABEL" if lp.perspectives else "HIGHS")
        _require(solver)
        free = np.flatnonzero(flat.upper_x > 0)
        # probabilities of order one, without which interior points of cones make no progress
        units, scale = float(lp.blocks) if lp.perspectives else 1.0, flat.cost_scale
        rows = _Rows(len(free))
        matrix, equal = sp.csr_array(flat.matrix.tocsc()[:, free]), flat.lower == flat.upper
        order = np.concatenate([np.flatnonzero(equal), np.flatnonzero(~equal)])
        rows.add("zero", matrix[equal], units * flat.upper[equal])
        rows.add("nonnegative", matrix[~equal], units * flat.upper[~equal])
        rows.add("nonnegative", -sp.eye_array(len(free)), np.zeros(len(free)))
        column = np.full(len(flat.cost), -1)
        column[free] = np.arange(len(free))
        for part in lp.perspectives:
            cones(lp, part, column, rows)
        program = rows.program(scale * flat.cost[free])
        monitor.report(f"{solver}: {matrix.shape[0]:,} rows")
        try:
            found = solve(program, solver, self._settings(solver, options, monitor))
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
        message = f"{solver}: {found.status}"
        if found.infeasible:
            return EngineResult(Outcome.INFEASIBLE, message)
        if found.x is None:
            return EngineResult(Outcome.FAILED, message)
        values, dual = np.zeros(len(flat.cost)), np.zeros(len(equal))
        values[free] = found.x[: len(free)] / units
        # multipliers of cones have the opposite sign of HiGHS's row duals
        dual[order] = -found.multipliers[: len(order)] / scale
        monitor.propose(flat.point(values, dual))
        return EngineResult(Outcome.SOLVED if found.solved else Outcome.STOPPED, message)

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


def _require(solver: str) -> None:
    """Refuse a solver that is not there."""
    if solver == "CLARABEL":
        return
    cp = needed("cvxpy", "cvxpy", where="profile.solver")
    if solver not in cp.installed_solvers():
        raise ProblemError(
            f"cvxpy has no solver {solver!r} here",
            where="profile.solver",
            remedy=f"Installed are {', '.join(cp.installed_solvers())}",
        )


Terms = Sequence[tuple[float, Ints]]
"""Coefficients and columns, one of each in every block: Σ coefficient · x[column]."""


class _Rows:
    """Rows over cones, as they are added; columns beyond the first ones are made on the way."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.parts: list[sp.csr_array] = []
        self.limits: list[Floats] = []
        self.cones: list[Cone] = []

    def free(self, count: int) -> Ints:
        """New columns."""
        self.count += count
        return np.arange(self.count - count, self.count)

    def add(self, kind: str, rows: sp.csr_array, limits: Floats) -> None:
        """Linear rows."""
        if len(limits):
            self.parts.append(sp.csr_array(rows))
            self.limits.append(limits)
            self.cones.append(Cone(kind, len(limits)))

    def put(self, kind: str, *given: Terms, order: float = 0.0) -> None:
        """Cones with these entries, one in every block."""
        blocks, size = len(given[0][0][1]), len(given)
        terms = [(k, factor, at) for k, own in enumerate(given) for factor, at in own]
        row = np.concatenate([np.arange(blocks) * size + k for k, _, _ in terms])
        value = np.concatenate([np.full(blocks, -factor) for _, factor, _ in terms])
        column = np.concatenate([at for _, _, at in terms])
        shape = (blocks * size, self.count)
        self.parts.append(sp.csr_array((value, (row, column)), shape=shape))
        self.limits.append(np.zeros(shape[0]))
        linear = kind == "nonnegative"
        self.cones += [Cone(kind, shape[0])] if linear else [Cone(kind, size, order)] * blocks

    def program(self, cost: Floats) -> ConeProgram:
        """The program of all rows; columns that were made cost nothing."""
        for part in self.parts:
            part.resize(part.shape[0], self.count)
        cost = np.concatenate([cost, np.zeros(self.count - len(cost))])
        rows = sp.csr_array(sp.vstack(self.parts))
        return ConeProgram(cost, rows, np.concatenate(self.limits), tuple(self.cones))


def cones(lp: BlockLP, part: Perspective, column: Ints, rows: _Rows) -> None:
    """Add unit · w >= q f(p/q) as exponential, power or second-order cones, for every row and
    block; ``column`` maps variables of the flattened program to the columns of ``rows``."""
    start = np.arange(lp.blocks) * lp.block_size
    for p_at, q_at, w_at, unit in zip(part.p, part.q, part.w, part.unit.tolist(), strict=True):
        p, q, w = (column[start + at] for at in (p_at, q_at, w_at))
        if part.kind in ("kl", "reverse_kl"):
            if part.kind == "reverse_kl":
                p, q = q, p
            # s >= p ln(p/q) is p exp(-s/p) <= q
            s = rows.free(lp.blocks)
            rows.put("exponential", [(-1, s)], [(1, p)], [(1, q)])
            rows.put("nonnegative", [(unit, w), (-1, s), (1, p), (-1, q)])
        elif (order := order_of(part.kind)) is not None:
            a, s = float(order), rows.free(lp.blocks)
            sign = np.sign(a - 1)
            # s >= p^a q^(1-a), or below it where that is concave
            if a > 1:
                rows.put("power", [(1, s)], [(1, q)], [(1, p)], order=1 / a)
            else:
                rows.put("power", [(1, p)], [(1, q)], [(1, s)], order=a)
            least = [(unit, w), (-sign, s), (sign * (1 - a), q), (sign * a, p)]
            rows.put("nonnegative", least)
        elif part.kind == "chi2":
            c = 2 / np.sqrt(unit)
            rows.put("second", [(1, w), (1, q)], [(c, p), (-c, q)], [(1, w), (-1, q)])
        else:
            # (√p - √q)² / 2 = (p - q)² / 2(p + q + 2u) with u = √(pq): no difference of large terms
            u, c = rows.free(lp.blocks), 2 / np.sqrt(unit)
            rows.put("second", [(1, p), (1, q)], [(2, u)], [(1, p), (-1, q)])
            wide = [(2, p), (2, q), (4, u)]
            less = [(-factor, at) for factor, at in wide]
            rows.put("second", [(1, w), *wide], [(c, p), (-c, q)], [(1, w), *less])


class ConicEngine:
    """Divergence constraints as cones first, then by tangents where that did not suffice.

    An interior-point method on exponential and second-order cones (Clarabel) solves
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
        missed = separate(lp.cone, watched.point.z[: lp.secrets], allowed) & ~active
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
