"""From a table to protected rows with the defaults: privacy at every point, counted persons, rows
with several places. Probabilities, distances, totals and attacks are computed here again."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_devices.protection.places import STICKY, Snap
from plainly import main, proved_once

import optmech as om
from optmech.designs import outer
from optmech.errors import ProblemError
from optmech.files import build_problem
from optmech.pipeline import meshes

RADIUS = 6371.0088


def haversine(p: Any, q: Any) -> Any:
    a, b = np.radians(np.asarray(p, float)), np.radians(np.asarray(q, float))
    part = np.sin((b[..., 1] - a[..., 1]) / 2) ** 2
    part = part + np.cos(a[..., 1]) * np.cos(b[..., 1]) * np.sin((b[..., 0] - a[..., 0]) / 2) ** 2
    return 2 * RADIUS * np.arcsin(np.sqrt(part))


def probabilities(design: om.Design, points: Any) -> Any:
    """p(o|x) by de Casteljau's rule in the triangle around each point, from the rows of the file's
    control points."""
    mesh, rows = design.region.mesh, design.region.rows.matrix
    degree = mesh.degree
    order = [(degree - j - k, j, k) for k in range(degree + 1) for j in range(degree + 1 - k)]
    corners = mesh.vertices[mesh.triangles]
    out = np.full((len(points), rows.shape[1]), np.nan)
    for t, (a, b, c) in enumerate(corners):
        weights = np.linalg.solve(
            np.array([[a[0], b[0], c[0]], [a[1], b[1], c[1]], [1, 1, 1]]),
            np.column_stack([points, np.ones(len(points))]).T,
        ).T
        inside = (weights >= -1e-12).all(axis=1) & np.isnan(out[:, 0])
        if not inside.any():
            continue
        level = {index: rows[mesh.control[t, i]] for i, index in enumerate(order)}
        held = {index: np.tile(row, (int(inside.sum()), 1)) for index, row in level.items()}
        at = weights[inside]
        for step in range(degree, 0, -1):
            held = {
                (i, j, k): at[:, :1] * held[i + 1, j, k]
                + at[:, 1:2] * held[i, j + 1, k]
                + at[:, 2:] * held[i, j, k + 1]
                for i in range(step)
                for j in range(step - i)
                for k in [step - 1 - i - j]
            }
        out[inside] = held[0, 0, 0]
    return out


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def wild_table(path: Path, count: int = 1500) -> Any:
    """Forty riders who are at home half of the time; one row of a hundred is wild, one of 150
    empty."""
    rng = np.random.default_rng(3)
    homes = np.array([8.54, 47.37]) + rng.normal(size=(40, 2)) * [0.03, 0.02]
    rider = np.arange(count) % 40
    away = np.array([8.54, 47.37]) + rng.normal(size=(count, 2)) * [0.03, 0.02]
    jitter = rng.normal(size=(count, 2)) * 1e-5
    points = np.where(rng.random((count, 1)) < 0.5, homes[rider] + jitter, away)
    wild = rng.choice(count, count // 100, replace=False)
    points[wild[::2]] = 0
    points[wild[1::2]] = points[wild[1::2]][:, ::-1]
    with path.open("w", encoding="utf-8") as stream:
        stream.write("rider,recorded_at,pos_lng,pos_lat\n")
        for k, (x, y) in enumerate(points.tolist()):
            place = f"{x:.6f},{y:.6f}" if k % 150 else ","
            stream.write(f"r{rider[k]},{k},{place}\n")
    return points


@pytest.fixture(scope="module", autouse=True)
def few_cells() -> Iterator[None]:
    """The lower bound is by few cells, and not the best by these: nothing here depends on how
    close it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer, "_CELLS", 4)
        patch.setattr(meshes, "_GAP", 0.5)
        with proved_once():
            yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its problem and its design, by two commands without an option."""
    folder = tmp_path_factory.mktemp("made")
    wild_table(folder / "t.csv")
    assert main(["init", str(folder / "t.csv"), "-o", str(folder / "city.toml")]) == 0
    argv = ["solve", str(folder / "city.toml"), "-q", "--gap", "0.08", "-o"]
    assert main([*argv, str(folder / "d.json")]) == 0
    (folder / "key").write_bytes(bytes(range(32)))
    return folder


def require_private(design: om.Design, points: Any, pairs: int = 100_000) -> None:
    """No pair of fixes whose log ratio exceeds ε times their distance; some come near."""
    rng = np.random.default_rng(9)
    used = points[rng.integers(0, len(points), 4000)]
    logs = np.log(probabilities(design, used))
    assert not np.isnan(logs).any()
    i, j = rng.integers(0, len(used), (2, pairs))
    i, j = i[i != j], j[i != j]
    apart = haversine(used[i], used[j])
    worst = np.abs(logs[i] - logs[j]).max(axis=1)
    epsilon = float(design.problem.constraints[0].epsilon)
    assert (worst <= epsilon * apart + 1e-9).all()
    assert (worst[apart > 0] / (epsilon * apart[apart > 0])).max() > 0.5


def test_the_default_is_privacy_at_every_point(made: Path) -> None:
    design = om.Design.load(made / "d.json")
    assert design.promise.scope == "every point"
    assert len(design.problem.secrets) <= 280
    rows = read(made / "t.csv")
    points = np.array([(r["pos_lng"], r["pos_lat"]) for r in rows if r["pos_lng"]], dtype=float)
    low, high = design.region.mesh.vertices.min(axis=0), design.region.mesh.vertices.max(axis=0)
    inside = ((points >= low) & (points <= high)).all(axis=1)
    assert 0.98 <= inside.mean() < 1
    # triangles of a sensible size: none wider than the region, small ones where people are
    assert haversine(low, high) < 60
    require_private(design, points[inside])
    # the loss that is stated is that of the fixes, by the probabilities and the distances here
    reports = design.problem.observables.points
    assert reports is not None
    used = points[inside]
    apart = haversine(used[:, None], reports[None])
    loss = (probabilities(design, used) * apart).sum(axis=1).mean()
    assert loss == pytest.approx(design.loss, rel=0.02)
    # ε from a radius and odds, exactly: four to one
    text = (made / "city.toml").read_text()
    radius = float(text.partition("# from points ")[2].split()[0])
    assert float(design.problem.constraints[0].epsilon) * radius == pytest.approx(math.log(4))


def test_protect_without_an_option(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = made / "plain.csv"
    assert main(["protect", str(made / "d.json"), str(made / "t.csv"), "-o", str(out)]) == 0
    said = capsys.readouterr().err
    design = om.Design.load(made / "d.json")
    rows, reports = read(made / "t.csv"), read(out)
    assert list(reports[0]) == ["pos_lng", "pos_lat"]
    truth = [r for r in rows if r["pos_lng"]]
    assert len(reports) == len(truth) == 1490
    assert "10 of 1,500 rows were dropped, without usable coordinates" in said
    assert "repeats: Every fresh report spends it again: n independent reports" in said
    points, drawn = (
        np.array([(r["pos_lng"], r["pos_lat"]) for r in table], dtype=float)
        for table in (truth, reports)
    )
    low, high = design.region.mesh.vertices.min(axis=0), design.region.mesh.vertices.max(axis=0)
    inside = ((points >= low) & (points <= high)).all(axis=1)
    assert f"{(~inside).sum()} of 1,500 rows lay outside" in said
    mean = haversine(points[inside], drawn[inside]).mean()
    assert mean == pytest.approx(design.loss, rel=0.1)
    assert "At every point of the region" in said
    assert "1 km apart at most" in said
    # the best guess of an attacker: the likeliest place of each report, by the rows here
    prior = design.problem.prior.weights
    rows = probabilities(design, design.problem.secrets.points)
    best = 100 * (prior[:, None] * rows).max(axis=0).sum()
    told = f"{best:.3g} % of cases, that without a report in {100 * prior.max():.3g} %"
    assert told in said
    assert main(["show", str(made / "d.json")]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_decimal_commas_are_read(
    made: Path, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same file, the same reports and the same crossings as with commas and points."""
    rows = read(made / "t.csv")
    for n, row in enumerate(rows):
        row["recorded_at"] = f"2020-01-01 {n // 40 // 60:02d}:{n // 40 % 60:02d}:00"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder, separator, decimal in (("a", ",", "."), ("b", mark, ",")):
        lines = [separator.join(v.replace(".", decimal) for v in row.values()) for row in rows]
        text = "\n".join([separator.join(rows[0]), *lines]) + "\n"
        (tmp_path / folder / "t.csv").write_text(text)
        table = str(tmp_path / folder / "t.csv")
        assert main(["init", table, "-o", str(tmp_path / folder / "city.toml")]) == 0
        argv = ["protect", str(made / "d.json"), table, "--seed", "3", "--keep", "rider"]
        assert main([*argv, "-o", str(tmp_path / folder / "out.csv")]) == 0
        said = capsys.readouterr().err
        assert ("columns are separated by" in said) == (separator != ",")
        assert main(["measure", str(made / "d.json"), "--crossings", table, "--json"]) == 0
        crossings = json.loads(capsys.readouterr().out)["crossings"]
        (tmp_path / folder / "c.json").write_text(json.dumps(crossings))
    for name in ("city.toml", "out.csv", "c.json"):
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()


