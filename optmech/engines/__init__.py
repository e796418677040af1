"""Engines by name. Each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from optmech.engines.base import Engine
from optmech.errors import ProblemError

_ENGINES = {
    "highs": ("optmech.engines.highs", "HighsEngine"),
    "lazy": ("optmech.engines.lazy", "LazyEngine"),
    "structured": ("optmech.engines.structured", "StructuredEngine"),
    "blahut": ("optmech.engines.blahut", "BlahutEngine"),
    "conic": ("optmech.engines.conic", "ConicEngine"),
    "tangents": ("optmech.engines.tangents", "TangentEngine"),
    "cvxpy": ("optmech.engines.cvx", "CvxpyEngine"),
}
NAMES = (*_ENGINES, "auto")


def load_engine(name: str) -> Engine:
    """The engine called ``name``; "auto" is resolved by ``engines.auto.select`` beforehand."""
    if name not in _ENGINES:
        raise ProblemError(
            f"engine {name!r} is unknown",
            where="profile.engine",
            remedy=f"Use one of {', '.join(NAMES)}",
        )
    module, attribute = _ENGINES[name]
    engine: Engine = getattr(import_module(module), attribute)()
    return engine
