// Draws of the client, for benchmarks/packed.py: node packed.mjs CLIENT FILE chi|timing COUNT
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, file, what, count] = process.argv.slice(2);
const { load } = await import(pathToFileURL(`${client}/index.js`));
const began = performance.now();
const mechanism = await load(readFileSync(file));
const loaded = performance.now() - began;
const places = mechanism.secrets.labels.length;

if (what === "chi") {
  // the same number of draws for every place, from the system's entropy
  const found = Array.from({ length: places }, () => new Array(mechanism.reports.labels.length).fill(0));
  for (let k = 0; k < count; k++) found[k % places][mechanism.sample(k % places)]++;
  console.log(JSON.stringify({ loaded, counts: found }));
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
      mechanism.draw(place, bytes);
      const spent = Number(process.hrtime.bigint() - start);
      if (round >= 0) times[place].push(spent);
    }
  }
  console.log(JSON.stringify({ loaded, times }));
}
