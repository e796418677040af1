"""``om.protect``: a report for every row of a table, in the form that the table has."""

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from optmech.base.arrays import Floats, Ints, real_array, unmasked
from optmech.base.labels import refuse_latitude_first
from optmech.base.machine import needed
from optmech.designs.design import Design
from optmech.designs.promise import Promise
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of, truth
from optmech.exact.number import Number
from optmech.files.extent import bounds_of
from optmech.reading.chosen import Chosen, column_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism, mechanism_from
from optmech_devices.protection.columns import Asked, Replaced
from optmech_devices.protection.days import Unit
from optmech_devices.protection.everywhere import everywhere
from optmech_devices.protection.flow import Flow, guessed_pairs
from optmech_devices.protection.places import Anywhere, is_geographic
from optmech_devices.protection.reporter import Missing, Outside, Reporter
from optmech_devices.protection.result import Protected
from optmech_devices.protection.spending import Beyond, Budget, Spending
from optmech_devices.protection.spool import Order

Names = str | Sequence[str]
_WHO = "whose a row is"


@checked_arguments
def protect(
    design: Design | Mechanism | Anywhere | None,
    data: Any,
    *,
    x: Hashable = None,
    y: Hashable = None,
    label: Hashable = None,
    keep: Names = (),
    keep_place: Names = (),
    times: Unit | None = None,
    pair: Sequence[tuple[Hashable, Hashable]] = (),
    per: Any = None,
    rows_are_people: bool = False,
    budget: Number | None = None,
    no_budget: bool = False,
    beyond: Beyond = "repeat",
    time: Hashable = None,
    keep_order: bool = False,
    outside: Outside = "few",
    missing: Missing | None = None,
    max_distance: float | None = None,
    bounds: Sequence[float] | None = None,
    key: bytes | None = None,
    by: Names = (),
    report: str | None = None,
    seed: int | None = None,
) -> Protected:
    """Draw a report for every row of ``data``, with the design's probabilities, exactly.

    Parameters
    ----------
    design:
        A design, one that is private at every point, a mechanism, or an ``om.devices.Earth``; None
        for the one by which two places 1 km apart differ by 5 times at most.
    data:
        * a pandas table, with the columns ``x`` and ``y`` or ``label``;
        * a GeoPandas table of points, in any coordinate reference system that it names;
        * an xarray Dataset with the variables ``x`` and ``y`` or ``label``, of one dimension;
        * an array of coordinates, shape (n, 2), masked where they are missing, in the unit of the
          secrets, or longitude and latitude in degrees where these were made over degrees;
        * a list of pairs of numbers that are no labels, as such an array;
        * anything else is a list of labels.
    x, y, label:
        Names of the columns that say where a row is; they are replaced by the report's. Of a
        pandas table by default those that are called longitude and latitude, or x and y where the
        design is not in degrees, if there is one such pair.
    keep:
        Names of other columns that are kept, as they are. All others are left out: a time, a
        speed or a name can give away what the report hides. Those that are called like places,
        that hold geometries, or whose numbers lie where the rows do, are refused. Attributes are
        left out.
    keep_place:
        Names of columns that are kept although they are like that.
    times:
        Cuts kept columns that are called like times: each time to the beginning of its
        ``"hour"``, ``"day"``, ``"week"``, ``"month"`` or ``"year"``. Exact ones tie rows together.
    pair:
        Pairs of columns, where a row has several places; by default all that are called so.
    per:
        The column that says whose a row is; of arrays and lists, a name for every row. By default
        the one column that is plainly called so. Where nothing says it, all rows count as one
        person's.
    rows_are_people:
        Every row is another person's.
    budget, no_budget:
        The largest total ε of a person (per unit of distance, as the design's), as 5, or of a
        person's day, as "5/day". Without one a person who would have more than five draws is
        refused, unless there is ``no_budget``.
    beyond:
        What becomes of rows beyond the budget: ``"repeat"`` gives them the report that the person
        had before, ``"drop"`` leaves them out.
    time:
        The column with the time of a row, for budgets a day; by default the one called so.
    keep_order:
        Rows stay in their order, which ties those of one person together. By default they are
        shuffled.
    outside, max_distance:
        What becomes of a point outside of the domain: ``"refuse"``, ``"nearest"``, ``"drop"``, or
        ``"few"``, where at most one of twenty is taken to the nearest place, and more are refused;
        where the secrets are points, those farther than ``max_distance`` from all of them.
    bounds:
        West, south, east, north, or x0, y0, x1, y1: rows outside are left out, and counted.
    missing:
        What becomes of a row without usable coordinates: ``"refuse"``, ``"drop"`` or ``"few"``; by
        default as ``outside``, and refused with ``"nearest"``.
    key, by:
        With a key of 32 bytes or more, rows of one place with the same values in the columns
        ``by`` (a user, a day) get the same report, again and again, so that repeating it tells
        nothing more; without, every row is drawn anew. Values count for what they say, whatever
        their type: 7, 7.0 and "7" are one, and so are a date, its midnight and their texts in ISO
        8601, in UTC. Of a design that is private at every point
        places are the points of a lattice, for which log ratios grow by at most 0.1.
    report:
        Name of a new column for the report's label.
    seed:
        Makes the draws reproducible, and unfit for release.

    Returns
    -------
    Protected
        With the ``table``, the same kind of object as the data, with a row for every row that is
        left, in an order by chance, with a new index; with what is promised of the worst and the
        median ``person``; and what was left out, moved and repeated. Coordinates of reports
        without a place, as of a suppression, are NaN; where reports have no coordinates at all,
        their labels are in the column ``report``.

    Warns
    -----
    UserWarning
        How many rows were dropped or taken to the nearest place, and which columns that are kept
        have values that stand at one place each, as names of stations do.

    Raises
    ------
    ProblemError
        On missing columns, a person beyond the default budget, points outside where they are
        refused, labels that are none, and values
        of ``by`` that have several forms, such as lengths of time and dates as 01/02/2024.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> design = om.solve(problem)
    >>> found = om.protect(design, np.array([[0.2, 0.3], [1.9, 1.1]]), rows_are_people=True)
    >>> all(report in cells.points.tolist() for report in found.table.tolist())  # centres of cells
    True
    >>> found.person.worst.draws, found.person.worst.epsilon
    (1, 1.0)
    """
    design = everywhere() if design is None else design
    mechanism = design if isinstance(design, Anywhere) else mechanism_from(design, "design")
    promise: Promise | None = getattr(design, "promise", None)
    rate = None if promise is None else promise.epsilon
    box = (
        None if bounds is None else bounds_of(",".join(map(str, bounds)), is_geographic(mechanism))
    )
    reporter = Reporter(mechanism, outside, max_distance, key, seed, missing, rate, box)
    kept, unveiled = _listed(keep), _listed(keep_place)
    pairs = _pairs(pair)
    asked = Asked(x, y, label, (*kept, *unveiled), _listed(by), report, pairs, unveiled)
    spending = Spending(
        per if isinstance(per, Hashable) else None,
        truth(rows_are_people, "rows_are_people"),
        Budget.of(budget, truth(no_budget, "no_budget")),
        beyond,
        key is not None,
        time,
    )
    order = None if truth(keep_order, "keep_order") else Order(seed)
    if times is not None:
        one_of(times, get_args(Unit), "times")
    run = _Run(Flow(reporter, asked, spending, promise, times=times), order, per)
    table = run.protected(data)
    found = run.flow.result(table, run.left)
    for line in run.flow.done():
        warnings.warn(line, stacklevel=3)
    return found


