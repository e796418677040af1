"""The checker that Coq proved: it accepts what the audit accepts, and refuses what it refuses."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proved import PROOFS, Judge, built, text_of, verdicts

import optmech as om
from optmech import audit
from optmech.errors import OptmechError, ProblemError
from optmech.files import read_problem
from optmech.reading.sealed import seal

Body = dict[str, Any]
GALLERY = (
    "ages", "approximate", "bayes-leakage", "capacities", "coarser", "coupling", "differential",
    "distortion", "distribution", "grid-4x4", "grid-5x5-hamming", "home-out", "joint", "kept-rows",
    "least-leakage", "line-geometric", "male-female", "max-distortion", "medical-tree", "metric",
    "montreal-small", "paper-small", "policy-graph", "pufferfish", "road-network", "support",
    "threshold", "unbiased", "worst-case",
)  # fmt: skip
UNCOVERED = {
    "divergence": "'divergence'", "renyi": "'divergence'", "mutual-information": "'information'",
}  # fmt: skip


def audited(path: Path) -> str:
    try:
        audit.audit(str(path))
    except audit.Fault as fault:
        return str(fault)
    return ""


def test_designs_of_the_gallery_are_accepted(judge: Judge, tmp_path: Path) -> None:
    paths = []
    for name in GALLERY:
        om.solve(read_problem(name).problem).save(tmp_path / f"{name}.json")
        assert not audited(tmp_path / f"{name}.json"), name
        paths.append(tmp_path / f"{name}.checked")
        paths[-1].write_text(text_of(tmp_path / f"{name}.json"))
    said = dict(zip(GALLERY, judge(paths), strict=True))
    assert set(said.values()) == {"accepted"}, said


@pytest.mark.parametrize("name", UNCOVERED)
def test_what_is_not_covered_is_refused_by_name(name: str, tmp_path: Path) -> None:
    om.solve(read_problem(name).problem).save(tmp_path / "d.json")
    with pytest.raises(
        ProblemError, match=f"does not cover a promise of the kind {UNCOVERED[name]}"
    ):
        text_of(tmp_path / "d.json")


def test_every_covered_kind_is_accepted(
    designs: dict[str, bytes], judge: Judge, tmp_path: Path
) -> None:
    paths = []
    for name, content in designs.items():
        (tmp_path / f"{name}.json").write_bytes(content)
        assert not audited(tmp_path / f"{name}.json"), name
        paths.append(tmp_path / f"{name}.checked")
        paths[-1].write_text(text_of(tmp_path / f"{name}.json"))
    said = dict(zip(designs, judge(paths), strict=True))
    assert set(said.values()) == {"accepted"}, said


# altered designs
def exact_value(body: Body) -> tuple[Fraction, Fraction]:
    """What is minimised, and the expected loss, from the numbers of a design's file."""
    problem, stated = body["problem"], body["mechanism"]
    n, m = len(problem["prior"]), len(problem["loss"][0])
    p = [[Fraction(0)] * m for _ in range(n)]
    for s, (places, texts) in enumerate(stated["rows"]):
        for o, text in zip(places, texts, strict=True):
            p[s][o] = Fraction(int(text, 16), 2 ** stated["bits"])
    loss = [sum(Fraction(c) * q for c, q in zip(problem["loss"][s], p[s], strict=True))
            for s in range(n)]  # fmt: skip
    prior = [Fraction(v) for v in problem["prior"]]
    expected = sum((v * w for v, w in zip(prior, loss, strict=True)), Fraction(0))
    goal = problem["objective"]
    if goal == "worst_loss":
        return max(loss), max(loss)
    if goal == "expected_loss":
        return expected, expected
    gain = "gain" in goal
    table = goal["gain"] if gain else goal["distance"]["secrets"]
    best = max if gain else min
    guessed = sum(
        best(sum(Fraction(w[s]) * prior[s] * p[s][o] for s in range(n)) for w in table)
        for o in range(m)
    )
    return (guessed if gain else -guessed), expected


