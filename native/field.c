/* The Markov field near the sum of the inverses of blocks with one pattern: what is known of the
 * inverses within it, and the regressions that follow. */
#include "sparse.h"

/* The entries of (L Lᵀ)⁻¹ within the pattern of L (Takahashi, Fagan and Chin, 1973). */
PART void inverse_within(Columns L, Index m, Real *entries, Real *sums, Index *place) {
    for (Index k = m - 1; k >= 0; k--) {
        Index begin = L.column[k], count = L.column[k + 1] - begin - 1;
        const Short *row = L.row + begin + 1;
        const Real *own = L.value + begin + 1;
        Real root = 1.0 / L.value[begin], diagonal = root * root;
        for (Index p = 0; p < count; p++) {
            place[row[p]] = p;
            sums[p] = 0.0;
        }
        for (Index p = 0; p < count; p++) {
            Index first = L.column[row[p]];
            sums[p] += own[p] * entries[first];
            for (Index a = first + 1; a < L.column[row[p] + 1]; a++) {
                Index r = place[L.row[a]];
                if (r < 0) continue;
                sums[r] += own[p] * entries[a];
                sums[p] += own[r] * entries[a];
            }
        }
        for (Index p = 0; p < count; p++) {
            entries[begin + 1 + p] = -sums[p] * root;
            diagonal += own[p] * sums[p] * root * root;
            place[row[p]] = -1;
        }
        entries[begin] = diagonal;
    }
}

PART Index longest_column(const Index *column, Index m) {
    Index most = 1;
    for (Index k = 0; k < m; k++) most = later(most, column[k + 1] - column[k]);
    return most;
}

/* Places of the rows of one column, none to begin with. */
PART Index *no_places(Index m) {
    Index *place = indices(m);
    for (Index k = 0; place && k < m; k++) place[k] = -1;
    return place;
}

/* Add the entries of every block's inverse within the pattern of its factor, which is the first
 * one's for all, to ``entries[t]``; nan where a block cannot be factored. */
KERNEL(covariances)(Index t, Index nt, const Rows *rows, const Sparse *sparse, Real *entries) {
    Index m = sparse->variables, size = sparse->column[m], *place = no_places(m);
    Columns L = columns_of(sparse, 0);
    Workroom room = workroom(rows, m);
    Real *scale = reals(m + 2 * size + longest_column(L.column, m)), *sum = entries + t * size;
    Real *own = scale + m + size;
    int failed = room.failed || !place || !scale;
    L.value = scale + m;
    clear(sum, size);
    for (Index o = t; !failed && o < sparse->blocks; o += nt) {
        if (!factor_columns(o, rows, sparse->position + o * m, scale, sparse->ridge[o], L, &room)) {
            for (Index a = 0; a < size; a++) sum[a] = NAN;
            break;
        }
        inverse_within(L, m, own, own + size, place);
        for (Index k = 0; k < m; k++)
            for (Index a = L.column[k]; a < L.column[k + 1]; a++)
                sum[a] += own[a] * scale[k] * scale[L.row[a]];
    }
    leave(&room);
    free(place);
    free(scale);
    return failed;
}

/* For every column k of a pattern the weights of its other rows that predict variable k best, of
 * what has the covariances ``covariance`` within the pattern, and the spread that is left. */
KERNEL(regressed)(Index t, Index nt, Index m, const Index *column, const Short *row,
                  const Real *covariance, Real *weight, Real *spread) {
    Index most = longest_column(column, m), *place = no_places(m);
    Real *x = reals(most + SQUARE + PADDED(most) * most), *A = x + most + SQUARE;
    int failed = !place || !x;
    for (Index k = t; !failed && k < m; k += nt) {
        Index begin = column[k], count = column[k + 1] - begin - 1, ld = PADDED(count);
        const Short *own = row + begin + 1;
        Real *found = weight + begin + 1, left = covariance[begin];
        clear(A, ld * count);
        clear(x, most + SQUARE);
        copy(x, covariance + begin + 1, count);
        for (Index p = 0; p < count; p++) place[own[p]] = p;
        for (Index p = 0; p < count; p++) { /* rows rise: the lower triangle */
            Index first = column[own[p]];
            A[p * (ld + 1)] = covariance[first] * (1.0 + 1e-13);
            for (Index a = first + 1; a < column[own[p] + 1]; a++)
                if (place[row[a]] >= 0) A[p * ld + place[row[a]]] = covariance[a];
        }
        for (Index p = 0; p < count; p++) place[own[p]] = -1;
        if (factor_dense(A, count, ld)) {
            solve_lower(A, x, count, ld);
            for (Index p = 0; p < count; p++) left -= x[p] * x[p];
            solve_upper(A, x, count, ld);
        } else { /* of what cannot be told from each other nothing is predicted */
            clear(x, count);
        }
        for (Index p = 0; p < count; p++) found[p] = -x[p];
        weight[begin] = 1.0;
        spread[k] = larger(left, 1e-12 * covariance[begin]);
    }
    free(place);
    free(x);
    return failed;
}
