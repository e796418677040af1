from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import highspy
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog
from strategies import (
    mechanisms,
    nonnegative_matrices,
    priors,
    randomized_response,
    stochastic_matrices,
    truncated_geometric,
)

import optmech as om
from optmech import attacks, measures
from optmech.base.highs import run_highs

E, H = om.distances.euclidean(), om.distances.hamming()


@st.composite
def games(draw, least=1, most=5):
    """A mechanism, a prior, and a distance that need be neither symmetric nor zero at home."""
    m = draw(mechanisms(least, most))
    d = draw(nonnegative_matrices(len(m.secrets), len(m.secrets)))
    return m, draw(priors(m.secrets)), d


def errors_by_definition(m, strategy, d):
    """E_s = Σ_o p(o|s) Σ_t q(t|o) d(t,s), term by term (PG 6)."""
    n_s, n_o = m.matrix.shape
    return [
        sum(m.matrix[s, o] * strategy[o, t] * d[t, s] for o in range(n_o) for t in range(n_s))
        for s in range(n_s)
    ]


def best_by_linear_program(m, weights, d):
    """The linear program PG (19), as it is printed."""
    n_s, n_o = m.matrix.shape
    cost = np.zeros(n_o * n_s)
    rows = np.zeros((n_o, n_o * n_s))
    for o, t in itertools.product(range(n_o), range(n_s)):
        cost[o * n_s + t] = sum(weights[s] * m.matrix[s, o] * d[t, s] for s in range(n_s))
        rows[o, o * n_s + t] = 1.0
    return linprog(cost, A_eq=rows, b_eq=np.ones(n_o)).fun


def minimax_by_linear_program(m, d, over):
    """The linear programs PG (28) and (29), as they are printed."""
    n_s, n_o = m.matrix.shape
    limits = []
    for s in range(n_s):
        row = np.zeros(n_o * n_s + 1)
        row[-1] = -1.0
        for t in range(n_s):
            alone = np.zeros(n_o * n_s + 1)
            alone[-1] = -1.0
            for o in range(n_o):
                row[o * n_s + t] = alone[o * n_s + t] = m.matrix[s, o] * d[t, s]
            if over == "pairs":
                limits.append(alone)
        if over == "secrets":
            limits.append(row)
    sums = np.zeros((n_o, n_o * n_s + 1))
    for o in range(n_o):
        sums[o, o * n_s : (o + 1) * n_s] = 1.0
    cost = np.zeros(n_o * n_s + 1)
    cost[-1] = 1.0
    result = linprog(
        cost, A_ub=np.array(limits), b_ub=np.zeros(len(limits)), A_eq=sums, b_eq=np.ones(n_o)
    )
    assert result.status == 0
    return result.fun


