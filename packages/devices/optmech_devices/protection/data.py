"""``om.protect``: a report for every row of a table, in the form that the table has."""

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, real_array, unmasked
from optmech.base.labels import coordinate_names, refuse_latitude_first
from optmech.base.machine import needed
from optmech.designs.design import Design
from optmech.designs.promise import promise_of
from optmech.errors import ProblemError
from optmech.reading.chosen import Chosen, column_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism, mechanism_from
from optmech_devices.protection.columns import Asked, Replaced, drawn_of
from optmech_devices.protection.places import Anywhere
from optmech_devices.protection.reporter import Missing, Outside, Reporter

Names = str | Sequence[str]
_LOOKED_AT = 50_000
"""Cells of a column that is kept."""


@checked_arguments
def protect(
    design: Design | Mechanism | Anywhere,
    data: Any,
    *,
    x: Hashable = None,
    y: Hashable = None,
    label: Hashable = None,
    keep: Names = (),
    keep_place: Names = (),
    outside: Outside = "refuse",
    missing: Missing | None = None,
    max_distance: float | None = None,
    key: bytes | None = None,
    by: Names = (),
    report: str | None = None,
    seed: int | None = None,
) -> Any:
    """Draw a report for every row of ``data``, with the design's probabilities, exactly.

    Parameters
    ----------
    design:
        A design, one that is private at every point, a mechanism, or an ``om.Earth``.
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
    outside, max_distance:
        What becomes of a point outside of the domain: ``"refuse"``, ``"nearest"`` or ``"drop"``;
        where the secrets are points, those farther than ``max_distance`` from all of them.
    missing:
        What becomes of a row without usable coordinates: ``"refuse"`` or ``"drop"``; by default
        they are dropped where points outside are, and refused else.
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
    Any
        The same kind of object with a row for every row of the data that is not dropped, in their
        order, with a new index: that of the data may be a time or a name.
        Coordinates of reports without a place, as of a suppression, are NaN; where reports have no
        coordinates at all, their labels are in the column ``report``.

    Warns
    -----
    UserWarning
        How many rows were dropped or taken to the nearest place, and which columns that are kept
        have values that stand at one place each, as names of stations do.

    Raises
    ------
    ProblemError
        On missing columns, points outside where they are refused, labels that are none, and values
        of ``by`` that have several forms, such as lengths of time and dates as 01/02/2024.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> design = om.solve(problem)
    >>> reports = om.protect(design, np.array([[0.2, 0.3], [1.9, 1.1]]))
    >>> all(report in cells.points.tolist() for report in reports.tolist())  # centres of cells
    True
    """
    mechanism = design if isinstance(design, Anywhere) else mechanism_from(design, "design")
    rate = _rate_of(design)
    reporter = Reporter(mechanism, outside, max_distance, key, seed, missing, rate)
    kept, unveiled = _listed(keep), _listed(keep_place)
    asked = Asked(x, y, label, (*kept, *unveiled), _listed(by), report, unveiled=unveiled)
    out = _protected(reporter, data, asked)
    for line in reporter.said():
        warnings.warn(line, stacklevel=3)
    return out


def _protected(reporter: Reporter, data: Any, asked: Asked) -> Any:
    """Reports in the form that the data have."""
    if hasattr(data, "to_crs") and hasattr(data, "geometry"):
        return _geo(reporter, data, asked)
    if hasattr(data, "data_vars"):
        return _dataset(reporter, data, asked)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _frame(reporter, data, asked)
    _refuse_columns(asked, type(data).__name__, "x y label keep by report")
    return _plain(reporter, data)


def _rate_of(design: Any) -> float | None:
    """The ε of privacy at every point that a design or a packed file states; None without one."""
    if isinstance(design, Design):
        return promise_of(design.problem).epsilon
    stated = getattr(getattr(design, "header", None), "constraints", ())
    rates = [part["epsilon"] for part in stated if part["kind"] == "metric_privacy"]
    return next((rate for rate in rates if rate), None)


def _refuse_columns(asked: Asked, kind: str, names: str) -> None:
    """Raise ProblemError where one of them is named, and ``kind`` has no such thing."""
    for name in names.split():
        if getattr(asked, name) not in (None, ()):
            raise ProblemError(f"{kind} has no such columns", where=name, remedy="Leave it out")


