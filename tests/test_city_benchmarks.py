"""What the benchmarks of cities stand on: districts, rectangular programs, a model of messages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog


def test_districts_are_halves_of_halves(benchmark_modules: None) -> None:
    from districts import counted, halved

    points = np.random.default_rng(1).random((41, 2)) * [3.0, 1.0]
    parts = list(halved(points, 4))
    assert sorted(np.concatenate(parts).tolist()) == list(range(41))
    assert sorted(len(part) for part in parts) == [10, 10, 10, 11]
    # the first cut is across the longer side
    west = np.concatenate(parts[:2])
    east = np.concatenate(parts[2:])
    assert points[west, 0].max() <= points[east, 0].min()
    places, times = counted(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    assert dict(zip(map(tuple, places.tolist()), times.tolist(), strict=True)) == {
        (0.0, 5.0): 1.0,
        (1.0, 2.0): 2.0,
    }


@pytest.fixture
def program() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Five secrets on a line, three reports, a loss that is no distance, and the optimum, of the
    inequalities written one by one."""
    rng = np.random.default_rng(5)
    weights, loss = rng.dirichlet(np.ones(5)), rng.random((5, 3))
    log_ratio = 0.8 * np.abs(np.arange(5.0)[:, None] - np.arange(5.0))
    rows = []
    for s in range(5):
        for t in range(5):
            for o in range(3):
                if s != t:
                    row = np.zeros((5, 3))
                    row[s, o], row[t, o] = 1.0, -np.exp(log_ratio[s, t])
                    rows.append(row.ravel())
    sums = [np.eye(5)[s][:, None].repeat(3, axis=1).ravel() for s in range(5)]
    cost = (weights[:, None] * loss).ravel()
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), np.array(sums), np.ones(5))
    return weights, loss, log_ratio, float(found.fun)


def test_peers_take_fewer_reports_than_secrets(benchmark_modules: None, program: tuple) -> None:
    from peers import highs, linprog

    weights, loss, log_ratio, optimum = program
    for peer in (linprog, highs("simplex"), highs("simplex", scaled=True)):
        matrix, claim = peer(weights, loss, log_ratio)
        assert claim == "optimal"
        assert matrix.shape == (5, 3)
        assert weights @ (matrix * loss).sum(axis=1) == pytest.approx(optimum, rel=1e-9)


def test_libqif_takes_fewer_reports_than_secrets(benchmark_modules: None, program: tuple) -> None:
    pytest.importorskip("qif", reason="libqif is not installed: pip install qif")
    from peers import libqif

    weights, loss, log_ratio, optimum = program
    for peer in (libqif("AUTO"), libqif("GLOP")):
        matrix, _ = peer(weights, loss, log_ratio)
        assert weights @ (matrix * loss).sum(axis=1) == pytest.approx(optimum, rel=1e-7)


def test_optmech_is_given_what_the_peers_are(
    benchmark_modules: None, program: tuple, tmp_path: Path
) -> None:
    from city_peers import ours

    weights, loss, log_ratio, optimum = program
    path = tmp_path / "p.npz"
    np.savez(path, prior=weights, loss=loss, log_ratio=log_ratio)
    matrix, status, bound = ours(path, 60.0)
    assert status == "optimal"
    assert bound <= optimum * (1 + 1e-9)
    assert weights @ (matrix * loss).sum(axis=1) == pytest.approx(optimum, rel=2e-6)


def test_the_model_of_messages(benchmark_modules: None) -> None:
    from blocks_apart import modelled

    profile = {
        "seconds": 100.0,
        "parts": {"blocks: factor": 50.0, "blocks: solve": 30.0, "preconditioner: factor": 15.0},
        "calls": {"blocks: factor": 20, "blocks: solve": 180, "preconditioner: factor": 10},
    }
    sent = {"tasks": 0.02, "actors": 0.01, "matrix": 0.3}
    # 20 beside the blocks, a half of their 80, 200 messages, 10 additions
    assert modelled(profile, sent, 2) == pytest.approx(20 + 40 + 200 * 0.01 + 10 * 0.3)
    # everything but the 15 of the preconditioner
    halves = 15 + 85 / 2
    assert modelled(profile, sent, 2, most=True) == pytest.approx(halves + 200 * 0.01 + 10 * 0.3)
    # four: messages to twice as many, additions in a tree of two levels
    assert modelled(profile, sent, 4) == pytest.approx(20 + 20 + 200 * 0.02 + 20 * 0.3)


def test_seconds_of_what_is_inside_count_once(benchmark_modules: None) -> None:
    from blocks_apart import Timed

    class Work:
        def outer(self) -> int:
            return self.inner() + self.inner()

        def inner(self) -> int:
            return 1

    timed = Timed()
    timed.wrap(Work, "outer", "outer")
    timed.wrap(Work, "inner", "inner")
    assert Work().outer() == 2
    assert dict(timed.calls) == {"outer": 1, "inner": 2}
    assert json.dumps(timed.seconds)
    assert min(timed.seconds.values()) >= 0.0
