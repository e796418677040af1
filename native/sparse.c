/* Sparse factors of blocks: their pattern, themselves, entries of their inverses, and solutions. */
#include "sparse.h"

/* Rows of the inverse factor that are multiplied with themselves at a time. */
#define CHUNK 64

/* The elimination trees and the sizes of columns of some blocks (Liu 1990), or, where these are
 * ``known``, the rows of every column. */
KERNEL(pattern)(Index t, Index nt, Index count, const Index *blocks, const Rows *rows,
                const Sparse *sparse, Index known) {
    Index m = sparse->variables;
    Workroom room = workroom(rows, m);
    Short *seen = room.later;
    Index *next = room.first;
    for (Index q = t; !room.failed && q < count; q += nt) {
        Index o = blocks[q], *column = sparse->column + o * (m + 1);
        Short *parent = sparse->parent + o * m, *row = sparse->row + sparse->base[o];
        by_place(o, rows, sparse->position + o * m, 1, &room);
        for (Index k = 0; k < m; k++) {
            next[k] = known ? column[k] : 0;
            if (!known) parent[k] = -1;
        }
        for (Index k = 0; k < m; k++) {
            seen[k] = (Short)k;
            if (known) row[next[k]] = (Short)k;
            next[k]++;
            for (Index p = room.start[k]; p < room.start[k + 1]; p++)
                for (Index x = room.other[p]; seen[x] != k; x = parent[x]) {
                    seen[x] = (Short)k;
                    if (known) row[next[x]] = (Short)k;
                    else if (parent[x] == -1) parent[x] = (Short)k;
                    next[x]++;
                }
        }
        if (known) continue;
        column[0] = 0;
        for (Index k = 0; k < m; k++) column[k + 1] = column[k] + next[k];
    }
    leave(&room);
    return room.failed;
}

/* Which of a block's wanted places lie below each place: from low[k] to high[k]; where rows of L⁻¹
 * over these begin, one after the other. */
typedef struct {
    Index *low, *high, *base;
    uint8_t *wanted;
    Index m;
} Ranges;

/* How many places are wanted. */
PART Index ranges(const Short *parent, Ranges *found) {
    Index m = found->m, number = 0, *low = found->low, *high = found->high;
    for (Index k = 0; k < m; k++) {
        low[k] = m;
        high[k] = 0;
    }
    for (Index k = 0; k < m; k++) {
        if (found->wanted[k]) {
            low[k] = sooner(low[k], number);
            high[k] = ++number;
        }
        Index up = parent[k];
        if (up < 0) continue;
        low[up] = sooner(low[up], low[k]);
        high[up] = later(high[up], high[k]);
    }
    found->base[0] = 0;
    for (Index k = 0; k < m; k++)
        found->base[k + 1] = found->base[k] + later(high[k] - low[k], 0);
    return number;
}

/* Rows of L⁻¹ over the wanted places below each, one after the other in X. */
PART void inverse_factor(Columns L, const Ranges *ranges, Real *X, Workroom *room) {
    Index number = 0;
    none_waits(room);
    for (Index k = 0; k < room->m; k++) {
        Real *own = X + ranges->base[k], root = 1.0 / L.value[L.column[k]];
        clear(own, ranges->base[k + 1] - ranges->base[k]);
        if (ranges->wanted[k]) own[number++ - ranges->low[k]] = root;
        for (Index j = room->head[k], after; j != -1; j = after) {
            Index p = room->first[j], count = ranges->high[j] - ranges->low[j];
            after = room->later[j];
            if (count > 0) {
                Real x = L.value[p] * root, *to = own + (ranges->low[j] - ranges->low[k]);
                const Real *from = X + ranges->base[j];
                for (Index c = 0; c < count; c++) to[c] -= x * from[c];
            }
            wait(j, p + 1, L.column[j + 1], L.row, room);
        }
        wait(k, L.column[k] + 1, L.column[k + 1], L.row, room);
    }
}

/* Numbers that XᵀX takes over so many places: columns with a vector more at the end. */
PART Index square_room(Index count) { return count * PADDED(count) + WIDTH; }

/* inverse = XᵀX in the lower triangle, by PADDED columns over all wanted places. ``rows`` is room
 * for a chunk of rows of one width. */
PART void squared(const Ranges *ranges, const Real *X, Index count, Real *rows, Real *inverse) {
    const Index *low = ranges->low, *high = ranges->high;
    Index m = ranges->m, ld = PADDED(count);
    clear(inverse, square_room(count));
    for (Index k = 0, end; k < m; k = end) {
        end = k + 1;
        if (high[k] <= low[k]) continue;
        /* rows whose ranges begin alike, filled up to the widest */
        Index last = high[k], most = low[k] + (high[k] - low[k]) * 5 / 4 + 8;
        while (end < m && end - k < CHUNK && low[end] == low[k] && high[end] > low[end] &&
               later(last, high[end]) <= most)
            last = later(last, high[end++]);
        Index width = last - low[k], size = end - k, lda = PADDED(width);
        for (Index r = 0; r < size; r++) {
            Index own = high[k + r] - low[k];
            copy(rows + r * lda, X + ranges->base[k + r], own);
            clear(rows + r * lda + own, lda - own);
        }
        Real *to = inverse + low[k] * (ld + 1);
        for (Index j = 0; j < width; j += 4) {
            Index first = j & ~(Index)(WIDTH - 1);
            multiply(width - first, sooner(4, width - j), size,
                     (Product){rows + first, lda, rows + j, lda, 1, to + j * ld + first, ld, 1.0, 0});
        }
    }
}

