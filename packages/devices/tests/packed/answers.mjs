// What the client answers to the conformance vectors; the same in Node and in a browser.
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data) => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const said = ({ protects, doesNotPromise, region, guess }) => [protects, doesNotPromise, region, guess];

export async function answers({ load, Ledger, PackedError, StickyReports }, read) {
  const vectors = JSON.parse(new TextDecoder().decode(await read("vectors.json")));
  const found = { files: {}, meshes: {}, refused: {}, many: {} };
  for (const [name, stated] of Object.entries(vectors.files)) {
    const mechanism = await load(new Uint8Array(await read(name)));
    const sticky = new StickyReports(mechanism, bytes(vectors.key));
    const answer = {
      draws: stated.draws.map(([place, entropy]) => [place, entropy, mechanism.draw(place, bytes(entropy))]),
      reports: stated.reports.map(([report]) => {
        const { coordinates, accuracy } = mechanism.describe(report);
        return [report, coordinates, accuracy];
      }),
      positions: stated.positions.map(([position]) => [position, mechanism.locate(position)]),
      said: said(mechanism),
      sticky: [],
      ledger: null,
    };
    for (const [place, epoch] of stated.sticky) {
      answer.sticky.push([place, epoch, hex(await sticky.entropy(place, epoch))]);
    }
    if (stated.ledger !== null) {
      const { below, radius, places } = stated.ledger;
      const ledger = new Ledger(mechanism, null, radius);
      places.forEach((place) => ledger.enter(place));
      answer.ledger = { epsilon: ledger.epsilon, radius, places, ...ledger.figures(), state: ledger.toDict() };
      try {
        new Ledger(mechanism, below, radius);
      } catch (error) {
        if (error instanceof PackedError) answer.ledger.below = below;
      }
    }
    found.files[name] = answer;
  }
  for (const [name, stated] of Object.entries(vectors.meshes)) {
    const mechanism = await load(new Uint8Array(await read(name)));
    const sticky = new StickyReports(mechanism, bytes(vectors.key));
    found.meshes[name] = {
      slack: sticky.snap,
      said: said(mechanism),
      charge: new Ledger(mechanism, null, 1).perDraw,
      places: stated.places.map(([position]) => [position, mechanism.number(position) ?? -1]),
      sticky: await Promise.all(stated.sticky.map(async ([place, epoch]) => {
        const drawn = await sticky.entropy(place, epoch);
        return [place, epoch, hex(drawn), mechanism.drawOf(place, drawn)];
      })),
      draws: stated.draws.map(([position, entropy]) =>
        [position, entropy, mechanism.draw(position, bytes(entropy))]),
      positions: stated.positions.map(([position]) => {
        const place = mechanism.locate(position);
        return [position, place === null ? null : [place.triangle, ...place.weights]];
      }),
      reports: stated.reports.map(([report]) => {
        const { coordinates, accuracy } = mechanism.describe(report);
        return [report, coordinates, accuracy];
      }),
    };
  }
  for (const [name, content] of Object.entries(vectors.refused)) {
    try {
      await load(bytes(content));
      found.refused[name] = "taken";
    } catch (error) {
      found.refused[name] = error instanceof PackedError ? "refused" : String(error.stack);
    }
  }
  // many draws: 4 bytes of the place's number and the bytes of the draw, one after the other
  for (const name of Object.keys(vectors.files)) {
    let data;
    try {
      data = new Uint8Array(await read(`${name}.draws`));
    } catch {
      continue;
    }
    const mechanism = await load(new Uint8Array(await read(name)));
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const size = 4 + mechanism.drawBytes;
    found.many[name] = [];
    for (let at = 0; at < data.length; at += size) {
      found.many[name].push(mechanism.draw(view.getUint32(at, true), data.subarray(at + 4, at + size)));
    }
  }
  // and at positions: two float64, little-endian
  for (const name of Object.keys(vectors.meshes)) {
    let data;
    try {
      data = new Uint8Array(await read(`${name}.draws`));
    } catch {
      continue;
    }
    const mechanism = await load(new Uint8Array(await read(name)));
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const size = 16 + mechanism.drawBytes;
    found.many[name] = [];
    for (let at = 0; at < data.length; at += size) {
      const position = [view.getFloat64(at, true), view.getFloat64(at + 8, true)];
      found.many[name].push(mechanism.draw(position, data.subarray(at + 16, at + size)));
    }
  }
  return found;
}
