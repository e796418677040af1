"""From the original downloads to the tables that the benchmarks read (docs/data.md).

    python benchmarks/data.py foursquare dataset_TSMC2014_NYC.txt --into FOLDER
    python benchmarks/data.py citibike 201807-citibike-tripdata.csv --into FOLDER
    python benchmarks/data.py geolife "Geolife Trajectories 1.3/Data" --into FOLDER
    python benchmarks/data.py rome nodes.csv edges.csv --into FOLDER     # of OSMnx

A file that is there is not written again.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from stand_ins import Table, save

SEED = 2018
START = datetime(2012, 4, 3, 18, tzinfo=UTC)
"""Minute 0 of check-ins."""
LEAST_VISITS, LEAST_CHECKINS, LEAST_WEEKS = 10, 10, 10
"""Of a place, of a week, and weeks of a user whose check-ins have their hours and categories."""
RIDES, LOGS, SPACING = 10_000, 10, 20
"""Rides that are drawn; files of a GeoLife user; seconds between fixes at least."""
USERS = [f"{number:03d}" for number in range(11)]
NIGHT = re.compile(
    r"^(?!Piano |Juice )(.* )?(Bar|Pub|Gastropub|Nightclub|Speakeasy|Brewery|Strip Club|"
    r"Beer Garden|Other Nightlife|Nightlife Spot)$|^Lounge$"
)
FOOD = re.compile(
    r"Restaurant$|^(?!.*(Gaming|College|Corporate)).*(Caf[eé]|Cafeteria|Place|Joint|Diner|Bakery|"
    r"Steakhouse|Noodle House|Bistro|Tea Room|Food Truck|Food Court|Breakfast Spot|Deli / Bodega)$|"
    r"(Coffee|Donut|Bagel|Ice Cream|Dessert|Cupcake|Frozen Yogurt|Bubble Tea|Pie) Shop$|"
    r"^Food$|^Juice Bar$"
)
Written = dict[str, Callable[[], Table]]


def root_of(category: str) -> str:
    """The root of Foursquare's tree above a category, by its name, as far as attributes need it."""
    if NIGHT.search(category):
        return "Nightlife Spot"
    if FOOD.search(category):
        return "Food"
    return "Residence" if category.startswith(("Home", "Residential")) else "Other"


class Checkins:
    """The rows of dataset_TSMC2014_NYC.txt: user, venue, latitude, longitude, category, UTC, local
    time. Eight columns with tabs between them, no head, Latin-1."""

    def __init__(self, source: Path) -> None:
        self.rows = []
        with source.open(encoding="latin-1", newline="") as stream:
            for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
                user, venue, _, category, lat, lon, offset, when = row
                utc = datetime.strptime(when, "%a %b %d %H:%M:%S %z %Y")
                local = utc + timedelta(minutes=int(offset))
                self.rows.append((int(user), venue, lat, lon, category, utc, local))
        self.rows.sort(key=lambda row: (row[0], row[5]))
        visits = Counter(row[1] for row in self.rows)
        self.number = {
            venue: number
            for number, venue in enumerate(
                sorted(v for v, count in visits.items() if count >= LEAST_VISITS), start=1
            )
        }

    def pois(self) -> Iterator[tuple[object, ...]]:
        yield "poi", "lat", "lon", "category"
        first = {row[1]: row for row in reversed(self.rows)}
        for venue, number in self.number.items():
            _, _, lat, lon, category, _, _ = first[venue]
            yield number, f"{float(lat):.6f}", f"{float(lon):.6f}", category

    def checkins(self) -> Iterator[tuple[object, ...]]:
        yield "user", "poi", "minute"
        for user, venue, _, _, _, utc, _ in self.rows:
            if venue in self.number:
                yield user, self.number[venue], int((utc - START).total_seconds()) // 60

    def semantic(self) -> Iterator[tuple[object, ...]]:
        yield "user", "tid", "lat", "lon", "local_time", "root", "type"
        weeks: dict[tuple[int, tuple[int, int]], list[int]] = {}
        for k, row in enumerate(self.rows):
            year, week, _ = row[6].isocalendar()
            weeks.setdefault((row[0], (year, week)), []).append(k)
        kept = {key: of for key, of in weeks.items() if len(of) >= LEAST_CHECKINS}
        many = Counter(user for user, _ in kept)
        for tid, ((user, _), of) in enumerate(kept.items(), start=1):
            for _, _, lat, lon, category, _, local in (
                (self.rows[k] for k in of) if many[user] >= LEAST_WEEKS else ()
            ):
                yield (
                    user, tid, f"{float(lat):.5f}", f"{float(lon):.5f}",
                    local.strftime("%Y-%m-%d %H:%M"), root_of(category), category,
                )  # fmt: skip


