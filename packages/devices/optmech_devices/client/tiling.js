/** Whether triangles tile a convex region, decided in whole numbers, and their control points. */

import { need } from "./cbor.js";

const POLEWARD = 85;
const RADIAN = Math.PI / 180;

/** Pairs of floats as whole numbers over one power of two. */
function wholes(points) {
  const view = new DataView(new ArrayBuffer(8));
  const split = (value) => {
    view.setFloat64(0, value);
    const exponent = (view.getUint16(0) >> 4) & 2047;
    const mantissa = (view.getBigUint64(0) & (2n ** 52n - 1n)) + (exponent ? 2n ** 52n : 0n);
    return [value < 0 ? -mantissa : mantissa, Math.max(exponent, 1)];
  };
  const parts = points.map((point) => point.map(split));
  const least = parts.flat().reduce((low, [m, e]) => (m ? Math.min(low, e) : low), 2047);
  return parts.map((point) => point.map(([m, e]) => (m ? m << BigInt(e - least) : 0n)));
}

const cross = ([a, b], [c, d]) => a * d - b * c;
const between = ([a, b], [c, d]) => [c - a, d - b];

/**
 * Throws unless triangles tile a convex region edge to edge (theory, "Privacy at every point"); else
 * the edges of one of them only, in their order.
 */
export function needTiling(vertices, triangles) {
  const places = wholes(vertices);
  const count = places.length;
  for (const [a, b, c] of triangles) {
    need(cross(between(places[a], places[b]), between(places[a], places[c])) > 0n,
      "a triangle has no area, or runs clockwise");
  }
  const edges = triangles.flatMap(([a, b, c]) => [[a, b], [b, c], [c, a]]);
  const known = new Set(edges.map(([a, b]) => a * count + b));
  need(known.size === edges.length, "two triangles lie on one side of an edge");
  need(new Set(triangles.flat()).size === count, "a vertex is in no triangle");
  const border = edges.filter(([a, b]) => !known.has(b * count + a));
  const following = new Map(border);
  need(following.size === border.length, "the border meets itself in a vertex");
  const ring = [border[0][0]];
  for (let next = following.get(ring[0]); next !== ring[0] && ring.length <= border.length;) {
    ring.push(next);
    next = following.get(next);
  }
  need(ring.length === border.length, "the border is not one ring");
  const steps = ring.map((a, k) => between(places[a], places[ring[(k + 1) % ring.length]]));
  steps.forEach((step, k) => {
    const before = steps.at(k - 1);
    const turn = cross(before, step);
    need(turn > 0n || (turn === 0n && before[0] * step[0] + before[1] * step[1] > 0n),
      "the border is not convex");
  });
  const upward = steps.map(([x, y]) => y > 0n || (y === 0n && x > 0n));
  need(upward.filter((up, k) => up && !upward.at(k - 1)).length === 1,
    "the border goes around more than once");
  return border;
}

/** Throws where a map of degrees says nothing of distances in a box. */
export function needMap(west, east, south, north) {
  const top = Math.max(Math.abs(south), Math.abs(north));
  const least = south <= 0 && north >= 0 ? 0 : Math.min(Math.abs(south), Math.abs(north));
  need(Math.max(Math.abs(west), Math.abs(east)) <= 360 && top <= POLEWARD && east - west < 180,
    "the region is too large for a map of degrees");
  const across = (east - west) * RADIAN * Math.cos(least * RADIAN);
  const along = (north - south) * RADIAN;
  const curvature = Math.sqrt(1 + Math.tan(top * RADIAN) ** 2 * 32 / 27);
  need(curvature * Math.sqrt(across * across + along * along) < 3,
    "the region is too large for a map of degrees");
}

/** Throws where a control point of several triangles has two rows. */
export function needOneRow(triangles, degree, rowOf) {
  const known = new Map();
  let at = 0;
  for (const corners of triangles) {
    for (let two = 0; two <= degree; two++) {
      for (let one = 0; one <= degree - two; one++, at++) {
        const counts = [degree - one - two, one, two];
        const held = corners.map((corner, k) => [corner, counts[k]]).filter(([, n]) => n > 0);
        if (held.length === 3) continue;
        const name = held.sort(([a], [b]) => a - b).join(";");
        if (!known.has(name)) known.set(name, rowOf[at]);
        need(known.get(name) === rowOf[at], "control points of one edge have two rows");
      }
    }
  }
}
