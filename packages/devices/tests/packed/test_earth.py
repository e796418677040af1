"""One file for the whole earth: its promise between dense pairs of positions, computed by other
means, its law, its cells, and what it is compared with."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import optmech_devices
import pytest
from optmech_devices.packed.cbor import Tag, decode, encode, typed
from optmech_devices.packed.earth import Cells
from optmech_devices.packed.spherical import Rings, least_mean, made
from packed import native
from plainly import main, plainly
from scipy.integrate import quad
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import csr_matrix
from scipy.stats import chi2

import optmech as om

R = 6371.0088
LN2 = math.log(2)


@pytest.fixture(scope="module")
def earth() -> om.Earth:
    return om.Earth.of("ln 2")


def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great-circle distances in km, by the haversine of the library's sines."""
    (x, y), (u, v) = np.radians(a).T, np.radians(b).T
    h = np.sin((v - y) / 2) ** 2 + np.cos(y) * np.cos(v) * np.sin((u - x) / 2) ** 2
    return 2 * R * np.arcsin(np.sqrt(np.minimum(h, 1)))


class Law:
    """The file's law, by quadrature, from its numbers alone."""

    def __init__(self, earth: om.Earth) -> None:
        self.bands = earth.secrets.bands
        self.ends = 2 * R * np.arcsin(np.sqrt(np.array(earth.rings.heights) / 2))
        sums = np.array([0, *earth.rings.sums], dtype=np.float64) / 2.0**64
        heights = np.concatenate([[0.0], earth.rings.heights])
        rest = (1 - sums[-1]) / 2
        self.density = np.append(np.diff(sums) / np.diff(heights) + rest, rest) / (2 * np.pi * R**2)

    def count(self, band: int) -> int:
        middle = math.radians((band + 0.5) * 180 / self.bands - 90)
        return math.ceil(2 * self.bands * math.cos(middle))

    def cell(self, position: np.ndarray) -> tuple[int, int]:
        band = min(int((position[1] + 90) * self.bands / 180), self.bands - 1)
        count = self.count(band)
        return band, min(int(position[0] % 360 * count / 360), count - 1)

    def centre(self, cell: tuple[int, int]) -> np.ndarray:
        band, k = cell
        latitude = (band + 0.5) * 180 / self.bands - 90
        return np.array([(k + 0.5) * 360 / self.count(band), latitude])

    def chance(self, x: np.ndarray, cell: tuple[int, int], fine: int = 24) -> float:
        """Of a cell's report at a centre: evenly spaced points of it, weighed by area."""
        band, k = cell
        steps = (np.arange(fine) + 0.5) / fine
        latitude = (band + steps) * 180 / self.bands - 90
        longitude = (k + steps) * 360 / self.count(band)
        area = np.cos(np.radians(latitude)) * np.radians(180 / self.bands) / fine
        area *= np.radians(360 / self.count(band)) / fine * R**2
        points = np.stack(np.meshgrid(longitude, latitude), axis=-1).reshape(-1, 2)
        ring = np.searchsorted(self.ends, apart(points, x[None]), side="right")
        return float((self.density[ring].reshape(fine, fine) * area[:, None]).sum())


SEAMS = ((0.0, 0.0), (16.37, 48.21), (180.0, 12.0), (-180.0, -66.0), (0.0, 59.99), (77.0, 89.999),
         (0.0, 90.0), (123.0, -90.0), (10.0, -89.95))  # fmt: skip


def moved(rng: np.random.Generator, from_: np.ndarray, km: float) -> np.ndarray:
    """A position some way off in any direction, over poles and 180 degrees."""
    x, y = np.radians(from_)
    bearing, r = rng.uniform(0, 2 * np.pi), km / R
    up = math.sin(y) * math.cos(r) + math.cos(y) * math.sin(r) * math.cos(bearing)
    latitude = math.asin(max(-1.0, min(1.0, up)))
    east = math.sin(bearing) * math.sin(r) * math.cos(y)
    longitude = x + math.atan2(east, math.cos(r) - math.sin(y) * math.sin(latitude))
    return np.array([(math.degrees(longitude) + 180) % 360 - 180, math.degrees(latitude)])


