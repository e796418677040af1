// The extension's background script with a storage that takes its time, as a browser's does. Prints what it gave out
// and what it has noted, for one of the stories below.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, story, seed, ...files] = process.argv.slice(2);
const [day, now] = [86400e3, 1.7e12];
const sleep = (time) => new Promise((done) => setTimeout(done, time));
let state = Number(seed) + 1;
const random = () => {
  state = (state * 48271) % 2147483647;
  return state / 2147483647;
};
const store = new Map();
const listeners = [];
let told = null;
globalThis.chrome = {
  storage: {
    local: {
      async get(names) {
        await sleep(3 * random());
        return Object.fromEntries([names].flat().filter((n) => store.has(n)).map((n) => [n, structuredClone(store.get(n))]));
      },
      async set(given) {
        await sleep(5 * random());
        for (const [name, value] of Object.entries(given)) store.set(name, structuredClone(value));
        const changes = Object.fromEntries(Object.keys(given).map((name) => [name, {}]));
        for (const heard of listeners) heard(changes);
      },
    },
    onChanged: { addListener: (heard) => listeners.push(heard) },
  },
  runtime: { onMessage: { addListener: (heard) => { told = heard; } }, getURL: (name) => name },
};
await import(pathToFileURL(`${folder}/background.js`));
const set = (given) => chrome.storage.local.set(given);
const content = (k) => readFileSync(files[k]).toString("base64");
const ask = (place, k) => new Promise((done) => { told({ report: [...place, now + k * day] }, null, done); });
const place = [16.3512, 48.2013];
const noted = () => {
  const { spent, before } = store.get("spent").ledger;
  return { draws: spent.draws + before.draws, plain: Number(spent.plain) + Number(before.plain) };
};

const STORIES = {
  async files() {
    // one budget over files: the first, another, the first again
    await set({ file: content(0), budget: 3 });
    const found = [];
    for (const k of [0, 1, 0, 1]) {
      await set({ file: content(k) });
      let given = 0;
      for (let n = 0; n < 6; n++) if ((await ask(place, 10 * found.length + n)).position) given++;
      found.push([given, noted()]);
    }
    return found;
  },
  async back() {
    // what was drawn for costs nothing again, after another file in between
    await set({ file: content(0) });
    const first = await ask(place, 0);
    await set({ file: content(1) });
    const other = await ask(place, 0);
    const before = noted();
    await set({ file: content(0) });
    const again = await ask(place, 0);
    return { same: JSON.stringify(first) === JSON.stringify(again), given: [first, other, again].map((r) => !!r.position),
      free: JSON.stringify(before) === JSON.stringify(noted()), draws: noted().draws };
  },
  async options() {
    // pages ask while options change, at random times
    await set({ file: content(0), budget: 1000 });
    let given = 0;
    const all = [];
    for (let k = 0; k < 60; k++) {
      all.push(ask(place, k).then((reply) => { if (reply.position) given++; }));
      if (random() < 0.5) await sleep(6 * random());
      const changed = random();
      if (changed < 0.15) all.push(set({ budget: 900 + Math.floor(100 * random()) }));
      else if (changed < 0.25) all.push(set({ file: content(Math.floor(files.length * random())) }));
      else if (changed < 0.3) all.push(set({ period: changed < 0.27 ? 86400 : 43200 }));
    }
    await Promise.all(all);
    return { given, draws: noted().draws };
  },
  async states() {
    // what was spent is not known: no report
    await set({ file: content(0), budget: 3 });
    await ask(place, 0);
    const sound = store.get("spent");
    const found = [];
    for (const bad of [{}, { ledger: {} }, { ledger: {}, sticky: {} }, 5, "x", [], { ...sound, ledger: null },
      { ...sound, ledger: { ...sound.ledger, draws: [] } }, { ...sound, sticky: null }]) {
      store.set("spent", bad);
      for (const heard of listeners) heard({ file: {} });
      found.push((await ask(place, 0)).position ?? null);
    }
    // the form that was kept before
    const [[bound, drawn]] = Object.entries(sound.sticky);
    store.set("spent", { ledger: sound.ledger, sticky: { ...drawn, for: bound } });
    for (const heard of listeners) heard({ file: {} });
    return { found, old: !!(await ask(place, 0)).position, noted: noted() };
  },
};
console.log(JSON.stringify(await STORIES[story]()));
