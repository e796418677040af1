"""Rows held fixed: against linear programs and closed forms written here; altered files."""

from __future__ import annotations

import json
import re
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from forgery import resealed
from scipy.optimize import linprog

import optmech as om
from optmech.certificate import Multipliers, infeasibility_margin, lower_bound
from optmech.certificate.families import PairMultipliers
from optmech.certificate.lagrangian import Lagrangian
from optmech.certificate.statement import Held
from optmech.exact.numerators import Numerators

E, H = om.distances.euclidean(), om.distances.hamming()
STAIRS = {0: ["1/2", "1/4", "1/8", "1/16", "1/16"], 4: ["1/16", "1/16", "1/8", "1/4", "1/2"]}


def exactly(m: om.Mechanism, label: Any) -> list[Fraction]:
    assert isinstance(m.exact, Numerators)
    row = m.exact.rows[m.secrets.index(label)]
    return [Fraction(value, 1 << m.exact.bits) for value in row]


def least(cost: np.ndarray, r: np.ndarray, held: dict[int, np.ndarray]) -> float | None:
    """The least Σ cost P with P[i,o] <= e^r P[j,o] and some rows given, put in by hand."""
    n, m = cost.shape
    free = [s for s in range(n) if s not in held]
    at = {s: k * m for k, s in enumerate(free)}
    bounds = [[0.0, 1.0] for _ in range(len(free) * m)]
    rows, rhs = [], []
    for i in range(n):
        for j in range(n):
            if i == j or not np.isfinite(r[i, j]) or (i in held and j in held):
                continue
            for o in range(m):
                f = float(np.exp(r[i, j]))
                if j in held:
                    k = at[i] + o
                    bounds[k][1] = min(bounds[k][1], f * held[j][o])
                elif i in held:
                    k = at[j] + o
                    bounds[k][0] = max(bounds[k][0], held[i][o] / f)
                else:
                    row = np.zeros(len(bounds))
                    row[at[i] + o], row[at[j] + o] = 1.0, -f
                    rows.append(row)
                    rhs.append(0.0)
    # limits that meet in one point, up to rounding
    bounds = [(min(a, b), max(a, b)) for a, b in bounds]
    found = linprog(
        cost[free].ravel(),
        A_ub=np.array(rows) if rows else None,
        b_ub=rhs if rows else None,
        A_eq=np.kron(np.eye(len(free)), np.ones(m)),
        b_eq=np.ones(len(free)),
        bounds=bounds,
    )
    if found.status == 2:
        return None
    assert found.status == 0
    return float(found.fun + sum(cost[s] @ row for s, row in held.items()))


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_the_mechanisms_that_keep_the_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    places = om.Domain(range(n), rng.uniform(0, 2, (n, 2)))
    private = om.MetricPrivacy(2.0, E)
    old = om.solve(
        om.Problem(om.Prior(places, rng.dirichlet(np.ones(n))), E, constraints=[private])
    )
    free = rng.choice(n, int(rng.integers(1, n)), replace=False).tolist()
    prior = om.Prior(places, rng.dirichlet(np.ones(n)))
    asked = om.Problem(prior, E, constraints=[private, om.constraints.FixedRows(old, free=free)])
    design = om.solve(asked)
    assert design.status == "optimal"
    kept = [s for s in range(n) if s not in free]
    for s in kept:
        assert exactly(design.mechanism, s) == exactly(old.mechanism, s)
    held = {s: old.mechanism.matrix[s] for s in kept}
    best = least(prior.weights[:, None] * E(places, places), 2.0 * E(places, places), held)
    assert design.loss == pytest.approx(best, abs=1e-7)
    assert design.lower_bound <= design.loss


