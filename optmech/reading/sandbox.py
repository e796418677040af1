"""Reading Parquet, NetCDF and meshes in a process of its own, with limits on its time and memory.

The libraries that read them trust what a file says of itself: a damaged file may loop for ever,
claim any amount of memory, print to standard error or end the process. Here that is the child's end
only, and an error that says so. The child reads one file, answers on standard output, and ends.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optmech.base import memory
from optmech.errors import ProblemError
from optmech.reading.bounded import translated

_SECONDS = 60
"""For the child in all, on a busy machine; for computing it has far less."""
_SIGXCPU = 24
_CHILD = """\
import sys
sys.path[:] = {path!r}
from optmech.reading.sandbox import main
main()
"""


class Found(NamedTuple):
    """What a file holds: plain values, and arrays that they refer to by position."""

    values: dict[str, Any]
    arrays: list[np.ndarray]


def read_isolated(kind: str, path: Path, **options: object) -> Found:
    """What ``reading.sandbox`` finds in a file of its ``kind``: parquet, netcdf or mesh.
    Raises ProblemError on what is no such file, and where reading it takes too long or too much
    memory."""
    order = json.dumps({"kind": kind, "path": str(path.absolute()), **options})
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD.format(path=sys.path)],
            input=order.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _unusable(path, f"reading it takes more than {_SECONDS} s") from error
    except (OSError, ValueError) as error:
        raise _unusable(path, "its reader could not be run") from error
    if done.returncode == -_SIGXCPU:
        raise _unusable(path, "reading it does not end")
    try:
        found = _decoded(done.stdout)
    except (ValueError, EOFError, LookupError, TypeError) as error:
        status = done.returncode
        raise _unusable(path, f"its reader ended with status {status}") from error
    if "error" in found.values:
        raise ProblemError(
            str(found.values["error"]), where=path, remedy=str(found.values["remedy"])
        )
    return found


def _encoded(found: Found) -> bytes:
    """A child's answer: a line of JSON, then the arrays."""
    out = io.BytesIO()
    out.write(json.dumps({**found.values, "arrays": len(found.arrays)}).encode() + b"\n")
    for array in found.arrays:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _decoded(answer: bytes) -> Found:
    stream = io.BytesIO(answer)
    values = json.loads(stream.readline())
    arrays = [np.load(stream, allow_pickle=False) for _ in range(values["arrays"])]
    return Found(values, arrays)


def _unusable(path: Path, reason: str) -> ProblemError:
    return ProblemError(
        f"cannot be read: {reason}", where=path, remedy="Write the file again, or as CSV"
    )


_COMPUTING = 8
"""Seconds of that, after the imports."""
_ROOM = 768 * 2**20
"""Memory beyond what the imports take and the result is known to need."""
_LONGEST_TEXT = 2**20
_MOST_TEXT = 64 * 2**20


def main() -> None:
    """Read the order on standard input, and the file that it names."""
    order = json.loads(sys.stdin.buffer.read())
    answer = os.dup(1)
    # what libraries print is nobody's business: it would go where the answer goes
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    kind: str = order["kind"]
    try:
        read, name, other = _READERS[kind]
        with translated("", f"cannot be read as {name}", f"Write the file again, or as {other}"):
            found = read(order)
    except ProblemError as error:
        found = Found({"error": error.message, "remedy": error.remedy}, [])
    with os.fdopen(answer, "wb") as stream:
        stream.write(_encoded(found))
    # tearing down libraries that have met a damaged file can fail again
    os._exit(0)


