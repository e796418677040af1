"""Designs that are polynomials on the triangles of a mesh: losses, pairs of points, files."""

from __future__ import annotations

import itertools
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
    mesh_of,
    move_vertex,
    moved_mass,
    raise_figure,
)

import optmech as om
from optmech.certificate.families.gradient import check_gradients
from optmech.cli.main import main
from optmech.exact.number import parse_exact
from optmech.exact.numerators import Numerators
from optmech.files import find_problem

E = om.distances.euclidean()
PLACES = np.array([(x, y) for y in range(5) for x in range(5)], dtype=float)
DOMAIN = om.Domain(range(25), PLACES)


def problem(degree, width, epsilon, **more):
    mesh = om.Mesh.grid((0, 0, 4, 4), width, degree=degree)
    promise = om.MetricPrivacy(epsilon, E, everywhere=mesh)
    return om.Problem(om.Prior.uniform(DOMAIN), E, constraints=[promise], **more)


@pytest.fixture(scope="module")
def design():
    return om.solve(problem(3, 1, "1/2"), gap=1e-4)


# the design page: 16 directions on linear triangles of width 1/3, 169 rows, as here
@pytest.mark.parametrize(("epsilon", "linear", "discrete"), [("1", 1.37288, 1.22868)])
def test_a_third_of_the_width_is_worth_less_than_cubics(epsilon, linear, discrete):
    found = om.solve(problem(3, 1, epsilon), gap=1e-4)
    assert found.mesh.rows == 169
    assert found.verified
    # less than half as far from the optimum over the places alone
    assert discrete < found.loss < discrete + (linear - discrete) / 2
    assert found.bound <= found.loss <= found.bound * (1 + 1.1e-4)
    assert discrete - 6e-5 < found.lower_bound < discrete + 6e-6


def own_control(mesh, degree):
    """Control points by hand: vertices, then edges in order, then triangles; a dictionary for every
    triangle from multi-index to row."""
    rows = {}
    for v in range(len(mesh.vertices)):
        rows[((v, degree),)] = v
    triangles = mesh.triangles.tolist()
    pairs = {tuple(sorted(p)) for t in triangles for p in itertools.combinations(t, 2)}
    for a, b in sorted(pairs):
        for k in range(1, degree):
            rows[((a, degree - k), (b, k))] = len(rows)
    out = []
    for corners in triangles:
        own = {}
        for k, j in itertools.product(range(degree + 1), repeat=2):
            if j + k <= degree:
                index = (degree - j - k, j, k)
                key = tuple(sorted((c, n) for c, n in zip(corners, index, strict=True) if n))
                own[index] = rows.setdefault(key, len(rows))
        out.append(own)
    return out


def own_probabilities(mesh, matrix, points):
    """De Casteljau's algorithm in every triangle whose weights at a point are >= 0."""
    degree = mesh.degree
    out = np.full((len(points), matrix.shape[1]), np.nan)
    lifted = np.column_stack([points, np.ones(len(points))])
    for corners, rows in zip(mesh.triangles, own_control(mesh, degree), strict=True):
        weights = lifted @ np.linalg.inv(np.column_stack([mesh.vertices[corners], np.ones(3)]))
        held = weights.min(axis=1) >= -1e-13
        own = weights[held]
        values = {index: np.tile(matrix[row], (len(own), 1)) for index, row in rows.items()}
        for _ in range(degree):
            lower = {tuple(n - (k == 0) for k, n in enumerate(i)) for i in values if i[0]}
            values = {
                index: sum(
                    own[:, [k]] * values[tuple(n + (k == i) for i, n in enumerate(index))]
                    for k in range(3)
                )
                for index in lower
            }
        out[held] = values[0, 0, 0]
    return out


