"""Building the proved checker, asking it, and problems that it covers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from optmech_verified.file import checked_text

import optmech as om
from optmech.certificate.proved import examined
from optmech.designs.design import Design
from optmech.reading.sealed import DESIGN, read_sealed

PROOFS = Path(__file__).parents[2] / "proofs"
Judge = Callable[[Sequence[Path]], list[str]]


def built(target: str, folder: Path) -> Path:
    """The program of a target of ``proofs/Makefile``, or a skip."""
    if not PROOFS.is_dir():
        pytest.skip("not a checkout")
    if any(shutil.which(tool) is None for tool in ("coqc", "ocamlfind", "make")):
        pytest.skip("no Coq or OCaml (make proofs installs them)")
    if subprocess.run(
        ["ocamlfind", "query", "zarith"], capture_output=True, check=False
    ).returncode:
        pytest.skip("no Coq or OCaml (make proofs installs them)")
    done = subprocess.run(
        ["make", "-C", str(PROOFS), f"BUILD={folder}", f"{folder}/{target}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / target


def verdicts(program: Path, paths: Sequence[Path]) -> list[str]:
    """What the program says at the end of every file: accepted, refused: ..., not read: ..."""
    found: list[str] = []
    for begin in range(0, len(paths), 200):
        part = paths[begin : begin + 200]
        done = subprocess.run(
            [str(program), *map(str, part)], capture_output=True, text=True, check=False
        )
        said = [
            line for line in done.stdout.splitlines()
            if line.startswith(("accepted", "refused: ", "not read: "))
        ]  # fmt: skip
        assert len(said) == len(part), done.stdout + done.stderr
        worst = max(0 if w == "accepted" else 1 if w.startswith("refused") else 2 for w in said)
        assert done.returncode == worst
        found += said
    return found


def text_of(path: Path) -> str:
    """The text of a design's file, also of one whose claims do not hold."""
    body = read_sealed(path, (DESIGN,))
    design, _ = examined(body, str(path))
    assert isinstance(design, Design)
    return checked_text(design, str(body["digest"]))


TABLE = om.distances.matrix([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0.0]])
UNEVEN = om.distances.matrix(
    [[0, 0.3, 1, 1.7], [0.3, 0, 0.6, 1], [1, 0.6, 0, 0.9], [1.7, 1, 0.9, 0]]
)


