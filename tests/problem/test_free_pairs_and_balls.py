"""Infinite distances, balls around priors, and linear inequalities beside every point, against
linear programs written from the inequalities."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from optmech_audit.constraints import to_one
from scipy.optimize import linprog

import optmech as om
from optmech.cli.main import main
from optmech.exact.number import parse_exact
from optmech.problem.gains import ball
from optmech.reading.sealed import seal

ABC = om.Prior(om.Domain("abc"), [0.5, 0.3, 0.2])
LOSS = np.random.default_rng(3).uniform(size=(3, 3))
ONE = np.eye(3)
H = om.distances.hamming()
FREE = np.array([[0, 0.7, np.inf], [np.inf, 0, 1.1], [0.4, np.inf, 0]])


def least(
    ratios: list[tuple[np.ndarray, np.ndarray, float]],
    loss: np.ndarray = LOSS,
    prior: np.ndarray = ABC.weights,
) -> float:
    """The least expected loss with (aP)(o) <= e^r (bP)(o) for all (a, b, r) and o."""
    n, rows = len(loss), []
    for (a, b, r), o in product(ratios, range(n)):
        table = np.zeros((n, n))
        table[:, o] = a - np.exp(r) * b
        rows.append(table.ravel())
    sums = np.kron(np.eye(n), np.ones(n))
    cost = (prior[:, None] * loss).ravel()
    return linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(n)).fun


def corners(weights: Sequence, radius: object) -> list:
    """Of a ball in total variation: one place receives, the others are emptied in every order."""
    found = set()
    for t, *order in permutations(range(len(weights))):
        left, masses = radius, list(weights)
        for s in order:
            moved = min(left, masses[s])
            left, masses[s], masses[t] = left - moved, masses[s] - moved, masses[t] + moved
        found.add(tuple(masses))
    return sorted(found)


@pytest.mark.parametrize("seed", range(24))
def test_corners_of_balls_are_all_and_only_these(seed: int) -> None:
    """Exactly, also where places are empty, weights equal, and the radius as large as one."""
    rng, n = np.random.default_rng(seed), 1 + seed % 6
    weights = rng.dirichlet(np.ones(n))
    if seed % 4 == 3:
        weights = rng.multinomial(8, np.ones(n) / n) / 8
    masses = [Fraction(weight) for weight in weights]
    for radius in (0, 0.05, 0.125, 0.3, 0.5, 1, 2):
        found = corners(masses, Fraction(radius))
        assert ball(weights, parse_exact(radius, where="")) == found
        assert sorted(to_one(masses, Fraction(radius))) == found


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
    same = om.constraints.PointwiseMaximalLeakage(epsilon, radius="1/10", within=H)
    assert next(iter(same.families(0, design.problem.space))).left.shape[0] == 3 * 6
    proved(solved(same), tmp_path / "h.json")
    own = [(s, np.array(q), rate) for s in ONE for q in corners(ABC.weights, 0.1)]
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
        for x, y in product(*(map(np.array, corners(side, 0.05)) for side in (a, b)))
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


def test_wide_balls_of_four_secrets() -> None:
    rng = np.random.default_rng(1)
    a, b, prior = rng.dirichlet(np.ones(4) * 0.8, 3)
    loss = rng.uniform(size=(4, 4))
    stated = om.DistributionPrivacy(0.5, [(a, b)], radius=0.3)
    design = om.solve(om.Problem(om.Prior(om.Domain("abcd"), prior), loss, constraints=[stated]))
    exact = ([Fraction(v) for v in side.tolist()] for side in (a, b))
    pairs = list(product(*(corners(side, Fraction(0.3)) for side in exact)))
    own = [
        (np.array(u, dtype=float), np.array(v, dtype=float), 0.5)
        for x, y in pairs
        for u, v in ((x, y), (y, x))
    ]
    assert len(stated.corners) == len(pairs)
    assert design.loss == pytest.approx(least(own, loss, prior), abs=1e-7)


@pytest.mark.parametrize("epsilon", [0, 5e-324, 1e-300, 1e-17, 1.5e-16, 3e-16, "1e-15", 1e-12])
def test_leakage_in_a_ball_of_tiny_rates(tmp_path: Path, epsilon: float | str) -> None:
    """Nothing is told: the best report for all."""
    stated = om.constraints.PointwiseMaximalLeakage(epsilon, radius="1/20")
    design = solved(stated)
    assert design.loss == pytest.approx((ABC.weights @ LOSS).min(), abs=1e-6)
    assert (
        stated.measured(design.mechanism, design.problem.space).measured <= float(epsilon) + 1e-15
    )
    proved(design, tmp_path / "d.json")


@pytest.mark.parametrize("kind", [om.DistributionPrivacy, om.constraints.Pufferfish])
@pytest.mark.parametrize("more", [{}, {"delta": "1/50"}])
def test_balls_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture, kind: type, more: dict
) -> None:
    """In words, in the file, and by both judges, who list the corners again."""
    stated = kind(0.5, [([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])], radius="1/20", **more)
    assert "one pair" in stated.promise(om.Problem(ABC, LOSS).space)
    assert "within 1/20 of them (total variation)" in stated.promise(om.Problem(ABC, LOSS).space)
    assert "radius=0.05" in repr(stated)
    path = tmp_path / "d.json"
    body = proved(solved(stated), path)
    del body["digest"]
    held = body["problem"]["constraints"][0]
    assert (held["radius"], len(held["pairs"])) == ("1/20", 1)
    assert main(["show", str(path)]) == 0
    assert "within 1/20" in " ".join(capsys.readouterr().out.split())
    for radius in ("1/10", -1, None, "x"):
        held["radius"] = radius
        path.write_bytes(seal(json.dumps(body).encode()))
        assert not accepted(om.check, path)
        assert not accepted(audit.audit, path)


def accepted(judge: Callable, path: Path) -> bool:
    """Whether a judge accepts a file."""
    try:
        return bool(getattr(judge(str(path)), "passed", True))
    except (audit.Fault, om.errors.VerificationError):
        return False


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
