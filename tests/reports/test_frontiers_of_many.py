"""One line for every series, medians and quartiles, names from the axes of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_sweeps.run import named_designs

import optmech as om
from optmech.cli.main import main

KM = om.distances.euclidean()
USERS = ("ada", "ben", "cleo", "dora")
RATES = (0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> om.SweepResult:
    """Four users by three ε, solved here and not in other processes."""
    line = om.Domain("abcd", [0.0, 1.0, 2.0, 4.0], unit="km")
    rng = np.random.default_rng(3)
    priors = {user: om.Prior(line, rng.dirichlet(np.ones(4))) for user in USERS}
    problem = om.Problem(om.Prior.uniform(line), KM, constraints=[om.MetricPrivacy(1, KM)])
    axes = {"prior": priors, "constraints[0].epsilon": RATES}
    return om.sweep(problem, axes, tmp_path_factory.mktemp("sweeps") / "run", workers=1)


def losses(run: om.SweepResult) -> np.ndarray:
    """Of every user at every rate."""
    return np.array([float(row["loss"]) for row in run.rows]).reshape(len(USERS), len(RATES))  # type: ignore[arg-type]


def test_designs_are_called_by_what_differs(run: om.SweepResult) -> None:
    tasks, names, groups = named_designs(run)
    assert tasks == list(range(12))
    assert names[:4] == ["ada, epsilon = 0.5", "ada, epsilon = 1", "ada, epsilon = 2",
                         "ben, epsilon = 0.5"]  # fmt: skip
    assert groups == [user for user in USERS for _ in RATES]


def test_a_run_of_one_axis_has_no_series(tmp_path: Path) -> None:
    problem = om.load_problem("line-geometric")
    place = "constraints[0].epsilon"
    found = named_designs(om.sweep(problem, {place: [0.5, 1.0]}, tmp_path / "run", workers=1))
    assert found[1:] == (["epsilon = 0.5", "epsilon = 1"], None)


def test_a_page_of_a_run_has_the_title_of_its_sweep(
    tmp_path: Path, page_of: Callable[[Path], Any]
) -> None:
    path = tmp_path / "sw.toml"
    path.write_text(
        'format = 1\ntitle = "Two rates for a line"\n[problem]\nloss = "euclidean"\n'
        'prior = "uniform"\nsecrets = { kind = "line", count = 3 }\n[[problem.constraints]]\n'
        'kind = "metric_privacy"\nepsilon = 1\ndistance = "euclidean"\n[[axes]]\nkind = "list"\n'
        'path = "constraints[0].epsilon"\nvalues = [1, 2]\n'
    )
    argv = ["sweep", str(path), "-o", str(tmp_path / "run"), "--workers", "1", "-q"]
    assert main(argv) == 0
    assert main(["report", str(tmp_path / "run")]) == 0
    page = page_of(tmp_path / "run" / "report.html")
    assert page.text("h1") == "Two rates for a line"
    assert page.js("return document.title") == "Two rates for a line · optmech"


def test_a_page_of_a_run(
    run: om.SweepResult, page_of: Callable[[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(run.directory)]) == 0
    path = run.directory / "report.html"
    assert f"written to {path}" in capsys.readouterr().err
    page = page_of(path)
    assert page.js("return document.querySelectorAll('#frontier-chart path.series').length") == 4
    names = page.js(
        "return [...document.querySelectorAll('.series-name')].map((e) => e.textContent)"
    )
    assert sorted(names) == list(USERS)
    shown = page.js("return document.querySelector('path.median').dataset.median").split()
    np.testing.assert_allclose(
        [float(x) for x in shown], np.median(losses(run), axis=0), rtol=1e-12
    )
    texts = page.js(
        "return [...document.querySelectorAll('#frontier-chart text')].map((e) => e.textContent)"
    )
    assert "metric privacy, ε promised (per km)" in texts
    assert "loss (km)" in texts
    head = page.text("#frontier-table thead")
    assert "error of the best attack (km)" in head
    # labels do not cover each other
    places = page.js("return [...document.querySelectorAll('.series-name')].map("
                     "(e) => Number(e.getAttribute('y')))")  # fmt: skip
    assert np.diff(np.sort(places)).min() >= 15 - 1e-9
    page.js("document.getElementById('frontier-middle').click()")
    assert page.js("return document.querySelector('path.median')") is None
    page.assert_quiet()


def test_so_many_designs_come_without_their_mechanisms(
    run: om.SweepResult, show: Callable[..., Any]
) -> None:
    designs = [run.design(k % 12) for k in range(65)]
    names = [f"design {k}" for k in range(65)]
    page = show(designs, names)
    rows = page.js("return document.querySelectorAll('#frontier-table tbody tr').length")
    assert rows == 65
    assert "without their mechanisms" in page.text("#frontier-hint")
    assert page.js("return document.getElementById('with-mechanism').hidden")
    assert page.value("loss") == designs[0].loss
    attack = om.attacks.optimal_attack(designs[0].mechanism, designs[0].problem.prior, KM)
    assert page.value("attack") == pytest.approx(attack.error, rel=1e-12)
    page.assert_quiet()


def test_a_picture_of_many(run: om.SweepResult) -> None:
    pytest.importorskip("matplotlib")
    designs = [run.design(k) for k in range(12)]
    groups = [user for user in USERS for _ in RATES]
    figure = om.plots.tradeoff(designs, groups=groups)
    (axes,) = figure.axes
    (median,) = [line for line in axes.lines if line.get_label() == "median"]
    np.testing.assert_allclose(median.get_ydata(), np.median(losses(run), axis=0), rtol=1e-12)
    band = axes.collections[-1].get_paths()[0].get_extents()
    low, high = np.quantile(losses(run), (0.25, 0.75), axis=0)
    assert (band.y0, band.y1) == pytest.approx((low.min(), high.max()))
    assert axes.get_xlabel() == "ε promised (per km), metric privacy"
    few = om.plots.tradeoff(designs[:6], groups=groups[:6]).axes[0]
    assert [text.get_text() for text in few.get_legend().get_texts()] == ["ada", "ben"]
    with pytest.raises(om.ProblemError, match="12 designs and 1 groups"):
        om.plots.tradeoff(designs, groups=["x"])
    with pytest.raises(om.ProblemError, match="1 groups for 12 designs"):
        om.report(designs, "out.html", groups=["x"])


def test_pages_lie_beside_their_designs(
    run: om.SweepResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    for k in (0, 1):
        run.design(k).save(tmp_path / f"d{k}.json")
    assert main(["report", str(tmp_path / "d0.json"), "--open"]) == 0
    assert opened == [(tmp_path / "d0.html").as_uri()]
    assert main(["report", *(str(tmp_path / f"d{k}.json") for k in (0, 1))]) == 0
    assert (tmp_path / "report.html").exists()
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert main(["report", str(tmp_path / "d0.json"), "--open"]) == 0
    assert "no browser could be opened: file://" in capsys.readouterr().err
    assert main(["report", str(run.directory), str(tmp_path / "d0.json")]) == 2
    assert "one run" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / "empty")]) == 2
    assert "this is a folder, and not that of a sweep" in capsys.readouterr().err
