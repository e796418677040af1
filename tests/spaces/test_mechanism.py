from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2
from strategies import distributions, mechanisms, stochastic_matrices

import optmech as om
from optmech.exact.numerators import Numerators
from optmech.spaces.rationals import RationalRows

AB, XYZ = om.Domain("ab"), om.Domain("xyz")
ROWS = [[0.5, 0.0, 0.5], [0.25, 0.75, 0.0]]


class TestMatrix:
    def test_is_a_read_only_copy(self):
        rows = np.array(ROWS)
        m = om.Mechanism(AB, XYZ, rows)
        rows[0, 0] = 9
        assert m.matrix.tolist() == ROWS
        with pytest.raises(ValueError):
            m.matrix[0, 0] = 1

    def test_rounding_of_row_sums_is_forgiven(self):
        assert om.Mechanism(AB, AB, [[1 + 9e-10, 0], [0.3, 0.7]]).matrix[0, 0] == 1 + 9e-10

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            (np.eye(2), r"shape \(2, 2\) does not fit 2 secrets x 3"),
            (np.transpose(ROWS), "does not fit"),
            ([0.5, 0.5], "1 dimension"),
            ([[0.5, 0.5, 0.0], [0.5, 0.6, -0.1]], r"matrix\[1\]\[2\]: the probability is below 0"),
            ([[0.5, 0.5, 0.0], [0.5, 0.5, 1e-8]], "row of 'b' sums to 1.00000001"),
            ([[0.0, 0.0, 0.0], [0.5, 0.5, 0.0]], "row of 'a' sums to 0"),
            ([[math.nan, 0.5, 0.5], [0.5, 0.5, 0.0]], "NaN"),
            ([[math.inf, 0.5, 0.5], [0.5, 0.5, 0.0]], "infinite"),
            ([[0.5, 0.5], [1.0]], "not a rectangular"),
            ("identity", "not a rectangular"),
        ],
    )
    def test_refuses(self, matrix, message):
        with pytest.raises(om.ProblemError, match=message):
            om.Mechanism(AB, XYZ, matrix)


class TestSample:
    @pytest.mark.parametrize("seed", [0, 7, None])
    def test_frequencies(self, seed):
        """χ² against the row; the bound is exceeded once in 10^9 runs."""
        row = np.array([0.001, 0.4, 0.0, 0.25, 0.049, 0.3, 0.0])
        m = om.Mechanism(om.Domain("a"), om.Domain.range(7), [row])
        drawn = np.bincount(m.sample("a", size=200_000, seed=seed), minlength=7)
        assert drawn[row == 0].tolist() == [0, 0]
        expected = 200_000 * row[row > 0]
        statistic = ((drawn[row > 0] - expected) ** 2 / expected).sum()
        assert statistic < chi2.ppf(1 - 1e-9, df=len(expected) - 1)

    def test_seed_repeats_and_entropy_does_not(self):
        m = om.Mechanism(om.Domain("a"), om.Domain.range(100), [np.full(100, 0.01)])
        assert m.sample("a", 20, seed=3) == m.sample("a", 20, seed=3)
        assert m.sample("a", 20, seed=3) != m.sample("a", 20, seed=4)
        assert m.sample("a", 20) != m.sample("a", 20)

    def test_one_or_many(self):
        m = om.Mechanism(AB, XYZ, [[0, 0, 1], [0, 1, 0]])
        assert m.sample("a") == "z"
        assert m.sample("b", 3) == ["y"] * 3
        assert m.sample("b", 0) == []
        assert m.sample("b", np.int64(1), seed=np.int64(2)) == ["y"]

    @given(mechanisms(zeros=True), st.integers(0, 2**40))
    def test_never_draws_what_has_probability_zero(self, m, seed):
        for i, secret in enumerate(m.secrets.labels):
            possible = {m.observables.labels[o] for o in np.flatnonzero(m.matrix[i])}
            assert set(m.sample(secret, 50, seed=seed)) <= possible

    @pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
    def test_the_ends_of_the_entropy_are_possible_outcomes(self, monkeypatch, byte):
        monkeypatch.setattr("optmech.exact.sampler.entropy.token_bytes", lambda count: byte * count)
        m = om.Mechanism(om.Domain("a"), om.Domain("wxyz"), [[0.0, 0.75, 0.25, 0.0]])
        assert m.sample("a") == ("x" if byte == b"\x00" else "y")

    @pytest.mark.parametrize("where", ["size", "seed"])
    @pytest.mark.parametrize("value", [-1, 1.5, "2", True, [1]])
    def test_refuses_arguments(self, where, value):
        with pytest.raises(om.ProblemError, match=f"^{where}: "):
            om.Mechanism(AB, AB, np.eye(2)).sample("a", **{where: value})

    def test_refuses_unknown_secrets(self):
        with pytest.raises(om.ProblemError, match="there is no 'q'"):
            om.Mechanism(AB, AB, np.eye(2)).sample("q")


