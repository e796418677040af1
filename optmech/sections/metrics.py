"""Distances and losses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from optmech.sections.base import (
    ByKind,
    Matrix,
    NonNegative,
    Positive,
    Spec,
    either,
    refusal,
    table_or_name,
)
from optmech.sections.domains import Edges, TreeKeys
from optmech.sections.priors import PriorSpec

DistanceName = Literal["euclidean", "manhattan", "hamming", "haversine", "graph"]


class Named(Spec):
    """A distance without parameters; the same as its bare name."""

    kind: Literal["euclidean", "manhattan", "hamming", "haversine"]


class GraphDistance(Spec):
    """Shortest path along edges; without ``edges`` or ``file`` those of the secrets' graph."""

    kind: Literal["graph"]
    edges: Edges | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> GraphDistance:
        if self.edges is not None and self.file is not None:
            raise refusal("has both edges and file", "Give one of the two")
        return self


class TreeDistance(TreeKeys):
    """Path length in a category tree; secrets are nodes of the tree."""

    kind: Literal["tree"]


class MatrixDistance(Spec):
    """A given matrix, in the order of the secrets."""

    kind: Literal["matrix"]
    values: Matrix | None = None
    file: str | None = None

    _one_form = either("values", "file")


class ElasticDistance(Spec):
    """A distance that stretches where much is: within r live at least share · r^exponent."""

    kind: Literal["elastic"]
    mass: PriorSpec
    share: Positive
    distance: Literal["euclidean", "manhattan", "haversine"] = "euclidean"
    exponent: Positive = 2.0


DistanceSpec = Annotated[
    DistanceName | Named | GraphDistance | TreeDistance | MatrixDistance | ElasticDistance,
    ByKind(),
]


class LossTable(Spec):
    """A loss from a distance, or a matrix with a row per secret and a column per observable."""

    distance: DistanceSpec | None = None
    power: Positive = 1.0
    reduce: Literal["mean", "max", "min"] | None = None
    suppression: NonNegative | None = None
    matrix: Matrix | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> LossTable:
        if sum(form is not None for form in (self.distance, self.matrix, self.file)) != 1:
            raise refusal("needs one of distance, matrix and file", "Give exactly one of the three")
        options = {"power", "reduce", "suppression"} & self.model_fields_set
        if self.distance is None and options:
            raise refusal(
                f"{', '.join(sorted(options))} need a distance",
                "A matrix is taken as it is, with a column for every observable",
            )
        return self


LossSpec = Annotated[DistanceName | LossTable, ByKind(table_or_name)]
