"""Files of families: what is written is read back, and nothing false passes the check."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forgery import reseal

import optmech as om
from optmech.cli.main import main

D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
INPUTS = [[3, 1, 1, 0], [0.1, 0.2, 0.3, 0.4]]


def family(kind: str) -> om.mechanisms.TargetDesign:
    if kind == "coupling":
        return om.mechanisms.coupling_design(
            INPUTS, ["1/4", "1/4", "1/3", "1/6"], D, names=["home", "out"], weights=[1, 2]
        )
    if kind == "worst":
        return om.mechanisms.coupling_design(INPUTS, [1, 1, 1, 1], D, math.inf, outside="nearest")
    return om.mechanisms.optimal_target(INPUTS, D, "ln 2", delta=0.01 if kind == "delta" else 0)


@pytest.mark.parametrize("kind", ["coupling", "worst", "target", "delta"])
def test_round_trip(kind: str, tmp_path: Path) -> None:
    made, path = family(kind), tmp_path / "family.json"
    made.save(path)
    read = om.mechanisms.TargetDesign.load(path)
    for a, b in zip(made.mechanisms, read.mechanisms, strict=True):
        assert a.exact.rows == b.exact.rows
    assert read.summary() == made.summary()
    report = om.check(path)
    assert report.passed
    assert report.loss == made.loss
    assert report.inequalities > 8
    assert main(["check", str(path)]) == 0


def claim(name: str, value: Any) -> Any:
    def change(body: dict[str, Any]) -> None:
        body["claims"][name] = value

    return change


def other_plan(body: dict[str, Any]) -> None:
    """Independent coupling: right marginals, and far from optimal."""
    plan = body["plans"][0]
    rows, columns = ([int(x, 16) for x in plan[side]] for side in ("input", "output"))
    plan["moves"] = [
        [x, y, f"{a * b:x}"] for x, a in enumerate(rows) for y, b in enumerate(columns) if a * b
    ]


def potentials(body: dict[str, Any]) -> None:
    body["plans"][0]["potentials"][0][0] = "fffffffffffffffffff"


def epsilon(body: dict[str, Any]) -> None:
    body["epsilon"] = 0.1


def multipliers(body: dict[str, Any]) -> None:
    body["multipliers"] = None


def crowd(body: dict[str, Any]) -> None:
    body["crowded"][0] = [3]


@pytest.mark.parametrize(
    ("kind", "change", "fault"),
    [
        ("coupling", claim("loss", 0.1), "loss"),
        ("coupling", claim("worst_moves", [0.0, 0.0]), "worst_moves"),
        ("coupling", other_plan, "plan"),
        ("coupling", potentials, "plan"),
        ("worst", crowd, "longest move"),
        ("target", epsilon, "outputs"),
        ("target", multipliers, "lower_bound"),
        ("target", claim("lower_bound", 10.0), "lower_bound"),
        ("delta", claim("losses", [0.0, 0.0]), "losses"),
    ],
)
def test_false_claims_do_not_pass(kind: str, change: Any, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "family.json"
    family(kind).save(path)
    report = om.check(reseal(path, change))
    assert not report.passed
    assert any(fault in line for line in report.faults)
    with pytest.raises(om.VerificationError):
        om.mechanisms.TargetDesign.load(path)
    assert main(["check", str(path)]) == 1


def flow(body: dict[str, Any]) -> None:
    body["plans"][0]["moves"][0][2] = "1"


def negative(body: dict[str, Any]) -> None:
    body["plans"][0]["moves"][0][2] = "-1"


def gone(body: dict[str, Any]) -> None:
    del body["plans"][1]["input"]


def outside(body: dict[str, Any]) -> None:
    body["plans"][0]["moves"][0][1] = 7


def distance(body: dict[str, Any]) -> None:
    body["distance"][0][1] = -1.0


def claims(body: dict[str, Any]) -> None:
    body["claims"] = None


@pytest.mark.parametrize("change", [flow, negative, gone, outside, distance, claims])
def test_malformed_files_are_refused(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "family.json"
    family("coupling").save(path)
    with pytest.raises(om.VerificationError):
        om.check(reseal(path, change))


def test_flipped_bytes_show(tmp_path: Path) -> None:
    path = tmp_path / "family.json"
    family("coupling").save(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"home", b"hone"))
    with pytest.raises(om.VerificationError, match="altered"):
        om.check(path)
    with pytest.raises(om.ProblemError, match="family of coupling mechanisms, and no design"):
        om.Design.load(reseal(path, lambda body: None))
