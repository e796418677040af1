/**
 * Which places are to be hard to tell apart, for a radius between positions or between places, step
 * by step as in Python (optmech.packed.reach).
 */

import { need } from "./cbor.js";

const EARTH_KM = 6371.0088;
const MORE = 1 + 1e-9;
const WIDE = 1e-9;
const RADIANS = Math.PI / 180;
const length = (x, y) => Math.sqrt(x * x + y * y);

function greatCircle([a, b], [c, d]) {
  const [over, along] = [Math.sin((b - d) * RADIANS / 2), Math.sin((a - c) * RADIANS / 2)];
  const half = over * over + Math.cos(b * RADIANS) * Math.cos(d * RADIANS) * (along * along);
  return 2 * EARTH_KM * Math.asin(Math.sqrt(Math.min(1, half)));
}

/** The part of a convex polygon where x·u + y·v is at most the limit, and a little more. */
function cut(cell, [x, y], exact, reach) {
  const limit = exact + WIDE * reach * reach;
  const over = cell.map(([u, v]) => x * u + y * v - limit);
  const out = [];
  cell.forEach(([u, v], k) => {
    const before = (k + cell.length - 1) % cell.length;
    if ((over[k] > 0) !== (over[before] > 0)) {
      const share = over[before] / (over[before] - over[k]);
      const [a, b] = cell[before];
      out.push([a + share * (u - a), b + share * (v - b)]);
    }
    if (over[k] <= 0) out.push([u, v]);
  });
  return out;
}

/** What is nearer to the origin than to any other of the steps, within a square. */
function cellOf(steps, place, reach) {
  const wide = steps.some((step) => step[1] !== 0) ? reach : 0;
  let cell = [[-reach, -wide], [reach, -wide], [reach, wide], [-reach, wide]];
  if (steps[0].length > 2) return cell;
  const away = steps.map((step) => step[0] * step[0] + step[1] * step[1]);
  const order = [...away.keys()].filter((k) => k !== place).sort((a, b) => away[a] - away[b] || a - b);
  for (const k of order) {
    const farthest = cell.reduce((most, [x, y]) => Math.max(most, x * x + y * y), 0);
    if (away[k] > 4 * farthest * MORE) break;
    if (away[k] > 0) cell = cut(cell, steps[k], away[k] / 2, reach);
  }
  return cell;
}

export class Reach {
  #places;
  #reach;
  #moved;
  #cells = null;
  #radii = null;

  constructor(mechanism, radius, between) {
    this.#places = mechanism.secrets;
    this.#reach = mechanism.reach;
    this.radius = radius;
    this.between = between;
    this.count = this.#places.labels.length;
    this.#moved = this.#places.points === null ? null : this.#furthest();
    if (between === "places" && this.#places.points !== null && this.count > 1) {
      for (let k = 0; k < this.count; k++) {
        need(this.near(k).length, `radius: ${radius} reaches no place from that of number ${k}`);
      }
    }
  }

  /** The numbers of the places that are charged for beside one. */
  near(place) {
    const found = [];
    const isNear = this.#tests(place);
    for (let k = 0; k < this.count; k++) if (k !== place && isNear(k)) found.push(k);
    return found;
  }

  /** The largest distance between two places that are charged for. */
  longest() {
    if (this.between === "places" || this.#places.points === null) return this.radius;
    let found = 0;
    for (let k = 0; k < (this.#places.kind === "grid" ? 1 : this.count); k++) {
      for (const other of this.near(k)) found = Math.max(found, this.#apart(k, other));
    }
    return found;
  }

  #apart(place, other) {
    const { kind, points, degrees, columns, cell } = this.#places;
    if (kind === "grid") {
      return length((other % columns - place % columns) * cell[0],
        (Math.floor(other / columns) - Math.floor(place / columns)) * cell[1]);
    }
    if (degrees) return greatCircle(points[other], points[place]);
    return Math.sqrt(points[other].reduce(
      (sum, x, k) => sum + (x - points[place][k]) * (x - points[place][k]), 0));
  }

  #tests(place) {
    const { kind, points, columns, cell } = this.#places;
    const moved = this.#moved;
    if (points === null) return () => true;
    if (this.between === "places") return (k) => this.#apart(place, k) <= this.radius * MORE;
    if (moved === null) return () => true;
    if (kind !== "grid") return this.#ofPoints(place);
    return (k) => {
      const x = Math.max(Math.abs(k % columns - place % columns) - 1, 0) * cell[0];
      const y = Math.max(Math.abs(Math.floor(k / columns) - Math.floor(place / columns)) - 1, 0) * cell[1];
      return x * x + y * y <= moved * moved * MORE;
    };
  }

  /** How far two positions within the radius are apart where places are compared; null: anywhere. */
  #furthest() {
    const { kind, box, degrees, points, aspect } = this.#places;
    const sides = { latitude: 0, beyond: 0, share: 1 };
    if (kind === "grid") {
      if (!degrees) return this.radius;
      const [west, south, east, north] = box;
      sides.latitude = Math.max(Math.abs(south), Math.abs(north));
      sides.beyond = 360 - (east - west);
      sides.share = Math.max(Math.cos((south + north) / 2 * RADIANS), 1e-9);
    } else {
      if (this.#reach === null) return null;
      if (!degrees) return this.radius;
      sides.latitude = points.reduce((most, point) => Math.max(most, Math.abs(point[1])), 0) + this.#reach;
      sides.beyond = 180 - 2 * Math.SQRT2 * this.#reach / aspect;
      sides.share = aspect;
    }
    const least = sides.latitude < 90 ? Math.cos(sides.latitude * RADIANS) : 0;
    const sine = Math.sin(Math.min(this.radius / (2 * EARTH_KM), Math.PI / 2));
    if (sine >= least) return null;
    const turn = 2 * Math.asin(sine / least) * MORE;
    if (turn / RADIANS >= sides.beyond) return null;
    const moved = turn * Math.max(least, sides.share);
    return kind === "grid" ? moved * EARTH_KM : moved / RADIANS;
  }

  #steps(place) {
    const { points, degrees, aspect } = this.#places;
    return points.map((point) => {
      const step = point.map((x, k) => x - points[place][k]);
      if (degrees) {
        if (step[0] > 180) step[0] -= 360;
        if (step[0] < -180) step[0] += 360;
        step[0] *= aspect;
      }
      return step.length === 1 ? [step[0], 0] : step;
    });
  }

  #ofPoints(place) {
    const moved = this.#moved;
    if (this.#cells === null) {
      this.#cells = Array.from({ length: this.count }, (_, k) => cellOf(this.#steps(k), k, this.#reach));
      this.#radii = this.#cells.map((cell) => Math.min(this.#reach,
        cell.reduce((most, [x, y]) => Math.max(most, length(x, y)), 0)));
    }
    const [steps, cell, radius] = [this.#steps(place), this.#cells[place], this.#radii[place]];
    return (k) => {
      const step = steps[k];
      const apart = Math.sqrt(step.reduce((sum, x) => sum + x * x, 0));
      if (!(apart <= (radius + this.#radii[k] + moved) * MORE)) return false;
      return step.length > 2 || cell.some(([x, y]) =>
        length(step[0] - x, step[1] - y) <= (length(x, y) + 2 * moved) * MORE);
    };
  }
}
