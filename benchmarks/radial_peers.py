"""Noise for points of the plane beside Gaussian noise and densities exp(-(r/s)^k).

``python benchmarks/radial_peers.py``. The l2 mechanism is k = 1 (Joseph and others, ICML 2025).
What is revealed by a density that falls outwards is one integral over its levels, here in floats.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from optmech_noise.baselines import gaussian_scale
from scipy.integrate import quad
from scipy.optimize import brentq

import optmech as om

CASES = ((1.0, 1e-5), (3.0, 1e-5), (5.0, 1e-5))
SHAPES = np.arange(0.4, 2.01, 0.1)


def lens(one: float, other: float) -> float:
    """What two discs have in common whose centres are 1 apart, over π."""
    if one <= 0 or one + other <= 1:
        return 0.0
    if other - one >= 1:
        return one**2
    a, b = (1 + one**2 - other**2) / (2 * one), (1 + other**2 - one**2) / (2 * other)
    total = one**2 * (math.acos(a) - a * math.sqrt(max(0.0, 1 - a * a)))
    return (total + other**2 * (math.acos(b) - b * math.sqrt(max(0.0, 1 - b * b)))) / math.pi


def spent(rate: float, scale: float, shape: float) -> float:
    """δ(ε) at a shift of length 1 of a density that falls as exp(-(r/scale)^shape)."""
    whole = 2 * scale**2 * math.gamma(2 / shape) / shape

    def level(x: float) -> float:
        # r = scale x^(1/shape); the level falls by exp(-x) dx
        r, far = scale * x ** (1 / shape), scale * (x + rate) ** (1 / shape)
        return math.exp(-x) * lens(r, far)

    total = sum(quad(level, a, b, limit=400)[0] for a, b in ((0, 1), (1, 10), (10, 60)))
    return 1 - total / whole


def shaped(rate: float, part: float, shape: float) -> float:
    """The least E‖Z‖² with this shape."""
    scale = brentq(lambda s: spent(rate, s, shape) - part, 0.02, 60, xtol=1e-9)
    return float(scale**2 * math.gamma(4 / shape) / math.gamma(2 / shape))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=len(CASES), help="how many, from the first")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many powers k")
    given = parser.parse_args()
    print("epsilon delta | ours, bound | Gaussian | exp(-r/s) | best exp(-(r/s)^k)")
    for rate, part in CASES[: given.cases]:
        ours = om.noise.radial(rate, part)
        found = {}
        for shape in SHAPES[: given.shapes]:
            try:
                found[float(shape)] = shaped(rate, part, float(shape))
            except ValueError:
                continue
        least = min(found, key=lambda k: found[k])
        gaussian = 2 * gaussian_scale(rate, part, 1.0) ** 2
        laplace = shaped(rate, part, 1.0)
        print(
            f"{rate:g} {part:g} | {ours.loss:.4f} {ours.lower_bound:.4f} | {gaussian:.4f} | "
            f"{laplace:.4f} | {found[least]:.4f} at k = {least:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
