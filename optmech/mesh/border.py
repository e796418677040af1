"""The border of a mesh, for positions outside of it."""

from __future__ import annotations

from optmech.mesh.mesh import Mesh
from optmech.spaces.sphere import Border


def border_of(mesh: Mesh) -> Border:
    """The edges of one triangle only, in the order of the triangles."""
    edges = [(a, b) for t in mesh.corners for a, b in zip(t, t[1:] + t[:1], strict=True)]
    known = set(edges)
    outer = [edge for edge in edges if edge[::-1] not in known]
    start, end = (mesh.vertices[[edge[k] for edge in outer]] for k in (0, 1))
    return Border.of(start, end, mesh.coordinates == "lonlat")