class TestThen:
    @given(data=st.data())
    def test_is_the_matrix_product(self, data):
        first = om.Mechanism(AB, XYZ, data.draw(stochastic_matrices(2, 3)))
        second = om.Mechanism(XYZ, om.Domain("pqrs"), data.draw(stochastic_matrices(3, 4)))
        both = first.then(second)
        for i in range(2):
            for o in range(4):
                total = sum(first.matrix[i, k] * second.matrix[k, o] for k in range(3))
                assert both.matrix[i, o] == pytest.approx(total, abs=1e-15)
        assert (both.secrets.labels, both.observables.labels) == (AB.labels, ("p", "q", "r", "s"))

    def test_refuses_what_does_not_fit(self):
        m = om.Mechanism(AB, XYZ, ROWS)
        with pytest.raises(om.ProblemError, match="not the first one's observables"):
            m.then(om.Mechanism(om.Domain("zyx"), AB, np.full((3, 2), 0.5)))


class TestRemap:
    def test_merges_equal_images_and_keeps_points_where_it_can(self):
        line = om.Domain.range(4, unit="km")
        m = om.Mechanism(AB, line, [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
        down = m.remap(lambda k: k - k % 2)
        assert down.observables == om.Domain([0, 2], [0, 2], unit="km")
        assert down.matrix == pytest.approx(np.array([[0.3, 0.7], [0.7, 0.3]]), abs=1e-15)
        named = m.remap(lambda k: "low" if k < 3 else "high")
        assert named.observables.labels == ("low", "high")
        assert named.observables.points is None
        assert named.matrix == pytest.approx(np.array([[0.6, 0.4], [0.9, 0.1]]), abs=1e-15)

    def test_geographic_observables(self):
        globe = om.Domain.geographic("pq", [[2.35, 48.86], [-0.13, 51.51]])
        m = om.Mechanism(AB, globe, np.eye(2))
        assert m.remap(lambda k: "p").observables.coordinates == "lonlat"
        assert m.remap(str.upper).observables.coordinates == "plane"

    def test_refuses_images_that_cannot_be_labels(self):
        with pytest.raises(om.ProblemError, match="remap"):
            om.Mechanism(AB, AB, np.eye(2)).remap(lambda k: [k])


class TestPush:
    @given(distributions(2))
    def test_is_the_output_distribution(self, lam):
        pushed = om.Mechanism(AB, XYZ, ROWS).push(lam)
        expected = [lam[0] * ROWS[0][o] + lam[1] * ROWS[1][o] for o in range(3)]
        assert pushed == pytest.approx(np.array(expected), abs=1e-16)

    @pytest.mark.parametrize("lam", [[1.0], [[0.5, 0.5]], "ab", [math.nan, 1], None])
    def test_refuses(self, lam):
        with pytest.raises(om.ProblemError, match="lam"):
            om.Mechanism(AB, XYZ, ROWS).push(lam)


class TestExactness:
    """Probabilities of compositions as fractions, against sums of products of fractions."""

    @staticmethod
    def shares(m):
        return [[Fraction(p, sum(row)) for p in row] for row in m.exact.rows]

    @given(st.data())
    def test_compositions_of_exact_mechanisms_are_exact(self, data):
        middle = om.Domain.range(3)
        lists = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)
        made = []
        for kind in data.draw(st.tuples(*[st.sampled_from(["power", "any"])] * 2)):
            rows = [data.draw(lists) for _ in range(3)]
            if kind == "power":
                rows = [[*row[:2], row[2] + 32 - sum(row)] for row in rows]
                exact = Numerators(5, tuple(map(tuple, rows)))
            else:
                exact = RationalRows(tuple(map(tuple, rows)))
            made.append(om.Mechanism.of(middle, middle, exact))
        first, second = made
        p, q = self.shares(first), self.shares(second)
        expected = [[sum(p[s][o] * q[o][t] for o in range(3)) for t in range(3)] for s in range(3)]
        chained = first.then(second)
        assert self.shares(chained) == expected
        assert chained.matrix.tolist() == [[float(x) for x in row] for row in expected]
        both = isinstance(first.exact, Numerators) and isinstance(second.exact, Numerators)
        assert isinstance(chained.exact, Numerators) or not both
        merged = first.remap(lambda o: o % 2)
        assert merged.observables.labels == (0, 1)
        assert self.shares(merged) == [[row[0] + row[2], row[1]] for row in p]

    def test_designs_stay_exact_after_remapping(self):
        problem = om.Problem(
            om.Prior.uniform(AB),
            om.distances.hamming(),
            constraints=[om.DifferentialPrivacy("ln 3")],
        )
        mechanism = om.solve(problem).mechanism
        assert isinstance(mechanism.remap(lambda o: o).exact, Numerators)
        assert mechanism.remap(lambda o: "all").exact.matrix.tolist() == [[1], [1]]

    def test_powers_beyond_1074_bits_become_fractions(self):
        tiny = Numerators(1000, ((1, 2**1000 - 1), (2**1000 - 1, 1)))
        m = om.Mechanism.of(AB, AB, tiny)
        twice = m.then(m)
        assert isinstance(twice.exact, RationalRows)
        small = Fraction(1, 2**1000)
        assert self.shares(twice)[0] == [small**2 + (1 - small) ** 2, 2 * small * (1 - small)]

    def test_floats_are_exact_where_they_sum_to_one(self):
        sure = om.Mechanism(AB, AB, [[0.25, 0.75], [1, 0]])
        rounded = om.Mechanism(AB, AB, [[1 / 3, 2 / 3], [0.9, 0.1 + 1e-12]])
        assert self.shares(sure.then(sure))[0] == [Fraction(13, 16), Fraction(3, 16)]
        assert sure.then(rounded).exact is None
        assert rounded.remap(str.upper).exact is None


class TestEquality:
    def test_of_probabilities_however_they_are_held(self):
        half = om.Mechanism(AB, AB, [[0.5, 0.5], [0.25, 0.75]])
        powers = om.Mechanism.of(AB, AB, Numerators(3, ((4, 4), (2, 6))))
        fractions = om.Mechanism.of(AB, AB, RationalRows(((1, 1), (3, 9))))
        assert half == powers == fractions
        assert len({half, powers, fractions}) == 1
        assert half == om.Mechanism(AB, AB, [[0.5, 0.5], [0.25, 0.75]])
        assert half.remap(lambda o: o) == half

    def test_floats_that_agree_are_not_enough(self):
        tenths = om.Mechanism.of(AB, AB, RationalRows(((1, 9), (7, 3))))
        rounded = om.Mechanism(AB, AB, [[0.1, 0.9], [0.7, 0.3]])
        assert np.array_equal(tenths.matrix, rounded.matrix)
        assert tenths != rounded

    def test_domains_and_entries_count(self):
        m = om.Mechanism(AB, XYZ, ROWS)
        assert m != om.Mechanism(om.Domain("ab", unit="km"), XYZ, ROWS)
        assert m != om.Mechanism(AB, om.Domain("xyw"), ROWS)
        assert m != om.Mechanism(AB, XYZ, ROWS[::-1])
        assert m != ROWS
        negative = om.Mechanism(AB, AB, [[1, -0.0], [0, 1]])
        assert hash(om.Mechanism(AB, AB, np.eye(2))) == hash(negative)


def test_priors_with_the_same_weights_are_one_key():
    assert om.Prior(AB, [1, -0.0]) == om.Prior(AB, [1, 0])
    assert len({om.Prior(AB, [1, -0.0]), om.Prior(AB, [1, 0]), om.Prior(XYZ, [1, 0, 0])}) == 2


def test_a_prior_can_be_pushed():
    m = om.Mechanism(AB, XYZ, ROWS)
    assert m.push(om.Prior(AB, [1, 3])).tolist() == [0.3125, 0.5625, 0.125]
    with pytest.raises(om.ProblemError, match="lam: is over 2 secrets"):
        m.push(om.Prior(om.Domain("ba"), [1, 3]))


def test_numpy_sees_the_matrix_and_an_interpreter_a_line():
    m = om.Mechanism(AB, XYZ, np.full((2, 3), 1 / 3))
    assert np.asarray(m).tolist() == m.matrix.tolist()
    assert np.asarray(m, dtype=np.float32).dtype == np.float32
    assert np.shares_memory(np.asarray(m), m.matrix)
    copied = np.array(m)
    copied[0, 0] = 9
    assert m.matrix[0, 0] == 1 / 3
    wide = om.Domain([f"place {k}" for k in range(2000)])
    assert len(repr(om.Mechanism(wide, wide, np.eye(2000)))) < 300