def float_above(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def restate(body: Body) -> None:
    """The claims about value and loss that the numbers have, and the status of the gap."""
    value, loss = exact_value(body)
    result, goal = body["result"], body["problem"]["objective"]
    sign = -1 if isinstance(goal, dict) and "distance" in goal else 1
    result["objective"], result["loss"] = sign * float_above(value), float_above(loss)
    status(body)


def status(body: Body) -> None:
    result, goal = body["result"], body["problem"]["objective"]
    sign = -1 if isinstance(goal, dict) and "distance" in goal else 1
    off = max(0.0, sign * (result["objective"] - result["bound"]))
    value = abs(result["objective"])
    gap = 0.0 if off == 0 else off / value if value else math.inf
    result["status"] = "optimal" if gap <= 1e-6 else "feasible"


def factor(rng: np.random.Generator) -> float:
    return 1 + float(rng.choice([-1, 1])) * 2.0 ** -int(rng.integers(1, 53))


def other_number(rng: np.random.Generator, value: Any) -> Any:
    """A stated number that is nearly the same, or not at all."""
    if isinstance(value, str):
        changes = [("ln 3", "ln 299/100"), ("ln 3", "ln 4"), ("ln 2", "ln 3/2"), ("1/3", "2/5"),
                   ("1/3", "3/10"), ("1/2", "1/3"), ("1/50", "1/49"), ("1/5", "1/6"),
                   ("3/5", "4/7")]  # fmt: skip
        possible = [new for old, new in changes if old == value]
        return str(rng.choice(possible)) if possible else value
    return value * factor(rng)


def alter(rng: np.random.Generator, body: Body) -> str:
    """One number changed, and what follows from it stated again."""
    problem, result = body["problem"], body["result"]
    way = int(rng.integers(9))
    n = len(problem["prior"])
    if way == 0:  # probability moved
        rows = body["mechanism"]["rows"]
        texts = rows[int(rng.integers(n))][1]
        i, j = (int(k) for k in rng.integers(len(texts), size=2))
        moved = int(texts[i], 16) >> int(rng.integers(1, 70))
        if i != j and moved:
            texts[i] = f"{int(texts[i], 16) - moved:x}"
            if rng.random() < 0.9:
                texts[j] = f"{int(texts[j], 16) + moved:x}"
        restate(body)
        return "numerators"
    if way == 1:  # a stated number of a constraint
        stated = [(c, key) for c in problem["constraints"]
                  for key in ("epsilon", "delta", "minimum", "maximum")
                  if c.get(key) not in (None, 0.0)]  # fmt: skip
        if stated:
            c, key = stated[int(rng.integers(len(stated)))]
            c[key] = other_number(rng, c[key])
        return "a stated number"
    if way == 2:  # a distance
        tables = [c["distance"]["secrets"] for c in problem["constraints"]
                  if isinstance(c.get("distance"), dict)
                  and c.get("observable_threshold") is None]  # fmt: skip
        if tables:
            table = tables[int(rng.integers(len(tables)))]
            i, j = (int(k) for k in rng.integers(n, size=2))
            table[i][j] *= factor(rng)
        return "a distance"
    if way == 3:  # the prior
        prior, (i, j) = problem["prior"], rng.integers(n, size=2).tolist()
        if rng.random() < 0.5:
            prior[i], prior[j] = prior[j], prior[i]
        else:
            prior[i] *= factor(rng)
        restate(body)
        return "the prior"
    if way == 4:  # a loss
        row = problem["loss"][int(rng.integers(n))]
        row[int(rng.integers(len(row)))] *= factor(rng)
        restate(body)
        return "a loss"
    if way == 5:  # the bound
        result["bound"] *= factor(rng)
        if result["lower_bound"] != 0.0:
            result["lower_bound"] = result["bound"]
        status(body)
        return "the bound"
    if way == 6:  # a cost that is too small
        goal = problem["objective"]
        sign = -1 if isinstance(goal, dict) and "distance" in goal else 1
        off = abs(result["objective"]) * 2.0 ** -int(rng.integers(1, 53))
        result["objective"] -= sign * off
        if not isinstance(goal, dict):
            result["loss"] = result["objective"]
        status(body)
        return "the objective"
    if way == 7:  # a row for another
        rows, (i, j) = body["mechanism"]["rows"], rng.integers(n, size=2).tolist()
        rows[i], rows[j] = rows[j], rows[i]
        restate(body)
        return "rows exchanged"
    ratio = body["multipliers"].get("ratio")
    if ratio and ratio["value"]:
        k = int(rng.integers(len(ratio["value"])))
        ratio["value"][k] *= float(rng.choice([factor(rng), 0.0, -1.0, 1000.0]))
    return "a multiplier"


def test_altered_designs_are_refused_where_the_audit_refuses(
    designs: dict[str, bytes], judge: Judge, tmp_path: Path
) -> None:
    rng, count = np.random.default_rng(38), 1040
    names, mine, theirs, paths, uncovered = list(designs), [], [], [], []
    for k in range(count):
        name = names[k % len(names)]
        body = json.loads(designs[name])
        del body["digest"]
        if isinstance(body["problem"]["objective"], dict):
            body["result"]["lower_bound"] = 0.0  # of the loss: the checker is not asked
        done = alter(rng, body)
        path = tmp_path / f"{k}.json"
        path.write_bytes(seal(json.dumps(body).encode()))
        mine.append(f"{k} {name}: {done}")
        theirs.append(audited(path))
        text = tmp_path / f"{k}.checked"
        try:
            text.write_text(text_of(path))
        except OptmechError as error:
            uncovered += [mine[-1]] if "does not cover" in str(error) else []
            text.write_text(f"the file is malformed: {error}\n")
        paths.append(text)
    said = judge(paths)
    assert not uncovered
    # what a threshold leaves of ε for all pairs is a claim that the text does not have
    compared = [
        (what, fault, word)
        for what, fault, word in zip(mine, theirs, said, strict=True)
        if "with its thresholds" not in fault
    ]
    assert len(compared) >= 1000
    wrong = [
        f"{what}: audit {fault!r}, checker {word!r}"
        for what, fault, word in compared
        if bool(fault) == (word == "accepted")
    ]
    assert not wrong, "\n".join(wrong)
    counts = Counter(word.split(":")[0] for word in said)
    assert counts["accepted"] >= 100, counts
    assert counts["refused"] >= 400, counts


def test_any_text_ends_in_an_orderly_way(
    designs: dict[str, bytes], judge: Judge, tmp_path: Path
) -> None:
    """Words of the text changed, left out and repeated."""
    rng = np.random.default_rng(7)
    (tmp_path / "d.json").write_bytes(designs["joint"])
    words = text_of(tmp_path / "d.json").split(" ")
    paths = []
    for k in range(200):
        own = list(words)
        at = int(rng.integers(len(own)))
        new = ["-1", "0", "x", "99999999999", "", "1" * 400, "-", own[at] + "1", own[at - 1]]
        own[at : at + int(rng.integers(3))] = [str(rng.choice(new))]
        paths.append(tmp_path / f"{k}.checked")
        paths[-1].write_text(" ".join(own))
    said = judge(paths)
    assert sum(word == "accepted" for word in said) < 100
    assert sum(word.startswith("not read: line") for word in said) > 20


def test_the_theorem_stands_on_the_axioms_of_the_reals(build: Path) -> None:
    """``Print Assumptions``: what a proof that was left out, or an axiom, would appear in."""
    text = (build / "assumptions.txt").read_text()
    names = {line.split(" :")[0] for line in text.splitlines() if line[:1].isalpha()} - {"Axioms:"}
    assert names == {
        "ClassicalDedekindReals.sig_not_dec", "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep", "Classical_Prop.classic",
    }  # fmt: skip


def test_an_unfinished_proof_is_no_build(build: Path, tmp_path: Path) -> None:
    for path in PROOFS.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    source = (tmp_path / "Exponential.v").read_text()
    (tmp_path / "Exponential.v").write_text(source + "\nAxiom free : 0 < 0.\n")
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "proved"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Axiom free" in done.stdout


def test_the_checker_without_a_library_says_the_same(
    designs: dict[str, bytes], build: Path, tmp_path: Path
) -> None:
    """With Coq's own whole numbers; of the smallest designs, as it is slow."""
    plain = built("checker-plain", build)
    paths = []
    for name in ("nothing", "log", "worst"):
        (tmp_path / "d.json").write_bytes(designs[name])
        text = text_of(tmp_path / "d.json")
        lines = text.splitlines()
        least = next(k for k, line in enumerate(lines) if line.startswith("least "))
        _, top, bottom = lines[least].split()
        false = [*lines[:least], f"least {int(top) * 2 + 1} {bottom}", *lines[least + 1 :], ""]
        for end, own in (("", text), (" false", "\n".join(false))):
            paths.append(tmp_path / f"{name}{end}.checked")
            paths[-1].write_text(own)
    said = verdicts(plain, paths)
    assert [word == "accepted" for word in said] == [True, False] * 3, said
    assert said == verdicts(build / "checker", paths)
