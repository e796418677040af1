"""The search for the best noise under bounds on Rényi divergences, and for the least divergence of
noise that costs at most so much."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from optmech.errors import InfeasibleError, ProblemError, SolverError, TooLargeError
from optmech.exact.number import Exact, Number, parse_exact
from optmech.noise.additive.cells import rational
from optmech.noise.additive.file import LARGEST_EPSILON, MOST_POWERS
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import LossLike, NoiseLoss
from optmech.noise.additive.power import Bounds, at_every_order, order_of, require_bounds
from optmech.noise.additive.renyi import DivergenceNoise, RenyiNoise
from optmech.noise.power import PowerSolution, PowerWindow, solve_power
from optmech.noise.power_proposals import (
    first_window,
    next_window,
    power_law,
    tangents_of,
    with_bounds,
)
from optmech.noise.session import Session

Note = Callable[[str], None]
D = TypeVar("D", bound=DivergenceNoise)
Order = int | float | str | Fraction
Pair = tuple[Order, Number]
Renyi = Order | Pair | Sequence[Pair]

_GAPS = (5e-8, 5e-8, 3e-7, 1e-8)
"""Of the windows that are tried: a smaller one knows prices less well."""
_MOST_PAIRS = 120_000
_LEAST_EPSILON = 1e-4
_LEAST_RHO = 1e-2
_LEAST_REACH, _SIGMAS = 64, 8.0
_MOST_GROWTH = 500
_ORDERS = ("1", "64/63", "50/49", "40/39", "33/32", "27/26", "22/21", "18/17", "15/14", "25/23",
           "10/9", "8/7", "7/6", "6/5", "5/4", "13/10", "11/8", "3/2", "13/8", "9/5", "2", "9/4",
           "5/2", "3", "7/2", "17/4", "21/4", "13/2", "9", "14", "28", "64")  # fmt: skip
"""At which zero-concentrated privacy is looked at."""
_ROUNDS = 12
_CLOSE = 1e-6
_BEYOND = 1e-7
_NOTHING = Law(1, (2,))


def stated_bounds(renyi: object, zcdp: Number | None) -> tuple[Bounds, Exact | None]:
    """Orders and what divergences are at most, from (α, ε), pairs of these, or ρ.

    Raises ProblemError for what is none of these or out of range, InfeasibleError for an ε or ρ of
    0.
    """
    if zcdp is not None:
        if renyi is not None:
            raise ProblemError("is a promise of its own", where="zcdp", remedy="Leave out renyi")
        rho = parse_exact(zcdp, where="zcdp")
        _require_some(rho, "zcdp")
        if not _LEAST_RHO <= rho <= LARGEST_EPSILON:
            raise ProblemError(
                f"{float(rho):g} is out of range",
                where="zcdp",
                remedy=f"Give {_LEAST_RHO:g} to {LARGEST_EPSILON}",
            )
        orders = [order_of(order) for order in _ORDERS]
        fit = [a for a in orders if float(a * (a - 1)) * rho <= _MOST_GROWTH]
        return at_every_order(rho, fit), rho
    if not isinstance(renyi, tuple | list):
        raise ProblemError("is no pair", where="renyi", remedy="Give (order, epsilon)")
    pairs: list[Any] = list(renyi) if renyi and isinstance(renyi[0], tuple) else [renyi]
    made = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ProblemError("is no pair", where="renyi", remedy="Give (order, epsilon)")
        order, rate = order_of(pair[0]), parse_exact(pair[1], where="renyi")
        _require_some(rate, "renyi")
        growth = float(order - 1) * float(rate)
        if not _LEAST_EPSILON <= rate <= LARGEST_EPSILON or growth > _MOST_GROWTH:
            raise ProblemError(
                f"ε = {float(rate):g} is out of range at order {order}",
                where="renyi",
                remedy=f"Give {_LEAST_EPSILON:g} to {LARGEST_EPSILON}, (order - 1) ε up to "
                f"{_MOST_GROWTH}",
            )
        made.append((order, rate))
    bounds = tuple(sorted(made))
    require_bounds(bounds)
    return bounds, None


def _require_some(rate: Exact, where: str) -> None:
    if not rate > 0:
        raise InfeasibleError(
            "with ε = 0 all shifts of the noise would be the same distribution",
            where=where,
            remedy="Allow some ε",
        )


def reach_of(bounds: Bounds, steps: int) -> int:
    """As far as Gaussian noise of the same divergence goes, and windows."""
    wide = max(float(order) / (2 * float(rate)) for order, rate in bounds)
    far = min(_SIGMAS * steps * math.sqrt(wide), _MOST_PAIRS / 6 / steps)
    return int(max(_LEAST_REACH, far))


def best_renyi(
    promise: tuple[Bounds, Exact | None],
    steps: int,
    loss: LossLike,
    width: int | None,
    gap: float,
    note: Note,
) -> RenyiNoise:
    """The noise of least loss with D_α(Z ‖ Z + s) <= ε for |s| <= ``steps``.

    Raises TooLargeError where noise spreads over more places than are searched, SolverError where
    none is found.
    """
    bounds, rho = promise
    measure = NoiseLoss.of(loss, width, reach_of(bounds, steps))
    return DivergenceSearch(RenyiNoise(_NOTHING, measure, bounds, steps, rho=rho), gap, note).best()


def least_renyi(
    renyi: object,
    zcdp: object,
    steps: int,
    loss: LossLike,
    width: int | None,
    budget: Number,
    gap: float,
    note: Note,
) -> RenyiNoise:
    """Noise on whole numbers whose loss is at most ``budget``, of the least divergence."""
    bounds, cost = stated_order(renyi, zcdp), stated_budget(budget)
    measure = NoiseLoss.of(loss, width, _LEAST_REACH)
    return least(RenyiNoise(_NOTHING, measure, bounds, steps), cost, gap, note)


def stated_order(renyi: object, zcdp: object) -> Bounds:
    """An order, with an ε to begin with."""
    if zcdp is not None or isinstance(renyi, tuple | list):
        raise ProblemError(
            "goes with one order", where="budget", remedy="Give renyi=order, without its ε"
        )
    return ((order_of(renyi), Exact(Fraction(1))),)


def stated_budget(budget: Number) -> Fraction:
    """A loss above 0, as a fraction."""
    return rational(budget, "budget")


def least(stated: D, budget: Fraction, gap: float, note: Note) -> D:
    """Noise of the least divergence among all whose loss is at most ``budget``, nearly: Newton's
    method on ε, along which the least loss is convex in T, and falls."""
    order, rate = stated.bounds[0]
    log = math.log(float(rate))
    best: D | None = None
    low, high = math.log(_LEAST_EPSILON), math.log(LARGEST_EPSILON)
    if order > 1:
        high = min(high, math.log(_MOST_GROWTH / float(order - 1)))
    goal = float(budget)
    for _ in range(_ROUNDS):
        epsilon = Exact(Fraction(math.exp(log)))
        made = DivergenceSearch(replace(stated, bounds=((order, epsilon),)), gap, note).best()
        ratio = made.loss / goal
        note(f"divergence {float(epsilon):.6g}: loss {made.loss:.6g}")
        if made.exact_loss <= budget:
            high = min(high, log)
            if best is None or made.epsilon < best.epsilon:
                best = made
            if ratio > 1 - _CLOSE:
                break
        else:
            low = max(low, log)
        aim = goal * (1 - _CLOSE / 2)
        new = _along(made, aim)
        log = min(max(new, low), high) if low < new < high else (low + high) / 2
        if high - low < _BEYOND and best is not None:
            break
    if best is None:
        raise SolverError(
            "no noise of so small a loss was found", where="budget", remedy="Allow a larger loss"
        )
    return best


def _along(made: DivergenceNoise, loss: float) -> float:
    """ln ε where the tangent of the least loss, as a function of T, has this loss."""
    order = float(made.order)
    tangents = made.multipliers
    rate = float(made.epsilon)
    if tangents is None:
        return math.log(rate) + math.log(max(made.loss / loss, 1e-3))
    unit = 1 << tangents.price_bits
    prices = sum(part.price for part in tangents.shifts) / unit * float(made.in_loss)
    limit = rate if order == 1 else math.exp((order - 1) * rate)
    # of a convex curve that falls steeply the logarithm is nearer to straight
    slope = prices * limit / made.loss
    if made.loss > loss:
        moved = limit * math.exp(min(math.log(made.loss / loss) / slope, 1.5))
    else:
        moved = limit * math.exp(max(math.log(made.loss / loss) / slope, -1.5))
    found = moved if order == 1 else math.log(max(moved, 1 + 1e-9)) / (order - 1)
    return math.log(found)


class DivergenceSearch(Session[D]):
    """Windows of several widths and tails."""

    def best(self) -> D:
        """The best law with the best tangents that were found."""
        told = self.stated
        shifts = tuple(range(1, told.steps + 1))
        window = first_window(told.charged, told.kept, told.steps, shifts, _GAPS[0])
        with self._stopping():
            for attempt, aim in enumerate(_GAPS):
                solution = self._window(window, aim)
                self.note(f"window {window.n}: gap {self._gap():.2g}")
                if self._is_enough(attempt):
                    break
                if attempt == 0:
                    window = next_window(window, solution)
        return self._joined()

    def _is_enough(self, attempt: int) -> bool:
        """Whether the gap is met, or cells are what it is left by."""
        if self._gap() <= self.gap:
            return True
        return self.stated.charged is not self.stated.majorant and attempt > 0

    def _window(self, window: PowerWindow, aim: float) -> PowerSolution:
        """Everything that a window yields."""
        stated = self.stated
        pairs = 2 * (window.n + 2 * stated.steps) * window.count
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
            proof = replace(window, loss=stated.minorant)
            if stated.rho is not None:
                # of all noise no more is known than of every order that is looked at
                proof = with_bounds(proof, stated.bounds)
                solution = solve_power(proof.aiming(aim))
            tangents = tangents_of(solution, proof)
        made = self._with(law=law)
        if self.law is None or made.exact_loss < self.law.exact_loss:
            self._adopt(made)
        if tangents is not None:
            self._keep(tangents)
        return solution
