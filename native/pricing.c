/* Pricing of blocks that are kept out of the program: is their column worth anything?
 *
 * For reduced costs c of a block it solves
 *
 *     min c·v  over the pair rows and Σ v = 1,      max t  so that  c - Gᵀz >= t everywhere,
 *
 * by a primal-dual interior point method. Any multipliers z with a t that is not negative prove that
 * no column of the cone has a negative price, so it ends as soon as that is clear by a margin. */
#include "panels.h"

#define MOST_ITERATIONS 60
#define BACK 0.95
#define FEASIBLE 1e-9
/* Share of the price up to which it is found where it is negative ... */
#define NEAR 0.1
/* ... and that is proved where it is not: the same multipliers then prove that it stays so while
 * prices of the row sums move by less. */
#define CLEAR 0.5
#define RIDGE 1e-15

/* What is asked of a block: costs (m + 1,), how far below zero is no use, and the products of slacks
 * and multipliers to end near, or 0. */
typedef struct {
    const Real *cost;
    Real goal, centre;
} Question;

/* A block on its way: its ``count`` rows from ``first`` on, its column, what multipliers leave of
 * its costs; residuals and changes of slacks and multipliers, changes of the column by the rows and
 * by its sum; the level t. */
typedef struct {
    const Rows *rows;
    Index first, count, m;
    Real *s, *z, *column, *left, *off, *ds, *dz, *own, *even;
    Real level;
} Search;

PART Real sum(const Real *x, Index count) {
    Real found = 0;
    for (Index k = 0; k < count; k++) found += x[k];
    return found;
}

PART Real least(const Real *x, Index count) {
    Real found = HUGE_VAL;
    for (Index k = 0; k < count; k++) found = smaller(found, x[k]);
    return found;
}

/* left = cost - Gᵀz; the least of it. */
PART Real reduced(const Search *search, const Real *cost) {
    copy(search->left, cost, search->m);
    for (Index k = 0; k < search->count; k++)
        add_row(search->rows, search->first + k, -search->z[k], search->left);
    return least(search->left, search->m);
}

/* The share of a change that keeps values positive. */
PART Real longest(const Real *values, const Real *changes, Index count) {
    Real most = 1.0;
    for (Index k = 0; k < count; k++) most = larger(most, -changes[k] / values[k]);
    return most == 1.0 ? 1.0 : BACK / most;
}

/* Whether the block's price is known, or proved to be of no use. */
PART int settled(const Search *search, const Question *asked, Real price, Real lowest, Real total,
                 Real mu) {
    if (asked->centre == 0.0 && lowest >= -asked->goal && lowest >= CLEAR * price) return 1;
    if (!(fabs(total - 1.0) < FEASIBLE && least(search->off, search->count) > -FEASIBLE)) return 0;
    if (asked->centre == 0.0) return price - lowest <= larger(0.5 * asked->goal, NEAR * fabs(price));
    Real top = -HUGE_VAL, aim = 1.5 * asked->centre;
    for (Index y = 0; y < search->m; y++) top = larger(top, search->left[y]);
    return mu < aim && aim < 2.5 * mu && top - lowest < 0.1 * (Real)search->count * asked->centre;
}

/* The direction that leads products to ``aim``, corrected for what the last one makes of them. By
 * how much the level rises. */
PART Real direction(const Search *search, const Block *block, Real total, Real weight, Real aim,
                    int corrected, Real *room) {
    Index m = search->m;
    for (Index y = 0; y < m; y++) search->own[y] = search->level - search->left[y];
    search->own[m] = 0.0;
    for (Index k = 0; k < search->count; k++) {
        Real s = search->s[k], z = search->z[k];
        Real wanted = corrected ? (aim - search->ds[k] * search->dz[k]) / s - z : -z;
        search->dz[k] = wanted - z / s * search->off[k];
        add_row(search->rows, search->first + k, search->dz[k], search->own);
    }
    substitute(block, 1, search->own, room);
    Real rise = (1.0 - total - sum(search->own, m)) / weight;
    for (Index y = 0; y < m; y++) search->own[y] += rise * search->even[y];
    search->own[m] = 0.0;
    for (Index k = 0; k < search->count; k++) {
        Real moved = slack(search->rows, search->first + k, search->own);
        search->dz[k] -= search->z[k] / search->s[k] * moved;
        search->ds[k] = moved + search->off[k];
    }
    return rise;
}

