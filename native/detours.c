/* Detours over near points, for some thousand points. */
#include "kernels.h"

/* best[i, j] = min(best[i, j], length_ik + length_kj) for the rows i that are t's, over the k of
 * near[i] that are strictly closer to both than they are to each other. */
KERNEL(shorten)(Index t, Index nt, Index count, Index nearest, const Real *length, const Index *near,
                Real *best) {
    for (Index i = t; i < count; i += nt) {
        const Real *own = length + i * count;
        Real *out = best + i * count;
        for (Index n = 0; n < nearest; n++) {
            Index k = near[i * nearest + n];
            const Real first = own[k], *second = length + k * count;
            if (k == i || !isfinite(first)) continue;
            for (Index j = 0; j < count; j++) {
                Real way = first + second[j], most = larger(first, second[j]);
                out[j] = (most < own[j]) & (way < out[j]) ? way : out[j];
            }
        }
    }
    return 0;
}

/* path_ij = min(path_ij, length_ik + path_kj) over the k of near[i], for the pairs without a length,
 * until nothing changes. */
KERNEL(lead_on)(Index count, Index nearest, const Real *length, const Index *near, Real *path) {
    Index *missing = indices(count);
    int forth = 1, changed = missing != 0;
    while (changed) { /* rows in order and then backwards: a chain is whole after one of the two */
        changed = 0;
        for (Index turn = 0; turn < count; turn++) {
            Index i = forth ? turn : count - 1 - turn, few = 0;
            const Real *own = length + i * count;
            Real *out = path + i * count;
            for (Index j = 0; j < count; j++)
                if (!isfinite(own[j])) missing[few++] = j;
            for (Index n = 0; n < nearest; n++) {
                Index k = near[i * nearest + n];
                if (k == i || !isfinite(own[k])) continue;
                for (Index q = 0; q < few; q++) {
                    Real way = own[k] + path[k * count + missing[q]];
                    if (!(way < out[missing[q]])) continue;
                    out[missing[q]] = way;
                    changed = 1;
                }
            }
        }
        forth = !forth;
    }
    free(missing);
    return !missing;
}
