/* What all pairs of the cone ask of columns, those that are held as rows and the others. */
#include "kernels.h"

/* Marks the pairs that a block holds, or unmarks them, in ``held`` (m, width). */
PART void mark(const Rows *rows, Index o, Index width, uint8_t *held, uint8_t sign) {
    for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++)
        if (rows->i[k] < width - 1) held[rows->i[k] * width + rows->j[k]] = sign;
}

/* Blocks that are looked at together, so that a row of all pairs is read once for them, ... */
#define TOGETHER 16
/* ... pairs of a row that are looked at together, in half the digits, and what that may lose. */
#define STRIP 64
#define SCREENED (1.0 - 1e-6)
/* Pairs of a block that are kept before they are looked at one by one. */
#define KEPT 32768

/* In half the digits what is sure to lie below x: everything does where these cannot hold it. */
PART float below(Real x) { return x > 1e-30 && x < 1e30 ? (float)(x * SCREENED) : -1.0f; }

/* Whether any a_j b may be above the limit of j, or any a_j b_j above one limit. */
PART int any_above(const float *a, float b, const float *limit, Index count) {
    int above = 0;
    for (Index j = 0; j < count; j++) above |= a[j] * b > limit[j];
    return above;
}

PART int any_product_above(const float *a, const float *b, float limit, Index count) {
    int above = 0;
    for (Index j = 0; j < count; j++) above |= a[j] * b[j] > limit;
    return above;
}

/* A block that is looked at: its column, what that allows, the worst so far of every i and j, and
 * pairs i, j that are to be looked at. */
typedef struct {
    const Real *p;
    float *limit;
    Real *most, *high;
    Index *of_i, *of_j, block, count;
    Short *pairs;
} Looked;

/* Look at the pairs that were kept. */
PART void look(Looked *own, const Rows *rows, Index width, const float *decay, uint8_t *held) {
    Index m = width - 1;
    mark(rows, own->block, width, held, 1);
    for (Index k = 0; k < own->count; k++) {
        Index i = own->pairs[2 * k], j = own->pairs[2 * k + 1];
        Real excess = own->p[j] > 0 ? decay[i * m + j] * own->p[i] / own->p[j] : 0.0;
        if (held[i * width + j]) continue;
        if (excess > own->most[i]) {
            own->most[i] = excess;
            own->of_i[i] = j;
        }
        if (excess > own->high[j]) {
            own->high[j] = excess;
            own->of_j[j] = i;
        }
    }
    mark(rows, own->block, width, held, 0);
    own->count = 0;
}

/* Of the pairs that a block does not hold, the one with the largest v_i e^-r / v_j above ``level``,
 * for every (block, i): by_i, and every (block, j): by_j; -1 where there is none. */
KERNEL(violations)(Index t, Index nt, const Rows *rows, Index width, const float *decay,
                   const Real *P, Real level, Index *by_i, Index *by_j) {
    Index m = width - 1;
    Real *worst = reals(2 * m * TOGETHER);
    float *limits = (float *)shorts(m * TOGETHER);
    Short *pairs = shorts(2 * KEPT * TOGETHER);
    uint8_t *held = calloc((size_t)(m * width + 1), 1);
    int failed = !worst || !limits || !pairs || !held;
    for (Index first = t; !failed && first < rows->blocks; first += TOGETHER * nt) {
        Looked all[TOGETHER];
        Index together = 0;
        for (Index o = first; together < TOGETHER && o < rows->blocks; o += nt, together++) {
            Index c = together;
            all[c] = (Looked){P + o * width, limits + c * m, worst + 2 * c * m,
                              worst + (2 * c + 1) * m, by_i + o * m, by_j + o * m,
                              o, 0, pairs + 2 * KEPT * c};
            for (Index j = 0; j < m; j++) {
                all[c].limit[j] = below(level * all[c].p[j]);
                all[c].most[j] = all[c].high[j] = level;
                all[c].of_i[j] = all[c].of_j[j] = -1;
            }
        }
        for (Index i = 0; i < m; i++) {
            const float *row = decay + i * m;
            for (Index c = 0; c < together; c++) {
                Looked *own = all + c;
                float value = (float)own->p[i];
                for (Index from = 0; from < m; from += STRIP) {
                    Index count = sooner(STRIP, m - from);
                    if (count == STRIP ? !any_above(row + from, value, own->limit + from, STRIP)
                                       : !any_above(row + from, value, own->limit + from, count))
                        continue;
                    if (own->count > KEPT - STRIP) look(own, rows, width, decay, held);
                    for (Index j = from; j < from + count; j++) {
                        own->pairs[2 * own->count] = (Short)i;
                        own->pairs[2 * own->count + 1] = (Short)j;
                        own->count += row[j] * value > own->limit[j];
                    }
                }
            }
        }
        for (Index c = 0; c < together; c++) look(all + c, rows, width, decay, held);
    }
    free(worst);
    free(limits);
    free(pairs);
    free(held);
    return failed;
}

