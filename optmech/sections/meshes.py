"""Meshes of the region where a promise holds at every point."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from optmech.sections.base import ExactNumber, Spec, kind_of

Degree = Annotated[int, Field(ge=1, le=6)]


class GridMesh(Spec):
    """A rectangle in squares of at most ``width``, halved; ``degree`` is that of mechanisms in the
    triangles."""

    kind: Literal["grid"]
    bounds: Annotated[list[float], Field(min_length=4, max_length=4)]
    width: ExactNumber
    degree: Degree = 1


class AroundMesh(Spec):
    """A convex region around the secrets; with ``vertices`` finer where the prior has mass."""

    kind: Literal["around"]
    width: ExactNumber
    vertices: Annotated[int, Field(ge=3, le=10**6)] | None = None
    degree: Degree = 1


MeshSpec = Annotated[
    Annotated[GridMesh, Tag("kind=grid")] | Annotated[AroundMesh, Tag("kind=around")],
    Discriminator(kind_of),
]
