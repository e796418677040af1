"""Designs for other libraries of privacy: OpenDP measurements, dp-accounting."""

import json
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from optmech.analysis.probabilities import probabilities
from optmech.base.machine import needed
from optmech.designs.design import Design
from optmech.errors import ProblemError, TooLargeError, VerificationError
from optmech.exact.arguments import positive
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, rounded_up
from optmech.exact.ratios.hockey_stick import Pair, above_all
from optmech.problem import DifferentialPrivacy, MetricPrivacy
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.labels import label_text
from optmech.spaces.tables import distance_words


@checked_arguments
def to_opendp(design: Design, constraint: int | None = None) -> Any:
    """A user-defined OpenDP measurement that samples the released probabilities exactly.

    Arguments and results are labels as text (``3,4`` for a grid cell). The input metric is the
    distance of the constraint and the output measure the maximum divergence; the privacy map is
    d ↦ ε·d, rounded up. The input domain is named after the digest of the design's file, which
    ``om.check`` and the audit prove. For differential privacy between all pairs any two secrets are
    at distance 1, and the map is ε for every d > 0.

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

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> measurement = om.exchange.to_opendp(om.solve(problem))
    >>> print(round(measurement.map(1.0), 4))  # ln 3
    1.0986
    >>> measurement("yes") in ("yes", "no")
    True
    """
    dp = needed("opendp.prelude", "opendp", where="to_opendp")
    mechanism = design.mechanism
    if not design.verified:
        raise VerificationError("a check of this design failed", where="to_opendp")
    metric, privacy_map = _map(design, constraint)
    digest = str(json.loads(design.document())["digest"])
    known: dict[str, Hashable] = {label_text(label): label for label in mechanism.secrets.labels}

    def draw(text: str) -> str:
        return label_text(mechanism.sample(known[text]))

    # what a library cannot verify of foreign code, its user has to ask for
    dp.enable_features("contrib", "honest-but-curious")
    return dp.m.make_user_measurement(
        dp.user_domain(f"optmech secrets, design {digest}", lambda value: value in known),
        dp.user_distance(metric),
        dp.max_divergence(),
        draw,
        privacy_map,
    )


def _map(design: Design, index: int | None) -> tuple[str, Callable[[float], float]]:
    stated = design.problem.constraints
    if index is not None and not 0 <= index < len(stated):
        raise ProblemError(
            f"there is no constraint {index}", where="constraint", remedy="Count from 0"
        )
    for constraint in stated if index is None else [stated[index]]:
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
    return _product(epsilon, float(distance > 0))


def _product(epsilon: Exact, distance: float) -> float:
    """The least float at or above ε·d."""
    return rounded_up(bracket(epsilon)[1] * Fraction(distance))


_MOST_HEIGHTS = 4_000_000
_BETWEEN = 2000


@checked_arguments
def to_dp_accounting(
    design: Design,
    pairs: Sequence[tuple[Hashable, Hashable]] | None = None,
    *,
    interval: float = 1e-4,
) -> Any:
    """A ``PrivacyLossDistribution`` of dp-accounting for one report of a design: pessimistic, with
    losses rounded up to multiples of ``interval``, of a pair that dominates all ``pairs`` of labels
    of secrets, both ways; by default all of them.

    It is made of the whole numbers that are drawn with, so that many reports of a design can be
    composed with other mechanisms. Raises ProblemError without dp-accounting or for a label that is
    no secret's, VerificationError for a design that is not verified, InfeasibleError for one
    without a mechanism, TooLargeError for more pairs than are looked at.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> pld = om.exchange.to_dp_accounting(om.solve(problem))
    >>> print(round(pld.get_epsilon_for_delta(1e-12), 3))  # ln 3
    1.099
    >>> print(round(pld.self_compose(100).get_epsilon_for_delta(1e-6)) < 100 * 1.099)
    True
    """
    mechanism = design.mechanism
    if not design.verified:
        raise VerificationError("a check of this design failed", where="to_dp_accounting")
    found = probabilities(mechanism)
    secrets = mechanism.secrets
    ends = list(permutations(range(len(secrets)), 2))
    if pairs is not None:
        if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
            raise ProblemError(
                "is no list of pairs", where="pairs", remedy='Give labels: [("a", "b"), …]'
            )
        chosen = [(secrets.index(a), secrets.index(b)) for a, b in pairs]
        ends = sorted({*chosen, *((b, a) for a, b in chosen)})
    if len(ends) * (len(ends) * len(mechanism.observables) + _BETWEEN) > _MOST_HEIGHTS:
        raise TooLargeError(
            f"{len(ends):,} pairs of secrets with {len(mechanism.observables):,} reports",
            where="pairs",
            remedy="Give fewer pairs",
        )
    weights = [(list(zip(found.rows[a], found.rows[b], strict=True)), found.total) for a, b in ends]
    if not weights:
        weights = [([(1, 1)], 1)]
    return accounted(above_all(weights, _BETWEEN), interval, "to_dp_accounting")


def accounted(pair: Pair, interval: float, where: str) -> Any:
    """The distribution of the losses of a pair, rounded up."""
    module, pmfs = (
        needed(f"dp_accounting.pld.{name}", "accounting", where=where)
        for name in ("privacy_loss_distribution", "pld_pmf")
    )
    step = positive(interval, "interval")
    rounded = np.ceil((pair.losses + 1e-15 * np.abs(pair.losses)) / step).astype(np.int64)
    chances: dict[int, float] = {}
    for place, chance in zip(rounded.tolist(), pair.chances.tolist(), strict=True):
        chances[place] = chances.get(place, 0.0) + chance
    lost = min(1.0, pair.lost + pair.error)
    made = pmfs.create_pmf(chances, step, lost, pessimistic_estimate=True)
    return module.PrivacyLossDistribution(made)
