/**
 * What the numbers of a packed file keep between positions, whatever its header says: as in Python
 * (optmech_devices.packed.costs and optmech_devices.packed.spherical).
 */

import { need } from "./cbor.js";
import { sines } from "./sphere.js";

const UNSURE = 2 ** -48;
const ON_THE_GLOBE = 1 + 2 ** -40;
const [EARTH_KM, RADIAN] = [6371.0088, Math.PI / 180];
const cross = ([a, b], [c, d]) => a * d - b * c;
const square = ([x, y]) => x * x + y * y;
/** Quotients of numbers from 0; 0 over 0 is 0. */
const quotient = (over, under) => (over === 0 ? 0 : over / under);

/** What a degree of longitude and of latitude count for in km, at most, around a latitude. */
function kilometres([west, east, south, north]) {
  const top = Math.max(Math.abs(south), Math.abs(north));
  const least = south <= 0 && north >= 0 ? 0 : Math.min(Math.abs(south), Math.abs(north));
  const across = (east - west) * RADIAN * sines(least)[1];
  const along = (north - south) * RADIAN;
  const length = Math.sqrt(across * across + along * along);
  const [s, c] = sines(top);
  const curvature = Math.sqrt(1 + (s / c) * (s / c) * 32 / 27);
  const half = Math.sin(curvature * length / 2) / curvature;
  const degree = 2 * Math.asin(half) / length * EARTH_KM * RADIAN;
  return (latitude) => [degree * sines(latitude)[1], degree];
}

/** For every control point of a degree what the rises along two edges are made of: [row, times]. */
function risesOf(degree) {
  const place = (one, two) => two * (degree + 1) - two * (two - 1) / 2 + one;
  const found = [];
  for (let two = 0; two <= degree; two++) {
    for (let one = 0; one <= degree - two; one++) {
      const counts = [degree - one - two, one, two];
      found.push([1, 2].map((edge) => counts.flatMap((times, k) => {
        if (!times) return [];
        const to = (corner) => place(one - Number(k === 1) + Number(corner === 1),
          two - Number(k === 2) + Number(corner === 2));
        return [[to(edge), times], [to(0), -times]];
      })));
    }
  }
  return found;
}

/** The least ε per km or unit at which the gradients of all triangles are within ε times the rows. */
function ofGradients(mesh, rowsOf) {
  const rises = risesOf(mesh.degree);
  const counts = mesh.degrees ? kilometres(mesh.box) : () => [1, 1];
  let most = 0;
  mesh.triangles.forEach((corners, t) => {
    const [a, b, c] = corners.map((k) => mesh.vertices[k]);
    const units = counts([a, b, c].reduce((top, [, y]) => Math.max(top, Math.abs(y)), 0));
    const [first, second] = [b, c].map((end) => end.map((value, axis) => (value - a[axis]) * units[axis]));
    const area = cross(first, second);
    const third = second.map((value, axis) => value - first[axis]);
    const longest = Math.max(square(first), square(second), square(third));
    const more = (1 + UNSURE * (longest / area)) * (mesh.degrees ? ON_THE_GLOBE : 1);
    const rows = rowsOf(t);
    rises.forEach((pair, at) => rows[at].forEach((own, o) => {
      const [one, two] = pair.map((terms) => terms.reduce((sum, [row, times]) => sum + times * rows[row][o], 0));
      const [x, y] = [0, 1].map((k) => (one * second[k] - two * first[k]) / area);
      most = Math.max(most, quotient(Math.sqrt(x * x + y * y), own) * more);
    }));
  });
  return most;
}

/** The same of the ends of segments. */
function ofSlopes(mesh, rowsOf) {
  let most = 0;
  mesh.widths.forEach((width, k) => {
    const [one, two] = rowsOf(k);
    one.forEach((own, o) => {
      const least = Math.min(own, two[o]);
      most = Math.max(most, quotient(Math.max(own, two[o]) - least, least * width) * (1 + UNSURE));
    });
  });
  return most;
}

/** The least ε per unit of distance that the rows of a mechanism keep at all points, rounded up. */
export const keptRate = (mechanism) => (mechanism.mesh.triangles ? ofGradients : ofSlopes)(
  mechanism.mesh, (cell) => mechanism.numbers(cell));

const reach = (height) => 2 * EARTH_KM * Math.asin(Math.sqrt(height / 2));

/** Half of how much more than rate · (their distance) two rings differ by, over the rate. */
function lag(rate, heights, sums) {
  const rest = 2n ** 64n - sums.at(-1);
  const masses = sums.map((sum, k) => Number(sum - (k ? sums[k - 1] : 0n)));
  const logs = masses.map((mass, k) => Math.log(mass / (heights[k + 1] - heights[k]) + Number(rest) / 2));
  const ends = heights.map(reach);
  let [most, high, low] = [0, -Infinity, Infinity];
  [...logs, Math.log(Number(rest) / 2)].forEach((log, k) => {
    if (k) most = Math.max(most, high - (log + rate * ends[k]), log - rate * ends[k] - low);
    if (k === logs.length) return;
    high = Math.max(high, log + rate * ends[k + 1]);
    low = Math.min(low, log - rate * ends[k + 1]);
  });
  return most / (2 * rate);
}

/**
 * How far beyond their distance two positions of the earth may be told apart, in km: by rings that
 * end at `heights` (0 first) with these sums over 2^64, and cells of as many bands.
 */
export function earthSnap(rate, heights, sums, bands) {
  const angle = Math.PI / bands;
  const [height, slow] = [angle * EARTH_KM, lag(rate, heights, sums)];
  const widest = heights.reduce((most, end, k) => (k ? Math.max(most, end - heights[k - 1]) : 0), 0);
  const moved = reach(heights.at(-1)) * 2 ** -37 + EARTH_KM * 2 ** -44 + reach(widest) * 2 ** -23
    + EARTH_KM * 2 ** -46 / Math.sin(angle);
  const share = moved / height;
  const even = 2 ** -46 / (0.49 * angle * angle) + bands * 2 ** -38;
  need(share < 0.01 && even < 0.2, "there are too many bands");
  const lost = (8 * share + Math.PI * share * share) / 0.78;
  const edge = Math.log1p(lost / (1 - lost) * Math.exp(rate * (1.88 * height + 2 * moved + 2 * slow)));
  return 0.94 * height + moved + slow + (edge + 2 * even) / (2 * rate);
}
