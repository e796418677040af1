"""Every file of the gallery: it can be read, says where it comes from, and has its optimum."""

from __future__ import annotations

import csv
import functools
import gzip
import json
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from each import each

import optmech as om
from optmech.files import find_problem, list_gallery, problem_schema, read_problem
from optmech.files.gallery import gallery_names
from optmech.reading.source import read_document

NAMES = gallery_names()
LARGE = ("paper", "montreal")
needs_plotly = pytest.mark.skipif(find_spec("plotly") is None, reason="plotly is not installed")


def test_there_are_problems_of_every_kind() -> None:
    assert len(NAMES) >= 12
    text = "".join(find_problem(name).read_text(encoding="utf-8") for name in NAMES)
    schema = problem_schema()["$defs"]
    for kind in ("MetricPrivacy", "DifferentialPrivacy", "DistortionPrivacy", "Support"):
        assert f'"{schema[kind]["properties"]["kind"]["const"]}"' in text
    for word in (
        "distribution_privacy",
        "loss_bound",
        "maximize_distortion",
        "minimize_leakage",
        "minimize_variance",
        "worst_loss",
    ):
        assert f'"{word}"' in text


@each("name", NAMES)
def test_every_file_has_a_header_a_title_and_a_source(name: str) -> None:
    path = find_problem(name)
    assert path.read_text(encoding="utf-8").startswith("# ")
    document = read_document(path)
    assert document["title"]
    assert document["source"]


listed = functools.cache(list_gallery)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_as_listed(name: str) -> None:
    (entry,) = [entry for entry in listed() if entry.name == name]
    file = read_problem(name)
    assert entry.note == ""
    assert (entry.secrets, entry.observables) == (
        len(file.problem.secrets),
        len(file.problem.observables),
    )
    assert (entry.title, entry.optimum) == (file.title, file.optimum)
    assert file.problem.title == file.title


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("paper", (300, 300)),
        ("paper-small", (20, 20)),
        ("montreal", (249, 249)),
        ("montreal-small", (40, 40)),
        ("coarser", (36, 10)),
        ("medical-tree", (11, 8)),
        ("road-network", (30, 30)),
    ],
)
def test_known_sizes(name: str, sizes: tuple[int, int]) -> None:
    problem = om.load_problem(name)
    assert (len(problem.secrets), len(problem.observables)) == sizes


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LARGE])
def test_the_solver_reaches_the_stated_optimum(name: str) -> None:
    file = read_problem(name)
    design = om.solve(file.problem)
    assert design.status == "optimal"
    assert design.verified
    assert design.gap <= 1e-6
    if file.optimum is not None:
        assert design.objective == pytest.approx(file.optimum, rel=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "approximate",
        "differential",
        "distortion",
        "distribution",
        "grid-4x4",
        "joint",
        "line-geometric",
        "max-distortion",
        "medical-tree",
        "metric",
        "paper-small",
        "support",
        "worst-case",
    ],
)
def test_the_oracle_agrees(name: str) -> None:
    problem = om.load_problem(name)
    expected = oracle.optimum(problem)
    assert expected is not None
    assert om.solve(problem).objective == pytest.approx(expected, rel=1e-6)


def optimum(name: str) -> float:
    value = read_problem(name).optimum
    assert value is not None
    return value


def test_closed_forms() -> None:
    assert optimum("differential") == pytest.approx(9 / (3 + 9), rel=1e-12)
    assert optimum("worst-case") == pytest.approx(5 / (4 + 5), rel=1e-12)
    assert optimum("approximate") == pytest.approx(3 * (1 - 0.05) / (2 + 3), rel=1e-12)
    assert optimum("max-distortion") == 0.5


def test_the_truncated_geometric_mechanism_with_the_best_remap() -> None:
    weights = np.array([1, 2, 4, 9, 7, 3, 2, 5, 3, 1]) / 37
    alpha, size = 0.5, 10
    best = 0.0
    for o in range(size):
        column = np.array([alpha ** abs(s - o) for s in range(size)])
        column *= (1 if o in (0, size - 1) else 1 - alpha) / (1 + alpha)
        best += min(
            sum(weights[s] * column[s] * abs(s - t) for s in range(size)) for t in range(size)
        )
    assert optimum("line-geometric") == pytest.approx(best, rel=1e-12)


