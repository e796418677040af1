"""Pieces of the cone of columns that a bound is proved on: all of it, the facets of one secret, or
columns of two values (``docs/theory/least-variance.md``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.variance import PieceProof
from optmech.certificate.variance_bound import facets
from optmech.engines.information import Piece
from optmech.engines.limited import Pool
from optmech.engines.rays import needed
from optmech.pipeline.labels import Labels

_PRODUCTS = 400_000
"""Products of rows that one program has at most."""

Divided = tuple[list[Piece], list[PieceProof]]


def _row(i: int, j: int, factor: Floats) -> tuple[float, float]:
    """Entries at i and at j of the row f_ij v_j - v_i, scaled."""
    root = float(np.sqrt(factor[i, j]))
    return -1 / root, root


def rows_of(ends: Ints, factor: Floats, size: int) -> Floats:
    """The rows f_ij v_j - v_i of pairs (i, j), scaled, over so many coordinates."""
    out = np.zeros((len(ends), size))
    for k, (i, j) in enumerate(ends.tolist()):
        out[k, i], out[k, j] = _row(i, j, factor)
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
    return np.asarray((matrix / (prior @ matrix)) @ matrix.T)


def _proof_form(form: str, facet: tuple[int, int] | None, ends: Ints, both: Ints) -> PieceProof:
    rows = np.hstack([ends[both[:, 0]], ends[both[:, 1]]])
    return PieceProof(form, facet, rows.astype(np.int64), np.zeros(len(rows)))


def _near(ends: Ints, factor: Floats) -> Ints:
    """The pairs of rows whose products count: all, or of the limits that are nearest."""
    logs = np.log(factor[ends[:, 0], ends[:, 1]])
    most = int(np.sqrt(2 * _PRODUCTS))
    chosen = np.argsort(logs, kind="stable")[:most] if len(ends) > most else np.arange(len(ends))
    a, b = np.triu_indices(len(chosen))
    return np.column_stack([chosen[a], chosen[b]])


def cone(factor: Floats, prior: Floats) -> Divided:
    """All of it."""
    n = len(factor)
    ends = np.argwhere(needed(factor))
    both = _near(ends, factor)
    piece = Piece(
        np.arange(n), np.ones(n), rows_of(ends, factor, n), both,
        np.zeros((0, 2), dtype=np.int64), _start(factor, prior),
    )  # fmt: skip
    return [piece], [_proof_form("cone", None, ends, both)]


def levels(given: Floats, prior: Floats) -> Divided:
    """Columns of two values: beside them stands the lower one."""
    n = len(given)
    factor = np.ones((n + 1, n + 1))
    factor[:n, n] = given[0, 1]
    every = np.arange(n)
    ends = np.vstack(
        [np.column_stack([every, np.full(n, n)]), np.column_stack([np.full(n, n), every])]
    )
    a, b = np.triu_indices(2 * n)
    same = b == a + n
    level = float(factor[0, n])
    mean, square = (level + 1) / 2, (level**2 + 1) / 2
    start = np.full((n + 1, n + 1), mean**2)
    start[every, every] = square
    start[n, :n] = start[:n, n] = mean
    start[n, n] = 1.0
    scale = 1 / float(start[0, :n] @ prior)
    both = np.column_stack([a, b])
    piece = Piece(
        every, np.ones(n), rows_of(ends, factor, n + 1), both[~same], both[same], start * scale
    )
    return [piece], [_proof_form("levels", None, ends, np.vstack([both[~same], both[same]]))]


def on_facets(factor: Floats, prior: Floats) -> Divided:
    """Pieces for the limits of one secret, one of which is tight at every extreme ray."""
    n = len(factor)
    pairs = needed(factor)
    limits = np.where(pairs, factor, np.inf)
    middle = int(np.log(factor).max(axis=1).argmin())
    ends = np.argwhere(pairs)
    pieces, forms = [], []
    for i, j in sorted(facets(limits, middle)):
        onto = np.delete(np.eye(n), i, axis=1)
        onto[i, j - (j > i)] = factor[i, j]
        rows = rows_of(ends, factor, n) @ onto
        size = np.abs(rows).max(axis=1)
        kept = np.flatnonzero(size > 1e-9)
        rows = rows[kept] / size[kept, None]
        start = _within(factor, i, j, prior)
        if not len(start):
            return [], []
        a, b = np.triu_indices(len(kept))
        others = np.delete(np.arange(n), i)
        piece = Piece(
            onto.argmax(axis=1), onto.max(axis=1), rows, np.column_stack([a, b]),
            np.zeros((0, 2), dtype=np.int64), start[np.ix_(others, others)] / n,
        )  # fmt: skip
        pieces.append(piece)
        form = _proof_form("facet", (i, j), ends[kept], np.column_stack([a, b]))
        forms.append(form._replace(weight=1 / (size[kept][a] * size[kept][b])))
    return pieces, forms


def _within(factor: Floats, i: int, j: int, prior: Floats) -> Floats:
    """The mean of vvᵀ over vectors of the cone with v_i = f_ij v_j, πᵀv = 1: least majorants of
    random ones. Empty where there are too few."""
    n = len(factor)
    drawn = np.exp(np.random.default_rng(0).normal(size=(8 * n, n)) * np.log(factor).max() / 2)
    for _ in range(2):
        drawn = (drawn[:, :, None] / factor).max(axis=1)
        drawn[:, i] = factor[i, j] * drawn[:, j]
    drawn = (drawn[:, :, None] / factor).max(axis=1)
    on = np.abs(drawn[:, i] / (factor[i, j] * drawn[:, j]) - 1) < 1e-12
    kept = drawn[on] / (drawn[on] @ prior)[:, None]
    return np.asarray(kept.T @ kept / len(kept)) if len(kept) > n else np.zeros((0, 0))


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
