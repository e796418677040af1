"""Packed mechanisms: what is kept, what a draw is, what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import random
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import cbor2
import flint
import numpy as np
import optmech_audit as audit
import pytest
from optmech_audit.cbor import parsed
from optmech_devices.packed.cbor import Tag, decode, encode
from packed.readers import in_bytes

import optmech as om
from optmech.cli.main import main
from optmech.errors import OptmechError

PROBLEMS = (
    "grid-4x4", "worst-case", "ages", "approximate", "distortion", "distribution", "support",
    "threshold", "max-distortion", "joint",
)  # fmt: skip


@pytest.fixture(scope="module")
def grid() -> om.Design:
    cells = om.Grid.geographic(3, 4, (-73.7, 45.4, -73.6, 45.5))
    prior = om.Prior(cells, np.arange(1.0, 13.0) / 78)
    euclidean = om.distances.euclidean()
    problem = om.Problem(prior, euclidean, constraints=[om.MetricPrivacy("ln 2", euclidean)])
    return om.solve(problem)


@pytest.fixture(scope="module")
def packed(grid: om.Design, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "city.omm"
    om.pack(grid, path, bits=24, prior_date="2026-10")
    return path


def keeps_ratios(numerators: np.ndarray, distance: np.ndarray, base: int) -> bool:
    """n_i <= base^d n_j for all, decided with enclosures of 200 bits that share no code with us."""
    flint.ctx.prec = 200
    for i, row in enumerate(numerators):
        for j, other in enumerate(numerators):
            if i == j:
                continue
            factor = flint.arb(base) ** flint.arb(float(distance[i, j]))
            for a, b in zip(row.tolist(), other.tolist(), strict=True):
                if not flint.arb(a) <= factor * flint.arb(b):
                    return False
    return True


def test_the_loss_of_what_leaks_least_is_its_expected_loss(tmp_path: Path) -> None:
    """Not what the best guess gains, 1 - 1/4: under the Hamming loss that is the other part."""
    line, hamming = om.Domain.range(3), om.distances.hamming()
    problem = om.Problem(
        om.Prior.uniform(line),
        hamming,
        objective=om.MinimizeLeakage("identity"),
        constraints=[om.LossBound(0.25)],
    )
    design = om.solve(problem)
    found = om.pack(design, tmp_path / "m.omm")
    report = om.check_packed(tmp_path / "m.omm", design)
    assert report.loss == pytest.approx(float((1 - np.eye(3)).ravel() @ found.matrix.ravel()) / 3)
    assert report.loss <= 0.25 < 0.7 < report.objective


@pytest.mark.parametrize("bits", [16, 24, 32, 48])
def test_every_ratio_is_kept_exactly(grid: om.Design, tmp_path: Path, bits: int) -> None:
    om.pack(grid, tmp_path / "city.omm", bits=bits)
    found = om.load_packed(tmp_path / "city.omm")
    whole = found.matrix * 2.0**bits
    assert (whole == np.round(whole)).all()
    assert (whole.sum(axis=1) == 2.0**bits).all()
    cells = grid.problem.secrets
    distance = om.distances.euclidean()(cells, cells)
    assert keeps_ratios(whole.astype(np.int64), distance, 2)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_kind_of_promise_is_kept(name: str, tmp_path: Path) -> None:
    design = om.solve(om.load_problem(name))
    om.pack(design, tmp_path / "m.omm", bits=48)
    report = om.check_packed(tmp_path / "m.omm", design)
    assert report.passed, report.faults
    design.save(tmp_path / "m.json")
    audit.judge(str(tmp_path / "m.omm"), str(tmp_path / "m.json"))
    found = om.load_packed(tmp_path / "m.omm")
    adopted = om.exchange.adopt(found, design.problem)
    assert adopted.verified
    assert adopted.loss <= design.loss * (1 + 1e-9) + 1e-12


def test_limits_from_both_sides_leave_room_for_few_bits(tmp_path: Path) -> None:
    """No constant mechanism keeps a least distortion beside losses that are bounded below those of
    the best design without: something inside both has to be found and mixed in."""
    euclidean = om.distances.euclidean()
    private = om.MetricPrivacy(0.8, euclidean)
    packed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 9))
        prior = om.Prior(om.Domain(range(n), rng.uniform(0, 4, (n, 2))), rng.dirichlet(np.ones(n)))
        free = om.solve(om.Problem(prior, euclidean, constraints=[private])).mechanism
        worst = om.LossBound(0.95 * om.measures.worst_loss(free, euclidean), worst_case=True)
        least = om.DistortionPrivacy(
            1.03 * om.measures.distortion(free, prior, euclidean), euclidean
        )
        asked = om.Problem(prior, euclidean, constraints=[private, worst, least])
        design = om.solve(asked)
        if design.status == "infeasible":
            continue
        packed += 1
        for bits in (24, 32):
            om.pack(design, tmp_path / "m.omm", bits=bits)
            report = om.check_packed(tmp_path / "m.omm", design)
            assert report.passed, report.faults
            found = om.exchange.adopt(om.load_packed(tmp_path / "m.omm"), asked)
            assert found.loss <= design.loss * 1.01
    assert packed >= 3


def test_the_loss_is_stated_and_limited(grid: om.Design, tmp_path: Path) -> None:
    found = om.pack(grid, tmp_path / "city.omm", bits=16)
    cells = grid.problem.secrets
    distance = om.distances.euclidean()(cells, cells)
    weights = grid.problem.prior.weights
    loss = float((weights[:, None] * distance * found.matrix).sum())
    assert found.header.loss.packed == pytest.approx(loss, rel=1e-12)
    increase = loss / grid.loss - 1
    assert found.header.loss.increase == pytest.approx(increase, rel=1e-6)
    with pytest.raises(om.ProblemError, match=r"24 bits cost .*Give more bits"):
        om.pack(grid, tmp_path / "less.omm", bits=16, max_loss=increase / 2)
    assert not (tmp_path / "less.omm").exists()
    om.pack(grid, tmp_path / "less.omm", bits=16, max_loss=f"{increase * 101}%")


def test_rounding_to_nothing_is_never_done(tmp_path: Path) -> None:
    """2^-40 of a unit away cannot be told at 16 bits: the ratio forces at least one unit."""
    line = om.Domain.range(2)
    apart = om.distances.matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    problem = om.Problem(
        om.Prior.uniform(line), om.distances.hamming(), constraints=[om.MetricPrivacy(28, apart)]
    )
    found = om.pack(om.solve(problem), tmp_path / "m.omm", bits=16, max_loss=1e12)
    assert found.matrix.min() == 2.0**-16


def test_a_draw_is_what_the_specification_says(packed: Path) -> None:
    found = om.load_packed(packed)
    rng = random.Random(1)
    for secret in found.secrets.labels:
        row = [int(v * 2**24) for v in found.matrix[found.secrets.index(secret)]]
        for _ in range(40):
            entropy = rng.randbytes(3)
            drawn, below = int.from_bytes(entropy, "little"), 0
            expected = []
            for label, entry in zip(found.observables.labels, row, strict=True):
                below += entry
                expected += [label] if drawn < below else []
            assert found.report(secret, entropy) == expected[0]


def test_all_bytes_of_sixteen_bits_give_the_exact_probabilities(
    grid: om.Design, tmp_path: Path
) -> None:
    found = om.pack(grid, tmp_path / "m.omm", bits=16)
    every = np.arange(2**16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    counts = Counter(found.reports((1, 2), every))
    row = found.matrix[found.secrets.index((1, 2))]
    assert [counts[label] for label in found.observables.labels] == (row * 2**16).tolist()


def test_it_is_read_by_others(packed: Path, grid: om.Design) -> None:
    """An independent decoder of CBOR, and hashes of the standard library."""
    content = packed.read_bytes()
    assert content[:3].hex() == "d9d9f7"  # the tag of self-described CBOR
    ((form, inner, rows, digest),) = parsed(content[3:])
    assert form == "optmech-packed/4"
    assert digest == hashlib.sha256(content[:-32]).digest()
    (header,) = parsed(inner)
    count = len(header["columns"])
    entries = [int.from_bytes(rows[k : k + 3], "little") for k in range(0, len(rows), 3)]
    assert len(rows) == 3 * 12 * count
    assert sum(entries) == 12 * 2**24
    grid.save(packed.with_suffix(".json"))
    body = json.loads(packed.with_suffix(".json").read_text())
    text = json.dumps(
        {"mechanism": body["mechanism"], "problem": body["problem"]},
        sort_keys=True,
        separators=(",", ":"),
    )
    assert header["design"] == hashlib.sha256(text.encode()).digest()
    assert header["prior"]["date"] == "2026-10"
    assert [part["repeats"] for part in header["promises"]] == ["adds"]
    assert any("again" in text for text in om.load_packed(packed).against)


def test_the_accuracy_is_a_quantile_of_the_posterior(packed: Path, grid: om.Design) -> None:
    found = om.load_packed(packed)
    cells = grid.problem.secrets
    for o, label in enumerate(found.observables.labels):
        posterior = grid.problem.prior.weights * found.matrix[:, o]
        if not posterior.any():
            assert found.accuracy(label) is None
            continue
        apart = np.hypot(*(cells.points - cells.points[o]).T)
        radius = found.accuracy(label) / 1000 - math.hypot(*cells.cell) / 2
        share = posterior[apart <= radius + 1e-9].sum() / posterior.sum()
        less = posterior[apart <= radius - 1e-6].sum() / posterior.sum()
        assert less < 0.95 <= share


def test_odds_and_the_best_guess_are_those_of_the_bytes(packed: Path, grid: om.Design) -> None:
    """Both from the bytes of the file alone; neither can be said better than it is."""
    own = om.load_packed(packed)
    _, inner, rows, _ = cbor2.loads(packed.read_bytes())
    header = cbor2.loads(inner)
    width, tall = np.frombuffer(header["secrets"]["cell"].value, "<f8")
    odds = [2 ** (metres / 1000 + math.hypot(width, tall)) for metres in (100, 1000, 10000)]
    said = [float(n.replace(",", "")) for n in re.findall("most ([0-9,.]+) times", "".join(
        own.protects[1:]))]  # fmt: skip
    assert len(said) == 3
    # three digits, rounded up
    assert all(own <= n <= own * 1.01 for own, n in zip(odds, said, strict=True))
    entries = np.array([int.from_bytes(rows[k : k + 3], "little") for k in range(0, len(rows), 3)])
    joint = entries.reshape(12, -1) / 2**24 * (np.arange(1.0, 13.0) / 78)[:, None]
    guess = f"right in {100 * joint.max(axis=0).sum():.3g} % of cases, that without a report in "
    (found,) = (text for text in own.against if "best guess" in text)
    assert f"{guess}15.4 %." in found  # 12 / 78
    grid.save(packed.with_suffix(".json"))
    forged = packed.with_name("forged.omm")
    prior, (promise,) = header["prior"], decode(inner)["promises"]
    for name, value in (
        ("promises", [{**promise, "epsilon": promise["epsilon"] * 0.99}]),
        ("promises", [{**promise, "repeats": "unknown"}]),
        ("promises", []),
        ("prior", {**prior, "seen": prior["seen"] * 0.99}),
        ("prior", {**prior, "blind": 0.99}),
    ):
        body = {**decode(inner), name: value}
        head = encode(Tag(55799, ["optmech-packed/4", encode(body), rows, bytes(32)]))[:-32]
        forged.write_bytes(head + hashlib.sha256(head).digest())
        assert om.check_packed(forged, grid).faults == (
            f"{name} in the file is not that of the design",
        )
        with pytest.raises(audit.Fault, match=f"{name}.* is not that"):
            audit.judge(str(forged), str(packed.with_suffix(".json")))


def test_no_odds_where_a_promise_has_a_delta(tmp_path: Path) -> None:
    """Of some reports (ε, δ) bounds no ratio, so that there is none to say."""
    cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    lax = om.MetricPrivacy(1, km, delta=0.01)
    found = om.pack(om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[lax])),
                    tmp_path / "m.omm")  # fmt: skip
    assert found.promise.odds == {}
    assert found.protects == ("metric privacy: ε = 1 per km, δ = 0.01",)


def test_positions_find_their_places(packed: Path) -> None:
    found = om.load_packed(packed)
    assert found.locate((-73.699, 45.401)) == (0, 0)
    assert found.locate((-73.6, 45.5)) == (2, 3)
    assert found.locate((-73.59, 45.45)) is None
    rng = np.random.default_rng(2)
    points = rng.uniform((-73.7, 45.4), (-73.6, 45.5), (200, 2))
    expected = [found.secrets.labels[k] for k in found.secrets.locate(points)]
    assert [found.locate(point) for point in points] == expected


def test_positions_outside_go_to_the_nearest_where_that_is_said(
    grid: om.Design, tmp_path: Path
) -> None:
    found = om.pack(grid, tmp_path / "m.omm", outside="nearest")
    # on the sphere: the shorter way around it, and the nearest latitude of a border
    assert found.locate((-80.0, 45.49)) == (2, 0)
    assert found.locate((170.0, -45.0)) == (0, 0)
    assert found.locate((-73.66, -89.0)) == found.locate((-73.66 + 360, 45.3)) == (0, 1)


def test_points_on_the_globe_find_the_nearest(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    places = rng.uniform((179.9, -17.1), (180.1, -16.9), (12, 2))
    places[:, 0] = (places[:, 0] + 180) % 360 - 180
    domain = om.Domain.geographic([f"p{k}" for k in range(12)], places)
    haversine = om.distances.haversine()
    problem = om.Problem(
        om.Prior.uniform(domain), haversine, constraints=[om.MetricPrivacy(0.2, haversine)]
    )
    found = om.pack(om.solve(problem), tmp_path / "m.omm", outside="nearest")
    points = rng.uniform((179.9, -17.1), (180.1, -16.9), (100, 2))
    points[:, 0] = (points[:, 0] + 180) % 360 - 180
    expected = domain.locate(points)
    assert [found.locate(point) for point in points] == [domain.labels[k] for k in expected]


def test_hexagons_keep_their_indices(tmp_path: Path) -> None:
    h3 = pytest.importorskip("h3")
    cells = sorted(h3.grid_disk(h3.latlng_to_cell(48.2, 16.37, 8), 1))
    domain = om.exchange.from_h3(cells)
    haversine = om.distances.haversine()
    problem = om.Problem(
        om.Prior.uniform(domain), haversine, constraints=[om.MetricPrivacy(2, haversine)]
    )
    found = om.pack(om.solve(problem), tmp_path / "m.omm")
    assert om.load_packed(tmp_path / "m.omm").secrets.labels == tuple(cells)
    centre = h3.cell_to_latlng(cells[3])
    assert found.locate((centre[1], centre[0])) == cells[3]


def test_check_finds_what_is_not_of_the_design(packed: Path, grid: om.Design) -> None:
    assert om.check_packed(packed, grid).passed
    euclidean = om.distances.euclidean()
    stricter = om.solve(
        om.Problem(grid.problem.prior, euclidean, constraints=[om.MetricPrivacy("1/2", euclidean)])
    )
    report = om.check_packed(packed, stricter)
    assert not report.passed
    assert any(fault.startswith("ratio") for fault in report.faults)
    assert any(fault.startswith("design") for fault in report.faults)
    other = om.solve(
        om.Problem(
            om.Prior.uniform(om.Grid(3, 4)), euclidean, constraints=[om.MetricPrivacy(1, euclidean)]
        )
    )
    assert "the secrets are not those of the design" in om.check_packed(packed, other).faults


def forged(content: bytes, change: object) -> bytes:
    """With other content and a digest that fits."""
    head = content[:-32]
    head = change(head)  # type: ignore[operator]
    return bytes(head) + hashlib.sha256(head).digest()


def test_forged_numbers_do_not_pass(packed: Path, grid: om.Design, tmp_path: Path) -> None:
    """Two units moved within a row and a digest that fits: readable, and refused by the check."""
    content = packed.read_bytes()
    whole = om.load_packed(packed)
    entries = (whole.matrix[0] * 2**24).astype(np.int64)
    row = b"".join(int(v).to_bytes(3, "little") for v in entries if v)
    entries[int(entries.argmax())] -= 2**20
    entries[int(np.where(entries, entries, 2**24).argmin())] += 2**20
    other = b"".join(int(v).to_bytes(3, "little") for v in entries if v)
    assert content.count(row) == 1
    path = tmp_path / "forged.omm"
    path.write_bytes(forged(content, lambda head: head.replace(row, other)))
    om.load_packed(path)
    assert not om.check_packed(path, grid).passed
    grid.save(tmp_path / "d.json")
    with pytest.raises(audit.Fault, match="too large beside"):
        audit.judge(str(path), str(tmp_path / "d.json"))
    # and a row that is no distribution is not read at all
    path.write_bytes(
        forged(content, lambda head: head.replace(row, row[:-1] + bytes([row[-1] ^ 1])))
    )
    with pytest.raises(om.VerificationError, match="sum"):
        om.load_packed(path)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut, doubled, inserted; half of them with a digest that fits."""
    data = bytearray(in_bytes(content, rng))
    if rng.random() < 0.5 and len(data) > 32:
        data[-32:] = hashlib.sha256(data[:-32]).digest()
    return bytes(data)


