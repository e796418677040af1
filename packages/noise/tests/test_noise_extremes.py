"""Laws, ranges and promises at the ends of what is possible."""

from __future__ import annotations

import json
import math
import warnings
from fractions import Fraction
from pathlib import Path

import optmech_audit as audit
import pytest
from optmech_noise import releases
from optmech_noise.additive.composition import ComposedPrivacy
from optmech_noise.additive.law import Law
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.additive.planar_law import PlanarLaw

import optmech as om
from optmech.exact.number import Interval, parse_exact
from optmech.reading.sealed import seal


def test_the_likeliest_number_far_out_is_not_the_nearest_one() -> None:
    # of the two tails one is empty: 50 - 0 is impossible, and 51 - 0 is not
    law = Law(4, (4, 1), (0, 5), 1, 1)
    assert law.at(50) == 0 < law.at(51)
    one, none = parse_exact(1, where=""), parse_exact(0, where="")
    noise = om.noise.NoiseDesign(law, NoiseLoss.of("absolute"), one, none, 1)
    assert noise.most_likely(0, low=50) == 51
    assert noise.most_likely(0, high=-50) == -51
    assert noise.most_likely(0, low=-10_000, high=-50) == -51
    assert noise.most_likely(0, low=50, high=10_000) == 51
    with pytest.raises(om.ProblemError):
        noise.most_likely(0, low=50, high=50)


def test_composing_without_any_difference_that_is_finite_and_not_zero() -> None:
    # one of four places is told apart for sure at every release
    law = Law(2, (0, 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ComposedPrivacy(law, 1, 2).delta(0)
    # brute force over both directions and releases
    z = {-2: 1, -1: 1, 1: 1, 2: 1}
    lost = sum(1 for i in z if i + 1 not in z) / 4
    assert found.lower <= 1 - (1 - lost) ** 2 <= found.upper


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_composing_with_ratios_beyond_floats(sensitivity: int) -> None:
    bits = 1300
    first = Law(bits, (2**bits - 2, 1))
    second = Law(bits, (2**bits - 2 * (2 ** (bits - 3) + 1), 1, 2 ** (bits - 3)))
    for law in (first, second):
        found = ComposedPrivacy(law, sensitivity, 2).delta(1)
        # what a single release gives, of the largest shift, is a lower bound
        z = [law.at(i) for i in range(-5, 6)]
        shifted = [law.at(i + sensitivity) for i in range(-5, 6)]
        least = sum(max(Fraction(0), p - 3 * q) for p, q in zip(z, shifted, strict=True))
        assert float(least) <= found.upper <= 1


@pytest.mark.parametrize("releases", [1, 2])
def test_a_rate_beyond_all_use_is_refused(releases: int) -> None:
    with pytest.raises(om.ProblemError, match="epsilon"):
        ComposedPrivacy(Law(2, (2, 1)), 1, releases).delta(1e300)


def test_what_releases_promise_holds_as_it_is_shown_for_a_tiny_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releases, "EXPONENTS", (1.25,))
    monkeypatch.setattr(releases, "SHARES", ())
    found = om.noise.for_releases(1, 1e-10, 20)
    assert found.privacy.delta(1).upper <= 1e-10


def test_composing_laws_that_share_nothing() -> None:
    found = ComposedPrivacy(Law(1, (2,)), 1, 3).delta(1)
    assert found.lower <= 1 <= found.upper
    assert found.lower > 1 - 1e-12


def test_tails_that_no_draw_leaves_are_refused(tmp_path: Path) -> None:
    """Most of the mass in tails of ratio 1 - 2^-100, at a loss that stays finite: all claims are
    so, and a draw would take 2^100 steps."""
    path = tmp_path / "noise.json"
    om.noise.optimal(1, loss="threshold", width=0).save(path)
    body = json.loads(path.read_bytes())
    del body["digest"]
    body |= {"epsilon": 2.0, "delta": 1.0, "sensitivity": 1, "multipliers": None}
    body["claims"] = {"status": "feasible", "loss": 0.75, "lower_bound": 0.0}
    law = {"bits": 3, "window": ["2", "0", "0"], "tails": ["3"]}
    for bits, taken in ((4, True), (24, True), (100, False)):
        body["law"] = law | {"ratio_bits": bits, "ratio": f"{2**bits - 1:x}"}
        path.write_bytes(seal(json.dumps(body).encode()))
        assert (audit.main([str(path)]) == 0) == taken
        if taken:
            assert om.check(path).passed
        else:
            with pytest.raises(om.VerificationError, match="ratio"):
                om.check(path)
    for made in (Law, lambda *given: PlanarLaw("l1", 0, *given)):
        with pytest.raises(om.ProblemError, match="ratio"):
            made(2, (2,), (1,), 2**100 - 1, 100)


@pytest.mark.parametrize("releases", [1, 2, 16, 100])
def test_what_a_neighbour_never_gives_has_no_epsilon(releases: int) -> None:
    """Noise -1, 0 or 1 with chances 1/4, 1/2, 1/4: of a neighbour's reports a quarter shows which
    it is, and of several at least one does with a chance of 1 - (3/4)^n, whatever ε is."""
    told = 1 - 0.75**releases
    private = ComposedPrivacy(Law(2, (2, 1)), 1, releases)
    assert private.epsilon(told - 1e-6) == Interval(math.inf, math.inf)
    above = private.epsilon(min(1.0, told + 1e-4))
    assert above.upper <= releases * math.log(2) * (1 + 1e-3)
    assert above.lower < above.upper < math.inf or above.upper == 0
