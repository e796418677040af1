/* Multipliers of pairs without cycles (see optmech/reductions/pairs.py). */
#include "kernels.h"

/* Pairs i, j with their gains and values, and the forest that they are hung in: the secret that each
 * hangs under and the pair in between. A cycle's pairs and what moves around it; marks of secrets. */
typedef struct {
    const Index *i, *j;
    const Real *gain;
    Real *value;
    Index *parent, *above, *mark, *cycle;
    Real *change;
} Forest;

/* The first secret above b that is above a as well; -1 where there is none. */
PART Index meeting(const Forest *f, Index edge) {
    Index top = f->j[edge];
    for (Index at = f->i[edge]; at >= 0; at = f->parent[at]) f->mark[at] = edge;
    while (top >= 0 && f->mark[top] != edge) top = f->parent[top];
    return top;
}

/* The pairs from j of a pair up to ``top`` and down to its i; how many. */
PART Index around(const Forest *f, Index edge, Index top) {
    Index count = 0;
    for (Index at = f->j[edge]; at != top; at = f->parent[at]) f->cycle[count++] = f->above[at];
    Index first = count;
    for (Index at = f->i[edge]; at != top; at = f->parent[at]) f->cycle[count++] = f->above[at];
    for (Index last = count - 1; first < last; first++, last--) {
        Index swap = f->cycle[first];
        f->cycle[first] = f->cycle[last];
        f->cycle[last] = swap;
    }
    return count;
}

/* Move weight around the cycle that a pair closes until the first pair is empty: that pair, or -1
 * where weight would grow without end. */
PART Index empty_cycle(const Forest *f, Index edge, Index count) {
    Index at = f->j[edge], least = -1;
    Real effect = -f->gain[edge], step = HUGE_VAL;
    /* weight 1 on the new pair; what every other needs to leave L as it is */
    for (Index k = 0; k < count; k++) {
        Index other = f->cycle[k];
        if (f->i[other] == at) {
            f->change[k] = -effect;
            at = f->j[other];
            effect = -f->gain[other] * f->change[k];
        } else {
            f->change[k] = effect / f->gain[other];
            at = f->i[other];
            effect = f->change[k];
        }
    }
    Real sign = 1.0 + effect > 0 ? 1.0 : -1.0;
    if (sign < 0) {
        step = f->value[edge];
        least = edge;
    }
    for (Index k = 0; k < count; k++) {
        Real less = -sign * f->change[k], held = f->value[f->cycle[k]];
        if (less > 0 && held < less * step) {
            step = held / less;
            least = f->cycle[k];
        }
    }
    if (!isfinite(step) || !isfinite(effect)) return -1;
    f->value[edge] += sign * step;
    for (Index k = 0; k < count; k++) {
        Real *own = f->value + f->cycle[k];
        *own = larger(0.0, *own + sign * step * f->change[k]);
    }
    f->value[least] = 0.0;
    return least;
}

/* Cut a pair out of the forest. */
PART void cut(const Forest *f, Index edge) {
    Index i = f->i[edge], below = f->parent[i] == f->j[edge] && f->above[i] == edge;
    f->parent[below ? i : f->j[edge]] = -1;
}

/* i of a pair becomes the root of its tree and hangs under j. */
PART void hang(const Forest *f, Index edge) {
    Index before = f->j[edge], own = edge, at = f->i[edge];
    while (at >= 0) {
        Index after = f->parent[at], next = f->above[at];
        f->parent[at] = before;
        f->above[at] = own;
        before = at;
        own = next;
        at = after;
    }
}

/* Empty cycles of every block, whose pairs are those from ends[block] to ends[block + 1]. */
KERNEL(empty_cycles)(Index blocks, Index secrets, const Index *i, const Index *j, const Real *gain,
                     const Index *ends, Real *value) {
    Index *space = indices(5 * secrets);
    Real *change = reals(2 * secrets);
    int failed = !space || !change;
    Forest f = {i, j, gain, value, space, space + secrets, space + 2 * secrets, space + 3 * secrets,
                change};
    for (Index s = 0; !failed && s < secrets; s++) f.mark[s] = -1;
    for (Index block = 0; !failed && block < blocks; block++) {
        for (Index s = 0; s < secrets; s++) f.parent[s] = -1;
        for (Index edge = ends[block]; edge < ends[block + 1]; edge++) {
            if (i[edge] == j[edge]) continue;
            Index top = meeting(&f, edge);
            if (top >= 0) {
                Index least = empty_cycle(&f, edge, around(&f, edge, top));
                if (least < 0 || least == edge) continue;
                cut(&f, least);
            }
            hang(&f, edge);
        }
    }
    free(space);
    free(change);
    return failed;
}
