"""Mechanisms as xarray arrays with named axes, and as NetCDF files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.domain import Domain
from optmech.errors import ProblemError
from optmech.files.labels import label_text
from optmech.mechanism import Mechanism
from optmech.needed import needed
from optmech.storage import write_atomically

if TYPE_CHECKING:
    import xarray as xr

_AXES = ("secret", "observable")


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


def write_netcdf(mechanism: Mechanism, path: str | Path) -> None:
    """Write ``to_xarray`` as NetCDF 4; probabilities are float64, bit by bit."""
    needed("h5netcdf", "xarray", where="write_netcdf")
    content = to_xarray(mechanism).to_netcdf(engine="h5netcdf")
    write_atomically(path, bytes(content))


def read_netcdf(path: str | Path) -> Mechanism:
    """Read a mechanism written by ``write_netcdf``, or any array with the same two dimensions.

    Labels are text, coordinates are kept.

    Raises
    ------
    ProblemError
        On a file that is no such array, or an array that is no mechanism.
    """
    xarray = needed("xarray", "xarray", where="read_netcdf")
    needed("h5netcdf", "xarray", where="read_netcdf")
    try:
        with xarray.open_dataarray(path, engine="h5netcdf") as stored:
            array = stored.load()
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"cannot be read as NetCDF: {error}", where=str(path), remedy="Check the file"
        ) from error
    if set(array.dims) != set(_AXES):
        raise ProblemError(
            f"has the dimensions {', '.join(map(str, array.dims))}",
            where=str(path),
            remedy="Name them secret and observable",
        )
    array = array.transpose(*_AXES)
    return Mechanism(_domain(array, "secret"), _domain(array, "observable"), array.values)


def _places(domain: Domain) -> dict[str, Any]:
    if domain.points is None or domain.points.shape[1] > 3:
        return {}
    names = ("lon", "lat") if domain.coordinates == "lonlat" else ("x", "y", "z")
    return dict(zip(names, domain.points.T, strict=False))


def _domain(array: xr.DataArray, axis: str) -> Domain:
    labels = [str(label) for label in array[axis].values] if axis in array.coords else None
    found = [f"{axis}_{name}" for name in ("lon", "lat", "x", "y", "z")]
    found = [name for name in found if name in array.coords]
    points = np.column_stack([array[name].values for name in found]) if found else None
    globe = f"{axis}_lon" in found
    unit = "km" if globe else str(array[found[0]].attrs.get("units", "")) if found else ""
    count = array.sizes[axis]
    return Domain(labels or range(count), points, unit, "lonlat" if globe else "plane")
