"""The search for noise of any shape: linear programs in floats on a window, whose multipliers are
constant beyond it; proofs are elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.objective import relative_gap
from optmech.errors import InfeasibleError, ProblemError, SolverError, TooLargeError
from optmech_noise.additive.shaped import CurveNoise
from optmech_noise.additive.shaped_law import Curve, Part, Parts, ShapedLaw
from optmech_noise.program import NoneThereError, Program
from optmech_noise.search import truncated_end
from optmech_noise.session import Note

_BITS = 80
_PROOF_BITS = 100
_SHARES = (1e-7, 1e-5, 1e-3, 0.03, 0.2)
"""Of δ that are kept back for what floats do."""
_ROUNDS = 12
_WIDER = 4
_LIMIT = 60.0
_MOST = 12_000
_MOST_ROWS = 400_000
_EMPTY = 1e-12
_CHEAP = 1e-6


@dataclass
class Shape:
    """What is solved: places from ``low`` to ``high``, with more of them beyond where an end is
    open; folded where even."""

    low: int
    high: int
    open: tuple[bool, bool]
    even: bool
    costs: Any
    curve: list[tuple[float, float]]
    reach: int
    scales: Floats


class Shaped:
    """One program and what came of it."""

    def __init__(self, shape: Shape, shifts: Sequence[int], share: float) -> None:
        self.shape, self.shifts = shape, shifts
        s = shape
        self.first, self.last = s.low + s.reach * s.open[0], s.high - s.reach * s.open[1]
        self.places = np.arange(s.low, s.high + 1)
        self.program = Program(len(s.scales) + 2)
        self.rows: dict[tuple[int, int], tuple[Any, int | None, int]] = {}
        for bound, (rate, part) in enumerate(s.curve):
            for shift in shifts:
                self._add(bound, shift, math.exp(rate), part * (1 - share))
        self._solve()

    def _column(self, places: Any) -> Any:
        s = self.shape
        return np.abs(places) if s.even else places - s.low

    def _add(self, bound: int, shift: int, power: float, part: float) -> None:
        s, program = self.shape, self.program
        near = np.arange(self.first, self.last + 1)
        far = near + shift
        known = (far >= s.low) & (far <= s.high)
        a = s.scales[self._column(near)]
        second = self._column(np.where(known, far, near))
        b = np.where(known, s.scales[second], 0.0)
        same = known & (second == self._column(near))
        # of even noise a place and its shift may be one
        index = program.compare(self._column(near), np.where(same, 0.0, -power * b / a), second)
        if same.any():
            column = self._column(near)[same]
            program.entries.append((np.full(same.sum(), -power), index[same], column))
        tail = self._tail(shift, power)
        every = index if tail is None else np.append(index, tail)
        shares = part / (a if tail is None else np.append(a, 1.0))
        unit = np.maximum(np.sqrt(np.maximum(shares, 1.0)), shares / 1e4)
        budget = program.exceed(every, shares / unit, 1 / unit)
        self.rows[bound, shift] = (index, tail, budget)

    def _tail(self, shift: int, power: float) -> int | None:
        """One row for all places beyond the window on the shift's side."""
        s, program = self.shape, self.program
        side = shift > 0
        if not s.open[side]:
            return None
        far = len(s.scales) + side
        if side:
            places = np.arange(self.last + 1, s.high + 1)
            near = places <= self.last + shift
        else:
            places = np.arange(s.low, self.first)
            near = places >= self.first + shift
        row = len(program.uppers)
        columns = self._column(places)
        values = np.where(near, 1.0, 1 - power) * s.scales[columns]
        at = np.full(len(places) + 1, row)
        program.entries.append((np.append(values, 1 - power), at, np.append(columns, far)))
        program.uppers.append(0.0)
        return row

    def _solve(self) -> None:
        s = self.shape
        count = len(s.scales)
        mass, cost = np.zeros(count + 2), np.zeros(count + 2)
        columns = self._column(self.places)
        costs = np.array([float(s.costs(int(k))) for k in self.places])
        np.add.at(mass, columns, s.scales[columns])
        np.add.at(cost, columns, costs * s.scales[columns])
        for side, end in ((0, s.low - 1), (1, s.high + 1)):
            if s.open[side] and (side or not s.even):
                mass[count + side] = 1.0 + s.even
                cost[count + side] = float(s.costs(end)) * (1.0 + s.even)
        used = mass > 0
        cost = np.where(used, cost, 1.0)
        x, duals, self.value, _ = self.program.solved(mass, cost, None, _LIMIT)
        self.z = (x[:count] * s.scales)[columns]
        self.far = float(x[count] + x[count + 1])
        self.duals = duals

    def parts(self, bits: int) -> Parts:
        """Its multipliers, in whole numbers."""
        s, out = self.shape, []
        sides = 2 if s.even else 1
        a = s.scales[self._column(np.arange(self.first, self.last + 1))]
        for (bound, shift), (index, tail, budget) in self.rows.items():
            y = np.maximum(self.duals[index] / a, 0.0) / sides
            end = 0.0 if tail is None else max(0.0, float(self.duals[tail])) / sides
            limit = max(0.0, float(self.duals[budget])) / s.curve[bound][1] / sides
            most = max(float(y.max()), end)
            if s.curve[bound][1] * (most - limit) < _CHEAP * self.value:
                # a limit is known to a tolerance only, and small multipliers may be above it
                limit = max(limit, most)
            y, end = np.minimum(y, limit), min(end, limit)
            inner = tuple(int(Fraction(float(v)) * (1 << bits)) for v in y)
            rest = int(Fraction(end) * (1 << bits))
            price = max(*inner, rest)
            if price:
                out.append(Part(bound, shift, self.first, inner, rest, price))
        return Parts(bits, s.even, tuple(out))


