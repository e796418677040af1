"""Chromium without a window, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--window-size=1280,1000",
    "--no-first-run",
    "--disable-background-networking",
)


@contextmanager
def opened(*logs: str, flags: tuple[str, ...] = ()) -> Iterator[Any]:
    """A browser that keeps these logs, with more flags; the test is skipped where there is none."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver (Debian: apt-get install chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    service = webdriver.ChromeService(executable_path=driver)
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()


AXE = Path(__file__).resolve().parent.parent / "build" / "node" / "node_modules" / "axe-core"


def axe() -> str:
    """The script of axe-core, which ``make axe`` installs; the test is skipped where there is none
    but in continuous integration."""
    path = AXE / "axe.min.js"
    if not path.is_file() and not (os.environ.get("CI") and shutil.which("npm")):
        pytest.skip("no axe-core (make axe installs it)")
    return path.read_text(encoding="utf-8")


def violations(browser: Any, width: int, scheme: str, script: str) -> list[tuple[str, str]]:
    """What axe finds in the page that is open: the rule, and the element."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.refresh()
    browser.set_script_timeout(120)
    # what watches sizes has been told of them after two frames
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    browser.execute_script(script)
    found = browser.execute_async_script(
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => arguments[0](r.violations))"
    )
    return [(rule["id"], str(node["html"])[:200]) for rule in found for node in rule["nodes"]]


def as_it_was(browser: Any) -> None:
    """No width and no colours of others any more."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
