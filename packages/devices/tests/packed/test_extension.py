"""What is copied out for others: C, the npm package, and the extension in a real browser, where no
page talks around it."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import opened
from optmech_devices.packed.clients import CLIENTS, copy_client
from packed.test_client import _Quiet

import optmech as om
from optmech.cli.main import main

VECTORS = Path(__file__).parent / "vectors"
FLAGS = (
    # frames of other origins get the mocked position too
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,DisableLoadExtensionCommandLineSwitch",
    "--disable-popup-blocking",
)
TRUTH = {"longitude": 16.3512, "latitude": 48.2013, "accuracy": 5, "altitude": 170, "speed": 3}
PLACE = [TRUTH["longitude"], TRUTH["latitude"]]
ASKING = """navigator.geolocation.getCurrentPosition(
  (p) => WHERE.postMessage([p.coords.longitude, p.coords.latitude], "*"),
  (e) => WHERE.postMessage(["error", e.code], "*"))"""
FRAME = f"<!doctype html><script>{ASKING.replace('WHERE', 'parent')}</script>"
PAGE = """<!doctype html><title>page</title><script>
window.first = new Promise((done) => navigator.geolocation.getCurrentPosition(
  (p) => done([p.coords.longitude, p.coords.latitude]), (e) => done(["error", e.code])));
</script><body>"""

OBJECTS = {
    "plainly": "return navigator.geolocation;",
    "by the getter of the prototype": """
        const own = Object.getOwnPropertyDescriptor(Navigator.prototype, "geolocation");
        return own.get.call(navigator);""",
    "by the prototype's method": """
        const { getCurrentPosition } = Geolocation.prototype;
        return { getCurrentPosition: (...given) =>
          getCurrentPosition.apply(navigator.geolocation, given) };""",
    "in an empty frame": """
        const frame = document.createElement("iframe");
        document.body.append(frame);
        return frame.contentWindow.navigator.geolocation;""",
    "in a frame by its number": """
        document.body.insertAdjacentHTML("beforeend", "<iframe></iframe>");
        return window[window.length - 1].navigator.geolocation;""",
    "in a frame of a template": """
        const template = document.createElement("template");
        template.innerHTML = "<iframe></iframe>";
        document.body.append(template.content.cloneNode(true));
        return window[window.length - 1].navigator.geolocation;""",
    "in a frame within a frame": """
        const outer = document.createElement("iframe");
        document.body.append(outer);
        const inner = outer.contentDocument.createElement("iframe");
        outer.contentDocument.body.append(inner);
        return inner.contentWindow.navigator.geolocation;""",
    "by a method of another frame": """
        const frame = document.createElement("iframe");
        document.body.append(frame);
        const { getCurrentPosition } = frame.contentWindow.Geolocation.prototype;
        return { getCurrentPosition: (...given) =>
          getCurrentPosition.apply(navigator.geolocation, given) };""",
    "after the built-ins were altered": """
        for (const kind of [WeakSet, Map, Set]) kind.prototype.has = () => true;
        Reflect.apply = () => { throw new Error("taken"); };
        Object.defineProperty = () => undefined;
        const frame = document.createElement("iframe");
        document.body.append(frame);
        return frame.contentWindow.navigator.geolocation;""",
    "by watching": """
        return { getCurrentPosition: (success, failure) => {
          const watch = navigator.geolocation.watchPosition((position) => {
            navigator.geolocation.clearWatch(watch);
            success(position);
          }, failure);
        } };""",
}
"""Bodies of functions that return what a page's script may take for the true geolocation."""
FRAMES = {
    "a page of this origin": 'frame.src = "/frame.html";',
    "a page of another origin": """
        frame.src = `${location.origin.replace("127.0.0.1", "localhost")}/frame.html`;""",
    "a page in a sandbox": 'frame.sandbox = "allow-scripts"; frame.src = "/frame.html";',
    "a document of its own": f"frame.srcdoc = {json.dumps(FRAME)};",
    "a blob": f"""
        const content = new Blob([{json.dumps(FRAME)}], {{ type: "text/html" }});
        frame.src = URL.createObjectURL(content);""",
    "a script for an address": f"""
        frame.src = "javascript:" + encodeURIComponent({json.dumps(repr(FRAME))});""",
}
"""Frames whose own script asks while they load."""
ASK = """
    const done = arguments[1];
    new Function("done", `(async () => { ${arguments[0]} })().then((g) => g.getCurrentPosition(
      (p) => done([p.coords.longitude, p.coords.latitude, p.coords, p.timestamp]),
      (e) => done(["error", e.code, e.message])), (e) => done(String(e)))`)(done);
"""
SHOW = """
    const done = arguments[1];
    addEventListener("message", (event) => done(event.data));
    const frame = document.createElement("iframe");
    frame.allow = "geolocation *";
    new Function("frame", arguments[0])(frame);
    document.body.append(frame);
    setTimeout(() => done("nothing"), 10000);
"""


