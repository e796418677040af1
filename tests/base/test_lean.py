"""NumPy is whole although SciPy was loaded without two parts of it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import optmech.base.arrays
assert "scipy.sparse" in sys.modules
assert not {"numpy.f2py", "numpy.testing"} & sys.modules.keys()
import numpy as np
assert {"f2py", "testing"} <= set(np.__all__) & set(dir(np))
np.testing.assert_array_equal(np.ones(2), [1, 1])
import numpy.f2py, scipy.stats, scipy.optimize, scipy.spatial, scipy.special
assert scipy.stats.norm.cdf(0) == 0.5
"""


def test_numpy_is_whole() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