@pytest.mark.parametrize("start", SEAMS)
def test_the_promise_holds_between_dense_pairs(start: tuple[float, float], earth: om.Earth) -> None:
    """Pairs from centimetres to tens of kilometres apart, and reports from where they are to where
    next to nothing is left."""
    rng, law = np.random.default_rng(abs(hash(start)) % 2**32), Law(earth)
    snap = earth.header.snap
    worst = 0.0
    for _ in range(60):
        x = moved(rng, np.array(start), float(10 ** rng.uniform(-4, 1)))
        y = moved(rng, x, float(10 ** rng.uniform(-5, 1.3)))
        own = law.centre(law.cell(x)), law.centre(law.cell(y))
        found = np.array([earth.coordinates(earth.locate(x))])
        assert apart(found, own[0][None])[0] < 1e-6
        d = float(apart(x[None], y[None])[0])
        for far in (0.0, *rng.uniform(0, 12, 4), *rng.uniform(12, 60, 2)):
            cell = law.cell(moved(rng, x, far))
            ratio = abs(math.log(law.chance(own[0], cell) / law.chance(own[1], cell)))
            # quadrature over rings of 29 m is good to some 10^-3
            assert ratio <= LN2 * (d + 2 * snap) + 2e-3
            worst = max(worst, ratio / (LN2 * (d + 2 * snap)))
    assert worst > 0.5


def test_the_stated_lag_is_that_of_all_pairs_of_rings(earth: om.Earth) -> None:
    law = Law(earth)
    logs = np.log(law.density)
    starts = np.concatenate([[0.0], law.ends])
    ends = np.append(law.ends, np.inf)
    worst = 0.0
    for k in range(len(logs) - 1):
        gap = starts[k + 1 :] - ends[k]
        worst = max(worst, float((np.abs(logs[k + 1 :] - logs[k]) - LN2 * gap).max()))
    assert earth.rings.lag(LN2) == pytest.approx(worst / 2 / LN2, rel=1e-6)
    assert earth.rings.lag(LN2) < 0.02 / LN2


@pytest.mark.parametrize("start", [(0.0, 0.3), (-180.0, 52.0), (33.0, 90.0), (1.0, -89.99)])
def test_draws_follow_the_law(start: tuple[float, float]) -> None:
    """χ² of 100,000 draws over cells of 2 km against the quadrature."""
    earth = om.Earth.of("ln 2", cell=2)
    law, place = Law(earth), earth.locate(start)
    drawn = np.array(earth.sample(place, 100_000, seed=7))
    numbers, counts = np.unique(drawn, return_counts=True)
    x = law.centre(law.cell(np.array(start)))
    seen, expected = [], []
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        chance = 1e5 * law.chance(x, divmod(number, 2 * earth.secrets.bands), 120)
        if chance > 20:
            seen.append(count)
            expected.append(chance)
    assert sum(expected) > 0.9e5
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True))
    statistic += (sum(seen) - sum(expected)) ** 2 / (1e5 - sum(expected))
    assert chi2.sf(statistic, len(seen)) > 1e-4


def test_what_is_even_everywhere_is_even(earth: om.Earth) -> None:
    """The last of the numbers that choose a ring: sines of latitudes and longitudes are uniform."""
    rng = np.random.default_rng(2)
    entropy = rng.integers(0, 256, (8_000, 19), dtype=np.uint8)
    entropy[:, :8] = 255
    found = earth.reports(np.full(8_000, earth.locate((7.0, 50.0))), entropy)
    longitude, latitude = earth.secrets.centres(found).T
    for values in ((np.sin(np.radians(latitude)) + 1) / 2, longitude / 360):
        counts, _ = np.histogram(values, 50, (0, 1))
        assert chi2.sf(((counts - 160) ** 2 / 160).sum(), 49) > 1e-4


