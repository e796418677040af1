"""One task, in whatever process an executor runs it."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from optmech.base.read_only import record

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.pipeline.profiles import Profile
    from optmech_sweeps.templates import Template


def figures_of(design: Design) -> dict[str, Any]:
    """Its summary; ``attack_error``, what the optimal attack on its mechanism is left with, in the
    distance of ``choose_distance``, None where there is no mechanism; and ``threshold_figures``."""
    from optmech.analysis import attacks
    from optmech.problem.attack import choose_distance

    error, problem = None, design.problem
    if design.matrix is not None:
        _, distance = choose_distance(problem)
        error = float(attacks.optimal_attack(design.mechanism, problem.prior, distance).error)
    return {**design.summary(), "attack_error": error, **threshold_figures(design)}


def threshold_figures(design: Design) -> dict[str, float | None]:
    """The largest ε that thresholds leave, inf where there is none, and the objective of the
    repaired mechanism, of several constraints the worst one, None where no repair was found; an
    empty table for a design without thresholds."""
    found = design.approximations
    if not found:
        return {}
    worst = max if design.problem.statement.sign > 0 else min
    repaired = worst(part.repaired_loss for part in found)
    lacking = any(math.isnan(part.repaired_loss) for part in found)
    return {
        "true_epsilon": max(part.epsilon for part in found),
        "repaired_loss": None if lacking else repaired,
    }


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Names of limits in malloc.h of the GNU C library."""


@record
class Job:
    """What a process needs to know; ``start`` is the content of the neighbour's design file."""

    task: int
    source: Template
    profile: Profile
    start: bytes | None = None


@record
class Outcome:
    """``design`` is the content of a design file, None where the task failed for ``reason``."""

    task: int
    figures: dict[str, Any]
    design: bytes | None
    reason: str = ""


_last: tuple[str, Design | None] = "", None
"""The design that this process made last, by digest: the next task of a chain often wants it."""


@cache
def _keep_memory() -> None:
    """Undo, once in this process, what Dask asks of the C library on behalf of its workers
    (``MALLOC_TRIM_THRESHOLD_``): memory that is handed back whenever an array goes is fetched again
    page by page for the next, and a solve takes three times as long. With these limits up to
    128 MiB stay with the process instead."""
    if not sys.platform.startswith("linux") or "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # another C library has none
        mallopt(_M_TRIM_THRESHOLD, 128 << 20)
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)


def run(job: Job) -> Outcome:
    """Solve a task. Whatever goes wrong with it is an outcome; only the machinery raises."""
    from optmech.errors import OptmechError

    _keep_memory()
    try:
        return _solved(job)
    except OptmechError as error:
        reason = str(error)
    except MemoryError:
        reason = "the memory at hand does not suffice"
    except Exception as error:
        reason = f"internal error: {type(error).__name__}: {error}"
    return Outcome(job.task, {}, None, " ".join(reason.split()))


def _solved(job: Job) -> Outcome:
    global _last  # noqa: PLW0603
    from optmech.pipeline import search
    from optmech.pipeline.session import Clock
    from optmech.pipeline.solve import solve

    clock = Clock(job.profile.time_limit)
    problem, start = job.source.build(), _start(job.start)
    profile = clock.rest(job.profile)
    if problem.mesh is None and problem.statement.survey is None:
        design = search.solve(problem, profile=profile, start=start)
    else:
        # a task about every point of a region, or of a statistic, which nothing can start from
        design = solve(problem, profile)
    content = design.document()
    _last = (hashlib.sha256(content).hexdigest(), design)
    return Outcome(job.task, figures_of(design), content, design.reason)


def _start(content: bytes | None) -> Design | None:
    from optmech.designs.design import Design

    if content is None:
        return None
    digest, last = _last
    known = digest == hashlib.sha256(content).hexdigest()
    found = last if last is not None and known else Design.of_document(content, "start")
    # an axis may lead from a region to finitely many places
    return found if found.mesh is None else None
