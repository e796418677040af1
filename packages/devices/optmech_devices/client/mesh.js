/**
 * Packed mechanisms that report from any point of a region, a line or roads: docs/packed.md, "Mechanisms for every
 * point". Every draw looks at all triangles, all control points and all rows, and keeps one by
 * masks.
 */

import { need } from "./cbor.js";
import { COMMON, describeHeader, fields, float, numbers, text, whole } from "./fields.js";
import { Places } from "./places.js";
import { Roads } from "./roads.js";
import { Border, FAR, between, boxOf, firstOf, isPosition, sines, turned } from "./sphere.js";
import { needMap, needOneRow, needTiling } from "./tiling.js";
import { Rows, equal, rowsUsed } from "./rows.js";

const MOST_TRIANGLES = 2 ** 16;
const UNIT = 2 ** 24;
const CORNER_BYTES = 3;
const [STICKY, WIDEST, EARTH_KM, MOST_POINTS] = [0.1, 90, 6371.0088, 2 ** 53];
const TOLERANCE = -(2 ** -32);
const [LEAST, NEAR, WIDE, TURN, KILOMETRES, UP] = [1e-200, 2 ** 18, 2 ** 30, 2 ** -43, 111.2, 1 + 2 ** -40];

/** The first where the flag is 0, the second where it is 1; for finite numbers, without a branch. */
const chosen = (flag, one, other) => one * (1 - flag) + other * flag;
const three = (count) => [0, 1, 2].map(() => new Float64Array(count));

/** Triangles, and where positions are in them. */
class Mesh {
  #x;
  #y;
  #area;
  #border;
  #weights;

  constructor(plain) {
    const [vertices, triangles, degree, , unit, coordinates] = fields(plain,
      ["vertices", "triangles", "degree", "rows", "unit", "coordinates"], "the mesh");
    need(coordinates === "lonlat" || coordinates === "plane", "coordinates are of no known kind");
    this.degrees = coordinates === "lonlat";
    this.unit = text(unit, "unit");
    this.degree = whole(degree, 1, 6, "degree");
    need(!this.degrees || this.unit === "km", "unit is not that of degrees, km");
    const flat = numbers(vertices, 86, "vertices");
    const corners = numbers(triangles, 70, "triangles");
    need(flat.length % 2 === 0 && corners.length % 3 === 0, "are no triangles of vertices");
    need(flat.every((value) => Math.abs(value) <= FAR), "a vertex is too far");
    const count = flat.length / 2;
    this.count = whole(corners.length / 3, 1, MOST_TRIANGLES, "triangles");
    need(corners.every((c) => c < count), "a corner is no vertex");
    this.vertices = Array.from({ length: count }, (_, k) => [flat[2 * k], flat[2 * k + 1]]);
    this.triangles = Array.from({ length: this.count }, (_, t) => corners.slice(3 * t, 3 * t + 3));
    [this.#x, this.#y] = [0, 1].map((axis) => Float64Array.from(corners, (c) => flat[2 * c + axis]));
    this.#area = Float64Array.from(this.triangles, ([a, b, c]) => {
      const [[ax, ay], [bx, by], [cx, cy]] = [a, b, c].map((k) => this.vertices[k]);
      return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    });
    const border = needTiling(this.vertices, this.triangles);
    need(this.#area.every((area) => area > 0), "a triangle has no area in floats");
    this.#border = new Border(border.map((edge) => edge.map((k) => this.vertices[k])), this.degrees);
    this.#weights = three(this.count);
    this.box = boxOf(this.vertices).flat();
    if (this.degrees) needMap(...this.box);
  }

  /** Control points of a triangle. */
  get each() {
    return (this.degree + 1) * (this.degree + 2) / 2;
  }

  /** How far a position may be from the point whose weights it gets. */
  get snap() {
    const [west, east, south, north] = this.box;
    const [across, up] = [east - west, north - south];
    const wide = across * across + up * up;
    const longest = this.triangles.map((corners) => corners.reduce((most, corner, k) => {
      const [[x, y], [a, b]] = [this.vertices[corner], this.vertices[corners[(k + 1) % 3]]];
      return Math.max(most, (x - a) * (x - a) + (y - b) * (y - b));
    }, 0));
    const far = longest.reduce((most, square, t) => {
      const area = this.#area[t];
      need(area > LEAST && square <= NEAR * area && wide <= WIDE * area,
        "a triangle is too thin, or too small beside the region, for positions in floats");
      return Math.max(most, Math.sqrt(square) * (2 ** -23 + 2 ** -29 + 2 ** -46 * wide / area));
    }, 0);
    return (this.degrees ? (far + TURN) * KILOMETRES : far) * UP;
  }

  /** Throws where a control point of several triangles has two rows. */
  needOneRow(rowOf) {
    needOneRow(this.triangles, this.degree, rowOf);
  }

