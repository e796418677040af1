/* Passes over the pair rows: right-hand sides, steps, slacks and multipliers. */
#include "kernels.h"

/* B = Gᵀ(-z - z (slack residual)/s) - rd. */
KERNEL(affine_rhs)(Index t, Index nt, const Rows *rows, Index width, const Real *P, const Real *rd,
                   Real *B) {
    for (Index o = t; o < rows->blocks; o += nt) {
        Real *g = B + o * width;
        const Real *p = P + o * width, *residual = rd + o * width;
        for (Index x = 0; x < width; x++) g[x] = -residual[x];
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
            Real s = rows->s[k], z = rows->z[k];
            add_row(rows, k, -z - z * (slack(rows, k, p) - s) / s, g);
        }
        g[width - 1] = 0.0;
    }
    return 0;
}

/* What Gondzio's corrector is to move a product by, which pulls towards [mu/10, 10 mu] what a full
 * step would leave elsewhere, and down by no more than 10 mu. */
PART Real pulled(Real product, Real mu) {
    Real within = smaller(larger(product, 0.1 * mu), 10 * mu);
    return larger(within - product, -10 * mu);
}

/* B = Gᵀ(T/s) with T = mu - ds dz for the ``first`` corrector. Else the last one is taken into the
 * direction with weights wp, wd, and T is Gondzio's. T is kept in ds2. */
KERNEL(corrector_rhs)(Index t, Index nt, const Rows *rows, Index width, Index first, Real wp,
                      Real wd, Real mu, Real *B) {
    for (Index o = t; o < rows->blocks; o += nt) {
        Real *g = B + o * width;
        clear(g, width);
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
            Real T;
            if (first) {
                T = mu - rows->ds[k] * rows->dz[k];
            } else {
                rows->ds[k] += wp * rows->ds2[k];
                rows->dz[k] += wd * rows->dz2[k];
                T = pulled((rows->s[k] + rows->ds[k]) * (rows->z[k] + rows->dz[k]), mu);
            }
            rows->ds2[k] = T;
            if (T != 0.0) add_row(rows, k, T / rows->s[k], g);
        }
        g[width - 1] = 0.0;
    }
    return 0;
}

/* ds, dz from dP; stats[t] = largest -ds/s, -dz/z, and the sums s z, s dz, ds z, ds dz. */
KERNEL(affine_step)(Index t, Index nt, const Rows *rows, Index width, const Real *P, const Real *dP,
                    Real *stats) {
    Real a = 0, b = 0, sz = 0, sdz = 0, dsz = 0, dd = 0;
    for (Index o = t; o < rows->blocks; o += nt) {
        const Real *p = P + o * width, *x = dP + o * width;
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
            Index i = rows->i[k], j = rows->j[k];
            Real s = rows->s[k], z = rows->z[k];
            Real u = rows->e[k] * (x[j] + p[j]) - (x[i] + p[i]) - s;
            Real v = -z - z * u / s;
            rows->ds[k] = u;
            rows->dz[k] = v;
            sz += s * z;
            sdz += s * v;
            dsz += u * z;
            dd += u * v;
            a = larger(a, -u / s);
            b = larger(b, -v / z);
        }
    }
    memcpy(stats + 6 * t, (Real[]){a, b, sz, sdz, dsz, dd}, 6 * sizeof(Real));
    return 0;
}

/* most[q] = max(most[q], -(d0 + weight_q d1)); ``least`` is the least of them. With weights between
 * the first and the last, what is below all of them at both changes none. */
INLINED void record(Real d0, Real d1, Index count, const Real *weights, Real *most, Real *least) {
    if (d0 + weights[0] * d1 <= *least && d0 + weights[count - 1] * d1 <= *least) return;
    Real lowest = HUGE_VAL;
    for (Index q = 0; q < count; q++) {
        Real reach = d0 + weights[q] * d1;
        most[q] = reach <= most[q] || isnan(most[q]) ? most[q] : reach;
        lowest = smaller(lowest, most[q]);
    }
    *least = lowest;
}