def accepted(content: bytes, path: Path, original: om.PackedMechanism, design: om.Design) -> bool:
    """Whether a file is read, with other probabilities or places, and passes the check too.
    What the second reader takes has the numbers that were written."""
    path.write_bytes(content)
    with contextlib.suppress(audit.Fault):
        audit.judge(str(path), str(path.with_name("design.json")))
        rows = original.exact.entries[:, original.matrix.any(axis=0)]
        assert b"".join(int(v).to_bytes(3, "little") for v in rows.ravel()) in content
    try:
        found = om.load_packed(path)
        report = om.check_packed(path, design)
    except OptmechError:
        return False
    same = found.secrets == original.secrets and np.array_equal(found.matrix, original.matrix)
    return report.passed and not same


def test_figures_of_the_header_are_those_of_the_design(
    packed: Path, grid: om.Design, tmp_path: Path
) -> None:
    """A better accuracy, another loss, a promise that was not made."""
    _, inner, rows, _ = decode(packed.read_bytes()).value
    header = decode(inner)
    accuracy = header["accuracy"]
    radii = np.frombuffer(accuracy["radius"].value, "<f8")
    path = tmp_path / "m.omm"
    for name, value, said in (
        ("accuracy", {**accuracy, "radius": Tag(86, (radii * (1 + 1e-12)).tobytes())}, None),
        ("accuracy", {**accuracy, "radius": Tag(86, (radii * 0.99).tobytes())}, "accuracy"),
        ("loss", {**header["loss"], "packed": header["loss"]["packed"] * 0.999}, "loss"),
        ("promises", [], "promises"),
        ("prior", {**header["prior"], "entropy": 1.0}, "prior"),
        ("prior", {**header["prior"], "date": "1999-01"}, None),
        ("prior", None, "prior"),
        ("outside", "nearest", None),
        ("title", "Another city", None),
    ):
        body = {**header, name: value}
        head = encode(Tag(55799, ["optmech-packed/4", encode(body), rows, bytes(32)]))[:-32]
        path.write_bytes(head + hashlib.sha256(head).digest())
        faults = om.check_packed(path, grid).faults
        expected = () if said is None else (f"{said} in the file is not that of the design",)
        assert faults == expected


