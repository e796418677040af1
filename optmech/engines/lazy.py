"""Lazy generation of pair rows on HiGHS, with exact separation over all pairs.

Starts from the pairs of each secret with its nearest neighbours, solves, and adds to every
block the worst (or nearly active) pair at each end, until the repaired mechanism and the bound
agree. Every round proposes a point: its multipliers are multipliers of the whole program.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.highs import NOT_LINEAR, HighsSession, attempts, require_memory
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP, PairCone, Point
from optmech.lp.flatten import flatten

NEIGHBOURS = 8
NEARLY_ACTIVE = 0.05
MAX_ROUNDS = 60
_PROGRESS = 0.9
"""Rounds in which the gap stays above this share of the best count as stalled."""


class LazyEngine:
    """See the module's docstring."""

    name = "lazy"

    def refusal(self, lp: BlockLP) -> str:
        if lp.perspectives:
            return NOT_LINEAR
        return "" if len(lp.cone) else "there are no pair constraints to generate"

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        neighbours = _neighbours(options.parameters.get("neighbours", NEIGHBOURS))
        given = {k: v for k, v in options.parameters.items() if k != "neighbours"}
        near = nearest_pairs(lp.cone, lp.secrets, neighbours)
        return in_rounds(Joining(lp), near, replace(options, parameters=given), monitor)


class Joining:
    """What joins a program round after round beside its pairs: here nothing."""

    name = "lazy"
    patience = math.inf
    """Rounds without progress after which another method is tried."""

    def __init__(self, lp: BlockLP) -> None:
        self.lp = lp

    def program(self) -> BlockLP:
        """The linear program of this round, over all pairs."""
        return self.lp

    def size(self, pair_rows: int) -> str:
        """How large it is, in words."""
        return f"{pair_rows:,} pair rows"

    def grow(self, point: Point) -> bool:
        """Add what cuts off a point of the program; whether there was anything."""
        return False


def in_rounds(
    joining: Joining, near: NDArray[np.bool_], options: Options, monitor: Monitor
) -> EngineResult:
    """Solve with the pairs ``near`` (m,), and again with what each point misses."""
    lp = joining.lp
    allowed = lp.cone.within(lp.blocks)
    active = near[:, None] & allowed
    methods = list(attempts(options, held=lp.held is not None))
    outcome, message, rounds = Outcome.FAILED, "", 0
    best, stalled = np.inf, 0
    for rounds in range(1, MAX_ROUNDS + 1):
        block, pair = np.nonzero(active.T)
        program = joining.program()
        require_memory(program.with_cone(replace(lp.cone, active=active)))
        flat = flatten(program, (pair, block))
        session = HighsSession(flat, options)
        status = session.solve(methods[0], monitor)
        size = joining.size(len(pair))
        message = f"HiGHS {methods[0]['solver']}: {status}, round {rounds}"
        if status == "Infeasible" and methods[0].get("presolve") == "choose":
            # next to rows that are held: see ``attempts``
            methods = [own for own in methods if own.get("presolve") == "off"]
            continue
        if status == "Infeasible":
            return EngineResult(Outcome.INFEASIBLE, message)
        if not session.has_point():
            break
        point = flat.point(*session.solution())
        gap = monitor.propose(replace(point, local=point.local[: len(lp.local)]))
        monitor.report(f"{joining.name} round {rounds}: {size}, gap {gap:.2g}")
        outcome = Outcome.STOPPED
        if gap <= options.gap or monitor.should_stop():
            break
        found = separate(lp.cone, point.z[: lp.secrets]) & allowed & ~active
        active |= found
        grown = joining.grow(point) or found.any()
        stalled = stalled + 1 if gap > _PROGRESS * best else 0
        best = min(best, gap)
        if not grown or stalled >= joining.patience:
            # all rows that matter are in: only a more accurate method can close the gap
            outcome = Outcome.SOLVED if status == "Optimal" else Outcome.FAILED
            methods, stalled = methods[1:], 0
            if not methods:
                break
    return EngineResult(outcome, message, {"rounds": rounds, "pair rows": int(active.sum())})


def nearest_pairs(cone: PairCone, secrets: int, count: int) -> NDArray[np.bool_]:
    """The ``count`` shortest pairs of every secret, with all that tie with the last of them."""
    keep = np.zeros(len(cone), dtype=bool)
    for i in range(secrets):
        own = np.flatnonzero(cone.i == i)
        if len(own):
            limit = np.sort(cone.log_ratio[own])[min(count, len(own)) - 1]
            keep[own[cone.log_ratio[own] <= limit * (1 + 1e-9)]] = True
    return keep


def separate(cone: PairCone, columns: Floats) -> NDArray[np.bool_]:
    """For every block, the tightest pair at each first and each second end, if it is violated
    or nearly active. Works through all pairs."""
    positive = np.maximum(columns, 1e-300)
    with np.errstate(over="ignore"):
        ratio = np.exp(-cone.log_ratio)[:, None] * positive[cone.i] / positive[cone.j]
    tight = ratio > 1 - NEARLY_ACTIVE
    return tight & (_is_largest(ratio, cone.i) | _is_largest(ratio, cone.j))


def _is_largest(ratio: Floats, end: Ints) -> NDArray[np.bool_]:
    order = np.argsort(end, kind="stable")
    values, starts = np.unique(end[order], return_index=True)
    largest = np.maximum.reduceat(ratio[order], starts, axis=0)
    return np.asarray(ratio >= largest[np.searchsorted(values, end)])


def _neighbours(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ProblemError(
            f"{ascii(given)[:60]} is not a whole number >= 1",
            where="profile.parameters.neighbours",
            remedy="Say how many nearest neighbours every secret starts with",
        )
    return given
