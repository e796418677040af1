"""Whatever is given to noise, its laws and its losses is taken as it is, or refused in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optmech_noise import Law, NoiseLoss, RealLoss

import optmech as om
from optmech.cli.main import main

ODD: list[Any] = [
    None, True, float("nan"), float("inf"), -1, 0, -0.0, 1e308, 5e-324, -(10**400), "", "abc",
    "ln", "ln 0", "1/0", "nan", "1e999999999", b"1", 1j, [], (), {}, [1], (1,), (1, 2), (1, 2, 3),
    [(0, float("nan")), (1, 1)], [(0, 1), (1, "x")], np.array(1), np.array([1.0]), np.array([]),
    np.bool_(True), np.array("a"), np.datetime64("2020"), object(), RealLoss, Decimal("NaN"),
    Decimal("sNaN"), Decimal("Infinity"), Fraction(1, 3), range(3), iter([1]), "auto", 2.5, "ln 2",
]  # fmt: skip
WHOLE = om.noise.optimal(1, "1/100", gap=1e-2)
REAL = om.noise.real(1, "1/100", cells=2)
DIVERGENT = om.noise.rdp((1, 1), loss="square", cells=1, gap=0.1)
PEER = om.noise.peers(1, "1/100")["discrete Laplace"]
STRAIGHT = RealLoss.of([(0, 0), (1, 1), (2, 3)])
POINTS = [(0, 0), (1, 1), (2, 3), (3, 6)]
CALLS: dict[str, Callable[[Any], object]] = {
    "pmf": WHOLE.pmf,
    "sample": lambda odd: WHOLE.sample(odd, seed=1),
    "seed": lambda odd: WHOLE.sample(1, seed=odd),
    "quantile": WHOLE.quantile,
    "interval": WHOLE.interval,
    "low": lambda odd: WHOLE.interval(1, low=odd),
    "most likely": WHOLE.most_likely,
    "density": REAL.density,
    "bits": lambda odd: REAL.sample(bits=odd, seed=1),
    "release": lambda odd: REAL.release(odd, seed=1),
    "rounding": lambda odd: REAL.release(1, bits=odd, seed=1),
    "shift": REAL.privacy,
    "epsilon": lambda odd: REAL.privacy(1, epsilon=odd),
    "divergence": DIVERGENT.divergence_at,
    "least divergence": DIVERGENT.least_divergence,
    "peer's loss": PEER.loss,
    "peer's epsilon": lambda odd: PEER.delta(odd, 1),
    "peer's shift": lambda odd: PEER.delta(1.0, odd),
    "peers": om.noise.peers,
    "peers' delta": lambda odd: om.noise.peers(1, odd),
    "law at": WHOLE.law.at,
    "law beyond": WHOLE.law.upper_tail,
    "law drawn": WHOLE.law.sample,
    "law's pairs": WHOLE.law.pairs,
    "law's numbers": WHOLE.law.whole,
    "law's loss": WHOLE.law.expected,
    "bits of a law": lambda odd: Law(odd, (2, 1)),
    "window": lambda odd: Law(2, odd),
    "tails": lambda odd: Law(2, (2, 1), odd),
    "ratio": lambda odd: Law(4, (6, 3), (2,), odd, 2),
    "bits of a ratio": lambda odd: Law(4, (6, 3), (2,), 1, odd),
    "loss of a whole number": NoiseLoss.of("square"),
    "loss of a real number": RealLoss.of("square"),
    "loss on a lattice": STRAIGHT.on,
    "loss": RealLoss.of,
    "width": lambda odd: RealLoss.of("threshold", odd),
    "convex": RealLoss.convex,
    "most": lambda odd: RealLoss.convex(POINTS, odd),
    "name": RealLoss,
    "corners": lambda odd: RealLoss("corners", corners=odd),
    "width of a loss": lambda odd: RealLoss("threshold", width=odd),
    "most of a loss": lambda odd: RealLoss("convex", corners=STRAIGHT.corners, most=odd),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_what_is_odd_is_taken_or_refused_in_words(name: str) -> None:
    for odd in ODD:
        with suppress(om.OptmechError):  # any other kind fails the test
            CALLS[name](odd)


def test_whoever_gives_a_width_gives_it_to_a_threshold() -> None:
    """A loss that is made already has its own, and another beside it was ignored."""
    for loss in (RealLoss.of("threshold", 1), RealLoss.of("absolute"), STRAIGHT, "absolute", abs):
        with pytest.raises(om.ProblemError, match="width"):
            om.noise.real(1, loss=loss, width=3)
    for whole in (NoiseLoss.of("threshold", 1), NoiseLoss.of("square"), [0, 1], "absolute"):
        for best in (om.noise.optimal, om.noise.for_pairs, om.noise.zcdp):
            with pytest.raises(om.ProblemError, match="width"):
                best(1, loss=whole, width=3)
        with pytest.raises(om.ProblemError, match="width"):
            om.noise.in_range(1, bounds=(0, 3), loss=whole, width=3)


PROMISES = {"order": "--order 2", "zcdp": "--zcdp 1", "budget": "--budget 1"}
KINDS = {
    "dimensions": "--dimensions 2",
    "norm": "--norm l2",
    "several": "--for-releases 2",
    "delta": "--delta 0.1",
}


@pytest.mark.parametrize("promise", list(PROMISES))
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("epsilon", ["", "--epsilon 1"])
def test_no_promise_is_left_out_in_silence(
    promise: str, kind: str, epsilon: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pairs with ρ beside ε were made for ε alone."""
    asked = " ".join(("noise", PROMISES[promise], KINDS[kind], epsilon)).split()
    assert main(asked) == 2
    assert "Leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ("", "--epsilon"),
        ("--budget 1", "--budget"),
        ("--order 2", "--order"),
        ("--order 2 --epsilon 1 --budget 1", "--order"),
        ("--zcdp 1 --epsilon 1", "--epsilon"),
        ("--zcdp 1 --order 2", "--order"),
        ("--epsilon 1 --cells 4", "--cells"),
        ("--epsilon 1 --dimensions 3", "--dimensions"),
        ("--epsilon 1 --delta 1e-3 --dimensions 4 --real", "--dimensions"),
        ("--epsilon 1 --dimensions 2 --for-releases 2", "--for-releases"),
        ("--epsilon 1 --norm l1", "--norm"),
        ("--epsilon 1 --real --loss-norm l1", "--loss-norm"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    asked: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["noise", *asked.split()]) == 2
    assert f"{where}: " in capsys.readouterr().err


def _losses() -> Iterator[RealLoss]:
    for name in ("absolute", "square", "threshold", "corners", "convex"):
        for width in (0, "1/3", 0.1):
            for corners in ((), [(0, 0.1), ("1/3", 0.3), (2, 3), (3, 6)]):
                for most in (None, (3.1, "1/3")):
                    with suppress(om.ProblemError):
                        yield RealLoss(name, width=width, corners=corners, most=most)


def test_whatever_loss_is_taken_is_saved_and_read_again(tmp_path: Path) -> None:
    made = list(_losses())
    assert {loss.name for loss in made} == {"absolute", "square", "threshold", "corners", "convex"}
    for loss in made:
        design = om.noise.real(1, "1/10", loss=loss, cells=2, gap=0.5)
        design.save(tmp_path / "noise.json")
        again = om.noise.RealNoise.load(tmp_path / "noise.json")
        assert again.measure == design.measure == loss
        assert (again.loss, again.lower_bound) == (design.loss, design.lower_bound)
        assert om.check(tmp_path / "noise.json").passed
