"""Where domains lie in the coordinates that data have: degrees for what was made over degrees."""

from __future__ import annotations

from typing import cast

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.mesh.mechanism import MeshMechanism
from optmech.mesh.mesh import Mesh
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import Subsets, Suppressible
from optmech.spaces.regions import Regions

_INWARD = 1e-9
"""How far towards its middle a point of a border is led, so that rounding leaves it inside."""


def data_coordinates(domain: Domain) -> Floats | None:
    """The points of a domain as ``locate`` reads data: longitude and latitude in degrees where it
    was made over degrees, else its own, shape (n, k); NaN for what is nowhere, as a symbol for
    suppression; None where there are none at all."""
    if isinstance(domain, Suppressible):
        inner = data_coordinates(domain.inner)
        return None if inner is None else np.vstack([inner, np.full((1, inner.shape[1]), np.nan)])
    if domain.points is None:
        return None
    corner, scale = _frame(domain)
    return domain.points / scale + corner


def _frame(domain: Domain) -> tuple[Floats, Floats]:
    """(corner, scale): the domain's own coordinates are (data - corner) * scale."""
    if isinstance(domain, Subsets):
        return _frame(domain.base)
    width = 1 if domain.points is None else domain.points.shape[1]
    if isinstance(domain, Regions):
        return np.array(domain.scale[:2]), np.array(domain.scale[2:])
    if isinstance(domain, Grid) and domain.bounds is not None:
        west, south, east, north = domain.bounds
        size = np.array([domain.columns, domain.rows]) * domain.cell
        return np.array([west, south]), size / (east - west, north - south)
    return np.zeros(width), np.ones(width)


def is_geographic(mechanism: Mechanism) -> bool:
    """Whether data are read as longitude and latitude in degrees."""
    if isinstance(mechanism, MeshMechanism):
        return mechanism.mesh.coordinates == "lonlat"
    secrets = mechanism.secrets
    return secrets.coordinates == "lonlat" or secrets.frame != ()


def nearest_inside(domain: Domain, points: Floats) -> Floats:
    """The nearest points of the rectangle that a grid or regions cover, for points outside; other
    domains have no outside."""
    if isinstance(domain, Grid):
        if domain.bounds is not None:
            box = np.array(domain.bounds)
        else:
            corner = np.array(domain.origin)
            end = corner + np.array([domain.columns, domain.rows]) * domain.cell
            box = np.concatenate([corner, end])
    elif isinstance(domain, Regions):
        corner, scale = _frame(domain)
        ends = domain.boxes[:, :2].min(axis=0), domain.boxes[:, 2:].max(axis=0)
        box = np.concatenate([end / scale + corner for end in ends])
    else:
        return points
    inside = np.clip(points, box[:2], box[2:])
    # what rounding has led beyond the border again comes back
    lost = domain.locate(inside) < 0
    return np.where(lost[:, None], inside + _INWARD * ((box[:2] + box[2:]) / 2 - inside), inside)


def nearest_of_region(mesh: Mesh, points: Floats) -> Floats:
    """A point of the region next to each of ``points`` (k, 2): on its border, led inwards by a
    billionth of the region's width, and a vertex where even that is outside."""
    scale = mesh.scale
    edges = _border(mesh)
    begin, end = mesh.vertices[edges[:, 0]] * scale, mesh.vertices[edges[:, 1]] * scale
    along = end - begin
    out = np.empty_like(points)
    middle = mesh.vertices.mean(axis=0)
    for k, point in enumerate(points * scale):
        share = ((point - begin) * along).sum(axis=1) / (along**2).sum(axis=1)
        feet = begin + np.clip(share, 0.0, 1.0)[:, None] * along
        foot = feet[((feet - point) ** 2).sum(axis=1).argmin()] / scale
        foot = foot + _INWARD * (middle - foot)
        if mesh.locate_exactly(cast("list[float]", foot.tolist())) is None:
            away = ((mesh.vertices * scale - point) ** 2).sum(axis=1)
            foot = mesh.vertices[away.argmin()]
        out[k] = foot
    return out


def _border(mesh: Mesh) -> Ints:
    """The edges without a triangle on their other side, by the indices of their ends."""
    edges = mesh.triangles[:, ((0, 1), (1, 2), (2, 0))].reshape(-1, 2)
    known = set(map(tuple, edges.tolist()))
    return np.array([edge for edge in known if (edge[1], edge[0]) not in known], dtype=np.int64)
