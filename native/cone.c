/* What all pairs of the cone ask of columns, those that are held as rows and the others. */
#include "kernels.h"

/* Marks the pairs that a block holds, or unmarks them, in ``held`` (m, width). */
PART void mark(const Rows *rows, Index o, Index width, uint8_t *held, uint8_t sign) {
    for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++)
        if (rows->i[k] < width - 1) held[rows->i[k] * width + rows->j[k]] = sign;
}

/* Of the pairs that a block does not hold, the one with the largest v_i e^-r / v_j above ``level``,
 * for every (block, i): by_i, and every (block, j): by_j; -1 where there is none. */
KERNEL(violations)(Index t, Index nt, const Rows *rows, Index width, const float *decay,
                   const Real *P, Real level, Index *by_i, Index *by_j) {
    Index m = width - 1;
    Real *high = reals(2 * m), *excess = high + m;
    uint8_t *held = calloc((size_t)(m * width + 1), 1);
    int failed = !high || !held;
    for (Index o = t; !failed && o < rows->blocks; o += nt) {
        const Real *p = P + o * width;
        Index *of_i = by_i + o * m, *of_j = by_j + o * m;
        mark(rows, o, width, held, 1);
        for (Index j = 0; j < m; j++) {
            high[j] = level;
            of_j[j] = -1;
        }
        for (Index i = 0; i < m; i++) {
            const float *row = decay + i * m;
            Real own = p[i], most = level;
            Index above = 0;
            of_i[i] = -1;
            for (Index j = 0; j < m; j++) above += row[j] * own > level * p[j];
            if (!above) continue;
            for (Index j = 0; j < m; j++) excess[j] = p[j] > 0 ? row[j] * own / p[j] : 0.0;
            for (Index j = 0; j < m; j++) {
                if (!(excess[j] > level) || held[i * width + j]) continue;
                if (excess[j] > most) {
                    most = excess[j];
                    of_i[i] = j;
                }
                if (excess[j] > high[j]) {
                    high[j] = excess[j];
                    of_j[j] = i;
                }
            }
        }
        mark(rows, o, width, held, 0);
    }
    free(high);
    free(held);
    return failed;
}

/* out_i = max(v_i, max_j decay_ij v_j) in every block. */
KERNEL(majorant)(Index t, Index nt, Index blocks, Index width, const Real *decay, const Real *P,
                 Real *out) {
    Index m = width - 1;
    for (Index o = t; o < blocks; o += nt) {
        const Real *v = P + o * width;
        for (Index i = 0; i < m; i++) {
            const Real *row = decay + i * m;
            Real most = v[i];
            Index above = 0;
            for (Index j = 0; j < m; j++) above += row[j] * v[j] > v[i];
            for (Index j = 0; above && j < m; j++) most = larger(most, row[j] * v[j]);
            out[o * width + i] = most;
        }
        out[o * width + m] = 0.0;
    }
    return 0;
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
