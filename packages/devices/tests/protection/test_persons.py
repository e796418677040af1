"""What a person's reports promise together: counts and log ratios are made here again."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from optmech_devices.protection import spool as spool_module
from optmech_devices.protection.columns import Asked
from optmech_devices.protection.persons import is_person
from optmech_devices.protection.spool import Order, Spool
from optmech_devices.protection.statement import statement_of
from optmech_devices.protection.traces import averaging

import optmech as om
from optmech.cli.main import main
from optmech.errors import ProblemError

RATE = 0.5
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def earth() -> om.Earth:
    """Private everywhere, at ε = 1/2 per km."""
    return om.Earth.of("1/2")


def rides(rows: int = 60, users: int = 4, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, rows)
    home = np.array([16.3, 48.2]) + rng.normal(size=(users, 2)) / 10
    places = np.where(
        rng.random((rows, 1)) < 0.5, home[who], home[who] + rng.normal(size=(rows, 2))
    )
    return pd.DataFrame(
        {
            "user": [f"u{k}" for k in who],
            "when": [f"2026-01-0{1 + k % 3}T10:00:00" for k in range(rows)],
            "lon": places[:, 0],
            "lat": places[:, 1],
        }
    )


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_more_than_five_draws_are_refused_where_nothing_is_said(earth: om.Earth) -> None:
    table = rides()
    for options in ({}, {"per": "user"}, {"budget": None, "per": "user"}):
        with pytest.raises(ProblemError, match="more than 5"):
            om.protect(earth, table, **options)
    assert om.protect(earth, table[:5], per="user").person.worst.draws <= 5
    found = om.protect(earth, table, no_budget=True)
    assert found.person.worst.draws == Counter(table["user"]).most_common(1)[0][1]
    assert any("no limit" in line for line in found.notes)
    # without a word on persons all rows are one's, also of what has no columns
    points = table[["lon", "lat"]].to_numpy()
    assert om.protect(earth, points[:5]).person.worst.draws == 5
    with pytest.raises(ProblemError, match="more than 5"):
        om.protect(earth, points[:6])
    assert om.protect(earth, points, rows_are_people=True).person.worst.draws == 1
    assert om.protect(earth, points, per=list(range(60))).person.count == 60
    with pytest.raises(ProblemError, match="one of the two"):
        om.protect(earth, table, per="user", rows_are_people=True)


@pytest.mark.parametrize("beyond", ["repeat", "drop"])
@pytest.mark.parametrize("daily", [False, True])
def test_a_budget_is_kept(earth: om.Earth, beyond: Any, daily: bool) -> None:
    table = rides()
    budget = "1/day" if daily else 1.75
    with pytest.warns(UserWarning, match="beyond the budget"):
        found = om.protect(
            earth, table, budget=budget, beyond=beyond, keep=["user", "when"], keep_order=True
        )
    drawn: dict[Any, set[Any]] = defaultdict(set)
    for row in found.table.itertuples():
        key = (row.user, row.when[:10]) if daily and beyond == "drop" else row.user
        drawn[key].add((row.lon, row.lat))
    most = {(False, "repeat"): 3, (False, "drop"): 3, (True, "repeat"): 6, (True, "drop"): 2}
    assert max(map(len, drawn.values())) <= most[daily, beyond]
    figure = found.person.worst_day if daily else found.person.worst
    assert figure.epsilon <= (1 if daily else 1.75)
    assert (found.repeated > 0) == (beyond == "repeat")
    assert (found.left_out > 0) == (beyond == "drop")
    assert len(found.table) == 60 - found.left_out


def test_the_odds_are_sums_of_log_ratios(earth: om.Earth) -> None:
    """By the file's own law: n draws, each e^(ε (d + 2 snap)) at most."""
    table = rides()
    found = om.protect(earth, table, per="user", no_budget=True)
    counts = sorted(Counter(table["user"]).values())
    for figure, draws in (
        (found.person.worst, counts[-1]),
        (found.person.median, np.median(counts)),
    ):
        assert figure.draws == draws
        assert figure.epsilon == pytest.approx(RATE * draws)
        for metres, factor in figure.odds.items():
            log_ratio = draws * RATE * (metres / 1000 + 2 * earth.header.snap)
            assert math.log(factor) == pytest.approx(log_ratio)
    assert "of the worst of 4 persons (by 'user')" in repr(found)


def test_a_place_that_repeats_counts_once(earth: om.Earth) -> None:
    table = rides()
    found = om.protect(earth, table, key=KEY, by="user", no_budget=True, keep="user")
    cells = earth.cells_of(table[["lon", "lat"]].to_numpy())
    own = {(who, cell) for who, cell in zip(table["user"], cells.tolist(), strict=True)}
    assert found.person.worst.draws == max(Counter(who for who, _ in own).values())
    with pytest.warns(UserWarning, match="repeat"):
        few = om.protect(earth, table, key=KEY, by="user", budget=2, keep="user")
    different = Counter(row[0] for row in set(few.table.itertuples(index=False, name=None)))
    assert max(different.values()) <= 4


