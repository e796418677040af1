from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st
from strategies import (
    distributions,
    mechanisms,
    metrics,
    nonnegative_matrices,
    priors,
    randomized_response,
    stochastic_matrices,
    truncated_geometric,
)

import optmech as om
from optmech import measures

E, H = om.distances.euclidean(), om.distances.hamming()


def exact_log(p, q):
    """ln(p/q) to 60 digits, as a Decimal."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(float(p)) / Decimal(float(q))).ln()


def naive_epsilon(matrix, d):
    """The definition, one triple at a time."""
    worst = 0.0
    for i, j in itertools.permutations(range(len(matrix)), 2):
        for p, q in zip(matrix[i], matrix[j], strict=True):
            if p > q:
                if q == 0 or d[i][j] == 0:
                    return math.inf
                worst = max(worst, float(exact_log(p, q) / Decimal(float(d[i][j]))))
    return worst


def naive_delta(p, q, ratio):
    return sum(max(0.0, a - math.exp(ratio) * b) for a, b in zip(p, q, strict=True))


class TestLosses:
    @given(data=st.data())
    def test_expected_and_worst(self, data):
        m = data.draw(mechanisms())
        n_s, n_o = m.matrix.shape
        prior = data.draw(priors(m.secrets))
        loss = data.draw(nonnegative_matrices(n_s, n_o))
        each = [sum(m.matrix[s, o] * loss[s, o] for o in range(n_o)) for s in range(n_s)]
        total = sum(w * e for w, e in zip(prior.weights, each, strict=True))
        assert measures.expected_loss(m, prior, loss) == pytest.approx(total, abs=1e-13)
        assert measures.worst_loss(m, loss) == pytest.approx(max(each), abs=1e-13)

    def test_randomized_response(self):
        """Wrong with probability (n - 1) / (e^ε + n - 1)."""
        m = randomized_response(5, 1.2)
        wrong = 4 / (math.exp(1.2) + 4)
        assert measures.expected_loss(m, om.Prior.uniform(m.secrets), H) == pytest.approx(wrong)
        assert measures.worst_loss(m, H) == pytest.approx(wrong, rel=1e-15)

    @pytest.mark.parametrize(
        ("loss", "message"),
        [
            (np.ones((2, 2)), "does not fit"),
            (np.full((3, 3), np.nan), "NaN"),
            (-np.eye(3), "below 0"),
            ("hamming", "Use om.distances.hamming"),
            ([1, 2, 3], "1 dimension"),
        ],
    )
    def test_refuses_losses(self, loss, message):
        m = randomized_response(3, 1)
        with pytest.raises(om.ProblemError, match=message):
            measures.worst_loss(m, loss)
        with pytest.raises(om.ProblemError, match=message):
            measures.expected_loss(m, om.Prior.uniform(m.secrets), loss)


class TestDistortion:
    @given(data=st.data())
    def test_definition_with_any_distance(self, data):
        m = data.draw(mechanisms())
        n_s, n_o = m.matrix.shape
        prior = data.draw(priors(m.secrets))
        d = data.draw(nonnegative_matrices(n_s, n_s))
        total = sum(
            min(
                sum(prior.weights[s] * m.matrix[s, o] * d[t, s] for s in range(n_s))
                for t in range(n_s)
            )
            for o in range(n_o)
        )
        found = measures.distortion(m, prior, om.distances.matrix(d))
        assert found == pytest.approx(total, abs=1e-13)
        blind = min(sum(prior.weights[s] * d[t, s] for s in range(n_s)) for t in range(n_s))
        assert found <= blind + 1e-13

    def test_what_is_known_for_certain(self, grid, prior):
        told = om.Mechanism(grid, grid, np.eye(12))
        silent = om.Mechanism(grid, om.Domain("?"), np.ones((12, 1)))
        table = [math.fsum(prior.weights * row) for row in E(grid, grid)]
        assert measures.distortion(told, prior, E) == 0
        assert measures.distortion(silent, prior, E) == pytest.approx(min(table), rel=1e-14)


class TestEpsilon:
    @given(data=st.data(), zeros=st.booleans())
    def test_definition(self, data, zeros):
        m = data.draw(mechanisms(zeros=zeros))
        d = data.draw(metrics(len(m.secrets)))
        expected = naive_epsilon(m.matrix, d)
        assert measures.epsilon(m, om.distances.matrix(d)) == pytest.approx(expected, rel=1e-15)
        ones = np.ones_like(d)
        assert measures.epsilon(m) == pytest.approx(naive_epsilon(m.matrix, ones), rel=1e-15)

    @pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.5, math.log(3), 10.0, 40.0])
    def test_randomized_response(self, epsilon):
        assert measures.epsilon(randomized_response(7, epsilon)) == pytest.approx(
            epsilon, rel=1e-14, abs=1e-15
        )

    @pytest.mark.parametrize("alpha", [0.9, 0.5, 0.01, 1e-30])
    def test_truncated_geometric(self, alpha):
        m = truncated_geometric(6, alpha)
        assert measures.epsilon(m, E) == pytest.approx(-math.log(alpha), rel=1e-14)
        assert measures.epsilon(m) == pytest.approx(-5 * math.log(alpha), rel=1e-14)

    @given(
        st.integers(1, 2**52), st.integers(1, 2**52), st.integers(-1074, 0), st.integers(-1074, 0)
    )
    @example(2**52, 2**52, -1073, 0)
    @example(3 * 10**15, 3 * 10**15 + 12345, 0, 0)
    @example(2**52, 2**52 - 1, -53, -53)
    @example(3, 1, -1074, -1074)
    def test_right_to_the_last_digits_for_every_pair_of_floats(self, a, b, e, f):
        p, q = math.ldexp(a / 2**53, e), math.ldexp(b / 2**53, f)
        assume(p > 0 and q > 0)
        domain = om.Domain("ab")
        m = om.Mechanism(domain, domain, [[p, 1 - p], [q, 1 - q]])
        true = max(abs(exact_log(*column)) for column in m.matrix.T)
        found = Decimal(measures.epsilon(m))
        assert abs(found - true) <= Decimal(2) ** -51 * max(true, Decimal(2) ** -53)

    def test_equal_up_to_the_last_digit(self):
        domain, step = om.Domain("ab"), 2.0**-53
        m = om.Mechanism(domain, domain, [[0.5, 0.5], [0.5 - step, 0.5 + 2 * step]])
        assert measures.epsilon(m) == pytest.approx(4 * step, rel=1e-15)

    def test_zero_facing_a_positive_entry(self):
        line = om.Domain.range(3)
        m = om.Mechanism(line, line, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0.25, 0.75, 0]])
        assert measures.epsilon(m, E) == pytest.approx(math.log(2), rel=1e-15)
        tiny = om.Mechanism(line, line, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0.25, 0.75, 5e-324]])
        assert measures.epsilon(tiny, E) == math.inf
        assert measures.epsilon(tiny, E, pairs=[(0, 1)]) == 0

    def test_secrets_at_distance_zero_need_equal_rows(self):
        domain = om.Domain("abc")
        d = om.distances.matrix([[0, 0, 2], [0, 0, 2], [2, 2, 0]])
        same = om.Mechanism(domain, domain, [[0.5, 0.25, 0.25]] * 2 + [[0.25, 0.5, 0.25]])
        assert measures.epsilon(same, d) == pytest.approx(math.log(2) / 2, rel=1e-15)
        off = same.matrix.copy()
        off[1, :2] += [2**-54, -(2**-54)]
        assert measures.epsilon(om.Mechanism(domain, domain, off), d) == math.inf

    def test_single_secret_and_single_observable(self):
        one, two = om.Domain("a"), om.Domain("ab")
        assert measures.epsilon(om.Mechanism(one, two, [[0.5, 0.5]]), H) == 0
        assert measures.tightest(om.Mechanism(one, two, [[0.5, 0.5]])).indices is None
        assert measures.epsilon(om.Mechanism(two, one, [[1.0], [1.0]]), H) == 0
        assert measures.tightest(om.Mechanism(two, one, [[1.0], [1.0]])).indices == (0, 1, 0)

    def test_finds_the_largest_of_ratios_that_overflow(self):
        rows = [[0.4, 0.4, 0.2], [1e-310, 5e-324, 1.0]]
        m = om.Mechanism(om.Domain("ab"), om.Domain("xyz"), rows)
        found = measures.tightest(m)
        assert found.observable == "y"
        assert found.value == pytest.approx(float(exact_log(0.4, 5e-324)), rel=1e-15)

    def test_names_the_secrets_and_the_observable(self):
        line = om.Domain.range(3)
        m = om.Mechanism(
            line, om.Domain("xyz"), [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
        )
        found = measures.tightest(m, E)
        assert (found.secret, found.other, found.observable) in {(1, 2, "x"), (2, 1, "z")}
        i, j, o = found.indices
        assert found.value == math.log(m.matrix[i, o] / m.matrix[j, o])
        assert str(found).startswith("epsilon 0.693147181 at secrets ")

    def test_pairs_count_in_both_directions(self):
        m = randomized_response(4, 2.0).then(randomized_response(4, 0.5))
        skewed = m.matrix.copy()
        skewed[0] = [0.97, 0.01, 0.01, 0.01]
        m = om.Mechanism(m.secrets, m.secrets, skewed)
        table = {
            (i, j): naive_epsilon(skewed[[i, j]], np.ones((2, 2)))
            for i, j in itertools.combinations(range(4), 2)
        }
        for (i, j), expected in table.items():
            for pairs in ([(i, j)], [(j, i)], np.array([[i, j], [j, j]])):
                assert measures.epsilon(m, pairs=pairs) == pytest.approx(expected, rel=1e-15)
        both = measures.epsilon(m, pairs=[(0, 1), (2, 3)])
        assert both == pytest.approx(max(table[0, 1], table[2, 3]), rel=1e-15)

    def test_asymmetric_distance_is_taken_in_order(self):
        """d(s, s') divides ln(p(o|s) / p(o|s'))."""
        domain = om.Domain("ab")
        m = om.Mechanism(domain, domain, [[0.8, 0.2], [0.4, 0.6]])
        d = om.distances.matrix([[0, 10], [1, 0]])
        assert measures.epsilon(m, d) == pytest.approx(math.log(3), rel=1e-15)
        assert measures.epsilon(m, om.distances.matrix([[0, 1], [10, 0]])) == pytest.approx(
            math.log(2), rel=1e-15
        )

    def test_agrees_with_the_whole_tensor_at_once(self, rng):
        domain = om.Domain(range(60), rng.normal(size=(60, 2)))
        m = om.Mechanism(domain, domain, rng.dirichlet(np.full(60, 0.7), 60))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(m.matrix[:, None, :] / m.matrix[None, :, :]).max(axis=2)
            expected = np.nanmax(ratios / E(domain, domain))
        assert measures.epsilon(m, E) == pytest.approx(expected, rel=1e-13)

    @pytest.mark.parametrize(
        "pairs",
        [[], [(0,)], [(0, 3)], [(-1, 0)], [(0, 0.5)], "all", [("a", "b")], [(0, math.nan)], 3],
    )
    def test_refuses_pairs(self, pairs):
        m = randomized_response(3, 1)
        for measure in (measures.epsilon, measures.tightest):
            with pytest.raises(om.ProblemError, match="pairs"):
                measure(m, pairs=pairs)

    @pytest.mark.parametrize(
        "distance", [np.ones((3, 2)), np.ones(3), "euclidean", om.distances.matrix(np.eye(2))]
    )
    def test_refuses_distances(self, distance):
        with pytest.raises(om.ProblemError, match="distance"):
            measures.epsilon(randomized_response(3, 1), distance)


class TestDelta:
    @given(data=st.data(), epsilon=st.floats(0, 5))
    def test_definition_by_events(self, data, epsilon):
        """δ is the largest p(R) - e^{ε d} q(R) over all sets R of observables."""
        m = data.draw(mechanisms(most=4))
        d = data.draw(metrics(len(m.secrets)))
        n_s, n_o = m.matrix.shape
        worst = 0.0
        for i, j in itertools.permutations(range(n_s), 2):
            for size in range(n_o + 1):
                for event in map(list, itertools.combinations(range(n_o), size)):
                    gain = math.exp(epsilon * d[i, j]) * m.matrix[j, event].sum()
                    worst = max(worst, m.matrix[i, event].sum() - gain)
        assert measures.delta(m, epsilon, om.distances.matrix(d)) == pytest.approx(worst, abs=1e-14)

    def test_randomized_response(self):
        m = randomized_response(5, 2.0)
        for epsilon in (0.0, 0.3, 1.0, 1.999, 2.0, 3.0):
            expected = max(0.0, (math.exp(2) - math.exp(epsilon)) / (math.exp(2) + 4))
            assert measures.delta(m, epsilon) == pytest.approx(expected, abs=1e-15)
        assert measures.delta(m, "ln 2") == pytest.approx(
            (math.exp(2) - 2) / (math.exp(2) + 4), rel=1e-14
        )

    def test_pairs_limit_it(self):
        rows = [[1, 0], [0.75, 0.25], [0, 1]]
        m = om.Mechanism(om.Domain.range(3), om.Domain.range(2), rows)
        assert measures.delta(m, 0) == 1
        assert measures.delta(m, 0, pairs=[(0, 1)]) == 0.25
        assert measures.delta(m, 0, pairs=[(2, 1)]) == 0.75

    def test_enormous_exponents(self):
        """e^{εd} overflows where its product with a small probability does not."""
        q = 5e-324
        m = om.Mechanism(om.Domain.range(2), om.Domain.range(2), [[0.5, 0.5], [q, 1]])
        assert measures.delta(m, 740, E) == pytest.approx(
            0.5 - math.exp(740 + math.log(q)), rel=1e-9
        )
        assert measures.delta(m, 1e5, E) == 0
        zero = om.Mechanism(om.Domain.range(2), om.Domain.range(2), [[0.5, 0.5], [0, 1]])
        assert measures.delta(zero, 1e5, E) == 0.5

    @pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf, "x", None])
    def test_refuses(self, epsilon):
        with pytest.raises(om.ProblemError, match="epsilon"):
            measures.delta(randomized_response(3, 1), epsilon)


class TestEpsilonForDelta:
    def test_randomized_response(self):
        """δ(ε) = (e^{ε0} - e^ε) / (e^{ε0} + n - 1), solved for ε."""
        m = randomized_response(5, 2.0)
        for delta in (0.0, 1e-9, 0.1, 0.3):
            expected = math.log(math.exp(2) - delta * (math.exp(2) + 4))
            assert measures.epsilon_for_delta(m, delta) == pytest.approx(expected, rel=1e-13)
        assert measures.epsilon_for_delta(m, 0.9) == 0

    @given(data=st.data(), delta=st.floats(0, 1))
    def test_least_epsilon_that_meets_delta(self, data, delta):
        m = data.draw(mechanisms(least=2))
        distance = om.distances.matrix(data.draw(metrics(len(m.secrets))))
        found = measures.epsilon_for_delta(m, delta, distance)
        if found == math.inf:
            # what no ε covers: the mass of one row on the zeros of another
            excluded = max(
                m.matrix[i][m.matrix[j] == 0].sum()
                for i, j in itertools.permutations(range(len(m.secrets)), 2)
            )
            assert excluded > delta
            return
        assert measures.delta(m, found, distance) <= delta + 1e-14
        if found > 0:
            assert measures.delta(m, found, distance) == pytest.approx(delta, abs=1e-14)
            less = measures.delta(m, found * (1 - 1e-6), distance)
            assert less > delta or delta == pytest.approx(less, abs=1e-14)

    @given(data=st.data(), delta=st.floats(0.001, 0.9))
    def test_agrees_with_bisection(self, data, delta):
        m = data.draw(mechanisms(least=2, most=4, zeros=False))
        found = measures.epsilon_for_delta(m, delta)
        low, high = 0.0, 10.0
        worst = lambda e: max(  # noqa: E731
            naive_delta(p, q, e) for p, q in itertools.permutations(m.matrix, 2)
        )
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if worst(middle) > delta else (low, middle)
        assert found == pytest.approx(high if worst(0) > delta else 0, abs=1e-12)

    def test_at_zero_it_is_the_tight_epsilon(self, mechanism):
        assert measures.epsilon_for_delta(mechanism, 0, E) == measures.epsilon(mechanism, E)

    def test_distance_zero_is_total_variation(self):
        m = om.Mechanism(om.Domain("ab"), om.Domain("xy"), [[0.5, 0.5], [0.25, 0.75]])
        d = om.distances.matrix(np.zeros((2, 2)))
        assert measures.epsilon_for_delta(m, 0.2, d) == math.inf
        assert measures.epsilon_for_delta(m, 0.25, d) == 0

    def test_every_pair_counts(self, rng):
        """The largest of the pairs' own values, computed one by one."""
        m = om.Mechanism(om.Domain.range(9), om.Domain.range(7), rng.dirichlet(np.ones(7), 9))
        each = [
            measures.hockey_stick_curve(m.matrix[i], m.matrix[j]).epsilon(0.05) / abs(i - j)
            for i, j in itertools.permutations(range(9), 2)
        ]
        assert measures.epsilon_for_delta(m, 0.05, E) == pytest.approx(max(each), rel=1e-14)
        near = [
            each[k]
            for k, (i, j) in enumerate(itertools.permutations(range(9), 2))
            if abs(i - j) == 1
        ]
        pairs = [(i, i + 1) for i in range(8)]
        assert measures.epsilon_for_delta(m, 0.05, E, pairs=pairs) == pytest.approx(
            max(near), rel=1e-14
        )

    @pytest.mark.parametrize("delta", [-0.1, 1.1, math.nan, "x", None])
    def test_refuses(self, delta):
        with pytest.raises(om.ProblemError, match="delta"):
            measures.epsilon_for_delta(randomized_response(3, 1), delta)


