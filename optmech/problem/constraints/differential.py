"""Differential privacy: reports hardly tell adjacent secrets apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

from optmech.certificate.families import Approximate, Ratio
from optmech.errors import ProblemError, inside
from optmech.exact.number import Exact, float_of
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.ratios import delta_words, measured_ratio, ratio_families
from optmech.problem.regions import require_network, require_vertices
from optmech.problem.space import Bools, Place, Space
from optmech.spaces.distances import Distance, DistanceLike, as_distance, dimensions
from optmech.spaces.labels import find_index
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.network import Network

Adjacency = Literal["all"] | tuple[tuple[int, int], ...] | tuple[Distance, float]


def as_adjacency(
    value: Literal["all"] | Sequence[Sequence[int]] | tuple[DistanceLike, float],
) -> Adjacency:
    """Which secrets are adjacent, checked as far as it can be without them."""
    remedy = 'Give "all", a list of index pairs, or (distance, radius)'
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


def _pair(item: Any, where: str, remedy: str) -> tuple[int, int]:
    try:
        i, j = (int(x) for x in item)
        whole = all(float(x) == int(x) for x in item)
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or min(i, j) < 0:
        raise ProblemError(f"{item!r} is not a pair of indices", where=where, remedy=remedy)
    if i == j:
        raise ProblemError(
            f"secret {i} is paired with itself, which promises nothing",
            where=where,
            remedy="Name two different secrets",
        )
    return i, j


def _write(value: Adjacency, space: Space) -> Plain:
    if value == "all":
        return "all"
    if callable(value[0]):
        return {"distance": fields.write_distance(value[0], space), "radius": value[1]}
    return [list(pair) for pair in value]


def _read(plain: Plain, space: Space) -> Any:
    if isinstance(plain, dict):
        return (fields.read_distance(plain["distance"], space), plain["radius"])
    return plain if plain == "all" else [tuple(pair) for pair in plain]


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
@frozen(repr=False, field_transformer=fields.placed)
class DifferentialPrivacy(Constraint):
    """p(o|s) <= e^ε p(o|s') for adjacent s, s', all o (Shokri, PETS 2015, eq. 14, 23; Kawamoto and
    Murakami, ESORICS 2019, Def. 1).

    With ``delta`` > 0: Σ_o max(0, p(o|s) - e^ε p(o|s')) <= δ. ``adjacency`` is ``"all"``, a
    sequence of index pairs (each taken in both directions), or ``(distance, radius)`` for
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
    epsilon: Exact = field(converter=fields.number)
    adjacency: Adjacency = field(default="all", converter=as_adjacency)
    delta: Exact = field(default=fields.ZERO, converter=fields.delta)
    everywhere: Mesh | None = field(default=None, converter=fields.mesh)

    def __attrs_post_init__(self) -> None:
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
        for k, (i, j) in enumerate(self.adjacency):
            if max(i, j) >= count:
                raise ProblemError(
                    f"pair ({i}, {j}) is outside the {count} secrets",
                    where=f"adjacency[{k}]",
                    remedy=f"Indices run from 0 to {count - 1}",
                )
            found[i, j] = found[j, i] = True
        return found

    def families(self, index: int, space: Space) -> Iterator[Ratio | Approximate]:
        if isinstance(self.everywhere, Network):
            require_vertices(self.everywhere, space)
        distance = np.where(self.adjacent(space), 1.0, np.inf)
        yield from ratio_families(index, self.epsilon, distance, self.delta)

    def promise(self, space: Space) -> str:
        if self.everywhere is not None:
            pairs = f"all points of {self.everywhere.words}"
        elif self.adjacency == "all":
            pairs = "all pairs"
        elif callable(self.adjacency[0]):
            pairs = f"pairs up to {self.adjacency[1]:g} apart"
        else:
            pairs = f"{len(self.adjacency)} pairs"
        return f"ε = {self.epsilon.words}, {pairs}{delta_words(self.delta)}"

    def measured(self, m: Mechanism, space: Space) -> Kept:
        pairs = None if self.adjacency == "all" else np.argwhere(self.adjacent(space))
        return measured_ratio(m, self.epsilon, self.delta, None, pairs)

    def idle(self, space: Space) -> Remarks:
        if self.delta >= 1:
            return [("", "δ is 1")]
        return [] if self.adjacent(space).any() else [("", "no two secrets are adjacent")]