def test_one_free_row_is_filled_from_its_limits() -> None:
    """With all other rows fixed the row is a knapsack: lower limits first, then the cheapest."""
    line, private = om.Domain.range(5), om.MetricPrivacy("ln 2", E)
    rows = {0: STAIRS[0], 4: STAIRS[4], 1: ["1/4", "3/8", "1/4", "1/16", "1/16"]}
    design = om.solve(
        om.Problem(
            om.Prior(line, [1, 1, 1, 0, 1]),
            E,
            constraints=[private, om.constraints.FixedRows(rows, free=[0])],
        )
    )
    assert [exactly(design.mechanism, s) for s in (1, 4)] == [
        [Fraction(v) for v in rows[s]] for s in (1, 4)
    ]
    both = {s: [Fraction(v) for v in rows[s]] for s in (1, 4)}
    low = [max(row[o] / 2 ** abs(2 - s) for s, row in both.items()) for o in range(5)]
    high = [min(row[o] * 2 ** abs(2 - s) for s, row in both.items()) for o in range(5)]
    row, left = list(low), 1 - sum(low)
    for o in (2, 1, 3, 0, 4):
        step = min(left, high[o] - row[o])
        row[o], left = row[o] + step, left - step
    cost = sum(p * abs(2 - o) for o, p in enumerate(row))
    # the other free rows have to leave the middle that row
    assert float(sum(p * abs(2 - o) for o, p in enumerate(exactly(design.mechanism, 2)))) >= float(
        cost
    ) * (1 - 1e-9)
    alone = {**rows, 0: STAIRS[0], 3: ["1/8", "1/8", "1/4", "1/4", "1/4"]}
    two = om.solve(om.Problem(om.Prior(line, [1, 1, 8, 1, 1]), E,
                              constraints=[private, om.constraints.FixedRows(alone)]))  # fmt: skip
    given = {s: [Fraction(v) for v in values] for s, values in alone.items()}
    low = [max(row[o] / 2 ** abs(2 - s) for s, row in given.items()) for o in range(5)]
    high = [min(row[o] * 2 ** abs(2 - s) for s, row in given.items()) for o in range(5)]
    row, left = list(low), 1 - sum(low)
    for o in (2, 1, 3, 0, 4):
        step = min(left, high[o] - row[o])
        row[o], left = row[o] + step, left - step
    assert left == 0
    for p, q in zip(exactly(two.mechanism, 2), row, strict=True):
        assert float(p) == pytest.approx(float(q), abs=1e-8)


def test_a_ratio_that_is_met_exactly_leaves_one_row_and_it_is_found() -> None:
    """p(o|0) = 4 p(o|2): the row between is forced, entry by entry, and rational."""
    line = om.Domain.range(3)
    fixed = om.constraints.FixedRows({0: ["1/2", "3/8", "1/8"], 2: ["1/8", "3/8", "1/2"]})
    design = om.solve(
        om.Problem(om.Prior.uniform(line), E, constraints=[om.MetricPrivacy("ln 2", E), fixed])
    )
    quarter = Fraction(1, 4)
    assert exactly(design.mechanism, 1) == [quarter, 1 - 2 * quarter, quarter]
    assert design.status == "optimal"


def problem(*constraints: Any, weights: Any = (1, 2, 3, 2, 1)) -> om.Problem:
    return om.Problem(om.Prior(om.Domain.range(5), weights), E, constraints=list(constraints))


def audited(design: om.Design, path: Path) -> list[str]:
    design.save(path)
    assert om.check(path).passed
    return audit.audit(str(path))


def test_rows_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    rows = {0: ["3/4", "1/4", 0, 0, 0], 1: ["1/4", "3/4", 0, 0, 0]}
    design = om.solve(problem(om.MetricPrivacy("ln 2", E), om.constraints.FixedRows(rows)))
    assert design.status == "infeasible"
    for words in ("rows of 0 and 1", "1.5 times", "Let the row of 0 or of 1 be free, or raise"):
        assert words in design.reason
    assert "held, break a ratio" in " ".join(audited(design, tmp_path / "d.json"))
    # at the limit itself nothing is broken
    kept = om.solve(problem(om.MetricPrivacy("ln 3", E), om.constraints.FixedRows(rows)))
    assert kept.status == "optimal"
    never = {0: [1, 0, 0, 0, 0], 3: [0, 1, 0, 0, 0]}
    assert (
        "any multiple"
        in om.solve(problem(om.MetricPrivacy(9, E), om.constraints.FixedRows(never))).reason
    )


def test_other_ways_to_contradict(tmp_path: Path) -> None:
    mask = np.ones((5, 5), dtype=int)
    mask[0, 4] = 0
    outside = om.solve(problem(om.Support(mask), om.constraints.FixedRows(STAIRS)))
    assert outside.status == "infeasible"
    assert "row of 0 reports observable number 4" in outside.reason
    audited(outside, tmp_path / "a.json")
    other = om.constraints.FixedRows({0: ["1/4"] * 4 + [0]})
    twice = om.solve(problem(om.constraints.FixedRows(STAIRS), other))
    assert "is fixed to another one by constraints[0]" in twice.reason
    audited(twice, tmp_path / "b.json")
    same = om.constraints.FixedRows({0: STAIRS[0]})
    assert om.solve(problem(om.constraints.FixedRows(STAIRS), same)).status == "optimal"


