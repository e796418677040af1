/** What reports have cost: the same charges, figures and decisions as in Python (optmech.Ledger). */

import { need } from "./cbor.js";
import {
  UNIT, above, bestOrder, chargeOf, decimal, divergence, eighths, limit, logCharge, short, tail, units, within, written,
} from "./charges.js";
import { fields, hex, needMechanism, options } from "./fields.js";
import { keptRate } from "./rates.js";
import { Reach } from "./reach.js";
import { isPerDistance } from "./sentences.js";

const FORMAT = "optmech-ledger/1";
const MOST_CHARGED = 10n ** 24n * UNIT;
const AT_ONCE = 2 ** 28;
const NEARLY = 10n ** 8n;
const BETWEEN_FLOATS = 2 ** -50;
const MORE_SNAP = 1 + 2 ** -40;
const KEYS = ["format", "file", "radius", "between", "delta", "order", "draws", "spent", "before"];
const FIGURES = ["plain", "rows", "divergence"];
const sum = (parts) => parts.reduce((a, b) => a + b, 0n);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isPositive = (value) => typeof value === "number" && Number.isFinite(value) && value > 0;
const entries = (value) => (value !== null && typeof value === "object" && !Array.isArray(value)
  ? new Map(Object.entries(value)) : null);

/** The largest epsilon of ratios that a file states; 0 where there is none. */
const statedBy = ({ promises }) => promises.reduce((most, part) => Math.max(most, part.epsilon ?? 0), 0);

/** The rate that draws are charged with: what is given, and at least what the file states. */
function charged(mechanism, epsilon) {
  const stated = statedBy(mechanism);
  if (epsilon === null) {
    need(stated > 0, "epsilon: the packed file states none above 0");
    return stated;
  }
  need(isPositive(epsilon), "epsilon is not above 0");
  need(epsilon >= stated * (1 - 1e-12),
    `${epsilon} is below the epsilon of ${stated} that the packed file states`);
  return Math.max(epsilon, stated);
}

const times = ([a, b], [c, d]) => [a * c, b * d];
/** A radius and twice a snap, as fractions. */
const beyond = ([a, b], [c, d]) => [a * d + 2n * c * b, b * d];

/** What the log ratios of a row to others are at most, as a charge; null where only one of two entries is 0. */
function largest(own, others) {
  let [over, under, top] = [1n, 1n, 1];
  for (const theirs of others) {
    for (let k = 0; k < own.length; k++) {
      const [high, low] = own[k] > theirs[k] ? [own[k], theirs[k]] : [theirs[k], own[k]];
      if (high === low) continue;
      if (low === 0) return null;
      if (high / low < top * (1 - BETWEEN_FLOATS)) continue;
      const [a, b] = [BigInt(high), BigInt(low)];
      if (a * under > over * b) [over, under, top] = [a, b, high / low];
    }
  }
  return logCharge(over, under);
}

/** What a draw of a mechanism for the whole earth costs; its law has to keep what it states. */
function ofTheEarth(mechanism, rate, radius) {
  need(mechanism.kept(statedBy(mechanism) || rate) <= mechanism.snap * MORE_SNAP, "epsilon: the law of the file does not keep its own");
  return above(times([2n ** 40n + 1n, 2n ** 40n], times(decimal(rate), beyond(decimal(radius), decimal(mechanism.snap)))));
}

/** What a draw costs at any point: the rows of the file have to keep the rate, whatever its header says. */
function ofAnyPoint(mechanism, rate, radius, perDistance) {
  if (!perDistance) {
    const [stated, found] = [above(decimal(rate)), ofAnyRows(mechanism)];
    need(found !== null && found <= stated + stated / NEARLY, "rows of any two points differ by "
      + `${found === null ? "any factor" : written(found)} in their log probabilities, and ${written(stated)} is charged for them`);
    return found > stated ? found : stated;
  }
  const kept = keptRate(mechanism);
  need(kept <= rate * (1 + 1 / Number(NEARLY)),
    `the rows of the file keep ${kept} per unit of distance, and ${rate} is charged for them`);
  const far = beyond(decimal(radius), decimal(Math.max(mechanism.snap, mechanism.mesh.snap)));
  return above(times(decimal(Math.max(rate, kept)), far));
}

/** What the log ratios of any two rows are at most, as a charge; null where there is no bound. */
function ofAnyRows(mechanism) {
  const [low, high] = [[], []];
  for (let cell = 0; cell < mechanism.mesh.count; cell++) {
    for (const row of mechanism.numbers(cell)) {
      row.forEach((own, o) => {
        low[o] = Math.min(low[o] ?? own, own);
        high[o] = Math.max(high[o] ?? own, own);
      });
    }
  }
  return largest(high, [low]);
}

/** Charges of draws, in parts of 10^18. */
class Costs {
  #mechanism;
  #reach = null;
  #numbers = new Map();
  #rows = new Map();
  #divergences = new Map();