@dataclass
class _Run:
    """One call, on data of one kind or another."""

    flow: Flow
    order: Order | None
    per: Any
    left: list[Any] = field(default_factory=list)

    @property
    def reporter(self) -> Reporter:
        """What draws."""
        return self.flow.reporter

    def protected(self, data: Any) -> Any:
        """Reports in the form that the data have."""
        if hasattr(data, "to_crs") and hasattr(data, "geometry"):
            return _geo(self, data)
        if hasattr(data, "data_vars"):
            return _dataset(self, data)
        if hasattr(data, "iloc") and hasattr(data, "columns"):
            return _frame(self, data)
        _refuse_columns(self.flow.asked, type(data).__name__, "x y label keep by report pairs")
        return _plain(self, data)

    def found(
        self,
        known: Sequence[Hashable],
        column: Callable[[Any], Any],
        chosen: Chosen | None = None,
        own: Sequence[Floats] = (),
    ) -> tuple[set[Any], Any, dict[Any, Any]]:
        """The columns that stay, the rows that are left, in their order to come, and the new
        columns, times that are cut among them: of the ``chosen`` ones, whose coordinates as the
        data have them are ``own``, else of those that are asked for."""
        flow = self.flow
        flow.begin(
            known,
            lambda asked: chosen or Chosen.of(asked.x, asked.y, asked.label, known),
            lambda text: None,
        )
        rows, new = flow.take(column, own)
        order = self._order(len(rows))
        kept = {*flow.asked.keep, *(name for place in flow.places for name in place.names)}
        self.left = [name for name in known if name not in kept]
        rows, new = rows[order], {name: cells[order] for name, cells in new.items()}
        for name in flow.timed if flow.times is not None else ():
            new[name] = flow.kept(name, column(name)[rows])
        return kept, rows, new

    def reports(self, cells: Sequence[Any], labelled: bool) -> Ints:
        """The reports of what has no columns: coordinates (k of n), or one list of labels."""
        flow, per = self.flow, self.per
        named = per is not None
        if named and (isinstance(per, str) or np.ndim(per) != 1 or len(per) != len(cells[0])):
            raise ProblemError(
                "is no list that says whose each row is", where="per", remedy="Give a name a row"
            )
        flow.spending.column = _WHO if named else None
        names = tuple(range(len(cells)))
        flow.places = [Replaced(Chosen(names, labelled), flow.reporter, None, None)]
        flow.settle([_WHO] if named else [], lambda text: None)
        flow.take(lambda name: per if name is _WHO else cells[name])
        reports = flow.drawn[0]
        return reports[self._order(len(reports))]

    def _order(self, rows: int) -> Ints:
        return np.arange(rows) if self.order is None else self.order.permutation(rows)


