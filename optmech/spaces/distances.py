"""Distances between domains: ``d(A, B)`` is a (len(A), len(B)) float64 matrix.

A distance is a frozen, callable value. Those with a ``spec`` can be written to files; every one
checks what it returns (shape, finite, non-negative).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from inspect import signature
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array, square_array
from optmech.base.edges import Edges
from optmech.base.labels import own_labels, reordered
from optmech.base.minplus import elastic_lengths, is_closed, shortest_detour
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import SameFields
from optmech.errors import OptmechError, ProblemError, described, inside, moved
from optmech.exact.arguments import positive, weights
from optmech.spaces.arguments import taken
from optmech.spaces.domain import Domain, great_circle
from optmech.spaces.prior import Prior

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Distance",
    "DistanceLike",
    "TriangleReport",
    "elastic",
    "euclidean",
    "graph",
    "hamming",
    "haversine",
    "manhattan",
    "matrix",
    "sensitivity",
    "triangle_report",
    "utility",
]
__dir__ = __all__.copy


@runtime_checkable
class Distance(Protocol):
    """Anything that maps two domains to the matrix of distances between their elements.

    Examples
    --------
    >>> def steps(a, b):
    ...     return np.abs(a.points - b.points.T)
    ...
    >>> line = om.Domain.range(3)
    >>> print(steps(line, line))
    [[0. 1. 2.]
     [1. 0. 1.]
     [2. 1. 0.]]
    >>> problem = om.Problem(om.Prior.uniform(line), steps)
    """

    def __call__(self, a: Domain, b: Domain) -> Floats: ...


DistanceLike = Distance | ArrayLike
"""What a distance is given as: a function of two domains, or its values as ``matrix`` takes them:
an array in the order of the domains, or a table with their labels."""


@dataclass(frozen=True, repr=False)
class Named:
    """A distance that follows from labels and coordinates alone, and is a metric by definition."""

    name: str
    compute: Callable[[Domain, Domain], Floats]

    def __repr__(self) -> str:
        return f"distances.{self.name}()"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        return self.compute(a, b)


def _euclidean(a: Domain, b: Domain) -> Floats:
    p, q = _plane_points(a, b, "euclidean")
    out = np.abs(p[:, None, 0] - q[None, :, 0])
    for k in range(1, p.shape[1]):  # no square may underflow
        np.hypot(out, p[:, None, k] - q[None, :, k], out=out)
    return out


def _manhattan(a: Domain, b: Domain) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(*_plane_points(a, b, "manhattan"), metric="cityblock"))


def _hamming(a: Domain, b: Domain) -> Floats:
    out = np.ones((len(a), len(b)))
    for i, label in enumerate(a.labels):
        if label in b._index:
            out[i, b._index[label]] = 0.0
    return out


def _haversine(a: Domain, b: Domain) -> Floats:
    for domain in (a, b):
        if domain.coordinates != "lonlat":
            raise ProblemError(
                "needs longitude and latitude in degrees",
                where="haversine",
                remedy=_instead_of_haversine(domain),
            )
    p, q = a.require_points("measure"), b.require_points("measure")
    return great_circle(p[:, None], q[None])


@record
class _Graph:
    network: nx.Graph[Any]
    weight: str = "weight"
    name = "graph"

    def __repr__(self) -> str:
        return f"distances.graph({len(self.network)} nodes)"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        from scipy.sparse.csgraph import shortest_path

        position = {node: k for k, node in enumerate(self.network.nodes)}
        rows, columns = (_node_indices(domain, position) for domain in (a, b))
        lengths = _edge_lengths(self.network, self.weight, position)
        directed = self.network.is_directed()
        full = shortest_path(lengths, directed=directed, indices=rows)
        out = np.asarray(full[:, columns], dtype=np.float64)
        unreachable = np.argwhere(~np.isfinite(out))
        if len(unreachable):
            i, j = unreachable[0]
            raise ProblemError(
                f"there is no path from {a.labels[i]!r} to {b.labels[j]!r}",
                where=self.name,
                remedy="Use a connected graph, or design its components one by one",
            )
        return out


@record
class _Matrix(SameFields, ReadOnly):
    values: Floats
    labels: tuple[tuple[Hashable, ...] | None, ...] | None = None
    """Those of the rows and columns, where the matrix came with some."""
    name = "matrix"

    def __repr__(self) -> str:
        return f"distances.matrix({self.values.shape[0]} x {self.values.shape[1]} entries)"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        if self.labels is not None:
            axes = (a.labels, b.labels)
            return np.asarray(reordered(self.values, self.labels, axes, where="distance matrix"))
        if self.values.shape != (len(a), len(b)):
            raise ProblemError(
                f"shape {self.values.shape} does not fit {len(a)} x {len(b)} labels",
                where="distance matrix",
                remedy=f"Give an array of shape ({len(a)}, {len(b)})",
            )
        return self.values


@record
class _Elastic(SameFields, ReadOnly):
    mass: Floats
    unit: float
    exponent: float
    distance: Distance
    labels: tuple[Hashable, ...] | None
    name = "elastic"

    def __repr__(self) -> str:
        return f"distances.elastic({len(self.mass)} masses, {self.unit:g} per unit)"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        if a.labels != b.labels or len(a) != len(self.mass) or self.labels not in (None, a.labels):
            raise ProblemError(
                f"has masses for {len(self.mass)} points, and they are not both sides' points",
                where=self.name,
                remedy="Measure between the points that the masses are of",
            )
        apart = evaluate(self.distance, a, b, where=self.name)
        return elastic_lengths(apart, self.mass, self.unit, self.exponent)


def distance_name(distance: object) -> str:
    """The name that a distance gives itself: "euclidean", ..., or "given"."""
    return str(getattr(distance, "name", "given"))


def euclidean() -> Distance:
    """Straight-line distance of the coordinates, in the domain's unit.

    Examples
    --------
    >>> cells = om.Grid(1, 2, cell=(3.0, 2.0), unit="km")
    >>> print(om.distances.euclidean()(cells, cells))
    [[0. 3.]
     [3. 0.]]
    """
    return Named("euclidean", _euclidean)


def manhattan() -> Distance:
    """Sum of coordinate differences, in the domain's unit.

    Examples
    --------
    >>> points = om.Domain(["a", "b"], points=[[0, 0], [3, 4]], unit="km")
    >>> print(om.distances.manhattan()(points, points))
    [[0. 7.]
     [7. 0.]]
    """
    return Named("manhattan", _manhattan)


def hamming() -> Distance:
    """0 where the labels are equal, 1 elsewhere (Shokri, PETS 2015, section 9).

    Examples
    --------
    >>> wards = om.Domain(["north", "south"])
    >>> print(om.distances.hamming()(wards, wards))
    [[0. 1.]
     [1. 0.]]
    """
    return Named("hamming", _hamming)


def haversine() -> Distance:
    """Great-circle distance in km between longitude/latitude points on a sphere of radius
    6371.0088 km.

    Examples
    --------
    >>> cities = om.Domain.geographic(["Paris", "London"], [[2.3522, 48.8566], [-0.1276, 51.5072]])
    >>> print(om.distances.haversine()(cities, cities).round(0))  # km
    [[  0. 344.]
     [344.   0.]]
    """
    return Named("haversine", _haversine)


def graph(network: nx.Graph[Any], weight: str = "weight") -> Distance:
    """Length of the shortest path between labels that are nodes of a networkx graph.

    ``weight`` names the edge attribute that holds lengths; edges without it count 1.

    Examples
    --------
    >>> import networkx as nx
    >>> roads = nx.Graph()
    >>> roads.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 1.5)])
    >>> places = om.Domain(["a", "b", "c"])
    >>> print(om.distances.graph(roads)(places, places))
    [[0.  2.  3.5]
     [2.  0.  1.5]
     [3.5 1.5 0. ]]
    """
    if not hasattr(network, "is_directed"):
        raise ProblemError(
            f"{type(network).__name__} is not a networkx graph",
            where="graph",
            remedy="Give a networkx Graph, DiGraph or one with parallel edges",
        )
    # whoever adds an edge later changes no problem that was stated
    return _Graph(network.copy(), weight)


def matrix(array: ArrayLike) -> Distance:
    """A given matrix, in the index order of the domains it is used on; or a pandas or xarray
    table, read by its labels, which must be those of the domains.

    Checked: two dimensions, non-negative. The triangle inequality is not required;
    ``triangle_report`` says by how much it fails. Infinite distances are for metric privacy, which
    then asks nothing of a pair, and are refused by whatever else takes a distance.

    Examples
    --------
    >>> toll = om.distances.matrix([[0, 2], [5, 0]])
    >>> sides = om.Domain(["left", "right"])
    >>> print(toll(sides, sides))
    [[0. 2.]
     [5. 0.]]
    """
    values = finite_array(array, where="distance matrix", ndim=2, observations=True, infinite=True)
    refuse_negative(values, "distance matrix")
    own = own_labels(array)
    if own is None or own == (None, None):
        return _Matrix(values)
    return _Matrix(values, tuple(None if axis is None else tuple(axis) for axis in own))


def utility(values: ArrayLike) -> Distance:
    """The utility distance of u(s, o), shape (S, O): max_o |u(s, o) − u(s', o)| (Kawamoto and
    Murakami, ESORICS 2019, Definition 2). Its largest value over adjacent pairs is the
    ``sensitivity``.

    Examples
    --------
    >>> apart = om.distances.utility([[0, -1, -2], [-1, 0, -1], [-2, -1, 0]])
    >>> line = om.Domain.range(3)
    >>> print(apart(line, line))
    [[0. 1. 2.]
     [1. 0. 1.]
     [2. 1. 0.]]
    """
    given = finite_array(values, where="values", ndim=2)
    if not given.size:
        raise ProblemError("is empty", where="values", remedy="Give a row for every secret")
    return matrix(np.array([np.abs(given - row).max(axis=1) for row in given]))


def sensitivity(distance: DistanceLike, domain: Domain, pairs: ArrayLike | None = None) -> float:
    """max d(s, s') over adjacent ``pairs`` (k, 2) of indices, or over all of them (Kawamoto and
    Murakami, ESORICS 2019, Definition 3, with the utility distance).

    Examples
    --------
    >>> line = om.Domain.range(4)
    >>> om.distances.sensitivity(om.distances.euclidean(), line, [(0, 1), (1, 3)])
    2.0
    """
    own: Domain = taken(domain, "Domain", "domain")
    values = between(distance, own)
    if pairs is None:
        return float(values.max())
    given = finite_array(pairs, where="pairs", ndim=2)
    chosen = given.astype(np.int64)
    fits = given.size and given.shape[1] == 2 and bool((chosen == given).all())
    if not fits or chosen.min() < 0 or chosen.max() >= len(own):
        raise ProblemError(
            "has no pair, or an index outside of the domain",
            where="pairs",
            remedy=f"Give pairs of indices from 0 to {len(own) - 1}",
        )
    return float(np.maximum(values, values.T)[chosen[:, 0], chosen[:, 1]].max())


def elastic(
    mass: Prior | ArrayLike,
    unit: float,
    *,
    distance: DistanceLike | None = None,
    exponent: float = 2.0,
) -> Distance:
    """A distance that stretches where much is: within r of any point lies a mass of at least
    ``unit`` · r^exponent, or everything. The requirement is that of Chatzikokolakis, Palamidessi
    and Stronati, Constructing Elastic Distinguishability Metrics for Location Privacy (PETS 2015);
    steps between points take the place of their rounds over levels.

    With ε of metric privacy, points within r are distinguished by at most e^{εr}: everybody is
    hidden among as many people or places, with little noise in town and much in the country.

    Parameters
    ----------
    mass:
        A prior, a population or a number of places of interest for every point, shape (n,), >= 0;
        add a constant for the privacy that bare space gives.
    unit:
        The mass within distance 1, > 0.
    distance:
        In whose order masses are gathered, by default Euclidean; great-circle for longitude and
        latitude is ``haversine()``.
    exponent:
        Of the growth of mass with the radius: 2 as for areas.

    It is a metric by construction: the length of shortest paths, where a step from x to y has the
    length (mass closer to x than y is / unit)^(1/exponent). Points without mass around them are at
    distance 0 from their neighbours: not distinguished at all.

    Raises
    ------
    ProblemError
        On masses that are negative or all 0, a ``unit`` or ``exponent`` that is not above 0; when
        used on other points.

    Examples
    --------
    >>> line = om.Domain.range(4)
    >>> d = om.distances.elastic([9, 9, 1, 1], unit=1, exponent=1)
    >>> print(d(line, line).round(2))  # a step beside much mass is long
    [[ 0.  9. 10. 11.]
     [ 9.  0.  1.  2.]
     [10.  1.  0.  1.]
     [11.  2.  1.  0.]]
    """
    labels = mass.domain.labels if isinstance(mass, Prior) else None
    values = weights(mass.weights if isinstance(mass, Prior) else mass, "mass")
    given = euclidean() if distance is None else as_distance(distance)
    return _Elastic(values, positive(unit, "unit"), positive(exponent, "exponent"), given, labels)


@dataclass(frozen=True)
class TriangleReport:
    """How far a matrix is from the triangle inequality.

    Examples
    --------
    >>> om.distances.triangle_report(np.array([[0.0, 1, 3], [1, 0, 1], [3, 1, 0]]))
    TriangleReport(excess=1.0, triple=(0, 1, 2))
    """

    excess: float
    """Largest d(i,k) - d(i,j) - d(j,k); zero where the inequality holds."""
    triple: tuple[int, int, int] | None
    """(i, j, k) of the largest excess, or None."""


def triangle_report(values: Floats) -> TriangleReport:
    """Largest violation of d(i,k) <= d(i,j) + d(j,k) beyond rounding, for a square matrix; of a
    thousand points and more none where those over near and some other points hold.

    Examples
    --------
    >>> report = om.distances.triangle_report(np.array([[0.0, 1, 3], [1, 0, 1], [3, 1, 0]]))
    >>> report.excess, report.triple  # 3 > 1 + 1
    (1.0, (0, 1, 2))
    """
    values = square_array(values, "values")
    if is_closed(values):
        return TriangleReport(0.0, None)
    best = np.minimum(values, shortest_detour(values))
    with np.errstate(invalid="ignore"):  # no path is no shorter than an infinite distance
        excess = values - best
    excess[~(excess > 1e-12 * best)] = 0.0
    i, k = divmod(int(excess.argmax()), len(values))
    if not excess[i, k] > 0:
        return TriangleReport(0.0, None)
    return TriangleReport(float(excess[i, k]), (i, int((values[i] + values[:, k]).argmin()), k))


def is_metric(distance: object) -> bool:
    """Whether the triangle inequality holds by definition: on every domain, but for rounding."""
    return isinstance(distance, Named)


def as_distance(value: DistanceLike, *, where: str = "distance") -> Distance:
    """A function as it is, a table of values as the distance that it is; errors at ``where``."""
    if callable(value):
        return of_domains(value, where)
    if isinstance(value, str) or dimensions(value) == 0:
        called = type(value).__name__
        remedy = "Use a member of om.distances, or give the values as an array"
        if isinstance(value, str):
            called = f"{value!r:.40}"
            remedy = f"Use om.distances.{value}()" if value in __all__ else remedy
        raise ProblemError(f"{called} is not a distance", where=where, remedy=remedy)
    with moved(where):
        return matrix(value)


def of_domains(value: Distance, where: str) -> Distance:
    """A function of two domains as it is. Raises ProblemError where it takes other arguments, as
    ``distances.euclidean`` does before it is called."""
    try:
        signature(value).bind(None, None)
    except TypeError:
        name = getattr(value, "__name__", type(value).__name__)
        call = f"Call it first: {name}()" if name in __all__ else "Use a member of om.distances"
        raise ProblemError(
            f"{name} is not a function of two domains", where=where, remedy=call
        ) from None
    except ValueError:  # of compiled functions nothing is known
        pass
    return value


def dimensions(value: Any) -> int | None:
    """How many an array or nested list has; None where its rows are of different lengths."""
    try:
        return np.ndim(value)
    except ValueError:
        return None


def evaluate(
    distance: DistanceLike, a: Domain, b: Domain, *, where: str = "distance", infinite: bool = False
) -> Floats:
    """The values of a distance, checked, which may be ``infinite``; errors at ``where``."""
    given = as_distance(distance, where=where)
    with inside(where):
        raw = _of_labels(given, a, b)
    values = finite_array(raw, where=where, ndim=2, infinite=infinite)
    if values.shape != (len(a), len(b)):
        raise ProblemError(
            f"the distance returned shape {values.shape} for {len(a)} x {len(b)} labels",
            where=where,
        )
    refuse_negative(values, where)
    return values


def _of_labels(given: Distance, a: Domain, b: Domain) -> Any:
    """What a function of two domains returns; one that takes no domains, or returns one value for
    them, is a function of two labels."""
    raw = None
    try:
        raw = given(a, b)
        if np.ndim(raw) or not isinstance(given, FunctionType):
            return raw
    except OptmechError:
        raise
    except Exception:
        if not isinstance(given, FunctionType):
            raise
    try:
        return [[float(given(x, y)) for y in b.labels] for x in a.labels]
    except Exception as error:
        if raw is not None:
            return raw
        name = getattr(given, "__name__", type(given).__name__)
        raise ProblemError(
            f"{name} fails for two domains and for two labels ({type(error).__name__})",
            remedy="Give a function of two labels that returns a number, or an array",
        ) from error


def between(distance: DistanceLike, domain: Domain) -> Floats:
    """The values of a distance between the elements of a domain, checked."""
    return evaluate(distance, domain, domain)


def values_between(distance: DistanceLike, a: Domain | None, b: Domain | None) -> Floats:
    """The values of a distance from the points of one distribution to those of another, whose
    domains are known where they are priors. An array may be of any shape. Raises ProblemError on a
    function of two domains, or other labels than 0, 1, ..., where a domain is not known; and as
    ``evaluate``."""
    known = a is not None and b is not None
    if isinstance(distance, str):
        distance = as_distance(distance)
    if not callable(distance) and not (known and own_labels(distance) is not None):
        return finite_array(distance, where="distance", ndim=2)
    if a is None or b is None:
        raise ProblemError(
            "is a function of two domains, and a distribution is given as plain weights",
            where="distance",
            remedy="Give an om.Prior for each, or the values as an array",
        )
    return evaluate(distance, a, b)


def refuse_negative(
    values: Floats, where: str, what: str = "distance", remedy: str = "Distances must be >= 0"
) -> None:
    """Refuse a matrix with an entry below 0."""
    bad = np.argwhere(values < 0)
    if len(bad):
        i, j = bad[0].tolist()
        message = f"the {what} at [{i}, {j}] is below 0"
        raise ProblemError(message, where=where, remedy=remedy)


def _plane_points(a: Domain, b: Domain, name: str) -> tuple[Floats, Floats]:
    for domain in (a, b):
        if domain.coordinates == "lonlat":
            raise ProblemError(
                "degrees of longitude and latitude are not plane coordinates",
                where=name,
                remedy='Use "haversine", which measures in km, or project the points first',
            )
    # coordinates of two units, or counted from two places, have no distance
    if a.unit and b.unit and a.unit != b.unit:
        raise ProblemError(
            f"the points are in {a.unit!r} and in {b.unit!r}",
            where=name,
            remedy="Give both in one unit",
        )
    if a.frame and b.frame and a.frame != b.frame:
        raise ProblemError(
            "the two grids lie over different bounds, and each counts its km from its own corner",
            where=name,
            remedy="Put both over the same bounds, with more or fewer cells",
        )
    if a.frame != b.frame and not (a.unit and b.unit):
        raise ProblemError(
            "one side is a grid over bounds, in km from its south-west corner, and the points of "
            "the other have no unit",
            where=name,
            remedy='If they are in km from that corner, say unit = "km"; if they are in degrees, '
            "give both sides as longitude and latitude and measure haversine distance",
        )
    p, q = (domain.require_points(f"measure {name} distance") for domain in (a, b))
    if p.shape[1] != q.shape[1]:
        raise ProblemError(f"points have {p.shape[1]} and {q.shape[1]} coordinates", where=name)
    return p, q


def _instead_of_haversine(domain: Domain) -> str:
    if domain.frame:
        return 'A grid over bounds is measured in km already: use "euclidean"'
    if domain.points is None:
        return 'Without coordinates use "hamming", "graph" or a matrix'
    if domain.unit:
        return f'The points are in {domain.unit}: use "euclidean"'
    return (
        'Give the points as longitude and latitude (kind = "lonlat", or coordinates = "lonlat" of '
        'a table; Domain.geographic in Python), or use "euclidean" if they are not in degrees'
    )


def _edge_lengths(network: nx.Graph[Any], weight: str, position: dict[Any, int]) -> sp.csr_array:
    """Lengths of the edges by node index, zeros kept; of parallel edges the shortest."""
    edges = list(network.edges(data=weight, default=1))
    lengths = np.array([_length(edge, weight) for edge in edges], dtype=np.float64)
    tails, heads = (
        np.array([position[edge[end]] for edge in edges], dtype=np.int64) for end in (0, 1)
    )
    found = Edges.of(len(position), tails, heads, lengths)
    return sp.csr_array((found.value, (found.i, found.j)), shape=found.shape)


def _length(edge: tuple[Any, Any, Any], weight: str) -> float:
    tail, head, value = edge
    try:
        length = float(value)
    except (TypeError, ValueError):
        length = np.nan
    if not 0 <= length < np.inf:
        raise ProblemError(
            f"{weight!r} of edge ({tail!r}, {head!r}) is {described(value)}",
            where="graph",
            remedy="Edge lengths must be finite numbers >= 0",
        )
    return length


def _node_indices(domain: Domain, position: dict[Any, int]) -> list[int]:
    for label in domain.labels:
        if label not in position:
            raise ProblemError(
                f"label {label!r} is not a node of the graph",
                where="graph",
                remedy="Labels and nodes must be the same objects; check int against str",
            )
    return [position[label] for label in domain.labels]
