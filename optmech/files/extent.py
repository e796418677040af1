"""Where the rows of a table lie: the box of a first grid, which wild rows do not move; nearby
points merged into zones, the same way every time."""

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Bools, Floats, Ints, unwrapped
from optmech.base.numerals import float_of_text
from optmech.errors import ProblemError
from optmech.reading.columns import read_columns
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain
from optmech.spaces.sphere import turned

_CORE, _BESIDE = 0.95, 0.5
"""Of the rows, along each axis, that a grid is sure to reach over: those that lie closest together;
and of their extent, how far on either side of it other rows still count. Wild ones do not."""
_DIGITS = 2
"""Significant digits, of the extent, that bounds are rounded to: they tell nobody's exact place."""
_MOST_DEGREES = 180.0
"""Of longitude that a flat map reaches over."""
_LARGEST, _LEAST_PART = 1e100, 1e-9
"""Of coordinates, and of their extent in them: floats compute with these."""
_PART, _BINS, _STRAY, _WIDE, _GAP, _MOST_APART = 0.05, 256, 1e-3, 2.0, 50.0, 8
"""Of the rows, that a place has which counts as one; the bins along an axis, and of the rows, those
in a bin that are no place; how wide a gap is beside what lies on either side, and in kilometres;
and how many places are listed."""
_GLOBE = np.array([-360.0, -90.0, 360.0, 90.0])
_LONGEST, _MOST_PLACES, _IN_METRES = 1e9, 12, 0.2
"""Of numbers that are written without an exponent; of digits behind the point; and the kilometres
below which lengths are said in metres."""


Pair = tuple[str, str]


def read_points(data: Path, pairs: Sequence[Pair], degrees: bool) -> tuple[Floats, list[str]]:
    """The usable coordinates of all rows in one or more ``pairs`` of columns, shape (n, 2), and
    what is to be said of others; in degrees no farther around the globe than they have to be.

    Raises ProblemError where hardly any row has degrees: for those of a projection, or where
    longitude and latitude are the other way around.
    """
    columns = read_columns(data, list(dict.fromkeys(name for pair in pairs for name in pair)))
    every = np.vstack([np.column_stack([columns[x], columns[y]]) for x, y in pairs])
    points = every[np.isfinite(every).all(axis=1)]
    what = noun(pairs)
    notes = [counted(len(every) - len(points), len(every), "have no coordinates", what)]
    x, y = pairs[0]
    if not len(points):
        empty = [name for name in (x, y) if not np.isfinite(columns[name]).any()] or [x, y]
        raise ProblemError(
            f"no row has numbers in {' and '.join(map(repr, empty))}",
            where=data,
            remedy="Name the columns with the coordinates; numbers are written 5.05, with a point",
        )
    if degrees:
        usable = inside_box(points, _GLOBE)
        nowhere = points[~usable]
        exchanged = 2 * int(inside_box(nowhere[:, ::-1], _GLOBE).sum()) > len(nowhere)
        if 2 * len(nowhere) > len(points):
            raise ProblemError(
                f"{x!r} and {y!r} are called longitude and latitude, and {len(nowhere):,} of "
                f"{len(points):,} rows have none in degrees",
                where=data,
                remedy="They seem to be the other way around: exchange their names, or --x and --y"
                if exchanged
                else "Call the columns of a projection x and y, or give degrees",
            )
        lost = f"have a latitude ({y!r}) or longitude ({x!r}) that there is not"
        lost += ": they may be the other way around" if exchanged else ""
        notes.append(counted(len(nowhere), len(points), lost, what))
        points = points[usable]
        # whole turns away where they are closer together so
        if core_size(points)[0] > _MOST_DEGREES:
            angles = np.radians(points[:, 0])
            middle = np.degrees(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))
            points = unwrapped(points, np.array([middle, 0.0]))
    return points, [note for note in notes if note]


def _core(points: Floats) -> Floats:
    """Along each axis the ends of the shortest interval that holds most of the points, shape
    (2, axes): wild ones move nothing."""
    ordered = np.sort(points, axis=0)
    held = int(np.ceil(_CORE * len(ordered)))
    with np.errstate(over="ignore"):
        first = np.argmin(ordered[held - 1 :] - ordered[: len(ordered) - held + 1], axis=0)
    return np.take_along_axis(ordered, np.array([first, first + held - 1]), axis=0)


def core_size(points: Floats) -> Floats:
    """How far most of the rows reach along each axis, (2,); 0 where they are one place."""
    with np.errstate(over="ignore"):
        return np.asarray(np.ptp(_core(points), axis=0))


Box = tuple[float, float, float, float]
"""West, south, east and north; or the least x and y, and the largest."""


