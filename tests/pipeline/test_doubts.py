"""What can hardly be meant is said before a search, or refused, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.errors import ProblemError
from optmech.files.gallery import gallery_names

E = om.distances.euclidean()
BOX = (8.5, 47.3, 8.6, 47.4)


def near_zurich(count: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.uniform([8.5, 47.3], [8.6, 47.4], (count, 2))


def problem(prior: om.Prior, epsilon: float = 0.5) -> om.Problem:
    return om.Problem(prior, E, constraints=[om.MetricPrivacy(epsilon, E)])


def test_latitude_first_is_refused() -> None:
    west, south, east, north = BOX
    exchanged = om.Grid(3, 3, bounds=(south, west, north, east))
    for smoothing in (0.0, 1.0):
        with pytest.raises(ProblemError, match=r"100 \(100.0 %\) fall outside .* change places"):
            om.Prior.from_points(exchanged, near_zurich(100), smoothing=smoothing)
    # and the other way round: points with the latitude first
    with pytest.raises(ProblemError, match="change places"):
        om.Prior.from_points(om.Grid(3, 3, bounds=BOX), near_zurich(9)[:, ::-1], smoothing=1)


def test_a_region_beside_the_points_is_doubted_and_a_small_part_is_not() -> None:
    points = near_zurich(200)
    elsewhere = om.Grid(3, 3, bounds=(18.5, 47.3, 18.6, 47.4))
    (said,) = problem(om.Prior.from_points(elsewhere, points, smoothing=1)).doubts
    assert "0 of 200 observations counted" in said
    assert "200 (100.0 %)" in said
    assert "west, south, east, north" in said
    whole = om.Grid(3, 3, bounds=BOX)
    assert problem(om.Prior.from_points(whole, points)).doubts == ()
    three_of_four = om.Grid(3, 3, bounds=(8.5, 47.3, 8.575, 47.4))
    assert problem(om.Prior.from_points(three_of_four, points)).doubts == ()


@pytest.mark.parametrize(("epsilon", "doubted"), [(0.5, False), (6.9, False), (7.1, True)])
def test_a_rate_that_hides_nothing(epsilon: float, doubted: bool) -> None:
    # cells of 2 x 3 km: at 2 km, 7 per km are odds of e^14, more than a million to one
    prior = om.Prior.uniform(om.Grid(2, 2, cell=(2, 3), unit="km"))
    found = problem(prior, epsilon).doubts
    assert bool(found) == doubted
    if doubted:
        assert f"e^{2 * epsilon:.4g}" in found[0]


@pytest.mark.parametrize(
    ("epsilon", "said"), [(0.5, ""), (0.003, "next to nothing: from"), (150.0, "hides next to")]
)
def test_a_rate_for_every_point(epsilon: float, said: str) -> None:
    # a square of side 8, 11.3 across: 150 times a hundredth of that is e^17
    places = om.Domain("ab", [[1.0, 1.0], [7.0, 7.0]])
    mesh = om.Mesh.grid((0, 0, 8, 8), 8)
    private = om.MetricPrivacy(epsilon, E, everywhere=mesh)
    found = om.Problem(om.Prior.uniform(places), E, constraints=[private]).doubts
    assert len(found) == bool(said)
    if said:
        assert said in found[0]
        across = epsilon * np.hypot(8, 8)
        told = f"e^{across / 100:.4g}" if epsilon > 1 else f"{np.exp(across):.4g} at most"
        assert told in found[0]


def test_rows_that_are_no_places() -> None:
    rng = np.random.default_rng(1)
    stations = rng.uniform(0, 9, (370, 2))
    rows = om.Domain(range(1200), stations[rng.integers(370, size=1200)])
    found = om.Problem(om.Prior.uniform(rows), E, constraints=[om.MetricPrivacy(1, E)]).doubts
    places = len({tuple(p) for p in rows.points.tolist()})  # type: ignore[union-attr]
    assert any(f"1,200 secrets lie at {places} different places" in line for line in found)
    assert any("distinct = true" in line for line in found)


def test_the_gallery_is_not_doubted() -> None:
    for name in gallery_names():
        if name not in ("montreal", "paper"):
            assert om.load_problem(name).doubts == (), name


def test_it_is_said_before_the_search_and_with_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wide.toml"
    path.write_text(
        'format = 1\nloss = "euclidean"\nprior = "uniform"\n[secrets]\nkind = "grid"\nrows = 2\n'
        'columns = 2\nunit = "km"\n[[constraints]]\nkind = "metric_privacy"\nepsilon = 100\n'
        'distance = "euclidean"\n'
    )
    assert main(["solve", str(path), "-q", "--json"]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    first = said.err.splitlines()[0]
    assert first.startswith("warning: constraints[0]: ")
    assert "e^100" in first


@pytest.mark.parametrize("command", [["solve"], ["redesign", "d.json"], ["sweep"]])
@pytest.mark.parametrize("gap", ["1.01", "5", "1e300", "nan", "inf", "0", "-1"])
def test_a_gap_is_a_share(command: list[str], gap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "metric", f"--gap={gap}"]) == 2
    assert "--gap: " in capsys.readouterr().err


def test_a_gap_in_python_and_in_a_profile() -> None:
    with pytest.raises(ProblemError, match=r"gap: 5.* is more than all of the loss"):
        om.solve(om.load_problem("male-female"), gap=5)
    assert om.solve(om.load_problem("male-female"), gap=1).verified
