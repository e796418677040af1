"""Noise on the real line: closed forms, densities integrated here, a linear program of SciPy's,
known noise, exact draws, files."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from judged import refused_alike, verdicts
from optmech_noise import RealLoss, RealNoise
from optmech_noise.additive.design import centre_bound
from scipy.optimize import linprog

import optmech as om
from optmech.cli.main import main
from optmech.reading.sealed import seal

ASKED: dict[str, dict[str, Any]] = {
    "staircase": {"epsilon": 1},
    "squares": {"epsilon": "ln 3", "loss": "square", "sensitivity": "5/2", "cells": 8},
    "absolute": {"epsilon": 1, "delta": "1e-5", "sensitivity": 2},
    "finer": {"epsilon": 5, "delta": "1e-5", "cells": 20},
    "rises": {"epsilon": 3, "delta": "3/10", "loss": "square"},
    "threshold": {"epsilon": 1, "delta": "1/100", "loss": "threshold", "width": "5/3", "cells": 6},
    "pure threshold": {"epsilon": 1, "loss": "threshold", "width": 2, "cells": 8},
    "corners": {"epsilon": 1, "delta": "1/100", "loss": [(0, 1), ("1/3", 0), (2, 4)], "cells": 8},
    "flat": {"epsilon": 0, "delta": "1/10"},
    "gathered": {"epsilon": 3, "delta": "3/10", "cells": 12},
    "cubes": {"epsilon": 1, "delta": "1/100", "loss": lambda x: x**3, "cells": 4},
    "table": {
        "epsilon": 2,
        "loss": RealLoss.convex(
            [(0, "1/3"), ("1/2", "1/4"), (1, "1/3"), ("5/3", 1), (3, 3), (4, 5)], ("9/4", "1/8")
        ),
        "cells": 7,
    },
}


@pytest.fixture(scope="module")
def made() -> dict[str, RealNoise]:
    return {name: om.noise.real(**asked) for name, asked in ASKED.items()}


def cells_of(design: Any) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the cells, in sensitivities, and the density between them, from ``density`` alone."""
    law, width = design.law, float(design.step)
    last = law.n + 25 * len(law.tails)
    middles = np.arange(-last, last + 1) * width
    ends = (np.arange(-last, last + 2) - 0.5) * width
    return ends, design.density(middles)


@pytest.fixture(scope="module")
def cells(made: dict[str, RealNoise]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {name: cells_of(design) for name, design in made.items()}


def excess(ends: np.ndarray, heights: np.ndarray, shift: float, power: float) -> float:
    """∫ max(0, f(x) - power f(x + shift)) dx, from one end of a piece to the next."""
    cuts = np.unique(np.concatenate([ends, ends - shift]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    padded = np.concatenate([[0.0], heights, [0.0]])
    first, second = (padded[np.searchsorted(ends, x)] for x in (middles, middles + shift))
    return float(np.maximum(first - power * second, 0.0) @ np.diff(cuts))


@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 10, 20])
@pytest.mark.parametrize("loss", ["absolute", "square"])
def test_without_delta_the_staircase_is_met(epsilon: float, loss: str) -> None:
    """Geng and Viswanath (2016), Theorems 3 and 4: Δ e^{ε/2}/(e^ε - 1) for |x|, and for x²
    Δ² (2^{-2/3} b^{2/3} (1 + b)^{2/3} + b)/(1 - b)² with b = e^-ε."""
    b = math.exp(-epsilon)
    if loss == "absolute":
        known = 3 * math.exp(epsilon / 2) / math.expm1(epsilon)
    else:
        known = 9 * (2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b) ** 2
    design = om.noise.real(epsilon, loss=loss, sensitivity=3)
    assert design.loss == pytest.approx(known, rel=1e-9)
    assert design.lower_bound == pytest.approx(known, rel=1e-9)
    assert design.lower_bound <= known * (1 + 1e-14)
    assert known * (1 - 1e-14) <= design.loss
    assert design.status == "optimal"


@pytest.mark.parametrize(
    ("epsilon", "cells", "low", "high"),
    [(1, 16, 0.959308, 0.959802), (2, 16, 0.424496, 0.425612), (5, 16, 0.079376, 0.084233)],
)
def test_brackets_of_an_earlier_program(epsilon: int, cells: int, low: float, high: float) -> None:
    design = om.noise.real(epsilon, "1e-5", cells=cells)
    # at ε = 5 more is known of the middle
    assert low * (1 - 1e-5) <= design.lower_bound <= low * 1.02
    assert low < design.loss < high + 1e-6
    # to a thousandth at ε = 5 it takes 128 cells
    gap = 1e-2 if epsilon == 5 else 1e-3
    finer = om.noise.real(epsilon, "1e-5", cells="auto", gap=gap)
    assert finer.gap <= gap
    assert low - 1e-6 < finer.lower_bound < finer.loss < high + 1e-6


@pytest.mark.parametrize("delta", ["1e-9", "1e-5", "1/4"])
@pytest.mark.parametrize("epsilon", [6, 20])
@pytest.mark.parametrize("loss", ["absolute", "square"])
def test_large_epsilon_is_no_worse_than_a_mixture_and_bounded(
    epsilon: int, delta: str, loss: str, tmp_path: Path
) -> None:
    """The staircase with probability 1 - δ and no noise at all else, which is as private, but for
    the width of its cells; at ε = 20 that is the optimum, up to a share a of it."""
    b = math.exp(-epsilon)
    pure = math.exp(epsilon / 2) / math.expm1(epsilon)
    if loss == "square":
        pure = (2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b) ** 2
    part = float(Fraction(delta))
    design = om.noise.real(epsilon, delta, loss=loss, cells=2)
    width = float(design.step)
    spare = width / 4 if loss == "absolute" else width**2 / 12
    assert design.loss <= ((1 - part) * pure + part * spare) * (1 + 1e-8)
    assert design.lower_bound <= design.loss
    least = {6: 0.9, 9: 0.99, 13: 0.999, 20: 0.99998}[epsilon] if loss == "absolute" else 0
    if part < 1e-4:
        assert design.lower_bound >= least * pure
    if delta == "1/100" and epsilon < 13:
        design.save(tmp_path / "noise.json")
        assert verdicts((tmp_path / "noise.json").read_bytes(), tmp_path / "noise.json") == (
            True,
            True,
        )
    if epsilon == 20:
        assert design.lower_bound >= (1 - part) * pure * (1 - 4e-3 * (loss == "square") - 2e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 1e-3), (4.0, 0.05), (4.0, 0.3), (4.5, 1e-6)])