def test_vectors_lie_in_the_cells_of_their_positions() -> None:
    """Over the whole earth, beside meridians and at poles."""
    rng = np.random.default_rng(3)
    for bands in (64, 1001, 2**22):
        cells = Cells(bands)
        x, y = rng.uniform(-180, 360, 3000), np.degrees(np.arcsin(rng.uniform(-1, 1, 3000)))
        x[:8], y[:8] = (0, 90, 180, 270, -90, -180, 359.99, 1e-9), (0, 10, -10, 80, 0.3, 5, 1, -3)
        y[8:12] = 89.99, -89.99, 90, -90
        a, b = np.radians(x), np.radians(y)
        v = np.column_stack([np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)])
        by_angle, by_vector = cells.locate(np.column_stack([x, y])), cells.of_vectors(v)
        centres = cells.centres(by_vector)
        # on a border either side will do
        near = apart(centres, np.column_stack([x, y])) <= 0.94 * math.pi * R / bands + 1e-6
        assert near.all()
        assert (by_angle == by_vector)[12:].mean() > 0.99
        assert (
            apart(cells.centres(by_angle), np.column_stack([x, y])).max()
            < 0.94 * math.pi * R / bands
        )
        assert (cells.locate(centres) == by_vector).all()


def test_no_law_of_the_distance_has_a_smaller_mean() -> None:
    """The closed form against an integral, and random laws that keep the same ε."""
    rng = np.random.default_rng(5)
    for rate in (0.01, 0.1, LN2, 3.0):
        far = min(math.pi * R, 60 / rate)
        mass = quad(lambda r, e=rate: math.exp(-e * r) * math.sin(r / R), 0, far)[0]
        mean = quad(lambda r, e=rate: r * math.exp(-e * r) * math.sin(r / R), 0, far)[0] / mass
        assert least_mean(rate) == pytest.approx(mean, rel=1e-6)
        r = np.linspace(0, far, 4001)[1:]
        for _ in range(20):
            slopes = rng.uniform(-rate, rate * rng.choice([-0.9, 0, 1]), len(r))
            density = np.exp(np.cumsum(np.clip(slopes, -rate, rate)) * (r[1] - r[0])) * np.sin(
                r / R
            )
            assert (density @ r) / density.sum() >= least_mean(rate) * (1 - 1e-3)


def steps(odds: float, first: float, radius: float = 1.0) -> float:
    """Mean distance of the density of steps, the first of them ``first`` wide."""
    ends = np.concatenate([[0.0], first + radius * np.arange(4000)])
    level = odds ** -np.arange(4000.0)
    mass = level @ (ends[1:] ** 2 - ends[:-1] ** 2) / 2
    return float(level @ (ends[1:] ** 3 - ends[:-1] ** 3) / 3 / mass)


@pytest.mark.parametrize(("odds", "gain"), [(2, 0.24), (4, 1.72), (16, 10.14)])
def test_a_promise_within_a_radius_gains_little(odds: float, gain: float) -> None:
    """The best steps, beside a linear program over all laws of the distance: no law of its rings
    has less, and rings of a twentieth hardly more."""
    best = minimize_scalar(lambda g: steps(odds, g), bounds=(1e-6, 1), method="bounded")
    laplace = 2 / math.log(odds)
    assert 100 * (1 - best.fun / laplace) == pytest.approx(gain, abs=0.005)
    fine = 20
    # what lies further out has next to no mass
    ends = np.arange(math.ceil(20 / math.log(odds)) * fine + 1) / fine
    area, cost = np.diff(ends**2) / 2, np.diff(ends**3) / 3
    count = len(area)
    # rings have points within the radius where they are fine apart or less
    pairs = [(i, j) for i in range(count) for j in range(max(0, i - fine), i + fine + 1)
             if i != j and j < count]  # fmt: skip
    rows = np.repeat(np.arange(len(pairs)), 2)
    values = np.tile([1.0, -float(odds)], len(pairs))
    limits = csr_matrix((values, (rows, np.array(pairs).ravel())), (len(pairs), count))
    found = linprog(cost, limits, np.zeros(len(pairs)), area[None], [1.0])
    assert best.fun - 1e-3 <= found.fun <= best.fun * 1.001


