"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazily(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package for what it imports under ``if TYPE_CHECKING:``,
    which so is the one list of its names, for type checkers as for ``__all__``. It is read from the
    source of the package when a name is first asked for."""

    def found(name: str) -> object:
        if name == "__all__":
            return sorted(_homes(package))
        if name not in _homes(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = _homes(package)[name]
        if home == package:
            return import_module(f"{package}.{name}")
        return getattr(__import__(home, fromlist=[name]), name)

    return found, lambda: sorted(_homes(package))


@cache
def _homes(package: str) -> dict[str, str]:
    import ast

    spec: Any = sys.modules[package].__spec__
    tree = ast.parse(spec.loader.get_source(package))
    blocks = [part.body for part in tree.body if isinstance(part, ast.If)]
    lines = [line for block in blocks for line in block if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in lines for alias in line.names}
