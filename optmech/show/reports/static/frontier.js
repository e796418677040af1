// Several designs against each other.
function quantities(designs) {
  const found = [
    { name: "error of the best attack", value: (d) => (d.attack ? real(d.attack.error) : NaN), bound: (d) => (d.objective === "maximize_distortion" ? real(d.bound) : NaN), unit: (d) => (d.attack ? d.attack.unit : "") },
    { name: "loss", value: (d) => real(d.loss), bound: (d) => real(d.lower_bound), unit: (d) => d.lossUnit },
    { name: "best guess is right", value: (d) => (d.attack ? real(d.attack.vulnerability) : NaN), bound: () => NaN, unit: () => "" },
  ];
  const most = Math.max(...designs.map((d) => d.constraints.length));
  for (let k = 0; k < most; k += 1) {
    const all = designs.map((d) => d.constraints[k]);
    if (all.some((row) => !row || row.kind !== all[0].kind || row.promised === null)) continue;
    found.push({ name: `${all[0].kind}, ${QUANTITIES[all[0].quantity] || all[0].quantity} promised`, value: (d) => real(d.constraints[k].promised), bound: () => NaN, unit: (d) => d.constraints[k].unit || "" });
  }
  return found;
}

function frontier(designs, choose) {
  const card = byId("frontier");
  card.hidden = designs.length < 2;
  if (card.hidden) return () => {};
  const known = quantities(designs);
  const varies = (q) => new Set(designs.map(q.value).filter(Number.isFinite)).size > 1;
  const [across, up] = [byId("frontier-x"), byId("frontier-y")];
  for (const select of [across, up]) options(select, known.map((q) => q.name));
  const promised = known.findIndex((q, k) => k > 2 && varies(q));
  across.value = String(promised >= 0 ? promised : 0);
  up.value = "1";
  let current = 0;
  const groups = [...new Set(designs.map((d) => d.group || ""))];
  const middle = byId("frontier-middle");
  byId("frontier-middle-control").hidden = groups.length < 4;
  if (designs.some((d) => d.mechanism === null && d.attack)) byId("frontier-hint").textContent = "Choose a point or a row for its figures; so many designs come without their mechanisms: make a page of one to see it.";

  function draw() {
    const [x, y] = [known[across.value], known[up.value]];
    const points = designs.map((d, k) => ({ k, x: x.value(d), y: y.value(d), bound: y.bound(d) })).filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y));
    fill(byId("frontier-chart"), points.length ? scatter(points, x, y, { designs, groups, middle: middle.checked && groups.length >= 4 }, current, choose) : element("p", { text: "No design has both numbers." }));
    const first = designs.find((d) => d.status !== "infeasible") || designs[0];
    const header = ["design", "status", ...known.map((q) => ({ text: named(q, designs.find((d) => Number.isFinite(q.value(d))) || first), number: true })), { text: "gap", number: true }];
    table(byId("frontier-table"), header, designs.map((d, k) => ({
      pick: () => choose(k),
      chosen: k === current,
      cells: [
        { nodes: [element("button", { type: "button", text: d.name })] },
        d.status,
        ...known.map((q) => ({ number: true, nodes: [figure("compared", q.value(d), digits(q.value(d)))] })),
        { number: true, text: digits(real(d.gap), 2, 1) },
      ],
    })));
  }

  across.addEventListener("change", draw);
  up.addEventListener("change", draw);
  middle.addEventListener("change", draw);
  let wide = 0;
  new ResizeObserver(([entry]) => {
    const found = Math.round(entry.contentRect.width);
    if (wide && found !== wide) draw();
    wide = found;
  }).observe(byId("frontier-chart"));
  return (k) => { current = k; draw(); };
}

// The name of a quantity with its unit, where it has one.
function named(quantity, design) {
  const unit = design.status === "infeasible" ? "" : quantity.unit(design);
  return unit ? `${quantity.name} (${unit})` : quantity.name;
}

// A colour for every series, told apart in light and in dark.
function seriesColour(k, count) {
  const safe = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9"];
  return count <= safe.length ? safe[k] : `hsl(${Math.round((k * 360) / count)} 55% 50%)`;
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

// Median and quartiles where at least half of the series have a point, and four of them.
function middles(points, groups) {
  const columns = new Map();
  for (const p of points) columns.set(p.x, [...(columns.get(p.x) || []), p.y]);
  return [...columns].filter(([, ys]) => ys.length >= Math.max(4, groups / 2)).sort((a, b) => a[0] - b[0])
    .map(([x, ys]) => ({ x, low: quantile(ys, 0.25), median: quantile(ys, 0.5), high: quantile(ys, 0.75) }));
}

// Labels at the ends of lines, pushed apart so that none covers another.
function spread(labels, low, high, step) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, k) => { label.at = Math.max(label.y, k ? labels[k - 1].at + step : low); });
  for (let k = labels.length - 1; k >= 0; k -= 1) labels[k].at = Math.min(labels[k].at, k + 1 < labels.length ? labels[k + 1].at - step : high);
  return labels;
}

