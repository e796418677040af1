"""A value that reports repeat by is one value in every store: numbers by their value, times by
their moment, whoever wrote them."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from optmech_devices.protection.forms import forms
from plainly import main, plainly

import optmech as om
from optmech.errors import ProblemError
from optmech.reading.columns import read_parquet_table

ROWS = 500
KEY = b"0123456789abcdef0123456789abcdef"
BOX = (-74.0, 40.0, -73.0, 42.0)
Column = Any
Values = list[Any]


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> tuple[om.Design, Path]:
    """Reports that say hardly anything of the place, so that draws show the source of their bytes;
    two of four are likely and others rare."""
    cells, km = om.Grid(4, 2, bounds=BOX), om.distances.euclidean()
    found = om.solve(
        om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(0.01, km)])
    )
    path = tmp_path_factory.mktemp("design") / "design.json"
    found.save(path)
    return found, path


def whole(rng: np.random.Generator) -> Values:
    return list(rng.integers(-(10**6), 10**6, ROWS).tolist())


def parts(rng: np.random.Generator) -> Values:
    """Numbers that a double, and a decimal of few digits, hold exactly."""
    return list((rng.integers(-(2**20), 2**20, ROWS) / 2 ** rng.integers(0, 9, ROWS)).tolist())


def moments(rng: np.random.Generator) -> Values:
    begin = datetime(1970, 1, 2)
    seconds = rng.integers(0, 2**31, ROWS).tolist()
    return [begin + timedelta(seconds=s if k % 3 else s // 86400 * 86400)
            for k, s in enumerate(seconds)]  # fmt: skip


def days(rng: np.random.Generator) -> Values:
    return [date(1970, 1, 2) + timedelta(days=k) for k in rng.integers(0, 25_000, ROWS).tolist()]


def objects(values: Values) -> Column:
    return pd.Series(values, dtype=object)


def some_missing(values: Values) -> Values:
    """The last value of a column of whole numbers is missing, as one user's."""
    return [*values[:-1], None]


