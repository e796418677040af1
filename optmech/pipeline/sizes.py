"""Whether a whole program fits into memory, and what to do where it does not."""

import math

import numpy as np

from optmech.base import memory
from optmech.certificate.families.ratio import Ratio
from optmech.certificate.statement import Statement
from optmech.engines.base import program_bytes
from optmech.pipeline.profiles import Profile
from optmech.problem import Problem

CELLS = 256
"""Of the bound, where nobody said how many."""
_LARGE = 1_500
"""Secrets up to which a program is begun however little time there is."""
_HOPELESS = 8.0
"""Estimated processor seconds for each second there is, from which on it is not."""
_LONG = 3_000.0
"""Estimated processor seconds from which on cells come first: they take a few hundred."""


def resolution_for(problem: Problem, profile: Profile, *, asked: bool) -> tuple[int, str]:
    """How many cells to solve a problem with, instead of the whole program or before it, and why; 0
    for the whole program alone, which it is where that is short, where an engine was chosen, or
    ``asked`` for by name."""
    if profile.resolution:
        return profile.resolution, f"{profile.resolution:,} cells were asked for"
    if asked or profile.engine != "auto" or profile.device:
        return 0, ""
    statement = problem.statement
    why, instead = too_large(statement, profile), "instead"
    if not why and statement.secrets >= _LARGE:
        seconds, limit = whole_seconds(statement.secrets, statement.observables), profile.time_limit
        if seconds >= _LONG or (limit is not None and seconds > limit):
            why, instead = (
                f"the whole program takes about {seconds:,.0f} processor seconds",
                "first",
            )
    if not why or problem.secrets.points is None:
        return 0, ""
    from optmech.designs.outer import refusal

    if refusal(statement):
        return 0, ""
    least = min(CELLS, statement.secrets)
    return least, f"{why}: {least:,} cells {instead}"


def too_large(statement: Statement, profile: Profile) -> str:
    """Why a whole program is not to be tried; empty where it fits."""
    needed, available = whole_bytes(statement), memory.available_bytes()
    if needed > 0.9 * available:
        return (
            f"the whole program needs about {memory.readable(needed)} of memory and "
            f"{memory.readable(available)} are available"
        )
    seconds = whole_seconds(statement.secrets, statement.observables)
    limit = profile.time_limit
    if limit is None or statement.secrets < _LARGE or seconds <= _HOPELESS * limit:
        return ""
    return f"the whole program takes about {seconds:,.0f} processor seconds, for {limit:g} s"


def whole_seconds(secrets: int, observables: int) -> float:
    """Processor seconds to a gap of 1e-3, within a factor of two or so of what was measured: 19
    for 1,000 secrets and 100 observables, 556 for 5,000 and 100, 424 for 1,024 of both."""
    return 1e-7 * observables * math.pow(secrets, 2.1)


def whole_bytes(statement: Statement) -> float:
    """Memory for the whole program: its engine's, the pairs, and the tables between secrets."""
    secrets, observables = statement.secrets, statement.observables
    limits = statement.log_ratio
    pairs = int(np.isfinite(limits).sum())
    alone = statement.objective == "expected_loss" and all(
        type(family) is Ratio and family.window is None for family in statement.families
    )
    program = program_bytes(secrets, observables, pairs_alone=alone)
    if alone:
        return program + 16.0 * pairs + 24.0 * secrets**2
    return program + 64.0 * pairs + 80.0 * secrets**2
