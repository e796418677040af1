"""The transportation simplex in plain Python, where no kernels are compiled."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import numpy as np, math
import optmech as om
from optmech.base.native import has_kernels
assert not has_kernels()
rng = np.random.default_rng(1)
x, y = rng.random((2, 60))
a, b = rng.random((2, 60))
d = np.abs(x[:, None] - y)
from scipy.stats import wasserstein_distance
assert abs(om.transport.wasserstein(a, b, d).value - wasserstein_distance(x, y, a, b)) < 1e-13
w = om.transport.wasserstein(a, b, d, math.inf)
assert d[w.plan > 0].max() == w.value
assert w.below is not None
near = np.abs(np.subtract.outer(x[:8], x[:8]))
found = om.guarantees.carry_over(near, a[:8], b[:8])
assert 0 < found.lower <= found.upper <= found.lower + 1e-11
assert found.upper <= om.transport.wasserstein(a[:8], b[:8], near, math.inf).value
"""


def test_same_answers() -> None:
    environment = {**os.environ, "OPTMECH_KERNELS": "numpy"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=600)
