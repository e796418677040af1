"""Distances, losses, gains of guesses and meshes as sections of files."""

from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, Discriminator, Field, Tag, WithJsonSchema

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, inside
from optmech.files.networks import Edges, TreeKeys, connect, read_edges
from optmech.files.place import Place
from optmech.files.priors import PriorSection
from optmech.problem.gains import block_gains
from optmech.reading.sections import (
    SORTS,
    TAG,
    Bounds,
    ByKind,
    ExactNumber,
    Label,
    LabelReference,
    Matrix,
    NonNegative,
    Positive,
    Section,
    bare,
    either,
    is_number,
    must,
    refusal,
    table_or_name,
)
from optmech.spaces import distances, losses
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Grid
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.mesh import by_mass
from optmech.spaces.mesh.network import Network
from optmech.spaces.observables import Subsets, Suppressible
from optmech.spaces.tables import NAMED


class Named(Section):
    """A distance without parameters; the same as its bare name."""

    kind: Literal["euclidean", "manhattan", "hamming", "haversine"]

    def build(self, place: Place) -> Distance:
        return NAMED[self.kind]


class GraphDistance(Section):
    """Shortest path along edges; without ``edges`` or ``file`` those of the secrets' graph."""

    kind: Literal["graph"]
    edges: Edges | None = None
    file: str | None = None

    def refuse_misfits(self) -> None:
        if self.edges is not None and self.file is not None:
            raise refusal("has both edges and file", "Give one of the two")

    def build(self, place: Place) -> Distance:
        if self.edges or self.file:
            edges = read_edges(self.edges, self.file, place.directory)
            return distances.graph(connect(edges, place.secrets))
        if place.listed.network is None:
            raise ProblemError(
                "there is no graph to measure on",
                remedy='Use secrets of kind = "graph" or "tree", or give edges = [...]',
            )
        return distances.graph(place.listed.network)


class TreeDistance(TreeKeys):
    """Path length in a category tree; secrets are nodes of the tree."""

    kind: Literal["tree"]

    def build(self, place: Place) -> Distance:
        return distances.graph(self.graph(place.secrets))


_Length = Annotated[
    float,
    AllowInfNan(),
    must(is_number, "not a number", "Give numbers >= 0, or inf without quotes"),
]


class MatrixDistance(Section):
    """A given matrix, in the order of the secrets."""

    kind: Literal["matrix"]
    values: list[list[_Length]] | None = None
    file: str | None = None

    _one_form = either("values", "file")

    def build(self, place: Place) -> Distance:
        rows = place.rows(self.file or "", self.values, "values", infinite=True)
        return distances.matrix(rows)


class ElasticDistance(Section):
    """A distance that stretches where much is: within r live at least share · r^exponent."""

    kind: Literal["elastic"]
    mass: PriorSection
    share: Positive
    distance: Literal["euclidean", "manhattan", "haversine"] = "euclidean"
    exponent: Positive = 2.0

    def build(self, place: Place) -> Distance:
        with inside("mass"):
            mass = self.mass.build(place)
        base = NAMED[self.distance]
        return distances.elastic(mass, self.share, distance=base, exponent=self.exponent)


_Names = Literal["euclidean", "manhattan", "hamming", "haversine", "graph"]


def _of_name(name: Any) -> Section:
    return GraphDistance(kind="graph") if name == "graph" else Named(kind=name)


_Name: Any = bare(_Names, _of_name)
DistanceSection = Annotated[
    _Name | Named | GraphDistance | TreeDistance | MatrixDistance | ElasticDistance, ByKind()
]


class LossTable(Section):
    """A loss from a distance, or a matrix with a row per secret and a column per observable."""

    distance: DistanceSection | None = None
    power: Positive = 1.0
    reduce: Literal["mean", "max", "min"] | None = None
    suppression: NonNegative | None = None
    matrix: Matrix | None = None
    file: str | None = None

    def refuse_misfits(self) -> None:
        if sum(form is not None for form in (self.distance, self.matrix, self.file)) != 1:
            raise refusal("needs one of distance, matrix and file", "Give exactly one of the three")
        options = {"power", "reduce", "suppression"} & self.model_fields_set
        if self.distance is None and options:
            raise refusal(
                f"{', '.join(sorted(options))} need a distance",
                "A matrix is taken as it is, with a column for every observable",
            )

    def build(self, place: Place) -> Distance | Floats:
        """The loss for the place's observables."""
        if self.distance is None:
            return place.rows(self.file or "", self.matrix, "matrix")
        with inside("distance"):
            loss: Distance = self.distance.build(place)
        observed = place.observed
        inner = observed.inner if isinstance(observed, Suppressible) else observed
        if self.power != 1:
            loss = losses.powered(loss, self.power)
        if self.reduce is not None:
            if isinstance(inner, Subsets):
                loss = losses.over_members(loss, self.reduce)
            elif isinstance(inner, Grid) or inner.outlines is not None:
                loss = losses.over_cells(loss, self.reduce)
            else:
                raise ProblemError(
                    "there are no sets or cells to reduce over",
                    where="reduce",
                    remedy='Use observables of kind = "coarser", "subsets" or "grid", or secrets '
                    "that are a grid or zones, or drop the key",
                )
        if (self.suppression is not None) != isinstance(observed, Suppressible):
            raise ProblemError(
                "the loss and the observables do not agree on suppression",
                where="suppression",
                remedy="Give loss.suppression, a number, together with observables.suppress",
            )
        if self.suppression is None:
            return loss
        return losses.with_suppression(loss, self.suppression)


_LossName: Any = bare(_Names, lambda name: LossTable(distance=name))
LossSection = Annotated[_LossName | LossTable, ByKind(table_or_name)]


