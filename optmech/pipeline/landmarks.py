"""Mechanisms for many secrets, carried over from landmarks or from a mesh of the plane: columns of
a few reports, which nobody believes before they are released (theory: "Cells and landmarks",
"Meshes for finitely many secrets")."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints, ends_of, normalised_rows, slices
from optmech.base.read_only import record
from optmech.designs.outer import Coarsening
from optmech.engines import cones
from optmech.lp.gradients import row_costs
from optmech.problem import MetricPrivacy, Problem
from optmech.reductions.aggregation import Limits, grouped, partition
from optmech.repair.cone import least_level
from optmech.spaces import distances
from optmech.spaces.domain import Domain
from optmech.spaces.mesh import Mesh
from optmech.spaces.prior import Prior

_DEGREE = 3
_SHARE = 1e-12
"""Of the ratios that is left unused, so that roundings break none."""
_ENTRIES = 2_000_000
_LIFTED = 4_000_000
"""Entries of arrays that are worked on at a time."""
_KM_PER_DEGREE = 111.2
_LEAST = 1e-100
"""Of a column's largest entry, where one is smaller."""
_UNUSED = 1e-9
"""Probability of a report up to which it is not thought of as one."""


@record
class Carried:
    """Columns for all secrets, of some of the observables."""

    columns: Floats
    """Shape (S, R)."""
    reports: Ints
    """Shape (R,), ascending."""
    source: str
    """What they are carried over from, in words."""


def lifted(columns: Floats, limits: Limits, chosen: Ints, count: int) -> Floats:
    """Columns for all ``count`` secrets from those of the ``chosen`` ones (K, O), in the cone.

    The geometric mean of the least column above and the largest below that the ratios allow from
    the landmarks: each is in the cone, and so is their mean. Secrets are worked on in parts.
    """
    out = np.empty((count, columns.shape[1]))
    inverse = np.divide(1, columns, out=np.zeros_like(columns), where=columns > 0)
    every = np.arange(count)
    for part in (every[own] for own in slices(count, 8 * columns.shape[1], _LIFTED)):
        low = _largest(limits(chosen, part[:, None]), columns)
        high = _largest(limits(part[:, None], chosen), inverse)
        out[part] = np.sqrt(low / np.where(high > 0, high, np.inf))
    return out


def _largest(log_ratio: Floats, rows: Floats) -> Floats:
    """max_k e^-log_ratio[i, k] rows[k, o], for rows >= 0."""
    out = np.zeros((len(log_ratio), rows.shape[1]))
    product = np.empty_like(out)
    for factor, row in zip(np.exp(-log_ratio).T, rows, strict=True):
        np.multiply(factor[:, None], row, out=product)
        np.maximum(out, product, out=out)
    return out


