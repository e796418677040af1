"""The least loss under mutual information alone, by Blahut's parametrisation of its optima.

For a price y of information the best mechanism is P[s,o] = q_o e^{-c_so/(y π_s)} / Z_s with the q
that maximises Σ_s π_s ln Σ_o q_o e^{-c_so/(y π_s)} (Blahut 1972, Theorems 5 and 6): a concave
function of O numbers, solved by the same steps as the likeliest prior of reports. The rate falls
with y, and a root is found where it is the one allowed. For every y the slopes ln(P[s,o]/q_o) are
multipliers with a bound that is Blahut's.
"""

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.simplex import likeliest
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.exact.ratios.generators import generator
from optmech.lp.blocks import BlockLP, Informed, Point

_KL = generator("kl")
_ROUNDS = 80
_STEPS = 4000
_FIRST, _ENOUGH = 1e-6, 1e-12
"""Nats that q may fall short of the best: while the price is looked for, and at the end."""
_NEAR = 1e-3
"""How close, relatively, the rate is to the limit where the precision is raised."""
_WIDEST = 700.0
"""Logarithms of prices go so far: their powers of e are floats."""


class BlahutEngine:
    """See the module's docstring."""

    name = "blahut"

    def refusal(self, lp: BlockLP) -> str:
        if lp.informed is None:
            return "there is no limit on mutual information"
        if lp.held is not None:
            return "rows that are held fixed are not supported"
        rows = (len(lp.perspectives), len(lp.local), len(lp.links))
        if rows != (1, 3, 3) or len(lp.cone) or lp.shared_cost.any():
            return "mutual information is not the only constraint"
        return ""

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        assert lp.informed is not None
        program = _Program(lp, lp.informed)
        gap, enough = np.inf, _FIRST
        low, high = -_WIDEST, _WIDEST
        at = program.first
        sides: dict[bool, _Optimum] = {}
        for k in range(_ROUNDS):
            found = program.at(float(np.exp(at)), enough)
            excess = found.rate / program.maximum - 1
            sides[excess > 0] = found
            low, high = (at, high) if excess > 0 else (low, at)
            close = abs(excess) <= _NEAR or high - low < 1e-9
            ended = len(sides) < 2 and abs(at) >= _WIDEST
            if close or ended or k % 8 == 7 or monitor.should_stop():
                gap = monitor.propose(program.point(sides, found))
                if gap <= options.gap or monitor.should_stop():
                    break
                if ended or high - low < 1e-13:
                    break
                enough = max(_ENOUGH, enough * 1e-2)
            at = program.next(at, low, high, sides, found)
        outcome = Outcome.SOLVED if gap <= options.gap else Outcome.STOPPED
        return EngineResult(outcome, f"blahut: {k + 1} prices of information")


@record
class _Optimum:
    """What is best at a price."""

    price: float
    matrix: Floats
    slope: Floats
    rate: float


class _Program:
    def __init__(self, lp: BlockLP, informed: Informed) -> None:
        self.lp, self.informed = lp, informed
        self.maximum = informed.maximum
        self.used = np.flatnonzero(informed.prior)
        self.prior = informed.prior[self.used]
        cost = np.where(lp.fixed[: lp.secrets], np.inf, lp.cost[: lp.secrets])
        self.free = np.zeros_like(cost)
        self.free[np.arange(lp.secrets), cost.argmin(axis=1)] = 1.0
        each = cost[self.used] / self.prior[:, None]
        self.cost = each - each.min(axis=1, keepdims=True)
        # by the prior: a rare secret may cost as much as it likes
        usual = float((self.prior @ np.where(np.isfinite(self.cost), self.cost, 0.0)).mean())
        self.first = float(np.clip(np.log(usual / 2), -_WIDEST, _WIDEST)) if usual > 0 else 0.0
        self.stride = 0.5

    def at(self, price: float, enough: float) -> _Optimum:
        """The best q at a price, by its likelihood."""
        # of the least prices everything that costs is out of reach
        with np.errstate(over="ignore"):
            apart = self.cost / price
        kernel = np.exp(-apart)
        weights, _ = likeliest(kernel.T, self.prior[None], enough, _STEPS)
        common = np.maximum(weights[0], 0.0)
        norm = kernel @ common
        matrix = self.free.copy()
        matrix[self.used] = kernel * common / norm[:, None]
        # scaled by the largest of Blahut's ratios, the slopes prove his bound
        most = np.log(((self.prior / norm) @ kernel).max())
        with np.errstate(divide="ignore"):
            slope = -apart - np.log(norm)[:, None] - most
        return _Optimum(price, matrix, slope, self._rate(matrix))

    def _rate(self, matrix: Floats) -> float:
        own = matrix[self.used]
        common = np.broadcast_to(self.prior @ own, own.shape)
        return float(self.prior @ _KL.terms(own, common).sum(axis=1))

    def next(
        self, at: float, low: float, high: float, sides: dict[bool, _Optimum], found: _Optimum
    ) -> float:
        """The logarithm of the next price: a secant between the sides, kept inside."""
        if len(sides) < 2:
            self.stride *= 2
            step = self.stride if found.rate > self.maximum else -self.stride
            return min(max(at + step, -_WIDEST), _WIDEST)
        above, below = (np.log(max(sides[k].rate, 1e-300) / self.maximum) for k in (True, False))
        share = above / (above - below) if above > below else 0.5
        width = high - low
        inside = min(max(share, 0.02), 0.98)
        return low + width * (0.5 if width > 2 else inside)

    def point(self, sides: dict[bool, _Optimum], found: _Optimum) -> Point:
        """The mechanism of the largest rate allowed on the way between both sides, and the slopes
        of the last one."""
        matrix = found.matrix
        if found.rate > self.maximum and False in sides:
            matrix = self._between(sides[False].matrix, found.matrix)
        elif True in sides:
            matrix = self._between(found.matrix, sides[True].matrix)
        lp, part = self.lp, self.lp.perspectives[0]
        z = np.zeros((lp.block_size, lp.blocks))
        z[: lp.secrets] = matrix
        z[part.p] = matrix[self.used]
        z[self.informed.common] = z[part.q] = self.prior @ z[part.p]
        terms = _KL.terms(z[part.p], z[part.q])
        z[part.w] = terms / part.unit[:, None]
        weight = found.price * self.prior
        slope = _KL.cut(found.slope)
        local = [np.zeros((rows.matrix.shape[0], lp.blocks)) for rows in lp.local]
        local[part.left] = -slope * weight[:, None]
        local[part.right] = -_KL.intercept(slope) * weight[:, None]
        links = [np.zeros(len(link.rhs)) for link in lp.links]
        links[part.total] = weight * part.unit
        links[self.informed.limit] = np.array([found.price * self.maximum])
        none = sp.csr_array((len(lp.cone), lp.blocks))
        return Point(z, z[part.w].sum(axis=1), none, tuple(local), tuple(links))

    def _between(self, inside: Floats, outside: Floats) -> Floats:
        """The rate is convex on the way from one mechanism to the other: bisection."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            fits = self._rate(inside + middle * (outside - inside)) <= self.maximum
            low, high = (middle, high) if fits else (low, middle)
        return inside + low * (outside - inside)
