"""Every script of the benchmarks: help that does nothing, tables of the right columns."""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import runpy
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from programs import ROOT, run

import optmech as om

FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in FOLDER.rglob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)


class RanError(Exception):
    """A benchmark did something."""


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_is_all_that_help_does(
    script: str,
    benchmark_modules: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def caught(*_: object, **__: object) -> None:
        raise RanError

    for owner, name in (
        (om, "solve"), (om.noise, "optimal"), (Path, "write_text"), (Path, "write_bytes"),
        (Path, "mkdir"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, caught)
    path = FOLDER / script
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ")


def test_every_script_has_a_short_form_or_is_no_benchmark(benchmark_modules: None) -> None:
    from short import SCRIPTS as FORMS, WRITES

    named = {script.removesuffix("/__main__.py") for script in SCRIPTS}
    assert named == set(FORMS) | set(WRITES)
    assert not set(FORMS) & set(WRITES)


@pytest.fixture
def columns() -> dict[str, list[str]]:
    """Of every table on the page."""
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- begin tables -->")[2].partition("<!-- end tables -->")[0]
    rows = re.findall(r"^\| `(\S+)` \| ([^|]*) \|", shown, re.M)
    return {name: of.strip().split(", ") for name, of in rows}


def test_tables_have_the_columns_of_the_page(
    columns: dict[str, list[str]], benchmark_modules: None
) -> None:
    import stand_ins
    from given import DATA

    assert columns.keys() == stand_ins.FILES.keys()
    for name, of in columns.items():
        table = stand_ins.FILES[name](np.random.default_rng(0))
        assert list(next(iter(table))) == of
        if (DATA / name).exists():
            with opened(DATA / name) as stream:
                assert next(csv.reader(stream)) == of


def opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def read(path: Path) -> list[list[str]]:
    with opened(path) as stream:
        return list(csv.reader(stream))[1:]


def test_stand_ins_are_the_same_every_time(tmp_path: Path, benchmark_modules: None) -> None:
    import stand_ins

    names = ["fsq_nyc_pois.csv", "fsq_nyc_checkins.csv"]
    for folder in ("one", "two"):
        stand_ins.write(tmp_path / folder, names)
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    places = {row[0] for row in read(tmp_path / "one" / names[0])}
    visits = read(tmp_path / "one" / names[1])
    assert {row[1] for row in visits} <= places
    # a user's check-ins are in the order of time
    minutes = [int(row[2]) for row in visits if row[0] == "7"]
    assert minutes == sorted(minutes)
    assert len(minutes) >= 20


def test_roads_of_stand_ins_are_one_network_no_shorter_than_straight_lines(
    tmp_path: Path, benchmark_modules: None
) -> None:
    import stand_ins
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names = ["rome_osm_nodes.csv.gz", "rome_osm_edges.csv.gz"]
    stand_ins.write(tmp_path, names)
    nodes, edges = (np.array(read(tmp_path / name), dtype=float) for name in names)
    ends = edges[:, :2].astype(int)
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(nodes),) * 2).tocsr()
    assert connected_components(graph)[0] == 1
    assert (np.bincount(ends[:, 0], minlength=len(nodes)) == nodes[:, 3]).all()
    a, b = np.radians(nodes[ends[:, 0], 1:3]), np.radians(nodes[ends[:, 1], 1:3])
    half = np.sin((b - a) / 2) ** 2
    metres = 2 * 6_371_008.8 * np.arcsin(np.sqrt(half[:, 1] + np.cos(a[:, 1]) ** 2 * half[:, 0]))
    assert (edges[:, 2] > 0.99 * metres).all()


def test_a_named_folder_has_what_is_needed_or_is_an_error(
    tmp_path: Path, benchmark_modules: None
) -> None:
    from given import folder

    with pytest.raises(SystemExit, match=r"there is no a\.csv"):
        folder("a.csv", named=tmp_path)
    (tmp_path / "a.csv").write_text("")
    assert folder("a.csv", named=tmp_path) == tmp_path