@pytest.mark.parametrize("degree", [1, 2])
def test_the_bound_of_the_middle_is_below_what_a_program_finds(
    epsilon: float, delta: float, degree: int
) -> None:
    n, reach = 9, 40
    k = np.abs(np.arange(-reach, reach + 1.0))
    cost = k / n + (k == 0) / (4 * n) if degree == 1 else (k * k + 1 / 12) / n**2
    best = program(epsilon, delta, n, reach, cost)
    power = Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**14))
    bound = float(centre_bound(power, degree, Fraction(delta)))
    assert bound <= best * (1 + 1e-7)
    if delta < 0.1 and degree == 1:
        assert bound > 0.75 * best


def test_the_middle_gathers_what_delta_allows() -> None:
    """(ε, δ) = (3, 0.3): a published monotone density has E|Z| = 0.170048, and 0.1705 was called
    optimal (Selvi, Liu and Wiesemann 2025, supplement)."""
    design = om.noise.real(3, "3/10", cells=16)
    assert (design.grid, design.cells) == (16, 677)
    assert 0.1615 < design.lower_bound < design.loss < 0.1645


def test_no_random_shift_of_the_density_is_a_violation(
    made: dict[str, RealNoise], cells: dict[str, tuple[np.ndarray, np.ndarray]]
) -> None:
    """A thousand shifts in all, integrated piece by piece."""
    rng = np.random.default_rng(1)
    for name, design in made.items():
        ends, heights = cells[name]
        power, limit = math.exp(float(design.epsilon)), float(design.delta)
        reach = float(design.sensitivity)
        count = 30 if design.law.tails else 120
        shifts = np.append(rng.uniform(-reach, reach, count), [reach, -reach, float(design.step)])
        found = [excess(ends, heights, s, power) for s in shifts]
        # beyond 25 periods of its tails the noise was cut off here
        assert max(found) <= limit * (1 + 1e-9) + 1e-10, name
        if limit:
            assert max(found) >= limit * 0.99, name
        total = float(heights @ np.diff(ends))
        assert total == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("loss", ["square", "absolute", "corners"])
