"""Noise for pairs of numbers: against a closed form, a plain linear program written here, sums over
a large square, and altered files."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from judged import refused_alike, verdicts
from optmech_noise.additive.planar_law import PlanarLaw, around, on_shell
from scipy.optimize import linprog

import optmech as om
from optmech.cli.main import main
from optmech.reading.sealed import seal

ASKED: dict[str, dict[str, Any]] = {
    "l1": {"epsilon": "ln 3", "norm": "l1"},
    "l2": {"epsilon": 2, "norm": "l2", "sensitivity": 2, "loss_norm": "l2"},
    "linf": {"epsilon": 2, "norm": "linf", "loss": "square", "loss_norm": "l1"},
    "delta": {"epsilon": 1, "delta": 0.01, "norm": "l1", "loss": "square", "loss_norm": "l2"},
    "threshold": {
        "epsilon": 1.5, "norm": "l2", "loss": "threshold", "width": 1, "loss_norm": "l2",
    },
    "table": {"epsilon": 2, "norm": "l1", "loss": [0, 1, 1.5, 4.0], "loss_norm": "linf"},
    "around": {
        "epsilon": 6, "delta": 0.05, "norm": "l1", "loss": [0.8, 1.2, 1.7, 0.4, 3.2],
        "loss_norm": "linf",
    },
}  # fmt: skip
SIZES = {
    "l1": lambda x, y: abs(x) + abs(y),
    "l2": math.hypot,
    "linf": lambda x, y: max(abs(x), abs(y)),
}


@pytest.fixture(scope="module")
def made() -> dict[str, om.noise.PlanarNoise]:
    return {name: om.noise.for_pairs(**asked) for name, asked in ASKED.items()}


def allowed(norm: str, steps: int) -> list[tuple[int, int]]:
    """All shifts but zero."""
    square = itertools.product(range(-steps, steps + 1), repeat=2)
    return [v for v in square if v != (0, 0) and SIZES[norm](*v) <= steps + 1e-12]


def cost_of(asked: dict[str, Any], x: int, y: int) -> float:
    """The loss of a place."""
    size = SIZES[asked.get("loss_norm", asked["norm"])](x, y)
    loss = asked.get("loss", "absolute")
    if loss == "threshold":
        return float(size > asked["width"])
    if isinstance(loss, list):
        known = loss[min(round(size), len(loss) - 1)]
        return known + max(0, round(size) - len(loss) + 1) * (loss[-1] - loss[-2])
    return size if loss == "absolute" else size**2


def grid(design: om.noise.PlanarNoise, far: int) -> np.ndarray:
    """z on the square |x|, |y| <= far."""
    ends = range(-far, far + 1)
    return np.array([[float(design.pmf(x, y)) for y in ends] for x in ends])


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_changes_in_l1_by_one_have_independent_geometric_noise(epsilon: float) -> None:
    """Both numbers get two-sided geometric noise: loss 4b/(1 - b²)."""
    design = om.noise.for_pairs(epsilon)
    b = math.exp(-epsilon)
    expected = 4 * b / (1 - b * b)
    assert design.lower_bound <= expected <= design.loss * (1 + 1e-12)
    assert design.gap <= 1e-6
    one = (1 - b) / (1 + b)
    for x, y in ((0, 0), (1, 0), (-2, 1), (3, -3)):
        assert float(design.pmf(x, y)) == pytest.approx(one**2 * b ** (abs(x) + abs(y)), rel=1e-5)


@pytest.mark.parametrize("name", ASKED)
def test_the_law_sums_to_one_and_is_as_private_as_it_says(
    made: dict[str, om.noise.PlanarNoise], name: str
) -> None:
    design, asked = made[name], ASKED[name]
    far = 45
    z = grid(design, far)
    assert z.sum() == pytest.approx(1, abs=1e-12)
    assert (z == z.T).all()
    assert (z == z[::-1]).all()
    rate, steps = float(design.epsilon), design.sensitivity
    worst = 0.0
    for x, y in allowed(asked["norm"], steps):
        kept = slice(steps, -steps)
        moved = np.roll(z, (-x, -y), (0, 1))[kept, kept]
        worst = max(worst, float(np.maximum(z[kept, kept] - math.exp(rate) * moved, 0).sum()))
    assert worst <= float(design.delta) + 1e-12
    ends = range(-far, far + 1)
    cost = np.array([[cost_of(asked, x, y) for y in ends] for x in ends])
    assert design.loss == pytest.approx(float((z * cost).sum()), rel=1e-6)
    assert design.gap <= 1e-4


@pytest.mark.parametrize("loss_norm", ["l1", "linf"])
def test_flat_tables_for_pairs_are_closed(loss_norm: str) -> None:
    """Losses that rise in steps, at ε and δ where tails hardly matter: the gap is what is asked
    for, and the loss that of the law, summed over a square."""
    rng = np.random.default_rng(8)
    for _ in range(4):
        table = [0.0, *np.cumsum(rng.uniform(0, 2, 4)).round(2).tolist()]
        asked = {"norm": "l1", "loss": table, "loss_norm": loss_norm}
        epsilon, delta = rng.choice(["3.19", "2", "4.5"]), rng.choice(["0.0042", "0.02"])
        design = om.noise.for_pairs(str(epsilon), str(delta), **asked)
        assert design.gap <= 1e-6
        ends = range(-40, 41)
        cost = np.array([[cost_of(asked, x, y) for y in ends] for x in ends])
        assert design.loss == pytest.approx(float((grid(design, 40) * cost).sum()), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "n"),
    [("l2", 7), ("linf", 6), ("delta", 9), ("threshold", 8), ("table", 7), ("around", 5)],
)
def test_the_least_loss_is_that_of_a_plain_program(
    made: dict[str, om.noise.PlanarNoise], name: str, n: int
) -> None:
    """On the square |x|, |y| <= n without symmetry or tails. What lies outside is bound by nothing
    and bears nothing, so that the optimum is one of fewer inequalities, and close."""
    asked, design = ASKED[name], made[name]
    wide = n + design.sensitivity
    places = {k: i for i, k in enumerate(itertools.product(range(-wide, wide + 1), repeat=2))}
    inner = [k for k in places if max(abs(k[0]), abs(k[1])) <= n]
    power, delta = math.exp(float(design.epsilon)), float(design.delta)
    entries: list[tuple[int, int, float]] = []
    upper: list[float] = []
    columns = len(places)
    for v in allowed(asked["norm"], design.sensitivity):
        start = columns
        for k in inner:
            entries += [(len(upper), places[k], 1.0),
                        (len(upper), places[k[0] + v[0], k[1] + v[1]], -power)]  # fmt: skip
            if delta:
                entries.append((len(upper), columns, -1.0))
                columns += 1
            upper.append(0.0)
        if delta:
            entries += [(len(upper), column, 1.0) for column in range(start, columns)]
            upper.append(delta)
    rows, across, values = zip(*entries, strict=True)
    matrix = sp.csr_matrix((values, (rows, across)), shape=(len(upper), columns))
    every = np.zeros((1, columns))
    every[0, : len(places)] = 1
    cost = np.zeros(columns)
    cost[: len(places)] = [cost_of(asked, *k) for k in places]
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        cost, A_ub=matrix, b_ub=upper, A_eq=every, b_eq=[1.0], method="highs", options=exact
    )
    assert found.fun <= design.loss * (1 + 1e-9)
    assert found.fun == pytest.approx(design.loss, rel=5e-3)


@pytest.mark.parametrize("epsilon", [1.2, 2])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_table_that_ends_flat_is_left_as_far_as_delta_allows(
    epsilon: float, delta: float, norm: str
) -> None:
    """The centre holds δ and its neighbours nothing, as they cost more than e^ε of it saves; all
    else is far out."""
    asked: dict[str, Any] = {"norm": norm, "loss_norm": norm}
    design = om.noise.for_pairs(epsilon, delta, loss=[1.48, 3.58, 2.03, 2.03], **asked)
    expected = 2.03 - delta * (2.03 - 1.48)
    assert design.loss == pytest.approx(expected, rel=1e-6)
    assert design.lower_bound <= expected * (1 + 1e-12) <= design.loss * (1 + 2e-12)
    assert design.gap <= 1e-6
    # nothing at all need be lost where the end is the cheapest
    low = om.noise.for_pairs(epsilon, delta, loss=[2.4, 2.36, 2.36], **asked)
    assert low.loss == pytest.approx(2.36, rel=1e-9)
    assert low.gap <= 1e-6


def test_known_noise_is_not_below_the_bound() -> None:
    """Independent geometric noise of rate ε/2 for changes by one in both numbers."""
    design = om.noise.for_pairs(1, norm="linf", loss_norm="l1")
    b = math.exp(-0.5)
    assert design.lower_bound < design.loss < 4 * b / (1 - b * b)


def test_shells_and_draws() -> None:
    """Every place of a shell once; draws with tails as often as stated."""
    for shape, count in (("l1", 4), ("linf", 8)):
        for m in (1, 2, 5):
            found = Counter(on_shell(shape, m, k) for k in range(around(shape) * m))
            assert len(found) == count * m == sum(found.values())
            assert all(SIZES[shape](*k) == m for k in found)
    # 1/2 at the centre, and tails of ratio 1/2 over all other places: 4 τ (1 - r)² Σ m r^(m-1)
    for shape, count in (("l1", 4), ("linf", 8)):
        law = PlanarLaw(shape, 0, 6, (64 - count * 4,), (4,), 1, 1)
        total = sum((law.at(x, y) for x in range(-34, 35) for y in range(-34, 35)), Fraction(0))
        assert 0 <= 1 - total < Fraction(1, 10**8)
        drawn = Counter(map(tuple, law.sample(20_000, seed=5).tolist()))
        for k in ((0, 0), (1, 0), (0, -1), (1, 1), (-1, 2), (3, 0), (-2, -2)):
            p = float(law.at(*k))
            assert abs(drawn[k] - 2e4 * p) < 5 * math.sqrt(2e4 * p) + 5


def test_draws_of_a_design(made: dict[str, om.noise.PlanarNoise]) -> None:
    design = made["l2"]
    drawn = Counter(map(tuple, design.sample(60_000, seed=2).tolist()))
    for x, y in itertools.product(range(-3, 4), repeat=2):
        p = float(design.pmf(x, y))
        assert abs(drawn[x, y] - 6e4 * p) < 5 * math.sqrt(6e4 * p) + 5
    assert design.sample().shape == (2,)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"epsilon": 1, "norm": "l3"}, "norm"),
        ({"epsilon": 1, "loss_norm": "l0"}, "loss_norm"),
        ({"epsilon": 1, "loss_norm": "l2", "loss": [0, 1, 2]}, "loss"),
        ({"epsilon": 1, "sensitivity": 41}, "sensitivity"),
        ({"epsilon": 0, "delta": 0.1}, "epsilon"),
        ({"epsilon": 1e-3}, "epsilon"),
        ({"epsilon": 0.02, "sensitivity": 20}, "epsilon"),
        ({"epsilon": 1, "delta": 1e-20}, "delta"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        om.noise.for_pairs(**arguments)
    assert caught.value.where == place


# ---------------------------------------------------------------- files
@pytest.fixture(scope="module")
def files(
    made: dict[str, om.noise.PlanarNoise], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("pairs") / "noise.json"
    out = {}
    for name, design in made.items():
        design.save(path)
        out[name] = path.read_bytes()
    return out


def test_honest_files_pass_both_and_come_back(files: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    for name, content in files.items():
        assert verdicts(content, path) == (True, True), name
        again = om.noise.PlanarNoise.load(path)
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == content
    with pytest.raises(om.ProblemError):
        om.noise.NoiseDesign.load(path)


def test_altered_files_are_judged_alike(files: dict[str, bytes], tmp_path: Path) -> None:
    assert refused_alike(files, 120, 11, tmp_path / "noise.json") > 60


@pytest.mark.parametrize(
    "which", ["epsilon", "sensitivity", "norm", "loss", "core", "values", "limit", "bound"]
)
def test_forgeries_that_would_pay_are_refused(
    files: dict[str, bytes], tmp_path: Path, which: str
) -> None:
    body = json.loads(files["delta" if which == "limit" else "l1"])
    del body["digest"]
    if which == "epsilon":
        body["epsilon"] = 1.09
    elif which == "sensitivity":
        body["sensitivity"] = 2
    elif which == "norm":
        body["norm"] = "l2"
    elif which == "loss":
        body["loss"]["norm"] = "linf"
    elif which == "core":
        core = body["law"]["core"]
        part = int(core[1], 16) // 4
        core[1], core[0] = f"{int(core[1], 16) - part:x}", f"{int(core[0], 16) + 4 * part:x}"
        body["claims"] |= {"lower_bound": 0.0, "status": "feasible"}
        from optmech_noise.additive.file import decode

        body["claims"]["loss"] = decode({"digest": "", **body}, "forged")[0].loss
    elif which == "values":
        for part in body["multipliers"]["shifts"]:
            part["values"] = [f"{int(v, 16) * 2:x}" for v in part["values"]]
    elif which == "limit":
        for part in body["multipliers"]["shifts"]:
            part["limit"] = "0"
    else:
        body["claims"]["lower_bound"] = body["claims"]["loss"]
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noise.json"
    asked = ["--epsilon", "2", "--dimensions", "2", "--norm", "linf", "-o", str(path)]
    assert main(["noise", *asked, "--picture", str(tmp_path / "noise.png")]) == 0
    assert "pairs that change by at most 1" in capsys.readouterr().out
    assert main(["check", str(path)]) == 0
    assert "pairs of whole numbers" in capsys.readouterr().err
    assert main(["sample", str(path), "7,9", "--seed", "1", "-n", "2"]) == 0
    drawn = [tuple(map(int, line.split(","))) for line in capsys.readouterr().out.split()]
    assert all(len(pair) == 2 and abs(pair[0] - 7) < 30 for pair in drawn)
    assert main(["sample", str(path), "7"]) == 2
    assert main(["noise", "--epsilon", "2", "--dimensions", "3"]) == 2
    assert main(["noise", "--epsilon", "2", "--norm", "l1"]) == 2
    design = om.noise.PlanarNoise.load(path)
    for send in (om.exchange.noise_to_scipy, om.exchange.noise_to_opendp):
        with pytest.raises(om.ProblemError):
            send(design)  # type: ignore[operator]
    with pytest.raises(om.ProblemError):
        om.exchange.write_noise_table(design, tmp_path / "noise.csv")  # type: ignore[arg-type]
