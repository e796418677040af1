"""Post-processing that costs no privacy: the best use of a mechanism's reports.

Source: Chatzikokolakis, ElSalamouny and Palamidessi, Efficient Utility Improvement for Location
Privacy (PETS 2017).
"""

from __future__ import annotations

import numpy as np

from optmech.analysis.leakage.vulnerability import best_guesses
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.domain import Domain
from optmech.spaces.losses import as_loss, loss_matrix
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior

__all__ = ["optimal_remap"]
__dir__ = __all__.copy


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
    >>> better = om.remap.optimal_remap(m, prior, d)
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


optimal = optimal_remap  # an earlier name