def test_divergences_at_every_real_shift(loss: str) -> None:
    """Integrals of the density at random shifts; Gaussian noise of the same divergence costs more
    than the bound, and nothing on the line costs less."""
    rng = np.random.default_rng(4)
    given = [(0, 0), ("1/3", "1/3"), (1, 4)] if loss == "corners" else loss
    design = om.noise.rdp([(1, "3/4"), (2, 1)], loss=given, sensitivity=2, cells=6)
    ends, heights = cells_of(design)
    assert float(heights @ np.diff(ends)) == pytest.approx(1, abs=1e-9)
    most = []
    for shift in [*rng.uniform(0, 2, 100), 2.0, 1.0]:
        cuts = np.unique(np.concatenate([ends, ends - shift]))
        middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
        padded = np.concatenate([[0.0], heights, [0.0]])
        first, second = (padded[np.searchsorted(ends, x)] for x in (middles, middles + shift))
        held = (first > 1e-200) & (second > 1e-200)
        f, g, w = first[held], second[held], widths[held]
        kl, two = float(w @ (f * np.log(f / g))), math.log(float(w @ (f**2 / g)))
        assert kl <= 0.75 * (1 + 1e-9)
        assert two <= 1 + 1e-9
        assert design.divergence_at(float(shift)) == pytest.approx(kl, abs=1e-8)
        most.append(max(kl / 0.75, two))
    assert max(most) == pytest.approx(1, rel=1e-6)
    sigma = 2 * math.sqrt(1)  # KL Δ²/2σ² = 1/2, order 2 Δ²/σ² = 1
    x = np.linspace(-12 * sigma, 12 * sigma, 200_001)
    gauss = np.exp(-((x / sigma) ** 2) / 2)
    costs = {"square": x**2, "absolute": np.abs(x)}.get(loss)
    if costs is None:
        costs = np.interp(np.abs(x), [0, 1 / 3, 1, 1 + 40], [0, 1 / 3, 4, 4 + 40 * 5.5])
    assert design.lower_bound < float(gauss @ costs / gauss.sum())
    assert design.gap < 0.012


@pytest.mark.parametrize(("sigma", "published"), [(1.5, 0.22183), (0.75, 0.86676)])
def test_the_least_divergence_of_a_variance_beside_what_was_published(
    sigma: float, published: float
) -> None:
    """Cactus (Alghamdi et al., 2022): values that were reached, by its authors' table; Gaussian
    noise has 1/2σ²."""
    variance = Fraction(str(sigma)) ** 2
    design = om.noise.least_divergence(1, variance, loss="square", cells=8)
    least = design.least_divergence(variance)
    assert design.exact_loss <= variance
    assert least <= published * (1 + 1e-5)
    assert design.divergence <= 1 / (2 * sigma**2)
    assert design.divergence / least < 1.01


def _some_losses(rng: np.random.Generator) -> Any:
    """Corners that bend up and down, and points of convex functions, each with the loss itself."""
    for _ in range(60):
        x = np.append(0, np.cumsum(rng.integers(1, 9, size=rng.integers(1, 6)))) / 4
        y = np.append(rng.integers(0, 9, size=len(x) - 1), 9) / 2
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        known = RealLoss.of([(Fraction(a), Fraction(b)) for a, b in zip(x, y, strict=True)])
        yield (
            known,
            lambda at, x=x, y=y, slope=slope: (
                np.interp(at, x, y) + slope * np.maximum(at - x[-1], 0)
            ),
        )
    for power in (1, 1.5, 2, 3):
        for width in (1 / 8, 1 / 4, 1 / 2):
            points = [(Fraction(k * width), Fraction((k * width) ** power)) for k in range(9)]
            yield (
                RealLoss.convex(points, (100, 100)),
                lambda at, power=power: at**power,
            )


def test_what_is_charged_in_bounds_is_below_the_loss_everywhere() -> None:
    """Straight between the points of a lattice it is nowhere above the loss, whichever way that
    bends, and the means over cells are at least the loss's."""
    rng = np.random.default_rng(5)
    parts = (np.arange(256) + 0.5) / 256
    for loss, value in _some_losses(rng):
        for step in (
            Fraction(1),
            Fraction(1, 2),
            Fraction(1, 8),
            Fraction(int(rng.integers(1, 40)), 23),
        ):
            cells = loss.on(step)
            below = [float(cells.unit * (cells.below(k) - cells.charge)) for k in range(9)]
            for k in range(8):
                at = (k + parts) * float(step)
                if loss.name == "convex" and at[-1] > float(loss.corners[-1][0]):
                    continue
                straight = below[k] + (below[k + 1] - below[k]) * parts
                assert (straight <= value(at) + 1e-12).all(), (loss, step, k)
                mean = value(np.abs(k + parts - 0.5) * float(step)).mean()
                assert float(cells.unit * cells.above(k)) >= mean - 1e-3 * float(step), (loss, step)