class TestHockeyStickCurve:
    @given(data=st.data())
    def test_decreasing_convex_and_linear_between_breakpoints(self, data):
        count = data.draw(st.integers(1, 7))
        p, q = data.draw(distributions(count)), data.draw(distributions(count))
        curve = measures.hockey_stick_curve(p, q)
        epsilons, deltas = curve.breakpoints
        assert epsilons[0] == 0
        assert (np.diff(epsilons) > 0).all()
        assert deltas[0] == pytest.approx(np.abs(p - q).sum() / 2, abs=1e-15)
        assert deltas[-1] == pytest.approx(curve.residual, abs=1e-14)
        assert curve.residual == pytest.approx(p[q == 0].sum(), abs=1e-15)
        for epsilon, delta in zip(epsilons, deltas, strict=True):
            assert delta == pytest.approx(naive_delta(p, q, epsilon), abs=1e-14)
        ends = np.append(epsilons, epsilons[-1] + 1)
        values = [curve.delta(e) for e in ends]
        assert (np.diff(values) <= 1e-15).all()
        for k, j in itertools.combinations(range(len(ends)), 2):
            middle = curve.delta(math.log((math.exp(ends[k]) + math.exp(ends[j])) / 2))
            chord = (values[k] + values[j]) / 2
            assert middle <= chord + 1e-14
            if j == k + 1:
                assert middle == pytest.approx(chord, abs=1e-14)

    @given(data=st.data(), share=st.floats(0.01, 0.99))
    def test_inverse(self, data, share):
        count = data.draw(st.integers(2, 7))
        p, q = data.draw(distributions(count)), data.draw(distributions(count))
        curve = measures.hockey_stick_curve(p, q)
        first, last = curve.delta(0), curve.residual
        assume(first - last > 1e-6)
        delta = last + share * (first - last)
        assert curve.delta(curve.epsilon(delta)) == pytest.approx(delta, abs=1e-14)
        assert curve.epsilon(min(1.0, first + 1e-9)) == 0
        if last > 0:
            assert curve.epsilon(last * 0.999) == math.inf

    def test_by_hand(self):
        """p = (1/2, 1/4, 1/4), q = (1/8, 1/4, 5/8): δ = 1/2 - t/8 up to t = 4, then 0."""
        curve = measures.hockey_stick_curve([0.5, 0.25, 0.25], [0.125, 0.25, 0.625])
        epsilons, deltas = curve.breakpoints
        assert epsilons == pytest.approx([0, math.log(4)], abs=1e-15)
        assert deltas == pytest.approx([0.375, 0], abs=1e-15)
        assert curve.delta("ln 2") == pytest.approx(0.25, abs=1e-15)
        assert curve.epsilon(0.25) == pytest.approx(math.log(2), rel=1e-15)
        assert curve.epsilon("1/8") == pytest.approx(math.log(3), rel=1e-15)
        assert curve.epsilon(0) == pytest.approx(math.log(4), rel=1e-15)

    @pytest.mark.parametrize(
        ("p", "q", "message"),
        [
            ([0.5, 0.5], [1.0], "1 entries, and p has 2"),
            ([0.5, 0.6], [0.5, 0.5], "^p: .*sum 1.1"),
            ([0.5, 0.5], [1.5, -0.5], "^q: "),
            ([], [], "^p: "),
            ([[0.5, 0.5]], [0.5, 0.5], "dimension"),
            ([math.nan, 1], [0.5, 0.5], "NaN"),
        ],
    )
    def test_refuses(self, p, q, message):
        with pytest.raises(om.ProblemError, match=message):
            measures.hockey_stick_curve(p, q)


