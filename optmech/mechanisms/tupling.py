"""The tupling mechanism: the output of a base mechanism hidden among random dummies (Kawamoto and
Murakami, ESORICS 2019, §6).
"""

from __future__ import annotations

import math
import secrets as entropy
from collections.abc import Callable, Hashable
from functools import partial

import numpy as np

from optmech.analysis.measures import weights_over
from optmech.analysis.repetition import delta_of_curve
from optmech.base.arrays import Floats, finite_array, slices, sums_from
from optmech.base.bisection import bisected
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, moved
from optmech.exact.arguments import probability, whole
from optmech.exact.number import Interval, Number, float_of, parse_exact
from optmech.exact.ratios.wide import Wide, either_log_ratio, log_ratio, log_values
from optmech.exact.rounding import UNIT, depth, total
from optmech.mechanisms.hockey_sum import expected_log, positive_part, widened
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior, weights_of

__all__ = ["Interval", "Tupling", "theorem3_epsilon", "tupling"]

_REACH = 24.0
"""Log ratios of tuples beyond this count as infinite where tuples are repeated."""
_NODES = 2**20
_SEARCH_NODES = 2**18
_LARGEST_EPSILON = 512.0
_STEEP = 15.0
_HALVINGS = 50
_EDGE_HALVINGS = 8
_MOST_DUMMIES = 10_000
_CHORDS = (1e-2, 1e-3, 1e-4, 1e-5)
"""Steps of the chords that bound a slope: short ones for smooth curves, long ones for noisy."""
_MOST_NODES = 2**26
_BLOCK = 2**22
"""Entries of the matrix that are looked at together."""
_LEAST_DUMMY = 2.0**-70
_LARGEST_LOG = 600.0
"""Quotients of outputs and dummy weights within e^±600 are floats, and so are sums of them."""


