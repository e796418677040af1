/**
 * Around a packed mechanism: reports that repeat, what they cost, and a stand-in for
 * `navigator.geolocation`. The same bytes, figures and decisions as in Python (optmech.packed).
 */

import { PackedError } from "./cbor.js";

const LABEL = new TextEncoder().encode("optmech-sticky/1");
const EARTH_KM = 6371.0088;
const UP = 1 + 1e-9;
const EACH = 1e-10;
const AT_ONCE = 2 ** 28;
export const ORDERS = [1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128];

/** The other places at most `radius` away (km for degrees), as numbers. */
function near(places, place, radius) {
  const radians = Math.PI / 180;
  const { points, kind, degrees, cell, columns } = places;
  const others = [];
  for (let k = 0; k < places.labels.length; k++) {
    if (k === place) continue;
    let apart = 0;
    if (kind === "grid") {
      const dx = (k % columns - place % columns) * cell[0];
      const dy = (Math.floor(k / columns) - Math.floor(place / columns)) * cell[1];
      apart = Math.sqrt(dx * dx + dy * dy);
    } else if (degrees) {
      const [[a, b], [c, d]] = [points[k], points[place]];
      const half = Math.sin((b - d) * radians / 2) ** 2
        + Math.cos(b * radians) * Math.cos(d * radians) * Math.sin((a - c) * radians / 2) ** 2;
      apart = 2 * EARTH_KM * Math.asin(Math.sqrt(Math.min(1, half)));
    } else if (points !== null) {
      apart = Math.sqrt(points[k].reduce((sum, x, i) => sum + (x - points[place][i]) ** 2, 0));
    }
    if (apart <= radius * UP) others.push(k);
  }
  return others;
}

const logSum = (logs) => {
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  return top + Math.log(logs.reduce((sum, value) => sum + Math.exp(value - top), 0));
};

/** The rate that draws are charged with: what is given, and at least what the file states. */
function charged(mechanism, epsilon) {
  if (mechanism.kind !== "places") throw new PackedError("draws at points are not of places");
  const rates = mechanism.constraints.map((part) => part.epsilon).filter((rate) => rate !== null);
  const stated = rates.reduce((most, rate) => Math.max(most, rate), 0);
  if (epsilon === null) return stated;
  if (epsilon < stated * (1 - 1e-12)) {
    throw new PackedError(`${epsilon} is below the epsilon of ${stated} that the packed file states`);
  }
  return Math.max(epsilon, stated);
}

/**
 * Draws and what they add up to; see docs/sticky.md for the three figures. `epsilon`: what is
 * charged per unit of distance; null for what the file states, less than which is refused.
 */
export class Ledger {
  #costs = new Map();
  #rows = new Map();
  #others = new Map();

  constructor(mechanism, epsilon, radius,
    { budget = null, delta = 1e-6, by = "plain", fallBack = "refuse" } = {}) {
    if (!["plain", "rows", "composed"].includes(by)) throw new PackedError("by is none of the figures");
    if (!["refuse", "repeat"].includes(fallBack)) throw new PackedError("fallBack is unknown");
    const rate = charged(mechanism, epsilon);
    if (!(rate > 0 && radius > 0 && delta > 0 && delta <= 1)) {
      throw new PackedError("epsilon, radius and delta are above 0");
    }
    Object.assign(this, { mechanism, epsilon: rate, radius, budget, delta, by, fallBack });
    this.draws = new Map();
    const places = mechanism.secrets.labels.length;
    if (places * places * mechanism.columns.length <= AT_ONCE) {
      for (let place = 0; place < places; place++) this.#require(place);
    }
  }

  /** Throws where a row near a place's is further from it than is charged. */
  #require(place) {
    const own = this.#row(place);
    let [least, most] = [1, 1];
    for (const other of this.#near(place)) {
      this.#row(other).forEach((p, k) => {
        const ratio = p === own[k] ? 1 : p / own[k];
        least = Math.min(least, ratio);
        most = Math.max(most, ratio);
      });
    }
    const found = Math.log(Math.max(most, 1 / least));
    if (found > this.epsilon * this.radius * UP + EACH) {
      throw new PackedError(`places within ${this.radius} differ by ${found} in their log probabilities, `
        + `and ${this.epsilon * this.radius} is charged for them`);
    }
  }

  #near(place) {
    if (!this.#others.has(place)) {
      this.#others.set(place, near(this.mechanism.secrets, place, this.radius));
    }
    return this.#others.get(place);
  }

  #row(place) {
    if (!this.#rows.has(place)) this.#rows.set(place, this.mechanism.probabilities(place));
    return this.#rows.get(place);
  }

  enter(place) {
    this.draws.set(place, (this.draws.get(place) ?? 0) + 1);
  }

  allows(place) {
    if (this.budget === null) return true;
    const after = new Map(this.draws);
    after.set(place, (after.get(place) ?? 0) + 1);
    return this.figures(after)[this.by] <= this.budget;
  }

  /** `plain`, `rows` and `composed` of the draws so far. */
  figures(draws = this.draws) {
    const costs = new Array(ORDERS.length + 1).fill(0);
    let total = 0;
    for (const [place, count] of draws) {
      total += count;
      this.#cost(place).forEach((cost, k) => { costs[k] += count * cost; });
    }
    const [rows, ...divergences] = costs.map((cost) => cost * UP + total * EACH);
    let composed = rows;
    ORDERS.forEach((order, k) => {
      const tail = (Math.log(this.delta) + Math.log(order)) / (order - 1);
      composed = Math.min(composed, divergences[k] + Math.log((order - 1) / order) - tail);
    });
    return { plain: total * this.epsilon * this.radius * UP, rows, composed: Math.max(0, composed) };
  }

  #cost(place) {
    if (!this.#costs.has(place)) {
      const found = new Array(ORDERS.length + 1).fill(0);
      this.#require(place);
      const own = this.#row(place);
      for (const other of this.#near(place)) {
        const theirs = this.#row(other);
        if (own.some((p, k) => (p > 0) !== (theirs[k] > 0))) {
          found.fill(Infinity);
          break;
        }
        const used = [...own.keys()].filter((k) => own[k] > 0);
        const p = used.map((k) => Math.log(own[k]));
        const q = used.map((k) => Math.log(theirs[k]));
        const loss = p.map((value, k) => value - q[k]);
        found[0] = loss.reduce((most, value) => Math.max(most, Math.abs(value)), found[0]);
        ORDERS.forEach((order, n) => {
          const both = Math.max(0, logSum(p.map((value, k) => value + (order - 1) * loss[k])),
            logSum(q.map((value, k) => value - (order - 1) * loss[k])));
          found[n + 1] = Math.max(found[n + 1], both / (order - 1));
        });
      }
      this.#costs.set(place, found);
    }
    return this.#costs.get(place);
  }
}

