"""What packed files say and who may read them: the four readers agree, entry by entry, and what is
said of positions holds of dense pairs of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import optmech_audit as audit
import pytest
from conformance import problems
from optmech_devices.packed.cbor import Tag, decode, typed
from optmech_devices.packed.sentences import NOT_CHECKED
from packed import native, readers
from packed.test_client import CLIENT
from packed.test_packed_everywhere import resealed
from plainly import plainly

import optmech as om
from optmech.errors import OptmechError
from optmech.spaces.domain import great_circle
from optmech.spaces.mesh.elements import basis
from optmech.spaces.observables import quadrisect
from optmech.spaces.sphere import nearest, sines


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, readers.Source]:
    return {s.name: s for s in readers.sources(tmp_path_factory.mktemp("sources"))}


# -- entry by entry ------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Everything that a header says."""
    yield path, value
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value[:2])
        for name, part in items:
            yield from leaves(part, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    out = dict(value) if isinstance(value, dict) else list(value)
    out[path[0]] = replaced(value[path[0]], path[1:], new)
    return out


def others(value: Any) -> list[Any]:
    """What might stand there instead, and be read."""
    if isinstance(value, str):
        near = {"lonlat": "plane", "plane": "lonlat", "refuse": "nearest", "nearest": "refuse"}
        return [near.get(value, "m" if value == "km" else value + "!"), ""]
    if isinstance(value, bool | None):
        return ["2026-10", 1.0]
    if isinstance(value, int):
        return [value + 1, float(value)]
    if isinstance(value, float):
        return [value * 1.001 + 1e-6, value * 1e3, None, -value]
    if isinstance(value, Tag):
        numbers = np.frombuffer(value.value, readers_type(value.tag))
        moved = numbers.copy()
        moved[-1] = moved[-1] * 1.001 if value.tag == 86 else max(int(moved[-1]) - 1, 0)
        back = numbers[::-1]
        differs = not np.allclose(back, numbers, rtol=1e-9, atol=0)
        return [typed(part, value.tag) for part in (moved, *[back] * differs)]
    if isinstance(value, list):
        return [value[:-1], [*value, *value[:1]]]
    return []


def readers_type(tag: int) -> str:
    return {70: "<u4", 71: "<u8", 86: "<f8"}[tag]


@pytest.mark.parametrize(
    "name", ["grid", "plane", "points", "hexagons", "labels", "line", "globe", "field"]
)
def test_check_and_audit_refuse_whatever_else_a_header_says(
    name: str, known: dict[str, readers.Source], tmp_path: Path
) -> None:
    source, path = known[name], tmp_path / "m.omm"
    header = decode(decode(source.content).value[1])
    passed = set()
    for where, value in leaves(header):
        for new in others(value):
            if where == () or new == value:
                continue
            changed = replaced(header, where, new)
            path.write_bytes(resealed(source.content, lambda h, c=changed: h.update(c)))
            if decode(decode(path.read_bytes()).value[1]) == header:
                continue
            try:
                ok = om.devices.check_packed(path, source.design).passed
            except OptmechError:
                ok = False
            try:
                audit.judge(str(path), str(source.path))
                proved = True
            except audit.Fault:
                proved = False
            assert ok == proved, (where, new)
            passed |= {where} if ok else set()
    own = {("title",), ("prior", "date"), ("outside",)}
    assert passed <= own
    assert ("title",) in passed


def test_what_is_not_checked_is_named_by_both(known: dict[str, readers.Source]) -> None:
    source = known["grid"]
    (line,) = om.devices.check_packed(source.path.with_suffix(".omm"), source.design).notes
    _, unchecked = audit.judge(str(source.path.with_suffix(".omm")), str(source.path))
    for name in NOT_CHECKED:
        assert name in line
        assert name in unchecked


def test_a_header_in_another_form_is_refused(
    known: dict[str, readers.Source], tmp_path: Path
) -> None:
    """Keys in another order, and a float longer than need be: the same values."""
    source, path = known["grid"], tmp_path / "m.omm"
    form, inner, rows, _ = decode(source.content).value
    header = decode(inner)
    pairs = [readers.encode(name) + readers.encode(value) for name, value in header.items()]
    backwards = inner[:1] + b"".join(reversed(pairs))
    short = readers.encode(0.95)
    longer = inner.replace(readers.encode("reach") + b"\xf6", readers.encode("reach") + b"\xf8\x16")
    assert short in inner
    for other in (backwards, longer):
        assert other != inner
        path.write_bytes(readers.sealed(form, other, rows))
        with pytest.raises(om.VerificationError):
            om.devices.load_packed(path)
        with pytest.raises(audit.Fault):
            audit.judge(str(path), str(source.path))


MANY = 2**20
UNITS = ("80", "a0", "00", "6161", "4178", "c600", "8180", "f5", "f90000")
"""Lists, maps, numbers, texts, bytes, tags, lists in lists, truth values and floats."""


def heavy(unit: str, count: int, path: Path) -> Path:
    """A file with a good digest whose header is one list of so many units."""
    inner = b"\x9a" + count.to_bytes(4, "big") + bytes.fromhex(unit) * count
    path.write_bytes(readers.sealed("optmech-packed/4", inner, b""))
    return path


def test_headers_of_a_million_items_are_refused_by_name(tmp_path: Path, node: str) -> None:
    """In JavaScript and in C, as in Python and the audit (``test_cbor.py``). A list of 2^20 - 1
    items is 2^20 of them and is refused for what it is; one more for its length."""
    script = f"""
        import {{ load }} from {json.dumps((CLIENT / "index.js").as_uri())};
        import {{ decode }} from {json.dumps((CLIENT / "cbor.js").as_uri())};
        import {{ readFileSync }} from "node:fs";
        const said = [];
        for (const path of process.argv.slice(1)) {{
          try {{ said.push(String(await load(readFileSync(path)))); }}
          catch (error) {{ said.push(error.message); }}
        }}
        console.log(JSON.stringify(said));
        const most = new Uint8Array({MANY} + 4);
        most.set([0x9a, 0x00, 0x0f, 0xff, 0xff]);
        console.log(decode(most).length);
    """
    files = [heavy(unit, MANY, tmp_path / unit) for unit in UNITS]
    fits = heavy("00", MANY - 1, tmp_path / "fits")
    command = [node, "--input-type=module", "-e", script, *map(str, [*files, fits])]
    found = subprocess.run(command, capture_output=True, check=True, text=True)
    said, length = map(json.loads, found.stdout.splitlines())
    assert length == MANY - 1
    assert all("1,048,576 items" in words for words in said[:-1])
    assert "items" not in said[-1]


@pytest.mark.skipif(native.compiler() is None, reason="no compiler of C")
def test_headers_of_a_million_items_are_refused_in_c(tmp_path: Path) -> None:
    reader = native.Native(native.built(tmp_path))
    for unit in UNITS:
        assert "1,048,576 items" in reader.ask("open", heavy(unit, MANY, tmp_path / "m"), 0)
    fits = reader.ask("open", heavy("00", MANY - 1, tmp_path / "m"), 0)
    assert "header" in fits
    assert "items" not in fits
    reader.close()


TIGHT = ("divergence_tv", "unbiased_line")
"""Problems whose inequalities leave no room for 48 bits."""


@pytest.mark.parametrize(
    "make",
    [make for make in problems.KINDS if make.__name__ not in TIGHT],
    ids=lambda make: make.__name__,
)
def test_promises_of_every_kind_are_made_by_both(make: problems.Make, tmp_path: Path) -> None:
    """From a design in memory, its file, and by the audit's own code."""
    design = om.solve(make(np.random.default_rng(3)))
    path, own = tmp_path / "m.omm", tmp_path / "m.json"
    om.pack(design, path, bits=48, max_loss=10)
    design.save(own)
    for stated in (design, om.Design.load(own)):
        assert om.devices.check_packed(path, stated).faults == ()
    audit.judge(str(path), str(own))


def test_altered_files_are_one_to_all_readers() -> None:
    if shutil.which("node") is None:
        pytest.skip("no Node")
    count = readers.run(50, seed=11)
    assert count.wrong == []
    assert count.seen["read"] > 5


# -- positions -----------------------------------------------------------------------------------


BOX = (0.0, 60.0, 4.0, 62.0)
BANDS = ((60, 62), (61.9, 62), (62, 62.01), (62.5, 62.6), (64, 64.1), (70, 70.1), (89.9, 90))


def test_what_is_said_of_positions_holds_of_dense_pairs(known: dict[str, readers.Source]) -> None:
    """Pairs on one parallel in and north of a region, beside the far meridian and at a pole."""
    found = om.devices.load_packed(known["north"].path.with_suffix(".omm"))
    said = found.against
    assert "of the region is moved, by at most snap" in said[-3]
    assert "counts as the nearest point of its border" in said[-2]
    assert "may have nearest points that are far apart" in said[-1]
    epsilon, snap = found.header.promises[0].epsilon, found.header.snap
    rng, torn = np.random.default_rng(1), 0
    for low, high in BANDS:
        y = rng.uniform(low, high, 200)
        sides = [np.column_stack([rng.uniform(-0.5, 4.5, 200), y]) for _ in range(2)]
        sides[0][0], sides[1][0] = (181.9999999, -10.0), (182.0000001, -10.0)
        (p, a), (q, b) = (judged(found, side) for side in sides)
        ratio = np.abs(np.log(p / q)).max(axis=1)
        assert (ratio <= epsilon * great_circle(a, b) * (1 + 1e-9) + 1e-12).all()
        apart = great_circle(*sides)
        held = within(sides[0]) & within(sides[1])
        assert (ratio[held] <= epsilon * (apart + 2 * snap)[held]).all()
        torn += int((ratio > epsilon * (apart + 2 * snap)).sum())
    # said of all positions, the sentence about those of the region would be false
    assert torn > 100


def within(points: np.ndarray) -> np.ndarray:
    return ((points >= BOX[:2]) & (points <= BOX[2:])).all(axis=1)


def judged(found: om.devices.PackedEverywhere, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities at positions, and where these are moved to: by snap at most in the region, and
    to a nearest point of its border from outside."""
    own = [found.locate(p) for p in points.tolist()]
    shares = np.array([w for _, w in own]) / 2**24
    triangles = [t for t, _ in own]
    rows = found.rows.matrix[found.mesh.control[triangles]]
    moved = np.einsum("nk,nkd->nd", shares, found.mesh.vertices[found.mesh.triangles[triangles]])
    away, snap = great_circle(points, moved), found.header.snap
    inside = within(points)
    assert (away[inside] <= snap).all()
    t = np.linspace(0, 1, 1001)[:, None]
    corners = np.array([BOX[:2], (BOX[2], BOX[1]), BOX[2:], (BOX[0], BOX[3])])
    border = np.vstack(
        [a + t * (b - a) for a, b in zip(corners, np.roll(corners, -1, 0), strict=True)]
    )
    least = great_circle(points[~inside][:, None], border).min(axis=1)
    # chords of a sixteenth of a degree
    assert (away[~inside] <= least + 0.01 + snap).all()
    return np.einsum("nk,nko->no", basis(shares, found.mesh.degree), rows), moved


def test_sentences_follow_what_is_done_outside(
    known: dict[str, readers.Source], tmp_path: Path
) -> None:
    for name in ("grid", "points", "line", "field", "globe"):
        said = {}
        for outside in ("refuse", "nearest"):
            path = tmp_path / f"{name}.omm"
            found = om.pack(known[name].design, path, bits=48, max_loss=1, outside=outside)
            said[outside] = " ".join(found.against)
        assert "no report is made" in said["refuse"]
        assert "no report is made" not in said["nearest"]
        assert "counts as the nearest" in said["nearest"]
    labels = om.devices.load_packed(known["labels"].path.with_suffix(".omm"))
    assert not any("position lay" in text for text in labels.against)


def test_over_180_degrees_protect_and_packed_files_go_the_short_way(tmp_path: Path) -> None:
    euclidean, haversine = om.distances.euclidean(), om.distances.haversine()
    grid = om.Grid.geographic(2, 4, (178.0, 10.0, 180.0, 11.0))
    telling = om.Mechanism(grid, grid, np.eye(8))
    with pytest.warns(UserWarning, match="outside"):
        moved = plainly(telling, np.array([[-179.99, 10.2], [177.0, 12.0]]), outside="nearest")
    assert moved.tolist() == [[179.75, 10.25], [178.25, 10.75]]
    private = om.MetricPrivacy(0.2, euclidean)
    design = om.solve(om.Problem(om.Prior.uniform(grid), euclidean, constraints=[private]))
    packed = om.pack(design, tmp_path / "g.omm", bits=48, max_loss=1, outside="nearest")
    assert packed.locate((-179.99, 10.2)) == (0, 3)
    assert packed.locate((-180.0, 10.2)) == packed.locate((540.0, 10.2)) == (0, 3)
    # the same places, written the other way around the globe
    assert grid.locate([[-181.5, 10.2], [178.5, 10.2]]).tolist() == [0 + 1, 0 + 1]
    # regions of a grid that ends beyond 180 degrees, and points outside of them
    wide = om.Grid.geographic(2, 2, (178.0, 10.0, 182.0, 12.0))
    parts = quadrisect(wide, [[-178.5, 11.5], [-178.6, 11.6], [178.5, 10.5]], 7)
    assert (parts.locate([[-178.5, 11.5], [181.5, 11.5]]) == parts.locate([[-538.5, 11.5]])).all()
    inside = parts.nearest(np.array([[-177.0, 11.5], [177.0, 11.5], [181.0, 11.0]]))
    assert inside[:, 0] == pytest.approx([182, 178, 181], abs=1e-7)
    mesh = om.Mesh.grid((178, 10, 180, 11), 60, coordinates="lonlat")
    places = om.Domain.geographic("abcd", [[178, 10], [180, 10], [178, 11], [180, 11]])
    everywhere = om.MetricPrivacy(2, haversine, everywhere=mesh)
    design = om.solve(om.Problem(om.Prior.uniform(places), haversine, constraints=[everywhere]))
    with pytest.warns(UserWarning, match="outside"):
        moved = plainly(design, np.array([[-179.99, 10.0]] * 50), outside="nearest")
    assert (moved[:, 0] == 180).mean() > 0.9
    packed = om.pack(design, tmp_path / "m.omm", bits=48, max_loss=1, outside="nearest")
    triangle, weights = packed.locate((-179.99, 10.2))
    corners = mesh.vertices[mesh.triangles[triangle]]
    assert np.array(weights) / 2**24 @ corners == pytest.approx([180, 10.2], abs=1e-5)


def test_sines_are_those_of_the_paper() -> None:
    """Against 40 digits; exactly at quarters."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-720, 720, 2000), rng.uniform(0, 1e-300, 3), [2.0**100]])
    s, c = sines(x)
    with mpmath.workdps(60):
        for value, sine, cosine in zip(x.tolist(), s.tolist(), c.tolist(), strict=True):
            angle = mpmath.mpf(value) * mpmath.pi / 180
            assert abs(mpmath.sin(angle) - sine) <= 2**-51 * abs(mpmath.sin(angle)) + 2**-1060
            assert abs(mpmath.cos(angle) - cosine) <= 2**-51 * abs(mpmath.cos(angle)) + 2**-1060
    s, c = sines(np.arange(-720.0, 721, 90))
    assert set(s.tolist()) == set(c.tolist()) == {0.0, 1.0, -1.0}


@pytest.mark.parametrize("count", [30, 1500])
def test_the_first_of_equally_near_places_counts(count: int) -> None:
    """Few places are all looked at, many by a tree: half-way points of a lattice, and twins."""
    side = np.arange(count) % 30
    places = np.column_stack([side, np.arange(count) // 30]).astype(float)
    places = np.vstack([places, places])
    points = np.array([[x + 0.5, 0.0] for x in range(29)] * 30 + [[3.0, 0.0]])
    index, apart = nearest(places, points)
    assert index.tolist() == [*range(29)] * 30 + [3]
    assert apart.tolist() == [0.25] * 870 + [0.0]


def test_positions_and_places_too_far_for_squares_are_nowhere_or_somewhere() -> None:
    """No error, and no index that there is not."""
    domain = om.Domain(range(2000), np.linspace(-1e200, 1e200, 4000).reshape(-1, 2))
    found = domain.locate([[1e200, 0.0], [1e300, 1e308], [3.0, np.inf]] + [[0.0, 0.0]] * 600)
    assert found[:3].tolist() == [-1, -1, -1]
    assert (found[3:] < 2000).all()


# -- limits --------------------------------------------------------------------------------------


def test_reading_takes_memory_for_rows_and_not_for_a_matrix(
    known: dict[str, readers.Source], tmp_path: Path
) -> None:
    """20,000 places with one row: as a matrix 3.2 GB of machine words."""
    form, inner, _, _ = decode(known["labels"].content).value
    n = 20_000
    header = {
        **decode(inner),
        "secrets": {"kind": "labels", "labels": list(range(n)), "unit": ""},
        "reports": None,
        "columns": typed([5], 70),
        "row of": typed([0] * n, 70),
        "width": 3,
    }
    path = tmp_path / "m.omm"
    row = (1 << 16).to_bytes(3, "little")
    path.write_bytes(readers.sealed(form, readers.encode(header), row))
    # what is imported for that counts elsewhere
    om.devices.load_packed(known["labels"].path.with_suffix(".omm")).draws([0])
    tracemalloc.start()
    found = om.devices.load_packed(path)
    assert found.sample(7) == found.report(9, b"ab") == 5
    assert found.sample(7, 3) == [5, 5, 5]
    assert found.draws([1, 2]).tolist() == [5, 5]
    assert f"{n} labels" in repr(found)
    assert f"{n} labels" in found._repr_html_()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the longest file that is read takes 64 MiB
    assert peak < 100e6


def test_draws_are_those_of_the_matrix(known: dict[str, readers.Source]) -> None:
    """Columns that no report has are left out of what is drawn from."""
    for name in ("grid", "points", "plane"):
        found = om.devices.load_packed(known[name].path.with_suffix(".omm"))
        whole = om.Mechanism.of(found.secrets, found.observables, found.exact)
        for secret in found.secrets.labels[:4]:
            assert found.sample(secret, 50, seed=3) == whole.sample(secret, 50, seed=3)
        content = np.random.default_rng(4).bytes(8 * len(found.secrets))
        indices = np.arange(len(found.secrets))
        own, other = (m.draws(indices, lambda *_, content=content: content) for m in (found, whole))
        assert own.tolist() == other.tolist()


@pytest.mark.parametrize("date", ["2020-13", "2020-13-45", "2020-00-10", "2021-02-29", "20201301"])
def test_a_date_that_there_was_not_is_not_written(
    date: str, known: dict[str, readers.Source], tmp_path: Path
) -> None:
    with pytest.raises(om.ProblemError, match="no date"):
        om.pack(known["line"].design, tmp_path / "m.omm", prior_date=date)
