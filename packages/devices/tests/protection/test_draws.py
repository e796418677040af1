"""Draws for whole tables: exactly the probabilities, whatever the bytes; repeating with a key."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, strategies as st
from optmech_devices.protection.keyed import Keyed
from scipy.stats import chi2

import optmech as om
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import Table, draw_each, framed
from optmech.spaces.mesh.mechanism import MeshMechanism, draw_control_points
from optmech.spaces.rationals import RationalRows

ROW = st.lists(st.integers(0, 30), min_size=3, max_size=3).filter(any)


def handing(numbers: list[list[int]]) -> Callable[..., bytes]:
    """A source that gives draw k its numbers attempt by attempt, as many bytes as are asked."""

    def source(which: np.ndarray, size: int, attempt: int) -> bytes:
        at = attempt if attempt >= 0 else -attempt - 1
        return b"".join(numbers[k][at].to_bytes(size, "big") for k in which.tolist())

    return source


def share(rows: list[list[int]], row: int, number: int, bits: int) -> int | None:
    """The entry that a number of so many bits draws: that of the interval of the cumulative sums,
    scaled as ``Table`` scales them, which holds it; None where it is to be drawn again."""
    scale = 2**bits // sum(rows[row])
    sums = [total * scale for total in accumulate(rows[row])]
    return next((o for o, total in enumerate(sums) if number < total), None)


@given(st.data())
def test_every_number_draws_its_entry(data: st.DataObject) -> None:
    """Numbers at, next to and between the sums, where one word decides and where two have to."""
    rows = data.draw(st.lists(ROW, min_size=1, max_size=4))
    table = Table.of(rows, limbs=2)
    bits = 64 * table.limbs - 1
    which, numbers, expected = [], [], []
    for r, row in enumerate(rows):
        scale = 2**bits // sum(row)
        ends = [0, *(total * scale for total in accumulate(row))]
        for end in ends:
            for number in (end - 1, end, end + 1, end ^ 1 << 63, end + 2**64):
                if not 0 <= number < 2**bits or share(rows, r, number, bits) is None:
                    continue
                which.append(r)
                # the first bit is noise
                numbers.append([number + (len(which) % 2 << bits)])
                expected.append(share(rows, r, number, bits))
    drawn = draw_each(table, np.array(which), handing(numbers))
    assert drawn.tolist() == expected


def test_a_number_above_the_last_sum_is_drawn_again() -> None:
    rows = [[1, 1, 1], [0, 2, 1]]
    table = Table.of(rows)
    bits = 64 * table.limbs - 1
    top = 2**bits - 1
    assert share(rows, 0, top, bits) is None
    drawn = draw_each(
        table, np.array([0, 1, 0]), handing([[top, top, 0], [0], [top, 2**bits // 2]])
    )
    # entry 1 of the second row begins at 0, as entry 0 has no share
    assert drawn.tolist() == [0, 1, 1]


def test_frequencies_are_the_probabilities() -> None:
    rng = np.random.default_rng(5)
    exact = Numerators.rounded(rng.dirichlet(np.ones(6), 4))
    line, reports = om.Domain.range(4), om.Domain.range(6)
    m = om.Mechanism.of(line, reports, exact)
    secrets = np.arange(80_000) % 4
    drawn = m.draws(secrets)
    for s in range(4):
        expected = np.array([20_000 * n / sum(exact.rows[s]) for n in exact.rows[s]])
        found = np.bincount(drawn[secrets == s], minlength=6)
        # a sound sampler fails this once in a hundred million runs
        assert ((found - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-8, 5)


def test_draws_in_blocks_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optmech.exact.sampler._EACH", 7)
    identity = om.Mechanism(om.Domain.range(5), om.Domain.range(5), np.eye(5))
    secrets = np.random.default_rng(0).integers(0, 5, 100)
    assert identity.draws(secrets).tolist() == secrets.tolist()
    assert identity.sample(secrets.tolist()) == secrets.tolist()
    assert identity.sample(np.array([], dtype=int)) == []


def test_labels_of_many_secrets() -> None:
    grid = om.Grid(2, 3)
    identity = om.Mechanism(grid, grid, np.eye(6))
    assert identity.sample([(1, 2), (0, 0)]) == [(1, 2), (0, 0)]
    assert identity.sample(np.array([[1, 2], [0, 1]])) == [(1, 2), (0, 1)]
    with pytest.raises(ProblemError, match=r"secrets\[1\].*\(7, 7\)"):
        identity.sample([(0, 0), (7, 7)])
    with pytest.raises(ProblemError, match="one draw for each"):
        identity.sample([(0, 0)], size=3)
    for wrong in ([6], [-1], [0.5], [[1]]):
        with pytest.raises(ProblemError, match="secrets"):
            identity.draws(wrong)


def test_a_key_and_a_message_determine_the_draw() -> None:
    """The report worked out from RFC 2104's HMAC and fractions alone."""
    rng = np.random.default_rng(8)
    exact = Numerators.rounded(rng.dirichlet(np.full(9, 0.3), 3))
    key, messages = b"k" * 32, [b"home", b"", b"work"]
    rows = np.array([2, 0, 1])
    drawn = draw_each(exact.table, rows, Keyed(key, messages))
    size = 8 * exact.table.limbs
    for k, message in enumerate(messages):
        content = b""
        for block in range(-(-size // 32)):
            head = b"optmech sticky 1" + bytes(4) + block.to_bytes(4, "big")
            content += hmac.new(key, head + message, hashlib.sha256).digest()
        number = int.from_bytes(content[:size], "big") % 2 ** (8 * size - 1)
        row = exact.rows[rows[k]]
        at = Fraction(number, 2 ** (8 * size - 1)) * 2**exact.bits
        assert drawn[k] == next(o for o, end in enumerate(accumulate(row)) if at < end)


@given(st.lists(st.binary(max_size=6), max_size=4), st.lists(st.binary(max_size=6), max_size=4))
def test_framed_parts_never_meet(one: list[bytes], other: list[bytes]) -> None:
    assert (framed(one) == framed(other)) == (one == other)


def test_fingerprints_tell_mechanisms_apart() -> None:
    line, other = om.Domain.range(2), om.Domain(["a", "b"])
    made = [
        om.Mechanism(line, line, [[0.5, 0.5], [0.25, 0.75]]),
        om.Mechanism(line, line, [[0.5, 0.5], [0.75, 0.25]]),
        om.Mechanism(other, line, [[0.5, 0.5], [0.25, 0.75]]),
        om.Mechanism(line, other, [[0.5, 0.5], [0.25, 0.75]]),
    ]
    assert len({m.fingerprint for m in made}) == 4
    assert made[0].fingerprint == om.Mechanism(line, line, made[0].matrix).fingerprint


# -- every point of a region ---------------------------------------------------------------------

MESH = om.Mesh([[0, 0], [4, 0], [4, 3], [0, 3], [1.5, 1.25]],
               [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])  # fmt: skip


def vertex(point: tuple[float, float], number: int, bits: int) -> int:
    """The vertex that a number of so many bits draws, in fractions."""
    found = MESH.locate_exactly(point)
    assert found is not None
    corners, weights = MESH.corners[found[0]], found[1]
    at = Fraction(number, 2**bits)
    ends = list(accumulate(Fraction(w, sum(weights)) for w in weights))
    return next(c for c, end in zip(corners, ends, strict=True) if at < end)


def test_vertices_are_drawn_with_exactly_their_weights() -> None:
    """At random numbers and at those next to the borders, inside of triangles, on their edges, at
    their corners, and so close to an edge that floats cannot tell."""
    rng = np.random.default_rng(2)
    points = [tuple(p) for p in rng.uniform((0, 0), (4, 3), (40, 2)).tolist()]
    points += [(1.5, 1.25), (0.0, 0.0), (2.0, 0.0), (0.75, 0.625), (4.0, 3.0), (1e-17, 1e-17)]
    points += [(0.75, np.nextafter(0.625, k)) for k in (0, 1)]
    asked, numbers, expected = [], [], []
    for point in points:
        found = MESH.locate_exactly(point)
        assert found is not None
        ends = accumulate(Fraction(w, sum(found[1])) for w in found[1])
        near = [int(end * 2**117) + k * 2**j for end in ends for k in (-1, 0, 1) for j in (0, 64)]
        for number in [*near, *(int(n) << 64 for n in rng.integers(0, 2**53, 4))]:
            if not 0 <= number < 2**117:
                continue
            asked.append(point)
            # 53 of the first 64 bits count, then all of the next 64; the rest is filled up
            numbers.append([number >> 64 << 11, number % 2**64, 2**63])
            expected.append(vertex(point, (number << 64) + 2**63, 181))

    def around(k: int) -> tuple[int, tuple[int, int, int]]:
        found = MESH.locate_exactly(asked[k])
        assert found is not None
        return found

    drawn = draw_control_points(MESH, np.array(asked), handing(numbers), around)
    assert drawn.tolist() == expected


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_reports_at_points_have_their_probabilities(degree: int) -> None:
    rng = np.random.default_rng(3)
    mesh = om.Mesh(MESH.vertices, MESH.triangles, degree=degree)
    m = MeshMechanism(
        mesh, om.Domain.range(3), Numerators.rounded(rng.dirichlet(np.ones(3) / 5, mesh.rows))
    )
    point = (1.0, 2.0)
    drawn = Counter(m.draws_at(np.tile(point, (30_000, 1))).tolist())
    expected = [30_000 * float(p) for p in m.exactly_at(point)]
    assert sum(
        (drawn[o] - e) ** 2 / e for o, e in enumerate(expected)
    ) < chi2.ppf(1 - 1e-8, 2)  # fmt: skip
    with pytest.raises(ProblemError, match="outside of the region"):
        m.draws_at([[9.0, 9.0]])
    with pytest.raises(ProblemError, match="NaN"):
        m.draws_at([[np.nan, 1.0]])


def test_rational_rows_repeat_their_attempts() -> None:
    """A third is no share of a power of two: with a key, too, every entry has its third."""
    thirds = RationalRows(((1, 1, 1),))
    messages = [str(k).encode() for k in range(30_000)]
    drawn = draw_each(thirds.table, np.zeros(30_000, dtype=int), Keyed(b"s" * 32, messages))
    found = np.bincount(drawn, minlength=3)
    assert ((found - 10_000) ** 2 / 10_000).sum() < chi2.ppf(1 - 1e-8, 2)
