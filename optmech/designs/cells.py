"""Designs as maps for other tools: GeoJSON, GeoPandas, and a map of folium to click on."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.analysis import attacks, measures
from optmech.base.arrays import Floats
from optmech.base.machine import needed
from optmech.base.storage import write_atomically
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.labels import label_text
from optmech.spaces.layout import closed, geometries, plane_of
from optmech.spaces.mesh.mechanism import MeshMechanism

if TYPE_CHECKING:
    import geopandas as gpd

Feature = dict[str, Any]
_MOST_COLUMNS = 64
_SHADES = ("#edf2f7", "#c6dbef", "#8dbcdc", "#4a94c7", "#1b66a5", "#08305f")


@checked_arguments
def features(
    design: Design,
    report: Hashable | None = None,
    *,
    degrees: bool = True,
    reports: bool = False,
) -> list[Feature]:
    """The cells of a design as GeoJSON features, in longitude and latitude.

    A feature for every secret has its ``label``, ``prior``, ``loss`` (expected), ``attack_error``
    (what the optimal attack is left with, in the distance of the first constraint that has one)
    and, where secrets and observables are the same, ``reported``, p(o). With a ``report`` there are
    also ``probability``, p(o|s), and ``posterior``, p(s|o), of it. Cells are those of a grid, the
    outlines of zones, or what is nearest to each point, as on the page.

    Of a design for every point of a region there is a feature for every triangle of its mesh, with
    what holds at its middle: ``likeliest``, the likeliest report, its ``probability``, and for each
    of up to 64 reports ``p_`` and its label; with a ``report`` for this one alone. Of a design for
    roads there is one for every segment.

    Parameters
    ----------
    design:
        What ``om.solve`` returns.
    report:
        A label of the observables.
    degrees:
        False for the coordinates of the design, whatever they are: for tools that do not mind.
    reports:
        True for a feature of every report instead, with its ``label``, how often it is
        ``reported``, p(o), and ``loss``, what is expected of those who report it; as the cells
        that they are, or what is nearest to each.

    Raises
    ------
    ProblemError
        On a report together with ``reports``; where the places have no longitudes and latitudes
        (or with ``degrees=False`` no two coordinates), on an unknown label, and without shapely on
        zones of several rings.

    Examples
    --------
    >>> cells = om.Grid.geographic(2, 2, bounds=(8.50, 47.36, 8.53, 47.38))
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> features = om.exchange.features(om.solve(problem))
    >>> len(features), features[0]["geometry"]["type"], features[0]["properties"]["prior"]
    (4, 'Polygon', 0.25)
    """
    if reports:
        if report is not None:
            raise ProblemError("one report and all of them", where="report", remedy="Give one")
        return list(_reports(design, degrees))
    if design.mesh is not None and design.mesh.vertices.shape[1] == 2:
        return list(_triangles(design, report, degrees))
    return list(_cells(design, report, degrees))


@checked_arguments
def to_geopandas(
    design: Design, report: Hashable | None = None, *, reports: bool = False
) -> gpd.GeoDataFrame:
    """``features`` as a GeoDataFrame in WGS 84.

    Examples
    --------
    >>> cells = om.Grid.geographic(2, 2, bounds=(8.50, 47.36, 8.53, 47.38))
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> frame = om.exchange.to_geopandas(om.solve(problem))
    >>> len(frame), str(frame.crs)
    (4, 'EPSG:4326')
    """
    geopandas = needed("geopandas", "geo", where="to_geopandas")
    found = features(design, report, reports=reports)
    return geopandas.GeoDataFrame.from_features(found, crs=4326)


@checked_arguments
def write_geojson(
    design: Design,
    path: str | Path,
    report: Hashable | None = None,
    *,
    reports: bool = False,
) -> int:
    """Write ``features`` as a GeoJSON feature collection; returns how many there are.

    Examples
    --------
    >>> cells = om.Grid.geographic(2, 2, bounds=(8.50, 47.36, 8.53, 47.38))
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> om.exchange.write_geojson(om.solve(problem), "cells.geojson")
    4
    """
    found = features(design, report, reports=reports)
    write_atomically(path, json.dumps(_collection(found), allow_nan=False).encode())
    return len(found)


@checked_arguments
def explore(
    design: Design,
    report: Hashable | None = None,
    *,
    column: str | None = None,
    tiles: str | None = None,
) -> Any:
    """A ``folium.Map`` with the cells of ``features``, shaded by one of their numbers.

    Parameters
    ----------
    design, report:
        As of ``features``.
    column:
        The number to shade by; by default ``posterior`` with a report, else ``prior`` or
        ``probability``.
    tiles:
        Tiles of folium behind the cells, such as ``"OpenStreetMap"``. They are fetched from
        somebody's server, which learns what is looked at: by default there are none. The scripts
        that draw the map come from a server too; ``om.report`` needs none.

    Examples
    --------
    >>> cells = om.Grid.geographic(2, 2, bounds=(8.50, 47.36, 8.53, 47.38))
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> page = om.exchange.explore(om.solve(problem))
    >>> type(page).__name__
    'Map'
    """
    if find_spec("folium") is None:
        raise ProblemError(
            "needs folium, which is not installed",
            where="explore",
            remedy="Run: pip install folium; or use om.report, which needs nothing",
        )
    folium = import_module("folium")
    found = features(design, report)
    known = [name for name, value in found[0]["properties"].items() if isinstance(value, float)]
    default = "posterior" if "posterior" in known else known[0]
    name = default if column is None else column
    if name not in known:
        raise ProblemError(
            f"there is no {name!r}", where="column", remedy=f"Use one of {', '.join(known)}"
        )
    values = np.array([feature["properties"][name] for feature in found])
    top = values.max() or 1.0

    def style(feature: Feature) -> dict[str, Any]:
        share = np.sqrt(max(feature["properties"][name], 0.0) / top)
        shade = _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
        return {"fillColor": shade, "fillOpacity": 0.75, "color": "#55606e", "weight": 0.6}

    shown = folium.GeoJson(
        _collection(found),
        style_function=style,
        tooltip=folium.GeoJsonTooltip(fields=list(found[0]["properties"])[:8]),
    )
    made = folium.Map(tiles=tiles)
    shown.add_to(made)
    made.fit_bounds(shown.get_bounds())
    return made


def _cells(design: Design, report: Hashable | None, degrees: bool) -> Iterator[Feature]:
    problem, m = design.problem, design.mechanism
    columns: dict[str, Floats] = {
        "prior": problem.prior.weights,
        "loss": (m.matrix * problem.loss_matrix).sum(axis=1),
    }
    named = next((c for c in problem.constraints if callable(getattr(c, "distance", None))), None)
    if named is not None:
        attack = attacks.optimal_attack(m, problem.prior, named.distance)  # type: ignore[attr-defined]
        columns["attack_error"] = attack.error_per_secret
    if problem.observables == problem.secrets:
        columns["reported"] = m.push(problem.prior)
    if report is not None:
        o = m.observables.index(report)
        columns["probability"] = m.matrix[:, o]
        columns["posterior"] = measures.posterior(m, problem.prior)[o]
    for s, shape in enumerate(geometries(problem.secrets, degrees=degrees)):
        numbers = {name: float(values[s]) for name, values in columns.items()}
        yield _feature({"label": _label(problem.secrets, s), **numbers}, shape)


def _reports(design: Design, degrees: bool) -> Iterator[Feature]:
    problem = design.problem
    rows = design.mechanism.matrix
    joint = problem.prior.weights[:, None] * rows
    reported, paid = joint.sum(axis=0), (joint * problem.loss_matrix).sum(axis=0)
    for o, shape in enumerate(geometries(problem.observables, degrees=degrees)):
        share = float(reported[o])
        loss = float(paid[o]) / share if share else 0.0
        label = _label(problem.observables, o)
        yield _feature({"label": label, "reported": share, "loss": loss}, shape)


def _collection(features: list[Feature]) -> Feature:
    return {"type": "FeatureCollection", "features": features}


def _feature(properties: dict[str, Any], geometry: Any) -> Feature:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _label(domain: Domain, k: int) -> int | str:
    label = domain.labels[k]
    return label if isinstance(label, int) else label_text(label)


def _triangles(design: Design, report: Hashable | None, degrees: bool) -> Iterator[Feature]:
    mesh, reports = design.mesh, design.problem.observables
    mechanism = design.mechanism
    assert mesh is not None
    assert isinstance(mechanism, MeshMechanism)
    corners = mesh.vertices[mesh.triangles]
    if mesh.is_region:
        values = mechanism.at(corners.mean(axis=1))
    else:
        values = mechanism.matrix[mesh.triangles].mean(axis=1)
    if mesh.coordinates == "plane" and degrees:
        plane = plane_of(design.problem.secrets)
        if plane.degrees is None:
            raise ProblemError(
                "the region has no longitudes and latitudes",
                where="mesh",
                remedy="Use points with longitude and latitude",
            )
        corners = corners / np.array(plane.degrees[2:]) + np.array(plane.degrees[:2])
    names = [label_text(label) for label in reports.labels]
    chosen = range(len(names)) if report is None else [reports.index(report)]
    if len(chosen) > _MOST_COLUMNS:
        raise ProblemError(
            f"{len(chosen)} reports are more than {_MOST_COLUMNS} columns",
            where="report",
            remedy="Name one of them",
        )
    for t, (ring, row) in enumerate(zip(corners, values, strict=True)):
        best = row.argmax()
        properties = {
            mesh.pieces.removesuffix("s"): t,
            "likeliest": names[best],
            "probability": float(row[best]),
            **{f"p_{names[o]}": float(row[o]) for o in chosen},
        }
        geometry: Feature = {"type": "LineString", "coordinates": ring.tolist()}
        if mesh.is_region:
            geometry = {"type": "Polygon", "coordinates": [closed(ring)]}
        yield _feature(properties, geometry)