def test_results_of_stand_ins_do_not_join_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark_modules: None
) -> None:
    import given

    monkeypatch.setattr(given, "STAND_INS", tmp_path / "stand-ins")
    parser = argparse.ArgumentParser()
    given.add_files(parser, FOLDER / "results" / "some.json")
    args = parser.parse_args(["--stand-ins"])
    given.settle(args, "fsq_nyc_pois.csv")
    assert args.results == tmp_path / "results" / "some.json"
    assert (args.data / "fsq_nyc_pois.csv").exists()
    elsewhere = parser.parse_args(["--stand-ins", "--results", str(tmp_path / "mine.json")])
    given.settle(elsewhere)
    assert elsewhere.results == tmp_path / "mine.json"


def test_check_ins_are_converted(tmp_path: Path) -> None:
    """Ten visits a week for ten weeks to a bar, one to a place that nobody else visits."""
    start = datetime(2012, 4, 3, 18, 0, 9, tzinfo=UTC)
    lines = []
    for week in range(10):
        for visit in range(10):
            when = start + timedelta(weeks=week, minutes=30 * visit)
            stamp = when.strftime("%a %b %d %H:%M:%S +0000 %Y")
            lines.append(f"470\tb1\tx\tSports Bar\t40.71981\t-74.00258\t-240\t{stamp}")
    lines.append(f"470\tc1\tx\tCaf\xe9\t40.6\t-74.2\t-240\t{stamp}")
    source = tmp_path / "dataset_TSMC2014_NYC.txt"
    source.write_text("\n".join(lines) + "\n", encoding="latin-1")
    run("benchmarks/data.py", "foursquare", str(source), "--into", str(tmp_path))
    assert read(tmp_path / "fsq_nyc_pois.csv") == [["1", "40.719810", "-74.002580", "Sports Bar"]]
    visits = read(tmp_path / "fsq_nyc_checkins.csv")
    assert len(visits) == 100
    assert visits[:2] == [["470", "1", "0"], ["470", "1", "30"]]
    weeks = read(tmp_path / "fsq_nyc_semantic.csv")
    assert len(weeks) == 101
    assert weeks[0][2:] == [
        "40.71981",
        "-74.00258",
        "2012-04-03 14:00",
        "Nightlife Spot",
        "Sports Bar",
    ]
    assert weeks[-1][5:] == ["Food", "Café"]


def test_rides_fixes_and_roads_are_converted(tmp_path: Path) -> None:
    rides = tmp_path / "rides.csv"
    rides.write_text(
        '"tripduration","starttime","stoptime","start station id","start station name",'
        '"start station latitude","start station longitude","end station id","end station name",'
        '"end station latitude","end station longitude","bikeid","usertype","birth year","gender"\n'
        '238,"2018-07-03 17:48:39.5570","x",3244,"A",40.7,-73.9,342,"B",40.8,-74.0,1,'
        "Customer,2001,1\n"
    )
    logs = tmp_path / "Data" / "000" / "Trajectory"
    logs.mkdir(parents=True)
    fixes = [f"39.98,116.31,0,492,39744.1,2008-10-23,02:53:{second:02d}" for second in (4, 10, 24)]
    (logs / "1.plt").write_text("\n".join([*"123456", *fixes]) + "\n")
    (tmp_path / "n.csv").write_text("osmid,y,x,street_count\n77,41.7,12.3,3\n99,41.8,12.4,1\n")
    (tmp_path / "e.csv").write_text("u,v,key,length\n99,77,0,46.1334\n")
    into = ["--into", str(tmp_path)]
    run("benchmarks/data.py", "citibike", str(rides), *into)
    run("benchmarks/data.py", "geolife", str(tmp_path / "Data"), *into)
    run("benchmarks/data.py", "rome", str(tmp_path / "n.csv"), str(tmp_path / "e.csv"), *into)
    assert read(tmp_path / "citibike_nyc_201807_sample.csv") == [
        ["07/03/18 17:48:39", "238", "3244", "40.7", "-73.9", "342", "40.8", "-74.0", "Customer",
         "2001", "1"]
    ]  # fmt: skip
    assert read(tmp_path / "geolife_beijing_11users.csv") == [
        ["000", "39.98", "116.31", f"2008-10-23T02:53:{second}"] for second in ("04", "24")
    ]
    nodes = read(tmp_path / "rome_osm_nodes.csv.gz")
    assert nodes == [["0", "12.3000000", "41.7000000", "3"], ["1", "12.4000000", "41.8000000", "1"]]
    assert read(tmp_path / "rome_osm_edges.csv.gz") == [["1", "0", "46.133"]]
