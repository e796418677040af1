"""What a type checker makes of a user's script: no names that are objects or Any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import optmech as om

SCRIPT = """
import optmech as om

cells = om.Grid(2, 3, cell=0.5, unit="km")
km = om.distances.euclidean()
prior = om.Prior.from_counts(cells, {(0, 0): 3, (1, 2): 1})
problem = om.Problem(prior, km, constraints=[om.MetricPrivacy("ln 2", km), om.LossBound(2)])
profile: om.Profile = om.Profile(engine="highs", gap=1e-3)
design: om.Design = om.solve(problem, profile)
report: om.CheckReport = om.check("design.json")
reveal_type(report.passed)
reveal_type(design.loss)
reveal_type(design.mechanism.then(design.mechanism))
reveal_type(om.check)
reveal_type(om.plots.mechanism)
reveal_type(om.plots.save)
figure = om.plots.frontier([design])
om.plots.save(figure, "picture.png")
print(om.measures.epsilon(design.mechanism, km), prior.binning, {cells: 1}[cells])
om.plots.no_such_picture
report.no_such_figure
om.no_such_name
om.traces.no_such_name
"""


def test_a_user_s_script_under_mypy_strict(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    package = Path(om.__file__).parent.parent
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null",
            "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary",
            "--config-file=", str(script),
        ],
        check=False, capture_output=True, text=True, cwd=package,
    )  # fmt: skip
    lines = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if ".py:" in line]
    said = [line for line in lines if line.startswith("note: Revealed")]
    assert len(said) == 6, done.stdout + done.stderr
    assert "bool" in said[0]
    assert "float" in said[1]
    assert "Mechanism" in said[2]
    assert "-> optmech.certificate.check.CheckReport" in said[3]
    assert all(line.startswith('note: Revealed type is "def (') for line in said[3:])
    assert "Any" not in "".join(said[:4])
    errors = [line for line in lines if line.startswith("error")]
    assert len(errors) == 4
    assert 'has no attribute "no_such_picture"' in errors[0]
    assert 'has no attribute "no_such_figure"' in errors[1]
    assert all('has no attribute "no_such_name"' in line for line in errors[2:])


@pytest.mark.parametrize("name", ["CheckReport", "Profile"])
def test_types_that_functions_take_and_return_are_public(name: str) -> None:
    assert name in om.__all__
    assert isinstance(getattr(om, name), type)


def test_large_objects_take_a_few_lines_in_an_interpreter() -> None:
    grid = om.Grid(15, 15, 0.5, unit="km")
    km = om.distances.euclidean()
    uniform = [1] * len(grid)
    problem = om.Problem(
        om.Prior.uniform(grid),
        km(grid, grid),
        constraints=[
            om.MetricPrivacy(1, om.distances.matrix(km(grid, grid))),
            om.DifferentialPrivacy(2, [(k, k + 1) for k in range(200)]),
            om.DistributionPrivacy(1, [(uniform, uniform)] * 9),
            om.LossBound(9, loss=km(grid, grid)),
            om.Support(km(grid, grid) < 5),
            om.DistortionPrivacy(0, km, om.Prior.uniform(grid)),
            om.DistortionPrivacy(0, km),
        ],
        title="t" * 9000,
    )
    small = om.Problem(om.Prior.uniform(om.Grid(3, 3)), km)
    design = om.solve(small)
    for value in (problem, design, design.mechanism, design.problem, design.exact):
        assert len(repr(value)) < 1500
        assert repr(value).count("\n") < 8
    assert repr(design).startswith("Design(optimal, verified, 9 secrets, 9 observables, loss 0,")
    assert len(repr(design.certificate)) < 800
    for part in (problem.prior, *problem.constraints, grid):
        assert len(repr(part)) < 500
    none = om.solve(om.Problem(small.prior, km, constraints=[om.DistortionPrivacy(99, km)]))
    assert repr(none).startswith("Design(infeasible, 9 secrets, 9 observables: ")
