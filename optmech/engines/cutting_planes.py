"""HiGHS round after round: rows join that the last point breaks or nearly breaks."""

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Indices
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.highs import NOT_LINEAR, HighsSession, attempts, require_memory
from optmech.errors import ProblemError
from optmech.exact.ratios.generators import generator
from optmech.lp.blocks import BlockLP, LocalRows, PairCone, Perspective, Point, entries
from optmech.lp.flatten import flatten

NEIGHBOURS = 8
NEARLY_ACTIVE = 0.05
MAX_ROUNDS = 60
_PROGRESS = 0.9
"""Rounds in which the gap stays above this share of the best count as stalled."""
ALL_PAIR_ROWS = 8_000
_FIRST = np.array([-8.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 8.0])
"""Logarithms of the first ratios, in units of the root of the limit."""
_EXTREME = 20.0
"""Ratios beyond e^±20 are left to repair."""
_SAME = 1e-9
_NEGLIGIBLE = 1e-12
"""What a plane must add to a term, in units of the limit, to be worth a row."""


class LazyEngine:
    """Lazy constraint generation: HiGHS on a growing set of pair rows, exact separation over all
    pairs.

    Starts from the pairs of each secret with its nearest neighbours, solves, and adds to every
    block the worst (or nearly active) pair at each end, until the repaired mechanism and the bound
    agree. Every round proposes a point: its multipliers are multipliers of the whole program.
    """

    name = "lazy"

    def refusal(self, lp: BlockLP) -> str:
        if lp.perspectives:
            return NOT_LINEAR
        return "" if len(lp.cone) else "there are no pair constraints to generate"

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        neighbours = _neighbours(options.parameters.get("neighbours", NEIGHBOURS))
        given = {k: v for k, v in options.parameters.items() if k != "neighbours"}
        near = nearest_pairs(lp.cone, neighbours)
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


def in_rounds(joining: Joining, near: Bools, options: Options, monitor: Monitor) -> EngineResult:
    """Solve with the pairs ``near`` (m,), and again with what each point misses."""
    lp = joining.lp
    allowed = lp.cone.within(lp.blocks)
    active = near[:, None] & allowed
    methods = list(attempts(options, held=lp.held is not None))
    outcome, message = Outcome.FAILED, ""
    best, stalled = np.inf, 0
    for rounds in range(1, MAX_ROUNDS + 1):
        program = joining.program().with_cone(replace(lp.cone, active=active))
        require_memory(program)
        flat = flatten(program)
        session = HighsSession(flat, options)
        status = session.solve(methods[0], monitor)
        message = f"HiGHS {methods[0]['solver']}: {status}, round {rounds}"
        if status == "Infeasible" and methods[0].get("presolve") == "choose":
            # next to rows that are held: see ``attempts``
            methods = [own for own in methods if own.get("presolve") == "off"]
            continue
        if status == "Infeasible":
            return EngineResult(Outcome.INFEASIBLE, message)
        if not (values := session.solution()):
            break
        point = flat.point(*values)
        gap = monitor.propose(replace(point, local=point.local[: len(lp.local)]))
        size = joining.size(program.cone_rows)
        monitor.report(f"{joining.name} round {rounds}: {size}, gap {gap:.2g}")
        outcome = Outcome.STOPPED
        if gap <= options.gap or monitor.should_stop():
            break
        found = separate(lp.cone, point.z[: lp.secrets], allowed) & ~active
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
    return EngineResult(outcome, message)


def nearest_pairs(cone: PairCone, count: int) -> Bools:
    """The ``count`` shortest pairs of every secret, with all that tie with the last of them."""
    order = np.lexsort((cone.log_ratio, cone.i))
    begin, end = (np.searchsorted(cone.i[order], cone.i, side) for side in ("left", "right"))
    limit = cone.log_ratio[order][np.minimum(begin + count, end) - 1]
    return np.asarray(cone.log_ratio <= limit * (1 + 1e-9))


def separate(cone: PairCone, columns: Floats, allowed: Bools) -> Bools:
    """For every block, the tightest of its ``allowed`` pairs at each first and each second end, if
    it is violated or nearly active. Works through all pairs."""
    positive = np.maximum(columns, 1e-300)
    with np.errstate(over="ignore"):
        ratio = np.exp(-cone.log_ratio)[:, None] * positive[cone.i] / positive[cone.j]
    # a pair that does not count in a block may not hide one that does
    ratio[~allowed] = 0.0
    tight = ratio > 1 - NEARLY_ACTIVE
    return tight & (_is_largest(ratio, cone.i) | _is_largest(ratio, cone.j))


def _is_largest(ratio: Floats, end: Indices) -> Bools:
    order = np.argsort(end, kind="stable")
    values, starts = np.unique(end[order], return_index=True)
    largest = np.maximum.reduceat(ratio[order], starts, axis=0)
    return ratio >= largest[np.searchsorted(values, end)]


