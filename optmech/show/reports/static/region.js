// A mechanism for every point of a region: p(o|x) over it, and what is reported from a point.
const LEVELS = 10;

// Values of the lattice at places of the plane, bilinear between its points.
function opened(region) {
  const { columns, rows, top } = region.field;
  const coded = numbers(region.field.values);
  const count = region.reports.labels.length;
  const size = columns * rows;
  const unit = 65535 * 65535;
  const value = (o, k) => ((coded[o * size + k] * coded[o * size + k]) / unit) * top;
  const [steps, ends] = [[columns - 1, rows - 1], [region.width, region.height]];
  // the corner of a cell of the lattice, and the place within it
  function cell(at) {
    const share = [0, 1].map((side) => Math.min(Math.max(((at[side] - region.origin[side]) / ends[side]) * steps[side], 0), steps[side]));
    const whole = share.map((part, side) => Math.min(Math.floor(part), steps[side] - 1));
    return [whole[1] * columns + whole[0], share[0] - whole[0], share[1] - whole[1]];
  }
  const mean = (o, [k, u, v]) => (value(o, k) * (1 - u) + value(o, k + 1) * u) * (1 - v) + (value(o, k + columns) * (1 - u) + value(o, k + columns + 1) * u) * v;
  return {
    count, cell, mean, at: (at) => { const found = cell(at); return Float64Array.from({ length: count }, (_, o) => mean(o, found)); },
    most: (o) => { let best = 0; for (let k = 0; k < size; k += 1) best = Math.max(best, value(o, k)); return best; },
    likeliest(found) { let best = 0; for (let o = 1; o < count; o += 1) if (mean(o, found) > mean(best, found)) best = o; return best; },
    step: [region.width / steps[0], region.height / steps[1]],
  };
}