def best_shaped(stated: CurveNoise, costs: Any, gap: float, note: Note) -> Any:
    """The best noise that keeps the promise of ``stated``, whose law is left out, with its bound;
    ``costs`` is the loss on the lattice that both are searched for."""
    started = time.perf_counter()
    curve, steps = stated.curve, stated.steps
    made = stated
    wide = _width(curve, steps, costs)
    law = proof = None
    for _ in range(_WIDER):
        shape = _shape(stated, costs, wide)
        law, proof, failed = _searched(made, shape, law, proof, note)
        found = relative_gap(_float(law), _bound(proof))
        note(f"places from {shape.low} to {shape.high}: gap {found:.2g}")
        if found <= gap or min(shape.open) == max(shape.open) == 0 or 2 * wide > _MOST:
            break
        wide *= 2
    if law is None and isinstance(failed, NoneThereError) and not any(shape.open):
        raise InfeasibleError(
            "no noise within this range keeps it", where="support", remedy="Allow a wider range"
        )
    if law is None:
        raise failed or SolverError(
            "no noise that was found keeps it", where="noise", remedy="Relax δ or ε"
        )
    parts = None if proof is None else proof.multipliers
    seconds = time.perf_counter() - started
    return replace(law, multipliers=parts, seconds=seconds).require_private()


def _float(law: Any) -> float:
    return math.inf if law is None else float(law.loss)


def _bound(proof: Any) -> float:
    return 0.0 if proof is None else float(proof.lower_bound)


def nearest_place(low: int | None, high: int | None) -> int:
    """The place of a range that is nearest to 0."""
    place = 0 if low is None else max(0, low)
    return place if high is None else min(place, high)


def certain_place(low: int | None, high: int | None) -> ShapedLaw:
    """The law of always the same number, the nearest to 0 that there is."""
    return ShapedLaw(1, nearest_place(low, high), (2,))


def _width(curve: Curve, steps: int, costs: Any) -> int:
    """How far noise reaches to either side, about."""
    ends = [truncated_end(float(rate), float(part), steps) for rate, part in curve]
    wide: int = int(min(1.15 * max(ends), 1e9)) + costs.last + 3 * steps + 3
    if wide * steps > _MOST_ROWS or wide > _MOST:
        raise TooLargeError(
            f"such noise spreads over about {wide:,} places to either side",
            where="sensitivity",
            remedy="Allow a larger ε or δ, or count in coarser units",
        )
    return wide


