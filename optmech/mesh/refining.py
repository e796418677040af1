"""Meshes that are finer where it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats

if TYPE_CHECKING:
    from optmech.mesh.mesh import Mesh

_PASSES = 60


def by_mass(mesh: Mesh, points: Floats, mass: Floats, vertices: int) -> Mesh:
    """Halve the triangles with most ``mass`` (n,) of ``points`` (n, 2) times width until there are
    about ``vertices``."""
    for _ in range(_PASSES):
        if len(mesh) >= vertices:
            break
        held = np.bincount(mesh.locate(points)[0], mass, minlength=len(mesh.triangles))
        mesh = mesh.refine(held * mesh.widths, most=vertices - len(mesh))
    return mesh
