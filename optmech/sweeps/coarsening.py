"""Shipped coarsening beside certified designs: who gives which privacy at what loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from optmech.analysis.measures import distortion, epsilon, expected_loss
from optmech.base.shown import Shown
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.mechanisms.coarsening import dense_areas, offset_snapped, rounded_degrees, snapped
from optmech.mechanisms.planar import planar_laplace
from optmech.pipeline.solve import solve
from optmech.problem import MetricPrivacy, Problem
from optmech.spaces.distances import euclidean
from optmech.spaces.domain import Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior

_RATES = np.geomspace(0.05, 20.0, 25)
"""Rates of the certified designs, per diameter of a region of ten units: see ``_ladder``."""
_GAP = 1e-3


@dataclass(frozen=True, repr=False)
class Compared(Shown):
    """One way of coarsening, and the certified design of the least ε that loses no more."""

    name: str
    loss: float
    """Expected distance between place and report, in the unit of the coordinates."""
    epsilon: float
    """Least rate of metric privacy per unit; inf where some report rules a place out."""
    attack: float
    """Error of the optimal attack, in the same unit."""
    design: Design | None
    """None where no design of the ladder loses as little."""
    design_epsilon: float
    design_attack: float

    @property
    def design_loss(self) -> float:
        """Expected loss of the certified design; nan without one."""
        return float("nan") if self.design is None else self.design.loss


def shipped(prior: Prior) -> dict[str, Mechanism]:
    """The models that fit a prior's domain, by name. Lengths are in the coordinates' unit, which
    is taken for km; decimals only of grids over bounds."""
    domain = prior.domain
    out = {
        "snapping to 5 km": snapped(domain, 5.0),
        "snapping to 2 km": snapped(domain, 2.0),
        "offset grid of 2 km (Android)": offset_snapped(domain, 2.0),
        "areas of a tenth of all": dense_areas(prior, 0.1),
    }
    if isinstance(domain, Grid) and domain.bounds is not None:
        out["two decimals, rounded"] = rounded_degrees(domain, 2)
        out["two decimals, cut off"] = rounded_degrees(domain, 2, truncated=True)
        out["one decimal, rounded"] = rounded_degrees(domain, 1)
    if isinstance(domain, Grid):
        out["planar Laplace, ln 2 per km"] = planar_laplace(domain, "ln 2")
        out["planar Laplace, ln 4 per km"] = planar_laplace(domain, "ln 4")
    return out


def compare_coarsening(
    prior: Prior, *, progress: Callable[[str], None] | None = None
) -> list[Compared]:
    """Measure every model of ``shipped`` under a prior, beside the certified design of the least ε
    (of a ladder of 25 rates) whose loss is no larger.

    Designs minimise the expected Euclidean distance under metric privacy, to a proved gap of 0.1 %.
    Raises ProblemError unless the places have two plane coordinates.
    """
    domain, distance = prior.domain, euclidean()
    if domain.points is None or domain.coordinates != "plane" or domain.points.shape[1] != 2:
        raise ProblemError(
            "needs places with two plane coordinates",
            where="prior",
            remedy="Use a grid; om.Grid.geographic for degrees",
        )
    ladder = list(_ladder(prior, progress))
    found = []
    for name, mechanism in shipped(prior).items():
        loss = expected_loss(mechanism, prior, distance)
        fitting = [(rate, design) for rate, design in ladder if design.loss <= loss]
        rate, design = min(fitting, key=lambda pair: pair[0]) if fitting else (np.nan, None)
        found.append(
            Compared(
                name,
                loss,
                epsilon(mechanism, distance),
                distortion(mechanism, prior, distance),
                design,
                float(rate),
                float("nan") if design is None else distortion(design.mechanism, prior, distance),
            )
        )
    return found


def _ladder(prior: Prior, progress: Callable[[str], None] | None) -> Iterator[tuple[float, Design]]:
    """Certified designs of rates that suit the size of the region."""
    points = prior.domain.require_points("compare coarsening")
    size = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0
    distance = euclidean()
    for number, rate in enumerate((_RATES * 10 / size).tolist(), start=1):
        stated = MetricPrivacy(rate, distance)
        design = solve(Problem(prior, distance, constraints=[stated]), gap=_GAP)
        if progress is not None:
            progress(f"design {number} of {len(_RATES)}: ε = {rate:.3g}, loss {design.loss:.4g}")
        yield rate, design
