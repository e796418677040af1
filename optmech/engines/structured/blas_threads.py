"""Keep scipy's BLAS to one thread while several blocks are worked on at once."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from scipy.linalg import cython_blas

_PREFIXES = ("scipy_openblas", "openblas")


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread inside, the former number afterwards. Does nothing where scipy's BLAS is not
    OpenBLAS: only the speed differs."""
    try:
        library = ctypes.CDLL(cython_blas.__file__)
    except OSError:
        yield
        return
    for prefix in _PREFIXES:
        get = getattr(library, f"{prefix}_get_num_threads", None)
        change = getattr(library, f"{prefix}_set_num_threads", None)
        if get is not None and change is not None:
            former = int(get())
            change(1)
            try:
                yield
            finally:
                change(former)
            return
    yield