@pytest.mark.parametrize("epsilon", [0.01, "0.1 ln 2", 1, 10])
def test_a_file_is_small_and_says_what_it_costs(epsilon: Any, tmp_path: Path) -> None:
    made_ = om.Earth.of(epsilon)
    path = tmp_path / "earth.omm"
    made_.save(path)
    assert path.stat().st_size <= 64_000
    found = om.load(path)
    assert isinstance(found, om.Earth)
    rate = found.header.promises[0].epsilon
    assert found.header.snap * rate < 0.25
    drawn = np.array(found.sample(found.locate((11.0, 47.0)), 20_000, seed=1))
    d = apart(found.secrets.centres(drawn), np.array([[11.0, 47.0]]))
    assert d.mean() < found.header.loss.packed
    assert d.mean() == pytest.approx(found.header.loss.design, rel=0.05)
    assert (d <= found.accuracy(int(drawn[0])) / 1000).mean() >= 0.945


def test_python_checks_it_as_the_command_does() -> None:
    report = om.check(VECTORS / "earth.omm")
    assert report.passed
    assert report == om.Earth.load(VECTORS / "earth.omm").check()
    with pytest.raises(
        om.ProblemError, match=r"checked against its design.*om\.devices\.check_packed"
    ):
        om.check(VECTORS / "line.omm")


def test_sticky_reports_and_the_ledger_take_it(earth: om.Earth) -> None:
    home, work = earth.locate((16.37, 48.21)), earth.locate((16.40, 48.25))
    ledger = om.Ledger(earth, None, radius=1, budget=3)
    sticky = om.StickyReports(earth, bytes(32), ledger=ledger)
    first = sticky.report(home, 0)
    assert [sticky.report(home, t) for t in (900, 1800, 80_000)] == [first] * 3
    assert sticky.report(work, 900) not in (None, first)
    assert ledger.per_draw == pytest.approx(LN2 * (1 + 2 * earth.header.snap), abs=2e-9)
    assert [sticky.report(place, 90_000) for place in (home, work)][1] is None
    other = om.StickyReports(earth, bytes(32))
    assert other.report(home, 5) == first
    other.restore(sticky.to_dict())
    message = b"optmech-sticky/1" + earth.digest + struct.pack("<QQ", home, 0)
    entropy = hmac.new(bytes(32), message, hashlib.sha256).digest()[:19]
    assert earth.report(home, entropy) == first


# -- other readers --------------------------------------------------------------------------------


VECTORS = Path(__file__).parent / "vectors"
CLIENT = Path(optmech_devices.__file__).parent / "client"
STATED = json.loads((VECTORS / "earth.json").read_text())


@pytest.fixture(scope="module")
def known() -> om.Earth:
    return om.Earth.load(VECTORS / "earth.omm")


def many_draws(known: om.Earth) -> tuple[np.ndarray, np.ndarray]:
    """Places over the whole earth, and the bytes of draws."""
    rng = np.random.default_rng(12)
    latitude = np.degrees(np.arcsin(rng.uniform(-1, 1, 8_000)))
    latitude[:50], latitude[50:100] = 90, -90
    places = known.secrets.locate(np.column_stack([rng.uniform(-360, 360, 8_000), latitude]))
    entropy = rng.integers(0, 256, (8_000, 19), dtype=np.uint8)
    entropy[:400, :8] = 255
    return places, entropy


def test_python_gives_the_committed_answers(known: om.Earth) -> None:
    stated = STATED["earth.omm"]
    for place, entropy, report in stated["draws"]:
        assert known.report(place, bytes.fromhex(entropy)) == report
    assert [[p, known.locate(p)] for p, _ in stated["positions"]] == stated["positions"]
    for report, where, accuracy in stated["reports"]:
        assert [list(known.coordinates(report)), known.accuracy(report)] == [where, accuracy]
    sticky = om.StickyReports(known, bytes.fromhex(STATED["key"]))
    for place, epoch, entropy in stated["sticky"]:
        assert sticky.entropy(place, int(epoch)).hex() == entropy


