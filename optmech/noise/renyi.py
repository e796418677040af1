"""The search for the best noise under a bound on Rényi divergences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from optmech.errors import InfeasibleError, ProblemError, TooLargeError
from optmech.exact.number import parse_exact
from optmech.noise.additive.file import LARGEST_EPSILON, MOST_POWERS
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import LossLike, NoiseLoss
from optmech.noise.additive.power import order_of
from optmech.noise.additive.renyi import RenyiNoise
from optmech.noise.power import PowerSolution, PowerWindow, solve_power
from optmech.noise.power_proposals import first_window, next_window, power_law, tangents_of
from optmech.noise.session import Session

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
    nothing = Law(1, (2,))
    return _Search(RenyiNoise(nothing, measure, order, rate, steps), gap, note).best()


class _Search(Session[RenyiNoise]):
    """Windows of several widths and tails."""

    def best(self) -> RenyiNoise:
        """The best law with the best tangents that were found."""
        told = self.stated
        window = first_window(told.measure, told.order, told.epsilon, told.sensitivity, _GAPS[0])
        with self._stopping():
            for attempt, aim in enumerate(_GAPS):
                solution = self._window(window, aim)
                self.note(f"window {window.n}: gap {self._gap():.2g}")
                if self._gap() <= self.gap:
                    break
                if attempt == 0:
                    window = next_window(window, solution)
        return self._joined()

    def _window(self, window: PowerWindow, aim: float) -> PowerSolution:
        """Everything that a window yields."""
        steps, measure = self.stated.sensitivity, self.stated.measure
        pairs = 2 * (window.n + 2 * steps) * steps
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
            tangents = tangents_of(solution, replace(window, loss=measure.minorant))
        if self.law is None or law.expected(measure) < self.law.exact_loss:
            self._take(law)
        if tangents is not None:
            self._keep(tangents)
        return solution