def test_no_room_for_the_new_row_is_proved(tmp_path: Path) -> None:
    """1 must report 0 with 1/2 at least, as 0 does, and with 1/4 at most, as 4 does with 1/16."""
    apart = np.array(E(om.Domain.range(5), om.Domain.range(5)))
    apart[1, 4] = apart[4, 1] = apart[0, 1] = apart[1, 0] = 1.0
    private = om.MetricPrivacy("ln 2", om.distances.matrix(apart))
    design = om.solve(problem(private, om.constraints.FixedRows(STAIRS)))
    assert design.status == "infeasible"
    assert "the rows held fixed" in design.reason
    statement = design.problem.statement
    assert infeasibility_margin(statement, design.certificate.multipliers) > 0
    assert "the multipliers prove" in " ".join(audited(design, tmp_path / "d.json"))
    # a sum that is too large: x is 1 from four places that are 2 from each other, and has to
    # report each with half of 17/32 at least
    star = 2.0 * (1 - np.eye(5))
    star[4, :4] = star[:4, 4] = 1.0
    rows = {s: ["17/32" if o == s else "5/32" for o in range(4)] for s in range(4)}
    private = om.MetricPrivacy("ln 2", om.distances.matrix(star))
    crowded = om.Problem(
        om.Prior.uniform(om.Domain(range(5))),
        np.ones((5, 4)),
        om.Domain(range(4)),
        constraints=[private, om.constraints.FixedRows(rows)],
    )
    none = om.solve(crowded)
    assert none.status == "infeasible"
    audited(none, tmp_path / "e.json")


def limits() -> list[Any]:
    return [
        [om.DistortionPrivacy(0.6, E)],
        [om.LossBound(2.2, worst_case=True), om.constraints.MaximalLeakage("ln 2")],
        [om.constraints.MutualInformation(0.35)],
        [om.DifferentialPrivacy(1.0, (E, 1.0), delta=0.05)],
        [
            om.DistributionPrivacy(
                0.5, [([0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5])], divergence="kl"
            )
        ],
    ]


@pytest.mark.parametrize("more", limits(), ids=lambda c: type(c[0]).__name__)
def test_beside_other_constraints(more: list[Any], tmp_path: Path) -> None:
    design = om.solve(problem(om.MetricPrivacy(1.0, E), om.constraints.FixedRows(STAIRS), *more))
    assert design.status == "optimal"
    for s, row in STAIRS.items():
        assert exactly(design.mechanism, s) == [Fraction(v) for v in row]
    # what the rows cost at least: without the other limits
    fewer = om.solve(problem(om.MetricPrivacy(1.0, E), om.constraints.FixedRows(STAIRS)))
    assert design.loss >= fewer.loss - 1e-9
    audited(design, tmp_path / "d.json")


@pytest.mark.parametrize("objective", ["worst_loss", "distortion", "leakage"])
def test_beside_other_objectives(objective: str, tmp_path: Path) -> None:
    goals: dict[str, Any] = {
        "worst_loss": "worst_loss",
        "distortion": om.MaximizeDistortion(E),
        "leakage": om.MinimizeLeakage(),
    }
    p = om.Prior(om.Domain.range(5), [1, 2, 3, 2, 1])
    fixed = om.constraints.FixedRows(STAIRS)
    asked = om.Problem(p, E, objective=goals[objective], constraints=[om.LossBound(0.9), fixed])
    design = om.solve(asked)
    assert design.status == "optimal"
    audited(design, tmp_path / "d.json")
    if objective == "worst_loss":
        # the fixed rows lose at least what they lose
        assert design.loss >= sum(k * float(Fraction(v)) for k, v in enumerate(STAIRS[0])) - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_any_multipliers_bound_what_keeps_the_rows(seed: int) -> None:
    """And fixed rows only raise a bound: the row's value is no less than its minimum."""
    rng = np.random.default_rng(seed)
    fixed, private = om.constraints.FixedRows(STAIRS), om.MetricPrivacy("ln 2", E)
    design = om.solve(problem(private, fixed))
    with_rows, without = design.problem.statement, problem(private).statement
    count = 60
    i, j = rng.integers(0, 5, (2, count))
    pairs = PairMultipliers(i, j, rng.integers(0, 5, count), rng.exponential(0.05, count))
    given = Multipliers((pairs,))
    found = lower_bound(with_rows, given)
    assert found.value <= design.loss
    assert found.value >= lower_bound(without, given).value - 1e-12
    assert found.value <= found.proved
    assert infeasibility_margin(with_rows, given) <= 0


