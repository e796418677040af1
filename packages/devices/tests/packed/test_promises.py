"""Promises of packed files as data: what sentences say of them, and what ledgers charge for the
numbers behind them, whatever a header states."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import optmech_devices
import pytest
from conformance import problems
from optmech_devices.packed.cbor import decode
from optmech_devices.packed.costs import kept_rate
from optmech_devices.packed.meshes import weights_of
from packed import odds, readers
from packed.test_packed_everywhere import resealed

import optmech as om

VECTORS = Path(__file__).parent / "vectors"
CLIENT = Path(optmech_devices.__file__).parent / "client"
EVERYWHERE = ("field", "globe", "north", "roads", "streets")
TIGHT = ("divergence_tv", "unbiased_line")


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("no Node")
    return found


def in_node(node: str, folder: Path, answer: str) -> dict[str, Any]:
    """What an expression of ``found`` is for every file of a folder; the error's name where there
    is one."""
    script = f"""
        import {{ Ledger, load }} from {json.dumps((CLIENT / "index.js").as_uri())};
        import {{ readFileSync, readdirSync }} from "node:fs";
        const [folder, said] = [{json.dumps(str(folder))}, {{}}];
        for (const name of readdirSync(folder).filter((file) => file.endsWith(".omm"))) {{
          try {{
            const found = await load(readFileSync(`${{folder}}/${{name}}`));
            said[name.slice(0, -4)] = {answer};
          }} catch (error) {{ said[name.slice(0, -4)] = error.constructor.name; }}
        }}
        console.log(JSON.stringify(said));
    """
    run = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, check=True
    )
    return json.loads(run.stdout)  # type: ignore[no-any-return]


# -- a ledger and forged headers -------------------------------------------------------------------


def scaled(factor: float) -> Any:
    def change(header: dict[str, Any]) -> None:
        for part in header["promises"]:
            part["epsilon"] *= factor

    return change


def of_no_distance(header: dict[str, Any]) -> None:
    for part in header["promises"]:
        part["measure"] = None


def unmoved(header: dict[str, Any]) -> None:
    if "snap" in header:
        header["snap"] = 0.0


def stated(**changes: Any) -> Any:
    """Entries of every promise, and of its measure where they begin with "m_"."""

    def change(header: dict[str, Any]) -> None:
        for part in header["promises"]:
            for name, value in changes.items():
                own = part["measure"] if name.startswith("m_") else part
                own[name.removeprefix("m_")] = value

    return change


UNGROUNDED = {
    "metres": stated(m_unit="m"),
    "no unit": stated(m_unit=""),
    "by coordinates": stated(m_name="manhattan", m_course="manhattan"),
    "straight": stated(m_name="euclidean", m_course="straight"),
    "flat": stated(m_name="euclidean", m_course="flat"),
    "great circles": stated(m_name="haversine", m_course="great circle", m_unit="km"),
    "roads": stated(m_name="roads", m_course="roads"),
    "no length": stated(m_course=""),
    "every point": stated(scope="every point"),
    "cells": stated(scope="cells"),
    "use": stated(scope="use"),
}
TRUE = {
    ("no length", "labels"), ("straight", "line"), ("straight", "plane"), ("straight", "field"),
    ("by coordinates", "line"), ("by coordinates", "plane"),
}  # fmt: skip
"""What another design of the same places may state."""


def test_promises_between_what_a_file_does_not_have_are_refused(node: str, tmp_path: Path) -> None:
    """Another unit, way of measuring or scope than those of the file's own places or mesh: odds
    would be false, and a ledger would charge too little."""
    loaded = {}
    for path in sorted(VECTORS.glob("*.omm")):
        content, found = path.read_bytes(), om.load(path)
        if isinstance(found, om.Earth) or not found.header.promises:
            continue
        for name, change in UNGROUNDED.items():
            other = tmp_path / f"{path.stem} {name}.omm"
            other.write_bytes(resealed(content, change))
            same = other.read_bytes() == content
            if same or (name, path.stem) in TRUE:
                om.load(other)
                loaded[other.stem] = "read"
                continue
            loaded[other.stem] = "PackedError"
            with pytest.raises(om.VerificationError, match="promises"):
                om.load(other)
    assert sum(said == "PackedError" for said in loaded.values()) > 80
    assert in_node(node, tmp_path, '"read"') == loaded


def test_a_ledger_is_charged_by_the_rows_in_both_languages(node: str, tmp_path: Path) -> None:
    """A digest that fits, and a smaller ε, an ε of no distance, or no moves: refused or charged
    as the honest file."""
    names = [*EVERYWHERE, "grid", "points", "line", "earth"]
    for name in names:
        content = (VECTORS / f"{name}.omm").read_bytes()
        for kind, change in {
            "honest": lambda header: None,
            "small": scaled(1e-3),
            "less": scaled(1 - 1e-6),
            "more": scaled(1.5),
            "plain": of_no_distance,
            "unmoved": unmoved,
        }.items():
            (tmp_path / f"{name} {kind}.omm").write_bytes(resealed(content, change))
    theirs = in_node(node, tmp_path, "new Ledger(found, null, 1).perDraw")
    own: dict[str, Any] = {}
    for path in tmp_path.glob("*.omm"):
        try:
            own[path.stem] = om.Ledger(om.load(path), None, 1).per_draw
        except om.VerificationError:
            own[path.stem] = "PackedError"
    assert own.keys() == theirs.keys()
    for name, charge in own.items():
        # what Python refuses to read of the earth is charged no less than it is by its own law
        if charge != theirs[name] and name.startswith("earth"):
            assert charge == "PackedError"
            assert theirs[name] >= own["earth honest"]
        else:
            assert theirs[name] == charge or readers.close(charge, theirs[name]), name
    for name in names:
        assert own[f"{name} honest"] > 0
        assert own[f"{name} small"] == "PackedError"
        if name in EVERYWHERE:
            rows = om.load_packed(VECTORS / f"{name}.omm").rows.matrix
            most = max(odds.ratio(p, q) for p in rows for q in rows)
            plain = own[f"{name} plain"]
            assert plain == "PackedError" or plain >= most
            assert own[f"{name} unmoved"] == own[f"{name} honest"]
            assert own[f"{name} more"] == pytest.approx(1.5 * own[f"{name} honest"], rel=1e-6)


def test_rows_that_tell_the_position_are_charged_by_no_honest_header(
    node: str, tmp_path: Path
) -> None:
    """Every row nearly certain of a report of its own, under the header of the design."""
    for name in EVERYWHERE:
        content = (VECTORS / f"{name}.omm").read_bytes()
        _, inner, rows, _ = decode(content).value
        header = decode(inner)
        width, one = header["width"], 1 << header["bits"]
        columns = len(header["columns"].value) // 4
        told = b""
        for row in range(len(rows) // (columns * width)):
            entries = [1] * columns
            entries[row % columns] = one - columns + 1
            told += b"".join(entry.to_bytes(width, "little") for entry in entries)
        path = tmp_path / f"{name}.omm"
        path.write_bytes(resealed(content, lambda header: None, told))
        with pytest.raises(om.VerificationError, match="keep"):
            om.Ledger(om.load_packed(path), None, 1)
    theirs = in_node(node, tmp_path, "new Ledger(found, null, 1).perDraw")
    assert theirs == dict.fromkeys(EVERYWHERE, "PackedError")


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_the_rate_that_rows_keep_is_that_of_fractions(degree: int) -> None:
    """Of random whole numbers on random triangles: never below the exact one, and next to it."""
    rng = random.Random(degree)
    for _ in range(6):
        corners = [[0, 0], [1, 0], [1, 1], [0, 1], [rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.8)]]
        scale = 10.0 ** rng.randrange(-20, 20)
        fan = [(k, (k + 1) % 4, 4) for k in range(4)]
        mesh = om.Mesh(np.array(corners) * scale, fan, unit="km", degree=degree)
        rows = [[rng.randrange(1, 2**20) for _ in range(3)] for _ in range(mesh.rows)]
        found = kept_rate(weights_of(mesh), np.array(rows, dtype=np.uint64), np.arange(mesh.rows))
        exact = max(squares(mesh, rows))
        assert exact <= Fraction(found) ** 2 <= exact * (1 + Fraction(1, 10**10))


def squares(mesh: om.Mesh, rows: list[list[int]]) -> Any:
    """‖G[α]‖² over P[α]², by Bernstein's coefficients of the derivatives, raised to d."""
    d = mesh.degree
    index = [(d - j - k, j, k) for k in range(d + 1) for j in range(d + 1 - k)]
    for control, corners in zip(mesh.control.tolist(), mesh.triangles.tolist(), strict=True):
        a, b, c = ([Fraction(v) for v in mesh.vertices[k].tolist()] for k in corners)
        (x1, y1), (x2, y2) = ([p - q for p, q in zip(end, a, strict=True)] for end in (b, c))
        area = x1 * y2 - y1 * x2
        for o in range(len(rows[0])):
            value = {at: rows[control[n]][o] for n, at in enumerate(index)}
            for at in index:
                rise = [Fraction(0), Fraction(0)]
                for k in range(3):
                    if not at[k]:
                        continue
                    less = list(at)
                    less[k] -= 1
                    ends = [tuple(n + (j == e) for j, n in enumerate(less)) for e in range(3)]
                    for edge in (0, 1):
                        rise[edge] += at[k] * (value[ends[edge + 1]] - value[ends[0]])
                x, y = (rise[0] * y2 - rise[1] * y1) / area, (rise[1] * x1 - rise[0] * x2) / area
                yield (x * x + y * y) / Fraction(value[at]) ** 2


