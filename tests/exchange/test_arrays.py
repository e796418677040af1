"""NetCDF and Parquet files, read by other libraries, and matrices in plain files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import optmech as om

exchange = om.exchange


def test_xarray_has_named_axes(mechanism: om.Mechanism) -> None:
    pytest.importorskip("xarray")
    array = exchange.to_xarray(mechanism)
    assert array.dims == ("secret", "observable")
    np.testing.assert_array_equal(array.values, mechanism.matrix)
    assert float(array.sel(secret="1,2", observable="0,3")) == mechanism.matrix[6, 3]
    assert array.secret_x.attrs["units"] == "km"
    np.testing.assert_allclose(array.sum("observable"), 1.0)


def test_netcdf_is_read_by_the_netcdf_library(mechanism: om.Mechanism, tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    pytest.importorskip("xarray")
    path = tmp_path / "m.nc"
    exchange.write_netcdf(mechanism, path)
    with netcdf.Dataset(path) as stored:
        assert stored["probability"].dimensions == ("secret", "observable")
        np.testing.assert_array_equal(stored["probability"][:].data, mechanism.matrix)
        assert list(stored["secret"][:2]) == ["0,0", "0,1"]
        np.testing.assert_array_equal(stored["secret_y"][:].data, mechanism.secrets.points[:, 1])


def test_netcdf_reads_back(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    places = om.Domain.geographic(["a", "b"], [(-73.6, 45.5), (-73.5, 45.6)])
    bare = om.Domain(["yes", "no", "?"])
    given = om.Mechanism(places, bare, [[0.25, 0.5, 0.25], [0.1, 0.2, 0.7]])
    exchange.write_netcdf(given, tmp_path / "m.nc")
    found = exchange.read_netcdf(tmp_path / "m.nc")
    np.testing.assert_array_equal(found.matrix, given.matrix)
    assert (found.secrets, found.observables) == (places, bare)


def test_parquet_is_a_table_of_three_columns(mechanism: om.Mechanism, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "m.parquet"
    exchange.write_parquet(mechanism, path)
    table = parquet.read_table(path).to_pydict()
    assert list(table) == ["secret", "observable", "probability"]
    row = next(
        k for k in range(144) if (table["secret"][k], table["observable"][k]) == ("2,3", "0,1")
    )
    assert table["probability"][row] == mechanism.matrix[11, 1]
    back = exchange.read_parquet(path, mechanism.secrets, mechanism.observables)
    np.testing.assert_array_equal(back.matrix, mechanism.matrix)
    assert exchange.read_parquet(path).secrets.labels[0] == "0,0"


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".nc", ".parquet"])
def test_matrices_read_back_bit_by_bit(
    mechanism: om.Mechanism, tmp_path: Path, suffix: str
) -> None:
    pytest.importorskip("xarray")
    pytest.importorskip("pyarrow")
    path = tmp_path / f"m{suffix}"
    exchange.write_matrix(mechanism, path)
    found = exchange.read_matrix(path, mechanism.secrets, mechanism.observables)
    np.testing.assert_array_equal(found.matrix, mechanism.matrix)


def test_printed_matrices_are_normalised(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("0.3333333,0.6666666\n0.5,0.5\n")
    found = exchange.read_matrix(path, om.Domain("ab"), om.Domain("xy"))
    np.testing.assert_allclose(found.matrix[0], [1 / 3, 2 / 3], rtol=1e-7)
    assert found.matrix.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", b"0.5,0.5\n", "does not fit 2 secrets"),
        ("m.csv", b"0.5,0.5\n1\n", "different lengths"),
        ("m.csv", b"0.5,half\n0.5,0.5\n", "is not a number"),
        ("m.csv", b"0.5,0.6\n0.5,0.5\n", "sums to 1.1"),
        ("m.csv", b"nan,0.5\n0.5,0.5\n", "NaN"),
        ("m.csv", b"1.5,-0.5\n0.5,0.5\n", "below 0"),
        ("m.csv", b"", "is empty"),
        ("m.npy", b"no array", "NumPy"),
        ("m.nc", b"no array", "NetCDF"),
        ("m.parquet", b"no table", "cannot be read"),
        ("m.txt", b"0.5", "is not a matrix"),
    ],
)
def test_what_is_no_mechanism_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    for needed in ("xarray", "h5netcdf", "pyarrow"):
        pytest.importorskip(needed)
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(om.ProblemError, match=message):
        exchange.read_matrix(path, om.Domain("ab"), om.Domain("xy"))


def test_tables_with_doubtful_rows_are_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    columns = ["secret", "observable", "probability"]
    for rows, message in (
        ([("a", "x", 0.5), ("a", "x", 0.5)], "occurs twice"),
        ([("a", "x", 1.0), ("c", "x", 1.0)], "row 2 has none of the 2 labels"),
    ):
        path = tmp_path / "m.parquet"
        pandas.DataFrame(rows, columns=columns).to_parquet(path)
        with pytest.raises(om.ProblemError, match=message):
            exchange.read_parquet(path, om.Domain("ab"), om.Domain("x"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xarray", None)
    plain = om.Mechanism(om.Domain("a"), om.Domain("a"), [[1.0]])
    with pytest.raises(om.ProblemError, match=r"pip install '\.\[xarray\]'"):
        exchange.to_xarray(plain)