/* out_i = max(v_i, max_j decay_ij v_j) in every block. */
KERNEL(majorant)(Index t, Index nt, Index blocks, Index width, const Real *decay, const Real *P,
                 Real *out) {
    Index m = width - 1;
    float *rough = (float *)shorts(m * (TOGETHER + 1)), *values = rough + m;
    for (Index first = t; rough && first < blocks; first += TOGETHER * nt) {
        Index together = 0;
        for (Index o = first; together < TOGETHER && o < blocks; o += nt, together++)
            for (Index j = 0; j < m; j++) values[together * m + j] = (float)P[o * width + j];
        for (Index i = 0; i < m; i++) {
            const Real *row = decay + i * m;
            for (Index j = 0; j < m; j++) rough[j] = (float)row[j];
            for (Index c = 0; c < together; c++) {
                Index o = first + c * nt;
                const Real *v = P + o * width;
                const float *own = values + c * m;
                Real most = v[i];
                float limit = below(most);
                for (Index from = 0; from < m; from += STRIP) {
                    Index count = sooner(STRIP, m - from);
                    if (count == STRIP ? !any_product_above(rough + from, own + from, limit, STRIP)
                                       : !any_product_above(rough + from, own + from, limit, count))
                        continue;
                    for (Index j = from; j < from + count; j++) most = larger(most, row[j] * v[j]);
                }
                out[o * width + i] = most;
            }
        }
        for (Index c = 0; c < together; c++) out[(first + c * nt) * width + m] = 0.0;
    }
    free(rough);
    return !rough;
}

/* The least columns >= P with out_j >= decay out_i for the pairs i, j of a graph: ``other`` and
 * ``decay`` of those of i are those from start[i] on. */
KERNEL(raised)(Index t, Index nt, Index blocks, Index width, const Index *start, const Index *other,
               const Real *decay, const Real *P, Real *out) {
    Index m = width - 1, *queue = indices(m + 1);
    uint8_t *waits = calloc((size_t)(m + 1), 1);
    int failed = !queue || !waits;
    for (Index o = t; !failed && o < blocks; o += nt) {
        Real *v = out + o * width;
        Index first = 0, count = m;
        copy(v, P + o * width, width);
        for (Index i = 0; i < m; i++) {
            queue[i] = i;
            waits[i] = 1;
        }
        while (count > 0) {
            Index i = queue[first];
            first = first == m ? 0 : first + 1;
            count--;
            waits[i] = 0;
            for (Index a = start[i]; a < start[i + 1]; a++) {
                Real least = decay[a] * v[i];
                Index j = other[a];
                if (!(least > v[j])) continue;
                v[j] = least;
                if (!waits[j]) {
                    waits[j] = 1;
                    queue[(first + count) % (m + 1)] = j;
                    count++;
                }
            }
        }
        v[m] = 0.0;
    }
    free(queue);
    free(waits);
    return failed;
}
