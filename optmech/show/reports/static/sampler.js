// One report after the other, drawn as a device would: by its client, from the packed mechanism.
const samplers = new Map();

// The mechanism of a design, read and verified once; null where the page has none.
function sampled(design) {
  if (!design.sampler) return Promise.resolve(null);
  if (!samplers.has(design)) {
    samplers.set(design, client.load(Uint8Array.from(atob(design.sampler.file), (letter) => letter.charCodeAt(0))));
  }
  return samplers.get(design);
}

// What a button does: `where` gives what is drawn for, and `seen` takes the number of the report.
function drawing(part, design, { where, words, labels, seen }) {
  const [button, count, readout] = ["draw", "draw-count", "drawn"].map((name) => byId(`${part}-${name}`));
  button.closest(".draw").hidden = !design.sampler;
  fill(readout);
  button.onclick = async () => {
    try {
      const mechanism = await sampled(design);
      const [place, said] = [where(), words()];
      const drawn = Array.from({ length: Number(count.value) }, () => mechanism.sample(place));
      const parts = drawn.length === 1
        ? [element("b", { "data-field": `${part}-drawn`, "data-value": String(drawn[0]), text: labels[drawn[0]] })]
        : [element("span", { "data-field": `${part}-drawn`, "data-value": drawn.join(","), text: counted(drawn, labels) })];
      const { bits, increase } = design.sampler;
      const cost = increase > 0 ? `its loss is ${percent(increase)} above the design's` : "at the design's loss";
      fill(readout, `Drawn for ${said}: `, ...parts, `. This browser drew it as a device would, from random bytes of its own and the mechanism packed at ${bits} bits (${cost}).`);
      if (drawn.length === 1) seen(drawn[0]);
    } catch (error) {
      fill(readout, `No report: ${error.message}. Reading the mechanism needs a page from a file or over https.`);
    }
  };
}

// Reports and how often each came, the most frequent first.
function counted(drawn, labels) {
  const times = new Map();
  for (const report of drawn) times.set(report, (times.get(report) ?? 0) + 1);
  const order = [...times].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const rest = order.slice(LISTED).reduce((sum, [, n]) => sum + n, 0);
  const shown = order.slice(0, LISTED).map(([report, n]) => `${labels[report]} × ${n}`);
  return [...shown, ...(rest ? [`others × ${rest}`] : [])].join(", ");
}
