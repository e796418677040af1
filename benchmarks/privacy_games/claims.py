"""What Privacy Games claims, held against the experiments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from experiments import (
    KINDS,
    SAME,
    Experiment,
    cut_at_thresholds,
    metres,
    same,
    scenario1,
    scenario2,
    scenario3,
    without_epsilon,
)

Claim = tuple[str, str, str]
"""What the paper says, the verdict, and the figures."""

MUCH = 1.2
"""How many times as dear is "much more"."""
NEARBY = 3.0
"""Thresholds up to this many km are small: a fifth of the city."""
NEGLIGIBLE = 0.05
"""An error in privacy of so many km, a tenth of a cell of the large grid, is almost nothing."""
MOSTLY = 2 / 3
"""A claim that holds in this share of the experiments counts as confirmed with qualification."""


def _verdict(holds: list[bool]) -> str:
    if all(holds):
        return "confirmed"
    return "with qualification" if np.mean(holds) >= MOSTLY else "not confirmed"


def _claims1(grid: str) -> Iterator[Claim]:
    found = scenario1(grid)
    if not found:
        return
    most = max(e.epsilon for e in found)
    last = [e.differential["optimal"] for e in found if e.epsilon == most]
    yield (
        "As ε grows, the expected error converges to below 1 km (Fig. 2a)",
        _verdict([error < 1 for error in last]),
        f"at ε = {most:g} per km median {np.median(last):.2f} km, largest {max(last):.2f} km, "
        f"below 1 km for {np.mean(np.array(last) < 1):.0%} of users",
    )
    # who was in one cell only loses nothing with either
    worse = [
        e.differential["loss"] / max(e.distortion["loss"], 1e-300)
        for e in found
        if e.differential["loss"] > 0
    ]
    yield (
        "Equal distortion costs much more with differential privacy than without (Fig. 2b)",
        _verdict([ratio > MUCH for ratio in worse]),
        f"loss ratio median {np.median(worse):.2f}, at most {max(worse):.3g}; never below "
        f"{min(worse):.6f}",
    )
    equal = [same(e.joint["loss"], e.differential["loss"]) for e in found]
    yield (
        "Differential and joint mechanisms cost the same (Fig. 2b)",
        _verdict(equal),
        f"in {sum(equal)} of {len(equal)} experiments",
    )
    dearest = [e.joint["loss"] <= max(_losses(e)) * (1 + SAME) for e in found]
    cheapest = [e.joint["loss"] <= min(_losses(e)) * (1 + SAME) for e in found]
    yield (
        "The joint mechanism is not more costly than the two others (scenario 2, of Fig. 2b)",
        _verdict(cheapest),
        f"than the dearer one in {sum(dearest)} of {len(found)}, which is the differential one; "
        f"than the distortion mechanism in {sum(cheapest)}",
    )
    # at equal distortion it loses less: spending the difference buys more of it, up to d_max
    more = [
        e.distortion["loss"] < e.joint["loss"] * (1 - SAME)
        and e.minimum < e.joint["blind"] * (1 - SAME)
        for e in found
    ]
    yield (
        "… and gives the highest privacy for a certain utility cost",
        _verdict([not beaten for beaten in more]),
        f"for the cost of the joint mechanism a distortion mechanism gives more distortion in "
        f"{sum(more)} of {len(more)}; of all that also keep ε none does, by design",
    )
    more = [e.differential["bayesian"] > e.distortion["bayesian"] * (1 + SAME) for e in found]
    less = [e.differential["bayesian"] < e.distortion["bayesian"] * (1 - SAME) for e in found]
    yield (
        "Against the Bayesian attack the differential mechanism is more robust (Fig. 3)",
        _verdict(more),
        f"larger error in {sum(more)}, smaller in {sum(less)}, equal in "
        f"{len(found) - sum(more) - sum(less)} of {len(found)}",
    )
    beaten = [r["bayesian"] >= r["optimal"] * (1 - 1e-9) for e in found for _, r in e.three]
    over = {
        k: np.median(
            [getattr(e, k)["bayesian"] / max(getattr(e, k)["optimal"], 1e-9) for e in found]
        )
        for k in KINDS
    }
    yield (
        "The optimal attack is at least as strong as the Bayesian one, the more so against "
        "differential and joint mechanisms (Fig. 4)",
        _verdict([*beaten, over["differential"] > over["distortion"] < over["joint"]]),
        f"at least as strong in {sum(beaten)} of {len(beaten)}; median ratio of errors "
        + ", ".join(f"{over[k]:.3f} ({k})" for k in KINDS),
    )
    lower, worst = {}, {}
    for kind in KINDS[:2]:
        ratios = [
            error / getattr(e, kind)["optimal"]
            for e in found
            if getattr(e, kind)["optimal"] > 1e-9
            for error in getattr(e, kind)["informed"].values()
        ]
        lower[kind] = [ratio <= 1 + SAME for ratio in ratios]
        worst[kind] = max(ratios) - 1
    yield (
        "A more informed adversary has a lower expected error (Fig. 6)",
        _verdict([low for of in lower.values() for low in of]),
        "; ".join(
            f"{kind}: in {np.mean(lower[kind]):.1%}, else up to {worst[kind]:.0%} higher"
            for kind in lower
        )
        + "; under his own prior, see below",
    )
    for evidence in ("0.25", "0.5", "0.75"):
        robust = [
            e.differential["informed"][evidence] >= e.distortion["informed"][evidence] * (1 - SAME)
            for e in found
        ]
        lost = [np.mean([getattr(e, k)["informed"][evidence] for e in found]) for k in KINDS[:2]]
        yield (
            f"The differential mechanism is more robust to an adversary who knows more (Fig. 6), "
            f"evidence {evidence}",
            _verdict(robust),
            f"in {sum(robust)} of {len(robust)}; mean error {lost[0]:.3f} km against {lost[1]:.3f}",
        )


def _claims2(grid: str) -> Iterator[Claim]:
    found = scenario2(grid)
    if not found:
        return
    reached = [same(e.joint["optimal"], e.distortion["optimal"]) for e in found]
    extra = [e.joint["loss"] / max(e.differential["loss"], 1e-300) - 1 for e in found]
    yield (
        "With d_m above what differential privacy gives, the joint mechanism gives d_m (Fig. 5)",
        _verdict(reached),
        f"in {sum(reached)} of {len(reached)}",
    )
    yield (
        "… with the same utility cost as the differential mechanism",
        _verdict([x <= SAME for x in extra]),
        f"in {sum(x <= SAME for x in extra)} of {len(extra)}; extra cost median "
        f"{np.median(extra):.1%}, at most {max(extra):.0%}",
    )


def _claims3(grid: str) -> Iterator[Claim]:
    found = scenario3(grid)
    if not found:
        return
    privacy = [
        same(e.joint["optimal"], max(e.differential["optimal"], e.distortion["optimal"]))
        for e in found
    ]
    cost = [
        e.joint["loss"] / max(e.differential["loss"], e.distortion["loss"], 1e-300) - 1
        for e in found
    ]
    first = [e.differential["loss"] >= e.distortion["loss"] * (1 - SAME) for e in found]
    yield (
        "Privacy of the joint mechanism is the larger of the two (Fig. 7)",
        _verdict(privacy),
        f"in {sum(privacy)} of {len(privacy)}",
    )
    yield (
        "Its cost is the larger of the two: nothing extra",
        _verdict([x <= SAME for x in cost]),
        f"in {sum(x <= SAME for x in cost)} of {len(cost)}; otherwise extra cost median "
        f"{np.median([x for x in cost if x > SAME] or [0]):.1%}, at most {max(cost):.0%}",
    )
    yield (
        "… which is the differential mechanism's in all experiments",
        _verdict(first),
        f"the differential mechanism is the dearer one in {sum(first)} of {len(first)}",
    )


def _claims8(grid: str) -> Iterator[Claim]:
    """Fig. 8, with distortion constraints and without."""
    for method, name in (
        ("joint threshold", "joint mechanisms, which still have d_m"),
        ("threshold", "metric privacy alone"),
    ):
        errors, seconds = cut_at_thresholds(grid, method)
        if not errors:
            continue
        far = sorted(errors)
        near = [f for f in far if f <= NEARBY]
        last = errors[far[-1]]
        yield (
            f"As the threshold grows, the approximation error goes to zero (Fig. 8): {name}",
            _verdict([error <= NEGLIGIBLE for error in last]),
            "largest error " + ", ".join(f"{metres(max(errors[f]))} km at {f:g}" for f in far),
        )
        small = errors[near[-1]]
        yield (
            f"A relatively small threshold gives almost the same privacy (Fig. 8): {name}",
            _verdict([error <= NEGLIGIBLE for error in small]),
            f"at {near[-1]:g} km an error of at most {metres(max(small))} km; "
            f"no ε at all for {without_epsilon(grid, method, near[-1])} of {len(small)}",
        )
        rising = [
            seconds[b][user] >= seconds[a][user]
            for a, b in itertools.pairwise(far)
            for user in range(len(last))
        ]
        yield (
            f"Computation time increases with the threshold (Fig. 8): {name}",
            _verdict(rising),
            f"from one threshold to the next in {sum(rising)} of {len(rising)} cases; median "
            + ", ".join(f"{np.median(seconds[f]):.3g}" for f in far)
            + f" s, and {np.median(seconds[None]):.3g} s without any threshold",
        )


def _losses(e: Experiment) -> tuple[float, float]:
    return e.differential["loss"], e.distortion["loss"]


CLAIMS = (_claims1, _claims2, _claims3, _claims8)