// Whether a place lies in a convex ring, counterclockwise.
function within(ring, [x, y], slack) {
  return ring.every(([x0, y0], k) => {
    const [x1, y1] = ring[(k + 1) % ring.length];
    return (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= -slack;
  });
}

class Field {
  constructor(host, region, model, pick) {
    Object.assign(this, { host, region, model, pick, frame: framed(region), report: 0 });
    const { frame } = this;
    this.svg = shape("svg", { tabindex: "0", role: "application", "aria-roledescription": "map" });
    this.sheet = element("div", { class: "sheet" }, [this.svg]);
    this.box = element("div", { class: "chart" }, [this.sheet]);
    this.box.style.maxWidth = `${Math.min(38, (38 * WIDTH) / frame.height)}rem`;
    this.key = element("div", { class: "key" });
    this.rule = element("span", { class: "rule" });
    this.canvas = element("canvas");
    fill(host, this.box, this.key);
    this.ring = frame.pairs(region.border);
    const line = (points) => `M${points.map((at) => frame.into(at).map((value) => value.toFixed(1)).join(",")).join("L")}`;
    const clip = shape("clipPath", { id: "region-border" }, [shape("path", { d: `${line(this.ring)}Z` })]);
    this.image = shape("image", { preserveAspectRatio: "none", "clip-path": "url(#region-border)" });
    this.edges = shape("path", { class: "edges", d: "" });
    const weights = numbers(region.weights);
    const most = weights.reduce((best, value) => Math.max(best, value), 0);
    const spots = frame.pairs(region.places).map(frame.into);
    const size = Math.min(1, Math.max(0.3, 12 / Math.sqrt(spots.length)));
    const dots = spots.map(([cx, cy], k) => {
      const made = shape("circle", { cx, cy, class: "dot" });
      made.style.setProperty("--r", (size * (2 + 5 * Math.sqrt(weights[k] / most))).toFixed(2));
      return made;
    });
    this.dots = shape("g", {}, dots);
    this.marks = shape("g");
    this.outline = shape("path", { class: "report-cell", d: "" });
    this.svg.append(shape("defs", {}, [clip]), this.image, this.edges, shape("path", { d: `${line(this.ring)}Z`, class: "border" }), ...backdrop(frame), this.outline, this.dots, this.marks);
    this.point = region.start;
    this.plane = new Plane(this.svg, this.sheet, frame, (share) => {
      ruler(this.rule, frame.real * share, frame.unit);
      this.later();
      this.mark();
    });
    this.svg.addEventListener("click", (event) => this.choose(frame.back(this.plane.at(event)).at));
    this.svg.addEventListener("keydown", (event) => {
      const direction = event.shiftKey ? null : ARROWS[event.key];
      if (!direction) return;
      event.preventDefault();
      const share = 2 / this.plane.k;
      this.choose([this.point[0] + share * direction[0] * model.step[0], this.point[1] - share * direction[1] * model.step[1]]);
    });
    this.svg.addEventListener("mousemove", (event) => {
      const { at } = frame.back(this.plane.at(event));
      if (this.inside(at)) showTip(event, `${this.words(at)} · ${placeText(frame, at)}`);
      else hideTip();
    });
    this.svg.addEventListener("mouseleave", hideTip);
  }

  inside(at) { return within(this.ring, at, 1e-4 * this.region.size * this.region.size); }

  choose(at) { if (this.inside(at)) this.pick(at); }

  words(at) {
    const found = this.model.cell(at);
    if (this.layer === "likeliest") {
      const best = this.model.likeliest(found);
      return `${this.region.reports.labels[best]}, ${percent(this.model.mean(best, found))}`;
    }
    return percent(this.model.mean(this.report, found));
  }

  show({ report, point, layer, mesh, places }) {
    const same = this.report === report && this.layer === layer;
    Object.assign(this, { report, point, layer });
    this.edges.style.display = mesh ? "" : "none";
    this.dots.style.display = places ? "" : "none";
    if (mesh && !this.edges.getAttribute("d")) this.drawMesh();
    if (!same) this.paint();
    this.mark();
  }

  drawMesh() {
    const corners = this.frame.pairs(this.region.vertices).map((at) => this.frame.into(at).map((value) => value.toFixed(1)).join(","));
    const t = numbers(this.region.triangles);
    let d = "";
    for (let k = 0; k < t.length; k += 3) d += `M${corners[t[k]]}L${corners[t[k + 1]]}L${corners[t[k + 2]]}Z`;
    this.edges.setAttribute("d", d);
  }

  // Once for many steps of a zoom.
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    const { frame, model, canvas, plane } = this;
    if (!plane || this.layer === undefined) return;
    const across = 420;
    const down = Math.max(2, Math.round((across * frame.height) / WIDTH));
    if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, { width: across, height: down });
    const context = canvas.getContext("2d");
    const picture = context.createImageData(across, down);
    const table = Array.from({ length: 256 }, (_, k) => rgb(k / 255));
    const likeliest = this.layer === "likeliest";
    const top = likeliest ? this.region.field.top : model.most(this.report);
    const level = new Int16Array(across * down);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--panel").trim();
    const line = [1, 3, 5].map((k) => parseInt(ink.slice(k, k + 2), 16));
    const [width, height] = [WIDTH / plane.k, frame.height / plane.k];
    for (let row = 0; row < down; row += 1) {
      for (let column = 0; column < across; column += 1) {
        const { at } = frame.back([plane.x + ((column + 0.5) / across) * width, plane.y + ((row + 0.5) / down) * height]);
        const found = model.cell(at);
        const best = likeliest ? model.likeliest(found) : this.report;
        const share = top > 0 ? model.mean(best, found) / top : 0;
        const k = row * across + column;
        level[k] = likeliest ? best : Math.floor(share * LEVELS * 0.99999);
        const edge = (column && level[k - 1] !== level[k]) || (row && level[k - across] !== level[k]);
        const tone = table[Math.round(255 * Math.sqrt(Math.min(share, 1)))];
        picture.data.set(edge ? tone.map((value, c) => (value + line[c]) >> 1) : tone, 4 * k);
        picture.data[4 * k + 3] = 255;
      }
    }
    context.putImageData(picture, 0, 0);
    for (const [name, value] of Object.entries({ x: plane.x, y: plane.y, width, height })) this.image.setAttribute(name, value);
    this.image.setAttribute("href", canvas.toDataURL());
    const what = likeliest ? "probability of the likeliest report; lines part the reports" : `probability of ${this.region.reports.labels[this.report]}; lines every ${percent(top / LEVELS)}`;
    const ends = [element("span", { text: percent(0) }), rampCanvas(), element("span", { text: percent(top) })];
    const parts = [element("span", { text: what }), element("span", { class: "ramp" }, ends), sign("secret", "the point")];
    if (this.reportAt()) parts.push(sign("guess", "the report"));
    fill(this.key, ...parts, this.rule, this.taken ??= takeaway(this, "Where a report comes from"));
  }

  // The lattice inside of the region as a table.
  get rows() {
    const { columns, rows } = this.region.field;
    const out = [[...placeNames(this.frame), `probability of ${this.region.reports.labels[this.report]}`]];
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const at = [this.region.origin[0] + column * this.model.step[0], this.region.origin[1] + row * this.model.step[1]];
        if (this.inside(at)) out.push([...placeCells(this.frame, at), this.model.mean(this.report, this.model.cell(at))]);
      }
    }
    return out;
  }

  // Where the chosen report lies in this picture, if it does.
  reportAt() {
    const { reports } = this.region;
    if (!reports.map) return null;
    const from = place(reports.map);
    const at = from.real_centres[this.report];
    return at ? this.frame.into(between(from, this.frame, at)) : null;
  }

  // The cell that the chosen report is, where reports are cells.
  reportCell() {
    const { reports } = this.region;
    if (!reports.map || !reports.map.exact) return "";
    const from = place(reports.map);
    return from.rings[this.report].map((ring) => `M${ring.map((at) => this.frame.into(between(from, this.frame, at)).map((value) => value.toFixed(1)).join(",")).join("L")}Z`).join("");
  }

  mark() {
    if (!this.plane) return;
    this.outline.setAttribute("d", this.reportCell());
    const radius = 13 / this.plane.k;
    const [x, y] = this.frame.into(this.point);
    const report = this.reportAt();
    this.marks.replaceChildren(...(report ? symbol("guess", ...report, radius) : []), ...symbol("secret", x, y, radius));
  }
}

