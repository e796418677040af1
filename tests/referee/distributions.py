"""Total variation and Kullback–Leibler divergence against sums of their definition."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import optmech as om


def judge(rng: np.random.Generator) -> Iterator[str]:
    n = int(rng.integers(1, 6))
    p, q = (rng.dirichlet(np.full(n, 0.5)) for _ in range(2))
    if n > 1 and rng.random() < 0.5:
        p[0], p[1] = 0.0, p[0] + p[1]
    found = om.divergences.total_variation(p, q)
    wanted = sum(max(0.0, a - b) for a, b in zip(p, q, strict=True))
    if not math.isclose(float(found), wanted, abs_tol=1e-9):
        yield f"total variation {found} of {p} and {q} is {wanted}"
