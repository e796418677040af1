"""Sticky reports and the ledger against their definitions, written out again."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import optmech_devices
import pytest
from optmech_devices.packed.cbor import Tag, decode, encode

import optmech as om

VECTORS = Path(__file__).parent / "vectors"
KEY = hashlib.sha256(b"a device").digest()
DAY = 86_400


def test_the_bytes_are_an_hmac_of_place_and_epoch(line: om.PackedMechanism) -> None:
    message = b"optmech-sticky/1" + (VECTORS / "line.omm").read_bytes()[-32:]
    message += (3).to_bytes(4, "little") + (20_000).to_bytes(8, "little")
    drawn = hmac.digest(KEY, message, "sha256")
    assert om.StickyReports(line, KEY).entropy(3, 20_000) == drawn[:2]


def test_a_night_at_one_place_is_one_report(line: om.PackedMechanism) -> None:
    sticky = om.StickyReports(line, KEY, period=DAY)
    night = {sticky.report(2, 20_000 * DAY + 60 * k) for k in range(1440)}
    assert len(night) == 1
    # and without any state the same again
    again = om.StickyReports(line, KEY, period=DAY)
    assert {again.report(2, 20_000 * DAY + 5)} == night


def test_other_days_places_and_keys_are_other_draws(line: om.PackedMechanism) -> None:
    """Over many epochs every report comes with its probability (chi-square, 5 degrees)."""
    sticky = om.StickyReports(line, KEY, period=DAY)
    for place in (0, 3):
        counts = np.zeros(6)
        for epoch in range(3000):
            counts[line.observables.index(sticky.report(place, epoch * DAY))] += 1
        expected = 3000 * line.matrix[place]
        used = expected > 0
        statistic = ((counts[used] - expected[used]) ** 2 / expected[used]).sum()
        assert statistic < 30  # one in 70,000 of such draws is above
        assert not counts[~used].any()
    other = om.StickyReports(line, bytes(32), period=DAY)
    assert any(other.entropy(0, k) != sticky.entropy(0, k) for k in range(3))


def test_the_figures_are_those_of_the_product(line: om.PackedMechanism) -> None:
    """Brute force: the worst log ratio, and δ at the stated ε, over all outputs of three draws."""
    ledger = om.Ledger(line, 1, 1.0, delta="1/1000", between="places")
    visited = [1, 1, 4]
    for place in visited:
        ledger.enter(place)
    matrix = line.matrix[:, line.matrix.any(axis=0)]
    worst, largest = 0.0, 0.0
    for moved in itertools.product(*([p - 1, p + 1] for p in visited)):
        for one, two in ((visited, moved), (moved, visited)):
            p = q = np.ones(1)
            for a, b in zip(one, two, strict=True):
                p = (p[:, None] * matrix[a]).ravel()
                q = (q[:, None] * matrix[b]).ravel()
            worst = max(worst, float(np.log(p / q).max()))
            largest = max(largest, float(np.maximum(0, p - math.exp(ledger.composed) * q).sum()))
    assert ledger.plain == pytest.approx(3.0, rel=1e-8)
    assert ledger.rows == pytest.approx(worst, rel=1e-6)
    assert worst <= ledger.rows <= ledger.plain
    assert largest <= 1e-3


def test_composition_of_many_draws_is_below_their_sum(line: om.PackedMechanism) -> None:
    ledger = om.Ledger(line, 1, 1.0, between="places", order=1.5)
    ledger.enter(2, times=200)
    # the two rows differ by e or 1/e everywhere, as randomised response does, of which the optimal
    # composition is known (Kairouz, Oh and Viswanath 2015): the binomial law of the losses
    chance = math.e / (1 + math.e)
    ways = np.array([math.comb(200, k) * chance**k * (1 - chance) ** (200 - k) for k in range(201)])
    losses = 2.0 * np.arange(201) - 200

    def delta(epsilon: float) -> float:
        return float((ways * np.maximum(0, 1 - np.exp(np.minimum(0, epsilon - losses)))).sum())

    optimal = next(epsilon for epsilon in np.arange(90, 200, 0.1) if delta(epsilon) <= 1e-6)
    assert 0.99 * optimal < ledger.composed < 1.03 * optimal
    assert ledger.composed < ledger.rows <= ledger.plain


def test_beyond_the_budget_nothing_or_the_same_is_reported(line: om.PackedMechanism) -> None:
    for fall_back in ("refuse", "repeat"):
        ledger = om.Ledger(line, 1, 1.0, budget=2.5, fall_back=fall_back, between="places")
        sticky = om.StickyReports(line, KEY, period=DAY, ledger=ledger)
        first = [sticky.report(place, 0.0) for place in (0, 1)]
        assert None not in first
        assert ledger.plain == pytest.approx(2.0, rel=1e-8)
        third = sticky.report(2, 0.0)
        assert third == (None if fall_back == "refuse" else first[1])
        # what was drawn already costs nothing more
        assert sticky.report(0, 100.0) == first[0]
        assert ledger.plain == pytest.approx(2.0, rel=1e-8)


def test_a_ledger_survives_a_restart(line: om.PackedMechanism) -> None:
    ledger = om.Ledger(line, 1, 2.0)
    for place in (0, 0, 5):
        ledger.enter(place)
    kept = json.loads(json.dumps(ledger.to_dict()))
    again = om.Ledger(line, 1, 2.0)
    again.restore(kept)
    assert (again.plain, again.rows, again.composed) == (
        ledger.plain, ledger.rows, ledger.composed
    )  # fmt: skip
    other = om.Ledger(om.load_packed(VECTORS / "grid.omm"), 1, 2.0)
    with pytest.raises(om.ProblemError, match="no ledger of this mechanism"):
        other.restore(kept)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m: om.StickyReports(m, b"short"), "32 bytes"),
        (lambda m: om.StickyReports(m, KEY, period=0), "period"),
        (lambda m: om.StickyReports(m, KEY).report(0, -1.0), "1970"),
        (lambda m: om.StickyReports(m, KEY).report(0, math.nan), "time"),
        (lambda m: om.StickyReports(m, KEY).report(77, 0.0), "77"),
        (lambda m: om.Ledger(m, 0, 1.0), "epsilon"),
        (lambda m: om.Ledger(m, "1/2", 1.0), "ε of 1 that the packed file states"),
        (lambda m: om.Ledger(m, 1, 0.0), "radius"),
        (lambda m: om.Ledger(m, 1, 1.0, delta=2), "delta"),
        (lambda m: om.Ledger(m, 1, 1.0, by="guess"), "by"),
        (lambda m: om.Ledger(m, 1, 1.0, fall_back="hope"), "fall_back"),
    ],
)
def test_bad_arguments_have_words(line: om.PackedMechanism, make: object, said: str) -> None:
    with pytest.raises(om.ProblemError, match=said):
        make(line)  # type: ignore[operator]


def test_a_time_beyond_all_epochs_is_refused(line: om.PackedMechanism) -> None:
    sticky = om.StickyReports(line, bytes(32), period=1)
    with pytest.raises(om.ProblemError, match="time"):
        sticky.report(line.secrets.labels[0], 1e300)


def stated_at(tmp_path: Path, epsilon: float | None) -> om.PackedMechanism:
    """The line of ε = 1 with another ε in its header, and a digest that fits."""
    form, inner, rows, _ = decode((VECTORS / "line.omm").read_bytes()).value
    header = decode(inner)
    (promise,) = header["promises"]
    header["promises"] = [{**promise, "epsilon": epsilon}]
    head = encode(Tag(55799, [form, encode(header), rows, bytes(32)]))[:-32]
    (tmp_path / "m.omm").write_bytes(head + hashlib.sha256(head).digest())
    return om.load_packed(tmp_path / "m.omm")


def test_a_ledger_charges_what_the_file_states(line: om.PackedMechanism, tmp_path: Path) -> None:
    assert om.Ledger(line, None, 1.0).epsilon == 1.0
    assert om.Ledger(line, 1.5, 1.0).epsilon == 1.5
    # an irrational ε is rounded up in the file, and may be given as itself
    grid = om.load_packed(VECTORS / "grid.omm")
    stated = grid.header.promises[0].epsilon
    assert om.Ledger(grid, "ln 2", 1.0).epsilon == stated > math.log(2)
    with pytest.raises(om.ProblemError, match="states no ε"):
        om.Ledger(stated_at(tmp_path, None), None, 1.0)
    assert om.Ledger(stated_at(tmp_path, None), 1, 1.0).epsilon == 1.0


def test_a_header_that_says_less_than_the_rows_is_refused(tmp_path: Path) -> None:
    forged = stated_at(tmp_path, 0.5)
    for epsilon in (None, 0.5, 0.9):
        with pytest.raises(om.VerificationError, match="is charged for them"):
            om.Ledger(forged, epsilon, 1.0, between="places")
    assert om.Ledger(forged, 1, 1.0, between="places").epsilon == 1.0


def test_the_rows_of_a_place_are_looked_at_before_it_is_drawn_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are too many rows to look at all of them beforehand."""
    monkeypatch.setattr("optmech_devices.packed.costs._AT_ONCE", 0)
    ledger = om.Ledger(stated_at(tmp_path, 0.5), None, 1.0, budget=10)
    with pytest.raises(om.VerificationError, match="is charged for them"):
        ledger.allows(2)


