"""Meshes: triangles over a convex region, for privacy at every point of it."""

from optmech.spaces.mesh.mesh import Mesh as Mesh
