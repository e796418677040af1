/** Reports that repeat for as long as place and epoch are the same: the same bytes and decisions as in
 * Python (optmech.StickyReports). */

import { compare, need } from "./cbor.js";
import { fields, hex, list, needMechanism, options } from "./fields.js";
import { Ledger } from "./ledger.js";

const LABEL = new TextEncoder().encode("optmech-sticky/1");
const KEPT = new TextEncoder().encode("optmech-sticky-state/1");
const MOST_EPOCHS = 2n ** 64n;

export class StickyReports {
  #key;
  #save;
  #entered = new Map();
  #last = null;
  #turn = Promise.resolve();

  /**
   * `key`: 32 bytes that stay on the device. `period`: seconds of an epoch. `save`: called with
   * nothing after every draw that was charged, and awaited before its report is given out.
   */
  constructor(mechanism, key, given = {}) {
    const { period = 86400, ledger = null, save = null } = options(given, ["period", "ledger", "save"]);
    needMechanism(mechanism);
    const mesh = mechanism.kind === "mesh";
    need(!mesh || mechanism.lattice !== null, "is a mechanism for every point that states no epsilon, or one too large");
    this.snap = mesh ? mechanism.lattice.slack : 0;
    need(key instanceof Uint8Array && key.length === 32, "key is not 32 bytes");
    need(Number.isSafeInteger(period) && period >= 1, "period is no whole number above 0");
    need(ledger === null || ledger instanceof Ledger, "the ledger is none");
    need(save === null || typeof save === "function", "save is no function");
    need(ledger === null || compare(ledger.mechanism.digest, mechanism.digest) === 0,
      "the ledger is that of another packed file");
    need(ledger === null || ledger.radius > this.snap, "the ledger's radius is not above snap");
    this.mechanism = mechanism;
    this.period = period;
    this.ledger = ledger;
    this.#save = save;
    this.#key = crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    Object.freeze(this);
  }

