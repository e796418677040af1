/**
 * Positions on the globe, evaluated as docs/packed.md has it: the same in every reader, as sums and
 * products of float64 in one order.
 */

export const FAR = 2 ** 100;
const factorial = (n) => (n < 2 ? 1 : n * factorial(n - 1));
const SINE = [7, 6, 5, 4, 3, 2, 1].map((k) => (-1) ** k / factorial(2 * k + 1));
const COSINE = [8, 7, 6, 5, 4, 3, 2, 1].map((k) => (-1) ** k / factorial(2 * k));
const RADIAN = Math.PI / 180;
const [PARTS_PER_DEGREE, MOST_PARTS] = [16, 256];
export const between = (value, low, high) => Math.min(Math.max(value, low), high);

/** Whether coordinates are those of a position. */
export const isPosition = (position, dimension, degrees) =>
  (Array.isArray(position) || ArrayBuffer.isView(position)) && position.length === dimension
  && Array.from(position).every((value) => typeof value === "number" && Math.abs(value) <= FAR)
  && (!degrees || Math.abs(position[1]) <= 90);

/** Sine and cosine of an angle in degrees. */
export function sines(degrees) {
  const turn = degrees % 360;
  const quarter = Math.floor(turn / 90 + 0.5);
  const y = (turn - 90 * quarter) * RADIAN;
  const z = y * y;
  let [p, q] = [SINE[0], COSINE[0]];
  for (let k = 1; k < SINE.length; k++) p = p * z + SINE[k];
  for (let k = 1; k < COSINE.length; k++) q = q * z + COSINE[k];
  const s = y + (y * z) * p;
  const c = 1 + z * q;
  return [[s, c, -s, -c][quarter & 3], [c, -s, -c, s][quarter & 3]];
}

/** Longitude and latitude as a unit vector. */
export function vector([longitude, latitude]) {
  const [s, c] = sines(longitude);
  const [up, flat] = sines(latitude);
  return [flat * c, flat * s, up];
}

/** A longitude led around the globe: the first of r, r - 360 and r + 360 between west and east. */
export function turned(x, west, east) {
  const r = x % 360;
  for (const found of [r, r - 360, r + 360]) if (west <= found && found <= east) return found;
  return x;
}

const WORD = new Float64Array(1);
const WORDS = new Uint32Array(WORD.buffer);

/**
 * The first place where `keys` holds `wanted`, bit by bit and without a branch, and what the other
 * arrays hold there.
 */
export function firstOf(keys, wanted, others) {
  const bits = new Uint32Array(keys.buffer);
  WORD[0] = wanted;
  const [low, high] = WORDS;
  let open = 1;
  let place = 0;
  const values = new Float64Array(others.length);
  for (let k = 0; k < keys.length; k++) {
    const off = (bits[2 * k] ^ low) | (bits[2 * k + 1] ^ high);
    const own = open & (1 ^ ((off | -off) >>> 31));
    open ^= own;
    place |= k & -own;
    for (let n = 0; n < others.length; n++) values[n] += own * others[n][k];
  }
  return { place, values };
}

/** The least and the largest of every coordinate. */
export const boxOf = (points) => points[0].map((_, axis) => points.reduce(
  ([low, high], point) => [Math.min(low, point[axis]), Math.max(high, point[axis])], [Infinity, -Infinity]));

/** Whether a position is in a box, in degrees after it was led around the globe. */
export const inBox = (position, box, degrees) => box.every(([low, high], axis) => {
  const at = degrees && axis === 0 ? turned(position[0], low, high) : position[axis];
  return low <= at && at <= high;
});

/** Edges of a region in parts, which on the globe count as chords: `edges` holds [start, end]. */
export class Border {
  #lift;
  #parts = [];
  #apart;
  #feet;
  #shares;
  #edges;

  constructor(edges, degrees) {
    this.#lift = degrees ? vector : (position) => position;
    edges.forEach(([start, end], edge) => {
      const step = end.map((value, axis) => value - start[axis]);
      const wide = Math.max(...step.map(Math.abs));
      const count = degrees ? between(Math.ceil(wide * PARTS_PER_DEGREE), 1, MOST_PARTS) : 1;
      const at = (k) => start.map((value, axis) => value + k / count * step[axis]);
      for (let k = 0; k < count; k++) {
        const first = k === 0 ? start : at(k);
        const last = k + 1 === count ? end : at(k + 1);
        const tail = this.#lift(first);
        const along = this.#lift(last).map((value, axis) => value - tail[axis]);
        const length = along.slice(1).reduce((sum, a) => sum + a * a, along[0] * along[0]);
        this.#parts.push({ first, last, tail, along, length: length > 0 ? length : 1, edge, part: k, parts: count });
      }
    });
    [this.#apart, this.#shares, ...this.#feet] = Array.from({ length: 4 }, () => new Float64Array(this.#parts.length));
    this.#edges = Float64Array.from(this.#parts, ({ edge }) => edge);
  }

  /** The largest sum of both coordinates' steps along a part. */
  get wide() {
    return this.#parts.reduce((most, { first, last }) =>
      Math.max(most, Math.abs(last[0] - first[0]) + Math.abs(last[1] - first[1])), 0);
  }

  /** The point of the border next to a position. */
  foot(position) {
    return firstOf(this.#apart, this.#measured(position), this.#feet).values;
  }

  /** The edge of this point, and the share of the way along it. */
  next(position) {
    const best = this.#measured(position);
    const [edge, share] = firstOf(this.#apart, best, [this.#edges, this.#shares]).values;
    return { edge, share };
  }

  /** The least squared distance of a part, after all were looked at. */
  #measured(position) {
    const own = this.#lift(position);
    let best = Infinity;
    this.#parts.forEach(({ first, last, tail, along, length, part, parts }, n) => {
      let dot = (own[0] - tail[0]) * along[0];
      for (let k = 1; k < own.length; k++) dot += (own[k] - tail[k]) * along[k];
      const share = between(dot / length, 0, 1);
      let apart = 0;
      for (let k = 0; k < own.length; k++) {
        const step = own[k] - (tail[k] + share * along[k]);
        apart += step * step;
      }
      this.#apart[n] = apart;
      for (let k = 0; k < first.length; k++) this.#feet[k][n] = first[k] + share * (last[k] - first[k]);
      this.#shares[n] = (part + share) / parts;
      best = Math.min(best, apart);
    });
    return best;
  }
}
