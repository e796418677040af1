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

/* T of a block's rows in ds2, and T/s in dz2, which has been taken in. */
INLINED void pulls(const Rows *rows, Index lo, Index hi, const int first, Real wp, Real wd, Real mu) {
    const Real *restrict s = rows->s, *restrict z = rows->z;
    Real *restrict ds = rows->ds, *restrict dz = rows->dz;
    Real *restrict ds2 = rows->ds2, *restrict dz2 = rows->dz2;
    for (Index k = lo; k < hi; k++) {
        if (!first) {
            ds[k] += wp * ds2[k];
            dz[k] += wd * dz2[k];
        }
        ds2[k] = first ? mu - ds[k] * dz[k] : pulled((s[k] + ds[k]) * (z[k] + dz[k]), mu);
        dz2[k] = ds2[k] / s[k];
    }
}

/* B = Gᵀ(T/s) with T = mu - ds dz for the ``first`` corrector. Else the last one is taken into the
 * direction with weights wp, wd, and T is Gondzio's. T is kept in ds2. */
KERNEL(corrector_rhs)(Index t, Index nt, const Rows *rows, Index width, Index first, Real wp,
                      Real wd, Real mu, Real *B) {
    for (Index o = t; o < rows->blocks; o += nt) {
        Index lo = rows->offset[o], hi = rows->offset[o + 1];
        Real *g = B + o * width;
        clear(g, width);
        if (first)
            pulls(rows, lo, hi, 1, wp, wd, mu);
        else
            pulls(rows, lo, hi, 0, wp, wd, mu);
        for (Index k = lo; k < hi; k++) add_row(rows, k, rows->dz2[k], g);
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

/* Rows that are looked at together. */
#define CHUNK 64

/* For every weight the largest -(d + weight d2)/value so far, and the least of these. */
typedef struct {
    const Real *weights;
    Real *most, least;
    Index count;
} Longest;

/* Take in the rows with d/value, d2/value = -at, -slope. With weights between the first and the last,
 * what is below all of the largest at both changes none. */
INLINED void take_in(Longest *longest, const Real *restrict at, const Real *restrict slope,
                     Index rows) {
    const Real low = longest->weights[0], high = longest->weights[longest->count - 1];
    const Real least = longest->least;
    Index beyond = 0;
    for (Index k = 0; k < rows; k++)
        beyond += !(at[k] + low * slope[k] <= least) | !(at[k] + high * slope[k] <= least);
    if (!beyond) return;
    for (Index q = 0; q < longest->count; q++) {
        Real weight = longest->weights[q], most = longest->most[q];
        for (Index k = 0; k < rows; k++) {
            Real reach = at[k] + weight * slope[k];
            most = reach <= most || isnan(most) ? most : reach;
        }
        longest->most[q] = most;
    }
    longest->least = HUGE_VAL;
    for (Index q = 0; q < longest->count; q++)
        longest->least = smaller(longest->least, longest->most[q]);
}

/* ds2, dz2 from dP; primal[t, q], dual[t, q] = largest -(d + weight_q d2)/value, and 0 at least. */
KERNEL(corrector_step)(Index t, Index nt, const Rows *rows, Index width, const Real *dP, Index count,
                       const Real *weights, Real *primal, Real *dual) {
    Longest of_s = {weights, primal + t * count, 0.0, count};
    Longest of_z = {weights, dual + t * count, 0.0, count};
    const Real *restrict s = rows->s, *restrict z = rows->z, *restrict ds = rows->ds;
    const Real *restrict dz = rows->dz;
    Real *restrict ds2 = rows->ds2, *restrict dz2 = rows->dz2;
    Real u[CHUNK], at_s[CHUNK], slope_s[CHUNK], at_z[CHUNK], slope_z[CHUNK];
    clear(of_s.most, count);
    clear(of_z.most, count);
    for (Index o = t; o < rows->blocks; o += nt)
        for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k += CHUNK) {
            Index here = sooner(CHUNK, rows->offset[o + 1] - k);
            for (Index a = 0; a < here; a++) u[a] = slack(rows, k + a, dP + o * width);
            for (Index a = 0; a < here; a++) {
                Real per_s = -1.0 / s[k + a], per_z = -1.0 / z[k + a];
                Real v = (z[k + a] * u[a] - ds2[k + a]) * per_s;
                at_s[a] = ds[k + a] * per_s;
                slope_s[a] = u[a] * per_s;
                at_z[a] = dz[k + a] * per_z;
                slope_z[a] = v * per_z;
                ds2[k + a] = u[a];
                dz2[k + a] = v;
            }
            take_in(&of_s, at_s, slope_s, here);
            take_in(&of_z, at_z, slope_z, here);
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
