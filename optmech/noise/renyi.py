"""The search for the best noise under a bound on Rényi divergences."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optmech.additive.file import LARGEST_EPSILON, MOST_POWERS
from optmech.additive.loss import LossLike, NoiseLoss
from optmech.additive.power import Tangents, order_of, power_bound
from optmech.additive.renyi import RenyiNoise
from optmech.certificate.objective import relative_gap
from optmech.errors import InfeasibleError, ProblemError, SolverError, TooLargeError
from optmech.exact.number import Exact, parse_exact
from optmech.noise.power import PowerSolution, PowerWindow, solve_power
from optmech.noise.power_proposals import first_window, next_window, power_law, tangents_of

_GAPS = (5e-8, 5e-8, 3e-7, 1e-8)
"""Of the windows that are tried: a smaller one knows prices less well."""
_MOST_PAIRS = 120_000
_LEAST_EPSILON = 1e-4
_LEAST_REACH, _SIGMAS = 64, 8.0
_MOST_GROWTH = 500


def best_renyi(
    renyi: object,
    steps: int,
    loss: LossLike,
    width: int | None,
    gap: float,
    note: Callable[[str], None],
) -> RenyiNoise:
    """The noise of least loss with D_α(Z ‖ Z + s) <= ε for |s| <= ``steps``; ``renyi`` is (α, ε).

    Raises ProblemError for what is no such pair, InfeasibleError for ε = 0, TooLargeError where
    noise spreads over more places than are searched, SolverError where none is found.
    """
    if not isinstance(renyi, tuple) or len(renyi) != 2:
        raise ProblemError("is no pair", where="renyi", remedy="Give (order, epsilon)")
    order, rate = order_of(renyi[0]), parse_exact(renyi[1], where="renyi")
    if not rate > 0:
        raise InfeasibleError(
            "with ε = 0 all shifts of the noise would be the same distribution",
            where="renyi",
            remedy="Allow some ε",
        )
    growth = float(order - 1) * float(rate)
    if not _LEAST_EPSILON <= rate <= LARGEST_EPSILON or growth > _MOST_GROWTH:
        raise ProblemError(
            f"ε = {float(rate):g} is out of range at order {order}",
            where="renyi",
            remedy=f"Give {_LEAST_EPSILON:g} to {LARGEST_EPSILON}, (order - 1) ε up to "
            f"{_MOST_GROWTH}",
        )
    # as far as Gaussian noise of the same divergence goes, and windows
    far = min(
        _SIGMAS * steps * math.sqrt(float(order) / (2 * float(rate))), _MOST_PAIRS / 6 / steps
    )
    measure = NoiseLoss.of(loss, width, int(max(_LEAST_REACH, far)))
    return _Search(order, rate, steps, measure, note).best(gap)


class _Search:
    """Windows of several widths and tails, and the best verified design so far."""

    def __init__(
        self,
        order: Fraction,
        rate: Exact,
        steps: int,
        measure: NoiseLoss,
        note: Callable[[str], None],
    ) -> None:
        self.order, self.rate, self.steps, self.measure = order, rate, steps, measure
        self.note = note
        self.started = time.perf_counter()
        self.law: RenyiNoise | None = None
        self.tangents: Tangents | None = None
        self.bound = Fraction(0)

    def best(self, gap: float) -> RenyiNoise:
        window = first_window(self.measure, self.order, self.rate, self.steps, _GAPS[0])
        try:
            for attempt, aim in enumerate(_GAPS):
                solution = self._window(window, aim)
                self.note(f"window {window.n}: gap {self._gap():.2g}")
                if self._gap() <= gap:
                    break
                if attempt == 0:
                    window = next_window(window, solution)
        except (KeyboardInterrupt, SolverError, TooLargeError, FloatingPointError) as stop:
            if self.law is None:
                raise
            self.note(f"stopped ({type(stop).__name__}): the best that was verified is kept")
        if self.law is None:
            raise SolverError("no noise was found", where="noise", remedy="Allow a larger ε")
        seconds = time.perf_counter() - self.started
        return RenyiNoise(
            self.law.law, self.measure, self.order, self.rate, self.steps, self.tangents, seconds
        ).require_private()

    def _gap(self) -> float:
        return 1.0 if self.law is None else relative_gap(self.law.loss, float(self.bound))

    def _window(self, window: PowerWindow, aim: float) -> PowerSolution:
        """Everything that a window yields."""
        pairs = 2 * (window.n + 2 * self.steps) * self.steps
        if pairs > min(_MOST_PAIRS, 2 * MOST_POWERS):
            raise TooLargeError(
                f"such noise spreads over about {window.n:,} places to either side",
                where="renyi",
                remedy=f"Allow a larger ε, or count in coarser units: {_MOST_PAIRS:,} pairs of "
                "places are searched at most",
            )
        with np.errstate(all="ignore"):
            solution = solve_power(window.aiming(aim))
            law = power_law(solution, window)
            made = RenyiNoise(law, self.measure, self.order, self.rate, self.steps)
            tangents = tangents_of(solution, replace(window, loss=self.measure.minorant))
        better = self.law is None or made.exact_loss < self.law.exact_loss
        if better and made.is_private:
            self.law = made
        if tangents is not None:
            stated = (self.measure.minorant, self.order, self.rate, self.steps, tangents)
            bound = power_bound(*stated)
            if bound > self.bound:
                self.bound, self.tangents = bound, tangents
        return solution
