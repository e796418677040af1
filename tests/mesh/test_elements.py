"""Bernstein polynomials on triangles: de Casteljau's algorithm, differences, and shared edges."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import optmech as om
from optmech.spaces.mesh import elements


def de_casteljau(coefficients, weights, degree):
    """A polynomial in Bernstein's form at weights (3,): d rounds of weighted means."""
    values = dict(zip(elements.indices(degree), coefficients, strict=True))
    for left in range(degree - 1, -1, -1):
        values = {
            index: sum(
                w * values[tuple(n + (k == i) for i, n in enumerate(index))]
                for k, w in enumerate(weights)
            )
            for index in elements.indices(left)
        }
    return values[0, 0, 0]


@pytest.mark.parametrize("degree", range(1, 7))
def test_values_are_de_casteljau_s(degree):
    rng = np.random.default_rng(degree)
    coefficients = rng.normal(size=(degree + 1) * (degree + 2) // 2)
    weights = rng.dirichlet([1.0] * 3, 20)
    found = elements.basis(weights, degree) @ coefficients
    expected = [de_casteljau(coefficients, w, degree) for w in weights]
    assert np.abs(found - expected).max() < 1e-13
    assert elements.basis(weights, degree).min() >= 0
    exact = elements.whole_basis((2, 3, 4), degree)
    assert sum(exact) == 9**degree
    whole = list(range(len(exact)))
    value = de_casteljau([Fraction(c) for c in whole], [Fraction(w, 9) for w in (2, 3, 4)], degree)
    assert value == Fraction(sum(a * b for a, b in zip(exact, whole, strict=True)), 9**degree)


@pytest.mark.parametrize("degree", range(1, 7))
def test_gradients_are_differences(degree):
    """The coefficients a and b of ∇p = a ∇λ_1 + b ∇λ_2 give the derivatives along the edges, on the
    unit triangle, where λ_1 and λ_2 are the coordinates; exactly, as p is a polynomial: by central
    differences of every order."""
    rng = np.random.default_rng(degree)
    coefficients = rng.integers(-50, 50, (degree + 1) * (degree + 2) // 2)
    a, b = elements.rises(degree) @ coefficients
    x, y = Fraction(1, 5), Fraction(2, 7)

    def value(x, y):
        return de_casteljau(coefficients.tolist(), (1 - x - y, x, y), degree)

    # the derivative of the interpolating polynomial through d + 1 points: exact
    for given, along in ((a, (1, 0)), (b, (0, 1))):
        nodes = [Fraction(k) for k in range(degree + 1)]
        slope = Fraction(0)
        for i, node in enumerate(nodes):
            others = [other for other in nodes if other != node]
            below = math.prod(node - other for other in others)
            # d/dt at t = 0 of Π (t − other)
            top = sum(
                math.prod(-o for o in others if o != out) if len(others) > 1 else Fraction(1)
                for out in others
            )
            slope += value(x + along[0] * nodes[i], y + along[1] * nodes[i]) * top / below
        assert slope == de_casteljau([int(v) for v in given], (1 - x - y, x, y), degree)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_control_points_are_shared_along_edges(degree):
    mesh = om.Mesh.grid((0, 0, 3, 2), 1, degree=degree)
    vertices, triangles = 12, 12
    edges = vertices + triangles - 1
    inner = (degree - 1) * (degree - 2) // 2
    assert mesh.rows == vertices + edges * (degree - 1) + triangles * inner
    assert np.array_equal(np.unique(mesh.control), np.arange(mesh.rows))
    # one place for every number, another for every other number
    weights = np.array(elements.indices(degree)) / degree
    places = np.einsum("nc,tcd->tnd", weights, mesh.vertices[mesh.triangles])
    at = np.full((mesh.rows, 2), np.nan)
    at[mesh.control] = places
    assert np.abs(at[mesh.control] - places).max() < 1e-12
    assert len(np.unique(at.round(9), axis=0)) == mesh.rows
    assert np.array_equal(at[:vertices], mesh.vertices)
    # a polynomial of that degree is met everywhere by its interpolant's values: continuity
    matrix = np.random.default_rng(0).random((mesh.rows, 1))
    step = np.array([1e-9, -1e-9])
    for end in ((1.3, 0.7), (1.0, 0.4), (2.0, 1.6), (1.7, 1.0)):
        both = [mesh.interpolation(np.array([end]) + side * step) @ matrix for side in (-1, 1)]
        assert abs(float(both[0][0, 0] - both[1][0, 0])) < 1e-6


def test_what_keeps_the_degree(tmp_path):
    mesh = om.Mesh.grid((0, 0, 2, 2), 1, degree=3)
    assert "of degree 3" in repr(mesh)
    assert mesh.refine(np.ones(8)).degree == 3
    assert mesh.with_degree(2).degree == 2
    assert mesh != mesh.with_degree(2)
    assert mesh.with_degree(2).with_degree(3) == mesh
    assert len({mesh, mesh.with_degree(1), mesh.with_degree(3)}) == 2
    mesh.write(tmp_path / "m.json")
    assert om.Mesh.read(tmp_path / "m.json") == mesh
    assert "degree" not in mesh.with_degree(1).to_dict()
    assert om.Mesh.around(np.random.default_rng(0).random((9, 2)), 0.3, degree=2).degree == 2


@pytest.mark.parametrize("degree", [0, 7, 1.5, True, "3", None])
def test_degrees_that_are_none(degree):
    with pytest.raises(om.ProblemError, match="degree"):
        om.Mesh.grid((0, 0, 2, 2), 1, degree=degree)
    with pytest.raises(om.ProblemError, match="degree"):
        om.Mesh.from_dict({**om.Mesh.grid((0, 0, 2, 2), 1).to_dict(), "degree": degree})
