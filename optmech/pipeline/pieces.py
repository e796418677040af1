"""Pieces of the cone of columns that a bound is proved on: all of it, or columns of two values; by
labels and by the best guess of an adversary (``docs/theory/least-variance.md``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from optmech.base.arrays import Bools, Floats, Ints
from optmech.certificate.variance import PieceProof
from optmech.engines.information import Piece
from optmech.engines.limited import Pool
from optmech.engines.rays import needed
from optmech.pipeline.labels import Labels

_PRODUCTS = 400_000
"""Products of rows that one program has at most."""
_APART = 0.3
"""Of the way to the nearest edge, how far the columns are that a piece starts from."""
_SAME = 1e-9
"""Of a logarithm, what limits differ by that are equally near."""
_INSIDE = 1e-7
_FAR, _EVEN = 1e6, 0.1
"""A factor of secrets that are far apart; what starts with reports that say nothing, there."""

Divided = tuple[list[Piece], list[PieceProof]]


def rows_of(ends: Ints, factor: Floats, size: int) -> Floats:
    """The rows f_ij v_j - v_i of pairs (i, j), scaled, over so many coordinates."""
    out, every, (i, j) = np.zeros((len(ends), size)), np.arange(len(ends)), ends.T
    root = np.sqrt(factor[i, j])
    out[every, i], out[every, j] = -1 / root, root
    return out


def _start(factor: Floats, prior: Floats) -> Floats:
    """The information of a mechanism inside all limits: columns that fall as fast as they may,
    where these add up, else an exponential mechanism."""
    n = len(factor)
    matrix = factor**-0.45
    matrix /= matrix.sum(axis=1, keepdims=True)
    for share in (0.9, 0.7):
        columns = factor**-share
        weights = np.linalg.lstsq(columns, np.ones(n), rcond=None)[0]
        if weights.min() > 0 and np.allclose(columns @ weights, 1.0, rtol=1e-9):
            matrix = columns * weights
            break
    return (matrix / (prior @ matrix)) @ matrix.T


def _proof_form(form: str, ends: Ints, both: Ints) -> PieceProof:
    rows = np.hstack([ends[both[:, 0]], ends[both[:, 1]]])
    return PieceProof(form, rows.astype(np.int64), np.zeros(len(rows)))


def _nearest(ends: Ints, factor: Floats) -> Ints:
    """The limits (i, j) whose products count: all, or the nearest. Those that are equally near
    count together or not, so that symmetries of the secrets are some of the limits too."""
    logs, most = np.log(factor[ends[:, 0], ends[:, 1]]), int(np.sqrt(2 * _PRODUCTS))
    if len(ends) <= most:
        return ends
    least = np.sort(logs)[most]
    for nearer in (logs < least * (1 - _SAME), logs <= least * (1 + _SAME)):
        if 0 < nearer.sum() <= 2 * most:
            break
    else:
        nearer = np.argsort(logs, kind="stable")[:most]
    return np.asarray(ends[nearer])


def cone(factor: Floats, prior: Floats) -> Divided:
    """All of it."""
    n = len(factor)
    ends = _nearest(np.argwhere(needed(factor)), factor)
    both = np.column_stack(np.triu_indices(len(ends)))
    none = np.zeros((0, 2), dtype=np.int64)
    piece = Piece(rows_of(ends, factor, n), both, none, _start(factor, prior))
    i, k = np.sort(ends[both, 1]).T
    if (far := factor[i, k] > _FAR).any():
        # of secrets that are far apart all rows together, lest multipliers be as large
        groups = np.unique(np.where(far, n * i + k, -1 - np.arange(len(both))), return_inverse=True)
        piece = replace(piece, groups=groups[1], start=(1 - _EVEN) * piece.start + _EVEN)
    return [piece], [_proof_form("cone", ends, both)]


def levels(given: Floats, prior: Floats) -> Divided:
    """Columns of two values: beside them stands the lower one."""
    n = len(given)
    factor = np.ones((n + 1, n + 1))
    factor[:n, n] = given[0, 1]
    every = np.arange(n)
    ends = np.column_stack([every, np.full(n, n)])
    ends = np.vstack([ends, ends[:, ::-1]])
    a, b = np.triu_indices(2 * n)
    same = b == a + n
    level, start = float(factor[0, n]), np.zeros((n + 1, n + 1))
    # of bits that are alone: of several shares, lest all columns have one sum
    for share in (0.1, 0.5, 0.9):
        mean, square = 1 + share * (level - 1), 1 + share * (level**2 - 1)
        own = np.full((n + 1, n + 1), mean**2)
        own[every, every] = square
        own[n, :n] = own[:n, n] = mean
        own[n, n] = 1.0
        start += own / (3 * float(own[0, :n] @ prior))
    both = np.column_stack([a, b])
    piece = Piece(rows_of(ends, factor, n + 1), both[~same], both[same], start)
    return [piece], [_proof_form("levels", ends, np.vstack([both[~same], both[same]]))]


def by_label(divided: Divided, labels: Labels, made: tuple[Pool, Floats], prior: Floats) -> Divided:
    """The same for every label, whose columns count what limits say. Where it starts, columns of
    the pool ``made`` have its weights, which keep the limits, nearly."""
    pieces, forms = divided
    charges, most = labels.charges()
    pool, weights = made
    share = 1.0 / len(charges)
    columns = pool.columns
    if forms[0].form == "levels":
        columns = np.column_stack([columns, columns.min(axis=1)])
    scaled = weights / (pool.columns @ prior)
    inside = []
    for k in range(len(charges)):
        own = columns[pool.labels == k]
        inside.append((own.T * scaled[pool.labels == k]) @ own)
    n = len(prior)
    spent = sum(own @ part[:n, :n] @ prior for own, part in zip(charges, inside, strict=True))
    plain = sum(own @ pieces[0].start[:n, :n] @ prior * share for own in charges)
    left, over = most - spent, np.maximum(plain - spent, 1e-300)
    part = float(np.clip(0.5 * (left / over).min(), 1e-6, 0.5))
    starts = [(1 - part) * own + part * share * pieces[0].start for own in inside]
    return (
        [replace(pieces[0], charge=own, start=start)
         for own, start in zip(charges, starts, strict=True)],
        [forms[0]._replace(label=k) for k in labels.at.tolist()],
    )  # fmt: skip


def by_guess(
    factor: Floats, labels: Labels, made: tuple[Pool, Floats], prior: Floats
) -> tuple[Divided, list[PieceProof]] | None:
    """A piece for every label and best guess, and proofs of those guesses that are never the best;
    None where a piece has no inside, or no start was found."""
    n = len(factor)
    errors = labels.limits.errors[0]
    ends = np.argwhere(needed(factor))
    ratios = rows_of(ends, factor, n)
    size = float(np.abs(errors).max())
    places, pieces, empty = list[int](), list[tuple[Floats, Ints, Floats]](), list[PieceProof]()
    for t in range(len(errors)):
        others = np.delete(np.arange(len(errors)), t)
        rows = np.vstack([ratios, (errors[others] - errors[t]) / size])
        own = np.vstack([ends, np.column_stack([n + others, n + others])])
        around = _inside(rows, prior)
        if around is not None:
            places.append(t)
            pieces.append((rows, own, around))
            continue
        proof = _never(rows)
        if proof is None:
            return None
        weight = proof.copy()
        weight[len(ratios) :] /= size
        four = np.hstack([own, own])[proof > 0]
        empty.append(PieceProof("empty", four, weight[proof > 0], None, t))
    starts = _starts(labels, made, [p[2] for p in pieces], errors[places], prior)
    if starts is None:
        return None
    charges, _ = labels.charges(attacked=True)
    out, forms = list[Piece](), list[PieceProof]()
    limited = len(labels.limits.most) > 0
    for k in range(len(charges)):
        for at, (t, (rows, own, _)) in enumerate(zip(places, pieces, strict=True)):
            a, b = np.triu_indices(len(rows))
            charge = np.vstack([charges[k], -errors[t][None] / labels.limits.least[0]])
            out.append(
                Piece(rows, np.column_stack([a, b]), np.zeros((0, 2), dtype=np.int64),
                      starts[k][at], charge)
            )  # fmt: skip
            scale = np.concatenate([np.ones(len(ends)), np.full(len(rows) - len(ends), 1 / size)])
            four = np.hstack([own[a], own[b]]).astype(np.int64)
            label = int(labels.at[k]) if limited else None
            forms.append(PieceProof("cone", four, scale[a] * scale[b], label, t))
    return (out, forms), empty


def _inside(rows: Floats, prior: Floats) -> Floats | None:
    """Columns around one that is inside, (k, S) with πᵀv = 1; None where none is."""
    r, n = rows.shape
    found = linprog(
        np.r_[np.zeros(n), -1.0], A_ub=np.column_stack([-rows, np.ones(r)]), b_ub=np.zeros(r),
        A_eq=np.r_[prior, 0.0][None], b_eq=[1.0], bounds=[(0, None)] * n + [(None, 1.0)],
    )  # fmt: skip
    if found.x is None or found.x[-1] <= _INSIDE:
        return None
    middle = found.x[:n]
    out = [middle]
    for s in range(n):
        step = np.zeros(n)
        step[s] = _APART * min(found.x[-1] / np.abs(rows[:, s]).max(), middle[s])
        out += [middle + step, middle - step]
    columns = np.array(out)
    return columns / (columns @ prior)[:, None]


def _never(rows: Floats) -> Floats | None:
    """Weights >= 0 of rows whose sum is below 0 everywhere, so that no column >= 0 has them all."""
    r, n = rows.shape
    found = linprog(np.ones(r), A_ub=rows.T, b_ub=-np.ones(n))
    return None if found.x is None else np.maximum(found.x, 0.0)


def _starts(
    labels: Labels, made: tuple[Pool, Floats], around: list[Floats], errors: Floats, prior: Floats
) -> list[list[Floats]] | None:
    """For every label and piece a matrix inside: together they are a mechanism that keeps the
    limits."""
    pool, weights = made
    count, kinds = len(around), labels.limits.losses.shape[1]
    columns, label = [pool.columns], [pool.labels]
    piece = [(errors @ pool.columns.T).argmin(axis=0)]
    for k in range(kinds):
        for t, own in enumerate(around):
            columns.append(own)
            label.append(np.full(len(own), k))
            piece.append(np.full(len(own), t))
    v, which, at = np.vstack(columns), np.concatenate(label), np.concatenate(piece)
    first = len(pool.labels)
    own_counts, bounds = labels.limits.counts(v, which), labels.limits.bounds
    left = 0.5 * (bounds - own_counts[:, :first] @ weights)
    fresh: Bools = np.arange(len(v)) >= first
    found = linprog(
        np.r_[np.zeros(len(v)), -1.0],
        A_ub=np.vstack([np.column_stack([own_counts, np.zeros(len(bounds))]),
                        np.column_stack([-np.eye(len(v))[fresh], np.ones(int(fresh.sum()))])]),
        b_ub=np.concatenate([bounds - left, np.zeros(int(fresh.sum()))]),
        A_eq=np.column_stack([v.T, np.zeros(v.shape[1])]), b_eq=np.ones(v.shape[1]),
        bounds=[(0, None)] * (len(v) + 1),
    )  # fmt: skip
    if found.x is None or not found.x[-1] > 0:
        return None
    scaled = found.x[:-1] / (v @ prior)

    def inside(mask: Bools) -> Floats:
        return np.asarray((v[mask].T * scaled[mask]) @ v[mask])

    return [[inside((which == k) & (at == t)) for t in range(count)] for k in range(kinds)]
