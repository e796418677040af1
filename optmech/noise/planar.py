"""The search for the best noise for pairs of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.arguments import whole
from optmech.noise.additive.file import (
    LARGEST_EPSILON,
    MOST_PAIRS,
    MOST_PLANAR_SENSITIVITY,
    MOST_WIDTH,
)
from optmech.noise.additive.loss import NoiseLoss
from optmech.noise.additive.planar import (
    Class,
    PlanarMultipliers,
    PlanarNoise,
    PlanarShift,
    classes,
    shape_of,
)
from optmech.noise.additive.planar_law import (
    Place,
    PlanarLaw,
    PlanarLoss,
    orbit,
    radius,
    shares,
    shifts_within,
    wedge,
)
from optmech.noise.planar_program import (
    PlanarRows,
    PlanarSolution,
    PlanarWindow,
    first_shifts,
    solve_planar,
)
from optmech.noise.proposals import SLACK, tail_ratio, whole_numbers
from optmech.noise.releases import require_delta
from optmech.noise.session import Note, Promise, Session

_ROUNDS = 5
_PASSES = 6
_MIXES = 8
_MOST_ENTRIES = 600_000
"""Classes times shifts in a program."""
_SECONDS = 300.0
_KEPT = 1e-9
_SHARE = 1e-12
"""Probability that is as good as none."""
_FALLS = 23.0
"""A ring is so far out that noise falls by e^-23 from there to what is near."""
_BITS = 90
_LEAST_EPSILON = 1e-2
_LEAST_DELTA = 1e-12


def best_planar(
    loss: NoiseLoss,
    promise: Promise,
    steps: int,
    norms: tuple[str, str],
    gap: float,
    note: Note,
) -> PlanarNoise:
    """The noise of least expected loss c(‖Z‖) for pairs that one person changes by at most
    ``steps`` in the first of two norms; the loss is of the second.

    Raises ProblemError for what is out of range, TooLargeError where noise spreads over more places
    than are searched, SolverError where none is found.
    """
    norm, loss_norm = norms
    shape = shape_of(norm)
    whole(steps, "sensitivity", 1, MOST_PLANAR_SENSITIVITY)
    measure = PlanarLoss(loss, loss_norm)
    rate, part = promise
    if not rate > 0:
        raise ProblemError("is 0", where="epsilon", remedy="Give a positive ε for pairs")
    if not _LEAST_EPSILON <= rate <= LARGEST_EPSILON:
        raise ProblemError(
            f"{float(rate):g} is out of range for pairs",
            where="epsilon",
            remedy=f"Give {_LEAST_EPSILON:g} to {LARGEST_EPSILON}",
        )
    require_delta(part, _LEAST_DELTA)
    stated = PlanarNoise(PlanarLaw(shape, 0, 1, (2,)), measure, rate, part, steps, norm)
    return _anything(stated) if part >= 1 else _Search(stated, gap, note).best()


def _anything(stated: PlanarNoise) -> PlanarNoise:
    """Where all noise is private: never anything but what costs least."""
    shape, far = stated.law.shape, stated.measure.loss.cheapest
    core = [4 // len(orbit((far, 0))) * (place == (far, 0)) for place in wedge(shape, far)]
    zeros = (0,) * len(list(classes(shape, 0, (1, 0))))
    proof = PlanarMultipliers(0, 0, (PlanarShift((1, 0), zeros, 0),))
    return replace(stated, law=PlanarLaw(shape, far, 2, tuple(core)), multipliers=proof)


class _Search(Session[PlanarNoise]):
    """Windows that grow."""

    def __init__(self, stated: PlanarNoise, gap: float, note: Note) -> None:
        super().__init__(stated, gap, note)
        self.ratio, self.ratio_bits = tail_ratio(stated.epsilon)
        part = float(stated.delta) * (1 - _KEPT)
        self.window = PlanarWindow(
            stated.measure, float(stated.epsilon), part, stated.sensitivity, stated.norm, 1, 0.0
        )
        self.shifts = first_shifts(self.window)

    def best(self) -> PlanarNoise:
        """The design: the best law with the best multipliers that were found."""
        n = self._first()
        with self._stopping():
            for _ in range(_ROUNDS):
                self._window(n)
                self.note(f"window {n}, {len(self.shifts)} shifts: gap {self._gap():.2g}")
                if self._gap() <= self.gap or not self._affordable(n + n // 2):
                    break
                n += n // 2
        return self._joined()

    def _first(self) -> int:
        w, table = self.window, 2 * self.stated.measure.loss.last + 2
        rate, steps = w.epsilon, w.sensitivity
        wide = 16 * steps / rate if w.delta == 0 else (
            1.2 * steps / rate * math.log1p(math.expm1(rate) / (2 * w.delta)) + steps
        )  # fmt: skip
        n = math.ceil(wide) + table
        while n > 8 * steps / rate + table and w.delta == 0 and not self._affordable(n):
            n = n * 3 // 4
        if not self._affordable(n):
            raise TooLargeError(
                f"such noise spreads over about {n:,} places in every direction",
                where="epsilon",
                remedy="Allow a larger ε or δ, or count in coarser units",
            )
        return n

    def _affordable(self, n: int) -> bool:
        w = self.window
        wide = n + w.sensitivity
        places = wide * wide / (4 if w.shape == "l1" else 2)
        every = len(shifts_within(w.norm, w.sensitivity))
        return (
            n <= MOST_WIDTH
            and places <= 36_000
            and 8 * places * len(self.shifts) <= _MOST_ENTRIES * (1 if w.delta == 0 else 0.25)
            and (2 * wide + 1) ** 2 * every <= MOST_PAIRS
        )

    def _window(self, n: int) -> None:
        """Everything that a window yields."""
        tailed = replace(self.window, n=n, ratio=self.ratio / 2**self.ratio_bits)
        rows = PlanarRows(tailed)
        solution = self._solved(tailed, rows)
        pure = tailed.delta == 0
        if pure:
            closed = self._closed(tailed, rows, solution.columns)
            self._take(self._law(tailed, closed / float(rows.weights()[0] @ closed)))
        else:
            self._mixed(tailed, rows, solution)
        relaxed = replace(tailed, ratio=0.0)
        self._keep(self._multipliers(relaxed, self._solved(relaxed, PlanarRows(relaxed))))

    def _solved(self, window: PlanarWindow, rows: PlanarRows) -> PlanarSolution:
        """A solution that no shift breaks by more than rounding."""
        every = shifts_within(window.norm, window.sensitivity)
        while True:
            solution = solve_planar(window, self.shifts, _SECONDS)
            missing = set(every) - set(self.shifts) if self._affordable(window.n) else ()
            worst = (
                (self._excess(window, rows, solution.columns, shift), shift) for shift in missing
            )
            excess, shift = max(worst, default=(0.0, (0, 0)))
            if excess <= window.delta * (1 + 1e-7) + 1e-9:
                return solution
            self.shifts = sorted({*self.shifts, shift})

    def _excess(
        self, window: PlanarWindow, rows: PlanarRows, columns: Floats, shift: Place
    ) -> float:
        first, a, second, b, counts = rows.pairs(shift)
        found = columns[first] * a - math.exp(window.epsilon) * columns[second] * b
        return float(counts @ np.maximum(found, 0))

    def _closed(self, window: PlanarWindow, rows: PlanarRows, columns: Floats) -> Floats:
        """The least columns at or above the given ones that no shift nor shell breaks."""
        parts = [rows.pairs(s)[:4] for s in shifts_within(window.norm, window.sensitivity)]
        if window.sensitivity > 1:
            parts.append(rows.shells())
        first, a, second, b = (np.concatenate(part) for part in zip(*parts, strict=True))
        share = a / b * math.exp(-window.epsilon) * (1 + SLACK)
        out = np.maximum(columns, 0.0)
        while True:
            new = out.copy()
            np.maximum.at(new, second, out[first] * share)
            if (new <= out * (1 + 1e-13)).all():
                return new
            out = new

    def _ring(
        self, window: PlanarWindow, rows: PlanarRows, columns: Floats, far: float
    ) -> tuple[PlanarWindow, Floats, Floats]:
        """A wider window, its columns with the probability ``far`` on a ring as far out as is
        affordable, and those of the ring alone, which is private without δ."""
        d, n = window.sensitivity, window.n
        wide = n + math.ceil(d * _FALLS / window.epsilon)
        while wide > n and not self._affordable(wide):
            wide -= -(-(wide - n) // 4)
        wider = replace(window, n=wide)
        made = PlanarRows(wider)
        places = [*made.places, *((wide + c, 0) for c in range(1, d + 1))]
        radii = np.array([radius(window.shape, *place) for place in places])
        steps = np.where(radii > wide, 1, (wide - radii) // d)
        ring = np.exp(-window.epsilon * (1 - SLACK) * steps)
        ring[len(made.places) :] = self.ratio / 2**self.ratio_bits
        mass, _ = made.weights()
        ring /= float(mass @ ring)
        found = [rows.column(place) for place in places]
        near = np.array([columns[at] * factor for at, factor in found])
        return wider, near / max(float(mass @ near), 1e-300) * (1 - far) + far * ring, ring

    def _mixed(self, window: PlanarWindow, rows: PlanarRows, solution: PlanarSolution) -> None:
        """Take a law for δ > 0, mixed with one for δ = 0 as far as it exceeds δ."""
        mass, _ = rows.weights()
        raw = np.maximum(solution.columns, 0.0)
        start = len(rows.places)
        tails = raw[start:]
        # shells keep ε among themselves, or there are none
        tails[:] = np.maximum.accumulate(tails[::-1])[::-1] if tails.max() > 1e-13 else 0.0
        tails[:] = np.maximum(tails, tails.max() * math.exp(-window.epsilon) * (1 + SLACK))
        raw /= max(float(mass @ raw), 1e-300)
        anchor: Floats | None = None
        if solution.far > _SHARE:
            window, raw, anchor = self._ring(window, rows, raw, solution.far)
        share, limit = 0.0, float(self.stated.delta)
        for _ in range(_MIXES):
            mixed = raw if not share or anchor is None else (1 - share) * raw + share * anchor
            made = replace(self.stated, law=self._law(window, mixed))
            if self._adopt(made):
                return
            if anchor is None:
                pure = replace(window, delta=0.0)
                solution = solve_planar(pure, self.shifts, _SECONDS)
                anchor = self._closed(pure, rows, solution.columns)
                anchor /= float(mass @ anchor)
            worst = made.largest_delta[0]
            excess = 1.0 if worst is None else 1 - limit / float(worst)
            share = min(1.0, max(2 * share, 2 * excess + 1e-12))

    def _law(self, window: PlanarWindow, columns: Floats) -> PlanarLaw:
        """Whole numbers of sum one; rounding goes to the centre."""
        count = len(wedge(window.shape, window.n))
        core, tails = columns[:count], columns[count:]
        rest = 1 - self.ratio / 2**self.ratio_bits
        kept = tails / rest**2 if tails.any() else np.zeros(0)
        fall = (self.ratio, self.ratio_bits) if len(kept) else (0, 0)
        least = min(v for v in (*core.tolist(), *kept.tolist()) if v > 0)
        bits = 64 + fall[1] + max(0, -math.frexp(least)[1])
        unit = 1 << bits
        inner = whole_numbers(core, bits)
        outer = [value >> fall[1] << fall[1] for value in whole_numbers(kept, bits)]
        made = sum(shares(window.shape, window.n, inner, outer, fall)) >> fall[1]
        if made > unit:
            # floats sum to one but for roundings
            share = Fraction(unit, made) * (1 - Fraction(1, 1 << 50))
            return self._law(window, columns * float(share))
        inner[0] += unit - made
        return PlanarLaw(window.shape, window.n, bits, tuple(inner), tuple(outer), *fall)

    def _multipliers(self, window: PlanarWindow, solution: PlanarSolution) -> PlanarMultipliers:
        """Multipliers of the relaxation as whole numbers."""
        known = {s: list(classes(window.shape, window.n, s)) for s in self.shifts}
        values = iter(self._lowered(window, solution, [c for made in known.values() for c in made]))
        lowered = {s: list(islice(values, len(made))) for s, made in known.items()}
        largest = max(1e-300, *map(max, lowered.values()))
        bits = max(0, _BITS - math.frexp(largest)[1])
        parts = []
        for s, found in lowered.items():
            limit = int(Fraction(solution.limits.get(s, 0.0)) * (1 << bits))
            numbers = whole_numbers(found, bits)
            if self.stated.delta > 0:
                numbers = [min(v, limit) for v in numbers]
            if any(numbers):
                parts.append(PlanarShift(s, tuple(numbers), limit))
        s = self.shifts[0]
        nothing = PlanarShift(s, (0,) * len(known[s]), 0)
        return PlanarMultipliers(bits, window.n, tuple(parts) or (nothing,))

    def _lowered(
        self, window: PlanarWindow, solution: PlanarSolution, known: list[Class]
    ) -> list[float]:
        """The multipliers of the classes of all shifts, lowered from the outside inwards where they
        hurt a place more than it can bear."""
        power, w = math.exp(window.epsilon) * (1 + 1e-14), window
        limits = solution.limits
        found = [np.minimum(solution.multipliers[s], limits.get(s, math.inf)) for s in self.shifts]
        values: list[float] = np.concatenate(found).tolist()
        level = (solution.value + w.delta * sum(limits.values())) * (1 - 1e-13)
        hurt: dict[Place, list[int]] = {}
        gain: dict[Place, list[int]] = {}
        for i, (one, other, _) in enumerate(known):
            gain.setdefault(one, []).append(i)
            hurt.setdefault(other, []).append(i)
        losses = {p: float(w.measure.bounds(p)[0]) for p in wedge(w.shape, w.n + w.sensitivity)}

        def total(parts: Iterable[int]) -> float:
            return sum(known[i][2] * values[i] for i in parts)

        ordered = sorted(losses, key=lambda p: (losses[p], p), reverse=True)
        for _ in range(_PASSES):
            lowered = False
            for place in ordered:
                parts = hurt.get(place, ())
                value = (losses[place] - level) * len(orbit(place))
                value = value + total(gain.get(place, ())) - power * total(parts)
                # what hurts from nearer to the centre first
                for nearer in (True, False):
                    some = [
                        i for i in parts if (losses[known[i][0]] <= losses[place]) == nearer
                    ]  # fmt: skip
                    pain = power * total(some)
                    if value < -1e-12 * level and pain > 0:
                        kept = max(0.0, 1 + value / pain)
                        for i in some:
                            values[i] *= kept
                        value += (1 - kept) * pain
                        lowered = True
            if not lowered:
                break
        return values