NUMBERS: dict[str, Callable[[Values], Column]] = {
    "float64": lambda v: np.array(v, dtype=float),
    "Float64": lambda v: pd.array(v, dtype="Float64"),
    "objects": objects,
    "texts": lambda v: objects([str(x) for x in v]),
    "texts of floats": lambda v: objects([str(float(x)) for x in v]),
    "texts with blanks": lambda v: objects([f" {x}\t" for x in v]),
    "string": lambda v: pd.array([str(x) for x in v], dtype="string"),
    "category": pd.Categorical,
    "decimals": lambda v: objects([Decimal(str(x)) for x in v]),
    "longer decimals": lambda v: objects([Decimal(str(x)) + Decimal("0.000") for x in v]),
    "bytes": lambda v: objects([str(x).encode() for x in v]),
    "numpy scalars": lambda v: objects([np.float64(x) for x in v]),
    "longdouble": lambda v: objects([np.longdouble(x) for x in v]),
}
WHOLE = NUMBERS | {
    "int64": np.array,
    "int32": lambda v: np.array(v, dtype=np.int32),
    "float32": lambda v: np.array(v, dtype=np.float32),
    "Int64": lambda v: pd.array(v, dtype="Int64"),
    "fractions": lambda v: objects([Fraction(x) for x in v]),
    "big-endian": lambda v: objects(list(np.array(v, dtype=">i8"))),
}
HAD = {name: WHOLE[name] for name in ("objects", "Int64", "Float64", "category")} | {
    "float64": lambda v: np.array([np.nan if x is None else x for x in v]),
    "texts": lambda v: objects(["" if x is None else str(x) for x in v]),
    "texts of floats": lambda v: objects(["nan" if x is None else f"{x}.0" for x in v]),
    "masks": lambda v: objects([np.ma.masked if x is None else x for x in v]),
    "NA": lambda v: objects([pd.NA if x is None else x for x in v]),
}
VIENNA = timezone(timedelta(hours=2))
TIMES: dict[str, Callable[[Values], Column]] = {
    "ns": lambda v: np.array(v, dtype="M8[ns]"),
    "us": lambda v: np.array(v, dtype="M8[us]"),
    "ms": lambda v: np.array(v, dtype="M8[ms]"),
    "s": lambda v: np.array(v, dtype="M8[s]"),
    "Timestamps": lambda v: objects([pd.Timestamp(x) for x in v]),
    "objects": objects,
    "aware": lambda v: pd.DatetimeIndex(v).tz_localize("UTC"),
    "of another zone": lambda v: pd.DatetimeIndex(v).tz_localize("UTC").tz_convert("Asia/Kolkata"),
    "datetimes of a zone": lambda v: objects(
        [datetime.combine(x, datetime.min.time(), UTC).astimezone(VIENNA) if type(x) is date
         else x.replace(tzinfo=UTC).astimezone(VIENNA) for x in v]),
    "numpy scalars": lambda v: objects([np.datetime64(x, "us") for x in v]),
    "ISO": lambda v: objects([pd.Timestamp(x).isoformat() for x in v]),
    "ISO with a space": lambda v: objects([f"{pd.Timestamp(x):%Y-%m-%d %H:%M:%S}" for x in v]),
    "ISO of a zone": lambda v: objects([f"{pd.Timestamp(x):%Y-%m-%dT%H:%M:%S}Z" for x in v]),
    "ISO with nanoseconds": lambda v: objects(
        [f"{pd.Timestamp(x):%Y-%m-%dT%H:%M:%S}.000000000" for x in v]),
    "slashes": lambda v: objects([f"{pd.Timestamp(x):%Y/%m/%d %H:%M:%S}" for x in v]),
    "as pandas writes": lambda v: objects(
        pd.DataFrame({"u": np.array(v, dtype="M8[ns]")}).to_csv(index=False).splitlines()[1:]),
}  # fmt: skip
DAYS = TIMES | {
    "D": lambda v: np.array(v, dtype="M8[s]"),
    "days of numpy": lambda v: objects([np.datetime64(x, "D") for x in v]),
    "periods": lambda v: pd.PeriodIndex([x.isoformat() for x in v], freq="D"),
    "texts": lambda v: objects([x.isoformat() for x in v]),
    "short": lambda v: objects([f"{x.year}-{x.month}-{x.day}" for x in v]),
}
TRUTH: dict[str, Callable[[Values], Column]] = {
    "bool": np.array,
    "boolean": lambda v: pd.array(v, dtype="boolean"),
    "objects": objects,
    "texts": lambda v: objects([str(x) for x in v]),
    "small": lambda v: objects([str(x).lower() for x in v]),
    "capitals": lambda v: objects([str(x).upper() for x in v]),
}
NAMES: dict[str, Callable[[Values], Column]] = {
    "objects": objects,
    "string": lambda v: pd.array(v, dtype="string"),
    "category": pd.Categorical,
    "numpy": lambda v: objects(list(np.array(v))),
    "bytes": lambda v: objects([x.encode() for x in v]),
    "blanks": lambda v: objects([f"{x}  " for x in v]),
    "decomposed": lambda v: objects([x.replace("é", "e\u0301") for x in v]),
}
KINDS: dict[str, tuple[Callable[[np.random.Generator], Values], Any]] = {
    "whole numbers": (whole, WHOLE),
    "whole numbers, one missing": (lambda rng: some_missing(whole(rng)), HAD),
    "parts of numbers": (parts, NUMBERS),
    "moments": (moments, TIMES),
    "days": (days, DAYS),
    "truth": (lambda rng: (rng.random(ROWS) < 0.5).tolist(), TRUTH),
    "names": (lambda rng: [f"rené {k}" for k in rng.integers(0, 200, ROWS)], NAMES),
}


def frame(column: Column) -> pd.DataFrame:
    return pd.DataFrame({"lon": np.full(ROWS, -73.9), "lat": np.full(ROWS, 40.1), "u": column})


def reports(design: om.Design, data: Any, **more: Any) -> list[tuple[float, float]]:
    out = plainly(design, data, by="u", key=KEY, **more)
    if isinstance(out, gpd.GeoDataFrame):
        return list(zip(out.geometry.x.round(9), out.geometry.y.round(9), strict=True))
    return list(zip(out["lon"].to_numpy().round(9), out["lat"].to_numpy().round(9), strict=True))


