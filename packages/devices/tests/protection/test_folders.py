"""Folders of parts: what comes out is what one table gives, however it is cut."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.errors import ProblemError

KEY = bytes(range(32))
RATE = float(np.log(4))
"""ε per km of the mechanism without a design."""


def fixes(rows: int = 400, users: int = 12, seed: int = 0) -> pd.DataFrame:
    """Rows of persons at a few places each, with days, and some without a name."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, rows)
    place = rng.integers(0, 4, rows)
    names = np.where(rng.random(rows) < 0.02, "", [f"u{k:03}" for k in who])
    return pd.DataFrame(
        {
            "user": names,
            "when": [f"2026-01-0{1 + k}T10:00:00" for k in rng.integers(0, 3, rows)],
            "lon": np.round(-73.9 + who / 50 + place / 300, 6),
            "lat": np.round(40.7 + who / 70 - place / 400, 6),
        }
    )


def cut(table: pd.DataFrame, folder: Path, ends: list[int], kind: str = ".csv") -> Path:
    folder.mkdir()
    for k, (begin, end) in enumerate(zip([0, *ends], [*ends, len(table)], strict=True)):
        part = table[begin:end]
        if kind == ".parquet":
            part.to_parquet(folder / f"p{k}.parquet", index=False)
        else:
            part.to_csv(folder / f"p{k}{kind}", index=False)
    return folder


def rows_of(folder: Path) -> list[tuple[str, ...]]:
    """All rows of all parts, in their order."""
    found: list[tuple[str, ...]] = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".parquet":
            table = pd.read_parquet(path)
            found += [tuple(map(str, row)) for row in table.itertuples(index=False)]
        else:
            with path.open(newline="", encoding="utf-8") as stream:
                found += [tuple(row) for row in list(csv.reader(stream))[1:]]
    return found


def protect(source: Path, target: Path, *options: str) -> dict[str, Any]:
    summary = target.with_suffix(".summary")
    command = ["protect", str(source), "-o", str(target), "--summary", str(summary), *options]
    assert main([*command, "--processes", "1"] if source.is_dir() else command) == 0
    found: dict[str, Any] = json.loads(summary.read_text())
    return found


@pytest.fixture
def key(tmp_path: Path) -> str:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize("budget", [("--budget", "6"), ("--budget", "4/day"), ("--no-budget",)])
@pytest.mark.parametrize("beyond", ["repeat", "drop"])
def test_a_folder_is_one_table(
    budget: tuple[str, ...], beyond: str, tmp_path: Path, key: str
) -> None:
    """With a key the draws of all cuts are those of the table, and so are their persons'."""
    table = fixes()
    whole = tmp_path / "whole.csv"
    table.to_csv(whole, index=False)
    options = (
        *budget, "--beyond", beyond, "--keep", "user", "when", "--sticky-key-file", key,
        "--sticky-by", "user", "when",
    )  # fmt: skip
    said = protect(whole, tmp_path / "one.csv", *options, "--keep-order")
    with (tmp_path / "one.csv").open(newline="") as stream:
        expected = [tuple(row) for row in list(csv.reader(stream))[1:]]
    for name, ends in (("a", [400]), ("b", [7, 100, 350]), ("c", [133, 266])):
        source = cut(table, tmp_path / name, ends[:-1] if ends[-1] == len(table) else ends)
        found = protect(source, tmp_path / f"{name}-kept", *options, "--keep-order")
        assert rows_of(tmp_path / f"{name}-kept") == expected
        assert found["person"] == said["person"]
        protect(source, tmp_path / f"{name}-shuffled", *options)
        shuffled = rows_of(tmp_path / f"{name}-shuffled")
        assert sorted(shuffled) == sorted(expected)
        assert shuffled != expected


def test_persons_over_parts_keep_their_budget(tmp_path: Path) -> None:
    """Fresh draws: counted here again, by places that differ."""
    table = fixes(3000, 40)
    source = cut(table, tmp_path / "parts", [1000, 1700])
    found = protect(source, tmp_path / "out", "--budget", "7", "--keep", "user")
    most = int(7 / RATE)
    assert found["person"]["worst"]["draws"] == most == 5
    rows = rows_of(tmp_path / "out")
    assert Counter(who for who, *_ in rows) == Counter(table["user"])
    distinct: dict[str, set[tuple[str, ...]]] = {}
    for who, *place in rows:
        distinct.setdefault(who, set()).add(tuple(place))
    assert max(map(len, distinct.values())) <= most
    persons = table["user"].nunique()
    assert found["person"]["persons"] == persons
    assert found["person"]["repeated"] == 3000 - most * persons
    assert not [name for name in (tmp_path / "out").iterdir() if name.name.startswith(".")]


