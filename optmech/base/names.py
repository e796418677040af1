"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any

from optmech.errors import ProblemError

_LOADING, _PATIENCE = RLock(), 5.0
"""Held while a name is imported, and how many seconds others wait for it."""


def lazily(
    package: str, within: str | None = None, rarer: str = "", **earlier: str
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package for what it imports under ``if TYPE_CHECKING:``,
    which so is the one list of its names, for type checkers as for ``__all__``, but for the
    ``rarer`` of them, which are found and not listed. So are ``earlier`` names, of which is given
    what they are called now, with the namespace where it is another. The list is read from the
    source of the package when a name is first asked for. Other distributions add the names that
    they state under ``within``: "" for those of ``om``, else a namespace with a dot."""

    def listed() -> list[str]:
        return sorted({*stated(package), *_others(within)} - {*rarer.split()})

    def found(name: str) -> object:
        # else threads that import a package and a part of it at once are given what is half made
        alone = _LOADING.acquire(timeout=_PATIENCE)
        try:
            return sought(name)
        finally:
            if alone:
                _LOADING.release()

    def sought(name: str) -> object:
        if name == "__all__":
            return listed()
        homes = stated(package)
        space, _, name = earlier.get(name, name).rpartition(".")
        if space:
            return getattr(sought(space), name)
        if name not in homes:
            if within is not None and not name.startswith("_"):
                with suppress(LookupError):
                    return _other(within + name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(__import__(homes[name], fromlist=[name]), name)

    return found, listed


def _other(name: str) -> object:
    """What another distribution has under a name. Raises LookupError where none is known to have
    it, AttributeError where that one is not installed."""
    from optmech.base.extensions import NAMES, extension

    try:
        return extension(NAMES, name)
    except ProblemError as error:
        raise AttributeError(str(error)) from error


def _others(within: str | None) -> list[str]:
    """The names that other distributions add to a namespace."""
    if within is None:
        return []
    from optmech.base.extensions import NAMES, added

    own = [name.removeprefix(within) for name in added(NAMES) if name.startswith(within)]
    return [name for name in own if "." not in name]


@cache
def stated(package: str) -> dict[str, str]:
    """The modules of what a module imports for type checkers alone, by name."""
    import ast

    spec: Any = sys.modules[package].__spec__
    tree = ast.parse(spec.loader.get_source(package))
    lines = [line for part in tree.body if isinstance(part, ast.If) for line in part.body]
    imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in imports for alias in line.names}