class TestDistributionPrivacy:
    @given(data=st.data(), epsilon=st.floats(0, 3))
    def test_definition(self, data, epsilon):
        m = data.draw(mechanisms())
        a, b = (data.draw(distributions(len(m.secrets))) for _ in range(2))
        p, q = a @ m.matrix, b @ m.matrix
        expected = max(naive_delta(p, q, epsilon), naive_delta(q, p, epsilon))
        assert measures.distribution_delta(m, a, b, epsilon) == pytest.approx(expected, abs=1e-14)
        rows = naive_epsilon(np.array([p, q]), np.ones((2, 2)))
        assert measures.distribution_epsilon(m, a, b) == pytest.approx(rows, rel=1e-14)

    @given(data=st.data(), delta=st.floats(0.01, 0.5))
    def test_inverse_and_symmetry(self, data, delta):
        m = data.draw(mechanisms(zeros=False))
        a, b = (data.draw(distributions(len(m.secrets))) for _ in range(2))
        found = measures.distribution_epsilon(m, a, b, delta)
        assert measures.distribution_epsilon(m, b, a, delta) == found
        assert measures.distribution_delta(m, a, b, found) <= delta + 1e-14
        if found > 0:
            assert measures.distribution_delta(m, a, b, found) == pytest.approx(delta, abs=1e-14)

    @given(data=st.data())
    def test_point_masses_are_secrets_and_no_pair_beats_them(self, data):
        """(ε, δ)-DP for all pairs gives (ε, δ)-DistP for all pairs (DP19 Theorem 1, repaired)."""
        m = data.draw(mechanisms(least=2, zeros=False))
        unit = np.eye(len(m.secrets))
        points = max(
            measures.distribution_epsilon(m, unit[i], unit[j])
            for i, j in itertools.combinations(range(len(unit)), 2)
        )
        assert points == pytest.approx(measures.epsilon(m), rel=1e-15)
        a, b = (data.draw(distributions(len(unit))) for _ in range(2))
        assert measures.distribution_epsilon(m, a, b) <= points + 1e-14
        assert measures.distribution_delta(m, a, b, 0.1) <= measures.delta(m, 0.1) + 1e-14

    def test_real_distributions_match_the_published_total_variation(self, shared_data):
        """0.153 between the start stations of men and women, on 20 x 15 cells (data README)."""
        from optmech.reading.columns import read_columns

        table = read_columns(
            shared_data / "citibike_nyc_201807_sample.csv", ["start_lon", "start_lat", "gender"]
        )
        grid = om.Grid.geographic(20, 15, (-74.02, 40.70, -73.93, 40.82))
        xy = np.column_stack([table["start_lon"], table["start_lat"]])
        men, women = (om.Prior.from_points(grid, xy[table["gender"] == g]) for g in (1, 2))
        told = om.Mechanism(grid, grid, np.eye(300))
        assert measures.distribution_delta(told, men, women, 0) == pytest.approx(0.153, abs=5e-4)

    @pytest.mark.parametrize(
        ("lam", "message"),
        [
            ([1.0], r"^lam1: .*do not fit 3"),
            ([1, -1, 1], "^lam1: .*negative"),
            ([0, 0, 0], "^lam1: "),
            ("abc", "^lam1: "),
            (om.Prior.uniform(om.Domain("abc")), "^lam1: "),
        ],
    )
    def test_refuses(self, lam, message):
        m = randomized_response(3, 1)
        with pytest.raises(om.ProblemError, match=message):
            measures.distribution_epsilon(m, [1, 0, 0], lam)


