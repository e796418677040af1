"""What kinds share that bound ratios of probabilities between pairs of secrets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from optmech.analysis import measures
from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import Approximate, Ratio
from optmech.certificate.families.ratio import rounded_product
from optmech.exact.number import Exact
from optmech.problem.constraint import Kept
from optmech.problem.space import Bools, Space
from optmech.spaces.distances import Distance, is_metric, triangle_report
from optmech.spaces.mechanism import Mechanism


def ratio_families(
    index: int, epsilon: Exact, distance: Floats, delta: Exact, window: Bools | None = None
) -> Iterator[Ratio | Approximate]:
    """p(o|s) <= exp(ε d(s,s')) p(o|s'), but for a mass δ, for the pairs with finite ``distance``,
    of shape (S, S); the diagonal is left out. ``window`` of shape (S, O) goes with δ = 0."""
    distance = np.array(distance)
    np.fill_diagonal(distance, np.inf)
    if not delta > 0:
        yield Ratio(index, epsilon, distance, window)
        return
    left, right = np.nonzero(np.isfinite(distance))
    if not len(left):
        return  # one secret, or a threshold or radius below every distance: no inequality
    unit = sp.eye_array(len(distance), format="csr")
    apart = distance[left, right]
    chosen = rounded_product(epsilon, apart)
    yield Approximate(index, unit[left], unit[right], chosen, delta, epsilon, apart)


def measured_ratio(
    m: Mechanism, epsilon: Exact, delta: Exact, distance: Distance | None, pairs: Ints | None
) -> Kept:
    """δ at the stated ε where there is a δ, else ε: per unit of ``distance`` if there is one, over
    ``pairs`` of secrets (k, 2) or all of them for None."""
    if pairs is not None and not len(pairs):
        return Kept("epsilon", float(epsilon), 0.0)
    if delta > 0:
        return Kept("delta", float(delta), measures.delta(m, epsilon, distance, pairs=pairs))
    return Kept("epsilon", float(epsilon), measures.epsilon(m, distance, pairs))


def delta_words(delta: Exact) -> str:
    """δ as the end of a promise."""
    return f", δ = {delta.words}" if delta > 0 else ""


def triangle_notes(distance: Distance, space: Space) -> list[tuple[str, str]]:
    """Where a distance is no metric, as a note of its constraint."""
    if is_metric(distance):
        return []
    report = triangle_report(space.apart(distance))
    if report.triple is None:
        return []
    i, j, s = (space.secrets.labels[index] for index in report.triple)
    return [
        (
            ".distance",
            f"not a metric: d({i}, {s}) exceeds d({i}, {j}) + d({j}, {s}) by {report.excess:g}",
        )
    ]
