"""What thresholds leave out: the ε that really holds, and the price of keeping the promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from optmech.analysis import measures
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.certificate.claims import Claim
from optmech.certificate.objective import objective_value
from optmech.problem import MetricPrivacy, Problem
from optmech.spaces.distances import evaluate
from optmech.spaces.mechanism import Mechanism

_NEAR = 1e-9
"""What ε measured on another machine may differ by."""
_REPAIRED = 1e-6
"""The same of a repaired loss."""
MEASURED = ("constraint", "promised_epsilon", "epsilon", "repaired_loss")
"""What files and summaries have of an approximation."""


@record
class Approximation:
    """What a thresholded problem leaves out (Shokri, PETS 2015, Appendix C).

    ``epsilon`` is the least ε of metric privacy that the released matrix really has (possibly
    inf). ``repaired`` keeps the promised ε for all pairs; ``repaired_loss`` is its loss.
    """

    constraint: int
    promised_epsilon: float
    epsilon: float
    repaired: Mechanism | None
    repaired_loss: float


def measure_approximations(problem: Problem, matrix: Floats) -> tuple[Approximation, ...]:
    """One entry for every metric privacy constraint with a threshold and δ = 0."""
    found: list[Approximation] = []
    if problem.statement.spread is not None:
        # what thresholds leave out is promised at every point
        return ()
    for k, constraint in enumerate(problem.constraints):
        if not isinstance(constraint, MetricPrivacy) or constraint.delta > 0:
            continue
        if constraint.threshold is None and constraint.observable_threshold is None:
            continue
        mechanism = Mechanism(problem.secrets, problem.observables, matrix)
        epsilon = measures.epsilon(mechanism, constraint.distance)
        repaired = _repaired(problem, constraint, matrix)
        found.append(Approximation(k, float(constraint.epsilon), epsilon, *repaired))
    return tuple(found)


def claims_of(
    stated: Sequence[Approximation], found: Sequence[Approximation], *, larger_is_better: bool
) -> Iterator[Claim]:
    """A file's entries beside those measured again: ε up to rounding, and a repaired loss no better
    than what repair attains here."""
    stated_of, found_of = ([part.constraint for part in parts] for parts in (stated, found))
    yield Claim("approximations: the list of constraints", stated_of, found_of)
    sign = -1.0 if larger_is_better else 1.0
    for said, proper in zip(stated, found, strict=False):
        where = f"approximations of constraints[{said.constraint}]"
        for name in ("promised_epsilon", "epsilon"):
            ours, theirs = getattr(proper, name), getattr(said, name)
            near = math.isclose(ours, theirs, rel_tol=_NEAR)
            yield Claim(f"{where}: {name}", theirs, ours, near)
        ours, theirs = proper.repaired_loss, said.repaired_loss
        attained = sign * ours <= sign * theirs or math.isclose(ours, theirs, rel_tol=_REPAIRED)
        yield Claim(f"{where}: repaired_loss", theirs, ours, math.isnan(theirs) or attained)


def _repaired(
    problem: Problem, constraint: MetricPrivacy, matrix: Floats
) -> tuple[Mechanism | None, float]:
    # reading and checking designs must not load what made them
    from optmech.lp.inequalities import Inequalities
    from optmech.repair import Cone, repair

    values = evaluate(constraint.distance, problem.secrets, problem.secrets, where="distance")
    full = float(constraint.epsilon) * values
    np.fill_diagonal(full, np.inf)
    stated = Inequalities.of(problem.statement)
    given = stated.with_ratios(np.minimum(stated.log_ratio, full))
    out = repair(given, Cone.of(given), matrix)
    if out is None or not given.hold(out):
        return None, float("nan")
    value = objective_value(problem.statement, out)
    return Mechanism(problem.secrets, problem.observables, out), abs(value)
