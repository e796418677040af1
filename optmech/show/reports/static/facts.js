// Figures, promises with their prices, and the certificate.
const QUANTITIES = { epsilon: "ε", delta: "δ", distortion: "error of the best attack", loss: "loss", outside: "largest probability outside" };
const PARAMETERS = { epsilon: "ε", delta: "δ", minimum: "the minimum", maximum: "the maximum" };

function listing(host, rows) {
  fill(host, ...rows.flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: value })]));
}

// What holds between two points: what a stranger looks for first.
function promised(points) {
  byId("promise").hidden = !points;
  if (!points) return;
  byId("promise-sentence").textContent = points.sentence;
  byId("promise-odds").hidden = !points.odds.length;
  fill(byId("promise-odds"), ...points.odds.map(([apart, factor]) => element("div", {}, [
    element("dt", { text: apart }),
    element("dd", {}, [factor, element("span", { class: "why", text: "times as likely, at most" })]),
  ])));
  byId("promise-more").textContent = `${points.guess} ${points.repeats}`;
}

function summary(design) {
  byId("title").textContent = design.title;
  byId("lead").textContent = design.lead;
  promised(design.points);
  const checked = design.checks.reduce((sum, check) => sum + check.inequalities, 0);
  const verdict = byId("verdict");
  verdict.className = `verdict ${design.verified ? "good" : "bad"}`;
  verdict.textContent = design.status === "infeasible"
    ? `Infeasible: ${design.reason}`
    : design.verified
      ? `Verified: all ${checked.toLocaleString("en")} inequalities hold, each decided exactly.`
      : "Not verified: a check failed.";
  if (design.status === "infeasible") return fill(byId("figures"));
  const { attack, lossUnit, why } = design;
  const unproved = (field) => design.unproved.includes(field);
  const maximised = design.objective === "maximize_distortion";
  const sides = { bound: maximised ? 1 : -1, lower_bound: -1, gap: 1, total_gap: 1 };
  const entry = (name, field, value, unit, why, text = digits(value, 4, sides[field] ?? 0)) => element("div", {}, [
    element("dt", { text: name }),
    element("dd", {}, [figure(field, value, text), unit ? element("small", { text: ` ${unit}` }) : "", element("span", { class: "why", text: why })]),
  ]);
  if (design.region) {
    return fill(
      byId("figures"),
      entry("Expected loss", "loss", real(design.loss), lossUnit, "of the released mechanism, over the places of the prior"),
      entry("Bound on this mesh", "bound", real(design.bound), lossUnit, why.bound),
      entry("Gap on this mesh", "gap", real(design.gap), "", "certified, relative"),
      unproved("lower_bound")
        ? entry("Bound for every mechanism", "lower_bound", 0, lossUnit, why.lower_bound, "–")
        : entry("Bound for every mechanism", "lower_bound", real(design.lower_bound), lossUnit, why.lower_bound),
      unproved("lower_bound")
        ? entry("Gap to every mechanism", "total_gap", NaN, "", "not known", "–")
        : entry("Gap to every mechanism", "total_gap", real(design.total_gap), "", "certified, relative; a finer mesh reduces it"),
    );
  }
  const rows = [
    entry(design.objective === "worst_loss" ? "Worst-case loss" : "Expected loss", "loss", real(design.loss), lossUnit, "of the released mechanism"),
    entry("Proved lower bound", "lower_bound", real(design.lower_bound), lossUnit, why.lower_bound, unproved("lower_bound") ? "–" : undefined),
  ];
  // of lines and roads the loss has two bounds: on the mesh, and of every mechanism
  if (design.objective.endsWith("loss") && why.bound) rows.splice(1, 0, entry("Bound on this mesh", "bound", real(design.bound), lossUnit, why.bound));
  const leaks = design.objective === "minimize_leakage";
  if (leaks) rows.push(entry("Gain of the best guess", "value", real(design.value), "", "the least possible is sought"), entry("Proved bound on the gain", "bound", real(design.bound), "", why.bound));
  if (maximised) rows.push(entry("Proved bound on the error", "bound", real(design.bound), attack.unit, why.bound));
  rows.push(
    entry("Gap", "gap", real(design.gap), "", `certified, relative: ${design.nearness}`),
    entry("Error of the best attack", "attack", real(attack.error), attack.unit, `${digits(real(attack.blind))} for one who sees nothing (${attack.distance})`),
    entry("Best guess is right", "vulnerability", real(attack.vulnerability), "", "over all reports", percent(real(attack.vulnerability))),
  );
  return fill(byId("figures"), ...rows);
}

function verdictOf(row) {
  if (row.measured === null) return null;
  const measured = real(row.measured);
  const promised = real(row.promised);
  return { measured, promised, share: promised > 0 ? measured / promised : measured > 0 ? Infinity : 1, tight: Math.abs(measured - promised) <= 1e-6 * Math.max(promised, 1e-300) };
}

