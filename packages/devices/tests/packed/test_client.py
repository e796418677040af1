"""The JavaScript client: the same bytes, the same reports as in Python, in Node and in Chromium."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import random
import re
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import optmech_devices
import pytest
from each import each
from optmech_devices.packed.cbor import Tag, decode, encode
from optmech_devices.packed.clients import copy_client

import optmech as om

HERE = Path(__file__).parent
VECTORS = HERE / "vectors"
CLIENT = Path(optmech_devices.__file__).parent / "client"
STATED: dict[str, Any] = json.loads((VECTORS / "vectors.json").read_text())
POINTS = 1_000
DRAWS = 10_000
"""Of every file of places."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a browser is served: the client, the vectors, and many draws of each file."""
    root = tmp_path_factory.mktemp("client")
    for source in (CLIENT, VECTORS):
        shutil.copytree(source, root, dirs_exist_ok=True)
    shutil.copy(HERE / "answers.mjs", root)
    rng = random.Random(11)
    for name in STATED["files"]:
        found = om.load_packed(VECTORS / name)
        with open(root / f"{name}.draws", "wb") as stream:
            for _ in range(DRAWS):
                stream.write(struct.pack("<I", rng.randrange(len(found.secrets))))
                stream.write(rng.randbytes(found.draw_bytes))
    for name in STATED["meshes"]:
        mesh = om.load_packed(VECTORS / name)
        low, high = mesh.mesh.vertices.min(axis=0), mesh.mesh.vertices.max(axis=0)
        with open(root / f"{name}.draws", "wb") as stream:
            for _ in range(POINTS):
                position = [rng.uniform(a - 0.05, b + 0.05) for a, b in zip(low, high, strict=True)]
                stream.write(struct.pack("<dd", *position) + rng.randbytes(mesh.draw_bytes))
    return root


@functools.cache
def mesh_reports(folder: Path, name: str) -> list[int]:
    """What Python reports at the many positions."""
    found = om.load_packed(folder / name)
    data = (folder / f"{name}.draws").read_bytes()
    size = 16 + found.draw_bytes
    number = {label: k for k, label in enumerate(found.observables.labels)} | {None: -1}
    return [
        number[found.report(struct.unpack_from("<dd", data, at), data[at + 16 : at + size])]
        for at in range(0, len(data), size)
    ]


@functools.cache
def reports(folder: Path, name: str) -> list[int]:
    """What Python reports for the many draws."""
    found = om.load_packed(folder / name)
    size = 4 + found.draw_bytes
    data = np.frombuffer((folder / f"{name}.draws").read_bytes(), np.uint8).reshape(-1, size)
    places = data[:, :4].copy().view("<u4")[:, 0]
    number = {label: k for k, label in enumerate(found.observables.labels)}
    out = np.zeros(len(data), dtype=int)
    for place in range(len(found.secrets)):
        here = np.flatnonzero(places == place)
        drawn = found.reports(found.secrets.labels[place], data[here, 4:])
        out[here] = [number[label] for label in drawn]
    return out.tolist()


def compare(found: dict[str, Any], folder: Path) -> None:
    """The client's answers with what is committed, and with Python's."""
    for name, stated in STATED["files"].items():
        answer = found["files"][name]
        assert answer["draws"] == stated["draws"]
        assert answer["reports"] == stated["reports"]
        assert answer["positions"] == stated["positions"]
        assert answer["sticky"] == stated["sticky"]
        assert answer["ledger"] == stated["ledger"]
        assert answer["said"] == stated["said"]
        assert found["many"][name] == reports(folder, name)
    assert found["meshes"] == STATED["meshes"]
    for name in STATED["meshes"]:
        assert found["many"][name] == mesh_reports(folder, name)
    assert (
        sum(len(found["many"][name]) for name in STATED["files"])
        == DRAWS * len(STATED["files"])
        > 50_000
    )
    assert found["refused"] == dict.fromkeys(STATED["refused"], "refused")


def said(found: om.PackedMechanism) -> list[Any]:
    """All sentences about a file."""
    return [list(found.protects), list(found.against), found.region, found.guess]