def test_a_loss_that_bends_down_is_bounded_as_a_program_says(tmp_path: Path) -> None:
    """On one cell a sensitivity, chords that lie below the loss once raised the bound to 1.5213: a
    program of SciPy's with six cells reaches 1.4500."""
    n, reach = 6, 72
    k = np.abs(np.arange(-reach, reach + 1.0))
    parts = (np.arange(200) + 0.5) / 200 - 0.5
    places = np.abs(k[:, None] + parts) / n
    best = program(0.3, 0.2, n, reach, np.interp(places, [0, 0.75], [0, 2]).mean(axis=1))
    assert best < 1.46
    design = om.noise.real("3/10", "1/5", loss=[(0, 0), ("3/4", 2), ("3/2", 2)], cells=1)
    assert design.lower_bound <= best * (1 + 1e-6)
    design.save(tmp_path / "noise.json")
    path = tmp_path / "noise.json"
    assert verdicts(path.read_bytes(), path) == (True, True)


def test_privacy_at_a_shift_is_the_integral(
    made: dict[str, RealNoise], cells: dict[str, tuple[np.ndarray, np.ndarray]]
) -> None:
    for name in ("absolute", "rises", "threshold"):
        design = made[name]
        ends, heights = cells[name]
        for shift in (0, "1/7", 0.3, 1, "19/10"):
            for epsilon in (None, 0.25):
                rate = float(design.epsilon) if epsilon is None else epsilon
                mine = excess(ends, heights, float(Fraction(shift)), math.exp(rate))
                found = float(design.privacy(shift, epsilon=epsilon))
                assert found == pytest.approx(mine, rel=1e-9, abs=1e-12), name


def test_the_loss_is_the_integral(
    made: dict[str, RealNoise], cells: dict[str, tuple[np.ndarray, np.ndarray]]
) -> None:
    losses = {
        "staircase": abs,
        "gathered": abs,
        "squares": lambda x: x * x,
        "absolute": abs,
        "rises": lambda x: x * x,
        "threshold": lambda x: float(abs(x) > 5 / 3),
        "corners": lambda x: np.interp(abs(x), [0, 1 / 3, 2, 52], [1, 0, 4, 124]),
        "table": lambda x: (
            np.interp(abs(x), [0, 1 / 2, 1, 5 / 3, 3, 4], [1 / 3, 1 / 4, 1 / 3, 1, 3, 5])
            + max(0.0, abs(x) - 4) * 9 / 4
            + max(0.0, abs(x) - 4) ** 2 / 8
        ),
    }
    for name, loss in losses.items():
        ends, heights = cells[name]
        corners = np.array([1 / 3, 1 / 2, 1, 5 / 3, 2, 3, 4])
        cuts = np.unique(np.concatenate([ends, -corners, [0], corners]))
        cuts = cuts[(cuts >= ends[0]) & (cuts <= ends[-1])]
        total = 0.0
        for a, b in pairwise(cuts):
            height = heights[np.searchsorted(ends, (a + b) / 2) - 1]
            if name in ("squares", "rises"):
                part = (b**3 - a**3) / 3
            else:
                # a parabola at most within a piece: Simpson's rule
                part = (b - a) * (loss(a + 1e-12) + 4 * loss((a + b) / 2) + loss(b - 1e-12)) / 6
            total += height * part
        assert total == pytest.approx(made[name].loss, rel=1e-7), name


def program(epsilon: float, delta: float, n: int, reach: int, cost: np.ndarray) -> float:
    """The least Σ c(k) z(k) on |k| <= reach with H_s <= δ for s = 1, …, n, by SciPy."""
    size, power = 2 * reach + 1, math.exp(epsilon)
    rows: list[tuple[int, int, float]] = []
    upper: list[float] = []
    columns = size
    for s in range(1, n + 1):
        first = columns
        for i in range(size):
            rows.append((len(upper), i, 1.0))
            if i + s < size:
                rows.append((len(upper), i + s, -power))
            rows.append((len(upper), columns, -1.0))
            columns += 1
            upper.append(0.0)
        rows += [(len(upper), k, 1.0) for k in range(first, columns)]
        upper.append(delta)
    at, across, values = zip(*rows, strict=True)
    matrix = sp.csr_array((values, (at, across)), shape=(len(upper), columns))
    wanted = np.zeros((reach + 1, columns))
    wanted[0, :size] = 1.0
    for k in range(reach):
        wanted[k + 1, [k, size - 1 - k]] = 1.0, -1.0
    right = np.append(1.0, np.zeros(reach))
    objective = np.append(cost, np.zeros(columns - size))
    found = linprog(objective, matrix, upper, wanted, right, method="highs")
    return float(found.fun)


