"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

import numba


def jit(function: Any) -> Any:
    """Compile at the first call, without the interpreter's lock, and keep the code on disk."""
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})(
        function
    )
