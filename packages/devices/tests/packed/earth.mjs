// Answers of the client to the vectors of the whole earth, and to many draws, which are lines of a place and
// hexadecimal digits: node earth.mjs CLIENT FOLDER DRAWS
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, folder, many] = process.argv.slice(2);
const { Ledger, PackedError, StickyReports, geolocation, load } = await import(pathToFileURL(`${client}/index.js`));
const { key, "earth.omm": stated } = JSON.parse(readFileSync(`${folder}/earth.json`));
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data) => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const earth = await load(readFileSync(`${folder}/earth.omm`));
const sticky = new StickyReports(earth, bytes(key), { ledger: new Ledger(earth, null, 1) });
const found = { draws: [], positions: [], reports: [], sticky: [], many: [], refused: 0 };
for (const [place, drawn] of stated.draws) found.draws.push([place, drawn, earth.draw(place, bytes(drawn))]);
for (const [position] of stated.positions) found.positions.push([position, earth.locate(position)]);
for (const [report] of stated.reports) {
  const { coordinates, accuracy } = earth.describe(report);
  found.reports.push([report, coordinates, accuracy]);
}
for (const [place, epoch] of stated.sticky) {
  found.sticky.push([place, epoch, hex(await sticky.entropy(place, BigInt(epoch)))]);
}
for (const line of readFileSync(many, "utf8").trim().split("\n")) {
  const [place, drawn] = line.split(" ");
  found.many.push(earth.draw(Number(place), bytes(drawn)));
}
const wrong = [() => earth.draw(0.5, new Uint8Array(19)), () => earth.draw(2 * earth.secrets.bands - 1, new Uint8Array(19)),
  () => earth.draw(-1, new Uint8Array(19)), () => earth.draw(0, new Uint8Array(18)), () => earth.locate([0, 91])];
for (const attempt of wrong) {
  try {
    attempt();
  } catch (error) {
    if (error instanceof PackedError) found.refused += 1;
  }
}
const home = earth.locate([16.37, 48.21]);
found.sample = earth.describe(earth.sample(home)).coordinates;
found.report = [home, await sticky.report(home, 86400), sticky.ledger.perDraw];
// what a page gets in the place of a position
const source = { getCurrentPosition: (success) => success({ coords: { longitude: 16.37, latitude: 48.21 }, timestamp: 86400000 }),
  watchPosition: () => 0, clearWatch: () => 0 };
found.page = await new Promise((resolve, reject) => {
  geolocation(sticky, source).getCurrentPosition(({ coords }) => resolve([coords.longitude, coords.latitude, coords.accuracy]), reject);
});
console.log(JSON.stringify(found));
