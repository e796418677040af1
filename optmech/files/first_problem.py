"""A first problem for a table. It promises privacy at every point of a region that wild rows do not
move, with places that stand for the fixes, reports where people are, and a finer mesh there; or,
where that is asked for, at the cells of a grid, at labelled places, or for labels alone."""

import math
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.labels import few_columns, is_degrees
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.files.draft import (
    MOST_CELLS,
    SHARE,
    Draft,
    Grid,
    Places,
    Wanted,
    head,
    listed,
    of_prior,
    text_of,
)
from optmech.files.extent import (
    apart,
    box_around,
    by,
    core_size,
    counted,
    noun,
    read_points,
    within,
)
from optmech.files.lattice import Lattice
from optmech.reading.columns import read_text_columns
from optmech.reading.errors import printable
from optmech.reading.tables import opened_table

_PLACES = 280
"""At most, that stand for the fixes: each is a cell of a lattice that holds some."""
_REPORTS = 36
_VERTICES, _MOST_VERTICES = 36, 72
"""Of the mesh, for a radius of a fifth of the region, and for smaller ones."""
_DEGREE = 3
_PARTS = 64
"""Of the region's extent, at least, that its bounds are whole multiples of: powers of two, so that
triangles can be halved exactly."""
_FINEST = 8.0
"""Cells of the lattice in the radius, at most: few places, such as homes, would each be the middle
of a cell of a metre otherwise, and reported as such."""
_PASSES = 40
_MOST_ROWS = 1e9
"""Of a lattice in a file."""
_MOST_LABELS = 300
_MAPPED = 1e4, 3e7
"""Of coordinates of projections in metres, such as UTM or a national grid."""
_MOST_RADII, _THIN = 60.0, 0.05


def first_problem(wanted: Wanted, beside: Path) -> Draft:
    """The text of a problem file that lies at ``beside``, and what should be known of it.

    Raises
    ------
    ProblemError
        On columns that are not there, and on data that give no domain.
    """
    factor = float(finite_array(wanted.factor, where="factor", ndim=0))
    if factor <= 1:
        raise ProblemError(
            f"{factor:g} must be above 1",
            where="factor",
            remedy="Give how many times as likely a report may be, such as 4",
        )
    if wanted.cells is not None:
        whole(wanted.cells, "cells", least=2, most=MOST_CELLS)
    file = _relative(wanted.data, beside)
    if wanted.x is None or wanted.y is None:
        return _labels(wanted, file)
    crs = wanted.crs
    named = wanted.degrees or is_degrees(wanted.x, wanted.y)
    degrees = named if crs is None else crs.degrees
    points, notes = read_points(wanted.data, wanted.pairs, degrees)
    if crs is not None:
        crs.require(wanted.data, (wanted.x, wanted.y), points)
        notes.append(
            f"coordinates are read as {crs.words}"
            + ("" if degrees else "; the reports will be in the same projection")
        )
    if wanted.bounds is not None:
        held, points = within(points, wanted.bounds, degrees)
        if not held.any():
            raise ProblemError("no row lies in them", where="bounds", remedy="Give others")
        out = counted(
            int((~held).sum()), len(held), "lie outside of the bounds", noun(wanted.pairs)
        )
        notes += [f"{out}, and do not count"] if out else []
        points = points[held]
    elif degrees and wanted.label is None:
        _refuse_apart(wanted.data, points)
    if wanted.more and (wanted.cells is not None or wanted.label is not None):
        raise ProblemError(
            "a row has several places, which cells and labels are not counted for",
            where="x",
            remedy="Give --x and --y of one place, or leave --cells and --label out",
        )
    made = Places if wanted.label is not None else Region if wanted.cells is None else Grid
    text, more = made(wanted, text_of(file), points, degrees).draft()
    notes = more + notes
    if crs is None and not degrees and (np.abs(points) <= (180, 90)).all() and (points % 1).any():
        notes.append(
            f"{wanted.x!r} and {wanted.y!r} are taken for the plane. If they are longitude and "
            "latitude in degrees, say --degrees, as distances are wrong otherwise"
        )
    if not degrees and not wanted.unit and _MAPPED[0] < np.abs(points).max() < _MAPPED[1]:
        notes.append(
            "the coordinates look like metres of a projection: with --crs EPSG:CODE they are "
            "checked, and with that or --unit m lengths are said in metres and kilometres; the "
            "reports will be in the same projection"
        )
    return text, notes


def _refuse_apart(data: Path, points: Floats) -> None:
    """Raise ProblemError where rows lie in several places that are far apart: a region around all
    of them would promise next to nothing to people of any."""
    several = apart(points)
    if len(several) < 2:
        return
    boxes = [_box_words(box_around(data, points[own], True)) for own in several]
    shares = [f"{100 * own.mean():.2g} %" for own in several]
    named = "; ".join(f"{share} in {box}" for share, box in zip(shares, boxes, strict=True))
    raise ProblemError(
        f"its rows lie in {len(several)} places that are far apart: {named}",
        where=data,
        remedy=f"Make a problem for each: --bounds {boxes[0]}. Or protect all of them at once, "
        f"without a design: optmech protect {data} --budget 5 -o OUT",
    )


