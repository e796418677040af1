"""One rule for the claim of a status, in files of every kind: it is the one that follows from the
gap. Times are finite and not below zero."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from each import each

import optmech as om
from optmech.reading.sealed import seal


def _design() -> Any:
    euclidean = om.distances.euclidean()
    private = om.MetricPrivacy(1, euclidean)
    return om.solve(
        om.Problem(om.Prior.uniform(om.Domain.range(3)), euclidean, constraints=[private])
    )


def _everywhere() -> Any:
    euclidean = om.distances.euclidean()
    places = om.Domain(range(3), [[0.2, 0.3], [0.7, 0.4], [0.5, 0.9]])
    private = om.MetricPrivacy(1, euclidean, everywhere=om.Mesh.grid((0, 0, 1, 1), 1))
    return om.solve(om.Problem(om.Prior.uniform(places), euclidean, constraints=[private]))


def _coupling() -> Any:
    apart = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    return om.mechanisms.optimal_target([[3, 1, 1], [1, 2, 3]], apart, "ln 2")


MADE = {
    "design": _design,
    "every point": _everywhere,
    "coupling": _coupling,
    "noise": lambda: om.noise.optimal(1),
    "pair": lambda: om.noise.for_pairs(2),
    "renyi": lambda: om.noise.rdp((2, 0.5)),
}


@pytest.fixture(scope="module", params=list(MADE))
def honest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("status") / "made.json"
    MADE[request.param]().save(path)
    return path.read_bytes()


def verdicts(body: dict[str, Any], path: Path) -> tuple[bool, bool]:
    """Whether the check and the audit accept a file."""
    path.write_bytes(seal(json.dumps({k: v for k, v in body.items() if k != "digest"}).encode()))
    try:
        passed = om.check(path).passed
    except om.OptmechError:
        passed = False
    return passed, audit.main([str(path)]) == 0


def claims(body: dict[str, Any]) -> dict[str, Any]:
    """Where a file says its status."""
    found: dict[str, Any] = body["result" if "result" in body else "claims"]
    return found


def test_the_status_is_the_one_that_follows_from_the_gap(honest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "altered.json"
    assert verdicts(json.loads(honest), path) == (True, True)
    proper = claims(json.loads(honest))["status"]
    for status in {"optimal", "feasible", "infeasible", "best"} - {proper}:
        body = json.loads(honest)
        claims(body)["status"] = status
        assert verdicts(body, path) == (False, False), status


def test_less_may_be_claimed_under_the_name_of_what_is_claimed(
    honest: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "altered.json"
    for status, right in (("feasible", True), ("optimal", False)):
        body = json.loads(honest)
        stated = claims(body)
        stated["status"] = status
        for name in ("bound", "lower_bound"):
            if name in stated:
                stated[name] = 0.0
        assert verdicts(body, path) == (right, right), status


@each("seconds", [-1.0, -1e-300, "1", None, True])
def test_times_are_not_below_zero(honest: bytes, tmp_path: Path, seconds: object) -> None:
    body = json.loads(honest)
    where = body if "seconds" in body else body["result"]
    where["seconds"] = seconds
    assert verdicts(body, tmp_path / "altered.json") == (False, False)
