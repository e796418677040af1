/* One block: its matrix, factor and solutions. */
#include "panels.h"

void assemble(Index o, const Rows *rows, const Block *block, Index *within, Real ridge) {
    const Index *place = block->position, *ends = block->ends;
    Index m = block->variables, last = block->panels - 1;
    clear(block->entries, block->start[last] + panel_entries(ends, last));
    for (Index k = 0; k <= last; k++)
        for (Index x = ends[k]; x < ends[k + 1]; x++) within[x] = k;
    unit_scale(o, rows, place, block->scale, m);
    for (Index k = rows->offset[o]; k < rows->offset[o + 1]; k++) {
        if (rows->i[k] == m) continue;
        Index u = place[rows->i[k]], v = place[rows->j[k]], x = sooner(u, v), y = later(u, v);
        Panel panel = panel_of(block, within[x]);
        const Index *own = ends + within[x];
        Real entry = scaled_entry(k, rows, place, block->scale);
        if (y < own[1])
            panel.L[(y - own[0]) + (x - own[0]) * panel.ld] += entry;
        else
            panel.W[(x - own[0]) + (y - own[1]) * panel.ld] += entry;
    }
    for (Index k = 0; k <= last; k++) {
        Panel panel = panel_of(block, k);
        for (Index x = 0; x < panel.size; x++) panel.L[x * (panel.ld + 1)] += 1.0 + ridge;
    }
}

int factor_block(const Block *block, Real *room) {
    for (Index k = 0; k < block->panels; k++) {
        Panel own = panel_of(block, k);
        if (!factor_dense(own.L, own.size, own.ld)) return 0;
        if (k + 1 == block->panels) break;
        Panel next = panel_of(block, k + 1);
        solve_columns(own.L, own.size, own.ld, own.W, own.width, 0);
        transpose(own.W, own.size, own.width, own.ld, room);
        for (Index j = 0; j < own.width; j += 4) { /* the lower triangle of - WᵀW */
            Index first = j & ~(Index)(WIDTH - 1), columns = sooner(4, own.width - j);
            multiply(next.ld - first, columns, own.size,
                     (Product){room + first, next.ld, own.W + j * own.ld, 1, own.ld,
                               next.L + j * next.ld + first, next.ld, -1.0, 0});
        }
    }
    return 1;
}

void substitute(const Block *block, Index count, Real *v, Real *room) {
    Index m = block->variables, each = substitution_room(m);
    const Index *place = block->position, *ends = block->ends;
    for (Index q = 0; q < count; q++) {
        Real *x = room + q * each;
        for (Index i = 0; i < m; i++) x[place[i]] = v[q * (m + 1) + i] * block->scale[place[i]];
        clear(x + m, each - m);
    }
    for (Index k = 0; k < block->panels; k++) {
        Panel p = panel_of(block, k);
        for (Index q = 0; q < count; q++) {
            Real *own = room + q * each + ends[k];
            solve_lower(p.L, own, p.size, p.ld);
            take_transposed(p.ld, p.width, p.W, p.ld, own, own + p.size);
        }
    }
    for (Index k = block->panels - 1; k >= 0; k--) {
        Panel p = panel_of(block, k);
        for (Index q = 0; q < count; q++) {
            Real *own = room + q * each + ends[k];
            take_product(p.ld, p.width, p.W, p.ld, own + p.size, own);
            solve_upper(p.L, own, p.size, p.ld);
        }
    }
    for (Index q = 0; q < count; q++) {
        const Real *x = room + q * each;
        for (Index i = 0; i < m; i++) v[q * (m + 1) + i] = x[place[i]] * block->scale[place[i]];
    }
}
