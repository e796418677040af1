/**
 * The mechanism, the key and what was spent: in the extension alone, for all pages the same, so that pages that put
 * their reports together learn no more than one.
 */

import { geolocation, load } from "./client/index.js";
import { budgeted } from "./client/sticky.js";

const RADIUS_KM = 1;
const stored = chrome.storage.local;
const nothing = () => undefined;
let ready = null;
let turn = Promise.resolve();

const fromText = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const toText = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** The file that was chosen, or the one that came with the extension. */
async function content(chosen) {
  if (chosen) return fromText(chosen);
  const reply = await fetch(chrome.runtime.getURL("mechanism.omm")).catch(nothing);
  if (!reply?.ok) throw new Error("no mechanism was chosen: open the extension's options");
  return reply.arrayBuffer();
}

async function deviceKey() {
  const { key } = await stored.get("key");
  if (key) return fromText(key);
  const made = crypto.getRandomValues(new Uint8Array(32));
  await stored.set({ key: toText(made) });
  return made;
}

async function begin() {
  const { file, budget = null, period = 86400, spent = null } = await stored.get(["file", "budget", "period", "spent"]);
  const save = (kept) => stored.set({ spent: kept });
  return budgeted(await load(await content(file)), await deviceKey(),
    { radius: RADIUS_KM, reports: budget, period, kept: spent, save });
}

/** One after the other, also where an option changes in between: what was spent is stored before the next is asked. */
function inTurn(action) {
  const found = turn.then(action);
  turn = found.catch(nothing);
  return found;
}

/** The report of a true position, as pages get it. */
async function reported([longitude, latitude, timestamp]) {
  ready ??= begin();
  ready.catch(() => { ready = null; });
  const source = { getCurrentPosition: (success) => success({ coords: { longitude, latitude }, timestamp }),
    watchPosition: nothing, clearWatch: nothing };
  const own = geolocation(await ready, source);
  return new Promise((resolve) => {
    own.getCurrentPosition((position) => resolve({ position }),
      ({ code, message }) => resolve({ error: { code, message } }));
  });
}

chrome.runtime.onMessage.addListener((message, _, answer) => {
  if (!message?.report) return false;
  inTurn(() => reported(message.report)).then(answer, (error) => answer({ error: { code: 2, message: String(error.message) } }));
  return true;
});

chrome.storage.onChanged.addListener((changes) => {
  if (["file", "budget", "period"].some((name) => name in changes)) ready = null;
});
