/* Solutions for blocks of one pattern, ABREAST at once, entry by entry: a vector of numbers. Included
 * once for each type NUMBER of the factors. */

/* The factors and scales of all blocks, next to each other: value (groups, size, ABREAST) and scale
 * (groups, m, ABREAST), which stay as they are after the last block. Diagonals are inverted. */
KERNEL(LABELLED(beside))(Index t, Index nt, const Sparse *sparse, Index groups, Index size,
                         NUMBER *value, Real *scale) {
    Index m = sparse->variables;
    for (Index g = t; g < groups; g += nt) {
        NUMBER *to = value + g * size * ABREAST;
        for (Index c = 0; c < sooner(ABREAST, sparse->blocks - ABREAST * g); c++) {
            Index o = ABREAST * g + c;
            const Real *own = sparse->value + sparse->base[o];
            for (Index a = 0; a < size; a++) to[a * ABREAST + c] = (NUMBER)own[a];
            for (Index x = 0; x < m; x++) {
                Index a = sparse->column[x];
                to[a * ABREAST + c] = (NUMBER)(1.0 / own[a]);
                scale[(g * m + x) * ABREAST + c] = sparse->scale[o * m + x];
            }
        }
    }
    return 0;
}

/* Add H_o⁻¹ y of every block to ``sums[t]``, both (m,) in the order of one pattern. */
KERNEL(LABELLED(summed))(Index t, Index nt, Index m, const Index *column, const Short *row,
                         Index groups, Index size, const NUMBER *value, const Real *scale,
                         const Real *y, Real *sums) {
    Real *x = reals(m * ABREAST), *sum = sums + t * m, own[ABREAST];
    clear(sum, m);
    for (Index g = t; x && g < groups; g += nt) {
        const NUMBER *v = value + g * size * ABREAST;
        const Real *s = scale + g * m * ABREAST;
        for (Index k = 0; k < m; k++)
            for (int c = 0; c < ABREAST; c++) x[k * ABREAST + c] = y[k] * s[k * ABREAST + c];
        for (Index k = 0; k < m; k++) {
            Index a = column[k];
            Real *from = x + k * ABREAST;
            for (int c = 0; c < ABREAST; c++) from[c] = own[c] = from[c] * v[a * ABREAST + c];
            for (Index p = a + 1; p < column[k + 1]; p++) {
                Real *to = x + (Index)row[p] * ABREAST;
                for (int c = 0; c < ABREAST; c++) to[c] -= v[p * ABREAST + c] * own[c];
            }
        }
        for (Index k = m - 1; k >= 0; k--) {
            Index a = column[k];
            Real *to = x + k * ABREAST, found = 0;
            memcpy(own, to, sizeof(own));
            for (Index p = a + 1; p < column[k + 1]; p++) {
                const Real *from = x + (Index)row[p] * ABREAST;
                for (int c = 0; c < ABREAST; c++) own[c] -= v[p * ABREAST + c] * from[c];
            }
            for (int c = 0; c < ABREAST; c++) {
                to[c] = own[c] * v[a * ABREAST + c];
                found += to[c] * s[k * ABREAST + c];
            }
            sum[k] += found;
        }
    }
    free(x);
    return !x;
}
