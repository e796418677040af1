"""Lazy generation of pair rows on HiGHS, with exact separation over all pairs.

Starts from the pairs of each secret with its nearest neighbours, solves, and adds to every
block the worst (or nearly active) pair at each end, until the repaired mechanism and the bound
agree. Every round proposes a point: its multipliers are multipliers of the whole program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.highs import NOT_LINEAR, HighsSession, attempts, require_memory
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP, PairCone
from optmech.lp.flatten import flatten

NEIGHBOURS = 8
NEARLY_ACTIVE = 0.05
MAX_ROUNDS = 60


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
        solver_options = replace(options, parameters=given)
        allowed = (
            np.ones((len(lp.cone), lp.blocks), dtype=bool)
            if lp.cone.active is None
            else lp.cone.active
        )
        active = nearest_pairs(lp.cone, lp.secrets, neighbours)[:, None] & allowed
        methods = list(attempts(options))
        outcome, message, rounds = Outcome.FAILED, "", 0
        for rounds in range(1, MAX_ROUNDS + 1):
            block, pair = np.nonzero(active.T)
            require_memory(lp.with_cone(replace(lp.cone, active=active)))
            flat = flatten(lp, (pair, block))
            session = HighsSession(flat, solver_options)
            status = session.solve(methods[0], monitor)
            message = f"HiGHS {methods[0]['solver']}: {status}, round {rounds}"
            if status == "Infeasible":
                return EngineResult(Outcome.INFEASIBLE, message)
            if not session.has_point():
                break
            point = flat.point(*session.solution())
            gap = monitor.propose(point)
            monitor.report(f"lazy round {rounds}: {len(pair):,} pair rows, gap {gap:.2g}")
            outcome = Outcome.STOPPED
            if gap <= options.gap or monitor.should_stop():
                break
            found = separate(lp.cone, point.z[: lp.secrets]) & allowed & ~active
            active |= found
            if not found.any():
                # all rows that matter are in: only a more accurate method can close the gap
                outcome = Outcome.SOLVED if status == "Optimal" else Outcome.FAILED
                methods = methods[1:]
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
