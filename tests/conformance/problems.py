"""Design problems that every engine must solve: each kind of constraint, alone and together,
random and degenerate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import optmech as om

E, H, MANHATTAN = om.distances.euclidean(), om.distances.hamming(), om.distances.manhattan()
Make = Callable[[np.random.Generator], om.Problem]


def points(rng: np.random.Generator, n: int) -> om.Domain:
    return om.Domain(range(n), rng.uniform(0, 2, (n, 2)), "km")


def prior(rng: np.random.Generator, domain: om.Domain, concentration: float = 1.0) -> om.Prior:
    return om.Prior(domain, rng.dirichlet(np.full(len(domain), concentration)) + 1e-12)


def blind(p: om.Prior) -> float:
    d = E(p.domain, p.domain)
    return float((d * p.weights[None, :]).sum(axis=1).min())


def metric(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, int(rng.integers(3, 10))))
    return om.Problem(p, E, constraints=[om.MetricPrivacy(rng.uniform(0.2, 4), E)])


def metric_hamming_grid(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(2, int(rng.integers(2, 6))), 0.3)
    return om.Problem(p, H, constraints=[om.MetricPrivacy(rng.uniform(0.2, 2), E)])


def differential(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, int(rng.integers(2, 8))))
    return om.Problem(p, H, constraints=[om.DifferentialPrivacy("ln 3")])


def adjacency_pairs(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    pairs = [(0, 1), (1, 2), (4, 5)]
    return om.Problem(p, E, constraints=[om.DifferentialPrivacy(0.7, pairs)])


def adjacency_radius(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(3, 3))
    return om.Problem(p, H, constraints=[om.DifferentialPrivacy(0.8, (E, 1.0))])


def distortion(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 7))
    level = rng.uniform(0.3, 0.95) * blind(p)
    return om.Problem(p, E, constraints=[om.DistortionPrivacy(level, E)])


def joint(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 7))
    level = rng.uniform(0.3, 0.95) * blind(p)
    return om.Problem(p, H, constraints=[om.MetricPrivacy(1.2, E), om.DistortionPrivacy(level, E)])


def robust_distortion(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    other = prior(rng, p.domain, 0.5)
    return om.Problem(
        p,
        E,
        constraints=[
            om.DistortionPrivacy(0.5 * blind(p), E),
            om.DistortionPrivacy(0.5 * blind(other), E, prior=other),
        ],
    )


def approximate(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    return om.Problem(p, H, constraints=[om.DifferentialPrivacy(0.5, delta=0.1)])


def approximate_metric(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 5))
    return om.Problem(p, E, constraints=[om.MetricPrivacy(1.0, E, delta="1/20")])


def distributions(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 8))
    pairs = [tuple(rng.dirichlet(np.ones(8), 2)) for _ in range(2)]
    return om.Problem(p, E, constraints=[om.DistributionPrivacy(0.3, pairs)])


def distributions_metric(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 7))
    pair = tuple(rng.dirichlet(np.full(7, 0.3), 2))
    return om.Problem(
        p, H, constraints=[om.MetricPrivacy(3, E), om.DistributionPrivacy(0.1, [pair], scale=[2])]
    )


def distributions_delta(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 7))
    pair = tuple(rng.dirichlet(np.full(7, 0.5), 2))
    return om.Problem(p, E, constraints=[om.DistributionPrivacy(0.2, [pair], delta=0.05)])


def divergence_kl(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    pairs = [tuple(rng.dirichlet(np.full(6, 0.7), 2)) for _ in range(2)]
    return om.Problem(
        p, E, constraints=[om.DistributionPrivacy(0.05, pairs, divergence="kl", scale=[1, 2])]
    )


def divergence_chi2_metric(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    pair = tuple(rng.dirichlet(np.ones(6), 2))
    return om.Problem(
        p,
        H,
        constraints=[
            om.MetricPrivacy(2, E),
            om.DistributionPrivacy("1/20", [pair], divergence="chi2"),
        ],
    )


def divergence_hellinger_worst(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 5))
    pair = tuple(rng.dirichlet(np.ones(5), 2))
    private = om.DistributionPrivacy(0.01, [pair], divergence="hellinger")
    return om.Problem(p, E, objective="worst_loss", constraints=[private])


def divergence_tv(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    pairs = [tuple(rng.dirichlet(np.ones(6), 2)) for _ in range(2)]
    return om.Problem(
        p, E, constraints=[om.DistributionPrivacy(0.1, pairs, divergence="tv", scale=[1, 0])]
    )


def divergence_everything(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 5))
    pair = tuple(rng.dirichlet(np.ones(5), 2))
    return om.Problem(
        p,
        E,
        constraints=[
            om.DistributionPrivacy(0.03, [pair], divergence="reverse_kl"),
            om.DistributionPrivacy(1.0, [pair]),
            om.DistortionPrivacy(0.4 * blind(p), E),
            om.LossBound(1.9, worst_case=True),
        ],
    )


def worst_case(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 7))
    return om.Problem(p, E, objective="worst_loss", constraints=[om.MetricPrivacy(1.0, E)])


def worst_bounded(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(2, 3))
    return om.Problem(
        p, H, constraints=[om.MetricPrivacy(0.8, E), om.LossBound(1.3, worst_case=True, loss=E)]
    )


def most_distortion(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    return om.Problem(
        p,
        E,
        objective=om.MaximizeDistortion(E),
        constraints=[om.LossBound(rng.uniform(0.2, 0.8) * blind(p))],
    )


def most_distortion_private(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    return om.Problem(
        p,
        H,
        objective=om.MaximizeDistortion(E),
        constraints=[om.LossBound(0.8), om.MetricPrivacy(1.5, E)],
    )


def support(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(3, 3))
    return om.Problem(
        p,
        H,
        constraints=[
            om.Support.within(E, 1.5),
            om.DifferentialPrivacy(1.5, (E, 1.0), delta=0.2),
        ],
    )


def supported_components(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    mask = np.ones((6, 6), dtype=bool)
    mask[:3, 4] = mask[4, 0] = False
    return om.Problem(
        p,
        E,
        constraints=[om.Support(mask), om.DifferentialPrivacy(1, [(0, 1), (1, 2), (4, 5)])],
    )


def thresholds(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(3, 3))
    return om.Problem(
        p,
        H,
        constraints=[om.MetricPrivacy(1.0, E, threshold=1.5, observable_threshold=1.5)],
    )


def coarser_observables(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(3, 4))
    outputs = om.observables.suppressible(om.observables.coarser(p.domain, 2, 2))
    loss = om.losses.with_suppression(om.losses.over_members(E), 2.0)
    return om.Problem(p, loss, outputs, constraints=[om.MetricPrivacy(1.0, E)])


def more_observables(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 4))
    outputs = om.Domain(range(9), rng.uniform(0, 2, (9, 2)), "km")
    return om.Problem(p, E, outputs, constraints=[om.MetricPrivacy(1.5, E)])


def given_matrix(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Domain("abcdef"))
    d = om.distances.matrix(rng.uniform(0.2, 2, (6, 6)))
    return om.Problem(p, H, constraints=[om.MetricPrivacy(1.0, d)])


def duplicates(rng: np.random.Generator) -> om.Problem:
    xy = rng.uniform(0, 2, (6, 2))
    xy[3] = xy[0]
    xy[5] = xy[0]
    p = prior(rng, om.Domain(range(6), xy))
    return om.Problem(p, H, constraints=[om.MetricPrivacy(1.0, E)])


def zero_weights(rng: np.random.Generator) -> om.Problem:
    domain = om.Grid(3, 3)
    weights = np.zeros(9)
    weights[rng.choice(9, 3, replace=False)] = rng.uniform(0.1, 1, 3)
    p = om.Prior(domain, weights)
    return om.Problem(p, E, constraints=[om.MetricPrivacy(1.0, E)])


def _visited(rng: np.random.Generator, domain: om.Domain, count: int) -> om.Prior:
    """A prior that visits few places: reports of the others are of no use."""
    weights = np.zeros(len(domain))
    weights[rng.choice(len(domain), count, replace=False)] = rng.uniform(0.1, 1, count)
    return om.Prior(domain, weights)


def few_visited_joint(rng: np.random.Generator) -> om.Problem:
    p = _visited(rng, om.Grid(3, 4), 4)
    level = rng.uniform(0.5, 0.95) * blind(p)
    return om.Problem(p, H, constraints=[om.MetricPrivacy(0.8, E), om.DistortionPrivacy(level, E)])


def few_visited_most_distortion(rng: np.random.Generator) -> om.Problem:
    p = _visited(rng, om.Grid(3, 4), 4)
    return om.Problem(
        p,
        E,
        objective=om.MaximizeDistortion(E),
        constraints=[om.MetricPrivacy(1.0, E), om.LossBound(0.7 * blind(p))],
    )


def second_rate_thresholds(rng: np.random.Generator) -> om.Problem:
    """Every observable twice, the second time for fewer secrets."""
    p = prior(rng, points(rng, 5))
    xy = p.domain.points
    assert xy is not None
    outputs = om.Domain(range(10), np.vstack([xy, xy]), "km")
    mask = np.hstack([np.ones((5, 5), dtype=bool), rng.uniform(size=(5, 5)) < 0.7])
    windowed = om.MetricPrivacy(1.0, E, threshold=1.5, observable_threshold=1.0)
    return om.Problem(p, E, outputs, constraints=[windowed, om.Support(mask)])


def few_visited_everything(rng: np.random.Generator) -> om.Problem:
    p = _visited(rng, om.Grid(2, 4), 3)
    pair = tuple(rng.dirichlet(np.full(8, 0.5), 2))
    return om.Problem(
        p,
        H,
        constraints=[
            om.MetricPrivacy(2.0, E),
            om.DifferentialPrivacy(1.0, (E, 1.0), delta=0.05),
            om.DistortionPrivacy(0.5 * blind(p), E),
            om.DistributionPrivacy(0.2, [pair], divergence="tv"),
            om.LossBound(0.99),
        ],
    )


def few_visited_divergence(rng: np.random.Generator) -> om.Problem:
    p = _visited(rng, points(rng, 6), 3)
    pair = tuple(rng.dirichlet(np.ones(6), 2))
    private = om.DistributionPrivacy(0.05, [pair], divergence="kl")
    return om.Problem(p, H, constraints=[om.MetricPrivacy(1.5, E), private])


def worse_observables(rng: np.random.Generator) -> om.Problem:
    """Columns of the loss that are nowhere below another one, some of them equal to it."""
    p = prior(rng, points(rng, 5))
    loss = rng.uniform(0, 1, (5, 4))
    loss = np.hstack([loss[:, [0]] + rng.uniform(0, 1, (5, 3)), loss, loss[:, [2]], loss[:, [1]]])
    return om.Problem(p, loss, om.Domain("abcdefghi"), constraints=[om.MetricPrivacy(1.0, E)])


def tiny_epsilon(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(2, 4))
    return om.Problem(p, H, constraints=[om.MetricPrivacy(0.01 / np.sqrt(10), E)])


def large_epsilon(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Grid(3, 4))
    return om.Problem(p, E, constraints=[om.MetricPrivacy(8, E)])


def one_secret(rng: np.random.Generator) -> om.Problem:
    p = om.Prior.uniform(om.Domain(["only"]))
    loss = rng.uniform(0, 1, (1, 3))
    return om.Problem(p, loss, om.Domain("xyz"), constraints=[om.DifferentialPrivacy(1.0)])


def two_secrets(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, om.Domain.range(2))
    return om.Problem(p, H, constraints=[om.MetricPrivacy(rng.uniform(0.1, 3), E)])


def everything(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    pair = tuple(rng.dirichlet(np.full(6, 0.5), 2))
    return om.Problem(
        p,
        E,
        constraints=[
            om.MetricPrivacy(2.0, E),
            om.DifferentialPrivacy(1.0, (E, 0.8), delta=0.05),
            om.DistortionPrivacy(0.5 * blind(p), E),
            om.DistributionPrivacy(0.4, [pair]),
            om.LossBound(1.9, worst_case=True),
            om.LossBound(0.99, loss=H),
        ],
    )


def gains(rng: np.random.Generator) -> om.Problem:
    """Guesses that are no secrets, some gains negative, and a Bayes adversary of another prior."""
    p = prior(rng, points(rng, 6))
    gain = rng.uniform(-1, 2, (4, 6))
    weighted = gain * p.weights
    blind, known = weighted.sum(axis=1).max(), weighted.max(axis=0).sum()
    return om.Problem(
        p,
        E,
        constraints=[
            om.constraints.GainLeakage(
                abs(blind) + 0.3 * (known - blind), gain + abs(blind) - blind
            ),
            om.constraints.GainLeakage(0.6, prior=prior(rng, p.domain, 3.0)),
        ],
    )


def leakage_metric(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 7))
    leaks = [
        om.constraints.MaximalLeakage(rng.uniform(0.1, 0.6)),
        om.constraints.AdditiveCapacity(0.5),
    ]
    return om.Problem(p, E, constraints=[om.MetricPrivacy(2.5, E), *leaks])


def leakage_worst(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 5))
    asked = om.constraints.GainLeakage.predicate(
        0.75, [True, False, True, False, False], om.Prior.uniform(p.domain)
    )
    return om.Problem(
        p, E, objective="worst_loss", constraints=[om.constraints.MaximalLeakage("ln 2"), asked]
    )


def pufferfish_chain(rng: np.random.Generator) -> om.Problem:
    """How many of six times a chain is in its second state."""
    move = rng.uniform(0.1, 0.9, 2)
    matrix = [[1 - move[0], move[0]], [move[1], 1 - move[1]]]
    known = om.beliefs.chains([([0.5, 0.5], matrix)], 6, [0, 1])
    return om.Problem(known.prior, E, constraints=[om.constraints.Pufferfish(1.0, known.pairs)])


def pufferfish_delta(rng: np.random.Generator) -> om.Problem:
    known = om.beliefs.tables(rng.dirichlet(np.ones(6), 3))
    private = om.constraints.Pufferfish(0.3, known.pairs, delta=0.05)
    return om.Problem(known.prior, E, constraints=[private])


def policy(rng: np.random.Generator) -> om.Problem:
    """Two components, one secret on its own, and lengths."""
    p = prior(rng, points(rng, 7))
    edges = [(0, 1), (1, 2, 0.5), (2, 0, 2.0), (3, 4, rng.uniform(0.2, 2)), (4, 5)]
    return om.Problem(p, E, constraints=[om.constraints.PolicyGraph(0.8, edges)])


def unbiased_line(rng: np.random.Generator) -> om.Problem:
    """Reports beyond both ends, so that the ends can be right on average."""
    p = prior(rng, om.Domain.range(5))
    outputs = om.Domain(range(-6, 11), np.arange(-6.0, 11.0))
    constraints = [om.MetricPrivacy(0.9, E), om.constraints.Bias(rng.uniform(0.01, 0.3))]
    return om.Problem(p, E, outputs, constraints=constraints)


def biased_values(rng: np.random.Generator) -> om.Problem:
    """Two values of each label, and those of the observables."""
    p = prior(rng, om.Domain("abcd"))
    meant, reported = rng.uniform(-1, 1, (4, 2)), 4 * rng.normal(size=(7, 2))
    loss = ((meant[:, None] - reported) ** 2).sum(axis=2)
    near = om.constraints.Bias(0.5, meant, reported)
    outputs = om.Domain(range(7))
    return om.Problem(p, loss, outputs, constraints=[om.DifferentialPrivacy(2.0), near])


def least_leakage(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    gain = str(rng.choice(["identity", "maximal", "additive"]))
    limit = om.LossBound(rng.uniform(0.3, 0.8) * blind(p))
    return om.Problem(p, E, objective=om.MinimizeLeakage(gain), constraints=[limit])


def least_leakage_private(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    goal = om.MinimizeLeakage(np.eye(6) + rng.uniform(-0.3, 0.3, (6, 6)), prior(rng, p.domain, 3.0))
    limits = [om.LossBound(0.4), om.MetricPrivacy(3.5, E)]
    return om.Problem(p, H, objective=goal, constraints=limits)


def pointwise(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    return om.Problem(
        p, E, constraints=[om.constraints.PointwiseMaximalLeakage(rng.uniform(0.3, 1.5))]
    )


def information(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 6))
    most = rng.uniform(0.1, 0.5)
    return om.Problem(p, E, constraints=[om.constraints.MutualInformation(most)])


def information_metric(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 5))
    told = om.constraints.MutualInformation("1/5", prior=prior(rng, p.domain, 2.0))
    return om.Problem(p, H, constraints=[om.MetricPrivacy(1.5, E), told])


def renyi(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 4))
    order = str(rng.choice(["2", "3/2", "5", "1/2", "1"]))
    return om.Problem(p, E, constraints=[om.constraints.RenyiPrivacy(order, 0.4, E)])


def renyi_pairs(rng: np.random.Generator) -> om.Problem:
    """Distributions, and a bound on another loss."""
    p = prior(rng, points(rng, 6))
    pairs = [tuple(rng.dirichlet(np.full(6, 0.7), 2)) for _ in range(2)]
    private = om.DistributionPrivacy(0.1, pairs, divergence="renyi:3", scale=[1, 2])
    return om.Problem(p, H, constraints=[private, om.LossBound(1.5 * blind(p), loss=E)])


def robust(rng: np.random.Generator) -> om.Problem:
    """Every prior within a distance of two."""
    p = prior(rng, points(rng, 4), 9.0)
    least = float(p.weights.min())
    low = float(E(p.domain, p.domain)[~np.eye(4, dtype=bool)].min())
    near = om.constraints.GainLeakage(0.7, radius=0.9 * least)
    blocks = [[1, 1, 0, 0], [0, 0, 1, 1]]
    moved = om.constraints.GainLeakage(0.85, blocks, radius=0.9 * least * low, within=E)
    return om.Problem(p, E, constraints=[near, moved])


def robust_error(rng: np.random.Generator) -> om.Problem:
    """The error of attackers with any prior near the prior."""
    p = prior(rng, points(rng, 4), 9.0)
    least = float(p.weights.min())
    low = float(E(p.domain, p.domain)[~np.eye(4, dtype=bool)].min())
    near = om.DistortionPrivacy(0.5 * blind(p), E, radius=0.5 * least)
    moved = om.DistortionPrivacy(0.2, H, radius=0.5 * least * low, within=E)
    return om.Problem(p, E, constraints=[near, moved])


def kept_rows(rng: np.random.Generator) -> om.Problem:
    """Two rows of a staircase are kept, in sixteenths; three are free."""
    p = prior(rng, om.Domain.range(5))
    rows = {0: ["1/2", "1/4", "1/8", "1/16", "1/16"], 4: ["1/16", "1/16", "1/8", "1/4", "1/2"]}
    return om.Problem(p, E, constraints=[om.MetricPrivacy(0.75, E), om.constraints.FixedRows(rows)])


def kept_rows_joint(rng: np.random.Generator) -> om.Problem:
    """Beside limits of leakage, error and loss."""
    p = prior(rng, points(rng, 5))
    rows = {k: ["1/4", "1/4", "1/8", "1/8", "1/4"] for k in (1, 3)}
    limits = [om.DistortionPrivacy(0.3 * blind(p), E), om.LossBound(0.9, loss=H)]
    kept = om.constraints.FixedRows(rows, free=[3])
    return om.Problem(
        p,
        E,
        constraints=[
            kept,
            om.DifferentialPrivacy(2.5),
            om.constraints.MaximalLeakage("ln 2"),
            *limits,
        ],
    )


def linear(rng: np.random.Generator) -> om.Problem:
    """Sums of all, of every report and of every secret, and an equality."""
    p = prior(rng, points(rng, 5))
    own = rng.normal(size=(2, 5, 5))
    total = own.sum(axis=1).mean(axis=1)  # what the uniform mechanism has
    limits = [
        om.Linear(own, upper=[total[0] + 0.1, total[1] + 0.3]),
        om.Linear([["1/3", "ln 2", -1, 0, 0]], upper=0.2, lower=-0.5, per="report"),
        om.Linear([1, 1, 0, 0, 0], equal=0.5, per="secret", title="half of them"),
    ]
    return om.Problem(p, E, constraints=[om.MetricPrivacy(2, E), *limits])


def ratios(rng: np.random.Generator) -> om.Problem:
    """One-sided, infinite, exact, and for some reports or each."""
    p = prior(rng, points(rng, 5))
    own = rng.uniform(0.1, 2, (5, 5)).tolist()
    own[0][1], own[1][0], own[2][3], own[3][2] = "ln 2", "inf", "1/3", "2 ln 3"
    each = np.where(rng.uniform(size=(5, 5, 5)) < 0.3, rng.uniform(0.1, 1, (5, 5, 5)), np.inf)
    some = [om.Ratios(own, reports=list(p.domain.labels[:2])), om.Ratios(each)]
    return om.Problem(p, H, constraints=[*some, om.Ratios(np.array(rng.uniform(1, 3, (5, 5))))])


def mixtures(rng: np.random.Generator) -> om.Problem:
    p = prior(rng, points(rng, 5))
    one, other = (list(rng.dirichlet(np.ones(5), 3)) for _ in range(2))
    whole = om.Ratios(["ln 3/2", 0.2, 0.4], of=one, to=other, title="mixtures")
    some = om.Ratios([0, "1/10"], of=other[:2], to=one[:2], reports=[p.domain.labels[3]])
    return om.Problem(p, H, constraints=[whole, some])


FEW_USEFUL: list[Make] = [
    few_visited_joint, few_visited_most_distortion, second_rate_thresholds,
    few_visited_everything, few_visited_divergence, worse_observables,
]  # fmt: skip
"""Problems in which some observables are dominated."""

KINDS: list[Make] = [
    metric, metric_hamming_grid, differential, adjacency_pairs, adjacency_radius, distortion,
    joint, robust_distortion, approximate, approximate_metric, distributions,
    distributions_metric, distributions_delta, divergence_kl, divergence_chi2_metric,
    divergence_hellinger_worst, divergence_tv, divergence_everything, worst_case, worst_bounded,
    most_distortion, most_distortion_private, support, supported_components, thresholds,
    coarser_observables, more_observables, given_matrix, duplicates, zero_weights,
    gains, leakage_metric, leakage_worst, pufferfish_chain, pufferfish_delta, policy,
    unbiased_line, biased_values, least_leakage, least_leakage_private,
    pointwise, information, information_metric, renyi, renyi_pairs, robust, robust_error,
    kept_rows, kept_rows_joint, linear, ratios, mixtures,
    *FEW_USEFUL, tiny_epsilon, large_epsilon, one_secret, two_secrets, everything,
]  # fmt: skip
