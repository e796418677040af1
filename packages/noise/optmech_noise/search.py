"""The search for the best noise on the integers, windows that grow and shifts that are added."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import TooLargeError
from optmech.exact.exponentials import exp_bounds
from optmech.exact.number import Exact, rounded_up
from optmech_noise.additive.bound import BITS, largest_delta, nothing
from optmech_noise.additive.design import ApproximateNoise
from optmech_noise.additive.law import MOST_ENTRIES, Law
from optmech_noise.program import LineRows, Solution, Window
from optmech_noise.proposals import (
    KEPT,
    LIFTED,
    Dual,
    continued,
    excess,
    lifted,
    mirrored,
    pure_places,
    tail_ratio,
    thinned,
    tidied,
    with_tails,
)
from optmech_noise.session import Note, Session

D = TypeVar("D", bound=ApproximateNoise)

MOST_PLACES = 12_000
"""The widest window that is searched."""
MOST_ROWS = 400_000
"""Places times sensitivity."""
_ROUNDS = 12
_MIXES = 6
_DEEPEST = 600.0
SHARE = 1e-12
"""Probability that is as good as none."""
_FALLS = 20.0
"""What noise does by e^-20 between the centre and the end of a window is done."""
_PERIOD = 1024
_SLOWEST = 20
"""Flat noise without ε falls by 2^-20 at least from one such period to the next."""
_FLATTEST = _PERIOD * 2.0**_SLOWEST
_WIDE = 2000
"""Places times sensitivity."""
_NEARLY = 1.01
"""Up to so many times δ a solution that lacks shifts is looked at all the same."""


class Search(Session[D]):
    """Windows that grow, and shifts that are added; ``stated`` has the promise and the loss."""

    def __init__(self, stated: D, gap: float, note: Note) -> None:
        super().__init__(stated, gap, note)
        self.loss, self.epsilon, self.delta = stated.charged, stated.epsilon, stated.delta
        self.rate = float(stated.epsilon)
        self.part = float(stated.delta) * (1 - KEPT)
        self.approximate = self.rate > 0 and self.part > 0
        self.sensitivity = sensitivity = stated.steps
        self.widest = min(MOST_PLACES, MOST_ROWS // sensitivity)
        first = {1, 2, sensitivity - 1, sensitivity} & set(range(1, sensitivity + 1))
        self.shifts = dict.fromkeys(sorted(first), False)
        self.places: Floats | None = None
        ratio, bits = tail_ratio(self.epsilon) if self.rate > 0 else (0, 0)
        self.ratio = ratio / 2**bits
        self.tails = (sensitivity, ratio, bits)
        self.truncated = math.inf
        if self.part > 0:
            self.truncated = truncated_end(self.rate, float(stated.delta), sensitivity)

    def best(self) -> D:
        """The design: the best law with the best multipliers that were found."""
        if self.rate > 0 and self.loss.is_less_far_out:
            self._far_out()
            # where nothing is the least, wide windows only find less than next to nothing
            wide = not self.delta > 0 or self._end() * self.sensitivity > _WIDE
            if self._gap() <= self.gap or (not self.loss.end and wide):
                return self._joined()
        if self.approximate and self.loss.is_bounded:
            self._without_delta()
            if self.law is not None and self._gap() <= self.gap:
                return self._joined()
        n = self._first_window()
        with self._stopping():
            for _ in range(_ROUNDS):
                before = self._gap()
                self._window(n)
                self.note(f"{self._looked_at(n)}: gap {self._gap():.2g}")
                slow = n >= self._settled() and self._gap() > 0.7 * before
                if self._gap() <= self.gap or slow:
                    break
                wider = max(2 * n, min(self._end(), MOST_PLACES))
                before, n = n, min(wider, self.widest)
                if n <= before:
                    break
        return self._joined()

    def _looked_at(self, n: int) -> str:
        return f"window {n}, shifts {', '.join(map(str, self.shifts))}"

    def _fall_back(self) -> None:
        """Take noise for δ = 0, or a geometric law."""
        if self.approximate:
            self._without_delta()
        if self.law is None and self.rate > 0:
            self._plain()

    def _without_delta(self) -> None:
        """The best noise for δ = 0, and its multipliers where they are bounded: for a tiny δ, with
        which programs are ill-scaled, nothing more is needed."""
        pure = self._pure()
        found = pure.best()
        self.places = pure.places
        self._take(found.law)
        known = found.multipliers
        if known is not None and not any(any(part.tail[1:]) for part in known.shifts):
            limited = [replace(s, price=max(*s.inner, s.tail[0])) for s in known.shifts]
            self._keep(replace(known, shifts=tuple(limited)))

    def _pure(self) -> Search[D]:
        """A search for δ = 0 that tells nothing."""
        return Search(self._with(delta=Exact(Fraction(0))), self.gap, lambda _: None)

    def _plain(self) -> None:
        """Geometric noise from sensitivity to sensitivity: private whatever the loss is."""
        steps = np.ceil(np.arange(self._least() + self.sensitivity + 1.0) / self.sensitivity)
        self._take(self._law(self._fallen(steps)))

    def _fallen(self, steps: Floats) -> Floats:
        """Places so many sensitivities from where most is."""
        # a little less steep, for roundings
        fall = self.rate * (1 - 1e-9)
        return np.asarray(np.exp(-np.minimum(fall * steps, _DEEPEST)))

    def _far_out(self) -> None:
        """Noise of two humps where the loss is the same for good: the farther out they are the
        nearer it is to that, which noise without δ may approach and never reach. The bound is what
        the cheapest place costs."""
        places = self._humps()
        self._take(self._law(places))
        if self.delta > 0:
            # with δ there may be nothing where it costs more
            dear = [k for k, value in enumerate(self.loss.values) if value > self.loss.end]
            self._take(self._law(np.where(np.isin(np.arange(len(places)), dear), 0.0, places)))
        # δ may be anywhere, and so is where it costs least
        cheapest = self.loss.cheapest
        places *= 1 - self.part
        places[cheapest] += self.part / (2 if cheapest else 1)
        self._take(self._law(places))
        self._keep(nothing(self.sensitivity))

    def _humps(self) -> Floats:
        """Places of probability one in all, tails included, most of it as far out as need be: next
        to nothing is where the loss is not yet constant."""
        share = max(self.gap / 4 * float(self.loss.floor / max(self.loss.values)), SHARE)
        falls = math.log((2 * self.loss.last + 1) / share) / self.rate
        most = min(MOST_ENTRIES // 2, MOST_ROWS // self.sensitivity)
        far = int(min(self.loss.last + self.sensitivity * (falls + 2), most))
        steps = np.arange(max(self._least(), far), -1.0, -1.0) // self.sensitivity
        places = self._fallen(steps)
        beyond = self.sensitivity * self.ratio / (1 - self.ratio)
        return np.asarray(places / (_mass(places) + 2 * beyond))

    def _spread(self, places: Floats, solution: Solution[int]) -> Floats:
        """The places, and far out what the solution has infinitely far out."""
        if not self.rate > 0:
            self.tails = (self.sensitivity, 0, 0)
        if solution.far <= SHARE:
            return places
        if not self.rate > 0:
            return self._flat(places, solution)
        humps = self._humps()
        last = max(len(places), len(humps)) - 1
        near, far = (
            continued(part, self.ratio, self.sensitivity, last) for part in (places, humps)
        )
        return np.asarray(near + solution.far * far)

    def _flat(self, places: Floats, solution: Solution[int]) -> Floats:
        """Places without ε, and what is far out: nowhere less than flat noise, so wide that its
        height is next to nothing, but where the loss is above that far out; places give way to what
        it takes of δ."""
        end, part = self.loss.end, self.part
        gain = abs(float(end) - solution.value)
        need = self.sensitivity * gain / part + float(sum(abs(v - end) for v in self.loss.values))
        wide = max(1.5 * need / max(self.gap * solution.value, SHARE), 16 * self.sensitivity / part)
        bits = min(math.ceil(math.log2(max(wide / _PERIOD, 2))), _SLOWEST)
        self.tails = (_PERIOD, (1 << bits) - 1, bits)
        near = np.append(places, np.zeros(_PERIOD))
        flat = np.ones(len(near))
        flat[: self.loss.last] = [float(v <= end) for v in self.loss.values[:-1]]
        flat /= _mass(flat) + 2 * _PERIOD * self.tails[1]
        share = solution.far
        for _ in range(2 * _MIXES):
            both = np.maximum(near, share * flat)
            share += 1 - _mass(both) - 2 * _PERIOD * self.tails[1] * both[-1]
            near *= min(1.0, (1 - KEPT) * (2 - _falls(both, self.sensitivity) / part))
        return np.asarray(np.maximum(near, share * flat))

    def _joined(self) -> D:
        if self.law is None and self.rate > 0:
            self._plain()
        if self.law is None and self.rate * self.loss.last > _DEEPEST * self.sensitivity:
            raise TooLargeError(
                f"such noise is beyond {self.loss.last:,} less often than floats hold",
                where="loss",
                remedy="Allow a smaller ε, or ask for less",
            )
        return super()._joined()

    def _first_window(self) -> int:
        """The width of the first; raises TooLargeError where a search would take hours."""
        ends = self.delta > 0 and not (self.rate > 0 and self.loss.is_bounded)
        # something verified first, where noise far out costs no more than a constant
        width = self._end() if ends else self._least() + self.sensitivity
        if width > self.widest:
            raise too_wide(
                width,
                "ε or δ",
                f"at most {MOST_PLACES:,} are searched, and {MOST_ROWS:,} over the sensitivity",
            )
        return width

    def _least(self) -> int:
        return self.loss.last + 3 * self.sensitivity + 2

    def _end(self) -> int:
        if not self.part > 0:
            return 0
        if self.loss.is_bounded and not self.rate > 0:
            if 2 * self.truncated >= _FLATTEST:
                return int(_FLATTEST)
            # what is beyond the table may as well be far out, where it is not nearby anyway
            near = int(1.1 * self.truncated)
            return self._least() + (near if near * self.sensitivity <= _WIDE else 0)
        end = 1.1 * self.truncated
        if self.loss.is_less_far_out:
            # two humps, each of half the probability, on either side of what costs more
            end = max(end, min(2 * end, self.widest) - self._least())
        return int(min(end, 1e9)) + self._least()

    def _settled(self) -> float:
        """The window from which on wider ones are worth it only where they close the gap: where
        noise far out costs a constant it has tails, however large δ is."""
        tailed = self.loss.is_bounded and self.approximate
        falls = _FALLS * self.sensitivity / self.rate if tailed else 0
        return max(self._end(), min(falls, self.widest))

    def _law(self, places: Floats) -> Law:
        return with_tails(places, *self.tails)

    def _repaired(self, places: Floats) -> None:
        """Take a law for δ > 0, mixed with one for δ = 0 as far as it exceeds δ."""
        law = self._law(places)
        limit = float(self.delta)
        share = 0.0
        for _ in range(_MIXES):
            if self._take(law):
                return
            if not self.rate > 0:
                share = max(KEPT, 16 * share)
                law = self._law(_wider(places, share))
                continue
            worst = float(largest_delta(law, self.epsilon, self.sensitivity)[0]) + 1e-15
            share = min(1.0, share + 2 * max(0.0, 1 - limit / worst) + 1e-12)
            pure = continued(self._anchor(), self.ratio, self.sensitivity, len(places) - 1)
            mixed = (1 - share) * places / _mass(places) + share * pure / _mass(pure)
            law = self._law(mixed)

    def _anchor(self) -> Floats:
        """The best noise for δ = 0, as places that go on with the ratio."""
        if self.places is None:
            pure = self._pure()
            pure._window(pure._first_window())
            self.places = pure.places
        assert self.places is not None
        return self.places

    def _window(self, n: int) -> None:
        """Everything that a window yields, with as many shifts as it needs: those that a solution
        breaks are added until none is broken by more than rounding, or the gap is small enough."""
        window = self._windowed(n)
        while True:
            solution = self._solved(window)
            missing, worst = self._broken(window, solution)
            if not missing or 0 < worst <= _NEARLY * window.delta:
                self._judge(window, solution)
            if not missing:
                break
            if self._gap() <= self.gap:
                return
            self.shifts |= missing
            self.note(self._looked_at(n))
        if self._gap() > self.gap and len(solution.tails) and self.sensitivity > 1:
            apart = replace(window, joined=False)
            self._prove(apart, self._solved(apart))

    def _windowed(self, n: int) -> Window:
        """A window of the promise and the loss; raises TooLargeError beyond what is searched."""
        if n > MOST_PLACES:
            raise too_wide(n, "ε or δ", f"{MOST_PLACES:,} are searched")
        return Window(self.loss, self.rate, self.part, self.sensitivity, n, self.ratio)

    def _solved(self, window: Window, shifts: Iterable[int] | None = None) -> Solution[int]:
        """The best places of a window against some shifts, or those that there are."""
        against = self.shifts if shifts is None else dict.fromkeys(shifts, False)
        ample = 1 / (4 * window.n + 2)
        if window.far is not None and not window.epsilon and window.delta < ample:
            more = replace(window, delta=ample)
            return thinned(LineRows(more).solved(against), window, ample)
        if window.epsilon <= LIFTED:
            return LineRows(window).solved(against)
        part = window.delta
        if part > 0:
            # as large beside what the next places have as it is at the window's ε, or ample
            most = math.log(5 * window.sensitivity) - LIFTED
            part = max(part, math.exp(min(math.log(part) + window.epsilon - LIFTED, most)))
        smaller = replace(window, epsilon=LIFTED, ratio=math.exp(-LIFTED), delta=part)
        return lifted(LineRows(smaller).solved(against), window)

    def _judge(self, window: Window, solution: Solution[int]) -> None:
        """What a solution yields: a law once it is private, and multipliers."""
        if window.delta == 0:
            self.places = pure_places(solution, self.ratio, self.sensitivity)
            self._take(self._law(self.places))
        else:
            places = self._spread(tidied(solution, window), solution)
            if not self.loss.floor:
                # what is next to nothing is nothing where nothing need be lost
                dear = self.loss.floats(np.arange(float(len(places)))) > 0
                clean = np.where(dear & (places < SHARE), 0.0, places)
                self._take(self._law(clean))
            self._repaired(places)
        self._prove(window, solution)

    def _broken(self, window: Window, solution: Solution[int]) -> tuple[dict[int, bool], float]:
        """The shifts that are broken more than their neighbours, unless all their rows are in the
        program; whether any of these rows points inwards. The largest δ of them."""
        w = window
        tails = solution.tails * (1 - w.ratio) if len(solution.tails) else np.zeros(w.sensitivity)
        places = np.concatenate([solution.window, tails, tails * w.ratio])
        both = mirrored(places)
        kept = np.arange(w.sensitivity, len(both) - w.sensitivity)

        def lost(shift: int) -> Floats:
            return np.asarray(np.maximum(both[kept] - w.power * both[kept + shift], 0))

        def inwards(shift: int) -> bool:
            inner = 2 * (kept - len(places) + 1) < -shift
            return bool((lost(shift)[inner] > 1e-12).any())

        shifts = [s for s in range(1, w.sensitivity + 1) if not self.shifts.get(s, False)]
        sums = {s: float(lost(s).sum()) for s in shifts}
        allowed = w.delta * (1 + 1e-9) + 1e-11
        peaks = [
            s
            for s, total in sums.items()
            if total > allowed and total >= max(sums.get(s - 1, 0.0), sums.get(s + 1, 0.0))
        ]
        # as many as there are, so that few programs are solved where all shifts matter
        worst = sorted(peaks, key=lambda s: sums[s], reverse=True)[: len(self.shifts)]
        made = {s: s in self.shifts or inwards(s) for s in sorted(worst)}
        return made, max(sums.values(), default=0.0)

    def _prove(self, window: Window, solution: Solution[int]) -> None:
        below = replace(window, loss=self.stated.minorant)
        least = solution.value
        if self.law is not None:
            least = rounded_up(self.law.law.expected(below.loss))
        power = exp_bounds(self.epsilon, BITS)[1]
        self._keep(Dual(below, solution, power).best(least))


def too_wide(
    width: int,
    larger: str = "ε or δ",
    most: str = "",
    *,
    where: str = "epsilon",
    ends: str = "places to either side",
) -> TooLargeError:
    """What says that noise so wide is not searched."""
    return TooLargeError(
        f"such noise spreads over about {width:,} {ends}",
        where=where,
        remedy=f"Allow a larger {larger}, or count in coarser units{most and ': '}{most}",
    )


def truncated_end(rate: float, part: float, steps: int) -> float:
    """Where the truncated Laplace law ends (Geng, Ding, Guo and Kumar, AISTATS 2020)."""
    if rate > 0:
        return steps / rate * math.log1p(math.expm1(rate) / (2 * part))
    return steps / (2 * part)


def _mass(places: Floats) -> float:
    return float(2 * places.sum() - places[0])


def _falls(places: Floats, sensitivity: int) -> float:
    """The most that the shifts up to the sensitivity lose where places go on and fall slowly."""
    both = mirrored(places)
    shifts = range(1, sensitivity + 1)
    return max(excess(both, 1.0, s) + s * float(places[-1]) for s in shifts)


def _wider(places: Floats, share: float) -> Floats:
    """A mixture with the same law spread over one place more to either side."""
    near = np.convolve(mirrored(places), np.ones(3) / 3)
    wide = near[len(near) // 2 :]
    out = share * wide
    out[: len(places)] += (1 - share) * places
    return out
