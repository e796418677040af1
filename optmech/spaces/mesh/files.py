"""Meshes in files: plain JSON, GeoJSON, and what meshio knows of single files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.machine import needed
from optmech.base.storage import ending, path_of, write_atomically
from optmech.errors import ProblemError
from optmech.reading.bounded import read_bytes, read_text, translated
from optmech.reading.columns import read_features
from optmech.reading.sandbox import read_isolated
from optmech.spaces.domain import Coordinates
from optmech.spaces.mesh.triangulation import MOST

_MESHIO = (".vtk", ".vtu", ".msh", ".obj", ".off", ".ply", ".mesh", ".inp")
_KEYS = ("vertices", "triangles", "unit", "coordinates", "degree")


def arguments(content: object) -> dict[str, Any]:
    """The arguments of a ``Mesh`` in plain values."""
    if not isinstance(content, dict) or not {"vertices", "triangles"} <= set(content):
        raise ProblemError(
            "is no mesh", remedy='Give a table of "vertices" and "triangles"', where=""
        )
    unknown = sorted(set(map(str, content)) - set(_KEYS))
    if unknown:
        raise ProblemError(
            f"{unknown[0][:40]!r} is unknown", where="", remedy=f"The keys are {', '.join(_KEYS)}"
        )
    return content


def read(path: str | Path, unit: str, coordinates: Coordinates | None) -> object:
    """The plain values of a mesh or network in a file, by its ending, not yet checked."""
    suffix = path_of(path).suffix.lower()
    if suffix == ".json":
        text = read_text(path)
        with translated(path, "is not JSON"):
            content = json.loads(text)
        if not isinstance(content, dict) or content.get("type") != "FeatureCollection":
            return content
    features = suffix in (".json", ".geojson")
    vertices, triangles = (_from_features if features else _from_meshio)(path)
    known = {"unit": unit, "coordinates": coordinates or ("lonlat" if features else "plane")}
    return {"vertices": vertices, "triangles": triangles, **known}


def write(path: str | Path, content: dict[str, Any]) -> None:
    """Write the plain values of a mesh, by the path's ending."""
    suffix = ending(path, ".json")
    if "ways" in content and suffix != ".json":
        raise ProblemError(
            "a line or network is written as JSON", where=path, remedy="Use the ending .json"
        )
    if suffix == ".geojson":
        content = _features(content)
    elif suffix != ".json":
        _to_meshio(path, content)
        return
    write_atomically(path, json.dumps(content, allow_nan=False).encode())


def _features(content: dict[str, Any]) -> dict[str, Any]:
    places = content["vertices"]
    features = [
        {
            "type": "Feature",
            "properties": {"triangle": t},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[places[k] for k in (*corners, corners[0])]],
            },
        }
        for t, corners in enumerate(content["triangles"])
    ]
    return {"type": "FeatureCollection", "features": features}


def _from_features(path: str | Path) -> tuple[Floats, Ints]:
    """Triangles as polygons; corners with equal coordinates are one vertex."""
    rings = []
    for k, (_, geometry) in enumerate(read_features(path)):
        with translated(f"features[{k}]", "is no triangle", "Give polygons of three corners"):
            ring = geometry["coordinates"][0] if len(geometry["coordinates"]) == 1 else []
            corners = np.array([place[:2] for place in ring], dtype=np.float64)
            closed = corners.shape == (4, 2) and np.array_equal(corners[0], corners[3])
            if geometry["type"] != "Polygon" or not closed:
                raise ValueError(f"{geometry['type']} of {len(ring)} places")
        rings.append(corners[:3])
    if not rings:
        raise ProblemError("there are no triangles", where="features")
    vertices, triangles = np.unique(np.vstack(rings), axis=0, return_inverse=True)
    return vertices, triangles.reshape(-1, 3)


def _from_meshio(path: str | Path) -> tuple[Floats, Ints]:
    _require_single(path)
    _refuse_others(path)
    needed("meshio", "mesh", where=str(path))
    places, triangles = read_isolated("mesh", path_of(path)).arrays
    used, renumbered = np.unique(triangles, return_inverse=True)
    if len(used) > MOST or used[0] < 0 or used[-1] >= len(places):
        raise ProblemError(
            f"has triangles of {len(used):,} vertices, up to number {used[-1]} of {len(places):,}",
            where=path,
            remedy=f"Give a mesh of at most {MOST:,} vertices",
        )
    # geometry formats have lines and points of their own beside the triangles
    return places[used], renumbered.reshape(-1, 3)


def _refuse_others(path: str | Path) -> None:
    """Refuse a mesh that goes on in another file, which may be any."""
    if path_of(path).suffix.lower() == ".inp":
        lines = read_bytes(path).decode("utf-8", "replace").upper().splitlines()
        if any(line.startswith("*") and line.lstrip("* ").startswith("INCLUDE") for line in lines):
            said, remedy = "includes another file", "Write everything into one file"
            raise ProblemError(said, where=path, remedy=remedy)


def _to_meshio(path: str | Path, content: dict[str, Any]) -> None:
    suffix = _require_single(path)
    meshio = needed("meshio", "mesh", where=str(path))
    vertices = np.asarray(content["vertices"], dtype=np.float64)
    flat = np.column_stack([vertices, np.zeros(len(vertices))])
    triangles = np.asarray(content["triangles"], dtype=np.int32)
    with tempfile.TemporaryDirectory() as folder:
        beside = Path(folder) / f"mesh{suffix}"
        with translated(path, "cannot be written as a mesh", "Use the ending .json or .geojson"):
            meshio.Mesh(flat, [("triangle", triangles)]).write(beside)
        written = beside.read_bytes()
    write_atomically(path, written)


def _require_single(path: str | Path) -> str:
    """The ending of a path, one of those of meshio's formats that are one file and nothing else."""
    suffix = path_of(path).suffix.lower()
    if suffix not in _MESHIO:
        raise ProblemError(
            f"{suffix or 'no ending'} stands for no format of meshes",
            where=path,
            remedy=f"Use .json, .geojson, or one of {', '.join(_MESHIO)}",
        )
    return suffix