def test_node_gives_the_same_reports(node: str, known: om.Earth, tmp_path: Path) -> None:
    places, entropy = many_draws(known)
    lines = [f"{p} {e.tobytes().hex()}" for p, e in zip(places.tolist(), entropy, strict=True)]
    (tmp_path / "draws").write_text("\n".join(lines))
    script = str(Path(__file__).parent / "earth.mjs")
    run = subprocess.run(
        [node, script, str(CLIENT), str(VECTORS), str(tmp_path / "draws")],
        capture_output=True,
        check=True,
    )
    found = json.loads(run.stdout)
    for name, stated in STATED["earth.omm"].items():
        assert found[name] == stated, name
    assert found["many"] == known.reports(places, entropy).tolist()
    assert found["refused"] == 5
    home, report, per_draw = found["report"]
    sticky = om.StickyReports(known, bytes.fromhex(STATED["key"]))
    assert sticky.report(home, 86_400) == report
    assert found["page"] == [*known.coordinates(report), known.accuracy(report)]
    assert om.Ledger(known, None, radius=1).per_draw == pytest.approx(per_draw, abs=1e-9)
    assert apart(np.array([found["sample"]]), np.array([[16.37, 48.21]]))[0] < 20_015


@pytest.mark.skipif(native.compiler() is None, reason="no compiler of C")
def test_c_gives_the_same_reports(known: om.Earth, tmp_path: Path) -> None:
    reader, stated = native.Native(native.built(tmp_path)), STATED["earth.omm"]
    kind, size, count, dimension = reader.open(VECTORS / "earth.omm")
    assert (kind, size, count, dimension) == ("earth", 19, len(known.secrets), 2)
    for place, entropy, report in stated["draws"]:
        assert reader.draw(place, bytes.fromhex(entropy)) == report
    for position, place in stated["positions"]:
        assert reader.locate(position) == place
    for report, where, accuracy in stated["reports"]:
        assert reader.where(report) == [where, accuracy]
    for place, epoch, entropy in stated["sticky"]:
        drawn, report = reader.ask("sticky", STATED["key"], place, epoch).split()
        assert drawn == entropy
        assert known.report(place, bytes.fromhex(entropy)) == int(report)
    places, entropy = many_draws(known)
    with open(tmp_path / "draws", "wb") as stream:
        for place, drawn in zip(places.tolist(), entropy, strict=True):
            stream.write(struct.pack("<Q", place) + drawn.tobytes())
    found = [int(part) for part in reader.ask("many", tmp_path / "draws").split()]
    assert found == known.reports(places, entropy).tolist()
    assert reader.draw(2 * known.secrets.bands - 1, bytes(19)) == "refused"
    assert reader.draw(count, bytes(19)) == "refused"
    reader.close()


def test_all_readers_refuse_what_is_no_file(node: str, known: om.Earth, tmp_path: Path) -> None:
    """What of a file's form is wrong; what its law does not keep only a proof finds."""
    proofs = {"a larger rate", "a smaller snap", "a larger snap",
              "other bands", "another accuracy", "another loss", 
              "another height", "no even part",
              "a quantile that is nearly the same",
        "a smaller rate",
        "a promise by another unit",
        "a promise between places",
        "a promise that nothing adds to",
        "a prior",
        "two promises",
    }  # fmt: skip
    content = (VECTORS / "earth.omm").read_bytes()
    script = f"""
        import {{ PackedError, load }} from {json.dumps((CLIENT / "index.js").as_uri())};
        import {{ readFileSync }} from "node:fs";
        const said = {{}};
        const file = (name) => readFileSync({json.dumps(str(tmp_path))} + "/" + name);
        for (const name of {json.dumps(sorted(CHANGES))}) {{
          try {{ await load(file(name)); said[name] = 1; }}
          catch (error) {{ said[name] = error instanceof PackedError ? 0 : error.stack; }}
        }}
        console.log(JSON.stringify(said));
    """
    for name, change in CHANGES.items():
        (tmp_path / name).write_bytes(resealed(content, change))
    run = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, check=True
    )
    taken = json.loads(run.stdout)
    assert {name for name, found in taken.items() if found == 0} == set(CHANGES) - proofs
    assert {name for name, found in taken.items() if found == 1} == proofs
    if native.compiler() is None:
        return
    reader = native.Native(native.built(tmp_path))
    for name in CHANGES:
        path = tmp_path / "m.omm"
        path.write_bytes((tmp_path / name).read_bytes())
        assert (reader.open(path) is None) == (name not in proofs), name
    for k in range(0, 700):
        path.write_bytes(content[:k])
        assert reader.open(path) is None
    reader.close()


