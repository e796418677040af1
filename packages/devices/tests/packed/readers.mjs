// What the client makes of many files: node readers.mjs CLIENT QUESTIONS, which is a JSON list of
// [file, signer in hexadecimal digits or null, positions, bytes]; the answers in the same order.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const RADIUS = 0.35;
const [client, questions] = process.argv.slice(2);
const { Ledger, PackedError, load } = await import(pathToFileURL(`${client}/index.js`));
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const attempt = (ask) => {
  try {
    return ask();
  } catch (error) {
    if (error instanceof PackedError) return "refused";
    throw error;
  }
};

/** What a ledger charges a draw, at the file's own rate or at 1 where it states none. */
function charged(mechanism) {
  const stated = mechanism.promises.some(({ epsilon }) => epsilon > 0);
  const charge = attempt(() => new Ledger(mechanism, null, RADIUS).perDraw);
  return charge !== "refused" || stated ? charge : attempt(() => new Ledger(mechanism, 1, RADIUS).perDraw);
}

function asked(mechanism, positions, entropy) {
  const data = entropy.map((text) => bytes(text).subarray(0, mechanism.drawBytes));
  const described = (report) => {
    const { coordinates, accuracy } = mechanism.describe(report);
    return [report, coordinates, accuracy];
  };
  const { title, outside, protects, doesNotPromise, region, guess } = mechanism;
  const words = {
    title: [title, outside],
    said: [protects, doesNotPromise, region, guess],
    charge: charged(mechanism),
    promises: mechanism.promises.map(({ kind, scope, pairs, repeats, measure, epsilon, delta }) => [
      kind, scope, pairs, repeats, measure?.unit ?? "", measure?.course ?? "", epsilon, delta ?? 0]),
  };
  if (mechanism.kind === "earth") {
    const places = positions.map((position) => mechanism.locate(position));
    const draws = places.map((place, k) => mechanism.draw(place, data[k % data.length]));
    return { ...words, reports: draws.map(described), draws, places };
  }
  const reports = mechanism.columns.map(described);
  if (mechanism.kind === "mesh") {
    const draws = positions.map((position, k) => attempt(() => {
      const place = mechanism.locate(position);
      return [place === null ? null : [place.triangle, ...place.weights],
        mechanism.draw(position, data[k % data.length])];
    }));
    // of the lattice where reports repeat
    const places = positions.map((position) => attempt(() => mechanism.number(position) ?? -1));
    const repeated = places.map((place, k) =>
      attempt(() => mechanism.drawOf(place, data[k % data.length])));
    return { ...words, reports, draws, places, repeated };
  }
  const count = mechanism.secrets.labels.length;
  const { points } = mechanism.secrets;
  const draws = data.map((drawn, k) => mechanism.draw((k * 7) % count, drawn));
  const places = points === null ? [] : positions.map((position) =>
    attempt(() => mechanism.locate(position.slice(0, points[0].length))));
  return { ...words, reports, draws, places };
}

const answers = [];
for (const [file, signer, positions, entropy] of JSON.parse(readFileSync(questions))) {
  try {
    const options = signer === null ? {} : { signer: bytes(signer) };
    answers.push(asked(await load(readFileSync(file), options), positions, entropy));
  } catch (error) {
    answers.push(error instanceof PackedError ? "refused" : `crashed: ${error.stack}`);
  }
}
console.log(JSON.stringify(answers));