@pytest.mark.parametrize("apart", [None, 1e-9])
def test_pairs_of_points(design, apart):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1e-6, 4 - 1e-6, (2, 30_000, 2))
    if apart is not None:
        angle = rng.random(len(x)) * 2 * np.pi
        y = x + apart * np.column_stack([np.cos(angle), np.sin(angle)])
    p, q = (own_probabilities(design.mesh, design.exact.matrix, at) for at in (x, y))
    limit = 0.5 * np.hypot(*(x - y).T)[:, None]
    assert (np.log(p / q) <= limit * (1 + 1e-6) + 1e-12).all()
    assert np.abs(design.mechanism.at(x) - p).max() < 1e-12
    if apart is None:
        # ... and not because it reports nothing: some pairs use nearly all of it
        assert (np.log(p / q) / limit).max() > 0.95


def test_exact_probabilities_and_draws(design):
    point = (Fraction(1, 3), Fraction(7, 4))
    found = design.mechanism.exactly_at(point)
    assert sum(found) == 1
    floats = own_probabilities(design.mesh, design.exact.matrix, np.array([[1 / 3, 7 / 4]]))[0]
    assert np.abs(np.array(found, dtype=float) - floats).max() < 1e-14
    drawn = np.bincount(design.mechanism.sample_at(point, 20_000, seed=3), minlength=25)
    expected = 20_000 * floats
    often = expected > 5
    statistic = ((drawn - expected)[often] ** 2 / expected[often]).sum()
    # the 0.9999 quantile of χ² with at most 24 degrees of freedom
    assert statistic < 58.7
    total = sum(
        (
            sum((q * Fraction(float(c)) for q, c in zip(row, costs, strict=True)), Fraction(0))
            * Fraction(float(weight))
            for row, costs, weight in zip(
                map(design.mechanism.exactly_at, PLACES.tolist()),
                design.problem.loss_matrix,
                design.problem.prior.weights,
                strict=True,
            )
        ),
        Fraction(0),
    )
    assert Fraction(design.loss) >= total >= Fraction(math.nextafter(design.loss, 0))


def truncated(degree):
    """f(x) = Σ_{j<=d} (a x)^j/j! in x along the lower edge of the unit triangle, a = 3/2: its
    coefficients P[i] = Σ_j C(i,j) a^j/(C(d,j) j!), over 2^20 times their common denominator."""
    a = Fraction(3, 2)
    return [
        sum(
            Fraction(math.comb(i, j), math.comb(degree, j) * math.factorial(j)) * a**j
            for j in range(degree + 1)
        )
        for i in range(degree + 1)
    ]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_the_truncated_exponential_is_just_allowed(degree):
    """It grows by 1 + a + … + a^d/d! over a unit: passes at ε = a and not below."""
    mesh = om.Mesh([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]], degree=degree)
    along = truncated(degree)
    assert along[-1] == sum(Fraction(3, 2) ** j / math.factorial(j) for j in range(degree + 1))
    common = math.lcm(*(value.denominator for value in along))
    column = [0] * mesh.rows
    for index, row in own_control(mesh, degree)[0].items():
        column[row] = int(along[index[1]] * common)
    bits = 40
    released = Numerators(bits, tuple((n, (1 << bits) - n) for n in column))
    assert check_gradients(mesh, parse_exact("3/2", where=""), released).passed
    below = parse_exact(Fraction(3, 2) - Fraction(1, 10**30), where="")
    assert not check_gradients(mesh, below, released).passed
    # a last digit more at the steep end is noticed, and so it is in the 300th bit
    for shift in (0, 260):
        more = [n << shift for n in column]
        more[1] += 1
        rows = tuple((n, (1 << bits + shift) - n) for n in more)
        assert not check_gradients(
            mesh, parse_exact("3/2", where=""), Numerators(bits + shift, rows)
        ).passed


@pytest.fixture
def saved(design, tmp_path):
    design.save(tmp_path / "d.json")
    return tmp_path / "d.json"


def other_degree(degree):
    def change(body):
        mesh_of(body)["degree"] = degree

    return change


