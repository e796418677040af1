"""axe, the checker of accessibility, finds nothing in pages of every kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import as_it_was, axe, violations

import optmech as om

KM = om.distances.euclidean()
AWAY = om.distances.haversine()
ROAD = {"type": "LineString", "coordinates": [[-74.2, 40.7], [-74.05, 40.72], [-73.9, 40.7]]}
KINDS = ("grid", "region", "several", "labels", "infeasible", "many")
LOOKS = ((1400, "light"), (768, "dark"), (390, "light"), (390, "dark"))


def solved(domain: om.Domain, distance: Any, *more: Any, **options: Any) -> Any:
    prior = om.Prior(domain, np.arange(1.0, len(domain) + 1))
    promise = om.MetricPrivacy(1, distance, **options)
    problem = om.Problem(prior, distance, constraints=[promise, *more])
    return om.solve(problem, gap=1e-2)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind: a map with a backdrop, a region, several designs of two series, labels
    without places, what cannot be, and more designs than are shown with their mechanisms."""
    place = tmp_path_factory.mktemp("pages")
    found = {kind: place / f"{kind}.html" for kind in KINDS}
    grid = om.Grid(4, 5, bounds=(-74.1, 40.68, -74.0, 40.76))
    city = solved(grid, KM, om.DistortionPrivacy(0.5, KM))
    om.report(city, found["grid"], backdrop=ROAD)
    points = om.Domain.geographic(
        range(9), [(x / 50, 45 + y / 60) for x in range(3) for y in range(3)]
    )
    region = solved(points, AWAY, everywhere=om.Mesh.around(points, 4))
    om.report(region, found["region"])
    names = [f"{a} {b}" for a, b in itertools.product("ab", "xy")]
    several = [solved(points, AWAY)] * 3 + [region]
    om.report(several, found["several"], names, groups=[name[0] for name in names])
    labels = om.Domain(["cold", "flu & <b>", "none"])
    om.report(solved(labels, om.distances.hamming()), found["labels"])
    cannot = solved(grid, KM, om.LossBound(0.0))
    assert cannot.status == "infeasible"
    om.report(cannot, found["infeasible"])
    om.report([solved(labels, om.distances.hamming())] * 65, found["many"])
    return found


@pytest.fixture
def alone(browser: Any) -> Iterator[Any]:
    yield browser
    as_it_was(browser)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found(kind: str, alone: Any, pages: dict[str, Path]) -> None:
    script = axe()
    alone.get(pages[kind].as_uri())
    for width, scheme in LOOKS:
        assert violations(alone, width, scheme, script) == [], (width, scheme)


def test_something_would_be_found(alone: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    """In a page that does not say its language."""
    text = pages["labels"].read_text(encoding="utf-8")
    worse = tmp_path / "worse.html"
    changed = text.replace(' lang="en"', "", 1)
    assert changed != text
    worse.write_text(changed, encoding="utf-8")
    alone.get(worse.as_uri())
    assert "html-has-lang" in {rule for rule, _ in violations(alone, 1400, "light", axe())}


def test_wide_tables_are_scrolled_by_keys(
    alone: Any, pages: dict[str, Path], show: Callable[..., Any]
) -> None:
    alone.get(pages["several"].as_uri())
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    alone.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    alone.refresh()
    from selenium.webdriver import Keys

    place = alone.find_element("css selector", ".scroll[tabindex='0']")
    before = alone.execute_script("return arguments[0].scrollLeft", place)
    place.send_keys(Keys.ARROW_RIGHT * 5)
    moved = alone.execute_async_script(
        "const [place, done] = arguments; const look = () => place.scrollLeft > 0"
        " ? done(place.scrollLeft) : setTimeout(look, 50); look()",
        place,
    )
    assert before == 0 < moved


def test_words_of_a_frontier_keep_their_size_on_a_phone(alone: Any, pages: dict[str, Path]) -> None:
    alone.get(pages["several"].as_uri())
    for width in (1400, 390):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        alone.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        alone.refresh()
        heights = alone.execute_script(
            "return [...document.querySelectorAll('#frontier-chart .axis text')]"
            ".map((e) => e.getBoundingClientRect()).map((b) => Math.max(b.height, b.width))"
        )
        assert len(heights) > 6
        # a digit in 13 pixels is at least 7 wide, and the line 13 high
        assert min(heights) > 11
