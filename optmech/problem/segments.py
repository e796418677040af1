"""The loss of numbers between the vertices of a line (theory: "The worst loss on an interval")."""

from __future__ import annotations

import numpy as np

from optmech.certificate.statement import Segments
from optmech.errors import ProblemError
from optmech.problem.space import Space
from optmech.spaces.distances import distance_name, euclidean
from optmech.spaces.mesh.mesh import Mesh
from optmech.spaces.tables import SQUARES


def segments_of(mesh: Mesh, space: Space, loss: object) -> Segments | None:
    """The segments of a line and how the loss bends on them; None on roads, along which distances
    may be larger between two crossings than at both. ProblemError where a square is no number."""
    if not mesh.is_line:
        return None
    bends = np.zeros(len(mesh.triangles))
    if space.loss_name(loss) == SQUARES:
        a, b = mesh.vertices[mesh.triangles.T, 0]
        with np.errstate(over="ignore", under="ignore"):
            bends = (b - a) * (b - a)
        if not np.isfinite(bends).all():
            raise ProblemError("squares of lengths are too large", where="loss")
    return Segments(mesh.triangles, bends)


def is_known_between(space: Space, loss: object) -> bool:
    """Whether the loss of a number between two vertices is what counts there: squares, and
    distances to reports that lie inside no segment. Of others it is at most that where they are
    convex, and a bound is one of what counts."""
    name = space.loss_name(loss)
    if name != distance_name(euclidean()):
        return name == SQUARES
    vertices = space.secrets.require_points("loss")[:, 0]
    others = np.setdiff1d(space.observables.require_points("loss")[:, 0], vertices)
    return not bool(((others > vertices[0]) & (others < vertices[-1])).any())