def _box_words(box: Floats) -> str:
    """A box of degrees as --bounds takes it."""
    turn = 360 * np.floor((box[0] + 180) / 360)
    return ",".join(f"{value:.10g}" for value in (box - [turn, 0, turn, 0]).tolist())


class Region(Places):
    """Privacy at every point."""

    scope = "every point"
    what = "points"
    why = "a fifth of what most rows reach over"

    def bounds(self) -> Floats:
        """Those of the points, grown to multiples of a power of two, a sixty-fourth at most."""
        box = super().bounds()
        out = np.array(box)
        for k in range(2):
            unit = 2.0 ** np.floor(np.log2((box[k + 2] - box[k]) / _PARTS))
            out[k], out[k + 2] = np.floor(box[k] / unit) * unit, np.ceil(box[k + 2] / unit) * unit
        return out

    def reach(self) -> float:
        core = core_size(self.points) * self.lengths
        # of data at one place, or on a line, there is no core to go by
        thin = core.min() <= _THIN * self.size.min()
        return super().reach() if thin else SHARE * float(core.min())

    def draft(self) -> Draft:
        wanted, size, unit, radius = self.wanted, self.size, self.unit, self.radius
        lattice, held, counts = self.cells()
        places = lattice.place_of(held).require_points("be reported")
        reports = _busiest(places, counts, self.lengths, _REPORTS)
        cell = size / (lattice.columns, lattice.rows)
        # more for a radius that is small beside the region
        small = math.sqrt(0.2 * float(size.min()) / radius)
        vertices = min(_MOST_VERTICES, max(_VERTICES, round(_VERTICES * small)))
        x, y = map(_named, zip(*wanted.pairs, strict=True))
        rows = "" if wanted.uniform else f"file = {self.file}\nx = {x}\ny = {y}\n"
        lines = "".join(f"  {listed(place)},\n" for place in reports)
        text = f"""\
{head(f"every point around {wanted.data.name}", self.metric)}\
profile = "mesh"  # ends at a gap of 1e-3: the mesh is farther from the best of all mechanisms

[secrets]
# the loss is counted at the middles of cells of {by(cell, printable(unit))}\
{"" if wanted.uniform else " that hold rows"}
kind = "lattice"
bounds = {listed(self.box)}{"  # west, south, east, north" if self.degrees else ""}
rows = {lattice.rows}
columns = {lattice.columns}
{self.scale}{rows}
[observables]
kind = "{"lonlat" if self.degrees else "points"}"
{"" if self.degrees else self.scale}points = [
{lines}]

[prior]
kind = "{"uniform" if wanted.uniform else "counts"}"

[[constraints]]
kind = "metric_privacy"
# from points {self.apart()} apart a report is at most {wanted.factor:g} times as likely
epsilon = "{_rate_of(wanted.factor, radius)}"  # per {self.shown}
distance = "{self.metric}"
everywhere = {{ kind = "grid", bounds = {listed(self.box)}, \
width = {float(f"{1.01 * size.max():.3g}")!r}, vertices = {vertices}, degree = {_DEGREE} }}
"""
        notes = [
            f"private at every point of {by(size, unit)}, {self.between()}: a "
            f"mesh of about {vertices} vertices, finer where people are; "
            + ("1 place is" if len(reports) == 1 else f"{len(reports)} places are")
            + " reported",
            self.odds(math.log(wanted.factor) / radius),
            f"{len(held)} {'cell' if len(held) == 1 else 'cells'} of {by(cell, unit)} stand for "
            "the rows, where the loss is counted",
            *of_prior(wanted, reported=True),
            *self.left_out("region"),
            *self.guessed(),
        ]
        if len(reports) == 1 and not wanted.uniform:
            notes.append(
                "all rows lie in one cell, whose middle is the only report: whoever sees it knows "
                "where they are, whatever the radius. Start with --uniform, or with rows of a "
                "larger region"
            )
        across = float(np.hypot(*size)) / radius
        if across > _MOST_RADII:
            notes.append(
                f"the region is {across:.0f} times the radius across: the loss will be well above "
                "the least. Give a larger --radius, or the rows of a smaller region"
            )
        return text, notes

    def cells(self) -> tuple[Lattice, Ints, Floats]:
        """A lattice, those of its cells that are places, and what each counts for."""
        size = self.size
        lattice = self.lattice()
        if not self.wanted.uniform:
            cells = lattice.cells_of(self.points)
            held, counts = np.unique(cells[cells >= 0], return_counts=True)
            return lattice, held, counts.astype(np.float64)
        shorter = int(np.sqrt(_PLACES * size.min() / size.max()))
        columns, rows = np.maximum(np.rint(shorter * size / size.min()), 1).astype(int).tolist()
        lattice = lattice.model_copy(update={"columns": columns, "rows": rows})
        return lattice, np.arange(rows * columns), np.ones(rows * columns)

    def lattice(self) -> Lattice:
        """The finest lattice of about square cells whose occupied ones are few enough, and that are
        no small part of the radius."""
        size = self.size

        def of(count: float) -> tuple[Lattice, bool]:
            cells = np.maximum(np.rint(count * size[::-1] / size.max()), 1).astype(int).tolist()
            found = Lattice(
                kind="lattice", bounds=self.box.tolist(), rows=cells[0], columns=cells[1],
                coordinates="lonlat" if self.degrees else "plane",
            )  # fmt: skip
            held = np.unique(found.cells_of(self.points))
            return found, len(held[held >= 0]) <= _PLACES

        low, high = 1.0, min(max(_FINEST * size.max() / self.radius, 1.0), _MOST_ROWS)
        best, fits = of(high)
        if fits:
            return best
        # occupied cells grow with the count, nearly: the last that was few enough is taken
        best, _ = of(low)
        for _ in range(_PASSES):
            count = np.sqrt(low * high)
            found, fits = of(count)
            if fits:
                best, low = found, count
            else:
                high = count
            if high / low < 1.01:
                break
        return best


