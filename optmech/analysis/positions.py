"""What a mechanism on cells promises between the points of its domain (theory: "Privacy at every
point").

A fix is snapped to the cell that holds it, so that two fixes on both sides of an edge, however
close, are reported with the rows of two cells. Values are in floating point, as in ``measures``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import field

import numpy as np

from optmech.base.arrays import Floats, Ints, largest_entry
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import probability, whole
from optmech.exact.number import Number, float_of
from optmech.exact.ratios.hockey_stick import most_revealing
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import Regions, grid_boxes

_TOUCH = 1e-9
"""Cells whose distance is below this share of their size touch."""


@record
class Everywhere(Shown):
    """P(x) <= e^{ε(‖x−y‖ + slack)} P(y) for all fixes x, y of the area, and how much of that is
    slack.

    Examples
    --------
    >>> grid = om.Grid(1, 4, unit="km")
    >>> found = om.measures.everywhere(om.mechanisms.planar_laplace(grid, 1), pairs=100)
    >>> print(round(found.epsilon, 3), round(found.slack, 3))  # per km, km
    0.86 1.0
    >>> print(round(found.epsilon_between(2.0), 3))  # for fixes at least 2 km apart
    1.135
    """

    epsilon: float
    """The least ε of metric privacy between the centres of the cells."""
    slack: float
    """The largest distance of two centres less that of their cells, over pairs of cells: the
    diagonal of the largest cell, where that has a neighbour of its size."""
    step: float
    """The largest log ratio of two fixes at distance zero, on both sides of an edge or corner."""
    edge: tuple[Hashable, Hashable] | None
    """Labels of the cells on its sides; None where no two cells touch."""
    violated: float
    """Fraction of the sampled pairs of fixes with a log ratio, either way, above ε times their
    distance."""
    interval: tuple[float, float]
    """Bounds of that fraction among all pairs, which hold with probability ``confidence`` (Clopper
    and Pearson)."""
    pairs: int
    """Pairs of fixes that were sampled."""
    confidence: float
    _logs: Floats = field(repr=False)
    _gap: Floats = field(repr=False)
    _reach: Floats = field(repr=False)

    def epsilon_between(self, apart: float) -> float:
        """The least ε with P(x) <= e^{ε‖x−y‖} P(y) for all fixes that are at least ``apart`` > 0
        from each other; it tends to infinity, as step / apart, where a step is above 0."""
        distance = float_of(apart, "apart", positive=True)
        possible = self._reach >= distance
        values = np.where(possible, self._logs / np.maximum(self._gap, distance), 0.0)
        return max(0.0, float(values.max()))


@checked_arguments
def everywhere(
    m: Mechanism,
    epsilon: Number | None = None,
    *,
    pairs: int = 100_000,
    within: float | None = None,
    seed: int = 0,
    confidence: Number = 0.99,
) -> Everywhere:
    """What ``m``, on the cells of a grid or of regions, promises for all fixes of the area.

    Parameters
    ----------
    m:
        A mechanism whose secrets are a ``Grid`` or ``Regions``, with Euclidean distance.
    epsilon:
        The ε against which pairs count as violated; by default the mechanism's own.
    pairs, seed:
        Pairs of fixes to sample: the first uniform in the area, the second too, or uniform in the
        part of the area ``within`` a distance of the first.
    confidence:
        Of the interval around the fraction of violated pairs.

    Raises
    ------
    ProblemError
        On secrets that are no cells, mechanisms for every point of a region (which take no fix to a
        cell), and unusable arguments.

    Examples
    --------
    >>> grid = om.Grid(1, 4, unit="km")
    >>> found = om.measures.everywhere(om.mechanisms.planar_laplace(grid, 1), pairs=100)
    >>> print(round(found.epsilon_between(0.01), 3))  # per km, for fixes 10 m apart
    85.994
    """
    if m.is_everywhere:
        raise ProblemError(
            "reports from every point of its region itself: no fix is taken to a cell, and its "
            "design says which ε all points keep",
            where="mechanism",
            remedy="Measure a mechanism on cells",
        )
    cells = m.secrets
    if not isinstance(cells, Grid | Regions):
        raise ProblemError(
            f"a {type(cells).__name__} has no cells between its points",
            where="mechanism",
            remedy="Measure a mechanism whose secrets are a Grid, or regions of one",
        )
    boxes = grid_boxes(cells) if isinstance(cells, Grid) else cells.boxes
    count = whole(pairs, "pairs", least=1)
    sure = probability(confidence, "confidence", positive=True)
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    between = np.hypot(*(centres[:, None] - centres).transpose(2, 0, 1))
    logs = np.array([most_revealing(row[None, :], m.matrix)[1] for row in m.matrix])
    np.fill_diagonal(logs, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        own = float(np.where(logs > 0, logs / between, 0.0).max())
    rate = own if epsilon is None else float_of(epsilon, "epsilon")
    gap, reach = _distances(boxes)
    size = np.hypot(*(boxes[:, 2:] - boxes[:, :2]).T)
    touching = (gap <= _TOUCH * size.min()) & ~np.eye(len(boxes), dtype=bool)
    steps = np.where(touching, logs, -np.inf)
    i, j = largest_entry(steps)
    first, second, apart = _fixes(boxes, count, within, np.random.default_rng(whole(seed, "seed")))
    either = np.maximum(logs, logs.T)
    with np.errstate(over="ignore"):
        broken = int((either[first, second] > rate * apart).sum())
    labels = cells.labels
    return Everywhere(
        own,
        float((between - gap).max()),
        float(steps[i, j]) if touching.any() else 0.0,
        (labels[i], labels[j]) if touching.any() else None,
        broken / count,
        _interval(broken, count, float(sure)),
        count,
        float(sure),
        logs,
        gap,
        reach,
    )


def _interval(hits: int, count: int, confidence: float) -> tuple[float, float]:
    """Of Clopper and Pearson, Biometrika 26 (1934): by quantiles of beta distributions."""
    if confidence == 1:
        return 0.0, 1.0
    from scipy.special import betaincinv

    low, high = (1 - confidence) / 2, (1 + confidence) / 2
    return (
        float(betaincinv(hits, count - hits + 1, low)) if hits else 0.0,
        float(betaincinv(hits + 1, count - hits, high)) if hits < count else 1.0,
    )


def _distances(boxes: Floats) -> tuple[Floats, Floats]:
    """The least and the largest distance between the points of every two rectangles."""
    low, high = boxes[:, :2], boxes[:, 2:]
    gap = np.maximum(np.maximum(low[:, None] - high, low - high[:, None]), 0.0)
    reach = np.maximum(high[:, None] - low, high - low[:, None])
    return np.hypot(gap[..., 0], gap[..., 1]), np.hypot(reach[..., 0], reach[..., 1])


def _fixes(
    boxes: Floats, count: int, within: float | None, rng: np.random.Generator
) -> tuple[Ints, Ints, Floats]:
    """The cells of ``count`` random pairs of fixes, and the distances of the pairs."""
    sides = boxes[:, 2:] - boxes[:, :2]
    # squares of lengths of any size are no floats: areas count in those of the widest sides
    widest = sides.max(axis=0)
    areas = (sides / widest).prod(axis=1)
    area = areas / areas.sum()

    def uniform(many: int) -> tuple[Ints, Floats]:
        cell = rng.choice(len(boxes), size=many, p=area)
        return cell, boxes[cell, :2] + rng.random((many, 2)) * sides[cell]

    first, x = uniform(count)
    limit = np.inf if within is None else float_of(within, "within", positive=True)
    wide = math.prod(float(limit / side) for side in widest) * math.pi > float(areas.sum())
    second, y = np.zeros(count, dtype=np.int64), np.array(x)
    left = np.arange(count)
    while len(left):
        # drawn from the smaller of area and disc, until both hold it
        if wide:
            second[left], y[left] = uniform(len(left))
        else:
            angle = 2 * np.pi * rng.random(len(left))
            radius = limit * np.sqrt(rng.random((len(left), 1)))
            y[left] = x[left] + radius * np.column_stack([np.cos(angle), np.sin(angle)])
            second[left] = -1
            for k, box in enumerate(boxes):
                held = ((y[left] >= box[:2]) & (y[left] <= box[2:])).all(axis=1)
                second[left[held]] = k
        apart = np.hypot(*(x[left] - y[left]).T)
        left = left[(second[left] < 0) | (apart > limit * (1 + 1e-12))]
    return first, second, np.hypot(*(x - y).T)