def _parquet(order: dict[str, Any]) -> Found:
    """Columns of a table: numbers as float64, everything else as texts and where they stand.

    Texts stay a dictionary, as in the file: a few kilobytes can refer to one long text a million
    times.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _limit(_ROOM)
    path, names = order["path"], order["columns"]
    with pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    if any(schema.names.count(name) != 1 for name in names):
        return Found({"columns": schema.names[:1000]}, [])
    if rows > order["most_rows"]:
        raise ProblemError(
            f"has {rows:,} rows, more than the {order['most_rows']:,} allowed",
            remedy="Keep only the rows that are needed, or count equal ones",
        )
    # of lists, tables and bytes the number of rows does not bound the size
    flat = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal,
        pa.types.is_decimal, pa.types.is_null, _is_text,
    )  # fmt: skip
    for name in names:
        kind = schema.field(name).type
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(test(inner) for test in flat):
            raise ProblemError(
                f"the column {name!r} holds {str(kind)[:60]}", remedy="Give numbers or texts"
            )
    texts = [name for name in names if _is_text(schema.field(name).type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        table = file.read(columns=list(dict.fromkeys(names)), use_threads=False)
    # a damaged file may refer to texts that it does not have
    table.validate(full=True)
    found: list[dict[str, Any]] = []
    arrays: list[np.ndarray] = []
    for name in names:
        column = table[name]
        kind = column.type
        if order["numbers"] and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            found.append({"numbers": len(arrays)})
            arrays.append(np.asarray(numbers, dtype=np.float64))
            continue
        if not pa.types.is_dictionary(kind):
            cells = [None if cell is None else str(cell) for cell in column.to_pylist()]
            column = pa.chunked_array([pa.array(cells, type=pa.string())]).dictionary_encode()
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([]).dictionary_encode()
        distinct = column.dictionary.to_pylist()
        found.append({"texts": _checked(name, distinct), "places": len(arrays)})
        arrays.append(np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False)))
    types = [str(schema.field(name).type)[:100] for name in names]
    return Found({"columns": schema.names[:1000], "found": found, "types": types}, arrays)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _checked(name: str, distinct: list[Any]) -> list[str]:
    texts = ["" if text is None else str(text) for text in distinct]
    longest, total = max(map(len, texts), default=0), sum(map(len, texts))
    if longest > _LONGEST_TEXT or total > _MOST_TEXT:
        raise ProblemError(
            f"the column {name!r} holds texts of {longest:,} characters, {total:,} in all",
            remedy=f"Give texts of at most {_LONGEST_TEXT:,}, and {_MOST_TEXT:,} in all",
        )
    return texts


def _netcdf(order: dict[str, Any]) -> Found:
    """The one array of a file with its labels and coordinates."""
    import h5py
    import xarray

    _limit(_ROOM)
    path = order["path"]
    with h5py.File(path, "r") as file:
        _refuse_elsewhere(file)
    with xarray.open_dataarray(path, engine="h5netcdf") as stored:
        size = int(stored.dtype.itemsize) * int(np.prod(stored.shape, dtype=object))
        memory.require(3.0 * size, what=f"an array of {size:,} bytes", where="", remedy="")
        _limit(_ROOM + 4 * size)
        if stored.dtype.kind not in "fiu" or stored.ndim != 2:
            raise ProblemError(
                f"holds {stored.ndim} dimensions of {stored.dtype}",
                remedy="Give a matrix of numbers",
            )
        array = stored.load()
    arrays, coordinates, labels = [np.asarray(array.values)], {}, {}
    for name, values in array.coords.items():
        if values.dims != (str(name),) and values.ndim == 1 and values.dtype.kind in "fiu":
            units = str(values.attrs.get("units", ""))
            coordinates[str(name)] = {"array": len(arrays), "units": units}
            arrays.append(np.asarray(values.values, dtype=np.float64))
        elif values.ndim == 1:
            labels[str(name)] = _checked(str(name), [str(label) for label in values.values])
    dimensions = [str(name) for name in array.dims]
    return Found({"dims": dimensions, "labels": labels, "coordinates": coordinates}, arrays)


def _mesh(order: dict[str, Any]) -> Found:
    """The points and the triangles of a mesh, in two dimensions and as they are numbered."""
    import meshio

    _limit(_ROOM)
    try:
        found = meshio.read(order["path"])
    except SystemExit as error:
        # how meshio ends where none of its readers takes the file
        raise ProblemError("is none of the formats that its ending stands for") from error
    blocks = [block.data for block in found.cells if block.type == "triangle"]
    points = np.asarray(found.points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] < 2 or not blocks:
        raise ProblemError("holds no triangles", remedy="Give a mesh of triangles")
    return Found({}, [points[:, :2], np.vstack(blocks).astype(np.int64)])


def _refuse_elsewhere(file: Any) -> None:
    """Refuse datasets whose content lies in other files: those may be anything."""
    import h5py

    for name in file:
        outside = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
        dataset = None if outside else file.get(name)
        if isinstance(dataset, h5py.Dataset):
            outside = bool(dataset.external) or dataset.is_virtual
        if outside:
            raise ProblemError(
                f"{name!r} lies in another file", remedy="Write everything into one file"
            )


def _limit(room: int) -> None:
    """Let this process have no more memory than now and ``room``, and no more than some seconds."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        spent = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(spent.ru_utime + spent.ru_stime) + _COMPUTING
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        with open("/proc/self/status", encoding="ascii") as stream:
            held = next(line for line in stream if line.startswith("VmData:"))
        most = int(held.split()[1]) * 1024 + room
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


_READERS: dict[str, tuple[Callable[[dict[str, Any]], Found], str, str]] = {
    "parquet": (_parquet, "Parquet", "CSV"),
    "netcdf": (_netcdf, "NetCDF", "CSV"),
    "mesh": (_mesh, "a mesh", "GeoJSON"),
}
"""How files of a kind are read, what they are called, and what may be written instead."""