  async #hmac(label, numbers) {
    const message = new Uint8Array(label.length + 32 + numbers.byteLength);
    message.set(label);
    message.set(this.mechanism.digest, label.length);
    message.set(new Uint8Array(numbers.buffer), label.length + 32);
    return new Uint8Array(await crypto.subtle.sign("HMAC", await this.#key, message));
  }

  /** The bytes of the draw for a place's number and an epoch. */
  async entropy(place, epoch) {
    this.#number(place);
    need(typeof epoch === "bigint" || Number.isSafeInteger(epoch), "the epoch is no whole number");
    const when = BigInt(epoch);
    need(when >= 0n && when < MOST_EPOCHS, "the epoch is out of range");
    const many = this.mechanism.kind !== "places";
    const numbers = new DataView(new ArrayBuffer(many ? 16 : 12));
    if (many) numbers.setBigUint64(0, BigInt(place), true);
    else numbers.setUint32(0, place, true);
    numbers.setBigUint64(many ? 8 : 4, when, true);
    return (await this.#hmac(LABEL, numbers)).slice(0, this.mechanism.drawBytes);
  }

  /**
   * The number of the report for a place (of a mechanism for every point a position) at a time in seconds since
   * 1970; null for none. One call after the other: a draw is fresh unless the place's last one was in the same epoch.
   */
  report(place, time = Date.now() / 1000) {
    const turn = this.#turn.then(() => this.#report(place, time));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #report(secret, time) {
    const mesh = this.mechanism.kind === "mesh";
    const place = mesh ? this.mechanism.number(secret) : this.#number(secret);
    const epoch = this.#epoch(time);
    if (place === null) return null;
    if (this.#entered.get(place) !== epoch) {
      if (this.ledger !== null && !this.ledger.charge(place)) {
        return this.ledger.fallBack === "repeat" ? this.#last : null;
      }
      const [before, last] = [this.#entered.get(place), this.#last];
      try {
        this.#entered.set(place, epoch);
        this.#last = await this.#draw(place, epoch);
        await this.#save?.();
      } catch (error) {
        // what was charged stays charged; nothing was given out
        this.#last = last;
        if (before === undefined) this.#entered.delete(place);
        else this.#entered.set(place, before);
        throw error;
      }
      return this.#last;
    }
    this.#last = await this.#draw(place, epoch);
    return this.#last;
  }

  async #draw(place, epoch) {
    const bytes = await this.entropy(place, epoch);
    const own = this.mechanism;
    return own.kind === "mesh" ? own.drawOf(place, bytes) : own.draw(place, bytes);
  }

  /** What was drawn and reported last, to be kept on the device: what Python's `to_dict` gives. */
  async toDict() {
    const entered = [...this.#entered].sort(([a], [b]) => a - b)
      .map(([place, epoch]) => [place, String(epoch)]);
    const last = this.#last;
    return { for: await this.#bound(), entered, last };
  }

  /** Take over what `toDict` gave, so that what was drawn is not charged again. */
  async restore(state) {
    need(state !== null && typeof state === "object", "are no sticky reports");
    const [bound, entered, last] = fields(new Map(Object.entries(state)), ["for", "entered", "last"],
      "the sticky reports");
    need(bound === await this.#bound(), "the sticky reports are of another key, file or period");
    need(last === null || (Number.isInteger(last) && last >= 0 && last < this.mechanism.reports.labels.length),
      "the last report is none");
    const found = new Map(list(entered, "the sticky reports").map((entry) => {
      need(Array.isArray(entry) && entry.length === 2 && typeof entry[1] === "string"
        && /^[0-9]{1,20}$/.test(entry[1]) && BigInt(entry[1]) < MOST_EPOCHS, "an entry is no place and epoch");
      return [this.#number(entry[0]), BigInt(entry[1])];
    }));
    this.#entered = found;
    this.#last = last;
  }

  #number(place) {
    const own = this.mechanism;
    const count = own.kind === "mesh" ? own.lattice.count : own.secrets.labels.length;
    need(Number.isInteger(place) && place >= 0 && place < count, "the secret is no number of a place");
    return place;
  }

  #epoch(time) {
    need(typeof time === "number" && Number.isFinite(time), "the time is none");
    need(time >= 0, "the time is before 1970");
    const epoch = BigInt(Math.floor(time)) / BigInt(this.period);
    need(epoch < MOST_EPOCHS, "the time is too late for epochs of 64 bits");
    return epoch;
  }

  async #bound() {
    const numbers = new DataView(new ArrayBuffer(8));
    numbers.setBigUint64(0, BigInt(this.period), true);
    return hex(await this.#hmac(KEPT, numbers));
  }
}

/**
 * Sticky reports of a mechanism within a budget that is one for all files: what others have spent counts on, and a
 * place that was drawn for stays known for its file, key and period. `radius`: of positions that are to be hidden among
 * each other. `reports`: how many of this file the budget is, or null. `kept`: what `save` was given last, or null.
 * Throws on a state that is none: what was spent is not known from it.
 */
export async function budgeted(mechanism, key, { radius, reports, period, kept, save }) {
  // positions count as the points of a lattice, where the mechanism is for every point
  const wide = radius + new StickyReports(mechanism, key).snap;
  const { perDraw } = new Ledger(mechanism, null, wide);
  const ledger = new Ledger(mechanism, null, wide, { budget: reports === null ? null : reports * perDraw });
  let known = {};
  const keep = async () => {
    const own = await sticky.toDict();
    known = { ...known, [own.for]: own };
    await save({ ledger: ledger.toDict(), sticky: known });
  };
  const sticky = new StickyReports(mechanism, key, { period, ledger, save: keep });
  if (kept === null) return sticky;
  need(typeof kept === "object", "what was spent is not known");
  const [spent, drawn] = fields(new Map(Object.entries(kept)), ["ledger", "sticky"], "what was spent");
  need([spent, drawn].every((part) => part !== null && typeof part === "object"), "what was spent is not known");
  // what another file spent was for the same positions, however far its lattice had them count
  const mine = spent.file === hex(mechanism.digest);
  ledger.restore(mine ? spent : { ...spent, radius: wide }, { redesigned: true });
  known = typeof drawn.for === "string" ? { [drawn.for]: drawn } : drawn;
  const { for: bound } = await sticky.toDict();
  if (Object.hasOwn(known, bound)) await sticky.restore(known[bound]);
  return sticky;
}
