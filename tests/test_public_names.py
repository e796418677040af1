"""The public contract: names, arguments and fields that other people's scripts use."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from each import each

import optmech as om

NAMES = [
    "Grid", "Domain", "Prior", "Problem", "Mechanism", "Design", "solve", "check",
    "MetricPrivacy", "DifferentialPrivacy", "DistortionPrivacy", "DistributionPrivacy",
    "LossBound", "Support", "MaximizeDistortion", "load_problem",
    "OptmechError", "ProblemError", "InfeasibleError", "VerificationError", "SolverError",
    "distances.euclidean", "distances.manhattan", "distances.hamming", "distances.haversine",
    "distances.graph", "distances.matrix",
    "Prior.uniform", "Prior.from_counts", "Prior.from_points",
    "measures.expected_loss", "measures.worst_loss", "measures.distortion", "measures.epsilon",
    "measures.delta", "measures.distribution_epsilon", "measures.bayes_vulnerability",
    "attacks.optimal", "attacks.bayesian", "attacks.prior_free", "attacks.minimax",
    "divergences.kl", "divergences.reverse_kl", "divergences.total_variation",
    "divergences.chi_squared", "divergences.squared_hellinger", "divergences.f_divergence",
    "divergences.max_divergence", "divergences.hockey_stick", "divergences.renyi",
    "transport.wasserstein", "transport.lifted", "transport.barycenter",
    "mechanisms.coupling", "mechanisms.optimal_target",
    "mechanisms.randomized_response", "mechanisms.rappor", "mechanisms.geometric",
    "mechanisms.exponential", "mechanisms.planar_laplace", "mechanisms.planar_gaussian",
    "mechanisms.restricted_laplace", "mechanisms.tupling",
    "Mechanism.sample", "Mechanism.then", "Mechanism.remap", "Mechanism.push",
    "Design.save", "Design.load", "exchange.adopt", "exchange.to_xarray", "exchange.from_h3",
    "exchange.to_opendp", "traces.GaussianPrior", "traces.rbf", "traces.privacy_loss",
    "traces.calibrate", "traces.optimal_noise", "traces.worst_subset", "traces.fit",
    "traces.worst_length_scale",
    "report", "prices.of_constraints", "prices.of_pairs",
]  # fmt: skip
EARLIER = {
    "attacks.optimal": "attacks.optimal_attack",
    "divergences.distribution_epsilon": "divergences.epsilon_of_distributions",
    "leakage.mutual_information": "leakage.shannon_leakage",
    "plots.frontier": "plots.tradeoff",
    "plots.posterior": "plots.posteriors",
    "GainLeakage": "constraints.GainLeakage",
    "TooLargeError": "errors.TooLargeError",
    "load_packed": "devices.load_packed",
    "traces.NoiseDesign": "traces.GaussianNoise",
    "traces.protect": "traces.release",
}
"""What scripts may still call by names that no list has, and where it stands now."""
RARER = [
    "OptmechError", "ProblemError", "InfeasibleError", "VerificationError", "SolverError",
    "CheckReport", "Comparison", "SweepResult", "Profile", "load_task", "redesign", "pack",
    "protect",
]  # fmt: skip
"""What ``om`` has and does not show."""
ARGUMENTS = {
    "solve": ["problem", "profile", "gap", "time_limit", "progress"],
    "Problem": ["prior", "loss", "observables", "objective", "constraints"],
    "MetricPrivacy": ["epsilon", "distance", "threshold", "observable_threshold", "delta"],
    "DifferentialPrivacy": ["epsilon", "adjacency", "delta"],
    "DistortionPrivacy": ["minimum", "distance", "prior"],
    "DistributionPrivacy": ["epsilon", "pairs", "delta", "divergence", "scale"],
    "LossBound": ["maximum", "loss", "worst_case"],
    "Support": ["mask"],
    "Mechanism.sample": ["secret", "size", "seed"],
    "divergences.kl": ["p", "q"],
    "divergences.hockey_stick": ["p", "q", "epsilon"],
    "divergences.max_divergence": ["p", "q", "delta"],
    "divergences.renyi": ["p", "q", "order"],
    "transport.wasserstein": ["a", "b", "distance", "p"],
    "transport.lifted": ["a", "b", "relation"],
    "transport.barycenter": ["lams", "distance", "weights"],
    "mechanisms.coupling": ["inputs", "target", "distance", "p"],
    "mechanisms.optimal_target": ["inputs", "distance", "epsilon", "weights"],
    "mechanisms.tupling": ["base", "dummies", "dummy_weights"],
    "measures.epsilon": ["m", "distance", "pairs"],
    "report": ["designs", "path", "names"],
    "attacks.minimax": ["m", "distance", "over"],
    "traces.GaussianPrior": ["times", "kernel"],
    "traces.rbf": ["length_scale", "variance"],
    "traces.privacy_loss": ["trace", "noise_covariance", "secrets", "radius", "order", "ball"],
    "traces.calibrate": ["trace", "epsilon", "secrets", "radius", "order", "ball"],
    "traces.optimal_noise": ["trace", "epsilon", "secret_sets", "radius", "order"],
}


def find(name: str) -> object:
    target: object = om
    for part in filter(None, name.split(".")):
        target = getattr(target, part)
    return target


@each("name", NAMES)
def test_name_exists_and_is_documented(name: str) -> None:
    assert inspect.getdoc(find(name))


@each("name", ARGUMENTS)
def test_arguments_are_as_promised(name: str) -> None:
    found = [p for p in inspect.signature(find(name)).parameters if p != "self"]
    assert found[: len(ARGUMENTS[name])] == ARGUMENTS[name]


def words(package: ModuleType = om) -> Iterator[tuple[str, str]]:
    """Every public name, and the namespace that it stands in, at any depth."""
    for name in package.__all__:
        yield name, package.__name__
        if isinstance(value := getattr(package, name), ModuleType):
            yield from words(value)


def test_a_word_stands_in_one_namespace() -> None:
    places: dict[str, list[str]] = {}
    for name, place in words():
        places.setdefault(name, []).append(place)
    assert len(places) > 300
    # beside what ``om`` itself has too
    twice = {name for name, found in places.items() if len(found) > 1}
    assert twice - {*om.__all__} == set()
    assert {name for name in twice if len(places[name]) > 2} == set()


def test_few_names_are_shown() -> None:
    """The rest stand in namespaces, or are what functions give."""
    assert len(set(dir(om)) - {"__version__"}) <= 50


@pytest.mark.parametrize("name", RARER)
def test_what_is_not_shown_is_found(name: str) -> None:
    assert inspect.isclass(find(name)) or inspect.isfunction(find(name))
    assert name not in dir(om)


@pytest.mark.parametrize("name", EARLIER)
def test_an_earlier_name_is_answered_and_not_listed(name: str) -> None:
    place, _, word = name.rpartition(".")
    assert find(name) is find(EARLIER[name])
    assert word not in {*dir(find(place)), *find(place).__all__}


def test_design_fields() -> None:
    domain = om.Domain("ab")
    design = om.solve(om.Problem(om.Prior.uniform(domain), om.distances.hamming()))
    for field in (
        "mechanism", "loss", "lower_bound", "gap", "status", "verified", "certificate", "engine",
        "seconds",
    ):  # fmt: skip
        assert hasattr(design, field)
    assert set(design.summary()) >= {
        "status", "loss", "lower_bound", "gap", "verified", "engine", "seconds", "secrets",
        "observables",
    }  # fmt: skip


@pytest.mark.parametrize("package", [om, om.traces, om.exchange, om.mechanisms])
def test_dir_lists_what_can_be_imported(package: ModuleType) -> None:
    assert dir(package) == package.__all__
    for name in dir(package):
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018


def test_names_are_found_before_and_after_their_modules_are_imported() -> None:
    code = (
        "import optmech.mechanisms.tupling, optmech as om; assert callable(om.mechanisms.tupling); "
        "from optmech.exchange import *; assert callable(adopt); "
        "from optmech import measures, __version__; assert measures is om.measures; "
        "assert __version__[0].isdigit()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_optmech_loads_nothing_heavy() -> None:
    code = (
        "import sys, optmech; optmech.solve; optmech.Problem; "
        "print([m for m in ('cvxpy', 'matplotlib', 'pydantic', 'rich', 'networkx') "
        "if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"
