"""Packed mechanisms for every point of a line or of roads: what is kept, what a draw is, what is
refused. Roads are matched, and ways measured, by code of the test's own."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import optmech_devices
import pytest
from optmech_devices.packed.cbor import Tag, decode, encode
from packed import native

import optmech as om
from optmech.cli.main import main

UNIT = 2**24
CLIENT = Path(optmech_devices.__file__).parent / "client"
NODES = {
    "node": list("abcdefg"),
    "longitude": [12.480, 12.492, 12.484, 12.497, 12.489, 12.476, 12.501],
    "latitude": [41.900, 41.902, 41.893, 41.895, 41.8975, 41.896, 41.9005],
}
ROADS = {
    "source": list("abcadbeecaf"),
    "target": list("bcadbecdffa"),
    "metres": [1050, 1300, 880, 1600, 920, 640, 700, 800, 800, 600, 900],
}
EPSILON = 3.0


@pytest.fixture(scope="module")
def town() -> om.Design:
    """Roads of 50 m and more in degrees, two of them side by side; g is at the end of one."""
    edges = {name: [*values, more] for (name, values), more in
             zip(ROADS.items(), ["d", "g", 750], strict=True)}  # fmt: skip
    roads = om.Mesh.roads((NODES, edges), divide=0.2, metres=True)
    points = list(zip(NODES["longitude"], NODES["latitude"], strict=True))
    reports = om.Domain.geographic(NODES["node"], points)
    private = om.MetricPrivacy("3", everywhere=roads)
    prior = roads.prior("crossings")
    return om.solve(om.Problem(prior, roads.distance, reports, constraints=[private]))


@pytest.fixture(scope="module")
def packed(town: om.Design, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "town.omm"
    om.pack(town, path, bits=24, outside="nearest")
    return path


@pytest.fixture(scope="module")
def line() -> om.Design:
    """Ten years in sixteen parts."""
    ages, euclidean = om.Mesh.line(20, 30, 16, unit="years"), om.distances.euclidean()
    private = om.MetricPrivacy("1/2", euclidean, everywhere=ages)
    reports = om.Domain([f"about {age}" for age in (21, 25, 29)], [[21.0], [25.0], [29.0]], "years")
    return om.solve(om.Problem(om.Prior.uniform(ages.domain), euclidean, reports,
                               constraints=[private]))  # fmt: skip


def vector(longitude: float, latitude: float) -> np.ndarray:
    x, y = math.radians(longitude), math.radians(latitude)
    return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])


def of_file(path: Path) -> dict[str, Any]:
    """What a file says, by its bytes."""
    _, inner, rows, _ = decode(path.read_bytes()).value
    body = decode(inner)
    width, columns = body["width"], np.frombuffer(body["columns"].value, "<u4").tolist()
    entries = [int.from_bytes(rows[k : k + width], "little") for k in range(0, len(rows), width)]
    step, mesh = len(columns), body["mesh"]
    return {
        "columns": columns,
        "rows": [entries[k : k + step] for k in range(0, len(entries), step)],
        "row of": np.frombuffer(mesh["rows"].value, "<u4").reshape(-1, 2).tolist(),
        "segments": np.frombuffer(mesh["segments"].value, "<u4").reshape(-1, 2).tolist(),
        "lengths": mesh["lengths"] and np.frombuffer(mesh["lengths"].value, "<f8").tolist(),
        "vertices": np.frombuffer(mesh["vertices"].value, "<f8").reshape(-1, mesh["dimension"]),
    }


def matched(file: dict[str, Any], position: list[float]) -> tuple[int, float, float]:
    """The segment next to a position, by chords, the share of the way along it, and by how much the
    next best segment is farther, in km."""
    p = vector(*position)
    found = []
    for k, (a, b) in enumerate(file["segments"]):
        s, t = (vector(*file["vertices"][v]) for v in (a, b))
        along = t - s
        square = float(along @ along)
        share = min(max(float((p - s) @ along) / square, 0.0), 1.0) if square else 0.0
        found.append((float(np.linalg.norm(p - s - share * along)), k, share))
    (near, k, share), (after, *_) = sorted(found)[:2]
    return k, share, 6371 * (after - near)


def ways(file: dict[str, Any], at: tuple[int, float], to: tuple[int, float]) -> float:
    """The shortest way along the roads between shares of two segments (Bellman and Ford)."""
    (k, s), (j, t) = at, to
    length, ends = file["lengths"], file["segments"]
    away = np.full(len(file["vertices"]), np.inf)
    away[ends[k][0]], away[ends[k][1]] = s * length[k], (1 - s) * length[k]
    for _ in range(len(away)):
        for n, (a, b) in enumerate(ends):
            away[b] = min(away[b], away[a] + length[n])
            away[a] = min(away[a], away[b] + length[n])
    found = min(away[ends[j][0]] + t * length[j], away[ends[j][1]] + (1 - t) * length[j])
    return min(found, abs(s - t) * length[k]) if k == j else float(found)


def places(file: dict[str, Any], count: int, seed: int) -> list[list[float]]:
    """Positions whose road is not in doubt: anywhere around the roads."""
    rng = random.Random(seed)
    low, high = file["vertices"].min(axis=0), file["vertices"].max(axis=0)
    found: list[list[float]] = []
    while len(found) < count:
        position = [rng.uniform(a, b) for a, b in zip(low, high, strict=True)]
        if matched(file, position)[2] > 1e-6:
            found.append(position)
    return found


def test_a_draw_is_that_of_the_ends_of_the_nearest_road(packed: Path) -> None:
    file, found, rng = of_file(packed), om.load_packed(packed), random.Random(1)
    assert isinstance(found, om.PackedEverywhere)
    assert found.draw_bytes == 3 + 3
    labels = found.observables.labels
    for position in places(file, 60, 2):
        segment, share, _ = matched(file, position)
        cell, (first, last) = found.locate(position)
        assert (cell, first + last) == (segment, UNIT)
        assert last / UNIT == pytest.approx(share, abs=2**-23)
        drawn = rng.randbytes(6)
        end = int(int.from_bytes(drawn[:3], "little") >= first)
        number, row = int.from_bytes(drawn[3:], "little"), file["rows"][file["row of"][cell][end]]
        column = sum(sum(row[: k + 1]) <= number for k in range(len(row)))
        assert found.report(position, drawn) == labels[file["columns"][column]]
        mixed = [(first * file["rows"][file["row of"][cell][0]][k]
                  + last * file["rows"][file["row of"][cell][1]][k]) / UNIT**2
                 for k in range(len(row))]  # fmt: skip
        assert found.at([position])[0][file["columns"]] == pytest.approx(mixed, abs=1e-12)


def test_no_report_tells_more_than_the_way_along_the_roads(packed: Path, town: om.Design) -> None:
    """|ln p(o|x) - ln p(o|y)| <= ε (d + 2 snap), d between the points of the roads."""
    file, found = of_file(packed), om.load_packed(packed)
    assert isinstance(found, om.PackedEverywhere)
    snap = found.header.snap
    assert snap == pytest.approx(max(file["lengths"]) / UNIT, rel=1e-9)
    assert max(file["lengths"]) <= 0.2
    given = places(file, 40, 3)
    # a millimetre on both sides of every crossing
    for x, y in file["vertices"].tolist():
        given += [p for p in ([x - 1e-8, y], [x + 1e-8, y - 1e-8]) if matched(file, p)[2] > 1e-9]
    at = [matched(file, position)[:2] for position in given]
    seen = np.log(found.at(given)[:, file["columns"]])
    rng, tightest = random.Random(4), 0.0
    pairs = [*pairwise(range(len(given))), *(rng.sample(range(len(given)), 2) for _ in range(400))]
    for i, j in pairs:
        most = EPSILON * (ways(file, at[i], at[j]) + 2 * snap)
        told = float(np.abs(seen[i] - seen[j]).max())
        assert told <= most + 1e-12
        tightest = max(tightest, told / most) if most > 1e-3 else tightest
    assert tightest > 0.5
    # near the design's own, which is matched in kilometres of the plane
    own = town.mechanism.at(np.array(given[:40]))
    assert np.abs(found.at(given[:40]) - own).max() < 2e-3


def test_check_and_audit_prove_it(
    packed: Path, town: om.Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design = tmp_path / "town.json"
    town.save(design)
    report = om.check_packed(packed, town)
    assert report.passed
    assert report.loss == pytest.approx(town.loss, rel=1e-3)
    assert report.lower_bound == town.lower_bound
    assert audit.main([str(packed), str(design)]) == 0
    capsys.readouterr()
    assert main(["check", str(packed), str(design)]) == 0
    assert "segments" in om.load_packed(packed).region
    assert "along it" in om.load_packed(packed).promise.sentence


CHANGES: dict[str, dict[str, Any]] = {
    "a segment with itself": {"segments": [(0, 0)]},
    "a segment twice": {"segments": [(1, 0)]},
    "a segment to nothing": {"segments": [(0, 2**31)]},
    "a length of nothing": {"lengths": 0.0},
    "a length below nothing": {"lengths": -1.0},
    "a length that is no number": {"lengths": math.nan},
    "a vertex of no road": {"vertices": [1.0, 2.0]},
    "half a vertex": {"vertices": [1.0]},
    "no lengths": {"lengths": None},
    "three dimensions": {"dimension": 3},
    "one dimension": {"dimension": 1},
    "a degree": {"degree": 1},
    "another unit": {"unit": "m"},
    "no coordinates": {"coordinates": "globe"},
    "two rows of one end": {"rows": 1},
    "a row too few": {"rows": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_of_other_networks_are_refused(packed: Path, tmp_path: Path, change: str) -> None:
    form, inner, rows, _ = decode(packed.read_bytes()).value
    body = decode(inner)
    mesh = dict(body["mesh"])
    for name, value in CHANGES[change].items():
        content = mesh[name].value if isinstance(mesh.get(name), Tag) else b""
        if name == "segments":
            ends = np.frombuffer(content, "<u4").copy()
            ends[2:4] = value[0]
            mesh[name] = Tag(70, ends.tobytes())
        elif name == "lengths" and value is not None:
            mesh[name] = Tag(86, np.array([value]).astype("<f8").tobytes() + content[8:])
        elif name == "vertices":
            mesh[name] = Tag(86, content + np.array(value).astype("<f8").tobytes())
        elif name == "rows":
            numbers = np.frombuffer(content, "<u4").copy()
            numbers[0] += 1
            mesh[name] = Tag(70, numbers.tobytes() if value else content[:-4])
        else:
            mesh[name] = value
    head = encode(Tag(55799, [form, encode({**body, "mesh": mesh}), rows, bytes(32)]))[:-32]
    altered = tmp_path / "altered.omm"
    altered.write_bytes(head + hashlib.sha256(head).digest())
    with pytest.raises(om.VerificationError):
        om.load_packed(altered)


def test_a_shorter_road_is_another_network(
    packed: Path, town: om.Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can be read, and is not that of the design: to check and to audit."""
    form, inner, rows, _ = decode(packed.read_bytes()).value
    body = decode(inner)
    lengths = np.frombuffer(body["mesh"]["lengths"].value, "<f8").copy()
    lengths[0] *= 0.9
    mesh = {**body["mesh"], "lengths": Tag(86, lengths.tobytes())}
    head = encode(Tag(55799, [form, encode({**body, "mesh": mesh}), rows, bytes(32)]))[:-32]
    altered, design = tmp_path / "altered.omm", tmp_path / "town.json"
    altered.write_bytes(head + hashlib.sha256(head).digest())
    town.save(design)
    assert om.check_packed(altered, town).faults == ("the mesh is not that of the design",)
    assert audit.main([str(altered), str(design)]) == 1
    assert "mesh is not that of the design" in capsys.readouterr().out


