// A picture of the plane that can be zoomed and moved, with coordinates along its sides.
const WIDTH = 1000;
const CLOSEST = 64;
const LABEL = 76; // pixels that a label across needs
const MARGIN = 0.06; // as in behind.py
const ZOOM_STEP = 1.6;

class Plane {
  // `frame` has height, back and into as from `place`, unit and degrees; `changed` is called after every zoom.
  constructor(svg, box, frame, changed) {
    Object.assign(this, { svg, box, frame, changed, x: 0, y: 0, k: 1, held: new Map(), moved: false });
    this.across = element("div", { class: "ticks", "aria-hidden": "true" });
    const button = (text, name, act) => element("button", { type: "button", title: name, "aria-label": name, text, onclick: act });
    this.buttons = element("div", { class: "zoom" }, [
      button("+", "Zoom in", () => this.zoom(ZOOM_STEP)),
      button("−", "Zoom out", () => this.zoom(1 / ZOOM_STEP)),
      button("⤢", "Show the whole map", () => this.whole()),
    ]);
    box.classList.add("plane");
    box.append(this.across, this.buttons);
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.down(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(name, (event) => this.up(event));
    // the end of a drag chooses nothing
    svg.addEventListener("click", (event) => { if (this.moved) { event.stopImmediatePropagation(); this.moved = false; } }, true);
    svg.addEventListener("keydown", (event) => this.key(event));
    this.apply();
    new ResizeObserver(() => this.apply()).observe(svg);
  }

  // A place of the picture under an event of the mouse.
  at(event) {
    const corner = this.svg.getBoundingClientRect();
    const scale = WIDTH / this.k / corner.width;
    return [this.x + (event.clientX - corner.left) * scale, this.y + (event.clientY - corner.top) * scale];
  }

  whole() { Object.assign(this, { x: 0, y: 0, k: 1 }); this.apply(); }

  zoom(factor, at = [this.x + WIDTH / this.k / 2, this.y + this.frame.height / this.k / 2]) {
    const k = Math.min(Math.max(this.k * factor, 1), CLOSEST);
    const ratio = this.k / k;
    this.x = at[0] - (at[0] - this.x) * ratio;
    this.y = at[1] - (at[1] - this.y) * ratio;
    this.k = k;
    this.apply();
  }

  shift(dx, dy) { this.x += dx; this.y += dy; this.apply(); }

  apply() {
    const clamp = (value, most) => Math.min(Math.max(value, 0), most);
    const [width, height] = [WIDTH / this.k, this.frame.height / this.k];
    this.x = clamp(this.x, WIDTH - width);
    this.y = clamp(this.y, this.frame.height - height);
    this.svg.setAttribute("viewBox", `${this.x} ${this.y} ${width} ${height}`);
    this.svg.style.setProperty("--k", 1 / this.k);
    this.svg.style.touchAction = this.k > 1 ? "none" : "pan-x pan-y";
    this.box.dataset.zoom = this.k.toFixed(2);
    const [low, high] = [this.frame.back([this.x, this.y + height]).at, this.frame.back([this.x + width, this.y]).at];
    fill(this.across, ...[0, 1].flatMap((side) => this.ticks(side, low[side], high[side])));
    this.changed(width / WIDTH);
  }

  // Elements, each with its share of the side and its text.
  ticks(side, low, high) {
    const [from, to] = [low, high].map((value) => degree(this.frame, side, value));
    const found = ticks(from, to);
    const step = found.length > 1 ? found[1] - found[0] : to - from;
    // labels that stand side by side need room
    const every = side ? 1 : Math.ceil((found.length * LABEL) / (this.svg.clientWidth || WIDTH));
    return found.filter((_, k) => k % every === 0).map((value) => {
      const share = (value - from) / (to - from);
      const text = this.frame.degrees ? degreeText(side, value, step) : digits(value, 5);
      const made = element("span", { class: side ? "tick up" : "tick", text });
      made.style[side ? "bottom" : "left"] = `${100 * share}%`;
      return made;
    });
  }

  wheel(event) {
    // over a map that nobody chose the page scrolls
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.svg) return;
    event.preventDefault();
    this.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY)) * 0.004), this.at(event));
  }

  down(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    if (!this.held.size) this.moved = false;
    this.held.set(event.pointerId, [event.clientX, event.clientY]);
  }

  move(event) {
    const before = this.held.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    if (!this.moved && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4) return;
    if (!this.moved) {
      this.moved = true;
      this.svg.setPointerCapture(event.pointerId);
    }
    const scale = WIDTH / this.k / this.svg.getBoundingClientRect().width;
    const other = [...this.held].find(([id]) => id !== event.pointerId);
    this.held.set(event.pointerId, now);
    if (!other) return void this.shift((before[0] - now[0]) * scale, (before[1] - now[1]) * scale);
    const apart = (p) => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]) || 1;
    this.zoom(apart(now) / apart(before), this.at({ clientX: (now[0] + other[1][0]) / 2, clientY: (now[1] + other[1][1]) / 2 }));
  }

  up(event) {
    if (event.type !== "pointerleave" || !this.svg.hasPointerCapture(event.pointerId)) this.held.delete(event.pointerId);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = event.shiftKey ? ARROWS[event.key] : null;
    if (direction) this.shift((0.15 * WIDTH * direction[0]) / this.k, (0.15 * WIDTH * direction[1]) / this.k);
    else if (event.key === "+" || event.key === "=") this.zoom(ZOOM_STEP);
    else if (event.key === "-" || event.key === "_") this.zoom(1 / ZOOM_STEP);
    else if (event.key === "0") this.whole();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

// A coordinate of the plane (side 0 across, 1 up) in degrees, where these are known.
function degree(frame, side, value) {
  return frame.degrees ? frame.degrees[side] + value / frame.degrees[side + 2] : value;
}

function degreeText(side, value, step) {
  const places = Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const size = Math.abs(value).toFixed(places);
  const letter = Number(size) === 0 ? "" : side ? (value > 0 ? " N" : " S") : value > 0 ? " E" : " W";
  return `${size}°${letter}`;
}

// A place in words: degrees where these are known, else x and y.
function placeText(frame, at) {
  const span = frame.real / 400;
  if (frame.degrees) return [1, 0].map((side) => degreeText(side, degree(frame, side, at[side]), span / frame.degrees[side + 2])).join(", ");
  const places = Math.min(9, Math.max(0, -Math.floor(Math.log10(span))));
  return `(${at.map((value) => digits(Number(value.toFixed(places)), 9)).join(", ")})${frame.unit ? ` ${frame.unit}` : ""}`;
}

// A place of one map in the plane of another, by their degrees where both have them.
function between(from, to, at) {
  if (!from.degrees || !to.degrees) return at;
  return at.map((value, side) => (degree(from, side, value) - to.degrees[side]) * to.degrees[side + 2]);
}

// The lines behind a map, drawn over its cells.
function backdrop(frame) {
  if (!page.backdrop || !frame.degrees) return [];
  const { low, high } = page.backdrop;
  const raw = numbers(page.backdrop.points);
  const across = [0, 1].map((side) => (high[side] - low[side]) / 65535);
  const at = (k) => frame.into([0, 1].map((side) => (low[side] + raw[2 * k + side] * across[side] - frame.degrees[side]) * frame.degrees[side + 2]));
  let d = "";
  let begin = 0;
  for (const end of numbers(page.backdrop.ends)) {
    for (let k = begin; k < end; k += 1) d += `${k === begin ? "M" : "L"}${at(k).map((value) => value.toFixed(1)).join(",")}`;
    begin = end;
  }
  return [shape("path", { d, class: "backdrop" })];
}
