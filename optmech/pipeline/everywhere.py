"""Solving for privacy at every point: the program of a mesh, and a bound for every mechanism."""

from __future__ import annotations

import math
import time

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints
from optmech.certificate import Multipliers
from optmech.certificate.families.ratio import Ratio
from optmech.certificate.mesh_program import MeshMultipliers
from optmech.certificate.objective import relative_gap
from optmech.designs.everywhere import (
    EverywhereDesign,
    OuterProof,
    checks_of,
    figures_of,
    gradient_in,
    program_of,
)
from optmech.designs.outer import (
    cells_of,
    claimable,
    has_outer,
    limits_in,
    middles_of,
    outer_problem,
    witnessed_by,
)
from optmech.engines import cones, pairs
from optmech.errors import SolverError
from optmech.lp.gradients import row_costs
from optmech.pipeline.finish import ending
from optmech.pipeline.profiles import Profile
from optmech.pipeline.search import solve
from optmech.pipeline.session import Progress
from optmech.problem import Problem
from optmech.repair.gradients import released_inside

_SHORT = "stopped by the time limit, or as far as floating point leads"
_ROOM = 0.5
"""Share of the gap for the search; the rest is for repair and rounding."""
_OUTER_GAP, _CELLS_GAP = 1e-5, 2e-3
"""Of the problem behind the lower bound, over places and over cells of them: less than the distance
of its optimum to every mechanism."""
_MESH_TIME = 0.7
"""Share of the time for the program of the mesh; the bound for every mechanism has the rest."""


def solve_everywhere(
    problem: Problem, profile: Profile, progress: Progress | None = None
) -> EverywhereDesign:
    """The best mechanism on the mesh that the problem states, with what is proved about it.

    Raises
    ------
    TooLargeError
        On a mesh too large for the memory at hand.
    VerificationError
        Where the triangles are too small for floating point.
    """
    started = time.monotonic()
    gradient = gradient_in(problem)
    mesh, program = gradient.mesh, program_of(problem)
    reports = len(problem.observables)
    cone_program = cones.ConeProgram.of(mesh, float(gradient.epsilon))
    memory.require(
        cone_program.memory(reports),
        what=f"a mesh of {mesh.rows:,} control points with {reports:,} observables",
        where="everywhere",
        remedy="Use a wider mesh or fewer observables",
    )
    costs = row_costs(mesh, program.places, program.weights, program.costs)
    limit = math.inf if profile.time_limit is None else profile.time_limit

    def stop(point: cones.ConePoint) -> bool:
        if progress is not None:
            progress(
                f"step {point.iterations}: loss {point.value:.6g}, bound {point.bound:.6g}, "
                f"gap {point.gap:.1e} on the mesh"
            )
        return time.monotonic() - started >= _MESH_TIME * limit

    found = cones.solve(cone_program, costs, profile.gap * _ROOM, stop, profile.threads)
    released, _ = released_inside(mesh, gradient.epsilon, found.matrix, gradient.index)
    multipliers = MeshMultipliers.rounded(mesh, found.multipliers)
    loss, bound = figures_of(program, released, multipliers)
    gap = relative_gap(loss, bound)
    outer, lower = _outer(problem, profile, started, progress)
    checks = checks_of(problem, released)
    return EverywhereDesign(
        problem=problem,
        exact=released,
        loss=loss,
        bound=bound,
        lower_bound=lower,
        gap=gap,
        verified=all(check.passed for check in checks),
        checks=checks,
        multipliers=multipliers,
        outer=outer,
        engine="cones",
        engine_reason=_why(profile),
        seconds=time.monotonic() - started,
        reason=ending(gap, profile.gap, _SHORT),
        notes=problem.notes,
    )


def _outer(
    problem: Problem, profile: Profile, started: float, progress: Progress | None
) -> tuple[OuterProof | None, float]:
    """The proof of a bound for every mechanism, and the bound."""
    gradient = gradient_in(problem)
    if not has_outer(problem, gradient):
        return None, 0.0
    if progress is not None:
        progress("a lower bound for every mechanism")
    cells = cells_of(problem, gradient)
    outer = outer_problem(problem, gradient, cells)
    left = math.inf
    if profile.time_limit is not None:
        left = max(0.0, profile.time_limit - (time.monotonic() - started))
    if cells is not None:
        until = time.monotonic() + left
        middles = middles_of(problem, gradient, cells)
        return _over_cells(problem, outer, cells, middles, profile, until, progress)
    try:
        asked = min(profile.gap, _OUTER_GAP)
        found = solve(outer, "auto", gap=asked, time_limit=None if left == math.inf else left)
    except SolverError:
        return None, 0.0
    proof = OuterProof(cells, outer.statement, found.certificate.multipliers)
    return proof, claimable(found.bound)


def _over_cells(
    problem: Problem,
    outer: Problem,
    cells: Ints,
    middles: Floats,
    profile: Profile,
    until: float,
    progress: Progress | None,
) -> tuple[OuterProof, float]:
    """The same over cells of the places."""
    statement = outer.statement
    ratio = statement.families[0]
    assert isinstance(ratio, Ratio)

    def stop(point: cones.ConePoint) -> bool:
        if progress is not None:
            progress(f"step {point.iterations}: {point.bound:.6g} for every mechanism")
        return time.monotonic() >= until

    found = pairs.solve(
        np.array(ratio.log_ratio), middles, statement.cost, _CELLS_GAP, stop, profile.threads
    )
    gradient = gradient_in(problem)
    return witnessed_by(
        lambda witness: outer_problem(problem, gradient, cells, witness),
        problem,
        limits_in(problem, gradient),
        cells,
        Multipliers((found,)),
        boxes=False,
    )


def _why(profile: Profile) -> str:
    why = "the engine for privacy at every point"
    if profile.engine != "auto":
        why += f"; {profile.engine}, asked for by profile {profile.name}, has no such program"
    return why
