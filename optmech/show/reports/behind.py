"""The backdrop of a page: lines in degrees, in sixteen bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from optmech.errors import ProblemError
from optmech.show.backdrop import Source, backdrop_of
from optmech.show.reports.payload import Store

Plain = Any

MARGIN = 0.06
"""Of the larger side of a map: room around it, so that a backdrop is seen. Known to the script."""
_WIDEST = 0.72
"""Maps that are higher than wide are shown in a box of at least this share of their height."""
_STEPS = 2**16 - 1


def packed(source: Source, listed: list[Plain], store: Store) -> Plain:
    """What the page needs of a backdrop, for the maps of some designs' payloads."""
    boxes = [
        _box(place)
        for design in listed
        for place in (
            design.get("region"),
            (design.get("secrets") or {}).get("map"),
            (design.get("observables") or {}).get("map"),
        )
        if place and place["degrees"]
    ]
    if not boxes:
        raise ProblemError(
            "the designs have no longitudes and latitudes",
            where="backdrop",
            remedy="Use it with points in degrees, or a grid over bounds in degrees",
        )
    low, high = np.min(boxes, axis=0)[:2], np.max(boxes, axis=0)[2:]
    found = backdrop_of(source, (*low.tolist(), *high.tolist()))
    points = (np.vstack(found.lines) - low) / (high - low) * _STEPS
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "points": store.put(np.rint(points), "u16"),
        "ends": store.put(np.cumsum([len(line) for line in found.lines]), "u32"),
        "said": f"{found.corners:,} of the backdrop's {found.given:,} corners are drawn, within "
        f"{1000 * found.tolerance:.2g} m.",
    }


def _box(place: Plain) -> list[float]:
    """West, south, east, north of what a map shows."""
    x, y, across, along = place["degrees"]
    margin = 2 * MARGIN * max(place["width"], place["height"])
    room = margin + max(0.0, _WIDEST * place["height"] - place["width"])
    left, bottom = place["origin"]
    right, top = left + place["width"] + room, bottom + place["height"] + margin
    return [
        x + (left - room) / across,
        y + (bottom - margin) / along,
        x + right / across,
        y + top / along,
    ]
