// Several designs against each other.
function quantities(designs) {
  const found = [
    { name: "error of the best attack", value: (d) => (d.attack ? real(d.attack.error) : NaN), bound: (d) => (d.objective === "maximize_distortion" ? real(d.bound) : NaN), unit: (d) => d.attack.unit },
    { name: "loss", value: (d) => real(d.loss), bound: (d) => real(d.lower_bound), unit: (d) => d.lossUnit },
    { name: "best guess is right", value: (d) => (d.attack ? real(d.attack.vulnerability) : NaN), bound: () => NaN, unit: () => "" },
  ];
  const most = Math.max(...designs.map((d) => d.constraints.length));
  for (let k = 0; k < most; k += 1) {
    const all = designs.map((d) => d.constraints[k]);
    if (all.some((row) => !row || row.kind !== all[0].kind || row.promised === null)) continue;
    found.push({ name: `${all[0].kind}, ${QUANTITIES[all[0].quantity] || all[0].quantity} promised`, value: (d) => real(d.constraints[k].promised), bound: () => NaN, unit: () => "" });
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

  function draw() {
    const [x, y] = [known[across.value], known[up.value]];
    const points = designs.map((d, k) => ({ k, x: x.value(d), y: y.value(d), bound: y.bound(d) })).filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y));
    fill(byId("frontier-chart"), points.length ? scatter(points, x, y, designs, current, choose) : element("p", { text: "No design has both numbers." }));
    const header = ["design", "status", ...known.map((q) => ({ text: q.name, number: true })), { text: "gap", number: true }];
    table(byId("frontier-table"), header, designs.map((d, k) => ({
      pick: () => choose(k),
      chosen: k === current,
      cells: [
        { nodes: [element("button", { type: "button", text: d.name })] },
        d.status,
        ...known.map((q) => ({ number: true, nodes: [figure("compared", q.value(d), digits(q.value(d)))] })),
        { number: true, text: digits(real(d.gap), 2) },
      ],
    })));
  }

  across.addEventListener("change", draw);
  up.addEventListener("change", draw);
  return (k) => { current = k; draw(); };
}

function scatter(points, x, y, designs, current, choose) {
  const [width, height, left, bottom, right, top] = [1000, 440, 90, 60, 30, 20];
  const range = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = (high - low || Math.abs(high) || 1) * 0.08;
    return [low - room, high + room];
  };
  const [x0, x1] = range(points.map((p) => p.x));
  const [y0, y1] = range(points.flatMap((p) => [p.y, Number.isFinite(p.bound) ? p.bound : p.y]));
  const px = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
  const py = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - bottom - top);
  const write = (text, attributes) => { const made = shape("text", attributes); made.append(text); return made; };
  const parts = [];
  for (const value of ticks(y0, y1)) parts.push(shape("line", { x1: left, x2: width - right, y1: py(value), y2: py(value) }), write(digits(value, 4), { x: left - 8, y: py(value) + 4, "text-anchor": "end" }));
  for (const value of ticks(x0, x1)) parts.push(write(digits(value, 4), { x: px(value), y: height - bottom + 22, "text-anchor": "middle" }));
  const unit = (q) => { const found = q.unit(designs[points[0].k]); return found ? `${q.name} (${found})` : q.name; };
  parts.push(write(unit(x), { x: (left + width) / 2, y: height - 10, "text-anchor": "middle" }), write(unit(y), { x: 16, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 16 ${(height - bottom) / 2})` }));
  const ordered = [...points].sort((a, b) => a.x - b.x);
  parts.push(shape("path", { d: `M${ordered.map((p) => `${px(p.x)},${py(p.y)}`).join("L")}` }));
  for (const p of points) {
    if (Number.isFinite(p.bound)) parts.push(shape("line", { x1: px(p.x), x2: px(p.x), y1: py(p.y), y2: py(p.bound), class: "mark link", "stroke-width": 3 }));
    const dot = shape("circle", { cx: px(p.x), cy: py(p.y), r: p.k === current ? 9 : 6, fill: colour(0.8), class: "cell", tabindex: "0", role: "button", "aria-label": `${designs[p.k].name}: ${digits(p.x)}, ${digits(p.y)}` });
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
