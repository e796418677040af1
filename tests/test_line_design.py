"""Designs that are private at every point of a line, against programs written again here, closed
forms and points drawn at random."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
import scipy.sparse as sp
from altered_regions import altered, last_digit, raise_figure
from scipy.optimize import linprog

import optmech as om
from optmech.cli.main import main

E = om.distances.euclidean()
LINE = om.Mesh.line(0, 1, 20, unit="km")
X = LINE.vertices[:, 0]
PAPER = {1: (0.316035, 0.3287), 2: (0.200615, 0.2133), 4: (0.076770, 0.0903)}
"""Lower bound of all mechanisms, and what mixing the rows of the grid's optimum attains: at most
(OGPM, PETS 2025, has .37754, .26894 and .11920)."""


def problem(*constraints: Any, line: Any = LINE, **more: Any) -> om.Problem:
    return om.Problem(om.Prior.uniform(line.domain), E, constraints=constraints, **more)


def own_program(factor: Any, costs: np.ndarray, worst: Any = None) -> float:
    """Least Σ costs·P, or the least level of rows ``worst``, with P[i,o] <= factor(i,j) P[j,o]."""
    n, m = costs.shape
    rows, columns, values, count = [], [], [], 0
    for i in range(n):
        for j in range(n):
            f = factor(i, j) if i != j else math.inf
            if math.isfinite(f):
                for o in range(m):
                    rows += [count, count]
                    columns += [i * m + o, j * m + o]
                    values += [1.0, -f]
                    count += 1
    for terms in worst or ():
        for place, value in [*terms, (n * m, -1.0)]:
            rows.append(count)
            columns.append(place)
            values.append(value)
        count += 1
    size = n * m + (worst is not None)
    table = sp.csr_array((values, (rows, columns)), shape=(count, size))
    sums = sp.csr_array((np.ones(n * m), (np.arange(n * m) // m, np.arange(n * m))), (n, size))
    cost = np.append(costs.ravel(), 1.0)[:size] if worst is None else np.eye(size)[-1]
    found = linprog(cost, table, np.zeros(count), sums, np.ones(n), method="highs-ipm")
    assert found.status == 0
    return float(found.fun)


def losses_along(mechanism: Any, count: int = 4001) -> float:
    """The largest mean error at many points, by interpolation of our own."""
    rows = np.array([mechanism.exactly_at([x]) for x in X.tolist()], dtype=float)
    points = np.linspace(0, 1, count)
    p = np.stack([np.interp(points, X, column) for column in rows.T], axis=1)
    assert np.allclose(p, mechanism.at(points[:, None]), rtol=0, atol=1e-14)
    return float((p * abs(points[:, None] - X)).sum(axis=1).max())


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_worst_error_of_any_real_number_is_below_that_of_the_literature(epsilon: int) -> None:
    bound, attained = PAPER[epsilon]
    promise = om.DifferentialPrivacy(epsilon, everywhere=LINE)
    design = om.solve(problem(promise, objective="worst_loss"))
    assert design.status == "optimal"
    assert design.verified
    assert design.lower_bound == pytest.approx(bound, abs=1e-6)
    assert design.loss < attained
    # no point loses more than is said, and some point nearly as much
    worst = losses_along(design.mechanism)
    assert worst <= design.loss < worst * (1 + 1e-6)
    p = design.mechanism.at(np.random.default_rng(epsilon).random((300, 1)))
    assert math.log((p.max(axis=0) / p.min(axis=0)).max()) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_worst_error_is_that_of_a_program_written_again(epsilon: int) -> None:
    cost = abs(X[:, None] - X)
    n = len(X)
    at = [[(s * n + o, cost[s, o]) for o in range(n)] for s in range(n)]
    # of the rows at 31 numbers between two vertices, and their distances to the reports
    between = [
        [((s + end) * n + o, w * abs((1 - t) * X[s] + t * X[s + 1] - X[o]))
         for end, w in ((0, 1 - t), (1, t)) for o in range(n)]
        for s in range(n - 1) for t in np.arange(1, 32) / 32
    ]  # fmt: skip
    design = om.solve(
        problem(om.DifferentialPrivacy(epsilon, everywhere=LINE), objective="worst_loss")
    )
    power = math.exp(epsilon)
    known = own_program(lambda i, j: power, cost, at + between)
    assert known * (1 - 1e-7) <= design.loss <= known * (1 + 1e-4)
    assert design.lower_bound == pytest.approx(own_program(lambda i, j: power, cost, at), 1e-6)


@pytest.mark.parametrize("cells", [5, 12])
def test_metric_privacy_is_a_program_of_neighbours(cells: int) -> None:
    line = om.Mesh.line(-1, 2, cells)
    weights = np.random.default_rng(cells).dirichlet(np.ones(cells + 1))
    places = line.vertices[:, 0]
    cost, width = weights[:, None] * abs(places[:, None] - places) ** 2, 3 / cells
    square = om.losses.powered(E, 2)
    design = om.solve(
        om.Problem(
            om.Prior(line.domain, weights),
            square,
            constraints=[om.MetricPrivacy("3/2", everywhere=line)],
        )
    )
    grown = 1 + 1.5 * width

    def near(i: int, j: int) -> float:
        return grown if abs(i - j) == 1 else math.inf

    assert design.loss == pytest.approx(own_program(near, cost), 1e-6)
    known = own_program(lambda i, j: math.exp(1.5 * width * abs(i - j)), cost)
    assert design.lower_bound == pytest.approx(known, 1e-5)
    assert design.lower_bound < design.loss


def test_random_pairs_of_numbers_keep_the_promise() -> None:
    line = om.Mesh.line(0, 3, 7)
    design = om.solve(problem(om.MetricPrivacy("ln 4", everywhere=line), line=line))
    rng = np.random.default_rng(8)
    rows = np.array([design.mechanism.exactly_at([v]) for v in line.vertices[:, 0]], dtype=float)
    x = rng.random(10_000) * 3
    # anywhere, and a millionth apart, across vertices too
    x[6000:] = np.tile(line.vertices[:, 0], 500) - 5e-7
    x = np.clip(x, 0, 3)
    y = np.r_[rng.random(5000) * 3, np.clip(x[5000:] + 1e-6, 0, 3)]
    p, q = (
        np.stack([np.interp(v, line.vertices[:, 0], c) for c in rows.T], axis=1) for v in (x, y)
    )
    allowed = math.log(4) * abs(x - y)
    assert (p <= np.exp(allowed)[:, None] * q * (1 + 1e-12)).all()
    # and is used up somewhere
    kept = design.problem.constraints[0].measured(design.mechanism, design.problem.space)
    assert kept.measured == pytest.approx(math.log(4), rel=1e-9)


def test_two_vertices_are_randomised_response() -> None:
    line = om.Mesh.line(0, 2, 1)
    given = om.Prior.uniform(line.domain)
    hamming = om.distances.hamming()
    metric = om.solve(
        om.Problem(given, hamming, constraints=[om.MetricPrivacy(3, everywhere=line)])
    )
    # rows within 1 + εℓ = 7, and e^{εℓ} = e^6 for all mechanisms
    assert metric.loss == pytest.approx(1 / 8, rel=1e-9)
    assert metric.lower_bound == pytest.approx(1 / (1 + math.exp(6)), rel=1e-6)
    assert metric.mechanism.exactly_at([1]) == (Fraction(1, 2), Fraction(1, 2))
    same = om.solve(
        om.Problem(given, hamming, constraints=[om.DifferentialPrivacy("ln 3", everywhere=line)])
    )
    assert (same.loss, same.lower_bound) == (pytest.approx(1 / 4), pytest.approx(1 / 4))
    some = om.DifferentialPrivacy("ln 3", delta="1/5", everywhere=line)
    # e^ε q + δ = p, p + q = 1
    approximate = om.solve(om.Problem(given, hamming, constraints=[some]))
    assert approximate.loss == pytest.approx((1 - 0.2) / 4, rel=1e-6)


def test_reports_are_drawn_with_the_probabilities_of_the_point() -> None:
    design = om.solve(problem(om.MetricPrivacy(8, everywhere=LINE)))
    m = design.mechanism
    p = np.array(m.exactly_at([Fraction(1, 3)]), dtype=float)
    assert sum(m.exactly_at([Fraction(1, 3)])) == 1
    k = int(np.searchsorted(X, 1 / 3)) - 1
    share = (1 / 3 - X[k]) / (X[k + 1] - X[k])
    rows = m.rows.matrix
    assert p == pytest.approx((1 - share) * rows[k] + share * rows[k + 1], rel=1e-12)
    one = np.bincount(m.sample_at(1 / 3, 20_000, seed=1), minlength=21) / 20_000
    many = np.bincount(m.draws_at(np.full((20_000, 1), 1 / 3)), minlength=21) / 20_000
    for found in (one, many):
        assert abs(found - p).max() < 5 * math.sqrt(0.25 / 20_000)
    assert isinstance(m.sample_at(0.5), int)


def test_a_file_is_read_again_and_no_altered_one(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    promises = om.MetricPrivacy(4, E, everywhere=LINE), om.DifferentialPrivacy(2, everywhere=LINE)
    design = om.solve(problem(*promises, objective="worst_loss"))
    design.save(path)
    again = om.load(path)
    assert again == design
    assert again.mechanism == design.mechanism
    assert again.total_gap == design.total_gap > 0
    assert "20 segments" in "\n".join(audit.audit(str(path)))
    assert any("every mechanism" in note for note in om.check(path).notes)
    assert main(["sample", str(path), "--at", "1/3", "-n", "3"]) == 0
    assert main(["sample", str(path), "--at", "1.5"]) == 2

    def move(body: Any) -> None:
        body["problem"]["constraints"][0]["everywhere"]["vertices"][3][0] += 2.0**-20

    def widen(body: Any) -> None:
        for part in body["problem"]["constraints"]:
            part["everywhere"]["vertices"] = [[2 * v] for (v,) in part["everywhere"]["vertices"]]

    def another(body: Any) -> None:
        body["problem"]["constraints"][1]["everywhere"]["vertices"][3][0] += 2.0**-20

    changes = [
        move, widen, another, last_digit(3), raise_figure("lower_bound", 1e-3),
        raise_figure("bound", 1e-3), raise_figure("loss", -1e-3),
        lambda body: body["outer"].update(cells=[0] * 21),
        lambda body: body.pop("outer"),
    ]  # fmt: skip
    for change in changes:
        wrong = altered(path, change)
        with pytest.raises(om.OptmechError):
            om.load(wrong)
        with pytest.raises(audit.Fault):
            audit.audit(str(wrong))


def test_a_mechanism_that_breaks_one_segment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    design = om.solve(problem(om.MetricPrivacy(4, everywhere=LINE)))
    design.save(path)
    body = json.loads(path.read_text())
    rows = body["mechanism"]["rows"]
    assert rows[3] != rows[4]

    def swapped(body: Any) -> None:
        rows = body["mechanism"]["rows"]
        rows[3], rows[9] = rows[9], rows[3]

    wrong = altered(path, swapped)
    with pytest.raises(om.VerificationError, match="too large"):
        om.load(wrong)
    with pytest.raises(audit.Fault, match="too large beside"):
        audit.audit(str(wrong))


def test_prices_are_the_slope_of_the_loss() -> None:
    def loss(epsilon: float) -> float:
        return om.solve(problem(om.MetricPrivacy(epsilon, everywhere=LINE))).loss

    design = om.solve(problem(om.MetricPrivacy(4, everywhere=LINE)))
    (price,) = om.prices.of_constraints(design)
    assert price.rate == pytest.approx((loss(4.001) - loss(3.999)) / 0.002, rel=1e-3)


def test_a_start_and_a_mechanism_of_others_are_taken(tmp_path: Path) -> None:
    stated = problem(om.MetricPrivacy(4, everywhere=LINE))
    first = om.solve(stated)
    again = om.solve(problem(om.MetricPrivacy("21/5", everywhere=LINE)), start=first)
    assert again.loss < first.loss
    assert again.lower_bound < again.loss
    equal = om.Mechanism(LINE.domain, LINE.domain, np.full((21, 21), 1 / 21))
    adopted = om.exchange.adopt(equal, stated)
    adopted.save(tmp_path / "d.json")
    assert (om.load(tmp_path / "d.json").lower_bound, adopted.verified) == (0.0, True)


def test_without_time_for_the_bound_the_mechanism_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from optmech.pipeline import meshes

    now = [0.0]
    monkeypatch.setattr(meshes.time, "monotonic", lambda: now.append(now[-1] + 1e6) or now[-1])
    design = om.solve(problem(om.MetricPrivacy(4, everywhere=LINE)), time_limit=60)
    assert design.lower_bound == 0
    assert any("in the time there was" in note for note in design.notes)
    design.save(tmp_path / "d.json")
    assert om.load(tmp_path / "d.json").loss == design.loss


def test_what_no_mechanism_can_is_proved(tmp_path: Path) -> None:
    design = om.solve(problem(om.MetricPrivacy(1, everywhere=LINE), om.LossBound(0.05)))
    assert design.status == "infeasible"
    design.save(tmp_path / "d.json")
    assert om.load(tmp_path / "d.json").status == "infeasible"
    assert "nothing on this mesh is feasible" in " ".join(audit.audit(str(tmp_path / "d.json")))


def test_limits_beside_it_are_kept() -> None:
    promise = om.MetricPrivacy(6, everywhere=LINE)
    free = om.solve(problem(promise))
    each = om.measures.worst_loss(free.mechanism, E)
    design = om.solve(problem(promise, om.LossBound(0.95 * each, worst_case=True)))
    assert om.measures.worst_loss(design.mechanism, E) <= 0.95 * each * (1 + 1e-12)
    assert free.loss <= design.loss
    # more is asked for: bounds do not fall, but for rounding
    assert free.lower_bound * (1 - 1e-12) <= design.lower_bound <= design.loss


REFUSED = {
    "where `?low": lambda: om.Mesh.line(1, 1, 3),
    "cells": lambda: om.Mesh.line(0, 1, 0),
    "at most 1,000,000": lambda: om.Mesh.line(0, 1, 10**6),
    "cells: are too many": lambda: om.Mesh.line(1, 1 + 2.0**-40, 2**15),
    "are not the 21 vertices": lambda: om.Problem(
        om.Prior.uniform(om.Domain.range(21)), E, constraints=[om.MetricPrivacy(1, everywhere=LINE)]
    ),
    "another mesh": lambda: problem(
        om.MetricPrivacy(1, everywhere=LINE),
        om.DifferentialPrivacy(1, everywhere=om.Mesh.line(0, 1, 21)),
    ),
    "measured by the euclidean": lambda: om.MetricPrivacy(
        1, om.distances.hamming(), everywhere=LINE
    ),
    "epsilon: must be above 0": lambda: om.MetricPrivacy(0, everywhere=LINE),
    "distance: is missing": lambda: om.MetricPrivacy(1),
    "lines and networks": lambda: om.DifferentialPrivacy(
        1, everywhere=om.Mesh.grid((0, 0, 1, 1), 1)
    ),
    "all points are adjacent": lambda: om.DifferentialPrivacy(1, [(0, 1)], everywhere=LINE),
    "needs a loss as objective": lambda: problem(
        om.MetricPrivacy(1, everywhere=LINE),
        om.LossBound(0.5),
        objective=om.MaximizeDistortion(E),
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_meant_is_refused(words: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        REFUSED[words]()
    assert words.replace("where `?", "") in str(caught.value)


def test_points_beyond_the_line_are_refused_and_its_ends_are_not(tmp_path: Path) -> None:
    design = om.solve(problem(om.DifferentialPrivacy(1, everywhere=LINE)))
    m = design.mechanism
    assert m.at([0.0, 1.0]).shape == (2, 21)
    for beyond in (-1e-9, 1 + 1e-12, math.nan, math.inf, "x"):
        with pytest.raises(om.ProblemError):
            m.at([0.5, beyond])
        with pytest.raises(om.ProblemError):
            m.sample_at(beyond)
    om.report(design, tmp_path / "d.html")


def test_a_table_of_numbers_is_protected() -> None:
    design = om.solve(problem(om.DifferentialPrivacy(1, everywhere=LINE)))
    pd = pytest.importorskip("pandas")
    table = {"x": [0.1, 0.25, 1.7777], "who": ["a", "b", "c"]}
    out = om.protect(design, pd.DataFrame(table), x="x", keep="who", outside="nearest",
                     keep_order=True)  # fmt: skip
    assert list(out["who"]) == ["a", "b", "c"]
    assert out["x"].isin(X).all()
    with pytest.raises(om.ProblemError, match="outside"):
        om.protect(design, pd.DataFrame(table), x="x", outside="refuse")


def test_an_interval_of_huge_and_of_tiny_numbers() -> None:
    for low, high in ((1e6, 2e6), (-3e-7, 1e-7)):
        line = om.Mesh.line(low, high, 4)
        rate = 2 / (high - low)
        design = om.solve(problem(om.MetricPrivacy(rate, everywhere=line), line=line))
        unit = om.Mesh.line(0, 1, 4)
        same = om.solve(problem(om.MetricPrivacy(2, everywhere=unit), line=unit))
        assert design.loss / (high - low) == pytest.approx(same.loss, rel=1e-5)


def test_a_nearest_number_is_that_of_the_line() -> None:
    line = om.Mesh.line(0, 1, 4)
    assert line.position(Fraction(1, 3)) == (1, (2, 1))
    assert line.position(1) == (3, (0, 1))
    assert line.position(0) == (0, (1, 0))
    assert line.position(2) is None