@pytest.mark.parametrize(
    ("epsilon", "delta", "reach"), [(1.0, 0.2, 24), (3.0, 0.3, 18), (5.0, 1e-3, 24)]
)
@pytest.mark.parametrize("loss", ["absolute", "square"])
def test_a_program_of_its_own_is_within_the_bracket(
    epsilon: float, delta: float, reach: int, loss: str
) -> None:
    """Points of a lattice are a relaxation, densities on its cells are noise."""
    n = 6
    design = om.noise.real(epsilon, delta, loss=loss, cells=n, gap=0)
    k = np.abs(np.arange(-reach, reach + 1.0))
    power = 1 if loss == "absolute" else 2
    points = program(epsilon, delta, n, reach, (k / n) ** power)
    charge = 0.0 if power == 1 else 1 / (4 * n * n)
    cells = k / n + (k == 0) / (4 * n) if power == 1 else (k * k + 1 / 12) / n**2
    best = program(epsilon, delta, n, reach, cells)
    assert design.lower_bound >= max(0, points - charge) * (1 - 1e-5) - 1e-9
    assert design.lower_bound <= best
    if not design.grid:
        assert best <= design.loss * (1 + 1e-9)
    finer = om.noise.real(epsilon, delta, loss=loss, cells=18)
    assert design.lower_bound <= finer.loss
    assert finer.lower_bound <= best


@pytest.mark.parametrize("power", [1.0, 1.5, 3.0, 4.0])
def test_functions_cost_what_the_density_says_and_bounds_are_below(power: float) -> None:
    """A function is charged at least its integral, and bounded by no more than a program for points
    of a lattice with the function itself finds, but for what rounding to it adds."""
    n, reach = 6, 30
    design = om.noise.real(1, "1/100", loss=lambda x: x**power, cells=n)
    ends, heights = cells_of(design)
    exact = np.sign(ends) * np.abs(ends) ** (power + 1) / (power + 1)
    true = float(heights @ np.diff(exact))
    assert true * (1 - 1e-12) <= design.loss <= true * (1 + 1e-4)
    k = np.abs(np.arange(-reach, reach + 1.0))
    points = program(1, 0.01, n, reach, (k / n) ** power)
    assert design.lower_bound <= points * (1 + 1e-9)
    assert design.lower_bound >= 0.9 * points
    finer = om.noise.real(1, "1/100", loss=lambda x: x**power, cells=12)
    assert design.lower_bound <= finer.loss
    assert finer.lower_bound <= design.loss
    assert finer.gap < 5e-3


def test_named_losses_as_functions() -> None:
    for name, function in (("absolute", abs), ("square", lambda x: x * x)):
        for delta in (0, "1e-3"):
            known = om.noise.real(2, delta, loss=name, cells=8)
            asked = om.noise.real(2, delta, loss=function, cells=8)
            assert asked.lower_bound <= known.loss
            assert known.lower_bound <= asked.loss
            assert asked.gap < 0.013


def test_the_least_of_convex_losses_is_below_all_of_them() -> None:
    """Largest of random straight lines and a parabola, known at random points; touched by the
    convex function whose pieces are the neighbouring chords."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        slopes, starts = rng.integers(0, 9, 4), rng.integers(-9, 3, 4)

        def true(x: Fraction, slopes: Any = slopes, starts: Any = starts) -> Fraction:
            lines = (int(a) * x + int(b) for a, b in zip(slopes, starts, strict=True))
            return max(*lines, x * x / 3, Fraction(0))

        places = [0, *sorted(rng.choice(60, 7, replace=False) + 1)]
        points = [(Fraction(int(p), 7), true(Fraction(int(p), 7))) for p in places]
        loss = RealLoss.convex(points, (60, 1))
        step = Fraction(int(rng.integers(1, 9)), 11)
        cells = loss.on(step)
        size = 1 << 12
        for k in range(60):
            low, high = (cells.below(j) - cells.charge for j in (k, k + 1))
            for t in (Fraction(j, 8) for j in range(9)):
                x = (k + t) * step
                assert low + t * (high - low) <= true(x)
                if x <= 70:
                    assert true(x) <= loss(x)
            half = Fraction(1, 2)
            parts = [
                abs(k - half + Fraction(2 * j + 1, 2 * size)) * step for j in range(0, size, 97)
            ]
            mean = sum(map(loss, parts)) / len(parts)
            assert float(cells.above(k)) == pytest.approx(float(mean), rel=2e-2, abs=2e-3)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: min(x, 1.0),
        lambda x: -x,
        math.exp,
        math.sqrt,
        lambda x: 1 / x,
        lambda x: math.nan,
        lambda x: "x",
    ],
)
def test_functions_that_are_no_convex_losses_are_refused(loss: Any) -> None:
    with pytest.raises(om.ProblemError) as caught:
        om.noise.real(1, loss=loss)
    assert caught.value.where.startswith("loss")
    with pytest.raises(om.ProblemError):
        RealLoss.convex([(0, 0), (1, 1), (2, 1), (3, 2)])


def test_known_noise_is_not_below_the_bound() -> None:
    """Laplace noise, the analytic Gaussian's scale (Balle and Wang 2018) and truncated Laplace
    noise (Geng, Ding, Guo and Kumar 2020)."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    for epsilon, delta in ((0.5, 0.05), (1, 1e-5), (3, 1e-3)):
        design = om.noise.real(epsilon, delta, cells="auto", gap=0.02)
        assert design.loss < 1 / epsilon

        def short(scale: float, rate: float = epsilon, part: float = delta) -> float:
            a, b = 1 / (2 * scale), rate * scale
            return norm.cdf(a - b) - math.exp(rate) * norm.cdf(-a - b) - part

        gauss = brentq(short, 1e-2, 1e3) * math.sqrt(2 / math.pi)
        inner = math.expm1(epsilon) / (2 * delta)
        end = math.log1p(inner) / epsilon
        cut = 1 / epsilon - end * math.exp(-epsilon * end) / -math.expm1(-epsilon * end)
        assert design.lower_bound <= min(gauss, cut)
        assert design.loss <= min(gauss, cut) * (1 + 1e-9)


