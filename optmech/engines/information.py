"""The information that private reports can carry, relaxed: a program over symmetric matrices.

The information matrix X = Σ_o v_o v_oᵀ / (πᵀv_o) of a private mechanism satisfies X π = 1, and
(a·v)(b·v) >= 0 for any two rows of the cone of its columns. So tr(S X⁻¹) has a least value among
all such matrices, which is a lower bound of every mechanism's (theory: "A bound of every
mechanism"). Columns may be divided among pieces of the cone; then X is a sum of a matrix for each.
Newton's method follows the path of the logarithmic barrier, whose points have multipliers with
positive definite slack: those are a proof as they are. What is found here is a proposal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints

_SHRINK = 0.1
"""Of the barrier's weight, once a point is near the path."""
_LEAST = 1e-4
"""Of a value, what counts at the least where gaps are measured."""
_HELD = 1e-6
"""What may be missing of an equation that counts as held."""
_SHORTEST = 1e-9
"""A step that leads nowhere."""
_REFINED = 2
"""Times that what is left of the equations of a step is solved again."""
_STUCK = 1e-3
"""A step that rounding made short."""
_STEPS = 120
_INSIDE = 0.9
_CENTRED = 1e-9
"""Newton's decrement, relative to the barrier's weight, where the search ends."""
_NEAR = 1e-4
"""The same where multipliers are read off."""
_ROOT = np.sqrt(2.0)


