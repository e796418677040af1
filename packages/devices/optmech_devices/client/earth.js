/**
 * One mechanism for the whole earth: docs/packed.md, "The whole earth". Every draw looks at all rings
 * and keeps one by masks.
 */

import { need } from "./cbor.js";
import { COMMON, describeHeader, fields, float, numbers, whole } from "./fields.js";
import { earthSnap } from "./rates.js";
import { isPosition, sines } from "./sphere.js";

const MOST_RINGS = 2 ** 15;
const [LEAST_BANDS, MOST_BANDS] = [64, 2 ** 22];
const [RADIUS_KM, FARTHEST_KM] = [6371.0088, 5000];
const NORTH = [0, 90];

/** Cells of the earth, by numbers: cell c of band k is number 2 k bands + c. */
class Cells {
  constructor(bands) {
    this.kind = "earth";
    this.degrees = true;
    this.unit = "km";
    this.bands = bands;
    /** How many numbers there are; not all of them are cells. */
    this.labels = { length: 2 * bands * bands };
  }

  count(band) {
    return Math.ceil(2 * this.bands * sines((band + 0.5) / this.bands * 180 - 90)[1]);
  }

  /** Band and cell of a number. */
  split(number) {
    whole(number, 0, this.labels.length - 1, "the secret");
    need(Number.isInteger(number), "the secret is no number of a place");
    const cell = number % (2 * this.bands);
    const band = (number - cell) / (2 * this.bands);
    need(cell < this.count(band), "the secret is no number of a cell");
    return [band, cell];
  }

  /** Longitude from 0 to 360 and latitude of a centre. */
  centre(number) {
    const [band, cell] = this.split(number);
    return [(cell + 0.5) / this.count(band) * 360, (band + 0.5) / this.bands * 180 - 90];
  }

  locate([longitude, latitude]) {
    const band = Math.min(Math.floor((latitude + 90) / 180 * this.bands), this.bands - 1);
    const turn = longitude % 360;
    const x = turn < 0 ? turn + 360 : turn;
    const count = this.count(band);
    return 2 * this.bands * band + Math.min(Math.floor(x / 360 * count), count - 1);
  }

  /** The cell that a vector points at, by comparisons with sines alone. */
  of([x, y, up]) {
    let [low, high] = [0, this.bands];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (sines(middle / this.bands * 180 - 90)[0] <= up) low = middle;
      else high = middle;
    }
    const [band, count] = [low, this.count(low)];
    const west = y < 0 || (y === 0 && x < 0);
    [low, high] = [0, count];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const angle = middle / count * 360;
      const [s, c] = sines(angle);
      if (west === (angle >= 180) ? c * y - s * x >= 0 : west) low = middle;
      else high = middle;
    }
    return 2 * this.bands * band + low;
  }
}

export class EarthMechanism {
  #heights;
  #low;
  #high;
  #digest;

  /** Use `load`, which verifies the digest and the signature first. */
  constructor(header, content, digest) {
    fields(header, [...COMMON, "bands", "heights", "snap"], "the header");
    this.kind = "earth";
    this.secrets = new Cells(whole(header.get("bands"), LEAST_BANDS, MOST_BANDS, "bands"));
    this.reports = this.secrets;
    this.drawBytes = 19;
    const ends = numbers(header.get("heights"), 86, "heights");
    need(ends.every((end, k) => end > (k ? ends[k - 1] : 0)), "heights do not ascend");
    whole(ends.length, 1, MOST_RINGS, "rings");
    need(ends.at(-1) <= 2 && 2 * RADIUS_KM * Math.asin(Math.sqrt(ends.at(-1) / 2)) <= FARTHEST_KM,
      "rings are too far");
    need(content.length === 8 * ends.length, "the sums have another length");
    const view = new DataView(content.buffer, content.byteOffset, content.length);
    const sums = ends.map((_, k) => view.getBigUint64(8 * k, true));
    need(sums.every((sum, k) => sum > (k ? sums[k - 1] : 0n)), "sums do not ascend");
    this.#heights = Float64Array.from([0, ...ends]);
    this.#low = Uint32Array.from(sums, (sum) => Number(sum & 0xffffffffn));
    this.#high = Uint32Array.from(sums, (sum) => Number(sum >> 32n));
    this.snap = float(header.get("snap"), "snap");
    need(this.snap >= 0, "snap is below 0");
    describeHeader(this, header, 1);
    this.#digest = digest;
  }

  /** The file's own digest. */
  get digest() {
    return this.#digest.slice();
  }

  /** The number of the cell of a position. */
  locate(position) {
    need(isPosition(position, 2, true), "is no position");
    return this.secrets.locate(position);
  }

  /** The number of the report that `bytes` (exactly `drawBytes` of them) stand for in a cell. */
  draw(place, bytes) {
    need(bytes instanceof Uint8Array && bytes.length === this.drawBytes,
      `a draw takes ${this.drawBytes} bytes`);
    const own = this.secrets.centre(place);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const [low, high] = [view.getUint32(0, true), view.getUint32(4, true)];
    const within = view.getUint32(8, true) + view.getUint16(12, true) * 2 ** 32;
    const turn = view.getUint32(14, true) + bytes[18] * 2 ** 32;
    const count = this.#low.length;
    let ring = 0;
    for (let k = 0; k < count; k++) {
      const [a, b] = [this.#high[k], this.#low[k]];
      ring += Number(a < high) | (Number(a === high) & Number(b <= low));
    }
    let [begin, end] = [0, 0];
    for (let k = 0; k < count; k++) {
      const here = Number(k === ring);
      begin += here * this.#heights[k];
      end += here * this.#heights[k + 1];
    }
    const everywhere = ring === count;
    if (everywhere) [begin, end] = [0, 2];
    const height = begin + within / 2 ** 48 * (end - begin);
    return this.secrets.of(led(everywhere ? NORTH : own, height, turn * 360 / 2 ** 40));
  }

  /** How far, in km, positions may be told apart beyond their distance by a rate; for the ledger. */
  kept(rate) {
    const sums = Array.from(this.#low, (low, k) => (BigInt(this.#high[k]) << 32n) + BigInt(low));
    return earthSnap(rate, [...this.#heights], sums, this.secrets.bands);
  }

  /** A report for a cell, from the system's entropy. */
  sample(place) {
    return this.draw(place, crypto.getRandomValues(new Uint8Array(this.drawBytes)));
  }

  /** A report from a position: label, coordinates and accuracy; null outside, where that is refused. */
  report(position) {
    return this.describe(this.sample(this.locate(position)));
  }

  /** Label, coordinates and accuracy of a report. */
  describe(report) {
    const [x, y] = this.secrets.centre(report);
    return { label: report, coordinates: [x > 180 ? x - 360 : x, y],
      accuracy: this.radius === null ? null : this.radius[0] };
  }
}

/** Where one comes from a centre by a height and a bearing, as a vector. */
function led([longitude, latitude], height, bearing) {
  const [[s, c], [up, flat], [east, north]] = [sines(longitude), sines(latitude), sines(bearing)];
  const [sine, cosine] = [Math.sqrt(height * (2 - height)), 1 - height];
  const [n, e] = [sine * north, sine * east];
  return [cosine * (flat * c) - n * (up * c) - e * s, cosine * (flat * s) - n * (up * s) + e * c,
    cosine * up + n * flat];
}
