"""Reports drawn on a page, against Python's for the same bytes."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optmech_devices
import pytest

import optmech as om
from optmech.show.reports.payload import client_script

Show = Callable[..., Any]
KM = om.distances.euclidean()

FEED = """
    const left = Uint8Array.from(arguments[0]);
    let at = 0;
    Object.defineProperty(crypto, "getRandomValues", { configurable: true, value: (array) => {
      array.set(left.subarray(at, at + array.length));
      at += array.length;
      return array;
    } });
"""
"""In place of the browser's entropy, for as long as the page is open."""
CLICK = """
    const done = arguments[2];
    const [part, count] = arguments;
    document.getElementById(`${part}-draw-count`).value = count;
    const readout = document.getElementById(`${part}-drawn`);
    new MutationObserver((_, self) => {
      const field = readout.querySelector("[data-field]");
      if (!field && !readout.textContent) return;
      self.disconnect();
      done([readout.textContent, field && field.dataset.value]);
    }).observe(readout, { childList: true });
    document.getElementById(`${part}-draw`).click();
"""


def packed(page: Any, folder: Path) -> Any:
    """The mechanism that a page holds, as Python reads it."""
    (design,) = page.js("return JSON.parse(document.getElementById('data').textContent)")["designs"]
    (folder / "page.omm").write_bytes(base64.b64decode(design["sampler"]["file"]))
    return om.devices.load_packed(folder / "page.omm")


def drawn(page: Any, part: str, count: int) -> tuple[str, list[int]]:
    """What a page says, and the numbers of the reports."""
    text, values = page.browser.execute_async_script(CLICK, part, str(count))
    return text, [int(value) for value in values.split(",")]


@pytest.fixture(scope="module")
def design() -> om.Design:
    cells = om.Grid.geographic(3, 4, (16.3, 48.15, 16.45, 48.25))
    prior = om.Prior(cells, np.arange(1.0, 13.0) / 78)
    return om.solve(om.Problem(prior, KM, constraints=[om.MetricPrivacy("ln 2", KM)]))


@pytest.fixture(scope="module", params=["plane", "lonlat"])
def region(request: pytest.FixtureRequest) -> om.Design:
    points = np.array([(x, y) for y in range(3) for x in range(3)], dtype=float)
    if request.param == "lonlat":
        places = om.Domain.geographic(range(9), points * [0.02, 0.01] + [12.4, 41.8])
        mesh, away = om.Mesh.around(places, 2, degree=2), om.distances.haversine()
    else:
        places = om.Domain(range(9), points, "km")
        mesh, away = om.Mesh.grid((0, 0, 2, 2), 1, unit="km", degree=2), KM
    promise = om.MetricPrivacy(1, away, everywhere=mesh)
    return om.solve(om.Problem(om.Prior.uniform(places), away, constraints=[promise]), gap=1e-3)


def test_reports_of_a_secret_are_pythons(design: om.Design, show: Show, tmp_path: Path) -> None:
    page = show(design)
    found = packed(page, tmp_path)
    assert om.devices.check_packed(tmp_path / "page.omm", design).passed
    content = random.Random(3).randbytes(103 * found.draw_bytes)
    page.js(FEED, list(content))
    numbers: list[int] = []
    for secret, count in ((5, 1), (5, 100), (11, 1), (0, 1)):
        page.choose("secret", secret)
        text, reports = drawn(page, "secret", count)
        assert "packed at 24 bits" in text
        assert len(reports) == count
        size = found.draw_bytes
        for report in reports:
            entropy = content[len(numbers) * size : (len(numbers) + 1) * size]
            label = found.report(design.problem.secrets.labels[secret], entropy)
            assert design.problem.observables.labels[report] == label
            numbers.append(report)
        if count == 1:
            # and the picture beside it shows what that report reveals
            assert page.js("return document.getElementById('observable').value") == str(reports[0])
    assert len(set(numbers)) > 3
    page.choose("secret", 1)
    assert page.text("#secret-drawn") == ""
    page.assert_quiet()


def test_reports_at_a_point_are_pythons(region: om.Design, show: Show, tmp_path: Path) -> None:
    page = show(region)
    found = packed(page, tmp_path)
    assert om.devices.check_packed(tmp_path / "page.omm", region).passed
    content = random.Random(4).randbytes(101 * found.draw_bytes)
    page.js(FEED, list(content))
    _, (first,) = drawn(page, "point", 1)
    _, others = drawn(page, "point", 100)
    stretch = page.js(
        "return JSON.parse(document.getElementById('data').textContent).designs[0].region.stretch"
    )
    at = page.js("return document.querySelector(\"[data-field='point']\").dataset.value")
    position = [float(v) / k for v, k in zip(at.split(","), stretch, strict=True)]
    size = found.draw_bytes
    for k, report in enumerate([first, *others]):
        label = found.report(position, content[k * size : (k + 1) * size])
        assert region.problem.observables.labels[report] == label
    assert len(set(others)) > 2
    page.assert_quiet()


def test_reports_from_the_browsers_entropy(design: om.Design, show: Show, tmp_path: Path) -> None:
    page = show(design)
    row = packed(page, tmp_path).matrix[7]
    page.choose("secret", 7)
    _, reports = drawn(page, "secret", 10_000)
    counts = np.bincount(reports, minlength=12)
    assert not counts[row == 0].any()
    statistic = ((counts - 10_000 * row) ** 2)[row > 0] / (10_000 * row[row > 0])
    assert statistic.sum() < 45  # eleven degrees: one in 200,000 of such draws is above


def test_designs_that_are_not_embedded_have_no_button(show: Show) -> None:
    line = om.Domain.range(3)
    apart = om.distances.matrix(np.array([[0.0, 9, 9], [9, 0.0, 9], [9, 9, 0.0]]))
    problem = om.Problem(
        om.Prior.uniform(line), om.distances.hamming(), constraints=[om.MetricPrivacy(5, apart)]
    )
    page = show(om.solve(problem))
    # e^-45 of a probability is nothing over 2^48: what packing costs is more than is allowed
    assert page.js("return document.getElementById('secret-draw').closest('.bar').hidden")
    page.assert_quiet()


def test_the_client_is_the_devices_own() -> None:
    """Every line of the client's modules stands in the page, but for imports and exports."""
    script = client_script()
    folder = Path(optmech_devices.__file__).parent / "client"
    for path in folder.glob("*.js"):
        if path.stem in ("charges", "geolocation", "ledger", "reach", "sticky"):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if not re.match(r"(import|export) ", line):
                assert line in script
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
