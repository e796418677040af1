"""The exact decision of privacy at every point: equality, last digits, floating point's limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import optmech as om
from optmech.certificate.families.gradient import check_gradients, check_mesh
from optmech.certificate.statement import Spread
from optmech.certificate.values import expected_loss
from optmech.exact.number import parse_exact
from optmech.exact.numerators import Numerators

SQUARE = om.Mesh.grid((0, 0, 1, 1), 1)
COLUMN = (10, 13, 14, 15)
"""At (0, 0), (1, 0), (0, 1) and (1, 1): the lower triangle's gradient is (3, 4)."""


def two_columns(column, bits):
    total = 1 << bits
    return Numerators(bits, tuple((value, total - value) for value in column))


def rate(value):
    return parse_exact(value, where="epsilon")


def steepest(mesh, released):
    """The largest square of |∇p| / p(v), by the definition: gradients by Cramer's rule, in
    fractions."""
    out = Fraction(0)
    for a, b, c in mesh.triangles.tolist():
        (ax, ay), (bx, by), (cx, cy) = (
            [Fraction(x) for x in mesh.vertices[k].tolist()] for k in (a, b, c)
        )
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        for o in range(released.shape[1]):
            p, q, r = (Fraction(released.rows[k][o], 1 << released.bits) for k in (a, b, c))
            gx = ((q - p) * (cy - ay) - (r - p) * (by - ay)) / area
            gy = ((r - p) * (bx - ax) - (q - p) * (cx - ax)) / area
            out = max(out, (gx * gx + gy * gy) / min(p, q, r) ** 2)
    return out


def test_equality_passes_and_nothing_more():
    released = two_columns(COLUMN, 6)
    assert check_gradients(SQUARE, rate("1/2"), released).passed
    assert "whole numbers" in check_gradients(SQUARE, rate("1/2"), released).detail
    below = rate(Fraction(1, 2) - Fraction(1, 10**40))
    assert not check_gradients(SQUARE, below, released).passed


@pytest.mark.parametrize(("vertex", "digit"), [(0, -1), (1, 1), (2, 1)])
def test_a_last_digit_is_noticed(vertex, digit):
    """Also where it is the 300th bit, far beyond what floats tell apart."""
    for bits in (6, 300):
        column = [value << (bits - 6) for value in COLUMN]
        assert check_gradients(SQUARE, rate("1/2"), two_columns(column, bits)).passed
        column[vertex] += digit
        found = check_gradients(SQUARE, rate("1/2"), two_columns(column, bits))
        assert not found.passed
        assert "too large" in found.detail


def test_a_moved_vertex_is_noticed():
    """The vertex (1, 0) a last digit nearer makes the slope along that edge a digit steeper."""
    nearer = np.array(SQUARE.vertices)
    nearer[1, 0] = np.nextafter(1.0, 0.0)
    flat = [[0, 0], [1, 0], [0, 1]]
    released = two_columns(COLUMN[:3], 6)
    assert check_gradients(om.Mesh(flat, [[0, 1, 2]]), rate("1/2"), released).passed
    moved = om.Mesh(nearer[:3], [[0, 1, 2]])
    assert not check_gradients(moved, rate("1/2"), released).passed


def test_a_dropped_triangle_is_noticed():
    mesh = om.Mesh.grid((0, 0, 2, 2), 1)
    with pytest.raises(om.ProblemError):
        om.Mesh(mesh.vertices, mesh.triangles[1:])
    broken = om.Mesh.grid((0, 0, 2, 2), 1)
    object.__setattr__(broken, "triangles", mesh.triangles[1:])
    assert check_mesh(mesh).passed
    assert not check_mesh(broken).passed


def test_logarithms_are_enclosed():
    """The gradient is half of the least value: ln 2 > 1/2 > ln 3/2."""
    released = two_columns(COLUMN, 6)
    assert check_gradients(SQUARE, rate("ln 2"), released).passed
    assert not check_gradients(SQUARE, rate("ln 3/2"), released).passed


def test_zero_epsilon_allows_constants_only():
    constant = two_columns((5, 5, 5, 5), 6)
    assert check_gradients(SQUARE, rate(0), constant).passed
    assert not check_gradients(SQUARE, rate(0), two_columns((5, 5, 5, 6), 6)).passed


def test_zero_anywhere_means_zero_everywhere():
    assert check_gradients(SQUARE, rate(1), two_columns((0, 0, 0, 0), 6)).passed
    assert not check_gradients(SQUARE, rate(1), two_columns((0, 1, 1, 1), 900)).passed


def test_every_verdict_is_the_definition_s():
    """Matrices whose largest gradient is within a few last digits of its limit."""
    rng = np.random.default_rng(0)
    seen = []
    for trial in range(120):
        mesh = om.Mesh.around(rng.normal(size=(8, 2)), float(rng.uniform(0.5, 3)))
        released = Numerators.rounded(1 + 0.05 * rng.random((len(mesh), 3)))
        square = steepest(mesh, released)
        epsilon = Fraction(float(square) ** 0.5) * (1 + Fraction(int(rng.integers(-9, 10)), 2**53))
        if trial % 3 == 0:
            epsilon = Fraction(float(epsilon))
        verdict = check_gradients(mesh, rate(epsilon), released)
        assert verdict.passed == (square <= epsilon**2)
        seen.append(verdict.passed)
    assert 10 < sum(seen) < 110


def test_tiny_probabilities_are_decided():
    """Least entries of 2^-700, where products of floats underflow."""
    column = [value << 100 for value in COLUMN]
    released = two_columns(column, 806)
    assert check_gradients(SQUARE, rate("1/2"), released).passed
    column[1] += 1
    assert not check_gradients(SQUARE, rate("1/2"), two_columns(column, 806)).passed


def test_a_matrix_of_other_size_fails():
    assert not check_gradients(SQUARE, rate(1), two_columns((5, 5, 5), 6)).passed


def test_the_loss_is_that_of_fractions():
    mesh = om.Mesh.around([[0.1, 0.2], [1.3, 0.9], [0.7, 2.1]], 0.7)
    rng = np.random.default_rng(1)
    released = Numerators.rounded(rng.dirichlet([1.0] * 4, len(mesh)))
    places = rng.uniform([0.1, 0.2], [0.7, 0.9], (30, 2))
    weights, costs = rng.random(30), rng.random((30, 4))
    expected = Fraction(0)
    for place, weight, cost in zip(places.tolist(), weights.tolist(), costs.tolist(), strict=True):
        t, own = mesh.locate_exactly(place)
        corners = mesh.corners[t]
        # the weights are those of the place
        for axis in (0, 1):
            back = sum(
                w * Fraction(float(mesh.vertices[k, axis]))
                for w, k in zip(own, corners, strict=True)
            )
            assert back == sum(own) * Fraction(place[axis])
        for o in range(4):
            p = sum(
                Fraction(w * released.rows[k][o], sum(own))
                for w, k in zip(own, corners, strict=True)
            )
            expected += Fraction(weight) * Fraction(cost[o]) * p / (1 << released.bits)
    low, high = expected_loss(Spread(mesh, places), weights, costs, released)
    assert low <= expected <= high
    assert high - low < Fraction(1, 2**250)
    with pytest.raises(om.ProblemError, match="outside"):
        expected_loss(Spread(mesh, places + 50), weights, costs, released)
