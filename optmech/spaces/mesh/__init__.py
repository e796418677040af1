"""Meshes: triangles over a convex region, or segments of a line or of roads, for privacy at every
point of them."""

from optmech.spaces.mesh import roads as roads
from optmech.spaces.mesh.mesh import Mesh as Mesh
