"""What ``optmech show`` says of every kind of file: the promise about points, in odds that are
computed here again."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.exact.number import from_below

LN2 = math.log(2)


def shown(path: Path, capsys: pytest.CaptureFixture[str], status: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["show", str(path), "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def cells(side: int = 3) -> om.Problem:
    grid = om.Grid(side, side, 2.0, unit="km")
    km = om.distances.euclidean()
    return om.Problem(om.Prior.uniform(grid), km, constraints=[om.MetricPrivacy("1/2", km)])


def everywhere() -> om.Problem:
    where = [[7.0, 47.0], [7.02, 47.01], [7.03, 47.03]]
    places = om.Domain("abc", where, coordinates="lonlat")
    km = om.distances.haversine()
    mesh = om.Mesh.grid((7.0, 47.0, 7.04, 47.04), 3, coordinates="lonlat", degree=2)
    private = om.MetricPrivacy("ln 2", km, everywhere=mesh)
    return om.Problem(om.Prior.uniform(places), km, constraints=[private])


def test_every_point_is_said_in_odds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = om.solve(everywhere())
    design.save(tmp_path / "d.json")
    found = shown(tmp_path / "d.json", capsys)
    assert found["kind"] == "design"
    assert found["scope"] == "every point"
    assert found["promise"].startswith("At every point of the region")
    assert found["checked"] is True
    # ln 2 per km: doubled every kilometre
    assert found["odds"]["100"] == pytest.approx(2**0.1, rel=1e-12)
    assert found["odds"]["1000"] == pytest.approx(2, rel=1e-12)
    assert found["odds"]["10000"] == pytest.approx(1024, rel=1e-12)
    content = (tmp_path / "d.json").read_bytes()
    rest = content.partition(b"\n")[2]
    assert found["digest"] == "sha256:" + hashlib.sha256(rest).hexdigest()
    assert found["bytes"] == len(content)
    capsys.readouterr()
    assert main(["show", str(tmp_path / "d.json")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 km apart at most 2 times as likely" in text
    assert "100 m apart at most 1.08 times as likely" in text  # 1.0717, rounded up
    assert "n independent reports promise n times ε" in text


def test_cells_say_what_edges_reveal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = om.solve(cells())
    design.save(tmp_path / "d.json")
    found = shown(tmp_path / "d.json", capsys)
    assert found["scope"] == "cells"
    # by the matrix alone: cells that touch are neighbours in rows and columns
    matrix = design.matrix
    assert matrix is not None
    place = [divmod(k, 3) for k in range(9)]
    steps = [
        np.abs(np.log(matrix[i] / matrix[j])).max()
        for i in range(9)
        for j in range(9)
        if i != j and max(abs(a - b) for a, b in zip(place[i], place[j], strict=True)) == 1
    ]
    assert found["at_distance_0"] == pytest.approx(max(steps), rel=1e-6)
    assert 0 < found["violated"] < 1
    # two positions 1 km apart may belong to cells 1 km + a diagonal apart, and no further
    assert found["odds"]["1000"] == pytest.approx(math.exp(0.5 * (1 + math.sqrt(8))), rel=1e-12)
    assert "centres of cells only" in found["promise"]


def test_no_pair_of_positions_exceeds_the_odds_of_cells() -> None:
    design = om.solve(cells())
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 6, (4000, 2))
    y = np.clip(x + rng.normal(0, 0.7, x.shape), 0, 5.999999)
    matrix = design.matrix
    assert matrix is not None
    # the grid's cells are centred at whole multiples of their side
    row = {label: k for k, label in enumerate(design.problem.secrets.labels)}
    at = [[row[int(p[1] // 2), int(p[0] // 2)] for p in points] for points in (x, y)]
    logs = np.abs(np.log(matrix[at[0]] / matrix[at[1]])).max(axis=1)
    apart = np.hypot(*(x - y).T)
    allowed = [math.log(design.promise.factor(1000 * d)) for d in apart]
    assert (logs <= np.array(allowed) + 1e-12).all()
    # and without the diagonal many do
    assert (logs > 0.5 * apart).mean() > 0.1


def test_every_kind_of_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    om.solve(everywhere()).save(tmp_path / "d.json")
    assert main(["pack", str(tmp_path / "d.json"), "-o", str(tmp_path / "d.omm")]) == 0
    packed = shown(tmp_path / "d.omm", capsys)
    assert packed["kind"] == "packed"
    assert packed["scope"] == "every point"
    content = (tmp_path / "d.omm").read_bytes()
    assert packed["digest"] == "sha256:" + content[-32:].hex()
    assert packed["checked"] is False
    assert packed["odds"]["1000"] == pytest.approx(2, rel=1e-4)
    assert packed["odds"]["1000"] >= 2

    mechanism = om.devices.load_packed(tmp_path / "d.omm")
    ledger = om.devices.Ledger.open(tmp_path / "spent.json", mechanism, None, radius=1)
    assert ledger.charge((7.01, 47.01))
    kept = shown(tmp_path / "spent.json", capsys)
    assert kept["kind"] == "ledger"
    assert f"plainly {ledger.plain:.6g}" in kept["promise"]

    assert main(["noise", "--epsilon", "1", "-o", str(tmp_path / "n.json")]) == 0
    noise = shown(tmp_path / "n.json", capsys)
    assert (noise["kind"], noise["checked"]) == ("noise", True)
    assert "(ε, δ) = (1, 0)" in noise["promise"]
    assert main(["transport", "home-out-target", "-o", str(tmp_path / "f.json")]) == 0
    assert shown(tmp_path / "f.json", capsys)["kind"] == "coupling"
    for name in (tmp_path / "run", tmp_path / "run" / "sweep.json"):
        if not name.exists():
            argv = ["sweep", "epsilon-curve", "-o", str(name), "-q", "--workers", "1"]
            assert main(argv) == 0
        assert shown(name, capsys)["kind"] == "sweep"
    (tmp_path / "city.py").write_text("print()")
    assert main(["show", str(tmp_path / "city.py")]) == 2
    assert "promises nothing" in capsys.readouterr().err


def test_a_forged_claim_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    om.solve(cells(2)).save(tmp_path / "d.json")
    head, _, rest = (tmp_path / "d.json").read_bytes().partition(b"\n")
    body = json.loads(b"{" + rest)
    body["result"]["loss"] = body["result"]["loss"] * 0.5
    altered = json.dumps(body).encode()[1:]
    (tmp_path / "d.json").write_bytes(head + b"\n" + altered)
    assert main(["show", str(tmp_path / "d.json")]) == 1
    digest = hashlib.sha256(altered).hexdigest()
    sealed = b'{"digest": "sha256:' + digest.encode() + b'",\n' + altered
    (tmp_path / "d.json").write_bytes(sealed)
    found = shown(tmp_path / "d.json", capsys, status=1)
    assert found["checked"] is False
    assert found["faults"]


def test_solve_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "montreal-small", "-q", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["points"]
    assert found["scope"] == "places"
    assert found["odds"]["1000"] == pytest.approx(2)


def test_losses_have_their_units_and_shares_their_direction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A grid of four cells of 2 km: losses in km, ε per km; of a packed file too."""
    grid = om.Grid(2, 2, cell=2.0, unit="km")
    rate = om.MetricPrivacy("ln 2", om.distances.euclidean())
    loss = om.distances.euclidean()
    problem = om.Problem(prior=om.Prior.uniform(grid), loss=loss, constraints=[rate])
    design, packed = tmp_path / "d.json", tmp_path / "d.omm"
    om.solve(problem).save(design)
    assert main(["measure", str(design)]) == 0
    said = capsys.readouterr().out
    for words in (
        "expected loss (km)", "worst-case loss (km)", "metric privacy (euclidean, per km)",
        "distortion privacy (euclidean, km)",
    ):  # fmt: skip
        assert words in said
    assert main(["show", str(design)]) == 0
    shown = capsys.readouterr().out
    found = om.Design.load(design)
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines() if "  " in line)
    assert lines["status"] == "optimal: the least possible"
    assert lines["loss"] == f"{found.loss:.6g} km"
    why = "no mechanism with these reports that keeps the constraint can have less"
    least = f"{from_below(found.lower_bound)} km ({why})"
    assert " ".join(shown.split()).count(f"lower bound {least}") == 1
    assert main(["pack", str(design), "-o", str(packed)]) == 0
    told = capsys.readouterr().out
    share = om.devices.load_packed(packed).header.loss.increase
    word = "below" if share < 0 else "above"
    assert f"{100 * abs(share):.2g} % {word} the design" in told
    assert main(["show", str(packed)]) == 0
    shown = capsys.readouterr().out
    assert f" % {word} the design" in shown
    # that every report spends is said once
    assert shown.lower().count("every fresh report spends") == 1
    assert "Every report spends" not in shown
    # and of secrets that are no places nobody reads of places
    pair = om.Prior.uniform(om.Domain(["a", "b"]))
    rules = [om.DifferentialPrivacy(1)]
    labels = om.Problem(prior=pair, loss=om.distances.hamming(), constraints=rules)
    om.solve(labels).save(design)
    assert main(["show", str(design)]) == 0
    assert "for as long as the secret is the same" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["x.json", "x.toml", "x.CSV", "x.html"])
