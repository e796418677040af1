"""Designs for problems too large to solve: a mechanism from a mesh or from landmarks, and a lower
bound from cells, both proved for the whole problem; and then the whole program, where it fits.

The gap between the two is what the coarser view costs. It falls with the square of the cells' size
in units of 1/ε (theory: "Cells and landmarks").
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.certificate import Bound
from optmech.certificate.values import objective
from optmech.designs.design import Design, OuterProof
from optmech.designs.outer import refusal
from optmech.engines import cones
from optmech.errors import EngineError, OptmechError, ProblemError, SolverError
from optmech.exact.number import rounded_up
from optmech.exact.numerators import Numerators
from optmech.lp.inequalities import Inequalities
from optmech.pipeline import search
from optmech.pipeline.landmarks import Carried, Places
from optmech.pipeline.profiles import Profile
from optmech.pipeline.session import (
    CLOSED_FORM,
    MENDING,
    NUMERICAL,
    Incumbent,
    Progress,
    attempted,
    feasible_design,
    told,
)
from optmech.pipeline.sizes import deciding_seconds, too_large
from optmech.problem import Problem
from optmech.reductions.aggregation import MEMBERS
from optmech.repair.mixing import always_cheapest
from optmech.repair.release import Released, release

LANDMARKS = 4
"""Landmarks for each cell of the bound, where there are no more secrets or no mesh suits them."""
MESH_ROWS = 256, 1_024
"""Control points of the first mesh and of the last: at 70 × 70 cells, ε = 0.1 per cell, 256 lead to
a loss of 15.6, 484 to 15.2 and 1,156 to 14.9."""
_ROWS_EACH = 4
"""Control points for each secret at most."""
MESH_REPORTS = 64, 112
"""At most, on these meshes."""
_FIRST = 0.4
"""Share of the time for cells and meshes where the whole program follows."""
_PROVING = 0.25, 0.8
"""Share of the time left that the first bound may take, and the last."""
_WITHIN = 1e-2, 3e-3
"""Relative gaps of the first mesh, and of the last and landmarks."""
_BOUNDED = 2.5e-2, 5e-3
"""Those of the first problem over cells and of the last."""

_Work = Callable[[], None]


def solve_at_resolution(
    problem: Problem, profile: Profile, progress: Progress | None, why: str, *, onward: bool
) -> Design:
    """A verified design whose bound is proved by ``profile.resolution`` cells; with ``onward``, of
    the whole program as well, as far as time and memory allow, whichever is better.

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
    cells, secrets = profile.resolution, float(len(problem.secrets))
    observables, marks = float(len(problem.observables)), min(LANDMARKS * cells, secrets)
    # tables between secrets, the mechanism, and the smaller problems: at least what was measured,
    # 4.1 GiB for 247 cells of 4,900 secrets and observables, 11.1 for 256 of 10,000
    tables = 2 * 8 * secrets**2 + 36 * secrets * observables
    smaller = max(cells * observables, marks * min(observables, cells)) * 2_700
    memory.require(
        tables + smaller + 300 * marks**2,
        what=f"{cells:,} cells of {secrets:,.0f} secrets and {observables:,.0f} observables",
        where="resolution",
        remedy="Use fewer cells, a coarser domain or fewer observables",
    )
    limit = profile.time_limit
    resolved = _Resolved(
        None if limit is None else limit - deciding_seconds(problem.statement),
        progress,
        statement=problem.statement,
        gap_asked=profile.gap,
        problem=problem,
        profile=profile,
        why=why,
        onward=onward,
    )
    resolved.report(why)
    return resolved.run()


