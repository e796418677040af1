"""Losses, supports, distortion and leakage beside privacy at every point: against a program written
out here, brute force, and files that were changed."""

from __future__ import annotations

import itertools
import math
import re
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import optmech_audit as audit
import pytest
from altered_regions import altered, last_digit, moved_mass, raise_figure

import optmech as om
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.families import AttackMultipliers, MeshMultipliers
from optmech.cli.main import main

E = om.distances.euclidean()
EPSILON = 1.4
PLACES = np.array([(x, y) for y in range(3) for x in range(3)], dtype=float)
APART = np.hypot(*(PLACES[:, None] - PLACES).transpose(2, 0, 1))
SQUARED = APART**2
DOMAIN = om.Domain(range(9), PLACES)
PRIOR = np.array([4, 3, 2, 3, 4, 2, 5, 3, 6]) / 32
OTHER = np.array([1, 2, 1, 4, 1, 1, 2, 3, 1]) / 16
MESH = om.Mesh.grid((0, 0, 2, 2), 0.5)
PROMISE = om.MetricPrivacy(EPSILON, E, everywhere=MESH)


def problem(*beside, promise=PROMISE, **more):
    prior = om.Prior(DOMAIN, PRIOR)
    return om.Problem(prior, E, constraints=[promise, *beside], **more)


def mask(*without):
    out = np.ones((9, 9), dtype=int)
    for s, o in without:
        out[s, o] = 0
    return out


def own_weights(points):
    """Barycentric weights, by trying every triangle."""
    out = np.zeros((len(points), len(MESH.vertices)))
    lifted = np.column_stack([points, np.ones(len(points))])
    for corners in MESH.triangles:
        weights = lifted @ np.linalg.inv(np.column_stack([MESH.vertices[corners], np.ones(3)]))
        held = (weights.min(axis=1) >= -1e-12) & (out.sum(axis=1) == 0)
        out[np.ix_(np.flatnonzero(held), corners)] = weights[held]
    return out


def written_out(limits):
    """The least loss over vertices, every cone and every guess written out; ``limits`` makes the
    other constraints of the mechanism at the places."""
    p = cp.Variable((len(MESH.vertices), 9), nonneg=True)
    at = own_weights(PLACES) @ p
    rules = [cp.sum(p, axis=1) == 1, *limits(at)]
    for corners in MESH.triangles:
        slope = np.linalg.inv(np.column_stack([MESH.vertices[corners], np.ones(3)]))[:2]
        steep = cp.norm(slope @ p[corners], axis=0)
        rules += [steep <= EPSILON * p[v] for v in corners]
    goal = cp.Minimize(cp.sum(cp.multiply(PRIOR[:, None] * APART, at)))
    return cp.Problem(goal, rules).solve(solver="CLARABEL")


def distortion_of(at, apart, prior):
    return cp.sum([cp.min((apart * prior) @ at[:, o]) for o in range(9)])


def ratios(at, factor, window=None):
    for i, j in itertools.permutations(range(9), 2):
        seen = slice(None) if window is None else np.flatnonzero(window[i])
        yield at[i, seen] <= factor[i, j] * at[j, seen]


