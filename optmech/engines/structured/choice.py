"""Which implementation works on the blocks."""

from __future__ import annotations

from optmech.base.machine import has_numba
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.iterative import iterates
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone

SMALL = 21_000
"""Variables times blocks up to which loading compiled code gains nothing: 144 places and metric
privacy take as long with NumPy, and the first solve on a machine need not compile."""
FEW = 6000
"""Variables times blocks up to which a neighbour's columns save nothing."""


def compiles(model: Model) -> bool:
    """Whether compiled kernels are there, and worth loading."""
    return has_numba() and model.blocks * model.variables > SMALL


def starts_warm(model: Model) -> bool:
    """Whether to begin on a neighbour's columns, which compiled kernels price: one of many solves,
    so that loading these pays sooner than for one."""
    return has_numba() and model.blocks * model.variables > FEW


def make_backend(model: Model, cone: Cone, threads: int) -> Backend:
    """The compiled backend, or NumPy's where there is no numba or nothing to gain."""
    if compiles(model):
        if model.pairs_only and iterates(model.variables, model.blocks):
            from optmech.engines.structured.sparse_backend import SparseBackend

            return SparseBackend(model, cone, threads)
        from optmech.engines.structured.compiled import CompiledBackend

        return CompiledBackend(model, cone, threads)
    from optmech.engines.structured.array_backend import ArrayBackend
    from optmech.engines.structured.arrays import on_host

    return ArrayBackend(model, cone, on_host())