@pytest.fixture(scope="module", params=["field.omm", "globe.omm"])
def region(request: pytest.FixtureRequest) -> Any:
    return om.load_packed(VECTORS / request.param)


def apart(found: Any, p: Any, q: Any) -> Any:
    """Distances by the mesh's own measure: of the plane, or along great circles."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    if found.mesh.coordinates == "plane":
        return np.hypot(*(p - q).T)
    (x, y), (u, v) = np.radians(p.T), np.radians(q.T)
    half = np.sin((v - y) / 2) ** 2 + np.cos(y) * np.cos(v) * np.sin((u - x) / 2) ** 2
    return 2 * 6371.0088 * np.arcsin(np.sqrt(half))


def inner(found: Any, count: int, rng: Any) -> Any:
    """Points of the region: means of the corners of its triangles."""
    corners = found.mesh.vertices[found.mesh.triangles]
    weights = rng.dirichlet(np.ones(3), count)
    return np.einsum("nc,ncd->nd", weights, corners[rng.integers(0, len(corners), count)])


def test_fixes_of_one_place_are_one_report_of_a_mechanism_for_every_point(region: Any) -> None:
    rng = np.random.default_rng(4)
    sticky = om.StickyReports(region, KEY, period=DAY)
    points = inner(region, 300, rng)
    columns, _ = region.lattice.shape
    known: dict[int, Any] = {}
    for k, point in enumerate(points.tolist()):
        first = sticky.report(point, 3600.0 * (k % 24))
        assert sticky.report(point, 0.0) == first
        number = region.number(point)
        assert known.setdefault(number, first) == first
        message = b"optmech-sticky/1" + region.digest + number.to_bytes(8, "little") + bytes(8)
        drawn = hmac.digest(KEY, message, "sha256")[: region.draw_bytes]
        assert sticky.entropy(number, 0) == drawn
        # a ten-thousandth of a step away it is the same point of the lattice, or the next one
        near = region.number((np.asarray(point) + region.lattice.step * 1e-4).tolist())
        if near is not None:
            assert abs(near % columns - number % columns) <= 1
            assert abs(near // columns - number // columns) <= 1
    if region.mesh.coordinates == "lonlat":
        west = points[0] - [360.0, 0.0]
        assert sticky.report(west.tolist(), 5.0) == sticky.report(points[0].tolist(), 5.0)


def test_what_positions_lose_by_a_lattice(region: Any) -> None:
    """No pair of 10⁴ is told apart by more than ε times its distance and what is said on top."""
    rng = np.random.default_rng(5)
    points = inner(region, 400, rng)
    epsilon = max(part.epsilon for part in region.header.promises)
    sticky = om.StickyReports(region, KEY)
    assert epsilon * sticky.snap == pytest.approx(0.1)
    columns, _ = region.lattice.shape
    numbers = [region.number(point) for point in points.tolist()]
    taken = region.lattice.points(np.array([[n % columns, n // columns] for n in numbers]))
    # where the region is no rectangle, a point of the lattice beside it counts as one of its border
    inside = np.array([region.mesh.locate_exactly(point) is not None for point in taken.tolist()])
    assert inside.mean() > 0.9
    assert (apart(region, points, taken)[inside] <= sticky.snap / 2).all()
    logs = np.log(region.at(taken[inside]))
    i, j = rng.integers(0, int(inside.sum()), (2, 10_000))
    worst = np.abs(logs[i] - logs[j]).max(axis=1)
    between = apart(region, points[inside][i], points[inside][j])
    assert (worst <= epsilon * (between + sticky.snap + 2 * region.header.snap) + 1e-9).all()


def test_a_ledger_counts_what_a_lattice_adds(region: Any) -> None:
    free = om.StickyReports(region, KEY)
    with pytest.raises(om.ProblemError, match="farther apart"):
        om.StickyReports(region, KEY, ledger=om.Ledger(region, None, free.snap))
    ledger = om.Ledger(region, None, 1 + free.snap, budget=100)
    sticky = om.StickyReports(region, KEY, ledger=ledger)
    point = inner(region, 1, np.random.default_rng(1))[0].tolist()
    assert len({sticky.report(point, 3600.0 * hour) for hour in range(5)}) == 1
    rate = max(part.epsilon for part in region.header.promises)
    once = rate * (1 + free.snap + 2 * region.header.snap)
    assert ledger.plain == pytest.approx(once, rel=1e-6)
    again = om.StickyReports(region, KEY)
    again.restore(sticky.to_dict())
    assert again.to_dict() == sticky.to_dict()


def test_the_lattice_is_one_in_both_languages(region: Any, node: str, tmp_path: Path) -> None:
    """A thousand positions inside, on vertices, outside, a turn away: numbers and reports."""
    rng = np.random.default_rng(6)
    globe = region.mesh.coordinates == "lonlat"
    low, high = region.mesh.vertices.min(axis=0), region.mesh.vertices.max(axis=0)
    wide = rng.uniform(low - (high - low), high + (high - low), (300, 2))
    wide[:, 1] = np.clip(wide[:, 1], -90, 90)
    turns = inner(region, 100, rng) + ([360, 0] if globe else [0, 0])
    points = np.vstack([inner(region, 600, rng), region.mesh.vertices, wide, turns]).tolist()
    (tmp_path / "points.json").write_text(json.dumps(points))
    client = Path(optmech_devices.__file__).parent / "client" / "index.js"
    script = f"""
