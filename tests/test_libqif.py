"""The benchmark beside libqif on a few random mechanisms: the same numbers, exactly where rational.

libqif's rationals end with an error for some mechanisms with equal rows or columns of zeros.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="docs/ is not beside the tests"
)


@pytest.fixture
def compared(benchmark_modules: None):
    pytest.importorskip("qif")
    from libqif import compare

    return compare


@pytest.mark.parametrize("part", ["measure.", "channel.", "refinement.", "metric.optimize"])
def test_measures_are_those_of_libqif(compared, part: str) -> None:
    lines = compared(12, part)
    assert len(lines) >= {"measure.": 40, "channel.": 6, "refinement.": 4}.get(part, 1)
    for line in lines:
        unlike = [case for case in line.differ if "Error: " not in case["rationals"]]
        assert line.tried == 12
        assert not unlike, (line.libqif, unlike)
        assert line.agree == 12, line.libqif
        if line.tolerance is None:
            assert line.exactly + len(line.differ) == 12


@pytest.mark.parametrize("part", ["min_loss", "max_loss", "d_privacy", "utility", "kantorovich"])
def test_programs_and_mechanisms_are_those_of_libqif(compared, part: str) -> None:
    for line in compared(3, part):
        assert line.agree == line.tried == 3, (line.libqif, line.differ)


def test_every_function_of_libqif_has_a_row_or_a_reason(benchmark_modules: None) -> None:
    qif = pytest.importorskip("qif")
    from libqif_lines import ELSEWHERE, compared, names_of

    offered = names_of(qif)
    assert len(offered) > 140
    assert offered == compared() | set(ELSEWHERE)
    assert not compared() & set(ELSEWHERE)
