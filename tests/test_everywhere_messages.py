"""What is said of designs for every point of a region, and what takes them, says what is true."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.exact.number import from_above, from_below

E = om.distances.euclidean()
PLACES = om.Domain(range(3), [[0, 0], [1, 1], [2, 1]])
PRIOR = om.Prior(PLACES, [1, 2, 1])
MESH = om.Mesh.grid((0, 0, 2, 2), 1)


def problem(*beside: Any, epsilon: Any = 1, mesh: om.Mesh = MESH) -> om.Problem:
    promise = om.MetricPrivacy(epsilon, E, everywhere=mesh)
    return om.Problem(PRIOR, E, constraints=[promise, *beside])


DESIGN = om.solve(problem(), gap=1e-6)
FINITE = om.Problem(PRIOR, E, constraints=[om.MetricPrivacy(1, E)])


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(
    "beside", [[], [om.LossBound(1.0, worst_case=True)]], ids=["alone", "beside"]
)
def test_the_price_of_epsilon_is_the_slope_of_the_loss(degree: int, beside: Any) -> None:
    """By designs at ε a little more and a little less, on the same mesh."""
    mesh, step = om.Mesh.grid((0, 0, 2, 2), 1, degree=degree), 2.0**-7
    low, found, high = (
        om.solve(problem(*beside, epsilon=1 + k * step, mesh=mesh), gap=1e-7) for k in (-1, 0, 1)
    )
    slope = (high.loss - low.loss) / (2 * step)
    (price, *_) = om.prices.of_constraints(found)
    assert (price.constraint, price.parameter, price.value) == (0, "epsilon", 1.0)
    assert slope < -0.05
    assert price.rate == pytest.approx(slope, rel=0.02)
    assert om.prices.of_pairs(found) == ()


def test_a_mechanism_on_the_mesh_is_adopted_under_what_it_keeps() -> None:
    adopted = om.exchange.adopt(DESIGN.mechanism, problem())
    assert adopted.verified
    assert adopted.mechanism == DESIGN.mechanism
    assert adopted.loss == DESIGN.loss
    assert om.exchange.adopt(DESIGN, problem(epsilon=2)).verified
    for repair in (False, True):
        with pytest.raises(om.VerificationError, match="gradient") as caught:
            om.exchange.adopt(DESIGN, problem(epsilon=0.5), repair=repair)
        assert "repair" not in caught.value.remedy


@pytest.mark.parametrize(
    "given", [om.solve(FINITE), om.solve(problem(mesh=om.Mesh.grid((0, 0, 2, 2), 2)), gap=0.1)]
)
def test_rows_of_another_mesh_are_not_adopted(given: om.Design) -> None:
    with pytest.raises(om.ProblemError, match="control points of the mesh"):
        om.exchange.adopt(given, problem())


def test_the_least_epsilon_of_mechanisms_on_a_mesh() -> None:
    found = om.frontier.least_epsilon(problem(), 0.6, 0.1, 4, tolerance=0.02)
    assert found.upper - found.lower <= 0.02 * found.upper
    assert found.design.loss <= 0.6 < found.bound
    assert found.design.mesh == MESH
    assert om.solve(problem(epsilon=found.lower), gap=1e-6).bound > 0.6


@pytest.mark.parametrize("limit", [1e-6, 0.3, None])
def test_too_small_an_epsilon_is_said_of_the_mechanisms_of_the_mesh(limit: float | None) -> None:
    """A finer mesh may do, where the bound of every mechanism does not exclude it."""
    if limit is None:
        limit = (DESIGN.lower_bound + DESIGN.bound) / 2
    everywhere = limit < DESIGN.lower_bound * (1 - 1e-3)
    with pytest.raises(om.InfeasibleError) as caught:
        om.frontier.least_epsilon(problem(), limit, 0.1, 1)
    said = "all mechanisms with these reports that are linear in every triangle" in str(
        caught.value
    )
    assert said is not everywhere
    assert "of all mechanisms with these reports" in str(caught.value)
    assert "no mechanism" not in str(caught.value)
    assert ("finer mesh" in caught.value.remedy) is not everywhere
    with pytest.raises(om.InfeasibleError) as caught:
        om.frontier.least_epsilon(FINITE, 1e-6, 0.1, 1)
    assert "of all mechanisms with these reports is proved to exceed" in str(caught.value)
    assert "mesh" not in str(caught.value)


def test_what_is_said_of_the_least_epsilon_holds_on_finer_meshes() -> None:
    """Where it is said that the mesh does not reach a loss, a finer one at the same ε may."""
    coarse = om.solve(problem(epsilon=2), gap=1e-6)
    fine = om.solve(problem(epsilon=2, mesh=om.Mesh.grid((0, 0, 2, 2), 0.25)), gap=1e-3)
    limit = (fine.loss + coarse.bound) / 2
    assert fine.loss < limit < coarse.bound
    with pytest.raises(om.InfeasibleError, match="linear in every triangle"):
        om.frontier.least_epsilon(problem(), limit, 0.1, 2)


def test_a_design_for_every_point_starts_nothing() -> None:
    with pytest.raises(om.ProblemError, match="start: is a design for every point"):
        om.solve(FINITE, start=DESIGN)
    with pytest.raises(om.ProblemError, match="start: is not used for privacy at every point"):
        om.solve(problem(), start=DESIGN)


LOSS = re.compile(r"^step \d+: loss ([\d.e+-]+), bound on this mesh ([\d.e+-]+)")


@pytest.mark.parametrize(
    "beside",
    [[om.DistortionPrivacy(0.6, E)], [om.LossBound(0.9, worst_case=True)], []],
    ids=["distortion", "loss", "nothing"],
)
def test_what_is_shown_as_the_loss_is_one_of_the_stated_problem(beside: Any) -> None:
    """Other programs that are solved on the way are named."""
    lines: list[str] = []
    design = om.solve(problem(*beside), gap=1e-4, progress=lines.append)
    steps = [line for line in lines if line.startswith("step")]
    stated = [found for line in steps if (found := LOSS.match(line))]
    assert design.verified
    assert bool(stated) is not bool(beside)
    assert all(float(found[1]) >= design.bound - 1e-9 for found in stated)
    others = [line for line in steps if not LOSS.match(line)]
    assert all("of the program with" in line or "of the search for" in line for line in others)


def test_a_packed_mesh_says_what_it_is(tmp_path: Path) -> None:
    packed = om.pack(DESIGN, tmp_path / "m.omm", bits=32, max_loss="10 %")
    assert repr(packed).startswith("PackedMechanism(32 bits, ε = 1")
    assert ", from every point of Mesh(9 vertices" in repr(packed)
    assert "PackedMechanism" in packed._repr_html_()
    assert "every point of" in DESIGN.mechanism._repr_html_()


def test_the_page_speaks_of_a_region(tmp_path: Path) -> None:
    om.report(DESIGN, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "at every point of a region of 8 triangles with 9 corners" in page
    assert "Mesh(" not in page.partition("<script")[0]
    assert "of Mesh(" not in page


def test_the_check_of_a_packed_mesh_says_what_its_gap_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DESIGN.save(tmp_path / "d.json")
    om.pack(DESIGN, tmp_path / "m.omm", bits=16, max_loss="50 %")
    report = om.devices.check_packed(tmp_path / "m.omm", DESIGN)
    first, second, *_ = report.notes
    gap, bound = from_above(report.gap, 2), from_below(DESIGN.bound)
    assert first.startswith(f"the gap of {gap} is to {bound}, proved for all")
    total = (report.loss - DESIGN.lower_bound) / report.loss
    assert f"{from_below(DESIGN.lower_bound)} holds for every mechanism" in second
    assert f"at most {from_above(total, 2)} of itself above it" in second
    assert main(["check", str(tmp_path / "m.omm"), str(tmp_path / "d.json")]) == 0
    said = capsys.readouterr()
    assert "the gap of" in said.out + said.err


@pytest.mark.parametrize("first", [0, 1])
def test_supports_without_a_common_report_are_infeasible(first: int, tmp_path: Path) -> None:
    """As for finitely many secrets: a design that says why, proved again by check and audit."""
    apart = om.Support(np.eye(3))
    promise = om.MetricPrivacy(1, E, everywhere=MESH)
    for own in (promise, om.MetricPrivacy(1, E)):
        design = om.solve(om.Problem(PRIOR, E, constraints=[own, apart][:: 1 - 2 * first]))
        assert design.status == "infeasible"
        assert math.isnan(design.loss)
        assert "the support leaves 3 secret(s) without observables" in design.reason
        path = tmp_path / "d.json"
        design.save(path)
        assert om.load(path) == design
        assert om.check(path).status == "infeasible"
        assert om.check(path).faults == ()
        assert audit.main([str(path)]) == 0
        with pytest.raises(om.InfeasibleError, match="the support leaves"):
            _ = design.mechanism


def test_a_support_with_one_common_report_is_not_said_to_be_infeasible(tmp_path: Path) -> None:
    mask = np.eye(3)
    mask[:, 1] = 1
    design = om.solve(problem(om.Support(mask)))
    assert design.verified
    assert design.loss == pytest.approx(np.sqrt(2) / 4 + 1 / 4)