def commanded(path: Path, source: str, folder: Path) -> list[tuple[float, float]]:
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o600)
    argv = ["protect", str(path), source, "-o", str(folder / "out.csv"), "--sticky-by", "u",
            "--x", "lon", "--y", "lat", "--sticky-key-file", str(folder / "key"), "-q"]  # fmt: skip
    if source.endswith("geojson"):
        del argv[argv.index("--x") : argv.index("--sticky-key-file")]
    assert main([word for word in argv if word != "-q"]) == 0
    with open(folder / "out.csv", encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return [(round(float(x), 9), round(float(y), 9)) for x, y in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_one_value_is_one_report_in_every_store(kind: str, design: tuple[om.Design, Path]) -> None:
    """500 values of each kind, in a table and a dataset; other values have other draws."""
    make, stores = KINDS[kind]
    values = make(np.random.default_rng(1))
    found = {name: reports(design[0], frame(store(values))) for name, store in stores.items()}
    first = next(iter(found.values()))
    # the draws are those of their values: many reports, and not one for all
    assert len(set(first)) > (0 if kind == "truth" else 3)
    assert [name for name, own in found.items() if own != first] == []
    points = gpd.GeoDataFrame(
        {"u": next(iter(stores.values()))(values)},
        geometry=gpd.points_from_xy([-73.9] * ROWS, [40.1] * ROWS), crs=4326,
    )  # fmt: skip
    assert reports(design[0], points) == first
    if all(value is not None for value in values):
        numpy = {"lon": ("row", [-73.9] * ROWS), "lat": ("row", [40.1] * ROWS)}
        data = xr.Dataset({**numpy, "u": ("row", np.array(values, dtype=object))})
        assert reports(design[0], data, x="lon", y="lat") == first


FILED = ("whole numbers", "whole numbers, one missing", "parts of numbers", "moments", "days")


@pytest.mark.parametrize("kind", FILED)
def test_files_and_streams_have_the_reports_of_tables(
    kind: str,
    design: tuple[om.Design, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, stores = KINDS[kind]
    values = make(np.random.default_rng(2))
    own, path = design
    expected = reports(own, frame(next(iter(stores.values()))(values)))
    for name in stores:
        if name in ("bytes", "masks", "fractions", "longdouble", "numpy scalars", "big-endian"):
            continue  # of no file
        table = frame(stores[name](values))
        table.to_csv(tmp_path / "data.csv", index=False)
        assert commanded(path, str(tmp_path / "data.csv"), tmp_path) == expected, name
    filed = {"int64", "int32", "float32", "float64", "Int64", "decimals", "ns", "us", "ms", "s",
             "aware", "of another zone", "objects", "texts"} & set(stores)  # fmt: skip
    table = pd.DataFrame({name: stores[name](values) for name in filed})
    table.assign(lon=-73.9, lat=40.1, u=table[min(filed)]).to_parquet(tmp_path / "data.parquet")
    columns, _ = read_parquet_table(tmp_path / "data.parquet", sorted(filed), numbers=False)
    wanted = forms(frame(next(iter(stores.values()))(values))["u"].to_numpy(), "u")
    assert [name for name, own in columns.items() if forms(own, "u") != wanted] == []
    assert commanded(path, str(tmp_path / "data.parquet"), tmp_path) == expected
    text = (tmp_path / "data.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
    assert commanded(path, "-", tmp_path) == expected
    plain = [v if v is None or isinstance(v, int | float) else v.isoformat() for v in values]
    features = [
        {"type": "Feature", "properties": {"u": value},
         "geometry": {"type": "Point", "coordinates": [-73.9, 40.1]}} for value in plain
    ]  # fmt: skip
    collection = {"type": "FeatureCollection", "features": features}
    (tmp_path / "data.geojson").write_text(json.dumps(collection))
    assert commanded(path, str(tmp_path / "data.geojson"), tmp_path) == expected


def drawn() -> Iterator[tuple[tuple[str, Any], bytes]]:
    """2,000 values of all kinds by what they are, and the form of one of their stores."""
    rng = np.random.default_rng(3)
    for kind in ("whole numbers", "parts of numbers", "moments", "names"):
        make, stores = KINDS[kind]
        values = make(rng)
        names = list(stores)
        for k, value in enumerate(values):
            column = pd.Series(stores[names[k % len(names)]]([value])).to_numpy()
            (form,) = forms(column, "u")
            yield ("number" if "number" in kind else kind, value), form


def test_other_values_have_other_forms() -> None:
    """Two of 2,000 values have one form exactly where they are equal."""
    found = list(drawn())
    assert len(found) == 2000
    assert len({value for value, _ in found}) == len({form for _, form in found}) > 1500
    assert len(set(found)) == len({value for value, _ in found})


@pytest.mark.parametrize(
    ("same", "form"),
    [
        ((7, 7.0, "7", "7.00", "7.0e+00", Decimal("70e-1"), np.uint8(7), np.float16(7)), b"7"),
        ((0, -0.0, "-0", "0.000", Decimal("-0E+5")), b"0"),
        ((1e-7, "1e-07", "0.0000001", Decimal("1E-7")), b"0.0000001"),
        ((10**30, "1" + 30 * "0", Decimal("1e30")), b"1" + 30 * b"0"),
        ((10**60, "1" + 60 * "0"), b"1e+60"),
        ((None, "", " ", float("nan"), np.datetime64("NaT"), pd.NA, pd.NaT, "NaN", "NA"), b""),
        ((True, np.True_, "true", "TRUE", "True"), b"True"),
        ((date(2024, 1, 31), "2024-01-31", "2024/1/31", "2024-01-31T00:00Z", "2024-01-31 00:00:00",
          np.datetime64("2024-01-31T00", "h"), pd.Timestamp("2024-01-31"),
          pd.Timestamp("2024-01-31 05:30", tz="Asia/Kolkata"), "2024-01-31T02:00:00+02:00",
          "2024-01-30T22:00:00.000-0200"), b"2024-01-31"),
        (("2024-01", np.datetime64("2024-01", "M"), pd.Period("2024-01", "M"), "2024-01-01"),
         b"2024-01-01"),
        (("2024-01-31T05:00:00.123000", pd.Timestamp("2024-01-31 05:00:00.123"),
          np.datetime64("2024-01-31T05:00:00.123")), b"2024-01-31T05:00:00.123"),
        (("5:07", "05:07:00", "05:07:00.0"), b"05:07:00"),
        (((3, 4), (3.0, np.int8(4))), b"3,4"),
    ],
)  # fmt: skip
def test_forms_are_written_as_people_write_them(same: tuple[object, ...], form: bytes) -> None:
    assert forms(same, "u") == [form] * len(same)


def test_texts_that_are_no_numbers_stay_apart() -> None:
    """A number that was written with zeros before it is a text, as are hexadecimal names with an e
    in them, words, and what no calendar has."""
    names = ["007", "7", "+7", "1_000", "a,5", "1, 5", "1e3", "12345e67", "0x7", "1.", ".5", "yes",
             "2024-02-30", "1234-56", "192.168.10.25", "06-12-34-56-78", "99:99"]  # fmt: skip
    assert forms(names, "u") == [name.encode() for name in names]


@pytest.mark.parametrize(
    "value",
    [
        pd.Timedelta("5min"), np.timedelta64(5, "m"), timedelta(minutes=5), "0 days 00:05:00",
        "31/01/2024", "1.2.2024", "1-2-24", "2024-01-31 5 pm", "2024-02-30 05:00",
        np.datetime64("2024", "Y"), np.datetime64("20240-01-01"), float("inf"), 2.0**53, "1e+16",
        "7,5", "-7,0", "1,000", "1.000,5", "1,000,000.5", "3,4", ("7,5", 1),
        "9007199254740993.0", np.longdouble(1) / 3, 1 + 2j, Fraction(1, 3), Decimal("Infinity"),
        b"\xff", [1], {"a": 1}, {1}, np.array([1]), np.zeros((), dtype="i4,i4")[()], object(),
        pd.Interval(0, 1), print, om.Grid(2, 2),
    ],
)  # fmt: skip
def test_what_has_several_forms_is_refused(value: object, design: tuple[om.Design, Path]) -> None:
    """In words that hold no value."""
    data = frame(objects([1] * (ROWS - 1) + [0]))
    data["u"] = objects([1] * (ROWS - 1) + [value])
    with pytest.raises(ProblemError) as error:
        reports(design[0], data)
    assert f"row {ROWS}: the column 'u', which reports repeat by, holds " in str(error.value)
    if isinstance(value, str | bytes | Decimal | Fraction):
        assert str(value) not in str(error.value)
    # without a key nothing repeats
    plainly(design[0], data, by="u")
