"""The search for the best noise under bounds on Rényi divergences, and for the least divergence of
noise that costs at most so much."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optmech.errors import InfeasibleError, ProblemError, SolverError
from optmech.exact.number import Exact, Number, parse_exact
from optmech.noise.additive.bound import Bounds, at_every_order, order_of, require_bounds
from optmech.noise.additive.file import LARGEST_EPSILON, MOST_POWERS
from optmech.noise.additive.real_loss import rational
from optmech.noise.additive.renyi import DivergenceNoise
from optmech.noise.power import (
    PowerSolution,
    PowerWindow,
    first_window,
    floats_of,
    next_window,
    power_law,
    solve_power,
    tangents_of,
)
from optmech.noise.search import too_wide
from optmech.noise.session import Note, Session, require_alone, require_range

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
_ORDERS = (
    "1 64/63 50/49 40/39 33/32 27/26 22/21 18/17 15/14 25/23 10/9 8/7 7/6 6/5 5/4 13/10 11/8 3/2 "
    "13/8 9/5 2 9/4 5/2 3 7/2 17/4 21/4 13/2 9 14 28 64"
)
"""At which zero-concentrated privacy is looked at."""
_ROUNDS = 12
_CLOSE = 1e-6
_BEYOND = 1e-7


class Divergences(NamedTuple):
    """What divergences are at most, of some orders or with ρ of all; or the order that the least
    is sought of, with an ε to begin with and the most that noise may cost."""

    bounds: Bounds
    rho: Exact | None = None
    cost: Fraction | None = None

    @property
    def sigma(self) -> float:
        """The standard deviation of Gaussian noise that keeps them, in sensitivities."""
        return math.sqrt(max(float(order) / (2 * float(rate)) for order, rate in self.bounds))

    def reach(self, steps: int) -> int:
        """As far as such noise goes, and windows."""
        if self.cost is not None:
            return _LEAST_REACH
        far = min(_SIGMAS * steps * self.sigma, _MOST_PAIRS / 6 / steps)
        return int(max(_LEAST_REACH, far))


def stated_divergences(
    *, renyi: Any, zcdp: Any, budget: Any, epsilon: object, delta: Number, **apart: object
) -> Divergences:
    """Orders and what divergences are at most, from (α, ε), pairs of these, or ρ; or from an order
    and a budget. Neither δ nor what is ``apart`` goes with them.

    Raises ProblemError for what is none of these or out of range, InfeasibleError for an ε or ρ of
    0.
    """
    if renyi is zcdp is None:
        raise ProblemError("goes with an order", where="budget", remedy="Give renyi=order as well")
    where = "zcdp" if renyi is None else "renyi"
    spent = None if delta == 0 else delta
    require_alone(where, "is a promise of its own", epsilon=epsilon, delta=spent, **apart)
    if budget is not None:
        if zcdp is not None or isinstance(renyi, tuple | list):
            raise ProblemError(
                "goes with one order", where="budget", remedy="Give renyi=order, without its ε"
            )
        order = order_of(renyi)
        return Divergences(((order, Exact(Fraction(1))),), cost=rational(budget, "budget"))
    if zcdp is not None:
        if renyi is not None:
            raise ProblemError("is a promise of its own", where="zcdp", remedy="Leave out renyi")
        rho = parse_exact(zcdp, where="zcdp")
        _require_some(rho, "zcdp")
        require_range(rho, _LEAST_RHO, "zcdp")
        orders = [order_of(order) for order in _ORDERS.split()]
        fit = [a for a in orders if float(a * (a - 1)) * rho <= _MOST_GROWTH]
        return Divergences(at_every_order(rho, fit), rho)
    several = isinstance(renyi, tuple | list) and renyi and isinstance(renyi[0], tuple)
    pairs = renyi if several else [renyi]
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
    return Divergences(bounds)


def _require_some(rate: Exact, where: str) -> None:
    if not rate > 0:
        raise InfeasibleError(
            "with ε = 0 all shifts of the noise would be the same distribution",
            where=where,
            remedy="Allow some ε",
        )


def best_divergence(stated: D, cost: Fraction | None, gap: float, note: Note) -> D:
    """The noise of least loss with the divergences of ``stated``; or of nearly the least divergence
    among all whose loss is at most ``cost``, by Newton's method on ε, along which the least loss is
    convex in T, and falls.

    Raises TooLargeError where noise spreads over more places than are searched, SolverError where
    none is found.
    """
    if cost is None:
        return DivergenceSearch(stated, gap, note).best()
    order = stated.order
    best: D | None = None
    low, log, high = math.log(_LEAST_EPSILON), 0.0, math.log(LARGEST_EPSILON)
    if order > 1:
        high = min(high, math.log(_MOST_GROWTH / float(order - 1)))
    goal = float(cost)
    for _ in range(_ROUNDS):
        epsilon = Exact(Fraction(math.exp(log)))
        made = DivergenceSearch(replace(stated, bounds=((order, epsilon),)), gap, note).best()
        note(f"divergence {float(epsilon):.6g}: loss {made.loss:.6g}")
        if made.exact_loss <= cost:
            high, best = log, made
            if made.loss > goal * (1 - _CLOSE):
                break
        else:
            low = log
        if high - low < _BEYOND and best is not None:
            break
        log = _along(made, goal * (1 - _CLOSE / 2))
        if not low < log < high:
            log = (low + high) / 2
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
    prices = float(tangents.price * made.costs.unit)
    limit = rate if order == 1 else math.exp((order - 1) * rate)
    # of a convex curve that falls steeply the logarithm is nearer to straight
    slope = prices * limit / made.loss
    moved = limit * math.exp(min(max(math.log(made.loss / loss) / slope, -1.5), 1.5))
    found = moved if order == 1 else math.log(max(moved, 1 + 1e-9)) / (order - 1)
    return math.log(found)


class DivergenceSearch(Session[D]):
    """Windows of several widths and tails."""

    def best(self) -> D:
        """The best law with the best tangents that were found."""
        told = self.stated
        # of real noise the rest of the gap is what cells leave
        cells = told.charged is not told.majorant
        window = first_window(told.charged, told.kept, told.steps)
        with self._stopping():
            for attempt, aim in enumerate(_GAPS):
                solution = self._window(window, aim)
                self.note(f"window {window.n}: gap {self._gap():.2g}")
                if self._gap() <= self.gap or (cells and attempt > 0):
                    break
                if attempt == 0:
                    window = next_window(window, solution)
        return self._joined()

    def _window(self, window: PowerWindow, aim: float) -> PowerSolution:
        """Everything that a window yields."""
        stated = self.stated
        pairs = 2 * (window.n + 2 * stated.steps) * window.count
        if pairs > min(_MOST_PAIRS, 2 * MOST_POWERS):
            most = f"{_MOST_PAIRS:,} pairs of places are searched at most"
            raise too_wide(window.n, "ε", most, "renyi")
        with np.errstate(all="ignore"):
            solution = solve_power(window, aim)
            law = power_law(solution, window)
            proof = replace(window, loss=stated.minorant)
            if stated.rho is not None:
                # of all noise no more is known than of every order that is looked at
                proof = replace(proof, bounds=floats_of(stated.bounds))
                solution = solve_power(proof, aim)
            tangents = tangents_of(solution, proof)
        made = self._with(law=law)
        if self.law is None or made.exact_loss < self.law.exact_loss:
            self._adopt(made)
        if tangents is not None:
            self._keep(tangents)
        return solution
