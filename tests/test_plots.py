"""Pictures: written, headless, of every kind of domain, and refused in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import optmech as om
from optmech import plots

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
    for words in ("loss 0.75", "proved bound 0.75", "ε = 1.09861"):
        assert f"<!-- {words}" in text or words in text


def test_labels_are_not_taken_for_mathematics(tmp_path: Path) -> None:
    domain = om.Domain(["$a_{", "b$", "\x1b[31m"], [[0, 0], [1, 0], [0, 1]], "$km")
    problem = om.Problem(
        om.Prior.uniform(domain),
        om.distances.euclidean(),
        constraints=[om.MetricPrivacy(1, om.distances.euclidean())],
        title="$\\frac{",
    )
    plots.mechanism_picture(om.solve(problem), tmp_path / "x.png")


def test_a_single_secret(tmp_path: Path) -> None:
    problem = om.Problem(om.Prior.uniform(om.Domain(["only"])), om.distances.hamming())
    plots.mechanism_picture(om.solve(problem), tmp_path / "x.png")


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = om.solve(om.load_problem("worst-case"))
    with pytest.raises(om.ProblemError, match="not the name of a picture"):
        plots.mechanism_picture(design, tmp_path / "x.txt")
    with pytest.raises(om.ProblemError, match="cannot be written"):
        plots.mechanism_picture(design, tmp_path / "no" / "x.png")
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    with pytest.raises(om.ProblemError, match=r"pip install optmech\[plot\]"):
        plots.mechanism_picture(design, tmp_path / "x.png")
