"""Two versions of a design: sums over all pairs of reports written here, and the commands."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_leakage import composition

import optmech as om
from optmech.cli.main import main
from optmech.exact.numerators import Numerators

E = om.distances.euclidean()


def drawn(rng: np.random.Generator, n: int, m: int, bits: int = 6) -> om.Mechanism:
    """Whole numbers over 2^6, some of them zero for all."""
    rows = []
    for _ in range(n):
        row = rng.multinomial(2**bits - m, np.ones(m) / m) + 1
        rows.append(tuple(int(v) for v in row))
    places = om.Domain(range(n), rng.uniform(0, 2, (n, 2)))
    return om.Mechanism.of(places, om.Domain(range(m)), Numerators(bits, tuple(rows)))


def rows_of(m: om.Mechanism) -> list[list[Fraction]]:
    assert isinstance(m.exact, Numerators)
    return [[Fraction(v, 1 << m.exact.bits) for v in row] for row in m.exact.rows]


def product_of(a: om.Mechanism, b: om.Mechanism) -> list[list[Fraction]]:
    """p(o|s) p'(o'|s) for all pairs of reports."""
    return [[x * y for x, y in product(p, q)] for p, q in zip(rows_of(a), rows_of(b), strict=True)]


@pytest.mark.parametrize("seed", range(4))
def test_both_reports_by_all_their_pairs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    a = drawn(rng, 4, 3)
    b = om.Mechanism.of(a.secrets, om.Domain(range(5)), drawn(rng, 4, 5).exact)
    both, pairs = om.leakage.parallel(a, b), product_of(a, b)
    worst = Fraction(1)
    for s, t in product(range(4), repeat=2):
        ratio = max(x / y for x, y in zip(pairs[s], pairs[t], strict=True))
        worst = max(worst, ratio)
        found = both.epsilon_between(s, t)
        assert found.log_of == ratio
        assert both.epsilons[s, t] == pytest.approx(math.log(ratio), abs=1e-12)
    assert both.epsilon.log_of == worst
    s, t = both.worst
    assert both.epsilon_between(s, t).log_of == worst
    prior = om.Prior(a.secrets, [1, 2, 3, 2])
    weights = [Fraction(k, 8) for k in (1, 2, 3, 2)]
    earned = sum(max(w * p for w, p in zip(weights, column, strict=True))
                 for column in zip(*pairs, strict=True))  # fmt: skip
    found = both.vulnerability(prior)
    assert Fraction(found.lower) <= earned <= Fraction(found.upper)
    assert found.width <= 1e-15
    d = E(a.secrets, a.secrets)
    err = sum(
        min(
            sum(Fraction(x) * w * p for x, w, p in zip(row, weights, column, strict=True))
            for row in d.tolist()
        )
        for column in zip(*pairs, strict=True)
    )
    exact = both.error(prior, E)
    assert Fraction(exact.lower) <= err <= Fraction(exact.upper)
    monkeypatch.setattr(composition, "_PRODUCTS", 0)
    rough = both.error(prior, E)
    assert Fraction(rough.lower) <= err <= Fraction(rough.upper)
    assert 0 < rough.width <= 1e-13
    gain = rng.normal(size=(3, 4))
    bounds = both.vulnerability(prior, gain)
    monkeypatch.undo()
    sharp = both.vulnerability(prior, gain)
    assert bounds.lower <= sharp.lower <= sharp.upper <= bounds.upper


def test_the_same_mechanism_twice_is_two_reports() -> None:
    m = drawn(np.random.default_rng(9), 4, 4)
    prior = om.Prior(m.secrets, [1, 2, 3, 2])
    both, twice = om.leakage.parallel(m, m), om.leakage.repeated(m, 2)
    assert float(both.epsilon) == pytest.approx(float(twice.epsilon), rel=1e-15)
    assert both.vulnerability(prior) == twice.vulnerability(prior)
    assert both.error(prior, E) == twice.error(prior, E)


def test_worst_pairs_of_two_mechanisms_need_not_agree() -> None:
    """ln 3 of a and b, and ln 2 of a and c: each pair has at most 3 by both, none 3 · 2."""
    places = om.Domain("abc")
    one = om.Mechanism(places, om.Domain(range(2)), [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]])
    other = om.Mechanism(places, om.Domain(range(2)), [[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]])
    both = om.leakage.parallel(one, other)
    assert both.epsilon.log_of == 3
    assert both.epsilon_between("a", "c").log_of == Fraction(3, 2) * 2
    assert both.epsilon_between("a", "b").log_of == 3
    assert float(both.epsilon) < math.log(3) + math.log(2)
    silent = om.Mechanism(places, om.Domain(range(2)), [[1, 0], [0.5, 0.5], [0.5, 0.5]])
    assert om.leakage.parallel(one, silent).epsilon == math.inf
    assert om.leakage.parallel(one, silent).epsilon_between("a", "b") < math.inf
    with pytest.raises(om.ProblemError, match="has other secrets"):
        om.leakage.parallel(one, drawn(np.random.default_rng(0), 3, 2))


XY = [[0, 0], [1, 0], [0, 1], [1, 1], [2, 1]]


def town(n: int, weights: Any = None, labels: str = "abcde") -> om.Problem:
    places = om.Domain(labels[:n], XY[:n], "km")
    prior = om.Prior.uniform(places) if weights is None else om.Prior(places, weights)
    return om.Problem(prior, E, constraints=[om.MetricPrivacy("ln 3", E)])


def test_a_place_that_is_new(tmp_path: Path) -> None:
    old = om.solve(town(4))
    old.save(tmp_path / "old.json")
    new = om.redesign(tmp_path / "old.json", town(5))
    assert new.status == "optimal"
    both = om.leakage.versions(old.mechanism, new.mechanism)
    assert both.kept == tuple("abcd")
    assert (both.changed, both.added, both.removed) == ((), ("e",), ())
    assert both.most_changed is None
    assert float(both.together.epsilon) == pytest.approx(
        2 * float(om.measures.epsilon(old.mechanism))
    )
    assert both.together.epsilon_per(E) <= 2 * math.log(3) * (1 + 1e-12)
    digest = json.loads((tmp_path / "old.json").read_text())["digest"]
    assert new.problem.constraints[-1].rows.source == digest
    # from scratch all rows may change, and it is no worse
    assert om.solve(town(5)).loss <= new.loss + 1e-9


def test_a_prior_that_is_new_and_a_row_that_changes() -> None:
    old, asked = om.solve(town(4, [1, 2, 2, 3])), town(4, [3, 2, 2, 1])
    new = om.redesign(old, asked, free=["a", "c", "d"])
    assert new.status == "optimal"
    both = om.leakage.versions(old.mechanism, new.mechanism)
    assert both.kept == ("b",)
    assert om.solve(asked).loss <= new.loss + 1e-9
    assert new.loss < om.measures.expected_loss(old.mechanism, asked.prior, E) - 1e-4
    label = both.most_changed
    before = rows_of(old.mechanism)[old.problem.secrets.index(label)]
    after = rows_of(new.mechanism)[new.problem.secrets.index(label)]
    change = both.change(label)
    assert change.variation.factor == sum(
        (max(x - y, Fraction(0)) for x, y in zip(before, after, strict=True)), Fraction(0)
    )
    ratios = [max(x / y, y / x) for x, y in zip(before, after, strict=True) if x and y]
    assert change.epsilon.log_of == max(ratios)
    assert both.change("b") == (0.0, 0.0)


def test_reports_of_a_place_that_was_removed_stay() -> None:
    old = om.solve(town(4))
    new = om.redesign(old, town(3), free=["a"])
    assert new.status == "optimal"
    assert set(new.problem.observables.labels) == set("abcd")
    both = om.leakage.versions(old.mechanism, new.mechanism)
    assert both.removed == ("d",)
    assert set(both.kept) >= {"b", "c"}


def test_a_place_that_moved_is_designed_anew() -> None:
    old = om.solve(town(4))
    moved = om.Domain("abcd", [[0, 0], [1, 0], [0, 1], [1.5, 1]], "km")
    asked = om.Problem(om.Prior.uniform(moved), E, constraints=[om.MetricPrivacy("ln 3", E)])
    new = om.redesign(old, asked)
    assert new.problem.constraints[-1].held(new.problem.space)[0] == [0, 1, 2]


def test_what_cannot_be_meant(tmp_path: Path) -> None:
    old = om.solve(town(4))
    cases: list[tuple[Any, str]] = [
        (lambda: om.redesign(old, town(4)), "all 4 rows are kept"),
        (lambda: om.redesign(old, town(4), free=["x"]), "free: there is no"),
        (lambda: om.redesign(old, town(5), keep=["e"]), "no secret of the old design"),
        (lambda: om.redesign(old, town(5), keep=["a"], free=["b"]), "together with keep"),
        (lambda: om.redesign(old, town(5, labels="vwxyz")), "no secret of the problem is one of"),
        (lambda: om.redesign(old, old), "is not a Problem"),
        (lambda: om.redesign(town(4), town(5)), "is not a Design"),
        (lambda: om.redesign(tmp_path / "none.json", town(5)), "none.json"),
    ]
    for make, words in cases:
        with pytest.raises(om.ProblemError, match=words):
            make()
    other = town(4, labels="vwxy")
    with pytest.raises(om.ProblemError, match="no secret in common"):
        om.leakage.versions(old.mechanism, om.solve(other).mechanism)


TOML = """
format = 1
prior = "uniform"
loss = "euclidean"

