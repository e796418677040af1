/** Entries of headers, checked: each throws where a value is of another type or out of its range. */

import { Float, PackedError, Tag, need } from "./cbor.js";
import { against, guessWords, protects, region } from "./sentences.js";

export const MOST_PLACES = 2 ** 16;
const MOST_COUNT = 2 ** 32;
const DIGEST = 32;
const CLAUSE = ["kind", "scope", "pairs", "limit", "measure", "epsilon", "delta", "bound", "repeats", "details"];
const SCOPES = ["every point", "cells", "places", "secrets", "distributions", "answers", "guesses", "average", "use",
  "unknown"];
const PAIRS = ["all", "near", "reached", "joined", "listed"];
const COURSES = ["straight", "great circle", "flat", "roads", "manhattan", ""];
const REPEATS = ["adds", "complement", "unknown", "none"];
const OBJECTIVES = ["expected_loss", "worst_loss", "maximize_distortion", "minimize_leakage", "mean_distance"];

/** Entries of the headers of files of every kind. */
export const COMMON = ["kind", "title", "promises", "prior", "loss", "design", "outside", "accuracy"];

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

const oneOf = (value, known, where) => {
  need(known.includes(value), `${where} is none of what there is`);
  return value;
};
const optional = (value, read, where) => (value === null ? null : read(value, where));
const amount = (value, where) => {
  need(float(value, where) >= 0, `${where} is below 0`);
  return Number(value);
};

function detailsOf(value) {
  need(value instanceof Map, "details are none");
  return Object.fromEntries([...value].map(([name, own]) => {
    const counts = typeof own === "number" && own >= 0 && own < MOST_COUNT;
    need(counts || own instanceof Float || typeof own === "string" || typeof own === "boolean", "details are none");
    return [name, own instanceof Float ? Number(own) : own];
  }));
}

function measureOf(value, where) {
  const [name, unit, course] = fields(value, ["name", "unit", "course"], where);
  return { name: text(name, where), unit: text(unit, where), course: oneOf(course, COURSES, "a course") };
}

function clauseOf(value) {
  const where = "a promise";
  const [kind, scope, pairs, limit, measure, epsilon, delta, bound, repeats, details] = fields(value, CLAUSE, where);
  return {
    kind: text(kind, where),
    scope: oneOf(scope, SCOPES, "a scope"),
    pairs: oneOf(pairs, PAIRS, "pairs"),
    limit: optional(limit, amount, where),
    measure: optional(measure, measureOf, where),
    epsilon: optional(epsilon, amount, where),
    delta: optional(delta, amount, where),
    bound: optional(bound, float, where),
    repeats: oneOf(repeats, REPEATS, "repeats"),
    details: detailsOf(details),
  };
}

/** A promise holds between what the file has, and by the distance and unit of its places or its mesh. */
function needGround({ kind, mesh = null, secrets = null }, { scope, measure, epsilon }) {
  const every = scope === "every point";
  const earth = kind === "earth";
  need(!every || mesh !== null || earth, "promises hold between what is not there");
  need(scope !== "cells" || (secrets !== null && secrets.kind === "grid"), "promises hold between what is not there");
  need(scope !== "use" || epsilon === null, "promises state an ε of what is for use alone");
  if (measure === null || earth || (mesh !== null && !every)) return;
  need(isProper(measure, mesh, secrets), "promises are by another distance or unit than places");
}

/** Whether there is such a distance between places, or points of a mesh. */
function isProper({ name, unit, course }, mesh, secrets) {
  const { unit: own, degrees } = mesh ?? secrets;
  if (mesh !== null) {
    const [named, way] = mesh.dimension > 1 ? ["roads", "roads"]
      : degrees ? ["haversine", "great circle"] : ["euclidean", "straight"];
    return name === named && course === way && unit === (named === "haversine" ? "km" : own);
  }
  const boxed = degrees && secrets.kind === "grid";
  if (name === "haversine") return degrees && !boxed && unit === "km" && course === "great circle";
  if (name === "graph" || name === "roads") return (unit === "" || unit === own) && course === "";
  if (name !== "euclidean" && name !== "manhattan") return unit === "" && course === "";
  const way = name === "manhattan" ? (boxed ? "" : "manhattan") : boxed ? "flat" : "straight";
  return (boxed || !degrees) && unit === own && course === way;
}

function priorOf(value, where) {
  const [places, entropy, seen, blind, date] = fields(value, ["places", "entropy", "seen", "blind", "date"], where);
  return {
    places: whole(places, 1, MOST_COUNT - 1, where),
    entropy: amount(entropy, where),
    seen: amount(seen, where),
    blind: amount(blind, where),
    date: optional(date, text, where),
  };
}

/** What every header says, put onto a mechanism that has its places: data, and sentences made of it. */
export function describeHeader(target, header, columns) {
  const [title, promises, prior, loss, design, outside, accuracy] = [
    "title", "promises", "prior", "loss", "design", "outside", "accuracy"].map((name) => header.get(name));
  target.title = text(title, "title");
  target.promises = list(promises, "promises").map(clauseOf);
  target.promises.forEach((clause) => needGround(target, clause));
  target.prior = optional(prior, priorOf, "prior");
  const [objective, ...figures] = fields(loss, ["objective", "design", "packed", "increase"], "loss");
  const [before, packed, increase] = figures.map((value) => float(value, "loss"));
  target.loss = { objective: oneOf(objective, OBJECTIVES, "objective"), design: before, packed, increase };
  need(design instanceof Uint8Array && design.length === DIGEST, "design is no digest");
  target.design = hex(design);
  target.outside = oneOf(outside, ["refuse", "nearest"], "outside");
  target.quantile = null;
  target.radius = null;
  if (accuracy !== null) {
    const [quantile, radius] = fields(accuracy, ["quantile", "radius"], "accuracy");
    target.quantile = float(quantile, "quantile");
    target.radius = numbers(radius, 86, "radius", columns);
    need(target.quantile > 0 && target.quantile < 1 && target.radius.every((r) => r >= 0),
      "accuracy is none");
  }
  target.region = region(target);
  target.guess = target.prior === null ? "" : guessWords(target.prior);
  target.protects = protects(target);
  target.doesNotPromise = against(target);
}
