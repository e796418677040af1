/**
 * Packed mechanisms in the browser and in Node: read, verified, sampled without rounding.
 *
 * The file is specified in docs/packed.md. Draws use whole numbers below 2^31 only, take the same
 * number of bytes and touch the same memory for every secret: each draw reads all rows and keeps
 * one by masks, and compares the number drawn with every sum of it.
 */

import { Float, PackedError, Tag, compare, decode, need } from "./cbor.js";

export { PackedError } from "./cbor.js";
export { Ledger, ORDERS, StickyReports, geolocation, install } from "./sticky.js";

const FORMAT = "optmech-packed/1";
const MAX_BYTES = 64 * 2 ** 20;
const MOST_PLACES = 2 ** 16;
const MOST_COLUMNS = 2 ** 15;
const LIMB = 24;
const LOW = 2 ** LIMB - 1;
const DIGEST = 32;

// ==== checked entries ============================================================================
function fields(value, names, where) {
  need(value instanceof Map && value.size === names.length && names.every((n) => value.has(n)),
    `${where} has missing or unknown entries`);
  return names.map((name) => value.get(name));
}

const text = (value, where) => {
  need(typeof value === "string", `${where} is no text`);
  return value;
};
const float = (value, where) => {
  need(value instanceof Float, `${where} is no float`);
  return Number(value);
};
const whole = (value, least, most, where) => {
  need(typeof value === "number" && value >= least && value <= most, `${where} is out of range`);
  return value;
};
const list = (value, where) => {
  need(Array.isArray(value), `${where} is no list`);
  return value;
};

function numbers(item, tag, where, count = null) {
  const size = tag === 70 ? 4 : 8;
  need(item instanceof Tag && item.number === tag && item.value instanceof Uint8Array
    && item.value.length % size === 0, `${where} is no array under tag ${tag}`);
  const view = new DataView(item.value.buffer, item.value.byteOffset, item.value.length);
  const read = { 70: "getUint32", 71: "getBigUint64", 86: "getFloat64" }[tag];
  const found = Array.from({ length: view.byteLength / size }, (_, k) => view[read](k * size, true));
  need(tag !== 86 || found.every(Number.isFinite), `${where} has a number that is not finite`);
  need(count === null || found.length === count, `${where} has another length`);
  return found;
}

function label(value, depth = 0) {
  if (Array.isArray(value) && depth < 8) return value.map((part) => label(part, depth + 1));
  need(value === null || ["string", "number", "bigint", "boolean"].includes(typeof value)
    || value instanceof Float, "a label is none");
  return value instanceof Float ? Number(value) : value;
}

/** Places of a file: their labels, their coordinates, and which of them a position belongs to. */
class Places {
  constructor(plain) {
    need(plain instanceof Map, "places are none");
    this.kind = plain.get("kind");
    this.points = null;
    if (this.kind === "grid") this.#grid(plain);
    else if (this.kind === "points" || this.kind === "h3") this.#located(plain);
    else {
      need(this.kind === "labels", "places are of no known kind");
      const [, labels, unit] = fields(plain, ["kind", "labels", "unit"], "places");
      this.labels = list(labels, "labels").map((part) => label(part));
      this.unit = text(unit, "unit");
    }
    whole(this.labels.length, 1, MOST_PLACES, "places");
    need(new Set(this.labels.map((part) => JSON.stringify(part, (_, v) => (typeof v === "bigint" ? `${v}n` : v)))).size
      === this.labels.length, "a label occurs twice");
  }

