"""The search for the best noise for pairs of whole numbers, in floats; proofs are elsewhere.

Places that are images of each other under the symmetries of the square share a column. Of the
shifts, too, only one of all images is in the program; few of many matter, and those are added that
a solution breaks.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.objective import OPTIMAL_GAP
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.number import Number
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.bound import ShiftWindow
from optmech_noise.additive.loss import LossLike, NoiseLoss
from optmech_noise.additive.planar import PlanarMultipliers, PlanarNoise, classes, shape_of
from optmech_noise.additive.planar_file import MOST_PAIRS, MOST_PLANAR_SENSITIVITY, MOST_WIDTH
from optmech_noise.additive.planar_law import (
    Place,
    PlanarLaw,
    PlanarLoss,
    around,
    orbit,
    radius,
    shares,
    shell_mean,
    shifts_within,
    wedge,
)
from optmech_noise.program import Compared, Program, Rows, Solution, Window
from optmech_noise.proposals import KEPT, SLACK, bits_for, shift_windows, tail_ratio, whole_numbers
from optmech_noise.releases import reach_of, require_delta, stated_promise
from optmech_noise.search import SHARE, too_wide, truncated_end
from optmech_noise.session import Note, Session, require_gap, require_range, silent

_ROUNDS = 5
_PASSES = 6
_MIXES = 8
_MOST_ENTRIES = 600_000
"""Classes times shifts in a program."""
_FALLS = 23.0
"""A ring is so far out that noise falls by e^-23 from there to what is near."""
_BITS = 90
_Part = tuple[list[float], int, int, Place]
_LEAST_EPSILON = 1e-2
_LEAST_DELTA = 1e-12


_LEAST_SCALE = 1e-13
_MOST_REACH = 48


@dataclass(frozen=True, kw_only=True)
class PlanarWindow(Window):
    """z of radius up to ``n``, and ``sensitivity`` shells beyond that go on with ``ratio``; or,
    where that is 0, z of radius up to n + sensitivity with no inequality of what lies beyond n:
    a relaxation. ``loss`` is that of the norm that ``measure`` says."""

    measure: PlanarLoss
    norm: str

    @property
    def shape(self) -> str:
        """The norm of the window."""
        return shape_of(self.norm)


class PlanarRows(Rows[Place]):
    """Columns of places and shells, and pairs of them that shifts compare: a class of places has
    one multiplier."""

    seconds, sides = 300.0, 1
    window: PlanarWindow

    def __init__(self, window: PlanarWindow) -> None:
        w = self.window = window
        # with tails shells stand for all that follow, and rows end before them
        self.shells = range(w.n + 1, w.n + 1 + w.sensitivity * (w.ratio > 0))
        self.core = wedge(w.shape, w.n + w.sensitivity - len(self.shells))
        self.places = len(self.core)
        self.index = {place: i for i, place in enumerate(self.core)}
        self.costs = np.array([float(w.measure.bounds(place)[0]) for place in self.core])
        # about the size of every column: that falls from the nearest place that costs least
        xy = np.array([*self.core, *((m, 0) for m in self.shells)], dtype=float)
        best = xy[: self.places][self.costs == self.costs.min()]
        # of many such places, all that are inside matter little
        x, y = (np.abs(xy[:, None, i] - best[None, :64, i]) for i in (0, 1))
        away = {"l1": x + y, "l2": np.hypot(x, y), "linf": np.maximum(x, y)}[w.norm].min(axis=1)
        self.scales = np.maximum(np.exp(-w.epsilon * away / w.sensitivity), _LEAST_SCALE)

    def column(self, place: Place) -> tuple[int, float]:
        """z of a place is a column times a factor."""
        found = self.index.get(place)
        if found is not None:
            return found, 1.0
        w = self.window
        block, c = divmod(radius(w.shape, *place) - w.n - 1, w.sensitivity)
        return self.places + c, w.ratio**block

    def of(self, shift: Place, inward: bool) -> Compared:
        first, a, second, b, counts = self.pairs(shift)
        a, b, at = a * self.scales[first], b * self.scales[second], np.arange(len(a))
        return Compared(first, a, second, b, counts, at, len(a))

    def more(self, program: Program) -> None:
        if len(self.shells) > 1:
            first, a, second, b = self.between_shells()
            size = self.window.power * b * self.scales[second] / (a * self.scales[first])
            program.compare(first, -size, second)

    def pairs(self, shift: Place) -> tuple[Ints, Floats, Ints, Floats, Floats]:
        """Columns and factors of k and k + shift, and of how many k: k of radius up to n, and with
        tails also those of which k + shift is."""
        w = self.window
        rows: list[tuple[float, ...]] = []
        for one, other, count in classes(w.shape, w.n, shift):
            here, there = self.column(one), self.column(other)
            rows.append((*here, *there, float(count)))
            if there[0] >= self.places:
                rows.append((*there, *here, float(count)))
        first, a, second, b, counts = (np.array(part) for part in zip(*rows, strict=True))
        return first, a, second, b, counts

    def excess(self, columns: Floats, shift: Place) -> float:
        """By how much a shift breaks ε in all."""
        first, a, second, b, counts = self.pairs(shift)
        found = columns[first] * a - self.window.power * columns[second] * b
        return float(counts @ np.maximum(found, 0))

    def between_shells(self) -> tuple[Ints, Floats, Ints, Floats]:
        """Pairs of shells that differ by at most the sensitivity, both ways."""
        p = len(self.shells)
        c, t = np.divmod(np.arange(p * (p - 1)), p - 1)
        block, d = np.divmod(c + t + 1, p)
        one, factor = np.ones(len(c)), self.window.ratio**block
        c, d = self.places + c, self.places + d
        return np.append(c, d), np.append(one, factor), np.append(d, c), np.append(factor, one)

    def weights(self) -> tuple[Floats, Floats]:
        w = self.window
        r, p, each = w.ratio, w.sensitivity, around(w.shape) / (1 - w.ratio)
        mass = [float(len(orbit(place))) for place in self.core]
        cost = [size * least for size, least in zip(mass, self.costs.tolist(), strict=True)]
        for m in self.shells:
            a, b, g = map(float, w.measure.beyond(w.shape, m))
            mass.append(each * shell_mean((1.0, 0.0, 0.0), m, p, r))
            cost.append(each * shell_mean((a, b, g), m, p, r))
        return np.array(mass), np.array(cost)


@checked_arguments
def for_pairs(
    epsilon: Number,
    delta: Number = 0,
    *,
    norm: str = "l1",
    loss_norm: str | None = None,
    sensitivity: int = 1,
    loss: LossLike = "absolute",
    width: int | None = None,
    gap: float = OPTIMAL_GAP,
    note: Note | None = None,
) -> PlanarNoise:
    """The noise of least expected loss for a pair of whole numbers that one person changes by at
    most ``sensitivity`` in the norm ``norm``, (ε, δ)-differentially private, with a bound of all
    noise on pairs.

    Parameters
    ----------
    norm:
        "l1", "l2" or "linf".
    loss_norm:
        The norm of the noise that ``loss`` is of; by default ``norm``.
    sensitivity, loss, width, gap, note:
        As ``om.noise.optimal`` takes them.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    InfeasibleError
        For ε = δ = 0: no such noise exists.
    TooLargeError
        Where the noise spreads over more pairs than are searched.

    Examples
    --------
    >>> pair = om.noise.for_pairs(1, norm="linf", gap=0.1)
    >>> pair.lower_bound <= pair.loss
    True
    """
    require_gap(gap)
    steps = whole(sensitivity, "sensitivity", 1, MOST_PLANAR_SENSITIVITY)
    shape, (rate, part) = shape_of(norm), stated_promise(epsilon, delta)
    reach = min(reach_of(float(rate), float(part), steps), _MOST_REACH)
    measure = PlanarLoss(NoiseLoss.of(loss, width, reach), norm if loss_norm is None else loss_norm)
    if not rate > 0:
        raise ProblemError("is 0", where="epsilon", remedy="Give a positive ε for pairs")
    require_range(rate, _LEAST_EPSILON, of=" for pairs")
    require_delta(part, _LEAST_DELTA)
    stated = PlanarNoise(PlanarLaw(shape, 0, 1, (2,)), measure, rate, part, steps, norm)
    return _anything(stated) if part >= 1 else _Search(stated, gap, note or silent).best()


def _anything(stated: PlanarNoise) -> PlanarNoise:
    """Where all noise is private: never anything but what costs least."""
    shape, far = stated.law.shape, stated.measure.loss.cheapest
    core = [4 // len(orbit((far, 0))) * (place == (far, 0)) for place in wedge(shape, far)]
    zeros = (0,) * len(list(classes(shape, 0, (1, 0))))
    proof = PlanarMultipliers(0, (ShiftWindow((1, 0), zeros, (), 0),), 0)
    return replace(stated, law=PlanarLaw(shape, far, 2, tuple(core)), multipliers=proof)


class _Search(Session[PlanarNoise]):
    """Windows that grow."""

    def __init__(self, stated: PlanarNoise, gap: float, note: Note) -> None:
        super().__init__(stated, gap, note)
        self.ratio, self.ratio_bits = tail_ratio(stated.epsilon)
        self.window = PlanarWindow(
            stated.measure.loss,
            float(stated.epsilon),
            float(stated.delta) * (1 - KEPT),
            stated.sensitivity,
            1,
            0.0,
            measure=stated.measure,
            norm=stated.norm,
        )
        self.every = shifts_within(stated.norm, stated.sensitivity)
        self.shifts = dict.fromkeys(self.every, False)
        if len(self.every) > 6:
            # those on the border of what is allowed, and the shortest
            border = [
                (x, y) for x, y in self.every
                if (x + 1, y) not in self.shifts or (x, y + 1) not in self.shifts
            ]  # fmt: skip
            self.shifts = dict.fromkeys(sorted({(1, 0), *border}), False)

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
        w, table = self.window, 2 * self.window.loss.last + 2
        rate, steps = w.epsilon, w.sensitivity
        wide = 16 * steps / rate
        if w.delta > 0:
            wide = 1.2 * truncated_end(rate, w.delta, steps) + steps
        n = math.ceil(wide) + table
        while n > 8 * steps / rate + table and w.delta == 0 and not self._affordable(n):
            n = n * 3 // 4
        if not self._affordable(n):
            raise too_wide(n, ends="places in every direction")
        return n

    def _affordable(self, n: int) -> bool:
        w = self.window
        wide = n + w.sensitivity
        places = wide * wide / (4 if w.shape == "l1" else 2)
        return (
            n <= MOST_WIDTH
            and places <= 36_000
            and 8 * places * len(self.shifts) <= _MOST_ENTRIES * (1 if w.delta == 0 else 0.25)
            and (2 * wide + 1) ** 2 * len(self.every) <= MOST_PAIRS
        )

    def _window(self, n: int) -> None:
        """Everything that a window yields."""
        rows = PlanarRows(replace(self.window, n=n, ratio=self.ratio / 2**self.ratio_bits))
        solution = self._solved(rows)
        if self.window.delta == 0:
            self._take(self._law(rows, self._closed(rows, solution.columns)))
        else:
            self._mixed(rows, solution)
        relaxed = PlanarRows(replace(self.window, n=n))
        self._keep(self._multipliers(relaxed.window, self._solved(relaxed)))

    def _solved(self, rows: PlanarRows) -> Solution[Place]:
        """A solution that no shift breaks by more than rounding."""
        w = rows.window
        while True:
            solution = rows.solved(self.shifts)
            columns = solution.columns
            missing = set(self.every) - set(self.shifts) if self._affordable(w.n) else ()
            excess, shift = max(
                ((rows.excess(columns, shift), shift) for shift in missing), default=(0.0, (0, 0))
            )
            if excess <= w.delta * (1 + 1e-7) + 1e-9:
                return solution
            self.shifts = dict.fromkeys(sorted({*self.shifts, shift}), False)

    def _closed(self, rows: PlanarRows, columns: Floats) -> Floats:
        """The least columns at or above the given ones that no shift nor shell breaks, of sum
        one."""
        parts = [rows.pairs(s)[:4] for s in self.every]
        if len(rows.shells) > 1:
            parts.append(rows.between_shells())
        first, a, second, b = (np.concatenate(part) for part in zip(*parts, strict=True))
        share = a / b * math.exp(-self.window.epsilon) * (1 + SLACK)
        new = np.maximum(columns, 0.0)
        while True:
            out, new = new, new.copy()
            np.maximum.at(new, second, out[first] * share)
            if (new <= out * (1 + 1e-13)).all():
                return np.asarray(new / float(rows.weights()[0] @ new))

    def _ring(
        self, rows: PlanarRows, columns: Floats, far: float
    ) -> tuple[PlanarRows, Floats, Floats]:
        """A wider window, its columns with the probability ``far`` on a ring as far out as is
        affordable, and those of the ring alone, which is private without δ."""
        w, d = rows.window, rows.window.sensitivity
        wide = w.n + math.ceil(d * _FALLS / w.epsilon)
        while wide > w.n and not self._affordable(wide):
            wide -= -(-(wide - w.n) // 4)
        made = PlanarRows(replace(w, n=wide))
        places = [*made.core, *((wide + c, 0) for c in range(1, d + 1))]
        radii = np.array([radius(w.shape, *place) for place in places])
        steps = np.where(radii > wide, 1, (wide - radii) // d)
        ring = np.exp(-w.epsilon * (1 - SLACK) * steps)
        ring[made.places :] = w.ratio
        mass, _ = made.weights()
        ring /= float(mass @ ring)
        near = np.array([columns[at] * factor for at, factor in map(rows.column, places)])
        return made, near / max(float(mass @ near), 1e-300) * (1 - far) + far * ring, ring

    def _mixed(self, rows: PlanarRows, solution: Solution[Place]) -> None:
        """Take a law for δ > 0, mixed with one for δ = 0 as far as it exceeds δ."""
        raw = np.maximum(solution.columns, 0.0)
        tails = raw[rows.places :]
        # shells keep ε among themselves, or there are none
        tails[:] = np.maximum.accumulate(tails[::-1])[::-1] if tails.max() > 1e-13 else 0.0
        tails[:] = np.maximum(tails, tails.max() * math.exp(-self.window.epsilon) * (1 + SLACK))
        raw /= max(float(rows.weights()[0] @ raw), 1e-300)
        anchor: Floats | None = None
        if solution.far > SHARE:
            rows, raw, anchor = self._ring(rows, raw, solution.far)
        share, limit = 0.0, float(self.stated.delta)
        for _ in range(_MIXES):
            mixed = raw if anchor is None else (1 - share) * raw + share * anchor
            made = replace(self.stated, law=self._law(rows, mixed))
            if self._adopt(made):
                return
            if anchor is None:
                pure = PlanarRows(replace(rows.window, delta=0.0))
                anchor = self._closed(rows, pure.solved(self.shifts).columns)
            worst = made.largest_delta[0]
            excess = 1.0 if worst is None else 1 - limit / float(worst)
            share = min(1.0, max(2 * share, 2 * excess + 1e-12))

    def _law(self, rows: PlanarRows, columns: Floats) -> PlanarLaw:
        """Whole numbers of sum one; rounding goes to the centre."""
        w = rows.window
        core, tails = columns[: rows.places], columns[rows.places :] / (1 - w.ratio) ** 2
        fall = (self.ratio, self.ratio_bits) if tails.any() else (0, 0)
        kept = np.append(core, tails)
        bits = 64 + fall[1] + bits_for(kept[kept > 0].min(), 0)
        unit = 1 << bits
        inner = list(whole_numbers(core, bits))
        outer = [v >> fall[1] << fall[1] for v in whole_numbers(tails, bits) if fall[1]]
        made = sum(shares(w.shape, w.n, inner, outer, fall)) >> fall[1]
        if made > unit:
            # floats sum to one but for roundings
            share = Fraction(unit, made) * (1 - Fraction(1, 1 << 50))
            return self._law(rows, columns * float(share))
        inner[0] += unit - made
        return PlanarLaw(w.shape, w.n, bits, tuple(inner), tuple(outer), *fall)

    def _multipliers(self, window: PlanarWindow, solution: Solution[Place]) -> PlanarMultipliers:
        """Multipliers of the relaxation as whole numbers."""
        lowered = self._lowered(window, solution)
        bits = bits_for(max(1e-300, *map(max, lowered.values())), _BITS)
        parts = shift_windows(lowered, {}, solution.limits, bits)
        s, found = next(iter(lowered.items()))
        nothing = ShiftWindow(s, (0,) * len(found), (), 0)
        return PlanarMultipliers(bits, parts or (nothing,), window.n)

    def _lowered(self, window: PlanarWindow, solution: Solution[Place]) -> dict[Place, list[float]]:
        """The multipliers of the classes of all shifts, lowered from the outside inwards where they
        hurt a place more than it can bear."""
        power, w = window.power * (1 + 1e-14), window
        limits = solution.limits
        level = (solution.value + w.delta * sum(limits.values())) * (1 - 1e-13)
        losses = {p: float(w.measure.bounds(p)[0]) for p in wedge(w.shape, w.n + w.sensitivity)}
        values: dict[Place, list[float]] = {}
        # by the places that they hurt or help: where multipliers are, how many, whom they help
        hurt: defaultdict[Place, list[_Part]] = defaultdict(list)
        gain: defaultdict[Place, list[_Part]] = defaultdict(list)
        for s in self.shifts:
            y = np.minimum(solution.multipliers[s], limits.get(s, math.inf)).tolist()
            values[s] = y
            for i, (one, other, count) in enumerate(classes(w.shape, w.n, s)):
                gain[one].append((y, i, count, one))
                hurt[other].append((y, i, count, one))

        def total(parts: Iterable[_Part]) -> float:
            return sum(count * y[i] for y, i, count, _ in parts)

        ordered = sorted(losses, key=lambda p: (losses[p], p), reverse=True)
        for _ in range(_PASSES):
            lowered = False
            for place in ordered:
                value = (losses[place] - level) * len(orbit(place))
                value += total(gain[place]) - power * total(hurt[place])
                # what hurts from nearer to the centre first
                for nearer in (True, False):
                    some = [p for p in hurt[place] if (losses[p[3]] <= losses[place]) == nearer]
                    pain = power * total(some)
                    if value < -1e-12 * level and pain > 0:
                        kept = max(0.0, 1 + value / pain)
                        for y, i, *_ in some:
                            y[i] *= kept
                        value += (1 - kept) * pain
                        lowered = True
            if not lowered:
                break
        return values