@record
class Tupling(Shown):
    """Q(k, ν, A): the output of A at a random place among k dummies drawn from ν (Kawamoto and
    Murakami, ESORICS 2019, Alg. 1).

    Make it with ``tupling``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> t = om.mechanisms.tupling(om.mechanisms.randomized_response(sides, "ln 3"), dummies=2)
    >>> len(t.sample("left", seed=1))  # a report and two dummies, in random order
    3
    >>> line = om.distances.hamming()
    >>> left, right = [0.9, 0.1], [0.1, 0.9]
    >>> even = om.Prior.uniform(sides)
    >>> print(round(t.expected_loss(even, line), 4), round(t.all_points_loss(even, line), 4))
    0.0625 0.4167
    >>> print(round(t.delta(left, right, epsilon=0.5).upper, 4))
    0.0513
    >>> print(round(t.epsilon(left, right, delta=0.05).upper, 4))
    0.5108
    >>> t.theorem3(left, right, delta=0.05)  # that theorem says nothing of so few dummies
    inf
    >>> many = om.mechanisms.tupling(t.base, dummies=1000)
    >>> print(round(many.proposition11(left, right, delta=0.05), 4))
    0.1217
    >>> t.exceeding(left, beta=0.6), t.exceeding(left, beta=0.75)  # (λA)(left) is 0.7
    (0.5, 0.0)
    >>> print(round(t.kl(left, right).upper, 4))
    0.1116
    >>> print(round(t.repeated_delta(left, right, 1, tuples=5).upper, 4))
    0.1492
    >>> print([round(rate.upper, 3) for rate in t.attack_success(left, right)])
    [0.6, 0.6]
    """

    base: Mechanism
    """A, the mechanism for the true location."""
    dummies: int
    """k, the number of dummies."""
    dummy_weights: Floats
    """ν over the observables of A, shape (n_o,), of sum one."""

    def sample(self, secret: Hashable, seed: int | None = None) -> tuple[Hashable, ...]:
        """k + 1 labels of observables. Without ``seed`` from the operating system's entropy."""
        hidden = Mechanism(Domain(["dummy"]), self.base.observables, self.dummy_weights[None, :])
        first = second = None
        if seed is None:
            place = entropy.randbelow(self.dummies + 1)
        else:
            rng = np.random.default_rng(seed)
            place = int(rng.integers(self.dummies + 1))
            first, second = rng.integers(0, 2**62, 2).tolist()
        drawn = list(hidden.sample("dummy", size=self.dummies, seed=first))
        drawn.insert(place, self.base.sample(secret, seed=second))
        return tuple(drawn)

    @checked_arguments
    def expected_loss(self, prior: Prior, distance: DistanceLike) -> float:
        """Σ λ(x) E[min_i d(x, y_i)], exactly (Kawamoto and Murakami, ESORICS 2019, Def. 11), in the
        unit of the distance.

        The truth and the dummies are independent, so that P(min > t) is the product of
        P(d(x, A(x)) > t) and ν(d(x,·) > t)^k; its integral over t is the mean.
        """
        values = self._distances(distance)
        order = np.argsort(values, axis=1, kind="stable")
        steps = np.take_along_axis(values, order, axis=1)
        own = np.take_along_axis(self.base.matrix, order, axis=1)
        others = self.dummy_weights[order]
        # mass farther than each of the sorted places, summed from the far end to keep tails
        beyond = np.minimum(sums_from(others, 1)[:, 1:], 1.0)
        survival = sums_from(own, 1)[:, 1:] * beyond**self.dummies
        mean = steps[:, 0] + (np.diff(steps, axis=1) * survival).sum(axis=1)
        return float(weights_over(self.base, prior, "prior") @ mean)

    @checked_arguments
    def all_points_loss(self, prior: Prior, distance: DistanceLike) -> float:
        """Σ λ(x) E[Σ_i d(x, y_i)] / (k + 1): what all points sent are away on average, the loss of
        a user who cannot tell which answer is meant for the truth."""
        values = self._distances(distance)
        own = (self.base.matrix * values).sum(axis=1)
        mean = (own + self.dummies * (values @ self.dummy_weights)) / (self.dummies + 1)
        return float(weights_over(self.base, prior, "prior") @ mean)

    def delta(
        self,
        lam0: Distribution,
        lam1: Distribution,
        epsilon: Number,
        nodes: int = _NODES,
    ) -> Interval:
        """The least δ of (ε, δ)-distribution privacy for the pair, both ways, between bounds.

        δ = E[max(0, (Y₁ + … + Y_{k+1})/(k+1))] + Σ over y outside supp ν of
        max(0, (λ₀A)(y) - e^ε (λ₁A)(y)), with Y = (λ₀A(y) - e^ε λ₁A(y))/ν(y) and y ~ ν
        (docs/theory/targets.md). Where the sums of k + 1 atoms are few they are listed, and the
        bounds differ by rounding only; else ``nodes`` points of a lattice are used.
        """
        rate = float_of(epsilon, "epsilon")
        p, q = self._outputs(lam0, lam1)
        return self._both_ways(p, q, rate, self._lattice(nodes))

    def epsilon(self, lam0: Distribution, lam1: Distribution, delta: Number) -> Interval:
        """The least ε of (ε, δ)-distribution privacy for the pair, both ways, between bounds.

        Weights and probabilities count as the floats that they are. The upper bound is private with
        certainty; infinite where no ε gives the δ.
        """
        budget = float(probability(delta))
        if budget == 0:
            # a ratio of sums is largest where all terms have the largest ratio, and outside supp ν
            # a single one decides
            wide = self._push(lam0, "lam0"), self._push(lam1, "lam1")
            value = float(either_log_ratio(*wide).max(initial=0.0))
            noise = 0.0 if value == math.inf else UNIT * (self._units() + 8 * value)
            return widened(value, value, noise)
        p, q = self._outputs(lam0, lam1)
        return _invert(partial(self._both_ways, p, q), budget)

    def repeated_delta(
        self,
        lam0: Distribution,
        lam1: Distribution,
        epsilon: Number,
        *,
        tuples: int,
        knots: int = 128,
        nodes: int = _NODES,
    ) -> Interval:
        """The least δ of (ε, δ)-distribution privacy of ``tuples`` independent tuples about as many
        members of the population, between bounds.

        The curve δ(ε) of one tuple is bounded at about ``knots`` values of ε; joined above and
        extended below, it stands for two pairs of laws that are less and more private than the
        tuple's, whose losses add up on a lattice (docs/theory/populations.md, "Reports about a
        population"). More knots bring the bounds closer together.
        """
        rate = parse_exact(epsilon, where="epsilon")
        count = whole(tuples, "tuples", least=1, most=1000)
        fine = whole(knots, "knots", least=8, most=4096)
        if count == 1:
            return self.delta(lam0, lam1, epsilon, nodes)
        places = self._lattice(nodes)
        wide = self._push(lam0, "lam0"), self._push(lam1, "lam1")
        p, q = (side.floats() for side in wide)
        reach = min(self.epsilon(lam0, lam1, 0).upper, _REACH)
        low = high = 0.0
        for a, b, unseen in ((p, q, ~wide[1].positive), (q, p, ~wide[0].positive)):
            curve = partial(self._one_way, a, b, nodes=places)
            never = self._never(a, unseen)
            bounds = delta_of_curve(curve, reach, rate, k=count, knots=fine, never=never)
            low, high = max(low, bounds[0]), max(high, bounds[1])
        return Interval(low, high)

    def _never(self, output: Floats, unseen: np.ndarray) -> float:
        """A lower bound of how much mass tuples have that the other law never makes: all of it
        where a place outside supp ν is ``unseen`` by it, or all places are."""
        nu = self.dummy_weights
        alone = float(output[unseen & (nu == 0)].sum())
        places = unseen & (nu > 0)
        share = float(nu[places].sum() / nu.sum())
        found = alone + float(output[places].sum()) * share**self.dummies
        return max(0.0, found * (1 - 1e-9) - 1e-280)

    def kl(self, lam0: Distribution, lam1: Distribution, *, nodes: int = _NODES) -> Interval:
        """KL(Q#λ₀ ‖ Q#λ₁) in nats, between bounds; infinite where some tuple excludes λ₁.

        The log-likelihood ratio is ln S₀ - ln S₁ with S_b = Σ λ_bA(y_i)/ν(y_i). By symmetry its
        mean is that with the truth in the first place, where each S_b is a sum of independent
        terms by itself.
        """
        places = self._lattice(nodes)
        p, q = self._push(lam0, "lam0"), self._push(lam1, "lam1")
        logs = log_ratio(p, q)
        if (logs == math.inf).any():
            return Interval(math.inf, math.inf)
        live = self.dummy_weights > 0
        outside = ~live & p.positive
        open_ = float((p[outside].floats() * logs[outside]).sum())
        share = float(total(p[live].floats()))
        noise = self._units() * UNIT * (1 + float(np.abs(logs[outside]).max(initial=0.0)))
        if share == 0:
            return widened(open_, open_, noise)
        nu = self.dummy_weights[live] / math.fsum(self.dummy_weights.tolist())
        first = p[live].floats() / share
        one = self._mean_log(p[live], nu, first, places)
        two = self._mean_log(q[live], nu, first, places)
        low = open_ + share * (one.lower - two.upper)
        high = open_ + share * (one.upper - two.lower)
        noise += self._units() * UNIT * (1 + abs(low) + abs(high))
        return widened(low, high, noise)

    def _mean_log(self, output: Wide, nu: Floats, first: Floats, nodes: int) -> Interval:
        """E ln of the sum of ``output`` / ν over the tuple, the truth drawn from ``first``."""
        logs = log_values(output) - np.log(nu)
        used = logs[output.positive]
        low, high = float(used.min()), float(used.max()) + math.log(self.dummies + 1)
        room = self._units() * UNIT * (1 + abs(low) + abs(high))
        if not -_LARGEST_LOG < low <= high < _LARGEST_LOG:
            # quotients that are no floats: what all sums lie between
            return Interval(low - room, high + room)
        values = output.floats() / nu
        return expected_log(values, first, nu, self.dummies, nodes, self._units())

    def attack_success(
        self, lam0: Distribution, lam1: Distribution, *, nodes: int = _NODES
    ) -> tuple[Interval, Interval]:
        """How often the Bayes rule for two equally likely attributes is right about a user of each,
        between bounds that cover any choice where both are as likely (Kawamoto and Murakami,
        ESORICS 2019, §7.3: ASR).

        With p, q the laws of the tuples, H(t) = Σ max(0, p - t q) is convex in t with slopes
        -q(p >= q) and -q(p > q) to both sides of 1, which chords bound; H(1) = p(p > q) - q(p > q)
        gives the other probability. The sum of the two success rates is 1 + δ(0).
        """
        p, q = self._outputs(lam0, lam1)
        nodes = self._lattice(nodes)
        here = self._one_way(p, q, 1.0, nodes)
        least, most = 0.0, 1.0
        for step in _CHORDS:
            beyond = self._one_way(p, q, 1.0 + step, nodes).upper
            before = self._one_way(p, q, 1.0 - step, nodes).upper
            # rounding of the quotients, and of 1 ± step
            noise = 8 * UNIT * (1 + 1 / step)
            least = max(least, (here.lower - beyond) / step - noise)
            most = min(most, (before - here.lower) / step + noise)
        return (
            Interval(min(1.0, here.lower + least), min(1.0, here.upper + most)),
            Interval(max(0.0, 1.0 - most), 1.0 - least),
        )

    def theorem3(self, lam0: Distribution, lam1: Distribution, delta: Number) -> float:
        """Kawamoto and Murakami, ESORICS 2019, Theorem 3's ε for this δ, with η = 0 and β = max_y
        max_b (λ_bA)(y).

        inf where the theorem says nothing (α >= k/|Y|).

        Raises
        ------
        ProblemError
            Unless the dummies are uniform: the theorem needs that.
        """
        weights = self.dummy_weights
        if np.ptp(weights) > 1e-12 * weights.max():
            raise ProblemError(
                "Theorem 3 holds for uniform dummies only",
                where="dummy_weights",
                remedy="Use epsilon, which is exact for any dummies",
            )
        beta = max(float(output.max()) for output in self._outputs(lam0, lam1))
        return theorem3_epsilon(self.dummies, len(weights), beta, delta=delta)

    def proposition11(self, lam0: Distribution, lam1: Distribution, delta: Number) -> float:
        """The ε of probabilistic distribution privacy at this δ, by Kawamoto and Murakami, ESORICS
        2019, Prop. 11, with η = 0: that of ``theorem3``, which follows from it by Prop. 9.

        But for a set of tuples of probability δ, both ways, every likelihood ratio is at most e^ε.
        """
        return self.theorem3(lam0, lam1, delta)

    def exceeding(self, lam: Distribution, beta: Number) -> float:
        """The least η for which λ is in Λ_{β,η,A}: the mass of ν on reports y with (λA)(y) > β
        (Kawamoto and Murakami, ESORICS 2019, section 6, for uniform ν)."""
        most = float(probability(beta, "beta"))
        beyond = self._push(lam, "lam").floats() > most
        return float(min(1.0, self.dummy_weights[beyond].sum()))

    def _both_ways(self, p: Floats, q: Floats, epsilon: float, nodes: int) -> Interval:
        factor = math.exp(min(epsilon, _LARGEST_EPSILON))
        there, back = self._one_way(p, q, factor, nodes), self._one_way(q, p, factor, nodes)
        found = Interval(max(there.lower, back.lower), max(there.upper, back.upper))
        if epsilon <= _STEEP:
            return found
        # rounding grows with e^ε, and δ never does
        return Interval(
            0.0 if epsilon > _LARGEST_EPSILON else found.lower,
            min(found.upper, self._both_ways(p, q, _STEEP, nodes).upper),
        )

    def _one_way(self, p: Floats, q: Floats, factor: float, nodes: int) -> Interval:
        # a dummy of next to no weight might as well not be: both laws move by its share of tuples
        live = self.dummy_weights > _LEAST_DUMMY
        rare = self.dummies * float(self.dummy_weights[~live].sum())
        nu = self.dummy_weights[live] / math.fsum(self.dummy_weights[live].tolist())
        terms = p - factor * q
        open_ = float(total(np.maximum(terms[~live], 0.0)))
        copies = self.dummies + 1
        found = positive_part(terms[live] / nu, nu, copies, nodes)
        # terms are differences: the rounding of the outputs, of the factor and of themselves is
        # relative to p + e^ε q
        units = self._units() + 8 + 2 * math.log(max(factor, 1.0))
        noise = (units * UNIT + rare) * (1.0 + factor)
        return widened(open_ + found.lower / copies, open_ + found.upper / copies, noise)

    def _units(self) -> int:
        """What a quotient of outputs λA(y) is off by, in units in the last place: of each a product
        and the sum over the secrets."""
        return 2 * depth(len(self.base.secrets)) + 8

    def _lattice(self, nodes: int) -> int:
        return whole(nodes, "nodes", least=4 * self.dummies + 64, most=_MOST_NODES)

    def _outputs(self, lam0: Distribution, lam1: Distribution) -> tuple[Floats, Floats]:
        return self._push(lam0, "lam0").floats(), self._push(lam1, "lam1").floats()

    def _push(self, lam: Distribution, where: str) -> Wide:
        """λA, to ``_units`` relatively however small it is, and 0 only where it is."""
        weights = weights_over(self.base, lam, where)
        used = weights > 0
        heavy, columns = Wide.of(weights[used]), self.base.matrix[used].T
        parts = slices(len(columns), len(weights), _BLOCK)
        return Wide.joined([Wide.of(columns[part]).times(heavy).sums() for part in parts])

    def _distances(self, distance: DistanceLike) -> Floats:
        return evaluate(distance, self.base.secrets, self.base.observables, where="distance")


