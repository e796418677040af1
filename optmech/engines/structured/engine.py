"""A primal-dual interior point method that keeps the blocks of the design problem apart.

Every iteration factors one small matrix per observable and one over the row sums. Only short
pairs of the metric are held at first; long ones join the blocks where they come near to being
violated, so the result holds over all pairs.
"""

from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from optmech.base import memory
from optmech.base.native import has_kernels
from optmech.engines.base import EngineResult, Monitor, Options, Outcome, program_bytes
from optmech.engines.structured import model as shape
from optmech.engines.structured.iterative import iterates
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Backend, Cone, make_cone
from optmech.engines.structured.run import Bounds, Run
from optmech.engines.structured.state import start
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import BlockLP

SMALL = 6_000
"""Variables times blocks up to which kernels gain nothing: 64 places take as long with NumPy."""


def compiles(model: Model) -> bool:
    """Whether compiled kernels are there, and worth loading."""
    return has_kernels() and model.blocks * model.variables > SMALL


def make_backend(model: Model, cone: Cone, threads: int) -> Backend:
    """The compiled backend, or NumPy's where there is none or nothing to gain."""
    if compiles(model):
        from optmech.engines.structured.compiled import CompiledBackend, SparseBackend

        few = iterates(model.variables, model.blocks)
        iterated = few and model.pairs_only and not model.folded
        return (SparseBackend if iterated else CompiledBackend)(model, cone, threads)
    from optmech.engines.structured.array_backend import ArrayBackend
    from optmech.engines.structured.arrays import on_host

    return ArrayBackend(model, cone, on_host())


class StructuredEngine:
    """Engine for programs of pair cones, distortion, lifted and loss rows (see ``refusal``)."""

    name = "structured"

    def refusal(self, lp: BlockLP) -> str:
        """Why this engine cannot take the program; empty when it can."""
        return shape.refusal(lp)

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        """Iterate until the monitor has the gap, proposing points on the way. Raises TooLargeError
        when the estimated memory is not there."""
        if reason := self.refusal(lp):
            return EngineResult(Outcome.FAILED, reason)
        pairs_alone = not lp.local and len(lp.links) == 1
        memory.require(
            program_bytes(lp.secrets, lp.blocks, bool(options.device), pairs_alone),
            what=f"the structured engine for {lp.secrets:,} secrets and {lp.blocks:,} observables",
            where="profile",
            remedy="Use a coarser domain, fewer observables or another engine",
        )
        model = shape.build(lp)
        if not model.allowed.any(axis=0).all():
            secret = int(model.first[np.flatnonzero(~model.allowed.any(axis=0))[0]])
            return EngineResult(
                Outcome.INFEASIBLE, f"no observable is left for secret number {secret}"
            )
        with np.errstate(all="ignore"):
            attempts = _attempts(model, options, monitor)
            most, run = next(attempts)
            if monitor.remaining() <= 0:
                return EngineResult(Outcome.STOPPED, "the time was over after the start-up")
            # several blocks are worked on at once, so BLAS is to keep to one thread
            with threadpool_limits(1, user_api="blas"):
                result = run.finish(most)
                if result.outcome is Outcome.FAILED:
                    for most, run in attempts:
                        result = run.finish(most)
                return result


def _attempts(model: Model, options: Options, monitor: Monitor) -> Iterator[tuple[int, Run]]:
    """Runs and their most iterations, until one does not fail: from a neighbour's design where that
    applies, on its columns, and from the usual start on all."""
    cone = make_cone(model)
    if options.start is not None and not options.device and compiles(model):
        from optmech.engines.structured.columns import ColumnSet, SomeColumns
        from optmech.engines.structured.narrowing import WarmStart

        warm = WarmStart(model, cone, options.start)
        if warm.applies():
            columns = ColumnSet(model, cone, warm.useful(options.threads), options.threads)
            bounds: Bounds = SomeColumns(columns, warm.state(columns), options, monitor)
            yield TUNING.lost, Run(bounds)
    state = start(model, cone)
    if options.device:
        from optmech.engines.structured.array_backend import ArrayBackend, require_device_memory
        from optmech.engines.structured.arrays import open_device

        arrays = open_device(options.device)
        require_device_memory(model, arrays)
        monitor.report(f"blocks on {arrays.name}")
        backend: Backend = ArrayBackend(model, cone, arrays)
    else:
        backend = make_backend(model, cone, options.threads)
    bounds = Bounds(model, cone, backend, state, options, monitor)
    narrowing = None
    if not options.device and compiles(model):
        from optmech.engines.structured.narrowing import Narrowing

        narrowing = Narrowing(model, cone) if Narrowing.applies(model, cone) else None
    run = Run(bounds, None if narrowing is None else narrowing.next)
    yield TUNING.most_iterations, run
    if narrowing is not None and narrowing.before is not None:
        monitor.report("going on with all reports")
        backend = make_backend(model, cone, options.threads)
        bounds = Bounds(model, cone, backend, narrowing.before, options, monitor)
        yield TUNING.most_iterations, Run(bounds)
