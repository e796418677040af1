"""Randomisers with more answers than secrets, tight constraints, planar geometric noise, remaps,
elastic distances: closed forms, definitions in loops, brute force."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import optmech as om

KM = om.distances.euclidean()


@pytest.mark.parametrize(("n", "rate"), [(4, 1.0), (7, 0.5), (3, 4.0)])
def test_subset_selection(n: int, rate: float) -> None:
    """p(Z|s) = e^ε / (C(n-1,ω-1) e^ε + C(n-1,ω)) for s in Z, e^ε times less elsewhere."""
    m = om.mechanisms.subset_selection(om.Domain.range(n), rate)
    size = max(1, round(n / (math.exp(rate) + 1)))
    share = math.exp(rate) * math.comb(n - 1, size - 1) + math.comb(n - 1, size)
    for o, members in enumerate(m.observables.labels):
        assert len(members) == size
        for s in range(n):
            wanted = (math.exp(rate) if s in members else 1) / share
            assert m.matrix[s, o] == pytest.approx(wanted, rel=1e-14)
    assert om.measures.epsilon(m) == pytest.approx(rate, rel=1e-14)
    one = om.mechanisms.subset_selection(om.Domain.range(n), rate, size=1)
    response = om.mechanisms.randomized_response(om.Domain.range(n), rate)
    assert one.matrix == pytest.approx(response.matrix, rel=1e-14)


def test_optimised_unary_encoding() -> None:
    rate = 1.2
    m = om.mechanisms.optimised_unary_encoding(om.Domain("abc"), rate)
    noise = 1 / (math.exp(rate) + 1)
    for s, (o, word) in product(range(3), enumerate(m.observables.labels)):
        wanted = 0.5
        for k in {0, 1, 2} - {s}:
            wanted *= noise if word[k] else 1 - noise
        assert m.matrix[s, o] == pytest.approx(wanted, rel=1e-14)
    assert om.measures.epsilon(m) == pytest.approx(rate, rel=1e-14)


def test_tight_constraints_are_the_known_mechanisms() -> None:
    line = om.Domain.range(7)
    tight, geometric = (
        om.mechanisms.tight_constraints(line, 0.6),
        om.mechanisms.geometric(line, 0.6),
    )
    assert tight.matrix == pytest.approx(geometric.matrix, abs=1e-14)
    hamming = om.distances.hamming()
    alike = om.mechanisms.tight_constraints(line, "ln 3", hamming)
    response = om.mechanisms.randomized_response(line, "ln 3")
    assert alike.matrix == pytest.approx(response.matrix, abs=1e-14)
    grid = om.Grid(3, 3)
    m = om.mechanisms.tight_constraints(grid, 2)
    apart = KM(grid, grid)
    logs = np.log(m.matrix)
    for s, t in product(range(9), repeat=2):
        # tight at the secret's own cell
        assert logs[s, s] - logs[t, s] == pytest.approx(2 * apart[s, t], abs=1e-9)
    assert om.measures.epsilon(m, KM) == pytest.approx(2, rel=1e-9)
    with pytest.raises(om.ProblemError, match="no mechanism has all constraints tight"):
        om.mechanisms.tight_constraints(grid, 0.2)


@pytest.mark.parametrize(("rows", "columns", "cell"), [(3, 3, (1, 1)), (2, 4, (0.5, 0.75))])
def test_planar_geometric_noise_by_brute_force(
    rows: int, columns: int, cell: tuple[float, float]
) -> None:
    grid, rate, far = om.Grid(rows, columns, cell=cell), 1.1, 80
    steps = np.arange(-far, far + 1)
    kernel = np.exp(-rate * np.hypot(steps[:, None] * cell[1], steps[None, :] * cell[0]))
    kernel /= kernel.sum()
    wanted = np.zeros((len(grid), len(grid)))
    for s, (r, c) in enumerate(grid.labels):
        to_row, to_column = np.clip(r + steps, 0, rows - 1), np.clip(c + steps, 0, columns - 1)
        place = to_row[:, None] * columns + to_column[None, :]
        wanted[s] = np.bincount(place.ravel(), weights=kernel.ravel(), minlength=len(grid))
    m = om.mechanisms.planar_geometric(grid, rate)
    assert m.matrix == pytest.approx(wanted, rel=1e-12)
    assert om.measures.epsilon(m, KM) <= rate * (1 + 1e-12)


PRIORS = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)


@given(PRIORS, st.integers(0, 2**32))
def test_the_optimal_remap_is_the_best_of_all(weights: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    line, seen = om.Domain.range(4), om.Domain("xyz")
    m = om.Mechanism(line, seen, rng.dirichlet(np.ones(3), size=4))
    prior, costs = om.Prior(line, weights), rng.integers(0, 6, (4, 4))
    found = om.mechanisms.optimal_remap(m, prior, costs)
    loss = om.measures.expected_loss(found, prior, costs)
    each = [
        min(
            sum(prior.weights[s] * m.matrix[s, o] * costs[s, t] for s in range(4)) for t in range(4)
        )
        for o in range(3)
    ]
    assert loss == pytest.approx(sum(each), abs=1e-12)
    assert om.leakage.refines(m, found, tolerance=1e-12).holds


def test_remaps_keep_exact_probabilities_and_privacy() -> None:
    grid = om.Grid(4, 4)
    prior = om.Prior(grid, [k % 5 for k in range(16)])
    noise = om.mechanisms.planar_laplace(grid, 0.7)
    used = om.mechanisms.optimal_remap(noise, prior, KM)
    assert used.observables == grid
    assert om.measures.expected_loss(used, prior, KM) == pytest.approx(
        om.measures.distortion(noise, prior, KM), rel=1e-12
    )
    assert om.measures.epsilon(used, KM) <= 0.7 * (1 + 1e-9)
    problem = om.Problem(prior, KM, constraints=[om.MetricPrivacy(0.7, KM)])
    design = om.solve(problem)
    again = om.mechanisms.optimal_remap(design.mechanism, prior, KM)
    assert again.exact is not None
    assert om.leakage.refines(design.mechanism, again).holds
    squared = om.mechanisms.optimal_remap(
        noise, prior, om.losses.powered(KM, 2), outputs=om.Grid(4, 4)
    )
    assert squared.observables == grid
    with pytest.raises(om.ProblemError, match="loss"):
        om.mechanisms.optimal_remap(noise, prior, [[1.0]])


MASSES = st.lists(st.integers(0, 6), min_size=6, max_size=6).filter(any)


@given(MASSES, st.sampled_from([1.0, 2.0]), st.integers(0, 100))
def test_elastic_balls_hold_their_mass(mass: list[int], exponent: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = om.Domain("abcdef", rng.integers(0, 4, (6, 2)) + np.arange(6)[:, None] * 1e-3)
    values = om.distances.elastic(mass, 0.5, exponent=exponent)(places, places)
    assert (values == values.T).all()
    assert np.diag(values).tolist() == [0] * 6
    assert om.distances.triangle_report(values).excess <= 1e-12
    radii = np.unique(values)
    for x, r in product(range(6), np.concatenate([radii, radii * 0.999, [50.0]])):
        held = sum(m for m, d in zip(mass, values[x], strict=True) if d <= r * (1 + 1e-12))
        assert held >= min(0.5 * r**exponent, sum(mass)) - 1e-9


def test_elastic_distances_stretch_in_town(tmp_path: Path) -> None:
    """On a line, the first half ten times denser: steps of the root of the mass on the way."""
    line = om.Domain.range(8)
    prior = om.Prior(line, [10, 10, 10, 10, 1, 1, 1, 1])
    elastic = om.distances.elastic(prior, 1 / 44, exponent=1)
    values = elastic(line, line)
    assert values[0, 1] == pytest.approx(10)
    assert values[6, 7] == pytest.approx(1)
    design = om.solve(om.Problem(prior, KM, constraints=[om.MetricPrivacy(0.2, elastic)]))
    design.save(tmp_path / "elastic.json")
    assert om.check(tmp_path / "elastic.json").passed
    import optmech_audit as audit

    assert audit.main([str(tmp_path / "elastic.json")]) == 0
    other = om.Domain.range(8, unit="km")
    assert (elastic(other, other) == values).all()
    with pytest.raises(om.ProblemError, match="elastic: has masses for 8 points"):
        elastic(om.Domain.range(3), om.Domain.range(3))
    with pytest.raises(om.ProblemError, match="unit"):
        om.distances.elastic(prior, 0)
    with pytest.raises(om.ProblemError, match="mass"):
        om.distances.elastic([0, 0], 1)


def test_mistakes_are_answered() -> None:
    many = om.Domain.range(40)
    with pytest.raises(om.errors.TooLargeError, match="subsets of 20"):
        om.mechanisms.subset_selection(many, 1, size=20)
    with pytest.raises(om.errors.TooLargeError, match=r"2\^40 observables"):
        om.mechanisms.optimised_unary_encoding(many, 1)
    with pytest.raises(om.ProblemError, match="size"):
        om.mechanisms.subset_selection(many, 1, size=40)
    with pytest.raises(om.ProblemError, match="nothing to hide"):
        om.mechanisms.subset_selection(om.Domain.range(1), 1)
    with pytest.raises(om.ProblemError, match="cells: Domain is not a Grid"):
        om.mechanisms.planar_geometric(many, 1)
    with pytest.raises(om.ProblemError, match="cells: the grid is a line"):
        om.mechanisms.planar_geometric(om.Grid(1, 4), 1)
    with pytest.raises(om.errors.TooLargeError, match="epsilon: the noise reaches"):
        om.mechanisms.planar_geometric(om.Grid(2, 2), 0.001)
