"""Arrays of numbers in files of NumPy and sparse ones of SciPy, read without trusting a header."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.errors import ProblemError
from optmech.reading.bounded import MAX_BYTES, read_bytes, translated

_COMPRESSED = {"csr": sp.csr_array, "csc": sp.csc_array}


def read_arrays(path: Path, name: str | None = None) -> Any:
    """The array of a .npy file, or of a .npz archive that called ``name``, which may be left out
    where there is one; or the sparse array that ``scipy.sparse.save_npz`` wrote. Raises
    ProblemError on anything else."""
    content = read_bytes(path)
    with translated(path, "cannot be read as arrays of NumPy", "Use numpy.savez or save_npz"):
        if content[:2] != b"PK":
            return read_array(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if sum(info.file_size for info in parts.values()) > MAX_BYTES:
                raise ProblemError("is too large", where=path, remedy="Give a smaller array")

            def part(key: str) -> Any:
                with archive.open(parts[key]) as stream:
                    return read_array(stream.read(MAX_BYTES + 1))

            if name is None and {"format", "shape", "data"} <= parts.keys():
                kind = part("format").item()
                kind = kind.decode() if isinstance(kind, bytes) else kind
                shape, data = tuple(part("shape").tolist()), part("data")
                if kind == "coo":
                    return sp.coo_array((data, (part("row"), part("col"))), shape=shape)
                made = _COMPRESSED[kind]((data, part("indices"), part("indptr")), shape=shape)
                made.check_format(full_check=True)
                return made
            if name is None and len(parts) == 1:
                return part(next(iter(parts)))
            if name not in parts:
                raise ProblemError(
                    f"has {len(parts)} arrays",
                    where=path,
                    remedy='Say which one by name = "..."',
                )
            return part(name)


def read_array(content: bytes) -> Any:
    """One array in the format of NumPy, whose header promises what is there; ValueError else."""
    stream = io.BytesIO(content)
    first = np.lib.format.read_magic(stream) == (1, 0)
    read = "read_array_header_1_0" if first else "read_array_header_2_0"
    shape, _, dtype = getattr(np.lib.format, read)(stream)
    wanted = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or wanted != len(content) - stream.tell():
        raise ValueError(f"its header promises {wanted:,} bytes of {dtype}")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)
