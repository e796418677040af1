/* What all kernels are written with.
 *
 * A kernel does the blocks t, t + nt, t + 2 nt, ... of what it is given: threads share them so. It
 * keeps nothing between calls and knows nothing of Python. Arrays are NumPy's, in C order. It
 * returns 0, or 1 where there is no memory for its work.
 *
 * Every file is compiled once for each kind of processor (build.py), as the VARIANT, which ends the
 * names of its kernels. */
#ifndef OPTMECH_KERNELS_H
#define OPTMECH_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t Index;
typedef int32_t Short;
typedef double Real;

#define JOINED(name, variant) optmech_##name##_##variant
#define NAMED(name, variant) JOINED(name, variant)
#define KERNEL(name) __attribute__((visibility("default"))) int NAMED(name, VARIANT)
#define PART static inline
#define INLINED static inline __attribute__((always_inline))

/* The pair rows s = e v_j - v_i with multipliers z, block after block: those of block o are
 * offset[o] up to offset[o + 1]. i = m is the constant zero. ds, dz are the direction, ds2, dz2 the
 * corrector under way. */
typedef struct {
    const Index *offset;
    const Short *i, *j;
    const Real *e;
    Real *s, *z, *ds, *dz, *ds2, *dz2;
    Index blocks;
} Rows;

PART Real larger(Real a, Real b) { return a > b ? a : b; }
PART Real smaller(Real a, Real b) { return a < b ? a : b; }
PART Index later(Index a, Index b) { return a > b ? a : b; }
PART Index sooner(Index a, Index b) { return a < b ? a : b; }

/* e v_j - v_i of row k */
PART Real slack(const Rows *rows, Index k, const Real *v) {
    return rows->e[k] * v[rows->j[k]] - v[rows->i[k]];
}

/* Add Gᵀq of row k to g. */
PART void add_row(const Rows *rows, Index k, Real q, Real *g) {
    g[rows->j[k]] += rows->e[k] * q;
    g[rows->i[k]] -= q;
}

/* Room for so many numbers, to be freed; 0 where there is none. */
PART Real *reals(Index count) { return malloc((size_t)(count + 1) * sizeof(Real)); }
PART Index *indices(Index count) { return malloc((size_t)(count + 1) * sizeof(Index)); }
PART float *floats(Index count) { return malloc((size_t)(count + 1) * sizeof(float)); }
PART Short *shorts(Index count) { return malloc((size_t)(count + 1) * sizeof(Short)); }

PART void clear(Real *to, Index count) { memset(to, 0, (size_t)count * sizeof(Real)); }
PART void copy(Real *to, const Real *from, Index count) {
    memcpy(to, from, (size_t)count * sizeof(Real));
}

#endif