@dataclass(frozen=True)
class Piece:
    """Columns v that are the first of u, where rows·u >= 0, and the products of ``equal`` rows 0.

    ``rows`` (r, k), ``pairs`` (p, 2) of rows whose products count, and ``equal`` (e, 2).
    ``charge`` (q, S) is what its columns count of every limit.
    """

    rows: Floats
    pairs: Ints
    equal: Ints
    start: Floats
    """A matrix (k, k) inside."""
    charge: Floats | None = None
    groups: Ints | None = None
    """Of pairs (p,), numbers from 0: of each group the sum of products counts."""
    basis: sp.csr_array | None = None
    """Of the halves of U, where these are a part of all."""

    @property
    def size(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def halves(self) -> sp.csr_array:
        """The basis, or that of all."""
        count = self.size * (self.size + 1) // 2
        return sp.eye_array(count, format="csr") if self.basis is None else self.basis

    @cached_property
    def products(self) -> sp.csr_array:
        """Of two rows a, b the entries of aᵀUb, or their sums, over the basis."""
        own, every = products(self.rows, self.pairs), np.arange(len(self.pairs))
        if self.groups is not None:
            own = sp.csr_array((np.ones(len(every)), (self.groups, every))) @ own
        return own @ self.halves

    @cached_property
    def zero(self) -> sp.csr_array:
        """The same of products that are zero."""
        return products(self.rows, self.equal) @ self.halves

    def whole(self, u: Floats) -> Floats:
        """U."""
        return whole(self.halves @ u, self.size)

    def onto(self, n: int) -> sp.csr_array:
        """From the half of U to the half of its part of n rows; of a smaller U to nothing."""
        count, size = n * (n + 1) // 2, self.size * (self.size + 1) // 2
        if self.size < n:
            return sp.csr_array((count, size))
        kept = index_of(self.size)[np.triu_indices(n)]
        return sp.csr_array((np.ones(count), (np.arange(count), kept)), shape=(count, size))


def index_of(size: int) -> Ints:
    """Where the half of a symmetric matrix has an entry (i, j) with i <= j."""
    out = np.zeros((size, size), dtype=np.int64)
    i, j = np.triu_indices(size)
    out[i, j] = np.arange(len(i))
    return out


def half(full: Floats) -> Floats:
    """The upper half of a symmetric matrix, with which inner products are those of the whole."""
    i, j = np.triu_indices(len(full))
    return full[i, j] * np.where(i == j, 1.0, _ROOT)


def whole(upper: Floats, size: int) -> Floats:
    """The symmetric matrix of a half."""
    place, scale = index_of(size), np.where(np.eye(size, dtype=bool), 1.0, 1 / _ROOT)
    return upper[np.maximum(place, place.T)] * scale


def products(rows: Floats, pairs: Ints) -> sp.csr_array:
    """The entries of aᵀUb for pairs of rows over the half of U."""
    size = rows.shape[1]
    most = np.count_nonzero(rows, axis=1).max(initial=1)
    order = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :most]
    value = np.take_along_axis(rows, order, axis=1)
    where, first, second = index_of(size), pairs[:, 0], pairs[:, 1]
    place, entry, row = [], [], []
    for p in range(order.shape[1]):
        for q in range(order.shape[1]):
            a, b = order[first, p], order[second, q]
            place.append(where[np.minimum(a, b), np.maximum(a, b)])
            entry.append(value[first, p] * value[second, q] * np.where(a == b, 1.0, 1 / _ROOT))
            row.append(np.arange(len(pairs)))
    shape = (len(pairs), size * (size + 1) // 2)
    ends = np.concatenate(row), np.concatenate(place)
    out = sp.csr_array((np.concatenate(entry), ends), shape=shape)
    out.sum_duplicates()
    return out


def alike(tables: Sequence[Floats]) -> sp.csr_array:
    """Of matrices that are constant where symmetric tables tell no pairs apart, as halves: a basis
    (k (k + 1) / 2, K) whose columns are orthonormal. Pairs are the same whose triangles are
    (Weisfeiler and Leman 1968), as those are that a permutation without effect carries into each
    other."""
    random, size, count = np.random.default_rng(0), len(tables[0]), 0
    seen = [np.round(own / np.abs(own).max(), 9) for own in tables]
    while True:
        code = np.unique([own.ravel() for own in seen], axis=1, return_inverse=True)[1]
        code = code.reshape(size, size)
        if code.max() < count:
            break
        count = code.max() + 1
        first, second = random.standard_normal((2, count))
        around = first[code] @ second[code]
        seen = [code, np.round(around / np.abs(around).max(), 9)]
    i, j = np.triu_indices(size)
    which = np.unique(np.minimum(code, code.T)[i, j], return_inverse=True)[1]
    weight = np.where(i == j, 1.0, _ROOT)
    weight /= np.sqrt(np.bincount(which, weight**2))[which]
    return sp.csr_array((weight, (np.arange(len(i)), which)))


def doubled(left: Floats, right: Floats, basis: sp.csr_array) -> Floats:
    """The matrix of Z -> L Z R + R Z L over a basis of halves of symmetric matrices."""
    n = len(left)
    i, j = np.triu_indices(n)
    scale = np.where(i == j, 1.0, 1 / _ROOT)
    place = index_of(n)
    full = np.take(basis.T.toarray() * scale, np.maximum(place, place.T).ravel(), axis=1)
    # R Z L, of all at once
    full = (full.reshape(-1, n) @ right).reshape(-1, n, n).transpose(0, 2, 1)
    flat = (full.reshape(-1, n) @ left).reshape(-1, n * n)
    out = (np.take(flat, i * n + j, axis=1) + np.take(flat, j * n + i, axis=1)) / scale
    return np.asarray(basis.T @ out.T)


@dataclass(frozen=True)
class Found:
    """A point of the path: X, and multipliers of a proof.

    ``prices`` λ (S,), ``charges`` (q,) of the limits, and for every piece the weights of its pairs
    >= 0 and of its equal ones.
    """

    information: Floats
    value: float
    bound: float
    prices: Floats
    weights: tuple[Floats, ...]
    free: tuple[Floats, ...]
    charges: Floats


class Search:
    """The path of min tr(S X⁻¹), X = Σ_f B_f U_f B_fᵀ, X π = 1, Σ_f charge_f B_f U_f B_fᵀ π <=
    limits."""

    def __init__(
        self, wanted: Floats, prior: Floats, pieces: Sequence[Piece], known: float = 0.0,
        limits: Floats | None = None,
    ) -> None:  # fmt: skip
        """``known`` is taken off the value where gaps are measured; ``limits`` (q,) are of what the
        pieces charge, whose slacks are pieces too."""
        self.known = known
        self.limits = np.zeros(0) if limits is None else limits
        q, none = len(self.limits), np.zeros((0, 2), dtype=np.int64)
        n = self.n = len(prior)
        used = np.zeros(q)
        for piece in pieces:
            if piece.charge is not None:
                used += piece.charge @ piece.start[:n, :n] @ prior
        left = np.where(self.limits > used, self.limits - used, 0.1 * np.abs(self.limits) + 1e-3)
        slacks = [Piece(np.zeros((0, 1)), none, none, np.array([[v]])) for v in left.tolist()]
        self.wanted, self.prior, self.pieces = wanted, prior, [*pieces, *slacks]
        i, j = np.triu_indices(n)
        scale = np.where(i == j, 1.0, 1 / _ROOT)
        # Xπ over the half of X
        self.sums = np.zeros((n, len(i)))
        self.sums[i, np.arange(len(i))] += prior[j] * scale
        off = i != j
        self.sums[j[off], np.flatnonzero(off)] += prior[i[off]] * scale[off]
        self.size = len(i)
        self.onto = [piece.onto(n) for piece in self.pieces]
        if q:
            # beside the half of X what is charged, and its slack
            for k, piece in enumerate(self.pieces):
                own = np.eye(q)[:, [k - len(pieces)]] if k >= len(pieces) else np.zeros((q, 1))
                if piece.charge is not None:
                    own = (piece.charge @ self.sums) @ self.onto[k].toarray()
                self.onto[k] = sp.csr_array(sp.vstack([self.onto[k], own]))
            self.sums = la.block_diag(self.sums, np.eye(q))
        self.basis = sp.eye_array(self.size, format="csr")
        if len(self.pieces) == 1:
            # what symmetries leave
            rows, more = pieces[0].rows, (0, pieces[0].size - n)
            data = np.pad(wanted, more), np.pad(np.outer(prior, prior), more)
            own = alike([pieces[0].start, rows.T @ rows, *data])
            self.pieces = [replace(pieces[0], basis=own)]
            self.basis = self.onto[0] @ own
            self.onto, self.size = [sp.eye_array(own.shape[1], format="csr")], own.shape[1]
            self.sums = (self.basis.T @ self.sums.T).T
        self.target = np.concatenate([np.ones(n), self.limits])
        self.count = sum(piece.size + piece.products.shape[0] for piece in self.pieces)
        self.points = [p.halves.T @ half(p.start) for p in self.pieces]

    def whole(self, x: Floats) -> Floats:
        """X."""
        return whole(self.basis @ x[: self.size], self.n)

    def information(self) -> Floats:
        """X, over its half, and what the limits have."""
        return np.asarray(sum(onto @ u for onto, u in zip(self.onto, self.points, strict=True)))

    def run(self, gap: float, stop: Callable[[], bool] = lambda: False) -> Found | None:
        """To a relative gap, or as far as numbers lead; None where that is nowhere."""
        full = self.whole(self.information())
        value = float(np.trace(la.solve(full, self.wanted, assume_a="pos")))
        weight = value / self.count
        found = None
        for _ in range(_STEPS):
            try:
                step = self._step(weight)
            except (la.LinAlgError, ValueError):
                break
            if step is None:
                break
            length, decrement, here = step
            if decrement < _NEAR and here is not None:
                found = here
            least = gap * max(value - self.known, _LEAST * value)
            last = weight * self.count <= least
            stuck = length < _STUCK and decrement < _NEAR
            if (last and (decrement < _CENTRED or stuck)) or stop():
                break
            value = here.value if here is not None else value
            if decrement < 1.0 and not last:
                weight = max(weight * _SHRINK, least / self.count)
        return found

    def _step(self, tau: float) -> tuple[float, float, Found | None] | None:
        """One step of Newton's method; its length, its decrement, and what was found before it."""
        x, q = self.information(), len(self.limits)
        full = self.whole(x)
        inverse = la.inv(full)
        inverse = (inverse + inverse.T) / 2
        curve = inverse @ self.wanted @ inverse
        value = float(np.sum(inverse * self.wanted))
        slope, bend = -(self.basis.T @ half(curve)), doubled(curve, inverse, self.basis)
        if q:
            slope = np.concatenate([slope, np.zeros(q)])
            bend = la.block_diag(bend, np.zeros((q, q)))
        missing = self.target - self.sums @ x
        barriers = [self._barrier(k, tau) for k in range(len(self.pieces))]
        solve = self._direct if len(self.pieces) == 1 else self._joined
        moves, prices, free = solve(slope, bend, missing, barriers)
        decrement = 0.0
        most = 0.0
        for piece, u, move, (_, hessian, inner) in zip(
            self.pieces, self.points, moves, barriers, strict=True
        ):
            decrement += float(move @ (hessian @ move))
            ratio = -(piece.products @ move) / (piece.products @ u)
            change = inner @ piece.whole(move) @ inner
            most = max(most, float(ratio.max(initial=0.0)), float(-la.eigvalsh(change)[0]))
        shift = sum(onto @ m for onto, m in zip(self.onto, moves, strict=True))
        decrement = (decrement + float(shift @ (bend @ shift))) / tau
        length = min(1.0, _INSIDE / most) if most > 0 else 1.0
        feasible = np.abs(missing).max() < _HELD
        before = self._merit(tau, self.points) if feasible and decrement > _CENTRED else np.inf
        while True:
            ahead = [u + length * m for u, m in zip(self.points, moves, strict=True)]
            merit = self._merit(tau, ahead)
            if merit <= before - 0.1 * length * decrement * tau or (
                np.isinf(before) and np.isfinite(merit)
            ):
                break
            length /= 2
            if length < _SHORTEST:
                return None
        here = self._proof(tau, value, prices, free, moves, np.abs(missing).max())
        self.points = ahead
        return length, decrement, here

    def _merit(self, tau: float, points: Sequence[Floats]) -> float:
        """The value with its barrier; inf outside."""
        total, x = 0.0, np.zeros(self.size)
        for piece, onto, u in zip(self.pieces, self.onto, points, strict=True):
            sign, size = np.linalg.slogdet(piece.whole(u))
            y = piece.products @ u
            if sign <= 0 or (y <= 0).any():
                return np.inf
            total -= tau * (float(size) + float(np.log(y).sum()))
            x += (onto @ u)[: self.size]
        try:
            factor = la.cho_factor(self.whole(x))
        except la.LinAlgError:
            return np.inf
        return total + float(np.trace(la.cho_solve(factor, self.wanted)))

    def _barrier(self, k: int, tau: float) -> tuple[Floats, Floats, Floats]:
        """Slope and curvature of the barrier of a piece, and the root of the inverse."""
        piece, u = self.pieces[k], self.points[k]
        values, vectors = la.eigh(piece.whole(u))
        if values[0] <= 0:
            raise la.LinAlgError("outside")
        inverse = (vectors / values) @ vectors.T
        inner = (vectors / np.sqrt(values)) @ vectors.T
        y = piece.products @ u
        if (y <= 0).any():
            raise la.LinAlgError("outside")
        slope = -tau * (piece.halves.T @ half(inverse) + piece.products.T @ (1 / y))
        scaled = sp.diags_array(1 / y) @ piece.products
        hessian = tau * (
            doubled(inverse, inverse, piece.halves) / 2 + (scaled.T @ scaled).toarray()
        )
        return slope, hessian, inner

    def _direct(
        self, slope: Floats, bend: Floats, missing: Floats, barriers: Sequence[tuple[Floats, ...]]
    ) -> tuple[list[Floats], Floats, list[Floats]]:
        piece, (own, hessian, _) = self.pieces[0], barriers[0]
        rows = np.vstack([self.sums, piece.zero.toarray()])
        right = np.concatenate([missing, -(piece.zero @ self.points[0])])
        factor = la.cho_factor(hessian + bend)
        back = la.cho_solve(factor, rows.T)
        free = la.cho_solve(factor, own + slope)
        duals = la.lstsq(rows @ back, right + rows @ free)[0]
        # equations that are the same have equal multipliers
        span = la.orth(self.sums)
        prices = span @ (span.T @ duals[: self.n])
        return [back @ duals - free], prices, [duals[self.n :]]

    def _joined(
        self, slope: Floats, bend: Floats, missing: Floats, barriers: Sequence[tuple[Floats, ...]]
    ) -> tuple[list[Floats], Floats, list[Floats]]:
        """Pieces meet in X only: each is eliminated by itself."""
        size, many = len(slope), len(self.target)
        shared, kept = np.zeros((size, size)), []
        for piece, onto, (_, hessian, _) in zip(self.pieces, self.onto, barriers, strict=True):
            factor = la.cho_factor(hessian)
            back = la.cho_solve(factor, onto.T.toarray())
            zero, inner, across = piece.zero, None, np.zeros((len(hessian), 0))
            dual = np.zeros((0, size))
            if len(piece.equal):
                # Z m = -Z u beside it
                across = la.cho_solve(factor, zero.T.toarray())
                inner = la.cho_factor(zero @ across)
                dual = la.cho_solve(inner, zero @ back)
                back = back - across @ dual
            shared += onto @ back
            kept.append((factor, back, across, inner, dual))
        # W = slope + bend dX - sumsᵀλ,  dX = moved - shared W,  sums dX = missing
        system = la.lu_factor(
            np.block([[np.eye(size) + shared @ bend, -shared @ self.sums.T],
                      [self.sums, np.zeros((many, many))]])
        )  # fmt: skip

        def solved(
            owns: Sequence[Floats], slope: Floats, zeros: Sequence[Floats], missing: Floats
        ) -> tuple[list[Floats], Floats, list[Floats]]:
            moved, parts = np.zeros(size), []
            for own, zero, piece, onto, (factor, _, across, inner, _) in zip(
                owns, zeros, self.pieces, self.onto, kept, strict=True
            ):
                free, pull = la.cho_solve(factor, own), np.zeros(0)
                if inner is not None:
                    pull = la.cho_solve(inner, zero - piece.zero @ free)
                    free = free + across @ pull
                moved -= onto @ free
                parts.append((free, pull))
            found = la.lu_solve(system, np.concatenate([moved - shared @ slope, missing]))
            shift, prices = found[:size], found[size:]
            force = slope + bend @ shift - self.sums.T @ prices
            moves = [-f - k[1] @ force for (f, _), k in zip(parts, kept, strict=True)]
            free = [k[4] @ force - p for (_, p), k in zip(parts, kept, strict=True)]
            return moves, prices, free

        owns = [own for own, _, _ in barriers]
        zeros = [piece.zero @ u for piece, u in zip(self.pieces, self.points, strict=True)]
        moves, prices, free = solved(owns, slope, zeros, missing)
        for _ in range(_REFINED):
            shift = np.asarray(sum(o @ m for o, m in zip(self.onto, moves, strict=True)))
            force = slope + bend @ shift - self.sums.T @ prices
            left = [
                own + hessian @ m + onto.T @ force - piece.zero.T @ f
                for (own, hessian, _), onto, piece, m, f in zip(
                    barriers, self.onto, self.pieces, moves, free, strict=True
                )
            ]
            rest = [z + p.zero @ m for z, p, m in zip(zeros, self.pieces, moves, strict=True)]
            more = solved(left, np.zeros(size), rest, missing - self.sums @ shift)
            moves = [a + b for a, b in zip(moves, more[0], strict=True)]
            prices = prices + more[1]
            free = [a + b for a, b in zip(free, more[2], strict=True)]
        return moves, prices, free

    def _proof(
        self, tau: float, value: float, prices: Floats, free: Sequence[Floats],
        moves: Sequence[Floats], missing: float,
    ) -> Found | None:  # fmt: skip
        """The multipliers of a point, where every equation holds."""
        if missing > _HELD:
            return None
        # where the step leads, so that what is left of a piece is τ U⁻¹ (U - dU) U⁻¹
        weights = []
        for piece, u, move in zip(self.pieces, self.points, moves, strict=True):
            inside = piece.products @ u
            weight = tau * np.maximum(1 - (piece.products @ move) / inside, 0.0) / inside
            weights.append(weight if piece.groups is None else weight[piece.groups])
        lam, charges = -prices[: self.n], np.maximum(-prices[self.n :], 0.0)
        full = self.whole(self.information())
        bound = 2 * value - float(lam.sum()) - float(charges @ self.limits)
        last = len(self.pieces) - len(charges)
        return Found(full, value, bound, lam, tuple(weights[:last]), tuple(free[:last]), charges)