/* Where the entries of inverses are added: to the lower triangle of ``square`` (m, m), or, with
 * ``upper``, the upper one, and to ``diagonal``. */
typedef struct {
    Real *square, *diagonal;
    int upper;
    Index size;
} Sum;

PART void empty(const Sum *sum) {
    Index size = sum->size;
    for (Index x = 0; x < size; x++)
        if (sum->upper)
            clear(sum->square + x * size + x + 1, size - x - 1);
        else
            clear(sum->square + x * size, x);
    clear(sum->diagonal, size);
}

/* Add a block's inverse over the wanted places, ``variable`` by their number in ``found``. */
PART void add_entries(const Sum *sum, const Real *inverse, Index count, const Index *found,
                      const Index *variable, const Real *scale) {
    Index ld = PADDED(count);
    for (Index c = 0; c < count; c++) {
        Real own = scale[found[c]];
        Index x = variable[found[c]];
        sum->diagonal[x] += inverse[c * (ld + 1)] * own * own;
        for (Index r = c + 1; r < count; r++) {
            Real entry = inverse[c * ld + r] * own * scale[found[r]];
            Index y = variable[found[r]], one = sooner(x, y), other = later(x, y);
            sum->square[sum->upper ? one * sum->size + other : other * sum->size + one] += entry;
        }
    }
}

/* At least ``wanted`` numbers: ``held``, of which there are ``room``, or new ones; 0 if none are. */
PART Real *more(Real *held, Index *room, Index wanted) {
    if (held && wanted <= *room) return held;
    free(held);
    *room = wanted;
    return reals(wanted);
}

/* Factor every block; where ``size`` is not 0, add the inverses' entries between the variables that
 * a block has in ``wanted`` (blocks, m) to ``total[t // 2]``: to the lower triangle of even t and the
 * upper one of odd t, and to ``diagonal[t]``. */
KERNEL(sparse_factor)(Index t, Index nt, const Rows *rows, const Sparse *sparse,
                      const uint8_t *wanted, Index size, Real *total, Real *diagonal) {
    Index m = sparse->variables, *space = indices(5 * m + 1), X_room = 0, square = 0;
    Workroom room = workroom(rows, m);
    uint8_t *chosen = calloc((size_t)m + 1, 1);
    Ranges found = {space, space + m, space + 2 * m, chosen, m};
    Index *variable = space + 3 * m + 1, *places = variable + m;
    Real *X = 0, *chunk = reals(CHUNK * PADDED(size)), *inverse = 0;
    Sum sum = {total + t / 2 * size * size, diagonal + t * size, t % 2 == 1, size};
    int failed = room.failed || !space || !chosen || !chunk;
    empty(&sum);
    for (Index o = t; !failed && o < sparse->blocks; o += nt) {
        const Index *place = sparse->position + o * m;
        Real *scale = sparse->scale + o * m;
        Columns L = columns_of(sparse, o);
        Index count = 0;
        sparse->failed[o] = !factor_columns(o, rows, place, scale, sparse->ridge[o], L, &room);
        if (sparse->failed[o] || !size) continue;
        for (Index x = 0; x < m; x++) {
            chosen[place[x]] = wanted[o * m + x] != 0;
            variable[place[x]] = x;
        }
        for (Index k = 0; k < m; k++)
            if (chosen[k]) places[count++] = k;
        if (!count) continue;
        ranges(sparse->parent + o * m, &found);
        X = more(X, &X_room, found.base[m]);
        inverse = more(inverse, &square, square_room(count));
        failed = !X || !inverse;
        if (failed) break;
        inverse_factor(L, &found, X, &room);
        squared(&found, X, count, chunk, inverse);
        add_entries(&sum, inverse, count, places, variable, scale);
    }
    leave(&room);
    free(space);
    free(chosen);
    free(X);
    free(chunk);
    free(inverse);
    return failed;
}

/* B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries. */
KERNEL(sparse_solve)(Index t, Index nt, const Sparse *sparse, Index count, Real *B) {
    Index m = sparse->variables;
    Real *x = reals(m);
    for (Index o = t; x && o < sparse->blocks; o += nt) {
        const Index *place = sparse->position + o * m;
        const Real *scale = sparse->scale + o * m;
        Columns L = columns_of(sparse, o);
        for (Index q = 0; q < count; q++) {
            Real *v = B + (o * count + q) * (m + 1);
            for (Index i = 0; i < m; i++) x[place[i]] = v[i] * scale[place[i]];
            for (Index k = 0; k < m; k++) {
                Real own = x[k] /= L.value[L.column[k]];
                for (Index p = L.column[k] + 1; p < L.column[k + 1]; p++)
                    x[L.row[p]] -= L.value[p] * own;
            }
            for (Index k = m - 1; k >= 0; k--) {
                Real own = x[k];
                for (Index p = L.column[k] + 1; p < L.column[k + 1]; p++)
                    own -= L.value[p] * x[L.row[p]];
                x[k] = own / L.value[L.column[k]];
            }
            for (Index i = 0; i < m; i++) v[i] = x[place[i]] * scale[place[i]];
        }
    }
    free(x);
    return !x;
}