CASES = {
    "distortion": (
        [om.DistortionPrivacy(1.34, om.distances.matrix(SQUARED))],
        lambda at: [distortion_of(at, SQUARED, PRIOR) >= 1.34],
    ),
    "another adversary": (
        [om.DistortionPrivacy(0.95, E, om.Prior(DOMAIN, OTHER))],
        lambda at: [distortion_of(at, APART, OTHER) >= 0.95],
    ),
    "loss": (
        [om.LossBound(1.25, loss=SQUARED)],
        lambda at: [cp.sum(cp.multiply(PRIOR[:, None] * SQUARED, at)) <= 1.25],
    ),
    "every loss": (
        [om.LossBound(1.05, worst_case=True)],
        lambda at: [cp.sum(cp.multiply(APART, at), axis=1) <= 1.05],
    ),
    "leakage": (
        [om.constraints.GainLeakage(0.33)],
        lambda at: [cp.sum([cp.max(cp.multiply(PRIOR, at[:, o])) for o in range(9)]) <= 0.33],
    ),
    "support": (
        [om.Support(mask((3, 4), (0, 8), (1, 8)))],
        lambda at: [at[:, 4] == 0, at[:, 8] == 0],
    ),
    "ratios": (
        [om.MetricPrivacy(1.0, E)],
        lambda at: ratios(at, np.exp(APART)),
    ),
    "window": (
        [om.MetricPrivacy(0.8, E, observable_threshold=1.2)],
        lambda at: ratios(at, np.exp(0.8 * APART), APART <= 1.2),
    ),
    "differential": (
        [om.DifferentialPrivacy(0.9)],
        lambda at: ratios(at, np.full((9, 9), math.exp(0.9))),
    ),
    "approximate": (
        [om.DifferentialPrivacy(0.5, delta=0.2)],
        lambda at: [
            cp.sum(cp.pos(at[i] - math.exp(0.5) * at[j])) <= 0.2
            for i, j in itertools.permutations(range(9), 2)
        ],
    ),
    "distributions": (
        [om.DistributionPrivacy(0.05, [(PRIOR, OTHER)])],
        lambda at: [
            a @ at <= math.exp(0.05) * (b @ at) for a, b in itertools.permutations((PRIOR, OTHER))
        ],
    ),
    "bias": (
        [om.constraints.Bias(0.6, PLACES[:, 0])],
        lambda at: [cp.abs(at @ PLACES[:, 0] - PLACES[:, 0]) <= 0.6],
    ),
    "all": (
        [
            om.LossBound(1.15, worst_case=True),
            om.DistortionPrivacy(0.92, E, om.Prior(DOMAIN, OTHER)),
            om.Support(mask((2, 3))),
            om.LossBound(1.3, loss=SQUARED),
        ],
        lambda at: [
            cp.sum(cp.multiply(APART, at), axis=1) <= 1.15,
            distortion_of(at, APART, OTHER) >= 0.92,
            at[:, 3] == 0,
            cp.sum(cp.multiply(PRIOR[:, None] * SQUARED, at)) <= 1.3,
        ],
    ),
}


@pytest.fixture(scope="module")
def designs():
    return {name: om.solve(problem(*stated), gap=1e-5) for name, (stated, _) in CASES.items()}


@pytest.fixture(scope="module")
def free():
    """The least loss with nothing beside the promise."""
    return written_out(lambda _: [])


