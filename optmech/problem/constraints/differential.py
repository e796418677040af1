"""Privacy of pairs of secrets: differential, where reports hardly tell adjacent ones apart; policy
graphs, where secrets that are joined are hard to tell apart; and metric, where the nearer two
secrets are, the less reports tell them apart."""

from __future__ import annotations

import numbers as numbers_of
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal, Self, cast

import numpy as np

from optmech.base.edges import Edges
from optmech.base.read_only import Converted, checked, converted, record
from optmech.certificate.families import Approximate, Gradient, Ratio
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import whole
from optmech.exact.number import Exact, Number, float_of, parse_exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.promised import Measure, Pairs, Promised, of_ratios
from optmech.problem.ratios import (
    delta_words,
    measured_everywhere,
    measured_ratio,
    ratio_families,
    require_distance,
    require_network,
    require_places,
    require_vertices,
    triangle_notes,
)
from optmech.problem.space import Bools, Place, Space
from optmech.spaces.distances import Distance, DistanceLike, as_distance, dimensions, is_metric
from optmech.spaces.labels import find_index, find_label
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.network import Network

Adjacency = Literal["all"] | tuple[tuple[Any, Any], ...] | tuple[Distance, float]
AdjacencyLike = Literal["all"] | Sequence[Sequence[Hashable]] | tuple[DistanceLike, float]


def as_adjacency(value: AdjacencyLike) -> Adjacency:
    """Which secrets are adjacent, checked as far as it can be without them."""
    remedy = 'Give "all", a list of pairs of indices or of labels, or (distance, radius)'
    if isinstance(value, str):
        if value != "all":
            raise ProblemError(f"{value!r} is unknown", remedy=remedy)
        return "all"
    try:
        items: list[Any] = list(value)
    except TypeError:
        raise ProblemError(f"{type(value).__name__} is unknown", remedy=remedy) from None
    if len(items) == 2 and (callable(items[0]) or dimensions(items[0]) == 2):
        radius = float_of(items[1], "radius")
        return (as_distance(items[0], where="[0]"), radius)
    if not items:
        raise ProblemError("there is no pair", remedy=remedy)
    return tuple(_pair(item, f"[{k}]", remedy) for k, item in enumerate(items))


def _pair(item: Any, where: str, remedy: str) -> tuple[Any, Any]:
    """Two indices, or two labels, which are looked up where there is a domain."""
    try:
        i, j = item
        numbers = [isinstance(x, numbers_of.Real) or hasattr(x, "__index__") for x in (i, j)]
        fits = isinstance(item, list | tuple) or hasattr(item, "shape")
        if all(numbers):
            fits = min(i, j) >= 0 and all(float(x) == int(x) for x in (i, j))
            i, j = int(i), int(j)
        else:
            fits &= not any(numbers) and all(isinstance(x, Hashable) for x in (i, j))
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ProblemError(
            f"{item!r} is not a pair of indices or labels", where=where, remedy=remedy
        )
    if i == j:
        raise ProblemError(
            f"secret {i!r} is paired with itself, which promises nothing",
            where=where,
            remedy="Name two different secrets",
        )
    return i, j


def _write(value: Adjacency, space: Space) -> Plain:
    if value == "all":
        return "all"
    if callable(value[0]):
        return {"distance": fields.write_distance(value[0], space), "radius": value[1]}
    return [list(_indices(pair, space)) for pair in value]


def _indices(pair: tuple[Any, Any], space: Space) -> tuple[int, int]:
    """Indices as they are, and those of labels."""
    if all(isinstance(end, int) for end in pair):
        return pair
    return find_index(space.secrets, pair[0]), find_index(space.secrets, pair[1])


def _read(plain: Plain, space: Space) -> Any:
    if isinstance(plain, dict):
        return (fields.read_distance(plain["distance"], space), plain["radius"])
    return plain


def _build(spec: Any, place: Place) -> Any:
    if isinstance(spec, str):
        return spec
    if spec.distance is not None:
        with inside("distance"):
            return (spec.distance.build(place), spec.radius)
    pairs = []
    for k, (a, b) in enumerate(spec.pairs):
        with inside(f"pairs[{k}]"):
            pairs.append((find_index(place.secrets, a), find_index(place.secrets, b)))
    return pairs


FIELDS[as_adjacency] = Field("adjacency", _write, _read, _build)


