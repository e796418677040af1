"""``om.noise.rdp``, ``zcdp`` and ``least_divergence``: the best noise under bounds on Rényi
divergences, and the least divergence of noise that costs at most so much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack, overload

import numpy as np

from optmech.certificate.objective import OPTIMAL_GAP
from optmech.errors import InfeasibleError, ProblemError, SolverError
from optmech.exact.arguments import whole
from optmech.exact.number import Exact, Number, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.bound import Bounds, at_every_order, order_of, require_bounds
from optmech_noise.additive.entries import LARGEST_EPSILON, MOST_SENSITIVITY
from optmech_noise.additive.file import MOST_POWERS
from optmech_noise.additive.law import certain
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.additive.real_loss import RealLoss, Spread, is_function, rational, valued
from optmech_noise.additive.renyi import DivergenceNoise, RealRenyiNoise, RenyiNoise
from optmech_noise.power import (
    PowerProgram,
    PowerSolution,
    PowerWindow,
    first_window,
    floats_of,
    next_window,
    power_law,
    tangents_of,
)
from optmech_noise.search import too_wide
from optmech_noise.session import (
    CELLS_GAP,
    Note,
    Session,
    refined,
    require_gap,
    require_range,
    silent,
)

D = TypeVar("D", bound=DivergenceNoise)
Order = int | float | str | Fraction
Pair = tuple[Order, Number]

_GAPS = (5e-8, 5e-8, 3e-7, 1e-8)
"""Of the windows that are tried: a smaller one knows prices less well."""
_MOST_PAIRS = 120_000
_LEAST_EPSILON = 1e-4
_LEAST_RHO = 1e-2
_LEAST_REACH, _SIGMAS, _REAL_SIGMAS = 64, 8.0, 9.0
_MOST_GROWTH = 500
_ORDERS = (
    "1 64/63 50/49 40/39 33/32 27/26 22/21 18/17 15/14 25/23 10/9 8/7 7/6 6/5 5/4 13/10 11/8 3/2 "
    "13/8 9/5 2 9/4 5/2 3 7/2 17/4 21/4 13/2 9 14 28 64",
    "1 34/33 47/44 64/57 61/51 31/24 55/39 14/9 45/26 35/18 11/5 5/2 23/8 53/16 23/6 49/11 57/11 "
    "61/10 64/9 25/3 59/6 58/5 41/3 16 19 45/2 53/2 63/2 36 46 64",
)
"""At which zero-concentrated privacy is looked at: with ρ, and with less than _SMALL_RHO, where
large noise makes high orders matter."""
_SMALL_RHO = 0.025
_ROUNDS = 12
_WIDEST = 2.0**20
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


class _Common(TypedDict, total=False):
    """What goes with every promise."""

    loss: object
    sensitivity: Number
    width: Number | None
    gap: float | None
    note: Note | None


@overload
def rdp(
    bounds: Pair | Sequence[Pair], *, cells: None = ..., **common: Unpack[_Common]
) -> RenyiNoise: ...


@overload
def rdp(
    bounds: Pair | Sequence[Pair], *, cells: int | Literal["auto"], **common: Unpack[_Common]
) -> RealRenyiNoise: ...


@checked_arguments
def rdp(
    bounds: Pair | Sequence[Pair],
    *,
    cells: int | Literal["auto"] | None = None,
    loss: object = "absolute",
    sensitivity: Number = 1,
    width: Number | None = None,
    gap: float | None = None,
    note: Note | None = None,
) -> RenyiNoise | RealRenyiNoise:
    """The noise of least expected loss under Rényi differential privacy: its divergence of an order
    α from every shift of itself up to the sensitivity is at most ε (Mironov, Rényi differential
    privacy, CSF 2017).

    Order 1 is the Kullback-Leibler divergence. The lower bound is of all noise on the whole
    numbers, or with ``cells`` on the real line.

    Parameters
    ----------
    bounds:
        (α, ε), or a list of such pairs that are kept together.
    cells:
        None for whole numbers; for real ones the number of cells of a sensitivity, as
        ``om.noise.real`` takes it.
    loss, sensitivity, width, note:
        As ``om.noise.optimal`` takes them, or with ``cells`` ``om.noise.real``.
    gap:
        The search ends at this certified relative gap; by default 1e-6, or with ``cells`` 1e-3.

    Raises
    ------
    ProblemError
        For arguments that are not as said.
    InfeasibleError
        For ε = 0: no such noise exists.
    TooLargeError
        Where the noise spreads over more places than are searched.

    Examples
    --------
    >>> noise = om.noise.rdp((2, 0.5), gap=1e-3)
    >>> noise.bounds[0][0], noise.loss < om.noise.rdp((2, 0.4), gap=1e-3).loss
    (Fraction(2, 1), True)
    """
    several = isinstance(bounds, list | tuple) and bounds and isinstance(bounds[0], tuple)
    pairs: Any = bounds if several else [bounds]
    made = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ProblemError("is no pair", where="bounds", remedy="Give (order, epsilon)")
        order, rate = order_of(pair[0]), _some(pair[1], "epsilon")
        growth = float(order - 1) * float(rate)
        if not _LEAST_EPSILON <= rate <= LARGEST_EPSILON or growth > _MOST_GROWTH:
            raise ProblemError(
                f"ε = {float(rate):g} is out of range at order {order}",
                where="epsilon",
                remedy=f"Give {_LEAST_EPSILON:g} to {LARGEST_EPSILON}, (order - 1) ε up to "
                f"{_MOST_GROWTH}",
            )
        made.append((order, rate))
    stated = tuple(sorted(made))
    require_bounds(stated, "bounds")
    return _best(Divergences(stated), loss, width, sensitivity, cells, gap, note)


@overload
def zcdp(rho: Number, *, cells: None = ..., **common: Unpack[_Common]) -> RenyiNoise: ...


@overload
def zcdp(
    rho: Number, *, cells: int | Literal["auto"], **common: Unpack[_Common]
) -> RealRenyiNoise: ...


@checked_arguments
def zcdp(
    rho: Number,
    *,
    cells: int | Literal["auto"] | None = None,
    loss: object = "absolute",
    sensitivity: Number = 1,
    width: Number | None = None,
    gap: float | None = None,
    note: Note | None = None,
) -> RenyiNoise | RealRenyiNoise:
    """The noise of least expected loss under zero-concentrated differential privacy: its divergence
    of every order α > 1 from every shift of itself up to the sensitivity is at most ρα (Bun and
    Steinke, Concentrated differential privacy, TCC 2016).

    The other parameters and the errors are those of ``om.noise.rdp``.

    Examples
    --------
    >>> noise = om.noise.zcdp(0.5, loss="square")
    >>> noise.lower_bound < 1 < noise.loss < 1.01  # 1: the variance of Gaussian noise
    True
    """
    exact = _some(rho, "rho")
    require_range(exact, _LEAST_RHO, "rho")
    orders = [order_of(order) for order in _ORDERS[exact < _SMALL_RHO].split()]
    fit = [a for a in orders if float(a * (a - 1)) * exact <= _MOST_GROWTH]
    asked = Divergences(at_every_order(exact, fit), exact)
    return _best(asked, loss, width, sensitivity, cells, gap, note)


@overload
def least_divergence(
    order: Order, budget: Number, *, cells: None = ..., **common: Unpack[_Common]
) -> RenyiNoise: ...


@overload
def least_divergence(
    order: Order, budget: Number, *, cells: int | Literal["auto"], **common: Unpack[_Common]
) -> RealRenyiNoise: ...


@checked_arguments
def least_divergence(
    order: Order,
    budget: Number,
    *,
    cells: int | Literal["auto"] | None = None,
    loss: object = "absolute",
    sensitivity: Number = 1,
    width: Number | None = None,
    gap: float | None = None,
    note: Note | None = None,
) -> RenyiNoise | RealRenyiNoise:
    """The noise of nearly the least Rényi divergence of an order, of all whose expected loss is at
    most ``budget``.

    ``least_divergence(budget)`` of the result is proved of all noise that costs no more. The other
    parameters and the errors are those of ``om.noise.rdp``.

    Examples
    --------
    >>> noise = om.noise.least_divergence(2, 1.0)
    >>> noise.loss <= 1 and noise.least_divergence(1.0) <= noise.divergence
    True
    """
    stated = ((order_of(order), Exact(Fraction(1))),)
    asked = Divergences(stated, cost=rational(budget, "budget"))
    return _best(asked, loss, width, sensitivity, cells, gap, note)


def _some(value: Number, where: str) -> Exact:
    exact = parse_exact(value, where=where)
    if not exact > 0:
        raise InfeasibleError(
            "with ε = 0 all shifts of the noise would be the same distribution",
            where=where,
            remedy="Allow some ε",
        )
    return exact


def _best(
    asked: Divergences,
    loss: Any,
    width: Any,
    sensitivity: Any,
    cells: int | Literal["auto"] | None,
    gap: float | None,
    note: Note | None,
) -> RenyiNoise | RealRenyiNoise:
    """Noise with bounds on its divergences, or of the least one."""
    say = note or silent
    if gap is None:
        gap = OPTIMAL_GAP if cells is None else CELLS_GAP
    require_gap(gap)
    if cells is None:
        steps = whole(sensitivity, "sensitivity", 1, MOST_SENSITIVITY)
        costs = NoiseLoss.of(loss, width, asked.reach(steps))
        stated = RenyiNoise(certain(), costs, asked.bounds, steps, rho=asked.rho)
        return best_divergence(stated, asked.cost, gap, say)
    span = rational(sensitivity, "sensitivity")
    size = float(span) * asked.sigma
    if asked.cost is not None and is_function(loss):
        # noise about as large as what costs so much
        size = float(span)
        while size < _WIDEST and valued(loss, Fraction(size)) <= asked.cost:
            size *= 2
    measure = RealLoss.of(loss, width, Spread(_REAL_SIGMAS * size, size))

    def searched(count: int) -> RealRenyiNoise:
        stated = RealRenyiNoise(certain(), measure, asked.bounds, span, rho=asked.rho, cells=count)
        return best_divergence(stated, asked.cost, gap, say)

    return refined(searched, cells, gap, say)


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
            raise too_wide(window.n, "ε", most)
        with np.errstate(all="ignore"):
            solution = PowerProgram(window).solved(aim)
            law = power_law(solution, window)
            proof = replace(window, loss=stated.minorant)
            if stated.rho is not None:
                # of all noise no more is known than of every order that is looked at
                proof = replace(proof, bounds=floats_of(stated.bounds))
                solution = PowerProgram(proof).solved(aim)
            tangents = tangents_of(solution, proof)
        made = self._with(law=law)
        if self.law is None or made.exact_loss < self.law.exact_loss:
            self._adopt(made)
        if tangents is not None:
            self._keep(tangents)
        return solution