def _shape(stated: CurveNoise, costs: Any, wide: int) -> Shape:
    low, high = stated.support
    even = bool(getattr(costs, "is_even", True)) and (low is None and high is None)
    steps = stated.steps
    # around the place nearest to 0, as far as noise reaches: what is beyond is as if it were open
    place, reach = nearest_place(low, high), wide if low is None and high is None else 2 * wide
    opened = (
        low is None or low + steps < place - reach,
        high is None or high - steps > place + reach,
    )
    start = place - reach if low is None or opened[0] else low
    end = place + reach if high is None or opened[1] else high
    start, end = start - steps * opened[0], end + steps * opened[1]
    curve = [(float(rate), float(part)) for rate, part in stated.curve]
    rate = max(rate for rate, _ in curve)
    least = min(max(1e3 * min(part for _, part in curve), 1e-7), 1e-2)
    middle = place if opened[0] else min(start + wide, end)
    if opened[0] and not opened[1]:
        middle = end - wide
    count = end + 1 if even else end - start + 1
    places = np.arange(count) + (0 if even else start)
    scales = np.maximum(np.exp(-rate * np.abs(places - middle) / steps), least)
    return Shape(start, end, opened, even, costs, curve, steps, scales)


def _searched(
    made: Any, shape: Shape, law: Any, proof: Any, note: Note
) -> tuple[Any, Any, SolverError | None]:
    """A better law and a better bound, where the window has them; and why no program was solved."""
    steps = shape.reach
    shifts = _signed({1, 2, steps - 1, steps} & set(range(1, steps + 1)), shape.even)
    share = 0
    for _ in range(_ROUNDS):
        try:
            solved = Shaped(shape, shifts, _SHARES[share])
        except SolverError as failed:
            return law, proof, failed
        try:
            tried = replace(made, multipliers=solved.parts(_PROOF_BITS))
            if proof is None or tried.exact_bound > proof.exact_bound:
                proof = tried
        except ProblemError:
            pass
        missing = _broken(solved, shape, steps, set(shifts))
        if missing:
            shifts = sorted({*shifts, *missing})
            note(f"shifts {', '.join(map(str, shifts))}")
            continue
        tried = replace(made, law=_law(solved.z, shape.low, shape.even))
        if tried.is_private:
            better = law is None or tried.exact_loss < law.exact_loss
            return tried if better else law, proof, None
        share += 1
        if share == len(_SHARES):
            break
    return law, proof, None


def _signed(shifts: Iterable[int], even: bool) -> list[int]:
    return sorted({side * s for s in shifts for side in ((1,) if even else (1, -1))})


def _broken(solved: Shaped, shape: Shape, steps: int, known: set[int]) -> set[int]:
    """Shifts that are not in the program and are broken most."""
    z = np.pad(solved.z, steps)
    inner = slice(steps, len(z) - steps)
    worst: dict[int, float] = {}
    for shift in _signed(range(1, steps + 1), shape.even):
        if shift in known:
            continue
        moved = np.roll(z, -shift)[inner]
        for rate, part in shape.curve:
            over = float(np.maximum(z[inner] - math.exp(rate) * moved, 0).sum()) / part - 1
            if over > 1e-6:
                worst[shift] = max(over, worst.get(shift, 0.0))
    return set(sorted(worst, key=lambda s: -worst[s])[: max(2, len(known))])


def _law(z: Floats, low: int, even: bool) -> ShapedLaw:
    """The law nearest to floats, in whole numbers, without empty ends."""
    z = (z + z[::-1]) / 2 if even else z
    kept = np.flatnonzero(z > _EMPTY * z.sum())
    z, low = z[kept[0] : kept[-1] + 1], low + int(kept[0])
    masses = [int(v) for v in np.maximum(z, 0) / z.sum() * 2.0**_BITS]
    rest = (1 << _BITS) - sum(masses)
    if even:
        middle = len(masses) // 2
        masses = [(masses[k] + masses[-1 - k]) // 2 for k in range(len(masses))]
        masses[middle] += (1 << _BITS) - sum(masses)
    else:
        masses[int(np.argmax(z))] += rest
    return ShapedLaw(_BITS, low, tuple(masses))
