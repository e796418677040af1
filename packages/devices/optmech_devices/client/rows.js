/** The numbers of a packed file: distinct rows, columns, and draws from one of the rows. */

import { need } from "./cbor.js";
import { numbers, whole } from "./fields.js";

const MOST_COLUMNS = 2 ** 15;
const LIMB = 24;
const LOW = 2 ** LIMB - 1;

/** -1 where a and b (below 2^31) are equal, else 0, without a branch. */
export const equal = (a, b) => ((a ^ b) - 1) >> 31;

/** How many rows the numbers speak of; each has to be used. */
export function rowsUsed(rowOf) {
  const count = rowOf.reduce((most, row) => Math.max(most, row), 0) + 1;
  need(new Set(rowOf).size === count, "a row is used by nobody");
  return count;
}

export class Rows {
  #low;
  #high;
  #count;

  constructor(header, content, count, reports) {
    const bits = header.get("bits");
    const width = header.get("width");
    need([16, 24, 32, 48].includes(bits), "bits are of no known number");
    this.bits = bits;
    this.bytes = bits / 8;
    this.columns = numbers(header.get("columns"), 70, "columns");
    whole(this.columns.length, 1, MOST_COLUMNS, "columns");
    need(this.columns.every((c, k) => c < reports && (!k || this.columns[k - 1] < c)),
      "columns are no ascending numbers of reports");
    const size = count * this.columns.length;
    need(width === this.bytes || width === this.bytes + 1, "width is out of range");
    need(content.length === size * width, "the rows have another length");
    this.#count = count;
    this.#low = new Int32Array(size);
    this.#high = new Int32Array(size);
    const total = 2 ** bits;
    let sum = 0;
    let certain = false;
    for (let k = 0; k < size; k++) {
      let [low, high] = [0, 0];
      for (let b = width - 1; b >= 3; b--) high = high * 256 + content[k * width + b];
      for (let b = Math.min(width, 3) - 1; b >= 0; b--) low = low * 256 + content[k * width + b];
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
    need(certain === (width > this.bytes), "entries are wider than they need be");
  }

  /**
   * The number of the report that `bytes` stand for in a row. Reads every row, compares every sum of
   * one, and branches on nothing that depends on row or bytes.
   */
  draw(row, bytes) {
    const width = this.columns.length;
    const low = new Int32Array(width);
    const high = new Int32Array(width);
    for (let r = 0, at = 0; r < this.#count; r++) {
      const mask = equal(r, row);
      for (let c = 0; c < width; c++, at++) {
        low[c] |= this.#low[at] & mask;
        high[c] |= this.#high[at] & mask;
      }
    }
    let [drawnLow, drawnHigh] = [0, 0];
    for (let b = 0; b < this.bytes; b++) {
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

  /** The probabilities of a row, exactly; not for drawing. */
  probabilities(row) {
    const start = row * this.columns.length;
    return this.columns.map((_, c) =>
      (this.#high[start + c] * 2 ** LIMB + this.#low[start + c]) / 2 ** this.bits);
  }
}
