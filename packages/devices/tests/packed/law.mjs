// Reports for recorded draws, as float64: node law.mjs CLIENT FILE DRAWS OUT. A draw is a place (4 bytes, on the
// whole earth, and of a lattice if a fifth word says so, 8) or a position (two float64), and the bytes that are drawn with.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, file, draws, out, lattice] = process.argv.slice(2);
const { load } = await import(pathToFileURL(`${client}/index.js`));
const mechanism = await load(readFileSync(file));
const data = new Uint8Array(readFileSync(draws));
const view = new DataView(data.buffer);
const eight = [8, (at) => Number(view.getBigUint64(at, true))];
const [width, source] = lattice ? eight : {
  mesh: [16, (at) => [view.getFloat64(at, true), view.getFloat64(at + 8, true)]],
  earth: eight,
  places: [4, (at) => view.getUint32(at, true)],
}[mechanism.kind];
const size = width + mechanism.drawBytes;
const found = new Float64Array(data.length / size);
for (let k = 0; k < found.length; k++) {
  const drawn = data.subarray(k * size + width, (k + 1) * size);
  found[k] = mechanism[lattice ? "drawOf" : "draw"](source(k * size), drawn);
}
writeFileSync(out, new Uint8Array(found.buffer));
