"""Meshes of problem files."""

from __future__ import annotations

from optmech.files.make.context import Context
from optmech.sections.meshes import AroundMesh, GridMesh
from optmech.spaces.mesh import Mesh
from optmech.spaces.prior import Prior


def build_mesh(spec: GridMesh | AroundMesh, context: Context, prior: Prior) -> Mesh:
    """The mesh of a table, in the coordinates and the unit of the secrets."""
    domain = context.domain
    if isinstance(spec, GridMesh):
        unit = domain.unit if domain.coordinates == "plane" else ""
        return Mesh.grid(
            spec.bounds,
            spec.width,
            unit=unit,
            coordinates=domain.coordinates,
            degree=spec.degree,
        )
    domain.require_points("make a mesh around them")
    return Mesh.around(
        domain, spec.width, vertices=spec.vertices, weights=prior.weights, degree=spec.degree
    )