  /** Where reports repeat. */
  lattice(slack) {
    return new Lattice(this, slack);
  }

  /** The number of the lattice's point next to a position; null outside, where that is refused. */
  number(position, outside, lattice) {
    const led = this.led(position, outside);
    return led === null ? null : lattice.number(led);
  }

  /** Triangle and weights of a point of the lattice; of the border's next to it, where it lies outside. */
  at(number, lattice) {
    return this.locate(lattice.point(number), "nearest");
  }

  /** The largest sum of both coordinates' steps along a part of the border. */
  get wide() {
    return this.#border.wide;
  }

  /**
   * A position as it is looked up: around the globe, and outside of the region on its border; null where that
   * is refused.
   */
  led(position, outside) {
    need(isPosition(position, 2, this.degrees), "is no position");
    const [west, east, south, north] = this.box;
    const [x, y] = [this.degrees ? turned(position[0], west, east) : position[0], position[1]];
    const [, least] = this.#find(x, y);
    const inside = west <= x && x <= east && south <= y && y <= north && least >= TOLERANCE;
    if (outside !== "nearest") return inside ? [x, y] : null;
    const foot = this.#border.foot(position);
    return [inside ? x : foot[0], inside ? y : foot[1]];
  }

  /** Triangle and weights over 2^24 of a position; null outside, where that is refused. */
  locate(position, outside) {
    const led = this.led(position, outside);
    if (led === null) return null;
    const [found] = this.#find(...led);
    const first = between(Math.floor(found.values[0] * UNIT), 0, UNIT) | 0;
    const second = between(Math.floor(found.values[1] * UNIT), 0, UNIT - first) | 0;
    return { triangle: found.place, weights: [first, second, UNIT - first - second] };
  }

  /**
   * The first triangle whose least weight is largest: its number, that weight, and the first two
   * weights.
   */
  #find(x, y) {
    const { count } = this;
    const [least, first, second] = this.#weights;
    let best = -Number.MAX_VALUE;
    for (let t = 0; t < count; t++) {
      const ux = this.#x[3 * t] - x;
      const uy = this.#y[3 * t] - y;
      const vx = this.#x[3 * t + 1] - x;
      const vy = this.#y[3 * t + 1] - y;
      const wx = this.#x[3 * t + 2] - x;
      const wy = this.#y[3 * t + 2] - y;
      const s0 = vx * wy - vy * wx;
      const s1 = wx * uy - wy * ux;
      const s2 = ux * vy - uy * vx;
      // a zero has one sign only after this
      const lower = chosen(Number(s1 < s0), s0, s1);
      least[t] = chosen(Number(s2 < lower), lower, s2) / this.#area[t] + 0;
      first[t] = s0 / this.#area[t];
      second[t] = s1 / this.#area[t];
      best = chosen(Number(best < least[t]), best, least[t]);
    }
    return [firstOf(least, best, [first, second]), best];
  }
}

/** Where reports repeat: what `PackedEverywhere.lattice` is in Python, by the same sums and products. */
class Lattice {
  #low;
  #high;
  #step;

