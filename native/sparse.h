/* Sparse Cholesky factors of blocks whose pairs are few.
 *
 * A block of some thousand variables holds five to seven pairs of each, nearly a planar graph: in an
 * order of least degree its factor has ten to twenty entries a column (George and Liu 1981), where
 * panels of a band hold hundreds. Column k of L lies at column[o, k] of what block o has in ``row``
 * and ``value``, its diagonal first, rows rising. */
#ifndef OPTMECH_SPARSE_H
#define OPTMECH_SPARSE_H

#include "panels.h"

/* The factors of all blocks: the place of every variable, the elimination trees (-1 at roots), where
 * columns begin (blocks, m + 1), where blocks begin in ``row`` and ``value``, and as in Factors. */
typedef struct {
    const Index *position;
    Short *parent;
    Index *column;
    const Index *base;
    Short *row;
    Real *value, *scale, *ridge;
    Index *failed;
    Index blocks, variables;
} Sparse;

/* One block's factor. */
typedef struct {
    const Index *column;
    const Short *row;
    Real *value;
} Columns;

/* What is worked with on a block of m variables: its pairs by a place, as ``by_place`` leaves them,
 * and columns of its factor by the row that they go on with. */
typedef struct {
    Index *start, *number, *first;
    Short *other, *head, *later;
    Real *work;
    Index m;
    int failed;
} Workroom;

PART Columns columns_of(const Sparse *sparse, Index o) {
    Index base = sparse->base[o];
    return (Columns){sparse->column + o * (sparse->variables + 1), sparse->row + base,
                     sparse->value + base};
}

/* Room for the block with the most rows. */
PART Workroom workroom(const Rows *rows, Index m) {
    Index most = 0;
    for (Index o = 0; o < rows->blocks; o++)
        most = later(most, rows->offset[o + 1] - rows->offset[o]);
    Index *start = indices(2 * m + 1 + most);
    Short *other = shorts(most + 2 * m);
    Real *work = reals(m);
    return (Workroom){start, start + m + 1, start + m + 1 + most, other, other + most,
                      other + most + m, work, m, !start || !other || !work};
}

PART void leave(Workroom *room) {
    free(room->start);
    free(room->other);
    free(room->work);
}

/* A block's pairs by their later place, or else by their earlier one: their ``other`` places and
 * their ``number``, those of place k from start[k] on. */
PART void by_place(Index o, const Rows *rows, const Index *place, int last, Workroom *room) {
    Index m = room->m, *start = room->start, lo = rows->offset[o], hi = rows->offset[o + 1];
    memset(start, 0, (size_t)(m + 1) * sizeof(Index));
    for (Index k = lo; k < hi; k++) {
        if (rows->i[k] == m) continue;
        Index x = place[rows->i[k]], y = place[rows->j[k]];
        start[last ? later(x, y) : sooner(x, y)]++;
    }
    for (Index x = 0; x < m; x++) start[x + 1] += start[x];
    for (Index k = hi - 1; k >= lo; k--) {
        if (rows->i[k] == m) continue;
        Index x = place[rows->i[k]], y = place[rows->j[k]];
        Index own = last ? later(x, y) : sooner(x, y), at = --start[own];
        room->other[at] = (Short)(x + y - own);
        room->number[at] = k;
    }
}

/* Let column j go on with its entry p, if it comes before ``end``: ``head`` has one column for every
 * row, and ``later`` the next after each. */
PART void wait(Index j, Index p, Index end, const Short *row, Workroom *room) {
    if (p >= end) return;
    room->first[j] = p;
    room->later[j] = room->head[row[p]];
    room->head[row[p]] = (Short)j;
}

PART void none_waits(Workroom *room) {
    for (Index k = 0; k < room->m; k++) room->head[k] = -1;
}

/* Factor a block's scaled matrix column after column; whether it is positive definite. */
PART int factor_columns(Index o, const Rows *rows, const Index *place, Real *scale, Real ridge,
                        Columns L, Workroom *room) {
    Index m = room->m;
    Real *work = room->work;
    unit_scale(o, rows, place, scale, m);
    by_place(o, rows, place, 0, room);
    none_waits(room);
    clear(work, m);
    for (Index k = 0; k < m; k++) {
        Index begin = L.column[k], end = L.column[k + 1];
        work[k] = 1.0 + ridge;
        for (Index p = room->start[k]; p < room->start[k + 1]; p++)
            work[room->other[p]] += scaled_entry(room->number[p], rows, place, scale);
        for (Index j = room->head[k], after; j != -1; j = after) { /* columns whose next row is k */
            Index p = room->first[j], last = L.column[j + 1];
            Real x = L.value[p];
            after = room->later[j];
            for (Index q = p; q < last; q++) work[L.row[q]] -= x * L.value[q];
            wait(j, p + 1, last, L.row, room);
        }
        if (!(work[k] > 0.0)) return 0;
        Real root = sqrt(work[k]);
        L.value[begin] = root;
        work[k] = 0.0;
        for (Index q = begin + 1; q < end; q++) {
            L.value[q] = work[L.row[q]] / root;
            work[L.row[q]] = 0.0;
        }
        wait(k, begin + 1, end, L.row, room);
    }
    return 1;
}

#endif
