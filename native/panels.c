/* How blocks are cut into panels, their factors, the sums of their inverses, and solutions. */
#include "panels.h"

/* Panel ends from the furthest neighbours; their number, and the cost of factoring. */
PART Index cut(const Index *reach, Index first, Index *ends, Index m, Real *cost) {
    Index count = 1;
    ends[0] = 0;
    ends[1] = sooner(first, m);
    while (ends[count] < m) {
        Index after = later(reach[ends[count] - 1] + 1, ends[count] + 1);
        if (m - after < first / 2) after = m;
        ends[++count] = after;
    }
    ends[count + 1] = m;
    *cost = 0;
    for (Index k = 0; k < count; k++) {
        Real a = (Real)(ends[k + 1] - ends[k]), b = (Real)(ends[k + 2] - ends[k + 1]);
        Real beyond = (Real)(m - ends[k + 1]);
        *cost += a * a * a + 2.0e3 + 2.0 * a * b * beyond + 4.0 * a * a * b + a * b * b;
    }
    return count;
}

/* For every place the furthest one that it or an earlier one is paired with. */
PART void furthest(const Rows *rows, Index o, const Index *place, Index m, Index *reach) {
    for (Index x = 0; x < m; x++) reach[x] = x;
    for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++)
        if (rows->i[k] < m) {
            Index a = place[rows->i[k]], b = place[rows->j[k]], low = sooner(a, b);
            reach[low] = later(reach[low], later(a, b));
        }
    for (Index x = 1; x < m; x++) reach[x] = later(reach[x], reach[x - 1]);
}

/* Pick the order and the panels of some blocks by the cost of factoring; ``first`` (orders,) are
 * sizes of first panels. */
KERNEL(partition)(Index t, Index nt, Index count, const Index *blocks, const Rows *rows,
                  const Index *first, const Panels *panels) {
    Index m = panels->variables, *reach = indices(2 * m + 2), *trial = reach + m;
    if (!reach) return 1;
    for (Index q = t; q < count; q += nt) {
        Index o = blocks[q], *ends = panels->ends + o * (m + 2);
        Real best = HUGE_VAL;
        for (Index order = 0; order < panels->orders; order++) {
            furthest(rows, o, panels->position + order * m, m, reach);
            for (Index half = 1; half < 3; half++) {
                Real cost;
                Index number = cut(reach, later(1, first[order] * half / 2), trial, m, &cost);
                if (!(cost < best)) continue;
                best = cost;
                panels->order[o] = order;
                panels->number[o] = number;
                memcpy(ends, trial, (size_t)(number + 2) * sizeof(Index));
            }
        }
        panels->size[o] = 0;
        for (Index k = 0; k < panels->number[o]; k++) panels->size[o] += panel_entries(ends, k);
    }
    free(reach);
    return 0;
}

/* What every part adds up over its blocks, the first dimension: inverses (parts, orders, m, m), lower
 * triangles in the places of every order; with N coupling rows their products with the inverses
 * (parts, N, m), and with each other through them (parts, N, N), and room for a whole inverse
 * (parts, m, m). Row l has value[l, o] at variable[l] of block o; variable m is none. */
typedef struct {
    Real *sums, *mixed, *coupling, *inverse;
    const Index *variable;
    const Real *value;
    Index rows;
} Totals;

/* Room for factoring and a triangle's inverse, either way, for the rows of an inverse of two panels
 * (R and those below), and for G. */
typedef struct {
    Real *turned, *X, *R, *below, *G;
} Room;

/* Numbers that a panel's rows of the inverse take. */
PART Index rows_room(Index widest, Index m) { return PADDED(widest) * (m + 1); }

PART Room room_for(Real *turned, Index widest, Index m) {
    Index rows = rows_room(widest, m), square = PADDED(widest) * (widest + 1);
    Real *X = turned + factor_room(widest), *R = X + square;
    return (Room){turned, X, R, R + rows, R + 2 * rows};
}

PART Index room_size(Index widest, Index m) {
    Index square = PADDED(widest) * (widest + 1);
    return 3 * rows_room(widest, m) + square + factor_room(widest);
}

/* The lower triangle of R <- (L Lᵀ)⁻¹, both sides of it; ``turned`` <- L⁻ᵀ. */
PART void invert_panel(const Panel *p, Real *R, Real *X, Real *turned) {
    clear(X, p->ld * p->size);
    for (Index c = 0; c < p->size; c++) X[c * (p->ld + 1)] = 1.0;
    for (Index j = 0; j < p->size; j += SQUARE)
        solve_columns(p->L, p->size, p->ld, X + j * p->ld, sooner(SQUARE, p->size - j), j);
    transpose(X, p->size, p->size, p->ld, turned);
    for (Index j = 0; j < p->size; j += 4) /* turned(i, k) is zero for k < i */
        for (Index i = j & ~(Index)(WIDTH - 1); i < p->ld; i += 3 * WIDTH)
            multiply(sooner(3 * WIDTH, p->ld - i), sooner(4, p->size - j), p->size - i,
                     (Product){turned + i * (p->ld + 1), p->ld, X + j * p->ld + i, 1, p->ld,
                               R + j * p->ld + i, p->ld, 1.0, 1});
    for (Index c = 0; c < p->size; c++) {
        for (Index r = c + 1; r < p->size; r++) R[r * p->ld + c] = R[c * p->ld + r];
        clear(R + c * p->ld + p->size, p->ld - p->size);
    }
}