@constraint("differential_privacy")
@record
class DifferentialPrivacy(Constraint):
    """p(o|s) <= e^ε p(o|s') for adjacent s, s', all o (Shokri, PETS 2015, eq. 14, 23; Kawamoto and
    Murakami, ESORICS 2019, Def. 1).

    With ``delta`` > 0: Σ_o max(0, p(o|s) - e^ε p(o|s')) <= δ. ``adjacency`` is ``"all"``, a
    sequence of pairs of labels, or of indices where labels are whole numbers too (each taken in
    both directions), or ``(distance, radius)`` for
    d(s,s') <= radius.

    With ``everywhere``, a line or network such as ``Mesh.line``, it holds for **all** points of it,
    all of which are adjacent: the mechanism reports from any point, and the secrets are the
    vertices.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy(epsilon="ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> print(round(om.solve(problem).loss, 6))  # Warner's randomised response: 1 / (3 + 1)
    0.25
    >>> promise.adjacent(problem.space).tolist()  # yes beside no
    [[False, True], [True, False]]
    """

    later = ("everywhere",)
    epsilon: Converted[Number, Exact] = converted(fields.number)
    adjacency: Converted[AdjacencyLike, Adjacency] = converted(as_adjacency, default="all")
    delta: Converted[Number, Exact] = converted(fields.delta, default=fields.ZERO)
    everywhere: Mesh | None = checked(fields.mesh, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.everywhere is not None:
            require_network(self.everywhere)
            if self.adjacency != "all":
                raise ProblemError(
                    "all points are adjacent", where="adjacency", remedy="Leave one of the two out"
                )

    def adjacent(self, space: Space) -> Bools:
        """The adjacent pairs of different secrets, shape (S, S)."""
        count = len(space.secrets)
        if self.adjacency == "all":
            return ~np.eye(count, dtype=bool)
        if callable(self.adjacency[0]):
            distance, radius = self.adjacency
            return space.near(distance, radius, "adjacency")
        found = np.zeros((count, count), dtype=bool)
        for k, pair in enumerate(self.adjacency):
            with inside(f"adjacency[{k}]"):
                i, j = _indices(pair, space)
            if max(i, j) >= count:
                raise ProblemError(
                    f"pair ({i}, {j}) is outside the {count} secrets",
                    where=f"adjacency[{k}]",
                    remedy=f"Indices run from 0 to {count - 1}",
                )
            found[i, j] = found[j, i] = True
        return found

    def families(self, index: int, space: Space) -> Iterator[Ratio | Approximate]:
        if self.everywhere is not None:
            require_vertices(self.everywhere, space)
        distance = np.where(self.adjacent(space), 1.0, np.inf)
        yield from ratio_families(index, self.epsilon, distance, self.delta)

    def promise(self, space: Space) -> str:
        if self.everywhere is not None:
            pairs = f"all points of {self.everywhere.words}"
        elif self.adjacency == "all":
            pairs = "all pairs"
        elif callable(self.adjacency[0]):
            pairs = f"pairs up to {space.length(self.adjacency[1], self.adjacency[0])} apart"
        else:
            pairs = f"{len(self.adjacency)} pairs"
        return f"ε = {self.epsilon.words}, {pairs}{delta_words(self.delta)}"

    def promised(self, space: Space) -> Promised:
        if self.everywhere is not None:
            return of_ratios("every point", self.epsilon, self.delta)
        if self.adjacency == "all":
            return of_ratios("secrets", self.epsilon, self.delta)
        if callable(self.adjacency[0]):
            distance, radius = self.adjacency
            measure = Measure.of(distance, space)
            return of_ratios(
                "secrets", self.epsilon, self.delta, pairs="near", limit=radius, measure=measure
            )
        return of_ratios("secrets", self.epsilon, self.delta, pairs="listed")

    def measured(self, m: Mechanism, space: Space) -> Kept:
        pairs = None if self.adjacency == "all" else np.argwhere(self.adjacent(space))
        return measured_ratio(m, self.epsilon, self.delta, None, pairs)

    def idle(self, space: Space) -> Remarks:
        if self.delta >= 1:
            return [("", "δ is 1")]
        return [] if self.adjacent(space).any() else [("", "no two secrets are adjacent")]


_ROUNDING = 1e-12
"""By which sums of lengths may seem to be shorter."""
Edge = tuple[Hashable, Hashable, float]


def as_edges(value: Any) -> tuple[Edge, ...]:
    """A networkx graph without directions, whose nodes are labels of secrets and whose "weight" is
    the length of an edge (1 without it), or a list of (label, label) or (label, label, length)."""
    if hasattr(value, "is_directed"):
        if value.is_directed():
            raise ProblemError("has directions", remedy="Give an undirected graph")
        value = [(a, b, data.get("weight", 1.0)) for a, b, data in value.edges(data=True)]
    remedy = "Give a networkx graph, or a list of (label, label) or (label, label, length)"
    try:
        items = [tuple(item) for item in value]
    except TypeError:
        raise ProblemError("is no graph", remedy=remedy) from None
    found = []
    for k, item in enumerate(items):
        if len(item) not in (2, 3):
            raise ProblemError("is not an edge", where=f"[{k}]", remedy=remedy)
        length = float_of(item[2] if len(item) == 3 else 1.0, f"[{k}]")
        if item[0] == item[1]:
            raise ProblemError(
                f"joins {item[0]!r} with itself, which promises nothing",
                where=f"[{k}]",
                remedy="Name two different secrets",
            )
        found.append((item[0], item[1], length))
    if not found:
        raise ProblemError("has no edge", remedy="Join at least two secrets")
    return tuple(found)


def _load_edges(plain: Plain, space: Space) -> Any:
    labels, last = space.secrets.labels, len(space.secrets) - 1
    return [(*(labels[whole(k, "graph", 0, last)] for k in (i, j)), d) for i, j, d in plain]


def _build_edges(spec: Any, place: Place) -> list[Edge]:
    found = []
    for k, (a, b, *length) in enumerate(spec):
        with inside(f"[{k}]"):
            ends = (find_label(place.secrets, end) for end in (a, b))
            found.append((*ends, length[0] if length else 1.0))
    return cast(list[Edge], found)


def _ends(space: Space, edge: Edge) -> tuple[int, int]:
    return find_index(space.secrets, edge[0]), find_index(space.secrets, edge[1])


FIELDS[as_edges] = Field(
    "edges",
    lambda value, space: [[*_ends(space, edge), edge[2]] for edge in value],
    _load_edges,
    _build_edges,
)


@constraint("policy_graph")
@record
class PolicyGraph(Constraint):
    """p(o|s) <= exp(ε d(s,s')) p(o|s') for all s, s', o, with d the distance in a graph of the
    secrets; pairs that no path joins are free (He, Machanavajjhala and Ding, *Blowfish Privacy*,
    SIGMOD 2014; Cao et al., *PGLP*, ESORICS 2020).

    ``graph`` is a networkx graph or a list of edges, (label, label) or (label, label, length); an
    edge has length 1 unless it says otherwise. Stating the inequality for the edges states it for
    all pairs, as it multiplies along paths.

    Examples
    --------
    >>> rooms = om.Domain(["hall", "lab", "office"])
    >>> promise = om.constraints.PolicyGraph("ln 3", [("lab", "office")])  # the hall may be told
    >>> problem = om.Problem(om.Prior.uniform(rooms), om.distances.hamming(), constraints=[promise])
    >>> print(round(om.solve(problem).loss, 6))  # 2/3 of 1/4
    0.166667
    >>> len(promise.edges(problem.space))  # both ways
    2
    """

    epsilon: Converted[Number, Exact] = converted(fields.number)
    graph: Converted[Any, tuple[Edge, ...]] = converted(as_edges)

    def edges(self, space: Space) -> Edges:
        """The length of every edge, both ways. Raises ProblemError where a node is no secret."""
        ends = []
        for k, edge in enumerate(self.graph):
            with inside(f"graph[{k}]"):
                ends.append(_ends(space, edge))
        i, j = np.array(ends, dtype=np.int64).T
        length = [edge[2] for edge in self.graph]
        return Edges.of(len(space.secrets), i, j, length, both=True)

    def families(self, index: int, space: Space) -> Iterator[Ratio]:
        yield Ratio(index, self.epsilon, self.edges(space))

    def promise(self, space: Space) -> str:
        count = "one edge" if len(self.graph) == 1 else f"{len(self.graph)} edges"
        return f"ε = {self.epsilon.words} per unit of length in a graph of {count}"

    def promised(self, space: Space) -> Promised:
        measure = Measure("graph")
        return of_ratios("secrets", self.epsilon, fields.ZERO, pairs="joined", measure=measure)

    def measured(self, m: Mechanism, space: Space) -> Kept:
        edges = self.edges(space)
        apart = np.where(np.isfinite(edges.table), edges.table, 1.0)
        pairs = np.column_stack([edges.i, edges.j])
        return measured_ratio(m, self.epsilon, fields.ZERO, lambda *_: apart, pairs)

    def idle(self, space: Space) -> Remarks:
        return []

    def notes(self, space: Space) -> Remarks:
        edges = self.edges(space)
        alone = edges.count - len(np.unique(edges.i))
        found = []
        if alone:
            found.append((".graph", f"{alone} secrets are joined with none and are not protected"))
        if (edges.shortest() < edges.value * (1 - _ROUNDING)).any():
            found.append((".graph", "some edges are longer than a path and say nothing"))
        return found


ONE = parse_exact(1, where="")


@constraint("metric_privacy")
@record
class MetricPrivacy(Constraint):
    """p(o|s) <= exp(ε d(s,s')) p(o|s') for all s, s', o (Shokri, PETS 2015, eq. 10, 15, 22;
    Kawamoto and Murakami, ESORICS 2019, Def. 4).

    With ``delta`` > 0: Σ_o max(0, p(o|s) - exp(ε d(s,s')) p(o|s')) <= δ for all s, s'. A matrix may
    have infinite entries: nothing is asked of these pairs.

    ``threshold`` and ``observable_threshold`` keep only the inequalities with d(s,s') <= τ and
    d(s,o) <= τ_o (Shokri, PETS 2015, Appendix C). That weakens what is promised: the design then
    reports the ε that really holds.

    With ``everywhere``, a ``Mesh``, the promise is p(o|x) <= exp(ε d(x,y)) p(o|y) at **all** points
    x, y of the mesh's region, for the Euclidean distance (great-circle on a mesh in degrees). The
    secrets of the problem are then places of the region that the prior and the loss speak of, and
    the design is a mechanism that reports from any point. On a line or a network
    (``Mesh.line``, ``Mesh.roads``) d is the distance along it, and the secrets are its vertices.
    Beside ``everywhere`` the distance may be left out.

    Examples
    --------
    >>> line = om.Domain.range(3, unit="km")
    >>> km = om.distances.euclidean()
    >>> promise = om.MetricPrivacy(epsilon="ln 2", distance=km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(line), km, constraints=[promise]))
    >>> print(design.status, round(design.loss, 4))
    optimal 0.5556
    >>> print(round(om.measures.epsilon(design.mechanism, km), 4))  # ln 2 per km
    0.6931
    >>> free = om.MetricPrivacy(1, [[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]])
    >>> free.leaves_out(design.problem.space)  # nothing is asked of the two ends
    True
    """

    later = ("everywhere",)
    epsilon: Converted[Number, Exact] = converted(fields.number)
    # a promise without one is refused, or has that of its mesh
    distance: Converted[DistanceLike | None, Distance] = converted(  # type: ignore[assignment]
        fields.distance, default=None
    )
    threshold: float | None = checked(fields.limit, default=None)
    observable_threshold: float | None = checked(fields.limit, default=None)
    delta: Converted[Number, Exact] = converted(fields.delta, default=fields.ZERO)
    everywhere: Mesh | None = checked(fields.mesh, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.everywhere is not None:
            measured = require_distance(self.epsilon, self.distance, self.everywhere)
            object.__setattr__(self, "distance", measured)
            for name in ("threshold", "observable_threshold", "delta"):
                if getattr(self, name):
                    raise ProblemError(
                        "has no meaning for privacy at every point",
                        where=name,
                        remedy="Drop it, or leave everywhere out",
                    )
        elif self.distance is None:
            raise ProblemError(
                "is missing: None is not a distance",
                where="distance",
                remedy="Use a member of om.distances, such as om.distances.hamming()",
            )
        if self.observable_threshold is not None and self.delta > 0:
            raise ProblemError(
                "an observable threshold has no meaning together with delta > 0",
                where="observable_threshold",
                remedy="Drop one of the two",
            )

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values; a distance that is compared with observables has those values
        too. Privacy at every point has the distance by its name."""
        if self.everywhere is not None:
            return {
                "epsilon": self.epsilon.text,
                "distance": self.everywhere.measure[0],
                "everywhere": self.everywhere.to_dict(),
            }
        reach = self.observable_threshold is not None
        written = fields.write_distance(self.distance, space, reach=reach)
        return {**super().plain(space), "distance": written}

    @classmethod
    def load(cls, plain: Plain, space: Space) -> Self:
        """The constraint of plain values, as ``plain`` writes them."""
        if "everywhere" not in plain:
            return super().load(plain, space)
        mesh = Mesh.from_dict(plain["everywhere"], "everywhere")
        name, distance = mesh.measure
        if plain["distance"] != name:
            raise ProblemError(f"{plain['distance']!r} is not {name}", where="distance")
        return cls(plain["epsilon"], distance, everywhere=mesh)

    def families(self, index: int, space: Space) -> Iterator[Ratio | Approximate | Gradient]:
        if isinstance(self.everywhere, Network):
            # what holds between neighbours holds along all paths
            require_vertices(self.everywhere, space)
            yield Ratio(index, ONE, self.everywhere.log_ratios(self.epsilon))
            return
        if self.everywhere is not None:
            points = require_places(self.everywhere, space)
            yield Gradient(index, self.epsilon, self.everywhere, points)
            return
        distance = np.array(space.apart(self.distance, infinite=True))
        if self.threshold is not None:
            distance[distance > self.threshold] = np.inf
        window = None
        if self.observable_threshold is not None:
            window = space.reach(self.distance) <= self.observable_threshold
        yield from ratio_families(index, self.epsilon, distance, self.delta, window)

    def leaves_out(self, space: Space) -> bool:
        """Whether some secrets are at an infinite distance."""
        if self.threshold is not None or self.everywhere is not None or is_metric(self.distance):
            return False
        return bool(np.isinf(space.apart(self.distance, infinite=True)).any())

    def promise(self, space: Space) -> str:
        per = space.per(self.distance)
        if self.everywhere is not None and not self.everywhere.is_region:
            per = self.everywhere.unit or "unit of length"
        text = f"ε = {self.epsilon.words} per {per}"
        if self.everywhere is not None:
            text += f", at every point of {self.everywhere.words}"
        if self.threshold is not None:
            text += f", for secrets up to {space.length(self.threshold, self.distance)} apart"
        if self.observable_threshold is not None:
            far = space.length(self.observable_threshold, self.distance)
            text += f", where observables are up to {far} away"
        if self.leaves_out(space):
            text += ", for the pairs at a finite distance"
        return text + delta_words(self.delta)

    def promised(self, space: Space) -> Promised:
        if self.everywhere is not None:
            mesh, unit = self.everywhere, self.everywhere.unit or space.secrets.unit
            measure = Measure.called(mesh.measure[0], unit, mesh)
            return of_ratios("every point", self.epsilon, self.delta, measure=measure)
        measure = Measure.of(self.distance, space)
        pairs: Pairs = "all" if self.threshold is None else "near"
        pairs = "listed" if self.leaves_out(space) else pairs
        limit = self.threshold
        if self.observable_threshold is not None:
            pairs, limit = "reached", self.observable_threshold
        return of_ratios(
            measure.scope(space.secrets),
            self.epsilon,
            self.delta,
            pairs=pairs,
            limit=limit,
            measure=measure,
        )

    def measured(self, m: Mechanism, space: Space) -> Kept | None:
        if self.everywhere is not None:
            return measured_everywhere(m, self.everywhere, self.epsilon)
        if self.observable_threshold is not None:
            return None
        pairs = None
        if self.threshold is not None:
            pairs = np.argwhere(space.near(self.distance, self.threshold))
        return measured_ratio(m, self.epsilon, self.delta, self.distance, pairs)

    def idle(self, space: Space) -> Remarks:
        if self.everywhere is not None:
            return []
        if self.delta >= 1:
            return [("", "δ is 1")]
        most = np.finfo(np.float64).max if self.threshold is None else self.threshold
        if not space.near(self.distance, most).any():
            return [("", "no pair of secrets is kept")]
        if (
            self.observable_threshold is not None
            and not (space.reach(self.distance) <= self.observable_threshold).any()
        ):
            return [("", "no observable is near enough to any secret")]
        return []

    def notes(self, space: Space) -> Remarks:
        if self.everywhere is not None:
            return []
        found = triangle_notes(self.distance, space)
        if self.threshold is not None or self.observable_threshold is not None:
            kept = "thresholds drop inequalities; the promise of metric privacy holds only for the "
            found.append(("", f"{kept}pairs that are kept"))
        return found