def test_python_gives_the_committed_answers() -> None:
    for name, stated in STATED["files"].items():
        found = om.load_packed(VECTORS / name)
        labels = found.secrets.labels
        assert said(found) == stated["said"]
        for place, entropy, report in stated["draws"]:
            drawn = found.report(labels[place], bytes.fromhex(entropy))
            assert found.observables.index(drawn) == report
        for position, place in stated["positions"]:
            where = found.locate(position)
            assert (-1 if where is None else labels.index(where)) == place
        for report, where, accuracy in stated["reports"]:
            label = found.observables.labels[report]
            own = found.coordinates(label)
            assert (None if own is None else list(own), found.accuracy(label)) == (where, accuracy)
        sticky = om.StickyReports(found, bytes.fromhex(STATED["key"]))
        for place, epoch, entropy in stated["sticky"]:
            assert sticky.entropy(place, epoch).hex() == entropy
        if stated["ledger"] is not None:
            ledger = om.Ledger(found, None, stated["ledger"]["radius"])
            for place in stated["ledger"]["places"]:
                ledger.enter(labels[place])
            assert ledger.to_dict() == stated["ledger"]["state"]
    for name, stated in STATED["meshes"].items():
        region = om.load_packed(VECTORS / name)
        repeated = om.StickyReports(region, bytes.fromhex(STATED["key"]))
        assert repeated.snap == stated["slack"]
        assert said(region) == stated["said"]
        assert region.guess in region.against
        assert om.Ledger(region, None, 1).per_draw == stated["charge"]
        for position, place in stated["places"]:
            number = region.number(position)
            assert (-1 if number is None else number) == place
        for place, epoch, entropy, report in stated["sticky"]:
            drawn = repeated.entropy(place, epoch)
            assert drawn.hex() == entropy
            assert region.observables.index(region.report_of(place, drawn)) == report


def test_python_gives_the_committed_answers_at_positions() -> None:
    for name, stated in STATED["meshes"].items():
        found = om.load_packed(VECTORS / name)
        labels = found.observables.labels
        for position, entropy, report in stated["draws"]:
            drawn = found.report(position, bytes.fromhex(entropy))
            assert (-1 if drawn is None else labels.index(drawn)) == report
        for position, place in stated["positions"]:
            own = found.locate(position)
            assert (None if own is None else [own[0], *own[1]]) == place
        for report, where, accuracy in stated["reports"]:
            own = found.coordinates(labels[report])
            assert [None if own is None else list(own), found.accuracy(labels[report])] == [
                where, accuracy,
            ]  # fmt: skip


@each("name", STATED["refused"])
def test_python_refuses_the_committed_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.omm"
    path.write_bytes(bytes.fromhex(STATED["refused"][name]))
    with pytest.raises(om.VerificationError):
        om.load_packed(path)


