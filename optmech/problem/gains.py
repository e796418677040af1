"""Gain functions g(w, s) of an adversary's guesses, as fields of constraints and objectives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.space import Space
from optmech.spaces.distances import Distance, of_domains

Gain = Floats | Distance | Literal["identity", "maximal", "additive"]


def as_gain(value: ArrayLike | Distance | Literal["identity"]) -> Gain:
    """ "identity", an array with a row for every guess and a column for every secret, or a function
    of two domains such as a distance, between guess and secret."""
    if isinstance(value, str):
        if value != "identity":
            raise ProblemError(
                f"{value!r} is unknown",
                remedy='Give "identity", or an array with a row for every guess',
            )
        return "identity"
    if callable(value):
        return of_domains(value, "")
    rows = finite_array(value, where="", ndim=2)
    if not rows.size:
        raise ProblemError("is empty", remedy="Give a row for every guess")
    return rows


def as_goal(value: ArrayLike | Distance | str) -> Gain:
    """As ``as_gain``, or the name of a measure that has no prior."""
    return value if isinstance(value, str) and value in PRIOR_FREE else as_gain(value)  # type: ignore[return-value]


def _first_less(count: int) -> Floats:
    """1 - Σ_o min_w p(o|w) = Σ_o max_w (p(o|first) - p(o|w)), as the first row sums to one."""
    gain = -np.eye(count)
    gain[:, 0] += 1.0
    return gain


PRIOR_FREE: dict[str, Callable[[int], Floats]] = {"maximal": np.eye, "additive": _first_less}
"""Gains that leave the prior out, by the number of secrets: all weights are 1."""


def gain_matrix(gain: Gain, space: Space) -> Floats:
    """g(w, s), shape (W, S). Raises ProblemError where it does not fit the secrets."""
    count = len(space.secrets)
    if isinstance(gain, str):
        return np.eye(count)
    values = space.apart(gain, "gain") if callable(gain) else gain
    if values.shape[1] != count:
        raise ProblemError(
            f"{values.shape[1]} columns for {count} secrets",
            where="gain",
            remedy="Give a row for every guess and a column for every secret",
        )
    return values


def block_gains(blocks: Sequence[Hashable]) -> Floats:
    """Guesses of the block of a partition, which names the block of every secret: 1 where right."""
    if isinstance(blocks, str) or not len(blocks):
        raise ProblemError("is not a list", where="blocks", remedy="Name the block of every secret")
    names = list(dict.fromkeys(blocks))
    return np.array([[float(block == name) for block in blocks] for name in names])


def gain_words(gain: Gain) -> str:
    """A gain function in words."""
    if isinstance(gain, str):
        return {"maximal": "e to the maximal leakage", "additive": "additive capacity"}.get(
            gain, "the secret itself is guessed"
        )
    if callable(gain):
        return "a gain for every pair of secrets"
    return f"{len(gain)} guess{'' if len(gain) == 1 else 'es'}"


def gained(gain: Floats, weights: Floats, matrix: Floats) -> float:
    """Σ_o max_w Σ_s π(s) g(w,s) P[s,o] of a matrix (S, O), in floating point."""
    return float(((gain * weights) @ matrix).max(axis=0).sum())


def _write(value: Gain, space: Space) -> Plain:
    return value if isinstance(value, str) else gain_matrix(value, space).tolist()


FIELDS[as_gain] = Field("gain", plain=_write)
FIELDS[as_goal] = Field("goal", plain=_write)