def _refuse_columns(asked: Asked, kind: str, names: str) -> None:
    """Raise ProblemError where one of them is named, and ``kind`` has no such thing."""
    for name in names.split():
        if getattr(asked, name) not in (None, ()):
            raise ProblemError(f"{kind} has no such columns", where=name, remedy="Leave it out")


def _taken(data: Any, names: set[Any], rows: Any, new: dict[Any, Any]) -> Any:
    """Rows of a pandas table with columns that stay, in their order, and new ones; with an index
    from 0, as theirs may be the time, and without attributes."""
    out = data[[name for name in data.columns if name in names]].iloc[rows].reset_index(drop=True)
    out.attrs = {}
    for name, column in new.items():
        out[name] = column
    return out


def _plain(run: _Run, data: Any) -> Any:
    """Points as an array, or labels as a list, an array or a pandas column."""
    reporter = run.reporter
    labels = reporter.mechanism.observables.labels
    if isinstance(data, np.ndarray) and (
        data.dtype.kind == "V" or (data.ndim == 2 and data.dtype.kind not in "OSUT")
    ):
        points = np.array(real_array(unmasked(data), "data"))
        reporter.require_dimensions(points)
        reports = run.reports([*points.T], False)
        places = reporter.places
        return [labels[k] for k in reports.tolist()] if places is None else places[reports]
    listed = data.tolist() if hasattr(data, "tolist") else unmasked(data)
    if not isinstance(listed, list):
        raise ProblemError(
            f"{type(data).__name__} is no table and no list",
            where="data",
            remedy="Give a table, an array of points (n, 2), or a list of labels",
        )
    if _are_points(listed, reporter.mechanism):
        found = _plain(run, np.array(listed, dtype=np.float64))
        return found if isinstance(found, list) else list(map(tuple, found.tolist()))
    reports = run.reports([listed], True)
    drawn = [labels[k] for k in reports.tolist()]
    if hasattr(data, "iloc"):
        return type(data)(drawn, name=data.name)
    return column_of(drawn) if isinstance(data, np.ndarray) else drawn


def _are_points(listed: list[Any], mechanism: Any) -> bool:
    """Whether a list is of pairs of numbers, at least one of them no whole number, and none of them
    a label."""
    pairs = [entry for entry in listed if isinstance(entry, list | tuple) and len(entry) == 2]
    numbers = [
        v for pair in pairs for v in pair if isinstance(v, float | int | np.floating | np.integer)
    ]
    if not listed or len(numbers) != 2 * len(listed):
        return False
    # numbers of cells are no pairs
    secrets = None if isinstance(mechanism, Anywhere) else getattr(mechanism, "secrets", None)
    labels = set() if secrets is None else set(secrets.labels)
    return any(v != int(v) for v in numbers if np.isfinite(v)) and not any(
        tuple(pair) in labels for pair in pairs
    )


