"""Files of noise: both checkers prove honest ones, and refuse altered ones alike."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from each import each
from judged import verdicts
from mutations import Way, altered, anywhere, change

import optmech as om
from optmech.cli.main import main
from optmech.exact.number import float_of
from optmech.reading.sealed import seal

Body = dict[str, Any]
ASKED: dict[str, dict[str, Any]] = {
    "geometric": {"epsilon": "ln 3"},
    "staircase": {"epsilon": 0.5, "sensitivity": 3, "loss": "square"},
    "finite": {"epsilon": 1, "delta": 0.01, "sensitivity": 2},
    "threshold": {"epsilon": 1, "delta": "1/1000", "loss": "threshold", "width": 2},
    "flat": {"epsilon": 0, "delta": 0.125},
    "table": {"epsilon": 2, "delta": 1e-6, "loss": [0, 1, 1.5, 4.0], "sensitivity": 2},
    "function": {"epsilon": 1.5, "loss": math.sqrt, "sensitivity": 2},
    "together": {"epsilon": 1.5, "for_releases": 3},
    "nothing": {"epsilon": 1, "delta": 1, "for_releases": 2},
    "renyi": {"bounds": ("3/2", 0.5), "sensitivity": 2},
    "pair": {"epsilon": 2, "delta": 0.01, "norm": "linf", "loss": [0, 1, 1.0]},
}
LINES = tuple(name for name in ASKED if name not in ("together", "nothing", "renyi", "pair"))
"""Those that ``falsehood`` knows how to compute again."""


def best(name: str) -> Any:
    """The noise that is asked for."""
    found: Any = {"renyi": om.noise.rdp, "pair": om.noise.for_pairs}.get(name, om.noise.optimal)
    return found(**ASKED[name])


def others() -> dict[str, bytes]:
    """Files of noise on the real line, and of noise under other bounds on divergences."""
    real = om.noise.real
    made = {
        "zcdp": om.noise.zcdp(0.5),
        "relative entropy": om.noise.rdp((1, 0.5)),
        "orders": om.noise.rdp([(2, 1), (3, 1.2)]),
        "budget": om.noise.least_divergence(2, 1.0),
        "real": real(epsilon=1),
        "real delta": real(epsilon="1/2", delta=0.01),
        "real renyi": om.noise.rdp((2, 1), cells=16),
        "real together": real(epsilon=1, delta=0.05, for_releases=2),
        "adds": om.noise.optimal(1, 0.01, support=(0, None), sensitivity=2),
        "sides": om.noise.optimal(1, 0.01, support=(-9, 9), loss=("absolute", [0, 3])),
        "curve": om.noise.optimal(curve=[(0, 0.2), (1, 0.05)], loss="square"),
        "real curve": real(curve=[(0, 0.25), (1, 0.05)], cells=4),
        "points": om.noise.radial(2, 0.05, cells=2, gap=0.5),
        "points of space": om.noise.radial(2, 0.1, 3, cells=2, gap=0.5, loss="absolute"),
        "rounded": om.noise.optimal(1, "1/20", sensitivity=4000, gap=0.05),
        "several": om.noise.optimal(2, 0.05, for_releases=2),
    }
    return {name: design.document() for name, design in made.items()}


def files(folder: Path) -> dict[str, bytes]:
    """A file of every sort of noise on whole numbers and pairs of them."""
    path, out = folder / "noise.json", {}
    for name in ASKED:
        best(name).save(path)
        out[name] = path.read_bytes()
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return files(tmp_path_factory.mktemp("noise"))


def test_honest_files_pass_both_and_come_back_the_same(
    made: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "noise.json"
    for name, content in made.items():
        assert verdicts(content, path) == (True, True), name
        fresh = best(name)
        again = type(fresh).load(path)
        assert again.law == fresh.law or again.stated == fresh.stated
        assert (again.loss, again.lower_bound) == (fresh.loss, fresh.lower_bound)
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == content


# ---------------------------------------------------------------- mutations
def _moved(rng: np.random.Generator, body: Body) -> str:
    """Probability moved between two places, the sum kept."""
    law = body["law"]
    window, *_ = (law[name] for name in ("window", "core", "masses", "balls") if name in law)
    i, j = (int(k) for k in rng.integers(1, max(2, len(window)), size=2))
    if i < len(window) and j < len(window):
        part = int(window[i], 16) >> int(rng.choice([0, 1, 30, 60]))
        window[i], window[j] = f"{int(window[i], 16) - part:x}", f"{int(window[j], 16) + part:x}"
    _recompute(body)
    return "moved"


def _tails(rng: np.random.Generator, body: Body) -> str:
    law = body["law"]
    law["ratio"] = (
        f"{max(0, int(law['ratio'], 16) + int(rng.choice([-1, 1, -(1 << 40), 1 << 40]))):x}"
    )
    if law["tails"] and rng.random() < 0.3:
        law["tails"] = law["tails"][::-1]
    _recompute(body)
    return "tails"


def _promise(rng: np.random.Generator, body: Body) -> str:
    which = int(rng.integers(3))
    if which == 0:
        body["epsilon"] = [0.0, 0.25, "ln 2", 0.999999, 3.0][int(rng.integers(5))]
    elif which == 1:
        body["delta"] = [0.0, 1e-9, 0.0099, 0.5, "1/3"][int(rng.integers(5))]
    else:
        body["sensitivity"] = int(rng.integers(1, 6))
    return f"promise {which}"


def _proof(rng: np.random.Generator, body: Body) -> str:
    """Larger multipliers, limits and tails of them, with the bound that would follow."""
    if "tangents" in body or "norm" in body or body["multipliers"] is None:
        return anywhere(rng, body)
    part = body["multipliers"]["shifts"][int(rng.integers(len(body["multipliers"]["shifts"])))]
    which = int(rng.integers(4))
    if which == 0:
        k = int(rng.integers(len(part["inner"])))
        part["inner"][k] = f"{int(part['inner'][k], 16) * 2 + 1:x}"
    elif which == 1:
        part["limit"] = f"{int(part['limit'], 16) >> 1:x}"
    elif which == 2:
        k = int(rng.integers(3))
        part["tail"][k] = f"{int(part['tail'][k], 16) + (1 << int(rng.integers(90))):x}"
    else:
        body["multipliers"]["bits"] += int(rng.choice([-1, 1]))
    return f"proof {which}"


def _claims(rng: np.random.Generator, body: Body) -> str:
    claims = body["claims"]
    which = int(rng.integers(6))
    if which == 5:
        body["seconds"] = [-1.0, -0.0, 0.0, 1e300, 1, "0"][int(rng.integers(6))]
        return "seconds"
    if which == 4:
        claims["status"] = str(rng.choice(["optimal", "feasible", "infeasible"]))
        return "status"
    if which == 0:
        claims["lower_bound"] *= float(rng.choice([0.0, 0.5, 1 - 1e-9, 1 + 1e-6, 2]))
    elif which == 1:
        claims["lower_bound"], claims["status"] = 0.0, "feasible"
    else:
        name = str(rng.choice(list(claims)))
        claims[name] = change(rng, claims[name])
    return "claims"


def _recompute(body: Body) -> None:
    """The loss that a forger would write, and the word for its gap."""
    try:
        from optmech_noise.additive.file import decode

        design = decode({"digest": "", **body}, "forged")[0]
        body["claims"]["loss"] = design.loss
        gap = (design.loss - body["claims"]["lower_bound"]) / (design.loss or 1)
        body["claims"]["status"] = "optimal" if gap <= 1e-6 else "feasible"
    except om.OptmechError:
        pass


WAYS: tuple[Way, ...] = (anywhere, anywhere, _moved, _tails, _promise, _proof, _claims)
OTHERS: tuple[Way, ...] = (anywhere, anywhere, _moved, _claims)
"""Of files whose promises and proofs have other keys."""


def falsehood(content: bytes) -> str:
    """What a file claims and is not so, from its numbers in floats; empty where nothing is."""
    body = json.loads(content)
    law, claims = body["law"], body["claims"]
    unit = 2.0 ** -law["bits"]
    window = [int(v, 16) * unit for v in law["window"]]
    tails = [int(v, 16) * unit for v in law["tails"]]
    r = int(law["ratio"], 16) / 2 ** law["ratio_bits"]
    z = list(window)
    while tails and tails[0] + tails[-1] > 1e-18 and len(z) < 20_000:
        z += [v * (1 - r) for v in tails]
        tails = [v * r for v in tails]
    both = np.array(z[:0:-1] + z)
    if abs(both.sum() - 1) > 1e-9:
        return "no distribution"
    rate = om.MetricPrivacy(body["epsilon"], om.distances.euclidean()).epsilon
    for s in range(1, body["sensitivity"] + 1):
        shifted = np.concatenate([both[s:], np.zeros(s)])
        excess = np.maximum(both - math.exp(rate) * shifted, 0).sum()
        if (
            excess
            > float(om.MetricPrivacy(1, om.distances.euclidean(), delta=body["delta"]).delta)
            + 1e-12
        ):
            return f"shift {s} breaks the promise by {excess}"
    k = np.arange(len(z), dtype=float)
    name = body["loss"]["name"]
    if name in ("absolute", "square"):
        cost = k if name == "absolute" else k * k
    elif name == "threshold":
        cost = (k > body["loss"]["width"]) * 1.0
    elif name == "function":
        values, (slope, bend) = body["loss"]["values"], body["loss"]["most"]
        far = np.maximum(k - len(values) + 1, 0)
        cost = np.array(values)[np.minimum(k, len(values) - 1).astype(int)]
        cost = cost + slope * far + bend * far**2
    else:
        values = body["loss"]["values"]
        cost = np.array([values[int(i)] if i < len(values) else values[-1] + (i - len(values) + 1)
                         * (values[-1] - values[-2]) for i in k])  # fmt: skip
    loss = 2 * float(np.array(z) @ cost) - z[0] * cost[0]
    if abs(loss - claims["loss"]) > 1e-8 * loss + 1e-12:
        return f"the loss is {loss}"
    if name == "function":
        values, (slope, bend) = body["loss"]["values"], body["loss"]["least"]
        given: Any = lambda k: (  # noqa: E731
            values[min(k, len(values) - 1)]
            + slope * max(k - len(values) + 1, 0)
            + bend * max(k - len(values) + 1, 0) ** 2
        )
    else:
        given = body["loss"].get("values", name)
    # the search reaches no ε between 0 and 1e-4: noise for 0 keeps that as well
    near = float_of(body["epsilon"], "epsilon") < 1e-4
    if near and not float_of(body["delta"], "delta"):
        return ""
    best = om.noise.optimal(
        0 if near else body["epsilon"],
        body["delta"],
        sensitivity=body["sensitivity"],
        loss=given,
        width=body["loss"].get("width"),
    )
    if claims["lower_bound"] > best.loss:
        return f"noise of loss {best.loss} is below the bound"
    return ""


def run(made: dict[str, bytes], count: int, seed: int, path: Path) -> tuple[list[str], int]:
    """What is false of so many altered files, and how many of them both checkers accept."""
    rng = np.random.default_rng(seed)
    names, wrong, accepted = list(made), [], 0
    for k in range(count):
        name = names[int(rng.integers(len(names)))]
        ways = WAYS if name in ASKED else OTHERS
        forged, how = altered(rng, made[name], ways, raw=0.15, again=0.2)
        passed, audited = verdicts(forged, path)
        accepted += passed
        if passed != audited:
            wrong.append(f"{k} {name}: {how}: check {passed}, audit {audited}")
        elif passed and name in LINES and (false := falsehood(forged)):
            wrong.append(f"{k} {name}: {how}: accepted, and {false}")
    return wrong, accepted


def many() -> int:
    """``PYTHONPATH=tests python packages/noise/tests/test_noise_files.py --count 10000``"""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        made = files(Path(folder)) | others()
        wrong, accepted = run(made, args.count, args.seed, Path(folder) / "noise.json")
    print(f"{args.count:,} files, {accepted:,} accepted, {len(wrong)} wrong", *wrong, sep="\n")
    return 1 if wrong else 0


def test_check_and_audit_agree_on_altered_files(made: dict[str, bytes], tmp_path: Path) -> None:
    wrong, accepted = run(made, 180, 7, tmp_path / "noise.json")
    assert wrong == []
    assert 5 < accepted < 100


@pytest.mark.parametrize("name", ["geometric", "flat", "pair"])
@pytest.mark.parametrize("place", ["epsilon", "delta"])
def test_zero_as_a_logarithm_is_zero(
    made: dict[str, bytes], tmp_path: Path, name: str, place: str
) -> None:
    """ln 1 is 0 and no more than it: what is so at δ = 0 is so at δ = ln 1, and at no ε = ln 1."""
    told = []
    for zero in (0.0, "ln 1"):
        body = json.loads(made[name])
        del body["digest"]
        body[place] = zero
        told.append(verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json"))
    assert told[0] == told[1]
    assert (
        told[0][0] == told[0][1] == ((name, place) in (("geometric", "delta"), ("flat", "epsilon")))
    )


@each("name", list(ASKED))
@each("seconds", [-1.0, -1e-300, 1, None])
def test_times_below_zero_are_refused(
    made: dict[str, bytes], tmp_path: Path, name: str, seconds: object
) -> None:
    body = json.loads(made[name])
    del body["digest"]
    body["seconds"] = seconds
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)


@pytest.mark.parametrize("name", list(ASKED))
def test_the_status_follows_from_the_gap(made: dict[str, bytes], tmp_path: Path, name: str) -> None:
    for weaker, status in ((False, "feasible"), (True, "optimal"), (False, "infeasible")):
        body = json.loads(made[name])
        del body["digest"]
        if weaker:
            body["claims"]["lower_bound"] = 0.0
        body["claims"]["status"] = status
        right = weaker and body["claims"]["loss"] == 0
        found = verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json")
        assert found == (right, right), (weaker, status)


@pytest.mark.parametrize("which", ["window", "tails", "limit", "ratio"])
def test_forgeries_that_would_pay_are_refused(
    made: dict[str, bytes], tmp_path: Path, which: str
) -> None:
    """Less noise under the same promise, a tail cut off, limits lowered, with the claims to fit."""
    body = json.loads(made["staircase" if which in ("tails", "ratio") else "finite"])
    del body["digest"]
    law = body["law"]
    if which == "window":
        part = int(law["window"][3], 16) // 2
        law["window"][3] = f"{int(law['window'][3], 16) - part:x}"
        law["window"][0] = f"{int(law['window'][0], 16) + 2 * part:x}"
    elif which == "tails":
        mass = 2 * sum(int(v, 16) for v in law["tails"])
        law["window"][0] = f"{int(law['window'][0], 16) + mass:x}"
        law["tails"], law["ratio"], law["ratio_bits"] = [], "0", 0
    elif which == "ratio":
        law["ratio"] = f"{int(law['ratio'], 16) // 2:x}"
    else:
        for part in body["multipliers"]["shifts"]:
            part["limit"] = "0"
    _recompute(body)
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)


def test_the_command_makes_checks_samples_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = tmp_path / "noise.json", tmp_path / "noise.png"
    asked = ["--epsilon", "ln 2", "--delta", "1e-3", "--sensitivity", "2", "--loss", "square"]
    assert main(["noise", *asked, "-o", str(path), "--picture", str(picture), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verified"]
    assert said["status"] == "optimal"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["check", str(path)]) == 0
    assert main(["sample", str(path), "1000", "-n", "50", "--seed", "3"]) == 0
    out = capsys.readouterr().out.split()
    assert all(900 < int(value) < 1100 for value in out[-50:])
    assert main(["sample", str(path), "many"]) == 2
    assert main(["noise", "--epsilon", "0"]) == 3
    assert main(["noise", "--epsilon", "1", "--loss", "1,x"]) == 2
    assert main(["solve", str(path)]) == 2
    capsys.readouterr()


def test_a_delta_whose_float_is_zero_is_none(made: dict[str, bytes], tmp_path: Path) -> None:
    """The bound for δ = 0 is not one for a δ > 0, however small."""
    body = json.loads(made["staircase"])
    del body["digest"]
    body["delta"] = -0.0
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)
    body["delta"] = "1/1" + "0" * 400
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)


def test_powers_beyond_floats_are_judged_by_both(tmp_path: Path) -> None:
    """e^((α-1)ε) = e^756 at α = 28: the file promises less than it holds, and claims the bound of
    another promise."""
    body = json.loads(om.noise.zcdp(0.5).document())
    assert "28" in body["zcdp"]["orders"]
    del body["digest"]
    path = tmp_path / "noise.json"
    assert verdicts(seal(json.dumps(body).encode()), path) == (True, True)
    body["zcdp"]["rho"] = 1.0
    assert verdicts(seal(json.dumps(body).encode()), path) == (False, False)
    body["claims"]["lower_bound"] = 0.0
    assert verdicts(seal(json.dumps(body).encode()), path) == (True, True)


def test_work_is_bounded_before_it_is_done(made: dict[str, bytes], tmp_path: Path) -> None:
    """More shifts than tails, or places times shifts by the million, are refused at once."""
    body = json.loads(made["finite"])
    del body["digest"]
    law = body["law"]
    law["window"] += ["0"] * 150_000
    body["sensitivity"] = 900
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)
    body = json.loads(made["geometric"])
    del body["digest"]
    body["sensitivity"] = 2
    assert verdicts(seal(json.dumps(body).encode()), tmp_path / "noise.json") == (False, False)


if __name__ == "__main__":
    sys.exit(many())
