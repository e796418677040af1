"""The worst loss on lines, against programs written again here: cutting planes through scipy, and
the largest value of every quadratic in fractions."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
import scipy.sparse as sp
from altered_regions import altered
from optmech_sweeps.templates import same_problem
from scipy.optimize import linprog

import optmech as om
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.segments import charged, largest
from optmech.lp.inequalities import Points

E = om.distances.euclidean()
SQUARES = om.losses.powered(E, 2)


def on_a_line(
    x: list[float], loss: Any, promise: Any, reports: list[float] | None = None
) -> om.Problem:
    """The least worst loss between the first and the last of ``x``."""
    line = om.Network([[v] for v in x], [range(len(x))])
    said = None if reports is None else om.Domain(range(len(reports)), [[v] for v in reports])
    stated = [promise(everywhere=line)]
    prior = om.Prior.uniform(line.domain)
    return om.Problem(prior, loss, said, objective="worst_loss", constraints=stated)


def dp(epsilon: Any) -> Any:
    return lambda everywhere: om.DifferentialPrivacy(epsilon, everywhere=everywhere)


def metric(epsilon: Any) -> Any:
    return lambda everywhere: om.MetricPrivacy(epsilon, everywhere=everywhere)


def peak(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The largest a + b t + c t² for t in [0, 1], and where."""
    found = max((a, 0), (a + b + c, 1))
    if c < 0 and 0 < -b / (2 * c) < 1:
        found = max(found, (a - b * b / (4 * c), -b / (2 * c)))
    return found


def peaks(p: Any, cost: Any, bends: Any) -> list[tuple[Any, Any]]:
    """The same of the expected loss on every segment, of rows ``p`` and straight or bent costs."""
    out = []
    for s, bend in enumerate(bends):
        at = {
            (i, j): sum(u * c for u, c in zip(p[i], cost[j], strict=True))
            for i in (s, s + 1)
            for j in (s, s + 1)
        }
        first, last, mixed = at[s, s], at[s + 1, s + 1], at[s, s + 1] + at[s + 1, s] - bend
        out.append(peak(first, mixed - 2 * first, first + last - mixed))
    return out


