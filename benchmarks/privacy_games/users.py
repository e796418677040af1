"""Users of the paper's kind: priors of real people over the cells of a city.

The paper's Lausanne data are not public. Check-ins in Manhattan stand in for them: a box of
13.3 km x 7.6 km (the paper's is 15 km x 8 km) cut into 300 cells, users with at least 20
check-ins there, the prior of each by counting (PG section 9).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import optmech as om

BOUNDS = (-74.02, 40.70, -73.93, 40.82)
LEAST_CHECKINS = 20
SEED = 2015
"""The year of the paper; draws the ten users of the large grid."""
FILES = ("fsq_nyc_pois.csv", "fsq_nyc_checkins.csv")
GRIDS = {"paper": (20, 15), "small": (8, 5)}
EUCLIDEAN = om.distances.euclidean()
HAMMING = om.distances.hamming()


@dataclass(frozen=True)
class City:
    """The cells of one grid and everybody's visits to them."""

    data: Path
    grid: str

    @cached_property
    def cells(self) -> om.Grid:
        return om.Grid.geographic(*GRIDS[self.grid], BOUNDS)

    @cached_property
    def distances(self) -> np.ndarray:
        """Kilometres between cells."""
        return EUCLIDEAN(self.cells, self.cells)

    @cached_property
    def visits(self) -> dict[int, np.ndarray]:
        """Visits per cell of every user with enough of them, by user number."""
        places = {
            row["poi"]: (float(row["lon"]), float(row["lat"]))
            for row in _rows(self.data / "fsq_nyc_pois.csv")
        }
        checkins = _rows(self.data / "fsq_nyc_checkins.csv")
        cell = self.cells.locate(np.array([places[row["poi"]] for row in checkins]))
        user = np.array([int(row["user"]) for row in checkins])
        inside = cell >= 0
        counts = {
            int(u): np.bincount(cell[inside & (user == u)], minlength=len(self.cells))
            for u in np.unique(user[inside])
        }
        return {u: found for u, found in counts.items() if found.sum() >= LEAST_CHECKINS}

    def prior(self, user: int) -> om.Prior:
        return om.Prior(self.cells, self.visits[user])

    def blind_error(self, user: int) -> float:
        """d_max: the error of an adversary who sees nothing, in km."""
        return float((self.distances @ self.prior(user).weights).min())

    def drawn(self, count: int) -> list[int]:
        """Users drawn at random without replacement, always the same ones; all, for count 0."""
        everybody = sorted(self.visits)
        if not count:
            return everybody
        chosen = np.random.default_rng(SEED).choice(len(everybody), count, replace=False)
        return [everybody[k] for k in chosen]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