def problems() -> dict[str, om.Problem]:
    """Small problems of every kind that is covered, with distances that have no name."""
    line = om.Prior(om.Domain.range(4), [1, 2, 3, 2])
    one, other = [0.5, 0.5, 0, 0], [0, 0.25, 0.25, 0.5]
    support = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    metric = om.MetricPrivacy
    return {
        "float": om.Problem(line, TABLE, constraints=[metric(0.7, UNEVEN)]),
        "third": om.Problem(line, UNEVEN, constraints=[metric("1/3", TABLE)]),
        "log": om.Problem(line, UNEVEN, constraints=[metric("ln 3", TABLE)]),
        "root": om.Problem(line, UNEVEN, constraints=[metric("1/2 ln 3", TABLE)]),
        "log apart": om.Problem(line, TABLE, constraints=[metric("ln 3", UNEVEN)]),
        "two": om.Problem(
            line, TABLE, constraints=[metric("ln 2", UNEVEN), om.DifferentialPrivacy(1.0)]
        ),
        "nothing": om.Problem(line, TABLE),
        "near": om.Problem(line, TABLE, constraints=[metric(1.0, TABLE, 1.5)]),
        "window": om.Problem(line, TABLE, constraints=[metric(1.0, TABLE, None, 1.5)]),
        "kept": om.Problem(
            line,
            TABLE,
            constraints=[
                metric("ln 2", TABLE),
                om.constraints.FixedRows(
                    {0: ["1/2", "1/4", "1/8", "1/8"], 3: ["1/8", "1/8", "1/4", "1/2"]}
                ),
            ],
        ),
        "policy": om.Problem(
            line, TABLE, constraints=[om.constraints.PolicyGraph("1/2", [(0, 1, 1.0), (2, 3, 0.5)])]
        ),
        "neighbours": om.Problem(
            line, TABLE, constraints=[om.DifferentialPrivacy("1/3", [(0, 1), (1, 2)])]
        ),
        "delta": om.Problem(line, TABLE, constraints=[om.DifferentialPrivacy(1.0, delta=0.05)]),
        "linear": om.Problem(
            line, TABLE,
            constraints=[
                metric(1, TABLE),
                om.Linear([1, 0, "1/3", -1], lower=-0.25, upper="1/2", per="report"),
            ],
        ),
        "populations": om.Problem(
            line, TABLE, constraints=[om.DistributionPrivacy(0.4, [(one, other)], scale=[1.5])]
        ),
        "populations delta": om.Problem(
            line, TABLE, constraints=[om.DistributionPrivacy("ln 2", [(one, other)], delta="1/50")]
        ),
        "joint": om.Problem(
            line, UNEVEN,
            constraints=[
                metric(1.0, TABLE), om.DistortionPrivacy(0.5, TABLE),
                om.LossBound(1.5, worst_case=True),
            ],
        ),
        "support": om.Problem(
            line, TABLE, constraints=[om.DistortionPrivacy("1/5", TABLE), om.Support(support)]
        ),
        "worst": om.Problem(
            line, TABLE, objective="worst_loss", constraints=[om.DifferentialPrivacy(2.0)]
        ),
        "attack": om.Problem(
            line, TABLE, objective=om.MaximizeDistortion(TABLE),
            constraints=[om.LossBound(0.6), metric(2.0, TABLE)],
        ),
        "least": om.Problem(
            line, TABLE, objective=om.MinimizeLeakage([[1, 0.5, 0, -1], [0, 0, 0.5, 1.0]]),
            constraints=[om.LossBound(0.6), metric(2.0, TABLE)],
        ),
        "gains": om.Problem(line, TABLE, constraints=[om.constraints.GainLeakage("3/5")]),
        "maximal": om.Problem(line, TABLE, constraints=[om.constraints.MaximalLeakage("ln 2")]),
        "capacity": om.Problem(line, TABLE, constraints=[om.constraints.AdditiveCapacity("1/3")]),
        "bias": om.Problem(
            line, TABLE,
            constraints=[om.DifferentialPrivacy(2.0), om.constraints.Bias(1.0, [0, 1, 2, 3.0])]
        ),
    }  # fmt: skip


def everywhere_problems() -> dict[str, om.Problem]:
    """Private at every point: linear; and of degree 2, with a promise about the places."""
    places = om.Prior(om.Domain(range(4), [[0, 0], [1, 0], [0, 1], [0.75, 0.5]]), [1, 2, 3, 2])
    square = om.Mesh([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.25]],
                     [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])  # fmt: skip
    far = om.distances.euclidean()

    def private(epsilon: str, mesh: om.Mesh) -> om.MetricPrivacy:
        return om.MetricPrivacy(epsilon, far, everywhere=mesh)

    bounded = om.LossBound(1.0, worst_case=True)
    halves = om.Mesh.grid((0, 0, 1, 1), width=1)
    return {
        "every point": om.Problem(places, far, constraints=[private("3/2", square)]),
        "degree 2": om.Problem(
            places, far, constraints=[private("ln 5", halves.with_degree(2)), bounded]
        ),
    }


def refuted() -> dict[str, om.Problem]:
    """What nothing keeps together."""
    line = om.Prior(om.Domain.range(4), [1, 2, 3, 2])
    exact = om.LossBound("1/10", worst_case=True)
    hidden = om.DistortionPrivacy(0.7, TABLE)
    return {
        "no utility": om.Problem(line, TABLE, constraints=[om.DifferentialPrivacy(0.5), exact]),
        "no hiding": om.Problem(line, TABLE, constraints=[hidden, exact]),
    }
