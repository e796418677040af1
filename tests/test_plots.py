"""Pictures: written, headless, of every kind of domain, and refused in words."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech import plots
from optmech.exact.number import from_below

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.mark.parametrize(
    "name", ["coarser", "differential", "ages", "metric", "max-distortion", "medical-tree"]
)
def test_pictures_of_the_gallery(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.png"
    plots.mechanism_picture(om.solve(om.load_problem(name)), path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(content[k : k + 4], "big") for k in (16, 20))
    assert (width, height) == (1500, 984)


def test_vector_formats_and_no_global_state(tmp_path: Path) -> None:
    design = om.solve(om.load_problem("worst-case"))
    for suffix, start in ((".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = tmp_path / f"x{suffix}"
        plots.mechanism_picture(design, path)
        assert path.read_bytes().startswith(start)
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_the_caption_has_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    plots.mechanism_picture(om.solve(om.load_problem("differential")), path)
    text = path.read_text(encoding="utf-8")
    for words in ("loss 0.75", r"lower bound 0.7(5|4999\d\d?)", "ε = 1.09861"):
        assert re.search(words, text)


def test_labels_are_not_taken_for_mathematics(tmp_path: Path) -> None:
    domain = om.Domain(["$a_{", "b$", "\x1b[31m"], [[0, 0], [1, 0], [0, 1]], "$km")
    problem = om.Problem(
        om.Prior.uniform(domain),
        om.distances.euclidean(),
        constraints=[om.MetricPrivacy(1, om.distances.euclidean())],
        title="$\\frac{",
    )
    path = tmp_path / "x.svg"
    plots.mechanism_picture(om.solve(problem), path)
    # matplotlib writes every drawn text as a comment beside its glyphs
    drawn = " ".join(re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"), re.S))
    for words in ("$a_{", "b$", "$km", "$\\frac{"):
        assert words in drawn
    assert "\x1b" not in drawn


def test_a_single_secret(tmp_path: Path) -> None:
    problem = om.Problem(om.Prior.uniform(om.Domain(["only"])), om.distances.hamming())
    path = tmp_path / "x.svg"
    plots.mechanism_picture(om.solve(problem), path)
    drawn = path.read_text(encoding="utf-8")
    assert "only" in drawn
    assert "loss 0" in drawn


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = om.solve(om.load_problem("worst-case"))
    with pytest.raises(om.ProblemError, match="not the name of a picture"):
        plots.mechanism_picture(design, tmp_path / "x.txt")
    with pytest.raises(om.ProblemError, match="cannot be written"):
        plots.mechanism_picture(design, tmp_path / "no" / "x.png")
    monkeypatch.setattr("optmech.show.plots.drawing.find_spec", lambda name: None)
    with pytest.raises(om.ProblemError, match=r"pip install '\.\[plot\]'"):
        plots.mechanism_picture(design, tmp_path / "x.png")


KM = om.distances.euclidean()


@pytest.fixture(scope="module")
def design() -> om.Design:
    grid = om.Grid(3, 4, cell=(1.0, 2.0), unit="km")
    prior = om.Prior.from_counts(grid, [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    constraints = [om.MetricPrivacy(0.7, KM), om.DistortionPrivacy(1.2, KM)]
    return om.solve(om.Problem(prior, KM, constraints=constraints))


def test_small_multiples_have_a_panel_for_each_secret(design: om.Design, tmp_path: Path) -> None:
    figure = plots.mechanism(design, [(0, 0), (2, 3), (1, 1), (1, 2)])
    shown = [axes for axes in figure.axes if axes.get_images()]
    matrix = design.mechanism.matrix
    for axes, secret in zip(shown, (0, 11, 5, 6), strict=True):
        np.testing.assert_array_equal(axes.get_images()[0].get_array().ravel(), matrix[secret])
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (km)", "y (km)")
    limits = {axes.get_images()[0].norm.vmax for axes in shown}
    assert limits == {matrix[[0, 11, 5, 6]].max()}, "panels must share one scale"
    plots.save(figure, tmp_path / "x.svg")
    with pytest.raises(om.ProblemError, match="there is no"):
        plots.mechanism(design, [(9, 9)])
    with pytest.raises(om.ProblemError, match="no label"):
        plots.mechanism(design, [])


def test_posteriors_mark_the_best_guess(design: om.Design) -> None:
    figure = plots.posteriors(design, [(1, 1)])
    (axes,) = (axes for axes in figure.axes if axes.get_images())
    prior, matrix = design.problem.prior, design.mechanism.matrix
    belief = prior.weights * matrix[:, 5]
    belief /= belief.sum()
    np.testing.assert_allclose(axes.get_images()[0].get_array().ravel(), belief)
    costs = KM(prior.domain, prior.domain) @ belief
    (guess,) = axes.get_lines()
    np.testing.assert_array_equal(np.ravel(guess.get_data()), prior.domain.points[costs.argmin()])
    assert f"error {costs.min():.3g} km" in axes.get_title()


def test_attack_errors_add_up_to_the_distortion(design: om.Design) -> None:
    figure = plots.attack_error(design)
    left, right = figure.axes[:2]
    attack = om.attacks.optimal_attack(design.mechanism, design.problem.prior, KM)
    np.testing.assert_allclose(left.get_images()[0].get_array().ravel(), attack.error_per_secret)
    assert right.get_lines()[1].get_xdata()[0] == pytest.approx(attack.error)
    assert right.get_lines()[0].get_ydata()[-1] == pytest.approx(1.0)
    assert "(km)" in right.get_xlabel()


def test_slack_is_measured_over_promised(design: om.Design) -> None:
    left, right = plots.constraint_slack(design).axes
    widths = [bar.get_width() for bar in left.patches]
    distortion = om.measures.distortion(design.mechanism, design.problem.prior, KM)
    epsilon = om.measures.epsilon(design.mechanism, KM)
    assert widths == pytest.approx([epsilon / 0.7, distortion / 1.2])
    assert sum(bar.get_height() for bar in right.patches) == 12 * 11
    bare = om.solve(om.Problem(om.Prior.uniform(om.Domain("ab")), om.distances.hamming()))
    with pytest.raises(om.ProblemError, match="no constraint has a number"):
        plots.constraint_slack(bare)


def test_the_frontier_has_a_point_for_each_design(tmp_path: Path) -> None:
    line = om.Domain.range(4, unit="years")
    designs = [
        om.solve(
            om.Problem(om.Prior.uniform(line), KM, constraints=[om.MetricPrivacy(epsilon, KM)])
        )
        for epsilon in (2.0, 0.5, 1.0)
    ]
    (axes,) = plots.tradeoff(designs, names=["a", "b", "c"]).axes
    drawn = axes.get_lines()[0]
    assert list(drawn.get_xdata()) == [0.5, 1.0, 2.0]
    assert list(drawn.get_ydata()) == [designs[k].loss for k in (1, 2, 0)]
    assert axes.get_ylabel() == "expected loss (years)"
    (attacked,) = plots.tradeoff(designs, across="attack").axes
    errors = [om.measures.distortion(d.mechanism, d.problem.prior, KM) for d in designs]
    assert sorted(errors) == list(attacked.get_lines()[0].get_xdata())
    for wrong in ({"across": "price"}, {"constraint": 4}, {"names": ["a"]}):
        with pytest.raises(om.ProblemError):
            plots.tradeoff(designs, **wrong)


def test_zones_are_drawn_with_their_outlines() -> None:
    squares = [[[(x, 0), (x + 1, 0), (x + 1, 1), (x, 1)]] for x in (0, 1)]
    zones = om.Domain("ab", [(0.5, 0.5), (1.5, 0.5)], unit="km", outlines=squares)
    stated = om.Problem(om.Prior.uniform(zones), KM, constraints=[om.MetricPrivacy(1, KM)])
    figure = plots.mechanism(om.solve(stated), ["a"])
    (drawn,) = figure.axes[0].collections
    assert len(drawn.get_paths()) == 2


def test_the_field_of_a_design_for_every_point(tmp_path: Path) -> None:
    km = om.distances.euclidean()
    places = om.Domain(["a$", "b", "c"], [(0, 0), (2, 0), (0, 2)], "km")
    mesh = om.Mesh.grid((0, 0, 2, 2), 1, unit="km")
    promise = om.MetricPrivacy(1, km, everywhere=mesh)
    design = om.solve(om.Problem(om.Prior.uniform(places), km, constraints=[promise]), gap=1e-3)
    figure = plots.field(design, ["b", "a$"])
    panels = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title().partition(" |")[0] for axes in panels] == ["p(b", r"p(a\$"]
    for axes, o in zip(panels, (1, 0), strict=True):
        (image,) = axes.images
        # the corners of the picture are those of the region
        shown = np.asarray(image.get_array())[[0, 0, -1, -1], [0, -1, 0, -1]]
        known = design.mechanism.at([(0, 0), (2, 0), (0, 2), (2, 2)])[:, o]
        assert shown == pytest.approx(known)
        assert axes.get_xlabel() == "x (km)"
    path = tmp_path / "x.svg"
    plots.region_picture(design, path)
    text = path.read_text(encoding="utf-8")
    assert f"loss {design.loss:.6g}, bound on this mesh {from_below(design.bound)}" in text
    with pytest.raises(om.ProblemError, match="no region"):
        plots.field(om.solve(om.load_problem("metric")))
    with pytest.raises(om.ProblemError, match="there is no 'z'"):
        plots.field(design, ["z"])


def test_a_backdrop_and_degrees(tmp_path: Path) -> None:
    box = (12.4, 41.8, 12.6, 41.9)
    grid = om.Grid.geographic(3, 4, box)
    km, away = om.distances.euclidean(), om.distances.haversine()
    flat = om.solve(om.Problem(om.Prior.uniform(grid), km, constraints=[om.MetricPrivacy(0.2, km)]))
    road = {"type": "LineString", "coordinates": [[12.3, 41.85], [12.45, 41.85], [12.5, 42.0]]}
    figure = plots.mechanism(flat, [(1, 1)], backdrop=road)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude (°)", "latitude (°)")
    east = [float(label.get_text()) for label in axes.get_xticklabels()]
    width = grid.columns * grid.cell[0]
    for tick, value in zip(axes.get_xticks(), east, strict=True):
        assert value == pytest.approx(12.4 + 0.2 * tick / width, abs=1e-9)
    (lines,) = axes.collections
    (path,) = lines.get_paths()
    height = grid.rows * grid.cell[1]
    middle = 0.05 / 0.2 * width, 0.5 * height
    # it comes in from the west, turns, and leaves in the north a third of the way to its end
    known = [(0, middle[1]), middle, ((0.05 + 0.05 / 3) / 0.2 * width, height)]
    np.testing.assert_allclose(path.vertices, known, atol=1e-9)
    places = om.Domain.geographic("abc", [(12.42, 41.82), (12.5, 41.88), (12.58, 41.82)])
    design = om.solve(
        om.Problem(om.Prior.uniform(places), away, constraints=[om.MetricPrivacy(0.2, away)])
    )
    for draw in (plots.mechanism, plots.posteriors, plots.attack_error):
        figure = draw(design, backdrop=road)
        assert any(len(c.get_paths()) and "Line" in type(c).__name__
                   for c in figure.axes[0].collections)  # fmt: skip
    plots.mechanism_picture(design, tmp_path / "x.png", backdrop=road)
    with pytest.raises(om.ProblemError, match="no longitudes"):
        plots.mechanism(om.solve(om.load_problem("grid-4x4")), backdrop=road)
