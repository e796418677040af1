"""Programs over cones, and the solvers that take them: Clarabel, and all that cvxpy knows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.base.highs import silenced
from optmech.base.machine import needed

_WITH_POINT = ("Solved", "AlmostSolved", "MaxTime", "MaxIterations", "InsufficientProgress")


class Cone(NamedTuple):
    """A cone of ``size`` rows: "zero", "nonnegative", "second" (‖y_1…‖ <= y_0), "exponential"
    (y_1 exp(y_0/y_1) <= y_2), "power" (y_0^a y_1^(1-a) >= |y_2| with the ``order`` a) or
    "semidefinite" (the upper triangle of a symmetric matrix, column by column, off the diagonal
    times √2)."""

    kind: str
    size: int
    order: float = 0.0


class ConeProgram(NamedTuple):
    """minimise cost·x over the x with limits − rows x in ``cones``, which share the rows out in
    their order. ``cost`` has shape (n,), ``rows`` (m, n), ``limits`` (m,)."""

    cost: Floats
    rows: sp.csr_array
    limits: Floats
    cones: tuple[Cone, ...]


class Solution(NamedTuple):
    """What a solver says of itself, x (None without one) and the multipliers of the rows, in the
    dual cones; of cvxpy's those of linear rows and matrices only."""

    status: str
    x: Floats | None
    multipliers: Floats

    @property
    def solved(self) -> bool:
        return self.status.lower() in ("optimal", "solved")

    @property
    def infeasible(self) -> bool:
        return self.status.lower().replace("_", "") in (
            "infeasible", "infeasibleinaccurate", "primalinfeasible", "almostprimalinfeasible",
        )  # fmt: skip


def solve(program: ConeProgram, solver: str, settings: Mapping[str, object]) -> Solution:
    """What Clarabel finds, or another ``solver`` of cvxpy. Raises ProblemError where cvxpy is
    wanted and not installed."""
    if solver == "CLARABEL":
        return _by_clarabel(program, settings)
    return _by_cvxpy(program, solver, settings)


def _by_clarabel(program: ConeProgram, settings: Mapping[str, object]) -> Solution:
    import clarabel

    kinds: dict[str, Callable[[Cone], Any]] = {
        "zero": lambda cone: clarabel.ZeroConeT(cone.size),
        "nonnegative": lambda cone: clarabel.NonnegativeConeT(cone.size),
        "second": lambda cone: clarabel.SecondOrderConeT(cone.size),
        "exponential": lambda _: clarabel.ExponentialConeT(),
        "power": lambda cone: clarabel.PowerConeT(cone.order),
        "semidefinite": lambda cone: clarabel.PSDTriangleConeT(side(cone.size)),
    }
    own = clarabel.DefaultSettings()
    for name, value in {"verbose": False, **settings}.items():
        setattr(own, name, value)
    n = len(program.cost)
    found = clarabel.DefaultSolver(
        sp.csc_matrix((n, n)), program.cost, sp.csc_matrix(program.rows), program.limits,
        [kinds[cone.kind](cone) for cone in program.cones], own,
    ).solve()  # fmt: skip
    status, x = str(found.status), np.array(found.x)
    # whether it is accurate is for others to say
    usable = status in _WITH_POINT and bool(np.isfinite(x).all())
    return Solution(status, x if usable else None, np.array(found.z))


def _by_cvxpy(program: ConeProgram, solver: str, settings: Mapping[str, object]) -> Solution:
    cp = needed("cvxpy", "cvxpy", where="solver")
    x = cp.Variable(len(program.cost))
    ends = np.cumsum([cone.size for cone in program.cones]).tolist()
    stated: list[tuple[slice, Any]] = []
    for kind, alike in groupby(zip(program.cones, ends, strict=True), lambda pair: pair[0]):
        own, size = [end for _, end in alike], kind.size
        spans = [slice(end - size, end) for end in own]
        if kind.kind != "semidefinite":
            # many alike are stated at once
            spans = [slice(own[0] - size, own[-1])]
        for span in spans:
            rows, limits = program.rows[span] @ x, program.limits[span]
            stated.append((span, _stated(cp, kind, rows, limits)))
    problem = cp.Problem(cp.Minimize(program.cost @ x), [row for _, row in stated])
    multipliers = np.zeros(len(program.limits))
    try:
        quiet = silenced() if solver == "HIGHS" else nullcontext()
        with quiet, warnings.catch_warnings():
            # whether a solution is accurate is for others to say
            warnings.simplefilter("ignore")
            problem.solve(solver=solver, **settings)
    except (cp.SolverError, ValueError) as error:
        # cvxpy raises ValueError where a solver ends with a status it does not know
        return Solution(str(error), None, multipliers)
    for span, constraint in stated:
        value = constraint.dual_value
        if (
            isinstance(value, np.ndarray)
            and value.ndim == 1
            and len(value) == span.stop - span.start
        ):
            multipliers[span] = value
        elif isinstance(value, np.ndarray) and isinstance(constraint, cp.constraints.PSD):
            multipliers[span] = triangle(value)
    return Solution(str(problem.status), x.value, multipliers)


def _stated(cp: Any, cone: Cone, rows: Any, limits: Floats) -> Any:
    """That limits − rows lie in cones of this kind, one after the other."""
    rest, size = limits - rows, cone.size
    match cone.kind:
        case "zero":
            return rows == limits
        case "nonnegative":
            return rows <= limits
        case "second":
            return cp.SOC(rest[::size], cp.vstack([rest[k::size] for k in range(1, size)]), axis=0)
        case "exponential":
            return cp.ExpCone(*(rest[k::size] for k in range(size)))
        case "power":
            return cp.PowCone3D(*(rest[k::size] for k in range(size)), cone.order)
        case _:
            n = side(size)
            return cp.reshape(full(size) @ rest, (n, n), order="C") >> 0


def side(size: int) -> int:
    """The order of a symmetric matrix whose triangle has ``size`` entries."""
    return (math.isqrt(8 * size + 1) - 1) // 2


def places(order: int) -> tuple[Ints, Ints]:
    """Rows and columns of the entries of a triangle."""
    columns, rows = np.tril_indices(order)
    return rows, columns


def triangle(matrix: Floats) -> Floats:
    """A symmetric matrix (n, n) as a row of the semidefinite cone."""
    i, j = places(len(matrix))
    return np.where(i == j, 1.0, np.sqrt(2.0)) * ((matrix + matrix.T) / 2)[i, j]


def symmetric(entries: Floats) -> Floats:
    """The matrix (n, n) that ``triangle`` makes ``entries`` of."""
    n = side(len(entries))
    return np.asarray((full(len(entries)) @ entries).reshape(n, n))


def full(size: int) -> sp.csr_array:
    """The matrix that takes a triangle to all entries of its matrix, row after row."""
    n, k = side(size), np.arange(size)
    i, j = places(n)
    scale = np.where(i == j, 0.5, np.sqrt(0.5))
    both = np.concatenate([i * n + j, j * n + i])
    return sp.csr_array((np.tile(scale, 2), (both, np.tile(k, 2))), shape=(n * n, size))