def bounds_of(text: str, degrees: bool | None) -> Box:
    """A box W,S,E,N as people write it; where it is of ``degrees``, west may lie east of east, over
    180 degrees. Raises ProblemError on what is none."""
    remedy = "Give west,south,east,north, as -74.1,40.6,-73.9,40.9"
    try:
        west, south, east, north = (float_of_text(word) for word in text.split(","))
    except ValueError:
        raise ProblemError(f"{text[:60]!r} is no box", where="bounds", remedy=remedy) from None
    if degrees and east < west:
        east += 360
    sound = np.isfinite([west, south, east, north]).all() and west < east and south < north
    if sound and degrees:
        sound = south >= -90 and north <= 90 and west >= -360 and east <= 540
    if not sound:
        raise ProblemError(f"{text[:60]!r} is no box", where="bounds", remedy=remedy)
    return west, south, east, north


def within(points: Floats, box: Box, degrees: bool) -> tuple[Bools, Floats]:
    """Which of the points (n, 2) lie in a box, and the points, whole turns away where they do so in
    degrees."""
    places = np.array(points)
    if degrees:
        places[:, 0] = turned(places[:, 0], box[0], box[2])
    return inside_box(places, np.array(box)), places


def apart(points: Floats) -> list[Bools]:
    """Which points, in degrees, lie in each of several places that are far from each other beside
    how large they are, largest first; one for all, where these are in one place. A few points
    between are of none."""
    lengths = unit_lengths(np.concatenate([points.min(axis=0), points.max(axis=0)]), True)
    found: list[Bools] = []
    waiting: list[Bools] = [np.ones(len(points), dtype=bool)]
    least = max(_PART * len(points), 2.0)
    while waiting:
        some = waiting.pop()
        sides = _parted(points[some], lengths, least) if len(found) < _MOST_APART else None
        if sides is None:
            found.append(some)
            continue
        index = np.flatnonzero(some)
        for side in sides:
            own = np.zeros(len(points), dtype=bool)
            own[index[side]] = True
            waiting.append(own)
    return sorted(found, key=lambda own: -int(own.sum()))


def _parted(points: Floats, lengths: Floats, least: float) -> tuple[Bools, Bools] | None:
    """The points on either side of the widest gap along an axis in which hardly any lie, where both
    are many, and the gap is wide beside either."""
    low, high = _core(points)
    for axis in np.argsort(-(high - low) * lengths).tolist():
        if not high[axis] > low[axis]:
            continue
        values = points[:, axis]
        edges = np.linspace(low[axis], high[axis], _BINS + 1)
        counts = np.histogram(values, edges)[0]
        full = np.flatnonzero(counts > _STRAY * len(points))
        gaps = np.diff(full)
        for k in np.argsort(-gaps).tolist()[:3]:
            begin, end = edges[full[k] + 1], edges[full[k + 1]]
            one, other = values <= begin, values >= end
            if min(one.sum(), other.sum()) < least:
                continue
            wide = max(float(np.hypot(*(core_size(points[s]) * lengths))) for s in (one, other))
            if (end - begin) * lengths[axis] > max(_WIDE * wide, _GAP):
                return one, other
    return None


def noun(pairs: Sequence[Pair]) -> str:
    """What is counted: rows, or places where a row has several."""
    return "rows" if len(pairs) == 1 else "places"


def counted(count: int, total: int, what: str, noun: str) -> str:
    """Of how many rows something is said, and of which share; "" for none."""
    return f"{count:,} of {total:,} {noun} ({100 * count / total:.2g} %) {what}" if count else ""


def ends(low: float, high: float) -> str:
    """Two numbers in words, to a thousandth of what lies between them."""
    places = 3 - math.floor(math.log10(high - low))
    if places > _MOST_PLACES or max(abs(low), abs(high)) >= _LONGEST:
        return f"{low:.6g} to {high:.6g}"
    return " to ".join(_decimal(round(value, places), max(places, 0)) for value in (low, high))


def _decimal(value: float, places: int) -> str:
    """A number with so many places behind its point at most."""
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def inside_box(points: Floats, box: Floats) -> Bools:
    """Which of the points (n, 2) lie in a box (x0, y0, x1, y1)."""
    return np.asarray(((points >= box[:2]) & (points <= box[2:])).all(axis=1))


def box_around(data: Path, points: Floats, degrees: bool) -> Floats:
    """(x0, y0, x1, y1) around the points that are not wild, rounded outwards."""
    low, high = _core(points)
    with np.errstate(over="ignore"):
        beside = _BESIDE * (high - low)
        near = (points >= low - beside) & (points <= high + beside)
    # all of them where most are one place
    kept = points[(near | (high <= low)).all(axis=1)]
    low, high = kept.min(axis=0), kept.max(axis=0)
    largest = float(np.abs(kept).max())
    with np.errstate(over="ignore"):
        extent = np.where(high > low, high - low, 0.01 if degrees else 1.0)
    if not (largest < _LARGEST and extent.min() > max(1 / _LARGEST, largest * _LEAST_PART)):
        raise ProblemError(
            f"the coordinates reach up to {largest:.3g} and over {by(extent, '')}: too far apart "
            "to compute with" if largest >= _LARGEST else
            f"the coordinates reach over {by(extent, '')} only, which is little for their size",
            where=data,
            remedy="Use another unit, or subtract what they have in common",
        )  # fmt: skip
    corner, end = np.empty(2), np.empty(2)
    for k, exponent in enumerate((np.floor(np.log10(extent)) + 1 - _DIGITS).tolist()):
        # whole steps, written as decimal numbers: nothing is left of the rounding of floats
        step = Fraction(10) ** int(exponent)
        corner[k] = math.floor(Fraction(low[k]) / step) * step
        end[k] = (math.floor(Fraction(high[k]) / step) + 1) * step
    if degrees:
        corner, end = np.maximum(corner, _GLOBE[:2]), np.minimum(end, _GLOBE[2:])
        # all rows at a pole, or on the last meridian
        corner = np.where(corner < end, corner, end - extent)
        if end[0] - corner[0] > _MOST_DEGREES:
            raise ProblemError(
                f"the points reach over {min(extent[0], 360):.3g} degrees of longitude, and a map "
                "of that is not flat",
                where=data,
                remedy="Keep the rows of one region, or name a column of --label alone",
            )
    return np.concatenate([corner, end])


