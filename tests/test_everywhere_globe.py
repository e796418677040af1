"""Designs for every point of a region of the globe, proved again by the audit."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from optmech_audit import globe, numbers

import optmech as om
from optmech.reading.sealed import seal

AWAY = om.distances.haversine()
PLACES = np.array([(x, y) for y in range(3) for x in range(4)]) * [0.02, 0.01] + [12.4, 41.8]


def made(points: np.ndarray) -> om.Design:
    places = om.Domain.geographic(range(len(points)), points)
    promise = om.MetricPrivacy(1, AWAY, everywhere=om.Mesh.around(places, 2))
    return om.solve(om.Problem(om.Prior.uniform(places), AWAY, constraints=[promise]), gap=1e-3)


@pytest.fixture(scope="module")
def design() -> om.Design:
    return made(PLACES)


@pytest.fixture
def saved(design: om.Design, tmp_path: Path) -> Path:
    design.save(tmp_path / "d.json")
    return tmp_path / "d.json"


def test_a_design_in_degrees_is_proved_on_its_own(saved: Path) -> None:
    lines, unchecked = audit.judge(str(saved))
    assert any("each within ε at all points" in line for line in lines)
    assert any("by the places alone" in line for line in lines)
    assert "cells" not in unchecked


def test_places_on_both_sides_of_the_date_line(tmp_path: Path) -> None:
    made(PLACES + np.array([167.57, 0])).save(tmp_path / "d.json")
    assert audit.audit(str(tmp_path / "d.json"))


def vertex(body: dict) -> None:
    body["problem"]["constraints"][0]["everywhere"]["vertices"][5][1] += 0.003


def epsilon(body: dict) -> None:
    body["problem"]["constraints"][0]["epsilon"] = 0.9999


def north(body: dict) -> None:
    """The same triangles where a degree of longitude is shorter."""
    mesh = body["problem"]["constraints"][0]["everywhere"]
    mesh["vertices"] = [[x, y + 5] for x, y in mesh["vertices"]]


def plane(body: dict) -> None:
    mesh = body["problem"]["constraints"][0]["everywhere"]
    mesh["coordinates"], mesh["unit"] = "plane", "km"


def euclidean(body: dict) -> None:
    body["problem"]["constraints"][0]["distance"] = "euclidean"


def higher(name: str):
    def change(body: dict) -> None:
        body["result"][name] *= 1 + 1e-6

    return change


@pytest.mark.parametrize(
    "change",
    [vertex, epsilon, north, plane, euclidean, higher("bound"), higher("lower_bound")],
    ids=lambda change: change.__qualname__,
)
def test_alterations_are_refused(saved: Path, change) -> None:
    body = json.loads(saved.read_text())
    del body["digest"]
    change(body)
    saved.write_bytes(seal(json.dumps(body).encode()))
    with suppress(om.VerificationError, om.ProblemError):
        assert not om.check(saved).passed
    with pytest.raises(audit.Fault):
        audit.audit(str(saved))


BOXES = [(12.2, 41.7, 12.8, 42.1), (-75.0, -1.0, -74.5, 0.5), (100.0, -64.3, 100.5, -63.9)]


@pytest.mark.parametrize("box", BOXES)
def test_lines_of_the_map_are_no_longer_than_great_circles(box, rng) -> None:
    mesh = om.Mesh.grid(box, 30, coordinates="lonlat")
    counts = np.array(globe.kilometres(mesh.vertices.tolist(), mesh.corners))
    # two implementations, one in balls and one in fractions
    np.testing.assert_array_equal(counts, mesh.units)
    least = counts.min(axis=0)
    low, high = np.array(box[:2]), np.array(box[2:])
    for _ in range(200):
        p, q = rng.uniform(low, high), rng.uniform(low, high)
        straight = math.hypot(*((p - q) * least))
        ends = om.Domain.geographic("pq", [p, q])
        assert straight <= AWAY(ends, ends)[0, 1] * (1 + 1e-12)
    # and hardly shorter: within a triangle of 30 km
    assert least[1] == pytest.approx(6371.0088 * math.pi / 180, rel=1e-3)
    middle = math.cos(math.radians(max(abs(box[1]), abs(box[3]))))
    assert least[0] == pytest.approx(6371.0088 * math.pi / 180 * middle, rel=1e-3)


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(7, 5), Fraction(2), Fraction(1, 10**9)])
def test_enclosures_of_the_audit(x: Fraction) -> None:
    import flint

    with flint.ctx.workprec(400):
        exact = flint.arb(flint.fmpq(x.numerator, x.denominator))
        known = [exact.sin(), exact.cos(), flint.arb.pi()]
        found = [globe.sine(x), globe.cosine(x), globe.half_turn()]
        if x < 1:
            known.append(exact.asin())
            found.append(globe.arc_sine(numbers.Interval(x, x)))
        for (low, high), value in zip(found, known, strict=True):
            assert flint.arb(flint.fmpq(low.numerator, low.denominator)) <= value
            assert value <= flint.arb(flint.fmpq(high.numerator, high.denominator))
            assert 0 <= high - low < Fraction(1, 2**200)
