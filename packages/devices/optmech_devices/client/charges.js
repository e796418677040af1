/**
 * What draws are charged, in whole numbers: logarithms and Rényi divergences, rounded up, step by step
 * as in Python (optmech_devices.packed.charges).
 */

import { need } from "./cbor.js";

export const UNIT = 10n ** 18n;
const EIGHTHS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024];
/** The Rényi orders that a ledger chooses from. */
export const ORDERS = EIGHTHS.map((power) => 1 + power / 8);
const PLACES = 128n;
const ONE = 1n << PLACES;
const LOG_2 = 0xb17217f7d1cf79abc9e3b39803f2f6b0n;
const TERMS = 85n;
const FACTORS = 12n;
const SMALL = 51;
const KEPT = 9;
const MEANT = 12;
const SURE = 15;
const LARGE = 2n ** 10n * UNIT;
const USUAL = 100n;

const up = (over, under) => (over + under - 1n) / under;
const scaled = (product) => (product + ONE - 1n) >> PLACES;
const most = (a, b) => (a > b ? a : b);
const least = (a, b) => (a < b ? a : b);

function bitLength(value) {
  const digits = value.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}

/** The number that a float is written as, in the fewest digits, as [numerator, denominator]. */
export function decimal(value) {
  const [, whole, rest = "", power = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value));
  const shift = Number(power) - rest.length;
  const digits = BigInt(whole + rest);
  return shift < 0 ? [digits, 10n ** BigInt(-shift)] : [digits * 10n ** BigInt(shift), 1n];
}

const step = (charge, digits) => 10n ** BigInt(Math.max(0, String(charge).length - digits));

/** A charge, rounded up to nine digits. */
export function short(charge) {
  const by = step(charge, KEPT);
  return up(charge, by) * by;
}

function nearest([over, under], digits) {
  const found = (2n * over * UNIT + under) / (2n * under);
  const by = step(found, digits);
  return (found + by / 2n) / by * by;
}

/** A charge that is stated: brought to twelve digits, and up to nine. */
export const units = (value) => short(nearest(value, MEANT));

/** A charge that nothing is compared with afterwards: up to nine digits, and never down. */
export const above = ([over, under]) => short(up(over * UNIT, under));

/** A budget as the decimal of at most fifteen digits that it is meant for: 3 · 0.7 is 2.1. */
export const limit = (budget) => nearest(decimal(budget), SURE);

/** A charge as a decimal. */
export function written(charge) {
  const rest = String(charge % UNIT).padStart(18, "0").replace(/0+$/, "");
  return `${charge / UNIT}${rest && "."}${rest}`;
}

/** The inverse. */
export function chargeOf(text) {
  need(typeof text === "string" && /^(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{0,17}[1-9])?$/.test(text),
    "a charge is none");
  const [whole, rest = ""] = text.split(".");
  return BigInt(whole) * UNIT + BigInt(rest.padEnd(18, "0"));
}

/** At least 2^128 ln(over / under), for over >= under > 0. */
export function logUp(over, below) {
  if (over === below) return 0n;
  let shift = Math.max(0, bitLength(over) - bitLength(below));
  if (over < below << BigInt(shift)) shift -= 1;
  const under = below << BigInt(shift);
  let part = up((over - under) << PLACES, over + under);
  const square = scaled(part * part);
  let total = 0n;
  for (let odd = 1n; odd < TERMS; odd += 2n) {
    total += up(part, odd);
    part = scaled(part * square);
  }
  return BigInt(shift) * LOG_2 + 2n * (total + 1n);
}

const charge = (logarithm, divisor) => short(up(logarithm * UNIT, divisor << PLACES));

/** At least ln(over / under), as a charge. */
export const logCharge = (over, under) => charge(logUp(over, under), 1n);

/** The whole number at or above the root of one above 0. */
function root(value) {
  const number = value - 1n;
  const shift = BigInt(Math.max(0, (bitLength(number) - 100) >> 1));
  let found = (BigInt(Math.floor(Math.sqrt(Number(number >> (2n * shift))))) + 1n) << shift;
  for (;;) {
    const next = (found + number / found) >> 1n;
    if (next >= found) return found + 1n;
    found = next;
  }
}

/** At least ratio^(power / 8), all over 2^128. */
function raised(ratio, power) {
  let base = ratio;
  for (let k = 0; k < 3; k++) base = root(base << PLACES);
  let found = ONE;
  for (let rest = power; rest; rest >>= 1) {
    if (rest & 1) found = scaled(found * base);
    base = scaled(base * base);
  }
  return found;
}

/** By how many eighths an order is above 1. */
export function eighths(order) {
  const found = typeof order === "number" ? (order - 1) * 8 : NaN;
  need(Number.isInteger(found) && found >= 1 && found <= 1024,
    "order is not 1 and a number of eighths, up to 129");
  return found;
}

/** At least the Rényi divergence of two laws of whole numbers, 0 at the same entries, as a charge. */
export function divergence(p, q, order) {
  const power = eighths(order);
  let [total, sum] = [0n, 0n];
  p.forEach((a, k) => {
    sum += a;
    if (a) total += a * raised(up(a << PLACES, q[k]), power);
  });
  return charge(8n * logUp(total, sum << PLACES), BigInt(power));
}

/** At least what δ = [numerator, denominator] costs at an order, as a charge. */
export function tail([numerator, denominator], order) {
  const power = BigInt(eighths(order));
  const over = denominator ** 8n * 8n ** 8n * power ** power;
  const under = numerator ** 8n * (8n + power) ** (8n + power);
  return over > under ? charge(logUp(over, under), power) : 0n;
}

/** At least 2^128 e^charge. */
function exponential(charge) {
  const halvings = BigInt(Math.max(0, bitLength(charge) - SMALL));
  const small = up(charge << PLACES, UNIT << halvings);
  let [found, term] = [ONE, ONE];
  for (let k = 1n; k < FACTORS; k++) {
    term = up(scaled(term * small), k);
    found += term;
  }
  found += term;
  for (let k = 0n; k < halvings; k++) found = scaled(found * found);
  return found;
}

/** At least the divergence of any two laws whose log ratios are at most a charge: randomised response's. */
export function within(most, order) {
  if (most >= LARGE) return most;
  const likely = exponential(most);
  return least(most, divergence([likely, ONE], [ONE, likely], order));
}

/** The order at which most draws of a charge stay within a budget (null: a hundred cost least). */
export function bestOrder(each, delta, budget) {
  let best = null;
  for (const order of ORDERS) {
    const cost = most(1n, within(each, order));
    const over = budget === null ? -USUAL * cost - tail(delta, order) : budget - tail(delta, order);
    const under = budget === null ? 1n : cost;
    if (best === null || over * best.under > best.over * under) best = { over, under, order };
  }
  return best.order;
}