class TestInformation:
    @given(data=st.data())
    def test_definitions(self, data):
        m = data.draw(mechanisms())
        n_s, n_o = m.matrix.shape
        prior = data.draw(priors(m.secrets))
        w = prior.weights
        after = measures.posterior(m, prior)
        vulnerability, uncertainty = 0.0, 0.0
        for o in range(n_o):
            joint = [w[s] * m.matrix[s, o] for s in range(n_s)]
            evidence = sum(joint)
            vulnerability += max(joint)
            expected = [x / evidence for x in joint] if evidence else w
            assert after[o] == pytest.approx(np.array(expected), abs=1e-15)
            uncertainty -= sum(x * math.log2(x / evidence) for x in joint if x)
        assert measures.bayes_vulnerability(m, prior) == pytest.approx(vulnerability, abs=1e-15)
        assert measures.conditional_entropy(m, prior) == pytest.approx(uncertainty, abs=1e-13)
        known = (prior.entropy - uncertainty) * math.log(2)  # in nats
        assert measures.mutual_information(m, prior) == pytest.approx(known, abs=1e-13)

    def test_all_or_nothing(self, grid, prior):
        told = om.Mechanism(grid, grid, np.eye(12))
        silent = om.Mechanism(grid, om.Domain("?"), np.ones((12, 1)))
        assert measures.conditional_entropy(told, prior) == 0
        nats = prior.entropy * math.log(2)
        assert measures.mutual_information(told, prior) == pytest.approx(nats, rel=1e-14)
        assert measures.bayes_vulnerability(told, prior) == pytest.approx(1, rel=1e-15)
        assert measures.conditional_entropy(silent, prior) == pytest.approx(prior.entropy)
        assert measures.mutual_information(silent, prior) == pytest.approx(0, abs=1e-15)
        assert measures.bayes_vulnerability(silent, prior) == prior.weights.max()

    def test_impossible_observable_leaves_the_prior(self):
        m = om.Mechanism(om.Domain("ab"), om.Domain("xyz"), [[1, 0, 0], [0.5, 0, 0.5]])
        after = measures.posterior(m, om.Prior(om.Domain("ab"), [3, 1]))
        assert after[1].tolist() == [0.75, 0.25]
        after = measures.posterior(m, om.Prior(om.Domain("ab"), [1, 0]))
        assert after[2].tolist() == [1, 0]

    def test_posterior_survives_underflow(self):
        m = om.Mechanism(om.Domain("ab"), om.Domain("xy"), [[1e-200, 1], [2e-200, 1]])
        after = measures.posterior(m, om.Prior(om.Domain("ab"), [1, 1e-200]))
        assert after[0] == pytest.approx(np.array([1, 2e-200]), rel=1e-14, abs=0)
        certain = om.Mechanism(om.Domain("ab"), om.Domain("xy"), [[0, 1], [1e-300, 1]])
        after = measures.posterior(certain, om.Prior(om.Domain("ab"), [1, 1e-300]))
        assert after[0].tolist() == [0, 1]

    @pytest.mark.parametrize(
        "prior",
        [[0.5, 0.5], om.Prior.uniform(om.Domain("abc")), om.Prior.uniform(om.Domain.range(4))],
    )
    def test_refuses_priors_that_are_not_over_the_secrets(self, prior):
        m = randomized_response(3, 1)
        for measure in (
            measures.posterior,
            measures.bayes_vulnerability,
            measures.conditional_entropy,
            measures.mutual_information,
        ):
            with pytest.raises(om.ProblemError, match=r"^prior: "):
                measure(m, prior)
        with pytest.raises(om.ProblemError, match=r"^prior: "):
            measures.expected_loss(m, prior, H)
        with pytest.raises(om.ProblemError, match=r"^prior: "):
            measures.distortion(m, prior, H)


@given(data=st.data(), delta=st.floats(0.01, 0.5), epsilon=st.floats(0, 3))
def test_processing_the_output_reveals_nothing_more(data, delta, epsilon):
    m = data.draw(mechanisms(least=2))
    prior = data.draw(priors(m.secrets))
    outputs = om.Domain("pqr")
    after = m.then(
        om.Mechanism(m.observables, outputs, data.draw(stochastic_matrices(len(m.observables), 3)))
    )
    distance = om.distances.matrix(data.draw(metrics(len(m.secrets))))
    less = 1 + 1e-12
    assert measures.epsilon(after, distance) <= measures.epsilon(m, distance) * less + 1e-14
    assert measures.delta(after, epsilon, distance) <= measures.delta(m, epsilon, distance) + 1e-14
    before = measures.epsilon_for_delta(m, delta, distance)
    if before < math.inf:
        assert measures.delta(after, before, distance) <= delta + 1e-13
    for measure in (measures.mutual_information, measures.bayes_vulnerability):
        assert measure(after, prior) <= measure(m, prior) + 1e-13
    error = measures.distortion(m, prior, distance)
    assert measures.distortion(after, prior, distance) >= error - 1e-13