  constructor(mesh, stated) {
    const [west, east, south, north] = mesh.box;
    [this.#low, this.#high] = [[west, south], [east, north]];
    const slack = mesh.degrees ? Math.min(stated, WIDEST) : stated;
    const boxed = [[west, south], [east, north], [west, north], [east, south]].every(([x, y]) =>
      mesh.vertices.some(([a, b]) => a === x && b === y));
    // by how much a foot may be farther away than the border itself
    const wide = boxed || !mesh.degrees ? 0 : mesh.wide * (Math.PI / 180);
    const more = wide * wide / 4 * EARTH_KM;
    const diagonal = boxed ? slack : Math.max(slack / 2 - more, slack / 4);
    this.slack = boxed ? slack : 2 * (diagonal + more);
    const side = (1 - 5e-5) * diagonal / Math.sqrt(2);
    this.#step = [side, side];
    if (mesh.degrees) {
      const near = south <= 0 && north >= 0 ? 0 : Math.min(Math.abs(south), Math.abs(north));
      const degree = EARTH_KM * (Math.PI / 180);
      this.#step = [side / (degree * sines(near)[1]), side / (degree * 1)];
    }
    [this.columns, this.rows] = this.#index(this.#high).map((k) => k + 1);
    this.count = this.columns * this.rows;
    Object.freeze(this);
  }

  #index(place) {
    return place.map((value, k) => Math.max(Math.floor((value - this.#low[k]) / this.#step[k] + 0.5), 0));
  }

  /** The number of the point next to a place of the region. */
  number(place) {
    const [column, row] = this.#index(place);
    return row * this.columns + column;
  }

  point(number) {
    return [number % this.columns, Math.floor(number / this.columns)].map((n, k) =>
      between(this.#low[k] + n * this.#step[k], this.#low[k], this.#high[k]));
  }
}

/** The lattice of what a file states; null without an ε per distance above 0, or where it is too fine. */
function latticeOf(mesh, promises) {
  const rate = promises.reduce((most, part) =>
    (part.scope === "every point" && part.measure !== null ? Math.max(most, part.epsilon ?? 0) : most), 0);
  if (!(rate > 0)) return null;
  const found = mesh.lattice(STICKY / rate);
  return found !== null && found.count < MOST_POINTS ? found : null;
}

export class MeshMechanism {
  #rows;
  #rowOf;
  #digest;

  /** Use `load`, which verifies the digest and the signature first. */
  constructor(header, content, digest) {
    fields(header, [...COMMON, "bits", "width", "mesh", "reports", "columns", "snap"], "the header");
    this.kind = "mesh";
    this.mesh = new (header.get("kind") === "mesh" ? Mesh : Roads)(header.get("mesh"));
    const { count, each } = this.mesh;
    const rowOf = numbers(header.get("mesh").get("rows"), 70, "rows", count * each);
    this.mesh.needOneRow(rowOf);
    this.reports = new Places(header.get("reports"));
    this.#rowOf = Int32Array.from(rowOf);
    this.#rows = new Rows(header, content, rowsUsed(rowOf), this.reports.labels.length);
    this.columns = this.#rows.columns;
    this.bits = this.#rows.bits;
    this.drawBytes = CORNER_BYTES * this.mesh.degree + this.#rows.bytes;
    this.snap = float(header.get("snap"), "snap");
    need(this.snap >= 0, "snap is below 0");
    describeHeader(this, header, this.columns.length);
    this.lattice = latticeOf(this.mesh, this.promises);
    this.#digest = digest;
  }

  /** The file's own digest. */
  get digest() {
    return this.#digest.slice();
  }

  /** The triangle or segment of a position and its weights there; null outside, where that is refused. */
  locate(position) {
    return this.mesh.locate(position, this.outside);
  }

  /**
   * The number of the report that `bytes` (exactly `drawBytes` of them) stand for at a position; -1
   * outside, where that is refused.
   */
  draw(position, bytes) {
    return this.#drawn(this.locate(position), bytes);
  }

  /** The number of the lattice's point next to a position; null outside, where that is refused. */
  number(position) {
    need(this.lattice !== null, "there is no lattice");
    return this.mesh.number(position, this.outside, this.lattice);
  }

  /** What `bytes` stand for at a point of the lattice; at the border's next to it, where it lies outside. */
  drawOf(number, bytes) {
    need(this.lattice !== null && Number.isInteger(number) && number >= 0 && number < this.lattice.count,
      "is no number of a point of the lattice");
    return this.#drawn(this.mesh.at(number, this.lattice), bytes);
  }

  #drawn(found, bytes) {
    need(bytes instanceof Uint8Array && bytes.length === this.drawBytes,
      `a draw takes ${this.drawBytes} bytes`);
    if (found === null) return -1;
    const { degree, each } = this.mesh;
    const [first, second] = found.weights;
    let [one, two] = [0, 0];
    for (let k = 0; k < degree; k++) {
      const drawn = bytes[3 * k] | (bytes[3 * k + 1] << 8) | (bytes[3 * k + 2] << 16);
      const beyond = 1 - ((drawn - first) >>> 31);
      const last = 1 - ((drawn - first - second) >>> 31);
      one += beyond - last;
      two += last;
    }
    const at = found.triangle * each + two * (degree + 1) - two * (two - 1) / 2 + one;
    let row = 0;
    for (let k = 0; k < this.#rowOf.length; k++) row |= this.#rowOf[k] & equal(k, at);
    return this.#rows.draw(row, bytes.subarray(CORNER_BYTES * degree));
  }

  /** The whole numbers of the rows of a cell's control points; for the ledger, not for drawing. */
  numbers(cell) {
    const { each } = this.mesh;
    return Array.from(this.#rowOf.subarray(cell * each, (cell + 1) * each), (row) =>
      this.#rows.probabilities(row).map((p) => p * 2 ** this.bits));
  }

  /** A report at a position, from the system's entropy; -1 outside, where that is refused. */
  sample(position) {
    return this.draw(position, crypto.getRandomValues(new Uint8Array(this.drawBytes)));
  }

  /** A report from a position: label, coordinates and accuracy; null outside, where that is refused. */
  report(position) {
    const found = this.sample(position);
    return found < 0 ? null : this.describe(found);
  }

  /** Label, coordinates and accuracy of a report. */
  describe(report) {
    return this.reports.describe(report, this.columns, this.radius);
  }
}
