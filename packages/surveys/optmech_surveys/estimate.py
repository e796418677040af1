"""What a collector learns about everybody from private reports: how often each observable was
reported, the likeliest prior, with a proof of how likely, and unbiased frequencies of the secrets
with their variances.

The likeliest prior comes from the iterative Bayesian update (Agrawal and Aggarwal, PODS 2001;
ElSalamouny and Palamidessi, Generalized Iterative Bayesian Update and Applications to Mechanisms
for Privacy Protection, EuroS&P 2020), which is expectation maximisation, with a stopping rule that
is a proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.counts import Counts, counts_of
from optmech.analysis.measures import prior_weights
from optmech.analysis.probabilities import probabilities
from optmech.analysis.surveys import Estimate, error, people, statistic, variances
from optmech.base.arrays import Floats, finite_array, slices
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.base.simplex import likeliest
from optmech.certificate.variance import estimator
from optmech.errors import ProblemError
from optmech.exact.arguments import positive, probability, whole
from optmech.exact.number import Number
from optmech.exact.numerators import dot
from optmech.exact.rounding import above
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import Shares

__all__ = [
    "Estimate", "Frequencies", "PriorEstimate", "error", "frequencies", "from_supports", "people",
    "prior", "statistic", "variances",
]  # fmt: skip
__dir__ = __all__.copy


_SOLVED = 1e-8


@record
class Frequencies(Shown):
    """Unbiased estimates of how frequent each secret is; they may be below 0 or above 1.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.estimate.frequencies(m, {"left": 60, "right": 40})
    >>> print(found.values, found.errors.round(4))
    [0.7 0.3] [0.0985 0.0985]
    """

    values: Floats
    """Shape (S,); they sum to one."""
    variances: Floats
    """Unbiased estimates of the variance of each, shape (S,), for reports that are independent
    draws of secrets and answers."""
    estimator: Floats
    """a(s, o), shape (S, O): the mean of a(s, o) over the reports is the estimate of s; the
    debiasing matrix."""
    reports: float

    @property
    def errors(self) -> Floats:
        """Standard errors, shape (S,)."""
        return np.sqrt(self.variances)


@checked_arguments
def frequencies(m: Mechanism, counts: Counts, *, prior: Prior | None = None) -> Frequencies:
    """The share of every secret among those who reported, estimated without bias.

    Of all a(s, o) with Σ_o p(o|t) a(s,o) = 1 for t = s and 0 for other t, that of least variance
    at ``prior`` (by default the uniform one): a = (P D⁻¹ Pᵀ)⁻¹ P D⁻¹ with D the output
    probabilities there (Aitken 1935). For k-ary randomised response, subset selection and
    symmetric encodings that is the estimator of the literature (Wang et al., USENIX Security 2017).

    ``counts`` as in ``om.estimate.prior``.

    Raises
    ------
    ProblemError
        On unusable counts; where the rows of the mechanism are (nearly) dependent, so that there is
        no unbiased estimate; with a report that is impossible at ``prior``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.estimate.frequencies(m, [60, 40])
    >>> print(found.values)  # (0.6 - 0.25) / (0.75 - 0.25)
    [0.7 0.3]
    """
    reported = counts_of(counts, m.observables)
    total = float(reported.sum())
    start = Prior.uniform(m.secrets) if prior is None else prior
    weights = prior_weights(m, start)
    lost = np.flatnonzero((reported > 0) & (m.push(weights) == 0))
    if len(lost):
        raise ProblemError(
            f"{m.observables.labels[lost[0]]!r} was reported, and cannot be at this prior",
            where="counts",
            remedy="Give the mechanism that the reports were drawn from",
        )
    best = estimator(m.matrix, weights)
    if not np.abs(m.matrix @ best.T - np.eye(len(m.secrets))).max() <= _SOLVED:
        raise ProblemError(
            "some mixtures of secrets cause the same reports, so that no estimate is unbiased",
            where="mechanism",
            remedy="Use om.estimate.prior, or a mechanism with independent rows",
        )
    share = reported / total
    values = best @ share
    spread = (best**2) @ share - values**2
    variances = np.maximum(0.0, spread) / max(total - 1, 1.0)
    return Frequencies(values, variances, best, total)


def from_supports(
    held: ArrayLike, reports: float, *, own: Number, other: Number
) -> tuple[Floats, Floats]:
    """Unbiased estimates of a distribution from how many reports support each secret, for any
    number of secrets: values and variances, each of shape (n,) (Wang et al., USENIX Security 2017).

    A report supports its true secret with probability p and any other with q. For optimised unary
    encoding a report supports the secrets whose bits are set, p = ½ and q = 1 / (e^ε + 1); for
    one-time RAPPOR p = 1 - q = 1 / (1 + e^{-ε/2}); for randomised response p = e^ε q.

    Parameters
    ----------
    held:
        How many reports support each secret, shape (n,).
    reports:
        How many there are, at least 1.
    own, other:
        p and q, from 0 to 1, p above q.

    Raises
    ------
    ProblemError
        Unless 0 <= held <= reports and q < p.

    Examples
    --------
    >>> values, variances = om.estimate.from_supports([60, 40], 100, own=0.75, other=0.25)
    >>> print(values)
    [0.7 0.3]
    """
    total = positive(reports, "reports")
    counted = finite_array(held, where="held", ndim=1)
    if (counted < 0).any() or (counted > total).any():
        raise ProblemError(
            f"not from 0 to {total:g}", where="held", remedy="Count every report once per secret"
        )
    p, q = float(probability(own, "own")), float(probability(other, "other"))
    if not q < p:
        raise ProblemError(f"{p:g} is not above {q:g}", where="own")
    share = counted / total
    values = (share - q) / (p - q)
    return values, np.asarray(share * (1 - share) / max(total - 1, 1.0) / (p - q) ** 2)


_BATCH = 4_000_000
_MOST_DRAWS = 100_000


@record
class PriorEstimate(Shown):
    """The likeliest prior, as far as it was found, and how far that is.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.estimate.prior(m, {"left": 60, "right": 40})
    >>> found.reports, found.gap <= 1e-8
    (100.0, True)
    """

    prior: Prior
    gap: float
    """Nats per report that the log-likelihood of any prior is above that of ``prior``, at most: an
    upper bound that is proved, computed in ball arithmetic from the weights of ``prior``."""
    log_likelihood: float
    """Σ_o n_o ln (πP)(o) under ``prior``, in nats."""
    reports: float
    """n, the sum of the counts."""
    iterations: int
    lower: Floats | None = None
    """Bootstrap percentiles of every weight, shape (S,); None where none was asked for."""
    upper: Floats | None = None
    confidence: float = 0.95
    """The confidence of ``lower`` and ``upper``, secret by secret."""


@checked_arguments
def prior(
    m: Mechanism,
    counts: Counts,
    *,
    gap: float = 1e-8,
    iterations: int = 20_000,
    bootstrap: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> PriorEstimate:
    """The prior that maximises Σ_o n_o ln (πP)(o), the likelihood of the reports.

    Stops when the proved bound on what is still to gain is at most ``gap`` nats per report:
    for every prior σ, (1/n)(ln L(σ) - ln L(π)) <= ln max_s Σ_o (n_o/n) p(o|s)/(πP)(o), by Jensen's
    inequality; or after ``iterations``, with the bound reached. Where rows of the mechanism are
    linearly dependent, several priors may be as likely.

    Parameters
    ----------
    m:
        The mechanism that all reports were drawn from, independently.
    counts:
        How often each observable was reported: an array in their order, or a mapping from label
        to count (a dict, a Counter, a pandas Series).
    gap:
        Nats per report, > 0.
    bootstrap:
        How many times the reports are drawn again from their frequencies for ``lower`` and
        ``upper``, the percentiles of the estimates (Efron 1979); counts must be whole then.
    confidence:
        Of the bootstrap intervals, in (0, 1).
    seed:
        Of the bootstrap's draws.

    Raises
    ------
    ProblemError
        On unusable counts, or a report that no secret can have caused.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.estimate.prior(m, [60, 40]).prior.weights.round(3))
    [0.7 0.3]
    >>> print(om.estimate.prior(m, [90, 10]).prior.weights.round(3))  # never below 0
    [1. 0.]
    """
    reported = counts_of(counts, m.observables)
    seen = reported > 0
    impossible = np.flatnonzero(seen & (m.matrix.max(axis=0) == 0))
    if len(impossible):
        raise ProblemError(
            f"{m.observables.labels[impossible[0]]!r} was reported, and no secret can cause that",
            where="counts",
            remedy="Give the mechanism that the reports were drawn from",
        )
    enough = positive(gap, "gap")
    most = whole(iterations, "iterations")
    with np.errstate(over="ignore"):
        total = float(reported.sum())
    if not total < 2.0**1000:
        raise ProblemError("the counts are too large", where="counts")
    draws = whole(bootstrap, "bootstrap", most=_MOST_DRAWS)
    likely = m.matrix[:, seen]
    # a float decides when to stop, the bound is computed for what it stopped at
    weights, steps = likeliest(likely, reported[None, seen] / total, enough / 2, most)
    found = Prior(m.secrets, weights[0])
    low = high = None
    level = float(probability(confidence, "confidence", positive=True))
    if draws:
        if (reported != np.floor(reported)).any() or total > 2**53:
            raise ProblemError(
                "are not whole, and the bootstrap draws whole reports again", where="counts"
            )
        counted = reported[seen]
        rng = np.random.default_rng(seed)
        again = rng.multinomial(int(total), counted / total, size=draws) / total
        parts = slices(draws, max(likely.shape), _BATCH)
        every = [likeliest(likely, again[part], max(enough, 1e-6), most)[0] for part in parts]
        ends = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(np.concatenate(every), ends, axis=0)
    bound, logs = _proved(m, found, reported)
    return PriorEstimate(found, bound, logs, total, steps, low, high, level)


def _proved(m: Mechanism, found: Prior, reported: Floats) -> tuple[float, float]:
    """ln max_s Σ_o (n_o/n) p(o|s)/(πP)(o), rounded up; the log-likelihood."""
    import flint

    scaled, drawn = probabilities(m), Shares.of(found, "prior")
    with flint.ctx.workprec(160):
        total = sum((flint.arb(float(v)) for v in reported.tolist()), flint.arb(0))
        over = flint.arb(scaled.total) * drawn.total
        logs, shares, columns = flint.arb(0), [], scaled.columns
        for o, count in enumerate(reported.tolist()):
            if count:
                told = dot(drawn.units, columns[o])
                output = flint.arb(told) / over
                logs += flint.arb(count) * output.log()
                shares.append((o, flint.arb(count) / total / output / scaled.total))
        best: Any = None
        for row in scaled.rows:
            gradient = sum((share * row[o] for o, share in shares), flint.arb(0))
            best = gradient if best is None or gradient.upper() > best.upper() else best
        return max(0.0, above(best.log())), float(logs.mid())