def unit_lengths(box: Floats, degrees: bool) -> Floats:
    """What a unit of each coordinate is: km for degrees."""
    if not degrees:
        return np.ones(2)
    degree = np.pi / 180 * EARTH_RADIUS_KM
    return np.array([degree * np.cos(np.radians((box[1] + box[3]) / 2)), degree])


def by(lengths: Floats, unit: str) -> str:
    """Two lengths, as 3 x 4 km; in metres where both are parts of a kilometre."""
    if unit == "km" and lengths.max() < _IN_METRES:
        lengths, unit = 1000 * lengths, "m"
    said = " x ".join(length(value, 4) for value in lengths.tolist())
    return said + (f" {unit}" if unit else "")


def length(value: float, digits: int = 2) -> str:
    """A length with so many digits, and those before the point of a long one."""
    if not 1 / _LONGEST < value < _LONGEST:
        return f"{value:.{digits}g}"
    return _decimal(value, max(digits - 1 - math.floor(math.log10(value)), 0))


def distinct_places(points: Floats) -> tuple[Ints, Ints]:
    """Of every place the first row that lies there, and of every row its place; in their order."""
    _, first, inverse = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), rank[inverse.reshape(-1)]


def places_of(domain: Domain) -> tuple[Ints, Ints]:
    """``distinct_places`` of a domain."""
    return distinct_places(domain.require_points("aggregate them"))


def zones_of(domain: Domain, count: int) -> Ints:
    """Index of the zone of every point: ``count`` clusters of Ward's method.

    Points at the same place are one point. Points in degrees are projected to km first
    (equirectangular, at their mean latitude). Zones are numbered in the order in which the points
    list them.
    """
    first, place = places_of(domain)
    size = len(first)
    if count > size:
        others = f" at {size:,} different places" if size < len(domain) else ""
        raise ProblemError(
            f"{count} zones of {len(domain):,} points{others}",
            where="aggregate.zones",
            remedy=f"Give at most {size}",
        )
    if count == size:
        return place
    from scipy.cluster.hierarchy import cut_tree, linkage

    memory.require(
        24.0 * size * size,
        what=f"aggregating {size:,} points",
        where="aggregate",
        remedy="Aggregate beforehand",
    )
    near = _projected(domain)[first]
    # divided by a power of two, which changes no comparison, so that squares do not overflow
    near = np.ldexp(near, -_scale(near))
    raw = cut_tree(linkage(near, method="ward"), n_clusters=[count])[:, 0]
    return distinct_places(raw[place][:, None].astype(np.float64))[1]


def _scale(points: Floats) -> int:
    return int(np.frexp(np.abs(points).max())[1])


def merge(domain: Domain, zone: Ints, weights: Floats | None) -> Domain:
    """The zones as a domain: labels 0, 1, ..., points at the weighted centroids.

    A zone without any weight lies at the plain mean of its points.
    """
    points = domain.require_points("aggregate them")
    first = np.unique(zone, return_index=True)[1]
    starts = points[first]
    if domain.coordinates == "lonlat":
        points = unwrapped(points, starts[zone])
    heavy = np.ones(len(zone)) if weights is None else weights / weights.max()
    heavy = np.where(np.bincount(zone, heavy)[zone] == 0, 1.0, heavy)
    share = heavy / np.bincount(zone, heavy)[zone]
    scale = _scale(points)
    # as differences from each zone's first point, which equal points leave as it is
    away = np.ldexp(points, -scale) - np.ldexp(starts, -scale)[zone]
    moved = [np.bincount(zone, share * x) for x in away.T]
    centroids = starts + np.ldexp(np.column_stack(moved), scale)
    return Domain(range(len(first)), centroids, domain.unit, coordinates=domain.coordinates)


def _projected(domain: Domain) -> Floats:
    points = domain.require_points("aggregate them")
    if domain.coordinates != "lonlat":
        return points
    radians = np.radians(unwrapped(points, points[0]))
    stretch = np.array([np.cos(radians[:, 1].mean()), 1.0])
    return np.asarray(EARTH_RADIUS_KM * radians * stretch)
