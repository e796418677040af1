/* Transport with gains: the pivots to the least arrival (see optmech/transport/pivots.py, which says
 * what is sought and does the same in Python). */
#include "kernels.h"

/* Flows below this, relative to what the tree carries behind them, may be rounding. */
#define NOISE 1e-14
/* Potentials count as no smaller than this. */
#define LEAST -700.0
/* Flows below 0 by less than this part of their row and of their column are left alone. */
#define LITTLE 1e-13

/* Logarithms w (n, m), a basis of n + m - 1 arcs (row and column of each, and its flow), and its tree:
 * nodes in an order from the root on, with their parents and the arcs that lead to them. Numbers of
 * nodes: potentials, masses, what flows into each and what is carried behind it. */
typedef struct {
    Index n, m, size;
    const Real *w;
    Index *row, *column;
    Real *flow;
    Index *order, *parent, *up, *start, *place, *arcs, *side;
    Real *value, *mass, *need, *behind;
} Basis;

/* Nodes of the tree from the row ``root`` on. */
PART void walk(const Basis *b, Index root) {
    Index *start = b->start, count = 1;
    memset(start, 0, (size_t)(b->size + 1) * sizeof(Index));
    for (Index e = 0; e < b->size - 1; e++) {
        start[b->row[e] + 1]++;
        start[b->n + b->column[e] + 1]++;
    }
    for (Index k = 0; k < b->size; k++) start[k + 1] += start[k];
    memcpy(b->place, start, (size_t)b->size * sizeof(Index));
    for (Index e = 0; e < b->size - 1; e++) {
        b->arcs[b->place[b->row[e]]++] = e;
        b->arcs[b->place[b->n + b->column[e]]++] = e;
    }
    b->order[0] = root;
    b->parent[root] = b->up[root] = -1;
    for (Index done = 0; done < count; done++) {
        Index node = b->order[done];
        for (Index k = start[node]; k < start[node + 1]; k++) {
            Index e = b->arcs[k];
            if (e == b->up[node]) continue;
            Index other = node < b->n ? b->n + b->column[e] : b->row[e];
            b->up[other] = e;
            b->parent[other] = node;
            b->order[count++] = other;
        }
    }
}

/* The basis in which one row, the one whose bound is best, reaches all columns; that row. */
PART Index star(const Basis *b) {
    Real best = -HUGE_VAL;
    Index centre = 0, e = 0;
    for (Index i = 0; i < b->n; i++) {
        const Real *w = b->w + i * b->m;
        Real least = HUGE_VAL, sum = 0;
        for (Index j = 0; j < b->m; j++) least = smaller(least, w[j]);
        for (Index j = 0; j < b->m; j++) sum += exp(least - w[j]);
        if (!(least - log(sum) > best)) continue;
        best = least - log(sum);
        centre = i;
    }
    const Real *central = b->w + centre * b->m;
    for (Index j = 0; j < b->m; j++, e++) {
        b->row[e] = centre;
        b->column[e] = j;
    }
    for (Index i = 0; i < b->n; i++) {
        if (i == centre) continue;
        const Real *w = b->w + i * b->m;
        Index nearest = 0;
        for (Index j = 1; j < b->m; j++)
            if (w[j] - central[j] < w[nearest] - central[nearest]) nearest = j;
        b->row[e] = i;
        b->column[e++] = nearest;
    }
    return centre;
}

/* Potentials on the tree; what weighs most becomes the ``root``, so that its rounding is nowhere but
 * there. */
PART void weigh(const Basis *b, Index *root) {
    Index heaviest = 0;
    walk(b, *root);
    b->value[*root] = 0.0;
    for (Index k = 1; k < b->size; k++) {
        Index node = b->order[k], e = b->up[node];
        Real length = b->w[b->row[e] * b->m + b->column[e]];
        b->value[node] = b->value[b->parent[node]] + (node < b->n ? length : -length);
    }
    for (Index i = 1; i < b->n; i++)
        if (b->value[i] > b->value[heaviest]) heaviest = i;
    Real top = b->value[heaviest];
    for (Index k = 0; k < b->size; k++) b->value[k] -= top;
    if (heaviest == *root) return;
    *root = heaviest;
    walk(b, *root);
}

