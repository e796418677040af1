"""Rome after AIPO: all crossings as a uniform prior, twenty reports, road distances to a task."""

from __future__ import annotations

import csv
import gzip
import resource
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from everywhere_mesh import Clock, Places, adapted, certified
from scipy.signal import fftconvolve
from scipy.sparse.csgraph import dijkstra

import optmech as om
from optmech.analysis.measures import everywhere
from optmech.certificate import Multipliers, lower_bound
from optmech.engines import pairs
from optmech.reductions.aggregation import Members, above, aggregated, partition
from optmech.spaces.mesh import Mesh

CENTRE = (12.49, 41.9)
FILES = ("rome_osm_nodes.csv.gz", "rome_osm_edges.csv.gz")
REPORTS, SEED = 20, 7
EPSILONS = (0.2, 0.4, 0.8, 1.6)
"""Per km."""
WIDTH = 12.0
"""km, of the widest triangles."""
MESHES = {"upper": (1, 1200), "cubic coarse": (3, 1200), "cubic": (3, 2400)}
"""Degree and control points: the table's meshes last, the others tell what limits it."""
FIRST = 600
"""Control points of the mesh that is adapted."""
CELLS = {
    "lower": dict.fromkeys(EPSILONS, 1000),
    "bound": {0.2: 1500, 0.4: 2000, 0.8: 3000, 1.6: 3000},
}
"""By ε: the table's last, more where ε times their size would be large."""
NEIGHBOURS = 8
GAP, LOWER_GAP = 2e-3, 3e-3
GRIDS = (12, 18)
KERNEL = 0.25
"""km, of the lattice on which the remap of planar Laplace is made."""
DRAWS = 200_000
NEAR = 0.5
"""km, of pairs of fixes that are near each other."""


class Rome:
    """The crossings in km east and north of the centre, and what reports cost there."""

    def __init__(self, data: Path) -> None:
        nodes, edges = (read(data / name) for name in FILES)
        east = 111.32 * np.cos(np.radians(CENTRE[1]))
        self.points = (nodes[:, 1:3] - CENTRE) * [east, 110.57]
        count = len(nodes)
        ends = edges[:, :2].astype(int)
        both = np.vstack([ends, ends[:, ::-1]])
        length = np.tile(edges[:, 2] / 1000, 2)
        order = np.lexsort((length, both[:, 1], both[:, 0]))
        both, length = both[order], length[order]
        # the shortest of parallel segments
        kept = np.r_[True, (np.diff(both, axis=0) != 0).any(axis=1)]
        self.roads = roads = sp.csr_array((length[kept], both[kept].T), shape=(count, count))
        task = int(np.hypot(*self.points.T).argmin())
        way = dijkstra(roads, indices=task, directed=False)
        self.reports = np.random.default_rng(SEED).choice(count, REPORTS, replace=False)
        self.weights = np.full(count, 1 / count)
        self.costs = np.abs(way[:, None] - way[self.reports])
        self.places = Places(self.points, self.weights, self.costs)


def read(path: Path) -> np.ndarray:
    """A table of numbers under a head of names."""
    with gzip.open(path, "rt") as stream:
        return np.array(list(csv.reader(stream))[1:], dtype=float)


