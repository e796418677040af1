"""The sampler: exact shares of the range, frequencies, and the same work for every row."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2

import optmech as om
from optmech.exact import sampler
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import Table, draw
from optmech.spaces.rationals import RationalRows

ROWS = st.lists(st.integers(0, 40), min_size=1, max_size=7).filter(any)


def numbers(*chosen: int, limbs: int = 1) -> Callable[[int], bytes]:
    """A source that hands out these numbers, then zeros; their first bit is noise."""
    noisy = [number + (k % 2 << 64 * limbs - 1) for k, number in enumerate(chosen)]
    content = b"".join(number.to_bytes(8 * limbs, "big") for number in noisy)
    position = [0]

    def source(count: int) -> bytes:
        begin = position[0]
        position[0] += count
        return content[begin : begin + count].ljust(count, b"\0")

    return source


def ends(table: Table, row: int) -> list[int]:
    """The scaled sums as whole numbers, those above every number included."""
    words = table.row(row).astype(object)
    assert (table.steps[:, :, row] == words).all()
    sums = [0] * words.shape[1]
    for limb in words:
        sums = [(total << 64) + int(word) for total, word in zip(sums, limb, strict=True)]
    return sums


def span(table: Table) -> int:
    """Numbers that may be drawn: the first bit of the words is left out."""
    return 1 << 64 * table.limbs - 1


@given(ROWS, st.integers(0, 6))
def test_every_entry_has_its_exact_share_of_all_numbers(row: list[int], zeros: int) -> None:
    """A row completed to a power of two: no number is drawn again."""
    bits = max(1, (sum(row) - 1).bit_length())
    row = [*row, 2**bits - sum(row), *[0] * zeros]
    table = Table.of([row])
    assert table.limbs == 1
    widths = [b - a for a, b in pairwise([0, *ends(table, 0)])]
    assert widths == [value << (63 - bits) for value in row]


@given(ROWS)
def test_other_sums_leave_next_to_nothing_to_be_drawn_again(row: list[int]) -> None:
    total = sum(row)
    table = Table.of([row, [0] * (len(row) - 1) + [3]])
    sums = [0, *ends(table, 0)]
    assert table.limbs == 2
    widths = {b - a for a, b in pairwise(sums)}
    assert all(width * total == value * sums[-1] for width, value in zip(
        [b - a for a, b in pairwise(sums)], row, strict=True
    ))  # fmt: skip
    assert len(widths) == len(set(row))
    assert 0 <= span(table) - sums[-1] < span(table) >> 64


@given(st.data())
def test_draws_count_the_sums_at_or_below(data: st.DataObject) -> None:
    """Numbers just below, at and above every sum, in one to three words, against a loop."""
    width = data.draw(st.integers(1, 6))
    scale = 2 ** data.draw(st.integers(0, 150))
    row = [
        x * scale for x in data.draw(st.lists(st.integers(0, 9), min_size=width, max_size=width))
    ]
    row[data.draw(st.integers(0, width - 1))] += 1
    table = Table.of([row])
    sums = ends(table, 0)
    near = {x + k for x in [0, *sums] for k in (-1, 0, 1)}
    chosen = sorted(x for x in near if 0 <= x < sums[-1])
    expected = [sum(step <= x for step in sums) for x in chosen]
    found = draw(table, 0, len(chosen), numbers(*chosen, limbs=table.limbs))
    assert found.tolist() == expected
    assert all(row[k] for k in expected)
    if sums[-1] < span(table):
        # at the last sum and above: drawn again
        again = draw(table, 0, 1, numbers(sums[-1], span(table) - 1, chosen[-1], limbs=table.limbs))
        assert again.tolist() == [expected[-1]]


def test_words_that_agree_in_their_first_limb_are_decided_by_the_second() -> None:
    row = [2**64 + 5, 1, 2**127 - 2**64 - 6]
    chosen = [2**64 + 4, 2**64 + 5, 2**64 + 6, 0, 2**127 - 1]
    assert draw(Table.of([row]), 0, 5, numbers(*chosen, limbs=2)).tolist() == [0, 1, 2, 0, 2]


@pytest.mark.parametrize("bits", [8, 64, 65, 200, 1000])
def test_long_words_follow_the_row(bits: int) -> None:
    """χ²; exceeded once in 10^9 runs."""
    shares = [3, 50, 0, 200, 3]
    row = [share * 2**bits // 256 for share in shares]
    row[-1] += 2**bits - sum(row)
    drawn = np.bincount(draw(Table.of([row]), 0, 200_000), minlength=5)
    expected = 200_000 * np.array([3, 50, 200, 3]) / 256
    assert drawn[2] == 0
    statistic = ((drawn[[0, 1, 3, 4]] - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-9, df=3)


@given(st.integers(1, 1074), st.integers(0, 50))
def test_the_number_of_bytes_depends_on_the_bits_alone(bits: int, count: int) -> None:
    asked = []

    def source(size: int) -> bytes:
        asked.append(size)
        return b"\x55" * size

    table = Table.of([[2**bits - 1, 1], [2**bits, 0], [0, 2**bits]])
    for row in range(3):
        asked.clear()
        draw(table, row, count, source)
        assert sum(asked) == count * 8 * (bits // 64 + 1)


class TestEqualWork:
    """What a draw does may depend on the size of the table, never on the row or the outcome."""

    @staticmethod
    def mechanism(kind: str, count: int = 40, reach: int = 3) -> om.Mechanism:
        """A line on which only ``reach`` neighbours may be reported: zeros before and behind."""
        near = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
        weights = np.where(near <= reach, 10 - near, 0)
        line = om.Domain.range(count)
        if kind == "rational":
            rows = tuple(tuple(row) for row in weights.tolist())
            return om.Mechanism.of(line, line, RationalRows(rows))
        matrix = weights / weights.sum(axis=1, keepdims=True)
        if kind == "floats":
            return om.Mechanism(line, line, matrix)
        return om.Mechanism.of(line, line, Numerators.rounded(matrix))

    @pytest.mark.parametrize("kind", ["numerators", "rational", "floats"])
    def test_every_row_has_a_word_for_every_observable(self, kind: str) -> None:
        m = self.mechanism(kind)
        table = m._table
        assert table.steps.shape == (table.limbs, 40, 40)
        assert table.steps.flags.c_contiguous
        assert m._table is table

    @pytest.mark.parametrize("kind", ["numerators", "rational", "floats"])
    def test_every_draw_compares_all_words_of_all_sums(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        m = self.mechanism(kind)
        limbs = m._table.limbs
        compared = []
        inner = sampler._steps_at_or_below

        def counting(words, steps):
            """The shapes that come in, and the lines that are run on them."""
            lines = []

            def trace(frame, event, _):
                if event == "line" and frame.f_code is inner.__code__:
                    lines.append(frame.f_lineno)
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                out = inner(words, steps)
            finally:
                sys.settrace(before)
            compared.append((words.shape, steps.shape, tuple(lines)))
            return out

        monkeypatch.setattr(sampler, "_steps_at_or_below", counting)
        for secret in range(40):
            for byte in (b"\0", b"\x7f", b"\xfe"):
                monkeypatch.setattr(sampler.entropy, "token_bytes", lambda n, b=byte: b * n)
                m.sample(secret)
        assert len(compared) == 120
        assert {entry[:2] for entry in compared} == {((1, limbs), (limbs, 40))}
        assert len({entry[2] for entry in compared}) == 1


def test_designs_draw_from_their_numerators() -> None:
    exact = Numerators(2, ((1, 0, 3), (0, 4, 0)))
    m = om.Mechanism.of(om.Domain("ab"), om.Domain("xyz"), exact)
    assert set(m.sample("a", 500, seed=1)) == {"x", "z"}
    assert set(m.sample("b", 500)) == {"y"}
    problem = om.Problem(om.Prior.uniform(om.Domain("ab")), om.distances.hamming())
    design = om.solve(problem)
    assert design.mechanism.exact is not None
    assert design.mechanism._table is design.mechanism._table


def test_rows_of_several_sums_are_drawn_by_their_own() -> None:
    """Floats: sums of 1, of 1 - 2^-53 and of numbers far apart; frequencies by χ²."""
    matrix = [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3], [1e-300, 0.25, 0.75]]
    m = om.Mechanism(om.Domain("abc"), om.Domain.range(3), matrix)
    for label, row in zip("abc", matrix, strict=True):
        counts = Counter(m.sample(label, size=60_000))
        expected = {o: 60_000 * p for o, p in enumerate(row) if p > 1e-9}
        assert set(counts) <= set(expected)
        statistic = sum((counts[o] - e) ** 2 / e for o, e in expected.items())
        assert statistic < chi2.ppf(1 - 1e-9, df=len(expected) - 1)
    sums = list(accumulate([5, 0, 3]))
    assert ends(Table.of([[5, 0, 3]]), 0) == [s << 60 for s in sums]