class GainTable(Section):
    """What every guess gains at every secret: a row for every guess, as ``values`` or in a CSV
    ``file``; guesses of the block of a ``partition``, which names the block of every secret; or
    a ``distance`` between guess and secret, taken as a gain."""

    values: Annotated[Matrix, Field(min_length=1)] | None = None
    file: str | None = None
    partition: list[Label] | None = None
    distance: DistanceSection | None = None

    _one_form = either("values", "file", "partition", "distance", remedy="Keep one of the forms")

    def build(self, place: Place) -> Any:
        if self.values is not None:
            return self.values
        if self.file is not None:
            return place.rows(self.file)
        return (
            block_gains(self.partition or ())
            if self.distance is None
            else self.distance.build(place)
        )


Degree = Annotated[int, Field(ge=1, le=6)]


class GridMesh(Section):
    """A rectangle in squares of at most ``width``, halved; with ``vertices`` finer where the prior
    has mass; ``degree`` is that of mechanisms in the triangles."""

    kind: Literal["grid"]
    bounds: Bounds
    width: ExactNumber
    vertices: Annotated[int, Field(ge=4, le=10**6)] | None = None
    degree: Degree = 1

    def build(self, place: Place) -> Mesh:
        """The mesh, in the coordinates and the unit of the secrets."""
        domain = place.secrets
        mesh = Mesh.grid(
            self.bounds,
            self.width,
            unit=domain.unit if domain.coordinates == "plane" else "",
            coordinates=domain.coordinates,
            degree=self.degree,
        )
        if self.vertices is None:
            return mesh
        points = domain.require_points("make a mesh finer where they are")
        inside = mesh.locate(points)[0] >= 0
        return by_mass(mesh, points[inside], place.prior.weights[inside], self.vertices)


class AroundMesh(Section):
    """A convex region around the secrets; with ``vertices`` finer where the prior has mass."""

    kind: Literal["around"]
    width: ExactNumber
    vertices: Annotated[int, Field(ge=3, le=10**6)] | None = None
    degree: Degree = 1

    def build(self, place: Place) -> Mesh:
        """The mesh, in the coordinates and the unit of the secrets."""
        domain, weights = place.secrets, place.prior.weights
        domain.require_points("make a mesh around them")
        return Mesh.around(
            domain, self.width, vertices=self.vertices, weights=weights, degree=self.degree
        )


class LineMesh(Section):
    """The interval from the first secret to the last, in segments between neighbours; the secrets
    are numbers in increasing order."""

    kind: Literal["line"]

    def build(self, place: Place) -> Mesh:
        """The mesh, with the labels and the unit of the secrets."""
        domain = place.secrets
        points = domain.require_points("lie on a line")
        if points.shape[1] != 1:
            raise ProblemError(
                "the secrets are no numbers", remedy='Use secrets of kind = "line", for example'
            )
        roads = [range(len(domain))]
        return Network(points, roads, labels=domain.labels, unit=domain.unit)


class RoadMesh(Section):
    """The edges of the secrets' graph as roads, whose crossings the secrets are."""

    kind: Literal["roads"]

    def build(self, place: Place) -> Mesh:
        """The network, with the labels, coordinates and unit of the secrets."""
        domain, graph = place.secrets, place.listed.network
        if graph is None:
            raise ProblemError(
                "there is no graph whose edges are roads",
                remedy='Use secrets of kind = "graph" with points, or of an osm file',
            )
        points = domain.require_points("lie on roads")
        edges = list(graph.edges(data="weight", default=1.0))
        return Network(
            points,
            [(domain.index(a), domain.index(b)) for a, b, _ in edges],
            lengths=[length for *_, length in edges],
            labels=domain.labels,
            unit=domain.unit,
            coordinates=domain.coordinates,
        )


_Two = Annotated[list[LabelReference], Field(min_length=2, max_length=2)]


class Neighbours(Section):
    """Which secrets are adjacent: listed pairs of labels, or all within a radius."""

    pairs: Annotated[list[_Two], Field(min_length=1)] | None = None
    distance: DistanceSection | None = None
    radius: NonNegative | None = None

    _one_form = either("pairs", "distance radius", remedy="Keep one of the two forms")


class NumbersFile(Section):
    """Numbers of a ``file``: rows of a CSV, or an array of NumPy or SciPy (.npy, .npz), of several
    the one called ``name``."""

    file: str
    name: str | None = None

    def build(self, place: Place) -> Any:
        return place.numbers(self.file, self.name)


def _rows_or_file(value: object) -> str:
    return f"{TAG}table" if isinstance(value, dict | NumbersFile) else f"{TAG}rows"


_NESTED = {"type": "array", "items": {"type": ["number", "string", "array"]}, "minItems": 1}
_Rows = Annotated[
    Any,
    must(lambda value: isinstance(value, list) and bool(value), "no array of numbers",
         'Give rows of numbers, or { file = "..." }'),
    WithJsonSchema(_NESTED),
    Tag(f"{TAG}rows"),
]  # fmt: skip
SORTS |= {
    "numbers": Annotated[
        _Rows | Annotated[NumbersFile, Tag(f"{TAG}table")], Discriminator(_rows_or_file)
    ],
    "adjacency": Annotated[Literal["all"] | Neighbours, ByKind(table_or_name)],
    "distance": DistanceSection,
    "loss": LossSection,
    "gain": Annotated[Literal["identity"] | GainTable, ByKind(table_or_name)],
    "goal": Annotated[
        Literal["identity", "maximal", "additive"] | GainTable, ByKind(table_or_name)
    ],
    "mesh": Annotated[GridMesh | AroundMesh | LineMesh | RoadMesh, ByKind()],
}
