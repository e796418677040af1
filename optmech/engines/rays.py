"""Columns of private mechanisms that carry the most information: extreme rays of the cone, drawn
with the signs of a Gaussian, improved by local search, and the best weights of all together.

What is found is a proposal; ``docs/theory/least-variance.md`` says why extreme rays suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg as la
from scipy.optimize import linprog
from scipy.sparse.csgraph import breadth_first_order

from optmech.base.arrays import Bools, Floats, Ints

_ROUNDS = 40
_STEPS = 60
_PATIENCE = 5
"""Rounds without a gain worth the gap, after which it ends."""
_ROUNDED = 1e-9
"""Of a value, what prices are raised by for rounding."""


@dataclass(frozen=True)
class Rays:
    """Extreme rays of {v >= 0: v_i <= factor_ij v_j}, (S, S) factors that are inf without limit.

    Of a tree of edges a ray has a sign for every edge; where all factors are one number, a sign
    for every secret; else it has none, and programs of ``limited`` find it.
    """

    factor: Floats
    prior: Floats
    edges: Ints | None
    """Of a tree with root 0, (S - 1, 2): parent and child, parents first."""
    level: float
    """The one factor of all pairs; 0 where there are several."""

    @classmethod
    def of(cls, factor: Floats, prior: Floats) -> Rays:
        """What these factors, closed under paths, are like."""
        n = len(factor)
        off = ~np.eye(n, dtype=bool)
        level = float(factor[off][0]) if n > 1 and np.ptp(factor[off]) == 0 else 0.0
        return cls(factor, prior, None if level else tree_of(factor), level)

    @property
    def count(self) -> int:
        """How many signs a ray has; 0 where it has none."""
        return 0 if self.edges is None and not self.level else len(self.moved[0])

    @cached_property
    def moved(self) -> tuple[Floats, Floats, Floats]:
        """Which entries a sign moves (count, S), and their logarithms where it is set and not."""
        if self.edges is None:
            n = len(self.factor)
            return np.eye(n), np.full(n, np.log(self.level)), np.zeros(n)
        below = np.zeros((len(self.edges), len(self.factor)))
        ends = [b for _, b in self.edges.tolist()]
        for e, (a, b) in reversed(list(enumerate(self.edges.tolist()))):
            below[e, b] = 1.0
            if a:
                below[ends.index(a)] += below[e]
        a, b = self.edges.T
        return below, np.log(self.factor[b, a]), -np.log(self.factor[a, b])

    def made(self, signs: Bools) -> Floats:
        """Rays of signs (k, count), scaled to πᵀv = 1, (k, S)."""
        moved, up, down = self.moved
        logs = np.where(signs, up, down) @ moved
        out = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(out / (out @ self.prior)[:, None])

    def signs(self, values: Floats) -> Bools:
        """What drawn values (k, S) say."""
        if self.edges is None:
            return values > np.median(values, axis=1, keepdims=True)
        return values[:, self.edges[:, 1]] > values[:, self.edges[:, 0]]

    def improved(self, curve: Floats, prices: Floats, signs: Bools) -> tuple[Floats, Bools]:
        """Signs changed one by one while vᵀΓv - λᵀv grows, under πᵀv = 1."""
        signs, (moved, up, down) = signs.copy(), self.moved
        best = _worth(self.made(signs), curve, prices)
        active = np.arange(len(signs))
        while len(active):
            own = self.made(signs[active])
            # v + g v_e for every sign e, with v_e what it moves
            g = np.expm1(np.where(signs[active], down - up, up - down))
            square = own[:, :, None] * curve * own[:, None]
            parts = moved @ square
            curved = square.sum(axis=(1, 2))[:, None]
            curved = curved + 2 * g * parts.sum(axis=2) + g**2 * (parts * moved).sum(axis=2)
            scale = 1 + g * ((own * self.prior) @ moved.T)
            paid = (own @ prices)[:, None] + g * ((own * prices) @ moved.T)
            worth = curved / scale**2 - paid / scale
            chosen = worth.argmax(axis=1)
            gained = worth[np.arange(len(active)), chosen]
            better = gained > best[active] + 1e-9 * np.abs(best[active])
            active = active[better]
            signs[active, chosen[better]] ^= True
            best[active] = gained[better]
        return best, signs


def _worth(rays: Floats, curve: Floats, prices: Floats) -> Floats:
    return np.asarray(((rays @ curve) * rays).sum(axis=1) - rays @ prices)


def needed(factor: Floats) -> Bools:
    """Pairs whose limit is not implied by those of others, one after the other: i, k, j."""
    n = len(factor)
    out = np.isfinite(factor) & ~np.eye(n, dtype=bool)
    logs = np.log(factor)
    for i in range(n):
        through = logs[i][:, None] + logs
        through[i] = np.inf
        np.fill_diagonal(through, np.inf)
        out[i] &= ~(through.min(axis=0) <= logs[i] * (1 + 1e-12) + 1e-13)
    return out


def tree_of(factor: Floats) -> Ints | None:
    """The edges of the tree whose limits imply all; None where that is no tree."""
    pairs = needed(factor)
    n = len(factor)
    if not np.array_equal(pairs, pairs.T) or pairs.sum() != 2 * (n - 1):
        return None
    order, parent = breadth_first_order(pairs, 0, directed=False)
    if len(order) < n:
        return None
    return np.array([(parent[s], s) for s in order[1:]], dtype=np.int64)


@dataclass(frozen=True)
class Weighed:
    """Columns with the best weights for them."""

    columns: Floats
    """(k, S), with πᵀv = 1."""
    weights: Floats
    value: float
    curve: Floats
    """Γ = X⁻¹ S X⁻¹."""
    prices: Floats
    """λ with vᵀΓv <= λᵀv for every column; then what limits are charged."""


def weighed(
    wanted: Floats, columns: Floats, gap: float, counts: Floats | None = None,
    most: Floats | None = None,
) -> Weighed | None:  # fmt: skip
    """Weights x >= 0 with Σ x v = 1 and the least tr(S X⁻¹), X = Σ x v vᵀ, by Newton's method along
    the path of the logarithmic barrier; None where no weights will do.

    Where there are ``counts`` (q, m), these are at most ``most`` (q,) in all; ``prices`` have their
    multipliers last.
    """
    m, n = columns.shape
    rows, right = columns.T, np.ones(n)
    if counts is not None and most is not None:
        # slacks are columns without information
        q = len(most)
        rows = np.block([[rows, np.zeros((n, q))], [counts, np.eye(q)]])
        right = np.concatenate([right, most])
        columns = np.vstack([columns, np.zeros((q, n))])
    total = len(columns)
    # max t with x >= t: in the interior
    made = linprog(np.r_[np.zeros(total), -1.0], A_eq=np.c_[rows, rows.sum(axis=1)], b_eq=right)
    if made.x is None or made.x[-1] <= 0:
        return None
    x = made.x[:total] + made.x[-1]
    tau, value = 0.0, np.inf
    duals = np.zeros(len(right))
    curve = np.eye(n)
    for _ in range(_STEPS):
        full = (columns.T * x) @ columns
        try:
            inverse = la.inv(full)
        except la.LinAlgError:
            return None
        curve = inverse @ wanted @ inverse
        value = float(np.sum(inverse * wanted))
        tau = tau or value / total
        bend = 2 * (columns @ inverse @ columns.T) * (columns @ curve @ columns.T)
        bend[np.diag_indices(total)] += tau / x**2
        slope = -((columns @ curve) * columns).sum(axis=1) - tau / x
        try:
            factor = la.cho_factor(bend)
        except la.LinAlgError:
            break
        back, free = la.cho_solve(factor, rows.T), la.cho_solve(factor, slope)
        missing = right - rows @ x
        duals = la.lstsq(rows @ back, missing + rows @ free)[0]
        move = back @ duals - free
        decrement = float(move @ bend @ move) / tau
        most_step = float((-move / x).max())
        length = min(1.0, 0.9 / most_step) if most_step > 0 else 1.0
        before = _merit(wanted, columns, x, tau)
        while _merit(wanted, columns, x + length * move, tau) > before + 1e-9 * abs(before):
            length /= 2
            if length < 1e-8:
                break
        x = x + length * move
        last = tau * total <= gap * value
        if last and decrement < 1e-3:
            break
        if decrement < 1.0 and not last:
            tau = max(0.1 * tau, gap * value / total)
    return Weighed(columns[:m], x[:m], value, curve, -duals)


def _merit(wanted: Floats, columns: Floats, x: Floats, tau: float) -> float:
    try:
        factor = la.cho_factor((columns.T * x) @ columns)
    except la.LinAlgError:
        return np.inf
    return float(np.trace(la.cho_solve(factor, wanted)) - tau * np.log(x).sum())


def designed(
    rays: Rays, wanted: Floats, information: Floats, bound: float, gap: float, known: float,
    stop: Callable[[], bool], tell: Callable[[str], None], draws: int = 400,
) -> Weighed | None:  # fmt: skip
    """Columns of signs and weights, near ``bound`` by ``gap`` where they get there; ``known`` is
    taken off both. None where no columns add up to a mechanism."""
    gap *= max(1 - known / bound, 1e-4) if bound > 0 else 1.0
    random = np.random.default_rng(0)
    values, vectors = la.eigh(information)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    n, best, history = len(wanted), None, list[float]()
    signs = rays.signs(random.standard_normal((draws, n)) @ root.T)
    extreme = np.triu(np.ones((rays.count + 1, rays.count), dtype=bool))
    pool = np.unique(np.vstack([signs, extreme, ~extreme]), axis=0)
    for _ in range(_ROUNDS):
        columns = rays.made(pool)
        now = weighed(wanted, columns, min(gap, 1e-3) / 10)
        if now is None:
            break
        if best is None or now.value < best.value:
            best = now
        history.append(best.value)
        tell(f"{len(columns)} columns, variance {now.value:.6g}, bound {bound:.6g}")
        stalled = len(history) > _PATIENCE and history[-1 - _PATIENCE] < best.value * (1 + gap)
        if now.value <= bound * (1 + gap) or stop() or stalled:
            break
        used = now.weights > 3e-3 * now.weights.max()
        starts = np.vstack([pool[used], random.random((60, rays.count)) < 0.5])
        worth, signs = rays.improved(now.curve, now.prices, starts)
        signs = np.unique(signs[worth > gap * now.value / 10], axis=0)
        fresh = np.unique(np.vstack([pool[used], signs]), axis=0)
        if len(fresh) == int(used.sum()):
            break
        pool = fresh
    return best


def best_of(
    columns: Floats, wanted: Floats, prior: Floats, gap: float, known: float,
    stop: Callable[[], bool], tell: Callable[[str], None],
) -> tuple[Weighed, float] | None:  # fmt: skip
    """The best weights of all columns there are (m, S), of πᵀv = 1, with ``prices`` that hold for
    every one, and the bound that they prove. Those worth most join a program until none is worth
    anything. ``known`` is taken off where gaps are measured; None as of ``weighed``."""
    n = columns.shape[1]
    random = np.random.default_rng(0)
    given = np.vstack([random.standard_normal((20 * n, n)), np.eye(n), -np.eye(n)])
    used = np.unique((columns @ given.T).argmax(axis=0))
    best = None
    for _ in range(_ROUNDS):
        now = weighed(wanted, columns[used], gap / 10)
        if now is None:
            break
        worth = _worth(columns, now.curve, now.prices)
        # a little more, for rounding
        missing = max(float(worth.max()), 0.0) + _ROUNDED * now.value
        bound = 2 * now.value - float(now.prices.sum()) - missing
        if best is None or bound > best[1]:
            best = replace(now, prices=now.prices + missing * prior), bound
        tell(f"{len(used)} of {len(columns)} columns, variance {now.value:.6g}, bound {bound:.6g}")
        if now.value - bound <= gap * (now.value - known) or stop():
            break
        added = np.argsort(-worth)[: 10 * n]
        kept = used[now.weights > 1e-6 * now.weights.max()]
        used = np.union1d(kept, added[worth[added] > 0])
    return best