class TestOptimal:
    @given(games())
    def test_equals_the_linear_program_and_the_distortion(self, game):
        m, prior, d = game
        distance = om.distances.matrix(d)
        attack = attacks.optimal_attack(m, prior, distance)
        assert attack.error == pytest.approx(best_by_linear_program(m, prior.weights, d), abs=1e-12)
        assert attack.error == pytest.approx(measures.distortion(m, prior, distance), abs=1e-14)
        assert attack.strategy.shape == m.matrix.T.shape
        assert sorted(set(attack.strategy.ravel())) in ([0.0, 1.0], [1.0])
        assert (attack.strategy.sum(axis=1) == 1).all()
        expected = errors_by_definition(m, attack.strategy, d)
        assert attack.error_per_secret == pytest.approx(np.array(expected), abs=1e-14)

    @given(games(most=3))
    def test_no_deterministic_attack_is_better(self, game):
        m, prior, d = game
        n_s, n_o = m.matrix.shape
        best = min(
            sum(
                prior.weights[s] * m.matrix[s, o] * d[guesses[o], s]
                for s in range(n_s)
                for o in range(n_o)
            )
            for guesses in itertools.product(range(n_s), repeat=n_o)
        )
        found = attacks.optimal_attack(m, prior, om.distances.matrix(d)).error
        assert found == pytest.approx(best, abs=1e-14)

    @given(data=st.data())
    def test_no_random_attack_is_better(self, data):
        m, prior, d = data.draw(games())
        distance = om.distances.matrix(d)
        q = data.draw(stochastic_matrices(*m.matrix.T.shape))
        other = attacks.evaluate(m, q, prior, distance=distance)
        assert attacks.optimal_attack(m, prior, distance).error <= other.error + 1e-13

    def test_randomized_response(self):
        """Believe the answer while e^ε π(o) beats the largest π: by hand on three secrets."""
        m = randomized_response(3, math.log(2))
        prior = om.Prior(m.secrets, [0.6, 0.3, 0.1])
        attack = attacks.optimal_attack(m, prior, H)
        assert attack.strategy.argmax(axis=1).tolist() == [0, 0, 0]
        assert attack.error == pytest.approx(0.4, rel=1e-14)
        uniform = attacks.optimal_attack(m, om.Prior.uniform(m.secrets), H)
        assert (uniform.strategy == np.eye(3)).all()
        assert uniform.error == pytest.approx(0.5, rel=1e-14)

    def test_hamming_error_is_the_complement_of_vulnerability(self, mechanism, prior):
        found = attacks.optimal_attack(mechanism, prior, H).error
        assert found == pytest.approx(1 - measures.bayes_vulnerability(mechanism, prior), rel=1e-14)

    def test_plays_the_median_on_a_line(self):
        """With |t - s| the best estimate is a median of the posterior."""
        m = truncated_geometric(7, 0.5)
        prior = om.Prior(m.secrets, [1, 5, 2, 8, 3, 1, 4])
        attack = attacks.optimal_attack(m, prior, E)
        for o, after in enumerate(measures.posterior(m, prior)):
            t = int(attack.strategy[o].argmax())
            assert after[:t].sum() <= 0.5 + 1e-12
            assert after[t + 1 :].sum() <= 0.5 + 1e-12

    def test_impossible_observable_gets_the_best_blind_guess(self):
        line = om.Domain.range(3)
        m = om.Mechanism(line, om.Domain("xy"), [[1, 0], [1, 0], [1, 0]])
        attack = attacks.optimal_attack(m, om.Prior(line, [1, 1, 3]), E)
        assert attack.strategy.argmax(axis=1).tolist() == [2, 2]

    def test_true_prior_charges_an_adversary_who_assumes_another(self):
        line = om.Domain.range(3)
        m = om.Mechanism(line, line, np.full((3, 3), 1 / 3))
        wrong, true = om.Prior(line, [1, 0, 0]), om.Prior(line, [0, 1, 3])
        attack = attacks.optimal_attack(m, wrong, E, evaluated_under=true)
        assert attack.strategy.argmax(axis=1).tolist() == [0, 0, 0]
        assert attack.error == pytest.approx(0.25 * 1 + 0.75 * 2)
        assert attacks.optimal_attack(m, wrong, E).error == 0
        assert attacks.bayesian(m, wrong, E, evaluated_under=true).error == attack.error

    @given(data=st.data())
    def test_wrong_beliefs_never_help(self, data):
        m, true, d = data.draw(games())
        distance, assumed = om.distances.matrix(d), data.draw(priors(m.secrets))
        best = attacks.optimal_attack(m, true, distance).error
        misled = attacks.optimal_attack(m, assumed, distance, evaluated_under=true)
        assert misled.error >= best - 1e-13
        assert (misled.strategy == attacks.optimal_attack(m, assumed, distance).strategy).all()


class TestBayesian:
    @given(games())
    def test_draws_from_the_posterior(self, game):
        m, prior, d = game
        attack = attacks.bayesian(m, prior, om.distances.matrix(d))
        assert (attack.strategy == measures.posterior(m, prior)).all()
        expected = prior.weights @ errors_by_definition(m, attack.strategy, d)
        assert attack.error == pytest.approx(expected, abs=1e-13)

    def test_at_most_twice_the_optimal_error_on_a_metric(self, mechanism, prior):
        """Two draws from one posterior: by the triangle inequality through the best estimate."""
        best = attacks.optimal_attack(mechanism, prior, E).error
        assert best < attacks.bayesian(mechanism, prior, E).error <= 2 * best

    def test_randomized_response(self):
        """Wrong with probability 1 - Σ_t p(t)², the same for every answer."""
        m = randomized_response(4, 1.0)
        truth = math.e / (math.e + 3)
        expected = 1 - truth**2 - 3 * ((1 - truth) / 3) ** 2
        attack = attacks.bayesian(m, om.Prior.uniform(m.secrets), H)
        assert attack.error == pytest.approx(expected, rel=1e-14)
        assert attack.worst_error == pytest.approx(expected, rel=1e-14)


