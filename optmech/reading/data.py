"""Data files named in a problem file, and data inside installed Python packages; arrays
of numbers in files of NumPy and sparse ones of SciPy, read without trusting a header.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.reading.bounded import MAX_BYTES, read_bytes, require_readable, translated
from optmech.reading.columns import read_columns, read_rows, read_text_columns

_NAMING = ("file", "osm", "design")
"""Keys whose text is the name of a file."""
_PACKAGE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")


@dataclass(frozen=True)
class DataFile:
    """Where the numbers come from: ``file`` beside the problem file, or a package's resource."""

    file: str | None = None
    package: str | None = None
    resource: str | None = None

    def path(self, directory: Path) -> Path:
        """The file's path; relative names start at ``directory``."""
        if self.package is not None:
            return _resource(self.package, self.resource or "")
        if self.file is None:
            raise ProblemError("is missing", where="file", remedy='Give file = "..."')
        with _inside(self.file):
            require_readable(directory / self.file)
        return directory / self.file

    def columns(
        self, directory: Path, names: list[str], complete: Iterable[str] = ()
    ) -> dict[str, Floats]:
        """Columns of a CSV file as numbers; what is not a number becomes NaN, and is refused in
        those that have to be ``complete``."""
        path = self.path(directory)
        with _inside(self.name):
            columns = read_columns(path, names)
        for name in complete:
            bad = np.flatnonzero(~np.isfinite(columns[name]))
            if len(bad):
                raise ProblemError(
                    f"{self.name}: data row {bad[0] + 1} has no usable {name!r}",
                    where="file",
                    remedy="Complete or remove that row",
                )
        return columns

    def text_columns(self, directory: Path, names: list[str]) -> dict[str, list[str]]:
        """Columns of a CSV file as text."""
        path = self.path(directory)
        with _inside(self.name):
            return read_text_columns(path, names)

    def matrix(self, directory: Path) -> list[Floats]:
        """The rows of a CSV file of numbers without a header, of any lengths."""
        path = self.path(directory)
        with _inside(self.name):
            return read_rows(path)

    def arrays(self, directory: Path, name: str | None) -> Any:
        """The array of a NumPy file, or the one that is called so."""
        path = self.path(directory)
        with _inside(self.name):
            return read_arrays(path, name)

    @property
    def name(self) -> str:
        """The file or resource as the problem file names it."""
        return self.file if self.file is not None else str(self.resource)


def named_files(document: Any, directory: Path) -> tuple[Path, ...]:
    """The files that a document names, at any depth; relative to ``directory``."""
    found: list[Path] = []
    rest = [document]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(value.values())
            names = (value.get(key) for key in _NAMING)
            found.extend(directory / name for name in names if isinstance(name, str))
        elif isinstance(value, list):
            rest.extend(value)
    return tuple(found)


def _resource(package: str, resource: str) -> Path:
    if not _PACKAGE.fullmatch(package):
        raise ProblemError(
            f"{package!r} is not the name of a package",
            where="package",
            remedy="Give a top-level name such as plotly",
        )
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise ProblemError(
            f"the package {package!r} is not installed, and its data are needed",
            where="package",
            remedy=f"Run: pip install {package}",
        )
    folder = Path(next(iter(folders))).resolve()
    try:
        path = (folder / resource).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise ProblemError(
            f"{resource!r} is not the name of a file",
            where="resource",
            remedy="Name a file inside the package",
        ) from error
    if not path.is_relative_to(folder):
        raise ProblemError(
            f"{resource!r} lies outside the package", where="resource", remedy="Name a file"
        )
    try:
        require_readable(path)
    except ProblemError as error:
        raise ProblemError(
            f"the package {package!r} has no usable data file {resource!r}",
            where="resource",
            remedy="Check the name, or install a version that ships it",
        ) from error
    return path


@contextmanager
def _inside(name: str) -> Iterator[None]:
    """Errors of a file, reported at the key that names it."""
    try:
        yield
    except ProblemError as error:
        raise ProblemError(
            f"{name}: {error.message}", where="file", remedy=error.remedy or "Check the file"
        ) from error


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
                listed = ", ".join(map(repr, [*parts][:5]))
                said = f"has {len(parts)} arrays" + (name is not None) * f", and none {name!r}"
                remedy = f'Say which one by name = "...": {listed}'
                raise ProblemError(said, where=path, remedy=remedy)
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
