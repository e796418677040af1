"""``om.noise.radial``: the best noise for points of the plane or of space, nearly, with a bound of
all such noise; the searches are linear programs in floats, proofs are elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.errors import InfeasibleError, ProblemError, SolverError, TooLargeError
from optmech.exact.arguments import one_of, whole
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Number
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.bound import BITS
from optmech_noise.additive.caps import DEPTH_BITS, Cap, Caps, unproved
from optmech_noise.additive.radial import DEGREES, MOST_BALLS, RadialLaw, RadialNoise
from optmech_noise.additive.real_loss import rational
from optmech_noise.additive.spheres import DIMENSIONS
from optmech_noise.program import Program, run_program
from optmech_noise.releases import stated_promise
from optmech_noise.search import truncated_end
from optmech_noise.session import Note, require_gap, require_range, silent

RADIAL_GAP = 0.03
_BITS = 120
_WEIGHT_BITS = 60
_SHARES = (1e-9, 1e-7, 1e-5, 1e-3, 0.03)
"""Of δ that are kept back for what floats do."""
_LIMIT = 60.0
_FIRST, _MOST_CELLS = 4, 64
_MOST_RINGS = 900
_SETTLED = 0.1
"""More rings are tried while they lower the loss by more than this part of the gap."""
_SURE = 3.0
"""Rings of one sensitivity over ε that are tried anyway: steep noise has narrow ones."""
_NODES = (1, 2, 4, 6, 8, 12, 16)
"""Of one sensitivity: those of a bound."""
_FEW_NODES, _ROUGH_GAP = 4, 0.1
"""Fewer are for rougher gaps than that."""
_MOST_NODES = 150
_LEVELS = 16
"""Depths of caps of one shift."""
_GRADE = 4
"""By which power they grow: caps of small noise are thin."""
_ROUNDS = 10
_SPARE = 1e-5
"""What a weight costs, of what a limit does: without it there are many that do nothing."""
_COARSE, _FINE, _CLOSER = 4, 16, 8
_NEAR, _MISSED = 0.2, 3e-4
"""Points between two nodes at which a bound is looked at."""
_MARGINS = (3e-3, 0.01, 0.03, 0.1)
"""By how much of a bound its level is lowered until it is proved."""
_STEEP = 4.0
"""Above such an ε shorter shifts than the largest bind as well."""
_LEAST_EPSILON = 0.01


@checked_arguments
def radial(
    epsilon: Number,
    delta: Number,
    dimension: int = 2,
    *,
    sensitivity: Number = 1,
    loss: Literal["absolute", "square"] = "square",
    cells: int | Literal["auto"] = "auto",
    gap: float = RADIAL_GAP,
    note: Note | None = None,
) -> RadialNoise:
    """The noise of least expected loss for a point of the plane or of space that one person moves
    by at most ``sensitivity`` in the Euclidean norm, nearly: (ε, δ)-differentially private, the
    same in every direction, with a bound of all noise there is.

    The density is constant on rings and falls outwards, so that the largest shift decides the
    promise. The lower bound is of every law on the plane, whether it falls or not: an average over
    rotations keeps the promise and the loss. Bound and noise do not meet: with ε = 1 they are about
    1 % apart.

    Parameters
    ----------
    dimension:
        2 or 3.
    sensitivity:
        The largest distance by which one person moves the point.
    loss:
        "square", the expected squared distance, or "absolute", the expected distance.
    cells:
        Rings of one sensitivity; "auto" doubles them from 4 while that helps, up to 64.
    gap:
        The certified relative gap at which the search ends.
    note:
        Called with a line of progress now and then.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    TooLargeError
        Where the noise spreads over more rings than are searched.

    Examples
    --------
    >>> noise = om.noise.radial(1, 1e-5, gap=0.02)
    >>> print(f"{noise.lower_bound:.2f} {noise.loss:.2f}")  # Gaussian noise: 27.84
    5.87 5.95
    """
    require_gap(gap)
    rate, part = stated_promise(epsilon, delta)
    require_range(rate, _LEAST_EPSILON, where="epsilon")
    if not part > 0:
        raise InfeasibleError(
            "no noise on balls keeps it without δ", where="delta", remedy="Allow some δ, as 1e-9"
        )
    if dimension not in DIMENSIONS:
        raise ProblemError("is neither 2 nor 3", where="dimension", remedy="Give 2 or 3")
    one_of(loss, tuple(DEGREES), "loss")
    span = rational(sensitivity, "sensitivity")
    say = note or silent
    started = time.perf_counter()
    made = RadialNoise(RadialLaw(1, (2,)), loss, rate, part, span, dimension, 1)
    wide = 1.15 * truncated_end(float(rate), float(part), 1) + dimension
    first = _FIRST if cells == "auto" else whole(cells, "cells", 1, _MOST_CELLS)
    if first * wide > _MOST_RINGS:
        raise TooLargeError(
            f"such noise spreads over about {first * wide:,.0f} rings",
            where="cells",
            remedy="Allow a larger ε or δ, or fewer cells",
        )
    best = _on_rings(made, wide, first)
    last = first if cells != "auto" else min(_MOST_CELLS, int(_MOST_RINGS / wide))
    while 2 * first <= last:
        first *= 2
        before, best = best, min(best, _on_rings(made, wide, first), key=lambda d: d.exact_loss)
        say(f"{first} rings a sensitivity: loss {best.loss:.6g}")
        settled = before.loss - best.loss <= _SETTLED * gap * best.loss
        if settled and first >= _SURE * float(rate):
            break
    wanted = 0.0
    least = _NODES[0] if gap > _ROUGH_GAP else _FEW_NODES
    some = [nodes for nodes in _NODES if nodes >= least]
    counts = [nodes for nodes in some if nodes == least or nodes * wide <= _MOST_NODES]
    for nodes in counts:
        if nodes < wanted:
            continue
        tests = _tests(made, wide, nodes)
        tried = replace(best, multipliers=tests)
        best = tried if tried.exact_bound > best.exact_bound else best
        say(f"{nodes} nodes: gap {best.gap:.2g}")
        if best.gap <= gap:
            break
        # it falls with their number, nearly
        wanted = min(0.8 * nodes * best.gap / max(gap, 1e-3), counts[-1])
    return replace(best, seconds=time.perf_counter() - started).require_private()


# ---------------------------------------------------------------- the law
def _on_rings(made: RadialNoise, wide: float, cells: int) -> RadialNoise:
    """The best falling density on rings that is proved as private."""
    for share in _SHARES:
        heights = _rings(made, wide, cells, share)
        law = _law(heights, made.dimension)
        found = replace(made, law=law, cells=cells)
        if found.is_private:
            return found
    raise SolverError("no private noise was found", where="noise", remedy="Allow a larger ε or δ")


def _law(heights: Floats, dimension: int) -> RadialLaw:
    """The mixture of balls nearest to a density that falls, in whole numbers."""
    radii = np.arange(1, len(heights) + 1.0)
    balls = np.maximum(heights - np.append(heights[1:], 0.0), 0.0) * radii**dimension
    balls = np.where(balls > 1e-15 * balls.sum(), balls, 0.0)
    kept = int(np.flatnonzero(balls)[-1]) + 1
    numbers = [int(v) for v in balls[:kept] / balls.sum() * 2.0**_BITS]
    numbers[int(np.argmax(balls))] += (1 << _BITS) - sum(numbers)
    return RadialLaw(_BITS, tuple(numbers))


def _rings(made: RadialNoise, wide: float, cells: int, share: float) -> Floats:
    """Densities of rings where the loss is least, and all that two rings may exceed in."""
    d, power = made.dimension, math.exp(float(made.epsilon))
    count = min(MOST_BALLS, math.ceil(wide * cells))
    edges = np.arange(count + 1.0)
    both = _common(d, edges[:, None], edges[None, :], cells)
    meet = both[1:, 1:] - both[:-1, 1:] - both[1:, :-1] + both[:-1, :-1]
    meet[meet < 1e-12] = 0
    own = np.diff(edges**d)
    out = np.maximum(own - meet.sum(axis=1), 0)
    first, second = np.nonzero(np.triu(meet, 1))
    rings, degree = np.arange(count), made.degree
    scale = np.maximum(np.exp(-float(made.epsilon) * rings / cells), 1e-7) / cells**d
    limit = float(bracket(made.delta)[0]) * (1 - share)
    program = Program(count)
    # a ring exceeds another one farther out by so much, in units of its own scale
    index = program.compare(first, -power * scale[second] / scale[first], second)
    counts = meet[first, second] * scale[first] / limit
    spent = np.full(count, program.exceed(index, np.ones(len(index)), counts))
    program.entries.append((out * scale / limit, spent, rings))
    program.compare(rings[1:], -scale[:-1] / scale[1:], rings[:-1])
    cost = np.diff(edges ** (d + degree)) * d / (d + degree) * scale / cells**degree
    x, *_ = program.solved(own * scale, cost, None, _LIMIT, "ipm")
    heights = np.maximum(x[:count], 0) * scale
    return np.minimum.accumulate(heights)


def _half(dimension: int, q: Floats) -> tuple[Floats, Floats]:
    """As ``spheres.half``, in floats."""
    q = np.clip(q, -1, 1)
    if dimension == 3:
        return (1 - q) / 2, (1 - q * q) / 4
    return np.arccos(q) / np.pi, np.sqrt(1 - q * q) / np.pi


def _common(dimension: int, one: Floats, other: Floats, apart: float) -> Floats:
    """As ``spheres.common``, in floats."""
    one, other = np.broadcast_arrays(one, other)
    total = np.zeros(one.shape)
    for own, far in ((one, other), (other, one)):
        q = (apart**2 + own**2 - far**2) / np.maximum(2 * apart * own, 1e-300)
        share, mean = _half(dimension, q)
        total += own**dimension * (share - np.clip(q, -1, 1) * mean)
    inside = np.abs(one - other) >= apart
    total = np.where(inside, np.minimum(one, other) ** dimension, total)
    return np.where((one + other <= apart) | (one * other == 0), 0.0, total)


# ---------------------------------------------------------------- the bound
@dataclass
class _Tests:
    """The program of a bound: λ and weights of caps, so that C is nowhere below a level."""

    made: RadialNoise
    nodes: int
    count: int
    shifts: Sequence[int]

    @cached_property
    def depths(self) -> list[tuple[int, int]]:
        """Shifts and depths of caps; depths over 2^DEPTH_BITS."""
        grown = [(k / _LEVELS) ** _GRADE for k in range(1, _LEVELS + 1)]
        whole_depth = 1 << (DEPTH_BITS + 1)
        return [(s, max(1, round(s * whole_depth * g))) for s in self.shifts for g in grown]

    @cached_property
    def places(self) -> Floats:
        """Where C is looked at, in nodes."""
        end = self.count + max(self.shifts) + 1
        # where tests change their form, too
        turns = [-depth / 2.0**DEPTH_BITS % 1 for _, depth in self.depths]
        each = np.unique([*np.arange(_FINE) / _FINE, *turns])
        tiny = [1e-4, 1e-3, 1e-2]
        return np.unique([*tiny, *(np.arange(end)[:, None] + each).ravel()[1:]])

    def at(self, places: Floats) -> Any:
        """What a unit of every weight adds to C at every place."""
        nodes = np.arange(self.count + 1.0)
        whole = {s: self._within(s, places[:, None], nodes[None, :] ** 2) for s in self.shifts}
        parts = [
            self._of(s, depth / 2**DEPTH_BITS, places, nodes, whole[s]) for s, depth in self.depths
        ]
        return sp.csr_array(sp.hstack(parts))

    def _within(self, s: int, r: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """The probability that ρ² is below ``squares``, and E max(0, squares - ρ²)."""
        share, mean = _half(self.made.dimension, (r**2 + s**2 - squares) / (2 * r * s))
        return share, (squares - r**2 - s**2) * share + 2 * r * s * mean

    def loss(self, places: Floats) -> Floats:
        """What noise of such sizes costs."""
        return np.asarray((places / self.nodes) ** self.made.degree)

    def _of(
        self, s: int, depth: float, places: Floats, nodes: Floats, whole: tuple[Floats, Floats]
    ) -> Any:
        d, r = self.made.dimension, places[:, None]
        power = math.exp(float(self.made.epsilon))
        q = 1 - depth / s * (1 + (2 * s - depth) / (2 * r))
        gain = _hats(r[:, 0], nodes) * _half(d, q)[0]
        end = r - s + depth
        cut, most = self._within(s, r, np.maximum(end, 0) ** 2)
        inside = nodes[None, :] < end
        slopes = np.diff(np.where(inside, whole[1], most), axis=1) / np.diff(nodes**2)
        last = np.where(inside[:, -1:], whole[0][:, -1:], cut) * _hats(end[:, 0], nodes)
        harm = last + np.pad(slopes, ((0, 0), (0, 1))) - np.pad(slopes, ((0, 0), (1, 0)))
        both = (gain - power * harm)[:, :-1]
        both[np.abs(both) < 1e-13] = 0
        return sp.csr_array(both)

    def solved(self) -> Caps | None:
        """Weights that prove the most, in whole numbers."""
        part, shifts = float(bracket(self.made.delta)[1]), len(self.shifts)
        caps, count, grid = len(self.depths), self.count, self.places
        every = np.kron(np.eye(shifts), np.ones((1, caps // shifts)))
        limits = sp.hstack(
            [
                sp.csr_array((shifts * count, 1)),
                sp.kron(-np.eye(shifts), np.ones((count, 1))),
                sp.kron(every, sp.eye(count)),
            ]
        )
        cost = np.concatenate([[-1.0], np.full(shifts, part), np.full(caps * count, part * _SPARE)])
        matrix = self.at(grid)
        first = np.flatnonzero((grid * _COARSE % 1 == 0) | (grid < 0.02))
        looked, seen = grid[first], matrix[first]
        best: tuple[Floats, float, float] | None = None
        for _ in range(_ROUNDS):
            plain = [np.ones((len(looked), 1)), sp.csr_array((len(looked), shifts)), -seen]
            rows = sp.csr_array(sp.vstack([sp.hstack(plain), limits]))
            upper = np.append(self.loss(looked), np.zeros(shifts * count))
            try:
                x, _ = run_program(cost, rows, np.full(len(upper), -np.inf), upper, _LIMIT, "ipm")
            except SolverError:
                break
            weights = np.maximum(x[1 + shifts :], 0)
            limit = float(part * x[1 : 1 + shifts].sum())
            level = self.loss(grid) + matrix @ weights
            low, slack = level - x[0], abs(float(cost @ x))
            # about every low place there may be a lower one
            near = (low < _NEAR * slack) & (low <= np.append(low[1:], np.inf))
            near = np.flatnonzero(near & (low <= np.append(np.inf, low[:-1])))
            some = self._about(near)
            found = self.loss(some) - x[0] + (self.at(some.ravel()) @ weights).reshape(some.shape)
            worst = found.argmin(axis=1)[:, None]
            some, others = (np.take_along_axis(v, worst, 1)[:, 0] for v in (some, found))
            least = min(low.min(), others.min(initial=np.inf))
            value = float(x[0] + least - limit)
            if value > (0.0 if best is None else best[2]):
                best = weights, float(x[0] + least), value
            missed = others < -_MISSED * slack
            if not missed.any():
                break
            looked = np.append(looked, some[missed])
            seen = sp.vstack([seen, self.at(some[missed])])
        return None if best is None else self._proved(*best)

    def _about(self, near: Ints) -> Floats:
        """Places from the one before to the one after."""
        grid = np.concatenate([[1e-9], self.places, self.places[-1:]])
        before, here, after = grid[near], grid[near + 1], grid[near + 2]
        share = np.arange(_CLOSER) / _CLOSER
        left = here[:, None] - (here - before)[:, None] * share
        right = here[:, None] + (after - here)[:, None] * share
        return np.concatenate([left, right], axis=1)

    def _proved(self, weights: Floats, least: float, value: float) -> Caps | None:
        """With a level that is proved."""
        made, power = self.made, exp_bounds(self.made.epsilon, BITS)[1]
        unit = float(self.nodes) ** made.degree * 2.0**_WEIGHT_BITS
        caps = []
        for k, (s, depth) in enumerate(self.depths):
            own = [int(v * unit) for v in weights[k * self.count : (k + 1) * self.count]]
            some = np.flatnonzero(own)
            if len(some):
                first, last = int(some[0]), int(some[-1])
                caps.append(Cap(s, depth, first, tuple(own[first : last + 1])))
        for margin in _MARGINS:
            level = least - margin * value
            if caps and level > 0:
                found = Caps(_WEIGHT_BITS, self.nodes, int(level * unit), tuple(caps))
                if unproved(made.dimension, made.degree, power, found) is None:
                    return found
        return None


def _hats(at: Floats, nodes: Floats) -> Floats:
    """Weights with which a function between nodes, linear in the square, takes its values."""
    squares, place = nodes**2, np.maximum(at, 0.0) ** 2
    out = np.zeros((len(at), len(nodes)))
    k = np.clip(np.searchsorted(squares, place, side="right") - 1, 0, len(nodes) - 2)
    share = (place - squares[k]) / (squares[k + 1] - squares[k])
    inside = share <= 1
    rows = np.arange(len(at))
    out[rows, k] = np.where(inside, 1 - share, 0)
    out[rows, k + 1] = np.where(inside, share, 0)
    return out


def _tests(made: RadialNoise, wide: float, cells: int) -> Caps | None:
    """Tests that prove a bound, on so many nodes a sensitivity."""
    count = math.ceil((wide + 0.5) * cells)
    short = [cells // 2] if float(made.epsilon) > _STEEP and cells % 2 == 0 else []
    return _Tests(made, cells, count, [*short, cells]).solved()
