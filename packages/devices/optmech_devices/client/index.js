/**
 * Packed mechanisms in the browser and in Node: read, verified, sampled without rounding.
 *
 * The file is specified in docs/packed.md. Draws use whole numbers below 2^31 only, take the same
 * number of bytes and touch the same memory for every secret: each draw reads all rows and keeps
 * one by masks, and compares the number drawn with every sum of it.
 */

import { Tag, compare, decode, need } from "./cbor.js";
import { COMMON, copied, describeHeader, fields, float, hex, list, numbers, options, verified, whole } from "./fields.js";
import { EarthMechanism } from "./earth.js";
import { MeshMechanism } from "./mesh.js";
import { Places } from "./places.js";
import { Rows, equal, rowsUsed } from "./rows.js";

export { PackedError } from "./cbor.js";
export { EarthMechanism } from "./earth.js";
export { MeshMechanism } from "./mesh.js";
export { ORDERS } from "./charges.js";
export { geolocation, install } from "./geolocation.js";
export { Ledger } from "./ledger.js";
export { StickyReports } from "./sticky.js";

const FORMAT = "optmech-packed/4";
const OLD = ["optmech-packed/1", "optmech-packed/2", "optmech-packed/3"];
const MAX_BYTES = 64 * 2 ** 20;
const DIGEST = 32;

export class Mechanism {
  #rowOf;
  #rows;
  #digest;

  /** Use `load`, which verifies the digest and the signature first. */
  constructor(header, content, digest) {
    fields(header, [...COMMON, "bits", "width", "secrets", "reports", "columns", "row of", "reach"], "the header");
    this.kind = "places";
    this.secrets = new Places(header.get("secrets"));
    const reports = header.get("reports");
    this.reports = reports === null ? this.secrets : new Places(reports);
    const rowOf = numbers(header.get("row of"), 70, "row of", this.secrets.labels.length);
    this.#rowOf = Int32Array.from(rowOf);
    this.#rows = new Rows(header, content, rowsUsed(rowOf), this.reports.labels.length);
    this.columns = this.#rows.columns;
    this.bits = this.#rows.bits;
    this.drawBytes = this.#rows.bytes;
    const reach = header.get("reach");
    this.reach = reach === null ? null : float(reach, "reach");
    need(this.reach === null || this.reach >= 0, "reach is below 0");
    describeHeader(this, header, this.columns.length);
    this.#digest = digest;
  }

  /** The file's own digest. */
  get digest() {
    return this.#digest.slice();
  }

  /**
   * The number of the report that `bytes` (exactly `drawBytes` of them) stand for. Reads every
   * row, compares every sum of one, and branches on nothing that depends on secret or bytes.
   */
  draw(secret, bytes) {
    this.#number(secret);
    need(bytes instanceof Uint8Array && bytes.length === this.drawBytes,
      `a draw takes ${this.drawBytes} bytes`);
    let row = 0;
    for (let k = 0; k < this.#rowOf.length; k++) row |= this.#rowOf[k] & equal(k, secret);
    return this.#rows.draw(row, bytes);
  }

  /** The probabilities of a place's row, exactly; for the ledger, not for drawing. */
  probabilities(secret) {
    return this.#rows.probabilities(this.#rowOf[this.#number(secret)]);
  }

  #number(secret) {
    need(Number.isInteger(secret), "the secret is no number of a place");
    return whole(secret, 0, this.secrets.labels.length - 1, "the secret");
  }

  /** A report for a secret, from the system's entropy. */
  sample(secret) {
    return this.draw(secret, crypto.getRandomValues(new Uint8Array(this.drawBytes)));
  }

  /** The number of the place of a position, or -1 outside the region. */
  locate(position) {
    return this.secrets.locate(position, this.reach, this.outside);
  }

  /** A report from a position: label, coordinates and accuracy; null outside, where that is refused. */
  report(position) {
    const place = this.locate(position);
    return place < 0 ? null : this.describe(this.sample(place));
  }

  /** Label, coordinates and accuracy of a report. */
  describe(report) {
    return this.reports.describe(report, this.columns, this.radius);
  }
}

const KINDS = { places: Mechanism, mesh: MeshMechanism, network: MeshMechanism, earth: EarthMechanism };
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
 * with; where it is named, nothing else is taken for one. Throws PackedError unless the file is
 * exactly as specified.
 */
export async function load(content, given = {}) {
  const asked = "signer" in options(given, ["signer"]);
  need(!asked || (given.signer instanceof Uint8Array && given.signer.length === 32),
    "signer is no public key of 32 bytes");
  const signer = asked ? Uint8Array.from(given.signer) : null;
  // a copy: what the caller does to the buffer afterwards changes nothing
  let bytes = copied(content, MAX_BYTES);
  if (bytes[0] === 0xd2) bytes = await unsigned(bytes, signer);
  else need(!asked, "is not signed, and a signature was asked for");
  const item = decode(bytes);
  need(item instanceof Tag && item.number === 55799 && Array.isArray(item.value)
    && item.value.length > 0, "is no packed mechanism");
  need(!OLD.includes(item.value[0]), `is of format ${item.value[0]}, which is read no more: pack the design again`);
  need(item.value[0] === FORMAT && item.value.length === 4 && item.value.slice(1).every(isBytes),
    `is no file of format ${FORMAT}`);
  const [, header, rows, digest] = item.value;
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice(0, -DIGEST)));
  need(digest.length === DIGEST && compare(found, digest) === 0,
    "the content does not match its digest: the file was altered");
  const body = decode(header);
  const kind = body instanceof Map ? body.get("kind") : null;
  need(typeof kind === "string" && Object.hasOwn(KINDS, kind), "is of no known kind");
  return verified(new KINDS[kind](body, rows, digest.slice()));
}