@needs_plotly
def test_montreal_is_the_data_of_plotly() -> None:
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(next(iter(spec.submodule_search_locations)))
    with gzip.open(folder / "package_data" / "datasets" / "carshare.csv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    hours = np.array([float(row["car_hours"]) for row in rows])
    problem = om.load_problem("montreal")
    np.testing.assert_allclose(problem.prior.weights, hours / hours.sum(), rtol=1e-12)
    d = om.distances.haversine()(problem.secrets, problem.secrets)
    lon, lat = (
        np.radians([float(row[f"centroid_{x}"]) for row in rows[:2]]) for x in ("lon", "lat")
    )
    angle = math.acos(
        math.sin(lat[0]) * math.sin(lat[1])
        + math.cos(lat[0]) * math.cos(lat[1]) * math.cos(lon[0] - lon[1])
    )
    assert d[0, 1] == pytest.approx(6371.0088 * angle, rel=1e-9)


def test_aggregation_keeps_the_centre_of_montreal() -> None:
    whole, small = om.load_problem("montreal"), om.load_problem("montreal-small")
    assert whole.secrets.points is not None
    assert small.secrets.points is not None
    np.testing.assert_allclose(
        small.prior.weights @ small.secrets.points,
        whole.prior.weights @ whole.secrets.points,
        rtol=1e-12,
    )


def test_unavailable_data_are_a_note_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optmech.reading.data.find_spec", lambda name: None)
    entries = {entry.name: entry for entry in list_gallery()}
    assert entries["montreal"].secrets is None
    assert "not installed" in entries["montreal"].note
    assert entries["metric"].secrets == 10


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [ref for value in node.values() for ref in references(value)]
    if isinstance(node, list):
        return [ref for value in node for ref in references(value)]
    return []


def test_the_schema_resolves() -> None:
    schema = problem_schema()
    assert schema["required"] == ["format", "secrets", "prior", "loss"]
    assert schema["additionalProperties"] is False
    known = {f"#/$defs/{name}" for name in schema["$defs"]}
    assert set(references(schema)) <= known


def test_the_schema_accepts_the_gallery_and_refuses_what_is_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = problem_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name in NAMES:
        document = read_document(find_problem(name))
        assert not list(validator.iter_errors(document)), name
        assert list(validator.iter_errors({**document, "zzz": 1}))
        assert list(validator.iter_errors({**document, "loss": "nosuch"}))
        assert list(validator.iter_errors({**document, "secrets": {"kind": "grid", "rows": 2}}))


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script that writes the pages, where its results are at hand."""
    root = Path(__file__).resolve().parents[2]
    monkeypatch.syspath_prepend(str(root))
    script = pytest.importorskip("benchmarks.gallery")
    if not script.RECORDS.is_file():
        pytest.skip("docs/ is not beside the tests")
    return script


def test_the_pages_say_what_was_measured(pages: Any) -> None:
    known = json.loads(pages.RECORDS.read_text(encoding="utf-8"))
    assert sorted(known) == sorted(NAMES)
    for name, text in pages.pages(known).items():
        assert (pages.DOCS / name).read_text(encoding="utf-8") == text


def test_twelve_entries_come_first(pages: Any) -> None:
    """Each with a sentence, a picture, a command and a number, which the command finds again."""
    text = (pages.DOCS / "gallery.md").read_text(encoding="utf-8")
    entries = re.split(r"^## ", text, flags=re.M)[1:]
    known = json.loads(pages.RECORDS.read_text(encoding="utf-8"))
    assert len(pages.FIRST) == 12
    for entry, name in zip(entries, pages.FIRST, strict=True):
        title, sentence, picture, said = [line for line in entry.split("\n") if line][:4]
        assert title == known[name]["title"]
        assert re.fullmatch(r"[A-Z].{30,150}\.", sentence)
        drawn = re.search(r"\]\((gallery/.*\.svg)\)", picture)
        assert drawn is not None
        assert (pages.DOCS / drawn[1]).stat().st_size > 500
        found = re.match(r"`optmech (solve|transport) (\S+)`: \d+ secrets, loss ([\d.]+) ", said)
        assert found is not None
        assert found[2] == name
        if known[name]["seconds"] < 1:
            file = read_problem(name)
            design: Any = (
                file.transport.solve() if found[1] == "transport" else om.solve(file.problem)
            )
            assert design.loss == pytest.approx(float(found[3]), rel=1e-5)
