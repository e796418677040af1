"""Random small problems that mix every kind of constraint, degenerate ones on purpose: duplicate
places, distances that vanish one way, zero priors and losses, ε = 0, limits at their extremes,
supports and windows that leave little, constraints without any pair."""

from __future__ import annotations

import numpy as np

import optmech as om
from optmech.errors import ProblemError

E, H = om.distances.euclidean(), om.distances.hamming()
EPSILONS = (0.0, 1e-12, 0.05, 0.4, 1.0, 2.5, 7.0)
DELTAS = (1e-9, 0.01, 0.1, 0.4, 1.0)


def mixed(seed: int, least: int = 1, most: int = 6) -> om.Problem:
    """A problem of ``least`` to ``most`` secrets: the first one of a seed that can be stated."""
    rng = np.random.default_rng([seed, 20])
    while True:
        try:
            return _Draw(rng, int(rng.integers(least, most + 1))).problem()
        except ProblemError:
            continue


class _Draw:
    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.rng, self.n = rng, n
        places = rng.uniform(0, 2, (n, 2)) if rng.random() < 0.5 else rng.integers(0, 3, (n, 2))
        self.secrets = om.Domain(range(n), places.astype(float), "km")
        self.outputs = self.secrets
        if rng.random() < 0.2:
            m = int(rng.integers(1, n + 3))
            self.outputs = om.Domain(range(m), rng.integers(0, 3, (m, 2)).astype(float), "km")
        self.prior = self._prior()
        self.square = self.outputs is self.secrets

    def problem(self) -> om.Problem:
        """Up to four constraints and an objective."""
        rng = self.rng
        makers = [
            self._metric, self._metric, self._differential, self._distortion,
            self._distributions, self._bound, self._support,
        ]  # fmt: skip
        loss = self._loss()
        objective = rng.choice(["expected_loss", "expected_loss", "expected_loss", "worst_loss"])
        chosen = [makers[k]() for k in rng.integers(0, len(makers), int(rng.integers(1, 5)))]
        if rng.random() < 0.1:
            chosen.append(self._bound())
            return om.Problem(
                self.prior,
                loss,
                self.outputs,
                objective=om.MaximizeDistortion(self._distance()),
                constraints=chosen,
            )
        return om.Problem(
            self.prior, loss, self.outputs, objective=str(objective), constraints=chosen
        )

    def _prior(self) -> om.Prior:
        weights = self.rng.dirichlet(np.full(self.n, 0.7)) + 1e-9
        if self.n > 1 and self.rng.random() < 0.3:
            weights[self.rng.random(self.n) < 0.5] = 0.0
            weights[self.rng.integers(self.n)] = 0.5
        return om.Prior(self.secrets, weights)

    def _loss(self) -> object:
        if self.square and self.rng.random() < 0.7:
            return E if self.rng.random() < 0.6 else H
        values = self.rng.uniform(0, 2, (self.n, len(self.outputs)))
        return np.where(self.rng.random(values.shape) < 0.2, 0.0, values)

    def _distance(self) -> object:
        """Euclidean, Hamming, or any non-negative matrix, with zeros one way."""
        draw = self.rng.random()
        if draw < 0.5:
            return E
        if draw < 0.65:
            return H
        values = np.round(self.rng.uniform(0, 2, (self.n, self.n)), 2)
        values[self.rng.random(values.shape) < 0.15] = 0.0
        np.fill_diagonal(values, 0.0)
        return om.distances.matrix(values)

    def _epsilon(self) -> float:
        drawn = float(self.rng.choice(EPSILONS))
        return drawn if self.rng.random() < 0.6 else float(self.rng.uniform(0.1, 4))

    def _delta(self, often: float) -> float:
        return float(self.rng.choice(DELTAS)) if self.rng.random() < often else 0.0

    def _metric(self) -> om.MetricPrivacy:
        rng, delta = self.rng, self._delta(0.3)
        near = float(rng.choice([0.0, 0.5, 1.0, 1.5])) if rng.random() < 0.3 else None
        window = None
        distance = self._distance()
        if not delta and self.square and rng.random() < 0.3:
            window = float(rng.choice([0.0, 0.5, 1.0, 1.5]))
        return om.MetricPrivacy(self._epsilon(), distance, near, window, delta)

    def _differential(self) -> om.DifferentialPrivacy:
        rng = self.rng
        draw = rng.random()
        adjacency: object = "all"
        if draw < 0.4:
            adjacency = (self._distance(), float(rng.choice([0.0, 0.4, 1.0])))
        elif draw < 0.7 and self.n > 1:
            adjacency = [tuple(rng.choice(self.n, 2, replace=False).tolist()) for _ in range(2)]
        return om.DifferentialPrivacy(self._epsilon(), adjacency, self._delta(0.5))

    def _distortion(self) -> om.DistortionPrivacy:
        distance = self._distance()
        adversary = self.prior if self.rng.random() < 0.7 else self._prior()
        values = distance(self.secrets, self.secrets)
        largest = float((values * adversary.weights[None, :]).sum(axis=1).min())
        share = float(self.rng.choice([0.3, 0.8, 0.99, 1.0]))
        return om.DistortionPrivacy(share * largest, distance, adversary)

    def _distribution(self) -> np.ndarray:
        if self.rng.random() < 0.3:
            return np.eye(self.n)[self.rng.integers(self.n)]
        return self.rng.dirichlet(np.full(self.n, 0.6))

    def _distributions(self) -> om.DistributionPrivacy:
        rng = self.rng
        count = int(rng.integers(1, 3))
        pairs = [(self._distribution(), self._distribution()) for _ in range(count)]
        scale = rng.choice([0.0, 0.5, 1.0, 2.0], count) if rng.random() < 0.3 else None
        kind = str(rng.choice(["max", "max", "max", "tv", "tv", "kl", "chi2", "hellinger"]))
        delta = self._delta(0.4) if kind == "max" else 0.0
        epsilon = self._epsilon()
        if kind not in ("max", "tv") and 0 < epsilon < 0.01:
            epsilon = 0.01
        return om.DistributionPrivacy(epsilon, pairs, delta, kind, scale)

    def _bound(self) -> om.LossBound:
        """Between the least possible loss and that of the best constant."""
        rng = self.rng
        worst = bool(rng.random() < 0.4)
        loss = self._loss()
        values = loss(self.secrets, self.outputs) if callable(loss) else np.asarray(loss)
        mean = self.prior.weights @ values
        cheapest = values.min(axis=1)
        least = float(cheapest.max() if worst else self.prior.weights @ cheapest)
        blind = float(values.max(axis=0).min() if worst else mean.min())
        share = float(rng.choice([0.0, 0.2, 0.6, 0.95, 1.0, 1.3]))
        # not below what is possible by a rounding: nothing could prove or refute that
        most = (least + share * (blind - least)) * (1 + 1e-15 * (share > 0))
        return om.LossBound(most, loss, worst_case=worst)

    def _support(self) -> om.Support:
        if self.square and self.rng.random() < 0.4:
            return om.Support.within(E, float(self.rng.choice([0.0, 1.0, 1.5])))
        mask = self.rng.random((self.n, len(self.outputs))) < 0.75
        mask[np.arange(self.n), self.rng.integers(0, len(self.outputs), self.n)] = True
        return om.Support(mask)
