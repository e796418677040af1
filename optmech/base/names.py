"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazily(package: str, **earlier: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package for what it imports under ``if TYPE_CHECKING:``,
    which so is the one list of its names, for type checkers as for ``__all__``. What ``earlier``
    names are called now is given: they are found, and not listed. The list is read from the source
    of the package when a name is first asked for."""

    def found(name: str) -> object:
        homes = _stated(package)
        if name == "__all__":
            return sorted(homes)
        name = earlier.get(name, name)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(__import__(homes[name], fromlist=[name]), name)

    return found, lambda: sorted(_stated(package))


@cache
def _stated(package: str) -> dict[str, str]:
    """The modules of names."""
    import ast

    spec: Any = sys.modules[package].__spec__
    tree = ast.parse(spec.loader.get_source(package))
    lines = [line for part in tree.body if isinstance(part, ast.If) for line in part.body]
    imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in imports for alias in line.names}
