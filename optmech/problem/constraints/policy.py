"""Policy graphs: secrets that are joined are hard to tell apart, the nearer the harder."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, cast

import numpy as np
from attrs import field, frozen

from optmech.base.edges import Edges
from optmech.certificate.families import Ratio
from optmech.errors import ProblemError, inside
from optmech.exact.number import Exact, float_of
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.ratios import measured_ratio
from optmech.problem.space import Place, Space
from optmech.spaces.labels import find_index, find_label
from optmech.spaces.mechanism import Mechanism

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


def _write(value: tuple[Edge, ...], space: Space) -> Plain:
    return [[*_ends(space, edge), edge[2]] for edge in value]


def _load(plain: Plain, space: Space) -> Any:
    labels, count = space.secrets.labels, len(space.secrets)
    return [(*(labels[fields.index(k, count, "graph")] for k in (i, j)), d) for i, j, d in plain]


def _build(spec: Any, place: Place) -> list[Edge]:
    found = []
    for k, (a, b, *length) in enumerate(spec):
        with inside(f"[{k}]"):
            ends = (find_label(place.secrets, end) for end in (a, b))
            found.append((*ends, length[0] if length else 1.0))
    return cast(list[Edge], found)


def _ends(space: Space, edge: Edge) -> tuple[int, int]:
    return find_index(space.secrets, edge[0]), find_index(space.secrets, edge[1])


FIELDS[as_edges] = Field("edges", plain=_write, load=_load, build=_build)


@constraint("policy_graph")
@frozen(repr=False, field_transformer=fields.placed)
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
    >>> promise = om.PolicyGraph("ln 3", [("lab", "office")])  # the hall may be told
    >>> problem = om.Problem(om.Prior.uniform(rooms), om.distances.hamming(), constraints=[promise])
    >>> print(round(om.solve(problem).loss, 6))  # 2/3 of 1/4
    0.166667
    >>> len(promise.edges(problem.space))  # both ways
    2
    """

    epsilon: Exact = field(converter=fields.number)
    graph: tuple[Edge, ...] = field(converter=as_edges)

    def edges(self, space: Space) -> Edges:
        """The length of every edge, both ways. Raises ProblemError where a node is no secret."""
        ends = []
        for k, edge in enumerate(self.graph):
            with inside(f"graph[{k}]"):
                ends.append(_ends(space, edge))
        i, j = np.array(ends, dtype=np.int64).T
        length = np.array([edge[2] for edge in self.graph])
        both = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([length, length])
        return Edges.of(len(space.secrets), *both)

    def families(self, index: int, space: Space) -> Iterator[Ratio]:
        yield Ratio(index, self.epsilon, self.edges(space))

    def promise(self, space: Space) -> str:
        count = "one edge" if len(self.graph) == 1 else f"{len(self.graph)} edges"
        return f"ε = {self.epsilon.words} per unit of length in a graph of {count}"

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
