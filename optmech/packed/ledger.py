"""What reports have cost so far: plainly, by the rows that were used, and composed.

A user's trajectory is compared with every other one that makes as many draws and is, at each of
them, at most ``radius`` away. After draws at s_1, ..., s_n the log-likelihood ratio of the two is

* plainly at most Σ ε · radius, whatever the places were;
* at most Σ_k max_{s' near s_k} max_o |ln P[s_k,o] / P[s',o]|, by the rows that were used;
* up to δ, what the Rényi divergences of these rows compose to: those of all draws add up (Mironov
  2017, proposition 1), also where later places depend on earlier reports, and
  ε = Σ_k D_α + ln((α-1)/α) - (ln δ + ln α)/(α-1) for every α > 1 (Canonne, Kamath, Steinke 2020,
  proposition 12).

Figures are rounded up by 10^-9 of themselves and 10^-10 for every draw: more than logarithms of
numbers above 2^-49 lose (some units of 2^-47, times 127), and sums of at most 2^15 exponentials
(2^-38), divided by α - 1 >= 1/4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, VerificationError
from optmech.exact.checked import probability
from optmech.exact.number import Number, parse_exact
from optmech.packed.load import PackedMechanism
from optmech.packed.places import near

ORDERS = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0)
FALL_BACKS = ("refuse", "repeat")
_UP, _EACH = 1 + 1e-9, 1e-10
_ROUNDED = 1e-12
_AT_ONCE = 2**28
"""Quotients that are looked at before the first draw, at most; where there may be more, those of
the places that are drawn for."""


class Ledger:
    """Draws of a packed mechanism and what they add up to.

    Parameters
    ----------
    epsilon:
        The rate that is charged, per unit of distance (a plain ε: give ``radius`` 1). None for the
        largest that the packed file states; less than that is refused.
    radius:
        Up to which distance places are to be hard to tell apart at every draw: of the places'
        coordinates, in km on the globe.
    budget:
        The largest figure that may be reached; None for no limit.
    delta:
        Of the composed figure.
    by:
        Which figure the budget limits: ``"plain"``, whose refusals depend on the number of draws
        only, ``"rows"`` or ``"composed"``, which go further, and whose refusals say something of
        the places that were visited.
    fall_back:
        What happens beyond the budget: ``"refuse"`` (no report) or ``"repeat"`` (the report
        before, which costs nothing).

    Raises
    ------
    ProblemError
        On bad arguments, an ε below the file's, a file that states none where none is given, and a
        mechanism for every point, whose draws have no rows of places.
    VerificationError
        Where the packed rows of two places within ``radius`` differ by more than ε · radius: a file
        that does not keep what it states, or states it for other distances.
    """

    def __init__(
        self,
        mechanism: PackedMechanism,
        epsilon: Number | None,
        radius: Number,
        *,
        budget: float | None = None,
        delta: Number = 1e-6,
        by: str = "plain",
        fall_back: str = "refuse",
    ) -> None:
        if by not in ("plain", "rows", "composed"):
            raise ProblemError(f"{by!r} is none of plain, rows, composed", where="by")
        if fall_back not in FALL_BACKS:
            raise ProblemError(f"{fall_back!r} is neither refuse nor repeat", where="fall_back")
        refuse_meshes(mechanism)
        self.mechanism = mechanism
        self.epsilon = charged(mechanism, epsilon)
        self.radius = float(parse_exact(radius, where="radius", positive=True))
        self.budget = None if budget is None else float(parse_exact(budget, where="budget"))
        self.delta = float(probability(delta, positive=True))
        self.by, self.fall_back = by, fall_back
        self.draws: Counter[int] = Counter()
        """How many draws were made at the place of each number."""
        self._costs: dict[int, Floats] = {}
        self._others: dict[int, list[int]] = {}
        count = len(mechanism.secrets)
        if count * count * self._matrix.shape[1] <= _AT_ONCE:
            for place in range(count):
                self._require_kept(place)

    def enter(self, secret: Hashable) -> None:
        """Note one draw for a secret."""
        self.draws[self.mechanism.secrets.index(secret)] += 1

    def allows(self, secret: Hashable) -> bool:
        """Whether one more draw for a secret stays within the budget."""
        if self.budget is None:
            return True
        after = self.draws + Counter([self.mechanism.secrets.index(secret)])
        return self._figures(after)[self.by] <= self.budget

    @property
    def plain(self) -> float:
        """Σ ε · radius."""
        return self._figures(self.draws)["plain"]

    @property
    def rows(self) -> float:
        """The largest log ratio of the rows that were used, summed."""
        return self._figures(self.draws)["rows"]

    @property
    def composed(self) -> float:
        """The ε of all draws together at ``delta``."""
        return self._figures(self.draws)["composed"]

    def to_dict(self) -> dict[str, Any]:
        """The draws as plain values, to be kept on the device."""
        return {"file": self.mechanism.digest.hex(), "draws": sorted(self.draws.items())}

    def restore(self, plain: dict[str, Any]) -> None:
        """Take over what ``to_dict`` gave. Raises ProblemError where it is of another file."""
        draws = plain.get("draws") if isinstance(plain, dict) else None
        if not isinstance(draws, list) or plain.get("file") != self.mechanism.digest.hex():
            raise ProblemError("is no ledger of this mechanism", where="ledger")
        count = len(self.mechanism.secrets)
        for pair in draws:
            good = isinstance(pair, list | tuple) and len(pair) == 2
            if not good or not all(type(n) is int and n >= 0 for n in pair) or pair[0] >= count:
                raise ProblemError(f"{str(pair)[:40]} is no entry", where="ledger")
        self.draws = Counter(dict(draws))

    def _figures(self, draws: Counter[int]) -> dict[str, float]:
        total = sum(draws.values())
        plain = total * self.epsilon * self.radius * _UP
        costs = np.zeros(len(ORDERS) + 1)
        for place, count in draws.items():
            costs += count * self._cost(place)
        rows, *divergences = (costs * _UP + total * _EACH).tolist()
        composed = rows
        for order, divergence in zip(ORDERS, divergences, strict=True):
            tail = (math.log(self.delta) + math.log(order)) / (order - 1)
            composed = min(composed, divergence + math.log((order - 1) / order) - tail)
        return {"plain": plain, "rows": rows, "composed": max(0.0, composed)}

    def _cost(self, place: int) -> Floats:
        """Largest log ratio, and Rényi divergences of all ``ORDERS``, between the row of a place
        and those near it, in both directions."""
        if place not in self._costs:
            self._require_kept(place)
            out = np.zeros(len(ORDERS) + 1)
            own = self._matrix[place]
            for other in self._matrix[self._near(place)]:
                if ((own > 0) != (other > 0)).any():
                    out[:] = np.inf
                    break
                p, q = own[own > 0], other[own > 0]
                loss = np.log(p) - np.log(q)
                found = [float(np.abs(loss).max())]
                for order in ORDERS:
                    both = (
                        _log_sum(np.log(p) + (order - 1) * loss),
                        _log_sum(np.log(q) - (order - 1) * loss),
                    )
                    found.append(max(0.0, *both) / (order - 1))
                out = np.maximum(out, found)
            self._costs[place] = out
        return self._costs[place]

    @cached_property
    def _matrix(self) -> Floats:
        """The columns of reports that are made."""
        matrix = self.mechanism.matrix
        return np.asarray(matrix[:, matrix.any(axis=0)])

    def _near(self, place: int) -> list[int]:
        """The places within the radius of one, looked for once."""
        if place not in self._others:
            self._others[place] = near(self.mechanism.secrets, place, self.radius)
        return self._others[place]

    def _require_kept(self, place: int) -> None:
        """Raise VerificationError where a row near a place's is further from it than is charged."""
        own, others = self._matrix[place], self._matrix[self._near(place)]
        if ((own > 0) != (others > 0)).any():
            found = math.inf
        else:
            used = own > 0
            ratio = others[:, used] / own[used]
            found = math.log(max(ratio.max(initial=1.0), 1 / ratio.min(initial=1.0)))
        if found > self.epsilon * self.radius * _UP + _EACH:
            raise VerificationError(
                f"places within {self.radius:g} differ by {found:.6g} in their log probabilities, "
                f"and {self.epsilon * self.radius:.6g} is charged for them",
                where="epsilon",
                remedy="Check the file against its design; where its distances are other ones, "
                "charge as much",
            )


def charged(mechanism: PackedMechanism, epsilon: Number | None) -> float:
    """The rate that draws are charged with: what is given, and at least what the file states."""
    rates = [part["epsilon"] for part in mechanism.header.constraints]
    stated = max((rate for rate in rates if rate is not None), default=None)
    if epsilon is None:
        if not stated:
            raise ProblemError(
                "the packed file states no ε above 0",
                where="epsilon",
                remedy="Give the rate that its rows keep",
            )
        return float(stated)
    given = float(parse_exact(epsilon, where="epsilon", positive=True))
    if stated is None:
        return given
    # the file's is rounded up, and what is given may be irrational
    if given < stated * (1 - _ROUNDED):
        raise ProblemError(
            f"{given:g} is below the ε of {stated:g} that the packed file states",
            where="epsilon",
            remedy="Give None to charge the file's own, or more than that",
        )
    return max(given, float(stated))


def refuse_meshes(mechanism: object) -> None:
    """Raise ProblemError on a mechanism that has no places."""
    if not isinstance(mechanism, PackedMechanism):
        raise ProblemError(
            "is a mechanism for every point, whose draws are not of places",
            where="mechanism",
            remedy="Count its draws: each costs ε (radius + 2 snap)",
        )


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