def test_more_wild_rows_are_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows = (made / "t.csv").read_text().splitlines()
    good = [row for row in rows if row.split(",")[2].startswith("8.5")]
    for strays, empty, said in (
        (6, 0, "outside of the domain"),
        (0, 6, "has no usable coordinates"),
    ):
        wild = ["r1,0,0.0,0.0"] * strays + ["r1,0,,"] * empty
        table = tmp_path / "w.csv"
        argv = ["protect", str(made / "d.json"), str(table), "-o", str(tmp_path / "o.csv")]
        table.write_text("\n".join([head, *good[:94], *wild]) + "\n")
        assert main(argv) == 2
        assert said in capsys.readouterr().err
        # one of twenty is not refused
        table.write_text("\n".join([head, *good[:95], *wild[:5]]) + "\n")
        assert main(argv) == 0
        # and each of the two sorts by itself
        assert main([*argv, "--outside", "drop", "--missing", "refuse"]) == (2 if empty else 0)
        assert main([*argv, "--outside", "refuse", "--missing", "drop"]) == (2 if strays else 0)
        capsys.readouterr()


@pytest.mark.parametrize("sticky", [False, True])
def test_persons_are_counted(made: Path, sticky: bool, capsys: pytest.CaptureFixture[str]) -> None:
    out, summary = made / "kept.csv", made / "s.json"
    argv = ["protect", str(made / "d.json"), str(made / "t.csv"), "--keep", "rider"]
    key = ["--sticky-key-file", str(made / "key"), "--sticky-by", "rider"]
    assert main([*argv, "--summary", str(summary), *(key if sticky else []), "-o", str(out)]) == 0
    said = capsys.readouterr().err
    found = json.loads(summary.read_text())["persons"]
    design = om.Design.load(made / "d.json")
    epsilon = float(design.problem.constraints[0].epsilon)
    truth = [r for r in read(made / "t.csv") if r["pos_lng"]]
    reports = read(out)
    assert [r["rider"] for r in truth] == [r["rider"] for r in reports]
    rows = Counter(r["rider"] for r in truth)
    assert found["persons"] == len(rows) == 40
    drawn = {who: Counter[tuple[str, str]]() for who in rows}
    near = {who: Counter[int]() for who in rows}
    places = design.problem.observables.points
    assert places is not None
    for true, report in zip(truth, reports, strict=True):
        who = true["rider"]
        drawn[who][report["pos_lng"], report["pos_lat"]] += 1
        where = (float(true["pos_lng"]), float(true["pos_lat"]))
        near[who][int(haversine(where, places).argmin())] += 1
    right = 0
    for who in rows:
        (lon, lat), _ = drawn[who].most_common(1)[0]
        home, _ = near[who].most_common(1)[0]
        right += bool(haversine((float(lon), float(lat)), places[home]) < 1e-6)
    # ties may be broken otherwise: of 40 riders few have one
    assert found["found"] == pytest.approx(right / 40, abs=0.08)
    if not sticky:
        assert found["draws"] == {"worst": max(rows.values()), "median": 37.0}
        assert found["epsilon"]["worst"] == pytest.approx(max(rows.values()) * epsilon)
        assert found["if_sticky"]["draws"]["worst"] < 0.75 * found["draws"]["worst"]
        assert "--sticky-by rider" in said
        assert "counting reports finds the most visited place" in said
    else:
        # as many draws as places on a lattice, of which home is one, or a few around a corner
        assert 10 < found["draws"]["median"] < 0.75 * 37
        assert "if_sticky" not in found
    assert found["unit"] == "km"