def test_a_sensitivity_is_a_unit() -> None:
    one = om.noise.real(1, "1/100", cells=8)
    other = om.noise.real(1, "1/100", cells=8, sensitivity="5/2")
    assert other.exact_loss == one.exact_loss * Fraction(5, 2)
    assert other.exact_bound == one.exact_bound * Fraction(5, 2)
    assert other.density(2.5) == pytest.approx(one.density(1.0) / 2.5)


def test_draws_have_the_density(
    made: dict[str, RealNoise], cells: dict[str, tuple[np.ndarray, np.ndarray]]
) -> None:
    for name in ("staircase", "rises"):
        design = made[name]
        drawn = design.sample(8_000, seed=3, bits=20)
        assert isinstance(drawn, list)
        ends, heights = cells[name]
        counts, _ = np.histogram([float(x) for x in drawn], bins=ends)
        expected = heights * np.diff(ends) * len(drawn)
        near = expected > 20
        spread = (counts[near] - expected[near]) / np.sqrt(expected[near])
        assert np.abs(spread).max() < 5
        # where in its cell: evenly
        parts = [float((x / design.step + Fraction(1, 2)) % 1) for x in drawn]
        halves, _ = np.histogram(parts, bins=np.linspace(0, 1, 17))
        assert np.abs(halves - len(drawn) / 16).max() < 5 * math.sqrt(len(drawn) / 16)
        assert all((x / design.step * 2**21).denominator == 1 for x in drawn[:50])
    # more bits are the same noise, looked at more closely
    for seed in range(40):
        few, many = (made["rises"].sample(seed=seed, bits=b) for b in (3, 40))
        assert abs(few - many) <= made["rises"].step / 16


