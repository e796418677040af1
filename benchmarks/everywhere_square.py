"""A square of 5 x 5 places: the certified loss on meshes against a certified lower bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from everywhere_mesh import Clock, Places, adapted, certified

import optmech as om
from optmech.spaces.mesh import Mesh

EPSILON, SIDE = 0.8, 4.0
PRIORS = ("uniform", "rough")
WIDTHS = (1.0, 0.5, 0.25, 0.125)
HIGHER = {2: (2.0, 1.0, 0.5, 0.25), 3: (4.0, 2.0, 1.0, 0.5)}
"""Widths by degree, with about as many control points."""
FINEST = 576
"""Vertices of the last adapted mesh."""
GAP = 1e-4
BETWEEN = (1, 2, 4)
"""Steps per place of the lattices on which bounds ask for privacy."""
POINTS = np.array([(x, y) for y in range(5) for x in range(5)], dtype=float)
COSTS = np.hypot(*(POINTS[:, None] - POINTS).transpose(2, 0, 1))


def places(prior: str) -> Places:
    """Uniform, or drawn from Dirichlet's law with parameter 0.3 (seed 1)."""
    rough = np.random.default_rng(1).dirichlet(np.full(25, 0.3))
    return Places(POINTS, np.full(25, 1 / 25) if prior == "uniform" else rough, COSTS)


def bound(prior: str, between: int) -> dict[str, Any]:
    """Of mechanisms that are private at a lattice of points, most of them without mass."""
    clock = Clock()
    steps = 4 * between + 1
    line = np.linspace(0, SIDE, steps)
    lattice = np.array([(x, y) for y in line for x in line])
    secrets = om.Domain(range(len(lattice)), lattice)
    reports = om.Domain(range(25), POINTS)
    mass = np.zeros(len(lattice))
    mass[(np.abs(lattice[:, None] - POINTS).sum(axis=2) == 0).argmax(axis=0)] = places(
        prior
    ).weights
    euclidean = om.distances.euclidean()
    design = om.solve(
        om.Problem(
            prior=om.Prior(secrets, mass),
            loss=euclidean,
            observables=reports,
            constraints=[om.MetricPrivacy(EPSILON, euclidean)],
        ),
        gap=1e-4,
    )
    return {"lower_bound": design.lower_bound, "points": len(lattice), **clock.read()}


def uniform(prior: str, width: float, degree: int = 1) -> dict[str, Any]:
    """Equal squares, halved."""
    clock = Clock()
    mesh = Mesh.grid((0, 0, SIDE, SIDE), width, degree=degree)
    ((mesh, point),) = adapted(places(prior), mesh, EPSILON, mesh.rows, GAP)
    loss = certified(places(prior), mesh, EPSILON, point)
    return {"vertices": len(mesh), "rows": mesh.rows, "loss": loss, **clock.read()}


def refined(prior: str) -> dict[str, Any]:
    """Every mesh on the way from the widest, refined where the multipliers say that it pays."""
    clock, found = Clock(), []
    start = Mesh.grid((0, 0, SIDE, SIDE), SIDE / 2)
    for mesh, point in adapted(places(prior), start, EPSILON, FINEST, GAP):
        found.append([len(mesh), certified(places(prior), mesh, EPSILON, point)])
    return {"meshes": found, **clock.read()}
