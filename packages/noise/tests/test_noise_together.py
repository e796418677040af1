"""Promises that several releases keep together, stored: against outcomes listed one by one, closed
forms and dp-accounting; both checkers prove honest files and refuse altered ones."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import judged
import numpy as np
import pytest
from optmech_audit import document, noise
from optmech_noise.additive.law import Law
from optmech_noise.additive.pairs import composed_delta

import optmech as om
from optmech.cli.main import main
from optmech.exact.number import parse_exact
from optmech.reading.sealed import seal

JAGGED = Law(6, (10, 2, 12, 3, 8, 2), (), 0, 0)
FALLING = Law(6, (20, 14, 6, 2), (), 0, 0)
TAILED = Law(4, (6, 3), (2,), 1, 2)


def listed(law: Law, shifts: tuple[int, ...], epsilon: float) -> float:
    """Σ max(0, Π z(i_j) - e^ε Π z(i_j + s_j)) over all outcomes with probabilities above 1e-12."""
    z = np.array([float(law.at(k)) for k in range(-40, 41)])
    first = second = np.ones(1)
    for s in shifts:
        first = np.outer(first, z[5:-5]).ravel()
        second = np.outer(second, z[5 + s : len(z) - 5 + s]).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def stored(law: Law, steps: int, k: int, epsilon: float, exponent: int) -> om.noise.NoiseDesign:
    """A design that promises little of its own accord."""
    measure = om.noise.NoiseLoss.of("absolute")
    rate, part = parse_exact(epsilon, where=""), parse_exact("99/100", where="")
    return om.noise.NoiseDesign(
        law, measure, rate, part, steps, releases=k, exponent=exponent
    )  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.1])
@pytest.mark.parametrize(("law", "steps"), [(FALLING, 1), (FALLING, 2), (JAGGED, 2), (TAILED, 1)])
@pytest.mark.parametrize("k", [2, 3])
def test_the_bound_is_above_every_outcome_and_close(
    law: Law, steps: int, epsilon: float, k: int
) -> None:
    shifts = [s for s in range(-steps, steps + 1) if s]
    worst = max(
        listed(law, chosen, epsilon)
        for chosen in itertools.combinations_with_replacement(shifts, k)
    )
    design = stored(law, steps, k, epsilon, 12)
    assert float(design.proved_delta) >= worst * (1 - 1e-12)
    if law is not JAGGED:
        # no pair dominates all shifts of jagged noise but one above them
        assert float(design.proved_delta) <= worst * (1 + 1e-4)


@pytest.mark.parametrize("law", [FALLING, JAGGED, TAILED])
def test_the_audit_finds_the_same_by_itself(law: Law, tmp_path: Path) -> None:
    design = stored(law, 1 if law is TAILED else 2, 7, 0.4, 8)
    design.save(tmp_path / "noise.json")
    other = noise.Noise(document.read(str(tmp_path / "noise.json")))
    found = noise.Releases(other).delta()
    assert float(found) == pytest.approx(float(design.proved_delta), rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 10, 100, 1000])
def test_dp_accounting_lies_around(k: int) -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    law = om.noise.optimal(0.1, 1e-6, loss="square").law
    rate = 0.08 * math.sqrt(k)
    exponent = 12 if k < 1000 else 9
    found = float(
        composed_delta(
            law, 1, k, epsilon=parse_exact(rate, where=""), delta=parse_exact(1e-6, where=""),
            exponent=exponent,
        )
    )  # fmt: skip
    lower = {i: math.log(v) for i in range(-law.n, law.n + 1) if (v := float(law.at(i))) > 0}
    ends = []
    for pessimistic in (False, True):
        one = pld.from_two_probability_mass_functions(
            lower, {i + 1: v for i, v in lower.items()},
            pessimistic_estimate=pessimistic, value_discretization_interval=1e-4,
        )  # fmt: skip
        ends.append(one.self_compose(k).get_delta_for_epsilon(rate))
    assert found >= ends[0] - 1e-12
    assert found <= ends[1] * (1 + 2e-3)


def test_without_delta_each_release_takes_an_equal_part() -> None:
    """k times two-sided geometric noise of ratio e^{-ε/k}: loss 2b/(1 - b²), and nothing better."""
    design = om.noise.optimal("ln 3", for_releases=4)
    b = 3 ** (-1 / 4)
    assert design.loss == pytest.approx(2 * b / (1 - b * b), rel=1e-7)
    assert design.lower_bound == pytest.approx(design.loss, rel=1e-6)
    assert design.is_private
    pytest.importorskip("opendp")
    assert om.exchange.noise_to_opendp(design).map(1) == pytest.approx(math.log(3) / 4)
    assert not dataclasses.replace(design, releases=5).is_private


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("together") / "noise.json"
    om.noise.optimal(1, 1e-4, for_releases=3, loss="square").save(path)
    return path.read_bytes()


def verdicts(body: dict[str, Any], path: Path) -> tuple[bool, bool]:
    """Whether the check and the audit accept what a body says."""
    body.pop("digest", None)
    return judged.verdicts(seal(json.dumps(body).encode()), path)


def test_honest_files_pass_and_come_back(made: bytes, tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    assert verdicts(json.loads(made), path) == (True, True)
    path.write_bytes(made)
    again = om.noise.NoiseDesign.load(path)
    assert again.releases == 3
    assert "3 releases together" in again.promise
    # what floats find of all three, within their bounds, is what the file proves
    found = again.privacy(3).delta(1)
    assert found.lower <= float(again.proved_delta) <= 1e-4
    assert float(again.proved_delta) >= found.lower
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == made


@pytest.mark.parametrize(
    "change",
    [
        {"count": 4}, {"count": 1}, {"count": 0}, {"count": 3.0}, {"count": 10**9},
        {"exponent": 0}, {"exponent": 99}, {"exponent": -1}, {"other": 1},
    ],
)  # fmt: skip
def test_altered_numbers_of_releases_are_refused(
    made: bytes, tmp_path: Path, change: dict[str, Any]
) -> None:
    body = json.loads(made)
    body["releases"] |= change
    assert verdicts(body, tmp_path / "noise.json") == (False, False)


def test_less_noise_or_a_smaller_promise_is_refused(made: bytes, tmp_path: Path) -> None:
    for factor in (0.9, 0.5):
        body = json.loads(made)
        body["delta"] = 1e-4 * factor
        assert verdicts(body, tmp_path / "noise.json") == (False, False)
    body = json.loads(made)
    law = [int(v, 16) for v in body["law"]["window"]]
    law[-2:] = [law[-2] - (part := law[-2] // 2), law[-1]]
    law[0] += 2 * part
    body["law"]["window"] = [f"{v:x}" for v in law]
    design = om.noise.NoiseDesign.load
    assert verdicts(body, tmp_path / "noise.json") == (False, False)
    with pytest.raises(om.OptmechError):
        design(tmp_path / "noise.json")


def test_the_command_stores_the_promise_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "noise.json"
    asked = ["--epsilon", "1", "--for-releases", "5", "-o", str(path)]
    assert main(["noise", *asked]) == 0
    assert "5 releases together" in capsys.readouterr().out
    assert main(["check", str(path)]) == 0
    assert "of 5 releases" in capsys.readouterr().out
    assert main(["noise", "--epsilon", "1", "--for-releases", "0"]) == 2
    assert Fraction(om.noise.NoiseDesign.load(path).each.factor) == Fraction(1, 5)
