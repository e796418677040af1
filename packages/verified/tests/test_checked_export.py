"""Designs as whole numbers for the proved checker, read back by a few lines of Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from optmech_verified.file import checked_text

import optmech as om
from optmech.cli.main import main
from optmech.designs.file import read_with_digest
from optmech.errors import ProblemError

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
        (om.constraints.RenyiPrivacy(2.0, 0.5), "'divergence'"),
        (om.constraints.MutualInformation(0.1), "'information'"),
        (om.constraints.MaximalLeakage(0.5), "a leakage of 0.5, which is no fraction"),
        (om.constraints.GainLeakage("ln 2"), "a leakage of ln 2, which is no fraction"),
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


def test_nothing_feasible_is_stated_with_what_contradicts_itself() -> None:
    """The items add up to more than 0, evaluated here with floats for powers of e."""
    design = om.solve(line(om.DifferentialPrivacy(0.1), om.LossBound(0.01)))
    assert design.status == "infeasible"
    text = Text(checked_text(design, "sha256:0"))
    text.expect("size", "3", "3", "infeasible", "promises", "2", "ratios", "rate")
    rate = float(text.fraction())
    text.expect("plain", "distances")
    apart = text.table(3, 3, text.number())
    assert apart == [[None if s == t else 1 for t in range(3)] for s in range(3)]
    text.expect("window", "all", "mean", "most")
    most = text.fraction()
    assert most == Fraction(0.01)
    text.expect("costs")
    bits = text.number()
    costs = text.table(3, 3, bits)
    text.expect("proof", "items")
    terms = [[0.0] * 3 for _ in range(3)]
    for i, j, o, value in items(text, text.number()):
        terms[i][o] += value * 2.0**-576
        terms[j][o] -= value * 2.0**-576 * math.exp(rate)
    text.expect("items", "1")
    ((_, _, _, value),) = items(text, 1)
    price = float(Fraction(value * most.denominator << bits, 2**768))
    total = -price * float(most)
    total += sum(
        min(own + price * float(c or 0) for own, c in zip(row, costs[s], strict=True))
        for s, row in enumerate(terms)
    )
    text.expect("end")
    assert total > 1e-3


def test_nothing_feasible_without_multipliers_has_its_name() -> None:
    closed = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    design = om.solve(line(om.DifferentialPrivacy(0.1), om.Support(closed)))
    assert design.status == "infeasible"
    with pytest.raises(ProblemError, match="a proof without multipliers that nothing is feasible"):
        checked_text(design, "sha256:0")


CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1.0]])


def square(places: np.ndarray, mesh: om.Mesh, unit: str = "") -> om.Design:
    near = om.distances.euclidean() if mesh.coordinates == "plane" else om.distances.haversine()
    domain = om.Domain(range(len(places)), places, coordinates=mesh.coordinates)
    prior = om.Prior.uniform(domain)
    limits = [om.MetricPrivacy("1/2", near, everywhere=mesh)]
    return om.solve(om.Problem(prior, near, constraints=limits))


def test_every_point_is_the_mesh_and_the_problem_over_its_places() -> None:
    mesh = om.Mesh.grid((0, 0, 1, 1), width=1)
    middle = np.array([[0, 0], [1, 0], [0.5, 0.5]])
    design = square(middle, mesh)
    text = checked_text(design, "sha256:0")
    words = text.split("\neverywhere\n")[1].split()
    assert words[:4] == ["rate", "1", "2", "plain"]
    one = 1 << int(words[7])
    assert words[4:10] == ["degree", "1", "coordinates", words[7], "triangles", "2"]
    corner = {v: f"{one * int(x)} {one * int(y)}" for v, (x, y) in enumerate(mesh.vertices)}
    for k, own in enumerate(mesh.triangles.tolist()):
        expected = [*" ".join(corner[v] for v in own).split(), *map(str, own)]
        assert words[10 + 9 * k : 19 + 9 * k] == expected
    assert text.endswith(f"places\n0 0\n{one} 0\n{one // 2} {one // 2}\nend\n")
    parsed = Text(text)
    parsed.expect("size", "3", "3", "matrix")
    found = parsed.table(3, 3, parsed.number())
    region = design.region
    for row, place in zip(found, middle.tolist(), strict=True):
        near = region.at([place])[0]
        assert np.array([float(v or 0) for v in row]) == pytest.approx(near, abs=1e-12)
    lines = text.split("\n")
    (cost,) = (line.split() for line in lines if line.startswith("cost "))
    (least,) = (line.split() for line in lines if line.startswith("least "))
    assert Fraction(int(cost[1]), int(cost[2])) == Fraction(design.loss)
    assert Fraction(int(least[1]), int(least[2])) == Fraction(design.lower_bound)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (
            lambda: square(
                CORNERS / 100,
                om.Mesh.grid((0, 0, 0.01, 0.01), width=0.6, coordinates="lonlat"),
            ),
            "a region in degrees",
        ),
        (
            lambda: square(CORNERS, om.Mesh.grid((0, 0, 3, 1), width=3)),
            "places whose weights on the mesh are no binary fractions",
        ),
    ],
)
def test_regions_that_are_not_covered_have_their_names(design, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ProblemError, match=words):
        checked_text(design(), "sha256:0")


def test_every_point_of_a_line_is_not_covered() -> None:
    mesh = om.Mesh.line(0, 2, 3)
    limits = [om.MetricPrivacy("1/2", everywhere=mesh)]
    design = om.solve(
        om.Problem(om.Prior.uniform(mesh.domain), om.distances.euclidean(), constraints=limits)
    )
    with pytest.raises(ProblemError, match="a promise at every point of a line or of roads"):
        checked_text(design, "sha256:0")


def test_a_single_secret_and_a_bound_of_nothing() -> None:
    """No pairs at all: the bound is what every mechanism costs."""
    alone = om.Problem(om.Prior(om.Domain.range(1), [1.0]), om.distances.matrix(np.zeros((1, 1))))
    text = checked_text(om.solve(alone), "sha256:0")
    assert "\ncost 0 1\nleast 0 1\nproof\n" in text
    assert "promises 0\n" in text
