"""No bound is shown beyond what is proved: read back from what is printed, wherever that is."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.designs.notes import about_bounds
from optmech.designs.sentences import figures_words, nearness
from optmech.show import reports

E = om.distances.euclidean()
NUMBER = r"(-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?)"
LOW = re.compile(
    rf"(?:lower bound(?: of)?|bound on this mesh|at least|least leakage|least variance) +{NUMBER}"
)
HIGH = re.compile(rf"upper bound +{NUMBER}")
GAP = re.compile(rf"\bgap(?: of| on this mesh| to the (?:lower )?bound)? +{NUMBER}")


def _problems() -> Iterator[om.Problem]:
    line = om.Domain.range(4, unit="km")
    for k, weights in enumerate(([1, 2, 3, 4], [7, 1, 1, 3], [1, 1, 1, 1])):
        prior = om.Prior(line, weights)
        metric = om.MetricPrivacy(f"{k + 1}/3", E)
        yield om.Problem(prior, E, constraints=[metric])
        yield om.Problem(prior, E, constraints=[metric], objective="worst_loss")
        yield om.Problem(
            prior,
            E,
            constraints=[om.LossBound(f"{k + 1}/7")],
            objective=om.MinimizeLeakage("identity"),
        )
        yield om.Problem(
            prior,
            E,
            constraints=[metric, om.LossBound(k + 1)],
            objective=om.MaximizeDistortion(E),
        )
        mesh = om.Mesh.line(0, 2, 2 + k, unit="km")
        every = om.MetricPrivacy(1 + k, everywhere=mesh)
        yield om.Problem(om.Prior.uniform(mesh.domain), E, constraints=[every])
    square = om.Mesh.grid((0, 0, 2, 2), 1)
    yield om.Problem(
        om.Prior.uniform(square.domain), E, constraints=[om.MetricPrivacy(1, everywhere=square)]
    )


@cache
def _designs() -> list[om.Design]:
    return [om.solve(problem, gap=0.05) for problem in _problems()]


def _fits(said: str, design: om.Design) -> int:
    """How many bounds a text has; each is one of those that were proved, on its side."""
    maximised = isinstance(design.problem.objective, om.MaximizeDistortion)
    lows = {design.lower_bound} | (set() if maximised else {design.bound})
    lows = {low for low in lows if low == low}
    gaps = {design.gap, design.total_gap}
    said = " ".join(said.split())
    count = 0
    for pattern, known, side in ((LOW, lows, -1), (HIGH, {design.bound}, 1), (GAP, gaps, 1)):
        for found in pattern.finditer(said):
            value = float(found[1].rstrip("."))
            near = [v for v in known if abs(v - value) <= 0.11 * abs(v) + 1e-300]
            assert any((value - v) * side >= 0 for v in near), (found[0], sorted(known), said)
            count += 1
    return count


@pytest.mark.parametrize("k", range(16))
def test_no_bound_is_shown_beyond_what_is_proved(
    k: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design = _designs()[k]
    path = str(tmp_path / "design.json")
    design.save(path)
    texts = [repr(design), re.sub("<[^>]*>", " ", design._repr_html_()), nearness(design)]
    texts += [*about_bounds(design), figures_words(design), *audit.audit(path)]
    for words in (["check", path], ["show", path]):
        assert main(words) == 0
        texts.append(capsys.readouterr().out)
    assert sum(_fits(text, design) for text in texts) >= 4


def test_what_a_command_prints_of_a_solution_is_on_the_side_of_its_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "design.json"
    for name in ("metric", "least-leakage", "max-distortion", "worst-case", "unbiased"):
        assert main(["solve", name, "--gap", "0.01", "-q", "-o", str(path)]) == 0
        said = capsys.readouterr().out
        assert _fits(said, om.Design.load(path)) >= 2, said


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node")
def test_a_page_shows_bounds_on_their_side(tmp_path: Path) -> None:
    """The function of the page that writes numbers, for numbers drawn here."""
    rng = np.random.default_rng(47)
    values = rng.choice([-1, 1], 2000) * 10 ** rng.uniform(-11, 11, 2000) * rng.random(2000)
    code = (Path(reports.__file__).parent / "static" / "draw.js").read_text(encoding="utf-8")
    pieces = re.findall(r"^function (?:beside|digits)\(.*?^\}", code, re.MULTILINE | re.DOTALL)
    assert len(pieces) == 2
    run = (
        "\n".join(pieces)
        + f"\nconst v = {json.dumps(values.tolist())};"
        + "console.log(JSON.stringify(v.map((x) => [-1, 0, 1].map((s) => digits(x, 4, s)))));"
    )
    done = subprocess.run(["node", "-e", run], capture_output=True, text=True, check=True)
    for value, texts in zip(values.tolist(), json.loads(done.stdout), strict=True):
        low, near, high = (float(text.replace("−", "-")) for text in texts)
        assert low <= value <= high
        assert near in (low, high)
        assert math.isclose(low, high, rel_tol=2e-3)
