"""What devices and tools do to locations today, as mechanisms: so that it can be measured.

None of these was made to be private in the sense of a ratio, and most are functions of the place:
``om.measures.epsilon`` is infinite for them. Reports are points with coordinates of the secrets'
kind, so that losses and attacks compare with those of other mechanisms. Places are their points.
"""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Floats, normalised_rows
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.number import Number, float_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior


@checked_arguments
def snapped(domain: Domain, size: float) -> Mechanism:
    """Report the nearest node of a square lattice of ``size`` that begins at the origin of the
    coordinates, as location permissions of "about 5 km" do. Deterministic: ε is infinite wherever
    two places have different nodes.

    Raises ProblemError unless the domain has two plane coordinates.

    Examples
    --------
    >>> cells = om.Grid(1, 4, unit="km")
    >>> m = om.mechanisms.snapped(cells, size=2.0)
    >>> m.sample((0, 0)) == m.sample((0, 0)), om.measures.epsilon(m)
    (True, inf)
    """
    nodes = np.rint(_plane(domain) / float_of(size, "size", positive=True))
    return _deterministic(domain, nodes * size)


@checked_arguments
def offset_snapped(domain: Domain, size: float, deviation: float | None = None) -> Mechanism:
    """Snapping to a grid after a Gaussian offset of ``deviation`` per coordinate, by default size /
    4: Android's LocationFudger (2 km by default), whose offset moves by 3 % an hour. One report; as
    the offset hardly moves, those of a trace are far from independent.

    Probabilities are products of differences of the normal distribution function; nodes beyond six
    deviations count as never reported, as in practice.

    Examples
    --------
    >>> cells = om.Grid(1, 4, unit="km")
    >>> m = om.mechanisms.offset_snapped(cells, size=2.0)
    >>> m.matrix.shape[0], round(float(m.matrix[0].sum()), 6)
    (4, 1.0)
    """
    from scipy.special import ndtr

    points, step = _plane(domain), float_of(size, "size", positive=True)
    spread = step / 4 if deviation is None else float_of(deviation, "deviation", positive=True)
    sides = []
    for axis in (0, 1):
        first = math.floor((points[:, axis].min() - 6 * spread) / step)
        last = math.ceil((points[:, axis].max() + 6 * spread) / step)
        nodes = np.arange(first, last + 1)
        edges = (np.append(nodes - 0.5, nodes[-1] + 0.5) * step - points[:, axis, None]) / spread
        mass = np.diff(ndtr(np.clip(edges, -6, 6)), axis=1)
        sides.append((nodes * step, normalised_rows(mass)))
    (xs, across), (ys, along) = sides
    joint = (along[:, :, None] * across[:, None, :]).reshape(len(points), -1)
    used = joint.any(axis=0)
    where = np.column_stack([np.tile(xs, len(ys)), np.repeat(ys, len(xs))])[used]
    return Mechanism(domain, _reports(domain, where), joint[:, used])


@checked_arguments
def rounded_degrees(cells: Grid, decimals: int, *, truncated: bool = False) -> Mechanism:
    """Report latitude and longitude with so many decimals, rounded or cut off (towards zero).

    Two decimals are cells of about 1.1 km of latitude. Raises ProblemError unless ``cells`` is a
    grid over bounds in degrees.

    Examples
    --------
    >>> cells = om.Grid.geographic(1, 3, bounds=(8.50, 47.36, 8.53, 47.37))
    >>> m = om.mechanisms.rounded_degrees(cells, decimals=1)
    >>> len(m.observables)  # 8.5, 47.4 for all three
    1
    """
    if not isinstance(cells, Grid) or cells.bounds is None:
        raise ProblemError(
            "has no degrees to round", where="cells", remedy="Make it with om.Grid.geographic"
        )
    west, south, _, north = cells.bounds
    degree = math.pi / 180 * EARTH_RADIUS_KM
    scale = np.array([degree * math.cos(math.radians((south + north) / 2)), degree])
    corner = np.array([west, south])
    unit = 10.0 ** whole(decimals, "decimals", least=0, most=12)
    degrees = corner + _plane(cells) / scale
    kept = (np.trunc if truncated else np.rint)(degrees * unit) / unit
    return _deterministic(cells, (kept - corner) * scale)


@checked_arguments
def dense_areas(prior: Prior, share: Number) -> Mechanism:
    """Report the centre of an area that holds at least ``share`` of the prior: the region is halved
    along its longer side, at the median, while both halves hold that much. What services do that
    coarsen by population density; deterministic.

    Examples
    --------
    >>> cells = om.Grid(1, 4, unit="km")
    >>> m = om.mechanisms.dense_areas(om.Prior(cells, [4, 3, 2, 1]), share=0.3)
    >>> m.sample((0, 3)) == m.sample((0, 2))  # too few people live in either alone
    True
    """
    points = _plane(prior.domain)
    least = float_of(share, "share", positive=True)
    out = np.zeros(points.shape)
    waiting = [np.arange(len(points))]
    while waiting:
        here = waiting.pop()
        axis = np.ptp(points[here], axis=0).argmax()
        order = here[np.argsort(points[here, axis], kind="stable")]
        mass = np.cumsum(prior.weights[order])
        cut = np.searchsorted(mass, mass[-1] / 2) + 1
        if cut < len(order) and min(mass[cut - 1], mass[-1] - mass[cut - 1]) >= least:
            waiting += [order[:cut], order[cut:]]
        else:
            weights = prior.weights[here]
            even = weights if weights.sum() > 0 else np.ones(len(here))
            out[here] = np.average(points[here], axis=0, weights=even)
    return _deterministic(prior.domain, out)


def _plane(domain: Domain) -> Floats:
    points = domain.require_points("coarsen them")
    if domain.coordinates != "plane" or points.shape[1] != 2:
        raise ProblemError(
            "needs two coordinates in the plane",
            where="domain",
            remedy="Use a grid, om.Grid.geographic for degrees",
        )
    return points


def _deterministic(domain: Domain, reported: Floats) -> Mechanism:
    """The mechanism that reports a point for every place, equal points once."""
    nodes, number = np.unique(np.round(reported, 9), axis=0, return_inverse=True)
    matrix = np.zeros((len(domain), len(nodes)))
    matrix[np.arange(len(domain)), number.reshape(-1)] = 1.0
    return Mechanism(domain, _reports(domain, nodes), matrix)


def _reports(domain: Domain, points: Floats) -> Domain:
    return Domain(range(len(points)), points, domain.unit)
