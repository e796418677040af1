"""Known ranges, and several releases."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optmech as om


def test_geometric_noise_with_a_remap_is_optimal_in_a_range() -> None:
    """Ghosh, Roughgarden and Sundararajan: whatever the prior, the least loss is that of two-sided
    geometric noise, cut at the ends and then read as the best guess."""
    numbers, b = 6, 1 / 2
    for prior in ([1, 1, 1, 1, 1, 1], [6, 1, 2, 0, 1, 2]):
        design = om.noise.in_range("ln 2", bounds=(0, numbers - 1), prior=prior)
        weights = np.array(prior) / sum(prior)
        apart = np.abs(np.subtract.outer(np.arange(numbers), np.arange(-9, numbers + 9)))
        noisy = (1 - b) / (1 + b) * b**apart
        noisy[:, 0] = noisy[:, -1] = 0.0
        rest = 1 - noisy.sum(axis=1)
        below = b ** (np.arange(numbers) + 9.0) / (1 + b)
        noisy[:, 0], noisy[:, -1] = below, rest - below
        guesses = np.abs(np.subtract.outer(np.arange(numbers), np.arange(numbers)))
        least = np.einsum("s,so,sg->og", weights, noisy, guesses).min(axis=1).sum()
        assert design.loss == pytest.approx(least, rel=1e-5)
        assert design.status == "optimal"
        assert list(design.problem.secrets.labels) == list(range(numbers))


def test_a_range_never_costs_more_than_all_whole_numbers() -> None:
    noise = om.noise.optimal(1, 1e-2, sensitivity=2)
    small = om.noise.in_range(1, 1e-2, sensitivity=2, bounds=(-2, 2))
    wide = om.noise.in_range(1, 1e-2, sensitivity=2, bounds=(-6, 6))
    assert small.lower_bound <= wide.loss * (1 + 1e-9)
    assert wide.lower_bound <= noise.loss
    for bad in ((3, 3), (0, 1000), (0.0, 2), 5):
        with pytest.raises(om.ProblemError):
            om.noise.in_range(1, bounds=bad)  # type: ignore[arg-type]
    with pytest.raises(om.ProblemError):
        om.noise.in_range(1, bounds=(0, 2), prior=[1, 1])


def test_noise_for_several_releases_keeps_the_promise_of_all() -> None:
    found = om.noise.for_releases(1, 1e-4, 8, loss="square")
    assert found.privacy.delta(1).upper <= 1e-4
    assert found.loss <= found.tried["discrete Gaussian"]
    assert found.loss == pytest.approx(min(found.tried.values()), rel=1e-9)
    assert found.lower_bound <= found.loss
    # the Gaussian's own calculus: 8 releases of σ are one of σ/√8 (Balle and Wang, continuous)
    sigma = math.sqrt(found.tried["discrete Gaussian"])
    mu = math.sqrt(8) / sigma
    normal = lambda x: (1 + math.erf(x / math.sqrt(2))) / 2  # noqa: E731
    delta = normal(mu / 2 - 1 / mu) - math.e * normal(-mu / 2 - 1 / mu)
    assert delta == pytest.approx(1e-4, rel=0.02)
    for bad in ({"delta": 0}, {"releases": 0}, {"epsilon": 0}):
        arguments = {"epsilon": 1, "delta": 1e-4, "releases": 2} | bad
        with pytest.raises(om.ProblemError):
            om.noise.for_releases(**arguments)