/* Flows on the tree, leaf by leaf; the node whose arc has the most negative one, -1 where none has. */
PART Index most_negative(const Basis *b) {
    Real rows = 0, columns = 0, lowest = 0.0;
    Index cut = -1;
    for (Index k = 0; k < b->size; k++) b->mass[k] = exp(larger(b->value[k], LEAST));
    for (Index k = 0; k < b->n; k++) rows += b->mass[k];
    for (Index k = b->n; k < b->size; k++) columns += b->mass[k];
    const Real rate = rows / columns;
    for (Index k = 0; k < b->size; k++)
        b->need[k] = b->behind[k] = k < b->n ? b->mass[k] : rate * b->mass[k];
    for (Index k = b->size - 1; k > 0; k--) {
        Index node = b->order[k], above = b->parent[node], e = b->up[node];
        Real need = b->flow[e] = b->need[node];
        b->need[above] -= need;
        b->behind[above] += b->behind[node];
        Real little = smaller(b->mass[b->row[e]], rate * b->mass[b->n + b->column[e]]);
        Real least = smaller(-NOISE * b->behind[node], -LITTLE * little);
        if (!(need < smaller(lowest, least))) continue;
        lowest = need;
        cut = node;
    }
    return cut;
}

/* Cut the tree at a node's arc and let the side of that arc's column rise until another arc holds
 * with equality, which takes its place; whether there is one. */
PART int exchange(const Basis *b, Index cut) {
    Real step = HUGE_VAL;
    Index row = -1, column = -1, rises = cut >= b->n;
    b->side[b->order[0]] = 0;
    for (Index k = 1; k < b->size; k++) {
        Index node = b->order[k];
        b->side[node] = node == cut || b->side[b->parent[node]];
    }
    for (Index i = 0; i < b->n; i++) {
        if (b->side[i] != rises) continue;
        for (Index j = 0; j < b->m; j++) {
            Real slack = b->w[i * b->m + j] + b->value[b->n + j] - b->value[i];
            if (b->side[b->n + j] == rises || !(slack < step)) continue;
            step = slack;
            row = i;
            column = j;
        }
    }
    if (row < 0) return 0;
    b->row[b->up[cut]] = row;
    b->column[b->up[cut]] = column;
    return 1;
}

/* Where a problem of a batch has its rows and columns. */
PART Index counted(const uint8_t *truth, Index count, Index *which) {
    Index found = 0;
    for (Index k = 0; k < count; k++)
        if (truth[k]) which[found++] = k;
    return found;
}

/* For every problem w (count, n, m), on the rows (count, n) and columns (count, m) that count, a basis
 * close to the least arrival: its arcs in ``first`` and ``second`` (count, n + m), the ``share`` of
 * its row that each sends, and the potentials ``q`` (count, m) of the columns. */
KERNEL(least_arrivals)(Index t, Index nt, Index count, Index n, Index m, const Real *w,
                       const uint8_t *rows, const uint8_t *columns, Index *first, Index *second,
                       Real *share, Real *q) {
    Index size = n + m, *space = indices(11 * size + 1);
    Real *numbers = reals(5 * size + n * m), *part = numbers + 5 * size;
    int failed = !space || !numbers;
    for (Index p = t; !failed && p < count; p += nt) {
        Index *own = space, *others = own + n, *next = others + m, root, pivots = 0, cut;
        Index *one = first + p * size, *two = second + p * size;
        Real *sent = share + p * size;
        Index height = counted(rows + p * n, n, own), width = counted(columns + p * m, m, others);
        if (!height || !width) continue;
        for (Index i = 0; i < height; i++)
            for (Index j = 0; j < width; j++)
                part[i * width + j] = w[(p * n + own[i]) * m + others[j]];
        Basis b = {height, width, height + width, part, one, two, numbers, next, next + size,
                   next + 2 * size, next + 3 * size, next + 4 * size + 1, next + 5 * size + 1,
                   next + 7 * size + 1, numbers + size, numbers + 2 * size, numbers + 3 * size,
                   numbers + 4 * size};
        root = star(&b);
        for (;; pivots++) {
            weigh(&b, &root);
            cut = most_negative(&b);
            if (cut < 0 || pivots == 200 + 40 * b.size || !exchange(&b, cut)) break;
        }
        for (Index e = 0; e < b.size - 1; e++) {
            sent[e] = larger(b.flow[e], 0.0) / b.mass[one[e]];
            one[e] = own[one[e]];
            two[e] = others[two[e]];
        }
        for (Index j = 0; j < width; j++) q[p * m + others[j]] = b.value[height + j];
    }
    free(space);
    free(numbers);
    return failed;
}
