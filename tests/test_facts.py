"""Sentences follow from what is proved: all kinds of constraints, distances, objectives and meshes,
each sentence read back and compared with numbers of its own.

Odds and what several reports promise are judged by ``referee/odds`` and ``referee/composition``;
what is said of an optimum by programs that are written here, by finer meshes, and by a search for
polynomials.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import oracle
import pytest
import scipy.sparse as sp
from altered_regions import altered
from referee import composition, odds
from scipy.optimize import linprog

import optmech as om
from optmech.designs.facts import facts_of
from optmech.designs.notes import about_bounds
from optmech.designs.sentences import figures, nearness
from optmech.problem.constraint import Constraint, kinds
from optmech.problem.promised import Promised
from optmech.show.description import described
from optmech.show.words import lead

E, H, M = om.distances.euclidean(), om.distances.hamming(), om.distances.manhattan()
UNITS = ("km", "m", "", "miles")


@pytest.mark.parametrize("name", odds.CASES)
def test_odds_are_those_of_the_distance_that_they_name(name: str) -> None:
    for unit in UNITS:
        for seed in range(4):
            rng = np.random.default_rng([47, seed])
            assert list(odds.violations(rng, name, unit)) == []


def test_every_kind_says_what_reports_promise_together() -> None:
    """Each alone, and every two of them."""
    w = composition.world(np.random.default_rng(47))
    names = [*composition.KINDS, *composition.FOR_USE]
    for chosen in itertools.chain(([name] for name in names), itertools.combinations(names, 2)):
        titles = [composition.KINDS[n](w).title for n in chosen if n in composition.KINDS]
        if len(set(titles)) == len(titles):
            assert list(composition.violations(w, list(chosen))) == []


def test_no_kind_is_forgotten() -> None:
    w = composition.world(np.random.default_rng(1))
    made = [make(w).constraint for make in composition.KINDS.values()]
    made += [make(w) for make in composition.FOR_USE.values()]
    assert {own.kind for own in made} >= set(kinds()) - {"partition_privacy"}


def test_a_new_kind_promises_nothing_by_itself() -> None:
    assert Constraint.promised(om.DifferentialPrivacy(1), None) == Promised()  # type: ignore[arg-type]
    assert Promised().repeats == "unknown"
    assert Promised().ratio is None


# what does not compose: two reports tell more than twice what one does


def test_pointwise_leakage_grows_without_end() -> None:
    """One report leaks ln 2 at most; of two (left, right) is certain to be of the rare one."""
    prior, rows = np.array([0.02, 0.49, 0.49]), np.array([[0.5, 0.5], [1, 0], [0, 1]])

    def leaks(matrix: np.ndarray) -> float:
        return float(np.log((matrix / (prior @ matrix)).max()))

    assert leaks(rows) <= np.log(2)
    assert leaks(composition.together(rows, 2)) > 3.9


def test_distributions_are_told_apart_by_two_reports_that_tell_nothing() -> None:
    """Two bits and their exclusive or; one bit is said, the other the next time."""
    rows = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]) / 2
    laws = np.array([[1, 0, 0, 1], [0, 1, 1, 0]]) / 2
    one, two = laws @ rows, laws @ composition.together(rows, 2)
    assert np.array_equal(one[0], one[1])
    assert ((two[0] > 0) & (two[1] == 0)).any()


# objectives over finitely many secrets

PLACES = om.Domain(range(3), [[0.0, 0.0], [0.6, 0.8], [1.5, 0.2]], "km")
PRIOR = om.Prior(PLACES, [0.5, 0.3, 0.2])
LAWS = [([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])]
FINITE: dict[str, list[Constraint]] = {
    "metric": [om.MetricPrivacy(1, E)],
    "manhattan": [om.MetricPrivacy(1, M)],
    "threshold": [om.MetricPrivacy(1, E, threshold=1.2)],
    "metric, delta": [om.MetricPrivacy(1, E, delta=0.05)],
    "differential": [om.DifferentialPrivacy("ln 3")],
    "policy graph": [om.constraints.PolicyGraph(1, [(0, 1)])],
    "pointwise": [om.constraints.PointwiseMaximalLeakage(0.6)],
    "maximal": [om.constraints.MaximalLeakage(0.6)],
    "capacity": [om.constraints.AdditiveCapacity(0.5)],
    "ratios": [om.Ratios([[0, 1, np.inf], ["ln 2", 0, 1], [2, 1, 0]], title="mine")],
    "linear": [om.Linear([1, 0, 0], upper=0.9, per="secret", title="mine"), om.MetricPrivacy(1, E)],
    "distribution": [om.DistributionPrivacy(0.4, LAWS)],
    "pufferfish": [om.constraints.Pufferfish(0.4, LAWS)],
    "gain": [om.constraints.GainLeakage(0.6)],
    "distortion": [om.DistortionPrivacy(0.3, E)],
    "loss": [om.LossBound(0.4)],
    "bias and metric": [om.constraints.Bias(0.5), om.MetricPrivacy(2, E)],
    "support and loss": [om.Support.within(E, 1.2), om.LossBound(0.2)],
    "gain and metric": [om.constraints.GainLeakage(0.6), om.MetricPrivacy(1, E)],
    "impossible": [om.MetricPrivacy(0.1, E), om.LossBound(0.05)],
}
OBJECTIVES = {
    "expected": "expected_loss",
    "worst": "worst_loss",
    "attack": om.MaximizeDistortion(E),
    "guess": om.MinimizeLeakage(),
}
_NEAR = 1e-6


def _finite(objective: str, name: str) -> om.Problem:
    goal, stated = OBJECTIVES[objective], list(FINITE[name])
    if objective in ("attack", "guess") and not any(own.limits_loss for own in stated):
        stated.append(om.LossBound(0.6))
    return om.Problem(PRIOR, E, objective=goal, constraints=stated)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_said_of_an_optimum_is_one(objective: str, name: str) -> None:
    problem = _finite(objective, name)
    design, best = om.solve(problem), oracle.optimum(problem)
    said = lead(design, "euclidean")
    if design.status == "infeasible":
        assert best is None
        count = len(problem.constraints)
        kept = "the constraint" if count == 1 else f"all {count} constraints"
        assert said.endswith(f"No mechanism with these reports keeps {kept}.")
        return
    assert best is not None
    assert design.status == "optimal"
    word = "largest" if objective == "attack" else "least"
    assert nearness(design) == f"the {word} possible"
    assert design.objective == pytest.approx(best, rel=_NEAR, abs=_NEAR)
    for own in figures(design):
        shown = getattr(design, own.field)
        assert own.value == shown
        if own.why.startswith("no mechanism"):
            beyond = best - shown if objective != "attack" else shown - best
            assert beyond >= -_NEAR, own
        elif own.why and own.known:
            # the loss at this distortion or leakage, by a program that asks for as much
            assert own.field == "lower_bound"
            at_least = {
                "attack": om.DistortionPrivacy(design.objective * (1 - _NEAR), E),
                "guess": om.constraints.GainLeakage(design.objective * (1 + _NEAR)),
            }[objective]
            others = [own for own in problem.constraints if own.kind != "loss_bound"]
            there = oracle.optimum(om.Problem(PRIOR, E, constraints=[*others, at_least]))
            assert there is not None
            assert shown <= there + 1e-4, own
    if objective in ("attack", "guess"):
        # what the number is not of is not said of it
        assert not any(own.field == "loss" and own.why for own in figures(design))
        assert "lower bound is on the loss at this" in " ".join(about_bounds(design))


# meshes: lines, roads, regions of degree 1 and 2, in the plane and on the globe

_LIMITED = re.compile(r"\b(?:are|is) (?:linear|a polynomial|polynomials)")


def _line(cells: int, kind: str, beside: float | None = None) -> om.Problem:
    """Half of the prior at either end, low or high is reported."""
    mesh = om.Mesh.line(0, 1, cells)
    x = mesh.vertices[:, 0]
    weights = np.zeros(cells + 1)
    weights[[0, -1]] = 0.5
    cost = np.abs(x[:, None] - [0.0, 1.0])
    stated: Constraint = om.MetricPrivacy(4, everywhere=mesh)
    if kind == "differential":
        stated = om.DifferentialPrivacy(2, everywhere=mesh)
    more = [] if beside is None else [om.LossBound(beside, cost)]
    return om.Problem(
        om.Prior(mesh.domain, weights), cost, om.Domain(["low", "high"]),
        constraints=[stated, *more],
    )  # fmt: skip


def _roads(pieces: int, beside: float | None = None) -> om.Problem:
    """Two roads that cross, cut into pieces."""
    ends = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    vertices, edges = [ends[0]], []
    for end in ends[1:]:
        last = 0
        for k in range(1, pieces + 1):
            vertices.append(end * k / pieces)
            edges.append((last, len(vertices) - 1))
            last = len(vertices) - 1
    lengths = np.full(len(edges), 1 / pieces)
    roads = om.Network(np.array(vertices), edges, lengths=lengths, unit="km")
    tips = [pieces, 2 * pieces, 3 * pieces]
    weights = np.zeros(len(vertices))
    weights[tips] = 1 / 3
    cost = roads.apart[:, tips]
    more = [] if beside is None else [om.LossBound(beside, cost)]
    return om.Problem(
        om.Prior(roads.domain, weights), cost, om.Domain(["a", "b", "c"]),
        constraints=[om.MetricPrivacy(3, everywhere=roads), *more],
    )  # fmt: skip


def _region(width: float, degree: int = 1, beside: float | None = None) -> om.Problem:
    mesh = om.Mesh.grid((0, 0, 1, 1), width, degree=degree)
    places = om.Domain(range(4), [[0, 0], [1, 1], [0.5, 0.5], [1, 0]])
    more = [] if beside is None else [om.LossBound(beside, E)]
    stated = om.MetricPrivacy(4, E, everywhere=mesh)
    return om.Problem(om.Prior.uniform(places), E, constraints=[stated, *more])


def _globe(width: float, beside: float | None = None) -> om.Problem:
    mesh = om.Mesh.grid((8, 47, 8.1, 47.1), width, coordinates="lonlat")
    places = om.Domain.geographic(range(3), [[8, 47], [8.1, 47.1], [8.05, 47]])
    arc = om.distances.haversine()
    more = [] if beside is None else [om.LossBound(beside, arc)]
    stated = om.MetricPrivacy(0.4, everywhere=mesh)
    return om.Problem(om.Prior.uniform(places), arc, constraints=[stated, *more])


Made = Callable[[bool, float | None], om.Problem]
MESHES: dict[str, tuple[str, Made]] = {
    "line": ("linear on every segment", lambda fine, q: _line(16 if fine else 1, "metric", q)),
    "line, differential": (
        "linear on every segment", lambda fine, q: _line(4 if fine else 1, "differential", q)
    ),
    "roads": ("linear on every segment", lambda fine, q: _roads(8 if fine else 1, q)),
    "region": ("linear in every triangle", lambda fine, q: _region(0.5 if fine else 1, 1, q)),
    "region of degree 2": (
        "polynomials of degree 2 in every triangle",
        lambda fine, q: _region(0.5 if fine else 1, 2, q),
    ),
    "globe": ("linear in every triangle", lambda fine, q: _globe(4 if fine else 12, q)),
}  # fmt: skip


@cache
def _solved(name: str, fine: bool, limit: float | None = None) -> om.Design:
    return om.solve(MESHES[name][1](fine, limit), gap=1e-6)


def _said(design: om.Design) -> Iterator[str]:
    """All that is said of how good it is."""
    yield lead(design, "absolute")
    yield design.reason
    if design.status != "infeasible":
        yield nearness(design)
        yield from about_bounds(design)
        yield from (own.why for own in figures(design))


def _of_all(sentence: str) -> Iterator[str]:
    """The parts of a sentence that compare with every mechanism there is."""
    for part in re.split(r"[;.] ", sentence):
        told = re.search(r"(?:all|every|no) mechanisms?\b", part, re.IGNORECASE)
        if told and not _LIMITED.search(part):
            yield part


def _within(part: str) -> float | None:
    """The factor of the least that a part of a sentence claims."""
    if found := re.search(r"within ([\d.]+) % of the least", part):
        return 1 + float(found[1]) / 100
    if found := re.search(r"at most ([\d.e+]+) times the least", part):
        return float(found[1])
    return 1.0 if "the least" in part else None


@pytest.mark.parametrize("name", MESHES)
def test_what_is_best_on_a_mesh_is_not_said_to_be_best_of_all(name: str) -> None:
    form, _ = MESHES[name]
    coarse, fine = _solved(name, False), _solved(name, True)
    assert coarse.verified
    assert fine.verified
    if name != "line, differential":
        # whoever reads that nothing has less is shown one that has
        assert fine.loss < coarse.bound * (1 - 1e-3)
    for design in (coarse, fine):
        assert f"all mechanisms with these reports that are {form} of this mesh" in nearness(design)
        for sentence in _said(design):
            for part in _of_all(sentence):
                factor = _within(part)
                if factor is not None:
                    # the mechanism of the finer mesh is one of all
                    assert design.loss <= factor * fine.loss * (1 + 1e-9), part
        for own in figures(design):
            if own.why.startswith("no mechanism") and not _LIMITED.search(own.why) and own.known:
                assert own.value <= fine.loss * (1 + 1e-9), own


@pytest.mark.parametrize("name", [name for name in MESHES if name != "line, differential"])
def test_what_no_mechanism_of_a_mesh_keeps_one_of_a_finer_mesh_does(
    name: str, tmp_path: Path
) -> None:
    form, _ = MESHES[name]
    limit = (_solved(name, False).loss + _solved(name, True).loss) / 2
    none, one = _solved(name, False, limit), _solved(name, True, limit)
    assert none.status == "infeasible"
    assert one.verified
    assert one.loss <= limit * (1 + 1e-9)
    none.save(tmp_path / "none.json")
    again = om.Design.load(tmp_path / "none.json")
    shown = described(tmp_path / "none.json")
    assert again.reason == none.reason
    with pytest.raises(om.InfeasibleError) as raised:
        _ = none.mechanism
    singular = form.replace("polynomials", "a polynomial")
    for sentence in (none.reason, repr(none), str(raised.value), dict(shown.more)["infeasible"]):
        assert f"among all mechanisms with these reports that are {form} of this mesh" in sentence
    assert f"No mechanism with these reports that is {singular} of this mesh" in lead(
        none, "absolute"
    )
    assert "on a finer mesh there may be one" in lead(none, "absolute")
    assert shown.promise.scope == "use"
    om.report(none, tmp_path / "none.html")
    page = (tmp_path / "none.html").read_text(encoding="utf-8")
    assert f"No mechanism with these reports that is {singular} of this mesh" in page


def test_what_no_mechanism_of_any_form_keeps_is_said_to_be_that() -> None:
    """A loss below that of the best reports, on whatever mesh."""
    problem = _line(1, "metric")
    limits = [*problem.constraints, om.LossBound(0.25, problem.loss_matrix + 0.5)]
    design = om.solve(
        om.Problem(problem.prior, problem.loss_matrix, problem.observables, constraints=limits)
    )
    assert design.status == "infeasible"
    assert facts_of(design.problem, design).among.form == "all"
    assert lead(design, "absolute").endswith(
        "No mechanism with these reports keeps all 2 constraints."
    )


def test_the_best_on_a_line_is_the_best_of_a_program_over_its_vertices() -> None:
    for cells in (1, 3, 16):
        problem = _line(cells, "metric")
        design, n = om.solve(problem), cells + 1
        rows = []
        for a, b in itertools.chain(
            zip(range(cells), range(1, n), strict=True), zip(range(1, n), range(cells), strict=True)
        ):
            for o in range(2):
                # neighbours differ by ε ℓ of the smaller one
                for less in (a, b):
                    row = np.zeros((n, 2))
                    row[a, o], row[b, o] = 1, -1
                    row[less, o] -= 4 / cells
                    rows.append(row.ravel())
        total = np.kron(np.eye(n), np.ones(2))
        weights = np.zeros(n)
        weights[[0, -1]] = 0.5
        x = np.linspace(0, 1, n)
        cost = weights[:, None] * np.abs(x[:, None] - [0.0, 1.0])
        found = linprog(cost.ravel(), np.array(rows), np.zeros(len(rows)), total, np.ones(n))
        assert design.bound == pytest.approx(found.fun, rel=1e-6)


def test_a_polynomial_with_coefficients_below_0_is_better_than_the_best_that_is_checked() -> None:
    """Quadratics found by a program over some points of the triangles that asks for a little more
    than is promised, so that they are private at thousands of others too."""
    design = _solved("region of degree 2", False)
    mesh, epsilon = design.mesh, 4.0
    assert mesh is not None
    places = design.problem.secrets.points
    rng = np.random.default_rng(47)
    inside = _inside(mesh, np.array([(i, j, 14 - i - j) for i in range(15) for j in range(15 - i)]))
    value, slopes = _values(mesh, inside)
    angles = 2 * np.pi * np.arange(24) / 24
    rows = [np.cos(t) * slopes[0] + np.sin(t) * slopes[1] - 0.98 * epsilon * value for t in angles]
    reports, controls = len(places), mesh.rows
    limits = sp.kron(sp.eye(reports), sp.csr_array(np.vstack(rows)), format="csr")
    at_places = np.asarray(mesh.interpolation(places).todense())
    away = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    cost = (at_places.T @ (away / len(places))).T.ravel()
    total = sp.kron(np.ones((1, reports)), sp.eye(controls), format="csr")
    found = linprog(cost, limits, np.zeros(limits.shape[0]), total, np.ones(controls), (None, None))
    coefficients = found.x.reshape(reports, controls)
    # at other points: above 0, sums one, and as steep as is allowed
    value, slopes = _values(mesh, _inside(mesh, rng.dirichlet([0.5, 0.5, 0.5], 2000)))
    p = value @ coefficients.T
    steep = np.hypot(*(slope @ coefficients.T for slope in slopes))
    assert p.min() > 0
    assert np.allclose(p.sum(axis=1), 1)
    assert (steep <= epsilon * p).all()
    assert coefficients.min() < 0
    assert found.fun < design.bound * 0.97
    for sentence in (lead(design, "euclidean"), nearness(design), about_bounds(design)[0]):
        assert "with Bernstein coefficients that meet the condition checked" in sentence


def _inside(mesh: om.Mesh, weights: np.ndarray) -> np.ndarray:
    """Points of every triangle with these weights of its corners, a little away from its sides."""
    shares = weights / weights.sum(axis=1, keepdims=True) * 0.9998 + 0.0002 / 3
    return np.concatenate([shares @ mesh.vertices[t] for t in mesh.triangles])


def _values(mesh: om.Mesh, points: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """What coefficients count for in values and slopes there; central differences of quadratics
    are exact."""
    step = 1e-5

    def at(x: float, y: float) -> np.ndarray:
        return np.asarray(mesh.interpolation(points + np.array([x, y])).todense())

    slopes = [at(step, 0) - at(-step, 0), at(0, step) - at(0, -step)]
    return at(0, 0), [slope / (2 * step) for slope in slopes]


def test_constraints_beside_the_promise_are_named() -> None:
    """A line: with the other constraint the least is 0.4, without it less."""
    alone = _solved("line", True)
    stated = [*alone.problem.constraints, om.constraints.GainLeakage(0.6)]
    problem = alone.problem
    design = om.solve(
        om.Problem(problem.prior, problem.loss_matrix, problem.observables, constraints=stated)
    )
    assert alone.loss < design.lower_bound
    first, second = about_bounds(design)[:2]
    assert "and keep all 2 constraints" in first
    assert "private at every point and satisfies constraints[1]" in second
    whys = {own.field: own.why for own in figures(design)}
    assert (
        whys["lower_bound"]
        == "no mechanism with these reports that keeps all 2 constraints can have less"
    )


@pytest.mark.parametrize("power", [0.5, 1, 1.5, 2, 3, 4])
@pytest.mark.parametrize("differential", [True, False])
def test_a_worst_loss_of_losses_that_count_as_linear_is_called_that(
    power: float, differential: bool
) -> None:
    """The worst loss of the released mechanism at 20,001 numbers of the line: where it is another
    number than the design's, every sentence about it says what counts, and nothing of all."""
    line, ends = om.Mesh.line(0, 1, 4), om.Domain(["low", "high"], points=[[0.0], [1.0]])
    promise = (
        om.DifferentialPrivacy(3, everywhere=line)
        if differential
        else om.MetricPrivacy(4, E, everywhere=line)
    )
    loss = om.losses.powered(E, power) if power != 1 else E
    prior = om.Prior(line.domain, [0.5, 0, 0, 0, 0.5])
    design = om.solve(om.Problem(prior, loss, ends, objective="worst_loss", constraints=[promise]))
    t, vertices = np.linspace(0, 1, 20_001), np.linspace(0, 1, 5)
    rows = np.stack([np.interp(t, vertices, design.mechanism.matrix[:, o]) for o in range(2)], 1)
    worst = float((rows * np.stack([t**power, (1 - t) ** power], 1)).sum(axis=1).max())
    differs = abs(worst - design.loss) > 1e-6 * design.loss
    assert not differs or power not in (1, 2)
    said = [lead(design, "powers"), nearness(design)]
    said += [own.why for own in figures(design) if own.field != "lower_bound"]
    if differs:
        assert all("count" in part for part in said if "least" in part or "can have less" in part)
        assert next(figures(design)).why
        assert [part for sentence in said for part in _of_all(sentence) if _within(part)] == []


