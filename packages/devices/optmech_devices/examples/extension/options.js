/** Choose the mechanism and the budget, and read what the file promises. */

import { load } from "./client/index.js";

const stored = chrome.storage.local;
const part = (name) => document.getElementById(name);
const toText = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
const fromText = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const listed = (name, lines) => part(name).replaceChildren(
  ...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));

async function show(content) {
  const mechanism = await load(content);
  if (!(mechanism.kind === "mesh" ? mechanism.mesh : mechanism.secrets).degrees) {
    throw new Error("This mechanism is not one for positions in degrees.");
  }
  part("title").textContent = mechanism.title;
  const { protects, doesNotPromise, guess } = mechanism;
  listed("promises", guess ? [...protects, guess] : protects);
  listed("against", doesNotPromise.filter((said) => said !== guess));
}

async function quietly(action) {
  part("error").textContent = "";
  try {
    await action();
  } catch (error) {
    part("error").textContent = error.message;
  }
}

part("file").addEventListener("change", () => quietly(async () => {
  const content = new Uint8Array(await part("file").files[0].arrayBuffer());
  await show(content);
  await stored.set({ file: toText(content) });
}));
part("budget").addEventListener("change", () => quietly(() => {
  const count = Number(part("budget").value);
  return stored.set({ budget: Number.isSafeInteger(count) && count > 0 ? count : null });
}));
quietly(async () => {
  const { file, budget } = await stored.get(["file", "budget"]);
  part("budget").value = budget ?? "";
  if (file) return show(fromText(file));
  const reply = await fetch("mechanism.omm").catch(() => undefined);
  if (reply?.ok) await show(await reply.arrayBuffer());
  return undefined;
});
