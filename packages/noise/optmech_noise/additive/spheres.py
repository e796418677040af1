"""Spheres and balls that meet, in the plane and in space: shares of a sphere within a ball, and
what two balls have in common, enclosed."""

from __future__ import annotations

from typing import Any

import flint

Ball = Any
"""An enclosure of a real number (``flint.arb``)."""
PRECISION = 256
DIMENSIONS = (2, 3)


def half(dimension: int, w: Ball) -> tuple[Ball, Ball]:
    """Of a unit vector that is evenly distributed, the probability that its first coordinate t is
    above q = 1 - ``w``, and E max(0, t - q) + q times that."""
    if w <= 0:
        return flint.arb(0), flint.arb(0)
    if w >= 2:
        return flint.arb(1), flint.arb(0)
    if w > 0 and w < 2:
        return _half(dimension, w)
    # a wide enclosure that reaches beyond the sphere
    ends = [flint.arb(0).max(w.lower()), flint.arb(2).min(w.upper())]
    (share, mean), (other, most) = (_half(dimension, end) for end in ends)
    if ends[0] < 1 < ends[1]:
        mean = mean.union(_half(dimension, flint.arb(1))[1])
    return share.union(other), mean.union(most)


def _half(dimension: int, w: Ball) -> tuple[Ball, Ball]:
    if dimension == 3:
        return w / 2, w * (2 - w) / 4
    pi, root = flint.arb.pi(), (w * (2 - w)).nonnegative_part().sqrt()
    return flint.arb.atan2(root, 1 - w) / pi, root / pi


def growing(dimension: int, w: Ball) -> Ball:
    """The derivative of the probability of ``half`` by w; not finite where w comes to 0 or 2."""
    if w <= 0 or w >= 2:
        return flint.arb(0)
    if dimension == 3:
        return flint.arb(1) / 2
    return 1 / ((w * (2 - w)).sqrt() * flint.arb.pi())


def common(dimension: int, one: int, other: int, apart: int) -> Ball:
    """The volume that balls of whole radii have in common whose centres are ``apart``, over the
    volume of the unit ball."""
    if not one or not other or one + other <= apart:
        return flint.arb(0)
    if abs(one - other) >= apart:
        return flint.arb(min(one, other)) ** dimension
    total = flint.arb(0)
    for own, far in ((one, other), (other, one)):
        # a cap: what lies beyond the plane where the spheres meet
        w = flint.arb(far**2 - (own - apart) ** 2) / (2 * apart * own)
        share, mean = half(dimension, w)
        total += flint.arb(own) ** dimension * (share - (1 - w) * mean)
    return total
