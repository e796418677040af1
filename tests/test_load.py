"""``om.load``: files of every kind, and what is no file of any."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import optmech_audit as audit
import pytest

import optmech as om
from optmech.reading.sealed import seal

THREE = om.Domain(["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])


def design() -> om.Design:
    prior = om.Prior(THREE, [0.5, 0.25, 0.25])
    constraint = om.MetricPrivacy("ln 2", om.distances.euclidean())
    return om.solve(om.Problem(prior, om.distances.euclidean(), constraints=[constraint]))


def family() -> om.mechanisms.TargetDesign:
    away = [[0.0, 1.0, 2.0], [1.0, 0.0, 5**0.5], [2.0, 5**0.5, 0.0]]
    return om.mechanisms.optimal_target([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], away)


def noise() -> om.noise.NoiseDesign:
    return om.noise.optimal(epsilon="ln 2", sensitivity=1)


MADE: dict[str, Callable[[], object]] = {"design": design, "family": family, "noise": noise}


@pytest.mark.parametrize("kind", MADE)
def test_every_kind_comes_back(kind: str, tmp_path: Path) -> None:
    made = MADE[kind]()
    path = tmp_path / "file.json"
    made.save(path)
    found = om.load(path)
    assert type(found) is type(made)
    assert (found.loss, found.lower_bound) == (made.loss, made.lower_bound)
    again = tmp_path / "again.json"
    found.save(again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", MADE)
def test_a_false_claim_is_refused_in_every_kind(kind: str, tmp_path: Path) -> None:
    """Sealed anew, one claim at a time: what fails the check is not loaded."""
    path = tmp_path / "file.json"
    MADE[kind]().save(path)
    body = json.loads(path.read_bytes())
    claims = "result" if kind == "design" else "claims"
    for name, factor in (("loss", 0.5), ("loss", 2.0), ("lower_bound", 1.5), ("status", 0.0)):
        changed = json.loads(json.dumps(body))
        del changed["digest"]
        if name == "status":
            changed[claims][name] = "feasible"
        else:
            changed[claims][name] *= factor
        path.write_bytes(seal(json.dumps(changed).encode()))
        report = om.check(path)
        assert report.status == "failed"
        assert name.replace("_", " ") in report.faults[0].replace("_", " ")
        with pytest.raises(om.VerificationError, match=name.replace("_", ".")):
            om.load(path)


def test_less_may_be_claimed_than_is_proved(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for kind in ("family", "noise"):
        MADE[kind]().save(path)
        body = json.loads(path.read_bytes())
        del body["digest"]
        body["claims"] |= {"lower_bound": body["claims"]["lower_bound"] / 2, "status": "feasible"}
        path.write_bytes(seal(json.dumps(body).encode()))
        report = om.check(path)
        assert report.passed
        assert report.status == "feasible"
        assert report.gap == pytest.approx(0.5, abs=1e-6)


def test_a_packed_mechanism(tmp_path: Path) -> None:
    made = design()
    om.pack(made, tmp_path / "city.omm")
    found = om.load(tmp_path / "city.omm")
    assert isinstance(found, om.devices.PackedMechanism)
    assert found.secrets.labels == THREE.labels


def test_a_format_from_before_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_bytes(seal(b'{"format": "optmech-everywhere/1", "problem": {}}'))
    for read in (om.load, om.check, om.Design.load):
        with pytest.raises(om.ProblemError, match=r"not read any more.*Solve its problem again"):
            read(path)


@pytest.mark.parametrize(
    ("form", "remedy"),
    [
        ("optmech-design/1", "Solve the problem again"),
        ("optmech-targets/1", "Make the design again"),
        ("optmech-noise/0", "Make the noise again"),
        ("optmech-design/9", "Solve the problem again"),
    ],
)
def test_other_versions_of_a_format_are_named(form: str, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_bytes(seal(json.dumps({"format": form, "problem": {}}).encode()))
    for read in (om.load, om.check):
        with pytest.raises(om.ProblemError, match=f"is of format '{form}', which.*{remedy}"):
            read(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\x00" * 40, b'{"format": "x/1"}'])
def test_others_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(om.ProblemError, match="Give a file written by"):
        om.load(path)
    with pytest.raises(om.ProblemError):
        om.load(tmp_path / "missing.json")


def test_figures_of_a_design_are_floats(tmp_path: Path) -> None:
    """An integer 0 is no lower bound, here as in the audit."""
    path = tmp_path / "file.json"
    design().save(path)
    body = json.loads(path.read_bytes())
    del body["digest"]
    for name in ("objective", "bound", "loss", "lower_bound"):
        changed = json.loads(json.dumps(body))
        changed["result"][name] = 0
        path.write_bytes(seal(json.dumps(changed).encode()))
        with pytest.raises(om.VerificationError, match=name):
            om.check(path)
        with pytest.raises(audit.Fault, match="0 is not a finite float"):
            audit.audit(str(path))
