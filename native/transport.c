/* The pivots of the transportation simplex (see optmech/transport/pivots.py, which says what a tree
 * is and does the same in Python). */
#include "kernels.h"

#define CHUNK 64

/* Parent, depth and flow of every node, its first child, its siblings before and after, room for a
 * stack, and potentials. */
typedef struct {
    Index *parent, *depth, *flow, *first, *following, *previous, *stack;
    Real *value;
} Tree;

/* Costs (sources, sinks). */
typedef struct {
    const Real *entry;
    Index sources, sinks;
} Cost;

/* Potentials with value[i] + value[n + j] = cost[i, j] on the tree, value[0] = 0. */
KERNEL(potentials)(const Real *cost, Index sources, Index sinks, const Tree *tree) {
    Index top = 1;
    tree->value[0] = 0.0;
    tree->stack[0] = 0;
    while (top > 0) {
        Index node = tree->stack[--top];
        for (Index child = tree->first[node]; child >= 0; child = tree->following[child]) {
            Index i = sooner(node, child), j = later(node, child) - sources;
            tree->value[child] = cost[i * sinks + j] - tree->value[node];
            tree->stack[top++] = child;
        }
    }
    return 0;
}

/* Hang a node below another, before its other children. */
PART void attach(const Tree *tree, Index node, Index to) {
    Index head = tree->first[to];
    tree->following[node] = head;
    tree->previous[node] = -1;
    if (head >= 0) tree->previous[head] = node;
    tree->first[to] = node;
    tree->parent[node] = to;
}

PART void detach(const Tree *tree, Index node) {
    Index before = tree->previous[node], after = tree->following[node];
    if (before >= 0)
        tree->following[before] = after;
    else
        tree->first[tree->parent[node]] = after;
    if (after >= 0) tree->previous[after] = before;
}

PART Index common_ancestor(const Tree *tree, Index a, Index b) {
    while (a != b) {
        if (tree->depth[a] >= tree->depth[b])
            a = tree->parent[a];
        else
            b = tree->parent[b];
    }
    return a;
}

/* Depths and potentials below a node that hangs elsewhere now. */
PART void settle(const Tree *tree, Index root, Real reduced, Index sources) {
    Index top = 1;
    int kind = root < sources;
    tree->stack[0] = root;
    while (top > 0) {
        Index node = tree->stack[--top];
        tree->depth[node] = tree->depth[tree->parent[node]] + 1;
        tree->value[node] += (node < sources) == kind ? reduced : -reduced;
        for (Index child = tree->first[node]; child >= 0; child = tree->following[child])
            tree->stack[top++] = child;
    }
}

/* Bring the arc from node ``source`` to node ``sink`` into the tree, at ``reduced`` cost. */
PART void enter(const Tree *tree, Index source, Index sink, Real reduced, Index sources) {
    Index join = common_ancestor(tree, source, sink), least = INT64_MAX, leaving = -1;
    int from_source = 1;
    for (Index node = source; node != join; node = tree->parent[node])
        if (node < sources && tree->flow[node] < least) {
            least = tree->flow[node];
            leaving = node;
        }
    for (Index node = sink; node != join; node = tree->parent[node])
        if (node >= sources && tree->flow[node] <= least) {
            least = tree->flow[node];
            leaving = node;
            from_source = 0;
        }
    for (Index node = source; node != join; node = tree->parent[node])
        tree->flow[node] += node < sources ? -least : least;
    for (Index node = sink; node != join; node = tree->parent[node])
        tree->flow[node] += node < sources ? least : -least;
    Index root = from_source ? source : sink, above = from_source ? sink : source;
    for (Index node = root, carried = least;;) {
        Index parent = tree->parent[node], flow = tree->flow[node];
        detach(tree, node);
        attach(tree, node, above);
        tree->flow[node] = carried;
        if (node == leaving) break;
        above = node;
        carried = flow;
        node = parent;
    }
    settle(tree, root, reduced, sources);
}

KERNEL(pivot)(Index source, Index sink, Real reduced, Index sources, const Tree *tree) {
    enter(tree, source, sink, reduced, sources);
    return 0;
}

/* The column of row i with the most negative reduced cost, which is ``found``; 0 if none is. */
PART Index cheapest(const Cost *cost, const Real *value, Index i, Real *found) {
    const Real own = value[i], *row = cost->entry + i * cost->sinks, *others = value + cost->sources;
    Index column = 0;
    *found = 0.0;
    for (Index start = 0; start < cost->sinks; start += CHUNK) {
        Index end = sooner(start + CHUNK, cost->sinks), below = 0;
        for (Index j = start; j < end; j++) below += row[j] - own - others[j] < *found;
        for (Index j = start; below && j < end; j++)
            if (row[j] - own - others[j] < *found) {
                *found = row[j] - own - others[j];
                column = j;
            }
    }
    return column;
}

/* Pivot until no reduced cost is negative by more than ``slack`` relative, at most ``limit`` times;
 * ``pivots[0]`` says how often. Every row in turn offers its most negative arc. */
KERNEL(improve)(const Real *entry, Index sources, Index sinks, Real slack, Index limit,
                const Tree *tree, Index *pivots) {
    const Cost cost = {entry, sources, sinks};
    const Real *value = tree->value;
    pivots[0] = 0;
    for (Index i = 0, clean = 0; clean < sources && pivots[0] < limit; i = (i + 1) % sources) {
        Real reduced;
        Index j = cheapest(&cost, value, i, &reduced);
        Real scale = fabs(entry[i * sinks + j]) + fabs(value[i]) + fabs(value[sources + j]);
        clean++;
        if (!(reduced < -slack * scale)) continue;
        enter(tree, i, sources + j, reduced, sources);
        pivots[0]++;
        clean = 0;
    }
    return 0;
}
