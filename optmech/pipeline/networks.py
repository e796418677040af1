"""Solving large problems whose constraints are edges of a graph: those of privacy at every point of
a network, and policy graphs. Nothing is made for all pairs."""

from dataclasses import dataclass, field

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.edges import Edges
from optmech.base.native import has_kernels
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.families import PairMultipliers, Ratio
from optmech.certificate.families.ratio import rounded_product
from optmech.certificate.objective import claimable, trivial_bound
from optmech.certificate.statement import Statement
from optmech.designs.design import Design, OuterProof
from optmech.designs.outer import LARGE, few_digits, over_segments
from optmech.errors import EngineError
from optmech.exact.numerators import Numerators
from optmech.lp.inequalities import Inequalities
from optmech.pipeline.profiles import Profile
from optmech.pipeline.session import (
    Incumbent,
    Outer,
    Progress,
    attempted,
    broke,
    feasible_design,
    searching,
)
from optmech.problem import Problem
from optmech.repair.mixing import always_cheapest
from optmech.repair.release import Released, release

_TIGHTER = 1e-12
"""By which log ratios are smaller in the search, so that rounding keeps those that are stated."""
_NEAR, _FAR = 1e-9, 40.0
"""Log ratios that hardly leave anything, and those that hardly ask for anything."""
_LEFT_OUT, _BITS = 0.02, 24
"""Share of the gap that multipliers left out of a file may cost, and digits of the others."""
MESH_TIME = 0.7
"""Share of the time for the mesh; the bound for every mechanism has the rest."""
_NEAR_ENOUGH = 0.05
"""Share of what a mesh costs that may stay open between the bound for every mechanism and a
mechanism at its vertices: digits that nobody sees, and the last ones take most of the time."""
_SEARCHED = 50_000
"""Vertices up to which the bound for every mechanism has a search of its own."""
_UNKNOWN = "no lower bound for every mechanism is known"


def edges_of(statement: Statement) -> Edges | None:
    """The log ratios along the edges of a statement that asks for nothing else, and an expected
    loss; None of others, and where a secret is joined with none or two are to be told apart
    nowhere."""
    ratio = statement.families[0] if len(statement.families) == 1 else None
    if not isinstance(ratio, Ratio) or statement.objective != "expected_loss":
        return None
    edges = ratio.edges
    if edges is None or (np.diff(edges.start) == 0).any():
        return None
    found = edges.with_values(np.minimum(rounded_product(ratio.epsilon, edges.value), _FAR))
    return found if (found.value > _NEAR).all() else None


def along_edges(problem: Problem) -> bool:
    """Whether a problem is large, and asks for nothing but ratios along edges."""
    large = len(problem.secrets) >= LARGE and has_kernels()
    return large and edges_of(problem.statement) is not None


def bytes_of(edges: int, vertices: int, reports: int) -> float:
    """Memory of a search: rows of edges, factors of some ten entries a vertex twice, and columns;
    as measured with 100 reports."""
    return 3e8 + reports * (64.0 * edges + 600.0 * vertices)


@dataclass(eq=False)
class EdgeSession(Incumbent):
    """The pair of a search along edges."""

    edges: Edges = field(kw_only=True)
    loss: float = np.inf
    """That of a mechanism beside, whose distance from the bound is wanted."""

    def __post_init__(self) -> None:
        edges = self.edges
        self._back = edges.number(edges.j, edges.i)

    def take(self, columns: Floats | None, multipliers: Floats) -> float:
        if columns is not None:
            value = float((self.statement.cost * columns.T).sum())
            if np.isfinite(columns).all() and value < self.value:
                self.matrix, self.value = np.ascontiguousarray(columns.T), value
        net = np.maximum(multipliers, 0.0)
        # where both of two opposite edges have some, both lose the smaller one: that leaves more at
        # either end
        net = net - np.where(self._back < 0, 0.0, np.minimum(net, net[:, self._back]))
        block, edge = np.nonzero(net)
        i, j = self.edges.i[edge], self.edges.j[edge]
        self.offer_bound(Multipliers((PairMultipliers(i, j, block, net[block, edge]),)))
        return self.gap

    def few(self) -> None:
        """Multipliers in few digits and without the least, where that costs next to nothing."""
        given = next(iter(self.multipliers.families), None)
        if given is None or not np.isfinite(self.gap):
            return
        room = _LEFT_OUT * max(self.gap, 1e-6) * self.value
        fewer = Multipliers((few_digits(given, room, _BITS),))
        bound = lower_bound(self.statement, fewer)
        if self.bound.value - bound.value <= 2 * room:
            self.bound, self.multipliers = bound, fewer

    def should_stop(self) -> bool:
        left, wide = self.value - self.bound.value, self.loss - self.bound.value
        near = np.isfinite(wide) and left <= _NEAR_ENOUGH * wide
        return bool(near) or self.remaining() <= 0 or self.gap <= self.gap_asked

    def search(self, profile: Profile) -> str:
        """Look for both until the gap is reached; returns why it ended before."""
        # compiled, and needed for large problems only
        from optmech.engines.structured import edges as engine

        edges = self.edges
        tighter = edges.with_values(np.maximum(edges.value - _TIGHTER, 0.5 * edges.value))
        options = profile.options()
        with self.interruptible():
            return engine.solve(tighter, self.statement.cost, options, self).message


