"""Mechanisms as xarray arrays with named axes, and as NetCDF files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.machine import needed
from optmech.base.storage import write_atomically
from optmech.errors import ProblemError, inside
from optmech.reading.bounded import require_readable
from optmech.reading.isolated import Found, read_isolated
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.labels import label_text
from optmech.spaces.mechanism import Mechanism

if TYPE_CHECKING:
    import xarray as xr

MATRIX_BYTES = 2 * 2**30
"""Of a file that holds a matrix."""
_AXES = ("secret", "observable")


@checked_arguments
def to_xarray(mechanism: Mechanism) -> xr.DataArray:
    """p(o|s) with dimensions ``secret`` and ``observable``.

    Each dimension has its labels as text for an index, and the coordinates of the domain, where
    it has them, as ``secret_x``, ``secret_y`` (``_lon``, ``_lat`` in degrees) and so on.
    """
    xarray = needed("xarray", "xarray", where="to_xarray")
    coordinates: dict[str, Any] = {}
    for axis, domain in zip(_AXES, (mechanism.secrets, mechanism.observables), strict=True):
        texts = [label_text(label) for label in domain.labels]
        coordinates[axis] = (axis, np.array(texts, dtype=object), {"long_name": axis})
        for name, values in _places(domain).items():
            unit = "degrees" if domain.coordinates == "lonlat" else domain.unit
            coordinates[f"{axis}_{name}"] = (axis, values, {"units": unit})
    return xarray.DataArray(
        np.array(mechanism.matrix),
        dims=_AXES,
        coords=coordinates,
        name="probability",
        attrs={"long_name": "p(observable | secret)", "units": "1", "source": "optmech"},
    )


@checked_arguments
def write_netcdf(mechanism: Mechanism, path: str | Path) -> None:
    """Write ``to_xarray`` as NetCDF 4; probabilities are float64, bit by bit."""
    needed("h5netcdf", "xarray", where="write_netcdf")
    write_atomically(path, bytes(to_xarray(mechanism).to_netcdf(engine="h5netcdf")))


def read_netcdf(path: str | Path) -> Mechanism:
    """Read a mechanism written by ``write_netcdf``, or any array with the same two dimensions.

    Labels are text, coordinates are kept.

    Raises
    ------
    ProblemError
        On a file that is no such array, or an array that is no mechanism.
    """
    for package in ("xarray", "h5netcdf"):
        needed(package, "xarray", where="read_netcdf")
    file = Path(path)
    require_readable(file, MATRIX_BYTES)
    found = read_isolated("netcdf", file)
    dimensions = found.values["dims"]
    if set(dimensions) != set(_AXES):
        raise ProblemError(
            f"has the dimensions {', '.join(dimensions)}",
            where=str(path),
            remedy="Name them secret and observable",
        )
    values = found.arrays[0]
    matrix = values if tuple(dimensions) == _AXES else values.T
    with inside(str(path)):
        secrets, observables = (
            _domain(found, axis, count) for axis, count in zip(_AXES, matrix.shape, strict=True)
        )
        return Mechanism(secrets, observables, matrix)


def _places(domain: Domain) -> dict[str, Any]:
    if domain.points is None or domain.points.shape[1] > 3:
        return {}
    names = ("lon", "lat") if domain.coordinates == "lonlat" else ("x", "y", "z")
    return dict(zip(names, domain.points.T, strict=False))


def _domain(found: Found, axis: str, count: int) -> Domain:
    labels = found.values["labels"].get(axis)
    known = found.values["coordinates"]
    names = [f"{axis}_{name}" for name in ("lon", "lat", "x", "y", "z")]
    places = [known[name] for name in names if name in known]
    columns = [found.arrays[place["array"]] for place in places]
    fit = all(len(column) == count for column in columns)
    points = np.column_stack(columns) if columns and fit else None
    globe = points is not None and f"{axis}_lon" in known
    unit = "km" if globe else places[0]["units"] if points is not None else ""
    return Domain(labels or range(count), points, unit, coordinates="lonlat" if globe else "plane")