/** Reports that repeat for as long as place and epoch are the same. */
export class StickyReports {
  #key;
  #entered = new Map();
  #last = null;

  /** `key`: 32 bytes that stay on the device. `period`: seconds of an epoch. */
  constructor(mechanism, key, { period = 86400, ledger = null } = {}) {
    if (mechanism.kind !== "places") throw new PackedError("draws at points are not of places");
    if (!(key instanceof Uint8Array) || key.length !== 32) throw new PackedError("key is not 32 bytes");
    if (!Number.isInteger(period) || period < 1) throw new PackedError("period is below 1");
    this.mechanism = mechanism;
    this.period = period;
    this.ledger = ledger;
    this.#key = crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  }

  /** The bytes of the draw for a place's number and an epoch. */
  async entropy(place, epoch) {
    const message = new Uint8Array(LABEL.length + 32 + 12);
    message.set(LABEL);
    message.set(this.mechanism.digest, LABEL.length);
    const view = new DataView(message.buffer, LABEL.length + 32);
    view.setUint32(0, place, true);
    view.setBigUint64(4, BigInt(epoch), true);
    const drawn = await crypto.subtle.sign("HMAC", await this.#key, message);
    return new Uint8Array(drawn).slice(0, this.mechanism.drawBytes);
  }

  /** The number of the report for a place at a time in seconds since 1970; null for none. */
  async report(place, time = Date.now() / 1000) {
    const epoch = Math.floor(time / this.period);
    if (!(epoch >= 0)) throw new PackedError("the time is before 1970");
    const fresh = this.#entered.get(place) !== epoch;
    if (fresh && this.ledger !== null) {
      if (!this.ledger.allows(place)) return this.ledger.fallBack === "repeat" ? this.#last : null;
      this.ledger.enter(place);
    }
    this.#entered.set(place, epoch);
    this.#last = this.mechanism.draw(place, await this.entropy(place, epoch));
    return this.#last;
  }
}

/**
 * A stand-in for `navigator.geolocation`: every position that `source` gives becomes a report, with
 * the mechanism's accuracy and without altitude, speed and heading; the time is that of the
 * epoch's begin. Outside the region, and beyond the ledger's budget, POSITION_UNAVAILABLE.
 */
export function geolocation(sticky, source = navigator.geolocation) {
  const { mechanism } = sticky;
  const unavailable = (message) => ({ code: 2, message, PERMISSION_DENIED: 1, POSITION_UNAVAILABLE: 2, TIMEOUT: 3 });
  const hidden = async (position, success, failure) => {
    try {
      const { longitude, latitude } = position.coords;
      const place = mechanism.locate([longitude, latitude]);
      const report = place < 0 ? null : await sticky.report(place, position.timestamp / 1000);
      if (report === null) {
        failure?.(unavailable(place < 0 ? "outside the region" : "the budget is spent"));
        return;
      }
      const { coordinates, accuracy } = mechanism.describe(report);
      success({
        coords: { longitude: coordinates[0], latitude: coordinates[1], accuracy: accuracy ?? 0,
          altitude: null, altitudeAccuracy: null, heading: null, speed: null },
        timestamp: Math.floor(position.timestamp / 1000 / sticky.period) * sticky.period * 1000,
      });
    } catch (error) {
      // never the true position, whatever went wrong
      failure?.(unavailable(String(error.message ?? error)));
    }
  };
  return {
    getCurrentPosition: (success, failure, options) =>
      source.getCurrentPosition((position) => hidden(position, success, failure), failure, options),
    watchPosition: (success, failure, options) =>
      source.watchPosition((position) => hidden(position, success, failure), failure, options),
    clearWatch: (watch) => source.clearWatch(watch),
  };
}

/** Put the stand-in in the place of `navigator.geolocation` in this page. */
export function install(sticky, target = navigator) {
  const stand = geolocation(sticky, target.geolocation);
  Object.defineProperty(target, "geolocation", { value: stand, configurable: false, writable: false });
  return stand;
}