def own_optimum(factors: Any, cost: Any, bends: Any) -> tuple[float, float]:
    """Bounds of the least worst loss: of a program of some points, and of the rows it finds."""
    n, m = cost.shape
    pairs = [(i, j, f) for (i, j), f in factors.items()]
    rows = [[(i * m + o, 1.0), (j * m + o, -f)] for i, j, f in pairs for o in range(m)]
    sums = sp.csr_array((np.ones(n * m), (np.arange(n * m) // m, np.arange(n * m))), (n, n * m + 1))
    points = {(s, t / 8) for s in range(n - 1) for t in range(9)}
    best = math.inf
    for _ in range(25):
        level = []
        for s, t in points:
            c = (1 - t) * cost[s] + t * cost[s + 1] - t * (1 - t) * bends[s]
            parts = [(s * m + o, (1 - t) * c[o]) for o in range(m)]
            parts += [((s + 1) * m + o, t * c[o]) for o in range(m)]
            level.append([*parts, (n * m, -1.0)])
        entries = [(k, j, v) for k, row in enumerate(rows + level) for j, v in row]
        k, j, v = zip(*entries, strict=True)
        table = sp.csr_array((v, (k, j)), (len(rows) + len(level), n * m + 1))
        goal = np.eye(n * m + 1)[-1]
        found = linprog(goal, table, np.zeros(table.shape[0]), sums, np.ones(n), method="highs")
        assert found.status == 0
        p = np.maximum(found.x[:-1].reshape(n, m), 0)
        seen = peaks(p / p.sum(axis=1, keepdims=True), cost, bends)
        best = min(best, max(value for value, _ in seen))
        if best - found.fun <= 1e-8 * best:
            break
        near = 0.25 * math.sqrt(best / found.fun - 1)
        points |= {
            (s, min(1.0, max(0.0, t + move)))
            for s, (value, t) in enumerate(seen)
            if value > found.fun * (1 - 1e-7)
            for move in (0.0, near, -near)
        }
    return found.fun, best


def drawn(seed: int) -> tuple[om.Problem, Any, Any, Any]:
    """A line of 1 to 8 segments with a loss and a promise, and the same as numbers: the factors of
    its ratios, how losses bend, and the loss of a number where that is known."""
    rng = np.random.default_rng(seed)
    x = np.unique(rng.uniform(-1, 2, 2 + min(7, rng.geometric(0.3))).round(3)).tolist()
    n, square, reports = len(x), seed % 3 == 1, None
    loss: Any = SQUARES if square else E
    true: Any = (lambda v, o: (v - o) ** 2) if square else (lambda v, o: abs(v - o))
    if square and rng.random() < 0.5:
        reports = np.unique(rng.uniform(x[0], x[-1], 4).round(3)).tolist()
    if seed % 3 == 2:
        loss, true = rng.random((n, n)), None
    epsilon = rng.uniform(0.3, 4)
    everyone = bool(rng.random() < 0.5)
    factors = {
        (i, j): math.exp(epsilon) if everyone else 1 + epsilon * abs(x[i] - x[j])
        for i in range(n)
        for j in range(n)
        if i != j and (everyone or abs(i - j) == 1)
    }
    problem = on_a_line(x, loss, (dp if everyone else metric)(epsilon), reports)
    bends = [(b - a) * (b - a) if square else 0.0 for a, b in pairwise(x)]
    return problem, factors, bends, true


def judge_a_line(seed: int) -> None:
    """The worst loss of a design is the largest of all numbers, and the least there is."""
    problem, factors, bends, true = drawn(seed)
    design = om.solve(problem)
    assert design.exact is not None
    unit = 1 << design.exact.bits
    rows = [[Fraction(v, unit) for v in row] for row in design.exact.rows]
    cost = [[Fraction(v) for v in row] for row in problem.loss_matrix.tolist()]
    worst = max(value for value, _ in peaks(rows, cost, list(map(Fraction, bends))))
    assert worst <= Fraction(design.loss) <= worst * (1 + Fraction(1, 2**51))
    if true is not None:
        x, y = (d.require_points("x")[:, 0] for d in (problem.secrets, problem.observables))
        p = design.mechanism.at(points := np.random.default_rng(seed).uniform(x[0], x[-1], 500))
        assert (p * true(points[:, None], y)).sum(axis=1).max() <= design.loss * (1 + 1e-12)
    low, high = own_optimum(factors, problem.loss_matrix, bends)
    assert design.status == "optimal"
    assert low * (1 - 1e-7) <= design.loss
    assert design.bound <= high * (1 + 1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_the_worst_loss_is_the_largest_of_all_numbers_and_the_least(seed: int) -> None:
    judge_a_line(seed)


def test_randomised_response_is_the_least_worst_squared_error() -> None:
    # at every number: p t² + (1 - p) (1 - t)² mixed with the other way round, 1/4 for p = 3/4
    problem = on_a_line([0, 1], SQUARES, dp("ln 3"))
    design = om.solve(problem)
    assert (design.loss, design.bound) == (pytest.approx(1 / 4), pytest.approx(1 / 4))
    found = om.frontier.least_epsilon(problem, maximum_loss=0.3, low=0, high=3)
    assert found.lower <= math.log(7 / 3) <= found.upper  # 1 / (1 + e^ε) = 3/10


def test_the_largest_value_of_a_quadratic_is_no_coefficient_between() -> None:
    quarter = Fraction(1, 4)
    assert largest(quarter, 3 * quarter, quarter) == Fraction(1, 2)
    assert largest(quarter, Fraction(0), Fraction(1)) == 1
    rng = np.random.default_rng(3)
    for a, b, c in rng.integers(-50, 50, (200, 3)).tolist():
        first, middle, last = map(Fraction, (a, b, c))
        value = peak(first, 2 * (middle - first), first + last - 2 * middle)[0]
        assert largest(first, middle, last) == value


def test_any_weights_of_any_points_prove_a_bound() -> None:
    rng = np.random.default_rng(5)
    for seed in (1, 3, 4, 8):
        problem, factors, bends, _ = drawn(seed)
        statement, least = problem.statement, own_optimum(factors, problem.loss_matrix, bends)[1]
        found = om.solve(problem).certificate.multipliers
        assert found.objective is not None
        for _ in range(30):
            scale = 10.0 ** rng.uniform(-12, 12, len(found.objective))
            weights = rng.choice([0.0, 1.0, -1.0], len(scale), p=[0.4, 0.5, 0.1]) * scale
            for given in (weights, found.objective * rng.uniform(0.9, 1.1, len(weights))):
                bound = lower_bound(statement, Multipliers(found.families, given))
                assert bound.value <= least * (1 + 1e-7)


def test_one_point_of_a_segment_charges_what_all_of_a_program_do() -> None:
    rng = np.random.default_rng(7)
    problem = on_a_line([0, 0.5, 2, 3], SQUARES, metric(1))
    statement, segments = problem.statement, problem.statement.segments
    assert segments is not None
    loss, bends = statement.loss, segments.bends
    assert bends.tolist() == [0.25, 2.25, 1.0]
    for _ in range(50):
        of, share = rng.integers(0, 3, 9), rng.integers(1, 64, 9) / 64
        duals = rng.random(13) * rng.choice([0.0, 1.0], 13)
        weights = Points(segments, of, share).weights(duals, 4)
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(duals.sum())
        found = weights[:4, None] * loss + charged(segments, loss, weights[4:]).terms
        # what does not depend on the report may be charged to either end
        p = rng.dirichlet(np.ones(4), 4)
        wanted = duals[:4] @ (p * loss).sum(axis=1)
        for k, t, dual in zip(of, share, duals[4:], strict=True):
            at = (1 - t) * loss[k] + t * loss[k + 1] - t * (1 - t) * bends[k]
            wanted += dual * ((1 - t) * p[k] + t * p[k + 1]) @ at
        assert (found * p).sum() == pytest.approx(wanted, rel=1e-12)


def test_both_judges_refuse_what_is_claimed_of_coefficients(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    problem = on_a_line([0, 0.25, 0.5, 0.75, 1], E, dp(4))
    design = om.solve(problem)
    design.save(path)
    assert om.load(path) == design
    audit.audit(str(path))
    rows, loss = np.array(design.matrix), problem.loss_matrix
    coefficient = max(rows[s] @ loss[s + 1] + rows[s + 1] @ loss[s] for s in range(4)) / 2
    assert coefficient > design.loss * 1.1

    def claimed(body: Any) -> None:
        body["result"].update(objective=coefficient, loss=coefficient)

    def bounded(body: Any) -> None:
        body["result"].update(bound=design.loss * 1.001)

    def of_middles(body: Any) -> None:
        given = body["multipliers"]["objective"]
        kept = [k for k, c in enumerate(given["column"]) if c < 9]
        given["shape"] = [1, 9]
        given.update({name: [given[name][k] for k in kept] for name in ("row", "column", "value")})

    def squared(body: Any) -> None:
        body["problem"]["loss_name"] = "euclidean^2"

    for change in (claimed, bounded, of_middles, squared):
        wrong = altered(path, change)
        with pytest.raises(om.OptmechError):
            om.load(wrong)
        with pytest.raises(audit.Fault):
            audit.audit(str(wrong))


def test_squares_are_squares_between_vertices_in_files_too(tmp_path: Path) -> None:
    """At the ends of [0, 1] distances and their squares are the same numbers."""
    straight, bent = (on_a_line([0, 1], loss, dp("ln 3")) for loss in (E, SQUARES))
    assert np.array_equal(straight.loss_matrix, bent.loss_matrix)
    assert straight != bent
    assert not same_problem(straight, bent)
    assert om.solve(straight).loss == pytest.approx(
        1 / 2
    )  # 2 · 1/4 · 1/2 + 3/4 · 1/2 in the middle
    for name, problem in (("euclidean", straight), ("euclidean^2", bent)):
        path = tmp_path / f"{name}.json"
        design = om.solve(problem)
        design.save(path)
        assert json.loads(path.read_text())["problem"]["loss_name"] == name
        assert om.load(path) == design
        assert f"the distance is {name}, computed again" in "\n".join(audit.audit(str(path)))
    again = om.load(tmp_path / "euclidean^2.json").problem
    assert again == bent
    assert om.losses.powered(E, 2.0000001).name == "euclidean^2.0000001"  # type: ignore[attr-defined]


WORDS = {
    "between vertices too": [(E, None), (SQUARES, None), (SQUARES, [0.1, 0.7]), (E, [-1.0, 0, 1])],
    "counts as linear": [
        (E, [0.1, 0.7]),
        (om.losses.powered(E, 3), None),
        (np.ones((3, 3)), None),
    ],
}


@pytest.mark.parametrize("words", WORDS)
def test_which_points_the_worst_loss_is_of_is_said(words: str, tmp_path: Path) -> None:
    for loss, reports in WORDS[words]:
        design = om.solve(on_a_line([0, 0.5, 1], loss, metric(2), reports))
        design.save(tmp_path / "d.json")
        notes = om.check(tmp_path / "d.json").notes
        assert [words in note for note in notes].count(True) == 1, (loss, notes)


def test_losses_that_count_as_linear_are_bounded_where_they_are_convex() -> None:
    x, reports = [0, 0.5, 1], [0.2, 0.6]
    for power in (1, 1.5, 3):
        loss = om.losses.powered(E, power) if power > 1 else E
        design = om.solve(on_a_line(x, loss, metric(3), reports))
        points = np.linspace(0, 1, 1001)
        p = design.mechanism.at(points)
        lost = (p * abs(points[:, None] - reports) ** power).sum(axis=1).max()
        assert design.lower_bound <= lost <= design.loss * (1 + 1e-12)


def test_roads_say_that_the_worst_loss_is_of_their_vertices(tmp_path: Path) -> None:
    nodes = {"node": ["a", "b", "c"], "x": [0, 3, 3], "y": [0, 0, 4]}
    edges = {"source": ["a", "b", "a"], "target": ["b", "c", "c"], "length": [3.0, 4.5, 5.5]}
    roads = om.Mesh.roads((nodes, edges), divide=3, coordinates="plane", unit="km")
    promise = om.MetricPrivacy("ln 2", everywhere=roads)
    problem = om.Problem(
        om.Prior.uniform(roads.domain),
        roads.distance,
        constraints=[promise],
        objective="worst_loss",
    )
    design = om.solve(problem)
    design.save(tmp_path / "d.json")
    assert design.loss == pytest.approx((design.matrix * problem.loss_matrix).sum(axis=1).max())
    assert any("of the vertices" in note for note in om.check(tmp_path / "d.json").notes)


def test_a_statement_with_segments_that_cannot_be_meant_is_refused() -> None:
    statement = on_a_line([0, 0.5, 1], SQUARES, metric(2)).statement
    segments = statement.segments
    assert segments is not None
    for wrong in (
        replace(segments, bends=-segments.bends),
        replace(segments, bends=segments.bends * math.inf),
        replace(segments, ends=segments.ends + 1),
        replace(segments, bends=segments.bends[:1]),
        segments.ends,
    ):
        with pytest.raises(om.VerificationError, match="segments"):
            lower_bound(replace(statement, segments=wrong), Multipliers())


TINY = [0.0, 5e-324, 1e-320, 1e-300, 2.0**-801, 2.0**-799, 2.0**-101, 2.0**-100, 2.0**-99, 1e-9]


def judged_alike(path: Path) -> bool:
    """Whether both judges take a file; they must not differ."""
    try:
        mine = om.check(path).passed
    except om.OptmechError:
        mine = False
    try:
        audit.audit(str(path))
    except audit.Fault:
        assert not mine
        return False
    assert mine
    return True


@pytest.mark.parametrize("where", ["one secret", "two secrets", "line"])
def test_tiny_weights_of_the_worst_loss_prove_the_same_to_both_judges(
    where: str, tmp_path: Path
) -> None:
    one = om.Domain(["a"]), om.Domain(["b", "c"])
    two = om.Domain(["a", "b"])
    problem = {
        "one secret": lambda: om.Problem(
            om.Prior.uniform(one[0]), [[1.0, 2.0]], one[1], objective="worst_loss"
        ),
        "two secrets": lambda: om.Problem(
            om.Prior.uniform(two), [[0.5, 2.0], [2.0, 1.0]], two, objective="worst_loss",
            constraints=[om.DifferentialPrivacy("ln 3")],
        ),
        "line": lambda: on_a_line([0, 0.5, 1], E, dp(1)),
    }[where]()  # fmt: skip
    path = tmp_path / "design.json"
    om.solve(problem).save(path)
    assert judged_alike(path)
    taken = []
    for tiny in TINY:

        def weighed(body: Any, tiny: float = tiny) -> None:
            """All multipliers times as much, which proves the same in exact numbers."""
            given = body["multipliers"]
            if given["objective"] is None:
                given["objective"] = {"shape": [1, 1], "row": [0], "column": [0], "value": [1.0]}
            for part in (given["objective"], given["ratio"]):
                if part is not None:
                    part["value"] = [v * tiny for v in part["value"]]

        def blind(body: Any, tiny: float = tiny) -> None:
            """The same, where nothing is claimed to be proved."""
            weighed(body)
            body["result"].update(bound=0.0, lower_bound=0.0, status="feasible")

        taken.append(judged_alike(altered(path, weighed)))
        assert judged_alike(altered(path, blind))
    # multipliers that are cut to whole multiples of the least float prove less
    assert taken[-1]
    assert not any(taken[:6])


def test_tiny_multipliers_prove_to_both_judges_alike_that_nothing_is_feasible(
    tmp_path: Path,
) -> None:
    two = om.Domain(["a", "b"])
    wanted = [om.DifferentialPrivacy("ln 3"), om.LossBound(0.2)]
    problem = om.Problem(om.Prior.uniform(two), om.distances.hamming(), two, constraints=wanted)
    path = tmp_path / "design.json"
    om.solve(problem).save(path)
    taken = []
    for tiny in TINY:

        def scaled(body: Any, tiny: float = tiny) -> None:
            given = body["multipliers"]
            given["ratio"]["value"] = [v * tiny for v in given["ratio"]["value"]]
            given["loss_limits"] = [[v * tiny for v in part] for part in given["loss_limits"]]

        taken.append(judged_alike(altered(path, scaled)))
    assert taken[-1]
    assert not any(taken[:4])