def _neighbours(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ProblemError(
            f"{ascii(given)[:60]} is not a whole number >= 1",
            where="profile.parameters.neighbours",
            remedy="Say how many nearest neighbours every secret starts with",
        )
    return given


class TangentEngine:
    """Divergence constraints by tangents (Kelley's cutting planes).

    q f(p/q) is the supremum of its supporting planes α p + β(α) q, the same for every observable.
    Each round solves the linear program with some of them, proposes the point, and adds the planes
    at the likelihood ratios of the point and at the slopes that its multipliers combine to: the
    latter are those of the optimum to second order, so that a few rounds suffice. Pairs join as in
    the lazy engine.
    """

    name = "tangents"

    def refusal(self, lp: BlockLP) -> str:
        return "" if lp.perspectives else "there are no divergence constraints"

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        return self.improve(lp, options, monitor, first_slopes(lp))

    def improve(
        self, lp: BlockLP, options: Options, monitor: Monitor, slopes: list[list[Floats]]
    ) -> EngineResult:
        """The search from given planes on; ``slopes`` grows."""
        near = np.ones(len(lp.cone), dtype=bool)
        if lp.cone_rows > ALL_PAIR_ROWS:
            near = nearest_pairs(lp.cone, NEIGHBOURS)
        return in_rounds(_Planes(lp, slopes), near, options, monitor)


class _Planes(Joining):
    name = "tangents"
    patience = 4

    def __init__(self, lp: BlockLP, slopes: list[list[Floats]]) -> None:
        super().__init__(lp)
        self.slopes = slopes

    def program(self) -> BlockLP:
        """With (α p + β q) / unit <= w in place of every perspective, for the slopes of each of its
        rows."""
        rows = [
            LocalRows(_planes(part, own, self.lp.block_size))
            for part, own in zip(self.lp.perspectives, self.slopes, strict=True)
        ]
        return replace(self.lp, local=(*self.lp.local, *rows), perspectives=())

    def size(self, pair_rows: int) -> str:
        return f"{sum(len(row) for part in self.slopes for row in part):,} planes"

    def grow(self, point: Point) -> bool:
        return refine(self.lp, self.slopes, point)


def _planes(part: Perspective, slopes: list[Floats], size: int) -> sp.csr_array:
    row = np.repeat(np.arange(len(slopes)), [len(own) for own in slopes])
    alpha = np.concatenate(slopes)
    beta = generator(part.kind).intercept(alpha)
    unit = part.unit[row]
    place = np.arange(len(row))
    p, q = (alpha / unit, place, part.p[row]), (beta / unit, place, part.q[row])
    w = (-np.ones(len(row)), place, part.w[row])
    return sp.csr_array(entries((len(row), size), p, q, w))


def first_slopes(lp: BlockLP) -> list[list[Floats]]:
    """A few slopes for every row of every perspective, spread by the root of its limit."""
    found = []
    for part in lp.perspectives:
        logs = np.clip(np.outer(np.sqrt(part.unit), _FIRST), -_EXTREME, _EXTREME)
        found.append([np.unique(generator(part.kind).tangents(np.exp(row))[0]) for row in logs])
    return found


def refine(lp: BlockLP, slopes: list[list[Floats]], point: Point) -> bool:
    """Add planes that cut the point off, and those of combined slopes; whether there were any."""
    added = False
    for part, own in zip(lp.perspectives, slopes, strict=True):
        weight = point.links[part.total]
        alpha, beta = -point.local[part.left], -point.local[part.right]
        for k in range(len(part.unit)):
            p, q = np.maximum(point.z[part.p[k]], 0.0), np.maximum(point.z[part.q[k]], 0.0)
            price = weight[k] / part.unit[k]
            fresh = [_violated(part.kind, own[k], p, q, part.unit[k])]
            if price > 0:
                prices = alpha[k] / price, beta[k] / price
                fresh.append(_combined(part.kind, *prices, q / part.unit[k]))
            grown = _joined(own[k], np.concatenate(fresh), float(np.sqrt(part.unit[k])))
            added |= len(grown) > len(own[k])
            own[k] = grown
    return added


def _violated(kind: str, slopes: Floats, p: Floats, q: Floats, unit: float) -> Floats:
    """Slopes of the planes at p/q where the present ones miss q f(p/q)."""
    chosen = generator(kind)
    used = (p > 1e-12) & (q > 1e-12)
    p, q = p[used], q[used]
    ratio = np.clip(p / q, np.exp(-_EXTREME), np.exp(_EXTREME))
    fresh, intercept = chosen.tangents(ratio)
    known = (np.outer(p, slopes) + np.outer(q, chosen.intercept(slopes))).max(axis=1)
    return np.asarray(fresh[fresh * p + intercept * q - known > _NEGLIGIBLE * unit])


def _combined(kind: str, alpha: Floats, beta: Floats, share: Floats) -> Floats:
    """Slopes whose own plane lies above the combination of planes that has this slope."""
    chosen = generator(kind)
    slopes = chosen.cut(alpha)
    kept = (share * (chosen.intercept(slopes) - beta) > _NEGLIGIBLE) & np.isfinite(alpha)
    low, high = chosen.tangents(np.exp(np.array([-_EXTREME, _EXTREME])))[0]
    return np.asarray(slopes[kept & (slopes > low) & (slopes < high)])


def _joined(known: Floats, fresh: Floats, scale: float) -> Floats:
    """Both, in order, without fresh ones that are next to another."""
    kept = [-math.inf]
    both = [(slope, new) for new, own in enumerate((known, fresh)) for slope in own.tolist()]
    for slope, new in sorted(both):
        if not new or slope - kept[-1] > _SAME * (abs(slope) + scale):
            kept.append(slope)
    return np.array(kept[1:])
