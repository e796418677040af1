"""A design as an OpenDP measurement, to be used and composed there."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import partial
from typing import Any

from optmech.base.machine import needed
from optmech.designs.design import Design
from optmech.errors import ProblemError, VerificationError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, rounded_up
from optmech.problem import DifferentialPrivacy, MetricPrivacy
from optmech.spaces.labels import label_text
from optmech.spaces.tabulated import distance_words


def to_opendp(design: Design, constraint: int | None = None) -> Any:
    """A user-defined OpenDP measurement that samples the released probabilities exactly.

    Arguments and results are labels as text (``3,4`` for a grid cell). The input metric is the
    distance of the constraint and the output measure the maximum divergence; the privacy map is
    d ↦ ε·d, rounded up. For differential privacy between all pairs any two secrets are at
    distance 1, and the map is ε for every d > 0.

    Parameters
    ----------
    constraint:
        Index of the metric or differential privacy that the map states; default the first that
        can be stated.

    Raises
    ------
    ProblemError
        Without opendp, or where no constraint limits all pairs with δ = 0.
    VerificationError
        For a design that is not verified.
    InfeasibleError
        For a design without a mechanism.
    """
    dp = needed("opendp.prelude", "opendp", where="to_opendp")
    mechanism = design.mechanism
    if not design.verified:
        raise VerificationError("a check of this design failed", where="to_opendp")
    metric, privacy_map = _map(design, constraint)
    known: dict[str, Hashable] = {label_text(label): label for label in mechanism.secrets.labels}

    def draw(text: str) -> str:
        return label_text(mechanism.sample(known[text]))

    # what a library cannot verify of foreign code, its user has to ask for
    dp.enable_features("contrib", "honest-but-curious")
    return dp.m.make_user_measurement(
        dp.user_domain("optmech secrets", lambda value: value in known),
        dp.user_distance(metric),
        dp.max_divergence(),
        draw,
        privacy_map,
    )


def _map(design: Design, index: int | None) -> tuple[str, Callable[[float], float]]:
    stated = design.problem.constraints
    chosen = range(len(stated)) if index is None else [index]
    for k in chosen:
        if not 0 <= k < len(stated):
            raise ProblemError(
                f"there is no constraint {k}", where="constraint", remedy="Count from 0"
            )
        constraint = stated[k]
        if not isinstance(constraint, MetricPrivacy | DifferentialPrivacy) or constraint.delta > 0:
            continue
        if isinstance(constraint, MetricPrivacy):
            if constraint.threshold is None and constraint.observable_threshold is None:
                return distance_words(constraint.distance), partial(_product, constraint.epsilon)
        elif constraint.adjacency == "all":
            return "discrete", partial(_step, constraint.epsilon)
    raise ProblemError(
        "no constraint limits all pairs of secrets with δ = 0, without thresholds",
        where="to_opendp" if index is None else f"constraints[{index}]",
        remedy="State metric privacy, or differential privacy of all pairs",
    )


def _step(epsilon: Exact, distance: float) -> float:
    return _product(epsilon, 1.0 if distance > 0 else 0.0)


def _product(epsilon: Exact, distance: float) -> float:
    """The least float at or above ε·d."""
    return rounded_up(bracket(epsilon)[1] * Fraction(distance))