class Places:
    """The secrets of a problem in the plane, what may lie between them, and their costs."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self._loss = problem, problem.statement.loss
        self.plane = _plane(problem.secrets)
        self.coarse = Coarsening.of(problem)
        """What cells of them make of the problem, and the stated log ratios."""

    def __len__(self) -> int:
        return len(self.plane)

    def limits(self, i: Ints, j: Ints) -> Floats:
        """The log ratios less a hair, which are distances where the stated ones are."""
        return self.coarse.limits(i, j) * (1 - _SHARE)

    def cells(self, weights: Floats, count: int) -> Ints:
        """A cell for every secret, at most ``count`` of them."""
        return partition(self.plane, weights, count, len(self))

    def _marks(self, count: int, cost: Floats) -> tuple[Ints, Floats, Floats]:
        """Some of the secrets, each for those around it: the number of the one nearest to the
        middle of every cell, the prior of those in it, and the mean of their costs by prior."""
        prior = self.problem.prior.weights
        cells = self.cells(0.5 * prior + 0.5 / len(self), count)
        chosen, weight, mean = [], [], []
        for group in grouped(cells, np.arange(len(self)))[0]:
            mass, points = prior[group], self.plane[group]
            total = mass.sum()
            share = mass / total if total > 0 else np.full(len(group), 1 / len(group))
            away = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
            chosen.append(group[away.argmin()])
            weight.append(total)
            mean.append(share @ cost[group])
        return np.array(chosen), np.array(weight), np.array(mean)

    def reports(self, count: int, used: Floats | None = None) -> Ints:
        """At most so many observables: the likeliest in parts of the plane of about the same
        weight and size, if it is known how they are ``used`` (O,), else those that suit some part
        of the secrets best."""
        every = len(self.problem.observables)
        if every <= count:
            return np.arange(every)
        if used is not None and self.problem.observables.points is not None:
            some = np.flatnonzero(used > _UNUSED * used.sum())
            weight, at = used[some], _plane(self.problem.observables)[some]
            groups = partition(at, weight / weight.sum(), count, len(some))
            order = np.lexsort((-weight, groups))
            first = np.unique(groups[order], return_index=True)[1]
            return np.sort(some[order[first]])
        return np.unique(self._marks(count, self._loss)[2].argmin(axis=1))

    def from_landmarks(
        self, count: int, reports: Ints, solved: Callable[[Problem], Floats]
    ) -> Carried:
        """A mechanism from so many landmarks; ``solved`` finds the matrix of a problem over them
        and the ``reports``."""
        chosen, weight, cost = self._marks(count, self._loss[:, reports])
        apart = self.limits(chosen[:, None], chosen)
        matrix = solved(
            Problem(
                Prior(Domain(range(len(chosen))), weight),
                np.ascontiguousarray(cost),
                Domain(reports.tolist()),
                constraints=[MetricPrivacy(1, distances.matrix(apart))],
            )
        )
        used = np.flatnonzero(matrix.any(axis=0))
        columns = lifted(matrix[:, used], self.limits, chosen, len(self))
        return Carried(columns, reports[used], f"{len(chosen):,} landmarks")

    def on_mesh(
        self,
        rows: int,
        rate: float,
        reports: Ints,
        gap: float,
        stop: Callable[[cones.ConePoint], bool],
        threads: int | None,
    ) -> Carried | None:
        """A mechanism that is private at every point of the plane, at ``rate`` for each unit of
        distance, on a mesh of about so many control points."""
        low, high = ends_of(self.plane)
        # a little more, so that rounding leaves no place outside
        size = (high - low).max()
        more = 1e-9 * size + 8 * np.spacing(np.abs(self.plane).max())
        wide = np.maximum(high - low, 1e-2 * size) + more
        low, high = 0.5 * (low + high - wide), 0.5 * (low + high + wide)
        width = math.sqrt(np.prod(wide) * _DEGREE**2 / rows)
        mesh = Mesh.grid((*low.tolist(), *high.tolist()), width, degree=_DEGREE)
        program = cones.ConeProgram.of(mesh, rate)
        memory.require(
            program.memory(len(reports)),
            what=f"a mesh of {mesh.rows:,} control points with {len(reports):,} reports",
            where="resolution",
            remedy="Use a coarser domain or fewer observables",
        )
        costs = row_costs(mesh, self.plane, self.problem.prior.weights, self._loss[:, reports])
        found = cones.solve(program, costs, gap, stop, threads)
        if not np.isfinite(found.matrix).all():
            return None
        columns = np.maximum(mesh.interpolation(self.plane) @ found.matrix, 0.0)
        used = np.flatnonzero(columns.any(axis=0))
        source = f"a mesh of {mesh.rows:,} control points"
        return Carried(columns[:, used], reports[used], source)

    def rate(self) -> float:
        """The largest ε with which ε times the distance in the plane is within all ratios; 0
        where there is none, or no plane."""
        if self.plane.shape[1] != 2:
            return 0.0
        rate, index = np.inf, np.arange(len(self))
        for part in (index[own] for own in slices(len(self), len(self), _ENTRIES)):
            away = self.plane[part][:, None, :] - self.plane[None, :, :]
            apart = np.hypot(away[..., 0], away[..., 1])
            ratio = self.limits(part[:, None], index[None, :])
            some = apart > 0
            with np.errstate(over="ignore"):
                rate = min(rate, float((ratio[some] / apart[some]).min(initial=np.inf)))
        return rate * (1 - _SHARE) if np.isfinite(rate) else 0.0

    def completed(self, given: Carried) -> Carried:
        """Rows that sum to one, with the cheapest column raised (theory: "Repair"), and every
        column as the observable that costs least by it, which nobody can tell more from."""
        weights = self.problem.prior.weights
        # what underflowed is raised to a constant, which is in every cone, as maxima are
        columns = np.maximum(given.columns, _LEAST * given.columns.max(axis=0))
        sums = columns.sum(axis=1)
        index = np.arange(len(self))
        total = least_level(sums, lambda part: self.limits(part[:, None], index))
        missing = total - sums
        cheapest = ((weights * missing) @ self._loss[:, given.reports]).argmin()
        columns = columns / total
        columns[:, cheapest] += missing / total
        best = ((weights[:, None] * columns).T @ self._loss).argmin(axis=1)
        reports, place = np.unique(best, return_inverse=True)
        merged = np.zeros((len(self), len(reports)))
        np.add.at(merged.T, place, columns.T)
        return Carried(normalised_rows(merged), reports, given.source)


def _plane(domain: Domain) -> Floats:
    """Coordinates that cells are cut by; any partition is valid."""
    points = domain.require_points("cut them into cells")
    if domain.coordinates != "lonlat":
        return np.asarray(points, dtype=np.float64)
    shrink = np.cos(np.radians(points[:, 1].mean()))
    return np.asarray(points * [_KM_PER_DEGREE * shrink, _KM_PER_DEGREE])
