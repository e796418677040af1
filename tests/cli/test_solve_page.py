"""``optmech solve --report``: the page of what was written, read and checked again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import optmech as om
from optmech.cli.main import main

CITY = """
format = 1
prior = "uniform"
loss = "euclidean"
[secrets]
kind = "grid"
rows = 2
columns = 2
bounds = [5.0, 45.0, 5.1, 45.1]
[[constraints]]
kind = "metric_privacy"
epsilon = 1
distance = "euclidean"
"""
ROAD = {"type": "LineString", "coordinates": [[4.9, 45.02], [5.05, 45.05], [5.2, 45.08]]}


@pytest.fixture
def city(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "city.toml").write_text(CITY)
    (tmp_path / "plane.toml").write_text(CITY.replace("bounds = [5.0, 45.0, 5.1, 45.1]\n", ""))
    (tmp_path / "road.geojson").write_text(json.dumps(ROAD))
    (tmp_path / "far.geojson").write_text(json.dumps({**ROAD, "coordinates": [[0, 0], [1, 1]]}))
    return tmp_path


def test_the_page_is_that_of_the_file(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["solve", "city.toml", "-q", "-o", "design.json", "--report", "page.html"]
    assert main([*command, "--backdrop", "road.geojson"]) == 0
    assert "report written to page.html" in capsys.readouterr().err
    assert main(["report", "design.json", "--backdrop", "road.geojson", "-o", "again.html"]) == 0
    assert (city / "page.html").read_bytes() == (city / "again.html").read_bytes()
    assert main(["solve", "city.toml", "-q", "--json", "--report", "page.html"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == "page.html"


def test_a_file_that_does_not_hold_is_not_shown(
    city: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written is altered before it is read: no page comes of it."""
    save = om.Design.save

    def altered(self: om.Design, path: str) -> None:
        save(self, path)
        text = Path(path).read_text()
        held = json.loads(text)["result"]["loss"]
        Path(path).write_text(text.replace(repr(held), repr(held / 2)))

    monkeypatch.setattr(om.Design, "save", altered)
    assert main(["solve", "city.toml", "-q", "-o", "design.json", "--report", "page.html"]) != 0
    assert "design.json" in capsys.readouterr().err
    assert not (city / "page.html").exists()


def test_without_a_file_the_design_itself_is_shown(city: Path) -> None:
    assert main(["solve", "plane.toml", "-q", "--report", "page.html"]) == 0
    assert (city / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--backdrop", "road.geojson"], ["--backdrop", "--report"]),
        (["--report", "page.html", "--backdrop", "raod.geojson"], ["raod.geojson", "Did you mean"]),
        (["--report", "page.html", "--backdrop", "city.toml"], ["city.toml", "not GeoJSON"]),
        (["--report", "page.pdf"], ["--report: page.pdf", ".html"]),
        (["--report", "city.toml"], ["--report", "city.toml"]),
        (["-o", "a.json", "--report", "a.json"], ["same file as --output"]),
        (["--report", "no/such/page.html"], ["--report", "no/such"]),
    ],
)
def test_mistakes_are_said_before_anything_is_solved(
    options: list[str], said: list[str], city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(city.iterdir())
    assert main(["solve", "city.toml", *options]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    for text in said:
        assert text in error
    assert sorted(city.iterdir()) == before


def test_places_without_degrees_have_no_backdrop(
    city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--report", "page.html", "--backdrop", "road.geojson"]
    assert main(["solve", "plane.toml", *options]) == 2
    assert "no longitudes and latitudes" in capsys.readouterr().err
    # a backdrop of elsewhere costs no design
    options = ["-o", "design.json", "--report", "page.html", "--backdrop", "far.geojson"]
    assert main(["solve", "city.toml", "-q", *options]) == 2
    assert "far.geojson" in capsys.readouterr().err
    assert main(["check", "design.json"]) == 0
