"""Linear inequalities and log ratios of an own making: closed forms, files, words, both judges."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
import scipy.sparse as sp
from optmech_audit import constraints, inequalities
from optmech_audit.numbers import Real
from scipy.optimize import linprog

import optmech as om
from optmech.certificate import check_exact
from optmech.exact.numerators import Numerators
from optmech.files import load_problem
from optmech.reading.sealed import seal
from optmech.show.words import describe

H = om.distances.hamming()
FOUR = om.Prior(om.Domain("abcd"), [0.4, 0.3, 0.2, 0.1])


def solved(*stated: object, prior: om.Prior = FOUR, **options: object) -> om.Design:
    return om.solve(om.Problem(prior, H, constraints=list(stated), **options))


def test_persuasion_leads_to_the_published_optimum() -> None:
    """Kamenica and Gentzkow: with probability mu < 1/2 of guilt, 2 mu are convicted."""
    state, act = om.Domain("ig"), om.Domain("ac")
    for mu in (0.1, 0.3, 0.45):
        prior = om.Prior(state, [1 - mu, mu])
        gain = np.eye(2) * prior.weights[:, None]
        obey = om.Linear([gain - gain[:, ::-1]], lower=0, per="report")
        problem = om.Problem(prior, np.array([[1, 0], [1, 0]]), act, constraints=[obey])
        assert om.solve(problem).loss == pytest.approx(1 - 2 * mu, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_utility_optimised_randomised_response(epsilon: float) -> None:
    """Murakami and Kawamoto: protected answers stay with e^eps/(s + e^eps - 1), the others with
    (e^eps - 1)/(s + e^eps - 1); for small eps one protected report in the place of s is better."""
    s, n = 3, 5
    prior = om.Prior.uniform(om.Domain(range(n)))
    mask = np.eye(n, dtype=int)
    mask[:, :s] = 1
    ratio = om.Ratios(np.full((n, n), epsilon), reports=range(s))
    power = np.exp(epsilon)
    kept = max((j * power + (n - s) * (power - 1)) / (j + power - 1) / n for j in (1, s))
    loss = solved(ratio, om.Support(mask), prior=prior).loss
    assert loss == pytest.approx(1 - kept, abs=1e-7)


def test_labels_sparse_arrays_and_texts_state_the_same() -> None:
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    dense = np.array([[0.5, 0, 0, -1], [0, 2, 0, 0], [0, 0, 0.25, 0], [1, 0, 0, 0]])
    order = ["c", "a", "d", "b"]
    at = ["abcd".index(label) for label in order]
    frame = pd.DataFrame(dense[np.ix_(at, at)], index=order, columns=order)
    array = xr.DataArray(
        np.stack([frame.to_numpy(), 2 * frame.to_numpy()]),
        dims=("k", "s", "o"),
        coords={"s": order, "o": order},
    )
    texts = [[str(Fraction(v)) for v in row] for row in dense.tolist()]
    one = om.Problem(FOUR, H, constraints=[om.Linear(dense, upper=0.5)])
    for given in (frame, sp.coo_array(dense), texts):
        assert om.Problem(FOUR, H, constraints=[om.Linear(given, upper=0.5)]) == one
    both = om.Linear(np.stack([dense, 2 * dense]), upper=[0.5, 1])
    labelled = om.Linear(array, upper=[0.5, 1])
    problems = [om.Problem(FOUR, H, constraints=[c]) for c in (both, labelled)]
    assert problems[0] == problems[1]
    with pytest.raises(om.ProblemError, match="weights"):
        om.Problem(FOUR, H, constraints=[om.Linear(frame.rename(columns={"a": "z"}), upper=1)])
    limits = np.where(np.eye(4) > 0, 0, np.inf)
    limits[0, 1] = 0.5
    sparse = om.Ratios(sp.coo_array(([0.5], ([0], [1])), shape=(4, 4)))
    kinds = [om.Problem(FOUR, H, constraints=[c]).statement for c in (om.Ratios(limits), sparse)]
    tables = [statement.families[0].table for statement in kinds]
    assert np.array_equal(*tables)


def test_equalities_hold_within_the_tolerance_that_is_stated() -> None:
    stated = om.Linear([1, 0, 2, 0], equal="1/3", per="secret", tolerance="1/1000000000000")
    design = solved(stated, om.DifferentialPrivacy(1))
    row = design.exact.rows[0]
    value = Fraction(row[0] + 2 * row[2], 1 << design.exact.bits)
    assert abs(value - Fraction(1, 3)) <= Fraction(2, 10**12)
    assert design.status == "optimal"
    equal = om.Ratios([0, 0], of=[[1, 1, 0, 0], [0, 0, 1, 1]], to=[[0, 0, 1, 1], [1, 1, 0, 0]])
    rows = np.array(solved(equal, om.DifferentialPrivacy(1)).exact.rows, dtype=object)
    assert (rows[0] + rows[1] == rows[2] + rows[3]).all()


@pytest.mark.parametrize("seed", range(40))
def test_both_judges_decide_alike(seed: int) -> None:
    """Matrices of many bits, and limits a unit of these from where the sum is."""
    rng = np.random.default_rng(seed)
    bits = int(rng.choice([3, 60, 400]))
    cut = [sorted(int.from_bytes(rng.bytes(60)) % (2**bits + 1) for _ in "ab") for _ in "abc"]
    rows = tuple((a, b - a, 2**bits - b) for a, b in cut)
    logs = bool(rng.integers(2))
    weights = [
        [str(Fraction(int(v), 7)) if k else float(v) for k, v in enumerate(row)]
        for row in rng.integers(-3, 4, (3, 3))
    ]
    if logs:
        weights[1][1] = "1/2 ln 5"
    factor = [[Fraction(0) if "ln" in str(w) else Fraction(w) for w in row] for row in weights]
    total = sum(
        (w * Fraction(p, 2**bits) for ws, ps in zip(factor, rows, strict=True)
         for w, p in zip(ws, ps, strict=True)), Fraction(0),
    )  # fmt: skip
    if logs:
        _, high = Real(Fraction(1, 2), Fraction(5)).bounds(4 * bits + 64)
        total += high * Fraction(rows[1][1], 2**bits)
    problem = om.Prior.uniform(om.Domain("abc"))
    for step in (-1, 0, 1):
        limit = total + Fraction(step, 10**40)
        text = str(limit)
        if len(text) > 2000:
            limit = Fraction(round(limit * 2**900), 2**900) + Fraction(step, 2**890)
            text = str(limit)
        stated = om.Linear(weights, upper=text)
        made = om.Problem(problem, H, constraints=[stated])
        passed = all(c.passed for c in check_exact(made.statement, Numerators(bits, rows)))
        plain = {**stated.plain(made.space), "kind": "linear"}
        space = type("Space", (), {"n": 3, "m": 3, "say": lambda *_: None})()
        (family,) = constraints.linear(space, plain)
        try:
            family.check(inequalities.Mechanism(bits, [list(row) for row in rows]))
        except audit.Fault:
            assert not passed
        else:
            assert passed
        if not logs and limit == total + Fraction(step, 10**40):
            assert passed == (step >= 0)


def test_files_prove_themselves_in_another_process(tmp_path: Path) -> None:
    """A kind that is a function of this module, which no other process has."""

    def near(epsilon: object) -> object:
        def stated(space: object) -> object:
            labels = space.secrets.labels  # type: ignore[attr-defined]
            rows = [[epsilon if abs(a - b) == 1 else "inf" for b in labels] for a in labels]
            return [om.Ratios(rows, title="neighbours"), om.Linear(np.eye(4), upper=2.5)]

        return stated

    prior = om.Prior.uniform(om.Domain(range(4)))
    design = solved(near("ln 2"), prior=prior)
    path = tmp_path / "own.json"
    design.save(path)
    for command in (["optmech", "check"], ["optmech_audit"]):
        done = subprocess.run(
            [sys.executable, "-P", "-m", *command, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    loaded = om.load(path)
    assert loaded == design
    assert [c.title for c in loaded.problem.constraints] == ["neighbours", ""]
    # from the published closed form of one-sided steps nothing is known; from the definition it is
    rows = np.array(design.exact.rows, dtype=object)
    assert all(2 * a >= b for i in range(3) for a, b in zip(rows[i], rows[i + 1], strict=True))


def test_problem_files_read_arrays_inline_and_from_files(tmp_path: Path) -> None:
    weights = np.array([[0.5, -1, 0], [0, 0, 2], [1, 0, 0]])
    np.savez(tmp_path / "w.npz", other=np.eye(2), w=weights)
    np.save(tmp_path / "w.npy", weights)
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(weights))
    np.savetxt(tmp_path / "w.csv", weights, delimiter=",")
    inline = json.dumps(weights.tolist())
    head = 'format = 1\nprior = "uniform"\nloss = "hamming"\n[secrets]\nkind = "labels"\n'
    head += 'labels = ["a", "b", "c"]\n[[constraints]]\nkind = "linear"\nupper = 0.25\nweights = '
    read = []
    for given in (
        inline, '{ file = "w.npz", name = "w" }', '{ file = "w.npy" }', '{ file = "w.csv" }',
        '{ file = "sparse.npz" }',
    ):  # fmt: skip
        (tmp_path / "p.toml").write_text(head + given + "\n")
        read.append(load_problem(tmp_path / "p.toml"))
    assert all(problem == read[0] for problem in read)
    for given, words in (
        ('{ file = "w.npz" }', "2 arrays"), ('{ file = "w.npz", name = "z" }', "none 'z'.*'w'"),
        ('{ file = "no.npz" }', "no.npz"), ("3", "no array"),
        ('[["a"]]', "not a number"), ("[[1, 2], [3]]", "not a number"),
    ):  # fmt: skip
        (tmp_path / "p.toml").write_text(head + given + "\n")
        with pytest.raises(om.ProblemError, match=words):
            load_problem(tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: om.Linear(np.eye(4)), "linear"),
        (lambda: om.Linear(np.eye(4), upper=1, equal=1), "linear"),
        (lambda: om.Linear(np.eye(4), upper=[1, 2]), "upper"),
        (lambda: om.Linear([[np.nan]], upper=1), "weights[0][0]"),
        (lambda: om.Linear([["inf"]], upper=1), "weights[0][0]"),
        (lambda: om.Linear([["ln 0"]], upper=1), "weights[0][0]"),
        (lambda: om.Linear(np.eye(4), upper="lots"), "upper"),
        (lambda: om.Linear(np.eye(4), upper=1, title="x" * 201), "title"),
        (lambda: om.Linear(np.eye(4), upper=1.25, lower="5/4"), "upper"),
        (lambda: om.Linear(np.ones((2, 4, 4)), upper=[2, 1], lower=1), "upper"),
        (lambda: solved(om.Linear(np.full((4, 4), 1.7e308), upper=1)), "constraints[0].weights"),
        (lambda: solved(om.Linear(np.full((4, 4), 5e-324), upper=1)), "constraints[0].weights"),
        (lambda: om.Ratios(np.full((4, 4), -np.inf)), "log_ratio[0][0]"),
        (lambda: om.Linear(np.eye(4), equal=1, tolerance=0), "tolerance"),
        (lambda: om.Linear(np.eye(4), upper=1, per="row"), "per"),
        (lambda: solved(om.Linear(np.eye(3), upper=1)), "constraints[0].weights"),
        (lambda: om.Ratios([[0, -1], [1, 0]]), "log_ratio"),
        (lambda: om.Ratios([1], of=[[1, 0]]), "ratios"),
        (lambda: om.Ratios([1], of=[[1, 0]], to=[[1, 0], [0, 1]]), "to"),
        (lambda: solved(om.Ratios(np.ones((3, 3)))), "constraints[0].log_ratio"),
        (lambda: solved(om.Ratios(np.ones((4, 4)), reports=["z"])), "constraints[0].reports[0]"),
        (lambda: solved(om.Ratios([1], of=[[1, 0]], to=[[1, 0]])), "constraints[0].of[0]"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: object, where: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.mark.parametrize("limit", ["'lots'", "nan", "true", "2020-01-01", "[1, 'lots']", "[]"])
def test_a_limit_that_is_none_is_told_once_at_its_place(tmp_path: Path, limit: str) -> None:
    (tmp_path / "p.toml").write_text(
        'format = 1\nprior = "uniform"\nloss = "hamming"\n[secrets]\nkind = "labels"\n'
        'labels = ["a", "b"]\n[[constraints]]\nkind = "linear"\nweights = [[1, 0], [0, 1]]\n'
        f"upper = {limit}\n"
    )
    with pytest.raises(om.ProblemError) as caught:
        load_problem(tmp_path / "p.toml")
    place = "upper[1]" if "1, " in limit else "upper"
    assert caught.value.where.endswith(f"constraints[0].{place}")
    assert ">= 0" not in str(caught.value)


def test_limits_that_are_the_same_are_told_to_be_an_equality() -> None:
    with pytest.raises(om.ProblemError, match=r"inequality 1 .*Give it as equal"):
        om.Linear(np.ones((2, 4, 4)), upper=[2, "1/3"], lower=[1, "1/3"])
    assert solved(om.Linear(np.eye(4), equal="5/4")).status == "optimal"


def test_what_somebody_called_is_said_once() -> None:
    obey = om.Linear(np.eye(4), upper=2, title="obedience")
    pair = om.Ratios([[0, 1], [np.inf, 0]], title="")
    coin = om.Prior.uniform(om.Domain("ab"))
    for problem, said in (
        (om.Problem(FOUR, H, constraints=[obey]), "obedience: an inequality linear in the"),
        (om.Problem(coin, H, constraints=[pair]), "ratios: log ratios of its own for 1 pair"),
    ):
        ((_, words),) = [row for row in describe(problem) if row[0] == "constraint 0"]
        assert words.startswith(said)


def test_files_of_a_kind_that_only_a_session_knows_are_warned_of(tmp_path: Path) -> None:
    """In a process of its own: a kind stays registered."""
    script = f"""
