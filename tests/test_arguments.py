"""What public functions take: one word for one thing, and a distance in any of its forms."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from each import each
from public import OWN, names_of

import optmech as om
from optmech.spaces.arguments import words_of

LINE = om.Domain("abc", [0.0, 1.0, 3.0])
KM = om.distances.euclidean()
APART = np.array([[0.0, 1, 3], [1, 0, 2], [3, 2, 0]])
HOME, AWAY = om.Prior(LINE, [1, 1, 2]), om.Prior(LINE, [0, 3, 1])
M = om.Mechanism(LINE, LINE, [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
PREMISE = om.guarantees.points(0.5, per="km")
RATE = om.guarantees.points(0.5, per="km", divergence="kl")

TAKE_A_DISTANCE: dict[str, Callable[[object], object]] = {
    "wasserstein": lambda d: om.transport.wasserstein(HOME, AWAY, d).value,
    "wasserstein to infinity": lambda d: om.transport.wasserstein(HOME, AWAY, d, math.inf).value,
    "diameter": lambda d: om.transport.diameter(HOME, AWAY, d),
    "barycenter": lambda d: om.transport.barycenter([HOME, AWAY], d).value,
    "coupling": lambda d: [
        m.exact.rows for m in om.mechanisms.coupling([HOME, AWAY], om.Prior.uniform(LINE), d)
    ],
    "coupling_design": lambda d: om.mechanisms.coupling_design([HOME], AWAY, d, math.inf).loss,
    "optimal_target": lambda d: om.mechanisms.optimal_target([HOME, AWAY], d, "ln 2").loss,
    "target_frontier": lambda d: [
        made.loss for made in om.mechanisms.target_frontier([HOME, AWAY], d, [0, "ln 2"])
    ],
    "lift_metric_pair": lambda d: om.guarantees.lift_metric_pair(PREMISE, HOME, AWAY, d),
    "lift_metric_pair of a divergence": lambda d: om.guarantees.lift_metric_pair(
        RATE, HOME, AWAY, d
    ),
    "epsilon": lambda d: om.measures.epsilon(M, d),
    "delta": lambda d: om.measures.delta(M, 0.1, d),
    "epsilon_for_delta": lambda d: om.measures.epsilon_for_delta(M, 0.1, d),
    "distortion": lambda d: om.measures.distortion(M, HOME, d),
    "expected_loss": lambda d: om.measures.expected_loss(M, HOME, d),
    "worst_loss": lambda d: om.measures.worst_loss(M, d),
    "point_epsilon": lambda d: om.divergences.point_epsilon(M, "kl", d),
    "optimal_attack": lambda d: om.attacks.optimal_attack(M, HOME, d).error,
    "bayesian": lambda d: om.attacks.bayesian(M, HOME, d).error,
    "prior_free": lambda d: om.attacks.prior_free(M, d).error,
    "minimax": lambda d: om.attacks.minimax(M, d).error,
    "evaluate": lambda d: om.attacks.evaluate(M, np.eye(3), HOME, distance=d).error,
    "exponential": lambda d: om.mechanisms.exponential(LINE, 1, d).matrix.tolist(),
    "restricted_laplace": lambda d: om.mechanisms.restricted_laplace(
        LINE, 1, 2, distance=d
    ).matrix.tolist(),
    "tupling": lambda d: om.mechanisms.tupling(M, 2).expected_loss(HOME, d),
    "powered": lambda d: om.losses.powered(d, 2)(LINE, LINE).tolist(),
    "with_suppression": lambda d: om.losses.with_suppression(d, 1)(
        LINE, om.observables.suppressible(LINE)
    ).tolist(),
    "problem": lambda d: om.Problem(HOME, d).loss_matrix.tolist(),
    "random_walk": lambda d: om.traces.MarkovPrior.random_walk(LINE, d, 1.0).transitions.tolist(),
}


@pytest.mark.parametrize("name", TAKE_A_DISTANCE)
def test_a_distance_is_a_function_an_array_or_a_table(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    use = TAKE_A_DISTANCE[name]
    table = pandas.DataFrame(APART, index=list("abc"), columns=list("abc"))
    by_array = use(APART)
    assert use(KM) == by_array
    assert use(APART.tolist()) == by_array
    assert use(table.loc[list("cab"), list("bca")]) == by_array


def test_extended_epsilon_takes_the_longest_moves_or_a_distance_between_secrets() -> None:
    """From (1, 1, 2)/4 to (0, 3, 1)/4 a quarter moves by 1 and a quarter by 2: W_∞ = 2."""
    pair = [HOME, AWAY]
    spent = om.measures.distribution_epsilon(M, HOME, AWAY)
    between = np.array([[0, 2], [2, 0]])
    assert om.distributional.extended_epsilon(M, pair, between) == pytest.approx(spent / 2)
    assert om.distributional.extended_epsilon(M, pair, KM) == pytest.approx(spent / 2)


@pytest.mark.parametrize("name", ["wasserstein", "barycenter", "optimal_target"])
def test_a_function_of_domains_needs_priors(name: str) -> None:
    plain = {
        "wasserstein": lambda: om.transport.wasserstein([1, 1], [1, 2], KM),
        "barycenter": lambda: om.transport.barycenter([[1, 1], [1, 2]], KM),
        "optimal_target": lambda: om.mechanisms.optimal_target([[1, 1]], KM),
    }
    with pytest.raises(om.ProblemError, match=r"distance: is a function of two domains.*om\.Prior"):
        plain[name]()


def test_distances_have_one_keyword() -> None:
    """A quarter by 1 and a quarter by 2; the barycentre halves that."""
    found = om.transport.wasserstein(a=HOME, b=AWAY, distance=APART, p=1)
    assert found.value == pytest.approx(3 / 4, abs=1e-15)
    mean = om.transport.barycenter(lams=[HOME, AWAY], distance=APART, weights=None)
    assert mean.value == pytest.approx(3 / 8, abs=1e-12)
    made = om.mechanisms.coupling(inputs=[HOME], target=HOME, distance=APART, p=1)
    assert made[0].matrix.tolist() == np.eye(3).tolist()
    best = om.mechanisms.optimal_target(
        inputs=[HOME, AWAY], distance=APART, epsilon=0.0, weights=None
    )
    assert best.loss == pytest.approx(3 / 8, abs=1e-12)


@pytest.mark.parametrize("value", [0.5, "1/2", Fraction(1, 2), np.float64(0.5)])
def test_rates_are_numbers_texts_and_fractions(value: object) -> None:
    half = om.mechanisms.randomized_response(LINE, 0.5).matrix.tolist()
    assert om.mechanisms.randomized_response(LINE, value).matrix.tolist() == half
    assert om.measures.delta(M, value) == om.measures.delta(M, 0.5)
    assert om.MetricPrivacy(value, KM).epsilon.factor == Fraction(1, 2)
    trace = om.traces.GaussianPrior([0.0, 1.0], om.traces.rbf(1.0))
    found = om.traces.calibrate(trace, value, [0], 0.5, 2.0)
    assert found == om.traces.calibrate(trace, 0.5, [0], 0.5, 2.0)


def test_a_sweep_without_a_directory_says_where_its_results_are() -> None:
    problem = om.Problem(HOME, KM, constraints=[om.MetricPrivacy(1, KM)])
    found = om.sweep(problem, {"constraints[0].epsilon": [0.5, 1.0]}, workers=1)
    assert [row["status"] for row in found.rows] == ["optimal", "optimal"]
    losses = [row["loss"] for row in om.SweepResult.load(found.directory).rows]
    assert losses == [row["loss"] for row in found.rows]
    assert losses[0] > losses[1] > 0


MODULES = (
    "attacks", "distances", "distributional", "divergences", "exchange", "frontier", "guarantees",
    "leakage", "losses", "measures", "mechanisms", "observables", "plots", "prices",
    "estimate", "traces", "transport",
)  # fmt: skip
PAIRS = ({"lam0", "lam1"}, {"a", "b"}, {"p", "q"}, {"low", "high"})
"""Two distributions, or the two ends of an interval, count as one argument."""
PROMISED = {
    # (trace, noise or ε, secrets, radius, order): docs and the paper's own order
    "traces.calibrate", "traces.optimal_noise", "traces.privacy_loss", "traces.worst_subset",
    # in the published contract
    "mechanisms.coupling", "mechanisms.optimal_target",
    # with the same arguments as ``coupling``
    "mechanisms.coupling_design",
}  # fmt: skip
RESULTS = {
    "LeastEpsilon", "SweepResult", "Design", "CheckReport", "Attack", "Pairwise", "AttackSuccess",
    "Price", "PairPrice", "Tightest", "HockeyStick", "Coupling", "Violation", "Barycenter",
    "TargetDesign", "Tupling", "Interval", "Fit", "TraceLoss", "GaussianNoise", "RobustNoise",
    "IntervalLoss", "WorstSubset", "Leakage", "AdversaryReport", "Series", "Step",
    "ProtectedTrace", "Guarantee", "TriangleReport", "Profile",
    "CellSequence", "CarryOver", "Everywhere",
    "Capacity", "Frequencies", "Hyper", "PriorEstimate", "Refinement", "Repeated",
    "ShannonCapacity",
}  # fmt: skip
"""Records that functions return; their fields are given by name or not at all."""
STATED = {name for name in OWN if name.endswith(("Privacy", "Bound", "Distortion"))}
"""Constraints, whose arguments are published in this order."""


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    places: list[tuple[str, object]] = [(name, getattr(om, name)) for name in sorted(OWN)]
    for module in MODULES:
        found = getattr(om, module)
        places += [(f"{module}.{name}", getattr(found, name)) for name in names_of(found)]
    for name, value in places:
        last = name.split(".")[-1]
        if isinstance(value, ModuleType) or not callable(value) or last in STATED:
            continue
        if not inspect.isclass(value):
            yield name, value
            continue
        if issubclass(value, Exception) or getattr(value, "_is_protocol", False):
            continue
        if last not in RESULTS:
            yield name, value
        for method, member in vars(value).items():
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not method.startswith("_") and inspect.isfunction(plain):
                yield f"{name}.{method}", getattr(value, method)


@each(("name", "function"), list(functions()), ids=lambda v: v if isinstance(v, str) else "")
def test_few_arguments_go_by_position_and_no_truth_value_does(
    name: str, function: Callable[..., object]
) -> None:
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in positional if isinstance(p.default, bool)] == []
    given = {p.name for p in positional}
    count = len(given) - sum(pair <= given for pair in PAIRS)
    assert name in PROMISED or count <= 3, sorted(given)


KINDS = {"Mechanism": om.Mechanism, "Prior": om.Prior, "Domain": om.Domain, "bool": bool}


OTHERS = {
    "Design": om.solve(om.Problem(HOME, KM, constraints=[om.DifferentialPrivacy("ln 3")])),
    "Problem": om.Problem(HOME, KM),
    "Grid": om.Grid(2, 2),
    "GaussianPrior": om.traces.GaussianPrior([0.0, 1.0], om.traces.rbf(1.0)),
    "Callable[[Any], Kernel]": om.traces.rbf,
}


def of_a_kind() -> Iterator[tuple[str, Callable[..., object], str, str]]:
    """Public functions with an argument that is a mechanism, a prior, a domain or a truth value
    and nothing else."""
    for module in (getattr(om, name) for name in om.__all__):
        if not isinstance(module, ModuleType):
            continue
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function):
                continue
            for k, p in inspect.signature(function).parameters.items():
                kind, *more = words_of(p.annotation).split(" | ")
                if kind in KINDS and set(more) <= {"None"}:
                    yield f"{module.__name__}.{name}({k})", function, k, kind


@each(("words", "function", "at", "kind"), list(of_a_kind()))
@each("wrong", [3, "euclidean", [1, 2, 3], np.eye(3), object(), HOME, LINE, M])
def test_what_is_no_such_thing_is_refused_by_name(
    words: str, function: Callable[..., object], at: str, kind: str, wrong: object
) -> None:
    if isinstance(wrong, KINDS[kind]):
        return
    fitting = {"Mechanism": M, "Prior": HOME, "Domain": LINE, "str": "file.csv", **OTHERS}
    given = {}
    for name, p in inspect.signature(function).parameters.items():
        first = words_of(p.annotation).split(" | ")[0]
        if p.default is inspect.Parameter.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            given[name] = fitting.get(first, 1)
    # numbers may be meant for a mechanism or a prior: tests/test_numbers_taken.py
    numbers = isinstance(wrong, list | np.ndarray) and kind in ("Mechanism", "Prior")
    if numbers and isinstance(wrong, np.ndarray) == (kind == "Mechanism"):
        return
    with pytest.raises(om.ProblemError) as caught:
        function(**(given | {at: wrong}))
    assert str(caught.value).startswith(f"{at}: ")
    if numbers:
        return
    words = "truth value" if kind == "bool" else kind
    assert f"is not a {words}" in str(caught.value)


def test_a_design_counts_as_its_mechanism() -> None:
    design = om.solve(om.Problem(HOME, KM, constraints=[om.DifferentialPrivacy("ln 3")]))
    other = om.solve(om.Problem(HOME, KM, constraints=[om.DifferentialPrivacy("ln 2")]))
    for use in (
        om.measures.epsilon,
        om.leakage.maximal_leakage,
        lambda m: om.attacks.optimal_attack(m, HOME, KM).error,
        lambda m: om.leakage.shannon_leakage(m, HOME).lower,
        lambda m: om.divergences.point_epsilon(m, "kl"),
        lambda m: om.distributional.pairwise_epsilon(m, [HOME, AWAY]).worst,
        lambda m: om.exchange.to_frame(m).to_numpy().tolist(),
    ):
        assert use(design) == use(design.mechanism)
    plain = om.leakage.refines(design.mechanism, other.mechanism)
    assert om.leakage.refines(design, other).gap == plain.gap


def test_the_right_order_is_told() -> None:
    """Other libraries take the prior first."""
    with pytest.raises(om.ProblemError, match="The arguments are m, prior, in this order"):
        om.measures.bayes_vulnerability(HOME, M)
    with pytest.raises(om.ProblemError, match=r"om\.Domain\.range\(10\)"):
        om.mechanisms.geometric(10, 0.7)
    with pytest.raises(om.ProblemError, match=r"om\.Domain\.range\(3\)"):
        om.Prior.uniform(3)
    with pytest.raises(om.ProblemError, match="a prior is another argument"):
        om.measures.bayes_vulnerability(np.array([0.5, 0.5]), np.eye(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "hamming", "haversine"])
def test_a_distance_by_its_name_or_before_it_is_called(name: str) -> None:
    for wrong in (name, getattr(om.distances, name)):
        for use in (
            lambda d: om.measures.epsilon(M, d),
            lambda d: om.Problem(HOME, d),
            lambda d: om.MetricPrivacy(1, d),
            lambda d: om.LossBound(1, d),
            lambda d: om.attacks.optimal_attack(M, HOME, d),
        ):
            with pytest.raises(om.ProblemError, match=rf"{name}\(\)"):
                use(wrong)


def test_an_unknown_objective_lists_those_there_are() -> None:
    with pytest.raises(om.ProblemError) as caught:
        om.Problem(HOME, KM, objective="least")  # type: ignore[arg-type]
    listed = str(caught.value).partition("Use ")[2]
    known = re.split(r", | or ", listed)
    assert known == ['"expected_loss"', '"worst_loss"', "MaximizeDistortion(distance)",
                     "MinimizeLeakage(gain)", "MinimizeVariance(statistic)"]  # fmt: skip