function regionPictures(view) {
  const { design } = view;
  const { region } = design;
  const model = opened(region);
  const { reports } = region;
  options(byId("report"), reports.labels);
  byId("show-mesh").closest("label").hidden = region.triangles === null;
  const field = new Field(byId("field-chart"), region, model, (point) => view.set({ point }));
  const chart = new Chart(byId("point-chart"), reports, "What is reported from the point", (choice) => {
    const next = chosen(reports, view.report, choice);
    if (next !== null) view.set({ report: next });
  });

  function show() {
    const { report, point } = view;
    const layer = byId("field-layer").value;
    byId("report").value = String(report);
    field.show({ report, point, layer, mesh: byId("show-mesh").checked, places: byId("show-places").checked });
    const row = model.at(point);
    const where = placeText(field.frame, point);
    field.svg.setAttribute("aria-label", `Where ${reports.labels[report]} is reported from. Point ${where}: ${percent(row[report])}. Arrow keys move the point, plus and minus zoom.`);
    chart.show(row, { what: "probability of the report", signs: [["guess", "report shown on the left"]] });
    chart.mark([{ kind: "guess", index: report, domain: reports }]);
    chart.describe(`From ${where}.`);
    fill(byId("field-readout"), `p(${reports.labels[report]} | x) = `, figure("field", row[report], percent(row[report])), ` at x = ${where}; at most `, figure("field-most", model.most(report), percent(model.most(report))), " in the region.");
    fill(byId("point-readout"), "From ", element("b", { "data-field": "point", "data-value": point.join(","), text: where }));
    topList(byId("point-top"), row, reports.labels, (o) => view.set({ report: o }));
  }

  const left = region.placesLeftOut ? ` ${region.placesLeftOut.toLocaleString("en")} more places, none of them heavier, are not drawn.` : "";
  fill(byId("field-hint"), `Choose a point with the mouse, a finger or the arrow keys, a report by name or on the right. Zoom with the buttons, two fingers, + and −, or the wheel on a map that was clicked; move by dragging or with Shift and the arrow keys. Dots are places of the prior, larger where it has more mass.${left} Probabilities are read from a lattice of ${region.field.columns} × ${region.field.rows} points; at the middles of the triangles they are within ${digits(region.field.error, 2)} of the design's.`);
  drawing("point", design, {
    where: () => view.point.map((value, side) => value / region.stretch[side]),
    words: () => placeText(field.frame, view.point),
    labels: reports.labels,
    seen: (report) => view.set({ report }),
  });
  for (const name of ["report", "point", "layer"]) view.on(name, show);
  view.on("point", () => fill(byId("point-drawn")));
  view.on("theme", () => { field.paint(); chart.paint(); });
}
