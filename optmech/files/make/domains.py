"""Secrets and observables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError, inside
from optmech.exchange.geo import read_geojson
from optmech.exchange.hexagons import from_h3
from optmech.files.make.context import Context, Listed, labels_from, require_room
from optmech.files.make.networks import build_leaves, build_network
from optmech.files.make.zones import distinct_places, merge
from optmech.reading.data import DataFile
from optmech.reading.errors import path_text
from optmech.sections import domains as schema
from optmech.sections.domains import Observables, Secrets
from optmech.spaces import observables
from optmech.spaces.domain import Coordinates, Domain, Grid
from optmech.spaces.labels import find_label


def list_secrets(spec: Secrets, directory: Path) -> Listed:
    """The secrets of a file, before aggregation."""
    if isinstance(spec, schema.Table):
        return _table(spec, directory)
    if isinstance(spec, schema.Zones):
        return _zones(spec, directory)
    if isinstance(spec, schema.Hexagons):
        return Listed(from_h3(spec.cells))
    if isinstance(spec, schema.Network | schema.Tree):
        domain, network = (
            build_leaves(spec) if isinstance(spec, schema.Tree) else build_network(spec, directory)
        )
        return Listed(domain, network=network)
    if isinstance(spec, schema.PointsSecrets | schema.LonLatSecrets):
        globe = isinstance(spec, schema.LonLatSecrets)
        unit = "km" if isinstance(spec, schema.LonLatSecrets) else spec.unit
        points = finite_array(spec.points, where="points", ndim=2)
        with labels_from("labels", merging=True):
            return _points(spec, spec.labels, points, unit, "lonlat" if globe else "plane")
    return Listed(_plain(spec))


def build_observables(spec: Observables, context: Context) -> Domain:
    """The observables, with their suppression symbol last where there is one."""
    domain = _observed(spec, context)
    return domain if spec.suppress is None else observables.suppressible(domain, spec.suppress)


def _observed(spec: Observables, context: Context) -> Domain:
    secrets = context.domain
    if isinstance(spec, schema.Same):
        return secrets
    if isinstance(spec, schema.Coarser):
        if not isinstance(secrets, Grid):
            raise ProblemError(
                "coarser cells need secrets on a grid", where="kind", remedy='Use kind = "subsets"'
            )
        return observables.coarser(secrets, spec.rows, spec.columns)
    if isinstance(spec, schema.Subsets):
        return observables.subsets(secrets, _groups(spec, secrets))
    if isinstance(spec, schema.Zones):
        return _zones(spec, context.directory).domain
    if isinstance(spec, schema.Hexagons):
        return from_h3(spec.cells)
    return _plain(spec)


def _zones(spec: schema.Zones, directory: Path) -> Listed:
    source = DataFile(spec.file, spec.package, spec.resource)
    with labels_from("label"):
        return Listed(read_geojson(source.path(directory), spec.label), table=source)


def _groups(spec: schema.Subsets, secrets: Domain) -> dict[Hashable, list[Hashable]]:
    groups: dict[Hashable, list[Hashable]] = {}
    for name, members in spec.groups.items():
        with inside(path_text(["groups", name])):
            groups[name] = [find_label(secrets, member) for member in members]
    return groups


def _plain(
    spec: schema.Grid | schema.Points | schema.LonLat | schema.Line | schema.Names,
) -> Domain:
    if isinstance(spec, schema.Grid):
        require_room(spec.rows * spec.columns, "rows")
        return Grid(
            spec.rows,
            spec.columns,
            spec.cell,
            unit=spec.unit,
            origin=spec.origin,
            bounds=spec.bounds,
        )
    if isinstance(spec, schema.Line):
        return _line(spec)
    if isinstance(spec, schema.Names):
        return Domain(spec.labels)
    labels = spec.labels if spec.labels is not None else range(len(spec.points))
    if isinstance(spec, schema.LonLat):
        return Domain.geographic(labels, spec.points)
    return Domain(labels, spec.points, spec.unit)


def _line(spec: schema.Line) -> Domain:
    values: Sequence[float] = spec.values or ()
    if spec.count is not None:
        require_room(spec.count, "count")
        values = range(spec.count)
    points = np.array(values, dtype=np.float64)
    if spec.labels is not None:
        return Domain(spec.labels, points, spec.unit)
    with labels_from("values"):
        return Domain([int(x) if x == int(x) else x for x in values], points, spec.unit)


def _table(spec: schema.Table, directory: Path) -> Listed:
    source = DataFile(spec.file, spec.package, spec.resource)
    columns = source.columns(directory, [spec.x, spec.y], [spec.x, spec.y])
    points: Floats = np.column_stack([columns[spec.x], columns[spec.y]])
    labels: Sequence[Hashable] | None = None
    if spec.label is not None:
        labels = source.text_columns(directory, [spec.label])[spec.label]
    with labels_from("label", merging=True):
        listed = _points(spec, labels, points, spec.unit, spec.coordinates)
    return replace(listed, table=source)


def _points(
    spec: schema.Aggregable,
    labels: Sequence[Hashable] | None,
    points: Floats,
    unit: str,
    coordinates: Coordinates,
) -> Listed:
    """A secret for every row, or one for all rows of a label (of a place, without labels)."""
    if not spec.distinct:
        domain = Domain(labels or range(len(points)), points, unit, coordinates=coordinates)
        return Listed(domain, np.arange(len(points)))
    if labels is None:
        first, rows = distinct_places(points)
        return Listed(Domain(range(len(first)), points[first], unit, coordinates=coordinates), rows)
    if len(labels) != len(points):
        raise ProblemError(f"{len(labels)} labels do not fit {len(points)} points", where="labels")
    index = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    rows = np.array([index[label] for label in labels], dtype=np.int64)
    # checked row by row before any mean is taken
    every = Domain(range(len(points)), points, unit, coordinates=coordinates)
    middle = merge(every, rows, None)
    return Listed(Domain(index, middle.points, unit, coordinates=coordinates), rows)