def test_roads_keep_what_their_ends_do() -> None:
    """(high - low) / (low · length), the most of it; a report that one end never makes: none."""
    network = om.Network([[0, 0], [1, 0], [1, 2]], [[0, 1, 2]], lengths=[1, 3], unit="km")
    rows = np.array([[6, 2], [5, 3], [4, 4]], dtype=np.uint64)
    every = np.arange(3)
    found = kept_rate(weights_of(network), rows, every)
    assert Fraction(1, 2) <= Fraction(found) <= Fraction(1, 2) * (1 + Fraction(1, 2**40))
    rows[0] = 8, 0
    assert kept_rate(weights_of(network), rows, every) == math.inf


def test_a_differential_promise_with_a_delta_is_charged_by_no_ledger(tmp_path: Path) -> None:
    """(ε, δ) bounds no ratio: on a line too the rows say what a draw costs."""
    line = om.Mesh.line(0, 3, 3, unit="km")
    private = om.DifferentialPrivacy("ln 2", delta="1/10", everywhere=line)
    problem = om.Problem(line.prior("length"), line.distance, constraints=[private])
    found = om.pack(om.solve(problem), tmp_path / "m.omm", bits=48, max_loss=1)
    with pytest.raises(om.VerificationError, match="differ"):
        om.Ledger(found, None, 1)
    pure = om.DifferentialPrivacy("ln 2", everywhere=line)
    problem = om.Problem(line.prior("length"), line.distance, constraints=[pure])
    found = om.pack(om.solve(problem), tmp_path / "m.omm", bits=48, max_loss=1)
    charge = om.Ledger(found, None, 1).per_draw
    assert math.log(2) <= charge <= math.log(2) * (1 + 2e-8)


