"""``[transport]`` tables: the command, its files, and mistakes in them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.files import read_problem

HEAD = """
format = 1
title = "Three points"
loss = "euclidean"
prior = "uniform"
[secrets]
kind = "line"
values = [0, 1, 3]
unit = "km"
[transport]
"""
TARGET = (
    HEAD
    + 'task = "target"\ninputs = [{ distribution = [1, 0, 0] }, { distribution = [0, 0, 1] }]\n'
)


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_example_2_of_the_paper(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """From the gallery file to a saved family, its check, its moves and its samples."""
    saved, moves = tmp_path / "family.json", tmp_path / "moves.csv"
    status, out, _ = output(capsys, "transport", "coupling", "-o", saved, "--plan", moves, "--json")
    answer = json.loads(out)
    assert status == 0
    assert (answer["gap"], answer["status"], answer["verified"]) == (0, "optimal", True)
    # 3/10 is no float: losses are rounded up, bounds down
    assert answer["lower_bound"] <= 0.3 <= answer["loss"] < 0.3 + 1e-15
    assert answer["inputs"][0]["longest_move"] == 1
    with moves.open(encoding="utf-8", newline="") as stream:
        found = {(row["from"], row["to"]): float(row["mass"]) for row in csv.DictReader(stream)}
    assert found == {
        ("1", "1"): 0.2,
        ("2", "1"): 0.1,
        ("2", "2"): 0.2,
        ("2", "3"): 0.2,
        ("3", "3"): 0.3,
    }
    assert output(capsys, "check", saved)[0] == 0
    sample = ("sample", saved, "2", "-n", "400", "--seed", "5")
    status, out, _ = output(capsys, *sample, "--input", "everybody")
    shares = [out.split().count(place) / 400 for place in ("1", "2", "3")]
    assert status == 0
    assert shares == pytest.approx([0.2, 0.4, 0.4], abs=0.12)
    status, _, err = output(capsys, *sample)
    assert status == 2
    assert "--input: everybody" in err
    assert output(capsys, "measure", saved)[0] == 2
    assert output(capsys, *sample, "--input", "nobody")[0] == 2


def test_target_and_frontier_by_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Points 0 and 3, one input at each. With outputs (p, q) on them and p = e^ε q the loss is 3 q:
    3/4 for e^ε = 3. At ε = 0 it is half the distance."""
    path = write(tmp_path, TARGET + 'epsilon = "ln 3"\nepsilons = [0, "ln 2", "ln 3"]\n')
    status, out, _ = output(capsys, "transport", path, "--json")
    answer = json.loads(out)
    assert status == 0
    assert answer["loss"] == pytest.approx(0.75, rel=1e-9)
    np.testing.assert_allclose([p["loss"] for p in answer["frontier"]], [1.5, 1, 0.75], rtol=1e-9)
    _, text, _ = output(capsys, "transport", path)
    assert "(ln 3, 0.0)-close, exactly" in text
    assert "km" in text


@pytest.mark.parametrize(
    ("loss", "unit"),
    [('"euclidean"', " km"), ('"hamming"', ""), ('{ distance = "euclidean", power = 2 }', "")],
)
def test_a_loss_has_the_unit_that_it_is_of(
    loss: str, unit: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    problem = write(tmp_path, TARGET.replace('loss = "euclidean"', f"loss = {loss}"))
    status, out, err = output(capsys, "transport", problem)
    assert status == 0, err
    said = {line.split()[0]: line for line in out.splitlines() if line.startswith("loss  ")}
    assert said["loss"].split(maxsplit=1)[1].partition(" ")[1:] == (" " * bool(unit), unit.strip())


def test_barycenter(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = TARGET.replace('"target"', '"barycenter"').replace("[{ dist", "[{ weight = 3, dist")
    status, out, _ = output(capsys, "transport", write(tmp_path, text), "--json")
    answer = json.loads(out)
    assert status == 0
    # the heavier input stays where it is
    assert answer["outputs"] == [[1, 0, 0], [1, 0, 0]]
    assert answer["loss"] == 0.75


def test_longest_moves_and_recipes(tmp_path: Path) -> None:
    text = (
        HEAD
        + 'task = "coupling"\np = "inf"\noutside = "nearest"\n'
        + 'inputs = [{ name = "a", distribution = { "0" = 1, "1" = 1 } }]\n'
        + 'target = { kind = "dirichlet", seed = 4 }\n'
    )
    file = read_problem(write(tmp_path, text))
    assert file.transport is not None
    design = file.transport.solve()
    assert design.outside == "nearest"
    np.testing.assert_array_equal(design.inputs, [[0.5, 0.5, 0]])
    d = file.problem.loss_matrix
    value = om.transport.wasserstein([1, 1, 0], design.outputs[0], d, "inf").value
    assert design.worst_moves == (value,)


def test_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for name in ("coupling", "home-out-target"):
        path = tmp_path / f"{name}.png"
        status, _, err = output(capsys, "transport", name, "--picture", path)
        assert status == 0
        assert path.read_bytes().startswith(b"\x89PNG")
        assert str(path) in err


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (HEAD + 'task = "target"', "transport.inputs", "is missing"),
        (HEAD + 'task = "target"\ninputs = []', "transport.inputs", "is empty"),
        (
            HEAD + 'task = "move"\ninputs = [{ distribution = [1, 1, 1] }]',
            "transport.task",
            "unknown",
        ),
        (
            HEAD + 'task = "coupling"\ninputs = [{ distribution = [1, 1, 1] }]',
            "transport",
            "target belongs to the task coupling",
        ),
        (TARGET + "p = 1\ntarget = [1, 1, 1]", "transport", "target belongs"),
        (TARGET + 'p = "inf"', "transport", "p belongs"),
        (TARGET + "p = 2", "transport.p", "neither 1 nor inf"),
        (TARGET + "epsilon = -1", "transport.epsilon", "negative"),
        (TARGET + "epsilons = [1, true]", "transport.epsilons[1]", "not a number"),
        (TARGET + "delta = 1.5", "delta", "above 1"),
        (TARGET + "colour = 1", "transport.colour", "not a known key"),
        (TARGET.replace("[1, 0, 0]", "[1, 0]"), "transport.inputs[0].distribution", "2 entries"),
        (
            TARGET.replace("[1, 0, 0]", '[1, 0, 0], name = "1"'),
            "transport.inputs",
            "two inputs have one name",
        ),
        (
            TARGET.replace("distribution", "weight = 0, distribution"),
            "transport.inputs",
            "sum to 0",
        ),
        (
            TARGET.replace('"target"', '"barycenter"') + "epsilon = 1",
            "transport",
            "belong to the task target",
        ),
    ],
)
def test_mistakes_are_placed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, where: str, message: str
) -> None:
    status, out, err = output(capsys, "transport", write(tmp_path, text))
    assert status == 2
    assert out == ""
    assert f"{where}:" in err
    assert message in err


@pytest.mark.parametrize(
    "argv",
    [
        ("home-out", "-o", "x.json"),
        ("coupling", "--p", "1"),
        ("coupling", "-o", "/nowhere/x.json"),
        ("coupling", "--picture", "x.txt"),
        ("coupling", "-o", "x.json", "--plan", "x.json"),
    ],
)
def test_misuse_is_one_line(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    status, out, err = output(capsys, "transport", *argv)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
