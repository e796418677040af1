"""Fitted kernels against scikit-learn's marginal likelihood and simulated paths."""

from __future__ import annotations

import numpy as np
import pytest

import optmech as om
from optmech import traces


def paths(
    number: int, count: int, kernel: traces.Kernel, noise: float, seed: int
) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(seed)
    made = []
    for k in range(number):
        times = np.cumsum(rng.uniform(0.1, 0.6, count))
        path = traces.GaussianPrior(times, kernel, dimensions=2).sample(1000 * seed + k)
        made.append((times, path + np.sqrt(noise) * rng.standard_normal(path.shape)))
    return made


def test_the_likelihood_is_that_of_scikit_learn() -> None:
    gp = pytest.importorskip("sklearn.gaussian_process", reason="needs scikit-learn")
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    ((times, positions),) = paths(1, 40, traces.rbf(1.5, 2.0), 0.1, 3)
    found = traces.fit([(times, positions)], mean="zero")
    theirs = gp.GaussianProcessRegressor(
        found.variance * RBF(found.length_scale) + WhiteKernel(found.noise),
        optimizer=None,
        alpha=0.0,
    ).fit(times[:, None], positions)
    expected = theirs.log_marginal_likelihood_value_
    assert found.log_likelihood == pytest.approx(expected, rel=1e-10)
    # and no point of theirs is likelier than the fitted one
    theirs = gp.GaussianProcessRegressor(
        2.0 * RBF(1.5) + WhiteKernel(0.1), alpha=0.0, n_restarts_optimizer=0
    ).fit(times[:, None], positions)
    assert found.log_likelihood >= theirs.log_marginal_likelihood_value_ - 1e-4
    assert found.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-2)


def test_several_irregular_traces_give_their_parameters_back() -> None:
    data = paths(5, 90, traces.matern(1.2, 1.5, 3.0), 0.05, 11)
    data = [(t, x + np.array([100.0, -40.0])) for t, x in data]
    found = traces.fit(data, lambda length: traces.matern(length, 1.5))
    assert found.length_scale == pytest.approx(1.2, rel=0.2)
    assert found.variance == pytest.approx(3.0, rel=0.3)
    assert found.noise == pytest.approx(0.05, rel=0.5)
    assert found.observations == 5 * 180
    np.testing.assert_allclose(
        found.kernel.covariance(np.array([0.0, 1.0])),
        found.variance * traces.matern(found.length_scale).covariance(np.array([0.0, 1.0])),
    )


@pytest.mark.parametrize(
    ("data", "change", "where"),
    [
        ([], {}, "traces"),
        ([([0.0], [1.0])], {}, "traces"),
        ([([0, 1, 1], [1, 2, 3])], {}, r"traces\[0\].times\[2\]"),
        ([([0, 1], [1, 2, 3])], {}, r"traces\[0\].positions"),
        ([([0, 1], [1, np.nan])], {}, r"traces\[0\].positions"),
        ([3], {}, r"traces\[0\]"),
        (3, {}, "traces"),
        ([([0, 1, 2], [5, 6, 5])], {"family": 3}, "family"),
        ([([0, 1, 2], [5, 5, 5])], {}, "traces: the positions never change"),
        ([([0, 1, 2], [5, 6, 5])], {"bounds": (2, 1)}, "bounds"),
        ([([0, 1, 2], [5, 6, 5])], {"noise": -1}, "noise"),
        ([([0, 1, 2], [5, 6, 5])], {"mean": "median"}, "mean"),
    ],
)
def test_bad_data_are_placed(data: list[object], change: dict[str, object], where: str) -> None:
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        traces.fit(data, **change)  # type: ignore[arg-type]
