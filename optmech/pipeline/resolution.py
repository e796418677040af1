"""Designs for problems too large to solve: a mechanism carried over from landmarks, and a lower
bound from cells, both proved for the whole problem.

The gap between the two is what the coarser view costs. It falls with the square of the cells' size
in units of 1/ε (theory: "Cells and landmarks").
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints
from optmech.base.interrupts import noticed
from optmech.certificate import Bound, Multipliers
from optmech.certificate.objective import figures_of, relative_gap
from optmech.certificate.values import objective
from optmech.designs.design import Certificate, Design, OuterProof
from optmech.designs.notes import design_notes
from optmech.designs.outer import witnessed_by
from optmech.designs.resolution import limits_of, problem_of_cells, refusal
from optmech.engines import cones
from optmech.errors import ProblemError, SolverError
from optmech.exact.number import rounded_up
from optmech.lp.gradients import row_costs
from optmech.lp.inequalities import Inequalities
from optmech.mesh import Mesh
from optmech.pipeline import search
from optmech.pipeline.finish import ending
from optmech.pipeline.profiles import Profile
from optmech.pipeline.session import Progress
from optmech.problem import MetricPrivacy, Problem
from optmech.reductions.aggregation import partition
from optmech.reductions.cells import Landmarks, Limits, lifted
from optmech.repair.release import Released, release
from optmech.spaces import distances
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

LANDMARKS = 4
"""Landmarks for each cell of the bound, where there are no more secrets or no mesh suits them."""
MESH_ROWS = 900
"""Control points of the mesh in the end: at 70 × 70 cells, ε = 0.1 per cell, 256 lead to a loss of
15.6 in 3 processor seconds, 484 to 15.2 in 10."""
MESH_REPORTS = 64
"""Cells that have a report each on a mesh, or a few more."""
_DEGREE = 3
_PROVING = 0.6
"""Share of the time left that one bound may take."""
_WITHIN = 3e-3
"""Relative gap of the smaller problems: they are off by more than that."""
_SHARE = 1e-12
"""Of the ratios that is left unused, so that roundings break none."""
_ENTRIES = 2_000_000
_KM_PER_DEGREE = 111.2


def solve_at_resolution(
    problem: Problem, profile: Profile, progress: Progress | None, why: str
) -> Design:
    """A verified design whose bound is proved by ``profile.resolution`` cells.

    Raises
    ------
    ProblemError
        Where the problem has no cells or landmarks (it needs points, an expected loss, and ratios
        between all secrets), or they do not fit into memory.
    SolverError
        When no mechanism could be verified.
    """
    reason = refusal(problem.statement)
    if reason:
        raise ProblemError(reason, where="resolution", remedy="Solve the whole program")
    _require_memory(problem, profile.resolution)
    if progress is not None:
        progress(why)
    return _Resolved(problem, profile, progress, why).run()


@dataclass(eq=False)
class _Resolved:
    """The best verified mechanism and bound so far, of one problem."""

    problem: Problem
    profile: Profile
    progress: Progress | None
    why: str

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._statement = self.problem.statement
        self._stated = limits_of(self._statement)
        self._plane = _plane(self.problem)
        self._released: Released | None = None
        self._value, self._bound = np.inf, 0.0
        self._proof: OuterProof | None = None
        self._message = ""
        self._interrupted = False

    def run(self) -> Design:
        """Coarse first, then as fine as the profile says, until the gap or the time is reached, or
        somebody stops it."""
        with noticed(self._interrupt):
            return self._run()

    def _interrupt(self) -> None:
        self._interrupted = True

    def _run(self) -> Design:
        cells, count = self.profile.resolution, len(self.problem.secrets)
        coarse = min(max(cells // 4, 16), cells, count)
        few = count <= LANDMARKS * cells
        for work, size in (
            (self._design if few else self._meshed, coarse if few else MESH_ROWS // 4),
            (self._prove, coarse),
            (self._prove, min(cells, count)),
            (self._design if few else self._meshed, count if few else MESH_ROWS),
        ):
            if self._gap <= self.profile.gap or (self._remaining() <= 0 and self._released):
                break
            work(size)
        if self._released is None:
            raise SolverError(
                f"no mechanism carried over was verified ({self._message})",
                where="resolution",
                remedy="Use more cells, or solve the whole program",
            )
        return self._made()

    @property
    def _gap(self) -> float:
        return relative_gap(self._value, self._bound) if self._released else np.inf

    def _remaining(self) -> float:
        if self._interrupted:
            return 0.0
        if self.profile.time_limit is None:
            return np.inf
        return self.profile.time_limit - (time.monotonic() - self._started)

    def _report(self, text: str) -> None:
        if self.progress is not None:
            self.progress(f"{text}: {self._value:.9g} / {self._bound:.9g}, gap {self._gap:.2e}")

    def _limits(self, i: Ints, j: Ints) -> Floats:
        """The log ratios less a hair, which are distances where the stated ones are."""
        return self._stated(i, j) * (1 - _SHARE)

    def _solved(self, smaller: Problem, share: float = 1.0) -> Design:
        left = share * self._remaining()
        limit = None if left == np.inf else max(left, 1.0)
        own = replace(self.profile, resolution=0, gap=_WITHIN, time_limit=limit)
        return search.solve(smaller, own, progress=self.progress)

    def _prove(self, cells: int) -> None:
        """A lower bound from so many cells of the secrets."""
        own = partition(self._plane, self.problem.prior, cells)
        smaller = problem_of_cells(self.problem, own)
        found = self._solved(smaller, _PROVING)
        proof, proved = witnessed_by(
            lambda witness: problem_of_cells(self.problem, own, witness),
            self.problem,
            self._stated,
            own,
            found.certificate.multipliers,
            boxes=True,
        )
        if proved > self._bound:
            self._bound, self._proof = proved, proof
        self._report(f"bound from {len(smaller.secrets)} cells")

    def _design(self, count: int) -> None:
        """A mechanism from so many landmarks."""
        near = 0.5 * self.problem.prior.weights + 0.5 / len(self._plane)
        cells = partition(self._plane, near, count)
        cost = self._statement.loss
        marks = Landmarks.of(self._plane, self.problem.prior.weights, cost, cells)
        reports = self._reports(marks)
        apart = self._limits(marks.chosen[:, None], marks.chosen[None, :])
        smaller = Problem(
            Prior(Domain(range(len(marks.chosen))), marks.weight),
            np.ascontiguousarray(marks.cost[:, reports]),
            Domain(reports.tolist()),
            constraints=[MetricPrivacy(1, distances.matrix(apart))],
        )
        found = self._solved(smaller)
        assert found.matrix is not None
        used = np.flatnonzero(found.matrix.any(axis=0))
        columns = lifted(found.matrix[:, used], self._limits, marks.chosen, len(cells))
        self._offer(columns, reports[used], f"{len(marks.chosen)} landmarks")

    def _meshed(self, rows: int) -> None:
        """A mechanism that is private at every point of the plane, on a mesh of about so many
        control points; of landmarks where there is none."""
        rate = self._rate() if self._plane.shape[1] == 2 else 0.0
        if rate > 0:
            self._on_mesh(rows, rate)
        if self._released is None:
            self._design(min(LANDMARKS * self.profile.resolution, len(self._plane)))

    def _on_mesh(self, rows: int, rate: float) -> None:
        """The same where ``rate`` times the distance in the plane is within all ratios."""
        prior, plane = self.problem.prior.weights, self._plane
        near = 0.5 * prior + 0.5 / len(plane)
        cells = partition(plane, near, min(MESH_REPORTS, len(plane)))
        reports = self._suited(Landmarks.of(plane, prior, self._statement.loss, cells))
        low, high = plane.min(axis=0), plane.max(axis=0)
        # a little more, so that rounding leaves no place outside
        more = 1e-9 * float((high - low).max()) + 8 * float(np.spacing(np.abs(plane).max()))
        wide = np.maximum(high - low, 1e-2 * float((high - low).max())) + more
        low, high = 0.5 * (low + high - wide), 0.5 * (low + high + wide)
        width = math.sqrt(float(np.prod(wide)) * _DEGREE**2 / rows)
        mesh = Mesh.grid((*low.tolist(), *high.tolist()), width, degree=_DEGREE)
        costs = row_costs(mesh, plane, prior, self._statement.loss[:, reports])
        until = time.monotonic() + self._remaining()

        def stop(point: cones.ConePoint) -> bool:
            if self.progress is not None:
                self.progress(f"step {point.iterations}: {point.value:.6g} on the mesh")
            return time.monotonic() >= until

        program = cones.ConeProgram.of(mesh, rate)
        memory.require(
            program.memory(len(reports)),
            what=f"a mesh of {mesh.rows:,} control points with {len(reports):,} reports",
            where="resolution",
            remedy="Use a coarser domain or fewer observables",
        )
        found = cones.solve(program, costs, _WITHIN, stop, self.profile.threads)
        if not np.isfinite(found.matrix).all():
            return
        columns = np.maximum(mesh.interpolation(plane) @ found.matrix, 0.0)
        used = np.flatnonzero(columns.any(axis=0))
        self._offer(columns[:, used], reports[used], f"a mesh of {mesh.rows} control points")

    def _rate(self) -> float:
        """The largest ε with which ε times the distance in the plane is within all ratios."""
        rate, index = np.inf, np.arange(len(self._plane))
        step = max(1, _ENTRIES // len(index))
        for begin in range(0, len(index), step):
            part = index[begin : begin + step]
            away = self._plane[part][:, None, :] - self._plane[None, :, :]
            apart = np.hypot(away[..., 0], away[..., 1])
            ratio = self._limits(part[:, None], index[None, :])
            some = apart > 0
            with np.errstate(over="ignore"):
                rate = min(rate, float((ratio[some] / apart[some]).min(initial=np.inf)))
        return rate * (1 - _SHARE) if np.isfinite(rate) else 0.0

    def _offer(self, columns: Floats, reports: Ints, source: str) -> None:
        """Release a mechanism with these columns, over all pairs, and keep it if it is best."""
        cost, shown = self._statement.cost, len(reports)
        columns = _completed(columns, self._limits, cost[:, reports])
        matrix = np.zeros(cost.shape)
        matrix[:, reports] = columns
        anchor = np.zeros(cost.shape)
        anchor[:, int(cost.sum(axis=0).argmin())] = 1.0
        released = release(Inequalities.of(self._statement), matrix, [anchor])
        if released is None:
            self._message = f"{source}: no whole numbers passed"
            return
        value = rounded_up(objective(self._statement, released.exact))
        if value < self._value:
            self._value, self._released = value, released
        self._report(f"mechanism from {source}, {shown} reports")

    def _reports(self, marks: Landmarks) -> Ints:
        """The observables that suit some part of the secrets best, as many as cells at most."""
        if marks.cost.shape[1] <= self.profile.resolution:
            return np.arange(marks.cost.shape[1])
        points = self._plane[marks.chosen]
        weight = marks.weight + marks.weight.sum() / len(points)
        groups = partition(points, weight / weight.sum(), self.profile.resolution)
        sums = np.zeros((int(groups.max()) + 1, marks.cost.shape[1]))
        np.add.at(sums, groups, weight[:, None] * marks.cost)
        return np.unique(sums.argmin(axis=1))

    def _suited(self, marks: Landmarks) -> Ints:
        """The observable that suits each landmark best, or all of them where they are few."""
        if marks.cost.shape[1] <= MESH_REPORTS:
            return np.arange(marks.cost.shape[1])
        return np.unique(marks.cost.argmin(axis=1))

    def _made(self) -> Design:
        released, problem = self._released, self.problem
        assert released is not None
        bound = Bound(self._bound, 0.0, self._bound)
        figures = figures_of(self._statement, released.exact, bound, Multipliers())
        coarse = "no lower bound was proved"
        if self._proof is not None:
            count = self._proof.statement.secrets
            coarse = f"the lower bound is that of {count:,} cells of the secrets"
        message = self._message or "cells and landmarks are no finer"
        return Design(
            problem,
            released.exact,
            *figures,
            verified=True,
            certificate=Certificate(released.checks, Multipliers(), bound, self._proof),
            engine="resolution",
            engine_reason=self.why,
            seconds=time.monotonic() - self._started,
            reason=ending(figures.gap, self.profile.gap, message),
            notes=(*design_notes(problem, released.exact.matrix), f"{coarse} ({self.why})"),
        )


def _plane(problem: Problem) -> Floats:
    """Coordinates that cells are cut by; any partition is valid."""
    points = problem.secrets.require_points("cut them into cells")
    if problem.secrets.coordinates != "lonlat":
        return np.asarray(points, dtype=np.float64)
    shrink = np.cos(np.radians(points[:, 1].mean()))
    return np.asarray(points * [_KM_PER_DEGREE * shrink, _KM_PER_DEGREE])


def _completed(columns: Floats, limits: Limits, cost: Floats) -> Floats:
    """Columns of the cone, with the cheapest one raised until every row sums to one (theory:
    "Repair")."""
    count = len(columns)
    sums = columns.sum(axis=1)
    total, index = float(sums.max()), np.arange(count)
    step = max(1, _ENTRIES // count)
    for begin in range(0, count, step):
        part = index[begin : begin + step]
        ratio = limits(part[:, None], index[None, :])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            need = sums[None, :] + (sums[None, :] - sums[part, None]) / np.expm1(ratio)
        total = max(total, float(np.where(ratio > 0, need, 0.0).max()))
    missing = total - sums
    cheapest = int((missing @ cost).argmin())
    out = columns / total
    out[:, cheapest] += missing / total
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _require_memory(problem: Problem, cells: int) -> None:
    """Tables between secrets, the mechanism, and the smaller problems, as measured."""
    secrets, observables = float(len(problem.secrets)), float(len(problem.observables))
    marks = min(LANDMARKS * cells, secrets)
    tables = 5 * 8 * secrets**2 + 60 * secrets * observables
    smaller = max(cells * observables, marks * min(observables, cells)) * 2_300
    memory.require(
        tables + smaller + 300 * marks**2,
        what=f"{cells:,} cells of {len(problem.secrets):,} secrets and "
        f"{len(problem.observables):,} observables",
        where="resolution",
        remedy="Use fewer cells, a coarser domain or fewer observables",
    )
