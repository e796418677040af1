"""Ten tasks from the documentation of OpenDP and dp-accounting: their noise, ours, the bound.

python benchmarks/noise_documented.py            # the table of docs/noise-tasks.md, printed
python benchmarks/noise_documented.py --write    # onto the page
python benchmarks/noise_documented.py --only 1 7

The parameters are those of the examples. What they promise is asked of the libraries themselves
(opendp, dp-accounting), and then of us. Noise is E|Z| of a number, in the example's own units.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import optmech as om

PAGE = Path(__file__).resolve().parent.parent / "docs" / "noise-tasks.md"
MARK = "<!-- table of benchmarks/noise_documented.py -->"


class Answer(NamedTuple):
    """The promise that their noise keeps, its E|Z|; ours, and a bound of all noise."""

    promise: str
    theirs: float
    ours: float
    bound: float


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def _whole_laplace(scale: float) -> float:
    """E|Z| of P(k) ∝ e^(-|k|/scale)."""
    r = math.exp(-1 / scale)
    return 2 * r / (1 - r * r)


def _laplaces(*parts: tuple[float, int]) -> Answer:
    """Whole numbers with integer Laplace noise: scales, and by how much one unit changes each."""
    dp = _opendp()
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    spent = [dp.m.make_laplace(*space, scale=scale).map(most) for scale, most in parts]
    theirs = sum(_whole_laplace(scale) / most for scale, most in parts) / len(parts)
    made = [
        om.noise.clipped_sum(0, most, rate, gap=1e-6)
        for rate, (_, most) in zip(spent, parts, strict=True)
    ]
    ours, bound = (
        sum(getattr(noise, what) / most for noise, (_, most) in zip(made, parts, strict=True))
        / len(parts)
        for what in ("loss", "lower_bound")
    )
    # in units of what one changes where there are two numbers, else in those of the example
    unit = 1 if len(parts) > 1 else parts[0][1]
    return Answer(f"ε = {sum(spent):.3g}", theirs * unit, ours * unit, bound * unit)


def concentrated() -> Answer:
    """Integer Gaussian noise of scale 1, as the page on accuracy has it."""
    dp = _opendp()
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    rho = round(dp.m.make_gaussian(*space, scale=1.0).map(1), 9)
    k = np.arange(-40, 41)
    law = np.exp(-(k**2) / 2.0)
    ours = om.noise.zcdp(rho)
    theirs = float(law @ np.abs(k) / law.sum())
    return Answer(f"ρ = {rho:.3g}", theirs, ours.loss, ours.lower_bound)


def staircase_sum() -> Answer:
    """A sum of ten numbers in [0, 10] with their staircase of steps 10 and offset 1."""
    # of releases after 0.16: the promise is that of the page, ⌈d / 10⌉ at d = 10
    rate = 1.0
    # a cell I has weight (10 I + 1) e^(-I), and noise is even on ±(10 I + 1)
    i = np.arange(200)
    weights = (10.0 * i + 1) * np.exp(-rate * i)
    theirs = float(weights @ ((10 * i + 1) / 2) / weights.sum())
    ours = om.noise.real(rate, sensitivity=10)
    return Answer(f"ε = {rate:.3g}", theirs, ours.loss, ours.lower_bound)


def cube_vector() -> Answer:
    """Three numbers that change by at most 1 each, with joint noise on cubes."""
    rate = 1.0
    # P(Y) ∝ e^(-ε |Y|∞) on whole points: the shell of radius j has (2j + 1)³ - (2j - 1)³
    j = np.arange(200.0)
    shell = (2 * j + 1) ** 3 - np.where(j > 0, (2 * j - 1) ** 3, 0)
    inner = np.array([np.abs(np.arange(-m, m + 1)).sum() for m in range(200)])
    # Σ |y_1| over a shell: of the cube, less the next smaller one
    sums = (2 * j + 1) ** 2 * inner
    sums -= np.append(0, (2 * j[1:] - 1) ** 2 * inner[:-1])
    weights = np.exp(-rate * j)
    theirs = float(weights @ sums / (weights @ shell))
    ours = om.noise.together(rate, linf=1, numbers=3)
    # the bound is of noise of its own for every number
    return Answer(f"ε = {rate:.3g}", theirs, ours.loss, float("nan"))


def _gaussian(sigma: float, epsilon: float, delta: float) -> Answer:
    ours = om.noise.real(epsilon, delta, cells="auto")
    promise = f"({epsilon:.3g}, {delta:g})"
    return Answer(promise, sigma * math.sqrt(2 / math.pi), ours.loss, ours.lower_bound)


def gaussian_overview() -> Answer:
    """Gaussian noise of multiplier 2 at δ = 1e-5."""
    import dp_accounting

    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    return _gaussian(2.0, accountant.get_epsilon(1e-5), 1e-5)


def gaussian_calibrated() -> Answer:
    """Gaussian noise calibrated to (1, 1e-5)."""
    import dp_accounting

    sigma = dp_accounting.calibrate_dp_mechanism(
        make_fresh_accountant=dp_accounting.pld.PLDAccountant,
        make_event_from_param=dp_accounting.GaussianDpEvent,
        target_epsilon=1.0,
        target_delta=1e-5,
    )
    return _gaussian(sigma, 1.0, 1e-5)


TASKS: dict[str, tuple[str, str, Callable[[], Answer]]] = {
    "quickstart": ("OpenDP", "a number, Laplace of scale 1", lambda: _laplaces((1.0, 1))),
    "count": ("OpenDP", "a count, 36 rows a person", lambda: _laplaces((180.0, 36))),
    "sum": ("OpenDP", "hours in 0..80, 36 rows", lambda: _laplaces((14_400.0, 2880))),
    "sum and count": (
        "OpenDP", "both for a mean, in units of their bounds",
        lambda: _laplaces((28_800.0, 2880), (360.0, 36)),
    ),
    "zCDP": ("OpenDP", "a number, Gaussian of scale 1", concentrated),
    "staircase": ("OpenDP", "ten numbers in 0..10, l1 staircase", staircase_sum),
    "cubes": ("OpenDP", "three numbers, l∞ staircase", cube_vector),
    "overview": ("dp-accounting", "Gaussian, multiplier 2", gaussian_overview),
    "calibration": ("dp-accounting", "Gaussian, calibrated", gaussian_calibrated),
    "workflow": ("OpenDP", "one of three counts, Laplace of scale 3", lambda: _laplaces((3.0, 1))),
}  # fmt: skip


def line(number: int, name: str) -> str:
    """A row of the table."""
    where, what, asked = TASKS[name]
    started = time.process_time()
    found = asked()
    seconds = time.process_time() - started
    saved = 1 - found.ours / found.theirs
    percent = f"{100 * saved:.2g}" if abs(saved) > 1e-5 else "0"
    bound = "–" if math.isnan(found.bound) else f"{found.bound:.5g}"
    return (
        f"| {number} | {where} | {what} | {found.promise} | {found.theirs:.5g} | {found.ours:.5g} "
        f"| {bound} | {percent} % | {seconds:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="*", help="numbers of tasks")
    parser.add_argument("--write", action="store_true", help="onto the page")
    given = parser.parse_args()
    rows = [
        "| | whose | example | promise | their E\\|Z\\| | ours | bound of all | less | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for number, name in enumerate(TASKS, 1):
        if not given.only or number in given.only:
            rows.append(line(number, name))
            print(rows[-1], flush=True)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        start = page.index("\n", page.index(MARK)) + 1
        end = page.index("<!-- end", start)
        lines = "\n".join(rows)
        PAGE.write_text(f"{page[:start]}{lines}\n{page[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