def lagrangian_with(held: Held, shape: tuple[int, int]) -> Lagrangian:
    """One without terms, where every observable is allowed."""
    stated: Any = SimpleNamespace(loss=np.zeros(shape), allowed=np.ones(shape, bool), held=held)
    return Lagrangian(stated)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_the_value_of_a_held_row_is_enclosed(scale: float) -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 1000, (2, 6)).tolist()
    for row in rows:
        row[0] += 2**70 - sum(row)
    held = Held(np.array([0, 2]), Numerators(70, tuple(map(tuple, rows))))
    terms = rng.normal(size=(4, 6)) * scale
    lagrangian = lagrangian_with(held, (4, 6))
    lagrangian.add(terms, abs(terms), 0.0)
    found = lagrangian.minimum()
    value = sum((min(map(Fraction, terms[s].tolist())) for s in (1, 3)), Fraction(0))
    for s, row in zip((0, 2), rows, strict=True):
        value += sum(Fraction(x) * p for x, p in zip(terms[s].tolist(), row, strict=True)) / 2**70
    assert found.value <= found.proved <= value
    assert float(value - Fraction(found.value)) <= 1e-13 * scale * abs(terms / scale).sum() + 1e-250


def test_terms_beyond_floats_prove_nothing() -> None:
    held = Held(np.array([0]), Numerators(1, ((1, 1),)))
    lagrangian = lagrangian_with(held, (1, 2))
    lagrangian.terms[:] = [[np.inf, 1.0]]
    assert lagrangian.minimum().value == -np.inf
    lagrangian.terms[:] = [[1e308, 1e308]]
    assert lagrangian.minimum().value == -np.inf


def altered(design: om.Design, change: Any, path: Path) -> None:
    path.write_bytes(resealed(design.document(), change))


def test_altered_files_are_refused(tmp_path: Path) -> None:
    design = om.solve(problem(om.MetricPrivacy("ln 2", E), om.constraints.FixedRows(STAIRS)))
    path = tmp_path / "d.json"

    def fixed(body: Any) -> Any:
        return body["problem"]["constraints"][1]

    def swap_digits(body: Any) -> None:
        digits = fixed(body)["rows"][0][1]
        digits[0], digits[1] = digits[1], digits[0]

    def move_row(body: Any) -> None:
        rows = body["mechanism"]["rows"]
        rows[0], rows[4] = rows[4], rows[0]

    def nudge(body: Any) -> None:
        """One unit of 2^-k from one report to another."""
        digits = body["mechanism"]["rows"][0][1]
        digits[0], digits[1] = f"{int(digits[0], 16) + 1:x}", f"{int(digits[1], 16) - 1:x}"

    def other_bits(body: Any) -> None:
        fixed(body)["bits"] += 1

    def other_secret(body: Any) -> None:
        fixed(body)["secrets"] = [1, 4]

    def out_of_order(body: Any) -> None:
        fixed(body)["secrets"] = [4, 0]

    def no_digest(body: Any) -> None:
        fixed(body)["source"] = "sha256:12"

    def not_reduced(body: Any) -> None:
        fixed(body)["bits"] += 4
        for row in fixed(body)["rows"]:
            row[1] = [f"{int(v, 16) << 4:x}" for v in row[1]]

    def claims_more(body: Any) -> None:
        del body["problem"]["constraints"][1]["rows"][1]

    changes = [swap_digits, move_row, nudge, other_bits, other_secret, out_of_order, no_digest,
               claims_more]  # fmt: skip
    for change in changes:
        altered(design, change, path)
        with pytest.raises((om.ProblemError, om.VerificationError)):
            om.Design.load(path)
        with pytest.raises(audit.Fault):
            audit.audit(str(path))
    altered(design, not_reduced, path)
    with pytest.raises((om.ProblemError, om.VerificationError)):
        om.Design.load(path)
    altered(design, lambda body: None, path)
    assert om.Design.load(path).verified
    audit.audit(str(path))


def test_a_better_bound_than_the_rows_allow_is_refused(tmp_path: Path) -> None:
    design = om.solve(problem(om.MetricPrivacy("ln 2", E), om.constraints.FixedRows(STAIRS)))
    path = tmp_path / "d.json"

    def better(body: Any) -> None:
        body["result"]["bound"] = body["result"]["lower_bound"] = design.loss + 1e-9

    altered(design, better, path)
    assert not om.check(path).passed
    with pytest.raises(audit.Fault):
        audit.audit(str(path))


