"""A lower bound for every mechanism that is private at every point, by more and more cells of the
places, as far as time and memory lead."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints
from optmech.certificate import Multipliers
from optmech.certificate.families import Gradient, Ratio
from optmech.designs.design import OuterProof
from optmech.designs.outer import (
    bytes_of,
    cells_of,
    limits_in,
    middles_of,
    outer_problem,
    witnessed_by,
)
from optmech.engines import cones, pairs
from optmech.pipeline.beyond import attempted
from optmech.pipeline.profiles import Profile
from optmech.pipeline.session import Progress
from optmech.problem import Problem

_GAP = 2e-3
"""Of the program over cells: less than the distance of its optimum to every mechanism."""
_POWER = 1.6
"""Seconds grow with this power of the number of cells; measured 1.4 from 1,050 to 3,000."""
_SHARE = 0.8
"""Of the time that is left, for what is begun in it."""
_WORTH = 1.3
"""Times as many cells as before are worth another program."""
_MEMORY = 0.6
"""Share of the available memory that cells may take."""

Bounded = tuple[OuterProof | None, float, tuple[str, ...]]


@dataclass(eq=False)
class Clock:
    """How much time is left, whether somebody asked to stop, and whom to tell."""

    limit: float | None
    progress: Progress | None = None
    started: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    def remaining(self) -> float:
        """Seconds; inf without a limit, 0 after an interrupt."""
        if self.interrupted:
            return 0.0
        return math.inf if self.limit is None else max(0.0, self.limit - self.seconds)

    def stops(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over, or somebody asked to stop."""
        late = self.limit is not None and self.seconds >= share * self.limit
        return self.interrupted or late

    def interrupt(self) -> None:
        """Stop at the next occasion."""
        self.interrupted = True
        self.report("interrupted: finishing with the best verified result so far")

    def report(self, text: str) -> None:
        """Say how far it is."""
        if self.progress is not None:
            self.progress(text)


class _Stopped(Exception):  # noqa: N818
    """Before there were multipliers."""


def bound_by_cells(
    problem: Problem,
    gradient: Gradient,
    profile: Profile,
    clock: Clock,
    counts: tuple[int, int],
) -> Bounded:
    """The best proof that was found, its bound, and notes; ``counts`` of cells to begin and to end
    with. A bound that was proved is kept when the time is over or somebody stops it."""
    count, wanted = counts
    room = _MEMORY * memory.available_bytes() / bytes_of(1, len(problem.observables))
    most = min(wanted, max(count, math.isqrt(int(room))))
    best: tuple[OuterProof | None, float] = None, 0.0
    made, late = 0, False
    said: tuple[str, ...] = ()
    while not late:
        begun = time.monotonic()
        cells = cells_of(problem, gradient, count)
        own = len(np.unique(cells[problem.prior.weights > 0]))
        if own <= made:
            break
        work = partial(_of_cells, problem, gradient, profile, clock, cells)
        found, said = attempted(work, f"the lower bound by {own:,} cells")
        if found is None:
            late = not said
            break
        made = own
        if found[1] > best[1] or best[0] is None:
            best = found
        clock.report(f"bound from {made:,} cells: {best[1]:.6g} for every mechanism")
        if count >= most:
            break
        left = _SHARE * clock.remaining() / (time.monotonic() - begun)
        count = most if left == math.inf else min(most, int(made * left ** (1 / _POWER)))
        late = count < min(_WORTH * made, most)
    if best[0] is None:
        late_words = "no lower bound for every mechanism was proved in the time there was"
        return None, 0.0, said or (late_words,)
    by = f"the lower bound is by {made:,} cells, where it may use {wanted:,}"
    if late:
        said = (f"{by}: there was no time for more",)
    elif most < wanted:
        said = (*said, f"{by}: the memory at hand allows no more")
    return *best, said


def _of_cells(
    problem: Problem, gradient: Gradient, profile: Profile, clock: Clock, cells: Ints
) -> tuple[OuterProof, float] | None:
    """The bound of one partition, as good as there is time for; None without any."""
    try:
        return _proved(problem, gradient, profile, clock, cells)
    except _Stopped:
        return None


def _proved(
    problem: Problem, gradient: Gradient, profile: Profile, clock: Clock, cells: Ints
) -> tuple[OuterProof, float]:
    """The same; _Stopped without any time."""
    begun = time.monotonic()
    limits = limits_in(problem, gradient)

    def watched(i: Ints, j: Ints) -> Floats:
        if clock.stops():
            raise _Stopped
        return limits(i, j)

    statement = outer_problem(problem, gradient, cells, limits=watched).statement
    ratio = statement.families[0]
    assert isinstance(ratio, Ratio)
    # the numbers are proved again at the end, which takes about as long
    prepared = time.monotonic() - begun
    count = statement.secrets

    def stop(point: cones.ConePoint) -> bool:
        clock.report(
            f"{count:,} cells, step {point.iterations}: {point.bound:.6g} for every mechanism"
        )
        return clock.stops() or clock.remaining() <= prepared

    middles = middles_of(problem, gradient, cells)
    log_ratio = np.array(ratio.log_ratio)
    found = pairs.solve(log_ratio, middles, statement.cost, _GAP, stop, profile.threads)
    return witnessed_by(
        lambda witness: outer_problem(problem, gradient, cells, witness, limits),
        problem,
        limits,
        cells,
        Multipliers((found,)),
        boxes=False,
    )
