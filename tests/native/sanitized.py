"""Tests of kernels on a library that was built with sanitizers, ``python sanitized.py LIBRARY``, in
a process that has their runtime loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from optmech.base import native


class Half:
    """Every second of the random problems of each kernel: sanitizers make all of it slow."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = items[::2]


if __name__ == "__main__":
    # the library has the first variant alone
    native._LIBRARY = Path(sys.argv[1])
    native.variants = lambda: ("baseline",)
    sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[Half()]))
