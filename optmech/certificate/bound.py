"""Lower bounds from multipliers (theory: "The Lagrangian bound").

For multipliers >= 0 of all inequalities, every feasible P has

    objective(P) >= constant + Σ_s min_o L[s,o],

where L[s,o] collects the cost of P[s,o] and the multipliers' terms, and the minimum runs over
allowed observables, because P's rows are distributions; of a row that is held fixed the minimum is
its value. Without the objective the same proves that nothing is feasible, as closed forms do.
Nothing about the multipliers is trusted: signs are clipped, tests clipped to [0, 1], attacks
normalised here. Powers e^{εd} enter as floats proved to be above them; from there on everything is
sums of products of floats, whose rounding has the a-priori bound (number of roundings) x 2^-53 x
(sum of absolute values).
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import numpy as np

from optmech.base.arrays import Bools, Floats
from optmech.base.read_only import record
from optmech.certificate.families.base import Trusted, known
from optmech.certificate.families.limits import Distortion, LossLimit
from optmech.certificate.families.ratio import PairMultipliers, everywhere, factors_of
from optmech.certificate.lagrangian import LEAST_MARGIN, Bound, Lagrangian, positive
from optmech.certificate.segments import charged
from optmech.certificate.statement import Statement
from optmech.certificate.variance import Limit, VarianceProof
from optmech.certificate.variance_bound import variance_bound
from optmech.exact.number import from_below


@record
class Multipliers:
    """Multipliers of every family of a ``Statement``, in its order, each of its family's own type.

    None, or an end that is left out, stands for none. ``objective`` is None for the expected loss,
    the least favourable weights over secrets for the worst loss, and an attack q(t|o) of shape
    (O, S) for maximised distortion. Where the worst loss is also one of segments, twice as many
    numbers as these follow: α of every segment, then β, for the weight α + β of the point at the
    share β / (α + β) of the way.
    """

    families: tuple[Any, ...] = ()
    objective: Floats | None = None
    variance: VarianceProof | None = None
    """Of a variance: how reports are counted, and the multipliers of its bound."""

    def of(self, statement: Statement) -> Iterator[tuple[Trusted, Any]]:
        """Every family that the certificate decides, with its multipliers or None. Raises
        VerificationError where there are others."""
        families = known(statement)
        return zip_longest(families, self.families[: len(families)])


def pairs_of(statement: Statement, multipliers: Multipliers) -> PairMultipliers | None:
    """The multipliers of all ratio families without a window together; None without any."""
    given = list(multipliers.of(statement))
    return PairMultipliers.joined(given[place][1] for place in everywhere(statement))


def lower_bound(statement: Statement, multipliers: Multipliers) -> Bound:
    """A number that no feasible mechanism's objective can go below, whatever the multipliers."""
    if statement.survey is not None:
        proof = multipliers.variance
        value = -np.inf
        if proof is not None:
            factors = factors_of(statement)
            value = variance_bound(statement.survey, proof, factors, limits_of(statement))
        return Bound(value, 0.0, value)
    lagrangian = lagrangian_of(statement, multipliers)
    return lagrangian.minimum()


def limits_of(statement: Statement) -> tuple[Limit, ...]:
    """What bounds on losses and on attacks say of columns."""
    out = []
    for family in known(statement):
        if isinstance(family, LossLimit):
            scale = np.ones(statement.secrets) if family.per_secret else statement.prior
            most = family.most(statement)[1]
            out.append(Limit(scale, family.loss.T, most, each=family.per_secret))
        elif isinstance(family, Distortion):
            out.append(Limit(family.prior, family.distance, family.least[0], guessed=True))
    return tuple(out)


def lagrangian_of(
    statement: Statement, multipliers: Multipliers, *, objective: bool = True
) -> Lagrangian:
    """L and the constant, also without the objective."""
    families = tuple(multipliers.of(statement))
    lagrangian = Lagrangian(statement)
    if objective:
        _add_objective(lagrangian, multipliers.objective)
    for family, given in families:
        if given is None and family.spread() is not None:
            given = family.zeros(statement)
        if given is not None:
            family.charge(lagrangian, given)
    return lagrangian


def infeasibility_margin(statement: Statement, multipliers: Multipliers) -> float:
    """Positive only if no feasible mechanism exists (a Farkas certificate): the same evaluation
    without an objective bounds zero from below, and by more than what underflow may have lost."""
    lagrangian = lagrangian_of(statement, multipliers, objective=False)
    margin = lagrangian.minimum().value
    return margin if margin > LEAST_MARGIN else min(margin, 0.0)


def _add_objective(lagrangian: Lagrangian, given: Floats | None) -> None:
    statement = lagrangian.statement
    if statement.objective == "expected_loss":
        lagrangian.add(statement.cost, statement.cost, 1.0)
    elif statement.objective == "worst_loss":
        weights = np.full(statement.loss_terms, 1.0 / statement.loss_terms)
        if given is not None:
            weights = positive(given)
        own, between = weights[: statement.secrets], weights[statement.secrets :]
        # Σ ω · max ℓ >= Σ_x ω_x ℓ_x over secrets and points x, whatever the weights sum to
        lagrangian.weight = sum(map(Fraction, own.tolist()), Fraction())
        part = own[:, None] * statement.loss
        lagrangian.add(part, part, 1.0)
        if statement.segments is not None:
            points = charged(statement.segments, statement.loss, between)
            lagrangian.weight += points.weight
            lagrangian.add(points.terms, points.magnitude, points.roundings)
    else:
        assert statement.target is not None
        if given is None:
            given = np.ones((statement.observables, len(statement.target)))
        is_gain = statement.objective == "minimize_leakage"
        add = lagrangian.add_gains if is_gain else lagrangian.add_errors
        add(statement.target, given)


def closed_form_reason(statement: Statement) -> str:
    """A proof by arithmetic that nothing is feasible, in words; empty where there is none."""
    reasons = (family.impossible(statement) for family in known(statement))
    return next(filter(None, reasons), "")


def forced_zeros(statement: Statement) -> Bools:
    """Entries (S, O) that must be zero: outside the support, or facing a forced zero in a ratio
    constraint that holds there."""
    families = known(statement)
    zero = ~statement.allowed
    while zero.any():
        grown = zero
        for family in families:
            grown = grown | family.forced_zeros(zero)
        if np.array_equal(grown, zero):
            break
        zero = grown
    return zero


def support_reason(statement: Statement) -> str:
    """Whether the support and the ratio constraints together leave a secret with nothing."""
    empty = np.flatnonzero(forced_zeros(statement).all(axis=1))
    if not len(empty):
        return ""
    return (
        f"the support leaves {len(empty)} secret(s) without observables, the first of index "
        f"{empty[0]}: finite ε makes p(o|s) = 0 wherever p(o|s') = 0 for a constrained pair"
        + (
            ", and at every point what is 0 at one of them. Widen the support until some "
            "observable is allowed at every place"
            if statement.spread is not None
            else ". Widen the support, or constrain fewer pairs"
        )
    )


def multiplier_reason(statement: Statement, multipliers: Multipliers) -> str:
    """Words for a Farkas certificate, if the multipliers are one; empty where they are not."""
    margin = infeasibility_margin(statement, multipliers)
    if not margin > 0:
        return ""
    named = (family.in_words(given) for family, given in multipliers.of(statement))
    parts = list(dict.fromkeys(filter(None, named)))
    return (
        f"{', '.join(parts) or 'the constraints'} cannot hold together: their combination with "
        f"the recorded multipliers demands 0 >= {from_below(margin, 3)}. Relax at least one of them"
    )
