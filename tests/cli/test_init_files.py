"""What ``optmech init`` writes and refuses: names, numbers and files of all kinds."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

ROWS = "x,y\n" + "".join(f"{k % 10},{k // 10}\n" for k in range(100))


def init(*argv: str) -> int:
    return main(["init", *argv])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plane.csv").write_text(ROWS)
    return tmp_path


def errors(capsys: pytest.CaptureFixture[str]) -> str:
    return "\n".join(
        line for line in capsys.readouterr().err.splitlines() if line.startswith("optmech: error")
    )


@pytest.mark.parametrize("name", ["problem.toml", "city.toml"])
def test_only_the_same_file_is_written_again(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init("plane.csv", "-o", name) == 0
    first = (folder / name).read_bytes()
    assert init("plane.csv", "-o", name) == 0
    # by somebody's hand
    (folder / name).write_bytes(first + b"# mine\n")
    capsys.readouterr()
    assert init("plane.csv", "-o", name) == 2
    assert "there already" in (said := errors(capsys))
    assert "--force" in said
    assert (folder / name).read_bytes() == first + b"# mine\n"
    # with other arguments too
    (folder / name).write_bytes(first)
    assert init("plane.csv", "-o", name, "--cells", "4") == 2
    assert (folder / name).read_bytes() == first
    assert init("plane.csv", "-o", name, "--cells", "4", "--force") == 0
    assert len(om.load_problem(folder / name).secrets) == 4


@pytest.mark.parametrize(
    "name",
    ["a\nb.csv", 'a"b.csv', "a\\b.csv", "a'''b.csv", "a\tb.csv", "a\x7fb.csv", "é\u2028.csv"],
)
@pytest.mark.parametrize("columns", [["--x", "x", "--y", "y"], ["--label", "x"]])
def test_whatever_a_file_is_called_the_problem_reads_back(
    name: str, columns: list[str], folder: Path
) -> None:
    (folder / name).write_text(ROWS)
    assert init(name, *columns, "--unit", "k\nm", "-o", "made.toml") == 0
    problem = om.load_problem(folder / "made.toml")
    counted = problem.prior.binning
    assert counted is not None
    assert counted.inside + counted.outside == 100


def test_a_name_that_is_no_text_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"caf\xe9.csv")
    (folder / name).write_text(ROWS)
    (folder / "old.toml").write_text("mine")
    for options in ([], ["--label", "x"], ["--x", "x", "--y", "y", "--label", "x"]):
        assert init(name, *options, "-o", "old.toml", "--force") == 2
        assert "is not UTF-8" in errors(capsys)
        # nothing but what reads back takes the place of a file
        assert (folder / "old.toml").read_text() == "mine"


SPREADS = [
    # values, and whether a grid can be made of them
    ([1e16 + 2 * k for k in range(9)], False),
    ([1e16 * (1 + k / 100) for k in range(9)], True),
    ([-1e308, 1e308, 0.0], False),
    ([1e300 * k for k in range(9)], False),
    ([5e-324 * k for k in range(9)], False),
    ([1e-60 * k for k in range(9)], True),
    ([5247000.125 + k for k in range(9)], True),
    ([-0.0, 0.0, 0.0], True),
    ([7.0], True),
]


@pytest.mark.parametrize(("values", "usable"), SPREADS, ids=[str(v[0][:2]) for v in SPREADS])
def test_coordinates_of_any_size(
    values: list[float], usable: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "far.csv").write_text("x,y\n" + "".join(f"{v!r},{v!r}\n" for v in values))
    one = ("--radius", "9e9") if len(set(values)) == 1 else ()
    assert init("far.csv", "--cells", "4", *one, "-o", "far.toml") == (0 if usable else 2)
    if not usable:
        assert "the coordinates reach" in errors(capsys)
        return
    counted = om.load_problem(folder / "far.toml").prior.binning
    assert counted is not None
    # the largest and the least of nine may be beyond, not more
    assert counted.inside >= len(values) - 2


@pytest.mark.parametrize("factor", ["1", "0.5", "0", "-3", "nan", "inf"])
def test_a_factor_is_named_as_it_was_given(factor: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert init("plane.csv", "--factor", factor, "-o", "f.toml") == 2
    said = errors(capsys)
    assert "--factor: " + factor in said
    assert "above 1" in said or "finite" in said


def test_cells_wider_than_the_radius_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # nine units across, rounded outwards by a tenth: eight cells of 9.1/8, and a radius of 1
    assert init("plane.csv", "--radius", "1", "--cells", "64", "-o", "r.toml") == 2
    said = errors(capsys)
    assert "1.137 x 1.137" in said
    more = said.partition("--cells ")[2].split(",")[0]
    assert init("plane.csv", "--radius", "1", "--cells", more, "-o", "r.toml") == 0
    grid = om.load_problem(folder / "r.toml").secrets
    assert isinstance(grid, om.Grid)
    assert max(grid.cell) <= 1
    wider = said.partition("--radius ")[2].rstrip(". ")
    assert init("plane.csv", "--cells", "64", "--radius", wider.split()[-1], "-o", "w.toml") == 0
    # one cell fewer on a side would be too wide again
    assert init("plane.csv", "--cells", "64", "--radius", "1e-9", "-o", "n.toml") == 2
    assert "smaller region" in errors(capsys)


def test_extent_cells_and_share_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # half of the rows in one town, half in another: nobody is wild, and cells are large
    rows = [(116 + k / 1000, 40 + k / 1000) for k in range(100)] + [(126.0, 46.0)] * 100
    (folder / "far.csv").write_text("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in rows))
    around = ("--bounds", "115.9,39.9,126.2,46.1")
    assert init("far.csv", "--cells", "64", *around, "-o", "far.toml") == 0
    said = capsys.readouterr().err
    grid = om.load_problem(folder / "far.toml").secrets
    assert isinstance(grid, om.Grid)
    assert f"{grid.rows} rows x {grid.columns} columns of cells of " in said
    # ten degrees of 111 km / cos 43 and six: cells of some hundred kilometres
    numbers = said.partition("cells of ")[2].partition(" km")[0].split(" x ")
    assert [float(n) for n in numbers] == pytest.approx(list(grid.cell), rel=1e-3)
    assert min(map(float, numbers)) > 50
    west, south, east, north = written_box(folder / "far.toml")
    assert west <= 116 < 126 <= east <= 127
    assert south <= 40 < 46 <= north <= 46.2
    assert f"longitude {west:g} to {east:g} and latitude {south:g} to {north:g}" in said


def test_two_cities_are_named_and_each_has_bounds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A third of the rows is on the other side of the earth; a few lie between."""
    rng = np.random.default_rng(5)
    first = rng.normal([-74, 40.75], 0.03, (200, 2))
    second = rng.normal([116.4, 39.9], 0.05, (100, 2))
    between = np.column_stack([np.linspace(-70, 110, 5), np.full(5, 50.0)])
    rows = np.vstack([first, second, between])
    (folder / "two.csv").write_text("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in rows.tolist()))
    for options in ((), ("--cells", "36")):
        assert init("two.csv", *options, "-o", "two.toml") == 2
        said = errors(capsys)
        assert "its rows lie in 2 places that are far apart" in said
        assert "optmech protect two.csv --budget 5 -o OUT" in said
        assert not (folder / "two.toml").exists()
    boxes = [part.split(";")[0].split(". ")[0] for part in said.split(" % in ")[1:]]
    counts = []
    for k, box in enumerate(boxes):
        assert init("two.csv", "--bounds", box, "--cells", "16", "-o", f"{k}.toml") == 0
        made = om.load_problem(folder / f"{k}.toml")
        assert made.prior.binning is not None
        counts.append(made.prior.binning.inside)
        assert written_box(folder / f"{k}.toml") == pytest.approx(list(map(float, box.split(","))))
    assert counts == [200, 100]
    # a town and the next are one region
    towns = np.vstack(
        [rng.normal([16.3, 48.2], 0.02, (90, 2)), rng.normal([16.7, 48.2], 0.02, (90, 2))]
    )
    (folder / "near.csv").write_text("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in towns.tolist()))
    assert init("near.csv", "-o", "near.toml") == 0


@pytest.mark.parametrize("box", ["1,2,3", "a,b,c,d", "3,0,2,1e9", "1,5,2,5", "nan,0,1,1"])
def test_bounds_that_are_none_are_refused(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert init("plane.csv", f"--bounds={box}", "-o", "b.toml") == 2
    assert "--bounds" in errors(capsys)


def test_rows_over_180_degrees_lie_in_bounds_that_do(folder: Path) -> None:
    rows = [(179 + k / 10, -17.0 + k / 20) for k in range(20)]
    lines = "".join(f"{x if x <= 180 else x - 360:.4f},{y}\n" for x, y in rows)
    (folder / "fiji.csv").write_text("lon,lat\n" + lines)
    box = "178.5,-17.5,-178.5,-15.5"
    assert init("fiji.csv", "--bounds", box, "--cells", "9", "-o", "f.toml") == 0
    counted = om.load_problem(folder / "f.toml").prior.binning
    assert counted is not None
    assert counted.inside == 20


def test_a_radius_without_a_unit_is_asked_about_in_degrees(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    rows = "".join(f"{x},{y}\n" for x, y in rng.normal([16, 48], 0.02, (50, 2)).tolist())
    (folder / "w.csv").write_text("lon,lat\n" + rows)
    for value in ("0.5", "500"):
        assert init("w.csv", "--radius", value, "-o", "w.toml") == 2
        assert f"{value} may be metres or kilometres. Give {value}m" in errors(capsys)
    assert init("w.csv", "-o", "w.toml") == 0
    assert "a fifth of what most rows reach over: so ε depends" in capsys.readouterr().err


def cloud(kind: str, rng: np.random.Generator, count: int) -> Any:
    """Rows that are not wild, shape (count, 2), in a unit of their own."""
    if kind == "normal":
        return rng.normal(size=(count, 2))
    if kind == "even":
        return rng.uniform(-2, 2, (count, 2))
    towns = np.array([[0.0, 0.0], [3.0, 1.0], [1.0, 4.0]])
    return towns[rng.choice(3, count, p=[0.6, 0.3, 0.1])] + 0.3 * rng.normal(size=(count, 2))


def written_box(path: Path) -> list[float]:
    """West, south, east and north of a problem's grid."""
    secrets = tomllib.loads(path.read_text())["secrets"]
    if "bounds" in secrets:
        return list(secrets["bounds"])
    (width, height), (x, y) = secrets["cell"], secrets["origin"]
    return [x, y, x + width * secrets["columns"], y + height * secrets["rows"]]


@pytest.mark.parametrize("kind", ["normal", "even", "towns"])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.019, 0.04])
@pytest.mark.parametrize("degrees", [True, False])
def test_wild_rows_move_no_grid_and_are_counted(
    kind: str, share: float, degrees: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few rows a thousand times as far away, exchanged or zero: the grid is that of the others."""
    rng = np.random.default_rng(round(1000 * share) + 10 * len(kind) + degrees)
    middle, size = ((8.5, 47.4), (0.05, 0.03)) if degrees else ((3000.0, 200.0), (5.0, 2.0))
    rows = middle + np.array(size) * cloud(kind, rng, 3000)
    names, wild = ("lon,lat" if degrees else "x,y"), max(3, round(3000 * share))
    clean = rows[wild:]
    rows[:wild] = np.where(rng.random((wild, 1)) < 0.5, rows[:wild, ::-1], rng.choice(
        [-40.0, 0.0, 70.0], (wild, 2)))  # fmt: skip

    def grid_of(name: str, points: Any) -> tuple[list[float], str]:
        (folder / name).write_text(
            f"{names}\n" + "".join(f"{x!r},{y!r}\n" for x, y in points.tolist())
        )
        assert init(name, "-o", "wild.toml", "--force", "--cells", "16") == 0
        return written_box(folder / "wild.toml"), capsys.readouterr().err

    box, said = grid_of("wild.csv", rows)
    own, _ = grid_of("clean.csv", clean)
    for k in range(2):
        assert box[k + 2] - box[k] <= 1.2 * (own[k + 2] - own[k])
    inside = (rows >= box[:2]) & (rows <= box[2:])
    assert not inside[:wild].all(axis=1).any()
    out = rows[~inside.all(axis=1)]
    assert len(out) <= wild + 0.01 * 3000
    assert f"{len(out):,} of 3,000 rows" in said
    # how far the farthest is: along the sphere, or straight
    if degrees:
        near = np.clip(out, box[:2], box[2:])
        unit = [np.array([np.cos(np.radians(q[:, 1])) * np.cos(np.radians(q[:, 0])),
                          np.cos(np.radians(q[:, 1])) * np.sin(np.radians(q[:, 0])),
                          np.sin(np.radians(q[:, 1]))]) for q in (out, near)]  # fmt: skip
        far = 2 * 6371.0088 * np.arcsin(np.linalg.norm(unit[0] - unit[1], axis=0) / 2).max()
    else:
        far = max(math.dist(p, np.clip(p, box[:2], box[2:])) for p in out)
    stated = float(said.partition("up to ")[2].split()[0].replace(",", ""))
    assert stated == pytest.approx(far, rel=6e-3)
    turned = (out[:, ::-1] >= box[:2]) & (out[:, ::-1] <= box[2:])
    exchanged = int(turned.all(axis=1).sum())
    assert (f"{exchanged:,} of 3,000 rows" in said) == (exchanged > 0)


@pytest.mark.parametrize("tail", ["cauchy", "lognormal", "one place", "two places"])
@pytest.mark.parametrize("count", [1, 2, 3, 19, 21, 400])
def test_a_grid_holds_nine_rows_of_ten_whatever_they_are(
    tail: str, count: int, folder: Path
) -> None:
    rng = np.random.default_rng(count)
    rows = {
        "cauchy": rng.standard_cauchy((count, 2)),
        "lognormal": rng.lognormal(0, 3, (count, 2)),
        "one place": np.where(rng.random((count, 1)) < 0.98, 5.0, rng.random((count, 2)) * 100),
        "two places": rng.choice([1.0, 9.0], (count, 2)),
    }[tail]
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows.tolist()))
    assert init("t.csv", "-o", "t.toml", "--cells", "16", "--radius", "9e9") == 0
    binning = om.load_problem(folder / "t.toml").prior.binning
    assert binning is not None
    assert binning.inside >= 0.9 * count
    # what is beyond is ever a twentieth along each axis at most
    assert count >= 20 or binning.outside == 0


@pytest.mark.parametrize(
    ("rows", "columns", "options", "said"),
    [
        ([(39.9 + k / 99, 116.4 + k / 99) for k in range(50)], "lon,lat", (), "other way around"),
        ([(39.9 + k / 99, 116.4) for k in range(20)] + [(116.4, 39.9)] * 19, "lon,lat", (),
         "20 of 39 rows have none in degrees"),
        ([(2600000.5 + k, 1200000.5 + k) for k in range(9)], "lon,lat", (), "projection"),
        ([(47.4 + k / 99, 8.5) for k in range(9)], "lat,lon", ("--x", "lat", "--y", "lon"),
         "Give --x lon --y lat"),
        ([(47.4 + k / 99, 8.5) for k in range(9)], "pos_lat,pos_lng",
         ("--x", "pos_lat", "--y", "pos_lng"), "Give --x pos_lng --y pos_lat"),
    ],
)  # fmt: skip
def test_columns_the_other_way_around_are_refused(
    rows: list[tuple[float, float]], columns: str, options: tuple[str, ...], said: str,
    folder: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (folder / "s.csv").write_text(f"{columns}\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows))
    assert init("s.csv", *options, "-o", "s.toml") == 2
    assert said in errors(capsys)
    assert not (folder / "s.toml").exists()


@pytest.mark.parametrize(
    ("lon", "lat"), [(90, 90), (90, -90), (360, 0), (-360, 0), (360, 90), (0, 89.999999), (180, 90)]
)
@pytest.mark.parametrize("count", [1, 30])
def test_rows_at_the_ends_of_the_globe(lon: float, lat: float, count: int, folder: Path) -> None:
    (folder / "end.csv").write_text("lon,lat\n" + f"{lon},{lat}\n" * count)
    assert init("end.csv", "-o", "end.toml", "--cells", "4", "--radius", "99km") == 0
    west, south, east, north = written_box(folder / "end.toml")
    assert -360 <= west < east <= 360
    assert -90 <= south < north <= 90
    counted = om.load_problem(folder / "end.toml").prior.binning
    assert counted is not None
    assert counted.inside == count


def test_rows_that_lie_nowhere_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [f"{116.4 + k / 990!r},{39.9 + k / 990!r}" for k in range(97)]
    rows = [*good, "39.9,116.4", "40,116.5", ",", "x,1"]
    (folder / "n.csv").write_text("lon,lat\n" + "\n".join(rows) + "\n")
    assert init("n.csv", "-o", "n.toml") == 0
    said = capsys.readouterr().err
    assert "2 of 101 rows (2 %) have no coordinates" in said
    assert (
        "2 of 99 rows (2 %) have a latitude ('lat') or longitude ('lon') that there is not" in said
    )
    assert "may be the other way around" in said


def test_a_grid_over_the_antimeridian_is_no_wider_than_the_points(folder: Path) -> None:
    # 21 points along a parallel, 40 km around 180 degrees: half of them are at -180 and more
    rows = [((179.8 + k / 50 + 180) % 360 - 180, -17 + k % 3 / 10) for k in range(21)]
    (folder / "fiji.csv").write_text("lon,lat\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows))
    assert init("fiji.csv", "--cells", "16", "-o", "fiji.toml") == 0
    problem = om.load_problem(folder / "fiji.toml")
    grid, counted = problem.secrets, problem.prior.binning
    assert isinstance(grid, om.Grid)
    assert counted is not None
    assert counted.inside >= 19
    across = math.radians(0.4) * 6371 * math.cos(math.radians(17))
    assert grid.cell[0] * grid.columns == pytest.approx(across, rel=0.15)
    # the same place, written either way
    here, there = grid.locate([[180.05, -16.9], [-179.95, -16.9]])
    assert here == there >= 0


def test_a_map_of_the_whole_earth_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(-170 + 20 * k, k % 7 * 10) for k in range(18)]
    (folder / "all.csv").write_text("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in rows))
    assert init("all.csv", "-o", "all.toml") == 2
    assert "not flat" in errors(capsys)


def test_degrees_that_are_called_x_and_y_are_doubted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "deg.csv").write_text("x,y\n" + "".join(f"{8 + k / 97},47.5\n" for k in range(50)))
    assert init("deg.csv", "-o", "deg.toml") == 0
    assert "degrees" in capsys.readouterr().err
    assert init("plane.csv", "-o", "p.toml") == 0
    assert "degrees" not in capsys.readouterr().err


def test_every_column_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "four.csv").write_text("veh,when,E1,N1\n1,2,3,4\n")
    assert init("four.csv") == 2
    assert "'veh', 'when', 'E1', 'N1'" in errors(capsys)


def test_no_count_in_the_title_that_an_edit_makes_false(folder: Path) -> None:
    assert init("plane.csv", "-o", "p.toml") == 0
    text = (folder / "p.toml").read_text()
    (folder / "p.toml").write_text(text.replace("rows = 8", "rows = 4"))
    assert "8" not in om.load_problem(folder / "p.toml").title


def swiss(folder: Path) -> Any:
    """Points within 10 km of Bern, which is E 2,600,000 m and N 1,200,000 m by definition."""
    points = np.array([2.6e6, 1.2e6]) + np.random.default_rng(5).normal(size=(300, 2)) * 4000
    rows = [f"{x:.1f},{y:.1f}\n" for x, y in points]
    (folder / "lv95.csv").write_text("E,N\n" + "".join(rows))
    (folder / "swapped.csv").write_text("N,E\n" + "".join(rows))
    # the radius of the sphere of web maps, and Bern in degrees
    lat = np.log(np.tan(np.pi / 4 + np.radians(46.951) / 2))
    web = 6378137 * np.array([np.radians(7.4386), lat])
    stretched = web + (points - [2.6e6, 1.2e6]) / np.cos(np.radians(46.951))
    (folder / "web.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in stretched))
    degrees = np.array([7.4386, 46.951]) + (points - [2.6e6, 1.2e6]) / [76_000, 111_200]
    (folder / "degrees.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in degrees))
    return points


def test_a_reference_system_says_unit_and_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyproj")
    points = swiss(folder)
    assert init("lv95.csv", "--crs", "EPSG:2056", "--radius", "500m", "-o", "p.toml") == 0
    said = capsys.readouterr().err
    assert "taking 'E' and 'N' for the coordinates" in said
    assert "EPSG:2056 (CH1903+ / LV95)" in said
    # four to one at 500 m: 4^(1/5) at 100 m, 16 at 1 km
    assert "100 m apart at most 1.32 times" in said
    assert "1 km apart at most 16 times" in said
    document = tomllib.loads((folder / "p.toml").read_text())
    assert document["secrets"]["unit"] == "m"
    problem = om.load_problem(folder / "p.toml")
    epsilon = float(problem.constraints[0].epsilon)  # type: ignore[attr-defined]
    assert epsilon * 500 == pytest.approx(math.log(4), rel=1e-9)
    low, high = points.min(axis=0), points.max(axis=0)
    west, south, east, north = document["secrets"]["bounds"]
    assert west <= np.quantile(points[:, 0], 0.02) < np.quantile(points[:, 0], 0.98) <= east
    assert east - west < 1.5 * (high - low)[0]
    assert north - south < 1.5 * (high - low)[1]


@pytest.mark.parametrize(
    ("argv", "said", "remedy"),
    [
        (("swapped.csv", "--crs", "2056"), "outside of where", "--x N --y E"),
        (("lv95.csv", "--x", "N", "--y", "E", "--crs", "2056"), "outside of where", "--x E --y N"),
        (("web.csv", "--crs", "EPSG:3857"), "up to 1.47 times", "EPSG:32632"),
        (("web.csv", "--crs", "EPSG:2056"), "outside of where", "reference system"),
        (("lv95.csv", "--crs", "EPSG:999999"), "not known to pyproj", "number"),
        (("lv95.csv", "--crs", "/etc/passwd"), "no EPSG code", "EPSG:2056"),
        (("lv95.csv", "--crs", "EPSG:5728"), "no coordinates", "map"),
        (("lv95.csv", "--crs", "2056", "--unit", "km"), "is in m", "Leave one"),
        (("lv95.csv", "--crs", "2056", "--degrees"), "no degrees", "Leave one"),
        (("lv95.csv", "--crs", "4326"), "have none in degrees", "projection"),
    ],
)
def test_other_reference_systems_are_refused(
    argv: tuple[str, ...], said: str, remedy: str, folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("pyproj")
    swiss(folder)
    assert init(*argv, "-o", "p.toml") == 2
    error = errors(capsys)
    assert said in error
    assert remedy in error


def test_degrees_in_x_and_y_are_degrees_by_their_system(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyproj")
    swiss(folder)
    for option in (("--crs", "EPSG:4326"), ("--degrees",)):
        assert init("degrees.csv", *option, "--radius", "1km", "-o", "d.toml", "--force") == 0
        assert tomllib.loads((folder / "d.toml").read_text())["loss"] == "haversine"
    assert init("degrees.csv", "-o", "x.toml") == 0
    assert "say --degrees" in capsys.readouterr().err


def test_a_projection_that_nobody_names_is_asked_about(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swiss(folder)
    assert init("lv95.csv", "-o", "p.toml") == 0
    assert "with --crs EPSG:CODE they are checked" in capsys.readouterr().err


def test_a_region_over_the_antimeridian_is_private_at_every_point(folder: Path) -> None:
    """The default over 180 degrees: 40 km across, reports on both sides, one place either way."""
    rows = [((179.8 + k / 50 + 180) % 360 - 180, -17 + k % 3 / 10) for k in range(21)]
    (folder / "fiji.csv").write_text("lon,lat\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows))
    assert init("fiji.csv", "--radius", "10km", "-o", "fiji.toml") == 0
    assert main(["solve", "fiji.toml", "-q", "--gap", "0.05", "-o", "d.json"]) == 0
    design = om.Design.load(folder / "d.json")
    vertices = design.region.mesh.vertices
    across = (vertices[:, 0].max() - vertices[:, 0].min()) * 111.19 * math.cos(math.radians(17))
    assert 40 < across < 60
    argv = ["protect", "d.json", "fiji.csv", "--seed", "1", "--outside", "refuse", "-o", "out.csv"]
    argv += ["--rows-are-people", "--keep-order"]
    assert main(argv) == 0
    reports = [line.split(",") for line in (folder / "out.csv").read_text().splitlines()[1:]]
    assert len(reports) == 21
    # no report is on the other side of the earth
    for (x, y), report in zip(rows, reports, strict=True):
        turn = (float(report[0]) - x + 180) % 360 - 180
        assert math.hypot(turn * 106.3, (float(report[1]) - y) * 111.2) < 60
    here, there = design.mechanism.at([[180.05, -16.9], [-179.95, -16.9]])
    assert here.tolist() == there.tolist()


@pytest.mark.parametrize(
    "names", ["Längengrad,Breitengrad", "longitud,latitud", "start_longitudine,start_latitudine"]
)
def test_degrees_are_recognised_in_other_languages(folder: Path, names: str) -> None:
    rows = "".join(f"{8.5 + 0.001 * (k % 17)},{47.3 + 0.001 * (k % 13)}\n" for k in range(300))
    (folder / "t.csv").write_text(f"{names}\n{rows}", encoding="utf-8")
    assert init("t.csv", "-o", "p.toml") == 0
    assert om.load_problem("p.toml").secrets.coordinates == "lonlat"


def test_cells_are_compared_with_the_radius_they_have_to_a_twentieth(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The side of the square is 9.1 and a bit: 25 cells are 1.82 wide beside a radius of 1.8, which
    is a fifth of it with two digits, and 9 cells 3.03 wide."""
    assert init("plane.csv", "--cells", "25", "--unit", "km", "-o", "p.toml") == 0
    said = capsys.readouterr().err
    assert "wider" not in said
    grid = om.load_problem("p.toml").secrets
    assert isinstance(grid, om.Grid)
    radius = math.log(4) / float(om.load_problem("p.toml").constraints[0].epsilon)
    assert radius < max(grid.cell) < 1.05 * radius
    assert init("plane.csv", "--cells", "9", "--unit", "km", "-o", "q.toml") == 0
    said = capsys.readouterr().err
    problem = om.load_problem("q.toml")
    assert isinstance(problem.secrets, om.Grid)
    apart = problem.constraints[0].epsilon * max(problem.secrets.cell)
    stated = float(said.partition("reports are at most ")[2].split()[0])
    # of three digits, rounded up
    assert math.exp(apart) <= stated <= 1.01 * math.exp(apart)
    # the design of these cells does not exceed it between neighbours, and comes close to it
    matrix = om.solve(problem).matrix
    found = max(
        float((matrix[a] / matrix[b]).max())
        for a in range(9) for b in range(9)
        if sum(abs(p - q) for p, q in zip(divmod(a, 3), divmod(b, 3), strict=True)) == 1
    )  # fmt: skip
    assert 0.9 * stated <= found <= stated


@pytest.mark.parametrize("kind", ["region", "cells", "places"])
@pytest.mark.parametrize("unit", ["km", "m", ""])
def test_odds_or_the_radius_are_said_of_every_kind_of_problem(
    kind: str, unit: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{k % 10},{k // 10},p{k % 7}" for k in range(100)]
    (folder / "t.csv").write_text("\n".join(["x,y,name", *rows]) + "\n")
    options = {"region": [], "cells": ["--cells", "16"], "places": ["--label", "name"]}[kind]
    argv = ["t.csv", "--x", "x", "--y", "y", *options, "--radius", "2.5", "--factor", "3"]
    assert init(*argv, *(["--unit", unit] if unit else []), "-o", "p.toml") == 0
    said = capsys.readouterr().err
    if not unit:
        assert "2.5 (in the unit of the coordinates) apart a report is at most 3 times" in said
        return
    # 3^(d / 2.5), d with the diagonal of two positions in their cells
    grid = om.load_problem("p.toml").secrets
    slack = math.hypot(*grid.cell) if isinstance(grid, om.Grid) else 0.0
    scale = {"km": 1000, "m": 1}[unit]
    factor = 3 ** ((1000 / scale + slack) / 2.5)
    if factor > 1e6:
        assert "1 km apart over a million times" in said
        return
    stated = float(said.partition("; 1 km apart at most ")[2].split()[0].replace(",", ""))
    assert stated == pytest.approx(factor, rel=0.01)


@pytest.mark.parametrize("options", [[], ["--cells", "16"], ["--label", "id"]])
@pytest.mark.parametrize("count", [1, 100])
def test_data_at_one_place_are_no_extent(
    options: list[str], count: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{k},8.5,47.3\n" for k in range(count))
    (folder / "one.csv").write_text("id,lon,lat\n" + rows)
    argv = ["one.csv", "--x", "lon", "--y", "lat", *options, "-o", "p.toml"]
    assert init(*argv) == 2
    said = capsys.readouterr().err
    assert "--radius: all rows lie at one place, and nothing else says" in said
    assert not (folder / "p.toml").exists()
    assert init(*argv, "--radius", "2km") == 0
    said = capsys.readouterr().err
    assert "in odds" in said
    assert "1 places" not in said
    assert "1 cells" not in said
    # no exponents
    assert "e-0" not in said
    assert init(*argv, "--radius", "500m", "--force") == 0
    assert "the data lie" not in capsys.readouterr().err


def test_a_small_default_radius_is_doubted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{x / 1000},{y / 1000}\n" for x in range(10) for y in range(10))
    (folder / "small.csv").write_text("x,y\n" + rows)
    assert init("small.csv", "--unit", "km", "-o", "p.toml") == 0
    assert "hides little. Say with --radius" in capsys.readouterr().err
    assert init("plane.csv", "--unit", "km", "-o", "q.toml") == 0
    assert "hides little" not in capsys.readouterr().err


def test_places_of_a_row_are_counted_as_places(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 100 rows with two ends three lie elsewhere by their second, and five have none."""
    ends = ["" for _ in range(5)], ["0,0" for _ in range(3)]
    second = [e or "," for e in [*ends[0], *ends[1]]]
    second += [f"{8.5 + k % 9 / 100},{47.3 + k % 11 / 100}" for k in range(92)]
    rows = [f"{8.5 + k % 7 / 100},{47.3 + k % 13 / 100},{second[k]}\n" for k in range(100)]
    (folder / "ends.csv").write_text("a_lon,a_lat,b_lon,b_lat\n" + "".join(rows))
    argv = ["ends.csv", "--pair", "a_lon,a_lat", "--pair", "b_lon,b_lat", "-o", "p.toml"]
    assert init(*argv) == 0
    said = capsys.readouterr().err
    assert "5 of 200 places (2.5 %) have no coordinates" in said
    assert "3 of 195 places (1.5 %) lie outside" in said
    # of those of one end it is rows
    assert init("ends.csv", "--x", "b_lon", "--y", "b_lat", "-o", "q.toml") == 0
    assert "5 of 100 rows (5 %) have no coordinates" in capsys.readouterr().err
    # and the problem counts what is empty apart from what is elsewhere
    counted = om.load_problem("p.toml").prior.binning
    assert counted is not None
    assert (counted.inside, counted.outside, counted.missing) == (192, 3, 5)


@pytest.mark.parametrize(
    ("corner", "size", "ends"),
    [
        ((2592000, 5459800), (14000, 9), ("2,59", "5,459,8")),
        ((0, 0), (5e6, 5e6), ("0 to 5", "0 to 5")),
        ((8.5, 47.3), (0.0002, 3), ("8.5 to 8.5002", "47.")),
        ((8.5, 47.3), (4e-5, 5e-5), ("8.5 to 8.50004", "47.3")),
    ],
)
def test_extents_are_said_so_that_they_are_seen(
    corner: tuple[float, float], size: tuple[float, float], ends: tuple[str, str],
    folder: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """No exponent, no two ends alike: read back, they are those of the file to a hundredth."""
    steps = np.random.default_rng(1).random((300, 2)) * size + corner
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in steps.tolist()))
    for options in ([], ["--cells", "16"]):
        assert init("t.csv", *options, "--unit", "m", "-o", "p.toml", "--force") == 0
        said = capsys.readouterr().err
        assert "e+0" not in said
        assert "e-0" not in said
        found = said.partition(", x ")[2].split("\n")[0].split(":")[0].replace(",", "").split()
        west, east, south, north = (float(found[k]) for k in (0, 2, 5, 7))
        box = written_box(folder / "p.toml")
        assert [west, east] == pytest.approx([box[0], box[2]], abs=0.01 * (box[2] - box[0]))
        assert [south, north] == pytest.approx([box[1], box[3]], abs=0.01 * (box[3] - box[1]))
        assert ends[0] in said
        assert ends[1] in said


def test_the_column_without_a_number_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "n.csv").write_text("lon,lat\n8.5,north\n8.6,south\n")
    assert init("n.csv", "-o", "n.toml") == 2
    assert "no row has numbers in 'lat'." in errors(capsys)


def test_areas_are_named_in_whole_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyproj")
    swiss(folder)
    # Monte Mario's area has a long name, LV95's ends with a point
    for code in ("EPSG:3003", "EPSG:25833"):
        assert init("lv95.csv", "--crs", code, "-o", "a.toml") == 2
        said = errors(capsys)
        area = said.partition(" is used: ")[2].partition(". ")[0]
        assert ".." not in said
        import pyproj

        whole = pyproj.CRS(code).area_of_use.name
        assert area.endswith("…") == (len(whole) > 120)
        words = area.removesuffix("…").split()
        assert whole.split()[: len(words) - 1] == words[:-1]
        assert whole.split()[len(words) - 1].rstrip(".") == words[-1].rstrip(".")


@pytest.mark.parametrize("kind", ["dots", "pole"])
def test_no_more_degrees_than_there_are_are_said(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    lon, lat = (
        rng.uniform(-180, 180, 900),
        rng.uniform(*((-90, 90) if kind == "dots" else (89, 90)), 900),
    )
    rows = "".join(f"{x:.5f},{y:.5f}\n" for x, y in zip(lon, lat, strict=True))
    (tmp_path / "t.csv").write_text("lon,lat\n" + rows)
    assert main(["init", str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.toml")]) == 2
    found = re.search(r"over ([\d.]+) degrees of longitude", capsys.readouterr().err)
    assert found
    assert 350 < float(found[1]) <= 360


def test_a_problem_of_cells_says_that_it_is_of_their_centres(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = "".join(f"{x:.5f},{y:.5f}\n" for x, y in rng.normal((8.5, 47.4), 0.02, (500, 2)))
    (tmp_path / "t.csv").write_text("lon,lat\n" + rows)
    argv = ["init", str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.toml"), "--force"]
    for cells in ("9", "64"):
        assert main([*argv, "--cells", cells]) == 0
        assert "reports of centres of cells that far apart" in (tmp_path / "p.toml").read_text()
    assert main(argv) == 0
    assert "from points" in (tmp_path / "p.toml").read_text()


@pytest.mark.parametrize("count", [1, 40])
def test_a_single_report_is_said_to_tell_where_rows_are(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("lon,lat\n" + "8.5,47.4\n" * count)
    argv = ["init", str(tmp_path / "t.csv"), "--radius", "500m", "--force"]
    argv += ["-o", str(tmp_path / "p.toml")]
    assert main(argv) == 0
    assert "whose middle is the only report" in capsys.readouterr().err
    assert main([*argv, "--uniform"]) == 0
    assert "only report" not in capsys.readouterr().err


def test_columns_that_one_may_name_are_all_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"field_{k}" for k in range(14)]
    table = tmp_path / "t.csv"
    table.write_text(",".join(names) + "\n" + "\n".join([",".join(["a"] * 14)] * 5) + "\n")
    capsys.readouterr()
    assert main(["init", str(table), "-o", str(tmp_path / "p.toml")]) == 2
    said = capsys.readouterr().err
    assert all(repr(name) in said for name in names)


@pytest.mark.parametrize("beside", [
    ["lat"], ["lon"], ["lat", "lon"], ["x"], ["x", "y"], ["Longitude"], ["start_lat", "end_lat"],
    ["easting", "northing"], [],
])  # fmt: skip
def test_the_geometry_says_where_a_point_is(
    beside: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the properties beside it are called, and whatever they hold."""
    rng = np.random.default_rng(3)
    points = rng.uniform((12, 41), (13, 42), (40, 2)).tolist()
    features = [
        {
            "type": "Feature",
            "properties": dict.fromkeys(beside, 7.5) | {"id": k},
            "geometry": {"type": "Point", "coordinates": point},
        }
        for k, point in enumerate(points)
    ]
    monkeypatch.chdir(tmp_path)
    content = json.dumps({"type": "FeatureCollection", "features": features})
    Path("a.geojson").write_text(content)
    assert main(["init", "a.geojson", "-o", "p.toml"]) == 0
    written = tomllib.loads(Path("p.toml").read_text())
    assert (written["secrets"]["x"], written["secrets"]["y"]) == ("longitude", "latitude")
    west, south, east, north = written["secrets"]["bounds"]
    assert 11 < west < 12.1
    assert 40 < south < 41.1
    assert 12.9 < east < 14
    assert 41.9 < north < 43


@pytest.mark.parametrize("radius", [1.7, 2.1, 2.3, 3.1, 3.7])
@pytest.mark.parametrize("unit", ["", "km"])
def test_the_factor_at_the_radius_is_one_at_most(radius: float, unit: str, folder: Path) -> None:
    """ε of a problem over cells has few digits."""
    options = ["--unit", unit] if unit else []
    assert (
        init("plane.csv", "--cells", "100", "--radius", str(radius), "-o", "p.toml", *options) == 0
    )
    stated = tomllib.loads((folder / "p.toml").read_text())["constraints"][0]
    factor = math.exp(stated["epsilon"] * radius)
    assert 3.9 < factor <= 4


def test_degrees_are_named_where_no_unit_is_known(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "west.csv").write_text("Länge;Breite\n-122,42;37,77\n-74,0;40,72\n", encoding="utf-8")
    options = ["--x", "Länge", "--y", "Breite", "--radius", "500m", "-o", "p.toml"]
    assert init("west.csv", *options) == 2
    said = errors(capsys)
    assert "--degrees, --unit m or --unit km" in said


def test_a_radius_that_is_too_small_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ε is ln 2 over it, which is beyond the floats at 1e-320."""
    (folder / "d.csv").write_text("x,y\n1,2\n3,4\n5,9\n", encoding="utf-8")
    for radius in ("1e-320", "5e-324", "1e-201"):
        argv = ["init", str(folder / "d.csv"), "--x", "x", "--y", "y", "--radius", radius]
        assert main([*argv, "-o", str(folder / "p.toml")]) == 2
        assert "--radius: is too small" in capsys.readouterr().err
        assert not (folder / "p.toml").exists()
