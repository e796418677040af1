"""Pieces of the cone of columns by the best guess of an adversary, for bounds that rest on what
attacks miss (``docs/theory/least-variance.md``)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from optmech.base.arrays import Bools, Floats, Ints
from optmech.certificate.variance import PieceProof
from optmech.engines.information import Piece
from optmech.engines.limited import Pool
from optmech.engines.rays import needed
from optmech.pipeline.labels import Labels
from optmech.pipeline.pieces import Divided, rows_of

_APART = 0.3
"""Of the way to the nearest edge, how far the columns are that a piece starts from."""
_INSIDE = 1e-7


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
        empty.append(PieceProof("empty", None, four, weight[proof > 0], None, t))
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
                Piece(np.arange(n), np.ones(n), rows, np.column_stack([a, b]),
                      np.zeros((0, 2), dtype=np.int64), starts[k][at], charge)
            )  # fmt: skip
            scale = np.concatenate([np.ones(len(ends)), np.full(len(rows) - len(ends), 1 / size)])
            four = np.hstack([own[a], own[b]]).astype(np.int64)
            label = int(labels.at[k]) if limited else None
            forms.append(PieceProof("cone", None, four, scale[a] * scale[b], label, t))
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
    return np.asarray(columns / (columns @ prior)[:, None])


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
    columns, label, piece = (
        [pool.columns],
        [pool.labels],
        [(errors @ pool.columns.T).argmin(axis=0)],
    )
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
