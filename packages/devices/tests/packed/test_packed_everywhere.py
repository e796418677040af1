"""Packed mechanisms for every point: what is kept, what a draw is, what is refused."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from optmech_devices.packed import packing
from optmech_devices.packed.cbor import Tag, decode, encode
from packed.test_packed import mutated

import optmech as om
from optmech.cli.main import main

UNIT = 2**24


@pytest.fixture(scope="module")
def square() -> om.Design:
    """A square of 3 x 3 units, degree 2, of a uniform prior on 16 places."""
    places = om.Domain(range(16), [[x, y] for x in range(4) for y in range(4)], "km")
    euclidean = om.distances.euclidean()
    mesh = om.Mesh.grid([0, 0, 3, 3], "3/2", unit="km", degree=2)
    private = om.MetricPrivacy("4/5", euclidean, everywhere=mesh)
    return om.solve(om.Problem(om.Prior.uniform(places), euclidean, constraints=[private]))


@pytest.fixture(scope="module")
def city() -> om.Design:
    """Degrees around 180 degrees east, degree 3, ε = 0.1 per km."""
    rng = np.random.default_rng(4)
    points = rng.uniform((179.6, 47.1), (180.3, 47.6), (7, 2))
    places = om.Domain([f"p{k}" for k in range(7)], points, coordinates="lonlat")
    haversine = om.distances.haversine()
    mesh = om.Mesh.grid([179.5, 47.0, 180.4, 47.7], 40, coordinates="lonlat", degree=3)
    private = om.MetricPrivacy("1/10", haversine, everywhere=mesh)
    return om.solve(om.Problem(om.Prior.uniform(places), haversine, constraints=[private]))


@pytest.fixture(scope="module")
def packed(square: om.Design, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "square.omm"
    om.pack(square, path, bits=16, prior_date="2026-10")
    return path


def bernstein(weights: list[Fraction], degree: int) -> dict[tuple[int, ...], Fraction]:
    """Σ over all sequences of corners: what B_α is, without its formula."""
    out: Counter[tuple[int, ...]] = Counter()
    for corners in product(range(3), repeat=degree):
        alpha = tuple(corners.count(k) for k in range(3))
        out[alpha] += math.prod((weights[c] for c in corners), start=Fraction(1))
    return dict(out)


@pytest.mark.parametrize("bits", [16, 24, 32, 48])
@pytest.mark.parametrize("name", ["square", "city"])
def test_every_inequality_of_the_mesh_is_kept(
    name: str, bits: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    design = request.getfixturevalue(name)
    found = om.pack(design, tmp_path / "m.omm", bits=bits, max_loss="1%")
    report = om.check_packed(tmp_path / "m.omm", design)
    assert report.passed, report.faults
    design.save(tmp_path / "m.json")
    audit.judge(str(tmp_path / "m.omm"), str(tmp_path / "m.json"))
    whole = found.rows.matrix * 2.0**bits
    assert (whole == np.round(whole)).all()
    assert (whole.sum(axis=1) == 2.0**bits).all()
    # the mechanism's own log ratios at pairs of points, exactly, which share no code with the check
    rng = np.random.default_rng(bits)
    low, high = design.mesh.vertices.min(axis=0), design.mesh.vertices.max(axis=0)
    points = rng.uniform(low, high, (25, 2))
    rows = [[float(p) for p in found.exactly_at(point)] for point in points.tolist()]
    epsilon, distance = (0.8, om.distances.euclidean()) if name == "square" else (0.1, None)
    for (x, p), (y, q) in product(list(zip(points, rows, strict=True)), repeat=2):
        apart = float(np.hypot(*(x - y)))
        if distance is None:
            a, b = np.radians(x), np.radians(y)
            half = np.sin((a[1] - b[1]) / 2) ** 2
            half += np.cos(a[1]) * np.cos(b[1]) * np.sin((a[0] - b[0]) / 2) ** 2
            apart = 2 * 6371.0088 * math.asin(math.sqrt(half))
        most = math.exp(epsilon * (apart + 2 * found.header.snap)) * (1 + 1e-12)
        assert all(one <= most * other for one, other in zip(p, q, strict=True))


def test_the_loss_is_stated_and_limited(square: om.Design, tmp_path: Path) -> None:
    found = om.pack(square, tmp_path / "m.omm", bits=16)
    points = square.problem.secrets.points
    expected = (found.at(points) * square.problem.loss_matrix).sum() / 16
    assert found.header.loss.packed == pytest.approx(expected, rel=1e-6)
    assert found.header.loss.increase == pytest.approx(
        found.header.loss.packed / square.loss - 1, rel=1e-9
    )
    assert found.header.loss.increase < 0.002
    with pytest.raises(om.ProblemError, match=r"24 bits cost .*Give more bits"):
        om.pack(square, tmp_path / "less.omm", bits=16, max_loss=1e-5)
    assert not (tmp_path / "less.omm").exists()


def test_positions_are_moved_by_less_than_is_stated(
    city: om.Design, packed: Path, tmp_path: Path
) -> None:
    """Exactly, in the plane and in degrees; corners, edges and points beside these included."""
    for found in (om.load_packed(packed), om.pack(city, tmp_path / "m.omm")):
        mesh = found.mesh
        rng = np.random.default_rng(6)
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        corners = mesh.vertices[mesh.triangles]
        edges = (corners + corners[:, (1, 2, 0)]).reshape(-1, 2) / 2
        beside = np.clip(np.nextafter(edges, rng.uniform(low, high, edges.shape)), low, high)
        points = np.vstack([rng.uniform(low, high, (300, 2)), mesh.vertices, edges, beside])
        for point in points.tolist():
            triangle, weights = found.locate(point)
            assert sum(weights) == UNIT
            assert min(weights) >= 0
            own = [list(map(Fraction, mesh.vertices[k])) for k in mesh.triangles[triangle]]
            moved = [
                sum(Fraction(n, UNIT) * v[axis] for n, v in zip(weights, own, strict=True))
                for axis in (0, 1)
            ]
            apart = math.hypot(*(float(a - Fraction(b)) for a, b in zip(moved, point, strict=True)))
            if mesh.coordinates == "lonlat":
                apart *= math.pi / 180 * 6371.0088
            assert apart <= found.header.snap
        assert found.header.snap < 0.02


def test_all_bytes_of_a_draw_give_the_exact_probabilities(packed: Path) -> None:
    """Corners by their weights, α by Bernstein's polynomial, and the row by its numbers."""
    found = om.load_packed(packed)
    place = found.locate((0.7, 1.1))
    assert place is not None
    triangle, weights = place
    every = np.arange(2**16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    # both ends of every corner's numbers stand for all between
    first, second = weights[0], weights[0] + weights[1]
    ends = [(0, first - 1), (first, second - 1), (second, UNIT - 1)]
    seen = Counter[object]()
    for one, other in product(range(3), repeat=2):
        counts = []
        for a, b in zip(ends[one], ends[other], strict=True):
            head = np.frombuffer(a.to_bytes(3, "little") + b.to_bytes(3, "little"), np.uint8)
            drawn = found.reports(place, np.hstack([np.tile(head, (2**16, 1)), every]))
            counts.append(Counter(drawn))
        assert all(count == counts[0] for count in counts)
        for label, count in counts[0].items():
            seen[label] += Fraction(weights[one] * weights[other] * count, UNIT**2 * 2**16)
    expected = Counter[object]()
    order = [(2 - j - k, j, k) for k in range(3) for j in range(3 - k)]
    shares = bernstein([Fraction(n, UNIT) for n in weights], 2)
    for alpha, number in zip(order, found.mesh.control[triangle], strict=True):
        for label, p in zip(found.observables.labels, found.rows.matrix[number], strict=True):
            if p:
                expected[label] += shares[alpha] * Fraction(p)
    assert seen == expected
    exact = found.exactly_at((0.7, 1.1))
    assert {o: p for o, p in zip(found.observables.labels, exact, strict=True) if p} == expected


def test_positions_outside(square: om.Design, tmp_path: Path) -> None:
    refusing = om.pack(square, tmp_path / "r.omm")
    assert refusing.locate((3.0001, 1)) is None
    assert refusing.report((-1, 1), bytes(refusing.draw_bytes)) is None
    with pytest.raises(om.ProblemError, match="outside of the region"):
        refusing.sample_at((-1, 1))
    nearest = om.pack(square, tmp_path / "n.omm", outside="nearest")
    rng = np.random.default_rng(8)
    for x, y in rng.uniform(-4, 7, (200, 2)).tolist():
        # of a square the nearest point is known
        foot = min(max(x, 0.0), 3.0), min(max(y, 0.0), 3.0)
        expected = [float(p) for p in nearest.exactly_at(foot)]
        assert [float(p) for p in nearest.exactly_at((x, y))] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(om.ProblemError, match="too large"):
        nearest.locate((10**400, 0))
    for wrong in ((math.nan, 1), (math.inf, 1), ("a", 1), (1, 2, 3)):
        with pytest.raises(om.ProblemError):
            nearest.locate(wrong)


def test_longitudes_are_the_same_a_turn_away(city: om.Design, tmp_path: Path) -> None:
    found = om.pack(city, tmp_path / "m.omm")
    for x, y in ((180.25, 47.25), (179.75, 47.5)):
        assert found.locate((x, y)) == found.locate((x - 360, y))


def test_others_of_the_same_interface_agree(packed: Path) -> None:
    """Tables of points and single draws from the same bytes; probabilities of many draws."""
    found = om.load_packed(packed)
    points = np.random.default_rng(3).uniform(0, 3, (50, 2))
    content = random.Random(2).randbytes(50 * found.draw_bytes)
    drawn = found.draws_at(points, lambda which, size, attempt: content)
    for k, point in enumerate(points.tolist()):
        part = content[k * found.draw_bytes : (k + 1) * found.draw_bytes]
        assert found.observables.labels[drawn[k]] == found.report(point, part)
    assert found.at(points)[7] == pytest.approx([float(p) for p in found.exactly_at(points[7])])
    counts = Counter(found.sample_at((1.3, 2.2), 20_000, seed=1))
    share = [float(p) for p in found.exactly_at((1.3, 2.2))]
    statistic = sum(
        (counts[label] - 20_000 * p) ** 2 / (20_000 * p)
        for label, p in zip(found.observables.labels, share, strict=True)
        if p
    )
    assert statistic < 45  # fifteen degrees: one in 13,000 of such draws is above


def test_check_finds_what_is_not_of_the_design(
    packed: Path, square: om.Design, city: om.Design, tmp_path: Path
) -> None:
    report = om.check_packed(packed, city)
    assert "the mesh is not that of the design" in report.faults
    table = Path(__file__).parent / "vectors" / "line.omm"
    assert any("about places" in fault for fault in om.check_packed(table, square).faults)
    city.save(tmp_path / "c.json")
    with pytest.raises(audit.Fault):
        audit.judge(str(packed), str(tmp_path / "c.json"))
    with pytest.raises(audit.Fault, match="another kind"):
        audit.judge(str(table), str(tmp_path / "c.json"))


def resealed(content: bytes, change: Callable[[dict], None], rows: bytes | None = None) -> bytes:
    """With another header and a digest that fits."""
    form, inner, own, _ = decode(content).value
    header = decode(inner)
    change(header)
    body = Tag(55799, [form, encode(header), own if rows is None else rows, bytes(32)])
    head = encode(body)[:-32]
    return head + hashlib.sha256(head).digest()


def _moved_vertex(header: dict) -> None:
    points = np.frombuffer(header["mesh"]["vertices"].value, "<f8").copy()
    points[8] += 1e-9
    header["mesh"]["vertices"] = Tag(86, points.tobytes())


def _swapped_rows(header: dict) -> None:
    rows = np.frombuffer(header["mesh"]["rows"].value, "<u4")
    header["mesh"]["rows"] = Tag(70, (rows.max() - rows).astype("<u4").tobytes())


def _less_moved(header: dict) -> None:
    header["snap"] /= 2


def _lower_epsilon(header: dict) -> None:
    header["promises"] = [{**part, "epsilon": 0.1} for part in header["promises"]]


@pytest.mark.parametrize("forge", [_moved_vertex, _swapped_rows, _less_moved, _lower_epsilon])
def test_forged_files_do_not_pass(
    packed: Path, square: om.Design, tmp_path: Path, forge: Callable[[dict], None]
) -> None:
    path = tmp_path / "forged.omm"
    path.write_bytes(resealed(packed.read_bytes(), forge))
    square.save(tmp_path / "d.json")
    assert not om.check_packed(path, square).passed
    with pytest.raises(audit.Fault):
        audit.judge(str(path), str(tmp_path / "d.json"))


def _torn(header: dict) -> None:
    rows = np.frombuffer(header["mesh"]["rows"].value, "<u4").copy()
    rows[0] = (rows[0] + 1) % (rows.max() + 1)
    header["mesh"]["rows"] = Tag(70, rows.tobytes())


def _clockwise(header: dict) -> None:
    corners = np.frombuffer(header["mesh"]["triangles"].value, "<u4").reshape(-1, 3)
    header["mesh"]["triangles"] = Tag(70, corners[:, (0, 2, 1)].tobytes())


def _overlapping(header: dict) -> None:
    points = np.frombuffer(header["mesh"]["vertices"].value, "<f8").copy()
    points[:2] = 1.0, 1.2
    header["mesh"]["vertices"] = Tag(86, points.tobytes())


@pytest.mark.parametrize(
    "forge",
    [
        _torn,
        _clockwise,
        _overlapping,
        lambda header: header.update(kind="cube"),
        lambda header: header.update(snap=-1.0),
        lambda header: header.update(snap=None),
        lambda header: header["mesh"].update(degree=3),
        lambda header: header["mesh"].update(degree=10**6),
        lambda header: header["mesh"].update(aspect=0.5),
        lambda header: header["mesh"].update(unit=1),
        lambda header: header["mesh"].update(coordinates="globe"),
        lambda header: header["mesh"].update(triangles=Tag(70, bytes(12))),
        lambda header: header["mesh"].update(vertices=Tag(86, bytes(8))),
        lambda header: header["mesh"].update(rows=Tag(70, bytes(4))),
        lambda header: header.update(reports=None),
        lambda header: header.pop("mesh"),
        lambda header: header.update(reach=None),
    ],
)
def test_files_that_are_none_are_refused(
    packed: Path, tmp_path: Path, forge: Callable[[dict], None]
) -> None:
    path = tmp_path / "bad.omm"
    path.write_bytes(resealed(packed.read_bytes(), forge))
    with pytest.raises(om.VerificationError):
        om.load_packed(path)


def test_mutated_files_are_refused(packed: Path, square: om.Design, tmp_path: Path) -> None:
    content, original = packed.read_bytes(), om.load_packed(packed)
    path, rng = tmp_path / "m.omm", random.Random(17)
    for _ in range(150):
        changed = mutated(content, rng)
        if changed == content:
            continue
        path.write_bytes(changed)
        try:
            found = om.load_packed(path)
        except om.VerificationError:
            continue
        assert changed[-32:] == hashlib.sha256(changed[:-32]).digest()
        same = found.mesh == original.mesh and found.rows.rows == original.rows.rows
        assert same or not om.check_packed(path, square).passed


def test_the_command_line(
    square: om.Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design, city = str(tmp_path / "d.json"), str(tmp_path / "c.omm")
    square.save(design)
    assert main(["pack", design, "-o", city, "--bits", "24", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["control_points"] == square.mesh.rows
    assert main(["check", city, design]) == 0
    capsys.readouterr()
    assert main(["sample", city, "--at", "1.25,3/2", "-n", "4"]) == 0
    assert len(capsys.readouterr().out.split()) == 4
    grid = str(Path(__file__).parent / "vectors" / "grid.omm")
    assert main(["sample", grid, "--at", "16.3751,48.2001", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["secret"] == [2, 2]
    for arguments, said_then in (
        (["sample", city, "--at", "9,9"], "outside of the region"),
        (["sample", city, "--at=1e400,1"], "too large"),
        (["sample", grid, "--at=1e400,1"], "too large"),
        (["sample", grid, "--at=0,0"], "outside of the region"),
        (["sample", city], "a secret, or a position"),
        (["sample", grid, "2,2", "--at=0,0"], "not both"),
        (["measure", city], "is a packed mechanism"),
    ):
        assert main(arguments) != 0
        assert said_then in capsys.readouterr().err, arguments


def test_triangles_too_thin_for_floats_are_refused(tmp_path: Path) -> None:
    places = om.Domain(range(2), [[0.1, 1e-9], [0.9, 1e-9]])
    euclidean = om.distances.euclidean()
    mesh = om.Mesh([[0, 0], [1, 0], [1, 1e-7], [0, 1e-7]], [[0, 1, 2], [0, 2, 3]])
    private = om.MetricPrivacy(1, euclidean, everywhere=mesh)
    problem = om.Problem(om.Prior.uniform(places), euclidean, constraints=[private])
    with pytest.raises(om.ProblemError, match="too thin"):
        om.pack(om.solve(problem), tmp_path / "m.omm", bits=48, max_loss=1)


def test_constraints_beside_the_promise_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounded for the gradients alone, the place that loses most would lose more than it may: a
    file of such numbers is refused by all who check it."""
    euclidean = om.distances.euclidean()
    points = [[x, y] for x in range(3) for y in range(3)]
    prior = om.Prior(om.Domain(range(9), points), [4, 3, 2, 3, 4, 2, 5, 3, 6])
    private = om.MetricPrivacy(1.4, euclidean, everywhere=om.Mesh.grid((0, 0, 2, 2), 1))
    path, own = tmp_path / "joint.omm", tmp_path / "joint.json"

    def packed(*beside: om.Constraint, bits: int) -> str:
        design = om.solve(om.Problem(prior, euclidean, constraints=[*beside, private]))
        om.pack(design, path, bits=bits, max_loss=0.01)
        design.save(own)
        return om.check_packed(path, design).status

    # constant mechanisms make room for the first two, and one inside all constraints for the last
    limited = om.LossBound(1.2, worst_case=True)
    for kept in (om.DistortionPrivacy(0.9, euclidean), om.GainLeakage(0.36), limited):
        assert packed(kept, bits=16) == "packed"
        assert audit.main([str(path), str(own)]) == 0
        assert "at the places" in capsys.readouterr().out
        # the bound by the places counts these as well
        assert audit.main([str(own)]) == 0
        assert "at every point and keeps the other constraints, by" in capsys.readouterr().out
    monkeypatch.setattr(packing.Packing, "_is_kept", lambda *_: True)
    assert packed(limited, bits=16) == "failed"
    assert audit.main([str(path), str(own)]) == 1
    assert "the loss is" in capsys.readouterr().out


@pytest.mark.parametrize("point", [5, None, (1,), (1, 2, 3), "xyz"])
def test_what_is_no_point_is_refused(square: om.Design, packed: Path, point: object) -> None:
    for ask in (
        om.load_packed(packed).locate,
        square.mechanism.sample_at,
        square.mesh.locate_exactly,
    ):
        with pytest.raises(om.ProblemError, match="is no point"):
            ask(point)
