"""Keep BLAS to one thread while several blocks are worked on at once."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("", "64_")


@contextmanager
def single_threaded(module: str) -> Iterator[None]:
    """One thread inside for the BLAS that an extension module is linked to, the former number
    afterwards. Does nothing where that is not OpenBLAS: only the speed differs."""
    spec = find_spec(module)
    try:
        library = ctypes.CDLL(None if spec is None else spec.origin)
    except OSError:
        yield
        return
    for name in (
        f"{prefix}_%s_num_threads{suffix}" for prefix in _PREFIXES for suffix in _SUFFIXES
    ):
        get = getattr(library, name % "get", None)
        change = getattr(library, name % "set", None)
        if get is not None and change is not None:
            former = int(get())
            change(1)
            try:
                yield
            finally:
                change(former)
            return
    yield
