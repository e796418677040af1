"""What people who do not see or do not point need of a page: names, order, contrast."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import optmech as om

Show = Callable[..., Any]
KM = om.distances.euclidean()
ROLES = {"button", "combobox", "checkbox", "searchbox", "textbox", "link", "application", "img"}

# every text that is seen, with its colour, the colour behind it, its size in pixels and weight
TEXTS = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
function behind(node) {
  for (let at = node; at; at = at.parentElement) {
    const found = parse(getComputedStyle(at).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found.slice(0, 3);
  }
  return [255, 255, 255];
}
const out = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode.parentElement;
  const text = walk.currentNode.textContent.trim();
  if (!text || !node.checkVisibility() || node.closest("svg, script, option")) continue;
  const style = getComputedStyle(node);
  out.push([text.slice(0, 40), parse(style.color).slice(0, 3), behind(node),
            parseFloat(style.fontSize), Number(style.fontWeight)]);
}
return out;
"""


def luminance(colour: list[float]) -> float:
    """Relative luminance of WCAG 2.2."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: list[float], other: list[float]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def designs() -> list[Any]:
    places = om.Domain.geographic(
        range(15), [(x / 50, 45 + y / 60) for y in range(3) for x in range(5)]
    )
    away = om.distances.haversine()
    mesh = om.Mesh.around(places, 4)
    prior = om.Prior.uniform(places)
    promises = [om.MetricPrivacy(1, away), om.MetricPrivacy(1, away, everywhere=mesh)]
    return [om.solve(om.Problem(prior, away, constraints=[p]), gap=1e-2) for p in promises]


@pytest.mark.parametrize("which", [0, 1], ids=["places", "region"])
def test_everything_that_takes_the_focus_has_a_name(
    designs: list[Any], show: Show, which: int
) -> None:
    page = show(designs[which])
    tree = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    seen = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node.get("ignored") and "role" in node
    ]
    wanted = [(role, name) for role, name in seen if role.lower() in ROLES]
    assert len(wanted) > 15
    assert [role for role, name in wanted if not name.strip()] == []
    # headings go down one level at a time
    levels = page.js(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].filter((h) => h.checkVisibility())"
        ".map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    ids = page.js("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    assert page.js("return document.documentElement.lang") == "en"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("which", [0, 1], ids=["places", "region"])
def test_texts_stand_out(designs: list[Any], show: Show, which: int, theme: str) -> None:
    page = show(designs[which])
    page.js(
        "const e = document.getElementById('theme'); e.value = arguments[0];"
        "e.dispatchEvent(new Event('change'))",
        theme,
    )
    found = page.js(TEXTS)
    assert len(found) > 60
    for text, front, back, size, weight in found:
        large = size >= 24 or (size >= 18.66 and weight >= 700)
        assert contrast(front, back) >= (3.0 if large else 4.5), (text, front, back)


@pytest.mark.parametrize("which", [0, 1], ids=["places", "region"])
def test_all_controls_are_reached_by_the_tab_key(
    designs: list[Any], show: Show, which: int
) -> None:
    from selenium.webdriver import ActionChains, Keys

    page = show(designs[which])
    wanted = page.js(
        "return [...document.querySelectorAll('select, button, input, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    page.js("window.met = new Set(); addEventListener('focusin', (e) => met.add(e.target))")
    ActionChains(page.browser).send_keys(Keys.TAB * (wanted + 5)).perform()
    missed = page.js(
        "return [...document.querySelectorAll('select, button, input, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility() && !met.has(e)).map((e) => e.outerHTML.slice(0, 120))"
    )
    assert missed == []
    page.assert_quiet()
