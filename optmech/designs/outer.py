"""Problems whose optimum no mechanism undercuts that solves a larger one, by which a design file
proves its lower bound: over cells of the secrets (theory: "Cells and landmarks"), and, for all that
is private at every point of a region, over the places of the prior or cells of them (theory:
"Carrying a guarantee over to distributions")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.families import PairMultipliers, Ratio
from optmech.certificate.objective import claimable
from optmech.certificate.statement import Statement
from optmech.designs.design import OuterProof
from optmech.exact.exponentials import stated_up
from optmech.exact.rounding import UNIT, up
from optmech.problem import DifferentialPrivacy, MetricPrivacy, Problem
from optmech.problem.constraint import Constraint
from optmech.problem.ratios import gradient_in
from optmech.spaces import distances
from optmech.spaces.domain import Domain, part_of
from optmech.spaces.mesh.network import Network
from optmech.spaces.prior import Prior

if TYPE_CHECKING:
    from optmech.reductions.aggregation import Limits, Members
    from optmech.reductions.witness import Witness

LARGE = 1_000
"""Vertices from which on nothing is made for all pairs of them."""
FEW = 150
"""Places up to which the problem is that of the places themselves."""
FEW_BESIDE = 400
"""Such places where constraints stand beside the promise, which cells leave out."""
_CELLS, _MOST_CELLS = 300, 3_000
_MEMBERS = 16
"""Places in a cell on average, between these numbers of cells."""
_NEIGHBOURS = 24
"""Nearest cells of each in the plane whose exact ratios are found."""
_CLOSE = 24
"""Nearest cells of each, of distances of any kind, whose exact ratios are found."""
_GLOBAL = 2_000
"""Places in degrees that are aggregated, as it takes the table of their distances."""
_LEFT_OUT, _BITS = 1e-5, 20
"""Share of all multipliers whose least ones are left out of a file, and digits of the others: any
numbers prove a bound, and few digits half the file."""


def counts_of(problem: Problem) -> tuple[int, int]:
    """How many cells to begin with, and how many to end with where time and memory allow; zeros
    where the places are few enough to be their own."""
    count = len(problem.secrets)
    if count <= (FEW_BESIDE if beside(problem) else FEW):
        return 0, 0
    return _CELLS, min(max(count // _MEMBERS, _CELLS), _MOST_CELLS)


def cells_of(problem: Problem, count: int) -> Ints:
    """A cell for every place, (n,), about ``count`` of them."""
    from optmech.reductions.aggregation import partition

    return partition(_plane(problem), problem.prior.weights, count)


def bytes_of(cells: int, reports: int) -> float:
    """Memory for the bound of so many cells, as measured at 1,050 and 3,000 with 20 reports: the
    tables between cells, and the factors of the program over them."""
    return float(cells) ** 2 * (120 + 4 * reports)


def middles_of(problem: Problem, cells: Ints) -> Floats:
    """About where the cells with mass are, (K, 2), in the order of the problem over them."""
    some = np.flatnonzero(problem.prior.weights)
    which = np.unique(cells[some], return_inverse=True)[1]
    points = _plane(problem)[some]
    sums = np.column_stack([np.bincount(which, column) for column in points.T])
    return sums / np.bincount(which)[:, None]


def has_outer(problem: Problem) -> bool:
    """Whether there is such a problem of a size that can be solved."""
    return _is_plane(problem) or len(problem.secrets) <= _GLOBAL


def _is_plane(problem: Problem) -> bool:
    return gradient_in(problem.statement).mesh.coordinates == "plane"


def network_of(problem: Problem) -> Network | None:
    """The line or roads at every point of which a problem promises something."""
    return problem.mesh if isinstance(problem.mesh, Network) else None


def is_own(problem: Problem) -> bool:
    """Whether the program of a line or roads is itself the one over the vertices, which every
    mechanism solves that is private at every point."""
    along = network_of(problem) is not None and not is_large(problem)
    return along and outer_network(problem) is None


def is_large(problem: Problem) -> bool:
    """Whether a problem asks for metric privacy at every point of a network, an expected loss and
    nothing else, and has so many vertices that nothing is made for all pairs of them."""
    if network_of(problem) is None or problem.objective != "expected_loss":
        return False
    alone = [isinstance(stated, MetricPrivacy) for stated in problem.constraints] == [True]
    return alone and len(problem.secrets) >= LARGE


def over_segments(problem: Problem) -> Statement:
    """What every mechanism keeps at the vertices that is private at every point of a large network
    (``is_large``): e^{εℓ} between the ends of every segment, whose lengths are rounded up; paths
    imply the rest."""
    stated, network = problem.constraints[0], network_of(problem)
    assert network is not None
    assert isinstance(stated, MetricPrivacy)
    ratio = Ratio(0, stated.epsilon, network.lengths_up)
    own = problem.statement
    return Statement(own.prior, own.loss, "expected_loss", (ratio,))


def outer_network(problem: Problem) -> Problem | None:
    """The problem over the vertices of a line or network, which every mechanism solves that is
    private at every point of it; None where it is the problem itself.

    What is promised along the roads is promised between vertices, for distances along the roads,
    which are rounded up. Of many vertices those without prior weight are left out, where nothing
    else is asked for: what they add to the bound takes longer than it is worth.
    """
    network, worst = network_of(problem), problem.statement.segments is not None
    assert network is not None
    metric = [
        isinstance(c, MetricPrivacy) and c.everywhere is not None for c in problem.constraints
    ]
    if not worst and not any(metric):
        return None
    secrets, kept = problem.secrets, np.arange(len(problem.secrets))
    if all(metric) and problem.objective == "expected_loss" and len(secrets) > FEW_BESIDE:
        kept = np.flatnonzero(problem.prior.weights)
        secrets = part_of(secrets, kept.tolist())
    apart = distances.matrix(network.apart[np.ix_(kept, kept)])
    constraints: list[Constraint] = [
        MetricPrivacy(stated.epsilon, apart)
        if isinstance(stated, MetricPrivacy) and stated.everywhere is not None
        else DifferentialPrivacy(stated.epsilon, delta=stated.delta)
        if isinstance(stated, DifferentialPrivacy) and stated.everywhere is not None
        else stated
        for stated in problem.constraints
    ]
    return Problem(
        Prior(secrets, problem.prior.weights[kept]),
        problem.loss_matrix[kept],
        problem.observables,
        objective=problem.objective,
        constraints=constraints,
    )


def over_places(problem: Problem) -> Problem:
    """The problem over the places of one for every point of a region; every number is rounded to
    the side that keeps its optimum a bound."""
    epsilon = gradient_in(problem.statement).epsilon
    apart = distances.matrix(_apart_up(problem))
    return Problem(
        problem.prior,
        problem.loss_matrix,
        problem.observables,
        # what is said of the places is said of every mechanism
        constraints=[MetricPrivacy(epsilon, apart), *beside(problem)],
    )


@record
class Coarsening:
    """Cells of a problem's secrets as the secrets of another, whose numbers are rounded to the side
    that keeps its optimum a bound."""

    problem: Problem
    limits: Limits
    """Floats not below the log ratios between secrets."""
    neighbours: int | None
    """For how many nearest cells of each the exact ratios are found; None for all."""
    boxes: bool
    """Whether costs are those in closed form."""

    @classmethod
    def of(cls, problem: Problem) -> Coarsening:
        """Cells of places where the promise is one for every point of a region, else of secrets."""
        if problem.statement.spread is None:
            return cls(problem, limits_of(problem.statement), _CLOSE, boxes=True)
        return cls(problem, limits_in(problem), _NEIGHBOURS if _is_plane(problem) else None, False)

    def members(self, cells: Ints) -> Members:
        """The members of cells. Raises ProblemError on cells that do not fit."""
        # checking a design over few places needs nothing of this
        from optmech.reductions.aggregation import Members

        return Members.of(self.problem.prior, self.problem.statement.loss, self.limits, cells)

    def over(self, cells: Ints, witness: Witness | None = None) -> Problem:
        """The problem over ``cells`` (n,), with their mass, costs and finite log ratios, its
        numbers as ``witness`` proves them if one is given. Raises ProblemError on cells or a
        witness that do not fit."""
        members = self.members(cells)
        if witness is not None:
            from optmech.reductions.witness import witnessed

            coarse = witnessed(members, witness)
        else:
            from optmech.reductions.aggregation import aggregated

            coarse = aggregated(members, self.neighbours, boxes=self.boxes)
        return Problem(
            Prior(Domain(range(len(coarse.prior))), coarse.prior),
            coarse.cost,
            self.problem.observables,
            constraints=[MetricPrivacy(1, distances.matrix(coarse.log_ratio))],
        )

    def proof(self, cells: Ints, multipliers: Multipliers) -> tuple[OuterProof, float]:
        """The proof of a bound by ``multipliers`` of cells, in few digits and without the least,
        with what proves their ratios and costs; and the bound that it makes."""
        from optmech.reductions.witness import witness_of

        kept = PairMultipliers.none()
        # there are none where one report is the best everywhere
        for given in multipliers.families:
            if isinstance(given, PairMultipliers):
                room = _LEFT_OUT * np.maximum(given.value, 0.0).sum()
                kept = few_digits(given, room, _BITS)
        first, second = np.unique(np.stack([kept.i, kept.j]), axis=1)
        witness = witness_of(self.members(cells), (first, second), boxes=self.boxes)
        statement, own = self.over(cells, witness).statement, Multipliers((kept,))
        proved = lower_bound(statement, own)
        return OuterProof(cells, statement, own, witness), claimable(proved.value)


def beside(problem: Problem) -> list[Constraint]:
    """The constraints beside the promise at every point."""
    promise = gradient_in(problem.statement).index
    return [c for k, c in enumerate(problem.constraints) if k != promise]


def refusal(statement: Statement) -> str:
    """Why a statement has no such problem; empty where it has."""
    if statement.objective != "expected_loss":
        return "only an expected loss can be taken from cells"
    ratios = [family for family in statement.of_kind(Ratio) if family.window is None]
    if not ratios or len(ratios) != len(statement.families):
        return "only ratios of all pairs of secrets can be taken from cells"
    tables = [family.table for family in ratios]
    if not all((np.isfinite(t) | np.eye(len(t), dtype=bool)).all() for t in tables):
        return "some pairs of secrets are not limited"
    return ""


def limits_of(statement: Statement) -> Limits:
    """Floats not below the log ratios that are stated between secrets; 0 from one to itself."""
    parts = [(stated_up(f.epsilon), f.table) for f in statement.of_kind(Ratio)]

    def limits(i: Ints, j: Ints) -> Floats:
        found = np.min([up(rate * distance[i, j]) for rate, distance in parts], axis=0)
        return np.where(i == j, 0.0, found)

    return limits


def limits_in(problem: Problem) -> Limits:
    """Floats not below the log ratios between places that privacy at every point implies."""
    from optmech.reductions.aggregation import above
    from optmech.transport.gains import closed

    rate = stated_up(gradient_in(problem.statement).epsilon)
    if _is_plane(problem):
        points = np.asarray(problem.secrets.require_points("aggregate"), dtype=np.float64)
        return lambda i, j: above(rate, points[i], points[j])
    table = closed(up(rate * _apart_up(problem)))[1]
    return lambda i, j: table[i, j]


def few_digits(given: PairMultipliers, room: float, bits: int) -> PairMultipliers:
    """Multipliers with so many binary digits, and without the least, whose sum is up to ``room``: a
    bound loses no more than these."""
    order = np.argsort(given.value, kind="stable")
    sums = np.cumsum(np.maximum(given.value[order], 0.0))
    first = np.searchsorted(sums, room, side="right")
    kept = given.take(np.sort(order[first:]))
    mantissa, exponent = np.frexp(kept.value)
    return replace(kept, value=np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits))


def _apart_up(problem: Problem) -> Floats:
    """Floats not below the distances between places: Euclidean ones err by two units in the last
    place; on the globe radians, of at most 2π, err by 2^-51 each, which costs less than 1e-9 km
    and, up to half of the globe, less than 1e-9 of the distance."""
    secrets = problem.secrets
    if _is_plane(problem):
        found = up(distances.euclidean()(secrets, secrets) * (1 + 8 * UNIT) + 2.0**-500)
    else:
        found = distances.haversine()(secrets, secrets) * (1 + 1e-9) + 1e-9
    found = np.array(found)
    np.fill_diagonal(found, 0.0)
    return found


def _plane(problem: Problem) -> Floats:
    points = problem.secrets.require_points("aggregate")
    return points * gradient_in(problem.statement).mesh.scale
