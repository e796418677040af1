"""The maps of a page: coordinates, zoom, a backdrop, the address, and what can be taken along."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.show.backdrop import MOST, backdrop_of

Show = Callable[..., Any]
AWAY = om.distances.haversine()
POINTS = np.array([(x, y) for y in range(4) for x in range(5)]) * [0.02, 0.015] + [-73.6, 45.5]
COAST = [[-73.8, 45.52], [-73.3, 45.52]]
SQUARE = [[-73.58, 45.51], [-73.56, 45.51], [-73.56, 45.53], [-73.58, 45.51]]
GIVEN = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {}, "geometry": geometry}
        for geometry in (
            {"type": "LineString", "coordinates": COAST},
            {"type": "Polygon", "coordinates": [SQUARE]},
            {"type": "Point", "coordinates": [-73.55, 45.53]},
            None,
        )
    ],
}


@pytest.fixture(scope="module")
def design() -> om.Design:
    places = om.Domain.geographic([f"{'abcd'[k // 5]}{k % 5}" for k in range(20)], POINTS)
    prior = om.Prior(places, np.arange(1.0, 21.0))
    return om.solve(om.Problem(prior, AWAY, constraints=[om.MetricPrivacy(0.5, AWAY)]), gap=1e-2)


@pytest.fixture
def opened(browser: Any, design: om.Design, tmp_path: Path) -> Callable[..., Any]:
    from tests.reports.conftest import Page

    def call(anchor: str = "", **more: Any) -> Any:
        path = tmp_path / "report.html"
        om.report(design, path, **more)
        page = Page(browser, path)
        if anchor:
            page.js("location.hash = arguments[0]", anchor)
            page.browser.refresh()
        return page

    return call


def box(page: Any, chart: str = "secret-chart") -> list[float]:
    return page.js(
        "const b = document.querySelector(`#${arguments[0]} svg`).viewBox.baseVal;"
        "return [b.x, b.y, b.width, b.height]",
        chart,
    )


def middle(page: Any) -> Any:
    return page.js(
        "const s = document.querySelector('#secret-chart svg');"
        "s.scrollIntoView({block: 'center', behavior: 'instant'}); return s"
    )


def test_degrees_along_the_sides_and_in_tips(opened: Callable[..., Any]) -> None:
    from selenium.webdriver import ActionChains

    page = opened()
    texts = page.js(
        "return [...document.querySelectorAll('#secret-chart .tick')].map((t) => t.textContent)"
    )
    across = [float(text[:-3]) for text in texts if text.endswith("° W")]
    up = [float(text[:-3]) for text in texts if text.endswith("° N")]
    assert len(across) >= 2
    assert len(up) >= 2
    assert all(73.5 <= value <= 73.62 for value in across)
    assert all(45.48 <= value <= 45.57 for value in up)
    cell = page.js(
        "const c = document.querySelectorAll('#secret-chart .cell')[7];"
        "c.scrollIntoView({block: 'center', behavior: 'instant'}); return c"
    )
    ActionChains(page.browser).move_to_element(cell).perform()
    name, _, where = page.text("#tip").partition(": ")
    assert name == "b2"
    north, west = where.split(" · ")[1].split(", ")
    assert float(north.removesuffix("° N")) == pytest.approx(45.515, abs=2e-3)
    assert float(west.removesuffix("° W")) == pytest.approx(73.56, abs=2e-3)
    page.assert_quiet()


def test_zoom_by_keys_buttons_wheel_and_drag(opened: Callable[..., Any]) -> None:
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    page = opened()
    whole = box(page)
    svg = middle(page)
    svg.send_keys("+")
    assert box(page)[2] == pytest.approx(whole[2] / 1.6)
    left = box(page)[0]
    svg.send_keys(Keys.SHIFT, Keys.ARROW_LEFT)
    assert box(page)[0] < left
    chosen = page.text("#secret option:checked")
    here = box(page)
    ActionChains(page.browser).click_and_hold(svg).move_by_offset(-40, -30).release().perform()
    assert box(page)[0] > here[0]
    # the end of a drag chooses nothing
    assert page.text("#secret option:checked") == chosen
    width = box(page)[2]
    page.js("document.activeElement.blur()")
    origin = ScrollOrigin.from_element(svg)
    ActionChains(page.browser).scroll_from_origin(origin, 0, -60).perform()
    assert box(page)[2] == width
    svg = middle(page)
    page.js("arguments[0].focus()", svg)
    ActionChains(page.browser).scroll_from_origin(ScrollOrigin.from_element(svg), 0, -60).perform()
    assert box(page)[2] < width
    buttons = page.js("return [...document.querySelectorAll('#secret-chart .zoom button')]")
    assert [button.get_attribute("aria-label") for button in buttons] == [
        "Zoom in", "Zoom out", "Show the whole map",
    ]  # fmt: skip
    buttons[2].click()
    assert box(page) == whole
    page.assert_quiet()


def test_two_fingers_zoom_and_a_tap_chooses(opened: Callable[..., Any]) -> None:
    page = opened()
    svg = middle(page)
    whole = box(page)
    spot = page.js(
        "const r = arguments[0].getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]",
        svg,
    )

    def touch(kind: str, points: list[tuple[float, float]]) -> None:
        given = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]
        page.browser.execute_cdp_cmd(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": given}
        )

    x, y = spot
    touch("touchStart", [(x - 20, y)])
    touch("touchStart", [(x - 20, y), (x + 20, y)])
    for step in (30, 50, 70):
        touch("touchMove", [(x - step, y), (x + step, y)])
    touch("touchEnd", [])
    assert box(page)[2] < whole[2] / 2
    # what a tap hits is the nearest cell, and not one that has to be met
    page.js("document.querySelectorAll('#secret-chart .zoom button')[2].click()")
    assert box(page) == whole
    spot = page.js(
        "const r = document.querySelectorAll('#secret-chart .cell')[12].getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]"
    )
    touch("touchStart", [(spot[0] + 3, spot[1] - 2)])
    touch("touchEnd", [])
    page.js("return new Promise((done) => setTimeout(done, 400))")
    assert page.text("#secret option:checked") == "c2"
    page.assert_quiet()


def test_a_backdrop_lies_where_it_should(opened: Callable[..., Any], tmp_path: Path) -> None:
    page = opened(backdrop=GIVEN)
    drawn = page.js("return document.querySelector('#secret-chart .backdrop').getAttribute('d')")
    lines = [
        np.array([pair.split(",") for pair in part.split("L")], dtype=float)
        for part in drawn.split("M")[1:]
    ]
    assert len(lines) == 3
    coast, square, dot = lines
    # the coast is cut at the sides of what the map shows
    assert coast[0, 0] <= 0
    assert coast[-1, 0] >= 1000
    assert np.ptp(coast[:, 1]) < 0.2
    # the picture's scale from two cells' centres of the page, whose degrees are known
    centres = page.js(
        "return [...document.querySelectorAll('#secret-chart .dot')].map("
        "(c) => [c.cx.baseVal.value, c.cy.baseVal.value])"
    )
    first, last = np.array(centres[0]), np.array(centres[19])
    scale = (last - first) / (POINTS[19] - POINTS[0])
    np.testing.assert_allclose(square, first + (np.array(SQUARE) - POINTS[0]) * scale, atol=0.6)
    np.testing.assert_allclose(
        dot[0], first + (np.array([-73.55, 45.53]) - POINTS[0]) * scale, atol=0.6
    )
    assert "of the backdrop's" in page.text("#precision")
    page.assert_quiet()
    (tmp_path / "b.geojson").write_text(json.dumps(GIVEN))
    same = opened(backdrop=tmp_path / "b.geojson")
    assert drawn == same.js("return document.querySelector('.backdrop').getAttribute('d')")


def test_the_choice_is_in_the_address(opened: Callable[..., Any]) -> None:
    page = opened()
    page.choose("secret", 7)
    page.choose("observable", 13)
    page.choose("layer", "lossPerSecret")
    assert page.js("return location.hash").startswith("#secret=7&report=13")
    page.browser.refresh()
    assert page.text("#secret option:checked") == "b2"
    assert page.text("#observable option:checked") == "c3"
    assert page.js("return document.getElementById('layer').value") == "lossPerSecret"
    page.js("location.hash = 'secret=3'")
    page.js("return new Promise((done) => setTimeout(done, 50))")
    assert page.text("#secret option:checked") == "a3"
    for wrong in ("secret=99&report=-1&other=x", "%%%", "design=7&layer=no"):
        page.js("location.hash = arguments[0]", wrong)
        page.browser.refresh()
        assert page.js("return 'ready' in document.documentElement.dataset")
    assert [e for e in page.browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_long_lists_are_searched(opened: Callable[..., Any]) -> None:
    from selenium.webdriver import Keys

    page = opened()
    find = page.js("return document.querySelector('#secret-list').previousSibling")
    find.send_keys("C1", Keys.ENTER)
    assert page.text("#secret option:checked") == "c1"
    find.send_keys("4", Keys.ENTER)
    assert page.text("#secret option:checked") == "a4"
    find.send_keys("nowhere", Keys.ENTER)
    assert page.text("#secret option:checked") == "a4"
    assert not page.js("return arguments[0].validity.valid", find)
    page.assert_quiet()


CATCH = """
const taken = [];
window.taken = taken;
URL.createObjectURL = (blob) => { taken.push(blob); return "blob:none"; };
HTMLAnchorElement.prototype.click = function () { taken.push(this.download); };
"""


def test_pictures_and_numbers_are_taken_along(
    opened: Callable[..., Any], design: om.Design
) -> None:
    page = opened(backdrop=GIVEN)
    page.js(CATCH)
    buttons = page.js("return [...document.querySelectorAll('#secret-chart .take button')]")
    assert [button.text for button in buttons] == ["SVG", "PNG", "CSV"]
    for button in buttons:
        page.js("arguments[0].click()", button)
    page.js("return new Promise((done) => setTimeout(done, 400))")
    kinds = page.js("return window.taken.map((x) => typeof x === 'string' ? x : x.type)")
    assert sorted(kinds) == [
        "image/png", "image/svg+xml", "text/csv", "where-a-secret-is-reported.csv",
        "where-a-secret-is-reported.png", "where-a-secret-is-reported.svg",
    ]  # fmt: skip
    texts = {
        kind: page.js("return window.taken.find((x) => x.type === arguments[0]).text()", kind)
        for kind in ("image/svg+xml", "text/csv")
    }
    root = ElementTree.fromstring(texts["image/svg+xml"])
    assert len(root.findall(".//{*}path")) >= 21
    assert any("° N" in (node.text or "") for node in root.findall(".//{*}text"))
    assert "var(--" not in texts["image/svg+xml"].replace("var(--k", "")
    header, *rows = [line.split(",") for line in texts["text/csv"].splitlines()]
    assert header[:3] == ["label", "longitude", "latitude"]
    secret = int(page.js("return document.getElementById('secret').value"))
    assert [float(row[3]) for row in rows] == design.mechanism.matrix[secret].tolist()
    assert [float(row[1]) for row in rows] == pytest.approx(POINTS[:, 0].tolist(), abs=2e-5)
    page.assert_quiet()


def test_paper_is_light_and_without_controls(opened: Callable[..., Any]) -> None:
    page = opened()
    page.choose("theme", "dark")
    page.js("document.getElementById('theme').value = 'dark';"
            "document.getElementById('theme').dispatchEvent(new Event('change'))")  # fmt: skip
    dark = page.js("return getComputedStyle(document.body).backgroundColor")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        page.js("return new Promise((done) => setTimeout(done, 50))")
        assert page.js("return getComputedStyle(document.body).backgroundColor") != dark
        assert page.js("return document.documentElement.dataset.theme") == "light"
        shown = page.js(
            "return [...document.querySelectorAll('button, input, .top')].filter("
            "(e) => e.checkVisibility() && !e.closest('.top-list, table')).length"
        )
        assert shown == 0
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    page.assert_quiet()


WIDE = (-180.0, -80.0, 180.0, 80.0)


def test_backdrops_are_simplified_to_a_size(rng: np.random.Generator) -> None:
    angle = np.linspace(0, 2 * np.pi, 200_001)
    circle = np.column_stack([20 * np.cos(angle), 20 * np.sin(angle)])
    found = backdrop_of({"type": "LineString", "coordinates": circle.tolist()}, WIDE)
    assert found.given == 200_001
    (line,) = found.lines
    # a circle of 20 degrees that is off by t keeps about 2π / sqrt(8 t / 20) corners
    assert 50 < len(line) < 150
    assert np.abs(np.hypot(*line.T) - 20).max() < 1e-9
    walks = rng.normal(size=(40, 2000, 2)).cumsum(axis=1) * 0.05
    many = backdrop_of({"type": "MultiLineString", "coordinates": walks.tolist()}, WIDE)
    assert many.corners <= MOST
    assert many.tolerance > 0


def test_lines_are_cut_at_the_box() -> None:
    zigzag = [[-1.0, 0.5], [0.5, 0.5], [2.0, 0.5], [2.0, 0.25], [0.25, 0.25], [0.25, 5.0]]
    found = backdrop_of({"type": "LineString", "coordinates": zigzag}, (0.0, 0.0, 1.0, 1.0))
    ends = [line[[0, -1]].tolist() for line in found.lines]
    assert ends == [[[0.0, 0.5], [1.0, 0.5]], [[1.0, 0.25], [0.25, 1.0]]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"type": "Sphere"}, "is not GeoJSON"),
        ({"type": "FeatureCollection", "features": []}, "holds no lines"),
        ({"type": "LineString", "coordinates": [[50, 8], [51, 9]]}, "lies at 50 to 51"),
        ({"type": "LineString", "coordinates": [[0, "x"], [1, 2]]}, "is not GeoJSON"),
        ({"type": "Polygon", "coordinates": 7}, "is not GeoJSON"),
        ([1, 2], "is no backdrop"),
        ("missing.geojson", "missing"),
        ("numpy:nothing.geojson", "nothing.geojson"),
    ],
)
def test_what_is_no_backdrop_is_refused(
    design: om.Design, tmp_path: Path, content: Any, message: str
) -> None:
    with pytest.raises(om.ProblemError, match=message):
        om.report(design, tmp_path / "a.html", backdrop=content)
    assert not (tmp_path / "a.html").exists()


def test_the_command_takes_a_backdrop(design: om.Design, tmp_path: Path, capsys: Any) -> None:
    design.save(tmp_path / "d.json")
    (tmp_path / "b.geojson").write_text(json.dumps(GIVEN))
    page, behind = str(tmp_path / "p.html"), str(tmp_path / "b.geojson")
    assert main(["report", str(tmp_path / "d.json"), "--backdrop", behind, "-o", page]) == 0
    assert main(["report", str(tmp_path / "d.json"), "--backdrop", page, "-o", page]) == 2
    flat = om.solve(om.load_problem("metric"))
    flat.save(tmp_path / "f.json")
    assert main(["report", str(tmp_path / "f.json"), "--backdrop", behind, "-o", page]) == 2
    assert "no longitudes" in capsys.readouterr().err
