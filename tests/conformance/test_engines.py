"""One suite for every engine: value, privacy and bound against an independent solver."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from conformance.problems import KINDS, Make, metric
from oracle import optimum

import optmech as om
from optmech.base.native import has_kernels
from optmech.certificate.families import Divergence, Information
from optmech.engines import load_engine
from optmech.engines.structured import engine
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.pipeline.profiles import Profile

LINEAR = ["highs", "lazy", "structured", "structured-compiled", "structured-device"]
CONVEX = ["conic", "tangents"]


def curved(make: Make) -> bool:
    """Whether a kind of problem has divergences, which are not linear."""
    statement = make(np.random.default_rng(0)).statement
    return bool(statement.of_kind(Divergence) or statement.of_kind(Information))


CURVED = [make for make in KINDS if curved(make)]
CASES = [
    pytest.param(make, engine, (k + number) % 2, id=f"{make.__name__}-{engine}")
    for number, make in enumerate(KINDS)
    for k, engine in enumerate(["cvxpy", *(CONVEX if make in CURVED else LINEAR)])
]
"""Every kind with every engine, on one of two problems in turns."""


@pytest.fixture
def profile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | Profile:
    """The profile of an engine; "-compiled" forces compiled code on problems of any size, and
    "-device" code for any array library."""
    name: str = request.param
    if name.endswith("-device"):
        pytest.importorskip("array_api_compat")
        return Profile(engine=name.removesuffix("-device"), device="numpy")
    if name.endswith("-compiled"):
        if not has_kernels():
            pytest.skip("no kernels are compiled")
        monkeypatch.setattr(engine, "SMALL", 0)
        return name.removesuffix("-compiled")
    return name


@functools.cache
def expected_of(make: Make, seed: int) -> tuple[om.Problem, float | None]:
    """A problem, and the optimum of the independent solver."""
    problem = make(np.random.default_rng([seed, len(make.__name__)]))
    return problem, optimum(problem)


@pytest.mark.parametrize(("make", "profile", "seed"), CASES, indirect=["profile"])
def test_certified_optimum_equals_the_oracle(make: Make, profile: str | Profile, seed: int) -> None:
    problem, expected = expected_of(make, seed)
    design = om.solve(problem, profile=profile)
    if expected is None:
        assert design.status == "infeasible"
        return
    assert design.status == "optimal", design.reason
    assert design.verified
    assert design.gap <= 1e-6
    assert design.objective == pytest.approx(expected, rel=2e-6, abs=1e-9)
    _assert_private(problem, design.mechanism)


@pytest.mark.parametrize("make", CURVED, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["highs", "lazy", "structured"])
def test_linear_engines_refuse_what_is_not_linear(make: Make, name: str) -> None:
    """And ``solve`` gives way to tangents, saying so."""
    problem = make(np.random.default_rng(0))
    assert load_engine(name).refusal(compile_lp(Inequalities.of(problem.statement)).lp)
    design = om.solve(problem, profile=name, gap=1e-2)
    assert design.engine == "tangents"
    assert design.engine_reason.startswith(f"{name} was not used: ")


@pytest.mark.parametrize("name", CONVEX)
def test_engines_for_divergences_refuse_linear_programs(name: str) -> None:
    problem = metric(np.random.default_rng(0))
    refusal = load_engine(name).refusal(compile_lp(Inequalities.of(problem.statement)).lp)
    assert refusal == "there are no divergence constraints"
    assert om.solve(problem, profile=name).engine == "highs"


def _assert_private(problem: om.Problem, mechanism: om.Mechanism) -> None:
    """What the matrix promises, measured with plain loops and none of the certificate's code."""
    matrix = mechanism.matrix
    n, m = matrix.shape
    assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-12
    assert matrix.min() >= 0
    for constraint in problem.constraints:
        if not isinstance(constraint, om.MetricPrivacy) or constraint.delta > 0:
            continue
        if constraint.threshold is not None or constraint.observable_threshold is not None:
            continue
        d = constraint.distance(problem.secrets, problem.secrets)
        for s in range(n):
            for t in range(n):
                for o in range(m):
                    left, right = matrix[s, o], matrix[t, o]
                    assert (left > 0) == (right > 0)
                    if left > 0 and s != t and d[s, t] > 0:
                        tight = np.log(left / right) / d[s, t]
                        assert tight <= constraint.epsilon * (1 + 1e-12)
                    if d[s, t] == 0:
                        assert left == right
