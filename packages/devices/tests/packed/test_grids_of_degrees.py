"""Grids over bounds in degrees: Python, JavaScript and C read the same files and find the same
places, next to a pole, around the whole globe, and however longitudes are written."""

from __future__ import annotations

import functools
import json
import math
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_audit import places as audited
from optmech_devices.packed.cbor import decode, encode, typed
from optmech_devices.packed.places import encode_places
from packed import native
from packed.readers import CLIENT, sealed
from packed.test_client import VECTORS
from plainly import plainly

import optmech as om

pytestmark = pytest.mark.skipif(
    native.compiler() is None or shutil.which("node") is None, reason="no compiler of C, or no Node"
)
Box = tuple[float, float, float, float]
ROWS, COLUMNS = 4, 5


def content(places: dict[str, Any], outside: str = "nearest") -> bytes:
    """The committed file of 4 x 5 cells, with other places."""
    form, header, rows, _ = decode((VECTORS / "grid.omm").read_bytes()).value
    body = {**decode(header), "secrets": places, "outside": outside}
    return sealed(form, encode(body), rows)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.built(tmp_path_factory.mktemp("c"), "-O1")


def answers(
    program: Path, folder: Path, files: list[bytes], positions: list[list[float]]
) -> list[list[Any]]:
    """What each of the three makes of every file: its places of the positions, and the coordinates
    of its reports; "refused" where it is not read."""
    paths = [folder / f"{k}.omm" for k in range(len(files))]
    for path, own in zip(paths, files, strict=True):
        path.write_bytes(own)
    (folder / "asked.json").write_text(json.dumps([[str(p), None, positions, []] for p in paths]))
    node = ["node", str(native.HERE / "readers.mjs"), str(CLIENT), str(folder / "asked.json")]
    javascript = json.loads(subprocess.run(node, capture_output=True, check=True).stdout)
    reader = native.Native(program)
    found: list[list[Any]] = []
    for path, in_javascript in zip(paths, javascript, strict=True):
        in_python: Any = "refused"
        try:
            packed = om.load_packed(path)
        except om.OptmechError:
            pass
        else:
            labels = packed.secrets.labels
            at = [packed.locate(position) for position in positions]
            seen = np.flatnonzero(packed.matrix.any(axis=0)).tolist()
            where = [packed.coordinates(packed.observables.labels[k]) for k in seen]
            in_python = [[-1 if p is None else labels.index(p) for p in at], [*map(list, where)]]
        if in_javascript != "refused":
            where = [part[1] for part in in_javascript["reports"]]
            in_javascript = [in_javascript["places"], where]
        in_c: Any = "refused"
        if reader.open(path) is not None:
            in_c = [[reader.locate(p) for p in positions], [part[1] for part in reader.reports()]]
        found.append([in_python, in_javascript, in_c])
    reader.close()
    return found


def polar(rng: random.Random, pole: int) -> Box:
    """A box that ends between a hundredth of a millimetre and 3 km from a pole."""
    away = 10 ** rng.uniform(-10, math.log10(3 / 111))
    first, last = sorted([away, away * rng.uniform(0, 0.9) * rng.choice([0, 1])])
    west = rng.uniform(-180, 179)
    east = rng.uniform(west + 1e-6, 180)
    south, north = sorted([pole * (90 - first), pole * (90 - last)])
    return west, south, east, north


