"""Appendix C and beyond: what each way to approximate an optimal mechanism costs and keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from store import Record, Store
from users import EUCLIDEAN, GRIDS, HAMMING, City

import optmech as om
from optmech.pipeline.profiles import Profile

EPSILON = 0.6
BINDING = 0.5
"""d_m lies this part of the way from what metric privacy gives by itself to d_max."""
THRESHOLDS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0)
LIMIT = 600.0
"""Seconds for one approximation; the best verified mechanism by then counts."""

Attempt = tuple[str, Any, Callable[[], tuple[om.Mechanism, Record]]]


def approximate(city: City, user: int, store: Store) -> None:
    """Every approximation of the metric problem, and thresholds of the joint one."""
    prior = city.prior(user)
    metric = [om.MetricPrivacy(EPSILON, EUCLIDEAN)]
    exact = om.solve(om.Problem(prior, HAMMING, constraints=metric))
    reached = om.attacks.optimal_attack(exact.mechanism, prior, EUCLIDEAN).error
    minimum = reached + BINDING * (city.blind_error(user) - reached)
    for method, parameter, attempt in _attempts(city, prior, minimum):
        task = {"grid": city.grid, "user": user, "method": method, "parameter": parameter}
        if store.find(task) is None:
            store.add(task, _measured(prior, exact, attempt))


def _measured(
    prior: om.Prior, exact: om.Design, attempt: Callable[[], tuple[om.Mechanism, Record]]
) -> Record:
    started = time.perf_counter()
    try:
        m, more = attempt()
    except om.OptmechError as error:
        return {"failed": str(error).splitlines()[0]}
    seconds = time.perf_counter() - started
    return {
        "seconds": round(seconds, 3),
        "loss": om.measures.expected_loss(m, prior, HAMMING),
        "epsilon": _finite(om.measures.epsilon(m, EUCLIDEAN)),
        "optimal": om.attacks.optimal_attack(m, prior, EUCLIDEAN).error,
        "exact_loss": exact.loss,
        "exact_bound": exact.lower_bound,
        **more,
    }


def _attempts(city: City, prior: om.Prior, minimum: float) -> Iterator[Attempt]:
    metric = om.MetricPrivacy(EPSILON, EUCLIDEAN)
    distortion = om.DistortionPrivacy(minimum, EUCLIDEAN)
    yield "exact", None, lambda: _solved(prior, [metric])
    yield "joint", None, lambda: _solved(prior, [metric, distortion])
    for far in THRESHOLDS:
        cut = om.MetricPrivacy(EPSILON, EUCLIDEAN, threshold=far)
        yield "threshold", far, lambda cut=cut: _solved(prior, [cut])
        both = om.MetricPrivacy(EPSILON, EUCLIDEAN, threshold=far, observable_threshold=far)
        yield "joint threshold", far, lambda both=both: _solved(prior, [both, distortion])
        near = om.Support(city.distances <= far)
        yield "support", far, lambda near=near: _solved(prior, [metric, near])
    exact = tuple(name for name in Profile().reductions if name != "implied-pairs")
    for stretch in (1.05, 1.1, 1.2, 1.5, 2.0):
        profile = Profile(reductions=(*exact, f"spanner:{stretch}"), gap=1e-6)
        yield "spanner", stretch, lambda profile=profile: _solved(prior, [metric], profile)
    for gap in (0.1, 1e-2, 1e-3, 1e-4):
        profile = Profile(engine="structured", gap=gap)
        yield "early stop", gap, lambda profile=profile: _solved(prior, [metric], profile)
    for side in (2, 3, 4):
        yield "coarse", side, lambda side=side: _coarse(city, prior, side)
    for name in ("planar_laplace", "exponential"):
        yield name, "remapped", lambda name=name: _known(name, prior)


def _solved(
    prior: om.Prior, constraints: list[Any], profile: Profile | str = "auto"
) -> tuple[om.Mechanism, Record]:
    problem = om.Problem(prior, HAMMING, constraints=constraints)
    design = om.solve(problem, profile=profile, time_limit=LIMIT)
    found = design.approximation
    return design.mechanism, {
        "status": design.status,
        "lower_bound": design.lower_bound,
        "verified": design.verified,
        "repaired_loss": None if found is None else _finite(found.repaired_loss),
    }


def _coarse(city: City, prior: om.Prior, side: int) -> tuple[om.Mechanism, Record]:
    """Cells of a block of side x side report alike; blocks are as far apart as their nearest
    cells, so that the fine mechanism keeps its ε between all cells."""
    rows, columns = GRIDS[city.grid]
    index = np.arange(rows * columns)
    _, block = np.unique(
        (index // columns // side) * columns + index % columns // side, return_inverse=True
    )
    count = int(block.max()) + 1
    nearest = np.full((count, count), np.inf)
    np.minimum.at(nearest, (block[:, None], block[None, :]), city.distances)
    mass = np.zeros((count, len(index)))
    mass[block, index] = prior.weights
    weights = mass.sum(axis=1)
    hit = np.divide(mass, weights[:, None], out=np.zeros_like(mass), where=weights[:, None] > 0)
    blocks = om.Domain(range(count))
    problem = om.Problem(
        om.Prior(blocks, weights),
        1.0 - hit,
        observables=city.cells,
        constraints=[om.MetricPrivacy(EPSILON, om.distances.matrix(_shortest(nearest)))],
    )
    design = om.solve(problem)
    fine = om.Mechanism(city.cells, city.cells, design.mechanism.matrix[block])
    return fine, {"status": design.status, "verified": design.verified}


def _shortest(distances: np.ndarray) -> np.ndarray:
    """Shortest ways: least distances between blocks break the triangle inequality."""
    from scipy.sparse.csgraph import floyd_warshall

    return floyd_warshall(distances)


def _known(name: str, prior: om.Prior) -> tuple[om.Mechanism, Record]:
    """A mechanism from the literature, every report replaced by the best one in hindsight."""
    cells = prior.domain
    if name == "planar_laplace":
        m = om.mechanisms.planar_laplace(cells, EPSILON)
    else:
        m = om.mechanisms.exponential(cells, EPSILON, EUCLIDEAN)
    posterior = prior.weights[:, None] * m.matrix
    best = posterior.argmax(axis=0)
    return m.remap(lambda label: cells.labels[best[m.observables.index(label)]]), {}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