def test_rows_are_shuffled_unless_their_order_is_kept(earth: om.Earth, tmp_path: Path) -> None:
    table = rides(300)
    table["n"] = range(300)
    options: Any = {"per": "user", "no_budget": True, "keep": "n"}
    kept = om.protect(earth, table, keep_order=True, **options).table["n"].tolist()
    assert kept == list(range(300))
    found = om.protect(earth, table, **options).table["n"].tolist()
    assert found != kept
    assert sorted(found) == kept
    # from a file as well, also where not all rows are in memory
    seen = []
    for size in (1000, 40):
        with Spool(Order(), size) as spool:
            for first in range(0, 300, 60):
                spool.put({"n": list(range(first, first + 60))}, 60)
            seen.append([n for part in spool.parts() for n in part.get("n", [])])
    assert all(sorted(each) == kept and each != kept for each in seen)
    with Spool(None, 40) as spool:
        for first in range(0, 300, 60):
            spool.put({"n": list(range(first, first + 60))}, 60)
        assert [n for part in spool.parts() for n in part["n"]] == kept


def test_every_order_is_as_likely_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_BUCKETS", 2)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(1200):
        with Spool(Order(), 1) as spool:
            for k in range(3):
                spool.put({"n": [k]}, 1)
            counts[tuple(n for part in spool.parts() for n in part.get("n", []))] += 1
    assert len(counts) == 6
    # six classes, 200 each: chi-squared with 5 degrees of freedom is below 33 but for 4e-6
    assert sum((n - 200) ** 2 / 200 for n in counts.values()) < 33


