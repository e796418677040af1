"""Rows of the matrix that are those of control points of a mesh, and not of the secrets."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.spaces.mesh import Mesh


@record
class Spread(ReadOnly):
    """From the rows of ``mesh``'s control points to the secrets, which lie at ``places`` (S, 2):
    p(o|x) = Σ_α B_α(x) P[α,o] with exact weights B_α(x)."""

    mesh: Mesh
    places: Floats

    @property
    def rows(self) -> int:
        """Control points: rows of a released matrix."""
        return self.mesh.rows

    @cached_property
    def weights(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """For every secret the control points around it, and whole numbers that they count for,
        over the sum of these. Raises ProblemError on a place outside of the region."""
        from optmech.spaces.mesh.elements import whole_basis

        out = []
        for x, place in enumerate(self.places.tolist()):
            found = self.mesh.locate_exactly(place)
            if found is None:
                raise ProblemError(
                    f"({place[0]}, {place[1]}) lies outside of the region",
                    where=f"places[{x}]",
                    remedy="Use a mesh around all places of the prior",
                )
            own = whole_basis(found[1], self.mesh.degree)
            out.append((tuple(self.mesh.control[found[0]].tolist()), own))
        return tuple(out)