  #grid(plain) {
    const [, rows, columns, cell, origin, unit, bounds] = fields(
      plain, ["kind", "rows", "columns", "cell", "origin", "unit", "bounds"], "places");
    this.rows = whole(rows, 1, MOST_PLACES, "rows");
    this.columns = whole(columns, 1, MOST_PLACES, "columns");
    whole(rows * columns, 1, MOST_PLACES, "places");
    this.cell = numbers(cell, 86, "cell", 2);
    this.origin = numbers(origin, 86, "origin", 2);
    this.unit = text(unit, "unit");
    need(this.cell[0] > 0 && this.cell[1] > 0, "a cell has no size");
    this.degrees = bounds !== null;
    this.box = this.degrees ? numbers(bounds, 86, "bounds", 4)
      : [this.origin[0], this.origin[1], this.origin[0] + columns * this.cell[0],
        this.origin[1] + rows * this.cell[1]];
    need(this.box[0] < this.box[2] && this.box[1] < this.box[3], "bounds hold nothing");
    this.labels = Array.from({ length: rows * columns },
      (_, k) => [Math.floor(k / columns), k % columns]);
    const [west, south, east, north] = this.box;
    this.points = this.labels.map(([row, column]) => (this.degrees
      ? [west + (column + 0.5) / columns * (east - west), south + (row + 0.5) / rows * (north - south)]
      : [west + (column + 0.5) * this.cell[0], south + (row + 0.5) * this.cell[1]]));
  }

  #located(plain) {
    const hexagons = this.kind === "h3";
    const names = hexagons ? ["kind", "cells", "points", "aspect"]
      : ["kind", "labels", "dimension", "points", "unit", "coordinates", "aspect"];
    fields(plain, names, "places");
    const coordinates = hexagons ? "lonlat" : plain.get("coordinates");
    need(coordinates === "lonlat" || coordinates === "plane", "coordinates are of no known kind");
    this.degrees = coordinates === "lonlat";
    this.unit = hexagons ? "km" : text(plain.get("unit"), "unit");
    this.aspect = float(plain.get("aspect"), "aspect");
    need(this.aspect > 0 && this.aspect <= 1, "aspect is no cosine above 0");
    this.labels = hexagons
      ? numbers(plain.get("cells"), 71, "cells").map((cell) => cell.toString(16).padStart(15, "0"))
      : list(plain.get("labels"), "labels").map((part) => label(part));
    const dimension = hexagons ? 2 : whole(plain.get("dimension"), 1, MOST_PLACES, "dimension");
    const flat = numbers(plain.get("points"), 86, "points", dimension * this.labels.length);
    this.points = this.labels.map((_, k) => flat.slice(k * dimension, (k + 1) * dimension));
    need(!this.degrees || (dimension === 2 && this.points.every(([x, y]) =>
      Math.abs(x) <= 360 && Math.abs(y) <= 90)), "points lie nowhere");
  }

  /** The number of the place of a position, or -1 outside; every place is looked at. */
  locate(position, reach, outside) {
    need(this.points !== null, "these places have no coordinates");
    need(position.length === this.points[0].length && position.every(Number.isFinite),
      "is no position");
    if (this.kind === "grid") {
      const [west, south, east, north] = this.box;
      let [x, y] = position;
      if (outside === "nearest") {
        x = Math.min(Math.max(x, west), east);
        y = Math.min(Math.max(y, south), north);
      }
      if (!(west <= x && x <= east && south <= y && y <= north)) return -1;
      const column = Math.floor((x - west) / (east - west) * this.columns);
      const row = Math.floor((y - south) / (north - south) * this.rows);
      return Math.min(row, this.rows - 1) * this.columns + Math.min(column, this.columns - 1);
    }
    let nearest = -1;
    let least = Infinity;
    for (let k = 0; k < this.points.length; k++) {
      let dx = position[0] - this.points[k][0];
      if (this.degrees) {
        if (dx > 180) dx -= 360;
        if (dx < -180) dx += 360;
      }
      dx *= this.aspect;
      let apart = dx * dx;
      for (let d = 1; d < position.length; d++) {
        const step = position[d] - this.points[k][d];
        apart += step * step;
      }
      const closer = apart < least;
      nearest = closer ? k : nearest;
      least = closer ? apart : least;
    }
    return reach !== null && outside === "refuse" && !(least <= reach * reach) ? -1 : nearest;
  }
}

// ==== the mechanism ==============================================================================
/** -1 where a and b (below 2^31) are equal, else 0, without a branch. */
const equal = (a, b) => ((a ^ b) - 1) >> 31;

export class Mechanism {
  #low;
  #high;
  #rowOf;
  #rows;

