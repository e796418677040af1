"""Size of report pages and the time a browser takes to open them. Needs Chromium and selenium.

Usage: python benchmarks/report_pages.py [--runs N]. The mechanisms are exponential ones taken as
they are: what a page shows does not depend on how its matrix was found.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import optmech as om
from optmech.certificate import Bound, Multipliers
from optmech.certificate.objective import Figures
from optmech.designs.design import Certificate, Design
from optmech.exact.numerators import Numerators

KM = om.distances.euclidean()
SIZES = ((15, 20), (25, 40))


def design(rows: int, columns: int) -> Design:
    """A metric-private mechanism on a grid, unchecked."""
    grid = om.Grid(rows, columns, cell=(0.75, 0.5333), unit="km")
    stated = om.Problem(om.Prior.uniform(grid), KM, constraints=[om.MetricPrivacy(0.6, KM)])
    kernel = np.exp(-0.3 * KM(grid, grid))
    nan = float("nan")
    return Design(
        stated, Numerators.rounded(kernel), Figures(nan, nan, nan, nan, nan),
        Certificate((), Multipliers(), Bound(nan, nan)), "none", "", 0.0,
    )  # fmt: skip


def browser() -> Any:
    """A headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def main() -> None:
    """Print a line for every size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("| secrets | MB | written s | opened s (median, slowest) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rows, columns in SIZES:
            made = design(rows, columns)
            path = Path(folder) / f"{rows * columns}.html"
            started = time.perf_counter()
            om.report(made, path)
            written = time.perf_counter() - started
            opened = []
            for _ in range(runs):
                driver = browser()
                driver.get("about:blank")
                started = time.perf_counter()
                driver.get(path.as_uri())
                assert driver.execute_script("return 'ready' in document.documentElement.dataset")
                opened.append(time.perf_counter() - started)
                driver.quit()
            size = path.stat().st_size / 1e6
            print(
                f"| {rows * columns:,} | {size:.1f} | {written:.1f} | "
                f"{statistics.median(opened):.2f}, {max(opened):.2f} |"
            )


if __name__ == "__main__":
    main()