def memory() -> float:
    """The peak of this process, MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def upper(rome: Rome, epsilon: float, degree: int, rows: int) -> dict[str, Any]:
    """A mechanism on an adapted mesh, decided."""
    clock = Clock()
    start = Mesh.around(rome.points, WIDTH, vertices=FIRST // degree**2, degree=degree)
    *_, (mesh, point) = adapted(rome.places, start, epsilon, rows, GAP)
    solved = clock.read()
    loss = certified(rome.places, mesh, epsilon, point)
    return {
        "degree": mesh.degree,
        "vertices": len(mesh),
        "rows": mesh.rows,
        "loss": loss,
        "mesh_gap": point.gap,
        "solved": solved,
        **clock.read(),
        "memory": memory(),
    }


def lower(rome: Rome, epsilon: float, cells: int) -> dict[str, Any]:
    """A bound for every mechanism that is private at the crossings, from a coarser problem."""
    clock = Clock()
    parts = partition(rome.points, rome.weights, cells)
    prior = om.Prior(om.Domain(range(len(parts))), rome.weights)

    def limits(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return above(epsilon, rome.points[i], rome.points[j])

    coarse = aggregated(Members.of(prior, rome.costs, limits, parts), NEIGHBOURS, boxes=False)
    taken = clock.read()
    problem = om.Problem(
        prior=om.Prior(om.Domain(range(len(coarse.prior))), coarse.prior),
        loss=coarse.cost,
        observables=om.Domain(range(REPORTS)),
        constraints=[om.MetricPrivacy(1, om.distances.matrix(coarse.log_ratio))],
    )
    middles = np.column_stack(
        [np.bincount(parts, rome.points[:, k]) / np.bincount(parts) for k in (0, 1)]
    )
    gaps: list[float] = []
    found = pairs.solve(
        coarse.log_ratio,
        middles[coarse.labels],
        problem.statement.cost,
        LOWER_GAP,
        lambda point: bool(gaps.append(point.gap)),
        threads=1,
    )
    bound = lower_bound(problem.statement, Multipliers((found,)))
    return {
        "cells": len(coarse.prior),
        "lower_bound": bound.value,
        "coarse_gap": gaps[-1],
        "aggregation": taken,
        **clock.read(),
        "memory": memory(),
    }


def exponential(rome: Rome, epsilon: float) -> dict[str, Any]:
    """p(o|x) ∝ e^{-ε‖x − o‖/2}, private at every point; and after the best remap of its reports."""
    apart = np.hypot(*(rome.points[:, None] - rome.points[rome.reports]).transpose(2, 0, 1))
    found = np.exp(-epsilon / 2 * (apart - apart.min(axis=1, keepdims=True)))
    found /= found.sum(axis=1, keepdims=True)
    joint = rome.weights[:, None] * found
    return {
        "loss": float((joint * rome.costs).sum()),
        "remapped": float((joint.T @ rome.costs).min(axis=1).sum()),
    }


def laplace(rome: Rome, epsilon: float) -> dict[str, Any]:
    """Planar Laplace noise, and the report of least expected cost for each noisy point, chosen on
    a lattice; its loss from draws, with a 99 % interval of the normal law."""
    reach = 12 / epsilon
    low = np.floor((rome.points.min(axis=0) - reach) / KERNEL) * KERNEL
    shape = np.ceil((rome.points.max(axis=0) + reach - low) / KERNEL).astype(int) + 1
    at = np.rint((rome.points - low) / KERNEL).astype(int)
    half = int(reach / KERNEL)
    axis = KERNEL * np.arange(-half, half + 1)
    kernel = np.exp(-epsilon * np.hypot(axis[:, None], axis))
    best, least = np.zeros(shape, dtype=int), np.full(shape, np.inf)
    for o in range(REPORTS):
        mass = np.zeros(shape)
        np.add.at(mass, tuple(at.T), rome.weights * rome.costs[:, o])
        cost = fftconvolve(mass, kernel, mode="same")
        better = cost < least
        best[better], least[better] = o, cost[better]
    rng = np.random.default_rng(SEED)
    start = rng.integers(len(rome.points), size=DRAWS)
    angle, radius = rng.uniform(0, 2 * np.pi, DRAWS), rng.gamma(2, 1 / epsilon, DRAWS)
    noisy = rome.points[start] + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    cell = np.clip(np.rint((noisy - low) / KERNEL).astype(int), 0, shape - 1)
    drawn = rome.costs[start, best[tuple(cell.T)]]
    return {"loss": float(drawn.mean()), "half_width": float(2.576 * drawn.std() / DRAWS**0.5)}


def grid(rome: Rome, epsilon: float, side: int, limit: float) -> dict[str, Any]:
    """The optimum on cells, used with snapping: its loss over the crossings, and what is left of
    its privacy between centres."""
    clock = Clock()
    low, high = rome.points.min(axis=0) - 1e-3, rome.points.max(axis=0) + 1e-3
    cell = (high - low) / side
    cells = om.Grid(side, side, cell=tuple(cell), unit="km", origin=tuple(low))
    inside = cells.locate(rome.points)
    mass = np.bincount(inside, rome.weights, len(cells))
    costs = np.array(
        [np.bincount(inside, rome.weights * column, len(cells)) for column in rome.costs.T]
    ).T
    costs /= np.where(mass > 0, mass, 1.0)[:, None]
    euclidean = om.distances.euclidean()
    design = om.solve(
        om.Problem(
            prior=om.Prior(cells, mass),
            loss=costs,
            observables=om.Domain(range(REPORTS)),
            constraints=[om.MetricPrivacy(epsilon, euclidean)],
        ),
        gap=GAP,
        time_limit=limit,
    )
    used = clock.read()
    found = everywhere(design.mechanism, epsilon)
    near = everywhere(design.mechanism, epsilon, within=NEAR)
    return {
        "loss": design.loss,
        "gap": design.gap,
        "slack": found.slack,
        "step": found.step,
        "violated": [found.violated, *found.interval],
        "violated_near": [near.violated, *near.interval],
        "epsilon_at_100_m": found.epsilon_between(0.1),
        **used,
    }