  /** Use `load`, which verifies the digest and the signature first. */
  constructor(header, rows) {
    const names = ["title", "protects", "does not promise", "constraints", "region", "prior",
      "loss", "design", "bits", "width", "secrets", "reports", "columns", "row of", "outside",
      "reach", "accuracy"];
    const [title, protects, against, constraints, region, prior, loss, design, bits, width,
      secrets, reports, columns, rowOf, outside, reach, accuracy] = fields(header, names, "the header");
    this.title = text(title, "title");
    this.protects = list(protects, "protects").map((part) => text(part, "protects"));
    this.doesNotPromise = list(against, "does not promise").map((part) => text(part, "promises"));
    this.constraints = list(constraints, "constraints").map((part) => {
      const [kind, promise, epsilon, per] = fields(
        part, ["kind", "promise", "epsilon", "per"], "a constraint");
      const rate = epsilon === null ? null : float(epsilon, "epsilon");
      need(rate === null || rate >= 0, "epsilon is below 0");
      return { kind: text(kind, "kind"), promise: text(promise, "promise"), epsilon: rate,
        per: text(per, "per") };
    });
    this.region = text(region, "region");
    const [words, date] = fields(prior, ["words", "date"], "prior");
    this.prior = { words: text(words, "prior"), date: date === null ? null : text(date, "date") };
    const [objective, ...figures] = fields(loss, ["objective", "design", "packed", "increase"], "loss");
    const [before, packed, increase] = figures.map((value) => float(value, "loss"));
    this.loss = { objective: text(objective, "loss"), design: before, packed, increase };
    need(design instanceof Uint8Array && design.length === DIGEST, "design is no digest");
    this.design = hex(design);
    need([16, 24, 32, 48].includes(bits), "bits are of no known number");
    this.bits = bits;
    this.drawBytes = bits / 8;
    this.secrets = new Places(secrets);
    this.reports = reports === null ? this.secrets : new Places(reports);
    this.columns = numbers(columns, 70, "columns");
    whole(this.columns.length, 1, MOST_COLUMNS, "columns");
    need(this.columns.every((c, k) => c < this.reports.labels.length && (!k || this.columns[k - 1] < c)),
      "columns are no ascending numbers of reports");
    need(outside === "refuse" || outside === "nearest", "outside is neither refuse nor nearest");
    this.outside = outside;
    this.reach = reach === null ? null : float(reach, "reach");
    need(this.reach === null || this.reach >= 0, "reach is below 0");
    this.quantile = null;
    this.radius = null;
    if (accuracy !== null) {
      const [quantile, radius] = fields(accuracy, ["quantile", "radius"], "accuracy");
      this.quantile = float(quantile, "quantile");
      this.radius = numbers(radius, 86, "radius", this.columns.length);
      need(this.quantile > 0 && this.quantile < 1 && this.radius.every((r) => r >= 0),
        "accuracy is none");
    }
    this.#read(rows, numbers(rowOf, 70, "row of", this.secrets.labels.length), width);
  }

