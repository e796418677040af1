"""Compiled kernels beside dense matrices and plain loops: random blocks of all sizes, empty and
degenerate ones too, in every variant that runs here."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from native.blocks import Blocks, drained, worst

from optmech.base import native
from optmech.base.arrays import Floats, begins
from optmech.engines.structured import kernels
from optmech.engines.structured.compiled import least_degree
from optmech.engines.structured.kernels import Factors, Panels, SparseFactors, Totals
from optmech.engines.structured.rows import gondzio, target

SEEDS = range(40)
pytestmark = pytest.mark.skipif(not native.has_kernels(), reason="no kernels are compiled")


@pytest.fixture(params=native.variants(), autouse=True)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(native.CHOICE, request.param)
    return str(request.param)


def done(kernel: native.Work, parts: int = 3) -> None:
    for t in range(parts):
        kernel(t, parts)


def close(found: Floats, expected: Floats, rtol: float = 1e-12) -> None:
    size = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


def pulled(blocks: Blocks, q: Floats) -> Floats:
    """Gᵀq of every block."""
    return np.array([blocks.rows_matrix(o).T @ q[blocks.own(o)] for o in blocks.every])


def slack(blocks: Blocks, P: Floats) -> Floats:
    return np.concatenate([blocks.rows_matrix(o) @ P[o] for o in blocks.every])


@each("seed", SEEDS)
def test_right_hand_sides(seed: int) -> None:
    blocks = Blocks.random(seed, bounded=(1.0, 0.3)[seed % 2])
    rows, P, rd = blocks.rows, blocks.columns(), blocks.columns()
    B = np.empty_like(P)
    done(kernels.affine_rhs(blocks.packed, P, rd, B))
    s, z = rows.s, rows.z
    close(B, pulled(blocks, -z - z * (slack(blocks, P) - s) / s) - rd)
    done(kernels.corrector_rhs(blocks.packed, None, 0.7, B))
    expected = target((s, z), (rows.ds, rows.dz), 0.7, first=True)
    close(rows.ds2, expected)
    close(B, pulled(blocks, expected / s))
    rows.dz2[:] = z * 0.1
    ds, dz = rows.ds + 0.3 * rows.ds2, rows.dz + 0.6 * rows.dz2
    done(kernels.corrector_rhs(blocks.packed, (0.3, 0.6), 0.2, B))
    expected = gondzio((s + ds) * (z + dz), 0.2)
    close(rows.ds, ds)
    close(rows.dz, dz)
    np.testing.assert_allclose(
        rows.ds2, expected, rtol=1e-9, atol=1e-12 * (1 + np.abs(s * z).max(initial=0))
    )
    close(B, pulled(blocks, rows.ds2 / s))
    before = rd.copy()
    done(kernels.charge(blocks.packed, z, rd))
    close(rd, before - pulled(blocks, z))


@each("seed", SEEDS)
def test_steps(seed: int) -> None:
    blocks = Blocks.random(seed, bounded=(0.3, 1.0, 1.0)[seed % 3])
    rows, P, dP = blocks.rows, blocks.columns(), blocks.columns()
    s, z, stats = rows.s, rows.z, np.empty((3, 6))
    done(kernels.affine_step(blocks.packed, P, dP, stats))
    ds = slack(blocks, P + dP) - s
    dz = -z - z * ds / s
    close(rows.ds, ds)
    close(rows.dz, dz)
    largest = [max((-a / b).max(initial=0.0), 0.0) for a, b in ((ds, s), (dz, z))]
    close(stats[:, :2].max(axis=0), np.array(largest))
    sums = [float(np.sum(a * b)) for a, b in ((s, z), (s, dz), (ds, z), (ds, dz))]
    np.testing.assert_allclose(
        stats[:, 2:].sum(axis=0), sums, rtol=1e-12, atol=1e-12 * np.abs(ds * dz).sum() + 1e-12
    )
    T, weights = rows.ds2.copy(), np.sort(blocks.rng.uniform(0, 1, 7))
    primal, dual = np.empty((2, 3, 7))
    done(kernels.corrector_step(blocks.packed, dP, weights, primal, dual))
    u = slack(blocks, dP)
    v = (T - z * u) / s
    close(rows.ds2, u)
    close(rows.dz2, v)
    for found, value, d, d2 in ((primal, s, rows.ds, u), (dual, z, rows.dz, v)):
        reach = -(d + weights[:, None] * d2) / value
        close(found.max(axis=0), np.maximum(reach.max(axis=1, initial=0.0), 0.0))
    before = s.copy(), z.copy()
    done(kernels.move(blocks.packed, (0.3, 0.6), (0.1, 0.2)))
    close(rows.s, before[0] + 0.1 * (rows.ds + 0.3 * rows.ds2))
    close(rows.z, before[1] + 0.2 * (rows.dz + 0.6 * rows.dz2))
    out = np.empty_like(z)
    done(kernels.shifted(blocks.packed, z - 1, P, out))
    close(out, np.maximum(0.0, z - 1 + z / s * slack(blocks, P)))


def test_what_is_no_number_is_seen() -> None:
    blocks = Blocks(np.random.default_rng(0), 4, 20, 0.4, 0.0, 1.0)
    blocks.rows.ds[17] = np.nan
    primal, dual = np.empty((2, 3, 5))
    done(
        kernels.corrector_step(blocks.packed, blocks.columns(), np.linspace(0, 1, 5), primal, dual)
    )
    assert np.isnan(primal.max(axis=0)).all()
    assert np.isfinite(dual).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_of_the_whole_cone(seed: int) -> None:
    blocks = Blocks.random(seed, bounded=(0.3, 1.0)[seed % 2])
    m, P = blocks.m, np.abs(blocks.columns())
    P[:, 0] *= seed % 4 > 0  # columns with a zero
    decay = np.where(np.eye(m, dtype=bool), 0.0, np.exp(-blocks.rng.uniform(0, 2, (m, m))))
    later = decay.astype(np.float32)
    by_i, by_j = np.empty((2, blocks.count, m), dtype=np.int64)
    done(kernels.violations(blocks.packed, later, P, 0.4, by_i, by_j))
    for o in blocks.every:
        expected = worst(later.astype(float), P[o, :-1], blocks.held(o), 0.4)
        np.testing.assert_array_equal((by_i[o], by_j[o]), expected)
    out = np.empty_like(P)
    done(kernels.majorant(decay, P, out))
    close(out[:, :-1], np.maximum(P[:, :-1], (decay * P[:, None, :-1]).max(axis=2)))
    assert not out[:, -1].any()
    i, j = np.nonzero((decay > 0) & (blocks.rng.random((m, m)) < 0.4))
    given = begins(np.bincount(i, minlength=m)), j.copy(), decay[i, j]
    done(kernels.raised(*given, P, out))
    expected = P.copy()
    for _ in range(m):
        for a, b, factor in zip(i, j, decay[i, j], strict=True):
            expected[:, b] = np.maximum(expected[:, b], factor * expected[:, a])
    close(out, expected)
    z, rd = blocks.rows.z, blocks.columns()
    lowered = np.empty_like(z)
    done(kernels.drain(blocks.packed, z, rd, 30, lowered))
    close(lowered, drained(blocks, z, rd, 30), 1e-9)


def panels_of(blocks: Blocks) -> tuple[Panels, Factors]:
    """Panels in one of two orders, with room for factors."""
    orders = np.array([np.arange(blocks.m), blocks.rng.permutation(blocks.m)])
    panels = Panels.free(orders, blocks.count)
    first = blocks.rng.integers(1, blocks.m + 1, 2)
    done(kernels.partition(np.arange(blocks.count), blocks.packed, first, panels))
    base = begins(panels.size)
    factors = Factors(
        base, np.full(base[-1], np.nan), np.zeros((blocks.count, blocks.m)),
        np.full(blocks.count, 1e-15), np.zeros(blocks.count, dtype=np.int64),
    )  # fmt: skip
    return panels, factors


def condition(blocks: Blocks) -> float:
    """The worst one of the matrices with unit diagonals."""
    worst = 1.0
    for o in blocks.every:
        H = blocks.matrix(o)
        scale = 1 / np.sqrt(np.where(H.diagonal() > 0, H.diagonal(), 1.0))
        worst = max(
            worst, float(np.linalg.cond(H * scale[:, None] * scale + np.diag(H.diagonal() == 0)))
        )
    return worst


@each("seed", range(80))
def test_factors_in_panels(seed: int) -> None:
    """Inverses summed, products with coupling rows, and solutions."""
    blocks = Blocks.random(seed)
    m, rng, coupled = blocks.m, blocks.rng, seed % 3
    panels, factors = panels_of(blocks)
    parts, orders = 3, 2
    variable = rng.integers(0, m + 1, coupled)  # m is none
    value = rng.normal(size=(coupled, blocks.count)) * (rng.random((coupled, blocks.count)) < 0.8)
    totals = Totals(
        np.empty((parts, orders, m, m)), np.empty((parts, coupled, m)),
        np.empty((parts, coupled, coupled)), np.empty((parts, m, m)), variable, value,
    )  # fmt: skip
    done(kernels.factor(blocks.packed, panels, factors, False, totals))
    assert not factors.failed.any()
    sums = np.zeros((m, m))
    for lower, position in zip(totals.sums.sum(axis=0), panels.position, strict=True):
        full = np.tril(lower) + np.tril(lower, -1).T
        sums += full[np.ix_(position, position)]
    inverses = [blocks.inverse(o) for o in blocks.every]
    rtol = 1e-13 * (10 + condition(blocks))
    close(sums, np.sum(inverses, axis=0), rtol)
    a = np.zeros((coupled, blocks.count, m + 1))
    np.put_along_axis(
        a,
        np.broadcast_to(variable[:, None, None], (coupled, blocks.count, 1)),
        value[:, :, None],
        2,
    )
    mixed = np.einsum("lox,oxy->ly", a[:, :, :m], inverses)
    close(totals.mixed.sum(axis=0), mixed, rtol)
    close(
        totals.coupling.sum(axis=0),
        np.einsum("lox,oxy,koy->lk", a[..., :m], inverses, a[..., :m]),
        rtol,
    )
    for count in (1, 2, 5):
        B = blocks.columns(count)
        expected = np.einsum("oxy,oqy->oqx", inverses, B[:, :, :m])
        done(kernels.solve(panels, factors, B))
        close(B[:, :, :m], expected, rtol)
        assert not B[:, :, m].any()


def test_what_is_not_definite_is_said() -> None:
    blocks = Blocks(np.random.default_rng(3), 5, 21, 0.3, 0.0, 1.0)
    rows, k = blocks.rows, int(blocks.rows.offset[2])
    # a pair takes nearly all from the diagonal, and more from beside it
    rows.z[k] -= rows.s[k] * (blocks.matrix(2)[rows.j[k], rows.j[k]] - 1e-3) / rows.e[k] ** 2
    assert np.linalg.eigvalsh(blocks.matrix(2))[0] < 0 < blocks.matrix(2).diagonal().min()
    panels, factors = panels_of(blocks)
    nothing = np.empty((3, 0, 0))
    totals = Totals(
        np.empty((3, 2, 21, 21)), nothing, nothing, nothing, np.zeros(0, int), np.zeros((0, 5))
    )
    for alone in (True, False):
        done(kernels.factor(blocks.packed, panels, factors, alone, totals))
        assert factors.failed.tolist() == [0, 0, 1, 0, 0]


def sparse_of(blocks: Blocks) -> SparseFactors:
    """Factors in an order of least degree of the first block's pairs, each block with its own."""
    import scipy.sparse as sp

    rows, own, m = blocks.rows, blocks.own(0), blocks.m
    i, j = rows.i[own], rows.j[own]
    graph = sp.csc_array((np.ones((i < m).sum()), (i[i < m], j[i < m])), shape=(m, m))
    count = blocks.count
    factors = SparseFactors(
        np.tile(least_degree(graph), (count, 1)), np.zeros((count, m), np.int32),
        np.zeros((count, m + 1), np.int64), np.zeros(count + 1, np.int64), np.zeros(0, np.int32),
        np.zeros(0), np.zeros((count, m)), np.full(count, 1e-15), np.zeros(count, np.int64),
    )  # fmt: skip
    every = np.arange(count)
    done(kernels.pattern(every, blocks.packed, factors, False))
    base = begins(factors.column[:, -1])
    room = np.zeros(base[-1], np.int32), np.full(base[-1], np.nan)
    factors = factors._replace(base=base, row=room[0], value=room[1])
    done(kernels.pattern(every, blocks.packed, factors, True))
    return factors


