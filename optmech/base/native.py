"""The compiled kernels: arrays in, work done without the interpreter's lock.

``native/`` has their sources, and ``native/build.py`` makes one library of them, with variants for
several kinds of processors. A kernel is called through ctypes with pointers to arrays, and does the
part t of nt of its work. Where there is no library, NumPy or Python do the same work.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.errors import ProblemError

Array = NDArray[Any]
Work = Callable[[int, int], None]
"""A kernel with its arguments: called with t and nt it does a part of the work."""

CHOICE = "OPTMECH_KERNELS"
"""The environment variable that says which kernels run: the name of a variant, or ``NUMPY``."""
NUMPY = "numpy"
_VARIANTS = ("baseline", "avx2", "avx512")
_LIBRARY = Path(__file__).with_name("kernels.library")
_SOURCES = Path(__file__).resolve().parents[2] / "native"


_BROKEN: ContextVar[bool] = ContextVar("broken", default=False)


@contextmanager
def uncompiled() -> Iterator[None]:
    """Without compiled kernels inside, as they turned out to be broken."""
    before = _BROKEN.set(True)
    try:
        yield
    finally:
        _BROKEN.reset(before)


class Struct:
    """Arrays and sizes as a struct of C has them: pointers, then whole numbers."""

    def __init__(self, arrays: Iterable[Array], *sizes: int) -> None:
        self.arrays = tuple(arrays)
        values = (*map(_address, self.arrays), *sizes)
        self.fields = (ctypes.c_int64 * len(values))(*values)


def _address(array: Array) -> int:
    if not array.flags.c_contiguous:
        raise ValueError("a kernel takes arrays whose entries lie in order")
    return int(array.__array_interface__["data"][0])


@cache
def _loaded() -> tuple[ctypes.CDLL | None, str]:
    """The library, and the best variant that runs here; or none, and why."""
    if not _LIBRARY.exists():
        checkout = "they are not compiled: run python native/build.py"
        installed = "no C compiler was there when optmech was installed"
        return None, checkout if _SOURCES.is_dir() else installed
    try:
        library = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        return None, f"they cannot be loaded: {error}"
    for name in ("optmech_variant", "optmech_sources"):
        getattr(library, name).restype = ctypes.c_char_p
    if _SOURCES.is_dir() and library.optmech_sources().decode() != _digest():
        return None, "they are of other sources: run python native/build.py"
    return library, library.optmech_variant().decode()


def _digest() -> str:
    """As ``native/build.py`` makes it."""
    found = hashlib.sha256()
    for path in sorted(_SOURCES.glob("*.[ch]")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def variants() -> tuple[str, ...]:
    """The compiled variants that run here, the fastest last."""
    library, best = _loaded()
    return _VARIANTS[: _VARIANTS.index(best) + 1] if library else ()


def variant() -> str:
    """The kernels that run: "baseline", "avx2", "avx512" or "numpy", which is none of them. Raises
    ProblemError where the environment asks for what is not there."""
    if _BROKEN.get():
        return NUMPY
    there, asked = variants(), os.environ.get(CHOICE, "")
    if not asked:
        return there[-1] if there else NUMPY
    if asked not in (NUMPY, *there):
        raise ProblemError(
            f"no such kernels run here: {asked[:20]!r}" + ("" if there else f", as {_loaded()[1]}"),
            where=CHOICE,
            remedy=f"Say {', '.join((NUMPY, *there))}, or nothing for the fastest",
        )
    return asked


def has_kernels() -> bool:
    """Whether compiled kernels run."""
    return variant() != NUMPY


def missing() -> str:
    """Why no compiled kernels run; empty where they do."""
    if has_kernels():
        return ""
    library, why = _loaded()
    return f"{CHOICE}={NUMPY} forbids them" if library else why


def words() -> str:
    """Which kernels run, and where none do why, and what that costs."""
    why = missing()
    if not why:
        return f"compiled kernels run: {variant()}"
    return f"no compiled kernels run, as {why}; NumPy takes two to five times as long"


@cache
def _function(name: str, kind: str) -> Callable[..., int]:
    library = _loaded()[0]
    assert library is not None
    found: Callable[..., int] = getattr(library, f"optmech_{name}_{kind}")
    return found


def _argument(value: Struct | Array | float) -> Any:
    if isinstance(value, Struct):
        return ctypes.byref(value.fields)
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(_address(value))
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


def run(name: str, *arguments: Struct | Array | float) -> None:
    """Call a kernel. A ``float`` is a double, any other number a whole one of 64 bits. Raises
    MemoryError where there is none for its work."""
    if _function(name, variant())(*map(_argument, arguments)):
        raise MemoryError("no memory is left for a compiled kernel")


def work(name: str, *arguments: Struct | Array | float) -> Work:
    """A kernel that is called with t and nt before these arguments; see ``run``."""
    function, given = _function(name, variant()), [*map(_argument, arguments)]

    def part(t: int, nt: int, held: object = arguments) -> None:
        """``held``: what the pointers point to lives as long as this."""
        if function(ctypes.c_int64(t), ctypes.c_int64(nt), *given):
            raise MemoryError("no memory is left for a compiled kernel")

    return part
