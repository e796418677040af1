"""Designs as whole numbers for the proved checker, read back by a few lines of Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.designs.file import read_with_digest
from optmech.errors import ProblemError
from optmech.exchange.checked import checked_text

APART = [[0, 0.3, 2], [0.3, 0, 1], [2, 1, 0.0]]
TABLE = om.distances.matrix(APART)


def line(*constraints: om.Constraint, objective: str = "expected_loss") -> om.Problem:
    prior = om.Prior(om.Domain.range(3), [1, 2, 4])
    return om.Problem(prior, TABLE, objective=objective, constraints=list(constraints))


class Text:
    """The words of a text, in turn."""

    def __init__(self, text: str) -> None:
        assert text.endswith("end\n")
        head, _, rest = text.partition("\nsize ")
        self.head, self.words = head.split("\n"), iter(("size " + rest).split())

    def expect(self, *words: str) -> None:
        for word in words:
            assert next(self.words) == word

    def number(self) -> int:
        return int(next(self.words))

    def fraction(self) -> Fraction:
        return Fraction(self.number(), self.number())

    def table(self, rows: int, columns: int, bits: int) -> list[list[Fraction | None]]:
        words = [[next(self.words) for _ in range(columns)] for _ in range(rows)]
        return [[None if w == "-" else Fraction(int(w), 2**bits) for w in row] for row in words]


@pytest.mark.parametrize("epsilon", [0.7, "1/3", "ln 3", "2/3 ln 5/2"])
def test_the_text_has_the_numbers_of_the_design(epsilon: float | str, tmp_path: Path) -> None:
    """And its items prove the bound, evaluated here with floats for powers of e."""
    design = om.solve(line(om.MetricPrivacy(epsilon, TABLE)))
    text = Text(checked_text(design, "sha256:0"))
    assert text.head[:2] == ["optmech-checked 1", "design sha256:0"]
    text.expect("size", "3", "3", "matrix")
    assert design.exact is not None
    bits = text.number()
    found = text.table(3, 3, bits)
    assert found == [[Fraction(v, 2**design.exact.bits) for v in row] for row in design.exact.rows]
    assert all(sum(row) == 1 for row in found)
    text.expect("objective", "expected", "prior")
    over = text.number()
    (prior,) = text.table(1, 3, over)
    assert prior == [Fraction(v) for v in design.problem.statement.prior.tolist()]
    text.expect("loss")
    more = text.number()
    loss = text.table(3, 3, more)
    assert loss == [[Fraction(v) for v in row] for row in design.problem.statement.loss.tolist()]
    text.expect("promises", "1", "ratios", "rate")
    rate = float(text.fraction())
    if next(text.words) == "log":
        base = text.fraction()
        low, high, hint = text.number(), text.number(), text.number()
        assert low / 2**hint == pytest.approx(math.log(base), rel=1e-12)
        assert 0 < high - low <= 4
        rate *= math.log(base)
    text.expect("distances")
    apart = text.table(3, 3, text.number())
    assert apart == [[None if s == t else Fraction(v) for t, v in enumerate(row)]
                     for s, row in enumerate(APART)]  # fmt: skip
    text.expect("window", "all", "cost")
    cost = text.fraction()
    assert cost == Fraction(design.loss)
    text.expect("least")
    least = text.fraction()
    assert least == Fraction(design.lower_bound)
    text.expect("proof", "0", "0", "0", "1", "1")
    unit = text.number()
    scale = unit * 2 ** (over + more)
    terms = [[float(prior[s] * loss[s][o]) for o in range(3)] for s in range(3)]  # type: ignore[operator]
    text.expect("items")
    count = text.number()
    for i, j, o, value in items(text, count):
        z = float(Fraction(value * 2**192, scale))
        terms[i][o] += z
        terms[j][o] -= z * math.exp(rate * float(apart[i][j] or 0))
    text.expect("end")
    assert count > 0
    assert sum(map(min, terms)) == pytest.approx(float(least), abs=1e-9)


def items(text: Text, count: int) -> Iterator[tuple[int, int, int, int]]:
    for _ in range(count):
        i, j, o = text.number(), text.number(), text.number()
        text.expect("1", "1")
        yield i, j, o, text.number()


def test_the_text_is_canonical_and_says_what_it_is(tmp_path: Path) -> None:
    om.solve(line(om.MetricPrivacy("ln 3", TABLE))).save(tmp_path / "d.json")
    command = ["export", str(tmp_path / "d.json"), "--format", "checked", "-o"]
    for name in ("a", "b"):
        assert main([*command, str(tmp_path / name)]) == 0
    text = (tmp_path / "a").read_text()
    assert text == (tmp_path / "b").read_text()
    design, digest = read_with_digest(tmp_path / "d.json")
    assert text == checked_text(design, digest)
    assert f"design {digest}\n" in text
    assert "constraints[0]: ε = ln 3" in text
    body = text.split("\nsize ")[1]
    assert not any("." in word for word in body.split())


ONE, OTHER = [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (om.DistributionPrivacy(0.1, [(ONE, OTHER)], divergence="kl"), "'divergence'"),
        (om.RenyiPrivacy(2.0, 0.5), "'divergence'"),
        (om.MutualInformation(0.1), "'information'"),
        (om.MaximalLeakage(0.5), "a leakage of 0.5, which is no fraction"),
        (om.GainLeakage("ln 2"), "a leakage of ln 2, which is no fraction"),
        (om.DistortionPrivacy("1/5 ln 2", TABLE), "which is no fraction"),
        (om.LossBound("ln 2"), "which is no fraction"),
        (om.DifferentialPrivacy(1.0, delta="1/20 ln 2"), "which is no fraction"),
    ],
)
def test_what_is_not_covered_has_its_name(constraint: om.Constraint, words: str) -> None:
    design = om.solve(line(constraint))
    with pytest.raises(ProblemError, match="the proved checker does not cover") as caught:
        checked_text(design, "sha256:0")
    assert words in str(caught.value)
    assert caught.value.where == "constraints[0]"


def test_nothing_feasible_is_not_covered() -> None:
    limits = [om.DifferentialPrivacy(0.1), om.LossBound(0.01)]
    design = om.solve(line(*limits))
    assert design.status == "infeasible"
    with pytest.raises(ProblemError, match="that no mechanism exists"):
        checked_text(design, "sha256:0")


def test_a_single_secret_and_a_bound_of_nothing() -> None:
    """No pairs at all: the bound is what every mechanism costs."""
    alone = om.Problem(om.Prior(om.Domain.range(1), [1.0]), om.distances.matrix(np.zeros((1, 1))))
    text = checked_text(om.solve(alone), "sha256:0")
    assert "\ncost 0 1\nleast 0 1\nproof\n" in text
    assert "promises 0\n" in text
