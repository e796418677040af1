"""Shipped coarsening beside certified designs: who gives which privacy at what loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from optmech.analysis.measures import distortion, epsilon, expected_loss
from optmech.base.shown import Shown
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.mechanisms.planar import planar_laplace
from optmech.pipeline.profiles import load_profile
from optmech.pipeline.solve import solve
from optmech.problem import MetricPrivacy, Problem
from optmech.spaces.distances import euclidean
from optmech.spaces.domain import Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech_sweeps.frontier import least_epsilon
from optmech_sweeps.snapping import dense_areas, offset_snapped, rounded_degrees, snapped

_RATES = np.geomspace(0.05, 20.0, 25)
"""Rates of the certified designs, per diameter of a region of ten units: see ``_ladder``."""
_GAP = 1e-3
_CLOSE = 0.01
"""Of ε, to which the least one at a loss is searched."""


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
    """None where no design loses as little at any rate that is tried."""
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
    (to 1 %) whose loss is no larger: between the rates of a ladder that is searched.

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
        rate, design = _of_no_more_loss(ladder, loss)
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


def _of_no_more_loss(
    ladder: list[tuple[float, Design]], loss: float
) -> tuple[float, Design | None]:
    """The design of the least rate that loses no more; of none on a ``ladder`` of rising rates
    without one that does, and the ladder's first where that does."""
    k = next((k for k, (_, design) in enumerate(ladder) if design.loss <= loss), None)
    if k is None:
        return np.nan, None
    rate, design = ladder[k]
    if k == 0:
        return rate, design
    found = least_epsilon(
        design.problem, loss, ladder[k - 1][0], rate, tolerance=_CLOSE,
        profile=replace(load_profile("auto"), gap=_GAP),
    )  # fmt: skip
    return found.upper, found.design


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