@checked_arguments
def tupling(base: Mechanism, dummies: int, dummy_weights: Distribution | None = None) -> Tupling:
    """The tupling mechanism with ``dummies`` = k >= 0 dummies around ``base`` (Kawamoto and
    Murakami, ESORICS 2019, Alg. 1).

    ``dummy_weights`` is ν over the observables, any weights >= 0, shape (n_o,); uniform unless
    given.

    Raises
    ------
    ProblemError
        On a number of dummies below 0 or above 10,000, or unusable weights.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> t = om.mechanisms.tupling(om.mechanisms.randomized_response(sides, "ln 3"), dummies=100)
    >>> delta = t.delta([1, 0], [0, 1], epsilon=0.1)
    >>> print(round(delta.upper, 4))
    0.0087
    """
    count = whole(dummies, "dummies", most=_MOST_DUMMIES)
    outputs = base.observables
    given = np.ones(len(outputs)) if dummy_weights is None else weights_of(dummy_weights)
    with moved("dummy_weights"):
        weights = Prior(outputs, finite_array(given, where="dummy_weights")).weights
    return Tupling(base, count, weights)


def theorem3_epsilon(dummies: int, outputs: int, beta: float, *, delta: Number) -> float:
    """ε = ln((k + (α + β)|Y|) / (k - α|Y|)) with δ = 2 e^{-2α²/(kβ²)} (Kawamoto and Murakami,
    ESORICS 2019, Theorem 3, η = 0).

    ``beta`` bounds every (λA)(y); ``outputs`` is |Y|. inf where α >= k/|Y|.

    Examples
    --------
    >>> print(round(om.mechanisms.theorem3_epsilon(1000, outputs=10, beta=0.5, delta=1e-3), 4))
    0.641
    """
    budget = float(probability(delta, positive=True))
    k = whole(dummies, "dummies", most=2**53)
    places = whole(outputs, "outputs", least=1, most=2**53)
    most = float(probability(beta, "beta"))
    alpha = most * math.sqrt(k * math.log(2 / budget) / 2)
    room = k - alpha * places
    return math.inf if room <= 0 else math.log((k + (alpha + most) * places) / room)