def test_releases_are_rounded_sums(made: dict[str, RealNoise]) -> None:
    design = made["staircase"]
    value = Fraction(1, 3)
    for bits in (0, 4, 30):
        for seed in range(100):
            report = design.release(value, bits=bits, seed=seed)
            exact = (value + design.sample(bits=96, seed=seed)) * 2**bits
            assert report * 2**bits == math.floor(exact + Fraction(1, 2))
    assert design.release("-0.5", seed=1) == design.release(-0.5, seed=1)
    assert design.release(0.1, seed=2, bits=200) != design.release("0.1", seed=2, bits=200)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 65}, "epsilon"),
        ({"epsilon": 1, "delta": 2}, "delta"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": "ln 2"}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": math.inf}, "sensitivity"),
        ({"epsilon": 1, "cells": 0}, "cells"),
        ({"epsilon": 1, "cells": 1001}, "cells"),
        ({"epsilon": 1, "cells": 2.5}, "cells"),
        ({"epsilon": 1, "cells": "many"}, "cells"),
        ({"epsilon": 1, "loss": "cubic"}, "loss"),
        ({"epsilon": 1, "loss": [0, 1, 2]}, "loss"),
        ({"epsilon": 1, "loss": [(0, 1)]}, "loss"),
        ({"epsilon": 1, "loss": [(1, 0), (2, 1)]}, "loss"),
        ({"epsilon": 1, "loss": [(0, 0), (1, 1), (1, 2)]}, "loss"),
        ({"epsilon": 1, "loss": [(0, 1), (1, 0)]}, "loss"),
        ({"epsilon": 1, "loss": [(0, 0), (1, -1)]}, "loss[1]"),
        ({"epsilon": 1, "loss": "threshold"}, "width"),
        ({"epsilon": 1, "width": 2}, "width"),
        ({"epsilon": 1, "gap": 1}, "gap"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        om.noise.real(**arguments)
    assert caught.value.where == place


def test_bad_questions_are_refused(made: dict[str, RealNoise]) -> None:
    design = made["absolute"]
    for ask in (
        lambda: design.density(math.nan),
        lambda: design.density("x"),
        lambda: design.privacy(-1),
        lambda: design.privacy(10**9),
        lambda: design.privacy(1, epsilon="x"),
        lambda: design.sample(-1),
        lambda: design.sample(bits=-1),
        lambda: design.release("x"),
        lambda: design.release(math.inf),
        lambda: design.release(True),
        lambda: design.release(1, bits=0.5),
        lambda: om.exchange.write_noise_table(design, "noise.csv"),
    ):
        with pytest.raises(om.ProblemError):
            ask()
    with pytest.raises(om.InfeasibleError):
        om.noise.real(0)


def test_nothing_is_promised_where_everything_is_private() -> None:
    design = om.noise.real(1, 1, cells=4)
    assert (design.law.n, design.lower_bound) == (0, 0.0)
    assert design.loss == 1 / 16
    least = om.noise.real(1, 1, loss=[(0, 3), (1, 2), (2, 3)], cells=4)
    assert 2 <= least.loss < 2.1
    assert least.lower_bound <= 2


# ---------------------------------------------------------------- files
@pytest.fixture(scope="module")
def files(made: dict[str, RealNoise], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("real") / "noise.json"
    out = {}
    for name, design in made.items():
        design.save(path)
        out[name] = path.read_bytes()
    return out


def test_honest_files_pass_both_and_come_back(
    made: dict[str, RealNoise], files: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "noise.json"
    for name, content in files.items():
        assert verdicts(content, path) == (True, True), name
        again = om.load(path)
        assert again == made[name]
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == content
        with pytest.raises(om.ProblemError):
            om.noise.NoiseDesign.load(path)


def test_altered_files_are_judged_alike(files: dict[str, bytes], tmp_path: Path) -> None:
    assert refused_alike(files, 40, 4, tmp_path / "noise.json") > 20


@pytest.mark.parametrize(
    "which",
    ["epsilon", "delta", "sensitivity", "cells", "bound", "stair", "square", "window", "grid"],
)
def test_forgeries_that_would_pay_are_refused(
    files: dict[str, bytes], tmp_path: Path, which: str
) -> None:
    body = json.loads(files["staircase" if which == "stair" else "rises"])
    del body["digest"]
    if which == "epsilon":
        body["epsilon"] = 2.9
    elif which == "delta":
        body["delta"] = "29/100"
    elif which == "sensitivity":
        body["sensitivity"] = "2"
    elif which == "cells":
        body["cells"] += 1
    elif which == "bound":
        body["claims"]["lower_bound"] = math.nextafter(body["claims"]["loss"], 0)
        body["claims"]["status"] = "optimal"
    elif which == "stair":
        known = math.exp(0.5) / math.expm1(1)
        body["claims"]["lower_bound"] = known * (1 + 1e-12)
    elif which == "grid":
        body = json.loads(files["gathered"])
        del body["digest"]
        body["grid"] += 1
    elif which == "square":
        body["loss"] = {"name": "absolute"}
    else:
        window = body["law"]["window"]
        part = int(window[1], 16) // 2
        window[0], window[1] = (
            f"{int(window[0], 16) + 2 * part:x}",
            f"{int(window[1], 16) - part:x}",
        )
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)


# ---------------------------------------------------------------- several releases, other tools
def test_several_releases_without_delta_share_the_rate(tmp_path: Path) -> None:
    one, three = om.noise.real(0.5), om.noise.real("3/2", for_releases=3)
    assert (three.exact_loss, three.exact_bound) == (one.exact_loss, one.exact_bound)
    assert "3 releases" in three.promise
    three.save(tmp_path / "three.json")
    assert verdicts((tmp_path / "three.json").read_bytes(), tmp_path / "again.json") == (True, True)


def test_several_releases_keep_delta_together(tmp_path: Path) -> None:
    """Beside two copies of the density, whose losses are added here on a fine lattice."""
    design = om.noise.real(2, "1/100", for_releases=2, cells=3)
    single = om.noise.real(2, "1/100", cells=3)
    assert design.loss > single.loss
    assert single.lower_bound == pytest.approx(design.lower_bound)
    design.save(tmp_path / "two.json")
    assert verdicts((tmp_path / "two.json").read_bytes(), tmp_path / "again.json") == (True, True)
    ends, heights = cells_of(design)
    for shift in (1.0, 0.8, 1 / 3, 0.05):
        cuts = np.unique(np.concatenate([ends, ends - shift]))
        middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
        padded = np.concatenate([[0.0], heights, [0.0]])
        p, q = (padded[np.searchsorted(ends, x)] * widths for x in (middles, middles + shift))
        both = np.outer(p, p) - math.exp(2) * np.outer(q, q)
        assert np.maximum(both, 0).sum() <= 0.01 + 1e-12


def test_other_tools_get_it(made: dict[str, RealNoise]) -> None:
    design = made["rises"]
    law = om.exchange.noise_to_scipy(design)
    for x in (-1.1, -0.2, 0.0, 0.31, 1.0):
        assert law.pdf(x) == pytest.approx(design.density(x), rel=1e-9, abs=1e-12)
    assert law.var() == pytest.approx(design.loss, rel=1e-9)


def test_the_measurement_states_what_holds(made: dict[str, RealNoise]) -> None:
    pytest.importorskip("opendp")
    design = made["absolute"]
    measurement = om.exchange.noise_to_opendp(design)
    assert isinstance(measurement(3.25), float)
    epsilon, delta = measurement.map(2.0)
    assert epsilon == pytest.approx(1)
    assert float(design.privacy(2)) <= delta <= 1e-5
    assert measurement.map(0.5)[1] >= float(design.privacy(0.5))
    pure = om.exchange.noise_to_opendp(made["squares"])
    assert pure.map(2.5) == pytest.approx(math.log(3))
    assert pure.map(2.6) == pytest.approx(2 * math.log(3))


def test_losses_for_accounting_are_no_less_than_those_of_the_density(
    made: dict[str, RealNoise],
) -> None:
    pytest.importorskip("dp_accounting")
    design = made["rises"]
    losses = om.exchange.noise_to_dp_accounting(design)
    for epsilon in (1.0, 2.0, 3.0):
        exact = float(design.privacy(1, epsilon=epsilon))
        most = max(float(design.privacy(f"{k}/16", epsilon=epsilon)) for k in range(1, 17))
        assert exact <= most <= losses.get_delta_for_epsilon(epsilon) <= most + 0.01


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noise.json"
    asked = ["noise", "--real", "--epsilon", "1", "--delta", "1/1000", "--sensitivity", "5/2"]
    assert main([*asked, "--cells", "6", "-o", str(path)]) == 0
    assert "sensitivity 2.5" in capsys.readouterr().out
    assert main(["noise", "--real", "--epsilon", "1", "--picture", str(tmp_path / "n.png")]) == 0
    assert (tmp_path / "n.png").stat().st_size > 10_000
    assert main(["check", str(path)]) == 0
    capsys.readouterr()
    assert main(["sample", str(path), "7.5", "-n", "3", "--seed", "1"]) == 0
    drawn = [float(line) for line in capsys.readouterr().out.split()]
    released = om.load(path).release("7.5", 3, seed=1)
    assert drawn == [float(value) for value in released]
    for wrong in (
        ["--cells", "x"],
        ["--dimensions", "4"],
        ["--order", "2", "--budget", "1"],
        ["--loss", "0:0"],
        ["--sensitivity", "0"],
    ):
        assert main(["noise", "--real", "--epsilon", "1", *wrong]) == 2
    assert main(["noise", "--epsilon", "1", "--cells", "4"]) == 2
    assert main(["noise", "--epsilon", "1", "--sensitivity", "2.5"]) == 2
    assert main(["sample", str(path), "x"]) == 2


def test_the_best_law_on_few_cells_goes_with_the_bound_of_many() -> None:
    """At (5, .01) the best noise does not fall: a program of all shifts on 24 cells is below that
    of falling noise on many."""
    cells, most = 24, 48
    least = program(5, 0.01, cells, most, (np.arange(-most, most + 1) ** 2 + 1 / 12) / cells**2)
    falling = om.noise.real(5, "1/100", loss="square", cells=128)
    found = om.noise.real(5, "1/100", loss="square", cells="auto", gap=3e-3)
    assert found.loss < 1.0005 * least < 0.999 * falling.loss
    assert found.gap <= 3e-3
