"""Meshes of dimension one: vertices joined by segments, as on an interval or along roads.

On a segment of length ℓ a mechanism is linear between the rows of its ends. It is private at every
point of all segments where the rows of neighbours are within the factor 1 + εℓ of each other
(theory: "Privacy at every point of a line or a road").
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import flint
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from optmech.base.arrays import Bools, Floats, Ints, ends_of, finite_array
from optmech.base.edges import Edges
from optmech.base.read_only import record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError, described
from optmech.exact.exponentials import ball_of, bracket
from optmech.exact.number import Exact, float_of, rounded_up
from optmech.exact.rounding import below
from optmech.spaces.distances import Distance, dimensions
from optmech.spaces.domain import Coordinates, Domain, great_circle
from optmech.spaces.domain_arguments import require_lonlat, unit_text
from optmech.spaces.labels import decode_label, encode_label
from optmech.spaces.mesh import triangulation
from optmech.spaces.mesh.covering import lengths_of, network_flaw
from optmech.spaces.mesh.mesh import Mesh
from optmech.spaces.sphere import Border

if TYPE_CHECKING:
    from optmech.spaces.prior import Prior

Position = Sequence[Any]
"""Of a line its number, of roads (u, v, share): so far along the shortest road from u to v; or
(k, share) for the road of number k."""
Within = tuple[int, tuple[int, int]]
"""A segment, and whole numbers that its two ends count for, over their sum."""
_KEYS = {"vertices", "ways", "unit", "coordinates"}


@record
class Network(Mesh):
    """Vertices, and roads that are chains of them; every step of a road is a segment.

    ``Mesh.line`` and ``Mesh.roads`` make them. A mechanism on it is linear on every segment, and
    distances are measured along the roads.

    Parameters
    ----------
    vertices:
        Coordinates, shape (V, 1) for a line, which is one road through all vertices in increasing
        order, and (V, 2) otherwise.
    ways:
        Indices of two or more vertices for every road, in the order in which it meets them.
    lengths:
        Of every step of every road, > 0, in ``unit``; in km with ``coordinates="lonlat"``. None for
        a line, whose coordinates say them. They count as the binary fractions that they are.
    labels:
        Names of the vertices; their numbers by default.
    unit, coordinates:
        As of a ``Domain``. Longitudes count on beyond 180 degrees where a step crosses that
        meridian, as ``Mesh.roads`` makes them: from 179.9 to 180.1, and not to -179.9.

    Raises
    ------
    ProblemError
        Where a step joins a vertex with itself, two steps join the same vertices, a vertex is on no
        road, the roads are not connected, or anything has another shape.

    Examples
    --------
    >>> roads = om.Network([[0, 0], [1, 0], [1, 1]], [[0, 1, 2]], lengths=[1.5, 1])
    >>> roads
    Mesh(a network of 2 segments between 3 vertices)
    >>> roads.along[0].tolist()
    [0.0, 1.5, 2.5]
    >>> roads.position((0, 2, "1/5"))  # a fifth of the way: segment 0, its ends count 2 : 1
    (0, (2, 1))
    >>> roads.locate_exactly((0, 2, "1/5")) == roads.inside((0, 2, "1/5"), 0)
    True
    >>> from fractions import Fraction
    >>> roads.position_at(0, Fraction(1, 3))  # a third of the first segment
    (0, 2, Fraction(1, 5))
    >>> segments, weights = roads.locate([(0, 2, "1/5")])
    >>> print(segments, weights.round(3))
    [0] [[0.667 0.333]]
    >>> print(roads.interpolation([(0, 2, "1/5")]).toarray().round(3))
    [[0.667 0.333 0.   ]]
    >>> roads.listed((0, 2, "1/5"))
    [(0, 2, '1/5')]
    >>> om.Network.of_dict(roads.to_dict()) == roads
    True
    >>> line = om.Mesh.line(0, 1, 4)
    >>> line.holds(np.array([[0.5], [2.0]])).tolist(), line.nearest(np.array([[2.0]])).tolist()
    ([True, False], [[1.0]])
    >>> from optmech.exact.number import parse_exact
    >>> ratios = line.log_ratios(parse_exact(1, where="epsilon"))
    >>> len(ratios)  # ln(1 + 1/4) for the ends of each of four segments, both ways
    8
    >>> try:
    ...     line.refine([1, 1, 1, 1])
    ... except om.ProblemError as error:
    ...     print(error.remedy)
    ...
    Make it with more cells, or with a smaller divide
    >>> roads.ways_from(np.array([0])).tolist()  # from the first vertex to all
    [[0.0, 1.5, 2.5]]
    >>> len(roads.between_ends(np.array([1.0, 2.0])))  # of two segments, both ways
    4
    """

    pieces = "segments"
    _outside = ("lies beyond the ends of the line", "Use a longer line")
    ways: tuple[tuple[int, ...], ...] = ()
    lengths: Floats | None = None
    labels: tuple[Hashable, ...] = ()

    def __init__(
        self,
        vertices: ArrayLike,
        ways: Iterable[Sequence[int]],
        *,
        lengths: ArrayLike | None = None,
        labels: Iterable[Hashable] | None = None,
        unit: str = "",
        coordinates: Coordinates = "plane",
    ) -> None:
        places = finite_array(vertices, where="vertices", ndim=2)
        if places.shape[1] not in (1, 2) or not len(places):
            raise ProblemError(f"shape {places.shape} is not (V, 1) or (V, 2)", where="vertices")
        if not hasattr(ways, "__iter__"):
            raise ProblemError(
                f"{type(ways).__name__} is no list of roads",
                where="ways",
                remedy="Give two or more vertices for every road",
            )
        triangulation.refuse_more(len(places))
        if coordinates == "lonlat":
            require_lonlat(places)
        chains = tuple(_chain(road, len(places), k) for k, road in enumerate(ways))
        steps = [step for chain in chains for step in pairwise(chain)]
        known = None if lengths is None else finite_array(lengths, where="lengths", ndim=1)
        named = unit_text(unit, coordinates)
        listed = range(len(places)) if labels is None else labels
        known_as = Domain(listed, places, named, coordinates=coordinates)
        vars(self).update(
            vertices=places, unit=named, coordinates=coordinates, degree=1, ways=chains,
            triangles=np.array(steps, dtype=np.int64).reshape(-1, 2), lengths=known,
            labels=known_as.labels,
        )  # fmt: skip
        flaw = self.flaw()
        if flaw:
            raise ProblemError(
                flaw, where="mesh", remedy="Join distinct vertices, in one connected part"
            )

    # -- what it is --------------------------------------------------------------------------

    @property
    def segments(self) -> Ints:
        """The two ends of every segment, (E, 2)."""
        return self.triangles

    @property
    def is_region(self) -> bool:
        return False

    @property
    def is_line(self) -> bool:
        return bool(self.vertices.shape[1] == 1)

    def __repr__(self) -> str:
        return f"Mesh({self.words})"

    @property
    def words(self) -> str:
        """What it is, in a few words."""
        unit = f" {self.unit}" if self.unit else ""
        if self.is_line:
            low, high = self.vertices[[0, -1], 0].tolist()
            return f"the line from {low:g} to {high:g}{unit} in {len(self.segments)} segments"
        return f"a network of {len(self.segments)} segments between {len(self)} vertices"

    @property
    def measure(self) -> tuple[str, Distance]:
        return super().measure if self.is_line else ("roads", self.distance)

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def size_words(self) -> str:
        return self.words

    def require_region(self) -> None:
        raise ProblemError(
            f"is for {self.words}, and this is for regions and places only",
            where="design",
            remedy="Draw reports with design.mechanism.sample_at, or draws_at for many points",
        )

    def flaw(self) -> str:
        """Why it is no network; empty where it is one."""
        return network_flaw(self.vertices.tolist(), self.ways, self._stated)

    @cached_property
    def domain(self) -> Domain:
        """The vertices by their labels: the places of a problem."""
        return Domain(self.labels, self.vertices, self.unit, coordinates=self.coordinates)

    @cached_property
    def _stated(self) -> list[float] | None:
        return None if self.lengths is None else self.lengths.tolist()

    @cached_property
    def exact_lengths(self) -> tuple[Fraction, ...]:
        """The length of every segment, exactly."""
        return lengths_of(self.vertices.tolist(), self.segments.tolist(), self._stated)

    @cached_property
    def widths(self) -> Floats:
        """The length of every segment, (E,)."""
        return np.array([float(length) for length in self.exact_lengths])

    @cached_property
    def along(self) -> Floats:
        """Distances between vertices along the roads, (V, V)."""
        return self.ways_from(np.arange(len(self)))

    def ways_from(self, vertices: Ints) -> Floats:
        """Distances from some vertices to all, (k, V)."""
        from scipy.sparse.csgraph import dijkstra

        ends = self.segments.T
        graph = sp.csr_array((self.widths, (ends[0], ends[1])), shape=(len(self),) * 2)
        return np.asarray(dijkstra(graph, directed=False, indices=vertices))

    @property
    def apart(self) -> Floats:
        """Floats that are not below them: lengths and sums of up to V of these are rounded."""
        return self.along * (1 + 2.0**-52 * (len(self) + 8))

    @cached_property
    def distance(self) -> Distance:
        """The distance between vertices along the roads, for losses and measures."""
        return Along(self)

    def log_ratios(self, epsilon: Exact) -> Edges:
        """Floats that are not above ln(1 + εℓ) for the ends of every segment, both ways."""
        rate = bracket(epsilon)[0]
        with flint.ctx.workprec(128):
            balls = (ball_of(rate * length).log1p() for length in self.exact_lengths)
            low = [max(0.0, below(ball)) for ball in balls]
        return self.between_ends(np.array(low))

    @property
    def lengths_up(self) -> Edges:
        """Floats that are not below the length of every segment, both ways."""
        return self.between_ends(np.array(list(map(rounded_up, self.exact_lengths))))

    def between_ends(self, values: Floats) -> Edges:
        """Numbers of all segments, (E,), for the ends of each, both ways."""
        a, b = self.segments.T
        return Edges.of(len(self), a, b, values, both=True)

    # -- where points are --------------------------------------------------------------------

    def position(self, point: Any) -> Within | None:
        """The segment with a point, and what its two ends count for there, exactly; None beyond a
        line's ends. The point of a line is its coordinate; of roads it is (u, v, share): the share,
        from 0 to 1, of the way along the shortest road from u to v, or (k, share) for ``ways[k]``.

        Raises
        ------
        ProblemError
            Where it is no such point, or no road joins u and v.
        """
        if self.is_line:
            value = point[0] if dimensions(point) == 1 and len(point) == 1 else point
            return self._on_road(0, triangulation.rational(value) - Fraction(self.vertices[0, 0]))
        road, forward, given = self._road_of(point)
        share = triangulation.rational(given)
        if not 0 <= share <= 1:
            raise ProblemError("the share is not between 0 and 1", where="point")
        return self._on_road(road, (share if forward else 1 - share) * self._at[road][-1])

    def _road_of(self, point: Any) -> tuple[int, bool, Any]:
        """The road of a position, whether it is counted from its first end, and the share."""
        try:
            *ends, given = point
            known = self._between[tuple(ends)] if len(ends) == 2 else (int(*ends), True)
            if not 0 <= known[0] < len(self.ways) or (len(ends) == 1 and ends[0] != known[0]):
                raise KeyError(point)
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise ProblemError(
                f"{described(point)} is no point of a road",
                where="point",
                remedy="Give (u, v, share): the share of the way along a road from u to v",
            ) from error
        return *known, given

    def _on_road(self, road: int, along: Fraction) -> Within | None:
        marks = self._at[road]
        if not 0 <= along <= marks[-1]:
            return None
        k = min(bisect_right(marks, along), len(marks) - 1) - 1
        before, whole = along - marks[k], marks[k + 1] - marks[k]
        share = before / whole
        return self._first[road] + k, (share.denominator - share.numerator, share.numerator)

    @cached_property
    def _at(self) -> list[list[Fraction]]:
        """How far along its road every vertex of it is."""
        lengths = iter(self.exact_lengths)
        return [
            list(accumulate((next(lengths) for _ in road[1:]), initial=Fraction(0)))
            for road in self.ways
        ]

    @cached_property
    def _first(self) -> list[int]:
        """The number of every road's first segment."""
        return list(accumulate((len(road) - 1 for road in self.ways), initial=0))

    @cached_property
    def _between(self) -> dict[tuple[Hashable, Hashable], tuple[int, bool]]:
        """The shortest road between two labels, and whether it runs from the first to the other."""
        labels, out = self.labels, {}
        order = sorted(range(len(self.ways)), key=lambda k: self._at[k][-1], reverse=True)
        for k in order:
            start, end = labels[self.ways[k][0]], labels[self.ways[k][-1]]
            out[end, start], out[start, end] = (k, False), (k, True)
        return out

    def locate_exactly(self, point: Any) -> Within | None:  # type: ignore[override]
        return self.position(point)

    def match(self, points: ArrayLike, within: float | None = None) -> list[tuple[Any, ...]]:
        """The positions on roads that are nearest to points (k, 2), in the coordinates of the
        vertices, by straight lines.

        What is reported from a matched position is private for distances along the roads between
        the positions, not between the points: two points next to each other may be matched to roads
        that are far apart along the network.

        Parameters
        ----------
        within:
            Points farther from every road than this, in ``unit`` (km for degrees), are refused.

        Raises
        ------
        ProblemError
            On points without two finite coordinates, on one beyond ``within``, and on a line, whose
            points need no match.

        Examples
        --------
        >>> roads = om.Network([[0, 0], [4, 0]], [[0, 1]], lengths=[4])
        >>> roads.match([[1, 0.2]])
        [(0, 1, Fraction(1, 4))]
        """
        if self.is_line:
            raise ProblemError("points of a line are numbers", where="points")
        places = super().listed(points)
        if within is not None:
            feet, globe = self.border.feet(places), self.coordinates == "lonlat"
            far = great_circle(places, feet) if globe else np.hypot(*(places - feet).T)
            beyond = np.flatnonzero(far > float_of(within, "within"))
            if len(beyond):
                raise ProblemError(
                    f"is {far[beyond[0]]:.4g} from the nearest road",
                    where=f"points[{beyond[0]}]",
                    remedy="Leave it out, or use a network around it",
                )
        segments, shares = (part.tolist() for part in self.border.shares(places))
        found = zip(segments, shares, strict=True)
        return [self.position_at(segment, Fraction(share)) for segment, share in found]

    def position_at(self, segment: int, share: Fraction) -> tuple[Any, ...]:
        """The position, as ``position`` takes it, at a share of a segment."""
        road = bisect_right(self._first, segment) - 1
        marks, k = self._at[road], segment - self._first[road]
        along = (marks[k] + share * (marks[k + 1] - marks[k])) / marks[-1]
        ends = self.labels[self.ways[road][0]], self.labels[self.ways[road][-1]]
        known = self._between.get(ends)
        return (*ends, along) if known == (road, True) else (road, along)

    def prior(self, of: str | Iterable[Position]) -> Prior:
        """A prior over the vertices.

        Parameters
        ----------
        of:
            "crossings" for the ends of roads, all as likely; "length" for a point of all roads
            chosen at random, half of each segment counted at either end; or positions, such as
            ``match`` returns, or an array (k, 2) of coordinates, which are matched, each counted at
            the ends of its segment by its weights there.

        Examples
        --------
        >>> roads = om.Network([[0, 0], [4, 0], [4, 3]], [[0, 1], [1, 2]], lengths=[4, 3])
        >>> roads.prior("length").weights.round(3).tolist()
        [0.286, 0.5, 0.214]
        """
        from optmech.spaces.prior import Prior

        mass = np.zeros(len(self))
        named = of if isinstance(of, str) else None
        if named == "crossings":
            mass[[end for road in self.ways for end in (road[0], road[-1])]] = 1.0
        elif named == "length":
            np.add.at(mass, self.segments.T, np.broadcast_to(self.widths, (2, len(self.segments))))
        elif named is not None:
            raise ProblemError(
                f"{named!r} is unknown", where="of", remedy='Use "crossings", "length" or positions'
            )
        else:
            places: Any = of
            mass += np.asarray(self.interpolation(places).sum(axis=0)).ravel()
        return Prior(self.domain, mass)

    @cached_property
    def border(self) -> Border:
        """The segments, one after the other: to them positions in coordinates are matched."""
        start, end = (self.vertices[k] for k in self.segments.T)
        return Border.of(start, end, self.coordinates == "lonlat")

    def holds(self, points: Floats) -> Bools:
        """Which of the numbers (k, 1) lie on the line, exactly; of roads, whose points (k, 2) are
        matched, all that are finite."""
        if not self.is_line:
            return np.asarray(np.isfinite(points).all(axis=1))
        low, high = self.vertices[[0, -1], 0]
        return np.asarray((points[:, 0] >= low) & (points[:, 0] <= high))

    def nearest(self, points: Floats) -> Floats:
        """The points of the line or roads that are nearest to ``points`` (k, n)."""
        feet = points if self.is_line else self.border.feet(points)
        return np.clip(feet, *ends_of(self.vertices))

    def listed(self, points: Any) -> list[Any]:
        """Points one by one: the rows of an array, or the entries of a list; one may come alone. An
        array (k, 2) beside roads has coordinates, which are matched."""
        if isinstance(points, np.ndarray) and not self.is_line and points.dtype.kind in "fi":
            return self.match(points)
        try:
            found = list(points.tolist() if isinstance(points, np.ndarray) else points)
        except TypeError:
            found = [points]
        alone = len(found) in (2, 3) and not self.is_line and not isinstance(found[0], tuple | list)
        return [tuple(found)] if alone else found

    def locate(self, points: Any) -> tuple[Ints, Floats]:
        """The segment of every point, -1 beyond the ends of a line, and the point's weights at the
        two ends, (k, 2), which are >= 0 and sum to one."""
        found = [self.position(point) or (-1, (0, 1)) for point in self.listed(points)]
        shares = [[w / sum(own) for w in own] for _, own in found]
        segments = np.array([segment for segment, _ in found], dtype=np.int64)
        return segments, np.array(shares, dtype=np.float64).reshape(-1, 2)

    @property
    def distortion(self) -> float:
        """0: lengths are those that are given."""
        return 0.0

    def with_degree(self, degree: int) -> Network:
        """The network itself for degree 1, of which its mechanisms are. Raises ProblemError
        otherwise."""
        if degree != 1:
            raise ProblemError(
                f"{degree} is not 1, as on every segment",
                where="degree",
                remedy="Use shorter segments: they come nearer to the bound, too",
            )
        return self

    def refine(self, indicator: ArrayLike, most: int | None = None) -> Network:
        """Raises ProblemError: shorter segments are asked for when a network is made."""
        raise ProblemError(
            "a line or network is not refined",
            where="indicator",
            remedy="Make it with more cells, or with a smaller divide",
        )

    # -- files -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as design files hold them; the numbers read back as they were."""
        out: dict[str, Any] = {
            "vertices": self.vertices.tolist(),
            "ways": [list(road) for road in self.ways],
            "unit": self.unit,
            "coordinates": self.coordinates,
        }
        if self.labels != tuple(range(len(self))):
            out["labels"] = [encode_label(label) for label in self.labels]
        return out if self.lengths is None else {**out, "lengths": self._stated}

    @classmethod
    def of_dict(cls, content: dict[str, Any]) -> Network:
        """The network of ``to_dict``; ProblemError on anything else."""
        unknown = sorted(map(str, content.keys() - _KEYS - {"labels", "lengths"}))
        missing = sorted(_KEYS - content.keys())
        if unknown or missing:
            name, what = (missing[0], "is missing") if missing else (unknown[0], "is unknown")
            raise ProblemError(f"{name[:40]!r} {what}", where="")
        labels = content.get("labels")
        return cls(
            content["vertices"],
            content["ways"],
            lengths=content.get("lengths"),
            labels=None if labels is None else [decode_label(label) for label in labels],
            unit=content["unit"],
            coordinates=content["coordinates"],
        )


@record
class Along(SameFields):
    """The length of the shortest way along the roads of a network between vertices, which domains
    name by their labels."""

    network: Network
    name = "roads"

    def __repr__(self) -> str:
        return f"distances along {self.network.words}"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        index = self.network.domain.index
        rows, columns = (np.array([index(label) for label in d.labels]) for d in (a, b))
        if len(columns) > len(rows):
            return self.network.ways_from(rows)[:, columns]
        return np.ascontiguousarray(self.network.ways_from(columns)[:, rows].T)


def _chain(road: object, count: int, k: int) -> tuple[int, ...]:
    values = tuple(road) if isinstance(road, Iterable) and not isinstance(road, str) else ()
    whole = all(isinstance(v, int | np.integer) and 0 <= v < count for v in values)
    if len(values) < 2 or not whole:
        raise ProblemError(
            f"{str(road)[:60]} are not two or more of the {count} vertices", where=f"ways[{k}]"
        )
    return tuple(map(int, values))