function priceText(design, { parameter, value, rate }) {
  const goal = design.objective === "minimize_leakage" ? "what the best guess gains" : design.objective === "maximize_distortion" ? "the error of the best attack" : `the ${design.objective === "worst_loss" ? "worst-case" : "expected"} loss`;
  const unit = design.objective === "maximize_distortion" ? design.attack.unit : design.objective === "minimize_leakage" ? "" : design.lossUnit;
  const step = 0.01 * real(value);
  const change = real(rate) * step;
  const name = PARAMETERS[parameter];
  const size = Math.abs(change);
  const own = () => figure(`price-${parameter}`, real(rate), digits(real(rate), 5));
  if (Number.isNaN(real(rate))) return [`The price of ${name} is not told by the certificate: `, own(), "."];
  if (real(value) === 0 && real(rate) !== 0) return [`${name} is 0; price `, own(), " per unit of it."];
  if (!(size > 1e-9 * Math.abs(real(design.value)))) return [`A little more or less of ${name} changes nothing: `, figure(`price-${parameter}`, real(rate), "price 0"), "."];
  const direction = change < 0 ? "lowers" : "raises";
  return [
    `1 % more of ${name} (${digits(step, 3)}) ${direction} ${goal} by about ${withUnit(digits(size, 3), unit)} (${percent(size / Math.abs(real(design.value)))}); price `,
    own(), ` per unit of ${name}.`,
  ];
}

function promises(design) {
  const cards = design.constraints.map((row, k) => {
    const found = verdictOf(row);
    const left = element("div", {}, [element("h3", { text: `${row.kind[0].toUpperCase()}${row.kind.slice(1)}` }), element("p", { text: row.promise })]);
    const right = element("div");
    if (found) {
      const name = QUANTITIES[row.quantity];
      right.append(element("p", {}, [
        `Measured from the matrix: ${name} `, figure(`measured-${k}`, found.measured, digits(found.measured, 9)),
        ` (${row.sense} `, figure(`promised-${k}`, found.promised, digits(found.promised, 9)), ")", found.tight && found.promised > 0 ? ": tight." : ".",
      ]));
      const gauge = element("i");
      gauge.style.width = `${100 * Math.min(found.share, row.sense === "at least" ? 1 / Math.max(found.share, 1e-9) : 1)}%`;
      if (row.quantity !== "outside") right.append(element("div", { class: "gauge", "aria-hidden": "true" }, [gauge]));
    }
    for (const price of row.prices) right.append(element("p", {}, priceText(design, price)));
    return element("article", { class: "card promise", "data-constraint": String(k) }, [left, right]);
  });
  fill(byId("constraints"), ...(cards.length ? cards : [element("p", { class: "hint", text: "Nothing was promised." })]));
}

function dearest(view) {
  const { design, observed } = view.model;
  byId("pairs-card").hidden = !design.pairs.length;
  const maximised = design.objective === "maximize_distortion";
  const rows = design.pairs.map(([s, t, o, allowed, rate]) => ({
    pick: () => { view.set({ secret: s, other: t }); byId("ratios-title").scrollIntoView(); },
    cells: [
      { nodes: [element("button", { type: "button", text: `${design.secrets.labels[s]} over ${design.secrets.labels[t]}` })] },
      observed.labels[o],
      { text: digits(real(allowed)), number: true },
      { number: true, nodes: [figure("pair-rate", real(rate), digits(real(rate), 4))] },
    ],
  }));
  table(byId("pairs-table"), ["pair", "mostly at report", { text: "allowed ln ratio", number: true }, { text: maximised ? "Δ error / Δ ln ratio" : "Δ loss / Δ ln ratio", number: true }], rows);
}

function certificate(design) {
  const rows = design.checks.map((check) => ({
    cells: [
      check.constraint === null ? check.name : `${check.name} (constraint ${check.constraint})`,
      { text: check.inequalities.toLocaleString("en"), number: true },
      check.passed ? { text: "holds", kind: "good-text" } : { text: "FAILS", kind: "bad-text" },
      { text: check.detail, kind: "detail" },
    ],
  }));
  table(byId("checks"), ["check", { text: "inequalities", number: true }, "verdict", "tightest"], rows);
  byId("checks").hidden = !rows.length;
  const lines = [["status", design.status]];
  if (design.bits !== null) lines.push(["probabilities", `whole numbers over 2^${design.bits}`]);
  // nothing of these can be proved from a design
  const said = "as recorded by the solver, not checked";
  lines.push([`engine (${said})`, design.engine], [`time to solve (${said})`, `${digits(real(design.seconds), 3)} s`]);
  if (design.rounding_cost !== null) lines.push([`cost of rounding (${said})`, `${digits(real(design.rounding_cost), 2)}, relative`]);
  listing(byId("facts"), lines);
  fill(byId("notes"), ...design.notes.map((text) => element("li", { text })));
  listing(byId("words"), design.words);
}
