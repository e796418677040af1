"""What a type checker makes of a user's script: no names that are objects or Any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import optmech as om
from optmech.base.names import stated

SCRIPT = """
from dataclasses import replace
from fractions import Fraction

import optmech as om
import optmech_sweeps as sweeps
import optmech_traces as traces

cells = om.Grid(2, 3, cell=0.5, unit="km")
km = om.distances.euclidean()
prior = om.Prior.from_counts(cells, {(0, 0): 3, (1, 2): 1})
problem = om.Problem(prior, km, constraints=[om.MetricPrivacy("ln 2", km), om.LossBound(2)])
profile: om.Profile = om.Profile(engine="highs", gap=1e-3)
design: om.Design = om.solve(problem, profile, gap=1e-4)
m = design.mechanism
report: om.CheckReport = om.check("design.json")
attack = om.attacks.optimal_attack(m, prior, [[0.0, 1.0], [1.0, 0.0]])
table = sweeps.sweep(problem, {"constraints[0].epsilon": [0.5, "ln 2"]}, "runs")
sweeps.sweep("sweep.toml", directory="runs")
sweeps.sweep(problem, {"prior": {"even": om.Prior.uniform(cells)}, ("loss", "title"): [(km, "a")]})
reveal_type(om.solve)
reveal_type(om.check)
reveal_type(sweeps.sweep)
reveal_type(om.plots.mechanism)
reveal_type(om.plots.save)
reveal_type(om.measures.delta)
reveal_type(om.attacks.minimax)
reveal_type(sweeps.cheapest)
reveal_type(om.transport.wasserstein)
reveal_type(om.mechanisms.optimal_target)
reveal_type(traces.privacy_loss)
reveal_type(profile.with_limits)
reveal_type(report.passed)
reveal_type(design.loss)
reveal_type(attack.error)
reveal_type(m.then(m))
reveal_type(om.measures.tightest(m, km))
reveal_type(report.checks)
reveal_type(table.rows)
reveal_type(om.prices.of_pairs(design))
private = om.DifferentialPrivacy("ln 3", [(0, 1)], delta=Fraction(1, 8))
reveal_type(private.epsilon)
reveal_type(replace(private, epsilon=0.5))
figure = om.plots.tradeoff([design])
om.plots.save(figure, "picture.png")
print(om.measures.delta(m, Fraction(1, 2), km), prior.binning, {cells: 1}[cells])
om.LossBound(["ln 3"])
om.solve(problem, "auto", 1e-6)
report.no_such_figure
om.plots.no_such_picture
om.no_such_name
traces.no_such_name
"""
FUNCTIONS = 12
# of these nothing is in a type that users see, and reading them takes most of the time
UNREAD = """[mypy]
[mypy-pandas.*,geopandas.*,pyarrow.*,xarray.*,distributed.*,plotly.*,matplotlib.*,shapely.*]
follow_imports = skip
"""


def test_a_user_s_script_under_mypy_strict(tmp_path: Path) -> None:
    """Every expression has a type: ``--disallow-any-expr`` finds each that is, or holds, Any."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    settings = tmp_path / "mypy.ini"
    settings.write_text(UNREAD)
    package = Path(om.__file__).parent.parent
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--disallow-any-expr", "--no-incremental",
            "--cache-dir=/dev/null", "--follow-imports=silent", "--ignore-missing-imports",
            "--no-error-summary", f"--config-file={settings}", str(script),
        ],
        check=False, capture_output=True, text=True, cwd=package,
    )  # fmt: skip
    lines = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if ".py:" in line]
    said = [line.split('"')[1] for line in lines if line.startswith("note: Revealed")]
    assert len(said) == SCRIPT.count("reveal_type"), done.stdout + done.stderr
    assert not any("object" in line for line in said)
    assert all(line.startswith("def (") for line in said[:FUNCTIONS])
    assert "-> optmech.designs.design.Design" in said[0]
    assert "-> optmech.certificate.check.CheckReport" in said[1]
    assert "-> optmech_sweeps.run.SweepResult" in said[2]
    assert said[FUNCTIONS : FUNCTIONS + 5] == [
        "bool", "float", "float", "optmech.spaces.mechanism.Mechanism",
        "optmech.analysis.measures.Tightest",
    ]  # fmt: skip
    # what a constraint is given is not what it has
    assert said[-2:] == [
        "optmech.exact.number.Exact",
        "optmech.problem.constraints.differential.DifferentialPrivacy",
    ]
    errors = [line for line in lines if line.startswith("error")]
    assert 'Argument 1 to "LossBound" has incompatible type "list[str]"' in errors[0]
    assert 'Too many positional arguments for "solve"' in errors[1]
    assert 'has no attribute "no_such_figure"' in errors[2]
    # the attributes that there are not have no type, which is said besides
    rest = [line for line in errors[3:] if "Any" not in line]
    names = ["no_such_picture", "no_such_name", "no_such_name"]
    assert [f'has no attribute "{n}"' in line for n, line in zip(names, rest, strict=True)] == [
        True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["CheckReport", "Profile"])
def test_types_that_functions_take_and_return_are_public(name: str) -> None:
    assert name in stated("optmech")
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
    started = "Design(optimal, verified, 9 secrets, 9 observables, best guess right 100 %, "
    assert repr(design).startswith(f"{started}without a report 11.1 %, loss 0,")
    stated = om.solve(om.Problem(small.prior, km, constraints=[om.MetricPrivacy(1, km)]))
    said = "ε = 1 per unit of euclidean distance between centres of cells, n reports n ε, best"
    assert f"{said} guess right 37.3 %" in repr(stated)
    assert len(repr(design.certificate)) < 800
    for part in (problem.prior, *problem.constraints, grid):
        assert len(repr(part)) < 500
    none = om.solve(om.Problem(small.prior, km, constraints=[om.DistortionPrivacy(99, km)]))
    assert repr(none).startswith("Design(infeasible, 9 secrets, 9 observables: ")


def test_results_take_a_few_lines_in_an_interpreter() -> None:
    line = om.Domain.range(300)
    prior, km = om.Prior.uniform(line), om.distances.euclidean()
    m = om.mechanisms.exponential(line, 1)
    chain = om.traces.MarkovPrior.random_walk(line, km, 2.0)
    times = [float(t) for t in range(300)]
    path = om.traces.GaussianPrior(times, om.traces.white(1.0))
    moved = om.Prior(line, [1, *[2] * 299])
    for value in (
        om.attacks.optimal_attack(m, prior, km),
        om.distributional.pairwise_epsilon(m, [prior, moved]),
        om.distributional.attack_success(m, [prior, moved]),
        om.measures.hockey_stick_curve(prior, moved),
        om.transport.wasserstein(prior, moved, km),
        om.mechanisms.tupling(m, 3),
        om.mechanisms.coupling_design([prior], prior, km),
        chain,
        path,
        om.traces.FixedPolicy(chain, m),
        om.traces.SequentialDesigner(chain, km),
        om.traces.SequentialDesigner(chain, km).start(),
        om.traces.privacy_loss(path, 1.0, range(100), 1.0, 2.0),
    ):
        assert len(repr(value)) < 1500, type(value)
        assert repr(value).count("\n") < 8
        assert repr(value).startswith(f"{type(value).__name__}(")
