// One value for each element of a domain, as a map where it has places and as bars otherwise.
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class Chart {
  // `name` says what the picture is of; `pick` is called with a point or index that was chosen.
  constructor(host, domain, name, pick) {
    this.host = host;
    this.domain = domain;
    this.name = name;
    this.pick = pick;
    this.key = element("div", { class: "key" });
    this.map = domain.map ? place(domain.map) : null;
    this.svg = shape("svg", { tabindex: "0", role: "application", "aria-roledescription": this.map ? "map" : "bar chart" });
    this.sheet = element("div", { class: "sheet" }, [this.svg]);
    this.box = element("div", { class: "chart" }, [this.sheet]);
    fill(host, this.box, this.key);
    if (this.map) this.drawMap();
    else this.drawBars();
    this.svg.addEventListener("keydown", (event) => this.step(event));
    this.svg.addEventListener("mousemove", (event) => this.point(event));
    this.svg.addEventListener("mouseleave", hideTip);
  }

  drawMap() {
    const { height, paths, exact, centres } = this.map;
    this.box.style.maxWidth = `${Math.min(38, (38 * WIDTH) / height)}rem`;
    this.cells = paths.map((d, k) => shape("path", { d, class: "cell", "data-k": k, "fill-rule": "evenodd" }));
    this.marks = shape("g");
    const dots = exact ? [] : centres.map(([x, y]) => shape("circle", { cx: x, cy: y, r: 2.2, class: "dot" }));
    this.marked = [[], []];
    this.svg.replaceChildren(...this.cells, ...backdrop(this.map), ...dots, this.marks);
    this.rule = element("span", { class: "rule" });
    this.plane = new Plane(this.svg, this.sheet, this.map, (share) => {
      this.mark(...this.marked);
      ruler(this.rule, this.map.real * share, this.map.unit);
    });
    this.svg.addEventListener("click", (event) => {
      const k = event.target.dataset.k;
      this.pick({ ...this.map.back(this.plane.at(event)), frame: this.map, hit: k === undefined ? null : Number(k), domain: this.domain });
    });
  }

  drawBars() {
    const { labels, line, suppressed } = this.domain;
    const count = labels.length;
    const width = Math.max(560, 16 * count);
    this.tall = 220;
    const slanted = line === null && !(count <= 12 && labels.every((label) => label.length <= 6));
    const room = slanted ? 100 : 30;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.tall + room}`);
    if (width > 560) {
      this.box.classList.add("wide-bars");
      this.svg.style.width = `${width / 16}rem`;
    }
    const step = width / count;
    this.centres = labels.map((_, k) => [(k + 0.5) * step, 0]);
    this.cells = labels.map((_, k) => shape("rect", { class: "cell", "data-k": k, x: k * step, width: step, y: 0, height: 0 }));
    // the whole strip above and below a bar chooses it
    const strips = labels.map((_, k) => shape("rect", { "data-k": k, x: k * step, width: step, y: 0, height: this.tall + room, fill: "transparent" }));
    const every = Math.ceil(46 / step);
    const names = labels.flatMap((label, k) => {
      if (k % every) return [];
      const short = label.length > 14 ? `${label.slice(0, 13)}…` : label;
      const x = (k + 0.5) * step;
      const turn = slanted ? { "text-anchor": "end", transform: `rotate(-45 ${x} ${this.tall + 20})` } : { "text-anchor": "middle" };
      const made = shape("text", { class: "bar-label", x, y: this.tall + 20, ...turn });
      made.append(short);
      return [made];
    });
    this.marks = shape("g");
    this.svg.replaceChildren(shape("g", { class: "axis" }, [shape("line", { x1: 0, x2: width, y1: this.tall, y2: this.tall })]), ...this.cells, ...names, ...strips, this.marks);
    this.svg.addEventListener("click", (event) => {
      const k = event.target.dataset.k;
      if (k !== undefined) this.pick({ index: Number(k), label: labels[k] });
    });
    this.suppressed = suppressed;
  }

  // One value each; `text` writes a value, `what` says in the key what colours mean.
  show(values, { what, text = percent, scale = "root", top = null, signs = [] }) {
    this.values = values;
    this.text = text;
    this.top = top ?? values.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, value) : most), 0);
    this.scale = SCALES[scale];
    this.what = what;
    this.signs = signs;
    this.paint();
  }

  paint() {
    const share = (value) => (this.top > 0 ? this.scale(Math.min(value, this.top), this.top) : 0);
    this.cells.forEach((cell, k) => {
      const value = this.values[k];
      if (this.map) {
        cell.setAttribute("fill", Number.isNaN(value) ? "none" : colour(share(value)));
      } else {
        const height = this.top > 0 ? (Math.min(value, this.top) / this.top) * (this.tall - 8) : 0;
        cell.setAttribute("y", this.tall - height);
        cell.setAttribute("height", height);
        cell.setAttribute("fill", colour(0.62));
      }
    });
    const ends = [element("span", { text: this.text(0) }), rampCanvas(), element("span", { text: this.text(this.top) })];
    const parts = [element("span", { text: this.what })];
    if (this.map) parts.push(element("span", { class: "ramp" }, ends));
    else parts.push(element("span", { text: `highest ${this.text(this.top)}` }));
    for (const [kind, text] of this.signs) parts.push(sign(kind, text));
    if (this.rule) parts.push(this.rule);
    if (this.map && this.domain.labels.length > this.cells.length) {
      const last = this.domain.labels.length - 1;
      parts.push(element("span", { text: `${this.domain.labels[last]} (no place): ${this.text(this.values[last])}` }));
    }
    parts.push(this.taken ??= takeaway(this, this.name));
    fill(this.key, ...parts);
  }

  // What is shown as a table.
  get rows() {
    const { labels, line } = this.domain;
    const places = this.map ? this.map.real_centres.map((at) => placeCells(this.map, at)) : labels.map((_, k) => (line === null ? [] : [numbers(line)[k]]));
    const names = this.map ? placeNames(this.map) : line === null ? [] : ["position"];
    return [["label", ...names, this.what], ...labels.map((label, k) => [label, ...(places[k] ?? names.map(() => "")), this.values[k]])];
  }

  // Rings and crosses over the elements of `domain` with these indices.
  mark(marked, links = []) {
    const made = [];
    const other = new Map();
    this.marked = [marked, links];
    const k = this.plane ? this.plane.k : 1;
    for (const { kind, index, domain } of marked) {
      if (!other.has(domain)) other.set(domain, this.centresOf(domain));
      const at = other.get(domain)[index];
      if (at) made.push(...symbol(kind, at[0], this.map ? at[1] : this.tall * 0.08, (this.map ? this.map.radius : 9) / k));
    }
    const places = links.length ? this.centresOf(this.domain) : [];
    for (const { from, to, weight } of links) {
      const [[x1, y1], [x2, y2]] = [places[from], places[to]];
      if (this.map) made.push(shape("line", { x1, y1, x2, y2, class: "mark link", "stroke-width": 1 + 3 * weight }));
    }
    this.marks.replaceChildren(...made);
  }

  // Places of another domain's elements in this picture; the same elements where both are bars.
  centresOf(domain) {
    if (this.map) {
      if (!domain.map) return [];
      const from = place(domain.map);
      return from.real_centres.map((at) => this.map.into(between(from, this.map, at)));
    }
    return domain.labels.map((label) => this.centres[this.domain.labels.indexOf(label)]);
  }

  describe(text) { this.svg.setAttribute("aria-label", `${this.name}. ${text} Arrow keys choose a neighbour.`); }

  step(event) {
    if (event.shiftKey) return;
    const direction = ARROWS[event.key];
    if (!direction) return;
    event.preventDefault();
    this.pick({ direction });
  }

  point(event) {
    const k = event.target.dataset.k;
    if (k === undefined) hideTip();
    else {
      const where = this.map ? ` · ${placeText(this.map, this.map.back(this.plane.at(event)).at)}` : "";
      showTip(event, `${this.domain.labels[k]}: ${this.text(this.values[k])}${where}`);
    }
  }
}

// The box of a packed map in the picture's units, y downwards, and how places lie in it.
function framed(map) {
  const grain = map.size / 65535;
  const margin = page.backdrop && map.degrees ? MARGIN * Math.max(map.width, map.height) : 0;
  const [across, up] = [map.width + 2 * margin, map.height + 2 * margin];
  const scale = WIDTH / Math.max(across, up * 0.72);
  const height = up * scale;
  const shift = (WIDTH - map.width * scale) / 2;
  const [west, south] = [map.origin[0], map.origin[1] - margin];
  return {
    height, unit: map.unit, degrees: map.degrees, real: WIDTH / scale,
    into: ([x, y]) => [(x - west) * scale + shift, height - (y - south) * scale],
    back: ([x, y]) => ({ at: [(x - shift) / scale + west, (height - y) / scale + south] }),
    pairs(name) {
      const raw = numbers(name);
      return Array.from({ length: raw.length / 2 }, (_, k) => [raw[2 * k] * grain + map.origin[0], raw[2 * k + 1] * grain + map.origin[1]]);
    },
  };
}

const placed = new Map();

function place(map) {
  if (placed.has(map)) return placed.get(map);
  const frame = framed(map);
  const { into, height, pairs } = frame;
  const real = pairs(map.corners);
  const corners = real.map(into);
  const ends = numbers(map.ringEnds);
  const paths = [];
  const rings = [];
  let ring = 0;
  for (const end of numbers(map.shapeEnds)) {
    let d = "";
    rings.push([]);
    for (; ring < end; ring += 1) {
      const span = [ring ? ends[ring - 1] : 0, ends[ring]];
      const own = corners.slice(...span);
      rings.at(-1).push(real.slice(...span));
      d += `M${own.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}Z`;
    }
    paths.push(d);
  }
  const real_centres = pairs(map.centres);
  const area = WIDTH * height;
  const made = {
    ...frame, paths, rings, real_centres, exact: map.exact, centres: real_centres.map(into),
    radius: Math.min(26, Math.max(11, 0.42 * Math.sqrt(area / real_centres.length))),
  };
  placed.set(map, made);
  return made;
}

// The element of `domain` that a choice on some chart stands for, or null.
function chosen(domain, current, { at, frame, hit, domain: shown, index, label, direction }) {
  if (hit !== undefined && hit !== null && shown === domain) return hit;
  if (label !== undefined) {
    const same = domain.labels.indexOf(label);
    return same >= 0 ? same : index < domain.labels.length ? index : null;
  }
  if (direction && !domain.map) {
    const next = current + direction[0] - direction[1];
    return next >= 0 && next < domain.labels.length ? next : null;
  }
  if (!domain.map) return null;
  const own = place(domain.map);
  const { real_centres: centres } = own;
  if (at) {
    const there = frame ? between(frame, own, at) : at;
    return nearest(centres, ([x, y]) => Math.hypot(x - there[0], y - there[1]));
  }
  const from = centres[current];
  if (!from) return 0;
  return nearest(centres, ([x, y]) => {
    const ahead = (x - from[0]) * direction[0] - (y - from[1]) * direction[1];
    const aside = Math.abs((x - from[0]) * direction[1]) + Math.abs((y - from[1]) * direction[0]);
    return ahead > 1e-12 ? ahead + 2.5 * aside : Infinity;
  });
}

function nearest(centres, cost) {
  let best = null;
  let least = Infinity;
  centres.forEach((centre, k) => {
    const value = cost(centre);
    if (value < least) { least = value; best = k; }
  });
  return best;
}

function symbol(kind, x, y, radius) {
  if (kind === "guess") {
    const r = radius * 0.62;
    const d = `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}`;
    return [shape("path", { d, class: "mark halo" }), shape("path", { d, class: "mark guess" })];
  }
  const ring = { cx: x, cy: y, r: radius };
  return [shape("circle", { ...ring, class: "mark halo" }), shape("circle", { ...ring, class: "mark secret" })];
}

function sign(kind, text) {
  const drawn = shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, symbol(kind, 8, 8, 6).slice(1));
  return element("span", { class: "sign" }, [drawn, text]);
}

function ruler(host, width, unit) {
  const power = 10 ** Math.floor(Math.log10(width / 4));
  const length = [5, 2, 1].map((k) => k * power).find((value) => value <= width / 4) || power;
  const bar = element("i");
  bar.style.width = `${(100 * length) / width}%`;
  fill(host, bar, withUnit(digits(length), unit));
}