[secrets]
kind = "points"
labels = {labels}
points = {points}
unit = "km"

[[constraints]]
kind = "metric_privacy"
epsilon = "ln 3"
distance = "euclidean"
"""


def toml(path: Path, n: int) -> str:
    path.write_text(TOML.format(labels=json.dumps(list("abcde"[:n])), points=json.dumps(XY[:n])))
    return str(path)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = toml(tmp_path / "old.toml", 4), toml(tmp_path / "new.toml", 5)
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    assert main(["solve", before, "-o", old, "-q"]) == 0
    assert main(["redesign", old, after, "-o", new, "-q"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "rows that are the same in both 4 (a, b, c, d)" in shown
    assert "added 1 (e)" in shown
    assert main(["check", new]) == 0
    assert main(["compare", old, new]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "rows that are the same in both 4 (a, b, c, d)" in shown
    assert main(["redesign", old, after, "--free", "d", "-q", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["kept"] == ["a", "b", "c"]
    assert found["versions"]["both_epsilon"] <= 2 * found["versions"]["old_epsilon"] + 1e-9
    assert found["versions"]["both_error"] <= found["versions"]["new_error"] + 1e-12
    assert main(["redesign", old, before, "-q"]) == 2
    assert "nothing is left to design" in capsys.readouterr().err
    assert main(["redesign", old, after, "-o", old, "-q"]) == 2
    capsys.readouterr()
    assert main(["compare", old, old, "--json"]) == 0
    together = json.loads(capsys.readouterr().out)["together"]
    assert together["kept"] == list("abcd")
    assert together["both_epsilon"] == pytest.approx(2 * together["old_epsilon"])


def test_a_redesign_without_room_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The new place is 1 from four that are 2 from each other and nearly tell the truth."""
    star = 2.0 * (1 - np.eye(4))
    rows = np.full((4, 4), 5 / 32) + np.eye(4) * 12 / 32
    table = ", ".join(str([float(v) for v in row]) for row in star)
    text = """
format = 1
prior = "uniform"
loss = "hamming"
[secrets]
kind = "labels"
labels = LABELS
[[constraints]]
kind = "metric_privacy"
epsilon = "ln 2"
distance = { kind = "matrix", values = MATRIX }
"""
    before, after = tmp_path / "old.toml", tmp_path / "new.toml"
    before.write_text(text.replace("LABELS", '["a","b","c","d"]').replace("MATRIX", f"[{table}]"))
    wide = np.ones((5, 5)) - np.eye(5)
    wide[:4, :4] = star
    table = ", ".join(str([float(v) for v in row]) for row in wide)
    after.write_text(
        text.replace("LABELS", '["a","b","c","d","x"]').replace("MATRIX", f"[{table}]")
    )
    np.savetxt(tmp_path / "m.csv", rows, delimiter=",")
    old = str(tmp_path / "old.json")
    argv = ["adopt", str(tmp_path / "m.csv"), "--problem", str(before), "-o", old]
    assert main(argv) == 0
    capsys.readouterr()
    assert main(["redesign", old, str(after), "-q"]) == 3
    error = capsys.readouterr().err
    assert "cannot hold together" in error
    assert "--free" in error


