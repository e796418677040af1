"""Designs that are private at every point: losses, bounds, files, and what is refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from altered_regions import (
    altered,
    drop_triangle,
    last_digit,
    lower_loss,
    move_vertex,
    moved_mass,
    raise_figure,
)

import optmech as om
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.families import MeshMultipliers
from optmech.cli.main import main

E = om.distances.euclidean()
PLACES = np.array([(x, y) for y in range(5) for x in range(5)], dtype=float)
DOMAIN = om.Domain(range(25), PLACES)
DISCRETE = {"1/2": 1.61953, "1": 1.22868}
"""Optima over the 25 places alone, of the design page: a bound for all mechanisms."""


def square(width, epsilon, prior=None, **more):
    mesh = om.Mesh.grid((0, 0, 4, 4), width)
    return om.Problem(
        om.Prior.uniform(DOMAIN) if prior is None else prior,
        E,
        constraints=[om.MetricPrivacy(epsilon, E, everywhere=mesh)],
        **more,
    )


@pytest.fixture(scope="module")
def design():
    return om.solve(square(1, "1/2"), gap=1e-4)


@pytest.fixture
def saved(design, tmp_path):
    design.save(tmp_path / "d.json")
    return tmp_path / "d.json"


# the losses of the design page, with 16 directions in the place of cones
@pytest.mark.parametrize(
    ("width", "epsilon", "most"),
    [(1, "1/2", 1.73212), (0.5, "1/2", 1.69110), (1, "1", 1.51280), (0.5, "1", 1.41260)],
)
def test_losses_of_the_table(width, epsilon, most):
    found = om.solve(square(width, epsilon), gap=1e-4)
    assert found.verified
    assert found.gap <= 1e-4
    assert DISCRETE[epsilon] - 6e-6 < found.loss <= most
    assert found.bound <= found.loss
    assert DISCRETE[epsilon] - 6e-5 < found.lower_bound < DISCRETE[epsilon] + 6e-6
    assert found.total_gap == pytest.approx(1 - found.lower_bound / found.loss, abs=1e-9)


def own_probabilities(mesh, matrix, points):
    """Interpolation by solving for the weights in every triangle, keeping where all are >= 0."""
    out = np.full((len(points), matrix.shape[1]), np.nan)
    lifted = np.column_stack([points, np.ones(len(points))])
    for corners in mesh.triangles:
        weights = lifted @ np.linalg.inv(np.column_stack([mesh.vertices[corners], np.ones(3)]))
        held = weights.min(axis=1) >= -1e-13
        out[held] = weights[held] @ matrix[corners]
    return out


@pytest.mark.parametrize("apart", [None, 1e-9])
def test_pairs_of_points(design, apart):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1e-6, 4 - 1e-6, (2, 100_000, 2))
    if apart is not None:
        angle = rng.random(len(x)) * 2 * np.pi
        y = x + apart * np.column_stack([np.cos(angle), np.sin(angle)])
    p, q = (own_probabilities(design.mesh, design.exact.matrix, at) for at in (x, y))
    limit = 0.5 * np.hypot(*(x - y).T)[:, None]
    assert (np.log(p / q) <= limit * (1 + 1e-6) + 1e-12).all()
    assert np.abs(design.mechanism.at(x) - p).max() < 1e-12


def test_the_loss_is_that_of_the_probabilities(design):
    p = own_probabilities(design.mesh, design.exact.matrix, PLACES)
    apart = np.hypot(*(PLACES[:, None] - PLACES).transpose(2, 0, 1))
    assert design.loss == pytest.approx((p * apart).sum() / 25, rel=1e-12)


def many_places():
    """A prior of 300 places, of which none is a vertex, and a rate that is no rational number."""
    rng = np.random.default_rng(1)
    points = rng.uniform(0.1, 3.9, (300, 2))
    weights = rng.dirichlet([0.5] * 300)
    return om.Problem(
        om.Prior(om.Domain(range(300), points), weights),
        E,
        # some lie where places do, so that a cell may cost nothing
        om.Domain(range(6), np.vstack([points[:3], rng.uniform(0, 4, (3, 2))])),
        constraints=[om.MetricPrivacy("ln 2", E, everywhere=om.Mesh.grid((0, 0, 4, 4), 1))],
    )


def test_places_need_not_be_vertices(tmp_path):
    problem = many_places()
    points, reports = problem.secrets.points, problem.observables
    found = om.solve(problem, gap=1e-4)
    apart = np.hypot(*(points[:, None] - reports.points).transpose(2, 0, 1))
    p = own_probabilities(found.mesh, found.exact.matrix, points)
    weights = problem.prior.weights
    assert found.loss == pytest.approx(weights @ (p * apart).sum(axis=1), rel=1e-12)
    # below the optimum over these places alone, which bounds all mechanisms
    alone = om.Problem(problem.prior, E, reports, constraints=[om.MetricPrivacy("ln 2", E)])
    best = om.solve(alone, gap=1e-3)
    assert 0.9 * best.loss < found.lower_bound <= best.loss <= found.loss * (1 + 1e-3)
    found.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert "cells of the 300 places" in om.check(tmp_path / "d.json").notes[1]


def test_places_in_degrees(tmp_path):
    rng = np.random.default_rng(3)
    points = np.column_stack([rng.uniform(12.45, 12.53, 30), rng.uniform(41.87, 41.93, 30)])
    places = om.Domain.geographic(range(30), points)
    reports = om.Domain.geographic(range(4), points[:4])
    km = om.distances.haversine()
    mesh = om.Mesh.around(places, 2)
    problem = om.Problem(
        om.Prior.uniform(places), km, reports,
        constraints=[om.MetricPrivacy(0.8, km, everywhere=mesh)],
    )  # fmt: skip
    found = om.solve(problem, gap=1e-3)
    best = om.solve(om.Problem(problem.prior, km, reports, constraints=[om.MetricPrivacy(0.8, km)]))
    assert best.loss * (1 - 1e-4) < found.lower_bound <= best.loss <= found.loss
    corners = mesh.vertices[mesh.triangles[rng.integers(len(mesh.triangles), size=(2, 500))]]
    x, y = np.einsum("skc,skcd->skd", rng.dirichlet([1.0] * 3, (2, 500)), corners)
    p, q = found.mechanism.at(x), found.mechanism.at(y)
    one, other = (om.Domain.geographic(range(500), at) for at in (x, y))
    limit = 0.8 * np.diag(km(one, other))[:, None]
    assert (np.log(p / q) <= limit + 1e-9).all()
    found.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    assert audit.audit(str(tmp_path / "d.json"))


def test_the_bound_is_below_every_mechanism_on_the_mesh():
    """Random multipliers bound constants, and mixtures of constants with a design, from below."""
    rng = np.random.default_rng(2)
    problem = square(2, "1/2")
    mesh = problem.constraints[0].everywhere
    apart = np.hypot(*(PLACES[:, None] - PLACES).transpose(2, 0, 1))
    statement, best = problem.statement, om.solve(problem, gap=1e-6)

    def bound(vectors):
        return lower_bound(statement, Multipliers((vectors,))).proved

    for scale in (1e-4, 1e-2, 1.0):
        given = scale * rng.normal(size=(25, len(mesh.triangles), 3, 3))
        assert bound(MeshMultipliers.rounded(mesh, given)) < best.loss
    # without multipliers every row has its cheapest entry
    zero = bound(MeshMultipliers.none(mesh, 25))
    costs = mesh.interpolation(PLACES).T @ (apart / 25)
    assert zero == pytest.approx(costs.min(axis=1).sum(), rel=1e-12)
    (vectors,) = best.certificate.multipliers.families
    assert bound(vectors) == pytest.approx(best.loss, rel=2e-6)


def test_files_are_read_and_checked_again(design, saved):
    report = om.check(saved)
    assert report.passed
    assert [check.name for check in report.checks] == ["distributions", "mesh", "gradient"]
    assert (report.loss, report.bound, report.lower_bound) == (
        design.loss, design.bound, design.lower_bound,
    )  # fmt: skip
    again = om.Design.load(saved)
    assert again.exact.rows == design.exact.rows
    assert again.mesh == design.mesh
    assert (again.gap, again.status) == (design.gap, design.status)
    assert again.mechanism.sample_at((0.5, 0.25), seed=1) in range(25)
    assert "every mechanism that is private at every point" in " ".join(report.notes)


def other_epsilon(body):
    body["problem"]["constraints"][0]["epsilon"] = 0.4999


def claim_optimal(body):
    body["result"]["status"] = "optimal"


def stretch_vectors(body):
    body["multipliers"]["gradient"][0]["bits"] -= 3


def no_outer(body):
    del body["outer"]


def no_cells(body):
    body["outer"]["cells"] = "none"


def nothing_promised(body):
    body["problem"]["constraints"] = []


ALTERATIONS = {
    "vertex": move_vertex,
    "row": last_digit(0),
    "mass": moved_mass,
    "triangle": drop_triangle,
    "epsilon": other_epsilon,
    "bound": raise_figure("bound"),
    "lower bound": raise_figure("lower_bound"),
    "loss": lower_loss,
    "status": claim_optimal,
    "multipliers": stretch_vectors,
    "outer": no_outer,
    "cells": no_cells,
    "nothing": nothing_promised,
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


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_bytes_are_refused(saved, name):
    body = json.loads(saved.read_text())
    ALTERATIONS[name](body)
    saved.write_text(json.dumps(body))
    with pytest.raises((om.ProblemError, om.VerificationError)):
        om.check(saved)
    with pytest.raises(audit.Fault):
        audit.audit(str(saved))


def test_the_audit_proves_it_on_its_own(saved, audit_file, tmp_path):
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(audit_file), str(saved)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("32 triangles tile", "2400 gradients", "a lower bound of every mechanism"):
        assert words in done.stdout
    assert audit.audit(str(altered(saved, raise_figure("lower_bound", -1e-6))))


def test_claiming_less_than_is_proved_is_no_fault(saved):
    assert om.check(altered(saved, raise_figure("bound", -1e-6))).passed
    assert om.check(altered(saved, raise_figure("lower_bound", -1e-6))).passed


def refused(match, **arguments):
    given = {"epsilon": 1, "distance": E, "everywhere": om.Mesh.grid((0, 0, 4, 4), 1)} | arguments
    with pytest.raises(om.ProblemError, match=match):
        om.Problem(om.Prior.uniform(DOMAIN), E, constraints=[om.MetricPrivacy(**given)])


def test_what_is_refused(design):
    refused("above 0", epsilon=0)
    refused("measured by the euclidean", distance=om.distances.manhattan())
    refused("measured by the euclidean", distance=np.ones((25, 25)))
    refused("has no meaning", delta=0.1)
    refused("has no meaning", threshold=1)
    refused("is not a Mesh", everywhere=3)
    refused("outside of the region", everywhere=om.Mesh.grid((0, 0, 3, 4), 1))
    refused("is in|are in", everywhere=om.Mesh.grid((0, 0, 4, 4), 99, coordinates="lonlat"),
            distance=om.distances.haversine())  # fmt: skip
    mesh = om.Mesh.grid((0, 0, 4, 4), 1)
    everywhere = om.MetricPrivacy(1, E, everywhere=mesh)
    prior = om.Prior.uniform(DOMAIN)
    with pytest.raises(om.ProblemError, match="combined"):
        om.Problem(prior, E, constraints=[everywhere, om.constraints.MutualInformation(1)])
    with pytest.raises(om.ProblemError, match="expected loss"):
        om.Problem(prior, E, objective="worst_loss", constraints=[everywhere])
    with pytest.raises(om.ProblemError, match="coordinates"):
        om.Problem(om.Prior.uniform(om.Domain(["a", "b"])), np.ones((2, 2)),
                   constraints=[everywhere])  # fmt: skip
    with pytest.raises(om.ProblemError, match="start"):
        om.solve(design.problem, start=design)


def test_what_works_on_secrets_says_so(capsys, tmp_path):
    assert main(["export", "square-everywhere", "-o", str(tmp_path / "x.mps")]) == 2
    assert "point" in capsys.readouterr().err


def test_at_its_places_it_is_a_mechanism_like_any_other(design, saved, capsys):
    exact = np.array([design.mechanism.exactly_at(place) for place in PLACES.tolist()])
    assert np.allclose(design.mechanism.matrix, exact.astype(float), rtol=1e-14, atol=0)
    assert om.measures.epsilon(design.mechanism, E) <= 0.5
    # the best guess from a report is at most as far off as the report itself
    attack = om.attacks.optimal_attack(design.mechanism, design.problem.prior, E)
    assert 0.9 * design.loss < attack.error <= design.loss
    for command in ("measure", "attack"):
        assert main([command, str(saved)]) == 0
        assert capsys.readouterr().err == ""


def test_the_gallery_s_square(tmp_path, capsys):
    out, drawn = tmp_path / "square.json", tmp_path / "square.png"
    flags = ["-q", "--gap", "1e-3", "-o", str(out), "--picture", str(drawn)]
    assert main(["solve", "square-everywhere", *flags]) == 0
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert "lower bound" in capsys.readouterr().out
    assert main(["check", str(out)]) == 0
    capsys.readouterr()
    assert main(["sample", str(out), "0.3,1/3", "-n", "4", "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)["observables"]
    assert len(drawn) == 4
    assert set(drawn) <= set(range(25))
    assert main(["sample", str(out), "7,1"]) == 2
    assert main(["sample", str(out), "station"]) == 2


def test_a_mesh_around_the_secrets_in_a_file(tmp_path):
    text = Path(om.files.find_problem("square-everywhere")).read_text()
    head, _, _ = text.partition("everywhere = {")
    path = tmp_path / "around.toml"
    path.write_text(head + 'everywhere = { kind = "around", width = 2, vertices = 30 }\n')
    mesh = om.load_problem(path).constraints[0].everywhere
    assert 25 <= len(mesh) <= 40
    path.write_text(head + 'everywhere = { kind = "around", width = -1 }\n')
    with pytest.raises(om.ProblemError, match=r"everywhere\.width"):
        om.load_problem(path)


def test_exact_weights_decide_at_the_places(design):
    """Places on edges and vertices: the exact loss agrees with that of exact probabilities."""
    total = Fraction(0)
    for x, place in enumerate(PLACES.tolist()):
        exact = design.mechanism.exactly_at(place)
        apart = [float(v) for v in design.problem.loss_matrix[x]]
        total += sum(map(lambda p, c: p * Fraction(c), exact, apart), Fraction(0)) * Fraction(
            float(design.problem.prior.weights[x])
        )
    assert Fraction(design.loss) >= total >= Fraction(math.nextafter(design.loss, 0))
