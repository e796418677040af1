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
  }

  tell(name) { View.prototype.tell.call(this, name); }
}

let view = null;
const designs = page.designs;
const compared = frontier(designs, choose);

function choose(k) {
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
    for (const part of [explore, layers, matrixPicture, ratios, spreadPicture, dearest]) part(view);
    for (const name of ["secret", "observable"]) view.tell(name);
  }
  if (design.region) {
    view = new RegionView(design);
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
for (const id of ["layer", "field-layer", "show-mesh", "show-places"]) byId(id).addEventListener("change", () => view && view.tell("layer"));
options(byId("design"), designs.map((design) => design.name));
byId("design-control").hidden = designs.length < 2;
byId("design").addEventListener("change", () => choose(Number(byId("design").value)));

const system = window.matchMedia("(prefers-color-scheme: dark)");

function recolour() {
  const wanted = byId("theme").value;
  document.documentElement.dataset.theme = wanted === "auto" ? (system.matches ? "dark" : "light") : wanted;
  readRamp();
  if (view) view.tell("theme");
}

byId("theme").addEventListener("change", () => {
  recolour();
  compared(Number(byId("design").value));
});
system.addEventListener("change", recolour);
byId("precision").textContent = page.double
  ? "Written by optmech. Matrices are embedded as 64-bit numbers."
  : "Written by optmech. Matrices are embedded as 32-bit logarithms: probabilities shown are within 1e-5 of the design's, relatively.";
recolour();
choose(0);
document.documentElement.dataset.ready = "";
