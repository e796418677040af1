"""The ledger against what is computed here: charges, adversaries, threads, restored state."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import optmech_devices
import pytest
from optmech_devices.packed import charges
from optmech_devices.packed.documents import mechanism_of
from optmech_devices.packed.file import Parts, Table, decode_parts, encode_parts
from optmech_devices.packed.reach import Reach
from packed.spending import shared
from referee.ledger import exponential, made

import optmech as om

VECTORS = Path(__file__).parent / "vectors"
CLIENT = Path(optmech_devices.__file__).parent / "client"
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def grid() -> om.PackedMechanism:
    """Cells of 2.8 × 2.2 km, ln 2 per km."""
    found = om.load_packed(VECTORS / "grid.omm")
    assert isinstance(found, om.PackedMechanism)
    return found


# -- charges -------------------------------------------------------------------------------------


def test_logarithms_and_divergences_are_rounded_up() -> None:
    rng = random.Random(1)
    with mpmath.workdps(60):
        for _ in range(300):
            under = rng.getrandbits(rng.randint(1, 200)) + 1
            over = under + rng.getrandbits(rng.randint(1, 300)) * rng.randint(0, 1)
            exact = mpmath.log(mpmath.mpf(over) / under) * 2**128
            assert exact <= charges.log_up(over, under) <= exact + 1000
        for _ in range(100):
            one, size = 2 ** rng.choice([4, 16, 48]), rng.randint(1, 5)
            p, q = ([rng.randint(1, one // 8) for _ in range(size)] for _ in range(2))
            p.append(8 * one - sum(p))
            q.append(8 * one - sum(q))
            order = rng.choice(charges.ORDERS)
            total = sum(
                mpmath.mpf(a) / sum(p) * (mpmath.mpf(a) / b) ** (order - 1)
                for a, b in zip(p, q, strict=True)
            )
            exact = mpmath.log(total) / (order - 1)
            found = mpmath.mpf(charges.divergence(p, q, order)) / charges.UNIT
            assert exact <= found <= exact * (1 + 1.1e-8) + 1e-17
            # and no law with these log ratios has more
            most = max(max(a, b) / min(a, b) for a, b in zip(p, q, strict=True))
            bound = charges.within(math.ceil(math.log(most) * 1e18) + 10**4, order)
            assert exact <= mpmath.mpf(bound) / charges.UNIT
        for order, delta in itertools.product(charges.ORDERS, ("1e-300", "1e-06", "0.3", "1.0")):
            exact = mpmath.log((order - 1) / order)
            exact -= (mpmath.log(mpmath.mpf(delta)) + mpmath.log(order)) / (order - 1)
            found = mpmath.mpf(charges.tail(Fraction(delta), order)) / charges.UNIT
            assert max(exact, 0) <= found <= max(exact, 0) * (1 + 1.1e-8) + 1e-17


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 0.8, 1.1, 0.57, 1 / 3, 2.3])
def test_a_budget_of_exactly_n_reports_gives_n(epsilon: float) -> None:
    one, ratio = 2**16, math.exp(-epsilon)
    less = math.ceil(one * ratio / (1 + ratio))
    domain = om.Domain(["a", "b"], [[0.0], [1.0]], "km")
    mechanism = made(domain, [[less, one - less], [one - less, less]], 16, 1.0, epsilon)
    each = om.Ledger(mechanism, None, 1.0, between="places").per_draw
    assert epsilon <= each <= epsilon * (1 + 1e-8)
    for count in (1, 2, 3, 7, 8, 10, 30, 99, 1000):
        # as floats have the product, and as people write it
        for budget in (count * each, float(str(count * Decimal(repr(each))))):
            for by in ("plain", "rows"):
                ledger = om.Ledger(mechanism, None, 1.0, by=by, budget=budget, between="places")
                if count > 1:
                    ledger.enter("a", times=count - 1)
                assert ledger.charge("b")
                if by == "plain":
                    assert not ledger.charge("b")
                    assert ledger.plain == float(str(count * Decimal(repr(each))))


# -- what is charged -----------------------------------------------------------------------------


def test_draws_over_an_edge_cost_what_the_cells_differ_by(grid: om.PackedMechanism) -> None:
    """Two positions a step apart, over an edge or a corner, may be in any two cells that touch."""
    assert isinstance(grid.secrets, om.Grid)
    matrix = grid.matrix[:, grid.matrix.any(axis=0)]
    labels = grid.secrets.labels
    for radius in (1e-6, 0.5, 2.0):
        ledger = om.Ledger(grid, None, radius)
        assert ledger.per_draw == pytest.approx(math.log(2) * math.hypot(*grid.secrets.cell))
        for place, (row, column) in enumerate(labels):
            beside = [
                k for k, (r, c) in enumerate(labels) if max(abs(r - row), abs(c - column)) == 1
            ]
            before = ledger.rows
            ledger.enter(labels[place])
            wanted = max(abs(np.log(matrix[place] / matrix[k])).max() for k in beside)
            assert ledger.rows - before == pytest.approx(wanted, rel=1e-7)
            assert ledger.rows - before > 0.5
        # what was allowed five thousand times
        tight = om.Ledger(grid, None, radius, by="rows", budget=2)
        assert sum(tight.charge(labels[k % 2]) for k in range(5000)) <= 2


@pytest.mark.parametrize("name", ["grid", "plane", "points", "hexagons", "line", "scattered"])
@pytest.mark.parametrize("radius", [1e-6, 0.3, 3.0, 11.0])
def test_every_pair_of_places_that_positions_fall_into_is_charged(name: str, radius: float) -> None:
    """Positions drawn side by side, in twos, and located."""
    if name == "scattered":
        points = np.random.default_rng(4).gamma(1.0, 5.0, (25, 2))
        away = np.linalg.norm(points[None] - points[:, None], axis=2) + np.diag([np.inf] * 25)
        places = om.Domain(range(25), points, "km")
        found = made(places, [[1, 2**16 - 1]] * 25, 16, float(away.min(axis=1).max()), 1.0)
    else:
        found = om.load_packed(VECTORS / f"{name}.omm")
    rng, reach = np.random.default_rng(7), Reach(found, radius, "positions")
    labels, globe = found.secrets.labels, name in ("grid", "points", "hexagons")
    if globe:
        centres = np.array([found.coordinates(label) for label in labels])
        centres[:, 0] %= 360
    else:
        centres = np.array(found.secrets.points)

    def place(position: Any) -> int | None:
        turned = ((position[0] + 180) % 360 - 180, position[1]) if globe else position
        if name == "points":
            # what lies outside is taken for a position of its nearest place
            assert found.header.reach is not None
            if min(angle(position, centre) for centre in centres) > found.header.reach:
                return None
        label = found.locate(turned)
        return None if label is None else labels.index(label)

    def apart(one: Any, two: Any) -> float:
        if not globe:
            return float(np.linalg.norm(one - two))
        return 6371.0088 * math.radians(angle(one, two))

    low, high = centres.min(axis=0), centres.max(axis=0)
    margin = 0.3 * (high - low) + 1e-3
    seen: set[tuple[int, int]] = set()
    # fewer where every pair takes many steps to come that near, more where all pairs are to be seen
    for _ in range(1500 if name == "scattered" else 100 if radius > 1e-3 else 50):
        one, two = rng.uniform(low - margin, high + margin, (2, len(low)))
        a, b = place(one), place(two)
        # nearer and nearer, in different places for as long as that lasts
        while apart(one, two) > radius:
            middle = one + rng.uniform(0.3, 0.7) * (two - one)
            between = place(middle)
            if between != a:
                two, b = middle, between
            else:
                one, a = middle, between
        if a is not None and b is not None and a != b:
            seen.add((a, b))
    assert seen
    for a, b in seen:
        assert b in reach.near(a)
        assert a in reach.near(b)
    if name == "scattered" and radius < 1:
        # and not many others
        assert sum(len(reach.near(k)) for k in range(25)) < 2 * len(seen | {p[::-1] for p in seen})


def sphere(position: Any) -> Any:
    x, y = np.radians(position)
    return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])


def angle(one: Any, two: Any) -> float:
    """Between two positions, in degrees."""
    return math.degrees(2 * math.asin(min(1, float(np.linalg.norm(sphere(one) - sphere(two))) / 2)))


def around(middle: Any, east: Any, north: Any) -> Any:
    """Positions at angles (in degrees) from a position, as vectors."""
    x, y = np.radians(middle)
    right = np.array([-math.sin(x), math.cos(x), 0])
    up = np.array([-math.sin(y) * math.cos(x), -math.sin(y) * math.sin(x), math.cos(y)])
    far = np.radians(np.hypot(east, north))[..., None]
    turn = np.arctan2(north, east)[..., None]
    return np.cos(far) * sphere(middle) + np.sin(far) * (np.cos(turn) * right + np.sin(turn) * up)


def degrees_of(vectors: Any) -> Any:
    return np.degrees(
        np.stack(
            [np.arctan2(vectors[..., 1], vectors[..., 0]), np.arcsin(vectors[..., 2].clip(-1, 1))],
            axis=-1,
        )
    )


GLOBE = [(0, 0), (12.5, 47), (180, 10), (-179.99, -60), (30, 89.9), (0, 90), (77, -90)]


@pytest.mark.parametrize("middle", GLOBE)
@pytest.mark.parametrize("wide", [1e-4, 0.05, 3.0, 40.0, 180.0])
def test_every_pair_of_places_on_the_globe_is_charged(middle: Any, wide: float) -> None:
    """Random places in a disc, positions within the radius of each other, and the nearest place by
    vectors of the test's own."""
    rng = np.random.default_rng(int(1000 * wide) + GLOBE.index(middle))
    for lattice, radius in itertools.product((False, True), (1e-3, 0.1, 0.7, 2.0)):
        if lattice and wide < 90:
            row, column = np.divmod(np.arange(25), 5)
            east, north = (column - 2 + row % 2 / 2) * wide / 4, (row - 2) * wide / 4 * 0.75**0.5
        else:
            far, turn = wide * rng.random(25) ** 0.5, rng.uniform(-math.pi, math.pi, 25)
            east, north = far * np.cos(turn), far * np.sin(turn)
        places = degrees_of(around(middle, east, north))
        own = np.array([sphere(place) for place in places])
        chords = np.linalg.norm(own[None] - own[:, None], axis=2) + np.diag([2.0] * 25)
        least = np.degrees(2 * np.arcsin(np.minimum(1, chords.min(axis=1) / 2)))
        limit = float(least.max())
        domain = om.Domain(range(25), places, "km", coordinates="lonlat")
        found = made(domain, [[1, 2**16 - 1]] * 25, 16, limit, 1.0)
        angular = radius * float(np.median(least))
        reach = Reach(found, math.radians(angular) * 6371.0088, "positions")
        near = [set(reach.near(k)) for k in range(25)]
        one = around(middle, *rng.uniform(-1.2 * wide, 1.2 * wide, (2, 2000)))
        # a step as long as the radius, or shorter, in any direction
        side = np.cross(one, rng.normal(size=one.shape))
        side /= np.linalg.norm(side, axis=1)[:, None]
        step = np.radians(min(angular, 179.0)) * rng.choice([0.3, 1 - 1e-9], 2000)[:, None]
        two = np.cos(step) * one + np.sin(step) * side
        pairs = []
        for where in (one, two):
            apart = np.linalg.norm(where[:, None] - own, axis=2)
            beyond = apart.min(axis=1) > 2 * math.sin(math.radians(min(limit, 180) / 2))
            pairs.append(np.where(beyond, -1, apart.argmin(axis=1)))
        seen = {(int(a), int(b)) for a, b in zip(*pairs, strict=True) if a != b and min(a, b) >= 0}
        assert seen or radius < 0.5
        for a, b in seen:
            assert b in near[a]
            assert a in near[b]
        if lattice and wide < 10 and radius <= 0.1:
            # six around each, and no second ring
            assert max(map(len, near)) <= 10


