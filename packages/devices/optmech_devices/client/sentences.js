/**
 * What a packed file says in plain words: sentences made of the data in its header, and of its places;
 * the same table as in Python (optmech_devices.packed.sentences).
 */

import { boxOf } from "./sphere.js";

const CLAUSES = {
  metric_privacy: [
    "ε = {epsilon}",
    " per {per}",
    "{?everywhere}, at every point",
    ", for secrets up to {near} apart",
    ", where reports are up to {reached} away",
    "{?finite}, for the pairs at a finite distance",
    ", δ = {delta}",
  ],
  differential_privacy: [
    "ε = {epsilon}",
    "{?everywhere}, at every point",
    ", for secrets up to {near} apart",
    ", number of pairs: {listed}",
    ", δ = {delta}",
  ],
  policy_graph: ["ε = {epsilon} per unit of length in a graph", ", number of edges: {edges}"],
  distribution_privacy: [
    "{divergence} divergence",
    " of order {order}",
    " between distributions at most {bound}",
    "{?scaled}, scaled",
    ", number of pairs: {listed}",
    ", δ = {delta}",
  ],
  pufferfish: [
    "ε = {bound} for secrets behind the answer",
    ", number of pairs: {listed}",
    ", δ = {delta}",
  ],
  renyi_privacy: ["Rényi divergence of order {order} at most {bound}", " per {per}"],
  maximal_leakage: ["at most {bound} nats, for every prior"],
  pointwise_maximal_leakage: [
    "at most {bound} nats",
    "{?other}, under another prior",
    ", with any prior within {radius} of it ({within})",
  ],
  additive_capacity: ["at most {bound}, for every prior and gain up to 1"],
  mutual_information: ["at most {bound} nats", "{?other}, of another prior"],
  ratios: ["log ratios of its own"],
  linear: ["linear in the probabilities"],
  distortion_privacy: [
    "error of the best attack at least {least}",
    " ({distance})",
    "{?other}, with another prior",
    ", with any prior within {radius} of it ({within})",
  ],
  gain_leakage: [
    "the best guess gains at most {bound}",
    ", number of guesses: {guesses}",
    "{?other}, with another prior",
    ", with any prior within {radius} of it ({within})",
  ],
};
const ADDED = {
  renyi_privacy: "the divergence",
  maximal_leakage: "the leakage",
  mutual_information: "the information",
  ratios: "each log ratio",
};
const APART = {
  straight: "apart",
  "great circle": "apart",
  flat: "apart on the flat map",
  roads: "apart along the roads",
  manhattan: "apart by the Manhattan distance",
};
const ALWAYS = [
  "Reports from several times tell more than each of them alone: positions follow one another.",
  "That a report was made, when, how often and from which network address is not hidden.",
];
const AGAIN = "Repeat the report for as long as the place is the same.";
const GUESSES = "An adversary who knows more than the prior may guess better than the stated accuracy; what is promised of "
  + "probabilities holds whatever is known.";
const REFUSED = "That a position lay outside the region is seen where no report is made for it.";
const POSITIONS = {
  labels: [[], []],
  places: [
    [
      "A position counts as its place: two positions that are close to each other, on both sides of a border "
        + "between places, are told apart as these places are.",
    ],
    [
      "A position outside the region counts as the nearest place, however far that is: what is promised of "
        + "it is what is promised of that place.",
    ],
  ],
  region: [
    [
      "Before a draw a position of the region is moved, by at most snap: the promise between two of them "
        + "that are d apart is that for a distance of d + 2 snap.",
    ],
    [
      "A position outside the region counts as the nearest point of its border, however far that is: what is "
        + "promised of it is what is promised of that point.",
    ],
  ],
  globe: [
    [
      "Before a draw a position of the region is moved, by at most snap: the promise between two of them "
        + "that are d apart is that for a distance of d + 2 snap.",
    ],
    [
      "A position outside the region counts as the nearest point of its border, however far that is: what is "
        + "promised of it is what is promised of that point.",
      "Two positions outside the region that are close to each other may have nearest points that are far apart.",
    ],
  ],
  line: [
    [
      "Before a draw a position of the region is moved, by at most snap: the promise between two of them "
        + "that are d apart is that for a distance of d + 2 snap.",
    ],
    [
      "A number beyond the line counts as its nearest end, however far that is: what is promised of it is "
        + "what is promised of that end.",
    ],
  ],
  roads: [
    [
      "A position counts as the point of a road next to it, moved along the road by at most snap: the "
        + "promise between two of these points that are d apart along the roads is that for a distance of d + 2 "
        + "snap. Positions that are close to each other may be next to roads that are far apart.",
    ],
    [
      "A position outside the region counts as the nearest point of a road, however far that is: what is "
        + "promised of it is what is promised of that point.",
    ],
  ],
  earth: [
    [
      "A position counts as the centre of its cell, and a report as that of its own: the promise between "
        + "positions that are d apart is that for a distance of d + 2 snap.",
      "Distances are those along great circles of a sphere of 6371.0088 km; on the ellipsoid they differ by "
        + "up to 0.6 %.",
    ],
    [],
  ],
};
const PLAIN = ["straight", "great circle", "roads"];
const WHO = { "every point": "points", cells: "positions" };
const IN_METRES = { km: 1000, m: 1 };
const METRES = [100, 1000, 10000];
const [MOST, DIGITS, SURE] = [1e6, 6, 1e-12];