class TestPriorFree:
    @given(games())
    def test_minimises_the_sum_of_errors(self, game):
        m, prior, d = game
        distance = om.distances.matrix(d)
        attack = attacks.prior_free(m, distance)
        total = best_by_linear_program(m, np.ones(len(m.secrets)), d)
        assert attack.error_per_secret.sum() == pytest.approx(total, abs=1e-12)
        assert attack.error == pytest.approx(total / len(m.secrets), abs=1e-12)
        charged = attacks.prior_free(m, distance, evaluated_under=prior)
        assert charged.error == pytest.approx(prior.weights @ attack.error_per_secret, abs=1e-14)
        assert charged.error >= attacks.optimal_attack(m, prior, distance).error - 1e-13


class TestMinimax:
    @pytest.mark.parametrize("over", ["secrets", "pairs"])
    @given(game=games())
    def test_equals_the_linear_program(self, over, game):
        m, prior, d = game
        distance = om.distances.matrix(d)
        attack = attacks.minimax(m, distance, over)
        expected = minimax_by_linear_program(m, d, over)
        assert attack.value == pytest.approx(expected, rel=1e-6, abs=1e-7)
        assert attack.lower_bound <= attack.value + 1e-13
        assert attack.value - attack.lower_bound <= 1e-6 * attack.value + 1e-10
        assert (attack.strategy >= 0).all()
        assert attack.strategy.sum(axis=1) == pytest.approx(np.ones(len(m.observables)), abs=1e-14)
        errors = errors_by_definition(m, attack.strategy, d)
        assert attack.error_per_secret == pytest.approx(np.array(errors), abs=1e-14)
        assert attack.error == pytest.approx(np.mean(errors), abs=1e-13)
        if over == "secrets":
            assert attack.value == pytest.approx(max(errors), abs=1e-13)
            assert attack.worst_error == pytest.approx(attack.value, abs=1e-13)
            # no prior can promise the user more than the value of the game
            assert measures.distortion(m, prior, distance) <= attack.value + 1e-12
        else:
            estimates = m.matrix @ attack.strategy
            assert attack.value == pytest.approx((estimates * d.T).max(), abs=1e-13)

    def test_silent_mechanism(self):
        """Blind guesses: uniform is best; a wrong one has probability (n-1)/n, each 1/n."""
        domain = om.Domain.range(5)
        m = om.Mechanism(domain, om.Domain("?"), np.ones((5, 1)))
        assert attacks.minimax(m, H).value == pytest.approx(4 / 5, rel=1e-6)
        assert attacks.minimax(m, H, over="pairs").value == pytest.approx(1 / 5, rel=1e-6)
        assert attacks.minimax(m, E).value == pytest.approx(2, rel=1e-6)

    def test_a_large_distance_does_not_stand_for_a_small_gap(self):
        """The last secret is told as it is, so that the distance 1e16 to it never counts: what is
        left is blind guessing between two points, 1/2, and not the 2/3 of always the first of
        three equals."""
        domain = om.Domain.range(3)
        m = om.Mechanism(domain, om.Domain("ab"), [[1, 0], [1, 0], [0, 1]])
        far = om.distances.matrix([[0, 1, 1e16], [1, 0, 1e16], [1e16, 1e16, 0]])
        attack = attacks.minimax(m, far)
        assert attack.value == pytest.approx(1 / 2, rel=1e-6)
        assert attack.lower_bound == pytest.approx(1 / 2, rel=1e-6)

    def test_randomized_response(self):
        m = randomized_response(4, 1.5)
        wrong = 3 / (math.exp(1.5) + 3)
        assert attacks.minimax(m, H).value == pytest.approx(wrong, rel=1e-6)
        assert attacks.minimax(m, H, over="pairs").value == pytest.approx(wrong / 3, rel=1e-6)

    @pytest.mark.parametrize("over", ["secrets", "pairs"])
    def test_nothing_to_lose_when_everything_is_told(self, over):
        domain = om.Domain.range(4)
        attack = attacks.minimax(om.Mechanism(domain, domain, np.eye(4)), E, over)
        assert (attack.value, attack.lower_bound, attack.error) == (0, 0, 0)
        nowhere = om.distances.matrix(np.zeros((4, 4)))
        flat = attacks.minimax(randomized_response(4, 1), nowhere, over)
        assert flat.value == 0

    @pytest.mark.parametrize("over", ["secrets", "pairs"])
    @pytest.mark.parametrize("alpha", [0.9, 1e-2, 1e-5])
    def test_proved_on_nearly_silent_and_nearly_open_mechanisms(self, over, alpha):
        attack = attacks.minimax(truncated_geometric(12, alpha), E, over)
        assert attack.value - attack.lower_bound <= 1e-6 * attack.value + 1.1e-11
        assert attack.lower_bound <= attack.value * (1 + 1e-12)

    def test_charged_under_a_prior(self, mechanism, prior):
        attack = attacks.minimax(mechanism, E, evaluated_under=prior)
        assert attack.error == pytest.approx(prior.weights @ attack.error_per_secret, rel=1e-14)
        assert attack.error >= attacks.optimal_attack(mechanism, prior, E).error

    @pytest.mark.parametrize("over", ["estimates", "", None, 3])
    def test_refuses_other_games(self, over):
        with pytest.raises(om.ProblemError, match=r"^over: .*secrets"):
            attacks.minimax(randomized_response(3, 1), H, over)

    def test_refuses_what_cannot_fit_into_memory(self, monkeypatch):
        monkeypatch.setattr("optmech.base.memory.available_bytes", lambda: 10_000)
        with pytest.raises(om.errors.TooLargeError, match="9 secrets and 9 observables"):
            attacks.minimax(randomized_response(9, 1), H)

    def test_an_unproved_answer_is_an_error(self, monkeypatch):
        """Whatever the solver returns, the value and the bound are recomputed and compared."""
        m = truncated_geometric(4, 0.5)

        def useless(m, distances, over, method):
            return np.full((4, 4), 0.25), np.full((4, 4), 1 / 16)

        monkeypatch.setattr(attacks, "_solve_minimax", useless)
        with pytest.raises(om.SolverError, match=r"only .* is proved"):
            attacks.minimax(m, E)