def test_more_than_the_default_is_refused_over_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three rows of a person in each of two parts are six."""
    table = pd.DataFrame({"user": ["a"] * 6, "lon": [2.0] * 6, "lat": [48.0] * 6})
    source = cut(table, tmp_path / "parts", [3])
    out = tmp_path / "out"
    assert main(["protect", str(source), "-o", str(out), "--processes", "1"]) == 2
    assert "6 draws" in capsys.readouterr().err
    assert not out.exists()
    five = cut(table[:5], tmp_path / "five", [3])
    assert main(["protect", str(five), "-o", str(out), "--processes", "1"]) == 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A cluster of two workers, in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as found:
        yield found.scheduler_address


def test_a_cluster_writes_the_same_bytes(tmp_path: Path, cluster: str) -> None:
    """As two processes, and as one, of one seed."""
    pytest.importorskip("pyarrow")
    source = cut(fixes(900, 60), tmp_path / "parts", [300], ".parquet")
    command = ["protect", str(source), "--seed", "5", "--budget", "9", "--keep", "user"]
    for name, how in (
        ("two", ["--processes", "2"]),
        ("one", ["--processes", "1"]),
        ("cluster", ["--dask", cluster]),
    ):
        assert main([*command, "-o", str(tmp_path / name), *how]) == 0
    names = [path.name for path in sorted((tmp_path / "two").iterdir())]
    assert names == [f"part-{k:05}.parquet" for k in range(2)]
    for name in names:
        content = (tmp_path / "two" / name).read_bytes()
        assert content == (tmp_path / "one" / name).read_bytes()
        assert content == (tmp_path / "cluster" / name).read_bytes()
    # rows of one part are spread over all of them
    assert len({len(pd.read_parquet(path)) for path in (tmp_path / "two").iterdir()}) > 1


def test_what_is_wrong_with_a_part_is_said_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = cut(fixes(), tmp_path / "parts", [100, 200])
    out = str(tmp_path / "out")
    command = ["protect", str(source), "-o", out, "--processes", "1", "--no-budget"]
    lines = (source / "p1.csv").read_text().splitlines()
    (source / "p1.csv").write_text("\n".join([*lines[:2], *("u,x,," for _ in lines[2:])]))
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "p1.csv: row 2 (line 3)" in said
    assert "has no usable coordinates" in said
    (source / "p1.csv").write_text("user,lon\nu,2\n")
    assert main(command) == 2
    assert "p1.csv: there is no column 'lat'" in capsys.readouterr().err
    assert not Path(out).exists()
    (source / "p1.csv").rename(source / "p1.parquet")
    assert main(command) == 2
    assert "several kinds" in capsys.readouterr().err
    for wrong, words in (
        (["protect", str(source), "-o", "-"], "folder"),
        (["protect", str(source), "-o", str(source)], "is there already"),
        (["protect", str(source), "-o", str(source / "in")], "lies among the parts"),
        (["protect", str(source / "p0.csv"), "-o", out, "--processes", "2"], "one table"),
        (["protect", str(source), "-o", "n" * 300, "--per", "user"], "cannot be written"),
        (["protect", "n" * 300, "-o", f"{out}.csv", "--per", "user"], "too long"),
    ):
        assert main(wrong) == 2
        assert words in capsys.readouterr().err


def test_every_row_a_person_and_two_places(tmp_path: Path) -> None:
    """Nothing ties rows then, and a row has two draws."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        rng.normal([2, 48, 2, 48], 0.1, (300, 4)),
        columns=["start_lon", "start_lat", "end_lon", "end_lat"],
    )
    source = cut(table, tmp_path / "parts", [90])
    found = protect(source, tmp_path / "out", "--rows-are-people")
    assert found["person"]["worst"]["draws"] == 2
    assert found["person"]["persons"] == 300
    assert found["reports"] == 600
    moved = np.array(rows_of(tmp_path / "out"), dtype=float)
    assert moved.shape == (300, 4)
    # reports err by 1.6 km in the mean, about 0.017 degrees
    assert np.abs(moved.mean(axis=0) - table.mean()).max() < 0.05


def test_rows_outside_of_bounds_are_left_out_and_counted(tmp_path: Path) -> None:
    """Of a table, of its parts, and of trips as a whole; over 180 degrees too."""
    rng = np.random.default_rng(3)
    far = rng.random(200) < 0.3
    lon = np.where(far, 16.4, 179.9) + rng.normal(0, 0.2, 200)
    lat = np.where(far, 48.2, -17.0) + rng.normal(0, 0.05, 200)
    table = pd.DataFrame({"lon": np.where(lon > 180, lon - 360, lon), "lat": lat})
    box = (178.0, -19.0, -178.0, -15.0)
    found = om.devices.protect(None, table, rows_are_people=True, bounds=box)
    assert len(found) == int((~far).sum())
    assert found.left_out == int(far.sum())
    assert any(f"{far.sum()} of 200 rows lay outside of the bounds" in n for n in found.notes)
    source = cut(table, tmp_path / "parts", [70])
    written = protect(source, tmp_path / "out", "--rows-are-people", "--bounds", "178,-19,-178,-15")
    assert written["dropped"] == int(far.sum())
    assert written["missing"] == 0
    assert len(rows_of(tmp_path / "out")) == int((~far).sum())
    trips = pd.DataFrame(
        {"a_lon": lon, "a_lat": lat, "b_lon": np.roll(lon, 1), "b_lat": np.roll(lat, 1)}
    )
    both = ~far & ~np.roll(far, 1)
    pairs = [("a_lon", "a_lat"), ("b_lon", "b_lat")]
    kept = om.devices.protect(None, trips, pair=pairs, rows_are_people=True, bounds=box)
    assert len(kept) == int(both.sum())
    with pytest.raises(ProblemError, match="no box"):
        om.devices.protect(None, table, rows_are_people=True, bounds=(1, 2, 3))