  constructor(mechanism, rate, radius, between) {
    this.#mechanism = mechanism;
    const stated = mechanism.promises.filter((part) => part.epsilon !== null);
    const perDistance = !stated.length || stated.some(isPerDistance);
    if (mechanism.kind !== "places") {
      this.places = 1;
      this.plain = (mechanism.kind === "earth" ? ofTheEarth : ofAnyPoint)(mechanism, rate, radius, perDistance);
      return;
    }
    this.places = mechanism.secrets.labels.length;
    this.#reach = new Reach(mechanism, radius, between);
    const each = units(times(decimal(rate), perDistance ? decimal(this.#reach.longest()) : [1n, 1n]));
    if (this.places ** 2 * mechanism.columns.length > AT_ONCE) {
      this.plain = short(each + 1n);
      return;
    }
    this.plain = each + each / NEARLY;
    let most = each;
    for (let place = 0; place < this.places; place++) if (this.rows(place) > most) most = this.rows(place);
    this.plain = most;
  }

  number(place) {
    if (this.#mechanism.kind !== "places") return 0;
    need(Number.isInteger(place) && place >= 0 && place < this.places, "the secret is no number of a place");
    return place;
  }

  /** What the log ratio of the row of a place to one near it is at most; throws beyond `plain`. */
  rows(place) {
    if (this.#reach === null) return this.plain;
    if (!this.#rows.has(place)) {
      const found = largest(this.#row(place), this.#reach.near(place).map((other) => this.#row(other)));
      need(found !== null && found <= this.plain, "rows of places within the radius differ by "
        + `${found === null ? "any factor" : written(found)} in their log probabilities, and `
        + `${written(this.plain)} is charged for them`);
      this.#rows.set(place, found);
    }
    return this.#rows.get(place);
  }

  /** The same of the Rényi divergences of an order, in both directions. */
  divergence(place, order) {
    if (this.#reach === null) return within(this.plain, order);
    const key = `${place} ${order}`;
    if (!this.#divergences.has(key)) {
      let found = 0n;
      const own = this.#row(place);
      const [row, seen] = [own.map(BigInt), new Set()];
      for (const other of this.#reach.near(place)) {
        const theirs = this.#row(other);
        if (seen.has(String(theirs))) continue;
        seen.add(String(theirs));
        const whole = theirs.map(BigInt);
        for (const both of [divergence(row, whole, order), divergence(whole, row, order)]) {
          if (both > found) found = both;
        }
      }
      this.#divergences.set(key, found < this.rows(place) ? found : this.rows(place));
    }
    return this.#divergences.get(key);
  }

  #row(place) {
    if (!this.#numbers.has(place)) {
      const one = 2 ** this.#mechanism.bits;
      this.#numbers.set(place, this.#mechanism.probabilities(place).map((p) => p * one));
    }
    return this.#numbers.get(place);
  }
}

const none = () => ({ draws: 0, plain: 0n, rows: 0n, divergence: 0n });
const plainOf = (spent) => Object.fromEntries(
  Object.entries(spent).map(([name, value]) => [name, name === "draws" ? value : written(value)]));

function spentOf(value) {
  const [draws, ...charges] = fields(entries(value), ["draws", ...FIGURES], "the ledger");
  need(isCount(draws), "the ledger has a number of draws that is none");
  const [plain, rows, divergences] = charges.map(chargeOf);
  return { draws, plain, rows, divergence: divergences };
}

function drawsOf(value) {
  need(Array.isArray(value), "the ledger has no draws");
  const found = new Map();
  for (const entry of value) {
    need(Array.isArray(entry) && entry.length === 2 && entry.every(isCount), "the ledger has an entry that is none");
    need(!found.has(entry[0]), "the ledger has a place twice");
    found.set(entry[0], entry[1]);
  }
  return found;
}

/** Draws of a packed mechanism and what they add up to; see docs/sticky.md for the three figures. */
export class Ledger {
  #costs;
  #limit;
  #order;
  #delta;
  #draws = new Map();
  #before = none();

  /** (mechanism, options) stands for (mechanism, null, 1, options). */
  constructor(mechanism, ...rest) {
    const [epsilon, radius, given = {}] = rest.length < 2 ? [null, 1, ...rest] : rest;
    needMechanism(mechanism);
    const { budget = null, delta = 1e-6, by = "plain", fallBack = "refuse", between = "positions",
      order = null } = options(given, ["budget", "delta", "by", "fallBack", "between", "order"]);
    need(["plain", "rows", "composed"].includes(by), "by is none of the figures");
    need(["refuse", "repeat"].includes(fallBack), "fallBack is unknown");
    need(["positions", "places"].includes(between), "between is neither positions nor places");
    need(isPositive(radius), "radius is not above 0");
    need(isPositive(delta) && delta <= 1, "delta is not above 0 and at most 1");
    need(budget === null || budget === 0 || isPositive(budget), "budget is no number from 0");
    const rate = charged(mechanism, epsilon);
    Object.assign(this, { mechanism, epsilon: rate, radius, budget, delta, by, fallBack, between });
    this.#costs = new Costs(mechanism, rate, radius, between);
    need(this.#costs.plain < MOST_CHARGED, "epsilon charges more than a ledger can add up");
    this.#delta = decimal(delta);
    this.#limit = budget === null ? null : limit(budget);
    this.#order = order === null ? bestOrder(this.#costs.plain, this.#delta, this.#limit)
      : 1 + eighths(order) / 8;
    Object.freeze(this);
  }

  /** What a draw is charged plainly: a decimal of nine digits. */
  get perDraw() {
    return Number(written(this.#costs.plain));
  }

  /** The Rényi order of the composed figure. */
  get order() {
    return this.#order;
  }

  /** How many draws were made at every place. */
  get draws() {
    return new Map([...this.#draws].sort(([a], [b]) => a - b));
  }

  /** Note one draw where it stays within the budget, and say whether it did. */
  charge(place) {
    const allowed = this.allows(place);
    if (allowed) this.enter(place);
    return allowed;
  }

  /** Note draws that were made elsewhere, whatever the budget. */
  enter(place, times = 1) {
    const number = this.#costs.number(place);
    need(isCount(times) && times > 0, "times is no whole number above 0");
    const total = [...this.#draws.values()].reduce((a, b) => a + b, this.#before.draws + times);
    need(Number.isSafeInteger(total), "the ledger has more draws than it can count");
    this.#draws.set(number, (this.#draws.get(number) ?? 0) + times);
  }

  /** Whether one more draw stays within the budget. */
  allows(place) {
    const number = this.#costs.number(place);
    this.#costs.rows(number);
    if (this.#limit === null) return true;
    const after = new Map(this.#draws).set(number, (this.#draws.get(number) ?? 0) + 1);
    return this.#sum(after, this.by) <= this.#limit;
  }

  /** `plain`, `rows` and `composed` of the draws so far. */
  figures() {
    return Object.fromEntries(["plain", "rows", "composed"].map(
      (name) => [name, Number(written(this.#sum(this.#draws, name)))]));
  }

  /** The draws and what they cost, to be kept on the device: what Python's `to_dict` gives. */
  toDict() {
    return {
      format: FORMAT,
      file: hex(this.mechanism.digest),
      radius: this.radius,
      between: this.between,
      delta: this.delta,
      order: this.#order,
      draws: [...this.draws],
      spent: plainOf(this.#spent(this.#draws, this.#order)),
      before: plainOf(this.#before),
    };
  }

  /**
   * Take over what `toDict` gave, before the first draw, and its order. `redesigned`: it may be of a
   * file that this mechanism replaces; what was spent counts on.
   */
  restore(state, given = {}) {
    const { redesigned = false } = options(given, ["redesigned"]);
    need(typeof redesigned === "boolean", "redesigned is neither true nor false");
    need(!this.#draws.size && !this.#before.draws, "the ledger has draws of its own, which would be forgotten");
    const [format, file, radius, between, delta, order, draws, spent, before] = fields(
      entries(state), KEYS, "the ledger");
    need(format === FORMAT && typeof file === "string", "is no ledger");
    const own = file === hex(this.mechanism.digest);
    need(own || redesigned, "is no ledger of this mechanism");
    need(radius === this.radius && between === this.between && delta === this.delta,
      "the ledger was kept for another radius, between or delta");
    const kept = { draws: drawsOf(draws), spent: spentOf(spent), before: spentOf(before) };
    const count = [...kept.draws.values()].reduce((a, b) => a + b, 0);
    need(count === kept.spent.draws && Number.isSafeInteger(count + kept.before.draws),
      "the ledger's draws do not add up");
    const power = 1 + eighths(order) / 8;
    if (own) {
      need([...kept.draws.keys()].every((place) => place < this.#costs.places),
        "the ledger has draws of places that there are not");
      const found = this.#spent(kept.draws, power);
      need(found.rows === kept.spent.rows && found.divergence === kept.spent.divergence,
        "the ledger's draws cost something else");
      this.#draws = kept.draws;
      this.#before = kept.before;
    } else {
      this.#before = Object.fromEntries(Object.entries(kept.spent).map(
        ([name, value]) => [name, value + kept.before[name]]));
    }
    this.#order = power;
  }

  #spent(draws, order) {
    const all = [...draws];
    const count = all.reduce((total, [, n]) => total + n, 0);
    return {
      draws: count,
      plain: BigInt(count) * this.#costs.plain,
      rows: sum(all.map(([place, n]) => BigInt(n) * this.#costs.rows(place))),
      divergence: sum(all.map(([place, n]) => BigInt(n) * this.#costs.divergence(place, order))),
    };
  }

  #sum(draws, name) {
    const [before, costs, all] = [this.#before, this.#costs, [...draws]];
    if (name === "plain") return before.plain + sum(all.map(([, n]) => BigInt(n) * costs.plain));
    const rows = before.rows + sum(all.map(([place, n]) => BigInt(n) * costs.rows(place)));
    if (name === "rows") return rows;
    const composed = before.divergence + tail(this.#delta, this.#order)
      + sum(all.map(([place, n]) => BigInt(n) * costs.divergence(place, this.#order)));
    return composed < rows ? composed : rows;
  }
}
