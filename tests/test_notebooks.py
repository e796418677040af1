"""What a notebook shows: small HTML, well formed, with every text escaped and no scripts."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import optmech as om

KM = om.distances.euclidean()
EVIL = "<script>alert('&')</script>"


def elements(value: object) -> list[ET.Element]:
    """Read as XML, which refuses what is not well formed or not escaped."""
    shown = value._repr_html_()  # type: ignore[attr-defined]
    assert len(shown) < 60_000
    return list(ET.fromstring(shown).iter())


def texts(found: list[ET.Element]) -> str:
    return " ".join(part for element in found for part in element.itertext())


def cases() -> dict[str, object]:
    grid = om.Grid(3, 4, 0.5, unit="km")
    large = om.Grid(40, 50)
    cells = om.Domain([EVIL, "b"], [[0, 1], [2, 5]], unit=EVIL)
    prior = om.Prior(cells, [3, 1])
    problem = om.Problem(prior, KM, constraints=[om.MetricPrivacy("ln 2", KM)] * 12, title=EVIL)
    scattered = np.random.default_rng(0).uniform(size=(3000, 2))
    return {
        "grid": grid,
        "large grid": large,
        "bounds": om.Grid(2, 2, bounds=(2.2, 48.8, 2.4, 48.9)),
        "labels": om.Domain([EVIL, 2]),
        "long label": om.Domain(["x" * 9000]),
        "line": om.Domain.range(5),
        "one point": om.Domain(["a"], [[1.0, 2.0]]),
        "globe": om.Domain.geographic("ab", [[2.35, 48.86], [-0.13, 51.51]]),
        "solid": om.Domain("ab", np.eye(2, 3)),
        "scattered": om.Domain(range(3000), scattered),
        "regions": om.observables.quadrisect(om.Grid(2, 2), scattered, 10),
        "subsets": om.observables.coarser(grid, 2, 2),
        "suppressible": om.observables.suppressible(grid),
        "prior": prior,
        "counted": om.Prior.from_counts(grid, {(0, 0): 2, "away": 1}),
        "large prior": om.Prior.uniform(large),
        "mechanism": om.Mechanism(grid, grid, np.eye(12)),
        "large mechanism": om.Mechanism(large, large, np.eye(2000)),
        "problem": problem,
        "design": om.solve(problem),
        "no design": om.solve(om.Problem(prior, KM, constraints=[om.DistortionPrivacy(99, KM)])),
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_is_well_formed_and_has_no_scripts(name: str) -> None:
    found = elements(CASES[name])
    assert {element.tag for element in found} <= {
        "div", "strong", "table", "tr", "th", "td",
    }  # fmt: skip
    names = {name for element in found for name in element.attrib}
    assert not any(name.startswith("on") or name in ("href", "src") for name in names)
    assert "nan" not in CASES[name]._repr_html_()  # type: ignore[attr-defined]


def test_texts_are_shown_as_they_are() -> None:
    assert f"Problem: {EVIL}" in texts(elements(CASES["problem"]))
    assert "4 more" in texts(elements(CASES["problem"]))


def test_figures_are_those_of_the_design() -> None:
    design = CASES["design"]
    shown = texts(elements(design))
    assert isinstance(design, om.Design)
    assert f"{design.loss:.6g}" in shown
    assert "optimal, verified" in shown
    assert "infeasible" in texts(elements(CASES["no design"]))
