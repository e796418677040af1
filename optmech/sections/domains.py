"""``[secrets]`` and ``[observables]``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from optmech.sections.base import (
    ByKind,
    Count,
    Label,
    LabelReference,
    Labels,
    NonNegative,
    Point,
    Positive,
    Seed,
    Spec,
    either,
    is_label,
    is_number,
    refusal,
)


def _square(value: object) -> object:
    return [value, value] if is_number(value) else value


_SIDE = {"type": "number", "exclusiveMinimum": 0}
_CELL_SCHEMA = {"anyOf": [_SIDE, {"type": "array", "items": _SIDE, "minItems": 2, "maxItems": 2}]}
Cell = Annotated[
    Annotated[list[Positive], Field(min_length=2, max_length=2)],
    BeforeValidator(_square),
    WithJsonSchema(_CELL_SCHEMA),
]
"""Width and height; one number means a square."""


class Aggregate(Spec):
    """Merge nearby points into ``zones`` zones (Ward's method on projected coordinates)."""

    zones: Count


class Aggregable(Spec):
    """Points may be merged: those of one label or place into one, nearby ones into zones."""

    distinct: bool = False
    aggregate: Aggregate | None = None


class Grid(Spec):
    """A rectangular grid of cells, in a plane or over a box of degrees."""

    kind: Literal["grid"]
    rows: Count
    columns: Count
    cell: Cell | None = None
    unit: str | None = None
    origin: Point | None = None
    bounds: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None

    @model_validator(mode="after")
    def _one_scale(self) -> Grid:
        if self.bounds is not None and (self.cell, self.unit, self.origin) != (None, None, None):
            raise refusal(
                "bounds exclude cell, unit and origin",
                "A grid over bounds is measured in km; keep one of the two forms",
            )
        return self


class Points(Spec):
    """Points in a plane (or in space)."""

    kind: Literal["points"]
    points: Annotated[list[Annotated[list[float], Field(min_length=1)]], Field(min_length=1)]
    labels: Labels | None = None
    unit: str = ""


class LonLat(Spec):
    """Points with longitude and latitude in degrees."""

    kind: Literal["lonlat"]
    points: Annotated[list[Point], Field(min_length=1)]
    labels: Labels | None = None


class Line(Spec):
    """Numbers on a line: 0 to count - 1, or given values, which are then the labels too."""

    kind: Literal["line"]
    count: Count | None = None
    values: Annotated[list[float], Field(min_length=1)] | None = None
    labels: Labels | None = None
    unit: str = ""

    _one_form = either("count", "values")


class Names(Spec):
    """A set of names without coordinates."""

    kind: Literal["labels"]
    labels: Labels


class DataFileKeys(Spec):
    """``file``, or ``package`` and ``resource``."""

    file: str | None = None
    package: str | None = None
    resource: str | None = None

    _one_source = either(
        "file", "package resource", remedy='Give file = "data.csv", relative to this file'
    )


class Table(DataFileKeys, Aggregable):
    """Points read from the columns of a CSV file with a header."""

    kind: Literal["table"]
    x: str
    y: str
    label: str | None = None
    coordinates: Literal["plane", "lonlat"] = "plane"
    unit: str = ""

    @model_validator(mode="after")
    def _in_km(self) -> Table:
        if self.coordinates == "lonlat" and self.unit not in ("", "km"):
            raise refusal("longitude and latitude are measured in km", "Drop unit", ("unit",))
        return self


class Zones(DataFileKeys):
    """Polygons (or points) of a GeoJSON file: they lie at their centroids, in degrees."""

    kind: Literal["zones"]
    label: str | None = None


class Hexagons(Spec):
    """H3 cells by their indices."""

    kind: Literal["h3"]
    cells: Annotated[list[str], Field(min_length=1)]


class Roads(Spec):
    """A made-up but realistic road network: a jittered street grid with closed roads."""

    seed: Seed
    rows: Annotated[int, Field(ge=2, le=10**4)]
    columns: Annotated[int, Field(ge=2, le=10**4)]
    spacing: Positive = 1.0
    jitter: Annotated[float, Field(ge=0, le=0.45)] = 0.2
    closed: Annotated[float, Field(ge=0, le=1)] = 0.15


def _edge(value: object) -> Any:
    ends_fit = isinstance(value, list) and len(value) in (2, 3) and all(map(is_label, value[:2]))
    if not ends_fit:
        raise refusal("is not an edge", 'Write ["from", "to"] or ["from", "to", length]')
    assert isinstance(value, list)
    length = value[2] if len(value) == 3 else 1.0
    if not is_number(length) or not 0 <= length < 1e300:
        raise refusal(f"{length!r} is not a length", "Give a finite number >= 0")
    return [value[0], value[1], float(length)]


_END = {"type": ["string", "integer"]}
_EDGE_SCHEMA = {
    "type": "array",
    "prefixItems": [_END, _END, {"type": "number", "minimum": 0}],
    "minItems": 2,
    "maxItems": 3,
}
Edge = Annotated[list[Any], BeforeValidator(_edge), WithJsonSchema(_EDGE_SCHEMA)]
"""[from, to] or [from, to, length]; the length is 1 unless given."""
Edges = Annotated[list[Edge], Field(min_length=1)]


class Network(Spec):
    """The nodes of a graph; ``distance = "graph"`` measures along its edges."""

    kind: Literal["graph"]
    nodes: Labels | None = None
    points: Annotated[list[Point], Field(min_length=1)] | None = None
    edges: Edges | None = None
    file: str | None = None
    roads: Roads | None = None
    osm: str | None = None
    unit: str = ""

    @model_validator(mode="after")
    def _one_form(self) -> Network:
        forms = (self.edges, self.file, self.roads, self.osm)
        if sum(form is not None for form in forms) != 1:
            raise refusal("needs one of edges, file, roads and osm", "Give exactly one of the four")
        made = self.roads is not None or self.osm is not None
        if made and (self.nodes is not None or self.points is not None):
            raise refusal("roads make their own nodes and points", "Drop nodes and points")
        if self.osm is not None and self.unit not in ("", "km"):
            raise refusal("an OpenStreetMap extract is measured in km", "Drop unit", ("unit",))
        if self.points is not None and self.nodes is None:
            raise refusal("points need nodes", "List the nodes in the order of the points")
        return self


class TreeKeys(Spec):
    """A category tree as a table child -> parent; edges have length 1 or the one given."""

    parents: Annotated[dict[str, str], Field(min_length=1)]
    lengths: dict[str, NonNegative] | None = None


class Tree(TreeKeys):
    """The leaves of a category tree; ``distance = "graph"`` is the path length in the tree."""

    kind: Literal["tree"]


class PointsSecrets(Points, Aggregable):
    """Points, as they are or merged."""


class LonLatSecrets(LonLat, Aggregable):
    """Points on the globe, as they are or merged."""


Secrets = Annotated[
    Grid | PointsSecrets | LonLatSecrets | Line | Names | Table | Zones | Hexagons | Network | Tree,
    ByKind(),
]


class Suppressible(Spec):
    """Observables may have a symbol that says nothing."""

    suppress: Label | None = None


class Same(Suppressible):
    """The secrets themselves."""

    kind: Literal["same"]


class Coarser(Suppressible):
    """Blocks of ``rows`` x ``columns`` cells of the secrets' grid."""

    kind: Literal["coarser"]
    rows: Count
    columns: Count


class Subsets(Suppressible):
    """Named sets of secrets."""

    kind: Literal["subsets"]
    groups: Annotated[
        dict[str, Annotated[list[LabelReference], Field(min_length=1)]], Field(min_length=1)
    ]


class GridObservables(Grid, Suppressible):
    """Another grid."""


class PointsObservables(Points, Suppressible):
    """Other points."""


class LonLatObservables(LonLat, Suppressible):
    """Other points on the globe."""


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
    | LineObservables
    | NamesObservables
    | ZonesObservables
    | HexagonsObservables,
    ByKind(),
]