@dataclass(eq=False, kw_only=True)
class _Resolved(Incumbent):
    """The best verified mechanism and bound so far, of one problem."""

    problem: Problem
    profile: Profile
    why: str
    onward: bool

    def __post_init__(self) -> None:
        self._places = Places(self.problem)
        self._released: Released | None = None
        self._proof: OuterProof | None = None
        self._used: Floats | None = None
        self._done: set[tuple[str, int]] = set()
        self._message = self._after = ""
        self._searched = self._broken = False
        # a first part of the time, where the whole program is to have the rest
        whole_fits = self.onward and not too_large(self.statement, self.profile)
        self.share = _FIRST if whole_fits else 1.0

    def run(self) -> Design:
        """Coarse first, then as fine as the profile says, then the whole, until the gap or the time
        is reached, or somebody stops it."""
        with self.interruptible():
            for work in self._works():
                if self.gap <= self.gap_asked or (self.remaining() <= 0 and self._released):
                    break
                # any of them may fail, and leaves what the others found
                self._step(work)
            if self.onward:
                self.share = 1.0
                self._whole()
        if self._broken and not self._searched:
            raise EngineError(
                f"nothing was searched: {self._message}", where="resolution", remedy=MENDING
            )
        if self._released is None:
            # the report that is the cheapest always keeps all ratios
            constant = Numerators.rounded(always_cheapest(self.statement.cost))
            if (released := Released.of(self.statement, constant)) is not None:
                self._keep(released)
        if self._released is None:
            raise SolverError(
                f"no mechanism carried over was verified ({self._message})",
                where="resolution",
                remedy="Use more cells, or solve the whole program",
            )
        return self._made()

    def _step(self, work: _Work) -> None:
        try:
            work()
        except Exception as error:
            self._message = f"a step failed: {told(error)}"
            own = isinstance(error, (OptmechError, *NUMERICAL))
            self._broken |= not own or isinstance(error, EngineError)

    def _works(self) -> Iterator[_Work]:
        """What is to be done, in the order in which it lowers the gap most for its time."""
        cells, count = self.profile.resolution, len(self.problem.secrets)
        coarse = min(max(cells // 4, 16, -(-count // MEMBERS)), cells, count)
        if count <= LANDMARKS * cells:
            yield lambda: self._landmarks(coarse)
            yield lambda: self._prove(coarse, 0)
            yield lambda: self._prove(min(cells, count), 1)
            yield lambda: self._landmarks(count)
            return
        rate = self._places.rate()
        if rate > 0:
            yield lambda: self._mesh(rate, 0)
        if self._released is None:
            yield lambda: self._landmarks(LANDMARKS * cells)
        if 2 * coarse <= cells:
            yield lambda: self._prove(coarse, 0)
        if rate > 0:
            yield lambda: self._mesh(rate, 1)
        yield lambda: self._prove(cells, 1)

    def _report(self, text: str) -> None:
        bound = self.bound.value
        self.report(f"{text}: value {self.value:.9g}, bound {bound:.9g}, gap {self.gap:.2e}")

    def _is_new(self, kind: str, size: int) -> bool:
        """Whether something of this kind and size was not tried before."""
        new = (kind, size) not in self._done
        self._done.add((kind, size))
        return new

    def _solved(self, smaller: Problem, within: float, share: float = 1.0) -> Design:
        left = share * self.remaining()
        limit = None if left == np.inf else max(left, 1.0)
        own = replace(self.profile, resolution=0, gap=within, time_limit=limit)
        found = search.solve(smaller, own, progress=self._inner)
        self._searched |= found.engine != CLOSED_FORM
        return found

    def _inner(self, text: str) -> None:
        """What a smaller problem says of itself; its gap is not this problem's."""
        if text:
            self.report(f"smaller: {text}")

    def _prove(self, count: int, stage: int) -> None:
        """A lower bound from so many cells of the secrets, or from more where they would be too
        large to be compared in a reasonable time."""
        count = max(count, -(-len(self._places) // (2 * MEMBERS)))
        own = self._places.cells(self.problem.prior.weights, count)
        if not self._is_new("cells", len(np.unique(own))):
            return
        smaller = self._places.coarse.over(own)
        found = self._solved(smaller, _BOUNDED[stage], _PROVING[stage])
        if found.exact is not None:
            self._used = smaller.prior.weights @ found.exact.matrix
        proof, proved = self._places.coarse.proof(own, found.certificate.multipliers)
        if proved > self.bound.value:
            self.bound, self._proof = Bound(proved, 0.0, proved), proof
        self._report(f"bound from {len(smaller.secrets)} cells")

    def _landmarks(self, count: int) -> None:
        """A mechanism from so many landmarks."""
        if not self._is_new("landmarks", count):
            return

        def matrix(smaller: Problem) -> Floats:
            found = self._solved(smaller, _WITHIN[1]).exact
            assert found is not None
            return found.matrix

        reports = self._places.reports(self.profile.resolution, self._used)
        self._offer(self._places.from_landmarks(count, reports, matrix))

    def _mesh(self, rate: float, stage: int) -> None:
        """A mechanism that is private at every point of the plane, where ``rate`` times the
        distance is within all ratios."""
        reports = self._places.reports(MESH_REPORTS[stage], self._used)

        def stop(point: cones.ConePoint) -> bool:
            self.report(f"step {point.iterations}: {point.value:.6g} on the mesh")
            return self.remaining() <= 0

        rows = min(MESH_ROWS[stage], _ROWS_EACH * len(self._places))
        if not self._is_new(f"mesh of {len(reports)}", rows):
            return
        within = _WITHIN[stage]
        found = self._places.on_mesh(rows, rate, reports, within, stop, self.profile.threads)
        self._searched = True
        if found is not None:
            self._offer(found)

    def _offer(self, given: Carried) -> None:
        """Release a mechanism with these columns, over all pairs, and keep it if it is best."""
        given = self._places.completed(given)
        shape = self.statement.loss.shape
        # what is rounded up and down keeps the ratios nearly always
        exact = Numerators.placed(given.columns, given.reports, shape[1])
        released = Released.of(self.statement, exact)
        if released is None:
            matrix = np.zeros(shape)
            matrix[:, given.reports] = given.columns
            anchor = always_cheapest(self.statement.cost)
            released = release(Inequalities.of(self.statement), matrix, [anchor])
        if released is None:
            self._message = f"{given.source}: no whole numbers passed"
            return
        self._keep(released)
        self._report(f"mechanism from {given.source}, {len(given.reports)} reports")

    def _keep(self, released: Released) -> None:
        value = rounded_up(objective(self.statement, released.exact)[1])
        if value < self.value:
            self.value, self._released = value, released

    def _whole(self) -> None:
        """Go on to the whole program, and keep of it what is better."""
        left = self.remaining()
        if self.gap <= self.gap_asked or left <= 0:
            return
        limit = None if left == np.inf else left
        own = replace(self.profile, resolution=0, time_limit=limit)
        reason = too_large(self.statement, own)
        if reason:
            self._after = f"the whole program was not begun: {reason}"
            return
        self._report("going on to the whole program")
        found, failed = attempted(
            lambda: search.solve(self.problem, own, progress=self.progress),
            "the whole program",
        )
        if found is None:
            self._after = "; ".join(failed)
            return
        self._searched = True
        value, bound = self.value, self.bound.value
        if found.exact is not None:
            self._keep(Released(found.exact, found.certificate.checks))
        if found.lower_bound > bound:
            self.bound, self._proof = found.certificate.bound, None
            self.multipliers = found.certificate.multipliers
        better = ["the mechanism"] * (self.value < value)
        better += ["the lower bound"] * (found.lower_bound > bound)
        self._after = f"{' and '.join(better) or 'nothing'} of the whole program is better"
        self._report("the whole program ended")

    def _made(self) -> Design:
        released, problem = self._released, self.problem
        assert released is not None
        coarse = "no lower bound was proved"
        if self._proof is not None:
            count = self._proof.statement.secrets
            coarse = f"the lower bound is that of {count:,} cells of the secrets"
        elif self.bound.value > 0:
            coarse = "the lower bound is that of the whole program"
        return feasible_design(
            problem,
            released,
            self.bound,
            self.multipliers,
            self,
            gap=self.gap_asked,
            message=self._message or "cells and landmarks are no finer",
            outer=(self._proof, None),
            notes=tuple(filter(None, (f"{coarse} ({self.why})", self._after))),
            engine="resolution",
            engine_reason="; ".join(filter(None, [self.why, self._after])),
        )
