"""Mechanisms on meshes that follow the error, and what is certified of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optmech.certificate.families.gradient import check_gradients, check_mesh
from optmech.certificate.statement import Spread
from optmech.certificate.values import expected_loss
from optmech.engines import cones
from optmech.exact.number import parse_exact
from optmech.lp import gradients
from optmech.repair.gradients import released_inside
from optmech.spaces.mesh import Mesh

_FINER = 2.0
"""Times as many vertices from one mesh to the next."""
_ENOUGH = 0.95
"""Share of the control points that are asked for that will do."""
_WIDE = 1e-2
"""Gap of solutions that only tell where to refine."""


class Clock:
    """Seconds since it was made, of this process and of the wall."""

    def __init__(self) -> None:
        self._wall, self._own = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {
            "seconds": round(time.perf_counter() - self._wall, 1),
            "processor_seconds": round(time.process_time() - self._own, 1),
        }


@dataclass(frozen=True, eq=False)
class Places:
    """Where the prior is: points (n, 2), weights (n,) and costs of the reports (n, O)."""

    points: np.ndarray
    weights: np.ndarray
    costs: np.ndarray


def certified(places: Places, mesh: Mesh, epsilon: float, point: cones.ConePoint) -> float:
    """The loss of a released matrix near a solution, from above; every inequality decided."""
    exact = parse_exact(repr(epsilon), where="epsilon")
    released, _ = released_inside(mesh, exact, point.matrix)
    for check in (check_mesh(mesh), check_gradients(mesh, exact, released)):
        if not check.passed:
            raise SystemExit(f"{check.kind}: {check.detail}")
    return float(
        expected_loss(Spread(mesh, places.points), places.weights, places.costs, released)[1]
    )


def adapted(
    places: Places, mesh: Mesh, epsilon: float, rows: int, gap: float
) -> Iterator[tuple[Mesh, cones.ConePoint]]:
    """Solutions on meshes that are refined where the last multipliers say that it pays, the last
    one of about ``rows`` control points; those before to a wider gap."""
    while True:
        enough = mesh.rows >= _ENOUGH * rows
        costs = gradients.row_costs(mesh, places.points, places.weights, places.costs)
        program = cones.ConeProgram.of(mesh, epsilon)
        point = cones.solve(program, costs, gap if enough else max(gap, _WIDE), threads=1)
        yield mesh, point
        if enough:
            return
        found = gradients.indicator(mesh, epsilon, point.matrix, point.multipliers[..., 0])
        times = min(rows / mesh.rows, _FINER)
        mesh = finer(mesh, found, int(times * len(mesh)))


def finer(mesh: Mesh, indicator: np.ndarray, vertices: int) -> Mesh:
    """Halve triangles, those with the largest indicator first, up to about ``vertices``. What a
    part of a triangle is worth falls as area times the degree's power of the width."""
    while len(mesh) < vertices:
        after = mesh.refine(indicator, most=vertices - len(mesh))
        if after is mesh:
            break
        middle = after.vertices[after.triangles].mean(axis=1)
        at = mesh.locate(middle)[0]
        indicator = indicator[at] * (area(after) / area(mesh)[at]) ** (1 + mesh.degree / 2)
        mesh = after
    return mesh


def area(mesh: Mesh) -> np.ndarray:
    """Of every triangle."""
    first, second = (
        mesh.vertices[mesh.triangles[:, k]] - mesh.vertices[mesh.triangles[:, 0]] for k in (1, 2)
    )
    return np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]) / 2
