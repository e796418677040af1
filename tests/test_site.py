"""The documentation site as it is built: no dead link, no missing image, formulas set without a
network, every public name found by its search."""

from __future__ import annotations

import contextlib
import functools
import html
import http.server
import importlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from chromium import as_it_was, axe, opened, violations
from test_reference import PUBLIC, found

ROOT = Path(__file__).resolve().parent.parent
SIBLINGS = sorted((ROOT / "packages").glob("*"))

pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="not a checkout")


class Page(HTMLParser):
    """What a page refers to, and the places in it that others may refer to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.images: list[tuple[str, str]] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "img":
            self.images.append((found.get("src", ""), found.get("alt", "")))
        self.links += [found[name] for name in ("href", "src") if name in found]


BUILT = ROOT / "build" / "site"
"""What ``make docs`` builds, in the same way."""


def is_of_today() -> bool:
    """Whether it was built after all that it is made of."""
    folders = [ROOT / "docs", ROOT / "optmech", *SIBLINGS]
    sources = [path for folder in folders for path in folder.rglob("*.*")]
    begun = BUILT / "sitemap.xml"
    made = (".pyc", ".library")
    sources = [path for path in sources if path.suffix not in made and path.is_file()]
    changed = (path.stat().st_mtime for path in [ROOT / "mkdocs.yml", *sources])
    return begun.is_file() and max(changed) < begun.stat().st_mtime


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if is_of_today():
        return BUILT
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def target(site: Path, page: Path, link: str) -> tuple[Path, str]:
    """The file that a link of a page leads to, and the place in it."""
    plain, place = urldefrag(link)
    path = unquote(urlsplit(plain).path)
    found = page if not path else site / path.lstrip("/") if path[0] == "/" else page.parent / path
    found = found.resolve()
    return found / "index.html" if found.is_dir() else found, unquote(place)


def test_no_link_is_dead_and_none_leads_to_the_network(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 30
    dead, count = [], 0
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            if urlsplit(link).scheme in ("http", "https"):
                continue
            if link.startswith(("data:", "mailto:", "javascript:")):
                continue
            count += 1
            found, place = target(site, path, link)
            known = pages.get(found)
            missing = place and known is not None and place not in known.places
            if not found.is_file() or (missing and not place.startswith("__")):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert count > 2000
    assert not dead


def test_every_image_is_there_described_and_captioned(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for source, words in page.images:
            assert target(site, path, source)[0].stat().st_size > 100, (path, source)
            assert len(words) > 10, (path, source)
        captions = path.read_text(encoding="utf-8").count("<figcaption")
        assert captions == len(page.images), path


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path in pages:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"(https?:[^\"]*)", text)
        loaded += re.findall(r"<link[^>]*rel=\"stylesheet\"[^>]*href=\"(https?:[^\"]*)", text)
        assert not loaded, path


def test_every_guide_has_a_picture_and_the_first_page_says_where_to_get_it(
    site: Path, pages: dict[Path, Page]
) -> None:
    guides = sorted((ROOT / "docs" / "guides").glob("*.md"))
    assert len(guides) >= 9
    for guide in guides:
        assert pages[site / "guides" / guide.stem / "index.html"].images, guide
    first = (site / "index.html").read_text(encoding="utf-8")
    assert "pip" in first
    assert "not on a package index" in first


def test_the_notebooks_are_shown(site: Path) -> None:
    shown = (site / "notebooks" / "index.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]*>", "", shown))
    for path in (ROOT / "docs" / "notebooks").glob("*.py"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert all(line in text for line in lines), path


def test_the_gallery_has_every_problem(site: Path, pages: dict[Path, Page]) -> None:
    found = [site / name / "index.html" for name in ("gallery", "gallery-more")]
    text = "".join(path.read_text(encoding="utf-8") for path in found)
    shown = {Path(source).stem for path in found for source, _ in pages[path].images}
    assert shown == {path.stem for path in (ROOT / "problems").glob("*.toml")}
    for name in shown:
        assert f"{name}.toml" in text


def test_a_browser_gets_no_page_of_a_book(site: Path) -> None:
    """Half a megabyte, the source beside every name included."""
    sizes = {path.parent.name: path.stat().st_size for path in site.rglob("index.html")}
    assert {name: size for name, size in sizes.items() if size > 525_000} == {}


def test_every_public_name_is_found(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[2] for entry in index["docs"]}
    there = {id(standing_at(place)) for place in places}
    missing = [name for name in sorted(PUBLIC) if id(found(name)) not in there]
    assert not missing


def standing_at(place: str) -> object:
    """What the name of a place is of; None where it is no name. A function that shares its name
    with its module is found in the module."""
    package, *parts = place.split(".")
    if package not in ("optmech", *(f"optmech_{name.name}" for name in SIBLINGS)):
        return None
    value: object = importlib.import_module(package)
    for k, part in enumerate(parts, 1):
        with contextlib.suppress(ImportError):
            value = importlib.import_module(".".join([package, *parts[:k]]))
            continue
        value = getattr(value, part, None)
    return value


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return None

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with opened("browser") as found:
        found.set_script_timeout(60)
        yield found


def searched(chromium: Any, words: str) -> list[str]:
    """Titles that the search of the page shows for some words."""
    found: list[str] = chromium.execute_async_script(
        """const [words, done] = arguments;
        const field = document.querySelector('[data-md-component=search-query]');
        document.querySelector('[data-md-toggle=search]').checked = true;
        field.focus(); field.value = words;
        field.dispatchEvent(new Event('keyup'));
        const look = () => {
          const links = [...document.querySelectorAll('.md-search-result__link')];
          if (links.length) done(links.map((link) => link.textContent));
          else setTimeout(look, 100);
        };
        look();""",
        words,
    )
    return found


@pytest.mark.parametrize("words", ["anonymise", "trips", "epsilon meaning"])
def test_what_newcomers_look_for_is_found(words: str, chromium: Any, address: str) -> None:
    """The page of words leads on from what others call it."""
    chromium.get(f"{address}/")
    searched(chromium, words)
    pages = chromium.execute_script(
        "return [...document.querySelectorAll('.md-search-result__item h1')]"
        ".map((head) => head.textContent);"
    )
    assert "Words" in pages[:5], pages


def test_in_a_browser(chromium: Any, address: str) -> None:
    """Formulas are set, pictures are drawn, the search answers, and nothing complains."""
    chromium.get(f"{address}/theory/lagrangian/")
    js = chromium.execute_script
    marked = js("return document.querySelectorAll('.arithmatex').length")
    assert marked > 40
    assert js("return document.querySelectorAll('.arithmatex .katex').length") == marked
    assert js("return document.querySelectorAll('.katex-error').length") == 0
    chromium.get(f"{address}/gallery-more/")
    widths = js("return [...document.images].map((i) => { i.loading = 'eager'; return i.src; })")
    assert len(widths) > 25
    assert any("least_epsilon" in text for text in searched(chromium, "least_epsilon"))
    severe = [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    assert not severe


def test_no_page_is_wider_than_a_phone(site: Path, chromium: Any, address: str) -> None:
    """What is wide scrolls by itself, and paper has no buttons."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    # every page would read the index of the search, which is as long as all pages
    chromium.execute_cdp_cmd("Network.enable", {})
    chromium.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/search_index.json"]})
    try:
        wide = []
        for path in sorted(site.rglob("index.html")):
            chromium.get(
                f"{address}/{path.parent.relative_to(site).as_posix()}/".replace("/./", "/")
            )
            if chromium.execute_script("return document.documentElement.scrollWidth") > 390:
                wide.append(path.parent.name)
        assert wide == []
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        chromium.get(f"{address}/guides/protecting/")
        assert chromium.execute_script(
            "return [...document.querySelectorAll('pre button, .headerlink, nav')].length"
        )
        assert not chromium.execute_script(
            "return [...document.querySelectorAll('button, .headerlink, .md-header, .md-sidebar')]"
            ".filter((e) => e.offsetParent !== null).map((e) => e.outerHTML.slice(0, 120))"
        )
    finally:
        chromium.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        as_it_was(chromium)


LOOKED_AT = ("", "guides/protecting/", "gallery/", "theory/", "reference/measures/", "benchmarks/")


@pytest.mark.parametrize("page", LOOKED_AT)
def test_axe_finds_nothing(page: str, chromium: Any, address: str) -> None:
    script = axe()
    chromium.get(f"{address}/{page}")
    try:
        for width, scheme in ((1400, "dark"), (390, "light")):
            assert violations(chromium, width, scheme, script) == [], (width, scheme)
    finally:
        as_it_was(chromium)
