"""Whether a whole program fits into memory, and what to do where it does not."""

from __future__ import annotations

import numpy as np

from optmech.base import memory
from optmech.engines.base import program_bytes
from optmech.pipeline.profiles import Profile
from optmech.problem import Problem
from optmech.statement import Statement

CELLS = 256
"""Of the bound, where nobody said how many."""


def resolution_for(problem: Problem, profile: Profile, *, asked: bool) -> tuple[int, str]:
    """How many cells to solve a problem with, and why; 0 for the whole program, which it is where
    that fits, where an engine was chosen, or ``asked`` for by name."""
    if profile.resolution:
        return profile.resolution, f"{profile.resolution:,} cells were asked for"
    if asked or profile.engine != "auto" or profile.device:
        return 0, ""
    statement = problem.statement
    needed, available = whole_bytes(statement), memory.available_bytes()
    if needed <= 0.9 * available or problem.secrets.points is None:
        return 0, ""
    from optmech.designs.resolution import refusal

    if refusal(statement):
        return 0, ""
    least = min(CELLS, statement.secrets)
    return least, (
        f"the whole program needs about {memory.readable(needed)} of memory and "
        f"{memory.readable(available)} are available: {least:,} cells instead"
    )


def whole_bytes(statement: Statement) -> float:
    """Memory for the whole program: its engine's, the pairs, and the tables between secrets."""
    secrets, observables = statement.secrets, statement.observables
    limits = statement.log_ratio
    pairs = int(np.isfinite(limits).sum())
    return program_bytes(secrets, observables) + 64.0 * pairs + 80.0 * secrets**2