class TestEvaluate:
    @given(data=st.data())
    def test_definition(self, data):
        m, prior, d = data.draw(games())
        q = data.draw(stochastic_matrices(*m.matrix.T.shape))
        attack = attacks.evaluate(m, q, prior, distance=om.distances.matrix(d), name="mine")
        expected = errors_by_definition(m, q, d)
        assert attack.error_per_secret == pytest.approx(np.array(expected), abs=1e-13)
        assert attack.error == pytest.approx(prior.weights @ expected, abs=1e-13)
        assert (attack.name, attack.value, attack.lower_bound) == ("mine", None, None)
        assert not attack.strategy.flags.writeable

    @pytest.mark.parametrize(
        ("strategy", "message"),
        [
            (np.eye(3)[:2], r"shape \(2, 3\) is not"),
            (np.full((3, 3), 0.5), "row sums off 1 by up to 0.5"),
            ([[1.5, -0.5, 0], [1, 0, 0], [1, 0, 0]], "least entry -0.5"),
            ([[math.nan, 0, 1], [1, 0, 0], [1, 0, 0]], "NaN"),
            ("guess", "not a rectangular"),
            ([1, 0, 0], "1 dimension"),
        ],
    )
    def test_refuses_strategies(self, strategy, message):
        m = randomized_response(3, 1)
        with pytest.raises(om.ProblemError, match=rf"^strategy: .*{message}"):
            attacks.evaluate(m, strategy, om.Prior.uniform(m.secrets), distance=H)

    def test_refuses_priors_and_distances_that_do_not_fit(self):
        m = randomized_response(3, 1)
        other, own = om.Prior.uniform(om.Domain("abc")), om.Prior.uniform(m.secrets)
        for attack in (attacks.optimal_attack, attacks.bayesian):
            with pytest.raises(om.ProblemError, match=r"^prior"):
                attack(m, other, H)
            with pytest.raises(om.ProblemError, match=r"^prior"):
                attack(m, own, H, evaluated_under=other)
            with pytest.raises(om.ProblemError, match=r"^distance"):
                attack(m, own, np.eye(len(own) + 1))


