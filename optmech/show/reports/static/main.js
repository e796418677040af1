// What is chosen, and who wants to know.
class View {
  constructor(model) {
    this.model = model;
    this.listeners = {};
    this.secret = model.prior.indexOf(Math.max(...model.prior));
    const row = model.row(this.secret);
    this.observable = row.indexOf(Math.max(...row));
    const dear = model.design.pairs[0];
    this.other = dear && dear[0] === this.secret ? dear[1] : this.secret === 0 ? Math.min(1, model.rows - 1) : 0;
  }

  on(name, listener) {
    this.listeners[name] = [...(this.listeners[name] || []), listener];
  }

  set(changes) {
    Object.assign(this, changes);
    // a secret is not compared with itself
    if (this.secret === this.other && this.model.rows > 1) this.other = this.secret === 0 ? 1 : 0;
    for (const name of Object.keys(changes)) this.tell(name);
    remember();
  }

  // What an address says of it, and back.
  get choice() { return { secret: this.secret, report: this.observable, other: this.other }; }

  take({ secret, report, other }) {
    const { rows, observed } = this.model;
    const within = (value, count) => /^\d+$/.test(value ?? "") && Number(value) < count;
    if (within(secret, rows)) this.secret = Number(secret);
    if (within(report, observed.labels.length)) this.observable = Number(report);
    if (within(other, rows)) this.other = Number(other);
  }

  tell(name) {
    for (const listener of this.listeners[name] || []) listener();
  }
}

class RegionView {
  constructor(design) {
    this.design = design;
    this.listeners = {};
    this.point = design.region.start;
    const row = opened(design.region).at(this.point);
    this.report = row.indexOf(Math.max(...row));
  }

  on(name, listener) { View.prototype.on.call(this, name, listener); }

  set(changes) {
    Object.assign(this, changes);
    this.tell(Object.keys(changes)[0]);
    remember();
  }

  get choice() { return { report: this.report, point: this.point.map((value) => Number(value.toPrecision(9))).join(",") }; }

  take({ report, point }) {
    const { region } = this.design;
    if (/^\d+$/.test(report ?? "") && Number(report) < region.reports.labels.length) this.report = Number(report);
    const at = (point ?? "").split(",").map(Number);
    if (at.length === 2 && at.every(Number.isFinite) && within(framed(region).pairs(region.border), at, 1e-4 * region.size ** 2)) this.point = at;
  }

  tell(name) { View.prototype.tell.call(this, name); }
}

let view = null;
const designs = page.designs;
const compared = frontier(designs, choose);

// The choice in the address, so that it can be shared and survives a reload.
function remember() {
  const said = new URLSearchParams();
  if (designs.length > 1) said.set("design", byId("design").value);
  for (const [name, value] of Object.entries(view ? view.choice : {})) said.set(name, value);
  for (const id of ["layer", "field-layer"]) if (byId(id).selectedIndex > 0) said.set(id, byId(id).value);
  try {
    history.replaceState(null, "", `#${said}`);
  } catch {
    // some viewers of files allow no address of their own
  }
}

function recall() {
  const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  for (const id of ["layer", "field-layer"]) if ([...byId(id).options].some((option) => option.value === said[id])) byId(id).value = said[id];
  const k = /^\d+$/.test(said.design ?? "") && Number(said.design) < designs.length ? Number(said.design) : 0;
  choose(k, said);
}

function choose(k, said = {}) {
  const design = designs[k];
  byId("design").value = String(k);
  summary(design);
  promises(design);
  certificate(design);
  byId("with-mechanism").hidden = design.mechanism === null;
  byId("with-region").hidden = !design.region;
  byId("pairs-card").hidden = true;
  view = null;
  if (design.mechanism !== null) {
    view = new View(open(design));
    view.take(said);
    for (const part of [explore, layers, matrixPicture, ratios, spreadPicture, dearest]) part(view);
    for (const name of ["secret", "observable"]) view.tell(name);
  }
  if (design.region) {
    view = new RegionView(design);
    view.take(said);
    regionPictures(view);
    view.tell("report");
  }
  compared(k);
}

// Each control changes one thing of the current view.
const CONTROLS = { report: "report", secret: "secret", observable: "observable", "pair-a": "secret", "pair-b": "other" };
for (const [id, name] of Object.entries(CONTROLS)) {
  byId(id).addEventListener("change", () => view && view.set({ [name]: Number(byId(id).value) }));
}
for (const id of ["layer", "field-layer", "show-mesh", "show-places"]) byId(id).addEventListener("change", () => { if (view) view.tell("layer"); remember(); });
options(byId("design"), designs.map((design) => design.name));
byId("design-control").hidden = designs.length < 2;
byId("design").addEventListener("change", () => { choose(Number(byId("design").value)); remember(); });
for (const id of ["secret", "observable", "pair-a", "pair-b", "report"]) finder(byId(id));
window.addEventListener("hashchange", recall);

// A table wider than its place is scrolled by keys too.
const widths = new ResizeObserver(() => {
  for (const place of document.querySelectorAll(".scroll")) {
    const wide = place.scrollWidth > place.clientWidth;
    const title = place.closest("article, section").querySelector("h2, h3").textContent;
    const said = { tabindex: "0", role: "group", "aria-label": `${title}: table` };
    for (const [name, value] of Object.entries(said)) if (wide) place.setAttribute(name, value); else place.removeAttribute(name);
  }
});
for (const node of document.querySelectorAll(".scroll, .scroll > table")) widths.observe(node);

const paper = window.matchMedia("print");
const system = window.matchMedia("(prefers-color-scheme: dark)");

function recolour() {
  const wanted = byId("theme").value;
  const dark = wanted === "auto" ? system.matches : wanted === "dark";
  document.documentElement.dataset.theme = dark && !paper.matches ? "dark" : "light";
  readRamp();
  if (view) view.tell("theme");
}

byId("theme").addEventListener("change", () => {
  recolour();
  compared(Number(byId("design").value));
});
system.addEventListener("change", recolour);
paper.addEventListener("change", recolour);
const said = designs.every((design) => design.region)
  ? "Written by optmech. Probabilities over a region are embedded as 16-bit numbers."
  : page.double
  ? "Written by optmech. Matrices are embedded as 64-bit numbers."
  : "Written by optmech. Matrices are embedded as 32-bit logarithms: probabilities shown are within 1e-5 of the design's, relatively.";
byId("precision").textContent = page.backdrop ? `${said} ${page.backdrop.said}` : said;
recolour();
recall();
document.documentElement.dataset.ready = "";
