"""The figures in the header of a packed file, against those of its design."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import optmech_audit as audit
import pytest
from optmech_devices.packed.file import Header, decode_parts, encode_parts

import optmech as om


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A packed file and its design, private at ε = 1/3, which no float is."""
    folder = tmp_path_factory.mktemp("packed")
    places = om.Domain(["a", "b"], [0.0, 1.0])
    distance = om.distances.euclidean()
    private = om.MetricPrivacy(epsilon=Fraction(1, 3), distance=distance)
    design = om.solve(om.Problem(om.Prior.uniform(places), distance, constraints=[private]))
    design.save(folder / "design.json")
    om.pack(design, folder / "packed.omm", bits=32)
    return folder / "packed.omm", folder / "design.json"


def test_an_epsilon_that_is_no_float_is_rounded_up(packed: tuple[Path, Path]) -> None:
    (stated,) = om.load_packed(packed[0]).header.promises
    assert Fraction(stated.epsilon) >= Fraction(1, 3)
    assert stated.epsilon == pytest.approx(1 / 3, rel=1e-15)
    assert not om.check_packed(packed[0], om.Design.load(packed[1])).faults
    audit.judge(str(packed[0]), str(packed[1]))


def _lower_epsilon(header: Header) -> Header:
    return dataclasses.replace(
        header,
        promises=tuple(dataclasses.replace(part, epsilon=0.25) for part in header.promises),
    )


def _no_constraint(header: Header) -> Header:
    return dataclasses.replace(header, promises=())


def _other_loss(header: Header) -> Header:
    return dataclasses.replace(header, loss=dataclasses.replace(header.loss, design=9.0))


@pytest.mark.parametrize("forge", [_lower_epsilon, _no_constraint, _other_loss])
def test_figures_that_are_not_the_designs_are_refused_by_both(
    packed: tuple[Path, Path], tmp_path: Path, forge: Callable[[Header], Header]
) -> None:
    parts = decode_parts(packed[0].read_bytes(), "packed")
    forged = tmp_path / "forged.omm"
    forged.write_bytes(encode_parts(dataclasses.replace(parts, header=forge(parts.header))))
    assert om.check_packed(forged, om.Design.load(packed[1])).faults
    with pytest.raises(audit.Fault):
        audit.judge(str(forged), str(packed[1]))


def test_an_array_that_ends_within_a_number_is_a_fault(
    packed: tuple[Path, Path], tmp_path: Path
) -> None:
    content = packed[0].read_bytes()
    # the columns, 0 and 1: a byte string of 8 bytes under tag 70, here 7 of them and a zero
    array = b"\xd8\x46\x48" + bytes([0, 0, 0, 0, 1, 0, 0, 0])
    assert content.count(array) >= 1
    head = content[:-32].replace(array, b"\xd8\x46\x47" + array[3:10] + b"\x00")
    forged = tmp_path / "forged.omm"
    forged.write_bytes(head + hashlib.sha256(head).digest())
    with pytest.raises(audit.Fault):
        audit.judge(str(forged), str(packed[1]))