class TestSharpened:
    @given(data=st.data(), top=st.integers(1, 8), evidence=st.floats(0, 1))
    def test_majorises_the_prior(self, data, top, evidence):
        prior = data.draw(priors(om.Domain.range(6)))
        sharp = attacks.sharpened(prior, top, evidence)
        before = np.cumsum(np.sort(prior.weights)[::-1])
        after = np.cumsum(np.sort(sharp.weights)[::-1])
        assert (after >= before - 1e-14).all()
        assert sharp.entropy <= prior.entropy + 1e-13

    def test_by_hand(self):
        prior = om.Prior(om.Domain("abcd"), [0.1, 0.4, 0.3, 0.2])
        sharp = attacks.sharpened(prior, top=2, evidence=0.3)
        boost = 0.7 + 0.3 / 0.7
        assert sharp.weights == pytest.approx(
            np.array([0.07, 0.4 * boost, 0.3 * boost, 0.14]), abs=1e-15
        )
        assert attacks.sharpened(prior, 2, 0).weights == pytest.approx(prior.weights, abs=1e-16)
        assert attacks.sharpened(prior, 1, 1).weights.tolist() == [0, 1, 0, 0]
        assert attacks.sharpened(prior, 99, 1).weights == pytest.approx(prior.weights, abs=1e-16)

    def test_better_informed_adversaries_err_less_where_they_are_right(self, mechanism, prior):
        """If secrets really follow π̃, knowing it beats assuming π (PG section 9.2)."""
        sharp = attacks.sharpened(prior, top=3, evidence=0.8)
        knowing = attacks.optimal_attack(mechanism, sharp, E).error
        assuming = attacks.optimal_attack(mechanism, prior, E, evaluated_under=sharp).error
        assert knowing < assuming

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"top": 0}, r"^top"),
            ({"top": 1.5}, r"^top"),
            ({"top": True}, r"^top"),
            ({"evidence": -0.1}, r"^evidence"),
            ({"evidence": 1.1}, r"^evidence"),
            ({"evidence": math.nan}, r"^evidence"),
            ({"evidence": "much"}, r"^evidence"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(om.ProblemError, match=message):
            attacks.sharpened(om.Prior.uniform(om.Domain("ab")), **arguments)


def test_a_linear_program_can_be_interrupted() -> None:
    """An interrupt that arrives while HiGHS works ends it, and goes on to whoever called."""
    assert hasattr(highspy.Highs(), "cancelSolve")

    class Slow:
        """A solver that works until it is told to stop."""

        HandleUserInterrupt = False
        cancelled = False

        def solve(self) -> None:
            while not self.cancelled:
                time.sleep(0.01)

        def cancelSolve(self) -> None:  # noqa: N802
            self.cancelled = True

    def interrupted() -> bool:
        raise KeyboardInterrupt

    slow = Slow()
    with pytest.raises(KeyboardInterrupt):
        run_highs(slow, interrupted)
    assert slow.cancelled


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("over", ["secrets", "pairs"])
def test_the_minimax_bound_is_below_what_its_strategy_attains(seed: int, over: str) -> None:
    """In fractions, the strategy's rows divided by their exact sums; to the last digit."""
    rng = np.random.default_rng(seed)
    secrets, outputs = rng.integers(2, 5, 2).tolist()
    d = rng.uniform(0, 1, (secrets, secrets))
    np.fill_diagonal(d, 0)
    matrix = rng.dirichlet(np.ones(outputs), secrets)
    m = om.Mechanism(om.Domain.range(secrets), om.Domain.range(outputs), matrix)
    found = attacks.minimax(m, om.distances.matrix(d), over=over)
    played = [[Fraction(x) for x in row] for row in found.strategy.tolist()]
    terms = [
        [
            sum(
                Fraction(m.matrix[s, o]) * played[o][t] / sum(played[o]) * Fraction(d[t, s])
                for o in range(outputs)
            )
            for t in range(secrets)
        ]
        for s in range(secrets)
    ]
    attained = max(sum(row) if over == "secrets" else max(row) for row in terms)
    assert Fraction(found.lower_bound) <= attained
    assert found.lower_bound <= found.value