def _found(
    asked: Asked,
    reporter: Reporter,
    known: list[Hashable],
    column: Callable[[Any], Any],
    chosen: Chosen | None = None,
    own: Sequence[Floats] = (),
) -> tuple[Replaced, Any, dict[Any, Any]]:
    """What is replaced, the rows that are left, and the new columns: of the ``chosen`` ones, whose
    coordinates as the data have them are ``own``, else of those that are asked for."""
    chosen = chosen or Chosen.of(asked.x, asked.y, asked.label, known)
    replaced = asked.replaced(chosen, reporter, known)
    values = [column(name) for name in chosen.names]
    if not chosen.labelled:
        own = own or [*chosen.points(values).T]
        reporter.noticed += asked.told(
            lambda name: column(name)[:_LOOKED_AT], own, reporter.geographic
        )
    drawn = drawn_of(chosen, reporter, values, reporter.repeated_by(asked.by, column))
    return replaced, drawn[0], replaced.columns(drawn)


def _taken(data: Any, names: Sequence[Any], rows: Any, new: dict[Any, Any]) -> Any:
    """Rows of a pandas table with columns that stay, in their order, and new ones; with an index
    from 0, as theirs may be the time, and without attributes."""
    out = data[[name for name in data.columns if name in names]].iloc[rows].reset_index(drop=True)
    out.attrs = {}
    for name, column in new.items():
        out[name] = column
    return out


def _plain(reporter: Reporter, data: Any) -> Any:
    """Points as an array, or labels as a list, an array or a pandas column."""
    labels = reporter.mechanism.observables.labels
    if isinstance(data, np.ndarray) and (
        data.dtype.kind == "V" or (data.ndim == 2 and data.dtype.kind not in "OSUT")
    ):
        _, reports = reporter.at_points(np.array(real_array(unmasked(data), "data")))
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
        found = _plain(reporter, np.array(listed, dtype=np.float64))
        return found if isinstance(found, list) else list(map(tuple, found.tolist()))
    _, reports = reporter.at_labels(listed)
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


def _frame(reporter: Reporter, data: Any, asked: Asked) -> Any:
    """A pandas table."""
    if (asked.x, asked.y, asked.label) == (None, None, None):
        found = coordinate_names(data.columns, reporter.geographic)
        asked = asked if found is None else replace(asked, x=found[0], y=found[1])
    if asked.x is not None and asked.y is not None and {asked.x, asked.y} <= set(data.columns):
        refuse_latitude_first(data[[asked.x, asked.y]], where="data")
    replaced, rows, new = _found(asked, reporter, list(data.columns), _cells_of(data))
    _note_attributes(reporter, data)
    return _taken(data, (*replaced.names, *asked.keep), rows, new)


def _note_attributes(reporter: Reporter, *holders: Any) -> None:
    if any(each.attrs for each in holders):
        reporter.noticed.append("attributes of the data are left out: they may say where it is")


def _dataset(reporter: Reporter, data: Any, asked: Asked) -> Any:
    """An xarray Dataset: variables along one dimension, which may be the levels of its index."""
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
    replaced, rows, new = _found(asked, reporter, known, _cells_of(data))
    ((dim,),) = dims
    wanted = (*replaced.names, *asked.keep)
    out = data.drop_vars([n for n in known if n not in wanted]).isel({dim: rows})
    _note_attributes(reporter, data, *out.variables.values())
    for each in (out, *out.variables.values()):
        each.attrs, each.encoding = {}, {}
    return out.assign({name: (dim, column) for name, column in new.items()})


def _geo(reporter: Reporter, data: Any, asked: Asked) -> Any:
    """A GeoPandas table of points, in its own reference system."""
    shapely = needed("shapely", "geo", where="protect")
    _refuse_columns(asked, "a table with a geometry", "x y label")
    kinds = set(data.geometry.geom_type.dropna())
    if kinds - {"Point"}:
        raise ProblemError(
            f"holds {', '.join(sorted(kinds))}", where="data", remedy="Give points only"
        )
    geometry, crs, cells = data.geometry.name, data.crs, _cells_of(data)
    degrees = reporter.geographic and crs is not None
    shown = data.geometry.to_crs(4326) if degrees else data.geometry
    points = {(geometry, axis): getattr(shown, axis) for axis in "xy"}
    replaced, rows, new = _found(
        asked,
        reporter,
        [name for name in data.columns if name != geometry],
        lambda name: points[name] if name in points else cells(name),
        Chosen(tuple(points), False),
        [np.asarray(each, dtype=np.float64) for each in (data.geometry.x, data.geometry.y)],
    )
    if replaced.places is None:
        raise ProblemError(
            "the reports have no coordinates in the plane",
            where="data",
            remedy="Give a table without a geometry, and take the column report",
        )
    _note_attributes(reporter, data)
    places = shapely.points(np.column_stack([new.pop(name) for name in points]))
    out = _taken(data, (*asked.keep, geometry), rows, new)
    series = type(data.geometry)(places, index=out.index, crs=4326 if degrees else crs)
    out[geometry] = series.to_crs(crs) if degrees else series
    return out


def _cells_of(data: Any) -> Callable[[Any], Any]:
    """The cells of a column by its name."""
    return lambda name: data[name].to_numpy()


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