# -- sentences of data -----------------------------------------------------------------------------


def test_odds_and_reports_are_those_of_drawn_pairs() -> None:
    seen, wrong = odds.run(32, 5)
    assert wrong == []
    assert seen["odds"] > 500
    assert seen["reports"] > 50


def pack(constraint: Any, path: Path, secrets: Any = None, **more: Any) -> om.PackedMechanism:
    """A mechanism for one constraint."""
    km = om.distances.euclidean()
    places = secrets or om.Domain("abc", [[0, 0], [0.6, 0.8], [2, 0]], "km")
    problem = om.Problem(om.Prior.uniform(places), km, constraints=[constraint], **more)
    om.pack(om.solve(problem), path, bits=48, max_loss=1)
    return om.load_packed(path)


def test_odds_name_their_distance_and_a_graph_has_none(tmp_path: Path) -> None:
    """Places 1 km apart, and 1.4 km by the Manhattan distance: the ratio is e^2.8, not e^2."""
    found = pack(om.MetricPrivacy(2, om.distances.manhattan()), tmp_path / "m.omm")
    assert "1 km apart by the Manhattan distance at most 7.39 times" in found.protects[1]
    assert odds.ratio(*found.matrix[:2]) > 2.4
    hamming = pack(om.MetricPrivacy(1, om.distances.hamming()), tmp_path / "h.omm")
    assert hamming.protects == ("metric privacy: ε = 1 per unit of hamming distance",)