def test_node_gives_the_same_reports(node: str, folder: Path) -> None:
    run = subprocess.run(
        [node, str(HERE / "vectors.mjs"), str(CLIENT), str(folder)],
        capture_output=True,
        check=True,
    )
    compare(json.loads(run.stdout), folder)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map: ClassVar = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
    }

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_chromium_gives_the_same_reports(browser: Any, address: str, folder: Path) -> None:
    browser.get(f"{address}/README.md")
    browser.set_script_timeout(60)
    found = browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        (async () => {
          const { answers } = await import("/answers.mjs");
          const read = async (name) => {
            const reply = await fetch(`/${name}`);
            if (!reply.ok) throw new Error(name);
            return reply.arrayBuffer();
          };
          return JSON.stringify(await answers(await import("/index.js"), read));
        })().then(done, (error) => done(String(error.stack)));
        """
    )
    compare(json.loads(found), folder)


def test_pages_get_reports_instead_of_the_position(browser: Any, address: str) -> None:
    """The demonstration, with a mocked position: only the mechanism's report is seen."""
    found = om.load_packed(VECTORS / "grid.omm")
    place = found.secrets.labels[7]
    longitude, latitude = found.coordinates(place) or (0.0, 0.0)
    truth = {"longitude": longitude + 1e-3, "latitude": latitude - 1e-3, "accuracy": 5,
             "altitude": 170, "heading": 90, "speed": 3}  # fmt: skip
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"origin": address, "permissions": ["geolocation"]}
    )
    browser.execute_cdp_cmd("Emulation.setGeolocationOverride", truth)
    browser.get(f"{address}/demo.html?file=grid.omm")
    browser.set_script_timeout(20)
    key = browser.execute_async_script(
        """
        const done = arguments[0];
        const wait = () => document.documentElement.dataset.ready
          ? done(localStorage.getItem("optmech-key")) : setTimeout(wait, 20);
        wait();
        """
    )
    ask = """
        const done = arguments[0];
        navigator.geolocation.getCurrentPosition(
          (p) => done([p.coords, p.timestamp]), (e) => done([e.message, e.code]));
        """
    coords, timestamp = browser.execute_async_script(ask)
    sticky = om.StickyReports(found, bytes(map(int, key.split(","))))
    report = sticky.report(place, timestamp / 1000)
    assert (coords["longitude"], coords["latitude"]) == found.coordinates(report)
    assert coords["accuracy"] == found.accuracy(report)
    rest = ("altitude", "altitudeAccuracy", "heading", "speed")
    assert [coords[name] for name in rest] == [None] * 4
    assert timestamp % 86_400_000 == 0
    # the same place and day: the same report
    assert browser.execute_async_script(ask)[0] == coords
    # a second one would take its reports for positions
    again = """
        const done = arguments[0];
        import("/index.js")
          .then(({ install }) => install({ mechanism: { secrets: { degrees: true } } }))
          .then(() => done("installed"), (error) => done(error.message));
        """
    assert "already" in browser.execute_async_script(again)
    # whatever way a page's script takes to it
    for way in WAYS_TO_GEOLOCATION:
        taken = browser.execute_async_script(
            """
            const done = arguments[1];
            new Function("done", `(async () => { ${arguments[0]} })().then((g) =>
              g.getCurrentPosition((p) => done([p.coords.longitude, p.coords.latitude]),
                (e) => done(["refused", e.code])), (e) => done(String(e)))`)(done);
            """,
            way,
        )
        assert taken == [coords["longitude"], coords["latitude"]], way
    # after a reload what was spent is known, and this report costs nothing again
    spent = browser.execute_script("return JSON.stringify(localStorage)")
    browser.get(f"{address}/demo.html?file=grid.omm")
    ready = """
        const done = arguments[0];
        const wait = () => document.documentElement.dataset.ready
          ? done(document.getElementById("spent").textContent) : setTimeout(wait, 20);
        wait();
        """
    assert browser.execute_async_script(ready).startswith("between positions 1 km apart: 2.47 of")
    assert browser.execute_async_script(ask)[0] == coords
    assert browser.execute_script("return JSON.stringify(localStorage)") == spent
    # outside the region nothing is said of where
    browser.execute_cdp_cmd(
        "Emulation.setGeolocationOverride", {"longitude": 0, "latitude": 0, "accuracy": 5}
    )
    assert browser.execute_async_script(ask) == ["outside the region", 2]
    browser.execute_cdp_cmd("Emulation.clearGeolocationOverride", {})
    browser.execute_script("localStorage.clear()")


WAYS_TO_GEOLOCATION = (
    """const get = Object.getOwnPropertyDescriptor(Navigator.prototype, "geolocation").get;
    return get.call(navigator);""",
    """return { getCurrentPosition: (...given) =>
      Geolocation.prototype.getCurrentPosition.apply(navigator.geolocation, given) };""",
    """const frame = document.createElement("iframe");
    document.body.appendChild(frame);
    return frame.contentWindow.navigator.geolocation;""",
    """document.body.append(document.createElement("iframe"));
    return window[window.length - 1].navigator.geolocation;""",
    """document.body.insertAdjacentHTML("beforeend", "<iframe></iframe>");
    return window[window.length - 1].navigator.geolocation;""",
    """const box = document.createElement("div");
    document.body.append(box);
    box.innerHTML = "<iframe></iframe>";
    return window[window.length - 1].navigator.geolocation;""",
    """const host = document.createElement("div");
    document.body.append(host);
    host.attachShadow({ mode: "open" }).innerHTML = "<iframe></iframe>";
    const { contentDocument } = host.shadowRoot.querySelector("iframe");
    return contentDocument.defaultView.navigator.geolocation;""",
    """const frame = document.createElement("iframe");
    document.body.append(frame);
    const inner = frame.contentDocument.createElement("iframe");
    frame.contentDocument.body.append(inner);
    return inner.contentWindow.navigator.geolocation;""",
    """const frame = document.createElement("iframe");
    frame.src = "/README.md";
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    document.body.append(frame);
    await loaded;
    return frame.contentWindow.navigator.geolocation;""",
    """const frame = document.createElement("iframe");
    frame.srcdoc = "<p>";
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    document.body.append(frame);
    await loaded;
    return window[window.length - 1].navigator.geolocation;""",
    """const frame = document.createElement("object");
    frame.data = "/README.md";
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    document.body.append(frame);
    await loaded;
    return (frame.contentWindow ?? window).navigator.geolocation;""",
    """await new Promise((resolve) => setTimeout(resolve));
    const range = document.createRange();
    range.selectNodeContents(document.body);
    range.collapse();
    range.insertNode(document.createElement("iframe"));
    return window[window.length - 1].navigator.geolocation;""",
    """return { getCurrentPosition: (success, failure) => {
      const watch = navigator.geolocation.watchPosition((position) => {
        navigator.geolocation.clearWatch(watch);
        success(position);
      }, failure);
    } };""",
)
"""Bodies of functions that return what a page's script may take for the true geolocation."""


