"""``optmech check`` says what it checked; ``optmech sample`` warns of seeds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import optmech as om
from optmech.cli.main import main


@pytest.fixture
def saved(tmp_path: Path) -> str:
    p = om.Prior.uniform(om.Domain.range(3))
    path = tmp_path / "design.json"
    constraints = [om.DifferentialPrivacy("ln 2"), om.LossBound(1.0)]
    om.solve(om.Problem(p, om.distances.hamming(), constraints=constraints)).save(path)
    return str(path)


def test_check_counts_inequalities_and_shows_the_tightest(
    saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", saved]) == 0
    text = capsys.readouterr().out
    # 3 sums and 9 signs, 6 ordered pairs times 3 observables, one loss bound
    assert "31, all decided exactly" in text
    assert "tightest ratio" in text
    assert main(["check", saved, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["inequalities"] == 31
    # 3 labels, ε = ln 2: the optimum has ratios of exactly 2 where it can
    assert 0.999 < plain["tightest"] <= 1


KM = om.distances.euclidean()
CELLS = om.Prior(om.Grid(2, 2), [1, 2, 3, 4])
ONE_GAP = {
    "most distortion": om.Problem(
        CELLS,
        KM,
        objective=om.MaximizeDistortion(KM),
        constraints=[om.MetricPrivacy(1, KM), om.LossBound(0.9)],
    ),
    "least leakage": om.Problem(
        CELLS, KM, objective=om.MinimizeLeakage(), constraints=[om.LossBound(0.9)]
    ),
    "infeasible": om.Problem(
        CELLS, KM, constraints=[om.MetricPrivacy(0.1, KM), om.LossBound(0.01)]
    ),
}


@pytest.mark.parametrize("name", ONE_GAP)
def test_what_is_on_no_mesh_has_one_gap(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    om.solve(ONE_GAP[name]).save(tmp_path / "d.json")
    assert main(["check", str(tmp_path / "d.json")]) == 0
    said = capsys.readouterr().out
    assert said.count("\ngap ") == 1
    assert "mesh" not in said
    assert main(["check", str(tmp_path / "d.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total_gap"] is None


def test_seeds_are_marked_unfit_for_release(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", saved, "1", "-n", "4", "--seed", "3"]) == 0
    found = capsys.readouterr()
    assert "unfit for release" in found.err
    assert len(found.out.split()) == 4
    assert main(["sample", saved, "1"]) == 0
    assert "unfit" not in capsys.readouterr().err


def test_a_loss_is_said_with_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a design and of its packed file; half of two places 3 m apart are confused under ε = 0."""
    places, metres = om.Domain(["a", "b"], [[0.0], [3.0]], "m"), om.distances.euclidean()
    private = om.MetricPrivacy(0, metres)
    design = om.solve(om.Problem(om.Prior.uniform(places), metres, constraints=[private]))
    design.save(tmp_path / "d.json")
    om.pack(design, tmp_path / "d.omm")
    packed = [str(tmp_path / "d.omm"), str(tmp_path / "d.json")]
    for given in (packed[1:], packed):
        assert main(["check", *given]) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert "loss 1.5 m" in lines
        # proved to a few roundings below, and shown so
        assert any(re.fullmatch(r"lower bound 1\.(5|4999+\d*) m", line) for line in lines)
        assert main(["check", *given, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["unit"] == "m"
