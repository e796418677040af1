"""Draws in three languages: the same reports for the same bytes, and the law of the file."""

from __future__ import annotations

import random
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from packed import law, native

import optmech as om

needs = pytest.mark.skipif(
    shutil.which("node") is None or native.compiler() is None, reason="no compiler of C, or no Node"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.built(tmp_path_factory.mktemp("c"), "-O2")


@needs
@pytest.mark.parametrize("path", law.files(), ids=lambda path: path.stem)
def test_draws_in_three_languages_have_the_law(path: Path, program: Path, tmp_path: Path) -> None:
    draws = 2_000
    if path.stem == "earth":
        # cells wide enough to be counted by so few draws
        path, draws = tmp_path / "earth.omm", 10_000
        om.Earth.of("ln 2", cell=3).save(path)
    kinds = []
    for found in law.run(draws, seed=2, names=[path], program=program):
        assert found.draws == draws
        assert (found.differing, found.impossible) == (0, 0)
        # the mechanism of labels reports them as they are
        assert found.degrees > 2 or path.stem == "labels"
        assert found.p > 1e-4
        kinds.append(found.kind)
    assert kinds[0] != "mesh" or kinds == ["mesh", "lattice"]


def test_another_law_does_not_fit() -> None:
    """What is judged is the law: that of the place beside it is refused."""
    path = law.HERE / "vectors" / "grid.omm"
    sources = law.sources_of(path, random.Random(1))
    chosen, entropy, _ = law.recorded(path, sources, 6_000, 1)
    reports = law.in_python(path, sources, chosen, entropy)
    statistic, degrees, impossible = law.judged(path, sources, chosen, reports)
    assert law.Found("", "", 0, 0, statistic, degrees, impossible).p > 1e-4
    statistic, degrees, _ = law.judged(path, sources[1:] + sources[:1], chosen, reports)
    assert law.Found("", "", 0, 0, statistic, degrees, 0).p < 1e-12


def test_the_law_of_a_point_is_that_of_python() -> None:
    """In fractions from the file's bytes, beside ``PackedEverywhere.at``."""
    path = law.HERE / "vectors" / "field.omm"
    found = om.load_packed(path)
    assert isinstance(found, om.PackedEverywhere)
    for source in law.sources_of(path, random.Random(4)):
        own = law.law_of(path, source)
        if own == {-1: Fraction(1)}:
            assert found.locate(source) is None
            continue
        row = found.at([source])[0]
        assert np.array([float(own.get(k, 0)) for k in range(len(row))]) == pytest.approx(row)