/* Rows of panel k of the inverse in R, (size, size + after) by columns: of its own variables, and of
 * the ``after`` later ones, whose columns in the rows of panel k + 1 are ``below``. */
PART void inverse_rows(const Block *block, Index k, Index after, Room room) {
    Panel p = panel_of(block, k);
    invert_panel(&p, room.R, room.X, room.turned);
    if (k + 1 == block->panels) return;
    for (Index i = 0; i < p.ld; i += 3 * WIDTH) /* G = L⁻ᵀW */
        multiply(sooner(3 * WIDTH, p.ld - i), p.width, p.size - i,
                 (Product){room.turned + i * (p.ld + 1), p.ld, p.W + i, 1, p.ld, room.G + i, p.ld,
                           1.0, 1});
    Real *right = room.R + p.size * p.ld;
    multiply(p.ld, after, p.width,
             (Product){room.G, p.ld, room.below, 1, PADDED(p.width), right, p.ld, -1.0, 1});
    multiply(p.ld, p.size, p.width,
             (Product){right, p.ld, room.G, p.ld, 1, room.R, p.ld, -1.0, 0});
}

/* Add H⁻¹ to the lower triangle of ``total``, in ordered places; put it into ``inverse`` too, where
 * that is not 0. */
PART void add_inverse(const Block *block, Room room, Real *total, Real *inverse) {
    Index m = block->variables;
    for (Index k = block->panels - 1; k >= 0; k--) {
        Index first = block->ends[k], size = block->ends[k + 1] - first, ld = PADDED(size);
        const Real *scale = block->scale + first;
        inverse_rows(block, k, m - block->ends[k + 1], room);
        for (Index c = 0; c < m - first; c++) {
            const Real *from = room.R + c * ld;
            Real *to = total + (first + c) * m + first, own = scale[c];
            for (Index r = 0; r < size; r++) to[r] += from[r] * own * scale[r];
            if (!inverse) continue;
            for (Index r = 0; r < size; r++) {
                Real entry = from[r] * own * scale[r];
                inverse[(first + c) * m + first + r] = entry;
                inverse[(first + r) * m + first + c] = entry;
            }
        }
        Real *swap = room.R;
        room.R = room.below;
        room.below = swap;
    }
}

/* Add what the coupling rows make of block o's inverse. */
PART void add_coupling(Index o, Index blocks, const Block *block, const Real *inverse,
                       const Totals *totals, Real *mixed, Real *coupling) {
    Index m = block->variables, count = totals->rows;
    const Index *place = block->position, *variable = totals->variable;
    for (Index q = 0; q < count; q++) {
        Real value = totals->value[q * blocks + o];
        if (variable[q] == m || value == 0.0) continue;
        const Real *own = inverse + place[variable[q]] * m;
        for (Index x = 0; x < m; x++) mixed[q * m + x] += value * own[place[x]];
        for (Index p = 0; p < count; p++)
            if (variable[p] < m)
                coupling[q * count + p] +=
                    totals->value[p * blocks + o] * value * own[place[variable[p]]];
    }
}

/* Factor every block and, unless ``alone``, add up its inverse. */
KERNEL(factor)(Index t, Index nt, const Rows *rows, const Panels *panels, const Factors *factors,
               Index alone, const Totals *totals) {
    Index m = panels->variables, blocks = factors->blocks, count = totals->rows, widest = 0;
    for (Index o = t; o < blocks; o += nt) widest = later(widest, widest_panel(panels, o));
    Index *within = indices(2 * m), *start = within + m;
    Real *space = reals(alone ? factor_room(widest) : room_size(widest, m));
    int failed = !within || !space;
    Real *sums = totals->sums + t * panels->orders * m * m, *inverse = 0;
    Real *mixed = totals->mixed + t * count * m, *coupling = totals->coupling + t * count * count;
    if (count) inverse = totals->inverse + t * m * m;
    if (!alone) clear(sums, panels->orders * m * m);
    clear(mixed, count * m);
    clear(coupling, count * count);
    for (Index o = t; !failed && o < blocks; o += nt) {
        Block block = factored_block(o, panels, factors, start);
        assemble(o, rows, &block, within, factors->ridge[o]);
        factors->failed[o] = !factor_block(&block, space);
        if (factors->failed[o] || alone) continue;
        add_inverse(&block, room_for(space, widest, m), sums + panels->order[o] * m * m, inverse);
        add_coupling(o, blocks, &block, inverse, totals, mixed, coupling);
    }
    free(within);
    free(space);
    return failed;
}

/* B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries. */
KERNEL(solve)(Index t, Index nt, const Panels *panels, const Factors *factors, Index count, Real *B) {
    Index m = panels->variables, *start = indices(m);
    Real *room = reals(substitution_room(m) * count);
    int failed = !start || !room;
    for (Index o = t; !failed && o < factors->blocks; o += nt) {
        Block block = factored_block(o, panels, factors, start);
        substitute(&block, count, B + o * count * (m + 1), room);
    }
    free(start);
    free(room);
    return failed;
}
