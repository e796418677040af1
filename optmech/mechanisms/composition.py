"""Mechanisms that are made of others: two, of which the second sees what the first reported, and
the secret again (Kawamoto and Murakami, ESORICS 2019, Definitions 14 and 15); one with the best
remap of its reports (Chatzikokolakis, ElSalamouny and Palamidessi, Efficient Utility Improvement
for Location Privacy, PETS 2017)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import product

import numpy as np

from optmech.analysis.probabilities import best_guesses
from optmech.base.arrays import normalised_rows
from optmech.errors import ProblemError, inside
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.domain import Domain
from optmech.spaces.labels import label_text
from optmech.spaces.losses import as_loss, loss_matrix
from optmech.spaces.mechanism import Mechanism, mechanism_from
from optmech.spaces.prior import Prior

Second = Mapping[Hashable, Mechanism] | Callable[[Hashable], Mechanism]


@checked_arguments
def composed(first: Mechanism, second: Second, *, shared: bool = True) -> Mechanism:
    """A₁ ⊙ A₀ (x) = A₁(A₀(x), x), or without ``shared`` A₁ • A₀ (x₀, x₁) = A₁(A₀(x₀), x₁)
    (Kawamoto and Murakami, ESORICS 2019, Definitions 14 and 15).

    ``second`` has, for every report of the first, the mechanism A₁(y₀, ·): a mapping from labels or
    a function of them. All have the same secrets and observables. Of • the secrets are pairs
    (x₀, x₁). What is promised follows from ``om.guarantees.compose_shared`` and
    ``compose_independent``.

    Raises
    ------
    ProblemError
        Where a mechanism is missing, or has other secrets or observables than the others.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> noisy = om.mechanisms.randomized_response(coin, "ln 3")
    >>> plain = om.Mechanism(coin, coin, [[1, 0], [0, 1]])
    >>> print(om.mechanisms.composed(noisy, {"yes": noisy, "no": plain}).matrix)
    [[0.8125 0.1875]
     [0.0625 0.9375]]
    >>> apart = om.mechanisms.composed(noisy, {"yes": noisy, "no": plain}, shared=False)
    >>> print(apart.matrix[1], apart.secrets.labels[1])  # the first coin is yes, the second no
    [0.1875 0.8125] ('yes', 'no')
    """
    if not callable(second) and not isinstance(second, Mapping):
        raise ProblemError(
            f"{type(second).__name__} has no mechanism for every report",
            where="second",
            remedy="Give a mapping from the labels of reports, or a function of them",
        )
    found = []
    for label in first.observables.labels:
        with inside(f"second[{label_text(label)}]"):
            if not callable(second) and label not in second:
                raise ProblemError("is missing", remedy="Give a mechanism for every report")
            own = second(label) if callable(second) else second[label]
            found.append(mechanism_from(own, ""))
    secrets, observables = found[0].secrets, found[0].observables
    alike = all(m.secrets == secrets and m.observables == observables for m in found)
    if not alike or (shared and secrets.labels != first.secrets.labels):
        raise ProblemError(
            "the mechanisms do not have the same secrets and observables",
            where="second",
            remedy="Use one domain for the secrets, and one for what is reported in the end",
        )
    after = np.array([m.matrix for m in found])
    if shared:
        matrix = np.einsum("sy,yso->so", first.matrix, after)
        return Mechanism(first.secrets, observables, normalised_rows(matrix))
    both = np.einsum("ay,ybo->abo", first.matrix, after)
    pairs = Domain(product(first.secrets.labels, secrets.labels))
    return Mechanism(pairs, observables, normalised_rows(both.reshape(len(pairs), -1)))


@checked_arguments
def optimal_remap(
    m: Mechanism, prior: Prior, loss: DistanceLike, *, outputs: Domain | None = None
) -> Mechanism:
    """``m`` followed by the remap of least expected loss for ``prior``: every observable o becomes
    the first output t that minimises Σ_s π(s) p(o|s) c(s,t).

    No post-processing of ``m`` to ``outputs`` loses less, random ones included, and none loses
    privacy: whatever inequality between rows and whatever bound on leakage ``m`` keeps, the
    result keeps. Which output is best is decided in whole numbers; where ``m`` has exact
    probabilities, so has the result.

    Parameters
    ----------
    m:
        Any mechanism, such as planar Laplace noise.
    prior:
        Over the secrets of ``m``.
    loss:
        c(s, t), a distance or an array of shape (secrets, outputs), entries >= 0.
    outputs:
        What may be reported, by default the secrets. All of them are observables of the result,
        also those that are never reported.

    Raises
    ------
    ProblemError
        On a prior over other secrets, or an unusable loss.

    Examples
    --------
    >>> line = om.Domain.range(2)
    >>> m = om.mechanisms.randomized_response(line, "ln 3")
    >>> prior, d = om.Prior(line, [0.9, 0.1]), om.distances.euclidean()
    >>> better = om.mechanisms.optimal_remap(m, prior, d)
    >>> om.measures.expected_loss(m, prior, d)
    0.25
    >>> print(round(om.measures.expected_loss(better, prior, d), 4))  # always the place with 0.9
    0.1
    """
    targets = m.secrets if outputs is None else outputs
    costs = loss_matrix(as_loss(loss, "loss"), m.secrets, targets)
    onto = np.zeros((len(m.observables), len(targets)))
    onto[np.arange(len(onto)), best_guesses(m, prior, -costs.T)] = 1.0
    return m.then(Mechanism(m.observables, targets, onto))
