"""Mechanisms as tables and matrices of other tools: pandas, xarray, CSV, NumPy, NetCDF, Parquet."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.labels import few
from optmech.base.machine import needed
from optmech.base.storage import csv_bytes, ending, path_of, write_atomically
from optmech.errors import ProblemError, inside
from optmech.reading.bounded import read_bytes, require_readable, translated
from optmech.reading.columns import read_columns, read_rows, read_text_columns
from optmech.reading.data import read_array
from optmech.reading.sandbox import Found, read_isolated
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.labels import label_text
from optmech.spaces.mechanism import ROW_SUM_TOLERANCE, Mechanism

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_COLUMNS = ("secret", "observable", "probability")


@checked_arguments
def to_frame(mechanism: Mechanism, *, wide: bool = False) -> pd.DataFrame:
    """A pandas table with the columns secret, observable (text) and probability (float64); or,
    where it is to be ``wide``, with a row for every secret and a column for every observable.

    Rows with probability 0 are left out, so that an observable which is never reported, and a
    domain's coordinates, are not in the table.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> print(om.exchange.to_frame(m).to_string(index=False))
    secret observable  probability
      left       left         0.75
      left      right         0.25
     right       left         0.25
     right      right         0.75
    >>> print(om.exchange.to_frame(m, wide=True))
    observable  left  right
    secret
    left        0.75   0.25
    right       0.25   0.75
    """
    pandas = needed("pandas", "parquet", where="to_frame")
    s, o = np.nonzero(mechanism.matrix)
    secrets, observables = (
        np.array([label_text(label) for label in domain.labels], dtype=object)
        for domain in (mechanism.secrets, mechanism.observables)
    )
    if wide:
        index, columns = (
            pandas.Index(texts, name=name)
            for texts, name in zip((secrets, observables), _COLUMNS, strict=False)
        )
        return pandas.DataFrame(mechanism.matrix, index, columns)
    values = (secrets[s], observables[o], mechanism.matrix[s, o])
    return pandas.DataFrame(dict(zip(_COLUMNS, values, strict=True)))


@checked_arguments
def write_parquet(mechanism: Mechanism, path: str | Path) -> None:
    """Write ``to_frame`` as a Parquet file.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> om.exchange.write_parquet(m, "m.parquet")
    >>> open("m.parquet", "rb").read(4)
    b'PAR1'
    """
    needed("pyarrow", "parquet", where="write_parquet")
    buffer = io.BytesIO()
    to_frame(mechanism).to_parquet(buffer, engine="pyarrow", index=False)
    write_atomically(path, buffer.getvalue())


@checked_arguments
def read_parquet(
    path: str | Path, secrets: Domain | None = None, observables: Domain | None = None
) -> Mechanism:
    """Read a mechanism from a Parquet file with the columns of ``to_frame``.

    Without domains, secrets and observables are the texts of the file, in the order in which
    they first occur. With them, texts are their labels as written by ``to_frame``.

    Raises
    ------
    ProblemError
        On a file without these columns, an unknown label, a pair that occurs twice, or rows that
        are no distributions.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> om.exchange.write_parquet(m, "m.parquet")
    >>> om.exchange.read_parquet("m.parquet").matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    file = path_of(path)
    texts = [read_text_columns(file, [name])[name] for name in _COLUMNS[:2]]
    chances = read_columns(file, _COLUMNS[2:])[_COLUMNS[2]]
    domains = [
        Domain(dict.fromkeys(column)) if given is None else given
        for column, given in zip(texts, (secrets, observables), strict=True)
    ]
    places = [_indices(column, domain, path) for column, domain in zip(texts, domains, strict=True)]
    memory.require(
        8.0 * len(domains[0]) * len(domains[1]),
        what=f"a matrix of {len(domains[0]):,} secrets and {len(domains[1]):,} observables",
        where=str(path),
        remedy="Use a coarser domain",
    )
    matrix = np.zeros((len(domains[0]), len(domains[1])))
    distinct = np.unique(np.ravel_multi_index((places[0], places[1]), matrix.shape))
    if len(distinct) < len(chances):
        raise ProblemError("a pair of labels occurs twice", where=path)
    matrix[tuple(places)] = chances
    with inside(path):
        return Mechanism(domains[0], domains[1], matrix)


def _indices(texts: list[str], domain: Domain, path: str | Path) -> np.ndarray:
    known = {label_text(label): k for k, label in enumerate(domain.labels)}
    unknown = next((k for k, text in enumerate(texts) if text not in known), None)
    if unknown is not None:
        raise ProblemError(
            f"row {unknown + 1} has none of the {len(domain)} labels",
            where=path,
            remedy=f"The labels are {few(known)}",
        )
    return np.array([known[text] for text in texts], dtype=np.int64)


MATRIX_BYTES = 2 * 2**30
"""Of a file that holds a matrix."""
_AXES = ("secret", "observable")