class Browser:
    """A browser at a page that may ask for the mocked position."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address
        driver.set_script_timeout(20)
        for origin in (address, address.replace("127.0.0.1", "localhost")):
            permission = {"origin": origin, "permissions": ["geolocation"]}
            driver.execute_cdp_cmd("Browser.grantPermissions", permission)
        self.move(**TRUTH)

    def move(self, **where: float) -> None:
        self.driver.execute_cdp_cmd("Emulation.setGeolocationOverride", where)

    def ask(self, way: str, script: str = ASK) -> Any:
        """On a page that was loaded anew."""
        self.driver.get(f"{self.address}/index.html")
        return self.driver.execute_async_script(script, way)

    def run(self, script: str) -> Any:
        self.driver.get(f"{self.address}/index.html")
        return self.driver.execute_async_script(script)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("pages")
    (root / "index.html").write_text(PAGE)
    (root / "frame.html").write_text(FRAME)
    handler = functools.partial(_Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def bare(address: str) -> Iterator[Browser]:
    """Without the extension."""
    with opened(flags=FLAGS) as driver:
        yield Browser(driver, address)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("extension") / "made"
    copy_client("extension", found, VECTORS / "grid.omm")
    return found


@pytest.fixture(scope="module")
def covered(address: str, folder: Path) -> Iterator[Browser]:
    """With the extension, which is ready."""
    with opened(flags=(*FLAGS, f"--load-extension={folder}")) as driver:
        found = Browser(driver, address)
        for _ in range(50):
            if found.ask(OBJECTS["plainly"])[:2] != PLACE:
                break
            time.sleep(0.2)
        yield found


@pytest.fixture(scope="module")
def seen(covered: Browser) -> Any:
    """What a page sees that asks plainly."""
    return covered.ask(OBJECTS["plainly"])


def stored(covered: Browser, folder: Path, script: str) -> Any:
    """What a script says in the extension's own page, whose name is made of its folder's."""
    letters = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:32]
    name = "".join(chr(ord("a") + int(digit, 16)) for digit in letters)
    covered.driver.get(f"chrome-extension://{name}/options.html")
    return covered.driver.execute_async_script(script)


@pytest.mark.parametrize("way", OBJECTS)
def test_no_way_leads_to_the_true_position(
    way: str, bare: Browser, covered: Browser, seen: Any
) -> None:
    """Each of them does without the extension."""
    assert bare.ask(OBJECTS[way])[:2] == PLACE
    assert covered.ask(OBJECTS[way])[:2] == seen[:2] != PLACE


@pytest.mark.parametrize("frame", FRAMES)
def test_no_frame_has_the_true_position(
    frame: str, bare: Browser, covered: Browser, seen: Any
) -> None:
    assert bare.ask(FRAMES[frame], SHOW) == PLACE
    assert covered.ask(FRAMES[frame], SHOW) == seen[:2] != PLACE


def test_the_first_script_of_a_page_comes_too_late(
    bare: Browser, covered: Browser, seen: Any
) -> None:
    first = "first.then(arguments[0])"
    assert bare.run(first) == PLACE
    assert covered.run(first) == seen[:2] != PLACE


def test_a_document_that_is_written_anew_gets_nothing(bare: Browser, covered: Browser) -> None:
    """What listened is gone with the old document: there is no answer, and no position."""
    write = f"setTimeout(() => frame.contentDocument.write({json.dumps(FRAME)}));"
    assert bare.ask(write, SHOW) == PLACE
    assert covered.ask(write, SHOW) == "nothing"


def test_workers_and_elements_have_no_position(covered: Browser) -> None:
    worker = """
        const text = "postMessage(typeof navigator.geolocation)";
        const made = new Worker(URL.createObjectURL(new Blob([text])));
        made.onmessage = (event) => arguments[0](event.data);
    """
    assert covered.run(worker) == "undefined"
    element = """
        const made = document.createElement("geolocation");
        document.body.append(made);
        const own = globalThis.HTMLGeolocationElement
          && Object.getOwnPropertyDescriptor(HTMLGeolocationElement.prototype, "position");
        arguments[0](own ? [made.position, own.configurable] : [null, false]);
    """
    assert covered.run(element) == [None, False]
    # the position of a window in front cannot be mocked: its methods are those of the extension
    window = """
        const made = window.open("");
        const { prototype } = made.Geolocation;
        const own = Object.getOwnPropertyDescriptor(prototype, "getCurrentPosition");
        made.close();
        arguments[0]([own.configurable, String(own.value).includes("[native code]")]);
    """
    assert covered.run(window) == [False, False]


def test_permissions_are_those_of_the_page(covered: Browser, seen: Any) -> None:
    query = """
        navigator.permissions.query({ name: "geolocation" }).then((p) => arguments[0](p.state));
    """
    assert covered.run(query) == "granted"
    origin = covered.address
    for setting in ("denied", "granted"):
        permission = {"permission": {"name": "geolocation"}, "setting": setting, "origin": origin}
        covered.driver.execute_cdp_cmd("Browser.setPermission", permission)
        found = covered.ask(OBJECTS["plainly"])
        assert found[:2] == (["error", 1] if setting == "denied" else seen[:2])


def test_reports_are_those_of_python_with_the_key_of_the_extension(
    covered: Browser, seen: Any, folder: Path
) -> None:
    require_python(covered, seen, folder, om.load_packed(VECTORS / "grid.omm"))


def test_a_file_for_the_whole_earth_is_taken(address: str, tmp_path: Path) -> None:
    """At the antimeridian, near a pole: reports of Python, and nobody is outside."""
    copy_client("extension", tmp_path / "made", VECTORS / "earth.omm")
    where = {"longitude": 180.0, "latitude": 89.5, "accuracy": 5}
    with opened(flags=(*FLAGS, f"--load-extension={tmp_path / 'made'}")) as driver:
        covered = Browser(driver, address)
        covered.move(**where)
        for _ in range(50):
            seen = covered.ask(OBJECTS["plainly"])
            if seen[:2] != [180.0, 89.5]:
                break
            time.sleep(0.2)
        earth = om.Earth.load(VECTORS / "earth.omm")
        require_python(covered, seen, tmp_path / "made", earth, (180.0, 89.5))


def require_python(
    covered: Browser, seen: Any, folder: Path, found: Any, place: Any = PLACE
) -> None:
    """What a page has seen is what Python reports with the key of the extension."""
    _, _, coords, timestamp = seen
    key = stored(
        covered,
        folder,
        "chrome.storage.local.get('key').then(({ key }) =>"
        "arguments[0]([...atob(key)].map((letter) => letter.charCodeAt(0))));",
    )
    sticky = om.StickyReports(found, bytes(key))
    report = sticky.report(found.locate(place), timestamp / 1000)
    assert (coords["longitude"], coords["latitude"]) == found.coordinates(report)
    assert coords["accuracy"] == found.accuracy(report)
    rest = ("altitude", "altitudeAccuracy", "heading", "speed")
    assert [coords[name] for name in rest] == [None] * 4
    assert timestamp % 86_400_000 == 0


def test_nothing_is_said_outside_the_region_and_beyond_the_budget(
    covered: Browser, seen: Any, folder: Path
) -> None:
    covered.move(longitude=0, latitude=0, accuracy=5)
    assert covered.ask(OBJECTS["plainly"]) == ["error", 2, "outside the region"]
    stored(covered, folder, "chrome.storage.local.set({ budget: 1 }).then(arguments[0]);")
    found = om.load_packed(VECTORS / "grid.omm")
    far = next(label for label in found.secrets.labels if label != found.locate(PLACE))
    longitude, latitude = found.coordinates(far)
    covered.move(longitude=longitude, latitude=latitude, accuracy=5)
    assert covered.ask(OBJECTS["plainly"]) == ["error", 2, "the budget is spent"]
    # the place that was paid for costs nothing again, also where the browser began anew
    covered.move(**TRUTH)
    assert covered.ask(OBJECTS["plainly"])[:2] == seen[:2]


# -- what is copied out ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grid.omm", "earth.omm"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_is_copied_whole_and_never_over_files(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, city = tmp_path / "a" / "b", VECTORS / name
    argv = ["client", kind, str(target), "--mechanism", str(city), "--json"]
    assert main(argv) == 0
    names = json.loads(capsys.readouterr().out)["files"]
    made = {path for path in target.rglob("*") if path.is_file()}
    assert made == {Path(name) for name in names}
    assert (target / "mechanism.omm").read_bytes() == city.read_bytes()
    assert "Apache License" in (target / "LICENSE").read_text()
    before = {path: path.read_bytes() for path in made}
    assert main(argv) == 2
    assert "is not empty" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in made} == before
    bad = tmp_path / "bad.omm"
    bad.write_bytes(city.read_bytes()[:-1])
    assert main(["client", kind, str(tmp_path / "c"), "--mechanism", str(bad)]) == 1
    assert not (tmp_path / "c").exists()
    assert main(["client", kind, str(bad)]) == 2


def test_the_package_of_npm_is_read_and_run(node: str, tmp_path: Path) -> None:
    """Packed as it would be published, installed elsewhere, and its types read where there is
    TypeScript."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm")
    copy_client("js", tmp_path / "js", VECTORS / "grid.omm")
    packed = subprocess.run(
        [npm, "pack", "--json", "--offline"], cwd=tmp_path / "js", capture_output=True, check=True
    )
    (stated,) = json.loads(packed.stdout)
    names = {part["path"] for part in stated["files"]}
    sources = {path.name for path in (tmp_path / "js").glob("*.js")}
    assert names == sources | {"index.d.ts", "package.json", "README.md", "LICENSE"}
    home = tmp_path / "home" / "node_modules" / "optmech-client"
    home.mkdir(parents=True)
    archive = tmp_path / "js" / stated["filename"]
    subprocess.run(["tar", "xzf", archive, "--strip-components=1"], cwd=home, check=True)
    script = f"""
        import {{ load }} from "optmech-client";
        import {{ readFileSync }} from "node:fs";
        const mechanism = await load(readFileSync({json.dumps(str(VECTORS / "grid.omm"))}));
        console.log(mechanism.draw(18, new Uint8Array([255, 255, 255])));
    """
    run = subprocess.run(
        [node, "--input-type=module", "-e", script],
        cwd=home.parents[1],
        capture_output=True,
        check=True,
    )
    assert json.loads(run.stdout) == 19
    exported = subprocess.run(
        [node, "--input-type=module", "-e",
         'import * as all from "optmech-client"; console.log(JSON.stringify(Object.keys(all)));'],
        cwd=home.parents[1], capture_output=True, check=True,
    )  # fmt: skip
    types = (home / "index.d.ts").read_text()
    for name in json.loads(exported.stdout):
        assert f"export class {name} " in types or f" {name}(" in types or f" {name}:" in types