def test_a_unit_with_a_parenthesis_is_no_kilometre(tmp_path: Path) -> None:
    km = om.distances.euclidean()
    scaled = om.Domain("abc", [[0, 0], [0.6, 0.8], [2, 0]], "km (scaled 1:100)")
    found = pack(om.MetricPrivacy(1, km), tmp_path / "m.omm", scaled)
    assert found.protects == ("metric privacy: ε = 1 per km (scaled 1:100)",)
    assert found.promise.odds == {}
    assert found.promise.unit == "km (scaled 1:100)"


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (om.PointwiseMaximalLeakage("ln 2"), "Nothing is promised of several"),
        (om.DistributionPrivacy("1/10", [([1, 0, 0], [0, 0.5, 0.5])]), "Nothing is promised"),
        (om.Pufferfish("1/10", [([1, 0, 0], [0, 0.5, 0.5])]), "Nothing is promised of several"),
        (om.DifferentialPrivacy("ln 2", delta="1/10"), "promise only n times ε and δ."),
        (om.AdditiveCapacity("1/2"), "promise only 1 - (1 - c)^n."),
        (om.MaximalLeakage("1/2"), "promise only n times the leakage."),
        (om.DifferentialPrivacy("ln 2"), "promise only n times ε."),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_reports_add_up_where_that_is_so(constraint: Any, said: str, tmp_path: Path) -> None:
    found = pack(constraint, tmp_path / "m.omm")
    assert said in found.against[0]
    assert all("n times ε" not in text or "n times ε" in said for text in found.against)


def test_a_bound_of_the_loss_promises_nothing(tmp_path: Path) -> None:
    found = pack(om.LossBound(1), tmp_path / "m.omm")
    assert found.protects == ()
    assert found.promise.scope == "use"
    assert not any("ε" in text for text in found.against)


def test_every_kind_has_the_same_sentences_in_both_languages(node: str, tmp_path: Path) -> None:
    """And in both that of its own, which names its number."""
    own = {}
    for make in problems.KINDS:
        if make.__name__ in TIGHT:
            continue
        path = tmp_path / f"{make.__name__}.omm"
        found = om.pack(om.solve(make(np.random.default_rng(3))), path, bits=48, max_loss=10)
        own[make.__name__] = [list(found.protects), list(found.against), found.region, found.guess]
        kept = [clause for clause in found.header.promises if clause.scope != "use"]
        assert all(": " in text for text in found.protects[: len(kept)])
    assert len(own) > 20
    answer = "[found.protects, found.doesNotPromise, found.region, found.guess]"
    assert in_node(node, tmp_path, answer) == own


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_format_is_refused_with_one_error(version: int, tmp_path: Path) -> None:
    _, inner, rows, _ = decode((VECTORS / "grid.omm").read_bytes()).value
    path = tmp_path / "old.omm"
    path.write_bytes(readers.sealed(f"optmech-packed/{version}", inner, rows))
    for load in (om.load_packed, om.load):
        with pytest.raises(om.VerificationError, match="read no more"):
            load(path)
    with pytest.raises(audit.Fault, match="read no more"):
        audit.judge(str(path), str(path))