# -- what is refused ------------------------------------------------------------------------------


def resealed(content: bytes, change: Any) -> bytes:
    form, inner, rows, _ = decode(content).value
    header = decode(inner)
    parts = {"header": header, "rows": rows}
    change(parts)
    head = encode(Tag(55799, [form, encode(parts["header"]), parts["rows"], bytes(32)]))[:-32]
    return head + hashlib.sha256(head).digest()


def heights(parts: dict[str, Any], change: Any) -> None:
    own = np.frombuffer(parts["header"]["heights"].value, "<f8").copy()
    parts["header"]["heights"] = typed(change(own), 86)


CHANGES = {
    "a larger rate": lambda p: p["header"]["promises"][0].update(epsilon=LN2 * 1.0001),
    "a smaller rate": lambda p: p["header"]["promises"][0].update(epsilon=LN2 / 2),
    "a promise by another unit": lambda p: p["header"]["promises"][0]["measure"].update(unit="m"),
    "a promise between places": lambda p: p["header"]["promises"][0].update(scope="places"),
    "a promise that nothing adds to": lambda p: p["header"]["promises"][0].update(repeats="none"),
    "a smaller snap": lambda p: p["header"].update(snap=p["header"]["snap"] * 0.999),
    "a larger snap": lambda p: p["header"].update(snap=p["header"]["snap"] * 1.001),
    "no snap": lambda p: p["header"].update(snap=None),
    "other bands": lambda p: p["header"].update(bands=p["header"]["bands"] - 7),
    "too many bands": lambda p: p["header"].update(bands=2**22 + 1),
    "another accuracy": lambda p: p["header"]["accuracy"].update(radius=typed([1.0], 86)),
    "a quantile that is nearly the same": lambda p: p["header"]["accuracy"].update(
        quantile=0.9500000000000002
    ),
    "another loss": lambda p: p["header"]["loss"].update(packed=1.0),
    "a prior": lambda p: p["header"].update(
        prior={"places": 1, "entropy": 0.0, "seen": 1.0, "blind": 1.0, "date": None}
    ),
    "two promises": lambda p: p["header"].update(promises=p["header"]["promises"] * 2),
    "an entry more": lambda p: p["header"].update(more=1),
    "another height": lambda p: heights(
        p, lambda h: h * np.where(np.arange(len(h)) == 9, 0.999, 1)
    ),
    "heights back and forth": lambda p: heights(p, lambda h: h[::-1]),
    "a ring that is empty": lambda p: heights(p, lambda h: np.repeat(h, 2)[: len(h)]),
    "far rings": lambda p: heights(p, lambda h: np.append(h[:-1], 0.9)),
    "fewer sums": lambda p: p.update(rows=p["rows"][:-8]),
    "half a sum": lambda p: p.update(rows=p["rows"][:-4]),
    "another sum": lambda p: p.update(rows=bytes(8) + p["rows"][8:]),
    "no even part": lambda p: p.update(rows=p["rows"][:-8] + b"\xff" * 8),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_says_anything_else_is_refused(
    change: str, earth: om.Earth, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earth.save(tmp_path / "own.omm")
    content = (tmp_path / "own.omm").read_bytes()
    assert resealed(content, lambda _: None) == content
    path = tmp_path / "m.omm"
    path.write_bytes(resealed(content, CHANGES[change]))
    with pytest.raises(om.VerificationError):
        om.Earth.load(path)
    assert main(["check", str(path)]) == 1
    with pytest.raises(audit.Fault):
        audit.judge(str(path))
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("epsilon", ["ln 2", "1/3 ln 5", 0.01, 0.123456789, 1, "10"])
def test_the_audit_proves_what_is_written(epsilon: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.omm"
    made_ = om.Earth.of(epsilon, cell=0.3)
    made_.save(path)
    lines, own = audit.judge(str(path))
    assert own == "title"
    assert f"(d + {2 * made_.header.snap!r})" in lines[1]


def test_the_audit_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    """In a process of its own: whoever opens a pipe without a writer waits for ever."""
    os.mkfifo(tmp_path / "m.omm")
    command = [sys.executable, "-m", "optmech_audit", str(tmp_path / "m.omm")]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert done.returncode in (1, 2)


def test_altered_bytes_are_refused(earth: om.Earth, tmp_path: Path) -> None:
    earth.save(tmp_path / "m.omm")
    content = (tmp_path / "m.omm").read_bytes()
    for k in itertools.chain(range(60), range(60, len(content), 997)):
        other = bytearray(content)
        other[k] ^= 1
        (tmp_path / "x.omm").write_bytes(bytes(other))
        with pytest.raises(om.VerificationError):
            om.Earth.load(tmp_path / "x.omm")


def test_the_lag_of_one_ring_is_that_of_its_step() -> None:
    """One ring beside the rest: densities of 2^63 + 2^63 - 2^60 and 2^63 - 2^60."""
    one = Rings(np.array([0.25]), (2**61,))
    assert one.lag(1.0) == pytest.approx(math.log(15 / 7) / 2, rel=1e-12)
    assert one.lag(4.0) == pytest.approx(math.log(15 / 7) / 8, rel=1e-12)
    assert Rings(np.array([0.25]), (1,)).lag(1.0) < 1e-15
    steep = made(1.0)
    assert steep.quantile(0.5) == pytest.approx(1.678, rel=0.02)
    assert steep.quantile(1 - 1e-9) == math.pi * R


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "earth.omm")
    assert main(["pack", "--earth", "ln 2", "--cell", "0.5", "-o", path, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bytes"] == Path(path).stat().st_size
    assert main(["check", path]) == 0
    assert "ε · (d + " in capsys.readouterr().out
    assert main(["sample", path, "--at=-179.9,89.9", "-n", "3", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.split()
    found = om.Earth.load(path)
    drawn = found.sample(found.locate((-179.9, 89.9)), 3, seed=1)
    for line, place in zip(lines, drawn, strict=True):
        assert [float(part) for part in line.split(",")] == pytest.approx(
            found.coordinates(place), abs=1e-7
        )
    for wrong in (
        ["pack", "--earth", "11", "-o", path],
        ["pack", "--earth", "1", "--cell", "nan", "-o", path],
        ["pack", "--earth", "1", "--bits", "24", "-o", path],
        ["pack", "--cell", "1", "d.json", "-o", path],
        ["pack", "-o", path],
        ["sample", path, "3"],
        ["sample", path, "--at", "1e400,0"],
        ["sample", path, "--at", "0,91"],
        ["protect", path, "x.csv", "-o", "y.csv"],
    ):
        assert main(wrong) in (1, 2)
        assert "Traceback" not in capsys.readouterr().err
    assert om.Earth.load(path).digest == found.digest


EVERYWHERE = np.array([[16.37, 48.21], [180.0, 0.0], [-180.0, 0.0], [540.0, 0.0], [7.0, 90.0],
                       [99.0, 90.0], [0.0, -90.0], [-179.9999, -66.0]])  # fmt: skip


def mean_error(reports: Any, points: Any) -> Any:
    """Of the reports of every place. One in a million is drawn from the whole globe, and would
    double a mean by itself."""
    far = apart(reports, points).reshape(len(EVERYWHERE), -1)
    assert (far > 1000).sum() <= 3
    return np.where(far > 1000, 0.0, far).mean(axis=1)


def test_tables_are_protected_everywhere(known: om.Earth, tmp_path: Path) -> None:
    """As arrays, lists, tables and files; distances are those of the law, over poles and 180
    degrees."""
    many = np.repeat(EVERYWHERE, 3000, axis=0)
    reports = plainly(known, many)
    assert (np.abs(reports[:, 0]) <= 180).all()
    assert mean_error(reports, many) == pytest.approx(known.header.loss.design, rel=0.08)
    centres = [known.coordinates(known.locate(report)) for report in reports[::500]]
    assert np.array(centres) == pytest.approx(reports[::500], abs=1e-9)
    listed = plainly(known, [(16.37, 48.21), (0.5, 89.0)])
    assert [len(pair) for pair in listed] == [2, 2]
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"lon": many[:, 0], "lat": many[:, 1], "day": np.arange(len(many))})
    with pytest.warns(UserWarning, match="unfit"):
        drawn = plainly(known, table, x="lon", y="lat", keep="day", report="cell", seed=4)
    own = known.secrets.centres(drawn["cell"].to_numpy())
    assert apart(drawn[["lon", "lat"]].to_numpy(), own).max() < 1e-6
    table.to_csv(tmp_path / "in.csv", index=False)
    out, path = tmp_path / "out.csv", str(VECTORS / "earth.omm")
    argv = ["protect", path, str(tmp_path / "in.csv"), "--x", "lon", "--y", "lat", "-o", str(out)]
    assert main([*argv, "--keep", "day"]) == 0
    found = pandas.read_csv(out)
    assert found["day"].tolist() == table["day"].tolist()
    assert mean_error(found[["lon", "lat"]].to_numpy(), many) == pytest.approx(
        known.header.loss.design, rel=0.08
    )
    with pytest.raises(om.ProblemError, match="no usable coordinates"):
        plainly(known, np.array([[0.0, 91.0]]))
    with pytest.raises(om.ProblemError, match="no labels"):
        plainly(known, ["Vienna"])


def test_one_place_is_one_report_with_a_key(known: om.Earth) -> None:
    """However its longitude is written; by the columns that are named."""
    pandas = pytest.importorskip("pandas")
    drawn = plainly(known, EVERYWHERE, key=bytes(range(32)))
    assert (drawn[1] == drawn[2]).all()
    assert (drawn[2] == drawn[3]).all()
    assert len({tuple(part) for part in drawn.tolist()}) >= 5
    again = plainly(known, EVERYWHERE[::-1].copy(), key=bytes(range(32)))
    assert (again[::-1] == drawn).all()
    near = EVERYWHERE[:1] + np.random.default_rng(2).uniform(-1e-4, 1e-4, (200, 2))
    same = plainly(known, near, key=bytes(range(32)))
    cells = known.secrets.locate(near)
    assert len(np.unique(same, axis=0)) == len(np.unique(cells))
    table = pandas.DataFrame({"x": [9.0] * 4, "y": [50.0] * 4, "user": list("aabc")})
    by = plainly(known, table, x="x", y="y", by="user", key=bytes(range(32)))
    assert len(by.drop_duplicates()) == 3


def test_what_it_is_and_promises_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(VECTORS / "earth.omm")
    assert main(["show", path, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["checked"]) == ("packed", True)
    own = om.Earth.load(path)
    assert f"(d + {2 * own.header.snap:.1g} km)" in said["promise"]
    # 1 km apart: e^(ln 2 (1 + 2 snap))
    factor = 2 ** (1 + 2 * own.header.snap)
    assert said["odds"]["1000"] == pytest.approx(factor, rel=1e-6)
    assert f"1 km apart at most {math.ceil(100 * factor) / 100} times" in main_text(
        ["show", path], capsys
    )


def main_text(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv) == 0
    return " ".join(capsys.readouterr().out.split())


def test_signed(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as forms
    from packed.readers import Key

    key = Key.made(tmp_path)
    private = tmp_path / "private.pem"
    form = forms.PrivateFormat.PKCS8
    private.write_bytes(key.private.private_bytes(forms.Encoding.PEM, form, forms.NoEncryption()))
    path = tmp_path / "m.omm"
    om.Earth.of(1).save(path, sign=private)
    assert om.Earth.load(path, signer=key.pem).secrets == om.Earth.of(1).secrets
    with pytest.raises(om.ProblemError, match="is signed"):
        om.Earth.load(path)
    om.Earth.of(1).save(path)
    with pytest.raises(om.VerificationError, match="not signed"):
        om.Earth.load(path, signer=key.pem)
