"""Results in a line: what was optimised, in its unit, and numbers that people can read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import optmech as om

LINE = om.Domain.range(3, "km")
EVEN = om.Prior.uniform(LINE)
KM = om.distances.euclidean()


@pytest.mark.parametrize(
    ("objective", "shown"),
    [
        (om.MinimizeLeakage("identity"), r"leakage ([\d.e-]+), lower bound ([\d.e-]+), loss"),
        (om.MinimizeLeakage("maximal"), r"leakage ([\d.e-]+), lower bound ([\d.e-]+), loss"),
        (om.MaximizeDistortion(KM), r"distortion ([\d.e-]+) km, upper bound ([\d.e-]+) km, loss"),
        ("expected_loss", r"loss ([\d.e-]+) km, lower bound ([\d.e-]+)"),
    ],
)  # fmt: skip
def test_a_design_says_what_was_optimised(objective: object, shown: str) -> None:
    stated = [om.LossBound(0.25)] if not isinstance(objective, str) else [om.MetricPrivacy(1, KM)]
    design = om.solve(om.Problem(EVEN, KM, objective=objective, constraints=stated))
    found = re.search(shown, repr(design))
    assert found
    assert float(found[1]) == pytest.approx(design.objective, rel=1e-5)
    assert float(found[2]) == pytest.approx(design.bound, rel=1e-5)
    assert f"loss {design.loss:.6g} km" in repr(design)
    card = design._repr_html_()
    assert found[1] in card
    assert f"{design.loss:.6g} km" in card


def test_leakage_at_a_loss_of_a_quarter_in_closed_form() -> None:
    """Under the Hamming loss a report is right with probability 1 - loss, which the guess that
    repeats it attains: V = 1 - 1/4."""
    problem = om.Problem(
        EVEN,
        om.distances.hamming(),
        objective=om.MinimizeLeakage("identity"),
        constraints=[om.LossBound(0.25)],
    )
    design = om.solve(problem)
    # the bound is below by rounding, and never shown above what is proved
    assert re.search(r"leakage 0.75, lower bound 0.7(5|49999), loss 0.25,", repr(design))


def test_posteriors_are_shown_as_numbers_with_few_digits() -> None:
    m = om.mechanisms.geometric(om.Domain.range(12), "ln 2")
    found = om.leakage.hyper(m, om.Prior(m.secrets, np.arange(1, 13)))
    for value in (found, found.outer, found.inners[0]):
        assert len(repr(value)) < 400
        assert not re.search(r"\d{12}", repr(value))
    design = [
        om.solve(om.Problem(EVEN, KM, constraints=[om.DifferentialPrivacy(rate)]))
        for rate in ("ln 3", "ln 2")
    ]
    refuted = om.leakage.refines(*design)
    assert not re.search(r"\d{20}", repr(refuted))
    even = om.leakage.hyper(om.Mechanism(LINE, LINE, np.eye(3)), EVEN)
    assert repr(even.outer) == "Shares(0.3333, 0.3333, 0.3333)"
    assert repr(even.inners[0]) == "Shares(1, 0, 0)"


def test_results_have_cards_in_notebooks() -> None:
    """Every field with its value, and text of others escaped."""
    cells = om.Grid(2, 2, unit="km")
    private = om.MetricPrivacy("ln 2", KM)
    design = om.solve(om.Problem(om.Prior.uniform(cells), KM, constraints=[private]))
    crossed = om.measures.everywhere(design.mechanism, "ln 2")
    attack = om.attacks.optimal_attack(design.mechanism, design.problem.prior, KM)
    for value, name in ((crossed, "violated"), (attack, "error")):
        shown = value._repr_html_()
        assert f"<th style='text-align:left'>{name}</th>" in shown
        assert f"{getattr(value, name)}" in shown
        assert shown.count("<tr>") == len(value.__dataclass_fields__)


@pytest.mark.parametrize("unit", ["km", "years", ""])
def test_limits_of_length_are_said_with_their_unit(unit: str, tmp_path: Path) -> None:
    """Every constraint with a threshold, a radius or a limit on a loss; also read from a file."""
    line, d = om.Domain.range(3, unit=unit), om.distances.euclidean()
    stated = [
        om.MetricPrivacy(1, d, 2.0, 1.5),
        om.DifferentialPrivacy(1, (d, 2.0), 0.2),
        om.Support.within(d, 2.0),
    ]
    problem = om.Problem(om.Prior.uniform(line), d, constraints=[*stated, om.LossBound(2.0)])
    design = om.solve(problem)
    design.save(tmp_path / "design.json")
    for read in (problem, om.load(tmp_path / "design.json").problem):
        said = [constraint.promise(read.space) for constraint in read.constraints]
        # of a support files have the mask
        for sentence in said[: 3 if read is problem else 2]:
            assert f"2 {unit or 'units of euclidean distance'}" in sentence, sentence
        assert said[3] == f"expected loss at most 2 {unit}".rstrip()
    assert f"1.5 {unit or 'units of euclidean distance'} away" in said[0]
    with pytest.raises(om.ProblemError, match=f"lies within 0.5 {unit or 'by the distance'}"):
        om.mechanisms.restricted_laplace(
            line, 1, 0.5, observables=om.Domain(["a"], [[0.7]], unit=unit)
        )
