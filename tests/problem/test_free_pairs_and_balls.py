"""Infinite distances, balls around priors, and linear inequalities beside every point, against
linear programs written from the inequalities."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from scipy.optimize import linprog

import optmech as om

ABC = om.Prior(om.Domain("abc"), [0.5, 0.3, 0.2])
LOSS = np.random.default_rng(3).uniform(size=(3, 3))
ONE = np.eye(3)
FREE = np.array([[0, 0.7, np.inf], [np.inf, 0, 1.1], [0.4, np.inf, 0]])


def least(ratios: list[tuple[np.ndarray, np.ndarray, float]]) -> float:
    """The least expected loss with (aP)(o) <= e^r (bP)(o) for all (a, b, r) and o."""
    rows = []
    for (a, b, r), o in product(ratios, range(3)):
        table = np.zeros((3, 3))
        table[:, o] = a - np.exp(r) * b
        rows.append(table.ravel())
    sums = np.kron(ONE, np.ones(3))
    cost = (ABC.weights[:, None] * LOSS).ravel()
    return linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(3)).fun


def corners(weights: np.ndarray, radius: float) -> list[np.ndarray]:
    """Of a ball that empties no place: ``radius`` is moved from one to another."""
    return [weights, *(weights + radius * (t - s) for s, t in product(ONE, ONE) if (s != t).any())]


def proved(design: om.Design, path: Path) -> dict:
    """The body of the file, which both judges accept."""
    design.save(path)
    assert om.check(path).passed
    assert audit.audit(str(path))
    assert om.load(path).problem == design.problem
    return json.loads(path.read_text())


def solved(*stated: om.Constraint) -> om.Design:
    return om.solve(om.Problem(ABC, LOSS, constraints=list(stated)))


@pytest.mark.parametrize("more", [{}, {"threshold": 0.8}, {"delta": "1/100"}])
def test_nothing_is_asked_of_pairs_at_an_infinite_distance(tmp_path: Path, more: dict) -> None:
    stated = om.MetricPrivacy("ln 2", FREE, **more)
    design = solved(stated)
    body = proved(design, tmp_path / "d.json")
    rows = body["problem"]["constraints"][0]["distance"]["secrets"]
    assert rows == [[0, 0.7, None], [None, 0, 1.1], [0.4, None, 0]]
    if not more:
        pairs = [(i, j) for i, j in product(range(3), repeat=2) if i != j and FREE[i, j] < np.inf]
        own = [(ONE[i], ONE[j], np.log(2) * FREE[i, j]) for i, j in pairs]
        assert design.loss == pytest.approx(least(own), abs=1e-7)
        assert stated.promised(design.problem.space).pairs == "listed"
        assert "at a finite distance" in stated.promise(design.problem.space)
        assert om.measures.epsilon(design.mechanism, FREE) <= np.log(2) * (1 + 1e-9)
        same = solved(om.Ratios(np.where(ONE, np.inf, FREE * np.log(2))))
        assert same.loss == pytest.approx(design.loss, abs=1e-7)


def test_a_path_is_said_to_limit_what_has_no_limit_of_its_own() -> None:
    (place, words), *_ = om.MetricPrivacy(1, FREE).notes(om.Problem(ABC, LOSS).space)
    assert place == ".distance"
    assert words.startswith("not a metric")
    assert words.endswith("by inf")
    empty = om.MetricPrivacy(1, np.where(ONE, 0, np.inf))
    assert empty.idle(om.Problem(ABC, LOSS).space)


@pytest.mark.parametrize(
    "make",
    [
        lambda: om.Problem(ABC, om.distances.matrix(FREE)),
        lambda: om.Problem(ABC, LOSS, constraints=[om.DistortionPrivacy(0.1, FREE)]),
        lambda: om.Problem(ABC, LOSS, constraints=[om.constraints.RenyiPrivacy(2, 1, FREE)]),
        lambda: om.distances.elastic([1, 1, 1], 1, distance=FREE)(ABC.domain, ABC.domain),
    ],
)
def test_nothing_else_takes_infinite_distances(make: object) -> None:
    with pytest.raises(om.ProblemError, match="infinite"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("inline", [True, False])
def test_problem_files_have_infinite_distances(tmp_path: Path, inline: bool) -> None:
    (tmp_path / "d.csv").write_text("0,0.7,inf\ninf,0,1.1\n0.4,inf,0\n")
    given = "values = [[0, 0.7, inf], [inf, 0, 1.1], [0.4, inf, 0]]" if inline else 'file = "d.csv"'
    path = tmp_path / "free.toml"
    path.write_text(
        'format = 1\nprior = "uniform"\nloss = "hamming"\n'
        '[secrets]\nkind = "labels"\nlabels = ["a", "b", "c"]\n'
        '[[constraints]]\nkind = "metric_privacy"\nepsilon = "ln 2"\n'
        f'distance = {{ kind = "matrix", {given} }}\n'
    )
    found = om.load_problem(path).constraints[0]
    assert isinstance(found, om.MetricPrivacy)
    assert np.array_equal(found.distance(ABC.domain, ABC.domain), FREE)


@pytest.mark.parametrize("epsilon", [0.4, "ln 3/2"])
def test_leakage_of_every_prior_in_a_ball(tmp_path: Path, epsilon: float | str) -> None:
    stated = om.constraints.PointwiseMaximalLeakage(epsilon, radius="1/10")
    design = solved(stated)
    rate = 0.4 if epsilon == 0.4 else np.log(1.5)
    own = [(s, q, rate) for s in ONE for q in corners(ABC.weights, 0.1)]
    assert design.loss == pytest.approx(least(own), abs=1e-7)
    kept = stated.measured(design.mechanism, design.problem.space)
    assert kept.measured <= rate * (1 + 1e-9)
    body = proved(design, tmp_path / "d.json")
    assert body["problem"]["constraints"][0]["radius"] == "1/10"
    assert "any prior within 1/10" in stated.promise(design.problem.space)


def test_distributions_in_balls(tmp_path: Path) -> None:
    a, b = [0.6, 0.2, 0.2], [0.2, 0.3, 0.5]
    design = solved(om.DistributionPrivacy(0.3, [(a, b)], radius=0.05))
    own = [
        (u, v, 0.3)
        for x, y in product(corners(np.array(a), 0.05), corners(np.array(b), 0.05))
        for u, v in ((x, y), (y, x))
    ]
    assert design.loss == pytest.approx(least(own), abs=1e-7)
    proved(design, tmp_path / "d.json")
    same = solved(om.constraints.Pufferfish(0.3, [(a, b)], radius=0.05))
    assert same.loss == pytest.approx(design.loss, abs=1e-7)
    with pytest.raises(om.ProblemError, match="scale"):
        om.DistributionPrivacy(0.3, [(a, b)], radius=0.05, scale=[2])
    wide = np.full(12, 1 / 12)
    with pytest.raises(om.ProblemError, match="corners"):
        om.DistributionPrivacy(0.3, [(wide, wide)], radius=0.01)


def test_linear_inequalities_beside_every_point(tmp_path: Path) -> None:
    """Of the vertices of a mesh a sum over the reports holds at every point."""
    places = om.Domain(range(4), [(0, 0), (1, 0), (0, 1), (1, 1)])
    mesh, far = om.Mesh.grid((0, 0, 1, 1), 1), om.distances.euclidean()
    each = om.Linear([1, 0, 0, 0], upper="3/10", per="secret")
    total = om.Linear(np.eye(4)[[0, 1, 2, 3]][:, [3, 2, 1, 0]], lower=0.7, upper=0.8)
    stated = [om.MetricPrivacy(1, far, everywhere=mesh), each, total]
    problem = om.Problem(om.Prior(places, [4, 3, 2, 1]), far, constraints=stated)
    design = om.solve(problem, gap=1e-4)
    proved(design, tmp_path / "d.json")
    matrix = design.mechanism.matrix
    assert matrix[:, 0].max() <= 0.3
    assert 0.7 <= np.trace(matrix[:, ::-1]) <= 0.8
    assert design.bound <= design.loss
    with_less = om.solve(om.Problem(problem.prior, far, constraints=stated[:2]), gap=1e-4)
    assert with_less.loss <= design.loss