const MOST_NAMED = 16;

function scatter(points, x, y, { designs, groups, middle }, current, choose) {
  const labelled = groups.length > 1 && groups.length <= MOST_NAMED;
  const longest = Math.max(...groups.map((group) => group.length));
  // as wide as its place, so that words keep their size on a phone
  const width = Math.max(300, Math.min(1000, byId("frontier-chart").clientWidth || 1000));
  const [height, left, bottom, top] = [width < 600 ? 320 : 440, width < 600 ? 64 : 90, 60, 20];
  const right = labelled ? Math.min(30 + 7.5 * longest, 0.26 * width) : 30;
  const room = Math.floor((right - 12) / 7.5);
  const range = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const beside = (high - low || Math.abs(high) || 1) * 0.08;
    return [low - beside, high + beside];
  };
  const [x0, x1] = range(points.map((p) => p.x));
  const [y0, y1] = range(points.flatMap((p) => [p.y, Number.isFinite(p.bound) ? p.bound : p.y]));
  const px = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
  const py = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - bottom - top);
  const write = (text, attributes) => { const made = shape("text", attributes); made.append(text); return made; };
  const path = (listed) => `M${listed.map(([a, b]) => `${px(a)},${py(b)}`).join("L")}`;
  const parts = [];
  for (const value of ticks(y0, y1)) parts.push(shape("line", { x1: left, x2: width - right, y1: py(value), y2: py(value) }), write(digits(value, 4), { x: left - 8, y: py(value) + 4, "text-anchor": "end" }));
  for (const value of ticks(x0, x1)) parts.push(write(digits(value, 4), { x: px(value), y: height - bottom + 22, "text-anchor": "middle" }));
  const first = designs[points[0].k];
  parts.push(write(named(x, first), { x: left + (width - left - right) / 2, y: height - 10, "text-anchor": "middle" }), write(named(y, first), { x: 16, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 16 ${(height - bottom) / 2})` }));
  const many = groups.length > 1;
  const ends = [];
  groups.forEach((group, k) => {
    const own = points.filter((p) => (designs[p.k].group || "") === group).sort((a, b) => a.x - b.x || a.y - b.y);
    if (!own.length) return;
    const stroke = many ? { stroke: seriesColour(k, groups.length) } : {};
    parts.push(shape("path", { d: path(own.map((p) => [p.x, p.y])), class: many ? "series" : "", "data-series": group, opacity: middle ? 0.35 : 1, ...stroke }));
    const end = own[own.length - 1];
    ends.push({ y: py(end.y) + 4, x: px(end.x), text: group, fill: seriesColour(k, groups.length) });
  });
  if (middle) {
    const found = middles(points, groups.length);
    if (found.length > 1) {
      const around = [...found.map((m) => [m.x, m.high]), ...[...found].reverse().map((m) => [m.x, m.low])];
      parts.push(shape("path", { d: `${path(around)}Z`, class: "middle" }), shape("path", { d: path(found.map((m) => [m.x, m.median])), class: "median", "data-median": found.map((m) => m.median).join(" ") }));
    }
  }
  if (labelled) for (const label of spread(ends, top + 8, height - bottom, 15)) parts.push(write(label.text.length > room ? `${label.text.slice(0, room - 1)}…` : label.text, { x: label.x + 12, y: label.at, class: "series-name", fill: label.fill }));
  for (const p of points) {
    if (Number.isFinite(p.bound)) parts.push(shape("line", { x1: px(p.x), x2: px(p.x), y1: py(p.y), y2: py(p.bound), class: "mark link", "stroke-width": 3 }));
    const paint = many ? seriesColour(groups.indexOf(designs[p.k].group || ""), groups.length) : colour(0.8);
    const dot = shape("circle", { cx: px(p.x), cy: py(p.y), r: p.k === current ? 9 : many ? 4.5 : 6, fill: paint, class: "cell", tabindex: "0", role: "button", "aria-label": `${designs[p.k].name}: ${digits(p.x)}, ${digits(p.y)}` });
    dot.addEventListener("click", () => choose(p.k));
    dot.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(p.k); } });
    dot.addEventListener("mousemove", (event) => showTip(event, `${designs[p.k].name}: ${digits(p.x)}, ${digits(p.y)}`));
    dot.addEventListener("mouseleave", hideTip);
    parts.push(dot);
  }
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${y.name} against ${x.name}` }, [shape("g", { class: "axis" }, parts)]);
  return element("div", { class: "chart" }, [svg]);
}

function ticks(low, high) {
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 5, 10].map((k) => k * power).find((value) => (high - low) / value <= 6);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(k * step);
  return found;
}