TOML = """
format = 1
prior = "uniform"
loss = "euclidean"

[secrets]
kind = "line"
count = 5

[[constraints]]
kind = "metric_privacy"
epsilon = "ln 2"
distance = "euclidean"

[[constraints]]
kind = "fixed_rows"
"""


def test_problem_files(tmp_path: Path) -> None:
    old = om.solve(problem(om.MetricPrivacy("ln 2", E)))
    (tmp_path / "designs").mkdir()
    old.save(tmp_path / "designs" / "old.json")
    digest = json.loads((tmp_path / "designs" / "old.json").read_text())["digest"]
    path = tmp_path / "new.toml"
    right = (
        f'design = "designs/old.json"\nsha256 = "{digest.removeprefix("sha256:")}"\nfree = [2]\n'
    )
    path.write_text(TOML + right)
    read = om.load_problem(path)
    (stated,) = (c for c in read.constraints if isinstance(c, om.constraints.FixedRows))
    assert stated.rows.source == digest
    assert stated.held(read.space)[0] == [0, 1, 3, 4]
    design = om.solve(read)
    design.save(tmp_path / "new.json")
    again = om.Design.load(tmp_path / "new.json")
    assert again.problem == read
    assert again.problem.constraints[1].rows.source == digest
    assert exactly(again.mechanism, 3) == exactly(old.mechanism, 3)
    mistakes = {
        'design = "designs/none.json"': "constraints[1].design",
        right.replace(digest[-8:], "0" * 8): "constraints[1].sha256",
        'design = "designs/old.json"\nkeep = [1]\nfree = [2]': "exclude each other",
        'design = "designs/old.json"\nfree = [9]': "constraints[1].free",
        'rows = [{ secret = 0, row = ["1/3", "2/3", 0, 0, 0] }]': "power of two",
        "rows = [{ secret = 0, row = [0.1, 0.9, 0, 0, 0] }]": "to one exactly",
        'rows = [{ secret = 0, row = ["ln 2", 0, 0, 0, 0] }]': "is no fraction",
        "rows = [{ secret = 0, row = [1, 0] }]": "2 probabilities for 5",
        'sha256 = "00"': "needs one of rows and design",
        "rows = [{ secret = 0, row = [1, 0, 0, 0, 0] }, { secret = 0, row = [1, 0, 0, 0, 0] }]":
            "occurs twice",
    }  # fmt: skip
    for text, words in mistakes.items():
        path.write_text(TOML + text + "\n")
        with pytest.raises(om.ProblemError) as caught:
            om.load_problem(path)
        assert words in str(caught.value), text


def test_what_cannot_be_meant_in_python() -> None:
    old = om.solve(problem(om.MetricPrivacy("ln 2", E)))
    cases: list[tuple[Any, str]] = [
        (lambda: om.constraints.FixedRows(3), "has no rows"),
        (lambda: om.constraints.FixedRows({}), "has no rows"),
        (lambda: om.constraints.FixedRows({0: "1"}), "not a list of numbers"),
        (lambda: om.constraints.FixedRows({0: [1, 0], 1: [1]}), "one for every observable"),
        (lambda: om.constraints.FixedRows({0: [float("nan"), 1]}), r"\[0\]"),
        (lambda: om.constraints.FixedRows(old, keep=[0], free=[1]), "together with keep"),
        (lambda: om.constraints.FixedRows(old, keep="01"), "not a list of labels"),
        (lambda: problem(om.constraints.FixedRows(old, keep=[7])), r"keep: there is no"),
        (
            lambda: problem(om.constraints.FixedRows(STAIRS, keep=[1])),
            "has no row among those given",
        ),
        (lambda: problem(om.constraints.FixedRows(old, free=range(5))), "no row is kept"),
        (
            lambda: problem(om.constraints.FixedRows({7: [1, 0, 0, 0, 0]})),
            "7 is no secret of this problem",
        ),
        (lambda: problem(om.constraints.FixedRows({0: [1, 0, 0]})), "3 probabilities for 5"),
    ]
    for make, words in cases:
        with pytest.raises(om.ProblemError, match=words):
            make()
    fewer = om.Prior.uniform(om.Domain.range(3))
    with pytest.raises(om.ProblemError, match="which is no observable of this problem"):
        om.Problem(fewer, E, constraints=[om.constraints.FixedRows(old)])
    every = problem(om.constraints.FixedRows(old))
    assert any("nothing to design" in note for note in every.notes)
    assert om.solve(every).loss == pytest.approx(old.loss, rel=1e-12)