@pytest.mark.parametrize("by", ["plain", "rows", "composed"])
def test_places_side_by_side_are_charged_however_the_radius_is(by: str) -> None:
    """Where nothing is within a radius between places, nothing would be promised: refused."""
    line = om.load_packed(VECTORS / "line.omm")
    with pytest.raises(om.ProblemError, match="reaches no place"):
        om.Ledger(line, None, 0.5, by=by, between="places")
    ledger = om.Ledger(line, None, 0.5, by=by, budget=100)
    drawn = 0
    while ledger.charge(drawn % 2):
        drawn += 1
    assert 10 < drawn < 200


def test_rows_that_many_places_share_are_compared_once() -> None:
    """A small file of many places and reports: a matrix of them would take 17 GB."""
    count, one = 2**16, 2**16
    rows = [[one // 4, one - one // 4], [one - one // 4, one // 4]]
    small = made(om.Domain(range(2)), rows, 16, None, 1.1)
    header = small.header
    plain = replace(header, promises=(replace(header.promises[0], measure=None),))
    table = Table(16, np.array([5, count // 2]), np.array(rows, dtype=np.uint64))
    places, reports = om.Domain(range(count)), om.Domain(range(count))
    parts = Parts(plain, places, reports, np.arange(count) % 2, table)
    found = mechanism_of(decode_parts(encode_parts(parts), "made"))
    ledger = om.Ledger(found, None, 1.0)
    ledger.enter(0)
    ledger.enter(1)
    assert ledger.per_draw == pytest.approx(1.1, rel=1e-8)
    assert ledger.rows == pytest.approx(2 * math.log(3), rel=1e-8)
    assert 0 < ledger.composed <= ledger.rows


def test_a_plain_epsilon_is_charged_once_whatever_the_distance() -> None:
    one = 2**16
    rows = [[one // 4, one - one // 4], [one - one // 4, one // 4]]
    domain = om.Domain(["a", "b"], [[0.0], [1000.0]], "km")
    found = made(domain, rows, 16, 1000.0, 1.1)
    plain = replace(found.header.promises[0], measure=None)
    object.__setattr__(found.header, "promises", (plain,))
    assert om.Ledger(found, None, 5.0).per_draw == 1.1


def test_a_mechanism_for_every_point_is_charged_by_its_own_rate() -> None:
    field = om.load_packed(VECTORS / "field.omm")
    ledger = om.Ledger(field, None, 0.08, budget=10)
    wanted = 7.5 * (0.08 + 2 * field.header.snap)
    assert wanted <= ledger.per_draw <= wanted * (1 + 1e-8)
    drawn = 0
    while ledger.charge((0.3, 0.3)):
        drawn += 1
    assert drawn == int(10 / ledger.per_draw)
    assert ledger.rows == ledger.plain == pytest.approx(drawn * ledger.per_draw)
    long = om.Ledger(field, None, 0.08, delta=1e-6)
    long.enter((0.3, 0.3), times=1000)
    assert 0.3 * long.plain < long.composed < 0.9 * long.plain


# -- adaptive adversaries ------------------------------------------------------------------------


def adaptive(delta: float, likely: float, fall: float, extra: float) -> om.PackedMechanism:
    """Three pairs of places: a first draw whose rare report leads to the second pair and whose
    other one to the third, each of them as bad as one path's best order lets it be."""
    one = 2**48
    rare = min(0.98, 8 * delta / likely), 2 * delta / (1 - likely)
    falls = fall, 9.1335 - fall + extra, 9.0 + math.log(2)
    rows = []
    for chance, by in zip((likely, *rare), falls, strict=True):
        for p in (chance, chance * math.exp(-by)):
            event = max(1, round(p * one))
            rows.append([event, one - event])
    points = [[100.0 * (k // 2), k % 2] for k in range(6)]
    return made(om.Domain(range(6), points, "km"), rows, 48, 1.0, 12.0)


def lost(
    mechanism: om.PackedMechanism,
    figure: Callable[[tuple[int, int]], float],
    first: tuple[int, int],
) -> Fraction:
    """The exact δ of two draws, at what is stated of each path of places."""
    table = [[int(n) for n in row] for row in mechanism.exact.entries]
    one, out = 2**mechanism.bits, Fraction(0)
    for report, then in enumerate(first):
        factor = exponential(figure((0, then)))
        for other in range(2):
            p = Fraction(table[0][report] * table[then][other], one**2)
            q = Fraction(table[1][report] * table[then + 1][other], one**2)
            out += max(Fraction(0), p - factor * q)
    return out


def test_places_that_depend_on_reports_stay_within_delta() -> None:
    """Two draws, exactly: with the best order of every path δ is passed, with one it is not."""
    delta, passed = 1e-3, 0
    for likely, fall, extra in itertools.product((0.009, 0.02), (1.2, 1.5), (0.0, 0.06)):
        mechanism = adaptive(delta, likely, fall, extra)

        def composed(path: tuple[int, int], order: float, own: Any = mechanism) -> float:
            ledger = om.Ledger(own, None, 1.0, delta=delta, order=order, between="places")
            for place in path:
                ledger.enter(place)
            return ledger.composed

        figures = {
            (path, order): composed(path, order)
            for path in ((0, 2), (0, 4))
            for order in charges.ORDERS
        }
        best = {path: min(figures[path, o] for o in charges.ORDERS) for path in ((0, 2), (0, 4))}
        worst = max(best.values())
        passed += lost(mechanism, lambda path: worst, (2, 4)) > Fraction("0.001")  # noqa: B023
        for order in charges.ORDERS:
            each = lost(mechanism, lambda path: figures[path, order], (2, 4))  # noqa: B023
            assert each <= Fraction("0.001")
    assert passed >= 3


def test_the_order_is_fixed_before_the_first_draw_and_kept(line: om.PackedMechanism) -> None:
    orders = {
        budget: om.Ledger(line, None, 1.0, budget=budget, by="composed", between="places").order
        for budget in (16, 40, 150, 1000)
    }
    assert len(set(orders.values())) > 2
    assert list(orders.values()) == sorted(orders.values(), reverse=True)
    ledger = om.Ledger(line, None, 1.0, order=1.5, between="places")
    for _ in range(300):
        ledger.enter(2)
    assert ledger.order == 1.5
    again = om.Ledger(line, None, 1.0, budget=16, between="places")
    again.restore(ledger.to_dict())
    assert again.order == 1.5
    assert again.composed == ledger.composed
    for order in (1, 0.5, 1.3, 200, math.nan, -2):
        with pytest.raises(om.ProblemError, match="order"):
            om.Ledger(line, None, 1.0, order=order)


# -- threads and processes -----------------------------------------------------------------------


@pytest.mark.parametrize("by", ["plain", "rows", "composed"])
def test_threads_stay_within_a_budget(grid: om.PackedMechanism, by: str) -> None:
    labels = grid.secrets.labels
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            ledger = om.Ledger(grid, None, 1.0, by=by, budget=20.0)
            sticky = om.StickyReports(grid, KEY, period=1, ledger=ledger)
            given: list[Any] = []
            barrier = threading.Barrier(64)

            def report(number: int, own: Any = (barrier, sticky, given)) -> None:
                own[0].wait()
                for time in range(3):
                    own[2].append(own[1].report(labels[number % 12], time))

            threads = [threading.Thread(target=report, args=(k,)) for k in range(64)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert getattr(ledger, by) <= 20.0
            # no report without a draw that was charged; some repeat
            assert 0 < sum(ledger.draws.values()) <= sum(r is not None for r in given)
    finally:
        sys.setswitchinterval(before)


def test_processes_that_are_killed_forget_nothing(tmp_path: Path) -> None:
    draws, handed, killed = shared(tmp_path, 60.0, 8.0, threads=64, processes=8, each=2)
    assert draws - killed <= handed <= draws <= 60
    assert draws > 0


def test_a_ledger_in_a_file_is_refused_where_it_is_none(
    line: om.PackedMechanism, grid: om.PackedMechanism, tmp_path: Path
) -> None:
    path = tmp_path / "spent.json"
    ledger = om.Ledger.open(path, line, None, radius=2.0, budget=100)
    assert ledger.charge(2)
    kept = path.read_text()
    again = om.Ledger.open(path, line, None, radius=2.0)
    assert again.charge(3)
    assert ledger.draws == again.draws == {2: 1, 3: 1}
    with pytest.raises(om.ProblemError, match="of its own"):
        again.restore(json.loads(kept))
    for options in (
        {"order": 2 if ledger.order != 2 else 3},
        {"delta": 1e-5},
        {"between": "places"},
    ):
        with pytest.raises(om.ProblemError, match="was kept for"):
            om.Ledger.open(path, line, None, radius=2.0, **options)
    with pytest.raises(om.ProblemError, match="was kept for radius"):
        om.Ledger.open(path, line, None, radius=2.5)
    with pytest.raises(om.ProblemError, match="redesigned=True"):
        om.Ledger.open(path, grid, None, radius=2.0)
    for content in ("", "[]", "{", kept[: len(kept) // 2], kept.replace("[[2, 1]]", "[[2, 7]]")):
        path.write_text(content)
        with pytest.raises(om.ProblemError, match="is no ledger"):
            om.Ledger.open(path, line, None, radius=2.0)
        with pytest.raises(om.ProblemError, match="is no ledger"):
            ledger.charge(2)
        assert path.read_text() == content
    path.unlink()
    with pytest.raises(om.ProblemError, match="is gone"):
        ledger.charge(2)
    with pytest.raises(om.ProblemError):
        om.Ledger.open(tmp_path / "none" / "spent.json", line, None, radius=2.0)


def test_a_ledgers_file_is_one_under_all_its_names_and_its_owners(
    line: om.PackedMechanism, tmp_path: Path
) -> None:
    path, link = tmp_path / "spent.json", tmp_path / "link.json"
    link.symlink_to(path)
    ledgers = [om.Ledger.open(name, line, None, radius=2.0, budget=1e6) for name in (link, path)]
    threads = [
        threading.Thread(target=lambda own=own: [own.charge(2) for _ in range(30)])
        for own in ledgers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledgers[0].draws == ledgers[1].draws == {2: 60}
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "hard.json").hardlink_to(path)
    with pytest.raises(om.ProblemError, match="two names"):
        ledgers[0].charge(2)


def test_what_cannot_be_written_is_not_drawn(
    line: om.PackedMechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = om.Ledger.open(tmp_path / "spent.json", line, None, radius=2.0)
    sticky = om.StickyReports(line, KEY, ledger=ledger)

    def full(*_: object) -> None:
        raise om.ProblemError("no room", where="disk")

    monkeypatch.setattr("optmech_devices.packed.ledger.write_atomically", full)
    for _ in range(2):
        with pytest.raises(om.ProblemError, match="no room"):
            sticky.report(2, 0.0)
    monkeypatch.undo()
    assert ledger.draws == {}
    assert sticky.report(2, 0.0) is not None
    assert ledger.draws == {2: 1}


# -- another mechanism ---------------------------------------------------------------------------


def test_the_ledger_of_another_mechanism_is_refused(
    line: om.PackedMechanism, grid: om.PackedMechanism
) -> None:
    with pytest.raises(om.ProblemError, match="another packed file"):
        om.StickyReports(line, KEY, ledger=om.Ledger(grid, None, 1.0))


def test_what_was_spent_counts_with_a_redesigned_file(
    line: om.PackedMechanism, tmp_path: Path
) -> None:
    """The same places with a weaker promise: the budget goes on where it was."""
    rows = [[int(n) for n in row] for row in line.exact.entries]
    newer = made(line.secrets, [row[::-1] for row in rows[::-1]], line.bits, 1.0, 1.5)
    old = om.Ledger(line, None, 1.0, budget=5, between="places", by="rows")
    while old.charge(2):
        pass
    spent = old.rows
    new = om.Ledger(newer, None, 1.0, budget=8, between="places", by="rows")
    with pytest.raises(om.ProblemError, match="no ledger of this mechanism"):
        new.restore(old.to_dict())
    new.restore(old.to_dict(), redesigned=True)
    assert (new.plain, new.rows, new.composed, new.order) == (
        old.plain, old.rows, old.composed, old.order,
    )  # fmt: skip
    assert new.draws == {}
    count = 0
    while new.charge(3):
        count += 1
    fresh = om.Ledger(newer, None, 1.0, between="places")
    fresh.enter(3)
    assert count == int((8 - spent) / fresh.rows) > 0
    third = om.Ledger(line, None, 1.0, between="places")
    third.restore(new.to_dict(), redesigned=True)
    assert third.rows == new.rows
    # in a file: who still draws by the old mechanism is refused
    path = tmp_path / "spent.json"
    first = om.Ledger.open(path, line, None, radius=1.0)
    assert first.charge(1)
    second = om.Ledger.open(path, newer, None, radius=1.0, redesigned=True)
    assert second.plain == 2.0  # one draw, over an edge
    with pytest.raises(om.ProblemError, match="no ledger of this mechanism"):
        first.charge(1)


def changed(state: dict[str, Any], **entries: Any) -> dict[str, Any]:
    return {**state, **entries}


HOSTILE: list[Callable[[dict[str, Any]], Any]] = [
    lambda s: [],
    lambda s: {},
    lambda s: None,
    lambda s: changed(s, more=1),
    lambda s: changed(s, format="optmech-ledger/2"),
    lambda s: changed(s, file=None),
    lambda s: changed(s, file=s["file"].upper()),
    lambda s: changed(s, radius=3.0),
    lambda s: changed(s, radius=None),
    lambda s: changed(s, radius=True),
    lambda s: changed(s, delta=1e-5),
    lambda s: changed(s, delta="1e-06"),
    lambda s: changed(s, order=1),
    lambda s: changed(s, order=None),
    lambda s: changed(s, order=1.3),
    lambda s: changed(s, between="anywhere"),
    lambda s: changed(s, draws=None),
    lambda s: changed(s, draws=[[0, 2], [0, 0], [5, 1]]),
    lambda s: changed(s, draws=[[0, 1], [0, 1], [5, 1]]),
    lambda s: changed(s, draws=[[0, -1]]),
    lambda s: changed(s, draws=[[0, 1.0], [5, 1]]),
    lambda s: changed(s, draws=[[0, True]]),
    lambda s: changed(s, draws=[[99, 3]]),
    lambda s: changed(s, draws=[[0, 3]]),
    lambda s: changed(s, draws=[[0, 2, 5], [5, 1]]),
    lambda s: changed(s, draws=[[0, 10**400]]),
    lambda s: changed(s, draws=[[0, 2**53]], spent={**s["spent"], "draws": 2**53}),
    lambda s: changed(s, spent={**s["spent"], "draws": 2}),
    lambda s: changed(s, spent={**s["spent"], "rows": "0"}),
    lambda s: changed(s, spent={**s["spent"], "divergence": "0"}),
    lambda s: changed(s, spent={**s["spent"], "rows": 6}),
    lambda s: changed(s, spent={**s["spent"], "rows": "1e3"}),
    lambda s: changed(s, before={**s["before"], "rows": "-1"}),
    lambda s: changed(s, before={**s["before"], "rows": "0.50"}),
    lambda s: changed(s, before={**s["before"], "draws": 2**53 - 1}),
    lambda s: changed(s, before=None),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_state_that_is_none_is_refused(line: om.PackedMechanism, number: int) -> None:
    ledger = om.Ledger(line, None, 2.0)
    for place in (0, 0, 5):
        ledger.enter(place)
    state = json.loads(json.dumps(ledger.to_dict()))
    again = om.Ledger(line, None, 2.0)
    with pytest.raises(om.ProblemError, match="ledger"):
        again.restore(HOSTILE[number](state))
    assert again.draws == {}
    assert again.plain == again.rows == 0
    again.restore(state)
    assert again.to_dict() == state


# -- clocks --------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_charges_again(line: om.PackedMechanism) -> None:
    ledger = om.Ledger(line, None, 1.0)
    sticky = om.StickyReports(line, KEY, period=10, ledger=ledger)
    for time in (5, 15, 5, 6, 15):
        sticky.report(2, time)
        sticky.report(3, 25)
    assert ledger.draws == {2: 4, 3: 1}


def test_sticky_reports_survive_a_restart(line: om.PackedMechanism) -> None:
    ledger = om.Ledger(line, None, 1.0)
    sticky = om.StickyReports(line, KEY, ledger=ledger)
    first = sticky.report(2, 2.0**62)
    state = json.loads(json.dumps(sticky.to_dict()))
    again = om.StickyReports(line, KEY, ledger=ledger)
    again.restore(state)
    assert again.report(2, 2.0**62) == first
    assert ledger.draws == {2: 1}
    for other in (
        om.StickyReports(line, bytes(32)),
        om.StickyReports(line, KEY, period=3600),
        om.StickyReports(om.load_packed(VECTORS / "plane.omm"), KEY),
    ):
        with pytest.raises(om.ProblemError, match="another key, file or period"):
            other.restore(state)
    for wrong in ([], {}, {**state, "entered": [[9, "1"]]}, {**state, "entered": [["2", "1"]]},
                  {**state, "entered": 5}, {**state, "entered": [[1]]},
                  {**state, "entered": [[1, str(2**64)]]}, {**state, "entered": [[1, "-1"]]},
                  {**state, "last": 99}, {**state, "last": True}):  # fmt: skip
        with pytest.raises(om.ProblemError):
            again.restore(wrong)


@pytest.mark.parametrize("time", [math.inf, math.nan, -1e-9, 2.0**64 * 10, 10**400, "5", None, "٥"])
def test_a_time_that_is_none_is_refused_before_it_is_charged(
    line: om.PackedMechanism, time: Any
) -> None:
    ledger = om.Ledger(line, None, 1.0)
    sticky = om.StickyReports(line, KEY, period=10, ledger=ledger)
    with pytest.raises(om.ProblemError, match="time"):
        sticky.report(2, time)
    assert ledger.draws == {}
    assert sticky.report(2, (2**64 - 1) * 10) is not None


# -- JavaScript ----------------------------------------------------------------------------------


def asked(node: str, script: str, given: Any, tmp_path: Path) -> Any:
    """What a script for Node writes; ``given`` is its ``given``, ``client`` the module."""
    (tmp_path / "given.json").write_text(json.dumps(given))
    head = f"""
        import {{ readFileSync }} from "node:fs";
        import * as client from {json.dumps((CLIENT / "index.js").as_uri())};
        const vectors = {json.dumps(str(VECTORS))};
        const given = JSON.parse(readFileSync({json.dumps(str(tmp_path / "given.json"))}));
    """
    run = subprocess.run(
        [node, "--input-type=module", "-e", head + script], capture_output=True, check=True
    )
    return json.loads(run.stdout)


def history(rng: random.Random, name: str, found: Any) -> dict[str, Any]:
    """A ledger of a file, and what happens to it."""
    if isinstance(found, om.Earth):
        places = [found.locate((rng.uniform(-180, 180), y)) for y in (90, -90, 0, 50, 50, 50.001)]
    else:
        places = list(range(len(found.secrets)))
    options = {
        "by": rng.choice(["plain", "rows", "composed"]),
        "delta": rng.choice([1e-6, 1e-3, 0.2]),
        "between": rng.choice(["positions", "places"]),
        "order": rng.choice([None, None, 1.5, 3, 129]),
        "budget": rng.choice([None, 0, 1, 3 * 0.7, rng.uniform(1, 60), 20.0]),
    }
    steps = [
        [rng.choice(places), rng.choice([0.0, 5.0, 9.99, 10.0, 2**53 + 2.0, rng.uniform(0, 50)])]
        for _ in range(rng.randrange(12))
    ]
    return {
        "file": name,
        "radius": rng.choice([0.01, 1.0, 3.0, rng.uniform(1, 30)]),
        "fallBack": rng.choice(["refuse", "repeat"]),
        "options": options,
        "steps": steps,
        "restart": rng.randrange(12),
    }


def lived(given: dict[str, Any], mechanism: Any) -> Any:
    """What Python's ledger and sticky reports make of a history."""

    def begun() -> tuple[om.Ledger, om.StickyReports]:
        ledger = om.Ledger(
            mechanism, None, given["radius"], fall_back=given["fallBack"], **given["options"]
        )
        return ledger, om.StickyReports(mechanism, KEY, period=10, ledger=ledger)

    try:
        ledger, sticky = begun()
    except om.ProblemError:
        return "refused"
    said: list[Any] = []
    for k, (place, time) in enumerate(given["steps"]):
        if k == given["restart"]:
            states = ledger.to_dict(), sticky.to_dict()
            ledger, sticky = begun()
            ledger.restore(states[0])
            sticky.restore(states[1])
        report = sticky.report(mechanism.secrets.labels[place], time)
        number = None if report is None else mechanism.observables.index(report)
        said.append([number, ledger.plain, ledger.rows, ledger.composed])
    return [said, ledger.to_dict(), sticky.to_dict(), ledger.order, ledger.per_draw]


LIVED = """
const loaded = {};
const key = Uint8Array.from({ length: 32 }, (_, k) => k);
const out = [];
for (const one of given) {
  loaded[one.file] ??= await client.load(readFileSync(`${vectors}/${one.file}.omm`));
  const mechanism = loaded[one.file];
  const begun = () => {
    const options = { ...one.options, fallBack: one.fallBack };
    const ledger = new client.Ledger(mechanism, null, one.radius, options);
    return [ledger, new client.StickyReports(mechanism, key, { period: 10, ledger })];
  };
  let ledger, sticky;
  try {
    [ledger, sticky] = begun();
  } catch (error) {
    out.push(error instanceof client.PackedError ? "refused" : String(error.stack));
    continue;
  }
  const said = [];
  for (const [k, [place, time]] of one.steps.entries()) {
    if (k === one.restart) {
      const states = [ledger.toDict(), await sticky.toDict()];
      [ledger, sticky] = begun();
      ledger.restore(states[0]);
      await sticky.restore(states[1]);
    }
    const report = await sticky.report(place, time);
    const { plain, rows, composed } = ledger.figures();
    said.push([report, plain, rows, composed]);
  }
  out.push([said, ledger.toDict(), await sticky.toDict(), ledger.order, ledger.perDraw]);
}
console.log(JSON.stringify(out));
"""


def test_hundreds_of_histories_end_alike_in_both_languages(node: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    names = ["grid", "points", "hexagons", "line", "plane"]
    loaded = {name: om.load(VECTORS / f"{name}.omm") for name in [*names, "earth"]}
    drawn = [*(rng.choice(names) for _ in range(150)), *["earth"] * 10]
    given = [history(rng, name, loaded[name]) for name in drawn]
    found = asked(node, LIVED, given, tmp_path)
    refused = 0
    for one, theirs in zip(given, found, strict=True):
        mine = lived(one, loaded[one["file"]])
        assert theirs == (mine if mine == "refused" else json.loads(json.dumps(mine))), one
        refused += mine == "refused"
    assert 0 < refused < 60


def test_hostile_states_are_refused_in_node_too(
    node: str, line: om.PackedMechanism, tmp_path: Path
) -> None:
    ledger = om.Ledger(line, None, 2.0)
    for place in (0, 0, 5):
        ledger.enter(place)
    state = ledger.to_dict()
    # 1.0 is 1 in JavaScript
    given = [s for make in HOSTILE if "1.0" not in json.dumps(s := make(state))]
    assert len(given) > 25
    script = """
        const mechanism = await client.load(readFileSync(`${vectors}/line.omm`));
        const said = given.map((state) => {
          const ledger = new client.Ledger(mechanism, null, 2);
          try { ledger.restore(state); return JSON.stringify(state); }
          catch (error) {
            const good = error instanceof client.PackedError && !ledger.draws.size;
            return good ? "refused" : String(error.stack);
          }
        });
        console.log(JSON.stringify(said));
    """
    assert asked(node, script, given, tmp_path) == ["refused"] * len(given)


def test_bad_arguments_and_buffers_in_node(node: str, tmp_path: Path) -> None:
    script = """
        const { load, Ledger, PackedError, StickyReports } = client;
        const key = new Uint8Array(32);
        const file = (name) => readFileSync(`${vectors}/${name}.omm`);
        const [line, grid, field] = await Promise.all(
          ["line", "grid", "field"].map((name) => load(file(name))));
        const out = {};
        const refused = async (name, action) => {
          try { out[name] = String(await action()); }
          catch (error) {
            out[name] = error instanceof PackedError ? "refused" : String(error.stack);
          }
        };
        for (const signer of [undefined, "", null, new Uint8Array(31), [], "a key"]) {
          await refused(`signer ${signer} ${typeof signer}`,
            () => load(readFileSync(`${vectors}/line.omm`), { signer }));
        }
        const other = new Ledger(grid, null, 1);
        await refused("another", () => new StickyReports(line, key, { ledger: other }));
        for (const time of [Infinity, NaN, -1, 2 ** 64 * 10, "5", null]) {
          const ledger = new Ledger(line, null, 1);
          const sticky = new StickyReports(line, key, { period: 10, ledger });
          await refused(`time ${time}`, () => sticky.report(2, time));
          out[`charged ${time}`] = ledger.draws.size;
        }
        const sticky = new StickyReports(line, key);
        for (const epoch of [2n ** 64n, -1n, 1.5]) {
          await refused(`epoch ${epoch}`, () => sticky.entropy(0, epoch));
        }
        for (const place of [-1, 6, 1.5, "2"]) {
          await refused(`place ${place}`, () => sticky.report(place, 0));
          await refused(`entered ${place}`, () => new Ledger(line, null, 1).enter(place));
        }
        for (const options of [{ budget: NaN }, { order: 1.3 }, { between: "x" }, { delta: 2 },
          { between: "places" }]) {
          await refused(JSON.stringify(options), () => new Ledger(line, null, 0.5, options));
        }
        // what the caller does to the buffer, meanwhile or afterwards, changes nothing
        const same = async (mechanism) => {
          const reports = new StickyReports(mechanism, key);
          const drawn = await Promise.all([0, 1, 2, 3, 4, 5].map((k) => reports.report(k, 5)));
          return JSON.stringify([drawn, mechanism.probabilities(3)]);
        };
        const wanted = await same(line);
        const content = readFileSync(`${vectors}/line.omm`);
        for (const buffer of [Buffer.from(content), new Uint8Array(content),
          content.buffer.slice(content.byteOffset, content.byteOffset + content.length)]) {
          const reading = load(buffer);
          new Uint8Array(buffer.buffer ?? buffer).fill(7);
          const mechanism = await reading;
          out[buffer.constructor.name] = (await same(mechanism)) === wanted;
        }
        // nothing is given out unless it was saved, and a report waits for the one before
        const ledger = new Ledger(line, null, 1);
        let broken = true;
        const saved = new StickyReports(line, key, { ledger,
          save: async () => { if (broken) throw new PackedError("disk"); } });
        const both = [saved.report(2, 5), saved.report(2, 5)];
        await refused("first", () => both[0]);
        await refused("second", () => both[1]);
        broken = false;
        out.after = (await saved.report(2, 5)) !== null;
        out.draws = ledger.draws.get(2);
        const mesh = new Ledger(field, null, 0.4, { budget: 3.1 });
        out.mesh = [mesh.perDraw, mesh.charge([0.3, 0.3]), mesh.figures().rows];
        console.log(JSON.stringify(out));
    """
    found = asked(node, script, None, tmp_path)
    field = om.load_packed(VECTORS / "field.omm")
    mesh = om.Ledger(field, None, 0.4, budget=3.1)
    assert found.pop("mesh") == [mesh.per_draw, True, mesh.per_draw]
    assert found.pop("draws") == 3
    kept = {name: found.pop(name) for name in ("Buffer", "Uint8Array", "ArrayBuffer", "after")}
    assert kept == dict.fromkeys(kept, True)
    charged = [found.pop(name) for name in list(found) if name.startswith("charged")]
    assert charged == [0] * 6
    assert found == dict.fromkeys(found, "refused")


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 1.5, 2**53, 2**64, 1e300, "", "0", "1", "0.5", "1.0", "01", "٣",
    [], [[0, 1]], [[0, 1], [0, 1]], {}, "positions", "optmech-ledger/1", "a" * 64,
]  # fmt: skip


def mutated(rng: random.Random, state: dict[str, Any]) -> Any:
    """A state with some entries replaced, removed, doubled or added."""
    out = json.loads(json.dumps(state))
    for _ in range(rng.randrange(3)):
        node, keys = out, list(out)
        while keys:
            key = rng.choice(keys)
            if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.7:
                node = node[key]
                keys = list(node) if isinstance(node, dict) else list(range(len(node)))
                continue
            chance = rng.random()
            if chance < 0.2:
                del node[key]
            elif chance < 0.3:
                node.update(more=1) if isinstance(node, dict) else node.append(node[key])
            else:
                node[key] = rng.choice(VALUES)
            break
    return out


def test_mutated_states_are_taken_or_refused_alike(
    node: str, line: om.PackedMechanism, tmp_path: Path
) -> None:
    rng = random.Random(6)
    states = []
    for _ in range(100):
        ledger = om.Ledger(line, None, 1.0, delta=1.0)
        for _ in range(rng.randrange(4)):
            ledger.enter(rng.randrange(6), times=rng.randrange(1, 4))
        states.append(ledger.to_dict())
    given = [mutated(rng, rng.choice(states)) for _ in range(250)]
    script = """
        const mechanism = await client.load(readFileSync(`${vectors}/line.omm`));
        console.log(JSON.stringify(given.map((state) => {
          const ledger = new client.Ledger(mechanism, null, 1, { delta: 1 });
          try {
            ledger.restore(state);
            return Object.values(ledger.figures());
          } catch (error) {
            return error instanceof client.PackedError ? "refused" : String(error.stack);
          }
        })));
    """
    taken = 0
    for state, theirs in zip(given, asked(node, script, given, tmp_path), strict=True):
        ledger = om.Ledger(line, None, 1.0, delta=1.0)
        mine: Any = "refused"
        try:
            ledger.restore(state)
            mine = [ledger.plain, ledger.rows, ledger.composed]
        except om.ProblemError:
            pass
        assert theirs == mine, state
        taken += mine != "refused"
    assert 50 < taken < 200


@pytest.mark.parametrize("radius", ["0.4", "0.123456789123", "0.4000000000004", "1"])
def test_a_charge_for_every_point_is_never_below_the_product(radius: str) -> None:
    """ε · (radius + 2 · snap) of the decimals as written, up to nine digits."""
    field = om.load_packed(VECTORS / "field.omm")
    assert isinstance(field, om.PackedEverywhere)
    (epsilon,) = {part.epsilon for part in field.header.promises}
    product = Fraction(repr(epsilon)) * (Fraction(radius) + 2 * Fraction(repr(field.header.snap)))
    charged = Fraction(str(om.Ledger(field, None, float(radius)).per_draw))
    assert product <= charged <= product * (1 + Fraction(1, 10**8))
