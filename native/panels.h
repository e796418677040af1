/* A block's matrix in panels, its Cholesky factor in place, and solutions with it.
 *
 * H = Gᵀ diag(z/s) G is scaled to unit diagonal and factored as block tridiagonal. With the
 * variables in a good order, panel k + 1 ends where the neighbours of panel k end, so nothing lies
 * outside the three diagonals, long pairs included. Of the symmetric matrix two parts per panel are
 * kept:
 *
 *             ends[0]  ends[1]   ends[2] ends[3] = m
 *     ends[0]    +--------+---------+-------+
 *                |  D_0   |   B_0   |       |      D_k -> L_k            L_k L_kᵀ = D_k - W_k-1ᵀ W_k-1
 *     ends[1]    +--------+---------+-------+      B_k -> W_k = L_k⁻¹ B_k
 *                |        |   D_1   |  B_1  |
 *     ends[2]    +--------+---------+-------+      D_k and L_k are lower triangles in squares
 *                |        |         |  D_2  |
 *     ends[3]    +--------+---------+-------+
 *
 *     entries    | D_0 | B_0 | D_1 | B_1 | D_2 |   every part by PADDED columns
 *                ^           ^           ^
 *             start[0]    start[1]    start[2]
 *
 * Variables without rows (fixed at zero) have scale 0 and a unit diagonal. */
#ifndef OPTMECH_PANELS_H
#define OPTMECH_PANELS_H

#include "dense.h"

/* How blocks are ordered and cut: places (orders, m) of the variables in every order that there is;
 * the order that each block has, how many panels, their ends (blocks, m + 2), the last one twice,
 * and the entries that they take. */
typedef struct {
    const Index *position;
    Index *order, *number, *ends, *size;
    Index orders, variables;
} Panels;

/* The factors of all blocks: where each begins in ``store``, what rows and columns were multiplied
 * by (blocks, m), what was added to unit diagonals, and whether a block could not be factored. */
typedef struct {
    const Index *base;
    Real *store, *scale, *ridge;
    Index *failed;
    Index blocks;
} Factors;

/* One block's matrix, as in the figure. */
typedef struct {
    Real *entries, *scale;
    const Index *position, *ends;
    Index *start;
    Index panels, variables;
} Block;

/* Panel k: its columns, their length, its parts in and beside the diagonal, and the next's columns. */
typedef struct {
    Index size, ld, width;
    Real *L, *W;
} Panel;

/* How many entries panel k takes. */
PART Index panel_entries(const Index *ends, Index k) {
    return PADDED(ends[k + 1] - ends[k]) * (ends[k + 2] - ends[k]);
}

/* Block o in ``entries``, with room for ``start`` and ``scale``. */
PART Block block_in(Real *entries, Index o, const Panels *panels, Index *start, Real *scale) {
    Index m = panels->variables, place = 0, count = panels->number[o];
    const Index *ends = panels->ends + o * (m + 2);
    for (Index k = 0; k < count; k++) {
        start[k] = place;
        place += panel_entries(ends, k);
    }
    return (Block){entries, scale, panels->position + panels->order[o] * m, ends, start, count, m};
}

PART Block factored_block(Index o, const Panels *panels, const Factors *factors, Index *start) {
    Real *scale = factors->scale + o * panels->variables;
    return block_in(factors->store + factors->base[o], o, panels, start, scale);
}

PART Panel panel_of(const Block *block, Index k) {
    const Index *ends = block->ends + k;
    Index size = ends[1] - ends[0], ld = PADDED(size);
    Real *L = block->entries + block->start[k];
    return (Panel){size, ld, ends[2] - ends[1], L, L + size * ld};
}

PART Index widest_panel(const Panels *panels, Index o) {
    const Index *ends = panels->ends + o * (panels->variables + 2);
    Index widest = 0;
    for (Index k = 0; k < panels->number[o]; k++) widest = later(widest, ends[k + 1] - ends[k]);
    return widest;
}

/* What rows and columns of block o's H are multiplied by, in places, for a unit diagonal. */
PART void unit_scale(Index o, const Rows *rows, const Index *place, Real *scale, Index m) {
    clear(scale, m);
    for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
        Real w = rows->z[k] / rows->s[k];
        scale[place[rows->j[k]]] += w * rows->e[k] * rows->e[k];
        if (rows->i[k] < m) scale[place[rows->i[k]]] += w;
    }
    for (Index x = 0; x < m; x++) scale[x] = scale[x] > 0 ? 1.0 / sqrt(scale[x]) : 0.0;
}

/* What pair k adds beside that diagonal. */
PART Real scaled_entry(Index k, const Rows *rows, const Index *place, const Real *scale) {
    Real w = -rows->z[k] / rows->s[k] * rows->e[k];
    return w * scale[place[rows->i[k]]] * scale[place[rows->j[k]]];
}

/* H of block o's rows, scaled to unit diagonal; ``within`` (m,) is room for the panel of each. */
#define assemble NAMED(assemble, VARIANT)
void assemble(Index o, const Rows *rows, const Block *block, Index *within, Real ridge);

/* Numbers that factoring needs room for where no panel is wider. */
PART Index factor_room(Index widest) {
    return PADDED(widest) * (widest + 1);
}

/* Factor a block in place; whether it is positive definite. */
#define factor_block NAMED(factor_block, VARIANT)
int factor_block(const Block *block, Real *room);

/* Numbers that ``substitute`` needs for each right-hand side. */
PART Index substitution_room(Index m) { return m + SQUARE; }

/* v <- H⁻¹ v over the first m entries of ``count`` vectors of m + 1, panel by panel, so that each
 * panel is read once. */
#define substitute NAMED(substitute, VARIANT)
void substitute(const Block *block, Index count, Real *v, Real *room);

#endif
