"""Noise for points: privacy, loss and bound against integrals and a linear program of our own."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from judged import verdicts
from optmech_noise.additive.spheres import common, half
from scipy.integrate import dblquad, quad

import optmech as om

ASKED: dict[str, dict[str, Any]] = {
    "plane": {"epsilon": 3, "delta": 1e-2, "cells": 4, "gap": 0.2},
    "distance": {"epsilon": 1, "delta": 0.02, "cells": 4, "loss": "absolute", "gap": 0.2},
    "space": {
        "epsilon": 2,
        "delta": 0.01,
        "dimension": 3,
        "sensitivity": "5/2",
        "cells": 10,
        "gap": 0.1,
    },
}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return {name: om.noise.radial(**asked) for name, asked in ASKED.items()}


def density(noise: Any, radius: float) -> float:
    """From the balls, apart from the code under test."""
    d, step = noise.dimension, float(noise.step)
    ball = math.pi if d == 2 else 4 * math.pi / 3
    weights = np.array([w / 2**noise.law.bits for w in noise.law.balls])
    radii = step * np.arange(1, len(weights) + 1)
    return float((weights / (ball * radii**d))[radii > radius].sum())


def spent(noise: Any, rate: float, length: float) -> float:
    """∫ max(0, f(x) - e^ε f(x - v)) on a fine grid of the half-plane about the shift's axis."""
    far, count = float(noise.law.n * noise.step) * 1.0001, 700
    h = 2 * far / count
    x, y = np.meshgrid(-far + h * (np.arange(count) + 0.5), h * (np.arange(count // 2) + 0.5))
    edges = float(noise.step) * np.arange(noise.law.n + 1)
    heights = np.array([density(noise, (a + b) / 2) for a, b in itertools.pairwise(edges)])

    def at(r: Any) -> Any:
        return np.append(heights, 0.0)[np.minimum((r / edges[1]).astype(int), noise.law.n)]

    # |x - v| of a place that is x along the axis and y away from it
    over = np.maximum(at(np.hypot(x, y)) - math.exp(rate) * at(np.hypot(x - length, y)), 0)
    around = 2.0 if noise.dimension == 2 else 2 * np.pi * y
    return float((over * around).sum() * h * h)


def _power(r: float, degree: int) -> float:
    return float(r**degree)


def _weight(t: float, d: int, degree: int) -> float:
    """t^degree times the density of the first coordinate of an even unit vector."""
    return float(t**degree) * (1 / math.pi / math.sqrt(1 - t * t) if d == 2 else 0.5)


def test_what_is_spent_is_the_integral_and_the_largest_shift_is_the_worst(
    made: dict[str, Any],
) -> None:
    for noise in made.values():
        rate, span = float(noise.epsilon), float(noise.sensitivity)
        found = [spent(noise, rate, span * share) for share in (0.25, 0.5, 0.75, 1.0)]
        assert found == sorted(found)
        assert found[-1] == pytest.approx(float(noise.spent), rel=0.08)
        assert noise.spent <= noise.delta
        assert float(noise.at(0)) == pytest.approx(spent(noise, 0, span), rel=0.01)


def test_losses_and_densities_are_those_of_the_balls(made: dict[str, Any]) -> None:
    for noise in made.values():
        d, degree = noise.dimension, noise.degree
        around = 2 * math.pi if d == 2 else 4 * math.pi
        edges = float(noise.step) * np.arange(noise.law.n + 1)
        mass = loss = 0.0
        for a, b in itertools.pairwise(edges):
            height = density(noise, (a + b) / 2)
            mass += height * around * quad(_power, a, b, (d - 1,))[0]
            loss += height * around * quad(_power, a, b, (d - 1 + degree,))[0]
            assert noise.density((a + b) / 2) == pytest.approx(height, rel=1e-6, abs=1e-15)
        assert mass == pytest.approx(1, rel=1e-9)
        assert loss == pytest.approx(noise.loss, rel=1e-9)


def test_bounds_are_below_all_noise_that_people_use(made: dict[str, Any]) -> None:
    """Gaussian noise (Balle and Wang 2018), and what is published for the plane: the best of all
    densities on rings (one linear program, .5705 at (3, 1e-5)) and the l2 mechanism (.6665)."""
    from optmech_noise.baselines import gaussian_scale

    for noise in made.values():
        sigma = gaussian_scale(float(noise.epsilon), float(noise.delta), float(noise.sensitivity))
        d = noise.dimension
        gaussian = d * sigma**2
        if noise.degree == 1:
            gaussian = sigma * math.sqrt(2) * math.gamma((d + 1) / 2) / math.gamma(d / 2)
        assert 0 < noise.lower_bound <= noise.loss < gaussian
    assert max(noise.gap for noise in made.values()) < 0.2


def test_a_bound_is_below_noise_of_any_other_law() -> None:
    """Even noise on a disc keeps (0, δ): what two discs have not in common is δ."""
    noise = om.noise.radial(0.05, 0.5, cells=4, gap=0.5)

    def missing(radius: float) -> float:
        lens = 2 * math.acos(1 / (2 * radius)) - math.sin(2 * math.acos(1 / (2 * radius)))
        return 1 - lens / math.pi

    radius = next(r for r in np.arange(0.6, 5, 0.001) if missing(r) <= 0.5)
    assert noise.lower_bound <= radius**2 / 2
    assert noise.loss <= radius**2 / 2 * 1.02


@pytest.mark.parametrize("d", [2, 3])
def test_shares_and_volumes(d: int) -> None:
    for w in (0.01, 0.5, 1.0, 1.7):
        share, mean = (float(v.mid()) for v in half(d, flint.arb(w)))
        assert share == pytest.approx(quad(_weight, 1 - w, 1, (d, 0))[0], rel=1e-6)
        assert mean == pytest.approx(quad(_weight, 1 - w, 1, (d, 1))[0], rel=1e-6)
    found = float(common(d, 3, 2, 2).mid())

    def deep(y: float, x: float) -> float:
        return 2 * math.sqrt(max(0.0, min(9 - x * x, 4 - (x - 2) ** 2) - y * y))

    wide = lambda x: math.sqrt(max(0.0, min(9 - x * x, 4 - (x - 2) ** 2)))  # noqa: E731
    if d == 2:
        volume = quad(lambda x: 2 * wide(x), 0, 3, limit=200)[0] / math.pi
    else:
        inner = dblquad(deep, 0, 3, lambda x: -wide(x), wide, epsabs=1e-5)[0]
        volume = inner / (4 * math.pi / 3)
    assert found == pytest.approx(volume, rel=1e-3)


def test_draws_follow_the_law_and_releases_are_rounded_sums(made: dict[str, Any]) -> None:
    for noise in made.values():
        drawn = noise.sample(3000, seed=5)
        assert drawn.shape == (3000, noise.dimension)
        size = np.linalg.norm(drawn, axis=1) ** noise.degree
        assert abs(size.mean() - noise.loss) < 5 * size.std() / math.sqrt(3000)
        assert np.abs(drawn.mean(axis=0)).max() < 5 * drawn.std() / math.sqrt(3000)
        at = (0.5, -1.25, 3.0)[: noise.dimension]
        one = noise.release(at, 4, bits=10, seed=2)
        assert all(float(v * 1024).is_integer() for point in one for v in point)
    with pytest.raises(om.ProblemError, match="no point"):
        made["plane"].release((1, 2, 3))


def test_files_are_proved_again_and_altered_ones_refused(
    made: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "points.json"
    for noise in made.values():
        assert verdicts(noise.document(), path) == (True, True)
        again = om.load(path)
        assert (again.stated, again.loss) == (noise.stated, noise.loss)
        assert again.lower_bound == noise.lower_bound


def test_the_command_makes_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from optmech.cli.main import main

    path = str(tmp_path / "points.json")
    asked = ["--real", "--dimensions", "3", "--epsilon", "2", "--delta", "0.1", "--cells", "2"]
    assert main(["noise", *asked, "--loss", "square", "-o", path]) == 0
    assert main(["sample", path, "1,2,-3", "-n", "2"]) == 0
    assert main(["noise", *asked, "--norm", "l1"]) == 2
    assert main(["noise", "--real", "--dimensions", "2", "--epsilon", "2"]) == 3
    capsys.readouterr()


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"epsilon": 1, "delta": 0.1, "dimension": 4}, "dimension"),
        ({"epsilon": 0, "delta": 0.1}, "epsilon"),
        ({"epsilon": 1, "delta": 0}, "delta"),
        ({"epsilon": 0.01, "delta": 1e-9}, "cells"),
        ({"epsilon": 1, "delta": 0.1, "loss": "threshold"}, "loss"),
        ({"epsilon": 1, "delta": 0.1, "cells": 0}, "cells"),
    ],
)
def test_what_is_no_such_noise_is_refused(asked: dict[str, Any], where: str) -> None:
    with pytest.raises(om.OptmechError, match=where):
        om.noise.radial(**asked)


def test_other_libraries_know_what_points_reveal(made: dict[str, Any]) -> None:
    pytest.importorskip("opendp")
    pytest.importorskip("dp_accounting")
    noise = made["space"]
    length = float(noise.sensitivity)
    measurement = om.exchange.noise_to_opendp(noise)
    for share in (0.4, 1.0):
        rate, part = measurement.map(share * length)
        rings = math.ceil(share * noise.cells)
        known = spent(noise, rate, rings * float(noise.step))
        assert rate == 2
        assert part == pytest.approx(known, rel=0.05, abs=1e-4)
    assert len(measurement([1.0, 2.0, 3.0])) == 3
    pld = om.exchange.noise_to_dp_accounting(noise)
    for rate in (0.5, 2.0):
        exact = float(noise.at(rate))
        assert exact <= pld.get_delta_for_epsilon(rate) <= exact * 1.01 + 1e-6
