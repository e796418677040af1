"""Kernels against scikit-learn's, enclosures against floats, and what is no prior."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest
from optmech_traces.gaussian import kernels

import optmech as om
from optmech import traces

TIMES = np.array([0.0, 0.4, 1.0, 2.5, 2.6, 7.0])


def of_sklearn() -> list[tuple[traces.Kernel, object]]:
    gp = pytest.importorskip("sklearn.gaussian_process.kernels", reason="needs scikit-learn")
    return [
        (traces.rbf(1.3, 2.0), 2.0 * gp.RBF(1.3)),
        (traces.ornstein_uhlenbeck(0.7), gp.Matern(0.7, nu=0.5)),
        (traces.matern(0.9, 1.5), gp.Matern(0.9, nu=1.5)),
        (traces.matern(0.9, 2.5), gp.Matern(0.9, nu=2.5)),
        (traces.matern(1.1, 1.2, 3.0), 3.0 * gp.Matern(1.1, nu=1.2)),
        (traces.periodic(0.8, 3.7), gp.ExpSineSquared(0.8, 3.7)),
        (traces.white(0.3), gp.WhiteKernel(0.3)),
        (
            traces.rbf(1.0) * traces.periodic(1.0, 2.0) + 0.5 * traces.matern(3.0),
            gp.RBF(1.0) * gp.ExpSineSquared(1.0, 2.0) + 0.5 * gp.Matern(3.0, nu=1.5),
        ),
    ]


def test_kernels_are_those_of_scikit_learn() -> None:
    for own, theirs in of_sklearn():
        expected = theirs(TIMES[:, None])  # type: ignore[operator]
        np.testing.assert_allclose(own.covariance(TIMES), expected, rtol=1e-12, atol=1e-14)


def test_scikit_learn_kernels_are_taken_as_they_are() -> None:
    for own, theirs in of_sklearn():
        a = traces.privacy_loss(traces.GaussianPrior(TIMES, own), 0.5, [0, 3], 1.0, 2.0)
        b = traces.privacy_loss(traces.GaussianPrior(TIMES, theirs), 0.5, [0, 3], 1.0, 2.0)
        assert a.upper == pytest.approx(b.upper, rel=1e-8)


def test_enclosures_hold_the_float_kernels() -> None:
    for own, _ in of_sklearn():
        with flint.ctx.workprec(200):
            balls = kernels.enclosed_covariance(own, TIMES)
        values = own.covariance(TIMES)
        for i in range(len(TIMES)):
            for j in range(len(TIMES)):
                assert float(balls[i, j].rad()) < 1e-40
                assert float(balls[i, j]) == pytest.approx(values[i, j], rel=1e-12, abs=1e-14)


def test_smoothness_one_half_is_the_exponential() -> None:
    kernel = traces.ornstein_uhlenbeck(2.0, 3.0)
    lag = np.abs(TIMES[:, None] - TIMES)
    np.testing.assert_allclose(kernel.covariance(TIMES), 3 * np.exp(-lag / 2), rtol=1e-14)


def test_functions_and_matrices_are_priors() -> None:
    own = traces.GaussianPrior(TIMES[1:], np.minimum)
    same = traces.GaussianPrior.from_covariance(np.minimum.outer(TIMES[1:], TIMES[1:]))
    np.testing.assert_array_equal(own.covariance, same.covariance)
    # Brownian motion: the future depends on the last position only, the release on N
    loss = traces.privacy_loss(own, 1.0, [4], 1.0, 2.0)
    assert loss.upper == traces.privacy_loss(same, 1.0, [4], 1.0, 2.0).upper
    assert loss.upper > 1.0
    assert len(own) == 5


def test_samples_have_the_covariance() -> None:
    trace = traces.GaussianPrior([0.0, 1.0], traces.rbf(1.0, 4.0), dimensions=2)
    paths = np.array([trace.sample(seed).ravel() for seed in range(4000)])
    np.testing.assert_allclose(np.cov(paths.T), trace.covariance, atol=0.35)
    assert traces.GaussianPrior(TIMES, traces.rbf(1.0)).sample(1).shape == (6,)


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: traces.GaussianPrior([0, 2, 1], traces.rbf(1.0)), r"times\[2\]"),
        (lambda: traces.GaussianPrior([0, 1, 1], traces.rbf(1.0)), r"times\[2\]: repeats"),
        (lambda: traces.GaussianPrior([], traces.rbf(1.0)), "times"),
        (lambda: traces.GaussianPrior([0, math.nan], traces.rbf(1.0)), "times"),
        (lambda: traces.GaussianPrior(["a"], traces.rbf(1.0)), "times"),
        (lambda: traces.GaussianPrior([0, 1], "rbf"), "kernel"),
        (lambda: traces.GaussianPrior([0, 1], lambda s, t: np.ones((3, 3))), "kernel"),
        (lambda: traces.GaussianPrior([0, 1], lambda s, t: np.ones((2, 2))), "kernel.*singular"),
        (lambda: traces.GaussianPrior([0, 1], lambda s, t: s - t), "kernel: is not symmetric"),
        (lambda: traces.GaussianPrior.from_covariance([[1, 2], [2, 1]]), "kernel.*singular"),
        (lambda: traces.GaussianPrior([0, 1], traces.rbf(1.0), dimensions=0), "dimensions"),
        (lambda: traces.GaussianPrior([0], traces.rbf(1.0), cross=[[1, 1], [1, 1]]), "cross"),
        (lambda: traces.rbf(0.0), "length_scale"),
        (lambda: traces.rbf(1.0, -1.0), "variance"),
        (lambda: traces.matern(1.0, 1e9), "smoothness"),
        (lambda: traces.periodic(1.0, 0.0), "period"),
        (lambda: traces.custom(3), "function"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_prior_is_refused(make: object, where: str) -> None:
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        make()  # type: ignore[operator]


def test_smooth_kernels_known_by_rounded_matrices_are_refused() -> None:
    """fifty points, length scale 20: rounding makes the matrix indefinite."""
    times = np.arange(50.0)
    matrix = traces.rbf(20.0).covariance(times)
    assert np.linalg.eigvalsh(matrix)[0] < 0
    with pytest.raises(om.ProblemError, match="least eigenvalue"):
        traces.GaussianPrior.from_covariance(matrix)