def _invert(curve: Callable[[float, int], Interval], budget: float) -> Interval:
    """ε between bounds: the lower bound of δ decides what is too small, the upper what is enough.

    Bisection until they disagree, then for each of them.
    """
    if curve(0.0, _NODES).upper <= budget:
        return Interval(0.0, 0.0)
    low, high = 0.0, 1.0
    while not curve(high, _SEARCH_NODES).upper <= budget:
        high *= 2
        if high > _LARGEST_EPSILON:
            return Interval(_edge(curve, budget, 0.0, _LARGEST_EPSILON, upper=False), math.inf)
    undecided = high
    for _ in range(_HALVINGS):
        undecided = (low + high) / 2
        found = curve(undecided, _SEARCH_NODES)
        if found.upper <= budget:
            high = undecided
        elif found.lower > budget:
            low = undecided
        else:
            break
    return Interval(
        _edge(curve, budget, low, min(undecided, high), upper=False),
        _edge(curve, budget, max(undecided, low), high, upper=True),
    )


def _edge(
    curve: Callable[[float, int], Interval],
    budget: float,
    low: float,
    high: float,
    *,
    upper: bool,
) -> float:
    """With ``upper``, the least ε found at which the upper bound of δ keeps the budget (it does at
    ``high``); else the largest at which the lower bound breaks it (or ``low``)."""

    def within(epsilon: float) -> bool:
        found = curve(epsilon, _SEARCH_NODES)
        return (found.upper if upper else found.lower) <= budget

    return bisected(within, low, high, _EDGE_HALVINGS)[upper]