def _busiest(places: Floats, counts: Floats, unit: Floats, count: int) -> Floats:
    """``count`` of the places around which the others lie, as Lloyd's method finds them from the
    same start every time; where more are, these are closer together."""
    rng = np.random.default_rng(0)
    count = min(count, len(places))
    centres = places[rng.choice(len(places), count, replace=False, p=counts / counts.sum())]
    # distances, not their squares, are what is lost: less weight for what is crowded
    weights = np.sqrt(counts)
    for _ in range(_PASSES):
        nearest = _apart(places, centres, unit).argmin(axis=1)
        moved = centres.copy()
        for k in range(count):
            mine = nearest == k
            if mine.any():
                moved[k] = np.average(places[mine], axis=0, weights=weights[mine])
        if np.array_equal(moved, centres):
            break
        centres = moved
    # the places themselves: no mean of a few rows, which would be a finer point than any cell
    chosen = np.unique(_apart(places, centres, unit).argmin(axis=0))
    return np.asarray(places[chosen])


def _apart(places: Floats, centres: Floats, unit: Floats) -> Floats:
    return np.asarray((((places[:, None] - centres) * unit) ** 2).sum(axis=2))


def _rate_of(factor: float, radius: float) -> str:
    """The ε that allows a factor at a radius, exactly: a multiple of a logarithm."""
    part = 1 / Fraction(f"{radius:.12g}")
    head = "" if part == 1 else f"{part} "
    return f"{head}ln {Fraction(f'{factor:.12g}')}"


def _labels(wanted: Wanted, file: str) -> Draft:
    if wanted.label is None:
        with opened_table(wanted.data, 1) as table:
            known = list(table.known)
        raise ProblemError(
            "coordinates or labels have to say where a row is",
            where="x",
            remedy=f"Name x and y, or label; the columns are {few_columns(known)}",
        )
    found = Counter(read_text_columns(wanted.data, [wanted.label])[wanted.label])
    found.pop("", None)
    if not 2 <= len(found) <= _MOST_LABELS:
        raise ProblemError(
            f"the column {wanted.label!r} has {len(found):,} different labels",
            where=wanted.data,
            remedy=f"Name one with 2 to {_MOST_LABELS}, or columns with coordinates",
        )
    counts = "".join(f"{text_of(label)} = {n}\n" for label, n in found.items())
    prior = 'kind = "uniform"\n'
    if not wanted.uniform:
        prior = f"""\
# counted in {printable(file)}
kind = "counts"
smoothing = 1
[prior.counts]
{counts}"""
    factor = f"{wanted.factor:g}"
    exact = float(factor) == wanted.factor
    text = f"""\
{head(f"{wanted.label} of {wanted.data.name}", "hamming")}
[secrets]
kind = "labels"
labels = [{", ".join(map(text_of, found))}]

[prior]
{prior}
[[constraints]]
kind = "differential_privacy"
epsilon = {f'"ln {factor}"' if exact else repr(math.log(wanted.factor))}  # no report is more \
than {factor} times as likely for one label as for another
"""
    return text, of_prior(wanted)


def _named(names: tuple[str, ...]) -> str:
    listed = ", ".join(map(text_of, names))
    return listed if len(names) == 1 else f"[{listed}]"


def _relative(data: Path, beside: Path) -> str:
    """The data file as a problem file at ``beside`` names it."""
    try:
        return Path(os.path.relpath(data.resolve(), beside.resolve().parent)).as_posix()
    except ValueError:
        # on Windows there is no way from one drive to another
        return data.resolve().as_posix()