def test_a_ledger_in_node_believes_no_header(node: str, tmp_path: Path) -> None:
    form, inner, rows, _ = decode((VECTORS / "line.omm").read_bytes()).value
    header = decode(inner)
    header["promises"] = [{**part, "epsilon": 0.5} for part in header["promises"]]
    head = encode(Tag(55799, [form, encode(header), rows, bytes(32)]))[:-32]
    (tmp_path / "m.omm").write_bytes(head + hashlib.sha256(head).digest())
    script = f"""
        import {{ Ledger, PackedError, load }} from {json.dumps((CLIENT / "index.js").as_uri())};
        import {{ readFileSync }} from "node:fs";
        const line = await load(readFileSync({json.dumps(str(tmp_path / "m.omm"))}));
        const field = await load(readFileSync({json.dumps(str(VECTORS / "field.omm"))}));
        const said = [];
        for (const [mechanism, epsilon] of [[line, null], [line, 0.9], [line, 1], [field, 1]]) {{
          try {{ said.push(new Ledger(mechanism, epsilon, 1).epsilon); }}
          catch (error) {{ said.push(error.constructor.name); }}
        }}
        console.log(JSON.stringify(said));
    """
    run = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, check=True
    )
    assert json.loads(run.stdout) == ["PackedError", "PackedError", 1, "PackedError"]


def test_a_signed_file_in_node(node: str, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from optmech_devices.packed.file import envelope, signed_bytes

    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    content = (VECTORS / "grid.omm").read_bytes()
    signed = envelope(content, key.sign(signed_bytes(content)))
    (tmp_path / "good.omm").write_bytes(signed)
    (tmp_path / "bad.omm").write_bytes(signed[:-1] + bytes([signed[-1] ^ 1]))
    script = f"""
        import {{ load }} from {json.dumps((CLIENT / "index.js").as_uri())};
        import {{ readFileSync }} from "node:fs";
        const key = Uint8Array.from({list(raw)});
        const other = new Uint8Array(32).fill(9);
        const file = (name) => readFileSync({json.dumps(str(tmp_path))} + "/" + name);
        const said = [];
        for (const [name, options] of [["good", {{ signer: key }}], ["good", {{}}],
            ["good", {{ signer: other }}], ["bad", {{ signer: key }}]]) {{
          try {{ said.push((await load(file(name + ".omm"), options)).title); }}
          catch (error) {{ said.push(error.constructor.name); }}
        }}
        console.log(JSON.stringify(said));
    """
    run = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, check=True
    )
    title, *others = json.loads(run.stdout)
    assert title == "A grid over bounds"
    assert others[0] == "PackedError"
    assert all(name != title for name in others)


def test_the_client_is_small_and_stands_alone(tmp_path: Path) -> None:
    for path in CLIENT.glob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 400
        assert all(
            re.search(r'from "\./\w+\.js"', line)
            for line in lines
            if line.startswith(("import ", "export {")) and " from " in line
        )
    package = json.loads((CLIENT / "package.json").read_text())
    assert "dependencies" not in package
    copy_client("js", tmp_path / "js")
    assert all((tmp_path / "js" / name).is_file() for name in package["files"])
