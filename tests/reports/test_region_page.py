"""The page of a design for every point of a region: what it shows is what the design says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.show.backdrop import lattice_of

Show = Callable[..., Any]
KM = om.distances.euclidean()
PLACES = np.array([(x, y) for y in range(3) for x in range(4)], dtype=float)


@pytest.fixture(scope="module")
def design() -> om.Design:
    places = om.Domain([f"place {k}" for k in range(12)], PLACES, unit="km")
    prior = om.Prior(places, np.arange(1.0, 13.0))
    mesh = om.Mesh.grid((-0.5, -0.5, 3.5, 2.5), 1, unit="km")
    promise = om.MetricPrivacy("ln 2", KM, everywhere=mesh)
    return om.solve(om.Problem(prior, KM, constraints=[promise], title="Twelve places"), gap=1e-3)


@pytest.fixture(scope="module")
def globe() -> om.Design:
    degrees = PLACES * [0.02, 0.01] + [12.4, 41.8]
    places = om.Domain.geographic(range(12), degrees)
    mesh = om.Mesh.around(places, 2)
    away = om.distances.haversine()
    promise = om.MetricPrivacy(1, away, everywhere=mesh)
    return om.solve(om.Problem(om.Prior.uniform(places), away, constraints=[promise]), gap=1e-2)


def pixel(page: Any, x: float, y: float) -> tuple[float, float]:
    """Where a place of the plane lies on the screen, from the middle of the map."""
    return page.js(
        "const svg = document.querySelector('#field-chart svg');"
        "svg.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const box = svg.getBoundingClientRect(), [low, high] = arguments[0];"
        "const scale = box.width / 1000 * arguments[1];"
        "return [low * scale - box.width / 2, box.height / 2 - high * scale]",
        [x, y],
        1000 / 4,
    )


def test_figures_and_bounds_are_the_designs(design: om.Design, show: Show) -> None:
    page = show(design)
    for name in ("loss", "bound", "gap", "lower_bound", "total_gap"):
        assert page.value(name) == getattr(design, name)
    assert page.text("h1") == "Twelve places"
    # what is promised stands first: ln 2 per km, so 2^(1/10), 2 and 2^10, rounded up
    promise = page.text("#promise").replace("\N{NO-BREAK SPACE}", " ")
    assert promise.strip().startswith("What is promised")
    odds = re.findall(r"apart([\d,.]+)times as likely, at most", page.text("#promise-odds"))
    assert odds == ["1.08", "2", "1,030"]
    matrix = np.array([design.mechanism.at([p])[0] for p in PLACES.tolist()])
    best = (design.problem.prior.weights[:, None] * matrix).max(axis=0).sum()
    assert f"right in {100 * best:.3g} % of cases, that without a report in 15.4 %" in promise
    lead = page.text("#lead")
    assert (
        "Among all mechanisms with these reports that are linear in every triangle of this mesh"
        in lead
    )
    share = float(lead.rpartition("within ")[2].partition(" %")[0]) / 100
    assert design.total_gap <= share <= 1.2 * design.total_gap
    assert page.js("return document.getElementById('with-mechanism').hidden")
    page.assert_quiet()


def test_a_chosen_point_has_the_mechanisms_distribution(design: om.Design, show: Show) -> None:
    from selenium.webdriver import ActionChains

    page = show(design)
    svg = page.js("return document.querySelector('#field-chart svg')")
    # the box of the map is 4 x 3 km, its corner at (-0.5, -0.5)
    for x, y in ((0.7, 1.9), (2.31, 0.22)):
        across, down = pixel(page, x + 0.5, y + 0.5)
        ActionChains(page.browser).move_to_element_with_offset(
            svg, round(across), round(down)
        ).click().perform()
        there = [
            float(value)
            for value in page.js(
                "return document.querySelector('[data-field=point]').dataset.value"
            ).split(",")
        ]
        assert there == pytest.approx([x, y], abs=0.02)
        row = design.mechanism.at([there])[0]
        shown = page.listed("point-top")
        assert [value for _, value in shown] == pytest.approx(np.sort(row)[::-1][:6], abs=3e-5)
        best = f"place {row.argmax()}"
        assert shown[0][0] == best
        page.choose("report", int(row.argmax()))
        assert page.value("field") == pytest.approx(row.max(), abs=3e-5)
        assert page.value("field-most") >= page.value("field") - 1e-9
    page.assert_quiet()


def test_keys_move_the_point_and_zoom(design: om.Design, show: Show) -> None:
    from selenium.webdriver import Keys

    page = show(design)
    svg = page.js("return document.querySelector('#field-chart svg')")

    def point() -> list[float]:
        text = page.js("return document.querySelector('[data-field=point]').dataset.value")
        return [float(value) for value in text.split(",")]

    before = point()
    svg.send_keys(Keys.ARROW_LEFT, Keys.ARROW_DOWN)
    assert point()[0] < before[0]
    assert point()[1] < before[1]
    svg.send_keys("+")
    zoomed = page.js("return document.querySelector('#field-chart svg').viewBox.baseVal.width")
    assert zoomed == pytest.approx(1000 / 1.6)
    svg.send_keys("0")
    assert (
        page.js("return document.querySelector('#field-chart svg').viewBox.baseVal.width") == 1000
    )
    for _ in range(40):
        svg.send_keys(Keys.ARROW_LEFT)
    # the point stays in the region
    assert -0.5 <= point()[0] < 0
    page.assert_quiet()


def test_the_point_is_in_the_address(design: om.Design, show: Show) -> None:
    page = show(design)
    page.choose("report", 4)
    page.js("location.hash = 'report=7&point=2.5,1.25'")
    page.browser.refresh()
    assert page.value("field") == pytest.approx(design.mechanism.at([(2.5, 1.25)])[0, 7], abs=3e-5)
    # outside of the region
    page.js("location.hash = 'report=7&point=9,9'")
    page.browser.refresh()
    assert page.text("#report option:checked") == "place 7"
    assert page.js("return document.querySelector('[data-field=point]').dataset.value") != "9,9"


def test_a_report_that_is_a_cell_is_outlined(design: om.Design, show: Show) -> None:
    promise = design.problem.constraints[0]
    cells = om.Grid(2, 3, (4 / 3, 1.5), origin=(-0.5, -0.5), unit="km")
    loss = om.losses.over_cells(KM)
    stated = om.Problem(design.problem.prior, loss, cells, constraints=[promise])
    page = show(om.solve(stated, gap=1e-2))
    page.choose("report", 4)
    # the second row's second cell, in a box of 4 x 3 km that is 1000 wide
    ring = page.js("return document.querySelector('#field-chart .report-cell').getAttribute('d')")
    corners = {tuple(float(v) for v in at.split(",")) for at in ring[1:-1].split("L")}
    wanted = {(x, y) for x in (1000 / 3, 2000 / 3) for y in (0, 375)}
    for at in wanted:
        assert min(np.hypot(at[0] - x, at[1] - y) for x, y in corners) < 0.5
    assert len(corners) == 4
    page.assert_quiet()
    # reports at points have no outline
    page = show(design)
    assert not page.js(
        "return document.querySelector('#field-chart .report-cell').getAttribute('d')"
    )


def test_degrees_stand_along_the_sides(globe: om.Design, show: Show) -> None:
    page = show(globe)
    marks = page.js(
        "return [...document.querySelectorAll('#field-chart .tick')].map((t) => t.textContent)"
    )
    assert any(mark.endswith("° E") and 12.3 < float(mark[:-3]) < 12.6 for mark in marks)
    assert any(mark.endswith("° N") and 41.7 < float(mark[:-3]) < 41.9 for mark in marks)
    assert "° N, 12." in page.text("[data-field=point]")
    page.assert_quiet()


def test_reports_of_both_kinds_are_compared(design: om.Design, show: Show, tmp_path: Path) -> None:
    places = design.problem.secrets
    stated = om.Problem(
        design.problem.prior, KM, constraints=[om.MetricPrivacy("ln 2", KM)], title="Between them"
    )
    page = show([design, om.solve(stated)], ["everywhere", "places"])
    page.choose("design", 1)
    assert not page.js("return document.getElementById('with-mechanism').hidden")
    assert page.js("return document.getElementById('with-region').hidden")
    page.choose("design", 0)
    assert page.value("loss") == design.loss
    assert len(places) == 12
    page.assert_quiet()
    design.save(tmp_path / "d.json")
    assert main(["report", str(tmp_path / "d.json"), "-o", str(tmp_path / "p.html")]) == 0


def test_the_lattice_is_the_mechanism(
    design: om.Design, globe: om.Design, rng: np.random.Generator
) -> None:
    for one in (design, globe):
        lattice = lattice_of(one.mechanism)
        inner = np.flatnonzero(lattice.inside.ravel())
        points = np.stack(np.meshgrid(lattice.x, lattice.y), axis=-1).reshape(-1, 2)[inner]
        found = lattice.values.reshape(-1, lattice.values.shape[-1])[inner]
        np.testing.assert_allclose(found, one.mechanism.at(points), atol=1e-7)
        np.testing.assert_allclose(lattice.values.sum(axis=2), 1.0, atol=1e-12)
    # a lattice that all vertices of the mesh are on errs only where it cuts triangles
    assert lattice_of(design.mechanism).error(design.mechanism) < 1e-2
    small = lattice_of(design.mechanism, most=2000)
    assert small.values.size <= 2500