def test_sums_of_coordinates_over_degrees_have_no_odds() -> None:
    """A degree of longitude is no length by itself: on one parallel far from the equator places are
    farther apart on the flat map than on the ground."""
    box = om.Grid(8, 2, bounds=(0, 0, 10, 80))
    promise = om.MetricPrivacy("1/400", M)
    design = om.solve(om.Problem(om.Prior.uniform(box), E, constraints=[promise]), gap=0.1)
    assert design.promise.odds == {}
    assert "Manhattan" not in design.promise.odds_words


@pytest.mark.parametrize(("unit", "per"), [("km", " per km"), ("", " per unit of euclidean")])
def test_a_brief_promise_says_what_it_is_per(unit: str, per: str) -> None:
    places = om.Domain("abc", points=[[0, 0], [1, 0], [3, 0]], unit=unit)
    design = om.solve(om.Problem(om.Prior.uniform(places), E, constraints=[om.MetricPrivacy(1, E)]))
    assert f"ε = 1{per}" in design.promise.brief


def _infeasible(limit: float, mesh: str, objective: str = "expected_loss") -> om.Design:
    """Less loss than there is, at the vertices of a mesh already or on this mesh alone."""
    given: Any = om.Mesh.grid((0, 0, 2, 2), 1) if mesh == "region" else om.Mesh.line(0, 2, 3)
    kind = om.DifferentialPrivacy if mesh == "line, differential" else om.MetricPrivacy
    wanted = [kind(2, everywhere=given), om.LossBound(limit)]
    prior = om.Prior.uniform(given.domain)
    return om.solve(om.Problem(prior, E, constraints=wanted, objective=objective))


