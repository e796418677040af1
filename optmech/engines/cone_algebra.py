"""Cones x_0 >= ‖(x_1, x_2)‖ in the last axis of an array: products, scalings, how far they reach
(Nesterov and Todd 1997)."""

import numpy as np

from optmech.base.arrays import Floats

TINY = 1e-300
J = np.array([1.0, -1.0, -1.0])


def root(x: Floats) -> Floats:
    """√(x_0² − ‖x_1‖²)."""
    size = np.hypot(x[..., 1], x[..., 2])
    return np.asarray(np.sqrt(np.maximum((x[..., 0] - size) * (x[..., 0] + size), TINY)))


def scaling(s: Floats, z: Floats) -> tuple[Floats, Floats]:
    """w and β of the Nesterov-Todd scaling W = β (…) with W z = W⁻¹ s."""
    a, b = root(s), root(z)
    one, other = s / a[..., None], z / b[..., None]
    gamma = np.sqrt((1 + (one * other).sum(axis=-1)) / 2)
    return (one + other * J) / (2 * gamma)[..., None], np.sqrt(a / b)


def apply(w: Floats, x: Floats) -> Floats:
    """The product of x with the scaling's matrix for β = 1."""
    inner = w[..., 1] * x[..., 1] + w[..., 2] * x[..., 2]
    out = np.empty_like(x)
    out[..., 0] = w[..., 0] * x[..., 0] + inner
    factor = x[..., 0] + inner / (1 + w[..., 0])
    out[..., 1:] = x[..., 1:] + factor[..., None] * w[..., 1:]
    return out


def circle(x: Floats, y: Floats) -> Floats:
    """x ∘ y, whose first component is the scalar product."""
    out = x[..., :1] * y + y[..., :1] * x
    out[..., 0] = (x * y).sum(axis=-1)
    return np.asarray(out)


def divide(x: Floats, y: Floats) -> Floats:
    """The u with x ∘ u = y."""
    square = root(x) ** 2
    inner = x[..., 1] * y[..., 1] + x[..., 2] * y[..., 2]
    first = (x[..., 0] * y[..., 0] - inner) / square
    out = np.empty_like(y)
    out[..., 0] = first
    out[..., 1:] = (y[..., 1:] - first[..., None] * x[..., 1:]) / x[..., :1]
    return out


def longest(x: Floats, dx: Floats) -> float:
    """The longest step from x along dx that stays in all cones, at most 1e8."""
    a = (dx[..., 0] ** 2 - dx[..., 1] ** 2 - dx[..., 2] ** 2).ravel()
    b = (x[..., 0] * dx[..., 0] - x[..., 1] * dx[..., 1] - x[..., 2] * dx[..., 2]).ravel()
    c = (root(x) ** 2).ravel()
    # the least positive root of a t² + 2 b t + c
    disc = b * b - a * c
    with np.errstate(all="ignore"):
        found = c / (-b + np.sqrt(np.maximum(disc, 0.0)))
        down = np.where(dx[..., 0] < 0, -x[..., 0] / dx[..., 0], np.inf).ravel()
    leaves = (disc >= 0) & (found > 0)
    return float(min(1e8, np.where(leaves, found, np.inf).min(), down.min()))


def ahead(x: Floats, dx: Floats) -> float:
    """The longest step from x > 0 along dx that stays there, at most 1e8."""
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.where(dx < 0, -x / dx, 1e8).min(initial=1e8))
