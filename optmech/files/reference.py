"""Coordinate reference systems: what an EPSG code says of the columns of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from optmech.base.arrays import Bools, Floats
from optmech.base.machine import needed
from optmech.errors import ProblemError
from optmech.files.extent import inside_box
from optmech.reading.bounded import translated
from optmech.reading.errors import printable
from optmech.spaces.sphere import turned

_CODE = re.compile(r"(?:[Ee][Pp][Ss][Gg]:)?([0-9]{4,6})")
_UNITS = {"metre": "m", "kilometre": "km"}
_STRETCHED = 0.01
"""By which lengths may differ from those on the ground: less than what ε is rounded to by eye."""
_LOOKED_AT, _LONGEST = 1000, 120


def _area(name: str) -> str:
    """The name of an area of use: whole words of it, without the point at its end."""
    return shorten(printable(name), _LONGEST, placeholder=" …").rstrip(".")


@dataclass(frozen=True)
class Reference:
    """A system of coordinates that an EPSG code names: degrees, or a projection in a unit."""

    code: str
    name: str
    degrees: bool
    unit: str
    """Of the plane, m or km; another one by its name."""
    system: Any

    @classmethod
    def of(cls, text: str, where: str = "crs") -> Reference:
        """Raises ProblemError on what is no code, on one that there is not, and without pyproj."""
        found = _CODE.fullmatch(text.strip())
        if found is None:
            raise ProblemError(
                f"{text[:40]!r} is no EPSG code", where=where, remedy="Give one, as EPSG:2056"
            )
        pyproj = needed("pyproj", "geo", where=where)
        code = f"EPSG:{found[1]}"
        with translated(where, f"{code} is not known to pyproj", "Check the number"):
            system = pyproj.CRS.from_epsg(int(found[1]))
            axes, name = system.axis_info, str(system.name)
            if system.is_geographic and len(axes) >= 2:
                return cls(code, name, True, "km", system)
        if not system.is_projected:
            raise ProblemError(
                f"{code} ({name}) has no coordinates in degrees or in a plane",
                where=where,
                remedy="Give the reference system of a map",
            )
        unit = str(axes[0].unit_name)
        return cls(code, name, False, _UNITS.get(unit, unit), system)

    @property
    def words(self) -> str:
        """Code and name."""
        return f"{self.code} ({printable(self.name)})"

    def require(self, data: Path, names: tuple[str, str], points: Floats) -> None:
        """Raise ProblemError unless most of the points (n, 2) lie where the system is used, and its
        lengths are there those on the ground."""
        few = points[:: max(1, len(points) // _LOOKED_AT)]
        inside = self._inside(few)
        if 2 * int(inside.sum()) <= len(few):
            exchanged = 2 * int(self._inside(few[:, ::-1]).sum()) > len(few)
            area = self.system.area_of_use
            raise ProblemError(
                f"{int((~inside).sum()):,} of {len(few):,} rows in {names[0]!r} and {names[1]!r} "
                f"lie outside of where {self.words} is used"
                + (f": {_area(str(area.name))}" if area is not None else ""),
                where=data,
                remedy=f"They seem to be the other way around: --x {names[1]} --y {names[0]}"
                if exchanged
                else "Give the reference system of the coordinates",
            )
        if self.degrees:
            return
        # what is wild has no say
        places = self._globe(few[inside])
        scale = self._scales(places)
        worst = float(scale[np.abs(scale - 1).argmax()])
        if abs(worst - 1) > _STRETCHED:
            lon, lat = np.median(places, axis=0).tolist()
            zone = (32600 if lat >= 0 else 32700) + int((lon + 180) // 6 % 60) + 1
            raise ProblemError(
                f"lengths in {self.words} are up to {worst:.3g} times those on the ground here",
                where=data,
                remedy=f"Convert the coordinates to a map of the region, such as EPSG:{zone}, or "
                "to longitude and latitude (EPSG:4326)",
            )

    def _globe(self, points: Floats) -> Floats:
        """Longitude and latitude in degrees; not finite where there is none."""
        import pyproj

        way = pyproj.Transformer.from_crs(self.system, 4326, always_xy=True)
        return np.column_stack(way.transform(points[:, 0], points[:, 1]))

    def _inside(self, points: Floats) -> Bools:
        places, area = self._globe(points), self.system.area_of_use
        lon, lat = places.T
        found: Bools = np.isfinite(places).all(axis=1) & (np.abs(lat) <= 90)
        if area is None:
            return found
        east = area.east + (360 if area.west > area.east else 0)
        around = np.column_stack([turned(lon, area.west, east), lat])
        box = np.array([area.west, area.south, east, area.north])
        return found & inside_box(around, box)

    def _scales(self, places: Floats) -> Floats:
        """By how much the map's lengths exceed those on the ground, along both axes."""
        import pyproj

        factors = pyproj.Proj(self.system).get_factors(places[:, 0], places[:, 1])
        both = np.concatenate([factors.meridional_scale, factors.parallel_scale])
        return np.asarray(both[np.isfinite(both)], dtype=np.float64)