def by_edges(problem: Problem, profile: Profile, progress: Progress | None) -> Design | None:
    """``solve_edges`` where it applies and does not break off; else None."""
    if not along_edges(problem):
        return None
    try:
        return solve_edges(problem, profile, progress)
    except EngineError as error:
        broke(error.message)
        return None


def solve_edges(problem: Problem, profile: Profile, progress: Progress | None) -> Design:
    """The design of a problem whose statement is one of edges alone (``edges_of``): as
    ``meshes.solve_network``. Raises TooLargeError where the memory is not there."""
    statement = problem.statement
    edges = edges_of(statement)
    assert edges is not None
    vertices, reports = statement.loss.shape
    memory.require(
        bytes_of(len(edges), vertices, reports),
        what=f"a network of {vertices:,} vertices with {reports:,} observables",
        where="everywhere",
        remedy="Use a larger divide, or fewer observables",
    )
    session = EdgeSession(
        profile.time_limit, progress, statement=statement, edges=edges, gap_asked=profile.gap
    )
    searched = problem.mesh is not None and vertices <= _SEARCHED
    session.share = MESH_TIME if searched else 1.0
    with searching("the engine along edges"):
        message = session.search(profile)
    session.share = 1.0
    session.few()
    released = _released(session)
    on_roads = problem.mesh is not None
    outer, said = _outer(problem, profile, session) if on_roads else ((None, None), ())
    return feasible_design(
        problem,
        released,
        session.bound,
        session.multipliers,
        session,
        gap=profile.gap,
        engine="structured",
        engine_reason=f"{len(edges) // 2:,} edges, without a table of pairs",
        message=message,
        outer=outer,
        notes=said,
    )


def _released(session: EdgeSession) -> Released:
    """The best matrix, or the best constant, in whole numbers that pass."""
    statement = session.statement
    constant = always_cheapest(statement.cost)
    if session.matrix is not None:
        uniform = np.full(constant.shape, 1 / statement.observables)
        # no parts, which would be made for all pairs
        found = release(Inequalities(statement, ()), session.matrix, [uniform])
        if found is not None:
            return found
    found = Released.of(statement, Numerators.rounded(constant))
    assert found is not None  # what always reports the same is private
    return found


def _outer(
    problem: Problem, profile: Profile, session: EdgeSession
) -> tuple[Outer, tuple[str, ...]]:
    """The proof of a bound for every mechanism, the bound, and notes: by the multipliers of the
    mesh, and of fewer vertices by a search of its own."""
    statement = over_segments(problem)
    edges = edges_of(statement)
    assert edges is not None
    left = session.remaining()
    own = EdgeSession(
        None if left == np.inf else left, session.progress, statement=statement, edges=edges,
        gap_asked=profile.gap, interrupted=session.interrupted, loss=session.value,
    )  # fmt: skip
    said: tuple[str, ...] = ()
    own.offer_bound(session.multipliers)
    if len(statement.prior) <= _SEARCHED and left > 0:
        session.report("a lower bound for every mechanism")
        what = "the lower bound for every mechanism"
        _, said = attempted(lambda: own.search(profile), what)
    own.few()
    if not own.bound.value > trivial_bound(statement):
        return (None, 0.0), said or (_UNKNOWN,)
    return (OuterProof(None, statement, own.multipliers), claimable(own.bound.value)), said