def test_grids_next_to_a_pole_are_read_by_all(program: Path, tmp_path: Path) -> None:
    """Those that Python makes, on which cosines of libraries differ by far more than digits, and
    those whose cells another machine measured in another way; the audit reads them as well."""
    rng = random.Random(8)
    boxes = [polar(rng, rng.choice([-1, 1])) for _ in range(40)]
    boxes += [(0.0, 89.99597784020553, 90.0, 90.0), (0.0, math.nextafter(90, 0), 1.0, 90.0)]
    boxes += [(0.0, -90.0, 1.0, math.nextafter(-90, 0)), (-360.0, -90.0, 360.0, 90.0)]
    plain = []
    for west, south, east, north in boxes:
        grid = om.Grid.geographic(ROWS, COLUMNS, (west, south, east, north))
        own = math.cos((south + north) / 2 * math.pi / 180)
        wide = (east - west) * (math.pi / 180) * 6371.0088 * own / COLUMNS
        other = om.Grid(ROWS, COLUMNS, (wide, grid.cell[1]), unit="km", bounds=grid.bounds)
        plain += [encode_places(grid), encode_places(other)]
        for one in (grid, other):
            stated = {"grid": [ROWS, COLUMNS], "cell": list(one.cell), "origin": [0.0, 0.0]}
            stated |= {"unit": "km", "bounds": list(boxes[len(plain) // 2 - 1])}
            assert audited.read_grid(stated, 20).bounds is not None
    positions = [[0.0, 90.0], [10.0, -89.9999]]
    found = answers(program, tmp_path, [content(part) for part in plain], positions)
    for part, (python, *others) in zip(plain, found, strict=True):
        assert python != "refused", part
        assert others == [python, python], part


def test_cells_that_are_almost_those_of_their_bounds_are_judged_alike(
    program: Path, tmp_path: Path
) -> None:
    """Widths around what is spared for another machine's cosine, at every latitude: beyond twice
    that all refuse, within half of it all read, and on the limit itself they are of one mind."""
    rng = random.Random(9)
    plain, sure = [], []
    for k in range(100):
        south = rng.uniform(-90, 89) if k % 2 else polar(rng, 1)[1]
        box = (rng.uniform(-180, 0), south, rng.uniform(1, 180), rng.uniform(south, 90))
        grid = om.Grid.geographic(ROWS, COLUMNS, box)
        cosine = math.sin(math.radians(90 - abs((box[1] + box[3]) / 2)))

        share = rng.choice([0.3, 1.0, 1.0, 1.0, 2.0])
        off = rng.choice([-1, 1]) * share * (1e-12 + 1e-15 / cosine)
        axis = rng.choice([0, 0, 0, 1])
        off = off if axis == 0 else off * 1e-12 / (1e-12 + 1e-15 / cosine)
        places = encode_places(grid)
        cell = list(grid.cell)
        cell[axis] *= 1 + off
        plain.append({**places, "cell": typed(cell, 86)})
        sure.append(None if share == 1.0 else share < 1)
    found = answers(program, tmp_path, [content(part) for part in plain], [[0.0, 89.0]])
    for reads, known, part in zip(found, sure, plain, strict=True):
        read = [answer != "refused" for answer in reads]
        assert read[0] == read[1] == read[2], part
        assert known is None or read[0] is known, (known, part)
    assert {read[0] != "refused" for read in found} == {False, True}


AROUND: list[Box] = [
    (0.0, -80.0, 360.0, -60.0),
    (-360.0, 60.0, 0.0, 80.0),
    (-180.0, -20.0, 180.0, 10.0),
    (-360.0, 5.0, 360.0, 50.0),
    (-10.0, 40.0, 351.0, 70.0),
    (280.0, 40.0, 300.0, 50.0),
    (-301.5, -30.0, -299.0, 50.0),
    (170.0, -80.0, 200.0, 80.0),
]


def around(box: Box) -> list[list[float]]:
    """On the seam, on borders and beyond them, however longitudes are written."""
    rng = random.Random(10)
    west, south, east, north = box
    xs = [west, east, (west + east) / 2, 0.0, 180.0, *(rng.uniform(west, east) for _ in range(2))]
    ys = [south, north, (south + north) / 2, -90.0, 90.0, 0.0, -50.0, 50.0, south - 5, north + 5]
    ys = [min(max(y, -90.0), 90.0) for y in ys]
    return [[x + turn, y] for x in xs for y in ys for turn in (0.0, 360.0, -360.0, 720.0)]


Answered = Callable[[Box, str], list[Any]]


@pytest.fixture(scope="module")
def answered(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """The answers around a box, once for every box."""

    @functools.cache
    def call(box: Box, outside: str) -> list[Any]:
        file = content(encode_places(om.Grid.geographic(ROWS, COLUMNS, box)), outside)
        (found,) = answers(program, tmp_path_factory.mktemp("around"), [file], around(box))
        return found

    return call


@pytest.mark.parametrize("box", AROUND, ids=str)
@pytest.mark.parametrize("outside", ["nearest", "refuse"])
def test_places_around_the_globe_are_those_of_all(
    box: Box, outside: str, answered: Answered
) -> None:
    python, javascript, c = answered(box, outside)
    assert python == javascript == c
    # longitudes as phones and radios write them, of the same places
    west, south, east, north = box
    for x, y in python[1]:
        assert abs(x) <= 180
        assert south < y < north
        assert any(west < x + turn < east for turn in (0, 360, -360))


def test_protect_moves_to_the_place_that_packed_files_move_to(answered: Answered) -> None:
    """A mechanism that reports the place itself: what comes is where positions were moved."""
    for box in AROUND:
        grid = om.Grid.geographic(ROWS, COLUMNS, box)
        positions = around(box)
        _, (at, _), _ = answered(box, "nearest")
        telling = om.Mechanism(grid, grid, np.eye(len(grid)))
        with pytest.warns(UserWarning, match="outside"):
            moved = plainly(telling, np.array(positions), outside="nearest")
        west, south, east, north = box
        centre = [((k % COLUMNS + 0.5) / COLUMNS * (east - west) + west,
                   (k // COLUMNS + 0.5) / ROWS * (north - south) + south) for k in at]  # fmt: skip
        turns = (moved[:, 0] - np.array(centre)[:, 0]) / 360
        assert turns == pytest.approx(np.round(turns), abs=1e-9)
        assert moved[:, 1] == pytest.approx(np.array(centre)[:, 1], abs=1e-9)
