// Draws of the client, for benchmarks/packed.py: node packed.mjs CLIENT FILE chi|timing COUNT
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, file, what, count] = process.argv.slice(2);
const { load } = await import(pathToFileURL(`${client}/index.js`));
const began = performance.now();
const mechanism = await load(readFileSync(file));
const loaded = performance.now() - began;
// of a mesh positions all over its box, of which those outside are left out
const spread = (low, high, part) => low + (high - low) * (part % 1);
const asked = mechanism.kind === "places"
  ? mechanism.secrets.labels.map((_, place) => place)
  : Array.from({ length: 400 }, (_, k) => {
    const [west, east, south, north] = mechanism.mesh.box;
    return [spread(west, east, k * 0.7548776662466927), spread(south, north, k * 0.5698402909980532)];
  }).filter((position) => mechanism.locate(position) !== null);
const places = asked.length;

if (what === "chi") {
  // the same number of draws for every place, from the system's entropy
  const found = Array.from({ length: places }, () => new Array(mechanism.reports.labels.length).fill(0));
  for (let k = 0; k < count; k++) found[k % places][mechanism.sample(asked[k % places])]++;
  console.log(JSON.stringify({ loaded, asked, counts: found }));
} else {
  // rounds over all places in a new order each; the first rounds let the compiler settle
  const bytes = new Uint8Array(mechanism.drawBytes);
  const times = Array.from({ length: places }, () => []);
  for (let round = -5; round < count; round++) {
    const order = [...times.keys()];
    for (let k = order.length - 1; k > 0; k--) {
      const other = Math.floor(Math.random() * (k + 1));
      [order[k], order[other]] = [order[other], order[k]];
    }
    for (const place of order) {
      crypto.getRandomValues(bytes);
      const start = process.hrtime.bigint();
      mechanism.draw(asked[place], bytes);
      const spent = Number(process.hrtime.bigint() - start);
      if (round >= 0) times[place].push(spent);
    }
  }
  console.log(JSON.stringify({ loaded, times }));
}
