"""The best noise against closed forms, a linear program written here, and dp-accounting."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import optmech as om


def staircase_loss(epsilon: float, steps: int, power: int) -> float:
    """Geng and Viswanath: z = a on 0 <= |k| < w, a e^-ε up to steps - 1, and e^-ε times as much
    from one period to the next; the best w, for the loss |k|^power."""
    b = math.exp(-epsilon)
    found = []
    for w in range(1, steps + 1):
        k = np.arange(int(60 * steps / epsilon) + steps)
        z = b ** (k // steps) * np.where(k % steps < w, 1.0, b)
        found.append(2 * (z * k**power).sum() / (2 * z.sum() - z[0]))
    return min(found)


def program(epsilon: float, delta: float, steps: int, cost: np.ndarray) -> float:
    """The least loss on |k| <= n, without mirror images, tails or any other shortcut; noise that
    would leave the window is lost, so that it is nearly feasible and nearly optimal."""
    n = len(cost) // 2
    size = 2 * n + 1
    entries: list[tuple[int, int, float]] = []
    upper: list[float] = []
    columns = size
    for s in [*range(-steps, 0), *range(1, steps + 1)]:
        start = columns
        for i in range(size):
            entries.append((len(upper), i, 1.0))
            if 0 <= i + s < size:
                entries.append((len(upper), i + s, -math.exp(epsilon)))
            entries.append((len(upper), columns, -1.0))
            upper.append(0.0)
            columns += 1
        entries += [(len(upper), k, 1.0) for k in range(start, columns)]
        upper.append(delta)
    rows, across, values = zip(*entries, strict=True)
    matrix = sp.csr_array((values, (rows, across)), shape=(len(upper), columns))
    every = np.append(np.ones(size), np.zeros(columns - size))[None, :]
    full = np.append(cost, np.zeros(columns - size))
    found = linprog(full, A_ub=matrix, b_ub=upper, A_eq=every, b_eq=[1.0])
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.5, 8.0])
def test_pure_noise_of_sensitivity_one_is_two_sided_geometric(epsilon: float) -> None:
    b = math.exp(-epsilon)
    design = om.noise.optimal(epsilon)
    assert design.loss == pytest.approx(2 * b / (1 - b * b), rel=1e-7)
    assert design.lower_bound == pytest.approx(design.loss, rel=1e-7)
    assert design.lower_bound <= 2 * b / (1 - b * b) <= design.loss
    assert design.status == "optimal"
    for k in (0, 1, 5, 40):
        assert float(design.pmf(k)) == pytest.approx((1 - b) / (1 + b) * b**k, rel=1e-6)
        assert design.pmf(k) == design.pmf(-k)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(("epsilon", "steps"), [(0.3, 3), (1.0, 5), (2.0, 4), (5.0, 7), (8.0, 20)])
def test_pure_noise_is_the_staircase(epsilon: float, steps: int, power: int) -> None:
    loss = "absolute" if power == 1 else "square"
    design = om.noise.optimal(epsilon, sensitivity=steps, loss=loss)
    expected = staircase_loss(epsilon, steps, power)
    assert design.loss == pytest.approx(expected, rel=1e-6)
    assert design.lower_bound <= expected * (1 + 1e-12) <= design.loss * (1 + 2e-12)
    assert design.gap <= 1e-6


@pytest.mark.parametrize(
    ("delta", "steps"), [("1/4", 1), ("1/7", 1), (0.02, 1), ("1/8", 3), (0.05, 5)]
)
def test_without_epsilon_the_best_noise_is_as_flat_as_delta_allows(
    delta: float | str, steps: int
) -> None:
    """Total variation δ at shift s: the largest s neighbours hold at most δ; the flattest is filled
    from the centre with δ/s each."""
    most = float(Fraction(delta)) / steps
    left, loss, k = 1.0 - most, 0.0, 0
    while left > 1e-12:
        k += 1
        loss += k * min(left, 2 * most)
        left -= min(left, 2 * most)
    design = om.noise.optimal(0, delta, sensitivity=steps)
    if steps == 1:
        assert design.loss == pytest.approx(loss, rel=1e-6)
    # for wider steps this is one private noise, and may be beaten
    assert design.lower_bound <= loss * (1 + 1e-9)
    assert design.gap < 1e-6


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "loss"),
    [
        (1.0, 0.01, 1, "absolute"),
        (0.5, 0.01, 2, "square"),
        (1.0, 0.05, 3, "absolute"),
        (2.0, 1e-3, 4, "absolute"),
        (0.0, 0.1, 3, "absolute"),
        (1.0, 0.02, 2, "threshold"),
    ],
)
def test_approximate_noise_against_a_plain_program(
    epsilon: float, delta: float, steps: int, loss: str
) -> None:
    width = 3 if loss == "threshold" else None
    design = om.noise.optimal(epsilon, delta, sensitivity=steps, loss=loss, width=width)
    far = min(int(design.law.n) + 3 * steps, 45)
    k = np.abs(np.arange(-far, far + 1.0))
    cost = {"absolute": k, "square": k**2, "threshold": (k > 3) * 1.0}[loss]
    # noise at the ends of the window may leave it: the program's optimum is that of fewer noises
    assert program(epsilon, delta, steps, cost) == pytest.approx(design.loss, rel=2e-6)
    assert design.gap < 1e-6


def test_the_best_noise_need_not_fall_from_the_centre() -> None:
    """As Selvi, Liu and Wiesemann found: at sensitivity 2 and δ > 0 neighbours go up and down."""
    design = om.noise.optimal(1, 0.02, sensitivity=2, loss="threshold", width=3)
    values = [design.pmf(k) for k in range(4)]
    assert sorted(values, reverse=True) != values
    falling = om.noise.optimal(1, 0, sensitivity=2, loss="threshold", width=3)
    values = [falling.pmf(k) for k in range(12)]
    assert sorted(values, reverse=True) == values


def test_more_privacy_never_costs_less() -> None:
    losses = [om.noise.optimal(1, delta, sensitivity=2).loss for delta in (0, 1e-6, 1e-3, 0.1, 0.5)]
    assert losses == sorted(losses, reverse=True)
    assert om.noise.optimal(1, 1).loss == 0


def test_a_table_is_what_it_says_and_a_function_is_tabulated() -> None:
    table = om.noise.optimal(1, 1e-3, sensitivity=2, loss=[0, 1])
    assert table.loss == pytest.approx(
        om.noise.optimal(1, 1e-3, sensitivity=2, loss="absolute").loss, rel=1e-8
    )
    width = om.noise.optimal(1, loss=[0, 0, 0, 1, 1]).loss
    threshold = om.noise.optimal(1, loss="threshold", width=2).loss
    assert width == pytest.approx(threshold, rel=1e-12)
    capped = om.noise.optimal(1, loss=lambda k: min(abs(k), 3))
    assert capped.loss == pytest.approx(om.noise.optimal(1, loss=[0, 1, 2, 3, 3]).loss, rel=1e-12)
    assert capped.loss < om.noise.optimal(1).loss


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"), [("ln 3", 0, 2), (1, 1e-6, 1), (0.5, 1e-3, 3), (3, 0.01, 5)]
)
def test_delta_agrees_with_dp_accounting(epsilon: float | str, delta: float, steps: int) -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    design = om.noise.optimal(epsilon, delta, sensitivity=steps)
    far = design.law.n + 40 * steps
    worst = 0.0
    rate = float(design.epsilon)
    for s in range(1, steps + 1):
        lower = {k: math.log(v) for k in range(-far, far) if (v := float(design.pmf(k))) > 0}
        upper = {k + s: v for k, v in lower.items()}
        made = pld.from_two_probability_mass_functions(
            lower, upper, value_discretization_interval=1e-5
        )
        worst = max(worst, made.get_delta_for_epsilon(rate))
    # dp-accounting rounds losses up to multiples of 1e-5
    assert float(design.largest_delta[0]) <= worst + 1e-12
    assert worst <= float(design.largest_delta[0]) + 1.1e-5


def test_draws_have_the_stated_probabilities() -> None:
    design = om.noise.optimal(0.5, sensitivity=3)
    drawn = design.sample(200_000, seed=5)
    counts = {k: np.count_nonzero(drawn == k) for k in range(-45, 46)}
    for k, count in counts.items():
        p = float(design.pmf(k))
        assert abs(count - 200_000 * p) < 5 * math.sqrt(200_000 * p * (1 - p)) + 5
    beyond = np.count_nonzero(np.abs(drawn) > design.law.n + 6)
    assert beyond > 0
    assert abs(beyond / 200_000 - 2 * float(design.law.upper_tail(design.law.n + 7))) < 1e-3
    assert isinstance(design.sample(), int)


def test_masses_and_tails_are_exact() -> None:
    law = om.noise.optimal(1, sensitivity=2, loss="square").law
    near = 2 * sum((law.at(k) for k in range(1, 300)), Fraction(0)) + law.at(0)
    assert near + 2 * law.upper_tail(300) == 1
    assert law.upper_tail(7) - law.upper_tail(8) == law.at(7)
    values, bits = law.whole(40)
    assert [Fraction(v, 1 << bits) for v in values] == [law.at(k) for k in range(41)]
    square = om.noise.NoiseLoss.of("square")
    terms = sum((2 * k * k * law.at(k) for k in range(400)), Fraction(0))
    assert float(law.expected(square)) == pytest.approx(float(terms), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 65}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon"),
        ({"epsilon": 0.01, "delta": 1e-99, "sensitivity": 900}, "epsilon"),
        ({"epsilon": 1, "delta": 2}, "delta"),
        ({"epsilon": 1, "delta": "1e-400"}, "delta"),
        ({"epsilon": 1, "sensitivity": 900}, "epsilon"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": 1.0}, "sensitivity"),
        ({"epsilon": 1, "loss": "cubic"}, "loss"),
        ({"epsilon": 1, "loss": [3, 1]}, "loss"),
        ({"epsilon": 1, "loss": [0, -1, 2]}, "loss"),
        ({"epsilon": 1, "loss": [1]}, "loss"),
        ({"epsilon": 1, "loss": "threshold"}, "width"),
        ({"epsilon": 1, "width": 3}, "width"),
        ({"epsilon": 1, "loss": lambda k: math.nan}, "loss(0)"),
        ({"epsilon": 1, "gap": 2}, "gap"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(arguments: dict[str, object], place: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        om.noise.optimal(**arguments)  # type: ignore[arg-type]
    assert caught.value.where == place


def test_no_noise_is_perfectly_private() -> None:
    with pytest.raises(om.InfeasibleError):
        om.noise.optimal(0)


def test_tiny_losses_are_bounded_as_sharply_as_others() -> None:
    """P(|Z| > 3) of two-sided geometric noise with b = e^-8 is 2b⁴/(1 + b), about 2.5e-14."""
    b = math.exp(-8)
    design = om.noise.optimal(8, loss="threshold", width=3)
    expected = 2 * b**4 / (1 + b)
    assert design.loss == pytest.approx(expected, rel=1e-6)
    assert design.lower_bound <= expected * (1 + 1e-12)
    assert design.gap <= 1e-6


def test_published_values_for_real_numbers_are_approached() -> None:
    """Selvi, Liu and Wiesemann's example (ε, δ) = (1, 0.2) with sensitivity 2 on the real line:
    truncated Laplace 1.22392, analytic Gaussian σ = 1.6719974, lower bound of Geng et al. 0.573357.
    Whole numbers of sensitivity 2N, over N, are a grid of step 1/N."""
    grid = 16
    peers = om.noise.peers(1, "1/5", sensitivity=2 * grid)
    gaussian = peers["analytic Gaussian"].loss(om.noise.NoiseLoss.of("absolute")) / grid
    assert gaussian == pytest.approx(1.6719974 * math.sqrt(2 / math.pi), rel=1e-3)
    laplace = peers["truncated Laplace"].loss(om.noise.NoiseLoss.of("absolute")) / grid
    assert laplace == pytest.approx(1.22392, rel=0.01)
    design = om.noise.optimal(1, "1/5", sensitivity=2 * grid)
    # spread evenly over its cell, noise on the grid is noise on the line, at most 1/2N worse
    assert design.lower_bound / grid > 0.573357
    assert design.loss / grid + 1 / (2 * grid) < 1.22392


def far(loss: Callable[[int], float], design: om.noise.NoiseDesign, last: int) -> float:
    """E f(Z) up to ``last``, in floats."""
    terms = [float(design.pmf(k)) * loss(k) for k in range(last)]
    return 2 * math.fsum(terms) - terms[0]


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1])
@pytest.mark.parametrize(
    ("loss", "same"),
    [
        (lambda k: float(k > 100), {"loss": "threshold", "width": 100}),
        (lambda k: k * k, {"loss": "square"}),
        (float, {"loss": "absolute"}),
        (lambda k: min(k, 70), {"loss": [*map(float, range(71)), 70.0]}),
        (lambda k: float(k > 400), {"loss": "threshold", "width": 400}),
    ],
)
def test_a_function_is_one_of_all_whole_numbers(
    epsilon: float, loss: Callable[[int], float], same: dict[str, Any]
) -> None:
    found, named = (om.noise.optimal(epsilon, **kind) for kind in ({"loss": loss}, same))
    assert found.loss == pytest.approx(named.loss, rel=1e-6, abs=1e-300)
    assert found.lower_bound == pytest.approx(named.lower_bound, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize(
    "loss", [math.sqrt, math.log1p, lambda k: k**1.5, lambda k: 0.1 * k, lambda k: -math.expm1(-k)]
)
@pytest.mark.parametrize("delta", [0, 1e-4])
def test_loss_and_bound_enclose_a_function_that_is_no_polynomial(
    loss: Callable[[int], float], delta: float
) -> None:
    design = om.noise.optimal(0.2, delta, sensitivity=2, loss=loss)
    assert "taken to go on from" in design.measured
    for w in (1, 2):
        # the staircases, which are private without δ
        k = np.arange(2000)
        z = math.exp(-0.2) ** (k // 2) * np.where(k % 2 < w, 1.0, math.exp(-0.2))
        cost = np.array([loss(i) for i in k.tolist()])
        other = (2 * float(z @ cost) - z[0] * cost[0]) / (2 * z.sum() - z[0])
        assert design.lower_bound <= other * (1 + 1e-12)
    # beyond there is less than e^-100 of it
    assert far(loss, design, 1200) <= design.loss * (1 + 1e-12)
    assert design.gap <= 1e-6


@pytest.mark.parametrize(
    "loss",
    [
        lambda k: k**3, lambda k: k % 2, lambda k: 2.0 ** min(k, 1000), lambda k: -1.0,
        lambda k: float(k > 500_000), lambda k: list(range(65))[k],
    ],
)  # fmt: skip
def test_functions_that_do_not_go_on_are_refused(loss: Callable[[int], float]) -> None:
    with pytest.raises(om.ProblemError, match="loss"):
        om.noise.optimal(1, loss=loss)


def test_a_function_over_a_range_is_asked_for_all_of_it() -> None:
    design = om.noise.in_range(1, bounds=(0, 99), loss=lambda k: float(k > 90), prior=[1.0] * 100)
    assert design.problem.loss_matrix[0].tolist() == [0.0] * 91 + [1.0] * 9


@pytest.mark.parametrize(("part", "width"), [(0.2, 1), (0.1, 0), (0.05, 4), (0.01, 30)])
def test_uniform_noise_is_best_for_a_threshold_without_epsilon(part: float, width: int) -> None:
    """Total variation δ between neighbours: places of probability δ, 2w + 1 of them free."""
    design = om.noise.optimal(0, part, loss="threshold", width=width)
    assert design.loss == pytest.approx(1 - part * (2 * width + 1), rel=1e-8)
    assert design.gap <= 1e-6


@pytest.mark.parametrize("table", [[1.38, 0.8, 4.85, 4.85], [0, 2, 1, 3, 0, 5, 5], [1, 0, 0]])
@pytest.mark.parametrize(("steps", "epsilon"), [(3, 0), (1, 1e-4)])
def test_losses_that_end_flat_without_epsilon(
    table: list[float], steps: int, epsilon: float
) -> None:
    design = om.noise.optimal(epsilon, 0.1, sensitivity=steps, loss=table)
    assert design.gap <= 1e-6
    near, far = (
        program(epsilon, 0.1, steps, np.array(table)[np.minimum(abs(places), len(table) - 1)])
        for places in (np.arange(-100, 101), np.arange(-200, 201))
    )
    # what a window costs falls as one over its width
    best = 2 * far - near
    assert best * (1 - 1e-6) - 1e-9 <= design.loss <= best * (1 + 5e-5) + 1e-9


@pytest.mark.parametrize("part", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize(
    "table", [[1.38, 0.8, 4.85, 4.85], [0, 2, 1, 3, 0, 5, 5], [4, 7, 3, 3.5, 9, 5, 5], [2, 2, 1, 1]]
)
def test_a_dear_flat_end_without_epsilon_is_left_as_far_as_delta_allows(
    table: list[float], part: float
) -> None:
    """A law is a mixture of even ones on intervals, by its level sets, and each may have δ of
    height together: so much is saved as on the interval that saves most."""
    places = np.abs(np.arange(-10, 11))
    saved = table[-1] - np.array(table)[np.minimum(places, len(table) - 1)]
    sums = np.append(0, np.cumsum(saved))
    most = max(float(sums[j] - sums[i]) for j in range(len(sums)) for i in range(j))
    expected = table[-1] - part * max(0.0, most)
    design = om.noise.optimal(0, part, loss=table)
    assert design.loss == pytest.approx(expected, rel=1e-6)
    assert design.lower_bound <= expected * (1 + 1e-12) <= design.loss * (1 + 2e-12)
    assert design.gap <= 1e-6
    # of a wider shift an interval is a law that is known to be private
    wide = om.noise.optimal(0, part, sensitivity=4, loss=table)
    assert wide.lower_bound <= table[-1] - part / 4 * max(0.0, most) + 1e-12
    assert wide.gap <= 1e-6


def test_flat_noise_without_epsilon_is_refused_where_it_is_too_wide() -> None:
    with pytest.raises(om.errors.TooLargeError, match="epsilon"):
        om.noise.optimal(0, 1e-12, loss=[1, 2, 2])


@pytest.mark.parametrize("epsilon", [25, 35, 50, 64])
def test_steep_noise_is_the_closed_form(epsilon: float) -> None:
    b = math.exp(-epsilon)
    design = om.noise.optimal(epsilon)
    assert design.loss == pytest.approx(2 * b / (1 - b * b), rel=1e-8)
    assert design.gap <= 1e-6
    # of Δ = 5: the five next to the centre have e^-ε of it
    design = om.noise.optimal(epsilon, sensitivity=5, loss="square")
    assert design.loss == pytest.approx(110 * b, rel=1e-8)
    assert design.gap <= 1e-6
    # P(|Z| > 8): the ninth place is e^-9ε
    design = om.noise.optimal(epsilon, loss="threshold", width=8)
    assert design.loss == pytest.approx(2 * b**9, rel=1e-6)
    assert design.gap <= 1e-6
    # with δ the three next to the centre may be less by it
    design = om.noise.optimal(epsilon, 0.01, sensitivity=3)
    assert design.loss == pytest.approx(12 * b * 0.99, rel=1e-7)
    assert design.gap <= 1e-6


@pytest.mark.parametrize("loss", [lambda k: 0.1 * k, math.sqrt, lambda k: k**1.5])
@pytest.mark.parametrize(("epsilon", "steps"), [(25, 3), (64, 10), (64, 1)])
def test_steep_noise_of_a_function_is_the_closed_form(
    loss: Callable[[int], float], epsilon: float, steps: int
) -> None:
    """The ``steps`` places next to the centre have e^-ε of it, and others next to nothing."""
    design = om.noise.optimal(epsilon, sensitivity=steps, loss=loss)
    expected = 2 * math.exp(-epsilon) * sum(loss(k) for k in range(1, steps + 1))
    assert design.loss == pytest.approx(expected, rel=1e-6)
    assert design.gap <= 1e-6


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"),
    [
        (19, 0.5, 20), (64, 0.5, 100), (64, 0.9, 20),
        (35, 1e-6, 1), (64, 1e-12, 10), (25, 1e-30, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("loss", ["absolute", lambda k: 0.1 * k])
def test_steep_noise_at_large_sensitivities_with_a_large_delta(
    epsilon: float, delta: float, steps: int, loss: str | Callable[[int], float]
) -> None:
    """All shifts matter: the centre exceeds e^ε of each of the next places by δ."""
    design = om.noise.optimal(epsilon, delta, sensitivity=steps, loss=loss)
    unit = 1 if loss == "absolute" else 0.1
    expected = unit * steps * (steps + 1) * math.exp(-epsilon) * (1 - delta)
    assert design.loss == pytest.approx(expected, rel=1e-6)
    assert design.gap <= 1e-6


def test_places_of_any_whole_number_type() -> None:
    design = om.noise.optimal(1, sensitivity=3)
    for k in (5, 40, 300):
        assert design.law.at(np.int64(k)) == design.law.at(k)
        assert design.law.upper_tail(np.int32(k)) == design.law.upper_tail(k)
        assert design.measure(np.int64(k)) == k
    pair = om.noise.for_pairs(1)
    assert pair.law.at(np.int64(40), np.int16(-3)) == pair.law.at(40, -3)


def test_two_releases_at_delta_one_need_no_noise() -> None:
    design = om.noise.optimal(1, 1, for_releases=2)
    assert (design.loss, design.gap, design.status) == (0, 0, "optimal")


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize(
    "best",
    [
        om.noise.optimal,
        partial(om.noise.optimal, for_releases=2),
        partial(om.noise.for_pairs, norm="linf"),
    ],
)
def test_at_delta_one_only_what_costs_least_is_drawn(best: Callable[..., Any], steps: int) -> None:
    for table, place in (([3, 0.5, 2, 2], 1), ([1, 4, 5], 0), ([4, 3, 3, 0.25, 1], 3)):
        design = best(1, 1, loss=table, sensitivity=steps)
        assert (design.loss, design.lower_bound) == (min(table), min(table))
        assert set(np.abs(design.sample(50, seed=1)).reshape(50, -1).max(axis=1)) == {place}


@pytest.mark.parametrize(("epsilon", "steps"), [(0.3, 5), (1, 10), (4, 3)])
def test_a_large_delta_leaves_tails_where_a_loss_ends_flat(epsilon: float, steps: int) -> None:
    table = [1.38, 0.8, 4.85, 4.85]
    design = om.noise.optimal(epsilon, 0.5, sensitivity=steps, loss=table)
    assert design.gap <= 1e-6
    cost = np.array(table)[np.minimum(np.abs(np.arange(-70, 71)), 3)]
    # noise on a window, which is some noise
    some = program(epsilon, 0.5, steps, cost)
    assert design.lower_bound <= some * (1 + 1e-7)
    assert design.loss == pytest.approx(some, rel=1e-3)


def test_laws_that_differ_may_lose_less_than_the_same_law_in_every_release() -> None:
    """P(Z != 0) of Δ = 5 is 10/(e^ε + 9), concave for small ε: unequal parts lose less, and what is
    said of the bound says that it is of the same law."""
    same = om.noise.optimal(2, for_releases=2, sensitivity=5, loss="threshold", width=0)
    mean = sum(10 / (math.exp(part) + 9) for part in (1.9, 0.1)) / 2
    assert mean < same.lower_bound
    assert "same law" in same.compared


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 0), (0.1, 1e-5), (1, 0.1), (2, 1e-3), (8, 0.3), (8, 1e-6)]
)
@pytest.mark.parametrize(
    "table",
    [
        [3, 4, 2, 1.5, 1.5], [3, 4, 1.4999, 2, 1.5, 1.5], [5, 1e-3, 2, 1e-3, 1e-3],
        [2, 1.4998, 3, 1.4999, 2, 1.4998, 1.5, 1.5], [1.2, 6, 1.3, 6, 1.25, 6, 1.5, 1.5],
    ],
)  # fmt: skip
def test_a_loss_that_ends_flat_and_low_is_approached_far_out(
    table: list[float], epsilon: float, delta: float, steps: int
) -> None:
    """Two humps far out cost next to no more than the end; δ may be where it costs least."""
    design = om.noise.optimal(epsilon, delta, sensitivity=steps, loss=table)
    other = (1 - delta) * table[-1] + delta * min(table)
    assert design.lower_bound <= other * (1 + 1e-12)
    assert design.loss <= other * (1 + 1e-6)
    if delta > 0 or table[-1] == min(table):
        assert design.gap <= 1e-6


@pytest.mark.parametrize(("epsilon", "delta", "attained"), [(1, 0, False), (1, 0.1, True)])
def test_nothing_may_be_approached_and_not_attained(
    epsilon: float, delta: float, attained: bool
) -> None:
    """Without δ every place has some probability."""
    design = om.noise.optimal(epsilon, delta, sensitivity=2, loss=[1, 0, 0])
    assert (design.loss == 0) == attained
    assert design.loss < 1e-11
    assert design.lower_bound == 0
    assert ("noise farther out may lose less" in design.compared) == (not attained)
