"""The search for noise of any shape: linear programs in floats on a window, whose multipliers are
constant beyond it; proofs are elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from optmech.errors import InfeasibleError, SolverError
from optmech_noise.additive.shaped import CurveNoise
from optmech_noise.additive.shaped_law import Part, Parts, ShapedLaw
from optmech_noise.program import NoneThereError, Program
from optmech_noise.proposals import whole_numbers
from optmech_noise.search import too_wide, truncated_end
from optmech_noise.session import Session

C = TypeVar("C", bound=CurveNoise)

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


class Shaped:
    """What is solved: places from ``low`` to ``high``, with more of them beyond where an end is
    open; folded where even. One program after another, and what came of it."""

    def __init__(self, stated: CurveNoise, wide: int) -> None:
        low, high = stated.support
        self.costs: Any = stated.charged
        self.even = bool(getattr(self.costs, "is_even", True)) and low is None and high is None
        steps = self.reach = stated.steps
        # around the place nearest to 0, as far as noise reaches: beyond it is as if it were open
        place = nearest_place(low, high)
        far = wide if low is None and high is None else 2 * wide
        self.open = (
            low is None or low + steps < place - far,
            high is None or high - steps > place + far,
        )
        self.first = place - far if low is None or self.open[0] else low
        self.last = place + far if high is None or self.open[1] else high
        self.low, self.high = self.first - steps * self.open[0], self.last + steps * self.open[1]
        self.curve = [(float(rate), float(part)) for rate, part in stated.curve]
        rate = max(rate for rate, _ in self.curve)
        least = min(max(1e3 * min(part for _, part in self.curve), 1e-7), 1e-2)
        middle = place if self.open[0] else min(self.low + wide, self.high)
        if self.open[0] and not self.open[1]:
            middle = self.high - wide
        places = np.arange(0 if self.even else self.low, self.high + 1)
        self.scales = np.maximum(np.exp(-rate * np.abs(places - middle) / steps), least)
        self.near = np.arange(self.first, self.last + 1)
        self.own = self._column(self.near)

    def solve(self, shifts: Sequence[int], share: float) -> None:
        """Find places ``z``, with a share of δ kept back, and what every row is worth."""
        self.program = Program(len(self.scales) + 2)
        self.rows: dict[tuple[int, int], tuple[Any, int | None, int]] = {}
        for bound, (rate, part) in enumerate(self.curve):
            for shift in shifts:
                self._add(bound, shift, math.exp(rate), part * (1 - share))
        count = len(self.scales)
        mass, cost = np.zeros(count + 2), np.zeros(count + 2)
        places = np.arange(self.low, self.high + 1)
        columns = self._column(places)
        costs = np.array([float(self.costs(int(k))) for k in places])
        np.add.at(mass, columns, self.scales[columns])
        np.add.at(cost, columns, costs * self.scales[columns])
        for side, end in ((0, self.low - 1), (1, self.high + 1)):
            if self.open[side] and (side or not self.even):
                mass[count + side] = 1.0 + self.even
                cost[count + side] = float(self.costs(end)) * (1.0 + self.even)
        cost = np.where(mass > 0, cost, 1.0)
        x, self.duals, self.value, _ = self.program.solved(mass, cost, None, _LIMIT)
        self.z = (x[:count] * self.scales)[columns]

    def _column(self, places: Any) -> Any:
        return np.abs(places) if self.even else places - self.low

    def _add(self, bound: int, shift: int, power: float, part: float) -> None:
        program, far = self.program, self.near + shift
        known = (far >= self.low) & (far <= self.high)
        a = self.scales[self.own]
        second = self._column(np.where(known, far, self.near))
        b = np.where(known, self.scales[second], 0.0)
        same = known & (second == self.own)
        # of even noise a place and its shift may be one
        index = program.compare(self.own, np.where(same, 0.0, -power * b / a), second)
        if same.any():
            program.entries.append((np.full(same.sum(), -power), index[same], self.own[same]))
        tail = self._tail(shift, power)
        every = index if tail is None else np.append(index, tail)
        shares = part / (a if tail is None else np.append(a, 1.0))
        self.rows[bound, shift] = (index, tail, program.exceed(every, shares, np.ones(len(every))))

    def _tail(self, shift: int, power: float) -> int | None:
        """One row for all places beyond the window on the shift's side."""
        side = shift > 0
        if not self.open[side]:
            return None
        if side:
            places = np.arange(self.last + 1, self.high + 1)
            near = places <= self.last + shift
        else:
            places = np.arange(self.low, self.first)
            near = places >= self.first + shift
        row = len(self.program.uppers)
        columns = self._column(places)
        values = np.where(near, 1.0, 1 - power) * self.scales[columns]
        across = np.append(columns, len(self.scales) + side)
        at = np.full(len(across), row)
        self.program.entries.append((np.append(values, 1 - power), at, across))
        self.program.uppers.append(0.0)
        return row

    def parts(self) -> Parts:
        """Its multipliers, in whole numbers."""
        out, sides = [], 2 if self.even else 1
        for (bound, shift), (index, tail, budget) in self.rows.items():
            y = np.maximum(self.duals[index] / self.scales[self.own], 0.0) / sides
            end = 0.0 if tail is None else max(0.0, float(self.duals[tail])) / sides
            part = self.curve[bound][1]
            limit = max(0.0, float(self.duals[budget])) / part / sides
            most = max(float(y.max()), end)
            if part * (most - limit) < _CHEAP * self.value:
                # a limit is known to a tolerance only, and small multipliers may be above it
                limit = max(limit, most)
            *inner, rest = whole_numbers([*y.tolist(), end], _PROOF_BITS, limit)
            price = max(*inner, rest)
            if price:
                out.append(Part(bound, shift, self.first, tuple(inner), rest, price))
        return Parts(_PROOF_BITS, self.even, tuple(out))

    def signed(self, shifts: Iterable[int]) -> list[int]:
        """Shifts to every side that is looked at."""
        return sorted({side * s for s in shifts for side in ((1,) if self.even else (1, -1))})

    def broken(self, known: Sequence[int]) -> set[int]:
        """Shifts that are not in the program and are broken most."""
        z = np.pad(self.z, self.reach)
        worst: dict[int, float] = {}
        for shift in set(self.signed(range(1, self.reach + 1))) - set(known):
            moved = np.roll(z, -shift)[self.reach : -self.reach]
            for rate, part in self.curve:
                over = float(np.maximum(self.z - math.exp(rate) * moved, 0).sum()) / part - 1
                if over > 1e-6:
                    worst[shift] = max(over, worst.get(shift, 0.0))
        ordered = sorted(worst, key=lambda s: (-worst[s], s))
        return set(ordered[: max(2, len(known))])

    def law(self) -> ShapedLaw:
        """The law nearest to floats, in whole numbers, without empty ends."""
        z = (self.z + self.z[::-1]) / 2 if self.even else self.z
        kept = np.flatnonzero(z > _EMPTY * z.sum())
        z, low = z[kept[0] : kept[-1] + 1], self.low + int(kept[0])
        masses = [int(v) for v in np.maximum(z, 0) / z.sum() * 2.0**_BITS]
        likeliest = int(np.argmax(z))
        if self.even:
            likeliest = len(masses) // 2
            masses = [(a + b) // 2 for a, b in zip(masses, masses[::-1], strict=True)]
        masses[likeliest] += (1 << _BITS) - sum(masses)
        return ShapedLaw(_BITS, low, tuple(masses))


class ShapedSearch(Session[C]):
    """The best noise that keeps the promise of what is stated, whose law is left out, with its
    bound: both for the loss on the lattice that is charged."""

    def best(self) -> C:
        """What is found in windows that grow."""
        wide = self._width()
        for _ in range(_WIDER):
            program = Shaped(self.stated, wide)
            failed = self._searched(program)
            self.note(f"places from {program.low} to {program.high}: gap {self._gap():.2g}")
            if self._gap() <= self.gap or not any(program.open) or 2 * wide > _MOST:
                break
            wide *= 2
        if self.law is None and isinstance(failed, NoneThereError) and not any(program.open):
            raise InfeasibleError(
                "no noise within this range keeps it", where="support", remedy="Allow a wider range"
            )
        if self.law is None:
            raise failed or SolverError(
                "no noise that was found keeps it", where="noise", remedy="Relax δ or ε"
            )
        return self._joined()

    def _width(self) -> int:
        """How far noise reaches to either side, about."""
        steps, costs = self.stated.steps, self.stated.charged
        ends = [truncated_end(float(rate), float(part), steps) for rate, part in self.stated.curve]
        wide: int = int(min(1.15 * max(ends), 1e9)) + costs.last + 3 * steps + 3
        if wide * steps > _MOST_ROWS or wide > _MOST:
            raise too_wide(wide, where="sensitivity")
        return wide

    def _searched(self, program: Shaped) -> SolverError | None:
        """Look for a better law and a better bound in the window; why no program was solved."""
        steps = program.reach
        shifts = program.signed({1, 2, steps - 1, steps} & set(range(1, steps + 1)))
        shares = list(_SHARES)
        for _ in range(_ROUNDS):
            try:
                program.solve(shifts, shares[0])
            except SolverError as failed:
                return failed
            self._keep(program.parts())
            if missing := program.broken(shifts):
                shifts = sorted({*shifts, *missing})
                self.note(f"shifts {', '.join(map(str, shifts))}")
                continue
            if self._take(program.law()) or len(shares) == 1:
                break
            del shares[0]
        return None


def nearest_place(low: int | None, high: int | None) -> int:
    """The place of a range that is nearest to 0."""
    place = 0 if low is None else max(0, low)
    return place if high is None else min(place, high)


def certain_place(low: int | None, high: int | None) -> ShapedLaw:
    """The law of always the same number, the nearest to 0 that there is."""
    return ShapedLaw(1, nearest_place(low, high), (2,))