def test_a_packed_file_has_no_name_of_another_kind(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main(["pack", "--earth", "1", "-o", str(out)]) == 2
    assert "ends in .omm" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(("epsilon", "cell", "warned"), [(1, 10, True), (1, 0.1, False)])
def test_wide_cells_on_earth_are_doubted(
    epsilon: float, cell: float, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["pack", f"--earth={epsilon}", "--cell", str(cell), "-o", str(tmp_path / "e.omm")]
    assert main(argv) == 0
    said = capsys.readouterr()
    assert ("two positions next to each other" in said.err) == warned
    assert " km): proved" in said.out
    assert main(["pack", "--earth=-1", "-o", str(tmp_path / "n.omm")]) == 2
    assert "'-1' is negative" in capsys.readouterr().err


def test_what_was_not_looked_for_is_not_said_to_be_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All rows at one place: no mechanism loses less than 0, and nobody looked."""
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("id,lon,lat\n" + "1,8.5,47.3\n" * 20)
    assert main(["init", "one.csv", "--radius", "1km", "-o", "p.toml"]) == 0
    capsys.readouterr()
    assert main(["solve", "p.toml", "-q", "-o", "d.json"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    looked = om.Design.load("d.json").certificate.outer is not None
    assert ("no lower bound was looked for that holds for every mechanism" in said) != looked
    assert (
        "no mechanism with these reports that keeps the constraint can have less" in said
    ) == looked
    # gradients are decided, and are no ratios of two entries
    assert main(["check", "d.json"]) == 0
    assert "tightest ratio none" not in " ".join(capsys.readouterr().out.split())
    assert main(["protect", "d.json", "one.csv", "--no-budget", "-o", "o.csv"]) == 0
    Path("other.csv").write_text("a,b\n1,2\n")
    assert main(["protect", "d.json", "other.csv", "-o", "q.csv"]) == 2
    said = capsys.readouterr().err
    assert "and not both" not in said


@pytest.mark.parametrize("degrees", [True, False])
def test_lengths_of_packed_files_have_their_unit(
    degrees: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The least and the largest distance within which a place is with the stated probability,
    counted again from the draws' probabilities."""
    if degrees:
        where = [[7.0, 47.0], [7.002, 47.001], [7.3, 47.3]]
        places = om.Domain("abc", where, coordinates="lonlat")
        km = om.distances.haversine()
    else:
        places = om.Domain("abc", [[0.0, 0.0], [0.2, 0.1], [30.0, 40.0]], unit="years")
        km = om.distances.euclidean()
    prior = om.Prior(places, [0.5, 0.25, 0.25])
    design = om.solve(om.Problem(prior, km, constraints=[om.MetricPrivacy("1/20", km)]))
    design.save(tmp_path / "d.json")
    assert main(["pack", str(tmp_path / "d.json"), "-o", str(tmp_path / "d.omm")]) == 0
    mechanism = om.devices.load_packed(tmp_path / "d.omm")
    share = mechanism.header.accuracy
    assert share is not None
    distance = np.asarray(km(places, places))
    radii = []
    for o in np.flatnonzero(design.mechanism.matrix.sum(axis=0) > 0).tolist():
        mass = prior.weights * design.mechanism.matrix[:, o]
        order = np.argsort(distance[:, o])
        enough = np.cumsum(mass[order]) >= share.quantile * mass.sum()
        radii.append(float(distance[order[enough.argmax()], o]))

    def said(radius: float) -> str:
        if not degrees:
            return f"{radius:.4g} years"
        return f"{radius:.3g} km" if radius >= 1 else f"{1000 * radius:.3g} m"

    capsys.readouterr()
    assert main(["show", str(tmp_path / "d.omm")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"within {said(min(radii))} of the most telling" in told
    assert f"within {said(max(radii))} of the vaguest" in told
