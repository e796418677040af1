"""H3 hexagons as domains."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from optmech.base.arrays import unwrapped
from optmech.base.machine import needed
from optmech.errors import ProblemError
from optmech.spaces.domain import Domain

_INDEX = re.compile(r"[0-9a-fA-F]{1,16}")


def from_h3(cells: Iterable[str]) -> Domain:
    """A domain of H3 cells: labelled by their indices, placed at their centres, in degrees.

    Distances between them are great-circle distances, ``om.distances.haversine()``, in km.
    Outlines for drawing are the cells' own.

    Raises
    ------
    ProblemError
        Without h3, or on something that is not an H3 cell.
    """
    h3 = needed("h3", "geo", where="from_h3")
    labels = list(cells)
    for k, cell in enumerate(labels):
        if not isinstance(cell, str) or not _INDEX.fullmatch(cell) or not h3.is_valid_cell(cell):
            raise ProblemError(
                f"{repr(cell)[:60]} is not an H3 cell",
                where=f"cells[{k}]",
                remedy="Give indices such as 862baad27ffffff",
            )
    centres = np.array([h3.cell_to_latlng(cell) for cell in labels]).reshape(-1, 2)[:, ::-1]
    outlines = [
        [unwrapped(np.array(h3.cell_to_boundary(cell))[:, ::-1], centre)]
        for cell, centre in zip(labels, centres, strict=True)
    ]
    return Domain(labels, centres, "km", coordinates="lonlat", outlines=outlines)
