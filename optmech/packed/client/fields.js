/** Entries of headers, checked: each throws where a value is of another type or out of its range. */

import { Float, PackedError, Tag, need } from "./cbor.js";

export const MOST_PLACES = 2 ** 16;
const DIGEST = 32;

const BYTES = ["[object Uint8Array]", "[object ArrayBuffer]"];
const VERIFIED = new WeakSet();

/** A copy of a file's bytes, also of another window's; anything else is refused. */
export function copied(content, most) {
  need(BYTES.includes(Object.prototype.toString.call(content)), "the content is no Uint8Array and no ArrayBuffer");
  need(content.byteLength <= most, "is too large");
  try {
    return new Uint8Array(new Uint8Array(content));
  } catch {
    throw new PackedError("the content cannot be read");
  }
}

/** An object of options that has no others than these. */
export function options(given, known) {
  need(Object.prototype.toString.call(given) === "[object Object]", "the options are no object");
  for (const name in given) need(known.includes(name), `there is no option ${name}`);
  return given;
}

/** A value that nobody changes, nor anything in it; numbers of machine words are private. */
function frozen(value) {
  if (value === null || typeof value !== "object" || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  Object.values(value).forEach(frozen);
  return value;
}

/** What `load` gives: nothing in it can be replaced, and nothing else counts as a mechanism. */
export function verified(mechanism) {
  VERIFIED.add(frozen(mechanism));
  return mechanism;
}

export const needMechanism = (value) => need(VERIFIED.has(value), "the mechanism is none that load gave");

export function fields(value, names, where) {
  need(value instanceof Map && value.size === names.length && names.every((n) => value.has(n)),
    `${where} has missing or unknown entries`);
  return names.map((name) => value.get(name));
}

export const text = (value, where) => {
  need(typeof value === "string", `${where} is no text`);
  return value;
};
export const float = (value, where) => {
  need(value instanceof Float, `${where} is no float`);
  return Number(value);
};
export const whole = (value, least, most, where) => {
  need(typeof value === "number" && value >= least && value <= most, `${where} is out of range`);
  return value;
};
export const list = (value, where) => {
  need(Array.isArray(value), `${where} is no list`);
  return value;
};

export function numbers(item, tag, where, count = null) {
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

export function label(value, depth = 0) {
  if (Array.isArray(value) && depth < 8) return value.map((part) => label(part, depth + 1));
  need(value === null || ["string", "number", "bigint", "boolean"].includes(typeof value)
    || value instanceof Float, "a label is none");
  return value instanceof Float ? Number(value) : value;
}

export const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** What every header says in words and figures, put onto a mechanism. */
export function describeHeader(target, header, columns) {
  const [title, protects, against, constraints, region, prior, loss, design, outside, accuracy] = [
    "title", "protects", "does not promise", "constraints", "region", "prior", "loss", "design",
    "outside", "accuracy"].map((name) => header.get(name));
  target.title = text(title, "title");
  target.protects = list(protects, "protects").map((part) => text(part, "protects"));
  target.doesNotPromise = list(against, "does not promise").map((part) => text(part, "promises"));
  target.guess = target.doesNotPromise.find((said) => said.startsWith("The best guess from one report")) ?? "";
  target.constraints = list(constraints, "constraints").map((part) => {
    const [kind, promise, epsilon, per] = fields(
      part, ["kind", "promise", "epsilon", "per"], "a constraint");
    const rate = epsilon === null ? null : float(epsilon, "epsilon");
    need(rate === null || rate >= 0, "epsilon is below 0");
    return { kind: text(kind, "kind"), promise: text(promise, "promise"), epsilon: rate,
      per: text(per, "per") };
  });
  target.region = text(region, "region");
  const [words, date] = fields(prior, ["words", "date"], "prior");
  target.prior = { words: text(words, "prior"), date: date === null ? null : text(date, "date") };
  const [objective, ...figures] = fields(loss, ["objective", "design", "packed", "increase"], "loss");
  const [before, packed, increase] = figures.map((value) => float(value, "loss"));
  target.loss = { objective: text(objective, "loss"), design: before, packed, increase };
  need(design instanceof Uint8Array && design.length === DIGEST, "design is no digest");
  target.design = hex(design);
  need(outside === "refuse" || outside === "nearest", "outside is neither refuse nor nearest");
  target.outside = outside;
  target.quantile = null;
  target.radius = null;
  if (accuracy !== null) {
    const [quantile, radius] = fields(accuracy, ["quantile", "radius"], "accuracy");
    target.quantile = float(quantile, "quantile");
    target.radius = numbers(radius, 86, "radius", columns);
    need(target.quantile > 0 && target.quantile < 1 && target.radius.every((r) => r >= 0),
      "accuracy is none");
  }
}