def test_the_command_says_and_writes_what_python_does(
    earth: om.Earth, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(6):
        table = rides(40, 3, seed)
        table.to_csv(tmp_path / "t.csv", index=False)
        earth.save(tmp_path / "e.omm")
        argv = ["protect", str(tmp_path / "e.omm"), str(tmp_path / "t.csv"), "--seed", str(seed)]
        argv += ["--budget", "1.5", "--keep", "user", "-o", str(tmp_path / "o.csv")]
        assert main([*argv, "--summary", str(tmp_path / "s.json")]) == 0
        said = capsys.readouterr().err
        with pytest.warns(UserWarning, match="beyond the budget"):
            found = om.protect(earth, table, budget=1.5, keep="user", seed=seed)
        written = [(r["user"], float(r["lon"]), float(r["lat"])) for r in read(tmp_path / "o.csv")]
        own = [(u, float(f"{x:.12g}"), float(f"{y:.12g}")) for u, x, y in found.table.to_numpy()]
        assert written == own
        summary = json.loads((tmp_path / "s.json").read_text())
        assert next(iter(summary)) == "person"
        assert summary["person"]["worst"] == found.person.worst.plain()
        assert found.person.words in said.split("note: ")[1]


def test_nothing_is_written_where_a_person_has_too_many(earth: om.Earth, tmp_path: Path) -> None:
    rides().to_csv(tmp_path / "t.csv", index=False)
    assert main(["protect", str(tmp_path / "t.csv"), "-o", str(tmp_path / "o.csv")]) == 2
    assert not (tmp_path / "o.csv").exists()
    argv = ["protect", str(tmp_path / "t.csv"), "-o", str(tmp_path / "o.csv")]
    assert main([*argv, "--budget", "4", "--radius", "2km"]) == 0
    assert len(read(tmp_path / "o.csv")) == 60
    assert main([*argv, "--budget", "4", "--radius", "500"]) == 2
    assert main([*argv, "--budget", "0.1"]) == 2


def test_columns_that_are_plainly_of_persons() -> None:
    assert all(map(is_person, ["user", "user_id", "rider_ref", "Kundennummer", "userId", "driver"]))
    names = ["member_casual", "user_type", "ride_id", "id", "start_station_id", "bike", "age"]
    assert not any(map(is_person, names))


def test_two_places_of_a_row_are_two_draws(earth: om.Earth) -> None:
    table = rides(2)
    trips = pd.DataFrame(
        {
            "start_lon": table["lon"],
            "start_lat": table["lat"],
            "end_lon": table["lon"] + 0.01,
            "end_lat": table["lat"],
        }
    )
    found = om.protect(earth, trips, rows_are_people=True)
    assert list(found.table.columns) == list(trips.columns)
    assert found.person.worst.draws == 2
    with pytest.raises(ProblemError, match="less than what one row spends"):
        om.protect(earth, trips, rows_are_people=True, budget=0.9)


def test_averaging_finds_who_is_at_home(tmp_path: Path) -> None:
    """A person at one cell of nine: the error of one report, and of a hundred, by Bayes."""
    grid = om.Grid(3, 3, unit="km")
    km = om.distances.euclidean()
    m = om.mechanisms.exponential(grid, 2, km)
    rows = ["user,x,y"] + [f"u{k % 3},{0.5 + k % 3},0.5" for k in range(600)]
    path = tmp_path / "traces.csv"
    path.write_text("\n".join(rows) + "\n")
    found = averaging(m, np.full(9, 1 / 9), path, Asked("x", "y"), lambda text: None)
    error = {(one.way, one.rows): one.mean for one in found}
    assert error["name", 100] < 0.3 < error["name", 1]
    assert error["shuffled", 100] > 0.5
    assert error["order", 100] > 0.5


def test_a_statement_says_what_the_summary_says(
    earth: om.Earth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rides().to_csv("t.csv", index=False)
    argv = ["protect", "t.csv", "-o", "o.csv", "--summary", "s.json", "--budget", "4"]
    assert main(argv) == 0
    text = " ".join(line for _, said in statement_of("s.json") for line in said)
    assert "The data have 4 persons, by their column 'user'" in text
    assert "no legal claim" in text
    assert "ε = 4 per km, and was enforced" in text
    earth.save("e.omm")
    assert "ε = 0.5 per km" in " ".join(line for _, said in statement_of("e.omm") for line in said)


def test_ledgers_show_what_is_spent(earth: om.Earth) -> None:
    ledger = om.Ledger(earth, budget=5)
    here = earth.locate((16.3, 48.2))
    assert ledger.charge(here)
    assert repr(ledger).startswith("Ledger(1 draw; plain 0.708")
    assert "of 5 spent" in repr(ledger)
    sticky = om.StickyReports(earth, KEY, ledger=ledger)
    sticky.report(here, 0)
    assert "Ledger(2 draws" in repr(sticky)
    assert earth.report((16.3, 48.2)) != earth.report((16.3, 48.2))


def test_times_are_cut_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In their own zone and form, by the calendar; what ties is said."""
    written = ["2026-03-04T05:59:58+02:00", "2026-03-01 23:10:00", "", "1772600000"]
    expected = {
        "hour": ["2026-03-04T05:00+02:00", "2026-03-01 23:00", "", "1772596800"],
        "day": ["2026-03-04", "2026-03-01", "", "1772582400"],
        # 2026-03-02 is a Monday
        "week": ["2026-03-02", "2026-02-23", "", "1772409600"],
        "month": ["2026-03-01", "2026-03-01", "", "1772323200"],
        "year": ["2026-01-01", "2026-01-01", "", "1767225600"],
    }
    table = tmp_path / "t.csv"
    table.write_text("ts,lon,lat\n" + "".join(f"{t},16.{k},48.2\n" for k, t in enumerate(written)))
    out = tmp_path / "out.csv"
    argv = ["protect", str(table), "-o", str(out), "--rows-are-people", "--keep", "ts"]
    assert main(argv) == 0
    assert "exact times tie rows together" in (said := capsys.readouterr().err)
    assert "--times hour cuts them" in said
    for unit, times in expected.items():
        assert main([*argv, "--times", unit, "--keep-order"]) == 0
        assert [row["ts"] for row in read(out)] == times
        assert f"cut to the {unit}" in capsys.readouterr().err
        moments = pd.DataFrame({"ts": pd.to_datetime(written[:1] * 2), "lon": 16.0, "lat": 48.0})
        found = om.devices.protect(None, moments, keep="ts", times=unit, rows_are_people=True)
        assert str(found.table["ts"][0].isoformat())[:10] == times[0][:10]
    assert main([*argv[:-2], "--times", "day"]) == 2
    assert "no column that is kept is called like a time" in capsys.readouterr().err
    table.write_text("ts,lon,lat\nnoon,16,48\n")
    assert main([*argv, "--times", "day"]) == 2
    assert "row 1 (line 2)" in capsys.readouterr().err


def test_columns_are_named_where_none_says_whose_a_row_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those with names of persons where there are any, else all that are no places."""
    monkeypatch.chdir(tmp_path)
    plain = rides()[["user", "lon", "lat"]]
    for old, new, named in (
        ("user", "nurse", "(it may be nurse)"),
        ("user", "bike", "(it may be bike)"),
    ):
        plain.rename(columns={old: new}).assign(fare=1).to_csv("t.csv", index=False)
        assert main(["protect", "t.csv", "-o", "o.csv", "--budget", "4"]) == 0
        said = capsys.readouterr().err.replace("'", "")
        wanted = named if new == "bike" else "(it may be nurse, fare)"
        assert f"nothing says whose a row is {wanted}" in said
