/**
 * Which places are to be hard to tell apart, for a radius between positions or between places, step
 * by step as in Python (optmech_devices.packed.costs).
 */

import { need } from "./cbor.js";
import { sines, vector } from "./sphere.js";

const EARTH_KM = 6371.0088;
const MORE = 1 + 1e-9;
const WIDE = 1e-9;
const UNSURE = 1e-12;
const FLAT_UNITS = 1e-14;
const WIDEST = 60;
const RADIANS = Math.PI / 180;
const square = (step) => step.slice(1).reduce((sum, x) => sum + x * x, step[0] * step[0]);
const length = (step) => Math.sqrt(square(step));
const minus = (one, other) => one.map((x, k) => x - other[k]);
const chord = (degrees) => 2 * sines(Math.min(degrees, 180) / 2)[0];

function greatCircle([a, b], [c, d]) {
  const [over, along] = [Math.sin((b - d) * RADIANS / 2), Math.sin((a - c) * RADIANS / 2)];
  const half = over * over + Math.cos(b * RADIANS) * Math.cos(d * RADIANS) * (along * along);
  return 2 * EARTH_KM * Math.asin(Math.sqrt(Math.min(1, half)));
}

/** The part of a convex polygon where x·u + y·v is at most the limit. */
function cut(cell, [x, y], limit) {
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

/** The part of a rectangle where z · seen is at most half of away, and a little more. */
function cellOf(seen, away, wide, tall, unsure) {
  let cell = [[-wide, -tall], [wide, -tall], [wide, tall], [-wide, tall]];
  const more = wide * (WIDE * wide + unsure);
  for (const k of [...away.keys()].sort((a, b) => away[a] - away[b] || a - b)) {
    const farthest = cell.reduce((most, [x, y]) => Math.max(most, x * x + y * y), 0);
    if (away[k] > 4 * farthest * MORE) break;
    if (away[k] > 0) cell = cut(cell, seen[k], away[k] / 2 + more);
  }
  return cell;
}

export class Reach {
  #places;
  #stated;
  #moved;
  #own;
  #corners = null;
  #radii = null;

  constructor(mechanism, radius, between) {
    this.#places = mechanism.secrets;
    this.#stated = mechanism.reach;
    this.radius = radius;
    this.between = between;
    this.count = this.#places.labels.length;
    if (this.#places.points !== null) this.#prepare();
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
      return length([(other % columns - place % columns) * cell[0],
        (Math.floor(other / columns) - Math.floor(place / columns)) * cell[1]]);
    }
    if (degrees) return greatCircle(points[other], points[place]);
    return length(minus(points[other], points[place]));
  }

  #tests(place) {
    const { kind, points, columns, cell } = this.#places;
    const moved = this.#moved;
    if (points === null) return () => true;
    if (this.between === "places") return (k) => this.#apart(place, k) <= this.radius * MORE;
    if (kind !== "grid") return this.#stated === null ? () => true : this.#ofPoints(place);
    return (k) => {
      const x = Math.max(Math.abs(k % columns - place % columns) - 1, 0) * cell[0];
      const y = Math.max(Math.abs(Math.floor(k / columns) - Math.floor(place / columns)) - 1, 0) * cell[1];
      return x * x + y * y <= moved * moved * MORE;
    };
  }

  #prepare() {
    const { kind, degrees, points } = this.#places;
    if (kind === "grid") this.#moved = this.#onTheMap();
    else if (degrees) {
      this.#moved = chord(this.radius / EARTH_KM / RADIANS);
      this.#own = points.map(vector);
    } else {
      this.#moved = this.radius;
      this.#own = points.map((point) => (point.length === 1 ? [point[0], 0] : point));
    }
  }

  /** How far two positions of a grid within the radius are apart on its map; without end: anywhere. */
  #onTheMap() {
    const { box, degrees } = this.#places;
    if (!degrees) return this.radius + FLAT_UNITS * Math.max(...box.map(Math.abs));
    const [west, south, east, north] = box;
    const latitude = Math.max(Math.abs(south), Math.abs(north));
    const aspect = Math.max(Math.cos((south + north) / 2 * RADIANS), 1e-9);
    const least = latitude < 90 ? Math.cos(latitude * RADIANS) : 0;
    const sine = Math.sin(Math.min(this.radius / (2 * EARTH_KM), Math.PI / 2));
    if (sine >= least) return Infinity;
    const turn = 2 * Math.asin(sine / least) * MORE + UNSURE;
    return turn / RADIANS >= 360 - (east - west) ? Infinity : turn * Math.max(least, aspect) * EARTH_KM;
  }

  /** Corners, from a place, of an area that holds its positions; none: they are within reach. */
  #cornersOf(place, reach) {
    const { points, degrees } = this.#places;
    const steps = this.#own.map((own) => minus(own, this.#own[place]));
    const away = steps.map(square);
    if (!degrees) {
      const tall = steps.some((step) => step[1] !== 0) ? reach : 0;
      return steps[0].length > 2 ? [] : cellOf(steps, away, reach, tall, 0);
    }
    if (this.#stated > WIDEST) return [];
    const [[s, c], [up, flat]] = points[place].map(sines);
    const [east, north] = [[-s, c, 0], [-up * c, -up * s, flat]];
    const along = (step, axis) => step[0] * axis[0] + step[1] * axis[1] + step[2] * axis[2];
    const seen = steps.map((step) => [along(step, east), along(step, north)]);
    const [sine, cosine] = sines(this.#stated);
    return cellOf(seen, away, sine / cosine, sine / cosine, UNSURE).map(([u, v]) => {
      const size = Math.sqrt(1 + (u * u + v * v));
      return this.#own[place].map((a, k) => (a + u * east[k] + v * north[k]) / size - a);
    });
  }

  #ofPoints(place) {
    const moved = this.#moved;
    const unsure = this.#places.degrees ? UNSURE : 0;
    if (this.#corners === null) {
      const reach = this.#places.degrees ? chord(this.#stated) : this.#stated;
      this.#corners = this.#own.map((_, k) => this.#cornersOf(k, reach));
      this.#radii = this.#corners.map((corners) => (corners.length
        ? Math.min(reach, corners.reduce((most, corner) => Math.max(most, length(corner)), 0)) : reach));
    }
    const [corners, radius] = [this.#corners[place], this.#radii[place]];
    return (k) => {
      const step = minus(this.#own[k], this.#own[place]);
      if (!(length(step) <= (radius + this.#radii[k] + moved) * MORE + unsure)) return false;
      return !corners.length || corners.some((corner) =>
        length(minus(step, corner)) <= (length(corner) + 2 * moved) * MORE + unsure);
    };
  }
}
