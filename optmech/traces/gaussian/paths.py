"""Runs of position fixes as paths in the plane, for kernels to be fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.exact.checked import positive
from optmech.spaces.domain import EARTH_RADIUS_KM
from optmech.traces.chains.sequences import Fixes


@dataclass(frozen=True, eq=False)
class Path(ReadOnly):
    """Positions of one user at increasing times."""

    user: str
    times: Floats
    """Minutes since the first position, shape (d,)."""
    positions: Floats
    """Shape (d, 2): km east and north of the mean position for longitude and latitude, else as
    in the data."""


def paths(
    fixes: Fixes, max_gap: float, spacing: float = 0.0, lonlat: bool = True, least: int = 2
) -> list[Path]:
    """Runs of fixes without a gap of more than ``max_gap`` seconds.

    Of fixes closer than ``spacing`` seconds to the last one kept, none is kept. Runs of fewer
    than ``least`` positions are left out. Longitude and latitude are projected equirectangularly
    around the mean of the run, good to about 1 % over 100 km.
    """
    gap = positive(max_gap, "max_gap")
    out = []
    for user, seconds, xy in fixes.runs(gap):
        kept = _thinned(seconds, spacing)
        if len(kept) >= least:
            places = xy[kept]
            positions = _projected(places) if lonlat else places - places.mean(axis=0)
            out.append(Path(user, (seconds[kept] - seconds[kept[0]]) / 60, positions))
    return out


def _thinned(seconds: Floats, spacing: float) -> list[int]:
    kept = [0]
    for k, time in enumerate(seconds.tolist()):
        if k and time - seconds[kept[-1]] >= spacing:
            kept.append(k)
    return kept


def _projected(lonlat: Floats) -> Floats:
    degree = np.pi / 180 * EARTH_RADIUS_KM
    centre = lonlat.mean(axis=0)
    shrink = float(np.cos(np.radians(centre[1])))
    return np.asarray((lonlat - centre) * degree * [shrink, 1.0])
