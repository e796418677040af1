"""Loads ``scipy.sparse`` without ``numpy.f2py`` and ``numpy.testing``.

SciPy's wrapper of NumPy copies every name that NumPy lists, and thereby loads these two, which take
as long as all the rest and which nothing here uses. While it does, NumPy lists them not. Whoever
wants them imports them as ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_UNUSED = {"f2py", "testing"}


def _load(numpy: Any) -> None:
    names, listed = numpy.__all__, numpy.__dir__
    numpy.__all__ = [name for name in names if name not in _UNUSED]
    numpy.__dir__ = lambda: [name for name in listed() if name not in _UNUSED]
    try:
        import scipy.sparse  # noqa: F401
    finally:
        numpy.__all__ = names
        numpy.__dir__ = listed


_load(np)