@pytest.mark.parametrize(
    ("mesh", "limit", "objective", "everywhere"),
    [
        ("line", 0.2, "expected_loss", True),
        ("line", 0.2, "worst_loss", True),
        ("line", 0.4, "expected_loss", False),
        ("line, differential", 0.2, "expected_loss", True),
        ("line, differential", 0.2, "worst_loss", True),
        ("region", 0.2, "expected_loss", True),
        ("region", 0.7, "expected_loss", False),
    ],
)
def test_no_finer_mesh_is_named_where_the_vertices_alone_refute_all(
    mesh: str, limit: float, objective: str, everywhere: bool, tmp_path: Path
) -> None:
    """Whether a program over the vertices, written here, has a mechanism decides what is said."""
    design = _infeasible(limit, mesh, objective)
    problem, secrets = design.problem, design.problem.secrets
    apart = om.distances.euclidean()(secrets, secrets)
    powers = np.exp(2.0 * (apart if mesh != "line, differential" else np.ones_like(apart)))
    n, m = problem.loss_matrix.shape
    rows = []
    for i, j, o in itertools.product(range(n), range(n), range(m)):
        if i != j:
            row = np.zeros((n, m))
            row[i, o], row[j, o] = 1, -powers[i, j]
            rows.append(row.ravel())
    cost = (problem.prior.weights[:, None] * problem.loss_matrix).ravel()
    sums = np.kron(np.eye(n), np.ones(m))
    least = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(n)).fun
    assert (least > limit) is everywhere
    assert design.status == "infeasible"
    design.save(tmp_path / "none.json")
    again = om.load(tmp_path / "none.json")
    assert again.reason == design.reason
    audit.audit(str(tmp_path / "none.json"))
    om.report(design, tmp_path / "none.html")
    page = (tmp_path / "none.html").read_text(encoding="utf-8")
    shown = dict(described(tmp_path / "none.json").more)["infeasible"]
    for sentence in (design.reason, lead(design, "absolute"), shown, page):
        assert ("on a finer mesh there may be one" in sentence) is not everywhere
    assert ("no finer mesh helps" in design.reason) is everywhere
    assert (facts_of(problem, design).among.form == "all") is everywhere

    # a proof of every mechanism that proves nothing is refused by both judges
    if not everywhere or mesh == "line":
        own = json.loads((tmp_path / "none.json").read_text())["multipliers"]

        def forged(body: Any) -> None:
            body["outer"] = {"cells": None, "multipliers": {**own, "loss_limits": []}}

        wrong = altered(tmp_path / "none.json", forged)
        with pytest.raises(om.OptmechError):
            om.load(wrong)
        with pytest.raises(audit.Fault):
            audit.audit(str(wrong))