def test_the_rows_that_devices_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Packed, designed anew beside the packed rows, and packed again: the same numbers."""
    before, after = toml(tmp_path / "old.toml", 4), toml(tmp_path / "new.toml", 5)
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    city, town_ = str(tmp_path / "city.omm"), str(tmp_path / "town.omm")
    assert main(["solve", before, "-o", old, "-q"]) == 0
    assert main(["pack", old, "-o", city, "--bits", "24"]) == 0
    assert main(["redesign", city, after, "--free", "d", "-o", new, "-q"]) == 0
    assert main(["pack", new, "-o", town_, "--bits", "24"]) == 0
    capsys.readouterr()
    first, second = om.devices.load_packed(city), om.devices.load_packed(town_)
    found = om.leakage.versions(first, second)
    assert set(found.kept) >= set("abc")
    assert found.added == ("e",)
    kept = om.Design.load(new).problem.constraints[-1]
    assert kept.rows.source == f"sha256:{first.digest.hex()}"
    assert main(["check", town_, new]) == 0
    # the design's own rows have more digits
    assert main(["redesign", old, after, "-o", new, "-q"]) == 0
    assert main(["pack", new, "-o", town_, "--bits", "24"]) == 2
    assert "24 bits cannot keep" in capsys.readouterr().err


def test_the_largest_ratio_among_many_that_floats_hold_for_equal() -> None:
    n, one = 40, 1 << 60
    other = one // (2 * n)
    rows = [[other] * n for _ in range(n)]
    for s, row in enumerate(rows):
        row[s] += one - n * other
    rows[-1][-2] -= 1
    rows[-1][-1] += 1
    places = om.Domain(range(n))
    m = om.Mechanism.of(places, places, Numerators(60, tuple(map(tuple, rows))))
    both = om.leakage.parallel(m, m)
    worst = Fraction(rows[0][0], other - 1) ** 2
    assert both.worst == (n - 2, n - 1)
    assert both.epsilon.log_of == worst  # type: ignore[attr-defined]


def test_versions_refuse_what_they_cannot_compare() -> None:
    domain = om.Domain("ab")
    design = om.solve(om.Problem(om.Prior.uniform(domain), om.distances.hamming()))
    m = design.mechanism
    for compare in (om.leakage.versions, om.leakage.parallel):
        assert compare(design, m) is not None  # a design counts as its mechanism
        for pair in ((None, m), (m, None), (design, design.problem)):
            with pytest.raises(om.ProblemError, match="is not a Mechanism"):
                compare(*pair)
    with pytest.raises(om.ProblemError, match="no secret of both"):
        om.leakage.versions(m, m).change("c")


def test_reports_of_one_label_at_two_places_are_not_one() -> None:
    """Rows that are kept would report other places by the same names."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    prior = om.Prior.uniform(om.Domain("abc", points))
    stated = [om.MetricPrivacy(1, E)]
    old = om.solve(om.Problem(prior, E, constraints=stated))
    moved = om.Problem(prior, E, om.Domain("abc", points[::-1]), constraints=stated)
    with pytest.raises(om.ProblemError, match="report a, which is another place there"):
        om.redesign(old, moved, free=["c"])
    # labels that no row reports matter to nobody
    wide = om.Domain("abcd", np.vstack([points, [[9.0, 9.0]]]))
    again = om.redesign(old, om.Problem(prior, E, wide, constraints=stated), free=["c"])
    assert again.status == "optimal"


@pytest.mark.parametrize("name", ["keep", "free"])
@pytest.mark.parametrize("labels", [5, "ab", {"a"}])
def test_labels_are_a_list(name: str, labels: Any) -> None:
    prior = om.Prior.uniform(om.Domain("ab"))
    problem = om.Problem(prior, om.distances.hamming())
    old = om.solve(problem)
    with pytest.raises(om.ProblemError, match="not a list of labels"):
        om.redesign(old, problem, **{name: labels})