import warnings, numpy as np, optmech as om
from optmech.base.read_only import record
from optmech.problem.constraint import constraint
@constraint("mine")
@record
class Mine(om.constraints.AdditiveCapacity):
    pass
coin = om.Prior.uniform(om.Domain("ab"))
for own in (Mine("1/2"), om.constraints.AdditiveCapacity("1/2")):
    design = om.solve(om.Problem(coin, om.distances.hamming(), constraints=[own]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        design.save({str(tmp_path / "d.json")!r})
    print([str(one.message)[:40] for one in told])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[\"the kind 'mine' is known in this session\"]", "[]"]


@pytest.mark.parametrize(
    ("key", "value"), [("reports", [99]), ("log_ratio", [1]), ("log_ratio", {"shape": [4, 4]})]
)
def test_files_that_were_written_wrong_are_refused_in_words(
    tmp_path: Path, key: str, value: object
) -> None:
    path = tmp_path / "d.json"
    solved(om.Ratios(np.ones((4, 4)), reports=["a"])).save(path)
    body = json.loads(path.read_text())
    body["problem"]["constraints"][0][key] = value
    del body["digest"]
    path.write_bytes(seal(json.dumps(body).encode()))
    with pytest.raises(om.errors.VerificationError) as caught:
        om.check(path)
    assert "Error" not in str(caught.value)


@pytest.mark.parametrize("seed", range(0, 10, 2))
def test_rows_that_ratios_of_several_reports_make_equal(seed: int) -> None:
    """Row d is at most row a in every report, of one by way of row b: they are equal, and beside
    linear inequalities no mechanism is strictly inside."""
    rng, n, m = np.random.default_rng(seed), 4, 3 + seed % 4 // 2
    limits = np.where(rng.random((n, n, m)) < 0.5, np.inf, rng.uniform(0, 1, (n, n, m)))
    limits[3, 0, : m - 1] = limits[3, 1, m - 1] = limits[1, 0, m - 1] = limits[2, 3, 0] = 0
    loss, weights = rng.uniform(size=(n, m)), rng.normal(size=(2, n, m))
    upper = (weights * rng.dirichlet(np.ones(m))).sum(axis=(1, 2)) + rng.uniform(0, 0.2, 2)
    rows, most = [own.ravel() for own in weights], upper.tolist()
    for i, j, o in zip(*np.nonzero(np.isfinite(limits)), strict=True):
        if i != j:
            row = np.zeros((n, m))
            row[i, o], row[j, o] = 1, -np.exp(limits[i, j, o])
            rows.append(row.ravel())
            most.append(0.0)
    cost = (FOUR.weights[:, None] * loss).ravel()
    sums = np.kron(np.eye(n), np.ones(m))
    least = linprog(cost, A_ub=rows, b_ub=most, A_eq=sums, b_eq=np.ones(n)).fun
    stated = [om.Ratios(limits), om.Linear(weights, upper=upper.tolist())]
    design = om.solve(om.Problem(FOUR, loss, om.Domain(range(m)), constraints=stated))
    assert design.status == "optimal"
    assert design.loss == pytest.approx(least, abs=1e-7)
    assert np.array_equal(design.mechanism.matrix[3], design.mechanism.matrix[0])


def test_prices_are_derivatives() -> None:
    weights = np.random.default_rng(0).normal(size=(4, 4))
    step = 1e-4

    def design(more: float) -> om.Design:
        own = om.Linear(weights, upper=-0.5 + more)
        ratio = om.Ratios(np.full((4, 4), 2.0 * (1 + more)))
        return om.solve(om.Problem(FOUR, H, constraints=[own, ratio]), gap=1e-9)

    linear, ratio = om.prices.of_constraints(design(0))
    assert (linear.parameter, ratio.parameter) == ("upper", "log_ratio")
    both = (design(step).loss - design(-step).loss) / (2 * step)
    assert linear.rate + ratio.rate == pytest.approx(both, rel=1e-3)