def test_rows_of_a_mechanism_over_no_power_of_two() -> None:
    places = om.Domain.range(3)
    rows = np.full((3, 3), 1 / 3)
    with pytest.raises(om.ProblemError, match=r"power of two|to one exactly"):
        om.constraints.FixedRows(om.Mechanism(places, places, rows))
    halves = om.Mechanism(places, places, np.full((3, 3), 0.25) + np.eye(3) / 4)
    assert om.constraints.FixedRows(halves).rows.exact.bits == 2


def test_reports_that_others_could_stand_in_for_are_kept() -> None:
    """With no mass on 3 and 4 and Hamming loss nobody needs them as reports, but fixed rows do."""
    p = om.Prior(om.Domain.range(5), [1, 1, 1, 0, 0])
    asked = om.Problem(
        p, H, constraints=[om.MetricPrivacy("ln 2", E), om.constraints.FixedRows(STAIRS)]
    )
    design = om.solve(asked)
    assert exactly(design.mechanism, 0) == [Fraction(v) for v in STAIRS[0]]
    held = {s: np.array([float(Fraction(v)) for v in row]) for s, row in STAIRS.items()}
    r = np.log(2) * E(p.domain, p.domain)
    assert design.loss == pytest.approx(
        least(p.weights[:, None] * H(p.domain, p.domain), r, held), abs=1e-9
    )


def test_conflicts_of_many_rows_are_found_at_once() -> None:
    """Every two of 150 fixed rows break the ratio at nearly every observable; without one they
    meet it, all with equality."""
    n = 150
    domain = om.Domain(range(n + 1))
    rng = np.random.default_rng(0)
    draws = rng.multinomial((1 << 20) - n, np.full(n, 1 / n), n) + 1
    rows = {s: [Fraction(int(v), 1 << 20) for v in row] for s, row in enumerate(draws)}
    loss = rng.random((n + 1, n))
    seen = om.Domain(range(n))
    before = time.process_time()
    problem = om.Problem(
        om.Prior.uniform(domain),
        loss,
        seen,
        constraints=[om.MetricPrivacy(0.001, H), om.constraints.FixedRows(rows)],
    )
    design = om.solve(problem)
    assert time.process_time() - before < 15
    assert design.status == "infeasible"
    i, j, o = (int(v) for v in re.findall(r"rows of (\d+) and (\d+) .* number (\d+)",
                                          design.reason)[0])  # fmt: skip
    assert draws[i, o] / draws[j, o] == pytest.approx((draws.max(axis=0) / draws.min(axis=0)).max())


def test_ratios_of_fixed_rows_by_one_unit() -> None:
    """Floats do not tell 3 · 2^-71 from one unit of 2^-1000 more."""
    prior = om.Prior.uniform(om.Domain("abc"))
    one, unit = 1 << 1000, Fraction(1, 1 << 1000)
    low = Fraction(one // 4, one)
    for more, status in ((0, "optimal"), (1, "infeasible")):
        rows = {"a": [3 * low + more * unit, low - more * unit], "b": [low, 3 * low]}
        design = om.solve(
            om.Problem(
                prior,
                np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]]),
                om.Domain(range(2)),
                constraints=[om.DifferentialPrivacy("ln 3"), om.constraints.FixedRows(rows)],
            )
        )
        assert design.status == status
    assert "times e^r" in design.reason


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["secrets"].reverse(),
        lambda c: c["rows"][0].__setitem__(slice(None), [[0, 0, 1, 2, 3, 4], ["1", *["2"] * 5]]),
        lambda c: c["secrets"].__setitem__(1, c["secrets"][0]),
    ],
)
def test_files_have_rows_in_order(change: Any) -> None:
    """What could be read in two ways is not read."""
    space = om.Problem(om.Prior.uniform(om.Domain(range(5))), H).space
    plain: Any = om.constraints.FixedRows(STAIRS).plain(space)
    again = om.constraints.FixedRows.load(json.loads(json.dumps(plain)), space)
    assert again.plain(space) == plain
    change(plain)
    with pytest.raises(om.ProblemError, match="increase"):
        om.constraints.FixedRows.load(plain, space)


@pytest.mark.parametrize("row", [{1, 0}, frozenset({1, 0}), {"a": 1, "b": 0}])
def test_rows_have_an_order(row: Any) -> None:
    with pytest.raises(om.ProblemError, match="not a list"):
        om.constraints.FixedRows({"a": row})
