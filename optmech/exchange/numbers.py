"""Plain matrices from other tools: CSV, NumPy, NetCDF, Parquet, told apart by their names."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.paths import path_of
from optmech.base.storage import ending, write_atomically
from optmech.errors import ProblemError, inside
from optmech.exchange.arrays import MATRIX_BYTES, read_netcdf, write_netcdf
from optmech.exchange.tables import read_parquet, write_parquet
from optmech.reading.bounded import read_bytes, translated
from optmech.reading.data import DataFile
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import ROW_SUM_TOLERANCE, Mechanism

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
            "is not a matrix", where=str(path), remedy=f"Use a name in {', '.join(FORMATS)}"
        )
    with inside(str(path)):
        return Mechanism(secrets, observables, _evened(values))


@checked_arguments
def write_matrix(mechanism: Mechanism, path: str | Path) -> None:
    """Write p(o|s) as ``.csv`` (17 digits), ``.npy``, ``.nc`` or ``.parquet``; to standard output
    as CSV."""
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
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(
            [repr(value) for value in row] for row in mechanism.matrix.tolist()
        )
        write_atomically(path, text.getvalue().encode())
    else:
        raise ProblemError(
            "is not the name of a matrix",
            where=str(path),
            remedy=f"Use a name in {', '.join(FORMATS)}",
        )


def _numpy(path: str | Path) -> Floats:
    content = read_bytes(path, MATRIX_BYTES)
    stream = io.BytesIO(content)
    with translated(path, "cannot be read as a NumPy array", "Use numpy.save"):
        if content[:2] == b"PK":
            raise ProblemError(
                "is an archive of arrays (.npz)",
                where=str(path),
                remedy="Save the one matrix with numpy.save",
            )
        first = np.lib.format.read_magic(stream) == (1, 0)
        read = "read_array_header_1_0" if first else "read_array_header_2_0"
        shape, _, dtype = getattr(np.lib.format, read)(stream)
        wanted = dtype.itemsize * math.prod(shape)
        if dtype.hasobject or wanted != len(content) - stream.tell():
            raise ValueError(f"its header promises {wanted:,} bytes of {dtype}")
        stream.seek(0)
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _comma_separated(path: str | Path) -> Floats:
    try:
        rows = DataFile(str(path_of(path).absolute())).matrix(Path())
    except ProblemError as error:
        message = error.message.removeprefix(f"{path_of(path).absolute()}: ")
        raise ProblemError(message, where=str(path), remedy=error.remedy) from error
    lengths = {len(row) for row in rows}
    if len(lengths) != 1:
        raise ProblemError(
            "has rows of different lengths" if rows else "is empty",
            where=str(path),
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
