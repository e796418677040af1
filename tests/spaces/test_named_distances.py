"""A file's distance has a name only where it is that distance, whatever its unit is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.reading.sealed import seal

SCALES = [1e-300, 1e-200, 1e-151, 1e-30, 1.0, 1e30, 1e151]


def places(name: str, scale: float) -> om.Domain:
    if name == "haversine":
        return om.Domain.geographic("abc", np.array([[0, 0], [1, 0], [1, 2]]) * min(scale, 1.0))
    corners = {
        "euclidean": [[0, 0, 0], [1, 0, 2], [1, 2, 0]],
        "manhattan": [[0, 0], [1, 0], [1, 2]],
    }
    return om.Domain("abc", np.array(corners[name]) * scale, "parsec")


def saved(path: Path, distance: om.Distance, domain: om.Domain, rate: float) -> Path:
    private = om.MetricPrivacy(rate, distance)
    prior = om.Prior.uniform(domain)
    om.solve(om.Problem(prior, om.distances.hamming(), constraints=[private])).save(path)
    return path


def accepted(path: Path) -> tuple[bool, bool]:
    try:
        om.Design.load(path)
    except om.errors.OptmechError:
        return False, audit.main([str(path)]) == 0
    return True, audit.main([str(path)]) == 0


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "haversine"])
@pytest.mark.parametrize("scale", SCALES)
def test_no_other_distance_goes_by_the_name(name: str, scale: float, tmp_path: Path) -> None:
    domain = places(name, scale)
    true = getattr(om.distances, name)()
    values = true(domain, domain)
    assert (values[~np.eye(3, dtype=bool)] > 0).all()
    rate = min(1 / float(values.max()), 1e300)
    honest = saved(tmp_path / "honest.json", true, domain, rate)
    assert accepted(honest) == (True, True)
    assert om.Design.load(honest).loss > 0
    for factor in (10.0, 1 + 1e-6):
        given = om.distances.matrix(values * factor)
        path = saved(tmp_path / "given.json", given, domain, rate)
        assert accepted(path) == (True, True)
        body = json.loads(path.read_text())
        del body["digest"]
        body["problem"]["constraints"][0]["distance"]["name"] = name
        path.write_bytes(seal(json.dumps(body).encode()))
        assert accepted(path) == (False, False)


def test_distances_do_not_underflow() -> None:
    """3-4-5 and 2-3-6-7, in any unit; a degree of longitude at the equator is πR/180."""
    for scale in SCALES:
        flat = om.Domain("ab", np.array([[0, 0], [3, 4]]) * scale)
        deep = om.Domain("ab", np.array([[0, 0, 0], [2, 3, 6]]) * scale)
        for domain, whole in ((flat, 5), (deep, 7)):
            found = om.distances.euclidean()(domain, domain)[0, 1]
            assert found == pytest.approx(whole * scale, rel=1e-15)
        near = om.Domain.geographic("ab", np.array([[0, 0], [1, 0]]) * min(scale, 1.0))
        degree = np.pi / 180 * 6371.0088
        found = om.distances.haversine()(near, near)[0, 1]
        assert found == pytest.approx(degree * min(scale, 1.0), rel=1e-9)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", ["euclidean", "manhattan"])
def test_a_distance_beyond_floats_has_no_name(name: str, tmp_path: Path) -> None:
    true = getattr(om.distances, name)()
    path = saved(tmp_path / "far.json", true, places(name, 1.0), 1.0)
    body = json.loads(path.read_text())
    del body["digest"]
    for domain in (body["problem"]["secrets"], body["problem"]["observables"]):
        far = np.zeros((3, len(domain["points"][0])))
        far[:, :2] = [[-1.7e308, 0], [1.7e308, 0], [0, 1.7e308]]
        domain["points"] = far.tolist()
    path.write_bytes(seal(json.dumps(body).encode()))
    assert accepted(path) == (False, False)