import {{ readFileSync }} from "node:fs";
import {{ load, StickyReports }} from {json.dumps(client.as_uri())};
const read = (name) => readFileSync(name);
const own = await load(read({json.dumps(str(VECTORS / ("globe.omm" if globe else "field.omm")))}));
const sticky = new StickyReports(own, Uint8Array.from({list(KEY)}));
const out = [];
for (const point of JSON.parse(read({json.dumps(str(tmp_path / "points.json"))})))
  out.push([own.number(point), await sticky.report(point, 86400 * 3)]);
console.log(JSON.stringify([sticky.snap, out, await sticky.toDict()]));
"""
    done = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, check=True, timeout=100
    )
    snap, answers, state = json.loads(done.stdout)
    sticky = om.StickyReports(region, KEY)
    assert snap == sticky.snap
    assert len(answers) == len(points)
    refused = 0
    for point, (number, report) in zip(points, answers, strict=True):
        assert number == region.number(point), point
        own = sticky.report(point, 86400.0 * 3)
        refused += own is None
        assert report == (None if own is None else region.observables.index(own)), point
    assert refused == (0 if region.header.outside == "nearest" else pytest.approx(265, abs=35))
    assert state == sticky.to_dict()


def test_a_mechanism_for_every_point_without_an_epsilon_has_no_lattice(tmp_path: Path) -> None:
    form, inner_, rows, _ = decode((VECTORS / "field.omm").read_bytes()).value
    header = decode(inner_)
    header["promises"] = [{**part, "epsilon": None} for part in header["promises"]]
    head = encode(Tag(55799, [form, encode(header), rows, bytes(32)]))[:-32]
    (tmp_path / "m.omm").write_bytes(head + hashlib.sha256(head).digest())
    with pytest.raises(om.ProblemError, match="states no ε"):
        om.StickyReports(om.load_packed(tmp_path / "m.omm"), KEY)
