"""An adversary who guesses: gain functions g(w, s), as fields of constraints and objectives, and
the priors near a prior, by the corners of a ball of the Wasserstein distance W_1, exactly. A convex
function of the prior, such as a posterior vulnerability, is largest at one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import Converted, converted, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, Number, rounded_down, rounded_up
from optmech.problem import fields
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.promised import Promised
from optmech.problem.space import Space
from optmech.spaces.distances import Distance, of_domains
from optmech.spaces.tables import distance_words

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
    """A gain as ``as_gain`` reads it, or the name of a measure that has no prior."""
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
    named = all(isinstance(block, Hashable) for block in blocks)
    if isinstance(blocks, str) or not len(blocks) or not named:
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


MOST = 1000
"""Corners that a constraint may have."""
_SEARCHED = 50 * MOST

Masses = tuple[Fraction, ...]


@record
class Adversary(Shown):
    """Whom a constraint with these fields is against: who has a prior, or any within ``radius`` of
    it in the distance ``within``."""

    _upwards: ClassVar[bool]
    """How weights that are no floats are rounded."""
    _: KW_ONLY
    radius: Converted[Number | None, Exact | None] = converted(fields.number, default=None)
    within: fields.AnyDistance = converted(fields.distance, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within is not None and self.radius is None:
            raise ProblemError("needs a radius", where="within", remedy="Say how far priors may be")

    def promised(self, space: Space) -> Promised:
        return Promised("guesses", "unknown")

    def priors(self, space: Space) -> list[Floats]:
        """The adversary's prior, or weights whose hull has all priors of the ball around it, or a
        little more or less mass: corners, rounded where they are no floats.

        Raises
        ------
        ProblemError
            On a distance that puts a place away from itself, and where there are too many corners.
        """
        own: Any = self
        weights = space.adversary(own.prior).weights
        if self.radius is None:
            return [weights]
        apart = None if self.within is None else space.apart(self.within, "within")
        if apart is not None and apart.diagonal().any():
            raise ProblemError(
                "puts a place away from itself, so that no prior is near itself",
                where="within",
                remedy="Give a distance that is 0 from a place to itself",
            )
        rounded = rounded_up if self._upwards else rounded_down
        found = ball(weights, self.radius, apart)
        return [np.array([rounded(value) for value in corner]) for corner in found]

    @property
    def _against(self) -> str:
        """Whom it is against, in words."""
        own: Any = self
        against = "the prior" if own.prior is None else "another prior"
        if self.radius is None:
            return against
        metric = "total variation" if self.within is None else distance_words(self.within)
        return f"any prior within {self.radius.words} of {against} ({metric})"


def ball(weights: Floats, radius: Exact, apart: Floats | None = None) -> list[Masses]:
    """The ``corners`` of what is within a radius in W_1 of a distance, or in total variation."""
    rows = None
    if apart is not None and not np.array_equal(apart, 1 - np.eye(len(apart))):
        rows = [tuple(map(Fraction, row)) for row in apart.tolist()]
    return corners(tuple(map(Fraction, weights.tolist())), bracket(radius)[1], rows)


def corners(
    weights: Masses, radius: Fraction, apart: Sequence[Masses] | None = None
) -> list[Masses]:
    """Distributions whose convex hull are all that mass can be moved to at a cost of at most
    ``radius``, ``apart[s][t]`` being that of a unit from s to t (0 for s = t); 1 where there is no
    such table, and then each of them is a corner. Raises ProblemError where there are too many."""
    found: dict[Masses, None] = {}
    plans = _to_one(weights, radius) if apart is None else _plans(weights, radius, apart)
    for count, masses in enumerate(plans):
        if masses is not None:
            found[masses] = None
        if len(found) > MOST or count > _SEARCHED:
            raise ProblemError(
                f"more than {MOST:,} priors are corners of the ball",
                where="radius",
                remedy="Give a smaller radius or fewer secrets: in total variation, a radius that "
                "can empty no place has n (n - 1) corners for n secrets",
            )
    return sorted(found)


def _to_one(weights: Masses, radius: Fraction) -> Iterator[Masses | None]:
    """Of a ball in total variation: all that is moved goes to one place t. It empties others, but
    for one, ``last``, of which something is left. None for work without a corner."""
    zero = Fraction()
    total = sum(weights, zero)
    for t, own in enumerate(weights):
        if total - own <= radius or not radius:
            alone = tuple(total if s == t else zero for s in range(len(weights)))
            yield alone if total - own <= radius else weights
            continue
        others = [s for s, weight in enumerate(weights) if weight and s != t]
        for last in others:
            rest, emptied = total - own - weights[last], [(zero, frozenset[int]())]
            for s in others:
                if s == last:
                    continue
                rest -= weights[s]
                both = ((m, e) for gone, past in emptied
                        for m, e in ((gone, past), (gone + weights[s], past | {s})))  # fmt: skip
                least = radius - weights[last] - rest
                emptied = [(m, e) for m, e in both if least < m <= radius]
                yield from (None for _ in emptied)
            for gone, past in emptied:
                moved = {t: own + radius, last: weights[last] - radius + gone}
                yield tuple(zero if s in past else moved.get(s, v) for s, v in enumerate(weights))


def _plans(weights: Masses, radius: Fraction, apart: Sequence[Masses]) -> Iterator[Masses | None]:
    """The plans of moves are a polytope whose corners move the mass of every s to one place, but
    for one s, which is split between two when that spends all of the radius. What spends less is
    no corner of their image unless all is at one place. Some come several times, and None for a
    dead end."""
    used = [s for s, weight in enumerate(weights) if weight]
    masses = [Fraction()] * len(weights)

    def moves(s: int, left: Fraction, split: int | None) -> Iterator[tuple[Fraction, int | None]]:
        """Where the mass of s may go, and what is left: ``masses`` has it there meanwhile."""
        for t, unit in enumerate(apart[s]):
            cost = weights[s] * unit
            if cost <= left:
                masses[t] += weights[s]
                yield left - cost, split
                masses[t] -= weights[s]
        # nothing can be split with nothing left to spend
        if split is None and left:
            yield left, s

    # a stack of its own: there may be more places than calls within calls
    stack = [moves(used[0], radius, None)]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
        elif len(stack) < len(used):
            stack.append(moves(used[len(stack)], *found))
        else:
            left, split = found
            yield from _ends(weights, left, apart, masses, split)


def _ends(
    weights: Masses, left: Fraction, apart: Sequence[Masses], masses: list[Fraction],
    split: int | None,
) -> Iterator[Masses | None]:  # fmt: skip
    """All mass placed but that of ``split``, which spends what is left."""
    if split is None:
        yield tuple(masses) if not left or sum(map(bool, masses)) == 1 else None
        return
    mass, cost = weights[split], apart[split]
    reach = left / mass
    near = [t for t, d in enumerate(cost) if d < reach]
    far = [t for t, d in enumerate(cost) if d > reach]
    yield None
    for a in near:
        for b in far:
            share = (left - mass * cost[a]) / (cost[b] - cost[a])
            out = list(masses)
            out[a] += mass - share
            out[b] += share
            yield tuple(out)