def _frame(run: _Run, data: Any) -> Any:
    """A pandas table."""
    flow, reporter = run.flow, run.reporter
    known = list(data.columns)
    asked = guessed_pairs(known, flow.asked, reporter.geographic, lambda text: None)
    flow.asked = asked
    for x, y in asked.pairs or [(asked.x, asked.y)]:
        if x is not None and y is not None and {x, y} <= set(known):
            refuse_latitude_first(data[[x, y]], where="data")
    found = run.found(known, _cells_of(data))
    _note_attributes(reporter, data)
    return _taken(data, *found)


def _note_attributes(reporter: Reporter, *holders: Any) -> None:
    if any(each.attrs for each in holders):
        reporter.noticed.append("attributes of the data are left out: they may say where it is")


def _dataset(run: _Run, data: Any) -> Any:
    """An xarray Dataset: variables along one dimension, which may be the levels of its index."""
    reporter, asked = run.reporter, run.flow.asked
    levels = [dim for dim in data.dims if hasattr(data.indexes.get(dim), "levels")]
    data = data.reset_index(levels)
    known = list(data.variables)
    named = [n for n in (asked.x, asked.y, asked.label, *asked.by) if n in known]
    dims = {data[name].dims for name in named}
    if len(dims) > 1 or any(len(one) != 1 for one in dims):
        raise ProblemError(
            f"{named} have the dimensions {sorted(map(str, dims))}",
            where="data",
            remedy="Give variables of one dimension, the same for all: a row is a point",
        )
    _, rows, new = run.found(known, _cells_of(data))
    ((dim,),) = dims
    out = data.drop_vars(run.left).isel({dim: rows})
    _note_attributes(reporter, data, *out.variables.values())
    for each in (out, *out.variables.values()):
        each.attrs, each.encoding = {}, {}
    return out.assign({name: (dim, column) for name, column in new.items()})


def _geo(run: _Run, data: Any) -> Any:
    """A GeoPandas table of points, in its own reference system."""
    reporter, asked = run.reporter, run.flow.asked
    shapely = needed("shapely", "geo", where="protect")
    _refuse_columns(asked, "a table with a geometry", "x y label pairs")
    kinds = set(data.geometry.geom_type.dropna())
    if kinds - {"Point"}:
        raise ProblemError(
            f"holds {', '.join(sorted(kinds))}", where="data", remedy="Give points only"
        )
    geometry, crs, cells = data.geometry.name, data.crs, _cells_of(data)
    degrees = reporter.geographic and crs is not None
    shown = data.geometry.to_crs(4326) if degrees else data.geometry
    points = {(geometry, axis): getattr(shown, axis) for axis in "xy"}
    kept, rows, new = run.found(
        [name for name in data.columns if name != geometry],
        lambda name: points[name] if name in points else cells(name),
        Chosen(tuple(points), False),
        [np.asarray(each, dtype=np.float64) for each in (data.geometry.x, data.geometry.y)],
    )
    if run.flow.places[0].places is None:
        raise ProblemError(
            "the reports have no coordinates in the plane",
            where="data",
            remedy="Give a table without a geometry, and take the column report",
        )
    _note_attributes(reporter, data)
    drawn = shapely.points(np.column_stack([new.pop(name) for name in points]))
    out = _taken(data, {*kept, geometry}, rows, new)
    series = type(data.geometry)(drawn, index=out.index, crs=4326 if degrees else crs)
    out[geometry] = series.to_crs(crs) if degrees else series
    return out


def _cells_of(data: Any) -> Callable[[Any], Any]:
    """The cells of a column by its name."""
    return lambda name: data[name].to_numpy()


def _pairs(given: object) -> tuple[tuple[str, str], ...]:
    """Names of two columns each. Raises ProblemError for anything else."""
    listed = given if isinstance(given, list | tuple) else None
    if listed is None or not all(isinstance(p, list | tuple) and len(p) == 2 for p in listed):
        raise ProblemError(
            "are no pairs of columns", where="pair", remedy='Give them as [("to x", "to y")]'
        )
    return tuple((str(one), str(other)) for one, other in listed)


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
