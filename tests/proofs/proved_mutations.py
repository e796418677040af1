"""Designs and texts with something altered, judged by the proved checker and by others.

    PYTHONPATH=. python tests/proofs/proved_mutations.py --designs 1000 --texts 1000 --seed 38

A design with one number altered is judged by the audit and, written as a text, by the checker. A
text with a number or a word altered is judged by the checker and by ``plain``. Ends with 1 where
two judges differ.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import plain
from proved import PROOFS, Judge, everywhere_problems, problems, refuted, text_of, verdicts

import optmech as om
from optmech.errors import OptmechError
from optmech.reading.sealed import seal

Body = dict[str, Any]


def audited(path: Path) -> str:
    """What the audit finds wrong with a file."""
    try:
        audit.audit(str(path))
    except audit.Fault as fault:
        return str(fault)
    return ""


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


def judged_designs(
    designs: Mapping[str, bytes], judge: Judge, folder: Path, count: int, seed: int
) -> tuple[list[str], Counter[str]]:
    """Where audit and checker differ on ``count`` altered designs, and how often what was said.

    Left out are designs that the audit refuses for what thresholds leave of ε for all pairs, a
    claim that the text does not have, and those that are no designs, which both readers refuse.
    """
    rng = np.random.default_rng(seed)
    names = list(designs)
    cases: list[tuple[str, str]] = []
    paths: list[Path] = []
    wrong, counts = [], Counter[str]()
    drawn = 0
    while len(cases) < count:
        name = names[drawn % len(names)]
        drawn += 1
        body = json.loads(designs[name])
        del body["digest"]
        if isinstance(body["problem"]["objective"], dict):
            body["result"]["lower_bound"] = 0.0  # of the loss: the checker is not asked
        what = f"{drawn} {name}: {alter(rng, body)}"
        path = folder / f"{drawn}.json"
        path.write_bytes(seal(json.dumps(body).encode()))
        fault = audited(path)
        text = folder / f"{drawn}.checked"
        try:
            text.write_text(text_of(path))
        except OptmechError as error:
            counts["no design"] += 1
            if not fault or "does not cover" in str(error):
                wrong.append(f"{what}: audit {fault!r}, no text: {error}")
            continue
        if "with its thresholds" in fault:
            continue
        cases.append((what, fault))
        paths.append(text)
    for (what, fault), word in zip(cases, judge(paths), strict=True):
        counts[word.split(":")[0]] += 1
        if bool(fault) == (word == "accepted"):
            wrong.append(f"{what}: audit {fault!r}, checker {word!r}")
    return wrong, counts


# altered texts
PIECES = re.compile(r"([ \n]+)")
WORDS = [
    "plain",
    "log",
    "all",
    "some",
    "-",
    "row",
    "ratios",
    "support",
    "expected",
    "worst",
    "0",
    "1",
    "infeasible",
    "matrix",
    "end",
]


def altered_number(rng: np.random.Generator, text: str, others: list[str]) -> str:
    """Nearly the number, another one, or one that is written otherwise."""
    value = int(text)
    step = max(1, abs(value) >> int(rng.integers(1, 80)))
    new = [
        value + step, value - step, value + 1, value - 1, -value, 2 * value, 0, 1,
        int(others[int(rng.integers(len(others)))]),
    ]  # fmt: skip
    forms = [*map(str, new)] * 3
    return str(rng.choice([*forms, "0" + text, "+" + text, text + ".0", text + "e0", "-0", ""]))


def altered_text(rng: np.random.Generator, text: str) -> tuple[str, str]:
    """The text with something altered, and in words where."""
    pieces = PIECES.split(text)
    begin = pieces.index("size")
    places = [k for k in range(begin, len(pieces), 2) if plain.WHOLE.fullmatch(pieces[k])]
    way = int(rng.integers(10))
    if way <= 3:  # a number, of any part alike
        marks = [k for k in range(begin, len(pieces), 2) if pieces[k][:1].isalpha()]
        at = marks[int(rng.integers(len(marks)))]
        after = [k for k in places if k > at][: int(rng.choice([3, 30]))]
        k = after[int(rng.integers(len(after)))] if after else places[0]
        pieces[k] = altered_number(rng, pieces[k], [pieces[at] for at in places])
        return "".join(pieces), "a number"
    if way == 4:  # two numbers with the same sum: of a row of a matrix, say
        k = int(rng.integers(len(places) - 1))
        a, b = places[k], places[k + 1]
        moved = abs(int(pieces[a])) >> int(rng.integers(0, 70))
        pieces[a], pieces[b] = str(int(pieces[a]) - moved), str(int(pieces[b]) + moved)
        return "".join(pieces), "two numbers"
    if way == 5:  # a claim
        name = str(rng.choice(["cost", "least"]))
        if f"\n{name} " not in text:
            return text + " 1", "text behind the end"
        at = len(pieces) - 1 - pieces[::-1].index(name)
        top, bottom = at + 2, at + 4
        sign = int(rng.choice([-1, 1]))
        bits = int(rng.integers(1, 60))
        value = Fraction(int(pieces[top]), int(pieces[bottom])) * (
            1 + sign * Fraction(1, 1 << bits)
        )
        pieces[top], pieces[bottom] = str(value.numerator), str(value.denominator)
        return "".join(pieces), name
    if way == 6:  # a word
        words = [k for k in range(0, len(pieces), 2) if pieces[k]]
        k = words[int(rng.integers(len(words)))]
        pieces[k] = str(rng.choice(WORDS))
        return "".join(pieces), "a word"
    lines = text.split("\n")
    k, other = (int(v) for v in rng.integers(1, len(lines) - 1, size=2))
    if way == 7:
        lines[k], lines[other] = lines[other], lines[k]
    elif way == 8:
        lines[k : k + 1] = [] if rng.random() < 0.5 else [lines[k]] * 2
    else:
        ends = ["end", "accepted", "\n", " ", "\r", "\t", "0", "end\n"]
        return (text[: -int(rng.integers(1, 40))] if rng.random() < 0.5 else text) + str(
            rng.choice(ends)
        ), "the end"
    return "\n".join(lines), "lines"


def judged_texts(
    texts: Mapping[str, str], judge: Judge, folder: Path, count: int, seed: int
) -> tuple[list[str], Counter[str]]:
    """Where the checker and ``plain`` differ on ``count`` altered texts, and how often what was
    said."""
    rng = np.random.default_rng(seed)
    names, paths, cases = list(texts), [], []
    for k in range(count):
        name = names[k % len(names)]
        text, what = altered_text(rng, texts[name])
        paths.append(folder / f"text {k}.checked")
        paths[-1].write_bytes(text.encode())
        cases.append((f"{k} {name}: {what}", plain.accepted(text)))
    wrong, counts = [], Counter[str]()
    for (what, mine), word in zip(cases, judge(paths), strict=True):
        found = word.split(":")[0]
        counts[found] += 1
        if found != {True: "accepted", False: "refused", None: "not read"}[mine]:
            wrong.append(f"{what}: plain {mine}, checker {word!r}")
    return wrong, counts


def all_texts(folder: Path, designs: Mapping[str, bytes]) -> dict[str, str]:
    """Texts of designs, of designs for every point, and of what nothing keeps."""
    found = {}
    for name, content in designs.items():
        (folder / "d.json").write_bytes(content)
        found[name] = text_of(folder / "d.json")
    for name, problem in (everywhere_problems() | refuted()).items():
        om.solve(problem).save(folder / "d.json")
        found[name] = text_of(folder / "d.json")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--designs", type=int, default=1000, metavar="N")
    parser.add_argument("--texts", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=38)
    parser.add_argument("--checker", type=Path, default=PROOFS / "build" / "checker")
    args = parser.parse_args()

    def judge(paths: Any) -> list[str]:
        return verdicts(args.checker, paths)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        designs = {name: om.solve(problem).document() for name, problem in problems().items()}
        wrong, counts = judged_designs(designs, judge, folder, args.designs, args.seed)
        print(f"{args.designs} designs: {dict(counts)}, {len(wrong)} judged otherwise")
        more, counts = judged_texts(
            all_texts(folder, designs), judge, folder, args.texts, args.seed
        )
        print(f"{args.texts} texts: {dict(counts)}, {len(more)} judged otherwise")
    print("\n".join(wrong + more), end="\n" if wrong or more else "")
    return 1 if wrong or more else 0


if __name__ == "__main__":
    sys.exit(main())
