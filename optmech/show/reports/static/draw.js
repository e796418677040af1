// Elements, numbers in words, colours. Text enters the page as text nodes only.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, children = []) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function shape(tag, attributes = {}, children = []) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function fill(host, ...children) {
  host.replaceChildren(...children);
  return host;
}

// A number with so many digits that is not above (side -1) or below (side 1) a value.
function beside(value, count, side) {
  const [text, power] = value.toExponential(count - 1).split("e");
  if ((Number(`${text}e${power}`) - value) * side >= 0) return value;
  return Number(`${Number(text.replace(".", "")) + side}e${Number(power) - count + 1}`);
}

// Significant digits without trailing zeros; a proper minus sign. Bounds from below have the side
// -1, and those from above 1.
function digits(given, count = 4, side = 0) {
  if (Number.isNaN(given)) return "unknown";
  if (!Number.isFinite(given)) return given > 0 ? "∞" : "−∞";
  const value = side ? beside(given, count, side) : given;
  const size = Math.abs(value);
  let text = size !== 0 && (size < 1e-4 || size >= 1e7)
    ? value.toExponential(Math.min(count, 4) - 1)
    : String(Number(value.toPrecision(count)));
  if (text.includes("e")) {
    const [mantissa, exponent] = text.split("e");
    text = `${Number(mantissa)}e${Number(exponent)}`;
  }
  return text.replace("-", "−");
}

function percent(value) {
  if (value === 0) return "0 %";
  return value * 100 < 0.001 ? `${digits(value * 100, 2)} %` : `${digits(value * 100, 3)} %`;
}

const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);

// A number that carries its full value for whoever wants to copy or check it.
function figure(field, value, text) {
  return element("b", { "data-field": field, "data-value": String(value), title: String(value), text });
}

let stops = [];

function readRamp() {
  const listed = getComputedStyle(document.documentElement).getPropertyValue("--ramp").trim();
  stops = listed.split(/\s+/).map((hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));
}

function rgb(share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((value, k) => Math.round(value + (at - low) * (stops[low + 1][k] - value)));
}

const colour = (share) => `rgb(${rgb(share).join(",")})`;

// Roots let rare reports be seen beside frequent ones; shares are shown as they are.
const SCALES = { root: (value, top) => Math.sqrt(value / top), linear: (value, top) => value / top };

function rampCanvas() {
  const canvas = element("canvas", { width: "112", height: "1", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let k = 0; k < 112; k += 1) {
    context.fillStyle = colour(k / 111);
    context.fillRect(k, 0, 1, 1);
  }
  return canvas;
}

// Where a list is long, a field to find what is in it by its name or a part of that.
const LONG = 12;

function finder(select) {
  const listed = element("datalist", { id: `${select.id}-list` });
  const find = element("input", { type: "search", class: "find", list: listed.id, placeholder: "find", "aria-label": `Find in the list: ${select.closest("label").textContent.trim()}`, autocomplete: "off" });
  select.closest("label").after(find, listed);
  const show = () => { find.hidden = select.options.length <= LONG; };
  new MutationObserver(show).observe(select, { childList: true });
  show();
  find.addEventListener("focus", () => fill(listed, ...[...select.options].slice(0, 2000).map((option) => element("option", { value: option.text }))));
  find.addEventListener("input", () => find.setCustomValidity(""));
  find.addEventListener("change", () => {
    const wanted = find.value.trim().toLowerCase();
    if (!wanted) return;
    const names = [...select.options].map((option) => option.text.toLowerCase());
    const ways = [(name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)];
    const found = ways.map((way) => names.findIndex(way)).find((k) => k >= 0);
    if (found === undefined) {
      find.setCustomValidity("Nothing in the list has this in its name");
      find.reportValidity();
      return;
    }
    find.value = "";
    select.value = String(found);
    select.dispatchEvent(new Event("change"));
  });
}

function options(select, labels) {
  fill(select, ...labels.map((text, k) => element("option", { value: String(k), text })));
}

function table(host, header, rows) {
  const cell = (tag, content) => {
    const { text = "", number = false, nodes = [], kind = "" } =
      typeof content === "string" ? { text: content } : content;
    const name = [number ? "number" : "", kind].join(" ").trim();
    const made = element(tag, name ? { class: name } : {}, nodes);
    if (text) made.append(text);
    return made;
  };
  const head = element("tr", {}, header.map((content) => cell("th", content)));
  for (const made of head.children) made.setAttribute("scope", "col");
  const body = rows.map(({ cells, pick, chosen }) => {
    const made = element("tr", {}, cells.map((content) => cell("td", content)));
    if (pick) { made.dataset.row = ""; made.addEventListener("click", pick); }
    if (chosen) made.classList.add("chosen");
    return made;
  });
  fill(host, element("thead", {}, [head]), element("tbody", {}, body));
}

const tip = byId("tip");

function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 12, window.innerWidth - width - 8);
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${event.clientY - height - 10 < 4 ? event.clientY + 18 : event.clientY - height - 10}px`;
}

function hideTip() { tip.hidden = true; }
