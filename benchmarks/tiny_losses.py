"""Optima of losses down to 1e-13: certified gaps where ε times the diameter is large.

    python benchmarks/tiny_losses.py

Unit cells, a rough prior on all of them, or one on few; Euclidean and Hamming loss. Prints a line
for every problem, and at the end how many reached 1e-6.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np

import optmech as om

EUCLIDEAN = om.distances.euclidean()
GAP = 1e-6


def priors() -> Iterator[tuple[int, float, str, np.ndarray]]:
    """Cells a side, ε per cell, what the prior is, its weights."""
    for side in (5, 8, 12):
        for epsilon in (10, 16, 22, 30):
            weights = np.random.default_rng(1).dirichlet(np.full(side * side, 0.3))
            yield side, epsilon, "rough", weights
    for side in (10, 15):
        for epsilon in (1.5, 2.5, 4, 6):
            for few in (2, 4, 10):
                rng = np.random.default_rng(few)
                weights = np.zeros(side * side)
                weights[rng.choice(side * side, few, replace=False)] = rng.dirichlet(np.ones(few))
                yield side, epsilon, f"on {few} cells", weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th problem")
    every = parser.parse_args().every
    gaps = []
    for side, epsilon, what, weights in itertools.islice(priors(), 0, None, every):
        prior = om.Prior(om.Grid(side, side), weights)
        for loss in (EUCLIDEAN, om.distances.hamming()):
            privacy = om.MetricPrivacy(epsilon, EUCLIDEAN)
            problem = om.Problem(prior, loss, constraints=[privacy])
            begun = time.process_time()
            design = om.solve(problem, gap=GAP, time_limit=60)
            seconds = time.process_time() - begun
            gaps.append(design.gap)
            print(
                f"{side} x {side}, ε {epsilon:g}, {what}: loss {design.loss:.3e}, "
                f"gap {design.gap:.1e}, {design.engine}, {seconds:.1f} s",
                flush=True,
            )
    reached = sum(gap <= GAP for gap in gaps)
    print(f"{reached} of {len(gaps)} within {GAP:g}; the largest gap is {max(gaps):.1e}")


if __name__ == "__main__":
    main()
