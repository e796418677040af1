"""Zones, places and hexagons from GeoJSON, GeoPandas and H3, as domains in degrees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.arrays import Floats, unwrapped
from optmech.base.machine import needed
from optmech.errors import ProblemError
from optmech.reading.bounded import translated
from optmech.reading.columns import read_features, require_columns, shapes_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain

if TYPE_CHECKING:
    import geopandas as gpd


@checked_arguments
def read_geojson(path: str | Path, label: str | None = None) -> Domain:
    """A domain from a GeoJSON feature collection of polygons or points.

    Labels are the property ``label`` of each feature, as text where it is not a whole number;
    without one 0, 1, .... Polygons lie at their centroids (of the equirectangular projection)
    and keep their outlines for drawing. Distances are great-circle: ``om.distances.haversine()``.

    Raises
    ------
    ProblemError
        Without shapely, or on what is no collection of such features.

    Examples
    --------
    >>> import json, pathlib
    >>> point = {"type": "Point", "coordinates": [8.54, 47.38]}
    >>> feature = {"type": "Feature", "geometry": point, "properties": {"name": "lake"}}
    >>> collection = {"type": "FeatureCollection", "features": [feature]}
    >>> _ = pathlib.Path("stops.geojson").write_text(json.dumps(collection))
    >>> stops = om.exchange.read_geojson("stops.geojson", label="name")
    >>> stops.labels, stops.points.tolist()
    (('lake',), [[8.54, 47.38]])
    """
    features = read_features(path)
    shapes = shapes_of([geometry for _, geometry in features], path)
    properties = [row for row, _ in features]
    names = None if label is None else [_name(row, label, path) for row in properties]
    return _domain(shapes, names, str(path))


def from_geopandas(frame: gpd.GeoDataFrame, label: str | None = None) -> Domain:
    """A domain from a GeoDataFrame, in any coordinate reference system that it names.

    Without one, coordinates are taken to be longitude and latitude.

    Examples
    --------
    >>> import geopandas
    >>> points = geopandas.points_from_xy([2600000, 2601000], [1200000, 1200000])
    >>> frame = geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=points, crs="EPSG:2056")
    >>> stops = om.exchange.from_geopandas(frame, label="name")
    >>> print(stops.points.round(3))  # longitude, latitude: Bern
    [[ 7.439 46.951]
     [ 7.452 46.951]]
    """
    if not hasattr(frame, "geometry") or not hasattr(frame, "to_crs"):
        raise ProblemError(f"{type(frame).__name__} is not a GeoDataFrame", where="frame")
    degrees = frame if frame.crs is None else frame.to_crs(4326)
    names = None
    if label is not None:
        require_columns("label", [label], list(frame.columns))
        names = [_label(value) for value in frame[label].tolist()]
    return _domain(list(degrees.geometry), names, "frame")


def _name(row: dict[str, Any], label: str, path: str | Path) -> Any:
    if label not in row:
        raise ProblemError(
            f"a feature has no property {label!r}",
            where=str(path),
            remedy=f"Its properties are {', '.join(map(repr, list(row)[:20])) or 'none'}",
        )
    return _label(row[label])


def _label(value: object) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _domain(shapes: list[Any], names: list[Any] | None, where: str) -> Domain:
    kinds = {None if shape is None else shape.geom_type for shape in shapes}
    if not shapes or not kinds <= {"Point", "Polygon", "MultiPolygon"}:
        listed = ", ".join(sorted(map(str, kinds))) or "nothing"
        raise ProblemError(
            f"holds {listed}", where=where, remedy="Give polygons, or points, and at least one"
        )
    empty = next((k for k, shape in enumerate(shapes) if shape.is_empty), None)
    if empty is not None:
        raise ProblemError(f"geometry {empty} is empty", where=where, remedy="Remove it")
    with translated(where, "has a geometry that cannot be used"):
        centres = np.array([shape.centroid.coords[0][:2] for shape in shapes])
        outlines = [_rings(shape) for shape in shapes] if "Point" not in kinds else None
    labels = range(len(shapes)) if names is None else names
    return Domain(labels, centres, "km", coordinates="lonlat", outlines=outlines)


def _rings(shape: Any) -> list[Floats]:
    parts = shape.geoms if shape.geom_type == "MultiPolygon" else [shape]
    rings = [ring for part in parts for ring in (part.exterior, *part.interiors)]
    return [np.array(ring.coords)[:-1, :2] for ring in rings]


_INDEX = re.compile(r"[0-9a-fA-F]{1,16}")


@checked_arguments
def from_h3(cells: Iterable[str]) -> Domain:
    """A domain of H3 cells: labelled by their indices, placed at their centres, in degrees.

    Distances between them are great-circle distances, ``om.distances.haversine()``, in km.
    Outlines for drawing are the cells' own.

    Raises
    ------
    ProblemError
        Without h3, or on something that is not an H3 cell.

    Examples
    --------
    >>> import h3
    >>> cells = om.exchange.from_h3(h3.grid_disk(h3.latlng_to_cell(47.38, 8.54, 8), 1))
    >>> len(cells), cells.unit
    (7, 'km')
    """
    h3 = needed("h3", "geo", where="from_h3")
    labels = list(cells)
    for k, cell in enumerate(labels):
        if not isinstance(cell, str) or not _INDEX.fullmatch(cell) or not h3.is_valid_cell(cell):
            raise ProblemError(
                f"{repr(cell)[:60]} is not an H3 cell",
                where=f"cells[{k}]",
                remedy="Give indices such as 862baad27ffffff",
            )
    centres = np.array([h3.cell_to_latlng(cell) for cell in labels]).reshape(-1, 2)[:, ::-1]
    outlines = [
        [unwrapped(np.array(h3.cell_to_boundary(cell))[:, ::-1], centre)]
        for cell, centre in zip(labels, centres, strict=True)
    ]
    return Domain(labels, centres, "km", coordinates="lonlat", outlines=outlines)
