/** Deterministic CBOR (RFC 8949, section 4.2.1): the subset that packed files use, and nothing else. */

/** A file or an argument that cannot be used; nothing is ever reported after one. */
export class PackedError extends Error {}

/** Throws unless the condition holds. */
export function need(condition, message) {
  if (!condition) throw new PackedError(message);
}

/** A tagged item. */
export class Tag {
  constructor(number, value) {
    this.number = number;
    this.value = value;
  }
}

function fitsHalf(value) {
  const size = Math.abs(value);
  let unit = 2 ** -24;
  while (size / unit >= 2048) unit *= 2;
  return size <= 65504 && Number.isInteger(size / unit);
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  take(count) {
    need(count <= this.bytes.length - this.at, "ends in the middle of an item");
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  argument(short) {
    need(short < 28, "has an item of indefinite or reserved length");
    if (short < 24) return short;
    const size = 1 << (short - 24);
    const start = this.at;
    this.take(size);
    if (size === 8) {
      const large = this.view.getBigUint64(start);
      need(large >= 2n ** 32n, "has an integer that is not in its shortest form");
      return large <= Number.MAX_SAFE_INTEGER ? Number(large) : large;
    }
    const value = size === 1 ? this.view.getUint8(start)
      : size === 2 ? this.view.getUint16(start) : this.view.getUint32(start);
    const least = size === 1 ? 24 : size === 2 ? 256 : 65536;
    need(value >= least, "has an integer that is not in its shortest form");
    return value;
  }

  item(depth = 0) {
    need(depth <= 16, "nests too deep");
    const first = this.take(1)[0];
    const major = first >> 5;
    if (major === 7) return this.simple(first & 31);
    const count = this.argument(first & 31);
    if (major === 0) return count;
    if (major === 1) return typeof count === "bigint" ? -1n - count : -1 - count;
    if (major === 6) return new Tag(count, this.item(depth + 1));
    need(count <= this.bytes.length - this.at, "ends in the middle of an item");
    if (major === 2) return this.take(count);
    if (major === 3) {
      try {
        const reader = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
        return reader.decode(this.take(count));
      } catch {
        throw new PackedError("has text that is not UTF-8");
      }
    }
    if (major === 4) return Array.from({ length: count }, () => this.item(depth + 1));
    const found = new Map();
    let before = null;
    for (let k = 0; k < count; k++) {
      const start = this.at;
      const key = this.item(depth + 1);
      const written = this.bytes.subarray(start, this.at);
      need(typeof key === "string" || typeof key === "number", "has a key that is no text");
      need(before === null || compare(before, written) < 0, "has a map whose keys are not in order");
      before = written;
      found.set(key, this.item(depth + 1));
    }
    return found;
  }

  simple(code) {
    if (code >= 20 && code <= 22) return [false, true, null][code - 20];
    need(code >= 25 && code <= 27, "has a simple value that means nothing here");
    const start = this.at;
    this.take(1 << (code - 24));
    let value;
    if (code === 25) {
      const half = this.view.getUint16(start);
      const exponent = (half >> 10) & 31;
      const fraction = half & 1023;
      need(exponent < 31, "has a number that is not finite");
      value = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
      if (half >> 15) value = -value;
    } else {
      value = code === 26 ? this.view.getFloat32(start) : this.view.getFloat64(start);
      need(Number.isFinite(value), "has a number that is not finite");
      const shorter = code === 26 ? fitsHalf(value) : Math.fround(value) === value;
      need(!shorter, "has a float that is not in its shortest form");
    }
    return new Float(value);
  }
}

/** Keeps 1.0 apart from 1 until types were checked. */
export class Float extends Number {}

/** Below, at or above zero as a is before, equal to or behind b. */
export function compare(a, b) {
  for (let k = 0; k < Math.min(a.length, b.length); k++) if (a[k] !== b[k]) return a[k] - b[k];
  return a.length - b.length;
}

const MOST_ITEMS = 2 ** 20;

/** Throws on too many items, before one of them is made. */
function requireFew(bytes) {
  let at = 0;
  let count = 0;
  while (at < bytes.length && (bytes[at] & 31) < 28) {
    const short = bytes[at] & 31;
    const major = bytes[at] >> 5;
    const wide = short < 24 ? 0 : 1 << (short - 24);
    let size = wide ? 0 : short;
    for (let k = 1; k <= wide; k++) size = size * 256 + (bytes[at + k] ?? 0);
    at += 1 + wide + (major === 2 || major === 3 ? size : 0);
    need(++count <= MOST_ITEMS, "has more than 1,048,576 items");
  }
}

/** The one item that some bytes are: maps as Map, floats as Float. */
export function decode(bytes) {
  requireFew(bytes);
  const reader = new Reader(bytes);
  const found = reader.item();
  need(reader.at === bytes.length, "has bytes after its end");
  return found;
}
