"""Mutual information: rate-distortion functions in closed form and by Blahut's algorithm."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from scipy.optimize import brentq

import optmech as om
from optmech import prices
from optmech.certificate import check_exact
from optmech.exact.numerators import Numerators
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()


def least_error(n: int, rate: float) -> float:
    """D with ln n - h(D) - D ln(n - 1) = rate."""

    def excess(d: float) -> float:
        entropy = -(d * math.log(d) + (1 - d) * math.log1p(-d))
        return math.log(n) - entropy - d * math.log(n - 1) - rate

    return float(brentq(excess, 1e-15, 1 - 1 / n, xtol=1e-15))


def told(prior: np.ndarray, p: np.ndarray) -> float:
    common = prior @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / common), 0.0)
    return float(prior @ terms.sum(axis=1))


def blahut(prior: np.ndarray, loss: np.ndarray, slope: float) -> tuple[float, float, float]:
    """Blahut's iteration at one slope: loss and rate of its mechanism, and a lower bound of
    rate + slope · loss over all mechanisms (Blahut 1972, Theorem 6)."""
    kernel = np.exp(-slope * loss)
    output = np.full(loss.shape[1], 1 / loss.shape[1])
    for _ in range(3000):
        norm = kernel @ output
        output = output * (prior / norm @ kernel)
    norm = kernel @ output
    mechanism = kernel * output / norm[:, None]
    ratio = (prior / norm) @ kernel
    bound = -float(prior @ np.log(norm)) - math.log(ratio.max())
    return float(prior @ (mechanism * loss).sum(axis=1)), told(prior, mechanism), bound


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("rate", [0.05, "1/2"])
def test_rate_distortion_of_a_uniform_source(n: int, rate: object) -> None:
    prior = om.Prior.uniform(om.Domain.range(n))
    design = om.solve(om.Problem(prior, H, constraints=[om.constraints.MutualInformation(rate)]))
    assert design.status == "optimal"
    number = 0.5 if rate == "1/2" else float(rate)  # type: ignore[arg-type]
    assert design.loss == pytest.approx(least_error(n, number), rel=1e-6)
    assert told(prior.weights, design.mechanism.matrix) <= number
    (price,) = prices.of_constraints(design)
    step = 1e-5
    slope = (least_error(n, number + step) - least_error(n, number - step)) / (2 * step)
    assert price.rate == pytest.approx(slope, rel=1e-3)


def test_blahut_and_the_certificate_enclose_the_same() -> None:
    prior = om.Prior(om.Grid(2, 3, cell=(1.0, 0.6)), [5, 1, 2, 3, 1, 4])
    loss = E(prior.domain, prior.domain)
    for slope in (1.0, 4.0):
        mean, rate, bound = blahut(prior.weights, loss, slope)
        design = om.solve(
            om.Problem(prior, E, constraints=[om.constraints.MutualInformation(rate)])
        )
        assert design.status == "optimal"
        # Blahut's mechanism keeps the rate; his bound is one of ours at the least loss
        assert design.lower_bound <= mean * (1 + 1e-9)
        assert rate + slope * design.loss >= bound - 1e-9
        assert design.loss == pytest.approx(mean, rel=1e-5)


def test_together_with_metric_privacy() -> None:
    """Each alone loses no more than both; and less information than metric privacy allows."""
    prior = om.Prior(om.Domain.range(4), [4, 3, 2, 1])
    metric, little = om.MetricPrivacy(1, E), om.constraints.MutualInformation(0.1)
    alone, info, both = (
        om.solve(om.Problem(prior, E, constraints=stated))
        for stated in ([metric], [little], [metric, little])
    )
    assert max(alone.loss, info.loss) <= both.loss + 1e-9
    assert told(prior.weights, both.mechanism.matrix) <= 0.1
    assert om.measures.epsilon(both.mechanism, E) <= 1 + 1e-9


def test_nothing_may_be_told() -> None:
    prior = om.Prior(om.Domain.range(3), [2, 1, 1])
    design = om.solve(om.Problem(prior, H, constraints=[om.constraints.MutualInformation(0)]))
    assert design.loss == pytest.approx(0.5)
    idle = om.Problem(prior, H, constraints=[om.constraints.MutualInformation(1.1)])
    assert "the entropy of the prior is 1.03972 nats" in idle.notes[0]


def test_the_check_decides_by_enclosures() -> None:
    """Two secrets told apart entirely tell ln 2: more than the float below it."""
    prior, apart = om.Prior.uniform(om.Domain("ab")), Numerators(1, ((2, 0), (0, 2)))
    for most, kept in (
        (math.nextafter(math.log(2), 1), True),
        (math.nextafter(math.log(2), 0), False),
    ):
        statement = om.Problem(
            prior, H, constraints=[om.constraints.MutualInformation(most)]
        ).statement
        assert check_exact(statement, apart)[1].passed is kept


def test_a_file_that_promises_less_information_is_refused(tmp_path: Path) -> None:
    prior = om.Prior(om.Domain.range(4), [1, 2, 1, 3])
    design = om.solve(om.Problem(prior, E, constraints=[om.constraints.MutualInformation(0.3)]))
    path = tmp_path / "d.json"
    original = json.loads(design.document())
    del original["digest"]

    def changed(change: object) -> tuple[bool, bool]:
        body = json.loads(json.dumps(original))
        change(body)
        path.write_bytes(seal(json.dumps(body).encode()))
        try:
            audit.audit(str(path))
        except audit.Fault:
            return om.check(path).passed, False
        return om.check(path).passed, True

    def less(body: dict) -> None:
        body["problem"]["constraints"][0]["maximum"] = 0.2999

    def dearer(body: dict) -> None:
        body["result"]["bound"] = body["result"]["lower_bound"] = body["result"]["objective"]
        body["multipliers"]["information"][0]["weight"] = [0.0]

    assert changed(lambda body: None) == (True, True)
    assert changed(less) == (False, False)
    assert changed(dearer) == (False, False)


def test_what_cannot_be_meant() -> None:
    prior = om.Prior.uniform(om.Domain("abc"))
    with pytest.raises(om.ProblemError, match=r"^maximum"):
        om.constraints.MutualInformation(-1)
    with pytest.raises(om.ProblemError, match=r"constraints\[0\]\.maximum: .*too small"):
        om.Problem(prior, H, constraints=[om.constraints.MutualInformation(1e-40)])
    other = om.constraints.MutualInformation(1, om.Prior.uniform(om.Domain("xyz")))
    with pytest.raises(om.ProblemError, match=r"constraints\[0\]\.prior"):
        om.Problem(prior, H, constraints=[other])
