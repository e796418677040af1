"""Real GPS fixes: what independence lets through, and what correlated noise saves."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from optmech_traces.chains.sequences import Fixes
from optmech_traces.gaussian.fitting import paths

from optmech import traces


def test_runs_are_thinned_projected_and_cut() -> None:
    seconds = np.array([0.0, 10, 40, 70, 75, 4000, 4040])
    lonlat = np.column_stack([116 + seconds / 1e5, np.full(7, 60.0)])
    found = paths(Fixes(["a"] * 7, seconds, lonlat), max_gap=600, spacing=30)
    assert [len(path.times) for path in found] == [3, 2]
    np.testing.assert_allclose(found[0].times, [0, 40 / 60, 70 / 60])
    # at 60 degrees north a degree of longitude is half of one of latitude
    degree = math.pi / 180 * 6371.0088
    east = found[0].positions[:, 0]
    np.testing.assert_allclose(np.diff(east), np.array([40, 30]) / 1e5 * degree / 2, rtol=1e-9)
    np.testing.assert_allclose(found[0].positions.mean(axis=0), 0, atol=1e-9)
    plain = paths(Fixes(["a"] * 7, seconds, lonlat), max_gap=600, lonlat=False, least=3)
    assert [len(path.times) for path in plain] == [5]


@pytest.mark.parametrize("user", ["003", "009"])
def test_independence_understates_the_loss_of_real_traces(shared_data: Path, user: str) -> None:
    fixes = Fixes.from_csv(
        shared_data / "geolife_beijing_11users.csv", user="user", time="utc", x="lon", y="lat"
    )
    path = next(p for p in paths(fixes, 600, 60, least=20) if p.user == user)
    times, positions = path.times[:20], path.positions[:20]
    fitted = traces.fit([(times, positions)], lambda length: traces.matern(length, 1.5))
    trace = traces.GaussianPrior(times, fitted.kernel, dimensions=2)
    secrets = list(range(0, 20, 2))
    naive = 2.0 * 0.1**2 * 20 / (2 * 1.0)  # enough for 20 independent coordinates
    loss = traces.privacy_loss(trace, naive, secrets, 0.1, 2.0)
    assert loss.lower > 1.8
    assert traces.calibrate(trace, 1.0, secrets, 0.1, 2.0) > 1.3 * math.sqrt(naive)
    design = traces.optimal_noise(trace, 1.0, [secrets], 0.1, 2.0)
    assert design.loss <= 1.0
    assert design.trace < 0.4 * design.isotropic
    assert design.gap < 1e-5