def test_what_gives_the_place_away_is_not_kept(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trips.csv").write_text("end_lon,end_lat,lon,lat,zip\n8.5,47.4,8.54,47.37,8000\n")
    argv = [
        "protect",
        str(made / "d.json"),
        str(tmp_path / "trips.csv"),
        "--x",
        "lon",
        "--y",
        "lat",
    ]
    for name in ("end_lon", "end_lat", "zip"):
        assert main([*argv, "--keep", name, "-o", str(tmp_path / "o.csv")]) == 2
        assert f"'{name}' is called like a coordinate" in capsys.readouterr().err
        assert not (tmp_path / "o.csv").exists()
    assert main([*argv, "--keep-place", "zip", "-o", str(tmp_path / "o.csv")]) == 0
    assert read(tmp_path / "o.csv")[0]["zip"] == "8000"


@pytest.mark.parametrize("named", [True, False])
def test_a_row_with_two_places_has_two_reports(
    made: Path, named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    ends = np.array([8.54, 47.37]) + rng.normal(size=(400, 2, 2)) * [0.02, 0.015]
    lines = [f"b{k % 9},{a[0]},{a[1]},{b[0]},{b[1]}" for k, (a, b) in enumerate(ends.tolist())]
    lines[7] = "b7,8.5,47.4,,"
    lines[30] = "b3,0,0,8.5,47.4"
    table, out = tmp_path / "trips.csv", tmp_path / "o.csv"
    table.write_text("\n".join(["bike,a_lon,a_lat,b_lon,b_lat", *lines]) + "\n")
    pairs = ["--pair", "a_lon,a_lat", "--pair", "b_lon,b_lat"] if named else []
    summary = ["--summary", str(tmp_path / "s.json"), "--keep", "bike"]
    argv = ["protect", str(made / "d.json"), str(table), *pairs, *summary, "-o", str(out), "--json"]
    assert main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    # a row is released with both of its places, or not at all
    assert (found["rows"], found["reports"], found["missing"]) == (400, 798, 1)
    assert found["moved"] == 1
    assert found["draws_per_row"] == 2
    reports = read(out)
    assert list(reports[0]) == ["bike", "a_lon", "a_lat", "b_lon", "b_lat"]
    assert len(reports) == 399
    design = om.Design.load(made / "d.json")
    places = np.asarray(design.problem.observables.points).tolist()
    known = {(float(f"{x:.12g}"), float(f"{y:.12g}")) for x, y in places}
    for row in reports:
        assert (float(row["a_lon"]), float(row["a_lat"])) in known
        assert (float(row["b_lon"]), float(row["b_lat"])) in known
    # both ends count for the bike: 45 rows of b0, 44 of the one that lost a row
    epsilon = float(design.problem.constraints[0].epsilon)
    assert found["persons"]["draws"]["worst"] == 90
    assert found["persons"]["epsilon"]["worst"] == pytest.approx(90 * epsilon)
    swapped = ["--pair", "a_lon,a_lat", "--pair", "a_lon,b_lat"]
    assert main(["protect", str(made / "d.json"), str(table), *swapped, "-o", "-"]) == 2
    assert "coordinate of two places" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "line", "counts"),
    [
        # lines 3 and 8 have no first or second place, 5 and 6 one that lies elsewhere
        (["--missing", "refuse", "--outside", "drop"], 3, "2 without any, 2 outside"),
        (["--missing", "drop", "--outside", "refuse"], 5, "2 without any, 2 outside"),
    ],
)
@pytest.mark.parametrize("exchanged", [False, True])
def test_the_first_row_that_is_refused_is_named_whatever_place_of_it_is_not_as_the_others(
    made: Path, option: list[str], line: int, counts: str, exchanged: bool, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    good = "8.54,47.37"
    first, second = [good] * 9, [good] * 9
    second[1], second[3], first[4], first[6] = ",", "0,0", "0,0", ","
    if exchanged:
        first, second = second, first
    rows = [f"{a},{b}" for a, b in zip(first, second, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a_lon,a_lat,b_lon,b_lat", *rows]) + "\n")
    pairs = ["--pair", "a_lon,a_lat", "--pair", "b_lon,b_lat"]
    argv = ["protect", str(made / "d.json"), str(tmp_path / "t.csv"), *pairs, *option]
    assert main([*argv, "-o", str(tmp_path / "o.csv")]) == 2
    said = capsys.readouterr().err
    assert f"line {line}" in said
    assert counts in said
    assert not (tmp_path / "o.csv").exists()


def test_a_lattice_counts_rows_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "ax,ay,bx,by\n0.1,0.1,3.9,1.9\n0.2,0.4,4,2\n-0.0,0,1.5,1.5\n9,9,,\n0.9,0.9,2,1\n"
    )
    section = {"kind": "lattice", "bounds": [0, 0, 4, 2], "rows": 2, "columns": 4,
               "file": "t.csv", "x": ["ax", "bx"], "y": ["ay", "by"]}  # fmt: skip
    whole = {"format": 1, "secrets": section, "loss": "euclidean", "prior": {"kind": "counts"}}
    problem = build_problem(whole, tmp_path / "p.toml").problem
    # cells from below: (0, 0) holds 4 rows, (1, 1) one, (3, 1) two, (2, 1) one; one lies outside,
    # one is empty
    places = {tuple(p): w for p, w in zip(np.asarray(problem.secrets.points).tolist(),
                                          problem.prior.weights, strict=True)}  # fmt: skip
    assert places == pytest.approx(
        {(0.5, 0.5): 4 / 8, (1.5, 1.5): 1 / 8, (2.5, 1.5): 1 / 8, (3.5, 1.5): 2 / 8}
    )
    binning = problem.prior.binning
    assert binning is not None
    assert (binning.inside, binning.outside, binning.missing) == (8, 1, 1)
    bare = {key: section[key] for key in ("kind", "bounds", "rows", "columns")}
    unseen = {**whole, "prior": "uniform", "secrets": bare}
    every = build_problem(unseen, tmp_path / "p.toml")
    assert len(every.problem.secrets) == 8
    for wrong in ({"x": "ax"}, {"bounds": [0, 0, 0, 2]}, {"bounds": [7, 7, 8, 8]}):
        with pytest.raises(ProblemError):
            build_problem({**whole, "secrets": {**section, **wrong}}, tmp_path / "p.toml")


def test_crossings_are_counted(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody drives east for an hour at 30 km/h, a fix every 20 s; another stays."""
    east = 180 / (math.pi * RADIUS * math.cos(math.radians(47.37)))
    lines = [f"a,2020-01-01T00:{k // 3:02d}:{20 * (k % 3):02d},{8.45 + k * east / 6:.9f},47.37"
             for k in range(90)]  # fmt: skip
    lines += [f"b,2020-01-01T00:{k // 3:02d}:{20 * (k % 3):02d},8.54,47.37" for k in range(90)]
    # a pause of a day is no move
    lines.append("b,2020-01-02T00:00:00,8.60,47.40")
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["user,utc,lon,lat", *lines]) + "\n")
    argv = ["measure", str(made / "d.json"), "--crossings", str(table)]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["crossings"]
    assert (found["per"], found["fixes"], found["persons"]) == ("hour", 181, 2)
    design = om.Design.load(made / "d.json")
    # squares whose mean distance from the middle is the loss, by a numerical mean
    u = (np.arange(1000) + 0.5) / 1000 - 0.5
    mean = np.hypot(u[:, None], u[None]).mean()
    side = found["cells"]["side"]
    assert side * mean == pytest.approx(design.loss, rel=1e-5)
    # 89 steps of a sixth of a kilometre, in an hour of the two together
    hours = 2 * 89 * 20 / 3600
    crossed = found["cells"]["places"] * hours
    assert crossed == pytest.approx(round(crossed))
    assert abs(crossed - 89 / 6 / side) <= 1
    assert found["cells"]["reports"] == found["cells"]["places"]
    # who sees a cell's border crossed knows a coordinate to less than a step
    assert found["cells"]["line"] is None or found["cells"]["line"] <= 1 / 6
    # the lattice of sticky reports: ε times its diagonal is 0.1
    epsilon = float(design.problem.constraints[0].epsilon)
    lattice = 0.1 / epsilon / math.sqrt(2)
    places = found["sticky"]["places"] * hours
    # finer than a step, so that every step leaves a place
    assert lattice < 1 / 6
    assert places == pytest.approx(89)
    assert found["sticky"]["reports"] < found["sticky"]["places"]
    assert found["sticky"]["line"] is None
    assert main(argv) == 0
    assert "Reports of people who move" in capsys.readouterr().out
    table.write_text("user,lon,lat\na,8.54,47.37\nb,8.5,47.4\n")
    assert main(argv) == 2
    assert "no two fixes of a person" in capsys.readouterr().err


TIMES = {
    "seconds": lambda k: str(20 * k),
    "seconds since 1970": lambda k: str(1_700_000_000 + 20 * k),
    "parts of seconds": lambda k: f"{20 * k}.25",
    "UTC": lambda k: f"2020-01-01T00:{k // 3:02d}:{20 * (k % 3):02d}Z",
    "with a blank": lambda k: f"2020-01-01 00:{k // 3:02d}:{20 * (k % 3):02d}.5",
    "an hour east": lambda k: f"2020-01-01T05:{k // 3:02d}:{20 * (k % 3):02d}+01:00",
}


def drive(path: Path, time: Any, names: str = "user,time,lon,lat") -> str:
    """Somebody drives east, a fix every 20 s."""
    lines = [f"a,{time(k)},{8.45 + k / 500:.6f},47.37" for k in range(90)]
    path.write_text("\n".join([names, *lines]) + "\n")
    return str(path)


@pytest.mark.parametrize("kind", TIMES)
def test_times_are_texts_or_seconds(
    made: Path, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["measure", str(made / "d.json"), "--json", "--crossings"]
    assert main([*argv, drive(tmp_path / "t.csv", TIMES[kind])]) == 0
    found = json.loads(capsys.readouterr().out)["crossings"]
    assert (found["per"], found["fixes"]) == ("hour", 90)
    # steps of 1/500 degree every 20 s: every one leaves a place, 180 an hour
    assert found["sticky"]["places"] == pytest.approx(180)


def test_times_that_cannot_be_read_are_said(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["measure", str(made / "d.json"), "--json", "--crossings"]
    for time, row in (
        (lambda k: f"01.01.2024 00:{k // 3:02d}", 1),
        (lambda k: "" if k == 7 else 20 * k, 8),
        (lambda k: "noon" if k == 5 else f"2020-01-01T00:{k // 3:02d}:00", 6),
    ):
        assert main([*argv, drive(tmp_path / "t.csv", time)]) == 0
        said = capsys.readouterr()
        assert json.loads(said.out)["crossings"]["per"] == "1,000 fixes"
        assert f"'time' has in row {row} no time as" in said.err
        assert "noon" not in said.err


def test_columns_of_traces_are_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["measure", str(made / "d.json"), "--json", "--crossings"]
    table = drive(tmp_path / "t.csv", TIMES["seconds"], "user,time,a,b")
    assert main([*argv, table]) == 2
    said = capsys.readouterr().err
    assert "no columns are called like coordinates" in said
    assert "Give --x and --y" in said
    assert "--label" not in said
    assert main([*argv, table, "--x", "a", "--y", "b"]) == 0
    found = json.loads(capsys.readouterr().out)["crossings"]
    assert main([*argv, drive(tmp_path / "u.csv", TIMES["seconds"])]) == 0
    assert json.loads(capsys.readouterr().out)["crossings"] == found
    # of several places of a row one is named
    rows = [f"{line},8.5,47.4" for line in Path(table).read_text().splitlines()[1:]]
    trips = tmp_path / "trips.csv"
    trips.write_text("\n".join(["user,time,a_lon,a_lat,b_lon,b_lat", *rows]) + "\n")
    assert main([*argv, str(trips)]) == 2
    assert "a row has 2 places" in capsys.readouterr().err
    assert main([*argv, str(trips), "--x", "a_lon", "--y", "a_lat"]) == 0
    assert json.loads(capsys.readouterr().out)["crossings"] == found
    for wrong in (["--crossings", table, "--x", "a"], ["--x", "a", "--y", "b"]):
        assert main(["measure", str(made / "d.json"), *wrong]) == 2
        assert "--crossings or --averaging only" in capsys.readouterr().err
    assert main([*argv, table, "--x", "a", "--y", "speed"]) == 2
    assert "there is no column 'speed'" in capsys.readouterr().err


REAL = {
    "geolife_beijing_11users.csv": (("lon", "lat"),),
    "citibike_nyc_201807_sample.csv": (("start_lon", "start_lat"), ("end_lon", "end_lat")),
    "fsq_nyc_semantic.csv": (("lon", "lat"),),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_tables(name: str, shared_data: Path, tmp_path: Path) -> None:
    toml, design_path, out = (tmp_path / each for each in ("city.toml", "d.json", "out.csv"))
    assert main(["init", str(shared_data / name), "-o", str(toml)]) == 0
    assert main(["solve", str(toml), "-q", "--gap", "0.08", "-o", str(design_path)]) == 0
    assert main(["protect", str(design_path), str(shared_data / name), "-o", str(out)]) == 0
    design = om.Design.load(design_path)
    low, high = design.region.mesh.vertices.min(axis=0), design.region.mesh.vertices.max(axis=0)
    rows, reports = read(shared_data / name), read(out)
    assert len(rows) == len(reports)
    truth, drawn = (
        np.array([[float(r[a]), float(r[b])] for a, b in REAL[name] for r in table])
        for table in (rows, reports)
    )
    inside = ((truth >= low) & (truth <= high)).all(axis=1)
    assert inside.mean() > 0.95
    assert haversine(truth[inside], drawn[inside]).mean() == pytest.approx(design.loss, rel=0.1)
    require_private(design, truth[inside])


def test_what_repeats_promises_what_its_lattice_keeps(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of pairs of points, moved as they are before a draw, none is beyond the odds that are
    printed; some are beyond those of fresh reports."""
    argv = ["protect", str(made / "d.json"), str(made / "t.csv"), "--json"]
    key = ["--sticky-key-file", str(made / "key"), "--sticky-by", "rider"]
    assert main([*argv, *key, "-o", str(tmp_path / "o.csv")]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "repeats: The same report again spends nothing" in said.err
    assert "one report for all rows" not in said.err
    assert main([*argv, *key[:2], "-o", str(tmp_path / "all.csv")]) == 0
    assert "without --sticky-by a place has one report for all rows" in capsys.readouterr().err
    assert main([*argv, "-o", str(tmp_path / "f.csv")]) == 0
    fresh = json.loads(capsys.readouterr().out)
    design = om.Design.load(made / "d.json")
    epsilon, mesh = float(design.problem.constraints[0].epsilon), design.region.mesh
    assert found["odds"]["100"] == pytest.approx(math.exp(epsilon * (0.1 + found["snap"])))
    assert fresh["odds"]["100"] == pytest.approx(math.exp(epsilon * 0.1))
    (shown,) = re.findall(r"up to (\S+) km more", found["promise"])
    assert found["snap"] <= float(shown) <= 1.01 * found["snap"]
    rng = np.random.default_rng(5)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    one = rng.uniform(low + 0.1 * (high - low), high - 0.1 * (high - low), (4000, 2))
    angle = rng.uniform(0, 2 * np.pi, len(one))
    step = 0.1 / 111.2 / np.column_stack([np.cos(np.radians(one[:, 1])), np.ones(len(one))])
    other = one + step * np.column_stack([np.cos(angle), np.sin(angle)])
    snap = Snap.of(mesh, STICKY / epsilon)
    p, q = (probabilities(design, snap(points)[0]) for points in (one, other))
    ratio = np.maximum(p / q, q / p).max(axis=1)
    assert ratio.max() <= found["odds"]["100"]
    assert ratio.max() > fresh["odds"]["100"]


def test_a_few_homes_are_not_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(8)
    homes = np.array([13.4, 52.5]) + rng.normal(size=(12, 2)) * [0.05, 0.03]
    fixes = homes[rng.integers(12, size=900)]
    rows = "".join(f"{x:.6f},{y:.6f}\n" for x, y in fixes.tolist())
    (tmp_path / "homes.csv").write_text("lon,lat\n" + rows)
    argv = ["init", str(tmp_path / "homes.csv"), "-o", str(tmp_path / "p.toml")]
    assert main([*argv, "--radius", "800m"]) == 0
    assert "the reports tell how many rows are where" in capsys.readouterr().err
    problem = om.load_problem(tmp_path / "p.toml")
    reported = problem.observables.points
    assert reported is not None
    away = np.array([haversine(home, reported).min() for home in homes])
    # middles of cells of an eighth of the radius and more: as far as points of such cells are
    assert np.median(away) > 0.01
    assert away.max() < 0.8
    # the other way, nothing of the data is in it
    assert main([*argv, "--uniform", "--force"]) == 0
    assert "tell" not in capsys.readouterr().err


def test_counting_reports_that_never_repeat_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("user,lon,lat\n" + "a,8.5,47.4\n" * 30 + "b,8.6,47.3\n" * 30)
    assert main(["pack", "--earth", "1", "-o", str(tmp_path / "e.omm")]) == 0
    capsys.readouterr()
    argv = ["protect", str(tmp_path / "e.omm"), str(tmp_path / "t.csv"), "--keep", "user", "--json"]
    assert main([*argv, "-o", str(tmp_path / "o.csv")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["persons"]["draws"]["worst"] == 30
    assert found["persons"]["found"] is None


def test_check_names_the_gap_of_its_bound(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(made / "d.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    own = (found["loss"] - found["lower_bound"]) / found["loss"]
    assert found["total_gap"] == pytest.approx(own, rel=1e-9)
    assert found["total_gap"] > found["gap"] + 1e-3
    assert main(["check", str(made / "d.json")]) == 0
    said = capsys.readouterr().out
    assert "gap on this mesh" in said
    assert f"{own:.6g}"[:6] in said


def test_a_place_counts_anew_for_whatever_it_is_drawn_anew_for(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Draws with a key are those of different values of what reports repeat by: a home on three
    days is three draws where a day is among them."""
    table, lines = tmp_path / "t.csv", []
    for who in range(4):
        for k in range(30):
            # as many homes as a rider's number, and each of them on each of three days
            x, y = 8.52 + 0.01 * who, 47.35 + 0.01 * (k % (who + 1))
            lines.append(f"r{who},{k % 3},d{k // 10},{x},{y}")
    table.write_text("\n".join(["rider,shift,day,lon,lat", *lines]) + "\n")
    argv = ["protect", str(made / "d.json"), str(table), "--sticky-key-file", str(made / "key")]
    argv += ["--keep", "rider", "-o", str(tmp_path / "o.csv"), "--json"]
    visits = [line.split(",") for line in lines]
    for by in (["rider"], ["rider", "day"], ["day"], ["shift", "day"], ["day", "rider", "shift"]):
        assert main([*argv, "--sticky-by", *by]) == 0
        captured = capsys.readouterr()
        found = json.loads(captured.out)["persons"]
        columns = {"rider": 0, "shift": 1, "day": 2}
        draws = Counter(
            who for who, *_ in {(v[0], *v[3:], *(v[columns[name]] for name in by)) for v in visits}
        )
        assert found["columns"] == ["rider"]
        assert found["draws"]["worst"] == max(draws.values())
        assert found["draws"]["median"] == float(np.median(list(draws.values())))
        more = [name for name in sorted(by) if name != "rider"]
        said = f"for every other value of {', '.join(more)}."
        assert (said in captured.err) == bool(more)


def test_each_column_ties_rows_together_by_itself(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kept user has the rows of all of his trips, however many other names are kept beside;
    rows without a name are nobody's."""
    rows = [(f"u{k % 3}", f"t{k}", f"b{k % 40}") for k in range(90)]
    rows += [("", f"t{90 + k}", "") for k in range(40)]
    lines = [f"{','.join(row)},{8.5 + k / 2000},47.37" for k, row in enumerate(rows)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["user,trip_id,bike,lon,lat", *lines]) + "\n")
    argv = ["protect", str(made / "d.json"), str(table), "-o", str(tmp_path / "o.csv"), "--json"]
    for kept in (["user", "trip_id"], ["trip_id", "user"], ["bike", "trip_id", "user"]):
        assert main([*argv, "--keep", *kept]) == 0
        found = json.loads(capsys.readouterr().out)["persons"]
        worst = {name: max(Counter(r[k] for r in rows if r[k]).values())
                 for k, name in enumerate(("user", "trip_id", "bike"))}  # fmt: skip
        assert (found["columns"], found["persons"], found["draws"]["worst"]) == (["user"], 3, 30)
        others = {each["columns"][0]: each["draws"]["worst"] for each in found["others"]}
        assert others == {name: worst[name] for name in kept if name != "user"}


def test_values_that_stand_at_one_place_are_said(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A station's number tells where the row was as well as its coordinates do."""
    rng = np.random.default_rng(2)
    stations = np.array([8.54, 47.37]) + rng.normal(size=(9, 2)) * [0.02, 0.015]
    of, other = rng.integers(0, 9, (2, 200))
    ends = np.hstack([stations[of], stations[other]])
    lines = [
        f"{k % 5},{a},{b},{k},{','.join(map(repr, place))}"
        for k, (a, b, place) in enumerate(zip(of, other, ends.tolist(), strict=True))
    ]
    table = tmp_path / "t.csv"
    head = "kind,dock,goal,ride,a_lon,a_lat,b_lon,b_lat"
    table.write_text("\n".join([head, *lines]) + "\n")
    argv = ["protect", str(made / "d.json"), str(table), "-o", str(tmp_path / "o.csv")]
    assert main([*argv, "--keep", "kind", "ride"]) == 0
    capsys.readouterr()
    for name, why in (("dock", "is called like"), ("goal", "stand at one place each")):
        assert main([*argv, "--keep", name]) == 2
        assert why in capsys.readouterr().err
        assert main([*argv, "--keep-place", name]) == 0


@pytest.mark.parametrize(("name", "persons"), [("cyclist", 2), ("colour", 1)])
def test_traces_without_a_person_are_said_to_be_one(
    made: Path, name: str, persons: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{k % 2},{8.52 + k / 5000},{47.37 - k / 9000}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join([f"{name},lon,lat", *rows]) + "\n")
    argv = ["measure", str(made / "d.json"), "--crossings", str(tmp_path / "t.csv"), "--json"]
    assert main(argv) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["crossings"]["persons"] == persons
    assert ("all are taken for one person's" in captured.err) == (persons == 1)
