"""``om.noise.optimal``: the best noise, with a proof that there is no better."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike

from optmech.additive.bound import NoiseMultipliers, ShiftMultipliers
from optmech.additive.design import NoiseDesign
from optmech.additive.encoded import LARGEST_EPSILON, MOST_SENSITIVITY
from optmech.additive.file import MOST_RELEASES
from optmech.additive.law import Law
from optmech.additive.loss import LossLike, NoiseLoss
from optmech.additive.privacy import largest_delta
from optmech.additive.renyi import RenyiNoise
from optmech.base.arrays import Floats
from optmech.certificate.objective import OPTIMAL_GAP, relative_gap
from optmech.errors import InfeasibleError, ProblemError, SolverError, TooLargeError
from optmech.exact.checked import probability, whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, parse_exact
from optmech.noise.bounded import best_in_range
from optmech.noise.program import Solution, Window, solve_window
from optmech.noise.proposals import (
    KEPT,
    Dual,
    continued,
    pure_places,
    tail_ratio,
    tidied,
    with_tails,
)
from optmech.noise.renyi import best_renyi

MOST_PLACES = 12_000
"""The widest window that is searched."""
MOST_ROWS = 400_000
"""Places times sensitivity."""
_LEAST_EPSILON = 1e-4
_LEAST_DELTA = 1e-100
_ROUNDS = 12
_MIXES = 6

if TYPE_CHECKING:
    from optmech.designs.design import Design

Note = Callable[[str], None]


@overload
def optimal(
    *,
    renyi: tuple[int | float | str | Fraction, Number],
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    reach: int = ...,
    gap: float = ...,
    note: Note | None = ...,
) -> RenyiNoise: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    reach: int = ...,
    gap: float = ...,
    note: Note | None = ...,
    for_releases: int = ...,
) -> NoiseDesign: ...


@overload
def optimal(
    epsilon: Number,
    delta: Number = ...,
    *,
    sensitivity: int = ...,
    loss: LossLike = ...,
    width: int | None = ...,
    reach: int = ...,
    gap: float = ...,
    note: Note | None = ...,
    bounded: tuple[int, int],
    prior: ArrayLike | None = ...,
) -> Design: ...


def optimal(
    epsilon: Number | None = None,
    delta: Number = 0,
    *,
    sensitivity: int = 1,
    loss: LossLike = "absolute",
    width: int | None = None,
    reach: int = 64,
    gap: float = OPTIMAL_GAP,
    note: Note | None = None,
    bounded: tuple[int, int] | None = None,
    prior: ArrayLike | None = None,
    for_releases: int = 1,
    renyi: tuple[int | float | str | Fraction, Number] | None = None,
) -> NoiseDesign | RenyiNoise | Design:
    """The noise of least expected loss among all that is (ε, δ)-differentially private when it is
    added to a whole number that one person changes by at most ``sensitivity``.

    The lower bound is of all noise on the integers, of any shape and support. With δ > 0 and a
    sensitivity above 1 the optimum need not fall from the centre outwards (Selvi, Liu and
    Wiesemann, Differential privacy via distributionally robust optimization, Operations Research
    2025); with δ = 0 it is the staircase (Geng and Viswanath, The optimal noise-adding mechanism
    in differential privacy, IEEE Transactions on Information Theory 2016).

    Parameters
    ----------
    loss:
        "absolute", "square", "threshold" (probability of noise beyond ``width``), a table
        c(0), c(1), … that goes on with its last step, or a function, tabulated up to ``reach``.
    gap:
        The search ends at this certified relative gap, or where wider windows no longer help.
    note:
        Called with a line of progress now and then.
    bounded:
        The ends of a range that the number is known to lie in. The result is then a ``Design``: the
        best mechanism at all from the range to itself, of least loss at the worst number, or of
        least expected loss under ``prior``.
    for_releases:
        So many numbers, each with noise of its own, keep (ε, δ) together. Without δ each takes an
        equal part of ε, which is optimal; with δ > 0 the noise is the best of some calibrated
        families (``for_releases``), and the lower bound that of a single release.
    renyi:
        (order, ε) instead of ε and δ: the Rényi divergence of this order between the noise and
        every shift of it up to the sensitivity is at most ε. The result is a ``RenyiNoise``.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    InfeasibleError
        For ε = δ = 0: no such noise exists.
    TooLargeError
        Where the noise spreads over more places than are searched.
    """
    if renyi is not None:
        others = (epsilon, bounded, prior)
        if any(other is not None for other in others) or delta != 0 or for_releases != 1:
            raise ProblemError(
                "is a promise of its own",
                where="renyi",
                remedy="Leave out epsilon, delta, bounded, prior and for_releases",
            )
        steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
        measure = NoiseLoss.of(loss, width, reach)
        if not 0 <= gap < 1:
            raise ProblemError(f"{gap!r} is not from 0 to below 1", where="gap")
        return best_renyi(renyi, steps, measure, gap, note or (lambda _: None))
    if epsilon is None:
        raise ProblemError("is missing", where="epsilon", remedy="Give ε, or renyi=(order, ε)")
    rate, part = parse_exact(epsilon, where="epsilon"), probability(delta)
    if rate > LARGEST_EPSILON or 0 < rate < _LEAST_EPSILON:
        raise ProblemError(
            f"{float(rate):g} is out of range",
            where="epsilon",
            remedy=f"Give 0, or {_LEAST_EPSILON:g} to {LARGEST_EPSILON}",
        )
    if bracket(part)[1] > 0 and part < _LEAST_DELTA:
        raise ProblemError(
            f"is below {_LEAST_DELTA:g}", where="delta", remedy="Give 0, or more than that"
        )
    if not rate > 0 and not part > 0:
        raise InfeasibleError(
            "with ε = δ = 0 all shifts of the noise would be the same distribution",
            where="epsilon",
            remedy="Allow some ε or δ",
        )
    steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
    measure = NoiseLoss.of(loss, width, reach)
    if not 0 <= gap < 1:
        raise ProblemError(f"{gap!r} is not from 0 to below 1", where="gap")
    count = whole(for_releases, "for_releases", 1, MOST_RELEASES)
    if count > 1:
        if bounded is not None or prior is not None:
            raise ProblemError(
                "goes with noise on all whole numbers",
                where="for_releases",
                remedy="Leave out bounded and prior, or for_releases",
            )
        return _several(rate, part, count, steps, loss, width, reach, gap, note)
    if bounded is not None:
        return best_in_range(measure, rate, part, steps, bounded, prior, gap)
    if prior is not None:
        raise ProblemError(
            "goes with a range", where="prior", remedy="Give bounded=(low, high) as well"
        )
    if part >= 1:
        law = Law(1, (2,))
        return NoiseDesign(law, measure, rate, part, steps)
    return _Search(measure, rate, part, steps, gap, note or (lambda _: None)).best()


def _several(
    rate: Exact,
    part: Exact,
    count: int,
    steps: int,
    loss: LossLike,
    width: int | None,
    reach: int,
    gap: float,
    note: Note | None,
) -> NoiseDesign:
    """Noise of which several releases keep a promise together."""
    if part > 0:
        from optmech.noise import releases

        found = releases.for_releases(
            rate, part, count, sensitivity=steps, loss=loss, width=width, reach=reach, note=note
        )
        return found.together
    share = Exact(rate.factor / count, rate.log_of)
    one = optimal(
        share, part, sensitivity=steps, loss=loss, width=width, reach=reach, gap=gap, note=note
    )
    return replace(one, epsilon=rate, releases=count).require_private()


class _Search:
    """Windows that grow, shifts that are added, and the best verified design so far."""

    def __init__(
        self,
        loss: NoiseLoss,
        epsilon: Exact,
        delta: Exact,
        sensitivity: int,
        gap: float,
        note: Note,
    ) -> None:
        self.loss, self.epsilon, self.delta = loss, epsilon, delta
        self.sensitivity, self.gap, self.note = sensitivity, gap, note
        self.started = time.perf_counter()
        first = {1, 2, sensitivity - 1, sensitivity} & set(range(1, sensitivity + 1))
        self.shifts = dict.fromkeys(sorted(first), False)
        self.places: Floats | None = None
        ratio, bits = tail_ratio(epsilon) if epsilon > 0 else (0, 0)
        self.ratio = ratio / 2**bits
        self.law: NoiseDesign | None = None
        self.proof: NoiseDesign | None = None

    def best(self) -> NoiseDesign:
        """The design: the best law with the best multipliers that were found."""
        if self.delta > 0 and self.epsilon > 0 and self.loss.is_bounded:
            self._without_delta()
            if self.law is not None and self._gap() <= self.gap:
                return self._joined()
        n = self._first_window()
        try:
            for _ in range(_ROUNDS):
                before = self._gap()
                self._window(n)
                self.note(
                    f"window {n}, shifts {', '.join(map(str, self.shifts))}: gap {self._gap():.2g}"
                )
                if self._gap() <= self.gap or self._gap() > 0.7 * before:
                    break
                n = min(2 * n, MOST_PLACES, MOST_ROWS // self.sensitivity)
        except (KeyboardInterrupt, SolverError) as stop:
            if self.law is None:
                raise
            self.note(f"stopped ({type(stop).__name__}): the best that was verified is kept")
        return self._joined()

    def _without_delta(self) -> None:
        """The best noise for δ = 0, and its multipliers where they are bounded: for a tiny δ, with
        which programs are ill-scaled, nothing more is needed."""
        pure = self._pure()
        pure.best()
        if pure.law is None or pure.proof is None or pure.proof.multipliers is None:
            return
        self.places = pure.places
        self._take(pure.law.law)
        known = pure.proof.multipliers
        if not any(part.tail[1] or part.tail[2] for part in known.shifts):
            limited = [
                ShiftMultipliers(s.shift, s.inner, s.tail, max(*s.inner, s.tail[0]))
                for s in known.shifts
            ]
            self._keep(NoiseMultipliers(known.bits, tuple(limited)))

    def _pure(self) -> _Search:
        """The same search for δ = 0."""
        none = Exact(Fraction(0))
        return _Search(self.loss, self.epsilon, none, self.sensitivity, self.gap, lambda _: None)

    def _gap(self) -> float:
        if self.law is None or self.proof is None:
            return math.inf
        return relative_gap(self.law.loss, self.proof.lower_bound)

    def _joined(self) -> NoiseDesign:
        if self.law is None:
            raise SolverError("no noise was found", where="noise", remedy="Allow a larger ε or δ")
        proof = None if self.proof is None else self.proof.multipliers
        return NoiseDesign(
            self.law.law,
            self.loss,
            self.epsilon,
            self.delta,
            self.sensitivity,
            proof,
            time.perf_counter() - self.started,
        ).require_private()

    def _first_window(self) -> int:
        rate, part, steps = float(self.epsilon), float(self.delta), self.sensitivity
        least = self.loss.last + 3 * steps + 2
        if part == 0:
            return self._affordable(least + steps)
        # where the truncated Laplace law ends (Geng, Ding, Guo and Kumar, AISTATS 2020)
        if rate > 0:
            end = steps / rate * math.log1p(math.expm1(rate) / (2 * part))
        else:
            end = steps / (2 * part)
        return self._affordable(int(min(1.1 * end, 1e9)) + least)

    def _affordable(self, width: int) -> int:
        """The width of a window; raises TooLargeError where a search would take hours."""
        if width > MOST_PLACES or width * self.sensitivity > MOST_ROWS:
            raise TooLargeError(
                f"such noise spreads over about {width:,} places to either side",
                where="epsilon",
                remedy=f"Allow a larger ε or δ, or count in coarser units: at most {MOST_PLACES:,} "
                f"are searched, and {MOST_ROWS:,} over the sensitivity",
            )
        return width

    def _window(self, n: int) -> None:
        """Everything that a window yields, with as many shifts as it needs."""
        part = float(self.delta)
        window = Window(
            self.loss, float(self.epsilon), part * (1 - KEPT), self.sensitivity, n, self.ratio
        )
        solution = self._shifted(window)
        if part == 0:
            self.places = pure_places(solution, self.ratio, self.sensitivity)
            self._take(with_tails(self.places, self.epsilon, self.sensitivity))
        else:
            self._repaired(tidied(solution, window))
        self._prove(window, solution)
        if self._gap() > self.gap and len(solution.tails) and self.sensitivity > 1:
            apart = replace(window, joined=False)
            self._prove(apart, solve_window(apart, self.shifts))

    def _repaired(self, places: Floats) -> None:
        """Take a law for δ > 0, mixed with one for δ = 0 as far as it exceeds δ."""
        law = with_tails(places, self.epsilon, self.sensitivity)
        limit = float(self.delta)
        share = 0.0
        for _ in range(_MIXES):
            if self._take(law):
                return
            if not self.epsilon > 0:
                share = max(KEPT, 16 * share)
                law = with_tails(_wider(places, share), self.epsilon, self.sensitivity)
                continue
            worst = float(largest_delta(law, self.epsilon, self.sensitivity)[0]) + 1e-15
            share = min(1.0, share + 2 * max(0.0, 1 - limit / worst) + 1e-12)
            pure = continued(self._anchor(), self.ratio, self.sensitivity, len(places) - 1)
            mixed = (1 - share) * places / _mass(places) + share * pure / _mass(pure)
            law = with_tails(mixed, self.epsilon, self.sensitivity)

    def _anchor(self) -> Floats:
        """The best noise for δ = 0, as places that go on with the ratio."""
        if self.places is None:
            pure = self._pure()
            pure._window(pure._first_window())
            self.places = pure.places
        assert self.places is not None
        return self.places

    def _shifted(self, window: Window) -> Solution:
        """A solution that no shift breaks by more than rounding."""
        while True:
            solution = solve_window(window, self.shifts)
            missing = self._broken(window, solution)
            if not missing:
                return solution
            self.shifts |= missing

    def _broken(self, window: Window, solution: Solution) -> dict[int, bool]:
        """The shift that is broken most, unless all its rows are in the program; whether any of
        them points inwards."""
        w = window
        tails = solution.tails * (1 - w.ratio)
        places = np.concatenate([solution.window, tails, tails * w.ratio])
        if not len(tails):
            places = np.concatenate([places, np.zeros(w.sensitivity)])
        both = np.concatenate([places[:0:-1], places])
        centre = len(places) - 1
        kept = np.arange(w.sensitivity, len(both) - w.sensitivity)
        worst, found = w.delta * (1 + 1e-9) + 1e-11, {}
        for shift in range(1, w.sensitivity + 1):
            excess = np.maximum(both[kept] - w.power * both[kept + shift], 0)
            if float(excess.sum()) > worst and not self.shifts.get(shift, False):
                inwards = 2 * (kept - centre) < -shift
                worst = float(excess.sum())
                found = {shift: shift in self.shifts or bool((excess[inwards] > 1e-12).any())}
        return found

    def _take(self, law: Law) -> bool:
        """Keep a law where it is private and better than what there is."""
        if largest_delta(law, self.epsilon, self.sensitivity)[0] > bracket(self.delta)[0]:
            return False
        made = NoiseDesign(law, self.loss, self.epsilon, self.delta, self.sensitivity)
        if self.law is None or made.exact_loss < self.law.exact_loss:
            self.law = made
        return True

    def _prove(self, window: Window, solution: Solution) -> None:
        least = solution.value if self.law is None else self.law.loss
        self._keep(Dual(window, solution).best(least))

    def _keep(self, multipliers: NoiseMultipliers) -> None:
        """Keep multipliers that prove more than those there are."""
        law = Law(1, (2,))
        made = NoiseDesign(law, self.loss, self.epsilon, self.delta, self.sensitivity, multipliers)
        try:
            better = self.proof is None or made.exact_bound > self.proof.exact_bound
        except ProblemError:
            return
        if better:
            self.proof = made


def _mass(places: Floats) -> float:
    return float(2 * places.sum() - places[0])


def _wider(places: Floats, share: float) -> Floats:
    """A mixture with the same law spread over one place more to either side."""
    both = np.concatenate([places[:0:-1], places])
    near = np.convolve(both, np.ones(3) / 3)
    wide = near[len(near) // 2 :]
    out = share * wide
    out[: len(places)] += (1 - share) * places
    return out