def test_mutated_files_are_refused(packed: Path, grid: om.Design, tmp_path: Path) -> None:
    content, original = packed.read_bytes(), om.load_packed(packed)
    grid.save(tmp_path / "design.json")
    rng = random.Random(7)
    for _ in range(300):
        changed = mutated(content, rng)
        if changed != content:
            assert not accepted(changed, tmp_path / "m.omm", original, grid)


def test_signed_files(packed: Path, grid: om.Design, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    keys = [Ed25519PrivateKey.from_private_bytes(bytes([k]) * 32) for k in (1, 2)]
    for k, key in enumerate(keys):
        (tmp_path / f"{k}.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (tmp_path / f"{k}.pub").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
    path = tmp_path / "signed.omm"
    om.pack(grid, path, prior_date="2026-10", sign=tmp_path / "0.pem")
    # RFC 9052, section 4.4, by another implementation
    protected, unprotected, payload, signature = cbor2.loads(path.read_bytes()).value
    assert (cbor2.loads(protected), unprotected) == ({1: -8}, {})
    assert payload == packed.read_bytes()
    stated = cbor2.dumps(["Signature1", protected, b"", payload], canonical=True)
    keys[0].public_key().verify(signature, stated)
    om.load_packed(path, signer=tmp_path / "0.pub")
    assert om.check_packed(path, grid, signer=tmp_path / "0.pub").passed
    for wrong, signer, said in (
        (path, tmp_path / "1.pub", "not that of the key"),
        (path, None, "no key to verify"),
        (packed, tmp_path / "0.pub", "is not signed"),
        (path, tmp_path / "0.pem", "no public key"),
        (path, tmp_path / "none.pub", "cannot be read"),
    ):
        with pytest.raises(OptmechError, match=said):
            om.load_packed(wrong, signer=signer)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(om.VerificationError):
        om.load_packed(path, signer=tmp_path / "0.pub")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bits": 20}, "none of"),
        ({"bits": 24.0}, "none of"),
        ({"max_loss": -1}, "share"),
        ({"max_loss": "much"}, "share"),
        ({"outside": "somewhere"}, "refuse nor nearest"),
        ({"prior_date": "last year"}, "no date"),
    ],
)
def test_bad_arguments(
    grid: om.Design, tmp_path: Path, options: dict[str, object], said: str
) -> None:
    with pytest.raises(om.ProblemError, match=said):
        om.pack(grid, tmp_path / "m.omm", **options)  # type: ignore[arg-type]