/** A number in so many digits, as Python's format "g" has it. */
export function general(value, digits = DIGITS) {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [, power] = value.toExponential(digits - 1).split("e").map(Number);
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < digits) return bare(value.toFixed(digits - 1 - power));
  const [head] = value.toExponential(digits - 1).split("e");
  return `${bare(head)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** A number in six digits, rounded up; `sign` times it. */
function rounded(value, sign = 1) {
  const [digits, power] = value.toExponential(DIGITS - 1).split("e");
  const shift = Number(power) - DIGITS + 1;
  let whole = Number(digits.replace(".", ""));
  if (Number(`${whole}e${shift}`) < value - Math.abs(value) * SURE) whole += 1;
  return general(Number(`${sign * whole}e${shift}`) + 0);
}

const grouped = (text) => text.replace(/^\d+(?=\.|$)/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));

/** A factor with three digits, rounded up; in words beyond a million. */
function times(factor) {
  if (factor > MOST) return "over a million";
  const place = 10 ** (2 - Math.floor(Math.log10(factor)));
  return grouped(general(Math.ceil(factor * place * (1 - 1e-9)) / place));
}

/** What epsilon is per, so that nobody takes another distance for it. */
function per({ name, unit, course }) {
  if (unit) return PLAIN.includes(course) ? unit : `${unit} (${name})`;
  return name.startsWith("given") ? `unit of distance (${name})` : `unit of ${name} distance`;
}

/** How far apart two may be, with the unit. */
function length(limit, measure) {
  if (!measure) return general(limit);
  const words = per(measure);
  return `${general(limit)} ${limit === 1 ? words : words.replace("unit of", "units of")}`;
}

const titled = ({ kind }) => kind.replaceAll("_", " ");

/** What one constraint promises, in words; empty of a kind without any. */
function clauseWords(clause) {
  const { scope, pairs, limit, measure, epsilon, delta, bound, details } = clause;
  const known = { ...details, epsilon, delta, bound, per: measure && per(measure), everywhere: scope === "every point" };
  if (pairs === "near" || pairs === "reached") known[pairs] = limit === null ? null : length(limit, measure);
  const said = new Map();
  for (const [name, value] of Object.entries(known)) {
    if (value === null || value === false) continue;
    const up = ["epsilon", "delta", "bound"].includes(name);
    said.set(name, typeof value === "number" ? (up ? rounded : general)(value) : value === true ? "yes" : value);
  }
  if (bound !== null) said.set("least", rounded(-bound, -1));
  const names = /\{(\??)(\w+)\}/g;
  return (Object.hasOwn(CLAUSES, clause.kind) ? CLAUSES[clause.kind] : [])
    .filter((part) => [...part.matchAll(names)].every(([, , name]) => said.has(name)))
    .map((part) => part.replace(names, (hit, only, name) => (only ? "" : said.get(name)))).join("");
}

/** How often the best guess of a place is right, from one report and from none. */
export const guessWords = ({ places, seen, blind }) =>
  `The best guess from one report, one of ${places}, is right in ${general(100 * seen, 3)} % of cases, `
  + `that without a report in ${general(100 * blind, 3)} %.`;

function rule(clause) {
  if (clause.repeats === "adds") {
    const what = Object.hasOwn(ADDED, clause.kind) ? ADDED[clause.kind] : clause.delta === null ? "ε" : "ε and δ";
    return `Every report spends ${what} again: n independent reports about one place promise only n times ${what}`
      + `${clause.pairs === "reached" ? " where all of them are within reach" : ""}.`;
  }
  return clause.repeats === "complement"
    ? "Every report spends the capacity c again: n independent reports about one place promise only 1 - (1 - c)^n."
    : "Nothing is promised of several independent reports about one place together.";
}

/** What several reports about one place promise together; of which constraint, where that differs. */
function repeated(clauses) {
  const rules = new Map();
  for (const clause of clauses) {
    if (clause.repeats === "none") continue;
    rules.set(rule(clause), [...rules.get(rule(clause)) ?? [], titled(clause)]);
  }
  if (rules.size < 2) return [...rules.keys()].flatMap((said) => [said, AGAIN]);
  return [...[...rules].map(([said, kinds]) => `By ${[...new Set(kinds)].join(" and ")}: ${said}`), AGAIN];
}

/** Whether epsilon is per a distance, and not the same for all pairs up to a limit. */
export const isPerDistance = ({ kind, measure }) => measure !== null && kind !== "differential_privacy";
const metresOf = ({ measure }) => (measure.course && Object.hasOwn(IN_METRES, measure.unit) ? IN_METRES[measure.unit] : null);
const isRatio = (clause) => clause.epsilon !== null && clause.delta === null && clause.pairs === "all";

/** What counts on top of a distance of two positions. */
function slackOf(clause, mechanism) {
  if (mechanism.kind !== "places") return 2 * mechanism.snap;
  const { kind, cell } = mechanism.secrets;
  return clause.scope === "cells" && kind === "grid" ? Math.hypot(...cell) : 0;
}

function odds(mechanism) {
  const clause = mechanism.promises.find((own) => isRatio(own) && isPerDistance(own) && metresOf(own) !== null);
  if (clause === undefined) return [];
  const [metres, slack] = [metresOf(clause), slackOf(clause, mechanism)];
  const [apart, who] = [APART[clause.measure.course], WHO[clause.scope] ?? "places"];
  const said = METRES.map((length) => {
    const rate = clause.epsilon * (length / metres + slack);
    const where = `${length < 1000 ? `${length} m` : `${length / 1000} km`} ${apart}`;
    return rate > Math.log(MOST) ? `${where} over a million times: not hidden`
      : `${where} at most ${times(Math.exp(rate))} times as likely`;
  });
  return [`in odds: a report from ${who} ${said.join("; ")}`];
}

/** Where a mechanism reports from: one of the names of POSITIONS. */
function formOf({ kind, secrets, mesh }) {
  if (kind === "earth") return "earth";
  if (kind === "places") return secrets.points === null ? "labels" : "places";
  if (mesh.dimension !== undefined) return mesh.dimension === 1 ? "line" : "roads";
  return mesh.degrees ? "globe" : "region";
}

/** A sentence for every constraint that protects, and the odds of the first ratio by a length. */
export const protects = (mechanism) => [
  ...mechanism.promises.filter(({ scope }) => scope !== "use").map((clause) => {
    const said = clauseWords(clause);
    return said ? `${titled(clause)}: ${said}` : titled(clause);
  }),
  ...odds(mechanism),
];

/** What is not promised: of several reports, of guesses, of positions. */
export function against(mechanism) {
  const [moved, nearest] = POSITIONS[formOf(mechanism)];
  return [
    ...repeated(mechanism.promises), ...ALWAYS,
    ...(mechanism.prior === null ? [] : [guessWords(mechanism.prior), GUESSES]),
    ...moved, ...(mechanism.outside === "refuse" && nearest.length ? [REFUSED] : nearest),
  ];
}

const fixed = (value) => (Object.is(value, -0) ? `-${value.toFixed(5)}` : value.toFixed(5));
const box = ([west, south, east, north]) =>
  `longitude ${fixed(west)} to ${fixed(east)}, latitude ${fixed(south)} to ${fixed(north)} degrees`;
const inUnit = (unit) => (unit ? ` ${unit}` : "");

function within(points, of, degrees, unit) {
  const ends = boxOf(points).map((pair) => pair.map((value) => value + 0));
  if (degrees) return `${points.length} ${of} within ${box([ends[0][0], ends[1][0], ends[0][1], ends[1][1]])}`;
  const spans = ends.map(([low, high]) => `${general(low)} to ${general(high)}`).join(", ");
  return `${points.length} ${of} at ${spans}${inUnit(unit)}`;
}

/** Where a mechanism reports from, in words. */
export function region({ kind, secrets, mesh }) {
  if (kind === "earth") return `the whole earth, in ${grouped(String(secrets.bands))} bands of latitude`;
  if (kind === "mesh") {
    const cells = mesh.dimension === undefined ? "triangles" : "segments";
    return `every point of ${mesh.count} ${cells}: ${within(mesh.vertices, "vertices", mesh.degrees, mesh.unit)}`;
  }
  if (secrets.kind === "grid") {
    const size = `${secrets.rows} rows x ${secrets.columns} columns of cells`;
    const [width, height] = secrets.cell;
    return secrets.degrees ? `${size} over ${box(secrets.box)}`
      : `${size} of ${general(width)} x ${general(height)}${inUnit(secrets.unit)}`;
  }
  return secrets.points === null ? `${secrets.labels.length} labels`
    : within(secrets.points, "places", secrets.degrees, secrets.unit);
}
