"""Loss against the error that an adversary is left with, both beside privacy at every point: on the
square of 5 x 5 places, and for the check-ins of New York.

The adversary names a place; what is asked of the design is how often he has to be wrong at least.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from everywhere_mesh import Clock
from everywhere_square import EPSILON, POINTS, SIDE, places

import optmech as om

GAP = 1e-3
SQUARE = (0.0, 0.9, 0.93, 0.96, 0.99)
CITY = (0.0, 0.97, 0.98, 0.99)
"""Of the error of an adversary who sees nothing; 0 for no constraint."""
CELLS, REPORTS = (20, 15), 20
BOX = (40.70, 40.82, -74.02, -73.93)
PER_KM = 0.8
"""ε of the city."""
WRONG = om.distances.hamming()


def square(share: float) -> dict[str, Any]:
    """The rough prior, on triangles of width 1 and degree 3."""
    given = places("rough")
    domain = om.Domain(range(25), POINTS)
    mesh = om.Mesh.grid((0, 0, SIDE, SIDE), 1, degree=3)
    euclidean = om.distances.euclidean()
    promise = om.MetricPrivacy(EPSILON, euclidean, everywhere=mesh)
    return _solved(om.Prior(domain, given.weights), euclidean, domain, promise, share)


def city(data: Path, share: float) -> dict[str, Any]:
    """Cells of Manhattan with check-ins, as places on the globe at their middles; the 20 of most
    check-ins are the reports."""
    with (data / "fsq_nyc_pois.csv").open() as stream:
        known = {r["poi"]: (float(r["lat"]), float(r["lon"])) for r in csv.DictReader(stream)}
    with (data / "fsq_nyc_checkins.csv").open() as stream:
        at = np.array([known[row["poi"]] for row in csv.DictReader(stream)])
    low, high = np.array(BOX)[[0, 2]], np.array(BOX)[[1, 3]]
    side = (high - low) / CELLS
    cell = np.floor((at - low) / side).astype(int)
    inside = ((cell >= 0) & (cell < CELLS)).all(axis=1)
    found, visits = np.unique(cell[inside], axis=0, return_counts=True)
    middles = (low + (found + 0.5) * side)[:, ::-1]
    domain = om.Domain.geographic(range(len(found)), middles)
    first = np.sort(np.argsort(-visits, kind="stable")[:REPORTS])
    reports = om.Domain.geographic(range(REPORTS), middles[first])
    km = om.distances.haversine()
    promise = om.MetricPrivacy(PER_KM, km, everywhere=om.Mesh.around(domain, 1.5, degree=3))
    return _solved(om.Prior(domain, visits / visits.sum()), km, reports, promise, share)


def _solved(
    prior: om.Prior, loss: Any, reports: om.Domain, promise: om.MetricPrivacy, share: float
) -> dict[str, Any]:
    clock = Clock()
    beside = []
    if share:
        least = share * float(1 - prior.weights.max())
        beside = [om.DistortionPrivacy(least, WRONG)]
    design = om.solve(om.Problem(prior, loss, reports, constraints=[promise, *beside]), gap=GAP)
    return {
        "loss": design.loss,
        "bound": design.bound,
        "lower_bound": design.lower_bound,
        "wrong": om.measures.distortion(design.mechanism, prior, WRONG),
        "blind": float(1 - prior.weights.max()),
        "places": len(prior),
        "rows": design.mesh.rows,
        **clock.read(),
    }
