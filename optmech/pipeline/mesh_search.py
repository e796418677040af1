"""The program of a mesh with constraints beside the promise at every point: rows of the adversary's
guesses and of single losses are added until a repaired matrix is as good as the bound asks for."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate import Check, Multipliers, check_exact, infeasibility_margin
from optmech.certificate.families import MeshMultipliers
from optmech.certificate.statement import Statement
from optmech.engines import cones
from optmech.errors import OptmechError, SolverError, VerificationError
from optmech.exact.numerators import Numerators
from optmech.lp.place_rows import PlaceRows
from optmech.pipeline.session import Clock
from optmech.problem.regions import gradient_in, over_places
from optmech.repair.gradients import inside, released_inside
from optmech.repair.mixing import always_cheapest, mix

_ROUNDS = 12
_ROOM = 0.05
"""Share of the limits by which a start stays inside them, where that is possible."""
_START_GAP = 1e-2
"""Of the solution whose guesses are the first."""
_BLENDED = (0.5, 0.1, 1e-2, 1e-3)
"""Shares of the middle in starts that hardly depend on the place."""
_SECONDS = 60.0
"""For a matrix inside all constraints that is asked for alone."""
_MARGINS = (1e-12, 1e-10, 1e-8, 1e-6)


class Stop(Protocol):
    """Hears of a point, and of which program it is of where that is not the stated one; says
    whether to end the search."""

    def __call__(self, point: cones.ConePoint, program: str = "", /) -> bool: ...


SLACK = " of the search for a start"
RELAXED = " of the program without the other constraints"
PARTLY = " of the program with those of the other constraints that were broken"


class Infeasible(Exception):  # noqa: N818
    """The mesh has no mechanism that satisfies everything, as its multipliers prove."""

    def __init__(self, multipliers: Multipliers) -> None:
        super().__init__("infeasible")
        self.multipliers = multipliers


Found = tuple[Numerators, Multipliers]
"""A released matrix and multipliers, of all reports."""


def with_vectors(statement: Statement, joint: Multipliers, vectors: MeshMultipliers) -> Multipliers:
    """Multipliers of a statement: of its promise at every point, and ``joint`` of what it says of
    the places."""
    others = iter((*joint.families, *(None for _ in statement.families)))
    promise = gradient_in(statement)
    return Multipliers(
        tuple(vectors if family is promise else next(others) for family in statement.families)
    )


def solve_beside(
    statement: Statement,
    cone_program: cones.ConeProgram,
    costs: Floats,
    gap: float,
    stop: Stop,
    threads: int | None,
) -> Found:
    """The best mechanism of the mesh that satisfies all families of ``statement``, to a relative
    ``gap``; ``costs`` (rows, O) are those of the control points.

    Raises
    ------
    Infeasible
        Where multipliers prove that the mesh has none.
    SolverError
        Where none was found that satisfies them, and no proof that there is none.
    """
    # what is never reported from one place is not reported from any point
    kept = np.flatnonzero(statement.allowed.all(axis=0))
    free = kept[~statement.loss[statement.prior > 0][:, kept].any(axis=0)]
    if len(free):
        # what costs nothing at any place may do alone
        with suppress(OptmechError):
            search = _Search(statement, cone_program, costs, stop, threads, free)
            return search.release(search.start()), Multipliers()
    search = _Search(statement, cone_program, costs, stop, threads, kept)
    try:
        matrix, multipliers = search.best(gap)
        return search.release(matrix), multipliers
    except (SolverError, VerificationError):
        kept_to = search.on_the_border(gap)
        if kept_to is None:
            raise
        return kept_to


def strictly_inside(statement: Statement) -> Floats | None:
    """A matrix over the control points of a mesh, of all reports, that keeps every inequality of a
    statement with something to spare; None where none was found."""
    promise = gradient_in(statement)
    cone_program = cones.ConeProgram.of(promise.mesh, float(promise.epsilon))
    kept = np.flatnonzero(statement.allowed.all(axis=0))
    costs = np.zeros((promise.mesh.rows, statement.observables))
    clock = Clock(_SECONDS)

    def stop(point: cones.ConePoint, program: str = "", /) -> bool:
        return clock.remaining() <= 0

    try:
        start = _Search(statement, cone_program, costs, stop, None, kept).start()
    except (Infeasible, SolverError):
        return None
    out = np.zeros_like(costs)
    out[:, kept] = start
    return out


class _Search:
    def __init__(
        self,
        statement: Statement,
        cone_program: cones.ConeProgram,
        costs: Floats,
        stop: Stop,
        threads: int | None,
        kept: Ints,
    ) -> None:
        self.statement, self.cones, self.promise = statement, cone_program, gradient_in(statement)
        self.kept = kept
        self.costs, self.reports = costs[:, self.kept], costs.shape[1]
        weights = self.promise.mesh.interpolation(self.promise.places)
        self.rows = PlaceRows(over_places(statement), weights, self.kept)
        self.middle = np.full_like(self.costs, 1 / len(self.kept))
        """All reports as likely."""
        self._stopped, self._stop, self._threads = False, stop, threads

    def solve(
        self, gap: float, start: Floats | None = None, *, slack: bool = False
    ) -> tuple[cones.ConePoint, Multipliers]:
        """A point, and its multipliers for all reports, with the rows that there are, from a start;
        with ``slack`` for one that keeps them, until it does so with something to spare, or it is
        clear that there is none."""
        program = SLACK if slack else RELAXED if start is None else PARTLY

        def stop(point: cones.ConePoint) -> bool:
            # half of what is possible will do: further on, the start would lie on the border
            ample = point.value < -min(_ROOM, -point.bound / 2)
            decided = slack and (point.bound > 0 or ample)
            self._stopped = self._stopped or (not decided and self._stop(point, program))
            return decided or self._stopped

        links = None if start is None else self.rows.links(start, slack)
        costs = np.zeros_like(self.costs) if slack else self.costs
        point = cones.solve(self.cones, costs, gap, stop, self._threads, links, start)
        vectors = np.zeros((self.reports, *point.multipliers.shape[1:]))
        vectors[self.kept] = point.multipliers
        # what belongs to the rows that there are now
        joint = Multipliers() if links is None else self.rows.multipliers(point.links)
        rounded = MeshMultipliers.rounded(self.promise.mesh, vectors)
        return point, with_vectors(self.statement, joint, rounded)

    def best(self, gap: float) -> tuple[Floats, Multipliers]:
        """A matrix (rows, kept) that satisfies everything but for rounding, and multipliers."""
        for within in (_START_GAP, gap) if self.rows.any else (gap,):
            point, multipliers = self.solve(within)
            if self.rows.excess(point.matrix) >= 0:
                break
        else:
            return point.matrix, multipliers
        self.rows.add(point.matrix)
        start = self.start()
        best, bound = start, point.bound
        for _ in range(_ROUNDS):
            new = False
            # the middle is the better start where it leads to a matrix that keeps the rows
            for first in [self.middle] if start is self.middle else [self.middle, start]:
                point, given = self.solve(gap, first)
                if point.bound > bound:
                    bound, multipliers = point.bound, given
                if np.isfinite(point.value):
                    best = min(best, self._kept_to(point.matrix, start), key=self._value)
                    new = self.rows.add(point.matrix)
                value = self._value(best)
                done = value - bound <= gap * value or self._stopped
                if done or new:
                    break
            if done or not new:
                break
        return best, multipliers

    def _value(self, matrix: Floats) -> float:
        return float((self.costs * matrix).sum())

    def start(self) -> Floats:
        """A matrix strictly inside all constraints."""
        for matrix in self._nearly_constant():
            if self.rows.excess(matrix) < 0:
                return matrix
        matrix = self.middle
        for _ in range(_ROUNDS):
            point, multipliers = self.solve(1e-6, matrix, slack=True)
            if point.bound > 0 and infeasibility_margin(self.statement, multipliers) > 0:
                raise Infeasible(multipliers)
            if self.rows.excess(point.matrix) < 0:
                return point.matrix
            if self._stopped or not self.rows.add(point.matrix):
                break
        raise SolverError(
            "no mechanism on this mesh was found that satisfies all constraints, and no proof that "
            "there is none",
            where="constraints",
            remedy="Relax one that leaves no room (a loss bound at its minimum, for example), use "
            "a finer mesh, or allow more time",
        )

    def on_the_border(self, gap: float) -> Found | None:
        """Where limits leave no room inside: what is best without them, if it keeps them, or else
        the cheapest report, always, that does."""
        point, multipliers = self.solve(gap)
        constant = np.eye(len(self.kept))[self.costs.sum(axis=0).argsort(kind="stable")]
        for matrix in (point.matrix, *(np.tile(r, (len(self.costs), 1)) for r in constant)):
            released, failed = self._released(matrix)
            if not failed:
                return released, multipliers
        return None

    def _nearly_constant(self) -> Iterator[Floats]:
        """All reports as likely, mostly the report that is the cheapest always, and mostly what
        keeps the constraints best of what is alike everywhere: private at every ε."""
        yield self.middle
        matrix = always_cheapest(self.costs)
        yield from self._blended(matrix)
        self.rows.add(self.middle)
        for _ in range(_ROUNDS):
            row = self.rows.constant()
            if row is None:
                return
            matrix[:] = row
            if not self.rows.add(matrix):
                break
        yield from self._blended(matrix)

    def _blended(self, matrix: Floats) -> Iterator[Floats]:
        return ((1 - share) * matrix + share * self.middle for share in _BLENDED)

    def _kept_to(self, matrix: Floats, start: Floats, margin: float = _MARGINS[0]) -> Floats:
        """Near ``matrix``, inside cones and constraints, by as much of another matrix as it takes:
        of the cheapest that always reports the same, or of the start."""
        mesh, rate = self.promise.mesh, float(self.promise.epsilon)
        own = inside(mesh, rate, matrix)

        def holds(near: Floats) -> bool:
            return self.rows.excess(near) <= -margin

        if holds(own):
            return own
        found = (mix(own, other, holds) for other in (always_cheapest(self.costs), start))
        return min((m for m in found if m is not None), key=self._value, default=start)

    def release(self, matrix: Floats) -> Numerators:
        """Whole numbers near a matrix that pass every exact check."""
        start: Floats | None = None
        failed: list[Check] = []
        for margin in _MARGINS:
            released, failed = self._released(matrix)
            if not failed:
                return released
            start = self.start() if start is None else start
            matrix = self._kept_to(matrix, start, 10 * margin)
        raise VerificationError(
            f"no matrix near the solution satisfies all constraints: {failed[0].detail}",
            where="constraints",
            remedy="Relax one that leaves no room",
        )

    def _released(self, matrix: Floats) -> tuple[Numerators, list[Check]]:
        """Whole numbers near a matrix, and the exact checks that they fail."""
        full = np.zeros((len(matrix), self.reports))
        full[:, self.kept] = matrix
        released, _ = released_inside(self.promise.mesh, self.promise.epsilon, full)
        return released, [c for c in check_exact(self.statement, released) if not c.passed]