def test_what_is_outside_is_refused_or_the_nearest(
    town: om.Design, packed: Path, tmp_path: Path
) -> None:
    """Outside is what lies beyond the least and largest coordinates."""
    refusing = om.pack(town, tmp_path / "refusing.omm")
    nearest = om.load_packed(packed)
    assert isinstance(nearest, om.PackedEverywhere)
    far, between = (12.6, 41.9), (12.4945, 41.8985)
    assert refusing.locate(far) is None
    assert refusing.report(far, bytes(6)) is None
    assert refusing.locate(between) == nearest.locate(between) is not None
    with pytest.raises(om.ProblemError, match="outside"):
        refusing.sample_at(far)
    segment, (_, last) = nearest.locate(far)
    # the end of the road to g
    end = nearest.mesh.segments[segment][int(last > 0)]
    assert nearest.mesh.vertices[end].tolist() == [12.501, 41.9005]
    # around the globe it is the same place
    assert refusing.locate((between[0] - 360, between[1])) == refusing.locate(between)


def test_tables_of_fixes_are_protected(
    town: om.Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    om.pack(town, tmp_path / "town.omm")
    data, out = tmp_path / "fixes.csv", tmp_path / "reports.csv"
    rows = ["12.4811,41.8999", "12.49,41.9", "12.6,41.9"]
    data.write_text("\n".join(["longitude,latitude", *rows]) + "\n")
    run = ["protect", str(tmp_path / "town.omm"), str(data), "-o", str(out)]
    assert main([*run, "--outside", "refuse"]) == 2
    said = capsys.readouterr().err
    assert "12.6" not in said
    assert main([*run, "--outside", "drop"]) == 0
    assert len(out.read_text().split()) == 3
    assert main([*run, "--outside", "nearest"]) == 0
    points = zip(NODES["longitude"], NODES["latitude"], strict=True)
    assert set(out.read_text().split()[1:]) <= {f"{x},{y}" for x, y in points}
    assert len(out.read_text().split()) == 4
    sample = ["sample", str(tmp_path / "town.omm")]
    assert main([*sample, "--at=12.4811,41.8999", "-n", "3", "--json"]) == 0
    capsys.readouterr()
    assert main([*sample, "--at=12.6,41.9"]) == 2
    assert main([*sample, "a"]) == 2
    assert "Give two coordinates" in capsys.readouterr().err


def test_numbers_of_a_line(line: om.Design, tmp_path: Path) -> None:
    """Between ages of one part the row is a mixture; beyond the ends none, or the nearest's."""
    path, other = tmp_path / "line.omm", tmp_path / "nearest.omm"
    found, near = om.pack(line, path, bits=32), om.pack(line, other, bits=32, outside="nearest")
    assert isinstance(found, om.PackedEverywhere)
    rows = np.array(found.rows.rows) / 2.0**32
    for age in (20, 20.3, 23.125, 24.9999, 29.99, 30):
        k = min(int((age - 20) / 0.625), 15)
        share = (age - 20 - 0.625 * k) / 0.625
        own = (1 - share) * rows[k] + share * rows[k + 1]
        assert found.at([age])[0] == pytest.approx(own, abs=2**-23)
        assert found.locate(age) == found.locate([age]) == near.locate(age)
        assert found.sample_at(age) in found.observables.labels
    assert found.locate(19.999) is found.locate(30.001) is None
    assert near.locate(-4) == near.locate(20)
    assert near.locate(1e9)[1] == (0, UNIT)
    assert found.header.snap == pytest.approx(0.625 / UNIT, rel=1e-6)
    assert found.accuracy("about 25") > 0
    with pytest.raises(om.ProblemError, match="no point of a line"):
        found.locate((1.0, 2.0))
    design = tmp_path / "line.json"
    line.save(design)
    assert om.check_packed(path, line).passed
    assert audit.main([str(path), str(design)]) == 0
    assert audit.main([str(other), str(design)]) == 0
    assert main(["sample", str(path), "--at=25.5"]) == 0


def test_differential_privacy_on_a_line(tmp_path: Path) -> None:
    ages, euclidean = om.Mesh.line(0, 4, 4), om.distances.euclidean()
    private = om.DifferentialPrivacy(1, everywhere=ages)
    design = om.solve(om.Problem(om.Prior.uniform(ages.domain), euclidean, constraints=[private]))
    found = om.pack(design, tmp_path / "line.omm", bits=16)
    assert isinstance(found, om.PackedEverywhere)
    at = found.at(np.linspace(0, 4, 41))[:, found._parts.table.columns]
    told = np.log(at.max(axis=0) / at.min(axis=0)).max()
    assert 0.99 < told <= 1
    design.save(tmp_path / "line.json")
    assert om.check_packed(tmp_path / "line.omm", design).passed
    assert audit.main([str(tmp_path / "line.omm"), str(tmp_path / "line.json")]) == 0


def test_reports_repeat_along_the_roads(packed: Path) -> None:
    """Log ratios grow by a tenth at most, and a crossing is one place on all of its roads."""
    file, found = of_file(packed), om.load_packed(packed)
    assert isinstance(found, om.PackedEverywhere)
    sticky = om.StickyReports(found, bytes(32))
    parts = math.ceil(max(file["lengths"]) / (0.1 / EPSILON))
    assert sticky.snap == pytest.approx(max(file["lengths"]) / parts, rel=1e-5)
    assert EPSILON * sticky.snap <= 0.1 * (1 + 1e-5)
    assert found.numbers == len(file["vertices"]) + len(file["segments"]) * (parts - 1)
    for position in places(file, 80, 6):
        segment, share, _ = matched(file, position)
        if abs(share * parts % 1 - 0.5) < 1e-6:
            continue
        step = round(share * parts)
        number = len(file["vertices"]) + segment * (parts - 1) + step - 1
        if step in (0, parts):
            number = file["segments"][segment][step // parts]
        assert found.number(position) == number
        report = sticky.report(position, time=0)
        assert report == sticky.report(position, time=80_000)
        # drawn at the point of the lattice
        ends = file["row of"][segment]
        rows = [file["rows"][row] for row in ends]
        drawn = random.Random(number).randbytes(6)
        last = step * UNIT // parts
        row = rows[int(int.from_bytes(drawn[:3], "little") >= UNIT - last)]
        column = sum(sum(row[: k + 1]) <= int.from_bytes(drawn[3:], "little")
                     for k in range(len(row)))  # fmt: skip
        own = found.observables.labels[file["columns"][column]]
        assert found.report_of(number, drawn) == own
    ledger = om.Ledger(found, None, 0.5)
    ledger.enter((12.4811, 41.8999))
    # a radius along the roads
    assert ledger.plain == pytest.approx(EPSILON * 0.5, rel=1e-5)
    assert json.loads(json.dumps(ledger.to_dict()))


def test_other_languages_draw_the_same_on_a_line(line: om.Design, tmp_path: Path) -> None:
    """Of roads the conformance vectors have it; numbers of lines stand here."""
    path, rng = tmp_path / "line.omm", random.Random(3)
    found = om.pack(line, path, bits=24)
    assert isinstance(found, om.PackedEverywhere)
    ages = [20.0, 30.0, 20.625, -0.0, *(rng.uniform(19.5, 30.5) for _ in range(60))]
    number = {label: k for k, label in enumerate(found.observables.labels)} | {None: -1}
    asked = [[age, rng.randbytes(6).hex()] for age in ages]
    own = []
    for age, drawn in asked:
        cell, point = found.locate(age), found.number(age)
        own.append([
            None if cell is None else [cell[0], *cell[1]],
            number[found.report(age, bytes.fromhex(drawn))],
            -1 if point is None else point,
        ])  # fmt: skip
    node = shutil.which("node")
    if node is not None:
        script = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ load }} from {json.dumps((CLIENT / "index.js").as_uri())};
        const found = await load(readFileSync({json.dumps(str(path))}));
        const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
        console.log(JSON.stringify({json.dumps(asked)}.map(([age, drawn]) => {{
          const place = found.locate([age]);
          return [place === null ? null : [place.triangle, ...place.weights],
            found.draw([age], bytes(drawn)), found.number([age]) ?? -1];
        }})));"""
        run = subprocess.run(
            [node, "--input-type=module", "-e", script], capture_output=True, check=True
        )
        assert json.loads(run.stdout) == own
    if native.compiler() is not None:
        reader = native.Native(native.built(tmp_path))
        assert reader.open(path) is not None
        told = [[*reader.at([age, 0.0], bytes.fromhex(drawn)), reader.locate([age, 0.0])]
                for age, drawn in asked]  # fmt: skip
        assert told == own
        reader.close()
