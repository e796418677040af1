"""Distances and losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, inside
from optmech.files.make.context import Context
from optmech.files.make.networks import build_tree, connect, read_edges
from optmech.files.make.priors import build_prior
from optmech.reading.data import DataFile
from optmech.sections import metrics as schema
from optmech.sections.metrics import DistanceSpec, LossSpec
from optmech.spaces import distances, losses
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.observables import Subsets, Suppressible
from optmech.spaces.tabulated import NAMED


def build_distance(spec: DistanceSpec, context: Context) -> Distance:
    """A distance by its name or table."""
    if isinstance(spec, schema.MatrixDistance):
        return distances.matrix(read_matrix(spec.values, spec.file, context, "values"))
    if isinstance(spec, schema.ElasticDistance):
        with inside("mass"):
            mass = build_prior(spec.mass, context)
        base = NAMED[spec.distance]
        return distances.elastic(mass, spec.share, distance=base, exponent=spec.exponent)
    if isinstance(spec, schema.TreeDistance):
        return distances.graph(build_tree(spec, context.domain))
    if isinstance(spec, schema.GraphDistance) and (spec.edges or spec.file):
        edges = read_edges(spec.edges, spec.file, context.directory)
        return distances.graph(connect(edges, context.domain))
    name = spec if isinstance(spec, str) else spec.kind
    if name == "graph":
        if context.listed.network is None:
            raise ProblemError(
                "there is no graph to measure on",
                remedy='Use secrets of kind = "graph" or "tree", or give edges = [...]',
            )
        return distances.graph(context.listed.network)
    return NAMED[name]


def build_loss(spec: LossSpec, context: Context, observed: Domain) -> Distance | Floats:
    """A loss by its name or table, for the given observables."""
    if isinstance(spec, str):
        spec = schema.LossTable(distance=spec)
    if spec.distance is None:
        return read_matrix(spec.matrix, spec.file, context, "matrix")
    with inside("distance"):
        loss = build_distance(spec.distance, context)
    inner = observed.inner if isinstance(observed, Suppressible) else observed
    if spec.power != 1:
        loss = losses.powered(loss, spec.power)
    if spec.reduce is not None:
        if isinstance(inner, Subsets):
            loss = losses.over_members(loss, spec.reduce)
        elif isinstance(inner, Grid) or inner.outlines is not None:
            loss = losses.over_cells(loss, spec.reduce)
        else:
            raise ProblemError(
                "there are no sets or cells to reduce over",
                where="reduce",
                remedy='Use observables of kind = "coarser", "subsets" or "grid", or secrets that '
                "are a grid or zones, or drop the key",
            )
    if (spec.suppression is not None) != isinstance(observed, Suppressible):
        raise ProblemError(
            "the loss and the observables do not agree on suppression",
            where="suppression",
            remedy="Give loss.suppression, a number, together with observables.suppress",
        )
    return loss if spec.suppression is None else losses.with_suppression(loss, spec.suppression)


def read_matrix(
    values: list[list[float]] | None, file: str | None, context: Context, key: str
) -> Floats:
    """Rows of numbers given inline or as a CSV file; rows of one length."""
    rows: Sequence[Sequence[float] | Floats] = (
        values if values is not None else DataFile(file).matrix(context.directory)
    )
    place = key if values is not None else "file"
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ProblemError(
                f"row {i} has {len(row)} entries and row 0 has {len(rows[0])}",
                where=place,
                remedy="Give rows of one length",
            )
        numbers = np.asarray(row, dtype=np.float64)
        bad = np.flatnonzero(~((numbers >= 0) & np.isfinite(numbers)))
        if len(bad):
            raise ProblemError(
                f"the entry at [{i}][{bad[0]}] is {numbers[bad[0]].item()!r}, not a finite "
                "number >= 0",
                where=place,
                remedy="Give finite numbers >= 0",
            )
    if not rows:
        raise ProblemError("is empty", where=place, remedy="Give rows of numbers")
    return np.array(rows, dtype=np.float64)
