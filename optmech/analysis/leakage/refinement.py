"""Whether one mechanism never leaks more than another, with a witness (QIF chapter 9).

b refines a (a ⊑ b) if b is a followed by some post-processing; by the coriaceous theorem (McIver,
Morgan, Smith, Espinoza and Meinicke 2014) exactly then no prior and no gain lets b leak more.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from optmech.analysis.leakage.average import refined_on_average
from optmech.analysis.leakage.gains import Gain
from optmech.analysis.leakage.worst import refined_in_privacy, refined_in_the_worst_case
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.checked import probability
from optmech.exact.number import Interval, Number
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism

Order = Literal["average", "max", "privacy"]


@dataclass(frozen=True, eq=False, repr=False)
class Refinement(Shown):
    """Whether a ⊑ b, with a witness that has been verified in rationals."""

    holds: bool
    order: Order
    remap: Mechanism | None = None
    """Where it holds on average: the post-processing R with b = a.then(R), from the observables of
    a to those of b (within ``tolerance``, if one was given)."""
    gain: Gain | None = None
    """Where it does not: a gain with entries from 0 to 1 under which b leaks more than a for the
    uniform prior, shape (guesses, secrets), floats or (where these do not suffice) fractions. In
    the order "max" one row, whose expected value is above 0 after some report of b, and at most 0
    after every report of a."""
    gap: float = 0.0
    """By how much b leaks more under ``gain``: V_g[b] - V_g[a], uniform prior; above 0 where the
    relation does not hold."""
    deficiency: Interval | None = None
    """Bounds of min_R mean_s TV(b(·|s), (aR)(·|s)), which is the largest ``gap`` over all gains
    with entries from 0 to 1 (Le Cam's deficiency for the uniform prior; Torgersen 1991); in the
    order "average" only."""
    observable: Hashable | None = None
    """In the order "max", where it does not hold: the report of b whose posterior no mixture of
    posteriors of a equals."""
    pair: tuple[Hashable, Hashable] | None = None
    """In the order "privacy", where it does not hold: two secrets that b tells apart better."""

    def __bool__(self) -> bool:
        return self.holds


@checked_arguments
def refines(
    a: Mechanism, b: Mechanism, order: Order = "average", *, tolerance: Number = 0
) -> Refinement:
    """Whether a ⊑ b: b never leaks more than a.

    * ``"average"``: b = a followed by some post-processing, which is to say that V_g[π, b] <=
      V_g[π, a] for every prior π and gain g (QIF chapter 9).
    * ``"max"``: every posterior of b is a mixture of posteriors of a, so that no report of b is
      worse than all reports of a, for every quasi-convex measure of posteriors (Chatzikokolakis,
      Fernandes and Palamidessi, Comparing systems: max-case refinement orders and application to
      differential privacy, CSF 2019).
    * ``"privacy"``: for all secrets s, s', b has no larger |ln p(o|s)/p(o|s')| than a: whatever
      metric privacy a gives, b gives (the same paper).

    Each implies the next. The answer is exact for the probabilities that are drawn with. A product
    of floats is hardly ever exactly the product of its factors; with a ``tolerance`` above 0, for
    "average" only, the answer is whether the deficiency is at most that: no gain with entries from
    0 to 1 earns more than ``tolerance`` more from b than from a, for the uniform prior.

    Raises
    ------
    ProblemError
        On different secrets, an unknown order, a tolerance with another order.
    TooLargeError
        Where floats do not decide it and exact arithmetic would take too long.
    """
    if a.secrets.labels != b.secrets.labels:
        raise ProblemError(
            "the two mechanisms have different secrets",
            where="b",
            remedy="Use the same labels in the same order",
        )
    slack = Fraction(probability(tolerance, "tolerance").factor)
    if order == "average":
        return Refinement(**refined_on_average(a, b, slack), order=order)
    if slack:
        raise ProblemError("is for the order 'average' only", where="tolerance")
    if order == "max":
        at, row = refined_in_the_worst_case(a, b)
        if row is None:
            return Refinement(True, order)
        return Refinement(False, order, gain=(row,), observable=b.observables.labels[at])
    if order == "privacy":
        pair = refined_in_privacy(a, b)
        if pair is None:
            return Refinement(True, order)
        labels = a.secrets.labels
        return Refinement(False, order, pair=(labels[pair[0]], labels[pair[1]]))
    raise ProblemError(
        f"{order!r} is unknown", where="order", remedy='Use "average", "max" or "privacy"'
    )