  #read(rows, rowOf, width) {
    const count = rowOf.reduce((most, row) => Math.max(most, row), 0) + 1;
    need(new Set(rowOf).size === count, "a row is used by no secret");
    const size = count * this.columns.length;
    need(width === this.drawBytes || width === this.drawBytes + 1, "width is out of range");
    need(rows.length === size * width, "the rows have another length");
    this.#rows = count;
    this.#rowOf = Int32Array.from(rowOf);
    this.#low = new Int32Array(size);
    this.#high = new Int32Array(size);
    const total = 2 ** this.bits;
    let sum = 0;
    let certain = false;
    for (let k = 0; k < size; k++) {
      let [low, high] = [0, 0];
      for (let b = width - 1; b >= 3; b--) high = high * 256 + rows[k * width + b];
      for (let b = Math.min(width, 3) - 1; b >= 0; b--) low = low * 256 + rows[k * width + b];
      const entry = high * 2 ** LIMB + low;
      need(entry <= total, "an entry is above 2^bits");
      certain ||= entry === total;
      sum += entry;
      if (k % this.columns.length === this.columns.length - 1) {
        need(sum === total, "a row does not sum to 2^bits");
        sum = 0;
      }
      this.#low[k] = low;
      this.#high[k] = high;
    }
    need(certain === (width > this.drawBytes), "entries are wider than they need be");
  }

  /**
   * The number of the report that `bytes` (exactly `drawBytes` of them) stand for. Reads every
   * row, compares every sum of one, and branches on nothing that depends on secret or bytes.
   */
  draw(secret, bytes) {
    whole(secret, 0, this.secrets.labels.length - 1, "the secret");
    need(Number.isInteger(secret), "the secret is no number of a place");
    need(bytes instanceof Uint8Array && bytes.length === this.drawBytes,
      `a draw takes ${this.drawBytes} bytes`);
    const width = this.columns.length;
    let row = 0;
    for (let k = 0; k < this.#rowOf.length; k++) row |= this.#rowOf[k] & equal(k, secret);
    const low = new Int32Array(width);
    const high = new Int32Array(width);
    for (let r = 0, at = 0; r < this.#rows; r++) {
      const mask = equal(r, row);
      for (let c = 0; c < width; c++, at++) {
        low[c] |= this.#low[at] & mask;
        high[c] |= this.#high[at] & mask;
      }
    }
    let [drawnLow, drawnHigh] = [0, 0];
    for (let b = 0; b < this.drawBytes; b++) {
      if (b < 3) drawnLow |= bytes[b] << (8 * b);
      else drawnHigh |= bytes[b] << (8 * (b - 3));
    }
    let [sumLow, sumHigh, reached] = [0, 0, 0];
    for (let c = 0; c < width; c++) {
      sumLow += low[c];
      sumHigh += high[c] + (sumLow >> LIMB);
      sumLow &= LOW;
      const borrow = (drawnLow - sumLow) >>> 31;
      reached += 1 - ((drawnHigh - sumHigh - borrow) >>> 31);
    }
    return this.columns[reached];
  }

  /** The probabilities of a place's row, exactly; for the ledger, not for drawing. */
  probabilities(secret) {
    const start = this.#rowOf[secret] * this.columns.length;
    return this.columns.map((_, c) =>
      (this.#high[start + c] * 2 ** LIMB + this.#low[start + c]) / 2 ** this.bits);
  }

  /** A report for a secret, from the system's entropy. */
  sample(secret) {
    return this.draw(secret, crypto.getRandomValues(new Uint8Array(this.drawBytes)));
  }

  /** The number of the place of a position, or -1 outside the region. */
  locate(position) {
    return this.secrets.locate(position, this.reach, this.outside);
  }

  /** Label, coordinates and accuracy of a report. */
  describe(report) {
    const column = this.columns.indexOf(report);
    need(column >= 0, "is never reported");
    return { label: this.reports.labels[report],
      coordinates: this.reports.points === null ? null : [...this.reports.points[report]],
      accuracy: this.radius === null ? null : this.radius[column] };
  }
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const isBytes = (value) => value instanceof Uint8Array;

/** The plain file inside a signed one, after its signature was verified. */
async function unsigned(bytes, signer) {
  const parts = list(decode(bytes).value, "a signed file");
  need(parts.length === 4 && isBytes(parts[0]) && hex(parts[0]) === "a10127"
    && parts[1] instanceof Map && parts[1].size === 0 && isBytes(parts[2]) && isBytes(parts[3])
    && parts[3].length === 64, "is signed in another way than with Ed25519");
  need(signer, "is signed, and there is no key to verify that with");
  const [, , payload, signature] = parts;
  const size = payload.length;
  const head = size < 24 ? [0x40 + size] : size < 256 ? [0x58, size]
    : size < 65536 ? [0x59, size >> 8, size & 255]
      : [0x5a, size >>> 24, (size >> 16) & 255, (size >> 8) & 255, size & 255];
  const begin = [0x84, 0x6a, ...new TextEncoder().encode("Signature1"),
    0x43, 0xa1, 0x01, 0x27, 0x40, ...head];
  const stated = new Uint8Array(begin.length + size);
  stated.set(begin);
  stated.set(payload, begin.length);
  const key = await crypto.subtle.importKey("raw", signer, { name: "Ed25519" }, false, ["verify"]);
  need(await crypto.subtle.verify({ name: "Ed25519" }, key, signature, stated),
    "the signature is not that of the key given");
  return payload;
}

/**
 * Read a packed file. `signer`: the 32 bytes of the Ed25519 public key that it has to be signed
 * with. Throws PackedError unless it is exactly as specified.
 */
export async function load(content, { signer = null } = {}) {
  let bytes = content instanceof Uint8Array ? content : new Uint8Array(content);
  need(bytes.length <= MAX_BYTES, "is too large");
  if (bytes[0] === 0xd2) bytes = await unsigned(bytes, signer);
  else need(!signer, "is not signed, and a signature was asked for");
  const item = decode(bytes);
  need(item instanceof Tag && item.number === 55799 && Array.isArray(item.value)
    && item.value[0] === FORMAT && item.value.length === 4 && item.value.slice(1).every(isBytes),
  `is no file of format ${FORMAT}`);
  const [, header, rows, digest] = item.value;
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice(0, -DIGEST)));
  need(digest.length === DIGEST && compare(found, digest) === 0,
    "the content does not match its digest: the file was altered");
  const mechanism = new Mechanism(decode(header), rows);
  mechanism.digest = digest.slice();
  return mechanism;
}