def test_rows_of_certainty_are_packed_with_a_byte_more(tmp_path: Path) -> None:
    """Without a constraint every place reports itself: entries are 2^w."""
    problem = om.Problem(om.Prior.uniform(om.Domain("abc")), om.distances.hamming())
    found = om.pack(om.solve(problem), tmp_path / "m.omm", bits=16)
    assert np.array_equal(found.matrix, np.eye(3))
    again = om.load_packed(tmp_path / "m.omm")
    assert again.report("b", b"\xff\xff") == "b"
    assert [Fraction(v) for v in again.matrix[2]] == [0, 0, 1]


def test_the_audit_compares_places(tmp_path: Path) -> None:
    """Labels alone, points, and cells of another design of as many."""
    hamming = om.distances.hamming()
    for k, domain in enumerate((om.Domain("abc"), om.Domain.range(3), om.Grid(1, 3))):
        prior = om.Prior.uniform(domain)
        design = om.solve(om.Problem(prior, hamming, constraints=[om.DifferentialPrivacy("ln 3")]))
        design.save(tmp_path / f"{k}.json")
        om.pack(design, tmp_path / f"{k}.omm")
    for k in range(3):
        audit.judge(str(tmp_path / f"{k}.omm"), str(tmp_path / f"{k}.json"))
        with pytest.raises(audit.Fault):
            audit.judge(str(tmp_path / f"{k}.omm"), str(tmp_path / f"{(k + 1) % 3}.json"))