@checked_arguments
def to_xarray(mechanism: Mechanism) -> xr.DataArray:
    """p(o|s) with dimensions ``secret`` and ``observable``.

    Each dimension has its labels as text for an index, and the coordinates of the domain, where
    it has them, as ``secret_x``, ``secret_y`` (``_lon``, ``_lat`` in degrees) and so on.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> table = om.exchange.to_xarray(m)
    >>> table.dims, float(table.sel(secret="left", observable="right"))
    (('secret', 'observable'), 0.25)
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
    """Write ``to_xarray`` as NetCDF 4; probabilities are float64, bit by bit.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> om.exchange.write_netcdf(m, "m.nc")
    >>> bool((om.exchange.read_netcdf("m.nc").matrix == m.matrix).all())
    True
    """
    needed("h5netcdf", "xarray", where="write_netcdf")
    write_atomically(path, bytes(to_xarray(mechanism).to_netcdf(engine="h5netcdf")))


@checked_arguments
def read_netcdf(path: str | Path) -> Mechanism:
    """Read a mechanism written by ``write_netcdf``, or any array with the same two dimensions.

    Labels are text, coordinates are kept.

    Raises
    ------
    ProblemError
        On a file that is no such array, or an array that is no mechanism.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> om.exchange.write_netcdf(m, "m.nc")
    >>> om.exchange.read_netcdf("m.nc").secrets.labels
    ('left', 'right')
    """
    for package in ("xarray", "h5netcdf"):
        needed(package, "xarray", where="read_netcdf")
    file = path_of(path)
    require_readable(file, MATRIX_BYTES)
    found = read_isolated("netcdf", file)
    dimensions = found.values["dims"]
    if set(dimensions) != set(_AXES):
        raise ProblemError(
            f"has the dimensions {', '.join(dimensions)}",
            where=path,
            remedy="Name them secret and observable",
        )
    values = found.arrays[0]
    matrix = values if tuple(dimensions) == _AXES else values.T
    with inside(path):
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


FORMATS = (".csv", ".npy", ".nc", ".parquet")
_UNEVEN = 1e-6


@checked_arguments
def read_matrix(path: str | Path, secrets: Domain, observables: Domain) -> Mechanism:
    """A mechanism over given domains from a matrix with a row for every secret.

    ``.csv`` (numbers without a header) and ``.npy`` are in the order of the labels; ``.nc`` and
    ``.parquet`` are those of ``write_netcdf`` and ``write_parquet``. Row sums may be off 1 by
    1e-6, as printed numbers are, and are then divided out.

    Raises
    ------
    ProblemError
        On another kind of file, an unreadable one, a matrix of another shape, or rows that are
        no distributions.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> np.savetxt("m.csv", [[0.75, 0.25], [0.25, 0.75]], delimiter=",")
    >>> om.exchange.read_matrix("m.csv", sides, sides).matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    suffix = path_of(path).suffix.lower()
    if suffix == ".parquet":
        return read_parquet(path, secrets, observables)
    if suffix == ".nc":
        values = read_netcdf(path).matrix
    elif suffix == ".npy":
        values = _numpy(path)
    elif suffix == ".csv":
        values = _comma_separated(path)
    else:
        raise ProblemError(
            "is not a matrix", where=path, remedy=f"Use a name in {', '.join(FORMATS)}"
        )
    with inside(path):
        return Mechanism(secrets, observables, _evened(values))


@checked_arguments
def write_matrix(mechanism: Mechanism, path: str | Path) -> None:
    """Write p(o|s) as ``.csv`` (17 digits), ``.npy``, ``.nc`` or ``.parquet``; to standard output
    as CSV.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["left", "right"]), "ln 3")
    >>> om.exchange.write_matrix(m, "m.npy")
    >>> np.load("m.npy").tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    suffix = ending(path, ".csv")
    if suffix == ".parquet":
        write_parquet(mechanism, path)
    elif suffix == ".nc":
        write_netcdf(mechanism, path)
    elif suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, mechanism.matrix, allow_pickle=False)
        write_atomically(path, buffer.getvalue())
    elif suffix == ".csv":
        rows = ([repr(value) for value in row] for row in mechanism.matrix.tolist())
        write_atomically(path, csv_bytes(rows, end="\n"))
    else:
        raise ProblemError(
            "is not the name of a matrix",
            where=path,
            remedy=f"Use a name in {', '.join(FORMATS)}",
        )


def _numpy(path: str | Path) -> Floats:
    content = read_bytes(path, MATRIX_BYTES)
    with translated(path, "cannot be read as a NumPy array", "Use numpy.save"):
        if content[:2] == b"PK":
            raise ProblemError(
                "is an archive of arrays (.npz)",
                where=path,
                remedy="Save the one matrix with numpy.save",
            )
        found: Floats = read_array(content)
        return found


def _comma_separated(path: str | Path) -> Floats:
    rows = read_rows(path_of(path))
    lengths = {len(row) for row in rows}
    if len(lengths) != 1:
        raise ProblemError(
            "has rows of different lengths" if rows else "is empty",
            where=path,
            remedy="Give a row of numbers for every secret",
        )
    return np.array(rows, dtype=np.float64)


def _evened(values: Floats) -> Floats:
    """Rows divided by their sums where these are 1 up to printing."""
    if values.ndim != 2 or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        return values
    sums = values.sum(axis=1, keepdims=True)
    off = np.abs(sums - 1).max(initial=0.0)
    return values / sums if ROW_SUM_TOLERANCE < off <= _UNEVEN else values
