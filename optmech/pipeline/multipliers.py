"""Multipliers of a bound of a variance: which pieces of the cone of columns are tried, and what
proof they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.variance import PieceProof, Survey, VarianceProof
from optmech.certificate.variance_bound import LISTED, listed_rays
from optmech.engines.information import Found, Piece, Search
from optmech.engines.limited import Pool
from optmech.engines.rays import Weighed, best_of, needed
from optmech.errors import SolverError
from optmech.pipeline.labels import Labels
from optmech.pipeline.pieces import by_guess, by_label, cone, levels
from optmech.pipeline.session import Clock

TIGHT = 1e-5
"""Of a bound, what the search leaves at the least."""
_FINEST = 1e-8
"""The same where all columns are listed."""
_PIECES = 50_000
"""Entries of all pieces, one for each label, up to which a bound rests on losses."""
_GUESSED = 16
"""Secrets up to which the best guesses of an adversary are told apart."""


@dataclass(frozen=True)
class Asked:
    """A survey over the closed limits of pairs, at a population."""

    survey: Survey
    factor: Floats
    population: Floats
    gap: float

    @property
    def wanted(self) -> Floats:
        """S."""
        return self.survey.gram

    @property
    def spread(self) -> float:
        """|Cπ|², which is taken off a variance."""
        return float(self.population @ self.survey.gram @ self.population)


def bounded(
    asked: Asked, clock: Clock, labels: Labels | None = None,
    begun: tuple[Pool, Floats] | None = None,
) -> tuple[Found, list[PieceProof]]:  # fmt: skip
    """Multipliers of a bound, with the pieces that they are of; with ``labels`` of a bound that
    rests on limits on losses too."""
    off = asked.factor[~np.eye(len(asked.factor), dtype=bool)]
    divide = levels if len(off) > 2 and np.ptp(off) < 1e-12 * off[0] else cone
    (pieces, forms), limits = divide(asked.factor, asked.population), None
    if labels is not None and begun is not None:
        limits = labels.charges()[1]
        pieces, forms = by_label((pieces, forms), labels, begun, asked.population)
    found = _searched(asked, clock, pieces, limits)
    if found is None:
        raise SolverError("the bound's program led nowhere", where="objective")
    return found, forms


def listed(asked: Asked, clock: Clock) -> tuple[Weighed, Found, list[PieceProof]] | None:
    """The best columns of all extreme rays, and multipliers that hold for every one; None where
    those are too many, or numbers lead nowhere."""
    n = len(asked.factor)
    if n > LISTED:
        return None
    # not below what the certificate lists
    near = np.where(needed(asked.factor), np.nextafter(asked.factor, np.inf), np.inf)
    rays = listed_rays(near)
    made = best_of(
        rays / (rays @ asked.population)[:, None], asked.wanted, asked.population,
        max(asked.gap / 4, _FINEST), asked.spread, clock.should_stop, clock.report,
    )  # fmt: skip
    if made is None:
        return None
    best, bound = made
    information = (best.columns.T * best.weights) @ best.columns
    none = np.zeros(0)
    found = Found(information, best.value, bound, best.prices, (none,), (none,), none)
    return best, found, [PieceProof("rays", np.zeros((0, 4), dtype=np.int64), none)]


def _searched(
    asked: Asked, clock: Clock, pieces: Sequence[Piece], limits: Floats | None
) -> Found | None:
    """The best multipliers of these pieces; None where there are none."""
    search = Search(asked.wanted, asked.population, pieces, asked.spread, limits)
    found = search.run(max(asked.gap / 4, TIGHT / 2), clock.should_stop)
    clock.report(f"bound {found.bound if found else 0:.6g}")
    return found


def bounded_by_limits(
    asked: Asked, clock: Clock, labels: Labels, begun: tuple[Pool, Floats]
) -> Iterator[tuple[Found, list[PieceProof], list[PieceProof]]]:
    """Multipliers of bounds that rest on limits on losses and on an attack, with their pieces, and
    those that have no columns; nothing where they are too many."""
    n = len(asked.factor)
    if len(labels.limits.most) and n**2 * len(labels.at) <= _PIECES:
        with suppress(SolverError):
            yield *bounded(asked, clock, labels, begun), []
    if len(labels.limits.errors) == 1 and n <= _GUESSED:
        divided = by_guess(asked.factor, labels, begun, asked.population)
        if divided is not None:
            (pieces, forms), empty = divided
            found = _searched(asked, clock, pieces, labels.charges(attacked=True)[1])
            if found is not None:
                yield found, forms, empty


def proof_of(
    asked: Asked, found: Found, forms: list[PieceProof], labels: Labels | None = None,
    extra: Sequence[PieceProof] = (),
) -> Callable[[Floats], VarianceProof]:  # fmt: skip
    """What proves the bound, for whatever estimate of a design."""
    done = []
    for form, weight, free in zip(forms, found.weights, found.free, strict=True):
        ends = form.rows
        factor = asked.factor
        n = len(factor)
        if form.form == "levels":
            factor = np.pad(factor, (0, 1), constant_values=float(factor[0, 1]))
            factor[n] = 1.0
        own = np.concatenate([weight, free])
        if form.guess is not None:
            own = own * form.weight
            # beyond the secrets are rows of guesses, which have no factor
            factor = np.pad(factor, (0, n), constant_values=1.0)
        scale = np.sqrt(factor[ends[:, 0], ends[:, 1]] * factor[ends[:, 2], ends[:, 3]])
        done.append(form._replace(weight=own / scale))
    for form in extra:
        # weights are of scaled rows
        factor = np.pad(asked.factor, (0, len(asked.factor)), constant_values=1.0)
        scale = np.sqrt(factor[form.rows[:, 0], form.rows[:, 1]])
        done.append(form._replace(weight=form.weight / scale))
    pairs = np.argwhere(needed(asked.factor))
    if forms[0].form == "levels":
        pairs = np.argwhere(~np.eye(len(asked.factor), dtype=bool))
    inverse = np.linalg.inv(found.information)
    inverse = (inverse + inverse.T) / 2
    charges = np.zeros(0)
    if labels is not None and len(found.charges):
        charges = labels.unscaled(found.charges)
    # λ >= 0 where nobody is
    prices = np.maximum(found.prices, np.where(asked.population > 0, -np.inf, 0.0))
    return lambda estimate: VarianceProof(
        estimate, asked.population, inverse, prices, pairs, tuple(done), charges
    )