def test_the_command_line(
    packed: Path, grid: om.Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design, city = str(tmp_path / "d.json"), str(tmp_path / "c.omm")
    grid.save(design)
    assert main(["pack", design, "-o", city, "--bits", "16", "--max-loss", "5%", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bytes"] == Path(city).stat().st_size
    assert said["loss"] / said["design_loss"] - 1 == pytest.approx(said["increase"], rel=1e-6)
    assert main(["check", city, design, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "packed"
    assert main(["sample", city, "1,2", "-n", "5"]) == 0
    drawn = capsys.readouterr().out.split()
    assert all(tuple(map(int, text.split(","))) in grid.problem.secrets.labels for text in drawn)
    for arguments, said_then in (
        (["check", city], "is checked against its design"),
        (["check", city, design, "--problem", "metric"], "is checked against its design"),
        (["sample", city, "nowhere"], "SECRET"),
        (["sample", design, "1,2", "--signer", "x.pem"], "is not signed"),
        (["pack", design, "-o", city, "--max-loss", "1e-9"], "24 bits"),
        (["pack", city, "-o", city], "is an input file"),
        (["pack", city, "-o", city + "2"], "is a packed mechanism"),
        (["check", design, design], "no packed mechanism"),
        (["measure", city], "is a packed mechanism"),
        (["report", city, "-o", str(tmp_path / "r.html")], "is a packed mechanism"),
    ):
        assert main(arguments) != 0
        assert said_then in capsys.readouterr().err, arguments