@pytest.mark.parametrize("name", CASES)
def test_the_program_written_out_has_the_same_optimum(designs, free, name):
    design = designs[name]
    expected = written_out(CASES[name][1])
    assert expected > free * (1 + 1e-3)
    assert design.verified
    assert design.gap <= 1e-4
    assert design.bound <= expected * (1 + 1e-6)
    assert design.loss >= expected * (1 - 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_the_optimum_over_the_places(designs, name):
    design = designs[name]
    alone = om.Problem(
        om.Prior(DOMAIN, PRIOR), E, constraints=[om.MetricPrivacy(EPSILON, E), *CASES[name][0]]
    )
    best = om.solve(alone)
    assert best.status == "optimal"
    assert design.lower_bound == pytest.approx(best.loss, rel=2e-5)
    assert design.lower_bound <= best.loss <= design.loss


def test_constraints_hold_exactly_at_the_places(designs):
    design = designs["all"]
    at = [design.mechanism.exactly_at(place) for place in PLACES.tolist()]
    other = [Fraction(float(v)) for v in design.problem.constraints[2].prior.weights]
    apart = [[Fraction(float(d)) for d in row] for row in E(DOMAIN, DOMAIN)]
    worst = max(
        sum(p * c for p, c in zip(*row, strict=True)) for row in zip(at, apart, strict=True)
    )
    assert worst <= Fraction(1.15)
    error = sum(
        min(
            sum(w * d * row[o] for w, d, row in zip(other, guess, at, strict=True))
            for guess in apart
        )
        for o in range(9)
    )
    assert error >= Fraction(0.92)
    assert all(row[3] == 0 for row in at)
    assert design.matrix == pytest.approx(np.array(at, dtype=float), abs=1e-12)


def test_pairs_of_points(designs):
    rng = np.random.default_rng(4)
    x, y = rng.uniform(1e-6, 2 - 1e-6, (2, 10_000, 2))
    design = designs["all"]
    kept = [o for o in range(9) if o != 3]
    p, q = ((own_weights(points) @ design.exact.matrix)[:, kept] for points in (x, y))
    limit = EPSILON * np.hypot(*(x - y).T)[:, None]
    assert (np.log(p / q) <= limit * (1 + 1e-6) + 1e-12).all()


def test_any_multipliers_bound(designs):
    rng = np.random.default_rng(5)
    design = designs["all"]
    statement = design.problem.statement
    for scale in (1e-3, 1e-1, 1.0):
        strategy = rng.random((9, 9)) * (rng.random((9, 9)) < 0.3)
        vectors = rng.normal(size=(9, len(MESH.triangles), 3, 3)) * scale / 30
        attack = AttackMultipliers(scale, strategy)
        beside = (scale * rng.random(9), attack, None, np.array([scale]))
        given = Multipliers((MeshMultipliers.rounded(MESH, vectors), *beside))
        found = lower_bound(statement, given)
        assert found.value <= found.proved < design.loss
    found = lower_bound(statement, design.certificate.multipliers)
    assert design.bound <= found.proved
    assert found.value == pytest.approx(design.bound, rel=1e-12)


@pytest.fixture
def saved(designs, tmp_path):
    designs["all"].save(tmp_path / "d.json")
    return tmp_path / "d.json"


def test_files_are_read_checked_and_audited(designs, saved):
    report = om.check(saved)
    assert report.passed
    names = [check.name for check in report.checks]
    assert names == [
        "distributions", "mesh", "gradient", "loss bound", "distortion", "support", "loss bound",
    ]  # fmt: skip
    assert "constraints[1], constraints[2], constraints[3], constraints[4]" in report.notes[1]
    again = om.Design.load(saved)
    assert again.bound == designs["all"].bound
    lines, unchecked = audit.judge(str(saved))
    assert any(line.startswith("constraints[2]: distortion 0.92") for line in lines)
    assert "bound" not in unchecked


def constraint(k, change):
    return lambda body: change(body["problem"]["constraints"][k])


def nearer_guess(stated):
    for row in stated["distance"]["secrets"]:
        row[:] = [v * 0.999 for v in row]
    stated["distance"]["name"] = "given"


def other_prior(stated):
    weights = stated["prior"]
    weights[0], weights[3] = weights[3], weights[0]


def forbid(stated):
    stated["mask"][4][7] = 0


def dearer(stated):
    stated["loss"] = [[v * 1.01 for v in row] for row in stated["loss"]]


def without_joint(body):
    body["multipliers"]["distortion"] = []


def heavier_attack(body):
    body["multipliers"]["distortion"][0]["weight"] *= 2


def heavier_loss(body):
    body["multipliers"]["loss_limits"][0] = [1.0] * 9


def another_kind(body):
    body["problem"]["constraints"].append({"kind": "maximal_leakage", "maximum": 5})


def twice(body):
    stated = body["problem"]["constraints"]
    stated.append(stated[0])


ALTERATIONS = {
    "maximum": constraint(1, lambda c: c.update(maximum=1.1499)),
    "minimum": constraint(2, lambda c: c.update(minimum=0.9201)),
    "guess": constraint(2, nearer_guess),
    "prior": constraint(2, other_prior),
    "mask": constraint(3, forbid),
    "loss": constraint(4, dearer),
    "dropped": lambda body: body["problem"]["constraints"].pop(2),
    "row": last_digit(0),
    "mass": moved_mass,
    "bound": raise_figure("bound", 1e-5),
    "lower bound": raise_figure("lower_bound", 1e-4),
    "multipliers": without_joint,
    "attack": heavier_attack,
    "prices": heavier_loss,
    "kind": another_kind,
    "twice": twice,
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_files_are_refused(saved, name):
    path = altered(saved, ALTERATIONS[name])
    with suppress(om.VerificationError):
        assert not om.check(path).passed
    with pytest.raises(om.VerificationError):
        om.Design.load(path)
    with pytest.raises(audit.Fault):
        audit.audit(str(path))


def test_the_promise_need_not_come_first(tmp_path):
    stated = om.LossBound(1.3, loss=SQUARED)
    swapped = om.Problem(om.Prior(DOMAIN, PRIOR), E, constraints=[stated, PROMISE])
    design = om.solve(swapped, gap=1e-3)
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert any("constraints[0]: loss" in line for line in audit.audit(str(tmp_path / "d.json")))


def test_cubic_columns_lose_less(designs, tmp_path):
    cubic = om.MetricPrivacy(EPSILON, E, everywhere=om.Mesh.grid((0, 0, 2, 2), 1, degree=3))
    design = om.solve(problem(*CASES["another adversary"][0], promise=cubic), gap=1e-4)
    linear = designs["another adversary"]
    assert design.mesh.rows == 49
    assert linear.lower_bound <= design.loss < linear.loss
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.audit(str(tmp_path / "d.json"))


def test_what_cannot_be_kept_is_refused_with_its_reason(tmp_path):
    def infeasible(match, *beside):
        design = om.solve(problem(*beside), gap=1e-3)
        assert design.status == "infeasible"
        assert re.search(match, design.reason)
        design.save(tmp_path / "none.json")
        assert om.check(tmp_path / "none.json").status == "infeasible"
        assert om.Design.load(tmp_path / "none.json").reason == design.reason
        assert any("infeasible" in line or "than any" in line
                   for line in audit.audit(str(tmp_path / "none.json")))  # fmt: skip

    def refused(kind, match, *beside, **more):
        with pytest.raises(kind, match=match):
            om.solve(problem(*beside, **more), gap=1e-3)

    infeasible("d_max", om.DistortionPrivacy(5, E))
    infeasible("privacy at every point", om.LossBound(0.6))
    infeasible(r"constraints\[1\].*constraints\[2\]",
               om.LossBound(0.8), om.DistortionPrivacy(0.9, E))  # fmt: skip
    infeasible("Widen the support", om.Support(np.eye(9, dtype=int)))
    refused(om.ProblemError, "mutual_information cannot", om.constraints.MutualInformation(1))
    refused(om.ProblemError, "metric_privacy cannot", PROMISE)


def test_one_report_left():
    design = om.solve(problem(om.Support(mask(*((0, o) for o in range(9) if o != 4)))))
    assert (design.matrix[:, 4] == 1).all()
    assert design.loss == pytest.approx(PRIOR @ APART[:, 4], rel=1e-12)
    assert design.gap <= 1e-9


def test_a_problem_of_the_gallery(tmp_path, capsys):
    out = tmp_path / "d.json"
    assert main(["solve", "square-everywhere-joint", "-q", "--gap", "1e-3", "-o", str(out)]) == 0
    assert "distortion" in capsys.readouterr().out
    assert main(["check", str(out)]) == 0
    assert audit.audit(str(out))
    page = tmp_path / "page.html"
    assert main(["report", str(out), "-o", str(page)]) == 0
    text = page.read_text()
    assert "At the places of the prior it also keeps" in text
    assert math.isfinite(om.Design.load(out).total_gap)
    assert Path(om.files.find_problem("square-everywhere-joint")).exists()


AT_THE_LIMIT = {
    "a distortion of at least 0": [om.DistortionPrivacy(0, E)],
    "a leakage of at most 1": [om.constraints.GainLeakage(1)],
    "both": [om.DistortionPrivacy(0, E), om.constraints.GainLeakage(1)],
}


@pytest.mark.parametrize("beside", AT_THE_LIMIT.values(), ids=AT_THE_LIMIT)
@pytest.mark.parametrize("count", [1, 2, 9])
def test_limits_that_every_mechanism_keeps_change_nothing(beside, count: int) -> None:
    """Also where no mechanism keeps them with room to spare, as of a single place."""
    domain = om.Domain(range(count), PLACES[:count])
    reports, cost = om.Domain(range(2)), np.arange(2.0 * count).reshape(count, 2) % 5 + 1
    prior = om.Prior.uniform(domain)
    found = [
        om.solve(om.Problem(prior, cost, reports, constraints=[PROMISE, *more]), gap=1e-4)
        for more in ([], beside)
    ]
    assert all(design.verified for design in found)
    assert found[1].loss == pytest.approx(found[0].loss, rel=1e-3)


@pytest.mark.parametrize(
    "beside",
    [[om.MetricPrivacy(0.7, E)], [om.MetricPrivacy(1e-6, E), om.constraints.GainLeakage(1)]],
    ids=["ratios", "ratios and leakage"],
)
def test_places_that_coincide_have_a_mechanism(beside) -> None:
    """Ratios of at most 1 leave no room; what always reports the same keeps them."""
    places = np.array([[0.0, 0], [2, 0], [1, 1], [1, 1]])
    cost = np.array([[0.0, 2], [1, 0], [1, 0], [3.5, 1]])
    domain = om.Domain(range(4), places)
    for degree, epsilon in ((1, 1e-6), (2, 1e-6), (1, 5.0), (2, 40.0)):
        mesh = om.Mesh.grid((0, 0, 2, 2), 2.0, degree=degree)
        promise = om.MetricPrivacy(epsilon, E, everywhere=mesh)
        stated = om.Problem(
            om.Prior.uniform(domain), cost, om.Domain(range(2)), constraints=[promise, *beside]
        )
        design = om.solve(stated, gap=1e-3, time_limit=10)
        assert design.verified
        # the second report, always
        assert design.bound <= design.loss <= 0.75 * (1 + 1e-3)


def test_a_place_that_is_named_twice_costs_nothing() -> None:
    """Between it and itself any ratio holds, also with weights that are no binary fractions."""
    places = [[0.2, 0.3], [1.1, 0.6], [1.7, 1.6]]
    reports, mesh = om.Domain(range(3), places), om.Mesh.grid((0, 0, 2, 2), 2)
    promise, beside = om.MetricPrivacy("1/2", E, everywhere=mesh), om.MetricPrivacy("1/3", E)
    once, twice = (
        om.solve(
            om.Problem(
                om.Prior(om.Domain(range(len(at)), at), weights),
                E,
                reports,
                constraints=[promise, beside],
            ),
            gap=1e-5,
        )
        for at, weights in (
            (places, [1, 2, 1]),
            ([*places, places[1]], [1, 1, 1, 1]),
        )
    )
    assert once.verified
    assert twice.verified
    assert twice.loss == pytest.approx(once.loss, rel=2e-5)


CONSTRAINS_NOTHING = {
    "gains of all guesses alike": om.constraints.GainLeakage("1/4", np.ones((2, len(PRIOR))) / 4),
    "the secret itself": om.constraints.GainLeakage(1, np.eye(len(PRIOR))),
    "a loss that is the same for all": om.LossBound(3, loss=np.full((len(PRIOR), 9), 3.0)),
    "the same in the worst case": om.LossBound(
        3, loss=np.full((len(PRIOR), 9), 3.0), worst_case=True
    ),
}


@pytest.fixture(scope="module")
def alone():
    return om.solve(problem(), gap=1e-6)


@pytest.mark.parametrize("name", CONSTRAINS_NOTHING)
def test_what_every_mechanism_keeps_costs_nothing(alone, name, tmp_path):
    design = om.solve(problem(CONSTRAINS_NOTHING[name]), gap=1e-6)
    assert design.status == "optimal"
    assert design.loss == pytest.approx(alone.loss, rel=2e-6)
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.audit(str(tmp_path / "d.json"))
