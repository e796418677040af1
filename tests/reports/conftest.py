"""A headless Chromium that records what a page logs and asks the network for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import opened

import optmech as om


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with opened("browser", "performance") as found:
        yield found


class Page:
    """A report that is open in the browser."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser = browser
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(path.as_uri())
        self.address = path.as_uri()
        assert self.js("return 'ready' in document.documentElement.dataset")

    def js(self, code: str, *values: object) -> Any:
        return self.browser.execute_script(code, *values)

    def value(self, field: str) -> float:
        """The number that is shown in a field, in full."""
        found = self.js("return document.querySelector(arguments[0]).dataset.value",
                        f"[data-field='{field}']")  # fmt: skip
        return float(found)

    def text(self, selector: str) -> str:
        return str(self.js("return document.querySelector(arguments[0]).textContent", selector))

    def choose(self, control: str, index: int) -> None:
        self.js(
            "const e = document.getElementById(arguments[0]); e.value = String(arguments[1]);"
            "e.dispatchEvent(new Event('change'))",
            control,
            index,
        )

    def listed(self, which: str) -> list[tuple[str, float]]:
        """Names and values of a list of the likeliest."""
        return [
            (name, float(value))
            for name, value in self.js(
                "return [...document.querySelectorAll(`#${arguments[0]} button`)].map((b) => "
                "[b.querySelector('.name').textContent, b.querySelector('.value').dataset.value])",
                which,
            )
        ]

    def assert_quiet(self) -> None:
        """Nothing was logged, and nothing but the page itself was loaded."""
        assert self.browser.get_log("browser") == []
        messages = [
            json.loads(m["message"])["message"] for m in self.browser.get_log("performance")
        ]
        asked = [
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
            # pictures that the page makes itself
            and not m["params"]["request"]["url"].startswith("data:")
        ]
        assert asked == [self.address]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Callable[..., Page]:
    """Writes the report of some designs and opens it."""

    def call(designs: om.Design | list[om.Design], names: list[str] | None = None) -> Page:
        path = tmp_path / "report.html"
        om.report(designs, path, names)
        return Page(browser, path)

    return call


@pytest.fixture
def page_of(browser: Any) -> Callable[[Path], Page]:
    """Opens a page that is there."""
    return lambda path: Page(browser, path)
