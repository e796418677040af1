"""Whether triangles tile a convex region, decided in whole numbers (theory: "Privacy at every
point").

This is trusted: what a mesh promises at every point rests on it. Nothing here searches.
"""

from __future__ import annotations

from collections.abc import Sequence

Place = tuple[int, int]
Corners = tuple[int, int, int]


def doubled_area(a: Place, b: Place, c: Place) -> int:
    """Twice the signed area of a triangle, positive where its corners run counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def covering_flaw(places: Sequence[Place], triangles: Sequence[Corners]) -> str:
    """Why the triangles do not tile a convex region edge to edge; empty where they do.

    ``places`` are the vertices in whole numbers, ``triangles`` their corners by index. Every
    triangle has to run counterclockwise, every directed edge to occur once, every vertex to be
    used, and the edges whose reverse does not occur to form one ring that turns left only, and
    once around. Winding numbers then leave no overlap, no gap and no vertex on another's edge.
    """
    edges: set[tuple[int, int]] = set()
    for t, (a, b, c) in enumerate(triangles):
        if doubled_area(places[a], places[b], places[c]) <= 0:
            return f"triangle {t} has no area, or runs clockwise"
        for edge in ((a, b), (b, c), (c, a)):
            if edge in edges:
                return f"two triangles lie on one side of the edge from vertex {a} of triangle {t}"
            edges.add(edge)
    if not edges:
        return "there are no triangles"
    unused = len(places) - len({a for a, _ in edges})
    if unused:
        return f"{unused} of the vertices are in no triangle"
    return _border_flaw(places, [(a, b) for a, b in edges if (b, a) not in edges])


def _border_flaw(places: Sequence[Place], border: list[tuple[int, int]]) -> str:
    following = dict(border)
    if len(following) < len(border):
        return "the border meets itself in a vertex"
    ring = [min(following)]
    while (after := following.get(ring[-1], ring[0])) != ring[0]:
        if len(ring) > len(border):
            break
        ring.append(after)
    if len(ring) != len(border):
        return "the border is not one ring: there is a hole, or two parts"
    steps = [
        (places[b][0] - places[a][0], places[b][1] - places[a][1])
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True)
    ]
    for k, (step, before) in enumerate(zip(steps, steps[-1:] + steps[:-1], strict=True)):
        turn = before[0] * step[1] - before[1] * step[0]
        ahead = before[0] * step[0] + before[1] * step[1]
        if turn < 0 or (turn == 0 and ahead <= 0):
            return f"the border is not convex at vertex {ring[k]}"
    upward = [y > 0 or (y == 0 and x > 0) for x, y in steps]
    if sum(up and not upward[k - 1] for k, up in enumerate(upward)) != 1:
        return "the border goes around more than once"
    return ""
