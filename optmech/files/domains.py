"""``[secrets]`` and ``[observables]``: sets as sections of files."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError, inside
from optmech.exchange.geo import from_h3, read_geojson
from optmech.files.extent import distinct_places, merge
from optmech.files.lattice import Lattice, Mapped
from optmech.files.networks import Network, Tree
from optmech.files.place import Listed, Place, labels_from, require_room
from optmech.reading.data import DataFile
from optmech.reading.errors import path_text
from optmech.reading.sections import (
    Bounds,
    ByKind,
    Count,
    Label,
    LabelReference,
    Labels,
    Point,
    Section,
    Some,
    TwoPositive,
    either,
    is_number,
    refusal,
)
from optmech.spaces import domain as spaces, observables
from optmech.spaces.domain import Coordinates, Domain
from optmech.spaces.labels import find_label

_SIDE = {"type": "number", "exclusiveMinimum": 0}
_CELL_SCHEMA = {"anyOf": [_SIDE, {"type": "array", "items": _SIDE, "minItems": 2, "maxItems": 2}]}
Cell = Annotated[
    TwoPositive,
    BeforeValidator(lambda value: [value, value] if is_number(value) else value),
    WithJsonSchema(_CELL_SCHEMA),
]
"""Width and height; one number means a square."""


class Set(Section):
    """A finite set that a table describes by itself."""

    def domain(self, directory: Path) -> Domain:
        """The set; files are named from ``directory``."""
        return self.listed(directory).domain

    def listed(self, directory: Path) -> Listed:
        """The set as secrets, before any aggregation."""
        return Listed(self.domain(directory))


class Aggregate(Section):
    """Merge nearby points into ``zones`` zones (Ward's method on projected coordinates)."""

    zones: Count


class Aggregable(Section):
    """Points may be merged: those of one label or place into one, nearby ones into zones."""

    distinct: bool = False
    aggregate: Aggregate | None = None

    def merged(
        self,
        labels: Sequence[Hashable] | None,
        points: Floats,
        unit: str,
        coordinates: Coordinates,
    ) -> Listed:
        """A secret for every row, or one for all rows of a label (of a place, without labels)."""
        if not self.distinct:
            domain = Domain(labels or range(len(points)), points, unit, coordinates=coordinates)
            return Listed(domain, np.arange(len(points)))
        if labels is None:
            first, rows = distinct_places(points)
            domain = Domain(range(len(first)), points[first], unit, coordinates=coordinates)
            return Listed(domain, rows)
        if len(labels) != len(points):
            raise ProblemError(
                f"{len(labels)} labels do not fit {len(points)} points", where="labels"
            )
        index = {label: k for k, label in enumerate(dict.fromkeys(labels))}
        rows = np.array([index[label] for label in labels], dtype=np.int64)
        # checked row by row before any mean is taken
        every = Domain(range(len(points)), points, unit, coordinates=coordinates)
        middle = merge(every, rows, None)
        return Listed(Domain(index, middle.points, unit, coordinates=coordinates), rows)


class Grid(Set):
    """A rectangular grid of cells, in a plane or over a box of degrees."""

    kind: Literal["grid"]
    rows: Count
    columns: Count
    cell: Cell | None = None
    unit: str | None = None
    origin: Point | None = None
    bounds: Bounds | None = None

    def refuse_misfits(self) -> None:
        if self.bounds is not None and (self.cell, self.unit, self.origin) != (None, None, None):
            raise refusal(
                "bounds exclude cell, unit and origin",
                "A grid over bounds is measured in km; keep one of the two forms",
            )

    def domain(self, directory: Path) -> Domain:
        require_room(self.rows * self.columns, "rows")
        return spaces.Grid(**self.model_dump(exclude={"kind", "suppress"}))


class Placed(Set):
    """Points, with labels or numbered."""

    coordinates: ClassVar[Coordinates] = "plane"
    points: list[list[float]]
    labels: Labels | None = None

    @property
    def length(self) -> str:
        """The unit of distances."""
        return getattr(self, "unit", "km")

    def domain(self, directory: Path) -> Domain:
        labels = range(len(self.points)) if self.labels is None else self.labels
        return Domain(labels, self.points, self.length, coordinates=self.coordinates)


class Points(Placed):
    """Points in a plane (or in space)."""

    kind: Literal["points"]
    points: Some[Some[float]]
    unit: str = ""


class LonLat(Placed):
    """Points with longitude and latitude in degrees."""

    coordinates: ClassVar[Coordinates] = "lonlat"
    kind: Literal["lonlat"]
    points: Some[Point]


class Line(Set):
    """Numbers on a line: 0 to count - 1, or given values, which are then the labels too."""

    kind: Literal["line"]
    count: Count | None = None
    values: Some[float] | None = None
    labels: Labels | None = None
    unit: str = ""

    _one_form = either("count", "values")

    def domain(self, directory: Path) -> Domain:
        values: Sequence[float] = self.values or ()
        if self.count is not None:
            require_room(self.count, "count")
            values = range(self.count)
        points = np.array(values, dtype=np.float64)
        if self.labels is not None:
            return Domain(self.labels, points, self.unit)
        with labels_from("values"):
            return Domain([int(x) if x == int(x) else x for x in values], points, self.unit)


class Names(Set):
    """A set of names without coordinates."""

    kind: Literal["labels"]
    labels: Labels

    def domain(self, directory: Path) -> Domain:
        return Domain(self.labels)


class DataFileKeys(Section):
    """``file``, or ``package`` and ``resource``."""

    file: str | None = None
    package: str | None = None
    resource: str | None = None

    _one_source = either(
        "file", "package resource", remedy='Give file = "data.csv", relative to this file'
    )

    @property
    def source(self) -> DataFile:
        """Where the data are."""
        return DataFile(self.file, self.package, self.resource)


class Table(DataFileKeys, Aggregable, Mapped):
    """Points read from the columns of a CSV file with a header."""

    kind: Literal["table"]
    x: str
    y: str
    label: str | None = None

    def listed(self, directory: Path) -> Listed:
        """A secret for every row, or for all of a label or place."""
        columns = self.source.columns(directory, [self.x, self.y], [self.x, self.y])
        points: Floats = np.column_stack([columns[self.x], columns[self.y]])
        labels: Sequence[Hashable] | None = None
        if self.label is not None:
            labels = self.source.text_columns(directory, [self.label])[self.label]
        with labels_from("label", merging=True):
            listed = self.merged(labels, points, self.unit, self.coordinates)
        return replace(listed, table=self.source)


class Zones(DataFileKeys, Set):
    """Polygons (or points) of a GeoJSON file: they lie at their centroids, in degrees."""

    kind: Literal["zones"]
    label: str | None = None

    def listed(self, directory: Path) -> Listed:
        """The places, and the file as a table."""
        with labels_from("label"):
            domain = read_geojson(self.source.path(directory), self.label)
        return Listed(domain, table=self.source)


class Hexagons(Set):
    """H3 cells by their indices."""

    kind: Literal["h3"]
    cells: Some[str]

    def domain(self, directory: Path) -> Domain:
        return from_h3(self.cells)


class Rows(Placed, Aggregable):
    """Points, as they are or merged."""

    def listed(self, directory: Path) -> Listed:
        """A secret for every point, or for all of a label or place."""
        points = finite_array(self.points, where="points", ndim=2)
        with labels_from("labels", merging=True):
            return self.merged(self.labels, points, self.length, self.coordinates)


class PointsSecrets(Points, Rows):
    """Points, as they are or merged."""


class LonLatSecrets(LonLat, Rows):
    """Points on the globe, as they are or merged."""


Secrets = Annotated[
    Grid
    | PointsSecrets
    | LonLatSecrets
    | Line
    | Names
    | Table
    | Lattice
    | Zones
    | Hexagons
    | Network
    | Tree,
    ByKind(),
]


class Suppressible(Set):
    """Observables may have a symbol that says nothing."""

    suppress: Label | None = None

    def reports(self, place: Place) -> Domain:
        """The observables without that symbol."""
        return self.domain(place.directory)

    def build(self, place: Place) -> Domain:
        """The observables, with their suppression symbol last where there is one."""
        domain = self.reports(place)
        return domain if self.suppress is None else observables.suppressible(domain, self.suppress)


class Same(Suppressible):
    """The secrets themselves."""

    kind: Literal["same"]

    def reports(self, place: Place) -> Domain:
        return place.secrets


class Coarser(Suppressible):
    """Blocks of ``rows`` x ``columns`` cells of the secrets' grid."""

    kind: Literal["coarser"]
    rows: Count
    columns: Count

    def reports(self, place: Place) -> Domain:
        if not isinstance(place.secrets, spaces.Grid):
            raise ProblemError(
                "coarser cells need secrets on a grid", where="kind", remedy='Use kind = "subsets"'
            )
        return observables.coarser(place.secrets, self.rows, self.columns)


class Subsets(Suppressible):
    """Named sets of secrets."""

    kind: Literal["subsets"]
    groups: Annotated[dict[str, Some[LabelReference]], Field(min_length=1)]

    def reports(self, place: Place) -> Domain:
        groups: dict[Hashable, list[Hashable]] = {}
        for name, members in self.groups.items():
            with inside(path_text(["groups", name])):
                groups[name] = [find_label(place.secrets, member) for member in members]
        return observables.subsets(place.secrets, groups)


class GridObservables(Grid, Suppressible):
    """Another grid."""


class PointsObservables(Points, Suppressible):
    """Other points."""


class LonLatObservables(LonLat, Suppressible):
    """Other points on the globe."""


class LatticeObservables(Lattice, Suppressible):
    """Other places on a lattice."""


class LineObservables(Line, Suppressible):
    """Other numbers."""


class NamesObservables(Names, Suppressible):
    """Other names."""


class ZonesObservables(Zones, Suppressible):
    """Other zones."""


class HexagonsObservables(Hexagons, Suppressible):
    """Other H3 cells."""


Observables = Annotated[
    Same
    | Coarser
    | Subsets
    | GridObservables
    | PointsObservables
    | LonLatObservables
    | LatticeObservables
    | LineObservables
    | NamesObservables
    | ZonesObservables
    | HexagonsObservables,
    ByKind(),
]
