"""The sampler: every word of a few bits enumerated, and frequencies of long words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import optmech as om
from optmech.numerators import Numerators
from optmech.sampler import draw, seeded_bytes

ROWS = st.lists(st.integers(0, 40), min_size=1, max_size=7).filter(any)


def words(bits: int, limbs: int = 1, below: int = 0) -> Callable[[int], bytes]:
    """A source that hands out every value of the leading ``bits`` once, then zeros."""
    everything = b"".join(
        ((w << (64 * limbs - bits)) + below).to_bytes(8 * limbs, "big") for w in range(2**bits)
    )
    position = [0]

    def source(count: int) -> bytes:
        begin = position[0]
        position[0] += count
        return everything[begin : begin + count].ljust(count, b"\0")

    return source


@given(ROWS, st.integers(0, 6))
def test_every_word_once_gives_exactly_the_numerators(row: list[int], zeros: int) -> None:
    """A row completed to a power of two: 2^k words, each index as often as its numerator."""
    bits = max(1, (sum(row) - 1).bit_length())
    row = [*row, 2**bits - sum(row), *[0] * zeros]
    counts = Counter(draw(row, 2**bits, words(bits)).tolist())
    assert [counts[o] for o in range(len(row))] == row
    # what lies behind the leading bits does not matter
    counts = Counter(draw(row, 2**bits, words(bits, below=2 ** (64 - bits) - 1)).tolist())
    assert [counts[o] for o in range(len(row))] == row


@given(ROWS)
def test_other_sums_draw_again_what_lies_above(row: list[int]) -> None:
    bits = max(1, (sum(row) - 1).bit_length())
    counts = Counter(draw(row, sum(row), words(bits)).tolist())
    assert [counts[o] for o in range(len(row))] == row


def test_words_of_several_limbs_compare_beyond_the_first() -> None:
    """Steps that agree in their first 64 bits: decided by the second word."""
    row = [2**64 + 5, 1, 2**128 - 2**64 - 6]
    chosen = [2**64 + 4, 2**64 + 5, 2**64 + 6, 0, 2**128 - 1]
    content = b"".join(w.to_bytes(16, "big") for w in chosen)
    assert draw(row, 5, lambda count: content[:count]).tolist() == [0, 1, 2, 0, 2]


@pytest.mark.parametrize("bits", [8, 64, 65, 200, 1000])
def test_long_words_follow_the_row(bits: int) -> None:
    """χ²; exceeded once in 10^9 runs."""
    shares = [3, 50, 0, 200, 3]
    row = [share * 2**bits // 256 for share in shares]
    row[-1] += 2**bits - sum(row)
    drawn = np.bincount(draw(row, 200_000), minlength=5)
    expected = 200_000 * np.array([3, 50, 200, 3]) / 256
    assert drawn[2] == 0
    statistic = ((drawn[[0, 1, 3, 4]] - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-9, df=3)


@given(st.integers(1, 1074), st.integers(0, 50))
def test_the_number_of_bytes_depends_on_the_bits_alone(bits: int, count: int) -> None:
    asked = []

    def source(size: int) -> bytes:
        asked.append(size)
        return seeded_bytes(size)(size)

    draw([2**bits - 1, 1], count, source)
    assert sum(asked) == count * 8 * -(-bits // 64)


def test_designs_draw_from_their_numerators() -> None:
    exact = Numerators(2, ((1, 0, 3), (0, 4, 0)))
    m = om.Mechanism.of(om.Domain("ab"), om.Domain("xyz"), exact)
    assert set(m.sample("a", 500, seed=1)) == {"x", "z"}
    assert set(m.sample("b", 500)) == {"y"}
    problem = om.Problem(om.Prior.uniform(om.Domain("ab")), om.distances.hamming())
    assert om.solve(problem).mechanism.exact is not None