def no_degree(body):
    del mesh_of(body)["degree"]


def permuted(first, second):
    def change(body):
        rows = body["mechanism"]["rows"]
        rows[first], rows[second] = rows[second], rows[first]

    return change


def turned_triangle(body):
    """The same triangle from another corner: its multipliers and points inside stand elsewhere."""
    triangles = mesh_of(body)["triangles"]
    triangles[3] = triangles[3][1:] + triangles[3][:1]


ALTERATIONS = {
    "vertex": move_vertex,
    "row": last_digit(100),
    "mass": moved_mass,
    "triangle": drop_triangle,
    "degree 2": other_degree(2),
    "degree 4": other_degree(4),
    "degree 0": other_degree(0),
    "degree 3.0": other_degree(3.0),
    "degree true": other_degree(True),
    "no degree": no_degree,
    # two on one edge, two inside neighbouring triangles, a vertex and one beside it
    "on an edge": permuted(25, 26),
    "inside": permuted(150, 151),
    "vertices": permuted(12, 25),
    "turned": turned_triangle,
    "bound": raise_figure("bound"),
    "loss": lower_loss,
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_files_are_refused(saved, name):
    path = altered(saved, ALTERATIONS[name])
    with suppress(om.VerificationError, om.ProblemError):
        assert not om.check(path).passed
    with pytest.raises((om.VerificationError, om.ProblemError)):
        om.Design.load(path)
    with pytest.raises(audit.Fault):
        audit.audit(str(path))


def test_the_audit_proves_it_on_its_own(saved, audit_file, tmp_path):
    assert om.check(saved).passed
    again = om.Design.load(saved)
    assert again.mesh.degree == 3
    assert again.loss == om.check(saved).loss
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(audit_file), str(saved)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("32 triangles tile", "169 rows", "8000 gradients", "of every mechanism"):
        assert words in done.stdout


def test_a_degree_in_a_problem_file(tmp_path, capsys):
    text = Path(find_problem("square-everywhere")).read_text()
    head, _, _ = text.partition("everywhere = {")
    path = tmp_path / "square.toml"
    for shape in ('kind = "around", width = 4', 'kind = "grid", bounds = [0, 0, 4, 4], width = 4'):
        path.write_text(head + f"everywhere = {{ {shape}, degree = 2 }}\n")
        assert om.load_problem(path).constraints[0].everywhere.degree == 2
    out = tmp_path / "d.json"
    assert main(["solve", str(path), "-q", "--gap", "1e-2", "-o", str(out)]) == 0
    assert "of degree 2" in capsys.readouterr().out
    assert main(["check", str(out)]) == 0
    assert main(["sample", str(out), "0.3,1/3", "-n", "2"]) == 0
    path.write_text(head + 'everywhere = { kind = "around", width = 4, degree = 9 }\n')
    with pytest.raises(om.ProblemError, match=r"everywhere\.degree"):
        om.load_problem(path)


def test_refining_where_the_indicator_says_so():
    """All of the prior in one corner: the first triangles to be halved lie there."""
    corner = om.Domain(range(9), PLACES[[0, 1, 2, 5, 6, 7, 10, 11, 12]] / 2)
    mesh = om.Mesh.grid((0, 0, 4, 4), 2, degree=2)
    losses = []
    for _ in range(2):
        promise = om.MetricPrivacy(2, E, everywhere=mesh)
        found = om.solve(om.Problem(om.Prior.uniform(corner), E, constraints=[promise]), gap=1e-3)
        losses.append(found.loss)
        assert found.indicator.shape == (len(mesh.triangles),)
        assert found.indicator.min() >= 0
        mesh = mesh.refine(found.indicator)
        assert mesh.degree == 2
        added = mesh.vertices[9:] if len(losses) == 1 else mesh.vertices[:0]
        assert (added <= 2).all()
    assert losses[1] < losses[0] * 0.99