@each("seed", range(80))
def test_sparse_factors(seed: int) -> None:
    blocks = Blocks.random(seed)
    m, count = blocks.m, blocks.count
    factors = sparse_of(blocks)
    wanted = blocks.rng.random((count, m)) < (0.5, 1.0, 0.05)[seed % 3]
    total, diagonal = np.empty((2, m, m)), np.empty((3, m))
    done(kernels.sparse_factor(blocks.packed, factors, wanted, total, diagonal))
    assert not factors.failed.any()
    found = np.diag(diagonal.sum(axis=0))
    for part in total[0], total[1]:
        found += np.tril(part, -1) + np.tril(part, -1).T
    upper = np.triu(total[0], 1)
    found += upper + upper.T  # two parts share the first square, the third has the other alone
    inverses = [blocks.inverse(o) for o in blocks.every]
    rtol = 1e-13 * (10 + condition(blocks))
    close(found, sum(inv * np.outer(w, w) for inv, w in zip(inverses, wanted, strict=True)), rtol)
    B = blocks.columns(2)
    expected = np.einsum("oxy,oqy->oqx", inverses, B[:, :, :m])
    done(kernels.sparse_solve(factors, B))
    close(B[:, :, :m], expected, rtol)


@each("seed", range(30))
def test_blocks_of_one_pattern(seed: int) -> None:
    """Sums of solutions, eight blocks abreast, in all digits and half of them; and the field."""
    rng = np.random.default_rng(seed)
    count, m = int(rng.integers(1, 20)), int(rng.choice([1, 4, 9, 26]))
    one = Blocks(rng, 1, m, 0.2, 0.5, 1.0).rows
    blocks = Blocks(rng, count, m, 0.2, 0.5, 1.0)
    size = len(one)
    e, s, z = (
        np.tile(part, count) * rng.uniform(0.5, 2, size * count) for part in (one.e, one.s, one.z)
    )
    i, j = np.tile(one.i, count), np.tile(one.j, count)
    blocks.rows = type(one)(np.arange(count + 1) * size, i, j, e, s, z)
    factors = sparse_of(blocks)
    diagonal = np.empty((3, 0))
    done(
        kernels.sparse_factor(
            blocks.packed, factors, np.zeros((0, 0), bool), np.empty((2, 0, 0)), diagonal
        )
    )
    order, column, entries = (
        np.argsort(factors.position[0]),
        factors.column[0],
        int(factors.base[1]),
    )
    total = sum(blocks.inverse(o) for o in blocks.every)
    y = rng.normal(size=m)
    for kind, rtol in ((np.float64, 1e-10), (np.float32, 1e-4)):
        groups = -(-count // kernels.ABREAST)
        value = np.zeros((groups, entries, kernels.ABREAST), dtype=kind)
        scale, sums = np.zeros((groups, m, kernels.ABREAST)), np.empty((3, m))
        done(kernels.beside(factors, value, scale))
        done(kernels.summed(column, factors.row[:entries], value, scale, y[order], sums))
        close(sums.sum(axis=0), (total @ y)[order], rtol)
    covariance = np.empty((3, entries))
    done(kernels.covariances(blocks.packed, factors, covariance))
    place = np.repeat(np.arange(m), np.diff(column))
    row = factors.row[:entries]
    ordered = total[np.ix_(order, order)]
    close(covariance.sum(axis=0), ordered[place, row], 1e-9)
    weight, spread = np.empty(entries), np.empty(m)
    done(kernels.regressed(column, row, ordered[place, row], weight, spread))
    for k in range(m):
        own = row[column[k] + 1 : column[k + 1]]
        best = np.linalg.lstsq(ordered[np.ix_(own, own)], ordered[own, k], rcond=None)[0]
        np.testing.assert_allclose(
            -weight[column[k] + 1 : column[k + 1]], best, rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(spread[k], ordered[k, k] - ordered[k, own] @ best, rtol=1e-6)


@each("seed", range(30))
def test_prices_are_proved(seed: int) -> None:
    """What multipliers leave of costs is what they leave, and no price is below the least of it;
    columns go on being in the cone, with sums of one."""
    rng = np.random.default_rng(seed)
    blocks = Blocks(rng, int(rng.integers(1, 6)), int(rng.choice([2, 5, 16, 33])), 1.0, 0.0, 0.0)
    m, rows = blocks.m, blocks.rows
    panels, _ = panels_of(blocks)
    v = np.full((blocks.count, m + 1), 1 / m)
    v[:, -1] = 0.0
    rows.s[:] = slack(blocks, v)
    rows.z[:] = 0.1 / rows.s / m
    cost, chosen = blocks.columns(), np.arange(0, blocks.count, 2)
    left, value = cost[:, :-1].copy(), np.full(blocks.count, 7.0)
    done(kernels.price(blocks.packed, panels, chosen, cost, 1e-9, 0.0, v, left, value))
    charged = cost[:, :-1] - pulled(blocks, rows.z)[:, :-1]
    close(left[chosen], charged[chosen])
    assert (rows.s > 0).all()
    assert (rows.z > 0).all()
    for o in chosen:
        own = blocks.own(o)
        assert value[o] >= left[o].min() - 1e-9
        if left[o].min() < -1e-9:  # of use: the price is known, by a column that has it
            np.testing.assert_allclose(v[o].sum(), 1, rtol=1e-8)
            np.testing.assert_allclose(
                blocks.rows_matrix(o) @ v[o], rows.s[own], rtol=1e-7, atol=1e-8
            )
            np.testing.assert_allclose(v[o] @ cost[o], value[o], rtol=1e-9, atol=1e-12)
            assert value[o] - left[o].min() <= 0.1 * abs(value[o]) + 1e-9
    assert (np.delete(value, chosen) == 7.0).all()