/* The products to aim at after a first direction: fewer, the further that goes. */
PART Real aimed(const Search *search, Real mu) {
    Real primal = longest(search->s, search->ds, search->count);
    Real dual = longest(search->z, search->dz, search->count), after = 0;
    for (Index k = 0; k < search->count; k++)
        after += (search->s[k] + primal * search->ds[k]) * (search->z[k] + dual * search->dz[k]);
    Real share = after / (Real)search->count / mu, left = 1 - smaller(primal, dual);
    Real kept = larger(larger(share * share * share, 0.1 * left * left), 1e-3);
    return mu * smaller(1.0, kept);
}

/* Two directions and a step along the second. */
PART void step(Search *search, const Block *block, const Question *asked, Real total, Real mu,
               Real *room) {
    Index m = search->m;
    for (Index y = 0; y < m; y++) search->even[y] = 1.0;
    substitute(block, 1, search->even, room);
    Real weight = sum(search->even, m);
    direction(search, block, total, weight, 0.0, 0, room);
    Real aim = asked->centre > 0.0 ? asked->centre : aimed(search, mu);
    Real rise = direction(search, block, total, weight, aim, 1, room);
    Real primal = longest(search->s, search->ds, search->count);
    Real dual = longest(search->z, search->dz, search->count);
    search->level += dual * rise;
    for (Index y = 0; y < m; y++) search->column[y] += primal * search->own[y];
    for (Index k = 0; k < search->count; k++) {
        search->s[k] += primal * search->ds[k];
        search->z[k] += dual * search->dz[k];
    }
}

/* Steps until the question is settled; the price. */
PART Real price_of(Search *search, Block *block, Index o, const Question *asked, Index *within,
                   Real *room) {
    Real price = 0.0;
    search->level = reduced(search, asked->cost);
    for (Index round = 0; round < MOST_ITERATIONS; round++) {
        Real lowest = reduced(search, asked->cost), total = sum(search->column, search->m), mu = 0;
        price = 0.0;
        for (Index y = 0; y <= search->m; y++) price += asked->cost[y] * search->column[y];
        for (Index k = 0; k < search->count; k++) {
            mu += search->s[k] * search->z[k];
            search->off[k] = slack(search->rows, search->first + k, search->column) - search->s[k];
        }
        mu /= (Real)search->count;
        if (settled(search, asked, price, lowest, total, mu)) break;
        assemble(o, search->rows, block, within, RIDGE);
        if (!factor_block(block, room)) break;
        step(search, block, asked, total, mu, room);
    }
    return price;
}

/* Move the columns v (blocks, m + 1) of the ``chosen`` blocks, and their slacks and multipliers in
 * ``rows``, until multipliers leave c - Gᵀz >= -goal or the price ``value`` (blocks,) is known.
 * ``cost`` is (blocks, m + 1), ``left`` (blocks, m) what multipliers leave of it. With a ``centre``
 * above zero, until all products of slacks and multipliers are near it. */
KERNEL(price)(Index t, Index nt, const Rows *rows, const Panels *panels, Index number,
              const Index *chosen, const Real *cost, Real goal, Real centre, Real *v, Real *left,
              Real *value) {
    Index m = panels->variables, longest_block = 0, entries = 0, widest = 0;
    for (Index q = t; q < number; q += nt) {
        Index o = chosen[q];
        longest_block = later(longest_block, rows->offset[o + 1] - rows->offset[o]);
        entries = later(entries, panels->size[o]);
        widest = later(widest, widest_panel(panels, o));
    }
    Index *within = indices(2 * m), *start = within + m;
    Index work = later(factor_room(widest), substitution_room(m));
    Real *space = reals(3 * (m + 1) + 3 * longest_block + entries + work);
    int failed = !within || !space;
    for (Index q = t; !failed && q < number; q += nt) {
        Index o = chosen[q], first = rows->offset[o];
        Real *scale = space, *own = scale + m + 1, *even = own + m + 1, *off = even + m + 1;
        Real *ds = off + longest_block, *dz = ds + longest_block, *matrix = dz + longest_block;
        Block block = block_in(matrix, o, panels, start, scale);
        Search search = {rows, first, rows->offset[o + 1] - first, m, rows->s + first,
                         rows->z + first, v + o * (m + 1), left + o * m, off, ds, dz, own, even, 0.0};
        Question asked = {cost + o * (m + 1), goal, centre};
        value[o] = price_of(&search, &block, o, &asked, within, matrix + entries);
    }
    free(within);
    free(space);
    return failed;
}