def foursquare(source: Path) -> Written:
    read = Checkins(source)
    return {
        "fsq_nyc_pois.csv": read.pois,
        "fsq_nyc_checkins.csv": read.checkins,
        "fsq_nyc_semantic.csv": read.semantic,
    }


RIDE = {
    "tripduration": "tripduration", "start_id": "start station id",
    "start_lat": "start station latitude", "start_lon": "start station longitude",
    "end_id": "end station id", "end_lat": "end station latitude",
    "end_lon": "end station longitude", "usertype": "usertype", "birth_year": "birth year",
    "gender": "gender",
}  # fmt: skip


def citibike(source: Path) -> Written:
    """Rides drawn from a month, each as likely as any other, in their order."""

    def rides() -> Iterator[tuple[object, ...]]:
        with source.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        chosen = np.random.default_rng(SEED).choice(len(rows), min(RIDES, len(rows)), replace=False)
        yield "starttime", *RIDE
        for k in np.sort(chosen):
            when = datetime.fromisoformat(rows[k]["starttime"])
            yield when.strftime("%m/%d/%y %H:%M:%S"), *(rows[k][name] for name in RIDE.values())

    return {"citibike_nyc_201807_sample.csv": rides}


def geolife(folder: Path) -> Written:
    """Of users 000 to 010 their first logs, a fix every twenty seconds at most."""

    def fixes() -> Iterator[tuple[object, ...]]:
        yield "user", "lat", "lon", "utc"
        for user in USERS:
            last: datetime | None = None
            for log in sorted((folder / user / "Trajectory").glob("*.plt"))[:LOGS]:
                # six lines of head; latitude, longitude, 0, feet, days, date, time
                for line in log.read_text(encoding="utf-8").splitlines()[6:]:
                    lat, lon, _, _, _, date, time = line.split(",")
                    now = datetime.fromisoformat(f"{date}T{time}")
                    if last is None or now - last >= timedelta(seconds=SPACING):
                        last = now
                        yield user, lat, lon, now.isoformat()

    return {"geolife_beijing_11users.csv": fixes}


def rome(nodes: Path, edges: Path) -> Written:
    """OSMnx's tables of a drive network: crossings are numbered, segments keep their metres."""
    with nodes.open(encoding="utf-8", newline="") as stream:
        places = list(csv.DictReader(stream))
    number = {row["osmid"]: k for k, row in enumerate(places)}

    def crossings() -> Iterator[tuple[object, ...]]:
        yield "node", "longitude", "latitude", "street_count"
        for row in places:
            at = f"{float(row['x']):.7f}", f"{float(row['y']):.7f}"
            yield number[row["osmid"]], *at, row["street_count"]

    def segments() -> Iterator[tuple[object, ...]]:
        yield "source", "target", "metres"
        with edges.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                yield number[row["u"]], number[row["v"]], f"{float(row['length']):.3f}"

    return {"rome_osm_nodes.csv.gz": crossings, "rome_osm_edges.csv.gz": segments}


SOURCES: dict[str, Callable[..., Written]] = {
    "foursquare": foursquare,
    "citibike": citibike,
    "geolife": geolife,
    "rome": rome,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("download", type=Path, nargs="+", help="for rome two: nodes and edges")
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    args = parser.parse_args()
    wanted = 2 if args.source == "rome" else 1
    if len(args.download) != wanted:
        parser.error(f"{args.source} takes {wanted} download(s)")
    for path in args.download:
        if not path.exists():
            parser.error(f"there is no {path}")
    args.into.mkdir(parents=True, exist_ok=True)
    for name, table in SOURCES[args.source](*args.download).items():
        save(args.into / name, table())
        print(args.into / name)


if __name__ == "__main__":
    main()
