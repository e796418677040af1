/**
 * Segments of a line or of roads, and where positions are on them: docs/packed.md, "Roads and
 * lines". Every draw looks at all segments and keeps one by masks.
 */

import { need } from "./cbor.js";
import { fields, numbers, text, whole } from "./fields.js";
import { Border, FAR, boxOf, inBox, isPosition } from "./sphere.js";

const MOST_SEGMENTS = 2 ** 16;
const UNIT = 2 ** 24;
const [LEAST, UP] = [1e-200, 1 + 2 ** -40];
const [MOST_LONGITUDE, MOST_LATITUDE] = [360, 90];

/** Throws unless segments are a line through increasing numbers, or connected and all different. */
function needNetwork(vertices, segments, line) {
  if (line) {
    need(segments.length === vertices.length - 1
      && segments.every(([a, b], k) => a === k && b === k + 1 && vertices[a][0] < vertices[b][0]),
    "is no line through increasing numbers");
    return;
  }
  const beside = vertices.map(() => new Set());
  for (const [a, b] of segments) {
    need(a !== b, "a segment joins a vertex with itself");
    need(!beside[a].has(b), "two segments join the same vertices");
    beside[a].add(b);
    beside[b].add(a);
  }
  const reached = new Set([0]);
  for (const vertex of reached) for (const other of beside[vertex]) reached.add(other);
  need(reached.size === vertices.length, "a vertex cannot be reached along the roads");
}

/** Segments, and where positions are on them. */
export class Roads {
  degree = 1;
  each = 2;
  #border;

  constructor(plain) {
    const [vertices, dimension, segments, lengths, , unit, coordinates] = fields(plain,
      ["vertices", "dimension", "segments", "lengths", "rows", "unit", "coordinates"], "the mesh");
    need(coordinates === "lonlat" || coordinates === "plane", "coordinates are of no known kind");
    this.degrees = coordinates === "lonlat";
    this.unit = text(unit, "unit");
    this.dimension = whole(dimension, 1, 2, "dimension");
    need(!this.degrees || (this.unit === "km" && this.dimension === 2), "the unit or dimension is not that of degrees");
    const flat = numbers(vertices, 86, "vertices");
    const ends = numbers(segments, 70, "segments");
    need(flat.length % this.dimension === 0 && ends.length % 2 === 0, "are no segments of vertices");
    need(flat.every((value) => Math.abs(value) <= FAR), "a vertex is too far");
    const count = flat.length / this.dimension;
    this.count = whole(ends.length / 2, 1, MOST_SEGMENTS, "segments");
    need(ends.every((end) => end < count), "an end is no vertex");
    this.vertices = Array.from({ length: count }, (_, k) => flat.slice(k * this.dimension, (k + 1) * this.dimension));
    this.segments = Array.from({ length: this.count }, (_, k) => ends.slice(2 * k, 2 * k + 2));
    need(!this.degrees || this.vertices.every(([x, y]) => Math.abs(x) <= MOST_LONGITUDE && Math.abs(y) <= MOST_LATITUDE),
      "a vertex is no longitude and latitude");
    const line = this.dimension === 1;
    need(line === (lengths === null), "lengths are those of roads");
    this.widths = line ? this.segments.map(([a, b]) => flat[b] - flat[a]) : numbers(lengths, 86, "lengths", this.count);
    needNetwork(this.vertices, this.segments, line);
    need(this.widths.every((width) => width > 0), "a segment has no length");
    this.longest = this.widths.reduce((a, b) => Math.max(a, b));
    this.#border = new Border(this.segments.map((pair) => pair.map((k) => this.vertices[k])), this.degrees);
    this.box = boxOf(this.vertices);
  }

  /** How far along its segment a position may be from the point that is drawn from. */
  get snap() {
    if (this.dimension > 1) return this.longest * 2 ** -24 * UP;
    const least = this.widths.reduce((a, b) => Math.min(a, b));
    need(least * least > LEAST, "a segment is too short for positions in floats");
    const far = this.box[0].reduce((most, end) => Math.max(most, Math.abs(end)), 0);
    return (this.longest * (2 ** -24 + 2 ** -49) + far * 2 ** -50) * UP;
  }

  /** Throws where a vertex has two rows. */
  needOneRow(rowOf) {
    const known = new Map();
    this.segments.flat().forEach((vertex, k) => {
      need((known.get(vertex) ?? rowOf[k]) === rowOf[k], "a vertex has two rows");
      known.set(vertex, rowOf[k]);
    });
  }

  /** Segment and weights of its ends over 2^24 of a position; null outside, where that is refused. */
  locate(position, outside) {
    const found = this.#next(position, outside);
    if (found === null) return null;
    const last = Math.floor(found.share * UNIT) | 0;
    return { triangle: found.edge, weights: [UNIT - last, last] };
  }

  #next(position, outside) {
    need(isPosition(position, this.dimension, this.degrees), "is no position");
    const inside = inBox(position, this.box, this.degrees);
    const found = this.#border.next(position);
    return inside || outside === "nearest" ? found : null;
  }

  /** Where reports repeat; null where parts would be too many. */
  lattice(slack) {
    return this.longest / slack < UNIT ? new Steps(this, slack) : null;
  }

  /** The number of the lattice's point next to a position; null outside, where that is refused. */
  number(position, outside, lattice) {
    const found = this.#next(position, outside);
    return found === null ? null : lattice.number(found.edge, found.share);
  }

  /** Segment and weights of a point of the lattice. */
  at(number, lattice) {
    const { segment, step } = lattice.point(number);
    const last = Math.floor(step * UNIT / lattice.parts);
    return { triangle: segment, weights: [UNIT - last, last] };
  }
}

/** Where reports repeat: each segment in as many parts, whose ends at a vertex are one point. */
class Steps {
  #ends;
  #home;

  constructor(roads, slack) {
    this.parts = Math.max(1, Math.ceil(roads.longest / slack));
    this.slack = roads.longest / this.parts * (1 + 2 ** -20);
    this.vertices = roads.vertices.length;
    this.count = this.vertices + roads.count * (this.parts - 1);
    this.#ends = roads.segments.flat();
    this.#home = Array.from({ length: this.vertices });
    this.#ends.forEach((vertex, k) => { this.#home[vertex] ??= k; });
    Object.freeze(this);
  }

  /** The number of the point next to a share of the way along a segment: of a vertex, or behind these. */
  number(segment, share) {
    const step = Math.floor(share * this.parts + 0.5);
    let [first, last] = [0, 0];
    for (let k = 0; k < this.#ends.length; k += 2) {
      const own = Number(k === 2 * segment);
      first += own * this.#ends[k];
      last += own * this.#ends[k + 1];
    }
    const inner = this.vertices + segment * (this.parts - 1) + step - 1;
    const [begin, end] = [Number(step === 0), Number(step === this.parts)];
    return begin * first + end * last + (1 - begin - end) * inner;
  }

  /** The segment of a point, and how many parts along it. */
  point(number) {
    const vertex = Number(number < this.vertices);
    let home = 0;
    for (let k = 0; k < this.vertices; k++) home += Number(k === number) * this.#home[k];
    const behind = (1 - vertex) * (number - this.vertices);
    const each = Math.max(this.parts - 1, 1);
    const segment = Math.floor(behind / each);
    return {
      segment: vertex * ((home - home % 2) / 2) + (1 - vertex) * segment,
      step: vertex * (home % 2) * this.parts + (1 - vertex) * (behind - segment * each + 1),
    };
  }
}
