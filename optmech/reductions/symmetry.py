"""One block for all observables that symmetries of the program carry into each other."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Indices, Ints
from optmech.base.read_only import record
from optmech.lp.blocks import BlockLP, LinkRows, Point, averages, entries
from optmech.reductions.base import Reduced

_LEAST = 8_000
"""Pair rows up to which programs are solved as they are."""
_SAME = 1e-12
"""Numbers as near to each other, beside the largest, count as one: bounds lose no more by it."""
_WORTH = 0.75
"""Share of the blocks that may be left for folding to pay."""
_CANDIDATES = 12
_MOST_ANCHORS = 4
_MOST, _TRIED = 1_000, 100_000
"""Symmetries, and images of anchors that are looked at."""


@dataclass(frozen=True)
class Symmetry:
    """Solve for one observable of every orbit.

    Source: pairs and row sums. A symmetry is a permutation σ of the secrets and τ of the
    observables that change no cost, c(σ(s), τ(o)) = c(s, o), and no ratio. Target: the blocks of
    one observable o of each orbit; its column v_o stands for the sum over the orbit, and instead of
    every row sum their mean over every orbit of secrets is one. Equivalent: the mean of a
    mechanism's images under all symmetries is a mechanism of the same cost, and so is what comes
    of v_o in the same way. Duals: an image of o gets the image of its multipliers, and a secret its
    orbit's price over the orbit's size, which leaves no reduced cost lower than the target's.
    Proof: docs/theory/reductions.md, "Programs with symmetries".

    A square grid with a uniform prior has eight symmetries, and about an eighth of the blocks
    stays. Numbers are compared to 1e-12: the source evaluates the bound and repairs the mechanism.
    Symmetries are found where a few secrets tell all others apart by their ratios to them: on grids
    and circles, not where all ratios are the same.
    """

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        images = _symmetries(lp) if _applies(lp) else None
        if images is None:
            return (Reduced(lp),)
        cone = lp.cone
        # of every pair the shortest row
        number = np.full((lp.secrets, lp.secrets), -1, dtype=np.int64)
        order = np.argsort(-cone.log_ratio, kind="stable")
        number[cone.i[order], cone.j[order]] = order
        folding = _Folding(cone.i, cone.j, number, *images)
        if len(folding.kept) > _WORTH * lp.blocks:
            return (Reduced(lp),)
        return (Reduced(folding.folded(lp), folding.unfolded),)


def _applies(lp: BlockLP) -> bool:
    """Whether there is nothing but pairs that hold everywhere, and row sums."""
    more = lp.local or lp.auxiliary or lp.shared or lp.perspectives or len(lp.links) != 1
    if more or lp.held is not None or lp.cone.active is not None or lp.fixed.any():
        return False
    rows = averages(lp, lp.links[0])
    return lp.cone_rows > _LEAST and rows is not None and len(np.unique(rows)) == lp.secrets


@record
class _Folding:
    """The images of every secret and observable under every symmetry, (g, S) and (g, O)."""

    i: Indices
    j: Indices
    number: Ints
    """(S, S): numbers of the pairs."""
    secrets: Ints
    observables: Ints

    @property
    def kept(self) -> Ints:
        """The first observable of every orbit."""
        return np.unique(self.observables.min(axis=0))

    @property
    def orbit(self) -> Ints:
        """(S,): the number of every secret's orbit."""
        return np.unique(self.secrets.min(axis=0), return_inverse=True)[1]

    def folded(self, lp: BlockLP) -> BlockLP:
        """The program of one observable of each orbit."""
        smaller, orbit = lp.with_blocks(self.kept), self.orbit
        row, size = np.tile(orbit, smaller.blocks), np.bincount(orbit)
        matrix = sp.coo_array((1 / size[row], (row, np.arange(len(row)))))
        link = LinkRows(True, np.ones(len(size)), matrix.tocsr(), sp.csr_array((len(size), 0)))
        return replace(smaller, links=(link,))

    def unfolded(self, point: Point) -> Point:
        """A point of the target as one of the source."""
        z = np.zeros((self.secrets.shape[1], self.observables.shape[1]))
        column, images = point.cone.tocoo(), []
        pair, own = column.coords
        taken = np.zeros(z.shape[1], dtype=np.bool_)
        for secret, observable in zip(self.secrets, self.observables, strict=True):
            image = observable[self.kept]
            z[np.ix_(secret, image)] += point.z / len(self.secrets)
            new = ~taken[image]
            taken[image] = True
            used = new[own]
            row = self.number[secret[self.i[pair[used]]], secret[self.j[pair[used]]]]
            images.append((column.data[used], row, image[own[used]]))
        cone = entries((len(self.i), z.shape[1]), *images)
        price = (point.links[0] / np.bincount(self.orbit))[self.orbit]
        return replace(point, z=z, cone=cone, links=(price,))


