"""Whether loops can be compiled."""

from __future__ import annotations

import importlib.util
import os


def has_numba() -> bool:
    """Whether compiled kernels can be used: numba is there and not forbidden."""
    forbidden = os.environ.get("OPTMECH_NO_NUMBA", "0") not in ("", "0")
    return not forbidden and importlib.util.find_spec("numba") is not None
