// Answers of the client for a folder with vectors and a list of draws: node vectors.mjs CLIENT FOLDER
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, folder] = process.argv.slice(2);
const { answers } = await import(new URL("answers.mjs", import.meta.url));
const module = await import(pathToFileURL(`${client}/index.js`));
const read = async (name) => readFileSync(`${folder}/${name}`);
console.log(JSON.stringify(await answers(module, read)));