def _symmetries(lp: BlockLP) -> tuple[Ints, Ints] | None:
    """All symmetries: images of secrets (g, S) and observables (g, O); None where there is none
    but the identity, or they are not found."""
    costly = _codes(lp.cost.sum(axis=1))
    if costly.max() >= _WORTH * lp.secrets:
        return None
    lengths = lp.cone.lengths(lp.secrets)
    lengths[np.diag_indices(lp.secrets)] = 0.0
    pair = _codes(np.where(np.isfinite(lengths), lengths, -1.0))
    cost = _codes(lp.cost)
    kinds = _kinds(np.column_stack([costly, np.sort(pair, axis=1), np.sort(pair, axis=0).T]))
    anchors = _anchors(pair, kinds)
    if anchors is None:
        return None
    here = _seen_from(pair, kinds, anchors)
    secrets, observables = [], []
    for images in _images(pair, kinds, anchors):
        secret = _carried(here, _seen_from(pair, kinds, images))
        if secret is None or (pair[np.ix_(secret, secret)] != pair).any():
            continue
        observable = _carried(cost.T, cost[secret].T)
        if observable is not None:
            secrets.append(secret)
            observables.append(observable)
    if not 1 < len(secrets) <= _MOST:
        return None
    return np.array(secrets), np.array(observables)


def _codes(values: Floats) -> Ints:
    """Whole numbers for values, the same where values hardly differ."""
    flat = values.ravel()
    order = np.argsort(flat)
    new = np.diff(flat[order], prepend=flat[order[:1]]) > _SAME * np.abs(flat).max(initial=0.0)
    codes = np.empty(len(flat), dtype=np.int64)
    codes[order] = np.cumsum(new)
    return codes.reshape(values.shape)


def _kinds(rows: Ints) -> Ints:
    """A number for every row, the same for equal rows."""
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()


def _seen_from(pair: Ints, kinds: Ints, anchors: tuple[int, ...]) -> Ints:
    """(S, d): what tells secrets apart, seen from the anchors."""
    views = [view for a in anchors for view in (pair[a], pair[:, a])]
    return np.column_stack([kinds, *views])


def _anchors(pair: Ints, kinds: Ints) -> tuple[int, ...] | None:
    """A few secrets from which no two others look alike, the rarest kinds first; None where there
    are none."""
    rare = np.argsort(np.bincount(kinds)[kinds], kind="stable")[:_CANDIDATES].tolist()
    anchors: tuple[int, ...] = ()
    for _ in range(_MOST_ANCHORS):
        tried = [(*anchors, a) for a in rare]
        apart = [_kinds(_seen_from(pair, kinds, some)).max() + 1 for some in tried]
        anchors = tried[np.argmax(apart)]
        if max(apart) == len(kinds):
            return anchors
    return None


def _images(pair: Ints, kinds: Ints, anchors: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Where symmetries may carry the anchors; none where there are too many possibilities."""
    found: list[tuple[int, ...]] = [()]
    for at, a in enumerate(anchors):
        alike = np.flatnonzero(kinds == kinds[a]).tolist()
        if len(found) * len(alike) > _TRIED:
            return []
        before = anchors[:at]
        found = [
            (*images, b)
            for images, b in product(found, alike)
            if all(
                pair[c, b] == pair[d, a] and pair[b, c] == pair[a, d]
                for c, d in zip(images, before, strict=True)
            )
        ]
        if len(found) > _MOST:
            return []
    return found


def _carried(here: Ints, there: Ints) -> Ints | None:
    """The one permutation with there[permutation] = here; None where there is none, or several."""
    own, other = np.lexsort(here.T), np.lexsort(there.T)
    if (here[own] != there[other]).any() or not (here[own[1:]] != here[own[:-1]]).any(axis=1).all():
        return None
    permutation = np.empty(len(own), dtype=np.int64)
    permutation[own] = other
    return permutation