/* ds2, dz2 from dP; primal[t, q], dual[t, q] = largest -(d + weight_q d2)/value, and 0 at least. */
KERNEL(corrector_step)(Index t, Index nt, const Rows *rows, Index width, const Real *dP, Index count,
                       const Real *weights, Real *primal, Real *dual) {
    Real *a = primal + t * count, *b = dual + t * count, least_a = 0, least_b = 0;
    clear(a, count);
    clear(b, count);
    for (Index o = t; o < rows->blocks; o += nt) {
        const Real *x = dP + o * width;
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
            Real u = slack(rows, k, x), per_s = 1.0 / rows->s[k], per_z = -1.0 / rows->z[k];
            Real v = (rows->ds2[k] - rows->z[k] * u) * per_s;
            rows->ds2[k] = u;
            rows->dz2[k] = v;
            record(-rows->ds[k] * per_s, -u * per_s, count, weights, a, &least_a);
            record(rows->dz[k] * per_z, v * per_z, count, weights, b, &least_b);
        }
    }
    return 0;
}

/* A step along the direction with the last corrector's weights. */
KERNEL(move)(Index t, Index nt, const Rows *rows, Real wp, Real wd, Real primal, Real dual) {
    Index count = rows->offset[rows->blocks];
    for (Index k = t * count / nt; k < (t + 1) * count / nt; k++) {
        rows->s[k] += primal * (rows->ds[k] + wp * rows->ds2[k]);
        rows->z[k] += dual * (rows->dz[k] + wd * rows->dz2[k]);
    }
    return 0;
}

/* R -= Gᵀz. */
KERNEL(charge)(Index t, Index nt, const Rows *rows, Index width, const Real *z, Real *R) {
    for (Index o = t; o < rows->blocks; o += nt) {
        Real *g = R + o * width;
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) add_row(rows, k, -z[k], g);
        g[width - 1] = 0.0;
    }
    return 0;
}

/* out = max(0, base + (z/s) G x). */
KERNEL(shifted)(Index t, Index nt, const Rows *rows, Index width, const Real *base, const Real *x,
                Real *out) {
    for (Index o = t; o < rows->blocks; o += nt)
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
            Real moved = base[k] + rows->z[k] / rows->s[k] * slack(rows, k, x + o * width);
            out[k] = larger(0.0, moved);
        }
    return 0;
}

/* Lower multipliers where the reduced cost is negative: ``out`` are multipliers <= z. A row takes
 * e z from j and gives z to i, so lowering it repairs j and costs i less. */
KERNEL(drain)(Index t, Index nt, const Rows *rows, Index width, const Real *z, const Real *rd,
              Index sweeps, Real *out) {
    Index m = width - 1;
    Real *reduced = reals(3 * width), *inflow = reduced + width, *share = inflow + width;
    if (!reduced) return 1;
    for (Index o = t; o < rows->blocks; o += nt) {
        Index lo = rows->offset[o], hi = rows->offset[o + 1];
        copy(out + lo, z + lo, hi - lo);
        copy(reduced, rd + o * width, width);
        for (Index sweep = 0; sweep < sweeps; sweep++) {
            Real least = HUGE_VAL;
            for (Index x = 0; x < m; x++) least = smaller(least, reduced[x]);
            if (least > -1e-16) break;
            clear(inflow, width);
            clear(share, width);
            for (Index k = lo; k < hi; k++) inflow[rows->j[k]] += rows->e[k] * out[k];
            for (Index j = 0; j < m; j++)
                if (reduced[j] < 0 && inflow[j] > 0) {
                    share[j] = smaller(1.0, -reduced[j] / inflow[j] * (1 + 1e-12));
                    reduced[j] += share[j] * inflow[j];
                }
            for (Index k = lo; k < hi; k++) {
                Real less = share[rows->j[k]] * out[k];
                if (less > 0) {
                    out[k] -= less;
                    reduced[rows->i[k]] -= less;
                }
            }
        }
    }
    free(reduced);
    return 0;
}
