// Pictures and numbers to take along: SVG, PNG and CSV, made here and sent nowhere.
const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "opacity", "vector-effect", "r", "display"];

const placeNames = (frame) => (frame.degrees ? ["longitude", "latitude"] : frame.unit ? [`x (${frame.unit})`, `y (${frame.unit})`] : ["x", "y"]);
const placeCells = (frame, at) => at.map((value, side) => Number(degree(frame, side, value).toPrecision(9)));

function takeaway(chart, name) {
  const file = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const button = (text, title, act) => element("button", { type: "button", title, "aria-label": `${title}: ${name}`, text, onclick: act });
  return element("span", { class: "take" }, [
    button("SVG", "Save the picture as SVG", () => save(`${file}.svg`, new Blob([pictured(chart)], { type: "image/svg+xml" }))),
    button("PNG", "Save the picture as PNG", () => rastered(pictured(chart), (blob) => save(`${file}.png`, blob))),
    button("CSV", "Save the numbers as CSV", () => save(`${file}.csv`, new Blob([chart.rows.map((row) => row.map(quoted).join(",")).join("\n"), "\n"], { type: "text/csv" }))),
  ]);
}

const quoted = (value) => {
  const text = String(value);
  // a label that a spreadsheet would take for a formula stays a text
  const plain = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

function save(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The picture as it is shown, with its coordinates and its key in words, as a file of its own.
function pictured(chart) {
  const box = chart.svg.viewBox.baseVal;
  const [width, height] = [WIDTH, (WIDTH * box.height) / box.width];
  const [left, top, bottom] = [chart.plane ? 110 : 10, 46, 70];
  const style = getComputedStyle(document.documentElement);
  const [ink, soft, panel] = ["--ink", "--soft", "--panel"].map((variable) => style.getPropertyValue(variable).trim());
  const inner = chart.svg.cloneNode(true);
  const originals = chart.svg.querySelectorAll("*");
  inner.querySelectorAll("*").forEach((made, k) => {
    const shown = getComputedStyle(originals[k]);
    for (const name of DRAWN) if (shown.getPropertyValue(name)) made.style.setProperty(name, shown.getPropertyValue(name));
    if (made.tagName === "text") made.setAttribute("font-size", "13");
    made.removeAttribute("class");
  });
  for (const name of ["tabindex", "role", "aria-roledescription", "style"]) inner.removeAttribute(name);
  for (const [name, value] of Object.entries({ x: left, y: top, width, height })) inner.setAttribute(name, value);
  const write = (text, attributes) => { const made = shape("text", { fill: soft, "font-size": 15, ...attributes }); made.append(text); return made; };
  const parts = [shape("rect", { width: "100%", height: "100%", fill: panel }), inner, write(chart.svg.getAttribute("aria-label").split(" Arrow keys")[0], { x: left, y: 28, fill: ink, "font-size": 18 })];
  for (const tick of chart.plane ? chart.plane.across.children : []) {
    const share = parseFloat(tick.style.left || tick.style.bottom) / 100;
    parts.push(tick.classList.contains("up")
      ? write(tick.textContent, { x: left - 8, y: top + height * (1 - share) + 5, "text-anchor": "end" })
      : write(tick.textContent, { x: left + width * share, y: top + height + 20, "text-anchor": "middle" }));
  }
  const words = [...chart.key.children].filter((part) => !part.classList.contains("take") && !part.classList.contains("rule")).map((part) => [...part.childNodes].map((node) => node.textContent).filter(Boolean).join(" to "));
  parts.push(write(words.filter(Boolean).join(" · "), { x: left, y: top + height + 50 }));
  const full = shape("svg", { viewBox: `0 0 ${left + width + 20} ${top + height + bottom}`, width: left + width + 20, height: top + height + bottom, "font-family": "sans-serif" }, parts);
  return new XMLSerializer().serializeToString(full);
}

function rastered(text, done) {
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = element("canvas", { width: 2 * image.width, height: 2 * image.height });
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    context.drawImage(image, 0, 0);
    canvas.toBlob(done);
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
