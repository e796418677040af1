"""Designs under divergence distribution privacy (CM19 Def. 11): closed forms, both routes to the
optimum, proofs from the file alone."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from conformance import problems
from optmech_audit import inequalities
from scipy.optimize import brentq

import optmech as om
from optmech import divergences
from optmech.certificate import check_exact, lower_bound
from optmech.certificate.families import LiftedRatio
from optmech.exact.ratios.generators import GENERATORS
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()
SMOOTH = list(GENERATORS)
BINARY = {
    "kl": lambda x: (1 - 2 * x) * math.log((1 - x) / x),
    "reverse_kl": lambda x: (1 - 2 * x) * math.log((1 - x) / x),
    "tv": lambda x: 1 - 2 * x,
    "chi2": lambda x: (1 - 2 * x) ** 2 / (x * (1 - x)),
    "hellinger": lambda x: 1 - 2 * math.sqrt(x * (1 - x)),
}
"""D((1-x, x) ‖ (x, 1-x)): two equally likely secrets that are confused with probability x."""


def two_secrets(name: str, epsilon: object, **arguments: Any) -> om.Problem:
    domain = om.Domain("ab")
    constraint = om.DistributionPrivacy(epsilon, [([1, 0], [0, 1])], divergence=name, **arguments)
    return om.Problem(om.Prior.uniform(domain), H, constraints=[constraint])


def populations(seed: int, n: int) -> tuple[om.Prior, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    domain = om.Domain(range(n), rng.uniform(0, 2, (n, 2)), "km")
    a, b = rng.dirichlet(np.full(n, 0.7), 2)
    return om.Prior(domain, (a + b) / 2), (a, b)


def private(design: om.Design, pair: tuple[np.ndarray, np.ndarray], name: str) -> float:
    """The larger of both directions, an upper bound from whole numbers."""
    matrix = [list(map(Fraction, row)) for row in design.exact.rows]
    unit = Fraction(1, 1 << design.exact.bits)
    outputs = []
    for side in pair:
        weights = [Fraction(w) for w in np.asarray(side, dtype=float).tolist()]
        columns = zip(*matrix, strict=True)
        total = sum(weights) / unit
        outputs.append(
            [sum(w * v for w, v in zip(weights, c, strict=True)) / total for c in columns]
        )
    if name == "tv":
        return float(sum(abs(x - y) for x, y in zip(*outputs, strict=True)) / 2)
    return float(
        max(inequalities.divergence(name, *outputs), inequalities.divergence(name, *outputs[::-1]))
    )


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 0.9])
@pytest.mark.parametrize("profile", ["auto", "tangents"])
@pytest.mark.parametrize("name", BINARY)
def test_two_secrets_have_a_closed_form(name: str, epsilon: float, profile: str) -> None:
    design = om.solve(two_secrets(name, epsilon), profile=profile)
    expected = brentq(lambda x: BINARY[name](x) - epsilon, 1e-12, 0.5, xtol=1e-15)
    assert design.status == "optimal"
    assert design.loss == pytest.approx(expected, rel=2e-6)
    assert design.lower_bound <= expected * (1 + 1e-12) <= design.loss * (1 + 2e-12)
    spent = private(design, ([1, 0], [0, 1]), name)
    assert spent <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", SMOOTH)
def test_unequal_populations_of_two_secrets(name: str) -> None:
    """Two secrets, two outputs: the optimum is on the boundary of a region of two numbers, found
    here by bisection in one and search in the other."""
    prior, pair = [0.7, 0.3], (np.array([0.9, 0.1]), np.array([0.2, 0.8]))
    problem = om.Problem(
        om.Prior(om.Domain("ab"), prior),
        H,
        constraints=[om.DistributionPrivacy(0.05, [pair], divergence=name)],
    )
    measure = {"kl": "kl", "reverse_kl": "reverse_kl", "chi2": "chi_squared"}.get(
        name, "squared_hellinger"
    )
    function = getattr(divergences, measure)

    def spent(x: float, y: float) -> float:
        p, q = (lam[0] * (1 - x) + lam[1] * y for lam in pair)
        both = np.array([p, 1 - p]), np.array([q, 1 - q])
        return max(function(*both), function(*both[::-1]))

    def cost(x: float) -> float:
        if spent(x, 0.0) <= 0.05:
            return prior[0] * x
        y = brentq(lambda y: spent(x, y) - 0.05, 0.0, 1.0 - x, xtol=1e-14)
        return prior[0] * x + prior[1] * y

    grid = np.linspace(0.0, 0.999, 100)
    x = grid[int(np.argmin([cost(x) for x in grid]))]
    for _ in range(8):
        width = grid[1] - grid[0]
        grid = np.linspace(max(0.0, x - width), min(0.999, x + width), 21)
        x = grid[int(np.argmin([cost(x) for x in grid]))]
    design = om.solve(problem)
    assert design.loss == pytest.approx(cost(x), rel=2e-6)
    assert private(design, pair, name) <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("name", [*SMOOTH, "tv"])
def test_all_routes_agree(name: str) -> None:
    """Cones, planes and, for total variation, the linear program."""
    prior, pair = populations(1, 8)
    problem = om.Problem(
        prior, E, constraints=[om.DistributionPrivacy(0.1, [pair], divergence=name)]
    )
    losses = []
    for profile in ("clarabel", "tangents", "conic", "highs"):
        design = om.solve(problem, profile=profile)
        assert design.status == "optimal"
        assert private(design, pair, name) <= 0.1 * (1 + 1e-9)
        assert divergences.epsilon_of_distributions(design.mechanism, [pair], name) <= 0.1 * (
            1 + 1e-9
        )
        losses.append(design.loss)
    assert max(losses) == pytest.approx(min(losses), rel=1e-6)


@pytest.mark.parametrize("name", ["kl", "hellinger"])
@pytest.mark.parametrize("epsilon", ["1e-8", "1e-3"])
def test_small_limits_are_still_certified(name: str, epsilon: str) -> None:
    prior, pair = populations(2, 7)
    problem = om.Problem(
        prior, E, constraints=[om.DistributionPrivacy(epsilon, [pair], divergence=name)]
    )
    design = om.solve(problem)
    assert design.gap <= 1e-6
    assert private(design, pair, name) <= float(epsilon)


def test_the_price_falls_with_epsilon_and_ends_at_nothing() -> None:
    prior, pair = populations(3, 6)
    there = divergences.epsilon_of_distributions(
        om.Mechanism(prior.domain, prior.domain, np.eye(6)), [pair], "kl"
    )
    losses = []
    for share in (0.0, 0.01, 0.1, 0.5, 1.0 + 1e-9):
        constraint = om.DistributionPrivacy(share * there, [pair], divergence="kl")
        losses.append(om.solve(om.Problem(prior, E, constraints=[constraint])).loss)
    assert all(a > b for a, b in itertools.pairwise(losses))
    assert losses[-1] == pytest.approx(0, abs=1e-12)
    # λP = λ'P has moved the two populations W_1 together
    apart = om.transport.wasserstein(*pair, E(prior.domain, prior.domain)).value
    assert losses[0] >= apart / 2 - 1e-9


def test_scale_limits_pair_by_pair() -> None:
    prior, pair = populations(4, 6)
    other = (pair[1], np.full(6, 1 / 6))
    constraint = om.DistributionPrivacy("1/20", [pair, other], divergence="kl", scale=[2.0, 0.5])
    design = om.solve(om.Problem(prior, E, constraints=[constraint, om.MetricPrivacy(4, E)]))
    assert design.status == "optimal"
    for both, limit in ((pair, 0.1), (other, 0.025)):
        assert private(design, both, "kl") <= limit * (1 + 1e-9)
    assert om.measures.epsilon(design.mechanism, E) <= 4 * (1 + 1e-12)


def test_pinsker_orders_the_prices() -> None:
    """TV² <= KL/2 and H² <= KL/2: what keeps KL <= ε keeps TV <= √(ε/2) and H² <= ε/2."""
    prior, pair = populations(5, 7)

    def price(name: str, epsilon: float) -> om.Design:
        constraint = om.DistributionPrivacy(epsilon, [pair], divergence=name)
        return om.solve(om.Problem(prior, E, constraints=[constraint]))

    kl = price("kl", 0.08)
    assert price("tv", 0.2).lower_bound <= kl.loss
    assert price("hellinger", 0.04).lower_bound <= kl.loss
    assert price("chi2", math.expm1(0.08)).loss >= price("kl", 0.08).lower_bound


def test_no_mechanism_is_a_proved_result() -> None:
    prior, pair = populations(6, 5)
    design = om.solve(
        om.Problem(
            prior,
            E,
            constraints=[
                om.DistributionPrivacy(0.01, [pair], divergence="kl"),
                om.LossBound(0.01),
            ],
        )
    )
    assert design.status == "infeasible"
    assert "constraints[0] (divergence)" in design.reason


class TestFiles:
    @pytest.fixture
    def saved(self, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
        problem = problems.divergence_kl(np.random.default_rng(3))
        path = tmp_path / "design.json"
        om.solve(problem).save(path)
        return path

    def test_checked_loaded_and_audited(self, saved: Path) -> None:
        assert om.check(saved).passed
        assert om.Design.load(saved).verified
        lines = audit.audit(str(saved))
        assert any("divergences (kl)" in line for line in lines)

    @pytest.mark.parametrize("name", SMOOTH)
    def test_a_mechanism_that_breaks_its_promise_fails_everywhere(
        self, saved: Path, name: str
    ) -> None:
        body = json.loads(saved.read_text())
        body.pop("digest")
        constraint = body["problem"]["constraints"][0]
        constraint.update(divergence=name, epsilon=1e-3, scale=[1.0, 1.0])
        saved.write_bytes(seal(json.dumps(body).encode()))
        report = om.check(saved)
        assert any("divergence" in fault for fault in report.faults)
        with pytest.raises(audit.Fault, match="divergence is too large"):
            audit.audit(str(saved))

    def test_a_better_bound_than_proved_is_refused(self, saved: Path) -> None:
        body = json.loads(saved.read_text())
        body.pop("digest")
        weights = body["multipliers"]["divergence"][0]["weight"]
        body["multipliers"]["divergence"][0]["weight"] = [2 * w for w in weights]
        saved.write_bytes(seal(json.dumps(body).encode()))
        assert not om.check(saved).passed
        with pytest.raises(audit.Fault, match="bound is not proved"):
            audit.audit(str(saved))

    def test_files_without_divergence_multipliers_still_load(self, tmp_path: Path) -> None:
        """As written before there were any."""
        path = tmp_path / "design.json"
        om.solve(problems.metric(np.random.default_rng(1))).save(path)
        body = json.loads(path.read_text())
        body.pop("digest")
        assert body["multipliers"].pop("divergence") == []
        path.write_bytes(seal(json.dumps(body).encode()))
        assert om.Design.load(path).verified
        audit.audit(str(path))


def test_planes_lie_below_whatever_the_slope() -> None:
    """Recorded slopes of any value give a bound below the optimum; extreme ones included."""
    for name in SMOOTH:
        problem = two_secrets(name, 0.1)
        design = om.solve(problem)
        multipliers = design.certificate.multipliers
        (part,) = multipliers.families
        for value in (-1e300, -3.0, -1e-9, 0.0, 0.3, 0.5, 1.0, 1e300, math.nan, math.inf):
            changed = type(part)(part.weight, np.full_like(part.slope, value))
            bent = type(multipliers)((changed,))
            bound = lower_bound(problem.statement, bent).value
            assert not bound > design.loss


@pytest.mark.parametrize("name", SMOOTH)
def test_the_exact_check_decides_at_the_limit(name: str) -> None:
    """A fixed matrix, with the limit set a hair above and below its own divergence."""
    from optmech.exact.numerators import Numerators

    rows = np.array([[0.75, 0.25], [0.375, 0.625]])
    spent = divergences.enclosure(*rows, name), divergences.enclosure(*rows[::-1], name)
    highest, lowest = max(s.upper for s in spent), max(s.lower for s in spent)
    released = Numerators.rounded(rows)
    for limit, holds in ((highest, True), (math.nextafter(lowest, 0), False)):
        checks = check_exact(two_secrets(name, limit).statement, released)
        assert all(check.passed for check in checks) == holds


def test_what_cannot_be_stated_is_refused() -> None:
    pair = [([1, 0], [0, 1])]
    with pytest.raises(om.ProblemError, match="δ belongs to the max divergence"):
        om.DistributionPrivacy(0.1, pair, delta=0.1, divergence="kl")
    with pytest.raises(om.ProblemError, match="'wasserstein' is unknown"):
        om.DistributionPrivacy(0.1, pair, divergence="wasserstein")
    with pytest.raises(om.ProblemError, match=r"constraints\[0\]\.epsilon.*too small"):
        two_secrets("kl", 1e-40)
    assert om.DistributionPrivacy(0.1, pair, divergence="chi_squared").divergence == "chi2"
    (part,) = two_secrets("kl", 0).statement.of_kind(LiftedRatio)
    assert part.log_ratio.tolist() == [0, 0]
