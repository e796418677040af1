"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

import numba

_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz"},
    "no_cfunc_wrapper": True,
}


def jit(function: Any) -> Any:
    """Compile at the first call, without the interpreter's lock, and keep the code on disk."""
    return numba.njit(cache=True, **_OPTIONS)(function)


def part(function: Any) -> Any:
    """For what kernels call and Python does not: compiled and kept with them alone."""
    return numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function)
