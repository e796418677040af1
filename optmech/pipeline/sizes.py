"""Whether a whole program fits into memory and time, and what to do where it does not."""

import math

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.certificate.families.ratio import Ratio, rounded_product
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
_CLOSED, _CONSTANT, _DECIDED, _FINISHED = 2e-9, 1.5e-9, 4e-9, 1.5e-8
_REDUCED, _SCANNED = 5e-9, 1.2e-8
"""Processor seconds for every three secrets or, of what goes through reports, for every pair of
secrets and report, as measured for 400 to 1,000 secrets: to close the ratios, to decide a mechanism
that ignores the secret, or any other in whole numbers, to repair and decide one, to look for pairs
that others imply, to measure what was promised."""
_WRITTEN, _WRITTEN_BIT = 1.5e-6, 2e-8
"""Processor seconds for every entry of a file, and for every bit of it."""
_BITS = 64, 1_000
"""Of an entry at least and at most."""


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


def opening_seconds(statement: Statement) -> float:
    """Processor seconds before any search, roughly, and to verify what ignores the secret."""
    return _CLOSED * float(statement.secrets) ** 3 + _CONSTANT * _compared(statement)


def finishing_seconds(statement: Statement) -> float:
    """Processor seconds to repair a matrix, to bring it to whole numbers, and to decide these."""
    return _FINISHED * _compared(statement)


def deciding_seconds(statement: Statement) -> float:
    """Processor seconds to decide a matrix of whole numbers."""
    return _DECIDED * _compared(statement)


def reducing_seconds(secrets: int) -> float:
    """Processor seconds to look for smaller programs that are the same."""
    return _REDUCED * float(secrets) ** 3


def writing_seconds(statement: Statement) -> float:
    """Processor seconds to write a design: numbers are the longer, the larger ratios may be."""
    least, most = _BITS
    bits = min(most, least + float(_limits(statement).max(initial=0.0)) / math.log(2))
    return float(statement.loss.size) * (_WRITTEN + _WRITTEN_BIT * bits)


def measuring_seconds(statement: Statement) -> float:
    """Processor seconds to measure what constraints promise, and the best attack."""
    return _SCANNED * _compared(statement)


def _compared(statement: Statement) -> float:
    """Pairs of secrets with a limit, times reports."""
    return float(_limits(statement).size) * statement.observables


def _limits(statement: Statement) -> Floats:
    """The log ratios that have a limit: along edges, where these imply the others."""
    for ratio in statement.of_kind(Ratio):
        if ratio.edges is not None:
            return rounded_product(ratio.epsilon, ratio.edges.value)
    found: Floats = statement.log_ratio[np.isfinite(statement.log_ratio)]
    return found
